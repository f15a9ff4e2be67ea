"""Sanitizers of thresholds: each against its plain twin, exact privacy with controls that must be refuted, databases, refusals."""

import dataclasses
import functools
import itertools
import math
from collections import Counter, defaultdict
from typing import Any

import builders
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from frequencies import FALSE_ALARM, p_value
from scipy import signal, stats

from dpjax import Points, Status, Weighted, bounds
from dpjax.accounting import REPLACE_ONE, Guarantee, optimal
from dpjax.bounds import threshold_sanitizers
from dpjax.domains import wide
from dpjax.optimizers import interior_point, quantiles
from dpjax.optimizers.quasi_concave import recursion, units
from dpjax.sanitizers import cdf, points, thresholds
from dpjax.sanitizers.points import Frequencies
from dpjax.sanitizers.points.rows import rows
from dpjax.sanitizers.thresholds.san_thresholds import Range
from dpjax.sanitizers.thresholds.tree import consistent
from dpjax.verify import histograms, laplace_deltas, neighbours
from dpjax.verify.plain import noisy_counts as counts_twin
from dpjax.verify.plain import rec_concave as rec_concave_twin
from dpjax.verify.plain import san_thresholds as twin


def multiset(counts: Any, bits: int, rows: int = 15) -> Weighted:
    """Point i occurs counts[i] times."""
    there = [i for i, count in enumerate(counts) if count]
    data = Weighted.create(wide.from_ints(there, bits), np.array([counts[i] for i in there]))
    return data.padded(max(rows, data.rows))


def small(n: int, step_epsilon: float, calls: int | None = None, **given: Any) -> Any:
    """SanThresholds on 8 points at alpha = 0.9, with an epsilon per step at which everything happens."""
    made = thresholds.san_thresholds(bits=3, n=n, epsilon=1.0, delta=0.1, alpha=0.9, allow_unproved=True, **given)
    made = dataclasses.replace(made, step_epsilon=np.float64(step_epsilon))
    return made if calls is None else dataclasses.replace(made, calls=calls)


def given_of(made: Any, epsilon_factor: float = 1.0) -> dict[str, Any]:
    """The arguments that its twin takes."""
    step = float(made.step_epsilon) * epsilon_factor
    printed = made.calibration == "printed"
    parts = 3 * bounds.log_star(int(made.bits)) if printed else 1
    given = {"n": int(made.n), "alpha": float(made.alpha), "epsilon": step, "recursion_epsilon": step / parts}
    return {**given, "calls": made.calls, "every_call": printed}


COUNTS = [20, 3, 0, 17, 1, 0, 9, 10]


# ------------------------------------------------------------------------------------------------------- SanThresholds


@pytest.mark.thorough
@pytest.mark.parametrize("calibration", ["proved", pytest.param("printed", marks=pytest.mark.slow)])
def test_a_run_follows_the_law_of_figure_11(calibration: str) -> None:
    """Which points were released, in how many calls, how many of which passed: by all outcomes of the twin; not at 1.5 epsilon."""
    made, runs = small(sum(COUNTS), 0.8, calls=3 if calibration == "proved" else 5, calibration=calibration), 20_000
    data = multiset(COUNTS, 3)
    keys = jax.random.split(jax.random.key(1), runs)
    outcomes = jax.device_get(jax.jit(jax.vmap(made, (0, None)))(keys, data))
    released = outcomes.hypothesis
    assert (outcomes.status == Status.OK).all()
    calls, passed = outcomes.info["calls"], outcomes.info["passed"]
    ends = np.where(np.arange(released.x.shape[1]) < released.n_valid[:, None], released.x[..., -1], 8)
    np.testing.assert_array_equal(released.n_valid, calls)  # every call adds one point
    assert (released.weights == np.round(released.weights)).all() and (released.weights >= 0).all()
    seen = Counter((tuple(e[e < 8].tolist()), int(p)) for e, p in zip(ends, passed, strict=True))
    for factor, right in ((1.0, True), (1.5, False)):
        expected: dict[Any, float] = defaultdict(float)
        for skeleton, p in twin.law(COUNTS, **given_of(made, factor)).items():
            ends_of = tuple(sorted(b for b, _, _ in skeleton))
            expected[ends_of, sum(how in ("fresh", "high") for *_, how in skeleton)] += p
        common = [key for key, p in expected.items() if p * runs >= 10]
        rest = 1 - sum(expected[key] for key in common)
        table = np.array([[seen[key], runs * expected[key]] for key in common])
        table = np.vstack([table, [runs - table[:, 0].sum(), max(runs * rest, 1e-9)]])
        assert len(common) > 12 and (p_value(*table.T) > FALSE_ALARM) == right


def test_lengths_and_intervals_are_those_of_the_figure() -> None:
    """Steps 4 to 10a on random ranges of 64 elements, against the definitions."""
    rng = np.random.default_rng(0)
    counts = rng.integers(0, 9, 64) * (rng.random(64) < 0.4)
    n, epsilon = int(counts.sum()), 0.7
    made = thresholds.san_thresholds(bits=6, n=n, epsilon=1.0, delta=0.1, alpha=0.9, allow_unproved=True)
    made = dataclasses.replace(made, step_epsilon=np.float64(epsilon))
    view = jax.jit(made.prepare)(multiset(counts, 6, 63))

    @jax.jit
    @jax.vmap
    def stages(k: Any, stop: Any, z: Any) -> Any:
        low, high = wide.from_uint32(k, 1), wide.from_uint32(stop, 1)
        here = Range(low=low, stop=high, first=wide.search(view.x, low), last=wide.search(view.x, high))
        return made.log_lengths(view, here), made.blocks(view, here, z)

    ends = np.sort(rng.choice(65, (40, 2)), axis=1)
    ends = ends[ends[:, 0] < ends[:, 1]]
    zs = rng.integers(0, 6, len(ends)).astype(np.int32)
    laws, (held, begins) = jax.device_get(stages(*ends.T.astype(np.uint32), zs))
    for (k, stop), z, law, number, first in zip(ends.tolist(), zs.tolist(), laws, held, begins, strict=True):
        expected = twin.length_law(counts, k, stop - 1, n=n, alpha=0.9, epsilon=epsilon)
        np.testing.assert_allclose(np.exp(law[: len(expected)]), expected, atol=2e-6)
        assert (np.exp(law[len(expected) :]) == 0).all()
        found = [sum(counts[a : b + 1]) for a, b in twin.intervals(k, stop - 1, z)]
        assert sorted(number[first]) == sorted(count for count in found if count)
        assert (number[~first] == 0).all()


@pytest.mark.slow
@pytest.mark.parametrize("calibration", ["proved", "printed"])
def test_lengths_of_wide_domains_are_chosen_by_two_levels_of_rec_concave(calibration: str) -> None:
    """d = 64, ranges of 4 elements to all of them: the law of BNS Figure 5 on the exponents, beyond log T being bottom."""
    xs = sorted({2**63 + sign * int(2 ** (62 * i / 60)) for i in range(61) for sign in (-1, 1)})
    n, alpha = 50 * len(xs), 0.9
    made = thresholds.san_thresholds(
        bits=64, n=n, epsilon=1.0, delta=0.1, alpha=alpha, allow_unproved=True, calibration=calibration
    )
    made = dataclasses.replace(made, step_epsilon=np.float64(0.5), step_delta=np.float64(0.01))
    view = jax.jit(made.prepare)(Weighted.create(wide.from_ints(xs, 64), [50] * len(xs)))
    stops = [2**63 + 2**j for j in (2, 3, 5, 9, 33)] + [2**64]

    @jax.jit
    @jax.vmap
    def laws(stop: Any) -> Any:
        low = wide.power_of_two(jnp.int32(63), 3)
        return made.log_lengths(
            view, Range(low=low, stop=stop, first=wide.search(view.x, low), last=wide.search(view.x, stop))
        )

    epsilon, delta = (0.5 / 4, 0.01 / 2) if calibration == "proved" else (0.5 / 12, 0.01 / 12)
    for stop, law in zip(stops, np.exp(np.asarray(laws(wide.from_ints(stops, 96)), float)), strict=True):
        last = (stop - 2**63 - 1).bit_length()
        inside = [x for x in xs if 2**63 <= x < stop]
        most = [50 * max(sum(x <= y < x + 2**j for y in inside) for x in inside) for j in range(last + 1)]
        quality = [min(a - alpha * n / 32, 3 * alpha * n / 32 - b) for a, b in zip(most, [0, *most], strict=False)]
        expected = rec_concave_twin.rec_concave_law(
            range(last + 1), quality, last, alpha * n / 32, 0.25, epsilon, delta, 2, calibration, base=1
        )
        masses = [rec_concave_twin.mass(expected, z, z) for z in range(last + 1)]
        np.testing.assert_allclose(law[: last + 1], masses, atol=2e-5)
        np.testing.assert_allclose(law[-1], 1 - sum(masses), atol=2e-5)


def test_a_budget_that_is_no_whole_number_bounds_nothing_if_it_is_asked_to_be_zero() -> None:
    """77/alpha at alpha = 0.9 is 85.6: read literally a run makes a call for each of 901 points; rounded down, 85, as Lemma 4.8 counts."""
    unlucky = {"passes": lambda k, end: True, "length": lambda k, end: 0, "choose": lambda k, end, z: (k, k)}
    budget = 77 / 0.9
    steps, calls = twin.run(900, budget, literal=True, **unlucky)
    assert calls == 901 and len(steps) > 4 * budget
    steps, calls = twin.run(900, budget, **unlucky)
    assert calls == bounds.san_thresholds_calls(0.9, calibration="printed") == 85 and len(steps) == 4 * 85


def test_calls_that_pass_leave_room_for_both_calls_that_each_of_them_makes() -> None:
    """Every call but the first is made by one of the c that pass: 2c + 1 calls, each of which adds a point to the database."""
    made = small(54, 1.0, calls=3)
    released = jax.eval_shape(made, jax.random.key(0), multiset(COUNTS, 3))
    assert released.hypothesis.x.shape[0] == 2 * 3 + 1


def test_no_more_mechanisms_differ_between_neighbours_than_are_paid_for() -> None:
    """In recorded runs, random and worst, at most 3y + 2 mechanisms have x or x' in their range, for all x and x'; once exactly so many."""
    size, calls = 40, 6
    rng = np.random.default_rng(0)

    def choose(k: int, end: int, z: int) -> Any:
        among = twin.intervals(k, end, z)
        return among[rng.integers(len(among))] if rng.random() < 0.9 else None

    random = {
        "passes": lambda k, end: bool(rng.random() < 0.8),
        "length": lambda k, end: int(rng.integers((end - k).bit_length() + 1)) if rng.random() < 0.9 else None,
        "choose": choose,
    }
    unlucky = {"passes": lambda k, end: True, "length": lambda k, end: 0, "choose": lambda k, end, z: (k, k)}
    most = 0
    for turn in range(60):
        steps, made = twin.run(size - 1, calls, every_call=False, **(unlucky if turn == 0 else random))
        assert made <= 2 * calls + 1
        touched = np.array([[k <= x <= end for x in range(size)] for _, k, end in steps])
        differ = (touched[:, :, None] | touched[:, None, :]).sum(axis=0)
        most = max(most, int(differ.max()))
        spending = np.array([kind in ("RecConcave", "Choosing") for kind, *_ in steps])
        assert (touched[spending][:, :, None] | touched[spending][:, None, :]).sum(axis=0).max(initial=0) <= 2 * calls
    assert most == 3 * calls + 2


@pytest.mark.thorough
def test_a_call_tells_two_noises_and_passes_within_its_budget_only() -> None:
    """All points in one place, and noise as large as their number.

    That of step 2 is above -8 n/9 in calls that pass, that of step 11 below -n in some of them.
    Whatever is counted, no call passes when as many have passed as may.
    """
    made = small(40, 1 / 40)
    view = made.prepare(multiset([0, 0, 0, 40], 3))
    call = jax.jit(jax.vmap(lambda key, state: made._call(key, view, state), (0, None)))
    keys, start = jax.random.split(jax.random.key(0), 400), made._start()
    once = jax.device_get(call(keys, start))
    passed = once.passed == 1
    assert 100 < passed.sum() < 400 and (once.copies[passed, 0] == 0).sum() > 5
    spent = jax.device_get(call(keys, dataclasses.replace(start, passed=jnp.int32(made.calls))))
    assert (spent.passed == made.calls).all() and (spent.waiting == 0).all()


Told = dict[Any, tuple[float, tuple[int, ...]]]


def told_of(counts: list[int], **given: Any) -> Told:
    """P of all that a run tells but numbers (the points, and how each was counted), and the true numbers that step 11 tells with noise."""
    laws: Told = {}
    for skeleton, p in twin.law(counts, **given).items():
        told = tuple((b, how) for b, _, how in skeleton)
        fresh = tuple(count for _, count, how in skeleton if how == "fresh")
        assert told not in laws or laws[told][1] == fresh
        laws[told] = laws.get(told, (0.0, fresh))[0] + p, fresh
    return laws


def stick(p: Told, q: Told, epsilon: float, step: float) -> float:
    """Hockey-stick of two such laws, with the numbers: Laplace noise of scale 1/step on each, of which some differ by 1."""
    total = 0.0
    for told, (chance, mine) in p.items():
        other, yours = q.get(told, (0.0, mine))
        if chance > 0.0 and other == 0.0:
            total += chance
        elif chance > 0.0:
            apart = sum(a != b for a, b in zip(mine, yours, strict=True))
            total += chance * float(laplace_deltas(epsilon + math.log(other / chance), loss=step, count=apart))
    return total


def test_privacy_on_two_points_exactly_and_not_below_the_size_that_it_needs() -> None:
    """Two points, and one call that may pass: 3 + 2 mechanisms, one of which has a d. Neighbours where a test or a choice changes fastest,
    and a grid of the others. Numbers that calls tell which end at step 3 are left out: what is told is a post-processing."""
    step, d = 1.0, 0.02
    n = bounds.san_thresholds_private(0.9, step, d)
    assert 2000 < n < 4000
    one = Guarantee(step, 0.0, REPLACE_ONE)
    claims = [optimal({one: 4, Guarantee(step, d, REPLACE_ONE): 1}, epsilon=epsilon) for epsilon in (2.0, 3.0, 5.0)]

    def excess(n: int, firsts: Any) -> list[float]:
        """By how much the largest delta between these neighbours exceeds each claim."""
        given = {"n": n, "alpha": 0.9, "epsilon": step, "recursion_epsilon": step, "calls": 1, "every_call": False}
        laws = {c: told_of([c, n - c], **given) for c in {c + more for c in firsts for more in (0, 1)}}
        pairs = [(c, c + 1) for c in firsts] + [(c + 1, c) for c in firsts]
        return [max(stick(laws[a], laws[b], claim.epsilon, step) for a, b in pairs) - claim.delta for claim in claims]

    edges = [0, n // 8, n // 2, n - 60]  # where a test or a choice changes fastest
    assert max(excess(n, sorted({*itertools.chain(*(range(e, e + 60) for e in edges)), *range(0, n, 97)}))) <= 0
    assert excess(6, range(6))[-1] > 0.02  # the Choosing Mechanism tells a unique point


def test_guarantees_and_sizes() -> None:
    made = thresholds.san_thresholds(bits=16, n=10**8, epsilon=1.0, delta=1e-6, alpha=0.1)
    assert made.guarantee().covers(1.0, 1e-6 * (1 + 1e-9)) and made.guarantee().epsilon > 0.999
    assert made.guarantee().delta > 0.999e-6
    assert made.mechanisms() == (3 * 256 + 2, 256)
    assert thresholds.san_thresholds(bits=64, n=10**9, epsilon=1.0, delta=1e-6, alpha=0.1).mechanisms()[1] == 512
    size = made.sample_size(alpha=0.1, beta=0.1)
    printed = thresholds.san_thresholds(bits=16, n=10**14, epsilon=1.0, delta=1e-6, alpha=0.1, calibration="printed")
    assert printed.mechanisms() == (3080, 1540)
    assert 0.999 < printed.guarantee().epsilon <= 1.0
    assert printed.guarantee().delta == pytest.approx(0.6e-6)  # 3/5 of what is claimed
    assert 1.2e13 < printed.sample_size(alpha=0.1, beta=0.1) < 1.5e13
    lemma = bounds.choosing_mechanism(2, 0.1 / 64, 0.1 / 2310, float(printed.step_epsilon), float(printed.step_delta))
    assert 1.5e8 < lemma < 1.7e8  # Lemma 4.8
    assert 1.5e7 < size < 2e7
    # Refused below the size that privacy needs; a simulation promises nothing.
    with pytest.raises(ValueError, match=r"n must be at least 13\d{6} "):
        thresholds.san_thresholds(bits=16, n=10**6, epsilon=1.0, delta=1e-6, alpha=0.1)
    assert small(54, 1.0).guarantee().is_none
    with pytest.raises(ValueError, match="alpha must be >="):
        made.sample_size(alpha=0.05, beta=0.1)


def test_a_step_pays_for_every_mechanism_inside_of_rec_concave() -> None:
    """Two levels: a length by the exponential mechanism at the bottom, and above it two tests and a choice: four mechanisms."""
    made = thresholds.san_thresholds(bits=64, n=10**9, epsilon=1.0, delta=1e-6, alpha=0.1)
    assert made.levels == 2
    each = made.recursion_budget()
    assert float(each.epsilon) * (1 + 2 + 1) == pytest.approx(float(made.step_epsilon), rel=1e-6)
    assert float(each.delta) * 2 == pytest.approx(float(made.step_delta), rel=1e-6)  # of which the two tests use delta


@pytest.mark.parametrize("noises", [1, 3, 63])
def test_sums_of_noises_reach_what_is_said_with_at_most_that_probability(noises: int) -> None:
    """By convolution for the last sum, and by simulation for the largest; a single noise has a closed form."""
    rate, beta = 0.5, 0.1
    ratio, size = math.exp(-rate), 2000
    each = (1 - ratio) / (1 + ratio) * ratio ** np.abs(np.arange(-size, size + 1))
    law = functools.reduce(lambda law, _: signal.fftconvolve(law, each, mode="same"), range(noises - 1), each)
    tail = np.cumsum(law[::-1])[::-1][size:]
    reached = threshold_sanitizers._walk_reaches(noises, rate, beta)
    factor = 2 if noises == 1 else 4
    assert factor * tail[reached] <= beta < factor * tail[reached - 1]
    draws = np.random.default_rng(0).geometric(1 - ratio, (2, 20_000, noises))
    largest = np.abs(np.cumsum(draws[0] - draws[1], axis=1)).max(axis=1)
    assert np.mean(largest >= reached) < beta + 5 * math.sqrt(beta / 20_000)
    assert np.mean(largest >= 0.6 * reached) > beta + 5 * math.sqrt(beta / 20_000)


def test_a_histogram_of_one_bit_needs_as_many_rows_as_its_only_noise_says() -> None:
    """2 r^6 / (1 + r) = 0.062 <= 0.1 < 0.102 = 2 r^5 / (1 + r): five rows of fifty may be lost."""
    assert bounds.histogram_thresholds(1, 0.1, 0.1, 1.0) == 50
    sizes = [bounds.histogram_thresholds(1, 0.05, 0.01, epsilon) for epsilon in (1e-3, 1e-4, 1e-9)]
    assert sizes == pytest.approx([sizes[0], 10 * sizes[0], 1e6 * sizes[0]], rel=1e-3)


def test_deviations_of_noise_are_the_least_that_the_moments_give() -> None:
    """Against all s on a grid: histogram by Doob's inequality, tree by a union bound."""
    s, beta, epsilon, alpha = np.linspace(1e-4, 1 - 1e-6, 200_000), 1e-9, 0.7, 0.1
    for bits in (2, 5, 12):
        points = 2**bits - 1
        histogram = ((math.log(2 / beta) - points * np.log1p(-(s**2))) / s).min() * 2 / epsilon
        tree = ((math.log(2 * points / beta) - np.log1p(-(s**2))) / s).min() * 2 * bits / epsilon
        tree *= math.sqrt((bits + 1) // 2)
        np.testing.assert_allclose(
            bounds.histogram_thresholds(bits, alpha, beta, epsilon), histogram / alpha, rtol=1e-3, atol=1
        )
        np.testing.assert_allclose(bounds.tree_thresholds(bits, alpha, beta, epsilon), tree / alpha, rtol=1e-3, atol=1)


@pytest.mark.slow
@pytest.mark.parametrize("calibration", ["proved", "printed"])
def test_error_at_the_size_that_the_theorem_asks_for(calibration: str) -> None:
    """At n = `sample_size`, 1.4e13 for the printed one, with counts of 64 bits: 40 runs, all within alpha."""
    with jax.enable_x64(True):
        given = {"bits": 16, "epsilon": 1.0, "delta": 1e-6, "alpha": 0.1, "calibration": calibration}
        made = thresholds.san_thresholds(n=1, allow_unproved=True, **given)
        each = made.sample_size(alpha=0.1, beta=0.1) // 512 + 1
        made = dataclasses.replace(made, n=np.float64(512 * each))
        assert not made.guarantee().is_none
        rng = np.random.default_rng(0)
        xs = np.unique(np.minimum((2 ** (16 * rng.random(4096))).astype(int), 65535))[:512]
        data = Weighted.create(wide.from_ints([*xs, *[65535] * (512 - len(xs))], 16), [each] * 512)
        run = jax.jit(jax.vmap(lambda key: made(key, data).hypothesis.threshold_error(data)))
        assert (run(jax.random.split(jax.random.key(0), 40)) < 0.1).all()


# -------------------------------------------------------------------------------------------------------- noisy counts


NOISY = {"histogram": thresholds.histogram, "tree": thresholds.tree}


def flat(released: Any) -> np.ndarray:
    """All released numbers of a batch, concatenated."""
    return np.concatenate([np.asarray(part) for part in jax.tree.leaves(released)], axis=-1)


@pytest.mark.parametrize("name", NOISY)
def test_privacy_of_noisy_counts_exactly_and_not_at_sensitivity_1(name: str) -> None:
    """The largest loss between all neighbours of 3 points on {0, 1, 2, 3} is epsilon, at the extremes of what may be released."""
    made = NOISY[name](bits=2, n=3, epsilon=0.8)
    datasets = histograms(4, [3]).astype(np.int32)
    sizes = [4] if name == "histogram" else [2, 4]
    extremes = np.array(list(itertools.product([-1, 4], repeat=sum(sizes))), np.int32)

    @jax.jit
    @functools.partial(jax.vmap, in_axes=(None, 0, None))
    @functools.partial(jax.vmap, in_axes=(None, None, 0))
    def log_law(made: Any, counts: Any, flat: Any) -> Any:
        parts = jnp.split(flat, np.cumsum(sizes)[:-1])
        return made.log_released(counts, parts if name == "tree" else parts[0])

    pairs = neighbours(datasets, REPLACE_ONE)
    laws = {
        right: np.asarray(log_law(NOISY[name](bits=2, n=3, epsilon=e), datasets, extremes))
        for right, e in ((True, 0.8), (False, 1.6))
    }
    for right, law in laws.items():
        loss = np.abs(law[pairs[:, 0]] - law[pairs[:, 1]]).max()
        assert (loss <= 0.8 * (1 + 1e-5)) == right
    np.testing.assert_allclose(np.abs(laws[True][pairs[:, 0]] - laws[True][pairs[:, 1]]).max(), 0.8, rtol=1e-5)  # tight
    # The law is that of its twin.
    scale = 2 / 0.8 * len(sizes)
    for counts, row in zip(datasets[:3], laws[True][:3], strict=True):
        true = flat(made.levels(jnp.asarray(counts)) if name == "tree" else [counts])
        expected = [math.log(counts_twin.law(true, released, scale)) for released in extremes]
        np.testing.assert_allclose(row, expected, rtol=1e-5)
    assert made.guarantee() == Guarantee(0.8, 0.0, REPLACE_ONE)


def test_noisy_counts_have_the_noise_that_was_verified() -> None:
    """Two-sided geometric, of sensitivity 2: on 4096 counts it is 0 as often as at half of epsilon."""
    made = thresholds.histogram(bits=12, n=10, epsilon=1.0)
    noise = np.asarray(jax.jit(made.noisy)(jax.random.key(0), jnp.zeros(4096, jnp.int32)))
    assert stats.binomtest(int(np.sum(noise == 0)), 4096, stats.dlaplace(0.5).pmf(0)).pvalue > FALSE_ALARM


def test_the_consistent_tree_solves_the_normal_equations() -> None:
    rng = np.random.default_rng(0)
    released = [rng.integers(-9, 30, 2**level).astype(np.int32) for level in (1, 2, 3, 4)]
    found = jax.jit(consistent)(released, jnp.float32(100))
    np.testing.assert_allclose(found, counts_twin.consistent(released, 100), atol=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("name", NOISY)
def test_databases_are_no_worse_than_the_estimates_they_are_made_of_and_accurate_at_their_size(name: str) -> None:
    """beta = 0.1, 200 runs; a twentieth of the points would not be enough."""
    bits, alpha, runs = 6, 0.1, 200
    n = NOISY[name](bits=bits, n=1, epsilon=1.0).sample_size(alpha=alpha, beta=0.1)
    rng = np.random.default_rng(0)
    shares = rng.random(64) ** 8

    @jax.jit
    @functools.partial(jax.vmap, in_axes=(0, None, None))
    def errors(key: Any, made: Any, data: Any) -> Any:
        counts = made.prepare(data)
        estimates = made.estimate(made.noisy(jax.random.clone(key), counts))
        gap = jnp.abs(jnp.cumsum(estimates - counts.astype(estimates.dtype))[:-1]).max().astype(float)
        return made(key, data).hypothesis.threshold_error(data), gap / made.n

    for size, right in ((n, True), (n // 20, False)):
        counts = np.floor(shares / shares.sum() * size).astype(int)
        counts[5] += size - counts.sum()
        made, data = NOISY[name](bits=bits, n=size, epsilon=1.0), multiset(counts, bits, 63)
        error, raw = jax.device_get(errors(jax.random.split(jax.random.key(2), runs), made, data))
        assert (error <= raw + 1e-5).all()
        assert (stats.binom.sf((error > alpha).sum() - 1, runs, 0.1) > FALSE_ALARM) == right


# ------------------------------------------------------------------------------------------------- from interior points


@pytest.mark.thorough
@pytest.mark.parametrize("bits", [4, 32])
def test_the_database_of_quantiles_answers_as_their_step_function(bits: int) -> None:
    """Some of them equal, some at the ends of the domain; 2^32 - 1 is a limb that is full."""
    top = 2**bits - 1
    zs = wide.from_ints([0, 3, 3, top - 1, top, top], bits)
    function = cdf.StepFunction(points=zs, heights=jnp.array([0.05, 0.1, 0.3, 0.4, 0.6, 0.8, 0.95]))
    database, asked = jax.jit(lambda f: f.database(jnp.int32(bits)))(function), [0, 1, 2, 3, 4, top - 2, top - 1]
    below = database.share_below(wide.from_ints([x + 1 for x in asked], bits + 1))
    np.testing.assert_allclose(below, function.evaluate(wide.from_ints(asked, bits)), atol=1e-6)
    np.testing.assert_allclose(float(database.total), 1.0, rtol=1e-6)
    assert int(database.n_valid) == 4 and (database.weights[:4] > 0).all()


def by_quartiles() -> Any:
    """A sanitizer, and the quartiles that it is made from."""
    solver = interior_point.exponential(bits=4, epsilon=1.0)
    made = quantiles.direct(solver=solver, fractions=[0.25, 0.5, 0.75], m=4, allow_unproved=True)
    return thresholds.from_interior_points(quantiles=made), made


@pytest.mark.slow  # conformance runs it
def test_interior_points_of_rows_and_of_counts() -> None:
    sanitizer, made = by_quartiles()
    data = builders.points_of([0] * 9 + [3] * 8 + [4] * 10 + [15] * 4, 4, 31)
    of_rows, of_counts = (sanitizer(jax.random.key(0), each).hypothesis for each in (data, Weighted.of(data)))
    np.testing.assert_array_equal(of_rows.weights, of_counts.weights)
    assert float(of_rows.threshold_error(Weighted.of(data))) < 0.5
    assert sanitizer.guarantee() == made.guarantee()


def test_more_points_than_interior_points_can_count_are_refused() -> None:
    sanitizer, made = by_quartiles()
    assert sanitizer.guarantee() == made.guarantee()
    with pytest.raises(ValueError, match="data must hold at most 16777216 points"):
        sanitizer(jax.random.key(0), Weighted.create(wide.from_ints([3], 4), [2**25]))


# -------------------------------------------------------------------------------------------------------------- points


@pytest.mark.thorough
@pytest.mark.parametrize("bits", [3, 64])
def test_few_rows_are_within_the_error_of_the_data_whatever_the_answers(bits: int) -> None:
    """Answers off by `answers` in all directions, random and extreme; tiny domains and wide ones; not with 2 rows instead of 13."""
    rng, answers, error, slots = np.random.default_rng(0), 0.06, 0.2, 8
    top = 2**bits - 1
    xs = sorted([0, 1, 3, 4, 6, top, *([2, 5] if bits == 3 else [top // 3, top // 2])])
    where, shares, noises = wide.from_ints(xs, bits), [], []
    for turn in range(60):
        counts = rng.multinomial(50, rng.dirichlet(np.full(slots, (0.1, 1.0, 30.0)[turn % 3])))
        sign = (rng.uniform(-1, 1, slots), np.ones(slots), -np.ones(slots), rng.choice([-1, 1], slots))[turn % 4]
        shares.append(counts)
        noises.append(answers * sign)
    shares, noises = np.array(shares), np.array(noises, np.float32)

    @jax.jit
    @jax.vmap
    def errors(counts: Any, noise: Any) -> Any:
        truth = Weighted(x=where, weights=counts, n_valid=jnp.int32(slots))
        answered = counts.astype(float) / 50 + noise
        named = answered > 0  # what is answered 0 may weigh `answers`
        released = Frequencies.kept(where, answered, named)
        found = [released.database(bits=bits, error=e, answers=answers) for e in (error, 0.7)]
        return [database.point_error(truth) for database in found], [database.total for database in found]

    (right, wrong), totals = jax.device_get(errors(shares.astype(np.int32), noises))
    assert (totals[0] == bounds.point_rows(error, answers)).all() and totals[0][0] == 13
    assert (right <= error + 1e-6).all()
    assert (totals[1] == 2).all() and (wrong > error).any()


@pytest.mark.slow
def test_counts_and_rows_are_the_same_data_to_sanitizers_of_points() -> None:
    """The same draws, too: a row for each point, or its count."""
    xs = [1] * 9 + [3] * 14 + [7] * 8
    given = {"bits": 3, "n": 31, "epsilon": 7.0, "delta": 0.1}
    data = builders.points_of(xs, 3, 31)
    for made in (points.histogram(**given), points.san_points(**given, alpha=0.8, allow_unproved=True)):
        of_rows, of_counts = (made(jax.random.key(7), each).hypothesis for each in (data, Weighted.of(data)))
        asked = wide.from_ints(range(8), 3)
        np.testing.assert_array_equal(of_rows.answer(asked), of_counts.answer(asked))
        assert float(of_rows.total(asked)) > 0.5
    with pytest.raises(ValueError, match="points must be n = 31"):
        points.histogram(**given)(jax.random.key(0), Weighted.create(wide.from_ints([1], 3), [30]))


@pytest.mark.slow
def test_counts_beyond_32_bits() -> None:
    """10^13 points: noise is lost in them, whatever the sanitizer."""
    with jax.enable_x64(True):
        n, given = 10**13, {"epsilon": 1.0, "delta": 1e-6}
        data = Weighted.create(wide.from_ints([1, 5, 200], 8), [n // 10, 3 * n // 10, 6 * n // 10])
        for made in (
            points.histogram(bits=8, n=n, **given),
            points.release(bits=8, n=n, alpha=0.1, **given),
            points.san_points(bits=8, n=n, alpha=0.3, **given),
        ):
            answers = made(jax.random.key(0), data).hypothesis
            np.testing.assert_allclose(answers.answer(wide.from_ints([1, 5, 200, 7], 8)), [0.1, 0.3, 0.6, 0], atol=1e-8)
            database = answers.database(bits=8, error=0.3, answers=0.1)
            assert database.weights[:3].tolist() == [1, 3, 6] and int(database.total) == 10
        for name in NOISY:
            released = NOISY[name](bits=8, n=n, epsilon=1.0)(jax.random.key(0), data).hypothesis
            assert float(released.threshold_error(data)) < 1e-10


# ------------------------------------------------------------------------------------------------------------- refusals


def run_histogram(n: int, counts: list[int]) -> Any:
    return thresholds.histogram(bits=3, n=n, epsilon=1.0)(jax.random.key(0), multiset(counts, 3))


@pytest.mark.parametrize(
    ("call", "kind", "message"),
    [
        (lambda: thresholds.histogram(bits=17, n=9, epsilon=1.0), ValueError, "from 1 to 16,"),
        (lambda: thresholds.tree(bits=4, n=9, epsilon=0.0), ValueError, "epsilon must be"),
        (lambda: thresholds.san_thresholds(bits=1025, n=9, epsilon=1.0, delta=0.1, alpha=0.5), ValueError, "from 1 to 1024,"),
        (lambda: thresholds.san_thresholds(bits=8, n=9, epsilon=1.0, delta=0.1, alpha=1.5), ValueError, "alpha must be"),
        (lambda: thresholds.san_thresholds(bits=8, n=9, epsilon=1.0, delta=0.1, alpha=0.5, calibration="x"), ValueError, "calibration"),
        (lambda: thresholds.from_interior_points(quantiles=None), TypeError, "quantiles must be"),
        (lambda: run_histogram(n=9, counts=[5, 5]), ValueError, "points must be n = 9"),
        (lambda: run_histogram(n=2**25, counts=[2**25]), ValueError, "n must be at most 16777216"),
        (lambda: bounds.tree_thresholds(3, 0.1, 1.1, 1.0), ValueError, "beta"),
    ],
)  # fmt: skip
def test_bad_input_is_refused_by_name(call: Any, kind: type, message: str) -> None:
    with pytest.raises(kind, match=message):
        call()


@pytest.mark.thorough
def test_points_samples_and_counts_are_the_same_data() -> None:
    xs = [1] * 5 + [3] * 2 + [7] * 2
    made = thresholds.histogram(bits=3, n=9, epsilon=1.0)
    data = Points.create(wide.from_ints(xs, 3))
    one, other = (made(jax.random.key(0), each).hypothesis for each in (data, Weighted.of(data)))
    np.testing.assert_array_equal(one.weights, other.weights)


def test_rows_of_points_that_do_not_fit_are_refused() -> None:
    x, answers, where = wide.from_ints([5, 200], 8), np.array([0.35, 0.45], np.float32), np.array([True, True])
    named = Frequencies(points=x, answers=answers, where=where)
    answered = jax.jit(lambda named, asked: named.answer(asked))(named, wide.from_ints([200, 7, 2**32 + 200], 64))
    assert answered.tolist() == pytest.approx([0.45, 0.0, 0.0])
    for call, kind, message in (
        (lambda: named.database(bits=7, error=0.3, answers=0.1), ValueError, r"points must be < 2\^7, got 200"),
        (
            lambda: named.database(bits=8, error=0.2 + 1e-8, answers=0.1),
            ValueError,
            r"error must be >= 2 answers \+ 2\^-24",
        ),
        (lambda: rows(x, np.array([0.35]), where, bits=8, error=0.3, answers=0.1), ValueError, "one entry a point"),
        (
            lambda: rows([5, 9], answers, where, bits=8, error=0.3, answers=0.1),
            TypeError,
            "points must be a uint32",
        ),
    ):
        with pytest.raises(kind, match=message):
            call()


def test_an_error_that_is_a_share_of_the_points_counts_as_within_it() -> None:
    """float32(13/22) times 22 is below 13."""
    data = Points.create(wide.from_ints([5] * 13 + [9] * 9, 8))
    sanitizer = points.histogram(bits=8, n=22, epsilon=0.1, delta=1e-6)
    at, above = (float(sanitizer.success_probability(data, error=error)) for error in (13 / 22, 13 / 22 + 1e-5))
    assert at == pytest.approx(above, rel=1e-3) and at > 0.1


def test_answers_so_near_that_too_many_points_would_be_looked_at_are_refused() -> None:
    named, there = wide.from_ints([5, 9], 8), jnp.array([True, True])
    with pytest.raises(ValueError, match=r"answers must be >= 2\^-24"):
        rows(named, jnp.array([0.5, 0.5]), there, bits=40, error=0.3, answers=1e-310)


@pytest.mark.thorough
def test_derivatives_of_san_points_are_those_of_differences() -> None:
    """Sets that a round cannot reach, and a slack of 0, once made the derivatives NaN."""
    data = multiset([3, 0, 0, 1], 2)

    def success(epsilon: Any, error: float) -> Any:
        made = points.san_points(bits=2, n=4, epsilon=epsilon, delta=1e-2, alpha=0.5, allow_unproved=True)
        return made.success_probability(data, error=error)

    with jax.enable_x64(True):
        for error in (0.0, 0.3, 0.8):
            value, slope = jax.value_and_grad(success)(jnp.float64(2.0), error)
            more, less = (float(success(2.0 + step, error)) for step in (1e-5, -1e-5))
            np.testing.assert_allclose(slope, (more - less) / 2e-5, rtol=1e-5, atol=1e-9)
        assert 0.01 < float(value) < 0.99 and slope != 0


def test_an_epsilon_that_cannot_be_composed_is_refused_whatever_is_allowed() -> None:
    given: Any = {"bits": 4, "n": 10, "delta": 0.2, "alpha": 0.5, "allow_unproved": True}
    with pytest.raises(ValueError, match=r"epsilon must be <= 2 ln\(5/delta\)"):
        points.san_points(**given, epsilon=8.0)
    data = Points.create(wide.from_ints(range(10), 4))
    run = jax.jit(lambda epsilon: points.san_points(**given, epsilon=epsilon)(jax.random.key(0), data).status)
    for epsilon, status in ((6.4, Status.OK), (6.5, Status.BAD_PARAMETER)):
        assert run(epsilon) == status


def test_weights_that_are_no_counts_are_refused() -> None:
    """Integer noise leaves their fractional parts in the release."""
    data = Weighted(x=wide.from_ints([3, 9], 4), weights=jnp.array([50.25, 49.75]), n_valid=jnp.int32(2))
    for made in (
        thresholds.histogram(bits=4, n=100, epsilon=1.0),
        points.histogram(bits=4, n=100, epsilon=1.0, delta=1e-3),
    ):
        with pytest.raises(TypeError, match="points must have whole weights"):
            made(jax.random.key(0), data)


def test_sizes_are_compared_before_they_are_rounded() -> None:
    made = points.histogram(bits=4, n=2**24, epsilon=1.0, delta=1e-3)
    data = Weighted.create(wide.from_ints([3, 9], 4), [2**24, 1])
    assert jax.jit(made)(jax.random.key(0), data).status == Status.OUTSIDE_DOMAIN


@pytest.mark.parametrize("bits", [40, 0, -1, 1.5, True])
def test_a_database_of_a_domain_that_its_points_are_not_of_is_refused(bits: Any) -> None:
    function = cdf.StepFunction(points=wide.from_ints([3, 9], 4), heights=jnp.array([0.25, 0.5, 0.75]))
    with pytest.raises((TypeError, ValueError), match="bits must"):
        function.database(bits)
    with pytest.raises(ValueError, match=r"points must hold points in 0, ..., 2\^3 - 1, got 9"):
        function.database(3)
    assert function.evaluate(jnp.zeros((0, 1), jnp.uint32)).shape == (0,)
    with pytest.raises(TypeError, match="x must be a uint32 array"):
        function.evaluate(np.array([[2**32 + 3]]))


def test_steps_of_san_thresholds_add_up_to_the_total_and_are_held() -> None:
    """A step's delta was rounded to nearest, and could be 0 in the floats of a run."""
    for bits, epsilon, delta, alpha in (
        (16, 0.1, 5.855325104058287e-15, 0.1334680540533421),
        (33, 0.44, 0.00048322378240390357, 0.1426319487939234),
    ):
        made = thresholds.san_thresholds(bits=bits, n=2**50, epsilon=epsilon, delta=delta, alpha=alpha)
        assert made.guarantee().covers(epsilon, delta)
    given = {"bits": 16, "n": 2**24, "epsilon": 10.0, "delta": 1e-6, "alpha": 0.5}
    with pytest.raises(ValueError, match="delta of a step must be at least"):
        thresholds.san_thresholds(**{**given, "delta": 1e-36})
    with pytest.raises(ValueError, match="epsilon of a step must be at least"):
        thresholds.san_thresholds(**{**given, "epsilon": 1e-40}, allow_unproved=True)
    assert thresholds.san_thresholds(**{**given, "bits": np.uint8(255)}).exponents == 256


@pytest.mark.parametrize(
    ("weights", "n_valid", "error"),
    [
        ([3.0, 3.0], 2, TypeError),
        ([-3, 9], 2, ValueError),
        ([3, 5], 1, ValueError),
        ([3, 3], 5, ValueError),
        ([2**31 - 1] * 2, 2, ValueError),
    ],
)
def test_a_multiset_put_together_by_hand_is_checked_before_it_is_written_out(weights, n_valid, error):
    made = thresholds.from_interior_points(quantiles=quantiles.tree(bits=8, fractions=[0.5], epsilon=1.0))
    data = Weighted(x=jnp.uint32([[7], [9]]), weights=jnp.asarray(weights), n_valid=jnp.int32(n_valid))
    with pytest.raises(error, match="data"):
        made.fit(data)
    nothing = dataclasses.replace(data, weights=jnp.zeros(2, jnp.int32), n_valid=jnp.int32(0))
    assert int(made.fit(nothing).n_valid) == 0


def test_lengths_of_san_thresholds_are_multiples_of_one_unit(monkeypatch):
    """So that a count more moves them by one, in float32, too."""
    made = thresholds.san_thresholds(bits=3, n=5074312, epsilon=1.0, delta=0.1, alpha=0.4716, allow_unproved=True)
    seen = []
    monkeypatch.setattr(recursion, "dense_log_law", lambda quality, *_: seen.append(quality) or quality)

    @jax.jit
    def lengths(data):
        view, start = made.prepare(data), made._start()
        made.log_lengths(view, Range(low=start.lows[0], stop=start.stops[0], first=jnp.int32(0), last=jnp.int32(2)))
        return seen[0], units.unit(jnp.float32(2 * made.n))

    quality, unit = lengths(Weighted.create(wide.from_ints([1, 2], 3), [1000, 5073312]))
    assert not np.any(np.asarray(quality, float) % float(unit))


@pytest.mark.parametrize(
    ("factory", "given"),
    [
        (points.san_points, {"alpha": 1e-150}),
        (points.san_points, {"alpha": 1e-12}),
        (points.k_points, {"alpha": 0.5, "k": 10**9}),
        (thresholds.san_thresholds, {"alpha": 1e-12}),
        (thresholds.san_thresholds, {"alpha": 1e-150, "calibration": "printed"}),
    ],
)
def test_an_alpha_of_more_rounds_than_can_run_is_refused_by_its_name(factory, given):
    with pytest.raises(ValueError, match="alpha must be "):
        factory(bits=8, n=10**9, epsilon=1.0, delta=1e-6, allow_unproved=True, **given)


def test_san_thresholds_of_more_bits_than_it_has_exponents_is_a_bad_parameter():
    sanitizer = thresholds.san_thresholds(bits=4, n=3, epsilon=1.0, delta=0.1, alpha=0.9, allow_unproved=True)
    data = builders.points_of([1, 2, 3], 4)
    run = jax.jit(lambda bits: dataclasses.replace(sanitizer, bits=bits)(jax.random.key(0), data).status)
    assert [int(run(np.int32(bits))) for bits in (4, 5)] == [Status.OK, Status.BAD_PARAMETER]
