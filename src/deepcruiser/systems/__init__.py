"""The adapters: each turns somebody's network into a `deepcruiser.trace.System`; and the networks in the box."""

from __future__ import annotations

from deepcruiser.errors import InputError
from deepcruiser.trace import System

#: The systems that `load_system` knows by name.
BUILT_IN = ("brackets",)


def load_system(name: str, *, seed: int = 0) -> System:
    """A system that comes with the package; made ready when it is asked for, not when the package is imported.

    `seed` is that of its training, where it is trained on the spot.
    """
    if name == "brackets":
        from deepcruiser.systems import brackets

        return brackets.load(seed)
    raise InputError(f"no system {name!r} is built in; there is: {', '.join(BUILT_IN)}")
