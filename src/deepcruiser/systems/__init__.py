"""Adapters that make a `deepcruiser.trace.System` of a network, one folder per framework, and the built-in networks.

What all adapters share is in `adapter.py`. An adapter imports its framework when it is first used.
"""

from __future__ import annotations

#: The names of the built-in systems.
BUILT_IN = ("brackets", "english", "english-letters")
