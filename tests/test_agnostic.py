"""Labels that are not those of a concept: exact errors, the best of the class and excess against brute force, and learners judged by it."""

import dataclasses
import itertools
import math
from typing import Any, NamedTuple

import builders
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from frequencies import FALSE_ALARM, p_value
from scipy import stats

import dpjax
from dpjax import bounds
from dpjax.concepts import agnostic, conjunctions, parities, points, rectangles, thresholds
from dpjax.data import pac
from dpjax.data.examples import Examples
from dpjax.data.multi_sample import MultiSample
from dpjax.domains import wide
from dpjax.learners import conjunctions as conjunction_learners
from dpjax.learners import label_private
from dpjax.learners import parities as one_parity
from dpjax.learners import points as one_point
from dpjax.learners import thresholds as one_threshold
from dpjax.multi import direct_sum, generic
from dpjax.sanitizers import points as sanitizer

pytestmark = pytest.mark.usefixtures("no_key_twice")

BITS = 3
HEAVY, MASSES = [1, 2, 5, 6], [0.1, 0.4, 0.2, 0.3]


class Case(NamedTuple):
    """A class over X_3 (X_2^2 for rectangles).

    Attributes:
      laws: three with the same points and other targets; targets: those in plain terms.
      masses: of every point. concepts: all of the class. says: (concept, point) -> label.
      made: concepts as a stacked pytree of hypotheses.
    """

    laws: list[Any]
    targets: list[Any]
    masses: dict[Any, float]
    concepts: list[Any]
    says: Any
    made: Any


def _thresholds() -> Case:
    targets = [0, 3, 6]
    laws = [thresholds.point_masses(bits=BITS, points=HEAVY, masses=MASSES, target=t) for t in targets]
    masses = dict(zip(HEAVY, MASSES, strict=True))
    every = list(range(9))
    return Case(laws, targets, masses, every, lambda j, x: x < j, wide.from_ints(every, BITS + 1))


def _uniform_thresholds() -> Case:
    targets = [1, 4, 8]
    laws = [thresholds.uniform(bits=BITS, target=t) for t in targets]
    every = list(range(9))
    masses = dict.fromkeys(range(8), 1 / 8)
    return Case(laws, targets, masses, every, lambda j, x: x < j, wide.from_ints(every, BITS + 1))


def _points() -> Case:
    targets = [2, 3, 5]
    at: Any = {"bits": BITS, "points": HEAVY, "masses": MASSES, "background": 0.25}
    laws = [points.point_masses(target=t, **at) for t in targets]
    heavy = dict(zip(HEAVY, MASSES, strict=True))
    masses = {x: 0.75 * heavy.get(x, 0.0) + 0.25 / 8 for x in range(8)}
    return Case(
        laws, targets, masses, [*range(8), None], lambda c, x: x == c, points.point([*range(8), None], bits=BITS)
    )


def _parities() -> Case:
    targets = [5, 3, 6]
    laws = [parities.uniform_single(bits=BITS, target=t) for t in targets]
    masses = dict.fromkeys(range(8), 1 / 8)
    every = list(range(8))
    return Case(laws, targets, masses, every, lambda v, x: (v & x).bit_count() % 2 == 1, wide.from_ints(every, BITS))


def _rectangles() -> Case:
    targets = [((0, 2), (1, 2)), ((1, 3), (0, 1)), ((2, 2), (0, 3))]
    lows, highs = ([[side[i] for side in box] for box in targets] for i in (0, 1))
    laws = [rectangles.uniform(bits=2, low=low, high=high) for low, high in zip(lows, highs, strict=True)]
    sides = list(itertools.combinations_with_replacement(range(4), 2))
    every: list[Any] = [*itertools.product(sides, repeat=2), ((3, 0), (3, 0))]
    masses = dict.fromkeys(itertools.product(range(4), repeat=2), 1 / 16)
    low, high = (wide.from_ints([side[i] for box in every for side in box], 2).reshape(-1, 2, 1) for i in (0, 1))

    def says(box: Any, x: Any) -> bool:
        return all(a <= c <= b for (a, b), c in zip(box, x, strict=True))

    return Case(laws, targets, masses, every, says, rectangles.Rectangle(low=low, high=high))


CASES = {
    "thresholds": _thresholds,
    "uniform thresholds": _uniform_thresholds,
    "points": _points,
    "parities": _parities,
    "rectangles": _rectangles,
}
WEIGHTS = [0.3, 0.3, 0.4]
WAYS = ["noisy", "mixed"]


def over_pairs(names: Any, slow: tuple[str, ...], quick: tuple[str, ...] = ("parities-mixed",)) -> Any:
    """Each class in both ways, most mixtures as thorough tests; those that are slow or much like others: -m slow."""
    pairs = itertools.product(names, WAYS)

    def case(name: str, way: str) -> Any:
        if {name, f"{name}-{way}"} & set(slow):
            return builders.slow(name, way)
        return (name, way) if way == "noisy" or f"{name}-{way}" in quick else builders.thorough(name, way)

    return pytest.mark.parametrize(("name", "way"), [case(*pair) for pair in pairs])


def made(case: Case, way: str) -> tuple[Any, Any]:
    """(The law, P[label 1 | x])."""
    if way == "noisy":
        share = [0.875 if case.says(case.targets[0], x) else 0.125 for x in case.masses]
        return agnostic.noisy(case.laws[0], flip=0.125), dict(zip(case.masses, share, strict=True))
    labels = {x: sum(w * case.says(t, x) for w, t in zip(WEIGHTS, case.targets, strict=True)) for x in case.masses}
    return agnostic.mixed(case.laws, weights=WEIGHTS), labels


def brute_force(case: Case, ones: dict[Any, float]) -> np.ndarray:
    """The error of every concept."""
    wrong = [
        [mass * (1 - ones[x] if case.says(c, x) else ones[x]) for x, mass in case.masses.items()] for c in case.concepts
    ]
    return np.array([math.fsum(row) for row in wrong])


@jax.jit
def told(law: Any, hypotheses: Any) -> tuple[Any, Any, Any]:
    return jax.vmap(law.error)(hypotheses), law.best(), jax.vmap(law.excess)(hypotheses)


@over_pairs(CASES, ("rectangles-mixed",))
def test_errors_and_the_best_of_the_class_are_exact(name: str, way: str) -> None:
    case = CASES[name]()
    law, ones = made(case, way)
    error, best, excess = map(np.asarray, told(law, case.made))
    expected = brute_force(case, ones)
    np.testing.assert_allclose(error, expected, atol=2e-6)
    assert float(best) == pytest.approx(expected.min(), abs=2e-6) and expected.min() > 0.04
    np.testing.assert_allclose(excess, expected - expected.min(), atol=2e-6)


@jax.jit
def near_the_best(law: Any, alpha: Any) -> Any:
    return law.within_excess(alpha)


@jax.jit
def held(event: Any, hypotheses: Any) -> Any:
    return event.holds(hypotheses)


@over_pairs(CASES, ("uniform thresholds", "rectangles"), ("thresholds-mixed", "points-mixed", "parities-mixed"))
def test_the_event_holds_what_is_near(name: str, way: str) -> None:
    """In whatever form the law gives it: an interval, a set of points, or the hypotheses themselves."""
    case = CASES[name]()
    law, ones = made(case, way)
    expected = brute_force(case, ones)
    for alpha in (0.0507, 0.2113, 0.3331):
        event, near = near_the_best(law, alpha), expected - expected.min() <= alpha + 1e-6
        if isinstance(event, tuple):
            low, high = (wide.to_ints(np.atleast_2d(end))[0] for end in event)
            found = [low <= c < high for c in case.concepts]
        elif isinstance(event, dpjax.domains.events.PointSet):
            names = {x: g for x, w, g in zip(wide.to_ints(event.points), event.where, event.good, strict=True) if w}
            found = [bool(event.zero if c is None else names.get(c, event.others)) for c in case.concepts]
        else:
            found = held(event, case.made)
        np.testing.assert_array_equal(found, near)


@over_pairs(CASES, ("uniform thresholds", "rectangles"))
def test_draws_follow_the_law(name: str, way: str) -> None:
    """The joint law of point and label, in 4,095 rows of which 4,000 count; another noise is refused."""
    case = CASES[name]()
    law, ones = made(case, way)
    sample = jax.device_get(law.sample(jax.random.key(5), 4095, 4000))
    axes = 2 if isinstance(sample, Examples) else 1
    xs = sample.x.reshape(4095, axes, -1)[:4000, :, -1]
    every = list(case.masses)
    place = {x if isinstance(x, tuple) else (x,): i for i, x in enumerate(every)}
    codes = np.array([place[tuple(map(int, x))] for x in xs]) * 2 + sample.y[:4000]
    counts = np.bincount(codes, minlength=2 * len(every))
    for flip, follows in ((0.0, True), (0.15, False)):
        share = [ones[x] * (1 - flip) + (1 - ones[x]) * flip for x in every]
        expected = [
            m * p for x, s in zip(every, share, strict=True) for m, p in ((case.masses[x], 1 - s), (case.masses[x], s))
        ]
        assert (p_value(counts, 4000 * np.array(expected)) > FALSE_ALARM) == follows


def test_noisy_examples_come_in_the_order_in_which_they_were_drawn() -> None:
    """A threshold's law draws in increasing order; with noise nothing is promised, so the first examples must be a random part."""
    sample = agnostic.noisy(thresholds.log_uniform(bits=20), flip=0.1).sample(jax.random.key(0), 255, 255)
    xs = wide.to_ints(sample.x)
    assert not sample.ordered and abs(np.mean(np.diff(xs) > 0) - 0.5) < 0.15


# ------------------------------------------------------------------------------------------------------------ k labels


def test_k_labels_are_flipped_one_by_one() -> None:
    """For 40 thresholds: every column is flipped as often as it should be, independently of the first one, and bits past k stay 0."""
    base = thresholds.several(thresholds.uniform(bits=8, target=0), bits=8, targets=[100 + j for j in range(40)])
    law = agnostic.noisy(base, flip=0.25)
    sample = law.sample(jax.random.key(1), 4095, 4095)
    truth = np.array(wide.to_ints(sample.x))[:, None] < np.arange(100, 140)[None]
    flips = np.asarray(sample.labels) != truth
    assert np.abs(flips.mean(axis=0) - 0.25).max() < 5 * math.sqrt(0.1875 / 4095)
    together = (flips[:, :1] & flips[:, 1:]).mean(axis=0)
    assert np.abs(together - 0.0625).max() < 5 * math.sqrt(0.0625 / 4095)
    assert not (np.asarray(sample.y)[:, 1] >> 8).any() and not sample.realizable
    np.testing.assert_allclose(law.excesses(base.targets), 0.0)
    apart = np.abs(np.arange(40) - np.arange(40)[::-1]) / 256
    np.testing.assert_allclose(law.errors(np.asarray(base.targets)[::-1].copy()), 0.25 + 0.5 * apart, rtol=1e-6)


def _k(name: str) -> list[Any]:
    """Three laws of two label columns."""
    pairs = [(1, 6), (3, 3), (6, 2)]
    if name == "points":
        return [points.point_masses(bits=BITS, points=HEAVY, masses=MASSES, target=list(pair)) for pair in pairs]
    if name == "parities":
        return [parities.uniform(bits=BITS, targets=pair) for pair in pairs]
    base = thresholds.point_masses(bits=BITS, points=HEAVY, masses=MASSES, target=0)
    return [thresholds.several(base, bits=BITS, targets=pair) for pair in pairs]


@pytest.mark.slow
@over_pairs(["thresholds", "points", "parities"], ("thresholds-mixed", "points-noisy"))
def test_k_labels_are_judged_column_by_column(name: str, way: str) -> None:
    """Every column is judged as by the law of a single concept."""
    laws = _k(name)
    law: Any = agnostic.noisy(laws[0], flip=0.1) if way == "noisy" else agnostic.mixed(laws, weights=WEIGHTS)
    columns = list(zip(*[(1, 6), (3, 3), (6, 2)], strict=True))
    hypotheses: Any = points.point([5, 3], bits=BITS) if name == "points" else laws[1].targets
    found = np.asarray(law.excesses(hypotheses))
    for j, targets in enumerate(columns):
        if name == "points":
            singles: list[Any] = [
                points.point_masses(bits=BITS, points=HEAVY, masses=MASSES, target=t) for t in targets
            ]
        elif name == "parities":
            singles = [parities.uniform_single(bits=BITS, target=t) for t in targets]
        else:
            singles = [thresholds.point_masses(bits=BITS, points=HEAVY, masses=MASSES, target=t) for t in targets]
        one: Any = agnostic.noisy(singles[0], flip=0.1) if way == "noisy" else agnostic.mixed(singles, weights=WEIGHTS)
        hypothesis = jax.tree.map(lambda leaf, j=j: leaf[j], hypotheses)
        assert float(one.excess(hypothesis)) == pytest.approx(float(found[j]), abs=2e-6)
        if name != "parities" or way == "noisy":
            event, single = law.within_excess(0.2), one.within_excess(0.2)
            for leaf, expected in zip(jax.tree.leaves(event), jax.tree.leaves(single), strict=True):
                np.testing.assert_array_equal(leaf[j], expected)
    assert isinstance(law.sample(jax.random.key(0), 7, 7), MultiSample)


# ------------------------------------------------------------------------------------------------ learners judged by it


LEARNERS = {
    "thresholds": one_threshold.exponential(bits=BITS, epsilon=1.0),
    "points": one_point.exponential(bits=BITS, epsilon=1.0),
    "parities": one_parity.exponential(bits=BITS, epsilon=1.0),
    "rectangles": label_private.label_private(concepts=label_private.rectangles(bits=2, axes=2, most=12), epsilon=1.0),
}


@pytest.mark.thorough
@over_pairs(LEARNERS, ("rectangles", "thresholds", "points"))
def test_law_and_trials_agree_on_excess(name: str, way: str) -> None:
    """The law of "excess <= alpha" given a sample is the sum over the pmf of brute force, and trials fail as often as it says."""
    case = CASES[name]()
    law, ones = made(case, way)
    errors, alpha = brute_force(case, ones), 0.3507 if name == "rectangles" else 0.1707
    experiment = pac.Experiment(learner=LEARNERS[name], distribution=law, n=12, alpha=alpha, capacity=15)
    failure = float(jax.jit(pac.failure)(jax.random.key(3), experiment))
    sample = pac.draw(jax.random.key(3), experiment)[1]
    p = np.asarray(LEARNERS[name].pmf(sample))[:-1]
    if name == "rectangles":
        places = [((a * 4 + b) * 4 + c) * 4 + d for (a, b), (c, d) in case.concepts[:-1]]
        p = p[[*places, 4**4]]
    expected = p[errors - errors.min() > alpha].sum()
    assert 0.001 < expected < 0.99 and failure == pytest.approx(expected, rel=1e-4)
    if name == "rectangles":
        return  # as many boxes as these take a minute
    draws = jax.random.split(jax.random.key(4), 2048)
    laws = np.asarray(jax.jit(jax.vmap(pac.failure, in_axes=(0, None)))(jax.random.clone(draws), experiment), float)
    failed = np.asarray(jax.jit(jax.vmap(pac.trial, in_axes=(0, None)))(draws, experiment)["failed"])
    assert abs(failed.mean() - laws.mean()) < 4.3 * math.sqrt(0.25 / 2048)


@pytest.mark.slow  # that it searches: `test_sweep`; excess: the tests before
def test_least_n_searches_for_excess() -> None:
    """With noise more examples are needed."""
    curve = dpjax.least_n(
        {"exponential": lambda flip: one_threshold.exponential(bits=8, epsilon=1.0)},
        distribution=lambda flip: agnostic.noisy(thresholds.log_uniform(bits=8), flip=flip),
        over={"flip": [0.0, 0.3]},
        alpha=0.1,
        beta=0.2,
        draws=16,
        rtol=0.1,
    )
    clean, noise = (row["n"] for row in curve.to_rows())
    assert {row["by"] for row in curve.to_rows()} == {"law"} and 1.5 * clean < noise


@pytest.mark.slow  # of one column by column: the test before
def test_k_learners_are_judged_by_excess() -> None:
    """GenericLearner by its law given the sanitizer's draw, a direct sum by its law; both fail rarely with enough examples."""
    at: Any = {"bits": 8, "points": [3, 50, 200], "masses": [0.5, 0.3, 0.2]}
    laws = [points.point_masses(target=list(pair), **at) for pair in ((3, 50), (50, 200))]
    law = agnostic.mixed(laws, weights=[2.0, 1.0])
    n = 1500
    many = generic.learner(
        sanitizer=sanitizer.histogram(bits=8, n=n, epsilon=0.5, delta=1e-3),
        concepts=generic.points(bits=8, most=7),
        k=2,
        epsilon=1.5,
        delta=1e-2,
    )
    summed = direct_sum.direct_sum(lambda each: one_point.exponential(bits=8, epsilon=each.epsilon), k=2, epsilon=1.0)
    for learner in (many, summed):
        experiment = pac.Experiment(learner=learner, distribution=law, n=n, alpha=0.1, capacity=2047)
        assert float(jax.jit(pac.failure)(jax.random.key(0), experiment)) < 1e-3
        fewer = dataclasses.replace(experiment, n=3, capacity=3)
        assert float(jax.jit(pac.failure)(jax.random.key(0), fewer)) > 0.1


@pytest.mark.slow
@pytest.mark.parametrize("split", [builders.slow(False), True])
def test_label_private_learners_are_agnostic_at_the_stated_number(split: bool) -> None:
    """The exact failure on excess, three samples each of a fifth of the labels wrong and of labels outside the class."""
    alpha = beta = 0.3
    unlabelled = math.ceil(bounds.realizable(1, alpha / 4, beta / 4)) if split else None
    algorithm = label_private.label_private(
        concepts=label_private.thresholds(bits=20), epsilon=1.0, unlabelled=unlabelled
    )
    m = algorithm.agnostic_sample_size(alpha=alpha, beta=beta)
    base = [thresholds.uniform(bits=20, target=t) for t in (2**18, 3 * 2**18)]
    laws = [agnostic.noisy(thresholds.log_uniform(bits=20), flip=0.2), agnostic.mixed(base, weights=[0.45, 0.55])]
    for law, seed in itertools.product(laws, range(3)):
        sample = law.sample(jax.random.key(seed), (1 << m.bit_length()) - 1, m)
        assert float(algorithm.probability(sample, law.within_excess(alpha))[1]) <= beta


def test_sizes_of_agnostic_label_privacy_pay_for_every_event() -> None:
    """Each event of the proofs at its share of beta."""
    a = b = 0.1
    for epsilon in (0.01, 1.0):
        m = bounds.label_private_agnostic_whole(1, a, b, epsilon)
        log = math.log(m + 1)
        assert math.sqrt(2 * log / m) + 2 * math.sqrt(math.log(4 / b) / (2 * m)) <= a / 2 * (1 + 1e-9)
        assert (m + 1) * math.exp(-epsilon * a * m / 4) <= b / 2
        n = math.ceil(bounds.realizable(1, a / 4, b / 4))
        r = bounds.label_private_agnostic(1, a, b, epsilon) - n
        assert 2 * (n + 1) * math.exp(-2 * r * (a / 4) ** 2) <= b / 2 * (1 + 1e-9)
        assert (n + 1) * math.exp(-epsilon * a * r / 8) <= b / 4 * (1 + 1e-9)
    with pytest.raises(ValueError, match="unlabelled must be >="):
        bounds.label_private_agnostic(1, a, b, 1.0, unlabelled=10)


def test_at_flip_one_half_all_hypotheses_are_best() -> None:
    law = agnostic.noisy(thresholds.uniform(bits=3, target=5), flip=0.5)
    for alpha in (0.0, 0.1):
        assert wide.to_ints(np.stack(near_the_best(law, alpha))) == [0, 9]


@pytest.mark.thorough
def test_what_is_near_in_a_mixture_of_uniform_laws_is_an_interval() -> None:
    """In the form that threshold learners take; for two label columns."""
    base = thresholds.uniform(bits=64, target=0)
    # Best are 1/2 and 7/8 of the range: the excess rises by 1/2 on the left up to the other target, by 1 elsewhere.
    pairs = [(2**62, 2**61), (2**63, 7 * 2**61)]
    law = agnostic.mixed([thresholds.several(base, bits=64, targets=pair) for pair in pairs], weights=[1.0, 3.0])
    low, high = ([x / 2**64 for x in wide.to_ints(end)] for end in law.within_excess(0.1875))
    np.testing.assert_allclose([low, high], [[0.1875, 0.5], [0.6875, 1.0]], atol=1e-6)


def test_where_every_threshold_is_near_the_last_one_is_too() -> None:
    """That of the range's end, which labels every point 1."""
    laws = [thresholds.uniform(bits=3, target=target) for target in (2, 6)]
    low, high = agnostic.mixed(laws, weights=[1.0, 1.0]).within_excess(1.0)
    assert wide.to_ints(np.stack([low, high])) == [0, 9]


def test_where_the_least_threshold_is_near_none_beyond_the_first_point_is() -> None:
    """The tests before have no such case; this one uses the same program."""
    low, high = agnostic.mixed(_thresholds().laws, weights=[0.9, 0.05, 0.05]).within_excess(0.01)
    assert wide.to_ints(jnp.stack([low, high])) == [0, HEAVY[0] + 1]


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: agnostic.noisy(thresholds.uniform(bits=3, target=1), flip=0.6), ValueError, "flip"),
        (lambda: agnostic.noisy(3, flip=0.1), TypeError, "law must be a distribution"),
        (lambda: agnostic.mixed([thresholds.log_uniform(bits=8)] * 2, weights=[1, 1]), TypeError, "laws must be"),
        (
            lambda: agnostic.mixed([thresholds.uniform(bits=b, target=1) for b in (3, 4)], weights=[1, 1]),
            ValueError,
            "laws must differ in their targets alone",
        ),
        (lambda: agnostic.mixed(_parities().laws, weights=[1, 1]), ValueError, "weights must have one entry"),
        (lambda: agnostic.mixed(_parities().laws, weights=[1, 0, 1]), ValueError, "weights must be > 0"),
        (lambda: agnostic.mixed(_parities().laws, weights=[1.7e308] * 3), ValueError, "weights must be <="),
        (lambda: agnostic.mixed(_parities().laws, weights=[1, 1e-12, 1]), ValueError, "weights must each be at least"),
        (
            lambda: agnostic.mixed(
                [rectangles.uniform(bits=8, low=[face] * 4, high=[100] * 4) for face in range(4)], weights=[1] * 4
            ),
            ValueError,
            "laws must leave at most 16384 boxes",
        ),
        (
            lambda: agnostic.noisy(_parities().laws[0], flip=0.1).within(0.2),
            TypeError,
            "ask within_excess",
        ),
    ],
)
def test_bad_laws_are_refused_by_name(make: Any, error: Any, message: str) -> None:
    with pytest.raises(error, match=message):
        make()


def test_the_target_of_a_base_of_several_thresholds_tells_no_laws_apart() -> None:
    laws = [
        thresholds.several(thresholds.uniform(bits=4, target=base), bits=4, targets=[target])
        for base, target in [(0, 1), (3, 2)]
    ]
    assert agnostic.mixed(laws, weights=WEIGHTS[:2]).sample(jax.random.key(0), 7, 5).k == 1


@pytest.mark.thorough
def test_labels_of_assignments_are_flipped_one_by_one() -> None:
    law = agnostic.noisy(conjunctions.product(bits=4, target=[0, 3]), flip=0.125)
    data = law.sample(jax.random.key(0), 2**14, 2**14 - 5)
    right = conjunctions.label(law.base.target, data.x, disjunction=False)
    flips = np.unpackbits(np.asarray(right ^ data.y).view(np.uint8), bitorder="little")
    counts = np.bincount(flips.reshape(-1, 8).sum(axis=1), minlength=9)  # of eight neighbours: one by one
    expected = len(flips) / 8 * stats.binom.pmf(np.arange(9), 8, 0.125)
    merged = [np.append(each[:4], each[4:].sum()) for each in (counts, expected)]
    assert p_value(*merged) > FALSE_ALARM
    other = conjunctions.Literals(literals=jnp.array([0], jnp.int32), disjunction=False)
    assert float(law.excess(other)) == 0.75 * 0.25 and float(law.error(other)) == 0.125 + 0.75 * 0.25
    learner = conjunction_learners.exponential(bits=4, k=2, epsilon=1.0)
    few = law.sample(jax.random.key(1), 64, 40)
    law_of_success = learner.probability(few, law.within_excess(0.1))
    p = np.asarray(learner.pmf(few))[:-1]
    excess = np.asarray(jax.vmap(law.excess)(jax.vmap(learner.output)(jnp.arange(len(p), dtype=jnp.int32))))
    np.testing.assert_allclose(law_of_success[0], p[excess <= 0.1].sum(), rtol=1e-5)


def test_what_is_no_excess_is_refused() -> None:
    at = {"bits": 8, "points": [10, 20, 30], "masses": [1.0, 1.0, 2.0]}
    mixture = agnostic.mixed([thresholds.point_masses(target=t, **at) for t in (15, 35)], weights=[1.0, 3.0])
    for law in (agnostic.noisy(thresholds.log_uniform(bits=8), flip=0.1), mixture):
        for alpha in (-1.0, math.nan):
            with pytest.raises(ValueError, match="alpha must be"):
                law.within_excess(alpha)


def test_the_event_of_a_noisy_concept_holds_the_hypotheses_whose_excess_is_exactly_alpha():
    """alpha / (1 - 2 flip) is rounded, and so is the excess: at flip = 0.08 and alpha = 0.63 one was left out."""

    @jax.jit
    @jax.vmap
    def both(flip, alpha):
        law = agnostic.Noisy(base=thresholds.uniform(bits=3, target=0), flip=flip)
        low, high = law.within_excess(alpha)
        each = jnp.arange(9, dtype=jnp.uint32)
        inside = (each >= low[-1]) & (each < high[-1])
        return jax.vmap(law.excess)(wide.from_ints(range(9), 4)) <= alpha, inside

    flip, alpha = np.meshgrid(np.arange(51) / 100, np.arange(101) / 100)
    told, inside = both(jnp.asarray(flip.ravel(), float), jnp.asarray(alpha.ravel(), float))
    np.testing.assert_array_equal(told, inside)


def test_an_excess_is_in_its_own_event_whatever_type_the_flip_has() -> None:
    excess = jax.jit(lambda law, hypothesis: law.excess(hypothesis))
    for flip in (0.08, 0.3, 0.49):
        law = agnostic.noisy(
            thresholds.point_masses(bits=8, points=range(10, 26), masses=[1.0] * 16, target=18), flip=flip
        )
        for output in range(18, 27):
            low, high = law.within_excess(float(excess(law, wide.from_ints([output], 9)[0])))
            assert wide.to_ints(low)[0] <= output < wide.to_ints(high)[0], (flip, output)
