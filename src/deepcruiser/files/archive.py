"""The file format of profiles, models and coverages: a ZIP archive of .npy arrays and one JSON text; it holds no code.

`numpy.load` opens the arrays. Each member has a checksum, so that damage is detected. Nothing is compressed, so a file
takes no more memory than it has bytes.
"""

from __future__ import annotations

import json
import os
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
import numpy.typing as npt

from deepcruiser.errors import DeepCruiserError, FileError, MismatchError, described, reason
from deepcruiser.files.atomic import atomic_write
from deepcruiser.files.reading import open_regular, read_array, read_array_header
from deepcruiser.files.spooled_rows import Rows

VERSION = 1
Array = npt.NDArray[Any]
_BLOCK_BYTES = 2**24


def save(path: str | os.PathLike[str], kind: str, about: Mapping[str, Any], arrays: Mapping[str, Array | Rows]) -> None:
    """Write a file of the given kind ("profile", "model", "coverage"), completely or not at all."""
    header = {"format": f"deepcruiser {kind}", "version": VERSION, "arrays": sorted(arrays), **about}
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
        with open_regular(path) as file, zipfile.ZipFile(file) as archive:
            _check_members(archive, os.fstat(file.fileno()).st_size)
            about = json.loads(archive.read("about.json"))
            _check(path, about, kind)
            arrays: dict[str, Any] = {}
            for name in archive.namelist():
                if name.endswith(".npy"):
                    with archive.open(name) as member:
                        stem, size = name.removesuffix(".npy"), archive.getinfo(name).file_size
                        arrays[stem] = _read_rows(member, size) if stem in rows else _read_array(member, size)
            if sorted(arrays) != about.get("arrays", sorted(arrays)):
                raise ValueError(f"it has the arrays {', '.join(sorted(arrays))}")
    except FileNotFoundError:
        raise FileError(f"there is no file {os.fspath(path)!r}") from None
    except FileError:
        raise
    except Exception as error:  # zipfile, json and numpy raise almost anything where a file is damaged
        message = reason(error) if isinstance(error, OSError | ValueError | zipfile.BadZipFile) else described(error)
        raise FileError(
            f"{os.fspath(path)!r} is not a {kind} of DeepCruiser, or it is damaged or cut short ({message}): "
            "make it again, or copy it again from where it came"
        ) from None
    return about, arrays


@contextmanager
def contents_of(path: str | os.PathLike[str], kind: str) -> Iterator[None]:
    """Turn an error while an object is made from a loaded file into one clear `FileError`."""
    try:
        yield
    except MismatchError:
        raise
    except Exception as error:  # a damaged file may hold anything
        message = str(error) if isinstance(error, DeepCruiserError | ValueError) else described(error)
        raise FileError(
            f"the contents of the {kind} {os.fspath(path)!r} do not fit together ({message}): make it again"
        ) from None


def _check(path: str | os.PathLike[str], about: Any, kind: str) -> None:
    form = about.get("format") if isinstance(about, dict) else None
    if not isinstance(form, str) or not form.startswith("deepcruiser "):
        raise ValueError("its header names no format")
    if form != f"deepcruiser {kind}":
        raise FileError(f"{os.fspath(path)!r} is a {form.removeprefix('deepcruiser ')}, but a {kind} is needed")
    if about.get("version") != VERSION:
        raise FileError(
            f"{os.fspath(path)!r} was written in version {about.get('version')} of the {kind} format, "
            f"and this DeepCruiser reads version {VERSION}: make the file again"
        )


def _member(name: str) -> zipfile.ZipInfo:
    return zipfile.ZipInfo(name)  # dated 1980, so that equal contents make equal files


def _check_members(archive: zipfile.ZipFile, size: int) -> None:
    """Refuse compressed, doubled and overlapping members before any of them is read."""
    members = archive.infolist()
    if len({member.filename for member in members}) < len(members):
        raise ValueError("it contains the same part twice")
    if any(member.compress_type != zipfile.ZIP_STORED for member in members):
        raise ValueError("a part of it is compressed")
    if sum(member.file_size for member in members) > size:
        raise ValueError("its parts are larger than the file")


def _read_array(member: Any, size: int) -> Array:
    array = read_array(member, size)
    member.read(1)  # reading the member to its end checks its checksum
    return array


def _read_rows(member: Any, size: int) -> Rows:
    shape, fortran_order, dtype = read_array_header(member)
    if len(shape) != 2 or not shape[1] or dtype != Rows.dtype or fortran_order:
        raise ValueError(f"an array has the shape {shape} and the type {dtype}")
    rows = Rows(shape[1])
    width = shape[1] * dtype.itemsize
    if shape[0] * width != size - member.tell():
        raise ValueError(f"the header says {shape[0]:,} rows of {width:,} bytes, but there are {size:,} bytes")
    while data := member.read(max(1, _BLOCK_BYTES // width) * width):
        block = np.frombuffer(data, dtype).reshape(-1, shape[1])
        if not np.isfinite(block).all():
            raise ValueError("it holds numbers that are not finite")
        rows.append(block)
    return rows
