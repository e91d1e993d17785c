"""The queue and the failing tests as a corpus."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

import deepcruiser as dc
from deepcruiser.campaign.record import CampaignRecord
from deepcruiser.findings.corpus import MANIFESTS, export_failures, export_queue
from deepcruiser.serialise import digest_of
from tests.support.toy import Reader, campaign, model


@pytest.fixture
def record(tmp_path: Path) -> CampaignRecord:
    return campaign(tmp_path / "run", runs=200, guide=(dc.BSCov, dc.BTCov))


@pytest.mark.parametrize("minimise", [(), (dc.BSCov,), (dc.BSCov, dc.BTCov)])
def test_the_queue_covers_what_the_campaign_reports(
    record: CampaignRecord, tmp_path: Path, minimise: tuple[dc.Criterion, ...]
) -> None:
    count = export_queue(tmp_path / "queue", record, minimise=minimise)
    corpus = dc.read_corpus(tmp_path / "queue" / "manifest.jsonl")
    assert len(corpus) == count
    assert count == len(record.tests) if not minimise else count < len(record.tests)
    covered = dc.cover(model(), Reader(), corpus)
    for criterion in minimise or (dc.BSCov, dc.BTCov, dc.ISCov, dc.WICov):
        assert covered[criterion] == record.coverage(criterion, queue=True).value


def test_what_a_list_says_of_each_test(record: CampaignRecord, tmp_path: Path) -> None:
    export_queue(tmp_path / "queue", record)
    lines = [json.loads(line) for line in (tmp_path / "queue" / "manifest.jsonl").read_text().splitlines()]
    corpus = dc.read_corpus(tmp_path / "queue" / "manifest.jsonl")
    for test, line, sample in zip(record.tests.values(), lines, corpus, strict=True):
        assert line["seed"] == test.seed
        assert [change["name"] for change in line["recipe"]] == [type(change).__name__ for change in test.recipe]
        assert line["expected"] == sample.text == test.reference
        assert line["sha256"] == digest_of(sample.input) == digest_of(record.inputs.make(test.seed, test.recipe))


@pytest.mark.parametrize("manifest", sorted(MANIFESTS))
def test_failing_tests_to_train_on(manifest: str, tmp_path: Path) -> None:
    """Sounds and their texts, as every form must read back."""
    record = _sounds(tmp_path / "run")
    assert len(record.failed) > 3
    count = export_failures(tmp_path / "train", record, manifest=manifest)
    name = {"kaldi": "wav.scp", "csv": "manifest.csv"}.get(manifest, "manifest.jsonl")
    corpus = dc.read_corpus(tmp_path / "train" / name)
    expected = {test.digest: test.reference for test in record.failed}
    assert len(corpus) == count == len(expected), "the same sound is not there twice"
    assert {digest_of(sample.input): sample.text for sample in corpus} == expected


def _sounds(folder: Path) -> CampaignRecord:
    class Deaf:
        """Does not hear soft sounds."""

        def run(self, batch: Sequence[dc.Audio]) -> list[dc.Run]:
            return [dc.Run("open, the door" if audio.rms > 0.25 else "") for audio in batch]

    class Seed:
        id, text = "a seed", "open, the door"
        input = dc.Audio(np.sin(np.arange(8000) / 9).astype(np.float32) / 2, 8000)

    return dc.fuzz(Deaf(), None, [Seed()], folder=folder, guide="none", runs=60, workers=0)


def test_wrong_use(record: CampaignRecord, tmp_path: Path) -> None:
    with pytest.raises(dc.InputError, match="no manifest 'xml': choose from csv, jsonl, kaldi, nemo"):
        export_failures(tmp_path / "train", record, manifest="xml")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine.txt").write_text("mine")
    with pytest.raises(dc.FileError, match="it already exists; use a new folder"):
        export_queue(tmp_path / "full", record)
    record.inputs.seeds._items.clear()
    with pytest.raises(dc.InputError, match="no seed"):
        export_queue(tmp_path / "queue", record)
    assert not (tmp_path / "queue").exists(), "whole or not at all"
    assert [path.name for path in tmp_path.glob(".*")] == []
