"""Several kinds of things in uniformly random order, without a sort."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Int

from dpjax.core import bits, random, sorting
from dpjax.domains import selection


def arrangement(key: Array, kinds: int, copies: int) -> Int[Array, "places"]:
    """0, ..., kinds - 1, each `copies` times, in secret order.

    Every place draws a random word. Exactly t * copies of the words are at most border t, for t = 1, ..., kinds - 1, and the kind of a
    place is that of the last border below its word: all orders are equally likely. A border is missing only where equal words would have
    to lie on both sides of it. Whether one is missing does not depend on the order, which is then drawn afresh, as that of 64 random bits
    per place: uniform, unless two of these agree, which has probability below k^2 / 2^65 for k places.
    """
    places = kinds * copies
    key_words, key_sort = jax.random.split(key)
    filled = places + -places % selection.LINE
    exists = jnp.arange(filled, dtype=jnp.int32) < places
    lines = jnp.where(exists, random.bits(key_words, filled), np.uint32(2**32 - 1)).reshape(-1, selection.LINE)
    counts = copies * jnp.arange(1, kinds, dtype=jnp.int32)
    borders, up_to = selection.borders(lines, jnp.int32(places), counts)
    found = jnp.all(up_to == counts)
    ordered = bits.tally(lines[None] > borders[:, None, None]).reshape(-1)[:places]

    def sort(state: tuple) -> tuple:
        turn = state[0]  # 0; what does not depend on it would be computed before the loop
        order = random.bits(jax.random.fold_in(key_sort, turn), 2 * places)
        sequence = jnp.repeat(jnp.arange(kinds, dtype=jnp.int32), copies)
        return turn + 1, sorting.sort([order[:places], order[places:]], sequence)[2]

    # A loop of zero or one iterations: under vmap a conditional would always sort.
    return lax.while_loop(lambda state: state[0] < 1, sort, (found.astype(jnp.int32), ordered))[1]
