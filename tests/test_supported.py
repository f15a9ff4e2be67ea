"""The exponential mechanism over what the data support, and over the keys of a tree: privacy over all neighbours, worst data, sizes."""

import dataclasses
import importlib
import itertools
import math

import builders
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from frequencies import FALSE_ALARM, p_value

import dpjax
from dpjax import Points, Status, bounds
from dpjax.accounting import ADD_OR_REMOVE_ONE, REPLACE_ONE, Guarantee
from dpjax.data.sample import bucket
from dpjax.domains import wide
from dpjax.domains.events import Interval
from dpjax.learners import thresholds
from dpjax.mechanisms import exponential, supported
from dpjax.optimizers import interior_point
from dpjax.optimizers.interior_point.supported_tree import _failure, least_n, log_least_weight
from dpjax.verify import exact, histograms, neighbours, probabilities, records
from dpjax.verify.plain import tree_score as twin
from dpjax.verify.plain.supported import supported_law, supported_thresholds_law, threshold_scores

of_thresholds = importlib.import_module(
    "dpjax.learners.thresholds.supported"
)  # the package has a function of this name

# --------------------------------------------------------------------------------------------------- the mechanism


def raised(most: int, candidates: int, growth: int) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
    """All pairs of scores up to `most` where one raises some of the other's by 1, at most `growth` of them from 0."""
    moves = [move for move in itertools.product((0, 1), repeat=candidates) if any(move)]
    return [
        (scores, tuple(map(sum, zip(scores, move, strict=True))))
        for scores in itertools.product(range(most + 1), repeat=candidates)
        for move in moves
        if sum(m for m, score in zip(move, scores, strict=True) if score == 0) <= growth
    ]


def spent(pairs, epsilon, delta, growth):
    """The largest delta(epsilon) over the pairs, both ways, by the plain law."""
    worst = 0.0
    for pair in pairs:
        p, q = (supported_law(scores, epsilon, delta, growth) for scores in pair)
        worst = max(
            worst,
            *(sum(max(x - math.exp(epsilon) * y, 0) for x, y in zip(a, b, strict=True)) for a, b in ((p, q), (q, p))),
        )
    return worst


@pytest.mark.parametrize(
    ("epsilon", "delta", "growth", "most"),
    [(1.0, 0.1, 1, 6), (0.3, 0.05, 2, 12), (2.0, 0.01, 3, 4), (0.02, 0.1, 1, 9), (5.0, 0.9, 2, 4), (0.7, 1e-9, 2, 30)],
)
def test_no_raised_scores_exceed_the_guarantee_and_a_larger_growth_does(epsilon, delta, growth, most):
    pairs = raised(min(most, 6), 3, growth)
    pairs += [
        (tuple(x + shift * (x > 0) for x in a), tuple(x + shift * (y > 0) for x, y in zip(b, a, strict=True)))
        for shift in (1, most)
        for a, b in raised(2, 3, growth)
    ]
    used = min(delta, 1 / 8, epsilon / 4)
    assert 0.9 * used < spent(pairs, epsilon, delta, growth) <= used * (1 + 1e-9) + 1e-15
    if growth < 3:  # negative control
        assert spent(raised(2, 3, growth + 1), epsilon, delta, growth) > 1.2 * used


@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 0.1), (0.1, 1e-3), (3.0, 1e-6), (0.01, 0.5)])
def test_bottom_changes_by_epsilon_at_most_and_nearly_reaches_it(epsilon, delta):
    """On two candidates that are raised together, while a third comes into view."""
    counts = range(1, math.ceil(40 / epsilon))
    bottoms = [[supported_law(s, epsilon, delta, 1)[-1] for s in ((n, n, 0), (n + 1, n + 1, 1))] for n in counts]
    losses = [math.log(less / more) for less, more in bottoms if less > 1e-290]
    assert 0.75 * epsilon < max(losses) <= epsilon * (1 + 1e-9)


def test_the_score_that_is_needed_is_enough_and_one_less_is_not():
    for epsilon, delta, beta, growth in itertools.product((0.1, 1.0), (0.1, 1e-6), (0.9, 0.1, 1e-3), (1, 7)):
        made = supported.mechanism(epsilon=epsilon, delta=delta, growth=growth)
        least = made.score_needed(beta)
        bottom = [supported_law([score], epsilon, delta, growth)[-1] for score in (least, least - 1)]
        assert bottom[0] <= beta * (1 + 1e-9) and (bottom[1] > beta or least == 1)


def test_far_fewer_counts_are_needed_than_by_choosing():
    """At (1, 1e-6) a score of 16 is released nine times in ten; the Choosing Mechanism needs 235 records to be private at all."""
    made = supported.mechanism(epsilon=1.0, delta=1e-6)
    law = np.asarray(made.pmf([0, 16, 0]))
    assert law[1] > 0.9 and law[0] == law[2] == 0
    assert bounds.choosing_mechanism_privacy(1, 0.5, 1.0, 1e-6) > 200


# ---------------------------------------------------------------------------------------------------------- the tree


def tables(domain, largest, epsilon, delta):
    """The law on every multiset of at most `largest` points, and all neighbours."""
    counts = histograms(domain, range(largest + 1))
    bits = domain.bit_length() - 1
    solver = interior_point.supported_tree(bits=bits, epsilon=epsilon, delta=delta)

    def law(row):
        values, n = row
        return jnp.log(solver.pmf(Points.create(values[:, None].astype(jnp.uint32), n)))

    p = probabilities(law, records(counts, bucket(largest)), batch_size=len(counts))
    return counts, p, neighbours(counts, ADD_OR_REMOVE_ONE)


@pytest.mark.parametrize(
    ("domain", "largest", "epsilon", "delta"),
    [(8, 3, 1.0, 0.1), builders.slow(8, 5, 0.6, 0.05), builders.slow(4, 12, 1.0, 0.02), builders.slow(16, 4, 1.5, 0.1)],
)
def test_no_neighbours_exceed_the_guarantee(domain, largest, epsilon, delta):
    """All multisets; delta is used up."""
    _, p, pairs = tables(domain, largest, epsilon, delta)
    assert delta * 0.99 < exact.sticks(p, pairs, epsilon).max() <= delta * (1 + 1e-9)


@pytest.mark.parametrize("bits", [1, 2, 3, 4])
def test_as_many_keys_come_into_view_as_the_proof_counts(bits):
    """By brute force over all sets of up to three points, and one more: 2 bits - 1 at most, and that many."""
    flat = [0.0] * (bits + 1)
    seen = {
        points: {y for y, u in enumerate(twin.tree_scores(points, bits, flat, flat)) if u >= 1}
        for n in range(5)
        for points in twin.multisets(n, bits)
    }
    most = max(
        len(seen[tuple(sorted((*points, z)))] - keys)
        for points, keys in seen.items()
        if len(points) < 4
        for z in range(2**bits)
    )
    assert most == 2 * bits - 1


@pytest.mark.parametrize(("bits", "n"), [(1, 3), (2, 4), (3, 4)])
def test_the_programme_finds_the_worst_of_all_multisets(bits, n):
    solver = interior_point.supported_tree(bits=bits, epsilon=0.8, delta=0.1)
    failures = {points: twin.supported_tree_law(points, bits, 0.8, 0.1)[-1] for points in twin.multisets(n, bits)}
    failure, points = solver.worst(n)
    np.testing.assert_allclose(failure, max(failures.values()), rtol=1e-12)
    np.testing.assert_allclose(failures[tuple(sorted(points))], failure, rtol=1e-12)
    assert max(failures.values()) > min(failures.values())


@pytest.mark.parametrize(
    ("bits", "epsilon", "delta", "beta"),
    [(8, 1.0, 1e-6, 0.1), (24, 0.7, 1e-3, 0.01), (64, 1.0, 1e-6, 0.1), builders.slow(256, 1.0, 1e-9, 0.1)],
)
def test_the_size_is_enough_on_all_data_and_one_less_is_not(bits, epsilon, delta, beta):
    solver = interior_point.supported_tree(bits=bits, epsilon=epsilon, delta=delta)
    n = solver.sample_size(beta=beta)
    assert solver.worst(n)[0] <= beta < solver.worst(n - 1)[0]


@pytest.mark.parametrize(("bits", "sizes"), [(8, (20, 52, 53)), (24, (41,)), builders.slow(1024, (67,))])
def test_the_least_weight_is_that_of_the_worst_data(bits, sizes):
    solver = interior_point.supported_tree(bits=bits, epsilon=1.0, delta=1e-6)
    for n in sizes:
        np.testing.assert_allclose(solver.worst(n)[0], _failure(log_least_weight(n, 1.0), bits, 1.0, 1e-6), rtol=1e-9)


def test_the_least_weight_is_a_bound_for_all_data_on_small_domains():
    for bits, n, epsilon in [(1, 5, 0.4), (2, 7, 1.0), (3, 5, 2.0), (4, 4, 0.1)]:
        flat = [0.0] * (bits + 1)
        sums = [
            sum(math.exp(epsilon * u) for u in twin.tree_scores(points, bits, flat, flat) if u >= 1)
            for points in twin.multisets(n, bits)
        ]
        assert math.log(min(sums)) >= log_least_weight(n, epsilon) - 1e-12


@pytest.mark.thorough
@pytest.mark.parametrize("bits", [64, builders.slow(1024)])
def test_the_law_reaches_the_worst_case_and_never_passes_it(bits):
    """On the programme's data, and on clusters, powers of two and points that approach one from both sides."""
    solver = interior_point.supported_tree(bits=bits, epsilon=1.0, delta=1e-6)
    n = solver.sample_size(beta=0.1)
    law = lambda values: float(solver.failure_probability(builders.points_of(values, bits, bucket(n))))  # noqa: E731
    failure, points = solver.worst(n)
    np.testing.assert_allclose(law(points), failure, rtol=1e-4)
    rng, middle = np.random.default_rng(0), 2 ** (bits - 1) + 12345
    hard = [[middle + (-1) ** i * 2 ** min(i // 2, bits - 2) for i in range(n)], [2 ** (i % bits) for i in range(n)]]
    hard += [
        [
            middle + int(sign) * 2 ** int(k)
            for sign, k in zip(rng.choice([-1, 1], n), rng.integers(0, bits - 2, n), strict=True)
        ]
        for _ in range(20)
    ]
    found = [law(values) for values in hard]
    assert max(found) <= failure * (1 + 1e-4) and max(found) > 0.01 * failure


def test_sizes_grow_with_the_logarithm_of_the_number_of_bits():
    sizes = [least_n(bits, 1.0, 1e-6, 0.1) for bits in (8, 64, 256, 1024, 4096)]
    assert sizes == [52, 59, 63, 67, 71]
    assert [least_n(bits, 1.0, 1e-9, 0.1) for bits in (8, 64, 256, 1024, 4096)] == [73, 79, 84, 88, 92]


@pytest.mark.thorough  # `test_conformance` covers 5 bits
def test_a_run_gives_interior_points_or_bottom_and_follows_the_law():
    """40 bits; in front of the point that is there most often, and beside it, with bottom last."""
    solver = interior_point.supported_tree(bits=40, epsilon=0.7, delta=0.1)
    middle = 2**39 + 11
    points = builders.points_of([middle - 2**30] * 3 + [middle] * 12 + [middle + 77] * 6, 40, 31)
    edges = [0, middle - 2**29, middle, middle + 1, middle + 77, 2**40]
    law = [float(solver.probability(points, pair)[0]) for pair in itertools.pairwise(edges)]
    bottom = float(solver.failure_probability(points))
    np.testing.assert_allclose(sum(law) + bottom, 1, rtol=1e-5)
    outcome = jax.jit(jax.vmap(lambda key: solver(key, points)))(jax.random.split(jax.random.key(4), 4000))
    drawn = np.array(wide.to_ints(outcome.hypothesis), dtype=object)
    ok = np.asarray(outcome.status) == Status.OK
    assert all(middle - 2**30 <= x <= middle + 77 for x in drawn[ok])
    place = np.where(ok, np.searchsorted(edges[1:-1], drawn, side="right"), len(law))
    counts = np.bincount(place.astype(int), minlength=len(law) + 1)
    expected = 4000 * np.array([*law, bottom])
    assert expected.min() > 5 and p_value(counts, expected) > FALSE_ALARM
    assert p_value(counts, expected[::-1]) < FALSE_ALARM


@pytest.mark.thorough
def test_no_points_give_bottom():
    solver = interior_point.supported_tree(bits=5, epsilon=1.0, delta=0.1)
    nothing = Points.create(jnp.zeros((3, 1), jnp.uint32), 0)
    assert int(solver(jax.random.key(0), nothing).status) == Status.BOTTOM
    np.testing.assert_array_equal(solver.pmf(nothing), [0.0] * 32 + [1.0])


def test_losses_are_not_those_of_an_exponential_mechanism():
    assert not interior_point.supported_tree(bits=5, epsilon=1.0, delta=0.1).bounded_range
    assert interior_point.tree_score(bits=5, epsilon=1.0).bounded_range


@pytest.mark.slow
def test_laws_are_differentiable(x64):
    points = builders.points_of([3, 9, 9, 20, 20, 21], 5, 7)

    def failure(numbers):
        solver = interior_point.supported_tree(bits=5, epsilon=numbers[0], delta=numbers[1])
        return solver.failure_probability(points)

    at = jnp.array([0.7, 0.03])
    law = jax.jit(jax.value_and_grad(failure))
    expected = [(law(at + step)[0] - law(at - step)[0]) / 2e-6 for step in 1e-6 * np.eye(2)]
    np.testing.assert_allclose(law(at)[1], expected, rtol=1e-6)
    assert np.min(np.abs(expected)) > 1e-3


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: interior_point.supported_tree(bits=0, epsilon=1.0, delta=0.1), "bits must be from 1 to 4096, got 0"),
        (lambda: interior_point.supported_tree(bits=5, epsilon=-1.0, delta=0.1), "epsilon must be > 0"),
        (lambda: interior_point.supported_tree(bits=5, epsilon=1.0, delta=0.0), "delta must be > 0"),
        (lambda: supported.mechanism(epsilon=1.0, delta=1.0), "delta must be < 1"),
        (lambda: supported.mechanism(epsilon=1.0, delta=0.1, growth=0), "growth must be from 1 to 2147483647, got 0"),
        (lambda: supported.mechanism(epsilon=1.0, delta=0.1, growth=2**31), "growth must be from 1 to 2147483647"),
        (lambda: bounds.supported_weight(1, 0.0, 1.0, 0.1), "beta must be > 0"),
        (lambda: bounds.supported_test(0, 1.0, 0.1), "growth must be >= 1"),
    ],
)
def test_bad_arguments_are_refused_by_name_value_and_rule(make, words):
    with pytest.raises(ValueError, match=words):
        make()


def test_a_growth_beyond_int64_has_a_bound():
    """Its logarithm was asked of NumPy, which has none of such an int."""
    assert bounds.supported_weight(2**80, 0.1, 1.0, 0.1) == pytest.approx(
        bounds.supported_weight(1, 0.1, 1.0, 0.1) + 80 * math.log(2)
    )


def test_the_choice_among_the_supported_is_that_of_the_exponential_mechanism():
    scores = jnp.array([0, 3, 5, 0, 1])

    @jax.jit
    def laws(scores):
        among = exponential.log_pmf(scores, epsilon=0.8, where=scores >= 1, monotone=True)
        return supported.log_pmf(scores, epsilon=0.8, delta=0.05, growth=2)[:-1], among

    law, free = map(np.asarray, laws(scores))
    some = np.isfinite(free)
    np.testing.assert_allclose(np.diff(law[some]), np.diff(free[some]), rtol=1e-5)
    assert np.isneginf(law[~some]).all()


def test_one_record_more_adds_epsilon_next_to_a_large_edge_too():
    """ln of the edge is 69 here, which float32 holds to 8e-6, a tenth of epsilon: it must not take part in the difference."""
    epsilon, delta = 1e-4, 1e-30
    counts = jnp.arange(690_000, 692_000)
    law = jax.vmap(lambda count: supported.log_pmf(count[None], epsilon=epsilon, delta=delta))
    losses = np.asarray(law(counts)[:, 1], float) - np.asarray(law(counts + 1)[:, 1], float)
    assert 0.9 * epsilon < losses.max() <= epsilon + 3e-7
    # Small integers hold no such edge, and whole floats are counts, too.
    few, real = jnp.array([0, 90, 3], jnp.int8), jnp.array([0.0, 90.0, 3.0])
    laws = [np.asarray(supported.log_pmf(scores, epsilon=1.0, delta=1e-30)) for scores in (few, real)]
    np.testing.assert_array_equal(*laws)


@pytest.mark.parametrize("epsilon", [20.0, 1e5, 1.3e7, 1e20])
def test_delta_holds_beside_a_large_epsilon(epsilon):
    """What one record brings into view has probability delta; the edge next to epsilon = 1e20 was e^0, and this 1/2."""
    law = supported.log_pmf(jnp.array([1]), epsilon=epsilon, delta=1e-6)
    np.testing.assert_allclose(np.exp(law[0]), 1e-6, rtol=1e-5)


def test_the_worst_case_is_exact_where_weights_are_beyond_floats():
    for epsilon, n in [(700.0, 1), (700.0, 2), (700.0, 3), (200.0, 7)]:
        failure, points = interior_point.supported_tree(bits=2, epsilon=epsilon, delta=1e-3).worst(n)
        scores = twin.tree_scores(points, 2, [0.0] * 3, [0.0] * 3)
        rho, log_edge = bounds.supported_test(3, epsilon, 1e-3)
        x = epsilon * max(scores) + math.log(scores.count(max(scores))) - log_edge
        expected = -rho * x - math.log1p(rho) if x > 0 else math.log1p(-rho / (1 + rho) * math.exp(x))
        assert math.log(failure) == pytest.approx(expected, rel=1e-9, abs=1e-12)


def test_a_growth_of_none_is_no_parameter():
    """The edge would be at 0: whatever the data support would be released."""
    made = supported.mechanism(epsilon=1.0, delta=1e-6)
    assert made.sound() and not dataclasses.replace(made, growth=0).sound()


# ---------------------------------------------------------------------------------------------------------- thresholds


def labelled(n, bits):
    """All samples of n examples, as multisets of (x, y)."""
    return itertools.combinations_with_replacement(itertools.product(range(2**bits), (0, 1)), n)


@pytest.mark.parametrize(
    ("bits", "n", "epsilon", "delta", "room"),
    [(1, 3, 3.0, 0.1, 2), (2, 3, 1.0, 0.1, 3), (2, 3, 6.0, 0.2, 2), builders.thorough(2, 4, 8.0, 0.1, 3)],
)
def test_no_replaced_example_exceeds_the_guarantee_of_thresholds(bits, n, epsilon, delta, room):
    """All samples with all labels: delta and bottom's epsilon are kept, and no more thresholds come and go than are counted."""
    laws = {
        sample: np.array(supported_thresholds_law(*zip(*sample, strict=True), bits, epsilon, delta, room))
        for sample in labelled(n, bits)
    }
    worst, losses, moved = 0.0, 0.0, 0
    for sample, p in laws.items():
        for i, example in itertools.product(range(n), itertools.product(range(2**bits), (0, 1))):
            q = laws[tuple(sorted((*sample[:i], *sample[i + 1 :], example)))]
            worst = max(worst, float(np.maximum(p - math.exp(epsilon) * q, 0).sum()))
            losses = max(losses, abs(math.log(p[-1] / q[-1])))
            moved = max(moved, int(np.sum((p > 0) != (q > 0))))
    used = min(delta, 1 / 8, epsilon / 8)
    counted = 2 * (room + 1) * (bits + 1)
    assert 0 < moved <= counted and worst <= used * moved / counted * (1 + 1e-9) and losses <= epsilon
    assert worst > 0.9 * used / counted  # what enters has the probability that it may have


@pytest.mark.parametrize(
    ("bits", "n", "room", "epsilon"), [(1, 3, 3, 1.0), (2, 4, 4, 1.0), (2, 4, 9, 0.7), (3, 3, 3, 1.3)]
)
def test_the_least_weight_of_thresholds_is_a_bound_for_all_realizable_data(bits, n, room, epsilon):
    least = math.inf
    for xs in itertools.combinations_with_replacement(range(2**bits), n):
        for target in range(2**bits + 1):
            ys = [int(x < target) for x in xs]
            scores = [score for score in threshold_scores(xs, ys, bits, room) if score >= 1]
            least = min(least, sum(math.exp(epsilon / 2 * score) for score in scores))
    assert math.log(least) >= of_thresholds.log_least_weight(room, epsilon) - 1e-12


@pytest.mark.parametrize("bits", [31, *map(builders.thorough, (1, 30, 62, 300))])
def test_a_threshold_errs_on_fewer_than_it_may(bits):
    """Everything at one end, on both sides of a gap, or at all scales; with n by the theorem, also where a limb ends."""
    learner = thresholds.supported(bits=bits, epsilon=2.0, delta=1e-3, alpha=0.5)
    n = 4 * of_thresholds.errors(bits, 2.0, 1e-3, 0.1)
    last, middle = 2**bits - 1, 2 ** (bits - 1)
    cases = [
        ([0] * n, [0] * n),
        ([0] * n, [1] * n),
        ([last] * n, [1] * n),
        ([last] * n, [0] * n),
        ([middle - 1] * (n // 2) + [middle] * (n - n // 2), [1] * (n // 2) + [0] * (n - n // 2)),
        ([max(middle - 2**k, 0) for k in (i % bits for i in range(n))], [int(i % bits > 0) for i in range(n)]),
    ]
    run = jax.jit(jax.vmap(lambda key, sample: learner(key, sample), in_axes=(0, None)))
    for xs, ys in cases:
        ys = [int(x < max(x for x, y in zip(xs, ys, strict=True) if y) + 1) for x in xs] if any(ys) else ys
        sample = builders.sample_of(xs, ys, bits)
        bottom = float(learner.failure_probability(sample, error=0.25))
        assert bottom <= 0.1
        outcome = run(jax.random.split(jax.random.key(1), 40), sample)
        drawn = wide.to_ints(outcome.hypothesis)
        for j, status in zip(drawn, np.asarray(outcome.status).tolist(), strict=True):
            missed = sum((x < j) != bool(y) for x, y in zip(xs, ys, strict=True))
            assert status == Status.BOTTOM or (status == Status.OK and missed < n // 4 and j <= 2**bits)


def test_sizes_of_thresholds():
    """T = 69 and 78, whatever n is; the learner's own size by Theorem 2.14 is larger than what `choose` shows to be enough."""
    assert [of_thresholds.errors(bits, 1.0, 1e-6, 0.05) for bits in (64, 1024)] == [69, 78]
    learner = thresholds.supported(bits=64, epsilon=1.0, delta=1e-6, alpha=0.2)
    n = learner.sample_size(alpha=0.2, beta=0.1)
    assert learner.room(np.int64(n), np) >= of_thresholds.errors(64, 1.0, 1e-6, 0.05)
    chosen = dpjax.choose("threshold", bits=64, epsilon=1.0, delta=1e-6, alpha=0.1)
    assert chosen.name == "supported" and chosen.n < n
    made = chosen.algorithm
    assert int(made.room(jnp.int32(chosen.n))) >= of_thresholds.errors(64, 1.0, 1e-6, 0.09)
    with pytest.raises(ValueError, match=r"alpha must be >= 0\.2"):
        learner.sample_size(alpha=0.1, beta=0.1)
    with pytest.raises(ValueError, match="bits must be from 1 to 4094, got 4095"):
        thresholds.supported(bits=4095, epsilon=1.0, delta=1e-6, alpha=0.2)


def in_view(xs, ys, bits, room):
    """The thresholds with points below their keys and fewer errors than `room`, along the search paths of all points."""
    points = {2 * x + 3 for x in xs} | {1, 2 ** (bits + 1) + 3}
    keys = {(p >> (h + 1) << (h + 1)) + 2**h for p in points for h in range(1, bits + 2)}
    found = {key // 2 - 1 for key in keys if 2 <= key <= 2 ** (bits + 1) + 2}
    return {j for j in found if sum((x < j) != bool(y) for x, y in zip(xs, ys, strict=True)) < room}


@pytest.mark.parametrize(("bits", "room"), [(16, 4), (16, 16), (64, 4), builders.thorough(64, 32)])
def test_as_many_thresholds_come_into_view_as_their_errors_allow(bits, room):
    """An example that all thresholds misjudge becomes one that none does; between the others are whole subtrees. n plays no part."""
    size = 2 ** (bits - (room - 1).bit_length())
    shared = [(i * size - 1, 0) for i in range(1, room)] + [(i * size - 2, 1) for i in range(1, room)]
    seen, other = (in_view(*zip(*shared, (x, 0), strict=True), bits, room) for x in (0, 2**bits - 1))
    counted = 2 * (room + 1) * (bits + 1)
    assert 0.5 * counted < len(seen ^ other) <= counted
    rng = np.random.default_rng(room)
    for _ in range(30):
        n = int(rng.integers(1, 4 * room))
        xs, ys = rng.integers(0, 2 ** min(bits, 62), n).tolist(), rng.integers(0, 2, n).tolist()
        assert len(in_view(xs, ys, bits, room) ^ in_view([0, *xs[1:]], [1, *ys[1:]], bits, room)) <= counted


def test_a_larger_weight_of_thresholds_stays_enough():
    """From the least T on, ln Z outgrows what comes into view with more errors."""
    for epsilon, beta in itertools.product((1e-3, 0.3, 1.0, 5.0, 40.0), (1e-6, 0.1, 0.8)):
        least = of_thresholds.errors(8, epsilon, 1e-3, beta)
        for room in (least, least + 1, least + 2, least + 3, 2 * least, 10 * least):
            growth = 2 * (room + 1) * 9
            needed = bounds.supported_weight(growth, beta, epsilon, 1e-3, monotone=False)
            assert of_thresholds.log_least_weight(room, epsilon) >= needed
        needed = bounds.supported_weight(2 * least * 9, beta, epsilon, 1e-3, monotone=False)
        assert least == 1 or of_thresholds.log_least_weight(least - 1, epsilon) < needed * (1 + 1e-9)


def noisy(rng, n, bits, noise, ties):
    """Examples around a random target, some with the wrong label; with `ties` at few points."""
    middle = int(rng.integers(0, 2**bits))
    xs = rng.integers(0, 2**bits, n) if ties is None else rng.choice(rng.integers(0, 2**bits, ties), n)
    ys = (xs < middle) ^ (rng.random(n) < noise)
    return xs.tolist(), ys.astype(int).tolist()


@pytest.mark.parametrize("bits", [3, builders.thorough(5)])
def test_a_window_of_the_examples_has_the_law_of_all(bits, x64):
    """A quarter of the rows is kept, of which a fifth could matter; a sixteenth is too few."""
    learner = thresholds.supported(bits=bits, epsilon=3.0, delta=0.2, alpha=0.2)
    assert learner.window == 0.25
    low, high = (wide.from_ints([end], bits + 1)[0] for end in (0, 2**bits + 1))
    released = jax.jit(lambda learner, sample: learner.log_mass(learner.prepare(sample), Interval(low=low, high=high)))
    rng, differences = np.random.default_rng(bits), []
    for n, noise, ties in itertools.product((20, 60, 63), (0.0, 0.05, 0.3), (None, 3)):
        xs, ys = noisy(rng, n, bits, noise, ties)
        sample = builders.sample_of(xs, ys, bits, 63)
        plain = supported_thresholds_law(xs, ys, bits, 3.0, 0.2, int(learner.room(jnp.int32(n))))
        np.testing.assert_allclose(learner.pmf(sample), plain, atol=1e-12)
        few, enough = (released(dataclasses.replace(learner, window=window), sample) for window in (1 / 16, 1 / 4))
        differences.append(abs(math.exp(few) - math.exp(enough)))
    assert max(differences) > 0.01


@pytest.mark.thorough
def test_no_neighbours_refute_the_guarantee_of_thresholds_in_a_window():
    """All samples of seven examples at two points, of which four rows are kept, under REPLACE_ONE; a fifth of delta is refuted."""
    learner = thresholds.supported(bits=1, epsilon=6.0, delta=0.1, alpha=0.5)
    report = dpjax.check(learner, n=7, domain=2, relation=REPLACE_ONE)
    promised = learner.guarantee()
    assert learner.window == 0.5 and report.exact and promised.relation == REPLACE_ONE
    assert not report.refutes(promised)
    assert report.refutes(Guarantee(promised.epsilon, 0.02, REPLACE_ONE))  # negative control


@pytest.mark.thorough
def test_a_window_too_narrow_for_alpha_is_a_bad_parameter():
    learner, sample = thresholds.supported(bits=5, epsilon=3.0, delta=0.2, alpha=0.2), builders.mixed_sample()
    for alpha, status in ((0.25, Status.OK), (0.26, Status.BAD_PARAMETER)):
        wider = dataclasses.replace(learner, alpha=np.float64(alpha))
        assert wider.sound() == (status == Status.OK)
    traced = jax.jit(
        lambda alpha, sample: thresholds.supported(bits=6, epsilon=9.0, delta=0.2, alpha=alpha).pmf(sample)
    )
    made = thresholds.supported(bits=6, epsilon=9.0, delta=0.2, alpha=0.5)
    np.testing.assert_allclose(traced(0.5, sample), made.pmf(sample), rtol=1e-5)


@pytest.mark.thorough
def test_more_bits_than_the_tree_has_limbs_are_a_bad_parameter():
    """A tree of 33 bits in one limb: answers were 0 where all labels are 1, with a law that called them accurate."""
    made, last = thresholds.supported(bits=30, epsilon=4.0, delta=1e-3, alpha=0.5), 2**31 - 1
    sample = builders.sample_of([last] * 60, [1] * 60, 31)
    run = jax.jit(lambda bits: dataclasses.replace(made, bits=bits)(jax.random.key(0), sample).status)
    assert int(run(np.int32(31))) == Status.BAD_PARAMETER
    assert math.isnan(float(dataclasses.replace(made, bits=np.int32(31)).failure_probability(sample, error=0.25)))


@pytest.mark.thorough
def test_weights_are_counted_from_the_best_score():
    """Half of all at one point, half at the next one: the threshold between them errs nowhere, and weighs 1."""
    learner, half = thresholds.supported(bits=8, epsilon=1.0, delta=1e-6, alpha=0.5), 2**14
    view = learner.prepare(builders.sample_of([100] * half + [101] * half, [1] * half + [0] * half, 8))
    weights = jax.jit(lambda view: view.tree._weights(view.points))(view)
    assert int(weights.best) == int(view.tree.room) == half // 2 and float(jnp.max(jnp.stack(weights.logs))) == 0.0


@pytest.mark.parametrize("n", [builders.thorough(2001), builders.thorough(1_000_001), 16_000_001])
def test_one_example_among_many_adds_epsilon_at_most(n):
    """Rows stand for many equal examples; weights far from the best one's were rounded, so that 16 million had losses of 1.14 epsilon."""
    bits, p = 1022, 2**1021 - 1
    xs = [p, 2**1022 - 3, 2**1022 - 2]
    law = jax.jit(lambda learner, view, event: learner.log_mass(view, event))
    for epsilon in (0.1, 1.1):
        learner = thresholds.supported(bits=bits, epsilon=epsilon, delta=1e-6, alpha=0.8)
        room, many = int(learner.room(jnp.int32(n))), n // 2
        losses = []
        for label in (0, 1):
            view = learner.prepare(dpjax.Sample(x=wide.from_ints(xs, bits), y=[1, label, 0]))
            counts = np.cumsum([0, room, many, 1, n - 1 - many, room])
            wrong = np.array([many + label, many + label, label, 1 - label, n - many - label, n - many - label])
            given = {"errors": jnp.asarray(wrong, jnp.int32), "points_before": jnp.asarray(counts, jnp.int32)}
            given |= {"room": jnp.int32(room), "examples": jnp.int32(n)}
            tree = dataclasses.replace(view.tree, **given)
            event = learner.check_event((xs[1] + 1, xs[2] + 1))
            losses.append(float(law(learner, dataclasses.replace(view, tree=tree), event)))
        assert 0.99 * epsilon < abs(losses[0] - losses[1]) <= epsilon * (1 + 1e-5)
