"""Profiling a system: one pass over the data, and before it a pass over a share of them to fix the projections."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from itertools import islice
from typing import Any

from deepcruiser import __version__
from deepcruiser.abstraction.checkpoint import Checkpoint
from deepcruiser.abstraction.probes import make_probes
from deepcruiser.abstraction.profile import Profile, Recorder
from deepcruiser.abstraction.projections import Fit, Projected, Projections
from deepcruiser.errors import InputError
from deepcruiser.progress import with_bar
from deepcruiser.stream import Progress, Source, in_share, named, nothing_read, require_sized, stream
from deepcruiser.trace import Run, System
from deepcruiser.workers import Workers

Watch = Callable[[Progress], None]
#: The share of the sequences that projections are fitted on, and the number of sequences and of states for each number
#: of a state that are enough of large data; and how many sequences are run to learn how long they are.
_SHARE, _FEW, _STATES, _LENGTHS = 0.1, 1000, 100, 4
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
    return _fit(
        system, data, sample=sample, share=share, seed=seed, batch_size=batch_size, workers=workers, watch=watch
    )


def _fit(
    system: System,
    data: Iterable[Any],
    *,
    sample: float,
    share: float,
    seed: int,
    batch_size: int,
    workers: Workers[Source] | None,
    watch: Watch | None,
    checkpoint: Checkpoint | None = None,
) -> Fit:
    if not 0 < share <= 1:
        raise InputError(f"share must be above 0 and at most 1, not {share}")
    data, size = require_sized(data)
    sampled, size = _sampling(data, size, sample, seed)

    def chosen(name: str) -> bool:
        return sampled(name) and in_share(name, share=share, seed=seed)

    progress = Progress(sum(chosen(name) for name, _ in named(data)), stage="fitting the projections", watch=watch)
    fitted = Fit() if checkpoint is None else checkpoint.fit(progress)
    complete = progress.complete
    for _, part in stream(
        system, data, _measure, progress=progress, batch_size=batch_size, chosen=chosen, workers=workers
    ):
        if progress.complete > complete and checkpoint is not None:
            checkpoint.save_fit(progress, fitted)
            complete = progress.complete
        fitted = fitted if part is None else fitted.merge(part)
    if checkpoint is not None:
        checkpoint.save_fit(progress, fitted)
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
    pca_share: float | None = None,
    exact: bool = False,
    seed: int = 0,
    projections: Projections | None = None,
    batch_size: int = 16,
    workers: Workers[Source] | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    watch: Watch | None = None,
) -> Profile:
    """Run the system over the data and record its states.

    `sample` profiles only a random share of the sequences. The projections are fitted on a random `pca_share` of those
    (by default a tenth, or less for large data), or on all of them with `exact=True` or if the share holds fewer states
    than a state has numbers. They are not fitted if `projections` are given. Bounds and cells come from all profiled
    sequences. Inputs that cannot be read are left out and listed in `progress.skipped`, which is passed to `watch`.

    With `checkpoint`, progress is saved to that file twice a minute, and the same call resumes from it. The system
    needs a `fingerprint`. Delete the file once you have saved the profile.
    """
    if pca_share is not None and not 0 < pca_share <= 1:
        raise InputError(f"pca_share must be above 0 and at most 1, not {pca_share}")
    data, size = require_sized(data)
    sampled, size = _sampling(data, size, sample, seed)
    passing: dict[str, Any] = {"batch_size": batch_size, "workers": workers}
    fingerprint = str(getattr(system, "fingerprint", ""))
    call = [__version__, fingerprint, components, input_components, sample, pca_share, exact, seed, batch_size]
    call += [projections, [name for name, _ in named(data)] if checkpoint is not None else []]
    saved = Checkpoint(checkpoint if fingerprint else None, call)
    progress, solved = Progress(size, stage="profiling", watch=watch), Future[Projections]()
    with ThreadPoolExecutor(1) as solver:  # the axes of large states take as long as the first batch
        recorder, fitted_on = saved.recorder(progress) or (None, 0)
        if recorder is not None:
            solved.set_result(recorder.projections)
        elif projections is not None:
            solved.set_result(projections)
        else:
            share = _enough(system, data, sampled, size) if pca_share is None else pca_share
            fit_on = partial(_fit, system, data, sample=sample, seed=seed, watch=watch, checkpoint=saved, **passing)
            fitted = Fit() if exact else fit_on(share=share)
            if not fitted.enough:
                fitted = fit_on(share=1.0)
            fitted_on = fitted.sequences
            solved = solver.submit(fitted.projections, components, input_components=input_components)

        # While the axes are computed.
        probes = make_probes(system, (item for item in named(data) if sampled(item[0])))

        def project(names: list[str], runs: list[Run]) -> Callable[[], list[_Row]]:
            return _project(solved.result(), names, runs)

        reduce, complete = project if workers is None else partial(_project, solved.result()), progress.complete
        for name, row in stream(system, data, reduce, progress=progress, chosen=sampled, **passing):
            if recorder is not None and progress.complete > complete:
                saved.save_recorder(progress, recorder, fitted_on=fitted_on)
                complete = progress.complete
            recorder = recorder or Recorder(solved.result())
            recorder.add(name, *row)
    if recorder is None:
        raise nothing_read(progress)
    return recorder.profile(fitted_on=fitted_on, system=system, probes=probes)


def _enough(system: System, data: Iterable[Any], sampled: Callable[[str], bool], size: int) -> float:
    """The share of the sequences that is enough to fit the projections, estimated from the first few."""
    if size * _SHARE <= _FEW:
        return _SHARE
    first = [item for _, item in islice((each for each in named(data) if sampled(each[0])), _LENGTHS)]
    shapes = [shape for _, shape in stream(system, first, _shapes, progress=Progress(len(first)))]
    steps = sum(length for length, _ in shapes)
    if not steps:
        return _SHARE
    enough = _STATES * shapes[0][1] * len(shapes) / steps
    return min(_SHARE, max(_FEW, enough) / size)


def _shapes(names: list[str], runs: list[Run]) -> list[tuple[int, int]]:
    """The number of steps and the size of a state of each run."""
    return [(len(run.traced), run.traced.size) for run in runs]


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
        # Another hash than that of the PCA's share, which would otherwise be the first part of the sample.
        return in_share(f"sample:{name}", share=sample, seed=seed)

    count = sum(sampled(name) for name, _ in named(data))
    if not count:
        raise InputError(f"a sample of {sample} of {size:,} sequences is empty: use a larger sample or another seed")
    return sampled, count
