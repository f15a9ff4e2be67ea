"""The NumPy trials of the benchmark against dpjax: the same success rates, or the benchmark compares different things.

Statistical tests: fixed keys, false-alarm rate 2e-5 each.
"""

import functools
import math
import sys
import time

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from builders import slow
from scipy import stats

from dpjax.concepts import thresholds as concept
from dpjax.data.sample import bucket
from dpjax.learners import thresholds as learners
from experiments.benchmarks import numpy_driver, numpy_general, numpy_trials, peers
from experiments.benchmarks.numpy_trials import Cell
from experiments.benchmarks.pool import Pool
from experiments.benchmarks.programs import PROGRAMS

ALARM = 2e-5
LEARNERS = ("erm", "exponential", "binary_search", "rec_concave")
BUILD = {
    "erm": learners.erm,
    "exponential": functools.partial(learners.exponential, epsilon=1.0),
    "binary_search": functools.partial(learners.binary_search, epsilon=1.0),
    "rec_concave": functools.partial(
        learners.rec_concave, epsilon=1.0, delta=1e-6, alpha=0.2, depth=2, calibration="printed"
    ),
}


def success_counts(learner, d, n, trials, seed):
    """The successes of the specialised program."""
    return numpy_driver.count(PROGRAMS[f"specialised {learner}"], (d, n), trials, seed)


def general_counts(learner, d, n, trials, seed):
    """The successes of the general program."""
    return numpy_driver.count(PROGRAMS[learner], (d, n), trials, seed)


@functools.partial(jax.jit, static_argnums=(1, 4))
def dpjax_successes(learner, capacity, distribution, n, trials):
    """Successes of dpjax: sample, learner, exact error."""

    def trial(key):
        sample_key, run_key = jax.random.split(key)
        outcome = learner(run_key, distribution.sample(sample_key, capacity, n))
        return (outcome.status == 0) & (
            distribution.error(outcome.hypothesis) <= jnp.asarray(numpy_trials.ALPHA, float)
        )

    return jnp.sum(jax.vmap(trial)(jax.random.split(jax.random.key(3), trials)), dtype=jnp.int32)


@functools.partial(jax.jit, static_argnums=(1, 4))
def dpjax_laws(learner, capacity, distribution, n, samples):
    """Exact success probabilities given each of several samples."""

    def law(key):
        zone = distribution.within(jnp.asarray(numpy_trials.ALPHA, float))
        return learner.probability(distribution.sample(key, capacity, n), zone)[0]

    return jax.vmap(law)(jax.random.split(jax.random.key(4), samples))


def p_value(successes, trials, others, other_trials):
    """Fisher's exact test of equal rates."""
    return stats.fisher_exact([[successes, trials - successes], [others, other_trials - others]]).pvalue


@pytest.mark.slow
@pytest.mark.parametrize(
    ("learner", "d", "n"),
    [
        ("erm", 31, 12),
        slow("exponential", 31, 150),
        slow("binary_search", 31, 800),
        slow("rec_concave", 31, 900),
    ],
)
def test_success_rates_agree_with_dpjax(learner, d, n):
    trials, ours = 1000, 20_000
    expected = int(
        dpjax_successes(BUILD[learner](bits=d), bucket(n), concept.log_uniform(bits=d), jnp.int32(n), trials)
    )
    assert 0.05 < expected / trials < 0.95
    got = success_counts(learner, d, n, ours, 5)
    assert p_value(got, ours, expected, trials) > ALARM
    other = success_counts(learner, d, n * 13 // 10, ours, 5)  # the test tells n from 1.3 n
    assert p_value(other, ours, expected, trials) < ALARM


def t_p_value(successes, trials, laws):
    """Welch's t-test of a success rate against the mean of exact probabilities."""
    rate = successes / trials
    variance = np.var(laws, ddof=1) / len(laws) + rate * (1 - rate) / trials
    return 2 * stats.t.sf(abs(np.mean(laws) - rate) / math.sqrt(variance), len(laws) - 1)


@pytest.mark.slow
@pytest.mark.parametrize(("d", "n"), [(31, 900), (9, 250)])
def test_rec_concave_agrees_with_the_exact_law(d, n):
    trials = 20_000
    args = (BUILD["rec_concave"](bits=d), bucket(n), concept.log_uniform(bits=d), jnp.int32(n), 48)
    laws = np.asarray(dpjax_laws(*args), float)
    assert t_p_value(success_counts("rec_concave", d, n, trials, 6), trials, laws) > ALARM
    assert t_p_value(success_counts("rec_concave", d, n * 13 // 10, trials, 6), trials, laws) < ALARM


def naive_erm(rng, d, n):
    """One trial in Python integers, from the definition."""
    target = 2 ** (d - 1)
    offsets = [math.floor(2 ** (rng.random() * (d - 1))) for _ in range(n)]
    x = [target - offset if rng.random() < 0.5 else target + offset for offset in offsets]
    low = max([p + 1 for p in x if p < target], default=0)
    high = min([p for p in x if p >= target], default=2**d)
    h = int(rng.integers(low, high + 1))
    distance = target + 1 - h if h <= target else h - target
    return math.log2(distance) / (2 * (d - 1)) <= numpy_trials.ALPHA


def test_erm_agrees_with_the_definition():
    rng, trials = np.random.default_rng(0), 4000
    naive = sum(naive_erm(rng, 8, 7) for _ in range(trials))
    assert p_value(success_counts("erm", 8, 7, 40_000, 0), 40_000, naive, trials) > ALARM
    assert p_value(success_counts("erm", 8, 9, 40_000, 0), 40_000, naive, trials) < ALARM


@pytest.mark.parametrize("learner", LEARNERS)
@pytest.mark.parametrize(("d", "n"), [(6, 1), (6, 40), (64, 2), (64, 1000), (65, 300), (1024, 1), (1024, 2000)])
def test_every_cell_runs_without_a_warning_and_depends_on_the_seed_alone(learner, d, n):
    count = success_counts(learner, d, n, 70, 1)
    assert 0 <= count <= 70
    assert success_counts(learner, d, n, 70, 1) == count


@pytest.mark.parametrize(("d", "n", "reach"), [(31, 3, 3), (31, 40, 40), (64, 2000, 500), (1024, 700, 349), (65, 9, 5)])
def test_distances_are_order_statistics(d, n, reach):
    """The k-th least distance of a side is at least 2^m iff fewer than k of n words fall in its first m octaves."""
    cell, rows, k = Cell(d, n), 4000, max(1, n // 8)
    ends = numpy_trials._nearest(np.random.default_rng(2), cell, rows, reach)
    assert (np.diff(ends, axis=2) >= 0).all() and (ends >= 1).all()
    m = max(1, round(cell.octaves * 2 * k / n))
    for side in ends[:, :, k - 1]:
        reached = int(np.count_nonzero(side >= 2.0**m))
        law, other = (stats.binom.cdf(k - 1, size, m / cell.octaves / 2) for size in (n, math.ceil(1.3 * n)))
        assert stats.binomtest(reached, rows, law).pvalue > ALARM
        assert stats.binomtest(reached, rows, other).pvalue < ALARM


@pytest.mark.slow
@pytest.mark.parametrize(
    ("learner", "d", "n"),
    [("exponential", 31, 100), ("exponential", 64, 250), ("binary_search", 31, 800), ("binary_search", 64, 3000)]
    + [("rec_concave", d, n) for d, n in [(9, 400), (31, 900), (64, 1500), (64, 2000)]],
)
def test_general_trials_agree_with_the_specialised_ones(learner, d, n):
    trials = 5000
    expected = success_counts(learner, d, n, trials, 7)
    assert 0.05 < expected / trials < 0.99
    got = general_counts(learner, d, n, trials, 8)
    assert p_value(got, trials, expected, trials) > ALARM
    other = general_counts(learner, d, n * 12 // 10, trials, 8)  # the test tells n from 1.2 n
    assert p_value(other, trials, expected, trials) < ALARM


def run_lengths(starts, correct, end):
    """L(j) from the definition, in Python integers: the longest run of pieces that are no worse than v, for each value v."""
    best = {}
    for v in set(correct):
        at, longest = 0, 0
        for stop, q in zip([*starts[1:], end], correct, strict=True):
            at = at if q >= v else stop
            longest = max(longest, stop - at)
        best[v] = longest
    return [max(v for v, longest in best.items() if longest >= 2**j) for j in range(end.bit_length())]


@pytest.mark.parametrize(("d", "n"), [(7, 1), (9, 30), (31, 200), (63, 50)])
def test_best_windows_agree_with_the_definition(d, n):
    batch = numpy_general.Batch(Cell(d, n), 20)
    batch.draw(np.random.default_rng(1))
    windows = numpy_general._best_windows(batch)
    for i in range(batch.rows):
        starts, correct = batch.starts[i, : n + 1].tolist(), batch.correct[i].tolist()
        assert windows[i].tolist() == run_lengths(starts, correct, 2**d + 1)


@pytest.mark.parametrize("learner", sorted(numpy_general.PROGRAMS))
@pytest.mark.parametrize(("d", "n"), [(6, 1), (6, 40), (31, 1), (32, 5), (64, 1), (64, 3000)])
def test_general_trials_run_without_a_warning_and_depend_on_the_seed_alone(learner, d, n):
    count = general_counts(learner, d, n, 70, 1)
    assert 0 <= count <= 70
    assert general_counts(learner, d, n, 70, 1) == count


@pytest.mark.parametrize(("change", "named"), [({"d": 65}, "d "), ({"n": 0}, "n "), ({"trials": -1}, "trials")])
def test_bad_arguments_of_general_trials_are_named(change, named):
    with pytest.raises(ValueError, match=f"^{named}"):
        general_counts(**{"learner": "exponential", "d": 31, "n": 9, "trials": 5, "seed": 0, **change})


@pytest.mark.slow  # `test_benchmarks` checks the pool's sums
def test_pool_adds_up_its_shares():
    seeds = np.random.SeedSequence(9).spawn(2)
    with Pool(processes=2) as pool:
        for name, sizes in (("specialised erm", (31, 12)), ("rec_concave", (31, 900))):
            got = pool.count(name, sizes, 501, 9)
            shares = zip((250, 251), seeds, strict=True)
            assert 0 < got < 501 and got == sum(numpy_driver.count(PROGRAMS[name], sizes, m, s) for m, s in shares)


@pytest.mark.parametrize(
    ("change", "named"), [({"d": 5}, "d "), ({"d": 1025}, "d "), ({"n": 0}, "n "), ({"trials": -1}, "trials")]
)
def test_bad_arguments_are_named(change, named):
    with pytest.raises(ValueError, match=f"^{named}"):
        success_counts(**{"learner": "erm", "d": 31, "n": 10, "trials": 5, "seed": 0, **change})


@pytest.mark.parametrize("median", [peers.opendp_median, peers.diffprivlib_median])
def test_peers_say_why_they_cannot(median):
    wide = median(bits=1024, n=10)
    assert wide.call is None and wide.seconds() is None and "1024 bits" in wide.note


def test_peers_without_their_package_are_left_out(monkeypatch):
    for module in ("opendp.prelude", "diffprivlib.tools"):
        monkeypatch.setitem(sys.modules, module, None)
    assert peers.rivals("exponential", (31, 10)) == {}
    assert "opendp" in peers.opendp_median(bits=31, n=10).note


@pytest.mark.parametrize("median", [peers.opendp_median, peers.diffprivlib_median])
def test_peers_find_the_target(median):
    """With 2000 points half of all mass lies within 2^15.5 of 2^30, but OpenDP has only candidates 2^21 apart."""
    found = median(bits=31, n=2000)
    if found.call is None:
        pytest.skip(found.note)
    assert abs(found.call() - 2**30) < 2**24


def test_seconds_are_those_of_one_call():
    slept = peers.Peer(lambda: time.sleep(0.002), "").seconds(at_least=0.02)
    assert 0.002 <= slept < 0.02


def test_peers_sample_lies_in_the_domain():
    points = peers.log_uniform_sample(bits=31, n=1000, seed=0)
    assert points.dtype == np.int64 and points.min() > 0 and points.max() < 2**31
    assert np.abs(points - 2**30).min() >= 1
