"""Inputs and answers of any kind: what names them, and what a database holds of them."""

from __future__ import annotations

import base64
import dataclasses
import hashlib
import io
import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch

from deepcruiser.errors import InputError

#: Answers of more numbers than this are stored by their digest.
_LARGE = 256


def digest_of(value: Any) -> str:
    """A text that is the same for two inputs just when all their samples are."""
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
        yield f"{value!r} ".encode()


def as_json(value: Any) -> Any:
    """An answer as JSON holds it; of what is too large or strange for that, what tells it from others."""
    value = _as_numpy(value)
    if isinstance(value, np.ndarray) and value.size > _LARGE:
        return {"shape": list(value.shape), "sha256": digest_of(value)}
    if isinstance(value, np.ndarray | np.generic):
        return as_json(value.tolist())
    if isinstance(value, list | tuple):
        return [as_json(item) for item in value]
    if isinstance(value, dict):
        return {str(key): as_json(item) for key, item in value.items()}
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)  # JSON has no such numbers, and no number is like NaN, not even NaN
    return value if isinstance(value, str | int | float | bool) or value is None else repr(value)


def to_json(value: Any) -> Any:
    """A reference as JSON, from which `from_json` makes the same again: a resumed campaign has to compare alike."""
    value = _as_numpy(value)
    if isinstance(value, np.ndarray) and value.dtype.kind != "O":
        buffer = io.BytesIO()
        np.save(buffer, value, allow_pickle=False)
        return {"array": base64.b64encode(buffer.getvalue()).decode()}
    if isinstance(value, np.generic):
        return to_json(value.item())
    if isinstance(value, tuple):
        return {"tuple": [to_json(item) for item in value]}
    if isinstance(value, list):
        return [to_json(item) for item in value]
    if isinstance(value, dict):
        return {"dict": [[to_json(key), to_json(item)] for key, item in value.items()]}
    if isinstance(value, str | int | float | bool) or value is None:
        return value
    raise InputError(
        f"an answer of the type {type(value).__name__} cannot be stored to compare with: let the system give texts, "
        "numbers or arrays, or lists, tuples or dictionaries of them"
    )


def from_json(data: Any) -> Any:
    """What `to_json` made this of; tensors come back as arrays, and numpy's numbers as Python's."""
    if isinstance(data, list):
        return [from_json(item) for item in data]
    if not isinstance(data, dict):
        return data
    ((kind, held),) = data.items()
    if kind == "array":
        return np.lib.format.read_array(io.BytesIO(base64.b64decode(held)), allow_pickle=False)
    if kind == "tuple":
        return tuple(from_json(item) for item in held)
    return {from_json(key): from_json(item) for key, item in held}


def _as_numpy(value: Any) -> Any:
    if not isinstance(value, torch.Tensor):
        return value
    value = value.detach().cpu()
    return (value.float() if value.dtype == torch.bfloat16 else value).numpy()
