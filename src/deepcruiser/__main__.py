"""python -m deepcruiser: the command line."""

from deepcruiser.cli import main

main()
