"""k concepts by direct sum and by GenericLearner; PAC to empirical. Laws against samples, privacy by exact laws."""

import collections
import dataclasses
import functools
import itertools
import math

import builders
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from dpjax import MultiSample, Points, Sample, bounds
from dpjax.accounting import ADD_OR_REMOVE_ONE, REPLACE_ONE, Guarantee, basic, with_replacement
from dpjax.concepts import points as point_concept
from dpjax.concepts import thresholds as concept
from dpjax.core.pytree import frozen, static
from dpjax.data.outcome import Outcome, Status
from dpjax.domains import wide
from dpjax.learners import label_private, thresholds
from dpjax.learners import parities as one_parity
from dpjax.learners import points as one_point
from dpjax.learners.thresholds.base import ThresholdLearner
from dpjax.multi import direct_sum, generic, pac, reductions
from dpjax.multi import parities as many_parities
from dpjax.optimizers import interior_point, quantiles
from dpjax.sanitizers import cdf, dense
from dpjax.sanitizers import points as point_sanitizers
from dpjax.verify import exact
from dpjax.verify.plain.exponential import threshold_law

FALSE_ALARM = 1e-6


def exponentials(k=3, accountant="basic", epsilon=1.0, bits=8, delta=1e-6):
    share, delta = (None, 0.0) if accountant == "basic" else (0.0, delta)
    return direct_sum.direct_sum(
        lambda each: thresholds.exponential(bits=bits, epsilon=each.epsilon),
        k=k,
        epsilon=epsilon,
        delta=delta,
        accountant=accountant,
        delta_share=share,
    )


def sample_of(targets, n=100, bits=8, capacity=127, seed=0):
    law = concept.several(concept.uniform(bits=bits, target=0), bits=bits, targets=targets)
    return law, law.sample(jax.random.key(seed), capacity, n)


@jax.jit
@functools.partial(jax.vmap, in_axes=(None, 0, None))
def runs_of(learner, key, sample):
    return learner(key, sample)


@jax.jit
@functools.partial(jax.vmap, in_axes=(None, 0, 0))
def laws_of(epsilon, x, y):
    """The joint laws of two threshold learners on two points."""
    summed = direct_sum.of(thresholds.exponential(bits=1, epsilon=epsilon), k=2)
    return summed.pmf(MultiSample.create(x, y))


def test_the_budget_of_each_concept_grows_from_basic_to_bounded():
    k = 400
    each = {name: float(exponentials(k, name).learner.epsilon) for name in (*direct_sum.ACCOUNTANTS, "bounded")}
    assert each["basic"] == pytest.approx(1 / k) and each["basic"] < each["advanced"] < each["optimal"]
    assert each["bounded"] > 1.5 * each["optimal"]
    for name in each:
        assert exponentials(k, name).guarantee().covers(1.0, 1e-6)


@pytest.mark.slow
def test_a_direct_sum_runs_the_single_learner_on_every_column():
    _, sample = sample_of([3, 200, 90])
    summed = exponentials()
    outcome = summed(jax.random.key(1), sample)

    @jax.jit
    def single(learner, j):
        return learner(jax.random.fold_in(jax.random.key(1), j), sample.column(j)).hypothesis

    for j in range(3):
        np.testing.assert_array_equal(outcome.hypothesis[j], single(summed.learner, j))
    predicted = jax.jit(summed.predict)(outcome.hypothesis, sample.x)
    points = np.array(wide.to_ints(sample.x))
    np.testing.assert_array_equal(predicted, points[:, None] < np.array(wide.to_ints(outcome.hypothesis)))
    assert int(outcome.status) == Status.OK


def test_promises_are_kept_to_the_last_digit():
    """Budgets that binary fractions cannot hold: what `guarantee` states never exceeds what was asked for."""
    for accountant, k in itertools.product(direct_sum.ACCOUNTANTS, (1, 7, 49, 100)):
        delta = 0.0 if accountant == "basic" else 3e-7
        for share in (None,) if accountant == "basic" else (0.0, 0.5):
            learner = direct_sum.direct_sum(
                lambda each: (
                    one_point.learn_points(bits=8, epsilon=each.epsilon, delta=each.delta)
                    if each.delta
                    else one_point.exponential(bits=8, epsilon=each.epsilon)
                ),
                k=k,
                epsilon=0.3,
                delta=delta,
                accountant=accountant,
                delta_share=share,
            )
            assert learner.guarantee().covers(0.3, delta)
    for k, spent in itertools.product((1, 2, 10), (0.1, 0.2)):
        sanitizer = point_sanitizers.histogram(bits=8, n=10, epsilon=spent, delta=1e-7)
        for accountant in direct_sum.ACCOUNTANTS:
            learner = generic.learner(
                sanitizer=sanitizer,
                concepts=generic.points(bits=8),
                k=k,
                epsilon=1.0,
                delta=1e-6,
                accountant=accountant,
            )
            assert learner.guarantee().covers(1.0, 1e-6)
            assert learner.sample_size(alpha=0.1, beta=0.1) > 0


@pytest.mark.slow
@pytest.mark.parametrize(("n", "epsilon"), [builders.slow(1, 8.0), (200, 0.8)])
def test_concepts_learned_together_have_the_law_of_each(n, epsilon):
    """The exponential mechanism over all thresholds, with ties and, at 200, several rows of pieces."""
    _, sample = sample_of([0, 2, 17, 32], n=n, bits=5, capacity=255)
    summed, trials = exponentials(k=4, epsilon=epsilon, bits=5), 4000
    drawn = np.asarray(runs_of(summed, jax.random.split(jax.random.key(5), trials), sample).hypothesis[..., 0])
    x, y = wide.to_ints(sample.x)[:n], np.asarray(sample.labels)[:n]
    for j in range(4):
        wanted = trials * np.array(threshold_law(x, y[:, j].tolist(), 5, epsilon / 4))
        seen = np.bincount(drawn[:, j], minlength=33)
        many = wanted > 5
        assert stats.chi2.sf(((seen - wanted)[many] ** 2 / wanted[many]).sum(), many.sum()) > FALSE_ALARM
        assert abs((seen - wanted)[~many].sum()) <= 30


@pytest.mark.slow
@pytest.mark.parametrize("k", [17, *map(builders.slow, (1, 15, 16, 40))])
def test_any_number_of_concepts_fits_the_batches(k):
    _, sample = sample_of([(37 * j) % 256 for j in range(k)])
    summed = exponentials(k, epsilon=200.0 * k)
    hypotheses = summed(jax.random.key(2), sample).hypothesis
    assert hypotheses.shape == (k, 1)
    said = np.array(wide.to_ints(sample.x))[:, None] < np.array(wide.to_ints(hypotheses))
    assert ((said != np.asarray(sample.labels))[:100].sum(axis=0) <= 1).all()


@pytest.mark.slow
def test_the_joint_law_is_the_product_and_matches_samples():
    _, sample = sample_of([30, 128, 220], n=60)
    summed = exponentials(epsilon=1.5)
    single = [float(summed.learner.failure_probability(sample.column(j), error=0.1)) for j in range(3)]
    failure = float(summed.failure_probability(sample, error=0.1))
    assert failure == pytest.approx(1 - np.prod([1 - f for f in single]), rel=1e-4)
    assert float(summed.success_probability(sample, error=0.1)) == pytest.approx(1 - failure, rel=1e-5)

    def fails(key):
        hypotheses = summed(key, sample).hypothesis
        wrong = jnp.sum((summed.predict(hypotheses, sample.x) != sample.labels) & sample.valid[:, None], axis=0)
        return jnp.any(wrong > 6)

    trials = 4000
    count = int(jnp.sum(jax.vmap(fails)(jax.random.split(jax.random.key(3), trials))))
    assert stats.binomtest(count, trials, failure).pvalue > FALSE_ALARM
    assert stats.binomtest(count, trials, 0.8 * failure).pvalue < FALSE_ALARM  # negative control


@pytest.mark.slow
def test_population_failure_within_a_window_matches_trials():
    law, _ = sample_of([30, 128, 220])
    summed = exponentials(epsilon=3.0)
    experiment = pac.Experiment(learner=summed, distribution=law, n=80, alpha=0.1, capacity=127)
    keys = jax.random.split(jax.random.key(4), 3000)
    failed = jax.vmap(lambda key: pac.trial(key, experiment)["failed"])(keys)
    good = law.within(0.1)
    again = jax.random.split(jax.random.key(4), 3000)
    exact_failures = jax.vmap(lambda key: summed.probability(pac.draw(key, experiment)[1], good)[1])(again)
    difference = np.asarray(failed, float) - np.asarray(exact_failures)
    assert abs(difference.mean()) < 5 * difference.std() / np.sqrt(len(keys))
    assert abs(difference.mean() - 0.05) > 5 * difference.std() / np.sqrt(len(keys))  # negative control


@pytest.mark.slow  # conformance
def test_padding_changes_nothing():
    _, sample = sample_of([30, 128, 220], n=50, capacity=63)
    _, longer = sample_of([30, 128, 220], n=50, capacity=127)
    summed = exponentials(epsilon=0.3)
    found = [summed(jax.random.key(0), data).hypothesis for data in (sample, longer)]
    np.testing.assert_array_equal(*found)


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("epsilon", "accountant", "delta"),
    [(0.5, "basic", 0.0), (2.0, "basic", 0.0), (2.0, "optimal", 1e-6), (0.5, "bounded", 0.1), (2.0, "bounded", 0.03)],
)
def test_a_direct_sum_keeps_its_promise_on_all_small_datasets(epsilon, accountant, delta):
    """Two labels, two points, two examples: every pair of neighbours, labels arbitrary."""
    records = [(x, y) for x in range(2) for y in itertools.product((0, 1), repeat=2)]
    summed = exponentials(k=2, epsilon=epsilon, bits=1, accountant=accountant, delta=delta)
    assert summed.guarantee().covers(epsilon, delta)
    x = np.array([[[r[0]] for r in pair] for pair in itertools.product(records, repeat=2)], np.uint32)
    y = np.array([[r[1] for r in pair] for pair in itertools.product(records, repeat=2)])
    laws = np.asarray(laws_of(summed.learner.epsilon, x, y))
    np.testing.assert_allclose(laws.sum(axis=1), 1.0, rtol=1e-5)
    size = len(records)
    pairs = [
        (a * size + b, c * size + b) for a, b, c in itertools.product(range(size), repeat=3) if a != c
    ]  # the first example replaced; the law is symmetric in the two
    with np.errstate(divide="ignore"):  # bottom has probability 0
        first, second = (np.log(laws[[pair[i] for pair in pairs]]) for i in (0, 1))
    assert exact.hockey_stick(first, second, epsilon).max() < delta + 1e-6
    assert exact.hockey_stick(first, second, 0.45 * epsilon).max() > delta / 10 + 1e-3  # negative control


@pytest.mark.parametrize(("k", "epsilon", "delta"), [(1, 1.0, 0.1), (3, 0.5, 0.2), (5, 1.0, 0.1)])
def test_direct_sums_by_ranges_reach_their_delta(k, epsilon, delta):
    """One example's labels all flip, among others that agree; naive laws, with equal losses of several labels gathered."""
    each = float(exponentials(k=k, epsilon=epsilon, bits=2, accountant="bounded", delta=delta).learner.epsilon)
    right = np.array([[(x < j) == y for j in range(5)] for x in range(4) for y in (False, True)], float)

    def law(scores):
        return np.exp(each / 2 * scores) / np.exp(each / 2 * scores).sum()

    found = []
    for others, x in itertools.product((0.0, *right, *(4 * right)), range(4)):
        (p, q), sums = (law(others + right[2 * x + y]) for y in (0, 1)), {0.0: 1.0}
        for _ in range(k):
            more = collections.Counter()
            for loss, chance in sums.items():
                for one, other in zip(p, q, strict=True):
                    more[round(loss + math.log(one / other), 9)] += chance * one
            sums = more
        found.append(sum(chance * max(-math.expm1(epsilon - loss), 0.0) for loss, chance in sums.items()))
    assert 0.99 * delta < max(found) <= delta * (1 + 1e-6)


def test_too_many_outputs_are_not_listed():
    """17^5 of them."""
    summed = direct_sum.of(thresholds.exponential(bits=4, epsilon=0.5), k=5)
    with pytest.raises(ValueError, match="k must leave at most 1048576 outputs for a list, got 1419857 for k = 5"):
        jax.eval_shape(summed.pmf, MultiSample.create(wide.from_ints([1, 2], 4), np.zeros((2, 5), int)))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"k": 0}, "k must be"),
        ({"epsilon": -1.0}, "epsilon must be"),
        ({"accountant": "best"}, "accountant must be one of"),
        ({"accountant": "advanced"}, 'accountant must be "basic" or "optimal" unless'),
        ({"make": lambda each: thresholds.exponential(bits=8, epsilon=2 * each.epsilon)}, "keeps its budget"),
        ({"make": lambda each: thresholds.erm(bits=8)}, "keeps its budget"),
        (
            {
                "make": lambda e: one_point.learn_points(bits=8, epsilon=e.epsilon, delta=1.01 * e.delta),
                "delta": 1e-3,
                "delta_share": 0.5,
            },
            "keeps its budget",
        ),
        # The same epsilon, but for labels alone.
        (
            {"make": lambda e: label_private.label_private(concepts=label_private.points(bits=1), epsilon=e.epsilon)},
            "keeps its budget",
        ),
        (
            {
                "make": lambda e: thresholds.binary_search(bits=8, epsilon=e.epsilon),
                "accountant": "bounded",
                "delta": 0.1,
            },
            'accountant must not be "bounded" for what is no exponential mechanism',
        ),
        ({"make": lambda each: None}, "must be a learner of one concept"),
        ({"make": lambda each: direct_sum.of(thresholds.erm(bits=8), k=2)}, "from a Sample"),
        ({"make": None}, "make must be callable"),
        ({"delta": "x"}, "delta must be"),
    ],
)
def test_bad_direct_sums_are_refused(arguments, message):
    settings = {"make": lambda each: thresholds.exponential(bits=8, epsilon=each.epsilon), "k": 2, "epsilon": 1.0}
    settings |= arguments
    with pytest.raises((TypeError, ValueError), match=message):
        direct_sum.direct_sum(settings.pop("make"), **settings)


@pytest.mark.slow  # events: conformance
def test_a_joint_event_is_one_event_for_each_concept():
    law, sample = sample_of([30, 128, 220], n=50, capacity=63)
    summed = exponentials()
    low, high = jax.device_get(jax.jit(law.within)(0.1))
    point = summed(jax.random.key(0), sample).hypothesis

    @jax.jit
    def single(learner, j):
        column, interval = sample.column(j), (jnp.asarray(low)[j], jnp.asarray(high)[j])
        return learner.probability(column, interval)[0], learner.log_prob(column, point[j])

    joint = np.asarray(summed.probability(sample, (low, high)), float)
    each, parts = np.transpose([single(summed.learner, j) for j in range(3)])
    assert joint[0] == pytest.approx(float(np.prod(each)), rel=1e-5) and joint.sum() == pytest.approx(1.0, rel=1e-5)
    assert float(summed.log_prob(sample, point)) == pytest.approx(parts.sum(), rel=1e-5)


def test_an_event_without_an_interval_for_each_concept_is_refused():
    sample = MultiSample.create(wide.from_ints([1, 2], 8), np.zeros((2, 3), int))
    low, high = np.uint32([[28], [100], [200]]), np.uint32([[32], [150], [240]])
    for event in ((low[:2], high[:2]), (3, 9), (low[0], high[0])):
        with pytest.raises(ValueError, match="a row for each of the k = 3 concepts"):
            exponentials().probability(sample, event)


@pytest.mark.parametrize("kind", [list, np.array, jnp.array])
def test_events_and_outputs_may_be_whole_numbers(kind):
    """They were once refused as no events, or as a JAX tracer that the caller never saw."""
    summed, low, high = exponentials(), [0, 1, 2], [9, 200, 256]
    ends = tuple(wide.from_ints(end, 9) for end in (low, high))
    for found, asked in (
        (summed.check_event((kind(low), kind(high))), summed.check_event(ends)),
        (summed.exactly(kind(high)), summed.exactly(ends[1])),
    ):
        jax.tree.map(np.testing.assert_array_equal, found, asked)
    with pytest.raises(ValueError, match="output must be from 0"):
        summed.exactly([-1, 3, 3])


def test_a_direct_sum_of_learners_without_privacy_promises_nothing():
    summed = direct_sum.of(thresholds.erm(bits=8), k=3)
    assert summed.guarantee() == Guarantee.none(REPLACE_ONE)
    with pytest.raises(TypeError, match="learner must be"):
        direct_sum.of(None, k=3)


def test_bad_samples_are_refused():
    summed = exponentials(k=2)
    with pytest.raises(TypeError, match="MultiSample"):
        summed(jax.random.key(0), Sample(x=wide.from_ints([1], 8), y=[1]))
    with pytest.raises(ValueError, match="k = 2 concepts, got 1"):
        summed(jax.random.key(0), MultiSample.create(wide.from_ints([1], 8), [[1]]))
    with pytest.raises(ValueError, match=r"2\^8 - 1, got 256"):
        summed(jax.random.key(0), MultiSample.create(wide.from_ints([256], 9), [[1, 0]]))
    with pytest.raises(TypeError, match="base must be"):
        concept.several(concept.log_uniform(bits=8), bits=8, targets=[1])
    with pytest.raises(ValueError, match="at least one"):
        concept.several(concept.uniform(bits=8, target=0), bits=8, targets=[])


# ---------------------------------------------------------------------------------------------------- GenericLearner


def generic_thresholds(k=3, epsilon=4.0, accountant="optimal", depth=3):
    solver = interior_point.exponential(bits=20, epsilon=0.2)
    sanitizer = cdf.release(
        quantiles=quantiles.recursive(solver=solver, bits=8, depth=depth, m=60, allow_unproved=True)
    )
    return generic.learner(
        sanitizer=sanitizer,
        concepts=generic.thresholds(bits=8),
        k=k,
        epsilon=epsilon,
        delta=1e-6,
        accountant=accountant,
    )


def test_representatives_label_in_every_way_a_threshold_can():
    points = wide.from_ints([5, 255, 5, 9, 0], 8)
    found, mask, fits, labels = represented(generic.thresholds(bits=8), points, np.arange(5) < 4, points[:4])
    ways = {tuple(column) for column in labels.T[mask].tolist()}
    assert mask.sum() == len(ways) == 4 and bool(fits)  # 3 distinct points: 4 dichotomies
    assert wide.to_ints(found[mask]) == [0, 6, 10, 256]


@functools.partial(jax.jit, static_argnums=0)
def _represented(concepts, points, where, x):
    found, mask, fits = concepts.representatives(points, where)
    return found, mask, fits, concepts.predict(found, x)


def represented(concepts, points, where, x):
    """(representatives, which of them count, whether there was room, what each says of x)."""
    return jax.device_get(_represented(concepts, points, where, x))


@pytest.mark.parametrize("n", [1, 7, 100])
def test_right_examples_of_realizable_labels_are_those_counted(n):
    _, sample = sample_of([0, 5, 30, 64], n=n, bits=6)
    concepts, thresholds_of = generic.thresholds(bits=6), wide.from_ints([0, 3, 3, 31, 64, 63], 7)
    points = np.array(wide.to_ints(sample.x))[:n, None, None]
    said = points < np.array([0, 3, 3, 31, 64, 63])
    counted = (said == np.asarray(sample.labels)[:n, :, None]).sum(axis=0)
    np.testing.assert_array_equal(right_of(concepts, thresholds_of, sample), counted)


@jax.jit(static_argnums=0)
def right_of(concepts, hypotheses, sample):
    return concepts.right_if_realizable(hypotheses, sample)


def test_point_representatives_are_the_named_points_and_zero():
    points, where, x = wide.from_ints([3, 7, 0, 0], 8), np.arange(4) < 2, wide.from_ints([3, 7, 9], 8)
    _, mask, fits, labels = represented(generic.points(bits=8, most=3), points, where, x)
    assert mask.tolist() == [True, True, True, False] and bool(fits)
    assert labels[:, :3].astype(int).tolist() == [[0, 1, 0], [0, 0, 1], [0, 0, 0]]
    assert not represented(generic.points(bits=8, most=1), points, where, x)[2]


@frozen
class Two:
    """A known database, with the promise that it leaks nothing."""

    bits: int = static(default=8)

    def __call__(self, key, points):
        return Outcome(hypothesis=self, status=jnp.int32(Status.OK), info={})

    def support(self):
        return wide.from_ints([3, 5], 8), jnp.ones(2, bool)

    def guarantee(self):
        return Guarantee(0.0, 0.0, REPLACE_ONE)


def test_every_label_of_a_generic_learner_has_coins_and_a_share_of_its_own():
    """900 equal labels, each with an epsilon of 0.05: three hypotheses are right on 0, 20 and 40 of the examples."""
    k = 900
    learner = generic.learner(sanitizer=Two(), concepts=generic.thresholds(bits=8), k=k, epsilon=0.05 * k)
    sample = MultiSample.create(wide.from_ints([3, 5] * 20, 8), np.ones((40, k), int))
    found = np.array(wide.to_ints(learner(jax.random.key(0), sample).hypothesis))
    chances = np.exp(0.05 / 2 * np.array([0, 20, 40]))
    counts = [np.sum(found == threshold) for threshold in (0, 4, 6)]
    assert stats.chisquare(counts, k * chances / chances.sum()).pvalue > FALSE_ALARM


def test_thresholds_drawn_together_have_the_law_of_one():
    """900 equal labels of a realizable sample: each threshold is drawn by the number of examples that it errs on."""
    x = np.sort(np.random.default_rng(1).integers(0, 8, 12))
    rows, labels = (
        wide.from_ints([*x.tolist(), 0, 0, 0], 3),
        np.repeat(np.append(x < 5, [False] * 3)[:, None], 900, axis=1),
    )
    sample = MultiSample(x=rows, y=builders.packed(labels), n_valid=np.int32(12), k=900, realizable=True)
    learner = thresholds.exponential(bits=3, epsilon=0.6)
    draw = jax.jit(lambda key, sample: learner.together(jax.random.split(key, 900), sample).hypothesis)
    found = np.asarray(draw(jax.random.key(0), sample))
    wrong = np.array([np.sum((x < threshold) != (x < 5)) for threshold in range(9)])
    weights = np.exp(-0.6 / 2 * wrong)
    expected = 900 * weights / weights.sum()
    assert expected.min() > 5
    assert stats.chisquare(np.bincount(found[:, -1], minlength=9), expected).pvalue > FALSE_ALARM


@pytest.mark.slow
def test_generic_learner_draws_from_its_law():
    _, sample = sample_of([60, 130, 220], n=500, capacity=511)
    learner = generic_thresholds(epsilon=2.5)
    hypotheses, probabilities, status = learner.law_of_choices(jax.random.key(5), sample)
    assert int(status) == Status.OK
    np.testing.assert_allclose(probabilities.sum(axis=1), 1.0, rtol=1e-5)
    # The exponential mechanism on right labels, computed with integers.
    said = np.asarray(learner.concepts.predict(hypotheses, sample.x))[:500]
    right = (said[:, None, :] == np.asarray(sample.labels)[:500, :, None]).sum(axis=0)
    weights = np.where(np.asarray(probabilities) > 0, np.exp(float(learner.each_epsilon) / 2 * (right - 500.0)), 0.0)
    np.testing.assert_allclose(probabilities, weights / weights.sum(axis=1, keepdims=True), rtol=1e-4, atol=1e-9)


@pytest.mark.slow
def test_generic_learner_learns_and_keeps_its_books():
    law, _ = sample_of([60, 130, 220])
    learner = generic_thresholds(epsilon=8.0)
    experiment = pac.Experiment(learner=learner, distribution=law, n=2000, alpha=0.2, capacity=2047)
    keys = jax.random.split(jax.random.key(6), 20)
    assert int(jax.vmap(lambda key: pac.trial(key, experiment)["failed"])(keys).sum()) <= 2
    for accountant in (*direct_sum.ACCOUNTANTS, "bounded"):
        assert generic_thresholds(accountant=accountant, k=50).guarantee().covers(4.0, 1e-6)
    exponents = [float(generic_thresholds(accountant=name, k=50).each_epsilon) for name in ("optimal", "bounded")]
    assert exponents[1] > 1.3 * exponents[0]
    sanitizer = learner.sanitizer.guarantee().under(REPLACE_ONE)
    assert generic_thresholds(accountant="basic").guarantee().epsilon == pytest.approx(4.0)
    with pytest.raises(ValueError, match="must leave some"):
        generic_thresholds(epsilon=sanitizer.epsilon / 2)
    with pytest.raises(ValueError, match="k = 3 concepts"):
        learner(jax.random.key(0), MultiSample.create(wide.from_ints([1], 8), [[1]]))


# ------------------------------------------------------------------------------------------------------- PAC, empirical


def test_row_numbers_are_below_a_number():
    for wrong in (0, -5, 1.5, None):
        with pytest.raises((TypeError, ValueError), match="rows must be"):
            reductions.draw_rows(jax.random.key(0), 3, wrong)


def test_row_numbers_are_uniform():
    draw = jax.jit(reductions.draw_rows, static_argnums=1)
    for rows in (1, 2, 7, 100, 2**31 - 1):
        drawn = np.asarray(draw(jax.random.key(rows % 1000), 20_000, jnp.int32(rows)))
        assert drawn.min() >= 0 and drawn.max() < rows
        cells = np.bincount(drawn.astype(np.int64) * min(rows, 7) // rows, minlength=min(rows, 7))
        if rows > 1:
            assert stats.chisquare(cells).pvalue > FALSE_ALARM
            tilted = 1 + 0.2 * np.linspace(-1, 1, len(cells))
            assert stats.chisquare(cells, cells.sum() / len(cells) * tilted).pvalue < FALSE_ALARM  # negative control


@frozen
class Recorder:
    """A learner that answers with its rows."""

    bits: int = 8
    k: int = 2

    def fit(self, sample):
        return sample.padded()

    def guarantee(self):
        return Guarantee(1.0, 1e-6, REPLACE_ONE)

    def __call__(self, key, sample):
        return Outcome(hypothesis=(sample.x, sample.labels, sample.n_valid), status=jnp.int32(0), info={})


def test_fewer_rows_than_the_guarantee_counts_on_show_where_they_are_traced():
    """Ten rows are more than the 4 that are drawn, and fewer than the 40 that privacy rests on."""
    reduced = reductions.empirical(exponentials(k=2, epsilon=1.0), n=4, rows=40)
    sample = MultiSample.create(wide.from_ints(range(63), 8), [[v % 2, v % 3 == 0] for v in range(63)], 63)
    fits = jax.jit(lambda n: reduced.fits(dataclasses.replace(sample, n_valid=n)))
    assert [bool(fits(n)) for n in (10, 39, 40)] == [False, False, True]


def test_the_empirical_learner_sees_rows_of_the_sample_with_their_labels():
    values = list(range(10, 60))
    sample = MultiSample.create(wide.from_ints(values, 8), [[v % 2, v % 3 == 0] for v in values], 40)
    reduced = reductions.empirical(Recorder(), n=500, rows=40)
    x, labels, n = reduced(jax.random.key(0), sample).hypothesis
    drawn = np.array(wide.to_ints(x))[:500]
    assert int(n) == 500 and drawn.min() >= 10 and drawn.max() < 50  # rows past n_valid are never drawn
    assert (np.asarray(labels)[:500] == np.stack([drawn % 2, drawn % 3 == 0], axis=1)).all()
    assert len(set(drawn.tolist())) == 40
    longer = reductions.empirical(Recorder(), n=500, rows=4500)
    assert longer.guarantee() == with_replacement(Guarantee(1.0, 1e-6, REPLACE_ONE), drawn=500, rows=4500)
    with pytest.raises(ValueError, match="at least the 4500 rows"):
        longer(jax.random.key(0), sample)
    traced = jax.jit(lambda n: reduced(jax.random.key(0), dataclasses.replace(sample, n_valid=n)).status)
    assert [int(traced(n)) for n in (40, 39)] == [Status.OK, Status.OUTSIDE_DOMAIN]
    with pytest.raises(TypeError, match="k-learner"):
        reductions.empirical(3, n=2, rows=18)
    with pytest.raises(ValueError, match="n must be"):
        reductions.empirical(Recorder(), n=0, rows=18)
    with pytest.raises(ValueError, match="rows must be"):
        reductions.empirical(Recorder(), n=2, rows=1)


@pytest.mark.thorough
def test_no_rows_are_promised_for_the_empirical_learner_of_semi_private_ones():
    """Their hypotheses come from public points: on rows far from these five in nine labels were wrong, where a quarter was promised."""
    public = Points.create(wide.from_ints([0] * 4000, 8))
    learner = direct_sum.direct_sum(
        lambda each: label_private.semi_private(
            concepts=label_private.thresholds(bits=8), public=public, epsilon=each.epsilon
        ),
        k=2,
        epsilon=60.0,
    )
    n = learner.sample_size(alpha=0.25, beta=0.2)
    reduced, x = reductions.empirical(learner, n=n, rows=9 * n), np.repeat([100, 101], [5 * n, 4 * n])
    sample = MultiSample.create(wide.from_ints(x.tolist(), 8), np.stack([x == 100] * 2, axis=1))
    learned = reduced(jax.random.key(0), sample).hypothesis
    assert (np.mean(reduced.predict(learned, sample.x) != (x == 100)[:, None], axis=0) > 0.5).all()
    with pytest.raises(ValueError, match="learner must learn any distribution"):
        reduced.sample_size(alpha=0.25, beta=0.2)


# ------------------------------------------------------------------------------------------------------------- bounds


def test_packing_bounds_solve_their_inequalities():
    for k, epsilon in ((1, 0.3), (5, 1.0), (1000, 2.0)):
        n = bounds.pure_packing(k, epsilon)
        # 1/2 >= (2^k - 1) exp(-eps n) / 2, with equality
        assert np.log(2.0) * k + np.log1p(-(2.0**-k)) == pytest.approx(epsilon * n)
        assert bounds.pure_parities(k, 7, epsilon) == pytest.approx(bounds.pure_packing(7 * k, epsilon))


def test_fingerprinting_bounds_are_largest():
    xi = 1e-3
    for k in (10, 10**4, 10**7):
        n = bounds.fingerprinting_thresholds(k, xi, calibration="printed")
        assert 2 * (n + 1) ** 3 * np.log(2 * (n + 1) / xi) > k
        assert n == 0 or 2 * n**3 * np.log(2 * n / xi) <= k
        m = bounds.fingerprinting_agnostic(k, xi, calibration="printed")
        assert 100 * (m + 1) ** 2 * np.ceil(np.log((m + 1) / xi)) > k or m == 0
        assert m == 0 or 100 * m**2 * np.ceil(np.log(m / xi)) <= k
    delta = bounds.fingerprinting_delta(20, 1e-4, 0.1, 2.0)
    assert np.exp(2.0) * 1e-4 + delta == pytest.approx((1 - 1e-4 - 0.1) / 20)


def test_theorem_12_divides_alpha_between_all_hypotheses_and_the_best_concepts():
    """Theorem 9 for the ones, Hoeffding's bound for the others, which are fixed: the printed number fails however alpha is divided."""

    def failure(n, alpha, k, share):
        hypotheses = 8 * k * np.exp(np.log(6 / (share * alpha)) - n * (share * alpha) ** 2 / 64)
        return hypotheses + k * np.exp(-2 * n * ((1 - share) * alpha) ** 2)

    shares = np.linspace(0.01, 0.99, 99)
    for alpha, beta, k in ((0.1, 0.1, 1), (0.9, 0.9, 1), (0.01, 1e-9, 1000)):
        given = {"concepts": k, "agnostic": True}
        printed, proved = (
            bounds.empirical_to_pac(1, alpha, beta, calibration=c, **given) for c in ("printed", "proved")
        )
        assert failure(proved, alpha, k, 0.9) <= beta < failure(printed, alpha, k, shares).min()
        assert proved < 1.5 * printed
    assert bounds.empirical_to_pac(1, 0.1, 0.1, concepts=9) == bounds.empirical_to_pac(1, 0.1, 0.1)


# -------------------------------------------------------------------------------------------- privacy of GenericLearner


@frozen
class Named:
    """A sanitized database that names these points, and the sanitizer that always answers with it."""

    points: jnp.ndarray
    where: jnp.ndarray
    status: jnp.ndarray = np.int32(Status.OK)

    def support(self):
        return self.points, self.where

    def __call__(self, key, data):
        return Outcome(hypothesis=self, status=jnp.asarray(self.status), info={})


def generic_law(learner, sample):
    """The exact joint law of (named points, the k hypotheses) for the point class on two points: all names enumerated.

    Of a release, GenericLearner uses only which points it names.
    """
    counts = jnp.array([jnp.sum((sample.x[:, 0] == v) & sample.valid) for v in (0, 1)])
    log_p, log_q = learner.sanitizer.log_released(counts)
    points, law = jnp.array([[0], [1]], jnp.uint32), []
    for where in itertools.product((False, True), repeat=2):
        chance = jnp.exp(jnp.sum(jnp.where(jnp.array(where), log_p, log_q)))
        fixed = dataclasses.replace(learner, sanitizer=Named(points=points, where=jnp.array(where)))
        _, probabilities, _ = fixed.law_of_choices(jax.random.key(0), sample)
        law.append(chance * jnp.einsum("a,b->ab", *probabilities).reshape(-1))
    return jnp.concatenate(law)


def test_a_generic_learner_fails_by_errors_above_alpha_and_where_nothing_is_released():
    sanitizer = point_sanitizers.histogram(bits=1, n=3, epsilon=0.8, delta=0.1)
    learner = generic.learner(sanitizer=sanitizer, concepts=generic.points(bits=1), k=2, epsilon=2.0, delta=0.1)
    law = point_concept.point_masses(bits=1, points=[0, 1], masses=[1.0, 3.0], target=[0, 1])
    names = wide.from_ints([0, 1], 1), np.ones(2, bool)
    sample = MultiSample.create(wide.from_ints([0, 1, 1], 1), [[1, 0], [0, 1], [0, 1]])
    named, withheld = (
        dataclasses.replace(learner, sanitizer=Named(points=names[0], where=names[1], status=np.int32(status)))
        for status in (Status.OK, Status.BOTTOM)
    )

    @jax.jit
    def choices_and_failure(learner, alpha):
        key = jax.random.key(0)
        choices = learner.law_of_choices(jax.random.clone(key), sample)
        return choices, learner.population_failure(key, sample, law, alpha)

    concepts, probabilities, _ = choices_and_failure(named, 0.25)[0]
    # Of the points 0 and 1 each is right for one label; all-zero errs on 1/4 and on 3/4.
    zero = np.asarray(concepts.zero)
    first, second = np.asarray(probabilities, float)
    at = np.asarray(concepts.position)[:, 0]
    for alpha, good in ((0.25, [zero | (at == 0), ~zero & (at == 1)]), (0.2, [~zero & (at == 0), ~zero & (at == 1)])):
        expected = 1 - first[good[0]].sum() * second[good[1]].sum()
        found = choices_and_failure(named, alpha)[1]
        assert float(found) == pytest.approx(expected, rel=1e-5)
    assert float(choices_and_failure(withheld, 0.25)[1]) == 1


@pytest.mark.parametrize("accountant", ["basic", "advanced", "optimal"])
def test_a_sanitizer_and_the_choices_share_one_delta(accountant):
    sanitizer = point_sanitizers.histogram(bits=6, n=50, epsilon=1.0, delta=4e-4)
    given = {"k": 5, "epsilon": 3.0, "delta": 1e-3, "accountant": accountant}
    learner = generic.learner(sanitizer=sanitizer, concepts=generic.points(bits=6), **given)
    assert learner.guarantee().covers(3.0, 1e-3)


@jax.jit
def law_and_statuses(learner, sample):
    """Whether its parameters are sound, the law of the choices, the status that comes with it, and that of a run."""
    _, probabilities, status = learner.law_of_choices(jax.random.key(0), sample)
    return learner.sound(), probabilities, status, learner(jax.random.key(0), sample).status


@pytest.mark.parametrize("epsilon", [0.0, -1.0, math.inf, math.nan])
def test_what_a_label_may_spend_is_sound_or_shows(epsilon):
    sanitizer = point_sanitizers.histogram(bits=1, n=3, epsilon=0.8, delta=0.1)
    learner = generic.learner(sanitizer=sanitizer, concepts=generic.points(bits=1), k=2, epsilon=2.0, delta=0.1)
    wrong = dataclasses.replace(learner, each_epsilon=np.float64(epsilon))
    sample = MultiSample.create(wide.from_ints([0, 1, 1], 1), [[1, 0], [0, 1], [0, 1]])
    (right, *_), (is_sound, probabilities, *statuses) = (law_and_statuses(each, sample) for each in (learner, wrong))
    assert right and not is_sound
    assert [*map(int, statuses)] == [Status.BAD_PARAMETER] * 2 and np.isnan(probabilities).all()


def test_generic_learner_keeps_its_promise_on_all_small_datasets(x64):
    """Two points, two labels, three examples, labels arbitrary; every pair of neighbours."""
    sanitizer = point_sanitizers.histogram(bits=1, n=3, epsilon=0.8, delta=0.1)
    learner = generic.learner(
        sanitizer=sanitizer, concepts=generic.points(bits=1), k=2, epsilon=2.0, delta=0.1, accountant="basic"
    )
    records = np.array([(x, *y) for x in range(2) for y in itertools.product((0, 1), repeat=2)])
    counts = exact.histograms(len(records), [3])
    values, _ = exact.records(counts)
    rows = records[np.asarray(values)]
    make = lambda r: MultiSample.create(r[:, :1].astype(jnp.uint32), r[:, 1:])  # noqa: E731
    pairs = exact.neighbours(counts, REPLACE_ONE)

    laws_of = jax.jit(jax.vmap(lambda learner, r: generic_law(learner, make(r)), in_axes=(None, 0)))

    def delta(learner, epsilon):
        laws = np.asarray(laws_of(learner, rows))
        np.testing.assert_allclose(laws.sum(axis=1), 1.0, rtol=1e-9)
        with np.errstate(divide="ignore"):
            first, second = np.log(laws[pairs[:, 0]]), np.log(laws[pairs[:, 1]])
        return exact.hockey_stick(first, second, epsilon).max()

    promised = learner.guarantee()
    assert promised.covers(2.0, 0.1)
    assert 0.99 * promised.delta < delta(learner, promised.epsilon) <= promised.delta + 1e-9
    careless = dataclasses.replace(learner, each_epsilon=6 * learner.each_epsilon)  # negative control
    assert delta(careless, promised.epsilon) > 1.1 * promised.delta


@pytest.mark.parametrize(("k", "spent"), [(1, 0.5), (2, 0.2)])
def test_a_generic_learner_by_ranges_keeps_its_promise_on_all_small_datasets(k, spent):
    """Thresholds on two points, two examples, all labels: the joint law of a BLR database of one row and k choices, by hand."""
    sanitizer = dense.blr(queries=dense.intervals(bits=1), rows=1, epsilon=0.01)
    given = {"concepts": generic.thresholds(bits=1), "k": k, "epsilon": 1.0, "delta": 0.1}
    learner = generic.learner(sanitizer=sanitizer, **given, accountant="bounded")
    each, promised = float(learner.each_epsilon), learner.guarantee()

    def softmax(logs):
        return np.exp(logs) / np.exp(logs).sum()

    def law(data):
        """Of one point b there are two dichotomies, by the thresholds 0 and b + 1; an interval's error is that of a point, or 0."""
        rows = softmax(np.array([-0.005 * sum(x != b for x, _ in data) for b in (0, 1)]))
        found = []
        for b in (0, 1):
            labels = [
                softmax(np.array([each / 2 * sum((x < j) == y[i] for x, y in data) for j in (0, b + 1)]))
                for i in range(k)
            ]
            found.append(rows[b] * functools.reduce(np.multiply.outer, labels).ravel())
        return np.concatenate(found)

    records = [(x, y) for x in (0, 1) for y in itertools.product((False, True), repeat=k)]
    laws = {data: law(data) for data in itertools.combinations_with_replacement(records, 2)}
    order = {record: i for i, record in enumerate(records)}
    pairs = [(data, tuple(sorted((data[i], r), key=order.get))) for data in laws for i in (0, 1) for r in records]
    worst = max(np.maximum(laws[one] - math.exp(promised.epsilon) * laws[other], 0.0).sum() for one, other in pairs)
    assert promised.covers(1.0, 0.1) and spent * 0.1 < worst <= 0.1


@pytest.mark.parametrize(
    ("changed", "kind", "message"),
    [
        ({"sanitizer": None}, TypeError, "sanitizer must be"),
        ({"concepts": None}, TypeError, "concepts must be a class"),
        ({"concepts": generic.points(bits=9)}, ValueError, "concepts must be over the 8 bits of the sanitizer"),
        (
            {"sanitizer": builders.step_functions(bits=7)},
            ValueError,
            "concepts must be over the 7 bits of the sanitizer",
        ),
        ({"concepts": generic.thresholds(bits=8)}, ValueError, "sanitizer must be one for thresholds or intervals"),
        (
            {
                "sanitizer": dense.blr(queries=dense.pairs(bits=2), rows=2, epsilon=1.0),
                "concepts": generic.thresholds(bits=2),
            },
            ValueError,
            "sanitizer must be one for thresholds or intervals",
        ),
        ({"accountant": "best"}, ValueError, "accountant must be one of"),
        ({"epsilon": "1"}, TypeError, "epsilon must be"),
        ({"k": 2.0}, TypeError, "k must be"),
    ],
)
def test_bad_generic_learners_are_refused(changed, kind, message):
    sanitizer = point_sanitizers.histogram(bits=8, n=10, epsilon=0.1, delta=1e-7)
    given = {"sanitizer": sanitizer, "concepts": generic.points(bits=8), "k": 2, "epsilon": 2.0, "delta": 1e-6}
    with pytest.raises(kind, match=message):
        generic.learner(**(given | changed))


def test_budgets_that_are_traced_are_refused_in_words():
    make = lambda each: thresholds.exponential(bits=8, epsilon=each.epsilon)  # noqa: E731
    with pytest.raises(TypeError, match="epsilon must be a known number"):
        jax.jit(lambda e: direct_sum.direct_sum(make, k=2, epsilon=e).learner.epsilon)(1.0)
    sanitizer = point_sanitizers.histogram(bits=8, n=10, epsilon=0.1, delta=1e-7)
    with pytest.raises(TypeError, match="delta must be a known number"):
        jax.jit(
            lambda d: (
                generic.learner(
                    sanitizer=sanitizer, concepts=generic.points(bits=8), k=2, epsilon=2.0, delta=d
                ).each_epsilon
            )
        )(1e-6)


def test_what_some_concepts_left_open_hides_the_others():
    """One concept's learner gives up: the status is BOTTOM and nothing of the other one shows."""
    summed = direct_sum.direct_sum(lambda each: Fickle(epsilon=each.epsilon), k=2, epsilon=1.0)
    outcome = summed(jax.random.key(0), MultiSample.create(wide.from_ints([1, 2], 8), [[0, 1], [0, 1]]))
    assert int(outcome.status) == Status.BOTTOM and outcome.info["status"].tolist() == [Status.OK, Status.BOTTOM]
    assert outcome.hypothesis.tolist() == [[0], [0]]


@frozen
class Fickle(ThresholdLearner):
    """Releases a threshold if the first label is 0, else nothing."""

    bits: int = 8
    epsilon: float
    limbs: int = static(default=1)

    def prepare(self, sample):
        return sample

    def draw(self, key, sample):
        return jnp.full((1,), 7, jnp.uint32), sample.y[0] == 0, {}

    def guarantee(self):
        return Guarantee(float(self.epsilon), 0.0, REPLACE_ONE)


def test_outputs_and_chances_that_are_none_are_refused_by_name():
    learner = direct_sum.of(thresholds.exponential(bits=8, epsilon=1.0), k=2)
    sample = MultiSample.create(wide.from_ints([1, 2], 8), [[0, 1], [1, 1]])
    for output in (None, "x", 3, (1,)):
        with pytest.raises(TypeError, match="output must hold one output for each of the 2 concepts"):
            learner.log_prob(sample, output)
    with pytest.raises(TypeError, match="beta must be a real number, got None"):
        learner.sample_size(alpha=0.1, beta=None)


def test_promises_are_converted_before_they_are_composed():
    """Under REPLACE_ONE two learners cost twice what one does; the sum as a group of two steps costs e^epsilon more in delta."""
    each = Guarantee(1.0, 1e-6, ADD_OR_REMOVE_ONE)

    class Learner:
        bits, predict, __call__ = 8, None, None

        def guarantee(self):
            return each

    summed = direct_sum.of(Learner(), k=2)
    together = summed.guarantee_under(REPLACE_ONE)
    assert summed.guarantee() == Guarantee(2.0, 2e-6, ADD_OR_REMOVE_ONE)
    assert (
        together == basic({each.under(REPLACE_ONE): 2})
        and together.delta < 0.5 * summed.guarantee().under(REPLACE_ONE).delta
    )


@pytest.mark.thorough
def test_the_logarithm_of_an_improbable_draw_is_a_number():
    """P is below 1e-38, which no float32 holds."""
    many = direct_sum.of(thresholds.exponential(bits=16, epsilon=1.0), k=10)
    labels = [[(i + j) % 2 == 0 for i in range(10)] for j in range(3)]
    sample = MultiSample.create(wide.from_ints([5, 70, 900], 16), labels)
    drawn = many(jax.random.key(0), sample).hypothesis
    each = [float(many.learner.log_prob(sample.column(j), drawn[j])) for j in range(10)]
    np.testing.assert_allclose(many.log_prob(sample, drawn), sum(each), rtol=1e-5)
    assert sum(each) < -100
    one = Sample(x=wide.from_ints([5, 2**200], 256), y=[1, 0])
    for learner in (
        one_point.exponential(bits=256, epsilon=1.0),
        one_point.learn_points(bits=256, epsilon=1.0, delta=0.1),
    ):
        found = [float(learner.log_prob(one, learner(jax.random.key(seed), one).hypothesis)) for seed in range(4)]
        assert all(-190 < log_p <= 0 for log_p in found)
    wide_one = Sample(x=wide.from_ints([5, 2**1000], 1024), y=[1, 0])
    single = thresholds.exponential(bits=1024, epsilon=1.0)
    at = wide.from_ints([2**900], 1025)[0]
    # Right of 5 and left of 2^1000 nothing errs; of the others, 2^1024 - 2^1000, one example is wrong.
    log_total = np.logaddexp(1000 * np.log(2), 1024 * np.log(2) - 0.5)
    np.testing.assert_allclose(single.log_prob(wide_one, at), -log_total, rtol=1e-6)
    solver, points = (
        interior_point.exponential(bits=1024, epsilon=1.0),
        Points.create(wide.from_ints([5, 2**1000], 1024)),
    )
    assert -720 < float(solver.log_prob(points, wide.from_ints([2**900], 1024)[0])) < -690


@pytest.mark.parametrize("name", ["parity_learner", "elimination", "direct_sum"])
def test_what_learns_uniform_points_alone_learns_no_rows(name):
    """On rows that are all one point ParityLearner answers nothing, however many examples are drawn from them."""
    learners = {
        "parity_learner": lambda: many_parities.parity_learner(bits=4, k=2, epsilon=1.0, delta=0.01, beta=0.1),
        "elimination": lambda: many_parities.elimination(bits=4, k=2),
        "direct_sum": lambda: direct_sum.of(one_parity.exponential(bits=4, epsilon=1.0), k=2),
    }
    learner = learners[name]()
    n = learner.sample_size(alpha=0.1, beta=0.1)
    made = reductions.empirical(learner, n=n, rows=9 * n)
    with pytest.raises(ValueError, match="learner must learn any distribution"):
        made.sample_size(alpha=0.1, beta=0.1)


def test_a_class_of_ones_own_is_charged_for_its_own_dimension():
    @frozen
    class Rich(generic.ThresholdClass):
        vc = 7

    @frozen
    class Silent(generic.ThresholdClass):
        vc = None

    given = {"sanitizer": dense.blr(queries=dense.intervals(bits=2), rows=40, epsilon=0.5), "k": 2, "epsilon": 1.0}
    usual = generic.learner(**given, concepts=generic.thresholds(bits=2))
    rich, silent = (dataclasses.replace(usual, concepts=kind(**vars(usual.concepts))) for kind in (Rich, Silent))
    sizes = [learner.sample_size(alpha=0.5, beta=0.1) for learner in (usual, rich)]
    needed = given["sanitizer"].sample_size(alpha=0.1, beta=0.02)
    of_four = math.log(2**4)  # on the four points of the domain seven dimensions are all labellings
    assert sizes[1] == math.ceil(
        bounds.generic_learner(needed, 7, 2, 0.5, 0.1, float(rich.each_epsilon), log_hypotheses=of_four)
    )
    assert sizes[1] > sizes[0]
    with pytest.raises(ValueError, match="concepts must tell their VC dimension"):
        silent.sample_size(alpha=0.5, beta=0.1)


def test_nothing_is_composed_by_ranges_for_a_learner_that_has_none():
    """Ten runs of (0.3, 0.001) are no (2.04, 1e-6), though ten exponential mechanisms of 0.3 are."""
    built = exponentials(k=10, accountant="bounded")
    other = thresholds.rec_concave(bits=64, epsilon=0.3, delta=1e-3, alpha=0.1, depth=2)
    assert not built.guarantee().is_none and dataclasses.replace(built, learner=other).guarantee().is_none


def test_label_private_learners_compose_by_their_ranges():
    """They are exponential mechanisms, as their dichotomies are public: all losses lie in an interval of length epsilon."""
    concepts = label_private.thresholds(bits=2)

    def make(each):
        return label_private.label_private(concepts=concepts, epsilon=each.epsilon)

    given = {"k": 20, "epsilon": 1.0, "delta": 1e-6, "relation": "REPLACE_LABEL"}
    bounded = direct_sum.direct_sum(make, **given, accountant="bounded")
    pure = direct_sum.direct_sum(make, **given, accountant="optimal", delta_share=0.0)
    assert bounded.guarantee().covers(1.0, 1e-6) and bounded.guarantee().relation == "REPLACE_LABEL"
    assert bounded.learner.epsilon > 1.4 * pure.learner.epsilon
    learner = make(Guarantee(2.0, 0.0, "REPLACE_LABEL"))
    x = wide.from_ints([0, 1, 1, 2], 2)
    labels = list(itertools.product((0, 1), repeat=4))
    laws = {y: np.asarray(learner.pmf(Sample(x=x, y=list(y)))) for y in labels}
    for y, other in itertools.combinations(labels, 2):
        if sum(map(int.__ne__, y, other)) == 1:
            losses = [math.log(p / q) for p, q in zip(laws[y], laws[other], strict=True) if p > 0]
            assert max(losses) - min(losses) <= 2.0 + 1e-5
