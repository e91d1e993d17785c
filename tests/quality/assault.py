"""An attack on all readers of foreign data: damaged files, hostile programs and clients, faults.

    python -m tests.quality.assault --cases 50000 --log assault.log

Every case is made from its number, so that it can be made again: `--only NUMBER` runs one and shows its traceback.
Cases run in a child process, many of them in one, with a time limit each. A log that is there is continued. Verdicts:

    right         the result is that of the undamaged file
    clear error   an error of ours, in one short line that a terminal can show
    unknowable    another result, where the format cannot tell: a sample of a WAV file is as good as any other
    wrong         another result without a word, where the format could tell
    traceback     any other error, or the child died
    hang          no verdict within the time limit
    lost          something that was reported is not there afterwards
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import resource
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
import warnings
import zlib
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

import deepcruiser as dc

VERDICTS = ("right", "clear error", "unknowable", "wrong", "traceback", "hang", "lost")
BAD = VERDICTS[3:]
#: The number and the kind of a case, the verdict on it and what was said.
Result = tuple[int, str, str, str]
#: Seconds that a case may take, and bytes that the process may have.
LIMIT_SECONDS, LIMIT_BYTES = 30, 6 * 2**30
#: What the parsers of many formats give a meaning to.
_TOKENS = (
    b"\0", b"\xff" * 4, b"\x7f\xff\xff\xff", b"\xff\xff\xff\x7f", b"\x80\0\0\0", b"\0\0\0\x80", b"\xff" * 8, b"-1",
    b"99999999999999999999", b"1e999", b"nan", b"null", b"{", b"}", b"[" * 2000, b'"', b"'", b",", b"\t", b"\n",
    b"\x1b[2J", b"../../../etc/passwd", b"/dev/zero", b"=1+1", b"\xed\xa0\x80", b"\xe2\x80\xae", b"A" * 3000, b"", b"0",
)  # fmt: skip


def mutated(data: bytes, rng: np.random.Generator) -> bytes:
    """A few kinds of damage at random places; half of the cases flip a single bit."""
    if rng.random() < 0.5 and data:
        at = int(rng.integers(len(data)) if rng.random() < 0.6 else rng.integers(min(len(data), 256)))
        return data[:at] + bytes([data[at] ^ 1 << int(rng.integers(8))]) + data[at + 1 :]
    for _ in range(int(rng.integers(1, 4))):
        at = int(rng.integers(len(data) + 1) if rng.random() < 0.6 else rng.integers(min(len(data), 256) + 1))
        end = at + int(2 ** rng.uniform(0, 11))
        kind = int(rng.integers(9))
        if kind == 0:
            data = data[:at]  # cut short
        elif kind == 1:
            data = data[:at] + data[end:]  # a part lost
        elif kind == 2:
            data = data[:at] + bytes(min(end, len(data)) - at) + data[end:]  # zeros, as after a crash
        elif kind == 3:
            data = data[:at] + rng.bytes(end - at) + data[end:]
        elif kind == 4:
            data = data[:end] + data[at:]  # a part twice
        elif kind == 5:
            data = data[:at] + rng.bytes(int(rng.integers(1, 9))) + data[at:]
        elif kind in (6, 7):
            token = _TOKENS[int(rng.integers(len(_TOKENS)))]
            data = data[:at] + token + data[at + (len(token) if kind == 6 else 0) :]
        elif len(data) > 2:
            one, other = sorted(rng.integers(0, len(data), 2).tolist())
            data = data[:one] + data[other:] + data[one:other]
    return data


class Case:
    """One case: its number and its random numbers, a working folder, and its result."""

    def __init__(self, number: int, name: str, folder: Path) -> None:
        self.number, self.name, self.folder = number, name, folder
        self.rng = np.random.default_rng([zlib.crc32(name.encode()), number])


def judge(attack: Callable[[Case], str], case: Case) -> tuple[str, str]:
    """The verdict on a case, and the message."""
    try:
        return attack(case), ""
    except dc.DeepCruiserError as error:
        text = str(error)
        printable = all(char.isprintable() or char == "\n" for char in text)
        return ("clear error" if printable and 10 < len(text) < 3000 else "traceback"), text[:500]
    except LostError as error:
        return "lost", str(error)
    except Exception:
        return "traceback", traceback.format_exc()[-1500:]


class LostError(Exception):
    """Something that was reported is missing."""


def schedule(cases: int) -> list[str]:
    """The attack of each case; it does not depend on the number of cases."""
    from tests.quality.assault_targets import ATTACKS

    names = sorted(ATTACKS)
    weights = np.array([ATTACKS[name].weight for name in names], np.float64)
    return [names[i] for i in np.random.default_rng(0).choice(len(names), cases, p=weights / weights.sum())]


def work(cases: int) -> None:
    """Run the cases whose numbers are read, in this process, and write a verdict for each."""
    from tests.quality.assault_targets import ATTACKS

    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # what libraries print is no answer
    names = schedule(cases)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_AS, (LIMIT_BYTES, LIMIT_BYTES))
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory(prefix="assault-") as temporary:
        for line in sys.stdin:
            number = int(line)
            folder = Path(temporary, str(number))
            folder.mkdir()
            os.chdir(folder)
            verdict, message = judge(ATTACKS[names[number]].run, Case(number, names[number], folder))
            os.chdir(temporary)
            shutil.rmtree(folder, ignore_errors=True)
            answers.write(json.dumps([number, names[number], verdict, message]) + "\n")


class Worker:
    """The child process that runs cases."""

    def __init__(self, cases: int) -> None:
        self._cases = cases
        self._child: subprocess.Popen[str] | None = None

    def run(self, number: int, name: str) -> Result:
        """The verdict on a case; the child is restarted if it has died or does not answer."""
        if self._child is None:
            command = [sys.executable, "-m", "tests.quality.assault", "--work", "--cases", str(self._cases)]
            self._child = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                bufsize=1, start_new_session=True, env={**os.environ, "OMP_NUM_THREADS": "1"},
            )  # fmt: skip
            limit = 10 * LIMIT_SECONDS  # it imports and makes the undamaged files first
        else:
            limit = LIMIT_SECONDS
        child = self._child
        assert child.stdin is not None
        assert child.stdout is not None
        child.stdin.write(f"{number}\n")
        if not select.select([child.stdout], [], [], limit)[0]:
            self.close()
            return number, name, "hang", f"no verdict within {limit} s"
        line = child.stdout.readline()
        if not line:
            status = child.wait()
            self.close()
            return number, name, "traceback", f"the process ended with {status}"
        answer = json.loads(line)
        return answer[0], answer[1], answer[2], answer[3]

    def close(self) -> None:
        if self._child is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._child.pid, signal.SIGKILL)
            with contextlib.suppress(BrokenPipeError), self._child:  # closes its pipes
                self._child = None


def assault(
    cases: int, *, log: Path | None = None, seconds: float = float("inf"), part: tuple[int, int] = (0, 1)
) -> Iterator[Result]:
    """Run all cases, or as many as the time allows; cases in the log are skipped.

    Of several parts, which may run side by side, only one: (1, 4) is the second of four.
    """
    done: dict[int, Result] = {}
    if log is not None and log.exists():
        for line in log.read_text().splitlines():
            number, name, verdict, message = json.loads(line)
            done[number] = number, name, verdict, message
    until = time.monotonic() + seconds
    worker, names = Worker(cases), schedule(cases)
    # Cases of one kind run together, so that a child that is started again makes few undamaged files.
    order = sorted(range(part[0], cases, part[1]), key=lambda number: (number // 500, names[number], number))
    try:
        for number in order:
            if time.monotonic() > until:
                return
            if number not in done:
                done[number] = worker.run(number, names[number])
                if log is not None:
                    with log.open("a") as file:
                        file.write(json.dumps(done[number]) + "\n")
            yield done[number]
    finally:
        worker.close()


def table(results: list[Result]) -> str:
    """The verdicts by what was attacked, as a table in Markdown."""
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for _, name, verdict, _ in results:
        counts[name.partition(":")[0]][verdict] += 1
        counts["all"][verdict] += 1
    lines = ["| attacked | cases | " + " | ".join(VERDICTS) + " |", "|---|" + "---:|" * (len(VERDICTS) + 1)]
    for name in [*sorted(set(counts) - {"all"}), "all"]:
        cells = [f"{counts[name][verdict]:,}" for verdict in VERDICTS]
        lines.append(f"| {name} | {sum(counts[name].values()):,} | {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, default=2000)
    parser.add_argument("--log", type=Path, help="Where verdicts are noted; cases that are there are not run again.")
    parser.add_argument("--part", default="0/1", help="Run only this part of the cases, such as 0/2 and 1/2.")
    parser.add_argument("--only", type=int, help="Run this case alone, and show what it says.")
    parser.add_argument("--work", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.work:
        return work(options.cases)
    if options.only is not None:
        print(*Worker(options.cases).run(options.only, schedule(options.cases)[options.only]), sep="\n")
        return None
    began, results, shown = time.monotonic(), [], Counter[str]()
    place, _, parts = options.part.partition("/")
    for result in assault(options.cases, log=options.log, part=(int(place), int(parts))):
        results.append(result)
        number, name, verdict, message = result
        shown[name + verdict] += 1
        if verdict in BAD and shown[name + verdict] <= 5:
            print(f"{number} {name}: {verdict}\n{message}", flush=True)
    print(f"\n{table(results)}\n\n{len(results):,} cases in {time.monotonic() - began:.0f} s")
    sys.exit(any(verdict in BAD for _, _, verdict, _ in results))


if __name__ == "__main__":
    main()
