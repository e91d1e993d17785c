"""What the evidence on the monitor rests on: clean speech, mutants, strange recordings and attacks, all of them run."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from deepcruiser.abstraction.grid import INPUT_PARTITIONS
from deepcruiser.abstraction.profile import Profile
from deepcruiser.abstraction.projection import Moments
from deepcruiser.audio import Audio
from deepcruiser.campaign.events import Ran
from deepcruiser.campaign.fuzz import fuzz
from deepcruiser.corpora.samples import Labelled
from deepcruiser.errors import InputError
from deepcruiser.evaluate.attack import Attack, Victim, attack_once, choose_target
from deepcruiser.evaluate.observations import Gaussian, Item, Observation, half, items, observe
from deepcruiser.evaluate.synthetic_sounds import SENTENCES, VARIANTS, has_espeak, music, speak
from deepcruiser.oracles import WordErrorRate
from deepcruiser.stream import Progress
from deepcruiser.trace import System

#: The longest recording in seconds that is attacked, so that an attack takes seconds.
ATTACKED_SECONDS = 2.5
ATTACKED, SHUFFLED = "adversarial audio", "the same noise, shuffled"
MUSIC = 60
#: Runs of the campaign for each of its seeds.
MUTANTS = 4


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """The subject of the question.

    `clean` are calibrated on and, in other clusters, checked for false alarms; `tests` have texts; `far` are sets of
    recordings unlike those that were profiled, by name. Nothing of it should be in the profile.
    """

    system: System
    profile: Profile
    clean: Iterable[Any]
    tests: Iterable[Any]
    far: Mapping[str, Iterable[Any]]
    folder: Path
    victim: Victim | None = None
    attack: Attack = field(default_factory=Attack)
    attacks: int = 60
    partitions: tuple[int, ...] = (20,)
    input_partitions: int = INPUT_PARTITIONS
    components: int = 3
    inputs: int = 600
    longest: float = 7.0
    wer_above: float = 0.3
    alarm_rate: float = 0.01
    seed: int = 0
    watch: Callable[[Progress], None] | None = None


@dataclass(frozen=True, eq=False)
class Sets:
    """All inputs that were run, by set."""

    calibration: list[Observation]
    fresh: list[Observation]
    tests: list[Observation]
    far: dict[str, list[Observation]]
    passing: list[Observation]
    failing: list[Observation]
    originals: list[Observation]
    attacked: dict[str, list[Observation]]
    #: For each attack, whether it succeeded, and the signal-to-noise ratio.
    attempts: list[tuple[bool, float]]
    #: Originals and attacked ones, each with its own transcript, synthesised.
    spoken: dict[str, list[tuple[Observation, Observation]]]

    @property
    def runs(self) -> int:
        several = (self.calibration, self.fresh, self.tests, self.passing, self.failing, self.originals)
        transcripts = sum(map(len, self.spoken.values()))
        return sum(map(len, (*several, *self.far.values(), *self.attacked.values()))) + transcripts


@dataclass(frozen=True, eq=False)
class Runner:
    """Runs inputs with the baselines fitted on the calibration set."""

    evidence: Evidence
    gaussian: Gaussian | None = None
    moments: Moments | None = None

    def __call__(self, inputs: Sequence[Item], stage: str) -> list[Observation]:
        evidence = self.evidence
        return observe(
            evidence.system,
            inputs,
            evidence.profile.projections,
            components=evidence.components,
            moments=self.moments,
            gaussian=self.gaussian,
            progress=Progress(len(inputs), stage=stage, watch=evidence.watch),
        )


def run_sets(evidence: Evidence) -> Sets:
    """Run everything, one set after the other."""
    seed, longest = evidence.seed, evidence.longest
    evidence.profile.check(evidence.system)
    clean = items(evidence.clean, longest=longest, limit=4 * evidence.inputs, seed=seed)
    first = [item for item in clean if half(item.cluster, seed)]
    moments = Moments(evidence.profile.projections.states.size)
    calibration = Runner(evidence, moments=moments)(first, "calibrating")
    run = Runner(evidence, gaussian=Gaussian(moments))
    fresh = run([item for item in clean if not half(item.cluster, seed)], "other clean inputs")
    test_items = items(evidence.tests, longest=longest, limit=10**9, seed=seed)
    if not any(item.text for item in test_items):
        raise InputError("the test data have no texts, so it is unknown which answers are wrong: give data with texts")
    tests = run(test_items, "test data")
    far = {
        name: run(items(data, longest=longest, limit=evidence.inputs, seed=seed), name)
        for name, data in evidence.far.items()
    }
    far |= {name: run(made, name) for name, made in _made(test_items, seed).items()}
    passing, failing = _mutants(evidence, run, test_items)
    originals, attacked, attempts = _attacked(evidence, run, test_items)
    spoken = {}
    if has_espeak() and originals:
        for name, observations in (("originals", originals), (ATTACKED, attacked[ATTACKED])):
            spoken[name] = _spoken(run, observations)
    return Sets(calibration, fresh, tests, far, passing, failing, originals, attacked, attempts, spoken)


def wrong(evidence: Evidence, reference: str, observation: Observation) -> bool:
    """Whether an answer is wrong."""
    oracle = WordErrorRate(above=evidence.wer_above)
    return oracle.fails(oracle.score(reference, observation.output))


def _made(tests: Sequence[Item], seed: int) -> dict[str, list[Item]]:
    """The synthetic sets: music, and speech by espeak-ng, in English and in other languages."""
    rng = np.random.default_rng(seed)
    result = {"music": [Item(f"music {n}", music(rng), f"music {n}") for n in range(MUSIC)]}
    if has_espeak():
        english = [item for item in tests if item.text][: sum(map(len, SENTENCES.values())) * len(VARIANTS)]
        result["English by espeak-ng"] = [
            Item(f"en {n}", speak(item.text, f"en-us{VARIANTS[n % len(VARIANTS)]}"), item.name)
            for n, item in enumerate(english)
        ]
        result["other languages by espeak-ng"] = [
            Item(f"{voice}{variant} {text}", speak(text, voice + variant), f"{voice} {text}")
            for voice, texts in SENTENCES.items()
            for text in texts
            for variant in VARIANTS
        ]
    return result


def _mutants(evidence: Evidence, run: Runner, tests: Sequence[Item]) -> tuple[list[Observation], list[Observation]]:
    """The passing and the failing mutants of a campaign in which a mutant fails if the answer changes."""
    seeds = [Labelled(item.name, item.value, item.text) for item in tests[: evidence.inputs // MUTANTS]]
    progress = Progress(evidence.inputs, stage="campaign", watch=evidence.watch)
    record = fuzz(
        evidence.system,
        evidence.profile.abstract(evidence.partitions[0], input_partitions=evidence.input_partitions),
        seeds,
        folder=evidence.folder / "work" / "campaign",
        oracle=WordErrorRate(above=evidence.wer_above, against="output"),
        seed=evidence.seed,
        runs=evidence.inputs,
        limit_seconds=None,
        workers=0,
        watch=lambda status: progress.advance(sum(isinstance(event, Ran) for event in status.events)),
    )
    passing: list[Item] = []
    failing: list[Item] = []
    for event in record.runs:
        if event.outcome in ("kept", "dropped") or event.reason == "wrong":
            parent = record.tests[event.parent]
            value = record.inputs.make(parent.seed, (*parent.recipe, *event.changes))
            kind = failing if event.outcome == "failed" else passing
            kind.append(Item(f"mutant {event.number}", value, parent.seed))
    return run(passing, "passing mutants"), run(failing, "failing mutants")


def _attacked(
    evidence: Evidence, run: Runner, tests: Sequence[Item]
) -> tuple[list[Observation], dict[str, list[Observation]], list[tuple[bool, float]]]:
    """Attacked recordings, the same recordings as they were, and with the samples of the disturbance shuffled."""
    victim, folder = evidence.victim, evidence.folder / "work" / "attacks"
    short = [item for item in tests if isinstance(item.value, Audio) and item.value.seconds <= ATTACKED_SECONDS]
    texts = [item.text for item in short if item.text]
    short = sorted((item for item in short if item.text), key=lambda item: item.name)[: evidence.attacks]
    if victim is None or not short:
        return [], {}, []
    folder.mkdir(parents=True, exist_ok=True)
    progress = Progress(len(short), stage="attacking", watch=evidence.watch)
    sets, attempts = (list[Item](), list[Item](), list[Item]()), list[tuple[bool, float]]()
    for item in short:
        digest = hashlib.blake2b(item.name.encode(errors="surrogatepass"), digest_size=8).digest()
        rng = np.random.default_rng([evidence.seed, int.from_bytes(digest)])
        target = choose_target(item.text, texts, rng)
        samples = item.value.resample(victim.rate).samples
        result = attack_once(victim, evidence.attack, samples, target, folder=folder)
        attempts.append((result.success, result.snr_db))
        progress.advance(1)
        if result.success:
            shuffled = samples + rng.permutation(result.samples - samples)
            for kept, values in zip(sets, (samples, result.samples, shuffled), strict=True):
                kept.append(replace(item, value=Audio(values, victim.rate), cluster=item.name))
    originals, adversarial, noisy = (run(each, "attacked recordings") for each in sets)
    return originals, {ATTACKED: adversarial, SHUFFLED: noisy}, attempts


def _spoken(run: Runner, observations: Sequence[Observation]) -> list[tuple[Observation, Observation]]:
    """Every recording with its own transcript, synthesised."""
    texts = [replace(each.item, value=speak(str(each.output))) for each in observations]
    return list(zip(observations, run(texts, "synthesised transcripts"), strict=True))
