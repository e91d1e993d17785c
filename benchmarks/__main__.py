"""Run all benchmarks: python -m benchmarks"""

from __future__ import annotations

import platform
import subprocess
import sys

import numpy as np
import torch

print(f"{platform.processor() or platform.machine()}, {torch.get_num_threads()} threads, ", end="")
print(f"Python {platform.python_version()}, numpy {np.__version__}, torch {torch.__version__}", flush=True)
for name in ("startup", "abstraction", "memory", "inference", "monitor", "campaign"):
    subprocess.run([sys.executable, "-m", f"benchmarks.{name}"], check=True)
