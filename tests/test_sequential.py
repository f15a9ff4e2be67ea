"""Stopping when it is clear: confidence sequences keep their level under peeking, and easy cells are cheap.

Rates are checked exactly, by the law of the walk of events; means by runs with a fixed seed, at a false-alarm rate of 2e-5.
"""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from builders import thorough
from scipy import special, stats

from dpjax.concepts import thresholds as concept
from dpjax.learners import pac, thresholds
from dpjax.trials import engine, estimates, sequential
from dpjax.trials.estimates import Estimate
from dpjax.trials.shared import Memory
from dpjax.trials.store import open_store

ROOT = engine.root_key(31)
ALARM = 2e-5
HORIZON = 400


def ever_missed(misses, rate, horizon=HORIZON):
    """Exact P[some interval after 1, ..., horizon trials misses the rate]; `misses` says so for each number of events in given trials."""
    alive, missed = np.ones(1), 0.0
    for trials in range(1, horizon + 1):
        alive = np.append(alive * (1 - rate), 0.0) + np.append(0.0, alive * rate)
        out = misses(trials)
        missed, alive = missed + alive[out].sum(), np.where(out, 0.0, alive)
    return missed


def mixture_misses(rate, level):
    """P[`rate_sequence` ever misses this rate], without its root finding: by the table of M_t, from its definition."""
    from scipy.special import betaln, xlog1py, xlogy

    def misses(trials):
        events = np.arange(trials + 1)
        log_m = betaln(events + 0.5, trials - events + 0.5) - betaln(0.5, 0.5)
        log_m -= xlogy(events, rate) + xlog1py(trials - events, -rate)
        return log_m >= -np.log1p(-level)

    return ever_missed(misses, rate)


@pytest.mark.parametrize("rate", [1e-3, 0.1, 0.5, 0.97])
@pytest.mark.parametrize("level", [0.8, 0.95])
def test_peeking_costs_no_confidence(rate, level):
    assert mixture_misses(rate, level) <= 1 - level


def extremes_missed(rates, largest, smallest):
    """(how often an interval of level 0.9 misses the largest of these rates, how often the smallest), in 2,000 runs."""
    rng, trials, missed = np.random.default_rng(0), 400, np.zeros(2, int)
    for counts in rng.binomial(trials, rates, size=(2000, len(rates))):
        each = [functools.partial(estimates.clopper_pearson, int(count), trials) for count in counts]
        high, low = largest(each, level=0.9), smallest(each, level=0.9)
        missed += [not high.low <= max(rates) <= high.high, not low.low <= min(rates) <= low.high]
    return missed


@pytest.mark.parametrize("rates", [*map(thorough, ([0.9] * 6, [0.1] * 6, [0.5, 0.5, 0.1])), [0.3]])
def test_the_intervals_of_the_largest_and_the_smallest_hold_them(rates):
    missed = extremes_missed(rates, estimates.largest, estimates.smallest)
    assert missed.max() <= stats.binom.isf(ALARM, 2000, 0.1)


@pytest.mark.thorough
def test_the_interval_of_what_looks_largest_does_not():
    """Negative control."""

    def looks(key):
        return lambda each, *, level: key((one(level=level) for one in each), key=lambda estimate: estimate.value)

    missed = extremes_missed([0.5] * 6, looks(max), looks(min))
    assert missed.min() > stats.binom.isf(ALARM, 2000, 0.1)


def test_the_largest_of_nothing_is_refused():
    with pytest.raises(ValueError, match="several must hold at least one quantity"):
        estimates.largest([])


@pytest.mark.parametrize("rate", [0.1, 0.5])
def test_peeking_at_clopper_pearson_does(rate):
    """Negative control: the same sum exposes an interval that holds at one number of trials only."""

    def misses(trials):
        found = [estimates.clopper_pearson(events, trials, level=0.8) for events in range(trials + 1)]
        return np.array([not each.low <= rate <= each.high for each in found])

    assert ever_missed(misses, rate, 60) > 0.2


def test_the_interval_is_where_the_mixture_is_small():
    for events, trials in [(0, 1), (1, 1), (3, 40), (999, 1000), (10, 10**7), (1, 10**8)]:
        estimate = estimates.rate_sequence(events, trials, level=0.9)
        assert estimate.value == events / trials and estimate.low <= estimate.value <= estimate.high
        # The prior is Beta(1/2, 1/2). At the ends of the interval the mixture, here by SciPy's beta-binomial law,
        # is 10 times the likelihood.
        for end in {estimate.low, estimate.high} - {0.0, 1.0}:
            log_likelihood = stats.binom.logpmf(events, trials, end)
            mixture = stats.betabinom.logpmf(events, trials, 0.5, 0.5)
            assert mixture - log_likelihood == pytest.approx(np.log(10), abs=1e-5)
        assert (estimate.low == 0) == (events == 0) and (estimate.high == 1) == (events == trials)

    assert estimates.rate_sequence(10**10 - 1, 10**10).high == 1.0  # from below, by less than a float can say


def test_the_interval_of_a_mean_is_that_of_its_formula():
    """Draw by draw: the mean and the variance estimated before a draw decide how the draw is weighted."""
    draws, log = np.random.default_rng(0).beta(0.5, 5.0, 1000), np.log(2 / 0.1)
    centre = weighed = spread = total = 0.0
    mean, variance, squares = 0.5, 0.25, 0.25
    for t, x in enumerate(draws, start=1):
        weight = min(0.5, np.sqrt(2 * log / (variance * t * np.log1p(t))))
        centre, weighed = centre + weight * x, weighed + weight
        spread += (x - mean) ** 2 * (-np.log1p(-weight) - weight)
        total += x
        mean = (0.5 + total) / (t + 1)
        squares += (x - mean) ** 2
        variance = squares / (t + 1)
    found, half = estimates.mean_sequence(draws, level=0.9), (log + spread) / weighed
    assert found.low > 0 and weight < 0.5
    np.testing.assert_allclose([found.low, found.high], [centre / weighed - half, centre / weighed + half], rtol=1e-12)


def laws(kind, rng, runs, draws):
    """Draws from laws on [0, 1]: rare large values, a constant, or spread out."""
    if kind == "rare":
        return (rng.random((runs, draws)) < 0.05) * 0.9
    return np.full((runs, draws), 0.3) if kind == "constant" else rng.beta(0.5, 2.0, (runs, draws))


def share_missed(kind, method, *, runs=400, looks=(2, 4, 8, 16, 32, 64, 128, 256)):
    values = laws(kind, np.random.default_rng(7), runs, looks[-1])
    truth = {"rare": 0.045, "constant": 0.3, "spread": 0.2}[kind]
    missed = 0
    for row in values:
        intervals = [method(row[:look], level=0.9) for look in looks]
        missed += any(not i.low - 1e-12 <= truth <= i.high + 1e-12 for i in intervals)
    return missed / runs


@pytest.mark.parametrize("kind", ["rare", "constant", "spread"])
def test_means_keep_their_level_under_peeking(kind):
    assert share_missed(kind, estimates.mean_sequence) <= stats.binom.isf(ALARM, 400, 0.1) / 400


@pytest.mark.parametrize("kind", ["rare", "spread"])
def test_peeking_at_student_t_does_not(kind):
    """Negative control."""
    assert share_missed(kind, estimates.mean) > stats.binom.isf(ALARM, 400, 0.1) / 400


def coin(key, p):
    return jax.random.uniform(key) < p


def test_easy_cells_are_cheap_and_a_resumed_run_is_the_same(tmp_path):
    def run(store, p, **more):
        given = {"root": ROOT, "cell": 0, "enough": sequential.apart_from(0.1), "maximum": 20_000}
        return sequential.rate(coin, p, store=store, key={"p": p}, **{**given, **more})

    with open_store(tmp_path / "whole", {}) as store:
        easy, hard = run(store, 0.5), run(store, 0.1)
        assert easy.count == 256 and easy.low > 0.1
        assert hard.count == 20_000
        wide = run(store, 0.2, enough=sequential.narrow(width=0.1))
        assert wide.high - wide.low <= 0.1 and wide.count < 20_000
        relative = run(store, 0.3, enough=sequential.narrow(relative=0.2))
        assert relative.high - relative.low <= 0.2 * relative.value
        first = list(store.records())
    with open_store(tmp_path / "whole", {}, resume=True) as store:
        assert [run(store, 0.5), run(store, 0.1)] == [easy, hard]
        assert list(store.records()) == first  # nothing was computed anew
    # The trials are those of one count.
    assert hard.value == engine.count(coin, 0.1, root=ROOT, cell=0, trials=20_000) / 20_000


def number(key, p):
    return p * jax.random.uniform(key)


def test_means_stop_when_they_are_narrow(tmp_path):
    with open_store(tmp_path / "store", {}) as store:
        given = {"store": store, "root": ROOT, "cell": 1, "maximum": 5000}
        found = sequential.mean(number, 0.1, key={"p": 1}, enough=sequential.apart_from(0.5), **given)
        assert found.count == 64 and found.low <= 0.05 <= found.high < 0.5
        never = sequential.mean(number, 0.1, key={"p": 1}, enough=lambda estimate: False, **given)
        assert never.count == 5000 and never.low < 0.05 < never.high


@pytest.mark.parametrize("chunk", [1, 8, 16, 20])
def test_hard_cells_stop_at_the_maximum(chunk):
    """The maximum is a chunk, or a doubling of one, or neither."""
    given = {"store": Memory(), "key": {}, "root": ROOT, "cell": 0, "enough": lambda estimate: False}
    assert sequential.rate(coin, 0.5, **given, maximum=16, chunk=chunk).count == 16


def test_an_interval_that_ends_at_a_number_is_not_apart_from_it():
    enough = sequential.apart_from(0.25)
    ends = (0.1, 0.2), (0.1, 0.25), (0.2, 0.3), (0.25, 0.5), (0.3, 0.5)
    found = [enough(estimates.Estimate(sum(each) / 2, *each, 0.95, 100)) for each in ends]
    assert found == [True, False, False, False, True]


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: sequential.narrow(), "width or relative"),
        (lambda: sequential.narrow(width=0.0), "width"),
        (lambda: sequential.apart_from(float("nan")), "number"),
        (lambda: estimates.mean_sequence([0.5, 1.5]), "values"),
        (lambda: estimates.mean_sequence([]), "values"),
        (lambda: estimates.rate_sequence(3, 2), "events"),
        (lambda: estimates.rate_sequence(1, 2, level=1.0), "level"),
    ],
)
def test_bad_input_is_refused(call, words):
    with pytest.raises(ValueError, match=words):
        call()


def test_what_is_no_single_number_is_refused():
    pair = lambda key, p: jax.random.uniform(key, (2,)) < p  # noqa: E731
    given = {"key": {}, "root": ROOT, "cell": 0, "maximum": 64, "chunk": 8}
    for ask, what in ((sequential.rate, "one event"), (sequential.mean, "one number")):
        with pytest.raises(TypeError, match=f"run must return {what}"):
            ask(pair, 0.5, store=Memory(), enough=sequential.narrow(width=0.1), **given)
        with pytest.raises(TypeError, match="enough must be callable"):
            ask(coin, 0.5, store=Memory(), enough=None, **given)


@pytest.mark.parametrize("event", [None, "lost"])
def test_an_event_that_is_not_counted_is_refused(event):
    def run(key, p):
        failed = coin(key, p)
        return {"failed": failed, "refused": ~failed}

    given = {"root": ROOT, "cell": 0, "enough": sequential.narrow(width=0.5), "maximum": 64, "chunk": 64}
    with pytest.raises(ValueError, match="event must be one of 'failed', 'refused', got"):
        sequential.rate(run, 0.1, store=Memory(), key={}, event=event, **given)
    if event is not None:
        with pytest.raises(ValueError, match="event must be None, as run returns a single event, got 'lost'"):
            sequential.rate(coin, 0.1, store=Memory(), key={}, event=event, **given)


@pytest.mark.slow
def test_neighbouring_sizes_share_their_draws():
    """Common random numbers: a search uses one cell for all n, so that the laws at n and n + 1 rise and fall together."""

    def failures(n, cell):
        experiment = pac.Experiment(
            learner=thresholds.exponential(bits=16, epsilon=1.0),
            distribution=concept.log_uniform(bits=16),
            n=n,
            alpha=0.1,
            capacity=127,
        )
        return engine.evaluate(pac.failure, experiment, root=ROOT, cell=cell, draws=64)

    here, beside, other = failures(100, 0), failures(101, 0), failures(101, 1)
    assert np.corrcoef(here, beside)[0, 1] > 0.7
    assert abs(np.corrcoef(here, other)[0, 1]) < stats.norm.isf(ALARM / 2) / 8
    assert np.std(here - beside) < 0.7 * np.std(here - other)
    assert isinstance(estimates.mean(here), Estimate) and jnp.isfinite(here).all()


@pytest.mark.parametrize("events", [1, 2**20, 2**40, 2**49])
def test_the_sequence_is_exact_for_many_trials(events):
    """At each end ln M is ln 1/(1-level): ln M by Laplace's method, for many events, or in decimals, for few."""
    trials, level = 2**50, 0.95
    estimate = estimates.rate_sequence(events, trials, level=level)
    mean, variance = trials * np.array([estimate.low, estimate.high]), events * (1 - events / trials)
    if events >= 2**40:  # normal: ln M = z^2/2 - ln sqrt(trials pi / 2)
        found = (mean - events) ** 2 / variance / 2 - np.log(trials * np.pi / 2) / 2
        np.testing.assert_allclose(found, np.log(1 / (1 - level)), atol=1e-2)
    else:  # Poisson: ln M = ln Gamma(events + 1/2) - ln pi - ln(trials)/2 - events ln(mean) + mean
        found = special.gammaln(events + 0.5) - np.log(np.pi) - np.log(trials) / 2 - events * np.log(mean) + mean
        np.testing.assert_allclose(found, np.log(1 / (1 - level)), atol=1e-2)
