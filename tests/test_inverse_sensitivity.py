"""Quantiles by inverse sensitivity: distances match linear programmes, runs match the law, and neighbours are at most epsilon apart."""

import dataclasses
import itertools
import math
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats

import dpjax
from dpjax import Points
from dpjax.accounting import ADD_OR_REMOVE_ONE, Guarantee
from dpjax.domains import wide
from dpjax.domains.events import Interval
from dpjax.optimizers import quantiles
from dpjax.optimizers.quantiles import sizes
from dpjax.optimizers.quantiles.inverse_sensitivity import TRIES, Counts
from dpjax.verify.plain.quantiles import inverse_sensitivity_law, records_to_the_border

FALSE_ALARM = 1e-6
SHARED = [0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 2]
CASES = [
    (SHARED, (0.2, 0.5, 0.8), "uniform", 2.0),
    ([0, 2, 2, 3, 4, 6, 7], (0.25, 0.3, 0.35, 0.4), "scales", 3.0),
    ([4] * 9 + [5] * 9, (0.3, 0.6), "places", 1.0),  # right by far
    ([], (0.4, 0.7), "uniform", 1.3),
    ([0] * 15 + [2] * 16, (2**-30, 0.6), "uniform", 0.3),
    ([3], (0.5,), "scales", 2.0),
    (SHARED, (0.02, 0.98), "uniform", 4.0),
]


def points_of(values, bits, rows=None):
    points = Points.create(wide.from_ints([*values, *[0] * (not values)], bits), len(values))
    return points if rows is None else points.padded(rows)


def made_for(fractions, base, epsilon, bits=3):
    return quantiles.inverse_sensitivity(bits=bits, fractions=fractions, epsilon=epsilon, base=base, origin=5)


def twin(values, fractions, base, epsilon, **given):
    return inverse_sensitivity_law(values, fractions, size=8, epsilon=epsilon, base=base, origin=5, **given)


@pytest.mark.slow  # the registry covers the uniform measure, and tests below cover places with another count
@pytest.mark.parametrize(("values", "fractions", "base", "epsilon"), CASES)
def test_the_law_is_that_of_the_twin(values, fractions, base, epsilon):
    law = made_for(fractions, base, epsilon).pmf(points_of(values, 3, 31))
    np.testing.assert_allclose(law[:-1], twin(values, fractions, base, epsilon).reshape(-1), atol=2e-6)
    assert law[-1] <= 1e-6  # beyond the noisy counts that are summed up


@pytest.mark.thorough
def test_derivatives_of_the_law_are_right_where_few_points_say_little(x64):
    """N_0 is above n up to epsilon = 0.59, falling as epsilon rises, and below n at 3."""
    made, points = made_for((0.25, 0.6), "uniform", 1.0), points_of([1, 2, 2, 2, 5, 6, 6], 3)

    @jax.jit
    def law(epsilon):
        return dataclasses.replace(made, epsilon=epsilon).pmf(points)[:-1]

    slopes = jax.jit(jax.jacfwd(law))
    for epsilon in (0.3, 0.53, 3.0):
        steps = (law(epsilon + 1e-3) - law(epsilon - 1e-3)) / 2e-3  # a target has 23 binary digits after the point
        np.testing.assert_allclose(slopes(epsilon), steps, atol=1e-4)
        assert np.abs(steps).max() > 0.01


@pytest.fixture(params=[0, pytest.param(1, marks=pytest.mark.slow), pytest.param(-1, marks=pytest.mark.slow)])
def margin(request, monkeypatch):
    """How many steps of four points N_0 is below a count that costs 0.3 of epsilon: N_0 is about n (0), below it (1) or above it (-1)."""
    jax.clear_caches()
    for name, value in (("SHARE_OF_MANY", 0.3), ("MANY", 1), ("MARGIN", request.param)):
        monkeypatch.setattr(sys.modules["dpjax.optimizers.quantiles.inverse_sensitivity"], name, value)
    yield request.param
    jax.clear_caches()  # drop programs that contain these constants


COUNTED = ([4] * 9 + [5] * 9, (0.3, 0.6), "places", 1.0)


@pytest.mark.thorough
def test_the_law_is_that_of_the_twin_where_a_count_says_how_many_points_there_are(margin):
    told = twin(*COUNTED, share=0.3, margin=margin)
    law = made_for(*COUNTED[1:]).pmf(points_of(COUNTED[0], 3, 31))
    np.testing.assert_allclose(law[:-1], told.reshape(-1), atol=2e-6)
    assert np.abs(told - twin(*COUNTED, share=0.3)).sum() > 0.02 * (2 - margin)  # the count matters


@pytest.mark.slow  # a test below covers the uniform measure in less time
def test_the_failure_is_below_its_bound_where_a_count_says_how_many_points_there_are(margin):
    failures_and_bounds(made_for(*COUNTED[1:]), COUNTED[0], times=20 if margin > 0 else None)


@pytest.mark.slow
def test_runs_follow_the_law_where_a_count_says_how_many_points_there_are(margin):
    follows_the_law(*COUNTED, count=2000, share=0.3, margin=margin)


def counted(m, bits, epsilon):
    fractions = [(i + 1) / (m + 1) for i in range(m)]
    return quantiles.inverse_sensitivity(bits=bits, fractions=fractions, epsilon=epsilon, base="places")


@pytest.mark.parametrize(("m", "bits", "epsilon"), [(24, 8, 1.0), (31, 32, 0.2), (60, 64, 3.0)])
def test_the_count_says_how_many_points_there_are_where_they_do_not_pay_for_all_places(m, bits, epsilon):
    """N_0 is three to four steps below the count, and never above the number of points that a focused run processes."""
    made = counted(m, bits, epsilon)
    step, enough = int(made._step()), int(made._enough())
    plainly = float(jax.jit(lambda count: made._plainly(count).beyond())(np.int32(0)))

    @jax.jit
    def told(index):
        counts, measures = made._told(jnp.int32(0), index)
        return counts.beyond(), measures

    assert step == math.ceil(20 / epsilon) and enough > 4 * step
    least = {}
    for index in (-5, 3, 5, -(-enough // step) - 1, -(-enough // step)):
        beyond, measures = told(np.int32(index))
        least[index] = -float(beyond)
        assert int(measures) == (2 if index * step >= enough else 10)
    *others, last, pays = least.values()
    assert others[:2] == [-plainly] * 2 and others[2] == max(2 * step, others[0])
    assert pays == others[0] and last == step * (-(-enough // step) - 4) < enough
    assert made.focused(2**30).size * m >= enough


def test_fewer_outputs_get_the_least_size_of_no_count():
    made = counted(23, 32, 1.0)
    assert made.counting == 0.01 and float(made._told(jnp.int32(0), jnp.int32(7))[0].short()) == pytest.approx(
        12 / 0.99
    )


def test_an_error_is_stated_where_the_count_leads_astray():
    """It grows as beta falls, up to what the greatest N_0 implies; with fewer outputs N_0 does not depend on the count."""
    made, fewer, m, bits = counted(31, 16, 1.0), counted(23, 16, 1.0), 31, 16
    errors = [made.error(beta=beta) for beta in np.geomspace(0.5, 1e-300, 200)]
    nats = m * bits * math.log(2) + math.log(2 / 0.9)
    plain = [(nats - math.log(beta)) * 31 / 32 / 0.475 for beta in (0.5, 1e-300)]
    assert np.all(np.diff(errors) > -1e-9) and plain[0] < errors[0] < 1.01 * plain[0]
    assert errors[-1] == pytest.approx(max(plain[1], 31 / 32 * (int(made._enough()) - 60)))
    nats = 23 * bits * math.log(2) + math.log(2 / 0.9)
    assert fewer.error(beta=1e-9) == pytest.approx((nats + math.log(1e9)) * 23 / 24 / 0.495, rel=1e-6)


def test_scores_of_more_points_than_a_float_counts_move_by_one_with_a_point():
    """N_0 is above n, and both are above 2^24: their difference is taken in integers."""
    made, n = counted(100, 64, 3e-4), 2**24 + 10
    least, ranks = n + 400_000, np.round(np.arange(1, 101) / 101 * n)

    @jax.jit
    def score(n):
        counts = Counts(n=n, least=jnp.int32(least), rest=jnp.zeros(()))
        ends = jnp.append(jnp.asarray(ranks, jnp.int32), n)
        return made._log_weight(ends, ends, counts, made._own(counts, made._all())) / made.kappa()

    scores = np.array([score(jnp.int32(n + k)) for k in range(12)])
    assert np.abs(np.diff(scores)).max() < 1.2


@pytest.mark.thorough
@pytest.mark.parametrize("fractions", [(1, 2**31), (4, 2**31), (1_288_490_175, 1_288_490_185)])
def test_targets_rise_for_fractions_that_are_tiny_or_nearly_equal(fractions):
    """For sizes below n roundings once made them fall: those sizes were left out, and draws kept too often (losses of 1.4 for 1)."""
    made = quantiles.inverse_sensitivity(bits=3, fractions=[each / 2**32 for each in fractions], epsilon=1.0)
    shifts = np.float32([*np.linspace(-13, 13, 53), *np.linspace(-1e-3, 1e-3, 7), -1e-8, -1e-30, 1e-30])
    targets = jax.jit(jax.vmap(made._at, (None, 0)))(np.int32(13), shifts)
    found = np.asarray(targets.whole, object) * 2**32 + np.asarray(targets.rest, object)
    assert (np.diff(found, axis=1) >= 0).all() and (found[:, -1] >= 0).all()
    np.testing.assert_allclose((found[:, -1] / 2**32).astype(float), 13 + shifts, rtol=1e-7, atol=1e-6)
    for row, own in ((row, row[-1]) for row in found.tolist()):
        assert all(0 <= own * f // 2**32 - target <= 1 for f, target in zip(fractions, row[1:-1], strict=True))


@pytest.mark.thorough
def test_it_is_private_where_a_count_says_how_many_points_there_are(margin, x64):
    made = quantiles.inverse_sensitivity(bits=2, fractions=[0.3, 0.6], epsilon=1.0, base="places", origin=1)
    report = dpjax.check(made, n=4, domain=4, epsilon=1.0)
    assert report.exact and report.delta <= 1e-9
    assert report.delta_at(0.25) > 1e-3  # negative control


@pytest.mark.slow  # the registry covers one case, and a test below another
@pytest.mark.parametrize(("values", "fractions", "base", "epsilon"), CASES)
def test_runs_follow_the_law_of_all_answers(values, fractions, base, epsilon):
    """8,000 runs, as for `joint`: a right sampler fails with probability 1e-6 (chi-squared), other values fail; few draws are rejected."""
    follows_the_law(values, fractions, base, epsilon)


@pytest.mark.slow
def test_sizes_that_are_far_apart_at_first_change_no_law(monkeypatch):
    """Forty times as far apart as they should be: the gaps are split where draws are made, and few draws are rejected."""
    far_apart(monkeypatch)
    follows_the_law(SHARED, (0.25, 0.75), "uniform", 2.0)


def far_apart(monkeypatch):
    monkeypatch.setattr(sizes, "STEP", 80.0)
    monkeypatch.setattr(sizes, "GOOD", 0.0)
    return made_for((0.25, 0.75), "uniform", 2.0)


@pytest.mark.thorough
def test_sizes_that_are_far_apart_at_first_are_cut_where_draws_are_made(monkeypatch):
    made = far_apart(monkeypatch)
    points = made.prepare(made.fit(points_of(SHARED, 3, 31)))
    counts = made._plainly(points.n_valid)
    tried = jax.jit(made._tried)(points, made._all(), counts, jnp.int32(1), jnp.int32(99))
    assert np.isfinite(tried.sizes).sum() > 2 * sizes.BATCH > np.isfinite(made._first(counts)).sum()


@pytest.mark.slow  # the test above, that sizes are cut, takes less time
def test_few_draws_are_given_back_where_points_say_little():
    """100 points of every scale on 63 bits: outputs anywhere weigh as much as right ones."""
    values = np.floor(2.0 ** (62 * np.random.default_rng(0).random(100)))
    points = points_of([int(value) for value in values], 63)
    made = quantiles.inverse_sensitivity(bits=63, fractions=[0.25, 0.5, 0.75], epsilon=1.0)
    tries = jax.jit(jax.vmap(lambda key: made(key, points).info["tries"]))(jax.random.split(jax.random.key(0), 20))
    assert tries.max() < 300, tries  # 2,500 with the first sizes alone


def follows_the_law(values, fractions, base, epsilon, *, count=8000, **given):
    made = made_for(fractions, base, epsilon)
    runs = jax.jit(jax.vmap(made, (0, None)))(jax.random.split(jax.random.key(4), count), points_of(values, 3, 31))
    found = np.zeros((8,) * len(fractions))
    np.add.at(found, tuple(np.asarray(runs.hypothesis)[..., 0].T), 1)

    def refuted(values):
        expected = count * twin(values, fractions, base, epsilon, **given)
        often = expected > 5
        pairs = np.stack([np.append(x[often], x[~often].sum()) for x in (found, expected)])
        statistic = ((pairs[0] - pairs[1]) ** 2 / np.maximum(pairs[1], 1)).sum()
        return statistic > scipy.stats.chi2.isf(FALSE_ALARM, often.sum())

    assert not refuted(values)
    assert refuted([*values[4:], 6, 6, 6, 6])  # negative control
    tries = np.asarray(runs.info["tries"])
    assert tries.max() < TRIES and tries.mean() < 8


@pytest.mark.thorough
@pytest.mark.parametrize("fractions", [(0.5,), pytest.param((0.3, 0.4), marks=pytest.mark.slow)])
def test_no_neighbouring_points_refute_the_guarantee(fractions):
    """All multisets of up to three points of three, and clusters, by the plain law; they refute 0.6 of epsilon."""
    small = [list(values) for n in range(4) for values in itertools.combinations_with_replacement(range(3), n)]
    clusters = [[a] * i + [b] * j for a, b in ((0, 2), (1, 2)) for i in (2, 9) for j in (0, 3, 9)]
    given = {"size": 3, "epsilon": 1.0}
    worst = 0.0
    for values in small + clusters:
        here = np.log(inverse_sensitivity_law(values, fractions, **given) + 1e-300)
        for p in range(3):
            there = np.log(inverse_sensitivity_law(sorted([*values, p]), fractions, **given) + 1e-300)
            worst = max(worst, np.abs(there - here).max())
    assert 0.6 < worst <= 1 + 1e-9, worst


@pytest.mark.parametrize("base", ["scales", pytest.param("places", marks=pytest.mark.slow)])
def test_it_is_private_by_the_verifier(base, x64):
    made = quantiles.inverse_sensitivity(bits=2, fractions=[0.3, 0.6], epsilon=1.0, base=base, origin=1)
    report = dpjax.check(made, n=3, domain=4, epsilon=1.0)
    assert report.exact and report.delta <= 1e-9
    assert not report.refutes(Guarantee(1.0, 0.0, ADD_OR_REMOVE_ONE))
    assert report.delta_at(0.25) > 1e-3  # negative control


@pytest.mark.thorough
@pytest.mark.parametrize("m", [pytest.param(1, marks=pytest.mark.slow), pytest.param(2, marks=pytest.mark.slow), 5])
def test_distances_are_those_of_linear_programmes_and_no_draw_is_kept_too_often(m):
    """For outputs anywhere, near the right ranks, and right ones with some margin; accurate to 1e-4 records in float32."""
    rng = np.random.default_rng(m)
    fractions = np.sort(rng.choice(np.arange(3, 98), m, replace=False)) / 100
    exact = [round(f * 2**32) / 2**32 for f in fractions]
    made = quantiles.inverse_sensitivity(bits=6, fractions=fractions, epsilon=2.0)
    values = np.sort(np.concatenate([np.repeat(rng.integers(0, 64, 8), 12), rng.integers(0, 64, 40)]))
    best = values[np.minimum((fractions * values.size).astype(int), values.size - 1)]
    asked = [best, *(np.sort(best + rng.integers(-6, 7, m)) for _ in range(20)), *np.sort(rng.integers(0, 64, (10, m)))]
    points = made.prepare(made.fit(points_of(values.tolist(), 6)))
    counts, everything = made._plainly(points.n_valid), made._all()
    tried = jax.jit(made._tried)(points, everything, counts, jnp.int32(1), jnp.int32(99))

    @jax.jit
    def told(low, high):
        own = made._own(counts, everything)
        return made._log_weight(low, high, counts, own), made._log_ratio(low, high, counts, everything, tried)

    for answers in asked:
        low, high = ((values[None] < answers[:, None]).sum(1), (values[None] <= answers[:, None]).sum(1))
        weight, ratio = told(*(np.append(ranks, values.size).astype(np.int32) for ranks in (low, high)))
        records = records_to_the_border(
            values.tolist(), answers.tolist(), exact, least=min(6.0, m * 6 * math.log(2) / 2)
        )
        np.testing.assert_allclose(weight, records, atol=1e-4)
        assert ratio <= -math.log(2) + 1e-4


@jax.jit
def runs_of(made, points):
    """400 runs; one program serves all tests of two quantiles of 63 rows."""
    return jax.vmap(lambda key: made(key, points))(jax.random.split(jax.random.key(0), 400))


@pytest.mark.thorough
def test_the_error_that_is_stated_holds_behind_gaps():
    """Points on both sides of a gap that decides all: of 400 runs no more fail than beta allows (binomial test); `joint` states more."""
    made = quantiles.inverse_sensitivity(bits=16, fractions=[0.3, 0.7], epsilon=4.0)
    beta = 0.05
    error = made.error(beta=beta)
    n = made.sample_size(alpha=0.2, beta=beta)
    values = [0] * (n // 2) + [2**15] * (n - n // 2)
    points = points_of(values, 16, 63)
    answers = runs_of(made, points).hypothesis
    ranks = quantiles.nearest_rank(made.fractions, n)
    off = jax.vmap(lambda each: jnp.max(quantiles.rank_errors(points, each, ranks)))(answers)
    failed = int((np.asarray(off) > error + 0.5).sum())
    assert scipy.stats.binomtest(failed, 400, beta, alternative="greater").pvalue > FALSE_ALARM
    assert error < quantiles.joint(bits=16, fractions=[0.3, 0.7], epsilon=4.0).error(beta=beta)


@pytest.mark.thorough
@pytest.mark.parametrize("base", ["uniform", pytest.param("places", marks=pytest.mark.slow)])
def test_the_failure_is_below_its_bound_and_not_far(base):
    failures_and_bounds(made_for((0.3, 0.6), base, 3.0), [1, 1, 2, 3, 3, 3, 5, 6, 6, 7], times=12)


def failures_and_bounds(made, values, times):
    points = made.prepare(made.fit(points_of(values, 3, 31)))
    law = np.asarray(made.pmf(points))[:-1].reshape(8, 8)
    bound_of = jax.jit(made.failure_bound)
    for low, high in (([1, 3], [4, 7]), ([2, 3], [4, 6]), ([0, 0], [8, 8])):
        event = jax.vmap(lambda low, high: Interval.of((low, high), 2))(
            *(wide.from_ints(end, 4) for end in (low, high))
        )
        failure = 1 - law[low[0] : high[0], low[1] : high[1]].sum()
        bound = float(bound_of(points, event))
        assert failure - 1e-6 <= bound <= (1 if times is None else max(times * failure, 1e-6)), (failure, bound)


@pytest.mark.slow  # a test of near points for `joint` is quicker
def test_runs_that_look_at_near_points_only_are_as_good():
    """On 32 of 400 points around each quantile: ranks of the first answer have the same distribution as on all (Kolmogorov-Smirnov)."""
    values = np.sort(np.random.default_rng(0).integers(0, 2**15, 400)).tolist()
    whole = quantiles.inverse_sensitivity(bits=15, fractions=[0.3, 0.8], epsilon=8.0)
    assert whole.focused(2**20).size == 32 and whole.focused(100).size == 0
    points = points_of(values, 15, 511)

    def ranks_of(made):
        runs = jax.jit(jax.vmap(lambda key: made(key, points).hypothesis))(jax.random.split(jax.random.key(1), 400))
        return np.searchsorted(values, np.asarray(runs)[:, 0, 0])

    ranks = [ranks_of(made) for made in (whole, dataclasses.replace(whole, size=32))]
    assert scipy.stats.ks_2samp(*ranks).pvalue > FALSE_ALARM
    assert all(abs(rank.mean() - 120) < 2 for rank in ranks)


@pytest.mark.parametrize(
    ("given", "match"),
    [
        ({"fractions": [0.5, 0.5]}, "increase strictly"),
        ({"epsilon": 0.0}, "epsilon must be"),
        ({"epsilon": 1e-7, "base": "places"}, "epsilon must be >="),
        ({"base": "wide"}, "base must be one of"),
        ({"origin": 257}, "origin must be"),
        ({"rho": 0.1}, "rho"),
        ({"epsilon": None, "rho": 1e-30, "base": "places"}, "rho must be >= .* for an epsilon of .*, got 1e-30"),
    ],
)
def test_bad_arguments_are_refused(given, match):
    with pytest.raises((TypeError, ValueError), match=match):
        quantiles.inverse_sensitivity(**({"bits": 8, "fractions": [0.5], "epsilon": 1.0} | given))


@pytest.mark.thorough
@pytest.mark.parametrize(("epsilon", "near"), [(1e-9, False), (1e6, True)])
def test_the_smallest_and_the_largest_budgets(epsilon, near):
    """Either only the base measure counts, and no target exceeds int32; or all answers are right."""
    made = made_for((0.45, 0.75), "uniform", epsilon)
    points = points_of([1, 1, 2, 3, 3, 3, 5, 6, 6, 7], 3, 63)
    law = np.asarray(made.pmf(points))[:-1].reshape(8, 8)
    runs = runs_of(made, points)
    assert np.all(runs.status == dpjax.Status.OK) and runs.info["tries"].max() < 100
    assert (law[3, 6] > 1 - 1e-6) == near  # ranks 4.5 and 7.5
    if near:
        assert np.all(np.asarray(runs.hypothesis)[..., 0] == [3, 6])
    else:
        np.testing.assert_allclose(law[np.triu_indices(8)], 1 / 36, rtol=1e-4)


@pytest.mark.slow
def test_what_is_no_data_is_not_drawn_again_and_again():
    """More points than rows, fewer than none, and a budget that is NaN: reported after one try, not after all."""
    made, points = made_for((0.3, 0.6), "uniform", 1.0), points_of(SHARED, 3)
    run = jax.jit(lambda made, points: made(jax.random.key(0), points))
    wrong = [dataclasses.replace(points, n_valid=jnp.int32(n)) for n in (-1, points.rows + 1)]
    for outcome in (*(run(made, each) for each in wrong), run(dataclasses.replace(made, epsilon=np.nan), points)):
        assert outcome.info["tries"] == 1 and outcome.status != dpjax.Status.OK


def test_a_budget_of_rho_and_of_epsilon_are_one():
    pure = quantiles.inverse_sensitivity(bits=8, fractions=[0.5], epsilon=1.0, base="places")
    assert 1 / 8 > pure.zcdp() > 0.98 / 8
    by_rho = quantiles.inverse_sensitivity(bits=8, fractions=[0.5], rho=pure.zcdp(), base="places")
    assert by_rho.guarantee().epsilon == pytest.approx(1.0, rel=1e-9)
