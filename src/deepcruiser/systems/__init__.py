"""The adapters: each turns somebody's network into a `deepcruiser.trace.System`; and the networks in the box."""

from __future__ import annotations

from deepcruiser.errors import InputError
from deepcruiser.trace import System

#: The systems that `load_system` knows by name.
BUILT_IN = ("brackets", "english", "english+lm")


def load_system(name: str, *, seed: int = 0, device: str = "cpu") -> System:
    """A system that comes with the package; made ready when it is asked for, not when the package is imported.

    * "english" recognises English speech, letter by letter; "english+lm" weighs the words with a language model.
    * "brackets" tells whether brackets are balanced. It is trained on the spot, with `seed`, on the CPU.
    """
    if name == "brackets":
        from deepcruiser.systems.builtin import brackets

        return brackets.load(seed)
    if name in BUILT_IN:
        from deepcruiser.systems.builtin.speech import recogniser

        return recogniser.load(device=device, with_language_model=name == "english+lm")
    raise InputError(f"no system {name!r} is built in; there is: {', '.join(BUILT_IN)}")
