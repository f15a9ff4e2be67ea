"""Kearns's learner of rectangles: its cells and sides against lists, the law of its noise, its privacy, and what it promises."""

import itertools
import math
from typing import Any

import builders
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from dpjax import Points
from dpjax.accounting import ADD_OR_REMOVE_ONE, REPLACE_ONE, Guarantee, basic
from dpjax.concepts import rectangles as concept
from dpjax.core.pytree import frozen
from dpjax.data.outcome import Outcome, Status
from dpjax.domains import wide
from dpjax.learners import rectangles
from dpjax.optimizers import interior_point, quantiles
from dpjax.sanitizers import cdf
from dpjax.verify.plain import kearns as twin

CUTS = [3, 7, 8]


@frozen
class Known:
    """A known database that looks like a sanitizer from the outside, with the promise that it leaks nothing."""

    points: Any

    def __call__(self, key: Any, points: Points) -> Outcome:
        return Outcome(hypothesis=self, status=jnp.int32(Status.OK), info={})

    def support(self) -> Any:
        return self.points, jnp.ones(self.points.shape[0], bool)

    def guarantee(self) -> Guarantee:
        return Guarantee(0.0, 0.0, ADD_OR_REMOVE_ONE)

    def sample_size(self, *, alpha: float, beta: float) -> int:
        return 1


def learner(epsilon: float = 0.7, beta: float = 0.9) -> Any:
    return rectangles.kearns(
        axes=1, bits=4, epsilon=epsilon, sanitizer=Known(points=wide.from_ints(CUTS, 4)), cuts=len(CUTS), beta=beta
    )


def examples(xs: list[int], ys: list[int]) -> Any:
    x = np.zeros((31, 1, 1), np.uint32)
    x[: len(xs), 0, 0] = xs
    return concept.Examples.create(x, np.pad(ys, (0, 31 - len(ys))), len(xs))


def as_side(hypothesis: Any) -> Any:
    low, high = concept.to_ints(hypothesis)
    return (low[0], high[0]) if low[0] <= high[0] else None


def test_cells_and_sides_are_those_of_the_lists() -> None:
    made, rng = learner(), np.random.default_rng(0)
    count, sides = jax.jit(lambda z, data: made.counts(z, data, 0)), jax.jit(jax.vmap(made.side, in_axes=(None, 0)))
    flags = np.array(list(itertools.product((False, True), repeat=7)))
    for cuts in (CUTS, [0, 5, 15]):
        z = wide.from_ints(cuts, 4)
        xs, ys = rng.integers(0, 16, 31), rng.integers(0, 2, 31)
        assert count(z, examples(xs.tolist(), ys.tolist())).tolist() == twin.cells(cuts, xs[ys == 1].tolist())
        low, high, found = sides(z, flags)
        for row, *ends, there in zip(flags, low[:, 0].tolist(), high[:, 0].tolist(), found.tolist(), strict=True):
            assert twin.side(cuts, row) == (tuple(ends) if there else None)
    doubled = count(wide.from_ints([3, 3, 8], 4), examples([3, 3, 5, 8, 1], [1] * 5))
    assert doubled.tolist() == [1, 2, 0, 0, 1, 1, 0]  # equal cuts: the first one has the point


def test_runs_follow_the_law_of_the_twin() -> None:
    made, trials = learner(epsilon=1.0), 4096
    positive = [3] * 5 + [5] * 4 + [7] * 6 + [12] * 3
    data = made.fit(examples([*positive, 1, 14], [1] * len(positive) + [0, 0]))
    runs = jax.jit(jax.vmap(lambda key: made(key, data)))(jax.random.split(jax.random.key(2), trials))
    law = twin.side_law(CUTS, positive, threshold=int(made.threshold), epsilon=1.0)
    low, high = (np.asarray(face)[:, 0, 0] for face in (runs.hypothesis.low, runs.hypothesis.high))
    for found, p in law.items():
        same = low > high if found is None else (low == found[0]) & (high == found[1])
        # Five standard deviations and a half: 2e-5 for all of them together.
        assert abs(same.mean() - p) <= 5.5 * math.sqrt(p * (1 - p) / trials) + 1 / trials, found
    assert max(law.values()) < 0.9  # neither sure nor hopeless


@pytest.mark.parametrize(("share", "holds"), [(1.0, True), (0.8, False)])
def test_all_neighbours_of_a_small_domain_keep_epsilon_and_less_is_refuted(share: float, holds: bool) -> None:
    """All multisets of up to three positive examples, one more or less; with given cuts all that leaks is the noise."""
    epsilon = 1.1
    inside = {
        xs: twin.side_law([2, 4], xs, threshold=2, epsilon=epsilon)
        for size in range(4)
        for xs in itertools.combinations_with_replacement(range(6), size)
    }
    worst = 0.0
    for xs, law in inside.items():
        for place in range(len(xs)):
            other = inside[xs[:place] + xs[place + 1 :]]
            for p, q in ((law, other), (other, law)):
                assert p.keys() == q.keys()
                worst = max(worst, sum(max(p[s] - math.exp(share * epsilon) * q[s], 0.0) for s in p))
    assert (worst <= 1e-12) == holds


@pytest.mark.thorough
def test_axes_have_noise_of_their_own() -> None:
    """On both axes the cut 7 has as many examples as the threshold requires: at times one axis finds it and the other does not.

    With fewer examples it is found as often as noise at half of epsilon makes up for the missing ones.
    """
    made = rectangles.kearns(
        axes=2, bits=4, epsilon=1.0, sanitizer=Known(points=wide.from_ints(CUTS, 4)), cuts=len(CUTS), beta=1e-4
    )
    finds = jax.jit(jax.vmap(lambda key, data: made(key, data).info["found"], (0, None)))
    threshold = int(made.threshold)
    for n in (threshold, threshold - 4):
        data = concept.Examples.create(np.full((63, 2, 1), 7, np.uint32), np.ones(63, int), n)
        found = np.asarray(finds(jax.random.split(jax.random.key(n), 400), data))
        chance = stats.dlaplace(0.5).sf(threshold - n - 1)
        assert stats.binomtest(int(found.sum()), found.size, chance).pvalue > 2e-5
        differ = int(np.sum(found[:, 0] != found[:, 1]))
        assert stats.binomtest(differ, len(found), 2 * chance * (1 - chance)).pvalue > 2e-5


def test_every_axis_pays_for_a_sanitizer_of_its_own() -> None:
    """Three sanitizers are paid for, and the noise once."""
    solver = interior_point.exponential(bits=24, epsilon=4.0)
    release = cdf.release(quantiles=quantiles.recursive(solver=solver, bits=16, depth=6, m=40))
    made = rectangles.kearns(axes=3, bits=16, epsilon=8.0, sanitizer=release, cuts=63, beta=0.1)
    assert 100 < made.guarantee().epsilon == pytest.approx(3 * release.guarantee().epsilon + 8)
    direct = cdf.release(quantiles=quantiles.direct(solver=solver, fractions=[0.25, 0.5, 0.75], m=40))
    other = rectangles.kearns(axes=3, bits=24, epsilon=8.0, sanitizer=direct, cuts=3, beta=0.1)
    # A slice changes by one replacement under either relation, a count by two under the second.
    assert other.guarantee_under(REPLACE_ONE).epsilon == pytest.approx(other.guarantee().epsilon + 8)


@pytest.mark.thorough
def test_with_even_cuts_of_uniform_data_it_finds_the_sides_from_inside() -> None:
    even = Known(points=wide.from_ints(range(2**11, 2**16, 2**11), 16))
    made = rectangles.kearns(axes=2, bits=16, epsilon=4.0, sanitizer=even, cuts=31, beta=0.1)
    law = concept.uniform(bits=16, low=[10_000, 0], high=[50_000, 65_535])
    outcome = made(jax.random.key(1), law.sample(jax.random.key(0), 4095, 4000))
    (left, bottom), (right, top) = concept.to_ints(outcome.hypothesis)
    # The cells of the sides, and no more: 10,000 lies in (8,192, 10,240), 50,000 in (49,152, 51,200).
    assert 10_000 <= left <= 12_288 and 47_104 <= right <= 50_000
    assert 0 <= bottom <= 2048 and 63_488 <= top <= 65_535


@pytest.mark.slow
def test_at_its_sample_size_it_errs_less_than_it_says_and_never_outside_the_target() -> None:
    solver = interior_point.exponential(bits=48, epsilon=4.0)
    release = cdf.release(quantiles=quantiles.recursive(solver=solver, bits=16, depth=6, m=40))
    made = rectangles.kearns(axes=1, bits=16, epsilon=8.0, sanitizer=release, cuts=63, beta=0.1)
    assert made.guarantee().epsilon == pytest.approx(6 * 8 + 8)
    assert made.guarantee().under(REPLACE_ONE).epsilon == pytest.approx(2 * 56)
    n, alpha = made.sample_size(alpha=0.4, beta=0.1), 0.4
    law = concept.uniform(bits=16, low=[10_000], high=[50_000])
    outcome = made(jax.random.key(1), law.sample(jax.random.key(0), n, n))
    low, high = concept.to_ints(outcome.hypothesis)
    assert 10_000 <= low[0] <= high[0] <= 50_000
    assert float(law.error(outcome.hypothesis)) <= alpha
    few = made(jax.random.key(1), law.sample(jax.random.key(0), n, 40))
    assert as_side(few.hypothesis) is None  # too few examples for any cell to be significant


def test_noise_reaches_the_threshold_in_no_cell_but_for_a_quarter_of_beta() -> None:
    """2 (2 * 15 + 1) cells, each with two-sided geometric noise that reaches tau on either side; the least such tau."""
    axes, q, epsilon, beta = 2, 15, 1.0, 0.1
    sanitizer = Known(points=wide.from_ints(range(q), 4))
    made = rectangles.kearns(axes=axes, bits=4, epsilon=epsilon, sanitizer=sanitizer, cuts=q, beta=beta)
    reached = [axes * (2 * q + 1) * 2 * stats.dlaplace(epsilon / axes).sf(int(made.threshold) - i) for i in (1, 2)]
    assert reached[0] <= beta / 4 < reached[1]


def test_what_does_not_fit_is_refused() -> None:
    solver = interior_point.exponential(bits=4, epsilon=1.0)
    release = cdf.release(quantiles=quantiles.direct(solver=solver, fractions=[0.2, 0.5, 0.8], m=40))
    with pytest.raises(ValueError, match="cuts must be >= 3, the most points of the sanitizer's database, got 2"):
        rectangles.kearns(axes=1, bits=4, epsilon=1.0, sanitizer=release, cuts=2, beta=0.1)
    with pytest.raises(TypeError, match="sanitizer must release a database"):
        no_database = rectangles.kearns(axes=1, bits=4, epsilon=1.0, sanitizer=solver, cuts=2, beta=0.1)
        no_database(jax.random.key(0), examples([1], [1]))
    with pytest.raises(ValueError, match="cuts must be >= 3"):
        bad = rectangles.kearns(axes=1, bits=4, epsilon=1.0, sanitizer=learner().sanitizer, cuts=2, beta=0.1)
        bad(jax.random.key(0), examples([1], [1]))
    given = {"axes": 1, "bits": 4, "sanitizer": learner().sanitizer, "cuts": 3, "beta": 0.1}
    for wrong, error, words in (
        ({"epsilon": 1e-17}, ValueError, r"epsilon must be >= 2\.98"),  # of which noise would pass int32
        ({"epsilon": 3e-8, "beta": 1e-30}, ValueError, "epsilon must be greater"),
        ({"sanitizer": None}, TypeError, "sanitizer must be callable"),
        ({"sanitizer": interior_point.exponential(bits=5, epsilon=1.0)}, ValueError, "bits must be 5"),
        ({"sanitizer": builders.step_functions(bits=3)}, ValueError, "bits must be 3"),
    ):
        with pytest.raises(error, match=words):
            rectangles.kearns(**{"epsilon": 1.0} | given | wrong)
    for name, value in (("alpha", 1.5), ("alpha", -0.9), ("beta", 1.5)):
        with pytest.raises(ValueError, match=f"{name} must be .*, got {value}"):
            learner().sample_size(**{"alpha": 0.1, "beta": 0.95, name: value})
    many = rectangles.kearns(**{"epsilon": 1e6} | given | {"axes": 10**7})
    assert many.guarantee() == basic(
        {learner().sanitizer.guarantee(): 10**7, Guarantee(1e6, 0.0, ADD_OR_REMOVE_ONE): 1}
    )
    with pytest.raises(ValueError, match=r"beta must be >= 0\.9"):
        learner().sample_size(alpha=0.1, beta=0.1)
    with pytest.raises(ValueError, match=r"examples\.x"):
        learner()(jax.random.key(0), examples([16], [0]))
