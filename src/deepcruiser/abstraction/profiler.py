"""Profiling a system: one pass over the data, and before it a pass over a share of them to fix the projections."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import Any

from deepcruiser.abstraction.probes import make_probes
from deepcruiser.abstraction.profile import Profile, Recorder
from deepcruiser.abstraction.projections import Fit, Projected, Projections
from deepcruiser.errors import InputError
from deepcruiser.progress import with_bar
from deepcruiser.stream import Progress, Source, in_share, named, nothing_read, require_sized, stream
from deepcruiser.trace import Run, System
from deepcruiser.workers import Workers

Watch = Callable[[Progress], None]
#: The projected states and inputs of a sequence, and its segments.
_Row = tuple[Projected, Projected, tuple[int, ...]]


@with_bar
def fit(
    system: System,
    data: Iterable[Any],
    *,
    sample: float = 1.0,
    share: float = 1.0,
    seed: int = 0,
    batch_size: int = 16,
    workers: Workers[Source] | None = None,
    watch: Watch | None = None,
) -> Fit:
    """Measure states and inputs on a share of the data, so that projections can be fixed.

    `sample` is that of `profile`; the share is taken from the sample. Both depend only on the names of the sequences
    and the seed, so parts that are fitted separately choose the same sequences as the whole.
    """
    if not 0 < share <= 1:
        raise InputError(f"share must be above 0 and at most 1, not {share}")
    data, size = require_sized(data)
    sampled, size = _sampling(data, size, sample, seed)
    fitted, progress = Fit(), Progress(size, stage="fitting the projections", watch=watch)

    def chosen(name: str) -> bool:
        return sampled(name) and in_share(name, share=share, seed=seed)

    progress.total = sum(chosen(name) for name, _ in named(data))
    parts = stream(system, data, _measure, progress=progress, batch_size=batch_size, chosen=chosen, workers=workers)
    for _, part in parts:
        fitted = fitted if part is None else fitted.merge(part)
    if len(progress.skipped) == size:
        raise nothing_read(progress)
    return fitted


@with_bar
def profile(
    system: System,
    data: Iterable[Any],
    *,
    components: int = 3,
    input_components: int | None = None,
    sample: float = 1.0,
    pca_share: float = 0.1,
    exact: bool = False,
    seed: int = 0,
    projections: Projections | None = None,
    batch_size: int = 16,
    workers: Workers[Source] | None = None,
    watch: Watch | None = None,
) -> Profile:
    """Run the system over the data and record its states.

    `sample` profiles only a random share of the sequences. The projections are fitted on a random `pca_share` of those,
    or on all of them with `exact=True` or if the share holds fewer states than a state has numbers. They are not fitted
    if `projections` are given. Bounds and cells come from all profiled sequences. Inputs that cannot be read are left
    out and listed in `progress.skipped`, which is passed to `watch`.
    """
    if not 0 < pca_share <= 1:
        raise InputError(f"pca_share must be above 0 and at most 1, not {pca_share}")
    data, size = require_sized(data)
    sampled, size = _sampling(data, size, sample, seed)
    passing: dict[str, Any] = {"batch_size": batch_size, "workers": workers}
    with ThreadPoolExecutor(1) as solver:  # axes of large states take as long as the network's first batch
        fitted_on, solved = 0, Future[Projections]()
        if projections is not None:
            solved.set_result(projections)
        else:
            sharing = {**passing, "sample": sample, "seed": seed, "watch": watch}
            fitted = Fit() if exact else fit(system, data, share=pca_share, **sharing)
            if not fitted.enough:
                fitted = fit(system, data, **sharing)
            fitted_on = fitted.sequences
            solved = solver.submit(fitted.projections, components, input_components=input_components)

        def project(names: list[str], runs: list[Run]) -> Callable[[], list[_Row]]:
            return _project(solved.result(), names, runs)

        reduce = project if workers is None else partial(_project, solved.result())
        progress, recorder = Progress(size, stage="profiling", watch=watch), None
        for name, row in stream(system, data, reduce, progress=progress, chosen=sampled, **passing):
            recorder = recorder or Recorder(solved.result())
            recorder.add(name, *row)
    if recorder is None:
        raise nothing_read(progress)
    probes = make_probes(system, (item for item in named(data) if sampled(item[0])))
    return recorder.profile(fitted_on=fitted_on, system=system, probes=probes)


def _measure(names: list[str], runs: list[Run]) -> Callable[[], list[Fit | None]]:
    """The statistics of a batch, beside its first run."""
    fitted, rest = Fit.start([run.traced for run in runs], names), [None] * (len(runs) - 1)
    return lambda: [fitted(), *rest]


def _project(projections: Projections, names: list[str], runs: list[Run]) -> Callable[[], list[_Row]]:
    traces = [run.traced for run in runs]
    projected, segments = projections.start(traces, names), [trace.segments for trace in traces]
    return lambda: list(zip(*projected(), segments, strict=True))


def _sampling(data: Iterable[Any], size: int, sample: float, seed: int) -> tuple[Callable[[str], bool], int]:
    """Whether a sequence belongs to the random sample of the data, by its name, and how many of them do."""
    if not 0 < sample <= 1:
        raise InputError(f"sample must be above 0 and at most 1, not {sample}: 0.2 profiles a fifth of the data")
    if sample == 1:
        return lambda _: True, size

    def sampled(name: str) -> bool:
        # Not the hash of the PCA's share, or that share would be the first part of the sample.
        return in_share(f"sample:{name}", share=sample, seed=seed)

    count = sum(sampled(name) for name, _ in named(data))
    if not count:
        raise InputError(f"a sample of {sample} of {size:,} sequences is empty: use a larger sample or another seed")
    return sampled, count
