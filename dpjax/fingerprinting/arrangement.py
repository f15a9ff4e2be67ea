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

    Every place draws a word. Up to border t, for t = 1, ..., kinds - 1, there are exactly t * copies of the words, and a place is of the
    kind of the last border below its word: all orders are equally likely. Only where equal words would have to lie on both sides is there
    no border. That does not depend on the order, which is then, afresh, that of 64 random bits a place: uniform, unless two of them
    agree, which has probability below k^2 / 2^65 for k places.
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
        turn = state[0]  # 0: what does not depend on it would be done before the loop
        order = random.bits(jax.random.fold_in(key_sort, turn), 2 * places)
        sequence = jnp.repeat(jnp.arange(kinds, dtype=jnp.int32), copies)
        return turn + 1, sorting.sort([order[:places], order[places:]], sequence)[2]

    # A loop of no turn or one: under vmap a conditional would always sort.
    return lax.while_loop(lambda state: state[0] < 1, sort, (found.astype(jnp.int32), ordered))[1]
