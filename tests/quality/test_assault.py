"""A short assault, and full disks; `python -m tests.quality.assault --cases 50000` is the long one."""

from __future__ import annotations

from pathlib import Path

import pytest

import deepcruiser as dc
from tests.quality.assault import BAD, assault, table
from tests.quality.assault_behaviour import full_disk
from tests.support import toy


def test_a_short_assault_finds_nothing() -> None:
    results = list(assault(2000, seconds=120))
    bad = [result for result in results if result[2] in BAD]
    assert not bad, f"{bad[:3]}\n{table(results)}"
    assert len(results) > 200
    assert {verdict for _, _, verdict, _ in results} >= {"right", "clear error", "unknowable"}


def test_a_disk_that_is_full_at_every_tenth_write(tmp_path: Path) -> None:
    """For a file or the database: the resumed campaign equals the undisturbed one."""
    whole = toy.campaign(tmp_path / "whole", runs=64)
    assert len(whole.failed) > 3
    full = 0
    for at in range(1, 400, 10):
        folder = tmp_path / str(at)
        try:
            with full_disk(at):
                toy.campaign(folder, runs=64)
        except dc.DeepCruiserError as error:
            full += "disk" in str(error) or "space" in str(error)
        else:
            break
        toy.campaign(folder, runs=64)
        assert toy.rows(folder) == toy.rows(tmp_path / "whole")
        names = [sorted(path.name for path in (each / "failed").iterdir()) for each in (folder, tmp_path / "whole")]
        assert names[0] == names[1]
    assert full > 5
    with pytest.raises(dc.FileError, match="no space left"), full_disk(1):
        toy.model().save(tmp_path / "a.model")
    assert not list(tmp_path.glob("*.model")) + list(tmp_path.glob(".a.model*"))
