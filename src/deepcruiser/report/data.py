"""All that a report shows of a campaign, read from its folder alone: no network, no file of the user's is run."""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from deepcruiser.abstraction.model import AbstractModel
from deepcruiser.campaign.events import Event, Ran, Seeded
from deepcruiser.campaign.serialise import as_json
from deepcruiser.campaign.store import MODEL, Store
from deepcruiser.campaign.territory import Ground, Who
from deepcruiser.errors import DeepCruiserError, FileError
from deepcruiser.report.alignment import word_errors
from deepcruiser.report.coverage_history import Measures
from deepcruiser.report.format import group_of
from deepcruiser.report.inputs import Inputs
from deepcruiser.report.written import AsWritten, Written

#: The course of coverage is read at about so many moments at a time.
_MOMENTS = 300


class Gathering:
    """What is known of a campaign; `update` reads what has been added to the folder since."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)
        self.inputs = Inputs(self.folder)
        self.failures: list[dict[str, Any]] = []
        self._about: dict[str, Any] = {}
        self._runs = -1
        self._seeds: list[Seeded] = []
        self._tests: dict[int, tuple[int, tuple[Written, ...]]] = {}
        self._kinds: dict[str, Counter[str]] = {}
        self._rejected: Counter[str] = Counter()
        self._history: list[dict[str, Any]] = []
        self._course: list[dict[str, Any]] = []
        self._measures: Measures | None = None
        self._no_model = ""
        self.update()

    @property
    def moment(self) -> tuple[int, str]:
        """How many runs are known, and whether it is running, unfinished or finished: what makes a page a new one."""
        return self._runs, self._about["state"]

    def update(self) -> None:
        """Read on."""
        with Store.open(self.folder, write=False) as store:
            configuration = store.meta("configuration")
            history = store.history()
            if configuration is None or not history:
                raise FileError(f"the campaign in {os.fspath(self.folder)!r} has not begun: no seed was run yet")
            stopped, at_work = store.meta("stopped"), store.is_at_work()
            about = {
                "configuration": configuration,
                "versions": store.meta("versions") or {},
                "stopped": stopped or "",
                "state": "running" if at_work else "unfinished" if stopped == "" else "finished",
            }
            self._about = about
            if self._runs < 0:
                self._measures = self._model()
            for event in store.events(AsWritten(), after=self._runs):
                self._take(event)
            self._measure(history, list(store.territory(after=self._runs)))
            self._history, self._runs = history, int(history[-1]["runs"])

    def report(self) -> dict[str, Any]:
        """Everything but the failing tests, as JSON holds it."""
        last, configuration = self._history[-1], self._about["configuration"]
        found = self.failures
        return {
            "name": "/".join(Path(os.path.abspath(self.folder)).parts[-2:]),
            "folder": os.fspath(self.folder),
            **self._about,
            "command": self._command(),
            "guide": configuration.get("guide") or "",
            "oracle": configuration.get("oracle") or "",
            "measure": _measure_of(configuration),
            "runs": self._runs,
            "seconds": last["seconds"],
            "seeds": len(self._seeds),
            "kept": [event.seed for event in self._seeds if event.outcome == "kept"],
            "set_aside": dict(Counter(event.reason for event in self._seeds if event.outcome != "kept")),
            "tests": len(self._tests),
            "model": self._described(),
            "coverage": self._coverage(),
            "course": {"names": self._names(), "rows": self._course},
            "failing_tests": len(found),
            "failed": dict(Counter(test["kind"] for test in found)),
            "failing_inputs": len({test["sha256"] for test in found}),
            "failing_seeds": len({test["position"] for test in found}),
            "first_failure": min((test["number"] for test in found), default=None),
            "rejected": dict(self._rejected),
            "transformations": [_row(kind, counts) for kind, counts in self._kinds.items()],
        }

    def space(self) -> dict[str, Any] | None:
        """The picture of the state space; None where there is no model, or the campaign noted nothing."""
        return self._measures.space() if self._measures is not None and self._measures.complete else None

    def _model(self) -> Measures | None:
        try:
            return Measures(AbstractModel.load(self.folder / MODEL))
        except DeepCruiserError as error:
            self._no_model = str(error) if (self.folder / MODEL).exists() else ""
            return None

    def _take(self, event: Event) -> None:
        if isinstance(event, Seeded):
            self._seeds.append(event)
            self._tests.update({-1 - event.position: (event.position, ())} if event.outcome == "kept" else {})
            return
        position, parents = self._tests[event.parent]
        recipe = (*parents, event.transformation)
        counts = self._kinds.setdefault(event.transformation.name, Counter())
        counts[event.outcome] += 1
        if event.outcome == "rejected":
            self._rejected[group_of(event.reason)] += 1
        elif event.outcome != "failed" or event.reason == "wrong":
            counts["judged"] += 1
            counts["score"] += event.score  # type: ignore[assignment]
        if event.outcome == "kept":
            self._tests[event.number] = position, recipe
        elif event.outcome == "failed":
            self.failures.append(self._failure(event, position, recipe))

    def _failure(self, event: Ran, position: int, recipe: Sequence[Written]) -> dict[str, Any]:
        seed = self._seeds[position]
        by_character = _measure_of(self._about["configuration"]) == "CER"
        return {
            "number": event.number,
            "seed": seed.seed,
            "position": position,
            "recipe": [str(step) for step in recipe],
            "kinds": [step.name for step in recipe],
            "kind": event.reason,
            "reference": as_json(seed.reference),
            "output": as_json(event.output),
            "score": event.score,
            "sha256": event.digest,
            "pieces": word_errors(seed.reference, event.output, by_character=by_character)
            if event.reason == "wrong"
            else None,
        }

    def _measure(self, history: list[dict[str, Any]], news: list[tuple[int, Who, Ground]]) -> None:
        """Go through what was visited, and read the criteria at some moments of the new history."""
        new = history[len(self._history) :]
        step = max(1, len(new) // _MOMENTS)
        moments = [row for i, row in enumerate(new) if i % step == 0 or row is new[-1]]
        at = 0
        for row in moments:
            values: list[float] = []
            if self._measures is not None:
                while at < len(news) and news[at][0] <= row["runs"]:
                    self._measures.add(news[at][1], news[at][2])
                    at += 1
                values = self._measures.values() if self._measures.complete else []
            self._course.append(
                {"runs": row["runs"], "seconds": row["seconds"], "guide": row["executed"], "all": values}
            )
        if len(self._course) > 4 * _MOMENTS:
            self._course = [*self._course[:-1:2], self._course[-1]]

    def _guides(self) -> list[str]:
        names = re.findall(r"(?:\d+-)?\w+Cov", str(self._about["configuration"].get("guide") or ""))
        return names[: len(self._history[-1]["queue"])]

    def _names(self) -> list[str]:
        """The criteria that are shown: all five where the campaign noted enough, and those that it was guided by."""
        five = self._measures.names if self._measures is not None and self._measures.complete else []
        return [*five, *(name for name in self._guides() if name not in five)]

    def _coverage(self) -> list[dict[str, Any]]:
        guides, names = self._guides(), self._names()
        rows = [_values(row, guides, names) for row in (self._course[0], self._course[-1])]
        queue = dict(zip(guides, self._history[-1]["queue"], strict=False))
        for row in self._course:
            if "values" not in row:
                row["values"] = [round(value, 6) for value in _values(row, guides, names)]
        ends = zip(names, *rows, strict=True)
        return [{"name": name, "start": a, "queue": queue.get(name), "executed": b} for name, a, b in ends]

    def _described(self) -> dict[str, Any] | None:
        if self._measures is None:
            return {"said": self._no_model} if self._no_model else None
        model = self._measures.model
        return {
            "name": model.name,
            "states": len(model.states),
            "transitions": len(model.transitions),
            "choices": len(model.choices),
            "traces": model.origin.traces,
            "steps": model.origin.steps,
            "state_name": model.origin.state_name,
            "size": model.projections.states.size,
            "explained": model.projections.states.explained,
            "fingerprint": model.fingerprint,
        }

    def _command(self) -> dict[str, Any]:
        """What was typed, as the folder remembers it."""
        try:
            notes = json.loads((self.folder / "command.json").read_bytes())
            made_of = {key: value for key, value in notes["ingredients"].items() if value not in (None, (), [], False)}
            return {"typed": str(notes.get("command", "")), "ingredients": as_json(made_of)}
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return {}


def _values(row: Mapping[str, Any], guides: Sequence[str], names: Sequence[str]) -> Iterator[float]:
    found = {**dict(zip(guides, row["guide"], strict=False)), **dict(zip(names, row["all"], strict=False))}
    return (found[name] for name in names)


def _row(kind: str, counts: Mapping[str, int]) -> dict[str, Any]:
    outcomes = {name: counts.get(name, 0) for name in ("kept", "dropped", "failed", "rejected")}
    judged = counts.get("judged", 0)
    return {
        "kind": kind,
        "tried": sum(outcomes.values()),
        **outcomes,
        "mean_score": counts.get("score", 0) / judged if judged else None,
    }


def _measure_of(configuration: Mapping[str, Any]) -> str:
    """What a score is called: WER, CER, or nothing where any other answer fails."""
    oracle = str(configuration.get("oracle"))
    return "WER" if oracle.startswith("word") else "CER" if oracle.startswith("character") else ""
