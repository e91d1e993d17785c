"""The same labelled data in every shape."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import deepcruiser as dc
from deepcruiser.corpora.samples import Samples, plain
from tests.support.corpora import sound, text
from tests.support.toy import MUTATIONS, Reader

PAIRS = [("(()", 1), ("()", 0), ("[ab]", 0), ("((", 1)]


class TorchLike(torch.utils.data.Dataset[Any]):
    """A data set that counts how often its items are read."""

    def __init__(self, items: Sequence[Any]) -> None:
        self.items, self.reads = items, 0

    def __len__(self) -> int:
        return len(self.items)

    def __getitem__(self, index: int) -> Any:
        self.reads += 1
        return self.items[index]


def frame(folder: Path) -> Any:
    pandas = pytest.importorskip("pandas")
    return pandas.DataFrame({"text": [one for one, _ in PAIRS], "label": [right for _, right in PAIRS]})


def rows(folder: Path) -> list[dict[str, Any]]:
    return [{"sentence": one, "idx": 0, "label": right} for one, right in PAIRS]


def jsonl(folder: Path) -> Path:
    lines = [json.dumps({"text": one, "label": right}) for one, right in PAIRS]
    return text(folder / "tests.jsonl", "\n".join(lines))


def table(folder: Path) -> str:
    return str(
        text(folder / "tests.csv", "id,Text,label\n" + "".join(f"n-{one},{one},{right}\n" for one, right in PAIRS))
    )


SHAPES: dict[str, Callable[[Path], Any]] = {
    "pairs": lambda folder: PAIRS,
    "dictionaries": rows,
    "a data set of tuples": lambda folder: TorchLike([(one, torch.tensor(right)) for one, right in PAIRS]),
    "a data set of dictionaries": lambda folder: TorchLike(rows(folder)),
    "a loader": lambda folder: torch.utils.data.DataLoader(TorchLike(PAIRS), batch_size=3, shuffle=True),
    "a frame": frame,
    "lines of JSON": jsonl,
    "a table": table,
    "samples already": lambda folder: dc.samples(TorchLike(PAIRS)),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_every_shape_gives_the_same_samples(shape: str, tmp_path: Path) -> None:
    read = list(dc.samples(SHAPES[shape](tmp_path)))
    assert [(one.input, int(one.text)) for one in read] == PAIRS
    assert len({one.id for one in read}) == len(PAIRS)


@pytest.mark.parametrize("shape", ["pairs", "a data set of tuples", "a frame", "lines of JSON"])
def test_profile_cover_and_fuzz_take_them(shape: str, tmp_path: Path) -> None:
    """Wrong integer labels are failures of the seeds: they are not ignored."""
    data, system = SHAPES[shape](tmp_path), Numbers()
    model = dc.profile(system, data).abstract(partitions=3)
    assert dc.cover(model, system, data)["BSCov"] == 1
    options: dict[str, Any] = {"oracle": dc.Disagreement(), "mutations": MUTATIONS, "runs": 16, "workers": 0}
    record = dc.fuzz(system, model, data, folder=tmp_path / "run", **options)
    right = [int(run.output) == label for run, (_, label) in zip(system.run([t for t, _ in PAIRS]), PAIRS, strict=True)]
    assert 0 < sum(right) < len(right)
    assert [seed.outcome == "kept" for seed in record.seeds] == right
    assert [seed.reference for seed in record.seeds] == [label for _, label in PAIRS]


class Numbers(Reader):
    """The same network, with numbers as labels."""

    def run(self, batch: Sequence[str]) -> list[dc.Run]:
        return [dc.Run(int(run.output == "high"), run.trace) for run in super().run(batch)]


def test_a_data_set_is_read_when_its_items_are_needed() -> None:
    data = TorchLike(PAIRS)
    read = list(dc.samples(data))
    assert data.reads <= 1
    assert read[2].input == "[ab]"
    assert isinstance(dc.samples(data), Samples)
    assert [one.id for one in dc.samples(data)[1:3]] == ["1", "2"]  # type: ignore[index]


def test_sounds(tmp_path: Path) -> None:
    """As Hugging Face has them, decoded; as paths; and the transcripts under their usual names."""
    decoded = {"path": "a.mp3", "array": np.zeros(10), "sampling_rate": 8000}
    named = str(sound(tmp_path / "a.wav"))
    for audio, length in ((decoded, 10), (named, 1600), (Path(named), 1600)):
        (sample,) = dc.samples([{"id": "x", "audio": audio, "speaker": 3, "sentence": "yes"}])
        assert (sample.id, sample.text, len(sample.input)) == ("x", "yes", length)
    (sample,) = dc.samples([(named, "no")])
    assert (sample.text, len(sample.input)) == ("no", 1600)
    (labelled,) = dc.read_corpus(text(tmp_path / "words.csv", "file,label\na.wav,yes\n"))
    assert (labelled.text, len(labelled.input)) == ("yes", 1600)


def test_inputs_alone_stay_as_they_are(tmp_path: Path) -> None:
    arrays = np.zeros((3, 5, 2))
    fields = {"input_ids": [1], "mask": [1]}
    assert list(dc.samples(["a", fields, (1, 2, 3)])) == ["a", fields, (1, 2, 3)]
    assert dc.samples(arrays) is arrays
    assert [one.input for one in dc.samples(TorchLike(list(arrays)))] == [pytest.approx(array) for array in arrays]
    lines = dc.read_corpus(text(tmp_path / "lines.txt", "one\n\ntwo words\n"))
    assert [(one.id, one.input, one.text) for one in lines] == [("1", "one", None), ("3", "two words", None)]


def test_fields_by_name() -> None:
    data = [{"review": "good", "stars": 5, "label": 0}]
    (named,) = dc.samples(data, input="review", label="stars")
    (third,) = dc.samples([("wave", 16_000, "hello")], input=0, label=2)
    assert (named.input, named.text, third.input, third.text) == ("good", 5, "wave", "hello")
    with pytest.raises(dc.InputError, match=r"the sample '0' has no field 'star', only: review, stars, label"):
        dc.samples(data, input="review", label="star")


@pytest.mark.parametrize(
    ("value", "expected"),
    [(np.int64(3), 3), (torch.tensor(2), 2), (np.float32(0.5), 0.5), (float("nan"), None), (True, True), ([1], [1])],
)
def test_labels_become_plain(value: Any, expected: Any) -> None:
    assert plain(value) == expected
    assert type(plain(value)) is type(expected)


def endless() -> Iterator[int]:
    yield from ()


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"train": [], "test": []}, "the data are a dict of train, test: give one of them"),
        (3, "the data are of the type int: a path, a list, a DataFrame, or a data set with a length"),
        (endless(), "generator has no length"),
        ("nowhere.csv", "there is no corpus at"),
        (
            torch.utils.data.DataLoader(TorchLike(PAIRS), sampler=torch.utils.data.SubsetRandomSampler([1])),
            "the DataLoader picks items by a SubsetRandomSampler: give its data set",
        ),
    ],
)
def test_data_that_cannot_be_used(data: Any, message: str) -> None:
    with pytest.raises(dc.DeepCruiserError, match=message):
        dc.profile(Reader(), data)


def test_a_label_that_the_oracle_cannot_compare(tmp_path: Path) -> None:
    system = Reader()
    model = dc.profile(system, PAIRS).abstract(partitions=3)
    says = r"the seed '0' cannot be judged: an error rate compares texts, but the right answer is 1, of the type int: "
    with pytest.raises(dc.InputError, match=says + r"give a text, or use Disagreement \(--disagreement\)"):
        dc.fuzz(system, model, PAIRS, folder=tmp_path, mutations=MUTATIONS, workers=0)
