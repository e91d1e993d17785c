"""Sorted arrays of codes as sets: looking up, making distinct, and where traces begin and end."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from deepcruiser.abstraction.grid import IntArray


def find(ascending: IntArray, codes: IntArray) -> IntArray:
    """The position of each code in `ascending`, -1 where it is not there."""
    if not len(ascending):
        return np.full(len(codes), -1, np.int64)
    position = np.minimum(np.searchsorted(ascending, codes), len(ascending) - 1)
    return np.where(ascending[position] == codes, position, -1)


def known(positions: IntArray) -> IntArray:
    """The distinct positions, ascending, without the -1 of what was not found."""
    found = distinct(positions)
    return found[1:] if len(found) and found[0] < 0 else found


def distinct(codes: IntArray) -> IntArray:
    """The distinct codes, ascending: np.unique without its hash table, which takes four times as long."""
    ascending = np.sort(codes)
    first_of_its_kind: npt.NDArray[np.bool_] = np.diff(ascending, prepend=ascending[:1] - 1) != 0
    return ascending[first_of_its_kind]


def ends(lengths: IntArray) -> tuple[IntArray, IntArray]:
    """Where the first and the last state of each trace stand when N+1 states of each follow one another."""
    last = np.cumsum(lengths + 1) - 1
    return last - lengths, last
