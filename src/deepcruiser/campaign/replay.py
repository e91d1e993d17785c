"""Running a failing test again, and how the result differs from what was stored."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from deepcruiser.abstraction.model import AbstractModel
from deepcruiser.campaign.executors.base import Execution
from deepcruiser.campaign.executors.local import execution, run_all
from deepcruiser.campaign.failed_test import FailedTest
from deepcruiser.campaign.store import changed_since
from deepcruiser.campaign.verdict import Verdict, moved_reference, verdict
from deepcruiser.serialise import digest_of, summarise
from deepcruiser.trace import System

if TYPE_CHECKING:
    from deepcruiser.campaign.record import CampaignRecord


@dataclass(frozen=True)
class Replay:
    """The result of making and running a failing test again, and how it differs from the stored one."""

    number: int
    value: Any
    output: Any
    score: float
    fails: bool
    differences: tuple[str, ...]

    def __str__(self) -> str:
        if not self.differences:
            return f"{self.number}: same input, same answer, same states"
        return f"{self.number}: " + "; ".join(self.differences)


def replay(
    test: FailedTest,
    record: CampaignRecord,
    system: System,
    *,
    model: AbstractModel | None = None,
    limit_seconds: float | None = None,
) -> Replay:
    """Make the input again, run the system on it, and compare input, answer and states with what was stored."""
    value, oracle = test.make(), record.oracle
    (result,) = run_all(system, [value], limit_seconds=limit_seconds)
    now = execution(digest_of(value), result, model or record.model)
    seed = partial(record.inputs.make, test.seed, ())
    moved = partial(moved_reference, oracle, test.seed_reference, seed, test.recipe, lambda: value)
    judged = verdict(now, oracle, lambda _: moved())
    same_answer = summarise(judged.output) == summarise(test.output)
    kind = judged.kind or ("wrong" if oracle is None and same_answer else "")
    score = test.score if oracle is None and same_answer else judged.score
    differences = [
        _other_system(record, system),
        _other_input(test, record, now.digest),
        _other_answer(test, judged, kind, same_answer),
        _other_states(test, now),
    ]
    return Replay(test.number, value, judged.output, score, bool(kind), tuple(filter(None, differences)))


def _other_system(record: CampaignRecord, system: System) -> str:
    now, then = str(getattr(system, "fingerprint", "")), str(record.identity.get("system", ""))
    return f"the system is another one ({now[:12]} instead of {then[:12]})" if now != then else ""


def _other_input(test: FailedTest, record: CampaignRecord, digest: str) -> str:
    if digest == test.digest:
        return ""
    if digest_of(record.inputs.seeds[test.seed]) != record.seed_digests[test.seed]:
        return f"the input differs: the seed {test.seed!r} has changed"
    changed = changed_since(record.versions)
    return f"the input differs: {changed or 'neither the seed nor the versions changed, so it may be the machine'}"


def _other_answer(test: FailedTest, judged: Verdict, kind: str, same_answer: bool) -> str:
    if kind != test.kind and {kind, test.kind} & {"crash", "crash once", "time-out"}:
        return f"{kind or 'an answer'} ({judged.output}) instead of {test.kind} ({test.output})"
    if kind == test.kind == "crash":  # numbers and addresses in a message may differ
        now, then = (str(message).partition(":")[0] for message in (judged.output, test.output))
        return f"the crash is {now} instead of {then}" if now != then else ""
    if kind != "time-out" and not same_answer:
        return f"the answer is {judged.output!r} instead of {test.output!r}"
    return f"it is {kind or 'right'} instead of {test.kind}" if kind != test.kind else ""


def _other_states(test: FailedTest, now: Execution) -> str:
    if now.visits is None or test.visits is None:
        return ""
    one, other = set(now.visits.states.tolist()), set(test.visits.states.tolist())
    return f"{len(one ^ other)} of {len(one | other)} states of the model differ" if one != other else ""
