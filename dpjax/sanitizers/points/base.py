"""Frequencies of points, and base of the sanitizers that release them."""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, UInt32

from dpjax.core import arguments
from dpjax.core.pytree import frozen
from dpjax.data.outcome import Outcome
from dpjax.data.sample import bucket, wide_rows
from dpjax.data.weighted import LARGEST, Weighted
from dpjax.domains import wide
from dpjax.sanitizers.base import OfCounts
from dpjax.sanitizers.points import rows


@frozen
class Frequencies:
    """Estimated frequencies of points; those not named have frequency 0.

    Attributes:
      points: increasing, the named ones first (the others are all ones and mean nothing).
      answers: estimated share of the dataset, 0 for slots that are not used.
      where: which slots are used.
    """

    points: UInt32[Array, "slots limbs"]
    answers: Float[Array, "slots"]
    where: Bool[Array, "slots"]

    def answer(self, x: Any) -> Float[Array, "q"]:
        """The estimated frequency of each x, wide integers of shape (q, limbs)."""
        x = wide_rows("x", x)
        limbs = max(x.shape[-1], self.points.shape[-1])
        mine = jnp.where(self.where[:, None], wide.resize(self.points, limbs), LARGEST)
        x = wide.resize(x, limbs)
        at = jnp.minimum(jax.vmap(lambda one: wide.search(mine, one))(x), self.points.shape[0] - 1)
        return jnp.where(wide.equal(mine[at], x) & self.where[at], self.answers[at], 0.0)

    def support(self) -> tuple[UInt32[Array, "slots limbs"], Bool[Array, "slots"]]:
        """(points, where), as `multi.generic` requires of a sanitized database."""
        return self.points, self.where

    def database(self, *, bits: int, error: float, answers: float) -> Weighted:
        """A multiset of ceil(1/(error - 2 answers)) rows, within `error` of data from which the answers are within `answers`.

        See `dpjax.sanitizers.points.rows`. Any k of them are within k times `error`.
        """
        return rows.rows(self.points, self.answers, self.where, bits=bits, error=error, answers=answers)

    def total(self, x: Any) -> Float[Array, ""]:
        """The estimated frequency of a set of distinct points (BNS Figure 10)."""
        return jnp.sum(self.answer(x))

    @classmethod
    def kept(
        cls, points: UInt32[Array, "slots limbs"], answers: Float[Array, "slots"], keep: Bool[Array, "slots"]
    ) -> "Frequencies":
        """The points to keep, out of increasing ones, moved to the front: nothing of the others is left."""
        slots = keep.shape[0]
        place = jnp.where(keep, jnp.cumsum(keep, dtype=jnp.int32) - 1, slots)
        return cls(
            points=jnp.full_like(points, LARGEST).at[place].set(points, mode="drop"),
            answers=jnp.zeros_like(answers).at[place].set(answers, mode="drop"),
            where=jnp.arange(slots, dtype=jnp.int32) < jnp.sum(keep, dtype=jnp.int32),
        )

    def cut(self) -> "Frequencies":
        """The same in as many slots as the number of named points requires."""
        slots = bucket(max(int(jnp.sum(self.where)), 1))
        more = max(slots - self.where.shape[0], 0)
        return Frequencies(
            points=jnp.pad(self.points, ((0, more), (0, 0)), constant_values=LARGEST)[:slots],
            answers=jnp.pad(self.answers, (0, more))[:slots],
            where=jnp.pad(self.where, (0, more))[:slots],
        )


class PointSanitizer(OfCounts):
    """A release of `Frequencies`.

    A run uses how often each distinct point occurs. Answers are real numbers: there is no list of outputs, hence no `pmf`.
    """

    def __call__(self, key: Array, data: Any) -> Outcome:
        """One run; see `Algorithm`. In a compiled program, a release has a slot for each row of the data: let that number be public."""
        outcome = super().__call__(key, data)
        if any(map(arguments.is_traced, jax.tree.leaves(outcome))):
            return outcome
        # The number of distinct points of a `Weighted` multiset is private, and would show in the shapes of the release.
        return dataclasses.replace(outcome, hypothesis=outcome.hypothesis.cut())
