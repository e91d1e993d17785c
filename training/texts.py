"""Texts for the synthetic voices: sentences of books and lists, spelled names, numbers, commands to machines."""

from __future__ import annotations

import hashlib
import lzma
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from training.shards import is_plain

#: One text in this many is kept out of training, to test with.
HELD_OUT = 200
#: Written one way and said another, or said in more than one.
DOUBTFUL = {"mr", "mrs", "ms", "dr", "st", "etc", "vs", "jr", "co", "ltd", "lb", "ft", "ii", "iii", "iv", "vi", "xii"}

ONES = "zero one two three four five six seven eight nine".split()
TEENS = "ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen".split()
TENS = "twenty thirty forty fifty sixty seventy eighty ninety".split()
MONTHS = "january february march april may june july august september october november december".split()
ORDINALS = (
    "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth fourteenth fifteenth "
    "sixteenth seventeenth eighteenth nineteenth twentieth"
).split()
DAYS = "monday tuesday wednesday thursday friday saturday sunday".split()
ORDERS = "enter erase rubout repeat start stop go yes no help".split()
ROOMS = "kitchen bedroom bathroom hall garage garden office cellar attic".split()
THINGS = (
    "light lamp radio heater fan door window music television oven alarm clock blind camera kettle printer phone"
).split()
PEOPLE = (
    "anna peter john mary susan robert david laura paul emma jack sarah martin helen george alice simon julia "
    "mother father granny uncle nobody everybody doctor teacher"
).split()
#: What may stand beside spelled letters.
SPELLING = {*ONES, *TEENS, *TENS, *ORDERS, "oh"}
TIMES = ["now", "today", "tonight", "tomorrow", "at noon", "in the morning", "in the evening", "next week", "at once"]
ASKS = ["please", "could you", "can you", "i want you to", "would you please", ""]


def sentences(path: Path) -> Iterator[str]:
    """The plain lines of a text file, .xz or not, of 2 to 24 words."""
    with lzma.open(path, "rt") if path.suffix == ".xz" else open(path) as lines:
        for line in lines:
            text = line.replace(" '", " ").replace("' ", " ").strip(" '\n")
            words = text.split()
            if 2 <= len(words) <= 24 and is_plain(text) and not DOUBTFUL & set(words):
                yield " ".join(words)


def is_held_out(text: str) -> bool:
    """Decided by the text alone, wherever it comes from."""
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") % HELD_OUT == 0


def number(rng: np.random.Generator) -> str:
    """A number below a hundred, or a string of digits, in words."""
    kind = rng.integers(4)
    if kind == 0:
        return " ".join(rng.choice([*ONES, "oh"]) for _ in range(rng.integers(1, 8)))
    if kind == 1:
        return str(rng.choice([*ONES, *TEENS]))
    pair = [str(rng.choice(TENS)), *([str(rng.choice(ONES[1:]))] if rng.random() < 0.7 else [])]
    return " ".join(pair) if kind == 2 else " ".join([str(rng.choice([*TEENS, *ONES])), *pair])


def letters(rng: np.random.Generator, words: list[str]) -> str:
    """A spelled word, or letters at random."""
    chosen = str(rng.choice(words)).replace("'", "") if rng.random() < 0.6 else ""
    return " ".join(chosen or rng.choice(list("abcdefghijklmnopqrstuvwxyz"), size=rng.integers(2, 8)))


def made_up(rng: np.random.Generator, words: list[str]) -> str:
    """A generated text: numbers, dates, spelled words, commands to a house."""

    def some(of: list[str]) -> str:
        return str(rng.choice(of))

    kind = int(rng.integers(10))
    if kind < 2:
        return " ".join([some(ORDERS)] * bool(rng.integers(2)) + [number(rng)])
    if kind < 5:
        return " ".join([some(ORDERS)] * (rng.random() < 0.3) + [letters(rng, words)] + [number(rng)] * (kind == 4))
    if kind == 5:
        return f"{some(MONTHS)} {some(ORDINALS)}" + f" nineteen {some(TENS)} {some(ONES[1:])}" * bool(rng.integers(2))
    if kind == 6:
        return some(ORDERS)
    if kind == 7:
        switch = some(["turn on", "turn off", "switch on", "switch off", "check", "find", "show me", "close", "open"])
        return f"{some(ASKS)} {switch} the {some(THINGS)} in the {some(ROOMS)} {some([*TIMES, '', '', ''])}".strip()
    if kind == 8:
        call = some(["call", "write to", "wait for", "talk to", "send a letter to", "remind", "ask", "thank", "invite"])
        return f"{some(ASKS)} {call} {some(PEOPLE)} {some([*TIMES, some(DAYS), 'on ' + some(DAYS)])}".strip()
    what = some(["the weather", "the news", "the time", "the bus", "the train", "the shop", "dinner", "the meeting"])
    return f"{some(['tell me about', 'when is', 'where is', 'how was', 'i forgot', 'we missed'])} {what} {some(TIMES)}"


def spoken(text: str) -> str:
    """The text as a voice must be given it: in a spelling, single letters as their names."""
    words = text.split()
    if sum(len(word) == 1 for word in words) < 2 or any(len(word) > 1 and word not in SPELLING for word in words):
        return text
    return " ".join(f"{word.upper()}," if len(word) == 1 else word for word in words)
