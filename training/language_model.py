"""Build the language model: python -m training.language_model books.txt.xz sentences.txt --kenlm BIN -o english.kenlm

It learns from every line of the texts, and from texts by rule (`training.texts`), so that letters are words to it and
spelled names are expected. It knows the words seen twice or more in the texts, those of the rules, and all letters. BIN
is the folder of KenLM's programs lmplz and build_binary (README.md has the commands to make them). The same texts give
the same file.
"""

from __future__ import annotations

import argparse
import lzma
import re
import subprocess
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from string import ascii_lowercase

import numpy as np

from training import texts

#: Texts by rule beside those that are read, and from which lines their words are taken.
RULES, SOURCE_LINES = 60_000, 20_000
#: How often a word must be there, and the longer n-grams: those of three and four words at least twice.
LEAST = 2
ORDER, PRUNE = 4, "0 0 1 1"
#: What old books write in two words and people write in one today.
OLD_SPELLINGS = (
    "to day, to morrow, to night, any thing, every thing, some thing, any body, every body, some body, no body, "
    "up stairs, down stairs, mean time, mean while, good bye, my self, him self, her self, it self, your self"
).split(", ")
#: Bits of a quantised probability, and of a pointer into the next order that is left out where it can be.
BITS, POINTER_BITS = 4, 255


def lines(path: Path) -> Iterator[str]:
    """The lines of a text file, .xz or not, with single spaces and today's spellings."""
    old = re.compile(rf"\b({'|'.join(OLD_SPELLINGS)})\b(?!')")
    with lzma.open(path, "rt") if path.suffix == ".xz" else open(path) as file:
        for line in file:
            if text := " ".join(line.split()):
                yield old.sub(lambda match: match[0].replace(" ", ""), text)


def by_rule(paths: list[Path], count: int, seed: int) -> list[str]:
    """Texts by rule, with words of the first file."""
    source = [line for line, _ in zip(texts.sentences(paths[0]), range(SOURCE_LINES), strict=False)]
    words = sorted({word for line in source for word in line.split() if 3 <= len(word) <= 9})
    rng = np.random.default_rng(seed)
    return [" ".join(texts.made_up(rng, words).split()) for _ in range(count)]


def vocabulary(read: list[str], made_up: list[str]) -> list[str]:
    """The words that the model knows, sorted."""
    counts = Counter(word for line in read for word in line.split())
    known = {word for word, count in counts.items() if count >= LEAST}
    return sorted(known | {word for line in made_up for word in line.split()} | set(ascii_lowercase))


def build(sentences: list[str], words: list[str], programs: Path, output: Path) -> None:
    """Count and smooth n-grams (lmplz: modified Kneser-Ney), and write them as a quantised trie (build_binary)."""
    with tempfile.TemporaryDirectory() as folder:
        text, known, arpa = (Path(folder) / name for name in ("text", "words", "arpa"))
        text.write_text("\n".join(sentences) + "\n")
        known.write_text("\n".join(words) + "\n")
        settings = f"-o {ORDER} --prune {PRUNE} -S 1G --discount_fallback".split()
        files: list[str | Path] = ["-T", folder, "--limit_vocab_file", known, "--text", text, "--arpa", arpa]
        subprocess.run([programs / "lmplz", *settings, *files], check=True)
        settings = f"-q {BITS} -b {BITS} -a {POINTER_BITS} trie".split()
        subprocess.run([programs / "build_binary", *settings, arpa, output], check=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("texts", nargs="+", type=Path, help="files of normalised sentences, one per line; .xz or not")
    parser.add_argument("-o", "--output", type=Path, required=True)
    parser.add_argument("--kenlm", type=Path, required=True, help="the folder of lmplz and build_binary")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    read = [line for path in arguments.texts for line in lines(path)]
    made_up = by_rule(arguments.texts, RULES, arguments.seed)
    words = vocabulary(read, made_up)
    build([*read, *made_up], words, arguments.kenlm, arguments.output)
    print(f"{len(words):,} words, {arguments.output.stat().st_size / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
