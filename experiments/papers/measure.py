"""Measures all rows; each picture's own file knows its numbers."""

from experiments.papers import concave, domino, interval, tree
from experiments.records import Row
from experiments.runner import Context
from experiments.settings import Settings


def measure(settings: Settings, context: Context) -> list[Row]:
    """All rows: panels "interval: ...", "concave: ...", "tree: ...", "domino: ..."."""
    return [
        *interval.measure(settings["interval"], context),
        *concave.measure(settings["concave"], context),
        *tree.measure(settings["tree"], context),
        *domino.measure(settings["domino"], context),
    ]
