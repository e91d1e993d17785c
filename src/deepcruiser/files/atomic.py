"""Files that appear completely or not at all."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from deepcruiser.errors import FileError, reason


@contextmanager
def atomic_write(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Open a temporary file that replaces `path` when the block succeeds and is deleted when it fails."""
    target = Path(path)
    if not target.parent.is_dir():
        folder = os.fspath(target.parent)
        raise FileError(f"cannot write {os.fspath(path)!r}: there is no folder {folder!r}; create it first")
    if target.is_dir():
        raise FileError(f"cannot write {os.fspath(path)!r}: it is a folder")
    if (target.exists() and not target.is_file()) or target.absolute().parent == Path("/dev"):
        raise FileError(f"cannot write {os.fspath(path)!r}: it is a device or a pipe, which a file would replace")
    try:
        descriptor, temporary = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
    except OSError as error:
        raise FileError(f"cannot write {os.fspath(path)!r}: {reason(error)}") from None
    try:
        with os.fdopen(descriptor, "wb") as file:
            yield file
        umask = os.umask(0)
        os.umask(umask)
        os.chmod(temporary, 0o666 & ~umask)  # mkstemp creates files that only their owner can read
        os.replace(temporary, target)
    except BaseException as error:
        os.unlink(temporary)
        if isinstance(error, OSError):
            raise FileError(f"cannot write {os.fspath(path)!r}: {reason(error)}") from error
        raise
