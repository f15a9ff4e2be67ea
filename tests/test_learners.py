"""Threshold learners: exact laws against the naive reference, samplers against laws, gradients, compilation, refusals."""

import dataclasses
import functools
import itertools
import math
import types
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from builders import mixed_sample, sample_of, slow, thorough
from frequencies import FALSE_ALARM
from scipy import stats

from dpjax import Points, Sample, Status, bounds, fingerprinting, mechanisms
from dpjax.concepts import thresholds as concept
from dpjax.core import random
from dpjax.data import algorithm
from dpjax.data.fitting import fitted
from dpjax.data.sample import bucket
from dpjax.domains import events, wide
from dpjax.learners import pac, points, thresholds
from dpjax.mechanisms import laplace
from dpjax.optimizers import interior_point
from dpjax.verify.plain import rec_concave as reference
from dpjax.verify.plain.binary_search import binary_search_law


@dataclasses.dataclass(frozen=True)
class Kind:
    """A way to build one learner; for the tests over all of them."""

    name: str
    create: Callable[..., Any]  # (epsilon) to a learner
    epsilon: float
    private: bool = True
    bits: int = 6


def _rec_concave(calibration: str) -> Callable[..., Any]:
    return lambda epsilon: thresholds.rec_concave(
        bits=6, epsilon=epsilon, delta=0.2, alpha=0.8, depth=2, calibration=calibration
    )


KINDS = (
    Kind("erm", lambda epsilon: thresholds.erm(bits=6), 1.0, private=False),
    Kind("exponential", lambda epsilon: thresholds.exponential(bits=6, epsilon=epsilon), 0.6),
    Kind("binary_search", lambda epsilon: thresholds.binary_search(bits=6, epsilon=epsilon), 3.0),
    Kind("binary_search_delta", lambda e: thresholds.binary_search(bits=6, epsilon=e, delta=0.1), 2.0),
    Kind("rec_concave", _rec_concave("proved"), 5.0),
    Kind("rec_concave_printed", _rec_concave("printed"), 5.0),
)
SIDES = ("left", "right")  # how many examples are below a midpoint, and how many at it or below
SLOW = ("erm", "binary_search_delta", "rec_concave_printed")  # much like another one
SIMPLE = (*SLOW, "exponential")  # what RecConcave does too


def over(kinds: Any, slow: tuple[str, ...] = ()) -> Any:
    """One test per learner."""
    marked = [pytest.param(k, id=k.name, marks=[pytest.mark.slow] if k.name in slow else []) for k in kinds]
    return pytest.mark.parametrize("kind", marked)


PRIVATE = [kind for kind in KINDS if kind.private]


SINGLE = mixed_sample()
ERROR = 0.3


# --------------------------------------------------------------------------------------------------- laws: reference


@dataclasses.dataclass(frozen=True)
class Setting:
    """Which learner meets the reference: the widths share limbs and levels, so one program serves all cases."""

    widths: tuple[int, ...]
    depth: int
    calibration: str
    cases: int
    scale: float = 1.0  # multiplies epsilon, so that success is neither nearly certain nor hopeless


SETTINGS = {
    "narrow": Setting((6, 16, 31), 2, "proved", 24),
    "narrow-printed": Setting((6, 16, 31), 2, "printed", 24),
    "one-level": Setting((4, 6, 16, 31), 1, "proved", 16, 1 / 40),
    "base-case": Setting((1, 2, 4, 5), 3, "printed", 16, 1 / 5),
    "two-limbs": Setting((32,), 3, "proved", 8),
    "three-levels": Setting((33,), 3, "proved", 8),
    "two-limbs-printed": Setting((32, 33), 2, "printed", 8),
    "wide": Setting((64,), 3, "printed", 8, 2.0),
    "huge": Setting((1024,), 2, "proved", 6, 12.0),
    "huge-three-levels": Setting((1024,), 3, "printed", 6, 60.0),
}


@dataclasses.dataclass(frozen=True)
class Case:
    xs: list[int]
    ys: list[int]
    bits: int
    error: float
    epsilon: float
    delta: float
    alpha: float


def random_case(rng: np.random.Generator, bits: int, n_max: int) -> Case:
    """Clustered points at all distances from a target, labels right, noisy or arbitrary."""
    n = int(rng.integers(40, n_max))
    target = 1 << (bits - 1)
    far = [int(2 ** (u % 1) * 2**30) << int(u) >> 30 for u in rng.uniform(0, bits - 1, n)]
    sides = rng.choice([-1, 1], n).tolist()
    points = [min(max(target + side * offset, 0), 2**bits - 1) for side, offset in zip(sides, far, strict=True)]
    xs = [points[i] for i in rng.integers(0, rng.choice([5, n]), n)]
    flip = rng.random(n) < rng.choice([0.0, 0.05, 0.2, 0.5])
    ys = [int((x < target) ^ bool(f)) for x, f in zip(xs, flip, strict=True)]
    best = max(reference.threshold_quality(xs, ys)[1])
    # Between two values of the error; one in four sits on a value, where the comparison has to be exact.
    wrong = n - best + int(rng.integers(0, max(2, n // 8)))
    error = wrong / n if rng.random() < 0.25 else (wrong + 0.5) / n
    epsilon, delta = float(rng.choice([2.0, 4.0, 8.0, 50.0])), float(rng.choice([0.01, 0.2]))
    return Case(xs, ys, bits, error, epsilon, delta, float(rng.choice([0.3, 0.8])))


def reference_law(case: Case, setting: Setting) -> tuple[float, float]:
    """(success, failure), neither computed from the other."""
    law = reference.learn_thresholds_law(
        case.xs, case.ys, case.bits, case.epsilon, case.delta, case.alpha, setting.depth, setting.calibration
    )
    good = reference.good_thresholds(case.xs, case.ys, case.bits, case.error)
    edges = [(-1, -1), *good, (2**case.bits + 1, 0)]
    bad = [(a[1] + 1, b[0] - 1) for a, b in itertools.pairwise(edges) if a[1] + 1 <= b[0] - 1]
    return sum(reference.mass(law, *gap) for gap in good), law[1] + sum(reference.mass(law, *gap) for gap in bad)


@functools.cache
def reference_cases(name: str) -> tuple[list[Case], np.ndarray]:
    """Cases of a setting and their laws; shared by both precisions."""
    setting = SETTINGS[name]
    rng = np.random.default_rng(len(name))
    n_max = 80 if max(setting.widths) > 64 else 250
    cases = [random_case(rng, setting.widths[i % len(setting.widths)], n_max) for i in range(setting.cases)]
    cases = [dataclasses.replace(case, epsilon=setting.scale * case.epsilon) for case in cases]
    return cases, np.array([reference_law(case, setting) for case in cases])


def computed(case: Case, setting: Setting) -> list[float]:
    learner = thresholds.rec_concave(
        bits=case.bits,
        epsilon=case.epsilon,
        delta=case.delta,
        alpha=case.alpha,
        depth=setting.depth,
        calibration=setting.calibration,
    )
    sample = sample_of(case.xs, case.ys, case.bits, 255)
    return [
        float(learner.success_probability(sample, error=case.error)),
        float(learner.failure_probability(sample, error=case.error)),
    ]


@pytest.mark.slow  # on one sample, to 1e-9: conformance
@pytest.mark.parametrize("double", [False, True])
@pytest.mark.parametrize("name", SETTINGS)
def test_rec_concave_law_agrees_with_the_reference(name: str, double: bool) -> None:
    cases, expected = reference_cases(name)
    with jax.enable_x64(double):
        found = np.array([computed(case, SETTINGS[name]) for case in cases])
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-9 if double else 1e-3)
    # Also where one of the two is tiny: relative, down to 1e-30.
    np.testing.assert_allclose(found, expected, rtol=1e-7 if double else 2e-3, atol=1e-30)
    np.testing.assert_allclose(found.sum(axis=1), 1, rtol=1e-9 if double else 1e-5)


@pytest.mark.parametrize("names", [["narrow"], pytest.param(list(SETTINGS), marks=pytest.mark.slow, id="all")])
def test_the_references_cases_are_neither_all_sure_nor_all_hopeless(names: list[str]) -> None:
    success, failure = np.concatenate([reference_cases(name)[1] for name in names]).T
    assert np.mean((success > 0.05) & (success < 0.95)) > 0.3
    assert np.mean((failure > 1e-30) & (failure < 1e-6)) > 0.04


@pytest.mark.slow  # on one sample: conformance
@pytest.mark.parametrize("double", [False, True])
def test_exponential_law_agrees_with_the_reference(double: bool) -> None:
    rng = np.random.default_rng(5)
    cases = [random_case(rng, bits, 250) for bits in (1, 4, 6, 16, 31) * 4]
    cases = [dataclasses.replace(case, epsilon=case.epsilon / 40) for case in cases]
    expected = [reference.exponential_success(c.xs, c.ys, c.bits, c.epsilon, c.error) for c in cases]
    with jax.enable_x64(double):
        found = [
            float(
                thresholds.exponential(bits=c.bits, epsilon=c.epsilon).success_probability(
                    sample_of(c.xs, c.ys, c.bits, 255), error=c.error
                )
            )
            for c in cases
        ]
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-9 if double else 1e-3)
    assert np.mean([0.05 < p < 0.95 for p in expected]) > 0.4


def naive_search_law(sample: Sample, bits: int, comparison_epsilon: float) -> np.ndarray:
    """P[j] of the noisy binary search by its plain twin."""
    n = int(sample.n_valid)
    xs, ys = wide.to_ints(sample.x)[:n], np.asarray(sample.y)[:n].tolist()
    return np.array(binary_search_law(xs, ys, bits, comparison_epsilon))


@pytest.mark.thorough
def test_binary_search_law_agrees_with_following_every_path(x64: None) -> None:
    learner = thresholds.binary_search(bits=6, epsilon=6.0)
    for seed in range(3):
        sample = mixed_sample(seed)
        law = naive_search_law(sample, 6, 6.0 / 7)
        starts, values = reference.threshold_quality(wide.to_ints(sample.x)[:50], np.asarray(sample.y)[:50].tolist())
        quality = np.array([values[np.searchsorted(starts, j, side="right") - 1] for j in range(65)])
        good = (50 - quality) / 50 <= ERROR
        found = [learner.success_probability(sample, error=ERROR), learner.failure_probability(sample, error=ERROR)]
        np.testing.assert_allclose(found, [law[good].sum(), law[~good].sum()], rtol=1e-9)


@jax.jit
def outcomes_of(learner: Any, keys: jax.Array, sample: Sample) -> Any:
    """One run for each key."""
    return jax.vmap(lambda key: learner(key, sample))(keys)


@jax.jit
@functools.partial(jax.vmap, in_axes=(None, None, 0, None, None, None))
def is_right(learner: Any, sample: Sample, key: jax.Array, turn: jax.Array, here: jax.Array, after: jax.Array) -> Any:
    """The coin of one turn of a binary search."""
    odds = learner._log_turn_at(learner.prepare(sample), here, after)
    return random.decide(random.exponential(jax.random.fold_in(key, turn)), *odds)


@pytest.mark.thorough
@pytest.mark.parametrize("bits", [thorough(1), 3, thorough(40), slow(60)])
@pytest.mark.parametrize("kind", ["anywhere", thorough("at one end"), thorough("one"), "labels of any kind"])
def test_a_binary_search_ends_where_all_of_its_turns_lead(bits: int, kind: str) -> None:
    """A run leaves its loop once no example lies among the candidates. Here every turn is made, in integers, with the same coins."""
    rng, top = np.random.default_rng(bits), 2**bits
    anywhere = sorted(map(int, top * rng.random(20)))
    middles = [top // 2] * 5 + [top // 2 - 1] * 4 + [top // 4] * 3
    given = {"at one end": [0] * 9 + [top - 1] * 2, "one": [1], "labels of any kind": anywhere[:8] + middles}
    xs = sorted(given.get(kind, anywhere))
    ys = rng.integers(0, 2, len(xs)).tolist() if kind == "labels of any kind" else [int(x < top // 3) for x in xs]
    epsilon = 20.0 if bits > 1 else 1.0
    learner, sample = thresholds.binary_search(bits=bits, epsilon=epsilon), sample_of(xs, ys, bits, 31)
    keys = jax.random.split(jax.random.key(8), 40)
    found = wide.to_ints(outcomes_of(learner, jax.random.clone(keys), sample).hypothesis)
    low, high = [0] * len(keys), [top] * len(keys)
    for turn in range(bits + 1):
        at = [[np.searchsorted(xs, (a + b) // 2, side=side) for a, b in zip(low, high, strict=True)] for side in SIDES]
        pairs = sorted(set(zip(*at, strict=True)))
        right = {
            pair: np.asarray(is_right(learner, sample, jax.random.clone(keys), np.int32(turn), *map(np.int32, pair)))
            for pair in pairs
        }
        for i, pair in enumerate(zip(*at, strict=True)):
            middle = (low[i] + high[i]) // 2
            if low[i] < high[i]:
                low[i], high[i] = (middle + 1, high[i]) if right[pair][i] else (low[i], middle)
    assert low == high == found
    assert len(set(found)) > 1


@pytest.mark.thorough
@pytest.mark.parametrize(("n", "epsilon"), [(40, 10.0), (50, 20.0), (63, 40.0)])
def test_tiny_failures_of_a_binary_search_come_out_right_in_float32(n: int, epsilon: float) -> None:
    xs = 10 + np.arange(n) % 44
    sample = sample_of(xs, xs < 40, 6, 63)
    learner = thresholds.binary_search(bits=6, epsilon=epsilon)
    law = naive_search_law(sample, 6, epsilon / 7)
    bad = np.array([np.sum((xs < j) != (xs < 40)) / n > 0.2 for j in range(65)])
    expected = law[bad].sum()
    assert expected < 1e-3
    np.testing.assert_allclose(learner.failure_probability(sample, error=0.2), expected, rtol=1e-4)


@pytest.mark.thorough
def test_rare_answers_of_a_binary_search_come_out_right_in_float32() -> None:
    """No probability is a difference from 1: neither that of a single threshold nor that of an interval."""
    xs = 10 + np.arange(40) % 44
    sample, learner = sample_of(xs, xs < 40, 6, 63), thresholds.binary_search(bits=6, epsilon=20.0)
    law = naive_search_law(sample, 6, 20 / 7)
    np.testing.assert_allclose(learner.pmf(sample)[:-1], law, rtol=1e-4, atol=1e-30)
    assert law[20:25].sum() < 1e-9
    np.testing.assert_allclose(learner.probability(sample, (20, 25))[0], law[20:25].sum(), rtol=1e-4)
    np.testing.assert_allclose(learner.probability(sample, (25, 25)), [0.0, 1.0])


@pytest.mark.slow
def test_large_samples_keep_three_digits_in_float32() -> None:
    rng = np.random.default_rng(6)
    n, bits = 16383, 31
    xs, ys = rng.integers(0, 2**20, n), rng.integers(0, 2, n)
    sample, learner = sample_of(xs, ys, bits), thresholds.exponential(bits=bits, epsilon=1.0)
    error = (n - max(reference.threshold_quality(xs.tolist(), ys.tolist())[1]) + 2.5) / n
    with jax.enable_x64(True):
        exact = float(learner.success_probability(sample, error=error))
    assert 0.05 < exact < 0.95
    np.testing.assert_allclose(learner.success_probability(sample, error=error), exact, rtol=1e-4)


# ----------------------------------------------------------------------------------------------- gradients and batches


@pytest.mark.slow
@over(PRIVATE, SLOW)
def test_gradients_are_finite_in_float32_also_at_the_edges(kind: Kind) -> None:
    same = sample_of([3] * 50, [1] * 50, 6, 63)

    @jax.jit
    @functools.partial(jax.vmap, in_axes=(0, 0, None))
    def slope(epsilon: Any, error: Any, sample: Sample) -> Any:
        return jax.value_and_grad(lambda e: kind.create(e).success_probability(sample, error=error))(epsilon)

    epsilons, errors = (jnp.asarray(v.ravel(), float) for v in np.meshgrid([0.01, 1.0, 300.0], [0.0, 0.3, 1.0]))
    for sample in (SINGLE, same):
        values, slopes = slope(epsilons, errors, sample)
        assert np.all(np.isfinite(slopes)), (errors, epsilons, slopes)
        assert np.all((values >= 0) & (values <= 1 + 1e-5))


@pytest.mark.slow
@over(KINDS)
def test_compiled_equals_eager(kind: Kind) -> None:
    sample, learner = sample_of([3, 9, 40], [1, 1, 0], 6), kind.create(kind.epsilon)
    compiled = learner(jax.random.key(3), sample), learner.success_probability(sample, error=ERROR)
    with jax.disable_jit():
        eager = learner(jax.random.key(3), sample), learner.success_probability(sample, error=ERROR)
    np.testing.assert_array_equal(compiled[0].hypothesis, eager[0].hypothesis)
    np.testing.assert_array_equal(compiled[0].status, eager[0].status)
    np.testing.assert_allclose(compiled[1], eager[1], rtol=2e-5)


@pytest.mark.thorough
def test_the_order_of_the_examples_and_a_promise_of_order_do_not_matter() -> None:
    learner = thresholds.exponential(bits=6, epsilon=0.6)
    xs, ys = np.asarray(SINGLE.x)[:50], np.asarray(SINGLE.y)[:50]
    order = np.lexsort((-ys, xs[:, 0]))
    xs, ys = xs[order], ys[order]
    ordered = Sample(x=np.pad(xs, ((0, 13), (0, 0))), y=np.pad(ys, (0, 13)), n_valid=50, ordered=True)
    laws = [learner.success_probability(sample, error=ERROR) for sample in (ordered, SINGLE)]
    np.testing.assert_array_equal(*laws)


# -------------------------------------------------------------------------------------------------------- compilation


@pytest.mark.slow  # twenty epsilons: conformance; sizes: `test_trials`
def test_twenty_epsilons_sizes_and_widths_share_one_program() -> None:
    def go(bits: int, epsilon: Any, delta: float, n: int) -> None:
        learner = thresholds.rec_concave(bits=bits, epsilon=epsilon, delta=delta, alpha=0.8, depth=2)
        sample = sample_of([1, 2, 3] * (n // 3), [1, 1, 0] * (n // 3), bits)
        learner(jax.random.key(4), sample)
        learner.success_probability(sample, error=ERROR)

    go(6, 1.0, 0.1, 48)
    entries = (algorithm._run, algorithm._law)
    before = [entry._cache_size() for entry in entries]
    for i in range(20):
        go((6, 16, 31)[i % 3], 0.5 + i, 0.01 + i / 100, 33 + 3 * (i % 10))
    go(6, np.float32(2), 0.1, 60)  # and every way to write a number
    go(6, 2, 0.1, 60)
    assert [entry._cache_size() for entry in entries] == before


# ------------------------------------------------------------------------------------------------- conformance, theorem


@pytest.mark.parametrize("calibration", ["proved", "printed"])
@pytest.mark.parametrize(("bits", "depth"), [(6, 2), (31, 3), (64, 3), (1024, 2), (5, 3), (6, 1)])
def test_shares_add_up_to_the_guarantee(calibration: str, bits: int, depth: int) -> None:
    learner = thresholds.rec_concave(
        bits=bits, epsilon=0.9, delta=1e-6, alpha=0.1, depth=depth, calibration=calibration
    )
    n, share = learner.levels, learner.budget()
    guarantee, e, d = learner.guarantee(), float(share.epsilon), float(share.delta)
    spent = (3 * n - 2) * e, 2 * (n - 1) * d
    if calibration == "printed":
        spent = (5 * n - 4) * e, (n - 1) * np.exp(2 * e) * d
        np.testing.assert_allclose((3 * depth * e, 3 * depth * d), (0.9, 1e-6), rtol=1e-6)
        claimed = learner.claimed_guarantee()
        assert (claimed.epsilon, claimed.delta) == (0.9, 1e-6)
    np.testing.assert_allclose((guarantee.epsilon, guarantee.delta), spent, rtol=1e-6)


THEOREM_ALPHA, BETA = 0.4, 0.3


@pytest.mark.slow
@pytest.mark.parametrize(
    "create",
    [
        pytest.param(lambda: thresholds.exponential(bits=8, epsilon=0.5), marks=pytest.mark.slow),
        lambda: thresholds.binary_search(bits=8, epsilon=1.0),
        pytest.param(
            lambda: thresholds.rec_concave(bits=16, epsilon=20.0, delta=0.1, alpha=0.4, depth=2, calibration="printed"),
            marks=pytest.mark.slow,
        ),
    ],
    ids=["exponential", "binary_search", "rec_concave"],
)
def test_at_the_theorems_sample_size_failures_are_as_rare_as_it_says(create: Callable[[], Any]) -> None:
    learner = create()
    distribution = concept.log_uniform(bits=int(learner.bits))
    enough = learner.sample_size(alpha=THEOREM_ALPHA, beta=BETA)
    run = jax.jit(jax.vmap(pac.failure, in_axes=(0, None)))

    def mean_failure(n: int) -> float:
        experiment = pac.Experiment(
            learner=learner, distribution=distribution, n=n, alpha=THEOREM_ALPHA, capacity=bucket(enough)
        )
        return float(np.mean(run(jax.random.split(jax.random.key(6), 20), experiment)))

    assert mean_failure(enough) <= BETA
    assert mean_failure(1) > BETA  # so this can fail


def test_rec_concave_states_the_examples_that_its_own_constants_need() -> None:
    """The proved calibration needs what is proved for its own alpha; no number of examples brings about a smaller alpha."""
    at = {"bits": 64, "epsilon": 0.05, "delta": 1e-6, "alpha": 0.1, "depth": 2}
    stated = {
        c: thresholds.rec_concave(**at, calibration=c).sample_size(alpha=0.1, beta=0.1) for c in ("printed", "proved")
    }
    needed = {c: bounds.learn_thresholds(64, 2, 0.1, 0.1, 0.05, 1e-6, calibration=c) for c in stated}
    assert stated == {c: int(np.ceil(n)) for c, n in needed.items()} and stated["proved"] < stated["printed"] / 100
    assert thresholds.rec_concave(**at).sample_size(alpha=0.3, beta=0.1) == stated["proved"]
    with pytest.raises(ValueError, match=r"alpha must be >= 0.1, for which this learner was made, got 0.05"):
        thresholds.rec_concave(**at).sample_size(alpha=0.05, beta=0.1)


@pytest.mark.slow
def test_trials_fail_as_often_as_their_exact_law_says() -> None:
    experiment = pac.Experiment(
        learner=thresholds.exponential(bits=16, epsilon=1.0),
        distribution=concept.log_uniform(bits=16),
        n=60,
        alpha=0.2,
        capacity=63,
    )
    trials, batched = 4000, {run: jax.jit(jax.vmap(run, in_axes=(0, None))) for run in (pac.trial, pac.failure)}

    def results(run: Any, epsilon: float) -> Any:
        changed = dataclasses.replace(experiment, learner=thresholds.exponential(bits=16, epsilon=epsilon))
        return jax.tree.map(np.asarray, batched[run](jax.random.split(jax.random.key(7), trials), changed))

    def surprise(failures: int, law: np.ndarray) -> float:
        """The two-sided p-value, given the samples: failures are a sum of independent coins, each with its own known odds."""
        return float(2 * stats.norm.sf(abs(failures - law.sum()) / np.sqrt(np.sum(law * (1 - law)))))

    failures, law = int(results(pac.trial, 1.0)["failed"].sum()), results(pac.failure, 1.0).astype(np.float64)
    assert 0.1 < law.mean() < 0.9
    assert surprise(failures, law) > FALSE_ALARM
    assert surprise(failures, results(pac.failure, 1.3).astype(np.float64)) < FALSE_ALARM


# ------------------------------------------------------------------------------------------------------ status, refusals


@pytest.mark.thorough
def test_many_labels_of_both_kinds_at_one_point_do_not_lead_out_of_the_domain() -> None:
    """710 examples at one point, half of them ones: the gaps between them are empty, of a score whose exponential no float32 holds.

    4,000 draws, against the law of two intervals around the point, by five standard deviations.
    """
    learner = thresholds.exponential(bits=7, epsilon=1.0)
    sample = Sample(x=wide.from_ints([50] * 710, 7), y=[1] * 355 + [0] * 355)
    outcomes = outcomes_of(learner, jax.random.split(jax.random.key(0), 4000), sample)
    found = np.asarray(outcomes.hypothesis)[:, 0]
    assert (np.asarray(outcomes.status) == Status.OK).all()
    for low, high in ((0, 51), (51, 129)):
        exact = float(learner.probability(sample, (low, high))[0])
        spread = 5 * (exact * (1 - exact) / len(found)) ** 0.5
        inside = np.mean((found >= low) & (found < high))
        assert 0.1 < exact < 0.9 and abs(inside - exact) < spread
        assert abs(inside - 0.8 * exact) > spread  # negative control


@pytest.mark.parametrize("double", [False, True])
def test_as_many_mistakes_as_the_error_says_are_allowed_for_every_n(double: bool) -> None:
    """An error of w / n allows w mistakes of n and one of (w - 1/2) / n does not: also where w times a rounded 1 / n is more than w / n."""
    sizes = np.arange(1, 97)
    cases = [(w, n) for n in sizes for w in range(n + 1)]
    wrong, n = (jnp.asarray(each, jnp.int32) for each in np.array(cases).T)
    with jax.enable_x64(double):

        @jax.jit
        def allowed(error: jax.Array) -> jax.Array:
            one = lambda w, n, error: events.Accurate(error=error).allows(jnp.stack([w, w + 1]), n)  # noqa: E731
            return jax.vmap(one)(wrong, n, error)

        exactly, less = (jnp.asarray([(w - short) / n for w, n in cases], float) for short in (0, 0.5))
        assert (np.asarray(allowed(exactly)) == [True, False]).all()
        assert not np.asarray(allowed(less)).any()


@pytest.mark.parametrize("log_n", [20, 21, 22, 23, 24])
def test_one_mistake_more_than_half_is_more_than_half(log_n: int) -> None:
    """With 2^22 examples or more, four roundings of single precision made up whole mistakes."""
    half = 2 ** (log_n - 1)
    wrong = jnp.asarray([half - 1, half, half + 1], jnp.int32)
    assert events.Accurate(error=jnp.float32(0.5)).allows(wrong, 2**log_n).tolist() == [True, True, False]


def test_values_nobody_could_check_are_flagged() -> None:
    learner = thresholds.exponential(bits=6, epsilon=1.0)

    @jax.jit
    @jax.vmap
    def run(x: Any, y: Any) -> Any:
        return learner(jax.random.key(9), Sample(x=x, y=y)).status

    wrong = [(3, 1), (64, 1), (2**31, 0), (3, 2), (3, -1)]  # all but the first
    xs, ys = np.full((5, 3, 1), 3, np.uint32), np.ones((5, 3), np.int32)
    xs[:, 1, 0], ys[:, 1] = zip(*wrong, strict=True)
    assert run(xs, ys).tolist() == [Status.OK, *[Status.OUTSIDE_DOMAIN] * 4]
    assert run(xs, ys == 1).tolist() == [Status.OK, *[Status.OUTSIDE_DOMAIN] * 2, *[Status.OK] * 2]
    for label in (0.5, -0.5, math.nan):  # a cast would make a label of it
        halves = ys.astype(np.float32)
        halves[0, 2] = label
        assert run(xs, halves)[0] == Status.OUTSIDE_DOMAIN


def test_labels_and_counts_are_not_narrowed_to_right_ones(x64: None) -> None:
    learner, x = thresholds.exponential(bits=6, epsilon=1.0), wide.from_ints([1, 2, 3], 6)
    run = jax.jit(lambda y, n: learner(jax.random.key(9), Sample(x=x, y=y, n_valid=n)).status)
    good = jnp.array([1, 0, 0])
    assert [int(run(good, n)) for n in (3, 2**32 + 3, 4)] == [Status.OK, *[Status.OUTSIDE_DOMAIN] * 2]
    assert run(good.at[2].set(2**32), 3) == Status.OUTSIDE_DOMAIN
    with pytest.raises(TypeError, match="n_valid must be an int, got a traced float64"):
        run(good, 2.7)


GOOD: dict[str, Any] = dict(bits=6, epsilon=1.0, delta=0.1, alpha=0.5, depth=2)


@pytest.mark.parametrize(
    ("argument", "value", "error", "rule"),
    [
        *(("bits", bits, ValueError, "1 to 4096") for bits in (0, -1, 4097)),
        *(("bits", bits, TypeError, "int") for bits in (True, 1.5, "8", None)),
        *(("epsilon", e, ValueError, "> 0") for e in (0.0, -1.0)),
        ("epsilon", float("inf"), ValueError, "< inf"),
        *(("epsilon", e, TypeError, "real number") for e in ("1", True, None, [1.0], 1j)),
        *(("delta", d, ValueError, "> 0") for d in (0.0, -0.1)),
        *(("delta", d, ValueError, "< 1") for d in (1.0, 2)),
        ("delta", "small", TypeError, "real number"),
        ("alpha", 0.0, ValueError, "> 0"),
        *((name, float("nan"), ValueError, "a number, not NaN") for name in ("epsilon", "delta", "alpha")),
        ("alpha", 1.0, ValueError, "< 1"),
        ("depth", 0, ValueError, ">= 1"),
        *(("depth", depth, TypeError, "int") for depth in (2.0, True, "2")),
        *(("calibration", c, ValueError, "'printed', 'proved'") for c in ("exact", None, "proved_counts")),
    ],
)
def test_bad_parameters_are_refused_by_name_value_and_rule(
    argument: str, value: Any, error: type[Exception], rule: str
) -> None:
    with pytest.raises(error) as refusal:
        thresholds.rec_concave(**{**GOOD, argument: value})
    message = str(refusal.value)
    assert argument in message and rule in message
    assert str(value) in message or repr(value) in message


def test_delta_may_be_zero_where_no_stability_test_runs() -> None:
    for given in ({"depth": 1}, {"bits": 5}):
        learner = thresholds.rec_concave(**{**GOOD, "delta": 0.0, **given})
        assert learner.guarantee().delta == 0.0
    assert thresholds.binary_search(bits=6, epsilon=1.0, delta=0).guarantee().delta == 0.0
    for bad in (-0.1, 1.0, float("nan")):
        with pytest.raises(ValueError, match="delta"):
            thresholds.binary_search(bits=6, epsilon=1.0, delta=bad)
    for create in (thresholds.exponential, thresholds.binary_search):
        with pytest.raises(ValueError, match="epsilon must be > 0"):
            create(bits=6, epsilon=0)
        with pytest.raises(TypeError, match="bits must be an int"):
            create(bits="6", epsilon=1.0)


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (lambda: Sample(x=wide.from_ints([1, 2], 6), y=[1]), ValueError, r"y must .* \(2,\), got \(1,\)"),
        (lambda: Sample(x=wide.from_ints([1, 2], 6), y=[1, 2]), ValueError, r"y must .* got y\[1\] = 2"),
        (lambda: Sample(x=wide.from_ints([1], 6), y=[1], n_valid=2), ValueError, "n_valid must .* got 2"),
        (lambda: Sample(x=wide.from_ints([1], 6), y=[1], n_valid=0), ValueError, "n_valid must .* got 0"),
        (lambda: Sample(x=wide.from_ints([], 6), y=[]), ValueError, "x must .* empty"),
        (lambda: Sample(x=[1, 2], y=[1, 0]), TypeError, "x must be a uint32 array .* got list"),
        (lambda: Sample(x=wide.from_ints([1], 6), y=["a"]), TypeError, "y must hold labels"),
    ],
)
def test_bad_samples_are_refused(make: Callable[[], Any], error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        make()


@pytest.mark.parametrize(
    ("bits", "sample", "error", "words"),
    [
        (6, Sample(x=wide.from_ints([1, 64], 7), y=[1, 0]), ValueError, r"2\^6 - 1, got 64"),
        (31, Sample(x=wide.from_ints([2**31], 32), y=[1]), ValueError, r"2\^31 - 1, got 2147483648"),
        (40, Sample(x=wide.from_ints([2**40], 41), y=[1]), ValueError, r"2\^40 - 1, got 1099511627776"),
        (64, Sample(x=wide.from_ints([2**64], 65), y=[1]), ValueError, r"2\^64 - 1, got 18446744073709551616"),
        (40, Sample(x=wide.from_ints([1], 20), y=[1]), ValueError, "2 limbs .* got 1"),
        (6, Sample(x=wide.from_ints([1], 64), y=[1]), ValueError, "1 limbs .* got 2"),
        (6, ([1], [1]), TypeError, "sample must be a dpjax.Sample, got tuple"),
        (6, None, TypeError, "sample must be a dpjax.Sample, got NoneType"),
    ],
)
def test_samples_that_do_not_fit_the_learner_are_refused(
    bits: int, sample: Any, error: type[Exception], words: str
) -> None:
    learner = thresholds.exponential(bits=bits, epsilon=1.0)
    for call in (
        lambda: learner(jax.random.key(10), sample),
        lambda: learner.success_probability(sample, error=0.1),
    ):
        with pytest.raises(error, match=words):
            call()


@pytest.mark.parametrize(
    ("n_valid", "kind"), [(5, ValueError), (-1, ValueError), (1.5, TypeError), (None, TypeError), (True, TypeError)]
)
def test_a_number_of_rows_that_there_are_not_is_refused(n_valid: Any, kind: type[Exception]) -> None:
    """For data assembled by hand: a number that is known is refused at once, and shows in no status."""
    x = wide.from_ints([1, 2, 3], 6)
    solver = interior_point.exponential(bits=6, epsilon=1.0)
    with pytest.raises(kind, match=r"points\.n_valid must be"):
        solver(jax.random.key(0), Points(x=x, n_valid=n_valid))


@pytest.mark.parametrize("error", [-0.1, 1.1, float("nan")])
def test_an_error_that_is_no_fraction_is_refused(error: float) -> None:
    with pytest.raises(ValueError, match="error must be"):
        thresholds.erm(bits=6).success_probability(SINGLE, error=error)


def test_a_law_point_by_point_needs_a_small_domain() -> None:
    with pytest.raises(ValueError, match="bits must be from 1 to 12, got 31"):
        thresholds.erm(bits=31).pmf(SINGLE)


def test_more_examples_than_rows_are_refused() -> None:
    with pytest.raises(ValueError, match="n must be from 1 to 63, got 64"):
        pac.Experiment(
            learner=thresholds.erm(bits=6), distribution=concept.log_uniform(bits=6), n=64, alpha=0.1, capacity=63
        )


@pytest.mark.thorough
def test_an_interval_that_runs_backwards_is_empty_and_an_output_that_is_none_is_refused():
    """BinarySearch subtracted what lies below the ends, and gave -0.02 for an interval whose ends were swapped."""
    learner, sample = thresholds.binary_search(bits=8, epsilon=1.0), sample_of([3, 9], [1, 0], 8, rows=4)
    np.testing.assert_allclose(learner.probability(sample, (5, 1)), [0.0, 1.0], atol=1e-6)
    assert wide.to_ints(events.Interval.of((5, 1), 1).high) == [5]
    np.testing.assert_allclose(
        learner.log_prob(sample, 4), learner.log_prob(sample, wide.from_ints([4], 9)[0]), rtol=1e-6
    )
    for output in (None, "x", 1.5, True, (4,), np.zeros(1)):
        with pytest.raises(TypeError, match="output must be an int, or a uint32 array"):
            learner.log_prob(sample, output)


def test_ends_of_events_are_no_greater_than_the_widest_domain_has_them():
    """They have at most 4,097 bits, fewer than their 32-bit limbs hold."""
    with pytest.raises(ValueError, match=r"high must be from 0 to .*, got an int of 4098 bits"):
        events.Interval.of((0, 2**4097), 129)
    assert wide.to_ints(events.Interval.of((0, 2**4096), 129).high) == [2**4096]


def test_points_are_counted_where_their_numbers_are_floats(monkeypatch):
    monkeypatch.setattr("dpjax.core.arguments.most_counted", lambda: 3)
    points = Points.create(wide.from_ints([1, 2, 3, 4], 4))
    assert fitted(points, Points, bits=4).rows == 7
    with pytest.raises(ValueError, match=r"sample\.n_valid must be at most 3, beyond which floats do not hold all"):
        fitted(points, Points, bits=4, counted=True)


def test_rows_that_do_not_count_may_hold_anything():
    """Samples of 710 rows, of which two count: programs that another test compiles."""
    learner, padding = thresholds.exponential(bits=4, epsilon=1.0), [0] * 707
    samples = [
        Sample(x=wide.from_ints([3, 9, last, *padding], 32), y=[1, 0, 0, *padding], n_valid=2) for last in (0, 2**31)
    ]
    one, other = (learner.probability(sample, (4, 10)) for sample in samples)
    outcomes = outcomes_of(learner, jax.random.split(jax.random.key(0), 4000), samples[1])
    assert one.tolist() == other.tolist() and (np.asarray(outcomes.status) == Status.OK).all()


@pytest.mark.parametrize(
    ("epsilon", "delta"), [(1.0, 1.0), (1.0, -0.1), (1.0, math.nan), (0.0, 0.5), (math.inf, 0.5), (math.nan, 0.5)]
)
def test_budgets_out_of_range_are_not_sound(epsilon, delta):
    """Those of algorithms within algorithms, too."""

    def sound(**numbers):
        return bool(algorithm.sound(types.SimpleNamespace(**numbers)))

    assert sound(epsilon=1e-3, delta=0.0) and sound(epsilon=50.0, delta=0.999)
    assert not sound(epsilon=epsilon, delta=delta)
    inner = dataclasses.replace(thresholds.exponential(bits=4, epsilon=1.0), epsilon=epsilon)
    assert sound(solver=inner) == (epsilon == 1)


def test_a_traced_alpha_out_of_range_shows_in_the_status():
    sample = Sample(x=wide.from_ints([3, 9], 4), y=[1, 0])

    @jax.jit
    def status(alpha):
        return thresholds.rec_concave(bits=4, epsilon=1.0, delta=0.1, alpha=alpha, depth=1)(
            jax.random.key(0), sample
        ).status

    found = [int(status(alpha)) for alpha in (0.5, 0.0, -1.0, 2.0, float("nan"))]
    assert found == [Status.OK, *[Status.BAD_PARAMETER] * 4]


def test_factories_that_compute_on_the_host_refuse_traced_numbers_by_name():
    for name, make in {
        "alpha": lambda alpha: points.hashed(bits=8, epsilon=1.0, alpha=alpha),
        "sensitivity": lambda sensitivity: mechanisms.laplace.mechanism(epsilon=1.0, sensitivity=sensitivity),
        "xi": lambda xi: fingerprinting.tardos(5, xi=xi),
    }.items():
        with pytest.raises(TypeError, match=f"{name} must be a known number"):
            jax.make_jaxpr(lambda number, make=make: [make(number), number][1])(0.1)


@pytest.mark.parametrize("bits", [thorough(6), thorough(64)])
def test_erm_on_a_realizable_sample_needs_no_promise(bits):
    """With the promise the gap between the labels is taken as it stands, without it the gap is searched for: the same keys answer alike."""
    learner, law = thresholds.erm(bits=bits), concept.log_uniform(bits=bits)

    def answers(key, n):
        key_sample, key_coins = jax.random.split(key)
        promised = law.sample(key_sample, 63, n)
        plain = Sample.tree_unflatten((False, False), (promised.x, promised.y, promised.n_valid))
        given = [learner(jax.random.clone(key_coins), sample).hypothesis for sample in (promised, plain)]
        return jnp.stack(given)

    keys = jax.random.split(jax.random.key(1), 64)
    drawn = jax.jit(jax.vmap(answers, (0, None)))
    found = [drawn(jax.random.clone(keys), jnp.int32(n)) for n in (1, 2, 5, 40, 63)]
    mine, theirs = np.moveaxis(np.concatenate(found), 1, 0)
    np.testing.assert_array_equal(mine, theirs)
    assert len(np.unique(mine.reshape(-1, mine.shape[-1]), axis=0)) > 20


def test_more_examples_than_floats_count_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond 2^24 neighbouring counts are one float, and draws left the domain."""
    monkeypatch.setattr("dpjax.core.arguments.most_counted", lambda: 10)
    x, y = wide.from_ints(list(range(11)), 8), [1] * 5 + [0] * 6
    made = Sample(x=x, y=y)
    with pytest.raises(
        ValueError, match=r"sample.n_valid must be at most 10, .*jax.enable_x64\(True\) holds more\), got 11"
    ):
        thresholds.exponential(bits=8, epsilon=1.0)(jax.random.key(0), made)
    with pytest.raises(ValueError, match=r"points.n_valid must be at most 10"):
        interior_point.exponential(bits=8, epsilon=1.0).probability(made, (0, 3))
    assert not made.in_domain(8) and Sample(x=x, y=y, n_valid=10).in_domain(8)


@pytest.mark.parametrize(
    "given", [{"alpha": 2.0, "beta": 0.9}, {"alpha": math.nan, "beta": 0.9}, {"alpha": 0.5, "beta": 1.5}]
)
def test_an_alpha_or_beta_that_is_none_has_no_sample_size(given: dict[str, float]) -> None:
    learner = thresholds.amplified(bits=1, epsilon=1.0, delta=0.5, alpha=0.5, beta=0.9)
    with pytest.raises(ValueError, match=r"(alpha|beta) must be"):
        learner.sample_size(**given)


def test_comparisons_of_many_examples_are_counted_in_whole_numbers() -> None:
    """Twice the ones and the zeros together are no float of single precision: a comparison was off by an example."""
    learner = thresholds.binary_search(bits=30, epsilon=1.0)
    n, zeros = 16_000_001, 1_000_000

    class Quality:
        """Of a sample with all zeros at 0, `before` of the ones there, too, and the other ones at the top."""

        def __init__(self, zeros: Any, behind: Any) -> None:
            self.zeros, self.ones, self.before = zeros, n - zeros, n - zeros - behind

        def __getitem__(self, index: Any) -> jax.Array:
            if isinstance(index, int):
                return jnp.float32(self.ones if index else self.zeros)
            return jnp.float32(self.before + self.zeros - (n - self.ones))  # the ones up to here, and no zeros behind

    @jax.jit
    def turn(zeros: jax.Array, behind: jax.Array) -> tuple[Any, Any]:
        here, view = n - behind, types.SimpleNamespace(values=Quality(zeros, behind))
        return learner._log_turn_at(view, here, here), learner.comparison_epsilon()

    for behind in range(1_000_060, 1_000_064):
        (right, left), epsilon = turn(np.int32(zeros), np.int32(behind))
        expected = laplace.log_tails(-(behind - zeros) * np.asarray(epsilon) / 2)
        np.testing.assert_allclose([left, right], expected, rtol=1e-6)


@pytest.mark.thorough
def test_domains_wider_than_floats_take_ints_for_events_and_outputs() -> None:
    learner = thresholds.exponential(bits=1056, epsilon=1.0)
    sample = Sample(x=wide.from_ints([5, 2**1050], 1056), y=[1, 0])
    assert 0 < float(learner.probability(sample, (0, 2**1055))[0]) < 1
    five = learner.check_event(learner.exactly(5))  # what `log_prob` asks of the law
    assert wide.to_ints(jnp.stack([five.low, five.high])) == [5, 6]


@pytest.mark.thorough
def test_outputs_below_the_least_float_have_a_logarithm_and_its_derivative() -> None:
    sample = Sample(x=wide.from_ints([1] * 200 + [200] * 200, 8), y=[1] * 200 + [0] * 200)

    def log_prob(epsilon: Any) -> Any:
        return thresholds.exponential(bits=8, epsilon=epsilon).log_prob(sample, 0)

    value, slope = jax.jit(jax.value_and_grad(log_prob))(1.0)  # 200 wrong, where 199 thresholds are right on all
    np.testing.assert_allclose(value, -100 - np.log(199), rtol=1e-6)
    np.testing.assert_allclose(slope, -100.0, rtol=1e-5)


@pytest.mark.thorough
def test_outputs_of_wide_domains_have_a_logarithm() -> None:
    assert np.isfinite(thresholds.erm(bits=160).log_prob(Sample(x=wide.from_ints([1, 2**159], 160), y=[1, 0]), 2**100))


@pytest.mark.thorough
def test_a_delta_of_zero_has_a_derivative() -> None:
    sample = Sample(x=wide.from_ints([1, 2, 3, 200], 8), y=[1, 1, 1, 0])

    def mass(delta: Any) -> Any:
        return thresholds.binary_search(bits=8, epsilon=1.0, delta=delta).probability(sample, (0, 50))[0]

    value, slope = jax.jit(jax.value_and_grad(mass))(0.0)
    assert slope == 0.0
    np.testing.assert_allclose([value, mass(jnp.float32(0.0))], mass(0.0), rtol=1e-5)


def test_shares_that_no_float_holds_are_refused() -> None:
    with pytest.raises(ValueError, match="epsilon must be >="):
        thresholds.binary_search(bits=4096, epsilon=2.0**-120)


@pytest.mark.parametrize(
    ("learner", "most"),
    [(thresholds.exponential(bits=3, epsilon=1.0), 31), (points.exponential(bits=3, epsilon=1.0), 32)],
)
def test_bits_that_the_limbs_do_not_hold_show_in_the_status(learner, most):
    """Traced bits cannot be checked beforehand; an output of a threshold learner may be 2^bits."""
    sample = Sample(x=wide.from_ints([0, 7], 3), y=[1, 0])

    @jax.jit
    def status(bits):
        return dataclasses.replace(learner, bits=bits)(jax.random.key(0), sample).status

    found = {bits: int(status(jnp.int32(bits))) for bits in (0, 3, most, most + 1, 1000)}
    assert found == {0: 3, 3: 0, most: 0, most + 1: 3, 1000: 3}


@pytest.mark.parametrize("make", [thresholds.power_search, thresholds.length_search, thresholds.amplified])
def test_a_failure_probability_is_refused_by_its_name(make):
    learner = make(bits=8, epsilon=1.0, delta=1e-6, alpha=0.2)
    for beta in (None, 10**400, np.array([0.1, 0.2])):
        with pytest.raises((TypeError, ValueError), match=r"^beta must"):
            learner.sample_size(alpha=0.3, beta=beta)
    assert learner.sample_size(alpha=jnp.float32(0.3), beta=jnp.float32(0.25)) == learner.sample_size(
        alpha=0.3, beta=0.25
    )
