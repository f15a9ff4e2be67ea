"""Draws all pictures from the table of results alone."""

import pathlib

from dpjax.plotting import style
from experiments.papers import concave, domino, interval, tree
from experiments.records import Row
from experiments.settings import Settings


def draw(rows: list[Row], settings: Settings, out: pathlib.Path) -> None:
    """Writes papers_interval, papers_rec_concave, papers_tree_log and papers_domino as PNG and SVG."""
    with style.house():
        interval.draw(rows, settings["interval"], out / "papers_interval")
        concave.draw(rows, settings["concave"], out / "papers_rec_concave")
        tree.draw(rows, settings["tree"], out / "papers_tree_log")
        domino.draw(rows, settings["domino"], out / "papers_domino")
