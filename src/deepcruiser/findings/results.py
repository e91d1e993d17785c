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
from deepcruiser.campaign.serialise import summarise
from deepcruiser.errors import FileError, InputError
from deepcruiser.findings.cluster import oracle_of
from deepcruiser.findings.shrink import Shrunk, Threshold, shrink
from deepcruiser.transformations import from_dict, to_dict

SHRUNK = "shrunk.json"


def read_shrunk(record: CampaignRecord, *, system: str, kinds: Iterable[type] = ()) -> dict[int, Shrunk]:
    """What is known of failing tests by their number, found with the system of that fingerprint; `kinds` are a user's.

    What was found with another system, or before a test was found anew, is left out.
    """
    path = record.folder / SHRUNK
    if not path.is_file():
        return {}
    try:
        data = json.loads(path.read_bytes())
        if data["system"] != system:
            return {}
        kinds = tuple(kinds)
        digests = {test.number: test.digest for test in record.failed}
        return {
            entry["number"]: _from_dict(entry, kinds)
            for entry in data["tests"]
            if digests.get(entry["number"]) == entry["of"]
        }
    except (ValueError, KeyError, TypeError) as error:
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
    """Shrink the failing tests that are not known yet, and note each in the campaign's folder when it is done."""
    oracle = oracle_of(record)
    if oracle is None:
        raise InputError(
            "shrinking needs the oracle of the campaign, which is your own: pass it to CampaignRecord.open"
        )
    known = read_shrunk(record, system=system, kinds=kinds)
    ranges = record.spec.mutations.parameters.get("ranges", {})
    unknown = [test for test in tests if test.number not in known]
    for found in shrink(unknown, executor, record.inputs, oracle, ranges=ranges, batch_size=batch_size):
        known[found.number] = found
        _write(record, known, system)
        yield found


def _write(record: CampaignRecord, known: Mapping[int, Shrunk], system: str) -> None:
    tests = [_to_dict(each, record[each.number].digest) for _, each in sorted(known.items())]
    with atomic_write(record.folder / SHRUNK) as file:
        file.write(json.dumps({"system": system, "tests": tests}, ensure_ascii=False).encode(errors="backslashreplace"))


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
