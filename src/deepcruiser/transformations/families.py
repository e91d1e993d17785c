"""The families of transformations, and which of them may follow those that were applied."""

from __future__ import annotations

from collections.abc import Iterable

from deepcruiser.errors import InputError
from deepcruiser.transformations.clearness import AddWhiteNoise, ExtractHarmonic
from deepcruiser.transformations.extra import AddBackgroundNoise, Reverb, Telephone
from deepcruiser.transformations.speed import ChangeSpeed, PitchShift
from deepcruiser.transformations.transformation import Transformation
from deepcruiser.transformations.unaffected import DRC, Trim
from deepcruiser.transformations.volume import ChangeVolume, HighPassFilter, LowPassFilter

Kinds = tuple[type[Transformation], ...]

#: The paper's VRT, SRT, CRT and UAT.
VOLUME: Kinds = (ChangeVolume, LowPassFilter, HighPassFilter)
SPEED: Kinds = (PitchShift, ChangeSpeed)
CLEARNESS: Kinds = (AddWhiteNoise, ExtractHarmonic)
UNAFFECTED: Kinds = (DRC, Trim)

#: All of the paper's, which is what a campaign uses unless told otherwise...
PAPER: Kinds = VOLUME + SPEED + CLEARNESS + UNAFFECTED
#: ...and those beyond it.
EXTRA: Kinds = (Telephone, AddBackgroundNoise, Reverb)

#: The families S of the rule, each with the extra ones that change the same thing.
FAMILIES: tuple[Kinds, ...] = ((*VOLUME, Telephone), SPEED, (*CLEARNESS, AddBackgroundNoise, Reverb))


def allowed(applied: Iterable[Transformation | type[Transformation]], available: Iterable[type] = PAPER) -> Kinds:
    """The kinds t that may follow, given those applied since the seed, T: of the available ones, in their order,

        { t in S u UNAFFECTED | S a family with ({t} u S) n T = {} }

    So volume, speed and clearness change at most once each, and DRC and Trim come at most once, while a family is left.
    When the result is empty, the test is spent.
    """
    T = {_known(kind if isinstance(kind, type) else type(kind)) for kind in applied}
    left = [S for S in FAMILIES if T.isdisjoint(S)]
    return tuple(t for t in map(_known, available) if t not in T and any(t in S + UNAFFECTED for S in left))


def _known(kind: type) -> type[Transformation]:
    if kind not in PAPER + EXTRA:
        names = ", ".join(known.__name__ for known in PAPER + EXTRA)
        raise InputError(f"{kind.__name__} is in no family of transformations; those known are: {names}")
    return kind
