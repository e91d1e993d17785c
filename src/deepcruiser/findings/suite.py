"""A regression suite: one small test per finding, in a folder that needs nothing but the system.

suite.json names the system, the oracle, and the SHA-256 of every file. Each test is a JSON file (what was expected,
what came, the recipe, why) and its input beside it. known.txt, written by hand, lists tests that are known to fail: an
id and a reason on each line.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from deepcruiser.campaign.executors.local import execution, run_all
from deepcruiser.campaign.record import CampaignRecord
from deepcruiser.campaign.spec import CampaignSpec, Component
from deepcruiser.campaign.verdict import Verdict, moved_reference, verdict
from deepcruiser.corpora.corpus import Sample
from deepcruiser.errors import DeepCruiserError, FileError, InputError, MismatchError
from deepcruiser.files.atomic import atomic_write
from deepcruiser.files.reading import parse_json, read_bytes, read_text
from deepcruiser.findings.corpus import write_input
from deepcruiser.findings.finding import Finding
from deepcruiser.oracles import Oracle
from deepcruiser.serialise import decode, digest_of, encode, summarise
from deepcruiser.trace import System
from deepcruiser.transformations import to_dict

SUITE, KNOWN = "suite.json", "known.txt"
FORMAT = 1


@dataclass(frozen=True, eq=False)
class Case:
    """A test of a suite: the finding that it stands for, its input, and what was expected."""

    id: str
    title: str
    why: str
    path: Path
    #: "wrong", "crash", "time-out" or "not finite": how it failed.
    kind: str
    #: The kind of failure, the words or labels that were expected and that came, and the last change.
    symptom: tuple[str, str, str, str]
    reference: Any
    output: Any
    score: float
    seed: str
    recipe: tuple[Mapping[str, Any], ...]
    #: SHA-256 of the input's samples, as in the campaign.
    digest: str
    #: Why it is known to fail; empty if it is not.
    known: str

    @property
    def input(self) -> Any:
        """The input, read anew."""
        return Sample(self.id, self.path).input


@dataclass(frozen=True, eq=False)
class Suite:
    """The tests of a folder. `Suite.read` checks that no file has changed."""

    folder: Path
    system: str
    #: The working directory that the path of the system is relative to: "relative" to the folder, and "absolute".
    directory: Mapping[str, str]
    limit_seconds: float | None
    oracle: Oracle
    cases: tuple[Case, ...]

    @classmethod
    def read(cls, folder: str | os.PathLike[str]) -> Suite:
        """Read a suite that `write_suite` wrote."""
        folder = Path(folder)
        data = _suite_data(folder)
        known = _known(folder)
        try:
            oracle = CampaignSpec(oracle=Component.from_dict("oracle", data["oracle"])).build_oracle()
            cases = [_case(folder, data["files"], name, known) for name in data["tests"]]
            if unknown := set(known) - {case.id for case in cases}:
                raise FileError(f"{str(folder / KNOWN)!r} lists {min(unknown)!r}, which the suite does not have")
            return cls(folder, data["system"], data["directory"], data["limit_seconds"] or None, oracle, tuple(cases))
        except DeepCruiserError:
            raise
        except Exception as error:  # a damaged file may hold anything
            raise FileError(f"{str(folder / SUITE)!r} is damaged, or of another version ({error!r})") from None


def run_case(case: Case, system: System, oracle: Oracle, *, limit_seconds: float | None = None) -> Verdict:
    """Run the system on the input of a test and judge the answer; the verdict's kind is empty if it passes."""
    (result,) = run_all(system, [case.input], limit_seconds=limit_seconds)
    return verdict(execution(case.digest, result, None), oracle, lambda _: case.reference)


def write_suite(
    folder: str | os.PathLike[str],
    record: CampaignRecord,
    findings: Sequence[Finding],
    *,
    system: str = "",
) -> Suite:
    """Write a test for each finding: its worst example, shrunk if it was. An existing suite grows by the new ones.

    `system` names the system as it is typed, relative to the current directory.
    """
    folder, spec = Path(folder), record.spec
    if folder.exists() and not (folder / SUITE).is_file() and (not folder.is_dir() or any(folder.iterdir())):
        raise FileError(f"cannot write a suite to {str(folder)!r}: it has other files; use a new folder")
    oracle = spec.build_oracle()
    data = _suite_data(folder) if (folder / SUITE).is_file() else _new(folder, record, system)
    if data["oracle"] != spec.oracle.to_dict():
        raise MismatchError(
            f"the suite in {str(folder)!r} judges by {data['oracle']}, and the campaign by {spec.oracle.to_dict()}: "
            "use another folder"
        )
    folder.mkdir(parents=True, exist_ok=True)
    for finding in findings:
        name = f"{finding.id}.json"
        if name in data["tests"]:
            continue
        path, content = _written(folder, record, finding, oracle)
        with atomic_write(folder / name) as file:
            file.write(json.dumps(content, indent=2, ensure_ascii=False).encode(errors="backslashreplace"))
        data["files"] |= {path.name: _sha256_of(path), name: _sha256_of(folder / name)}
        data["tests"].append(name)
    with atomic_write(folder / SUITE) as file:
        file.write(json.dumps(data, indent=2, ensure_ascii=False).encode(errors="backslashreplace"))
    return Suite.read(folder)


def _new(folder: Path, record: CampaignRecord, system: str) -> dict[str, Any]:
    here = os.path.abspath(os.curdir)
    return {
        "format": FORMAT,
        "system": system,
        "directory": {"relative": os.path.relpath(here, os.path.realpath(folder)), "absolute": here},
        "limit_seconds": record.spec.limit_seconds or 0.0,
        "oracle": record.spec.oracle.to_dict(),
        "tests": [],
        "files": {},
    }


def _written(folder: Path, record: CampaignRecord, finding: Finding, oracle: Oracle) -> tuple[Path, dict[str, Any]]:
    """Write the input of a finding's test; where it is, and what the JSON file beside it says."""
    test, shrunk = finding.worst.test, finding.worst.shrunk
    recipe = finding.worst.recipe
    value = record.inputs.make(test.seed, recipe)
    seed = partial(record.inputs.make, test.seed, ())
    reference = moved_reference(oracle, test.seed_reference, seed, recipe, lambda: value)
    path = write_input(folder / finding.id, value)
    output, score = (test.output, test.score) if shrunk is None else (shrunk.output, shrunk.score)
    return path, {
        "id": finding.id,
        "title": finding.title,
        "why": finding.explanation,
        "input": path.name,
        "sha256": digest_of(value),
        "kind": test.kind,
        "symptom": list(finding.cause.symptom),
        "expected": encode(reference),
        "got": summarise(output),
        "score": score,
        "seed": test.seed,
        "recipe": [to_dict(change) for change in recipe],
        "run": test.number,
    }


def _suite_data(folder: Path) -> dict[str, Any]:
    path = folder / SUITE
    if not path.is_file():
        raise FileError(f"there is no suite in {str(folder)!r}: it has no {SUITE}")
    try:
        data: dict[str, Any] = parse_json(read_bytes(path))
        version = data["format"]
    except (ValueError, KeyError, TypeError) as error:
        raise FileError(f"{str(path)!r} is not what `deepcruiser export --suite` writes ({error!r})") from None
    if version != FORMAT:
        raise FileError(
            f"{str(path)!r} has format {version} and this version reads format {FORMAT}: export the suite again"
        )
    return data


def _case(folder: Path, files: Mapping[str, str], name: str, known: Mapping[str, str]) -> Case:
    data = parse_json(read_bytes(_unchanged(folder, files, name)))
    path = _unchanged(folder, files, data["input"])
    for key in ("id", "title", "why", "kind", "seed", "sha256"):
        if not isinstance(data[key], str):
            raise ValueError(f"{name}: {key} is {data[key]!r}")
    if any(not isinstance(change["name"], str) for change in data["recipe"]):
        raise ValueError(f"{name}: a change of its recipe has no name")
    return Case(
        data["id"], data["title"], data["why"], path, data["kind"], _symptom(data), decode(data["expected"]),
        data["got"], float(data["score"]), data["seed"], tuple(data["recipe"]), data["sha256"],
        known.get(data["id"], ""),
    )  # fmt: skip


def _symptom(data: Mapping[str, Any]) -> tuple[str, str, str, str]:
    kind, expected, got, change = map(str, data["symptom"])
    return kind, expected, got, change


def _unchanged(folder: Path, files: Mapping[str, str], name: str) -> Path:
    """A file of the suite; an error if it is not the one that was written."""
    if Path(name).name != name:
        raise FileError(f"{str(folder / SUITE)!r} names {name!r}, which is not in its folder")
    path = folder / name
    if not path.is_file():
        raise FileError(f"{str(path)!r} is missing from the suite")
    if _sha256_of(path) != files[name]:
        raise FileError(
            f"{str(path)!r} has changed since the suite was written: its SHA-256 is {_sha256_of(path)[:12]} instead of "
            f"{files[name][:12]}"
        )
    return path


def _known(folder: Path) -> dict[str, str]:
    path = folder / KNOWN
    if not path.is_file():
        return {}
    lines = [line.split(maxsplit=1) for line in read_text(path, encoding="utf-8").splitlines()]
    return {words[0]: (words[1] if len(words) > 1 else "known") for words in lines if words and words[0][0] != "#"}


def located_system(suite: Suite) -> str:
    """The suite's system as it is found from the current directory."""
    file, colon, name = suite.system.rpartition(":") if ".py:" in suite.system else (suite.system, "", "")
    if not colon and not Path(file).suffix:
        return suite.system
    bases = [suite.folder / suite.directory["relative"], Path(suite.directory["absolute"])]
    place = next((base / file for base in bases if (base / file).exists()), None)
    if place is None:
        raise InputError(
            f"the system {suite.system!r} of the suite in {str(suite.folder)!r} was not found: name another"
        )
    return f"{os.path.realpath(place)}{colon}{name}"


def _sha256_of(path: Path) -> str:
    """SHA-256 of a file's bytes."""
    return hashlib.sha256(read_bytes(path)).hexdigest()
