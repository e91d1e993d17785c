"""deepcruiser replay of a regression suite."""

from __future__ import annotations

import contextlib
import json
import os
import sys
from pathlib import Path
from typing import Any

from deepcruiser.campaign.verdict import Verdict
from deepcruiser.cli.output import say
from deepcruiser.cli.resolve import system_from
from deepcruiser.errors import printable
from deepcruiser.findings.suite import Case, Suite, located_system, run_case
from deepcruiser.report.format import quoted
from deepcruiser.serialise import summarise


def replay_suite(folder: Path, system: str | None, *, device: str = "cpu", as_json: bool) -> int:
    """Run a suite and print what came of each test; the number of those that fail and are not known to."""
    out = sys.stdout
    with contextlib.redirect_stdout(sys.stderr) if as_json else contextlib.nullcontext():  # systems may print
        suite = Suite.read(folder)
        network = system_from(system or located_system(suite), device=device)
        results = []
        for case in suite.cases:
            judged = run_case(case, network, suite.oracle, limit_seconds=suite.limit_seconds)
            results.append((case, judged))
            if not as_json:
                say(_line(case, judged))
    failing = sum(bool(judged.kind) for _, judged in results)
    known = sum(bool(judged.kind and case.known) for case, judged in results)
    if as_json:
        report = {
            "folder": os.fspath(folder),
            "tests": len(results),
            "failing": failing,
            "known": known,
            "results": [_dict(case, judged) for case, judged in results],
        }
        say(json.dumps(report, indent=2), file=out)
    else:
        say(f"{failing:,} of {len(results):,} fail" + (f", {known:,} of them known to" if known else ""))
    return failing - known


def _line(case: Case, judged: Verdict) -> str:
    title = printable(case.title, width=400)
    if not judged.kind:
        return f"{case.id}: passes: {title}"
    got = quoted(judged.output) if judged.kind == "wrong" else f"{judged.kind} ({printable(judged.output)})"
    known = f"\n    known: {printable(case.known)}" if case.known else ""
    return f"{case.id}: still fails: {title}\n    expected {quoted(case.reference)}, got {got}{known}"


def _dict(case: Case, judged: Verdict) -> dict[str, Any]:
    return {
        "id": case.id,
        "title": case.title,
        "fails": bool(judged.kind),
        "kind": judged.kind,
        "expected": summarise(case.reference),
        "output": summarise(judged.output),
        "score": judged.score,
        "known": case.known,
    }
