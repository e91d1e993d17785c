"""Regressions that learn from one example at a time."""

from __future__ import annotations

import numpy as np

from deepcruiser.campaign.drawing import Floats


class Regression:
    """A linear or a logistic model that learns from one example at a time, by Newton's method.

    It predicts a number, or, if `logistic`, the logarithm of the odds of a label between 0 and 1. After each example
    the weights are those that fit all examples so far (linear), or close to them (logistic), with a penalty on large
    weights. There is no learning rate to choose, and tens of examples are enough to be of use.

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
        prediction, curvature = float(example.dot(self.weights)), 1.0
        if self._logistic:
            prediction = 1 / (1 + float(np.exp(-min(max(prediction, -30.0), 30.0))))
            curvature = max(prediction * (1 - prediction), 1e-3)
        direction = self._inverse.dot(example)  # faster than @ for so few numbers, and the same
        step = direction / (1 / curvature + float(example.dot(direction)))
        self._inverse -= step[:, None] * direction
        self.weights += step * ((label - prediction) / curvature)
