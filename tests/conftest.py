from __future__ import annotations

import os
import signal
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, settings

import deepcruiser as dc

# Machines are busy and slow in turns: a test fails for a wrong value, never for a slow one.
settings.register_profile("deepcruiser", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("deepcruiser")

# Started in the background, we would ignore Ctrl-C, and so would every program that a test starts to interrupt it.
signal.signal(signal.SIGINT, signal.default_int_handler)

# TensorFlow, which some tests need, loads Keras as well, and would choose itself for it.
os.environ.setdefault("KERAS_BACKEND", "torch")

# Test processes run side by side, and torch's threads would fight over the cores.
torch.set_num_threads(1)

SHARED = Path(__file__).resolve().parents[2] / "shared"


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of speech and models next to the project, if there is one."""
    if not SHARED.is_dir():
        pytest.skip("there is no folder 'shared' with speech and models beside the project")
    return SHARED


def walks(
    rng: np.random.Generator, count: int, *, size: int = 4, input_size: int = 2, scale: float = 1.0
) -> list[dc.Trace]:
    """Random walks of 0 to 12 steps that begin at zero: traces that return to earlier states."""
    traces = []
    for _ in range(count):
        steps = int(rng.integers(0, 13))
        moves = rng.integers(-1, 2, (steps, size)) * rng.random((steps, size)) * scale
        states = np.concatenate([np.zeros((1, size)), np.cumsum(moves, axis=0)])
        traces.append(dc.Trace(states, rng.integers(-2, 3, (steps, input_size)) * scale))
    return traces
