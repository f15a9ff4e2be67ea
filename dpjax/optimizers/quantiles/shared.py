"""Fewer quantiles than are asked for: one answer for all fractions near its own.

An answer within t ranks of g n is within t + |f - g| n ranks of f n. So where an error of alpha n is tolerated, the answer at g serves
every fraction f with |f - g| < alpha, if it errs by (alpha - |f - g|) n ranks at most. Without any data, the first point of the domain
serves all f < alpha, and the last all f > 1 - alpha: their errors are those of f itself, and at most 1/2 for its rounding to a rank. The
fewer answers there are, the more of the budget each of them has: at alpha = 0.2, three answers serve 99 fractions with a quarter of the
records.

**Privacy** is that of the answers: what serves which fraction is public.

Its plain twin is that of the answers.
"""

import dataclasses
import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, UInt32

from dpjax.accounting import Guarantee
from dpjax.core import arguments
from dpjax.core.pytree import frozen, stacked, static
from dpjax.data.points import Points
from dpjax.domains import wide
from dpjax.domains.events import Interval
from dpjax.optimizers.quantiles import base
from dpjax.optimizers.quantiles.base import Quantiles
from dpjax.optimizers.quantiles.ranked import RankedQuantiles, rounded_fractions


@frozen
class SharedQuantiles(RankedQuantiles):
    """Quantiles at any fractions, of which several have one answer; build it by `shared`.

    Attributes:
      answers: the quantiles that are computed.
      fractions: F for each wanted fraction F 2^-32, increasing.
      serves: for each wanted fraction 0 for the first point, i for the i-th answer, or one more than there are for the last point (static).
    """

    answers: Any
    fractions: UInt32[Array, "quantiles"]
    serves: tuple[int, ...] = static()

    @property
    def bits(self) -> Any:  # type: ignore[override]
        """Bits of the domain."""
        return self.answers.bits

    @property
    def limbs(self) -> int:  # type: ignore[override]
        """Limbs of a point."""
        return self.answers.limbs

    def fit(self, data: Any) -> Points:
        return self.answers.fit(data)

    def prepare(self, points: Points) -> Points:
        return self.answers.prepare(points)

    def fits(self, points: Points) -> Bool[Array, ""]:
        return self.answers.fits(points)

    def sound(self) -> Bool[Array, ""]:
        return self.answers.sound()

    def draw(self, key: Array, points: Points) -> tuple[UInt32[Array, "quantiles limbs"], Bool[Array, ""], Any]:
        found, released, info = self.answers.draw(key, points)
        first, last = base.ends(self.bits, self.limbs)
        return jnp.concatenate([first[None], found, last[None]])[np.array(self.serves)], released, info

    def law(self, points: Points, intervals: Interval) -> Float[Array, "2"]:
        each, possible = self._each(intervals)
        law = self.answers.law(points, each)
        return jnp.where(possible, law, jnp.array([0.0, 1.0], law.dtype))

    def failure_bound(self, points: Points, intervals: Interval) -> Float[Array, ""]:
        """That of the answers, for what the intervals of an answer's fractions have in common."""
        each, possible = self._each(intervals)
        return jnp.where(possible, self.answers.failure_bound(points, each), 1.0)

    def focused(self, rows: int) -> Any:
        return dataclasses.replace(self, answers=self.answers.focused(rows))

    def zcdp(self) -> float:
        """That of the answers."""
        return self.answers.zcdp()

    def _each(self, intervals: Interval) -> tuple[Interval, Bool[Array, ""]]:
        """(The intervals of the answers; whether the ends of the domain are in theirs.)"""
        count, (first, last) = self.answers.fractions.size, base.ends(self.bits, self.limbs + 1)
        possible = jnp.bool_(True)
        for served, end in ((0, first), (count + 1, last)):
            if served in self.serves:
                common = self._common(intervals, served)
                possible = possible & ~wide.less(end, common.low) & wide.less(end, common.high)
        return stacked(*(self._common(intervals, i) for i in range(1, count + 1))), possible

    def _common(self, intervals: Interval, served: int) -> Interval:
        """What the intervals of all fractions that have this answer have in common."""
        rows = np.array([i for i, other in enumerate(self.serves) if other == served])
        low, high = intervals.low[rows], intervals.high[rows]
        while len(low) > 1:  # by halves: a chain of comparisons takes seconds to compile
            half = -(-len(low) // 2)
            low, high = wide.maximum(low[:half], low[-half:]), wide.minimum(high[:half], high[-half:])
        low, high = low[0], high[0]
        return Interval(low=low, high=wide.maximum(low, high))

    def masses(self, points: Points, outputs: int) -> Float[Array, "outcomes"]:
        size, count = round(outputs ** (1 / self.fractions.size)), self.answers.fractions.size
        law = self.answers.masses(points, size**count)
        tuples = np.unravel_index(np.arange(size**count), (size,) * count)
        columns = [np.zeros_like(tuples[0]), *tuples, np.full_like(tuples[0], size - 1)]
        place = np.ravel_multi_index([columns[i] for i in self.serves], (size,) * self.fractions.size)
        return jnp.append(jnp.zeros((outputs,), law.dtype).at[place].add(law[:-1]), law[-1])

    def guarantee(self) -> Guarantee:
        """That of the answers."""
        return self.answers.guarantee()

    def guarantee_under(self, relation: str) -> Guarantee:
        return self.answers.guarantee_under(relation)

    def sample_size(self, *, alpha: float, beta: float) -> int:
        """That of the answers, at what is left of alpha, and of slices for half a rank more; or what the ends of the domain need, if more.

        Raises:
          ValueError: alpha is at most the largest distance of a wanted fraction from that of its answer, or from the end that serves it.
        """
        alpha, lost, end = arguments.known_fraction("alpha", alpha), self.distance(), self.distance(ends=True)
        if alpha <= max(lost, end):
            rule = f"> {float(max(lost, end))}, by which fractions differ from those of their answers"
            raise ValueError(f"alpha must be {rule}, got {alpha}")
        left = Fraction(alpha) - lost
        size = self.answers.sample_size(alpha=math.nextafter(float(left), 0.0), beta=beta)
        # Slices err from k(n) of the answer's own fraction; that of another is half a rank more from it than f n is.
        size += math.ceil(1 / (2 * left)) if lost and isinstance(self.answers, base.OnSlices) else 0
        return max(size, math.ceil(1 / (2 * (Fraction(alpha) - end)))) if end else size

    def distance(self, *, ends: bool = False) -> Fraction:
        """The largest distance of a wanted fraction from that of its answer, or from the end that serves it; 0 if there is none."""
        own = _fractions_of(self.answers)
        served = [(int(f), i) for f, i in zip(np.asarray(self.fractions), self.serves, strict=True)]
        return Fraction(max((abs(f - own[i]) for f, i in served if (i in (0, len(own) - 1)) == ends), default=0), 2**32)


def _fractions_of(answers: Quantiles) -> list[int]:
    """F for the first point, each answer and the last point, as `serves` numbers them."""
    return [0, *(int(f) for f in np.asarray(answers.fractions)), 2**32]


def _serving(fraction: int, own: list[int], reach: int | None) -> int:
    """The number of what serves this fraction: an end within reach, else the nearest answer; without a reach the nearest of all."""
    last = len(own) - 1
    if reach is not None and min(fraction, 2**32 - fraction) <= reach:
        return 0 if fraction <= reach else last
    return min(range(len(own)) if reach is None else range(1, last), key=lambda i: (abs(fraction - own[i]), i))


def shared(answers: Quantiles, *, fractions: Sequence[float], ends: float | None = None) -> SharedQuantiles:
    """Quantiles at `fractions`, each answered by the nearest of those that `answers` computes, or by an end of the domain; see the module.

    Formal guarantees: those of `answers`.

    Args:
      answers: quantiles at other fractions, mostly fewer.
      fractions: from 0 to 1, increasing; rounded to multiples of 2^-32 (`rounded_fractions`).
      ends: the ends of the domain serve all fractions up to this far from 0 and 1, in [0, 1/2), and no others; None: those to which they
        are nearer than any answer.

    Raises:
      TypeError, ValueError: `answers` are no quantiles, or some of them serve none of the fractions; `ends` out of range.

    >>> import jax
    >>> from dpjax import Points
    >>> from dpjax.optimizers.quantiles import permute_and_flip
    >>> points = Points.create(wide.from_ints(range(0, 256, 2), 8))
    >>> few = shared(permute_and_flip(bits=8, fractions=[0.5], epsilon=1.0), fractions=[0.1, 0.4, 0.5, 0.6])
    >>> few.serves, few.guarantee().epsilon, float(few.distance()) < 0.1001
    ((0, 1, 1, 1), 1.0, True)
    >>> shared(few.answers, fractions=[0.1, 0.4, 0.5, 0.6], ends=0.4).serves
    (0, 0, 1, 2)
    >>> wide.to_ints(few(jax.random.key(0), points).hypothesis)[0]
    0
    """
    if not isinstance(answers, Quantiles):
        raise TypeError(f"answers must be quantiles of dpjax.optimizers, got {type(answers).__name__}")
    rounded = rounded_fractions(fractions)
    own = _fractions_of(answers)
    reach = None if ends is None else round(arguments.known("ends", ends, at_least=0.0, below=0.5) * 2**32)
    serves = tuple(_serving(f, own, reach) for f in rounded)
    idle = sorted({*range(1, len(own) - 1)} - {*serves})
    if idle:
        raise ValueError(f"fractions must have one for each answer, got none near {own[idle[0]] / 2**32:g}")
    each: Any = np.asarray(rounded, np.uint32)
    return SharedQuantiles(answers=answers, fractions=each, serves=serves)
