"""Piecewise constant functions and sorted uniforms, against plain Python."""

import dataclasses
import functools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from builders import slow, thorough
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from dpjax.core import sums
from dpjax.domains import order_statistics, ordered, wide

FALSE_ALARM = 2e-5


# --------------------------------------------------------------------------------------------------------------- runs


def naive_runs(values):
    """Walks out from each i while values are no smaller."""
    left, right = [], []
    for i, value in enumerate(values):
        low, high = i, i
        while low > 0 and values[low - 1] >= value:
            low -= 1
        while high < len(values) and values[high] >= value:
            high += 1
        left.append(low)
        right.append(high)
    return left, right


runs = jax.jit(ordered.runs)


@pytest.mark.parametrize("n", [1, 2, 8, 32])
def test_runs_equal_the_naive_ones(n):
    # Few different values, so that ties abound; infinity is what empty pieces hold.
    value = st.sampled_from([-1.0, 0.0, 1.0, 2.0, math.inf])

    @settings(max_examples=100)
    @given(st.lists(value, min_size=n, max_size=n))
    def check(values):
        left, right = runs(np.array(values, np.float32))
        assert (left.tolist(), right.tolist()) == naive_runs(values)

    check()


def test_runs_of_a_monotone_and_of_a_constant_function():
    n = 1024
    rising = np.arange(n, dtype=np.float32)
    for values in (rising, rising[::-1], np.zeros(n, np.float32)):
        left, right = runs(values)
        assert (left.tolist(), right.tolist()) == naive_runs(values.tolist())


# ------------------------------------------------------------------------------------------------------------- pieces


def tabulate(pieces):
    """The function as a list, one entry per point of {0, ..., 2^exponent}."""
    starts, values = wide.to_ints(pieces.starts), pieces.values.tolist()
    ends = [*starts[1:], wide.to_ints(pieces.end)[0]]
    return [value for low, high, value in zip(starts, ends, values, strict=True) for _ in range(low, high)]


@settings(max_examples=40)
@given(st.sets(st.integers(1, 40)), st.integers(0, 30))
def test_from_breakpoints_is_the_function_it_was_told(breaks, further):
    starts = [0, *sorted(breaks)]
    values = [float(i * i % 7) for i in range(len(starts))]
    last = max(starts[-1], 1) + further
    pieces = ordered.from_breakpoints(starts, values, last, beyond=-2.0)
    exponent = int(pieces.exponent)
    assert 2 ** (exponent - 1) < last <= 2**exponent
    assert wide.to_ints(pieces.last) == [last] and wide.to_ints(pieces.end) == [2**exponent + 1]
    expected = [values[sum(start <= x for start in starts) - 1] for x in range(last + 1)]
    assert tabulate(pieces) == expected + [-2.0] * (2**exponent - last)
    assert pieces.count & (pieces.count - 1) == 0 and pieces.limbs == 1


@pytest.mark.parametrize(
    ("starts", "values", "last", "message"),
    [
        ([], [], 4, "starts must begin with 0"),
        ([1, 2], [0.0, 0.0], 4, "starts must begin with 0"),
        ([0, 3, 3], [0.0, 0.0, 0.0], 4, "starts must .* increase strictly"),
        ([0, 3], [0.0], 4, "values must have one entry a start, got 1 for 2 starts"),
        ([0, 5], [0.0, 0.0], 4, "last must be >= 1 and not below the last start, got 4"),
        ([0], [0.0], 0, "last must be >= 1 and not below the last start, got 0"),
        ([0, 3], [0.0, math.nan], 4, r"values\[1\] must be a number, not NaN"),
        ([0, 3], [math.inf, 0.0], 4, r"values\[0\] must be <= 16777216"),
        ([0, 3], [0.0, 2.0**24 + 2], 4, r"values\[1\] must be <= 16777216"),
        ([0, 3], [-(2.0**24) - 2, 0.0], 4, r"values\[0\] must be >= -16777216"),
        ([0, 3], [0.0, 1e-40], 4, r"values\[1\] must be at least .* which float32 can hold"),
        ([0], [0.0], 2**5000, "last must be from 0 to"),
        ([0], [0.0], 2**4096 + 1, "last must be from 0 to"),
    ],
)
def test_from_breakpoints_refuses(starts, values, last, message):
    with pytest.raises(ValueError, match=message):
        ordered.from_breakpoints(starts, values, last, beyond=0.0)


def test_starts_and_values_are_lists():
    for starts, values, name in ((0, [0.0], "starts"), ([0], 0.0, "values")):
        with pytest.raises(TypeError, match=f"{name} must be a list"):
            ordered.from_breakpoints(starts, values, 4, beyond=0.0)


def test_values_are_countable_if_those_of_pieces_with_a_point_are():
    pieces = ordered.from_breakpoints([0, 3], [1.0, -2.0], 4, beyond=-math.inf)
    told = jax.jit(lambda pieces: (pieces.nonempty(), ordered.countable(pieces)))
    nonempty, countable = told(pieces)
    assert nonempty.tolist() == [True, True, False, False] and countable
    for place, expected in ((0, False), (1, False), (2, True)):
        values = np.array(pieces.values)
        values[place] = 2.0**24 + 2
        assert told(dataclasses.replace(pieces, values=values))[1] == expected


@jax.jit
def from_steps(points, first, steps, exponent):
    """The pieces, where they end, and whether they are nonempty."""
    pieces = ordered.from_steps(points, first, steps, exponent)
    return pieces, pieces.ends(), pieces.nonempty()


def test_runs_of_many_pieces_that_only_rise_reach_the_end():
    """With so many pieces that no single word holds level, place and direction."""
    n = 2**15 - 1
    points = wide.from_ints(range(n), 17)
    pieces = from_steps(points, jnp.int32(0), jnp.ones(n, jnp.int32), jnp.int32(16))[0]
    value, first, stop = (np.asarray(each) for each in jax.jit(ordered.longest_runs)(pieces))
    real = value > -np.inf
    assert sorted(value[real]) == [*range(n + 1)] and np.all(first[real] == value[real]) and np.all(stop == n + 1)


@jax.jit
def located(pieces, positions):
    """The values at the positions, and whether the pieces found there are nonempty."""
    places = jax.vmap(pieces.locate)(positions)
    return pieces.values[places], pieces.nonempty()[places]


@settings(max_examples=40)
@given(st.lists(st.tuples(st.integers(0, 15), st.sampled_from([-1, 1])), max_size=7), st.integers(0, 9))
def test_from_steps_moves_right_after_each_point(examples, first):
    examples = sorted(examples)
    padding = 7 - len(examples)
    points = wide.from_ints([*(x for x, _ in examples), *[16] * padding], 5)
    steps = np.array([*(step for _, step in examples), *[0] * padding], np.int32)
    pieces, ends, nonempty = from_steps(points, np.int32(first), steps, np.int32(4))
    assert tabulate(pieces) == [first + sum(step for x, step in examples if x < j) for j in range(17)]
    ends = wide.to_ints(ends)
    assert ends == [*wide.to_ints(pieces.starts)[1:], 17]
    assert nonempty.tolist() == [low < high for low, high in zip(wide.to_ints(pieces.starts), ends, strict=True)]


def test_locate_finds_the_nonempty_piece_of_every_position():
    points = wide.from_ints([3, 3, 5, 9, 9, 16, 16], 5)
    pieces, _, _ = from_steps(points, np.int32(0), np.ones(7, np.int32), np.int32(4))
    values, nonempty = located(pieces, wide.from_ints(list(range(17)), 5))
    assert values.tolist() == tabulate(pieces) and nonempty.all()


def test_positions_of_many_limbs():
    exponent = 2000
    starts = [0, 1, 2**1000, 2**1999 + 1, 2**2000]
    pieces = ordered.from_breakpoints(starts, [0.0, 1.0, 2.0, 3.0, 4.0], 2**exponent, beyond=0.0)
    positions = wide.from_ints([0, 1, 2**1000 - 1, 2**1000, 2**1999, 2**1999 + 1, 2**2000], exponent + 1)
    values, _ = located(pieces, positions)
    assert values.tolist() == [0.0, 1.0, 1.0, 2.0, 2.0, 3.0, 4.0]


# ---------------------------------------------------------------------------------------------------- sorted uniforms


@functools.partial(jax.jit, static_argnums=(1, 3))
def uniforms(key, capacity, n, samples):
    keys = jax.random.split(key, samples)
    return jax.vmap(lambda k: order_statistics.sorted_uniforms(k, capacity, n))(keys)


@pytest.mark.parametrize("n", [0, 1, 2, 6, 7])
def test_sorted_and_padded_with_zeros(n):
    values = np.asarray(uniforms(jax.random.key(1), 7, jnp.int32(n), 500))
    assert (np.diff(values[:, :n].astype(np.int64), axis=1) >= 0).all()
    assert (values[:, n:] == 0).all()
    assert n == 0 or (values[:, :n] > 0).mean() > 0.99


def test_capacity_changes_nothing():
    for n in (1, 5, 7):
        small, large = (np.asarray(uniforms(jax.random.key(2), rows, jnp.int32(n), 500)) for rows in (7, 63))
        np.testing.assert_array_equal(small[:, :n], large[:, :n])


@pytest.mark.parametrize("n", [1, 10, *map(slow, (2, 100))])
def test_order_statistics_follow_their_beta_laws(n):
    values = np.asarray(uniforms(jax.random.key(3), 127, jnp.int32(n), 20_000)) / 2.0**32
    for rank in sorted({1, n // 2 + 1, n}):
        law = stats.beta(rank, n + 1 - rank)
        assert stats.kstest(values[:, rank - 1], law.cdf).pvalue > FALSE_ALARM
        # Negative control: order statistics of a tenth more (at least one more) would be seen.
        wrong = stats.beta(rank, n + 1 + max(n // 10, 1) - rank)
        assert stats.kstest(values[:, rank - 1], wrong.cdf).pvalue < FALSE_ALARM


def test_unsorted_they_are_independent_uniforms():
    """All n of a sample together: sums over a sample, which its order does not change."""
    n = 50
    values = np.asarray(uniforms(jax.random.key(4), 127, jnp.int32(n), 20_000))[:, :n] / 2.0**32
    sums = np.sum((values < 0.3), axis=1)
    expected = stats.binom(n, 0.3)
    cells = np.arange(8, 23)
    observed = np.histogram(sums, [-1, *cells, n + 1])[0]
    probability = np.diff([0.0, *expected.cdf(cells - 1), 1.0])
    assert stats.chisquare(observed, probability * len(sums)).pvalue > FALSE_ALARM
    wrong = np.diff([0.0, *stats.binom(n, 0.31).cdf(cells - 1), 1.0])
    assert stats.chisquare(observed, wrong * len(sums)).pvalue < FALSE_ALARM


def test_x64_draws_the_same(x64):
    in_x64 = uniforms(jax.random.key(5), 7, np.int32(6), 500)
    with jax.enable_x64(False):
        np.testing.assert_array_equal(in_x64, uniforms(jax.random.key(5), 7, np.int32(6), 500))


# -------------------------------------------------------------------------------------------------------- exact ratio

ratio = jax.jit(jax.vmap(order_statistics._ratio, in_axes=(0, 0)))


def ratios_of(pairs):
    numerators, denominators = (np.array(column, np.uint32) for column in zip(*pairs, strict=True))
    return [row[0] for row in ratio(numerators[:, None], denominators).tolist()]


def test_ratio_is_within_three_units():
    rng = np.random.default_rng(6)
    denominators = [1, 2, 3, 7, 2**16, 2**31 - 1, 2**31, 2**31 + 1, 2**32 - 2, 2**32 - 1]
    denominators += [int(2.0 ** rng.uniform(0, 32)) for _ in range(500)]
    pairs = [(x, d) for d in denominators for x in {0, d // 2, d - 1, int(rng.integers(0, d))}]
    for (x, d), value in zip(pairs, ratios_of(pairs), strict=True):
        assert 0 <= (x << 32) // d - value <= 3, (x, d)


@pytest.mark.parametrize("denominator", [5, 1000, 2**31 + 12345, 2**32 - 1])
def test_ratio_is_monotone_up_to_the_whole(denominator):
    """There is no overflow even at numerator = denominator, which occurs if the last spacing is 0."""
    near_the_end = range(max(denominator - 500, 0), denominator + 1)
    values = ratios_of([(x, denominator) for x in near_the_end])
    assert values == sorted(values) and values[-1] >= 2**32 - 4


def test_reciprocal_is_exact():
    rng = np.random.default_rng(7)
    divisors = [2**31, 2**31 + 1, 2**32 - 1, *(int(x) for x in rng.integers(2**31, 2**32, 500))]
    values = jax.jit(jax.vmap(order_statistics._reciprocal))(np.array(divisors, np.uint32))
    assert values.tolist() == [(2**63 - 1) // d for d in divisors]


@jax.jit
def running_sums_and_maxima(values, signed, negative):
    return sums.running(values), sums.running_max(signed), sums.running_max(negative)


# With more than 128 rows of 32, the totals of rows are summed in the same way.
@pytest.mark.parametrize("n", [1, thorough(31), 32, 33, thorough(2048), 4096, 4097, 150_001])
def test_running_sums_wrap_like_cumsum_and_maxima_are_cummax(n):
    values = np.random.default_rng(n).integers(0, 2**32, n, np.uint32)
    # Records are rare and late, so that they cross rows.
    rising = values.astype(np.int64) - 2**31 + np.arange(n) * (2**31 // n)
    signed = np.clip(rising, -(2**31), 2**31 - 1).astype(np.int32)
    negative = signed.astype(np.float32) - np.float32(2.0**31)
    added, *largest = running_sums_and_maxima(values, signed, negative)
    np.testing.assert_array_equal(added, np.cumsum(values, dtype=np.uint32))
    for found, whole in zip(largest, (signed, negative), strict=True):
        np.testing.assert_array_equal(found, np.maximum.accumulate(whole))


@pytest.mark.parametrize("shape", ["peak", "walk"])
def test_best_between_is_the_lowest_best_point(shape):
    """Against the table of the function, over all intervals, empty ones included; ties, an empty top piece, one-sided labels."""

    @jax.jit
    def best(points, rises, falls, lows, highs):
        pieces = dataclasses.replace(ordered.from_peak(points, rises, falls, jnp.int32(4)), shape=shape)
        return pieces, jax.vmap(ordered.best_between, in_axes=(None, 0, 0))(pieces, lows, highs)

    intervals = [(low, high) for low in range(18) for high in range(low, 18)]
    lows, highs = (wide.from_ints(ends, 5) for ends in zip(*intervals, strict=True))
    for below, above in [
        ([3, 3, 5], [5, 5, 9]),
        ([1], []),
        ([], [0, 15]),
        ([2, 4, 4], [8, 8, 8, 12]),
        ([0] * 3, [15] * 3),
    ]:
        points = wide.from_ints([*below, *above, *[16] * (7 - len(below + above))], 5)
        pieces, (values, positions) = best(points, jnp.int32(len(below)), jnp.int32(len(above)), lows, highs)
        table = tabulate(pieces)
        for (low, high), value, position in zip(intervals, values.tolist(), wide.to_ints(positions), strict=True):
            inside = table[low:high]
            assert value == max(inside, default=-math.inf)
            assert not inside or position == low + inside.index(value)


@jax.jit
def windows_of_all_shapes(points, rises, falls, bits):
    from dpjax.optimizers.quasi_concave import recursion

    pieces = ordered.from_peak(points, rises, falls, bits)
    return [recursion.best_windows(dataclasses.replace(pieces, shape=shape)) for shape in ("peak", "walk", "any")]


@pytest.mark.parametrize("bits", [6, 40])
def test_the_three_shapes_agree_on_realizable_samples(bits):
    """Peak (no sort), walk (one sort) and any (binary lifting) give the same windows, with ties, padding and one-sided labels.

    Two limbs for any number of bits: one program.
    """
    rows, rng = 31, np.random.default_rng(bits)
    for ones, zeros in [(0, 1), (1, 0), (1, 1), (31, 0), (0, 31), (20, 11), (5, 9), (9, 5), (2, 29), (12, 0), (0, 7)]:
        target = int(rng.integers(1, 2**bits - 1))
        below = sorted(int(x) for x in rng.integers(max(0, target - 9), target, ones))
        above = sorted(
            int(x) for x in rng.integers(target, min(target + 2 ** int(rng.integers(1, 30)), 2**bits), zeros)
        )
        padding = [2**bits] * (rows - ones - zeros)
        points = wide.from_ints([*below, *above, *padding], 64)
        peak, walk, general = windows_of_all_shapes(points, np.int32(ones), np.int32(zeros), np.int32(bits))
        assert peak.tolist() == walk.tolist() == general.tolist(), (ones, zeros)


@jax.jit
def sorted_both_ways(x):
    """Sorted by swaps of neighbours where they suffice, and by a sort."""
    return order_statistics.sort_nearly(x), wide.sort(x)[0]


@pytest.mark.parametrize("bits", [20, thorough(70)])
def test_rows_nearly_in_order_are_sorted_like_any(bits):
    """Rows up to 1, 5 and 60 places from their own, the last by a sort; with ties; 1, 2 and 64 rows."""
    rng = np.random.default_rng(0)
    for n in (1, 2, 64):
        for far in (1, 5, 60):
            values = np.argsort(np.arange(n) + rng.uniform(0, far, n)) // 2
            x = wide.from_ints([int(v) << (bits - 20) for v in values], bits)
            np.testing.assert_array_equal(*sorted_both_ways(x))
