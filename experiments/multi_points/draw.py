"""The picture, from the table alone."""

import pathlib

from dpjax.plotting import style
from experiments import captions, exponents
from experiments.multi_points.measure import MASSES
from experiments.records import Row
from experiments.settings import Settings

COLOUR = {
    "PointLearner": style.COLOURS[2],
    "histogram": style.COLOURS[5],
    "generic": style.COLOURS[4],
    "direct sum, optimal": style.COLOURS[3],
    "pure direct sum": style.COLOURS[1],
    "pure, proper": style.COLOURS[6],
}
LABEL = {
    "PointLearner": "PointLearner (Algorithm 5)",
    "histogram": "histogram of labelled points",
    "generic": "GenericLearner on a released histogram",
    "direct sum, optimal": "direct sum of LearnPoints, optimal composition",
    "pure direct sum": "direct sum, pure, improper (hashing)",
    "pure, proper": "direct sum, pure, proper",
}


def draw(rows: list[Row], settings: Settings, out: pathlib.Path) -> None:
    """Writes multi_points_least_n as PNG and SVG."""
    title = (
        f"Least n that learns k points at once to population error {settings['alpha']:g} {captions.success(settings)}",
        f"{captions.privacy(settings)}, {settings['bits']} bits, {len(MASSES)} points of masses {min(MASSES)} to {max(MASSES)}, trials",
    )
    with style.house():
        exponents.draw_least_n(rows, out / "multi_points_least_n", title=title, colours=COLOUR, labels=LABEL)
