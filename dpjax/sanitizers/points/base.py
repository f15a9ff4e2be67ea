"""What sanitizers of points share: their data, and what they release."""

from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, UInt32

from dpjax.core import arguments
from dpjax.core.pytree import frozen
from dpjax.data.algorithm import Algorithm
from dpjax.data.fitting import fitted
from dpjax.data.points import Points
from dpjax.data.sample import wide_rows
from dpjax.domains import groups, wide


@frozen
class Frequencies:
    """Estimated frequencies of points; those not named have frequency 0.

    Attributes:
      points: increasing, the named ones first (the others are all ones and say nothing).
      answers: estimated share of the dataset, 0 for slots that are not used.
      where: which slots are used.
    """

    points: UInt32[Array, "slots limbs"]
    answers: Float[Array, "slots"]
    where: Bool[Array, "slots"]

    def answer(self, x: Any) -> Float[Array, "q"]:
        """The estimated frequency of each x, wide integers of shape (q, limbs)."""
        x = wide_rows("x", x)
        at = jnp.minimum(jax.vmap(lambda one: wide.search(self.points, one))(x), self.points.shape[0] - 1)
        return jnp.where(wide.equal(self.points[at], x) & self.where[at], self.answers[at], 0.0)

    def support(self) -> tuple[UInt32[Array, "slots limbs"], Bool[Array, "slots"]]:
        """(points, where): what `multi.generic` asks of a sanitized database."""
        return self.points, self.where

    def total(self, x: Any) -> Float[Array, ""]:
        """The estimated frequency of a set of distinct points (BNS Figure 10)."""
        return jnp.sum(self.answer(x))

    @classmethod
    def kept(
        cls, points: UInt32[Array, "slots limbs"], answers: Float[Array, "slots"], keep: Bool[Array, "slots"]
    ) -> "Frequencies":
        """The kept ones of increasing points, moved to the front: nothing of the others is left."""
        slots = keep.shape[0]
        place = jnp.where(keep, jnp.cumsum(keep, dtype=jnp.int32) - 1, slots)
        return cls(
            points=jnp.full_like(points, np.uint32(0xFFFFFFFF)).at[place].set(points, mode="drop"),
            answers=jnp.zeros_like(answers).at[place].set(answers, mode="drop"),
            where=jnp.arange(slots, dtype=jnp.int32) < jnp.sum(keep, dtype=jnp.int32),
        )


class PointSanitizer(Algorithm):
    """A release of `Frequencies` of `Points` (or of a `Sample`, whose labels are ignored).

    A run looks at how often each distinct point occurs. Answers are real numbers: there is no list of outputs, hence no `pmf`.

    Attributes:
      bits: d.
      n: number of points, public: that of the data.
    """

    kind: ClassVar[type] = Points
    bits: Any
    n: Any
    limbs: int

    def fit(self, data: Any) -> Points:
        points = fitted(Points.of(data), Points, bits=self.bits, limbs=(self.limbs,), name="points")
        if not any(map(arguments.is_traced, (points.n_valid, self.n))) and int(points.n_valid) != int(self.n):
            raise ValueError(f"points must be n = {int(self.n)}, as the sanitizer was told, got {int(points.n_valid)}")
        return points

    def fits(self, points: Points) -> Bool[Array, ""]:
        return points.in_domain(self.bits) & (points.n_valid.astype(float) == jnp.asarray(self.n, float))

    def prepare(self, points: Points) -> groups.Groups:
        return groups.group(points.x, points.valid)

    def listed(self) -> int:
        raise TypeError(f"{type(self).__name__} has no pmf: its answers are real numbers")


def domain(bits: int, n: Any) -> dict[str, Any]:
    """The fields that every sanitizer has."""
    bits = arguments.integer("bits", bits, at_least=1, at_most=wide.MAX_BITS)
    n = jnp.asarray(n, float) if arguments.is_traced(n) else np.float64(arguments.size("n", n))
    return {"bits": np.int32(bits), "n": n, "limbs": wide.limbs_for(bits)}


def refuse_small(n: Any, needed: Any, what: str, allow_unproved: bool, **given: Any) -> None:
    """ValueError if n < needed(**given), which privacy needs, and nobody allowed that; traced numbers pass."""
    if arguments.flag("allow_unproved", allow_unproved) or any(map(arguments.is_traced, (n, *given.values()))):
        return
    least = needed(**{name: float(value) for name, value in given.items()})
    if n < least:
        raise ValueError(
            f"n must be at least {least} for ({given['epsilon']}, {given['delta']})-privacy at alpha = {given['alpha']} ({what}),"
            f" got {n:.0f}; allow_unproved=True simulates without a guarantee"
        )
