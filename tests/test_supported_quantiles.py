"""Quantiles by the keys that the data support: privacy over all neighbours, what comes into view, worst data, errors, sizes."""

import itertools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from builders import slow, thorough

import dpjax
from dpjax import Points
from dpjax.domains import wide
from dpjax.domains.events import Interval
from dpjax.optimizers import quantiles
from dpjax.optimizers.quantiles.supported import budgets, growth, least_m, least_m_of_run, log_least_weight
from dpjax.verify.plain.quantiles import supported_laws, supported_scores
from dpjax.verify.plain.supported import supported_law
from dpjax.verify.plain.tree_score import multisets

TOTAL = {"epsilon": 1.0, "delta": 1e-6}


def points_of(values, bits, rows=None):
    points = Points.create(wide.from_ints([*values, *[0] * (not values)], bits), len(values))
    return points if rows is None else points.padded(rows)


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("fractions", "m", "epsilon", "delta"),
    [([0.5], 1, 1.0, 0.04), ([0.25], 2, 2.0, 0.05), slow([0.3, 0.7], 1, 3.0, 0.1)],
)
def test_it_is_private_by_the_verifier(fractions, m, epsilon, delta, x64):
    """All neighbours among up to five points of four, for one fraction; half of delta is used up, and so 2.5 delta are seen."""
    n = 5 if len(fractions) == 1 else 3
    made, loose = (
        quantiles.supported(bits=2, fractions=fractions, epsilon=epsilon, delta=spent, m=m)
        for spent in (delta, 2.5 * delta)
    )
    report = dpjax.check(made, n=n, domain=4, epsilon=epsilon)
    assert report.exact and report.delta <= delta * (1 + 1e-9)
    if len(fractions) == 1:  # negative control
        assert dpjax.check(loose, n=n, domain=4, epsilon=epsilon).delta > delta


@pytest.mark.parametrize(("fraction", "m"), [(0.5, 8), (0.25, 14)])
def test_two_values_use_up_nearly_all_of_epsilon(fraction, m):
    """On up to 2m + 5 copies of each of two values: private, and nine tenths of epsilon are refuted."""
    given = {"bits": 3, "epsilon": 2.0, "delta": 1e-3, "m": m}
    most = 2 * m + 5
    laws = {
        (i, j): np.array(supported_laws([1] * i + [2] * j, [fraction], **given)[0])
        for i, j in itertools.product(range(most + 1), repeat=2)
    }
    pairs = [(p, laws[i + 1, j]) for (i, j), p in laws.items() if i < most]
    pairs += [(p, laws[i, j + 1]) for (i, j), p in laws.items() if j < most]
    first, second = (np.array(each) for each in zip(*pairs, strict=True))

    def delta_at(epsilon):
        return max(
            np.maximum(p - math.exp(epsilon) * q, 0).sum(axis=1).max() for p, q in ((first, second), (second, first))
        )

    assert delta_at(2.0) <= 1e-3 * (1 + 1e-9)
    assert delta_at(1.8) > 2e-3


@pytest.mark.parametrize(("bits", "most"), [(1, 5), (2, 4), (3, 3), slow(4, 3), slow(3, 5)])
def test_scores_move_and_keys_come_into_view_as_the_proof_counts(bits, most):
    """By brute force over all neighbours: scores move by 1 at most, those of 0 and less to 1 at most, and no more keys than are stated."""
    came = moved = entered = 0.0
    for fraction, m in itertools.product((0.5, 0.25, 0.7), (1, 2)):
        given = {"bits": bits, "m": m}
        scores = {
            x: np.maximum(supported_scores(x, fraction * len(x), max(fraction, 1 - fraction), **given), 0.0)
            for n in range(most + 1)
            for x in multisets(n, bits)
        }
        for x, before in scores.items():
            for z in range(2**bits) if len(x) < most else ():
                after = scores[tuple(sorted((*x, z)))]
                one_sees = (before > 0) != (after > 0)
                came = max(came, one_sees.sum())
                entered = max(entered, np.max((before + after)[one_sees], initial=0.0))
                moved = max(moved, np.abs(after - before).max())
    assert moved == pytest.approx(1.0) and entered <= 1 + 1e-12
    assert {1: 1, 2: 3}.get(bits, 5) <= came <= growth(bits)


@pytest.mark.parametrize("fraction", [0.5, 0.25, 0.9])
@pytest.mark.parametrize("epsilon", [0.3, 1.0, 4.0])
def test_no_data_weigh_less_than_is_shown(fraction, epsilon):
    """Over all multisets of up to four points of eight; and the worst of them do not weigh much more."""
    width = max(fraction, 1 - fraction)
    for m in (1, 2, 4):
        worst = math.inf
        for x in itertools.chain.from_iterable(multisets(n, 3) for n in range(5)):
            seen = [u for u in supported_scores(x, fraction * len(x), width, bits=3, m=m) if u > 0]
            worst = min(worst, math.log(sum(math.exp(epsilon / 2 * u) for u in seen)))
        shown = log_least_weight(m, width, epsilon)
        assert shown - 1e-9 <= worst
        assert m < 4 or worst < shown + 1.5 * epsilon + 1.5


def scales(bits, n, rng):
    """n points that approach a key from both sides, at distances of all scales."""
    key, half = 1 << (bits - 1), n // 2
    steps = np.sort(rng.integers(0, bits - 1, half)).tolist()
    return sorted([key - (1 << s) for s in steps] + [min(key + (1 << s), 2**bits - 1) for s in steps] + [key] * (n % 2))


@pytest.mark.parametrize("bits", [64, thorough(512)])
def test_answers_err_by_less_than_m_and_bottom_is_as_rare_as_stated(bits):
    """By exact laws on points of all scales, on two clusters, and on equal points; a much smaller m fails on the first."""
    rng = np.random.default_rng(bits)
    many = {"bits": bits, "fractions": [0.25, 0.5], **TOTAL}
    made = quantiles.supported(**many, beta=0.1)
    n = made.sample_size(alpha=0.2, beta=0.1)
    m = int(made.m)
    data = [
        scales(bits, n, rng),
        [1] * (n // 2) + [2**bits - 2] * (n - n // 2),
        [5] * n,
        scales(bits, n, rng)[: n // 3],
    ]
    points = [points_of(values, bits, 511) for values in data]
    laws = jax.jit(lambda made, points: made.laws(points, rank_error=made.m))
    for each in points:
        assert np.all(np.asarray(laws(made, each))[:, 1] <= 0.05 + 1e-6)
    outcomes = jax.jit(jax.vmap(made, in_axes=(0, None)))(jax.random.split(jax.random.key(0), 32), points[0])
    wanted = np.array([n / 4, n / 2])
    ordered = np.array(data[0], object)
    for answers, ok in zip(outcomes.hypothesis, outcomes.status == dpjax.Status.OK, strict=True):
        if ok:
            found = np.array(wide.to_ints(answers), object)[:, None]
            missed = np.maximum(wanted - (ordered <= found).sum(axis=1), (ordered < found).sum(axis=1) - wanted)
            assert np.all(missed < m)
    few = quantiles.supported(**many, m=m // 2)
    assert float(np.asarray(laws(few, points[0]))[1, 1]) > 0.2  # negative control


def test_m_is_the_least_that_is_shown_to_suffice():
    for bits, width, epsilon, delta, beta in itertools.product(
        (1, 64), (0.5, 0.9), (0.05, 1.0, 5.0), (1e-9, 0.1), (0.9, 1e-3)
    ):
        m = least_m_of_run(bits, (width, epsilon, delta), beta)
        failures = []
        for ranks in (m, m - 1):
            # One candidate of this weight stands for all keys: with monotone=False weights are e^(epsilon score/2).
            score = 2 * log_least_weight(ranks, width, epsilon) / epsilon
            failures.append(supported_law([max(score, 1e-9)], epsilon, delta, growth(bits), monotone=False)[-1])
        assert failures[0] <= beta * (1 + 1e-9)
        assert m == 1 or failures[1] > beta * (1 - 1e-9)


def test_shares_of_the_total_make_all_runs_need_about_the_same_m():
    fractions = np.array([0.1, 0.5, 0.75])
    widths, epsilons, deltas = budgets(fractions, 1.0, 1e-6, np)
    assert epsilons.sum() == pytest.approx(1.0) and deltas.sum() == pytest.approx(1e-6)
    runs = [least_m_of_run(64, run, 0.1 / 3) for run in zip(widths, epsilons, deltas, strict=True)]
    assert max(runs) == least_m(64, fractions, 1.0, 1e-6, 0.1) <= 1.05 * min(runs)


def test_windows_at_the_ends_of_few_and_many_points_follow_the_reference(x64):
    """Fractions of n that are integers and that are not; fewer points than a window, none, and the ends of the domain."""
    fractions, given = [0.125, 0.5, 0.9], {"epsilon": 6.0, "delta": 0.1, "m": 3}
    made = quantiles.supported(bits=4, fractions=fractions, **given)
    law = jax.jit(lambda points: made.pmfs(made.prepare(points), 16))
    rng = np.random.default_rng(1)
    rounded = [int(f) / 2**32 for f in np.asarray(made.fractions)]
    for n in (0, 1, 2, 5, 8, 16, 31):
        for values in (rng.integers(0, 16, n).tolist(), rng.choice([0, 15], n).tolist()):
            naive = supported_laws(values, rounded, bits=4, **given)
            np.testing.assert_allclose(np.asarray(law(points_of(values, 4, 31))), naive, atol=1e-12)


@pytest.mark.thorough
def test_a_key_next_to_the_edge_is_in_view_in_float32_too():
    """A third of three points, rounded to 2^-32: the first key's score is 2e-10, and it weighs e^0 all the same."""
    made = quantiles.supported(bits=2, fractions=[1 / 3], epsilon=1.0, delta=0.1, m=1)
    naive = supported_laws([1, 2, 3], [int(made.fractions[0]) / 2**32], bits=2, epsilon=1.0, delta=0.1, m=1)[0]
    np.testing.assert_allclose(np.asarray(made.pmf(points_of([1, 2, 3], 2))), naive, atol=1e-5)


@pytest.mark.thorough
def test_a_median_of_a_million_points_reads_the_window_alone():
    made = quantiles.supported(bits=64, fractions=[0.5], **TOTAL, beta=0.1)
    assert made.capacity == 127
    values = np.arange(10**6, dtype=np.uint32)
    points = Points(x=jnp.stack([jnp.zeros_like(values), values], axis=1), n_valid=jnp.int32(10**6), ordered=True)
    outcome = jax.jit(made)(jax.random.key(3), points)
    assert outcome.status == dpjax.Status.OK and abs(wide.to_ints(outcome.hypothesis)[0] - 500_000) <= int(made.m)


def test_numbers_may_be_swept_under_one_program():
    traces = []

    @jax.jit
    def law(made, points):
        traces.append(1)
        return made.laws(points, rank_error=20)

    points = points_of([3] * 20 + [900] * 20, 10)
    found = [
        float(law(quantiles.supported(bits=10, fractions=[f], epsilon=epsilon, delta=1e-3, m=20), points)[0, 0])
        for f, epsilon in ((0.5, 0.5), (0.5, 1.0), (0.25, 1.0))
    ]
    assert len(traces) == 1 and found[0] < found[1] and len(set(found)) == 3


def test_choose_takes_it_where_it_is_proved_to_need_the_fewest_points():
    found = {bits: dpjax.choose("median", bits=bits, alpha=0.1, beta=0.1, **TOTAL) for bits in (32, 64, 1024)}
    assert [found[bits].name for bits in (32, 64, 1024)] == ["permute_and_flip", "supported", "supported"]
    assert found[1024].n < 460 < 600 < found[1024].runner_up.value
    assert found[64].algorithm.guarantee() == found[64].guarantee
    assert found[64].n >= found[64].algorithm.sample_size(alpha=0.1, beta=0.1) - 1
    replaced = dpjax.choose("median", bits=1024, alpha=0.1, beta=0.1, relation="REPLACE_ONE", **TOTAL)
    assert replaced.guarantee.relation == "REPLACE_ONE" and replaced.name != "supported"  # it pays twice


@pytest.mark.parametrize(
    ("given", "error", "words"),
    [
        ({"beta": None}, ValueError, "either beta or m must be given"),
        ({"m": 9}, ValueError, "either beta or m must be given"),
        ({"beta": None, "m": 0}, ValueError, "m must be"),
        ({"beta": None, "m": 1.5}, TypeError, "m must be"),
        ({"beta": 1.0}, ValueError, "beta must be"),
        ({"delta": 0.0}, ValueError, "delta must be"),
        ({"epsilon": -1.0}, ValueError, "epsilon must be"),
        ({"fractions": [0.5, 0.5]}, ValueError, "fractions must increase"),
        ({"fractions": [1.5]}, ValueError, "fractions must be"),
        ({"bits": 4097}, ValueError, "bits must be"),
    ],
)
def test_bad_arguments_are_named(given, error, words):
    with pytest.raises(error, match=words):
        quantiles.supported(**({"bits": 8, "fractions": [0.5], "beta": 0.1, **TOTAL} | given))


def test_a_sample_size_is_refused_where_bottom_is_too_likely():
    with pytest.raises(ValueError, match=r"m must be >= 40 for bottom to have probability <= 0\.05, got 39"):
        quantiles.supported(bits=64, fractions=[0.5], **TOTAL, m=39).sample_size(alpha=0.1, beta=0.05)


def test_a_delta_whose_parts_float32_cannot_hold_is_refused():
    """Else bottom would be certain, and m would promise the contrary."""
    given = {"bits": 8, "fractions": [i / 71 for i in range(1, 71)], "epsilon": 1400.0, "beta": 0.1}
    with pytest.raises(ValueError, match="delta must be >="):
        quantiles.supported(**given, delta=8e-37)


@pytest.mark.thorough
def test_one_point_among_many_adds_epsilon_at_most():
    """Scores of size m/w were rounded in float32: next to m = 100,000 one point more moved bottom's logarithm by 1.008 epsilon."""
    m, epsilon = 100_000, 1.0
    made = quantiles.supported(bits=64, fractions=[0.3], epsilon=epsilon, delta=1e-6, m=m)
    three = np.asarray(wide.from_ints([2**63 - 5, 2**63 + 1000, 2**63 + 2**40], 64))

    @jax.jit
    def logs(made, points):
        window = jax.tree.map(lambda leaf: leaf[0], made._windows(points))
        low, high = wide.from_ints([2**63 + 1000, 2**63 + 1001], 65)
        keys, bottom = window.tree._log_law(window.points, Interval(low=low, high=high))
        return jnp.stack([keys[0], bottom])

    for n in (3 * m, 3 * m + 1):
        laws = []
        for more in (0, 1):
            first, middle = int(0.3 * n) - m // 3, m // 2 + more
            x = np.repeat(three, [first, middle, n - first - m // 2], axis=0)
            rows = np.pad(x, ((0, 3 * m + 4 - len(x)), (0, 0)))
            points = Points(x=jnp.asarray(rows), n_valid=jnp.int32(n + more), ordered=True)
            laws.append(np.asarray(logs(made, made.prepare(points)), float))
        assert np.max(np.abs(laws[1] - laws[0])) <= epsilon * (1 + 1e-3)
