"""Inputs with their right answers, in whatever shape the data come: pairs, dictionaries, data sets, tables, files."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from deepcruiser.audio import AUDIO_SUFFIXES, Audio
from deepcruiser.corpora.corpus import FILE_COLUMNS, INPUT_COLUMNS, LABEL_COLUMNS, TEXT_COLUMNS, Corpus, Sample
from deepcruiser.errors import InputError
from deepcruiser.trace import is_tensor

#: The keys of a dictionary that may hold the input, and those for the right answer; the first one counts.
INPUTS = ("input", "audio", "audio_filepath", *FILE_COLUMNS, *INPUT_COLUMNS)
LABELS = (*LABEL_COLUMNS, *TEXT_COLUMNS)


@dataclass(frozen=True, slots=True)
class Labelled:
    """An input with its id and its right answer, which is a text, a number, or a list, dictionary or array of them."""

    id: str
    input: Any
    text: Any = None


@dataclass(frozen=True, slots=True)
class _Unread:
    """An item of a data set, read each time it is needed."""

    id: str
    data: Samples
    position: int

    @property
    def input(self) -> Any:
        return self.data.read(self.position).input

    @property
    def text(self) -> Any:
        return self.data.read(self.position).text


class Samples(Sequence[Any]):
    """The items of a data set that is read item by item, such as one of PyTorch or Hugging Face."""

    def __init__(self, data: Any, fields: tuple[Any, Any]) -> None:
        self._data, self._fields = data, fields

    def __len__(self) -> int:
        return len(self._data)

    def __getitem__(self, index: Any) -> Any:
        positions = range(len(self))[index]
        if isinstance(positions, range):
            return [self[position] for position in positions]
        return _Unread(str(positions), self, positions)

    def read(self, position: int) -> Labelled | Sample:
        """The input and its right answer."""
        item = _labelled(self._data[position], str(position), self._fields)
        return item if isinstance(item, Labelled | Sample) else Labelled(str(position), item)


def samples(data: Any, *, input: Any = None, label: Any = None) -> Iterable[Any]:  # noqa: A002
    """The inputs of some data with their right answers, in the form that `profile`, `cover` and `fuzz` take.

    `data` is a path, as for `read_corpus`, a DataFrame of pandas, a data set of PyTorch or Hugging Face, a DataLoader,
    or a list. Items are pairs (input, right answer), dictionaries such as {"text": ..., "label": ...}, or inputs alone.
    `input` and `label` name the fields (for tuples: their numbers) if they do not have the usual names.
    """
    fields = input, label
    if isinstance(data, str | os.PathLike):
        from deepcruiser.corpora.read import read_corpus

        return read_corpus(data)
    if isinstance(data, Corpus | Samples):
        return data
    if hasattr(data, "dataset") and hasattr(data, "collate_fn"):  # a DataLoader, which makes new batches
        order = type(data.sampler).__name__
        if order not in ("SequentialSampler", "RandomSampler"):
            raise InputError(f"the DataLoader picks items by a {order}: give its data set, or a Subset of it, instead")
        return samples(data.dataset, input=input, label=label)
    if hasattr(data, "columns") and hasattr(data, "itertuples"):
        names, rows = [str(name) for name in data.columns], data.itertuples(index=False, name=None)
        ids = map(str, data.index if data.index.is_unique else range(len(data)))
        return [
            _labelled(dict(zip(names, row, strict=True)), name, fields) for name, row in zip(ids, rows, strict=True)
        ]
    if isinstance(data, Mapping):
        raise InputError(
            f"the data are a {type(data).__name__} of {', '.join(map(str, data))}: give one of them, a list"
        )
    if isinstance(data, list | tuple):
        return [_labelled(item, str(position), fields) for position, item in enumerate(data)]
    if (
        isinstance(data, np.ndarray)
        or is_tensor(data)
        or not (hasattr(data, "__len__") and hasattr(data, "__getitem__"))
    ):
        return data if isinstance(data, Iterable) else _refuse(data)
    return data if len(data) and hasattr(data[0], "input") else Samples(data, fields)


def _refuse(data: Any) -> Iterable[Any]:
    raise InputError(
        f"the data are of the type {type(data).__name__}: a path, a list, a DataFrame, or a data set with a length is "
        "needed"
    )


def _labelled(item: Any, name: str, fields: tuple[Any, Any]) -> Any:
    """An item that contains its right answer, as `Labelled`; any other item unchanged."""
    if hasattr(type(item), "input") or "input" in getattr(item, "__dict__", ()):
        return item
    chosen, label = fields
    if isinstance(item, Mapping):
        chosen = next((key for key in INPUTS if key in item), None) if chosen is None else chosen
        if chosen is None:
            return item
        label = next((key for key in LABELS if key in item and key != chosen), None) if label is None else label
        name = str(item.get("id", name))
    elif isinstance(item, tuple) and (len(item) == 2 or chosen is not None):
        chosen, label = chosen or 0, 1 if label is None else label
    elif chosen is None and label is None:
        return item
    value, right = (None if key is None else _field(item, name, key) for key in (chosen, label))
    if isinstance(value, Path) or (isinstance(value, str) and value.lower().endswith(AUDIO_SUFFIXES)):
        return Sample(name, Path(value), plain(right))
    return Labelled(name, _input(value), plain(right))


def _field(item: Any, name: str, key: Any) -> Any:
    try:
        return item[key]
    except (KeyError, IndexError, TypeError):
        has = ", ".join(map(str, item)) if isinstance(item, Mapping) else f"{type(item).__name__} as a whole"
        raise InputError(f"the sample {name!r} has no field {key!r}, only: {has}") from None


def _input(value: Any) -> Any:
    """An input; sounds as Hugging Face decodes them become `Audio`."""
    if hasattr(value, "get_all_samples") or (isinstance(value, Mapping) and {"array", "sampling_rate"} <= set(value)):
        return Audio(np.asarray(value["array"]), int(value["sampling_rate"]))
    return value


def plain(value: Any) -> Any:
    """A right answer as plain Python: numbers of numpy, PyTorch and pandas as numbers, missing ones as None."""
    if is_tensor(value):
        value = value.detach().cpu().numpy()
    if isinstance(value, np.generic) or (isinstance(value, np.ndarray) and value.ndim == 0):
        value = value.item()
    return None if type(value).__name__ == "NAType" or (isinstance(value, float) and value != value) else value
