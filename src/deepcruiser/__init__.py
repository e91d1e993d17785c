"""Coverage criteria and coverage-guided testing for recurrent neural networks.

The public names are listed here and imported on first use (PEP 562), so that `import deepcruiser` is fast and loads
neither torch nor scipy.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

# Imported now: functions of these names have to be in place before the packages of the same names are.
from deepcruiser.export import export
from deepcruiser.report import report

if TYPE_CHECKING:
    from deepcruiser import transformations
    from deepcruiser.abstraction.departure import Departure
    from deepcruiser.abstraction.model import AbstractModel
    from deepcruiser.abstraction.profile import Profile
    from deepcruiser.abstraction.profiler import fit, profile
    from deepcruiser.abstraction.projections import Fit, Projections
    from deepcruiser.abstraction.transducer import Transducer
    from deepcruiser.audio import Audio
    from deepcruiser.campaign.executors.base import Execution, Executor
    from deepcruiser.campaign.executors.workers import CampaignWorker
    from deepcruiser.campaign.failed_test import FailedTest
    from deepcruiser.campaign.fuzz import fuzz
    from deepcruiser.campaign.guide import Guide
    from deepcruiser.campaign.mutations import Mutations
    from deepcruiser.campaign.record import CampaignRecord
    from deepcruiser.campaign.replay import Replay
    from deepcruiser.campaign.spec import CampaignSpec
    from deepcruiser.cluster import RayWorkers
    from deepcruiser.corpora.corpus import Corpus, Sample
    from deepcruiser.corpora.read import read_corpus
    from deepcruiser.corpora.samples import Labelled, samples
    from deepcruiser.coverage import Coverage, CoverageReport, cover
    from deepcruiser.criteria import (
        BSCov,
        BTCov,
        Criterion,
        ISCov,
        SBCov,
        WICov,
        criterion,
        literal_iscov,
        same_input_wicov,
    )
    from deepcruiser.decoding.beam import ctc_beam
    from deepcruiser.decoding.detection import classify, spans
    from deepcruiser.decoding.greedy import ctc_greedy
    from deepcruiser.decoding.language_model import LanguageModel, read_language_model
    from deepcruiser.decoding.scores import doubt_of
    from deepcruiser.errors import DeepCruiserError, FileError, InputError, MismatchError
    from deepcruiser.features import MFCC, KaldiFeatures, LogMel, LogSpectrogram
    from deepcruiser.findings.cluster import find
    from deepcruiser.findings.finding import Finding
    from deepcruiser.monitor.monitor import Alarm, Monitor
    from deepcruiser.monitor.nearest import nearest
    from deepcruiser.oracles import CharacterErrorRate, Disagreement, Oracle, SpanDisagreement, WordErrorRate
    from deepcruiser.systems import load_system
    from deepcruiser.systems.deepspeech.system import DeepSpeechSystem
    from deepcruiser.systems.kaldi.system import EesenSystem
    from deepcruiser.systems.keras.system import KerasSystem
    from deepcruiser.systems.onnx.system import OnnxSystem
    from deepcruiser.systems.process.system import ProcessSystem
    from deepcruiser.systems.tensors.streaming import Streaming
    from deepcruiser.systems.tflite.system import TfliteSystem
    from deepcruiser.systems.torch.script import TorchScriptSystem
    from deepcruiser.systems.torch.system import TorchSystem
    from deepcruiser.trace import Run, System, Trace
    from deepcruiser.value_oracles import Keywords, SignalToDistortion, SystemDisagreement, Tolerance
    from deepcruiser.workers import ProcessWorkers

#: The version, for people and for pyproject.toml.
__version__ = "0.1.0"

__all__ = [  # noqa: RUF022 (ruff would put MFCC before the rest)
    "AbstractModel",
    "Alarm",
    "Audio",
    "BSCov",
    "BTCov",
    "CampaignRecord",
    "CampaignSpec",
    "CampaignWorker",
    "CharacterErrorRate",
    "Corpus",
    "Coverage",
    "CoverageReport",
    "Criterion",
    "DeepCruiserError",
    "DeepSpeechSystem",
    "Departure",
    "Disagreement",
    "EesenSystem",
    "Execution",
    "Executor",
    "FailedTest",
    "FileError",
    "Finding",
    "Fit",
    "Guide",
    "ISCov",
    "InputError",
    "KaldiFeatures",
    "KerasSystem",
    "Keywords",
    "Labelled",
    "LanguageModel",
    "LogMel",
    "LogSpectrogram",
    "MFCC",
    "MismatchError",
    "Monitor",
    "Mutations",
    "OnnxSystem",
    "Oracle",
    "ProcessSystem",
    "ProcessWorkers",
    "Profile",
    "Projections",
    "RayWorkers",
    "Replay",
    "Run",
    "SBCov",
    "Sample",
    "SignalToDistortion",
    "SpanDisagreement",
    "Streaming",
    "System",
    "SystemDisagreement",
    "TfliteSystem",
    "Tolerance",
    "TorchScriptSystem",
    "TorchSystem",
    "Trace",
    "Transducer",
    "WICov",
    "WordErrorRate",
    "classify",
    "cover",
    "criterion",
    "ctc_beam",
    "ctc_greedy",
    "doubt_of",
    "export",
    "find",
    "fit",
    "fuzz",
    "literal_iscov",
    "load_system",
    "nearest",
    "profile",
    "read_corpus",
    "read_language_model",
    "report",
    "same_input_wicov",
    "samples",
    "spans",
    "transformations",
]

#: The public names that each module defines; those that are modules themselves are in `_MODULES`.
_NAMES = {
    "deepcruiser.abstraction.departure": ("Departure",),
    "deepcruiser.abstraction.model": ("AbstractModel",),
    "deepcruiser.abstraction.profile": ("Profile",),
    "deepcruiser.abstraction.profiler": ("fit", "profile"),
    "deepcruiser.abstraction.projections": ("Fit", "Projections"),
    "deepcruiser.abstraction.transducer": ("Transducer",),
    "deepcruiser.audio": ("Audio",),
    "deepcruiser.campaign.executors.base": ("Execution", "Executor"),
    "deepcruiser.campaign.executors.workers": ("CampaignWorker",),
    "deepcruiser.campaign.failed_test": ("FailedTest",),
    "deepcruiser.campaign.fuzz": ("fuzz",),
    "deepcruiser.campaign.guide": ("Guide",),
    "deepcruiser.campaign.mutations": ("Mutations",),
    "deepcruiser.campaign.record": ("CampaignRecord",),
    "deepcruiser.campaign.replay": ("Replay",),
    "deepcruiser.campaign.spec": ("CampaignSpec",),
    "deepcruiser.cluster": ("RayWorkers",),
    "deepcruiser.corpora.corpus": ("Corpus", "Sample"),
    "deepcruiser.corpora.read": ("read_corpus",),
    "deepcruiser.corpora.samples": ("Labelled", "samples"),
    "deepcruiser.coverage": ("Coverage", "CoverageReport", "cover"),
    "deepcruiser.criteria": (
        "BSCov",
        "BTCov",
        "Criterion",
        "ISCov",
        "SBCov",
        "WICov",
        "criterion",
        "literal_iscov",
        "same_input_wicov",
    ),
    "deepcruiser.decoding.beam": ("ctc_beam",),
    "deepcruiser.decoding.detection": ("classify", "spans"),
    "deepcruiser.decoding.scores": ("doubt_of",),
    "deepcruiser.decoding.greedy": ("ctc_greedy",),
    "deepcruiser.decoding.language_model": ("LanguageModel", "read_language_model"),
    "deepcruiser.errors": ("DeepCruiserError", "FileError", "InputError", "MismatchError"),
    "deepcruiser.features": ("MFCC", "KaldiFeatures", "LogMel", "LogSpectrogram"),
    "deepcruiser.findings.cluster": ("find",),
    "deepcruiser.findings.finding": ("Finding",),
    "deepcruiser.monitor.monitor": ("Alarm", "Monitor"),
    "deepcruiser.monitor.nearest": ("nearest",),
    "deepcruiser.oracles": ("CharacterErrorRate", "Disagreement", "Oracle", "SpanDisagreement", "WordErrorRate"),
    "deepcruiser.systems": ("load_system",),
    "deepcruiser.systems.deepspeech.system": ("DeepSpeechSystem",),
    "deepcruiser.systems.kaldi.system": ("EesenSystem",),
    "deepcruiser.systems.keras.system": ("KerasSystem",),
    "deepcruiser.systems.onnx.system": ("OnnxSystem",),
    "deepcruiser.systems.process.system": ("ProcessSystem",),
    "deepcruiser.systems.tensors.streaming": ("Streaming",),
    "deepcruiser.systems.tflite.system": ("TfliteSystem",),
    "deepcruiser.systems.torch.script": ("TorchScriptSystem",),
    "deepcruiser.systems.torch.system": ("TorchSystem",),
    "deepcruiser.trace": ("Run", "System", "Trace"),
    "deepcruiser.value_oracles": ("Keywords", "SignalToDistortion", "SystemDisagreement", "Tolerance"),
    "deepcruiser.workers": ("ProcessWorkers",),
}
_MODULES = ("transformations",)
_HOMES = {name: module for module, names in _NAMES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(f"deepcruiser.{name}")
    if name not in _HOMES:
        raise AttributeError(f"module 'deepcruiser' has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value  # the next access does not come here
    return value


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
