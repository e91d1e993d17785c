"""How near a network's scores are to an answer: what it would cost to give that answer instead of its own.

scores [steps, classes] and a text:   CTC loss of the text, divided by its number of characters
scores [classes] and a label:         -log(probability of the label)
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from deepcruiser.decoding.doubt import is_scores, log_probabilities
from deepcruiser.decoding.greedy import as_array, symbols
from deepcruiser.trace import Scores

#: The least log-probability that is told from others.
_LEAST = -60.0


def scores_of(output: Any, classes: Sequence[str], *, blank: int | None) -> Scores | None:
    """An output as scores of these classes; None if it has no such form.

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
    """The loss of an answer by the scores; None if it is not one that they can give."""
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
