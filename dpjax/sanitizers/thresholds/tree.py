"""Counts of all dyadic intervals, made consistent by least squares (Hay, Rastogi, Miklau, Suciu 2010).

Level k, for k = 1, ..., d, cuts X_d into 2^k intervals of equal length; each of the d levels is a histogram at epsilon/d, of L1
sensitivity 2 under REPLACE_ONE, so that all together are epsilon-private by basic composition. Level 0 is n, which is public.

The noisy counts contradict each other: those of two halves do not add up to that of the whole. Two passes find the consistent counts
nearest to them in least squares, in time linear in their number. Upwards, the best estimate of a node's count, from its noisy count h and
from what lies below it, with l levels from the node to the leaves, both included, is

    z = (2^(l-1) / (2^l - 1)) h + ((2^(l-1) - 1) / (2^l - 1)) (sum of its children's z),

with weights by inverse variances: 1 for h and 2 v(l-1) for the children, where v(l) = 2^(l-1)/(2^l - 1) is the variance of z. Downwards,
the excess of a node's consistent count over the sum of its children's z is shared by them equally, as they have the same variance. At the
root the count is n, without noise.

The plain twin of the two passes is `dpjax.verify.plain.noisy_counts.consistent`, which solves the normal equations, and that of the law
`dpjax.verify.plain.noisy_counts.law`.
"""

from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from dpjax import bounds
from dpjax.accounting import REPLACE_ONE, Guarantee
from dpjax.core import arguments
from dpjax.core.pytree import frozen, static
from dpjax.mechanisms import geometric
from dpjax.mechanisms.one_sided_geometric import SMALLEST_RATE, checked_rate
from dpjax.sanitizers.thresholds import base
from dpjax.sanitizers.thresholds.base import DenseCounts
from dpjax.sanitizers.thresholds.histogram import SENSITIVITY


@frozen
class Tree(DenseCounts):
    """Noisy counts of dyadic intervals; see the module, and build it by `tree`."""

    bits: Int[Array, ""]
    n: Float[Array, ""]
    epsilon: Float[Array, ""]
    limbs: int = static()
    points: int = static()

    @property
    def _levels(self) -> int:
        return self.points.bit_length() - 1

    def _each(self) -> dict[str, Any]:
        """The budget of one level."""
        return {"epsilon": self.epsilon / self._levels, "sensitivity": SENSITIVITY}

    def levels(self, counts: Int[Array, "points"]) -> list[Int[Array, "nodes"]]:
        """The counts of levels 1, ..., d."""
        found = [counts]
        while found[-1].shape[0] > 2:
            found.append(_pairs(found[-1]))
        return found[::-1]

    def noisy(self, key: Array, counts: Int[Array, "points"]) -> list[Int[Array, "nodes"]]:
        levels = self.levels(counts)
        noisy = base.added(key, geometric.geometric, jnp.concatenate(levels), **self._each())
        return jnp.split(noisy, np.cumsum([level.shape[0] for level in levels])[:-1])

    def estimate(self, released: list[Int[Array, "nodes"]]) -> Float[Array, "points"]:
        return consistent(released, jnp.asarray(self.n, float))

    def log_released(self, counts: Int[Array, "points"], released: list[Int[Array, "nodes"]]) -> Float[Array, ""]:
        """ln P[exactly these noisy counts]."""
        laws = [
            jnp.sum(geometric.log_pmf(noisy, level, **self._each()))
            for noisy, level in zip(released, self.levels(counts), strict=True)
        ]
        return jnp.sum(jnp.stack(laws))

    def sound(self) -> Bool[Array, ""]:
        return super().sound() & (jnp.asarray(self.epsilon, float) >= SMALLEST_RATE * SENSITIVITY * self._levels)

    def guarantee(self) -> Guarantee:
        """(epsilon, 0) under REPLACE_ONE."""
        return Guarantee(float(self.epsilon), 0.0, REPLACE_ONE)

    def sample_size(self, *, alpha: float, beta: float) -> int:
        """`bounds.tree_thresholds`."""
        return bounds.tree_thresholds(int(self.bits), alpha, beta, float(self.epsilon))


def consistent(released: list[Int[Array, "nodes"]], n: Float[Array, ""]) -> Float[Array, "points"]:
    """The counts of the leaves of the consistent tree of total n that is nearest to noisy counts of levels 1, ..., d.

    Meanwhile the nodes of a level are ordered by their reversed bits: children are then the two halves of the level below, as whole
    vectors.
    """
    noisy = [level[_reversed(level.shape[0])].astype(float) for level in released]
    below = [noisy[-1]]  # z, from the leaves up
    for length, level in enumerate(noisy[-2::-1], start=2):
        weight = 2.0 ** (length - 1) / (2.0**length - 1)
        below.append(weight * level + (1 - weight) * _halves(below[-1]))
    counts = n[None]
    for z in below[::-1]:
        missing = (counts - _halves(z)) / 2
        counts = z + jnp.concatenate([missing, missing])
    return counts[_reversed(counts.shape[0])]


def _reversed(nodes: int) -> np.ndarray:
    """0, ..., `nodes` - 1 with their bits in reversed order, for a power of two."""
    order = np.zeros(1, np.int32)
    while order.size < nodes:
        order = np.concatenate([2 * order, 2 * order + 1])
    return order


def _halves(values: Any) -> Any:
    """Sums of the two children of each node, ordered by reversed bits."""
    middle = values.shape[0] // 2
    return values[:middle] + values[middle:]


def _pairs(values: Any) -> Any:
    """Sums of two neighbours."""
    return values[::2] + values[1::2]


def tree(*, bits: int, n: Any, epsilon: Any) -> Tree:
    """Noisy counts of all dyadic intervals, consistent, as a database; see the module.

    Formal guarantees: (epsilon, 0) under REPLACE_ONE, for every n. Not promised: protection from floating-point side channels; a
    cryptographic generator.

    Args:
      bits: d, at most 16.
      n: number of points, public.
      epsilon: at least 2^-24 d, finite.

    Raises:
      TypeError, ValueError: an argument out of range.

    >>> import jax
    >>> from dpjax import Weighted
    >>> from dpjax.domains import wide
    >>> data = Weighted.create(wide.from_ints([3, 200], 8), [600, 400])
    >>> released = tree(bits=8, n=1000, epsilon=1.0)(jax.random.key(0), data).hypothesis
    >>> float(released.threshold_error(data)) < 0.1
    True
    """
    fields = base.dense_domain(bits, n)
    epsilon = checked_rate(arguments.epsilon(epsilon), SENSITIVITY * int(fields["bits"]))
    return Tree(**fields, epsilon=epsilon)
