"""A campaign as data: the same in Python, as JSON, as TOML and on the command line; and mistakes in it are named."""

from __future__ import annotations

import json
import shlex
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import deepcruiser as dc
from deepcruiser.campaign.guide import KEEP
from deepcruiser.campaign.learned import AIMS
from deepcruiser.campaign.mutations import READY_MADE
from deepcruiser.campaign.scheduler import PICK, SELECT
from deepcruiser.campaign.spec import Component, guide_component, mutations_component
from deepcruiser.cli.campaign_options import spec_from
from deepcruiser.cli.fuzz import fuzz as fuzz_command
from deepcruiser.cli.resolve import guide_from
from deepcruiser.normaliser import DIFFERENCES
from deepcruiser.transformations import EXTRA, PAPER, AddBackgroundNoise, series, text
from deepcruiser.transformations.severity import LEVELS
from tests.support import toy

CRITERIA = ("BSCov", "1-SBCov", "2-SBCov", "BTCov", "ISCov", "WICov", "7-SBCov")

words = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12)
positive = st.floats(min_value=1e-300, allow_infinity=False)
against = st.sampled_from([None, "text", "output"])
thresholds = st.floats(0, 100) | st.integers(0, 3).map(float)
guides = st.builds(
    lambda kind, names: Component(kind, {"criteria": names}),
    st.sampled_from(KEEP),
    st.lists(st.sampled_from(CRITERIA), min_size=1, max_size=3, unique=True),
)
differences = st.lists(st.sampled_from(DIFFERENCES), unique=True)
oracles = st.one_of(
    st.builds(dc.WordErrorRate, thresholds, against, differences),
    st.builds(dc.CharacterErrorRate, thresholds, against, differences),
    st.builds(dc.SpanDisagreement, st.floats(0, 1, exclude_min=True)),
    st.builds(dc.Disagreement, against),
    st.builds(dc.Tolerance, thresholds, st.booleans(), against),
    st.builds(dc.SignalToDistortion, st.floats(-9, 99)),
    st.builds(dc.Keywords, st.lists(st.sampled_from(["go", "turn left"]), min_size=1, unique=True), against),
)
schedulers = st.one_of(
    st.builds(
        lambda select, pick: Component(select, {"pick": pick}), st.sampled_from([*SELECT]), st.sampled_from([*PICK])
    ),
    st.builds(lambda aim: Component("learned", {"aim": aim}), st.sampled_from(AIMS)),
    st.just(Component("chains")),
)


@st.composite
def mutations(draw: st.DrawFn) -> dc.Mutations:
    """Some kinds of sound, text or series in any order, with ranges for some of them."""
    ready = draw(st.sampled_from([*READY_MADE.values()]))
    kinds = tuple(draw(st.lists(st.sampled_from(ready.kinds), min_size=1, unique=True)))
    ends = st.tuples(st.floats(allow_nan=False, allow_infinity=False), st.integers(-9, 9))
    ranges = draw(
        st.dictionaries(
            st.sampled_from([kind.__name__ for kind in kinds]), st.dictionaries(words, ends, max_size=2), max_size=2
        )
    )
    return replace(ready, kinds=kinds, ranges=ranges)


#: A strategy for each field of a spec.
FIELDS: dict[str, st.SearchStrategy[Any]] = {
    **dict.fromkeys(("system", "data", "leave_out", "profile", "model", "mutations_source"), st.none() | words),
    **dict.fromkeys(("oracle_source", "against_system"), st.none() | words),
    "partitions": st.none() | st.integers(1, 1000),
    "input_partitions": st.integers(1, 1000),
    "guide": guides,
    "oracle": oracles.map(Component.of),
    "mutations": (mutations() | st.just(toy.MUTATIONS)).map(mutations_component),
    "scheduler": schedulers,
    "severity": st.sampled_from([*LEVELS]) | st.floats(0, 100, exclude_min=True),
    "seed": st.integers(0, 2**70),
    "batch_size": st.integers(1, 10**6),
    "window": st.none() | st.integers(1, 10**6),
    "validity": st.booleans(),
    "keep_failing_seeds": st.booleans(),
    "minutes": st.none() | st.floats(0, allow_infinity=False),
    "runs": st.none() | st.integers(0, 10**12),
    "until_coverage": st.none() | st.floats(0, 1),
    "limit_seconds": st.none() | positive,
}
specs = st.fixed_dictionaries({}, optional=FIELDS).map(lambda values: dc.CampaignSpec(**values))


def test_each_field_is_tried() -> None:
    assert {*FIELDS} == {each.name for each in fields(dc.CampaignSpec)}


@given(specs)
def test_a_spec_survives_json_and_toml_without_loss(spec: dc.CampaignSpec) -> None:
    for back in (
        dc.CampaignSpec.from_json(spec.to_json()),
        dc.CampaignSpec.from_toml(spec.to_toml()),
        dc.CampaignSpec.from_dict(spec.to_dict()),
        dc.CampaignSpec.from_toml(dc.CampaignSpec.from_json(spec.to_json()).to_toml()),
    ):
        assert back == spec
        assert back.to_dict() == spec.to_dict()
        assert {name: type(value) for name, value in vars(back).items()} == {
            name: type(value) for name, value in vars(spec).items()
        }


@given(guides, oracles, mutations())
def test_what_a_spec_builds_is_what_it_was_made_of(guide: Component, oracle: Any, mutations: dc.Mutations) -> None:
    spec = dc.CampaignSpec(guide=guide, oracle=Component.of(oracle), mutations=mutations_component(mutations))
    spec = dc.CampaignSpec.from_toml(spec.to_toml())
    assert guide_component(spec.build_guide()) == guide
    assert spec.build_oracle() == oracle
    built = spec.build_mutations()
    assert (built.kinds, built.families, built.unaffected) == (
        mutations.kinds,
        mutations.families,
        mutations.unaffected,
    )
    assert built.gate == mutations.gate
    assert mutations_component(built) == mutations_component(mutations)


numbers = st.floats(-1e6, 1e6) | st.integers(-50, 50).map(float)
typed = st.fixed_dictionaries(
    {"system": st.sampled_from(["asr.py:system", "process: ./my-recogniser --json", "a b.py:it's"])},
    optional={
        **{name: FIELDS[name] for name in ("partitions", "input_partitions", "scheduler", "severity", "batch_size")},
        **{name: FIELDS[name] for name in ("seed", "window", "minutes", "runs", "guide", "oracle", "limit_seconds")},
        **{name: FIELDS[name] for name in ("validity", "keep_failing_seeds")},
        "data": st.sampled_from(["seeds/", "my seeds", "data.py:seeds"]),
        "leave_out": st.sampled_from(["leave-out.txt", "my choice.csv"]),
        "profile": st.sampled_from(["a.profile", "it's one"]),
        "until_coverage": st.floats(0, 1, exclude_min=True),
    },
)
typed_mutations = st.builds(
    lambda names, ends, noise: dc.Mutations.sound(
        [*names, *(["AddBackgroundNoise"] if noise else [])],
        {names[0]: ends, **({"AddBackgroundNoise": {"folder": noise}} if noise else {})},
    ),
    st.lists(
        st.sampled_from([kind.__name__ for kind in PAPER + EXTRA if kind is not AddBackgroundNoise]),
        min_size=1,
        unique=True,
    ),
    st.dictionaries(st.sampled_from(["snr_db", "factor"]), st.tuples(numbers, numbers), min_size=1),
    st.sampled_from(["", "/tmp/noise", "/tmp/my noise"]),
)


@st.composite
def typed_others(draw: st.DrawFn) -> dc.Mutations:
    """Some kinds of text or series, with ranges."""
    ready, kinds = draw(st.sampled_from([(dc.Mutations.text, text.KINDS), (dc.Mutations.series, series.KINDS)]))
    names = draw(st.lists(st.sampled_from([kind.__name__ for kind in kinds]), min_size=1, unique=True))
    ends = st.dictionaries(st.just("share"), st.tuples(numbers, numbers), min_size=1)
    made: dc.Mutations = ready(names, draw(st.dictionaries(st.sampled_from(names), ends)))
    return made


@given(typed, st.none() | typed_mutations | typed_others())
def test_what_is_typed_to_resume_is_the_same_spec(values: dict[str, Any], mutations: dc.Mutations | None) -> None:
    if mutations is not None:
        values["mutations"] = mutations_component(mutations)
    spec = dc.CampaignSpec(**values)
    program, command, *words = shlex.split(spec.command_line("runs/my folder"))
    assert (program, command, words[-2:]) == ("deepcruiser", "fuzz", ["-o", "runs/my folder"])
    options = fuzz_command.make_context("fuzz", words).params
    cli_only = ("output", "workers", "plain", "serve", "as_json_lines", "paper", "max_findings", "max_wrong_seeds")
    for name in (*cli_only, "quiet", "verbose", "cluster", "device"):
        options.pop(name, None)
    scheduler, aim, pick = (options.pop(name) for name in ("scheduler", "aim", "pick"))
    severity = options.pop("severity")
    options["severity"] = severity if severity in LEVELS else float(severity)
    parameters = {"learned": {"aim": aim}, "chains": {}}.get(scheduler, {"pick": pick})
    guide = guide_component(guide_from(options.pop("guide"), options.pop("keep")))
    again = spec_from(scheduler=Component(scheduler, parameters), **options)
    assert replace(again, guide=guide) == spec


def test_a_spec_without_a_way_to_pick_can_be_typed_too() -> None:
    spec = dc.CampaignSpec(scheduler=Component("decay"))
    assert spec.command_line("c", program="python -m deepcruiser") == (
        "python -m deepcruiser fuzz --scheduler decay --pick uniform -o c"
    )
    assert dc.CampaignSpec().command_line("c") == "deepcruiser fuzz -o c"


def test_a_file_as_a_user_writes_it() -> None:
    spec = dc.CampaignSpec.from_toml(
        """
        system = "asr.py:system"
        minutes = 30
        limit_seconds = 0
        guide = {type = "coverage", criteria = ["BTCov", "2-SBCov"]}

        [oracle]
        type = "Disagreement"

        [scheduler]
        type = "decay"

        [mutations]
        type = "sound"
        kinds = ["Trim", "AddWhiteNoise"]
        ranges.AddWhiteNoise.snr_db = [25, 40]
        """
    )
    assert (spec.system, spec.minutes, spec.limit_seconds) == ("asr.py:system", 30.0, None)
    assert spec.build_guide() == dc.Guide((dc.BTCov, dc.SBCov(2)), "coverage")
    assert spec.build_oracle() == dc.Disagreement()
    assert [kind.__name__ for kind in spec.build_mutations().kinds] == ["Trim", "AddWhiteNoise"]
    assert spec.build_mutations().ranges == {"AddWhiteNoise": {"snr_db": [25, 40]}}
    assert spec == replace(
        dc.CampaignSpec(
            system="asr.py:system",
            minutes=30,
            limit_seconds=None,
            guide=guide_component(dc.Guide((dc.BTCov, dc.SBCov(2)), "coverage")),
            oracle=Component.of(dc.Disagreement()),
            scheduler=Component("decay"),
        ),
        mutations=spec.mutations,
    )
    assert (spec.seed, spec.batch_size) == (0, 16)
    assert dc.CampaignSpec.from_toml("") == dc.CampaignSpec()


def test_what_may_be_left_out() -> None:
    spec = dc.CampaignSpec.from_toml('guide = {type = "random"}\nmutations = {type = "sound"}')
    assert spec.build_guide() == dc.Guide.of("random")
    assert spec.build_mutations() == dc.Mutations()
    for kind, kinds in (("text", text.KINDS), ("series", series.KINDS)):
        spec = dc.CampaignSpec(mutations=Component(kind))
        assert spec.build_mutations().kinds == kinds


@pytest.mark.parametrize(
    ("written", "message"),
    [
        ("batchsize = 3", "unknown field of a campaign 'batchsize' (given: 3); did you mean 'batch_size'?"),
        ("widnow = 3", "unknown field of a campaign 'widnow' (given: 3); did you mean 'window'?"),
        ("xyz = 3", "unknown field of a campaign 'xyz' (given: 3); expected one of: system, data, profile, "),
        ('guide = {type = "coverge"}', "unknown type of guide 'coverge'; did you mean 'coverage'?"),
        (
            'guide = {type = "coverage", criterions = ["BTCov"]}',
            "unknown field of the guide coverage 'criterions' (given: ['BTCov']); did you mean 'criteria'?",
        ),
        (
            'guide = {type = "coverage", criteria = ["BSCv"]}',
            "unknown criterion 'BSCv'; choose BSCov, 1-SBCov, 2-SBCov and so on",
        ),
        (
            'guide = {type = "coverage", criteria = "BSCov"}',
            "the criteria of the guide must be a list of names, such as ['BSCov'], not 'BSCov'",
        ),
        ('guide = {type = "coverage", criteria = 3}', "the criteria of the guide must be a list of names, such as"),
        ('guide = {type = "coverage", criteria = [3]}', "the criteria of the guide must be a list of names, such as"),
        ('guide = {type = "coverage", criteria = []}', "the criteria of the guide must be a list of names, such as"),
        ('oracle = {type = "WordErorRate"}', "unknown type of oracle 'WordErorRate'; did you mean 'WordErrorRate'?"),
        (
            'oracle = {type = "WordErrorRate", abov = 0.2}',
            "unknown field of the oracle WordErrorRate 'abov' (given: 0.2); did you mean 'above'?",
        ),
        (
            'oracle = {type = "WordErrorRate", above = "x"}',
            "cannot build the oracle from {'type': 'WordErrorRate', 'above': 'x'}",
        ),
        ('oracle = {type = "WordErrorRate", above = -1}', "above must be 0 or more, not -1"),
        ('oracle = {type = "Disagreement", against = "txt"}', "against must be 'text', 'output' or None, not 'txt'"),
        ('mutations = {type = "sond"}', "unknown type of mutations 'sond'; did you mean 'sound'?"),
        (
            'mutations = {type = "sound", kind = ["Trim"]}',
            "unknown field of the mutations sound 'kind' (given: ['Trim']); did you mean 'kinds'?",
        ),
        ('mutations = {type = "sound", kinds = ["Trm"]}', "unknown kind of mutation 'Trm'; did you mean 'Trim'?"),
        (
            'mutations = {type = "text", kinds = ["Typo"]}',
            "unknown kind of mutation 'Typo'; did you mean 'Typos'?",
        ),
        ('mutations = {type = "sound", kinds = "Trim"}', "the kinds of the mutations must be a list of names, not 'Tr"),
        ('mutations = {type = "sound", ranges = 3}', "the ranges of the mutations must be a table of tables, not 3"),
        (
            'mutations = {type = "sound", kinds = ["Trim"], ranges = {Reverb = {}}}',
            "ranges for Reverb, but the kinds are: Trim",
        ),
        (
            'mutations = {type = "own"}',
            "the mutations are your own and a spec cannot hold them: pass mutations=, or --mutations",
        ),
        ('scheduler = {type = "rarty"}', "unknown type of scheduler 'rarty'; did you mean 'rarity'?"),
        (
            'scheduler = {type = "rarity", pik = "uniform"}',
            "unknown field of the scheduler rarity 'pik' (given: 'uniform'); did you mean 'pick'?",
        ),
        (
            'scheduler = {type = "rarity", pick = "thomson"}',
            "unknown value of pick 'thomson'; did you mean 'thompson'?",
        ),
        (
            'scheduler = {type = "rarity", pick = ["thompson"]}',
            "unknown value of pick ['thompson']; did you mean 'thompson'?",
        ),
        ('scheduler = {type = "learned", aim = "luck"}', "unknown value of aim 'luck'; expected one of: balanced"),
        ('scheduler = {type = "chains", pick = "uniform"}', "unknown field of the scheduler chains 'pick'"),
        ('severity = "bearable"', "severity must be mild, normal, hard, unlimited or a number above 0, not 'bearable'"),
        ("until_coverage = nan", "until_coverage must be a finite number, not nan"),
        ("minutes = inf", "minutes must be a finite number, not inf"),
        ('mutations = {type = "sound", ranges = {Trim = {a = 3}}}', "the range of Trim.a must be two numbers, not 3"),
        ("severity = 0", "severity must be mild, normal, hard, unlimited or a number above 0, not 0"),
        ("guide = 3", "guide must be a table with a type, such as {type = ...}, not 3"),
        ("oracle = {above = 0.3}", "oracle must be a table with a type, such as {type = ...}, not {'above': 0.3}"),
        ("scheduler = {type = 3}", "scheduler must be a table with a type"),
        ("system = 3", "system must be a text, not 3"),
        ('seed = "1"', "seed must be a whole number, not '1'"),
        ("seed = 1.5", "seed must be a whole number, not 1.5"),
        ("seed = true", "seed must be a whole number, not True"),
        ('minutes = "3"', "minutes must be a number, not '3'"),
        ("minutes = true", "minutes must be a number, not True"),
        ("batch_size = 0", "batch_size must be at least 1, not 0"),
        ("window = 0", "window must be at least 1, not 0"),
        ("seed = -1", "seed must be at least 0, not -1"),
        ("runs = -1", "runs must be at least 0, not -1"),
        ("minutes = -1", "minutes must be at least 0, not -1"),
        ("limit_seconds = -1", "limit_seconds must be at least 0, not -1"),
        ("seed =", "the campaign's spec is not valid TOML: Invalid value"),
    ],
)
def test_a_mistake_is_named_with_what_was_likely_meant(written: str, message: str) -> None:
    with pytest.raises(dc.InputError) as caught:
        build(dc.CampaignSpec.from_toml(written))
    assert str(caught.value).startswith(message)


def build(spec: dc.CampaignSpec) -> None:
    """Everything that a spec describes."""
    spec.build_guide()
    spec.build_oracle()
    spec.build_scheduler(spec.build_mutations())


@pytest.mark.parametrize(
    ("written", "message"),
    [
        ("{", "the campaign's spec is not valid JSON: "),
        ("[3]", r"a campaign's spec must be a table of its fields, not \[3\]"),
        ("null", "a campaign's spec must be a table of its fields, not None"),
        ('{"system": null}', "system must be a text, not None"),
        ('{"sed": 1}', r"unknown field of a campaign 'sed' \(given: 1\); did you mean 'seed'\?"),
    ],
)
def test_mistakes_in_json(written: str, message: str) -> None:
    with pytest.raises(dc.InputError, match=f"^{message}"):
        dc.CampaignSpec.from_json(written)


def test_settings_of_fuzz_are_fields_of_the_spec(tmp_path: Path) -> None:
    with pytest.raises(dc.InputError, match=r"^unknown setting 'batchsize' \(given: 3\); did you mean 'batch_size'\?"):
        toy.campaign(tmp_path / "c", batchsize=3)
    with pytest.raises(dc.InputError, match=r"^unknown type of scheduler 'decoy'; did you mean 'decay'\?"):
        toy.campaign(tmp_path / "c", scheduler="decoy")
    assert not (tmp_path / "c").exists()
    campaign = toy.campaign(tmp_path / "c", scheduler="decay", runs=16, seed=3)
    assert campaign.spec == dc.CampaignSpec(
        guide=guide_component(dc.Guide()),
        oracle=Component.of(dc.Disagreement()),
        mutations=mutations_component(toy.MUTATIONS),
        scheduler=Component("decay"),
        severity="unlimited",
        runs=16,
        seed=3,
    )
    assert dc.CampaignSpec.from_dict(json.loads(campaign.spec.to_json())) == campaign.spec


def test_a_spec_and_what_is_passed_apart_from_it_are_the_same_campaign(tmp_path: Path) -> None:
    spec = dc.CampaignSpec(
        guide=Component("coverage+distance", {"criteria": ("BTCov", "WICov")}),
        severity="unlimited",
        oracle=Component("Disagreement"),
        seed=5,
        runs=48,
        scheduler=Component("decay", {"pick": "thompson"}),
    )
    one = dc.fuzz(
        toy.Reader(), toy.model(), toy.seeds(), folder=tmp_path / "1", spec=spec, mutations=toy.MUTATIONS, workers=0
    )
    toy.campaign(
        tmp_path / "2", guide=(dc.BTCov, dc.WICov), seed=5, runs=48, scheduler=Component("decay", {"pick": "thompson"})
    )
    rows = [{**toy.rows(tmp_path / name), "meta": []} for name in ("1", "2")]
    assert rows[0] == rows[1]
    again = dc.fuzz(
        toy.Reader(),
        toy.model(),
        toy.seeds(),
        folder=tmp_path / "1",
        spec=replace(spec, runs=64),
        mutations=toy.MUTATIONS,
        workers=0,
    )
    assert (len(one.runs), len(again.runs)) == (48, 64)


def test_a_folder_in_the_ranges_may_be_a_path(tmp_path: Path) -> None:
    mutations = dc.Mutations.sound(["AddBackgroundNoise"], {"AddBackgroundNoise": {"folder": tmp_path}})
    assert mutations_component(mutations).parameters["ranges"] == {"AddBackgroundNoise": {"folder": str(tmp_path)}}


@pytest.mark.parametrize(
    ("batch_size", "window", "ahead"),
    [(1, None, 1), (16, None, 2), (1, 4, 4), (16, 16, 1), (16, 8, 1), (16, 40, 2), (7, None, 2)],
)
def test_how_far_planning_runs_ahead(batch_size: int, window: int | None, ahead: int) -> None:
    assert dc.CampaignSpec(batch_size=batch_size, window=window).ahead == ahead
