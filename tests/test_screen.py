"""The status screen and the lines of a campaign, without a terminal."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

import deepcruiser as dc
from deepcruiser.campaign.fuzz import Status
from deepcruiser.errors import printable
from deepcruiser.report import terminal
from deepcruiser.report.format import clock, counted, group_of, quoted, rate
from deepcruiser.report.history import History, Point, Reading, Row, hint
from deepcruiser.report.screen import screen, sparkline
from deepcruiser.report.terminal import Watch, lines, status_line
from tests.support import toy
from tests.support.toy import Reader

KINDS = (
    "ChangeVolume LowPassFilter HighPassFilter PitchShift ChangeSpeed AddWhiteNoise ExtractHarmonic DRC Trim".split()
)

READING = Reading(
    seconds=3723.4,
    runs=123_456,
    speed=212.3,
    guide="BSCov",
    criteria=("BSCov",),
    start=(0.4761,),
    queue=(0.5234,),
    points=tuple(Point(i * 37.0, (0.4761 + i * 0.001,)) for i in range(101)),
    tests=4321,
    live=3210,
    seeds=200,
    set_aside={"failed already": 12, "unreadable": 1},
    failed={"wrong": 21, "crash": 2, "time-out": 1},
    rejected={"too far from the seed": 812, "silent": 3},
    rows=tuple(Row(kind, 13_000 + i, 40 + i, i, 7 * i) for i, kind in enumerate(KINDS)),
    last_new=123_400,
    last_new_seconds=3700.0,
)


def printed(reading: Reading | None, *, width: int = 80, height: int = 24, **more: Any) -> list[str]:
    console = Console(file=io.StringIO(), width=width, height=height, force_terminal=False)
    console.print(screen(reading, height=height, **more))
    return str(console.file.getvalue()).splitlines()  # type: ignore[attr-defined]


def test_everything_is_on_the_screen_and_fits() -> None:
    shown = printed(READING, title="runs/asr", seconds=3725.0)
    assert len(shown) <= 24
    assert max(map(len, shown)) <= 80
    text = "\n".join(shown)
    for part in (
        "runs/asr",
        "1:02:05",
        "123,456  (212/s)",
        "47.61%",
        "52.34%",
        "57.61%",
        "4,321  (3,210 live)",
        "▁",
        "█",
    ):
        assert part in text
    for part in (
        "24  (21 wrong, 2 crash, 1 time-out)",
        "815  (0.7%)",
        "200  (13 set aside)",
        "56 runs ago, 0:00:25",
        "Ctrl-C",
    ):
        assert part in text
    for kind in KINDS:
        assert any(line.split()[1:2] == [kind] for line in shown), kind
    assert ["AddWhiteNoise", "13,005", "45", "5", "35"] in [line.split()[1:-1] for line in shown]


@pytest.mark.parametrize("criteria", [1, 2, 5])
@pytest.mark.parametrize("height", [16, 20, 24, 50])
@pytest.mark.parametrize("width", [60, 80, 200])
def test_it_fits_whatever_is_measured(criteria: int, height: int, width: int) -> None:
    points = tuple(Point(point.seconds, point.executed * criteria) for point in READING.points)
    many = replace(
        READING,
        criteria=("BSCov", "2-SBCov", "BTCov", "ISCov", "WICov")[:criteria],
        start=READING.start * criteria,
        queue=READING.queue * criteria,
        points=points,
        rows=READING.rows + tuple(Row(f"Kind{i}", 1, 0, 0, 0) for i in range(6)),
        last_new=3,
    )
    shown = printed(many, height=height, width=width)
    if height >= 20 or criteria < 5:
        assert len(shown) <= height
    assert max(map(len, shown)) <= width
    if width >= 80:
        assert "no new coverage for 123,453 runs" in "\n".join(shown)
    if height == 24:
        assert "others" in "\n".join(shown)  # the rows for which there is no room, in one


def test_progress_and_the_last_failure() -> None:
    now = replace(READING, share=0.52, seconds_left=31.0, last_failure="17: 'on' became 'off'\x1b[2J; a.wav")
    shown = printed(now, title="runs/asr")
    assert len(shown) <= 24
    assert (
        "runs/asr \u2501\u2501\u2501\u2501\u2501\u2501\u254c\u254c\u254c\u254c\u254c\u254c 52%, 0:00:31 left"
        in shown[0]
    )
    assert "######------ 52%" in printed(now, ascii_only=True)[0]
    assert any("last of them" in line and "17: 'on' became 'off'\\x1b" in line for line in shown)
    assert status_line(now).endswith("last new at run 123,400  52%, 0:00:31 left")


def test_before_the_first_status() -> None:
    assert "running the seeds, 0:01:05" in "\n".join(printed(None, seconds=65))


def test_texts_from_others_cannot_break_it() -> None:
    nasty = "[bold]a[/]\x1b[2J\nb\r\x07[/nothing]\u202e"
    broken = replace(
        READING,
        rejected={nasty: 100_000},
        set_aside={nasty: 1000},
        rows=(Row(nasty, 1, 1, 1, 1),),
        failed={},
        criteria=(nasty[:4],),
    )
    shown = printed(broken, title=nasty)
    assert len(shown) <= 24
    text = "\n".join(shown)
    assert "[bold]a[/]\\x1b" in text
    assert not {char for char in text if not char.isprintable()} - {"\n"}


def test_hints() -> None:
    assert hint(READING) == ""
    assert "no allowed transformation is left" in hint(replace(READING, live=0))
    assert hint(replace(READING, rejected={"silent": 99_999})).startswith(
        "81% of the mutants are rejected, most for 'si"
    )
    assert "--against output" in hint(replace(READING, seeds=3))
    assert "is the oracle too strict?" in hint(replace(READING, failed={"wrong": 100_000}))
    assert "no new coverage for 60,000 runs" in hint(replace(READING, last_new=63_456))
    assert hint(replace(READING, runs=500, last_new=0, failed={"wrong": 3}, rejected={})) == ""
    assert "is the oracle too lenient?" in hint(replace(READING, runs=500, last_new=0, failed={}, rejected={}))


def test_sparkline() -> None:
    def points(*values: float) -> list[Point]:
        return [Point(float(i), (value,)) for i, value in enumerate(values)]

    assert sparkline([], 0) == ""
    assert sparkline(points(0.5), 0, width=4) == "▁▁▁▁"
    assert sparkline(points(0.5, 0.5), 0, width=3) == "▁▁▁"
    assert sparkline(points(0, 1, 2, 3, 4, 5, 6, 7), 0, width=8) == "▁▂▃▄▅▆▇█"
    assert sparkline(points(0, 7), 0, width=5) == "▁▁▁▁█"
    assert sparkline(points(0, 7), 0, width=3, ascii_only=True) == "__#"


def test_words() -> None:
    assert printable("a\tb\ud800c") == "a\\tb\\ud800c"
    assert printable("x" * 300, width=10) == "xxxxxxx..."
    assert printable([1, 2]) == "[1, 2]"
    assert quoted("") == "''"
    assert clock(-1) == "0:00:00"
    assert clock(36_000.9) == "10:00:00"
    assert counted({"crash": 2, "wrong": 1000, "none": 0}) == "1,000 wrong, 2 crash"
    assert (rate(10, 0), rate(5, 2), rate(5000, 2)) == ("0.0/s", "2.5/s", "2,500/s")
    assert group_of("too short: 0.05 s") == "too short"


class Fragile(Reader):
    """A reader that crashes at long texts."""

    def _run(self, text: str) -> dc.Run:
        if len(text) > 17:
            raise ValueError("\x1b[2Jtoo long for me")
        return super()._run(text)


def too_long(seed: str, text: str) -> str | None:
    return f"too long: {len(text)} symbols" if len(text) > 18 else None


def campaign(folder: Path, *, runs: int, watch: Watch) -> dc.CampaignRecord:
    mutations = replace(toy.MUTATIONS, invalid=too_long)
    return toy.campaign(folder, system=Fragile(), mutations=mutations, runs=runs, watch=watch, select="rarity")


def test_readings_follow_the_campaign_and_go_on_with_it(tmp_path: Path) -> None:
    history, readings = History(), []
    result = campaign(tmp_path, runs=160, watch=lambda status: readings.append(history.add(status)))
    assert [reading.runs for reading in readings] == list(range(0, 161, 16))
    first, last = readings[0], readings[-1]
    assert (first.seeds, first.tests, first.live) == (12, 12, 12)
    assert sum(row.tried for row in last.rows) == 160
    assert sum(row.rejected for row in last.rows) == sum(last.rejected.values())
    assert set(last.rejected) == {"too long"}
    assert set(last.failed) == {"wrong", "crash"}
    assert last.speed > 0
    assert (first.share, last.share, last.seconds_left) == (0, 1, 0)
    assert last.last_failure.partition(":")[0] == str(max(test.number for test in result.failed))
    assert last.start == first.queue
    again = History(past=[{"runs": r.runs, "seconds": r.seconds, "values": r.points[-1].executed} for r in readings])
    more: list[Reading] = []
    campaign(tmp_path, runs=200, watch=lambda status: more.append(again.add(status)))
    resumed = more[0]
    assert (resumed.runs, resumed.failed, resumed.rejected, resumed.rows) == (
        last.runs, last.failed, last.rejected, last.rows,
    )  # fmt: skip
    assert resumed.last_new == last.last_new
    assert resumed.last_new_seconds == last.last_new_seconds
    assert more[-1].runs == 200
    assert sum(more[-1].rejected.values()) == sum(row.rejected for row in more[-1].rows)


def test_a_long_history_stays_short(tmp_path: Path) -> None:
    last: list[Status] = []
    campaign(tmp_path, runs=16, watch=last.append)
    history = History()
    for second in range(5000):
        reading = history.add(replace(last[-1], seconds=float(second)))
    assert len(reading.points) <= 513
    assert (reading.points[0].seconds, reading.points[-1].seconds) == (0, 4999)


def test_lines_tell_of_failures_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    message: list[str] = []
    result = campaign(tmp_path, runs=160, watch=lines(message.append, tmp_path))
    failures = [line for line in message if line.startswith("failing test")]
    assert len(failures) == len(result.failed) > 3
    assert sum("0 runs (" in line for line in message) == 1  # one in ten seconds
    assert any(
        "'high' became 'low'; unchanged seed: 'high'; input: '" in line and " -> Insert" in line for line in failures
    )
    assert any("crash: ValueError: \\x1b[2Jtoo long for me; " in line for line in failures)
    monkeypatch.setattr(terminal, "INTERVAL", 0.0)
    message.clear()
    campaign(tmp_path / "other", runs=160, watch=lines(message.append, tmp_path))
    assert sum(" runs (" in line for line in message) == 11


def test_a_line_on_all() -> None:
    assert status_line(READING) == (
        "1:02:03  123,456 runs (212/s)  BSCov 47.6% -> 57.6%  queue 3,210/4,321  24 failing, 815 rejected  "
        "last new at run 123,400"
    )
