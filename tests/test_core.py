"""Random draws, log-space sums, samples and argument checks."""

import gc
import math
import pathlib
import subprocess
import sys
import types
from random import random as shared_draw

import builders
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from dpjax import MultiSample, Points, Sample, Weighted
from dpjax.core import arguments, bisection, bits, logarithm, logspace, proportions, random, staging, tracing
from dpjax.core.pytree import frozen, static
from dpjax.data import algorithm
from dpjax.data.assignments import Assignments
from dpjax.data.examples import Examples
from dpjax.data.sample import bucket, padded_count
from dpjax.domains import wide

FALSE_ALARM = 2e-5


# -------------------------------------------------------------------------------------------------------- exponential


@jax.jit
def exponentials(words):
    """`random.exponential` as a function of the random words it sees."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(random, "bits", lambda *_: words)
        return random.exponential(jax.random.key(0), (words.shape[0],))


def halves(numbers):
    """64-bit numbers as pairs of words."""
    return np.array([divmod(x, 2**32) for x in numbers], np.uint32)


def exponential_of(numbers):
    """The same for numbers of 64 random bits each."""
    return np.asarray(exponentials(halves(numbers)), float)


def naive_exponential(number):
    """-ln((number + 1/2) 2^-64), by `log1p` where it is near 0."""
    missing = 2**65 - 2 * number - 1
    if missing < 2**60:
        return -math.log1p(-missing / 2**65)
    return 65 * math.log(2) - math.log(2 * number + 1)


ANY_WORDS = [
    *(0, 1, 2, 3, 2**31, 2**32 - 1, 2**32, 2**32 + 1, 2**33 - 1, 2**63 - 1, 2**63, 2**64 - 2**32, 2**64 - 1),
    *(int(2.0**e) for e in np.linspace(0, 63.99, 500)),
]


def test_exponential_is_right_on_any_words():
    values, exact = exponential_of(ANY_WORDS), np.array([naive_exponential(x) for x in ANY_WORDS])
    # P[E > t] = e^-t: an absolute error of E is a relative error of the probability.
    np.testing.assert_allclose(values, exact, rtol=0, atol=2e-6)
    np.testing.assert_allclose(values[exact < 1], exact[exact < 1], rtol=0, atol=2e-7)
    assert values.max() == pytest.approx(65 * math.log(2), rel=1e-6) and values.min() >= 0


def test_fine_exponentials_keep_their_digits_at_both_ends():
    exact = np.array([naive_exponential(x) for x in ANY_WORDS])
    found = jax.jit(random.log_uniform)(*halves(ANY_WORDS).T)
    np.testing.assert_allclose(found, exact, rtol=1e-6)


@pytest.mark.parametrize("k", [1, 10, 20, 31, 32, 33, 40, 44])
def test_exponential_passes_k_doublings_with_probability_two_to_the_minus_k(k):
    """E > k ln 2 for the numbers below 2^(64 - k), up to four parts in a million."""
    border = 2.0 ** (64 - k)
    rarer, commoner = exponential_of([int(border * (1 - 4e-6)), int(border * (1 + 4e-6))])
    assert commoner < k * math.log(2) < rarer


def test_exponential_in_x64(x64):
    exact = np.array([naive_exponential(x) for x in ANY_WORDS])
    np.testing.assert_allclose(exponential_of(ANY_WORDS), exact, rtol=1e-14, atol=1e-14)  # the reference's own error


def test_exponential_follows_its_law():
    values = np.asarray(jax.jit(random.exponential, static_argnums=1)(jax.random.key(1), (200_000,)))
    assert stats.kstest(values, stats.expon.cdf).pvalue > FALSE_ALARM
    assert stats.kstest(values, stats.expon(scale=1.02).cdf).pvalue < FALSE_ALARM


@pytest.mark.parametrize("generator", ["threefry2x32", "rbg"])
def test_bits_are_those_of_jax(generator):
    @jax.jit
    def both(key):
        counts = (1, 2, 7, 1000)
        ours = [random.bits(jax.random.clone(key), count) for count in counts]
        return ours, [jax.random.bits(jax.random.clone(key), (count,), jnp.uint32) for count in counts]

    ours, words = both(jax.random.key(7, impl=generator))
    jax.tree.map(np.testing.assert_array_equal, ours, words)
    np.testing.assert_array_equal(random.bits(jax.random.key(7, impl=generator), 7), words[2])  # outside of a program


@builders.on_cpu
def test_batched_bits_are_those_of_jax():
    """Under two vmaps: the conditional that stores the words stays a conditional."""
    counts, keys = (1, 5), lambda: jax.random.split(jax.random.key(7), (3, 4))

    def batched(draw):
        return jax.jit(jax.vmap(jax.vmap(lambda key: [draw(jax.random.clone(key), count) for count in counts])))

    words = batched(lambda key, count: jax.random.bits(key, (count,), jnp.uint32))(keys())
    draw = batched(random.bits).lower(keys()).compile()
    jax.tree.map(np.testing.assert_array_equal, draw(keys()), words)
    assert draw.as_text().count("conditional(") >= len(counts)


DRAWS_ALONG_ROWS = """
import jax, jax.numpy as jnp
from dpjax.core import random

def coins(key, count):
    return random.coins(key, jnp.ones((32, 1), jnp.uint32), count)[:, 0]

for draw in (random.bits, coins):
    for count in (4, 4000):
        def shown(key):  # one word decides about a whole row
            words = draw(key, count)
            rows = jnp.where((words < jnp.uint32(2**31))[:, None], jnp.arange(26, dtype=jnp.uint32), jnp.uint32(0))
            return jnp.concatenate([rows[: count // 2], rows[count // 2 :] | rows[: count - count // 2]])
        jax.jit(shown).lower(jax.random.key(0)).compile()
        jax.jit(jax.vmap(shown)).lower(jax.random.split(jax.random.key(0), 8)).compile()
"""


@pytest.mark.thorough
def test_words_that_are_uniform_along_a_vectorised_loop_compile_in_no_time():
    """The eight programs take seconds. With rounds fused into the rows, jaxlib 0.12 never finishes."""
    command = [sys.executable, "-c", DRAWS_ALONG_ROWS]
    subprocess.run(command, check=True, timeout=60, cwd=pathlib.Path(__file__).parents[1])


def test_pairs_are_the_halves_of_64_bit_words(x64):
    draw = jax.jit(random.pairs, static_argnums=1)
    words = np.asarray(jax.jit(lambda key: jax.random.bits(key, (1000,), jnp.uint64))(jax.random.key(7)))
    high, low = map(np.asarray, draw(jax.random.key(7), 1000))
    assert (high == words >> np.uint64(32)).all() and (low == words % np.uint64(2**32)).all()
    high, low = map(np.asarray, draw(jax.random.key(7, impl="rbg"), 1000))
    assert high.shape == low.shape == (1000,) and (high != low).any()


def test_the_logarithm_of_positive_numbers():
    """At all sizes, and where the logarithm is near 0."""
    rng = np.random.default_rng(0)
    sizes = np.exp(rng.uniform(-87, 88, 100_000))
    x = np.concatenate([sizes, rng.uniform(0.5, 2, 100_000), 1 + rng.uniform(-1e-5, 1e-5, 1000)]).astype(np.float32)
    found, exact = np.asarray(jax.jit(logarithm.positive)(x)), np.log(x.astype(np.float64))
    np.testing.assert_allclose(found, exact, rtol=1.2e-7)


def test_a_longer_array_of_pairs_begins_alike():
    long, short = (np.asarray(random.fine_exponential(jax.random.key(5), shape)) for shape in ((3, 3), (4,)))
    assert (long.reshape(-1)[:4] == short).all()


# ---------------------------------------------------------------------------------------------------------- bernoulli


@pytest.mark.parametrize("count", [255, 256, 65_535, 65_536])
def test_tallies_do_not_wrap_around(count):
    """In 8 or 16 bits 256 and 65,536 would be 0."""
    assert bits.tally(np.ones((count, 1), bool)).tolist() == [count]


@pytest.mark.parametrize("rows", [17, 33])
def test_the_row_in_the_middle_is_looked_at(rows):
    """An odd number of rows has two halves that share a row."""
    middle = np.abs(np.arange(rows) - rows // 2)
    assert jax.jit(staging.least)(middle) == 0 and jax.jit(staging.greatest)(-middle[:, None]).tolist() == [0]


def test_whoever_did_without_the_collector_still_does():
    was_on = gc.isenabled()
    try:
        for switch in (gc.disable, gc.enable):
            switch()
            before = gc.isenabled()
            with staging.uncollected():
                assert not gc.isenabled()
            assert gc.isenabled() == before
    finally:
        (gc.enable if was_on else gc.disable)()


def test_columns_are_counted_under_a_mask_for_any_number_of_rows():
    rng = np.random.default_rng(0)
    for rows, used in ((1, 1), (8, 8), (21, 21), (21, 9), (21, 0)):
        words, mask = rng.integers(0, 2**32, (rows, 3), dtype=np.uint32), rng.integers(0, 2**32, rows, dtype=np.uint32)
        mask[used:] = 0
        expected = np.sum(np.bitwise_count(words & mask[:, None]), axis=0)
        np.testing.assert_array_equal(bits.count_columns(words, mask), expected)


def test_packed_coins_are_one_where_a_32_bit_number_is_below_the_bias():
    """Bit by bit, compared with numbers assembled from the same words, at every kind of bias and at the very border."""
    rows, words = 3, 2
    key = lambda: jax.random.key(3)  # noqa: E731
    draw = jax.jit(
        lambda key: jax.vmap(lambda turn: random.pairs(jax.random.fold_in(key, turn), rows * words))(jnp.arange(16))
    )
    drawn = np.stack(draw(key()), axis=1)  # turn, half, place
    digits = ~drawn.reshape(32, rows, words)  # the last digit of all coins first
    lanes = (digits[..., None] >> np.arange(32, dtype=np.uint32)) & 1  # digit, row, word, bit
    numbers = (lanes.astype(np.uint64) << np.arange(32, dtype=np.uint64).reshape(-1, 1, 1, 1)).sum(axis=0)
    border = numbers[0].T  # bit, word
    toss = jax.jit(lambda key, bias: bits.spread(random.coins(key, bias, rows)))
    for bias in (border, border + 1, 0 * border, 0 * border + 1, 0 * border + 2**31, 0 * border + 2**32 - 1):
        shown = np.asarray(toss(key(), bias.astype(np.uint32))).reshape(rows, 32, words)
        assert (shown == (numbers.transpose(0, 2, 1) < bias[None])).all()
    many = jax.jit(lambda key, bias: bits.unpack(random.coins(key, bias, 20_000), 32))
    shown = np.asarray(many(key(), np.full((32, 1), 3 << 20, np.uint32)))
    assert stats.binomtest(int(shown.sum()), shown.size, 3 / 2**12).pvalue > FALSE_ALARM


bernoulli = jax.jit(random.bernoulli)


def tosses(key, p, count):
    log_p, log_q = np.full(count, math.log(p), np.float32), np.full(count, math.log1p(-p), np.float32)
    return int(np.asarray(bernoulli(key, log_p, log_q)).sum())


def test_rare_events_stay_rare_on_both_sides():
    """Of a million tosses at 1e-12 one succeeds with probability 1e-6."""
    rare = np.full(1_000_000, math.log(1e-12), np.float32), np.full(1_000_000, -1e-12, np.float32)
    assert not np.asarray(bernoulli(jax.random.key(2), *rare)).any()
    assert np.asarray(bernoulli(jax.random.key(3), *rare[::-1])).all()


@jax.jit
def decided(words, log_p, log_q):
    """`random.bernoulli` as a function of the random words it sees."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(random, "bits", lambda *_: words)
        return random.bernoulli(jax.random.key(0), log_p, log_q)


def test_coins_at_the_border():
    """The threshold lies where it should, to eight parts in a million of the rarer side, or one in 2^64."""
    for p in (1e-15, 1e-9, 0.01, 0.4, 0.6, 0.99, 1 - 1e-9):
        border = 2.0**64 * min(p, 1 - p)
        near = [int(border * (1 - 8e-6)) - 1, int(border * (1 + 8e-6)) + 1]
        log_p, log_q = (np.full(2, x, np.float32) for x in (math.log(p), math.log1p(-p)))
        found = decided(halves(near), log_p, log_q).tolist()
        assert found == ([True, False] if p < 0.5 else [False, True])


@pytest.mark.parametrize("p", [0.0001, 0.3, 0.5, 0.9])
def test_coins_follow_their_law(p):
    count = 1_000_000  # as many as in the test of rare events: one program
    successes = tosses(jax.random.key(4), p, count)
    assert stats.binomtest(successes, count, p).pvalue > FALSE_ALARM
    wrong = p + 8 * math.sqrt(p * (1 - p) / count)
    assert stats.binomtest(successes, count, wrong).pvalue < FALSE_ALARM


def test_sure_coins():
    zero, sure = np.float32(-np.inf), np.float32(0.0)
    batched = jax.vmap(random.bernoulli, in_axes=(0, None, None))
    many = jax.jit(lambda key, log_p, log_q: batched(jax.random.split(key, 20), log_p, log_q))
    assert np.asarray(many(jax.random.key(5), sure, zero)).all()
    assert not np.asarray(many(jax.random.key(5), zero, sure)).any()


# ---------------------------------------------------------------------------------------------------------- log-space


log1mexp_and_slope = jax.jit(jax.value_and_grad(logspace.log1mexp))


@pytest.mark.parametrize("log_p", [-1e-30, -1e-8, -0.1, -0.6931471, -0.6931473, -1.0, -20.0, -80.0])
def test_log1mexp_at_both_ends(log_p):
    exact = math.log(-math.expm1(log_p)) if log_p > -0.7 else math.log1p(-math.exp(log_p))
    value, slope = map(float, log1mexp_and_slope(np.float32(log_p)))
    assert value == pytest.approx(exact, rel=1e-6)
    assert slope == pytest.approx(-math.exp(log_p) / -math.expm1(log_p), rel=1e-5)


def test_log1mexp_of_certainty_passes_no_derivative_on():
    """It was +inf, and NaN times 0."""
    value, slope = map(float, log1mexp_and_slope(np.float32(0)))
    assert (value, slope) == (-math.inf, 0.0)


LOG_WEIGHT = st.one_of(st.just(-math.inf), st.floats(-300, 300, width=32))


def naive_sum(log_weights):
    """ln of a sum, in float64, from the largest on."""
    return np.logaddexp.reduce(np.array([-np.inf, *log_weights], float))


range_sum = jax.jit(logspace.range_sum)


@jax.jit
def trees_and_ranges(log_weights, top):
    """The tree, the sums of all ranges, and the tree of the weights themselves, the largest of them 1."""
    ends, tree = jnp.arange(9, dtype=jnp.int32), logspace.sum_tree(log_weights)
    ranges = jax.vmap(lambda a: jax.vmap(lambda b: logspace.range_sum(tree, a, b))(ends))(ends)
    return tree, ranges, logspace.plain_tree(jnp.exp(log_weights - top))


@pytest.mark.thorough
@settings(max_examples=60)
@given(st.lists(LOG_WEIGHT, min_size=8, max_size=8))
def test_every_range_of_a_tree(log_weights):
    top = max([w for w in log_weights if w > -math.inf], default=0.0)
    tree, ranges, plain = jax.device_get(trees_and_ranges(np.array(log_weights, np.float32), np.float32(top)))
    exact = [[naive_sum(log_weights[a:b]) for b in range(9)] for a in range(9)]
    np.testing.assert_allclose(ranges, exact, rtol=1e-6, atol=1e-6)
    assert tree.shape == (16,)
    np.testing.assert_allclose(tree[1], naive_sum(log_weights), rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(plain[1:], np.exp(tree[1:] - top), rtol=1e-4, atol=1e-37)


sum_tree = jax.jit(logspace.sum_tree)


def test_a_difference_of_prefix_sums_would_lose_small_ranges():
    """Negative control: the loss that the tree prevents."""
    weights = np.array([0.0, -40.0, -41.0, -42.0], np.float32)
    exact = naive_sum([-40.0, -41.0])
    assert float(range_sum(sum_tree(weights), np.int32(1), np.int32(3))) == pytest.approx(exact, rel=1e-6)
    prefix = np.cumsum(np.exp(weights))
    assert float(prefix[2] - prefix[0]) == 0.0


def test_several_trees_at_once_and_one_leaf():
    ramp = np.arange(4, dtype=np.float32)
    sums = range_sum(np.stack([sum_tree(ramp * k) for k in (1, -1)]), np.int32(1), np.int32(4))
    np.testing.assert_allclose(sums, [naive_sum([1, 2, 3]), naive_sum([-1, -2, -3])], rtol=1e-6)
    leaf = sum_tree(np.array([2.5], np.float32))
    assert float(range_sum(leaf, np.int32(0), np.int32(1))) == 2.5
    assert int(jax.jit(logspace.draw)(jax.random.key(0), leaf)) == 0


def test_trees_are_filled_up_by_weights_of_nothing():
    trees = jax.jit(lambda logs, weights: (logspace.sum_tree(logs), logspace.plain_tree(weights)))
    six, nothing = np.arange(6, dtype=np.float32), np.zeros(2, np.float32)
    filled = trees(np.append(six, nothing - np.float32(np.inf)), np.append(six, nothing))
    jax.tree.map(np.testing.assert_array_equal, trees(six, six), filled)


@pytest.mark.parametrize(
    ("count", "padded"), [*(builders.thorough(*case) for case in ((16, 64), (64, 128), (192, 256), (320, 512)))]
)
def test_choosing_a_weight_does_not_depend_on_those_of_nothing_behind(count, padded):
    weights = jnp.exp(-jnp.arange(float(count)) / 20)
    more = jnp.pad(weights, (0, padded - count))
    drawn = jax.vmap(lambda key: jnp.stack([logspace.choose(key, weights), logspace.choose(key, more)]))
    both = drawn(jax.random.split(jax.random.key(0), 500))
    np.testing.assert_array_equal(both[:, 0], both[:, 1])
    assert len(np.unique(both)) > 10


@jax.jit
def slopes(weights, start):
    """The derivative of a range's sum in a common factor of all weights, and that of `logsumexp`."""

    def total(scale):
        scaled = jnp.where(jnp.isneginf(weights), -jnp.inf, scale * jnp.where(jnp.isneginf(weights), 0.0, weights))
        return logspace.range_sum(logspace.sum_tree(scaled), start, jnp.int32(4))

    return jax.grad(total)(1.0), jax.grad(logspace.logsumexp)(weights)


@pytest.mark.parametrize("weights", [[0.0, -np.inf, 1.0, 2.0], [-np.inf] * 4, [-np.inf, 0.0, -np.inf, -np.inf]])
def test_gradients_are_finite_where_weights_vanish(weights):
    weights = np.array(weights, np.float32)
    shares = np.exp(weights.astype(float) - naive_sum(weights)) if np.isfinite(naive_sum(weights)) else np.zeros(4)
    slope = float(np.sum(shares * np.where(np.isneginf(weights), 0.0, weights)))
    whole, each = slopes(weights, np.int32(0))
    assert float(whole) == pytest.approx(slope, rel=1e-5) and np.isfinite(each).all()
    assert math.isfinite(slopes(weights, np.int32(4))[0])


def test_gradients_are_finite_where_a_failure_is_certain():
    value, slope = jax.jit(jax.value_and_grad(logspace.any_fails))(np.array([1.0, 0.5, 0.0], np.float32))
    assert value == 1 and slope.tolist() == [0.5, 0.0, 0.0]
    assert str(float(jax.jit(logspace.any_fails)(np.zeros(3, np.float32)))) == "0.0"


draws = jax.jit(lambda key, tree: jax.vmap(logspace.draw, in_axes=(0, None))(jax.random.split(key, 50_000), tree))


chosen = jax.jit(lambda key, w: jax.vmap(logspace.choose, in_axes=(0, None))(jax.random.split(key, 50_000), w))


def test_choose_follows_the_weights_in_and_across_lanes():
    weights = np.zeros(256, np.float32)
    weights[[0, 1, 64, 65, 192, 255]] = [1.0, 2.0, 3.0, 4.0, 1e-12, 2.0]
    observed = np.bincount(chosen(jax.random.key(8), jnp.asarray(weights)), minlength=256)
    likely = weights > 1e-6
    law = weights[likely].astype(float) / weights[likely].sum(dtype=float)
    assert observed[~likely].sum() == 0
    assert stats.chisquare(observed[likely], 50_000 * law).pvalue > FALSE_ALARM
    wrong = np.array([1.0, 2.0, 3.0, 4.2, 2.0]) / 12.2  # negative control
    assert stats.chisquare(observed[likely], 50_000 * wrong).pvalue < FALSE_ALARM
    padded = chosen(jax.random.key(8), jnp.asarray(np.pad(weights, (0, 256))))
    np.testing.assert_array_equal(np.bincount(padded, minlength=256), observed)


def test_choose_sees_rare_weights():
    """As often as it should, in the lane of the largest weight and in another one, near the end of float32's range."""
    for rare in (3, 64):
        weights = np.zeros(256, np.float32)
        weights[[0, rare]] = [1e30, 1e27]
        hits = int(np.sum(np.asarray(chosen(jax.random.key(9), jnp.asarray(weights))) == rare))
        assert stats.binomtest(hits, 50_000, 1e-3 / 1.001).pvalue > FALSE_ALARM
        assert stats.binomtest(hits, 50_000, 2e-3).pvalue < FALSE_ALARM


def test_draw_follows_the_weights():
    weights = np.array([1.0, 0.0, 3.0, 2.0, 0.0, 0.0, 0.5, 3.5])
    tree = sum_tree(np.log(weights, where=weights > 0, out=np.full(8, -np.inf)).astype(np.float32))
    observed = np.bincount(draws(jax.random.key(6), tree), minlength=8)
    assert (observed[weights == 0] == 0).all()
    mass = weights[weights > 0] / weights.sum() * observed.sum()
    assert stats.chisquare(observed[weights > 0], mass).pvalue > FALSE_ALARM
    wrong = mass * np.array([1.1, 1, 1, 1, 1])
    assert stats.chisquare(observed[weights > 0], wrong / wrong.sum() * mass.sum()).pvalue < FALSE_ALARM


def test_rows_of_leaves_lead_where_the_tree_leads():
    """4096 leaves of all sizes, from the same coins."""

    def both(rarity, weights):
        return logspace.descend_plain(rarity, weights), logspace.descend(rarity, logspace.plain_tree(weights), jnp.log)

    rng = np.random.default_rng(3)
    rarity = rng.exponential(size=(1000, 12)).astype(np.float32)
    weights = np.exp(-rng.exponential(20, (1000, 4096))).astype(np.float32)
    by_rows, by_tree = jax.jit(jax.vmap(both))(rarity, weights)
    np.testing.assert_array_equal(by_rows, by_tree)
    assert len(set(by_rows.tolist())) > 500


def test_draw_never_takes_a_leaf_of_weight_1e_minus_12():
    rare = math.log(1e-12)
    tree = sum_tree(np.array([rare, 0.0, *[rare] * 6], np.float32))
    assert (np.asarray(draws(jax.random.key(7), tree)) == 1).all()


# ------------------------------------------------------------------------------------------------------------- sample

X = wide.from_ints([5, 6, 7], 64)


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ({"x": np.zeros((3, 2), np.int32)}, TypeError, "x must be a uint32 array .* got int32"),
        ({"x": [[1], [2], [3]]}, TypeError, "x must be a uint32 array .* got list"),
        ({"x": np.zeros(3, np.uint32)}, ValueError, r"x must have shape \(rows, limbs\), got \(3,\)"),
        ({"x": np.zeros((3, 0), np.uint32)}, ValueError, r"x must have shape \(rows, limbs\), got \(3, 0\)"),
        ({"x": np.zeros((0, 2), np.uint32), "y": []}, ValueError, "x must hold at least one row"),
        ({"y": [1, 0]}, ValueError, r"y must have the length of x, shape \(3,\), got \(2,\)"),
        ({"y": [[1], [0, 1], [1]]}, ValueError, "y must have the length of x, and one axis"),
        ({"y": [[1, 0, 1]]}, ValueError, r"y must have the length of x, shape \(3,\), got \(1, 3\)"),
        ({"y": [1, 0, 2]}, ValueError, r"y must hold labels 0 and 1 only, got y\[2\] = 2"),
        ({"y": jnp.array([1, -1, 0])}, ValueError, r"y must hold labels 0 and 1 only, got y\[1\] = -1"),
        ({"y": [1, 0.5, 0]}, ValueError, r"y must hold labels 0 and 1 only, got y\[1\] = 0.5"),
        ({"y": [1, math.nan, 0]}, ValueError, r"y must hold labels 0 and 1 only, got y\[1\] = nan"),
        ({"y": ["a", "b", "c"]}, TypeError, "y must hold labels 0 and 1"),
        ({"n_valid": 4}, ValueError, "n_valid must be from 1 to 3, got 4"),
        ({"n_valid": 0}, ValueError, "n_valid must be from 1 to 3, got 0"),
        ({"n_valid": jnp.int32(4)}, ValueError, "n_valid must be from 1 to 3, got 4"),
        ({"n_valid": 2.0}, TypeError, "n_valid must be an int, got 2.0"),
        ({"n_valid": True}, TypeError, "n_valid must be an int, got True"),
        ({"n_valid": jnp.float32(2)}, TypeError, "n_valid must be an int"),
        ({"x": wide.from_ints([6, 5, 7], 64), "ordered": True}, ValueError, "ordered .* row 1 is not in order"),
        ({"x": wide.from_ints([5, 6, 6], 64), "ordered": True}, ValueError, "ordered .* row 2 is not in order"),
        ({"x": wide.from_ints([5, 6, 6], 64), "realizable": True}, ValueError, "ordered .* row 2 is not in order"),
        ({"realizable": True}, ValueError, "realizable .* row 2 is a one"),
        ({"ordered": 1}, TypeError, "ordered must be True or False"),
    ],
)
def test_sample_refuses(given, error, message):
    with pytest.raises(error, match=message):
        Sample(**{"x": X, "y": [1, 0, 1], **given})


@pytest.mark.parametrize(
    "y", [[1, 0, 1], [True, False, True], np.array([1.0, 0.0, 1.0]), jnp.array([1, 0, 1], jnp.uint8)]
)
def test_sample_takes_any_numbers_for_labels(y):
    sample = Sample(x=np.asarray(X), y=y)
    assert sample.y.dtype == jnp.int32 and sample.y.tolist() == [1, 0, 1]
    assert isinstance(sample.x, jax.Array) and int(sample.n_valid) == sample.rows == 3


def test_sample_is_a_frozen_pytree():
    sample = Sample(x=X, y=[1, 0, 1], n_valid=2, ordered=True)
    leaves, structure = jax.tree.flatten(sample)
    assert len(leaves) == 3
    again = jax.tree.unflatten(structure, leaves)
    assert again.ordered and all(map(np.array_equal, leaves, jax.tree.leaves(again)))
    assert structure != jax.tree.structure(Sample(x=X, y=[1, 0, 1], n_valid=2))
    assert [jax.tree_util.keystr(path) for path, _ in jax.tree.leaves_with_path(sample)] == [".x", ".y", ".n_valid"]
    assert jax.tree.map(lambda _: None, sample).x is None
    with pytest.raises(AttributeError, match="frozen"):
        sample.x = X


def test_points_that_do_not_count_are_last_in_order():
    ordered = jax.jit(lambda points: points.in_order(2))(Points.create(wide.from_ints([5, 3, 4, 1], 8), 2))
    assert wide.to_ints(ordered.x) == [3, 5, 2**64 - 1, 2**64 - 1] and ordered.ordered


def test_what_is_promised_of_a_sample_is_promised_of_the_rows_that_count():
    """A row of zeros after them is out of order; whoever promises a threshold's labels promises the order of the rows, too."""
    sample = Sample(x=wide.from_ints([5, 6, 6, 0], 64), y=[1, 1, 0, 1], n_valid=3, realizable=True)
    assert sample.ordered and sample.realizable
    assert not Sample(x=X, y=[1, 0, 1], ordered=True).realizable


def test_traced_labels_and_counts_that_a_cast_would_make_good_ones_stay_wrong():
    """1/2 is no label 0, and 2 - 2^32 is 2 in 32 bits."""
    assert jax.jit(lambda y: Sample(x=X, y=y).y)(jnp.array([0.5, 1.0, 0.0])).tolist() == [-1, 1, 0]
    with jax.enable_x64(True):
        counted = jax.jit(lambda n: Sample(x=X, y=[1, 0, 1], n_valid=n).n_valid)
        assert [int(counted(jnp.int64(n))) for n in (2, 2 - 2**32, 2 + 2**32)] == [2, -1, -1]


def test_a_function_of_several_results_is_pure_if_all_are():
    """The second result says whether the function is compiled."""

    def told(key):
        return jax.random.uniform(key), jnp.float32(isinstance(key, jax.core.Tracer))

    assert not tracing.is_pure(told) and tracing.is_pure(lambda key: told(key)[:1])


@pytest.mark.parametrize("draw", [np.random.random, shared_draw])
def test_a_rare_use_of_a_shared_generator_is_seen(draw):
    """No result shows it: one run in 10^12 would be another."""
    assert not tracing.repeats(lambda key: jax.random.uniform(key) if draw() > 1e-12 else jnp.float32(0))
    assert tracing.repeats(lambda key: jax.random.uniform(key))


@pytest.mark.parametrize("fits", [True, False])
@pytest.mark.parametrize("sound", [True, False])
def test_no_law_is_told_where_no_run_would_release_anything(fits, sound):
    """For data outside the domain, or parameters out of their ranges."""
    made = types.SimpleNamespace(fits=lambda data: jnp.bool_(fits), sound=lambda: jnp.bool_(sound))
    law = algorithm.if_good(made, None, jnp.array([0.25, 0.75]))
    assert law.tolist() == [0.25, 0.75] if fits and sound else np.isnan(law).all()


def test_more_examples_than_floats_count_are_in_no_domain(monkeypatch):
    """For every kind of labelled data."""
    monkeypatch.setattr("dpjax.core.arguments.most_counted", lambda: 3)
    x, y = wide.from_ints([1, 2, 3, 4], 4), [0, 1, 0, 1]
    counted_by_all = jax.jit(lambda *data, assignments: (*(each.in_domain(4) for each in data), assignments.counted()))
    for n, counted in ((3, True), (4, False)):
        examples = Examples.create(x[:, None], y, n)
        many = MultiSample.create(x, np.array([y, y]).T, n)
        assignments = Assignments.create(np.eye(4, dtype=bool)[:n], y[:n])
        found = counted_by_all(examples, many, Sample(x=x, y=y, n_valid=n), assignments=assignments)
        assert [*map(bool, found)] == [counted] * 4


def test_a_theorem_asks_for_one_example_at_least():
    assert [algorithm.whole(n) for n in (-2.5, 0.3, 7.0, 7.2)] == [1, 1, 7, 8]


def test_sample_is_built_under_tracing():
    sample = jax.jit(lambda x, y, n: Sample(x=x, y=y, n_valid=n))(X, jnp.array([1, 0, 1]), jnp.int32(9))
    assert int(sample.n_valid) == -1  # no rows have it: algorithms report so in their status
    many = jax.jit(lambda n: Sample(x=jnp.zeros((300, 1), jnp.uint32), y=np.zeros(300, int), n_valid=n).n_valid)
    assert [int(many(n)) for n in (jnp.int8(100), jnp.uint8(200), jnp.uint16(60_000))] == [100, 200, -1]
    assert int(Sample(x=X, y=[1, 0, 1], n_valid=np.array(2)).n_valid) == 2
    batch = jax.jit(jax.vmap(lambda n: Sample(x=X, y=[1, 0, 1], n_valid=n)))(np.array([1, 2], np.int32))
    assert batch.x.shape == (2, 3, 2) or batch.n_valid.shape == (2,)


def test_padding_adds_rows_that_do_not_count():
    sample = Sample(x=wide.from_ints([1, 2, 3, 4], 64), y=[1, 1, 0, 1], n_valid=3, ordered=True)
    for padded, rows in ((sample.padded(), 7), (sample.padded(5), 5), (sample.padded(4), 4)):
        assert padded.rows == padded.y.shape[0] == rows and padded.ordered and int(padded.n_valid) == 3
        assert wide.to_ints(padded.x)[:4] == [1, 2, 3, 4] and padded.y.tolist()[:4] == [1, 1, 0, 1]
    with pytest.raises(ValueError, match="rows must be from 4 to 2147483647, got 3"):
        sample.padded(3)


def test_a_count_of_more_rows_than_there_were_stays_wrong_where_there_are_more():
    padded = jax.jit(lambda n: padded_count(n, 4))
    assert [int(padded(jnp.int32(n))) for n in (0, 4, 5)] == [int(padded_count(n, 4)) for n in (0, 4, 5)] == [0, 4, -1]


@given(st.integers(1, 10**6))
def test_bucket_is_the_least_one(n):
    capacity = bucket(n)
    assert capacity & (capacity + 1) == 0 and capacity // 2 < n <= capacity
    assert bucket(np.int64(n)) == capacity
    with pytest.raises(ValueError, match=r"^n must be >= 0"):
        bucket(-n)


# ------------------------------------------------------------------------------------------------ checks and pytrees


@pytest.mark.parametrize(
    ("check", "error", "message"),
    [
        (lambda: arguments.integer("n", 2.0, at_least=1), TypeError, "n must be an int, got 2.0 of type float"),
        (lambda: arguments.integer("n", True, at_least=0), TypeError, "n must be an int, got True of type bool"),
        (lambda: arguments.integer("n", 0, at_least=1), ValueError, "n must be >= 1, got 0"),
        (lambda: arguments.integer("n", 9, at_least=1, at_most=8), ValueError, "n must be from 1 to 8, got 9"),
        (lambda: arguments.epsilon(0.0), ValueError, "epsilon must be > 0.0, got 0.0"),
        (lambda: arguments.epsilon(math.inf), ValueError, "epsilon must be < inf, got inf"),
        (lambda: arguments.epsilon(math.nan), ValueError, "epsilon must be .* got nan"),
        (lambda: arguments.epsilon("1"), TypeError, "epsilon must be a real number, got '1' of type str"),
        (lambda: arguments.epsilon(True), TypeError, "epsilon must be a real number, got True"),
        (lambda: arguments.epsilon([1.0]), TypeError, "epsilon must be a real number"),
        (lambda: arguments.epsilon(1j), TypeError, "epsilon must be a real number"),
        (lambda: arguments.epsilon(None), TypeError, "epsilon must be a real number, got None"),
        (lambda: arguments.delta(0.0), ValueError, "delta must be > 0.0, got 0.0"),
        (lambda: arguments.delta(1.0), ValueError, "delta must be < 1.0, got 1.0"),
        (lambda: arguments.delta(-0.1, positive=False), ValueError, "delta must be >= 0.0, got -0.1"),
        (lambda: arguments.fraction("alpha", 1.0), ValueError, "alpha must be < 1.0, got 1.0"),
        (lambda: arguments.real("x", math.nan), ValueError, "x must be a number, not NaN, got nan"),
        (lambda: arguments.choice("kind", "c", ("a", "b")), ValueError, "kind must be one of 'a', 'b', got 'c'"),
        (lambda: arguments.choice("kind", ["a"], ("a", "b")), ValueError, "kind must be one of"),
        (
            lambda: arguments.calibration("proven"),
            ValueError,
            "calibration must be one of 'printed', 'proved', got 'proven'; did you mean 'proved'",
        ),
        (lambda: arguments.epsilon(np.bool_(True)), TypeError, "epsilon must be a real number"),
        (lambda: arguments.epsilon(jax.random.key(0)), TypeError, "epsilon must be a real number"),
        (lambda: arguments.number("x", jnp.float32(1.0)), TypeError, "x must be a real number"),
        (lambda: arguments.known("x", np.array([1.0])), TypeError, "x must be a real number"),
        (lambda: arguments.counts(n=1, m=0), ValueError, "m must be >= 1, got 0"),
        (lambda: arguments.fractions(alpha=0.5, beta=1.0), ValueError, "beta must be < 1.0, got 1.0"),
        (lambda: arguments.positive(a=1, b=math.inf), ValueError, "b must be < inf, got inf"),
        (lambda: arguments.function("make", None), TypeError, "make must be callable, got None of type NoneType"),
        (
            lambda: arguments.epsilon(10**400),
            ValueError,
            "epsilon must be .* float64 can hold, got an int of 1329 bits",
        ),
        (
            lambda: arguments.fraction("alpha", 1e-300),
            ValueError,
            "alpha must be at least 7.5e-37, which float32 can hold",
        ),
        (lambda: arguments.epsilon(3e38), ValueError, r"epsilon must be <= 2\^120 in float32"),
        (lambda: arguments.epsilon(2.0**120 * 1.001), ValueError, r"epsilon must be <= 2\^120 in float32"),
        (lambda: arguments.fractions(beta=2.0**-501), ValueError, "beta must be >= 3.05.*e-151, got 1.5"),
        (lambda: arguments.delta(1 - 1e-9), ValueError, "delta must be below 1 in float32"),
        (lambda: arguments.real("x", -1e300), ValueError, r"x must be at least -3.4e\+38, which float32 can hold"),
        (lambda: arguments.size("k", 2**31), ValueError, "k must be from 1 to 2147483647, got 2147483648"),
        (lambda: arguments.size("k", 0), ValueError, "k must be >= 1, got 0"),
        (lambda: arguments.counts(vc=10**400), ValueError, "vc must be from 1 to 340282.*, got an int"),
        (lambda: arguments.known_fraction("beta", 1.0), ValueError, "beta must be < 1.0, got 1.0"),
        (lambda: arguments.several("points", 3), TypeError, "points must be a list, got 3 of type int"),
        (lambda: arguments.several("points", {1, 2}), TypeError, "points must be a list, got {1, 2} of type set"),
        (lambda: arguments.several("points", {1: 2}), TypeError, "points must be a list, got {1: 2} of type dict"),
        (lambda: arguments.several("points", "abc"), TypeError, "points must be a list, got 'abc' of type str"),
        (lambda: arguments.several("points", np.array(3)), TypeError, r"points must be a list, got array\(3\)"),
        (lambda: arguments.array("y", [[0], [0, 1]]), TypeError, "y must be an array of numbers"),
        (lambda: arguments.instance("plan", None, dict), TypeError, "plan must be a dict, got None of type NoneType"),
        (lambda: arguments.instance("n", "7", int), TypeError, "n must be an int, got '7' of type str"),
    ],
)
def test_checks_refuse(check, error, message):
    with pytest.raises(error, match=message):
        check()


def test_checks_let_through():
    assert arguments.integer("n", np.int64(3), at_least=1) == 3 and arguments.delta(0, positive=False) == 0.0
    assert isinstance(arguments.epsilon(jnp.float32(0.5)), np.float64) and arguments.choice("kind", "a", ("a",)) == "a"
    traced = jax.jit(lambda epsilon: arguments.epsilon(epsilon))(-1)
    assert traced.dtype == jnp.float32 and not arguments.is_traced(1.0)
    assert arguments.known("x", jnp.float32(0.5)) == 0.5 and arguments.function("make", max) is max
    assert arguments.epsilon(2.0**120) == 2.0**120 and arguments.extremes(np.zeros(0)) == []
    assert arguments.extremes(jnp.array([2, -3, 1])) == [-3, 2] and arguments.real("x", math.inf) == math.inf


def test_formulas_refuse_numbers_that_are_too_large_or_too_small_together():
    for function, number in ((lambda x: x**400, 10.0), (lambda x: 1 / (x * x), 1e-200)):
        with pytest.raises(ValueError, match="must have numbers whose powers and quotients float64 can hold"):
            arguments.in_plain_numbers(function)(number)


@pytest.mark.parametrize("wide_floats", [False, True])
def test_programs_can_halve_the_least_number_that_they_are_given(wide_floats):
    with jax.enable_x64(wide_floats):
        assert jax.jit(lambda x: x / 2)(jnp.asarray(arguments.least(), float)) > 0


def test_what_the_host_needs_to_know_is_not_traced():
    with pytest.raises(TypeError, match=r"epsilon must be a known number: .* got .*Tracer"):
        jax.jit(lambda epsilon: arguments.known("epsilon", epsilon))(1.0)


@pytest.mark.parametrize("check", [arguments.delta, arguments.epsilon])
def test_budgets_that_float32_takes_for_zero_are_refused(check):
    """Otherwise laws at delta = 1e-300 are finite, but their gradients are not."""
    with pytest.raises(ValueError, match=r"must be at least 7.5e-37, which float32 can hold .* got 1e-300"):
        check(1e-300)
    with pytest.raises(ValueError, match="got 1e-39"):
        check(np.float64(1e-39))
    assert check(1e-36) == 1e-36 and float(jnp.float32(1e-36) / 64) > 0
    with jax.enable_x64(True):
        assert check(1e-300) == 1e-300
    with pytest.raises(ValueError, match=r"epsilon must be at most .* got 1e[+]40"):
        arguments.epsilon(1e40)


@pytest.mark.parametrize("value", [0, None, 0.5, "0", np.zeros(2), np.float32(1), jnp.zeros(2), [0, 1]])
def test_what_is_no_key_is_refused(value):
    with pytest.raises(TypeError, match=r"coins must be a single PRNG key as jax.random.key[(]seed[)] makes it, got "):
        arguments.key(value, "coins")


def test_several_keys_are_not_one():
    for batch in (jax.random.split(jax.random.key(0), 3), jnp.zeros((3, 2), jnp.uint32), jnp.uint32(7)):
        with pytest.raises(TypeError, match=r"key must be a single PRNG key .* got .* of shape"):
            arguments.key(batch)


def test_keys_of_both_forms_pass_traced_too():
    for make in (jax.random.key, jax.random.PRNGKey):
        assert jax.jit(arguments.key)(make(0)) == arguments.key(make(0)) == jax.random.key(0)
        keys = jax.random.split(make(0), 3)
        assert jax.vmap(lambda key: jax.random.bits(arguments.key(key)))(keys).shape == (3,)


WITHOUT_JAX = """
import sys, types
package = types.ModuleType("dpjax")
package.__path__ = sys.argv[1:]
sys.modules["dpjax"] = package
import dpjax.accounting, dpjax.bounds
dpjax.accounting.Guarantee(1.0, 0.0, "REPLACE_ONE")
dpjax.bounds.pac_lower_bound(1, 0.25)
assert not {"jax", "dp_accounting", "matplotlib"} & set(sys.modules), sorted(sys.modules)
"""


def test_host_rooms_do_not_load_jax():
    folder = str(pathlib.Path(arguments.__file__).parents[1])
    done = subprocess.run([sys.executable, "-c", WITHOUT_JAX, folder], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@frozen
class Scale:
    factor: float
    limbs: int = static(default=1)


def test_frozen_makes_pytrees_with_static_fields():
    traces = []

    @jax.jit
    def apply(scale):
        traces.append(scale.limbs)
        return scale.factor * scale.limbs

    for scale in (Scale(factor=2.0), Scale(factor=3.0), Scale(factor=3.0, limbs=4)):
        assert float(apply(scale)) == scale.factor * scale.limbs
    assert traces == [1, 4]
    with pytest.raises(AttributeError):
        Scale(factor=1.0).factor = 2.0


@frozen
class Shift:
    factor: float
    limbs: int = static(default=1)


def test_structures_of_two_classes_differ():
    """Otherwise a jitted function called with one runs, now and then, the program compiled for the other."""
    scale, shift = jax.tree.structure(Scale(factor=2.0)), jax.tree.structure(Shift(factor=2.0))
    assert scale != shift and scale == jax.tree.structure(Scale(factor=5.0))
    assert scale != jax.tree.structure(Scale(factor=2.0, limbs=2))
    (path, value), *rest = jax.tree_util.tree_leaves_with_path(Scale(factor=2.0))
    assert jax.tree_util.keystr(path) == ".factor" and value == 2.0 and not rest


# --------------------------------------------------------------------------------------------------------- bisection


@given(st.integers(0, 10**6), st.integers(0, 10**6))
def test_least_int_against_all_of_them(border, low):
    """With an upper end, without one, and where the property holds from the start."""
    tried = []

    def holds(n):
        tried.append(n)
        return n >= border

    assert bisection.least_int(holds, low) == bisection.least_int(holds, low, max(border, low) + 5) == max(border, low)
    assert min(tried) >= low and max(tried) <= max(2 * max(border, low, 1), max(border, low) + 5)


def test_least_int_gives_up():
    with pytest.raises(ValueError, match=r"no integer from .* has the property"):
        bisection.least_int(lambda n: False, 3)
    with pytest.raises(ValueError, match=r"no integer from .* to 18446744073709551616 has the property"):
        bisection.least_int(lambda n: n > 2**64, 0)
    assert bisection.least_int(lambda n: n >= 2**64, 0) == 2**64


@given(st.floats(0.0, 1.0), st.floats(1e-12, 0.1))
def test_float_searches_end_on_their_side(border, precision):
    below = bisection.largest_float(lambda x: x <= border, 0.0, 1.0, precision=precision)
    above = bisection.least_float(lambda x: x >= border, 0.0, 1.0, precision=precision)
    assert border - precision <= below <= border <= above <= border + precision
    assert border == 0.0 or above <= border / (1 - precision) * (1 + 1e-15)


def test_first_where_is_a_search_of_any_window():
    rows = 13
    values = jnp.array(sorted([3, 3, 3, 5, 8, 8, 9, 20, 20, 21, 30, 31, 31]))
    search = jax.jit(lambda x, low, high: bisection.first_where(lambda i: values[i] >= x, low, high, rows))
    for low, high in ((0, rows), (2, 9), (0, 0), (rows, rows), (5, 6)):
        for x in range(33):
            expected = min(max(low, int(np.searchsorted(values, x))), high)
            assert int(search(jnp.int32(x), jnp.int32(low), jnp.int32(high))) == expected


# --------------------------------------------------------------------------------------------- the session is strict


@pytest.mark.thorough  # quick tests do not check shapes
def test_wrong_shapes_are_seen():
    """Negative control of conftest.py."""
    with pytest.raises(TypeError, match="parameter 'x'"):
        wide.bit_length(jnp.zeros((2, 2)))
    with pytest.raises(TypeError, match="parameter 'b'"):
        wide.add(jnp.zeros((2, 2), jnp.uint32), jnp.zeros((2, 3), jnp.uint32))


def test_wrong_types_are_seen():
    """Negative control of conftest.py."""
    with pytest.raises(ValueError, match="rank_promotion"):
        jnp.zeros((2, 2)) + jnp.zeros(2)
    with pytest.raises(ValueError, match="promotion"):
        jnp.zeros(2) + jnp.zeros(2, jnp.int32)


def test_a_key_that_serves_twice_is_seen(no_key_twice):
    key = jax.random.key(0)
    jax.random.bits(key)
    with pytest.raises(jax.errors.KeyReuseError):
        jax.random.bits(key)


def test_a_condition_that_the_compiler_could_know_changes_nothing():
    """Data in a closure cost no more than arguments: what is stored stays so, and what is not needed is not computed."""

    def program(function):
        text = jax.jit(function).lower(jnp.arange(50.0)).compile().as_text()
        return text[text.index("ENTRY") :]

    assert " conditional(" in program(lambda x: staging.once(jax.lax.sort, x))
    loop = program(lambda x: staging.unless(jnp.bool_(True), x, jax.lax.sort, x))
    assert " while(" in loop and " sort(" not in loop


def test_once_is_the_function_itself():
    """Value, batch and gradient of `staging.once` are those of the function; the untaken branch never shows."""

    def staged(x):
        return staging.once(lambda y: {"square": y * y, "sum": jnp.sum(y)}, x)

    @jax.jit
    def all_forms(x):
        return staged(x), jax.vmap(staged)(jnp.stack([x, 2 * x])), jax.grad(lambda y: staged(y)["square"].sum())(x)

    x = np.arange(4, dtype=np.float32)
    value, batch, slope = jax.device_get(all_forms(x))
    jax.tree.map(np.testing.assert_array_equal, value, {"square": x * x, "sum": x.sum()})
    assert batch["sum"].tolist() == [6.0, 12.0] and slope.tolist() == (2 * x).tolist()


def test_the_options_to_compile_fast_are_known_to_this_compiler_and_give_way_to_the_users(monkeypatch):
    monkeypatch.setenv("XLA_FLAGS", "")
    summed = jax.jit(jnp.cumsum).lower(jnp.ones(3)).compile(staging.compiled_fast())
    assert summed(jnp.ones(3)).tolist() == [1, 2, 3]
    monkeypatch.setenv("XLA_FLAGS", "--xla_cpu_use_fusion_emitters=true")
    assert staging.compiled_fast() == {}


def test_the_options_for_wide_vectors_are_known_to_this_compiler_and_give_way_to_the_users(monkeypatch):
    monkeypatch.setenv("XLA_FLAGS", "")
    words = jax.jit(lambda key: random.bits(key, 40)).lower(jax.random.key(0)).compile(staging.with_wide_vectors())
    assert words(jax.random.key(0)).tolist() == jax.random.bits(jax.random.key(0), (40,)).tolist()
    monkeypatch.setenv("XLA_FLAGS", "--xla_cpu_prefer_vector_width=256")
    assert staging.with_wide_vectors() == {}


@pytest.mark.parametrize("events", [-1, 11, np.array([3, 11])])
def test_an_interval_of_more_events_than_trials_is_refused(events):
    with pytest.raises(ValueError, match="events must be from 0 to 10, the number of trials"):
        proportions.clopper_pearson(events, 10, level=0.9)


def test_an_interval_of_narrow_counts():
    """A count's own type need not hold the number of trials."""
    for events, trials in ((np.array([3, 100], np.int8), 1000), (np.array([3], np.int32), 2**33)):
        narrow, wide = (proportions.clopper_pearson(each, trials, level=0.9) for each in (events, events.astype(int)))
        assert np.array_equal(narrow, wide)


@pytest.mark.parametrize("kind", [Points, Sample, Weighted])
def test_batches_of_counts_alone_are_shown(kind):
    x, counts = wide.from_ints([1, 2, 3], 8), jnp.array([1, 2, 3], jnp.int32)
    more = {"y": jnp.array([0, 1, 1], jnp.int32)} if kind is Sample else {}
    one = kind.create(x, [1, 2, 3]) if kind is Weighted else kind(x=x, n_valid=jnp.int32(2), **more)
    leaves, tree = jax.tree.flatten(one)
    batch = jax.tree.unflatten(tree, [counts if np.ndim(leaf) == 0 else leaf for leaf in leaves])
    assert f"{kind.__name__}(" in repr(batch)


@pytest.mark.parametrize(
    "y, error, words",
    [
        ([[1, 0], [1]], ValueError, "y must have the length of x"),
        ([1, None], TypeError, "y must hold labels"),
        (["a", "b"], TypeError, "y must hold labels"),
        (jnp.array([1 + 0j, 0]), TypeError, "y must hold labels"),
        ([0, 2], ValueError, "y must hold labels 0 and 1 only"),
    ],
)
def test_other_things_than_labels_are_refused(y, error, words):
    x = wide.from_ints([1, 2], 8)
    for made in (lambda: Sample(x=x, y=y), lambda: Examples.create(x[:, None], y)):
        with pytest.raises(error, match=words):
            made()
