"""The pytest plugin: `pytest --deepcruiser FOLDER` runs a regression suite, one test item per finding.

Nothing of DeepCruiser is imported before a suite is run, so the plugin costs other projects' tests nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from deepcruiser.findings.suite import Case, Suite

#: The systems that were loaded, by the name that was typed.
_systems = pytest.StashKey[dict[str, Any]]()


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("deepcruiser")
    group.addoption(
        "--deepcruiser",
        action="append",
        default=[],
        metavar="FOLDER",
        help="Run the regression suite in this folder, which `deepcruiser export --suite` wrote; repeatable.",
    )
    group.addoption(
        "--deepcruiser-system", metavar="FILE.py:NAME", help="Run this system instead of the one that the suite names."
    )


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "deepcruiser: a test of a regression suite written by DeepCruiser")
    config.stash[_systems] = {}
    suites = [str(path) for path in _suites(config)]
    if not suites:
        return
    for path in suites:
        if not Path(path).is_file():
            raise pytest.UsageError(f"--deepcruiser: there is no suite in {str(Path(path).parent)!r}")
    if config.args_source is not pytest.Config.ArgsSource.ARGS:  # only the suite was requested
        config.args[:] = []
    config.args += [path for path in suites if path not in config.args]


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    if file_path.name == "suite.json" and file_path.resolve() in _suites(parent.config):
        return SuiteFile.from_parent(parent, path=file_path)
    return None


class SuiteFile(pytest.File):
    """A suite as a collection of tests."""

    def collect(self) -> Iterator[pytest.Item]:
        from deepcruiser.errors import DeepCruiserError
        from deepcruiser.findings.suite import Suite

        try:
            suite = Suite.read(self.path.parent)
        except DeepCruiserError as error:
            raise self.CollectError(str(error)) from None
        for case in suite.cases:
            yield SuiteItem.from_parent(self, name=_name(case), suite=suite, case=case)


class SuiteItem(pytest.Item):
    """A test of a suite: it passes if the system's answer is right now."""

    def __init__(self, *, suite: Suite, case: Case, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.suite, self.case = suite, case
        self.add_marker("deepcruiser")
        self.extra_keyword_matches.update((case.id, case.symptom[0], case.symptom[-1]))
        if case.known:
            self.add_marker(pytest.mark.xfail(reason=case.known))

    def runtest(self) -> None:
        from deepcruiser.findings.suite import run_case

        judged = run_case(self.case, self._system(), self.suite.oracle, limit_seconds=self.suite.limit_seconds)
        if judged.kind:
            raise StillFailingError(self.case, judged.kind, judged.output, judged.score)

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        from deepcruiser.errors import DeepCruiserError

        if isinstance(excinfo.value, StillFailingError | DeepCruiserError):
            return str(excinfo.value)
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, None, str]:
        return self.path, None, self.case.title

    def _system(self) -> Any:
        from deepcruiser.findings.suite import located_system
        from deepcruiser.systems.load import load_system

        name = self.config.getoption("--deepcruiser-system") or located_system(self.suite)
        systems = self.config.stash[_systems]
        if name not in systems:
            systems[name] = load_system(name)
        return systems[name]


class StillFailingError(AssertionError):
    """A test of a suite fails: the expected and the actual answer."""

    def __init__(self, case: Case, kind: str, output: Any, score: float) -> None:
        got = f"{output!r} (score {score:.2f})" if kind == "wrong" else f"{kind}: {output}"
        steps = " -> ".join(_step(change) for change in case.recipe)
        from deepcruiser.errors import printable

        lines = [
            case.title,
            f"  expected:   {case.reference!r}",
            f"  got:        {got}",
            f"  when found: {case.output!r}",
            f"  input:      {case.path}",
            f"  made of:    {case.seed}: {steps}",
            f"  why:        {case.why}",
        ]
        super().__init__("\n".join(printable(line, width=400) for line in lines))


def _suites(config: pytest.Config) -> list[Path]:
    folders = config.getoption("--deepcruiser")
    return [(Path(config.invocation_params.dir) / folder).resolve() / "suite.json" for folder in folders]


def _name(case: Case) -> str:
    words = re.sub(r"[^a-z0-9]+", "-", case.title.partition(":")[0].lower()).strip("-")
    return f"{words[:60]}-{case.id}"


def _step(change: Any) -> str:
    parameters = ", ".join(f"{name}={value}" for name, value in change.items() if name != "name")
    return f"{change['name']}({parameters})"
