"""`fuzz --paper`, and the choice of seeds: `deepcruiser seeds` and `fuzz --leave-out`."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path

import pytest

from deepcruiser.abstraction.profile import Profile
from deepcruiser.campaign.record import CampaignRecord
from tests.support.typed import BASIC, MODEL, fuzz, make, run

SPEECH = ("--system", "asr.py:system", "--data", "speech")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make(tmp_path_factory.mktemp("user"))


@pytest.fixture
def folder(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(made)
    return tmp_path


def test_the_preset_is_its_parts(folder: Path) -> None:
    basic = [word for word in BASIC if word != "--disagreement"]
    result = run(*basic, *MODEL, "--paper", "--runs", "40", "--workers", "0", "-o", str(folder / "a"))
    assert result.exit_code in (0, 1), result.output
    spec = CampaignRecord.open(folder / "a").spec
    assert (spec.batch_size, spec.window, spec.ahead) == (1, 1, 1)
    assert (spec.scheduler.type, spec.scheduler.parameters["pick"]) == ("uniform", "uniform")
    assert (spec.validity, spec.keep_failing_seeds) == (False, True)
    assert spec.input_partitions == spec.partitions == 20
    assert spec.oracle.parameters["normalise"] == ["case"]
    parts = "--batch-size 1 --window 1 --scheduler uniform --pick uniform --keep coverage --severity unlimited".split()
    parts += ["--no-validity", "--keep-failing-seeds", "--normalise", "case"]
    result = run(
        *basic, *MODEL, *parts, "--input-partitions", "20", "--runs", "40", "--workers", "0", "-o", str(folder / "b")
    )
    assert result.exit_code in (0, 1), result.output
    one, other = CampaignRecord.open(folder / "a"), CampaignRecord.open(folder / "b")
    assert one.spec == other.spec
    key = [(r.number, r.parent, r.changes, r.outcome, r.digest) for r in one.runs]
    assert key == [(r.number, r.parent, r.changes, r.outcome, r.digest) for r in other.runs]
    command = one.spec.command_line("x")
    for part in parts:
        assert part in command.split()


def test_the_preset_with_decay_and_another_grid(folder: Path) -> None:
    options = ("--paper", "--scheduler", "decay", "--input-partitions", "5", "--runs", "8", "--workers", "0")
    assert run(*BASIC, *MODEL, *options, "-o", str(folder / "a")).exit_code in (0, 1)
    spec = CampaignRecord.open(folder / "a").spec
    assert (spec.scheduler.type, spec.input_partitions, spec.batch_size) == ("decay", 5, 1)


@pytest.mark.parametrize("options", [("--guide", "none"), ("--guide", "none,BTCov"), ("--keep", "random")])
def test_the_preset_with_a_baseline(folder: Path, options: tuple[str, str]) -> None:
    rest = ("--paper", "--runs", "4", "--workers", "0")
    assert run(*BASIC, *MODEL, *options, *rest, "-o", str(folder / "a")).exit_code in (0, 1)
    spec = CampaignRecord.open(folder / "a").spec
    assert (spec.guide.type, spec.window) == (options[1].split(",")[0], 1)


@pytest.mark.parametrize(
    ("option", "message"),
    [
        (("--batch-size", "16"), "--paper cannot be combined with --batch-size 16: leave one out, or use 1"),
        (("--window", "4"), "--paper cannot be combined with --window 4: leave one out, or use 1"),
        (
            ("--scheduler", "rarity"),
            "--paper cannot be combined with --scheduler rarity: leave one out, or use uniform or decay",
        ),
        (("--pick", "thompson"), "--paper cannot be combined with --pick thompson: leave one out, or use uniform"),
        (("--severity", "mild"), "--paper cannot be combined with --severity mild: leave one out, or use unlimited"),
        (
            ("--keep", "coverage+distance"),
            "--paper cannot be combined with --keep coverage+distance: leave one out, or use coverage or random",
        ),
        (("--aim", "seeds"), "--aim cannot be combined with --scheduler uniform: leave one out"),
    ],
)
def test_options_that_contradict_the_preset(folder: Path, option: tuple[str, str], message: str) -> None:
    result = run(*BASIC, *MODEL, "--paper", *option, "--runs", "8", "-o", str(folder / "a"))
    assert result.exit_code == 2
    assert message in " ".join(result.stderr.split())
    assert not (folder / "a").exists()


def test_failing_seeds_are_set_aside_or_kept(folder: Path) -> None:
    common = ("--system", "asr.py:system", "--data", "wrong.tsv", "--guide", "none", "--runs", "4", "--workers", "0")
    Path("wrong.tsv").write_text(
        "path\tsentence\n" + "".join(f"speech/{i}.wav\tnobody says this\n" for i in range(3)), encoding="utf-8"
    )
    assert "none of the 3 seeds can be used (3 failed already)" in run(
        "fuzz", *common, "-o", str(folder / "a")
    ).stderr.replace("\n", " ")
    assert run("fuzz", *common, "--keep-failing-seeds", "-o", str(folder / "b")).exit_code == 1
    record = CampaignRecord.open(folder / "b")
    assert [(seed.outcome, seed.reason) for seed in record.seeds] == [("kept", "failed already")] * 3


def test_without_the_gate_nothing_is_rejected(folder: Path) -> None:
    Path("gated.py").write_text(
        "from dataclasses import replace\nimport changes\n\n\ndef gate(seed, text):\n"
        "    return 'odd' if len(text) % 4 else None\n\n\nmutations = replace(changes.mutations, invalid=gate)\n"
    )
    short = ("--mutations", "gated.py:mutations")
    basic = [word for word in BASIC if word not in ("--mutations", "net.py:mutations")]
    runs = ("--runs", "64", "--workers", "0", "--guide", "BSCov")
    run(*basic, *MODEL, *short, *runs, "-o", str(folder / "a"))
    run(*basic, *MODEL, *short, *runs, "--no-validity", "-o", str(folder / "b"))
    with_gate, without = (CampaignRecord.open(folder / name).runs for name in "ab")
    assert any(ran.outcome == "rejected" for ran in with_gate)
    assert not any(ran.outcome == "rejected" for ran in without)


def _campaign(folder: Path) -> Path:
    result = run("fuzz", *SPEECH, "--guide", "none", "--runs", "1", "--workers", "0", "-o", str(folder / "all"))
    assert result.exit_code in (0, 1), result.output
    return folder / "all"


def test_seeds_are_listed_chosen_and_left_out(folder: Path) -> None:
    result = run("seeds", *SPEECH, "-o", str(folder / "seeds.html"))
    assert result.exit_code == 0, result.output
    assert re.match(r"6 seeds: 0 fail already, \d are doubtful recordings", result.stdout)
    page = (folder / "seeds.html").read_text()
    assert page.count("<audio controls") == 6
    assert page.count("data:audio/") == 6
    rows = list(csv.DictReader((folder / "seeds.csv").read_text().splitlines()))
    assert len(rows) == 6
    assert {row["result"] for row in rows} == {"passes"}
    assert all(0.4 <= float(row["seconds"]) <= 0.8 for row in rows)
    assert all(-60 < float(row["level dB"]) < 0 for row in rows), "numbers below zero are numbers, not formulas"
    order = [(len(row["doubtful"].split()), float(row["distance"])) for row in rows]
    assert order == sorted(order, reverse=True), "the most doubtful first, and of those the nearest to a failure"
    record = CampaignRecord.open(_campaign(folder))
    assert {seed.seed: f"{seed.distance:.4f}" for seed in record.seeds} == {
        row["seed"]: row["distance"] for row in rows
    }

    names = [row["seed"] for row in rows]
    for number, row in enumerate(rows):
        row["leave out"] = "yes" if number < 2 else ""
    with open(folder / "choice.csv", "w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    (folder / "choice.txt").write_text("\n".join(names[:2]) + "\n")
    for kind in ("csv", "txt"):
        options = ("--guide", "none", "--runs", "4", "--workers", "0", "--leave-out", str(folder / f"choice.{kind}"))
        result = run("fuzz", *SPEECH, *options, "-o", str(folder / kind))
        assert result.exit_code in (0, 1), result.output
        record = CampaignRecord.open(folder / kind)
        assert {seed.seed for seed in record.seeds if seed.reason == "left out"} == set(names[:2])
        assert {seed.outcome for seed in record.seeds if seed.seed in names[2:]} == {"kept"}
        assert "2 left out" in result.stdout
        assert f"--leave-out {folder}" in record.spec.command_line("x")
    again = run("fuzz", *SPEECH, *options, "--runs", "8", "-o", str(folder / "txt"))
    assert again.exit_code in (0, 1), again.output
    (folder / "choice.txt").write_text(names[0] + "\n")
    refused = run("fuzz", *SPEECH, *options, "--runs", "12", "-o", str(folder / "txt"))
    assert refused.exit_code == 2
    assert "seeds left out" in refused.stderr


def test_a_listing_as_json_and_of_texts(folder: Path) -> None:
    result = run("seeds", "--system", "net.py:system", "--data", "net.py:few", "--disagreement", "--json", "-o",
                 str(folder / "s.html"))  # fmt: skip
    assert result.exit_code == 0, result.output
    rows = json.loads(result.stdout)
    assert [row["seconds"] for row in rows] == ["", ""]
    assert "<audio" not in (folder / "s.html").read_text()


def test_bad_choices(folder: Path) -> None:
    options = ("--guide", "none", "--runs", "4", "--workers", "0", "-o", str(folder / "a"))
    missing = run("fuzz", *SPEECH, *options, "--leave-out", str(folder / "none.txt"))
    assert re.search(r"cannot read .*none\.txt", missing.stderr)
    (folder / "wrong.txt").write_text("nobody\n")
    unknown = run("fuzz", *SPEECH, *options, "--leave-out", str(folder / "wrong.txt"))
    assert "the seed 'nobody' is to be left out, but none of the 6 seeds has that name" in unknown.stderr
    assert run("seeds", *SPEECH, "-o", str(folder / "seeds.txt")).exit_code == 2
    assert fuzz(folder / "b", "--runs", "2").exit_code in (0, 1)


def test_names_that_are_html_are_text(folder: Path) -> None:
    from deepcruiser.report.seed_listing import ListedSeed, write_page

    name = "<script>alert(1)</script>"
    write_page(
        [ListedSeed(name, "passes", name, name, 0.0, None, None, None, ())], folder / "x.html", read=str, sounds=0
    )
    assert name not in (folder / "x.html").read_text()


@pytest.mark.parametrize("option", ["--sample", "--pca-share"])
@pytest.mark.parametrize(("value", "message"), [("0", "must be above 0 and at most 1"), ("1.5", "must be above 0"),
                                                ("nan", "must be above 0"), ("half", "is not a fraction")])  # fmt: skip
def test_shares_of_the_data_that_are_not_shares(folder: Path, option: str, value: str, message: str) -> None:
    result = run("profile", *SPEECH, option, value, "-o", str(folder / "p.profile"))
    assert result.exit_code == 2
    assert f"invalid value for '{option}': '{value}' {message}" in " ".join(result.stderr.split())
    assert not (folder / "p.profile").exists()


def test_exact_is_no_share(folder: Path) -> None:
    result = run("profile", *SPEECH, "--exact", "--pca-share", "0.5", "-o", str(folder / "p.profile"))
    assert result.exit_code == 2
    assert "--exact cannot be combined with --pca-share 0.5: leave one out" in " ".join(result.stderr.split())


def test_a_sample_may_be_in_percent(folder: Path) -> None:
    for name, value in (("a", "0.5"), ("b", "50%")):
        result = run("profile", *SPEECH, "--sample", value, "--exact", "--seed", "3", "-o", str(folder / name))
        assert result.exit_code == 0, result.output
    one, other = (Profile.load(folder / name) for name in "ab")
    assert one == other
    assert 0 < one.origin.traces < 6
