"""How long the package takes to import and `--help` to print, over the import of click."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from functools import partial

from benchmarks.timing import alternate, line, ratio

BASELINE = "import click"
CODE = {
    "import deepcruiser": "import deepcruiser",
    "deepcruiser --help": "from deepcruiser.cli import main; main(['--help'])",
    "deepcruiser cover --help": "from deepcruiser.cli import main; main(['cover', '--help'])",
    "deepcruiser fuzz --help": "from deepcruiser.cli import main; main(['fuzz', '--help'])",
}
BUDGETS = {"import deepcruiser": "3", "deepcruiser --help": "3"}


def start(code: str) -> None:
    subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.DEVNULL)


def main() -> None:
    versions: dict[str, Callable[[], object]] = {
        name: partial(start, code) for name, code in {BASELINE: BASELINE, **CODE}.items()
    }
    seconds = alternate(versions, rounds=15)
    for name in CODE:
        line(f"{name} / python -c '{BASELINE}'", f"{ratio(seconds, name, BASELINE):.2f}", BUDGETS.get(name, "none"))


if __name__ == "__main__":
    main()
