"""The errors that DeepCruiser raises, and texts that are safe to print.

    DeepCruiserError
      InputError       a value, an array or an option is not what was expected
      FileError        a file is missing, damaged, or of another kind or version
      MismatchError    two things do not belong together, such as a profile and another network

A message says what was given, what was expected and what to do. The command line prints it as it is:

    try:
        model = dc.AbstractModel.load("asr.model")
    except dc.DeepCruiserError as error:
        print(error)
"""

import re
import warnings
from collections.abc import Callable

#: The longest quotation in a message, and the longest word.
LONGEST = 200
#: A quotation or a word beyond that; an apostrophe within a word does not begin a quotation.
_TOO_LONG = re.compile(
    rf"""(?<!\w)'(?:[^'\\\n]|\\.){{{LONGEST},}}'(?!\w)|"(?:[^"\\\n]|\\.){{{LONGEST},}}"|\S{{{LONGEST},}}"""
)


class DeepCruiserError(Exception):
    """The base class of all errors of this package. Its message is printable, and quotes at most 200 characters."""

    def __str__(self) -> str:
        return printable_lines(_TOO_LONG.sub(lambda match: _shortened(match[0]), super().__str__()))


class InputError(DeepCruiserError, ValueError):
    """A value, an array or an option is not what was expected."""


class FileError(DeepCruiserError):
    """A file is missing, cannot be read, is damaged, or is of another kind or version."""


class MismatchError(DeepCruiserError):
    """Two arguments do not belong together, such as a system and the model of another system."""


def reason(error: BaseException) -> str:
    """The reason why reading or writing failed, in lower case for the end of a message: "no such file or directory"."""
    return (getattr(error, "strerror", None) or str(error)).lower()


def described(error: BaseException) -> str:
    """An exception of other code, such as "ValueError: too short", even if its own text cannot be made."""
    try:
        message = str(error)
    except BaseException as another:  # also sys.exit
        message = f"its message cannot be shown, as that raises {type(another).__name__}"
    return f"{type(error).__name__}: {message}"


def printable(value: object, *, width: int = LONGEST) -> str:
    """A value on one line that is safe on every terminal: control characters escaped, cut off at `width`."""
    text = value if isinstance(value, str) else repr(value)
    text = _escaped(text[: 4 * width])
    return text if len(text) <= width else text[: width - 3] + "..."


def printable_lines(text: str) -> str:
    """A text of any length and any number of lines that is safe on every terminal."""
    return "\n".join(map(_escaped, text.split("\n")))


def printable_warnings() -> Callable[..., str]:
    """Escape control characters in all warnings from now on; returns how warnings were shown before."""
    before = warnings.formatwarning
    warnings.formatwarning = lambda *args, **options: printable_lines(before(*args, **options))
    return before


def _escaped(line: str) -> str:
    if line.isprintable():
        return line
    # JSON has no \\x7f, and escapes all other control characters by itself.
    return "".join(
        char if char.isprintable() else "\\u007f" if char == "\x7f" else char.encode("unicode_escape").decode()
        for char in line
    )


def _shortened(quotation: str) -> str:
    half = LONGEST // 2 - 2
    return f"{quotation[:half]}...{quotation[-half:]}"
