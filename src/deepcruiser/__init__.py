"""Coverage and guided testing for recurrent neural networks: what did the state go through?"""

from deepcruiser.abstraction.export import export
from deepcruiser.abstraction.fitting import Fit, Projections
from deepcruiser.abstraction.model import AbstractModel
from deepcruiser.abstraction.profile import Profile
from deepcruiser.abstraction.profiling import fit, profile
from deepcruiser.audio import Audio
from deepcruiser.coverage import Coverage, CoverageReport, cover
from deepcruiser.criteria import BSCov, BTCov, Criterion, ISCov, SBCov, WICov, criterion, literal_iscov
from deepcruiser.datasets import Corpus, Sample, read_corpus
from deepcruiser.errors import DeepCruiserError, FileError, InputError, MismatchError
from deepcruiser.systems import load_system
from deepcruiser.systems.torch import TorchSystem
from deepcruiser.trace import Run, System, Trace

__all__ = [
    "AbstractModel",
    "Audio",
    "BSCov",
    "BTCov",
    "Corpus",
    "Coverage",
    "CoverageReport",
    "Criterion",
    "DeepCruiserError",
    "FileError",
    "Fit",
    "ISCov",
    "InputError",
    "MismatchError",
    "Profile",
    "Projections",
    "Run",
    "SBCov",
    "Sample",
    "System",
    "TorchSystem",
    "Trace",
    "WICov",
    "cover",
    "criterion",
    "export",
    "fit",
    "literal_iscov",
    "load_system",
    "profile",
    "read_corpus",
]
