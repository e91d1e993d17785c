"""Inputs and answers as data: digests, JSON to display, and JSON that can be read back."""

from __future__ import annotations

import base64
import dataclasses
import hashlib
import io
import math
import os
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Any

import numpy as np

from deepcruiser.audio import Audio
from deepcruiser.errors import InputError, described
from deepcruiser.trace import is_tensor

#: Arrays with more numbers than this are summarised by their digest.
_LARGE = 256
#: The deepest nesting and the longest whole number, in bits, of an answer.
_DEEPEST, _LONGEST_INT = 50, 4096


def digest_of(value: Any) -> str:
    """SHA-256 of an input, of any kind."""
    digest = hashlib.sha256()
    for part in _parts(value):
        digest.update(part)
    return digest.hexdigest()


def _parts(value: Any) -> Iterator[bytes]:
    value = _as_numpy(value)
    if isinstance(value, np.ndarray) and value.dtype.kind != "O":
        yield f"{value.dtype} {value.shape} ".encode()
        yield np.ascontiguousarray(value).tobytes()
    elif isinstance(value, list | tuple | np.ndarray):
        yield f"{type(value).__name__} {len(value)} ".encode()
        for item in value:
            yield from _parts(item)
    elif isinstance(value, dict):
        yield b"dict "
        yield from _parts(list(value.items()))
    elif dataclasses.is_dataclass(value):
        yield type(value).__name__.encode()
        yield from _parts([getattr(value, field.name) for field in dataclasses.fields(value)])
    else:
        try:
            text = repr(value)
        except Exception as error:  # of a user's class
            raise InputError(f"a {type(value).__name__} in an input cannot be shown: {described(error)}") from None
        yield f"{text} ".encode()


def summarise(value: Any) -> Any:
    """An answer as JSON, to show and to compare; large arrays become their shape and digest."""
    value = _as_numpy(value)
    if isinstance(value, np.ndarray) and value.size > _LARGE:
        return {"shape": list(value.shape), "sha256": digest_of(value)}
    if isinstance(value, np.ndarray | np.generic):
        return summarise(value.tolist())
    if isinstance(value, list | tuple):
        return [summarise(item) for item in value]
    if isinstance(value, dict):
        return {_text(key): summarise(item) for key, item in value.items()}
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)  # JSON has no such numbers, and NaN does not equal itself
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    return value if isinstance(value, int | float | bool) or value is None else _text(value)


def readable(value: Any) -> Any:
    """An answer to print: numbers with six digits instead of all of them."""
    if isinstance(value, float):
        return float(f"{value:.6g}")
    if isinstance(value, list | tuple):
        return type(value)(map(readable, value))
    if isinstance(value, dict):
        return {key: readable(item) for key, item in value.items()}
    return value


def _text(value: Any) -> str:
    """A value of any class as a text, even if it cannot say what it is."""
    try:
        return value if isinstance(value, str) else str(value) if isinstance(value, int | float | bool) else repr(value)
    except Exception:
        return f"<a {type(value).__name__} that cannot be shown>"


def not_storable(answer: Any, *, depth: int = 0) -> str:
    """Why an answer cannot be stored and shown; empty if it can."""
    if depth > _DEEPEST:
        return f"its answer is nested more than {_DEEPEST} deep"
    if isinstance(answer, int) and answer.bit_length() > _LONGEST_INT:
        return (
            f"its answer holds a whole number of {answer.bit_length():,} bits; at most {_LONGEST_INT:,} can be stored"
        )
    parts: Iterable[Any] = answer if isinstance(answer, list | tuple) else ()
    if isinstance(answer, dict):
        parts = chain(answer, answer.values())
    elif isinstance(answer, np.ndarray) and answer.dtype.kind == "O":
        parts = answer.flat
    return next(filter(None, (not_storable(part, depth=depth + 1) for part in parts)), "")


def encode(value: Any) -> Any:
    """A reference as JSON, without loss: `decode` gives it back, so that a resumed campaign compares alike."""
    if refusal := not_storable(value):
        raise InputError(f"it cannot be stored to compare with: {refusal}")
    return _encoded(value)


def _encoded(value: Any) -> Any:
    value = _as_numpy(value)
    if isinstance(value, np.ndarray) and value.dtype.kind != "O":
        buffer = io.BytesIO()
        np.save(buffer, value, allow_pickle=False)
        return {"array": base64.b64encode(buffer.getvalue()).decode()}
    if isinstance(value, np.generic):
        return _encoded(value.item())
    if isinstance(value, Audio):
        return {"audio": [value.rate, _encoded(value.samples)]}
    if isinstance(value, tuple):
        return {"tuple": [_encoded(item) for item in value]}
    if isinstance(value, list):
        return [_encoded(item) for item in value]
    if isinstance(value, dict):
        return {"dict": [[_encoded(key), _encoded(item)] for key, item in value.items()]}
    if isinstance(value, str | int | float | bool) or value is None:
        return value
    raise InputError(
        f"an answer of the type {type(value).__name__} cannot be stored to compare with: answers and labels are texts, "
        "numbers, arrays or Audio, or lists, tuples or dictionaries of them"
    )


def decode(data: Any) -> Any:
    """What `encode` was given; tensors come back as arrays, and numbers of numpy as those of Python."""
    if isinstance(data, list):
        return [decode(item) for item in data]
    if not isinstance(data, dict):
        return data
    ((kind, held),) = data.items()
    if kind == "array":
        return np.lib.format.read_array(io.BytesIO(base64.b64decode(held)), allow_pickle=False)
    if kind == "audio":
        return Audio(decode(held[1]), held[0])
    if kind == "tuple":
        return tuple(decode(item) for item in held)
    return {decode(key): decode(item) for key, item in held}


def _as_numpy(value: Any) -> Any:
    if not is_tensor(value):
        return value
    value = value.detach().cpu()
    return (value.float() if str(value.dtype) == "torch.bfloat16" else value).numpy()
