"""The severity of recipes, against a plain version, and what it may not depend on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pytest

from deepcruiser.audio import Audio
from deepcruiser.transformations import NAMES, AddWhiteNoise, ChangeSpeed, ChangeVolume, LowPassFilter
from deepcruiser.transformations.severity import WEIGHTS, parameters, severity, severity_of
from tests.support.sounds import tone

KINDS = [kind for kind in NAMES.values() if kind.__name__ != "AddBackgroundNoise"]


@dataclass(frozen=True)
class Louder:
    """A class of the user's that says what no change is."""

    factor: float

    RANGES: ClassVar[dict[str, Any]] = {"factor": (1, 3)}
    NO_CHANGE: ClassVar[dict[str, float]] = {"factor": 1}


def test_severity_of_known_recipes() -> None:
    assert severity(()) == severity((ChangeVolume(0),)) == 0
    assert severity((ChangeVolume(-10),)) == severity((ChangeVolume(10),)) == pytest.approx(0.2)
    assert severity((ChangeSpeed(1.15), ChangeVolume(5))) == pytest.approx(0.5 + 0.1)
    assert severity((AddWhiteNoise(30, 1),)) == 1
    assert severity((AddWhiteNoise(50, 1),)) == pytest.approx(0.1), "20 dB less are a tenth"
    sound = Audio(tone(), 16000)
    assert severity((LowPassFilter(8000),), sound) == 0
    assert severity((LowPassFilter(3400),), sound) == pytest.approx(0.2)
    assert severity(("a change without parameters",)) == 1
    assert severity((Louder(2),)) == 0.5


@pytest.mark.parametrize("kind", KINDS)
def test_several_changes_at_once_have_the_severity_that_each_has_alone(kind: Any) -> None:
    rng = np.random.default_rng(0)
    changes = [kind.draw(rng) for _ in range(30)]
    together = severity_of(kind, lambda name: np.array([getattr(change, name) for change in changes]))
    alone = [severity((change,)) for change in changes]
    assert np.broadcast_to(together, 30).tolist() == pytest.approx(alone)
    assert 0 <= min(alone) <= max(alone) <= WEIGHTS.get(kind, 1) + 1e-9, "the end of the range is the hardest"


@pytest.mark.parametrize("kind", KINDS)
def test_severity_falls_towards_no_change(kind: Any) -> None:
    change = kind.draw(np.random.default_rng(1))
    for name, none in parameters(kind).items():
        values = np.linspace(getattr(change, name), none, 9)
        others = {each: getattr(change, each) for each in parameters(kind)}

        def value(each: str, others: dict[str, Any] = others, name: str = name, values: Any = values) -> Any:
            return values if each == name else others[each]

        assert (np.diff(severity_of(kind, value)) <= 1e-12).all()
