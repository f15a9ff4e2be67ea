"""One answer for several fractions."""

import itertools
import math

import jax
import numpy as np
import pytest

import dpjax
from dpjax import Points
from dpjax.choice import base
from dpjax.choice import shared_quantiles as choice
from dpjax.domains import wide
from dpjax.optimizers import interior_point, quantiles
from dpjax.optimizers.quantiles import nearest_rank, rank_errors

MEDIAN = quantiles.permute_and_flip(bits=3, fractions=[0.5], epsilon=1.0)
FEW = quantiles.shared(MEDIAN, fractions=[0.1, 0.45, 0.5, 0.95])
DATA = Points.create(wide.from_ints([0, 2, 2, 3, 5, 5, 6, 6, 6, 7], 3))


@pytest.mark.thorough
def test_an_event_is_one_interval_for_each_fraction():
    law = np.asarray(MEDIAN.pmf(DATA))
    assert FEW.serves == (0, 1, 1, 2) and float(FEW.distance()) == pytest.approx(0.05)
    assert float(FEW.distance(ends=True)) == pytest.approx(0.1)
    for first, one, other, last in (
        ((0, 1), (2, 7), (0, 5), (7, 8)),
        ((0, 8), (0, 3), (5, 8), (0, 8)),  # no answer is in both
        ((1, 8), (0, 8), (0, 8), (0, 8)),  # the first answer is 0
        ((0, 8), (0, 8), (0, 8), (0, 7)),  # the last is 7
    ):
        event = tuple(wide.from_ints(ends, 64) for ends in zip(first, one, other, last, strict=True))
        inside = set(range(*one)) & set(range(*other)) if first[0] == 0 and last[1] == 8 else set()
        expected = sum(law[z] for z in inside)
        np.testing.assert_allclose(FEW.probability(DATA, event), [expected, 1 - expected], atol=1e-6)
    np.testing.assert_allclose(float(np.sum(FEW.pmf(DATA))), 1.0, rtol=1e-5)


def test_ranks_are_those_of_the_answers_and_no_further_away_than_their_fractions():
    released = FEW(jax.random.key(0), DATA)
    answers, points = released.hypothesis, FEW.prepare(FEW.fit(DATA))
    assert released.status == dpjax.Status.OK
    assert wide.to_ints(answers)[0] == 0 and wide.to_ints(answers)[3] == 7
    assert wide.to_ints(answers)[1] == wide.to_ints(answers)[2]

    @jax.jit
    def both(points, answers):
        ranks = (nearest_rank(made.fractions, points.n_valid) for made in (FEW, MEDIAN))
        return [rank_errors(points, z, rank) for z, rank in zip((answers, answers[1:2]), ranks, strict=True)]

    errors, own = map(np.asarray, both(points, answers))
    distance = max(FEW.distance(), FEW.distance(ends=True))
    assert (errors <= own.max() + np.ceil(float(distance) * 10)).all()


def test_ends_serve_what_they_reach_and_nothing_else():
    made = quantiles.shared(MEDIAN, fractions=[0.1, 0.15, 0.2, 0.8, 0.99], ends=0.15)
    assert made.serves == (0, 0, 1, 1, 2)
    assert quantiles.shared(MEDIAN, fractions=[0.01, 0.5, 0.99], ends=0.0).serves == (1, 1, 1)
    assert quantiles.shared(MEDIAN, fractions=[0.01, 0.5, 0.99]).serves == (0, 1, 2)
    assert quantiles.shared(MEDIAN, fractions=[0.01, 0.5, 0.99], ends=0.0).distance(ends=True) == 0


@pytest.mark.thorough
@pytest.mark.parametrize("n", [500, 501, 503])
def test_an_end_errs_by_its_fraction_and_half_a_rank(n):
    points = Points.create(wide.from_ints(range(1, n + 1), 10), ordered=True)
    made = quantiles.shared(
        quantiles.permute_and_flip(bits=10, fractions=[0.5], epsilon=1.0), fractions=[0.1, 0.5, 0.9]
    )
    ends = made(jax.random.key(0), points).hypothesis
    errors = np.asarray(rank_errors(points, ends, nearest_rank(made.fractions, n)))[[0, 2]]
    assert (errors <= 0.101 * n).all() and (errors >= 0.1 * n - 0.5).all()


SENSITIVE = quantiles.inverse_sensitivity(bits=3, fractions=[0.5], epsilon=1.0)


def test_what_the_answers_know_is_known():
    few = quantiles.shared(SENSITIVE, fractions=[0.1, 0.45, 0.5, 0.95])
    assert few.zcdp() == SENSITIVE.zcdp() and few.focused(100_000).answers == SENSITIVE.focused(100_000)


@pytest.mark.thorough  # it compiles inverse sensitivity
def test_the_bound_of_the_answers_bounds_all():
    inner, few = SENSITIVE, quantiles.shared(SENSITIVE, fractions=[0.1, 0.45, 0.5, 0.95])
    points = few.prepare(few.fit(DATA))
    bound = float(few.failure_bound(points, few.near(points, 5)))
    assert float(inner.failure_bound(points, inner.near(points, 5))) <= bound < 1.0
    assert float(few.failure_bound(points, few.near(points, 0))) == 1.0  # 0 is not at rank 1


def test_a_size_is_that_of_the_answers_at_what_is_left():
    assert FEW.sample_size(alpha=0.3, beta=0.1) == MEDIAN.sample_size(alpha=float(0.3 - FEW.distance()), beta=0.1)
    assert FEW.guarantee() == MEDIAN.guarantee()
    assert FEW.sample_size(alpha=0.101, beta=0.1) == 501  # an end errs by 0.1 n + 1/2, and 0.1 is rounded up
    assert FEW.sample_size(alpha=0.101, beta=0.1) > MEDIAN.sample_size(alpha=0.05, beta=0.1)
    with pytest.raises(ValueError, match=r"alpha must be > 0\.1\d*, by which fractions differ .* got 0\.1"):
        FEW.sample_size(alpha=0.1, beta=0.1)


@pytest.mark.parametrize(
    ("answers", "fractions", "error", "words"),
    [
        (3, [0.5], TypeError, "answers must be quantiles"),
        (MEDIAN, [0.5, 0.4], ValueError, "fractions must increase"),
        (MEDIAN, [0.1, 0.9], ValueError, "fractions must have one for each answer, got none near 0.5"),
    ],
)
def test_what_cannot_be_shared_is_refused(answers, fractions, error, words):
    with pytest.raises(error, match=words):
        quantiles.shared(answers, fractions=fractions)


@pytest.mark.parametrize("ends", [-0.1, 0.5, math.nan])
def test_ends_reach_less_than_half(ends):
    with pytest.raises(ValueError, match="ends must be"):
        quantiles.shared(MEDIAN, fractions=[0.5], ends=ends)


@pytest.mark.parametrize("seed", range(20))
def test_no_answers_of_the_same_number_are_nearer_to_all_fractions(seed):
    rng = np.random.default_rng(seed)
    fractions = tuple(np.unique(rng.integers(1, 100, rng.integers(2, 9)) / 100).tolist())

    def radius(some):
        return max(min(abs(f - c) for c in some) for f in fractions)

    for count in range(1, min(3, len(fractions))):
        centres, needed = choice.covered(fractions, count, 0.5)
        assert len(centres) <= count and radius(centres) == pytest.approx(needed)
        assert needed <= min(map(radius, itertools.combinations(np.arange(1, 200) / 200, count))) + 1e-3


@pytest.mark.parametrize(("alpha", "ends"), [(0.02, 0.019), (0.1, 0.05), (0.3, 0.28)])
def test_what_may_be_shared_serves_all_that_the_ends_do_not(alpha, ends):
    fractions = tuple(np.unique(np.random.default_rng(0).uniform(0.0, 1.0, 40)).tolist())
    inner = [f for f in fractions if ends < f < 1 - ends]
    choices = choice.served(fractions, alpha, ends)
    assert choices[-1] == (tuple(inner), 0.0)  # the tree pays next to nothing for each
    for centres, radius in choices:
        assert radius < alpha and all(min(abs(f - c) for c in centres) <= radius + 1e-12 for f in inner)


def test_every_answer_that_may_be_shared_serves_a_fraction():
    """Of 19 and 10 evenly spaced ones, one would be nearest to a fraction in the middle between two alone, which the lower one serves."""
    many = "04 05 10 13 15 16 17 18 20 21 23 24 25 26 27 28 31 37 39 40 44 45 46 50 52 53 55 59 60 61 66 74 76 79 83 84 85 88 89 93 94 99"
    ten = "07 09 10 14 16 17 18 19 24 25 31 41 43 47 49 51 52 67 71 72 73 74 76 77 79 82 83 84 86 89 93 94 95 96 97 99"
    for texts, alpha in ((many, 0.05), (ten, 0.1)):
        fractions = choice.rounded(tuple(int(text) / 100 for text in texts.split()))
        ends = choice._reach(alpha, fractions, 0.5)
        for centres, _ in choice.served(fractions, alpha, ends, True):
            kept = quantiles.permute_and_flip(bits=8, fractions=centres, epsilon=1.0)
            assert {*range(1, len(centres) + 1)} <= {*quantiles.shared(kept, fractions=fractions, ends=ends).serves}


@pytest.mark.parametrize("seed", range(5))
def test_answers_that_are_moved_apart_serve_their_fractions_and_none_are_farther_apart(seed):
    rng = np.random.default_rng(seed)
    many = tuple(np.sort(rng.choice(np.arange(1, 10_000), rng.integers(3, 60), replace=False) / 10_000).tolist())
    for count in range(1, len(many)):
        _, radius = choice.covered(many, count, 1.0)
        first, last = np.array(choice._groups(many, radius * (1 + 1e-12))).T
        low, high = np.maximum(last - radius, many[0] / 2), np.minimum(first + radius, (1 + many[-1]) / 2)
        bounds = [(high[j] - low[i]) / (j - i) for i in range(len(low)) for j in range(i + 1, len(low))]
        found = np.array(choice._apart(many, radius))
        assert len(found) == len(first) <= count and found[0] > 0 and found[-1] < 1
        assert np.all((found >= low - 1e-12) & (found <= high + 1e-12))
        assert np.diff(found).min(initial=1.0) >= min(bounds, default=1.0) * (1 - 1e-5)
        kept = quantiles.permute_and_flip(bits=8, fractions=found.tolist(), epsilon=1.0)
        shared = quantiles.shared(kept, fractions=many, ends=0.0)  # refused if an answer serves none
        assert float(shared.distance()) <= radius + 2.0**-31


@pytest.mark.parametrize(("count", "most"), [(81, 0.019), (95, 0.018), (116, 0.0215), (144, 0.02)])
def test_groups_of_different_sizes_cost_little(count, most):
    """With the middle of each group, errors were 12 to 23 % larger here: noisy slices need all gaps to be large."""
    fractions = np.arange(1, count + 1) / (count + 1)
    found = dpjax.choose("quantiles", bits=32, n=30_000, epsilon=1.0, delta=1e-6, fractions=fractions)
    assert found.name.startswith(("noisy_slices", "supported_slices")) and found.alpha < most


def test_few_answers_serve_many_fractions():
    given = {"bits": 32, "epsilon": 0.1, "delta": 1e-6, "alpha": 0.2, "beta": 0.1}
    fractions = [i / 100 for i in range(1, 100)]
    many = dpjax.choose("quantiles", fractions=fractions, **given)
    assert "for all" in many.name and many.n < 12_000 and many.guarantee.covers(0.1, 1e-6)
    assert many.algorithm.sample_size(alpha=0.2, beta=0.1) <= 1.03 * many.n  # it does not know of two good points
    assert len(many.algorithm.serves) == 99
    assert "for all" not in dpjax.choose("quantiles", fractions=[0.25, 0.5, 0.75], **{**given, "alpha": 0.05}).name


def test_ends_of_the_domain_serve_almost_alpha():
    given = {"bits": 32, "epsilon": 0.1, "alpha": 0.16, "beta": 0.1}
    found = dpjax.choose("quantiles", fractions=[0.15, 0.5, 0.85], **given)
    assert "1 for all" in found.name and found.algorithm.serves == (0, 1, 2)
    assert found.n == dpjax.choose("median", **given).n <= found.algorithm.sample_size(alpha=0.16, beta=0.1)


def test_where_few_records_suffice_the_ends_need_some_for_rounding():
    asked = {"n": None, "delta": 0.0, "beta": 0.1, "relation": "ADD_OR_REMOVE_ONE", "fractions": (0.0949, 0.5)}
    offer = choice.SHARED[0].offer(base.Question(bits=32, epsilon=32.0, alpha=0.1, **asked))
    assert offer.n == 99 == offer.make(99).sample_size(alpha=0.1, beta=0.1)  # 0.0051 n is half a rank


@pytest.mark.thorough
def test_shared_slices_are_large_enough_where_two_fractions_are_rounded_to_different_ranks():
    """At 21 points 0.499 and 0.501 mean ranks 10 and 11: an answer m - 1 ranks from the one is m from the other."""
    solver = interior_point.exponential(bits=16, epsilon=3.0)
    answers = quantiles.direct(solver=solver, fractions=[0.499], m=5, beta=0.0201)
    few = quantiles.shared(answers, fractions=[0.501])
    n = few.sample_size(alpha=0.2163, beta=0.0201)
    for zeros in range(n + 1):
        x = [*range(zeros), *range(2**16 - n + zeros, 2**16)]
        points = Points.create(wide.from_ints(x, 16))
        assert float(few.failure_probability(points, error=0.2163)) <= 0.0201


@pytest.mark.thorough
def test_a_curved_tree_score_has_no_bounded_range():
    assert not interior_point.flat_tree_score_planned(bits=4, epsilon=1.0, beta=0.1, evaluations=1).bounded_range


def test_a_larger_alpha_never_takes_more_of_few_records():
    """Between the largest and the smallest reach of the ends there are others, whose rounding takes as many records as the answers do."""
    given = {"bits": 8, "epsilon": 2.0, "delta": 1e-6, "beta": 0.05, "fractions": [i / 32 for i in range(1, 32)]}
    sizes = [dpjax.choose("quantiles", alpha=alpha, **given).n for alpha in (0.38, 0.4, 0.45, 0.47, 0.495, 0.5)]
    assert sizes == sorted(sizes, reverse=True)


def test_an_answer_that_serves_its_own_fraction_alone_needs_no_rounding():
    given = {"bits": 16, "epsilon": 6.6, "delta": 1e-6, "relation": "REPLACE_ONE", "fractions": [0.0, 0.5]}
    choice = dpjax.choose("quantiles", alpha=0.0169, beta=0.3, **given)
    assert choice.name.startswith("direct") and choice.n == choice.algorithm.sample_size(alpha=0.0169, beta=0.3)
