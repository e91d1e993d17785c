"""The targets: for each kind of file, how an undamaged one is made and read."""

from __future__ import annotations

import io
import json
import shutil
import sqlite3
import zipfile
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import soundfile as sf

import deepcruiser as dc
from deepcruiser.campaign.spec import CampaignSpec
from deepcruiser.cli import project
from deepcruiser.corpora.corpus import Sample
from deepcruiser.findings.groups import group_by
from deepcruiser.findings.suite import Suite
from deepcruiser.report.seed_listing import read_choice
from deepcruiser.serialise import digest_of
from tests.conftest import walks
from tests.quality.assault import Case, mutated
from tests.quality.assault_behaviour import BEHAVIOUR
from tests.quality.assault_crafted import CRAFTED, batch, monitor, read_batch, read_monitor
from tests.quality.assault_users import USERS
from tests.support import corpora, kaldi_files, toy

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Attack:
    """A kind of case, and how many of them there are in proportion."""

    run: Callable[[Case], str]
    weight: float


@dataclass(frozen=True)
class Files:
    """Some files that `make` writes to a folder and `read` reads there; one of them is damaged.

    `checked` says that the format can tell damage from data, so that another result is wrong.
    """

    make: Callable[[Path], Any]
    read: Callable[[Path], Any]
    checked: bool = False
    #: Even the undamaged file is refused.
    refused: bool = False
    #: The names of the files that are damaged, all of them if empty.
    damaged: tuple[str, ...] = ()
    damage: Callable[[bytes, np.random.Generator], bytes] = mutated
    _whole: dict[str, Any] = field(default_factory=dict)

    def __call__(self, case: Case) -> str:
        if not self._whole:
            made = case.folder / "whole"
            made.mkdir()
            self.make(made)
            files = {str(path.relative_to(made)): path.read_bytes() for path in made.rglob("*") if path.is_file()}
            try:
                self._whole["result"] = self.read(made)
            except dc.DeepCruiserError as error:
                if not self.refused:
                    raise AssertionError("the undamaged file cannot be read") from error
            self._whole["files"] = files
            shutil.rmtree(made)
        files = self._whole["files"]
        names = self.damaged or tuple(sorted(files))
        chosen = names[int(case.rng.integers(len(names)))]
        for name, data in files.items():
            path = case.folder / "damaged" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(self.damage(data, case.rng) if name == chosen else data)
        result = self.read(case.folder / "damaged")
        if result == self._whole.get("result"):
            return "right"
        return "wrong" if self.checked else "unknowable"


def sound(name: str, **options: Any) -> Files:
    def make(folder: Path) -> None:
        times = np.arange(6000) / 16_000
        wave = 0.3 * np.sin(2 * np.pi * 300 * times) + 0.05 * np.random.default_rng(0).standard_normal(6000)
        sf.write(folder / name, wave, 16_000, **options)

    def read(folder: Path) -> Any:
        audio = dc.Audio.read(folder / name)
        return audio.rate, audio.samples.tobytes()

    return Files(make, read, checked=not name.endswith(("wav", "mp3")))


def listed(corpus: dc.Corpus) -> Any:
    """All of a corpus, inputs included."""
    for sample in corpus:
        values = [getattr(sample, name) for name in ("offset", "duration", "text")]
        yield sample.id, sample.path.name, *values, digest_of(getattr(sample.input, "samples", sample.input))


def a_list(name: str, content: str, **others: str) -> Files:
    def make(folder: Path) -> None:
        for number in range(3):
            corpora.sound(folder / f"{number}.wav", 0.1 + 0.1 * number)
        for path, text in {name: content, **others}.items():
            (folder / path.replace("__", ".")).write_text(text)

    names = (name, *(path.replace("__", ".") for path in others))
    return Files(make, lambda folder: list(listed(dc.read_corpus(folder / name))), damaged=names)


def archive(kind: str) -> Files:
    """A profile, a model, a coverage or a monitor."""

    def make(folder: Path) -> None:
        profile = dc.Profile.of(walks(np.random.default_rng(0), 40), components=2)
        model = profile.abstract(4)
        coverage = dc.Coverage(model, dc.BTCov)
        coverage.add(walks(np.random.default_rng(1), 1)[0])
        whole = {"profile": profile, "model": model, "coverage": coverage}[kind]
        whole.save(folder / "file")  # type: ignore[attr-defined]

    def read(folder: Path) -> Any:
        if kind == "profile":
            profile = dc.Profile.load(folder / "file")
            return profile.abstract(3).fingerprint, profile.origin, profile.names, profile.projections.states.explained
        if kind == "model":
            return _of_model(dc.AbstractModel.load(folder / "file"))
        whole = dc.Profile.of(walks(np.random.default_rng(0), 40), components=2).abstract(4)
        return dc.Coverage.load(folder / "file", whole).value

    return Files(make, read, checked=True)


def _of_model(model: dc.AbstractModel) -> Any:
    visits = model.visits(walks(np.random.default_rng(0), 40))
    values = [criterion.of(model, [visits]) for criterion in (dc.BSCov, dc.BTCov, dc.ISCov, dc.WICov, dc.SBCov(1))]
    return model.fingerprint, model.origin, model.name, values


def crafted(case: Case) -> str:
    """A model with right checksums and other numbers: it is refused, or its numbers make sense."""
    model = dc.Profile.of(walks(np.random.default_rng(0), 40), components=2).abstract(4)
    model.save(case.folder / "whole")
    with zipfile.ZipFile(case.folder / "whole") as source, zipfile.ZipFile(case.folder / "other", "w") as target:
        names = [name for name in source.namelist() if name.endswith(".npy")]
        chosen = names[int(case.rng.integers(len(names)))]
        for name in source.namelist():
            data = source.read(name)
            if name == chosen:
                data = _crafted_array(np.load(io.BytesIO(data)), case.rng)
            elif name == "about.json" and case.rng.random() < 0.1:
                data = mutated(data, case.rng)
            target.writestr(zipfile.ZipInfo(name), data)
    other = dc.AbstractModel.load(case.folder / "other")
    shares = np.bincount(other.choice_of, weights=other.probabilities, minlength=len(other.choices))
    values = _of_model(other)[-1]
    sums = np.allclose(shares, 1) and (other.probabilities > 0).all() and all(0 <= value <= 1 for value in values)
    ordered = all((np.diff(array) > 0).all() for array in (other.states, other.transitions, other.choices, other.rows))
    if not sums or not ordered:
        return "wrong"
    return "right" if other.fingerprint == model.fingerprint else "unknowable"


def _crafted_array(array: np.ndarray[Any, Any], rng: np.random.Generator) -> bytes:
    flat = array.copy().ravel()
    kind, at = int(rng.integers(8)), int(rng.integers(max(1, len(flat))))
    extreme = [0, -1, 1, 2**31, -(2**62), 2**62, 7, 1000][int(rng.integers(8))]
    if kind == 0 and len(flat):
        flat[at] = extreme
    elif kind == 1:
        flat = flat[::-1]
    elif kind == 2:
        flat = flat[:at]
    elif kind == 3:
        flat = np.repeat(flat, 2)
    elif kind == 4 and flat.dtype.kind == "f" and len(flat):
        flat[at] = [np.nan, np.inf, -np.inf, 1e300][int(rng.integers(4))]
    elif kind == 5:
        flat = flat.astype([np.float32, np.int8, np.uint64, np.complex128][int(rng.integers(4))])
    elif kind == 6:
        flat = np.roll(flat, 1)
    else:
        flat = flat + 1
    buffer = io.BytesIO()
    np.save(buffer, flat.reshape(array.shape) if flat.size == array.size else flat)
    return buffer.getvalue()


def database(folder: Path) -> Any:
    """Everything in a campaign's record; if it says that something is missing, that is a clear error."""
    record = dc.CampaignRecord.open(folder, mutations=toy.MUTATIONS)
    if record.problem or record.model_problem:
        raise dc.FileError(record.problem or record.model_problem)
    events = [toy.event_fields(event) for event in record.events]
    return events, record.spec, record.identity, record.versions, record.stopped, record.state, record.moments


def report(folder: Path) -> Any:
    """The report's text; it says what it could not read."""
    from deepcruiser.report.data import CampaignData, ReportData
    from deepcruiser.report.sections import as_text, collect

    data = collect(ReportData.of([CampaignData(folder)]))
    if any(campaign["warnings"] for campaign in data["campaigns"]):
        raise dc.FileError("it says what is missing: " + "; ".join(data["campaigns"][0]["warnings"])[:1000])
    return as_text(data).replace(str(folder), "")


def campaign(folder: Path) -> None:
    toy.campaign(folder, runs=48)
    with sqlite3.connect(folder / "campaign.db") as db:
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def without_database(folder: Path) -> None:
    campaign(folder)
    (folder / "campaign.db").write_bytes(b"no database")


def resumed(folder: Path) -> Any:
    """A campaign that is resumed with an unexpected file in its folder."""
    campaign_record = toy.campaign(folder, runs=64)
    return [toy.event_fields(event) for event in campaign_record.events]


def suite(folder: Path) -> None:
    record = toy.campaign(folder / "run", runs=48)
    from deepcruiser.findings.cluster import find
    from deepcruiser.findings.suite import write_suite

    write_suite(folder / "suite", record, find(record).findings[:3], system="toy.py:system")
    shutil.rmtree(folder / "run")


def read_suite(folder: Path) -> Any:
    read = Suite.read(folder / "suite")
    return [(replace(case, path=Path(case.path.name)), case.input) for case in read.cases], read.oracle, read.system


@cache
def _onnx() -> bytes:
    import torch

    from tests.test_onnx_equals_torch import Net, export, seeded

    path = Path("net.onnx").absolute()
    export(
        seeded(lambda: Net(torch.nn.LSTM, 1, both=False)), path, {"x": torch.zeros(1, 7, 4)}, {"x": {0: "b", 1: "t"}}
    )
    return path.read_bytes()


def ran(system: Any, size: int) -> Any:
    """The answer and the states for an input, as far as they are numbers."""
    (run,) = system.run([np.linspace(-1, 1, 5 * size, dtype=np.float32).reshape(5, size)])
    return digest_of(run.output), digest_of(run.traced.states)


def torchscript(folder: Path) -> None:
    import torch

    torch.manual_seed(1)
    net: Any = torch.nn.Sequential(torch.nn.Linear(4, 6), torch.nn.LSTM(6, 5, batch_first=True)).eval()
    trace: Any = torch.jit.trace
    trace(net, torch.zeros(1, 7, 4), check_trace=False).save(folder / "net.pt")


def tflite(folder: Path) -> None:
    import torch

    from tests.support.tflite_files import lstm_step

    torch.manual_seed(1)
    lstm_step(folder / "net.tflite", torch.nn.LSTM(4, 6, batch_first=True).eval(), torch.nn.Linear(6, 3).eval())


def keras(folder: Path, name: str) -> None:
    from deepcruiser.systems.keras.layers import import_keras

    module = import_keras()
    module.utils.set_random_seed(0)
    module.Sequential([module.Input((None, 3)), module.layers.GRU(4, name="gru", return_sequences=True)]).save(
        folder / name
    )


def keras2(folder: Path) -> None:
    from tests.support.keras2 import rnn, rnn_weights, sequential, write

    write(
        folder / "net.h5",
        sequential([rnn("GRU", "rnn", 4, reset_after=False, batch_input_shape=[None, None, 3])]),
        {"rnn": rnn_weights("GRU", 3, 4, np.random.default_rng(0))},
    )


def language(folder: Path) -> Any:
    from deepcruiser.decoding.beam import _lexicon

    model = dc.read_language_model(folder / "tiny.kenlm")
    _lexicon.cache_clear()
    scores = np.log(np.random.default_rng(0).dirichlet(np.ones(28), 12))
    return model.words, dc.ctc_beam(scores, ["", *"abcdefghijklmnopqrstuvwxyz", " "], blank=0, language_model=model)


def copied(name: str) -> Callable[[Path], Any]:
    return lambda folder: shutil.copy(ROOT / "tests" / "data" / name, folder / name)


def written(name: str, content: str) -> Callable[[Path], Any]:
    return lambda folder: (folder / name).write_text(content)


def spoken(folder: Path) -> None:
    for number in range(2):
        corpora.sound(folder / "1" / f"1-{number}.wav")
    corpora.text(folder / "1" / "1.trans.txt", "1-0 ONE\n1-1 TWO\n")


def text_in(path: Path) -> str:
    return path.read_bytes().decode(errors="replace")


NEMO = "".join(
    json.dumps({"audio_filepath": f"{n}.wav", "text": "one two", "offset": 0.0, "duration": 0.05}) + "\n"
    for n in range(3)
)
TSV = "path\tsentence\n" + "".join(f"{n}.wav\tone two\n" for n in range(3))
PROJECT = 'system = "a.py:b"\nruns = 100\n[targets.ci]\nruns = 10\nfolder = "runs/ci"\n[targets.all]\nseed = 3\n'
SPEC = CampaignSpec(system="a.py:b", data="seeds/", runs=100, until_coverage=0.5)


def _npy(folder: Path) -> None:
    np.save(folder / "a.npy", np.arange(60, dtype=np.float32).reshape(20, 3))


def _npy_of(path: Path) -> Any:
    value = Sample("a", path).input
    return str(getattr(value, "dtype", "")), getattr(value, "shape", ()), getattr(value, "tobytes", lambda: value)()


ATTACKS: dict[str, Attack] = {
    "sounds: WAV 16 bits": Attack(sound("a.wav"), 8),
    "sounds: WAV 32 bits": Attack(sound("a.wav", subtype="FLOAT"), 4),
    "sounds: FLAC": Attack(sound("a.flac"), 8),
    "sounds: FLAC 24 bits": Attack(sound("a.flac", subtype="PCM_24"), 3),
    "sounds: Ogg Vorbis": Attack(sound("a.ogg"), 5),
    "sounds: Ogg Opus": Attack(sound("a.opus", format="OGG", subtype="OPUS"), 4),
    "sounds: MP3": Attack(sound("a.mp3"), 3),
    "arrays and texts: npy": Attack(Files(_npy, lambda folder: _npy_of(folder / "a.npy")), 5),
    "arrays and texts: txt": Attack(
        Files(written("a.txt", "open the door\n"), lambda folder: Sample("a", folder / "a.txt").input), 2
    ),
    "corpora: NeMo": Attack(a_list("a.jsonl", NEMO), 5),
    "corpora: TSV": Attack(a_list("a.tsv", TSV), 4),
    "corpora: CSV": Attack(a_list("a.csv", TSV.replace("\t", ",")), 4),
    "corpora: Kaldi": Attack(
        a_list(
            "wav.scp",
            "".join(f"u{n} {n}.wav\n" for n in range(3)),
            text="u0 one\nu1 two\n",
            segments="a u0 0.0 0.05\nb u1 0.01 -1\n",
        ),
        4,
    ),
    "corpora: LibriSpeech": Attack(
        Files(spoken, lambda folder: list(listed(dc.read_corpus(folder))), damaged=("1/1.trans.txt",)), 2
    ),
    "corpora: archives of Kaldi": Attack(
        Files(
            lambda folder: kaldi_files.archive(folder / "feats.ark"),
            lambda folder: list(listed(dc.read_corpus(folder / "feats.ark"))),
        ),
        5,
    ),
    "lists: choice of seeds": Attack(
        Files(written("a.csv", "seed,leave out\na,yes\nb,\n"), lambda folder: read_choice(folder / "a.csv")), 2
    ),
    "lists: groups": Attack(
        Files(written("a.csv", "seed,voice\na,one\nb,two\n"), lambda folder: bool(group_by(f"{folder}/a.csv:voice"))), 1
    ),
    "profiles and models: profile": Attack(archive("profile"), 7),
    "profiles and models: model": Attack(archive("model"), 7),
    "profiles and models: coverage": Attack(archive("coverage"), 3),
    "profiles and models: crafted": Attack(crafted, 8),
    "campaigns: database": Attack(Files(campaign, database, checked=True, damaged=("campaign.db",)), 8),
    "campaigns: report": Attack(Files(campaign, report, checked=True, damaged=("campaign.db", "abstract.model")), 4),
    "campaigns: without a database": Attack(Files(without_database, report, refused=True), 3),
    "campaigns: resumed": Attack(Files(campaign, resumed, checked=True, damaged=("campaign.db",)), 2),
    "monitors: file": Attack(Files(monitor, read_monitor, checked=True), 3),
    "experiments: batch": Attack(Files(batch, read_batch, checked=True), 2),
    "specs and suites: project file": Attack(
        Files(written("a.toml", PROJECT), lambda folder: str(project.read(folder / "a.toml", (), "ci"))), 2
    ),
    "specs and suites: TOML": Attack(
        Files(written("a.toml", SPEC.to_toml()), lambda folder: CampaignSpec.from_toml(text_in(folder / "a.toml"))), 4
    ),
    "specs and suites: JSON": Attack(
        Files(written("a.json", SPEC.to_json()), lambda folder: CampaignSpec.from_json(text_in(folder / "a.json"))), 4
    ),
    "specs and suites: suite": Attack(Files(suite, read_suite), 4),
    "language models: KenLM": Attack(Files(copied("tiny.kenlm"), language), 3 * bool(find_spec("flashlight"))),
    "language models: ARPA": Attack(
        Files(copied("tiny.arpa"), lambda folder: dc.read_language_model(folder / "tiny.arpa"), refused=True), 1
    ),
    "networks: ONNX": Attack(
        Files(
            lambda folder: (folder / "net.onnx").write_bytes(_onnx()),
            lambda folder: ran(dc.OnnxSystem(folder / "net.onnx"), 4),
        ),
        5 * bool(find_spec("onnxruntime")),
    ),
    "networks: TorchScript": Attack(
        Files(torchscript, lambda folder: ran(dc.TorchScriptSystem(folder / "net.pt"), 4), checked=True), 3
    ),
    "networks: TFLite": Attack(
        Files(tflite, lambda folder: ran(dc.TfliteSystem(folder / "net.tflite"), 4)),
        5 * bool(find_spec("ai_edge_litert")),
    ),
    "networks: Keras archive": Attack(
        Files(
            lambda folder: keras(folder, "net.keras"),
            lambda folder: ran(dc.KerasSystem(folder / "net.keras"), 3),
            checked=True,
        ),
        2 * bool(find_spec("h5py")),
    ),
    "networks: EESEN": Attack(
        Files(
            lambda folder: kaldi_files.recogniser(folder),
            lambda folder: ran(dc.EesenSystem(folder / "final.nnet"), 120),
            damaged=("final.nnet", "units.txt"),
        ),
        4,
    ),
    "networks: Keras HDF5": Attack(
        Files(keras2, lambda folder: ran(dc.KerasSystem(folder / "net.h5"), 3)), 3 * bool(find_spec("h5py"))
    ),
    **{name: Attack(run, weight) for name, (run, weight) in {**BEHAVIOUR, **USERS, **CRAFTED}.items()},
}
