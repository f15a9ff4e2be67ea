"""Blocks of all lengths by leading words, compared with those by full numbers; distances from a pivot, compared with exact integers."""

import dataclasses
import math
import random

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dpjax.concepts import thresholds as concept
from dpjax.domains import offsets, ordered, wide
from dpjax.domains.events import Interval
from dpjax.learners import thresholds
from dpjax.mechanisms import exponential_piecewise as piecewise
from dpjax.optimizers.quasi_concave import ladder, recursion

pytestmark = pytest.mark.thorough  # one program of the law over 300 bits takes twenty seconds to compile

BITS, ROWS = 300, 31
TOP = 1 << BITS
# Where the target is: a power of two, digits of all kinds, long runs of ones and of zeros, either end of the domain.
TARGETS = {
    "middle": TOP // 2,
    "third": TOP // 3,
    "ones": (1 << 299) - 1,
    "ones and zeros": (1 << 299) + (1 << 180) - (1 << 90),
    "low": 1 << 70,
    "high": TOP - (1 << 100) - 1,
}


def distribution(target):
    return concept.log_uniform(bits=BITS, target=target)


@jax.jit
def both_ways(key, law, n, low, high):
    """(laws given each length by full numbers; by leading words; whether these suffice; the law that takes whichever is right)."""
    learner = thresholds.rec_concave(bits=BITS, epsilon=0.5, delta=1e-5, alpha=0.2, depth=2)
    pieces = learner.prepare(law.draw_scaled(key, ROWS, n))
    goal = learner.event(pieces, Interval(low=low, high=high))
    problem, budget = learner.problem(pieces), learner.budget()
    crest = ordered.crest(pieces)
    judge = piecewise.judge(pieces, piecewise.log_density(pieces, budget.choose, crest), goal)
    first, end = pieces.cut(jnp.zeros_like(pieces.end)), pieces.cut(pieces.end)
    rungs = ladder.build(pieces, crest, first, end, judge.within)

    def given(k):
        seen, known = recursion._lie_seen(pieces, rungs, k)
        whole = recursion._lie(pieces, crest, judge.within, k, first, end)
        return *(recursion._law_given(judge, lie, budget) for lie in (whole, seen)), known

    whole, seen, known = jax.vmap(given)(jnp.arange(32 * pieces.limbs, dtype=jnp.int32))
    return whole, seen, known, recursion.law_given_lengths(problem, budget, goal)


def agree(mine, theirs):
    np.testing.assert_allclose(np.exp(mine), np.exp(theirs), rtol=3e-5, atol=1e-37)


@pytest.mark.parametrize("name", TARGETS)
def test_laws_given_lengths_are_those_of_whole_numbers(name):
    """Wherever leading words suffice, which is nearly everywhere; elsewhere full numbers are used."""
    law, told = distribution(TARGETS[name]), []
    for seed, n in enumerate((31, 20, 31, 9)):
        low, high = law.within(jnp.float32(0.1 + 0.1 * seed))
        whole, seen, known, chosen = both_ways(jax.random.key(seed), law, jnp.int32(n), low, high)
        known = np.asarray(known)[: BITS + 1]
        agree(np.asarray(seen)[: BITS + 1][known], np.asarray(whole)[: BITS + 1][known])
        agree(np.asarray(chosen)[: BITS + 1], np.asarray(whole)[: BITS + 1])
        told.append(known.mean())
    assert np.median(told) > 0.9, told


def test_events_beside_which_blocks_end_are_looked_up():
    """The whole range, half of it, an interval, a point: ends of blocks agree with theirs in all digits, or in more than are read."""
    law = distribution(TOP // 2)
    unknown = 0
    for low, high in (
        (0, TOP + 1),
        (0, TOP // 2),
        (TOP // 2 - 2**200, TOP // 2 + 2**200 + 1),
        (TOP // 2, TOP // 2 + 1),
    ):
        ends = wide.from_ints([low, high], BITS + 1)
        whole, seen, known, chosen = both_ways(jax.random.key(1), law, jnp.int32(31), *ends)
        agree(np.asarray(chosen)[: BITS + 1], np.asarray(whole)[: BITS + 1])
        agree(np.asarray(seen)[np.asarray(known)], np.asarray(whole)[np.asarray(known)])
        unknown += int((~np.asarray(known)).sum())
    assert unknown > 0  # or nothing was looked up


def test_a_sample_without_ones_is_looked_up():
    """Its best point is 0, which does not count as a point of few digits."""
    law = distribution(TOP // 2)
    for seed in range(40):
        sample = law.draw_scaled(jax.random.key(seed), ROWS, jnp.int32(3))
        if int(sample.x.below) == 0:
            break
    low, high = law.within(jnp.float32(0.1))
    whole, _, known, chosen = both_ways(jax.random.key(seed), law, jnp.int32(3), low, high)
    assert not np.asarray(known).any()
    assert np.array_equal(np.asarray(chosen)[: BITS + 1], np.asarray(whole)[: BITS + 1], equal_nan=True)


def test_distances_are_those_of_integers():
    """Order and logarithms of distances between numbers near and far from a pivot, wherever they are said to be known."""
    rng = random.Random(0)
    pivot = rng.getrandbits(BITS)
    near = [pivot + sign * (rng.getrandbits(32) << rng.randrange(200)) for sign in (-1, 1) for _ in range(60)]
    near += [pivot, pivot + 1, pivot - 1, near[0] + 1, near[1] - 1, near[2] + (1 << 150), near[3] ^ (1 << 30)]
    numbers = [min(max(x, 0), TOP) for x in near]
    rows = wide.from_ints(numbers, BITS + 1)
    point = wide.from_ints([pivot], BITS + 1)[0]

    @jax.jit
    def compared(rows):
        seen = jax.vmap(lambda row: offsets.of(row, point))(rows)
        pair = lambda i, j: (offsets.less(seen[i], seen[j]), offsets.distance(seen[i], seen[j]))  # noqa: E731
        index = jnp.arange(rows.shape[0])
        return jax.vmap(lambda i: jax.vmap(lambda j: pair(i, j))(index))(index)

    less, distance = jax.device_get(compared(rows))
    pairs = [(a, b) for a in numbers for b in numbers]
    known = distance.known.reshape(-1)
    before, log = [a < b for a, b in pairs], [math.log(abs(a - b)) if a != b else -math.inf for a, b in pairs]
    assert np.array_equal(less.reshape(-1)[known], np.array(before)[known])
    np.testing.assert_allclose(distance.log.reshape(-1)[known], np.array(log)[known], rtol=1e-6, atol=1e-6)
    # Distances are unknown only where more than 16 digits cancel, up to two digits of slack.
    for a, b in (pair for pair, is_known in zip(pairs, known, strict=True) if not is_known):
        assert abs(a - b) < max(abs(a - pivot), abs(b - pivot)) >> (offsets.LOST - 2)
    assert 0 < (~known).sum() < len(pairs) // 4


def test_distances_of_which_few_digits_are_left_are_not_known():
    """Of 64 digits those that agree cancel: unless there are no others, at most 16 may."""

    def offset(digits, exact):
        high, low = (jnp.uint32(word) for word in divmod(digits, 2**32))
        return offsets.Offset(left=jnp.bool_(False), size=jnp.int32(200), high=high, low=low, exact=jnp.bool_(exact))

    for left, known in ((63, True), (48, True), (45, False), (20, False), (1, False)):
        for exact in (False, True):
            found = offsets.distance(offset(2**63, exact), offset(2**63 + 2 ** (left - 1), exact))
            assert bool(found.known) == (known or exact)
            assert float(found.log) == pytest.approx((200 - 64 + left - 1) * math.log(2), rel=1e-6)
    power = dataclasses.replace(offset(2**63, True), size=jnp.int32(65))
    before = dataclasses.replace(offset(2**64 - 1, True), size=jnp.int32(64))
    assert not offsets.distance(power, before).known  # the distance is 1, but a digit is missing
