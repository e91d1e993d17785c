"""Online regression: a linear or a logistic model that learns from one example at a time, by Newton's method.

After each example the weights are those that fit all examples so far (linear), or close to them (logistic), with a
penalty on large weights. There is no rate to choose, and tens of examples are enough to be of use.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]


class Regression:
    """Predicts a number of its inputs, or, `logistic`, the logarithm of the odds of a label between 0 and 1.

    `penalty` is what a weight of 1 costs, in examples; the first input is 1, and its weight starts at `bias`.
    """

    def __init__(self, width: int, *, penalty: float, bias: float = 0.0, logistic: bool = False) -> None:
        self.weights = np.zeros(width)
        self.weights[0] = bias
        #: The inverse of the matrix of second derivatives.
        self._inverse = np.eye(width) / penalty
        self._logistic = logistic

    def predict(self, inputs: Floats) -> Floats:
        """The predictions for inputs [examples, width]."""
        return np.asarray(inputs @ self.weights)

    def learn(self, example: Floats, label: float) -> None:
        """Take an example in."""
        prediction, curvature = float(example @ self.weights), 1.0
        if self._logistic:
            prediction = 1 / (1 + float(np.exp(-np.clip(prediction, -30, 30))))
            curvature = max(prediction * (1 - prediction), 1e-3)
        direction = self._inverse @ example
        step = direction / (1 / curvature + float(example @ direction))
        self._inverse -= np.outer(step, direction)
        self.weights += step * ((label - prediction) / curvature)
