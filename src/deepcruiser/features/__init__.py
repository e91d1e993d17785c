"""Front ends: what networks for speech read instead of samples."""

from deepcruiser.features.cepstrum import MFCC
from deepcruiser.features.mel import LogMel
from deepcruiser.features.spectrum import LogSpectrogram

__all__ = ["MFCC", "LogMel", "LogSpectrogram"]
