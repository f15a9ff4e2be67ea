"""The fractions 0 and 1: what no record is below, and what none is above, are quantiles like all others."""

import functools
import math

import jax
import numpy as np
import pytest
from builders import slow, thorough

import dpjax
from dpjax import Points
from dpjax.domains import wide
from dpjax.optimizers import quantiles
from dpjax.verify.plain.quantiles import (
    inverse_sensitivity_law,
    joint_law,
    permute_and_flip_laws,
    rank_exponential_laws,
)

ENDS = [0.0, 0.5, 1.0]
NO_POINT, ONE, TIED, SEVERAL = [], [2], [1, 1], [0, 2, 2, 3]
METHODS = {
    "rank_exponential": lambda f: quantiles.rank_exponential(bits=2, fractions=f, epsilon=1.0),
    "permute_and_flip": lambda f: quantiles.permute_and_flip(bits=2, fractions=f, epsilon=1.0, base="scales"),
    "unbounded": lambda f: quantiles.unbounded(bits=2, fractions=f, epsilon=1.0),
    "supported": lambda f: quantiles.supported(bits=2, fractions=f, epsilon=1.0, delta=0.01, beta=0.1),
    "approximate": lambda f: quantiles.approximate(bits=2, fractions=f, epsilon=1.0, extra=1),
    "joint": lambda f: quantiles.joint(bits=2, fractions=f, epsilon=1.0, candidates=1),
    "inverse_sensitivity": lambda f: quantiles.inverse_sensitivity(bits=2, fractions=f, epsilon=1.0),
}


def points_of(values):
    return Points.create(wide.from_ints([*values, *[0] * (4 - len(values))], 2), len(values))


@functools.cache
def each_law(method):
    made = METHODS[method](ENDS)
    return jax.jit(lambda points: made.pmfs(made.prepare(points), 4)[:, :4])


@pytest.mark.parametrize("values", [NO_POINT, ONE, TIED, SEVERAL])
@pytest.mark.parametrize(
    ("method", "plain", "given"),
    [
        ("rank_exponential", rank_exponential_laws, {}),
        thorough("permute_and_flip", permute_and_flip_laws, {"base": "scales"}),
    ],
)
def test_the_law_of_each_is_that_of_exactly_0_and_1(method, plain, given, values, x64):
    """A fraction of 2^-32 in place of 0 moves f n by so little that no probability changes by more than 1e-8."""
    exact = np.array(plain(values, ENDS, size=4, epsilon=1.0, **given))
    np.testing.assert_allclose(each_law(method)(points_of(values)), exact, atol=1e-8)


@pytest.mark.thorough
@pytest.mark.parametrize("values", [NO_POINT, ONE, SEVERAL])
@pytest.mark.parametrize(
    ("method", "plain", "given"),
    [("joint", joint_law, {"candidates": 1, "share": 0.0}), ("inverse_sensitivity", inverse_sensitivity_law, {})],
)
def test_the_law_of_all_is_that_of_exactly_0_and_1(method, plain, given, values, x64):
    made = METHODS[method](ENDS)
    law = np.asarray(made.pmf(points_of(values)))[:-1]
    np.testing.assert_allclose(law, np.ravel(plain(values, ENDS, size=4, epsilon=1.0, **given))[: law.size], atol=1e-8)


@pytest.mark.parametrize(
    "method",
    [
        "rank_exponential",
        *(thorough(name) for name in METHODS if name not in ("rank_exponential", "joint")),
        slow("joint"),
    ],
)
def test_no_neighbours_refute_the_guarantee(method, x64):
    """Up to three points, so none and one, too; the negative control has a quarter of epsilon, and hardly any delta."""
    made = METHODS[method](ENDS)
    promised = made.guarantee()
    report = dpjax.check(made, n=3, domain=4, relation=promised.relation)
    assert report.exact and not report.refutes(promised)
    assert report.delta_at(promised.epsilon / 4) > 1e-5


def test_wanted_ranks_are_0_and_n():
    made = METHODS["rank_exponential"](ENDS)
    for n in (0, 1, 2**31 - 1):
        assert np.asarray(quantiles.nearest_rank(made.fractions, np.int32(n))).tolist()[::2] == [0, n]


@pytest.mark.parametrize("fractions", [[-0.1], [1.1], [math.nan], [0.0, 1e-12], [1.0, 0.0], []])
def test_what_is_no_fraction_or_too_close_is_refused(fractions):
    for make in (
        METHODS["rank_exponential"],
        lambda f: dpjax.choose("quantiles", bits=8, epsilon=1.0, n=9, fractions=f),
    ):
        with pytest.raises(ValueError, match=r"^fractions must"):
            make(fractions)


def test_what_is_refused_is_shown_as_it_was_given():
    with pytest.raises(ValueError, match=r"got \[1\.0, 0\.0\]$"):
        dpjax.choose("quantiles", bits=8, epsilon=1.0, n=9, fractions=[1.0, 0.0])


def test_ends_of_the_domain_serve_as_the_ends():
    """They cost nothing, so the choice answers the inner fraction alone."""
    chosen = dpjax.choose("quantiles", bits=32, epsilon=1.0, alpha=0.05, fractions=ENDS)
    inner = dpjax.choose("quantiles", bits=32, epsilon=1.0, alpha=0.05, fractions=[0.5])
    assert chosen.n == inner.n
    middle = Points.create(wide.from_ints(range(2**31, 2**31 + 2000), 32))
    lowest, _, highest = wide.to_ints(chosen.algorithm(jax.random.key(0), middle).hypothesis)
    assert lowest == 0 and highest == 2**32 - 1
