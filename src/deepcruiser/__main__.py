"""python -m deepcruiser, and the command `deepcruiser`: the command line."""

import os
import signal
from contextlib import suppress
from types import FrameType


def run() -> None:
    """Start the command line; Ctrl-C while something is being imported ends with its own status too."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # shells ignore Ctrl-C for background jobs
        signal.signal(signal.SIGINT, _interrupt)
    from deepcruiser.cli import main

    main()


def _interrupt(number: int, frame: FrameType | None) -> None:
    """Raise an error, but not through an import, where a library in C++ may end with a crash."""
    while frame is not None:
        if frame.f_code.co_filename == "<frozen importlib._bootstrap>":
            with suppress(OSError):
                os.write(2, b"interrupted\n")
            os._exit(130)
        frame = frame.f_back
    raise KeyboardInterrupt


if __name__ == "__main__":  # worker processes import this file and must not start a command
    run()
