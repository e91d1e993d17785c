"""Coverage and guided testing for recurrent neural networks: what did the state go through?"""

from deepcruiser.abstraction.fitting import Fit, Projections
from deepcruiser.abstraction.model import AbstractModel
from deepcruiser.abstraction.profile import Profile
from deepcruiser.abstraction.profiling import fit, profile
from deepcruiser.coverage import Coverage, CoverageReport, cover
from deepcruiser.criteria import BSCov, BTCov, Criterion, ISCov, SBCov, WICov, criterion, literal_iscov
from deepcruiser.errors import DeepCruiserError, FileError, InputError, MismatchError
from deepcruiser.trace import Run, System, Trace

__all__ = [
    "AbstractModel",
    "BSCov",
    "BTCov",
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
    "System",
    "Trace",
    "WICov",
    "cover",
    "criterion",
    "fit",
    "literal_iscov",
    "profile",
]
