"""Guarantees, composition and calibration, against exact sums in 50 digits."""

import dataclasses
import decimal
import functools
import itertools
import math
import subprocess
import sys
from decimal import Decimal
from fractions import Fraction

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from builders import thorough
from scipy import stats

from dpjax import accounting
from dpjax.accounting import REPLACE_ONE, Guarantee, adaptive, bounded, losses, rounding
from dpjax.accounting.composition import composed_delta, few_losses

REPLACE, ADD, LABEL = accounting.REPLACE_ONE, accounting.ADD_OR_REMOVE_ONE, accounting.REPLACE_LABEL


def exact_delta(parts, epsilon):
    """Total delta of the worst mechanisms with these budgets, loss by loss (Murtagh, Vadhan 2016)."""
    with decimal.localcontext(prec=50):
        law, kept = {Decimal(0): Decimal(1)}, Decimal(1)
        for each_epsilon, each_delta in parts:
            step, odds = Decimal(each_epsilon), Decimal(each_epsilon).exp()
            kept *= 1 - Decimal(each_delta)
            new = {}
            for loss, mass in law.items():
                for moved, share in ((loss + step, odds / (1 + odds)), (loss - step, 1 / (1 + odds))):
                    new[moved] = new.get(moved, 0) + mass * share
            law = new
        target = Decimal(epsilon)
        excess = sum(mass * (1 - (target - loss).exp()) for loss, mass in law.items() if loss > target)
        return float(1 - kept + kept * excess)


def replace_one(pairs):
    return [Guarantee(epsilon, delta, REPLACE) for epsilon, delta in pairs]


# ------------------------------------------------------------------------------------------ guarantees


@pytest.mark.parametrize(
    ("arguments", "error", "name"),
    [
        ((-0.1, 0.0, REPLACE), ValueError, "epsilon"),
        ((math.nan, 0.0, REPLACE), ValueError, "epsilon"),
        (("1", 0.0, REPLACE), TypeError, "epsilon"),
        ((True, 0.0, REPLACE), TypeError, "epsilon"),
        ((1.0, -1e-9, REPLACE), ValueError, "delta"),
        ((1.0, 1.5, REPLACE), ValueError, "delta"),
        ((math.inf, 0.5, REPLACE), ValueError, "delta"),
        ((1.0, 0.0, "replace"), ValueError, "relation"),
    ],
)
def test_guarantee_refuses(arguments, error, name):
    with pytest.raises(error, match=name):
        Guarantee(*arguments)


def test_guarantee_is_plain_and_frozen():
    guarantee = Guarantee(np.float32(0.5), np.float64(1e-6), ADD)
    assert type(guarantee.epsilon) is float and type(guarantee.delta) is float
    assert guarantee == Guarantee(0.5, 1e-6, ADD) and hash(guarantee) == hash(Guarantee(0.5, 1e-6, ADD))
    with pytest.raises(dataclasses.FrozenInstanceError):
        guarantee.epsilon = 0.1


@pytest.mark.parametrize("relation", [REPLACE, ADD])
def test_relation_is_dp_accountings(relation):
    import dp_accounting

    member = Guarantee(1.0, 0.0, relation).neighboring_relation
    assert member is dp_accounting.NeighboringRelation[relation] and member.name == relation


def test_labels_are_no_relation_of_dp_accounting():
    with pytest.raises(ValueError, match="none for labels"):
        _ = Guarantee(1.0, 0.0, LABEL).neighboring_relation


def test_covers_asks_for_both_numbers():
    guarantee = Guarantee(1.0, 1e-6, REPLACE)
    assert guarantee.covers(1.0, 1e-6) and guarantee.covers(2.0, 1e-5)
    assert not guarantee.covers(0.9, 1e-5) and not guarantee.covers(2.0, 1e-7)


@pytest.mark.parametrize("epsilon", [0.0, 1e-6, 0.1, 1.0, 3.0])
@pytest.mark.parametrize("size", [1, 2, 5, 20])
def test_group_privacy_is_the_sum_of_the_steps(epsilon, size):
    delta = 2.0**-100
    group = Guarantee(epsilon, delta, REPLACE).group(size)
    with decimal.localcontext(prec=150):  # enough for 2^-100 itself
        steps = sum((i * Decimal(epsilon)).exp() for i in range(size)) * Decimal(delta)
        assert steps <= Decimal(group.delta) <= steps * Decimal("1.000000000001")
    assert size * Fraction(epsilon) <= Fraction(group.epsilon) <= size * Fraction(epsilon) * (1 + Fraction(1, 2**50))


def test_group_privacy_at_the_ends():
    assert Guarantee(1.0, 0.0, REPLACE).group(10_000).delta == 0.0
    assert Guarantee(1.0, 1e-9, REPLACE).group(10_000).delta == 1.0
    nothing = Guarantee(math.inf, 1.0, REPLACE)
    assert nothing.group(3) == nothing
    with pytest.raises(ValueError, match="size"):
        Guarantee(1.0, 0.0, REPLACE).group(0)


def test_what_is_left_of_a_budget_and_what_is_spent_are_never_more_than_the_budget():
    """And with one float more left they would be: the difference is rounded down, and by no more than that."""
    for budget, part in np.random.default_rng(0).uniform(0.5, 1.0, size=(50, 2, 2)) * [[1.0, 1e-6], [0.01, 1e-8]]:
        whole, spent = Guarantee(*budget, REPLACE), Guarantee(*part, REPLACE)
        left = whole.minus(spent)
        for of in (lambda guarantee: guarantee.epsilon, lambda guarantee: guarantee.delta):
            assert Fraction(of(left)) + Fraction(of(spent)) <= Fraction(of(whole))
            assert Fraction(math.nextafter(of(left), 1.0)) + Fraction(of(spent)) > Fraction(of(whole))


def test_a_budget_without_any_epsilon_left_is_none():
    """All of delta may be spent: what is left is then pure."""
    whole = Guarantee(1.0, 1e-6, REPLACE)
    with pytest.raises(ValueError, match="spent must leave some of"):
        whole.minus(Guarantee(1.0, 0.0, REPLACE))
    assert whole.minus(Guarantee(0.25, 1e-6, REPLACE)) == Guarantee(0.75, 0.0, REPLACE)


def test_conversion_goes_one_way():
    guarantee = Guarantee(0.7, 1e-8, ADD)
    converted = guarantee.under_replace_one()
    assert converted.relation == REPLACE and converted.epsilon == pytest.approx(1.4, rel=1e-15)
    assert converted.delta == pytest.approx((1 + math.exp(0.7)) * 1e-8, rel=1e-11)
    assert guarantee.under(ADD) is guarantee
    with pytest.raises(ValueError, match="number of records is public"):
        converted.under(ADD)
    with pytest.raises(ValueError, match="relation"):
        guarantee.under("REPLACE_SPECIAL")


def test_a_label_is_a_part_of_a_record():
    """Replace-one says the same of labels, add/remove what it says of two steps; nothing follows from labels alone."""
    guarantee = Guarantee(0.7, 1e-8, REPLACE)
    assert guarantee.under(LABEL) == Guarantee(0.7, 1e-8, LABEL)
    added = Guarantee(0.7, 1e-8, ADD)
    assert added.under(LABEL) == dataclasses.replace(added.under(REPLACE), relation=LABEL)
    label = Guarantee(0.7, 1e-8, LABEL)
    assert label.under(LABEL) is label and label.group(2) == dataclasses.replace(guarantee.group(2), relation=LABEL)
    for other in (REPLACE, ADD):
        assert guarantee.follows_under(LABEL) and added.follows_under(LABEL) and not label.follows_under(other)
        with pytest.raises(ValueError, match=f"{other} does not follow from REPLACE_LABEL, where the points"):
            label.under(other)
        with pytest.raises(ValueError, match="one relation"):
            accounting.basic([label, Guarantee(0.1, 0.0, other)])


@pytest.mark.parametrize("relation", accounting.RELATIONS)
def test_nothing_stays_nothing(relation):
    """Whatever is composed with no promise, converted or repeated, promises nothing, and says so."""
    none, some = Guarantee.none(relation), Guarantee(0.5, 1e-6, relation)
    assert none == Guarantee(math.inf, 1.0, relation) and none.is_none and not some.is_none
    assert str(none) == f"nothing is promised under {relation}"
    assert str(some) == f"(0.5, 1e-06)-private under {relation}"
    assert str(Guarantee(1.0 - 7e-12, 0.1 + 0.2, relation)) == f"(1.0, 0.3)-private under {relation}"
    assert accounting.basic([some, none]) == none and accounting.advanced(none, 3, 1e-6) == none
    assert accounting.optimal([none, some], delta=0.5) == accounting.optimal([none, some], epsilon=1.0) == none
    assert none.group(3) == none and not none.covers(700.0, 0.999)
    for other in accounting.RELATIONS:
        assert none.under(other) == Guarantee.none(other)
    if relation == REPLACE:
        for calibration in ("proved", "printed"):
            assert accounting.with_replacement(none, drawn=10, rows=100, calibration=calibration) == none


def test_conversion_is_needed():
    """Two Laplace counts of scale 1: a record that changes bins moves both, at loss 2."""
    added = Guarantee(1.0, 0.0, ADD)
    x, y = np.meshgrid(np.linspace(-3, 4, 71), np.linspace(-3, 4, 71))
    loss = np.max(np.abs(x - 1) + np.abs(y) - np.abs(x) - np.abs(y - 1))
    assert added.epsilon < loss <= added.under_replace_one().epsilon + 1e-12


# ----------------------------------------------------------------------------------------- composition


def test_basic_never_rounds_down():
    parts = replace_one([(0.1, 1e-7), (0.2, 3e-7), (0.7, 0.0)] * 7)
    total = accounting.basic(parts)
    assert Fraction(total.epsilon) >= sum(Fraction(part.epsilon) for part in parts)
    assert Fraction(total.delta) >= sum(Fraction(part.delta) for part in parts)
    assert total.covers(7.0 * (1 + 1e-15), 2.8e-6 * (1 + 1e-15)) and total.relation == REPLACE


def test_rationals_beyond_all_floats_are_rounded_on_the_safe_side():
    """What is beyond the largest float is rounded down to that float, and up to infinity; and 0 is not rounded to -0."""
    most, beyond = sys.float_info.max, 2 * Fraction(sys.float_info.max)
    assert (rounding.at_least(beyond), rounding.at_most(beyond)) == (math.inf, most)
    assert (rounding.at_least(-beyond), rounding.at_most(-beyond)) == (-most, -math.inf)
    assert math.copysign(1.0, rounding.at_most(Fraction(0))) == 1.0


def test_basic_of_a_mapping_counts():
    each = Guarantee(0.1, 1e-7, REPLACE)
    assert accounting.basic({each: 5}) == accounting.basic([each] * 5) == accounting.basic(iter([each] * 5))


@pytest.mark.parametrize(
    "compose",
    [
        accounting.basic,
        lambda parts: accounting.total_delta(parts, 1.0),
        lambda parts: accounting.total_epsilon(parts, 1e-6),
    ],
)
def test_composition_refuses_mixtures_and_nothing(compose):
    with pytest.raises(ValueError, match="one relation"):
        compose([Guarantee(1.0, 0.0, REPLACE), Guarantee(1.0, 0.0, ADD)])
    with pytest.raises(ValueError, match="guarantees"):
        compose([])
    with pytest.raises(ValueError, match="count"):
        compose({Guarantee(1.0, 0.0, REPLACE): 0})
    for wrong in ([(1.0, 0.0)], [[1.0]], np.array(1.0)):
        with pytest.raises(TypeError, match="guarantees must hold Guarantee objects"):
            compose(wrong)


def test_advanced_as_printed():
    total = accounting.advanced(Guarantee(0.01, 1e-9, REPLACE), 400, 1e-7)
    assert total.epsilon == pytest.approx(math.sqrt(800 * math.log(1e7)) * 0.01 + 800 * 1e-4, rel=1e-13)
    assert total.delta == pytest.approx(5e-7, rel=1e-13)


@pytest.mark.parametrize(("epsilon", "slack"), [(0.0, 0.1), (1.1, 0.1), (0.5, 0.0), (0.5, 1.1)])
def test_advanced_keeps_to_its_conditions(epsilon, slack):
    with pytest.raises(ValueError, match=r"epsilon|slack"):
        accounting.advanced(Guarantee(epsilon, 0.0, REPLACE), 10, slack)


@pytest.mark.parametrize("epsilon", [0.01, 0.1, 1.0])
@pytest.mark.parametrize("count", [1, 30, 1000])
def test_advanced_is_no_better_than_optimal(epsilon, count):
    each = Guarantee(epsilon, 1e-10, REPLACE)
    printed = accounting.advanced(each, count, 1e-5)
    assert accounting.total_delta({each: count}, printed.epsilon) <= printed.delta


@pytest.mark.parametrize(("epsilon", "delta"), [(0.02, 0.0), (0.3, 1e-6), (1.0, 0.05), (4.0, 1e-9)])
@pytest.mark.parametrize("count", [1, 2, 7, 50])
def test_equal_budgets_compose_exactly(epsilon, delta, count):
    each = Guarantee(epsilon, delta, REPLACE)
    for fraction in (0.0, 0.1, 0.35, 0.7, 0.99, 1.0, 1.5):
        target = fraction * count * epsilon
        truth = exact_delta([(epsilon, delta)] * count, target)
        found = accounting.total_delta({each: count}, target)
        assert truth * (1 - 1e-12) <= found <= truth * (1 + 1e-9) + 2e-15 + count * 3e-16


def test_budgets_with_a_common_multiple_compose_exactly():
    pairs = [(0.1, 1e-6)] * 4 + [(0.2, 0.0)] * 5 + [(0.3 - 0.1, 0.0), (0.1 + 0.2, 0.0)] + [(0.4, 1e-5)] * 2
    for target in (0.05, 0.5, 1.3, 2.0):
        truth = exact_delta(pairs, target)
        found = accounting.total_delta(replace_one(pairs), target)
        assert truth * (1 - 1e-12) <= found <= truth * (1 + 1e-9)


@pytest.mark.parametrize("seed", range(4))
def test_unequal_budgets_compose_from_above(seed):
    draw = np.random.default_rng(seed)
    pairs = [(float(e), float(d)) for e, d in zip(draw.uniform(0.01, 0.6, 8), draw.uniform(0, 1e-6, 8), strict=True)]
    whole = sum(epsilon for epsilon, _ in pairs)
    for fraction in (0.1, 0.4, 0.8):
        truth = exact_delta(pairs, fraction * whole)
        found = accounting.total_delta(replace_one(pairs), fraction * whole)
        assert truth <= found <= truth * (1 + 1e-12)
        # The same sums, an epsilon too small in one place, must be told apart.
        assert exact_delta([(pairs[0][0] * (1 + 1e-9), pairs[0][1]), *pairs[1:]], fraction * whole) > found


def test_more_unequal_budgets_than_are_summed_up_compose_from_above():
    """Compared with a sum that takes any number of losses."""
    assert not few_losses((1100, 1000))
    parts = {Guarantee(0.005, 1e-9, REPLACE): 1100, Guarantee(0.00731, 0.0, REPLACE): 1000}
    for target in (0.1, 0.7):
        truth = composed_delta([(0.005, 1100), (0.00731, 1000)], -math.expm1(1100 * math.log1p(-1e-9)), target)
        assert truth <= accounting.total_delta(parts, target) <= truth * 1.05


def test_the_error_of_convolutions_is_added_to_delta():
    """2^-52 for each of 4,000 mechanisms. At an epsilon with next to no delta that is all; a delta below it buys nothing."""
    parts = {Guarantee(0.01, 0.0, REPLACE): 2000, Guarantee(0.02, 0.0, REPLACE): 2000}
    assert not few_losses(parts.values())
    error = 4000 * 2.0**-52
    assert error <= accounting.total_delta(parts, 30.0) < 2 * error
    assert accounting.total_epsilon(parts, 0.9 * error) == pytest.approx(2000 * 0.01 + 2000 * 0.02)
    assert accounting.total_delta(parts, accounting.total_epsilon(parts, 1.2 * error)) <= 1.2 * error


@pytest.mark.parametrize(
    ("epsilon", "count", "target"), [(0.0137, 3000, 2.5), thorough(0.1, 65_535, 700.0), (3.0, 5000, 14_000.0)]
)
def test_sums_over_many_losses_are_not_below_exact_ones(epsilon, count, target):
    assert few_losses([count]) and not few_losses([count, count])
    with decimal.localcontext(prec=60):
        mass, truth = (Decimal(epsilon).exp() / (1 + Decimal(epsilon).exp())) ** count, Decimal(0)
        for down in range(count):  # the number of losses below zero
            loss = (count - 2 * down) * Decimal(epsilon)
            if loss <= Decimal(target):
                break
            truth += mass * (1 - (Decimal(target) - loss).exp())
            mass *= (-Decimal(epsilon)).exp() * (count - down) / (down + 1)
    found = composed_delta([(epsilon, count)], 0.0, target)
    assert float(truth) <= found <= float(truth) * (1 + 1e-6) and 1e-300 < found < 1


@pytest.mark.parametrize("delta", [1e-12, 1e-9, 1e-6, 1e-2])
@pytest.mark.parametrize("count", [1, 10, 200])
def test_total_epsilon_inverts_total_delta(delta, count):
    parts = {Guarantee(0.2, 1e-15, REPLACE): count, Guarantee(0.4, 0.0, REPLACE): count}
    epsilon = accounting.total_epsilon(parts, delta)
    assert accounting.total_delta(parts, epsilon) <= delta * (1 + 1e-9) + count * 2e-15
    if epsilon > 0:
        assert accounting.total_delta(parts, epsilon * 0.99) > delta


def test_optimal_as_a_guarantee():
    parts = {Guarantee(0.1, 0.0, ADD): 100}
    by_delta = accounting.optimal(parts, delta=1e-6)
    assert by_delta == Guarantee(accounting.total_epsilon(parts, 1e-6), 1e-6, ADD)
    by_epsilon = accounting.optimal(parts, epsilon=by_delta.epsilon)
    assert by_epsilon.delta == pytest.approx(1e-6, rel=1e-6)
    for wrong in ({}, {"epsilon": 1.0, "delta": 0.1}):
        with pytest.raises(ValueError, match="exactly one"):
            accounting.optimal(parts, **wrong)


def test_composition_at_the_ends():
    pure = {Guarantee(1.0, 0.0, REPLACE): 3}
    assert accounting.total_delta(pure, 3.0) == 0.0 and accounting.total_epsilon(pure, 0.0) == 3.0
    assert accounting.total_epsilon(pure, 1.0) == 0.0
    spent = {Guarantee(1.0, 1e-3, REPLACE): 3}
    assert accounting.total_epsilon(spent, 1e-3) == math.inf
    assert accounting.optimal(spent, delta=1e-3) == Guarantee(math.inf, 1.0, REPLACE)
    idle = {Guarantee(0.0, 0.0, REPLACE): 2, Guarantee(0.5, 1e-6, REPLACE): 1}
    assert accounting.total_delta(idle, 0.5) == pytest.approx(1e-6, rel=1e-9)
    assert accounting.total_delta({Guarantee(0.0, 1e-6, REPLACE): 2}, 0.0) == pytest.approx(2e-6)
    open_book = [Guarantee(math.inf, 1.0, REPLACE), Guarantee(1.0, 0.0, REPLACE)]
    assert accounting.basic(open_book) == Guarantee(math.inf, 1.0, REPLACE)
    assert accounting.total_delta(open_book, 5.0) == 1.0 and accounting.total_epsilon(open_book, 0.5) == math.inf
    with pytest.raises(ValueError, match="epsilon"):
        accounting.total_delta(pure, math.inf)
    huge = [Guarantee(1000.0, 0.0, REPLACE)] * 2  # exp(1000) is no float
    assert accounting.total_delta(huge, 2000.0) == 0.0 and accounting.total_delta(huge, 1500.0) == 1.0


def test_many_losses_far_below_zero():
    parts = {Guarantee(3.0, 0.0, REPLACE): 1000}
    assert accounting.total_epsilon(parts, 0.9999999) < accounting.total_epsilon(parts, 1e-6) <= 3000.0


# ----------------------------------------------------------------------------------------- calibration


def composed(accountant, each, count, total):
    """The total of `count` mechanisms by the same accountant, delta's rest going to the theorem."""
    if accountant == "basic":
        return accounting.basic({each: count})
    if accountant == "advanced":
        slack = float(Fraction(total.delta) - count * Fraction(each.delta)) * (1 - 1e-15)
        return accounting.advanced(each, count, slack)
    return accounting.optimal({each: count}, epsilon=total.epsilon)


@pytest.mark.parametrize("accountant", ["basic", "advanced", "optimal"])
@pytest.mark.parametrize("count", [1, 3, 64, 1000])
@pytest.mark.parametrize("share", [None, 0.0, 0.9])
def test_calibrated_budgets_compose_to_the_total(accountant, count, share):
    total = Guarantee(0.7, 1e-6, ADD)
    each = accounting.calibrate(total, count, accountant=accountant, delta_share=share)
    whole = composed(accountant, each, count, total)
    assert each.relation == ADD and each.epsilon > 0
    assert Fraction(each.delta) * count <= Fraction(total.delta)
    if accountant == "advanced":  # its slack is recomputed here, an ulp lower than the calibration's own
        assert whole.covers(total.epsilon * (1 + 1e-12), total.delta)
    else:
        assert whole.covers(total.epsilon, total.delta)
    # A budget 1% larger must not fit (a single mechanism spends the whole epsilon; there is nothing to gain).
    larger = dataclasses.replace(each, epsilon=each.epsilon * 1.01)
    assert count == 1 or not composed(accountant, larger, count, total).covers(total.epsilon, total.delta)


def test_calibrated_deltas_never_add_up_to_more_than_their_share():
    for count, share, delta in itertools.product(range(1, 30), (1.0, 0.9, 0.3), (1e-6, 1e-9)):
        each = accounting.calibrate(Guarantee(1.0, delta, ADD), count, accountant="basic", delta_share=share)
        assert count * Fraction(each.delta) <= Fraction(share) * Fraction(delta)


def test_calibration_methods_in_order():
    total = Guarantee(1.0, 1e-6, REPLACE)
    basic, advanced, optimal = (
        accounting.calibrate(total, 2000, accountant=accountant, delta_share=0.0).epsilon
        for accountant in ("basic", "advanced", "optimal")
    )
    assert basic < advanced < optimal
    few = [
        accounting.calibrate(total, 2, accountant=m, delta_share=0.0).epsilon for m in ("basic", "advanced", "optimal")
    ]
    assert few[1] < few[0] <= few[2]  # the printed theorem loses to basic composition for few mechanisms


@pytest.mark.parametrize(
    ("change", "name"),
    [
        ({"total": Guarantee(math.inf, 1.0, REPLACE)}, "total.epsilon"),
        ({"total": Guarantee(0.0, 1e-6, REPLACE)}, "total.epsilon"),
        ({"count": 0}, "count"),
        ({"accountant": "best"}, "accountant"),
        ({"delta_share": 1.5}, "delta_share"),
        ({"accountant": "advanced", "delta_share": 1.0}, "delta_share"),
        ({"accountant": "advanced", "total": Guarantee(1.0, 0.0, REPLACE)}, "total.delta"),
    ],
)
def test_calibrate_refuses(change, name):
    arguments = {"total": Guarantee(1.0, 1e-6, REPLACE), "count": 5, **change}
    with pytest.raises(ValueError, match=name):
        accounting.calibrate(arguments.pop("total"), arguments.pop("count"), **arguments)


@pytest.mark.parametrize(("epsilon", "delta"), [*itertools.product([0.1, 1.0, 4.0], [1e-12, 1e-6, 1e-2])])
@pytest.mark.parametrize("count", [1, 5, 65, 1025])
def test_closed_form_is_within_optimal_composition(epsilon, delta, count):
    each = float(accounting.closed_form_epsilon(epsilon, delta, count))
    assert accounting.total_epsilon({Guarantee(each, 0.0, REPLACE): count}, delta) <= epsilon
    # Not so loose as to be useless; at delta = 0.01 and small epsilon zCDP is (a third of the best budget).
    if delta < 1e-2:
        assert accounting.total_epsilon({Guarantee(2 * each, 0.0, REPLACE): count}, delta) > epsilon


def test_closed_form_of_an_epsilon_whose_double_is_no_float():
    assert accounting.closed_form_epsilon(1e308, 1e-6, 10) == pytest.approx(1e307, rel=1e-5)
    assert accounting.closed_form_epsilon(jnp.float32(2e38), 1e-6, 10, xp=jnp) == pytest.approx(2e37, rel=1e-5)


def test_closed_form_traces_once_and_agrees():
    traces = []

    @jax.jit
    def traced(epsilon, delta):
        traces.append(None)
        return accounting.closed_form_epsilon(epsilon, delta, 65, xp=jnp)

    for epsilon in np.geomspace(1e-3, 10, 20):
        rounded = np.float32(epsilon)
        found = float(traced(rounded, np.float32(1e-6)))
        exact = accounting.closed_form_epsilon(float(rounded), float(np.float32(1e-6)), 65) / (1 - 1e-6)
        assert exact * (1 - 2e-6) < found < exact  # safe in float32 too
    assert len(traces) == 1


def test_closed_form_in_single_precision_is_rounded_down():
    """With few mechanisms it is epsilon / k, with many the difference of roots: no float32 is above the exact value of its branch."""
    rng = np.random.default_rng(1)
    epsilons, few = rng.uniform(0.1, 5.0, 200).astype(np.float32), rng.integers(1, 5, 200).astype(np.int32)
    delta, many = np.float32(1e-6), np.int32(4099)
    each = jax.jit(lambda count: accounting.closed_form_epsilon(epsilons, delta, count, xp=jnp))
    found = zip(each(jnp.asarray(few)).tolist(), few.tolist(), epsilons.tolist(), strict=True)
    assert all(count * Fraction(each) <= Fraction(epsilon) for each, count, epsilon in found)
    root, wide = math.sqrt(-2 * math.log(delta)), epsilons.astype(float)
    exact = (np.sqrt(root**2 + 2 * wide) - root) / math.sqrt(many)
    assert (np.asarray(each(jnp.full_like(few, many)), float) <= exact * (1 - 1e-9)).all()


def test_closed_form_has_a_gradient():
    slope = jax.jit(jax.grad(lambda e: accounting.closed_form_epsilon(e, 1e-6, 200, xp=jnp)))(1.0)
    step = accounting.closed_form_epsilon(1.01, 1e-6, 200) - accounting.closed_form_epsilon(0.99, 1e-6, 200)
    assert float(slope) == pytest.approx(step / 0.02, rel=1e-3)


@pytest.mark.parametrize("wrong", [(0.0, 1e-6, 5), (math.inf, 1e-6, 5), (1.0, 0.0, 5), (1.0, 1.0, 5), (1.0, 1e-6, 0)])
def test_closed_form_refuses(wrong):
    with pytest.raises(ValueError, match=r"epsilon|delta|count"):
        accounting.closed_form_epsilon(*wrong)
    with pytest.raises(ValueError, match=r"epsilon|delta|count"):  # one wrong entry among good ones
        accounting.closed_form_epsilon(
            *(np.array([good, bad]) for good, bad in zip((1.0, 1e-6, 5), wrong, strict=True))
        )


largest_rho_in_jax = jax.jit(functools.partial(accounting.largest_rho, xp=jnp))
slopes_of_rho = jax.jit(jax.grad(largest_rho_in_jax, (0, 1)))


@pytest.mark.parametrize("epsilon", [1e-4, 0.01, 0.1, 1.0, 30.0])
@pytest.mark.parametrize("delta", [1e-12, 1e-4, 0.01, 0.5])
def test_the_largest_rho_is_nearly_that_of_the_best_order(epsilon, delta):
    """Where delta is not far below epsilon, too: the best a is then thousands of times less than elsewhere."""
    a = np.geomspace(1e-6, 1e9, 20_000)
    best = np.max((epsilon + (np.log(delta * a) + (a + 1) * np.log1p(1 / a)) / a) / (a + 1))
    for largest_rho in (accounting.largest_rho, largest_rho_in_jax):
        assert 0.985 * best < float(largest_rho(epsilon, delta)) < best * (1 - 1e-6)


@pytest.mark.parametrize(("epsilon", "delta"), [(1e-3, 0.3), (1e-3, 0.01), (0.1, 0.3), (1.0, 1e-30), (1.0, 1e-6)])
def test_the_largest_rho_rises_with_both(epsilon, delta):
    assert all(0 < float(slope) < math.inf for slope in slopes_of_rho(epsilon, delta))
    steps = [float(accounting.largest_rho(epsilon * (1 + step), delta)) for step in np.linspace(0, 0.3, 60)]
    assert np.all(np.diff(steps) > 0)


@pytest.mark.parametrize("epsilon", [1e-20, 1e-36])
def test_the_largest_rho_has_slopes_at_an_epsilon_whose_square_is_0(epsilon):
    """As epsilon vanishes beside delta, rho and its slopes become those of epsilon = 0."""
    np.testing.assert_allclose(slopes_of_rho(epsilon, 0.1), slopes_of_rho(1e-12, 0.1), rtol=1e-5)


def test_more_mechanisms_than_optimal_composition_is_worked_out_for():
    found = accounting.exponential_epsilon(2**40, epsilon=1.0, delta=1e-6)
    assert found == pytest.approx(math.sqrt(8 * float(accounting.largest_rho(1.0, 1e-6)) / 2**40))


def test_a_delta_that_float32_takes_for_1_is_refused_where_it_computes():
    with pytest.raises(ValueError, match="delta must be below 1 in float32"):
        accounting.closed_form_epsilon(1.0, 1 - 1e-9, 100, xp=jnp)
    assert accounting.closed_form_epsilon(1.0, 1 - 1e-9, 100) > 0


def test_the_largest_rho_is_of_scalars():
    with pytest.raises(ValueError, match=r"epsilon and delta must be scalars .* got shape \(97,\)"):
        accounting.largest_rho(np.linspace(0.1, 5, 97), 1e-6)
    with pytest.raises(ValueError, match="epsilon must be"):
        accounting.largest_rho(np.array(-1.0), 1e-6)


@pytest.mark.parametrize(
    "wrong", [{"ranges": 0}, {"squares": -1.0}, {"ranges": math.nan}, {"squares": np.array([1.0, 0.0])}]
)
def test_the_rate_of_exponential_mechanisms_is_by_positive_sums(wrong):
    (name,) = wrong
    with pytest.raises(ValueError, match=f"{name} must be"):
        accounting.exponential_rate(1.0, 1e-6, **({"ranges": 1.0, "squares": 1.0} | wrong))


@pytest.mark.parametrize(
    "wrong",
    [
        ("1", 1e-6, 5),
        (np.array("1"), 1e-6, 5),
        (jax.random.key(0), 1e-6, 5),
        (1.0, [1e-6], 5),
        (1.0, 1e-6, None),
        (1.0, 1e-6, 5.5),
    ],
)
def test_closed_form_refuses_what_is_no_number(wrong):
    with pytest.raises(TypeError, match=r"epsilon|delta|count"):
        accounting.closed_form_epsilon(*wrong)


def test_dp_accounting_is_imported_only_when_used():
    program = "import sys, dpjax.accounting, dpjax.bounds; assert 'dp_accounting' not in sys.modules"
    subprocess.run([sys.executable, "-c", program], check=True)


def test_what_is_no_guarantee_or_no_count_is_refused():
    given = Guarantee(0.1, 0.0, "REPLACE_ONE")
    assert str(accounting.calibrate(given, 2, accountant="basic").delta) == "0.0"
    for call, error, words in (
        (lambda: accounting.calibrate(None, 2), TypeError, "total must be a Guarantee, got None"),
        (lambda: accounting.advanced(None, 2, 0.1), TypeError, "guarantee must be a Guarantee, got None"),
        (lambda: accounting.with_replacement(None, drawn=1, rows=9), TypeError, "guarantee must be a Guarantee"),
        (lambda: accounting.largest_rho(-1.0, 1e-6), ValueError, "epsilon must be"),
        (lambda: accounting.largest_rho(np.float32(1.0), 2.0), ValueError, "delta must be"),
        (lambda: accounting.exponential_rate("1", 0.0, ranges=1.0, squares=1.0), TypeError, "epsilon must be"),
        (lambda: given.minus(0.1), TypeError, "spent must be a Guarantee, got 0.1"),
        (lambda: given.covers("1", 0.0), TypeError, "epsilon must be a real number, got '1'"),
        (lambda: accounting.basic(3), TypeError, "guarantees must be several guarantees, got 3"),
        (lambda: accounting.optimal({given: 2**30}, delta=1e-6), ValueError, "the count of guarantees must be from 1"),
        (lambda: accounting.calibrate(given, 2**70), ValueError, "count of guarantees must be from 1"),
    ):
        with pytest.raises(error, match=words):
            call()


# ---------------------------------------------------------------------------------------------- exponential mechanisms


def adaptive_delta(each, count, epsilon, cells=48):
    """The largest delta that an adversary reaches who chooses each of `count` mechanisms of bounded range by the outcomes so far.

    A mechanism has the losses t and t - each, t in (0, each), whose chances follow from the sum of the second law being 1 (Dong, Durfee,
    Rogers 2020); t is one of a grid, so that sums of losses stay on it.
    """
    step, t = each / cells, np.arange(1, cells)
    chance = np.expm1((t - cells) * step) / np.expm1(-each)  # of the loss t, under the first law
    gap = epsilon + np.arange(-count * cells, count * cells + 1) * step
    value = np.maximum(-np.expm1(gap), 0.0)  # the hockey-stick's, for what is left of epsilon
    for _ in range(count):
        i = np.arange(len(value) - 2 * cells) + cells
        down, up = value[i[None] - t[:, None]], value[i[None] + cells - t[:, None]]
        value = np.max(chance[:, None] * down + (1 - chance[:, None]) * up, axis=0)
    return value[0]


@pytest.mark.parametrize(
    ("count", "epsilon", "delta"),
    [(2, 1.0, 1e-6), (3, 0.1, 0.05), (5, 4.0, 1e-9), (8, 1.0, 1e-2), (8, 1.0, 1e-6), (16, 1.0, 1e-6), (32, 3.0, 1e-4)],
)
def test_no_adversary_exceeds_the_total_of_exponential_mechanisms(count, epsilon, delta):
    each = accounting.exponential_epsilon(count, epsilon=epsilon, delta=delta)
    assert epsilon / count < each <= 1.002 * bounded.independent_each(Guarantee(epsilon, delta, ADD), count).epsilon
    assert adaptive_delta(each, count, epsilon) <= delta
    assert adaptive_delta(1.03 * each, count, epsilon) > delta  # negative control: three in a hundred more are refuted


@pytest.mark.parametrize(("count", "each", "epsilon"), [(2, 0.6, 1.0), (3, 1.0, 0.5), (4, 0.2, 0.1), (6, 4.0, 8.0)])
def test_the_bound_for_adaptive_mechanisms_lies_just_above_what_adversaries_reach(count, each, epsilon):
    """Those choose t from another grid; without what is added between grid points, the bound would lie below a finer grid's."""
    reached = [adaptive_delta(each, count, epsilon, cells) for cells in (17, 48, 101)]
    bound = adaptive.adaptive_delta(count, each, epsilon)
    assert max(reached) <= bound <= 1.02 * max(reached)
    independent = bounded.bounded_delta(count, each, epsilon)
    assert independent <= bound <= 1.1 * independent


@pytest.mark.parametrize("count", [1, 2, 7, 40, 64, 65, 1000])
@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 1e-6), (0.1, 0.05), (8.0, 1e-9), (100.0, 1e-4), (1e-3, 1e-12)])
def test_totals_of_adaptive_mechanisms_are_those_that_they_were_chosen_for(count, epsilon, delta):
    each = accounting.exponential_epsilon(count, epsilon=epsilon, delta=delta)
    stated = adaptive.adaptive_total(Guarantee(each, 0.0, ADD), count, delta)
    assert stated.delta == delta and stated.relation == ADD and 0.99 * epsilon < stated.epsilon <= epsilon
    more = adaptive.adaptive_total(Guarantee(1.01 * each, 0.0, ADD), count, delta)
    assert stated.epsilon < more.epsilon < 1.1 * epsilon
    assert adaptive.adaptive_total(Guarantee(0.25, 0.0, ADD), 4, 0.0) == Guarantee(1.0, 0.0, ADD)


def test_totals_of_mechanisms_whose_ranges_have_no_squares():
    """At epsilon = 0 two of them have a delta of tanh(r/4) or more."""

    def total(each, count, delta):
        return adaptive.adaptive_total(Guarantee(each, 0.0, ADD), count, delta)

    assert total(1e-170, 2, 1e-300).epsilon >= 1e-170
    assert total(1e160, 2, 1e-6) == Guarantee(2e160, 1e-6, ADD)
    assert 1e-21 < total(0.001, 1000, 0.01).epsilon < 1e-18  # all of delta at 0; without a warning
    assert total(1e308, 2, 1e-6) == Guarantee.none(ADD) and total(0.0, 2, 1e-6) == Guarantee(0.0, 0.0, ADD)


@pytest.mark.parametrize(("count", "each", "delta"), [(2, 0.6, 0.02), (6, 4.0, 0.1), (16, 0.1, 1e-6)])
def test_no_adversary_exceeds_a_total_of_adaptive_mechanisms(count, each, delta):
    stated = adaptive.adaptive_total(Guarantee(each, 0.0, ADD), count, delta)
    assert 0.9 * delta < adaptive_delta(each, count, stated.epsilon) <= delta
    assert stated.epsilon < 0.99 * accounting.optimal({Guarantee(each, 0.0, ADD): count}, delta=delta).epsilon


def test_totals_beyond_what_ranges_use_leave_no_less_and_large_deltas_take_few_values(monkeypatch):
    calls, original = [], adaptive.adaptive_delta
    monkeypatch.setattr("dpjax.accounting.adaptive.adaptive_delta", lambda *given: calls.append(0) or original(*given))
    of = accounting.exponential_epsilon
    for count, delta in ((2, 0.9), (64, 1e-6), (64, 1 - 1e-15)):
        at = [of(count, epsilon=epsilon, delta=delta) for epsilon in (499.0, 500.0, 501.0, 1e4, 1e300)]
        assert all(a <= b * (1 + 1e-3) for a, b in itertools.pairwise(at))
    calls.clear()
    assert 1e-61 < of(64, epsilon=1e-300, delta=1e-60) < 1e-60
    assert len(calls) < 40  # thousands, if they began near epsilon


def test_a_single_exponential_mechanism_has_the_concentration_that_is_proved_and_hardly_less():
    """D_order for losses t and t - r, at the worst t."""
    r, t = 0.4, np.linspace(0.0, 0.4, 101)[1:-1]
    second = -np.expm1(t - r) / (np.exp(t) - np.exp(t - r))  # chance of the loss t under the second law
    for order in (1.01, 2.0, 4.0):
        moments = second * np.exp(order * t) + (1 - second) * np.exp(order * (t - r))
        assert 0.97 * r**2 / 8 * order < np.max(np.log(moments)) / (order - 1) <= r**2 / 8 * order


def test_rho_is_the_largest_that_the_conversion_gives():
    """Against all orders, not only those that are tried; and no less than what Bun and Steinke's conversion gives."""
    for epsilon, delta in [(0.1, 1e-6), (1.0, 1e-6), (1.0, 0.01), (10.0, 1e-10), (3.0, 1e-30)]:
        rho = float(accounting.largest_rho(epsilon, delta))
        a = np.geomspace(1e-3, 1e6, 100_001)
        exponents = a * ((a + 1) * rho - epsilon) - (a + 1) * np.log1p(1 / a) - np.log(a)
        assert np.log(delta) - 0.02 * abs(np.log(delta)) < exponents.min() <= np.log(delta)
        assert rho > (math.sqrt(epsilon - math.log(delta)) - math.sqrt(-math.log(delta))) ** 2


def test_rho_in_single_precision_is_rounded_down():
    rng = np.random.default_rng(0)
    epsilons = np.exp(rng.uniform(-16, 9, 4000)).astype(np.float32)
    deltas = np.exp(rng.uniform(-85, 0, 4000)).astype(np.float32)
    found = np.asarray(jax.jit(jax.vmap(lambda e, d: accounting.largest_rho(e, d, xp=jnp)))(epsilons, deltas), float)
    given = zip(epsilons.astype(float), deltas.astype(float), strict=True)
    exact = np.array([accounting.largest_rho(epsilon, delta) for epsilon, delta in given]) / (1 - 4e-6)
    assert np.all(found < exact * (1 - 1e-6)) and np.all(found > exact * (1 - 1e-5))


def test_rho_gives_something_up_for_rounding():
    """Otherwise single precision would exceed what is proved for the best a that is tried: the module's rho(a), in float64."""
    for epsilon, delta in [(0.1, 1e-6), (1.0, 1e-6), (1.0, 0.01), (10.0, 1e-10), (3.0, 1e-30)]:
        log = math.log(delta)
        best = math.sqrt(-log) * (math.sqrt(epsilon - log) + math.sqrt(-log)) / epsilon
        a = best * np.geomspace(1 / 8, 8, 97)
        proved = np.max((epsilon + (np.log(delta * a) + (a + 1) * np.log1p(1 / a)) / a) / (a + 1))
        assert (1 - 1e-5) * proved < accounting.largest_rho(epsilon, delta) < (1 - 1e-6) * proved


def test_concentrations_of_exponential_mechanisms_never_add_up_to_more_than_rho():
    """Each is r^2/8-zCDP."""
    for rho in np.random.default_rng(2).uniform(size=20).tolist():
        for count in range(1, 6):
            each = accounting.exponential_epsilon(count, rho=rho)
            assert count * Fraction(each) ** 2 / 8 <= Fraction(rho)


def test_totals_of_exponential_mechanisms_are_the_better_of_both():
    of = accounting.exponential_epsilon
    assert of(3, epsilon=1.0) == accounting.calibrate(Guarantee(1.0, 0.0, ADD), 3, accountant="basic").epsilon
    assert of(1, epsilon=1.0, delta=0.1) == pytest.approx(float(accounting.largest_range(1.0, 0.1)), rel=1e-10)
    assert of(5, epsilon=1.0, delta=1e-6) * 5 > 1.16  # neither sums of ranges nor concentration leave more than 1.001
    assert of(64, epsilon=1.0, delta=1e-6) > 1.06 * of(65, epsilon=1.0, delta=1e-6)  # concentration, for more than 64
    assert (
        of(2, epsilon=10.0, delta=0.01) > accounting.calibrate(Guarantee(10.0, 0.01, ADD), 2, delta_share=0.0).epsilon
    )
    for count, delta in itertools.product((2, 7, 64), (1e-300, 1e-9, 0.5, 1 - 2.0**-50)):
        assert of(count, epsilon=1e-6, delta=delta) * count >= 1e-6 * (1 - 1e-9)
        assert of(count, epsilon=400.0, delta=delta) * count >= 400 * (1 - 1e-9)
    assert of(50, rho=0.1) ** 2 * 50 / 8 == pytest.approx(0.1)


@pytest.mark.parametrize(
    "given",
    [
        {"count": 0, "epsilon": 1.0},
        {"count": 2},
        {"count": 2, "epsilon": 1.0, "rho": 0.1},
        {"count": 2, "delta": 1e-6, "rho": 0.1},
        {"count": 2, "epsilon": 0.0},
        {"count": 2, "epsilon": 1.0, "delta": 1.0},
        {"count": 2, "rho": math.inf},
    ],
)
def test_totals_of_exponential_mechanisms_refuse(given):
    with pytest.raises(ValueError, match=r"epsilon|rho|delta|count"):
        accounting.exponential_epsilon(**given)


@pytest.mark.parametrize(("count", "delta"), [(3, 1 - 1e-12), (20, 0.999), (4, 0.9999)])
def test_hardly_any_finite_loss_is_no_failure(count, delta):
    parts = {Guarantee(1.0, delta, accounting.REPLACE_ONE): count}
    assert accounting.total_delta(parts, 0.5) == 1.0 and accounting.total_epsilon(parts, 0.999) == math.inf
    assert accounting.total_epsilon(parts, 1.0) <= count


def test_what_no_float_holds_promises_nothing():
    huge = Guarantee(1e308, 0.0, accounting.ADD_OR_REMOVE_ONE)
    assert huge.group(10).is_none and huge.under_replace_one().is_none and accounting.basic({huge: 10}).is_none
    assert huge.group(1) == accounting.basic([huge]) == huge
    assert Guarantee(1.0, 0.0, accounting.REPLACE_ONE).to_pld(1e300).get_delta_for_epsilon(5.0) == 1.0
    nothing = Guarantee.none(accounting.ADD_OR_REMOVE_ONE)
    assert nothing.minus(huge) == nothing


def test_counts_of_numpy_are_pythons():
    """A sum of int8 wraps: 127 mechanisms would have cost less than one."""
    part = Guarantee(0.1, 0.0, accounting.REPLACE_ONE)
    assert accounting.total_epsilon({part: np.int8(127)}, 1e-9) == accounting.total_epsilon({part: 127}, 1e-9)
    assert accounting.total_delta({part: np.int8(127)}, 5.0) == accounting.total_delta({part: 127}, 5.0)
    with pytest.raises(ValueError, match="rows >= 2 drawn"):
        accounting.with_replacement(
            Guarantee(1.0, 1e-9, accounting.REPLACE_ONE), drawn=np.int8(70), rows=100, calibration="printed"
        )


def test_advanced_budgets_of_pure_mechanisms_keep_the_total_to_the_last_digit():
    for epsilon, count in itertools.product((0.1, 0.3, 0.7, 1.0, 2.5), (1, 7, 64, 1000)):
        each = accounting.calibrate(Guarantee(epsilon, 1e-6, REPLACE), count, accountant="advanced", delta_share=0.0)
        assert accounting.advanced(each, count, 1e-6).epsilon <= epsilon


def test_a_delta_that_is_kept_at_epsilon_0_needs_none():
    """Also with more total losses than are summed, where the least epsilon is read off a convolution."""
    parts = {Guarantee(1e-5, 0.0, REPLACE): 2000, Guarantee(3e-5, 0.0, REPLACE): 1000}
    assert not accounting.composition.few_losses(parts.values())
    assert accounting.total_delta(parts, 0.0) < 0.01 and accounting.total_epsilon(parts, 0.01) == 0.0


def test_a_group_so_large_that_no_exponential_is_a_float_has_no_delta_left_and_the_least_delta_is_rounded_up():
    assert Guarantee(400.0, 1e-300, REPLACE).group(2) == Guarantee(800.0, 1.0, REPLACE)
    least = math.ulp(0.0)  # (1 + exp(0.3)) times it is 2.35 times it
    assert Guarantee(0.3, least, REPLACE).group(2).delta == 3 * least


def test_advanced_composition_is_not_below_its_exact_value():
    with decimal.localcontext(prec=50):
        for e, k, slack in itertools.product((0.01, 0.3, 0.7, 1.0), (1, 3, 100, 12345), (1e-6, 0.1, 0.7)):
            exact = Decimal(e) * (-2 * k * Decimal(slack).ln()).sqrt() + 2 * k * Decimal(e) ** 2
            assert Decimal(accounting.advanced(Guarantee(e, 0.0, REPLACE), k, slack).epsilon) >= exact


def test_a_budget_is_never_below_its_grid():
    """Where it lies just above a multiple, the quotient is rounded down to a whole number."""
    above = [math.nextafter(k * 1e-4, 9.0) for k in range(1, 20_000)]
    assert all(0 <= losses.on_grid(epsilon, 1e-4) - epsilon < 1.001e-4 for epsilon in above)


def test_rates_of_rho_at_the_ends_of_floats():
    for rho, count in itertools.product((1e308, 1e-320, 3e-323, 1.0), (1, 3, 7, 10**6)):
        rate = accounting.exponential_epsilon(count, rho=rho)
        assert 0 < rate < math.inf and count * Fraction(rate) ** 2 <= 8 * Fraction(rho)


@pytest.mark.parametrize(
    ("epsilon", "delta", "count", "share"),
    [(0.013812145832942397, 8.065045865712636e-11, 5, 0.0), (6.243933127526241, 2.1678048758456338e-07, 10, 0.5)],
)
def test_what_is_calibrated_covers_the_total_at_its_delta(epsilon, delta, count, share):
    """The total epsilon that is reported for a delta is rounded up."""
    each = accounting.calibrate(Guarantee(epsilon, delta, "REPLACE_ONE"), count, delta_share=share)
    assert accounting.optimal({each: count}, delta=delta).covers(epsilon, delta)


def test_rates_and_rho_are_computed_in_float64_whatever_they_are_given_in():
    """In half precision rho was too large by 3e-5 of itself."""
    for kind in (np.float16, np.float32):
        delta = kind(0.13671875)  # a number of either
        assert accounting.largest_rho(1.0, delta) == accounting.largest_rho(1.0, float(delta))
        given = {"ranges": 10, "squares": 10}
        assert accounting.exponential_rate(1.0, delta, **given) == accounting.exponential_rate(
            1.0, float(delta), **given
        )


@pytest.mark.parametrize(("epsilon", "delta", "count"), [(0.2, 0.02, 2), (1.0, 1e-3, 10), (1.0, 1e-6, 100)])
def test_equal_pairs_with_a_bounded_range_keep_the_total(epsilon, delta, count):
    """Losses t and t - r, for many t, by the binomial law of how often each occurs."""
    each = bounded.independent_each(Guarantee(epsilon, delta, REPLACE_ONE), count)
    assert 0.999 * epsilon < bounded.independent_total(each, count, delta).epsilon <= epsilon
    r, often = each.epsilon, np.arange(count + 1)
    for t in np.linspace(0, r, 22)[1:-1]:
        p = math.expm1(r - t) / (math.exp(r - t) - math.exp(-t))
        loss = often * t + (count - often) * (t - r)
        assert stats.binom.pmf(often, count, p) @ np.maximum(-np.expm1(epsilon - loss), 0) <= delta


def unequal_delta(each, tops, epsilon):
    """The hockey-stick of independent pairs with the losses t and t - each, t one of `tops`, outcome by outcome."""
    chances = [math.expm1(t - each) / math.expm1(-each) for t in tops]
    found = 0.0
    for low in itertools.product((False, True), repeat=len(tops)):
        chance = math.prod(1 - p if down else p for p, down in zip(chances, low, strict=True))
        found += chance * max(-math.expm1(epsilon - sum(tops) + each * sum(low)), 0.0)
    return found


@pytest.mark.parametrize(("count", "each", "epsilon"), [(2, 1.0, 0.5), (3, 0.5, 0.1), (4, 2.0, 3.0), (3, 8.0, 0.01)])
def test_unequal_pairs_of_one_range_have_no_larger_delta_than_equal_ones_which_reach_it(count, each, epsilon):
    most, rng = bounded.bounded_delta(count, each, epsilon), np.random.default_rng(0)
    spread = rng.uniform(0, each, (500, count))
    near = np.clip((epsilon + rng.integers(1, count + 1, (500, 1)) * each) / (count + 1), 0, each)
    near = np.clip(near + 0.1 * each * rng.normal(size=(500, count)), 1e-9, each * (1 - 1e-9))
    assert max(unequal_delta(each, tops, epsilon) for tops in [*spread.tolist(), *near.tolist()]) <= most
    equal = max(unequal_delta(each, [t] * count, epsilon) for t in np.linspace(0, each, 1002)[1:-1].tolist())
    assert (1 - 1e-4) * most < equal <= most


@pytest.mark.parametrize(
    ("count", "epsilon", "delta", "more"), [(2, 1.0, 0.1, 1.13), (5, 1.0, 0.1, 1.2), (100, 1.0, 1e-6, 1.07)]
)
def test_independent_mechanisms_of_one_range_get_more_than_their_sum_or_zcdp_leaves(count, epsilon, delta, more):
    each = bounded.independent_each(Guarantee(epsilon, delta, REPLACE_ONE), count)
    before = accounting.exponential_rate(epsilon, delta, ranges=count, squares=count, independent=True)
    assert each.epsilon > more * before
    assert bounded.bounded_delta(count, each.epsilon, epsilon) <= delta
    assert bounded.bounded_delta(count, 1.001 * each.epsilon, epsilon) > delta
    assert bounded.independent_total(each, count, delta).covers(epsilon, delta)


def test_totals_of_independent_mechanisms_at_the_ends_of_floats_are_kept():
    for epsilon, delta, count in [
        (1e-6, 1e-12, 2),
        (1e-6, 1e-9, 64),
        (800.0, 1e-3, 3),
        (599.0, 1e-6, 64),  # sums of ranges and concentration come to 706
        (600.0, 0.9, 5),
        (1.0, 1e-200, 10),
        (0.01, 0.9, 2),
        (1.0, 0.0, 4),
    ]:
        total = Guarantee(epsilon, delta, REPLACE_ONE)
        each = bounded.independent_each(total, count)
        assert each.epsilon * count >= epsilon * (1 - 1e-9)
        assert bounded.independent_total(each, count, delta).covers(epsilon, delta)


def worst_delta(count, each, epsilon):
    """Of as many pairs with the losses t and t - each, at the worst t, in 60 digits."""
    with decimal.localcontext(prec=60):
        r, e, found = Decimal(each), Decimal(epsilon), Decimal(0)
        for j in range(count):
            t = (e + (j + 1) * r) / (count + 1)
            if t < r:
                a, b = (t.exp() - 1) / (r.exp() - 1), (1 - (-t).exp()) / (1 - (-r).exp())
                p, q = (sum(math.comb(count, i) * x**i * (1 - x) ** (count - i) for i in range(j + 1)) for x in (a, b))
                found = max(found, p - e.exp() * q)
        return found


@pytest.mark.parametrize("count", [2, 7, 40])
@pytest.mark.parametrize(("epsilon", "delta"), [(1e-3, 1e-9), (0.3, 1e-30), (1.0, 1e-6), (4.0, 0.3), (50.0, 1e-4)])
def test_ranges_of_independent_mechanisms_are_as_long_as_they_may_be(count, epsilon, delta):
    each = bounded.independent_each(Guarantee(epsilon, delta, REPLACE_ONE), count).epsilon
    assert worst_delta(count, each, epsilon) <= Decimal(delta)
    if each > 1.001 * epsilon / count:  # where it is no longer the sum of ranges alone that is kept
        assert worst_delta(count, each * (1 + 1e-5), epsilon) > Decimal(delta)


def test_many_independent_mechanisms_lose_a_250th_at_most(monkeypatch):
    """257 and more are tried at 256 positions; here 41 and more at 40, which loses a 40th."""
    total = Guarantee(1.0, 1e-6, REPLACE_ONE)
    assert bounded.independent_each(total, 257).epsilon > 0.994 * bounded.independent_each(total, 256).epsilon
    best = [bounded.independent_each(total, count).epsilon for count in (41, 100, 200)]
    monkeypatch.setattr(bounded, "_CELLS", 40)
    bounded._each.cache_clear()
    for count, most in zip((41, 100, 200), best, strict=True):
        assert 0.975 * most < bounded.independent_each(total, count).epsilon < most
    bounded._each.cache_clear()


@pytest.mark.parametrize(("epsilon", "delta"), [(1e-3, 1e-9), (0.3, 0.01), (1.0, 1e-6), (20.0, 0.5)])
def test_more_independent_mechanisms_get_no_more_each_but_more_together(epsilon, delta):
    counts = [*range(1, 40), 100, 255, 256, 257, 300, 1000, 10**6]
    each = [bounded.independent_each(Guarantee(epsilon, delta, REPLACE_ONE), count).epsilon for count in counts]
    assert all(a >= b for a, b in itertools.pairwise(each))
    assert all(count * range_ >= epsilon for count, range_ in zip(counts, each, strict=True))


@pytest.mark.parametrize(
    ("wrong", "kind", "message"),
    [
        ({"count": 0}, ValueError, "count must be"),
        ({"each": 0.0}, ValueError, "each must be"),
        ({"epsilon": 601}, ValueError, "epsilon must be"),
    ],
)
def test_the_delta_of_independent_mechanisms_refuses_by_name(wrong, kind, message):
    with pytest.raises(kind, match=message):
        bounded.bounded_delta(**({"count": 2, "each": 0.5, "epsilon": 1.0} | wrong))


def excess_of_range(length, epsilon):
    """delta(epsilon) of the worst pair with losses in an interval of this length (Dong, Durfee, Rogers 2020), in 400 digits."""
    with decimal.localcontext(prec=400):
        apart = Decimal(length) - Decimal(epsilon)
        if apart <= 0:
            return Decimal(0)
        u = (-apart / 2).exp()
        return (1 - u) ** 2 / (1 - (-Decimal(epsilon)).exp() * u**2)


@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 5e-33), (5.494012225600808, 4.972879495648797e-32)])
def test_ranges_are_rounded_to_the_safe_side_where_they_exceed_epsilon_by_little(epsilon, delta):
    assert excess_of_range(float(accounting.largest_range(epsilon, delta)), epsilon) <= Decimal(delta)
    longer = Guarantee(math.nextafter(epsilon, math.inf), 0.0, ADD)
    for total in (bounded.independent_total, adaptive.adaptive_total):
        assert excess_of_range(longer.epsilon, total(longer, 1, delta).epsilon) <= Decimal(delta)


def test_ranges_are_rounded_to_the_safe_side_in_float32_too():
    longest = float(accounting.largest_range(jnp.float32(1.0), jnp.float32(2e-15), xp=jnp))
    assert excess_of_range(longest, 1.0) <= Decimal("2e-15")


@pytest.mark.parametrize(("count", "rate"), [(5, 0.1), (9, 0.3), (10, 0.7)])
def test_sums_of_ranges_are_rounded_up(count, rate):
    each = Guarantee(rate, 0.0, ADD)
    assert bounded.independent_total(each, count, 0.0).epsilon >= count * Fraction(rate)


@pytest.mark.parametrize("total", [bounded.independent_total, adaptive.adaptive_total])
def test_totals_of_exponential_mechanisms_refuse_a_delta_of_each(total):
    with pytest.raises(ValueError, match=r"each must have a delta of 0"):
        total(Guarantee(0.5, 1e-3, ADD), 3, 1e-6)
    with pytest.raises(TypeError, match=r"each must be a Guarantee, got 0.5"):
        total(0.5, 3, 1e-6)
    with pytest.raises(TypeError, match=r"count must be an int, got 2.5"):
        total(Guarantee(0.5, 0.0, ADD), 2.5, 1e-6)
    with pytest.raises(ValueError, match=r"delta must be < 1.0"):
        total(Guarantee(0.5, 0.0, ADD), 3, 1.0)


def test_other_arguments_about_exponential_mechanisms_are_refused_by_name():
    with pytest.raises(TypeError, match=r"count must be an int, got 2.5"):
        bounded.independent_each(Guarantee(1.0, 1e-6, ADD), 2.5)
    with pytest.raises(ValueError, match=r"rate must be > 0.0, got -1"):
        accounting.exponential_total(-1, ranges=1.0, squares=1.0, delta=0.1)
    with pytest.raises(TypeError, match=r"ranges must be a real number, got None"):
        accounting.exponential_total(1.0, ranges=None, squares=1.0, delta=0.1)


def test_advanced_calibration_ends_for_subnormal_budgets():
    """A product of subnormal numbers may not fall: this once went on for ever."""
    for epsilon in (1e-320, 5e-324):
        each = accounting.calibrate(Guarantee(epsilon, 1e-6, ADD), 100, accountant="advanced")
        assert each.epsilon == 0.0 or accounting.advanced(each, 100, 5e-7).epsilon <= epsilon
