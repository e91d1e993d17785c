"""What a network's scores say about an answer: how unsure the network is of its own, and how near it is to another.

    doubt of scores [steps, classes]:               mean over the steps of -log(best probability of the step)
    doubt of scores [classes]:                      -log(best probability)
    loss of a text, from scores [steps, classes]:   CTC loss of the text, divided by its number of characters
    loss of a label, from scores [classes]:         -log(probability of the label)

A doubt of 0 means certain; log(classes) means that all classes look alike.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from deepcruiser.errors import InputError
from deepcruiser.trace import Scores, is_tensor

Array = npt.NDArray[Any]

#: Rows of non-negative numbers that sum to 1 within this tolerance are probabilities.
_TOLERANCE = 1e-2


def doubt_of(scores: Any) -> float | None:
    """The doubt of [steps, classes] or [classes] scores; None if there are no steps, or NaN or infinite values.

    `scores` may be probabilities, their logarithms or logits.
    """
    table = as_array(scores)
    if table.ndim not in (1, 2) or table.shape[-1] == 0:
        raise InputError(f"scores must be [steps, classes] or [classes], not {list(table.shape)}")
    if len(table) == 0:
        return None
    doubt = float(-log_probabilities(table).max(-1).mean())
    return doubt if math.isfinite(doubt) else None


def is_scores(output: Any) -> bool:
    """Whether an output has the form of scores: floating-point numbers [steps, classes] or [classes]."""
    shape = tuple(getattr(output, "shape", ()))
    return "float" in str(getattr(output, "dtype", "")) and len(shape) in (1, 2) and shape[-1] > 1


def as_array(scores: Any) -> npt.NDArray[np.float64]:
    """Scores as an array, wherever they are."""
    return np.asarray(scores.detach().cpu().double().numpy() if is_tensor(scores) else scores, dtype=np.float64)


def symbols(alphabet: Sequence[str], classes: int, blank: int) -> tuple[Array, int]:
    """A symbol for every class, empty for the blank, and the non-negative number of the blank."""
    if not -classes <= blank < classes:
        raise InputError(f"blank is class {blank}, but there are {classes} classes")
    blank %= classes
    names = list(alphabet)
    if len(names) == classes - 1:
        names.insert(blank, "")
    elif len(names) != classes:
        raise InputError(
            f"an alphabet of {len(names)} symbols does not fit scores of {classes} classes; "
            f"it must have {classes - 1}, or {classes} with one for the blank"
        )
    names[blank] = ""
    return np.array(names, dtype=object), blank


def log_probabilities(scores: Array) -> Array:
    """The logarithms of [..., classes] scores that are probabilities, their logarithms or logits."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        if scores.min(initial=0) < 0 or np.abs(scores.sum(-1) - 1).max(initial=0) > _TOLERANCE:
            scores = scores - scores.max(-1, keepdims=True)
            return np.asarray(scores - np.log(np.exp(scores).sum(-1, keepdims=True)))
        return np.asarray(np.minimum(0, np.log(scores)))


#: Smaller log-probabilities are raised to this.
_LEAST = -60.0


def scores_of(output: Any, classes: Sequence[str], *, blank: int | None) -> Scores | None:
    """An output as scores of these classes; None if it does not have that form.

    The output may hold probabilities, their logarithms or logits. With a `blank`, `classes` may leave its symbol out.
    """
    if not is_scores(output):
        return None
    table = np.maximum(log_probabilities(as_array(output)), _LEAST).astype(np.float16)
    if blank is None:
        return Scores(table, tuple(classes)) if len(classes) == table.shape[-1] else None
    names, blank = symbols(classes, table.shape[-1], blank)
    return Scores(table, tuple(names), blank)


def loss_of(scores: Scores, answer: Any) -> float | None:
    """The loss of an answer by the scores; None if the scores cannot express it."""
    values, answer = scores.values.astype(np.float64), str(answer)
    if scores.blank is None:
        label = scores.classes.index(answer) if values.ndim == 1 and answer in scores.classes else None
        return None if label is None else -float(values[label])
    numbers = {symbol: number for number, symbol in enumerate(scores.classes) if number != scores.blank}
    if values.ndim != 2 or not answer or not numbers.keys() >= set(answer):
        return None
    loss = _ctc(values, [numbers[symbol] for symbol in answer], scores.blank)
    return loss / len(answer) if math.isfinite(loss) else None


def _ctc(values: Any, target: list[int], blank: int) -> float:
    import torch

    return float(
        torch.nn.functional.ctc_loss(
            torch.from_numpy(values)[:, None],
            torch.tensor([target]),
            torch.tensor([len(values)]),
            torch.tensor([len(target)]),
            blank=blank,
            reduction="none",
        )
    )
