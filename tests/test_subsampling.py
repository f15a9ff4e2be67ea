"""Secrecy of the sample: the closed form against exact laws of a subsampled mechanism."""

import itertools
import math
from collections import Counter

import numpy as np
import pytest
from scipy import optimize

from dpjax.accounting import ADD_OR_REMOVE_ONE, REPLACE_ONE, Guarantee, with_replacement


def law(mechanism, n, rows):
    """The law of `mechanism` on n rows drawn with replacement: all draws enumerated."""
    total = 0.0
    for draw in itertools.product(rows, repeat=n):
        total = total + mechanism(draw) / len(rows) ** n
    return total


def leaky_response(epsilon, delta):
    """Randomised response on the parity of the ones; with probability delta it names the number of ones. (epsilon, delta)-private."""

    def mechanism(rows):
        ones = sum(rows)
        response = np.array([1.0, math.exp(epsilon)])[:: 1 if ones % 2 else -1] / (1 + math.exp(epsilon))
        named = np.eye(len(rows) + 1)[ones]
        return np.concatenate([(1 - delta) * response, delta * named])

    return mechanism


def count_noise(epsilon):
    """Exponential mechanism on the number of ones: group privacy is tight in it."""

    def mechanism(rows):
        weights = np.exp(-epsilon / 2 * np.abs(np.arange(len(rows) + 1) - sum(rows)))
        return weights / weights.sum()

    return mechanism


def exact_delta(mechanism, n, m, epsilon):
    """Largest hockey-stick over all neighbours among databases of m bits."""
    worst = 0.0
    for ones in range(m):
        a, b = ([1] * o + [0] * (m - o) for o in (ones, ones + 1))
        p, q = law(mechanism, n, a), law(mechanism, n, b)
        for x, y in ((p, q), (q, p)):
            worst = max(worst, float(np.maximum(x - math.exp(epsilon) * y, 0).sum()))
    return worst


@pytest.mark.parametrize("calibration", ["printed", "proved"])
@pytest.mark.parametrize(("n", "m"), [(1, 2), (2, 4), (3, 6), (2, 7)])
@pytest.mark.parametrize(("epsilon", "delta"), [(0.3, 0.0), (1.0, 0.0), (1.0, 0.05)])
def test_subsampled_mechanisms_keep_what_is_stated(n, m, epsilon, delta, calibration):
    promised = with_replacement(Guarantee(epsilon, delta, REPLACE_ONE), drawn=n, rows=m, calibration=calibration)
    mechanisms = [leaky_response(epsilon, delta)] + ([count_noise(epsilon)] if delta == 0.0 else [])
    for mechanism in mechanisms:
        assert exact_delta(mechanism, n, m, promised.epsilon) <= promised.delta + 1e-12
    # Negative control: a promise of a twentieth is refuted.
    worst = max(exact_delta(mechanism, n, m, promised.epsilon / 20) for mechanism in mechanisms)
    assert worst > promised.delta / 20


def test_the_printed_lemma_is_the_papers_formula():
    """Lemma 29: (6 e n/m, 4 exp(6 e n/m) (n/m) d) for n of m rows."""
    found = with_replacement(Guarantee(1.0, 1e-6, REPLACE_ONE), drawn=100, rows=900, calibration="printed")
    epsilon = 6 * 100 / 900
    assert found.epsilon == pytest.approx(epsilon) and found.delta == pytest.approx(4 * math.exp(epsilon) / 9 * 1e-6)


def test_proved_is_never_worse_than_printed_where_that_applies():
    for n, m, epsilon in itertools.product((1, 10, 1000), (2000, 9000), (1e-6, 0.1, 1.0)):
        guarantee = Guarantee(epsilon, 1e-6, REPLACE_ONE)
        proved, printed = (
            with_replacement(guarantee, drawn=n, rows=m, calibration=name) for name in ("proved", "printed")
        )
        assert proved.epsilon <= printed.epsilon and proved.delta <= printed.delta


@pytest.mark.parametrize("n", [1, 5, 6, 20])
def test_the_moments_are_those_of_the_number_of_draws(n):
    """The closed forms against sums over T ~ Bin(n, 1/m), for few draws and for many."""
    m, epsilon, delta = 8, 0.7, 0.01
    draws = Counter({t: math.comb(n, t) / m**t * (1 - 1 / m) ** (n - t) for t in range(n + 1)})
    more = sum(w * math.exp(t * epsilon) for t, w in draws.items())
    expected = sum(w * delta * math.expm1(t * epsilon) / math.expm1(epsilon) for t, w in draws.items())
    promised = with_replacement(Guarantee(epsilon, delta, REPLACE_ONE), drawn=n, rows=m)
    assert promised.epsilon == pytest.approx(math.log(more), rel=1e-10)
    assert promised.delta == pytest.approx(expected, rel=1e-10)
    limit = with_replacement(Guarantee(0.0, delta, REPLACE_ONE), drawn=n, rows=m)
    assert limit.epsilon == 0.0 and limit.delta == pytest.approx(delta * n / m)


@pytest.mark.parametrize(
    ("n", "m", "epsilon", "delta"), [(2, 2, 1.0, 0.05), (3, 2, 0.2, 0.02), (3, 3, 0.7, 0.01), (2, 3, 2.0, 0.0)]
)
def test_no_event_of_any_private_algorithm_exceeds_what_is_stated_and_one_attains_it(n, m, epsilon, delta):
    """Few rows and many draws: the worst event over all (epsilon, delta)-private algorithms, by linear programming.

    Rows of S are 0, ..., m - 1; the row 0 becomes m in S'.
    """
    promised = with_replacement(Guarantee(epsilon, delta, REPLACE_ONE), drawn=n, rows=m)
    draws = list(itertools.product(range(m + 1), repeat=n))
    place = {draw: i for i, draw in enumerate(draws)}
    pairs = [
        (place[draw], place[(*draw[:i], value, *draw[i + 1 :])])
        for draw in draws
        for i in range(n)
        for value in range(m + 1)
        if value != draw[i]
    ]
    here, there = np.array(pairs).T
    close = np.zeros((2, len(pairs), len(draws)))  # of an event, and of its complement
    each = np.arange(len(pairs))
    close[0, each, here], close[0, each, there] = 1.0, -math.exp(epsilon)
    close[1] = -close[0]
    limits = np.repeat([delta, math.expm1(epsilon) + delta], len(pairs))

    def worst(ratio):
        gain = np.array([(m not in draw) - ratio * (0 not in draw) for draw in draws]) / m**n
        found = optimize.linprog(-gain, close.reshape(-1, len(draws)), limits, bounds=(0, 1), method="highs")
        return -found.fun

    assert worst(math.exp(promised.epsilon)) == pytest.approx(promised.delta, abs=1e-9)
    assert worst(math.exp(promised.epsilon * 0.99)) > promised.delta + 1e-6


def test_one_draw_spends_all_of_the_stated_delta():
    """At n = 1 the bound is attained: the leaky mechanism's exact delta is the promised one."""
    promised = with_replacement(Guarantee(1.0, 0.05, REPLACE_ONE), drawn=1, rows=3)
    assert exact_delta(leaky_response(1.0, 0.05), 1, 3, promised.epsilon) == pytest.approx(promised.delta, rel=1e-9)


@pytest.mark.parametrize(("epsilon", "drawn", "rows"), [(1e-290, 10**38, 10**38), (1e-310, 1, 10**9), (5e-324, 3, 5)])
def test_next_to_no_epsilon_leaves_all_of_delta(epsilon, drawn, rows):
    """A prints 1 with probability d #{rows equal to a}: neighbours differ by d E[T] = d n/m, whatever small epsilon is stated."""
    promised = with_replacement(Guarantee(epsilon, 1e-3, REPLACE_ONE), drawn=drawn, rows=rows)
    assert 0 < promised.epsilon < 1e-150 and promised.delta == pytest.approx(1e-3 * drawn / rows)
    assert with_replacement(Guarantee(1.0, 5e-324, REPLACE_ONE), drawn=drawn, rows=rows).delta > 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"guarantee": Guarantee(1.0, 0.0, ADD_OR_REMOVE_ONE), "drawn": 1, "rows": 2}, "REPLACE_ONE"),
        ({"guarantee": Guarantee(1.0, 0.0, REPLACE_ONE), "drawn": 0, "rows": 2}, "drawn must be >= 1"),
        ({"guarantee": Guarantee(1.0, 0.0, REPLACE_ONE), "drawn": 1, "rows": 1}, "rows must be >= 2"),
        (
            {"guarantee": Guarantee(1.5, 0.0, REPLACE_ONE), "drawn": 1, "rows": 9, "calibration": "printed"},
            "epsilon <= 1",
        ),
        (
            {"guarantee": Guarantee(1.0, 0.0, REPLACE_ONE), "drawn": 5, "rows": 9, "calibration": "printed"},
            "rows >= 2",
        ),
        ({"guarantee": Guarantee(1.0, 0.0, REPLACE_ONE), "drawn": 1, "rows": 9, "calibration": "x"}, "calibration"),
    ],
)
def test_bad_arguments_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        with_replacement(**arguments)
