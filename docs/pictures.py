"""Draws docs/state-space.svg, the picture of the README: python docs/pictures.py"""

from __future__ import annotations

from pathlib import Path

import numpy as np

import deepcruiser as dc
from deepcruiser.systems import brackets

CELL, GAP, EDGE = 9, 1, 12
COLOURS = {
    "visited in training": "#d5dde6",
    "and by ordinary tests": "#4a90d9",
    "outside, by texts nested deeper": "#e8590c",
}


def reached(model: dc.AbstractModel, system: dc.System, texts: list[str]) -> set[tuple[int, ...]]:
    """The cells that the states go through on the texts."""
    return {tuple(cell) for run in system.run(texts) for cell in model.cells(run.trace)[0].tolist()}


def main() -> None:
    system = brackets.load()
    model = dc.profile(system, brackets.training_texts(), components=2, batch_size=256).abstract(40)
    training = set(map(tuple, model.grid.decode(model.states).tolist()))
    ordinary = reached(model, system, brackets.ordinary_tests())
    deep = reached(model, system, brackets.deep_tests())
    layers = (training - ordinary, training & ordinary, deep - training)

    corner = np.min([*training, *deep], axis=0)
    columns, rows = np.max([*training, *deep], axis=0) - corner + 1
    width, height = columns * (CELL + GAP) + 2 * EDGE, rows * (CELL + GAP) + 2 * EDGE + 66
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        'font-family="Helvetica,Arial,sans-serif" font-size="13" role="img">',
        "<title>Cells of the abstract state space: visited in training, by tests, and outside</title>",
        f'<rect width="{width}" height="{height}" fill="#ffffff"/>',
    ]
    for cells, colour in zip(layers, COLOURS.values(), strict=True):
        for x, y in sorted(cells):
            left, top = EDGE + (x - corner[0]) * (CELL + GAP), EDGE + (rows - 1 - (y - corner[1])) * (CELL + GAP)
            lines.append(f'<rect x="{left}" y="{top}" width="{CELL}" height="{CELL}" rx="2" fill="{colour}"/>')
    for line, (name, colour) in enumerate(COLOURS.items()):
        top = height - 66 + 20 * line
        lines.append(f'<rect x="{EDGE}" y="{top}" width="12" height="12" rx="2" fill="{colour}"/>')
        lines.append(f'<text x="{EDGE + 18}" y="{top + 11}" fill="#333">{name}</text>')
    (Path(__file__).parent / "state-space.svg").write_text("\n".join([*lines, "</svg>", ""]), encoding="utf-8")


if __name__ == "__main__":
    main()
