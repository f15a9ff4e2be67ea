"""Laws on data whose counts are real numbers, through which an ascent over data can climb.

An algorithm that uses a depth, or a number of correctly labelled examples, sees the data as a piecewise constant function.
Counts w_1, ..., w_m >= 0 of points a_1 < ... < a_m make such a function whether they are integers or not, and the algorithm's own law takes
it as it is. Failure is relaxed too: an answer of a given depth (or number of errors) counts as good to a degree between 0 and 1, which is
0 or 1 where counts are integers. So the relaxed failure is continuous in w, and at integer counts it is the exact one.
"""

from typing import Any

import jax.numpy as jnp
from jaxtyping import Array, Float, Int, UInt32

from dpjax.domains import wide
from dpjax.domains.events import Goal, Interval
from dpjax.domains.ordered import Pieces
from dpjax.learners.thresholds.amplified import ThresholdAmplified
from dpjax.learners.thresholds.exponential import ThresholdExponential
from dpjax.learners.thresholds.rec_concave import ThresholdRecConcave
from dpjax.mechanisms import exponential_piecewise as piecewise
from dpjax.optimizers.interior_point.by_depth import ByDepth

BY_DEPTH = (ByDepth,)
BY_CORRECT = (ThresholdExponential, ThresholdRecConcave, ThresholdAmplified)


def allowed(algorithm: Any) -> bool:
    """Whether its law is a function of real counts. (A noisy binary search counts pieces; TreeLog walks down a trie of whole points.)"""
    return isinstance(algorithm, (*BY_DEPTH, *BY_CORRECT))


def failure(
    algorithm: Any,
    points: UInt32[Array, "m limbs"],
    weights: Float[Array, "m"],
    ones: Int[Array, ""],
    mistakes: Float[Array, ""],
) -> Float[Array, ""]:
    """P[failure] on data with these weights of the points; exact where the weights are integers.

    Args:
      algorithm: one that is `allowed`.
      points: distinct and increasing.
      weights: how often each occurs, >= 0.
      ones: how many of the points have label 1, counted from the first; has no meaning for interior points.
      mistakes: on how many examples a good hypothesis may err, an integer; likewise.
    """
    if isinstance(algorithm, BY_DEPTH):
        pieces = depth(points, weights, algorithm.bits, algorithm.wider)
        good = jnp.clip(pieces.values, 0.0, 1.0)
        return algorithm.law_of_depth(pieces, Goal(marked=good, within=piecewise.everything(pieces)))[1]
    is_one = jnp.arange(points.shape[0], dtype=jnp.int32) < ones
    labelled = jnp.where(is_one, 0.0, weights), jnp.where(is_one, weights, 0.0)
    pieces = correct(points, *labelled, algorithm.bits, algorithm.limbs)
    good = jnp.clip(mistakes + 1 - (jnp.sum(weights) - pieces.values), 0.0, 1.0)
    return algorithm.law(pieces, Goal(marked=good, within=piecewise.everything(pieces)))[1]


def depth(points: UInt32[Array, "m limbs"], weights: Float[Array, "m"], bits: Any, limbs: int) -> Pieces:
    """min(weight <= x, weight >= x), as `dpjax.optimizers.interior_point.depth` computes it from integer counts.

    There is a piece for each point, and one right after it.
    """
    up_to, from_it = jnp.cumsum(weights), jnp.cumsum(weights[::-1])[::-1]
    beyond = jnp.append(from_it[1:], 0.0)
    at, behind = jnp.minimum(up_to, from_it), jnp.minimum(up_to, beyond)
    points = wide.resize(points, limbs)
    starts = jnp.stack([points, _following(points)], axis=1).reshape(-1, limbs)
    values = jnp.stack([at, behind], axis=1).reshape(-1)
    last = wide.largest(jnp.asarray(bits, jnp.int32), limbs)
    return _pieces(starts, jnp.append(0.0, values), last, bits)


def correct(
    points: UInt32[Array, "m limbs"], zeros: Float[Array, "m"], ones: Float[Array, "m"], bits: Any, limbs: int
) -> Pieces:
    """How much weight a threshold labels correctly, as `dpjax.concepts.thresholds.quality` has it for integer counts of either label."""
    walk = jnp.sum(zeros) + jnp.append(0.0, jnp.cumsum(ones - zeros))
    last = wide.power_of_two(jnp.asarray(bits, jnp.int32), limbs)
    return _pieces(_following(wide.resize(points, limbs)), walk, last, bits)


def law(algorithm: Any, points: UInt32[Array, "m limbs"], weights: Float[Array, "kinds"], within: Interval) -> Array:
    """P[output in the interval], and P[not, or bottom], for weights of the points, or of each point with label 0 and with label 1."""
    if isinstance(algorithm, BY_DEPTH):
        pieces = depth(points, weights, algorithm.bits, algorithm.wider)
        return algorithm.law_of_depth(pieces, algorithm.goal(within))
    pieces = correct(points, weights[0::2], weights[1::2], algorithm.bits, algorithm.limbs)
    return algorithm.law(pieces, algorithm.event(pieces, within))


def _pieces(starts: UInt32[Array, "p limbs"], values: Float[Array, "more"], last: Any, bits: Any) -> Pieces:
    """A piece that begins at 0, one at each start, and empty ones up to a power of two."""
    limbs, missing = starts.shape[1], (1 << starts.shape[0].bit_length()) - starts.shape[0] - 1
    end = wide.add(wide.power_of_two(jnp.asarray(bits, jnp.int32), limbs), wide.one(limbs))
    empty = jnp.broadcast_to(end, (missing, limbs))
    return Pieces(
        starts=wide.concatenate(jnp.zeros((1, limbs), jnp.uint32), starts, empty),
        values=jnp.append(values, jnp.broadcast_to(values[-1], (missing,))),
        last=last,
        end=end,
        exponent=jnp.asarray(bits, jnp.int32),
    )


def _following(points: UInt32[Array, "m limbs"]) -> UInt32[Array, "m limbs"]:
    """The successors of these points."""
    return wide.add(points, wide.one_like(points))
