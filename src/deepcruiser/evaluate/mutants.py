"""Choose seeds, and make mutants of them: one transformation each, every kind equally often, or chains."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import ceil

import numpy as np

from deepcruiser.errors import InputError
from deepcruiser.evaluate.experiment import Experiment
from deepcruiser.evaluate.pool import Pool
from deepcruiser.evaluate.records import Batch, Recipe, Record

Recipes = tuple[Recipe, ...]


@dataclass(frozen=True, eq=False)
class Family:
    """A seed, its mutants, and the time they took."""

    seed: Record
    mutants: tuple[Record, ...]
    seconds: float

    @property
    def valid(self) -> tuple[Record, ...]:
        """The mutants that ran."""
        return tuple(mutant for mutant in self.mutants if mutant.ran)


def score(experiment: Experiment, seed: Record, mutant: Record) -> float:
    """The oracle's score of a mutant, or of the seed itself, against the seed's reference."""
    oracle = experiment.oracle
    return oracle.score(oracle.reference(experiment.seeds.text(seed.seed), seed.output), mutant.output)


def is_right(experiment: Experiment, seed: Record) -> bool:
    return score(experiment, seed, seed) == 0


def any_seed(experiment: Experiment, record: Record) -> bool:
    return True


def choose_seeds(
    pool: Pool, count: int, *, accept: Callable[[Experiment, Record], bool] = any_seed, what: str = "readable"
) -> list[Record]:
    """The first seeds that are accepted, in an order drawn from the experiment's seed."""
    experiment = pool.experiment
    names = list(experiment.seeds)
    order = [names[i] for i in np.random.default_rng(experiment.seed).permutation(len(names))]
    size = experiment.batch_size
    batches = _batches([(name, ()) for name in order], size)
    accepted: list[Record] = []
    ran = 0
    while batches and len(accepted) < count:
        share = max(0.1, len(accepted) / ran) if ran else 1.0  # accepted so far
        now = ceil((count - len(accepted)) / share / size)
        wave, batches = batches[:now], batches[now:]
        ran += (inputs := sum(map(len, wave)))
        for batch in run_batches(pool, wave, stage="running seeds", inputs=inputs):
            accepted += [record for record in batch.records if record.ran and accept(experiment, record)]
    if len(accepted) < count:
        raise InputError(
            f"--seeds {count} is too large: only {len(accepted):,} of the {len(names):,} inputs are {what}; "
            + (f"use --seeds {len(accepted)}, or give more data" if accepted else "give other data")
        )
    return accepted[:count]


def run_batches(pool: Pool, batches: Sequence[Recipes], *, stage: str, inputs: int) -> list[Batch]:
    """Run all batches, in parallel if there are several processes."""
    pool.do(_run_batch, batches, stage=stage, inputs=inputs)
    return [pool.experiment.cache.known(batch) for batch in batches]


def _run_batch(experiment: Experiment, batch: Recipes) -> None:
    experiment.cache.batch(batch)


def families(pool: Pool, seeds: list[Record], mutants: int, *, changes: int = 1) -> list[Family]:
    """Every seed with its mutants. They depend on the seed's name and the experiment's random seed alone.

    A mutant has 1 to `changes` transformations, every number equally likely, or fewer if no more may follow.
    """
    if changes < 1:
        raise InputError(f"changes must be at least 1 per mutant, not {changes}")
    if mutants < 1:
        raise InputError(f"mutants must be at least 1 per seed, not {mutants}")
    experiment = pool.experiment
    units = [(seed.seed, mutants, changes) for seed in seeds]
    pool.do(_run_family, units, stage="running mutants", inputs=len(seeds) * mutants)
    result = []
    for seed in seeds:
        batches = [experiment.cache.known(batch) for batch in _family(experiment, seed.seed, mutants, changes)]
        records = tuple(record for batch in batches for record in batch.records)
        result.append(Family(seed, records, sum(batch.seconds for batch in batches)))
    return result


def _run_family(experiment: Experiment, unit: tuple[str, int, int]) -> None:
    for batch in _family(experiment, *unit):
        experiment.cache.batch(batch)


def _family(experiment: Experiment, name: str, mutants: int, changes: int) -> tuple[Recipes, ...]:
    return _batches(list(_recipes(experiment, name, mutants, changes)), experiment.batch_size)


def _batches(recipes: Sequence[Recipe], size: int) -> tuple[Recipes, ...]:
    return tuple(tuple(recipes[start : start + size]) for start in range(0, len(recipes), size))


def _recipes(experiment: Experiment, name: str, mutants: int, changes: int) -> Iterator[Recipe]:
    digest = hashlib.blake2b(name.encode(errors="surrogatepass"), digest_size=8).digest()
    rng = np.random.default_rng((experiment.seed, int.from_bytes(digest)))
    kinds = experiment.mutations.allowed(())
    if not kinds:
        raise InputError("no transformation may be applied to a seed: give other --transformations or --mutations")
    for number in range(mutants):
        recipe = [experiment.mutations.draw(kinds[number % len(kinds)], rng)]
        length = int(rng.integers(1, changes + 1)) if changes > 1 else 1
        while len(recipe) < length and (following := experiment.mutations.allowed(recipe)):
            recipe.append(experiment.mutations.draw(following[rng.integers(len(following))], rng))
        yield name, tuple(recipe)
