"""The results of shrinking so far, in a campaign's folder, so that nothing is shrunk twice."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, replace
from typing import Any

from deepcruiser.abstraction.model import AbstractModel
from deepcruiser.campaign.executors.base import Executor
from deepcruiser.campaign.failed_test import FailedTest
from deepcruiser.campaign.record import CampaignRecord
from deepcruiser.errors import FileError, InputError
from deepcruiser.files.atomic import atomic_write
from deepcruiser.files.reading import parse_json, read_bytes
from deepcruiser.findings.cluster import Findings, find, oracle_of
from deepcruiser.findings.finding import Finding
from deepcruiser.findings.leaving import leaving
from deepcruiser.findings.region import parting
from deepcruiser.findings.shrink import Shrunk, Threshold, shrink
from deepcruiser.serialise import summarise
from deepcruiser.trace import System
from deepcruiser.transformations import from_dict, to_dict

#: For each system, by its fingerprint, the tests that were shrunk with it.
SHRUNK = "shrunk.json"
#: Results are written after this many, and at the end, also when it is interrupted.
_UNSAVED = 16


def read_shrunk(record: CampaignRecord, *, system: str) -> dict[int, Shrunk]:
    """The shrunk failing tests by number, for the system with that fingerprint.

    What was found with another system, or for a test that has since become another, is left out.
    """
    path = record.folder / SHRUNK
    if not path.is_file():
        return {}
    try:
        data = parse_json(read_bytes(path))
        digests = {test.number: test.digest for test in record.failed}
        return {
            entry["number"]: _from_dict(entry, record.kinds)
            for entry in data.get(system, ())
            if digests.get(entry["number"]) == entry["of"]
        }
    except Exception as error:  # a damaged file may hold anything
        raise FileError(f"{str(path)!r} is damaged ({error!r}): delete it, and the tests are shrunk again") from None


def shrink_tests(
    record: CampaignRecord,
    tests: Iterable[FailedTest],
    executor: Executor,
    *,
    system: str,
    batch_size: int = 16,
) -> Iterator[Shrunk]:
    """Shrink the failing tests that were not shrunk yet, and keep the results in the campaign's folder."""
    oracle = oracle_of(record)
    if oracle is None:
        raise InputError(
            "shrinking needs the oracle of the campaign, which is your own: pass it to CampaignRecord.open"
        )
    known = read_shrunk(record, system=system)
    ranges = record.spec.mutations.parameters.get("ranges", {})
    unknown = [test for test in tests if test.number not in known]
    unsaved = 0
    try:
        for result in shrink(unknown, executor, record.inputs, oracle, ranges=ranges, batch_size=batch_size):
            known[result.number] = result
            unsaved += 1
            if unsaved == _UNSAVED:
                _write(record, known, system)
                unsaved = 0
            yield result
    finally:
        if unsaved:
            _write(record, known, system)


def explain(record: CampaignRecord, system: System, executor: Executor, *, count: int = 20) -> Findings:
    """The findings with the worst test of the first `count` shrunk, and where its states leave, or part from its seed.

    The executor runs the same system.
    """
    name = fingerprint(system)
    known = read_shrunk(record, system=name)
    # What was shrunk may move, or not fail any more, and another test is then the worst.
    while tests := [
        finding.worst.test for finding in find(record, known).findings[:count] if finding.worst.test.number not in known
    ]:
        known |= {each.number: each for each in shrink_tests(record, tests, executor, system=name)}
    if record.model is None:
        return find(record, known)
    for finding in find(record, known).findings[:count]:
        worst = finding.worst.shrunk
        if finding.cause.region == "outside" and worst is not None and not worst.leaves:
            known[worst.number] = replace(worst, leaves=leaving(record, system, finding))
            _write(record, known, name)
    result = find(record, known)
    parted = [_parted(record, record.model, system, finding) for finding in result.findings[:count]]
    return replace(result, findings=(*parted, *result.findings[count:]))


def _parted(record: CampaignRecord, model: AbstractModel, system: System, finding: Finding) -> Finding:
    worst = finding.worst
    if worst.test.kind != "wrong":
        return finding
    inputs = [record.inputs.make(worst.test.seed, recipe) for recipe in ((), worst.recipe)]
    one, other = (system.run([value])[0].traced for value in inputs)
    return replace(finding, parting=parting(model, one, other))


def fingerprint(system: System) -> str:
    """The key under which results are kept."""
    return str(getattr(system, "fingerprint", ""))


def _write(record: CampaignRecord, known: Mapping[int, Shrunk], system: str) -> None:
    path = record.folder / SHRUNK
    data = parse_json(read_bytes(path)) if path.is_file() else {}
    data[system] = [_to_dict(each, record[each.number].digest) for _, each in sorted(known.items())]
    with atomic_write(path) as file:
        file.write(json.dumps(data, ensure_ascii=False).encode(errors="backslashreplace"))


def _to_dict(shrunk: Shrunk, digest: str) -> dict[str, Any]:
    return {
        **asdict(shrunk),
        "of": digest,
        "recipe": [to_dict(change) for change in shrunk.recipe],
        "output": summarise(shrunk.output),
    }


def _from_dict(data: Mapping[str, Any], kinds: tuple[type, ...]) -> Shrunk:
    return Shrunk(
        data["number"],
        data["status"],
        tuple(from_dict(change, kinds=kinds, strict=False) for change in data["recipe"]),
        tuple(Threshold(**threshold) for threshold in data["thresholds"]),
        data["runs"],
        data["failing"],
        data["output"],
        data["score"],
        data["digest"],
        data["leaves"],
    )
