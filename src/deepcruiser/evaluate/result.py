"""The result of a question: tables, data, a figure, and the text between them."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from deepcruiser.campaign.store import versions
from deepcruiser.evaluate import figures
from deepcruiser.evaluate.tables import Table
from deepcruiser.files.atomic import atomic_write


@dataclass(frozen=True, eq=False)
class Answer:
    """The result of a question. `data` holds the numbers under the tables; `seconds` is the time of its runs."""

    name: str
    title: str
    tables: tuple[Table, ...]
    data: Table
    notes: tuple[str, ...]
    draw: Callable[[], Any]
    seconds: float = 0.0
    runs: int = 0

    def write(self, folder: Path, *, command: str, seed: int, jobs: int = 1, device: str = "") -> Path:
        """Write the tables and the data as CSV, the figure, and a section of a page."""
        for table in self.tables:
            table.write(folder / f"{table.name}.csv")
        self.data.write(folder / f"{self.name}-data.csv")
        figures.save(self.draw, folder, self.name)
        path = folder / f"{self.name}.md"
        with atomic_write(path) as file:
            file.write(self._section(command, seed, jobs, device).encode())
        return path

    def _section(self, command: str, seed: int, jobs: int, device: str) -> str:
        parts = [f"## {self.title}"]
        for table in self.tables:
            if table.caption:
                parts.append(table.caption)
            parts.append(table.markdown().rstrip())
        parts += [f"![{self.title}]({self.name}.svg)", *self.notes]
        facts: Mapping[str, str] = {
            "command": f"`{command}`",
            "seed": str(seed),
            "machine": machine(device),
            "time": self._time(jobs),
            "versions": ", ".join(f"{name} {version}" for name, version in versions().items()),
        }
        parts.append("\n".join(f"* {name}: {fact}" for name, fact in facts.items()))
        return "\n\n".join(parts) + "\n"

    def _time(self, jobs: int) -> str:
        if not self.runs:
            return "seconds; nothing was run"
        processes = "process" if jobs == 1 else "processes"
        return f"{self.seconds / 60:.1f} minutes for {self.runs:,} runs, by {jobs} {processes}"


def machine(device: str = "") -> str:
    """The processors and the GPU of this machine; not its name."""
    model = ""
    if Path("/proc/cpuinfo").is_file():
        lines = Path("/proc/cpuinfo").read_text(errors="replace").splitlines()
        model = next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "")
    text = f"{os.cpu_count()} cores, {model or platform.processor() or platform.machine()}"
    if device.startswith("cuda"):
        import torch

        text += f", {torch.cuda.get_device_name(device)}"
    return text


def device_of(system: Any) -> str:
    """The device of a system's network; empty if the network is not a PyTorch module."""
    net, torch = getattr(system, "net", None), sys.modules.get("torch")
    if torch is None or not isinstance(net, torch.nn.Module):
        return ""
    return next((str(parameter.device) for parameter in net.parameters()), "")
