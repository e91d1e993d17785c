"""The report as JUnit XML, from which CI systems list failing tests."""

from __future__ import annotations

import os
import re
import shlex
import xml.etree.ElementTree as ET
from collections.abc import Mapping
from typing import Any

from deepcruiser.atomic import atomic_write
from deepcruiser.report.format import quoted

#: What XML 1.0 has no place for, however it is escaped.
_FORBIDDEN = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
#: The kinds that are the system's errors rather than wrong answers.
_ERRORS = ("crash", "time-out", "not finite")


def write_junit(data: Mapping[str, Any], path: str | os.PathLike[str]) -> None:
    """Write a suite for each campaign: a case for each failing test, and one for each seed that held."""
    suites = ET.Element("testsuites", name="deepcruiser")
    for number, told in enumerate(data["campaigns"]):
        failures = [test for test in data["failures"] if test["campaign"] == number]
        errors = sum(test["kind"] in _ERRORS for test in failures)
        failed = {test["seed"] for test in failures}
        held = [name for name in told["kept"] if name not in failed]
        suite = ET.SubElement(
            suites,
            "testsuite",
            name=_xml(told["folder"]),
            tests=str(len(failures) + len(held)),
            failures=str(len(failures) - errors),
            errors=str(errors),
            time=f"{told['seconds']:.3f}",
        )
        for test in sorted(failures, key=lambda test: test["number"]):
            _case(suite, told, test)
        for name in held:
            ET.SubElement(suite, "testcase", classname=_xml(told["name"]), name=_xml(f"seed {name}, all its mutants"))
    ET.indent(suites)
    with atomic_write(path) as file:
        ET.ElementTree(suites).write(file, encoding="utf-8", xml_declaration=True)


def _case(suite: ET.Element, told: Mapping[str, Any], test: Mapping[str, Any]) -> None:
    steps = " -> ".join(test["recipe"])
    name = f"{test['number']}: {test['seed']}, {' -> '.join(test['kinds'])}"
    case = ET.SubElement(suite, "testcase", classname=_xml(told["name"]), name=_xml(name))
    if test["kind"] == "wrong":
        message = f"{quoted(test['reference'])} became {quoted(test['output'])}"
    else:
        message = f"{test['kind']}: {quoted(test['output'])}"
    body = ET.SubElement(
        case, "error" if test["kind"] in _ERRORS else "failure", type=_xml(test["kind"]), message=_xml(message)
    )
    body.text = _xml(
        f"{message}\nscore: {test['score']:g}\n{test['seed']}: {steps}\n"
        f"run it again: deepcruiser replay {shlex.quote(told['folder'])} {test['number']}\n"
    )


def _xml(text: Any) -> str:
    """A text as XML can hold it: control characters are written out; the writer escapes the rest."""
    return _FORBIDDEN.sub(lambda found: found[0].encode("unicode_escape").decode(), str(text))
