"""Measurements of OpenDP: the right law on any column, the right map, and what is refused. Needs `dpjax[opendp]`."""

import collections
import random

import numpy as np
import pytest
from scipy import stats

import dpjax
from dpjax.accounting import Guarantee
from dpjax.domains import wide
from dpjax.learners import thresholds
from dpjax.optimizers import interior_point, quantiles

dp = pytest.importorskip("opendp.prelude", reason="dpjax[opendp]")


@pytest.fixture(scope="module", autouse=True)
def features():
    dp.enable_features("contrib", "honest-but-curious")


@pytest.fixture(scope="module")
def to_opendp():
    from dpjax.interop import to_opendp

    return to_opendp


@pytest.mark.thorough
def test_releases_follow_the_law(to_opendp, monkeypatch):
    """A chi-square of 150 releases against the exact law on the encoded column; that of another column is refuted (control)."""
    monkeypatch.setattr("secrets.randbits", random.Random(0).getrandbits)
    solver = interior_point.exponential(bits=2, epsilon=2.0)
    measurement = to_opendp(solver, low=-1, high=2)
    assert measurement([]) is None or measurement([]) in range(-1, 3)
    column = [-5, 0, 1, 1, 9]  # -5 is moved to -1, 9 to 2
    found = collections.Counter(measurement(column) for _ in range(150))
    counts = np.array([found[value] for value in range(-1, 3)])
    assert counts.sum() == 150

    def p_value(codes):
        law = np.asarray(solver.pmf(dpjax.Points.create(wide.from_ints(codes, 2))))[:-1].astype(float)
        return stats.chisquare(counts, 150 * law / law.sum()).pvalue

    assert p_value([0, 1, 2, 2, 3]) > 2e-5 and p_value([0, 0, 0, 0, 0]) < 2e-5


def test_maps_are_group_privacy(to_opendp):
    solver = interior_point.exponential(bits=2, epsilon=0.5)
    pure = to_opendp(solver, low=0, high=3)
    assert [pure.map(d) for d in (0, 1, 4)] == [0.0, 0.5, 2.0] and pure.check(2, 1.0) and not pure.check(2, 0.99)
    assert pure.input_metric == dp.symmetric_distance() and pure.output_measure == dp.max_divergence()

    class Approximate(type(solver)):
        def guarantee(self):
            return Guarantee(0.5, 1e-6, "REPLACE_ONE")

    both = to_opendp(Approximate(**vars(solver)), low=0, high=3)
    assert both.map(0) == (0.0, 0.0) and both.map(3) == (1.5, Guarantee(0.5, 1e-6, "REPLACE_ONE").group(3).delta)
    assert both.input_metric == dp.change_one_distance()


def test_quantiles_of_floats_compose_in_opendp(to_opendp):
    bits = dpjax.encode([0.0], low=0.0, high=100.0, unit=0.01).bits
    measure = to_opendp(
        quantiles.rank_exponential(bits=bits, fractions=[0.25, 0.75], epsilon=2.0), low=0.0, high=100.0, unit=0.01
    )
    twice = dp.c.make_composition([measure, measure])
    assert twice.map(1) == 4.0
    for found in twice(np.linspace(10.0, 20.0, 2001).tolist()):
        assert np.allclose(found, [12.5, 17.5], atol=0.5)


def test_refusals(to_opendp):
    with pytest.raises(TypeError, match="algorithm must find points among points"):
        to_opendp(thresholds.exponential(bits=2, epsilon=1.0), low=0, high=3)
    solver = interior_point.exponential(bits=2, epsilon=1.0)
    with pytest.raises(ValueError, match=r"algorithm\.bits must be 3 for these bounds"):
        to_opendp(solver, low=0, high=7)

    class Careless(type(solver)):
        def guarantee(self):
            return Guarantee.none("REPLACE_ONE")

    with pytest.raises(ValueError, match="must promise privacy under one of"):
        to_opendp(Careless(**vars(solver)), low=0, high=3)
