"""Events whose probability an algorithm's law can give: outputs in an interval or a set, outputs that are accurate on the data."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array, Bool, Float, Int, UInt32

from dpjax.core import arguments, logspace
from dpjax.core.pytree import frozen
from dpjax.domains import wide


def flags(event: Any, size: int, nouns: str) -> Bool[Array, "outputs"]:
    """An event as one flag for each of the listed outputs; TypeError if it is not of this form."""
    if not hasattr(event, "dtype") or event.dtype != bool or event.shape != (size,):
        raise TypeError(f"event must have one flag (bool) for each of {size} {nouns}, got {event!r}")
    return jnp.asarray(event)


NO_MISTAKE = 0.499  # less than a half, which added to an odd number of 24 bits would be rounded to a whole one


@frozen
class Accurate:
    """Outputs whose error on the data is at most this.

    >>> bool(Accurate(error=jnp.float32(0.15)).allows(jnp.int32(3), 20)), bool(Accurate(error=jnp.float32(0.149)).allows(jnp.int32(3), 20))
    (True, False)
    """

    error: Float[Array, ""]

    def limit(self, n: ArrayLike) -> Float[Array, ""]:
        """error * n, plus what rounding may have taken from it: its floor is the largest integer w with w / n <= error, up to 2^23.

        Quotients are not compared: XLA turns a vector divided by one number into a product with its rounded reciprocal, by which 3 of 20
        are more than 0.15. The error, the product and this sum are each rounded once, by half an epsilon at most; a quotient that is
        given as `wrong` with n = 1, by another one and a half. For more than 2^20 mistakes, four epsilons would be whole ones.
        """
        most = jnp.asarray(self.error, float) * jnp.asarray(n, float)
        return most + jnp.minimum(4 * jnp.finfo(most.dtype).eps * most, NO_MISTAKE)

    def allows(self, wrong: Array, n: ArrayLike = 1) -> Bool[Array, "*outputs"]:
        """Whether `wrong` mistakes among n are few enough; with n = 1, `wrong` is the share of mistakes."""
        limit = self.limit(n)
        return wrong.astype(limit.dtype) <= limit


@frozen
class Near:
    """Hypotheses whose error under a distribution is at most alpha above the best of its class, whatever form this set has.

    Attributes:
      distribution: has `excess(hypothesis)`; see `dpjax.concepts`.
      alpha: the largest excess.
    """

    distribution: Any
    alpha: Float[Array, ""]

    def holds(self, hypotheses: Any) -> Bool[Array, "h"]:
        """Which of the stacked hypotheses belong to the set."""
        return jax.vmap(self.distribution.excess)(hypotheses) <= self.alpha


@frozen
class Interval:
    """The points low, ..., high - 1; none when high <= low."""

    low: UInt32[Array, "limbs"]
    high: UInt32[Array, "limbs"]

    @classmethod
    def of(cls, event: Any, limbs: int) -> "Interval":
        """An interval of numbers with `limbs` limbs, from a pair (low, high) of ints or of such numbers, or from an `Interval`.

        Raises:
          TypeError: `event` is neither. ValueError: an end that is negative, does not fit, or has more limbs.

        >>> wide.to_ints(Interval.of((3, 2**40), 2).high)
        [1099511627776]
        """
        if isinstance(event, Interval):
            event = (event.low, event.high)
        if not isinstance(event, tuple | list) or len(event) != 2:
            raise TypeError(f"event must be a pair (low, high), the half-open interval of both, got {event!r}")
        low, high = (number(name, end, limbs) for name, end in zip(("low", "high"), event, strict=True))
        return cls(low=low, high=wide.maximum(low, high))  # laws may then subtract one end's mass from the other's

    @classmethod
    def single(cls, point: UInt32[Array, "limbs"]) -> "Interval":
        """One point, which must not be the greatest number that its limbs hold."""
        return cls(low=point, high=wide.add(point, wide.one(point.shape[-1])))

    @classmethod
    def closed(cls, low: UInt32[Array, "limbs"], high: UInt32[Array, "limbs"]) -> "Interval":
        """The points low, ..., high; its ends have one more limb, so that even the greatest number has a number behind it."""
        low, high = (wide.resize(end, end.shape[-1] + 1) for end in (low, high))
        return cls(low=low, high=wide.add(high, wide.one(high.shape[-1])))

    @classmethod
    def everything(cls, limbs: int) -> "Interval":
        """All numbers with `limbs` limbs but the greatest."""
        zero = jnp.zeros((limbs,), jnp.uint32)
        return cls(low=zero, high=~zero)

    def of_domain(self, bits: Int[Array, ""], limbs: int) -> "Interval":
        """Its points in {0, ..., 2^bits - 1}: ends are at most 2^bits, in `limbs` limbs, enough to hold it; also for several intervals."""
        beyond = wide.power_of_two(jnp.asarray(bits, jnp.int32), self.low.shape[-1])
        ends = (wide.minimum(end, jnp.broadcast_to(beyond, end.shape)) for end in (self.low, self.high))
        low, high = (wide.resize(end, limbs) for end in ends)
        return Interval(low=low, high=high)

    def holds(self, points: UInt32[Array, "*n limbs"]) -> Bool[Array, "*n"]:
        """Which points are in it, or for k stacked intervals, point j in the j-th; points have at most as many limbs as the ends."""
        low, high = (end if end.ndim == points.ndim else end[None] for end in (self.low, self.high))
        points = wide.resize(points, low.shape[-1])
        return wide.less_equal(low, points) & wide.less(points, high)

    def is_empty(self) -> Bool[Array, ""]:
        """Whether it has no point."""
        return wide.less_equal(self.high, self.low)

    def length(self) -> UInt32[Array, "limbs"]:
        """Number of points."""
        return wide.select(self.is_empty(), jnp.zeros_like(self.low), wide.subtract(self.high, self.low))

    def meet(self, other: "Interval") -> "Interval":
        """Points in both."""
        return Interval(low=wide.maximum(self.low, other.low), high=wide.minimum(self.high, other.high))


@frozen
class PointSet:
    """A set of point concepts over X_d: some points by name, all other points or none of them, and the all-zero concept or not.

    A leading axis of k, on every leaf, makes one set for each of k hypotheses.

    Attributes:
      points: the named points, distinct.
      where: which of them are there (what an unused slot holds means nothing).
      good: which of them belong to the set.
      others: whether all points that are not named belong.
      zero: whether the all-zero concept belongs.
    """

    points: UInt32[Array, "*k m limbs"]
    where: Bool[Array, "*k m"]
    good: Bool[Array, "*k m"]
    others: Bool[Array, "*k"]
    zero: Bool[Array, "*k"]

    def holds(self, points: UInt32[Array, "n more"]) -> Bool[Array, "n"]:
        """Which points are in it, of one set."""
        limbs = max(points.shape[1], self.points.shape[1])
        points, names = wide.resize(points, limbs), wide.resize(self.points, limbs)
        same = wide.equal(points[:, None], names[None]) & self.where[None]
        return jnp.where(jnp.any(same, axis=1), jnp.any(same & self.good[None], axis=1), self.others)


def intervals(event: Any, count: int, limbs: int, nouns: str) -> Interval:
    """One half-open interval for each of `count` outputs, from a pair (low, high) of as many ints or wide integers, or an `Interval`.

    Raises:
      TypeError, ValueError: something else, or another number of rows; `nouns` names the outputs in the message.

    >>> wide.to_ints(intervals(([1, 2], [5, 2**40]), 2, 2, "2 quantiles").high)
    [5, 1099511627776]
    """
    pair = (event.low, event.high) if isinstance(event, Interval) else event
    pairs = isinstance(pair, tuple | list) and len(pair) == 2
    if pairs and count == 2 and all(isinstance(each, list) for each in (pair, *pair)):
        raise ValueError(f"event must be a tuple (low, high): two lists in a list may be two intervals, got {event!r}")
    if not pairs or any(not arguments.is_row(end) or len(end) != count for end in pair):
        raise ValueError(f"event must be (low, high) with a row for each of the {nouns}, got {event!r}")
    return jax.vmap(lambda low, high: Interval.of((low, high), limbs))(*(numbers("event", end, limbs) for end in pair))


def numbers(name: str, values: Any, limbs: int) -> Any:
    """Wide integers as they are, ints as wide integers."""
    if getattr(values, "dtype", None) == np.uint32:
        return values
    bits = min(32 * limbs, wide.MAX_BITS + 1)
    plain = values if arguments.is_traced(values) else np.asarray(values, object).tolist()
    each = [arguments.integer(name, value, at_least=0, at_most=(1 << bits) - 1) for value in plain]
    return wide.resize(wide.from_ints(each, bits), limbs)


def number(name: str, value: Any, limbs: int) -> Array:
    """An int or a wide integer, as one with `limbs` limbs; TypeError, ValueError for anything else."""
    if isinstance(value, int | np.integer) and not isinstance(value, bool):
        arguments.integer(name, value, at_least=0, at_most=(1 << min(32 * limbs, wide.MAX_BITS + 1)) - 1)
        return wide.resize(wide.from_ints([int(value)], max(1, int(value).bit_length()))[0], limbs)
    if getattr(value, "dtype", None) != np.uint32:
        raise TypeError(f"{name} must be an int, or a uint32 array of {limbs} limbs, got {value!r}")
    if value.ndim != 1 or value.shape[0] > limbs:
        raise ValueError(f"{name} must have {limbs} limbs, got shape {value.shape}")
    return wide.resize(jnp.asarray(value), limbs)


@frozen
class Goal:
    """Points of the marked pieces that lie in `within`.

    Attributes:
      marked: one flag per piece; None means all of them, so that laws need no sum piece by piece. Or the share of each piece that
        belongs, a real number in [0, 1], for relaxed laws (`dpjax.relaxations.real_counts`).
      within: the interval that the points must lie in.
    """

    marked: Bool[Array, "pieces"] | Float[Array, "pieces"] | None
    within: Interval

    def flags(self, pieces: int) -> Bool[Array, "pieces"]:
        """One flag per piece."""
        return jnp.ones((pieces,), bool) if self.marked is None else self.marked.astype(bool)

    def shares(self, pieces: int) -> Float[Array, "pieces"]:
        """One number in [0, 1] per piece."""
        return jnp.ones((pieces,)) if self.marked is None else self.marked.astype(float)

    def split(self, logs: Float[Array, "pieces"]) -> tuple[Float[Array, "pieces"], Float[Array, "pieces"]]:
        """Of weights in logarithms, the part that belongs and the part that does not."""
        if self.marked is None or self.marked.dtype == bool:
            marked = self.flags(logs.shape[0])
            return jnp.where(marked, logs, -jnp.inf), jnp.where(marked, -jnp.inf, logs)
        return logs + logspace.log(self.marked), logs + logspace.log(1 - self.marked)
