"""Front ends: the features that speech networks read instead of samples."""

from deepcruiser.features.cepstrum import MFCC
from deepcruiser.features.kaldi import KaldiFeatures
from deepcruiser.features.mel import LogMel
from deepcruiser.features.spectrum import LogSpectrogram

__all__ = ["MFCC", "KaldiFeatures", "LogMel", "LogSpectrogram"]
