"""The errors that DeepCruiser raises.

    DeepCruiserError
      InputError       a value, an array or an option is not what was needed
      FileError        a file is missing, damaged, or of another kind or version
      MismatchError    two things do not belong together, such as a profile and another network

A message says what was given, what was needed and what to do. The command line prints it as it is:

    try:
        model = dc.AbstractModel.load("asr.model")
    except dc.DeepCruiserError as error:
        print(error)
"""


class DeepCruiserError(Exception):
    """The base class of all errors of this package."""


class InputError(DeepCruiserError, ValueError):
    """A value, an array or an option is not what was needed."""


class FileError(DeepCruiserError):
    """A file is missing, cannot be read, is damaged, or is of another kind or version."""


class MismatchError(DeepCruiserError):
    """Two things that were given together do not belong together."""


def reason(error: BaseException) -> str:
    """Why reading or writing failed, in lower case, to end a message with: "no such file or directory"."""
    return (getattr(error, "strerror", None) or str(error)).lower()
