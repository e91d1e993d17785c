"""Comparing what WAV, FLAC and Ogg files declare with what they contain.

libsndfile plays a damaged file as far as it can. A test must not run on such a sound without a word, so that here the
redundancy of each format is checked: sizes and rates in headers, page checksums, the number of the last frame.
"""

from __future__ import annotations

import os
import re
import struct
import sys
import zlib
from functools import lru_cache
from pathlib import Path
from typing import BinaryIO

#: A line in the log of libsndfile about a contradictory field in a WAV header.
_CONTRADICTION = re.compile(r"^ *(Bytes/sec|Block Align) *: (\d+) \(should be (\d+)\)", re.MULTILINE)
#: The sample rates and bit depths of a FLAC frame header, by their codes.
_RATES = (0, 88_200, 176_400, 192_000, 8_000, 16_000, 22_050, 24_000, 32_000, 44_100, 48_000, 96_000)
_BITS = (0, 8, 12, 0, 16, 20, 24, 32)
#: The last frame of a FLAC file begins within this many bytes before the end.
_TAIL = 2**17
_REVERSED = bytes(int(f"{byte:08b}"[::-1], 2) for byte in range(256))


def contradiction(path: Path, raw: BinaryIO, log: str, *, frames: int) -> str:
    """The problem of an open file, given libsndfile's log and the frames that it read; empty if there is none."""
    place = raw.tell()
    try:
        raw.seek(0)
        start = raw.read(4)
        if start == b"RIFF":
            return _in_wav(raw, log)
        if start == b"fLaC":
            return _in_flac(raw, frames)
        if start == b"OggS":
            about = os.fstat(raw.fileno())
            return _in_ogg(path, about.st_size, about.st_mtime_ns)
        return ""
    finally:
        raw.seek(place)


def _in_wav(raw: BinaryIO, log: str) -> str:
    wrong = _CONTRADICTION.search(log)
    if wrong:
        return f"its header contradicts itself: {wrong[1]} is {wrong[2]} and should be {wrong[3]}"
    size = os.fstat(raw.fileno()).st_size
    at = 12
    data = False
    while at + 8 <= size:
        raw.seek(at)
        name, length = struct.unpack("<4sI", raw.read(8))
        if data and not (name.isascii() and name.decode().isprintable() and length <= size - at - 7):
            return f"its sound ends at byte {at:,}, but what follows there is no part of a WAV file"
        data = data or name == b"data"
        at += 8 + length + length % 2
    return ""


def _in_flac(raw: BinaryIO, frames: int) -> str:
    raw.seek(8)
    info = raw.read(34)
    if len(info) < 34:
        return ""
    packed = int.from_bytes(info[10:18])
    rate, bits = packed >> 44, (packed >> 36 & 31) + 1
    size = os.fstat(raw.fileno()).st_size
    raw.seek(max(42, size - _TAIL))
    tail = raw.read()
    at = len(tail)
    while (at := max(tail.rfind(b"\xff\xf8", 0, at), tail.rfind(b"\xff\xf9", 0, at))) >= 0:
        header = _frame(tail[at : at + 20])
        if header is None:
            continue
        (first, length), frame_rate, frame_bits = header
        if frame_bits not in (0, bits):
            if frame_rate in (0, rate):
                return f"its header says {bits} bits a sample, and its last frame {frame_bits}"
            continue
        if frame_rate not in (0, rate):
            return f"its header says {rate:,} Hz, and its last frame {frame_rate:,} Hz"
        if tail[at + 1] == 0xF8:  # the header has the frame's number, and all frames but the last are equally long
            first *= int.from_bytes(info[:2])
        held = first + length
        if frames < held:
            return f"its header says {frames:,} samples, but it holds {held:,}"
        unknown = frames == sys.maxsize  # it was written to a pipe
        return "" if unknown or frames == held else f"it is cut short, with {held} samples out of {frames}"
    return ""


def _frame(data: bytes) -> tuple[tuple[int, int], int, int] | None:
    """The number, the length, the rate and the bits in the header of a FLAC frame; None if it is not one."""
    if len(data) < 6 or data[3] & 1 or data[2] >> 4 == 0 or data[2] & 15 == 15 or data[3] >> 4 > 10:
        return None
    width = next((n for n, mask in ((1, 0x80), (2, 0x20), (3, 0x10), (4, 8), (5, 4), (6, 2)) if not data[4] & mask), 7)
    number = data[4] & (0x7F if width == 1 else 0xFF >> (width + 1))
    for byte in data[5 : 4 + width]:
        number = number << 6 | byte & 63
    at = 4 + width
    block, code = data[2] >> 4, data[2] & 15
    length = 192 if block == 1 else 576 << (block - 2) if block < 6 else 256 << max(0, block - 8)
    if block in (6, 7):
        length = int.from_bytes(data[at : at + block - 5]) + 1
        at += block - 5
    rate = _RATES[code] if code < 12 else int.from_bytes(data[at : at + (1 if code == 12 else 2)])
    at += (0, 1, 2, 2)[max(0, code - 11)]
    if at >= len(data) or _crc8(data[:at]) != data[at]:
        return None
    return (number, length), rate * {12: 1000, 14: 10}.get(code, 1), _BITS[data[3] >> 1 & 7]


def _crc8(data: bytes) -> int:
    value = 0
    for byte in data:
        value ^= byte
        for _ in range(8):
            value = (value << 1 ^ 7) & 255 if value & 128 else value << 1
    return value


@lru_cache(maxsize=64)  # a long recording may be read many times, in parts
def _in_ogg(path: Path, size: int, changed: int) -> str:
    """Whether all pages are present and unchanged."""
    numbers: dict[bytes, int] = {}
    with open(path, "rb") as file:
        at = 0
        while header := file.read(27):
            if header[:4] != b"OggS" or len(header) < 27:
                return f"there is no page at byte {at:,}" if len(header) == 27 else "it is cut short"
            sizes = file.read(header[26])
            body = file.read(sum(sizes))
            if len(sizes) < header[26] or len(body) < sum(sizes):
                return "it is cut short, in the middle of a page"
            checksum = int.from_bytes(header[22:26], "little")
            if _ogg_crc(header[:22] + bytes(4) + header[26:] + sizes + body) != checksum:
                return f"the page at byte {at:,} is damaged: its checksum differs"
            stream, number = header[14:18], int.from_bytes(header[18:22], "little")
            if number != numbers.get(stream, number):
                return f"a page is missing before byte {at:,}"
            numbers[stream] = number + 1
            at += 27 + len(sizes) + len(body)
    return ""


def _ogg_crc(data: bytes) -> int:
    """Ogg's checksum is that of ZIP with all bits in the other order, from 0 and not inverted."""
    value = zlib.crc32(data.translate(_REVERSED), 0xFFFFFFFF) ^ 0xFFFFFFFF
    return int(f"{value:032b}"[::-1], 2)
