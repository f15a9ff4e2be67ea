"""The points near wanted quantiles: all that a run of `joint` or `inverse_sensitivity` has to look at where there are many.

A run takes time in proportion to the points. Keep those at ranks within D of each f_j n, and leave out all others: if L_j points are left
out before those around f_j n, what has the rank r there has the rank r - L_j among those that are kept. With targets T_j - L_j, and L of
n and of T_(m+1), each tuple of which no output is D ranks off has the cost that it had. All others weigh exp(-kappa D / (1 - min w)) at
most, before and after, as the utility of `joint` says of outputs that are so far off: r_j + L_j is as far from f_j n as before, or points
were left out between, and then it is further away than D. So D is as many ranks as make them all together weigh less than 2^-53 of what
the right ranks do.
"""

import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Int, UInt32

from dpjax.data.points import Points
from dpjax.optimizers.quantiles.base import ranks


def near(points: Points, fractions: UInt32[Array, "outputs"], size: int) -> tuple[Points, Int[Array, "ends"]]:
    """(so many sorted points around each quantile; how many are left out before 0, before those around each quantile, and in all).

    Where two quantiles are closer than that, what they share counts for both, and the rest follows: all within size / 2 ranks of either is
    kept.

    >>> from dpjax.domains import wide
    >>> points = Points.create(wide.from_ints(range(100), 8), 90, ordered=True)
    >>> kept, left_out = near(points, jnp.uint32([2**30, 2**31]), 4)
    >>> wide.to_ints(kept.x), left_out.tolist()
    ([20, 21, 22, 23, 43, 44, 45, 46], [0, 20, 39, 82])
    """
    outputs, n = fractions.size, points.n_valid
    before = size * jnp.arange(outputs, dtype=jnp.int32)
    latest = jnp.maximum(n - outputs * size, 0)
    centre, _ = ranks(fractions, n)
    left_out = lax.cummax(jnp.clip(centre.astype(jnp.int32) - size // 2 - before, 0, latest))
    index = (left_out + before)[:, None] + jnp.arange(size, dtype=jnp.int32)[None]
    kept = Points(x=points.x[index.reshape(-1)], n_valid=jnp.minimum(n, outputs * size), ordered=True)
    return kept, jnp.concatenate([jnp.zeros(1, jnp.int32), left_out, latest[None]])
