"""Make synthetic speech: python -m training.synthesise books.txt.xz sentences.txt --hours 250 -o DATA

Shards appear one by one, the first of short texts, so that training can start on them. Which text is said by which
voice depends on the seed and the shard's number alone, whatever the number of workers. Held-out texts go to shards
of their own, `synthetic-held`.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from itertools import count
from pathlib import Path

import numpy as np

from training import texts, voices
from training.prepare import pcm
from training.shards import write_shard

#: Texts in one shard, and how many in a row are said by one voice.
TEXTS, ROW = 240, 12
#: The share of texts that are made by rule.
MADE_UP = 0.15
#: Shards at the beginning that have short texts only.
SHORT_SHARDS, SHORT_WORDS = 48, 6
HELD_SHARDS = 4

_lines: list[str] = []
_words: list[str] = []


def _load(paths: list[Path]) -> None:
    global _lines, _words  # once in every worker: the books are large
    _lines = [text for path in paths for text in texts.sentences(path)]
    _words = sorted({word for text in _lines[:20_000] for word in text.split() if 3 <= len(word) <= 9})


def shard_texts(seed: int, number: int, *, held: bool) -> list[str]:
    """The texts of one shard."""
    rng = np.random.default_rng([seed, number, held])
    short = not held and number < SHORT_SHARDS
    chosen: list[str] = []
    while len(chosen) < TEXTS:
        if not held and rng.random() < MADE_UP:
            chosen.append(texts.made_up(rng, _words))
        else:
            text = _lines[rng.integers(len(_lines))]
            if texts.is_held_out(text) == held and not (short and len(text.split()) > SHORT_WORDS):
                chosen.append(text)
    return chosen


def shard(path: Path, seed: int, number: int, held: bool) -> float:
    """Say the texts of one shard, each row in one voice, and write it. Hours."""
    rng = np.random.default_rng([seed, number, held, 1])
    chosen = shard_texts(seed, number, held=held)
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for start in range(0, TEXTS, ROW):
            voice, part = voices.draw(rng), chosen[start : start + ROW]
            heard = voices.say(voice, [texts.spoken(text) for text in part], Path(folder))
            for place, (text, audio) in enumerate(zip(part, heard, strict=True)):
                if audio is not None and 0.2 < audio.seconds < 20:
                    rows.append((f"{path.name}-{start + place:03}", text, str(voice), pcm(audio)))
    return write_shard(path, rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("texts", nargs="+", type=Path, help="files of normalised sentences, a line each; .xz or not")
    parser.add_argument("-o", "--output", type=Path, required=True)
    parser.add_argument("--hours", type=float, default=250.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    arguments = parser.parse_args()
    arguments.output.mkdir(parents=True, exist_ok=True)
    hours, running, numbers = 0.0, set[Future[float]](), count()
    with ProcessPoolExecutor(arguments.workers, initializer=_load, initargs=(arguments.texts,)) as pool:
        while hours < arguments.hours or running:
            while hours < arguments.hours and len(running) < arguments.workers + 2:
                number = next(numbers)
                held = 8 <= number < 8 + HELD_SHARDS
                path = arguments.output / f"synthetic{'-held' * held}.{number:05}"
                if not path.with_name(f"{path.name}.json").exists():
                    running.add(pool.submit(shard, path, arguments.seed, number, held))
            done, running = wait(running, return_when=FIRST_COMPLETED)
            hours += sum(future.result() for future in done)
            print(f"{hours:.1f} h", flush=True)


if __name__ == "__main__":
    main()
