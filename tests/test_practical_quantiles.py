"""Quantiles from a hierarchical histogram, by AboveThreshold along a grid, and from slices around noisy ranks: privacy over all neighbours,
naive laws, extreme data, and the errors that are stated."""

import functools
import itertools
import math

import builders
import jax
import numpy as np
import pytest
from frequencies import FALSE_ALARM, p_value

import dpjax
from dpjax import Points, Status, bounds
from dpjax.accounting import ADD_OR_REMOVE_ONE, Guarantee
from dpjax.domains import wide
from dpjax.optimizers import interior_point, quantiles
from dpjax.optimizers.quantiles import noisy_ranks
from dpjax.optimizers.quantiles.tree import _named
from dpjax.optimizers.quantiles.unbounded import geometric_grid
from dpjax.verify import histograms, neighbours
from dpjax.verify.exact import sticks
from dpjax.verify.plain.quantiles import noisy_slices_law, tree_law, unbounded_laws

RUNS = 4000
ROWS = 31


def points_of(values, bits, rows=ROWS):
    return Points.create(wide.from_ints([*values, *[0] * (rows - len(values))], bits), len(values))


@jax.jit
@functools.partial(jax.vmap, in_axes=(None, 0, None))
def runs(mechanism, key, data):
    return mechanism(key, data)


def keys(count=RUNS):
    return jax.random.split(jax.random.key(3), count)


def largest_errors(mechanism, points, count=200):
    """The largest errors of many runs, in ranks; infinite where nothing was released."""
    outcomes = runs(mechanism, keys(count), points)
    ranks = quantiles.nearest_rank(np.asarray(mechanism.fractions), points.n_valid)
    ordered = mechanism.prepare(mechanism.fit(points))
    errors = jax.vmap(lambda answers: quantiles.rank_errors(ordered, answers, ranks))(outcomes.hypothesis)
    return np.where(outcomes.status == Status.OK, np.asarray(errors).max(axis=1), np.inf)


def refuted(table, counts, guarantee):
    pairs = neighbours(counts, guarantee.relation)
    return bool(sticks(np.asarray(table), pairs, guarantee.epsilon).max() > guarantee.delta * (1 + 1e-9) + 1e-12)


# --------------------------------------------------------------------------------------------- hierarchical histogram


def small_tree(epsilon=4.0, fractions=(0.6,)):
    return quantiles.tree(bits=2, fractions=list(fractions), epsilon=epsilon, branching=2)


def test_no_neighbouring_points_refute_the_tree():
    """All multisets of up to three points of 4."""
    counts = histograms(4, range(4))
    multisets = [[x for x in range(4) for _ in range(row[x])] for row in counts]
    table = [tree_law(points, 0.6, bits=2, branching=2, epsilon=4.0, reach=8) for points in multisets]
    np.testing.assert_allclose(np.sum(table, axis=1), 1, atol=1e-6)
    assert not refuted(table, counts, Guarantee(4.0, 1e-6, ADD_OR_REMOVE_ONE))  # noises beyond 8 are left out
    assert refuted(table, counts, Guarantee(2.0, 1e-6, ADD_OR_REMOVE_ONE))  # negative control


@pytest.mark.parametrize("generator", ["threefry2x32", builders.thorough("rbg")])
def test_all_fractions_meet_the_same_tree_whatever_the_generator(generator):
    """rbg gives all lanes the words of the first lane's key; a tree for each fraction would cost a budget for each."""
    tree = quantiles.tree(bits=8, fractions=[0.5, 0.5 + 2**-30], epsilon=1.0, branching=2)
    points = Points.create(wide.from_ints([1] * 100 + [200] * 100, 8))
    found = jax.vmap(lambda key: tree(key, points).hypothesis)(jax.random.split(jax.random.key(0, impl=generator), 32))
    assert len(np.unique(found[:, 0], axis=0)) > 2 and (found[:, 0] == found[:, 1]).all()


@pytest.mark.slow
def test_the_tree_follows_its_law():
    values = [0, 1, 1, 2, 3, 3]
    drawn = np.asarray(runs(small_tree(), keys(), points_of(values, 2)).hypothesis)[:, 0, 0]
    counts = np.bincount(drawn, minlength=4)
    law, other = (np.array(tree_law(values, f, bits=2, branching=2, epsilon=4.0, reach=8)) for f in (0.6, 0.5))
    assert p_value(counts, RUNS * law) > FALSE_ALARM
    assert p_value(counts, RUNS * other) < FALSE_ALARM  # negative control


@pytest.mark.slow
def test_all_quantiles_are_read_off_one_structure():
    """Each is the same as alone, so the privacy cost does not depend on their number."""
    points = points_of(np.random.default_rng(0).integers(0, 2**40, ROWS).tolist(), 40)
    fractions = [0.1, 0.2, 0.5, 0.9]
    together = quantiles.tree(bits=40, fractions=fractions, epsilon=3.0)
    both = runs(together, keys(50), points).hypothesis
    for i, fraction in enumerate(fractions):
        alone = runs(quantiles.tree(bits=40, fractions=[fraction], epsilon=3.0), keys(50), points).hypothesis
        np.testing.assert_array_equal(alone[:, 0], both[:, i])
    assert np.unique(np.asarray(both[:, 2]), axis=0).shape[0] > 10  # and they are random


def test_every_node_of_every_level_has_its_own_noise():
    """Six nodes on each of four levels: equal keys would make equal noise, which differences of counts would cancel."""
    nodes = [(level, [low, high]) for level in range(4) for low in range(3) for high in range(2)]
    level, prefix = (
        np.array(part, kind) for part, kind in zip(zip(*nodes, strict=True), (np.int32, np.uint32), strict=True)
    )
    made = jax.jit(jax.vmap(lambda level, prefix: _named(jax.random.key(0), level, prefix)))(level, prefix)
    assert len(np.unique(jax.random.key_data(made), axis=0)) == len(nodes)


@pytest.mark.slow
@pytest.mark.parametrize("branching", [4, builders.slow(16)])
def test_without_noise_the_tree_finds_the_quantiles(branching):
    """With epsilon so large that no noise shows: wide domains, widths that do not divide them, ties, one point, fractions near the ends."""
    fractions = [2.0**-30, 0.01, 1 / 3, 0.5, 0.99, 1 - 2.0**-30]
    made = quantiles.tree(bits=61, fractions=fractions, epsilon=1e4, branching=branching)
    top = 2**61 - 1
    for values in (
        [5],
        [0, top],
        [7] * 20 + [9] * 3,
        [top] * 4,
        [2**k for k in range(31)],
        [top - 2**k for k in range(31)],
    ):
        assert largest_errors(made, points_of(values, 61), 2).max() == 0
    answers = wide.to_ints(made(keys()[0], points_of([], 61)).hypothesis)
    assert answers == [top] * 6  # no point: any answer is right


@pytest.mark.slow
def test_the_error_stated_for_the_tree_is_kept():
    made = quantiles.tree(bits=12, fractions=[0.2, 0.5, 0.8], epsilon=2.0)
    n = made.sample_size(alpha=0.2, beta=0.1)
    data = np.random.default_rng(1).integers(0, 2**12, 4095)
    assert n < 4095
    many = Points.create(wide.from_ints(sorted(data[:n].tolist() + [0] * (4095 - n)), 12), 4095)
    assert np.mean(largest_errors(made, many) > 0.2 * n) <= 0.1
    few = points_of(sorted(data[: n // 100].tolist()), 12, 4095)
    assert np.mean(largest_errors(made, few) > 0.2 * (n // 100)) > 0.1  # negative control


def test_weights_are_those_of_least_squares():
    """Along a path: the children's counts, and the estimate from above as one more measurement of their sum."""
    made = quantiles.tree(bits=12, fractions=[0.5], epsilon=1.0, branching=4)
    variance = 1.0
    for weight in made.weights():
        design = np.vstack([np.eye(4), np.ones(4)])
        precision = np.diag([1.0] * 4 + [1 / variance])
        covariance = np.linalg.inv(design.T @ precision @ design)
        estimate = covariance @ design.T @ precision @ np.array([3.0, 1.0, 4.0, 1.0, 5.0])
        np.testing.assert_allclose(estimate, np.array([3.0, 1.0, 4.0, 1.0]) + weight * (5.0 - 9.0), rtol=1e-12)
        variance = covariance[0, 0]


# ------------------------------------------------------------------------------------------------------ AboveThreshold


@functools.cache
def on_eight():
    return jax.jit(lambda made, points: made.pmfs(made.prepare(points), 8)[:, :-1])


@pytest.mark.slow  # the verifier below covers fewer points
@pytest.mark.parametrize(("fractions", "direction"), [([0.5], "up"), ([0.2, 0.7], "nearer"), ([0.2, 0.7], "up")])
def test_no_neighbouring_points_refute_unbounded_quantiles(fractions, direction, x64):
    """All multisets of up to two points of 8, and clusters of up to 30; runs are independent, so their worst losses add up."""
    made = quantiles.unbounded(bits=3, fractions=fractions, epsilon=1.0, direction=direction, base=1.5)
    small = [list(values) for n in range(3) for values in itertools.combinations_with_replacement(range(8), n)]
    clusters = [[a] * i + [b] * j for a, b in ((0, 7), (3, 4)) for i in (0, 8, 15) for j in (0, 4, 15)]
    worst = 0.0

    def logs(values):
        return np.log(np.maximum(np.asarray(on_eight()(made, points_of(values, 3)), np.float64), 1e-300))

    for values in small + clusters:
        here = logs(values)
        for p in range(0, 8, 1 if len(values) < 3 else 3):
            loss = logs(sorted([*values, p])) - here
            worst = max(worst, loss.max(axis=1).sum(), -loss.min(axis=1).sum())
    assert 0.7 < worst <= 1 + 1e-9, worst  # so seven tenths of epsilon are refuted


@pytest.mark.thorough
def test_unbounded_quantiles_are_private_together_by_the_verifier(x64):
    made = quantiles.unbounded(bits=2, fractions=[0.25, 0.5, 0.75], epsilon=1.0, base=2.0)
    report = dpjax.check(made, n=2, domain=4, epsilon=1.0)
    assert report.exact and report.delta <= 1e-12
    assert not dpjax.check(made, n=2, domain=4, epsilon=0.25).delta <= 1e-12  # negative control


@pytest.mark.slow  # `test_conformance` covers other data
def test_naive_laws_of_unbounded_quantiles(x64):
    """No point, one, many; both directions; fractions near the ends."""
    fractions, rng = [1e-6, 0.3, 0.8], np.random.default_rng(0)
    made = quantiles.unbounded(bits=3, fractions=fractions, epsilon=2.0, base=1.5, origin=2)
    grid = geometric_grid(bits=3, origin=2, base=1.5)
    for n in (0, 1, 20):
        values = sorted(rng.integers(0, 8, n).tolist())
        naive = unbounded_laws(values, fractions, grid, size=8, epsilon=2.0, downward=[False, False, True])
        np.testing.assert_allclose(on_eight()(made, points_of(values, 3)), naive, atol=1e-7)


@pytest.mark.slow
def test_the_error_stated_for_unbounded_quantiles_is_kept():
    """On points of a grid, of 200 bits: B = (3/a) ln(q (K + 1)/beta)."""
    made = quantiles.unbounded(bits=200, fractions=[0.3, 0.5, 0.9], epsilon=2.0, base=2.0)
    asked = made.grid.shape[0]
    within = 3 / float(made.rate()) * np.log(3 * (asked + 1) / 0.1)
    values = [2**k for k in range(10, 190) for _ in range(8)]
    points = points_of(values, 200, 2047)
    errors = largest_errors(made, points)
    assert np.mean(errors > within) <= 0.1 and np.mean(errors > within / 8) > 0.1  # negative control


# -------------------------------------------------------------------------------------------------------- noisy slices

SLICES = {"m": 1, "rank_epsilon": 4.0, "count_epsilon": 1.5}


def small_slices(epsilon=0.5, delta=0.02, **given):
    solver = interior_point.exponential(bits=1, epsilon=epsilon)
    return quantiles.noisy_slices(
        solver=solver, fractions=[0.2, 0.8], delta=delta, allow_unproved=True, **SLICES | given
    )


def slices_law(values, epsilon=0.5, spacing=4, **given):
    law, none = noisy_slices_law(
        values, [0.2, 0.8], domain=2, spacing=spacing, epsilon=epsilon, reach=14, **SLICES | given
    )
    return np.append(law.reshape(4), none)


def test_no_neighbouring_points_refute_noisy_slices():
    """All multisets of up to 15 zeros and ones; a quarter of epsilon is refuted at the same delta."""
    made = small_slices()
    guarantee = made.guarantee()
    assert int(made.spacing) == 4 and guarantee.epsilon == pytest.approx(1.5 + 4 + 1 + np.log(4 / 3))
    counts = histograms(2, range(16))
    table = np.array([slices_law([0] * a + [1] * b) for a, b in counts])
    np.testing.assert_allclose(table.sum(axis=1), 1, atol=1e-8)
    assert not refuted(table, counts, guarantee)
    assert refuted(
        table, counts, Guarantee(guarantee.epsilon / 4, guarantee.delta, ADD_OR_REMOVE_ONE)
    )  # negative control


def test_ranks_of_noisy_slices_drift_no_further_than_their_noise_is_likely_to():
    """The noise of the last of q ranks, the largest, gets a third of what narrow gaps leave of beta: from the sample size back to it."""
    alpha, beta, rank_epsilon, count_epsilon, m, q = 0.01, 0.1, 0.5, 0.5, 20, 3
    made = quantiles.noisy_slices(
        solver=interior_point.exponential(bits=12, epsilon=1.0),
        fractions=[0.2, 0.5, 0.8],
        m=m,
        rank_epsilon=rank_epsilon,
        count_epsilon=count_epsilon,
        delta=0.05,
    )
    crowded = made.guarantee().delta  # the solver is pure
    share = (beta - crowded) / 3
    miscount = np.log(2 / share) / count_epsilon
    n = made.sample_size(alpha=alpha, beta=beta)
    drift = round(alpha * n - m - miscount - 1)
    assert n == math.ceil((m + drift + miscount + 1) / alpha)
    # Both signs, and twice for the largest of the partial sums.
    tails = [4 * bounds.geometric_sum_tail(q, rank_epsilon, drift + more) for more in (1, 0)]
    assert crowded > 0.02 and tails[0] <= share < tails[1]


@pytest.mark.thorough
def test_noisy_slices_follow_their_law():
    values = [0] * 6 + [1] * 7
    outcomes = runs(small_slices(), keys(), points_of(values, 1))
    answers = np.asarray(outcomes.hypothesis)[:, :, 0].astype(int) @ [2, 1]
    counts = np.bincount(np.where(outcomes.status == Status.OK, answers, 4), minlength=5)[[0, 1, 3, 4]]
    for epsilon, agrees in ((0.5, True), (2.0, False)):
        law = slices_law(values, epsilon)
        law = np.array([law[0], law[1] + law[2], law[3], law[4]])  # in order
        assert (p_value(counts, RUNS * law) > FALSE_ALARM) == agrees


@pytest.mark.parametrize("base", [2, 3, 5, 101])
def test_a_move_of_ranks_costs_what_is_paid_for(base):
    """As many nodes as there are levels move, by 1 each; ranks have no more nodes than is said, and differ by no more from the next."""
    for q in (1, 2, 3, 7, 8, 26, 100):
        scheme, nodes = noisy_ranks.Scheme.of(q, base), noisy_ranks.prefixes(q, base).astype(int)
        for j in range(q):
            # The noises to be moved solve nodes @ moves = (0, ..., 0, 1, ..., 1).
            moves = np.linalg.solve(nodes, (np.arange(q) >= j).astype(float)).round(9)
            assert set(moves) <= {0, 1} and moves.sum() <= scheme.levels
        assert nodes.sum(axis=1).max() == scheme.most
        assert np.abs(np.diff(nodes, axis=0, prepend=0)).sum(axis=1).max() == scheme.between
        assert base**scheme.levels > q >= base ** (scheme.levels - 1)


def test_the_scheme_errs_least_and_far_less_than_the_binary_one():
    for q in (3, 9, 50, 300, 4096):
        best = noisy_ranks.scheme(q)
        errors = [noisy_ranks.Scheme.of(q, base).reach(noisy_ranks.FINE, 1 / 30) for base in (2, 3, 5, 17, 64, q + 1)]
        assert best.reach(noisy_ranks.FINE, 1 / 30) <= 1.01 * min(errors) and errors[0] > 1.5 * min(errors)


@pytest.mark.parametrize(("q", "rank_epsilon"), [(9, 0.7), (200, 2.0)])
def test_noises_of_ranks_exceed_their_reach_no_more_often_than_stated(q, rank_epsilon):
    """In 4000 runs; and neighbouring noises differ as their exact tail says."""
    noises = jax.jit(jax.vmap(lambda key: noisy_ranks.rank_noises(key, q, rank_epsilon)))(keys())
    noises = np.asarray(noises)
    for share in (0.3, 0.01):
        beyond = np.mean(np.abs(noises).max(axis=1) > noisy_ranks.drift(q, rank_epsilon, share))
        assert beyond <= share + 4 * math.sqrt(share / RUNS)
    scheme = noisy_ranks.scheme(q)
    last = np.flatnonzero(noisy_ranks.prefixes(q, scheme.base).sum(axis=1) == scheme.most)[0]
    reach = bounds.geometric_sum_reach(scheme.most, scheme.rate(rank_epsilon), 0.05)
    tail = bounds.geometric_sum_tail(scheme.most, scheme.rate(rank_epsilon), reach)
    assert abs(np.mean(noises[:, last] >= reach) - tail) < 5 * math.sqrt(
        tail / RUNS
    )  # both are probabilities of one sum
    room = noisy_ranks.least_room(q, rank_epsilon, 0.1)
    assert noisy_ranks.crowded(room, q, rank_epsilon) <= 0.1 < noisy_ranks.crowded(room - 1, q, rank_epsilon)
    assert np.mean(np.any(np.diff(noises, axis=1) <= -room, axis=1)) <= 0.1 + 4 * math.sqrt(0.1 / RUNS)


@pytest.mark.slow
def test_noisy_slices_of_few_points_release_nothing_and_of_enough_ones_what_is_stated():
    solver = interior_point.exponential(bits=12, epsilon=1.0)
    fractions = [0.2, 0.5, 0.8]
    made = quantiles.noisy_slices(solver=solver, fractions=fractions, m=15, rank_epsilon=1.0, count_epsilon=0.5)
    data = np.sort(np.random.default_rng(1).integers(0, 2**12, 2047)).tolist()
    for n in (0, 1, 60):
        assert np.isinf(largest_errors(made, points_of(data[:n], 12, 2047))).all()
    n = made.sample_size(alpha=0.1, beta=0.1)
    assert n < 2047
    errors = largest_errors(made, points_of(data[:n], 12, 2047))
    assert np.mean(errors > 0.1 * n) <= 0.1 and np.mean(errors > 0.01 * n) > 0.1  # negative control
    alone = quantiles.noisy_slices(solver=solver, fractions=[0.5], m=15, rank_epsilon=1.0, count_epsilon=0.5)
    assert alone.guarantee().delta == 0
    for values in ([], [4095], [7] * 200):
        assert np.isfinite(largest_errors(alone, points_of(values, 12, 2047))).all()


# --------------------------------------------------------------------------------------------------------- bad arguments


@pytest.mark.parametrize(
    ("method", "given", "error", "match"),
    [
        ("tree", {"bits": 0}, ValueError, "bits must be"),
        ("tree", {"fractions": [0.5, 0.5]}, ValueError, "fractions must increase strictly"),
        ("tree", {"branching": 12}, ValueError, "branching must be a power of two"),
        ("tree", {"epsilon": 1e-9}, ValueError, "epsilon must be"),
        ("unbounded", {"base": 1.0}, ValueError, "base must be"),
        ("unbounded", {"base": 1.000001}, ValueError, "base must be so large"),
        ("unbounded", {"origin": 2**20}, ValueError, "origin must be"),
        ("unbounded", {"direction": "left"}, ValueError, "direction must be"),
        ("unbounded", {"epsilon": 0.0}, ValueError, "epsilon must be"),
        ("noisy_slices", {"m": 0}, ValueError, "m must be"),
        ("noisy_slices", {"m": 2}, ValueError, "m must be >="),
        ("noisy_slices", {"rank_epsilon": 0.0}, ValueError, "rank_epsilon must be"),
        ("noisy_slices", {"delta": 0.0}, ValueError, "delta must be"),
        ("noisy_slices", {"solver": None}, TypeError, "solver must be"),
    ],
)
def test_bad_arguments_are_refused(method, given, error, match):
    usual = {
        "tree": {"bits": 8, "epsilon": 1.0},
        "unbounded": {"bits": 20, "epsilon": 1.0},
        "noisy_slices": {
            "solver": interior_point.exponential(bits=8, epsilon=1.0),
            "m": 40,
            "rank_epsilon": 1.0,
            "count_epsilon": 1.0,
        },
    }[method]
    with pytest.raises(error, match=match):
        getattr(quantiles, method)(**({"fractions": [0.2, 0.5]} | usual | given))


def test_narrow_gaps_between_slices_are_paid_for_to_the_last_rank():
    """Gaps of 2m + 1 or less count towards delta, though one of 2m + 1 is released: noises of spacing - (2m + 1) or more do."""
    made = small_slices()  # of two ranks, which differ by one noise
    room, r = int(made.spacing) - (2 * SLICES["m"] + 1), math.exp(-SLICES["rank_epsilon"])
    assert made.guarantee().delta == pytest.approx(r**room / (1 + r), rel=1e-9)


@pytest.mark.thorough
def test_slices_that_touch_release_nothing():
    """N is n here, and the spacing small: all depends on whether noisy ranks are 2m + 1 apart, m = 1."""
    made = small_slices(delta=0.9, rank_epsilon=0.2, count_epsilon=600.0)
    outcomes = runs(made, keys(400), points_of([0] * 10 + [1] * 10, 1))
    gaps = np.diff(np.asarray(outcomes.info["ranks"]), axis=1)[:, 0]
    assert int(made.spacing) <= 10 and set(range(6)) <= set(gaps.tolist())  # all kinds of gaps occur
    np.testing.assert_array_equal(outcomes.status == Status.OK, gaps >= 3)


def test_unbounded_takes_no_more_points_than_floats_count():
    """Beyond 2^24 its queries are rounded: at 10^8 points and epsilon = 1e-7 one point more once told 3 epsilon."""
    made = quantiles.unbounded(bits=8, fractions=[0.5], epsilon=1e-7, base=8.0)
    points = Points(x=np.zeros((2**24 + 1, 1), np.uint32), n_valid=np.int32(2**24 + 1), ordered=True)
    with pytest.raises(ValueError, match=r"points must be at most 16777216, .* got 16777217"):
        made(jax.random.key(0), points)
