"""Where a profile comes from."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from deepcruiser.errors import MismatchError


@dataclass(frozen=True)
class Origin:
    """Which network, which of its vectors, and which data a profile was made from.

    `network` is the system's fingerprint, empty if it has none. `data` is a sum over the sequences, of a hash of each
    one's name and length: the order does not matter, and the data of two parts add up to those of the whole.
    """

    state_name: str
    network: str
    data: str
    traces: int
    steps: int
    fitted_on: int

    @classmethod
    def of(cls, sequences: Iterable[tuple[str, int]], *, fitted_on: int, system: object = None) -> Origin:
        """The origin of sequences given by name and number of steps."""
        total = traces = steps = 0
        for name, length in sequences:
            digest = hashlib.blake2b(f"{length}:{name}".encode(errors="surrogatepass"), digest_size=16).digest()
            total, traces, steps = total + int.from_bytes(digest), traces + 1, steps + length
        return cls(
            state_name=str(getattr(system, "state_name", "state")),
            network=str(getattr(system, "fingerprint", "")),
            data=f"{total % 2**128:032x}",
            traces=traces,
            steps=steps,
            fitted_on=fitted_on,
        )

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Origin:
        """Read the data of a file; impossible values raise a ValueError."""
        origin = cls(**data)
        words = (origin.state_name, origin.network, origin.data)
        numbers = (origin.traces, origin.steps, origin.fitted_on)
        if not all(isinstance(word, str) for word in words) or not re.fullmatch("[0-9a-f]{32}", origin.data):
            raise ValueError("it does not say where it comes from")
        if not all(type(number) is int and number >= 0 for number in numbers):
            raise ValueError(f"it comes from {origin.traces} traces of {origin.steps} steps")
        return origin

    def merge(self, other: Origin) -> Origin:
        """The origin of two parts together."""
        if (self.network, self.state_name) != (other.network, other.state_name):
            raise MismatchError(
                f"the parts were made from different networks or layers ({self.state_name!r} of {self.network[:12]!r} "
                f"and {other.state_name!r} of {other.network[:12]!r})"
            )
        return Origin(
            state_name=self.state_name,
            network=self.network,
            data=f"{(int(self.data, 16) + int(other.data, 16)) % 2**128:032x}",
            traces=self.traces + other.traces,
            steps=self.steps + other.steps,
            fitted_on=max(self.fitted_on, other.fitted_on),
        )

    def check(self, system: object) -> None:
        """Refuse a system with another fingerprint, if both have one."""
        network = str(getattr(system, "fingerprint", ""))
        if network and self.network and network != self.network:
            raise MismatchError(
                f"the profile was made from another network or layer ({self.state_name!r}, {self.network[:12]}) than "
                f"the one given ({getattr(system, 'state_name', 'state')!r}, {network[:12]}): profile this one first"
            )
