"""Combs: hard datasets for the interior point problem, and the only ones that fit domains of 2^(2^20) points.

A comb is a multiset of points 0^k 1^(bits - k), k leading zeros and then ones. Its trie is a path with one leaf hanging from each
node, so the levels of TreeLog's path are the numbers k themselves and can be given any law: no data are harder for TreeLog. And all
points with large k lie in a tiny part of the domain: no data are harder for mechanisms that pay for the domain's size. A point is
stored as the one number k, however long it is.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Int

from dpjax.core.pytree import frozen
from dpjax.data.points import Points
from dpjax.domains import wide
from dpjax.domains.trie import Trie

# How k is drawn: two values at the very end of the domain (the points 0 and 1) or in the middle of the levels; uniformly over all levels;
# log-uniformly, from either end; all at one level.
FAMILIES = ("0 and 1", "middle", "every level", "first levels", "last levels", "one point")


def zeros(key: Array, rows: int, n: Int[Array, ""], bits: Int[Array, ""], family: Int[Array, ""]) -> Int[Array, "rows"]:
    """k for each of n points, in decreasing order, so that the points increase; 0 in the rows behind them.

    Args:
      key: PRNG key.
      rows: capacity.
      n: number of points.
      bits: 1 to 2^20.
      family: index of one of `FAMILIES`.

    >>> zeros(jax.random.key(0), 3, jnp.int32(2), jnp.int32(8), jnp.int32(FAMILIES.index("0 and 1"))).tolist()
    [8, 7, 0]
    """
    index = jnp.arange(rows, dtype=jnp.int32)
    uniform = jax.random.uniform(key, (rows,), jnp.float32)
    span = bits.astype(jnp.float32)
    log_uniform = jnp.minimum(jnp.exp(uniform * jnp.log1p(span)).astype(jnp.int32) - 1, bits)
    draws = [
        bits - index % 2,
        bits // 2 - index % 2,
        jnp.minimum((uniform * (span + 1)).astype(jnp.int32), bits),
        log_uniform,
        bits - log_uniform,
        jnp.broadcast_to(bits // 2, (rows,)),
    ]
    k = jnp.where(index < n, jnp.maximum(jnp.stack(draws)[family], 0), -1)
    return jnp.maximum(-jnp.sort(-k), 0)


def points(k: Int[Array, "rows"], n: Int[Array, ""], bits: Int[Array, ""], limbs: int) -> Points:
    """The comb as wide points.

    >>> comb = points(jnp.array([3, 1], jnp.int32), jnp.int32(2), jnp.int32(4), 1)
    >>> wide.to_ints(comb.x)
    [1, 7]
    """
    return Points(x=wide.largest(bits - k, limbs), n_valid=n, ordered=True)


@frozen
class Comb(Trie):
    """The trie of a comb; `k` holds the points' numbers of leading zeros, in decreasing order."""

    k: Int[Array, "rows"]
    n_valid: Int[Array, ""]
    bits: Int[Array, ""]

    @property
    def rows(self) -> int:
        return self.k.shape[0]

    def shared(self, i: Int[Array, "*#n"], j: Int[Array, "*#n"]) -> Int[Array, "*#n"]:
        return jnp.where(self.k[i] == self.k[j], self.bits, jnp.minimum(self.k[i], self.k[j]))

    def turns(self, i: Int[Array, ""], depth: Int[Array, ""]) -> Bool[Array, ""]:
        return depth >= self.k[i]


def is_interior(
    k: Int[Array, "rows"],
    n: Int[Array, ""],
    bits: Int[Array, ""],
    point: Int[Array, ""],
    length: Int[Array, ""],
    upper: Bool[Array, ""],
) -> Bool[Array, ""]:
    """Whether the first `length` bits of a point of the comb, then all ones (upper) or zeros, lie between its ends.

    Args:
      k, n, bits: the comb; n >= 1.
      point: the point's index; -1 for the prefix 0...0.
      length, upper: see `dpjax.optimizers.interior_point.walk.Answer`.
    """
    most, least = k[0], k[jnp.maximum(n - 1, 0)]  # leading zeros of the least and of the greatest point
    own = jnp.where(point < 0, bits, k[jnp.maximum(point, 0)])
    in_zeros = length <= own  # the prefix is 0...0, the element 0...0 1...1 or 0
    as_zeros = jnp.where(upper, length, bits)
    between_teeth = ~in_zeros & ~upper & (length < bits)  # 0^own 1...1 0...0, just below the point itself
    leading = jnp.where(in_zeros, as_zeros, own)
    return jnp.where(between_teeth, (own >= least) & (own < most), (leading >= least) & (leading <= most))
