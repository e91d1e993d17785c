"""The project file: the settings of a campaign in one place, instead of options on every command.

`deepcruiser.toml`, or the table `tool.deepcruiser` of `pyproject.toml`, in the current folder. Its keys are the fields
of `CampaignSpec` and those of `OWN`. Tables in `targets` hold the same keys, for several networks in one project.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

import click

from deepcruiser.errors import DeepCruiserError, FileError, InputError
from deepcruiser.files.reading import read_text

PROJECT = "deepcruiser.toml"
#: The keys that are not fields of a spec, with their types.
OWN = {
    "train": "str",
    "test": "str",
    "components": "int",
    "folder": "str",
    "max_findings": "int",
    "max_wrong_seeds": "float",
}
_ORACLES = ("wer_above", "cer_above", "disagreement", "spans_below", "tolerance", "sdr_below", "keywords", "oracle")
#: Options that cannot be combined: if one is typed, the file's values for the others in its row are ignored.
_ALTERNATIVES: tuple[tuple[frozenset[str], ...], ...] = (
    tuple(frozenset({name}) for name in _ORACLES),
    (frozenset({"model"}), frozenset({"profile", "partitions"})),
    (frozenset({"mutations"}), frozenset({"transformations", "noise", "ranges"})),
)
_HEADER = re.compile(r"\s*\[\[?\s*([^\]]+?)\s*\]")
_KEY = re.compile(r"\s*([\w\-.\"' ]+?)\s*=")


class ProjectCommand(click.Command):
    """A command that reads options that were not typed from the project file; `groups` are headings of its help."""

    def __init__(self, *args: Any, groups: Mapping[str, Sequence[str]] | None = None, **options: Any) -> None:
        super().__init__(*args, **options)
        self.groups = groups or {}
        target = click.Option(
            ["--target"], metavar="NAME", expose_value=False, help=f"Use this target of {PROJECT}.", show_default=False
        )
        self.params.append(target)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        typed, _, _ = self.make_parser(ctx).parse_args(list(args))
        if not {"help", *ctx.help_option_names} & set(typed):
            target = typed.get("target")
            values = defaults(self.name or "", None if target is None else str(target))
            ctx.default_map = {name: value for name, value in values.items() if not _replaced(name, typed)}
        try:
            return super().parse_args(ctx, args)
        except click.MissingParameter as error:
            raise click.UsageError(
                f"{error.format_message().rstrip('.')}, here or in {PROJECT}, which deepcruiser init writes", ctx
            ) from None

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        left = {param.name: record for param in self.get_params(ctx) if (record := param.get_help_record(ctx))}
        for heading, names in self.groups.items():
            with formatter.section(heading):
                formatter.write_dl([left.pop(name) for name in names])
        with formatter.section("Other options" if self.groups else "Options"):
            formatter.write_dl(list(left.values()))


def _replaced(name: str, typed: Mapping[str, Any]) -> bool:
    """Whether a typed option replaces this one."""
    return any(
        name in place and any(other & typed.keys() for other in row if other is not place)
        for row in _ALTERNATIVES
        for place in row
    )


def defaults(command: str, target: str | None) -> dict[str, Any]:
    """The parameters of a command that the project file of the current folder sets; empty without a file."""
    project = find()
    if project is None:
        if target is not None:
            raise InputError(f"--target {target!r} needs a {PROJECT} in this folder: write one with `deepcruiser init`")
        return {}
    own, values = read(*project, target)
    folder = own.get("folder", "runs/campaign")
    gates: dict[str, Any] = {name: own[name] for name in ("max_findings", "max_wrong_seeds") if name in own}
    if command in ("findings", "replay", "report", "status"):
        return {"folder": folder, "folders": (folder,), **gates}
    if command == "profile":
        taken = {name: values[name] for name in ("system", "seed", "batch_size") if name in values}
        paths = {"data": own.get("train"), "output": values.get("profile"), "components": own.get("components")}
        return taken | {name: value for name, value in paths.items() if value is not None}
    if command == "cover":
        return values | ({"data": own["test"]} if "test" in own else {})
    return {**values, **gates, "output": folder}


def find() -> tuple[Path, tuple[str, ...]] | None:
    """The project file of the current folder, and the table in it."""
    path = Path("pyproject.toml")
    if Path(PROJECT).is_file():
        return Path(PROJECT), ()
    if path.is_file() and "tool.deepcruiser" in read_text(path, errors="replace"):
        return path, ("tool", "deepcruiser")
    return None


def read(path: Path, table: tuple[str, ...], target: str | None) -> tuple[dict[str, Any], dict[str, Any]]:
    """The keys of a target that are our own, and the options that its other keys stand for."""
    from deepcruiser.campaign.spec import CampaignSpec, unknown

    try:
        text = read_text(path, encoding="utf-8")
        data: Any = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise FileError(f"cannot read {path}: {error}") from None
    for key in table:
        data = data.get(key, {}) if isinstance(data, dict) else None
    targets = data.pop("targets", {}) if isinstance(data, dict) else None
    if not isinstance(targets, dict) or not all(isinstance(each, dict) for each in targets.values()):
        raise FileError(f"cannot read {path}: {'.'.join((*table, 'targets'))} must be tables, a table for each target")
    names = {**{each.name: str(each.type) for each in fields(CampaignSpec)}, **OWN}
    tables: list[tuple[tuple[str, ...], Any]] = [((), data), *((("targets", name), targets[name]) for name in targets)]
    for place, values in tables:
        for key, value in values.items():
            where = (*table, *place, key)
            if key not in names:
                message = str(unknown("key", key, [*names, "targets"]))
                raise InputError(f"{path}, line {line_of(text, where)}: {message}")
            try:
                _check(key, value, names[key])
            except DeepCruiserError as error:
                parts = value.items() if isinstance(value, Mapping) else ()
                wrong = [name for name, part in parts if repr(name) in str(error) or repr(part) in str(error)]
                raise InputError(f"{path}, line {line_of(text, (*where, *wrong[:1]))}: {error}") from None
    if target is None and "system" not in data and len(targets) == 1:
        (target,) = targets
    if (target is not None and target not in targets) or (target is None and "system" not in data and targets):
        prefix = "give --target: " if target is None else f"there is no target {target!r}: "
        known = f"the targets of {path} are {', '.join(targets)}" if targets else f"{path} has no targets"
        raise InputError(prefix + known)
    chosen = data | (targets[target] if target is not None else {})
    own = {key: chosen.pop(key) for key in OWN if key in chosen}
    if target is not None and "folder" not in targets[target]:
        own["folder"] = f"runs/{target}"
    return own, CampaignSpec.from_dict({key: _whole(key, value) for key, value in chosen.items()}).options()


def line_of(text: str, keys: Sequence[str]) -> int:
    """The line of the value at these keys, or of the last key that has a line."""
    best, line = 0, 1
    for number, path in _lines(text):
        same = next((i for i, (one, other) in enumerate(zip(path, keys, strict=False)) if one != other), None)
        length = min(len(path), len(keys)) if same is None else 0
        if length > best:
            best, line = length, number
    return line


def _lines(text: str) -> Iterator[tuple[int, list[str]]]:
    """The keys from the root to each line that has a key."""
    header: list[str] = []
    for number, line in enumerate(text.splitlines(), 1):
        if match := _HEADER.match(line):
            header = _parts(match[1])
            yield number, header
        elif match := _KEY.match(line):
            yield number, [*header, *_parts(match[1])]


def _parts(key: str) -> list[str]:
    return [part.strip().strip("\"'") for part in key.split(".")]


def _check(key: str, value: Any, kind: str) -> None:
    """Build the object of a key, to check it."""
    from deepcruiser.campaign.spec import CampaignSpec, check_type

    if key in OWN:
        check_type(key, value, kind)
        return
    spec = CampaignSpec.from_dict({key: _whole(key, value)})
    if key in ("guide", "oracle", "mutations"):
        getattr(spec, f"build_{key}")()


def _whole(key: str, value: Any) -> Any:
    """A part of a campaign as a table, with what the command line adds to it."""
    from deepcruiser.campaign.spec import NORMALISE

    if key not in ("guide", "oracle", "mutations", "scheduler"):
        return value
    value = {"type": value} if isinstance(value, str) else value
    if key == "oracle" and isinstance(value, Mapping) and str(value.get("type")).endswith("ErrorRate"):
        return {"normalise": list(NORMALISE), **value}
    return value
