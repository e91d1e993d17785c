"""What shrinking has found so far, in a campaign's folder, so that nothing is shrunk twice."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict
from typing import Any

from deepcruiser.atomic import atomic_write
from deepcruiser.campaign.executors.base import Executor
from deepcruiser.campaign.failed_test import FailedTest
from deepcruiser.campaign.record import CampaignRecord
from deepcruiser.errors import FileError, InputError
from deepcruiser.findings.cluster import oracle_of
from deepcruiser.findings.shrink import Shrunk, Threshold, shrink
from deepcruiser.serialise import summarise
from deepcruiser.transformations import from_dict, to_dict

#: For each system, by its fingerprint, the tests that were shrunk with it.
SHRUNK = "shrunk.json"
#: Results are written after this many, and at the end, also when it is interrupted.
_UNSAVED = 16


def read_shrunk(record: CampaignRecord, *, system: str, kinds: Iterable[type] = ()) -> dict[int, Shrunk]:
    """What is known of failing tests by their number, found with the system of that fingerprint; `kinds` are a user's.

    What was found with another system, or for a test that has since become another, is left out.
    """
    path = record.folder / SHRUNK
    if not path.is_file():
        return {}
    try:
        data = json.loads(path.read_bytes())
        kinds = tuple(kinds)
        digests = {test.number: test.digest for test in record.failed}
        return {
            entry["number"]: _from_dict(entry, kinds)
            for entry in data.get(system, ())
            if digests.get(entry["number"]) == entry["of"]
        }
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise FileError(f"{str(path)!r} is damaged ({error!r}): delete it, and the tests are shrunk again") from None


def shrink_tests(
    record: CampaignRecord,
    tests: Iterable[FailedTest],
    executor: Executor,
    *,
    system: str,
    kinds: Iterable[type] = (),
    batch_size: int = 16,
) -> Iterator[Shrunk]:
    """Shrink the failing tests that are not known yet, and keep the results in the campaign's folder."""
    oracle = oracle_of(record)
    if oracle is None:
        raise InputError(
            "shrinking needs the oracle of the campaign, which is your own: pass it to CampaignRecord.open"
        )
    known = read_shrunk(record, system=system, kinds=kinds)
    ranges = record.spec.mutations.parameters.get("ranges", {})
    unknown = [test for test in tests if test.number not in known]
    unsaved = 0
    try:
        for found in shrink(unknown, executor, record.inputs, oracle, ranges=ranges, batch_size=batch_size):
            known[found.number] = found
            unsaved += 1
            if unsaved == _UNSAVED:
                _write(record, known, system)
                unsaved = 0
            yield found
    finally:
        if unsaved:
            _write(record, known, system)


def _write(record: CampaignRecord, known: Mapping[int, Shrunk], system: str) -> None:
    path = record.folder / SHRUNK
    data = json.loads(path.read_bytes()) if path.is_file() else {}
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
    )
