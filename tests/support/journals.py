"""Journals of SQLite that belong to several databases."""

from __future__ import annotations

import struct
from pathlib import Path


def journal_of(path: Path) -> bytes:
    """A journal that names a file, which SQLite deletes when it opens the database beside the journal."""
    magic, name = bytes.fromhex("d9d505f920a163d7"), bytes(path)
    head = (magic + struct.pack(">IIIII", 0, 7, 1, 512, 4096)).ljust(512, b"\0")
    return head + struct.pack(">I", 2**30 // 4096 + 1) + name + struct.pack(">II", len(name), sum(name)) + magic
