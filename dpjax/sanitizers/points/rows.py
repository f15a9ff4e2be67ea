"""A short database from answers about points (MULTI Proposition 30; BNS Remark 2.18 for POINT).

Given answers a_x within `answers` of the shares of a database D of any size, find one of R rows within `error` of D:

1. The law nearest to the answers, p_x = max(0, a_x + t), with the t for which it adds up to 1. If the answers add up to more than 1, t
   is negative; D is a law within `answers`, so that max(0, a_x - answers) adds up to 1 at most, and t >= -answers. If they add up to less,
   t is positive, and points that no answer names take a share: all that there are, or 1/answers of them, so that t <= answers either way.
   Hence p is within `answers` of the answers, and within twice that of D: the step from improper to proper of Remark 2.18.
2. Shares are rounded to multiples of 1/R that add up to 1, those with the largest remainders upwards: less than 1/R is lost.

So R = ceil(1/(error - 2 answers)) rows suffice (`bounds.point_rows`), whatever the domain is. For answers that are within alpha, the claim
in the proof of Proposition 30 that O(1/alpha) rows are within alpha of them is false in general (see there).
"""

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, UInt32

from dpjax import bounds
from dpjax.core import arguments
from dpjax.data.sample import wide_rows
from dpjax.data.weighted import LARGEST, Weighted
from dpjax.domains import wide

_MOST_ROWS = 2**24


def rows(
    points: UInt32[Array, "slots limbs"],
    shares: Float[Array, "slots"],
    where: Bool[Array, "slots"],
    *,
    bits: int,
    error: float,
    answers: float,
) -> Weighted:
    """A multiset of `bounds.point_rows(error, answers)` rows whose shares are within `error` of the data's; see the module.

    Args:
      points: increasing; those that count come first.
      shares: their answers.
      where: which of them count; all other points of the domain have the answer 0.
      bits: d, at most 4096.
      error: the error of the multiset, in (0, 1).
      answers: how far the answers are off, in (0, error/2).

    Raises:
      TypeError, ValueError: a number out of range, more than 2^24 rows (shares are float32), arrays that do not fit, a known point that
        counts but is outside the domain.

    >>> named, there = wide.from_ints([5, 9], 8), jnp.array([True, True])
    >>> rows(named, jnp.array([0.35, 0.45]), there, bits=8, error=0.3, answers=0.1)
    Weighted(x=[0, 5, 9], weights=[1, 4, 5])
    """
    bits = arguments.integer("bits", bits, at_least=1, at_most=wide.MAX_BITS)
    answers = arguments.number("answers", answers, above=0.0, below=arguments.number("error", error) / 2)
    number = bounds.point_rows(error, answers)
    if number > _MOST_ROWS:
        raise ValueError(f"error must be >= 2 answers + 2^-24, as there are at most {_MOST_ROWS} rows, got {error!r}")
    points = wide_rows("points", points)
    if jnp.shape(shares) != points.shape[:1] or jnp.shape(where) != points.shape[:1]:
        raise ValueError(
            f"shares and where must have one entry a point, shape {points.shape[:1]}, got {jnp.shape(shares)}, {jnp.shape(where)}"
        )
    if not any(map(arguments.is_traced, (points, where))):
        for point in wide.to_ints(points[np.asarray(where)]):
            if point >> bits:
                raise ValueError(f"points must be < 2^{bits}, got {point}")
    if 1 / answers > _MOST_ROWS:
        raise ValueError(f"answers must be >= 2^-24, as so many points are looked at, got {answers!r}")
    x, answer, exists = _candidates(points, shares, where, bits, max(number, math.ceil(1 / answers)))
    return _rounded(x, _nearest_law(answer, exists), number)


def _candidates(points: Any, shares: Any, where: Any, bits: int, fillers: int) -> tuple[Array, Array, Array]:
    """(points in order, their answers, which exist): the named ones, and at least `fillers` others, if there are so many."""
    slots, limbs = points.shape
    few = jnp.arange(min(slots + fillers, 1 << min(bits, 30)), dtype=jnp.uint32)
    numbers = wide.from_uint32(few, limbs)
    named = jnp.where(where[:, None], points, LARGEST)
    at = jnp.minimum(jax.vmap(lambda one: wide.search(named, one))(numbers), slots - 1)
    new = ~(wide.equal(named[at], numbers) & where[at])
    exists = jnp.concatenate([where, new])
    x = jnp.where(exists[:, None], jnp.concatenate([named, numbers]), LARGEST)
    answer = jnp.concatenate([jnp.where(where, shares, 0.0), jnp.zeros(few.shape)])
    # The last point of a full limb looks like a row that does not exist: those come after it.
    order = wide.sort(x, (~exists).astype(jnp.int32), answer, payload_keys=1)
    return order[0], order[2], order[1] == 0


def _nearest_law(answers: Float[Array, "m"], exists: Bool[Array, "m"]) -> Float[Array, "m"]:
    """max(0, a + t), with the t for which it adds up to 1, by the number of points that are above 0."""
    falling = jnp.sort(jnp.where(exists, answers, -jnp.inf))[::-1]
    held = jnp.arange(1, answers.shape[0] + 1, dtype=jnp.int32)
    shifts = (1.0 - jnp.cumsum(jnp.where(jnp.isneginf(falling), 0.0, falling))) / held.astype(float)
    above = (falling + shifts > 0) & ~jnp.isneginf(falling)
    t = shifts[jnp.maximum(jnp.max(jnp.where(above, held, 0)) - 1, 0)]
    return jnp.where(exists, jnp.maximum(answers + t, 0.0), 0.0)


def _rounded(x: UInt32[Array, "m limbs"], shares: Float[Array, "m"], number: int) -> Weighted:
    """Multiples of 1/number, by largest remainders."""
    scaled = shares * number
    whole = jnp.floor(scaled)
    left = number - jnp.sum(whole).astype(jnp.int32)
    rank = jnp.argsort(jnp.argsort(whole - scaled))
    counts = whole.astype(jnp.int32) + (rank.astype(jnp.int32) < left).astype(jnp.int32)
    return Weighted.kept(x, counts, counts > 0)
