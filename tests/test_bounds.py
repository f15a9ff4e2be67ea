"""Sample sizes, each against what the theorem promises at that size, computed exactly where it can be."""

import functools
import importlib
import inspect
import itertools
import math
from fractions import Fraction

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import signal, stats

from dpjax import accounting, bounds
from dpjax.accounting import set_cover
from dpjax.bounds import packing, parities
from dpjax.fingerprinting import boneh_shaw, tardos
from dpjax.verify.plain.choosing import choosing_law

# -------------------------------------------------------------------------------- iterated logarithms


def test_log_star_by_hand():
    table = {
        0: 0,
        1: 0,
        2: 1,
        3: 2,
        4: 2,
        5: 3,
        16: 3,
        17: 4,
        2**16: 4,
        2**16 + 1: 5,
        2**1024: 5,
        2**65537: 6,
    }
    assert {number: bounds.log_star(number) for number in table} == table


@pytest.mark.parametrize("bits", [1, 2, 3, 16, 17, 64, 4096])
def test_log_star_of_a_power(bits):
    assert bounds.log_star(2**bits) == 1 + bounds.log_star(bits)


def test_iterated_logarithm():
    assert bounds.iterated_log2(100, 0) == 100.0
    assert bounds.iterated_log2(100, 2) == pytest.approx(math.log2(math.log2(100)))
    assert bounds.iterated_log2(100, 2, ceil=True) == 3.0
    assert bounds.iterated_log2(2**1024, 1) == 1024.0
    assert bounds.iterated_log2(2**64, 50) == pytest.approx(math.log2(math.log2(math.log2(6))))  # stops at <= 1
    for number in (2, 7, 1000, 2**40 + 1):
        assert bounds.iterated_log2(number, bounds.log_star(number), ceil=True) <= 1


# -------------------------------------------------------------------------------- learning


def test_vc_bounds_by_hand():
    assert bounds.pac_lower_bound(3, 0.1, constant=0.5) == pytest.approx(15.0)
    assert bounds.realizable(2, 0.2, 0.05) == pytest.approx(40 * (2 * math.log(80) + math.log(40)))
    assert bounds.agnostic(2, 0.2, 0.05) == pytest.approx(2500 * math.log(100))


@pytest.mark.parametrize("vc", [1, 2, 30])
def test_the_agnostic_bound_is_proved_for_every_alpha_and_beta(vc):
    """By the inequality of its docstring; for its formula without 1/6 that says nothing near 1."""
    for alpha, beta in itertools.product([0.01, 0.3, 0.9, 0.95, 0.999], repeat=2):
        n = bounds.agnostic(vc, alpha, beta)
        log_failure = math.log(4) + vc * math.log(2 * math.e * n / vc) - (alpha * n - 1) ** 2 / (n + 1)
        assert log_failure <= math.log(beta)


def test_one_example_deviates_from_its_own_point_concept():
    points, alpha = 4000, 0.999
    n = math.ceil(bounds.agnostic(1, alpha, 0.999))
    assert 1 - 1 / points > alpha and n > 1  # one example surely fails
    assert points * stats.binom.sf(math.floor((alpha + 1 / points) * n), n, 1 / points) < 0.999


# -------------------------------------------------------------------------------- mechanisms


@pytest.mark.parametrize("solutions", [2, 100, 10**6])
@pytest.mark.parametrize("epsilon", [0.1, 1.0])
def test_exponential_mechanism_fails_at_most_beta(solutions, epsilon):
    error, beta = 0.1, 0.05

    def failure(m):
        """One solution best, all others just bad enough: the worst case of Proposition 2.26."""
        weight = (solutions - 1) * math.exp(-epsilon * error * m / 2)
        return weight / (1 + weight)

    size = bounds.exponential_mechanism(math.log(solutions), error, beta, epsilon)
    assert failure(size) <= beta < failure(0.7 * size)


def test_exponential_mechanism_takes_a_logarithm():
    assert math.isfinite(bounds.exponential_mechanism(4096 * math.log(2), 0.1, 0.1, 1.0))
    assert bounds.exponential_mechanism(0.0, 0.1, 0.5, 1.0) == pytest.approx(20 * math.log(2))


def bottom(gap, epsilon, delta, calibration):
    """Exact probability of bottom from A_dist at this gap."""
    scale, threshold = 1 / epsilon, math.log(1 / delta) / epsilon
    if calibration == "proved":
        scale, threshold = 2 / epsilon, 2 + 2 / epsilon * math.log(1 / (2 * delta))
    return stats.laplace.cdf(threshold - gap, scale=scale)


@pytest.mark.parametrize("calibration", ["printed", "proved"])
@pytest.mark.parametrize(("beta", "epsilon", "delta"), [*itertools.product([0.3, 1e-3], [0.1, 2.0], [0.1, 1e-8])])
def test_stability_gap_is_kept(calibration, beta, epsilon, delta):
    gap = bounds.stability_gap(beta, epsilon, delta, calibration=calibration)
    assert bottom(gap, epsilon, delta, calibration) <= beta * (1 + 1e-9)
    assert bottom(gap - 2 / epsilon, epsilon, delta, calibration) > beta


@pytest.mark.parametrize(("beta", "epsilon", "delta"), [*itertools.product([0.3, 1e-3], [0.05, 1.0, 9.0], [0.3, 1e-8])])
def test_printed_equivalent_carries_the_proposition(beta, epsilon, delta):
    lower = bounds.printed_equivalent(epsilon, delta)
    assert 0 < lower <= epsilon / 2
    gap = bounds.stability_gap(beta, lower, delta, calibration="printed")
    assert bottom(gap, epsilon, delta, "proved") <= beta


@pytest.mark.parametrize("calibration", ["printed", "proved"])
@pytest.mark.parametrize(("epsilon", "delta"), [*itertools.product([0.2, 1.0, 5.0], [1e-3, 1e-8])])
def test_learn_points_fails_at_most_beta(calibration, epsilon, delta):
    alpha, beta = 0.1, 0.05

    def failure(m):
        """A target of mass alpha, counted by a binomial and found by A_dist (no other point has a one)."""
        counts = np.arange(m + 1)
        return float(np.sum(stats.binom.pmf(counts, m, alpha) * bottom(counts, epsilon, delta, calibration)))

    size = math.ceil(bounds.learn_points(64, alpha, beta, epsilon, delta, calibration=calibration, bottom="zero"))
    assert failure(size) <= beta
    assert failure(size // 16) > beta


def test_a_random_answer_costs_half_of_alpha():
    """Its error is its own mass and the target's: the repaired proof of Lemma 3.2 splits at alpha/2."""
    at = {"beta": 0.1, "epsilon": 1.0, "delta": 1e-6}
    assert round(bounds.learn_points(64, 0.1, **at)) == 1314
    assert bounds.learn_points(64, 0.1, **at) == bounds.learn_points(64, 0.05, **at, bottom="zero")
    printed = bounds.learn_points(64, 0.1, **at, calibration="printed")
    assert printed == pytest.approx(80 * math.log(4 / 1e-7))
    assert printed == bounds.learn_points(64, 0.1, **at, calibration="printed", bottom="zero")


def test_learn_points_needs_room_for_a_random_answer():
    for calibration in ("printed", "proved"):
        with pytest.raises(ValueError, match=r"bits must be >= log2\(2/\(alpha beta\)\) = 7.644"):
            bounds.learn_points(7, 0.1, 0.1, 1.0, 1e-6, calibration=calibration)
    assert bounds.learn_points(3, 0.1, 0.1, 1.0, 1e-6, bottom="zero") > 0


def choosing_delta(m, alpha, epsilon):
    """Largest exact delta of two shapes of neighbours: one record moves to a new place, or between piles."""
    worst = 0.0
    for heavy in range(1, m):
        rest = m - heavy
        for before, after in (
            ((heavy, rest, 0), (heavy, rest - 1, 1)),
            ((heavy, rest), (heavy - 1, rest + 1)),
        ):
            laws = [np.array(choosing_law(counts, m, alpha, epsilon)) for counts in (before, after)]
            for one, other in (laws, laws[::-1]):
                worst = max(worst, float(np.maximum(one - math.exp(epsilon) * other, 0).sum()))
    return worst


@pytest.mark.parametrize(
    ("growth", "alpha", "epsilon", "delta", "least"),
    [(1, 0.5, 1.0, 1e-6, 0.9), (2, 0.1, 1.0, 1e-6, 0.9), (7, 0.5, 0.1, 0.4, 0.2), (2, 0.9, 16.0, 0.1, 0.75)],
)
def test_choosing_mechanism_is_private_at_its_size_and_needs_nearly_all_of_it(growth, alpha, epsilon, delta, least):
    """One solution with most of the records, next to the threshold of the test and below, and others that come and go."""

    def worst(n):
        found, threshold = 0.0, int(alpha * n / 2)
        tops = {*range(min(threshold + 3, 60)), *range(max(0, threshold - 3), threshold + 4)}
        for top, new, lost, step in itertools.product(
            tops, (0, growth - 1, growth), (0, growth - 1, growth), (-1, 0, 1)
        ):
            if top + step < 0 or new + (step == 1) > growth or lost + (step == -1) > growth:
                continue
            one = choosing_law((top, *[0] * new, *[1] * lost), n, alpha, epsilon)
            other = choosing_law((top + step, *[1] * new, *[0] * lost), n, alpha, epsilon)
            one, other = (np.asarray(law) for law in (one, other))
            for p, q in ((one, other), (other, one)):
                found = max(found, float(np.maximum(0, p - math.exp(epsilon) * q).sum()))
        return found

    n = math.ceil(bounds.choosing_mechanism_privacy(growth, alpha, epsilon, delta))
    assert worst(n) <= delta < worst(math.ceil(least * n) - 1)


def test_choosing_mechanism_needs_a_size_at_every_epsilon():
    sizes = [bounds.choosing_mechanism_privacy(3, 0.5, epsilon, 0.1) for epsilon in (1e-300, 1e-3, 1.0, 1e3, 1e300)]
    assert all(map(math.isfinite, sizes)) and sorted(sizes, reverse=True) == sizes


@pytest.mark.parametrize("delta", [1e-2, 1e-5])
def test_choosing_mechanism_is_private_at_its_size(delta):
    alpha, epsilon = 0.5, 1.0
    enough = bounds.choosing_mechanism_privacy(1, alpha, epsilon, delta)
    assert choosing_delta(math.ceil(enough), alpha, epsilon) <= delta
    assert choosing_delta(math.ceil(enough / 8), alpha, epsilon) > delta


@pytest.mark.parametrize(
    ("growth", "alpha", "beta", "epsilon", "delta"),
    [*itertools.product([1, 5], [0.01, 0.5], [0.5, 1e-3], [0.1, 1.0], [1e-9, 1e-2])],
)
def test_choosing_mechanism_printed_is_the_stronger_demand(growth, alpha, beta, epsilon, delta):
    weaker = bounds.choosing_mechanism_privacy(growth, alpha, epsilon, delta)
    printed = bounds.choosing_mechanism(growth, alpha, beta, epsilon, delta)
    assert (
        weaker
        < printed
        == pytest.approx(16 / (alpha * epsilon) * math.log(16 * growth / (alpha * beta * epsilon * delta)))
    )


@pytest.mark.parametrize(("alpha", "beta", "epsilon", "delta"), [(0.9, 0.9, 16.0, 0.1), (0.5, 0.99, 30.0, 0.01)])
def test_choosing_mechanism_is_private_at_large_epsilons_too(alpha, beta, epsilon, delta):
    def spent(size):
        """All records but one count for nothing, and that one moves: its solution was the only one with a score."""
        m = math.ceil(size)
        lone = choosing_law((1, 0), m, alpha, epsilon)[0]
        assert choosing_law((0, 1), m, alpha, epsilon)[0] == 0.0
        return max(lone, choosing_delta(m, alpha, epsilon))

    lemma = 16 / (alpha * epsilon) * math.log(16 / (alpha * beta * epsilon * delta))
    assert spent(lemma) > delta  # Lemma 4.4 is false here
    assert spent(bounds.choosing_mechanism(1, alpha, beta, epsilon, delta)) <= delta


# -------------------------------------------------------------------------------- parities


@pytest.mark.parametrize(("size", "bits"), [(8, 8), (12, 8), (40, 32), (3000, 8)])
def test_few_numbers_of_votes_are_all_that_matter(size, bits):
    for epsilon, m in itertools.product([0.01, 1.0, 50.0], [1, 7, 400, 20_000]):
        scale, threshold = bounds.stability_noise(epsilon, 1e-6)
        votes = np.arange(m + 1)
        weights = stats.binom.pmf(m - votes, m, bounds.rank_deficiency(size, bits))
        summed = weights[0] + weights[1:] @ stats.laplace.cdf((threshold - votes[1:]) / scale)
        assert bounds.parity_learner_failure(m * size, size, bits, epsilon, 1e-6) == pytest.approx(summed, rel=1e-9)


def test_parities_of_a_tiny_epsilon_need_no_sum_over_all_votes():
    """The noise is so large that P[noise < threshold - N] is exp((threshold - N)/scale)/2 for every N that occurs."""
    size, bits, epsilon, delta = 37, 32, 2.0**-40, 1e-6
    n = bounds.parity_learner_exact(0.1, size, bits, epsilon, delta)
    scale, threshold = bounds.stability_noise(epsilon, delta)
    full = 1 - bounds.rank_deficiency(size, bits)
    failure = math.exp(threshold / scale + n // size * math.log1p(full * math.expm1(-1 / scale))) / 2
    assert n % size == 0 and failure == pytest.approx(0.1, rel=1e-9)
    assert bounds.parity_learner_failure(n, size, bits, epsilon, delta) == pytest.approx(failure, rel=1e-9)


def test_the_best_size_is_the_best_of_all():
    for bits, epsilon, beta in itertools.product([1, 16], [0.01, 1.0, 9.0], [0.9, 0.1, 1e-6]):
        needed = {size: bounds.parity_learner_exact(beta, size, bits, epsilon, 1e-6) for size in range(bits, bits + 41)}
        best = bounds.parity_learner_size(bits=bits, epsilon=epsilon, delta=1e-6, beta=beta)
        assert best == min(needed, key=lambda size: (needed[size], size))


def test_subsamples_of_fewer_than_d_rows_are_refused():
    with pytest.raises(ValueError, match="size must be >= 8, got 4"):
        bounds.parity_learner_exact(0.1, 4, 8, 1.0, 1e-6)
    with pytest.raises(ValueError, match="epsilon must be >= "):
        bounds.parity_learner_size(bits=8, epsilon=1e-30, delta=1e-6, beta=0.1)


def test_exponential_parities_keep_their_digits():
    assert bounds.exponential_parities(10, 0.1, 1e-9) == pytest.approx(36932319440.40, rel=1e-12)
    assert bounds.exponential_parities(10, 0.1, 1e-200) == pytest.approx(4e200 * math.log(10230), rel=1e-12)


# -------------------------------------------------------------------------------- thresholds


def test_theorem_3_15_reference_values():
    """d = 64, epsilon = 1, delta = 1e-6, alpha = beta = 0.1: 1.5e6 at N = 2 and 1.7e7 at N = 3."""
    two, three = (bounds.rec_concave(2**64, depth, 0.1, 0.1, 1.0, 1e-6, calibration="printed") for depth in (2, 3))
    assert f"{two:.1e}" == "1.5e+06" and f"{three:.1e}" == "1.7e+07"
    assert two == pytest.approx(64 * 720 * (math.log2(1.2e8) + 6))


GRID = list(
    itertools.product([2**8, 2**64, 2**64 + 1, 2**4096], [1, 2, 3, 4, 5], [0.5, 0.01], [0.4, 1e-6], [0.1, 1e-9])
)


def test_theorem_3_15_follows_from_lemma_3_14():
    for size, depth, alpha, beta, delta in GRID:
        theorem = bounds.rec_concave(size, depth, alpha, beta, 1.0, delta, calibration="printed")
        each = 1.0 / (3 * depth), delta / (3 * depth)
        assert bounds.rec_concave_lemma(size, depth, alpha, beta / (2 * depth), *each, calibration="printed") <= theorem


def test_what_is_proved_from_the_stages_is_less_than_the_lemma_asks():
    """At the same budgets and failure of each mechanism; and never more than the theorem for the paper's constants."""
    for size, depth, alpha, beta, delta in GRID:
        levels = bounds.levels_run(size, depth)
        proved = bounds.rec_concave(size, depth, alpha, beta, 1.0, delta)
        each = 1.0 / (3 * levels - 2), delta / max(1, 2 * (levels - 1))
        lemma = bounds.rec_concave_lemma(size, levels, alpha, beta / (2 * levels - 1), *each)
        assert proved < lemma
        assert proved < bounds.rec_concave(size, depth, alpha, beta, 1.0, delta, calibration="printed")


def test_rec_concave_error_by_hand():
    """One level is the exponential mechanism; of two, with a large range, the last one decides, or else A_dist."""
    assert bounds.rec_concave_error(2**64, 1, 0.1, 0.5, 0.0) == pytest.approx(4 * math.log((2**64 + 1) / 0.1))
    base = 8 * 2 * 4 * math.log(4097 / (0.1 / 3))
    assert bounds.rec_concave_error(2**4096, 2, 0.1, 1.0, 0.4) == pytest.approx(base)
    gap = 2 + 8 * (math.log(1 / 1e-12) + math.log(3 / 0.2))
    assert bounds.rec_concave_error(64, 2, 0.1, 1.0, 1e-12) == pytest.approx(8 / 3 * gap)
    with pytest.raises(
        ValueError, match=r"levels must be at most 2, which is how many run on 64 \+ 1 solutions, got 3"
    ):
        bounds.rec_concave_error(64, 3, 0.1, 1.0, 1e-12)
    three = bounds.rec_concave_error(2**4096, 3, 0.1, 1.0, 1e-9)
    assert three == pytest.approx(8 * 8 / 3 * (2 + 14 * (math.log(2e9) + math.log(25))))


def test_lemma_3_14_pays_for_every_step_of_its_proof():
    """Base case over T + 1 solutions, gap for A_dist, last draw among sixteen: each needs less than r."""
    for size, depth, alpha, beta, delta in GRID:
        for epsilon in (0.1, 1.0):
            promise = bounds.rec_concave_lemma(size, depth, alpha, beta, epsilon, delta, calibration="printed")
            assert 3 * alpha / 8 * promise >= bounds.stability_gap(beta, epsilon, delta, calibration="printed")
            assert promise >= 16 / (3 * alpha * epsilon) * math.log(16 / beta)
            if depth == 1:
                assert promise >= bounds.exponential_mechanism(math.log(size + 1), alpha, beta, epsilon)


def test_lemma_3_14_rounds_every_logarithm_up():
    """Of T = 2^64 + 1 they are 65 and 7, of 2^64 they are 64 and 6."""
    at = (2, 0.1, 0.1, 1.0, 1e-6)
    for size, rounded in ((2**64, 6.0), (2**64 + 1, 7.0)):
        promise = 8.0**2 * 4 / 0.1 * (math.log2(32 / (0.1 * 1e-6)) + rounded)
        assert bounds.rec_concave_lemma(size, *at, calibration="printed") == pytest.approx(promise)


def test_the_lemma_asks_for_twice_the_printed_at_small_epsilon():
    printed, proved = (
        bounds.rec_concave_lemma(2**64, 2, 0.1, 0.1, 0.5, 1e-6, calibration=which) for which in ("printed", "proved")
    )
    assert proved == pytest.approx(2 * printed)


@pytest.mark.parametrize("size", [2, 33, 2**16, 2**64, 2**4096])
def test_remark_3_16_is_theorem_3_15_at_full_depth(size):
    full = bounds.rec_concave_full_depth(size, 0.1, 0.1, 1.0, 1e-6)
    theorem = bounds.rec_concave(size, bounds.log_star(size), 0.1, 0.1, 1.0, 1e-6, calibration="printed")
    assert theorem <= full <= 1.1 * theorem


def test_theorem_3_18_is_the_larger_of_two():
    """A tiny alpha leaves learning in charge; a tiny epsilon leaves privacy in charge."""
    assert bounds.learn_thresholds(8, 1, 1e-4, 0.1, 1.0, 1e-6) == pytest.approx(200e8 * math.log(4e5))
    private = 8 * 72 / (0.1 * 1e-3) * (math.log2(12 / 1e-7) + 64)
    assert bounds.learn_thresholds(64, 1, 0.1, 0.1, 1e-3, 1e-6, calibration="printed") == pytest.approx(private)
    assert math.isfinite(bounds.learn_thresholds(4096, 5, 0.1, 0.1, 1.0, 1e-6))
    with pytest.raises(ValueError, match="depth"):
        bounds.learn_thresholds(64, 6, 0.1, 0.1, 1.0, 1e-6, calibration="printed")
    proved = bounds.rec_concave(2**64, 2, 0.05, 0.05, 1e-3, 1e-6)
    assert bounds.learn_thresholds(64, 2, 0.1, 0.1, 1e-3, 1e-6) == proved


def test_remark_3_19_by_hand():
    expected = 2 * 8**4 * 4 / (0.1 * 0.1) * math.log2(4 / (0.1 * 0.2 * 1e-6))
    assert bounds.learn_thresholds_full_depth(64, 0.1, 0.2, 1.0, 1e-6, constant=2.0) == pytest.approx(expected)


@pytest.mark.parametrize("bits", [1, 16, 900])
def test_exponential_thresholds_is_its_derivation(bits):
    private = 4 / (0.1 * 1e-3) * (math.log(2**bits + 1) + math.log(20))
    assert bounds.exponential_thresholds(bits, 0.1, 0.1, 1e-3) == pytest.approx(private)
    assert bounds.exponential_thresholds(bits, 0.1, 0.1, 100.0) == pytest.approx(200 * 100 * math.log(400))
    assert math.isfinite(bounds.exponential_thresholds(4096, 0.1, 0.1, 1.0))


def search_failure(ones, zeros, epsilon, allowed, *, zeros_at_mid=True):
    """Exact probability that the noisy binary search errs on more than `allowed` examples of the sample."""
    side = 1 if zeros_at_mid else 0

    @functools.cache
    def failure(low, high):
        if low == high:
            return float(ones[low:].sum() + zeros[:low].sum() > allowed)
        mid = (low + high) // 2
        right = stats.laplace.sf(-(ones[mid:].sum() - zeros[: mid + side].sum()), scale=2 / epsilon)
        return right * failure(mid + 1, high) + (1 - right) * failure(low, mid)

    return failure(0, len(ones))


def samples(points, m):
    """Samples labelled by a threshold: one heavy point, two piles around the target, and spread ones."""
    for target, place in itertools.product(range(points + 1), range(points)):
        ones, zeros = np.zeros(points, int), np.zeros(points, int)
        (ones if place < target else zeros)[place] = m
        yield ones, zeros
    for target in range(1, points):
        ones, zeros = np.zeros(points, int), np.zeros(points, int)
        ones[target - 1], zeros[target] = m - m // 2, m // 2
        yield ones, zeros
        ones, zeros = np.zeros(points, int), np.zeros(points, int)
        ones[:target], zeros[target:] = m // points, m // points
        yield ones, zeros


@pytest.mark.thorough
def test_binary_search_is_right_on_the_sample():
    bits, alpha, beta, epsilon = 4, 0.4, 0.2, 0.005
    size = math.ceil(bounds.binary_search_thresholds(bits, alpha, beta, epsilon))
    assert size == math.ceil(4 / (alpha * epsilon) * math.log(5 / beta))
    failures = [search_failure(*sample, epsilon, alpha * size / 2) for sample in samples(2**bits, size)]
    assert 0 < max(failures) <= beta / 2
    # A quarter of the sample is not enough, and zeros at the middle have to be counted.
    fewer = size // 4
    assert max(search_failure(*sample, epsilon, alpha * fewer / 2) for sample in samples(2**bits, fewer)) > beta / 2
    skipping = (
        search_failure(*sample, epsilon, alpha * size / 2, zeros_at_mid=False) for sample in samples(2**bits, size)
    )
    assert max(skipping) > 0.4


@pytest.mark.parametrize("choice_epsilon", [0.01, 0.1])
def test_an_interval_search_pays_for_the_choice_among_five_hypotheses(choice_epsilon):
    """One of the four others, with a n/4 more errors, is chosen with probability at most 4 exp(-e_h a n/8), which is to be b."""
    error, beta, delta = 0.1, 0.1, 1e-6
    given = {"comparison_epsilon": 10.0, "stability_epsilon": 10.0, "stability_delta": delta}
    n = bounds.interval_search(7, error, beta, **given, choice_epsilon=choice_epsilon)
    assert 4 * math.exp(-choice_epsilon * error * n / 8) == pytest.approx((beta - delta) / 3)


def test_set_cover_pays_for_the_union_over_all_its_outputs():
    """Each of |H|^R conjunctions has half of its error on the sample with probability exp(-n alpha/8): all of them together, beta/2."""
    log_size, rounds, alpha, beta = math.log(2000), 20, 0.1, 0.1
    n = bounds.set_cover(log_size, 1, rounds, alpha, beta, 1e6, 0)
    assert rounds * log_size - n * alpha / 8 == pytest.approx(math.log(beta / 2))


def test_lower_bounds():
    assert bounds.non_private_lower_bound(0.1, constant=3.0) == pytest.approx(30.0)
    assert bounds.pure_lower_bound(4096, constant=0.25) == 1024.0
    # Pure learning pays per bit, approximate learning does not: the gap the theory is about.
    pure = [bounds.exponential_thresholds(bits, 0.1, 0.1, 0.01) for bits in (1024, 4096)]
    approximate = [bounds.learn_thresholds(bits, 3, 0.1, 0.1, 0.01, 1e-6) for bits in (1024, 4096)]
    assert pure[1] > 3.9 * pure[0] and approximate[1] < 1.1 * approximate[0]


# -------------------------------------------------------------------------------- k points


def test_point_learner_as_printed_pays_for_an_accurate_database():
    """An (alpha/30)-accurate database takes answers within alpha/60, twice the examples of answers within alpha/30."""
    printed = bounds.point_learner_exact(0.1, 0.1, 1.0, 1e-6, calibration="printed")
    assert printed == bounds.point_release(0.5, 5e-7, 0.1 / 60, 0.025) == 141_684
    assert bounds.point_release(0.5, 5e-7, 0.1 / 30, 0.025) == printed / 2


@pytest.mark.parametrize(("alpha", "epsilon", "delta"), [*itertools.product([0.01, 0.3], [0.1, 2.0], [1e-9, 0.1])])
def test_point_release_keeps_the_condition_of_algorithm_2(alpha, epsilon, delta):
    n = bounds.point_release_private(epsilon, delta, alpha)
    condition = [math.exp(-epsilon * alpha * m / 8 + epsilon / 2) <= delta for m in (n - 1, n)]
    assert condition == [False, True] and bounds.point_release(epsilon, delta, alpha, 1e-9) >= n
    # The noise Lap(2/eps) of one of 4/alpha points is above alpha n/2.
    m = bounds.point_release(epsilon, 0.5, alpha, 1e-30)
    accurate = [4 / alpha * math.exp(-epsilon * alpha * size / 4) <= 1e-30 for size in (m - 1, m)]
    assert accurate == [False, True]


@pytest.mark.parametrize(("epsilon", "delta", "alpha", "beta"), [(1.0, 0.4, 0.1, 0.1), (1.0, 1e-6, 0.1, 0.1)])
def test_a_histogram_of_points_pays_for_heavy_and_for_light_points(epsilon, delta, alpha, beta):
    """1/alpha heavy points whose noise is low, n light ones whose noise is high: by the tails of Laplace noise of scale 2/epsilon."""
    high = bounds.histogram_margin(epsilon, delta)
    n = bounds.point_histogram(epsilon, high, alpha, beta)

    def failure(n):
        heavy, light = stats.laplace.cdf([high - alpha * n, -alpha * n], scale=2 / epsilon)
        return heavy / alpha + n * light

    assert failure(n) <= beta < failure(n - 1)


def test_san_thresholds_pays_for_noise_in_all_counts():
    """Where privacy does not decide: four intervals or a small range, and twice the noise of all 2y + 1 calls, rounding included."""
    bits, alpha, beta, epsilon = 16, 0.1, 0.1, 1.0
    n = bounds.san_thresholds(bits, alpha, beta, epsilon, 0.01)
    assert n > bounds.san_thresholds_private(alpha, epsilon, 0.01)
    y = bounds.san_thresholds_calls(alpha)
    u = math.log(3 * (3 * y + 1) / beta) / epsilon

    def error(n):
        return max(36 * alpha * n / 128, alpha * n / 8 + u) + 2 * (2 * y + 1) * (u + 0.5)

    assert error(n) <= alpha * n and error(n - 1) > alpha * (n - 1)


# -------------------------------------------------------------------------------- fingerprinting


@pytest.mark.parametrize("k", [10, 201, 10**4, 10**7])
def test_thresholds_need_as_many_examples_as_the_longest_code_has_users(k):
    """Proved: the padded code of n users has at most k columns, that of n + 1 has more; printed: Lemma 45's formula."""
    xi = 1e-3
    half = round(bounds.fingerprinting_thresholds(k, xi) / 3)  # at alpha = 1/3
    printed = bounds.fingerprinting_thresholds(k, xi, calibration="printed")
    fitting = [n for n in range(2, int(printed) + 2) if boneh_shaw(n, xi).length <= k]
    assert half == math.ceil(max(fitting, default=0) / 2)
    assert printed == 0 or 2 * printed**3 * math.log(2 * printed / xi) <= k
    assert 2 * (printed + 1) ** 3 * math.log(2 * (printed + 1) / xi) > k


def test_codes_of_too_few_users_carry_no_agnostic_bound():
    """Two users, and three by what Tardos states. With xi = 1e-3 two users take A * 4 * 8 columns, three A * 9 * 9, four A * 16 * 9."""
    assert [math.ceil(math.log(n / 1e-3)) for n in (2, 3, 4)] == [8, 9, 9]
    for columns, calibration, three, four in ((30, "proved", 9.0, 12.0), (100, "printed", 0.0, 4.0)):
        lengths = [columns * each for each in (4 * 8, 9 * 9, 16 * 9)]
        found = [bounds.fingerprinting_agnostic(k, 1e-3, calibration=calibration) for k in lengths]
        before = [bounds.fingerprinting_agnostic(k - 1, 1e-3, calibration=calibration) for k in lengths]
        assert found == [0.0, three, four] and before == [0.0, 0.0, three]
    assert tardos(4, 1e-3, score="symmetric").length == 30 * 16 * 9 and tardos(4, 1e-3).length == 100 * 16 * 9


def test_small_errors_need_more_and_small_domains_bear_less():
    """Remark 44: n/(3 alpha), or ceil(n/2)/alpha, n at most the points that the domain has for users and padding."""
    k, xi = 10**7, 1e-3
    printed = functools.partial(bounds.fingerprinting_thresholds, k, xi, calibration="printed")
    proved = functools.partial(bounds.fingerprinting_thresholds, k, xi)
    n = printed()
    assert printed(alpha=0.1) == pytest.approx(n / 0.3)
    assert printed(domain=2**20) == n > 15.0 == printed(domain=16)
    assert proved(domain=2**20, alpha=0.25) == proved(alpha=0.25) > 4 * n / 2 - 4
    assert [proved(domain=points, alpha=0.1) for points in (2, 3, 15, 16)] == [0.0, 10.0, 70.0, 80.0]
    users = bounds.fingerprinting_agnostic(k, xi, calibration="printed")
    assert bounds.fingerprinting_agnostic(k, xi, alpha=0.01, calibration="printed") == pytest.approx(users / 0.03)
    assert bounds.fingerprinting_agnostic(k, xi, alpha=0.5) > 2 * users
    for refused in ({"alpha": 0.5}, {"alpha": 0.34, "calibration": "printed"}, {"domain": 1}, {"domain": 8.0}):
        with pytest.raises((TypeError, ValueError), match=next(iter(refused))):
            proved(**refused)
    for refused in ({"alpha": 1.0}, {"alpha": 0.34, "calibration": "printed"}):
        with pytest.raises(ValueError, match="alpha"):
            bounds.fingerprinting_agnostic(k, xi, **refused)


@pytest.mark.parametrize("epsilon", [0.01, 0.5, 1.0, 4.0])
@pytest.mark.parametrize("n", [1, 10, 1000])
def test_so_many_rows_keep_the_guarantee_of_what_runs_on_some_of_them(epsilon, n):
    """Theorem 28 by the sharp form of Lemma 29; hardly fewer rows would do."""
    own = accounting.Guarantee(epsilon, 1e-6, accounting.REPLACE_ONE)
    rows = max(2, math.ceil(bounds.rows_of_empirical(epsilon) * n))
    kept = accounting.with_replacement(own, drawn=n, rows=rows)
    assert kept.covers(epsilon * (1 + 1e-9), 1e-6 * (1 + 1e-9))
    if n == 1000:
        less = accounting.with_replacement(own, drawn=n, rows=math.floor(rows * 0.99) - 1)
        assert not less.covers(epsilon, 1e-6)
    if epsilon <= 1.0:
        assert bounds.rows_of_empirical(epsilon) < bounds.rows_of_empirical(epsilon, calibration="printed") / 5


@pytest.mark.slow
def test_only_the_padded_code_carries_the_bound():
    """All ones, written by everybody but user 1: the code of the printed length surely accuses her, the padded one does not."""
    coalition = jnp.arange(6) > 0
    for variant, framed in (("original", True), ("padded", False)):
        code = boneh_shaw(6, 1e-3, variant=variant)
        accused = code.generate(jax.random.key(0)).trace(jnp.ones(code.length, bool)).accused
        assert bool(jnp.any(accused & ~coalition)) == framed
    assert boneh_shaw(6, 1e-3, variant="original").length <= 2 * 6**3 * math.log(12 / 1e-3)


# -------------------------------------------------------------------------------- arguments

GOOD = {
    bounds.pac_lower_bound: {"vc": 1, "alpha": 0.1},
    bounds.realizable: {"vc": 1, "alpha": 0.1, "beta": 0.1},
    bounds.agnostic: {"vc": 1, "alpha": 0.1, "beta": 0.1},
    bounds.exponential_mechanism: {"log_solutions": 3.0, "error": 0.1, "beta": 0.1, "epsilon": 1.0},
    bounds.stability_gap: {"beta": 0.1, "epsilon": 1.0, "delta": 1e-6, "calibration": "proved"},
    bounds.printed_equivalent: {"epsilon": 1.0, "delta": 1e-6},
    bounds.choosing_mechanism: {"growth": 1, "alpha": 0.1, "beta": 0.1, "epsilon": 1.0, "delta": 1e-6},
    bounds.choosing_mechanism_privacy: {"growth": 1, "alpha": 0.1, "epsilon": 1.0, "delta": 1e-6},
    bounds.learn_points: {
        "bits": 9,
        "alpha": 0.1,
        "beta": 0.1,
        "epsilon": 1.0,
        "delta": 1e-6,
        "calibration": "printed",
    },
    bounds.exponential_points: {"log_hypotheses": 3.0, "alpha": 0.1, "beta": 0.1, "epsilon": 1.0},
    bounds.exponential_parities: {"bits": 9, "beta": 0.1, "epsilon": 1.0},
    bounds.agnostic_parities: {"bits": 9, "alpha": 0.1, "beta": 0.1, "epsilon": 1.0},
    bounds.parity_learner_theorem: {"bits": 9, "epsilon": 1.0, "delta": 1e-6, "beta": 0.1},
    bounds.parity_learner_size: {"bits": 9, "epsilon": 1.0, "delta": 1e-6, "beta": 0.1, "calibration": "proved"},
    bounds.elimination_parities: {"bits": 9, "beta": 0.1},
    bounds.point_release_private: {"epsilon": 1.0, "delta": 1e-6, "alpha": 0.1},
    bounds.point_release: {"epsilon": 1.0, "delta": 1e-6, "alpha": 0.1, "beta": 0.1},
    bounds.point_histogram: {"epsilon": 1.0, "high": 30.0, "alpha": 0.1, "beta": 0.1},
    bounds.san_points_private: {"epsilon": 1.0, "delta": 1e-6, "alpha": 0.5},
    bounds.san_points: {"epsilon": 1.0, "delta": 1e-6, "alpha": 0.5, "beta": 0.1},
    bounds.point_learner_exact: {"alpha": 0.1, "beta": 0.1, "epsilon": 1.0, "delta": 1e-6, "calibration": "proved"},
    bounds.labelled_histogram: {"alpha": 0.1, "beta": 0.1, "epsilon": 1.0, "high": 30.0},
    bounds.rec_concave_lemma: {
        "size": 99,
        "depth": 1,
        "alpha": 0.1,
        "beta": 0.1,
        "epsilon": 1.0,
        "delta": 1e-6,
    },
    bounds.rec_concave: {"size": 99, "depth": 2, "alpha": 0.1, "beta": 0.1, "epsilon": 1.0, "delta": 1e-6},
    bounds.rec_concave_error: {"size": 99, "levels": 2, "beta": 0.1, "epsilon": 1.0, "delta": 1e-6},
    bounds.rec_concave_full_depth: {"size": 9, "alpha": 0.1, "beta": 0.1, "epsilon": 1.0, "delta": 1e-6},
    bounds.learn_thresholds: {
        "bits": 9,
        "depth": 2,
        "alpha": 0.1,
        "beta": 0.1,
        "epsilon": 1.0,
        "delta": 1e-6,
    },
    bounds.learn_thresholds_full_depth: {"bits": 9, "alpha": 0.1, "beta": 0.1, "epsilon": 1.0, "delta": 1e-6},
    bounds.exponential_thresholds: {"bits": 9, "alpha": 0.1, "beta": 0.1, "epsilon": 1.0},
    bounds.binary_search_thresholds: {"bits": 9, "alpha": 0.1, "beta": 0.1, "comparison_epsilon": 1.0},
    bounds.fingerprinting_thresholds: {"concepts": 999, "xi": 0.1, "calibration": "printed"},
    bounds.fingerprinting_agnostic: {"concepts": 10**6, "xi": 0.1},
    bounds.rows_of_empirical: {"epsilon": 1.0},
    bounds.non_private_lower_bound: {"alpha": 0.1},
    bounds.pure_lower_bound: {"bits": 9},
}
BAD = {
    **dict.fromkeys(("alpha", "beta", "delta", "xi"), (0.0, 1.0, math.nan, "0.1", True)),
    **dict.fromkeys(
        ("epsilon", "comparison_epsilon", "error", "high", "log_hypotheses"), (0.0, -1.0, math.inf, math.nan, None)
    ),
    **dict.fromkeys(("bits", "depth", "levels", "vc", "growth", "concepts"), (0, -3, 1.5, True)),
    "log_solutions": (-1.0, math.nan),
    "size": (0, 2.5),
    "calibration": ("other",),
}


@pytest.mark.parametrize("bound", GOOD, ids=lambda bound: bound.__name__)
def test_bad_arguments_are_named(bound):
    good = GOOD[bound]
    assert type(bound(**good)) in (float, int) and bound(**good) > 0  # ints where they are exact
    for name in good:
        for value in BAD[name]:
            with pytest.raises((TypeError, ValueError), match=name):
                bound(**{**good, name: value})


@pytest.mark.parametrize("bound", GOOD, ids=lambda bound: bound.__name__)
def test_numbers_of_numpy_give_what_those_of_python_do(bound):
    """With 64 bits as an int64, 2^bits is 0, and one float32 makes a whole formula as narrow."""
    narrow = {int: np.int64, float: np.float32, str: str}
    given = GOOD[bound] | ({"bits": 64} if "bits" in GOOD[bound] else {})
    wanted = bound(**{name: float(np.float32(x)) if type(x) is float else x for name, x in given.items()})
    found = bound(**{name: narrow[type(x)](x) for name, x in given.items()})
    assert found == wanted and type(found) is type(wanted)


FRACTIONS = {
    bounds.labelled_histogram: {"alpha": 0.125, "beta": 0.125, "epsilon": 0.5, "high": 0.5},
    bounds.pure_packing_padded: {"concepts": 8, "alpha": 0.125, "beta": 0.125, "epsilon": 0.5},
    bounds.pure_points: {"bits": 9, "concepts": 8, "alpha": 0.125, "beta": 0.125, "epsilon": 0.5},
    bounds.pure_lower_bound: {"bits": 9, "constant": 0.5},
}


@pytest.mark.parametrize("bound", {**GOOD, **FRACTIONS}, ids=lambda bound: bound.__name__)
def test_fractions_are_the_nearest_floats(bound):
    """SciPy accepted no fractions, and formulas that accept them returned one."""
    given = {**GOOD, **FRACTIONS}[bound]
    wanted = bound(**given)
    found = bound(**{name: Fraction(x) if type(x) is float else x for name, x in given.items()})
    assert found == wanted and type(found) is type(wanted)


def test_fractions_that_floats_do_not_hold_are_refused():
    with pytest.raises(ValueError, match="epsilon must be a number that float64 can hold"):
        bounds.pure_points(bits=9, concepts=8, alpha=0.125, beta=0.125, epsilon=Fraction(10**400, 3))


def test_a_domain_of_numpys_bits_is_not_empty():
    given = {"alpha": 0.1, "beta": 0.05, "epsilon": 0.7}
    assert bounds.histogram_thresholds(bits=np.int32(64), **given) == bounds.histogram_thresholds(bits=64, **given)
    assert bounds.sanitizer_k_points(np.int64(64), 8, **given) == bounds.sanitizer_k_points(64, 8, **given)
    assert bounds.histogram_thresholds(np.array(64), **given) == bounds.histogram_thresholds(jnp.int32(64), **given)


def test_what_is_proved_is_the_default():
    bearing = [bound for name in bounds.__all__ if callable(bound := getattr(bounds, name))]
    defaults = {
        bound.__name__: inspect.signature(bound).parameters["calibration"].default
        for bound in bearing
        if "calibration" in inspect.signature(bound).parameters
    }
    assert len(defaults) >= 7 and set(defaults.values()) == {"proved"}, defaults


def test_stability_noise_is_the_same_on_the_device():
    for calibration in ("printed", "proved", "proved_counts"):
        host = bounds.stability_noise(0.7, 1e-6, calibration=calibration)
        noise = jax.jit(lambda *at, kind=calibration: bounds.stability_noise(*at, calibration=kind, xp=jnp))
        device = noise(np.float32(0.7), np.float32(1e-6))
        np.testing.assert_allclose([float(x) for x in device], host, rtol=1e-6)
        for beta in (0.9, 0.01):
            gap = bounds.stability_gap(beta, 0.7, 1e-6, calibration=calibration)
            traced = jax.jit(lambda *at, kind=calibration: bounds.stability_gap(*at, calibration=kind, xp=jnp))
            assert float(traced(beta, 0.7, 1e-6)) == pytest.approx(gap, rel=1e-6)
    assert bounds.stability_noise(0.7, 1e-6, calibration="proved_counts")[0] == pytest.approx(1 / 0.7)


@pytest.mark.parametrize(("noises", "rate"), [(1, 0.5), (2, 3.0), (9, 0.1), (40, 0.5)])
def test_tails_of_sums_of_geometric_noises_are_exact(noises, rate):
    """Against convolutions; and the reach is the least number whose tail is small enough."""
    x, r = np.arange(-1500, 1501), math.exp(-rate)
    one = (1 - r) / (1 + r) * r ** np.abs(x)
    law = functools.reduce(lambda p, _: signal.fftconvolve(p, one)[1500:-1500], range(noises - 1), one)
    for least in (1, 3, 20, 60):
        assert bounds.geometric_sum_tail(noises, rate, least) == pytest.approx(
            law[1500 + least :].sum(), rel=1e-6, abs=1e-13
        )
    for tail in (0.4, 1e-3, 1e-9):
        reach = bounds.geometric_sum_reach(noises, rate, tail)
        assert (
            bounds.geometric_sum_tail(noises, rate, reach) <= tail < bounds.geometric_sum_tail(noises, rate, reach - 1)
        )
        assert bounds.geometric_sum_tail(noises, rate, reach) <= bounds.noise_tail(noises, rate * reach)
    assert bounds.geometric_sum_tail(noises, rate, 0) == 1.0 and bounds.geometric_sum_reach(noises, rate, 1.0) == 0


def test_tails_of_many_or_tiny_sums_are_bounds():
    assert bounds.geometric_sum_tail(65, 0.1, 200) == bounds.noise_tail(65, 20.0)
    for noises, rate in ((3, 1e-4), (100, 0.3)):
        assert bounds.geometric_sum_tail(noises, rate, bounds.geometric_sum_reach(noises, rate, 1e-300)) <= 1e-299
        reach = bounds.geometric_sum_reach(noises, rate, 1e-12)
        assert (
            bounds.geometric_sum_tail(noises, rate, reach) <= 1e-12 < bounds.geometric_sum_tail(noises, rate, reach - 1)
        )


@pytest.mark.parametrize(
    ("noises", "rate", "tail"), [(21, 0.125, 3e-273), (38, 2e-5, 1.9e-199), (27, 2.75e-6, 4e-232), (80, 1.0, 1e-289)]
)
def test_reaches_of_tiny_tails_are_enough_and_found_at_once(noises, rate, tail, monkeypatch):
    """Further right, where the search begins, float64 holds neither the tail nor r^k."""
    module = importlib.import_module("dpjax.bounds.threshold_sanitizers")
    asked, exact = [], module._sum_tail
    monkeypatch.setattr(module, "_sum_tail", lambda *given: asked.append(given) or exact(*given))
    reach = module.geometric_sum_reach.__wrapped__(noises, rate, tail)
    assert bounds.noise_tail(noises, rate * reach) <= tail * (1 + 1e-6) and len(asked) < 100


def test_further_refusals():
    for wrong in ({"noises": 0}, {"rate": 0.0}):
        with pytest.raises(ValueError, match=f"{next(iter(wrong))} must be"):
            bounds.geometric_sum_tail(**({"noises": 2, "rate": 1.0, "least": 3} | wrong))
    with pytest.raises(ValueError, match="noises must be"):
        bounds.noise_deviation(-1, 10.0)
    for wrong in (math.nan, math.inf):
        with pytest.raises(ValueError, match="deviation must be"):
            bounds.noise_tail(3, wrong)
    for ask in (
        lambda beta: bounds.realizable(1, 0.1, beta),
        lambda beta: bounds.binary_search(64, 0.1, beta, 1.0),
        lambda beta: bounds.histogram_thresholds(4, 0.1, beta, 1.0),
    ):
        assert math.isfinite(ask(1e-150))
        with pytest.raises(ValueError, match=r"beta must be >= 3\.05"):  # whose quotients are infinite
            ask(1e-307)
    with pytest.raises(ValueError, match="shift must be"):
        bounds.set_cover_errors(1e6, 5.0, 5, 20, 0.1, 0.05, -1)
    with pytest.raises(TypeError, match="alpha must be"):
        bounds.san_thresholds_private("0.1", 0.006, 1e-9)
    with pytest.raises(ValueError, match="alpha must be"):
        bounds.interval_search_thresholds(
            7, 2.0, 0.1, comparison_epsilon=0.05, stability_epsilon=0.2, stability_delta=1e-6, choice_epsilon=0.1
        )
    budgets = {"comparison_epsilon": 0.05, "stability_epsilon": 0.2, "stability_delta": 1e-6, "choice_epsilon": 0.1}
    for name in budgets:
        with pytest.raises(TypeError, match=f"{name} must be a real number"):
            bounds.interval_search(7, 0.1, 0.05, **(budgets | {name: None}))
    with pytest.raises(ValueError, match="delta must be <= 1/2"):
        bounds.stability_gap(0.1, 1.0, 0.6, calibration="proved")
    with pytest.raises(ValueError, match="alpha must be <= 1/2"):
        bounds.rec_concave(9, 1, 0.6, 0.1, 1.0, 1e-6, calibration="printed")
    with pytest.raises(ValueError, match="epsilon must be <"):
        bounds.choosing_mechanism(1, 0.9, 0.9, 1e9, 0.9)
    with pytest.raises(ValueError, match="number"):
        bounds.log_star(-1)
    with pytest.raises(ValueError, match="constant"):
        bounds.pure_lower_bound(9, constant=0.0)


@pytest.mark.parametrize("bits", [2**25, 10**15])
def test_domains_too_large_to_write_down_are_refused_at_once(bits):
    for call in (
        lambda: bounds.learn_thresholds(bits, 2, 0.1, 0.1, 1.0, 1e-6),
        lambda: bounds.exponential_parities(bits, 0.1, 1.0),
        lambda: bounds.pure_proper_thresholds(bits, 0.1, 0.1, 1.0),
        lambda: bounds.pure_points(bits, 1, 0.1, 0.1, 1.0),
        lambda: bounds.sanitizer_k_points(bits, 1, 0.1, 0.1, 1.0),
        lambda: bounds.approximate_proper_thresholds(bits, 0.1, 1.0, 1e-6),
    ):
        with pytest.raises(ValueError, match=f"bits must be from . to {2**24}, got"):
            call()
    with pytest.raises(ValueError, match="vc must be from 1 to 1024"):
        bounds.vc_of_differences(bits)


def test_formulas_refuse_by_name_what_they_once_took():
    for call, words in (
        (lambda: bounds.histogram_margin("1", 1e-6), "epsilon must be a real number"),
        (lambda: bounds.point_learner_above(0.1, 0.1, -1.0, 9.0), "epsilon must be > 0"),
        (lambda: bounds.point_learner_least_count(True, 1.0, 1e-6), "beta must be a real number"),
        (lambda: bounds.exponential_points(5.0, 0.1, 0.1, 1.0, lost=math.nan), "lost must be a number, not NaN"),
        (lambda: bounds.any_class(5.0, 5.0, 2, 4, 0.1, 0.1, 1.0, constant=-1.0), "constant must be > 0"),
        (lambda: bounds.empirical_to_pac(1, 0.1, 0.1, agnostic="no"), "agnostic must be True or False"),
        (lambda: bounds.agnostic(10**400, 0.1, 0.1), "vc must be from 1"),
        (lambda: bounds.iterated_log2(16, 2, ceil=1), "ceil must be True or False"),
    ):
        with pytest.raises((TypeError, ValueError), match=words):
            call()


def test_what_floats_cannot_hold_is_computed_or_refused_by_name():
    printed = {"calibration": "printed"}
    for call, words in (
        (lambda: bounds.histogram_thresholds(1024, 0.1, 0.1, 1.0), "bits must be from 1 to 1023"),
        (lambda: bounds.rec_concave(2**64, 400, 0.1, 0.1, 1.0, 1e-6, **printed), "depth must be from 1 to 341"),
        (lambda: bounds.rec_concave(2**64, 10**400, 0.1, 0.1, 1.0, 1e-6, **printed), "depth must be from 1 to 341"),
        (lambda: bounds.rec_concave_lemma(2**64, 400, 0.1, 0.1, 1.0, 1e-6), "depth must be from 1 to 341"),
        (lambda: bounds.rec_concave_error(1, 400, 0.1, 1.0, 1e-6), "levels must be from 1 to 341"),
        (lambda: bounds.pure_points(2000, 2**1500, 0.1, 0.1, 1.0, **printed), "concepts must be from 1 to"),
        (lambda: bounds.iterated_log2(2**4096, 0), "number must be a number that float64 can hold"),
        (lambda: bounds.agnostic(1, 1e-300, 0.1), "alpha must be >= .*, got 1e-300"),
        (lambda: bounds.finite_class(1.0, 1e-300, 0.1, 1.0), "alpha must be >= .*, got 1e-300"),
        (lambda: bounds.approximating_rows(1, 1e-300), "alpha must be >= .*, got 1e-300"),
        (
            lambda: bounds.approximating_rows(1, 1e-12),
            "alpha must be such that 2\\^64 rows are enough, got alpha = 1e-12",
        ),
        (lambda: bounds.pure_packing_padded(5, 0.1, 0.1, 1e-25), "epsilon must be such that .*epsilon = 1e-25"),
        (lambda: bounds.pure_points(64, 2, 1e-25, 0.1, 1.0), "alpha and epsilon must be such that .*alpha = 1e-25"),
        (lambda: bounds.labelled_histogram(1e-25, 0.1, 1.0, 30.0), "alpha and count must be such that"),
        (lambda: set_cover.shared_test(rate=800.0, noise_epsilon=0.0, delta=1e-6), "rate must be <= 709"),
    ):
        with pytest.raises(ValueError, match=words):
            call()
    assert bounds.tree_thresholds(1024, 0.1, 0.1, 1.0) == pytest.approx(
        1.0007 * bounds.tree_thresholds(1023, 0.1, 0.1, 1.0), rel=1e-2
    )
    assert bounds.noise_tail(1, 1e17) == 0.0
    assert bounds.rows_of_empirical(800.0) == math.inf == -bounds.fingerprinting_delta(10, 1e-4, 0.1, 800.0)
    assert bounds.fingerprinting_thresholds_pac(10**6, 1e-3, 800.0) == 0.0
    assert bounds.approximate_proper_thresholds(64, 0.1, 800.0, 0.0) == 1
    assert bounds.pure_points(2000, 2**1000, 0.1, 0.1, 1.0, **printed) > 2**1000
    assert bounds.parity_learner_size(bits=64, epsilon=1e15, delta=1e-6, beta=0.1) in range(66, 72)  # at once
    rate = set_cover.rate_for(epsilon=1500.0, delta=1e-6)
    assert 1499.0 < set_cover.shared_test(rate=rate, noise_epsilon=0.0, delta=1e-6).epsilon <= 1500.0
    assert set_cover.process_delta(800.0, 1.0) == 1.0
    assert set_cover.process_delta(1e-310, 0.0) == pytest.approx(1e-310 / math.e, rel=1e-9)
    assert bounds.stability_gap(0.6, 1e-310, 1e-9) == bounds.stability_gap(0.4, 1e-310, 1e-9) == math.inf
    for call, words in (
        (
            lambda: bounds.set_cover_shift(40, 0.1, 1e-308),
            r"set_cover_shift\(40, 0.1, 1e-308\) must have numbers whose",
        ),
        (lambda: bounds.sanitizer_blocks(1e-308), r"sanitizer_blocks\(1e-308\) must have"),
        (lambda: bounds.point_rows(1e-310, 0.0), "error must be >="),
        (lambda: bounds.set_cover(1.0, 5, 20, 0.1, 0.1, 0.05, 10**400), "an int of 1329 bits"),
        (lambda: bounds.label_private(1, 0.1, 0.1, 1.0, unlabelled=-5, **printed), "unlabelled .* must be absent"),
    ):
        with pytest.raises(ValueError, match=words):
            call()


def test_exponential_points_near_nothing_to_gain():
    """r = (1 - sqrt(g))^2, where g = 1 - 4e-16."""
    lost = 1.0 - 2.0**-51
    assert bounds.exponential_points(4.0, 0.5, 0.5, 1.0, lost=lost) == pytest.approx(
        2 * (4 + math.log(2)) * 2.0**104, rel=1e-6
    )


def test_numbers_of_rows_and_rounds_at_tiny_errors():
    assert bounds.point_rows(1e-10, 0.0) == 10**10
    assert bounds.san_points_rounds(1e-13) == 2 * 10**13
    for rows in range(3, 3000):  # rounding makes no further row, or round
        assert bounds.point_rows(1 / rows, 0.0) == rows == bounds.san_points_rounds(2 / rows)
    assert bounds.point_rows(0.1, 0.04) == 50


@pytest.mark.parametrize(("points", "vc"), [(1, 1), (4, 2), (5, 4), (7, 10), (101, 50), (300, 200), (300, 299)])
def test_sauers_lemma_is_the_sum_of_binomials(points, vc):
    expected = math.log(sum(math.comb(points, i) for i in range(min(vc, points) + 1)))
    assert bounds.log_dichotomies(points, vc) == pytest.approx(expected, rel=1e-12)


def test_sauers_lemma_takes_no_time_for_huge_dimensions():
    """Half of all labellings, and all of them, of 10^10 points."""
    points = 10**10
    assert bounds.log_dichotomies(points + 1, points // 2) == pytest.approx(points * math.log(2), rel=1e-12)
    assert bounds.log_dichotomies(points, points) == pytest.approx(points * math.log(2), rel=1e-12)
    assert bounds.log_dichotomies(points, 1) == pytest.approx(math.log1p(points), rel=1e-12)
    points = 10**30  # a sum over all of their middle would take years
    assert bounds.log_dichotomies(points + 1, points // 2) == pytest.approx(points * math.log(2), rel=1e-12)
    assert bounds.log_dichotomies(points, points) == points * math.log(2)
    with pytest.raises(ValueError, match=r"vc and alpha and epsilon must be such that 2\^64 rows are enough"):
        bounds.label_private_agnostic_whole(points, 0.1, 0.1, 1.0)


def test_point_learner_as_printed_pays_for_answers_that_rarely_err():
    """At a tiny beta it is (480/(alpha epsilon)) ln(960/(alpha beta)): Algorithm 2 at alpha/60 errs with beta/4."""
    found = bounds.point_learner_exact(0.1, 1e-12, 1.0, 0.1, calibration="printed")
    assert found == math.ceil(4800 * math.log(9600 / 1e-12))


@pytest.mark.parametrize("bits", [np.int64(96), np.uint64(96), np.uint8(96)])
def test_the_modules_take_numpys_numbers_as_the_package_does(bits):
    assert packing.pure_proper_thresholds(bits, 0.1, 0.1, 1.0) == bounds.pure_proper_thresholds(96, 0.1, 0.1, 1.0)
    assert parities.exponential_parities(bits, 0.1, 1.0) == bounds.exponential_parities(96, 0.1, 1.0)


def test_the_histogram_of_a_wide_domain_needs_as_many_rows_as_its_noise_is_large():
    """The deviation of a sum of 2^d noises doubles with every second bit, as far as a float holds their number."""
    sizes = [bounds.histogram_thresholds(bits, 0.1, 0.1, 1.0) for bits in (126, 128, 130, 1021, 1023)]
    assert sizes[2] / sizes[1] == pytest.approx(2.0, rel=1e-6) == sizes[1] / sizes[0] == sizes[4] / sizes[3]


def test_point_learner_as_printed_pays_for_heavy_points_that_rarely_show():
    """At an epsilon so large that noise costs nothing it is (200/(81 alpha)) ln(4/(alpha beta))."""
    found = bounds.point_learner_exact(0.1, 1e-60, 1e6, 0.1, calibration="printed")
    assert found == math.ceil(2000 / 81 * math.log(40 / 1e-60))


def test_the_theorem_of_parities_leaves_half_of_beta_to_the_gap():
    """Where epsilon is small, A_dist costs most: (4/3) (2 + (2/eps) (ln(1/(2 delta)) + ln(1/b))) times d + 3."""
    each = math.ceil(4 / 3 * (2 + 20 * (math.log(5e5) + math.log(10))))
    assert bounds.parity_learner_theorem(bits=256, epsilon=0.1, delta=1e-6, beta=0.1) == 259 * each


@pytest.mark.parametrize("log_concepts", [0, -1.0, float("nan")])
def test_a_class_without_concepts_is_refused_by_its_name(log_concepts: float) -> None:
    for bound in (bounds.label_private_whole, bounds.label_private_agnostic_whole):
        with pytest.raises(ValueError, match="log_concepts must be"):
            bound(1, 0.1, 0.1, 1.0, log_concepts=log_concepts)
