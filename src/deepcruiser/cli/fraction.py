"""Fractions on the command line."""

from __future__ import annotations

from typing import Any

import click


class Fraction(click.ParamType[float]):
    """0.6 or 60%."""

    name = "FRACTION"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        text = str(value).strip()
        try:
            fraction = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
        except ValueError:
            self.fail(f"{text!r} is not a fraction; use 0.6 or 60%", param, ctx)
        if not 0 < fraction <= 1:
            self.fail(f"{text!r} must be above 0 and at most 1; use 0.6 or 60%", param, ctx)
        return fraction
