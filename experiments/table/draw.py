"""The picture, from the table alone."""

import pathlib
from typing import Any

from dpjax.plotting import style
from experiments import captions
from experiments.records import Row
from experiments.settings import Settings


def draw(rows: list[Row], settings: Settings, out: pathlib.Path) -> None:
    """Writes tables_exponents as PNG and SVG."""
    measured, upper, lower = ([row for row in rows if row.panel == panel] for panel in ("exponent", "upper", "lower"))
    with style.house():
        fig, axes = style.figure(figsize=(8.6, 0.8 + 0.4 * max(len(measured), 3)))
        places = {row.series: -place for place, row in enumerate(measured)}
        _theorems(axes, upper, lower, places)
        below = [row.value - row.low for row in measured]
        above = [row.high - row.value for row in measured]
        axes.errorbar(
            [row.value for row in measured],
            list(places.values()),
            xerr=[below, above],
            fmt="o",
            capsize=2,
            color=style.COLOURS[2],
            label="measured, with interval",
        )
        axes.set_yticks(list(places.values()), list(places))
        axes.set(xlabel="exponent of k in the least n", ylim=(min(places.values(), default=0) - 0.6, 0.6))
        style.title(
            fig,
            "Simultaneous private learning (MULTI §1.3): theorems and measured exponents of k",
            f"{captions.privacy(settings['points'])}, β = {settings['points']['beta']:g}, fitted to the upper half of the k measured",
        )
        style.legend_beside(axes)
        style.save(fig, out / "tables_exponents")


def _theorems(axes: Any, upper: list[Row], lower: list[Row], places: dict[str, int]) -> None:
    """A bar from the lower to the upper bound: a mere stroke where they agree, and one open to the left where nothing is known."""
    least = {row.series: row.value for row in lower}
    for number, row in enumerate(upper):
        low, y = least.get(row.series, -0.1), places[row.series]
        label = None if number else "the theorems: from lower to upper bound"
        axes.plot([low, row.value], [y, y], color="#999999", linewidth=9, solid_capstyle="butt", alpha=0.5, label=label)
        axes.plot([low, row.value], [y, y], "|", color="#666666", markersize=14, markeredgewidth=2)
