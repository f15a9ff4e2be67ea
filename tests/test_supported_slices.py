"""Quantiles by supported keys around noisy ranks: how windows move, privacy by exact laws, samplers against them, errors and sizes."""

import dataclasses
import importlib
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
from dpjax.optimizers.quantiles import chained_ranks
from dpjax.verify import histograms, neighbours
from dpjax.verify.exact import sticks
from dpjax.verify.plain.quantiles import supported_scores, supported_slices_law
from dpjax.verify.plain.supported import supported_law

supported_slices = importlib.import_module(
    "dpjax.optimizers.quantiles.supported_slices"
)  # the package has a function of this name
PARTS = {"m": 1, "margin": 1, "rank_epsilon": 4.0, "count_epsilon": 1.5}


def points_of(values, bits, rows):
    return Points.create(wide.from_ints([*values, *[0] * (rows - len(values))], bits), len(values))


def small(epsilon=4.0, **given):
    given = {"bits": 1, "fractions": [0.2, 0.8], "epsilon": epsilon, "delta": 0.01, "gap_delta": 0.02, **PARTS} | given
    return quantiles.supported_slices(**given)


# ------------------------------------------------------------------------------------------------------------- privacy


def window(points, rank, m, top):
    """The points of the window around a rank of an endless sequence."""
    first, stop = math.floor(rank - m), math.ceil(rank + m)
    return [0 if i < 0 else points[i] if i < len(points) else top for i in range(first, stop)]


def test_windows_in_doubt_move_as_the_proof_says():
    """For all places of a new point: windows that are said to be the same are, and scores of those that move by 1/2 move by 1 at most."""
    rng = np.random.default_rng(0)
    for m, n, bits in itertools.product((1, 2, 3), (0, 1, 4, 9), (1, 3)):
        top = 2**bits - 1
        points = np.sort(rng.integers(0, 2**bits, n)).tolist()
        for z, eighth in itertools.product(range(2**bits), range(-8 * m - 12, 8 * (n + m) + 16)):
            rank = eighth / 8
            p = 1 + sum(x < z for x in points)  # the rank of the new point
            more = sorted([*points, z])
            if 2 * (rank - p) <= -2 * m - 2:  # D' for s = 0
                assert window(points, rank, m, top) == window(more, rank, m, top)
            if 2 * (rank + 1 - p) >= 2 * m:  # D' for s = 1
                assert window(points, rank, m, top) == window(more, rank + 1, m, top)
            if eighth % 3 == 0:
                here, there = (
                    np.maximum(supported_scores(x, r, 0.5, bits=bits, m=m), 0.0)
                    for x, r in ((points, rank), (more, rank + 0.5))
                )
                came = (here > 0) != (there > 0)
                assert np.abs(here - there).max() <= 1 and came.sum() <= 5 * bits - 4
                assert (here + there)[came].max(initial=0.0) <= 1


@pytest.mark.parametrize(("m", "margin"), [(1, 1), (2, 3), (5, 20)])
def test_no_rank_receives_more_than_is_paid_for(m, margin):
    """Both ways, over differences D in eighths; and no shift is drawn where the proof does not allow it."""
    reach = 4 * (m + margin) + 9
    d = np.arange(-8 * reach, 8 * reach + 1) / 8

    def alpha(x):
        return np.clip((x + 2 * m + 2 + margin) / margin, 0, 1)

    def beta(x):
        return np.clip((x - 2 * m) / margin, 0, 1)

    back = 1 - alpha(d) + (alpha(d + 1) - beta(d + 1)) + beta(d + 2)
    there = 1 - alpha(d) + (alpha(d - 1) - beta(d + 1)) + beta(d)
    assert back.max() == pytest.approx(1 + 1 / margin) and there.max() <= 1 + 1e-12
    assert np.all(alpha(d)[d > -2 * m - 2] == 1) and np.all(beta(d)[d < 2 * m] == 0) and np.all(alpha(d) >= beta(d + 2))
    apart = 2 * (2 * m + margin + 1)
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

    total = epsilon + rank_epsilon + math.log1p(1 / margin)
    assert delta_at(total) <= delta < delta_at(total / 3)


def slices_law(values, made, step, reach):
    given = {name: float(getattr(made, name)) for name in ("count_epsilon", "epsilon", "delta")}
    given |= {name: int(getattr(made, name)) for name in ("bits", "m", "margin", "least")}
    given |= {"rate": float(made.rate(np)), "step": step, "reach": reach}
    law, none = supported_slices_law(values, [0.2, 0.8], **given)
    return np.append(law.reshape(-1), none)


@pytest.mark.thorough
def test_no_neighbouring_points_refute_the_guarantee(monkeypatch):
    """All multisets of up to 18 zeros and ones, with ranks in quarters, whose rounding costs more."""
    for module in (chained_ranks, supported_slices):
        monkeypatch.setattr(module, "STEP", 4)
    for cached in (chained_ranks._reach, chained_ranks.costs):
        cached.cache_clear()
    made = small()
    guarantee = made.guarantee()
    assert guarantee.epsilon == pytest.approx(1.5 + 4 + 4 + math.log(2)) and guarantee.delta <= 0.03
    assert float(made.rate(np)) == pytest.approx(4.0 / (2 - 0.4 - 0.6 + 2 * 2 / 4) / 4)
    counts = histograms(2, range(19))
    table = np.array([slices_law([0] * a + [1] * b, made, 4, 60) for a, b in counts])
    np.testing.assert_allclose(table.sum(axis=1), 1, atol=1e-9)
    pairs = neighbours(counts, ADD_OR_REMOVE_ONE)
    worst = sticks(table, pairs, guarantee.epsilon).max()
    assert worst <= guarantee.delta and sticks(table, pairs, 0.0).max() > 1e-3  # so the pairs do differ
    for cached in (chained_ranks._reach, chained_ranks.costs):
        cached.cache_clear()


@pytest.mark.parametrize("chains", [0, 1, 2])
def test_a_shift_of_ranks_costs_what_is_paid_for(chains):
    """For uneven fractions: the noises that hide a point move by no more, in all, than the cost, whichever rank is in doubt."""
    rng = np.random.default_rng(chains)
    for q in (1, 2, 3, 8):
        fractions = np.sort(rng.random(q))
        used = chained_ranks.Chains.of(fractions, chains)
        lower = np.tril(np.ones((q, q)))
        upper = np.triu(np.ones((q, q)))
        nodes = np.where(np.arange(q)[:, None] < used.split, lower, upper)
        nodes *= (np.arange(q)[:, None] < used.split) == (np.arange(q)[None] < used.split)
        costs = []
        for j, s in itertools.product(range(q + 1), (0.0, 0.5, 1.0)):
            moved = np.where(np.arange(q) > j, 1.0, np.where(np.arange(q) == j, s, 0.0))
            by_itself = 0.0 if chains == 0 else fractions
            costs.append(np.abs(np.linalg.solve(nodes, moved - by_itself)).sum())
        rounding = 0.0 if chains == 0 else 2 * q / chained_ranks.STEP
        assert max(costs) == pytest.approx(used.cost - rounding)
        assert float(chained_ranks.cost(fractions, chains, np)) == pytest.approx(used.cost)


def test_rounded_ranks_move_by_hardly_more():
    """f n rounded down to units moves by f and less than a unit, so a difference of two moves by less than 2."""
    fractions = np.uint32([2**30 + 7, 2**31 + 12345, 3 * 2**30 + 1])
    at = np.array([int(f) * np.arange(1000, 1400) * chained_ranks.STEP // 2**32 for f in fractions])
    moves = np.diff(at, axis=1) - (fractions * 2.0**-32 * chained_ranks.STEP)[:, None]
    assert np.abs(moves).max() < 1 and np.abs(np.diff(moves, axis=0)).max() < 2


def test_narrow_gaps_are_as_rare_as_stated_whatever_n_is():
    """The product of both probabilities, by exact tails, for all n up to the least N and beyond."""
    for q, chains, rank_epsilon, count_epsilon in (
        (3, 2, 1.0, 0.02),
        (3, 1, 1.0, 0.5),
        (9, 2, 3.0, 0.05),
        (9, 1, 0.5, 0.01),
    ):
        used = chained_ranks.Chains.of(np.arange(1, q + 1) / (q + 1), chains)
        least = used.enough(rank_epsilon, count_epsilon, 20, 1e-4)
        assert used.narrow(rank_epsilon, count_epsilon, least, 20)[1] <= 1e-4
        rate, r = used.rate(rank_epsilon), math.exp(-count_epsilon)
        worst = 0.0
        for n in range(0, least + 50, 7):
            room = int((n / (q + 1) - 20) * chained_ranks.STEP) - 1
            within = (q - 1 if chains == 1 else q - 2) * dpjax.bounds.geometric_sum_tail(1, rate, room)
            between = 0.0 if chains == 1 else dpjax.bounds.geometric_sum_tail(q, rate, room)
            count = r ** (least - n) / (1 + r) if n < least else 1.0
            worst = max(worst, min(1.0, within + between) * count)
        assert 1e-7 < worst <= 1e-4


@pytest.mark.parametrize(("count_epsilon", "least"), [(1e-3, 6000), (1e-4, 20_000)])
def test_narrow_gaps_are_not_forgotten_where_a_count_says_little(count_epsilon, least):
    """Points so few that gaps are narrow every other time, while their tails at `least` points are below 1e-320."""
    made = dataclasses.replace(
        small(bits=64, fractions=[0.25, 0.5, 0.75], m=40, margin=80, rank_epsilon=1.0, chains=1),
        count_epsilon=np.float64(count_epsilon),
        least=np.int32(least),
    )
    n, r = 4 * (2 * 40 + 80 + 2), math.exp(-count_epsilon)
    likely = 0.5 * r ** (least - n) / (1 + r)  # P[a given gap is narrow] >= 1/2 there
    assert made.guarantee().delta - float(made.delta) >= likely > 1e-4


@pytest.mark.parametrize(
    "given", [{"count_epsilon": 1e-3}, {"rank_epsilon": 600.0, "count_epsilon": 0.1}, {"gap_delta": 1e-300}]
)
def test_small_powers_of_the_tails_of_gaps_still_have_a_size(given):
    for chains in (1, 2):
        parts = {"bits": 64, "fractions": [i / 22 for i in range(1, 22)], "m": 40, "rank_epsilon": 1.0} | given
        made = small(**parts, chains=chains)
        assert made.guarantee().delta <= 0.01 * (1 + 1e-12) + float(parts.get("gap_delta", 0.02))
    with pytest.raises(ValueError, match="must allow at most 2147483647 points"):
        small(bits=64, fractions=[0.25, 0.5, 0.75], count_epsilon=2.0**-25, gap_delta=1e-300)


# ------------------------------------------------------------------------------------------------- sampler and promises


@pytest.mark.thorough
def test_runs_follow_their_law():
    values, draws = [0] * 9 + [1] * 12, 4000
    made = small(epsilon=6.0, delta=0.2, m=2, rank_epsilon=1.0, gap_delta=0.3)
    outcomes = jax.jit(jax.vmap(made, in_axes=(0, None)))(
        jax.random.split(jax.random.key(5), draws), points_of(values, 1, 31)
    )
    answers = np.asarray(outcomes.hypothesis)[:, :, 0].astype(int) @ [2, 1]
    counts = np.bincount(np.where(outcomes.status == Status.OK, answers, 4), minlength=5)[[0, 1, 3, 4]]
    for other, agrees in ((made, True), (small(epsilon=6.0, delta=0.2, m=2, rank_epsilon=2.0, gap_delta=0.3), False)):
        law = slices_law(values, other, chained_ranks.STEP, 12 * chained_ranks.STEP)
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
    points = points_of(values, bits, 1023)
    outcomes = run(jax.random.split(jax.random.key(1), 100), points)
    wanted = quantiles.nearest_rank(np.asarray(made.fractions), n)
    errors = np.asarray(jax.vmap(lambda one: quantiles.rank_errors(points, one, wanted))(outcomes.hypothesis))
    bad = (errors.max(axis=1) > alpha * n) | (np.asarray(outcomes.status) != Status.OK)
    assert n < 1023 and bad.mean() <= beta and np.mean(errors.max(axis=1) > 0.01 * n) > 0.1  # negative control
    few = run(jax.random.split(jax.random.key(1), 100), points_of(values[:40], bits, 1023))
    assert np.all(np.asarray(few.status) != Status.OK)


@pytest.mark.thorough
def test_one_quantile_has_no_gaps_to_pay_for():
    made = small(fractions=[0.5], m=3, bits=8)
    assert made.guarantee().delta == 0.01
    outcome = jax.jit(made)(jax.random.key(0), points_of([7] * 30, 8, 31))
    assert outcome.status == Status.OK and wide.to_ints(outcome.hypothesis) == [7]


@pytest.mark.thorough
def test_a_window_that_does_not_fit_is_not_run():
    made = small()
    run = jax.jit(lambda made: made(jax.random.key(0), points_of([0] * 20, 1, 31)).status)
    assert run(made) != Status.BAD_PARAMETER
    for wrong in ({"m": jnp.int32(4)}, {"margin": jnp.int32(0)}, {"delta": jnp.float32(0.0)}):
        assert run(dataclasses.replace(made, **wrong)) == Status.BAD_PARAMETER


def test_choose_takes_them_for_several_quantiles_of_wide_domains():
    fractions = [i / 10 for i in range(1, 10)]
    choice = dpjax.choose("quantiles", bits=64, fractions=fractions, epsilon=1.0, delta=1e-6, alpha=0.02, beta=0.1)
    assert choice.name == "supported_slices" and choice.n < 0.65 * choice.runner_up.value
    guarantee = choice.algorithm.guarantee()
    assert guarantee.epsilon <= 1.0 and guarantee.delta <= 1e-6
    assert 0.998 * choice.n <= choice.algorithm.sample_size(alpha=0.02, beta=0.1) <= choice.n


@pytest.mark.parametrize(
    ("given", "error", "words"),
    [
        ({"m": 0}, ValueError, "m must be"),
        ({"margin": 0}, ValueError, "margin must be"),
        ({"margin": 1.5}, TypeError, "margin must be"),
        ({"delta": 0.0}, ValueError, "delta must be"),
        ({"gap_delta": 0.0}, ValueError, "gap_delta must be"),
        ({"epsilon": 0.0}, ValueError, "epsilon must be"),
        ({"rank_epsilon": 0.0}, ValueError, "rank_epsilon must be"),
        ({"count_epsilon": -1.0}, ValueError, "count_epsilon must be"),
        (
            {"fractions": [0.5, 0.51], "m": 10**8},
            ValueError,
            "must allow at most 2147483647 points",
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
    with pytest.raises(ValueError, match="beta must be above"):
        small().sample_size(alpha=0.1, beta=1e-4)


@pytest.mark.parametrize(
    "given", [{"least": np.int64(2**32)}, {"m": np.int64(2**32 + 2)}, {"margin": np.int64(2**34)}, {"margin": -1}]
)
def test_no_guarantee_is_stated_for_numbers_that_runs_take_for_others(given):
    """Runs compute in int32: a least count of 2^32 is one of 0 there, and any number of points would be enough."""
    with pytest.raises(ValueError, match=f"{next(iter(given))} must be [<>]="):
        dataclasses.replace(small(), **given).guarantee()
