"""The books: guarantees and laws as events, privacy-loss distributions, Rényi, zCDP and trade-off curves."""

import dataclasses
import decimal
import itertools
import math
from decimal import Decimal

import dp_accounting
import numpy as np
import pytest
from dp_accounting import dp_event, pld, rdp

import dpjax
from dpjax import accounting
from dpjax.accounting import Guarantee, events, views
from dpjax.learners import thresholds
from dpjax.verify import dominating, suspects

ADD, REPLACE, LABEL = accounting.ADD_OR_REMOVE_ONE, accounting.REPLACE_ONE, accounting.REPLACE_LABEL


def exact_delta(guarantee, count, epsilon):
    """delta(epsilon) of `count` runs of the worst mechanism: a binomial sum in 28 digits (Kairouz, Oh, Viswanath 2015, Theorem 3.3)."""
    e, d = Decimal(guarantee.epsilon), Decimal(guarantee.delta)
    p = e.exp() / (1 + e.exp())
    spent = sum(
        math.comb(count, k)
        * max(Decimal(0), p**k * (1 - p) ** (count - k) - Decimal(epsilon).exp() * (1 - p) ** k * p ** (count - k))
        for k in range(count + 1)
    )
    return float(1 - (1 - d) ** count * (1 - spent))


def accountants(guarantee):
    """The accountants that compose the event of this guarantee."""
    relation = guarantee.neighboring_relation
    stock = [pld.PLDAccountant(relation)] if guarantee.is_pure and guarantee.relation == ADD else []
    return [*stock, events.Accountant(relation)]


# ------------------------------------------------------------------------------------------------------------ events


@pytest.mark.parametrize("relation", [ADD, REPLACE])
@pytest.mark.parametrize("epsilon", [0.1, 0.50003])
@pytest.mark.parametrize("delta", [0.0, 1e-7])
@pytest.mark.parametrize("count", [1, 30])
def test_events_compose_exactly(relation, epsilon, delta, count):
    """Never below the exact sum; on the grid equal to it, off the grid at most as if every loss were two cells larger."""
    guarantee = Guarantee(epsilon, delta, relation)
    for accountant in accountants(guarantee):
        accountant.compose(guarantee.to_dp_event(), count)
        for total in np.array([0.1, 0.4, 0.9]) * epsilon * count:
            found, exact = accountant.get_delta(total), exact_delta(guarantee, count, total)
            on_grid = epsilon != 0.50003
            most = exact if on_grid else exact_delta(guarantee, count, max(0.0, total - 2e-4 * count))
            assert exact - 1e-13 <= found <= most + 1e-12, (accountant, total)
            assert exact <= accounting.total_delta({guarantee: count}, total) <= exact + 1e-5


def test_an_accountant_composes_guarantees_with_anything():
    """A Gaussian and ten guarantees give the same as their loss distributions composed by hand."""
    guarantee = Guarantee(0.2, 1e-8, REPLACE)
    accountant = events.Accountant(dp_accounting.NeighboringRelation.REPLACE_ONE)
    accountant.compose(dp_accounting.ComposedDpEvent([dp_accounting.GaussianDpEvent(4.0), guarantee.to_dp_event()]))
    accountant.compose(dp_accounting.SelfComposedDpEvent(guarantee.to_dp_event(), 9))
    gaussian = pld.privacy_loss_distribution.from_gaussian_mechanism(
        4.0, neighboring_relation=dp_accounting.NeighboringRelation.REPLACE_ONE
    )
    by_hand = gaussian.compose(guarantee.to_pld().self_compose(10))
    assert math.isclose(accountant.get_epsilon(1e-5), by_hand.get_epsilon_for_delta(1e-5), rel_tol=1e-6)


def test_randomized_response_counts_as_often_as_it_runs():
    """Against the binomial sum. dp-accounting's accountant may count sixty runs as one, so no guarantee becomes this event."""
    event = dp_accounting.RandomizedResponseDpEvent(2 / (1 + math.exp(0.5)), 2)
    relation = dp_accounting.NeighboringRelation.REPLACE_ONE
    exact = exact_delta(Guarantee(0.5, 0.0, REPLACE), 60, 4.0)
    assert math.isclose(events.Accountant(relation).compose(event, 60).get_delta(4.0), exact, rel_tol=1e-2)
    assert events.Accountant(relation).compose(event, 60).get_delta(4.0) >= exact


def test_a_randomized_response_without_noise_is_no_promise():
    """It is composed by a separate accountant, whose verdict counts."""
    relation = dp_accounting.NeighboringRelation.REPLACE_ONE
    plain = events.Accountant(relation).compose(dp_accounting.RandomizedResponseDpEvent(0.0, 2), 3)
    assert plain.get_epsilon(0.5) == math.inf and plain.get_delta(1.0) == 1.0


def test_events_of_extreme_promises():
    assert isinstance(Guarantee.none(ADD).to_dp_event(), dp_accounting.NonPrivateDpEvent)
    assert isinstance(Guarantee(1.0, 1.0, ADD).to_dp_event(), dp_accounting.NonPrivateDpEvent)
    assert isinstance(Guarantee(0.0, 0.0, REPLACE).to_dp_event(), dp_accounting.NoOpDpEvent)
    for nothing in (Guarantee.none(ADD), Guarantee(1000.0, 0.0, ADD), Guarantee(0.1, 1.0, REPLACE)):
        loss = nothing.to_pld()
        for composed in (loss, loss.self_compose(5), loss.compose(Guarantee(0.5, 1e-9, ADD).to_pld())):
            assert composed.get_delta_for_epsilon(3.0) == 1.0
    nearly = Guarantee(1.0, 1 - 1e-8, ADD).to_pld()  # what is left of it is lost in a convolution
    assert nearly.self_compose(2).get_epsilon_for_delta(0.5) == np.inf
    assert Guarantee(0.0, 0.25, ADD).to_pld().get_delta_for_epsilon(0.0) == 0.25


def test_hardly_any_finite_loss_is_no_promise():
    """Forty runs leave a finite loss with probability 1e-40, with which dp-accounting alone fails."""
    accountant = events.Accountant(dp_accounting.NeighboringRelation.REPLACE_ONE)
    accountant.compose(Guarantee(0.1, 0.9, REPLACE).to_dp_event(), 40)
    assert accountant.get_delta(1.0) == 1 and accountant.get_epsilon(0.5) == math.inf


def test_events_are_refused_by_whoever_does_not_know_them():
    event = Guarantee(1.0, 1e-6, REPLACE).to_dp_event()
    for accountant in (pld.PLDAccountant(dp_accounting.NeighboringRelation.REPLACE_ONE), events.Accountant()):
        assert not accountant.supports(event)
        with pytest.raises(dp_accounting.UnsupportedEventError):
            accountant.compose(event)
    with pytest.raises(ValueError, match="none for labels"):
        Guarantee(1.0, 0.0, LABEL).to_dp_event()
    with pytest.raises(ValueError, match="interval must be > 0"):
        Guarantee(1.0, 0.0, LABEL).to_pld(0.0)
    assert event.to_named_tuple().epsilon == 1.0
    assert dp_event.DpEvent.from_named_tuple(event.to_named_tuple()) == event


# ------------------------------------------------------------------------------------------- Rényi, zCDP and trade-offs


def response(epsilon, delta=0.0):
    """The worst pair, as laws of two datasets."""
    p = 1 / (1 + math.exp(-epsilon))
    first = np.array([delta, (1 - delta) * p, (1 - delta) * (1 - p), 0.0])
    return np.stack([first, first[::-1]]), np.array([[0, 1], [1, 0]])


@pytest.mark.parametrize("epsilon", [1e-6, 0.1, 1.0, 5.0, 40.0])
def test_renyi_is_that_of_randomized_response(epsilon):
    """Against the definition in 80 digits: never below it, above it by at most a relative 1e-12; rising with the order."""
    orders = [1.0 + 1e-9, 1.01, 1.5, 2.0, 8.0, 200.0]
    found = Guarantee(epsilon, 0.0, REPLACE).renyi(orders)
    with decimal.localcontext(prec=80):
        e = Decimal(epsilon)
        p = e.exp() / (1 + e.exp())
        for order, value in zip(orders, found, strict=True):
            a = Decimal(order)
            exact = (p**a * (1 - p) ** (1 - a) + (1 - p) ** a * p ** (1 - a)).ln() / (a - 1)
            assert exact <= Decimal(float(value)) <= exact * (1 + Decimal("1e-12"))
        assert (
            e * (2 * p - 1)
            <= Decimal(Guarantee(epsilon, 0.0, REPLACE).zcdp())
            <= e * (2 * p - 1) * (1 + Decimal("1e-12"))
        )
    assert np.all(np.diff(found) >= 0)
    assert found[-1] <= views.renyi_divergence(epsilon, 0.0, math.inf) == epsilon


@pytest.mark.parametrize("epsilon", [1e-3, 0.5, 1.0, 3.0, 20.0])
def test_zcdp_is_the_least(epsilon):
    """At every order the divergence over the order is at most rho, and at some above 0.999 rho, which would fail (the control)."""
    guarantee, orders = Guarantee(epsilon, 0.0, REPLACE), 1.0 + np.geomspace(1e-4, 1e4, 200)
    shares = guarantee.renyi(orders) / orders
    assert np.all(shares <= guarantee.zcdp()) and np.any(shares > 0.999 * guarantee.zcdp())
    assert guarantee.zcdp() <= epsilon**2 / 2
    assert math.isclose(dominating.concentration(*response(epsilon), 0.0), guarantee.zcdp(), rel_tol=3e-4)


def test_zcdp_goes_through_the_renyi_accountant():
    """As a ZCDpEvent: above the exact sum, and below what Bun and Steinke's epsilon^2 / 2 gives."""
    guarantee, found = Guarantee(0.5, 0.0, ADD), []
    for rho in (guarantee.zcdp(), guarantee.epsilon**2 / 2):
        found.append(rdp.RdpAccountant().compose(dp_event.ZCDpEvent(rho), 50).get_epsilon(1e-6))
    assert accounting.total_epsilon({guarantee: 50}, 1e-6) < found[0] < found[1]


@pytest.mark.parametrize(("epsilon", "delta"), [(0.0, 0.1), (0.5, 0.0), (1.0, 0.05), (4.0, 1e-6)])
def test_trade_off_is_that_of_the_worst_pair(epsilon, delta):
    """Against the tests of Neyman and Pearson on the worst pair; rounded down, convex, its own inverse."""
    errors = np.linspace(0.0, 1.0, 101)
    found = Guarantee(epsilon, delta, ADD).trade_off(errors)
    exact = dominating.trade_off(*response(epsilon, delta), 0.0, errors)
    assert np.all(found <= exact) and np.allclose(found, exact, atol=1e-13)
    with decimal.localcontext(prec=80):
        e, d = Decimal(epsilon), Decimal(delta)
        for error, value in zip(map(Decimal, errors.tolist()), found.tolist(), strict=True):
            assert Decimal(value) <= max(Decimal(0), 1 - d - e.exp() * error, (-e).exp() * (1 - d - error))
    assert np.all(np.diff(found) <= 0) and np.all(np.diff(found, 2) > -1e-13)
    inner = found > 1e-9  # where f is 0 it has no inverse
    assert np.allclose(Guarantee(epsilon, delta, ADD).trade_off(found[inner]), errors[inner], atol=1e-11)


def test_views_of_no_pure_promise():
    assert Guarantee(1.0, 1e-9, REPLACE).zcdp() == Guarantee.none(ADD).zcdp() == math.inf
    assert Guarantee(1.0, 1e-9, REPLACE).renyi([1, 2]).tolist() == [math.inf] * 2
    assert Guarantee.none(ADD).trade_off([0.0, 0.5]).tolist() == [0.0, 0.0]
    assert Guarantee(0.0, 0.0, ADD).zcdp() == 0.0 and Guarantee(0.0, 0.0, ADD).trade_off([0.25]).tolist() == [0.75]
    for wrong in (lambda g: g.renyi([0.5]), lambda g: g.trade_off([1.5])):
        with pytest.raises(ValueError, match=r"orders must be >= 1|errors must be"):
            wrong(Guarantee(1.0, 0.0, ADD))


# ---------------------------------------------------------------------------------------------------------------- laws


@pytest.fixture(scope="module")
def report():
    return dpjax.check(thresholds.exponential(bits=2, epsilon=1.0), n=2, domain=4)


def laws_of(report):
    """The laws without bottom, which this learner never gives; and the pairs."""
    return report._evidence.p[:, :-1], report._evidence.pairs


def hockey_sticks(p, pairs, x):
    return np.maximum(p[pairs[:, 0]] - x * p[pairs[:, 1]], 0.0).sum(axis=-1)


@pytest.mark.thorough
def test_the_chain_is_the_maximum_over_pairs(report):
    """Its hockey-stick is the largest over pairs at every x, it is its own mirror image, and leaving out pairs shows (control)."""
    p, pairs = laws_of(report)
    q, power = dominating.chain(p, pairs)
    for x in np.exp(np.linspace(-1.5, 1.5, 41)):
        assert math.isclose(np.max(power - x * q), hockey_sticks(p, pairs, x).max(), abs_tol=1e-13)
    assert np.allclose(np.interp(1 - power, q, power), 1 - q, atol=1e-12)
    at_one = hockey_sticks(p, pairs, 1.0)
    low, fewer = dominating.chain(p, pairs[at_one < 0.99 * at_one.max()])
    assert np.max(fewer - low) < np.max(power - q) - 1e-3


def test_loss_of_a_law_dominates_composition_by_brute_force(report):
    """Two runs, the second on the pair that is worst given the first outcome: the sum over outcomes of the largest hockey-stick."""
    p, pairs = laws_of(report)
    two, promised = report.to_pld().self_compose(2), report.guarantee.to_pld().self_compose(2)
    for epsilon in (0.0, 0.3, 0.7, 1.2):
        truth = 0.0
        for i, j in pairs[:: max(1, len(pairs) // 40)]:
            x = math.exp(epsilon) * p[j] / p[i]
            truth = max(truth, p[i] @ hockey_sticks(p, pairs, x[:, None, None]).max(axis=1))
        assert truth - 1e-12 <= two.get_delta_for_epsilon(epsilon) <= promised.get_delta_for_epsilon(epsilon) + 1e-9
    once = report.to_pld()
    for epsilon in (0.0, 0.1, 0.5, 0.9):
        assert report.delta_at(epsilon) <= once.get_delta_for_epsilon(epsilon) <= report.delta_at(epsilon) + 1e-8


def test_any_laws_are_dominated():
    """Random laws with impossible outcomes: the chain is the maximum over pairs, and two runs on a pair cost no more."""
    random = np.random.default_rng(0)
    for size in (2, 3, 5, 9):
        p = (
            random.dirichlet(np.full(size, 0.5), 4) * random.integers(0, 2, (4, size))
            + 0.1 * np.eye(size)[np.arange(4) % size]
        )
        p, pairs = p / p.sum(axis=1, keepdims=True), np.array(list(itertools.permutations(range(4), 2)))
        q, power = dominating.chain(p, pairs)
        for x in (0.0, 0.3, 1.0, 2.5, 40.0):
            assert math.isclose(np.max(power - x * q), hockey_sticks(p, pairs, x).max(), abs_tol=1e-13)
        twice = np.stack([np.outer(law, law).ravel() for law in p])
        two = accounting.losses.discretised(dominating.losses(p, pairs, 0.0), None, 1e-3).self_compose(2)
        for epsilon in (0.0, 0.5, 2.0):
            assert hockey_sticks(twice, pairs, math.exp(epsilon)).max() <= two.get_delta_for_epsilon(epsilon) + 1e-12


def test_loss_of_one_pair_composes_exactly():
    """Where one pair is the worst, the composed loss is the law of the product, outcome by outcome."""
    p, pairs = np.array([[0.5, 0.3, 0.2, 0.0], [0.0, 0.2, 0.3, 0.5]]), np.array([[0, 1], [1, 0]])
    three = accounting.losses.discretised(dominating.losses(p, pairs, 0.0), None, 1e-4).self_compose(3)
    products = [[math.prod(row[k] for k in word) for word in itertools.product(range(4), repeat=3)] for row in p]
    for epsilon in (0.0, 0.3, 1.0):
        exact = hockey_sticks(np.array(products), pairs, math.exp(epsilon)).max()
        assert exact <= three.get_delta_for_epsilon(epsilon) <= exact + 1e-8


def test_views_of_a_law_against_its_pairs(report):
    """Rényi by its definition, pair by pair; trade-offs below every test; all of them better than the guarantee says."""
    p, pairs = laws_of(report)
    orders = np.array([1.0, 1.5, 2.0, 10.0, math.inf])
    found = report.renyi(orders)
    for order, value in zip(orders[1:-1], found[1:-1], strict=True):
        exact = max(math.log(np.sum(p[i] ** order * p[j] ** (1 - order))) / (order - 1) for i, j in pairs)
        assert math.isclose(value, exact, rel_tol=1e-12)
    assert math.isclose(found[0], max(np.sum(p[i] * np.log(p[i] / p[j])) for i, j in pairs), rel_tol=1e-12)
    assert math.isclose(found[-1], report.epsilon_at(0.0), rel_tol=1e-12)
    assert np.all(np.diff(found) >= 0) and np.all(found <= report.guarantee.renyi(orders))
    dense = 1.0 + np.geomspace(1e-6, 1e3, 300)
    assert np.max(report.renyi(dense) / dense) <= report.zcdp() <= report.guarantee.zcdp()
    assert report.zcdp() <= 1.001 * np.max(report.renyi(dense) / dense)
    tests = [event for size in range(5) for event in itertools.combinations(range(p.shape[1]), size)]
    for i, j in pairs[:20]:
        first, second = (np.array([p[side][list(event)].sum() for event in tests]) for side in (i, j))
        assert np.all(report.trade_off(np.clip(second, 0, 1)) <= 1 - first + 1e-12)
    errors = np.linspace(0, 1, 51)
    assert np.all(report.trade_off(errors) >= report.guarantee.trade_off(errors) - 1e-11)


def test_an_audit_has_no_books(report):
    audits = suspects.Audits([(0, 1)], [(np.zeros(16, int), np.ones(16, int))], 0.95, None)
    report = dataclasses.replace(report, exact=False, _evidence=audits)
    for ask in (report.to_pld, report.zcdp, lambda: report.renyi([2]), lambda: report.trade_off([0.5])):
        with pytest.raises(TypeError, match="this report is an audit by runs"):
            ask()


def test_a_law_that_errs_by_its_rounding_is_not_told_apart_less():
    """The true Q of the pair may be (1, 0): then half of P has an infinite loss, and a test that never errs on Q errs on half of P."""
    p, pairs, rounding = np.array([[0.5, 0.5], [1 - 1e-12, 1e-12]]), np.array([[0, 1], [1, 0]]), 1e-12
    _, masses = dominating.losses(p, pairs, rounding)
    assert masses[-1] >= 0.5
    assert dominating.trade_off(p, pairs, rounding, np.array([0.0]))[0] <= 0.5
    assert dominating.losses(p, pairs, 0.0)[1][-1] < 1e-11  # negative control


def test_trade_offs_are_rounded_down_at_the_ends_of_floats():
    assert views.type_two_error(720.0, 0.0, 1e-308) < 1e-300
    assert views.type_two_error(0.0, 0.0, 1e-20) < 1.0 and views.type_two_error(0.0, 0.0, 0.25) == 0.75
    assert views.concentration(1e-170, 0.0) > 0.0


def test_divergences_of_an_epsilon_whose_exponential_is_no_float_are_that_epsilon():
    """They fall short of it by e^-epsilon."""
    assert [views.renyi_divergence(1000.0, 0.0, order) for order in (1.0, 1.5, 2.0, 1e9)] == [1000.0] * 4


@pytest.mark.parametrize("order", [1.0, 1.0 + 2.0**-52, 2.0, 1e30])
@pytest.mark.parametrize("epsilon", [5e-324, 1e-300, 1e-170, 3e-158, 1e-150, 1e-120])
def test_divergences_that_underflow_are_rounded_up(epsilon, order):
    """Against a e^2/2, from which ln(cosh((a - 1/2) e) / cosh(e/2)) / (a - 1) differs by a relative (a e)^2."""
    found = views.renyi_divergence(epsilon, 0.0, order)
    with decimal.localcontext(prec=60):
        assert Decimal(order) * Decimal(epsilon) ** 2 / 2 <= Decimal(found) <= Decimal(epsilon)


def test_a_pair_of_two_different_directions_costs_the_larger():
    """P = (1/2, 1/2), Q = (9/10, 1/10): at epsilon = 1/2 the one loses 1/2 - e^(1/2)/10, the other 9/10 - e^(1/2)/2."""
    one = np.log([5 / 9, 5.0]), np.array([0.5, 0.5])
    other = -one[0], np.array([0.9, 0.1])
    for law, opposite in ((one, other), (other, one)):
        found = accounting.losses.discretised(law, opposite, 1e-4).get_delta_for_epsilon(0.5)
        assert found == pytest.approx(0.5 - math.exp(0.5) / 10, rel=1e-4)
