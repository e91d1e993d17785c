"""python -m deepcruiser, and the command `deepcruiser`: the command line."""

import sys


def run() -> None:
    """Start the command line; Ctrl-C while it is being imported ends with its own status, as later on."""
    try:
        from deepcruiser.cli import main
    except KeyboardInterrupt:
        sys.exit(130)
    main()


if __name__ == "__main__":  # worker processes import this file and must not start a command
    run()
