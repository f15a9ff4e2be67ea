"""The points near the wanted quantiles: where there are many points, a run that weighs outputs by their ranks needs no others.

For `joint` and `inverse_sensitivity` (`rank_exponential` has a simpler argument): a run takes time in proportion to the number of points.
Keep the points at ranks within D of each f_j n, and leave out all others. If L_j points are left out before those around f_j n, an output
of rank r there has the rank r - L_j among the points that are kept. Subtract L_j from the target T_j, and the number L of all points left
out from n and from T_(m+1). Then each tuple with no output D ranks off keeps its cost. All other tuples weigh at most
exp(-kappa D / (1 - min w)), before and after, by the utility bound of `joint` for outputs that are so far off: either r_j + L_j is as far
from f_j n as before, or points in between were left out, and then it is further away than D. So D is chosen large enough that all these
tuples together weigh less than 2^-53 of what the right ranks weigh.
"""

import math

import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Int, UInt32

from dpjax.data.points import Points
from dpjax.optimizers.quantiles.base import ranks
from dpjax.optimizers.quantiles.scales import LN2

NEGLIGIBLE = 53 * LN2  # the nats by which what weighs nothing weighs less than the rest


def near(points: Points, fractions: UInt32[Array, "outputs"], size: int) -> tuple[Points, Int[Array, "ends"]]:
    """(`size` sorted points around each quantile; how many are left out before 0, before those around each quantile, and in all).

    Where the points around two quantiles overlap, the second block begins right behind the first: all points within size / 2 ranks of
    either quantile are kept.

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


def block(size: float, quantiles: int, rows: int) -> int:
    """How many points around each quantile a run processes: `size` or more, a power of two; 0, for all rows, unless that halves them.

    >>> block(100.0, 3, 10**6), block(100.0, 3, 700)
    (128, 0)
    """
    size = 1 << math.ceil(math.log2(min(size, rows) + 2))
    return size if 2 * quantiles * size <= rows else 0
