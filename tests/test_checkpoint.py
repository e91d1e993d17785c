"""An interrupted profile resumes where it stopped, and equals one that was not interrupted."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

import deepcruiser as dc
from deepcruiser.abstraction import checkpoint as checkpoint_module
from deepcruiser.abstraction import profiler
from deepcruiser.stream import Progress, Source
from deepcruiser.systems import load
from deepcruiser.workers import ProcessWorkers
from tests.support import toy
from tests.support.typed import run
from tests.test_stream import Echo, Item, arrays

OPTIONS: dict[str, Any] = {"batch_size": 3, "pca_share": 0.5, "components": 2}


class Stopping(toy.Reader):
    """A reader that is interrupted before the batch of this number, and counts the batches before."""

    def __init__(self, stop: int = 10**9) -> None:
        super().__init__()
        self.stop, self.batches = stop, 0

    def run(self, batch: Sequence[str]) -> list[dc.Run]:
        if self.batches == self.stop:
            raise KeyboardInterrupt
        self.batches += 1
        return super().run(batch)


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkpoint_module, "_SECONDS", 0.0)
    monkeypatch.setattr(checkpoint_module, "_TIMES", 0.0)


def source(number: int) -> Source:
    return Source(toy.Reader(), toy.texts(200, longest=12))


@pytest.mark.parametrize("exact", [False, True])
def test_interrupted_again_and_again(tmp_path: Path, exact: bool) -> None:
    """After slightly more batches than a window, in the first and in the second pass."""
    data, part = toy.texts(200, longest=12), tmp_path / "a.part"
    options = {**OPTIONS, **({"exact": True, "pca_share": None} if exact else {})}
    whole = dc.profile(toy.Reader(), data, **options)
    total = Stopping()
    dc.profile(total, data, **options)
    batches, stops, result = 0, 0, None
    while result is None and stops < 40:
        system = Stopping(24)  # five of them for the probes
        try:
            result = dc.profile(system, data, checkpoint=part, **options)
        except KeyboardInterrupt:
            stops += 1
        batches += system.batches
    assert stops > 5
    assert batches < total.batches + 15 * (stops + 1)  # of which some ten were begun in vain
    assert result == whole
    assert result.origin == whole.origin
    assert result.names == whole.names
    assert result.abstract(9).fingerprint == whole.abstract(9).fingerprint


def test_it_goes_on_with_workers_and_with_what_could_not_be_read(tmp_path: Path) -> None:
    data, part = toy.texts(200, longest=12), tmp_path / "a.part"
    with pytest.raises(KeyboardInterrupt):
        dc.profile(Stopping(60), data, checkpoint=part, **OPTIONS)
    with ProcessWorkers(source, 2) as workers:
        result = dc.profile(toy.Reader(), data, checkpoint=part, workers=workers, **OPTIONS)
    assert result == dc.profile(toy.Reader(), data, **OPTIONS)

    items = [Item(str(i), None if i % 7 == 2 else array) for i, array in enumerate(arrays(90))]
    seen: dict[str, str] = {}
    echo = Echo()
    echo.fingerprint = "echo"  # type: ignore[attr-defined]

    def interrupt(progress: Progress) -> None:
        if progress.stage == "profiling" and progress.done > 60:
            raise KeyboardInterrupt

    part.unlink()
    with pytest.raises(KeyboardInterrupt):
        dc.profile(echo, items, checkpoint=part, watch=interrupt, **OPTIONS)
    resumed = dc.profile(echo, items, checkpoint=part, watch=lambda progress: seen.update(progress.skipped), **OPTIONS)
    assert resumed == dc.profile(echo, items, **OPTIONS)
    assert sorted(seen, key=int) == [str(i) for i in range(90) if i % 7 == 2]


def test_another_call_begins_anew(tmp_path: Path) -> None:
    data, part = toy.texts(200, longest=12), tmp_path / "a.part"
    with pytest.raises(KeyboardInterrupt):
        dc.profile(Stopping(60), data, checkpoint=part, **OPTIONS)
    assert part.exists()
    other = {**OPTIONS, "seed": 1}
    assert dc.profile(toy.Reader(), data, checkpoint=part, **other) == dc.profile(toy.Reader(), data, **other)
    part.write_bytes(part.read_bytes()[:1000])
    with pytest.raises(dc.FileError, match="is not a checkpoint of DeepCruiser, or it is damaged"):
        dc.profile(toy.Reader(), data, checkpoint=part, **OPTIONS)


def test_large_data_are_fitted_on_fewer_sequences(monkeypatch: pytest.MonkeyPatch) -> None:
    data = [Item(f"utterance-{i}", array) for i, array in enumerate(arrays(400))]
    tenth = dc.profile(Echo(), data, pca_share=0.1)
    assert dc.profile(Echo(), data) == tenth
    monkeypatch.setattr(profiler, "_FEW", 10)
    monkeypatch.setattr(profiler, "_STATES", 100)  # of 3 numbers: some 300 states
    fewer = dc.profile(Echo(), data)
    assert 4 <= fewer.origin.fitted_on < tenth.origin.fitted_on / 1.5
    assert fewer.projections.states.explained == pytest.approx(tenth.projections.states.explained, abs=0.02)


INTERRUPTED = """
import os
from tests.test_checkpoint import Stopping
from tests.support import toy

system, data = Stopping(60 if os.path.exists("stop") else 10**9), toy.texts(200, longest=12)
"""


def test_the_command_resumes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("interrupted.py").write_text(INTERRUPTED)
    common = ["profile", "--system", "interrupted.py:system", "--data", "interrupted.py:data", "--batch-size", "3"]
    assert run(*common, "-o", "whole.profile").exit_code == 0
    assert [path.name for path in tmp_path.glob("*.p*")] == ["interrupted.py", "whole.profile"]
    monkeypatch.delitem(load._modules, (tmp_path / "interrupted.py").resolve())
    monkeypatch.delitem(sys.modules, "interrupted")
    Path("stop").touch()
    result = run(*common, "-o", "a.profile")
    assert result.exit_code == 130
    assert f"Interrupted. The progress is saved in a.profile.part. Resume with: deepcruiser {' '.join(common)}" in (
        " ".join(result.stderr.split())
    )
    del load._modules[(tmp_path / "interrupted.py").resolve()], sys.modules["interrupted"]
    Path("stop").unlink()
    assert run(*common, "-o", "a.profile").exit_code == 0
    assert Path("a.profile").read_bytes() == Path("whole.profile").read_bytes()
    assert not Path("a.profile.part").exists()
