"""Mechanisms: one conformance test over all of them, then each against a naive reference.

Statistical tests use fixed keys and a false-alarm rate of 2e-5; each has a negative control that must fail.
"""

import dataclasses
import inspect
import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import integrate, stats

from dpjax.accounting.guarantee import Guarantee
from dpjax.mechanisms import (
    AboveThreshold,
    Choosing,
    Exponential,
    Geometric,
    Laplace,
    OneSidedGeometric,
    PartitionSelection,
    ReportNoisyMax,
    Selection,
    Stability,
    above_threshold,
    choosing,
    exponential,
    geometric,
    laplace,
    partition_selection,
    report_noisy_max,
    stability,
)

FALSE_ALARM = 2e-5
SCORES = jnp.array([3, 5, 0, 4, 5], jnp.int32)
EDGES = jnp.linspace(-1.5, 7.5, 10)
WINDOW = jnp.arange(-4, 11, dtype=jnp.int32)


@dataclasses.dataclass(frozen=True)
class Case:
    """One mechanism with an input, its outcomes as labels 0, 1, ... and their law."""

    name: str
    create: Callable[[float], Any]
    function: Callable[..., Any]
    inputs: tuple[Any, ...]
    label: Callable[[Any], Any]
    log_law: Callable[[Any], Any]
    epsilon: float = 1.0


def _index(size: int) -> Callable[[Selection], Any]:
    return lambda out: jnp.where(out.ok, out.index, size)


def _over_scores(mechanism: Any) -> Any:
    return mechanism.log_pmf(SCORES)


def _binned(mechanism: Laplace) -> Any:
    cdf = jnp.exp(mechanism.log_cdf(EDGES.astype(float), 3.0))
    return jnp.log(jnp.diff(cdf, prepend=0.0, append=1.0))


def _windowed(mechanism: Geometric) -> Any:
    low = mechanism.log_cdf(WINDOW[:1], 3)
    high = mechanism.log_sf(WINDOW[-2:-1], 3)
    return jnp.concatenate([low, mechanism.log_pmf(WINDOW[1:-1], 3), high])


def _windowed_one_sided(mechanism: OneSidedGeometric) -> Any:
    tail = geometric.one_sided_log_sf(jnp.int32(6), epsilon=mechanism.epsilon)
    return jnp.append(mechanism.log_pmf(jnp.arange(3, 10, dtype=jnp.int32), 3), tail)


CASES = [
    Case(
        "laplace",
        lambda e: Laplace.create(epsilon=e),
        laplace.laplace,
        (jnp.int32(3),),
        lambda out: jnp.searchsorted(EDGES.astype(out.dtype), out),
        _binned,
    ),
    Case(
        "geometric",
        lambda e: Geometric.create(epsilon=e),
        geometric.geometric,
        (jnp.int32(3),),
        lambda out: jnp.clip(out, -4, 10) + 4,
        _windowed,
    ),
    Case(
        "one_sided_geometric",
        lambda e: OneSidedGeometric.create(epsilon=e),
        geometric.one_sided_geometric,
        (jnp.int32(3),),
        lambda out: jnp.minimum(out - 3, 7),
        _windowed_one_sided,
    ),
    Case(
        "exponential",
        lambda e: Exponential.create(epsilon=e),
        exponential.exponential,
        (SCORES,),
        _index(5),
        _over_scores,
    ),
    Case(
        "report_noisy_max",
        lambda e: ReportNoisyMax.create(epsilon=e),
        report_noisy_max.report_noisy_max,
        (SCORES,),
        _index(5),
        _over_scores,
    ),
    Case(
        "stability",
        lambda e: Stability.create(epsilon=e, delta=0.2),
        stability.stability,
        (jnp.array([3, 8, 0], jnp.int32),),
        _index(3),
        lambda m: m.log_pmf(jnp.array([3, 8, 0], jnp.int32)),
    ),
    Case(
        "choosing",
        lambda e: Choosing.create(n=17, epsilon=e, delta=1e-3, alpha=0.5, allow_unproved=True),
        choosing.choosing,
        (SCORES,),
        _index(5),
        _over_scores,
    ),
    Case(
        "partition_selection",
        lambda e: PartitionSelection.create(epsilon=e, delta=0.01),
        partition_selection.partition_selection,
        (jnp.int32(4),),
        lambda out: out.astype(jnp.int32),
        lambda m: m.log_pmf(jnp.int32(4)),
    ),
    Case(
        "above_threshold",
        lambda e: AboveThreshold.create(epsilon=e),
        above_threshold.above_threshold,
        (SCORES, jnp.int32(4)),
        _index(5),
        lambda m: m.log_pmf(SCORES, jnp.int32(4)),
    ),
]
every = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)


@every
def test_signature_is_key_first_and_frozen(case: Case) -> None:
    mechanism = case.create(1.0)
    assert next(iter(inspect.signature(case.function).parameters)) == "key"
    assert list(inspect.signature(type(mechanism).__call__).parameters)[1] == "key"
    with pytest.raises(dataclasses.FrozenInstanceError):
        mechanism.epsilon = 2.0


@every
def test_pytree_round_trip(case: Case) -> None:
    mechanism = case.create(0.7)
    leaves, tree = jax.tree.flatten(mechanism)
    assert jax.tree.unflatten(tree, leaves) == mechanism
    assert np.float64(0.7) in leaves


@every
def test_jit_equals_eager_and_vmap_equals_loop(case: Case) -> None:
    mechanism, keys = case.create(0.7), jax.random.split(jax.random.key(1), 4)
    loop = [mechanism(key, *case.inputs) for key in keys]
    run = jax.jit(lambda m, key: m(key, *case.inputs))
    jitted = [run(mechanism, key) for key in keys]
    batch = jax.vmap(run, in_axes=(None, 0))(mechanism, keys)
    for i in range(4):
        one_of_batch = jax.tree.map(lambda leaf, row=i: leaf[row], batch)
        for other in (jitted[i], one_of_batch):
            jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-6), loop[i], other)


@every
def test_twenty_epsilons_trace_once(case: Case) -> None:
    traces = []

    @jax.jit
    def run(mechanism: Any, key: Any) -> Any:
        traces.append(1)
        return mechanism(key, *case.inputs), case.log_law(mechanism)

    for epsilon in np.linspace(0.5, 2.0, 20):
        run(case.create(float(epsilon)), jax.random.key(0))
    run(case.create(2), jax.random.key(0))
    assert len(traces) == 1


@every
def test_guarantee_is_present(case: Case) -> None:
    promised = case.create(0.7).guarantee()
    if case.name == "choosing":  # built with allow_unproved below its sample size
        assert promised is None
    else:
        assert isinstance(promised, Guarantee) and promised.epsilon == 0.7


@every
def test_law_sums_to_one(case: Case) -> None:
    assert abs(float(jnp.exp(case.log_law(case.create(0.7))).sum()) - 1) < 1e-5
    with jax.enable_x64(True):
        assert abs(float(jnp.exp(case.log_law(case.create(0.7))).sum()) - 1) < 1e-11


@every
def test_law_matches_samples(case: Case) -> None:
    trials = 200_000
    mechanism = case.create(case.epsilon)
    keys = jax.random.split(jax.random.key(20), trials)
    labels = jax.jit(jax.vmap(lambda key: case.label(mechanism(key, *case.inputs))))(keys)
    size = case.log_law(mechanism).shape[0]
    observed = np.bincount(np.asarray(labels), minlength=size)

    def p_value(epsilon: float) -> float:
        expected = trials * np.exp(np.asarray(case.log_law(case.create(epsilon)), np.float64))
        possible = expected > 0
        assert len(observed) == size and observed[~possible].sum() == 0
        scaled = expected[possible] * trials / expected[possible].sum()
        return stats.chisquare(observed[possible], scaled).pvalue

    assert p_value(case.epsilon) > FALSE_ALARM
    assert p_value(1.3 * case.epsilon) < FALSE_ALARM


@every
@pytest.mark.parametrize("epsilon", [0.0, -1.0, math.nan, math.inf])
def test_bad_epsilon_is_refused(case: Case, epsilon: float) -> None:
    with pytest.raises(ValueError, match="epsilon"):
        case.create(epsilon)


@pytest.mark.parametrize("epsilon", ["1", None, True, [1.0]])
def test_epsilon_that_is_no_number_is_refused(epsilon: Any) -> None:
    with pytest.raises(TypeError, match="epsilon"):
        Exponential.create(epsilon=epsilon)


@pytest.mark.parametrize(
    ("build", "names"),
    [
        (lambda: Stability.create(epsilon=1.0, delta=0.0), "delta"),
        (lambda: Stability.create(epsilon=1.0, delta=1.0), "delta"),
        (lambda: Stability.create(epsilon=1.0, delta=0.6), "delta"),
        (lambda: Stability.create(epsilon=1.0, delta=1e-6, calibration="exact"), "calibration.*exact"),
        (lambda: PartitionSelection.create(epsilon=1.0, delta=0.0), "delta"),
        (lambda: PartitionSelection.create(epsilon=1.0, delta=math.nan), "delta"),
        (lambda: Choosing.create(n=450, epsilon=1.0, delta=1e-6, alpha=0.5), "n must be at least 451.*450"),
        (lambda: Choosing.create(n=500, epsilon=1.0, delta=0.0, alpha=0.5), "delta"),
        (lambda: Choosing.create(n=500, epsilon=1.0, delta=1e-6, alpha=1.0), "alpha"),
        (lambda: Exponential.create(epsilon=1.0, sensitivity=0.0), "sensitivity"),
        (lambda: Exponential.create(epsilon=1.0, monotone=True, relation="REPLACE_ONE"), "relation"),
        (lambda: ReportNoisyMax.create(epsilon=1.0, monotone=True, relation="REPLACE_ONE"), "relation"),
        (lambda: Laplace.create(epsilon=1.0, relation="CHANGE_ONE"), "relation"),
        (lambda: Geometric.create(epsilon=1e-9), "epsilon"),
        (lambda: Geometric.create(epsilon=1.0, sensitivity=0), "sensitivity"),
        (lambda: exponential.exponential(jax.random.key(0), SCORES, epsilon=-1.0), "epsilon"),
        (lambda: laplace.laplace(jax.random.key(0), 1.0, epsilon=0.0), "epsilon"),
    ],
)
def test_bad_parameters_are_refused(build: Callable[[], Any], names: str) -> None:
    with pytest.raises(ValueError, match=names):
        build()


CHOOSERS = [case for case in CASES if case.name in ("exponential", "report_noisy_max", "stability", "choosing")]


@pytest.mark.parametrize("case", CHOOSERS, ids=lambda case: case.name)
def test_masked_padding_changes_nothing_and_nothing_valid_is_bottom(case: Case) -> None:
    mechanism, scores = case.create(0.7), SCORES
    padded = jnp.concatenate([scores, jnp.array([99, -7, 1], jnp.int32)])
    mask = jnp.arange(8) < 5
    for key in jax.random.split(jax.random.key(3), 20):
        plain, wide = mechanism(key, scores), mechanism(jax.random.clone(key), padded, where=mask)
        assert (bool(plain.ok), int(plain.index)) == (bool(wide.ok), int(wide.index)) or not bool(plain.ok | wide.ok)
    law, wide_law = np.exp(mechanism.log_pmf(scores)), np.exp(mechanism.log_pmf(padded, where=mask))
    np.testing.assert_allclose(wide_law[:5], law[:5], rtol=1e-6)
    assert (wide_law[5:8] == 0).all()
    nothing = jnp.zeros(5, bool)
    assert not mechanism(jax.random.key(0), scores, where=nothing).ok
    empty = mechanism.log_pmf(scores, where=nothing)
    assert (empty[:5] == -jnp.inf).all() and (empty[5:] == 0).all()


def test_above_threshold_ignores_masked_queries() -> None:
    mechanism, mask = AboveThreshold.create(epsilon=1.0), jnp.arange(8) < 5
    padded = jnp.concatenate([SCORES, jnp.full(3, 999, jnp.int32)])
    for key in jax.random.split(jax.random.key(3), 20):
        plain, wide = mechanism(key, SCORES, 4), mechanism(jax.random.clone(key), padded, 4, where=mask)
        assert bool(plain.ok) == bool(wide.ok) and (not plain.ok or int(plain.index) == int(wide.index))
    law, wide_law = mechanism.log_pmf(SCORES, 4), mechanism.log_pmf(padded, 4, where=mask)
    np.testing.assert_allclose(np.exp(wide_law)[[0, 1, 2, 3, 4, 8]], np.exp(law), rtol=1e-6)


# Laplace


@pytest.mark.parametrize(
    ("high", "low"),
    [
        (0, 0),
        (0, 7),
        (1, 2**31),
        (2**20, 5),
        (2**31 - 1, 9),
        (2**31, 0),
        (3 * 2**30 + 5, 17),
        (2**32 - 2**20 - 3, 2**31),
        (2**32 - 2**7 - 1, 3),
        (2**32 - 1, 2**32 - 1),
        (2**32 - 2, 3),
    ],
)
def test_exponential_variate_is_accurate_at_both_ends(high: int, low: int) -> None:
    half_steps = 2 * (high * 2**32 + low) + 1  # U = half_steps / 2^65
    above = (2**65 - half_steps) / 2**65
    exact = -math.log(half_steps / 2**65) if half_steps < 2**64 else -math.log1p(-above)
    got = laplace._exponential(jnp.uint32(high), jnp.uint32(low))
    np.testing.assert_allclose(float(got), exact, rtol=1e-6)


def test_laplace_law_on_both_tails() -> None:
    x = np.array([-40.0, -20.0, -1.0, 0.0, 0.5, 20.0, 40.0])
    shifted = (x * 0.5).astype(np.float32)
    np.testing.assert_allclose(laplace.log_cdf(shifted, 0.0, epsilon=2.0), stats.laplace.logcdf(x), rtol=2e-6)
    np.testing.assert_allclose(laplace.log_sf(shifted, 0.0, epsilon=2.0), stats.laplace.logsf(x), rtol=2e-6)
    expected = stats.laplace.logpdf(x) + math.log(2.0)
    np.testing.assert_allclose(laplace.log_pdf(shifted, 0.0, epsilon=2.0), expected, rtol=1e-6)


def test_laplace_draws_begin_alike_whatever_the_length() -> None:
    key = jax.random.key(5)
    long, short = laplace.standard_laplace(key, (9,)), laplace.standard_laplace(jax.random.clone(key), (4,))
    assert (long[:4] == short).all()


# Geometric


def test_geometric_laws_against_scipy() -> None:
    k = np.arange(-30, 31, dtype=np.int32)
    law = stats.dlaplace(0.3)
    given = {"epsilon": 0.6, "sensitivity": 2}
    np.testing.assert_allclose(geometric.log_pmf(k, 0, **given), law.logpmf(k), rtol=2e-6)
    np.testing.assert_allclose(np.exp(geometric.log_cdf(k, 0, **given)), law.cdf(k), rtol=2e-6)
    np.testing.assert_allclose(np.exp(geometric.log_sf(k, 0, **given)), law.cdf(-k - 1), rtol=2e-6)
    one = stats.geom(-math.expm1(-0.3), loc=-1)
    np.testing.assert_allclose(np.exp(geometric.one_sided_log_pmf(k, epsilon=0.3)), one.pmf(k), rtol=2e-6)
    np.testing.assert_allclose(np.exp(geometric.one_sided_log_sf(k, epsilon=0.3)), one.sf(k), rtol=2e-6)
    np.testing.assert_allclose(np.exp(geometric.one_sided_log_cdf(k, epsilon=0.3)), one.cdf(k), rtol=2e-6)


def test_geometric_skips_no_value_at_tiny_rates() -> None:
    rate, trials = 2.0**-25, 20_000
    draws = np.asarray(geometric.one_sided_geometric(jax.random.key(2), (trials,), epsilon=rate))
    assert (draws >= 0).all()
    assert stats.binomtest(int((draws % 2).sum()), trials).pvalue > FALSE_ALARM
    assert stats.kstest(draws * rate, "expon").pvalue > FALSE_ALARM
    # The negative control: floor of a float32 exponential is even wherever it passes 2^24.
    exponentials = laplace.standard_exponential(jax.random.key(2), (trials,)).astype(jnp.float32)
    rounded = np.asarray(jnp.floor(exponentials / jnp.float32(rate))).astype(np.int64)
    assert stats.binomtest(int((rounded % 2).sum()), trials).pvalue < FALSE_ALARM


def test_one_sided_guarantee_is_tight() -> None:
    mechanism = OneSidedGeometric.create(epsilon=0.5)
    assert math.isclose(mechanism.guarantee().delta, 1 - math.exp(-0.5))


# Exponential


def test_exponential_mechanism_against_the_formula() -> None:
    scores, measure = np.array([3.0, 5.0, 0.0, 4.5]), np.array([0.0, -1.0, 2.0, 0.5])
    weights = np.exp(0.8 * scores / (2 * 1.5) + measure)
    got = exponential.log_pmf(scores, epsilon=0.8, sensitivity=1.5, log_measure=jnp.asarray(measure, float))
    np.testing.assert_allclose(np.exp(got), weights / weights.sum(), rtol=1e-6)
    monotone = np.exp(exponential.log_pmf(scores, epsilon=0.8, monotone=True))
    np.testing.assert_allclose(monotone, np.exp(0.8 * scores) / np.exp(0.8 * scores).sum(), rtol=1e-6)


def test_exponential_mechanism_keeps_the_last_digit_of_large_counts() -> None:
    scores = jnp.array([2**30, 2**30 + 1], jnp.int32)
    np.testing.assert_allclose(
        np.exp(exponential.log_pmf(scores, epsilon=2.0)), [1 / (1 + math.e), math.e / (1 + math.e)], rtol=1e-6
    )


def test_exponential_mechanism_with_counts_of_two_to_the_4096() -> None:
    measure = jnp.array([4096 * math.log(2.0), 0.0])
    lone = jnp.array([0, 6000], jnp.int32)
    assert int(exponential.exponential(jax.random.key(0), lone, epsilon=1.0, log_measure=measure).index) == 1
    fewer = jnp.array([0, 5000], jnp.int32)
    assert int(exponential.exponential(jax.random.key(0), fewer, epsilon=1.0, log_measure=measure).index) == 0


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_scores_that_are_no_numbers_are_not_ok(bad: float) -> None:
    scores = jnp.array([1.0, bad, 2.0])
    for mechanism in (Exponential.create(epsilon=1.0), ReportNoisyMax.create(epsilon=1.0)):
        assert not mechanism(jax.random.key(0), scores).ok
    if math.isnan(bad):
        assert not Stability.create(epsilon=1.0, delta=0.1)(jax.random.key(0), scores).ok


# Report-noisy-max


def test_report_noisy_max_is_permute_and_flip() -> None:
    scores, epsilon = np.array([3, 5, 0, 4, 5]), 0.9
    accept = np.exp(epsilon * (scores - scores.max()) / 2)
    law = np.zeros(5)
    for order in itertools.permutations(range(5)):
        reached = 1.0
        for candidate in order:
            law[candidate] += reached * accept[candidate] / math.factorial(5)
            reached *= 1 - accept[candidate]
    np.testing.assert_allclose(np.exp(report_noisy_max.log_pmf(scores, epsilon=epsilon)), law, rtol=2e-6)


def test_report_noisy_max_law_keeps_its_tails() -> None:
    scores = np.array([0, 60, 60, 59] + [40] * 60)
    with jax.enable_x64(True):
        exact = np.asarray(report_noisy_max.log_pmf(scores, epsilon=1.0))
    assert abs(np.exp(exact).sum() - 1) < 1e-12 and exact[0] < -30
    got = report_noisy_max.log_pmf(scores.astype(np.int32), epsilon=1.0)
    np.testing.assert_allclose(got, exact, atol=2e-5)


# A_dist


def test_stability_constants() -> None:
    epsilon, delta = 0.5, 1e-4
    expected = {
        "printed": (2.0, 2 * math.log(1 / delta)),
        "proved": (4.0, 2 + 4 * math.log(1 / (2 * delta))),
        "proved_counts": (2.0, 1 + 2 * math.log(1 / (2 * delta))),
    }
    for calibration, pair in expected.items():
        np.testing.assert_allclose(stability.noise(calibration, epsilon, delta), pair, rtol=1e-6)


def test_stability_keeps_on_both_tails() -> None:
    gaps = np.array([0, 2, 10, 33, 60, 100, 120])
    log_p, log_q = stability.log_keep(gaps.astype(np.int32), epsilon=1.0, delta=1e-7)
    scaled = (2 + 2 * math.log(1 / 2e-7) - gaps) / 2
    np.testing.assert_allclose(log_p, stats.laplace.logsf(scaled), rtol=3e-6)
    np.testing.assert_allclose(log_q, stats.laplace.logcdf(scaled), rtol=3e-6)


def test_a_single_candidate_is_released_surely_with_finite_gradients() -> None:
    def log_p(epsilon: Any, delta: Any) -> Any:
        return stability.log_keep(jnp.inf, epsilon=epsilon, delta=delta)[0]

    value, gradient = jax.value_and_grad(log_p, argnums=(0, 1))(1.0, 1e-6)
    assert value == 0.0 and gradient == (0.0, 0.0)
    assert stability.log_keep(jnp.inf, epsilon=1.0, delta=1e-6)[1] == -jnp.inf
    slope = jax.grad(lambda e: stability.log_keep(20.0, epsilon=e, delta=1e-6)[0])(1.0)
    step = [float(stability.log_keep(20.0, epsilon=e, delta=1e-6)[0]) for e in (0.99, 1.01)]
    np.testing.assert_allclose(slope, (step[1] - step[0]) / 0.02, rtol=1e-3)


def test_stability_breaks_ties_by_the_lowest_index() -> None:
    best, gap = stability.leader(jnp.array([1, 7, 7], jnp.int32))
    assert int(best.index) == 1 and gap == 0
    best, gap = stability.leader(jnp.array([9, 7, 7], jnp.int32), jnp.array([False, False, True]))
    assert int(best.index) == 2 and gap == jnp.inf


def test_stability_guarantees() -> None:
    printed = Stability.create(epsilon=1.0, delta=1e-4, calibration="printed")
    assert printed.guarantee().epsilon == 2.0 and printed.guarantee().relation == "REPLACE_ONE"
    assert math.isclose(printed.guarantee().delta, math.e**2 * 0.5e-4, rel_tol=1e-9)
    assert printed.claimed_guarantee() == Guarantee(1.0, 1e-4, "REPLACE_ONE")
    counts = Stability.create(epsilon=1.0, delta=1e-4, calibration="proved_counts")
    assert counts.guarantee() == Guarantee(1.0, 1e-4, "ADD_OR_REMOVE_ONE")
    assert Stability.create(epsilon=400.0, delta=0.9, calibration="printed").guarantee().delta == 1.0


# Choosing


def test_choosing_law_against_figure_8() -> None:
    scores, n, epsilon, alpha = np.array([0, 3, 9, 1]), 20, 0.8, 0.6
    passes = stats.laplace(scale=4 / epsilon).sf(alpha * n / 2 - 9)
    weights = np.where(scores >= 1, np.exp(epsilon * scores / 4), 0.0)
    expected = np.append(passes * weights / weights.sum(), 1 - passes)
    got = np.exp(choosing.log_pmf(scores, n=n, epsilon=epsilon, alpha=alpha))
    np.testing.assert_allclose(got, expected, rtol=2e-6)


def test_choosing_needs_its_sample_size() -> None:
    given = {"epsilon": 0.5, "delta": 1e-5, "alpha": 0.25}
    unit = 16 / (0.25 * 0.5)
    needed = math.ceil(4 / 0.25 + unit * math.log(3 / 1e-5))
    assert choosing.private_sample_size(**given, growth=3) == needed
    assert choosing.sample_size(**given, beta=0.1, growth=3) > needed
    assert Choosing.create(n=needed, **given, growth=3).guarantee() == Guarantee(0.5, 1e-5, "REPLACE_ONE")
    with pytest.raises(ValueError, match="allow_unproved"):
        Choosing.create(n=needed - 1, **given, growth=3)
    assert Choosing.create(n=needed - 1, **given, growth=3, allow_unproved=True).guarantee() is None


# Partition selection


def _keep_table(epsilon: float, delta: float) -> tuple[np.ndarray, np.ndarray]:
    """p and 1-p by the recursion, each half on its small side."""
    p, q = [0.0], [1.0]
    while q[-1] > 0:
        first = math.exp(epsilon) * p[-1] + delta
        second = math.exp(-epsilon) * (q[-1] - delta)
        if first <= 1 - second:
            p.append(first)
            q.append(1 - first)
        else:
            q.append(max(second, 0.0))
            p.append(1 - q[-1])
    return np.array(p), np.array(q)


@pytest.mark.parametrize(
    ("epsilon", "delta", "least"), [(1.0, 1e-6, 28), (0.1, 1e-8, 310), (0.05, 1e-9, 683), (3.0, 0.4, None)]
)
def test_partition_selection_against_the_recursion(epsilon: float, delta: float, least: int | None) -> None:
    p, q = _keep_table(epsilon, delta)
    counts = np.arange(len(p) + 3, dtype=np.int32)
    p, q = np.append(p, [1.0] * 3), np.append(q, [0.0] * 3)
    assert partition_selection.saturation(epsilon, delta) == len(p) - 4
    assert least is None or partition_selection.saturation(epsilon, delta) == least
    for wide, tolerance in ((True, 1e-8), (False, 1e-5)):
        with jax.enable_x64(wide):
            log_p, log_q = partition_selection.log_keep(counts, epsilon=epsilon, delta=delta)
        np.testing.assert_allclose(np.exp(np.asarray(log_p, float)), p, rtol=tolerance)
        np.testing.assert_allclose(np.exp(np.asarray(log_q, float)), q, rtol=tolerance)
    traced = jax.jit(lambda e, d: partition_selection.log_keep(counts, epsilon=e, delta=d))(epsilon, delta)
    np.testing.assert_allclose(np.exp(np.asarray(traced[1], float)), q, rtol=1e-4, atol=1e-3 * delta)


@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 1e-6), (0.1, 1e-8), (2.0, 0.3)])
def test_partition_selection_spends_its_budget_exactly(epsilon: float, delta: float) -> None:
    counts = np.arange(partition_selection.saturation(epsilon, delta) + 3, dtype=np.int32)
    with jax.enable_x64(True):
        p, q = (np.exp(np.asarray(x)) for x in partition_selection.log_keep(counts, epsilon=epsilon, delta=delta))
    more = p[1:] - math.exp(epsilon) * p[:-1]  # a person joins: kept more often
    fewer = q[:-1] - math.exp(epsilon) * q[1:]  # a person leaves: dropped more often
    assert np.maximum(more, fewer).max() <= delta * (1 + 1e-6)
    tight = np.isclose(np.maximum(more, fewer), delta, rtol=1e-6)
    assert tight[: counts[-1] - 4].all()  # every step but the last, where p reaches 1 early


# AboveThreshold


def _first_above(queries: np.ndarray, threshold: float, epsilon: float, outcomes: Sequence[int]) -> np.ndarray:
    """The law of some outcomes, by adaptive quadrature between kinks of the integrand."""
    unit, law = 2 / epsilon, stats.laplace
    margins = (queries - threshold) / unit
    kinks = np.unique(np.clip(np.concatenate([margins, [0.0, -40.0, 40.0, -5.0, 5.0]]), -40, 40))

    def density(z: float, i: int) -> float:
        silent = np.prod(law.cdf((z - margins[:i]) / 2))
        return law.pdf(z) * silent * (law.sf((z - margins[i]) / 2) if i < len(margins) else 1.0)

    pieces = [
        [integrate.quad(density, low, high, (i,), epsabs=0, epsrel=1e-10)[0] for low, high in itertools.pairwise(kinks)]
        for i in outcomes
    ]
    return np.array(pieces).sum(axis=1)


@pytest.mark.parametrize("threshold", [4.0, -20.0, 30.0])
def test_above_threshold_law_against_adaptive_quadrature(threshold: float) -> None:
    queries = np.array([3.0, 5.0, 0.0, 4.0, 5.0])
    expected = _first_above(queries, threshold, 1.0, range(6))
    np.testing.assert_allclose(np.exp(above_threshold.log_pmf(queries, threshold, epsilon=1.0)), expected, rtol=1e-5)
    with jax.enable_x64(True):
        got = np.exp(np.asarray(above_threshold.log_pmf(queries, threshold, epsilon=1.0)))
    np.testing.assert_allclose(got, expected, rtol=1e-9)


def test_above_threshold_law_of_64_queries() -> None:
    queries = np.random.default_rng(0).integers(0, 30, 64)
    with jax.enable_x64(True):
        exact = np.exp(np.asarray(above_threshold.log_pmf(queries, 25, epsilon=1.0)))
    assert abs(exact.sum() - 1) < 1e-11
    np.testing.assert_allclose(exact[[20, 64]], _first_above(queries, 25, 1.0, [20, 64]), rtol=1e-9)
    got = above_threshold.log_pmf(queries.astype(np.int32), jnp.int32(25), epsilon=1.0)
    np.testing.assert_allclose(np.exp(np.asarray(got, float)), exact, rtol=1e-5)
