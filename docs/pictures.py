"""Draws docs/state-space.svg and docs/criteria/*.svg, the pictures of the README: python docs/pictures.py"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

import deepcruiser as dc
from deepcruiser.systems.builtin import brackets

HERE = Path(__file__).parent
CELL, GAP, EDGE = 9, 1, 12
TRAINED, TESTED, OUTSIDE = "#d5dde6", "#4a90d9", "#e8590c"
NEAR, PALE, DEEP, LINE, WORDS = "#fde5d6", "#edf1f5", "#1864ab", "#9aa6b2", "#333"
COLOURS = {
    "visited in training": TRAINED,
    "and by ordinary tests": TESTED,
    "outside, by texts nested deeper": OUTSIDE,
}
Cell = tuple[int, ...]
Step = tuple[Cell, Cell, Cell]


def svg(width: int, height: int, title: str, lines: Iterable[str], *, scale: float = 1.0) -> str:
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width * scale:g}" '
            f'height="{height * scale:g}" font-family="Helvetica,Arial,sans-serif" font-size="13" role="img">',
            f"<title>{title}</title>",
            f'<rect width="{width}" height="{height}" fill="#ffffff"/>',
            *lines,
            "</svg>",
            "",
        ]
    )


def square(x: float, y: float, side: float, colour: str, more: str = "") -> str:
    return f'<rect x="{x:g}" y="{y:g}" width="{side:g}" height="{side:g}" rx="2" fill="{colour}"{more}/>'


def reached(model: dc.AbstractModel, system: dc.System, texts: list[str]) -> set[Cell]:
    """The cells that the states go through on the texts."""
    return {tuple(cell) for run in system.run(texts) for cell in model.cells(run.traced)[0].tolist()}


def state_space() -> str:
    """The built-in network: the cells that training, ordinary tests and deeper tests visited."""
    system = brackets.load()
    model = dc.profile(system, brackets.training_texts(), components=2, batch_size=256).abstract(40)
    training = set(map(tuple, model.grid.decode(model.states).tolist()))
    ordinary = reached(model, system, brackets.ordinary_tests())
    deep = reached(model, system, brackets.deep_tests())
    layers = (training - ordinary, training & ordinary, deep - training)

    corner = np.min([*training, *deep], axis=0)
    columns, rows = np.max([*training, *deep], axis=0) - corner + 1
    width, height = columns * (CELL + GAP) + 2 * EDGE, rows * (CELL + GAP) + 2 * EDGE + 66
    lines = []
    for cells, colour in zip(layers, COLOURS.values(), strict=True):
        for x, y in sorted(cells):
            left, top = EDGE + (x - corner[0]) * (CELL + GAP), EDGE + (rows - 1 - (y - corner[1])) * (CELL + GAP)
            lines.append(square(left, top, CELL, colour))
    for line, (name, colour) in enumerate(COLOURS.items()):
        top = height - 66 + 20 * line
        lines.append(square(EDGE, top, 12, colour))
        lines.append(f'<text x="{EDGE + 18}" y="{top + 11}" fill="{WORDS}">{name}</text>')
    return svg(width, height, "Cells of the abstract state space: visited in training, by tests, and outside", lines)


class Example:
    """A state of two numbers that turns, fades and is pushed by its inputs; drawn on its grid, and counted by hand.

    What is written under the drawings is counted from plain sets, and has to be what the criteria say.
    """

    SIDE, GAP = 30, 3

    def __init__(self) -> None:
        rng = np.random.default_rng(39)
        training = [self.walk(rng.choice([-1, 0, 1], size=8, p=[0.25, 0.5, 0.25])) for _ in range(5)]
        self.tests = [self.walk(np.array(pushes)) for pushes in ([0, 1, 0, 0, 0, 0], [1, 1, 0, -1, -1, -1, 0, 1])]
        self.model = dc.Profile.of(training, components=2).abstract(partitions=5, input_partitions=3)
        self.trained, self.tested = self.visits(training), self.visits(self.tests)
        self.near = set(map(tuple, self.model.grid.decode(self.model.boundary(2)).tolist()))

    @staticmethod
    def walk(pushes: np.ndarray) -> dc.Trace:
        states = [np.zeros(2)]
        for push in pushes:
            x, y = states[-1]
            states.append(np.array([0.62 * x - 0.62 * y + push, 0.62 * x + 0.62 * y + 0.35 * push]))
        return dc.Trace(np.array(states), pushes[:, None].astype(float))

    def visits(self, traces: Sequence[dc.Trace]) -> tuple[set[Cell], Counter[Step]]:
        """The cells, and how often each step (state, input, next state) was taken."""
        states, steps = set[Cell](), Counter[Step]()
        for trace in traces:
            cells, inputs = ([tuple(cell) for cell in part.tolist()] for part in self.model.cells(trace))
            states.update(cells)
            steps.update(zip(cells, inputs, cells[1:], strict=False))
        return states, steps

    def place(self, cell: Cell) -> tuple[float, float]:
        """The upper left corner of a cell, where that of the cell (0, 0) is at (0, 0)."""
        return cell[0] * (self.SIDE + self.GAP), -cell[1] * (self.SIDE + self.GAP)

    def middle(self, cell: Cell) -> tuple[float, float]:
        x, y = self.place(cell)
        return x + self.SIDE / 2, y + self.SIDE / 2

    def squares(self, cells: Iterable[Cell], colour: str, more: str = "") -> list[str]:
        return [square(*self.place(cell), self.SIDE, colour, more) for cell in sorted(cells)]

    def drawing(
        self, title: str, lines: Iterable[str], shown: set[Cell], counted: float, required: int, *, scale: float = 1.0
    ) -> str:
        """The lines, cut to the cells that are shown, and what was counted of what is required."""
        places = [self.place(cell) for cell in shown]
        (left, top), (right, bottom) = np.min(places, axis=0), np.max(places, axis=0) + self.SIDE
        width, height = int(right - left + 2 * EDGE), int(bottom - top + 2 * EDGE + 20)
        moved = f'<g transform="translate({EDGE - left:g} {EDGE - top:g})">'
        where = f'x="{width / 2:g}" y="{height - 9}" text-anchor="middle" font-size="{13 / scale:.3g}"'
        below = f"{counted:.3g} of {required}: {counted / required:.0%}"
        caption = f'<text {where} fill="{WORDS}">{below}</text>'
        return svg(width, height, title, [moved, *lines, "</g>", caption], scale=scale)

    def paths(self) -> list[str]:
        """The ways of the tests, from cell to cell."""
        lines = []
        for trace in self.tests:
            points = [self.middle(tuple(cell)) for cell in self.model.cells(trace)[0].tolist()]
            joined = " ".join(f"{x:g},{y:g}" for x, y in points)
            lines.append(f'<polyline points="{joined}" fill="none" stroke="{WORDS}" stroke-width="1.3"/>')
            lines += [f'<circle cx="{x:g}" cy="{y:g}" r="2.4" fill="{WORDS}"/>' for x, y in points]
        return lines

    def arrow(self, start: Cell, end: Cell, colour: str) -> str:
        """From a cell to the next, bent so that there and back are two; a ring for a step that stays."""
        (x, y), (u, v) = self.middle(start), self.middle(end)
        if start == end:
            return f'<circle cx="{x:g}" cy="{y - 7:g}" r="5" fill="none" stroke="{colour}" stroke-width="1.6"/>'
        far = float(np.hypot(u - x, v - y))
        along = np.array([u - x, v - y]) / far
        aside = np.array([-along[1], along[0]])
        bend = (np.array([x + u, y + v]) / 2 + 0.16 * far * aside).round(1)
        tip, shaft = np.array([u, v]) - 4 * along, np.array([u, v]) - 10 * along
        left, right = (tip - 7 * along + side * 3.4 * aside for side in (1, -1))
        head = " ".join(f"{a:.1f},{b:.1f}" for a, b in (tip, left, right))
        curve = f"M{x:g},{y:g} Q{bend[0]:g},{bend[1]:g} {shaft[0]:.1f},{shaft[1]:.1f}"
        return (
            f'<path d="{curve}" fill="none" stroke="{colour}" stroke-width="1.6"/>'
            f'<polygon points="{head}" fill="{colour}"/>'
        )

    def bscov(self) -> str:
        trained, tested = self.trained[0], self.tested[0]
        cells = self.squares(trained, TRAINED) + self.squares(trained & tested, TESTED)
        assert len(trained & tested) / len(trained) == dc.BSCov(self.model, self.tests)
        title = "BSCov: cells of training (grey), those that tests visit too (blue)"
        counted, required = len(trained & tested), len(trained)
        return self.drawing(title, cells + self.paths(), trained | tested, counted, required, scale=0.75)

    def sbcov(self) -> str:
        new, shown = self.near & self.tested[0], self.near | self.tested[0]
        cells = self.squares(self.trained[0], TRAINED) + self.squares(self.near, NEAR) + self.squares(new, OUTSIDE)
        assert len(new) / len(self.near) == dc.SBCov(2)(self.model, self.tests)
        title = "2-SBCov: cells one or two steps outside of training (pale), those that tests visit (orange)"
        return self.drawing(title, cells + self.paths(), shown, len(new), len(self.near), scale=0.75)

    def btcov(self) -> str:
        trained, tested = ({(start, end) for start, _, end in steps} for _, steps in (self.trained, self.tested))
        arrows = [self.arrow(*pair, LINE) for pair in sorted(trained - tested)]
        arrows += [self.arrow(*pair, DEEP) for pair in sorted(trained & tested)]
        assert len(trained & tested) / len(trained) == dc.BTCov(self.model, self.tests)
        title = "BTCov: steps of training from cell to cell (grey arrows), those that tests take too (blue)"
        lines = self.squares(self.trained[0], PALE) + arrows
        return self.drawing(title, lines, self.trained[0], len(trained & tested), len(trained))

    def iscov(self) -> str:
        trained, tested = ({(start, read) for start, read, _ in steps} for _, steps in (self.trained, self.tested))
        dots = []
        for start, read in sorted(trained):
            x, y = self.place(start)
            fill, ring = (DEEP, DEEP) if (start, read) in tested else ("#ffffff", LINE)
            at = f'cx="{x + 6 + 9 * read[0]:g}" cy="{y + 15:g}" r="3.4"'
            dots.append(f'<circle {at} fill="{fill}" stroke="{ring}" stroke-width="1.3"/>')
        assert len(trained & tested) / len(trained) == dc.ISCov(self.model, self.tests)
        title = "ISCov: inputs that training read in each cell (rings), those that tests read there too (blue)"
        lines = self.squares(self.trained[0], TRAINED) + dots
        return self.drawing(title, lines, self.trained[0], len(trained & tested), len(trained))

    def wicov(self) -> str:
        (_, trained), (_, tested) = self.trained, self.tested
        reads, pairs = {(start, read) for start, read, _ in tested}, {(start, end) for start, _, end in tested}
        times = Counter[tuple[Cell, Cell]]()
        for (start, read, _), count in trained.items():
            times[start, read] += count
        bars, seen = [], 0.0
        for start, read in sorted(times):
            likely = sum(n for (s, x, end), n in trained.items() if (s, x) == (start, read) and (s, end) in pairs)
            share = likely / times[start, read] if (start, read) in reads else 0
            seen += share
            x, y = self.place(start)
            left = x + 3 + 9 * read[0]
            bars.append(f'<rect x="{left:g}" y="{y + 4:g}" width="6" height="22" fill="#ffffff"/>')
            level = 22 * share
            bars.append(f'<rect x="{left:g}" y="{y + 26 - level:g}" width="6" height="{level:g}" fill="{DEEP}"/>')
        assert abs(seen / len(times) - dc.WICov(self.model, self.tests)) < 1e-12
        title = "WICov: for each input in each cell of training, how much of what usually follows the tests saw (blue)"
        return self.drawing(title, self.squares(self.trained[0], TRAINED) + bars, self.trained[0], seen, len(times))


def main() -> None:
    (HERE / "criteria").mkdir(exist_ok=True)
    (HERE / "state-space.svg").write_text(state_space(), encoding="utf-8")
    example = Example()
    for name in ("bscov", "sbcov", "btcov", "iscov", "wicov"):
        (HERE / "criteria" / f"{name}.svg").write_text(getattr(example, name)(), encoding="utf-8")


if __name__ == "__main__":
    main()
