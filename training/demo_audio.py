"""Make the audio of the demo: python -m training.demo_audio -o src/deepcruiser/systems/builtin/speech/data/demo

`seeds` are what the demo changes: sentences of demo_sentences.txt, each said by five of ten voices, at one of three
paces each, and transcribed by the built-in recogniser (`english`) from the compressed file. 20 that are not
recognised without an error are chosen by lot, so that the demo also has ordinary tests; and from the other sentences
120 that are, first those of sentences with the most errors in other voices, which are close to failing. Each sentence
is chosen once, each time in the voice chosen least so far. A sentence that is once written with other spaces ("sun
set") or apostrophes is left out: nobody hears these. `profile` is what the demo profiles the network on: the sentences
that no seed says and texts by rule, in voices drawn as for training, recognised or not. A file's name tells its voice.

With --not-in FILE... (the texts that training read) a sentence that occurs in one of them is refused. The same seed,
weights and programs give the same bytes.
"""

from __future__ import annotations

import argparse
import io
import lzma
import re
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import soundfile as sf

from deepcruiser.audio import Audio
from deepcruiser.files.atomic import atomic_write
from deepcruiser.systems.builtin.speech.network import RATE
from deepcruiser.systems.builtin.speech.recogniser import load
from training import texts, voices
from training.prepare import pcm
from training.voices import Voice

SENTENCES = Path(__file__).with_name("demo_sentences.txt")
VOICES = (
    *(Voice("flite", name) for name in voices.FLITE),
    *(Voice("festival", name) for name in voices.FESTIVAL),
    *(Voice("espeak", name) for name in ("en-us+m3", "en-us+f2", "en-gb+Andy")),
)
PACES = (0.95, 1.05, 1.15)
#: Voices that say a sentence, seeds recognised without error and seeds that are not, and how long they may be.
SAYINGS, PERFECT, IMPERFECT, SEED_SECONDS = 5, 120, 20, (1.0, 5.0)
#: Utterances to profile, how many in a row are in one voice, and how long they may be.
PROFILE, ROW, PROFILE_SECONDS = 300, 6, (0.8, 8.0)
BITS_PER_SECOND = 30_000


@dataclass(frozen=True)
class Said:
    """An utterance as it would be shipped: its text, its voice, and its file."""

    text: str
    voice: Voice
    data: bytes

    @property
    def audio(self) -> Audio:
        samples, rate = sf.read(io.BytesIO(self.data), dtype="float32")
        return Audio(samples, rate)


def opus(audio: Audio) -> bytes:
    """An Ogg Opus file of the audio; its serial number, which libsndfile draws at random, is 1."""
    buffer = io.BytesIO()
    level = 1 - (BITS_PER_SECOND - 6000) / 250_000  # libsndfile's scale: from 256 down to 6 kbit/s
    sf.write(buffer, pcm(audio), RATE, format="OGG", subtype="OPUS", compression_level=level)
    data, start = bytearray(buffer.getvalue()), 0
    while start < len(data):  # a page: serial number at 14, checksum at 22, the lengths of its parts from 27 on
        end = start + 27 + data[start + 26]
        end += sum(data[start + 27 : end])
        data[start + 14 : start + 18] = (1).to_bytes(4, "little")
        data[start + 22 : start + 26] = bytes(4)
        data[start + 22 : start + 26] = _checksum(data[start:end]).to_bytes(4, "little")
        start = end
    return bytes(data)


def _checksum(page: bytes | bytearray) -> int:
    value = 0
    for byte in page:
        value = (value << 8 & 0xFFFFFFFF) ^ _CHECKSUMS[value >> 24 ^ byte]
    return value


def _checksum_of_byte(byte: int) -> int:
    value = byte << 24
    for _ in range(8):
        value = (value << 1 & 0xFFFFFFFF) ^ (0x04C11DB7 if value >> 31 else 0)
    return value


_CHECKSUMS = [_checksum_of_byte(byte) for byte in range(256)]


def say_all(rows: Iterable[tuple[Voice, list[str]]], seconds: tuple[float, float]) -> list[Said]:
    """Every row in its voice, without what is shorter or longer than that."""

    def row(voice: Voice, message: list[str]) -> list[Said]:
        with tempfile.TemporaryDirectory() as folder:
            heard = voices.say(voice, [texts.spoken(text) for text in message], Path(folder))
        return [
            Said(text, voice, opus(audio))
            for text, audio in zip(message, heard, strict=True)
            if audio is not None and seconds[0] <= audio.seconds <= seconds[1]
        ]

    with ThreadPoolExecutor(2) as pool:
        return [expected for part in pool.map(lambda row_of_text: row(*row_of_text), rows) for expected in part]


def seed_rows(rng: np.random.Generator, sentences: list[str]) -> list[tuple[Voice, list[str]]]:
    """Which voice says which sentences at which pace."""
    rows: dict[Voice, list[str]] = {replace(voice, pace=pace): [] for voice in VOICES for pace in PACES}
    for text in sentences:
        for number in rng.choice(len(VOICES), SAYINGS, replace=False):
            rows[replace(VOICES[number], pace=PACES[rng.integers(len(PACES))])].append(text)
    return list(rows.items())


def has_same_letters(text: str, heard: str) -> bool:
    """Whether another text has the same letters, with other spaces or apostrophes."""
    return text != heard and re.sub("[ ']", "", text) == re.sub("[ ']", "", heard)


def choose(rng: np.random.Generator, tried: list[Said], perfect: list[bool]) -> list[Said]:
    """The seeds, chosen as the module's docstring says."""
    chosen: dict[str, Said] = {}
    by_text: dict[str, list[int]] = {}
    for number in rng.permutation(len(tried)):
        by_text.setdefault(tried[number].text, []).append(int(number))
    used: Counter[str] = Counter()
    hardest = sorted(by_text.items(), key=lambda each: sum(perfect[number] for number in each[1]))
    for kind, most, order in ((False, IMPERFECT, list(by_text.items())), (True, IMPERFECT + PERFECT, hardest)):
        for text, numbers in order:
            of_kind = [number for number in numbers if perfect[number] == kind]
            if text not in chosen and of_kind and len(chosen) < most:
                best = min(of_kind, key=lambda number: used[str(tried[number].voice)])
                chosen[text] = tried[best]
                used[str(tried[best].voice)] += 1
    return list(chosen.values())


def profile_rows(rng: np.random.Generator, sentences: list[str]) -> list[tuple[Voice, list[str]]]:
    """The sentences and as many texts by rule as are needed, in voices as for training."""
    words = sorted({word for text in sentences for word in text.split() if 3 <= len(word) <= 9})
    chosen = dict.fromkeys(sentences)
    while len(chosen) < PROFILE * 1.1:  # some will be too short
        text = " ".join(texts.made_up(rng, words).split())
        if len(text.split()) > 1:
            chosen[text] = None
    order = [list(chosen)[number] for number in rng.permutation(len(chosen))]
    return [(voices.draw(rng), order[start : start + ROW]) for start in range(0, len(order), ROW)]


def occurring(sentences: list[str], path: Path) -> list[str]:
    """The sentences that occur in a file of text, .xz or not, alone or within others."""
    with lzma.open(path, "rt") if path.suffix == ".xz" else open(path) as file:
        words = " ".join(["", *re.findall(r"[a-z]+(?:'[a-z]+)*", file.read().lower()), ""])
    return [sentence for sentence in sentences if f" {sentence} " in words]


def write(folder: Path, message: list[Said]) -> None:
    """Write a folder of audio with its transcripts in place of what was there."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    lines = []
    for number, each in enumerate(message):
        voice = re.sub(r"[^a-z0-9]+", "-", f"{each.voice.program}-{each.voice.name}".lower())
        with atomic_write(folder / f"{voice}-{number:03}.opus") as file:
            file.write(each.data)
        lines.append(f"{voice}-{number:03}.opus\t{each.text}\n")
    with atomic_write(folder / "transcripts.tsv") as file:
        file.write("".join(lines).encode())
    minutes, size = sum(each.audio.seconds for each in message) / 60, sum(len(each.data) for each in message)
    print(f"{folder.name}: {len(message)} utterances, {minutes:.1f} min, {size / 1e6:.2f} MB")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--output", type=Path, required=True)
    parser.add_argument("--not-in", nargs="*", type=Path, default=[], metavar="FILE", help="texts of training")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    rng = np.random.default_rng(arguments.seed)
    sentences = SENTENCES.read_text().splitlines()
    for path in arguments.not_in:
        if known := occurring(sentences, path):
            raise SystemExit(f"{path} has {len(known)} of our sentences, such as {known[0]!r}; write others")
    tried = say_all(seed_rows(rng, sentences), SEED_SECONDS)
    heard = [run.output for run in load(with_language_model=True).run([each.audio for each in tried])]
    respaced = {spoken.text for spoken, text in zip(tried, heard, strict=True) if has_same_letters(spoken.text, text)}
    print(f"left out, written with other spaces or apostrophes: {sorted(respaced)}")
    kept = [pair for pair in zip(tried, heard, strict=True) if pair[0].text not in respaced]
    tried, perfect = [message for message, _ in kept], [message.text == text for message, text in kept]
    seeds = choose(rng, tried, perfect)
    in_all, right, taken = (
        Counter(str(each.voice) for each in some)
        for some in (tried, [each for each, is_right in zip(tried, perfect, strict=True) if is_right], seeds)
    )
    for voice in in_all:
        print(f"{voice}: {right[voice]} of {in_all[voice]} without error, {taken[voice]} chosen")
    write(arguments.output / "seeds", seeds)
    left = [text for text in sentences if text not in {seed.text for seed in seeds}]
    write(arguments.output / "profile", say_all(profile_rows(rng, left), PROFILE_SECONDS)[:PROFILE])


if __name__ == "__main__":
    main()
