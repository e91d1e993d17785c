"""Everything that defines a campaign, as data: the same in a file, in the campaign's folder, and in Python."""

from __future__ import annotations

import dataclasses
import json
import math
import os
import shlex
import tomllib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from difflib import get_close_matches
from typing import Any, Self, TypeVar

from deepcruiser.campaign.drawing import Drawing
from deepcruiser.campaign.guide import KEEP, Guide
from deepcruiser.campaign.learned import AIMS, Learned
from deepcruiser.campaign.mutations import READY_MADE, Mutations
from deepcruiser.campaign.scheduler import PICK, SELECT, Chains, OneChange, Scheduler
from deepcruiser.criteria import criterion
from deepcruiser.errors import InputError
from deepcruiser.files.reading import parse_json
from deepcruiser.oracles import CharacterErrorRate, Disagreement, Oracle, SpanDisagreement, WordErrorRate
from deepcruiser.serialise import summarise
from deepcruiser.transformations.severity import budget
from deepcruiser.value_oracles import Keywords, SignalToDistortion, Tolerance

T = TypeVar("T")
#: The schedulers by name; those of `SELECT` make one change at a time.
SCHEDULERS = ("learned", "chains", *SELECT)
#: The least values of numbers.
_LEAST = (("batch_size", 1), ("window", 1), ("seed", 0), ("runs", 0), ("minutes", 0), ("limit_seconds", 0))
#: The oracles that a spec can name, with the parameter of `deepcruiser fuzz` for each and the field that it sets.
ORACLES: tuple[tuple[type[Any], str, str | None], ...] = (
    (WordErrorRate, "wer_above", "above"),
    (CharacterErrorRate, "cer_above", "above"),
    (SpanDisagreement, "spans_below", "below"),
    (Tolerance, "tolerance", "limit"),
    (SignalToDistortion, "sdr_below", "below_db"),
    (Keywords, "keywords", "names"),
    (Disagreement, "disagreement", None),
)
#: By default, an answer fails if its word error rate exceeds this.
WER_ABOVE = 0.3
#: By default, these differences are not errors.
NORMALISE = ("case", "spacing")


@dataclass(frozen=True)
class Component:
    """A part of a campaign as data: its type, and its parameters as JSON."""

    type: str
    parameters: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, value: Any) -> Self:
        """The description of a frozen dataclass; of any other object only its type is known."""
        known = dataclasses.is_dataclass(value)
        parameters = {each.name: getattr(value, each.name) for each in fields(value)} if known else {}
        return cls(type(value).__name__, {name: summarise(v) for name, v in parameters.items() if v is not None})

    def to_dict(self) -> dict[str, Any]:
        return {"type": self.type, **self.parameters}

    @classmethod
    def from_dict(cls, name: str, data: Any) -> Self:
        """Read what `to_dict` made; `name` is the field that it stands in."""
        if not isinstance(data, Mapping) or not isinstance(data.get("type"), str):
            raise InputError(f"{name} must be a table with a type, such as {{type = ...}}, not {data!r}")
        return cls(data["type"], {key: value for key, value in data.items() if key != "type"})

    def check(self, name: str, known: Iterable[str]) -> None:
        """Refuse parameters other than those known."""
        for key, value in self.parameters.items():
            if key not in known:
                raise unknown(f"field of the {name} {self.type}", key, known, value=value)

    def build(self, name: str, kinds: Iterable[Callable[..., T]]) -> T:
        """The object that this describes, of one of these classes."""
        by_name = {kind.__name__: kind for kind in kinds}
        if self.type not in by_name:
            raise unknown(f"type of {name}", self.type, by_name)
        kind = by_name[self.type]
        self.check(name, [each.name for each in fields(kind)])  # type: ignore[arg-type]
        try:
            return kind(**self.parameters)
        except TypeError as error:
            raise InputError(f"cannot build the {name} from {self.to_dict()}: {error}") from None


@dataclass(frozen=True, kw_only=True)
class CampaignSpec:
    """Everything that defines a campaign, as data.

    The first fields are the paths and names as they were typed; they are empty if the campaign was started in Python.
    `window` is the number of runs by which planning is ahead: run i is planned from the state after run i - window.
    None means two batches, or one run if a batch is one run. Without `validity`, invalid mutants are run too. With
    `keep_failing_seeds`, seeds that the system already gets wrong are tests like any other. `leave_out` is a file with
    the names of seeds that are not used.
    """

    system: str | None = None
    data: str | None = None
    profile: str | None = None
    partitions: int | None = None
    input_partitions: int = 10
    model: str | None = None
    mutations_source: str | None = None
    oracle_source: str | None = None
    against_system: str | None = None
    leave_out: str | None = None

    guide: Component = Component("coverage+distance", {"criteria": ["BSCov"]})
    oracle: Component = Component("WordErrorRate", {"above": WER_ABOVE, "normalise": list(NORMALISE)})
    mutations: Component = field(default_factory=lambda: mutations_component(Mutations()))
    scheduler: Component = Component("learned", {"aim": "balanced"})
    severity: str | float = "normal"
    seed: int = 0
    batch_size: int = 16
    window: int | None = None
    validity: bool = True
    keep_failing_seeds: bool = False

    minutes: float | None = None
    runs: int | None = None
    until_coverage: float | None = None
    limit_seconds: float | None = 60.0

    def __post_init__(self) -> None:
        for name, least in _LEAST:
            value = getattr(self, name)
            if value is not None and not value >= least:
                raise InputError(f"{name} must be at least {least}, not {value}")
        self.build_scheduler(Mutations())

    @property
    def ahead(self) -> int:
        """The number of batches that are planned before the first of them is judged."""
        window = self.window or (1 if self.batch_size == 1 else 2 * self.batch_size)
        return max(1, window // self.batch_size)

    def build_guide(self) -> Guide:
        """The guide that the spec describes."""
        return Guide(tuple(map(criterion, self._criteria())), self.guide.type)  # type: ignore[arg-type]

    def _criteria(self) -> list[str]:
        """The names of the guide's criteria, which may be a user's own."""
        if self.guide.type not in KEEP:
            raise unknown("type of guide", self.guide.type, KEEP)
        self.guide.check("guide", ("criteria",))
        names = self.guide.parameters.get("criteria", ["BSCov"])
        if not _are_names(names) or (self.guide.type.startswith("coverage") and not names):
            raise InputError(f"the criteria of the guide must be a list of names, such as ['BSCov'], not {names!r}")
        return list(names)

    def build_oracle(self) -> Oracle:
        """The oracle that the spec describes, if it is one of ours; `against_system` is not part of it."""
        oracle: Oracle = self.oracle.build("oracle", [kind for kind, _, _ in ORACLES])
        return oracle

    def build_mutations(self) -> Mutations:
        """The mutations that the spec describes, if they are ours."""
        kinds, ranges = self.mutations.parameters.get("kinds"), self.mutations.parameters.get("ranges", {})
        if self.mutations.type == "own":
            raise InputError("the mutations are your own and a spec cannot hold them: pass mutations=, or --mutations")
        if self.mutations.type not in READY_MADE:
            raise unknown("type of mutations", self.mutations.type, (*READY_MADE, "own"))
        self.mutations.check("mutations", ("kinds", "ranges"))
        if kinds is None:
            return Mutations.of(self.mutations.type, ranges=_ranges(ranges))
        if not _are_names(kinds):
            raise InputError(f"the kinds of the mutations must be a list of names, not {kinds!r}")
        ready = READY_MADE[self.mutations.type]
        by_name = {kind.__name__: kind for kind in ready.kinds}
        for name in kinds:
            if name not in by_name:
                raise unknown("kind of mutation", name, by_name)
        return replace(ready, kinds=tuple(by_name[name] for name in kinds), ranges=_ranges(ranges))

    def build_scheduler(self, mutations: Mutations) -> Scheduler:
        """The scheduler that the spec describes, which draws from the mutations."""
        name, drawing = self.scheduler.type, Drawing(mutations, budget(self.severity))
        if name not in SCHEDULERS:
            raise unknown("type of scheduler", name, SCHEDULERS)
        option, values = {"learned": ("aim", AIMS), "chains": ("", ())}.get(name, ("pick", tuple(PICK)))
        self.scheduler.check("scheduler", [option] if option else [])
        value = self.scheduler.parameters.get(option, values[0] if values else None)
        if value not in values and option:
            raise unknown(f"value of {option}", value, values)
        if name == "learned":
            return Learned(drawing, value)
        return Chains(drawing) if name == "chains" else OneChange(SELECT[name](), PICK[value](), drawing)

    def to_dict(self) -> dict[str, Any]:
        """The spec as a dictionary for JSON and TOML; fields without a value are left out."""
        values = {each.name: getattr(self, each.name) for each in fields(self)}
        return {
            name: value.to_dict() if isinstance(value, Component) else value
            for name, value in values.items()
            if value is not None or name == "limit_seconds"
        } | ({"limit_seconds": 0.0} if self.limit_seconds is None else {})

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Read a dictionary from `to_dict`, or one that a user wrote."""
        if not isinstance(data, Mapping):
            raise InputError(f"a campaign's spec must be a table of its fields, not {data!r}")
        known = {each.name: each for each in fields(cls)}
        values: dict[str, Any] = {}
        for name, value in data.items():
            if name not in known:
                raise unknown("field of a campaign", name, known, value=value)
            if name in ("guide", "oracle", "mutations", "scheduler"):
                values[name] = Component.from_dict(name, value)
            else:
                values[name] = check_type(name, value, str(known[name].type))
        values["limit_seconds"] = values.get("limit_seconds", 60.0) or None
        spec = cls(**values)
        spec._criteria()
        if spec.oracle.type in [kind.__name__ for kind, _, _ in ORACLES]:
            spec.build_oracle()
        if spec.mutations.type != "own":
            spec.build_mutations()
        return spec

    def to_json(self) -> str:
        return json.dumps(self.to_dict(), indent=2, ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str) -> Self:
        try:
            data = parse_json(text)
        except ValueError as error:
            raise InputError(f"the campaign's spec is not valid JSON: {error}") from None
        return cls.from_dict(data)

    def to_toml(self) -> str:
        import tomli_w

        return tomli_w.dumps(self.to_dict())

    @classmethod
    def from_toml(cls, text: str) -> Self:
        try:
            data = tomllib.loads(text)
        except (tomllib.TOMLDecodeError, RecursionError) as error:
            raise InputError(f"the campaign's spec is not valid TOML: {error}") from None
        return cls.from_dict(data)

    def command_line(self, folder: str, *, program: str = "deepcruiser") -> str:
        """The command that starts or resumes the campaign."""
        words = []
        for name, value in self.options().items():
            option = "--range" if name == "ranges" else f"--{name.replace('_', '-')}"
            for each in value if isinstance(value, tuple) else (value,):
                words += [option] if value is True else [option, str(each)]
        return shlex.join([*program.split(), "fuzz", *words, "-o", folder])

    def options(self) -> dict[str, Any]:
        """The options of `deepcruiser fuzz` that differ from their defaults, by the names of their parameters."""
        default = CampaignSpec()
        plain = ("system", "data", "leave_out", "profile", "partitions", "input_partitions", "model")
        rest = ("severity", "seed", "batch_size", "window", "minutes", "runs", "until_coverage", "keep_failing_seeds")
        values = {name: getattr(self, name) for name in (*plain, *rest)}
        options = {name: value for name, value in values.items() if value != getattr(default, name)}
        criteria = self.guide.parameters.get("criteria", ())
        if list(criteria) not in (["BSCov"], []):
            options["guide"] = ",".join(criteria)
        if self.guide.type != default.guide.type:
            options["keep"] = self.guide.type
        options |= self._oracle_options(default) | self._mutation_options(default)
        if self.scheduler.type != default.scheduler.type:
            options["scheduler"] = self.scheduler.type
        elif self.scheduler.parameters.get("aim", "balanced") != "balanced":
            options["aim"] = self.scheduler.parameters["aim"]
        if self.scheduler.type in SELECT:
            options["pick"] = str(self.scheduler.parameters.get("pick", "uniform"))
        if not self.validity:
            options["no_validity"] = True
        if self.limit_seconds != default.limit_seconds:
            options["limit_seconds"] = _number(self.limit_seconds or 0)
        return options

    def _oracle_options(self, default: CampaignSpec) -> dict[str, Any]:
        options: dict[str, Any] = {}
        parameters = self.oracle.parameters
        if self.against_system is not None:
            options["against_system"] = self.against_system
        if self.oracle_source is not None:
            return {**options, "oracle": self.oracle_source}
        for kind, option, name in ORACLES:
            if self.oracle.type == kind.__name__ and self.oracle != default.oracle:
                percent = bool(parameters.get("relative"))
                options[option] = _typed(getattr(self.build_oracle(), name), percent=percent) if name else True
        if parameters.get("against"):
            options["against"] = str(parameters["against"])
        names = parameters.get("normalise", WordErrorRate().normalise)
        if self.oracle.type in (WordErrorRate.__name__, CharacterErrorRate.__name__) and tuple(names) != NORMALISE:
            options["normalise"] = ",".join(names)
        return options

    def _mutation_options(self, default: CampaignSpec) -> dict[str, Any]:
        if self.mutations_source is not None:
            return {"mutations": self.mutations_source}
        options: dict[str, Any] = {} if self.mutations.type in ("sound", "own") else {"mutations": self.mutations.type}
        kinds = self.mutations.parameters.get("kinds")
        ranges = {name: dict(some) for name, some in self.mutations.parameters.get("ranges", {}).items()}
        noise = ranges.get("AddBackgroundNoise", {}).pop("folder", None)
        if self.mutations.type != "own" and kinds is not None:
            default_kinds = [kind.__name__ for kind in Mutations.of(self.mutations.type).kinds]
            options |= {"transformations": ",".join(kinds)} if kinds != default_kinds else {}
        if noise:
            options["noise"] = noise
        texts = [f"{kind}.{name}={_number(a)},{_number(b)}" for kind in ranges for name, (a, b) in ranges[kind].items()]
        return options | ({"ranges": tuple(texts)} if texts else {})


def guide_component(guide: Guide) -> Component:
    """A guide as data."""
    return Component(guide.keep, {"criteria": [each.name for each in guide.criteria]})


def mutations_component(mutations: Mutations) -> Component:
    """Mutations as data: complete for sound, text and series, otherwise only what identifies them."""
    return Component(mutations.type, summarise(mutations.description))


def unknown(what: str, name: str, known: Iterable[str], *, value: Any = None) -> InputError:
    """The error for an unknown name, with the nearest known one."""
    names = list(known)
    near = get_close_matches(str(name), names, 1, 0.5)
    note = "" if value is None else f" (given: {value!r})"
    remedy = f"did you mean {near[0]!r}?" if near else f"expected one of: {', '.join(names)}"
    return InputError(f"unknown {what} {name!r}{note}; {remedy}")


def _number(value: float) -> str:
    """A number in the fewest digits that read back as the same number."""
    short = f"{value:g}"
    return short if float(short) == value else repr(value)


def _typed(value: Any, *, percent: bool) -> str:
    """A limit or a list of names as it is typed."""
    if isinstance(value, list | tuple):
        return ",".join(value)
    return f"{_number(100 * value)}%" if percent else _number(value)


def _are_names(value: Any) -> bool:
    return isinstance(value, list | tuple) and all(isinstance(name, str) for name in value)


def _ranges(value: Any) -> Mapping[str, Mapping[str, Any]]:
    if not isinstance(value, Mapping) or not all(isinstance(some, Mapping) for some in value.values()):
        raise InputError(f"the ranges of the mutations must be a table of tables, not {value!r}")
    for kind, some in value.items():
        for name, ends in some.items():
            pair = isinstance(ends, list | tuple) and [isinstance(end, int | float) for end in ends] == [True, True]
            if not pair and not isinstance(ends, str | os.PathLike):  # a folder of noises
                raise InputError(f"the range of {kind}.{name} must be two numbers, not {ends!r}")
    return value


def check_type(name: str, value: Any, expected: str) -> Any:
    """The value, if it has the type of its field."""
    if expected == "bool":
        if not isinstance(value, bool):
            raise InputError(f"{name} must be true or false, not {value!r}")
        return value
    kinds = {"str": str, "int": int, "float": (int, float)}
    words = [word for word in kinds if word in expected.split(" | ")]
    if isinstance(value, bool) or not any(isinstance(value, kinds[word]) for word in words):  # type: ignore[arg-type]
        names = {"str": "a text", "int": "a whole number", "float": "a number"}
        raise InputError(f"{name} must be {names[words[0]]}, not {value!r}")
    if "float" in words and not isinstance(value, str) and not abs(value) < math.inf:
        raise InputError(f"{name} must be a finite number, not {value!r}")
    return float(value) if words == ["float"] else value
