"""Privacy-loss distributions of dp-accounting, built so that they never understate: losses on a grid, rounded on the safe side.

To compose two of them, both must be on the same grid; dp-accounting's own default is a cell of 1e-4.
"""

import math
from typing import Any

import numpy as np

from dpjax.core import show

CELL = 1e-4  # the cell of the grid of losses that dp-accounting's accountant uses by default
LARGEST_EPSILON = 700.0  # exp(epsilon) must stay a float64; beyond, nothing is promised here
MOST_CELLS = 2**26  # half a GiB; of very small cells, the number would overflow
# Masses on the grid under 8e-28 become infinite loss: long thin tails would only lengthen the convolutions.
_THIN = 2.0**-90
# With more infinite loss than this, nothing is promised: the rest would be lost in a few convolutions.
_HOPELESS = 1.0 - 2.0**-20

Law = tuple[np.ndarray, np.ndarray]  # losses (some may be infinite) and their masses


def on_grid(epsilon: float, interval: float) -> float:
    """`epsilon` rounded up to a multiple of `interval`."""
    steps = math.ceil(epsilon / interval)  # the quotient may have been rounded down to an integer
    return (steps if steps * interval >= epsilon else steps + 1) * interval


def worst(epsilon: float, delta: float, interval: float) -> Any:
    """The loss distribution of the worst mechanism with this guarantee, epsilon rounded up to the grid.

    Its losses are infinite with probability delta, else +epsilon or -epsilon, as randomized response has them.
    """
    from dp_accounting.pld import common, privacy_loss_distribution

    # The budget is rounded, not each of the two losses +-epsilon: the average loss, about epsilon^2 / 2,
    # then moves by epsilon * interval instead of a whole interval.
    rounded = math.inf if epsilon > LARGEST_EPSILON else on_grid(epsilon, interval)
    if rounded > LARGEST_EPSILON + 1.0 or delta > _HOPELESS:
        return nothing_promised(interval)
    parameters = common.DifferentialPrivacyParameters(rounded, delta)
    return privacy_loss_distribution.from_privacy_parameters(parameters, interval)


def discretised(law: Law, opposite: Law | None, interval: float) -> Any:
    """The loss distribution of a pair, each loss split between two grid points.

    Args:
        law: losses ln(P/Q) and their masses under P ("remove").
        opposite: losses ln(Q/P) and their masses under Q ("add"); None if that is the same law.
        interval: the cell of the grid.
    """
    from dp_accounting.pld.privacy_loss_distribution import PrivacyLossDistribution

    masses, infinite = split_masses(law, interval)
    if infinite > _HOPELESS:
        return nothing_promised(interval)
    if opposite is None:
        return PrivacyLossDistribution.create_from_rounded_probability(masses, infinite, interval)
    masses_add, infinite_add = split_masses(opposite, interval)
    return PrivacyLossDistribution.create_from_rounded_probability(
        masses, infinite, interval, True, masses_add, infinite_add, symmetric=False
    )


def nothing_promised(interval: float) -> Any:
    """A distribution with delta = 1 at every epsilon; dp-accounting cannot compose it without a finite loss, which changes nothing."""
    from dp_accounting.pld.privacy_loss_distribution import PrivacyLossDistribution

    return PrivacyLossDistribution.create_from_rounded_probability({0: 1.0}, 1.0, interval)


def split_masses(law: Law, interval: float) -> tuple[dict[int, float], float]:
    """Mass at each grid point, and at infinity.

    A loss l between grid points a and a + h, of mass p, becomes p (1 - exp(a - l)) / (1 - exp(-h)) at a + h and the rest
    at a: the masses under both datasets add up to the old ones, so merging the two points gives the old law back.
    """
    losses, masses = law
    finite = np.isfinite(losses)
    losses, masses, infinite = losses[finite], masses[finite], float(masses[~finite].sum())
    if not len(losses):
        return {}, infinite
    widest = float(np.abs(losses).max())
    if widest > MOST_CELLS * interval:
        least = f"at least {show.at_least(widest / MOST_CELLS, 3)}, so that losses up to {widest:.3g} lie on a grid of 2^26 cells"
        raise ValueError(f"interval must be {least}, got {interval}")
    points = np.floor(losses / interval).astype(np.int64)
    # The quotient may have been rounded up to the next grid point.
    upper = masses * np.maximum(np.expm1(points * interval - losses) / math.expm1(-interval), 0.0)
    start, size = points.min(), np.ptp(points) + 2
    grid = np.bincount(points - start, masses - upper, size) + np.bincount(points - start + 1, upper, size)
    thick = np.flatnonzero(grid > _THIN)
    infinite += float(grid[grid <= _THIN].sum())
    return dict(zip((thick + start).tolist(), grid[thick].tolist(), strict=True)), infinite
