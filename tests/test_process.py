"""ProcessSystem: programs that answer, crash, hang and talk nonsense; and campaigns without states."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import deepcruiser as dc
from deepcruiser.campaign.executors.base import Problem
from deepcruiser.campaign.executors.local import run_all
from deepcruiser.cli import main
from deepcruiser.findings.cluster import find
from tests.support import toy

#: A program whose answer to a sound is the sign of its first sample and its length; texts tell it what to do.
PROGRAM = """
import json, os, sys, time
import numpy as np
print("ready", file=sys.stderr, flush=True)
for line in sys.stdin:
    asked = json.loads(line)
    what = asked.get("input", "")
    if what == "crash":
        print("I fall", file=sys.stderr, flush=True)
        os._exit(3)
    if what == "hang":
        time.sleep(600)
    if what in ("not json", "[1]", '{"text": 3}', "{}", '{"text": "a", "output": 1}'):
        print(what, flush=True)
        continue
    answer = {"id": asked["id"], "text": what or "sound"}
    if what == "error":
        answer = {"error": "too short"}
    if what == "value":
        answer = {"output": [[0.5, 1.0]]}
    if what.startswith("doubt "):
        answer["doubt"] = json.loads(what.removeprefix("doubt "))
    if what == "other id":
        answer["id"] = 7
    if what == "babble":
        print(json.dumps(answer))
    if what == "elsewhere":
        answer["states"] = ELSEWHERE
    if what.startswith("states"):
        path = os.path.join(asked["folder"], f"{asked['id']}.npy")
        states = np.arange(12.0).reshape(4, 3) if what != "states objects" else np.array([{}], dtype=object)
        np.save(path, states, allow_pickle=True)
        answer["states"] = os.path.basename(path) if what == "states beside" else path
        if what != "states":
            inputs = os.path.join(asked["folder"], "inputs.npy")
            np.save(inputs, np.ones((5 if what == "states too many" else 3, 2)))
            answer["inputs"] = inputs
    if "npy" in asked:
        answer["text"] = f"array {np.load(asked['npy']).shape}"
    if "wav" in asked:
        import soundfile
        samples, rate = soundfile.read(asked["wav"], dtype="float32")
        answer["text"] = f"{'high' if np.abs(samples).mean() > 0.05 else 'low'} {rate}"
    print(json.dumps(answer), flush=True)
"""


@pytest.fixture
def program(tmp_path: Path) -> list[str]:
    outside = tmp_path / "outside.npy"
    np.save(outside, np.zeros((2, 2)))
    path = tmp_path / "program.py"
    path.write_text(PROGRAM.replace("ELSEWHERE", repr(str(outside))))
    return [sys.executable, str(path)]


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """What is put aside for programs goes here, and nothing stays."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    yield
    assert not list(folder.glob("deepcruiser-*"))


def test_answers_come_in_the_order_of_the_batch(program: list[str]) -> None:
    with dc.ProcessSystem(program) as system:
        runs = system.run([f"text {number}" for number in range(40)])
        assert [run.output for run in runs] == [f"text {number}" for number in range(40)]
        assert all(run.trace is None for run in runs)
        assert system.run(["value"])[0].output == [[0.5, 1.0]]
        assert system.run([np.zeros((3, 2))])[0].output == "array (3, 2)"
        assert system.run([]) == []


def test_sound_goes_as_a_wav_at_the_rate(program: list[str]) -> None:
    loud = dc.Audio(np.sin(np.arange(8000) / 9), 8000)
    with dc.ProcessSystem(program) as system, dc.ProcessSystem(program, rate=16_000) as resampling:
        assert system.run([loud, dc.Audio(0.01 * loud.samples, 8000)])[0].output == "high 8000"
        assert resampling.run([loud])[0].output == "high 16000"


def test_states_make_a_trace(program: list[str]) -> None:
    with dc.ProcessSystem(program) as system:
        bare, whole, beside = system.run(["states", "states and inputs", "states beside"])
    assert np.array_equal(bare.traced.states, np.arange(12.0).reshape(4, 3))
    assert np.array_equal(bare.traced.inputs, np.zeros((3, 1)))
    assert np.array_equal(whole.traced.inputs, np.ones((3, 2)))
    assert len(beside.traced) == 3
    with dc.ProcessSystem(program) as system:
        texts = [f"states {number}" for number in range(4)]
        model = dc.profile(system, texts, components=1, exact=True).abstract(3)
        assert dc.cover(model, system, texts).traces == 4


def test_a_doubt_is_optional(program: list[str]) -> None:
    answers = ["doubt 0.25", "doubt 3", "doubt null", "doubt NaN", "doubt -Infinity", "doubt 1" + "0" * 400, "states"]
    with dc.ProcessSystem(program) as system:
        assert [run.doubt for run in system.run(answers)] == [0.25, 3.0, None, None, None, None, None]


@pytest.mark.parametrize(
    ("what", "message"),
    [
        ("crash", r"ended with status 3 instead of answering; its standard error ends with: ready / I fall"),
        ("not json", r"answered 'not json', which is not a JSON object on one line"),
        ("[1]", r"answered '\[1\]', which is not a JSON object"),
        ('{"text": 3}', r'but must answer \{"text": "..."\}, or \{"output": ...\} with any other value'),
        ("{}", r"but must answer"),
        ('{"text": "a", "output": 1}', r"but must answer"),
        ("error", r"could not run an input: too short"),
        ('doubt "low"', r"returned the doubt 'low', but it must be a number"),
        ("doubt true", r"returned the doubt True, but it must be a number"),
        ("other id", r"answered input 7, but input 0 was next"),
        ("elsewhere", r"outside.npy', which is not in the folder of the batch"),
        ("states objects", r"which is not a readable .npy file"),
        ("states too many", r"an invalid trace: 4 states do not fit 5 inputs"),
    ],
)
def test_what_is_no_answer_is_an_error_and_the_next_batch_runs(program: list[str], what: str, message: str) -> None:
    with dc.ProcessSystem(program) as system:
        assert system.run(["fine"])[0].output == "fine"
        with pytest.raises(dc.DeepCruiserError, match=message):
            system.run([what])
        assert system.run(["fine again"])[0].output == "fine again"


def test_more_than_was_asked_for_is_no_answer_to_the_next_question(program: list[str]) -> None:
    with dc.ProcessSystem(program) as system:
        assert system.run(["babble"])[0].output == "babble"
        time.sleep(0.5)
        with pytest.raises(dc.DeepCruiserError, match="before it was asked"):
            system.run(["next"])
        assert system.run(["next"])[0].output == "next"


def test_a_program_that_hangs_is_ended(program: list[str]) -> None:
    with dc.ProcessSystem(program, limit_seconds=1) as system:
        system.run(["warm"])
        with pytest.raises(TimeoutError, match=r"gave no answer within 1 s; its standard error ends with: ready"):
            system.run(["hang"])
        assert system._program is None
        assert system.run(["awake"])[0].output == "awake"


def test_a_program_that_never_answers_is_not_waited_for_again_and_again() -> None:
    system = dc.ProcessSystem([sys.executable, "-c", "import time; time.sleep(600)"], limit_seconds=0.3)
    for _ in range(3):
        with pytest.raises(TimeoutError, match="no answer within"):
            system.run(["a"])
    with pytest.raises(dc.DeepCruiserError, match="never answered in 3 attempts and is not started again"):
        system.run(["a"])


def test_a_program_that_does_not_read_blocks_nobody() -> None:
    system = dc.ProcessSystem([sys.executable, "-c", "import time; time.sleep(600)"], limit_seconds=0.5)
    with pytest.raises(TimeoutError):
        system.run(["x" * 2_000_000])


def test_programs_that_cannot_be_started(tmp_path: Path) -> None:
    with pytest.raises(dc.FileError, match=r"cannot start './nothing --json': there is no program './nothing'; give"):
        dc.ProcessSystem("./nothing --json")
    (tmp_path / "text").write_text("no program")
    with pytest.raises(dc.FileError, match="it is not executable"):
        dc.ProcessSystem([tmp_path / "text"])
    with pytest.raises(dc.InputError, match="the command is empty"):
        dc.ProcessSystem([])
    with pytest.raises(dc.InputError, match="is a list, which cannot be given to a program"):
        dc.ProcessSystem("cat").run([[1, 2]])


def test_no_shell_reads_the_command(tmp_path: Path) -> None:
    script = "import json, sys; [print(json.dumps({'text': sys.argv[1]}), flush=True) for _ in sys.stdin]"
    with dc.ProcessSystem([sys.executable, "-c", script, f"$HOME; touch {tmp_path}/touched"]) as system:
        assert system.run(["a"])[0].output.startswith("$HOME; touch")
    assert not (tmp_path / "touched").exists()


def test_the_fingerprint_follows_the_files(program: list[str]) -> None:
    before = dc.ProcessSystem(program).fingerprint
    assert dc.ProcessSystem(program).fingerprint == before
    assert dc.ProcessSystem([*program, "--fast"]).fingerprint != before
    Path(program[1]).write_text(PROGRAM + "\n# newer\n")
    assert dc.ProcessSystem(program).fingerprint != before


PARENT = """
import sys, time
import deepcruiser as dc
system = dc.ProcessSystem([sys.executable, sys.argv[1]])
print(system.run(["fine"])[0].output, system._program._process.pid, flush=True)
if sys.argv[2] == "hang":
    system.run(["hang"])
if sys.argv[2] == "wait":
    time.sleep(600)
"""


@pytest.mark.parametrize(("how", "ends"), [("end", None), ("hang", signal.SIGINT), ("wait", signal.SIGINT)])
def test_the_program_ends_with_us(program: list[str], how: str, ends: int | None) -> None:
    command = [sys.executable, "-c", PARENT, program[1], how]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        message, child = parent.stdout.readline().split()
        assert message == "fine"
        if ends is not None:
            time.sleep(0.5)
            parent.send_signal(ends)
        parent.wait(30)
    for _ in range(100):
        if not Path(f"/proc/{child}").exists():
            break
        time.sleep(0.05)
    with pytest.raises(ProcessLookupError):
        os.kill(int(child), 0)


def sounds(folder: Path) -> Path:
    """Six sounds just loud enough to be called high."""
    folder.mkdir()
    for number in range(6):
        rng = np.random.default_rng(number)
        dc.Audio(0.06 * np.sign(rng.standard_normal(4000)), 8000).write(folder / f"{number}.wav")
    return folder


@pytest.mark.parametrize("guide", ["none", "random"])
def test_a_campaign_without_states(program: list[str], tmp_path: Path, guide: str) -> None:
    seeds = dc.read_corpus(sounds(tmp_path / "sounds"))
    options: dict[str, Any] = {"guide": guide, "oracle": dc.Disagreement(), "workers": 0, "batch_size": 8}
    options["scheduler"] = "uniform"  # which changes what was kept as often as anything else
    with dc.ProcessSystem(program) as system:
        half = dc.fuzz(system, None, seeds, folder=tmp_path / "two", runs=32, **options)
        assert len(half.runs) == 32
        campaign = dc.fuzz(system, None, seeds, folder=tmp_path / "two", runs=64, **options)
        whole = dc.fuzz(system, None, seeds, folder=tmp_path / "one", runs=64, **options)
        assert campaign.spec.guide.type == guide
        assert campaign.model is None
        assert all(event.visits is None for event in campaign.events)
        assert campaign.failed
        assert [test.digest for test in campaign.failed] == [test.digest for test in whole.failed]
        assert any(event.parent > 0 for event in campaign.runs) == (guide == "random")
        for test in campaign.failed:
            assert not test.replay(system).differences
        with pytest.raises(dc.InputError, match=r"the guide 'BSCov.*' needs a model of the system's states: profile"):
            dc.fuzz(system, None, seeds, folder=tmp_path / "three", runs=8)
        with pytest.raises(dc.InputError, match=r"until_coverage=0.5 needs a model"):
            dc.fuzz(system, None, seeds, folder=tmp_path / "four", until_coverage=0.5, **options)
        with pytest.raises(dc.InputError, match="output without states, so nothing can be profiled"):
            dc.profile(system, seeds)


def test_a_guide_of_a_program_that_shows_no_states(program: list[str], tmp_path: Path) -> None:
    seeds = dc.read_corpus(sounds(tmp_path / "sounds"))
    with dc.ProcessSystem(program) as system:
        traces = [run.traced for run in system.run(["states 1", "states 2"])]
        model = dc.Profile.of(traces, components=1).abstract(3)
        with pytest.raises(dc.InputError, match=r"output without states.*guide='none' or 'random'"):
            dc.fuzz(system, model, seeds, folder=tmp_path / "one", oracle=dc.Disagreement(), workers=0, runs=8)


def test_a_campaign_survives_crashes(tmp_path: Path) -> None:
    """One that falls over quiet sounds: those are the failing tests, and the others of their batches are not."""
    script = tmp_path / "fragile.py"
    script.write_text(
        PROGRAM.replace(
            '        answer["text"] = f"{\'high\'',
            '        1 // int(np.abs(samples).mean() > 0.05)\n        answer["text"] = f"{\'high\'',
        )
    )
    seeds = dc.read_corpus(sounds(tmp_path / "sounds"))
    options: dict[str, Any] = {"oracle": dc.Disagreement(), "workers": 0}
    with dc.ProcessSystem([sys.executable, str(script)]) as system:
        campaign = dc.fuzz(system, None, seeds, guide="none", runs=32, folder=tmp_path / "one", **options)
        assert {test.kind for test in campaign.failed} == {"crash"}
        assert "ZeroDivisionError" in campaign.failed[0].output
        assert not campaign.failed[0].replay(system).differences
    assert {event.outcome for event in campaign.events} >= {"failed", "dropped"}


def test_the_command_line(program: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    sounds(tmp_path / "sounds")
    command = f"process: {sys.executable} program.py"
    options = ["fuzz", "--system", command, "--data", "sounds", "--disagreement", "--workers", "0", "-o", "run"]
    result = CliRunner().invoke(main, [*options, "--guide", "none", "--runs", "32"])
    assert result.exit_code == 1, result.output
    assert "guide: none; stopped: 32 runs are done" in result.output
    assert "coverage" not in result.output
    other = tmp_path / "other"
    other.mkdir()
    monkeypatch.chdir(other)
    result = CliRunner().invoke(main, ["replay", "../run"])
    assert result.exit_code == 1, result.output
    assert "exactly as before" in result.output
    assert "states are not compared" not in result.output
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(main, [*options[:-1], "guided", "--runs", "8"])
    assert result.exit_code == 2
    assert "give either --profile and --partitions, or --model" in result.output
    result = CliRunner().invoke(main, [*options[:-1], "measured", "--guide", "none,2-SBCov", "--runs", "8"])
    assert result.exit_code == 2
    assert "needs a model of the system's states" in result.output


def test_the_example(tmp_path: Path) -> None:
    example = Path(__file__).resolve().parents[1] / "examples" / "any_program.py"
    command = [
        sys.executable,
        str(example),
        str(sounds(tmp_path / "sounds")),
        "--runs",
        "32",
        "--output",
        str(tmp_path),
    ]
    result = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"})
    assert result.returncode == 0, result.stderr
    assert result.stdout.count(": 32 runs, ") == 2
    for failing, of in re.findall(r"(\d+) of (\d+) fail again", result.stdout):
        assert failing == of


def test_a_crash_that_does_not_repeat_is_a_finding_of_its_own(tmp_path: Path) -> None:
    """A program that dies on every 25th input."""
    script = tmp_path / "tired.py"
    script.write_text(
        PROGRAM.replace("for line in sys.stdin:", "for number, line in enumerate(sys.stdin, 1):")
        .replace(
            '    what = asked.get("input", "")',
            '    what = asked.get("input", "")\n    if number == 25:\n        os.kill(os.getpid(), 11)',
        )
        .replace('what or "sound"', '"always the same"')
    )
    texts = [toy.Text(f"t{number}", f"text {number}") for number in range(8)]
    mutations = dc.Mutations.text()
    options: dict[str, Any] = {"oracle": dc.Disagreement(), "workers": 0, "guide": "none", "mutations": mutations}
    with dc.ProcessSystem([sys.executable, str(script)]) as system:
        campaign = dc.fuzz(system, None, texts, folder=tmp_path / "run", runs=128, batch_size=8, **options)
    assert {test.kind for test in campaign.failed} <= {"crash", "crash once"}
    assert len(campaign.failed) >= 2
    once = [test for test in campaign.failed if test.kind == "crash once"]
    assert len(once) >= 2
    assert all("was killed by SIGSEGV" in test.output for test in once)
    assert all((tmp_path / "run" / "failed" / f"{test.number:06}.txt").exists() for test in once)
    titles = [finding.title for finding in find(campaign).findings]
    assert any("crash once" in title for title in titles), titles


def test_a_program_that_dies_after_its_answer_is_noticed() -> None:
    code = "import json, os; print(json.dumps({'text': json.loads(input())['input']}), flush=True); os._exit(7)"
    system = dc.ProcessSystem([sys.executable, "-c", code])
    assert system.run(["a"])[0].output == "a"
    assert system._program is not None
    system._program._process.wait()
    with pytest.raises(dc.DeepCruiserError, match="ended with status 7 after its last answer"):
        system.run(["b"])
    assert system.run(["c"])[0].output == "c"
    system.close()


@pytest.mark.skipif(os.name != "posix", reason="sessions are those of POSIX")
def test_a_grandchild_that_holds_the_pipes_does_not_hold_us() -> None:
    code = "import subprocess, sys; subprocess.Popen(['sleep', '20'], start_new_session=True); sys.exit(3)"
    began = time.monotonic()
    system = dc.ProcessSystem([sys.executable, "-c", code], limit_seconds=2)
    with pytest.raises(dc.DeepCruiserError, match="no answer within 2 s"):
        system.run(["x" * 2_000_000])
    assert time.monotonic() - began < 15


@pytest.mark.parametrize("caught", ["except Exception", "except BaseException", "except"])
def test_a_system_that_swallows_what_ends_it_is_timed_out_all_the_same(caught: str) -> None:
    loop = f"while True:\n  try:\n   time.sleep(0.01)\n  {caught}:\n   pass"
    code = f"def run(batch):\n {loop}"
    names: dict[str, Any] = {"time": time}
    exec(code, names)
    system: Any = SimpleNamespace(run=names["run"])
    (problem,) = run_all(system, ["a"], limit_seconds=0.1)
    assert isinstance(problem, Problem)
    assert problem.kind == "time-out"
    assert "no answer within 0.1 s" in problem.message


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="timers are those of POSIX")
def test_a_time_limit_that_ends_as_the_answer_comes_leaves_no_timer(monkeypatch: pytest.MonkeyPatch) -> None:
    """The alarm may come during the call that stops it; a timer that continues would kill this process."""
    set_timer, stops = signal.setitimer, []

    def setitimer(which: int, seconds: float) -> None:
        set_timer(which, seconds)
        if not seconds:
            stops.append(seconds)
            signal.raise_signal(signal.SIGALRM)

    monkeypatch.setattr(signal, "setitimer", setitimer)
    before = signal.signal(signal.SIGALRM, lambda *_: None)
    try:
        (run,) = run_all(toy.Reader(), ["()"], limit_seconds=60)
        left = signal.getitimer(signal.ITIMER_REAL)
    finally:
        set_timer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert isinstance(run, dc.Run)
    assert (stops, left) == ([0], (0.0, 0.0))
