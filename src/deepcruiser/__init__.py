"""Coverage and guided testing for recurrent neural networks: what did the state go through?"""

from deepcruiser.abstraction.model import AbstractModel
from deepcruiser.abstraction.profile import Profile
from deepcruiser.abstraction.profiler import fit, profile
from deepcruiser.abstraction.projections import Fit, Projections
from deepcruiser.audio import Audio
from deepcruiser.campaign.executors.base import Execution, Executor
from deepcruiser.campaign.failed_test import FailedTest
from deepcruiser.campaign.fuzz import fuzz
from deepcruiser.campaign.guide import Guide
from deepcruiser.campaign.mutations import Mutations
from deepcruiser.campaign.record import CampaignRecord
from deepcruiser.campaign.replay import Replay
from deepcruiser.campaign.spec import CampaignSpec
from deepcruiser.corpora import Corpus, Sample, read_corpus
from deepcruiser.coverage import Coverage, CoverageReport, cover
from deepcruiser.criteria import BSCov, BTCov, Criterion, ISCov, SBCov, WICov, criterion, literal_iscov
from deepcruiser.decoding import NgramModel, classify, ctc_beam, ctc_greedy, doubt_of, read_language_model, spans
from deepcruiser.errors import DeepCruiserError, FileError, InputError, MismatchError
from deepcruiser.export import export
from deepcruiser.features import MFCC, LogMel, LogSpectrogram
from deepcruiser.oracles import CharacterErrorRate, Disagreement, Oracle, SpanDisagreement, WordErrorRate
from deepcruiser.systems import load_system
from deepcruiser.systems.deepspeech.system import DeepSpeechSystem
from deepcruiser.systems.keras.system import KerasSystem
from deepcruiser.systems.onnx.system import OnnxSystem
from deepcruiser.systems.process.system import ProcessSystem
from deepcruiser.systems.tensors.streaming import Streaming
from deepcruiser.systems.tflite.system import TfliteSystem
from deepcruiser.systems.torch.system import TorchSystem
from deepcruiser.trace import Run, System, Trace

__all__ = [  # noqa: RUF022 (ruff would put MFCC before the rest)
    "AbstractModel",
    "Audio",
    "BSCov",
    "BTCov",
    "CampaignRecord",
    "CampaignSpec",
    "CharacterErrorRate",
    "Corpus",
    "Coverage",
    "CoverageReport",
    "Criterion",
    "DeepCruiserError",
    "DeepSpeechSystem",
    "Disagreement",
    "Execution",
    "Executor",
    "FailedTest",
    "FileError",
    "Fit",
    "Guide",
    "ISCov",
    "InputError",
    "KerasSystem",
    "LogMel",
    "LogSpectrogram",
    "MFCC",
    "MismatchError",
    "Mutations",
    "NgramModel",
    "OnnxSystem",
    "Oracle",
    "ProcessSystem",
    "Profile",
    "Projections",
    "Replay",
    "Run",
    "SBCov",
    "Sample",
    "SpanDisagreement",
    "Streaming",
    "System",
    "TfliteSystem",
    "TorchSystem",
    "Trace",
    "WICov",
    "WordErrorRate",
    "classify",
    "cover",
    "criterion",
    "ctc_beam",
    "ctc_greedy",
    "doubt_of",
    "export",
    "fit",
    "fuzz",
    "literal_iscov",
    "load_system",
    "profile",
    "read_corpus",
    "read_language_model",
    "spans",
]
