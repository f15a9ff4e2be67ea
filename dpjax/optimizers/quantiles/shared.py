"""Fewer quantiles than are asked for: one answer for all fractions near its own.

An answer within t ranks of g n is within t + |f - g| n ranks of f n. So where an error of alpha n is tolerated, the answer at g serves
every fraction f with |f - g| < alpha, if it errs by (alpha - |f - g|) n ranks at most; the first point of the domain serves all f <=
alpha, and the last all f >= 1 - alpha, without any data. The fewer answers there are, the more of the budget each of them has: at alpha =
0.2, three answers serve 99 fractions with a third of the records.

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
        """That of the answers, at what is left of alpha.

        Raises:
          ValueError: alpha is at most the largest distance of a wanted fraction from that of its answer.
        """
        alpha, lost = arguments.known_fraction("alpha", alpha), self.distance()
        if alpha <= lost:
            rule = f"> {float(lost)}, by which fractions differ from those of their answers"
            raise ValueError(f"alpha must be {rule}, got {alpha}")
        return self.answers.sample_size(alpha=math.nextafter(float(Fraction(alpha) - lost), 0.0), beta=beta)

    def distance(self) -> Fraction:
        """The largest distance of a wanted fraction from that of its answer, in multiples of 2^-32."""
        own = _fractions_of(self.answers)
        wanted = (int(f) for f in np.asarray(self.fractions))
        return Fraction(max(abs(f - own[i]) for f, i in zip(wanted, self.serves, strict=True)), 2**32)


def _fractions_of(answers: Quantiles) -> list[int]:
    """F for the first point, each answer and the last point, as `serves` numbers them."""
    return [0, *(int(f) for f in np.asarray(answers.fractions)), 2**32]


def shared(answers: Quantiles, *, fractions: Sequence[float]) -> SharedQuantiles:
    """Quantiles at `fractions`, each answered by the nearest of those that `answers` computes, or by an end of the domain; see the module.

    Formal guarantees: those of `answers`.

    Args:
      answers: quantiles at other fractions, mostly fewer.
      fractions: each strictly between 0 and 1, increasing; rounded to multiples of 2^-32.

    Raises:
      TypeError, ValueError: `answers` are no quantiles, or some of them serve none of the fractions.

    >>> import jax
    >>> from dpjax import Points
    >>> from dpjax.optimizers.quantiles import permute_and_flip
    >>> points = Points.create(wide.from_ints(range(0, 256, 2), 8))
    >>> few = shared(permute_and_flip(bits=8, fractions=[0.5], epsilon=1.0), fractions=[0.1, 0.4, 0.5, 0.6])
    >>> few.serves, few.guarantee().epsilon, float(few.distance()) < 0.1001
    ((0, 1, 1, 1), 1.0, True)
    >>> wide.to_ints(few(jax.random.key(0), points).hypothesis)[0]
    0
    """
    if not isinstance(answers, Quantiles):
        raise TypeError(f"answers must be quantiles of dpjax.optimizers, got {type(answers).__name__}")
    rounded = rounded_fractions(fractions)
    own = _fractions_of(answers)
    serves = tuple(min(range(len(own)), key=lambda i, f=f: (abs(f - own[i]), i)) for f in rounded)  # type: ignore[misc]
    idle = sorted({*range(1, len(own) - 1)} - {*serves})
    if idle:
        raise ValueError(f"fractions must have one for each answer, got none near {own[idle[0]] / 2**32:g}")
    each: Any = np.asarray(rounded, np.uint32)
    return SharedQuantiles(answers=answers, fractions=each, serves=serves)
