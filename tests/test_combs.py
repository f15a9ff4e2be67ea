"""Combs and tries against plain Python integers."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dpjax.concepts import combs
from dpjax.domains import trie, wide
from dpjax.verify.plain import tree_log as twin

RNG = np.random.default_rng(7)
BEGINNING = RNG.bit_generator.state


@pytest.fixture(autouse=True)
def _same_data_whatever_ran_before():
    RNG.bit_generator.state = BEGINNING


def naive_levels(values, bits):
    """Depth of the deepest node of the heavy path above each value."""
    _, path, _ = twin.walk(values, bits, lambda count: 0.0)
    return [twin.level_of(value, path) for value in values]


@pytest.mark.parametrize("wide_points", [False, True])
def test_heavy_path_is_the_walk(wide_points):
    rows = 15
    written = trie.from_points if wide_points else trie.from_numbers

    @jax.jit
    def walk(x, n, bits, low):
        tree = written(x, n, bits)
        path = trie.heavy_path(tree, low, 32)
        return path, tree.shared(tree.index, path.center)

    for _ in range(150):
        bits, n = int(RNG.integers(1, 31)), int(RNG.integers(0, rows + 1))
        values = sorted(int(v) % 2**bits for v in RNG.choice(RNG.integers(0, 2**30, 9), n))
        low = int(RNG.integers(0, n + 1))
        padded = [*values, *[2**bits - 1] * (rows - n)]
        x = wide.from_ints(padded, bits) if wide_points else np.array(padded, np.int32)
        path, level = jax.device_get(walk(x, np.int32(n), np.int32(bits), np.int32(low)))
        expected = naive_levels(values[low:], bits)
        assert level[low:n].tolist() == expected
        assert np.repeat(path.depth, path.leaving).tolist() == sorted(expected)
        for depth, leaving, split in zip(path.depth.tolist(), path.leaving.tolist(), path.split.tolist(), strict=True):
            if leaving and depth < bits:  # the two children's points are next to each other there
                assert (values[split] ^ values[split - 1]).bit_length() == bits - depth


def test_heaviest_prefix_is_a_count():
    rows, bits = 15, 6

    @jax.jit
    def heaviest(x, n, marked, length):
        return trie.heaviest_prefix(trie.from_numbers(x, n, jnp.int32(bits)), marked, length)

    for _ in range(150):
        n, length = int(RNG.integers(0, rows + 1)), int(RNG.integers(1, bits + 1))
        values = sorted(RNG.integers(0, 2**bits, n).tolist())
        marked = np.arange(rows) < n
        marked &= RNG.random(rows) < 0.7
        padded = np.array([*values, *[0] * (rows - n)], np.int32)
        found = jax.device_get(heaviest(padded, np.int32(n), marked, np.int32(length)))
        counts = [0] * 2**length
        for value, mark in zip(values, marked, strict=False):
            counts[value >> (bits - length)] += bool(mark)
        best = int(np.argmax(counts))
        assert int(found.gap) == counts[best] - max(counts[:best] + counts[best + 1 :])
        assert (values[int(found.point)] >> (bits - length) if int(found.point) >= 0 else 0) == best
        if counts[best]:
            assert int(found.before) == sum(value >> (bits - length) < best for value in values)


@functools.partial(jax.jit, static_argnums=(4, 5))
def a_comb(key, family, count, size, rows, limbs):
    """The zeros and points of a comb, and shared prefixes and turns, each by the trie of its points and by `Comb`."""
    k = combs.zeros(key, rows, count, size, family)
    points = combs.points(k, count, size, limbs)
    tries = trie.from_points(points.x, count, size), combs.Comb(k=k, n_valid=count, bits=size)
    i, depth = jnp.arange(rows, dtype=jnp.int32), jnp.arange(32 * limbs, dtype=jnp.int32)
    pairs = [tree.shared(*jnp.meshgrid(i, i)) for tree in tries]
    turns = [jax.vmap(lambda i, tree=tree: jax.vmap(lambda depth: tree.turns(i, depth))(depth))(i) for tree in tries]
    return k, points, pairs, turns


@pytest.mark.parametrize("family", range(len(combs.FAMILIES)))
def test_comb_is_its_points(family):
    rows, bits = 7, 40
    for n in (1, 6, 7):
        for width in (1, 5, bits):
            k, points, pairs, turns = a_comb(
                jax.random.key(n), np.int32(family), np.int32(n), np.int32(width), rows, wide.limbs_for(width)
            )
            k, pairs, turns = jax.device_get((k, pairs, turns))
            values = wide.to_ints(points.x)[:n]
            assert values == sorted((1 << width - zeros) - 1 for zeros in k[:n].tolist())
            assert pairs[0][:n, :n].tolist() == pairs[1][:n, :n].tolist()
            assert turns[0][:n, :width].tolist() == turns[1][:n, :width].tolist()


def test_levels_are_drawn_alike_or_near_one_end():
    """Of 9 bits: all levels alike, or with the median within two of one end and none at the other end."""
    drawn = jax.jit(lambda family: combs.zeros(jax.random.key(0), 511, jnp.int32(511), jnp.int32(9), family))
    for family, numbers, middle in (
        ("every level", range(10), (4, 5)),
        ("first levels", range(9), (1, 2)),
        ("last levels", range(1, 10), (7, 8)),
    ):
        k = np.asarray(drawn(np.int32(combs.FAMILIES.index(family))))
        assert set(k.tolist()) == set(numbers) and np.median(k) in middle


def test_interior_of_a_comb_is_between_its_ends():
    rows, bits = 7, 6
    inside = jax.jit(combs.is_interior)

    @jax.jit
    def numbers(key, n, family):
        k = combs.zeros(key, rows, n, jnp.int32(bits), family)
        return k, combs.points(k, n, jnp.int32(bits), 1).x

    for seed in range(12):
        n = 1 + seed % rows
        k, x = numbers(jax.random.key(seed), np.int32(n), np.int32(seed % 6))
        values = wide.to_ints(x)[:n]
        for point in range(-1, n):
            for length in range(1, bits + 1):
                tail = (1 << bits - length) - 1
                prefix = (values[point] if point >= 0 else 0) & ~tail
                for upper in (False, True):
                    expected = values[0] <= (prefix | tail if upper else prefix) <= values[-1]
                    found = inside(k, np.int32(n), np.int32(bits), np.int32(point), np.int32(length), np.bool_(upper))
                    assert bool(found) == expected
