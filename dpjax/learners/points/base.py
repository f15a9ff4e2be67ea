"""What learners of one point share: their data, the counts that they see of them, what an event is, and the law of their output.

A learner sees its sample as counts: how many ones and zeros there are at each distinct point. Points that do not occur form one group, of
2^d - #seen members, so a law is a vector (all-zero, all unseen points together, seen point 0, 1, ...), exact for any d.
"""

from typing import Any, ClassVar, NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, UInt32

from dpjax.concepts.points import Point
from dpjax.core import arguments, logspace
from dpjax.data.algorithm import Algorithm, few_points
from dpjax.data.fitting import fitted
from dpjax.data.sample import Sample, wide_rows
from dpjax.domains import groups, wide
from dpjax.domains.events import Accurate, Interval, PointSet


class Seen(NamedTuple):
    """A labelled sample of X_bits, counted.

    Attributes:
      points: the distinct points in increasing order, then padding.
      valid: which rows are points and not padding.
      ones, zeros: how often each point occurs with either label.
      unseen: how many points of X_bits do not occur, a wide integer of one limb more.
      n: number of examples.
    """

    points: UInt32[Array, "m limbs"]
    valid: Bool[Array, "m"]
    ones: Int[Array, "m"]
    zeros: Int[Array, "m"]
    unseen: UInt32[Array, "more"]
    n: Int[Array, ""]

    def wrong(self) -> Int[Array, "entries"]:
        """How many examples each hypothesis errs on: all-zero, any unseen point, seen points."""
        ones = jnp.sum(self.ones, dtype=jnp.int32)
        return jnp.concatenate([jnp.stack([ones, ones]), ones - self.ones + self.zeros])

    def log_unseen(self) -> Float[Array, ""]:
        """ln of the number of unseen points; -inf if there is none."""
        return wide.log(self.unseen)


class Members(NamedTuple):
    """An event, given what was seen.

    Attributes:
      zero: whether all-zero belongs to it.
      unseen: how many of the unseen points do.
      seen: which of the seen points do.
    """

    zero: Bool[Array, ""]
    unseen: UInt32[Array, "more"]
    seen: Bool[Array, "m"]


class OnePointLearner(Algorithm):
    """A learner of one point from a `Sample`: the output is a `Point`, c_j for some j in X_bits or all-zero.

    Events are intervals (low, high) of points, to which all-zero does not belong, or a `PointSet`, such as `distribution.within(alpha)`.
    """

    kind: ClassVar[type] = Sample
    output_kind: ClassVar[type] = Point
    bits: Any
    limbs: int

    # What a learner defines -----------------------------------------------------------------------------------

    def draw(self, key: Array, seen: Seen) -> tuple[Any, Bool[Array, ""], Any]:
        raise NotImplementedError

    def log_law(self, seen: Seen) -> Float[Array, "entries"]:
        """ln P of the all-zero hypothesis, of all unseen points together (uniform among them), and of each seen point."""
        raise NotImplementedError

    def looked_at(self, sample: Sample) -> Bool[Array, "n"]:
        """Which of the valid examples a run depends on, where that is not all of them."""
        return sample.valid

    def domain(self) -> tuple[Any, int]:
        """(bits, limbs) of the numbers by which hypotheses are named."""
        return self.bits, self.limbs

    def named(self, sample: Sample) -> UInt32[Array, "n limbs"]:
        """The number by which each example's point is named."""
        return sample.x

    # The shell's hooks ----------------------------------------------------------------------------------------

    def fit(self, sample: Any) -> Sample:
        return fitted(sample, Sample, bits=self.bits, limbs=(self.limbs,), any_rows=True)

    def prepare(self, sample: Sample) -> Seen:
        return self._count(sample, groups.group(self.named(sample), sample.valid))

    def run(self, key: Array, sample: Sample) -> tuple[Any, Bool[Array, ""], Any]:
        """The same draws by `groups.drawn`, from the examples that matter."""
        valid = sample.valid & self.looked_at(sample)
        return groups.drawn(
            key, self.named(sample), valid, lambda key, found: self.draw(key, self._count(sample, found))
        )

    def law(self, seen: Seen, members: Members) -> Float[Array, "2"]:
        law, inside = self.log_law(seen), members.unseen
        parts = (members.zero, inside, members.seen), (~members.zero, wide.subtract(seen.unseen, inside), ~members.seen)
        return jnp.exp(jnp.stack([logspace.logsumexp(law + _log_shares(seen, *part)) for part in parts]))

    def log_mass(self, seen: Seen, members: Members) -> Float[Array, ""]:
        return logspace.logsumexp(self.log_law(seen) + _log_shares(seen, members.zero, members.unseen, members.seen))

    def check_event(self, event: Any) -> Interval | PointSet:
        if not isinstance(event, PointSet):
            return Interval.of(event, self.domain()[1] + 1)
        if event.points.ndim != 2:
            raise ValueError(
                f"event must be of one hypothesis, got a PointSet with points of shape {event.points.shape}"
            )
        return event

    def event(self, seen: Seen, event: Any) -> Members:
        if isinstance(event, Accurate):
            good = event.allows(seen.wrong(), seen.n)
            return Members(good[0], _if(good[1], seen.unseen), good[2:])
        return _in_interval(seen, event) if isinstance(event, Interval) else _in_set(seen, event)

    def exactly(self, output: Any) -> PointSet:
        output = self._position(output)
        yes, zero = jnp.ones((1,), bool), jnp.asarray(output.zero)
        return PointSet(points=output.position[None], where=~zero[None], good=yes, others=jnp.bool_(False), zero=zero)

    def anything(self) -> PointSet:
        nowhere = jnp.zeros((1,), bool)
        nothing = jnp.zeros((1, self.domain()[1]), jnp.uint32)
        return PointSet(points=nothing, where=nowhere, good=nowhere, others=jnp.bool_(True), zero=jnp.bool_(True))

    def listed(self) -> int:
        """The number of outputs: all points, then all-zero."""
        return few_points(self.domain()[0]) + 1

    def output(self, index: UInt32[Array, ""]) -> Any:
        bits, limbs = self.domain()
        points = jnp.uint32(1) << jnp.asarray(bits).astype(jnp.uint32)
        return Point.shown(wide.from_uint32(index, limbs), index == points)

    def predict(self, hypothesis: Any, x: Any) -> Bool[Array, "rows"]:
        """The labels that the hypothesis gives to points.

        Raises:
          TypeError, ValueError: a hypothesis that is not one of this learner; points that are not wide integers.
        """
        self._check_output(hypothesis)
        return hypothesis.predict(wide_rows("x", x))

    def _check_output(self, output: Any) -> None:
        if not isinstance(output, self.output_kind):
            raise TypeError(f"hypothesis must be a {self.output_kind.__name__}, got {type(output).__name__}")

    def _position(self, output: Any) -> Point:
        """An output as the point, or number, that it names."""
        self._check_output(output)
        return output

    def _count(self, sample: Sample, found: groups.Groups) -> Seen:
        """The counts of the examples in these groups."""
        ones = found.sums(sample.y)
        bits, limbs = self.domain()
        size = wide.from_uint32(found.size.astype(jnp.uint32), limbs + 1)
        unseen = wide.subtract(wide.power_of_two(bits, limbs + 1), size)
        return Seen(found.rows, found.valid, ones, found.counts - ones, unseen, sample.n_valid)


def domain(bits: int) -> dict[str, Any]:
    """The fields that every learner has."""
    bits = arguments.integer("bits", bits, at_least=1, at_most=wide.MAX_BITS)
    return {"bits": np.int32(bits), "limbs": wide.limbs_for(bits)}


def unseen_point(key: Array, seen: Seen) -> UInt32[Array, "limbs"]:
    """Uniform among the points that do not occur: the r-th of them, r uniform.

    Below seen point s_i (from 0) there are s_i - i unseen ones, so the r-th unseen point is r + #{i: s_i - i <= r}.
    """
    m, limbs = seen.points.shape
    rank = wide.uniform(key, seen.unseen)
    index = wide.from_uint32(jnp.arange(m, dtype=jnp.uint32), limbs + 1)
    below = wide.subtract(wide.resize(seen.points, limbs + 1), index)
    passed = jnp.sum(seen.valid & wide.less_equal(below, rank[None]), dtype=jnp.uint32)
    return wide.resize(wide.add(rank, wide.from_uint32(passed, limbs + 1)), limbs)


# Events, given what was seen ----------------------------------------------------------------------------------


def _log_shares(
    seen: Seen, zero: Bool[Array, ""], unseen: UInt32[Array, "more"], points: Bool[Array, "m"]
) -> Float[Array, "entries"]:
    """ln of the share of each entry of a law that lies in an event: all of it or nothing, but possibly a part of the unseen points."""
    among = jnp.where(wide.is_zero(unseen), -jnp.inf, wide.log(unseen) - seen.log_unseen())
    return jnp.concatenate([jnp.stack([_log_flag(zero), among]), _log_flag(points)])


def _log_flag(flag: Bool[Array, "*s"]) -> Float[Array, "*s"]:
    return jnp.where(flag, 0.0, -jnp.inf)


def _in_interval(seen: Seen, event: Interval) -> Members:
    """The points from low to below high."""
    limbs = seen.unseen.shape[0]
    inside = seen.valid & event.holds(seen.points)
    end = wide.add(seen.unseen, _number(seen.valid, limbs))
    length = event.meet(Interval(low=jnp.zeros_like(end), high=end)).length()
    return Members(jnp.bool_(False), wide.subtract(length, _number(inside, limbs)), inside)


def _in_set(seen: Seen, event: PointSet) -> Members:
    """The points that the set holds: named ones, seen or not, and the others."""
    limbs = seen.unseen.shape[0]
    points, names = wide.resize(seen.points, limbs), wide.resize(event.points, limbs)
    end = wide.add(seen.unseen, _number(seen.valid, limbs))
    same = wide.equal(points[:, None], names[None]) & event.where[None] & seen.valid[:, None]
    chosen = jnp.any(same & event.good[None], axis=1)
    new = event.where & wide.less(names, end[None]) & ~jnp.any(same, axis=0)  # named, in the domain, not seen
    named = _number(new & event.good, limbs)
    others = wide.subtract(seen.unseen, _number(new, limbs))
    unseen = wide.add(named, _if(event.others, others))
    return Members(event.zero, unseen, jnp.where(jnp.any(same, axis=1), chosen, event.others) & seen.valid)


def _number(flags: Bool[Array, "m"], limbs: int) -> UInt32[Array, "more"]:
    """How many flags are set, as a wide integer."""
    return wide.from_uint32(jnp.sum(flags, dtype=jnp.uint32), limbs)


def _if(flag: Bool[Array, ""], count: UInt32[Array, "more"]) -> UInt32[Array, "more"]:
    """The count, or 0."""
    return wide.select(flag, count, jnp.zeros_like(count))
