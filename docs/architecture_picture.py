"""Draws docs/architecture.svg, how data flow through the package: python docs/architecture_picture.py"""

from __future__ import annotations

from html import escape
from pathlib import Path

HERE = Path(__file__).parent
#: Each row is (heading, [(noun, what it is, the file that holds it)]).
ROWS = (
    (
        "From an input to coverage",
        [
            ("Audio", "samples, rate", "audio.py"),
            ("System", "features, network, text", "trace.py, systems/"),
            ("Run", "output, trace, doubt", "trace.py"),
            ("Profile", "projected traces", "abstraction/profile.py"),
            ("AbstractModel", "states, Pr", "abstraction/model.py"),
            ("Visits", "four sorted arrays", "abstraction/visits.py"),
            ("Coverage", "the running total", "coverage.py"),
        ],
    ),
    (
        "From a spec to failing tests",
        [
            ("CampaignSpec", "the settings, as data", "campaign/spec.py"),
            ("Scheduler", "the next plan", "campaign/scheduler.py"),
            ("Executor", "plan to Executions", "campaign/executors/"),
            ("Verdict", "by the oracle", "campaign/verdict.py"),
            ("Event", "result of one run", "campaign/events.py"),
            ("Store", "the folder", "campaign/store.py"),
            ("CampaignRecord", "reads the folder", "campaign/record.py"),
        ],
    ),
)
WIDTH, HEIGHT, GAP, LEFT = 140, 74, 24, 20
INK, SOFT, LINE, FILL = "#1f2933", "#52606d", "#9aa6b2", "#edf1f5"


def box(x: float, y: float, noun: str, what: str, file: str) -> list[str]:
    middle = x + WIDTH / 2
    return [
        f'<rect x="{x}" y="{y}" width="{WIDTH}" height="{HEIGHT}" rx="6" fill="{FILL}" stroke="{LINE}"/>',
        f'<text x="{middle}" y="{y + 25}" font-weight="bold" fill="{INK}">{escape(noun)}</text>',
        f'<text x="{middle}" y="{y + 43}" font-size="11" fill="{INK}">{escape(what)}</text>',
        f'<text x="{middle}" y="{y + 61}" font-size="9.5" fill="{SOFT}">{escape(file)}</text>',
    ]


def arrow(x: float, y: float) -> str:
    return f'<path d="M{x} {y} h{GAP - 6} m-5 -4 l5 4 l-5 4" fill="none" stroke="{LINE}" stroke-width="1.5"/>'


def picture() -> str:
    lines, step = [], WIDTH + GAP
    for number, (heading, boxes) in enumerate(ROWS):
        top = 44 + number * 160
        lines.append(
            f'<text x="{LEFT}" y="{top - 14}" text-anchor="start" font-weight="bold" fill="{SOFT}">{heading}</text>'
        )
        for place, (noun, what, file) in enumerate(boxes):
            lines += box(LEFT + place * step, top, noun, what, file)
            if place:
                lines.append(arrow(LEFT + place * step - GAP + 2, top + HEIGHT / 2))
    # The loop: the scheduler learns from events.
    scheduler, event, low = LEFT + step + WIDTH / 2, LEFT + 4 * step + WIDTH / 2, 44 + 160 + HEIGHT
    lines.append(
        f'<path d="M{event} {low} v16 H{scheduler} v-13 m-4 6 l4 -6 l4 6" fill="none" stroke="{LINE}" '
        'stroke-width="1.5" stroke-dasharray="4 3"/>'
    )
    lines.append(f'<text x="{(scheduler + event) / 2}" y="{low + 32}" font-size="11" fill="{SOFT}">learns</text>')
    width, height = 2 * LEFT + len(ROWS[0][1]) * step - GAP, low + 46
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" '
            f'height="{height}" font-family="Helvetica,Arial,sans-serif" font-size="13" text-anchor="middle" '
            'role="img">',
            "<title>The two ways of the data through DeepCruiser</title>",
            f'<rect width="{width}" height="{height}" fill="#ffffff"/>',
            *lines,
            "</svg>",
            "",
        ]
    )


if __name__ == "__main__":
    (HERE / "architecture.svg").write_text(picture(), encoding="utf-8")
