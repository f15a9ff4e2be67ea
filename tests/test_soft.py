"""Soft mechanisms and gradient estimators: derivatives, the law as t -> 0, what is promised at which temperature, unbiasedness."""

import functools
import itertools
import math

import builders
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dpjax import Outcome, Status
from dpjax.accounting import Guarantee
from dpjax.mechanisms import candidates, exponential, laplace, stability
from dpjax.relaxations import estimators, soft
from dpjax.relaxations.soft import intervals
from dpjax.verify.plain import gaps as twin

SCORES = np.array([3.0, 5.0, 4.5, 1.0, 4.0])
VALUES = np.array([0.7, 0.15, 0.4, 0.42, 0.9])
LABELS = np.array([0.0, 1.0, 1.0, 0.0, 0.0])
DRAWS = 4000
Z = 4.27  # two-sided normal quantile of 2e-5

CHOOSERS = {
    "concrete": functools.partial(soft.concrete, epsilon=2.0),
    "perturbed": functools.partial(soft.perturbed, epsilon=2.0),
    "stability": functools.partial(soft.stability, epsilon=2.0, delta=0.2),
}
POINTS = {
    "quantile": functools.partial(soft.quantile, epsilon=2.0, fraction=0.4, low=0.0, high=1.0),
    "threshold": functools.partial(soft.threshold, epsilon=2.0, low=0.0, high=1.0),
}
EVERY = CHOOSERS | POINTS
DATA = {**dict.fromkeys(CHOOSERS, (SCORES,)), "quantile": (VALUES,), "threshold": (VALUES, LABELS)}


def keys(draws=DRAWS, seed=0):
    return jax.random.split(jax.random.key(seed), draws)


@functools.cache
def sampler(name):
    """Many draws at a temperature, compiled once for all temperatures, data, and rows that count."""

    @jax.jit
    def run(temperature, where, first, *rest):
        mechanism = EVERY[name](temperature=temperature)
        if name in CHOOSERS:
            return jax.vmap(lambda key: mechanism(key, candidates(first, where=where)))(keys())
        return jax.vmap(lambda key: mechanism(key, first, *rest, where=where))(keys())

    return run


def draws(name, temperature, where=(True,) * 5):
    data = (np.float32(each) for each in DATA[name])
    return np.asarray(sampler(name)(np.float32(temperature), np.array(where), *data))


# --------------------------------------------------------------------------------------------------------- derivatives


@pytest.mark.parametrize("name", [name if name == "quantile" else builders.thorough(name) for name in EVERY])
def test_gradients_are_those_of_finite_differences(name, x64):
    """With a fixed key, forward and reverse, in the data, in epsilon and in the temperature; 1e-6 relative to the largest."""
    data, *rest = DATA[name]
    direction = np.random.default_rng(0).normal(size=data.size + 2)
    weight = jnp.asarray(np.random.default_rng(1).normal(size=data.size + 1))

    def loss(given):
        extra = {"delta": 0.2} if name == "stability" else {}
        extra |= {"fraction": 0.4} if name == "quantile" else {}
        extra |= {"low": 0.0, "high": 1.0} if name in POINTS else {}
        mechanism = getattr(soft, name)(epsilon=given[-2], temperature=given[-1], **extra)
        output = jnp.atleast_1d(mechanism(jax.random.key(3), given[:-2], *rest))
        return jnp.sum(jnp.sin(3 * output) * weight[: output.size])

    at = np.array([*data, 1.3, 0.6])
    step = 1e-5
    shifts = np.concatenate([np.eye(at.size), direction[None]]) * step

    @jax.jit
    def derivatives(at):
        both = jax.lax.map(loss, at[None] + jnp.asarray(np.concatenate([shifts, -shifts]))).reshape(2, -1)
        forward = jax.jvp(loss, (at,), (jnp.asarray(direction),))[1]
        return jax.grad(loss)(at), forward, (both[0] - both[1]) / (2 * step)

    grad, forward, both = map(np.asarray, derivatives(at))
    scale = np.abs(grad).max()
    assert scale > 1e-3
    np.testing.assert_allclose(grad, both[:-1], atol=1e-6 * scale)
    np.testing.assert_allclose(forward, both[-1], atol=1e-6 * np.abs(direction).sum() * scale)
    np.testing.assert_allclose(forward, grad @ direction, rtol=1e-9)


def test_the_expected_loss_by_the_law_is_smooth_where_features_change_places(x64):
    """E[(z - 0.6)^2] over the gaps of the threshold: its gradient, and no jump where two features of different labels cross."""
    learn = soft.threshold(epsilon=2.0, temperature=0.0, low=0.0, high=1.0)

    @jax.jit
    @jax.value_and_grad
    def expected(x):
        ends, law = learn.law(x, LABELS)
        low, high = ends[:-1] - 0.6, ends[1:] - 0.6
        return jnp.sum(law * (low**2 + low * high + high**2) / 3)

    step = 1e-5
    both = [[float(expected(VALUES + sign * step * row)[0]) for sign in (1, -1)] for row in np.eye(VALUES.size)]
    grad = np.asarray(expected(VALUES)[1])
    np.testing.assert_allclose(grad, [(up - down) / (2 * step) for up, down in both], atol=1e-6 * np.abs(grad).max())
    crossing = [float(expected(np.array([0.4 + shift, *VALUES[1:]]))[0]) for shift in (-1e-9, 1e-9)]
    assert abs(crossing[0] - crossing[1]) < 1e-7 and LABELS[0] != LABELS[2]


# ------------------------------------------------------------------------------------------------- the law as t -> 0


@pytest.mark.parametrize("name", [builders.slow(name) if name == "perturbed" else name for name in CHOOSERS])
def test_the_law_tends_to_the_exact_one(name):
    """At t = 0 frequencies are those of the exact law; above it the distance from the exact draw falls with t, within the stated bound."""
    exact = EVERY[name](temperature=0.0)
    pmf = np.asarray(exact.mechanism.pmf(SCORES))
    hard = draws(name, 0.0)
    assert set(np.unique(hard)) <= {0.0, 1.0} and np.all(hard.sum(axis=1) == 1.0)
    law = pmf[: hard.shape[1]]
    share = hard.mean(axis=0)
    noise = Z * np.sqrt(law * (1 - law) / DRAWS) + Z**2 / DRAWS
    assert np.all(np.abs(share - law) <= noise)
    assert np.any(np.abs(share - np.roll(law, 1)) > noise)  # another law would be seen
    means = []
    for t in (2.0, 0.5, 0.1, 0.02):
        given = draws(name, t)
        distance = np.abs(given - hard).sum(axis=1) / 2
        np.testing.assert_allclose(given.sum(axis=1), 1.0, rtol=1e-5)
        if (
            name != "stability"
        ):  # the argmax has the exact law at every temperature: it is the exact draw of the same noise
            assert np.all(given.argmax(axis=1) == hard.argmax(axis=1))
        assert distance.mean() <= EVERY[name](temperature=t).deviation(SCORES) + Z / math.sqrt(4 * DRAWS)
        means.append(distance.mean())
    assert all(2 * cold < warm for warm, cold in itertools.pairwise(means))
    # Negative control: what is kept at t = 0.02 is not kept at t = 2.
    assert means[0] > EVERY[name](temperature=0.02).deviation(SCORES) + Z / math.sqrt(4 * DRAWS)


def kolmogorov(sample, ends, masses):
    """The largest distance of the sample's distribution function from that of the law."""
    x = np.sort(np.asarray(sample, float))
    place = np.searchsorted(ends, x, side="right").clip(1, len(ends) - 1)
    width = np.maximum(np.diff(ends), 1e-30)[place - 1]
    cdf = np.cumsum([0.0, *masses])[place - 1] + masses[place - 1] * (x - ends[place - 1]) / width
    return max(np.max(np.arange(1, len(x) + 1) / len(x) - cdf), np.max(cdf - np.arange(len(x)) / len(x)))


@pytest.mark.thorough
@pytest.mark.parametrize("name", [name if name == "threshold" else builders.thorough(name) for name in POINTS])
def test_the_law_of_points_tends_to_the_exact_one(name):
    ends, masses = map(np.asarray, POINTS[name](temperature=0.0).law(*DATA[name]))
    within = math.sqrt(math.log(2 / 2e-5) / (2 * DRAWS))  # Dvoretzky, Kiefer, Wolfowitz, Massart
    distances = {t: kolmogorov(draws(name, t), ends, masses) for t in (0.0, 0.01, 0.3, 2.0)}
    assert distances[0.0] <= within and distances[0.01] <= 2 * within
    assert max(2 * within, distances[0.3]) < distances[2.0]  # negative control: a warm law is recognised
    hard = draws(name, 0.0)
    moved = [np.abs(draws(name, t) - hard).mean() for t in (0.3, 0.1, 0.01)]
    assert moved[0] > 2 * moved[1] > 4 * moved[2]
    assert moved[2] <= POINTS[name](temperature=0.01).deviation(5) + Z / math.sqrt(4 * DRAWS)


@pytest.mark.parametrize("name", POINTS)
def test_the_law_of_gaps_is_that_of_the_plain_twin(name):
    """Ties, values outside the range, a mask."""
    values, labels = np.array([0.5, 0.2, 1.7, 0.5, -0.3, 0.9]), np.array([0, 1, 0, 1, 1, 1])
    where = np.array([True, True, True, True, True, False])
    kept = list(zip(values[where], labels[where], strict=True))
    if name == "quantile":
        quality = twin.rank_quality(values[where], 0.4)
        law = POINTS[name](temperature=0.5).law(values, where=where)
    else:
        quality = twin.label_quality(kept)
        law = POINTS[name](temperature=0.5).law(values, labels, where=where)
    ends, masses = map(np.asarray, law)
    long = np.diff(ends) > 0
    found = list(zip(ends[:-1][long], ends[1:][long], masses[long], strict=True))
    np.testing.assert_allclose(found, twin.gap_law(values[where], quality, 0.0, 1.0, 1.0), rtol=1e-5)


@pytest.mark.parametrize("name", [name if name == "stability" else builders.thorough(name) for name in EVERY])
def test_derivatives_in_a_temperature_near_zero_are_numbers(name):
    """1/t^2 is infinite in float32 from 1e-19 on, and was multiplied by the lag 0 of the best."""
    derivative = jax.jit(
        jax.grad(lambda t: jnp.ravel(EVERY[name](temperature=t)(jax.random.key(0), *map(jnp.float32, DATA[name])))[0])
    )
    assert all(derivative(np.float32(t)) == 0 for t in (1e-18, 1e-20, 1e-30))


# -------------------------------------------------------------------------------------------------- what is promised


@pytest.mark.parametrize("name", EVERY)
def test_nothing_is_promised_above_temperature_zero(name):
    warm, cold = EVERY[name](temperature=1e-9), EVERY[name](temperature=0.0)
    relation = cold.guarantee().relation
    assert warm.guarantee() == Guarantee.none(relation)
    assert cold.guarantee() == Guarantee(2.0, 0.2 if name == "stability" else 0.0, relation)
    assert warm.exact().guarantee() == cold.guarantee()
    with pytest.raises(TypeError, match="temperature"):
        jax.jit(lambda t: EVERY[name](temperature=t).guarantee().epsilon)(0.0)


def worst_ratio(mechanism, datasets, near):
    """max over neighbours and points of |ln density - ln density'|, by the law of the gaps on a common refinement."""
    ends, masses = jax.jit(jax.vmap(lambda data: mechanism.law(*data)))(datasets)
    ends, masses = np.asarray(ends, float), np.asarray(masses, float)
    middles = np.arange(0.05, 1.0, 0.1)  # the values are multiples of 0.1: densities are constant around these
    place = np.array([np.searchsorted(row, middles) - 1 for row in ends])
    mass, length = (np.take_along_axis(each, place, axis=1) for each in (masses, np.diff(ends)))
    density = np.log(mass / length)
    return max(np.max(np.abs(density[i] - density[j])) for i, j in near)


@pytest.mark.parametrize("relation", ["REPLACE_ONE", "ADD_OR_REMOVE_ONE"])
def test_the_exact_quantile_is_private_over_all_neighbours(relation):
    """All datasets of up to 4 values on a grid; the claim holds, and 0.9 of it is refuted."""
    grid, n = [0.0, 0.2, 0.8, 0.9], 4
    replaced = relation == "REPLACE_ONE"
    sizes = [n] if replaced else range(n + 1)
    sets = [part for size in sizes for part in itertools.combinations_with_replacement(grid, size)]
    rows = np.array([[*part, *[0.0] * (n - len(part))] for part in sets], np.float32)
    where = np.array([[True] * len(part) + [False] * (n - len(part)) for part in sets])

    class Masked:
        def law(self, values, where):
            return mechanism.law(values, where=where)

    mechanism = soft.quantile(epsilon=1.5, fraction=0.3, temperature=0.0, low=0.0, high=1.0, relation=relation)
    worst = worst_ratio(Masked(), (jnp.asarray(rows), jnp.asarray(where)), neighbours(sets, replaced))
    claim = mechanism.guarantee()
    assert claim == Guarantee(1.5, 0.0, relation)
    assert 0.9 * claim.epsilon < worst <= claim.epsilon + 1e-5


def neighbours(sets, replaced):
    """Pairs of multisets one replacement, or one removal, apart."""
    for i, j in itertools.combinations(range(len(sets)), 2):
        short, long = sorted((list(sets[i]), list(sets[j])), key=len)
        rest = list(long)
        for value in short:
            if value in rest:
                rest.remove(value)
        if len(rest) == 1 and len(long) - len(short) == (0 if replaced else 1):
            yield i, j


def test_the_exact_threshold_is_private_over_all_neighbours():
    grid = list(itertools.product([0.0, 0.2, 0.6, 0.9], [0, 1]))
    sets = list(itertools.combinations_with_replacement(grid, 2))
    rows = np.array(sets, np.float32)
    mechanism = soft.threshold(epsilon=1.5, temperature=0.0, low=0.0, high=1.0)
    worst = worst_ratio(mechanism, (jnp.asarray(rows[..., 0]), jnp.asarray(rows[..., 1])), neighbours(sets, True))
    assert 0.9 * 1.5 < worst <= 1.5 + 1e-5


# ------------------------------------------------------------------------------------------------------------- edges


@pytest.mark.parametrize("name", EVERY)
def test_no_edge_makes_nan(name):
    """Ties, tiny and large epsilon, cold and warm: outputs and derivatives are finite. One program for all."""
    data = DATA[name]
    tied = (np.full(5, 0.25), *data[1:])
    extremes = (np.array([0.0, 0.0, 1.0, 1.0, 1.0]), *data[1:])

    @jax.jit
    def value_and_grad(epsilon, temperature, first, *rest):
        mechanism = EVERY[name](epsilon=epsilon, temperature=temperature)
        return jax.value_and_grad(lambda x: jnp.sum(jnp.sin(mechanism(jax.random.key(1), x, *rest))))(first)

    for epsilon, t, given in itertools.product((1e-6, 50.0), (0.0, 1e-3, 0.5), (data, tied, extremes)):
        value, grad = value_and_grad(np.float32(epsilon), np.float32(t), *(np.float32(each) for each in given))
        assert np.isfinite(value) and np.all(np.isfinite(grad)), (epsilon, t, given)


def test_the_leader_of_large_whole_scores_is_the_best():
    """In float32 both scores round to 2^29 + 64, and the first of the two would be released."""
    scores, mechanism = jnp.array([2**29 + 40, 2**29 + 90]), soft.stability(epsilon=1.0, delta=1e-6, temperature=0.0)
    assert mechanism.mechanism.pmf(scores)[1] > 0.999
    assert mechanism(jax.random.key(0), scores).tolist() == [0.0, 1.0, 0.0]


@pytest.mark.thorough
def test_empty_data():
    """No value: a uniform point. No candidate: no weight, and ⊥ for sure."""
    none = np.zeros(0)
    median = soft.quantile(epsilon=1.0, fraction=0.5, temperature=0.3, low=2.0, high=4.0)
    assert [np.asarray(part).tolist() for part in median.law(none)] == [[2.0, 4.0], [1.0]]
    assert 2.0 <= float(median(jax.random.key(0), none)) <= 4.0
    nobody = candidates([1.0, 2.0], where=[False, False])
    assert CHOOSERS["perturbed"](temperature=0.3)(jax.random.key(0), nobody).tolist() == [0.0, 0.0]
    for name in ("concrete", "stability"):  # by the programs of the tests above
        drawn = draws(name, 0.3, where=(False,) * 5)
        assert (drawn == np.arange(drawn.shape[1]) // 5).all()


@pytest.mark.thorough
def test_what_traced_data_hide_comes_back_as_nan():
    broken, fine = np.float32([1.0, np.nan, 2.0]), np.float32([1.0, 5.0, 2.0])
    concrete = jax.jit(lambda scores: EVERY["concrete"](temperature=0.5)(jax.random.key(0), scores))
    assert np.isnan(concrete(broken)).all()

    @jax.jit
    def between(low, high, values):
        return POINTS["quantile"](temperature=0.5, low=low, high=high)(jax.random.key(0), values)

    assert np.isnan(between(1.0, 2.0, broken)) and 1.0 <= between(1.0, 2.0, fine) <= 2.0
    assert np.isnan(between(2.0, 1.0, fine)) and np.isnan(between(1.0, 1.0, fine))


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: soft.concrete(epsilon=1.0, temperature=-1.0), ValueError, "temperature"),
        (lambda: soft.perturbed(epsilon=1.0, temperature=math.inf), ValueError, "temperature"),
        (lambda: soft.stability(epsilon=1.0, delta=0.7, temperature=1.0), ValueError, "delta"),
        (lambda: soft.concrete(epsilon=0.0, temperature=1.0), ValueError, "epsilon"),
        (lambda: POINTS["quantile"](fraction=1.5, temperature=1.0), ValueError, "fraction"),
        (lambda: POINTS["threshold"](low=1.0, temperature=1.0), ValueError, "high must be > low"),
        (lambda: POINTS["quantile"](low=1.0, high=1 + 1e-9, temperature=1.0), ValueError, "high must be > low"),
        (lambda: POINTS["quantile"](low=-3e38, high=3e38, temperature=1.0), ValueError, "high must be > low"),
        (lambda: POINTS["threshold"](temperature=1.0, relation="REPLACE_LABEL"), ValueError, "relation"),
        (lambda: POINTS["quantile"](temperature=1.0)(0, VALUES), TypeError, "key"),
        (lambda: POINTS["quantile"](temperature=1.0)(jax.random.key(0), [[1.0]]), ValueError, "values"),
        (lambda: POINTS["quantile"](temperature=1.0)(jax.random.key(0), [math.nan]), ValueError, "values"),
        (lambda: POINTS["quantile"](temperature=1.0)(jax.random.key(0), [1.0], where=[1]), TypeError, "where"),
        (lambda: POINTS["threshold"](temperature=1.0)(jax.random.key(0), [0.1, 0.2], [1]), ValueError, "y must"),
        (lambda: POINTS["threshold"](temperature=1.0)(jax.random.key(0), [0.1], [2]), ValueError, "y must"),
        (lambda: CHOOSERS["concrete"](temperature=1.0)(jax.random.key(0), "high"), TypeError, "scores"),
        (
            lambda: estimators.straight_through(exponential.mechanism(epsilon=1.0), jax.random.key(0), SCORES),
            TypeError,
            "mechanism",
        ),
        (lambda: estimators.expectation(exponential.mechanism(epsilon=1.0), SCORES, SCORES), ValueError, "losses"),
        (lambda: estimators.score_function(jax.random.key(0), max, SCORES, max, draws=1), TypeError, "algorithm"),
        (lambda: score_of(SCORES, draws=0), ValueError, "draws"),
        (lambda: score_of(SCORES, draws=1, baseline="leave_one_out"), ValueError, "draws"),
        (lambda: score_of(SCORES, draws=2, baseline="best"), ValueError, "baseline"),
    ],
)
def test_bad_input_is_refused_by_name(call, error, words):
    with pytest.raises(error, match=words):
        call()


def test_what_hardly_ever_ends_in_bottom_keeps_the_digits_of_its_logarithm():
    """There 1 - P[released] is 0 in floats."""
    keep, scores = stability.mechanism(epsilon=1.0, delta=1e-3), jnp.array([60.0, 0.0])
    bottom = Outcome(hypothesis=jnp.int32(0), status=jnp.int32(Status.BOTTOM), info={})
    with jax.enable_x64(True):
        exact = math.log(np.asarray(keep.pmf(np.array([60.0, 0.0])))[-1])
    found = jax.jit(lambda scores: estimators.log_prob(keep, scores, bottom))(scores)
    assert exact < -20 and float(found) == pytest.approx(exact, rel=1e-5)


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["stability", builders.thorough("threshold")])
def test_scan_vmap_and_jit_agree_with_a_loop(name):
    """Over keys and temperatures; the loop calls a mechanism one run at a time."""
    some, cold = keys(4), jnp.asarray([0.0, 0.3, 1.0, 2.0], jnp.float32)
    data = [jnp.asarray(each, jnp.float32) for each in DATA[name]]

    def one(key, t):
        return EVERY[name](temperature=t)(key, *data)

    together = jax.jit(jax.vmap(one))(some, cold)
    scanned = jax.lax.scan(lambda carry, given: (carry, one(*given)), 0, (keys(4), cold))[1]
    alone = [EVERY[name](temperature=float(t))(key, *data) for key, t in zip(keys(4), cold, strict=True)]
    np.testing.assert_allclose(together, scanned, atol=1e-6)
    np.testing.assert_allclose(together, np.stack(alone), atol=1e-6)


# ---------------------------------------------------------------------------------------------------------- estimators

TARGETS = np.array([0.0, 0.2, 0.9, 0.4, 0.6], np.float32)  # what each candidate is worth
BATCH, BATCHES = 8, 2000


def loss(value):
    return (value - 0.3) ** 2


def score_of(scores, *, draws=BATCH, baseline="none", key=None):
    mechanism = exponential.mechanism(epsilon=2.0)
    return estimators.score_function(
        jax.random.key(0) if key is None else key,
        mechanism,
        scores,
        lambda outcome: loss(jnp.asarray(TARGETS)[outcome.hypothesis]),
        draws=draws,
        baseline=baseline,
    )


def exact_gradient(scores):
    losses = np.append(loss(TARGETS), 0.0)
    return jax.grad(lambda scores: estimators.expectation(exponential.mechanism(epsilon=2.0), scores, losses))(scores)


def gradients(estimate, at=SCORES):
    """Many estimates of the gradient at these numbers, a row each."""
    return np.asarray(
        jax.jit(jax.vmap(jax.grad(estimate), in_axes=(None, 0)))(jnp.asarray(at, jnp.float32), keys(BATCHES))
    )


def is_biased(estimates, exact):
    """Whether some coordinate's mean is off by more than Z standard errors (false alarms: 5 * 2e-5)."""
    error = estimates.std(axis=0) / math.sqrt(len(estimates))
    return bool(np.any(np.abs(estimates.mean(axis=0) - exact) > Z * error))


@pytest.mark.thorough
def test_score_functions_are_unbiased_and_straight_through_is_not():
    scores = jnp.asarray(SCORES, jnp.float32)
    exact = np.asarray(exact_gradient(scores))
    mean = estimators.expectation(exponential.mechanism(epsilon=2.0), scores, np.append(loss(TARGETS), 0.0))
    found = {
        name: gradients(lambda scores, key, given=given: score_of(scores, key=key, baseline=given))
        for name, given in {"none": "none", "leave_one_out": "leave_one_out", "exact": mean}.items()
    }
    for estimates in found.values():
        assert not is_biased(estimates, exact)
    # The baseline does what it is for: it lowers the variance.
    spread = {name: estimates.var(axis=0).sum() for name, estimates in found.items()}
    assert spread["exact"] < spread["none"]

    def through(scores, key):
        choose = soft.concrete(epsilon=2.0, temperature=0.5)
        each = jax.vmap(lambda key: estimators.straight_through(choose, key, scores))(jax.random.split(key, BATCH))
        return jnp.mean(loss(each @ TARGETS))

    assert is_biased(gradients(through), exact)  # negative control


@pytest.mark.thorough
def test_the_score_function_knows_bottom_and_densities():
    """A_dist's ⊥ has a probability of its own; Laplace noise a density: gradients of E[loss] by law, and by closed form."""
    scores = np.array([4.0, 2.0], np.float32)
    keep = stability.mechanism(epsilon=1.0, delta=0.2)
    losses = np.array([1.0, 0.0, 3.0])

    def of_bottom(scores, key):
        def worth(outcome):
            return jnp.where(outcome.status == 0, 1.0, 3.0)

        return estimators.score_function(key, keep, scores, worth, draws=BATCH)

    exact = np.asarray(jax.jit(jax.grad(lambda scores: estimators.expectation(keep, scores, losses)))(scores))
    found = gradients(of_bottom, scores)
    assert not is_biased(found, exact) and is_biased(found, 1.3 * exact)

    def of_noise(value, key):
        noise = laplace.mechanism(epsilon=1.0)
        return estimators.score_function(key, noise, value, lambda out: jnp.sum(out.hypothesis**2), draws=BATCH)

    found = gradients(of_noise, [1.5])  # E[(v + noise)^2] = v^2 + 2
    assert not is_biased(found, 3.0) and is_biased(found, 1.3 * 3.0)


@pytest.mark.thorough
def test_straight_through_is_the_private_draw_and_the_soft_derivative():
    scores, key = jnp.asarray(SCORES, jnp.float32), jax.random.key(5)
    choose = soft.concrete(epsilon=2.0, temperature=0.7)
    value, pullback = jax.vjp(lambda scores: estimators.straight_through(choose, key, scores), scores)
    assert value.tolist() == choose.exact()(key, scores).tolist()
    row = jnp.asarray(TARGETS)
    np.testing.assert_allclose(
        pullback(row)[0], jax.vjp(lambda scores: choose(key, scores), scores)[1](row)[0], rtol=1e-5
    )


def test_traced_labels_beyond_0_and_1_make_no_threshold():
    """An example with label -1 would count as -1 or 2, and epsilon would exceed the promise. Rows that do not count are ignored."""
    stump = soft.threshold(epsilon=1.0, temperature=0.0, low=0.0, high=1.0)
    law = jax.jit(lambda y, where: stump.law(jnp.array([0.5, 0.25]), y, where=where)[1])
    both, one = np.array([True, True]), np.array([True, False])
    given = lambda y, where: np.asarray(law(np.float32(y), where))  # noqa: E731
    assert all(np.isnan(given([label, 1.0], both)).all() for label in (-1.0, 2.0))
    assert (given([0.0, 1.0], both) > 0).all() and not np.isnan(given([1.0, -1.0], one)).any()


def test_no_more_rows_than_floats_count():
    def shape(rows):
        given = jax.ShapeDtypeStruct((rows,), jnp.float32)
        return jax.eval_shape(lambda values: intervals.reals("values", values, None)[0], given).shape

    assert shape(2**24) == (2**24,)
    with pytest.raises(ValueError, match="values must have at most 16777216 rows, which floats count, got 16777217"):
        shape(2**24 + 1)


@pytest.mark.parametrize(
    "drawn",
    [
        lambda bad: soft.concrete(epsilon=bad, temperature=0.1)(jax.random.key(0), jnp.array([0.0, 10.0])),
        lambda bad: soft.concrete(epsilon=1.0, temperature=bad)(jax.random.key(0), jnp.array([0.0, 10.0])),
        lambda bad: soft.quantile(epsilon=bad, fraction=0.5, temperature=0.0, low=0.0, high=1.0)(
            jax.random.key(0), jnp.array([0.2, 0.3])
        ),
        lambda bad: soft.quantile(epsilon=1.0, fraction=bad, temperature=0.0, low=0.0, high=1.0)(
            jax.random.key(0), jnp.array([0.2, 0.3])
        ),
    ],
)
def test_a_traced_parameter_out_of_range_draws_no_number(drawn):
    """A parameter that could not be checked beforehand shows in what is drawn."""
    bad = jax.jit(drawn)
    assert np.isnan(bad(-1.0)).all() and np.isnan(bad(np.nan)).all()
    assert np.isfinite(bad(0.5)).all()


@pytest.mark.parametrize("kind", ["quantile", "threshold"])
def test_laws_of_tied_values_have_the_derivatives_of_one_order(kind, x64):
    """As if the values lay a little apart: gaps without length once had none."""
    given = {"fraction": 0.5} if kind == "quantile" else {}
    made = getattr(soft, kind)(epsilon=1.0, temperature=0.0, low=0.0, high=10.0, **given)
    rest = () if kind == "quantile" else (jnp.array([1.0, 1.0, 1.0, 0.0]),)

    def mean(values):
        ends, chances = made.law(values, *rest)
        return jnp.sum(chances * (ends[1:] + ends[:-1]) / 2)

    slope, values = jax.jit(jax.grad(mean)), np.array([3.0, 3.0, 3.0, 7.0])
    apart = np.asarray(slope(values + np.array([0.0, 1e-9, 2e-9, 0.0])))
    np.testing.assert_allclose(slope(values), apart, atol=1e-6)
    assert np.ptp(apart[:3]) > 0.05


def test_a_loss_that_is_not_one_number_is_refused():
    """A loss of shape (1,) was multiplied by the derivatives of all other draws, and the estimate was about 0."""
    mechanism = exponential.mechanism(epsilon=2.0)
    for shape in ((1,), (3,)):
        with pytest.raises(TypeError, match=r"loss must return one number, got shape"):
            estimators.score_function(
                jax.random.key(0), mechanism, np.ones(2, np.float32), lambda outcome, s=shape: jnp.ones(s), draws=3
            )
