"""How results look in notebooks, and the notebooks of examples/, run cell by cell."""

from __future__ import annotations

import ast
import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import deepcruiser as dc
from deepcruiser import notebook, progress
from deepcruiser.notebook import Html, card
from tests.support import toy

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"
NASTY = "<script>alert('x')</script>\x1b[2J\u202e"


class Tags(HTMLParser):
    """The elements of a page, and its text."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.text = ""
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.tags.append(tag)

    def handle_data(self, data: str) -> None:
        self.text += data


@pytest.fixture(autouse=True)
def drawn_nowhere() -> Iterator[None]:
    pytest.importorskip("matplotlib").use("agg")
    pyplot = pytest.importorskip("matplotlib.pyplot")
    yield
    pyplot.close("all")


@pytest.mark.parametrize("name", ["texts", "speech"])
def test_a_notebook_runs(name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Every cell and its output: the value of its last line, unless that ends with a semicolon."""
    pytest.importorskip("pandas")
    monkeypatch.syspath_prepend(EXAMPLES)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    shown: list[str] = []
    namespace: dict[str, Any] = {"__name__": "__main__"}
    for cell in json.loads((EXAMPLES / f"{name}.ipynb").read_text(encoding="utf-8"))["cells"]:
        if cell["cell_type"] == "code":
            assert cell["outputs"] == [], "notebooks are kept without outputs"
            source = "".join(cell["source"])
            value = run_cell(source, namespace)
            if value is not None and not source.endswith(";"):
                shown.append(value._repr_html_() if hasattr(value, "_repr_html_") else repr(value))
    sys.modules.pop("text_classifier", None)
    text = "".join(shown)
    assert "Campaign in" in text
    assert "iframe" in Tags(text).tags
    assert ("audio" in Tags(text).tags) == (name == "speech")


def run_cell(source: str, namespace: dict[str, Any]) -> Any:
    tree = ast.parse(source)
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, "cell", "exec"), namespace)
    return None if last is None else eval(compile(ast.Expression(last.value), "cell", "eval"), namespace)  # type: ignore[attr-defined]


class Hostile(toy.Reader):
    """A reader whose answers are no HTML."""

    def run(self, batch: Any) -> list[dc.Run]:
        return [dc.Run(f"{run.output} {NASTY}", run.trace) for run in super().run(batch)]


def test_texts_stay_texts(tmp_path: Path) -> None:
    campaign = toy.campaign(tmp_path / "a", system=Hostile(), runs=64)
    assert campaign.failed
    for shown in (campaign, campaign.failed[0], dc.find(campaign).findings[0]):
        page = Tags(shown._repr_html_())
        assert "script" not in page.tags
        assert "alert('x')" in page.text
    frame = Tags(dc.report(campaign)._repr_html_())
    assert frame.tags == ["iframe"]
    assert "<b>&lt;i&gt;</b>" in card("x", [(Html("<b>&lt;i&gt;</b>"),)])


def test_plots_and_frames(tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    campaign = toy.campaign(tmp_path / "a", runs=48)
    assert campaign.model is not None
    frame = campaign.to_dataframe()
    assert isinstance(frame, pandas.DataFrame)
    assert len(frame) == 48
    assert (frame["outcome"] == "failed").sum() == len(campaign.failed)
    ax = campaign.plot()
    (line,) = ax.lines
    criterion = campaign.spec.build_guide().criteria[0]
    assert len(line.get_xdata()) == 49
    assert line.get_ydata()[-1] == pytest.approx(100 * campaign.coverage(criterion).value)
    image = campaign.model.plot().images[0].get_array()
    visits = np.nansum(10 ** np.ma.filled(image, np.nan))
    assert visits == pytest.approx(campaign.model.origin.steps)


def test_findings_print_themselves(tmp_path: Path) -> None:
    result = dc.find(toy.campaign(tmp_path / "a", runs=48))
    counts, *lines = repr(result).splitlines()
    assert counts.startswith(f"{result.failing_tests} failing tests, {len(result.findings)} finding")
    assert lines == [f"  {finding.id}: {finding.title}" for finding in result.findings]
    shown = Tags(result._repr_html_()).text
    assert all(finding.title in shown for finding in result.findings[:5])


@pytest.mark.parametrize(
    ("missing", "call"),
    [("matplotlib", lambda campaign: campaign.plot()), ("pandas", lambda campaign: campaign.to_dataframe())],
)
def test_what_is_not_installed_is_named(
    missing: str, call: Callable[[Any], Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    campaign = toy.campaign(tmp_path / "a", runs=1)

    def absent(module: str) -> Any:
        raise ImportError(module)

    monkeypatch.setattr(notebook, "import_module", absent)
    with pytest.raises(dc.InputError, match=rf"needs {missing}: pip install 'deepcruiser\[plot\]'"):
        call(campaign)


def test_a_player_holds_the_sound() -> None:
    page = dc.Audio(np.zeros(800), 8000)._repr_html_()
    assert Tags(page).tags == ["div", "b", "audio"]
    assert "0.1" in Tags(page).text


def test_bars_where_somebody_sees_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[tuple[Any, ...]] = []

    @contextmanager
    def bars() -> Iterator[Callable[..., None]]:
        yield lambda *what: shown.append(what)

    data, system = ["()", "(()", "[ab]"], toy.Reader()
    monkeypatch.setattr(progress, "_bars", bars)
    dc.profile(system, data)
    assert not shown, "the tests have no terminal"
    monkeypatch.setattr(progress, "is_watched", lambda: True)
    model = dc.profile(system, data).abstract(partitions=3)
    dc.cover(model, system, data)
    assert {what[0] for what in shown} == {"fitting the projections", "profiling", "covering"}
    dc.fuzz(system, model, data, folder=tmp_path, oracle=dc.Disagreement(), mutations=toy.MUTATIONS, runs=8, workers=0)
    assert shown[-1][1:3] == (100, 100)
    assert shown[-1][3].startswith("8 runs, ")
