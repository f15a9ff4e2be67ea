"""The TreeLog reference itself: hand-made cases, a literal simulation, and an attack on the privacy claim.

The attack enumerates neighbours D, D + z exactly. A walk's outcome is a stop value or "went on"; going on counts as
the same outcome for both only if what is handed on is close: the deep slices equal, or one element replaced or
inserted, and the remaining levels equal or one inserted. Then a level costs walk + A_dist under replacement + count.
"""

import dataclasses
import functools
import itertools
import math
import random
from collections import Counter

import pytest
from builders import slow

from dpjax.verify.plain import tree_log as reference
from dpjax.verify.plain.partition_selection import saturation
from dpjax.verify.plain.tree_log import Level, hockey_stick, tree_log_law, uniform_level, walk_delta

TOLERANCE = 1e-12


def multisets(size, n):
    """All multisets of n points of {0..size-1}."""
    return itertools.combinations_with_replacement(range(size), n)


def neighbours(size, most):
    """All (D, D + z) with at most `most` points in the larger."""
    return ((data, z) for n in range(most) for data in multisets(size, n) for z in range(size))


@functools.lru_cache(maxsize=2**16)
def walked(data, bits, level):
    """(law of stop value or None for going on, deep slice, remaining levels) with public slice sizes and m1 = 0."""
    stops, path, survived = reference.walk(data, bits, level.keep)
    _, deep, remaining = next(reference.deep_slices(data, path, level)) if path else (1.0, [], [])
    return {**dict(stops), None: survived}, Counter(deep), Counter(remaining)


def walk_price(data, z, bits, level):
    """The larger hockey-stick of the two walks in both directions; going on is no common outcome if what is handed on is far apart."""
    (one, deep, rest), (two, deep2, rest2) = (walked(tuple(sorted(each)), bits, level) for each in (data, (*data, z)))
    far = max((deep - deep2).total(), (deep2 - deep).total()) > 1 or (rest - rest2).total() + (rest2 - rest).total() > 1
    if far:
        two = {-1 if value is None else value: p for value, p in two.items()}
    return max(hockey_stick(one, two, level.walk_epsilon), hockey_stick(two, one, level.walk_epsilon))


def worst_walk(bits, level):
    """The largest price over all neighbours, in units of the tests' delta."""
    return max(walk_price(data, z, bits, level) for data, z in neighbours(2**bits, level.m2 + 4)) / level.walk_delta


def shifted(epsilon, delta, back, spare):
    """A level with t1 = g - back and m2 = 2 t2 - spare."""
    g = saturation(epsilon, delta)
    return uniform_level(epsilon, delta, g - back, 0, 2 * (2 * g - back - 1) - spare)


# Base case and steps.


def test_base_case_is_the_exponential_mechanism():
    law = reference.base_law([1, 1, 3], 4, 2.0)  # q = 0, 2, 1, 1
    weights = [1, math.e**2, math.e, math.e]
    assert [law[x] for x in range(4)] == pytest.approx([w / sum(weights) for w in weights], rel=TOLERANCE)
    assert reference.base_law([1, 1, 3], 4, 1.0, monotone=True) == pytest.approx(law)
    assert set(reference.base_law([], 4, 1.0).values()) == {0.25}


@pytest.mark.parametrize("monotone, rate", [(False, 2.0), (True, 1.0)])
def test_base_case_is_private_and_the_flag_is_tight(monotone, rate):
    """q only grows with the data, so weights exp(epsilon q / 2) cost only half of epsilon."""

    def worst(rate):
        laws = [[reference.base_law(x, 4, rate, monotone) for x in (d, (*d, z))] for d, z in neighbours(4, 6)]
        return max(max(hockey_stick(p, q, 1.0), hockey_stick(q, p, 1.0)) for p, q in laws)

    assert worst(rate) <= TOLERANCE
    assert worst(1.2 * rate) > 1e-3


def test_test_probabilities():
    level = uniform_level(1.0, 0.1, 7, 0, 0)  # g = 5
    assert level.t2 == 11
    assert [level.keep(c) for c in (0, 6, 7, 8, 11, 99)] == pytest.approx([0, 0, 0.1, 0.1 + 0.1 * math.e, 1, 1])


def test_walk_by_hand():
    keep = {0: 0.0, 1: 0.5, 2: 0.25, 3: 0.125}.__getitem__
    stops, path, survived = reference.walk([0, 1, 1, 4, 6, 7], 3, keep)  # 3 : 3, left; 3 : 0; 1 : 2, right
    assert stops == [(3, 0.125), (0, 0.875 * 0.5)] and path == [0, 0, 0, 1] and survived == 0.4375
    assert [reference.level_of(x, path) for x in (0, 1, 2, 4)] == [2, 3, 1, 0]
    assert reference.walk([], 3, keep) == ([], [], 1.0)


def test_deep_slice_is_deepest_first_ties_by_value():
    level = uniform_level(1.0, 0.1, 99, 0, 3)
    _, path, _ = reference.walk([0, 1, 1, 4, 6, 7], 3, level.keep)
    assert list(reference.deep_slices([0, 1, 1, 4, 6, 7], path, level)) == [(1.0, [1, 1, 0], [0, 0, 0])]


def test_noisy_slices_take_what_is_left():
    noisy = list(reference.slice_sizes(2, 4, math.log(2)))
    assert [size for _, size in noisy] == [2, 3, 4]
    assert [p for p, _ in noisy] == pytest.approx([0.5, 0.25, 0.25])
    assert list(reference.slice_sizes(5, 4, 1.0)) == [(1.0, 4)] and list(reference.slice_sizes(3, 4, None)) == [
        (1.0, 3)
    ]


@pytest.mark.parametrize("deep, length, prefix, gap", [([4, 5, 6], 1, 1, 3), ([4, 5, 6], 2, 2, 1), ([1, 6], 1, 0, 0)])
def test_stable_prefix(deep, length, prefix, gap):
    best, released = reference.stable_prefix(deep, 3, length, 2.0, 0.05)
    short = 1 + math.log(10) / 2 - gap
    assert best == prefix
    assert released == pytest.approx(math.exp(-2 * short) / 2 if short > 0 else 1 - math.exp(2 * short) / 2)
    assert reference.stable_prefix([], 3, 2, 2.0, 0.05) == (0, pytest.approx(0.05 * math.exp(-2)))


def test_output_is_an_end_of_the_released_node():
    level = Level(1.0, 0.1, 9, 9, 4, 4, 50.0, 1e-3, 50.0)
    law = reference.delayed_law(1, [0, 1, 4, 4], [4, 5, 4, 4], 3, level)  # node {4, 5}; two of four are below it
    assert law[4] + law[5] == pytest.approx(1) and law[4] == pytest.approx(0.5)
    assert reference.delayed_law(None, [0], [1], 3, level) == {None: 1.0}
    assert reference.delayed_law(9, [0, 1, 4, 4], [6] * 4, 3, level)[6] == pytest.approx(1)  # clipped: a leaf


# The whole.


def simulate(rng, data, bits, levels, epsilon):
    """One run of TreeLog, the trie's nodes being intervals [low, high)."""
    data = sorted(data)
    if not levels:
        scores = [min(sum(y <= x for y in data), sum(y >= x for y in data)) for x in range(2**bits)]
        return rng.choices(range(2**bits), [math.exp(epsilon * score / 2) for score in scores])[0]
    level, *deeper = levels
    cut = drawn_size(rng, level.m1, level.slice_epsilon)
    left, rest = data[:cut], data[cut:]
    low, high, depths = 0, 2**bits, [0] * len(rest)
    while rest and high - low > 1:
        middle = (low + high) // 2
        small, large = sum(low <= x < middle for x in rest), sum(middle <= x < high for x in rest)
        if rng.random() < level.keep(min(small, large)):
            return middle - 1
        low, high = (low, middle) if small >= large else (middle, high)
        depths = [depth + (low <= x < high) for depth, x in zip(depths, rest, strict=True)]
    order = sorted(range(len(rest)), key=lambda i: (-depths[i], rest[i]))
    cut = drawn_size(rng, level.m2, level.slice_epsilon)
    star = simulate(rng, [depths[i] for i in order[cut:]], math.ceil(math.log2(bits + 1)), deeper, epsilon)
    if star is None:
        return None
    width = 2 ** (bits - 1 - min(star, bits - 1))
    counts = [sum(rest[i] // width == node for i in order[:cut]) for node in range(2**bits // width)]
    second, first = sorted(counts)[-2:]
    threshold = 1 + math.log(1 / (2 * level.stable_delta)) / level.stable_epsilon
    if first - second + laplace(rng, level.stable_epsilon) < threshold:
        return None
    node = counts.index(first)
    many = sum(x < node * width for x in left) + laplace(rng, level.count_epsilon) >= level.m1 / 2
    return node * width if many else (node + 1) * width - 1


def drawn_size(rng, least, epsilon):
    """least + Geom(1 - e^-epsilon)."""
    while epsilon is not None and rng.random() < math.exp(-epsilon):
        least += 1
    return least


def laplace(rng, epsilon):
    """Laplace noise of scale 1/epsilon."""
    return rng.expovariate(epsilon) - rng.expovariate(epsilon)


SPREAD = (0, 1, 2, 2, 3, 5, 5, 6, 9, 9, 9, 10, 12, 14, 15, 15)
RUNS = [
    ([Level(1.0, 0.1, 5, 9, 2, 3, 1.2, 0.1, 0.8)], SPREAD),
    ([Level(1.0, 0.1, 5, 9, 2, 3, 1.2, 0.1, 0.8, 0.9)], SPREAD[2:]),
    ([Level(1.0, 0.02, 5, 12, 2, 3, 1.5, 0.2, 0.8), Level(1.0, 0.1, 3, 7, 1, 2, 2.0, 0.2, 1.0)], SPREAD),
]


@pytest.mark.thorough
@pytest.mark.parametrize("levels, data", RUNS, ids=["one level", "noisy slices", "two levels"])
def test_law_is_that_of_a_literal_simulation(levels, data):
    """Hoeffding for each of 17 outcomes: false alarm 2e-5 in all; tests that start one earlier are noticed."""
    rng, runs = random.Random(7), 12_000
    seen = Counter(simulate(rng, data, 4, levels, 1.0) for _ in range(runs))
    allowed = math.sqrt(math.log(2 * 17 / 2e-5) / (2 * runs))

    def distance(law):
        return max(abs(law.get(x, 0.0) - seen[x] / runs) for x in (None, *range(16)))

    assert distance(tree_log_law(data, 4, levels, 1.0)) < allowed
    early = dataclasses.replace(levels[0], t1=levels[0].t1 - 1, t2=levels[0].t2 - 1)
    assert distance(tree_log_law(data, 4, [early, *levels[1:]], 1.0)) > 2 * allowed


@pytest.mark.parametrize("levels", [levels for levels, _ in RUNS])
@pytest.mark.parametrize("bits", [1, 2, 3, 5])
def test_laws_sum_to_one(bits, levels):
    rng = random.Random(bits)
    for n in (0, 1, 3, 20):
        law = tree_log_law([rng.randrange(2**bits) for _ in range(n)], bits, levels, 1.0)
        assert math.fsum(law.values()) == pytest.approx(1, abs=TOLERANCE)
        assert all(x is None or 0 <= x < 2**bits for x in law) and min(law.values()) >= -TOLERANCE


def test_wide_domains_are_exact():
    """4096 bits: halves of the trie that hold only a few points; the answer lies between them, to the last bit."""
    level = uniform_level(2.0, 0.05, 5, 20, 60)
    near, far = 1 << 4000, (1 << 4095) + 12345
    law = tree_log_law([near] * 20 + [far + i for i in range(70)], 4096, [level], 2.0)
    assert math.fsum(law.values()) == pytest.approx(1, abs=TOLERANCE)
    assert math.fsum(p for x, p in law.items() if x is not None and near <= x <= far + 69) > 1 - 1e-3
    mirrored = tree_log_law([near] * 60 + [far] * 60, 4096, [level], 2.0)
    assert mirrored[(1 << 4095) - 1] == 1  # both children of the root weigh t2: a sure stop


def test_empty_and_tiny_data():
    level = uniform_level(1.0, 0.1, 5, 2, 5)
    empty = tree_log_law([], 3, [level], 1.0)  # l* uniform on 0..3, the lowest prefix released with delta / e
    assert empty[None] == pytest.approx(1 - 0.1 / math.e)
    assert empty == pytest.approx(tree_log_law([], 3, [uniform_level(1.0, 0.1, 9, 2, 99)], 1.0))
    assert tree_log_law([5, 6], 3, [level], 1.0) == empty  # all in the left slice, none below the lowest prefix
    assert tree_log_law([5, 6, 6], 3, [level], 1.0) != pytest.approx(empty)


# The attack.


@pytest.mark.parametrize("epsilon, delta", [(2.0, 0.2), (2.0, 0.1), (1.0, 0.2)])
def test_a_walk_costs_what_it_says(epsilon, delta):
    """With t1 = g - 1 and m2 = 2 t2 - 3; with one less of either it costs more."""
    assert worst_walk(2, shifted(epsilon, delta, 1, 3)) <= 1 + TOLERANCE
    assert worst_walk(2, shifted(epsilon, delta, 2, 3)) > 1.05
    assert worst_walk(2, shifted(epsilon, delta, 1, 4)) > 1.25


@pytest.mark.parametrize(
    "epsilon, delta, t1, bits", [(2.0, 0.2, 1, 2), (2.0, 0.1, 1, 2), (1.0, 0.2, 2, 2), (1.0, 0.1, 3, 2)]
)
def test_the_price_of_an_earlier_start_is_exact(epsilon, delta, t1, bits):
    """The formula's largest price is attained by some neighbours and exceeded by none."""
    t2 = t1 + saturation(epsilon, delta) - 1
    level = uniform_level(epsilon, delta, t1, 0, 2 * t2 - 3)
    assert worst_walk(bits, level) * delta == pytest.approx(walk_delta(epsilon, delta, t1), rel=1e-9)


@pytest.mark.parametrize("epsilon, delta", [(1.0, 1e-3), (0.5, 1e-2), (2.0, 1e-4)])
def test_price_of_an_earlier_start(epsilon, delta):
    """It is delta from g - 1 on; earlier at most delta + e^eps max of q~(m) p~(m / 2), if 2 t1 >= g - 1."""
    g = saturation(epsilon, delta)
    assert walk_delta(epsilon, delta, g - 1) == pytest.approx(delta, rel=1e-9)
    for t1 in range(g // 2, g - 1):
        keep = uniform_level(epsilon, delta, t1, 0, 0).keep
        extra = max((1 - keep(m)) * keep(m // 2) for m in range(2 * t1, t1 + g - 1))
        exact = walk_delta(epsilon, delta, t1)
        assert delta < exact <= delta + math.exp(epsilon) * extra + TOLERANCE


def worst_total(bits, most, levels, epsilon):
    """The exact delta(total epsilon) of TreeLog over all neighbours, every mechanism having budget epsilon."""
    total = (4 * len(levels) + 1) * epsilon
    laws = {
        data: tree_log_law(data, bits, levels, epsilon)
        for n in range(most + 1)
        for data in itertools.combinations_with_replacement(range(2**bits), n)
    }
    pairs = ((laws[data], laws[tuple(sorted((*data, z)))]) for data, z in neighbours(2**bits, most))
    return max(max(hockey_stick(p, q, total), hockey_stick(q, p, total)) for p, q in pairs)


@pytest.mark.parametrize("noise", [None, 0.5])
@pytest.mark.parametrize("depth, m1", [(1, 0), slow(1, 2), slow(2, 1)])
def test_total_is_within_the_guarantee(depth, m1, noise):
    """((4N + 1) eps0, N (d + e^eps0 delta0)), d the walk's price; a walk without tests breaks it."""
    epsilon, delta, t1 = 0.5, 0.1, 3
    g = saturation(epsilon, delta)
    level = uniform_level(epsilon, delta, t1, m1, 2 * (t1 + g - 1) - 3, noise)
    claim = walk_delta(epsilon, delta, t1) + math.exp(epsilon) * delta
    assert 0 < worst_total(1, 2 * level.m2 + 4, [level] * depth, epsilon) <= depth * claim
    assert 0 < worst_total(2, 9, [level] * depth, epsilon) <= depth * claim
    if depth == 1 and m1 == 0:
        untested = dataclasses.replace(level, t1=99, t2=99, m2=5, slice_epsilon=None)
        assert worst_total(2, 10, [untested], epsilon) > 2 * claim


@pytest.mark.parametrize(
    "epsilon, delta, t1, m1, m2, data, z, found",
    [
        (2.0, 0.05, 7, 2, 23, {3: 5, 4: 5, 5: 3, 6: 5, 12: 7}, 4, 0.21936),
        (2.0, 0.02, 5, 0, 17, {0: 1, 1: 2, 2: 3, 3: 3, 6: 3, 10: 5}, 6, 0.09052),
        (1.0, 0.1, 4, 0, 13, {1: 2, 3: 1, 4: 2, 5: 1, 6: 2, 7: 1, 13: 4}, 4, 0.16415),
    ],
)
def test_bad_pairs_found_by_search(epsilon, delta, t1, m1, m2, data, z, found):
    """Pairs on four bits that hill-climbing found; the second delta0 of a level must carry e^eps0, as 2 delta0 is too little."""
    level = uniform_level(epsilon, delta, t1, m1, m2)
    data = list(Counter(data).elements())
    one, two = (tree_log_law(points, 4, [level], epsilon) for points in (data, [*data, z]))
    exact = max(hockey_stick(one, two, 5 * epsilon), hockey_stick(two, one, 5 * epsilon))
    assert exact == pytest.approx(found, abs=1e-5)
    assert exact <= (1 + math.exp(epsilon)) * delta
    assert epsilon < 2 or exact > 4 * delta
