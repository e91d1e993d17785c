"""What was tested, for how long, and what failed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from deepcruiser.errors import printable
from deepcruiser.findings.phrases import count_of
from deepcruiser.report.format import counted, duration, markdown_text, rate
from deepcruiser.report.section import Data, Section


def _text(data: Data) -> Iterator[str]:
    for campaign in data["campaigns"]:
        yield printable(f"{campaign['folder']}: {_failures(campaign)}")
        if campaign["state"] != "damaged":
            end = f"stopped: {campaign['stopped']}" if campaign["stopped"] else campaign["state"]
            yield printable(f"{_runs(campaign)}, guide: {campaign['guide']}; {end}")
        if right := campaign["right"]:
            yield f"right on {right['right']:,} of {right['of']:,} seeds before any change"
        if campaign["set_aside"]:
            yield printable(f"seeds set aside: {counted(campaign['set_aside'])}, of {campaign['seeds']:,}")
        if campaign["rejected"]:
            yield printable(f"mutants rejected: {counted(campaign['rejected'])}")
        for warning in campaign["warnings"]:
            yield printable(f"warning: {warning}", width=400)


def _markdown(data: Data) -> Iterator[str]:
    several = len(data["campaigns"]) > 1
    campaign = data["campaigns"][several]  # the others are compared with the first
    yield f"### DeepCruiser: {markdown_text(_failures(campaign))}"
    if not several and campaign["state"] != "damaged":
        yield ""
        yield markdown_text(f"{_runs(campaign)}; guide: {campaign['guide']}; fails if: {campaign['oracle']}")
    for campaign in data["campaigns"]:
        for warning in campaign["warnings"]:
            yield f"\n**Warning:** {markdown_text(warning, width=400)}"


def _failures(campaign: Data) -> str:
    if not campaign["failing_tests"]:
        return "no failing tests"
    return (
        f"{count_of(campaign['failing_tests'], 'failing test')} ({counted(campaign['failed'])}), "
        f"{count_of(campaign['failing_inputs'], 'different input')}, from {count_of(campaign['failing_seeds'], 'seed')}"
    )


def _runs(campaign: dict[str, Any]) -> str:
    return (
        f"{campaign['runs']:,} runs in {duration(campaign['seconds'])} ({rate(campaign['runs'], campaign['seconds'])})"
    )


SUMMARY = Section("summary", "Summary", text=_text, markdown=_markdown)
