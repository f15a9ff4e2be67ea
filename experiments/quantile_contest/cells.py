"""Cells drawn at random, and nothing chosen: a column, so many of its records, which quantiles, epsilon."""

from typing import NamedTuple

import numpy as np

from experiments.quantile_contest.columns import RULES
from experiments.quantile_trials import Column, column, even
from experiments.settings import Settings


class Cell(NamedTuple):
    """What is asked of whom.

    Attributes:
      name: of the column.
      records: at most so many of its values.
      fractions: of the quantiles.
      epsilon: of all of them.
    """

    name: str
    records: int
    fractions: tuple[float, ...]
    epsilon: float

    def sample(self, seed: int) -> Column | None:
        """The records; None if the package of a real column is missing, and a line says so."""
        return column(self.name, self.records, seed, RULES)


def cell(number: int, seed: int, settings: Settings) -> Cell:
    """The cell of that number, which depends on nothing but the ranges of the settings and the seed.

    Records and epsilon are even on a logarithmic scale. Half of the fractions are even ones, the others anywhere from 0.02 to 0.98.

    >>> cell(3, 0, {"records": [60, 2000], "epsilons": [0.2, 5.0], "counts": [2]}).fractions == even(2)
    True
    """
    rng = np.random.default_rng([seed, number])
    records, epsilon = (np.exp(rng.uniform(*np.log(settings[name]))) for name in ("records", "epsilons"))
    count = int(rng.choice(settings["counts"]))
    steps = np.sort(rng.choice(np.arange(20, 981), count, replace=False))
    fractions = even(count) if rng.random() < 0.5 else tuple((steps / 1000).tolist())
    return Cell(str(rng.choice(list(RULES))), round(float(records)), fractions, float(f"{epsilon:.2g}"))
