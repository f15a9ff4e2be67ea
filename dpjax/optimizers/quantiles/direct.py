"""Quantiles at any fractions, one run of an interior point solver for each.

Its plain twin is `dpjax.verify.plain.quantiles.direct_laws`.
"""

import functools
import math
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array, Float, Int, UInt32

from dpjax.accounting import ADD_OR_REMOVE_ONE, Guarantee
from dpjax.core import arguments
from dpjax.core.logspace import all_happen, any_fails
from dpjax.core.pytree import frozen, static
from dpjax.data.points import Points
from dpjax.domains import wide
from dpjax.domains.events import Accurate, Interval
from dpjax.optimizers.quantiles import base
from dpjax.optimizers.quantiles.base import Quantiles, Stretch


@frozen
class DirectQuantiles(Quantiles):
    """Quantiles at any fractions, one run of the solver for each on the 2m points around its rank; build it by `direct`.

    An event of its law is an interval for each quantile, (low, high) with a row each: that every **run** answers in its own. Answers are
    released in order, which moves no rank error above the largest, so what is said of ranks holds for them as well.

    Attributes:
      solver: of `dpjax.optimizers.interior_point`.
      fractions: F for each wanted fraction F 2^-32, increasing.
      m: half the points of a slice.
      delta: the total one, at which "optimal" composes.
      capacity: rows of a slice (static).
      accountant: "basic" or "optimal" (static).
    """

    solver: Any
    fractions: UInt32[Array, "quantiles"]
    m: Int[Array, ""]
    delta: Float[Array, ""]
    capacity: int = static()
    accountant: str = static()

    @property
    def bits(self) -> Any:
        """Of the domain."""
        return self.solver.bits

    @property
    def limbs(self) -> int:  # type: ignore[override]
        """Of a point."""
        return self.solver.limbs

    def draw(self, key: Array, points: Points) -> Any:
        runs = jax.vmap(self.solver)(jax.random.split(key, self.fractions.shape[0]), self.slices(points))
        return base.in_order(runs)

    def slices(self, points: Points) -> Points:
        """The 2m points around each rank, stacked."""
        low, high = base.ends(self.bits, self.limbs)
        stretch = Stretch(x=points.x, first=jnp.int32(0), stop=points.n_valid, low=low, high=high)
        m = jnp.asarray(self.m, jnp.int32)
        return jax.vmap(lambda k: stretch.window(k - m, 2 * m, self.capacity))(self.ranks(points))

    def ranks(self, points: Points) -> Int[Array, "quantiles"]:
        """The wanted ranks k(n)."""
        return base.nearest_rank(self.fractions, points.n_valid)

    def law(self, points: Points, intervals: Interval) -> Float[Array, "2"]:
        return all_happen(self.each(points, intervals))

    def each(self, points: Points, intervals: Interval) -> Float[Array, "quantiles 2"]:
        """The law of each run; they are independent."""
        return jax.vmap(self.solver.probability)(self.slices(points), intervals)

    def check_event(self, event: Any) -> Interval:
        rows = {np.shape(leaf)[:1] for leaf in jax.tree.leaves(event)}
        if rows != {self.fractions.shape}:
            raise ValueError(f"event must have a row for each of the {self.fractions.size} quantiles, got {event!r}")
        return jax.vmap(self.solver.check_event)(event)

    def event(self, points: Points, event: Interval | Accurate) -> Interval:
        """Accurate: at most error n ranks away."""
        if isinstance(event, Interval):
            return event
        n = points.n_valid.astype(float)
        # The literal definition, ranks / n <= error: correctly rounded division makes 29 of 100 meet 0.29.
        near = jnp.round(event.error * n) + jnp.asarray([-1.0, 0.0, 1.0], float)
        meets = jnp.where(near / n <= event.error, near, 0.0)
        return self.near(points, jnp.max(meets).astype(jnp.int32))

    def near(self, points: Points, ranks: Int[Array, ""]) -> Interval:
        """Answers at most t ranks away: #{x <= z} >= k - t and #{x < z} <= k + t: between positions k - t - 1 and k + t (from 0)."""
        wanted = self.ranks(points)
        at = jnp.stack([wanted - ranks - 1, wanted + ranks])
        x = points.x[jnp.clip(at, 0, points.rows - 1)]
        bottom, top = base.ends(self.bits, self.limbs)
        low = wide.select(at[0] < 0, bottom[None], x[0])
        high = wide.select(at[1] < points.n_valid, x[1], top[None])
        return jax.vmap(Interval.closed)(low, high)

    def laws(self, points: Any, *, rank_error: ArrayLike) -> Float[Array, "quantiles 2"]:
        """(P[within `rank_error` ranks], P[not, or bottom]) for each quantile, exactly; the runs are independent.

        Args:
          points: as for a call.
          rank_error: t >= 0, an integer; see `rank_errors`. With t = m - 1 it is the law of the solver's own success.
        """
        if not arguments.is_traced(rank_error):
            rank_error = arguments.integer(
                "rank_error", np.asarray(rank_error)[()], at_least=0, at_most=base.MOST_POINTS
            )
        return _laws(self, self.fit(points), jnp.asarray(rank_error, jnp.int32))

    def listed(self) -> int:
        return self.solver.listed() ** self.fractions.size

    def masses(self, points: Points, outputs: int) -> Float[Array, "outcomes"]:
        """Of (z_1, ..., z_q), z_q running fastest; only those in order have any."""
        q = self.fractions.size
        size = round(outputs ** (1 / q))
        laws = jax.vmap(lambda one: self.solver.masses(self.solver.prepare(one), size))(self.slices(points))
        joint = functools.reduce(jnp.multiply.outer, list(laws[:, :-1])).reshape(-1)
        answers = np.sort(np.stack(np.unravel_index(np.arange(outputs), (size,) * q)), axis=0)
        sorted_place = np.ravel_multi_index(tuple(answers), (size,) * q)
        return jnp.append(jnp.zeros_like(joint).at[sorted_place].add(joint), any_fails(laws[:, -1]))

    def guarantee(self) -> Guarantee:
        """All quantiles together, under ADD_OR_REMOVE_ONE."""
        return self.guarantee_under(ADD_OR_REMOVE_ONE)

    def guarantee_under(self, relation: str) -> Guarantee:
        """q runs at distance 2: under either relation a slice changes by one replacement; see the package."""
        each = base.at_distance_two(self.solver, relation)
        return base.composed(self.accountant, {each: self.fractions.shape[0]}, self.delta)

    def sample_size(self, *, alpha: float, beta: float) -> int:
        """Points with which all ranks are within alpha n of f n, with probability 1 - beta: ceil((m - 1/2) / alpha).

        The rank of an answer is within m - 1 of k(n), which is within 1/2 of f n.

        Raises:
          ValueError: 2m is below what the solver needs to fail with probability at most beta / q on each slice.
        """
        alpha = arguments.known_fraction("alpha", alpha)
        base.require(self.solver, int(self.m), arguments.known_fraction("beta", beta) / self.fractions.shape[0])
        return math.ceil((int(self.m) - 0.5) / alpha)


@jax.jit
def _laws(quantiles: DirectQuantiles, points: Points, rank_error: Array) -> Float[Array, "k 2"]:
    points = quantiles.prepare(points)
    return quantiles.each(points, quantiles.near(points, rank_error))


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
      solver: of `dpjax.optimizers.interior_point`, on the domain of the points.
      fractions: each strictly between 0 and 1, increasing; rounded to multiples of 2^-32.
      m: half the points of a slice, and the error in ranks.
      beta: what all runs together may fail with: 2m points must suffice for the solver at beta / q.
      accountant: of the q runs, "basic" or "optimal".
      delta: the total one, for "optimal".
      allow_unproved: take any m. The guarantee holds; no accuracy is proved.

    Formal guarantees: q runs of the solver at distance 2, q the number of fractions, under ADD_OR_REMOVE_ONE and, at the same price,
    under REPLACE_ONE. Slices may overlap. Not promised: floating-point side channels; a cryptographic generator.

    Raises:
      TypeError, ValueError: an argument out of range, fractions that do not increase, slices too small for the solver.

    >>> from dpjax.optimizers import interior_point
    >>> direct(solver=interior_point.exponential(bits=24, epsilon=1.0), fractions=[0.5], m=15)
    Traceback (most recent call last):
    ...
    ValueError: m must be >= 19 for the solver to fail with probability <= 0.1, got 15
    """
    rounded = _rounded(fractions)
    width = base.half_width(solver, m, runs=len(rounded), beta=beta, allow_unproved=allow_unproved)
    each: Any = np.asarray(rounded, np.uint32)
    return DirectQuantiles(solver=solver, fractions=each, **width, **base.composition(accountant, delta))


def _rounded(fractions: Any) -> list[int]:
    """Increasing multiples of 2^-32."""
    if isinstance(fractions, str) or np.ndim(fractions) != 1:
        raise TypeError(f"fractions must be a list of numbers between 0 and 1, got {fractions!r}")
    values = [arguments.known_fraction("fractions", fraction) for fraction in fractions]
    rounded = [round(value * 2**32) for value in values]
    if not rounded or any(a >= b for a, b in zip([0, *rounded], [*rounded, 2**32], strict=True)):
        raise ValueError(f"fractions must increase strictly, by 2^-32 at least, and hold one or more; got {values}")
    return rounded
