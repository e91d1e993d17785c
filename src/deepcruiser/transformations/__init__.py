"""Metamorphic transformations of audio, which change the sound but not the words; their families and limits.

    change = AddWhiteNoise.draw(np.random.default_rng(0))     # AddWhiteNoise(snr_db=39.55, seed=2195314465)
    mutant = change(audio)                                    # the same samples every time, in any process
    allowed([change])                                         # what may follow it

docs/transformations.md describes the sound of each and gives the reasons for its range. Transformations of numeric
series and of text are in `series` and `text`.
"""

from deepcruiser.transformations.base import Transformation
from deepcruiser.transformations.beyond_paper import AddBackgroundNoise, Reverb, Telephone
from deepcruiser.transformations.clearness import AddWhiteNoise, ExtractHarmonic
from deepcruiser.transformations.families import CLEARNESS, EXTRA, FAMILIES, PAPER, SPEED, UNAFFECTED, VOLUME, allowed
from deepcruiser.transformations.recipe import NAMES, apply, from_dict, to_dict
from deepcruiser.transformations.speed import ChangeSpeed, PitchShift
from deepcruiser.transformations.unaffected import DRC, Trim
from deepcruiser.transformations.validity import Validity
from deepcruiser.transformations.volume import ChangeVolume, HighPassFilter, LowPassFilter

__all__ = [
    "CLEARNESS",
    "DRC",
    "EXTRA",
    "FAMILIES",
    "NAMES",
    "PAPER",
    "SPEED",
    "UNAFFECTED",
    "VOLUME",
    "AddBackgroundNoise",
    "AddWhiteNoise",
    "ChangeSpeed",
    "ChangeVolume",
    "ExtractHarmonic",
    "HighPassFilter",
    "LowPassFilter",
    "PitchShift",
    "Reverb",
    "Telephone",
    "Transformation",
    "Trim",
    "Validity",
    "allowed",
    "apply",
    "from_dict",
    "to_dict",
]
