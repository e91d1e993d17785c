"""The most probable symbol of every step (connectionist temporal classification)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from torch import Tensor

from deepcruiser.decoding.scores import Array, symbols
from deepcruiser.errors import InputError


def ctc_greedy(scores: Array | Tensor, alphabet: Sequence[str], *, blank: int, lengths: Any = None) -> Any:
    """The text of [steps, classes], or a list of texts of [batch, steps, classes], from the best class of every step.

    `scores` may be probabilities, their logarithms or logits. `blank` is the class that says nothing (negative: from
    the end); `alphabet` has the symbols of the other classes in their order, or one for each class. `lengths` are the
    steps of each row that are not padding. Spaces at the ends and doubled ones are dropped.
    """
    if scores.ndim not in (2, 3):
        raise InputError(f"scores must be [steps, classes] or [batch, steps, classes], not {tuple(scores.shape)}")
    names, blank = symbols(alphabet, scores.shape[-1], blank)
    if isinstance(scores, Tensor):
        best: Array = scores.detach().argmax(-1).cpu().numpy() if scores.shape[-2] else empty(scores)
    else:
        best = scores.argmax(-1) if scores.shape[-2] else empty(scores)
    rows = best[None] if scores.ndim == 2 else best
    kept = rows != blank
    kept[:, 1:] &= rows[:, 1:] != rows[:, :-1]
    if lengths is not None:
        counts = lengths.cpu().numpy() if isinstance(lengths, Tensor) else np.atleast_1d(np.asarray(lengths))
        if counts.shape != (len(rows),) or counts.min(initial=0) < 0 or counts.max(initial=0) > rows.shape[1]:
            raise InputError(
                f"lengths must be {len(rows)} numbers from 0 to {rows.shape[1]}, the steps of scores, not {lengths}"
            )
        kept &= np.arange(rows.shape[1]) < counts[:, None]
    texts = [tidy("".join(names[row[keep]])) for row, keep in zip(rows, kept, strict=True)]
    return texts[0] if scores.ndim == 2 else texts


def tidy(text: str) -> str:
    """The text with single spaces between its words and none around them."""
    return " ".join(part for part in text.split(" ") if part)


def empty(scores: Array | Tensor) -> Array:
    return np.zeros(tuple(scores.shape[:-1]), dtype=np.int64)
