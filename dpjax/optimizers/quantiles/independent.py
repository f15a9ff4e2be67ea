"""Base of quantiles that are found by independent runs, one for each fraction: their joint law, and their ranks."""

import functools

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from dpjax.core.logspace import all_happen, any_fails
from dpjax.data.points import Points
from dpjax.domains.events import Interval
from dpjax.optimizers.quantiles.ranked import RankedQuantiles


class IndependentQuantiles(RankedQuantiles):
    """Quantiles at any fractions, one run for each.

    An event of the law is one interval for each quantile: (low, high), with one row each. It occurs if every **run** answers in its own
    interval. Answers are released in sorted order, which moves no rank error above the largest, so bounds on ranks hold for them as well.
    """

    def law(self, points: Points, intervals: Interval) -> Float[Array, "2"]:
        return all_happen(self.each(points, intervals))

    def pmfs(self, points: Points, size: int) -> Float[Array, "quantiles outcomes"]:
        """The law of each run on a domain of `size` points, bottom last."""
        raise NotImplementedError

    def masses(self, points: Points, outputs: int) -> Float[Array, "outcomes"]:
        """The masses of all tuples (z_1, ..., z_q), z_q running fastest, then of bottom; tuples that are not sorted have none."""
        q = self.fractions.size
        size = round(outputs ** (1 / q))
        laws = self.pmfs(points, size)
        joint = functools.reduce(jnp.multiply.outer, list(laws[:, :-1])).reshape(-1)
        answers = np.sort(np.stack(np.unravel_index(np.arange(outputs), (size,) * q)), axis=0)
        sorted_place = np.ravel_multi_index(tuple(answers), (size,) * q)
        return jnp.append(jnp.zeros_like(joint).at[sorted_place].add(joint), any_fails(laws[:, -1]))
