"""python -m deepcruiser: the command line."""

from deepcruiser.cli import main

if __name__ == "__main__":  # worker processes import this file and must not start a command
    main()
