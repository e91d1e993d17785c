"""The example that tests a detector which somebody else trained."""

from __future__ import annotations

from pathlib import Path

import pytest

import deepcruiser as dc
from tests.test_runnable_examples import numbers, run

pytest.importorskip("onnxruntime")


@pytest.mark.shared
@pytest.mark.parametrize("name", ["silero_vad.onnx", "silero_vad_16k_op15.onnx"])
def test_silero(shared: Path, tmp_path: Path, name: str) -> None:
    speech = shared / "speech"
    message = run(
        "silero",
        *(shared / "models" / "silero-vad" / name, speech / "common-voice", "--limit", 16, "--runs", 32),
        *("--noise", speech / "noise", "--spans-below", 0.97, "--output", tmp_path / "run"),
    )
    runs, failed = numbers(r"(\d+) runs, (\d+) failed", message)
    assert runs == 32
    assert failed > 0, "noise moves the ends of what it takes for speech"
    assert numbers(r"(\d+) of (\d+) failing tests replay exactly", message) == (failed, failed)
    assert len(dc.CampaignRecord.open(tmp_path / "run").failed) == failed
