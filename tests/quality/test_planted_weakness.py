"""The criteria show a weakness that was planted in a network: it never saw deep nesting.

Measured for the training seeds 0 to 9, 500 tests of each kind, from the least to the greatest:

                                     ordinary tests        deep tests
    wrong answers                    0.0 to  0.2 %         33.8 to 44.6 %
    BSCov      M{3,10}              67.8 to 75.5 %         77.4 to 87.6 %
               M{3,20}              48.0 to 58.8 %         51.4 to 70.9 %
    2-SBCov    M{3,10}              0.23 to 0.92 %         11.5 to 21.4 %
               M{3,20}              0.47 to 1.19 %         18.5 to 27.1 %

                                     tests that visit      tests that do not
                                     a boundary cell
    wrong, of all      M{3,10}      35.7 to 47.1 %         0.2 to  4.2 %
                       M{3,20}      33.4 to 44.5 %         0.0 to  1.0 %
    wrong, of deep     M{3,10}      35.9 to 47.4 %         5.0 to 27.2 %
                       M{3,20}      35.0 to 45.7 %         0.0 to 21.7 %   (6 to 23 tests only)
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pytest

import deepcruiser as dc
from deepcruiser.systems.builtin import brackets

TESTS = 500


@dataclass(frozen=True)
class Outcome:
    """One set of tests: which answers were wrong, and the traces."""

    wrong: npt.NDArray[np.bool_]
    traces: list[dc.Trace]

    @classmethod
    def of(cls, system: dc.System, texts: list[str]) -> Outcome:
        runs = system.run(texts)
        right = [run.output == brackets.verdict(text) for run, text in zip(runs, texts, strict=True)]
        return cls(~np.array(right), [run.traced for run in runs])

    def at_boundary(self, model: dc.AbstractModel) -> npt.NDArray[np.bool_]:
        """Which traces visit a cell one or two steps from the profiled ones."""
        return np.array([len(model.visits(trace).boundary(2)) > 0 for trace in self.traces])


@dataclass(frozen=True)
class Scene:
    profile: dc.Profile
    ordinary: Outcome
    deep: Outcome


@pytest.fixture(scope="module")
def scene() -> Scene:
    system = brackets.load()
    return Scene(
        dc.profile(system, brackets.training_texts(), batch_size=256),
        Outcome.of(system, brackets.ordinary_tests(TESTS)),
        Outcome.of(system, brackets.deep_tests(TESTS)),
    )


@pytest.fixture(scope="module", params=[10, 20], ids="M{{3,{}}}".format)
def model(request: pytest.FixtureRequest, scene: Scene) -> dc.AbstractModel:
    return scene.profile.abstract(request.param)


def test_ordinary_tests_find_next_to_nothing_and_deep_ones_fail(scene: Scene) -> None:
    ordinary, deep = scene.ordinary.wrong.mean(), scene.deep.wrong.mean()
    figures = f"wrong: {ordinary:.1%} of the ordinary tests, {deep:.1%} of the deep ones"
    assert ordinary <= 0.01, figures
    assert deep >= 0.2, figures


def test_the_profiled_region_is_reached_by_both(scene: Scene, model: dc.AbstractModel) -> None:
    """So state coverage does not separate the two."""
    ordinary, deep = (dc.BSCov(model, outcome.traces) for outcome in (scene.ordinary, scene.deep))
    figures = f"BSCov of {model.name}: ordinary {ordinary:.1%}, deep {deep:.1%}"
    assert min(ordinary, deep) >= 0.35, figures
    assert max(ordinary, deep) <= 2 * min(ordinary, deep), figures


def test_deep_tests_go_where_training_never_went(scene: Scene, model: dc.AbstractModel) -> None:
    ordinary, deep = (dc.SBCov(2)(model, outcome.traces) for outcome in (scene.ordinary, scene.deep))
    figures = f"2-SBCov of {model.name}: ordinary {ordinary:.2%}, deep {deep:.2%}"
    assert ordinary <= 0.03, figures
    assert deep >= 0.06, figures
    assert deep >= 5 * ordinary, figures


def test_at_the_boundary_the_network_is_more_often_wrong(scene: Scene, model: dc.AbstractModel) -> None:
    wrong = np.concatenate([scene.ordinary.wrong, scene.deep.wrong])
    at_boundary = np.concatenate([outcome.at_boundary(model) for outcome in (scene.ordinary, scene.deep)])
    there, elsewhere = wrong[at_boundary].mean(), wrong[~at_boundary].mean()
    figures = (
        f"{model.name}: wrong are {there:.1%} of the {at_boundary.sum()} tests that visit the boundary, "
        f"{elsewhere:.1%} of the others"
    )
    assert there >= 0.2, figures
    assert elsewhere <= 0.1, figures


def test_among_deep_tests_too(scene: Scene) -> None:
    """Not only because deep tests reach the boundary and fail: those that stay inside fail less."""
    model = scene.profile.abstract(10)
    at_boundary = scene.deep.at_boundary(model)
    there, inside = scene.deep.wrong[at_boundary].mean(), scene.deep.wrong[~at_boundary].mean()
    figures = (
        f"{model.name}: wrong are {there:.1%} of the {at_boundary.sum()} deep tests that visit the boundary, "
        f"{inside:.1%} of the {(~at_boundary).sum()} that do not"
    )
    assert there > inside, figures


def test_more_ordinary_tests_fill_the_region_but_not_its_boundary(scene: Scene) -> None:
    model = scene.profile.abstract(10)
    few, all_of_them = scene.ordinary.traces[: TESTS // 10], scene.ordinary.traces
    states = [dc.BSCov(model, traces) for traces in (few, all_of_them)]
    boundary = [dc.SBCov(2)(model, traces) for traces in (few, all_of_them)]
    figures = f"{model.name}, {len(few)} and {TESTS} ordinary tests: BSCov {states}, 2-SBCov {boundary}"
    assert states[1] >= states[0] + 0.1, figures
    assert boundary[1] <= 0.03, figures
