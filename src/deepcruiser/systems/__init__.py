"""Adapters that make a `deepcruiser.trace.System` of a network, one folder per framework, and the built-in networks.

What all adapters share is in `adapter.py`. An adapter imports its framework when it is first used.
"""

from __future__ import annotations

from deepcruiser.errors import InputError
from deepcruiser.trace import System

#: The names of the built-in systems.
BUILT_IN = ("brackets", "english", "english-letters")


def load_system(name: str, *, seed: int = 0, device: str = "cpu") -> System:
    """Load a built-in system.

    * "english" recognises English speech as known words, with a language model; "english-letters" letter by letter.
    * "brackets" decides whether brackets are balanced. With a `seed` other than 0 it is trained anew, on the CPU.
    """
    if name == "brackets":
        from deepcruiser.systems.builtin import brackets

        return brackets.load(seed)
    if name in BUILT_IN:
        from deepcruiser.systems.builtin.speech import recogniser

        return recogniser.load(device=device, with_language_model=name == "english")
    raise InputError(f"there is no built-in system {name!r}; the built-in systems are: {', '.join(BUILT_IN)}")
