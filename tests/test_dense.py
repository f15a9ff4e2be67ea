"""Sanitizers of dense domains: equal to plain twins, private on all neighbours over small domains, as accurate as they say."""

import dataclasses
import functools
import math
from typing import Any

import builders
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from frequencies import FALSE_ALARM, p_value

from dpjax import MultiSample, Points, Sample, Weighted, bounds, check
from dpjax.accounting import REPLACE_ONE, Guarantee
from dpjax.data.outcome import Status
from dpjax.domains import wide
from dpjax.multi import generic
from dpjax.sanitizers import dense
from dpjax.sanitizers.dense.base import Counted
from dpjax.sanitizers.dense.blr import databases
from dpjax.verify import delta_curve, histograms, neighbours, records
from dpjax.verify.plain import dense as plain

MATRIX = [[True, True, False, False], [False, True, False, True], [True, True, True, True]]
CLASSES = {
    "thresholds": dense.thresholds(bits=2),
    "intervals": dense.intervals(bits=2),
    "points": dense.points(bits=2),
    "pairs": dense.pairs(bits=2),
    "listed": dense.listed(MATRIX),
}
over_classes = pytest.mark.parametrize("name", CLASSES)
DATA = [0, 3, 3, 1, 3]


def concepts_of(queries: Any) -> list[Any]:
    """The concepts of the class as functions."""
    return [lambda x, row=row: int(row[x]) for row in queries.concepts()]


# --------------------------------------------------------------------------------------------------------- the classes


@over_classes
def test_the_largest_error_is_that_of_the_worst_query(name: str) -> None:
    queries, rng = CLASSES[name], np.random.default_rng(0)
    differences = rng.integers(-5, 6, (32, 4))
    expected = np.abs(differences @ queries.concepts().T).max(axis=1)
    np.testing.assert_array_equal(jax.jit(jax.vmap(queries.largest))(differences.astype(np.int32)), expected)
    np.testing.assert_array_equal((differences @ queries.signed().T).max(axis=1), expected)
    assert queries.candidates() == len(queries.signed())


def test_classes_are_what_they_are_called() -> None:
    """Intervals are the symmetric differences of thresholds; pairs are those of points, and of a point and the empty concept."""

    def rows(matrix: Any) -> set[bytes]:
        return {row.tobytes() for row in matrix if row.any()}

    thresholds, points = (CLASSES[name].concepts() for name in ("thresholds", "points"))
    nothing_too = np.concatenate([points, np.zeros((1, 4), bool)])
    for name, base in (("intervals", thresholds), ("pairs", nothing_too)):
        differences = (base[:, None] ^ base[None]).reshape(-1, 4)
        assert rows(CLASSES[name].concepts()) == rows(differences)


@over_classes
def test_a_bad_query_is_chosen_by_the_exponential_law(name: str) -> None:
    queries, difference = CLASSES[name], np.float32([1.5, -2.0, 0.25, -0.75])
    every = np.asarray(queries.signed())
    signed, index = np.unique(every, axis=0, return_inverse=True)
    law = np.bincount(index.ravel(), np.exp(0.6 * every @ difference))

    @jax.jit
    def scores_and_choices(key: Any) -> Any:
        answers, keys = queries.answers(jnp.asarray(difference)), jax.random.split(key, 4096)
        return queries.scores(answers), jax.vmap(lambda key: queries.choose(key, answers, 0.6))(keys)

    scores, chosen = map(np.asarray, scores_and_choices(jax.random.key(0)))
    np.testing.assert_allclose(scores, every @ difference, atol=1e-6)
    place = (chosen[:, None] == signed[None]).all(axis=2).argmax(axis=1)
    counts = np.bincount(place, minlength=len(signed))
    assert p_value(counts, 4096 * law / law.sum()) > FALSE_ALARM
    flat = np.bincount(index.ravel())
    assert p_value(counts, 4096 * flat / flat.sum()) < FALSE_ALARM  # negative control


@pytest.mark.thorough
def test_pairs_beside_a_heavy_point_are_told_apart() -> None:
    """A pair with it has a log-weight of 0.25 2^22 or so: the weights of the others must not be lost beside it."""
    heavy = jnp.asarray([2.0**22, 3.0, 0.0, -2.0])
    draw = jax.jit(jax.vmap(lambda key: dense.pairs(bits=2).choose(key, heavy, 0.25)))
    chosen = np.asarray(draw(jax.random.split(jax.random.key(1), 4096)))
    assert (chosen[:, 0] == 1).all()
    counts = np.append(np.sum(chosen[:, 1:], axis=0), np.sum(chosen.sum(axis=1) == 1))
    law = np.exp(0.25 * np.array([3.0, 0.0, -2.0, 0.0]))
    assert p_value(counts, 4096 * law / law.sum()) > FALSE_ALARM
    assert p_value(counts, np.full(4, 1024.0)) < FALSE_ALARM  # negative control


@over_classes
@pytest.mark.parametrize("n", [1000, 2**23 - 1])
def test_no_rounding_knows_more_of_a_row_than_one_count(name: str, n: int) -> None:
    """Scores in single precision move by at most 1 when a row is replaced; at n = 2^30 they moved by up to 64."""
    queries, rng = CLASSES[name], np.random.default_rng(0)
    sanitizer = dense.multiplicative_weights(queries=queries, rounds=4, epsilon=1.0)
    scores = jax.jit(jax.vmap(lambda counts, p: queries.scores(sanitizer._answers(Counted(counts, jnp.int32(n)), p))))
    counts = rng.multinomial(n - 1, rng.dirichlet(np.full(4, 0.3), 200))
    p = jnp.asarray(rng.dirichlet(np.ones(4), 200), jnp.float32)
    places = rng.integers(0, 4, (2, 200))
    one, other = (np.asarray(scores(jnp.asarray(counts + np.eye(4, dtype=int)[at], jnp.int32), p)) for at in places)
    assert np.abs(one - other).max() == 1.0
    assert np.array_equal(one, np.rint(one)) == (n > 2**22)  # with fewer rows, fractional digits are kept


def test_more_rows_than_floats_count_are_refused() -> None:
    """Beyond that number, the law of n = 2^30 - 2 rows had a loss of 24 for an epsilon of 0.5."""
    sanitizer = dense.multiplicative_weights(queries=dense.points(bits=1), rounds=1, epsilon=0.5)

    def rows(*counts: int) -> Weighted:
        return Weighted.create(wide.from_ints([0, 1], 1), list(counts))

    with pytest.raises(ValueError, match="data must have at most 8388607 rows"):
        sanitizer.pmf(rows(2**29 - 35, 2**29 + 33))
    status = jax.jit(lambda data: sanitizer(jax.random.key(0), data).status)
    assert status(rows(2**29 - 35, 2**29 + 33)) == Status.OUTSIDE_DOMAIN
    p, q = (np.asarray(sanitizer.pmf(rows(k, 2**23 - 1 - k)), float)[:-1] for k in (2**22 - 35, 2**22 - 34))
    assert np.abs(np.log(p / q)).max() <= 0.5 * (1 + 1e-5)


@over_classes
@pytest.mark.parametrize("bits", [1, 2])
def test_some_database_is_as_near_as_rounding_says(name: str, bits: int) -> None:
    queries = CLASSES[name] if name == "listed" else getattr(dense, name)(bits=bits)
    rng, rows = np.random.default_rng(1), 3
    laws = np.concatenate([rng.dirichlet(np.ones(queries.size), 200), np.full((1, queries.size), 1 / queries.size)])
    differences = laws[:, None] - databases(queries.bits, rows)[None] / rows
    nearest = np.abs(differences @ queries.concepts().T).max(axis=2).min(axis=1)
    assert nearest.max() <= queries.rounding(rows) * (1 + 1e-9)
    assert nearest.max() > 0.4 * queries.rounding(rows)


@over_classes
def test_no_largest_error_is_one_of_absolute_whole_numbers(name: str) -> None:
    """A GPU gets the larger of two absolute int32 values wrong; see `Queries.extent`."""
    program = str(jax.make_jaxpr(CLASSES[name].largest)(jnp.asarray([3, -2, 0, -4], jnp.int32)))
    assert "max" in program and " abs " not in program


# ----------------------------------------------------------------------------------------------------------------- BLR


@over_classes
def test_blr_has_the_law_of_its_plain_twin(name: str) -> None:
    queries = CLASSES[name]
    with jax.enable_x64(True):
        law = np.asarray(dense.blr(queries=queries, rows=2, epsilon=1.5).pmf(builders.points_of(DATA, 2)))
    expected = plain.blr_law(concepts_of(queries), DATA, 4, 2, 1.5)
    by_counts = {tuple(np.bincount(database, minlength=4)): p for database, p in expected.items()}
    np.testing.assert_allclose(law, [*(by_counts[key] for key in sorted(by_counts)), 0.0], atol=1e-12)


def test_blr_is_private_and_not_more_private() -> None:
    """Six rows of four points, and all databases of two rows: the exact epsilon is 0.755, so 0.7 is refuted."""
    report = check(dense.blr(queries=CLASSES["intervals"], rows=2, epsilon=1.0), n=6, domain=4)
    assert report.exact and report.holds and report.refutes(Guarantee(0.7, 0.0, REPLACE_ONE))


def test_weights_are_rows_and_labels_are_ignored() -> None:
    sanitizer = dense.blr(queries=CLASSES["points"], rows=2, epsilon=1.0)
    xs = wide.from_ints(DATA, 2)
    laws = [
        sanitizer.pmf(data)
        for data in (Points.create(xs), Sample(x=xs, y=[0, 1, 0, 1, 1]), Weighted.create(xs, [1] * len(DATA)))
    ]
    np.testing.assert_array_equal(laws[0], laws[1])
    np.testing.assert_array_equal(laws[0], laws[2])


@pytest.mark.thorough
def test_blr_is_as_accurate_as_its_size_says() -> None:
    """At its sample size, at most that of Theorem 2.19, on three datasets; with a 24th of the rows the promise would be wrong."""
    sanitizer = dense.blr(queries=CLASSES["intervals"], rows=10, epsilon=1.0)
    n = sanitizer.sample_size(alpha=0.2, beta=0.1)
    counts = np.random.default_rng(0).multinomial(n, [[0.25] * 4, [0.7, 0.1, 0.1, 0.1], [0.05, 0.45, 0.45, 0.05]])
    x = wide.from_ints(range(4), 2)
    for row in counts:
        failure = float(sanitizer.failure_probability(Weighted.create(x, row), error=0.2))
        assert failure <= 0.1
    few = Weighted.create(x, np.array([n // 40, n // 60 - 2, 1, 1]))
    assert float(sanitizer.failure_probability(few, error=0.2)) > 0.1
    assert n <= bounds.blr(math.log(4), 2, 0.2, 0.1, 1.0)  # rounding needs fewer rows than the VC dimension says


# --------------------------------------------------------------------------------------------- multiplicative weights


def weights(name: str, rounds: int = 2, **given: Any) -> Any:
    return dense.multiplicative_weights(queries=CLASSES[name], rounds=rounds, **{"epsilon": 1.0, **given})


@pytest.mark.parametrize("name", ["pairs", builders.thorough("listed")])
def test_multiplicative_weights_has_the_law_of_its_plain_twin(name: str) -> None:
    sanitizer = weights(name, epsilon=2.0)
    with jax.enable_x64(True):
        law = np.asarray(sanitizer.pmf(builders.points_of(DATA, 2)))
        released = np.asarray(jax.jit(lambda: sanitizer._released())())
    signed = CLASSES[name].signed().tolist()
    expected = plain.multiplicative_weights_law(signed, DATA, 4, 2, float(sanitizer.round_epsilon))
    np.testing.assert_allclose(law[:-1], [p for p, _ in expected], atol=1e-12)
    np.testing.assert_allclose(released, [mean for _, mean in expected], atol=1e-12)


@pytest.mark.thorough
def test_multiplicative_weights_is_private_and_not_more_private() -> None:
    """Two rounds, or three with a delta, on all data of three rows: the joint law of all choices, of which the release is a function."""
    sanitizer = weights("pairs")
    report = check(sanitizer, n=3, domain=4)
    assert report.exact and report.holds and report.guarantee == Guarantee(1.0, 0.0, REPLACE_ONE)
    assert report.refutes(Guarantee(0.5, 0.0, REPLACE_ONE))  # what one round costs
    approximate = weights("thresholds", rounds=3, delta=0.05, accountant="optimal")
    assert float(approximate.round_epsilon) > 1.0 / 3
    report = check(approximate, n=3, domain=3)
    assert report.holds and report.refutes(Guarantee(0.3, 0.01, REPLACE_ONE))


@pytest.mark.parametrize(("rounds", "epsilon", "delta", "least"), [(2, 0.3, 0.1, 0.098), (3, 1.0, 0.05, 0.04)])
def test_choices_whose_ranges_are_composed_spend_most_of_delta_and_no_more(
    rounds: int, epsilon: float, delta: float, least: float
) -> None:
    """Choices at the optimal composition of pure mechanisms, at half the budget, spend less than a tenth of it."""
    given = {"queries": dense.points(bits=1), "rounds": rounds, "epsilon": epsilon, "delta": delta}
    made, pure = (dense.multiplicative_weights(**given, accountant=name) for name in (None, "optimal"))
    assert float(made.round_epsilon) > 1.9 * float(pure.round_epsilon)
    assert made.guarantee().covers(epsilon, delta) and made.guarantee().epsilon > 0.99 * epsilon
    reports = [check(each, n=2, domain=2, epsilon=epsilon) for each in (made, pure)]
    assert all(report.exact and report.holds for report in reports)
    assert reports[1].delta < delta / 10 < least < reports[0].delta <= delta


@pytest.mark.slow
def test_multiplicative_weights_is_as_accurate_as_its_size_says() -> None:
    """64 runs at the size of Theorem 25 fail with probability at most 0.1 each: more than 19 fail with probability below 2e-5."""
    alpha, queries = 0.3, dense.intervals(bits=6)
    rounds = math.ceil(2 * math.log(64) / alpha**2)
    sanitizer = dense.multiplicative_weights(queries=queries, rounds=rounds, epsilon=1.0, delta=1e-6)
    n = sanitizer.sample_size(alpha=alpha, beta=0.1)
    counts = np.random.default_rng(0).multinomial(n, np.r_[np.full(16, 0.9 / 16), np.full(48, 0.1 / 48)])
    run = jax.jit(jax.vmap(lambda key, data: sanitizer(key, data).hypothesis, in_axes=(0, None)))
    x = wide.from_ints(range(64), 6)

    def errors(row: Any) -> np.ndarray:
        keys = jax.random.split(jax.random.key(0), 64)
        shares = np.asarray(run(keys, Weighted.create(x, row)).weights)
        sums = np.cumsum(shares / shares.sum(axis=1, keepdims=True) - row / row.sum(), axis=1)
        return np.maximum(sums.max(axis=1), 0) - np.minimum(sums.min(axis=1), 0)

    assert (errors(counts) > alpha).sum() <= 19
    assert (errors(counts // 200) > alpha).sum() > 19  # negative control: with a 200th of the rows


def test_a_listed_class_and_numbers_are_checked_by_name() -> None:
    for call, message in (
        (lambda: dense.thresholds(bits=17), "bits must be from 1 to 16, got 17"),
        (lambda: dense.listed([[True] * 3]), "matrix must have shape"),
        (lambda: dense.blr(queries=CLASSES["points"], rows=10**4, epsilon=1.0), "rows must be fewer"),
        (lambda: weights("points", delta=1.0), "delta must be"),
        (lambda: weights("points", rounds=9).pmf(builders.points_of(DATA, 2)), "rounds must be fewer"),
        (lambda: weights("points").sample_size(alpha=0.1, beta=0.1), "alpha must be > .*the regret of 2 rounds"),
        (
            lambda: dense.blr(queries=CLASSES["points"], rows=5, epsilon=1.0).sample_size(alpha=0.1, beta=0.1),
            "alpha must be > ",
        ),
        (
            lambda: weights("points")(jax.random.key(0), Weighted.create(wide.from_ints([1], 2), [2**31 - 1])),
            "data must have at most",
        ),
    ):
        with pytest.raises(ValueError, match=message):
            call()
    for call in (
        lambda: dense.listed([[1, 0]]),
        lambda: weights("points")(jax.random.key(0), Weighted.create(wide.from_ints([1], 2), [0.5])),
        lambda: dense.blr(queries="points", rows=2, epsilon=1.0),
        lambda: weights("points")(jax.random.key(0), [1, 2]),
        lambda: dense.blr(queries=CLASSES["points"], rows=2, epsilon=1.0).probability(
            builders.points_of([1], 2), (0, 1)
        ),
    ):
        with pytest.raises(TypeError):
            call()


# ------------------------------------------------------------------------------- pure learners of k concepts (Theorem 31)


def pure_learner(epsilon: float, name: str, k: int = 1) -> Any:
    """GenericLearner with half of epsilon for the points, half for the labels."""
    difference, concepts = {
        "thresholds": (dense.intervals, generic.thresholds),
        "points": (dense.pairs, generic.points),
    }[name]
    sanitizer = dense.blr(queries=difference(bits=2), rows=2, epsilon=epsilon / 2)
    return generic.learner(sanitizer=sanitizer, concepts=concepts(bits=2), k=k, epsilon=epsilon)


@functools.cache
def tiny_samples() -> tuple[Any, np.ndarray]:
    """All samples of three labelled points of four, and their neighbours."""
    counts = histograms(8, [3])
    values, _ = records(counts, 3)
    return values, neighbours(counts, REPLACE_ONE)


@pytest.mark.parametrize("name", ["thresholds", builders.thorough("points")])
def test_theorem_31_has_pure_learners(name: str) -> None:
    """delta = 0: the joint law of the sanitized points and of what is learned from them, over all neighbours."""
    learner = pure_learner(1.0, name)
    assert learner.guarantee() == Guarantee(1.0, 0.0, REPLACE_ONE)

    def law(values: Any) -> Any:
        x = (values // 2).astype(jnp.uint32)[:, None]
        sample = MultiSample(x=x, y=(values % 2).astype(jnp.uint32)[:, None], n_valid=jnp.int32(3), k=1)
        masses = learner.sanitizer.pmf(Points(x=x, n_valid=sample.n_valid))[:-1]

        def learned(index: Any) -> Any:
            return learner.law_given(*learner.sanitizer.output(index).support(), sample)[1][0]

        return jnp.log(masses[:, None] * jax.vmap(learned)(jnp.arange(len(masses)))).ravel()

    values, pairs = tiny_samples()
    exact = delta_curve(law, values, pairs, [1.0, 0.4])
    assert exact[0] <= 1e-12 and exact[1] > 1e-3, exact  # less is refuted


@pytest.mark.slow
def test_a_pure_learner_of_many_thresholds_learns() -> None:
    k, n = 5, 4000
    sanitizer = dense.multiplicative_weights(queries=dense.intervals(bits=6), rounds=60, epsilon=0.5)
    learner = generic.learner(sanitizer=sanitizer, concepts=generic.thresholds(bits=6), k=k, epsilon=1.0)
    xs, targets = np.arange(n) * 7919 % 64, [5, 20, 33, 50, 64]
    sample = builders.multi_sample_of(xs, xs[:, None] < np.array(targets), 6, n)
    outcome = learner(jax.random.key(0), sample)
    wrong = [abs(found - target) / 64 for found, target in zip(wide.to_ints(outcome.hypothesis), targets, strict=True)]
    assert learner.guarantee().delta == 0.0 and max(wrong) < 0.1
    strict = dataclasses.replace(sanitizer, rounds=3000)
    needed = bounds.generic_learner(
        strict.sample_size(alpha=0.1, beta=0.02),
        1,
        k,
        0.5,
        0.1,
        float(learner.each_epsilon),
        log_hypotheses=math.log(65),
    )
    assert dataclasses.replace(learner, sanitizer=strict).sample_size(alpha=0.5, beta=0.1) == math.ceil(needed)


def test_lemma_35_grows_as_it_says() -> None:
    """Its approximate half grows with sqrt(log|X|) log|C|, and with sqrt(k) once k is large; at 64 bits it is below the pure half."""

    def size(bits: int, k: int) -> float:
        return bounds.generic_weights(bits * math.log(2), bits * math.log(2), 1, k, 0.1, 0.1, 1.0, 1e-6)

    assert 2.0**1.4 < size(2**21, 1) / size(2**20, 1) < 2.0**1.6
    assert 2.0**0.5 < size(8, 2**61) / size(8, 2**60) < 2.0**0.55
    assert size(64, 1) < bounds.generic_pure(64 * math.log(2), 1, 1, 0.1, 0.1, 1.0, delta=1e-6)


@pytest.mark.thorough
def test_databases_over_another_domain_have_no_probability() -> None:
    mine = dense.blr(queries=CLASSES["points"], rows=2, epsilon=1.0)
    points = builders.points_of([0, 1, 3], 2)

    def log_prob(values: list[int], bits: int, counts: list[int]) -> float:
        return float(mine.log_prob(points, Weighted.create(wide.from_ints(values, bits), counts)))

    assert np.isfinite(log_prob([0, 1], 2, [1, 1])) and log_prob([0, 1], 64, [1, 1]) == log_prob([0, 1], 2, [1, 1])
    for values, bits, counts in (([1, 2**32], 64, [1, 1]), ([0, 1, 2**32 - 1], 32, [1, 1, 5])):
        assert log_prob(values, bits, counts) == -np.inf


@pytest.mark.thorough
def test_counts_of_64_bits_are_rounded_no_more_than_those_of_32() -> None:
    with jax.enable_x64(True):
        made = dense.multiplicative_weights(queries=dense.thresholds(bits=2), rounds=2, epsilon=0.7)
        rows = Points.create(wide.from_ints([0] * 5 + [1] * 2 + [3], 2))
        np.testing.assert_array_equal(
            made.pmf(rows), made.pmf(Weighted.create(wide.from_ints([0, 1, 3], 2), [5, 2, 1]))
        )
