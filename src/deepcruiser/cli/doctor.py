"""deepcruiser doctor: check the installation."""

from __future__ import annotations

import json
import os
import platform
import time
from importlib.metadata import PackageNotFoundError, requires, version
from importlib.util import find_spec
from typing import Any

import click

from deepcruiser.cli import options
from deepcruiser.cli.output import say

#: What each extra brings: the modules that it needs, and what for.
EXTRAS = {
    "onnx": (("onnx", "onnxruntime"), "ONNX files"),
    "keras": (("keras", "h5py"), "Keras files"),
    "tflite": (("ai_edge_litert",), "TFLite files, and .tflite files of DeepSpeech"),
    "deepspeech-tf": (("tensorflow",), ".pb and .pbmm files of DeepSpeech"),
    "evaluate": (("matplotlib", "sklearn"), "the figures of evaluate"),
    "plot": (("matplotlib", "pandas"), "plot() and to_dataframe() in Python"),
    "listening": (("pesq", "pystoi"), "measuring how mild transformations are"),
}


@click.command()
@options.json_output()
def doctor(as_json: bool) -> None:
    """Check the installation: versions, extras, devices, and a self-test that takes a second.

    \b
    deepcruiser doctor

    Exit status: 0 everything works, 1 the self-test failed.
    """
    versions = {name: _version(name) for name in _packages()}
    result: dict[str, Any] = {
        "python": platform.python_version(),
        "system": platform.platform(),
        "versions": {name: version for name, version in versions.items() if version is not None},
        "missing": [name for name, version in versions.items() if version is None],
        "extras": {name: all(map(find_spec, modules)) for name, (modules, _) in EXTRAS.items()},
        "devices": _devices(),
    }
    began = time.monotonic()
    problem = _self_test()
    result["self_test"] = {"passed": problem == "", "problem": problem, "seconds": round(time.monotonic() - began, 1)}
    if as_json:
        say(json.dumps(result, indent=2))
    else:
        say(f"Python {result['python']} on {result['system']}")
        say("  " + ", ".join(f"{name} {version}" for name, version in result["versions"].items()))
        for name in result["missing"]:
            say(f"  missing: {name}")
        for name, (_, what) in EXTRAS.items():
            say(f"extra {name:14} {'installed' if result['extras'][name] else 'not installed':14} for {what}")
        say(f"devices: {', '.join(result['devices'])}")
        outcome = "passed" if not problem else f"failed: {problem}"
        say(f"self-test {outcome} ({result['self_test']['seconds']} s)")
    if problem:
        raise click.exceptions.Exit(1)


def _packages() -> list[str]:
    """DeepCruiser and the packages that it always needs."""
    needed = [text for text in requires("deepcruiser") or () if "extra ==" not in text and "python_version" not in text]
    return ["deepcruiser", *sorted(text.partition(">")[0].partition("=")[0].strip() for text in needed)]


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _devices() -> list[str]:
    import torch

    devices = [f"{os.cpu_count()} CPU cores"]
    devices += [f"cuda:{number} ({torch.cuda.get_device_name(number)})" for number in range(torch.cuda.device_count())]
    return [*devices, *(["mps"] if torch.backends.mps.is_available() else [])]


def _self_test() -> str:
    """Profile, cover and transform with a small network; returns the problem, if any."""
    import numpy as np
    import torch

    import deepcruiser as dc

    try:
        with torch.random.fork_rng(devices=[]):
            net = torch.nn.LSTM(2, 8, batch_first=True).requires_grad_(False).eval()
        rng = np.random.default_rng(0)
        for weights in net.parameters():
            weights.copy_(torch.from_numpy(rng.normal(0, 0.5, tuple(weights.shape))))
        system = dc.TorchSystem(net, batch="padded")
        data = [rng.standard_normal((steps, 2)).astype(np.float32) for steps in (20, 30, 40)]
        model = dc.profile(system, data).abstract(partitions=5)
        covered = [coverage.value for coverage in dc.cover(model, system, data).coverages]
        sound = dc.Audio(0.1 * rng.standard_normal(16_000), 16_000)
        for kind in dc.transformations.PAPER:
            kind.draw(rng)(sound)
        return "" if covered.count(1.0) == 4 else f"the profiled data cover {covered}, and 1.0 was expected four times"
    except Exception as error:  # whatever is broken
        return f"{type(error).__name__}: {error}"
