"""Draws the picture from the table of results alone."""

import pathlib

from dpjax.plotting import style
from experiments import captions, exponents
from experiments.multi_points.measure import MASSES
from experiments.records import Row
from experiments.settings import Settings

# By series: colour and label.
LOOKS = {
    "PointLearner": (style.COLOURS[2], "PointLearner (MULTI Algorithm 5)"),
    "histogram": (style.COLOURS[5], "histogram of labelled points"),
    "generic": (style.COLOURS[4], "GenericLearner on a released histogram"),
    "direct sum, optimal": (style.COLOURS[3], "direct sum of LearnPoints, optimal composition"),
    "pure direct sum": (style.COLOURS[1], "direct sum, pure, improper (hashing)"),
    "pure, proper": (style.COLOURS[6], "direct sum, pure, proper"),
    "pure histogram": (style.COLOURS[0], "histogram of all labelled points, pure"),
}


def draw(rows: list[Row], settings: Settings, out: pathlib.Path) -> None:
    """Writes multi_points_least_n as PNG and SVG."""
    title = (
        f"Least n that learns k points at once to population error {settings['alpha']:g} {captions.success(settings)}",
        f"{captions.privacy(settings)}, {settings['bits']} bits, {len(MASSES)} points of masses {min(MASSES)} to {max(MASSES)}, trials",
    )
    with style.house():
        exponents.draw_least_n(rows, out / "multi_points_least_n", title=title, looks=LOOKS)
