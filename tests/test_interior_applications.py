"""What an interior point gives: thresholds, quantiles and distribution functions against naive references, over all neighbours of small
domains, and at their sample sizes; and the way back from thresholds to an interior point."""

import dataclasses
import functools
import itertools
import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from dpjax import Points, Sample, Status
from dpjax.accounting import ADD_OR_REMOVE_ONE, REPLACE_ONE, Guarantee, exponential_epsilon
from dpjax.accounting.bounded import independent_each
from dpjax.concepts import thresholds as concept
from dpjax.core.pytree import frozen, static
from dpjax.domains import wide
from dpjax.learners import interior, label_private, pac, thresholds
from dpjax.optimizers import interior_point, quantiles
from dpjax.optimizers.interior_point import flat_tree_planning, tree_planning
from dpjax.sanitizers import cdf
from dpjax.verify import histograms, neighbours, probabilities, records
from dpjax.verify.exact import sticks
from dpjax.verify.plain.exponential import threshold_errors, threshold_law
from dpjax.verify.plain.interior import solver_law, threshold_learner_law
from dpjax.verify.plain.quantiles import direct_laws, in_order, rank, recursive_law, sliced_law

FALSE_ALARM = 2e-5
EPSILON = 0.8

# ------------------------------------------------------------------------------------------------- naive references


def quartiles_law(points: list[int], epsilon: float = EPSILON) -> np.ndarray:
    """The joint law of three recursive quartiles of points of 2 bits, no ties broken, in the order of 16 z_1 + 4 z_2 + z_3."""
    joint = np.zeros(64)
    for (first, second, third), p in recursive_law(points, 2, levels=2, m=1, epsilon=epsilon).items():
        joint[16 * first + 4 * second + third] = p
    return joint


def naive_distance(points: list[int], answers: list[int], heights: list[float], size: int) -> float:
    """max over x of |step function - empirical distribution function|."""
    steps = [heights[sum(z <= x for z in answers)] for x in range(size)]
    return max(abs(steps[x] - sum(p <= x for p in points) / len(points)) for x in range(size))


def as_points(points: list[int], bits: int, rows: int | None = None) -> Points:
    filled = points + [0] * ((rows or max(len(points), 1)) - len(points))
    return Points.create(wide.from_ints(filled, bits), n_valid=len(points))


def as_sample(xs: Any, ys: Any, bits: int, rows: int) -> Sample:
    return Sample(x=wide.from_ints([int(x) for x in xs], bits), y=np.asarray(ys)).padded(rows)


@frozen
class Mute(interior_point.InteriorPoint):
    """A solver that always gives up."""

    bits: Any
    limbs: int = static()

    def draw(self, key: Any, points: Points) -> Any:
        return jnp.zeros((self.limbs,), jnp.uint32), jnp.bool_(False), {}

    def guarantee(self) -> Guarantee:
        return Guarantee(0.0, 0.0, ADD_OR_REMOVE_ONE)


# ---------------------------------------------------------------------------------------------------- all neighbours


def refuted(table: np.ndarray, pairs: np.ndarray, guarantee: Guarantee) -> bool:
    """Whether some pair contradicts it, beyond rounding."""
    return bool(sticks(table, pairs, guarantee.epsilon).max() > guarantee.delta * (1 + 1e-9) + 1e-12)


def largest_loss(table: np.ndarray, pairs: np.ndarray) -> float:
    """The least epsilon for delta = 0."""
    possible = table.max(axis=0) > 0
    logs = np.log(table[:, possible])
    return float((logs[pairs[:, 0]] - logs[pairs[:, 1]]).max())


def holds_and_is_needed(table: np.ndarray, pairs: np.ndarray, guarantee: Guarantee) -> None:
    """No pair refutes the guarantee; some pair refutes half of it."""
    assert not refuted(table, pairs, guarantee)
    assert refuted(table, pairs, Guarantee(guarantee.epsilon / 2, guarantee.delta / 2, guarantee.relation))


def all_points(domain: int, largest: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Every multiset of at most `largest` points: (counts, padded values, sizes)."""
    counts = histograms(domain, range(largest + 1))
    return counts, *records(counts, 7)


def point_tables(law: Any, values: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """The law of every multiset, in float64."""

    def row(data: Any) -> Any:
        points = Points(x=data["x"].astype(jnp.uint32)[:, None], n_valid=data["n"])
        return jnp.log(jnp.maximum(law(points), 0.0))

    return probabilities(row, {"x": values, "n": sizes}, batch_size=len(sizes))


@pytest.mark.thorough
def test_no_neighbouring_samples_refute_the_threshold_learner() -> None:
    """Four points, two labels: when examples are added or removed and when they are replaced."""
    counts = histograms(8, range(1, 5))
    values, sizes = records(counts, 7)
    learner = interior.threshold_learner(solver=interior_point.exponential(bits=3, epsilon=EPSILON), m=2)
    guarantee = learner.guarantee()
    assert guarantee == Guarantee(2 * EPSILON, 0.0, ADD_OR_REMOVE_ONE)

    def law(row: Any) -> Any:
        sample = Sample(x=(row["v"] // 2).astype(jnp.uint32)[:, None], y=row["v"] % 2, n_valid=row["n"])
        return jnp.log(jnp.maximum(dataclasses.replace(learner, m=row["m"]).pmf(sample), 0.0))

    ms = [1, 2, 3]  # one program for all, in 19 batches without a remainder, which would be compiled once more
    rows = {"v": np.tile(values, (3, 1)), "n": np.tile(sizes, 3), "m": np.repeat(ms, len(sizes))}
    for m, table in zip(ms, np.split(probabilities(law, rows, batch_size=78), 3), strict=True):
        for row, n, p in zip(values, sizes, table, strict=True):
            naive = threshold_learner_law((row[:n] // 2).tolist(), (row[:n] % 2).tolist(), 2, m, EPSILON)
            np.testing.assert_allclose(p, [*naive, 0.0], rtol=1e-9)
        holds_and_is_needed(table, neighbours(counts, ADD_OR_REMOVE_ONE), guarantee)
        assert not refuted(table, neighbours(counts, REPLACE_ONE), guarantee.under(REPLACE_ONE))


@pytest.mark.slow
def test_no_neighbouring_points_refute_an_interior_point_from_a_learner() -> None:
    counts, values, sizes = all_points(4, 5)
    solver = interior.solver(learner=thresholds.exponential(bits=3, epsilon=EPSILON), m=2)
    table = point_tables(solver.pmf, values, sizes)
    assert solver.guarantee() == Guarantee(2 * EPSILON, 0.0, ADD_OR_REMOVE_ONE)
    pairs = neighbours(counts, ADD_OR_REMOVE_ONE)
    assert not refuted(table, pairs, solver.guarantee())
    large = pairs[(sizes[pairs] >= 4).all(axis=1)]  # 2m points or more: the learner's own guarantee
    assert not refuted(table, large, Guarantee(EPSILON, 0.0, ADD_OR_REMOVE_ONE))
    # Its labels never change sides, so this learner spends less than half of that; across the middle it is more.
    assert EPSILON / 4 < largest_loss(table, large) < EPSILON / 2 < largest_loss(table, pairs)
    for row, n, p in zip(values, sizes, table, strict=True):
        naive = solver_law(row[:n].tolist(), 2, 2, lambda xs, ys: threshold_law(xs, ys, 3, EPSILON))
        np.testing.assert_allclose(p, [*naive, 0.0], rtol=1e-9)


def test_no_neighbouring_points_refute_the_quantiles() -> None:
    """One quantile and two jointly, when points are added or removed and when they are replaced."""
    counts, values, sizes = all_points(4, 5)
    both = quantiles.direct(
        solver=interior_point.exponential(bits=2, epsilon=EPSILON), fractions=[0.3, 0.5], m=1, allow_unproved=True
    )

    alone = quantiles.direct(solver=both.solver, fractions=[0.5], m=1, allow_unproved=True)

    def joint(points: Points) -> Any:
        slices = both.slices(points.in_order(1))
        first, second = jax.vmap(both.solver.pmf)(slices)[:, :-1]
        return jnp.outer(first, second).reshape(16)

    table = point_tables(joint, values, sizes)
    naive = []
    for row, n in zip(values, sizes, strict=True):
        laws = direct_laws(row[:n].tolist(), (0.3, 0.5), size=4, m=1, epsilon=EPSILON)
        naive.append(np.outer(*laws).reshape(16))
    np.testing.assert_allclose(table, naive, rtol=1e-9)
    median = table.reshape(-1, 4, 4).sum(axis=1)
    for relation in (ADD_OR_REMOVE_ONE, REPLACE_ONE):
        for part in [counts] if relation == ADD_OR_REMOVE_ONE else [counts[sizes == n] for n in (2, 5)]:
            where = np.flatnonzero((counts[:, None] == part[None]).all(axis=2).any(axis=1))
            pairs = neighbours(part, relation)
            assert not refuted(table[where], pairs, both.guarantee_under(relation))
            holds_and_is_needed(median[where], pairs, alone.guarantee_under(relation))
    assert both.guarantee() == Guarantee(4 * EPSILON, 0.0, ADD_OR_REMOVE_ONE)
    assert largest_loss(table, neighbours(counts, ADD_OR_REMOVE_ONE)) > 2 * EPSILON


@pytest.mark.slow
def test_no_neighbouring_points_refute_recursive_quartiles() -> None:
    """By the naive law, which a test below ties to the sampler: two levels are paid for, though there are three runs."""
    counts, values, sizes = all_points(4, 4)
    table = np.array([quartiles_law(r[:n].tolist()) for r, n in zip(values, sizes, strict=True)])
    mechanism = quantiles.recursive(
        solver=interior_point.exponential(bits=2, epsilon=EPSILON), bits=2, depth=2, m=1, allow_unproved=True
    )
    assert mechanism.guarantee() == Guarantee(4 * EPSILON, 0.0, ADD_OR_REMOVE_ONE)
    holds_and_is_needed(table, neighbours(counts, ADD_OR_REMOVE_ONE), mechanism.guarantee())


@pytest.mark.parametrize(("make", "given"), [("direct", {"fractions": [0.5]}), ("recursive", {"bits": 3, "depth": 1})])
def test_a_solver_may_have_a_traced_epsilon(make: str, given: Any) -> None:
    """Its guarantee is not asked for unless the accountant needs it."""

    def spent(epsilon: Any, **how: Any) -> Any:
        solver = interior_point.exponential(bits=3, epsilon=epsilon)
        return getattr(quantiles, make)(solver=solver, m=2, allow_unproved=True, **given, **how).solver.epsilon

    assert jax.jit(spent)(0.5) == 0.5
    with pytest.raises(TypeError, match="epsilon must be a known number"):
        name = {"direct": "bounded", "recursive": "adaptive"}[make]
        jax.jit(lambda epsilon: spent(epsilon, accountant=name, delta=1e-6))(0.5)


@pytest.mark.thorough
def test_levels_of_recursive_quartiles_compose_by_their_ranges() -> None:
    """By the naive law, on all multisets of up to four of four points, at a budget for the total: nearly all of delta is spent."""
    total = Guarantee(1.0, 0.05, ADD_OR_REMOVE_ONE)
    each = exponential_epsilon(2, epsilon=total.epsilon, delta=total.delta) / 2
    solver = interior_point.exponential(bits=2, epsilon=each)
    given = {"solver": solver, "bits": 2, "depth": 2, "m": 1, "allow_unproved": True, "delta": total.delta}
    mechanism = quantiles.recursive(**given, accountant="adaptive")
    assert mechanism.guarantee().covers(1.0, 0.05)
    assert quantiles.recursive(**given, accountant="optimal").guarantee().epsilon > 1.1
    counts, values, sizes = all_points(4, 4)
    table = np.array([quartiles_law(r[:n].tolist(), each) for r, n in zip(values, sizes, strict=True)])
    pairs = neighbours(counts, ADD_OR_REMOVE_ONE)
    assert not refuted(table, pairs, mechanism.guarantee())
    assert refuted(table, pairs, dataclasses.replace(total, delta=0.048))


# ------------------------------------------------------------------------------------------------- samplers and laws


@jax.jit
@functools.partial(jax.vmap, in_axes=(None, 0, None))
def runs(mechanism: Any, key: jax.Array, data: Any) -> Any:
    return mechanism(key, data)


def fits(observed: np.ndarray, law: np.ndarray) -> None:
    """A chi-square test at the stated false-alarm rate, with rare outcomes merged."""
    order = np.argsort(law)
    group = np.floor(law[order].cumsum() * 19.999).astype(int)
    expected, seen = np.bincount(group, law[order]) * observed.sum(), np.bincount(group, observed[order])
    expected, seen = expected[expected > 0], seen[expected > 0]
    assert seen.sum() == observed.sum()
    assert stats.chisquare(seen, expected).pvalue > FALSE_ALARM


@pytest.mark.slow  # conformance, at another size
def test_the_sampler_of_the_threshold_learner_follows_its_law() -> None:
    keys = jax.random.split(jax.random.key(1), 6000)
    xs, ys = [0, 1, 1, 2, 3, 3, 5], [1, 1, 0, 1, 0, 0, 1]
    learner = interior.threshold_learner(solver=interior_point.exponential(bits=4, epsilon=EPSILON), m=3)
    drawn = runs(learner, keys, as_sample(xs, ys, 3, 7)).hypothesis[:, 0]
    fits(np.bincount(drawn, minlength=9), np.array(threshold_learner_law(xs, ys, 3, 3, EPSILON)))


@pytest.mark.slow  # conformance, at another size
def test_the_sampler_of_recursive_quantiles_follows_its_law() -> None:
    data = [0, 1, 1, 2, 3, 3]
    mechanism = quantiles.recursive(
        solver=interior_point.exponential(bits=2, epsilon=EPSILON), bits=2, depth=2, m=1, allow_unproved=True
    )
    drawn = runs(mechanism, jax.random.split(jax.random.key(2), 6000), as_points(data, 2, 7)).hypothesis[:, :, 0]
    drawn = np.asarray(drawn).astype(int) @ [16, 4, 1]
    fits(np.bincount(drawn, minlength=64), quartiles_law(data))
    with pytest.raises(AssertionError):  # negative control
        fits(np.bincount(drawn, minlength=64), quartiles_law(data, 1.3 * EPSILON))


@pytest.mark.slow
def test_laws_of_samples_of_any_kind_agree_with_the_naive_ones(x64: None) -> None:
    """Too few ones, wrong labels, ties, many numbers beyond 2^d; promised realizable and not."""
    rng = np.random.default_rng(0)
    for trial in range(40):
        n, m, bits, epsilon = int(rng.integers(1, 13)), int(rng.integers(4, 8)), 5, float(rng.uniform(0.1, 2))
        xs = np.sort(rng.integers(0, int(rng.choice([3, 32])), n))
        realizable = trial % 2 == 0
        ys = (xs < int(rng.integers(0, 33))).astype(int) if realizable else rng.integers(0, 2, n)
        learner = interior.threshold_learner(solver=interior_point.exponential(bits=6, epsilon=epsilon), m=m)
        sample = Sample(x=wide.from_ints(xs.tolist(), 5), y=ys, realizable=realizable).padded(15)
        law = np.array(threshold_learner_law(xs.tolist(), ys.tolist(), bits, m, epsilon))
        wrong = np.array(threshold_errors(xs.tolist(), ys.tolist(), bits))
        error = float(rng.uniform(0, 0.6))
        good, bad = law[wrong / n <= error].sum(), law[wrong / n > error].sum()
        np.testing.assert_allclose(learner.success_probability(sample, error=error), good, rtol=1e-9, atol=1e-15)
        np.testing.assert_allclose(learner.failure_probability(sample, error=error), bad, rtol=1e-9, atol=1e-15)
        low, high = sorted(rng.integers(0, 34, 2).tolist())
        if realizable:
            continue  # the same code whatever the promise
        between = learner.probability(sample, (int(low), int(high)))
        np.testing.assert_allclose(between, [law[low:high].sum(), 1 - law[low:high].sum()], rtol=1e-9, atol=1e-12)


@pytest.mark.slow  # on one dataset: conformance
def test_rank_laws_agree_with_the_naive_ones(x64: None) -> None:
    rng = np.random.default_rng(1)
    for _ in range(20):
        n, m, t = int(rng.integers(0, 13)), int(rng.integers(2, 4)), int(rng.integers(0, 5))
        data = sorted(rng.integers(0, int(rng.choice([3, 32])), n).tolist())
        fractions = sorted(rng.uniform(0.01, 0.99, 3).tolist())
        mechanism = quantiles.direct(
            solver=interior_point.exponential(bits=5, epsilon=EPSILON), fractions=fractions, m=m, allow_unproved=True
        )
        laws = mechanism.laws(as_points(data, 5, 15), rank_error=t)
        naive = direct_laws(data, fractions, size=32, m=m, epsilon=EPSILON)
        for fraction, law, expected in zip(fractions, np.asarray(laws), naive, strict=True):
            k = rank(fraction, n)
            good = [sum(p < z for p in data) <= k + t and sum(p <= z for p in data) >= k - t for z in range(32)]
            both = [np.dot(expected, good), np.dot(expected, np.logical_not(good))]
            np.testing.assert_allclose(law, both, rtol=1e-9, atol=1e-12)
        if n == 0:
            continue
        error = min(t / n, 1.0)
        probability = mechanism.success_probability(as_points(data, 5, 15), error=error)
        np.testing.assert_allclose(probability, np.prod(np.asarray(laws)[:, 0]), rtol=1e-12)
        failure = mechanism.failure_probability(as_points(data, 5, 15), error=error)
        np.testing.assert_allclose(failure, 1 - probability, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(("epsilon", "delta"), [(0.3, 0.2), (1.0, 0.05)])
def test_runs_of_exponential_mechanisms_compose_by_their_ranges(epsilon: float, delta: float) -> None:
    """All multisets of up to four of five points, under both relations; and nearly the whole delta is spent on some pair of a pure run."""
    each = independent_each(Guarantee(epsilon, delta, ADD_OR_REMOVE_ONE), 2).epsilon / 2 * (1 - 2.0**-39)
    runs = quantiles.direct(
        solver=interior_point.exponential(bits=3, epsilon=each),
        fractions=[0.3, 0.7],
        m=1,
        allow_unproved=True,
        accountant="bounded",
        delta=delta,
    )
    assert runs.guarantee().covers(epsilon, delta) and runs.guarantee().epsilon > 0.999 * epsilon
    assert runs.guarantee_under(REPLACE_ONE) == dataclasses.replace(runs.guarantee(), relation=REPLACE_ONE)

    def law(data: tuple[int, ...], spent: float) -> np.ndarray:
        first, second = direct_laws(list(data), [0.3, 0.7], size=5, m=1, epsilon=spent)
        return np.outer(first, second)

    small = [data for n in range(5) for data in itertools.combinations_with_replacement(range(5), n)]
    pairs = [(data, tuple(sorted((*data, p)))) for data in small if len(data) < 4 for p in range(5)]
    pairs += [
        (data, tuple(sorted((*data[:i], p, *data[i + 1 :]))))
        for data in small
        for i in range(len(data))
        for p in range(5)
    ]

    def worst(spent: float) -> float:
        laws = {data: law(data, spent) for data in small}
        excess = (
            np.maximum(laws[a] - np.exp(epsilon) * laws[b], 0).sum() for a, b in pairs + [(b, a) for a, b in pairs]
        )
        return max(map(float, excess))

    assert delta / 20 < worst(each) <= delta < worst(3 * each)


def test_wanted_ranks_move_by_at_most_one() -> None:
    """In integers, where float32 would skip: the privacy of the window rests on it."""
    n = jnp.arange(2**24 - 500, 2**24 + 500, dtype=jnp.int32)
    fractions = np.array([1, 2**31 - 1, 2**31, 2**32 - 3, 2**32 - 1], np.uint32)
    ranks = np.asarray(jax.jit(jax.vmap(quantiles.nearest_rank, in_axes=(None, 0)))(fractions, n)).astype(int)
    exact = [[(int(f) * int(count) + 2**31) >> 32 for f in fractions] for count in n]
    np.testing.assert_array_equal(ranks, exact)
    assert set(np.diff(ranks, axis=0).ravel().tolist()) == {0, 1}


@jax.jit
def distance_to_uniform(function: cdf.StepFunction) -> Any:
    """The distance to the uniform distribution on 16 points."""
    return function.distance_to(lambda j: jnp.minimum(j[1].astype(float) / 16 + j[0].astype(float), 1.0))


def test_rank_errors_and_distances_are_exact() -> None:
    rng = np.random.default_rng(2)
    for n in (1, 5, 12):
        data = sorted(rng.integers(0, 16, n).tolist())
        answers = sorted(rng.integers(0, 16, 3).tolist())
        ranks = rng.integers(0, n + 1, 3)
        naive = [
            max(sum(p < z for p in data) - k, k - sum(p <= z for p in data), 0)
            for z, k in zip(answers, ranks.tolist(), strict=True)
        ]
        points = Points.create(as_points(data, 4, 15).x, n_valid=n, ordered=True)
        found = quantiles.rank_errors(points, wide.from_ints(answers, 4), jnp.asarray(ranks, jnp.int32))
        assert found.tolist() == naive
        heights = [0.125, 0.375, 0.625, 0.875]
        function = cdf.StepFunction(points=wide.from_ints(answers, 4), heights=jnp.array(heights))
        shuffled = as_points(rng.permutation(data).tolist(), 4, 15)
        np.testing.assert_allclose(function.distance(shuffled), naive_distance(data, answers, heights, 16), rtol=1e-6)
        naive_uniform = max(abs(heights[sum(z <= x for z in answers)] - (x + 1) / 16) for x in range(16))
        np.testing.assert_allclose(distance_to_uniform(function), max(naive_uniform, 1 - heights[-1]), rtol=1e-6)
    assert math.isnan(float(function.distance(as_points([], 4))))


@pytest.mark.thorough
def test_numbers_of_other_widths_are_compared_whole() -> None:
    """Cut off, 2^64 + 3 would be 3."""
    function = cdf.StepFunction(points=wide.from_ints([3, 9], 8), heights=jnp.array([0.0, 0.5, 1.0]))
    far = 2**64
    compared = jax.jit(lambda x: (function.distance(Points.create(x)), function.evaluate(x)))
    for start, distance in ((0, 0.0), (2**32, 1.0), (far, 1.0)):
        x = wide.from_ints([start + 3, start + 9], 96)
        found, values = compared(x)
        assert float(found) == distance
        np.testing.assert_array_equal(values, [1.0, 1.0] if start else [0.5, 1.0])
    narrow = Points.create(wide.from_ints([3, 9], 8), ordered=True)
    answers = wide.from_ints([3, far + 3], 96)
    errors = jax.jit(quantiles.rank_errors)(narrow, answers, np.array([0, 1], np.int32))
    np.testing.assert_array_equal(errors, [0, 1])


# ------------------------------------------------------------------------------------------- utility at sample sizes

BITS, ALPHA, BETA = 16, 0.1, 0.1


def shapes(n: int, bits: int) -> dict[str, list[int]]:
    """Datasets of many kinds, sorted."""
    top = 2**bits - 1
    return {
        "equal": [12345] * n,
        "consecutive": list(range(1000, 1000 + n)),
        "two far clusters": [5] * (n // 2) + [top - 5] * (n - n // 2),
        "one a scale": sorted(min(2 ** (1 + i % (bits - 1)) + i // bits, top) for i in range(n)),
        "spread": [i * top // n for i in range(n)],
        "at the ends": [0] * (n // 2) + [top] * (n - n // 2),
    }


@pytest.mark.slow
def test_threshold_learner_succeeds_at_its_sample_size() -> None:
    solver = interior_point.exponential(bits=BITS + 1, epsilon=EPSILON)
    m = interior.half_slice(solver, beta=BETA / 2)
    learner = interior.threshold_learner(solver=solver, m=m)
    n = learner.sample_size(alpha=ALPHA, beta=BETA)
    assert 2 * stats.binom.cdf(m - 1, n, ALPHA) <= BETA / 2 < 2 * stats.binom.cdf(m - 1, n - 1, ALPHA)
    assert (
        n
        <= (m - 1 + math.log(4 / BETA) + math.sqrt(math.log(4 / BETA) ** 2 + 2 * (m - 1) * math.log(4 / BETA))) / ALPHA
        + 1
    )
    for xs in shapes(n, BITS).values():
        for target in (xs[n // 3], 0, 2**BITS):
            ys = [int(x < target) for x in xs]
            sample = Sample(x=wide.from_ints(xs, BITS), y=ys, realizable=True)
            failure = learner.failure_probability(sample, error=learner.empirical_error(n))
            assert float(failure) <= BETA / 2
    distribution = concept.log_uniform(bits=BITS)
    experiment = pac.Experiment(
        learner=learner, distribution=distribution, n=n, alpha=ALPHA, capacity=sample.padded().rows
    )
    failures = jax.vmap(pac.failure, in_axes=(0, None))(jax.random.split(jax.random.key(3), 64), experiment)
    assert float(failures.mean()) <= BETA


def test_the_ways_to_thresholds_and_back_state_what_their_parts_keep_and_need() -> None:
    """One more record moves two of those that the other part sees, and each part gets half of beta."""
    solver = interior_point.exponential(bits=BITS + 1, epsilon=EPSILON)
    m, fewer = (interior.half_slice(solver, beta=beta) for beta in (BETA / 2, BETA))
    learner = interior.threshold_learner(solver=solver, m=m)
    n = learner.sample_size(alpha=ALPHA, beta=BETA)
    assert 2 * stats.binom.cdf(m - 1, n, ALPHA) <= BETA / 2 < 2 * stats.binom.cdf(m - 1, n - 1, ALPHA)
    with pytest.raises(ValueError, match="m must be >="):
        interior.threshold_learner(solver=solver, m=fewer).sample_size(alpha=ALPHA, beta=BETA)
    inner = thresholds.exponential(bits=3, epsilon=EPSILON)
    half = -(-inner.sample_size(alpha=0.25, beta=BETA) // 2)
    back = interior.solver(learner=inner, m=half)
    assert learner.guarantee() == back.guarantee() == Guarantee(2 * EPSILON, 0.0, ADD_OR_REMOVE_ONE)
    assert back.points_needed(BETA) == 2 * half
    with pytest.raises(ValueError, match=f"m must be >= {half}"):
        interior.solver(learner=inner, m=half - 1).points_needed(BETA)


@pytest.mark.slow
def test_direct_quantiles_succeed_at_their_sample_size() -> None:
    solver = interior_point.exponential(bits=BITS, epsilon=EPSILON)
    m = -(-solver.sample_size(beta=BETA / 3) // 2)
    mechanism = quantiles.direct(solver=solver, fractions=[0.25, 0.5, 0.75], m=m, beta=BETA)
    n = mechanism.sample_size(alpha=ALPHA, beta=BETA)
    released = cdf.release(quantiles=mechanism)
    with pytest.raises(ValueError, match="alpha must be above half the widest gap"):
        released.sample_size(alpha=0.125, beta=BETA)
    assert released.sample_size(alpha=0.125 + ALPHA, beta=BETA) <= n + 1
    for number, (name, xs) in enumerate(shapes(n, BITS).items()):
        points = as_points(xs, BITS)
        assert float(mechanism.failure_probability(points, error=(m - 1) / n)) <= BETA, name
        outcome = released(jax.random.key(number), points)
        assert outcome.status == Status.OK
        answers = wide.to_ints(outcome.hypothesis.points)
        if all(bisected(xs, z, f, m) for z, f in zip(answers, (0.25, 0.5, 0.75), strict=True)):
            assert float(outcome.hypothesis.distance(points)) <= 0.125 + ALPHA + 1e-6, name


def bisected(xs: list[int], z: int, fraction: float, m: int) -> bool:
    k = rank(fraction, len(xs))
    return sum(x < z for x in xs) <= k + m - 1 and sum(x <= z for x in xs) >= k - m + 1


def frequency(released: Any, points: Points, alpha: float, key: int, lanes: int = 100) -> int:
    """How many of the releases are within alpha of the sample."""
    functions = runs(released, jax.random.split(jax.random.key(key), lanes), points).hypothesis
    return int((jax.vmap(lambda function: function.distance(points))(functions) <= alpha).sum())


def release(bits: int) -> Any:
    """A distribution function by recursive quantiles, with this number of bits to break ties."""
    solver = interior_point.exponential(bits=BITS + bits, epsilon=EPSILON)
    return cdf.release(quantiles=quantiles.recursive(solver=solver, bits=BITS, depth=2, m=60))


def test_recursive_quantiles_reckon_with_equal_points() -> None:
    with pytest.raises(ValueError, match=r"solver\.bits must be larger, for 0 bits do not break the ties"):
        release(0).sample_size(alpha=0.125 + ALPHA, beta=BETA)
    alone = quantiles.recursive(solver=interior_point.exponential(bits=BITS, epsilon=EPSILON), bits=BITS, depth=1, m=60)
    assert alone.sample_size(alpha=ALPHA, beta=BETA) == math.ceil(
        60.5 / ALPHA
    )  # a median alone is no end of another node
    told_apart = release(8)
    assert told_apart.sample_size(alpha=0.125 + ALPHA, beta=BETA) > told_apart.quantiles.rank_error() / ALPHA


@pytest.mark.thorough
def test_recursive_quantiles_of_equal_points_keep_their_promise() -> None:
    """Half of all points are equal; without random bits every release missed by a quarter, at the stated size and at ten times that."""
    told_apart = release(8)
    n = told_apart.sample_size(alpha=0.125 + ALPHA, beta=BETA)
    points = as_points([*range(n // 4), *[500] * (n - 2 * (n // 4)), *range(501, 501 + n // 4)], BITS, 2047)
    least = int(stats.binom.ppf(FALSE_ALARM, 100, 1 - BETA))
    assert frequency(told_apart, points, 0.125 + ALPHA, 4) >= least
    assert frequency(release(0), points, 0.125 + ALPHA, 4) < least


@pytest.mark.slow
def test_recursive_and_sliced_functions_are_close_at_their_sample_sizes() -> None:
    """100 releases each, of data with ties; 90 % successes are promised, and `least` or more are seen up to the false-alarm rate."""
    least = int(stats.binom.ppf(FALSE_ALARM, 100, 1 - BETA))
    recursive = quantiles.recursive(
        solver=interior_point.exponential(bits=28, epsilon=EPSILON), bits=BITS, depth=2, m=40
    )
    released = cdf.release(quantiles=recursive)
    n = released.sample_size(alpha=0.125 + ALPHA, beta=BETA)
    points = as_points([7 * (i // 50) for i in range(n)], BITS, 2047)
    assert frequency(released, points, 0.125 + ALPHA, 4) >= least

    slices = quantiles.sliced(
        solver=interior_point.exponential(bits=BITS, epsilon=EPSILON),
        count=3,
        size=40,
        slice_epsilon=0.5,
        count_epsilon=0.5,
        delta=1e-6,
    )
    released = cdf.release(quantiles=slices)
    n = released.sample_size(alpha=0.125 + ALPHA, beta=BETA)
    points = as_points([7 * (i // 50) for i in range(n)], BITS, 2047)
    assert frequency(released, points, 0.125 + ALPHA, 5) >= least
    # Negative control: an eighth of the points are too few for the slices.
    assert frequency(released, as_points([7 * i for i in range(n // 8)], BITS, 2047), 0.125 + ALPHA, 6) < least


def test_a_distribution_function_loses_half_of_the_widest_gap() -> None:
    """Of fractions 1/16 apart; the rest of alpha is left to the ranks of the quantiles."""
    solver = interior_point.exponential(bits=28, epsilon=1.0)
    quantile = quantiles.recursive(solver=solver, bits=16, depth=4, m=60)
    n = cdf.release(quantiles=quantile).sample_size(alpha=0.1, beta=0.1)
    assert n == quantile.sample_size(alpha=0.1 - (1 / 16) / 2, beta=0.1)


@pytest.mark.parametrize("q", [3, 7])
def test_ends_of_slices_drift_no_further_than_their_noise_is_likely_to(q: int) -> None:
    """beta/3 for both tails of the noise up to each of 2q ends, alike: from the sample size back to the drift that it pays for."""
    given = {"slice_epsilon": 0.5, "count_epsilon": 0.5, "delta": 1e-6}
    solver = interior_point.exponential(bits=BITS, epsilon=EPSILON)
    alpha, share, size = 0.001, BETA / 3, 50
    n = quantiles.sliced(solver=solver, count=q, size=size, **given).sample_size(alpha=alpha, beta=BETA)
    mean, miscount = 1 / math.expm1(0.5), math.log(2 / share) / 0.5
    drift = alpha * n - (size + mean) / 2 - miscount - 2
    ends = np.arange(1, 2 * q + 1)
    noise = stats.nbinom(ends, -math.expm1(-0.5))
    # The noise is whole: the drift ends at the first number that is passed seldom enough, and n is rounded up by alpha at most.
    assert max(noise.sf(np.floor(ends * mean + drift)).max(), noise.cdf(ends * mean - drift - 1).max()) <= share / (
        4 * q
    )
    assert noise.sf(np.floor(ends * mean + drift - 1.01)).max() > share / (4 * q)


@pytest.mark.slow
def test_the_way_to_thresholds_and_back_finds_interior_points() -> None:
    solver = interior_point.exponential(bits=BITS + 2, epsilon=EPSILON)
    learner = interior.threshold_learner(solver=solver, m=interior.half_slice(solver, beta=BETA))
    back = interior.solver(learner=learner, m=3 * int(learner.m))
    assert int(back.bits) == BITS and back.guarantee().epsilon == pytest.approx(8 * EPSILON)
    needed = interior.solver(learner=learner, m=10 * int(learner.m)).sample_size(beta=2 * BETA)
    assert needed == 20 * int(learner.m)
    with pytest.raises(ValueError, match="m must be >="):
        back.sample_size(beta=1e-9)
    for name, xs in shapes(6 * int(learner.m), BITS).items():
        points = as_points(xs, BITS)
        assert float(back.failure_probability(points)) <= BETA, name
        answer = wide.to_ints(back(jax.random.key(7), points).hypothesis)[0]
        assert 0 <= answer < 2**BITS


@pytest.mark.thorough
def test_no_number_of_points_is_promised_for_a_semi_private_learner() -> None:
    """Its hypotheses come from public points: far from these, as many points as it asks for never gave an interior point."""
    public = as_points([0] * 2307, 9)
    learner = label_private.semi_private(concepts=label_private.thresholds(bits=9), public=public, epsilon=50.0)
    m = -(-learner.sample_size(alpha=0.25, beta=0.5) // 2)
    back = interior.solver(learner=learner, m=m)
    assert float(back.failure_probability(as_points([100] * m + [101] * m, 8))) > 0.99
    with pytest.raises(ValueError, match="learner must promise an error on any realizable sample"):
        back.sample_size(beta=0.5)


# ------------------------------------------------------------------------------------------------ Reorder-Slice-Compute


@pytest.mark.thorough
def test_slices_lie_at_their_ranks_among_a_billion_points() -> None:
    """Ends of slices, added up in float32, once drifted away from the ranks."""
    rate, size, q = 2.0, 60, 100
    solver = interior_point.exponential(bits=30, epsilon=1.0)
    given: Any = {"slice_epsilon": rate, "count_epsilon": 1.0, "delta": 1e-6, "allow_unproved": True}
    made, mean = quantiles.sliced(solver=solver, count=q, size=size, **given), 1 / math.expm1(rate)
    gaps_of = jax.jit(made.gaps)
    for n in (10**4, 10**9):
        gaps = np.asarray(gaps_of(np.int32(n)), float)
        middles = np.cumsum(gaps + mean) + np.arange(q) * (size + mean) + (size + mean) / 2
        assert (gaps > 0).all()
        assert np.abs(middles - np.asarray(quantiles.nearest_rank(made.fractions, n))).max() < 1


@pytest.mark.slow
def test_one_sliced_quantile_keeps_its_guarantee_and_follows_its_law() -> None:
    """q = 1: the exact law with the mechanism's own plan, over all neighbours."""
    rate = 0.4
    mechanism = quantiles.sliced(
        solver=interior_point.exponential(bits=2, epsilon=EPSILON),
        count=1,
        size=2,
        slice_epsilon=rate,
        count_epsilon=rate,
        delta=0.1,
        allow_unproved=True,
    )
    gaps = np.asarray(jax.jit(jax.vmap(mechanism.gaps))(np.arange(90, dtype=np.int32)))
    assert gaps[:4, 0].tolist() == [0] * 4 and gaps[-1, 0] > 30
    rates = {"slice_epsilon": rate, "count_epsilon": rate, "epsilon": EPSILON}
    law = functools.partial(sliced_law, gaps=dict(enumerate(gaps.tolist())), domain=4, size=2, **rates)
    counts, values, sizes = all_points(4, 4)
    table = np.array([law(r[:n].tolist()) for r, n in zip(values, sizes, strict=True)])
    pairs = neighbours(counts, ADD_OR_REMOVE_ONE)
    for delta in (0.01, 0.1):
        for accountant in ("slicing", "optimal"):
            guarantee = dataclasses.replace(mechanism, delta=delta, accountant=accountant).guarantee()
            assert not refuted(table, pairs, guarantee)
    assert largest_loss(table, pairs) > EPSILON / 4
    data = [0, 1, 3, 3]
    drawn = runs(mechanism, jax.random.split(jax.random.key(8), 4000), as_points(data, 2, 7)).hypothesis[:, 0, 0]
    fits(np.bincount(drawn, minlength=4), law(data))


# --------------------------------------------------------------------------------------------------- one of the family


SLICED = {"count": 1, "size": 2, "slice_epsilon": 4.0, "count_epsilon": 1.0, "delta": 0.1, "allow_unproved": True}


@pytest.mark.thorough
def test_bottom_is_passed_on() -> None:
    mute = Mute(bits=np.int32(5), limbs=1)
    points, key = as_points([1, 2, 3], 5, 7), jax.random.key(0)
    sample = as_sample([1, 2, 3], [1, 1, 0], 4, 7)
    for mechanism, data in [
        (interior.threshold_learner(solver=mute, m=2), sample),
        (quantiles.direct(solver=mute, fractions=[0.5], m=2, allow_unproved=True), points),
        (quantiles.recursive(solver=mute, bits=5, depth=1, m=2, allow_unproved=True), points),
        (quantiles.sliced(**SLICED, solver=mute), points),
        (interior.solver(learner=interior.threshold_learner(solver=mute, m=2), m=2), as_points([1, 2], 3, 7)),
    ]:
        assert mechanism(key, data).status == Status.BOTTOM
        key = jax.random.fold_in(key, 1)


def test_slices_have_room_for_their_noise_and_all_that_they_cost_is_added_up() -> None:
    """Three solvers at distance 2 cost 2 * 0.05 each and the count 0.1, which is as much: four parts, not three or one."""
    mechanism = quantiles.sliced(
        solver=interior_point.exponential(bits=2, epsilon=0.05),
        count=3,
        size=120,
        slice_epsilon=0.1,
        count_epsilon=0.1,
        delta=1e-9,
        accountant="optimal",
        allow_unproved=True,
    )
    assert mechanism.capacity >= 120 + 64 / 0.1  # noise is cut off where it passes 64 / slice_epsilon
    assert mechanism.guarantee().epsilon == pytest.approx(3 * 2 * 0.05 + 0.1, rel=1e-3)


@pytest.mark.slow
def test_padding_changes_nothing_and_parameters_are_data() -> None:
    data = [3, 9, 9, 12, 30, 41]
    mechanism = quantiles.recursive(
        solver=interior_point.exponential(bits=12, epsilon=1.0), bits=6, depth=2, m=4, allow_unproved=True
    )
    answers = [runs(mechanism, jax.random.key(5)[None], as_points(data, 6, rows)).hypothesis for rows in (7, 31)]
    assert len({a.tobytes() for a in map(np.asarray, answers)}) == 1
    learner = interior.threshold_learner(solver=interior_point.exponential(bits=7, epsilon=1.0), m=4)
    sample = as_sample(data, [1, 0, 1, 1, 0, 0], 6, 7)
    runs(learner, jax.random.key(6)[None], sample)
    before = runs._cache_size()
    for m, epsilon, bits in itertools.product((4, 7), (0.3, 2.0), (7, 20)):
        other = interior.threshold_learner(solver=interior_point.exponential(bits=bits, epsilon=epsilon), m=m)
        runs(other, jax.random.key(7)[None], sample)
    assert runs._cache_size() == before


@pytest.mark.parametrize(
    ("build", "error", "message"),
    [
        (lambda s: interior.threshold_learner(solver=s, m=0), ValueError, "m must be from 1"),
        (lambda s: interior.threshold_learner(solver=s, m=2.0), TypeError, "m must be an int"),
        (lambda s: interior.threshold_learner(solver="s", m=2), TypeError, "solver must be of"),
        (lambda s: interior.solver(learner=s, m=2), TypeError, "learner must be a threshold learner"),
        (lambda s: interior.solver(learner=thresholds.erm(bits=1), m=2), ValueError, "learner.bits must be >= 2"),
        (lambda s: quantiles.direct(solver=s, fractions=[0.5, 0.5], m=2), ValueError, "fractions must increase"),
        (lambda s: quantiles.direct(solver=s, fractions=[], m=2), ValueError, "fractions must increase"),
        (lambda s: quantiles.direct(solver=s, fractions=[1.5], m=2), ValueError, "fractions must be <= 1"),
        (lambda s: quantiles.recursive(solver=s, bits=9, depth=2, m=20), ValueError, "bits must be from 1 to 8"),
        (lambda s: quantiles.recursive(solver=s, bits=8, depth=0, m=2), ValueError, "depth must be from 1"),
        (
            lambda s: quantiles.sliced(**(SLICED | {"count": 0}), solver=s),
            ValueError,
            "count must be",
        ),
        (
            lambda s: quantiles.sliced(**(SLICED | {"slice_epsilon": 0}), solver=s),
            ValueError,
            "slice_epsilon",
        ),
        (
            lambda s: quantiles.sliced(**(SLICED | {"allow_unproved": False}), solver=s),
            ValueError,
            "size must be >= 18",
        ),
        (lambda s: quantiles.sliced(**SLICED, solver=None), TypeError, "solver must be one of"),
        (
            lambda s: quantiles.half_slice(quantiles.permute_and_flip(bits=8, fractions=[0.5], epsilon=1.0), beta=0.1),
            TypeError,
            "solver must be one of",
        ),
        (lambda s: quantiles.direct(solver=None, fractions=[0.5], m=20), TypeError, "solver must be one of"),
        (lambda s: quantiles.direct(solver=s, fractions=0.5, m=20), TypeError, "fractions must be a list"),
        (lambda s: quantiles.direct(solver=s, fractions=["a"], m=20), TypeError, "fractions must be a real number"),
        (
            lambda s: quantiles.direct(solver=s, fractions=[0.5], m=7),
            ValueError,
            "m must be >= 8 for the solver to fail",
        ),
        (lambda s: quantiles.direct(solver=s, fractions=[0.5], m=20, accountant="best"), ValueError, "accountant must"),
        (lambda s: quantiles.direct(solver=s, fractions=[0.5], m=20, accountant="optimal"), ValueError, "delta must"),
        (lambda s: quantiles.direct(solver=s, fractions=[0.5], m=20, delta=0.1), ValueError, "delta must"),
        (lambda s: quantiles.direct(solver=s, fractions=[0.5], m=20, accountant="bounded"), ValueError, "delta must"),
        (lambda s: quantiles.recursive(solver=s, bits=8, depth=2, m=9, accountant="bounded"), ValueError, "accountant"),
        (lambda s: quantiles.recursive(solver=s, bits=8, depth=2, m=7), ValueError, "m must be >= 9 for the solver"),
        (lambda s: quantiles.recursive(solver=None, bits=8, depth=2, m=9), TypeError, "solver must be one of"),
        (lambda s: cdf.release(quantiles=s), TypeError, "quantiles must be a mechanism"),
        (lambda s: cdf.widest_gap([0.7, 0.3]), TypeError, "fractions must be a list of uint32"),
        (lambda s: quantiles.half_slice("x", beta=0.1), TypeError, "solver must be one of"),
        (
            lambda s: quantiles.direct(solver=thresholds.exponential(bits=8, epsilon=1.0), fractions=[0.5], m=20),
            TypeError,
            "solver must be one of",
        ),
        (
            lambda s: quantiles.direct(solver=s, fractions=[0.5], m=20, allow_unproved=1),
            TypeError,
            "allow_unproved must be True or False, got 1",
        ),
        (lambda s: quantiles.sliced(**(SLICED | {"beta": "1"}), solver=s), TypeError, "beta must be a real number"),
        (lambda s: interior_point.tree_log_planned(bits=8, plan=None), TypeError, "plan must be a Plan, got None"),
        (lambda s: interior_point.tree_log(bits=10**400, epsilon=1.0, delta=1e-6), ValueError, "bits must be from 1"),
    ],
)
def test_bad_arguments_are_refused(build: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        build(interior_point.exponential(bits=8, epsilon=1.0))


def test_points_that_are_none_are_refused() -> None:
    """Promises given as words, and points assembled by hand."""
    solver, x = interior_point.exponential(bits=8, epsilon=1.0), wide.from_ints([3, 5], 8)
    with pytest.raises(TypeError, match="ordered must be True or False, got 'yes'"):
        Points.create(x, ordered="yes")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="realizable must be True or False, got 1"):
        Sample(x=x, y=[1, 0], realizable=1)  # type: ignore[arg-type]
    for mechanism in (solver, quantiles.direct(solver=solver, fractions=[0.5], m=20)):
        for raw in ("hello", np.zeros((3, 1)), None):
            with pytest.raises(TypeError, match=r"points\.x must be a uint32 array"):
                mechanism(jax.random.key(0), Points(x=raw, n_valid=3))  # type: ignore[arg-type]


@pytest.mark.slow
def test_points_outside_the_domain_are_refused() -> None:
    mechanism = quantiles.recursive(
        solver=interior_point.exponential(bits=12, epsilon=1.0), bits=6, depth=1, m=4, allow_unproved=True
    )
    with pytest.raises(ValueError, match=r"points.x must hold points in 0, ..., 2\^6 - 1, got 64"):
        mechanism(jax.random.key(0), as_points([64], 7))
    outcome = jax.jit(lambda points: mechanism(jax.random.key(0), points))(as_points([64], 7))
    assert outcome.status == Status.OUTSIDE_DOMAIN


@pytest.mark.slow  # on one dataset: conformance
def test_answers_in_order_have_the_law_of_the_runs(x64: None) -> None:
    """pmf compared with the naive law of both runs, sorted; bottom last."""
    data = [0, 1, 1, 2, 3, 3]
    solver = interior_point.exponential(bits=2, epsilon=EPSILON)
    mechanism = quantiles.direct(solver=solver, fractions=[0.3, 0.5], m=1, allow_unproved=True)
    naive = in_order(direct_laws(data, [0.3, 0.5], size=4, m=1, epsilon=EPSILON))
    np.testing.assert_allclose(mechanism.pmf(as_points(data, 2, 7)), [*naive.reshape(16), 0.0], rtol=1e-9, atol=1e-12)


@pytest.mark.slow
def test_an_event_of_quantiles_has_an_interval_for_each() -> None:
    solver = interior_point.exponential(bits=2, epsilon=EPSILON)
    mechanism = quantiles.direct(solver=solver, fractions=[0.3, 0.5], m=1, allow_unproved=True)
    data = [0, 1, 1, 2, 3, 3]
    points, low, high = as_points(data, 2, 7), wide.from_ints([0, 1], 2), wide.from_ints([2, 3], 2)
    laws = direct_laws(data, [0.3, 0.5], size=4, m=1, epsilon=EPSILON)
    inside = sum(laws[0][0:2]) * sum(laws[1][1:3])
    np.testing.assert_allclose(mechanism.probability(points, (low, high)), [inside, 1 - inside], rtol=1e-5)
    with pytest.raises(ValueError, match="a row for each of the 2 quantiles"):
        mechanism.probability(points, (0, 3))


def test_a_promise_under_replace_one_pays_for_a_replacement_once() -> None:
    """A slice changes by one replacement; `flat_tree_score` promises epsilon for that, which is what no pair of neighbours exceeds."""
    bend = flat_tree_planning.curve(share=0.6, rest=0.0, knee=0.0, width=1.0)
    given: Any = {"bits": 2, "epsilon": 1.0, "n": 2, "offsets": tree_planning.plain(2), "curve": bend}
    solver = interior_point.flat_tree_score(**given)
    direct = quantiles.direct(solver=solver, fractions=[0.5], m=1, allow_unproved=True)
    recursive = quantiles.recursive(solver=solver, bits=2, depth=1, m=1, allow_unproved=True)
    assert direct.guarantee().epsilon == recursive.guarantee().epsilon == solver.guarantee().epsilon == 1.0
    sets = [some for n in range(1, 4) for some in itertools.combinations_with_replacement(range(4), n)]
    laws = {some: np.log(direct.pmf(Points.create(wide.from_ints(some, 2)).padded(3))[:-1]) for some in sets}
    pairs = [(some, tuple(sorted((*some, x)))) for some in sets if len(some) < 3 for x in range(4)]
    losses = [float(np.max(np.abs(laws[one] - laws[other]))) for one, other in pairs]
    assert 0.3 < max(losses) <= 1.0


@pytest.mark.parametrize(("make", "given"), [("direct", {"fractions": [0.5]}), ("recursive", {"bits": 3, "depth": 1})])
def test_a_replaced_solver_is_composed_by_ranges_only_if_it_has_one(make: str, given: Any) -> None:
    name = {"direct": "bounded", "recursive": "adaptive"}[make]
    solver = interior_point.exponential(bits=3, epsilon=0.5)
    built = getattr(quantiles, make)(solver=solver, m=9, allow_unproved=True, accountant=name, delta=1e-6, **given)
    assert not built.guarantee().is_none
    other = interior_point.rec_concave(bits=3, epsilon=0.5, delta=0.01, promise=8.0)
    assert dataclasses.replace(built, solver=other).guarantee().is_none


def test_a_slice_of_no_points_or_of_too_many_is_a_bad_parameter() -> None:
    """With m = 0 the solver had no points and answered all the same; for an m beyond the capacity the status was that of bottom."""
    sample = Sample(x=wide.from_ints([1, 2, 5, 6], 3), y=[1, 1, 0, 0])
    learner = interior.threshold_learner(solver=interior_point.exponential(bits=4, epsilon=1.0), m=2)
    solver = interior.solver(learner=thresholds.exponential(bits=4, epsilon=1.0), m=2)
    points = Points.create(sample.x)
    for made, data in ((learner, sample), (solver, points)):
        run = jax.jit(lambda m, made=made, data=data: dataclasses.replace(made, m=m)(jax.random.key(0), data).status)
        law = jax.jit(lambda m, made=made, data=data: dataclasses.replace(made, m=m).probability(data, (0, 4)))
        assert [int(run(np.int32(m))) for m in (1, 2, 3)] == [Status.OK] * 3
        for m in (-1, 0, 4, 2**30):
            assert int(run(np.int32(m))) == Status.BAD_PARAMETER and np.isnan(law(np.int32(m))).all()
