"""Exact verification and audit: reference values, naive references, cleared and flagged mechanisms."""

import dataclasses
import functools
import itertools
import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import integrate, stats

from dpjax import verify
from dpjax.accounting.guarantee import ADD_OR_REMOVE_ONE, REPLACE_ONE, Guarantee
from dpjax.core import proportions
from dpjax.domains import ordered
from dpjax.mechanisms import (
    Exponential,
    ExponentialPiecewise,
    Geometric,
    OneSidedGeometric,
    PartitionSelection,
    above_threshold,
    choosing,
    exponential,
    exponential_piecewise,
    geometric,
    one_sided_geometric,
    partition_selection,
    permute_and_flip_piecewise,
    report_noisy_max,
    stability,
    supported,
)
from dpjax.verify import (
    audit,
    audit_samples,
    delta_curve,
    histograms,
    hockey_stick,
    laplace_delta,
    laplace_deltas,
    neighbours,
    probabilities,
    records,
    sequence_neighbours,
    sequences,
    specimens,
    stability_specimen,
    worst_pair,
)
from dpjax.verify.audit import _codes as audited_codes
from dpjax.verify.audit import runs as audited_runs
from dpjax.verify.exact import worst_of_table

DELTA = 1e-4
OUTPUTS = np.arange(-30, 40, dtype=np.int32)


# A_dist: the reference values


def test_printed_a_dist_breaks_its_claim_and_keeps_its_guarantee() -> None:
    specimen = stability_specimen("printed", epsilon=1.0, delta=DELTA)
    table = probabilities(specimen.law, specimen.datasets)
    worst, further = (worst_of_table(table, specimen.datasets, specimen.pairs, epsilon) for epsilon in (1.0, 2.0))
    np.testing.assert_allclose(np.divide([worst.delta, further.delta], DELTA), [3678, 3.69], rtol=2e-3)
    assert worst.refutes(specimen.claimed) and not worst.refutes(Guarantee(1.0, 0.37, REPLACE_ONE))
    honest = stability.mechanism(epsilon=1.0, delta=DELTA, calibration="printed").guarantee()
    assert not further.refutes(honest)


def test_proved_a_dist_spends_exactly_its_delta() -> None:
    specimen = stability_specimen("proved", epsilon=1.0, delta=DELTA)
    worst = specimen.worst()
    assert not worst.refutes(specimen.claimed)
    np.testing.assert_allclose(worst.delta / DELTA, 1.0, rtol=1e-9)


@pytest.mark.parametrize(("epsilon", "holds"), [(0.68, True), (0.71, False), (1.0, False)])
def test_printed_constants_on_counts_under_add_remove_hold_up_to_ln_2(epsilon: float, holds: bool) -> None:
    law = _log_pmf(stability.mechanism(epsilon=epsilon, delta=0.01, calibration="printed"))
    counts = histograms(2, range(14))
    worst = worst_pair(law, counts, neighbours(counts, ADD_OR_REMOVE_ONE), epsilon)
    assert worst.refutes(Guarantee(epsilon, 0.01, ADD_OR_REMOVE_ONE)) != holds


def test_the_witness_is_the_worst_event_of_its_pair() -> None:
    specimen = stability_specimen("printed")
    worst = specimen.worst()
    outcomes = np.exp(np.asarray(jax.jit(specimen.law)(worst.datasets[0]), np.float64))
    np.testing.assert_allclose(outcomes, worst.p, rtol=1e-5)
    gain = worst.p[worst.event].sum() - math.e * worst.q[worst.event].sum()
    np.testing.assert_allclose(gain, worst.delta, rtol=1e-12)
    assert np.abs(worst.datasets[0] - worst.datasets[1]).sum() == 2


# Every mechanism keeps its guarantee


def _log_pmf(mechanism: Any) -> Any:
    """ln P of every outcome of a mechanism that lists them."""
    return lambda counts: jnp.log(mechanism.pmf(counts))


def _of_points(mechanism: ExponentialPiecewise) -> Any:
    """ln P of each of six points, in three pieces whose quality is a count."""

    def law(counts: Any) -> Any:
        pieces = ordered.from_breakpoints([0, 1, 3], [0.0, 0.0, 0.0], 5, beyond=0.0)
        quality = jnp.zeros_like(pieces.values).at[:3].set(counts.astype(pieces.values.dtype))
        return jnp.log(mechanism.masses(dataclasses.replace(pieces, values=quality), 6)[:-1])

    return law


def _geometric_law(mechanism: Geometric) -> Any:
    def law(count: Any) -> Any:
        given = {"epsilon": mechanism.epsilon, "sensitivity": mechanism.sensitivity}
        low = geometric.log_cdf(OUTPUTS[:1], count[0], **given)
        high = geometric.log_sf(OUTPUTS[-2:-1], count[0], **given)
        return jnp.concatenate([low, geometric.log_pmf(OUTPUTS[1:-1], count[0], **given), high])

    return law


def _one_sided_law(mechanism: OneSidedGeometric) -> Any:
    def law(count: Any) -> Any:
        inner = one_sided_geometric.log_pmf(OUTPUTS - count[0], epsilon=mechanism.epsilon)
        return jnp.append(inner, one_sided_geometric.log_sf(OUTPUTS[-1] - count[0], epsilon=mechanism.epsilon))

    return law


REPLACED, SEVERAL = histograms(3, [6]), histograms(3, range(6))
KEPT = [
    (exponential.mechanism(epsilon=0.8), _log_pmf, REPLACED),
    (exponential.mechanism(epsilon=0.8, monotone=True), _log_pmf, SEVERAL),
    (report_noisy_max.mechanism(epsilon=0.8), _log_pmf, REPLACED),
    (report_noisy_max.mechanism(epsilon=0.8, monotone=True), _log_pmf, SEVERAL),
    (exponential_piecewise.mechanism(epsilon=0.8), _of_points, REPLACED),
    (permute_and_flip_piecewise.mechanism(epsilon=0.8), _of_points, REPLACED),
    (above_threshold.mechanism(epsilon=0.8, threshold=3), _log_pmf, REPLACED),
    (stability.mechanism(epsilon=0.8, delta=0.1), _log_pmf, histograms(3, [9])),
    (stability.mechanism(epsilon=0.8, delta=0.1, calibration="proved_counts"), _log_pmf, histograms(3, range(8))),
    (stability.mechanism(epsilon=0.3, delta=0.1, calibration="printed"), _log_pmf, histograms(3, [12])),
    (partition_selection.mechanism(epsilon=0.8, delta=0.01), _log_pmf, histograms(1, range(20))),
    (geometric.mechanism(epsilon=0.8), _geometric_law, histograms(2, [6])),
    (one_sided_geometric.mechanism(epsilon=0.8), _one_sided_law, histograms(1, range(6))),
    (supported.mechanism(epsilon=0.8, delta=0.1), _log_pmf, histograms(3, range(8))),
    (choosing.mechanism(n=60, epsilon=1.0, delta=0.05, alpha=0.9), _log_pmf, histograms(2, [60])),
]


@pytest.mark.parametrize(("mechanism", "law", "counts"), KEPT, ids=lambda x: type(x).__name__)
def test_every_guarantee_holds_on_all_neighbours(mechanism: Any, law: Any, counts: np.ndarray) -> None:
    promised = mechanism.guarantee()
    pairs = neighbours(counts, promised.relation)
    assert len(pairs) > 5
    table = probabilities(law(mechanism), counts)
    assert not worst_of_table(table, counts, pairs, promised.epsilon).refutes(promised)
    # The negative control: the same law does not keep a quarter less epsilon with the same delta.
    control = Guarantee(0.75 * promised.epsilon, promised.delta, promised.relation)
    if isinstance(mechanism, Exponential | ExponentialPiecewise | Geometric | PartitionSelection):
        assert worst_of_table(table, counts, pairs, control.epsilon).refutes(control)


def test_choosing_below_its_sample_size_can_leak() -> None:
    mechanism = choosing.mechanism(n=4, epsilon=1.0, delta=0.05, alpha=0.9, allow_unproved=True)
    assert choosing.private_sample_size(epsilon=1.0, delta=0.05, alpha=0.9) > 4
    counts = histograms(2, [4])
    worst = worst_pair(_log_pmf(mechanism), counts, neighbours(counts, REPLACE_ONE), 1.0)
    assert worst.refutes(Guarantee(1.0, 0.05, REPLACE_ONE))


# The enumeration


def test_histograms_and_their_neighbours_against_brute_force() -> None:
    counts = histograms(3, [2, 3, 4])
    brute = [row for row in itertools.product(range(5), repeat=3) if 2 <= sum(row) <= 4]
    assert sorted(map(tuple, counts.tolist())) == sorted(brute)
    for relation, distance in ((REPLACE_ONE, 2), (ADD_OR_REMOVE_ONE, 1)):
        same_size = distance == 2
        expected = {
            (i, j)
            for (i, a), (j, b) in itertools.permutations(enumerate(counts), 2)
            if np.abs(a - b).sum() == distance and (a.sum() == b.sum()) == same_size
        }
        pairs = list(map(tuple, neighbours(counts, relation).tolist()))
        assert set(pairs) == expected and len(pairs) == len(expected)


def test_sequences_and_their_neighbours_against_brute_force() -> None:
    values = sequences(3, 3)
    assert values.tolist() == [list(row) for row in itertools.product(range(3), repeat=3)]
    expected = {(i, j) for (i, a), (j, b) in itertools.permutations(enumerate(values), 2) if (a != b).sum() == 1}
    pairs = list(map(tuple, sequence_neighbours(3, 3).tolist()))
    assert set(pairs) == expected and len(pairs) == len(expected)


def test_narrow_integers_have_no_neighbours_beyond_their_ends() -> None:
    """In 8 bits 0 - 1 is 255."""
    counts = np.array([[0, 255], [255, 0]], np.uint8)
    assert len(neighbours(counts, "REPLACE_ONE")) == 0
    assert len(neighbours(np.array([[0], [255], [254]], np.uint8), "ADD_OR_REMOVE_ONE")) == 2


def test_records_unfold_histograms() -> None:
    counts = histograms(3, [0, 2])
    values, n_valid = records(counts, 4)
    assert values.shape == (7, 4)
    for row, n, count in zip(values, n_valid, counts, strict=True):
        assert np.bincount(row[:n], minlength=3).tolist() == count.tolist()
    with pytest.raises(ValueError, match="capacity"):
        records(counts, 1)


def test_worst_pair_against_a_double_loop() -> None:
    counts, epsilon = histograms(3, [4]), 0.3
    law = _log_pmf(exponential.mechanism(epsilon=1.0))
    p = probabilities(law, counts, batch_size=4)
    brute = max(
        (sum(max(x - math.exp(epsilon) * y, 0.0) for x, y in zip(p[i], p[j], strict=True)), i, j)
        for i, j in neighbours(counts, REPLACE_ONE)
    )
    worst = worst_pair(law, counts, neighbours(counts, REPLACE_ONE), epsilon, batch_size=5)
    np.testing.assert_allclose(worst.delta, brute[0], rtol=1e-12)


def test_datasets_may_be_any_pytree() -> None:
    counts = histograms(2, range(5))
    values, n_valid = records(counts, 4)

    def law(dataset: Any) -> Any:
        ones = jnp.sum((dataset["x"] == 1) & (jnp.arange(4, dtype=jnp.int32) < dataset["n_valid"]), dtype=jnp.int32)
        return exponential.log_pmf(jnp.stack([dataset["n_valid"] - ones, ones]), epsilon=1.0)

    datasets, pairs = {"x": values, "n_valid": n_valid}, neighbours(counts, ADD_OR_REMOVE_ONE)
    same = worst_pair(_log_pmf(exponential.mechanism(epsilon=1.0)), counts, pairs, 0.1)
    worst = worst_pair(law, datasets, pairs, 0.1)
    np.testing.assert_allclose(worst.delta, same.delta, rtol=1e-12)
    assert set(worst.datasets[0]) == {"x", "n_valid"}


def test_a_law_that_is_none_is_refused() -> None:
    counts = histograms(2, [2])
    pairs = neighbours(counts, REPLACE_ONE)
    for second in (0.4, 0.5 - 1e-6):
        with pytest.raises(ValueError, match="sum to one"):
            worst_pair(lambda count, second=second: jnp.log(jnp.array([0.5, second])), counts, pairs, 1.0)
    with pytest.raises(ValueError, match="pairs"):
        worst_pair(_log_pmf(exponential.mechanism(epsilon=1.0)), counts, pairs[:0], 1.0)
    with pytest.raises(ValueError, match="epsilon"):
        worst_pair(_log_pmf(exponential.mechanism(epsilon=1.0)), counts, pairs, math.nan)


@pytest.mark.parametrize("which", [0, 1])
def test_laws_that_are_not_numbers_have_no_hockey_stick(which: int) -> None:
    laws = [[0.0, -np.inf], [0.0, -np.inf]]
    laws[which] = [np.nan, -np.inf]
    with pytest.raises(ValueError, match="sum to one"):
        hockey_stick(*laws, 1.0)


def test_hockey_stick_of_laplace_against_quadrature() -> None:
    for epsilon, shift, scale in ((0.5, 1.0, 1.0), (0.1, 3.0, 2.0), (2.0, 1.0, 1.0)):
        p, q = stats.laplace(shift, scale), stats.laplace(0.0, scale)
        kinks = [0.0, shift, shift / 2 + epsilon * scale / 2]
        brute, _ = integrate.quad(
            lambda x, p=p, q=q, e=epsilon: max(p.pdf(x) - math.exp(e) * q.pdf(x), 0.0), -60, 60, points=kinks
        )
        np.testing.assert_allclose(laplace_delta(epsilon, shift=shift, scale=scale), brute, atol=1e-8)
    assert hockey_stick([[0.0, -np.inf]] * 2, [[math.log(0.5)] * 2] * 2, 0.0).tolist() == [0.5, 0.5]


# The audit


def test_clopper_pearson_against_scipy() -> None:
    low, high = proportions.clopper_pearson(np.array([0, 7, 50]), 50, level=0.95)
    for successes, a, b in zip((0, 7, 50), low, high, strict=True):
        interval = stats.binomtest(successes, 50).proportion_ci(0.95, method="exact")
        np.testing.assert_allclose((a, b), (interval.low, interval.high), atol=1e-12)


@pytest.mark.parametrize("specimen", specimens(), ids=lambda specimen: specimen.name)
def test_broken_mechanisms_are_flagged_exactly_and_by_runs(specimen: Any) -> None:
    worst = specimen.worst()
    assert worst.refutes(specimen.claimed)
    found = audit(
        jax.random.key(8),
        specimen.sample,
        worst.datasets,
        trials=50_000,
        delta=specimen.claimed.delta,
        epsilon=specimen.claimed.epsilon,
    )
    assert found.refutes(specimen.claimed) and found.epsilon > specimen.claimed.epsilon


def test_honest_mechanisms_are_not_flagged_by_runs() -> None:
    specimen = stability_specimen("proved", delta=0.01)
    worst = specimen.worst()
    found = audit(jax.random.key(9), specimen.sample, worst.datasets, trials=50_000, delta=0.01, epsilon=1.0)
    assert not found.refutes(specimen.claimed)
    # The negative control: the same runs refute a delta ten times smaller.
    assert found.refutes(Guarantee(1.0, 0.001, REPLACE_ONE))


def test_the_bound_is_rarely_above_the_truth() -> None:
    # Randomised response at epsilon 1, audits at level 0.9: at most a tenth may exceed 1.
    rng, p = np.random.default_rng(0), math.e / (1 + math.e)
    bounds = [audit_samples(rng.random(2000) > p, rng.random(2000) < p, level=0.9).epsilon for _ in range(400)]
    above = np.mean(np.array(bounds) > 1.0)
    assert above < 0.1 + 4.2 * math.sqrt(0.09 / 400)
    assert np.median(bounds) > 0.75


def test_audit_refuses_bad_input() -> None:
    with pytest.raises(ValueError, match="delta"):
        audit_samples([0] * 9, [1] * 9, delta=1.0)
    with pytest.raises(ValueError, match="level"):
        audit_samples([0] * 9, [1] * 9, level=1.0)
    with pytest.raises(ValueError, match="at least 4"):
        audit_samples([0], [1])
    with pytest.raises(ValueError, match="epsilon"):
        audit_samples([0] * 9, [1] * 9, epsilon=-1.0)
    with pytest.raises(ValueError, match=r"shapes \(9,\) and \(8,\)"):
        audit_samples([0] * 9, [1] * 8)
    with pytest.raises(TypeError, match="first must hold integers or real numbers, got <U4"):
        audit_samples(["none"] * 9, ["some"] * 9)
    with pytest.raises(ValueError, match="one outcome a run"):
        audit_samples(np.zeros((9, 2)), np.ones((9, 2)))


def test_audit_refuses_what_is_no_pair_or_no_outcome() -> None:
    def run(mechanism: Any, *pair: Any) -> Any:
        return audit(jax.random.key(0), mechanism, pair, trials=100)

    with pytest.raises(ValueError, match="equal shapes"):
        run(lambda key, data: data.sum(), jnp.zeros(2), jnp.zeros(3))
    with pytest.raises(TypeError, match="two datasets"):
        run(lambda key, data: data, jnp.int32(0))
    with pytest.raises(TypeError, match="one array"):
        run(lambda key, data: (data, data), jnp.int32(0), jnp.int32(1))
    with pytest.raises(ValueError, match="one outcome a run"):
        run(lambda key, data: jnp.stack([data, data]), jnp.float32(0), jnp.float32(1))


def noisy(key: jax.Array, value: Any) -> Any:
    return value + 2 * jax.random.laplace(key)


@pytest.mark.parametrize(
    ("mechanism", "low", "high"),
    [
        (lambda key, value: value, 5, math.inf),  # a total leak
        (lambda key, value: value + jax.random.uniform(key), 5, math.inf),  # another, no outcome twice
        (lambda key, value: jnp.where(jax.random.uniform(key) < 0.9, jnp.nan, value), 2, math.inf),  # atoms
        (noisy, 0.35, 0.5),  # private with epsilon 1/2
        (lambda key, value: 0 * noisy(key, value), 0, 0),  # nothing is released
    ],
    ids=["leak", "spread", "atoms", "laplace", "constant"],
)
def test_real_outcomes_are_audited(mechanism: Any, low: float, high: float) -> None:
    pair = jnp.float32(0), jnp.float32(1)
    found = audit(jax.random.key(3), mechanism, pair, trials=20_000)
    assert low <= found.epsilon <= high
    assert found.event.ndim == 2 and found.event.shape[1] == 2


def test_bounds_on_real_outcomes_are_rarely_above_the_truth() -> None:
    # Laplace noise of scale 1 on counts 0 and 1: epsilon 1. At level 0.9 at most a tenth may exceed it.
    noise = np.random.default_rng(1).laplace(size=(2, 400, 2000))
    bounds = [audit_samples(noise[0, i], noise[1, i] + 1, level=0.9).epsilon for i in range(400)]
    assert np.mean(np.array(bounds) > 1.0) < 0.1 + 4.2 * math.sqrt(0.09 / 400)
    assert np.median(bounds) > 0.5


def test_a_row_of_integers_is_one_outcome() -> None:
    """Each entry alone is a fair coin on both datasets; whether the two entries agree tells everything."""
    coins = np.random.default_rng(2).integers(0, 2, 2000)
    found = audit_samples(np.stack([coins, coins], 1), np.stack([coins, 1 - coins], 1))
    assert found.epsilon > 4 and sorted(map(tuple, found.event.tolist())) in ([(0, 0), (1, 1)], [(0, 1), (1, 0)])


def test_pairs_must_name_datasets() -> None:
    counts, law = histograms(2, [2]), _log_pmf(exponential.mechanism(epsilon=1.0))
    for wrong in (-1, 3, 99):
        for call in (worst_pair, lambda *args: delta_curve(*args[:3], [args[3]])):
            with pytest.raises(ValueError, match=f"indices from 0 to 2 of the datasets, got {wrong}"):
                call(law, counts, np.array([[0, 1], [0, wrong]]), 1.0)
    with pytest.raises(ValueError, match="shape"):
        worst_pair(law, counts, np.array([0, 1]), 1.0)
    with pytest.raises(TypeError, match="indices"):
        worst_pair(law, counts, np.array([[0.0, 1.0]]), 1.0)


@pytest.mark.slow
def test_a_million_pairs_take_seconds() -> None:
    counts = histograms(6, [12])  # 6188 datasets, about 1.1e5 pairs; repeated to a million
    pairs = np.tile(neighbours(counts, REPLACE_ONE), (8, 1))
    assert len(pairs) > 900_000
    law = functools.partial(exponential.log_pmf, epsilon=1.0)
    worst = worst_pair(lambda count: law(jnp.repeat(count, 16)), counts, pairs, 0.5, batch_size=2048)
    assert 0 < worst.delta < 1


def test_bad_arguments_are_refused_by_name() -> None:
    counts = histograms(2, [2])
    pairs = neighbours(counts, REPLACE_ONE)
    law = lambda count: jnp.log(jnp.array([0.5, 0.5]))  # noqa: E731
    calls: list[tuple[Any, type[Exception], str]] = [
        (lambda: histograms(2, 3), TypeError, "sizes must list"),
        (lambda: histograms(2, []), TypeError, "sizes must list"),
        (lambda: records(np.array([[1.5, 2.0]])), ValueError, "counts must be whole"),
        (lambda: records(np.array([[-1, 2]])), ValueError, "counts must be whole"),
        (lambda: neighbours(np.array([1, 2]), REPLACE_ONE), ValueError, "counts must be whole"),
        (lambda: sequences(0, 2), ValueError, "domain must be"),
        (lambda: sequences(2, 1.5), TypeError, "size must be"),
        (lambda: laplace_delta(math.nan, shift=1.0, scale=1.0), ValueError, "epsilon must be"),
        (lambda: laplace_deltas(1.0, loss=1.0, count=5), ValueError, "count must be 0, 1 or 2"),
        (lambda: laplace_deltas(1.0, loss=-1.0, count=1), ValueError, "loss must be"),
        (lambda: hockey_stick([0.0], [0.0], math.nan), ValueError, "epsilon must be"),
        (lambda: hockey_stick([0.0, 1.0], [0.0, 1.0, 2.0], 1.0), ValueError, "same outcomes"),
        (lambda: worst_pair(None, counts, pairs, 1.0), TypeError, "law must be"),
        (lambda: worst_pair(law, counts, pairs, 1.0, batch_size=0), ValueError, "batch_size must be"),
        (lambda: worst_pair(law, None, pairs, 1.0), ValueError, "datasets must be"),
        (lambda: worst_pair(law, (counts, counts[:2]), pairs, 1.0), ValueError, "datasets must be"),
        (lambda: probabilities(law, counts[:0]), ValueError, "datasets must be"),
        (lambda: delta_curve(law, counts, pairs, 1.0), TypeError, "epsilons must list"),
        (lambda: audit(jax.random.key(0), None, (0, 1), trials=9), TypeError, "mechanism must be"),
        (lambda: audit(0, lambda key, data: data, (0, 1), trials=9), TypeError, "key must be"),
    ]
    for call, error, words in calls:
        with pytest.raises(error, match=words):
            call()


def test_a_large_epsilon_is_as_good_as_infinite() -> None:
    counts = histograms(2, [2])
    pairs = neighbours(counts, REPLACE_ONE)
    assert worst_pair(lambda count: jnp.log(jnp.array([0.5, 0.5])), counts, pairs, 1e5).delta == 0
    assert not audit_samples([0] * 99, [0, 1, 1] * 33).refutes(Guarantee(1e5, 0.0, REPLACE_ONE))


def test_lists_that_would_fill_the_memory_and_arrays_that_are_none_are_refused():
    for call, error, words in (
        (lambda: verify.sequences(2, 40), ValueError, r"domain\^size must be below 2\^31, .* got 2\^40"),
        (lambda: verify.histograms(2**70, [2]), ValueError, "domain must be from 1"),
        (lambda: verify.records(np.array([[1, 2]]), "1"), TypeError, "capacity must be an int"),
        (lambda: verify.hockey_stick("x", [0.0], 1.0), TypeError, "log_p must be an array of numbers"),
        (lambda: verify.laplace_deltas(math.nan, loss=1.0, count=1), ValueError, "epsilon must be a number, not NaN"),
        (lambda: verify.laplace_deltas("1", loss=1.0, count=1), TypeError, "epsilon must be an array of numbers"),
        (lambda: verify.laplace_deltas(1.0, loss=1.0, count=True), ValueError, "count must be 0, 1 or 2"),
    ):
        with pytest.raises(error, match=words):
            call()


def test_a_pair_refutes_by_more_than_rounding_and_its_event_is_that_of_its_epsilon() -> None:
    """A leak of 1e-9 counts, one of 1e-13 does not. The second outcome is likelier on the first dataset, but by a factor below e."""
    for leak, seen in ((1e-9, True), (1e-13, False)):
        p = np.array([[0.5, 0.5], [0.5 + leak, 0.5 - leak]])
        worst = worst_of_table(p, np.arange(2), np.array([[0, 1], [1, 0]]), 0.0)
        assert worst.refutes(Guarantee(0.0, 0.0, REPLACE_ONE)) is seen
    worst = worst_of_table(np.array([[0.7, 0.3, 0.0], [0.1, 0.2, 0.7]]), np.arange(2), np.array([[0, 1]]), 1.0)
    assert worst.event.tolist() == [True, False, False] and worst.delta == pytest.approx(0.7 - math.e * 0.1)
    for wrong, error in ((math.nan, ValueError), (None, TypeError)):  # beyond a slack of NaN nothing is refuted
        with pytest.raises(error, match="slack must be"):
            worst.refutes(Guarantee(1.0, 0.0, REPLACE_ONE), slack=wrong)
    with pytest.raises(TypeError, match="guarantee must be a Guarantee, got None"):
        worst.refutes(None)


def test_a_probability_that_is_too_small_for_a_float_refutes_nothing() -> None:
    """A bit that is wrong with probability e^-800 is (800, 0)-private, and not (700, 0)-private."""
    log_p = jnp.array([0.0, -800.0])
    for epsilon, seen in ((800.0, False), (700.0, True)):
        worst = worst_pair(lambda bit: log_p[(jnp.arange(2) + bit) % 2], np.arange(2), np.array([[0, 1]]), epsilon)
        assert worst.refutes(Guarantee(epsilon, 0.0, REPLACE_ONE)) is seen


def test_of_an_odd_number_of_outcomes_the_larger_half_is_held_out() -> None:
    found = audit_samples([0] * 2001, [1] * 2001)
    low, high = (proportions.clopper_pearson(count, 1001, level=found.level) for count in (1001, 0))
    assert found.p_low == pytest.approx(low[0], rel=1e-12) and found.q_high == pytest.approx(high[1], rel=1e-12)


def test_cells_of_real_outcomes_are_made_of_the_half_that_is_not_held_out() -> None:
    """Otherwise the event would be chosen by the outcomes that it is tested on."""
    first, second = np.random.default_rng(0).random((2, 400))
    moved = [np.concatenate([one[:200], one[200:] + 7]) for one in (first, second)]
    np.testing.assert_array_equal(audited_codes(first, second, 200)[0], audited_codes(*moved, 200)[0])


def test_a_number_that_repeats_is_a_cell_of_its_own_and_so_is_nan() -> None:
    """The cell is half-open, from the next smaller float on; the likeliest cell comes first in the event."""
    rng = np.random.default_rng(0)
    plain, atoms = rng.normal(size=(2, 20_000))
    atoms[::10] = 0.25
    found = audit_samples(atoms, plain, epsilon=1.0)
    assert not found.swapped and found.event[0].tolist() == [np.nextafter(0.25, -1.0), 0.25]
    atoms[::10] = math.nan
    found = audit_samples(plain, atoms, epsilon=1.0)
    assert found.swapped and np.array_equal(found.event[0], [math.inf, math.nan], equal_nan=True)


def test_integers_of_both_signs_and_64_bits_are_told_apart() -> None:
    """-1 and 2^64 - 1 have the same bits, and floats merge the latter with 2^64 - 2, and 2^63 - 1 with 2^63."""
    below, above = np.full(1000, -1), np.full(1000, 2**64 - 1, np.uint64)
    assert audit_samples(below, above).epsilon > 3
    assert audit_samples(np.full(1000, 2**63 - 1), np.full(1000, 2**63, np.uint64)).epsilon > 3
    assert audit_samples(above - np.uint64(1), np.where(np.arange(1000) % 2, above, 0), epsilon=0.0).delta_at(0.0) > 0.9


def test_runs_on_both_datasets_have_keys_of_their_own() -> None:
    first, second = audited_runs(
        jax.random.key(0), lambda key, x: jax.random.bits(key) + x, (jnp.uint32(0), jnp.uint32(0)), trials=64
    )
    assert len({*first.tolist(), *second.tolist()}) == 128


def test_an_audit_takes_off_delta() -> None:
    """An outcome that has probability 0.1 on one dataset and 0 on the other is within delta = 0.2; at delta = 0.05 half of it is left."""
    rare = (np.arange(20_000) % 10 == 0).astype(int)
    assert audit_samples(rare, np.zeros(20_000, int), delta=0.2).epsilon == 0.0
    some = audit_samples(rare, np.zeros(20_000, int), delta=0.05)
    pure = audit_samples(rare, np.zeros(20_000, int))
    assert math.exp(pure.epsilon - some.epsilon) == pytest.approx(2.0, rel=0.3)


def test_an_event_is_learned_for_the_epsilon_that_is_to_be_refuted() -> None:
    """Outcome 2, with probability 0.02 against 0, proves the largest epsilon; outcome 1, with 0.6 against 0.1, is most of delta(0.5)."""
    coins = np.random.default_rng(0).random((2, 20_000))
    first, second = (
        np.select([coin < 0.02 * (1 - i), coin < 0.62 - 0.52 * i], [2, 1], 0) for i, coin in enumerate(coins)
    )
    assert audit_samples(first, second).event.tolist() == [2]
    told = audit_samples(first, second, epsilon=0.5)
    assert set(told.event.tolist()) == {1, 2} and told.delta_at(0.5) > 0.35


def test_sequences_of_numpys_integers_have_the_neighbours_of_pythons():
    """8-bit integers once wrapped around."""
    for small in (np.uint8, np.int8):
        assert (verify.sequence_neighbours(small(4), small(4)) == verify.sequence_neighbours(4, 4)).all()
