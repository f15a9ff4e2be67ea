"""JointExp: private for all neighbours, the naive law, the constants that are sharp, the error that is stated."""

import dataclasses
import functools
import itertools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.optimize
import scipy.stats

import dpjax
from dpjax import Points, Status
from dpjax.accounting import ADD_OR_REMOVE_ONE, Guarantee
from dpjax.domains import wide
from dpjax.optimizers import quantiles
from dpjax.optimizers.quantiles import chains, near
from dpjax.verify.plain.quantiles import gap_cost, joint_law


def points_of(values, bits, rows=None):
    points = Points.create(wide.from_ints([*values, *[0] * (not values)], bits), len(values))
    return points if rows is None else points.padded(rows)


@functools.cache
def worst_loss(fractions, candidates, share, base="uniform", size=3, sizes=4):
    """The largest privacy loss of the plain law over all neighbouring multisets of few points, and clusters of up to 30."""
    small = [list(values) for n in range(sizes) for values in itertools.combinations_with_replacement(range(size), n)]
    clusters = [[a] * i + [b] * j for a, b in ((0, 2), (0, 1), (1, 2)) for i in (2, 9, 30) for j in (0, 3, 30)]
    given = {"size": size, "epsilon": 1.0, "candidates": candidates, "share": share, "base": base}
    worst = 0.0
    for values in small + clusters:
        here = np.log(joint_law(values, fractions, **given) + 1e-300)
        for p in range(size):
            there = np.log(joint_law(sorted([*values, p]), fractions, **given) + 1e-300)
            worst = max(worst, np.abs(there - here).max())
    return worst


@pytest.mark.parametrize(("fractions", "candidates"), [((0.5,), 1), ((0.3, 0.4), 1), ((0.5,), 3), ((0.3, 0.4), 3)])
def test_no_neighbouring_points_refute_the_guarantee(fractions, candidates):
    worst = worst_loss(fractions, candidates, 0.25)
    assert 0.45 < worst <= 1 + 1e-9, worst  # so 0.45 of it is refuted


@pytest.mark.parametrize("candidates", [1, 3])
def test_no_neighbouring_points_refute_the_guarantee_by_places(candidates):
    """Clusters of 30 points are seen with and without the places: the noisy count is on both sides of ENOUGH."""
    worst = worst_loss((0.3, 0.4), candidates, 0.25, base="places", size=4, sizes=3)
    assert 0.45 < worst <= 1 + 1e-9, worst


@pytest.mark.thorough
@pytest.mark.parametrize("base", ["scales", pytest.param("places", marks=pytest.mark.slow)])
def test_all_quantiles_are_private_together_by_the_verifier(base, x64):
    """At epsilon = 6, so that the grid of N, of step 8 / epsilon, sees two points."""
    given = {"candidates": 3, "share": 0.4, "base": base, "origin": 1}
    made = quantiles.joint(bits=2, fractions=[0.3, 0.6], epsilon=6.0, **given)
    report = dpjax.check(made, n=2, domain=4, epsilon=6.0)
    assert report.exact and report.delta <= 1e-12
    assert not report.refutes(Guarantee(6.0, 0.0, ADD_OR_REMOVE_ONE))
    assert report.delta_at(1.5) > 1e-3  # negative control


@pytest.mark.slow
def test_targets_from_n_are_private_by_the_verifier(x64):
    made = quantiles.joint(bits=2, fractions=[0.3, 0.6], epsilon=1.0, candidates=1, base="scales")
    report = dpjax.check(made, n=3, domain=4, epsilon=1.0)
    assert report.exact and report.delta <= 1e-12
    assert report.delta_at(0.25) > 1e-3  # negative control


@jax.jit
def law(made, points, rows):
    return made.law(made.prepare(points), made.check_event(rows))


def _rows(intervals, bits):
    low, high = (wide.from_ints(list(ends), bits + 1) for ends in zip(*intervals, strict=True))
    limbs = wide.limbs_for(bits) + 1
    return wide.resize(low, limbs), wide.resize(high, limbs)


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("candidates", "base"),
    [
        pytest.param(1, "uniform", marks=pytest.mark.slow),
        pytest.param(3, "scales", marks=pytest.mark.slow),
        pytest.param(3, "uniform", marks=pytest.mark.slow),
        (1, "places"),
        pytest.param(3, "places", marks=pytest.mark.slow),
    ],
)
def test_laws_of_intervals_are_the_naive_ones(candidates, base, x64):
    rng = np.random.default_rng(0)
    fractions = [0.2, 0.5, 0.99]
    given = {"epsilon": 2.0, "candidates": candidates, "share": 0.25, "base": base, "origin": 5}
    made = quantiles.joint(bits=4, fractions=fractions, **given)
    for n, values_of in ((0, 16), (1, 16), (6, 16), (13, 16), (12, 4)):
        values = sorted(rng.integers(0, values_of, n).tolist())
        naive = joint_law(values, fractions, size=16, **given)
        boxes = [(0, 16)] * 3, [(2, 9), (4, 12), (5, 16)], [(0, 5), (5, 6), (6, 16)], [(3, 3), (0, 16), (0, 16)]
        for box in (*boxes, [(6, 16), (0, 9), (2, 12)], [(4, 8)] * 3):  # the last but one not in order
            exact = naive[tuple(slice(low, high) for low, high in box)].sum()
            found = law(made, points_of(values, 4, 15), _rows(box, 4))
            np.testing.assert_allclose(found, [exact, 1 - exact], atol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize(("base", "runs"), [("uniform", 40_000), ("places", 4_000)])
def test_runs_follow_the_law_on_a_wide_domain(base, runs):
    """Five standard deviations."""
    values = [
        1 << 60,
        (1 << 60) + 5,
        1 << 61,
        1 << 61,
        1 << 61,
        (1 << 61) + 7,
        1 << 62,
        (1 << 62) + 1,
        3 << 61,
        3 << 61,
    ]
    given = {"candidates": 5, "share": 0.25, "base": base}
    made = quantiles.joint(bits=64, fractions=[0.3, 0.8], epsilon=3.0, **given)
    points = points_of(values, 64, 15)
    box = [(1 << 60, (1 << 61) + 1), (1 << 62, (3 << 61) + 1)]
    exact = float(law(made, points, _rows(box, 64))[0])
    answers = jax.jit(jax.vmap(lambda key: made(key, points).hypothesis))(jax.random.split(jax.random.key(0), runs))
    limbs = np.asarray(answers).astype(np.uint64)
    found = (limbs[..., 0] << np.uint64(32)) | limbs[..., 1]
    good = np.logical_and.reduce([(found[:, j] >= low) & (found[:, j] < high) for j, (low, high) in enumerate(box)])
    spread = (exact * (1 - exact) / len(good)) ** 0.5
    assert 0.05 < exact < 0.95 and abs(good.mean() - exact) < 5 * spread
    assert abs(good.mean() - 1.1 * exact) > 5 * spread  # negative control


def _many_points(ties):
    rng = np.random.default_rng(1)
    values = rng.integers(20_000, 45_000, 2000)
    return points_of(np.sort(rng.choice(values[:ties], 2000) if ties else values).tolist(), 16, 2047)


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("ties", "fractions"), [(40, [0.1, 0.15, 0.9]), pytest.param(0, [0.001, 0.5], marks=pytest.mark.slow)]
)
def test_points_far_from_all_quantiles_tell_nothing(ties, fractions, x64):
    """All tuples together weigh the same for each N and for n itself, to 1e-13; with a sixteenth of the near points they do not."""
    made, points = quantiles.joint(bits=16, fractions=fractions, epsilon=3.0), _many_points(ties)
    focused = made.focused(points.rows)
    assert 0 < 2 * focused.size * len(fractions) <= points.rows

    def weigh(points, targets):
        pieces = made.axis.pieces(points, len(fractions), np.int32(0))
        return jax.vmap(lambda each: chains.forward(pieces, each)[0])(targets)

    @functools.partial(jax.jit, static_argnums=1)
    def part(points, size=None):
        targets, _ = made._targets(made._rounded(points.n_valid), made._steps(), points.n_valid)
        if size is None:
            return weigh(points, targets)
        kept, left_out = near.near(points, np.asarray(made.fractions), size)
        assert kept.rows == size * len(fractions)
        return weigh(kept, dataclasses.replace(targets, whole=targets.whole - left_out[None]))

    everything = part(points)
    np.testing.assert_allclose(part(points, focused.size), everything, rtol=1e-13)
    assert np.max(np.abs(part(points, focused.size // 16) - everything)) > 1e-9  # negative control


@pytest.mark.thorough
def test_costs_of_more_points_than_a_float_counts_are_differences_of_whole_numbers():
    """With 2^24 points the loss was 1.6 instead of 1: n - i and the steps before the last gap were rounded before they were subtracted."""
    made = quantiles.joint(bits=1, fractions=[2.0**-20], epsilon=1.0, candidates=1)
    pieces = made.axis.pieces(points_of([0, 1, 1], 1), 1, jnp.int32(0))

    @jax.jit
    def cost(n):
        targets, many = made._own(n), dataclasses.replace(pieces, n=n)
        states = chains.finish(many, targets, jax.tree.map(jnp.zeros_like, chains.start(many)))
        parts = states.upper, chains._staying(many, targets, jnp.int32(1), jnp.arange(4, dtype=jnp.int32))
        return [-part / targets.kappa for part in parts]

    for n in range(2**24 + 10, 2**24 + 30):
        for found in cost(jnp.int32(n)):
            np.testing.assert_allclose(found, 2.0**-20 * n - np.arange(4), atol=1e-5)


def test_few_points_are_all_near():
    made = quantiles.joint(bits=16, fractions=[0.3, 0.8], epsilon=3.0)
    assert made.focused(1000).size == 0 and made.focused(1024).size == made.focused(10**6).size == 256
    with pytest.raises(TypeError, match="epsilon must be a known number"):
        jax.jit(lambda e: quantiles.joint(bits=16, fractions=[0.3, 0.8], epsilon=e).focused(1024).epsilon)(3.0)


@pytest.mark.slow
def test_a_run_on_many_records_looks_at_few():
    """Of 200,000 records 1,536 are processed, and the quartiles are within the stated error in ranks."""
    values = np.sort(np.random.default_rng(0).integers(0, 2**32, 200_000, dtype=np.uint32))
    points = dpjax.Points.create(values[:, None])
    found = dpjax.quantiles(points, [0.25, 0.5, 0.75], epsilon=1.0, key=jax.random.key(0))
    ranks = np.searchsorted(values, np.asarray(found.values))
    assert found.algorithm.focused(200_000).size == 512 and found.algorithm.size == 0
    assert np.max(np.abs(ranks - [50_000, 100_000, 150_000])) <= found.rank_error


@pytest.mark.slow
def test_runs_that_look_at_near_points_follow_the_law_of_all():
    """Five standard deviations, 1,500 runs."""
    made, points = quantiles.joint(bits=16, fractions=[0.3, 0.8], epsilon=3.0), _many_points(0)
    focused = made.focused(2047)
    assert focused.size > 0
    runs = jax.jit(jax.vmap(lambda key: focused(key, points).hypothesis))
    answers = np.asarray(runs(jax.random.split(jax.random.key(0), 1_500)))[..., 0]
    middle = np.median(answers, axis=0).astype(int)
    box = [(20_000, int(middle[0])), (int(middle[1]) - 20, 60_000)]
    exact = float(law(made, points, _rows(box, 16))[0])
    inside = np.logical_and.reduce(
        [(answers[:, j] >= low) & (answers[:, j] < high) for j, (low, high) in enumerate(box)]
    )
    spread = (exact * (1 - exact) / len(answers)) ** 0.5
    assert 0.05 < exact < 0.95 and abs(inside.mean() - exact) < 5 * spread
    assert abs(inside.mean() - 1.4 * exact) > 5 * spread  # negative control


@pytest.mark.slow
def test_runs_by_places_follow_the_law_of_every_pair():
    """Ten kinds of pairs of 7 bits, most of which need an interval that ends or begins between points, or an empty one; 20,000 runs."""
    made = quantiles.joint(bits=7, fractions=[0.4, 0.7], epsilon=1.0, candidates=1, base="places")
    points = points_of([3, 40, 41, 90], 7, 7)
    answers = jax.jit(jax.vmap(lambda key: made(key, points).hypothesis))(jax.random.split(jax.random.key(3), 20_000))
    found = np.asarray(answers)[..., 0]
    ends = [0, 16, 40, 64, 128]
    for (a, b), (c, d) in itertools.combinations_with_replacement(itertools.pairwise(ends), 2):
        exact = float(law(made, points, _rows([(a, b), (c, d)], 7))[0])
        inside = np.mean((found[:, 0] >= a) & (found[:, 0] < b) & (found[:, 1] >= c) & (found[:, 1] < d))
        assert abs(inside - exact) < 5 * (exact * (1 - exact) / 20_000) ** 0.5, (a, c)
    assert abs(inside - 1.2 * exact) > 5 * (exact * (1 - exact) / 20_000) ** 0.5  # negative control


@pytest.mark.slow
def test_values_close_together_are_found_wherever_they_lie():
    """Nine quantiles of 200 values, 2^17 to 2^20 of 2^32 codes wide: with places a mean largest error of 8, else of 36; 24 runs."""
    rng = np.random.default_rng(0)
    values = np.sort(np.clip(rng.normal(1e8, 1e5, 200), 0, 2**32 - 1).astype(np.int64)).tolist()
    fractions = [i / 10 for i in range(1, 10)]
    points = points_of(values, 32)
    errors = {}
    for base in ("uniform", "places"):
        made = quantiles.joint(bits=32, fractions=fractions, epsilon=1.0, base=base)
        run = jax.jit(lambda key, made=made: made(key, points).hypothesis)
        ranks = quantiles.nearest_rank(made.fractions, 200)
        each = [
            quantiles.rank_errors(points.in_order(1), run(key), ranks).max()
            for key in jax.random.split(jax.random.key(0), 24)
        ]
        errors[base] = float(np.mean(each))
    assert errors["places"] < 15 < 25 < errors["uniform"], errors


@pytest.mark.slow
@pytest.mark.parametrize(
    ("base", "fractions", "candidates"),
    [("places", [0.25, 0.3, 0.35, 0.4], 1), ("uniform", [0.2, 0.5, 0.8], 1), ("scales", [0.2, 0.5, 0.8], 3)],
)
@pytest.mark.parametrize("shares", [False, True])
def test_runs_follow_the_joint_law_of_all_answers(base, fractions, candidates, shares):
    """20,000 runs, gaps of less than a rank and of several: an honest run fails with probability 1e-6 (chi-squared; outcomes that are
    expected less than five times are one). Other values, whose law is another, do. A fitted count pays for targets w_j n, too."""
    given = {"epsilon": 2.0 if candidates == 1 else 8.0, "candidates": candidates, "base": base, "origin": 5}
    made = quantiles.joint(bits=3, fractions=fractions, **given)
    values = [0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 2] if shares else [0, 2, 2, 3, 4, 6, 7]
    answers = jax.jit(jax.vmap(lambda key, points: made(key, points).hypothesis, (0, None)))(
        jax.random.split(jax.random.key(4), 20_000), points_of(values, 3, 15)
    )
    found = np.zeros((8,) * len(fractions))
    np.add.at(found, tuple(np.asarray(answers)[..., 0].T), 1)

    def refuted(values):
        expected = 20_000 * joint_law(values, fractions, size=8, **given)
        often = expected > 5
        pairs = np.stack([np.append(x[often], x[~often].sum()) for x in (found, expected)])
        statistic = ((pairs[0] - pairs[1]) ** 2 / np.maximum(pairs[1], 1)).sum()
        return statistic > scipy.stats.chi2.isf(1e-6, often.sum())

    assert not refuted(values)
    assert refuted([*values[4:], 5, 5, 5, 5])  # negative control


def test_the_cost_of_the_gaps_is_that_of_the_best_ranks():
    """By a linear programme over all ranks."""
    rng = np.random.default_rng(1)
    for _ in range(60):
        m, n = int(rng.integers(1, 5)), int(rng.integers(0, 9))
        points, outputs = np.sort(rng.integers(0, 5, n)), np.sort(rng.integers(0, 5, m))
        ranks = np.array([[(points < z).sum(), (points <= z).sum()] for z in outputs] + [[n, n]])
        targets = np.sort(rng.random(m + 1)) * 9
        # r_1, ..., r_(m+1), then what each gap is away from its target at least.
        step = np.eye(m + 1) - np.eye(m + 1, k=-1)
        gaps = np.diff(targets, prepend=0.0)
        less = np.block([[step, -np.eye(m + 1)], [-step, -np.eye(m + 1)]])
        best = scipy.optimize.linprog(
            np.repeat([0, 1], m + 1),
            less,
            np.concatenate([gaps, -gaps]),
            bounds=[*ranks.tolist(), *[(0, None)] * (m + 1)],
        )
        np.testing.assert_allclose(gap_cost(ranks[None], targets), [best.fun], atol=1e-9)


def test_sums_of_products_over_multisets_are_those_of_a_list():
    rng = np.random.default_rng(0)
    weights = rng.random(5) * 10.0 ** rng.integers(-6, 6, 5)
    powers = np.stack([np.sum(weights**i) for i in range(1, 7)])
    found = np.exp(chains.complete(np.log(powers)))
    naive = [
        sum(np.prod(each) for each in itertools.combinations_with_replacement(weights.tolist(), c)) for c in range(7)
    ]
    np.testing.assert_allclose(found, naive, rtol=1e-5)


@pytest.mark.slow
def test_values_that_many_points_share_are_found():
    """400 records of 45 values, nine quantiles at epsilon = 4 in all, targets from n, 24 runs: a mean largest error of 1.2, and of 4.1 if
    noise parts ties (2.5 is asked for, five standard errors from both)."""
    rng = np.random.default_rng(0)
    values = np.sort(rng.choice(2500, 60, replace=False) + 80)
    records = np.sort(rng.choice(values, 400, p=rng.dirichlet(np.full(60, 0.5))))
    fractions = [0.146, 0.375, 0.443, 0.5, 0.666, 0.67, 0.704, 0.766, 0.908]
    made = quantiles.joint(bits=14, fractions=fractions, epsilon=4.0, base="scales", candidates=1)
    points = points_of(records.tolist(), 14)
    ranks = quantiles.nearest_rank(made.fractions, 400)
    answers = jax.jit(jax.vmap(lambda key: made(key, points).hypothesis))(jax.random.split(jax.random.key(1), 24))
    errors = jax.vmap(lambda each: quantiles.rank_errors(points.in_order(1), each, ranks))(answers)
    assert np.mean(np.max(errors, axis=1)) < 2.5


@pytest.mark.slow  # the law of values that are shared is held to its twin above
@pytest.mark.parametrize("candidates", [1, 23])
def test_values_are_told_from_their_neighbours_by_their_depth(candidates):
    """Five incomes of 392 records, two quantiles at epsilon = 0.3, 200 runs: even a law that failed at 0.1 would make 45 failures or more
    with a probability of 1e-6 only; without depth nearly all fail."""
    incomes = {0: 214, 32581: 89, 39318: 23, 45643: 51, 46151: 15}
    points = points_of([value for value, count in incomes.items() for _ in range(count)], 17)
    made = quantiles.joint(bits=17, fractions=[0.321, 0.657], epsilon=0.3, candidates=candidates)
    ranks = quantiles.nearest_rank(made.fractions, 392)
    answers = jax.jit(jax.vmap(lambda key: made(key, points).hypothesis))(jax.random.split(jax.random.key(1), 200))
    errors = jax.vmap(lambda each: quantiles.rank_errors(points.in_order(1), each, ranks))(answers)
    assert np.sum(np.max(errors, axis=1) > 0) < 45


@pytest.mark.slow
def test_runs_on_scales_follow_the_law():
    """No points but one: 4,000 runs on 12 bits, below and above the origin; five standard deviations."""
    made = quantiles.joint(bits=12, fractions=[0.5], epsilon=2.0, candidates=1, base="scales", origin=50)
    points = points_of([100], 12, 1)
    answers = jax.jit(jax.vmap(lambda key: made(key, points).hypothesis))(jax.random.split(jax.random.key(2), 4000))
    found = np.asarray(answers)[:, 0, 0]
    for low, high in ((0, 9), (9, 50), (50, 100), (100, 101), (101, 1500), (1500, 4096)):
        exact = float(law(made, points, _rows([(low, high)], 12))[0])
        inside = np.mean((found >= low) & (found < high))
        assert abs(inside - exact) < 5 * (exact * (1 - exact) / 4000) ** 0.5, (low, high)
    uniform = quantiles.joint(bits=12, fractions=[0.5], epsilon=2.0, candidates=1)
    other = float(law(uniform, points, _rows([(1500, 4096)], 12))[0])
    assert abs(inside - other) > 5 * (other * (1 - other) / 4000) ** 0.5  # negative control


@pytest.mark.slow
def test_the_error_stated_is_kept_on_hard_data():
    for candidates in (1, 31):
        made = quantiles.joint(bits=8, fractions=[0.25, 0.75], epsilon=4.0, candidates=candidates)
        for n in (0, 3, 31):
            t = min(int(made.error(beta=0.1) + 1), max(n, 1))
            for values in ([7] * n, list(range(n)), [0] * (n // 2) + [255] * (n - n // 2)):
                assert float(made.laws(points_of(values, 8, 31), rank_error=t)[:, 1].sum()) <= 0.1


@pytest.mark.parametrize(
    ("given", "error", "match"),
    [
        ({"bits": 0}, ValueError, "bits must be"),
        ({"fractions": [0.5, 0.5]}, ValueError, "fractions must increase strictly"),
        ({"epsilon": 0.0}, ValueError, "epsilon must be"),
        ({"epsilon": 1e-9}, ValueError, "epsilon must be"),  # a noisy count of rate 5e-11 would pass int32
        ({"candidates": 4}, ValueError, "candidates must be odd"),
        ({"candidates": 0}, ValueError, "candidates must be"),
        ({"share": 1.0}, ValueError, "share must be"),
        ({"base": "normal"}, ValueError, "base must be"),
        ({"origin": -1}, ValueError, "origin must be"),
        ({"fractions": [i / 65536 for i in range(1, 65536)]}, ValueError, "fractions must be at most"),
    ],
)
def test_bad_arguments_are_refused(given, error, match):
    with pytest.raises(error, match=match):
        quantiles.joint(**({"bits": 8, "fractions": [0.5], "epsilon": 1.0} | given))


@pytest.mark.thorough
def test_noise_that_does_not_fit_is_a_status_where_epsilon_is_traced():
    points = points_of([3, 5], 8)
    status = jax.jit(lambda e, key: quantiles.joint(bits=8, fractions=[0.5], epsilon=e)(key, points).status)
    assert int(status(1e-9, jax.random.key(0))) == Status.BAD_PARAMETER
    assert int(status(1.0, jax.random.key(0))) == Status.OK
    own = quantiles.joint(bits=8, fractions=[0.5], epsilon=1e-9, candidates=1)  # draws no count
    assert own.guarantee().epsilon == 1e-9


def test_the_noisy_count_leaves_the_grid_as_often_as_the_error_reckons():
    """At epsilon 5.02 half the grid is 7.97 counts wide, and the noise is whole."""
    made = quantiles.joint(bits=8, fractions=[0.5], epsilon=5.02, candidates=11, share=0.5)
    r, half = np.exp(-0.5 * 5.02), 8 / 5.02 * 5
    outside = 1 - sum((1 - r) / (1 + r) * r ** abs(k) for k in range(-int(half), int(half) + 1))
    assert outside > 1.2 * r**half
    assert np.exp(made._tail().log_beyond(5)) == pytest.approx(outside, rel=1e-9)


@pytest.mark.parametrize("given", [{}, {"candidates": 3, "share": 0.3}, {"epsilon": 9.0}, {"epsilon": 0.11}])
def test_the_error_reckons_with_noise_beyond_the_grid(given):
    """Noise by noise: how far n is from the closest N that is tried, for n between two of the grid and on it."""
    made = quantiles.joint(**{"bits": 8, "fractions": [0.5], "epsilon": 1.0} | given)
    epsilon, step, steps = float(made.epsilon), float(made._step(np)), made._steps()
    kappa, r = epsilon * (1 - made.share) / 2, np.exp(-made.share * epsilon)
    for beta in (0.3, 1e-2, 1e-4, 1e-9):
        counts = math.ceil(math.log(beta / 2 * (1 + r)) / math.log(r))
        reach = max(int(steps.max()), math.ceil(counts / step))  # beyond that with probability beta at most
        noise = np.arange(-math.floor(step * reach), math.floor(step * reach) + 1)
        chances = (1 - r) / (1 + r) * r ** np.abs(noise)
        worst = 0.0
        for n in (int(step * 10**4) + np.arange(9) * step / 8).astype(int):
            tried = step * (np.round((n + noise[:, None]) / step) + steps)
            worst = max(worst, np.log(np.sum(chances * np.exp(kappa * np.min(np.abs(tried - n), axis=1)))))
        assert worst - 1e-9 <= made._log_aside(reach) < worst + 1.5 * kappa * step


def test_an_error_is_stated_for_every_beta():
    """It grows with what is asked for, beyond what the grid of N reaches, too: a count as far off as e^-6 of all are."""
    made = quantiles.joint(bits=8, fractions=[0.3, 0.6], epsilon=1.0)
    errors = [made.error(beta=beta) for beta in np.geomspace(0.5, 1e-12, 150)]
    assert np.all(np.diff(errors) > 0) and np.all(np.diff(errors) < 25)
    assert errors[-1] < 2.5 * errors[0] + 2 * np.log(1e12) / 0.05
    least = quantiles.joint(bits=8, fractions=[0.5], epsilon=1.0, share=2.0**-24)  # millions of steps, in one sum
    assert 1e7 < least.error(beta=1e-3) < least.error(beta=1e-320) < 1e12


def test_an_error_is_stated_where_one_of_the_sums_is_the_whole():
    """With fractions close around 1/2 the targets from n decide alone: both terms by hand."""
    for fractions, epsilon in itertools.product(((0.49, 0.51), (0.5, 0.5 + 2.0**-32)), (0.5, 1.0, 2.0, 5.0)):
        for base, weight in (("uniform", 1), ("places", 2 / 0.9)):
            made = quantiles.joint(bits=32, fractions=fractions, epsilon=epsilon, base=base)
            kappa, moves, spare = (
                0.475 * epsilon,
                2 * (1 - (fractions[1] - fractions[0])),
                0.05 - np.exp(made._tail().log_beyond(15)),
            )
            grid = np.logaddexp(1.9, 3.8 + made._tail().log_beyond(7))
            nats = 64 * np.log(2) + np.log(weight / spare) + grid
            t = (nats - np.log(16) - 2 * np.log(moves)) * moves / (2 * kappa)
            assert made.error(beta=0.05) == pytest.approx(t, rel=1e-5)


@pytest.mark.thorough
def test_the_grid_for_a_large_total_has_whole_numbers():
    """Steps of 8 / epsilon would put 4 points at place 5e9 of the grid, which no int32 holds."""
    for epsilon, naive in ((20.0, None), (1e10, [0.0, 1.0, 0.0, 0.0])):
        made = quantiles.joint(bits=2, fractions=[0.4], epsilon=epsilon, candidates=3)
        law = np.asarray(made.pmf(points_of([0, 1, 1, 3], 2)))[:-1]
        naive = joint_law([0, 1, 1, 3], [0.4], size=4, epsilon=epsilon, candidates=3) if naive is None else naive
        assert law == pytest.approx(naive, rel=1e-4, abs=1e-30)
    assert made.error(beta=0.1) < 0.1
