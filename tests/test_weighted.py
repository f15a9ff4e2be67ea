"""Weighted points: against dictionaries and exact fractions."""

import dataclasses
import itertools
from fractions import Fraction

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from builders import slow, thorough

from dpjax import Points, Sample, Weighted
from dpjax.data.fitting import fitted
from dpjax.domains import wide

A, B = {3: 2, 5: 1, 9: 7}, {0: 1, 5: 4, 9: 1, 12: 4}


def weighted(counts: dict[int, int], bits: int = 4) -> Weighted:
    return Weighted.create(wide.from_ints(list(counts), bits), list(counts.values()))


def share(counts: dict[int, int], concept) -> float:
    return float(Fraction(sum(c for x, c in counts.items() if concept(x)), sum(counts.values())))


def largest(concepts, one=A, other=B) -> float:
    return max(abs(share(one, c) - share(other, c)) for c in concepts)


def test_shares_and_errors_are_those_of_the_definition():
    a, b = weighted(A).padded(), weighted(B)
    ends = wide.from_ints(range(17), 5)
    np.testing.assert_allclose(
        jax.jit(Weighted.share_below)(a, ends), [share(A, lambda x, j=j: x < j) for j in range(17)], atol=1e-6
    )
    np.testing.assert_allclose(
        jax.jit(Weighted.share)(b, wide.from_ints(range(16), 4)),
        [share(B, lambda x, j=j: x == j) for j in range(16)],
        atol=1e-6,
    )
    thresholds = [lambda x, j=j: x < j for j in range(17)]
    np.testing.assert_allclose([errors(a, b)[0], errors(b, a)[0]], 2 * [largest(thresholds)], atol=1e-6)
    point_error, of_sets = jax.jit(Weighted.point_error), jax.jit(lambda one, other: one.point_set_error(other, k=1))
    assert float(point_error(a, b)) == float(of_sets(a, b)) > 0 == float(point_error(a, weighted(A)))


errors = jax.jit(lambda one, other: (one.threshold_error(other), one.threshold_error(Weighted.of(other))))


@pytest.mark.thorough
@pytest.mark.parametrize("rows", [3, thorough(40)])
def test_points_in_order_need_not_be_brought_together(rows):
    """With more or fewer points than the database has, equal ones, and rows that do not count."""
    rng = np.random.default_rng(rows)
    for _ in range(30):
        n = int(rng.integers(1, rows + 1))
        x = rng.integers(0, 16, rows)
        found = errors(weighted(A).padded(), Points(x=wide.from_ints(x.tolist(), 4), n_valid=jnp.int32(n)))
        x[:n].sort()
        points = Points(x=wide.from_ints(x.tolist(), 4), n_valid=jnp.int32(n), ordered=True)
        np.testing.assert_allclose(errors(weighted(A).padded(), points), found, rtol=1e-6)


@pytest.mark.thorough
@pytest.mark.parametrize("k", [2, *map(slow, (1, 3))])
def test_errors_on_sets_of_k_points_are_the_largest_over_them(k):
    a, b = weighted(A).padded(), weighted(B)
    sets = [lambda x, s=s: x in s for s in itertools.combinations(range(16), k)]
    np.testing.assert_allclose([a.point_set_error(b, k=k), b.point_set_error(a, k=k)], 2 * [largest(sets)], atol=1e-6)


def test_points_and_samples_are_counted():
    x, first = (wide.from_ints(points, 64) for points in ([7, 2**40, 7, 1], [7, 2**40, 7]))

    @jax.jit
    def counted(*several):
        of = [Weighted.of(data) for data in several]
        return of, [(one.total, jnp.sum(one.support()[1]), one.in_domain(64), one.in_domain(40)) for one in of]

    given = Points.create(x, 3), Sample(x=x, y=[0, 1, 0, 1], n_valid=3), Weighted.create(first, [1, 1, 1])
    for found, facts in zip(*counted(*given), strict=True):
        assert repr(found) == "Weighted(x=[7, 1099511627776], weights=[2, 1])"
        assert [int(fact) for fact in facts] == [3, 2, True, False]


@pytest.mark.thorough
def test_the_last_of_all_points_is_compared_beside_rows_that_do_not_count():
    """Such rows hold that point's number."""
    data, nothing = Weighted.create(wide.from_ints([2**32 - 1], 32), [1]).padded(3), wide.from_ints([0], 32)
    assert data.threshold_error(Points.create(nothing, 0)) == 1


def test_what_weighs_nothing_is_left_out():
    """From values and counts, and from points that are merged."""
    assert repr(Weighted.create(wide.from_ints([9, 2, 9], 4), [5, 0, 1])) == "Weighted(x=[9], weights=[6])"
    merged = jax.jit(Weighted.merged)(wide.from_ints([1, 1, 5, 9], 4), jnp.array([1.0, 2.0, 0.0, 4.0]))
    assert repr(merged) == "Weighted(x=[1, 9], weights=[3.0, 4.0])"


def test_rows_that_do_not_count_weigh_nothing():
    data = Weighted.create(wide.from_ints([1, 5], 4), [2, 3]).padded(4)
    assert wide.to_ints(data.x) == [1, 5, *[2**32 - 1] * 2]  # the whole array increases
    assert jax.jit(Weighted.names)(data, wide.from_ints([5, 2**32 - 1], 32)).tolist() == [True, False]
    weights, in_domain = np.asarray(data.weights), jax.jit(lambda data: data.in_domain(4))
    heavy = dataclasses.replace(data, weights=np.where(np.arange(4) == 3, 1, weights).astype(weights.dtype))
    light = dataclasses.replace(data, weights=np.where(np.arange(4) == 0, -1, weights).astype(weights.dtype))
    assert in_domain(data) and not in_domain(heavy) and not in_domain(light)


def test_counts_beyond_32_bits_are_exact_with_64():
    x = wide.from_ints([1, 2, 2], 8)
    with pytest.raises(ValueError, match=r"weights must add up to 1, .*enable_x64\(True\) holds more"):
        Weighted.create(x, [10**15, 1, 1])
    with jax.enable_x64(True):
        data = Weighted.create(x, [10**15, 1, 1])
        assert int(data.total) == 10**15 + 2 and data.weights.dtype == jnp.int64


@pytest.mark.thorough
def test_an_empty_database_has_no_share_of_anything():
    none = Weighted.kept(wide.from_ints([3, 5], 4), jnp.ones(2), jnp.zeros(2, bool))
    support, below, error = jax.jit(
        lambda none, other, end: (none.support(), none.share_below(end), none.point_error(other))
    )(none, weighted(A), wide.from_ints([9], 4))
    assert not support[1].any() and float(below[0]) == 0.0
    np.testing.assert_allclose(error, 0.7, atol=1e-6)


@pytest.mark.parametrize(
    "weights, error, message",
    [
        ([1.0, 2.0], TypeError, "whole numbers"),
        ([1], ValueError, "one number a row"),
        ([1, -1], ValueError, "must be >= 0, got -1"),
        ([0, 0], ValueError, "must add up to 1, "),
        ("ab", TypeError, "weights"),
    ],
)
def test_weights_are_checked_by_name(weights, error, message):
    with pytest.raises(error, match=message):
        Weighted.create(wide.from_ints([1, 2], 8), weights)


def test_points_beyond_the_domain_are_no_error_of_few_points():
    """Where each point of a small domain is counted, others make the error NaN, instead of being left out."""
    one, other = (Weighted.create(wide.from_ints([0, j], 64), [1, 1]) for j in (6, 2**32 + 7))
    error = jax.jit(Weighted.threshold_error, static_argnames="points")
    assert float(error(one, one, points=8)) == 0.0
    assert np.isnan(error(one, one, points=6)) and np.isnan(error(other, other, points=8))
    with pytest.raises(ValueError, match="points must be >= 1"):
        one.threshold_error(other, points=0)


def test_weights_put_together_by_hand_that_pass_their_integers_are_no_data():
    made = Weighted(
        x=wide.from_ints([1, 2, 3], 8), weights=jnp.array([2**31 - 1, 2**31 - 1, 12], jnp.int32), n_valid=jnp.int32(3)
    )
    total, in_domain = jax.jit(lambda made: (made.total, made.in_domain(8)))(made)
    assert int(total) == 10 and not in_domain


def test_rows_out_of_order_are_refused_where_they_are_known():
    """In a database made by hand; shares were once those of other points."""
    made = Weighted(x=wide.from_ints([9, 2, 5], 8), weights=jnp.array([1, 1, 1], jnp.int32), n_valid=jnp.int32(3))
    other, ends = Weighted.create(wide.from_ints([2, 5], 8), [1, 1]), wide.from_ints([4], 8)
    for ask in (made.share_below, made.share, made.names):
        with pytest.raises(ValueError, match=r"weighted\.x must increase, .* got row 1 out of order"):
            ask(ends)
    for one, truth in ((made, other), (other, made)):
        with pytest.raises(ValueError, match="must increase"):
            one.threshold_error(truth)
    twice = dataclasses.replace(made, x=wide.from_ints([2, 2, 9], 8))
    for wrong, row in ((made, 1), (twice, 1)):
        with pytest.raises(ValueError, match=f"data.x must increase, as Weighted.create makes it, got row {row}"):
            fitted(wrong, Weighted, bits=8, name="data")
    few = dataclasses.replace(made, x=wide.from_ints([2, 9, 5], 8), n_valid=jnp.int32(2))
    assert fitted(few, Weighted, bits=8).rows >= 2  # rows that do not count need no order


@pytest.mark.parametrize("x", [np.array([[2**32 + 2]]), np.array([[2.9]]), 5, np.uint32([2])])
def test_shares_of_what_is_no_point_are_refused(x):
    """They were once those of another point, to which the number was cut off."""
    weighted = Weighted.create(wide.from_ints([1, 2, 3], 4), [1, 2, 3])
    for share in (weighted.share, weighted.names, weighted.share_below):
        with pytest.raises((TypeError, ValueError), match="must"):
            share(x)
    with pytest.raises(TypeError, match="truth must be a Weighted"):
        weighted.point_error(Points.create(wide.from_ints([1], 4)))
