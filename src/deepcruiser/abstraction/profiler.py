"""Profiling a system: one pass over the data, and before it a pass over a share of them to fix the projections."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from deepcruiser.abstraction.profile import Profile, Recorder
from deepcruiser.abstraction.projections import Fit, Projected, Projections
from deepcruiser.errors import InputError
from deepcruiser.stream import Progress, in_share, named, nothing_read, require_sized, stream
from deepcruiser.trace import Run, System

Watch = Callable[[Progress], None]


def fit(
    system: System,
    data: Iterable[Any],
    *,
    share: float = 1.0,
    seed: int = 0,
    batch_size: int = 16,
    watch: Watch | None = None,
) -> Fit:
    """Measure states and inputs on a share of the data, so that projections can be fixed.

    Which sequences belong to the share depends on their names and the seed alone: parts that are fitted apart choose
    as the whole would.
    """
    if not 0 < share <= 1:
        raise InputError(f"share must be above 0 and at most 1, not {share}")
    data, size = require_sized(data)
    fitted, progress = Fit(), Progress(size, stage="fitting the projections", watch=watch)

    def chosen(name: str) -> bool:
        return share == 1 or in_share(name, share=share, seed=seed)

    def measure(names: list[str], runs: list[Run]) -> list[None]:
        fitted.add([run.traced for run in runs], names)
        return [None] * len(runs)

    progress.total = sum(chosen(name) for name, _ in named(data))
    for _ in stream(system, data, measure, progress=progress, batch_size=batch_size, chosen=chosen):
        pass
    if len(progress.skipped) == size:
        raise nothing_read(progress)
    return fitted


def profile(
    system: System,
    data: Iterable[Any],
    *,
    components: int = 3,
    input_components: int | None = None,
    share: float = 0.1,
    exact: bool = False,
    seed: int = 0,
    projections: Projections | None = None,
    batch_size: int = 16,
    watch: Watch | None = None,
) -> Profile:
    """Run the system over the data and record where its states went.

    The projections are fitted on a random `share` of the sequences, on all of them with `exact=True` or where the
    share holds fewer states than a state has numbers, and not at all if `projections` are given; bounds and cells
    come from all sequences. What cannot be read is left out and told to `watch` in `progress.skipped`.
    """
    data, size = require_sized(data)
    fitted_on = 0
    if projections is None:
        fitted = Fit() if exact else fit(system, data, share=share, seed=seed, batch_size=batch_size, watch=watch)
        if not fitted.enough:
            fitted = fit(system, data, batch_size=batch_size, watch=watch)
        fitted_on, projections = (
            fitted.sequences,
            fitted.projections(components, input_components=input_components),
        )
    fixed, recorder = projections, Recorder(projections)

    def project(names: list[str], runs: list[Run]) -> list[tuple[Projected, Projected]]:
        return list(zip(*fixed.project([run.traced for run in runs], names), strict=True))

    progress = Progress(size, stage="profiling", watch=watch)
    for name, (states, inputs) in stream(system, data, project, progress=progress, batch_size=batch_size):
        recorder.add(name, states, inputs)
    if len(progress.skipped) == size:
        raise nothing_read(progress)
    return recorder.profile(fitted_on=fitted_on, system=system)
