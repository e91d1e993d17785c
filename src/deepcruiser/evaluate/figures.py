"""Figures, drawn with matplotlib, which is imported when it is needed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from deepcruiser.errors import InputError
from deepcruiser.files.atomic import atomic_write

Figure = Any

#: The palette of Okabe and Ito, which people with a colour vision deficiency can tell apart.
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#7f7f7f", "#cc79a7", "#e69f00", "#56b4e9", "#000000")
GUIDED, RANDOM, NONE = COLOURS[0], COLOURS[1], COLOURS[3]
STYLE = {
    "axes.grid": True,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlesize": 10,
    "font.size": 9,
    "grid.alpha": 0.25,
    "legend.frameon": False,
    "legend.fontsize": 8,
    "svg.fonttype": "none",
    "svg.hashsalt": "deepcruiser",  # the same numbers give the same file
}


def check_matplotlib() -> None:
    """Raise an error if matplotlib is missing, before hours of work instead of after them."""
    _matplotlib()


def panels(columns: int, rows: int = 1, *, width: float = 2.6, height: float = 2.6, **options: Any) -> tuple[Any, Any]:
    """A figure and its panels."""
    from matplotlib.figure import Figure as Drawn

    figure = Drawn(figsize=(width * columns, height * rows), layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False, **options)
    for axis in axes.flat:
        axis.set_prop_cycle(color=COLOURS)
    return figure, list(axes.flat)


def log_norm(least: float, most: float) -> Any:
    """Colours by the logarithm of a count. A `least` below 1 makes a count of 1 visible."""
    from matplotlib.colors import LogNorm

    return LogNorm(least, max(most, 2 * least))


def save(draw: Callable[[], Figure], folder: Path, name: str) -> None:
    """Draw a figure and write it as SVG and PNG."""
    with _matplotlib().rc_context(STYLE):
        figure = draw()
        for suffix, options in (("svg", {"metadata": {"Date": None}}), ("png", {"dpi": 150})):
            with atomic_write(folder / f"{name}.{suffix}") as file:
                figure.savefig(file, format=suffix, **options)


def _matplotlib() -> Any:
    try:
        import matplotlib
    except ImportError:
        raise InputError("figures need the package matplotlib: pip install 'deepcruiser[evaluate]'") from None
    return matplotlib
