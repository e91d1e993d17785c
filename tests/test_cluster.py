"""A campaign on a Ray cluster: on one node, on two, and on two of which one is lost."""

from __future__ import annotations

import os
import socket
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import deepcruiser as dc
from deepcruiser.campaign.fuzz import Status
from tests.support import toy
from tests.support.typed import run
from tests.test_workers import campaign_worker

pytest.importorskip("ray", reason="Ray is not installed")


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    from ray.cluster_utils import Cluster

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", os.pathsep.join([str(Path(__file__).parents[1]), *sys.path]))
        patch.setenv("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        cluster: Any = Cluster(initialize_head=True, head_node_args={"num_cpus": 2, "include_dashboard": False})
        yield cluster
        cluster.shutdown()


def on(cluster: Any, folder: Path, count: int, **options: Any) -> dict[str, Any]:
    """What the database of a campaign holds that ran on the cluster alone."""
    with dc.RayWorkers(campaign_worker, count, address=cluster.address) as workers:
        while not workers.ready:
            time.sleep(0.05)
        toy.campaign(folder, workers=workers, batch_size=4, window=16, **options)
    return toy.rows(folder)


@pytest.mark.filterwarnings("ignore")
def test_one_node_two_nodes_and_one_that_is_lost(tmp_path: Path, cluster: Any) -> None:
    toy.campaign(tmp_path / "here", batch_size=4, window=16, runs=96)
    here = toy.rows(tmp_path / "here")
    assert on(cluster, tmp_path / "one", 2, runs=96) == here
    node = cluster.add_node(num_cpus=2)
    assert on(cluster, tmp_path / "two", 4, runs=96) == here

    def watch(status: Status) -> None:
        if status.state.runs == 48:
            cluster.remove_node(node, allow_graceful=False)

    assert on(cluster, tmp_path / "lost", 4, runs=96, watch=watch) == here


@pytest.mark.filterwarnings("ignore")
def test_the_command_runs_on_a_cluster(tmp_path: Path, cluster: Any) -> None:
    common = ["fuzz", "--system", "brackets", "--guide", "none", "--runs", "32", "--plain"]
    assert run(*common, "--cluster", cluster.address, "-o", str(tmp_path / "cluster")).exit_code in (0, 1)
    assert run(*common, "--workers", "0", "-o", str(tmp_path / "here")).exit_code in (0, 1)
    assert toy.rows(tmp_path / "cluster") == toy.rows(tmp_path / "here")
    common = ["profile", "--system", "brackets", "--data", "brackets", "--batch-size", "2"]
    assert run(*common, "--cluster", cluster.address, "-o", str(tmp_path / "cluster.profile")).exit_code == 0
    assert run(*common, "-o", str(tmp_path / "here.profile")).exit_code == 0
    assert (tmp_path / "cluster.profile").read_bytes() == (tmp_path / "here.profile").read_bytes()


@pytest.mark.filterwarnings("ignore")
def test_a_question_is_asked_on_a_cluster(tmp_path: Path, cluster: Any) -> None:
    profile, outputs = str(tmp_path / "a.profile"), []
    assert run("profile", "--system", "brackets", "--data", "brackets", "--exact", "-o", profile).exit_code == 0
    common = [
        "evaluate",
        "rq1",
        "--system",
        "brackets",
        "--profile",
        profile,
        "--seeds",
        "6",
        "--mutants",
        "4",
        "--json",
    ]
    for name, options in (("here", []), ("cluster", ["--cluster", cluster.address, "--jobs", "2"])):
        result = run(*common, *options, "-o", str(tmp_path / name))
        assert result.exit_code == 0, result.output
        outputs.append(result.stdout)
    assert outputs[0] == outputs[1]


@pytest.mark.filterwarnings("ignore")
def test_what_is_missing_on_a_machine_is_named(tmp_path: Path, cluster: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker imports or opens something that the driver found."""
    monkeypatch.chdir(tmp_path)
    common = ["--data", "here.py:data", "--cluster", cluster.address, "--workers", "1", "-o", "x.profile"]
    missing = (
        ("import missing_module", "No module named 'missing_module'"),
        ("open('weights.bin')", "'weights.bin'"),
    )
    for line, what in missing:
        (tmp_path / "here.py").write_text(
            "import os\nfrom deepcruiser import load_system\n"
            f"if os.getpid() != {os.getpid()}:\n    {line}\n"
            "system = load_system('brackets')\ndata = ['()', '[]', '(())']\n"
        )
        sys.modules.pop("here", None)
        result = run("profile", "--system", "here.py:system", *common)
        assert result.exit_code == 2, result.output
        text = " ".join(result.stderr.split())
        assert f"a worker on {socket.gethostname()} could not start: 'here.py' could not be run" in text
        assert what in text


def test_no_cluster_at_the_address() -> None:
    began = time.monotonic()
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        with pytest.raises(dc.InputError, match=rf"no Ray cluster answers at '{address}' \(nothing within 14 s\)"):
            dc.RayWorkers(campaign_worker, 1, address=address)
    assert time.monotonic() - began < 20
    began = time.monotonic()
    with pytest.raises(dc.InputError, match=r"no Ray cluster answers at '127.0.0.1:9' .*ray start --head"):
        dc.RayWorkers(campaign_worker, 1, address="127.0.0.1:9")
    with pytest.raises(dc.InputError, match="no Ray cluster answers at 'somewhere'"):
        dc.RayWorkers(campaign_worker, 1, address="somewhere")
    assert time.monotonic() - began < 30
