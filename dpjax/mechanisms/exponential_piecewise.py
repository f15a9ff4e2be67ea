"""The exponential mechanism over a wide range, for a quality function that is constant on pieces.

McSherry and Talwar 2007 (BNS Proposition 2.26): P[h] proportional to exp(epsilon q(h) / 2), q of sensitivity 1. A piece of
length w and value v weighs w exp(epsilon v / 2); w runs to 2^4096 and is kept as a logarithm, so the law over 2^1024 points
costs as much as the law over the pieces.

**Formal guarantees.** (epsilon, 0) under the relation for which q has sensitivity 1 (for the number of correctly labelled
examples: REPLACE_ONE, and ADD_OR_REMOVE_ONE), when the set of points offered does not depend on the data. Not promised:
floating-point side channels; a cryptographic generator.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, UInt32

from dpjax.core import logspace
from dpjax.core.pytree import frozen
from dpjax.domains import wide
from dpjax.domains.ordered import Pieces


@frozen
class Interval:
    """The points low, ..., high - 1; none when high <= low."""

    low: UInt32[Array, "limbs"]
    high: UInt32[Array, "limbs"]

    def is_empty(self) -> Bool[Array, ""]:
        """Whether it has no point."""
        return wide.less_equal(self.high, self.low)

    def length(self) -> UInt32[Array, "limbs"]:
        """Number of points."""
        return wide.select(
            self.is_empty(), jnp.zeros_like(self.low), wide.subtract(self.high, self.low)
        )

    def meet(self, other: "Interval") -> "Interval":
        """Points in both."""
        return Interval(low=wide.maximum(self.low, other.low), high=wide.minimum(self.high, other.high))


@frozen
class Goal:
    """Which hypotheses count as a success: those of the marked pieces that lie in `within`."""

    marked: Bool[Array, "pieces"]
    within: Interval


def everything(pieces: Pieces) -> Interval:
    """The whole range {0, ..., last}."""
    zero = jnp.zeros_like(pieces.last)
    return Interval(low=zero, high=wide.add(pieces.last, wide.from_uint32(jnp.uint32(1), pieces.limbs)))


# ------------------------------------------------------------------------------------------------------- exact law


@frozen
class Judge:
    """Everything needed to weigh the good and the bad hypotheses of any interval in O(log pieces) steps.

    Three weightings of the pieces: all, the marked ones only, the unmarked ones only; for each the log weight a point and the
    partial sums of the pieces' log weights.
    """

    pieces: Pieces
    within: Interval
    log_density: Float[Array, "3 pieces"]
    trees: Float[Array, "3 nodes"]

    def log_masses(self, interval: Interval) -> Float[Array, "2"]:
        """(ln weight of the good points, ln weight of the bad ones) of an interval: sums of positive terms only."""
        end = self.pieces.end
        below = interval.meet(Interval(low=jnp.zeros_like(end), high=self.within.low))
        above = interval.meet(Interval(low=self.within.high, high=end))
        parts = jax.tree.map(lambda *x: jnp.stack(x), interval.meet(self.within), below, above)
        inside, beneath, beyond = jax.vmap(self._log_mass)(parts)
        good, bad_inside = inside[1], inside[2]
        return jnp.stack([good, jnp.logaddexp(bad_inside, jnp.logaddexp(beneath[0], beyond[0]))])

    def _log_mass(self, interval: Interval) -> Float[Array, "3"]:
        """ln of the summed weight of the points of an interval, by each weighting; -inf when empty."""
        low, high, starts = interval.low, interval.high, self.pieces.starts
        first = self.pieces.locate(low)
        last = wide.search(starts, high) - 1  # the piece that holds high - 1
        # Up to three parts: the rest of the first piece, whole pieces, the beginning of the last piece. Or one part of one piece.
        split = wide.minimum(starts[jnp.minimum(first + 1, self.pieces.count - 1)], high)
        split = wide.select(first == last, high, split)
        left = wide.log(wide.subtract(split, low)) + self.log_density[:, first]
        right = wide.log(wide.subtract(high, starts[last])) + self.log_density[:, last]
        right = jnp.where(first == last, -jnp.inf, right)
        between = logspace.range_sum(self.trees, first + 1, last)
        mass = logspace.logsumexp(jnp.stack([left, between, right], axis=-1))
        return jnp.where(interval.is_empty(), -jnp.inf, mass)


def judge(pieces: Pieces, log_density: Float[Array, "pieces"], goal: Goal) -> Judge:
    """Prepares the weights."""
    log_length = wide.log(wide.subtract(pieces.ends(), pieces.starts))
    good = jnp.where(goal.marked, log_density, -jnp.inf)
    bad = jnp.where(goal.marked, -jnp.inf, log_density)
    each = jnp.stack([log_density, good, bad])
    trees = jax.vmap(logspace.sum_tree)(log_length[None] + each)
    return Judge(pieces=pieces, within=goal.within, log_density=each, trees=trees)


# --------------------------------------------------------------------------------------------------------- sampler


@frozen
class Point:
    """A drawn point and the piece that holds it."""

    position: UInt32[Array, "limbs"]
    piece: Int[Array, ""]


def draw(
    key: Array, pieces: Pieces, log_density: Float[Array, "pieces"], one: Interval, other: Interval
) -> Point:
    """A point of two disjoint intervals, with probability proportional to its weight."""
    key_piece, key_point = jax.random.split(key)
    ends = pieces.ends()
    in_one = jax.vmap(lambda s, e: one.meet(Interval(low=s, high=e)))(pieces.starts, ends)
    in_other = jax.vmap(lambda s, e: other.meet(Interval(low=s, high=e)))(pieces.starts, ends)
    length = wide.add(jax.vmap(Interval.length)(in_one), jax.vmap(Interval.length)(in_other))
    piece = logspace.draw(key_piece, logspace.sum_tree(wide.log(length) + log_density))
    offset = wide.uniform(key_point, length[piece])
    part_one, part_other = jax.tree.map(lambda a: a[piece], (in_one, in_other))
    in_first = wide.less(offset, part_one.length())
    second = wide.add(part_other.low, wide.subtract(offset, part_one.length()))
    return Point(position=wide.select(in_first, wide.add(part_one.low, offset), second), piece=piece)
