"""The places of equal points, chosen so that an output in the cell [a, a + 1) of their value can have any rank: a + v_1, ..., a + v_k.

v is the van der Corput sequence 1/2, 1/4, 3/4, 1/8, 5/8, ...: v_i has the binary digits of i behind the point, in reverse. The i-th copy
has the same place however many copies there are, so one more point adds one place and moves none: the number of points below y rises by 1
for all y beyond that place, and for no other. (Evenly spread places i / (k + 1) would all move. Take two outputs 0.34 and 0.6 in a cell:
when one point becomes two, the first gets a point below it, while the second had one already. So the gap between them loses a point, and
both gaps beside it gain one.) Neighbours among the first k places are at least 1/(2k) and at most 2/k apart.

>>> (place(jnp.arange(1, 6, dtype=jnp.int32), jnp.int32(5)) >> 29).tolist()  # eight times v_1, ..., v_5, in order
[1, 2, 4, 5, 6]
"""

import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Int, UInt32

DIGITS = 31  # binary digits of the number of a copy


def place(index: Int[Array, "*s"], copies: Int[Array, "*#s"]) -> UInt32[Array, "*s"]:
    """2^32 times the index-th smallest of v_1, ..., v_copies.

    A dyadic interval of length 2^-j holds the v_i of all i with the same last j digits. So, digit by digit, the number of those in its left
    half is known.
    """
    copies = jnp.broadcast_to(copies, index.shape)

    def digit(j: Array, state: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        index, residue, found = state
        left = jnp.where(copies >= residue, ((copies - residue) >> (j + 1)) + 1, 0) - (residue == 0).astype(jnp.int32)
        right = index > left
        half = jnp.uint32(1) << (jnp.uint32(31) - j.astype(jnp.uint32))
        step = jnp.int32(1) << j
        index, residue = jnp.where(right, index - left, index), jnp.where(right, residue + step, residue)
        return index, residue, jnp.where(right, found | half, found)

    start = index, jnp.zeros_like(index), jnp.zeros(index.shape, jnp.uint32)
    return lax.fori_loop(jnp.int32(0), jnp.int32(DIGITS), digit, start)[2]
