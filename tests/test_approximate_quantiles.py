"""ApproximateQuantiles: privacy on all neighbours, whatever the ties; every level is paid for; the stated error."""

import dataclasses
import functools
import itertools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import dpjax
from dpjax import Points
from dpjax.accounting import ADD_OR_REMOVE_ONE, Guarantee
from dpjax.data.outcome import Status
from dpjax.domains import wide
from dpjax.optimizers import quantiles
from dpjax.optimizers.quantiles import base
from dpjax.verify.plain.quantiles import approximate_law


@functools.cache
def pairs_of_laws(fractions, extra, epsilon):
    """The plain laws before and after a point joins any multiset of up to 3 points of 4, or two clusters of up to 20."""
    small = [list(values) for n in range(4) for values in itertools.combinations_with_replacement(range(4), n)]
    clusters = [[a] * i + [b] * j for a, b in ((0, 3), (0, 1), (1, 2)) for i in (0, 7, 20) for j in (0, 7, 20)]
    law = functools.partial(approximate_law, fractions=fractions, bits=2, extra=extra, epsilon=epsilon)
    return [(law(values), law(sorted([*values, p]))) for values in small + clusters for p in range(4)]


@pytest.mark.parametrize(("fractions", "extra"), [((0.5,), 0), ((0.5,), 2), ((0.1, 0.3), 1), ((0.25, 0.5, 0.75), 0)])
def test_no_neighbouring_points_refute_the_guarantee(fractions, extra):
    laws = pairs_of_laws(fractions, extra, 1.0)
    worst = max(abs(math.log(there[z] / here[z])) for here, there in laws for z in here)
    assert 0.4 < worst <= 1 + 1e-9, worst  # so two fifths of epsilon are refuted


def test_all_quantiles_are_private_together_by_the_verifier(x64):
    made = quantiles.approximate(bits=2, fractions=[0.3, 0.6], epsilon=1.0, extra=1)
    report = dpjax.check(made, n=3, domain=4, epsilon=1.0)
    assert report.exact and report.delta <= 1e-12
    assert not report.refutes(Guarantee(1.0, 0.0, ADD_OR_REMOVE_ONE))
    assert report.delta_at(0.25) > 1e-3  # negative control


@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 0.01), (0.3, 0.1), (3.0, 0.1)])
def test_adaptive_levels_reach_nearly_all_of_delta_on_all_neighbours_and_no_more(epsilon, delta):
    """Of quartiles, at which both levels have the greatest range; concentrated levels reach less than two thirds of it."""
    quartiles = (0.25, 0.5, 0.75)
    made = quantiles.approximate(bits=2, fractions=quartiles, epsilon=epsilon, delta=delta, accountant="adaptive")
    assert made.guarantee() == Guarantee(epsilon, delta, ADD_OR_REMOVE_ONE)
    laws = pairs_of_laws(quartiles, 0, made.levels * float(made.cost(np)))

    def excess(p, q):
        return sum(max(p[z] - math.exp(epsilon) * q[z], 0.0) for z in p)

    assert 0.9 * delta < max(excess(*pair) for law in laws for pair in (law, law[::-1])) <= delta


@pytest.mark.slow
def test_ranks_are_met_on_a_wide_domain_with_ties():
    """At a high epsilon no rank error exceeds the stated error (below 6) by more than a half, even where many points are equal; 20 runs."""
    made = quantiles.approximate(bits=48, fractions=[i / 8 for i in range(1, 8)], epsilon=300.0)
    values = sorted([7] * 200 + [1 << 40] * 100 + [(1 << 47) + 3 * i for i in range(210)])
    points = Points.create(wide.from_ints(values, 48), ordered=True).padded(511)
    runs = jax.jit(jax.vmap(lambda key: made(key, points).hypothesis))(jax.random.split(jax.random.key(0), 20))
    ranks = base.nearest_rank(jnp.asarray(made.fractions), len(values))
    errors = np.array([base.rank_errors(points, answers, ranks) for answers in runs])
    assert errors.max() <= made.error(beta=1e-6) + 0.5 < 6


def test_the_error_is_that_of_the_proof():
    """One median: 1 + (ln 2^(d + 1) n + ln 1/beta) / epsilon, and the rounding of g; several pay less than ln(m / beta) once a level."""
    made = quantiles.approximate(bits=20, fractions=[0.5], epsilon=0.5)
    for n in (1, 1000):
        expected = 1 + n * 2.0**-33 + (21 * math.log(2.0) + math.log(n) + math.log(20.0)) / 0.5
        assert made.error(beta=0.05, n=n) == pytest.approx(expected, rel=1e-12)
    assert made.error(beta=0.05) == made.error(beta=0.05, n=2**31 - 1) > made.error(beta=0.05, n=1000)
    made = quantiles.approximate(bits=20, fractions=[i / 16 for i in range(1, 16)], epsilon=0.5)
    rate = 0.5 / 4
    # g = 1/2 everywhere: weights 1, 1/2, 1/4 + 1/2, ... of the answer's node and those above it, for the answer with the largest sum.
    weights = np.array([1, 1 / 2, 3 / 4, 5 / 8])
    each = 1 + 1000 * 2.0**-33 + (21 * math.log(2.0) + math.log(1000)) / rate
    union = weights.sum() * (each + math.log(15 / 1e-9) / rate)
    assert weights.sum() * each < made.error(beta=1e-9, n=1000) < 0.8 * union
    heavy = np.random.default_rng(0).exponential(1 / rate, (100_000, 4)) @ weights
    assert weights.sum() * each + np.quantile(heavy, 1 - 0.15 / 15) < made.error(beta=0.15, n=1000)


@pytest.mark.parametrize("m", [2, 5, 9, 22])
def test_what_an_answer_depends_on_is_one_node_a_level(m):
    """The weights and means of each answer are those of the recursion in the proof."""
    made = quantiles.approximate(bits=20, fractions=np.sort(np.random.default_rng(m).random(m)).tolist(), epsilon=1.0)
    means = 1 / made.rates(np)
    weights, paid = {0: {}, m + 1: {}}, {0: 0.0, m + 1: 0.0}
    for i, (place, left, right, share) in enumerate(
        zip(*map(np.ndarray.tolist, jax.tree.leaves(made.nodes)), strict=True)
    ):
        g = share * 2.0**-32
        parts = [{k: c * v for k, v in weights[side].items()} for side, c in ((left, 1 - g), (right, g))]
        weights[place] = {k: sum(part.get(k, 0.0) for part in parts) for k in {**parts[0], **parts[1]}} | {i: 1.0}
        paid[place] = means[i] + (1 - g) * paid[left] + g * paid[right]
    sums, each = made._paths(means)
    np.testing.assert_allclose(sums, [sum(weights[place].values()) for place in range(1, m + 1)], rtol=1e-12)
    np.testing.assert_allclose(each.sum(axis=1), [paid[place] for place in range(1, m + 1)], rtol=1e-12)
    assert all(len({(i + 1).bit_length() for i in weights[place]}) == len(weights[place]) for place in range(1, m + 1))


def test_the_sample_size_is_the_least_fixed_point():
    made = quantiles.approximate(bits=32, fractions=[0.25, 0.5, 0.75], epsilon=1.0)
    n = made.sample_size(alpha=0.01, beta=0.1)
    assert made.error(beta=0.1, n=n) + 1 <= 0.01 * n
    assert made.error(beta=0.1, n=n - 1) + 1 > 0.01 * (n - 1)


@pytest.mark.slow
def test_there_is_no_error_on_all_data_where_equal_points_share_a_place():
    """On 500 equal points all answers score alike, whatever epsilon is, as none or all of them are below: this one is 250 ranks off."""
    made = quantiles.approximate(bits=10, fractions=[0.5], epsilon=100.0, extra=0)
    points = Points.create(wide.from_ints([512] * 500, 10))
    answer = made(jax.random.key(0), points).hypothesis
    error = base.rank_errors(points.in_order(1), answer, base.nearest_rank(jnp.asarray(made.fractions), 500))
    assert int(error[0]) == 250
    for method in (lambda: made.error(beta=0.1), lambda: made.sample_size(alpha=0.1, beta=0.1)):
        with pytest.raises(ValueError, match="extra, for an error on all data, must be >= 32, got 0"):
            method()


@pytest.mark.parametrize(
    ("given", "error", "match"),
    [
        ({"bits": 0}, ValueError, "bits must be"),
        ({"extra": 33}, ValueError, "extra must be"),
        ({"fractions": [0.5, 0.5]}, ValueError, "fractions must increase strictly"),
        ({"epsilon": 0.0}, ValueError, "epsilon must be"),
        ({"accountant": "optimal"}, ValueError, "accountant must be"),
    ],
)
def test_bad_arguments_are_refused(given, error, match):
    with pytest.raises(error, match=match):
        quantiles.approximate(**({"bits": 8, "fractions": [0.5], "epsilon": 1.0} | given))


def test_the_sample_size_is_a_whole_number_that_grows_with_confidence():
    made = quantiles.approximate(bits=16, fractions=[0.4, 0.7], epsilon=1.0)
    sizes = [made.sample_size(alpha=0.1, beta=beta) for beta in (0.3, 0.1, 1e-3)]
    assert all(type(size) is int for size in sizes) and 0 < sizes[0] < sizes[1] < sizes[2]
    for alpha, beta in ((0.1, 0.0), (0.1, 1.5), (float("nan"), 0.1), (-1.0, 0.1)):
        with pytest.raises(ValueError, match=r"alpha|beta"):
            made.sample_size(alpha=alpha, beta=beta)


@pytest.mark.slow
@pytest.mark.parametrize("make", [quantiles.approximate, quantiles.joint])
def test_rho_is_kept_on_small_domains(make, x64):
    given = {"extra": 1} if make is quantiles.approximate else {"candidates": 1}
    made = make(bits=2, fractions=[0.3, 0.6], rho=0.5, **given)
    assert 0.49 < made.zcdp() <= 0.5 and made.guarantee().is_pure and made.guarantee().zcdp() > 0.6
    assert 0.005 < dpjax.check(made, n=2, domain=4, epsilon=1.0).zcdp() <= 0.5


def test_levels_cost_the_better_of_both_totals():
    """With seven levels a delta helps; with four it does not. Given rho, each level is rho/L-zCDP."""

    def level(m, **total):
        return float(quantiles.approximate(bits=8, fractions=[i / (m + 1) for i in range(1, m + 1)], **total).cost(np))

    assert level(127, epsilon=1.0, delta=1e-6) > 1.15 / 7 and level(15, epsilon=1.0, delta=1e-6) == pytest.approx(0.25)
    assert level(127, rho=0.02) == pytest.approx((8 * 0.02 / 7) ** 0.5)
    made = quantiles.approximate(bits=8, fractions=[0.2, 0.5], epsilon=1.0, delta=1e-6)
    assert made.guarantee() == Guarantee(1.0, 1e-6, ADD_OR_REMOVE_ONE)


@pytest.mark.parametrize(
    ("m", "epsilon", "delta", "more"), [(127, 1.0, 1e-6, 1.11), (15, 1.0, 1e-6, 1.09), (127, 8.0, 0.1, 1.1)]
)
def test_adaptive_levels_cost_more_and_as_much_where_there_is_no_delta(m, epsilon, delta, more):
    given = {"bits": 8, "fractions": [i / (m + 1) for i in range(1, m + 1)], "epsilon": epsilon}
    levels = [
        quantiles.approximate(**given, delta=each, accountant=accountant).cost(np)
        for accountant in ("concentrated", "adaptive")
        for each in (0.0, delta)
    ]
    assert levels[2] == pytest.approx(levels[0], rel=1e-12) and levels[3] > more * levels[1] > 0


def test_a_total_that_is_replaced_is_spent_or_not_stated(x64):
    """Parameters are optimised so: derivatives by the floats, then `dataclasses.replace`."""
    given = {"bits": 2, "fractions": [0.25, 0.5, 0.75], "extra": 0}
    points = Points.create(wide.from_ints([0, 1, 3], 2))
    made = quantiles.approximate(**given, epsilon=2.0)
    smaller = dataclasses.replace(made, epsilon=0.1)
    assert smaller.guarantee() == Guarantee(0.1, 0.0, ADD_OR_REMOVE_ONE)
    report = dpjax.check(smaller, n=2, domain=4)
    assert report.holds and 0.04 < report.epsilon_at(0.0) <= 0.1 + 1e-9
    adaptive = quantiles.approximate(**given, epsilon=2.0, delta=1e-3, accountant="adaptive")
    assert adaptive.guarantee() == Guarantee(2.0, 1e-3, ADD_OR_REMOVE_ONE)
    for changed in ({"epsilon": 0.1}, {"delta": 1e-6}, {"level": 1.5 * adaptive.level}):
        assert dataclasses.replace(adaptive, **changed).guarantee().epsilon > 1.99
    for level in (0.0, -1.0, math.inf, math.nan):
        outcome = dataclasses.replace(adaptive, level=np.float64(level))(jax.random.key(0), points)
        assert outcome.status == Status.BAD_PARAMETER


@pytest.mark.thorough
def test_a_total_that_is_replaced_has_the_derivative_of_one_that_is_made(x64):
    given = {"bits": 2, "fractions": [0.25, 0.5, 0.75], "extra": 0}
    points, made = Points.create(wide.from_ints([0, 1, 3], 2)), quantiles.approximate(**given, epsilon=2.0)
    slopes = [
        float(jax.grad(lambda e, of=of: of(e).pmf(points)[0])(1.0))
        for of in (lambda e: dataclasses.replace(made, epsilon=e), lambda e: quantiles.approximate(**given, epsilon=e))
    ]
    assert slopes[0] == pytest.approx(slopes[1], rel=1e-12) and abs(slopes[0]) > 1e-3


@pytest.mark.parametrize("name", ["epsilon", "delta"])
def test_adaptive_levels_need_known_totals(name):
    def level(traced):
        given = {"epsilon": 1.0, "delta": 1e-6} | {name: traced}
        return quantiles.approximate(bits=8, fractions=[0.5], accountant="adaptive", **given).level

    with pytest.raises(TypeError, match=f"^{name} must be a known number"):
        jax.jit(level)(1e-3)


@pytest.mark.thorough
def test_ties_of_many_points_cost_no_more_than_is_said():
    """Even the best error is nearly n/2: multiplied by the rate it was once rounded before the subtraction (a loss of 0.716 for 0.7)."""
    made, n = quantiles.approximate(bits=1, fractions=[0.5], epsilon=0.7, extra=0), 2**19 - 40
    rows = np.arange(2**19 - 1)[:, None]

    @jax.jit
    def law(zeros, n):
        x = (rows >= zeros).astype(np.uint32)
        return made.pmf(Points(x=x, n_valid=n, ordered=True))[:2]

    for zeros in range(n - 30, n - 20):
        log_p, log_q = (np.log(law(jnp.int32(zeros), jnp.int32(size))) for size in (n, n + 1))
        assert np.abs(log_p - log_q).max() <= 0.7 + 1e-4


@pytest.mark.thorough
def test_bits_for_which_fine_points_have_no_room_are_a_bad_parameter():
    """65 bits in two limbs: all three quartiles were 0, far from all points."""
    made = quantiles.approximate(bits=10, fractions=[0.25, 0.5, 0.75], epsilon=4.0, delta=1e-6)
    points = Points.create(wide.from_ints(range(2**32 - 60, 2**32), 32))
    assert (
        made.sound()
        and int(dataclasses.replace(made, bits=np.int32(32))(jax.random.key(0), points).status) == Status.BAD_PARAMETER
    )
