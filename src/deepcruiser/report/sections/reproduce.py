"""How to run the campaign and its failing tests again: commands, configuration, versions and seeds."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from deepcruiser.report.data import CampaignData, ReportData
from deepcruiser.report.format import markdown_code
from deepcruiser.report.section import Data, Section, runs_known

#: Number of seeds that a page names.
_SEEDS = 200


def _data(report: ReportData) -> list[dict[str, Any]]:
    return [_of(each) for each in report.campaigns]


def _page_data(report: ReportData) -> list[dict[str, Any]]:
    return [{**each, "seeds": each["seeds"][:_SEEDS]} for each in _data(report)]


def _of(campaign: CampaignData) -> dict[str, Any]:
    record = campaign.record
    return {
        "command": campaign.command,
        "replay": campaign.replay_command(),
        "spec": record.spec.to_dict(),
        "fingerprints": {name: value for name, value in record.identity.items() if isinstance(value, str)},
        "versions": dict(record.versions),
        "seeds": [event.seed for event in record.seeds],
    }


def _text(data: Data) -> Iterator[str]:
    if replay := _worst(data):
        yield f"replay the worst: {replay}"


def _markdown(data: Data) -> Iterator[str]:
    if replay := _worst(data):
        yield f"Replay the worst: {markdown_code(replay)}"


def _worst(data: Data) -> str:
    """The command that replays the worst failing test, if there is one."""
    return str(data["failures"][0]["replay"]) if data["failures"] else ""


REPRODUCE = Section(
    "reproduce", "Reproduce", _data, page_data=_page_data, text=_text, markdown=_markdown, shown=runs_known, live=False
)
