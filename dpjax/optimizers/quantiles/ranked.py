"""Base of quantiles whose errors are measured in ranks: events, and the law of each quantile."""

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array, Float, Int

from dpjax.core import arguments, show
from dpjax.data.algorithm import few_points
from dpjax.data.points import Points
from dpjax.domains import wide
from dpjax.domains.events import Accurate, Interval, intervals
from dpjax.optimizers.quantiles import base
from dpjax.optimizers.quantiles.base import Quantiles


class RankedQuantiles(Quantiles):
    """Quantiles at any fractions. An event of the law is one interval for each quantile: (low, high), with one row each."""

    def ranks(self, points: Points) -> Int[Array, "quantiles"]:
        """The wanted ranks k(n)."""
        return base.nearest_rank(self.fractions, points.n_valid)

    def each(self, points: Points, intervals: Interval) -> Float[Array, "quantiles 2"]:
        """The law of each quantile."""
        raise NotImplementedError(
            f"{type(self).__name__} has no law of each quantile; see `failure_bound`, and `exactly` of an answer"
        )

    def failure_bound(self, points: Points, intervals: Interval) -> Float[Array, ""]:
        """An upper bound on P[some quantile is not in its interval], exact where there is a law. The points must be sorted."""
        return self.law(points, intervals)[1]

    def check_event(self, event: Any) -> Interval:
        return intervals(event, self.fractions.size, self.limbs + 1, f"{self.fractions.size} quantiles")

    def event(self, points: Points, event: Interval | Accurate) -> Interval:
        """The intervals of an event; `Accurate` means at most error n ranks away."""
        if isinstance(event, Interval):
            return event
        return self.near(points, jnp.floor(event.limit(points.n_valid)).astype(jnp.int32))

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
        """(P[within `rank_error` ranks], P[not within them, or bottom]) for each quantile, exactly.

        Args:
          points: as for a call.
          rank_error: t >= 0, an integer; see `rank_errors`. For `direct`, t = m - 1 gives the law of the solver's own success.
        """
        if not arguments.is_traced(rank_error):
            rank_error = arguments.integer(
                "rank_error", np.asarray(rank_error)[()], at_least=0, at_most=base.MOST_POINTS
            )
        return _laws(self, self.fit(points), jnp.asarray(rank_error, jnp.int32))

    def listed(self) -> int:
        return few_points(self.bits) ** self.fractions.size


@jax.jit
def _laws(quantiles: RankedQuantiles, points: Points, rank_error: Array) -> Float[Array, "k 2"]:
    points = quantiles.prepare(points)
    return quantiles.each(points, quantiles.near(points, rank_error))


def rounded_fractions(fractions: Any) -> list[int]:
    """The fractions `in_units`, which must increase."""
    listed = arguments.several("fractions", fractions)
    values = [arguments.known("fractions", fraction, at_least=0.0, at_most=1.0) for fraction in listed]
    rounded = in_units(values)
    if not values or np.any(np.diff(rounded) <= 0):
        rule = "increase strictly, be at least 2^-32 apart, and be one or more"
        raise ValueError(f"fractions must {rule}, got {show.listed(values)}")
    return rounded.tolist()


def in_units(fractions: Sequence[float]) -> np.ndarray:
    """Fractions from 0 to 1 in units of 2^-32, rounded to integers from 1 to 2^32 - 1.

    So 0 becomes 2^-32, and 1 becomes 1 - 2^-32. For fewer than 2^31 points neither moves f n by half a rank: the wanted ranks stay 0 and n.
    """
    return np.clip(np.rint(np.multiply(fractions, 2.0**32)), 1, 2**32 - 1).astype(np.int64)
