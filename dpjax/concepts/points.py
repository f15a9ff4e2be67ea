"""Points over X_d = {0, ..., 2^d - 1} (BNS Definition 3.1): c_j(x) = 1 iff x = j, for j in X_d; VC dimension 1.

The all-zero concept is not a member of POINT_d, but hypotheses and targets may be all-zero (BNS Remark 3.3). Errors are exact: the data
come from finitely many heavy points and, with the rest of the mass, uniformly from all of X_d.

    >>> import jax
    >>> from dpjax.concepts import points
    >>> law = points.point_masses(bits=64, points=[3, 2**40], masses=[1.0, 3.0], target=2**40)
    >>> float(law.error(points.point(3, bits=64))), float(law.error(points.zero(bits=64)))
    (1.0, 0.75)
    >>> both = points.point_masses(bits=64, points=[3, 2**40], masses=[1.0, 3.0], target=[2**40, None])
    >>> both.sample(jax.random.key(0), 7, 5).k, both.errors(points.zero(bits=64, k=2)).tolist()
    (2, [0.75, 0.0])
"""

import functools
import math
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Bool, Float, Int, UInt32

from dpjax.concepts import thresholds
from dpjax.concepts.distribution import Distribution, of_tolerance
from dpjax.core import arguments, random
from dpjax.core import bits as packed
from dpjax.core.pytree import frozen, static
from dpjax.data.multi_sample import MultiSample
from dpjax.data.sample import Sample
from dpjax.domains import wide
from dpjax.domains.events import PointSet

Target = int | None  # a point, or the all-zero concept


@frozen
class Point:
    """The concept c_position, or the all-zero one; without leading axes a single concept, with one axis k of them.

    Attributes:
      position: wide integers.
      zero: whether it is the all-zero concept (`position` then means nothing).
    """

    position: UInt32[Array, "*k limbs"]
    zero: Bool[Array, "*k"]

    @classmethod
    def shown(cls, position: UInt32[Array, "*k limbs"], zero: Bool[Array, "*k"]) -> "Point":
        """What may be released: a position that means nothing is set to 0, since the one that was found would reveal some of the data."""
        return cls(position=jnp.where(zero[..., None], np.uint32(0), position), zero=zero)

    def predict(self, x: UInt32[Array, "rows more"]) -> Bool[Array, "rows *k"]:
        """The labels of points: shape (rows,), or (rows, k)."""
        limbs = max(self.position.shape[-1], x.shape[-1])
        x, position = wide.resize(x, limbs), wide.resize(self.position, limbs)
        if position.ndim == 1:
            return wide.equal(x, position[None]) & ~self.zero
        return wide.equal(x[:, None], position[None]) & ~self.zero[None]

    def share(self, bits: Int[Array, ""]) -> Float[Array, "*k"]:
        """The share of X_bits that is labelled 1."""
        return jnp.where(self.zero, 0.0, jnp.exp2(-jnp.asarray(bits, float)))


@frozen
class _Elsewhere:
    """A point that differs from all those it is compared with."""

    def predict(self, x: UInt32[Array, "rows more"]) -> Bool[Array, "rows"]:
        """No point has the label 1."""
        return jnp.zeros((x.shape[0],), bool)

    def share(self, bits: Int[Array, ""]) -> Float[Array, ""]:
        """One point of X_bits."""
        return jnp.exp2(-jnp.asarray(bits, float))


def point(position: Target | Sequence[Target], *, bits: int) -> Point:
    """c_position, or all-zero for None; a list makes k concepts.

    Raises:
      TypeError, ValueError: a position that is not a point of X_bits, or an empty list.
    """
    return _named("position", position, bits)


def _named(name: str, position: Target | Sequence[Target], bits: int) -> Point:
    """`point`, for an argument of this name."""
    bits = arguments.integer("bits", bits, at_least=1, at_most=wide.MAX_BITS)
    single = position is None or isinstance(position, str | bytes | bytearray) or not isinstance(position, Sequence)
    targets: list[Any] = [position] if single else list(position)  # type: ignore[arg-type]
    if not targets:
        raise ValueError(f"{name} must name at least one concept, got []")
    values = [0 if t is None else arguments.integer(name, t, at_least=0, at_most=(1 << bits) - 1) for t in targets]
    made = Point(position=wide.from_ints(values, bits), zero=jnp.asarray([t is None for t in targets]))
    return jax.tree.map(lambda leaf: leaf[0], made) if single else made


def zero(*, bits: int, k: int | None = None) -> Point:
    """The all-zero hypothesis, or k of them."""
    return point(None if k is None else [None] * arguments.size("k", k), bits=bits)


# ----------------------------------------------------------------------------------------------------- distributions


@frozen
class PointDistribution(Distribution):
    """Heavy points and a uniform background, labelled by one target or by k; build it by `point_masses` or `uniform`.

    Attributes:
      heavy: the heavy points and their masses, as shares of the part that is not background.
      background: the share, in units of 2^-32, that is uniform on X_bits; 2^32 - 1 units stand for all of the mass.
      bits: d.
      targets: the concepts that label the examples.
      spread: whether there may be a background (static): without one nothing is drawn for it.
    """

    heavy: thresholds.PointMasses
    background: UInt32[Array, ""]
    bits: Int[Array, ""]
    targets: Point
    limbs: int = static()
    spread: bool = static()

    def draw(self, key: Array, capacity: int, n: Int[Array, ""]) -> Any:
        """n independent examples in `capacity` rows, in no order: a `Sample` for one target, a `MultiSample` for k."""
        key_kind, key_heavy, key_uniform = jax.random.split(key, 3)
        place = self.heavy.place(random.bits(key_heavy, capacity))
        heavy = wide.resize(self.heavy.points, self.limbs)
        x, y = heavy[place], self._labels(heavy)[place]  # labels of heavy points are the same in every row
        if self.spread:
            uniform = self._uniform(key_uniform, capacity)
            far = random.bits(key_kind, capacity) < self.background
            far |= self.background == np.uint32(0xFFFFFFFF)
            x, y = (
                wide.select(far, uniform, x),
                jnp.where(far if y.ndim == 1 else far[:, None], self._labels(uniform), y),
            )
        if y.ndim == 1:
            return Sample.tree_unflatten((False, False), (x, y, n))
        return MultiSample(x=x, y=y, n_valid=n, k=self.targets.zero.shape[0])

    def _uniform(self, key: Array, capacity: int) -> UInt32[Array, "capacity limbs"]:
        """Uniform points of X_bits."""
        words = random.bits(key, capacity * self.limbs).reshape(capacity, self.limbs)
        return words & wide.largest(self.bits, self.limbs)[None]

    def _labels(self, x: UInt32[Array, "rows limbs"]) -> Array:
        """Labels as samples hold them: int32 (rows,) for one target, packed (rows, words) for k."""
        labels = self.targets.predict(x)
        return labels.astype(jnp.int32) if labels.ndim == 1 else packed.pack(labels)

    def error(self, hypothesis: Any) -> Float[Array, ""]:
        """D[hypothesis and target differ], for one target and anything with `predict` and `share`."""
        return self._one_error(_checked_concept("hypothesis", hypothesis))

    def errors(self, hypotheses: Any) -> Float[Array, "k"]:
        """The same for k targets; every leaf of `hypotheses` has a leading axis of length k."""
        _checked_concept("hypotheses", hypotheses)
        several = self.targets.position.shape[:-1]
        for leaf in jax.tree.leaves(hypotheses):
            if not several or jnp.shape(leaf)[:1] != several:
                k = several[0] if several else "several"
                raise ValueError(
                    f"hypotheses must be {k}, one for each target, got an array of shape {jnp.shape(leaf)}"
                )
        return self._all_errors(hypotheses)

    @of_tolerance
    @jax.jit
    def within(self, alpha: Float[ArrayLike, ""]) -> PointSet:
        """The concepts of error at most alpha; for k targets, a set for each.

        All points that are neither heavy nor the target have the same error.

        >>> law = point_masses(bits=64, points=[3, 2**40], masses=[1.0, 3.0], target=2**40)
        >>> good = law.within(0.8)
        >>> wide.to_ints(good.points), good.good.tolist(), bool(good.others), bool(good.zero)
        ([3, 1099511627776, 1099511627776], [False, True, True], True, True)
        """
        one = functools.partial(self._within, alpha)
        return jax.vmap(one)(self.targets) if self.targets.zero.ndim else one(self.targets)

    def _within(self, alpha: Float[ArrayLike, ""], target: Point) -> PointSet:
        heavy = wide.resize(self.heavy.points, self.limbs)
        named = jnp.concatenate([heavy, target.position[None]])
        twice = target.zero | jnp.any(wide.equal(heavy, target.position[None]))

        def good(hypothesis: Any) -> Array:
            return self._error(hypothesis, target) <= alpha

        zero = Point(position=jnp.zeros_like(target.position), zero=jnp.bool_(True))
        return PointSet(
            points=named,
            where=jnp.append(jnp.ones((heavy.shape[0],), bool), ~twice),
            good=jax.vmap(lambda point: good(Point(position=point, zero=jnp.bool_(False))))(named),
            others=good(_Elsewhere()),
            zero=good(zero),
        )

    @jax.jit
    def _one_error(self, hypothesis: Any) -> Float[Array, ""]:
        return self._error(hypothesis, self.targets)

    @jax.jit
    def _all_errors(self, hypotheses: Any) -> Float[Array, "k"]:
        return jax.vmap(self._error)(hypotheses, self.targets)

    def _error(self, hypothesis: Any, target: Point) -> Float[Array, ""]:
        """Exact up to rounding: masses are multiples of 2^-32, and uniform points are counted: #h + #c_t - 2 #(h and c_t)."""
        mine, labels = hypothesis.predict(self.heavy.points), target.predict(self.heavy.points)
        if not mine.shape == labels.shape == self.heavy.points.shape[:1]:  # broadcast, errors would pass 1
            raise ValueError(
                "hypothesis must be one concept, and the law of one target (errors takes several),"
                f" got labels of shapes {mine.shape}, {labels.shape}"
            )
        differ = mine != labels
        masses = jax.vmap(lambda i: self.heavy._mass(i, i + 1))(jnp.arange(differ.shape[0], dtype=jnp.int32))
        heavy = jnp.sum(jnp.where(differ, masses, 0.0))
        point = target.share(self.bits)
        both = jnp.where(hypothesis.predict(target.position[None])[0], point, 0.0)
        spread = hypothesis.share(self.bits) + point - 2 * both
        everything, nothing = self.background == np.uint32(0xFFFFFFFF), self.background == 0
        background = jnp.where(everything, 1.0, self.background.astype(float) * 2.0**-32)
        # What a background of nearly 1 leaves is known exactly as an integer: 2^32 less its units.
        rest = jnp.where(nothing, 1.0, (~self.background + np.uint32(1)).astype(float) * 2.0**-32)
        return background * spread + jnp.where(everything, 0.0, rest) * heavy


def _checked_concept(name: str, hypothesis: Any) -> Any:
    """The hypothesis; TypeError unless it has `predict` (its labels) and `share` (the share of a domain that it labels 1)."""
    if not all(hasattr(hypothesis, part) for part in ("predict", "share")):
        raise TypeError(f"{name} must have predict(x) and share(bits), as of dpjax.concepts.points, got {hypothesis!r}")
    return hypothesis


def point_masses(
    *, bits: int, points: list[int], masses: list[float], target: Target | Sequence[Target], background: float = 0.0
) -> PointDistribution:
    """Point masses at distinct points, and with probability `background` a uniform point of X_bits.

    Args:
      bits: d.
      points, masses: distinct points and their masses > 0; normalised, then rounded to multiples of 2^-32.
      target: a point or None (all-zero): examples are a `Sample`; a list of k of them: a `MultiSample`.
      background: in [0, 1], rounded to a multiple of 2^-32.

    Raises:
      TypeError, ValueError: an argument out of range.
    """
    share = arguments.known("background", background, at_least=0.0, at_most=1.0)
    return PointDistribution(
        heavy=thresholds.point_masses(bits=bits, points=points, masses=masses, target=0),
        background=jnp.uint32(min(round(math.ldexp(share, 32)), 0xFFFFFFFF)),
        bits=jnp.int32(bits),
        targets=_named("target", target, bits),
        limbs=wide.limbs_for(bits),
        spread=share > 0,
    )


def uniform(*, bits: int, target: Target | Sequence[Target]) -> PointDistribution:
    """Uniform on X_bits: every concept is as good as all-zero, except on the smallest domains.

    >>> float(uniform(bits=2, target=3).error(point(1, bits=2)))
    0.5
    """
    return point_masses(bits=bits, points=[0], masses=[1.0], target=target, background=1.0)
