"""Transformations as a folder has them, whatever the classes are that they were made by."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from deepcruiser.campaign.mutations import Mutations


@dataclass(frozen=True)
class Written:
    """A transformation by its name, and as it prints itself."""

    name: str
    text: str

    def __str__(self) -> str:
        return self.text


class AsWritten(Mutations):
    """Reads transformations without knowing them."""

    def from_dict(self, data: Mapping[str, Any]) -> Written:
        values = ", ".join(f"{key}={value!r}" for key, value in data.items() if key != "name")
        return Written(str(data["name"]), f"{data['name']}({values})")
