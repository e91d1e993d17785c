"""Careful attacks: files with odd values and correct checksums, headers, folders, streams."""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import os
import signal
import sqlite3
import struct
import subprocess
import sys
import warnings
import zipfile
import zlib
from collections.abc import Callable
from contextlib import closing
from dataclasses import asdict
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import soundfile as sf
from click.testing import CliRunner

import deepcruiser as dc
from deepcruiser.campaign.database import checksum
from deepcruiser.campaign.spec import CampaignSpec
from deepcruiser.cli import main, project
from deepcruiser.findings.suite import Suite, run_case
from deepcruiser.pytest_plugin import StillFailingError, _name
from deepcruiser.transformations import NAMES
from tests.quality.assault import Case, LostError, mutated
from tests.support import corpora, toy

#: Values that a field of some JSON may have instead of its own.
ODD: tuple[Any, ...] = (
    None, True, False, 0, -1, 1, 2**31, 2**63, -(2**63), 10**40, 0.5, -0.0, 1e308, float("nan"), float("inf"), "", "x",
    "\x1b[2J", "caf\udce9", "\0", "../../evil", "/dev/zero", "x" * 3000, [], {}, [[]], [None], {"type": None},
    {"a": {"b": 1}}, ["x", 1], "__class__", "1e999", "WordErrorRate", [[[[[[[[1]]]]]]]],
)  # fmt: skip


def odd(value: Any, rng: np.random.Generator) -> Any:
    """A JSON value with one part changed, lost, doubled or renamed."""
    if isinstance(value, dict) and value and rng.random() < 0.85:
        key = list(value)[rng.integers(len(value))]
        kind = int(rng.integers(8))
        if kind == 0:
            return {other: item for other, item in value.items() if other != key}
        if kind == 1:
            return {("odd" if other == key else other): item for other, item in value.items()}
        if kind == 2:
            return {**value, "odd": ODD[rng.integers(len(ODD))]}
        return {**value, key: odd(value[key], rng)}
    if isinstance(value, list) and value and rng.random() < 0.85:
        at = int(rng.integers(len(value)))
        kind = int(rng.integers(8))
        if kind == 0:
            return value[:at] + value[at + 1 :]
        if kind == 1:
            return [*value, value[at]]
        return [*value[:at], odd(value[at], rng), *value[at + 1 :]]
    if isinstance(value, str) and value and rng.random() < 0.2:
        return mutated(value.encode(errors="surrogateescape"), rng).decode(errors="surrogateescape")
    return ODD[rng.integers(len(ODD))]


def invoke(*arguments: str) -> int:
    """The exit status of a command, which must be documented; it must print no control characters."""
    result = CliRunner().invoke(main, [*arguments])
    printed = [char for char in result.output if not char.isprintable() and char != "\n"]
    if result.exit_code not in (0, 1, 2, 4) or printed or "Traceback" in result.output:
        details = "".join(
            Path(word).read_text() for word in result.output.split() if word.endswith(".txt") and "deepcruiser-" in word
        )
        raise AssertionError(f"{arguments}: {result.exit_code} {printed[:3]} {result.output[-600:]} {details[-1200:]}")
    return result.exit_code


OWN = """
from tests.support import toy
system, seeds, mutations = toy.Reader(), toy.seeds(), toy.MUTATIONS
"""


def rows(case: Case) -> str:
    """A campaign's database with one value changed and the checksum of its row adjusted."""
    os.chdir(case.folder)
    toy.campaign(Path("run"), runs=24)
    Path("own.py").write_text(OWN)
    with closing(sqlite3.connect("run/campaign.db")) as db, db:
        for _ in range(int(case.rng.integers(1, 3))):
            table = ("meta", "meta", "seeds", "runs", "moments")[case.rng.integers(5)]
            stored = db.execute(f"SELECT rowid, * FROM {table}").fetchall()
            if not stored:
                continue
            number, *row, _ = stored[case.rng.integers(len(stored))]
            row = _odd_row(row, case.rng)
            names = [name for _, name, *_ in db.execute(f"PRAGMA table_info({table})")][:-1]
            changes = ", ".join(f"{name} = ?" for name in names)
            with contextlib.suppress(sqlite3.Error, OverflowError, UnicodeEncodeError):
                db.execute(f"UPDATE {table} SET {changes}, checksum = ? WHERE rowid = ?", (*row, checksum(row), number))
    commands = (
        ["report", "run", "--text"], ["report", "run"], ["report", "run", "--json"], ["findings", "run"],
        ["status", "run"], ["history", "run"], ["export", "run", "--queue", "queue"],
        ["report", "run", "--junit", "run.xml"],
        ["replay", "run", "--system", "own.py:system", "--mutations", "own.py:mutations", "--data", "own.py:seeds"],
        ["shrink", "run", "1", "--system", "own.py:system", "--data", "own.py:seeds"],
        ["export", "run", "--suite", "suite", "--system", "own.py:system"],
    )  # fmt: skip
    for at in case.rng.choice(len(commands), 3, replace=False):
        invoke(*commands[at])
    sys.modules.pop("own", None)
    with contextlib.suppress(dc.DeepCruiserError):
        toy.campaign(Path("run"), runs=32)
    return "unknowable"


def _odd_row(row: list[Any], rng: np.random.Generator) -> list[Any]:
    at = int(rng.integers(len(row)))
    value = row[at]
    if isinstance(value, bytes):
        other: Any = mutated(value, rng)
        if rng.random() < 0.5:
            with contextlib.suppress(zlib.error):
                other = zlib.compress(mutated(zlib.decompress(value), rng))
    elif isinstance(value, str) and rng.random() < 0.8:
        try:
            other = json.dumps(odd(json.loads(value), rng))
        except ValueError:
            other = mutated(value.encode(errors="surrogateescape"), rng).decode(errors="replace")
    else:
        plain = [each for each in ODD if each is None or isinstance(each, str | float | int)]
        other = plain[rng.integers(len(plain))]
    return [*row[:at], other, *row[at + 1 :]]


SPEC = CampaignSpec(system="a.py:b", data="seeds/", runs=100, until_coverage=0.5, window=16, partitions=5)
PROJECT = {
    **{name: value for name, value in SPEC.to_dict().items() if name not in ("input_partitions",)},
    "train": "train/", "test": "test/", "folder": "runs/x", "components": 3, "max_findings": 3,
    "targets": {"ci": {"runs": 10, "folder": "runs/ci", "oracle": {"type": "Disagreement"}}, "all": {"seed": 3}},
}  # fmt: skip


def settings(case: Case) -> str:
    """A spec or a project file with odd values: refused, or it can be used, shown and written again."""
    spec: CampaignSpec
    kind = int(case.rng.integers(3))
    if kind == 0:
        spec = CampaignSpec.from_json(json.dumps(odd(SPEC.to_dict(), case.rng)))
    elif kind == 1:
        spec = CampaignSpec.from_toml(_toml(odd(SPEC.to_dict(), case.rng)))
    else:
        os.chdir(case.folder)
        Path("deepcruiser.toml").write_text(_toml(odd(PROJECT, case.rng)), errors="surrogateescape")
        project.read(Path("deepcruiser.toml"), (), ("ci", "all", None)[case.rng.integers(3)])
        for command in ("fuzz", "cover", "profile", "status"):
            invoke(command, "--target", "ci") if case.rng.random() < 0.5 else invoke(command)
        return "right"
    for build in (spec.build_guide, spec.build_oracle, spec.build_mutations):
        with contextlib.suppress(dc.InputError):
            build()
    spec.command_line("runs/x")
    again = CampaignSpec.from_json(spec.to_json())
    return "right" if again == spec else "wrong"


def _toml(value: Any) -> str:
    """TOML has no null, and its numbers have 64 bits."""
    import tomli_w

    def plain(value: Any) -> Any:
        if isinstance(value, dict):
            return {str(key): plain(item) for key, item in value.items() if item is not None}
        if isinstance(value, list):
            return [plain(item) for item in value if item is not None]
        return value

    return tomli_w.dumps(plain(value if isinstance(value, dict) else {"odd": value}))


@cache
def _suite() -> dict[str, bytes]:
    from tests.quality.assault_targets import suite

    suite(Path("."))
    return {path.name: path.read_bytes() for path in Path("suite").iterdir()}


def suites(case: Case) -> str:
    """A suite with an odd value, whose SHA-256 is right: it is refused, or its tests run and say what they have."""
    os.chdir(case.folder)
    files = dict(_suite())
    folder = case.folder / "odd"
    folder.mkdir()
    about = json.loads(files.pop("suite.json"))
    names = [name for name in files if name.endswith(".json")]
    if case.rng.random() < 0.6:
        name = names[case.rng.integers(len(names))]
        files[name] = json.dumps(odd(json.loads(files[name]), case.rng)).encode()
        about["files"][name] = hashlib.sha256(files[name]).hexdigest()
    else:
        about = odd(about, case.rng)
    for name, data in files.items():
        (folder / name).write_bytes(data)
    (folder / "suite.json").write_text(json.dumps(about))
    read = Suite.read(folder)
    for test in read.cases:
        _name(test)
        judged = run_case(test, toy.Reader(), read.oracle, limit_seconds=read.limit_seconds)
        str(StillFailingError(test, judged.kind or "wrong", judged.output, judged.score))
    return "unknowable"


def _wave(form: int, channels: int, rate: int, width: int, data: bytes, *, claimed: int | None = None) -> bytes:
    align = channels * width // 8
    head = struct.pack("<HHIIHH", form, channels & 65535, rate, (rate * align) & 0xFFFFFFFF, align & 65535, width)
    size = len(data) if claimed is None else claimed
    body = b"WAVEfmt " + struct.pack("<I", len(head)) + head + b"data" + struct.pack("<I", size) + data
    return b"RIFF" + struct.pack("<I", len(body)) + body


def headers(case: Case) -> str:
    """A sound whose header claims something: a size, a rate, a number of channels, an encoding, another container."""
    rng = case.rng
    path = case.folder / "a.wav"
    kind = int(rng.integers(4))
    if kind == 0:
        claims = [0, 1, 2, 255, 256, 1024, 65535]
        rates = [0, 1, 99, 100, 8000, 10**6, 10**6 + 1, 2**31 - 1, 2**31, 2**32 - 1]
        forms = [0, 1, 2, 3, 6, 7, 17, 49, 85, 0xFFFE]
        data = rng.bytes(int(rng.integers(0, 3000)))
        claimed = [None, 0, 1, 2**31 - 1, 2**31, 2**32 - 1, 0x7FFFF000, len(data) + 1][rng.integers(8)]
        channels = claims[rng.integers(len(claims))] if rng.random() < 0.5 else 1
        rate = rates[rng.integers(len(rates))] if rng.random() < 0.5 else 16_000
        form = forms[rng.integers(len(forms))] if rng.random() < 0.5 else 1
        width = [0, 1, 4, 8, 12, 16, 24, 32, 64, 65528][rng.integers(10)] if rng.random() < 0.5 else 16
        path.write_bytes(_wave(form, channels, rate, width, data, claimed=claimed))
    elif kind == 1:
        forms_and_ends = [
            ("AIFF", "PCM_16"), ("W64", "PCM_16"), ("RF64", "PCM_16"), ("CAF", "PCM_16"), ("AU", "FLOAT"),
            ("VOC", "PCM_16"), ("NIST", "PCM_16"), ("IRCAM", "PCM_16"), ("MAT5", "DOUBLE"), ("SVX", "PCM_16"),
            ("WAV", "MS_ADPCM"), ("WAV", "IMA_ADPCM"), ("WAV", "GSM610"), ("WAV", "ULAW"), ("WAVEX", "PCM_24"),
        ]  # fmt: skip
        name, subtype = forms_and_ends[rng.integers(len(forms_and_ends))]
        buffer = io.BytesIO()
        sf.write(buffer, np.sin(np.arange(3000) / 20) * 0.3, 16_000, format=name, subtype=subtype)
        path.write_bytes(mutated(buffer.getvalue(), rng) if rng.random() < 0.8 else buffer.getvalue())
    elif kind == 2:
        path.write_bytes(_damaged_ogg(rng))
    else:
        path = case.folder / ("a.mp3", "a.flac", "a.ogg", "a.opus", "a.npy", "a.txt")[rng.integers(6)]
        start = (
            b"ID3\x04\0\0\x7f\x7f\x7f\x7f", b"fLaC\x80\xff\xff\xff", b"OggS", b"RIFF\0\0\0\0WAVE",
            b"\xff\xfb\x90\0", b"\x93NUMPY\x01\0", b"TAG", b"#!", b"",
        )  # fmt: skip
        path.write_bytes(start[rng.integers(len(start))] + rng.bytes(int(rng.integers(0, 5000))))
    offset, duration = [(0.0, None), (0.01, None), (0.0, 0.05), (1e6, None), (0.0, 1e9)][rng.integers(5)]
    if path.suffix in (".npy", ".txt"):
        _ = dc.read_corpus(path)[0].input
        return "unknowable"
    audio = dc.Audio.read(path, offset=offset, duration=duration)
    if not len(audio) or not np.isfinite(audio.samples).all():
        return "wrong"
    audio.resample(16_000 if audio.rate > 16_000 else audio.rate)
    return "unknowable"


@cache
def _ogg() -> bytes:
    buffer = io.BytesIO()
    sf.write(buffer, np.sin(np.arange(20_000) / 20) * 0.3, 16_000, format="OGG", subtype="VORBIS")
    return buffer.getvalue()


@cache
def _ogg_table() -> tuple[int, ...]:
    table = []
    for value in range(256):
        value <<= 24
        for _ in range(8):
            value = (value << 1) ^ 0x04C11DB7 if value & 0x80000000 else value << 1
        table.append(value & 0xFFFFFFFF)
    return tuple(table)


def _damaged_ogg(rng: np.random.Generator) -> bytes:
    """An Ogg file in which one page is another, with the right checksum."""
    starts = [at for at in range(len(_ogg())) if _ogg().startswith(b"OggS", at)]
    pages = [_ogg()[start:end] for start, end in zip(starts, [*starts[1:], None], strict=True)]
    place = int(rng.integers(len(pages)))
    page = bytearray(pages[place])
    for _ in range(int(rng.integers(1, 4))):
        page[int(rng.integers(4, len(page)))] = int(rng.integers(256))
    page[22:26] = bytes(4)
    register = 0
    for byte in page:
        register = ((register << 8) & 0xFFFFFFFF) ^ _ogg_table()[register >> 24 ^ byte]
    page[22:26] = struct.pack("<I", register)
    return b"".join([*pages[:place], bytes(page), *pages[place + 1 :]])


def transformed(case: Case) -> str:
    """A change of ours, with the widest parameters, on an extreme sound or text: it is refused, or stays finite."""
    rng = case.rng
    names = sorted(NAMES)
    kind = NAMES[names[rng.integers(len(names))]]
    limits = getattr(kind, "LIMITS", {})
    ranges = {name: (low, high) for name, (low, high) in limits.items() if name in getattr(kind, "RANGES", {})
              and np.isfinite([low, high]).all()}  # fmt: skip
    change = kind.draw(rng, **(ranges if rng.random() < 0.5 else {}))
    rate = (100, 8000, 16_000, 44_100, 192_000)[rng.integers(5)]
    count = (1, 2, 3, 17, 400, 5000)[rng.integers(6)]
    sounds = (
        np.zeros(count), np.ones(count), np.full(count, 1e30), np.full(count, 1e-40), rng.standard_normal(count),
        np.sign(rng.standard_normal(count)), np.full(count, -3.4e38), np.linspace(-1, 1, count),
    )  # fmt: skip
    values: tuple[Any, ...] = (dc.Audio(sounds[rng.integers(len(sounds))].astype(np.float32), rate),)
    if not isinstance(change, dc.transformations.Transformation):
        arrays = rng.standard_normal((count, 3)).astype(np.float32)
        odd_texts = ("", " ", "a", "x" * 3000, "\0", "caf\udce9", "\x1b[2J", "\U0001f600 b", "1 2 3", "Ab cd. Ef?")
        values = (odd_texts[rng.integers(len(odd_texts))], arrays, np.zeros((0, 3), np.float32), *values)
    value = values[rng.integers(len(values))]
    made = change(value)
    if type(made) is not type(value):
        return "wrong"
    if isinstance(made, dc.Audio) and (made.rate != value.rate or not np.isfinite(made.samples).all()):
        return "wrong"
    return "right"


SYSTEM = """
import deepcruiser as dc, numpy as np

class System:
    def run(self, batch):
        return [dc.Run("a", dc.Trace(np.zeros((3, 2)), np.zeros((2, 2)))) for _ in batch]

system = System()
"""


def folders(case: Case) -> str:
    """A data folder with something odd in it: a pipe, a loop, an odd name, a folder named like a file."""
    rng, folder = case.rng, case.folder / "data"
    for number in range(2):
        corpora.sound(folder / f"{number}.wav")
    names = ("a.wav", "a\nb.wav", "caf\udce9.wav", "\x1b[2J.wav", "-o.wav", "=1.wav", " .wav", "a" * 240 + ".wav",
             "text", "wav.scp", "segments", "feats.scp", "a.trans.txt", "transcripts.tsv", "a.npy", "deepcruiser.toml",
             "a.json")  # fmt: skip
    for _ in range(int(rng.integers(1, 4))):
        path = folder / names[rng.integers(len(names))]
        if path.exists() or path.is_symlink():
            continue
        kind = int(rng.integers(7))
        if kind == 0:
            os.mkfifo(path)
        elif kind == 1:
            path.mkdir()
        elif kind == 2:
            path.symlink_to(("/dev/zero", path.name, "..", "/proc/self/mem", "nowhere")[rng.integers(5)])
        elif kind == 3:
            path.write_bytes(b"")
        elif kind == 4:
            with open(path, "wb") as file:
                file.truncate(2**36)
        elif kind == 5:
            path.write_bytes(rng.bytes(300))
        else:
            path.write_bytes(mutated((folder / "0.wav").read_bytes(), rng))
    if rng.random() < 0.3:
        os.chdir(case.folder)
        Path("own.py").write_text(SYSTEM)
        fuzz = ["fuzz", "--guide", "none", "--runs", "4", "--disagreement", "--workers", "0", "-o", "run"]
        kinds = (["profile", "-o", "a.profile"], ["seeds", "-o", "seeds.html"], fuzz)
        command, *rest = kinds[rng.integers(3)]
        try:
            invoke(command, "--system", "own.py:system", "--data", "data", *rest)
        finally:
            sys.modules.pop("own", None)
        return "right"
    for sample in dc.read_corpus(folder):
        with contextlib.suppress(dc.DeepCruiserError):
            _ = sample.input
    return "right"


def archives(case: Case) -> str:
    """Offsets and ranges in a list of an archive of Kaldi."""
    from tests.support import kaldi_files

    kaldi_files.archive(case.folder / "feats.ark")
    size = (case.folder / "feats.ark").stat().st_size
    offsets = [0, 1, 3, 5, size - 1, size, size + 1, 2**31, 2**63, 10**30, -1, int(case.rng.integers(size))]
    ends = ["", "[0:1]", "[5:1]", "[0:99999999]", "[,1:2]", "[", "[a:b]", ":3", " x", "|", "\0"]
    lines = [
        f"u{n} {('feats.ark', '/dev/zero', '..', 'none.ark')[case.rng.integers(4) * (case.rng.random() < 0.2)]}:"
        f"{offsets[case.rng.integers(len(offsets))]}{ends[case.rng.integers(len(ends)) * (case.rng.random() < 0.4)]}"
        for n in range(3)
    ]
    (case.folder / "feats.scp").write_text("\n".join(lines) + "\n")
    for sample in dc.read_corpus(case.folder / "feats.scp"):
        _ = sample.input
    return "unknowable"


@cache
def _keras_files() -> tuple[bytes, bytes]:
    from tests.quality.assault_targets import keras, keras2

    keras(Path("."), "net.keras")
    keras2(Path("."))
    return Path("net.keras").read_bytes(), Path("net.h5").read_bytes()


def keras_crafted(case: Case) -> str:
    """A network of Keras whose description has an odd value; checksums are right."""
    import h5py

    archive, hdf5 = _keras_files()
    if case.rng.random() < 0.5:
        path = case.folder / "odd.keras"
        with zipfile.ZipFile(io.BytesIO(archive)) as source, zipfile.ZipFile(path, "w") as target:
            for name in source.namelist():
                data = source.read(name)
                if name == "config.json":
                    data = json.dumps(odd(json.loads(data), case.rng)).encode()
                target.writestr(name, data)
    else:
        path = case.folder / "odd.h5"
        path.write_bytes(hdf5)
        with h5py.File(path, "r+") as file:
            kind = int(case.rng.integers(4))
            if kind < 3:
                described = json.dumps(odd(json.loads(file.attrs["model_config"]), case.rng))
                file.attrs["model_config"] = described.encode()
            else:
                del file[("model_weights", "model_weights/rnn")[case.rng.integers(2)]]
    from tests.quality.assault_targets import ran

    ran(dc.KerasSystem(path), 3)
    return "unknowable"


def onnx_crafted(case: Case) -> str:
    """An ONNX network with a changed node, shape, type, name or attribute."""
    import onnx

    from tests.quality.assault_targets import _onnx, ran

    rng = case.rng
    model = onnx.load_from_string(_onnx())
    graph = model.graph
    node = graph.node[rng.integers(len(graph.node))]
    numbers = (0, -1, 1, 2**31, 2**62, 7, 100_000)
    kind = int(rng.integers(9))
    if kind == 0 and node.input:
        node.input[int(rng.integers(len(node.input)))] = ("", "nothing", graph.input[0].name)[rng.integers(3)]
    elif kind == 1 and node.output:
        node.output[0] = ("", "twice", graph.input[0].name)[rng.integers(3)]
    elif kind == 2:
        node.op_type = ("Loop", "If", "Scan", "Sqrt", "\x1b[2J", "Reshape", "PythonOp", "LSTM")[rng.integers(8)]
        node.domain = ("", "evil", "com.microsoft", "ai.onnx.contrib")[rng.integers(4)]
    elif kind == 3 and node.attribute:
        attribute = node.attribute[rng.integers(len(node.attribute))]
        attribute.i = numbers[rng.integers(len(numbers))]
        attribute.s = b"\xff\x1b[2J"
    elif kind == 4 and graph.initializer:
        tensor = graph.initializer[rng.integers(len(graph.initializer))]
        if tensor.dims:
            tensor.dims[int(rng.integers(len(tensor.dims)))] = numbers[rng.integers(len(numbers))]
    elif kind == 5 and graph.initializer:
        tensor = graph.initializer[rng.integers(len(graph.initializer))]
        tensor.data_location = onnx.TensorProto.EXTERNAL
        tensor.external_data.add(key="location", value=("/etc/passwd", "../x", "\0", "x", "")[rng.integers(5)])
    elif kind == 6:
        shape = graph.input[0].type.tensor_type
        shape.elem_type = int(rng.integers(0, 20))
        for dimension in shape.shape.dim:
            if rng.random() < 0.5:
                dimension.dim_value = numbers[rng.integers(len(numbers))]
    elif kind == 7:
        graph.input[0].name = ("", "\x1b[2J", "caf\u00e9", "x" * 3000)[rng.integers(4)]
    else:
        model.ir_version = numbers[rng.integers(len(numbers))]
        model.opset_import[0].version = numbers[rng.integers(len(numbers))]
    path = case.folder / "odd.onnx"
    path.write_bytes(model.SerializeToString())
    ran(dc.OnnxSystem(path), 4)
    return "unknowable"


#: How a command is started in a process of its own: its environment and its streams.
ENVIRONMENTS: tuple[dict[str, str], ...] = (
    {}, {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONIOENCODING": "ascii"}, {"COLUMNS": "0"}, {"COLUMNS": "-5"},
    {"COLUMNS": "x", "LINES": "x"}, {"TERM": ""}, {"TERM": "dumb"}, {"DEEPCRUISER_MAX_BYTES": "-1"},
    {"DEEPCRUISER_MAX_BYTES": "10"}, {"DEEPCRUISER_MAX_BYTES": "9" * 50}, {"HOME": "/nowhere"},
    {"TMPDIR": "/nowhere"}, {"NO_COLOR": "1", "FORCE_COLOR": "1"}, {"TZ": "nowhere"}, {"PYTHONWARNINGS": "error"},
)  # fmt: skip
STREAMS = ("", ">&-", "2>&-", "<&-", "> /dev/full", "2> /dev/full", "| head -c 1", ">&- 2>&-")


def streams(case: Case) -> str:
    """A command with an odd environment, or with streams that are closed or full: a status of its own, no traceback."""
    os.chdir(case.folder)
    toy.campaign(Path("run"), runs=16)
    commands = (
        "report run --text", "status run", "findings run", "list transformations", "--help", "replay run --help",
        "report run --json", "report nothing",
    )  # fmt: skip
    command, stream = commands[case.rng.integers(len(commands))], STREAMS[case.rng.integers(len(STREAMS))]
    environment = {**os.environ, **ENVIRONMENTS[case.rng.integers(len(ENVIRONMENTS))]}
    line = f'set -o pipefail; "{sys.executable}" -m deepcruiser {command} {stream}'
    done = subprocess.run(["bash", "-c", line], env=environment, capture_output=True, timeout=60, check=False)
    output = (done.stdout + done.stderr).decode(errors="replace")
    if done.returncode not in (0, 1, 2, 4, 120 * ("&-" in stream), 141) or "Traceback" in output:
        raise AssertionError(f"{line}: {done.returncode} {output[-900:]}")
    return "right"


#: What the shell may take from a command: descriptors, sizes of files, memory, stack.
LIMITS = ("-n 9", "-n 16", "-n 40", "-f 8", "-f 40", "-f 200", "-v 900000", "-s 100", "-c 0")


def scarce(case: Case) -> str:
    """A command with few resources, or with Ctrl-C at some moment: its own status, and the campaign can be resumed."""
    os.chdir(case.folder)
    Path("own.py").write_text(OWN)
    fuzz = "fuzz --system own.py:system --data own.py:seeds --mutations own.py:mutations --guide none --disagreement"
    commands = (f"{fuzz} --runs 64 --workers 0 -o run", f"{fuzz} --runs 64 --workers 1 -o run", "report old",
                "findings old", "profile --system own.py:system --data own.py:seeds -o a.profile")  # fmt: skip
    at = int(case.rng.integers(len(commands)))
    if at in (2, 3):
        toy.campaign(Path("old"), runs=16)
    limit = LIMITS[case.rng.integers(len(LIMITS))]
    line = f'ulimit {limit} && exec "{sys.executable}" -m deepcruiser {commands[at]}'
    interrupted = case.rng.random() < 0.4
    if interrupted:
        line = f'exec "{sys.executable}" -m deepcruiser {commands[at]}'
    with subprocess.Popen(["bash", "-c", line], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          start_new_session=True) as process:  # fmt: skip
        if interrupted:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(float(case.rng.uniform(1, 4)))
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGINT)
        said = process.communicate(timeout=25)[0].decode(errors="replace")
    if process.returncode not in (0, 1, 2, 130, -signal.SIGINT * interrupted) or "Traceback" in said:
        raise AssertionError(f"{line}: {process.returncode} {said[-900:]}")
    if at < 2:
        invoke(*commands[0].split())
        sys.modules.pop("own", None)
        if len(dc.CampaignRecord.open("run", mutations=toy.MUTATIONS).runs) != 64:
            raise LostError("the campaign did not go on")
    return "clear error" if process.returncode == 2 else "right"


def experiment(case: Case) -> str:
    """Damaged files of runs and campaigns of `evaluate`."""
    from deepcruiser.evaluate.campaigns import _read as read_campaign
    from deepcruiser.evaluate.experiment import _read as read_about

    path = case.folder / "about.json"
    about = json.dumps({"system": "x", "seed": 0, "batch_size": 16, "oracle": {"type": "x"}}).encode()
    path.write_bytes(mutated(about, case.rng))
    (read_campaign if case.rng.random() < 0.5 else read_about)(path)
    return "unknowable"


def batch(folder: Path) -> None:
    from deepcruiser.evaluate.records import Batch, Record

    rng = np.random.default_rng(0)
    records = [
        Record(f"s{n}", (), "", "0" * 64, None, {"text": "a", "n": n}, 0.1 * n, rng.random((5, 2)).astype(np.float32),
               rng.random((4, 2)).astype(np.float32))
        for n in range(3)
    ]  # fmt: skip
    Batch(tuple(records), 1.0).save(folder / "a.batch")


def read_batch(folder: Path) -> Any:
    from deepcruiser.evaluate.records import Batch

    batch = Batch.load(folder / "a.batch", [(f"s{n}", ()) for n in range(3)])
    return batch.seconds, [(r.output, r.doubt, r.states.tolist(), r.inputs.tolist(), r.digest) for r in batch.records]


def monitor(folder: Path) -> None:
    from deepcruiser.monitor.calibration import Calibration
    from deepcruiser.monitor.scores import SCORES

    rng = np.random.default_rng(0)
    names = tuple(score.name for score in SCORES)
    scores = rng.random((60, len(names)))
    dc.Monitor(toy.model(), Calibration(names, scores, scores[:5] + 1, 0.05, 900, 0.02)).save(folder / "a.monitor")


def read_monitor(folder: Path) -> Any:
    read = dc.Monitor.load(folder / "a.monitor", toy.model())
    runs = toy.Reader().run(toy.texts(4, seed=3))
    assert read.calibration is not None
    calibration = {name: np.asarray(part).tolist() for name, part in asdict(read.calibration).items()}
    return [str(read.check(run)) for run in runs], calibration


def monitor_crafted(case: Case) -> str:
    """A monitor with right checksums and odd numbers or names."""
    from deepcruiser.files import archive

    monitor(case.folder)
    about, arrays = archive.load(case.folder / "a.monitor", "monitor")
    about = {key: value for key, value in about.items() if key not in ("format", "version", "arrays")}
    if case.rng.random() < 0.6:
        key = sorted(about)[case.rng.integers(len(about))]
        about[key] = odd(about[key], case.rng)
    else:
        name = ("clean", "bad")[case.rng.integers(2)]
        rows = arrays[name].copy()
        extreme = (np.nan, np.inf, -np.inf, 1e308, -1e308, 0.0)[case.rng.integers(6)]
        kind = int(case.rng.integers(4))
        if kind == 0:
            rows[case.rng.integers(len(rows))] = extreme
        elif kind == 1:
            rows = rows[: case.rng.integers(3)]
        elif kind == 2:
            rows = rows.astype((np.int8, np.complex128, "U3")[case.rng.integers(3)])
        else:
            rows = rows[:, :-1]
        arrays[name] = rows
    archive.save(case.folder / "a.monitor", "monitor", about, arrays)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        read_monitor(case.folder)
    return "unknowable"


CRAFTED: dict[str, tuple[Callable[[Case], str], float]] = {
    "campaigns: crafted rows": (rows, 1.5),
    "specs and suites: odd values": (settings, 4),
    "specs and suites: crafted suites": (suites, 3),
    "sounds: headers and containers": (headers, 8),
    "sounds: changes of extreme inputs": (transformed, 6),
    "corpora: odd folders": (folders, 3),
    "corpora: lists of archives of Kaldi": (archives, 3),
    "networks: Keras crafted": (keras_crafted, 2 * bool(find_spec("h5py"))),
    "networks: ONNX crafted": (onnx_crafted, 4 * bool(find_spec("onnx") and find_spec("onnxruntime"))),
    "commands: streams and environments": (streams, 0.2),
    "commands: few resources, Ctrl-C": (scarce, 0.1),
    "experiments: notes": (experiment, 1),
    "monitors: crafted": (monitor_crafted, 2),
}
