"""The Reorder-Slice-Compute accountant against sums over every outcome pair of Lemma 2.4, round by round."""

import dataclasses
import decimal
import functools
import itertools
import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from dpjax import accounting
from dpjax.accounting import ADD_OR_REMOVE_ONE, Guarantee, slicing, synchronization
from dpjax.accounting.slicing import Run
from dpjax.optimizers.interior_point import planning

ADD, REPLACE = accounting.ADD_OR_REMOVE_ONE, accounting.REPLACE_ONE


def run(slice_epsilon, compute_epsilon, compute_delta=0.0, **shape):
    return Run(slice_epsilon, Guarantee(compute_epsilon, compute_delta, ADD), **shape)


# ------------------------------------------------------------------------- a reference: every outcome, 40 digits


ALIKE = decimal.Context(prec=25)


def merged(pairs):
    """Outcome pairs (P_0, P_1), those of equal losses ln(P_1 / P_0) added up."""
    law = {}
    for first, second in pairs:
        if first or second:
            ratio = ALIKE.divide(second, first) if first else Decimal("inf")
            both = law.setdefault(ratio, [Decimal(0), Decimal(0)])
            both[0], both[1] = both[0] + first, both[1] + second
    return [tuple(pair) for pair in law.values()]


def together(one, other):
    return merged((a * c, b * d) for (a, b), (c, d) in itertools.product(one, other))


def slice_outcomes(epsilon):
    """Lemma 2.4's outcome pairs: those with beta = 0 and those with beta = 1, from the text's R^b, nothing simplified."""
    up, size = Decimal(epsilon).exp(), 2 + math.ceil(1.0 / epsilon)
    noise = [(1 - 1 / up) * up**-i for i in range(size)]
    t = [max(Decimal(0), up**-i + up ** -(i + 1) - 1) for i in range(size)]
    keep = {0: [t[i] * up**i for i in range(size)], 1: [t[i] * up ** (i + 1) for i in range(size)]}
    assert t[-2] == 0  # beyond, R^b(i) = (i-b, 1): the outcome (i, 1) has P_0 = (1-r) r^i, P_1 = r P_0
    apart = [(noise[i] * keep[0][i], noise[i] * keep[1][i]) for i in range(size - 1)]
    done = [(noise[i] * (1 - keep[0][i]), noise[i + 1] * (1 - keep[1][i + 1])) for i in range(size - 1)]
    return merged(apart), merged([*done, (up ** -(size - 1), up**-size)])


def responses(epsilon, delta, count):
    """Randomised response RR(epsilon, delta), `count` times."""
    odds, rest = Decimal(epsilon).exp(), 1 - Decimal(delta)
    one = [(rest / (1 + odds), rest * odds / (1 + odds)), (rest * odds / (1 + odds), rest / (1 + odds))]
    one += [(Decimal(delta), Decimal(0)), (Decimal(0), Decimal(delta))]
    law = [(Decimal(1), Decimal(1))]
    for _ in range(count):
        law = together(law, one)
    return law


def enumerated(case, calls):
    """All outcome pairs of W with at most `calls` calls, and the pairs that are left open."""
    near, far = case.compute, case.compute_apart
    apart, done = slice_outcomes(case.slice_epsilon)
    apart = together(apart, responses(far.epsilon, far.delta, case.computes))
    done = together(done, responses(near.epsilon, near.delta, case.computes))
    law, open_ = [], [(Decimal(1), Decimal(1))]
    for _ in range(calls):
        law += together(open_, done)
        open_ = together(open_, apart)
    return merged(law), open_


def excess(law, epsilon):
    """The larger of the two hockey-stick divergences, both ways."""
    odds = Decimal(epsilon).exp()
    one = sum((max(Decimal(0), b - odds * a) for a, b in law), Decimal(0))
    return max(one, sum((max(Decimal(0), a - odds * b) for a, b in law), Decimal(0)))


def bounds(case, epsilon, calls=50):
    """Rigorous bounds on W's delta: what is left counts for nothing, or (if slices may go on) as infinite loss."""
    with decimal.localcontext(prec=40):
        law, left = enumerated(case, min(calls, case.slices or calls))
        if case.slices is not None and case.slices <= calls:
            exact = excess(law + left, epsilon)
            return exact, exact
        low = excess(law, epsilon)
        return low, low + max(sum(a for a, _ in left), sum(b for _, b in left))


CASES = {
    "both half": (run(0.5, 0.5), 3.0),
    "tiny delta": (run(0.5, 0.5), 15.0),
    "both one": (run(1.0, 1.0), 8.0),
    "small": (run(0.1, 0.1), 2.0),
    "more compute": (run(0.2, 0.7), 4.0),
    "more noise": (run(0.8, 0.1), 3.0),
    "no compute": (run(0.3, 0.0), 1.0),
    "epsilon zero": (run(0.4, 0.2), 0.0),
    "large noise": (run(1.2, 0.6), 9.0),
    "deltas": (run(0.3, 0.2, 1e-7), 2.5),
    "three computes": (run(0.4, 0.2, 1e-9, computes=3), 3.0),
    "one slice": (run(0.4, 0.3, slices=1), 0.5),
    "b = 0 against 1": (run(0.5, 0.05, slices=1), 0.3),
    "three slices": (run(0.4, 0.3, 1e-6, slices=3, computes=2), 2.0),
    "replacement": (run(0.3, 0.4, replacement=Guarantee(0.5, 0.0, REPLACE)), 2.0),
}


@pytest.mark.parametrize("name", CASES)
def test_delta_is_the_sum_over_all_outcomes(name):
    case, epsilon = CASES[name]
    low, high = bounds(case, epsilon, calls=90 if case.slice_epsilon > 1 else 50)
    assert low > 0 and high <= low * (1 + Decimal("1e-9"))
    found = Decimal(case.delta(epsilon))
    assert low <= found <= high * (1 + Decimal("1e-9"))


def test_many_computes_on_a_slice_are_bounded_in_groups(monkeypatch):
    """With 2^31 of them the lattice would fill the memory; with 256 it took minutes."""
    monkeypatch.setattr(slicing, "_MOST_COMPUTES", 16)
    case = run(0.3, 0.01, 1e-9, slices=3, computes=20)
    exact = max(slicing._excess_of_sum(case, bit, 0.5) for bit in (0, 1))
    pairs = run(0.3, 0.02, 2e-9, slices=3, computes=10)  # two at once are (0.02, 2e-9)-private
    assert exact < case.delta(0.5) < 1.5 * exact and case.delta(0.5) == pytest.approx(pairs.delta(0.5), rel=1e-6)
    many = run(0.3, 1e-12, 1e-14, computes=2**31)
    assert 1e-3 < many.delta(1.0) < 1e-2
    assert many.loss_distribution().get_delta_for_epsilon(1.0) == pytest.approx(many.delta(1.0), rel=1e-2)
    assert run(0.3, 0.1, computes=2**31).delta(1.0) == 1.0


def test_total_delta_is_the_run_in_plain_numbers():
    found = slicing.total_delta(
        slice_epsilon=0.2,
        compute_epsilon=0.1,
        total_epsilon=1.5,
        compute_delta=1e-6,
        slices=9,
        computes=2,
        applications=3,
        extra=[Guarantee(0.1, 0.0, ADD)],
    )
    case = run(0.2, 0.1, 1e-6, slices=9, computes=2, applications=3, extra=[Guarantee(0.1, 0.0, ADD)])
    assert found == case.delta(1.5)


def test_one_direction_alone_would_be_too_little():
    """Negative control for the bounds: numerator b = 0 only, or one compute too few, falls below them."""
    case, epsilon = CASES["both half"]
    low, _ = bounds(case, epsilon)
    assert Decimal(slicing._excess_of_sum(case, 0, epsilon)) < low / 10
    assert Decimal(run(0.5, 0.49).delta(epsilon)) < low


@pytest.mark.parametrize("epsilon", [1e-4, 0.03, 0.2812, 0.4812118, 0.4813, 0.7, 2.0])
@pytest.mark.parametrize("bit", [0, 1])
def test_a_call_has_four_losses(epsilon, bit):
    """The closed forms against the table of the synchronisation mapping."""
    size = synchronization.surely_synchronised(epsilon) + 3
    own, other = (synchronization.law(epsilon, size, which) for which in (bit, 1 - bit))
    go_on, (losses, masses) = slicing._call(epsilon, bit)
    assert math.isclose(go_on, own[:, 0].sum(), rel_tol=1e-10)
    apart = own[:, 0] > 1e-14
    sign = 1 if bit else -1
    np.testing.assert_allclose(np.log(own[apart, 0] / other[apart, 0]), sign * epsilon, rtol=0, atol=1e-8)
    last = size - 4
    expected = [own[:last, 1].sum(), own[last, 1], own[last + 1 :, 1].sum() + math.exp(-(size + bit) * epsilon)]
    np.testing.assert_allclose(masses, expected, rtol=1e-9, atol=1e-13)
    ratios = np.log(own[:, 1] / other[:, 1])
    np.testing.assert_allclose(ratios[:last], losses[0], rtol=0, atol=1e-7)
    np.testing.assert_allclose(ratios[last:], [losses[1]] + [losses[2]] * 3, rtol=0, atol=1e-7)


# ------------------------------------------------------------------------------------ references of the project


@pytest.mark.parametrize(
    ("epsilon", "expected"),
    [(0.1, (4.83e-3, 3.31e-4, 1.34e-6)), (0.05, (1.31e-4, 4.12e-7, 4.69e-12))],
)
def test_reference_values(epsilon, expected):
    """Computed elsewhere with losses rounded up; the accountant agrees with them to half a per cent."""
    for total, value in zip((0.5, 1.0, 2.0), expected, strict=True):
        found = slicing.total_delta(slice_epsilon=epsilon, compute_epsilon=epsilon, total_epsilon=total)
        assert math.isclose(found, value, rel_tol=5e-3)


def test_reference_steps():
    printed = slicing.step_epsilon(total_epsilon=1.0, total_delta=1e-6, accountant="printed")
    numerical = slicing.step_epsilon(total_epsilon=1.0, total_delta=1e-6)
    assert round(printed, 4) == 0.0044 and math.isclose(numerical, 0.0533, rel_tol=3e-3)
    assert 12 < numerical / printed < 13
    assert round(slicing.step_epsilon(total_epsilon=1.0, total_delta=1e-9), 4) == 0.0338


def convolved(slice_epsilon, compute_epsilon, total, cell, calls=80):
    """W by float convolution of tables on a grid, losses rounded up, for b = 1 against 0."""
    size = synchronization.surely_synchronised(slice_epsilon) + math.ceil(40 / slice_epsilon)
    own, other = (synchronization.law(slice_epsilon, size, bit) for bit in (1, 0))

    def histogram(beta, epsilon):
        kept = own[:, beta] > 0
        up = 1 / (1 + math.exp(-epsilon))
        slice_loss = np.log(own[kept, beta] / other[kept, beta])
        losses = np.add.outer(slice_loss, [epsilon, -epsilon]).ravel()
        masses = np.multiply.outer(own[kept, beta], [up, 1 - up]).ravel()
        index = np.ceil(losses / cell - 1e-9).astype(int)
        return index.min(), np.bincount(index - index.min(), masses)

    (low, table), (low_end, end) = histogram(0, 2 * compute_epsilon), histogram(1, compute_epsilon)
    delta, power = 0.0, np.ones(1)
    for k in range(calls):
        masses = np.convolve(power, end)
        losses = (k * low + low_end + np.arange(len(masses))) * cell
        delta += np.sum(masses * -np.expm1(np.minimum(total - losses, 0.0)))
        power = np.convolve(power, table)
    return delta + power.sum()


@pytest.mark.parametrize("total", [0.5, 1.0, 1.9])
def test_agrees_with_rounded_convolutions(total):
    rough = convolved(0.06, 0.06, total, cell=0.06 / 40)
    found = slicing.total_delta(slice_epsilon=0.06, compute_epsilon=0.06, total_epsilon=total)
    assert found <= rough <= 1.02 * found


def test_one_call_agrees_with_dp_accounting():
    """A run of one slice: outcome pairs times responses, given to dp-accounting as two mass functions."""
    from dp_accounting.pld import privacy_loss_distribution

    case = run(0.35, 0.2, slices=1)
    with decimal.localcontext(prec=40):
        law, left = enumerated(case, 1)
        masses = [{i: float(pair[bit].ln()) for i, pair in enumerate(law + left) if pair[bit]} for bit in (0, 1)]
    theirs = privacy_loss_distribution.from_two_probability_mass_functions(
        *masses, value_discretization_interval=1e-6, symmetric=False
    )
    for total in (0.0, 0.1, 0.3, 0.6):
        assert math.isclose(case.delta(total), theirs.get_delta_for_epsilon(total), rel_tol=1e-4)


# ------------------------------------------------------------------------------------------------- compositions


def multiplied_out(case, epsilons):
    """Applications and extras outcome by outcome, in float64: the larger hockey-stick divergence at each epsilon."""
    with decimal.localcontext(prec=40):
        once, left = enumerated(dataclasses.replace(case, applications=1, extra=()), 40)
        once += [(Decimal(0), sum(b for _, b in left)), (sum(a for a, _ in left), Decimal(0))]
        parts = [once] * case.applications + [responses(part.epsilon, part.delta, 1) for part in case.extra]
    law = np.ones((2, 1))
    for part in parts:
        law = np.einsum("bi,jb->bij", law, np.array(part, float)).reshape(2, -1)
    odds = np.exp(epsilons)[:, None]
    return np.maximum(np.maximum(law[1] - odds * law[0], 0).sum(1), np.maximum(law[0] - odds * law[1], 0).sum(1))


@pytest.mark.parametrize(
    ("case", "epsilons"),
    [
        (run(0.25, 0.25, applications=2), [1.0, 4.0, 9.0]),
        (run(0.25, 0.25, 1e-8, extra=[Guarantee(0.25, 1e-8, ADD)] * 3), [2.0, 4.0]),
        (run(0.3, 0.3, extra={Guarantee(0.17, 0.0, ADD): 2}), [1.0, 9.0]),
    ],
)
def test_compositions_are_just_above_the_exact_ones(case, epsilons):
    for epsilon, exact in zip(epsilons, multiplied_out(case, epsilons), strict=True):
        assert exact > 1e-12 and exact <= case.delta(epsilon) <= exact * 1.005 + 5e-15


def test_the_grid_costs_little_down_to_1e_12():
    """One run, sent through the grid by an extra that does nothing. In the last case, b = 0 against 1 is the larger divergence."""
    idle = [Guarantee(1e-12, 0.0, ADD)]
    for case, total in (
        (run(0.05, 0.05), 0.5),
        (run(0.05, 0.05), 1.0),
        (run(0.05, 0.05), 2.0),
        CASES["b = 0 against 1"],
    ):
        exact = case.delta(total)
        assert exact * (1 - 1e-10) <= dataclasses.replace(case, extra=idle).delta(total) <= 1.003 * exact


def test_split_masses_keep_both_probabilities():
    losses, masses = np.array([-0.37, 0.0, 0.11, 1.26, math.inf]), np.array([0.2, 0.1, 0.4, 0.25, 0.05])
    grid, infinite = accounting.losses.split_masses((losses, masses), 0.25)
    points, shares = 0.25 * np.array(list(grid)), np.array(list(grid.values()))
    assert infinite == 0.05 and math.isclose(shares.sum(), 0.95)
    assert math.isclose(np.sum(shares * np.exp(-points)), np.sum(masses * np.exp(-losses)))


def test_masses_too_thin_for_the_grid_become_infinite_loss():
    """Dropped, they would be missing from delta at every epsilon; 1e-28 is under 2^-90, where the grid ends."""
    grid, infinite = accounting.losses.split_masses((np.array([0.0, 5.0]), np.array([1.0, 1e-28])), 0.25)
    assert grid == {0: 1.0} and infinite == 1e-28


def test_more_of_anything_costs_more():
    base = run(0.1, 0.1, slices=20)
    dearer = [
        run(0.1, 0.1, slices=21),
        run(0.1, 0.1),
        run(0.1, 0.1, slices=20, computes=2),
        run(0.1, 0.1, slices=20, applications=2),
        run(0.1, 0.1, 1e-9, slices=20),
        run(0.1, 0.1, slices=20, extra=[Guarantee(0.01, 0.0, ADD)]),
    ]
    assert all(other.delta(1.0) > base.delta(1.0) for other in dearer)
    cheaper = run(0.1, 0.1, slices=20, replacement=Guarantee(0.1, 0.0, REPLACE))
    assert cheaper.delta(1.0) < base.delta(1.0) / 10
    assert run(0.1, 0.1, slices=100).delta(1.0) == pytest.approx(run(0.1, 0.1).delta(1.0), rel=1e-12)


def test_a_replacement_never_counts_less_than_an_insertion():
    """When the data run out, slices that stay apart differ by one element more."""
    silent = Guarantee(0.0, 0.0, REPLACE)
    assert run(0.1, 0.2, 1e-6, replacement=silent).compute_apart == Guarantee(0.2, 1e-6, ADD)


def test_infinite_loss_does_not_grow_with_the_slices():
    """At most (1 + e^eps) delta per call, and 1/P[stop] calls on average; at least delta."""
    slice_epsilon, compute_epsilon, delta = 0.1, 0.2, 1e-5
    found = run(slice_epsilon, compute_epsilon, delta).delta(60.0)
    stop = min(synchronization.stop_probability(slice_epsilon, bit) for bit in (0, 1))
    assert delta < found < (1 + math.exp(compute_epsilon)) * delta / stop


def test_smaller_noise_is_larger_noise_on_a_random_size():
    """Geom(1 - exp(-s')) = Geom(1 - exp(-s)) + X for s' <= s: unequal slices are covered by the largest s."""
    count = np.arange(200)
    for small, large in [(0.1, 0.5), (0.56, 0.57), (0.9, 2.0)]:
        slow, fast = math.exp(-small), math.exp(-large)
        size = np.where(count == 0, 1.0, (slow - fast) * slow ** np.maximum(count - 1, 0)) * (1 - slow) / (1 - fast)
        total = np.convolve(size, (1 - fast) * fast**count)[:200]
        np.testing.assert_allclose(total, (1 - slow) * slow**count, rtol=1e-9, atol=1e-300)
    # The bound itself is not monotone: there the argument is needed.
    assert run(0.5625, 0.125).delta(0.15) > run(0.565, 0.125).delta(0.15) * 1.0004


# ---------------------------------------------------------------------------------------- the other accountants


def test_printed_calls():
    """Compared with the negative binomial law of the calls; and not one more than the lemmas give."""
    for slack, count in itertools.product((0.5, 1e-3, 1e-12), (1, 2, 5, 40, 400)):
        calls = slicing.printed_calls(slack, count)
        assert stats.nbinom.sf(calls - count, count, 1 / 6) <= slack
        if count == 1:
            assert (5 / 6) ** calls <= slack < (5 / 6) ** (calls - 1)
        else:
            tails = [math.exp(-count * (x - 1 - math.log(x))) for x in ((calls + 1) / 6 / count, calls / 6 / count)]
            assert tails[0] <= slack * (1 + 1e-12) and (tails[1] > slack or calls < 6 * count)


def test_printed_guarantee():
    case = run(0.004, 0.005, 1e-12, slices=100, computes=2, extra=[Guarantee(0.1, 1e-8, ADD)])
    found = case.guarantee(delta=1e-6, accountant="printed")
    slack = 1e-6 - 1e-8 - 2 * 2 * 100 * math.exp(0.01) * 1e-12
    assert math.isclose(found.epsilon, 0.1 + math.ceil(math.log(1 / slack) / math.log(1.2)) * (0.004 + 4 * 0.005))
    assert found.delta == 1e-6 and found.relation == ADD
    twice = dataclasses.replace(case, applications=2, extra=()).guarantee(delta=1e-6, accountant="printed")
    assert math.isclose(twice.epsilon, slicing.printed_calls(1e-6 - 8 * 100 * math.exp(0.01) * 1e-12, 2) * 0.024)


def test_the_printed_analysis_promises_something_as_long_as_its_own_deltas_are_less_than_all():
    """With 10 computes at e = 1 they are 2 e^2 d each."""
    spent = 10 * 2 * math.exp(2.0) * 1e-8
    for total, finite in ((0.999 * spent, False), (1.001 * spent, True)):
        promised = run(0.1, 1.0, 1e-8, slices=10).guarantee(delta=total, accountant="printed")
        assert promised.is_none != finite and (promised.delta == total) == finite


def test_plain_composition_of_the_same_run():
    case = run(0.01, 0.02, 1e-9, slices=30, computes=2, applications=3, extra=[Guarantee(0.5, 1e-8, ADD)])
    each = case.compute.under_replace_one()
    assert (case.compute_apart.epsilon, case.compute_apart.delta) == (each.epsilon, each.delta)
    basic = case.guarantee(delta=1e-6, accountant="basic")
    assert math.isclose(basic.epsilon, 180 * 0.04 + 0.5) and math.isclose(basic.delta, 180 * each.delta + 1e-8)
    advanced = case.guarantee(delta=1e-6, accountant="advanced")
    slack = float(Fraction(1e-6) - Fraction(1e-8) - 180 * Fraction(each.delta))
    assert math.isclose(advanced.epsilon, accounting.advanced(each, 180, slack).epsilon + 0.5)
    parts = {case.compute_apart: 180, Guarantee(0.5, 1e-8, ADD): 1}
    optimal = case.guarantee(delta=1e-6, accountant="optimal")
    assert optimal.epsilon == accounting.total_epsilon(parts, 1e-6) < basic.epsilon


@pytest.mark.slow
def test_best_says_which():
    few, many = run(0.05, 0.05, slices=3), run(0.05, 0.05, slices=300)
    assert few.best(delta=1e-6) == ("optimal", few.guarantee(delta=1e-6, accountant="optimal"))
    accountant, guarantee = many.best(delta=1e-6)
    assert accountant == "numerical"
    assert all(
        guarantee.epsilon <= many.guarantee(delta=1e-6, accountant=other).epsilon for other in slicing.ACCOUNTANTS
    )
    # The numerical accountant is at no time worse than the printed one.
    for slice_epsilon, compute_epsilon, delta in itertools.product((0.01, 0.5), (0.01, 0.5), (1e-3, 1e-9)):
        case = run(slice_epsilon, compute_epsilon)
        assert case.guarantee(delta=delta).epsilon < case.guarantee(delta=delta, accountant="printed").epsilon / 5


@pytest.mark.parametrize(
    ("case", "accountant"),
    [
        (run(0.1, 0.1), "basic"),
        (run(0.1, 0.1), "advanced"),
        (run(0.1, 0.1), "optimal"),
        (run(0.1, 0.1, 1e-9), "printed"),
        (run(1.0, 0.1, slices=2), "printed"),
        (run(0.1, 0.1, 1e-7, slices=5), "basic"),
        (run(0.1, 0.1, 1e-7, slices=5), "printed"),
        (run(0.1, 0.1, 1e-7, slices=5), "advanced"),
        (run(0.1, 0.6, slices=5), "advanced"),
        (run(0.1, 0.1, 1e-6), "numerical"),
        (run(0.1, 400.0, slices=5), "numerical"),
        (run(0.1, 0.1, slices=2, extra=[Guarantee(math.inf, 1.0, ADD)]), "basic"),
    ],
)
def test_no_promise_is_said_plainly(case, accountant):
    assert case.guarantee(delta=1e-6, accountant=accountant) == Guarantee(math.inf, 1.0, ADD)


def test_numerical_guarantee_is_on_the_safe_side():
    for case in (run(0.1, 0.2), run(0.8, 0.9, 1e-8, slices=7), run(0.1, 0.1, applications=3)):
        found = case.guarantee(delta=1e-6)
        assert case.delta(found.epsilon) <= 1e-6 < case.delta(found.epsilon * (1 - 1e-6))
    assert run(0.01, 0.01).guarantee(delta=0.9).epsilon == 0.0


# -------------------------------------------------------------------------------------------------- calibration


def test_step_is_the_largest():
    for shape in ({}, {"computes": 3}, {"compute_delta": 1e-9}, {"slices": 4}):
        step = slicing.step_epsilon(total_epsilon=0.7, total_delta=1e-7, **shape)
        delta = shape.pop("compute_delta", 0.0)
        assert run(step, step, delta, **shape).delta(0.7) <= 1e-7 < run(step * 1.00001, step, delta, **shape).delta(0.7)


@pytest.mark.parametrize("accountant", ["printed", "basic", "advanced", "optimal"])
def test_step_by_the_other_methods(accountant):
    step = slicing.step_epsilon(total_epsilon=1.0, total_delta=1e-6, accountant=accountant, slices=50)
    epsilons = [
        run(x, x, slices=50).guarantee(delta=1e-6, accountant=accountant).epsilon for x in (step, step * (1 + 1e-6))
    ]
    assert epsilons[0] <= 1.0 < epsilons[1]


@pytest.mark.thorough
def test_huge_totals_are_no_division_by_zero():
    """A run whose losses are at most s + 2 e = 3 s a call, of which there are more than 90 with probability 1e-6."""
    assert run(2.0, 2.0).delta(600.0) <= 1e-6 < run(2.1, 2.1).delta(600.0)
    assert 1.5 < slicing.largest(lambda step: run(step, step), Guarantee(5000.0, 1e-6, ADD), precision=1.0) < 4.0


@pytest.mark.parametrize("slice_epsilon", [20.0, 36.0, 40.0, 345.0, 800.0])
def test_little_slice_noise_hides_nothing(slice_epsilon):
    """The larger dataset goes on with probability 1 - r, at a loss of s a call: two calls are more than s nearly surely."""
    for bit in (0, 1):
        go_on, (_, stop) = slicing._call(slice_epsilon, bit)
        assert math.isclose(go_on + stop.sum(), 1.0, rel_tol=1e-15)
    assert math.isclose(slicing._call(slice_epsilon, 1)[0], -math.expm1(-slice_epsilon), rel_tol=1e-15)
    assert run(slice_epsilon, 0.0, slices=2).delta(1.5 * slice_epsilon) >= 1 - 3 * math.exp(-slice_epsilon / 2)


@pytest.mark.parametrize("extra", [(), [Guarantee(1e-12, 0.0, ADD)]])
def test_calls_that_are_not_summed_up_count_as_infinite_loss(extra, monkeypatch):
    """On the larger dataset 1 - e^-20 of the mass goes on after each call: nearly all of it is beyond 1.5 s, summed up or not."""
    monkeypatch.setattr(slicing, "_CALLS", 6)
    assert run(20.0, 0.0, extra=extra).delta(30.0) > 0.9998


@pytest.mark.thorough
def test_compute_epsilon_and_split():
    total = {"total_epsilon": 1.0, "total_delta": 1e-6}
    equal = slicing.step_epsilon(**total)
    assert math.isclose(slicing.compute_epsilon(slice_epsilon=equal, **total), equal, rel_tol=1e-6)
    found = slicing.split(cost=lambda slices, compute: 1 / slices + 9 / compute, **total)
    assert found.cost < 10 / equal and found.slice_epsilon < equal < found.compute_epsilon
    assert run(found.slice_epsilon, found.compute_epsilon).delta(1.0) <= 1e-6
    for slice_epsilon in (0.9 * found.slice_epsilon, 1.1 * found.slice_epsilon):
        compute = slicing.compute_epsilon(slice_epsilon=slice_epsilon, **total)
        assert found.cost < 1.0005 * (1 / slice_epsilon + 9 / compute)


def test_no_budget_is_an_error():
    with pytest.raises(ValueError, match="no budget"):
        slicing.step_epsilon(total_epsilon=1.0, total_delta=1e-9, compute_delta=1e-9)
    with pytest.raises(ValueError, match="no budget"):
        slicing.step_epsilon(total_epsilon=1.0, total_delta=1e-6, accountant="basic")


@pytest.mark.parametrize(
    ("call", "error", "name"),
    [
        (lambda: run(0.0, 0.1), ValueError, "slice_epsilon"),
        (lambda: run(math.inf, 0.1), ValueError, "slice_epsilon"),
        (lambda: run("1", 0.1), TypeError, "slice_epsilon"),
        (lambda: run(0.1, -0.1), ValueError, "epsilon"),
        (lambda: run(0.1, 0.1, slices=0), ValueError, "slices"),
        (lambda: run(0.1, 0.1, computes=1.5), TypeError, "computes"),
        (lambda: run(0.1, 0.1, applications=0), ValueError, "applications"),
        (lambda: Run(0.1, 0.1), TypeError, "compute"),
        (lambda: Run(0.1, Guarantee(0.1, 0.0, REPLACE)), ValueError, "compute must be under ADD"),
        (lambda: run(0.1, 0.1, replacement=Guarantee(0.1, 0.0, ADD)), ValueError, "replacement must be under REPLACE"),
        (lambda: run(0.1, 0.1, extra=[Guarantee(0.1, 0.0, REPLACE)]), ValueError, "extra must be under ADD"),
        (lambda: run(0.1, 0.1).delta(-1.0), ValueError, "epsilon"),
        (lambda: run(0.1, 0.1).delta(math.inf), ValueError, "epsilon"),
        (lambda: run(0.1, 0.1).guarantee(delta=0.0), ValueError, "delta"),
        (lambda: run(0.1, 0.1).guarantee(delta=1e-6, accountant="exact"), ValueError, "accountant"),
        (lambda: run(1e-320, 0.1), ValueError, "slice_epsilon must be >="),
        (lambda: slicing.step_epsilon(total_epsilon=1.0, total_delta=1.0), ValueError, "total_delta"),
        (lambda: slicing.step_epsilon(total_epsilon=0.0, total_delta=1e-6), ValueError, "total_epsilon"),
        (lambda: slicing.split(total_epsilon=None, total_delta=1e-6, cost=max), TypeError, "total_epsilon"),
        (lambda: slicing.split(total_epsilon=1.0, total_delta=1e-6, cost=None), TypeError, "cost"),
        (
            lambda: slicing.split(total_epsilon=1.0, total_delta=1e-6, cost=lambda s, e: s * math.nan),
            ValueError,
            r"cost\(.*\) must be a number, not NaN",
        ),
        (lambda: slicing.largest(None, Guarantee(1.0, 1e-6, ADD)), TypeError, "family"),
        (lambda: slicing.largest(run, Guarantee(1.0, 1e-6, REPLACE)), ValueError, "total must be under ADD"),
        (lambda: slicing.largest(run, (1.0, 1e-6)), TypeError, "total must be a Guarantee"),
        (lambda: slicing.largest(run, Guarantee(0.0, 1e-6, ADD)), ValueError, "total.epsilon must be finite and > 0"),
        (lambda: slicing.largest(run, Guarantee(1.0, 0.0, ADD)), ValueError, "total.delta"),
        (
            lambda: slicing.total_delta(slice_epsilon=0.1, compute_epsilon=None, total_epsilon=1.0),
            TypeError,
            "compute_epsilon",
        ),
        (
            lambda: slicing.total_delta(slice_epsilon=0.1, compute_epsilon=0.1, total_epsilon=-1.0),
            ValueError,
            "total_epsilon",
        ),
        (
            lambda: slicing.step_epsilon(total_epsilon=1.0, total_delta=1e-6, accountant="exact"),
            ValueError,
            "accountant",
        ),
        (lambda: slicing.printed_calls(0.0), ValueError, "slack"),
        (lambda: run(0.1, 400.0).loss_distribution(), ValueError, "epsilon <= 350"),
    ],
)
def test_refuses(call, error, name):
    with pytest.raises(error, match=name):
        call()


def test_where_hardly_any_loss_is_finite_nothing_is_promised():
    """dp-accounting fails on it, so that its failure must not come through."""
    plan = planning.calibrate(bits=3, epsilon=40.0, delta=0.1, beta=0.3, depth=1, accountant="slicing")
    assert plan.guarantee.covers(40.0, 0.1)
    hardly = run(0.1, 0.1, extra={Guarantee(0.1, 0.9, ADD): 40})
    assert hardly.delta(1.0) == 1.0  # nearly: 1 - 0.1^40
    assert hardly.loss_distribution().self_compose(2).get_delta_for_epsilon(1.0) == 1.0


def test_a_fault_of_the_analysis_is_not_taken_for_one_of_dp_accounting(monkeypatch):
    monkeypatch.setattr(slicing, "_atoms", lambda run, bit: [][bit])
    with pytest.raises(IndexError):
        run(0.1, 0.1, applications=2).delta(1.0)


@pytest.mark.parametrize("case", [run(0.1, 0.1, 0.6), run(0.1, 0.1, extra=[Guarantee(1.0, 1.0, ADD)])])
def test_a_delta_of_one_leaves_nothing_to_promise(case):
    """A compute of delta = 0.6 has 0.6 (1 + e^0.1) > 1 for a replacement."""
    assert case.delta(1.0) == 1.0 and case.guarantee(delta=0.9).is_none


@pytest.mark.parametrize(
    ("slice_epsilon", "compute", "epsilon", "least"),
    [(50.0, 104.22606822393637, 258.4521364478727, 2.8e-14), (0.2, 0.050000000000000024, 0.30000000000000004, 2.4e-18)],
)
def test_a_loss_just_above_epsilon_is_not_rounded_away(slice_epsilon, compute, epsilon, least):
    """slice_epsilon + 2 compute is above epsilon, but not as floats."""
    assert Fraction(slice_epsilon) + 2 * Fraction(compute) > Fraction(epsilon)
    run = Run(slice_epsilon, Guarantee(compute, 0.0, "ADD_OR_REMOVE_ONE"), slices=1)
    assert run.delta(epsilon) >= least


def test_extra_mechanisms_are_counted_or_refused():
    """A negative count was dropped, with the mechanism."""
    more = Guarantee(5.0, 0.0, ADD_OR_REMOVE_ONE)
    plain = slicing.Run(0.1, Guarantee(0.1, 0.0, ADD_OR_REMOVE_ONE), slices=3)
    twice = dataclasses.replace(plain, extra={more: 2})
    assert twice == dataclasses.replace(plain, extra=[more, more]) and len(twice.extra) == 2
    for wrong, error in (({more: -1}, ValueError), ({more: 0}, ValueError), ({more: 1.5}, TypeError), (1.5, TypeError)):
        with pytest.raises(error, match="extra must"):
            dataclasses.replace(plain, extra=wrong)
    for search in (slicing.step_epsilon, functools.partial(slicing.compute_epsilon, slice_epsilon=0.01)):
        with pytest.raises(ValueError, match="compute_delta must"):
            search(total_epsilon=1.0, total_delta=1e-6, compute_delta=-1.0)
