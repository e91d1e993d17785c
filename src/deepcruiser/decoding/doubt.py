"""How unsure a network is of its answer, from its scores.

    scores [steps, classes]:  doubt = mean over the steps of -log(best probability of the step)
    scores [classes]:         doubt = -log(best probability)

0 means certain; log(classes) means that all classes look alike.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from deepcruiser.decoding.greedy import as_array
from deepcruiser.errors import InputError

#: Rows of non-negative numbers that sum to 1 within this tolerance are probabilities.
_TOLERANCE = 1e-2


def doubt_of(scores: Any) -> float | None:
    """The doubt of [steps, classes] or [classes] scores; None where there are no steps, or NaN or infinite values.

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


def log_probabilities(scores: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The logarithms of [..., classes] scores that are probabilities, their logarithms or logits."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        if scores.min(initial=0) < 0 or np.abs(scores.sum(-1) - 1).max(initial=0) > _TOLERANCE:
            scores = scores - scores.max(-1, keepdims=True)
            return np.asarray(scores - np.log(np.exp(scores).sum(-1, keepdims=True)))
        return np.asarray(np.minimum(0, np.log(scores)))
