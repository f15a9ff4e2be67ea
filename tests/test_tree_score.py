"""The tree score: privacy over all neighbours, the worst case against brute force and the law, the sampler of several limbs."""

import dataclasses
import itertools
import math
from fractions import Fraction

import builders
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from frequencies import FALSE_ALARM, p_value

from dpjax import Points, Sample, Status
from dpjax.accounting import ADD_OR_REMOVE_ONE
from dpjax.bounds import pure_interior_point
from dpjax.data.sample import bucket
from dpjax.domains import wide
from dpjax.learners import interior
from dpjax.optimizers import interior_point
from dpjax.optimizers.interior_point import tree_planning as planning
from dpjax.optimizers.quantiles import half_slice
from dpjax.verify import histograms, neighbours, probabilities, records
from dpjax.verify.plain import tree_score as twin

EPSILON = 0.9


def make(bits, epsilon=1.0, **offsets):
    return interior_point.tree_score(
        bits=bits, epsilon=epsilon, offsets=planning.offsets(**offsets) if offsets else None
    )


# ------------------------------------------------------------------------------------------------------------ privacy


def tables(domain, largest, cases):
    """ln P of every output on every multiset of at most `largest` points, for each (epsilon, growth of a with n); and the neighbours."""
    counts = histograms(domain, range(largest + 1))
    bits = domain.bit_length() - 1
    solver = make(bits, a=0.8, alpha=0.1, p=0.5, tau=0.1)

    def law(row):
        values, n, epsilon, slope = row
        offsets = dataclasses.replace(solver.offsets, a=0.8 + slope * n.astype(float))
        changed = dataclasses.replace(solver, epsilon=epsilon, offsets=offsets)
        return jnp.log(changed.pmf(Points.create(values[:, None].astype(jnp.uint32), n)))

    values, sizes = (np.tile(part, (len(cases), *[1] * (part.ndim - 1))) for part in records(counts, 7))
    epsilons, slopes = (np.repeat(np.array(column), len(counts)) for column in zip(*cases, strict=True))
    p = probabilities(law, (values, sizes, epsilons, slopes), batch_size=len(counts))
    return np.split(np.log(p[:, :domain]), len(cases)), neighbours(counts, ADD_OR_REMOVE_ONE)


def largest_loss(table, pairs):
    """The largest privacy loss between neighbours."""
    return float(np.max(table[pairs[:, 0]] - table[pairs[:, 1]]))


@pytest.mark.parametrize("largest", [builders.thorough(3), builders.slow(5)])
def test_no_neighbours_tell_more_than_epsilon_and_broken_ones_do(largest):
    """All multisets of up to `largest` points of 8: a loss of 0.9 to 1 times epsilon, more if epsilon is doubled or offsets grow with n."""
    found, pairs = tables(8, largest, [(EPSILON, 0.0), (2 * EPSILON, 0.0), (EPSILON, EPSILON)])
    good, doubled, growing = (largest_loss(table, pairs) for table in found)
    assert 0.9 * EPSILON < good <= EPSILON * (1 + 1e-9)
    assert doubled > 1.5 * EPSILON and growing > 1.2 * EPSILON
    guarantee = make(3, EPSILON).guarantee()
    assert (guarantee.epsilon, guarantee.delta, guarantee.relation) == (EPSILON, 0.0, ADD_OR_REMOVE_ONE)


def test_offsets_beside_which_floats_lose_single_points_are_refused():
    """At a = 10^7 and epsilon = 0.3 one point more once told 1.0."""
    for offsets in ({"a": 1e7}, {"a": 1.0, "alpha": 3000.0}, {"a": 1.0, "p": -1e4}, {"a": 1.0, "tau": 3000.0}):
        with pytest.raises(ValueError, match=r"offsets must be <= 8192"):
            make(3, **offsets)
    points, good = Points.create(jnp.uint32([[5], [5]])), make(3, a=8000.0)
    run = jax.jit(lambda a: dataclasses.replace(good, offsets=planning.offsets(a=a))(jax.random.key(0), points).status)
    assert [int(run(jnp.float32(a))) == Status.BAD_PARAMETER for a in (8000.0, 9000.0)] == [False, True]


def rational_law(points, bits, base, sizes, ranks):
    """P with weights base^u, as fractions; offsets are integers."""
    weights = [Fraction(base) ** u for u in twin.tree_scores(points, bits, sizes, ranks)]
    return [weight / sum(weights) for weight in weights]


def test_the_guarantee_holds_without_any_rounding():
    """With e^epsilon = 3 and integer offsets all ratios are fractions: none is above 3, and some are above 5/2."""
    largest = Fraction(0)
    for points in itertools.chain.from_iterable(twin.multisets(n, 2) for n in range(4)):
        for extra in range(4):
            for sizes, ranks in (([2, 1, 3], [0, 1, 0]), ([0, 0, 0], [0, 0, 0])):
                laws = [rational_law(data, 2, 3, sizes, ranks) for data in (points, (*points, extra))]
                each = [p / q for p, q in zip(*laws, strict=True)]
                largest = max(largest, *each, *(1 / ratio for ratio in each))
    assert Fraction(5, 2) < largest <= 3


# ------------------------------------------------------------------------------------------------------ the worst data


def test_no_size_that_the_theorem_calls_enough_fails():
    """For offsets of all kinds, so that each condition of the theorem decides somewhere; the programme checks ten sizes from there on."""
    rng, margins = np.random.default_rng(3), []
    for bits in (1, 2, 3, 5, 8) * 6:
        epsilon, beta = rng.uniform(0.3, 2.0), rng.choice([0.02, 0.1, 0.4, 0.95])
        offsets = (
            (rng.uniform(0, bits + 2), *rng.uniform(-0.2, 0.6, 3)) if rng.random() < 0.7 else (0.7 * bits, 0, 0, 0)
        )
        case = planning.Case(bits, epsilon, *offsets)
        enough = case.enough(beta)
        assert all(case.keeps(n, beta / (1 - beta)) for n in range(enough, enough + 10))
        margins.append(enough - planning.least_n(bits, epsilon, *offsets, beta, planning.MOST_STEPS))
    assert 0 <= min(margins) <= 1  # somewhere it is nearly exact


def test_offsets_that_rise_with_the_level_are_reckoned_with_at_their_greatest():
    """By each level's own offsets alone ten points were once said to be enough, though their worst failure is 0.126."""
    offsets = planning.offsets(a=11.13, alpha=0.514, p=-1.488, tau=0.348)
    solver = interior_point.tree_score(bits=24, epsilon=3.7, offsets=offsets)
    assert solver.worst(10)[0] > 0.1 >= solver.worst(solver.sample_size(beta=0.1))[0]


@pytest.mark.parametrize("bits", [10, 16, 24])
@pytest.mark.parametrize(("epsilon", "beta"), [(0.5, 0.1), (1.0, 0.1), (1.0, 0.001)])
def test_the_theorem_is_nearly_exact_with_plain_offsets(bits, epsilon, beta):
    case = planning.Case(bits, epsilon, *planning.numbers(planning.plain(bits)))
    enough = case.enough(beta)
    assert case.keeps(enough, beta / (1 - beta)) and not case.keeps(enough - 3, beta / (1 - beta))


@pytest.mark.parametrize(("bits", "n"), [(1, 1), (1, 4), (2, 5), (3, 4)])
def test_the_programme_finds_the_worst_of_all_multisets(bits, n):
    rng = np.random.default_rng(bits + n)
    for _ in range(3):
        epsilon, offsets = rng.uniform(0.3, 2.0), (rng.uniform(0, 3), *rng.uniform(-0.3, 0.8, 3))
        failures = [
            twin.failure(twin.tree_score_law(points, bits, epsilon, *offsets), points)
            for points in twin.multisets(n, bits)
        ]
        failure, points = planning.worst(bits, epsilon, *offsets, n)
        np.testing.assert_allclose(failure, max(failures), rtol=1e-12)
        own = twin.failure(twin.tree_score_law(points, bits, epsilon, *offsets), points)
        np.testing.assert_allclose(own, failure, rtol=1e-12)
        assert max(failures) > min(failures) or n == 1


def test_rounding_does_not_turn_a_tiny_failure_into_none():
    """At the odds of the worst data nothing is worse, and data that never fail were once taken for the worst: 0.0 was the answer here."""
    failure, points = interior_point.tree_score(bits=1, epsilon=16.0, offsets=planning.offsets(a=2.0, p=0.5)).worst(16)
    failures = [
        twin.failure(twin.tree_score_law(points, 1, 16.0, 2.0, 0.0, 0.5, 0.0), points)
        for points in twin.multisets(16, 1)
    ]
    np.testing.assert_allclose(failure, max(failures), rtol=1e-12)
    assert 0 < failure < 1e-100 and len(set(points)) == 1


@pytest.mark.slow
@pytest.mark.parametrize("bits", [16, 18, 20, 22, 24, 28, 32])
def test_how_far_the_theorem_is_above_the_exact_least_size(bits):
    """The module's claim about plain offsets."""
    for epsilon, beta in itertools.product((0.3, 0.5, 1.0, 2.0), (0.1, 0.01, 0.001)):
        given = (bits, epsilon, *planning.numbers(planning.plain(bits)), beta)
        least, enough = planning.least_n(*given, 3e9), planning.least_n(*given, 0.0)
        assert 0 <= enough - least <= (1 if bits >= 24 else 2 / epsilon)


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("bits", "n", "too_few"),
    [
        (64, 58, 57),
        builders.thorough(256, 194, 193),
        *(builders.slow(*case) for case in ((1024, 730, 728), (4096, 2862, 2861))),
    ],
)
def test_three_heaps_show_that_hardly_fewer_points_are_enough(bits, n, too_few):
    """Three heaps where the theorem's three good keys weigh alike: the outer ones have as many points as the middle one, less A."""
    solver = make(bits)
    assert solver.sample_size(beta=0.1) == n
    middle, outside = 2 ** (bits - 1), round((n - float(solver.offsets.a)) / 3)

    def failure(size, below, above):
        heaps = [middle - 2] * below + [middle - 1] * (size - below - above) + [middle + 1] * above
        return float(solver.failure_probability(builders.points_of(heaps, bits, bucket(n))))

    around = [(outside + i, outside + j) for i in (-1, 0) for j in (-1, 0, 1)]
    assert max(failure(n, *sides) for sides in around) <= 0.1 < max(failure(too_few, *sides) for sides in around)


def adversarial(rng, worst, bits):
    """Points that are hard for a tree: clusters, powers of two, copies, and the worst data with some points moved."""
    n, kind = len(worst), rng.integers(4)
    if kind == 0:
        return [
            2 ** (bits - 1) + int(s) * 2 ** int(k)
            for s, k in zip(rng.choice([-1, 1], n), rng.integers(0, bits - 1, n), strict=True)
        ]
    if kind == 1:
        centres = [int.from_bytes(rng.bytes(bits // 8), "big") for _ in range(3)]
        return [centres[i] for i in rng.integers(0, 3, n)]
    if kind == 2:
        return [int.from_bytes(rng.bytes(bits // 8), "big") >> int(k) for k in rng.integers(0, bits, n)]
    moved = rng.random(n) < 0.1
    return [
        (x ^ (1 << int(k))) % 2**bits if move else x
        for x, move, k in zip(worst, moved, rng.integers(0, bits, n), strict=True)
    ]


@pytest.mark.slow
def test_at_64_bits_the_law_reaches_the_worst_case_and_never_passes_it():
    solver = make(64)
    n = solver.sample_size(beta=0.1)
    assert n == 58 and pure_interior_point(2**64, 0.1, 1.0, ADD_OR_REMOVE_ONE) == 45
    assert interior_point.exponential(bits=64, epsilon=1.0).sample_size(beta=0.1) == 94
    law = lambda values: float(solver.failure_probability(builders.points_of(values, 64, 63)))  # noqa: E731
    for size in (n, n - 1):
        failure, points = solver.worst(size)
        assert (failure <= 0.1) == (size == n)
        np.testing.assert_allclose(law(points), failure, rtol=1e-4)
    failure, points = solver.worst(n)
    rng = np.random.default_rng(0)
    found = [law(adversarial(rng, points, 64)) for _ in range(100)]
    assert 0.1 * failure < max(found) <= failure * (1 + 1e-4)


def test_sizes_that_are_passed_without_a_programme_are_right():
    """From `least_n` on no size fails, up to where the theorem begins; and one point less is too few."""
    numbers = planning.numbers(planning.plain(4))
    n = planning.least_n(4, 0.3, *numbers, 0.2, planning.MOST_STEPS)
    enough = planning.least_n(4, 0.3, *numbers, 0.2, 0.0)
    failures = [planning.worst(4, 0.3, *numbers, size)[0] for size in range(n - 1, enough + 1)]
    assert n < enough and failures[0] > 0.2 >= max(failures[1:])


def test_sizes_that_are_passed_unseen_leave_room_for_growing_odds(monkeypatch):
    """Odds may grow by e^epsilon with each point: between two sizes that barely suffice there may be some that do not, as here."""
    epsilon, beta = 0.03, 0.1

    class Saw:
        def __init__(self, *given):
            pass

        def enough(self, beta):
            return 100

        def steps(self, n):
            return 1

        def keeps(self, n, odds):
            return beta / (1 - beta) * math.exp(epsilon * (n % 10 - 5.5)) <= odds

    monkeypatch.setattr(planning, "Case", Saw)
    n = planning.least_n.__wrapped__(2, epsilon, 0.0, 0.0, 0.0, 0.0, beta, 1e6)
    assert n == 100 and not Saw().keeps(99, beta / (1 - beta)) and Saw().keeps(90, beta / (1 - beta))


@pytest.mark.parametrize(
    ("bits", "n"), [(3, 6), (8, 14), (16, 21), *(builders.slow(*case) for case in ((32, 33), (64, 56)))]
)
def test_searched_offsets_need_fewer_points(bits, n):
    solver = interior_point.tree_score(bits=bits, epsilon=1.0, offsets=planning.planned(bits=bits, epsilon=1.0))
    assert solver.sample_size(beta=0.1) == n < make(bits).sample_size(beta=0.1)
    assert pure_interior_point(2**bits, 0.1, 1.0, ADD_OR_REMOVE_ONE) < n
    assert solver.worst(n)[0] <= 0.1 < solver.worst(n - 1)[0]


# -------------------------------------------------------------------------------------------------- law and sampler


@pytest.mark.slow
def test_draws_of_two_limbs_follow_the_law():
    """40 bits, and so little data that keys, empty subtrees and the key 0 are all drawn; in intervals around the points."""
    solver = make(40, 1.0, a=20.0, alpha=0.01, p=0.2, tau=0.45)
    middle = 2**39
    points = builders.points_of([*[0] * 26, *[middle + 5] * 26, *[2**40 - 1] * 3], 40, 63)
    edges = [0, 1, 2, 2**20, 2**38 + 1, middle, middle + 5, middle + 6, 3 * 2**38, 2**40]
    law = [float(solver.probability(points, pair)[0]) for pair in itertools.pairwise(edges)]
    np.testing.assert_allclose(sum(law), 1, rtol=1e-5)
    draw = jax.jit(jax.vmap(lambda key: solver(key, points).hypothesis))
    drawn = wide.to_ints(draw(jax.random.split(jax.random.key(3), 4000)))
    counts = np.histogram(np.searchsorted(edges[1:-1], drawn, side="right"), np.arange(len(edges)))[0]
    assert min(law) > 1e-3 and p_value(counts, 4000 * np.array(law)) > FALSE_ALARM
    assert p_value(counts, 4000 * np.array(law[::-1])) < FALSE_ALARM


@pytest.mark.slow
def test_laws_are_differentiable_in_epsilon_and_in_the_offsets(x64):
    points = builders.points_of([3, 9, 9, 20], 5, 7)

    def failure(numbers):
        epsilon, *offsets = numbers
        solver = make(5)
        offsets = planning.Offsets(**dict(zip(("a", "alpha", "p", "tau"), offsets, strict=True)))
        return dataclasses.replace(solver, epsilon=epsilon, offsets=offsets).failure_probability(points)

    at = jnp.array([0.7, 1.3, 0.11, 0.4, 0.07])
    law = jax.jit(jax.value_and_grad(failure))
    steps = 1e-5 * np.eye(5)
    expected = [(law(at + step)[0] - law(at - step)[0]) / 2e-5 for step in steps]
    np.testing.assert_allclose(law(at)[1], expected, rtol=1e-6)
    assert np.min(np.abs(expected)) > 1e-4


@pytest.mark.slow
def test_4096_bits():
    bits = 4096
    solver = make(bits)
    n = solver.sample_size(beta=0.1)
    assert n == 2862 and interior_point.exponential(bits=bits, epsilon=1.0).sample_size(beta=0.1) == 5683
    rng = np.random.default_rng(0)
    values = [2**4095 + 2 ** int(k) for k in rng.integers(0, 4095, n)]
    points = builders.points_of(values, bits)
    assert solver.failure_probability(points) < 0.1
    assert min(values) <= wide.to_ints(solver(jax.random.key(0), points).hypothesis)[0] <= max(values)


# ------------------------------------------------------------------------------------------------------- applications


def pure_learner(name):
    """A learner from the numbers around the boundary, as many as the solver requires."""
    solver = getattr(interior_point, name)(bits=25, epsilon=0.5)
    return interior.threshold_learner(solver=solver, m=half_slice(solver, beta=0.05))


def test_a_pure_learner_of_thresholds_needs_fewer_examples():
    ours, theirs = map(pure_learner, ("tree_score", "exponential"))
    assert ours.guarantee() == theirs.guarantee() and ours.guarantee().delta == 0
    assert int(ours.m) < 0.8 * int(theirs.m)
    assert ours.sample_size(alpha=0.1, beta=0.1) < 0.85 * theirs.sample_size(alpha=0.1, beta=0.1)


@pytest.mark.slow
def test_a_pure_learner_of_thresholds_keeps_its_promise():
    learner = pure_learner("tree_score")
    xs = [10 + i for i in range(150)] + [2**20 + 2**i for i in range(18)] * 10
    sample = Sample(x=wide.from_ints(xs, 24), y=[int(x < 2**20) for x in xs])
    assert learner.failure_probability(sample, error=learner.empirical_error(len(xs))) <= 0.05


@pytest.mark.parametrize(
    ("call", "error", "says"),
    [
        (lambda: make(0), ValueError, "bits must be from 1"),
        (lambda: make(4, -1.0), ValueError, "epsilon must be > 0"),
        (lambda: make(4, a=math.inf), ValueError, "a must be"),
        (lambda: make(4, a="x"), TypeError, "a must be a real number"),
        (lambda: interior_point.tree_score(bits=4, epsilon=1.0, offsets=3), TypeError, "offsets must be an Offsets"),
        (lambda: make(4).worst(0), ValueError, "n must be >= 1"),
        (lambda: make(4).sample_size(beta=1.0), ValueError, "beta must be"),
        (lambda: planning.planned(bits=4, epsilon=0.0), ValueError, "epsilon must be > 0"),
        (lambda: planning.planned(bits=4, epsilon=1.0, evaluations=0), ValueError, "evaluations must be >= 1"),
        (lambda: jax.jit(lambda a: make(4, a=a).worst(3))(1.0), TypeError, "a must be a known number"),
    ],
)
def test_bad_arguments_are_refused_by_name(call, error, says):
    with pytest.raises(error, match=says):
        call()


def test_a_point_more_is_epsilon_more_beside_many() -> None:
    """In single precision 0.3 times 250,000 has few digits after the point: one more point once added 0.3047 or 0.2969."""
    solver = interior_point.tree_score(bits=2, epsilon=0.3, offsets=planning.offsets(a=0.0))
    count = np.arange(250_000, 250_200, dtype=np.int32)
    logs = jax.jit(solver._log_weight_of)(count, count, np.float32(1.0), np.int32(500_080))
    np.testing.assert_allclose(np.diff(np.asarray(logs, float)), 0.3, rtol=1e-4)
