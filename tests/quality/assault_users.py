"""Other targets: texts in every place, oracles, changes, data in Python, odd files."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
from click.testing import CliRunner

import deepcruiser as dc
from deepcruiser.cli import main
from deepcruiser.errors import printable_lines
from deepcruiser.findings.cluster import find
from tests.quality.assault import Case, LostError, mutated
from tests.support import toy
from tests.support.journals import journal_of

#: Texts that mean something to a browser, a terminal, a spreadsheet, a file system or a parser.
HOSTILE = (
    "</script><x-evil>",
    "<x-evil>",
    "'\"><x-evil onclick=evil()>",
    "--><x-evil>",
    "]]><x-evil>",
    "{{ 7 * 7 }}{% x-evil %}",
    "javascript:evil()",
    "&lt;x-evil&gt;",
    "\x1b]0;evil\x07\x1b[2J",
    "\x9b2J",
    "\u202egnp.exe",
    "a\nb\rc",
    "a\0b",
    "../../../evil",
    "/evil",
    "..",
    ".",
    "CON",
    "x" * 3000,
    "caf\udce9",
    "\ud800\udfff",
    "=HYPERLINK(evil)",
    "%s%n{0}",
    "\U0010ffff",
    " ",
)


def _hostile(rng: np.random.Generator) -> str:
    text = HOSTILE[rng.integers(len(HOSTILE))]
    return text + HOSTILE[rng.integers(len(HOSTILE))] if rng.random() < 0.3 else text


class _Tags(HTMLParser):
    """The tags of a page that a hostile text has made, and attributes that run code."""

    def __init__(self) -> None:
        super().__init__()
        self.evil: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            runs = name.startswith("on") or (value or "").strip().lower().startswith("javascript:")
            if runs and "evil" in (value or ""):
                self.evil.append(f"{tag} {name}={value}")
        if tag == "x-evil":
            self.evil.append(tag)


@dataclass(frozen=True)
class Renamed:
    """A change with a text of its own."""

    text: str

    def __call__(self, value: str) -> str:
        return value[::-1]

    @classmethod
    def draw(cls, rng: np.random.Generator) -> Renamed:
        return cls(_hostile(rng))


class Named(toy.Reader):
    """The reader under a hostile name, with hostile answers."""

    def __init__(self, rng: np.random.Generator) -> None:
        super().__init__()
        self._name, self._answers = _hostile(rng), {name: _hostile(rng) for name in ("high", "low")}

    def __repr__(self) -> str:
        return self._name

    def run(self, batch: Any) -> Any:
        return [replace(run, output=self._answers[run.output]) for run in super().run(batch)]


def texts(case: Case) -> str:
    """A campaign whose ids, labels, answers, changes and names are hostile, in everything that shows it."""
    names = {_hostile(case.rng) + str(number): value for number, value in enumerate(toy.texts(8, seed=1))}
    data = [toy.Text(name, value, _hostile(case.rng)) for name, value in names.items()]
    folder, system = case.folder / "run", Named(case.rng)
    mutations = dc.Mutations((Renamed,), families=(), unaffected=(Renamed,), invalid=toy.MUTATIONS.invalid)
    record = toy.campaign(
        folder, data, system=system, mutations=mutations, runs=16,
        oracle=dc.Disagreement(against="output" if case.rng.random() < 0.5 else "text"),
        keep_failing_seeds=True,
    )  # fmt: skip
    os.chdir(case.folder)
    page = dc.report(folder, path=case.folder / "page.html")
    outcome = find(record)
    for shown in (record, outcome, record.model, *record.failed[:2], page):
        _check_html(getattr(shown, "_repr_html_", str)())
    _check_html((case.folder / "page.html").read_text("utf-8"))
    for arguments in (
        ["report", "run", "--text"], ["report", "run", "--junit", "run.xml"], ["findings", "run"], ["status", "run"],
        ["history", "run", "-o", "history.html"], ["replay", "run"], ["export", "run", "--queue", "queue"],
    ):  # fmt: skip
        result = CliRunner().invoke(main, arguments)
        text = printable_lines(result.output)
        if result.exit_code not in (0, 1, 2, 4) or text != result.output or "Traceback" in text:
            raise AssertionError(f"{arguments}: {result.exit_code} {result.output[-600:]!r}")
    for path in case.folder.glob("*.html"):
        _check_html(path.read_text("utf-8"))
    for path in case.folder.glob("*.xml"):
        ElementTree.parse(path)
    outside = [path for path in case.folder.iterdir() if path.name not in _EXPECTED]
    if outside or any(Path(case.folder.parent, name).exists() for name in ("evil", "../evil")):
        raise AssertionError(f"written elsewhere: {outside}")
    return "right"


_EXPECTED = ("run", "page.html", "run.xml", "history.html", "queue")


def _check_html(page: str) -> None:
    tags = _Tags()
    tags.feed(page)
    tags.close()
    if tags.evil:
        raise AssertionError(f"a text has become {tags.evil[:3]}")
    if "49{%" in page:
        raise AssertionError("a text was taken for a template")


class _Ugly:
    def __repr__(self) -> str:
        raise RuntimeError("no text")

    def __float__(self) -> float:
        raise ValueError


def _raise(error: BaseException) -> Any:
    raise error


#: What a method of a user's object may give.
VALUES: tuple[Callable[[], Any], ...] = (
    lambda: None,
    lambda: "text",
    lambda: float("nan"),
    lambda: float("-inf"),
    lambda: 10**400,
    lambda: 1 + 2j,
    lambda: np.zeros(3),
    lambda: np.array([np.nan]),
    lambda: [],
    lambda: _Ugly(),
    lambda: b"bytes",
    lambda: _raise(ValueError("\x1b[2J" * 100)),
    lambda: _raise(KeyError(_Ugly)),
    lambda: _raise(SystemExit(0)),
    lambda: _raise(RecursionError()),
    lambda: True,
    lambda: np.float32(0.5),
)


class OddOracle:
    """A user's oracle with one method that misbehaves now and then."""

    def __init__(self, case: Case) -> None:
        self._rng, self._true = case.rng, dc.Disagreement()
        self._odd = ("name", "reference", "score", "fails", "distance", "follow")[case.rng.integers(6)]
        self._value = VALUES[case.rng.integers(len(VALUES))]

    def _or_odd(self, name: str, value: Any) -> Any:
        return self._value() if name == self._odd and self._rng.random() < 0.2 else value

    @property
    def name(self) -> Any:
        return self._or_odd("name", "odd")

    def reference(self, text: Any, output: Any) -> Any:
        return self._or_odd("reference", output)

    def score(self, reference: Any, output: Any) -> Any:
        return self._or_odd("score", self._true.score(reference, output))

    def fails(self, score: Any) -> Any:
        return self._or_odd("fails", self._true.fails(score))

    def distance(self, reference: Any, run: Any) -> Any:
        return self._or_odd("distance", 0.5)

    def follow(self, reference: Any, seed: Any, recipe: Any, mutant: Any) -> Any:
        return self._or_odd("follow", reference)


@dataclass(frozen=True)
class OddChange:
    """A user's change that returns something odd."""

    which: int

    def __call__(self, value: str) -> Any:
        return VALUES[self.which]() if self.which < len(VALUES) else value + "a"

    @classmethod
    def draw(cls, rng: np.random.Generator) -> OddChange:
        return cls(int(rng.integers(2 * len(VALUES))))


def users_code(case: Case) -> str:
    """An oracle or changes that misbehave; what was reported is stored, and can be resumed with those that do not."""
    reported: set[int] = set()
    odd: dict[str, Any] = {}
    if case.rng.random() < 0.6:
        odd["oracle"] = OddOracle(case)
    else:
        odd["mutations"] = dc.Mutations((OddChange,), families=(), unaffected=(OddChange,))

    def watch(status: Any) -> None:
        reported.update(event.number for event in status.events if getattr(event, "outcome", "") == "failed"
                    and hasattr(event, "number"))  # fmt: skip

    refused: dc.DeepCruiserError | None = None
    try:
        toy.campaign(case.folder / "run", runs=32, watch=watch, **odd)
    except dc.DeepCruiserError as error:
        refused = error
    with contextlib.suppress(dc.FileError):  # it may have ended before it began
        record = dc.CampaignRecord.open(case.folder / "run", mutations=odd.get("mutations", toy.MUTATIONS))
        if record.problem or not reported <= {test.number for test in record.failed}:
            raise LostError(f"{record.problem} {sorted(reported)}")
    if refused is not None:
        raise refused
    return "right"


class _Careful(toy.Reader):
    """The reader, which raises an error for anything but a text of its symbols."""

    def _run(self, text: Any) -> dc.Run:
        if not isinstance(text, str) or not set(text) <= set(toy.SYMBOLS):
            raise dc.InputError("the reader needs a text of brackets and letters")
        return super()._run(text)


class _Item:
    """An item of some data, all of whose fields may be odd."""

    def __init__(self, fields: dict[str, Any]) -> None:
        self._fields = fields

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name not in self._fields:
            raise AttributeError(name)
        value = self._fields[name]
        return value() if callable(value) else value


def data(case: Case) -> str:
    """Inputs given in Python, some of them odd: with other ids, texts and values, or an iterator that raises."""
    items: list[Any] = list(toy.seeds(8))
    for _ in range(int(case.rng.integers(1, 4))):
        place, value = int(case.rng.integers(len(items))), VALUES[case.rng.integers(len(VALUES))]
        field = ("id", "input", "text", "")[case.rng.integers(4)]
        plain = {"id": "odd", "input": "(a)", "text": None}
        items[place] = _Item({**plain, field: value}) if field else (value if case.rng.random() < 0.2 else "(a)")
    seeds: Any = items
    kind = int(case.rng.integers(4))
    if kind == 0:
        seeds = _failing(items)
    elif kind == 1:
        seeds = tuple(items)
    elif kind == 2:
        seeds = {"a": items}
    action = int(case.rng.integers(3))
    if action == 0:
        dc.profile(_Careful(), seeds)
    elif action == 1:
        dc.cover(toy.model(), _Careful(), seeds)
    else:
        toy.campaign(case.folder / "run", seeds, runs=8)
    return "right"


def _failing(items: list[Any]) -> Iterator[Any]:
    yield from items
    raise dc.FileError("the data ended too early")


def odd_files(case: Case) -> str:
    """A campaign folder in which one file is a pipe, a folder, a link or something else."""
    folder = case.folder / "run"
    toy.campaign(folder, runs=24)
    os.chdir(case.folder)
    CliRunner().invoke(main, ["findings", "run"])
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    path = files[case.rng.integers(len(files))]
    content = path.read_bytes()
    path.unlink()
    kind = int(case.rng.integers(7))
    if kind == 0:
        os.mkfifo(path)
    elif kind == 1:
        path.mkdir()
    elif kind == 2:
        path.symlink_to("/dev/zero")
    elif kind == 3:
        path.symlink_to(path.name)
    elif kind == 4:
        with open(path, "wb") as file:
            file.truncate(2**40)
    elif kind == 5:
        path.write_bytes(mutated(content, case.rng))
    before = {each: each.read_bytes() for each in files if each != path}
    for arguments in (["report", "run"], ["findings", "run"], ["status", "run"], ["replay", "run"], ["history", "run"]):
        result = CliRunner().invoke(main, arguments)
        text = printable_lines(result.output)
        if result.exit_code not in (0, 1, 2, 4) or text != result.output or "Traceback" in text:
            raise AssertionError(f"{path.name} {kind} {arguments}: {result.exit_code} {result.output[-600:]!r}")
    if path.name != "campaign.db" and any(each.suffix in (".txt", ".json") and each.read_bytes() != was
                                          for each, was in before.items() if "failed" in each.parts):  # fmt: skip
        raise LostError("reading has changed what was stored")
    return "right"


#: What the database of somebody else may have besides its rows.
SCHEMAS = (
    "ALTER TABLE {0} RENAME TO x; CREATE VIEW {0} AS WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c) "
    "SELECT n, 1 FROM c",
    "CREATE TRIGGER t AFTER INSERT ON {0} BEGIN DELETE FROM {0}; END",
    "CREATE TRIGGER t BEFORE INSERT ON {0} BEGIN SELECT RAISE(IGNORE); END",
    "ALTER TABLE {0} ADD COLUMN x AS (zeroblob(1000000000))",
    "ALTER TABLE {0} ADD COLUMN x DEFAULT 'x'",
    "CREATE INDEX i ON {0} (zeroblob(100000000))",
    "DROP TABLE {0}",
)


def planted(case: Case) -> str:
    """A campaign folder that somebody has prepared: nothing beside it changes, and nothing is lost without a word."""
    rng, folder, home = case.rng, case.folder / "run", case.folder / "home"
    before = len(toy.campaign(folder, runs=24).runs)
    os.chdir(case.folder)
    home.mkdir()
    contents = {name: name.encode() * 99 for name in (".bashrc", "notes.txt", "000001.txt", ".000001.txt")}
    for name, content in contents.items():
        (home / name).write_bytes(content)
    kind = int(rng.integers(4))
    if kind == 0:
        names = ("lock", "campaign.db-wal", "campaign.db-shm", "campaign.db-journal", "report.html", "shrunk.json",
                 "failed/000001.json", "failed/000030.txt", "failed/000030.json")  # fmt: skip
        path = folder / names[rng.integers(len(names))]
        path.unlink(missing_ok=True)
        path.symlink_to(home / "notes.txt")
    elif kind == 1:
        path = folder / ("failed", "seeds")[rng.integers(2)]
        shutil.rmtree(path, ignore_errors=True)
        path.symlink_to(home)
    elif kind == 2:
        (folder / "campaign.db-journal").write_bytes(journal_of(home / "notes.txt"))
    else:
        table = ("meta", "seeds", "runs", "moments")[rng.integers(4)]
        with contextlib.closing(sqlite3.connect(folder / "campaign.db")) as db, contextlib.suppress(sqlite3.Error):
            db.executescript(SCHEMAS[rng.integers(len(SCHEMAS))].format(table))
    for arguments in (["report", "run"], ["findings", "run"], ["status", "run"]):
        result = CliRunner().invoke(main, arguments)
        if result.exit_code not in (0, 1, 2) or "Traceback" in result.output:
            raise AssertionError(f"{kind} {arguments}: {result.exit_code} {result.output[-600:]!r}")
    try:
        if len(toy.campaign(folder, runs=48).runs) < max(before, 48):
            raise LostError("runs are missing")
    finally:
        for name, content in contents.items():
            if (home / name).read_bytes() != content:
                raise LostError(f"{name} beside the folder has changed")
        if len(list(home.iterdir())) != len(contents):
            raise LostError("there are new files beside the folder")
    return "right"


def results(case: Case) -> str:
    """Damaged results of shrinking and damaged paths of failing tests."""
    folder = case.folder / "run"
    record = toy.campaign(folder, runs=24)
    shrunk = {"reader 0": [{"number": test.number, "of": test.digest} for test in record.failed]}
    path = folder / "shrunk.json"
    path.write_bytes(mutated(json.dumps(shrunk).encode(), case.rng))
    from deepcruiser.findings.results import read_shrunk

    try:
        read_shrunk(record, system="reader 0")
    finally:
        shutil.rmtree(folder)
    return "unknowable"


USERS: dict[str, tuple[Callable[[Case], str], float]] = {
    "texts: in pages, tables and terminals": (texts, 0.7),
    "users' code: oracles and changes": (users_code, 3),
    "users' code: data in Python": (data, 3),
    "campaigns: odd files": (odd_files, 1),
    "campaigns: prepared folders": (planted, 1),
    "campaigns: results of shrinking": (results, 1),
}
