"""Quantiles at any fractions, one run of an interior point solver for each.

Its plain twin is `dpjax.verify.plain.quantiles.direct_laws`.
"""

import math
from collections.abc import Sequence
from typing import Any

import jax
import numpy as np
from jaxtyping import Array, Float, Int, UInt32

from dpjax.accounting import ADD_OR_REMOVE_ONE, Guarantee
from dpjax.accounting.bounded import BOUNDED
from dpjax.core import arguments
from dpjax.core.pytree import frozen, static
from dpjax.data.points import Points
from dpjax.domains.events import Interval
from dpjax.optimizers.quantiles import base
from dpjax.optimizers.quantiles.base import OnSlices
from dpjax.optimizers.quantiles.independent import IndependentQuantiles
from dpjax.optimizers.quantiles.ranked import rounded_fractions


@frozen
class DirectQuantiles(OnSlices, IndependentQuantiles):  # type: ignore[override]
    """Quantiles at any fractions, one run of the solver for each on the 2m points around its rank; build it by `direct`.

    Attributes:
      solver: a solver of `dpjax.optimizers.interior_point`.
      fractions: F for each wanted fraction F 2^-32, increasing.
      m: half the points of a slice.
      delta: the total delta at which "optimal" and "bounded" compose.
      capacity: rows of a slice (static).
      accountant: "basic", "optimal" or "bounded" (static).
    """

    solver: Any
    fractions: UInt32[Array, "quantiles"]
    m: Int[Array, ""]
    delta: Float[Array, ""]
    capacity: int = static()
    accountant: str = static()

    def draw(self, key: Array, points: Points) -> Any:
        runs = jax.vmap(self.solver)(jax.random.split(key, self.fractions.shape[0]), self.slices(points))
        return base.in_order(runs)

    def slices(self, points: Points) -> Points:
        """The 2m points around each rank, stacked."""
        return base.around(self, points, self.ranks(points))

    def each(self, points: Points, intervals: Interval) -> Float[Array, "quantiles 2"]:
        return jax.vmap(self.solver.probability)(self.slices(points), intervals)

    def pmfs(self, points: Points, size: int) -> Float[Array, "quantiles outcomes"]:
        return jax.vmap(lambda one: self.solver.masses(self.solver.prepare(one), size))(self.slices(points))

    def guarantee(self) -> Guarantee:
        """The guarantee of all quantiles together, under ADD_OR_REMOVE_ONE."""
        return self.guarantee_under(ADD_OR_REMOVE_ONE)

    def guarantee_under(self, relation: str) -> Guarantee:
        """q runs at distance 2: under either relation a slice changes by one replacement; see the package."""
        each, runs = base.at_distance_two(self.solver, relation), self.fractions.shape[0]
        return base.composed(self.accountant, self.solver, each, runs, float(self.delta))

    def sample_size(self, *, alpha: float, beta: float) -> int:
        """The number of points for which all ranks are within alpha n of f n, with probability 1 - beta: ceil((m - 1/2) / alpha).

        The rank of an answer is within m - 1 of k(n), which is within 1/2 of f n.

        Raises:
          ValueError: 2m is below what the solver needs to fail with probability at most beta / q on each slice.
        """
        alpha = arguments.known_fraction("alpha", alpha)
        base.require(self.solver, int(self.m), arguments.known_fraction("beta", beta) / self.fractions.shape[0])
        return math.ceil((int(self.m) - 0.5) / alpha)


def direct(
    *,
    solver: Any,
    fractions: Sequence[float],
    m: int,
    beta: float = 0.1,
    accountant: str = "basic",
    delta: float | None = None,
    allow_unproved: bool = False,
) -> DirectQuantiles:
    """Quantiles at `fractions` of the points, each from the 2m points around its rank; `direct(fractions=[0.5])` is the median.

    Args:
      solver: a solver of `dpjax.optimizers.interior_point`, on the domain of the points.
      fractions: from 0 to 1, increasing; rounded to multiples of 2^-32 (`rounded_fractions`).
      m: half the points of a slice, and the error in ranks.
      beta: the failure probability of all runs together: 2m points must suffice for the solver at beta / q.
      accountant: how the q runs are composed, "basic" or "optimal"; or "bounded", for solvers whose losses lie in an interval.
      delta: the total delta, for all but "basic".
      allow_unproved: accept any m. The guarantee holds; no accuracy is proved.

    Formal guarantees: q runs of the solver at distance 2, q the number of fractions, under ADD_OR_REMOVE_ONE and, at the same price,
    under REPLACE_ONE. Slices may overlap. Not promised: protection from floating-point side channels; a cryptographic generator.

    Raises:
      TypeError, ValueError: an argument out of range, fractions that do not increase, slices too small for the solver.

    >>> from dpjax.optimizers import interior_point
    >>> direct(solver=interior_point.exponential(bits=24, epsilon=1.0), fractions=[0.5], m=15)
    Traceback (most recent call last):
    ...
    ValueError: m must be >= 19 for the solver to fail with probability <= 0.1, got 15
    """
    rounded = rounded_fractions(fractions)
    width = base.half_width(solver, m, runs=len(rounded), beta=beta, allow_unproved=allow_unproved)
    each: Any = np.asarray(rounded, np.uint32)
    composition = base.composition(accountant, delta, solver, by_ranges=BOUNDED)  # no run depends on another
    return DirectQuantiles(solver=solver, fractions=each, **width, **composition)
