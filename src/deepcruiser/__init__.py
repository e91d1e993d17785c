"""Coverage criteria and coverage-guided testing for recurrent neural networks.

The public names are listed twice, for type checkers and for Python, which imports each on first use (PEP 562):
`import deepcruiser` is fast and loads neither torch nor scipy.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

# Imported now, so that the functions are in place before the packages of the same names.
from deepcruiser.export import export as export
from deepcruiser.report import report as report

if TYPE_CHECKING:
    # ruff: noqa: I001 (it would put every name on a line of its own)
    from deepcruiser import transformations as transformations
    from deepcruiser.abstraction.departure import Departure as Departure
    from deepcruiser.abstraction.model import AbstractModel as AbstractModel
    from deepcruiser.abstraction.profile import Profile as Profile
    from deepcruiser.abstraction.profiler import fit as fit, profile as profile
    from deepcruiser.abstraction.projections import Fit as Fit, Projections as Projections
    from deepcruiser.abstraction.transducer import Transducer as Transducer
    from deepcruiser.audio import Audio as Audio
    from deepcruiser.campaign.executors.base import Execution as Execution, Executor as Executor
    from deepcruiser.campaign.executors.workers import CampaignWorker as CampaignWorker
    from deepcruiser.campaign.failed_test import FailedTest as FailedTest
    from deepcruiser.campaign.fuzz import fuzz as fuzz
    from deepcruiser.campaign.guide import Guide as Guide
    from deepcruiser.campaign.mutations import Mutations as Mutations
    from deepcruiser.campaign.record import CampaignRecord as CampaignRecord
    from deepcruiser.campaign.replay import Replay as Replay
    from deepcruiser.campaign.spec import CampaignSpec as CampaignSpec
    from deepcruiser.cluster import RayWorkers as RayWorkers
    from deepcruiser.corpora.corpus import Corpus as Corpus, Sample as Sample
    from deepcruiser.corpora.read import read_corpus as read_corpus
    from deepcruiser.corpora.samples import Labelled as Labelled, samples as samples
    from deepcruiser.coverage import Coverage as Coverage, CoverageReport as CoverageReport, cover as cover
    from deepcruiser.criteria import (
        BSCov as BSCov,
        BTCov as BTCov,
        Criterion as Criterion,
        ISCov as ISCov,
        SBCov as SBCov,
        WICov as WICov,
        criterion as criterion,
        literal_iscov as literal_iscov,
        same_input_wicov as same_input_wicov,
    )
    from deepcruiser.decoding.beam import ctc_beam as ctc_beam
    from deepcruiser.decoding.detection import classify as classify, spans as spans
    from deepcruiser.decoding.greedy import ctc_greedy as ctc_greedy
    from deepcruiser.decoding.language_model import (
        LanguageModel as LanguageModel,
        read_language_model as read_language_model,
    )
    from deepcruiser.decoding.scores import doubt_of as doubt_of
    from deepcruiser.errors import (
        DeepCruiserError as DeepCruiserError,
        FileError as FileError,
        InputError as InputError,
        MismatchError as MismatchError,
    )
    from deepcruiser.features import (
        MFCC as MFCC,
        KaldiFeatures as KaldiFeatures,
        LogMel as LogMel,
        LogSpectrogram as LogSpectrogram,
    )
    from deepcruiser.findings.cluster import find as find
    from deepcruiser.findings.finding import Finding as Finding
    from deepcruiser.monitor.monitor import Alarm as Alarm, Monitor as Monitor
    from deepcruiser.monitor.nearest import nearest as nearest
    from deepcruiser.oracles import (
        CharacterErrorRate as CharacterErrorRate,
        Disagreement as Disagreement,
        Oracle as Oracle,
        SpanDisagreement as SpanDisagreement,
        WordErrorRate as WordErrorRate,
    )
    from deepcruiser.systems.deepspeech.system import DeepSpeechSystem as DeepSpeechSystem
    from deepcruiser.systems.kaldi.system import EesenSystem as EesenSystem
    from deepcruiser.systems.keras.system import KerasSystem as KerasSystem
    from deepcruiser.systems.load import load_system as load_system
    from deepcruiser.systems.onnx.system import OnnxSystem as OnnxSystem
    from deepcruiser.systems.process.system import ProcessSystem as ProcessSystem
    from deepcruiser.systems.tensors.streaming import Streaming as Streaming
    from deepcruiser.systems.tflite.system import TfliteSystem as TfliteSystem
    from deepcruiser.systems.torch.script import TorchScriptSystem as TorchScriptSystem
    from deepcruiser.systems.torch.system import TorchSystem as TorchSystem
    from deepcruiser.trace import Run as Run, System as System, Trace as Trace
    from deepcruiser.value_oracles import (
        Keywords as Keywords,
        SignalToDistortion as SignalToDistortion,
        SystemDisagreement as SystemDisagreement,
        Tolerance as Tolerance,
    )
    from deepcruiser.workers import ProcessWorkers as ProcessWorkers

#: The version, for people and for pyproject.toml.
__version__ = "0.1.0"

#: The public names that each module defines; names that are modules are in `_MODULES`.
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
    "deepcruiser.systems.deepspeech.system": ("DeepSpeechSystem",),
    "deepcruiser.systems.kaldi.system": ("EesenSystem",),
    "deepcruiser.systems.keras.system": ("KerasSystem",),
    "deepcruiser.systems.load": ("load_system",),
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
__all__ = sorted([*_HOMES, *_MODULES, "export", "report"])


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(f"deepcruiser.{name}")
    if name not in _HOMES:
        raise AttributeError(f"module 'deepcruiser' has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value  # so that the next access is direct
    return value


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
