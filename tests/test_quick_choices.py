"""The shortcuts of `dpjax.choose` find what the long way finds."""

import math

import numpy as np
import pytest
from scipy import special

import dpjax
from dpjax.accounting import composition
from dpjax.choice import base, interior_points, thresholds
from dpjax.core import bisection
from dpjax.mechanisms import partition_selection
from dpjax.optimizers.interior_point import planning


@pytest.mark.parametrize(("epsilon", "delta"), [(0.27, 2.4e-6), (0.0445, 5e-5), (0.9, 1e-9), (5.4, 3.6e-3), (3.0, 0.4)])
def test_the_cheapest_walk_is_that_of_all_shares(epsilon, delta):
    walks = [planning.walk_of(epsilon, delta, share) for share in np.linspace(0.2, 1.0, 17)]
    assert planning.cheapest_walk(epsilon, delta) == min(walks, key=lambda walk: walk.t2)  # the first of several


@pytest.mark.parametrize(("epsilon", "delta"), [(0.01, 1e-6), (0.3, 1e-8), (2.0, 1e-3)])
def test_a_few_weights_say_no_more_than_all(epsilon, delta):
    at = partition_selection.anchors(epsilon, delta)
    g = int(at.saturation)
    for t1 in np.unique(np.linspace((g - 1) // 2 + 1, g + 1, 9).astype(int)).tolist():
        least, price = planning._least_price(epsilon, delta, t1, at), planning.walk_price(epsilon, delta, t1)
        assert 0.9 * price <= least <= price


@pytest.mark.parametrize(
    ("e", "count", "epsilon"), [(2e-4, 10**6, 1.0), (0.01, 10**5, 16.0), (3.0, 2000, 5800.0), (1.0, 1, 0.5)]
)
def test_totals_that_no_float_sees_or_that_are_below_epsilon_may_be_left_out(e, count, epsilon):
    i = np.arange(count + 1.0)
    law = special.gammaln(count + 1) - special.gammaln(i + 1) - special.gammaln(count - i + 1)
    law += i * -np.logaddexp(0, -e) - (count - i) * np.logaddexp(0, e)
    whole = float(np.sum(np.exp(law) * -np.expm1(np.minimum(0.0, epsilon - e * (2 * i - count)))))
    assert whole <= composition.composed_delta([(e, count)], 0.0, epsilon) <= whole * (1 + 1e-7) + 1e-300


@pytest.mark.parametrize("bits", [1, 2, 3, 64, 2048])
def test_the_exponential_mechanisms_n_lies_where_it_is_looked_for(bits):
    for epsilon in (2.0**-20, 0.03, 1.0, 32.0):
        for beta in (2.0**-100, 0.01, 0.5, 0.9, 1 - 2.0**-40):
            log_odds = math.log(beta) - math.log1p(-beta)

            def enough(n, epsilon=epsilon, log_odds=log_odds):
                return interior_points.exponential_odds(bits, epsilon, n) <= log_odds

            n = bisection.least_int(enough, 1)
            assert interior_points.points_for("exponential", bits, epsilon, 0.0, beta) == n


@pytest.mark.parametrize("power", [0.9, 1.0, 1.1])
def test_of_what_is_nearly_a_power_four_values_are_asked_for(power):
    asked = []

    def needed(value):
        asked.append(value)
        return math.ceil(10**4 * (0.03 / value) ** power * (1 + 0.1 * value))

    assert needed(base.least(needed, 10**4, 2.0**-20, 32.0)) <= 10**4 and len(asked) <= 6


def test_a_floor_of_learners_by_interior_points_is_one():
    """With a delta so large TreeLog, of which there is a floor alone, needs the fewest points."""
    for epsilon, delta in ((0.1, 0.3), (0.01, 0.1)):
        asked = base.Question(1024, None, epsilon, 0.1, delta, 0.1, dpjax.accounting.REPLACE_ONE)
        offer = thresholds.by_interior_points(asked)
        assert "tree_log" in offer.name and 0.3 * offer.n <= thresholds.by_interior_points_floor(asked) < offer.n


def test_few_plans_are_made_where_an_epsilon_is_searched_for():
    """Plans take most of the time; once 33 were made here."""
    planning.quick.cache_clear()
    interior_points.best.cache_clear()
    dpjax.choose("cdf", bits=2048, n=34_500, alpha=0.1184, delta=0.3, beta=0.05)
    assert 0 < planning.quick.cache_info().misses <= 24
