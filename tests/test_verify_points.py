"""Exact privacy of the point learners and sanitizers: the hockey-stick divergence over all neighbouring datasets, labels arbitrary, and
controls that must be refuted. All laws are evaluated in float64."""

import dataclasses
import functools
import itertools
import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from builders import slow, thorough
from scipy import integrate, stats

from dpjax import Points, Sample, bounds
from dpjax.accounting import REPLACE_ONE, Guarantee
from dpjax.core import bits as packed
from dpjax.learners import points
from dpjax.mechanisms import laplace
from dpjax.multi import points as multi
from dpjax.multi.points import base as multi_base
from dpjax.sanitizers import points as sanitizer
from dpjax.verify import delta_curve, histograms, laplace_deltas, neighbours, probabilities, records, worst_pair
from dpjax.verify.exact import sticks

# ------------------------------------------------------------------------------------------------------------ learners


def family(points_count: int, size: int) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """All samples (as multisets) of `size` examples over `points_count` points with arbitrary labels, and the pairs of neighbours."""
    counts = histograms(2 * points_count, [size])
    values, _ = records(counts, size)
    return {"x": (values // 2).astype(np.uint32), "y": values % 2}, neighbours(counts, REPLACE_ONE)


def sample_law(learner: Any) -> Callable[[Any], Any]:
    return lambda row: jnp.log(jnp.maximum(learner.pmf(Sample(x=row["x"][:, None], y=row["y"])), 0.0))


def hashed(epsilon: float, delta: float) -> Any:
    return points.hashed(bits=2, epsilon=epsilon, buckets=1, allow_inaccurate=True).given(some_hash())


@functools.cache
def some_hash() -> Any:
    learner = points.hashed(bits=2, epsilon=1.0, buckets=1, allow_inaccurate=True)
    return jax.jit(learner.hash)(jax.random.key(3))


LEARNERS: dict[str, Callable[[float, float], Any]] = {
    "random": lambda epsilon, delta: points.learn_points(bits=2, epsilon=epsilon, delta=delta),
    "zero": lambda epsilon, delta: points.learn_points(bits=2, epsilon=epsilon, delta=delta, bottom="zero"),
    "printed": lambda epsilon, delta: points.learn_points(
        bits=2, epsilon=epsilon, delta=delta, bottom="zero", calibration="printed"
    ),
    "exponential": lambda epsilon, delta: points.exponential(bits=2, epsilon=epsilon),
    "hashed": hashed,
}


def tables(law: Callable[[Any], Any], mechanisms: list[Any], data: Any) -> list[np.ndarray]:
    """P[outcome | dataset] under each of the mechanisms: one program for all of them, in which the numbers that differ are data."""
    size = len(jax.tree.leaves(data)[0])
    numbers = list(zip(*map(jax.tree.leaves, mechanisms), strict=True))
    swept = {i: np.repeat(several, size, axis=0) for i, several in enumerate(numbers) if len(np.unique(several)) > 1}
    structure = jax.tree.structure(mechanisms[0])

    def row_law(row: Any) -> Any:
        mechanism = jax.tree.unflatten(structure, [row[0].get(i, several[0]) for i, several in enumerate(numbers)])
        return law(mechanism)(row[1])

    p = probabilities(
        row_law, (swept, jax.tree.map(lambda x: np.concatenate([x] * len(mechanisms)), data)), batch_size=size
    )
    return np.split(p, len(mechanisms))


def deltas(table: np.ndarray, pairs: np.ndarray, epsilons: list[float]) -> np.ndarray:
    """`delta_curve` of a tabulated law."""
    return np.array([sticks(table, pairs, epsilon).max() for epsilon in epsilons])


@pytest.mark.parametrize(
    "name", [thorough("random"), "exponential", thorough("hashed"), *map(slow, ("zero", "printed"))]
)
def test_no_pair_of_samples_refutes_a_learner(name: str) -> None:
    """All 462 samples of six examples on three of the four points."""
    data, pairs = family(3, 6)
    learners = [LEARNERS[name](epsilon, delta) for epsilon, delta in ((0.5, 0.2), (2.0, 0.3))]
    for learner, table in zip(learners, tables(sample_law, learners, data), strict=True):
        guarantee = learner.guarantee()
        exact, leak = deltas(table, pairs, [guarantee.epsilon, guarantee.epsilon / 8])
        assert exact <= guarantee.delta * (1 + 1e-9) + 1e-12
        assert leak > 0.01  # not vacuous


@pytest.mark.thorough
def test_the_gap_of_learn_points_has_sensitivity_two() -> None:
    """Ones (2, 0) against (1, 1): constants for sensitivity 1, the printed ones and those for counts, are refuted."""
    data, pairs = family(2, 6)
    printed = LEARNERS["printed"](1.0, 0.1)
    assert worst_pair(sample_law(printed), data, pairs, 1.0).refutes(printed.claimed_guarantee())
    counts = dataclasses.replace(printed, calibration="proved_counts")
    assert worst_pair(sample_law(counts), data, pairs, 1.0).refutes(Guarantee(1.0, 0.1, REPLACE_ONE))


# ---------------------------------------------------------------------------------------------------------- Algorithm 2


def binned(mechanism: Any, count: int) -> np.ndarray:
    """The law of one point's answer: 0, then bins of the noisy count above `high`, narrow ones where two densities can cross."""
    atom, edges = float(mechanism.high), np.arange(0, 30, 0.125)
    if count <= mechanism.low:
        return np.r_[1.0, np.zeros(len(edges))]
    with jax.enable_x64(True):
        tails, below = jax.device_get(tails_and_below(mechanism, atom + edges, np.full(len(edges), count)))
    tails = np.exp(tails)
    return np.r_[np.exp(float(below)), tails[:-1] - tails[1:], tails[-1]]


@jax.jit
def tails_and_below(mechanism: Any, values: Any, counts: Any) -> Any:
    """(ln P[noisy count >= value], ln P[not released]) of a count."""
    tails = laplace.log_sf(values, counts, epsilon=jnp.asarray(mechanism.epsilon, float), sensitivity=2.0)
    return tails, mechanism.log_released(counts[:1])[1][0]


def release_delta(mechanism: Any, n: int, epsilon: float) -> float:
    """delta(epsilon) over all neighbours: one count falls, another rises, all other answers keep their law."""
    laws = [binned(mechanism, count) for count in range(n + 1)]
    sticks = []
    for a, b in itertools.product(range(1, n + 1), range(n)):
        if a + b <= n:
            for (p, q), (r, s) in (((a, a - 1), (b, b + 1)), ((a - 1, a), (b + 1, b))):
                first, second = np.outer(laws[p], laws[r]).ravel(), np.outer(laws[q], laws[s]).ravel()
                sticks.append(np.maximum(first - math.exp(epsilon) * second, 0).sum())
    return max(sticks)


def test_algorithm_2_is_private_with_half_its_delta_and_only_from_its_n_on() -> None:
    n, alpha, epsilon = 12, 0.99, 3.0
    delta = math.exp(-epsilon * n * alpha / 8 + epsilon / 2) * (1 + 1e-9)
    mechanism = sanitizer.release(bits=8, n=n, epsilon=epsilon, delta=delta, alpha=alpha)
    exact = release_delta(mechanism, n, epsilon)
    assert exact <= delta / 2  # sharper than Proposition 30: (epsilon, delta / 2)
    smaller = sanitizer.release(bits=8, n=4, epsilon=epsilon, delta=delta, alpha=alpha, allow_unproved=True)
    assert release_delta(smaller, 4, epsilon) > delta


@pytest.mark.parametrize(
    ("epsilon", "delta", "low"), [(1.0, 0.1, 0.0), (3.0, 0.02, 0.0), (3.0, 0.02, 2.0), (0.2, 0.4, 1.0)]
)
def test_the_histogram_is_private_and_tight_whatever_n(epsilon: float, delta: float, low: float) -> None:
    mechanism = sanitizer.histogram(bits=8, n=10, epsilon=epsilon, delta=delta, low=low)
    exact = release_delta(mechanism, 10, epsilon)
    assert exact <= delta * (1 + 1e-9)
    np.testing.assert_allclose(exact, delta, rtol=1e-6)  # two counts of low + 1 that trade places
    greedy = dataclasses.replace(mechanism, delta=delta * math.exp(0.05 * epsilon))
    np.testing.assert_allclose(float(greedy.high), float(mechanism.high) - 0.1)
    assert release_delta(greedy, 10, epsilon) > delta


# -------------------------------------------------------------------------------------------------------------- SanPoints


def san_points_law(mechanism: Any) -> Callable[[Any], Any]:
    """ln P of every sequence of choices (points, then ⊥): what the Choosing Mechanisms tell, without the noisy counts that follow."""

    def law(counts: Any) -> Any:
        m = counts.shape[0]
        remain = jnp.concatenate([~jnp.eye(m, dtype=bool), jnp.ones((1, m), bool)])  # after each choice
        logs, left = jnp.zeros((1,)), jnp.ones((1, m), bool)
        for _ in range(mechanism.rounds):
            steps = jax.vmap(lambda free: mechanism.log_choice(counts, free))(left)
            logs = (logs[:, None] + steps).reshape(-1)
            left = (left[:, None] & remain[None]).reshape(-1, m)
        return logs

    return law


def test_san_points_is_private_from_its_n_on_and_not_below() -> None:
    epsilon, delta, alpha = 2.0, 0.1, 0.99
    n = bounds.san_points_private(epsilon, delta, alpha)
    mechanism = sanitizer.san_points(bits=8, n=n, epsilon=epsilon, delta=delta, alpha=alpha)
    assert mechanism.rounds == 3
    # Counts near the test's threshold alpha n / 4, near each other, and near 0; the third point takes the rest.
    base = round(alpha * n / 4)
    centres = {(0, 0), (base, 0), (base, base), (n // 2, 0), (n // 2, n // 2 - 1)}
    counts = np.array(
        sorted(
            {(a + i, b + j, n - a - b - i - j) for a, b in centres for i, j in itertools.product(range(3), repeat=2)}
        )
    ).astype(np.int32)
    counts = counts[(counts >= 0).all(axis=1)]
    pairs = neighbours(counts, REPLACE_ONE)
    # The three choices alone, at their own composed budget (3e, 3d); at a loss of 3e/50 they leak more.
    spent, share = 3 * float(mechanism.round_epsilon()), 3 * 2 * delta / (5 * 3)
    exact, leak = delta_curve(san_points_law(mechanism), counts, pairs, [spent, spent / 50])
    assert exact <= share
    assert leak > exact  # not vacuous
    few = sanitizer.san_points(bits=8, n=4, epsilon=epsilon, delta=delta, alpha=alpha, allow_unproved=True)
    assert few.guarantee() == Guarantee.none(REPLACE_ONE)
    small = histograms(3, [4])
    assert worst_pair(san_points_law(few), small, neighbours(small, REPLACE_ONE), epsilon).refutes(
        Guarantee(epsilon, delta, REPLACE_ONE)
    )


def joint_delta(p: np.ndarray, counts: np.ndarray, pairs: np.ndarray, epsilon: float, loss: float) -> float:
    """delta(epsilon) of all that is released, points and noisy counts: a sum over sets of points, the integral over counts in closed form.

    Args:
      p: P[set of points | counts].
      loss: the privacy loss of one noisy count, its inverse scale. Counts on which neighbours agree have the same law in both.
    """
    inside, worst = (np.arange(p.shape[1])[:, None] >> np.arange(counts.shape[1])) % 2, 0.0
    for part in np.array_split(pairs, len(pairs) // 2**17 + 1):
        first, second = p[part[:, 0]], p[part[:, 1]]
        moved = (counts[part[:, 0]] != counts[part[:, 1]]) @ inside.T
        with np.errstate(divide="ignore", invalid="ignore"):
            tilted = np.where(first > 0, epsilon + np.log(second / first), 0.0)
        worst = max(worst, (first * laplace_deltas(tilted, loss=loss, count=moved)).sum(axis=1).max())
    return float(worst)


def near_the_test(n: int, alpha: float) -> np.ndarray:
    """Triples of counts: two near the test's threshold alpha n / 4, near each other or near 0; the third takes the rest."""
    base = round(alpha * n / 4)
    centres = {(0, 0), (base, 0), (base, base), (n // 2, 0), (n // 2, n // 2 - 1)}
    steps = list(itertools.product(range(4), repeat=2))
    chosen = sorted({(a + i, b + j, n - a - b - i - j) for a, b in centres for i, j in steps})
    counts = np.array(chosen, np.int32)
    return counts[(counts >= 0).all(axis=1)]


def in_pairs(n: int, alpha: float) -> np.ndarray:
    """All datasets of n records over two points."""
    return histograms(2, [n])


def in_triples(n: int, alpha: float) -> np.ndarray:
    """All datasets of n records over three points, up to renaming the points."""
    counts = np.array(
        [(a, b, n - a - b) for a in range(n // 3 + 2) for b in range(a - 2, n - a + 1) if b >= 0], np.int32
    )
    return counts[counts[:, 2] >= counts[:, 1] - 2]


@pytest.mark.parametrize("family", [in_pairs, near_the_test, pytest.param(in_triples, marks=pytest.mark.slow)])
def test_san_points_with_its_noisy_counts_is_private(family: Any) -> None:
    """Of all that is released. Only two counts differ between neighbours, so R choices and TWO counts are paid for: R + 2 mechanisms."""
    epsilon, delta, alpha = 2.0, 0.1, 0.99
    n = bounds.san_points_private(epsilon, delta, alpha)
    mechanism = sanitizer.san_points(bits=8, n=n, epsilon=epsilon, delta=delta, alpha=alpha)
    counts = family(n, alpha)
    pairs = neighbours(counts, REPLACE_ONE)
    p, each, rounds = probabilities(mechanism.log_released, counts), float(mechanism.round_epsilon()), mechanism.rounds
    found = {e: joint_delta(p, counts, pairs, e * each, each) for e in (0.5, 2.0, rounds + 2.0)}
    assert joint_delta(p, counts, pairs, epsilon, each) <= found[rounds + 2.0] <= rounds * (2 * delta / (5 * rounds))
    # The counts do tell, and more than the choices alone (loss 0); with a twentieth of the noise, or none, they tell too much.
    silent = joint_delta(p, counts, pairs, 2 * each, 0.0)
    assert found[2.0] > 1.5 * silent and found[0.5] > 0.05
    for cheap in (20 * each, 1e9):
        assert joint_delta(p, counts, pairs, epsilon, cheap) > delta  # negative controls


def test_san_points_below_its_n_is_refuted_with_its_counts() -> None:
    few = sanitizer.san_points(bits=8, n=4, epsilon=2.0, delta=0.1, alpha=0.99, allow_unproved=True)
    counts = histograms(3, [4])
    p, each = probabilities(few.log_released, counts), float(few.round_epsilon())
    choices, joint = (joint_delta(p, counts, neighbours(counts, REPLACE_ONE), 2.0, loss) for loss in (0.0, each))
    assert 0.1 < choices <= joint


@pytest.mark.parametrize("loss", [0.3, 2.5])
def test_closed_form_of_noisy_counts_against_quadrature(loss: float) -> None:
    """Two Laplace noises: the integral over the first of the closed form for the second, itself tested in `tests/test_verify.py`."""

    def one(t: float) -> float:
        return float(laplace_deltas(t, loss=loss, count=1))

    for epsilon in (-6.0, -1.0, 0.0, 0.2, 1.7, 4.0):
        brute, _ = integrate.quad(
            lambda x, t=epsilon: 0.5 * math.exp(-abs(x)) * one(t - abs(x - loss) + abs(x)),
            -60,
            60,
            points=[0.0, loss, loss - epsilon / 2, -epsilon / 2],
            limit=200,
        )
        np.testing.assert_allclose(laplace_deltas(epsilon, loss=loss, count=2), brute, atol=1e-9)
        mirrored = -math.expm1(-epsilon) + math.exp(-epsilon) * one(epsilon)
        np.testing.assert_allclose(one(-epsilon), mirrored, atol=1e-13)
    edges = laplace_deltas(np.array([-np.inf, np.inf, -1.0]), loss=loss, count=np.array([2, 1, 0]))
    np.testing.assert_allclose(edges, [1.0, 0.0, -math.expm1(-1.0)])


@pytest.mark.slow
def test_san_points_runs_follow_the_law_that_was_verified() -> None:
    """Which points 6000 runs release, and the noise of two counts: chi-square and Kolmogorov-Smirnov at 2e-5, and controls."""
    counts, n = [60, 50, 40], 150
    mechanism = sanitizer.san_points(bits=8, n=n, epsilon=1.5, delta=0.1, alpha=0.99, allow_unproved=True)
    data = Points.create(np.repeat(np.arange(3, dtype=np.uint32), counts)[:, None])
    keys = jax.random.split(jax.random.key(4), 6000)
    named = jnp.asarray(np.arange(3, dtype=np.uint32)[:, None])

    def run(key: Any) -> Any:
        released = mechanism(key, data).hypothesis
        where = jnp.any((released.points[:, 0][None] == named) & released.where[None], axis=1)
        return jnp.sum(jnp.where(where, np.array([1, 2, 4], np.int32), 0)), released.answer(named)

    sets, answers = jax.jit(jax.vmap(run))(keys)
    seen = np.bincount(np.asarray(sets), minlength=8)
    expected = 6000 * np.exp(np.asarray(jax.jit(mechanism.log_released)(np.array(counts, np.int32)), np.float64))
    expected *= 6000 / expected.sum()
    assert expected.min() > 5 and stats.chisquare(seen, expected).pvalue > 2e-5
    assert stats.chisquare(seen, np.roll(expected, 1)).pvalue < 2e-5
    both = np.asarray(answers)[np.asarray(sets) % 4 == 3, :2] * n - counts[:2]
    noise = stats.laplace(scale=1 / float(mechanism.round_epsilon())).cdf
    for told in (both[:, 0], both[:, 1]):
        assert stats.kstest(told, noise).pvalue > 2e-5 > stats.kstest(1.3 * told, noise).pvalue
    assert abs(stats.spearmanr(*both.T).statistic) < 5 / math.sqrt(len(both))  # independent


# ----------------------------------------------------------------------------------------------------------- PointLearner


def point_learner_law(learner: Any, points_count: int, broken: bool = False) -> Callable[[Any], Any]:
    """ln P of every (heavy set, vectors or ⊥), which is finer than the hypothesis, from counts of (point, vector)."""
    vectors = 2**learner.k
    codes = np.array(list(itertools.product((0, 1), repeat=points_count)), bool)

    def law(counts: Any) -> Any:
        table = counts.reshape(points_count, vectors)
        ranked = jnp.sort(table, axis=1)
        best = jnp.argmax(table, axis=1).astype(jnp.int32)
        items = multi_base.Items(
            points=jnp.arange(points_count, dtype=jnp.uint32)[:, None],
            vectors=packed.pack(((best[:, None] >> jnp.arange(learner.k, dtype=jnp.int32)[None]) & 1).astype(bool)),
            counts=jnp.sum(table, axis=1, dtype=jnp.int32),
            first=ranked[:, -1],
            second=jnp.zeros_like(best, jnp.int32) if broken else ranked[:, -2],
        )
        log_p, log_q = learner.log_heavy(items)

        def outcomes(heavy: Any) -> Any:
            chance = jnp.sum(jnp.where(heavy, log_p, log_q))
            kept, bottom = learner.log_keep(items, heavy)
            place = jnp.sum(jnp.where(heavy, best * np.int32(vectors) ** np.arange(points_count, dtype=np.int32), 0))
            row = jnp.full((vectors**points_count,), -jnp.inf).at[place].set(chance + kept)
            return jnp.append(row, chance + bottom)

        return jax.vmap(outcomes)(jnp.asarray(codes)).reshape(-1)

    return law


@pytest.mark.parametrize(("points_count", "k", "n"), [thorough(2, 1, 9), thorough(3, 1, 7), (2, 2, 6)])
def test_no_pair_refutes_the_point_learner(points_count: int, k: int, n: int) -> None:
    """All neighbours among the 220, 792 or 1716 datasets with k labels; without the runner-up in the gap, a pair refutes the guarantee."""
    counts = histograms(points_count * 2**k, [n])
    pairs = neighbours(counts, REPLACE_ONE)
    budgets = ((4.0, 0.3), (12.0, 0.5))
    learners = [multi.point_learner(bits=4, k=k, epsilon=e, delta=d, alpha=0.5, beta=0.9) for e, d in budgets]
    law = functools.partial(point_learner_law, points_count=points_count)
    for (epsilon, delta), table in zip(budgets, tables(law, learners, counts), strict=True):
        (exact,) = deltas(table, pairs, [epsilon])
        assert 0.1 * delta < exact <= delta * (1 + 1e-9)  # and not vacuous
    control = worst_pair(law(learners[-1], broken=True), counts, pairs, epsilon, batch_size=len(counts))
    assert control.refutes(learners[-1].guarantee())


def test_printed_point_learner_breaks_its_claim_and_keeps_what_is_proved() -> None:
    """Two vectors of one heavy point trade places: A_dist at (epsilon/2, delta/2) is (epsilon, exp(epsilon) delta/4) at best."""
    epsilon, delta, alpha = 3.0, 0.02, 0.9
    n = bounds.point_release_private(epsilon / 2, delta / 2, alpha / 60)
    learner = multi.point_learner(bits=4, k=1, epsilon=epsilon, delta=delta, alpha=alpha, n=n, calibration="printed")
    first, rest = np.arange(n // 4 - 8, n // 4 + 9), n - n // 2
    counts = np.stack([first, n // 2 - first, np.full(17, rest), np.zeros(17, int)], 1).astype(np.int32)
    pairs = neighbours(counts, REPLACE_ONE)
    law = point_learner_law(learner, 2)
    found = worst_pair(law, counts, pairs, epsilon)
    assert found.refutes(learner.claimed_guarantee())
    np.testing.assert_allclose(found.delta, math.exp(epsilon) * delta / 4, rtol=0.05)
    assert not found.refutes(learner.guarantee())
    proved = multi.point_learner(bits=4, k=1, epsilon=epsilon, delta=delta, alpha=alpha)
    found = worst_pair(point_learner_law(proved, 2), counts, pairs, epsilon)
    assert not found.refutes(proved.guarantee())


@pytest.mark.thorough
def test_the_law_from_counts_is_that_of_the_items_of_a_sample() -> None:
    """The learner finds in the rows what the verifier builds from counts, so the two tests above are about the learner."""
    counts = histograms(8, [6])[::97]
    values, _ = records(counts, 6)
    from dpjax import MultiSample

    def first_and_second(row: Any) -> Any:
        labels = packed.unpack((row % 4).astype(jnp.uint32)[:, None], 2)
        sample = MultiSample.create((row // 4).astype(jnp.uint32)[:, None], labels)
        items = multi_base.distinct_points(multi_base.distinct(sample), 1)
        place = jnp.where(items.counts > 0, items.points[:, 0].astype(jnp.int32), 2)
        zero = jnp.zeros((2,), jnp.int32)
        return jnp.stack([zero.at[place].set(part, mode="drop") for part in (items.first, items.second)])

    found = jax.jit(jax.vmap(first_and_second))(jnp.asarray(values))
    ranked = np.sort(counts.reshape(-1, 2, 4), axis=2)
    np.testing.assert_array_equal(found, np.stack([ranked[..., -1], ranked[..., -2]], 1))


def test_labelled_histogram_is_the_verified_histogram() -> None:
    """`histogram_learner` publishes which labelled points pass `sanitizers.points.histogram`: tight at (epsilon, delta)."""
    learner = multi.histogram_learner(bits=4, k=1, epsilon=2.0, delta=0.1)
    n, domain = 6, 4
    counts = histograms(domain, [n])

    def law(row: Any) -> Any:
        nothing = jnp.zeros((domain,), jnp.int32)
        items = multi_base.Items(
            jnp.zeros((domain, 1), jnp.uint32), jnp.zeros((domain, 1), jnp.uint32), row, row, nothing
        )
        log_p, log_q = learner.log_heavy(items)
        codes = np.array(list(itertools.product((0, 1), repeat=domain)), bool)
        return jnp.stack([jnp.sum(jnp.where(heavy, log_p, log_q)) for heavy in codes])

    found = worst_pair(law, counts, neighbours(counts, REPLACE_ONE), 2.0)
    assert not found.refutes(learner.guarantee())
    np.testing.assert_allclose(found.delta, 0.1, rtol=1e-6)
