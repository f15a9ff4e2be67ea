"""The depth of a point in a multiset, min(#points <= x, #points >= x), as a piecewise constant function on a wide range."""

import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Int, UInt32

from dpjax.domains import wide
from dpjax.domains.ordered import Pieces


def pieces(x: UInt32[Array, "rows limbs"], n_valid: Int[Array, ""], bits: Int[Array, ""], limbs: int) -> Pieces:
    """q(x) = min(#<=x, #>=x) on {0, ..., 2^bits - 1}, for sorted points; rows = 2^b - 1.

    q grows by at most 1 when a point is added, nowhere falls, is >= 1 exactly at interior points and >= n/2 at the median.
    Equal points make one piece of length 1; between different points q is constant. Beyond the domain, at 2^bits, q is 0,
    which is what RecConcave asks for there. Positions get `limbs` limbs, enough for 2^bits + 1.
    """
    rows = x.shape[0]
    index = jnp.arange(rows, dtype=jnp.int32)
    valid = index < n_valid
    beyond, one = wide.power_of_two(bits, limbs), wide.from_uint32(jnp.uint32(1), limbs)
    x = wide.select(valid, wide.resize(x, limbs), beyond[None])
    repeated = wide.equal(x[1:], x[:-1]) & valid[1:]
    first = lax.cummax(jnp.where(jnp.append(False, repeated), 0, index))  # of the points equal to this one
    # A piece at each point, empty but for the last of equal ones, and a piece behind it up to the next.
    behind = wide.select(jnp.append(repeated, False) | ~valid, x, wide.add(x, one[None]))
    at = jnp.where(valid, jnp.minimum(index + 1, n_valid - first), 0)
    after = jnp.where(valid, jnp.minimum(index + 1, n_valid - index - 1), 0)
    starts = jnp.stack([x, behind], axis=1).reshape(2 * rows, limbs)
    values = jnp.stack([at, after], axis=1).reshape(2 * rows)
    return Pieces(
        starts=jnp.concatenate([jnp.zeros((1, limbs), jnp.uint32), starts, beyond[None]]),
        values=jnp.pad(values, 1).astype(float),
        last=wide.subtract(beyond, one),
        end=wide.add(beyond, one),
        exponent=jnp.asarray(bits, jnp.int32),
    )
