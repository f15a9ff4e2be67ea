"""Search among datasets given by counts: ascent over real counts, rounding, and exchanges of whole records.

A state is (counts, tags): counts of m kinds of records, and a few integers that say the rest (where labels change, which record differs).
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import optax
from jax import lax
from jaxtyping import Array, Float, Int

RATE = 0.2  # of Adam, in ln of a count

Value = Callable[[Array, Array], Array]  # (counts, tags) -> the number to be maximised


def ascend(
    value: Value, logits: Float[Array, "starts m"], tags: Int[Array, "starts t"], total: Array, steps: int
) -> tuple[Float[Array, "starts m"], Float[Array, "starts steps"]]:
    """Adam on `value` of the real counts total * softmax(logits), from every start, one after another in one program.

    Returns:
      (the real counts with the largest value seen, by start; the value of each step).
    """
    adam = optax.adam(RATE)

    def counts(logits: Array) -> Array:
        return total.astype(float) * jax.nn.softmax(logits)

    def climb(logits: Array, tags: Array) -> tuple[Array, Array]:
        def step(state: Any, _: None) -> tuple[Any, Array]:
            logits, momenta, best, best_logits = state
            found, slope = jax.value_and_grad(lambda logits: value(counts(logits), tags))(logits)
            better = found > best
            best, best_logits = jnp.where(better, found, best), jnp.where(better, logits, best_logits)
            # Where a failure probability is lost in rounding its logarithm is -inf, and there is nothing to climb.
            with jax.numpy_dtype_promotion("standard"):  # Adam raises a float to the power of its count of steps
                moves, momenta = adam.update(jnp.where(jnp.isfinite(slope), -slope, 0.0), momenta)
            return (optax.apply_updates(logits, moves), momenta, best, best_logits), found

        start = (logits, adam.init(logits), jnp.asarray(-jnp.inf, logits.dtype), logits)
        (*_, best_logits), path = lax.scan(step, start, length=steps)
        return counts(best_logits), path

    return lax.map(lambda start: climb(*start), (logits, tags))


def rounded(weights: Float[Array, "m"], total: Int[Array, ""]) -> Int[Array, "m"]:
    """Integer counts with this total: all rounded down, then one more for those with the largest remainders.

    >>> rounded(jnp.array([1.8, 0.7, 0.5]), jnp.int32(3)).tolist()
    [2, 1, 0]
    """
    whole = jnp.floor(weights + 1e-9).astype(jnp.int32)
    order = jnp.argsort(whole.astype(weights.dtype) - weights, stable=True)
    missing = total - jnp.sum(whole, dtype=jnp.int32)
    more = (
        jnp.zeros_like(whole).at[order].set((jnp.arange(whole.shape[0], dtype=jnp.int32) < missing).astype(jnp.int32))
    )
    return whole + more


def records(counts: Int[Array, "m"], rows: int) -> tuple[Int[Array, "rows"], Int[Array, ""]]:
    """(the kinds of all records in order, padded to `rows` with the last kind; how many of them count).

    >>> [found.tolist() for found in records(jnp.array([2, 0, 1]), 4)]
    [[0, 0, 2, 2], 3]
    """
    ends = jnp.cumsum(counts, dtype=jnp.int32)
    kinds = jnp.searchsorted(ends, jnp.arange(rows, dtype=jnp.int32), side="right").astype(jnp.int32)
    return jnp.minimum(kinds, counts.shape[0] - 1), ends[-1]


def exchange(
    key: Array,
    value: Value,
    counts: Int[Array, "starts m"],
    tags: Int[Array, "starts t"],
    kinds: Int[Array, "t"],
    *,
    rounds: int,
    width: int,
) -> tuple[Int[Array, "starts m"], Int[Array, "starts t"], Float[Array, "starts more"]]:
    """Rounds of `width` random exchanges, of which each round keeps the best if it is no worse than the current state.

    An exchange turns some records of one kind into another, or draws the tags anew, or both. Tag i is one of 0, ..., kinds[i] - 1.

    Returns:
      (counts, tags, the value at the start and after each round), by start.
    """

    def worth(counts: Array, tags: Array) -> Array:
        """The value; -inf for data that a law refuses, whose value is NaN."""
        found = value(counts, tags)
        return jnp.where(jnp.isnan(found), -jnp.inf, found)

    def one(start: Any) -> Any:
        key, counts, tags = start

        def turn(state: Any, key: Array) -> Any:
            counts, tags, best = state
            proposals = jax.vmap(lambda key: _proposal(key, counts, tags, kinds))(jax.random.split(key, width))
            found = jax.vmap(worth)(*proposals)
            winner = jnp.argmax(found)
            keep = found[winner] >= best
            chosen = [jnp.where(keep, new[winner], old) for new, old in zip(proposals, (counts, tags), strict=True)]
            best = jnp.where(keep, found[winner], best)
            return (*chosen, best), best

        first = worth(counts, tags)
        (counts, tags, _), path = lax.scan(turn, (counts, tags, first), jax.random.split(key, rounds))
        return counts, tags, jnp.append(first, path)

    return lax.map(one, (jax.random.split(key, counts.shape[0]), counts, tags))


def begin(key: Array, m: int, kinds: Int[Array, "t"]) -> tuple[Float[Array, "m"], Int[Array, "t"]]:
    """A random start, as logits and tags: from nearly even counts to a few kinds that make up nearly all records."""
    key_spread, key_logits, key_tags = jax.random.split(key, 3)
    logits = jax.random.uniform(key_spread, minval=0.1, maxval=4.0) * jax.random.normal(key_logits, (m,))
    return logits, jax.random.randint(key_tags, kinds.shape, 0, kinds, jnp.int32)


def _proposal(key: Array, counts: Array, tags: Array, kinds: Array) -> tuple[Array, Array]:
    """An exchange; in one of eight cases a new start, in one a shift of all records by a few kinds: ways out of local optima."""
    key_which, key_begin, key_exchange, key_shift = jax.random.split(key, 4)
    total = jnp.sum(counts, dtype=jnp.int32)
    logits, drawn = begin(key_begin, counts.shape[0], kinds)
    anew = rounded(total.astype(float) * jax.nn.softmax(logits), total)
    changed = _exchange(key_exchange, counts, tags, drawn)
    shifted = jnp.roll(counts, jax.random.randint(key_shift, (), -4, 5))
    which = jax.random.randint(key_which, (), 0, 8)
    moved = jnp.where(which == 0, anew, jnp.where(which == 1, shifted, changed[0]))
    return moved, jnp.where(which == 0, drawn, jnp.where(which == 1, tags, changed[1]))


def _exchange(key: Array, counts: Array, tags: Array, drawn: Array) -> tuple[Array, Array]:
    """Turns records of one kind, a power of two of them or all, into any kind or one next to theirs, or draws tags, or both."""
    keys = jax.random.split(key, 6)
    m = counts.shape[0]
    source = jax.random.categorical(keys[0], jnp.where(counts > 0, 0.0, -jnp.inf))
    near = source + jnp.where(jax.random.bernoulli(keys[1]), 1, -1)
    target = jnp.where(jax.random.bernoulli(keys[2]), near % m, jax.random.randint(keys[3], (), 0, m))
    amount = jnp.minimum(counts[source], jnp.int32(1) << jax.random.randint(keys[4], (), 0, 12).astype(jnp.int32))
    what = jax.random.randint(keys[5], (), 0, 4)  # a quarter of exchanges only draw tags, half only move records
    amount = jnp.where(what == 0, 0, amount)
    moved = counts.at[source].add(-amount).at[target].add(amount)
    return moved, jnp.where(what <= 1, drawn, tags)
