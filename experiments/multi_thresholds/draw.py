"""Draws the picture from the table of results alone."""

import pathlib

from dpjax.plotting import style
from experiments import captions, exponents
from experiments.records import Row
from experiments.settings import Settings

# By series: colour and label.
LOOKS = {
    "ERM": (style.COLOURS[0], "ERM (not private)"),
    "pure direct sum": (style.COLOURS[1], "direct sum, pure"),
    "direct sum, advanced": (style.COLOURS[4], "direct sum, advanced composition as printed"),
    "direct sum, optimal": (style.COLOURS[3], "direct sum, optimal composition"),
    "direct sum, bounded": (style.COLOURS[6], "direct sum, composition by ranges"),
    "RecConcave, optimal": (style.COLOURS[5], "direct sum of RecConcave, optimal composition"),
    "generic": (style.COLOURS[2], "GenericLearner on a private CDF"),
}


def draw(rows: list[Row], settings: Settings, out: pathlib.Path) -> None:
    """Writes multi_thresholds_least_n as PNG and SVG."""
    bits, alpha = settings["bits"], settings["alpha"]
    title = (
        f"Least n that learns k thresholds at once to population error {alpha:g} {captions.success(settings)}",
        f"{captions.privacy(settings)}, {bits} bits, masses at $2^{{{bits - 1}}} \\pm 2^u$, exact laws averaged over data draws",
    )
    with style.house():
        exponents.draw_least_n(rows, out / "multi_thresholds_least_n", title=title, looks=LOOKS)
