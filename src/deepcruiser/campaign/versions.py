"""The versions of Python and of the libraries in use."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version

#: Those on which the samples of a mutant depend.
_PACKAGES = ("deepcruiser", "numpy", "scipy", "torch", "soxr", "python-stretch")


def versions() -> dict[str, str]:
    """By name, those of Python and of the libraries that are installed."""
    result = {"python": platform.python_version()}
    for name in _PACKAGES:
        try:
            result[name] = version(name)
        except PackageNotFoundError:  # it runs from a folder
            continue
    return result


def changed_since(before: Mapping[str, str]) -> str:
    """What differs between the versions then and now, in words; empty if nothing does."""
    now = versions()
    return ", ".join(
        f"{name} was {before.get(name, 'not there')} and is {now.get(name, 'not there')}"
        for name in sorted({*before, *now})
        if before.get(name) != now.get(name)
    )
