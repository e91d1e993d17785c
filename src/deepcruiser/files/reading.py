"""Reading files that others made: regular files only, and their sizes are checked before memory is taken for them."""

from __future__ import annotations

import json
import math
import os
import stat
import sys
from typing import IO, Any, BinaryIO

import numpy as np
import numpy.typing as npt

from deepcruiser.errors import FileError, InputError, reason

#: The variable that sets the limit of `most_bytes`.
LIMIT = "DEEPCRUISER_MAX_BYTES"
_USUAL = 2**31


def most_bytes() -> int:
    """The most memory in bytes that one sound, array or text may take once it is read; the environment may set it."""
    text = os.environ.get(LIMIT, "")
    if text and not (text.isascii() and text.isdigit()):
        raise InputError(f"{LIMIT} must be a whole number of bytes, not {text!r}")
    return min(int(text or _USUAL), sys.maxsize)


def check_bytes(size: int, what: str) -> None:
    """Refuse something that would take more memory than it may."""
    if size > most_bytes():
        raise FileError(
            f"{what} would take {size:,} bytes, more than the {most_bytes():,} allowed: set the environment variable "
            f"{LIMIT} to allow more"
        )


def open_regular(path: str | os.PathLike[str]) -> BinaryIO:
    """Open a file for reading; a pipe or a device, which may never end, is refused without waiting for it."""
    name = os.fspath(path)
    descriptor = os.open(name, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise FileError(f"cannot read {name!r}: it is not a file")
    return os.fdopen(descriptor, "rb")


def read_bytes(path: str | os.PathLike[str]) -> bytes:
    """The content of a file."""
    name = os.fspath(path)
    try:
        with open_regular(path) as file:
            check_bytes(os.fstat(file.fileno()).st_size, f"the file {name!r}")
            return file.read()
    except (OSError, ValueError) as error:  # ValueError for impossible names
        raise FileError(f"cannot read {name!r}: {reason(error)}") from None


def read_text(path: str | os.PathLike[str], *, encoding: str = "utf-8-sig", errors: str = "strict") -> str:
    """A text in UTF-8."""
    try:
        return read_bytes(path).decode(encoding, errors)
    except UnicodeDecodeError as error:
        message = f"byte {error.start} is not UTF-8; save it as UTF-8"
        raise FileError(f"cannot read {os.fspath(path)!r}: {message}") from None


def parse_json(text: str | bytes) -> Any:
    """A value in JSON; one that is nested too deeply for the parser is a ValueError too."""
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def read_array(file: IO[bytes], size: int) -> npt.NDArray[Any]:
    """The array of an .npy file of `size` bytes. Nothing is unpickled, and its header is compared with its size."""
    array: npt.NDArray[Any]
    shape, fortran_order, dtype = read_array_header(file)
    held = size - file.tell()
    if math.prod(shape) * dtype.itemsize != held:
        raise ValueError(
            f"its header names {math.prod(shape):,} numbers of {dtype.itemsize} bytes, but {held:,} bytes follow"
        )
    check_bytes(held, "an array")
    array = np.frombuffer(bytearray(file.read(held)), dtype)
    return array.reshape(shape, order="F" if fortran_order else "C")


def read_array_header(file: IO[bytes]) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """The shape, the order and the type in the header of an .npy file; whatever is wrong with it is a ValueError."""
    try:
        version = np.lib.format.read_magic(file)
        read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        shape, fortran_order, dtype = read(file)
    except Exception as error:  # a damaged header can make numpy and Python's parser raise almost any error
        raise ValueError(f"the header of an array is damaged: {str(error).splitlines()[:1]}") from None
    if dtype.hasobject or dtype.itemsize == 0 or any(length < 0 for length in shape):
        raise ValueError(f"it holds objects of Python or has an impossible layout ({dtype}, {shape})")
    return shape, fortran_order, dtype
