"""A program for examples/any_program.py that classifies each recording as "loud" or "quiet".

It does not depend on DeepCruiser. It reads a line of JSON for each input and answers with one. Its state is a fast and
a slow running mean of the energy, which it reports so that it can be profiled.
"""

import json
import sys
from pathlib import Path

import numpy as np
import soundfile


def levels(samples: np.ndarray, rate: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the energy of every 10 ms in decibels, [N, 1], and both running means, [N+1, 2]."""

    step = rate // 100
    frames = samples[: len(samples) // step * step].reshape(-1, step)
    energies = 10 * np.log10(np.square(frames).mean(1, keepdims=True) + 1e-8)
    means = [np.array([-60.0, -60.0])]
    for energy in energies:
        means.append(means[-1] + np.array([0.3, 0.03]) * (energy - means[-1]))
    return energies, np.array(means)


def main() -> None:
    for line in sys.stdin:
        request = json.loads(line)
        samples, rate = soundfile.read(request["wav"])
        energies, means = levels(samples, rate)
        states, inputs = (Path(request["folder"], f"{request['id']}.{name}.npy") for name in ("states", "inputs"))
        np.save(states, means)
        np.save(inputs, energies)
        text = "loud" if means[:, 1].max() > -32 else "quiet"
        print(json.dumps({"text": text, "states": str(states), "inputs": str(inputs)}), flush=True)


if __name__ == "__main__":
    main()
