"""Groups of keys with items below them: all keys of small trees, counted one by one, and draws from a group."""

import itertools
from collections import Counter

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from builders import thorough
from frequencies import FALSE_ALARM, p_value

from dpjax import Points
from dpjax.domains import wide
from dpjax.optimizers.interior_point import tree_keys
from dpjax.optimizers.interior_point.tree_score import items_of

ROWS = 6


def subtree(key):
    """The numbers in the subtree of a key."""
    if key == 0:
        return range(1)
    size = key & -key
    first = key - size + 1
    return range(0 if first == 1 else first, key + size)  # the key 0 hangs below the key 1


def listed(items, bits):
    """Of every key with items below it: how many items are in front of its subtree and of its end, less than it, and up to it."""
    found = []
    for key in range(2**bits):
        below = [x in subtree(key) for x in items]
        if any(below):
            first = below.index(True)
            found.append((first, first + sum(below), sum(x < key for x in items), sum(x <= key for x in items)))
    return Counter(found)


def counted(keys):
    """The same from groups, each as often as it has keys."""
    found = Counter()
    for group in keys.groups:
        columns = (np.asarray(x).tolist() for x in (group.number, group.before, group.stop, group.under, group.up_to))
        for number, *counts in zip(*columns, strict=True):
            found[tuple(counts)] += number
    return +found


@jax.jit
def groups(x, n, bits):
    """The groups of keys of points, of which n count."""
    return tree_keys.keys_of(items_of(Points(x=x, n_valid=n, ordered=True)), bits)


def padded(items, bits, limbs):
    """Sorted items as rows; those of padding hold the greatest number."""
    x = np.full((ROWS, limbs), 2**32 - 1, np.uint32)
    x[: len(items)] = np.asarray(wide.resize(wide.from_ints(items, bits), limbs))
    return jnp.asarray(x)


@pytest.mark.parametrize("bits", [1, 2, 3])
def test_every_key_is_in_one_group_with_its_counts(bits):
    """All multisets of up to four items."""
    for n in range(5):
        for items in itertools.combinations_with_replacement(range(2**bits), n):
            keys = groups(padded(items, bits, 1), jnp.int32(n), jnp.int32(bits))
            assert counted(keys) == listed(items, bits), items


@pytest.mark.parametrize(("bits", "low", "limbs"), [(6, 0, 1), (8, 0, 1), (36, 28, 2), (296, 290, 10)])
def test_keys_of_larger_trees_too(bits, low, limbs):
    """All items are multiples of 2^low: their keys have the counts of the narrower tree."""
    rng = np.random.default_rng(bits)
    for _ in range(20):
        few = sorted(rng.integers(0, 2 ** (bits - low), rng.integers(1, ROWS + 1)).tolist())
        items = [x << low for x in few]
        keys = groups(padded(items, bits, limbs), jnp.int32(len(items)), jnp.int32(bits))
        expected = listed(few, bits - low)
        # Below the level of an item that is not 0, no key has items; the item 0 has one more key for each level.
        zeros = few.count(0)
        expected[0, zeros, zeros, zeros] += low if zeros else 0
        assert counted(keys) == +expected


@pytest.mark.parametrize("bits", [thorough(5), 64, thorough(500)])
def test_draws_from_a_group_are_uniform_and_belong_to_it(bits):
    items = sorted(int(x) % 2**bits for x in (2 ** (bits - 1) + 5, 2 ** (bits - 1) + 7, 7, 2**bits - 1))
    held = items_of(Points(x=wide.from_ints(items, bits), n_valid=jnp.int32(4), ordered=True))
    keys = tree_keys.keys_of(held, jnp.int32(bits))
    draw = jax.jit(
        jax.vmap(lambda key, row, group: tree_keys.drawn(key, held, keys, row, group), in_axes=(0, None, None))
    )
    for i, group in enumerate(keys.groups):
        for row in np.flatnonzero(group.number).tolist():
            own = jax.random.split(jax.random.key(10 * i + row), 8000)
            drawn = Counter(wide.to_ints(draw(own, jnp.int32(row), jnp.int32(i))))
            for key in drawn:
                size = max(key & -key, 1)
                inside = [at for at, x in enumerate(items) if key - size < x < key + size or (x == 0 and key == size)]
                assert [inside[0], inside[-1] + 1] == [int(end[row]) for end in (group.before, group.stop)]
                assert (
                    sum(x < key for x in items) == group.under[row] and sum(x <= key for x in items) == group.up_to[row]
                )
            number = int(group.number[row])
            counts = np.zeros(number)
            counts[: len(drawn)] = list(drawn.values())  # fails if there are more than `number`
            assert number == 1 or p_value(counts, np.full(number, 8000 / number)) > FALSE_ALARM
