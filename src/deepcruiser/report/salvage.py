"""The failing tests of a campaign whose database cannot be read, from the files next to it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from deepcruiser.campaign.events import Ran, Seeded
from deepcruiser.campaign.failed_test import FailedTest
from deepcruiser.campaign.record import CampaignRecord
from deepcruiser.campaign.spec import CampaignSpec, Component
from deepcruiser.errors import DeepCruiserError
from deepcruiser.files.reading import parse_json, read_bytes
from deepcruiser.transformations import from_dict

_UNKNOWN = CampaignSpec(guide=Component("unknown"), oracle=Component("unknown"), mutations=Component("unknown"))


@dataclass(frozen=True, eq=False)
class SalvagedRecord:
    """As much of a `CampaignRecord` as `failed/*.json` hold: the failing tests, and no runs."""

    folder: Path
    problem: str
    failed: list[FailedTest]
    spec: CampaignSpec = _UNKNOWN
    identity: Mapping[str, Any] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)
    stopped: str = ""
    state: str = "damaged"
    seeds: list[Seeded] = field(default_factory=list)
    runs: list[Ran] = field(default_factory=list)
    moments: list[tuple[int, float]] = field(default_factory=list)
    seconds: float = 0.0
    model: None = None
    model_problem: str = ""

    def update(self) -> None:
        """A damaged campaign has no new runs."""


#: The record of a campaign, or what is left of a damaged one.
Record = CampaignRecord | SalvagedRecord


def salvage(folder: Path, error: DeepCruiserError) -> SalvagedRecord | None:
    """What can be read without the database, which gave this error; None if there is nothing."""
    failed, unreadable = [], 0
    for path in filter(Path.is_file, sorted(folder.glob("failed/*.json"))):
        try:
            failed.append(_failed_test(parse_json(read_bytes(path))))
        except Exception:  # a damaged file may hold anything
            unreadable += 1
    if not failed:
        return None
    problem = f"{error}; only the {len(failed):,} failing tests in failed/ could be read"
    return SalvagedRecord(folder, problem + (f", {unreadable:,} could not" if unreadable else ""), failed)


def _failed_test(data: Mapping[str, Any]) -> FailedTest:
    return FailedTest(
        number=int(data["number"]),
        seed=str(data["seed"]),
        position=-1,
        recipe=tuple(from_dict(change, strict=False) for change in data["recipe"]),
        kind=str(data["kind"]),
        reference=data["reference"],
        seed_reference=data["reference"],
        output=data["output"],
        score=float(data["score"]),
        doubt=None,
        digest=str(data["sha256"]),
        visits=None,
        seed_output=data.get("seed_output"),
    )
