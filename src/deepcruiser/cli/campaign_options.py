"""The options of a campaign: from the command line to a `CampaignSpec`, and from a spec to the objects it names."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
import numpy as np
from click.core import ParameterSource

from deepcruiser.abstraction.model import AbstractModel
from deepcruiser.campaign.mutations import READY_MADE, Mutations
from deepcruiser.campaign.spec import NORMALISE, ORACLES, WER_ABOVE, CampaignSpec, Component, mutations_component
from deepcruiser.cli import builtin
from deepcruiser.cli.options import together
from deepcruiser.cli.resolve import (
    NAMED_MUTATIONS,
    data_from,
    model_from,
    mutations_from,
    oracle_from,
    system_from,
)
from deepcruiser.errors import InputError
from deepcruiser.oracles import Disagreement, Oracle
from deepcruiser.systems.load import PROCESS, is_built_in
from deepcruiser.trace import System
from deepcruiser.transformations import EXTRA, PAPER, AddBackgroundNoise
from deepcruiser.value_oracles import Keywords, SystemDisagreement, Tolerance


def _names(kinds: Iterable[type]) -> str:
    return ", ".join(kind.__name__ for kind in kinds)


#: For `fuzz` and `seeds`; the statistics of `evaluate` are about texts and labels.
moving_options = together(
    click.option("--spans-below", type=float, help="Fail if time spans overlap with the seed's by less than this."),
    click.option(
        "--sdr-below", type=float, help="Fail if the signal-to-distortion ratio of a sound is below this, in dB."
    ),
    click.option(
        "--against-system", metavar="SYSTEM", help="Compare with the answers of this system to the same inputs."
    ),
)


#: What counts as a failure, for `fuzz`, `evaluate` and `seeds`.
oracle_options = together(
    click.option(
        "--wer-above",
        type=float,
        show_default=False,
        help=f"Fail if the word error rate exceeds this.  [default: {WER_ABOVE}]",
    ),
    click.option("--cer-above", type=float, help="Fail if the character error rate exceeds this."),
    click.option("--disagreement", is_flag=True, show_default=False, help="Fail on any changed answer."),
    click.option("--tolerance", metavar="LIMIT", help="Fail if a number differs by more than this, such as 0.1 or 5%."),
    click.option(
        "--keywords",
        metavar="NAMES",
        help="Fail if one of these words is missed or misheard, or if one of these slots differs.",
    ),
    click.option("--oracle", metavar="FILE.py:NAME", help="Judge with an oracle of your own."),
    click.option(
        "--against",
        type=click.Choice(["text", "output"]),
        help="Compare with the seed's text or with the answer to the seed.  [default: the text, if there is one]",
    ),
)


#: What counts as a failure, and what may be done to an input, for `fuzz` and `evaluate`.
judging_options = together(
    oracle_options,
    click.option(
        "--normalise",
        metavar="NAMES",
        default=",".join(NORMALISE),
        show_default=True,
        help="Differences that are not errors of words or characters: case, punctuation, spacing, numbers.",
    ),
    click.option(
        "--transformations",
        metavar="NAMES",
        help=f"The transformations to use, separated by commas, or all: {_names(PAPER)}; beyond the paper: "
        f"{_names(EXTRA)}.  [default: those of the paper]",
    ),
    click.option("--noise", metavar="FOLDER", help="Turn on AddBackgroundNoise with the recordings in this folder."),
    click.option(
        "--range",
        "ranges",
        multiple=True,
        metavar="RANGE",
        help="Draw a parameter from this range, such as AddWhiteNoise.snr_db=25,40 or Typos.share=0.1,0.2; repeatable.",
    ),
    click.option("--mutations", metavar="NAME", help="Mutations for other inputs: text, series, or FILE.py:NAME."),
    click.option(
        "--limit-seconds",
        default=60.0,
        show_default=True,
        type=click.FloatRange(min=0),
        help="Time limit per batch in seconds; slower counts as a time-out (0 turns it off).",
    ),
)


def spec_from(
    *,
    system: str,
    data: str | None = None,
    against: str | None = None,
    normalise: str = ",".join(NORMALISE),
    transformations: str | None = None,
    noise: str | None = None,
    ranges: tuple[str, ...] = (),
    mutations: str | None = None,
    limit_seconds: float = 60.0,
    no_validity: bool = False,
    **others: Any,
) -> CampaignSpec:
    """The spec that options describe; a built-in system brings its own seeds and mutations unless others are given.

    `others` are the options that choose an oracle, and fields of the spec.
    """
    if is_built_in(system):
        data, mutations = data or system, mutations or builtin.own_mutations(system)
    limits = {option: others.pop(option, None) for option in (*(name for _, name, _ in ORACLES), "oracle")}
    limits["disagreement"] = limits["disagreement"] or None  # a flag
    chosen = None
    if mutations is None or mutations in NAMED_MUTATIONS:
        chosen = _chosen(mutations or "sound", transformations, noise, ranges)
        mutations = None
    elif transformations is not None or noise is not None or ranges:
        raise click.UsageError(
            f"--transformations, --noise and --range cannot be combined with --mutations {mutations}: it has its own"
        )
    return CampaignSpec(
        system=system,
        data=data,
        mutations_source=mutations,
        oracle=_oracle(limits, against, normalise),
        oracle_source=limits["oracle"],
        mutations=mutations_component(chosen or Mutations()),
        limit_seconds=limit_seconds or None,
        validity=not no_validity,
        **others,
    )


#: The differences that the paper's error rates ignore. It names none; corpora differ from systems in case alone.
PAPER_NORMALISE = "case"

#: What --paper means: for each option the values that do not contradict it; it sets the first.
PAPER_PRESET: Mapping[str, tuple[Any, ...]] = {
    "batch_size": (1,),
    "window": (1,),
    "scheduler": ("uniform", "decay"),
    "pick": ("uniform",),
    "keep": ("coverage", "random", "none"),
    "severity": ("unlimited",),
    "no_validity": (True,),
    "keep_failing_seeds": (True,),
}


def paper_options(ctx: click.Context, options: dict[str, Any]) -> dict[str, Any]:
    """The options with those of the paper's algorithm; a typed option that contradicts it is refused."""
    typed = {name for name in options if ctx.get_parameter_source(name) is ParameterSource.COMMANDLINE}
    for name, values in PAPER_PRESET.items():
        if name in typed and options[name] not in values:
            option = f"--{name.replace('_', '-')}"
            allowed = " or ".join(map(str, values))
            raise click.UsageError(
                f"--paper cannot be combined with {option} {options[name]}: leave one out, or use {allowed}"
            )
    preset = {name: values[0] for name, values in PAPER_PRESET.items() if name not in typed}
    if "keep" in preset and {"random", "none"} & {name.strip() for name in options["guide"].split(",")}:
        preset["keep"] = None  # the guide says it
    if "normalise" not in typed:
        preset["normalise"] = PAPER_NORMALISE
    if "input_partitions" not in typed and options.get("partitions") is not None:
        preset["input_partitions"] = options["partitions"]
    return {**options, **preset}


def load_data(spec: CampaignSpec) -> Iterable[Any]:
    """The seeds."""
    if spec.data is None:
        raise click.UsageError("give --data: only built-in systems have their own seeds")
    return data_from(spec.data)


def load_model(spec: CampaignSpec, *, needed: bool = True) -> AbstractModel | None:
    """The abstract model; None if it is not needed and the spec does not name one."""
    if not needed and spec.profile is None and spec.partitions is None and spec.model is None:
        return None
    return model_from(spec.profile, spec.partitions, spec.input_partitions, spec.model)


def build_mutations(spec: CampaignSpec) -> Mutations:
    """The mutations, wherever they come from."""
    return spec.build_mutations() if spec.mutations_source is None else mutations_from(spec.mutations_source)


def build_oracle(spec: CampaignSpec) -> Oracle:
    """The oracle, wherever it comes from, without the other system that it may compare with."""
    return spec.build_oracle() if spec.oracle_source is None else oracle_from(spec.oracle_source)


def load_against(spec: CampaignSpec, *, device: str = "cpu") -> System | None:
    """The system that answers are compared with."""
    return None if spec.against_system is None else system_from(spec.against_system, device=device)


def judging_oracle(spec: CampaignSpec, *, device: str = "cpu") -> Oracle:
    """The oracle, with the other system if it compares with one."""
    other = load_against(spec, device=device)
    return build_oracle(spec) if other is None else SystemDisagreement(other, build_oracle(spec))


def load_mutations(spec: CampaignSpec) -> Mutations:
    """The mutations, each drawn once, so that a wrong range is an error now and not during a campaign."""
    mutations = build_mutations(spec)
    for kind in mutations.kinds:
        mutations.draw(kind, np.random.default_rng(0))
    return mutations


def located(spec: CampaignSpec, folder: Path, directory: Mapping[str, str]) -> CampaignSpec:
    """The spec of a campaign's folder with its paths as they are found from the current directory."""
    bases = [folder / directory["relative"], Path(directory["absolute"])]
    names = ["system", "data", "leave_out", "profile", "model", "oracle_source", "against_system"]
    names += ["mutations_source"] if spec.mutations_source not in NAMED_MUTATIONS else []
    changes: dict[str, Any] = {name: _located(getattr(spec, name), bases) for name in names}
    return replace(spec, **changes)


def _located(path: str | None, bases: list[Path]) -> str | None:
    """Where a path or `file.py:name` that was typed in another folder is now."""
    if path is None or builtin.is_data(path):
        return path
    if path.startswith(PROCESS):
        words = shlex.split(path.removeprefix(PROCESS))
        return f"{PROCESS} {shlex.join(_file_or_word(word, bases) for word in words)}"
    file, colon, name = path.rpartition(":") if ".py:" in path else (path, "", "")
    places = [base / file for base in bases]
    place = Path(os.path.realpath(next((place for place in places if place.exists()), places[-1])))
    here = Path.cwd()
    return f"{place.relative_to(here) if place.is_relative_to(here) else place}{colon}{name}"


def _file_or_word(word: str, bases: list[Path]) -> str:
    return next((str((base / word).resolve()) for base in bases if (base / word).is_file()), word)


def _oracle(limits: Mapping[str, Any], against: str | None, normalise: str) -> Component:
    chosen = [option for option, value in limits.items() if value is not None]
    if len(chosen) > 1:
        typed, known = (["--" + name.replace("_", "-") for name in names] for names in (chosen, limits))
        raise click.UsageError(f"{' and '.join(typed)} cannot be combined: give one of {', '.join(known)}")
    option = chosen[0] if chosen else "wer_above"
    value: Any = limits[option] if chosen else WER_ABOVE
    if option == "oracle":
        return Component.of(oracle_from(value))
    if option == "tolerance":
        value, relative = _tolerance(value)
        return Component.of(Tolerance(value, relative, against))  # type: ignore[arg-type]
    if option == "keywords":
        return Component.of(Keywords(_listed(value), against))  # type: ignore[arg-type]
    if option == "disagreement":
        return Component.of(Disagreement(against))  # type: ignore[arg-type]
    kind, _, _ = next(entry for entry in ORACLES if entry[1] == option)
    if option in ("wer_above", "cer_above"):
        return Component.of(kind(value, against, _listed(normalise)))
    if option == "spans_below" and against == "text":
        raise click.UsageError("--spans-below compares with the answer to the seed: leave out --against text")
    return Component.of(kind(value))


def _listed(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(",") if name.strip())


def _tolerance(text: str) -> tuple[float, bool]:
    """A limit, and whether it is relative: `0.1` or `5%`."""
    relative = text.strip().endswith("%")
    try:
        limit = float(text.strip().removesuffix("%"))
    except ValueError:
        raise InputError(f"--tolerance {text!r} is not a number; use 0.1, or 5% for a relative one") from None
    return (limit / 100 if relative else limit), relative


def _chosen(mutations: str, transformations: str | None, noise: str | None, texts: tuple[str, ...]) -> Mutations:
    """Some kinds of sound, text or series, with ranges of their parameters."""
    if noise is not None and mutations != "sound":
        raise click.UsageError(f"--noise is for sound and cannot be combined with --mutations {mutations}")
    ready = READY_MADE[mutations]
    background = AddBackgroundNoise.__name__
    names = None if transformations is None else list(_listed(transformations))
    if transformations == "all":
        names = [kind.__name__ for kind in ready.kinds if kind is not AddBackgroundNoise or noise is not None]
    if noise is not None:
        names = [*(names or [kind.__name__ for kind in PAPER]), background]
    elif names is not None and background.lower() in [name.lower() for name in names]:
        raise click.UsageError("AddBackgroundNoise needs recordings: --noise FOLDER")
    ranges: dict[str, dict[str, Any]] = {}
    for text in texts:
        kind, name, values = _range(text, ready.kinds)
        ranges.setdefault(kind.__name__, {})[name] = values
    if noise is not None:
        ranges.setdefault(background, {})["folder"] = os.path.abspath(noise)
    return Mutations.of(mutations, kinds=names, ranges=ranges)


def _range(text: str, kinds: tuple[Any, ...]) -> tuple[Any, str, tuple[float, float]]:
    """A kind, its parameter and the range, from `AddWhiteNoise.snr_db=25,40`."""
    by_name = {kind.__name__.lower(): kind for kind in kinds}
    where, _, ends = text.partition("=")
    kind, _, name = where.strip().partition(".")
    try:
        low, high = map(float, ends.split(","))
        if not name:
            raise ValueError
    except ValueError:
        raise InputError(f"--range {text!r} is not of the form AddWhiteNoise.snr_db=25,40") from None
    if kind.lower() not in by_name:
        raise InputError(f"--range {text!r}: there is no {kind!r}; choose from {_names(kinds)}")
    return by_name[kind.lower()], name, (low, high)
