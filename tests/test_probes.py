"""A changed front end, network or decoder is noticed, and named; rounding errors are not."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

import deepcruiser as dc
from deepcruiser.abstraction.probes import Probe, changed, make_probes
from tests.support import toy

Array = npt.NDArray[np.float64]


class Network:
    """A recurrent network with a front end and a decoder that can be exchanged, and without a fingerprint."""

    def __init__(
        self,
        *,
        features: Callable[[Array], Array] = lambda x: x,
        weights: int = 0,
        decoder: Callable[[Array], Any] = lambda states: "yes" if states[-1, 0] > 0 else "no",
        noise: float = 0.0,
        states: bool = True,
    ) -> None:
        self.features, self.decoder, self.noise, self.states = features, decoder, noise, states
        rng = np.random.default_rng(weights)
        self.keep, self.read = rng.normal(0, 0.5, (6, 6)), rng.normal(0, 0.7, (3, 6))
        self.rng, self.runs = np.random.default_rng(1), 0

    def run(self, batch: Sequence[Array]) -> list[dc.Run]:
        self.runs += 1
        return [self._run(np.asarray(self.features(value))) for value in batch]

    def _run(self, x: Array) -> dc.Run:
        states = [np.zeros(6)]
        for row in x:
            states.append(np.tanh(states[-1] @ self.keep + row @ self.read))
        noisy = np.array(states) * (1 + self.noise * self.rng.standard_normal((len(x) + 1, 6)))
        return dc.Run(self.decoder(noisy), dc.Trace(noisy, x) if self.states else None)


def inputs(count: int = 30, *, seed: int = 0) -> list[Array]:
    rng = np.random.default_rng(seed)
    return [rng.normal(0, 1, (int(rng.integers(8, 20)), 3)) for _ in range(count)]


CHANGES: dict[str, tuple[dict[str, Any], str]] = {
    "another scale": ({"features": lambda x: x * 1.1}, "features"),
    "a forgotten mean": ({"features": lambda x: x - 1}, "features"),
    "fewer steps": ({"features": lambda x: x[::2]}, "features"),
    "another order": ({"features": lambda x: x[:, ::-1]}, "features"),
    "other weights": ({"weights": 1}, "network"),
    "another decoder": ({"decoder": lambda states: "maybe"}, "decoder"),
    "the reverse decoder": ({"decoder": lambda states: "no" if states[-1, 0] > 0 else "yes"}, "decoder"),
    "no change": ({}, ""),
    "rounding errors": ({"noise": 1e-5}, ""),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_change_is_named(name: str, tmp_path: Path) -> None:
    options, part = CHANGES[name]
    system = Network(**options)
    model = dc.profile(Network(), inputs(), exact=True).abstract(4)
    model.save(tmp_path / "m")
    probes = make_probes(Network(), enumerate_names(inputs()))
    assert [Probe.from_dict(json.loads(json.dumps(probe.to_dict()))) for probe in probes] == list(probes)
    result = changed(system, probes)
    assert (result.part if result else "") == part
    assert system.runs <= 2 or name == "rounding errors"
    if part in ("features", "network"):  # which change the states
        with pytest.raises(dc.MismatchError, match=f"since profiling, the {part} .*changed: for the input '"):
            dc.cover(dc.AbstractModel.load(tmp_path / "m"), system, inputs())
    else:
        dc.cover(dc.AbstractModel.load(tmp_path / "m"), system, inputs())


@pytest.mark.parametrize("name", CHANGES)
def test_a_campaign_goes_on_only_with_what_it_began_with(name: str, tmp_path: Path) -> None:
    options, part = CHANGES[name]
    model = dc.profile(Network(), inputs(), exact=True).abstract(4)
    arguments: dict[str, Any] = {
        "folder": tmp_path,
        "oracle": dc.Disagreement(),
        "mutations": dc.Mutations.series(),
        "workers": 0,
    }
    seeds = inputs(12, seed=3)
    dc.fuzz(Network(), model, seeds, runs=16, **arguments)
    if not part:
        assert len(dc.fuzz(Network(**options), model, seeds, runs=32, **arguments).runs) == 32
        return
    with pytest.raises(dc.MismatchError, match=f"the {part} .*changed: for the input .*another folder") as caught:
        dc.fuzz(Network(**options), model, seeds, runs=32, **arguments)
    assert "\n" not in str(caught.value)
    assert len(dc.CampaignRecord.open(tmp_path).runs) == 16


def test_a_system_without_states_is_compared_by_its_answers() -> None:
    probes = make_probes(Network(states=False), enumerate_names(inputs()))
    assert changed(Network(states=False), probes) is None
    result = changed(Network(states=False, features=lambda x: -x), probes)
    assert result is not None
    assert result.part == "system"


def test_what_is_unsteady_is_not_compared() -> None:
    rng = np.random.default_rng(5)
    dice = Network(decoder=lambda states: int(rng.integers(10**9)))
    assert all(probe.answer is None for probe in make_probes(dice, enumerate_names(inputs())))
    assert changed(dice, make_probes(dice, enumerate_names(inputs()))) is None
    wild = Network(noise=0.5)
    with pytest.warns(RuntimeWarning, match="other states when the input '0' is run again"):
        assert all(probe.states is None for probe in make_probes(wild, enumerate_names(inputs())))
    with pytest.warns(RuntimeWarning, match="other states when the input '0' is run again"):
        assert dc.profile(wild, inputs(), exact=True).probes


class Stateful(nn.Module):
    """A network that begins where the last call ended, unless it is told to forget that."""

    def __init__(self, *, forgets: bool) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.lstm, self.forgets = nn.LSTM(3, 8, batch_first=True), forgets
        self.last: tuple[torch.Tensor, ...] | None = None

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        fits = self.last is not None and self.last[0].shape[1] == len(x) and not self.forgets
        outputs, last = self.lstm(x, self.last if fits else None)
        self.last = tuple(part.detach() for part in last)
        labels: torch.Tensor = outputs[:, -1].argmax(-1)
        return labels


def test_a_network_that_keeps_a_state_between_calls_is_named() -> None:
    data = [x.astype(np.float32) for x in inputs()]
    with pytest.warns(RuntimeWarning, match="keeps a state between calls, reset it at the start of each run"):
        dc.profile(dc.TorchSystem(Stateful(forgets=False).eval(), "lstm"), data)
    dc.profile(dc.TorchSystem(Stateful(forgets=True).eval(), "lstm"), data)  # without a warning


def test_one_answer_that_rounding_may_have_changed_is_a_near_tie() -> None:
    probes = make_probes(Network(), enumerate_names(inputs()))
    answers = iter(["other", "no", "yes", "no"])
    tie = Network(noise=1e-6, decoder=lambda states: next(answers))
    right = [probe.answer for probe in probes]
    answers = iter(["other", *right[1:]])
    assert changed(tie, probes) is None
    answers = iter(["other", "another", *right[2:]])
    result = changed(tie, probes)
    assert result is not None
    assert result.part == "decoder"


numbers = st.floats(-10, 10, width=32)
answers = st.recursive(
    st.one_of(st.text(max_size=5), st.integers(-5, 5), st.booleans(), st.none(), numbers),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=3), inner, max_size=3)),
    max_leaves=6,
)


@given(answers, answers)
def test_answers_of_all_kinds_are_compared(one: Any, other: Any) -> None:
    probes = make_probes(Network(decoder=lambda states: one), enumerate_names(inputs(4)))
    assert changed(Network(decoder=lambda states: one), probes) is None
    result = changed(Network(decoder=lambda states: other), probes)
    if json.dumps(one) == json.dumps(other):
        assert result is None
    elif isinstance(one, str | int) and one is not None and type(one) is type(other):
        assert result is not None


def test_short_inputs_are_kept_and_long_ones_are_not() -> None:
    sound = dc.Audio(np.linspace(-1, 1, 300, dtype=np.float32), 8000)
    system = Network(features=lambda x: np.asarray(x.samples)[:60].reshape(20, 3))  # type: ignore[attr-defined]
    (short,) = make_probes(system, [("short", sound)])
    assert np.array_equal(short.input.samples, sound.samples)
    assert short.input.rate == 8000
    (long,) = make_probes(system, [("long", dc.Audio(np.zeros(10**5, np.float32), 8000))])
    assert long.input is None
    assert changed(Network(), [long]) is None  # there is nothing to run


def test_profiles_and_models_without_probes_still_load(tmp_path: Path) -> None:
    profile = dc.profile(Network(), inputs(), exact=True)
    bare = replace(profile, probes=())
    bare.save(tmp_path / "p")
    bare.abstract(4).save(tmp_path / "m")
    for name, load in (("p", dc.Profile.load), ("m", dc.AbstractModel.load)):
        loaded = load(tmp_path / name)
        assert loaded.probes == ()
        loaded.check(Network(weights=1))
    assert bare == profile
    assert bare.abstract(4) == profile.abstract(4)


def test_replay_says_what_changed(tmp_path: Path) -> None:
    class Shouting(toy.Reader):
        def run(self, batch: Sequence[str]) -> list[dc.Run]:
            return [replace(run, output=run.output.upper()) for run in super().run(batch)]

    record = toy.campaign(tmp_path, runs=32)
    assert record.change(toy.Reader()) is None
    assert "the decoder changed: for the input 't" in str(record.change(Shouting()))


def test_a_batch_and_another_precision_are_no_change() -> None:
    generator = torch.Generator().manual_seed(0)
    net = nn.LSTM(3, 16, batch_first=True).eval()
    for weight in net.parameters():
        nn.init.uniform_(weight, -0.5, 0.5, generator=generator)
    system = dc.TorchSystem(net, transcribe=lambda output: int(output[0][-1].argmax()))
    probes = make_probes(system, enumerate_names([value.astype(np.float32) for value in inputs()]))
    assert changed(dc.TorchSystem(net.double(), transcribe=lambda output: int(output[0][-1].argmax())), probes) is None


def enumerate_names(values: Sequence[Array]) -> list[tuple[str, Any]]:
    return [(str(number), value) for number, value in enumerate(values)]
