"""A histogram: the noisy count of every point of a small domain.

Two-sided geometric noise at epsilon on each of the 2^d counts. Replacing a point lowers one count by 1 and raises another: the counts have
L1 sensitivity 2 under REPLACE_ONE, and the whole is epsilon-private (Theorem 2.24 of BNS, for integers). A threshold is a sum of up to 2^d
noises.

The plain twin of its law is `dpjax.verify.plain.noisy_counts.law`.
"""

from typing import Any

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from dpjax import bounds
from dpjax.accounting import REPLACE_ONE, Guarantee
from dpjax.core import arguments
from dpjax.core.pytree import frozen, static
from dpjax.mechanisms import geometric
from dpjax.mechanisms.one_sided_geometric import SMALLEST_RATE, checked_rate
from dpjax.sanitizers.thresholds import base
from dpjax.sanitizers.thresholds.base import DenseCounts

SENSITIVITY = 2  # L1, of all counts, under REPLACE_ONE


@frozen
class Histogram(DenseCounts):
    """Noisy counts of all points; see the module, and build it by `histogram`."""

    bits: Int[Array, ""]
    n: Float[Array, ""]
    epsilon: Float[Array, ""]
    limbs: int = static()
    points: int = static()

    def noisy(self, key: Array, counts: Int[Array, "points"]) -> Int[Array, "points"]:
        return base.added(key, geometric.geometric, counts, epsilon=self.epsilon, sensitivity=SENSITIVITY)

    def estimate(self, released: Int[Array, "points"]) -> Int[Array, "points"]:
        return released

    def log_released(self, counts: Int[Array, "points"], released: Int[Array, "points"]) -> Float[Array, ""]:
        """ln P[exactly these noisy counts]."""
        return jnp.sum(geometric.log_pmf(released, counts, epsilon=self.epsilon, sensitivity=SENSITIVITY))

    def sound(self) -> Bool[Array, ""]:
        return super().sound() & (jnp.asarray(self.epsilon, float) >= SMALLEST_RATE * SENSITIVITY)

    def guarantee(self) -> Guarantee:
        """(epsilon, 0) under REPLACE_ONE."""
        return Guarantee(float(self.epsilon), 0.0, REPLACE_ONE)

    def sample_size(self, *, alpha: float, beta: float) -> int:
        """`bounds.histogram_thresholds`."""
        return bounds.histogram_thresholds(int(self.bits), alpha, beta, float(self.epsilon))


def histogram(*, bits: int, n: Any, epsilon: Any) -> Histogram:
    """Noisy counts of all 2^d points, as a database; see the module.

    Formal guarantees: (epsilon, 0) under REPLACE_ONE, for every n. Not promised: protection from floating-point side channels; a
    cryptographic generator.

    Args:
      bits: d, at most 16.
      n: number of points, public.
      epsilon: at least 2^-24, finite.

    Raises:
      TypeError, ValueError: an argument out of range.

    >>> import jax
    >>> from dpjax import Weighted
    >>> from dpjax.domains import wide
    >>> data = Weighted.create(wide.from_ints([3, 200], 8), [600, 400])
    >>> released = histogram(bits=8, n=1000, epsilon=1.0)(jax.random.key(0), data).hypothesis
    >>> float(released.threshold_error(data)) < 0.1
    True
    """
    return Histogram(**base.dense_domain(bits, n), epsilon=checked_rate(arguments.epsilon(epsilon), SENSITIVITY))
