"""Several kinds of things in uniformly random order, without a sort."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Bool, Int, UInt32

from dpjax.core import bits, random

_ROW = 128  # words: vector instructions run along rows
_MOST_PROBES = 64


def arrangement(key: Array, kinds: int, copies: int) -> Int[Array, "places"]:
    """0, ..., kinds - 1, each `copies` times, in secret order.

    Every place draws a word. Border t, for t = 1, ..., kinds - 1, has exactly t * copies of the words below it, and a place is of the kind
    of the last border at or below its word: all orders are equally likely. Only where equal words lie on both sides of it is there no
    border. That does not depend on the order, which is then, afresh, that of 64 random bits a place: uniform, unless two of them
    agree, which has probability below k^2 / 2^65 for k places.
    """
    places = kinds * copies
    key_words, key_sort = jax.random.split(key)
    filled = -(-places // _ROW) * _ROW
    exists = jnp.arange(filled, dtype=jnp.int32) < places
    # What fills the last row is below no border.
    words = jnp.where(exists, random.bits(key_words, filled), np.uint32(2**32 - 1)).reshape(-1, _ROW)
    borders, found = _borders(words, copies * jnp.arange(1, kinds, dtype=jnp.int32), places)
    ordered = bits.tally(words[None] >= borders[:, None, None]).reshape(-1)[:places]

    def sort(state: tuple) -> tuple:
        turn = state[0]  # 0: what does not depend on it would be done before the loop
        order = random.bits(jax.random.fold_in(key_sort, turn), 2 * places)
        sequence = jnp.repeat(jnp.arange(kinds, dtype=jnp.int32), copies)
        return turn + 1, lax.sort((order[:places], order[places:], sequence), num_keys=2, is_stable=False)[2]

    # A loop of no turn or one: under vmap a conditional would always sort.
    return lax.while_loop(lambda state: state[0] < 1, sort, (found.astype(jnp.int32), ordered))[1]


def _borders(
    words: UInt32[Array, "rows 128"], below: Int[Array, "borders"], places: int
) -> tuple[UInt32[Array, "borders"], Bool[Array, ""]]:
    """(borders with so many words below them, whether all were found), by regula falsi: counts of uniform words grow linearly."""

    def probe(state: tuple) -> tuple:
        probes, low, under_low, high, under_high = state
        part, whole = (below - under_low).astype(jnp.float32), (under_high - under_low).astype(jnp.float32)
        # Into the middle of the gap after the last word that belongs below.
        step = ((part + np.float32(0.5)) / (whole + np.float32(1)) * (high - low).astype(jnp.float32)).astype(
            jnp.uint32
        )
        middle = low + jnp.clip(step, 1, jnp.maximum(high - low, 2) - 1)
        middle = jnp.where(under_low == below, low, middle)
        under = jnp.sum(bits.tally(words[:, None] < middle[None, :, None]), axis=1, dtype=jnp.int32)
        left = under <= below
        low, under_low = jnp.where(left, middle, low), jnp.where(left, under, under_low)
        high, under_high = jnp.where(left, high, middle), jnp.where(left, under_high, under)
        return probes + 1, low, under_low, high, under_high

    def unsettled(state: tuple) -> Bool[Array, ""]:
        probes, low, under_low, high, _ = state
        return (probes < _MOST_PROBES) & jnp.any((under_low != below) & (high - low > 1))

    none = jnp.zeros_like(below)
    start = np.int32(0), none.astype(jnp.uint32), none, jnp.full_like(below, 2**32 - 1, jnp.uint32), none + places
    _, low, under_low, _, _ = lax.while_loop(unsettled, probe, start)
    return low, jnp.all(under_low == below)
