"""Noisy binary search for the power of a length (BNS §3.2, the second attempt): the first learner with polylog(d) examples.

Its plain twin is `dpjax.verify.plain.interval_search.power_search_law`.
"""

from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float, Int

from dpjax.core import bits as packed
from dpjax.core import random
from dpjax.core.pytree import frozen
from dpjax.domains import wide
from dpjax.domains.ordered import Pieces
from dpjax.learners.thresholds import intervals
from dpjax.learners.thresholds.intervals import IntervalLearner


@frozen
class PowerSearch(IntervalLearner):
    """Searches for the least j in {0, ..., d} with a large W(2^j), then goes on as in `intervals`.

    While the candidates low, ..., high are left, it goes left (high = mid) if W(2^mid) passes for large, else right (low = mid + 1): at
    most c = ceil(log2(d + 1)) comparisons of 3 epsilon/(8 c) each. Delta is split between the two runs of A_dist.
    """

    def comparisons(self) -> Int[Array, ""]:
        return packed.bit_length(jnp.asarray(self.bits, jnp.int32))  # ceil(log2(d + 1))

    def comparison_epsilon(self) -> Float[Array, ""]:
        return self._part(intervals.SEARCH) / self.comparisons().astype(float)

    def shares_of_delta(self) -> int:
        return 2

    def _most(self) -> int:
        """A number of comparisons that suffices for every d with these limbs."""
        return (32 * self.limbs).bit_length()

    def search(self, key: Array, pieces: Pieces) -> tuple[Int[Array, ""], Any]:
        def turn(index: Array, ends: tuple[Array, Array]) -> tuple[Array, Array]:
            low, high = ends
            middle = (low + high) // 2
            large, small = self.log_turns(pieces, wide.power_of_two(middle, self.limbs))
            left = random.bernoulli(jax.random.fold_in(key, index), large, small)
            is_open = low < high
            return jnp.where(is_open & ~left, middle + 1, low), jnp.where(is_open & left, middle, high)

        return lax.fori_loop(0, self._most(), turn, (jnp.int32(0), pieces.exponent))[0], {}

    def log_search(self, pieces: Pieces) -> Float[Array, "exponents"]:
        """ln P of the path to each leaf, the product of its turns."""
        leaf = jnp.arange(32 * self.limbs, dtype=jnp.int32)
        large, small = jax.vmap(lambda j: self.log_turns(pieces, wide.power_of_two(j, self.limbs)))(leaf)
        low, high, log_p = jnp.zeros_like(leaf), jnp.broadcast_to(pieces.exponent, leaf.shape), jnp.zeros(leaf.shape)
        for _ in range(self._most()):
            middle = (low + high) // 2
            left = leaf <= middle
            log_p = log_p + jnp.where(low < high, jnp.where(left, large[middle], small[middle]), 0.0)
            low, high = jnp.where(left | (low == high), low, middle + 1), jnp.where(left, middle, high)
        return jnp.where(leaf <= pieces.exponent, log_p, -jnp.inf)


def power_search(*, bits: int, epsilon: Any, delta: Any, alpha: Any, calibration: str = "proved") -> PowerSearch:
    """Noisy binary search for a power of two, A_dist, exponential mechanism; see `PowerSearch`.

    Args:
      bits: d, 1 to 4096.
      epsilon: total, > 0, finite.
      delta: total, in (0, 1).
      alpha: approximation parameter, in (0, 1); the learner finds thresholds that err on alpha/2 of the examples.
      calibration: "proved" (the stated guarantee holds) or "printed" (A_dist as in the paper).

    Raises:
      TypeError, ValueError: an argument out of range.
    """
    return PowerSearch(
        **intervals.fields(bits=bits, epsilon=epsilon, delta=delta, alpha=alpha, calibration=calibration)
    )
