"""The file format of profiles, models and coverages: a ZIP archive of .npy arrays and one JSON text; it holds no code.

`numpy.load` opens the arrays. Each member has a checksum, so that damage is detected.
"""

from __future__ import annotations

import json
import os
import struct
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
import numpy.typing as npt

from deepcruiser.atomic import atomic_write
from deepcruiser.errors import FileError
from deepcruiser.spooled_rows import Rows

VERSION = 1
Array = npt.NDArray[Any]
_BLOCK_BYTES = 2**24


def save(path: str | os.PathLike[str], kind: str, about: Mapping[str, Any], arrays: Mapping[str, Array | Rows]) -> None:
    """Write a file of the given kind ("profile", "model", "coverage"), whole or not at all."""
    header = {"format": f"deepcruiser {kind}", "version": VERSION, **about}
    with atomic_write(path) as file, zipfile.ZipFile(file, "w") as archive:
        archive.writestr(_member("about.json"), json.dumps(header, indent=2))
        for name, array in arrays.items():
            with archive.open(_member(f"{name}.npy"), "w", force_zip64=True) as member:
                if isinstance(array, Rows):
                    shape = (len(array), array.width)
                    layout = {"descr": array.dtype.str, "fortran_order": False, "shape": shape}
                    np.lib.format.write_array_header_1_0(member, layout)
                    for block in array.blocks():
                        member.write(block.tobytes())
                else:
                    np.lib.format.write_array(member, np.ascontiguousarray(array), allow_pickle=False)


def load(
    path: str | os.PathLike[str], kind: str, *, rows: tuple[str, ...] = ()
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Read the header and the arrays of a file. The arrays named in `rows` become `Rows`, read block by block."""
    try:
        with zipfile.ZipFile(path) as archive:
            about = json.loads(archive.read("about.json"))
            _check(path, about, kind)
            arrays: dict[str, Any] = {}
            for name in archive.namelist():
                if name.endswith(".npy"):
                    with archive.open(name) as member:
                        stem = name.removesuffix(".npy")
                        arrays[stem] = _read_rows(member) if stem in rows else _read_array(member)
    except FileNotFoundError:
        raise FileError(f"there is no file {os.fspath(path)!r}") from None
    except (
        OSError,
        zipfile.BadZipFile,
        zlib.error,
        struct.error,
        KeyError,
        ValueError,
        EOFError,
        RuntimeError,
    ) as error:
        raise FileError(
            f"{os.fspath(path)!r} is not a {kind} of DeepCruiser, or it is damaged or cut short ({error}): "
            "make it again, or copy it again from where it came"
        ) from None
    return about, arrays


@contextmanager
def contents_of(path: str | os.PathLike[str], kind: str) -> Iterator[None]:
    """Turn an error while an object is made from a loaded file into one clear `FileError`."""
    try:
        yield
    except (KeyError, TypeError, ValueError, FileError) as error:
        raise FileError(
            f"the contents of the {kind} {os.fspath(path)!r} do not fit together ({error}): make it again"
        ) from None


def _check(path: str | os.PathLike[str], about: Any, kind: str) -> None:
    given = about.get("format") if isinstance(about, dict) else None
    if not isinstance(given, str) or not given.startswith("deepcruiser "):
        raise ValueError("its header names no format")
    if given != f"deepcruiser {kind}":
        raise FileError(f"{os.fspath(path)!r} is a {given.removeprefix('deepcruiser ')}, but a {kind} is needed")
    if about.get("version") != VERSION:
        raise FileError(
            f"{os.fspath(path)!r} was written in version {about.get('version')} of the {kind} format, "
            f"and this DeepCruiser reads version {VERSION}: make the file again"
        )


def _member(name: str) -> zipfile.ZipInfo:
    return zipfile.ZipInfo(name)  # its date stays 1980, so that equal contents give equal files


def _read_array(member: Any) -> Array:
    array: Array = np.lib.format.read_array(member, allow_pickle=False)
    member.read(1)  # reading to the end of the member compares its checksum
    return array


def _read_rows(member: Any) -> Rows:
    if np.lib.format.read_magic(member) != (1, 0):
        raise ValueError("unknown layout of an array")
    shape, _, dtype = np.lib.format.read_array_header_1_0(member)
    if len(shape) != 2 or dtype != Rows.dtype:
        raise ValueError(f"an array has the shape {shape} and the type {dtype}")
    rows = Rows(shape[1])
    size = shape[1] * dtype.itemsize
    while data := member.read(max(1, _BLOCK_BYTES // size) * size):
        rows.append(np.frombuffer(data, dtype).reshape(-1, shape[1]))
    if len(rows) != shape[0]:
        raise ValueError(f"the header says {shape[0]} rows, but there are {len(rows)}")
    return rows
