"""The tree score under a concave curve: privacy when a point is replaced, the programme against brute force, sample sizes, learners."""

import dataclasses
import math

import builders
import jax.numpy as jnp
import numpy as np
import pytest

from dpjax import Points
from dpjax.accounting import ADD_OR_REMOVE_ONE, REPLACE_ONE
from dpjax.bounds import pure_interior_point
from dpjax.learners import interior
from dpjax.optimizers import interior_point
from dpjax.optimizers.interior_point import flat_tree_planning as planning
from dpjax.optimizers.interior_point import tree_planning
from dpjax.optimizers.quantiles import half_slice
from dpjax.verify import histograms, neighbours, probabilities, records
from dpjax.verify.plain import tree_score as twin

EPSILON, OFFSETS = 1.0, (1.2, 0.1, 0.4, 0.05)
SHAPE = (0.05, 0.2, 0.3)  # rest, knee, width


def make(n, share=0.5, bits=3, epsilon=EPSILON):
    rest, knee, width = SHAPE
    bend = planning.curve(share=share, rest=rest, knee=knee, width=width)
    offsets = tree_planning.offsets(**dict(zip(("a", "alpha", "p", "tau"), OFFSETS, strict=True)))
    return interior_point.flat_tree_score(bits=bits, epsilon=epsilon, n=n, offsets=offsets, curve=bend)


def greatest_share(n, epsilon=EPSILON):
    """The greatest private share, in steps of 1/64."""
    shares = [i / 64 for i in range(32, 64)]
    return max(s for s in shares if planning.is_private(3, epsilon, OFFSETS, (s, *SHAPE), n))


def losses(size, n, curves):
    """The largest privacy loss on all multisets of `size` points of 8 with one replaced, for each (share, rest)."""
    counts, solver = histograms(8, [size]), make(n)

    def law(row):
        values, share, rest = row
        curve = dataclasses.replace(solver.curve, share=share, rest=rest)
        points = Points.create(values[:, None].astype(jnp.uint32), size)
        return jnp.log(dataclasses.replace(solver, curve=curve).pmf(points))

    values, _ = records(counts, 7)
    rows = (
        np.tile(values, (len(curves), 1)),
        *(np.repeat(np.array(x), len(counts)) for x in zip(*curves, strict=True)),
    )
    logs = np.split(np.log(probabilities(law, rows, batch_size=len(counts))[:, :8]), len(curves))
    pairs = neighbours(counts, REPLACE_ONE)
    return [float(np.max(table[pairs[:, 0]] - table[pairs[:, 1]])) for table in logs]


@pytest.mark.parametrize(
    ("size", "n"), [builders.thorough(3, 3), *(builders.slow(*case) for case in ((5, 5), (5, 4), (3, 4)))]
)
def test_no_replacement_tells_more_than_epsilon_and_steeper_ones_do(size, n):
    """All multisets of 8 points, of n and other sizes: a curve that the programme allows, the line of half the slope, two too steep."""
    share = greatest_share(n)
    assert share > 0.55
    curved, straight, steeper, doubled = losses(
        size, n, [(share, SHAPE[0]), (0.5, 1.0), (0.98, SHAPE[0]), (0.999, 1.0)]
    )
    assert 0.7 * EPSILON < curved <= EPSILON * (1 + 1e-9)
    assert 0.5 * EPSILON < straight <= EPSILON * (1 + 1e-9)
    assert steeper > 1.02 * EPSILON and doubled > 1.4 * EPSILON


def test_the_guarantee_says_what_is_shown():
    solver, share = make(4), greatest_share(4)
    assert (solver.guarantee().epsilon, solver.guarantee().relation) == (EPSILON, REPLACE_ONE)
    steeper = dataclasses.replace(solver, curve=dataclasses.replace(solver.curve, share=share + 1 / 32))
    assert steeper.guarantee().epsilon == pytest.approx(2 * (share + 1 / 32) * EPSILON, rel=1e-12)
    half = interior_point.tree_score(bits=3, epsilon=EPSILON / 2).guarantee().under(REPLACE_ONE)
    assert (half.epsilon, half.delta) == (EPSILON, 0.0)


@pytest.mark.parametrize(("bits", "n"), [(1, 0), (1, 3), (2, 3), (3, 2), builders.slow(3, 4)])
def test_the_programme_finds_the_most_that_a_point_adds(bits, n):
    rng = np.random.default_rng(bits + 7 * n)
    for _ in range(3):
        epsilon, offsets = rng.uniform(0.3, 1.5), (rng.uniform(0, 4), *rng.uniform(-0.3, 0.8, 3))
        curve = (*rng.uniform((0.5, 0), 1), rng.uniform(-1, 2), rng.uniform(0.2, 2))
        log_factor = rng.uniform(0, 0.4)
        levels = twin.offsets_of(bits, epsilon, *offsets)
        case = planning.Curved(bits, epsilon, offsets, curve)

        def total(points, levels=levels, case=case, epsilon=epsilon):
            return math.fsum(
                math.exp(case.log_weight(epsilon * u)) for u in twin.tree_scores(points, case.bits, *levels)
            )

        most = max(
            total((*common, b)) - math.exp(log_factor) * total(common)
            for common in twin.multisets(n, bits)
            for b in range(2**bits)
        )
        np.testing.assert_allclose(case.growth_excess(n, log_factor), most, rtol=1e-9)


def test_the_worst_data_are_the_worst_of_all():
    solver = make(4, greatest_share(4))
    curve = tuple(planning.numbers(solver.offsets, solver.curve)[1])
    law = lambda points: twin.flat_tree_score_law(points, 3, EPSILON, OFFSETS, curve, 4)  # noqa: E731
    failures = [twin.failure(law(points), points) for points in twin.multisets(4, 3)]
    failure, points = solver.worst(4)
    np.testing.assert_allclose([failure, twin.failure(law(points), points)], max(failures), rtol=1e-12)
    assert planning.is_enough(*solver._known(), failure * 1.001) and not planning.is_enough(
        *solver._known(), failure * 0.999
    )


@pytest.mark.thorough
@pytest.mark.parametrize(("bits", "n"), [(4, 16), *(builders.slow(*case) for case in ((8, 26), (16, 38)))])
def test_fewer_points_than_at_half_the_slope(bits, n):
    """At most as many as the tables say, or one more where numbers are rounded differently."""
    solver = interior_point.flat_tree_score_planned(bits=bits, epsilon=1.0, beta=0.1)
    half = interior_point.tree_score(bits=bits, epsilon=0.5)
    assert pure_interior_point(2**bits, 0.1, 1.0) < solver.sample_size(beta=0.1) <= n + 1 < half.sample_size(beta=0.1)
    assert solver.worst(int(solver.n))[0] <= 0.1
    assert solver.guarantee().covers(1.0, 0.0) and solver.guarantee().relation == REPLACE_ONE


@pytest.mark.slow
def test_the_law_reaches_the_worst_and_points_at_the_ends_do_no_harm():
    solver = interior_point.flat_tree_score_planned(bits=40, epsilon=1.0, beta=0.1, evaluations=1)
    failure, points = solver.worst(int(solver.n))
    law = lambda values: float(solver.failure_probability(builders.points_of(values, 40, 127)))  # noqa: E731
    np.testing.assert_allclose(law(points), failure, rtol=1e-4)
    assert 0.01 < failure <= 0.1 and law([0, 0, *points, 2**40 - 1, 2**40 - 1]) < 1e-6


def test_a_learner_by_replaced_points_pays_once():
    """D always has 2m numbers, of which one is replaced: a solver that is private under replace-one keeps its epsilon."""
    flat = interior_point.flat_tree_score_planned(bits=4, epsilon=1.0, beta=0.05, evaluations=50)
    tree = interior_point.tree_score(bits=4, epsilon=0.5)
    ours, theirs = (interior.threshold_learner(solver=s, m=half_slice(s, beta=0.05)) for s in (flat, tree))
    for learner in (ours, theirs):
        assert (learner.guarantee().epsilon, learner.guarantee().relation) == (1.0, ADD_OR_REMOVE_ONE)
    assert ours.sample_size(alpha=0.1, beta=0.1) < theirs.sample_size(alpha=0.1, beta=0.1)


@pytest.mark.parametrize(
    ("call", "error", "says"),
    [
        (lambda: make(0), ValueError, "n must be from 1"),
        (lambda: make(4, 0.98), ValueError, "curve must keep 4 points private"),
        (lambda: make(4, bits=0), ValueError, "bits must be from 1"),
        (lambda: make(4).worst(5), ValueError, "n must be"),
        (lambda: make(2).sample_size(beta=0.01), ValueError, "n must be a number of points"),
        (lambda: planning.curve(share=1.0, rest=0.1, knee=0.0, width=1.0), ValueError, "share must be"),
        (lambda: planning.curve(share=0.5, rest=0.1, knee=0.0, width=0.0), ValueError, "width must be"),
        (
            lambda: interior_point.flat_tree_score_planned(bits=2048, epsilon=1.0, beta=0.1),
            ValueError,
            "bits must be fewer",
        ),
    ],
)
def test_bad_arguments_are_refused_by_name(call, error, says):
    with pytest.raises(error, match=says):
        call()
