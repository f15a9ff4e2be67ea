"""Noisy binary search for a length (BNS §3.2, the first attempt): as many comparisons as bits.

Its plain twin is `dpjax.verify.plain.interval_search.length_search_law`.
"""

from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float, Int

from dpjax.accounting import closed_form_epsilon
from dpjax.core import random
from dpjax.core.pytree import frozen
from dpjax.domains import wide
from dpjax.domains.ordered import Pieces
from dpjax.learners.thresholds import intervals
from dpjax.learners.thresholds.intervals import IntervalLearner


@frozen
class LengthSearch(IntervalLearner):
    """Searches for the least J in {1, ..., 2^d} with a large W(J), then goes on as in `intervals` with 2^j, the least power of two >= J.

    While the candidates low, ..., high are left, it goes left (high = mid) if W(mid) passes for large, else right (low = mid + 1): at most
    d comparisons, each of `accounting.closed_form_epsilon` for a total of 3 epsilon/8 and delta/3; each A_dist has delta/3, too.

    Rounding up keeps what is needed: W(2^j) >= W(J), and 2^(j-1) <= J - 1, so W(2^(j-1)) <= W(J - 1). It also shows why the second attempt
    of the paper is the better one: all comparisons after the first that goes right are within (2^(j-1), 2^j] and change nothing, so this
    search tries the powers of two from the top down, one after the other, and pays for d comparisons. This gives its exact law, too:

        P[j] = P[large at 2^(d-1)] ... P[large at 2^j] P[not large at 2^(j-1)].
    """

    def comparisons(self) -> Int[Array, ""]:
        return jnp.asarray(self.bits, jnp.int32)

    def comparison_epsilon(self) -> Float[Array, ""]:
        delta = jnp.asarray(self.delta, float) / self.shares_of_delta()
        return closed_form_epsilon(self._part(intervals.SEARCH), delta, self.comparisons(), xp=jnp)

    def shares_of_delta(self) -> int:
        return 3

    def search(self, key: Array, pieces: Pieces) -> tuple[Int[Array, ""], Any]:
        """The exponent j, and J."""
        one = wide.one(self.limbs)

        def turn(index: Array, ends: tuple[Array, Array]) -> tuple[Array, Array]:
            low, high = ends
            middle = wide.midpoint(low, high)
            left = random.bernoulli(jax.random.fold_in(key, index), *self.log_turns(pieces, middle))
            is_open = wide.less(low, high)
            return (
                wide.select(is_open & ~left, wide.add(middle, one), low),
                wide.select(is_open & left, middle, high),
            )

        length, _ = lax.fori_loop(0, 32 * self.limbs, turn, (one, pieces.last))
        return wide.bit_length(wide.subtract(length, one)), {"length": length}

    def log_search(self, pieces: Pieces) -> Float[Array, "exponents"]:
        """ln of the law that the class states."""
        exponent = jnp.arange(32 * self.limbs, dtype=jnp.int32)
        large, small = jax.vmap(lambda j: self.log_turns(pieces, wide.power_of_two(j, self.limbs)))(exponent)
        large = jnp.where(exponent < pieces.exponent, large, 0.0)
        last = jnp.concatenate([jnp.zeros(1), small[:-1]])  # at 2^(j-1); none for j = 0
        return jnp.where(exponent <= pieces.exponent, lax.cumsum(large, reverse=True) + last, -jnp.inf)


def length_search(*, bits: int, epsilon: Any, delta: Any, alpha: Any, calibration: str = "proved") -> LengthSearch:
    """Noisy binary search for a length, A_dist, exponential mechanism; see `LengthSearch`.

    Args:
      bits: d, 1 to 4096.
      epsilon: total, > 0, finite.
      delta: total, in (0, 1).
      alpha: approximation parameter, in (0, 1); the learner finds thresholds that err on alpha/2 of the examples.
      calibration: "proved" (the stated guarantee holds) or "printed" (A_dist as in the paper).

    Raises:
      TypeError, ValueError: an argument out of range.
    """
    return LengthSearch(
        **intervals.fields(bits=bits, epsilon=epsilon, delta=delta, alpha=alpha, calibration=calibration)
    )
