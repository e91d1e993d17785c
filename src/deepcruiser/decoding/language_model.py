"""Language models: files of KenLM, which tell how probable a word is after the words before it."""

from __future__ import annotations

import mmap
import os
import struct
from dataclasses import dataclass, field
from pathlib import Path

from deepcruiser.errors import FileError
from deepcruiser.files.reading import open_regular

#: How a binary file of KenLM begins; its counts of n-grams follow the header, and its words stand at the end.
_MAGIC = b"mmap lm http://kheafield.com/code format version"
_COUNTS = 108
_FIRST_WORD = b"<unk>\0"
_SPECIAL = {"<unk>", "<s>", "</s>"}


@dataclass(frozen=True, eq=False)
class LanguageModel:
    """A binary file of KenLM and the words that it knows; `read_language_model` makes one."""

    path: Path
    words: tuple[str, ...] = field(repr=False)

    def __str__(self) -> str:
        return f"{self.path.name}: {len(self.words):,} words"


def read_language_model(path: str | os.PathLike[str]) -> LanguageModel:
    """The language model in a binary file that KenLM's `build_binary` wrote, of any of its data structures."""
    name = os.fspath(path)
    try:
        with open_regular(path) as file:
            begin = file.read(_COUNTS + 8)
            if begin.startswith((b"\\data\\", b"\n\\data\\")):
                raise FileError(f"{name!r} is an ARPA file; convert it first: build_binary trie {name} model.kenlm")
            if not begin.startswith(_MAGIC) or len(begin) < _COUNTS + 8:
                raise FileError(f"{name!r} is not a language model in the binary format of KenLM")
            with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
                start = data.rfind(_FIRST_WORD)
                texts = data[start:] if start >= 0 else b""
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise FileError(f"cannot read the language model {name!r}: {reason}") from None
    (count,) = struct.unpack("<Q", begin[_COUNTS:])
    words = texts.decode("utf-8", "replace").split("\0")[:-1]
    if len(words) != count:
        raise FileError(
            f"{name!r} has {len(words):,} of its {count:,} words: it is cut short, or was built without its words"
        )
    return LanguageModel(Path(path), tuple(word for word in words if word not in _SPECIAL))
