"""The report as JUnit XML, from which CI systems list failing tests."""

from __future__ import annotations

import os
import re
import xml.etree.ElementTree as ET
from collections.abc import Mapping
from typing import Any

from deepcruiser.files.atomic import atomic_write
from deepcruiser.report.data import ReportData
from deepcruiser.report.format import failure_details, failure_text

#: Characters that XML 1.0 cannot hold, even escaped.
_FORBIDDEN = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
#: Kinds of failure that are errors of the system rather than wrong answers.
_ERRORS = ("crash", "crash once", "time-out", "not finite")


def write_junit(report: ReportData, path: str | os.PathLike[str]) -> None:
    """Write a suite for each campaign: a case for each failing test, and a passing one for each seed without any."""
    suites = ET.Element("testsuites", name="deepcruiser")
    for number, (campaign, facts) in enumerate(zip(report.campaigns, report.facts, strict=True)):
        failures = [test for test in report.failures if test["campaign"] == number]
        errors = sum(test["kind"] in _ERRORS for test in failures)
        failed = {test["seed"] for test in failures}
        seeds = [event.seed for event in campaign.record.seeds if event.outcome == "kept"]
        passed = [name for name in seeds if name not in failed]
        suite = ET.SubElement(
            suites,
            "testsuite",
            name=_xml(facts["folder"]),
            tests=str(len(failures) + len(passed)),
            failures=str(len(failures) - errors),
            errors=str(errors),
            time=f"{facts['seconds']:.3f}",
        )
        for test in sorted(failures, key=lambda test: test["number"]):
            _case(suite, campaign.name, test)
        for name in passed:
            ET.SubElement(suite, "testcase", classname=_xml(campaign.name), name=_xml(f"seed {name}, all its mutants"))
    ET.indent(suites)
    with atomic_write(path) as file:
        ET.ElementTree(suites).write(file, encoding="utf-8", xml_declaration=True)


def _case(suite: ET.Element, campaign: str, test: Mapping[str, Any]) -> None:
    name = f"{test['number']}: {test['seed']}, {' -> '.join(test['kinds'])}"
    case = ET.SubElement(suite, "testcase", classname=_xml(campaign), name=_xml(name))
    message = failure_text(test["kind"], test["reference"], test["output"])
    body = ET.SubElement(
        case, "error" if test["kind"] in _ERRORS else "failure", type=_xml(test["kind"]), message=_xml(message)
    )
    body.text = _xml(
        "\n".join([message, f"score: {test['score']:g}", *failure_details(test)])
        + (f"\nreplay it: {test['replay']}\n" if test["replay"] else "\n")
    )


def _xml(text: Any) -> str:
    """A text that XML can hold: control characters are spelled out; the writer escapes the rest."""
    return _FORBIDDEN.sub(lambda match: match[0].encode("unicode_escape").decode(), str(text))
