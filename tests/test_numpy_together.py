"""NumPy's programs for all quantiles at once have dpjax's laws on any points, equal ones among them: exactly, and by their draws."""

import itertools
import math
from collections import defaultdict

import jax
import numpy as np
import pytest
from builders import slow
from scipy import stats

from dpjax.data.points import Points
from dpjax.domains import wide
from dpjax.domains.events import Interval
from dpjax.optimizers import quantiles
from dpjax.verify.plain import quantiles as plain
from experiments.benchmarks import numpy_chains, numpy_together
from experiments.benchmarks.numpy_driver import count

ALARM = 2e-5
# (points, fractions, bits): heavy ties, targets that are integers and others, values that hold all wanted ranks, ranks that do not overlap.
TIED = [
    ([0, 0, 0, 0, 3, 3, 3, 7], [0.25, 0.5, 0.75], 3),
    ([2, 2, 2, 2, 2, 2, 2, 2], [0.25, 0.5, 0.75], 2),
    ([0, 0, 1, 5, 5, 5, 5, 5, 6, 7], [0.3, 0.61], 3),
    ([1] * 9 + [6] * 7, [0.2, 0.4, 0.6], 3),
    ([0, 7], [0.2, 0.7], 3),
    ([5], [0.5], 3),
    ([0] * 11 + [1, 1, 1] + [3] * 7, [0.15, 0.8], 2),
]
DRAWN = {"joint": numpy_together.drawn_jointly, "inverse_sensitivity": numpy_together.drawn_by_distance}
LAW = {"joint": plain.joint_law, "inverse_sensitivity": plain.inverse_sensitivity_law}


def law_of_ends(points, law):
    """From probabilities of answers to those of their ranks, (#{x < z}, #{x <= z}) each: all that the programs tell of them."""
    ranks = [(sum(x < z for x in points), sum(x <= z for x in points)) for z in range(len(law))]
    found = defaultdict(float)
    for answers in np.argwhere(law).tolist():
        found[tuple(ranks[z] for z in answers)] += law[tuple(answers)]
    return found


def ways(monkeypatch, chain):
    """The exact law of `backward`, by all choices that it may make: {ranks: probability}, given a function from (gap, place) to ranks."""
    found, left = defaultdict(float), [()]
    while left:
        script = left.pop()
        made, chance = [], 1.0

        def choose(rng, weights, script=script, made=made):
            nonlocal chance
            shares = weights[0] / weights[0].sum() if weights[0].sum() > 0 else np.eye(weights.shape[1])[0]
            index = script[len(made)] if len(made) < len(script) else None
            if index is None:
                first, *others = np.flatnonzero(shares).tolist()
                left.extend((*made, other) for other in others)
                index = first
            made.append(index)
            chance *= shares[index]
            return np.array([index])

        monkeypatch.setattr(numpy_chains, "choose", choose)
        gap, place = numpy_chains.backward(None, chain, np.zeros(1, int))
        found[tuple(gap[:, 0].tolist()), tuple(place[:, 0].tolist())] += chance
    return found


def draws(monkeypatch, x, chain):
    """The exact law of the ranks that `backward` draws."""
    found = defaultdict(float)
    for (gap, place), chance in ways(monkeypatch, chain).items():
        low, high = numpy_chains.ends_of(x, np.zeros(1, int), np.array([gap]).T, np.array([place]).T)
        found[tuple(zip(low[:, 0].tolist(), high[:, 0].tolist(), strict=True))] += chance
    return found


def everything(points, fractions, bits, epsilon):
    """One row of points; f; kappa of `joint`; a chain on all ranks for given targets."""
    x, f = np.array([points], np.uint64), np.array(fractions)
    near = numpy_chains.near(x, bits, np.rint(f * len(points)).astype(int), len(points) + 3, 3 * len(points))
    kappa = epsilon / (4 * (1 - numpy_together.shares(f).min()))
    return x, f, kappa, near


def agree(found, expected, tolerance):
    assert set(found) <= set(expected)
    assert max(abs(found[key] - expected[key]) for key in expected) < tolerance


@pytest.mark.parametrize(("points", "fractions", "bits"), TIED)
def test_joint_has_the_exact_law_on_ties(monkeypatch, points, fractions, bits):
    """All of the sampler's choices, with their chances, against the plain law; the law in between is dpjax's, see below."""
    epsilon, n = 1.5, len(points)
    x, f, kappa, near = everything(points, fractions, bits, epsilon)
    chain = numpy_chains.forward(near, numpy_chains.targets(f * n, 0.0, near.centres), kappa)
    weights = {key: chance * chain.total[0] for key, chance in draws(monkeypatch, x, chain).items()}
    deep, low, high = numpy_together._deep(x, np.zeros(1, int), f)
    for row in range(len(deep)):
        key = tuple(zip(low[:, row].tolist(), high[:, row].tolist(), strict=True))
        weights[key] += math.expm1(2 * kappa * numpy_together._spare(low, high, f * n).min())
    expected = law_of_ends(points, plain.joint_law(points, fractions, size=2**bits, epsilon=epsilon))
    total = sum(weights.values())
    agree({key: weight / total for key, weight in weights.items()}, expected, 1e-8)


@pytest.mark.parametrize(("points", "fractions", "bits"), [slow(*case) if len(case[1]) > 2 else case for case in TIED])
def test_inverse_sensitivity_has_the_exact_law_on_ties(monkeypatch, points, fractions, bits):
    """The tuples that all chains draw, kept as the program keeps them, weigh what the plain law says."""
    epsilon, n = 3.0, len(points)
    x, f = np.array([points], np.uint64), np.array(fractions)
    kappa = epsilon / 2
    least = min(6.0, len(f) * bits * math.log(2) / 2) / kappa
    tried, priors, chains = numpy_together._chains(x, bits, f, kappa, least)
    weights = defaultdict(float)
    for prior, chain in zip(priors, chains, strict=True):
        for key, chance in draws(monkeypatch, x, chain).items():
            weights[key] += prior * chance * chain.total[0]
    keys = sorted(weights)
    low, high = np.array(keys, int).transpose(2, 1, 0)
    deep, deep_low, deep_high = numpy_together._deep(x, np.zeros(1, int), f)
    for row in range(len(deep)):
        key = tuple(zip(deep_low[:, row].tolist(), deep_high[:, row].tolist(), strict=True))
        depth = min(numpy_together._depth(deep_low, deep_high, n, f)[row], n - least)
        weights[key] += math.exp(kappa * depth) if depth > 0 else 0.0
    ratios = numpy_together._ratio(low, high, n, f, kappa, least, tried, priors)
    assert (ratios <= 1 + 1e-9).all()
    kept = {key: weights[key] * ratio for key, ratio in zip(keys, ratios.tolist(), strict=True)}
    total = sum(kept.values())
    law = plain.inverse_sensitivity_law(points, fractions, size=2**bits, epsilon=epsilon)
    agree({key: weight / total for key, weight in kept.items()}, law_of_ends(points, law), 1e-6)


@pytest.mark.thorough
def test_joint_has_the_law_of_dpjax_where_few_ranks_are_looked_at():
    """180 points with ties, running sums over near ranks: against the plain law, and that against dpjax's."""
    bits, f, epsilon, rows = 8, np.array([0.25, 0.5]), 3.0, 20_000
    points = np.sort(np.random.default_rng(1).integers(0, 2**bits, 180)).tolist()
    exact = plain.joint_law(points, f.tolist(), size=2**bits, epsilon=epsilon)
    x = np.repeat(np.array([points], np.uint64), rows, axis=0)
    low, high = numpy_together.drawn_jointly(np.random.default_rng(2), x, bits, f, epsilon)
    assert chi_square(low, high, law_of_ends(points, exact)) > ALARM
    other = plain.joint_law(points, f.tolist(), size=2**bits, epsilon=epsilon / 1.5)
    assert chi_square(low, high, law_of_ends(points, other)) < ALARM
    mechanism = quantiles.joint(bits=bits, fractions=f.tolist(), epsilon=epsilon, candidates=1)
    middle = points[45], points[90]
    each = Interval(
        low=wide.from_ints([points[40], middle[1]], bits + 1), high=wide.from_ints([middle[0], 200], bits + 1)
    )
    with jax.enable_x64(True):
        inside = float(jax.jit(type(mechanism).law)(mechanism, Points.create(wide.from_ints(points, bits)), each)[0])
    assert 0.01 < inside < 0.99 and abs(inside - exact[points[40] : middle[0], middle[1] : 200].sum()) < 1e-6


def chi_square(low, high, expected):
    """The p-value of drawn ranks, those expected fewer than 10 times as one."""
    drawn = defaultdict(int)
    for lows, highs in zip(low.T.tolist(), high.T.tolist(), strict=True):
        drawn[tuple(zip(lows, highs, strict=True))] += 1
    assert set(drawn) <= set(expected)
    keys = sorted(expected)
    counts = np.array([[drawn[key], low.shape[1] * expected[key]] for key in keys])
    rare = counts[:, 1] < 10
    counts = np.concatenate([counts[~rare], counts[rare].sum(axis=0, keepdims=True)])
    counts = counts[counts[:, 1] > 0.5]
    return stats.chisquare(counts[:, 0], counts[:, 1] * counts[:, 0].sum() / counts[:, 1].sum()).pvalue


@pytest.mark.parametrize(
    ("name", "case"), [("joint", 0), ("joint", 2), ("inverse_sensitivity", 2), slow("inverse_sensitivity", 3)]
)
def test_draws_have_the_law_on_ties(name, case):
    points, fractions, bits = TIED[case]
    x = np.repeat(np.array([points], np.uint64), 10_000, axis=0)
    low, high = DRAWN[name](np.random.default_rng(3), x, bits, np.array(fractions), 2.0)
    for epsilon, right in ((2.0, True), (1.4, False)):
        law = law_of_ends(points, LAW[name](points, fractions, size=2**bits, epsilon=epsilon))
        assert (chi_square(low, high, law) > ALARM) == right


def test_bounds_hold_and_sums_are_those_of_all_tuples():
    """On all ranks the total is the sum over all tuples; on a few, it is that or less, and that or more with the rest."""
    rng = np.random.default_rng(0)
    for trial in range(60):
        bits, m, n = (int(rng.integers(*ends)) for ends in ((1, 5), (1, 4), (1, 19)))
        x = np.sort(rng.integers(0, 2**bits, n) if trial % 2 else rng.integers(0, 2, n) * (2**bits - 1))
        wanted = np.sort(rng.random(m) * n * 1.2)
        wanted = np.rint(wanted * 2) / 2 if trial % 3 else wanted
        end, kappa = rng.normal(), rng.choice([0.2, 0.7, 2.0])
        tuples = np.array(list(itertools.combinations_with_replacement(range(2**bits), m)))
        ranks = np.array([[(x < z).sum(), (x <= z).sum()] for z in range(2**bits)])
        ranks = np.concatenate([ranks[tuples], np.full((len(tuples), 1, 2), n)], axis=1)
        exact = np.exp(-kappa * plain.gap_cost(ranks, [*wanted, n - end])).sum()
        centres = np.sort(rng.integers(0, n + 1, m))
        for half in (3 * n + 3, 0, 1, 3):
            near = numpy_chains.near(x[None].astype(np.uint64), bits, centres, half, 3 * n + 5)
            chain = numpy_chains.forward(near, numpy_chains.targets(wanted, end, near.centres), kappa)
            assert chain.total[0] <= exact * (1 + 1e-7) and chain.total[0] + chain.rest[0] >= exact * (1 - 1e-7)
            assert half <= n or math.isclose(chain.total[0], exact, rel_tol=1e-7)


@pytest.mark.parametrize("wanted", [[20.0, 45.0, 70.0], [20.5, 45.5, 70.0], [20.3, 41.0, 74.1]])
def test_running_sums_are_products_with_matrices(monkeypatch, wanted):
    rng = np.random.default_rng(4)
    x = np.sort(rng.integers(0, 2**20, (3, 100)) >> rng.integers(0, 15, (3, 100)), axis=1).astype(np.uint64)
    near = numpy_chains.near(x, 20, np.array([20, 45, 70]), 11, 100)
    chains = []
    for apart in (True, False):
        monkeypatch.setattr(numpy_chains, "_apart", lambda near, j, kappa, apart=apart: apart and j > 1)
        chains.append(numpy_chains.forward(near, numpy_chains.targets(np.array(wanted), 0.7, near.centres), 0.3))
    for name in ("total", "rest"):
        np.testing.assert_allclose(*(getattr(chain, name) for chain in chains), rtol=1e-10)
    for summed, multiplied in zip(*(chain.fixed for chain in chains), strict=True):
        np.testing.assert_allclose(summed, multiplied, rtol=1e-10)


@pytest.mark.thorough
@pytest.mark.parametrize(("n", "m", "epsilon"), [(300, 3, 2.0), (302, 3, 2.0), (400, 2, 3.0)])
def test_chains_for_several_sizes_leave_out_next_to_nothing(n, m, epsilon):
    """Few ranks and few sizes against all ranks of these sizes and the next ones: the same weights, though ranks are tied."""
    bits, f, kappa, least = 20, np.arange(1, m + 1) / (m + 1), epsilon / 2, 6.0
    x = np.sort(np.random.default_rng(5).integers(0, 2**bits, (4, n)) >> 12 << 12, axis=1).astype(np.uint64)
    tried, priors, chains = numpy_together._chains(x, bits, f, kappa, least)
    whole = sum(prior * chain.total for prior, chain in zip(priors, chains, strict=True))
    sizes, every = numpy_together._tried(n, least, m, bits, kappa)
    assert max(chain.near.half for chain in chains) < n / 4 and len(chains) < len(sizes)
    near = numpy_chains.near(x, bits, np.rint(f * n).astype(int), n + 1, n)
    for size, prior in zip(sizes.tolist(), every.tolist(), strict=True):
        chain = numpy_chains.forward(near, numpy_chains.targets(f * size, n - size, near.centres), kappa)
        found = [here for of, here in zip(tried, chains, strict=True) if of == size]
        assert (abs(chain.total - (found[0].total if found else 0.0)) * prior <= 1e-8 * whole).all()


@pytest.mark.parametrize("name", sorted(numpy_together.PROGRAMS))
@pytest.mark.parametrize(("d", "m", "n"), [(6, 1, 2), (63, 3, 2), (6, 5, 40), (31, 2, 300), (63, 3, 500)])
def test_every_cell_runs_without_a_warning_and_depends_on_the_seed_alone(name, d, m, n):
    program = numpy_together.PROGRAMS[name]
    found = count(program, (d, m, n), 30, 1)
    assert 0 <= found <= 30 and count(program, (d, m, n), 30, 1) == found
