"""The keys of the search tree of `tree_score` that have items below them, in groups of keys with the same items below, before and behind.

A key's *height* is the number of its trailing zeros; the key 0, below the key 1, has height -1. The items below a key are neighbours in
order, and n items form at most 2n - 1 such runs: one item, or all items around a gap between two of them, up to where others join. The
lowest key of a run is an item, or it is where the items on both sides of a gap part. From there up to the height at which others join, each
digit of the items belongs to one more key with the same items below it: the digit 0 to a key on their right, the digit 1 to one on their
left. So counts of digits say how many keys there are on either side, and n items of w words each take about n log n + n w steps.
"""

import functools
from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Bool, Float, Int, UInt32

from dpjax.core import bits as packed
from dpjax.core import logspace, random, staging
from dpjax.core.pytree import frozen
from dpjax.domains import wide
from dpjax.optimizers.interior_point.tree_score import Items

# Kinds of groups: the lowest key of a run, and all others on the right and on the left of its items.
OWN, RIGHT, LEFT = range(3)


@frozen
class Group:
    """For each item a group of keys with the same items below, before and behind them.

    Attributes:
      number: how many keys there are.
      before, stop: how many items are in front of those below, and in front of their end.
      under, up_to: how many items are less than the keys, and up to them.
    """

    number: Int[Array, "rows"]
    before: Int[Array, "rows"]
    stop: Int[Array, "rows"]
    under: Int[Array, "rows"]
    up_to: Int[Array, "rows"]


@frozen
class Run:
    """For each item a run, and its keys.

    Attributes:
      low, high: the height of the lowest key, and that at which others join.
      groups: the kinds `OWN`, `RIGHT` and `LEFT`, of no keys where there is no such run.
    """

    low: Int[Array, "rows"]
    high: Int[Array, "rows"]
    groups: tuple[Group, Group, Group]


@frozen
class Keys:
    """All keys with items below them.

    Attributes:
      runs: those of each item alone, and those around the gap in front of each item.
    """

    runs: tuple[Run, Run]

    @property
    def groups(self) -> list[Group]:
        """All groups."""
        return [group for run in self.runs for group in run.groups]


def keys_of(items: Items, bits: Int[Array, ""]) -> Keys:
    """All keys with items below them, of a tree with keys of `bits` binary digits."""
    index, gap = items.index, _gaps(items, bits)
    left, right = _neighbours(gap)
    high = jnp.minimum(gap[left], gap[right])
    exists = _inner(items) & (gap[left] > gap[:-1])
    around = staging.once(_around, items, gap[:-1])  # stored, since otherwise each use would look for copies anew
    several = _run(items.x, exists, gap[:-1], high, (left, right), around)
    high = jnp.minimum(gap[:-1], gap[1:])
    exists = (high > items.tail) & (index < items.n)
    itself = index, index + 1
    return Keys(runs=(_run(items.x, exists, items.tail, high, itself, itself), several))


def _run(
    x: UInt32[Array, "rows limbs"],
    exists: Bool[Array, "rows"],
    low: Int[Array, "rows"],
    high: Int[Array, "rows"],
    ends: tuple[Array, Array],
    around: tuple[Array, Array],
) -> Run:
    """Runs with items x among others and these ends, from their lowest keys, with so many items before them and up to them."""
    before, stop = ends
    ones = packed.count(_between(x, low, high))

    def group(number: Array, under: Array, up_to: Array) -> Group:
        return Group(number=jnp.where(exists, number, 0), before=before, stop=stop, under=under, up_to=up_to)

    kinds = group(jnp.ones_like(ones), *around), group(high - 1 - low - ones, stop, stop), group(ones, before, before)
    return Run(low=low, high=high, groups=kinds)


def _inner(items: Items) -> Bool[Array, "rows"]:
    """Whether there is an item, and one in front of it."""
    return (items.index > 0) & (items.index < items.n)


def _gaps(items: Items, bits: Int[Array, ""]) -> Int[Array, "more"]:
    """For each item the height at which it and the one in front of it get below the same key; `bits` at the ends, and behind all."""
    top = jnp.asarray(bits, jnp.int32)
    # Where they part, or at one of the two, if that is the key.
    height = jnp.maximum(items.apart - 1, jnp.maximum(items.tail, jnp.roll(items.tail, 1)))
    return jnp.append(jnp.where(_inner(items), height, top), top)


def _around(items: Items, gap: Int[Array, "rows"]) -> tuple[Int[Array, "rows"], Int[Array, "rows"]]:
    """How many items are less than the lowest key around each gap, and up to it.

    Of equal gaps the first one stands for their run. So if an item is that key, all its copies are behind the gap, but for one at most.
    """
    index = items.index
    is_left, is_right = _inner(items) & (jnp.roll(items.tail, 1) == gap), _inner(items) & (items.tail == gap)
    others = jnp.where(items.apart > 0, index, items.rows)
    # Where the copies of each item end.
    stop = jnp.minimum(lax.cummin(jnp.append(others[1:], items.rows), reverse=True), items.n)
    up_to = jnp.where(is_left, jnp.roll(stop, 1), jnp.where(is_right, stop, index))
    return index - is_left.astype(jnp.int32), up_to


def _neighbours(gap: Int[Array, "more"]) -> tuple[Int[Array, "rows"], Int[Array, "rows"]]:
    """For all gaps but the last: the next one on the left that is not lower, and the next one on the right that is higher.

    By steps that halve, taken where all gaps that they pass are lower, or no higher on the right. The ends are higher than all others.
    """
    greatest = [gap]  # of 2^i gaps from each on
    while (size := 1 << len(greatest)) <= gap.shape[0]:
        greatest.append(jnp.maximum(greatest[-1][: -size // 2], greatest[-1][size // 2 :]))
    height = gap[:-1]
    left = jnp.arange(gap.shape[0] - 1, dtype=jnp.int32)
    right = left + 1

    def step(size: int, greatest: Array, height: Array, left: Array, right: Array) -> tuple[Array, Array]:
        behind = jnp.minimum(right, greatest.shape[0] - 1)
        is_passed = greatest[jnp.maximum(left - size, 0)] < height, greatest[behind] <= height
        return jnp.where(is_passed[0], left - size, left), jnp.where(is_passed[1], right + size, right)

    for i in reversed(range(len(greatest))):
        # Stored, since otherwise what one step looks up would be looked up again in the next one, twice.
        left, right = staging.once(functools.partial(step, 1 << i), greatest[i], height, left, right)
    return jnp.maximum(left - 1, 0), right


def _between(x: UInt32[Array, "*n limbs"], low: Int[Array, "*n"], high: Int[Array, "*n"]) -> UInt32[Array, "*n limbs"]:
    """The digits of x of heights low + 1, ..., high - 1, in their places."""
    first, stop = (wide.digits_from(end, x.shape[-1]) for end in (low + 1, high))
    return x & first & ~stop


def chosen(key: Array, items: Items, keys: Keys, weights: Sequence[Float[Array, "rows"]]) -> UInt32[Array, "limbs"]:
    """One of all keys, given the weights of groups: an item, one of its groups, and one of the group's keys with equal probabilities."""
    key_row, key_group, key_which = jax.random.split(key, 3)
    # Rows of padding come last, and shift nothing.
    row = logspace.choose(key_row, jnp.pad(sum(weights), (0, -items.rows % logspace.LANES)))
    each = jnp.stack([weight[row] for weight in weights])
    group = logspace.choose(key_group, jnp.pad(each, (0, 2)))  # eight: `choose` takes a power of two
    return drawn(key_which, items, keys, row, group)


def drawn(key: Array, items: Items, keys: Keys, row: Int[Array, ""], group: Int[Array, ""]) -> UInt32[Array, "limbs"]:
    """One of the keys of an item's group, each with the same probability."""
    several, kind = group // 3, group % 3
    single, joined = keys.runs
    low, high = (jnp.where(several, b[row], a[row]) for a, b in ((single.low, joined.low), (single.high, joined.high)))
    x = items.x[row]  # above the lowest key, all items of a run have the same digits
    digits = _between(jnp.where(kind == RIGHT, ~x, x), low, high)
    height = jnp.where(kind == OWN, low, _any_one(key, digits))
    return wide.multiple(x, height + 1) | wide.power_of_two(height, x.shape[0])


def _any_one(key: Array, x: UInt32[Array, "limbs"]) -> Int[Array, ""]:
    """The height of one of the digits 1 of x; anything if there is none.

    Each has the same probability to a relative 2^-20, as it has a share of 2^32 equally likely words.
    """
    upto = jnp.cumsum(lax.population_count(x[::-1]).astype(jnp.int32), dtype=jnp.int32)
    place = wide.high_product(random.bits(key, 1)[0], upto[-1].astype(jnp.uint32)).astype(jnp.int32)
    limb = jnp.minimum(jnp.sum(upto <= place, dtype=jnp.int32), x.shape[0] - 1)
    word = x[x.shape[0] - 1 - limb]
    within = lax.population_count(word & ((np.uint32(2) << jnp.arange(32, dtype=jnp.uint32)) - np.uint32(1)))
    behind = upto[limb] - lax.population_count(word).astype(jnp.int32)
    return 32 * limb + jnp.sum(within.astype(jnp.int32) <= place - behind, dtype=jnp.int32)
