"""python -m deepcruiser: the command line."""

from deepcruiser.cli import main

if __name__ == "__main__":  # and not when a process that makes mutants imports it
    main()
