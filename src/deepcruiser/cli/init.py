"""deepcruiser init: write a wrapper and a project file for a network, and try three inputs."""

from __future__ import annotations

import inspect
import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import click

from deepcruiser.audio import Audio
from deepcruiser.cli import builtin, options
from deepcruiser.cli.output import say
from deepcruiser.cli.project import PROJECT
from deepcruiser.cli.resolve import data_from, system_from
from deepcruiser.errors import DeepCruiserError, FileError, InputError
from deepcruiser.files.atomic import atomic_write
from deepcruiser.files.reading import read_text
from deepcruiser.report.format import quoted
from deepcruiser.stream import input_of
from deepcruiser.systems.by_suffix import WITH_FEATURES, adapter_of, is_model_file
from deepcruiser.systems.load import is_built_in, is_network, object_from, running
from deepcruiser.trace import Run, System

#: Number of inputs that are run as a check.
TRIED = 3
WRAPPER = '''"""How DeepCruiser runs {source}; written by `deepcruiser init`, and yours to change."""

import deepcruiser as dc
{imports}
system = dc.{adapter}(
    {network},
{options})
'''
#: The questions for options of an adapter that were left out.
_OPTIONS = {
    "state": "# state=...,  # the recurrent layer whose state is recorded: {layers}",
    "batch": '# batch="equal",  # how it takes several inputs: or "padded", "lengths", "packed"',
    "rate": "# rate=16_000,  # recordings at another rate are resampled",
    "features": "# features=...,  # a function from an input to what the network reads, [time, size]",
    "transcribe": "# transcribe=...,  # a function from its output for one input to a text, a label or spans",
}
#: The questions for the functions that turn a network into a system.
_FUNCTIONS = {
    "features": "The function from an input to what the network reads",
    "transcribe": "The function from the network's output to the answer",
}


@dataclass(frozen=True)
class _Wrapping:
    """How a wrapper names a network: the adapter, the network, its import, its recurrent layers and its batches."""

    adapter: str
    network: str
    imports: str
    layers: str
    batch: str | None = None


@click.command()
@click.argument("source", metavar="NETWORK")
@click.option("--state", metavar="NAME", help="The recurrent layer whose state is recorded.  [default: the last one]")
@click.option("--data", metavar="PATH", help="Test inputs, to cover and to fuzz: a corpus, or FILE.py:NAME.")
@click.option("--train", metavar="PATH", help="Training inputs, to profile.  [default: the test inputs]")
@click.option("--features", metavar="FILE.py:NAME", help=_FUNCTIONS["features"] + ".")
@click.option("--transcribe", metavar="FILE.py:NAME", help=_FUNCTIONS["transcribe"] + ".")
@click.option("--rate", type=int, metavar="HZ", help="The sample rate of the recordings that the network reads.")
@options.json_output()
def init(source: str, data: str | None, train: str | None, as_json: bool, **settings: Any) -> None:
    """Write a project file for a network, so that the other commands need no options.

    \b
    deepcruiser init asr.py:net --data speech/test --train speech/train \\
                     --features asr.py:log_mel --transcribe asr.py:greedy
    deepcruiser profile
    deepcruiser cover
    deepcruiser fuzz

    NETWORK is FILE.py:NAME (a PyTorch module, a Keras model, a function that makes one, or a system already), a model
    file, 'process: COMMAND', or a built-in system. For a network, init writes a wrapper, NAME_system.py, that says how
    to run it. In a terminal, init asks for --data, --features and --transcribe if they are needed and missing.
    """
    if Path(PROJECT).exists():
        raise FileError(f"this folder already has a {PROJECT}: edit it, or remove it first")
    ask = sys.stdin.isatty() and not as_json
    if is_built_in(source):
        data, train = data or source, train or (f"{source}:profile" if source == "english" else source)
    if data is None:
        data = _ask("Test inputs (a folder, a list, or FILE.py:NAME)", ask=ask)
        if not data:
            raise click.UsageError("give --data: a folder of recordings, a list of texts, or FILE.py:NAME")
    items = list(islice(data_from(data), TRIED))
    wrapping, name = _wrapping(source), "system"
    if wrapping:
        for option, what in _FUNCTIONS.items():
            if settings[option] is None:
                settings[option] = _ask(f"{what} (FILE.py:NAME; empty for none)", ask=ask)
        name = str(_write_wrapper(source, wrapping, {**settings, "batch": wrapping.batch}))
        source = f"{name}:system"
    try:
        system = system_from(source)
    except DeepCruiserError:  # for example a damaged network, which the wrapper cannot correct
        if wrapping:
            Path(name).unlink()
        raise
    try:
        runs = system.run([input_of(item) for item in items])
    except Exception as error:  # a user's network may raise anything
        kind = "" if isinstance(error, DeepCruiserError) else f"{type(error).__name__}: "
        again = f"deepcruiser init {source} --data {data}" + (f" --train {train}" if train else "")
        raise InputError(
            f"{source} cannot run the first {len(items)} inputs: {kind}{error}"
            + (f"; correct {name}, then run {again}; or give --features and --transcribe" if wrapping else "")
        ) from error
    values = _project(source, data, train or data, input_of(items[0]), runs)
    with atomic_write(PROJECT) as file:
        file.write(_toml(values).encode())
    if as_json:
        say(json.dumps({"system": source, "project": PROJECT, "values": values}, indent=2))
        return
    _report(system, items, runs)
    texts = [getattr(item, "text", None) for item in items]
    wrong = None not in texts and all(str(run.output) != str(right) for run, right in zip(runs, texts, strict=True))
    first = ""
    if (wrong or None in texts) and all(getattr(run.output, "ndim", 0) for run in runs):
        first = f"correct {source.rpartition(':')[0]}, then "
        say(f"note: the answers are raw scores: say what they mean, such as {_transcribe(runs[0].output)}")
    elif wrong and not is_built_in(source):
        say("note: none of these answers is correct; do rate, features and transcribe match the training?")
    if train is None:
        say("note: without --train, profile and cover run the same inputs, so the coverage is 1")
    say(f"Wrote {PROJECT}{f' and {name}' if wrapping else ''}. Next: {first}deepcruiser profile, then cover, then fuzz")


def _transcribe(scores: Any) -> str:
    """The line of a wrapper that makes a label of scores [classes], or letters of scores [time, classes]."""
    size = scores.shape[-1]
    call = f"ctc_greedy(scores, LETTERS, blank={size - 1})" if scores.ndim > 1 else f"classify(scores, range({size}))"
    return f"transcribe=lambda scores: dc.{call}"


def _ask(question: str, *, ask: bool) -> str | None:
    return click.prompt(question, default="", show_default=False) or None if ask else None


def _wrapping(source: str) -> _Wrapping | None:
    """How to wrap a network; None for what is a system already."""
    last = "the last one if left out"
    if is_model_file(source) and (adapter := adapter_of(source)[1]) not in WITH_FEATURES:
        return _Wrapping(adapter, json.dumps(source, ensure_ascii=False), "", last)
    if ".py:" not in source or is_built_in(source):
        return None
    value = object_from(source)
    file, _, name = source.rpartition(":")
    imported = f"from {Path(file).stem} import {name}\n"
    if inspect.isroutine(value):
        name += "()"
        with running(source):
            value = value()
    if is_network(value):
        from deepcruiser.systems.torch.module_choice import recurrent_names

        names = ", ".join(each or repr("") for each in recurrent_names(value))
        layers = f"{names or 'none was found, name a module'}; {last}"
        return _Wrapping(
            "TorchSystem", f"{name}.eval()", imported, layers, "lengths" if _takes_lengths(value) else None
        )
    keras = sys.modules.get("keras")
    if keras is not None and isinstance(value, keras.Model):
        return _Wrapping("KerasSystem", name, imported, last)
    return None


def _takes_lengths(net: Any) -> bool:
    """Whether a module is called with a padded batch and its lengths."""
    parameters = inspect.signature(net.forward).parameters.values()
    needed = [
        each.name for each in parameters if each.default is each.empty and each.kind is each.POSITIONAL_OR_KEYWORD
    ]
    return len(needed) == 2 and "len" in needed[1]


def _write_wrapper(source: str, wrapping: _Wrapping, settings: Mapping[str, Any]) -> Path:
    """Write the wrapper beside the network, so that it can import it."""
    file = Path(source.rpartition(":")[0] if ".py:" in source else source)
    path = file.with_name(f"{file.stem}_system.py") if ".py:" in source else Path(f"{file.stem}_system.py")
    # Files of an earlier init that failed may be replaced, but not files that were edited.
    fewer = ((), _FUNCTIONS, (*_FUNCTIONS, "rate", "state"))
    texts = [_wrapper(source, wrapping, {**settings, **dict.fromkeys(left_out)}) for left_out in fewer]
    if path.exists() and read_text(path, encoding="utf-8") not in texts:
        raise FileError(f"{path} exists already: run deepcruiser init {path}:system, or remove it first")
    with atomic_write(path) as out:
        out.write(texts[0].encode())
    return path


def _wrapper(source: str, wrapping: _Wrapping, settings: Mapping[str, Any]) -> str:
    imports, lines = wrapping.imports, []
    for option, comment in _OPTIONS.items():
        value = settings[option]
        if option == "batch" and wrapping.adapter != "TorchSystem":
            continue
        if option in _FUNCTIONS and value is not None:
            where, _, function = str(value).rpartition(":")
            if not where.endswith(".py"):
                raise InputError(f"--{option} {value!r} is not of the form FILE.py:NAME")
            object_from(str(value))
            beginning = f"from {Path(where).stem} import "
            line = next((line for line in imports.splitlines() if line.startswith(beginning)), None)
            imports = imports.replace(line, f"{line}, {function}") if line else f"{imports}{beginning}{function}\n"
            lines.append(f"{option}={function},")
        else:
            quoted = json.dumps(value, ensure_ascii=False)
            lines.append(comment.format(layers=wrapping.layers) if value is None else f"{option}={quoted},")
    return WRAPPER.format(
        source=source,
        imports=imports,
        adapter=wrapping.adapter,
        network=wrapping.network,
        options="".join(f"    {line}\n" for line in lines),
    )


def _project(source: str, data: str, train: str, value: Any, runs: list[Run]) -> dict[str, Any]:
    """The keys of the project file, derived from an input and its answer."""
    name = Path(source.rpartition(":")[0] or source).stem.removesuffix("_system").strip() or "campaign"
    name = "campaign" if source.startswith("process:") else name
    values: dict[str, Any] = {"system": source, "train": train, "data": data}
    traces = [run.trace for run in runs if run.trace is not None]
    if traces:
        size = traces[0].size
        values |= {"profile": f"{name}.profile", "partitions": 20} | ({"components": size} if size < 3 else {})
    else:
        values["guide"] = "none"
    if builtin.own_mutations(source) if is_built_in(source) else None:
        values["mutations_source"] = source
    elif isinstance(value, str):
        values["mutations"] = "text"
    elif not isinstance(value, Audio):
        values["mutations"] = "series"
    answer = runs[0].output
    if isinstance(answer, list) and all(isinstance(span, list | tuple) and len(span) == 2 for span in answer):
        values["oracle"] = {"type": "SpanDisagreement", "below": 0.5}
    elif isinstance(answer, str) and isinstance(value, Audio):
        values["oracle"] = {"type": "WordErrorRate", "above": 0.3}
    else:
        values["oracle"] = {"type": "Disagreement"}
    return {**values, "runs": 500, "folder": f"runs/{name}"}


_COMMENTS = {
    "train": "what `deepcruiser profile` runs",
    "data": "what `deepcruiser cover` runs, and the seeds of `deepcruiser fuzz`",
    "partitions": "intervals per component of a state",
    "oracle": "when a test has failed",
    "runs": "when `deepcruiser fuzz` stops",
    "folder": "the campaign; `findings`, `report` and `replay` read it",
}


def _toml(values: Mapping[str, Any]) -> str:
    lines = ["# Commands in this folder read this file; options that you type take precedence. See docs/project.md."]
    for key, value in values.items():
        inner = ", ".join(f"{name} = {json.dumps(each)}" for name, each in value.items()) if key == "oracle" else ""
        shown = f"{{ {inner} }}" if inner else json.dumps(value)
        lines.append(f"{key} = {shown}" + (f"  # {_COMMENTS[key]}" if key in _COMMENTS else ""))
    return "\n".join(lines) + "\n"


def _report(system: System, items: list[Any], runs: list[Run]) -> None:
    say(f"{system}: the first {len(runs)} inputs")
    for position, (item, run) in enumerate(zip(items, runs, strict=True)):
        label = getattr(item, "text", None)
        right = "" if label is None else f", expected {quoted(label)}"
        steps = "no states" if run.trace is None else f"{run.trace}"
        say(f"  {getattr(item, 'id', position)}: {quoted(run.output)}{right}; {steps}")
