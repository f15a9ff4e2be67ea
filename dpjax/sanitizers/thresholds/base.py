"""Base of sanitizers of thresholds by noisy counts: a count for every point, and a database from estimates.

A threshold c_j counts the points below j. Estimates F(j) of these numbers, j = 0, ..., 2^d, with F(0) = 0 and F(2^d) = n, which is public,
are those of a database iff they do not fall. Noisy ones do. **The running maximum of F, clipped to [0, n], is a database, and no worse**:
if |F(j) - t(j)| <= E for all j and t does not fall, then t(j) - E <= F(j) <= max_{i <= j} F(i) <= max_{i <= j} t(i) + E = t(j) + E, and t
lies between 0 and n. (Clamping every count at 0 would be worse: each of 2^d empty points would weigh half the mean size of a noise.)
"""

from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int, Shaped

from dpjax.core import sums
from dpjax.data.algorithm import sound
from dpjax.data.points import Points
from dpjax.data.weighted import Weighted, table
from dpjax.sanitizers.base import OfCounts, domain

MOST_BITS = 16


class DenseCounts(OfCounts):
    """A sanitizer that counts every one of the 2^d points; the output is a `Weighted` database of total n.

    Attributes:
      epsilon: the total epsilon.
      points: 2^d.
    """

    epsilon: Any
    points: int

    def prepare(self, points: Points | Weighted) -> Int[Array, "points"]:
        return table(points, self.points)

    def draw(self, key: Array, counts: Int[Array, "points"]) -> tuple[Weighted, Bool[Array, ""], Any]:
        return self.database(self.estimate(self.noisy(key, counts))), jnp.bool_(True), {}

    def noisy(self, key: Array, counts: Int[Array, "points"]) -> Any:
        """The noisy counts, the only part that uses the data."""
        raise NotImplementedError

    def estimate(self, released: Any) -> Shaped[Array, "points"]:
        """The estimated count of every point, of any sign."""
        raise NotImplementedError

    def database(self, estimates: Shaped[Array, "points"]) -> Weighted:
        """Estimated counts as a database of total n; see the module."""
        n = jnp.asarray(self.n, float)
        below = jnp.clip(sums.running_max(sums.running(estimates[:-1])).astype(float), 0.0, n)
        weights = jnp.diff(below, prepend=0.0, append=n)
        x = jnp.arange(self.points, dtype=jnp.uint32)[:, None]
        return Weighted.kept(x, weights, weights > 0)

    def sound(self) -> Bool[Array, ""]:
        return sound(self) & (jnp.asarray(self.n, float) >= 1)


def dense_domain(bits: int, n: Any) -> dict[str, Any]:
    """The fields of a sanitizer that counts every point."""
    fields = domain(bits, n, at_most=MOST_BITS)
    return {**fields, "points": 1 << int(fields["bits"])}


def added(key: Array, noise: Any, counts: Int[Array, "points"], **given: Any) -> Int[Array, "points"]:
    """Counts with integer noise, in the integer type of the counts: the noise itself has 32 bits."""
    return counts + noise(key, np.zeros(counts.shape, np.int32), **given).astype(counts.dtype)
