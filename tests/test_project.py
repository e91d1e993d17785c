"""The project file, and the commands that write, read and list it."""

from __future__ import annotations

import functools
import json
import os
import subprocess
import sys
import tomllib
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

import deepcruiser as dc
from deepcruiser.campaign.guide import KEEP
from deepcruiser.campaign.spec import SCHEDULERS
from deepcruiser.cli import COMMANDS, main
from deepcruiser.cli.doctor import EXTRAS
from deepcruiser.cli.fuzz import GROUPS
from deepcruiser.cli.project import OWN, defaults, line_of
from deepcruiser.systems import BUILT_IN, load
from deepcruiser.systems.load import object_from
from tests.support.corpora import sound
from tests.test_docs import RECOGNISER

ROOT = Path(__file__).resolve().parents[1]
EXAMPLES = ROOT / "examples"
TOML = """
system = "net.py:system"
train = "train"
data = "tests"
profile = "net.profile"
partitions = 7
seed = 3
max_findings = 2

[oracle]
type = "WordErrorRate"
above = 0.2

[mutations]
type = "sound"
kinds = ["ChangeSpeed"]
ranges = { ChangeSpeed = { factor = [0.9, 1.1] } }

[targets.small]
system = "small.py:system"
guide = "none"

[targets.loud]
data = "loud"
folder = "elsewhere"
"""


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def deepcruiser(*arguments: str) -> Result:
    return CliRunner().invoke(main, arguments)


def printed(*arguments: str, status: tuple[int, ...] = (0,)) -> str:
    result = deepcruiser(*arguments)
    assert result.exit_code in status, (result.output, result.exception)
    return result.output


def test_each_command_takes_what_it_needs(here: Path) -> None:
    (here / "deepcruiser.toml").write_text(TOML)
    assert defaults("profile", None) == {"system": "net.py:system", "seed": 3, "data": "train", "output": "net.profile"}
    cover, fuzz = defaults("cover", None), defaults("fuzz", "loud")
    assert (cover["data"], cover["partitions"], cover["profile"]) == ("tests", 7, "net.profile")
    assert (fuzz["output"], fuzz["data"], fuzz["system"]) == ("elsewhere", "loud", "net.py:system")
    assert (fuzz["wer_above"], fuzz["ranges"]) == ("0.2", ("ChangeSpeed.factor=0.9,1.1",))
    assert "normalise" not in fuzz, "the usual differences are ignored, as without a project file"
    small = defaults("fuzz", "small")
    assert (small["keep"], small["output"], small["seed"]) == ("none", "runs/small", 3)
    assert defaults("findings", None) == {"folder": "runs/campaign", "folders": ("runs/campaign",), "max_findings": 2}


def test_it_may_be_a_table_of_pyproject(here: Path) -> None:
    (here / "pyproject.toml").write_text('[project]\nname = "x"\n[tool.deepcruiser]\nsystem = "a.py:b"\nsed = 3\n')
    assert "pyproject.toml, line 5: unknown key 'sed'; did you mean 'seed'?" in deepcruiser("cover").stderr
    (here / "pyproject.toml").write_text('[project]\nname = "x"\n')
    assert defaults("cover", None) == {}


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("partitons = 7", "line 6: unknown key 'partitons'; did you mean 'partitions'?"),
        ('partitions = "7"', "line 6: partitions must be a whole number, not '7'"),
        ("partitions = 7\nmax_findings = 0.5", "line 7: max_findings must be a whole number"),
        ("batch_size = 0", "line 6: batch_size must be at least 1, not 0"),
        ('[oracle]\ntype = "WordErrorRat"', "line 7: unknown type of oracle 'WordErrorRat'; did you mean 'WordErr"),
        ('oracle = { type = "Disagreement", above = 3 }', "line 6: unknown field of the oracle Disagreement 'above'"),
        (
            '[mutations]\ntype = "text"\nkinds = ["Typo"]',
            "line 6: unknown kind of mutation 'Typo'; did you mean 'Typos'",
        ),
        ("[targets.a]\nseed = 1\n[targets.b]\nsead = 2", "line 9: unknown key 'sead'; did you mean 'seed'?"),
        ("partitions = = 7", "line 6"),
    ],
)
def test_an_error_names_the_line(line: str, message: str, here: Path) -> None:
    (here / "deepcruiser.toml").write_text(f'# a comment\nsystem = "a.py:b"\n\ndata = "x"\nprofile = "p"\n{line}\n')
    result = deepcruiser("fuzz")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "deepcruiser.toml" in result.stderr
    assert message in result.stderr


def test_the_line_of_a_key() -> None:
    for number, line in enumerate(TOML.splitlines(), 1):
        if line.startswith("above"):
            assert line_of(TOML, ("oracle", "above")) == number
        if line.startswith("ranges"):
            assert line_of(TOML, ("mutations", "ranges", "ChangeSpeed")) == number
    assert line_of(TOML, ("targets", "small", "nothing")) == TOML.splitlines().index("[targets.small]") + 1


def test_targets(here: Path) -> None:
    (here / "deepcruiser.toml").write_text('[targets.a]\nsystem="a.py:x"\n[targets.b]\nsystem="b.py:x"\n')
    assert "give --target: the targets of deepcruiser.toml are a, b" in deepcruiser("cover").stderr
    assert (
        "there is no target 'c': the targets of deepcruiser.toml are a, b"
        in deepcruiser("fuzz", "--target", "c").stderr
    )
    (here / "deepcruiser.toml").unlink()
    assert "--target 'a' needs a deepcruiser.toml" in deepcruiser("cover", "--target", "a").stderr
    assert "missing option '--system', here or in deepcruiser.toml" in deepcruiser("cover").stderr


def test_what_is_typed_comes_first_and_replaces_what_does_not_go_with_it(here: Path) -> None:
    (here / "deepcruiser.toml").write_text(TOML)
    for typed, message in ((("--model", "no.model"), "no.model"), (("--profile", "other.profile"), "other.profile")):
        (here / "net.py").write_text("system = __import__('deepcruiser').load_system('brackets')")
        sound(here / "tests" / "a.wav")
        assert message in deepcruiser("cover", *typed).stderr
    assert "give one of" not in deepcruiser("fuzz", "--disagreement").stderr
    assert "cannot be combined with" not in deepcruiser("fuzz", "--mutations", "text").stderr


@pytest.mark.parametrize(("name", "tests"), [("text_classifier", "texts"), ("series_monitor", "signals")])
def test_init_writes_a_project_that_runs_unchanged(
    name: str, tests: str, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = EXAMPLES / f"{name}.py"
    module = sys.modules[object_from(f"{file}:system").__module__]
    monkeypatch.setattr(module, "train", functools.cache(module.train))  # once, not in every command
    message = printed("init", f"{file}:system", "--data", f"{file}:{tests}", "--train", f"{file}:training")
    assert message.count("expected") == 3
    values = tomllib.loads((here / "deepcruiser.toml").read_text())
    assert values["oracle"] == {"type": "Disagreement"}
    assert values["mutations"] == ("text" if name == "text_classifier" else "series")
    printed("profile")
    assert "BSCov" in printed("cover")
    assert "48 runs" in printed("fuzz", "--runs", "48", "--workers", "0", "--plain", status=(0, 1))
    result = json.loads(printed("status", "--json"))
    assert (result["runs"], result["running"], result["runs_planned"]) == (48, False, 48)
    printed("findings", "--shrink", "0", status=(0, 1))
    assert f"runs/{name}" in printed("report")
    assert (here / "runs" / name / "report.html").is_file()
    assert "already" in deepcruiser("init", f"{file}:system").stderr


PACKING = """
from torch import nn

class Packing(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(20, 8, batch_first=True)

    def forward(self, frames, lengths):
        packed = nn.utils.rnn.pack_padded_sequence(frames, lengths, batch_first=True)
        return self.lstm(packed)[1][0][-1]


packing, tests = Packing(), [np.ones((9, 20), np.float32)]
"""


def forget() -> None:
    """Import the user's files again, as a new process would."""
    load._modules.clear()
    for name in ("recogniser", "recogniser_system"):
        sys.modules.pop(name, None)


def test_init_wraps_a_module(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (here / "recogniser.py").write_text(RECOGNISER)
    monkeypatch.syspath_prepend(here)
    for number in range(2):
        sound(here / "speech" / f"{number}.wav", seconds=0.5)
    failed = deepcruiser("init", "recogniser.py:net", "--data", "speech")
    assert "cannot run the first 2 inputs" in failed.stderr
    assert "correct recogniser_system.py, then run deepcruiser init recogniser_system.py:system" in failed.stderr
    assert "recorded: encoder.lstm; the last one" in (here / "recogniser_system.py").read_text()
    assert not (here / "deepcruiser.toml").exists()
    forget()
    functions = ("--features", "recogniser.py:log_mel", "--transcribe", "recogniser.py:greedy", "--rate", "16000")
    message = printed("init", "recogniser.py:net", "--data", "speech", *functions)
    assert "from recogniser import net, log_mel, greedy\n" in (here / "recogniser_system.py").read_text()
    assert "TorchSystem(Recogniser, encoder.lstm: h): the first 2 inputs" in message
    assert tomllib.loads((here / "deepcruiser.toml").read_text())["oracle"]["type"] == "WordErrorRate"
    assert "M{3,20}" in printed("profile") + printed("cover")
    forget()
    (here / "deepcruiser.toml").unlink()
    with (here / "recogniser_system.py").open("a") as file:
        file.write("# mine\n")
    refused = deepcruiser("init", "recogniser.py:net", "--data", "speech", *functions)
    assert (
        "error: recogniser_system.py exists already: run deepcruiser init recogniser_system.py:system" in refused.stderr
    )
    assert (here / "recogniser_system.py").read_text().endswith("# mine\n")
    for arguments in (("recogniser.py", "--data", "speech"), ("recogniser.py:net", "--data", "recogniser.py")):
        assert "'recogniser.py' is a Python file: name what it" in deepcruiser("init", *arguments).stderr
    forget()


def test_init_of_a_function_that_makes_the_network(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = "def make():\n    return Recogniser()\n\n\ntests = [(np.ones((9, 20), np.float32), 'yes')]\n"
    (here / "recogniser.py").write_text(f"{RECOGNISER}\n\n{made}")
    monkeypatch.syspath_prepend(here)
    refused = deepcruiser("profile", "--system", "recogniser.py:make", "--data", "recogniser.py:tests", "-o", "x")
    assert "is a bare Recogniser: wrap it" in refused.stderr
    assert "deepcruiser init recogniser.py:make does it" in refused.stderr
    message = printed("init", "recogniser.py:make", "--data", "recogniser.py:tests")
    assert "make().eval()," in (here / "recogniser_system.py").read_text()
    assert "note: the answers are raw scores: say what they mean, such as transcribe=lambda scores: dc." in message
    assert "Next: correct recogniser_system.py, then deepcruiser profile" in message
    assert '# batch="equal",' in (here / "recogniser_system.py").read_text()
    forget()


def test_init_of_a_network_that_takes_lengths(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (here / "recogniser.py").write_text(f"{RECOGNISER}\n\n{PACKING}")
    monkeypatch.syspath_prepend(here)
    assert "Trace of 9 steps" in printed("init", "recogniser.py:packing", "--data", "recogniser.py:tests")
    assert 'batch="lengths",' in (here / "recogniser_system.py").read_text()
    forget()


def test_init_of_a_damaged_network_leaves_nothing_behind(here: Path) -> None:
    (here / "net.onnx").write_bytes(b"damaged")
    sound(here / "speech" / "a.wav")
    assert (
        "error: 'net.onnx' is not an ONNX file, or it is damaged"
        in deepcruiser("init", "net.onnx", "--data", "speech").stderr.splitlines()
    )
    assert {path.name for path in here.iterdir()} == {"net.onnx", "speech"}


def test_init_of_a_program_without_states(here: Path) -> None:
    sound(here / "speech" / "a.wav")
    (here / "said.py").write_text(
        "import json, sys\nfor line in sys.stdin:\n    print(json.dumps({'text': 'yes'}), flush=True)\n"
    )
    values: dict[str, Any] = json.loads(
        printed("init", f"process: {sys.executable} said.py", "--data", "speech", "--json")
    )["values"]
    assert (values["guide"], "profile" in values, values["folder"]) == ("none", False, "runs/campaign")
    assert "8 runs" in printed("fuzz", "--runs", "8", "--workers", "0", status=(0, 1))


def test_doctor_and_list() -> None:
    result = json.loads(printed("doctor", "--json"))
    assert result["self_test"] == {"passed": True, "problem": "", "seconds": result["self_test"]["seconds"]}
    assert not result["missing"]
    assert result["versions"]["deepcruiser"] == dc.__version__
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert set(EXTRAS) <= set(extras)
    names = {each["name"] for each in json.loads(printed("list", "transformations", "--json"))}
    assert {kind.__name__ for kind in dc.transformations.PAPER} < names
    for what, known in (("systems", BUILT_IN), ("criteria", KEEP), ("schedulers", SCHEDULERS)):
        assert set(known) <= {each["name"] for each in json.loads(printed("list", what, "--json"))}


def test_a_line_of_help_for_each_key() -> None:
    """docs/project.md has every key."""
    text = (ROOT / "docs" / "project.md").read_text()
    assert not [key for key in (*OWN, *(each.name for each in fields(dc.CampaignSpec))) if f"`{key}`" not in text]
    assert {"init", "doctor", "list", "status"} <= set(COMMANDS)


def test_the_help_of_fuzz_is_grouped_and_names_what_there_is() -> None:
    text = " ".join(printed("fuzz", "--help").split())
    places = [text.index(f" {heading}: -") for heading in GROUPS]
    assert places == sorted(places)
    assert all(kind.__name__ in text for kind in dc.transformations.PAPER)
    assert "run(batch) -> list[Run]" in text
    assert "--spans-below" not in printed("evaluate", "rq3", "--help")


def test_quiet_and_verbose(here: Path) -> None:
    (here / "deepcruiser.toml").write_text('system = "brackets"\nruns = 5\nguide = "none"\n')
    assert deepcruiser("fuzz", "-q", "-o", "a").stderr == ""
    message = deepcruiser("fuzz", "-v", "-o", "b").stderr
    assert sum(line.startswith(("run ", "failing test ")) for line in message.splitlines()) == 5


def test_completion() -> None:
    environment = {"_DEEPCRUISER_COMPLETE": "bash_complete", "COMP_WORDS": "deepcruiser fu", "COMP_CWORD": "1"}
    command = [sys.executable, "-c", "from deepcruiser.cli import main; main(prog_name='deepcruiser')"]
    result = subprocess.run(command, env={**os.environ, **environment}, capture_output=True, text=True)
    assert result.stdout == "plain,fuzz\n"
