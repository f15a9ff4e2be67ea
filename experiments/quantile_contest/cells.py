"""Cells drawn at random, so that none is hand-picked: a column, a number of its records, which quantiles, epsilon."""

from typing import NamedTuple

import numpy as np

from experiments.quantile_contest.columns import RULES
from experiments.quantile_trials import Column, column, even
from experiments.settings import Settings


class Cell(NamedTuple):
    """The task of one cell: which quantiles to release, of which column, at which epsilon.

    Attributes:
      name: the name of the column.
      records: the largest number of its values that are used.
      fractions: the fractions of the quantiles.
      epsilon: the privacy parameter of all quantiles together.
    """

    name: str
    records: int
    fractions: tuple[float, ...]
    epsilon: float

    def sample(self, seed: int) -> Column | None:
        """The records; None if the package of a real column is missing, and a line says so."""
        return column(self.name, self.records, seed, RULES)


def cell(number: int, seed: int, settings: Settings) -> Cell:
    """The cell of that number, which depends only on the number, the ranges of the settings and the seed.

    Records and epsilon are uniform on a logarithmic scale. Fractions are evenly spaced with probability 1/2, and otherwise drawn from
    anywhere between 0.02 and 0.98.

    >>> cell(3, 0, {"records": [60, 2000], "epsilons": [0.2, 5.0], "counts": [2]}).fractions == even(2)
    True
    """
    rng = np.random.default_rng([seed, number])
    records, epsilon = (np.exp(rng.uniform(*np.log(settings[name]))) for name in ("records", "epsilons"))
    count = int(rng.choice(settings["counts"]))
    steps = np.sort(rng.choice(np.arange(20, 981), count, replace=False))
    fractions = even(count) if rng.random() < 0.5 else tuple((steps / 1000).tolist())
    return Cell(str(rng.choice(list(RULES))), round(float(records)), fractions, float(f"{epsilon:.2g}"))
