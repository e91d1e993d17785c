"""The families of transformations, and the rule for which transformations may follow those applied."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from deepcruiser.errors import InputError
from deepcruiser.transformations.base import Transformation
from deepcruiser.transformations.beyond_paper import AddBackgroundNoise, Reverb, Telephone
from deepcruiser.transformations.clearness import AddWhiteNoise, ExtractHarmonic
from deepcruiser.transformations.speed import ChangeSpeed, PitchShift
from deepcruiser.transformations.unaffected import DRC, Trim
from deepcruiser.transformations.volume import ChangeVolume, HighPassFilter, LowPassFilter

Kinds = tuple[type[Transformation], ...]

#: The paper's VRT, SRT, CRT and UAT.
VOLUME: Kinds = (ChangeVolume, LowPassFilter, HighPassFilter)
SPEED: Kinds = (PitchShift, ChangeSpeed)
CLEARNESS: Kinds = (AddWhiteNoise, ExtractHarmonic)
UNAFFECTED: Kinds = (DRC, Trim)

#: The transformations of the paper, which a campaign uses by default.
PAPER: Kinds = VOLUME + SPEED + CLEARNESS + UNAFFECTED
#: The transformations beyond the paper.
EXTRA: Kinds = (Telephone, AddBackgroundNoise, Reverb)

#: The families S of the rule, each with the extra transformations that change the same property.
FAMILIES: tuple[Kinds, ...] = ((*VOLUME, Telephone), SPEED, (*CLEARNESS, AddBackgroundNoise, Reverb))

#: Tasks whose right answer a transformation may change, so that a failure may be a false alarm.
NOT_FOR: Mapping[str, tuple[str, ...]] = {
    "ChangeVolume": ("loudness",),
    "LowPassFilter": ("enhancement of full bandwidth",),
    "PitchShift": ("speaker recognition", "emotion", "music"),
    "ChangeSpeed": ("emotion", "music", "enhancement"),
    "ExtractHarmonic": ("music", "enhancement"),
    "DRC": ("loudness", "emotion", "enhancement"),
    "Trim": ("enhancement",),
    "Reverb": ("enhancement",),
    "AddWhiteNoise": ("noise level",),
    "AddBackgroundNoise": ("noise level", "sound events"),
    "Typos": ("single words", "spelling"),
    "SwapLetters": ("single words", "spelling"),
    "DropLetters": ("single words", "spelling"),
    "ChangeCase": ("names",),
    "FillerWords": ("single words", "formality"),
    "DropPunctuation": ("punctuation",),
    "Scale": ("level",),
    "Offset": ("level",),
    "TimeWarp": ("rate",),
    "DropGap": ("faults of sensors",),
    "DropSamples": ("faults of sensors",),
}


def allowed(
    applied: Iterable[Any],
    available: Iterable[type] = PAPER,
    *,
    families: Iterable[tuple[type, ...]] = FAMILIES,
    unaffected: tuple[type, ...] = UNAFFECTED,
) -> tuple[Any, ...]:
    """The available kinds t that may follow the transformations T applied since the seed, in their order:

        { t in S u UNAFFECTED | S a family with ({t} u S) n T = {} }

    Volume, speed and clearness change at most once each. DRC and Trim are applied at most once each, as long as a
    family is left. If the result is empty, the test is spent. Other types of input have other families and this rule.
    """
    families = tuple(families)
    known = {kind for S in families for kind in S} | set(unaffected)
    T = {_known(kind if isinstance(kind, type) else type(kind), known) for kind in applied}
    left = [S for S in families if T.isdisjoint(S)]
    return tuple(t for t in available if _known(t, known) not in T and any(t in S or t in unaffected for S in left))


def _known(kind: type, known: set[type]) -> type:
    if kind not in known:
        names = ", ".join(sorted(k.__name__ for k in known))
        raise InputError(f"{kind.__name__} is in no family of transformations; the families contain: {names}")
    return kind
