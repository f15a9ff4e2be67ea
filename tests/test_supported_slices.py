"""Quantiles by supported keys around noisy ranks: how windows move, privacy by exact laws, samplers against them, errors and sizes."""

import dataclasses
import itertools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from builders import slow
from frequencies import FALSE_ALARM, p_value

import dpjax
from dpjax import Points, Status
from dpjax.accounting import ADD_OR_REMOVE_ONE
from dpjax.domains import wide
from dpjax.optimizers import quantiles
from dpjax.optimizers.quantiles import noisy_ranks
from dpjax.optimizers.quantiles.supported_slices import least_gap
from dpjax.verify import histograms, neighbours
from dpjax.verify.exact import sticks
from dpjax.verify.plain.quantiles import supported_scores, supported_slices_law
from dpjax.verify.plain.supported import supported_law

PARTS = {"m": 1, "margin": 1, "rank_epsilon": 4.0, "count_epsilon": 1.5}


def points_of(values, bits, rows):
    return Points.create(wide.from_ints([*values, *[0] * (rows - len(values))], bits), len(values))


def small(epsilon=4.0, **given):
    given = {"bits": 1, "fractions": [0.2, 0.8], "epsilon": epsilon, "delta": 0.01, "gap_delta": 0.02, **PARTS} | given
    return quantiles.supported_slices(**given)


# ------------------------------------------------------------------------------------------------------------- privacy


def window(points, half, m, top):
    """The points of the window around half/2 of an endless sequence."""
    first, stop = math.floor(half / 2 - m), math.ceil(half / 2 + m)
    return [0 if i < 0 else points[i] if i < len(points) else top for i in range(first, stop)]


def test_windows_in_doubt_move_as_the_proof_says():
    """For all places of a new point: windows that are said to be the same are, and scores of those that move by 1/2 move by 1 at most."""
    rng = np.random.default_rng(0)
    for m, n, bits in itertools.product((1, 2, 3), (0, 1, 4, 9), (1, 3)):
        top = 2**bits - 1
        points = np.sort(rng.integers(0, 2**bits, n)).tolist()
        for z, half in itertools.product(range(2**bits), range(-2 * m - 3, 2 * (n + m) + 4)):
            p = 1 + sum(x < z for x in points)  # the rank of the new point
            more = sorted([*points, z])
            if half - 2 * p <= -2 * m - 2:  # D' for s = 0
                assert window(points, half, m, top) == window(more, half, m, top)
            if half + 2 - 2 * p >= 2 * m:  # D' for s = 1
                assert window(points, half, m, top) == window(more, half + 2, m, top)
            here, there = (
                np.maximum(supported_scores(x, r / 2, 0.5, bits=bits, m=m), 0.0)
                for x, r in ((points, half), (more, half + 1))
            )
            came = (here > 0) != (there > 0)
            assert np.abs(here - there).max() <= 1 and came.sum() <= 5 * bits - 4


@pytest.mark.parametrize(("m", "margin"), [(1, 0), (2, 3), (5, 20)])
def test_no_rank_receives_more_than_is_paid_for(m, margin):
    """Both ways, over all differences D; and no shift is drawn where the proof does not allow it."""
    reach = 4 * (m + margin) + 9
    d = np.arange(-reach, reach + 1)

    def alpha(x):
        return np.clip((x + 2 * m + 2 + margin) / (margin + 1), 0, 1)

    def beta(x):
        return np.clip((x - 2 * m + 1) / (margin + 1), 0, 1)

    back = 1 - alpha(d) + (alpha(d + 1) - beta(d + 1)) + beta(d + 2)
    there = 1 - alpha(d) + (alpha(d - 1) - beta(d + 1)) + beta(d)
    assert back.max() == pytest.approx(1 + 1 / (margin + 1)) and there.max() <= 1 + 1e-12
    assert np.all(alpha(d)[d > -2 * m - 2] == 1) and np.all(beta(d)[d < 2 * m] == 0) and np.all(alpha(d) >= beta(d))
    apart = least_gap(m, margin) - 1  # in halves: what is not given up, less what it may shrink by
    assert np.all((alpha(d) == 0) | (beta(d + apart) == 1))


def test_one_quantile_of_two_values_keeps_its_promise():
    """The exact law around a noisy rank, where N is known: some twenty copies of each of two values; a third of epsilon is refuted."""
    m, margin, epsilon, delta, rank_epsilon, wanted = 8, 16, 2.0, 1e-3, 0.1, 17
    r = math.exp(-rank_epsilon / 2)
    noise = (1 - r) / (1 + r) * r ** np.abs(np.arange(-300, 301))

    def law(i, j):
        points = [1] * i + [2] * j
        # All windows farther out are the same: points without end.
        halves = range(-2 * m - 2, 2 * (i + j + m) + 3)
        runs = np.array(
            [
                supported_law(supported_scores(points, half / 2, 0.5, bits=2, m=m), epsilon, delta, 6, monotone=False)
                for half in halves
            ]
        )
        return noise @ runs[np.clip(np.arange(-300, 301) + wanted - halves[0], 0, len(halves) - 1)]

    laws = {(i, j): law(i, j) for i, j in itertools.product(range(0, 24, 3), range(2, 24, 3))}
    pairs = [(p, law(i + 1, j)) for (i, j), p in laws.items()] + [(p, law(i, j + 1)) for (i, j), p in laws.items()]
    first, second = (np.array(each) for each in zip(*pairs, strict=True))

    def delta_at(total):
        return max(
            np.maximum(p - math.exp(total) * q, 0).sum(axis=1).max() for p, q in ((first, second), (second, first))
        )

    total = epsilon + rank_epsilon + math.log1p(1 / (margin + 1))
    assert delta_at(total) <= delta < delta_at(total / 3)


def slices_law(values, made, reach=16):
    given = {name: float(getattr(made, name)) for name in ("rank_epsilon", "count_epsilon", "epsilon", "delta")}
    given |= {name: int(getattr(made, name)) for name in ("bits", "m", "margin", "spacing")}
    law, none = supported_slices_law(values, [0.2, 0.8], reach=reach, **given)
    return np.append(law.reshape(-1), none)


@pytest.mark.thorough
def test_no_neighbouring_points_refute_the_guarantee():
    """All multisets of up to 18 zeros and ones."""
    made = small()
    guarantee = made.guarantee()
    assert guarantee.epsilon == pytest.approx(1.5 + 4 + 4 + math.log(1.5)) and guarantee.delta < 0.03
    counts = histograms(2, range(19))
    table = np.array([slices_law([0] * a + [1] * b, made) for a, b in counts])
    np.testing.assert_allclose(table.sum(axis=1), 1, atol=1e-6)
    pairs = neighbours(counts, ADD_OR_REMOVE_ONE)
    assert sticks(table, pairs, guarantee.epsilon).max() <= guarantee.delta
    assert sticks(table, pairs, 0.0).max() > 1e-3  # so the pairs do differ


def test_adding_halves_costs_half():
    """The noises that move all ranks from j on by 1 move by 2 steps, at most as many as there are levels; those for a half by 1."""
    for q, base in itertools.product((1, 3, 8), (2, 3, 9)):
        nodes = noisy_ranks.prefixes(q, base).astype(int)
        for j, steps in itertools.product(range(q), (0, 1, 2)):
            shift = np.where(np.arange(q) > j, 2, np.where(np.arange(q) == j, steps, 0))
            moves = np.abs(np.linalg.solve(nodes, shift).round(9)).sum()
            assert moves <= 2 * noisy_ranks.Scheme.of(q, base).levels


# ------------------------------------------------------------------------------------------------- sampler and promises


@pytest.mark.thorough
def test_runs_follow_their_law():
    values, draws = [0] * 9 + [1] * 12, 4000
    made = small(epsilon=6.0, delta=0.2, m=2, rank_epsilon=1.0)
    outcomes = jax.jit(jax.vmap(made, in_axes=(0, None)))(
        jax.random.split(jax.random.key(5), draws), points_of(values, 1, 31)
    )
    answers = np.asarray(outcomes.hypothesis)[:, :, 0].astype(int) @ [2, 1]
    counts = np.bincount(np.where(outcomes.status == Status.OK, answers, 4), minlength=5)[[0, 1, 3, 4]]
    for other, agrees in ((made, True), (small(epsilon=6.0, delta=0.2, m=2, rank_epsilon=2.0), False)):
        law = slices_law(values, other, reach=40)
        law = np.array([law[0], law[1] + law[2], law[3], law[4]])  # in order
        assert (p_value(counts, draws * law) > FALSE_ALARM) == agrees


@pytest.mark.parametrize("bits", [24, slow(1024)])
def test_ranks_err_no_more_than_stated_and_few_points_release_nothing(bits):
    fractions, alpha, beta = [0.2, 0.5, 0.8], 0.1, 0.1
    choice = dpjax.choose("quantiles", bits=bits, fractions=fractions, alpha=alpha, beta=beta, epsilon=2.0, delta=1e-6)
    made = choice.algorithm
    if choice.name != "supported_slices":
        parts = {"epsilon": 1.0, "delta": 1e-6, "m": 50, "rank_epsilon": 0.6, "count_epsilon": 0.4}
        made = quantiles.supported_slices(bits=bits, fractions=fractions, **parts)
    n = made.sample_size(alpha=alpha, beta=beta)
    rng = np.random.default_rng(bits)
    key, steps = 1 << (bits - 1), np.sort(rng.integers(0, bits - 1, n // 2)).tolist()
    values = sorted([key - (1 << s) for s in steps] + [key + (1 << s) - 1 for s in steps] + [key] * (n % 2))
    run = jax.jit(jax.vmap(made, in_axes=(0, None)))
    points = points_of(values, bits, 2047)
    outcomes = run(jax.random.split(jax.random.key(1), 200), points)
    wanted = quantiles.nearest_rank(np.asarray(made.fractions), n)
    errors = np.asarray(jax.vmap(lambda one: quantiles.rank_errors(points, one, wanted))(outcomes.hypothesis))
    bad = (errors.max(axis=1) > alpha * n) | (np.asarray(outcomes.status) != Status.OK)
    assert n < 2047 and bad.mean() <= beta and np.mean(errors.max(axis=1) > 0.01 * n) > 0.1  # negative control
    few = run(jax.random.split(jax.random.key(1), 200), points_of(values[:40], bits, 2047))
    assert np.all(np.asarray(few.status) != Status.OK)


def test_one_quantile_has_no_gaps_to_pay_for():
    made = small(fractions=[0.5], m=3, bits=8)
    assert made.guarantee().delta == 0.01
    outcome = jax.jit(made)(jax.random.key(0), points_of([7] * 30, 8, 31))
    assert outcome.status == Status.OK and wide.to_ints(outcome.hypothesis) == [7]


def test_a_window_that_does_not_fit_is_not_run():
    made = small()
    run = jax.jit(lambda made: made(jax.random.key(0), points_of([0] * 20, 1, 31)).status)
    assert run(made) != Status.BAD_PARAMETER
    for wrong in ({"m": jnp.int32(4)}, {"margin": jnp.int32(-1)}, {"delta": jnp.float32(0.0)}):
        assert run(dataclasses.replace(made, **wrong)) == Status.BAD_PARAMETER


def test_choose_takes_them_for_several_quantiles_of_wide_domains():
    fractions = [i / 10 for i in range(1, 10)]
    choice = dpjax.choose("quantiles", bits=64, fractions=fractions, epsilon=1.0, delta=1e-6, alpha=0.02, beta=0.1)
    assert choice.name == "supported_slices" and choice.n < 0.85 * choice.runner_up.value
    guarantee = choice.algorithm.guarantee()
    assert guarantee.epsilon <= 1.0 and guarantee.delta <= 1e-6
    assert abs(choice.algorithm.sample_size(alpha=0.02, beta=0.1) - choice.n) <= 2


@pytest.mark.parametrize(
    ("given", "error", "words"),
    [
        ({"m": 0}, ValueError, "m must be"),
        ({"margin": -1}, ValueError, "margin must be"),
        ({"margin": 1.5}, TypeError, "margin must be"),
        ({"delta": 0.0}, ValueError, "delta must be"),
        ({"gap_delta": 0.0}, ValueError, "gap_delta must be"),
        ({"epsilon": 0.0}, ValueError, "epsilon must be"),
        ({"rank_epsilon": 0.0}, ValueError, "rank_epsilon must be"),
        ({"count_epsilon": -1.0}, ValueError, "count_epsilon must be"),
        (
            {"rank_epsilon": 1e-6, "m": 10**8, "gap_delta": 1e-300},
            ValueError,
            "must allow ranks at most 536870912 apart",
        ),
        ({"fractions": [0.5, 0.2]}, ValueError, "fractions must increase"),
        ({"fractions": [i / 5000 for i in range(1, 4999)]}, ValueError, "fractions must be at most 4096"),
    ],
)
def test_bad_arguments_are_named(given, error, words):
    with pytest.raises(error, match=words):
        small(**given)


def test_a_sample_size_is_refused_where_bottom_or_a_narrow_gap_is_too_likely():
    with pytest.raises(ValueError, match=r"m must be >= \d+ for bottom"):
        small().sample_size(alpha=0.1, beta=0.1)
    with pytest.raises(ValueError, match=r"beta must be above 0\.0"):
        small().sample_size(alpha=0.1, beta=0.01)
