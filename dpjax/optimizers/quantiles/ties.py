"""Where equal points are put, so that an output in the cell [a, a + 1) of their value can have any rank: at a + v_1, a + v_2, ..., a + v_k.

v is the van der Corput sequence 1/2, 1/4, 3/4, 1/8, 5/8, ..., the binary digits of i behind the point in reverse. The i-th copy has the
same place however many there are, so one more point is one more place and moves none: the number of points below y rises by 1 for all y
beyond that place, and for no other. (Evenly spread places i / (k + 1) all move. Of two outputs 0.34 and 0.6 in a cell the first has
no point of one below it, and one point of two; the second has one either way: the gap between them loses a point, and both gaps beside it
gain one.) The first k of them are apart by 1/(2k) at least and 2/k at most.

>>> (place(jnp.arange(1, 6, dtype=jnp.int32), jnp.int32(5)) >> 29).tolist()  # eight times v_1, ..., v_5, in order
[1, 2, 4, 5, 6]
"""

import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Int, UInt32

DIGITS = 31  # of the number of a copy


def place(index: Int[Array, "*s"], copies: Int[Array, "*#s"]) -> UInt32[Array, "*s"]:
    """2^32 times the index-th smallest of v_1, ..., v_copies.

    A dyadic interval of length 2^-j holds the v_i of all i with the same last j digits: one digit after the other, it is known how many
    lie in its left half.
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
