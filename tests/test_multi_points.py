"""k points at once: the exact gap, naive references, laws against samplers, and the same n for every k."""

import functools
import math
from typing import Any

import builders
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from dpjax import MultiSample, Status, bounds
from dpjax.accounting import REPLACE_ONE, Guarantee
from dpjax.concepts import points as concept
from dpjax.core import bits as packed
from dpjax.data import algorithm
from dpjax.multi import pac, points
from dpjax.multi.points import base
from dpjax.verify.plain import point_learner as twin

FALSE_ALARM = 2e-5


def sample_of(examples: Any, bits: int = 8, rows: int | None = None) -> MultiSample:
    """From (x, labels) pairs."""
    xs, labels = zip(*examples, strict=True)
    return builders.multi_sample_of(xs, labels, bits, rows or len(examples))


@jax.jit
@functools.partial(jax.vmap, in_axes=(None, 0, None))
def runs_of(learner: Any, key: jax.Array, sample: Any) -> Any:
    return learner(key, sample)


AGNOSTIC = [(5, (1, 0))] * 40 + [(5, (0, 0))] * 37 + [(9, (1, 1))] * 38 + [(7, (0, 0))] * 36 + [(1, (1, 1))] * 3
# Counts near the thresholds, so that every set of heavy items is possible; and points that occur once.
CLOSE = [(5, (1, 0))] * 7 + [(5, (0, 0))] * 6 + [(9, (1, 1))] * 11 + [(7, (0, 0))] * 9 + [(3, (0, 1))] * 8
SINGLE = [(100 + i, (0, 1)) for i in range(120)]


# ------------------------------------------------------------------------------------------------- counts, and the gap


def test_the_gap_is_that_between_the_two_best_sets_of_vectors() -> None:
    rng, k = np.random.default_rng(0), 2
    gap = jax.jit(lambda sample, heavy: base.gap(*base.distinct_points(base.distinct(sample), 1)[3:], heavy))
    for _ in range(40):
        shares = rng.dirichlet(np.full(8, 0.3)).repeat(2)[:12] + 1e-3
        pairs = [
            (int(i) // 4, tuple(int(b) for b in np.binary_repr(int(i) % 4, 2)))
            for i in rng.choice(12, 31, p=shares / shares.sum())
        ]
        seen = sorted({x for x, _ in pairs})
        chosen = [x for x in seen if rng.random() < 0.7] or seen[:1]
        mask = np.zeros(31, bool)
        mask[[seen.index(x) for x in chosen]] = True
        assert float(gap(sample_of(pairs), jnp.asarray(mask))) == twin.gap(pairs, chosen, k)
    assert float(gap(sample_of(pairs), jnp.zeros((31,), bool))) == np.inf  # a single candidate, the empty set


def test_heavy_points_that_nobody_else_comes_near_are_kept_and_named() -> None:
    """Two points of 500 examples each, one labelled by each concept: in fifty runs nothing is lost."""
    learner = points.point_learner(bits=8, k=2, epsilon=1.0, delta=1e-3, alpha=0.5)
    many, none = jnp.full(2, 500, jnp.int32), jnp.zeros(2, jnp.int32)
    items = base.Items(jnp.array([[3], [5]], jnp.uint32), jnp.array([[1], [2]], jnp.uint32), many, many, none)
    draw = jax.jit(jax.vmap(lambda key: learner.draw(key, base.View(items, None))[:2]))
    found, kept = draw(jax.random.split(jax.random.key(0), 50))
    assert kept.all() and not found.zero.any() and (found.position[..., 0] == jnp.array([[3, 5]], jnp.uint32)).all()


def test_items_are_points_with_their_most_frequent_vector() -> None:
    @jax.jit
    def both(sample: MultiSample) -> Any:
        found = base.distinct(sample)
        items = base.distinct_points(found, 1)
        return items, packed.unpack(items.vectors[:4], 2), base.labelled_points(found, 1)

    items, vectors, pairs = jax.device_get(both(sample_of(AGNOSTIC, rows=255)))
    np.testing.assert_array_equal(items.points[:4, 0], [1, 5, 7, 9])
    np.testing.assert_array_equal(items.counts[:5], [3, 77, 36, 38, 0])
    np.testing.assert_array_equal(items.first[:5], [3, 40, 36, 38, 0])
    np.testing.assert_array_equal(items.second[:5], [0, 37, 0, 0, 0])
    np.testing.assert_array_equal(vectors, [[1, 1], [1, 0], [0, 0], [1, 1]])
    np.testing.assert_array_equal(pairs.counts[:6], [3, 37, 40, 36, 38, 0])


# ------------------------------------------------------------------------------------------------- laws and references


def point_learner(calibration: str, n: int = len(CLOSE + SINGLE)) -> Any:
    budget = {"bits": 8, "k": 2, "epsilon": 3.0, "delta": 0.2, "alpha": 0.9, "calibration": calibration}
    return points.point_learner(**budget, n=n, allow_unproved=True)


def thresholds(learner: Any) -> dict[str, float]:
    """The count up to which nothing is released, and the noisy count from which on an item is heavy."""
    return {"low": float(learner.counts.low), "high": max(float(learner.counts.high), float(learner.heavy))}


@pytest.mark.thorough
@pytest.mark.parametrize(
    "name", [pytest.param("printed", marks=pytest.mark.slow), builders.slow("proved"), "histogram"]
)
def test_success_is_exact_and_the_sampler_follows_it(name: str) -> None:
    # As printed, points that occur once may be heavy: of 120 of them no list of all sets has an end.
    examples, runs = CLOSE + SINGLE if name == "proved" else CLOSE, 4000
    sample, (epsilon, delta) = sample_of(examples, rows=255), (3.0, 0.2)
    if name == "histogram":
        learner = points.histogram_learner(bits=8, k=2, epsilon=epsilon / 6, delta=delta)
        law = twin.histogram_law(examples, **thresholds(learner), scale=12 / epsilon)
    else:
        learner = point_learner(name, len(examples))
        width, threshold = (2 / epsilon, 2 / epsilon * math.log(2 / delta))
        if name == "proved":
            width, threshold = 4 / epsilon, 2 + 4 / epsilon * math.log(1 / delta)
        keep = lambda gap: stats.laplace.sf(threshold - gap, scale=width)  # noqa: E731
        law = twin.point_learner_law(examples, **thresholds(learner), scale=4 / epsilon, keep=keep)
    outcomes = jax.device_get(runs_of(learner, jax.random.split(jax.random.key(5), runs), sample))
    labels = np.array([v for _, v in examples])
    x = np.array([x for x, _ in examples])
    position, zero = outcomes.hypothesis.position[..., 0], outcomes.hypothesis.zero
    said = (x[None, :, None] == position[:, None]) & ~zero[:, None]
    wrong = (said != labels[None]).mean(axis=1).max(axis=1)
    released = outcomes.status == Status.OK
    levels = np.unique(wrong)
    assert len(levels) > 1
    for error in levels[:3]:
        error = float(error)
        exact = float(learner.success_probability(sample, error=error + 1e-6))
        np.testing.assert_allclose(exact, twin.success(law, examples, error + 1e-6), atol=2e-5)
        seen = int((released & (wrong <= error + 1e-6)).sum())
        assert stats.binomtest(seen, runs, min(exact, 1.0)).pvalue > FALSE_ALARM
    if name != "histogram":
        assert 0 < released.mean() < 1  # both outcomes were seen


@pytest.mark.thorough
def test_more_items_than_can_be_enumerated_give_nan() -> None:
    learner = points.histogram_learner(bits=8, k=1, epsilon=1.0, delta=0.1)
    for items, known in ((10, True), (11, False)):
        sample = sample_of([(i, (1,)) for i in range(items)], rows=15)
        assert math.isnan(float(learner.success_probability(sample, error=0.5))) != known


@pytest.mark.slow  # of one event: conformance
def test_probabilities_of_events_are_sums_of_the_pmf() -> None:
    """k = 2 over four points: all 25 pairs of hypotheses and bottom, intervals, and what is within alpha of two targets."""
    sample = sample_of([(2, (1, 0))] * 5 + [(2, (0, 0))] * 2 + [(1, (0, 1))] * 6 + [(3, (1, 1))] * 4, 2, 31)
    learner = points.point_learner(bits=2, k=2, epsilon=6.0, delta=0.5, alpha=0.5, beta=0.9)
    law = np.asarray(learner.pmf(sample), np.float64)
    assert law.shape == (26,)
    np.testing.assert_allclose(law.sum(), 1, rtol=1e-5)
    joint = law[:25].reshape(5, 5)
    found = learner.probability(sample, ([1, 2], [3, 4]))
    np.testing.assert_allclose(found, [joint[1:3, 2:4].sum(), 1 - joint[1:3, 2:4].sum()], atol=2e-6)
    population = concept.point_masses(bits=2, points=[1, 2], masses=[0.7, 0.3], target=[2, None], background=0.2)
    errors = np.asarray(errors_of_all(population))
    for alpha in (0.05, 0.35, 0.7):
        expected = joint[np.ix_(*[np.flatnonzero(row <= alpha) for row in errors])].sum()
        found = learner.probability(sample, population.within(alpha))
        np.testing.assert_allclose(found, [expected, 1 - expected], atol=2e-6)
    np.testing.assert_allclose(np.exp(learner.log_prob(sample, learner.output(jnp.uint32(7)))), law[7], atol=1e-6)


@jax.jit
def errors_of_all(population: concept.PointDistribution) -> jax.Array:
    """For each target, the errors of all points and of all-zero."""
    hypotheses = concept.point([0, 1, 2, 3, None], bits=2)
    return jax.vmap(lambda target: jax.vmap(lambda h: population._error(h, target))(hypotheses))(population.targets)


@pytest.mark.slow  # of one concept: `test_trials`
def test_laws_of_a_pac_experiment_are_the_frequencies_of_its_trials() -> None:
    law = concept.point_masses(bits=8, points=[3, 90, 5], masses=[2.0, 2.0, 1.0], target=[90, 3])
    learner = points.point_learner(bits=8, k=2, epsilon=2.0, delta=0.1, alpha=0.3)
    experiment = pac.Experiment(learner=learner, distribution=law, n=45, alpha=0.3, capacity=63)
    keys = jax.random.split(jax.random.key(0), 2000)
    run = jax.jit(
        jax.vmap(lambda key: (pac.trial(jax.random.clone(key), experiment)["failed"], pac.failure(key, experiment)))
    )
    failed, laws = (np.asarray(part, np.float64) for part in run(keys))
    assert 0.1 < laws.mean() < 0.9
    assert abs(failed.sum() - laws.sum()) < stats.norm.isf(FALSE_ALARM / 2) * math.sqrt((laws * (1 - laws)).sum())


@pytest.mark.slow  # of one concept: `test_points`
def test_laws_have_gradients_however_many_items_there_are(x64: None) -> None:
    """Forty distinct labelled points, more than samplers find one by one; few of them can be heavy."""
    sample = sample_of([(5, (1, 0))] * 9 + [(9, (0, 1))] * 8 + [(100 + i, (0, 0)) for i in range(40)], rows=63)

    def failure(epsilon: Any) -> Any:
        learner = points.point_learner(bits=8, k=2, epsilon=epsilon, delta=0.4, alpha=0.5, beta=0.9)
        return learner.failure_probability(sample, error=0.2)

    @jax.jit
    def slopes(epsilon: Any) -> Any:
        return failure(epsilon), jax.grad(failure)(epsilon), jax.jacfwd(failure)(epsilon)

    (_, *found), above, below = (slopes(5.0 + step) for step in (0.0, 1e-6, -1e-6))
    slope = (above[0] - below[0]) / 2e-6
    assert abs(slope) > 1e-3
    np.testing.assert_allclose(found, [slope, slope], rtol=1e-5)


# ------------------------------------------------------------------------------------------------ one n for every k


def law_of(k: int, alpha: float) -> concept.PointDistribution:
    """Points of mass just above alpha, a light background, and targets among them (or none)."""
    heavy = [2**60 + 97 * i for i in range(int(1 / (1.05 * alpha)))]
    targets = [[*heavy, None][j % (len(heavy) + 1)] for j in range(k)]
    return concept.point_masses(
        bits=64, points=heavy, masses=[1.0] * len(heavy), target=targets, background=1 - 1.04 * alpha * len(heavy)
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    "kind", ["histogram", *(pytest.param(kind, marks=pytest.mark.slow) for kind in ("proved", "printed"))]
)
def test_the_stated_sample_size_suffices_and_is_the_same_for_every_k(kind: str) -> None:
    """Run for many concepts, of which the first is the only one of k = 1: its learner fails no more often."""
    alpha, beta, k = 0.2, 0.2, 1000 if kind == "proved" else 10

    def make(k: int) -> Any:
        budget = {"bits": 64, "k": k, "epsilon": 2.0, "delta": 1e-5}
        if kind == "histogram":
            return points.histogram_learner(**budget)
        n = bounds.point_learner_exact(alpha, beta, 2.0, 1e-5, calibration=kind)
        return points.point_learner(**budget, alpha=alpha, beta=beta, n=n, calibration=kind)

    learner = make(k)
    n = learner.sample_size(alpha=alpha, beta=beta)
    assert n == make(1).sample_size(alpha=alpha, beta=beta)
    lanes = {"histogram": 60, "proved": 20, "printed": 10}[kind]

    @jax.jit
    def failed(n: Any, learner: Any, capacity: int = n) -> Any:
        experiment = pac.Experiment(learner=learner, distribution=law_of(k, alpha), n=n, alpha=alpha, capacity=capacity)
        keys = jax.random.split(jax.random.key(1), lanes)
        return jnp.sum(jax.vmap(lambda key: pac.trial(key, experiment)["failed"])(keys))

    failures = int(failed(jnp.int32(n), learner))
    assert stats.binom.sf(failures - 1, lanes, beta) > FALSE_ALARM
    if kind != "printed":  # negative control: a fifth of it is not enough
        short = int(failed(jnp.int32(n // 5), learner))
        assert stats.binom.sf(short - 1, lanes, beta) < FALSE_ALARM


@pytest.mark.thorough
def test_one_program_serves_every_budget() -> None:
    sample = sample_of(AGNOSTIC, rows=255)
    create = lambda epsilon: points.point_learner(bits=8, k=2, epsilon=epsilon, delta=0.2, alpha=0.5)  # noqa: E731
    create(3.0)(jax.random.key(0), sample)
    before = algorithm._run._cache_size()
    for epsilon in (0.5, 1, np.float32(2.0)):
        create(epsilon)(jax.random.key(0), sample)
    assert algorithm._run._cache_size() == before


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: point_learner("other"), "calibration must be one of"),
        (lambda: points.point_learner(bits=8, k=0, epsilon=1.0, delta=0.1, alpha=0.1), "k must be >= 1"),
        (
            lambda: points.point_learner(bits=8, k=1, epsilon=1.0, delta=0.1, alpha=0.1, calibration="printed"),
            "n must be given",
        ),
        (
            lambda: points.point_learner(
                bits=8, k=1, epsilon=1.0, delta=1e-6, alpha=0.1, n=5000, calibration="printed"
            ),
            r"n must be at least 1416\d\d .*got 5000",
        ),
        (lambda: point_learner("proved")(jax.random.key(0), sample_of([(1, (1,))])), "k = 2 concepts"),
        (lambda: point_learner("proved").sample_size(alpha=0.1, beta=0.01), "beta must be >= 0.1"),
        (lambda: point_learner("proved")(jax.random.key(0), sample_of([(256, (1, 1))], 9)), r"0, ..., 2\^8 - 1"),
    ],
)
def test_bad_input_is_refused_by_name(call: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()


def test_the_printed_sanitizer_is_accurate_enough_for_a_database() -> None:
    """Algorithm 5 needs a database accurate to alpha/30: the answers that it is made from are accurate to alpha/60."""
    n = bounds.point_learner_exact(0.1, 0.1, 1.0, 1e-6, calibration="printed")
    assert n == 141_684
    given = {"bits": 8, "k": 1, "epsilon": 1.0, "delta": 1e-6, "alpha": 0.1, "calibration": "printed"}
    learner = points.point_learner(**given, n=n)
    np.testing.assert_allclose([learner.counts.alpha, learner.heavy], [0.1 / 60, 0.1 * n / 15])
    assert learner.sample_size(alpha=0.1, beta=0.1) == n


def test_guarantees() -> None:
    assert point_learner("proved").guarantee() == point_learner("proved").claimed_guarantee()
    assert point_learner("printed").guarantee() == Guarantee.none(REPLACE_ONE)  # n is too small
    n = bounds.point_learner_exact(0.1, 0.1, 1.0, 1e-6, calibration="printed")
    printed = points.point_learner(
        bits=8, k=1, epsilon=1.0, delta=1e-6, alpha=0.1, n=n, calibration="printed"
    ).guarantee()
    np.testing.assert_allclose([printed.epsilon, printed.delta], [1.5, 5e-7 + math.e * 0.25e-6], rtol=1e-6)


@pytest.mark.thorough
@pytest.mark.parametrize("calibration", ["proved", "printed"])
def test_a_traced_alpha_or_beta_out_of_range_shows_in_the_status(calibration):
    sample = builders.multi_sample_of([0, 1, 1, 0, 1, 1, 1], [[0, 1]] * 7, 1, 7)

    @jax.jit
    def status(alpha, beta):
        given = {"bits": 1, "k": 2, "epsilon": 10.0, "delta": 0.5, "calibration": calibration}
        given |= {"n": 7} if calibration == "printed" else {}
        learner = points.point_learner(**given, alpha=alpha, beta=beta, allow_unproved=True)
        return learner(jax.random.key(0), sample).status

    assert int(status(0.5, 0.5)) in (Status.OK, Status.BOTTOM)
    for alpha, beta in ((-1.0, 0.5), (np.nan, 0.5), (2.0, 0.5), (0.5, -1.0), (0.5, 1.5), (0.5, np.nan)):
        assert int(status(alpha, beta)) == Status.BAD_PARAMETER
