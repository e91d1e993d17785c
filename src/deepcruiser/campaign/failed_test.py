"""A failing test: a mutant that the system gets wrong, as a recipe that makes it again, and the file of its input."""

from __future__ import annotations

import io
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from deepcruiser.abstraction.model import AbstractModel
from deepcruiser.abstraction.visits import Visits
from deepcruiser.alignment import word_errors
from deepcruiser.audio import AUDIO_SUFFIXES, Audio
from deepcruiser.campaign.events import Ran
from deepcruiser.campaign.queue import Test
from deepcruiser.errors import FileError
from deepcruiser.files.atomic import atomic_write
from deepcruiser.files.reading import read_text
from deepcruiser.notebook import card, player
from deepcruiser.serialise import readable, summarise
from deepcruiser.trace import System
from deepcruiser.transformations import to_dict

if TYPE_CHECKING:
    from deepcruiser.campaign.record import CampaignRecord
    from deepcruiser.campaign.replay import Replay


@dataclass(frozen=True, eq=False)
class FailedTest:
    """A mutant that the system gets wrong: its seed, the changes in order, and the wrong answer."""

    number: int
    seed: str
    #: The place of the seed among all seeds.
    position: int
    recipe: tuple[Any, ...]
    #: The kind of failure: "wrong", "crash", "time-out" or "not finite".
    kind: str
    reference: Any
    #: What the answer to the seed was compared with; `reference` is this, moved by an oracle that follows the changes.
    seed_reference: Any
    output: Any
    score: float
    doubt: float | None
    #: SHA-256 of the input.
    digest: str
    visits: Visits | None = field(repr=False)
    #: The system's answer to the unchanged seed.
    seed_output: Any = None
    #: The campaign that found it, which has the seeds.
    record: CampaignRecord | None = field(default=None, repr=False)
    #: The number of changes at the end of the recipe without which it passed.
    added: int = 1

    @classmethod
    def of(cls, event: Ran, parent: Test, record: CampaignRecord | None = None) -> FailedTest:
        """The failing test of an event; its parent is a test of the queue."""
        recipe = (*parent.recipe, *event.changes)
        reference = parent.reference if event.reference is None else event.reference
        seed = event.number, parent.seed, parent.position
        judged = event.reason, reference, parent.reference, event.output, event.score, event.doubt
        return cls(*seed, recipe, *judged, event.digest, event.visits, parent.seed_output, record, len(event.changes))

    def __str__(self) -> str:
        steps = " -> ".join(map(str, self.recipe))
        made = f"  unchanged seed: {readable(self.seed_output)!r}\n  {self.seed}: {steps}"
        if self.kind != "wrong":
            return f"{self.kind}: {self.output}\n{made}"
        score = f" ({self.score:.0%})" if isinstance(self.output, str) else ""
        return f"{readable(self.reference)!r} became {readable(self.output)!r}{score}\n{made}"

    def _repr_html_(self) -> str:
        became = f"{readable(self.reference)!r} became {readable(self.output)!r}"
        title = f"{self.number}: {became if self.kind == 'wrong' else f'{self.kind}: {self.output}'}"
        rows: list[tuple[Any, ...]] = [("unchanged seed", repr(readable(self.seed_output))), ("seed", self.seed)]
        rows.append(("recipe", " -> ".join(map(str, self.recipe))))
        rows += [("input", self.text)] if self.text is not None else []
        for name, place in (("seed", f"seeds/{self.position:06}"), ("failing input", f"failed/{self.number:06}")):
            rows += [(name, player(wav)) for wav in self._sounds(place)]
        return card(title, rows)

    def _sounds(self, place: str) -> list[bytes]:
        """The sound that the campaign's folder has there, if any, as WAV."""
        paths = [] if self.record is None else sorted(self.record.folder.glob(f"{place}.*"))
        return [Audio.read(path).wav() for path in paths if path.suffix in AUDIO_SUFFIXES]

    def to_dict(self) -> dict[str, Any]:
        """The failing test as JSON."""
        return {
            "number": self.number,
            "seed": self.seed,
            "recipe": [to_dict(change) for change in self.recipe],
            "kind": self.kind,
            "reference": summarise(self.reference),
            "output": summarise(self.output),
            "seed_output": summarise(self.seed_output),
            "score": self.score,
            "doubt": self.doubt,
            "sha256": self.digest,
        }

    @property
    def text(self) -> str | None:
        """The failing input if it is a text; otherwise, or without a record, None."""
        return None if self.record is None else input_text(self.record.folder, self.number)

    def make(self) -> Any:
        """The failing input, made again from its seed."""
        return self._record.inputs.make(self.seed, self.recipe)

    def replay(
        self, system: System, *, model: AbstractModel | None = None, limit_seconds: float | None = None
    ) -> Replay:
        """Make the input again, run the system on it, and compare input, answer and states with what was stored."""
        from deepcruiser.campaign.replay import replay

        return replay(self, self._record, system, model=model, limit_seconds=limit_seconds)

    @property
    def _record(self) -> CampaignRecord:
        assert self.record is not None, "only the tests of a CampaignRecord can be made again"
        return self.record


def different_failures(failed: Iterable[FailedTest]) -> int:
    """The number of failures that differ in their seed or in which word became what."""
    return len({(test.seed, test.kind, *word_errors(test.reference, test.output)) for test in failed})


@dataclass(frozen=True)
class InputFile:
    """The content of the file of an input, and the suffix of its name."""

    suffix: str
    content: bytes

    @classmethod
    def of(cls, value: Any) -> Self | None:
        """The file of a sound, a text or an array; None for an empty sound and for anything else."""
        if isinstance(value, Audio):
            return cls(".flac", value.encoded(".flac")) if len(value) else None
        if isinstance(value, str):
            return cls(".txt", value.encode(errors="backslashreplace"))
        if isinstance(value, np.ndarray):
            buffer = io.BytesIO()
            np.save(buffer, value, allow_pickle=False)
            return cls(".npy", buffer.getvalue())
        return None

    def write(self, stem: Path) -> None:
        """Write it beside its stem, completely or not at all."""
        with atomic_write(stem.with_suffix(self.suffix)) as file:
            file.write(self.content)


def input_text(folder: Path, number: int) -> str | None:
    """The input of a failing test as it is stored, if it is a text."""
    try:
        return read_text(folder / "failed" / f"{number:06}.txt", encoding="utf-8", errors="replace")
    except FileError:
        return None
