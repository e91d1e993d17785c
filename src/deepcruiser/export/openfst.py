"""OpenFst's text format (AT&T's): transducers for OpenFst, Pynini, Kaldi, k2, foma and HFST.

    export(transducer, "two.att")    two.att, two.isyms, two.osyms and two.ssyms:
                                     fstcompile --isymbols=two.isyms --osymbols=two.osyms two.att two.fst

A line "state successor input output" for each transition, and a line "state" for each final state. The first line
names the initial state. Traces that begin in several states get one more state before them, which reads and writes
nothing (<eps>). The symbol tables name inputs, outputs and states: rows of whole numbers, such as cells, as in
x_3_0_7 with m for a minus sign; words of letters, digits, dots and dashes as they are; all else by number, x0, x1, ...
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from deepcruiser.abstraction.transducer import Transducer
from deepcruiser.files.atomic import atomic_write

EPSILON = "<eps>"


def write_openfst(transducer: Transducer, path: str | os.PathLike[str]) -> None:
    """Write the transducer and, beside it, the symbols of inputs, outputs and states."""
    inputs, outputs = _symbols(transducer.inputs, "x"), _symbols(transducer.outputs, "y")
    states = _symbols(transducer.states, "s")
    tables = {".isyms": [EPSILON, *inputs], ".osyms": [EPSILON, *outputs], ".ssyms": states}
    lines = _transitions(transducer, inputs, outputs)
    if len(transducer.initial) > 1:
        states.append("begin")
    for suffix, names in tables.items():
        with atomic_write(Path(path).with_suffix(suffix)) as file:
            file.write("".join(f"{name}\t{number}\n" for number, name in enumerate(names)).encode())
    with atomic_write(path) as file:
        file.write("".join(lines).encode())


def _transitions(transducer: Transducer, inputs: list[str], outputs: list[str]) -> Iterator[str]:
    begin = int(transducer.initial[0])
    if len(transducer.initial) > 1:
        begin = len(transducer.states)
        for state in transducer.initial.tolist():
            yield f"{begin}\t{state}\t{EPSILON}\t{EPSILON}\n"
    rows = transducer.transitions[np.argsort(transducer.transitions[:, 0] != begin, kind="stable")]
    final = sorted(transducer.final.tolist(), key=lambda state: state != begin)
    if not (rows[:, 0] == begin).any():  # only a final state can be initial without a way out
        yield from (f"{state}\n" for state in final)
        final = []
    for state, read, written, successor in rows.tolist():
        yield f"{state}\t{successor}\t{inputs[read]}\t{outputs[written]}\n"
    yield from (f"{state}\n" for state in final)


def _symbols(values: npt.NDArray[Any], letter: str) -> list[str]:
    """A different word for each value, without spaces."""
    if np.issubdtype(values.dtype, np.integer):
        rows = values.reshape(len(values), -1).tolist()
        return ["_".join([letter, *(str(number).replace("-", "m") for number in row)]) for row in rows]
    if values.ndim == 1 and all(isinstance(value, str) and re.fullmatch(r"[\w.'-]+", value) for value in values):
        return [str(value) for value in values]
    return [f"{letter}{number}" for number in range(len(values))]
