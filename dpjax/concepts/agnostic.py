"""Labels that are not those of a concept (MULTI Definitions 5, 15): exact errors, and the best of the class.

A learner is then judged by its excess, error(h) - min over c in C of error(c), which `dpjax.data.pac` and `dpjax.least_n` always use
(for labels of the class it is the error). There are two ways to build such laws, also for k concepts (mixtures of points, thresholds,
parities and rectangles):

| | the label of x | error of h | best concept |
|---|---|---|---|
| `noisy(law, flip=e)` | the target's, flipped independently with probability e <= 1/2 | e + (1 - 2e) error_law(h) | the target, e |
| `mixed(laws, weights=w)` | that of the i-th law's target with probability w_i | sum_i w_i error_i(h) | found as below |

*The best concept of a mixture* of laws that share their points.
- Thresholds: sum_i w_i D[between h and t_i] is least at a weighted median of the t_i, so at a target.
- Points: a c_x that is not a target has error D(x) more than all-zero, so the best is a target or all-zero (which BNS Remark 3.3 adds to
  the class).
- Uniform parities: all but the targets err on half of the points, so the best is a target.
- Rectangles: sum_i w_i D[h xor t_i] is a constant plus the integral over h of 1 - 2 sum_i w_i [x in t_i], which along an axis jumps down
  only at lows of targets and up only after highs. Moving one face of h at a time shows that some best h has all its faces among those of
  the targets: there are at most m^(2D) such boxes, and the empty one.

    >>> import jax
    >>> from dpjax.concepts import thresholds
    >>> law = noisy(thresholds.log_uniform(bits=64), flip=0.1)
    >>> float(law.best()), float(law.excess(law.base.target))
    (0.1..., 0.0)
    >>> at = dict(bits=8, points=[10, 20, 30], masses=[1.0, 1.0, 2.0])
    >>> law = mixed([thresholds.point_masses(target=t, **at) for t in (15, 35)], weights=[1.0, 3.0])
    >>> float(law.best()), float(law.excess(thresholds.point_masses(target=25, **at).target))  # the best is 35
    (0.1875, 0.25)
"""

import itertools
import math
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, ArrayLike, Float, Int, UInt32

from dpjax.concepts import parities, points, rectangles, thresholds
from dpjax.concepts.distribution import Distribution
from dpjax.core import arguments, random
from dpjax.core import bits as packed
from dpjax.core.pytree import frozen, stacked
from dpjax.data.assignments import Assignments
from dpjax.data.examples import Examples
from dpjax.data.multi_sample import MultiSample
from dpjax.data.sample import Sample
from dpjax.domains import wide
from dpjax.domains.events import Near, PointSet

MOST_BOXES = 2**14  # the most boxes among which the best rectangle is searched for


class Agnostic(Distribution):
    """What both kinds of laws share."""

    def best(self) -> Float[Array, "*k"]:
        """The least error of a concept of the class; for k label columns, one for each."""
        raise NotImplementedError

    def excess(self, hypothesis: Any) -> Float[Array, ""]:
        return self.error(hypothesis) - self.best()  # type: ignore[attr-defined]

    def excesses(self, hypotheses: Any) -> Float[Array, "k"]:
        return self.errors(hypotheses) - self.best()  # type: ignore[attr-defined]

    def within(self, alpha: Float[ArrayLike, ""]) -> Any:
        """Refused: no hypothesis need have error alpha.

        Raises:
          TypeError: always.
        """
        raise TypeError("within(alpha) is for labels of a concept; of these ask within_excess(alpha)")


@frozen
class Noisy(Agnostic):
    """Every label of `base` flipped with probability `flip`; build it by `noisy`."""

    base: Any
    flip: Float[Array, ""]

    def draw(self, key: Array, capacity: int, n: Int[Array, ""]) -> Any:
        key_base, key_flips = jax.random.split(key)
        drawn = self.base.in_order_drawn(key_base, capacity, n)
        units = (jnp.asarray(self.flip, float) * 2.0**32).astype(jnp.uint32)
        if isinstance(drawn, MultiSample):
            words = drawn.y.shape[1]
            coins = random.coins(key_flips, jnp.broadcast_to(units, (packed.WORD, words)), capacity)
            return _relabelled(drawn, drawn.y ^ (coins & packed.pack(jnp.ones((drawn.k,), bool))[None]))
        if isinstance(drawn, Assignments):
            coins = random.coins(key_flips, jnp.broadcast_to(units, (packed.WORD, 1)), drawn.y.shape[0])
            return _relabelled(drawn, drawn.y ^ coins[:, 0])
        flipped = (random.bits(key_flips, capacity) < units).astype(jnp.int32)
        return _relabelled(drawn, drawn.y ^ flipped)

    def error(self, hypothesis: Any) -> Float[Array, ""]:
        """flip + (1 - 2 flip) D[hypothesis and target differ]."""
        return self.flip + (1 - 2 * self.flip) * self.base.error(hypothesis)

    def errors(self, hypotheses: Any) -> Float[Array, "k"]:
        """The same for each of k labels."""
        return self.flip + (1 - 2 * self.flip) * self.base.errors(hypotheses)

    def best(self) -> Float[Array, "*k"]:
        return jnp.asarray(self.flip, float)

    def excess(self, hypothesis: Any) -> Float[Array, ""]:
        """(1 - 2 flip) D[hypothesis and target differ], computed without a subtraction of errors."""
        return (1 - 2 * jnp.asarray(self.flip, float)) * self.base.error(hypothesis)

    def excesses(self, hypotheses: Any) -> Float[Array, "k"]:
        """The same for each of k labels."""
        return (1 - 2 * jnp.asarray(self.flip, float)) * self.base.errors(hypotheses)

    def within_excess(self, alpha: Float[ArrayLike, ""]) -> Any:
        """The event of an error of at most alpha / (1 - 2 flip) under `base`; everything at flip = 1/2."""
        left = 1 - 2 * jnp.asarray(self.flip, float)
        alpha = jnp.asarray(arguments.real("alpha", alpha, at_least=0.0), float)
        share = alpha / jnp.maximum(left, 1e-30)
        # The quotient is rounded, but the event holds exactly the errors whose product with `left`, rounded as in `excess`, is up to alpha.
        above, below = jnp.nextafter(share, jnp.inf), jnp.nextafter(share, 0.0)
        share = jnp.where(left * above <= alpha, above, jnp.where(left * share > alpha, below, share))
        return self.base.within(jnp.where(left > 0, jnp.minimum(share, 1.0), 1.0))


@frozen
class Mixed(Agnostic):
    """Every example labelled by one of several laws' targets; build it by `mixed`.

    Attributes:
      laws: distributions with the same points; the i-th one labels with probability weights[i].
      candidates: hypotheses that include the best of the class, stacked; for k label columns, k hypotheses each.
      units: cumulative weights in units of 2^-32.
    """

    laws: tuple[Any, ...]
    candidates: Any
    units: UInt32[Array, "laws"]

    @property
    def weights(self) -> Float[Array, "laws"]:
        """The weights, multiples of 2^-32; the last cumulative one, 2^32, is 0 in 32 bits, but differences still come out right."""
        return jnp.diff(self.units, prepend=jnp.zeros(1, jnp.uint32)).astype(float) * 2.0**-32

    def draw(self, key: Array, capacity: int, n: Int[Array, ""]) -> Any:
        key_points, key_laws = jax.random.split(key)
        drawn = [law.in_order_drawn(jax.random.clone(key_points), capacity, n) for law in self.laws]  # the same points
        words = random.bits(key_laws, capacity)
        which = jnp.sum(words[:, None] >= self.units[None, :-1], axis=1, dtype=jnp.int32)
        labels = jnp.stack([each.y for each in drawn])
        return _relabelled(drawn[0], jax.vmap(lambda i, y: y[i], in_axes=(0, 1))(which, labels))

    def _mean(self, values: Float[Array, "laws *k"]) -> Float[Array, "*k"]:
        # By default some devices multiply with a precision of eleven bits.
        return jnp.dot(self.weights, values, precision=lax.Precision.HIGHEST)

    def error(self, hypothesis: Any) -> Float[Array, ""]:
        """sum_i w_i error_i(hypothesis)."""
        return self._mean(jnp.stack([law.error(hypothesis) for law in self.laws]))

    def errors(self, hypotheses: Any) -> Float[Array, "k"]:
        """The same for each of k labels."""
        return self._mean(jnp.stack([law.errors(hypotheses) for law in self.laws]))

    @jax.jit
    def best(self) -> Float[Array, "*k"]:
        return jnp.min(jax.vmap(self.errors if _several(self.laws[0]) else self.error)(self.candidates), axis=0)

    def within_excess(self, alpha: Float[ArrayLike, ""]) -> Any:
        """An interval for thresholds, a `PointSet` for points, otherwise `Near`."""
        alpha = jnp.asarray(arguments.real("alpha", alpha, at_least=0.0), float)
        first = self.laws[0]
        if isinstance(first, points.PointDistribution):
            return _point_set(self, alpha)
        base = getattr(first, "base", first)
        if isinstance(base, thresholds.PointMasses):
            return _interval(self, alpha)
        if isinstance(base, thresholds.Uniform):
            return _uniform_interval(self, base, alpha)
        return Near(distribution=self, alpha=alpha)


def _relabelled(data: Any, y: Array) -> Any:
    """The same examples with other labels, about which nothing is promised."""
    if isinstance(data, MultiSample):
        return MultiSample(x=data.x, y=y, n_valid=data.n_valid, k=data.k)
    if isinstance(data, Examples | Assignments):
        return type(data)(x=data.x, y=y, n_valid=data.n_valid)
    return Sample.tree_unflatten((False, False), (data.x, y, data.n_valid))


@jax.jit
def _point_set(law: Mixed, alpha: Array) -> PointSet:
    """Heavy points and targets by name, and one point that stands for all others."""
    targets = law.candidates
    heavy = wide.resize(law.laws[0].heavy.points, law.laws[0].limbs)

    def one(column: Any) -> PointSet:
        """The points named for one label, given its candidates; which are good is decided below."""
        named = jnp.concatenate([heavy, column.position])
        where = jnp.concatenate([jnp.ones(heavy.shape[0], bool), ~column.zero])
        earlier = jnp.tril(wide.equal(named[:, None], named[None]) & where[None], -1)
        return PointSet(
            points=named,
            where=where & ~jnp.any(earlier, axis=1),
            good=where,
            others=jnp.bool_(True),
            zero=jnp.bool_(True),
        )

    many = _several(law.laws[0])
    sets = jax.vmap(one, in_axes=1)(targets) if many else one(targets)

    def good(hypotheses: Any) -> Array:
        return (law.excesses if many else law.excess)(hypotheses) <= alpha

    slots = sets.points.shape[-2]
    named = jnp.moveaxis(sets.points, -2, 0)
    none = jnp.zeros(named.shape[:-1], bool)
    each = jax.vmap(good)(points.Point(position=named, zero=none))
    zero = jax.tree.map(lambda leaf: leaf[-1], targets)  # the last candidate
    shape = zero.zero.shape
    return PointSet(
        points=sets.points,
        where=sets.where,
        good=jnp.moveaxis(each, 0, -1).reshape((*shape, slots)),
        others=good(points._Elsewhere()),
        zero=good(zero),
    )


@jax.jit
def _interval(law: Mixed, alpha: Array) -> tuple[Array, Array]:
    """(low, high): the excess falls up to the best threshold and rises beyond it, in steps right after the points."""
    first = law.laws[0]
    many = _several(first)
    masses = first.base if many else first
    one = wide.one(masses.points.shape[1])[None]
    after = jnp.concatenate([jnp.zeros_like(one), wide.add(masses.points, one)])  # a threshold of every rank
    k = first.targets.shape[0] if many else 0

    def excess(h: Array) -> Array:
        return law.excesses(jnp.broadcast_to(h, (k, h.shape[0]))) if many else law.excess(h)

    good = jax.vmap(excess)(after) <= alpha
    rank = jnp.arange(after.shape[0], dtype=jnp.int32)
    shaped = rank.reshape((-1,) + (1,) * (good.ndim - 1))
    m = masses.points.shape[0]
    low = jnp.min(jnp.where(good, shaped, m), axis=0)
    high = jnp.max(jnp.where(good, shaped, -1), axis=0)
    top = wide.add(masses.points, one)
    last = jnp.concatenate([top, jnp.full_like(one, np.uint32(0xFFFFFFFF))])
    begin, end = after[low], last[jnp.maximum(high, 0)]
    nothing = jnp.asarray(high < 0)[..., None]
    return begin, jnp.where(nothing, begin, end)


@jax.jit
def _uniform_interval(law: Mixed, base: thresholds.Uniform, alpha: Array) -> tuple[Array, Array]:
    """The same on uniform points, which are too many to go through: by bisection on either side of a best threshold."""
    many = _several(law.laws[0])
    excess = law.excesses if many else law.excess
    errors = jax.vmap(law.errors if many else law.error)(law.candidates)
    at = jnp.argmin(errors, axis=0)
    best = law.candidates[at, jnp.arange(at.shape[0], dtype=jnp.int32)] if many else law.candidates[at]
    limbs = best.shape[-1]
    one = wide.one_like(best)
    last = jnp.broadcast_to(wide.power_of_two(jnp.asarray(base.bits, jnp.int32), limbs), best.shape)

    def first_where(good: Any, low: Array, high: Array) -> Array:
        """The least threshold from low on that is good, or high."""

        def halve(_: Array, ends: tuple[Array, Array]) -> tuple[Array, Array]:
            low, high = ends
            middle = wide.midpoint(low, high)
            holds = good(middle) | wide.equal(low, high)
            return wide.select(holds, low, wide.add(middle, one)), wide.select(holds, middle, high)

        return lax.fori_loop(0, 32 * limbs, halve, (low, high))[1]

    begin = first_where(lambda h: excess(h) <= alpha, jnp.zeros_like(best), best)
    return begin, first_where(lambda h: excess(h) > alpha, wide.add(best, one), wide.add(last, one))


def _several(law: Any) -> bool:
    """Whether the law labels k columns."""
    if isinstance(law, points.PointDistribution):
        return bool(law.targets.zero.ndim)
    return isinstance(law, thresholds.Several | parities.UniformParities)


def noisy(law: Distribution, *, flip: Any) -> Noisy:
    """Label noise: each label is flipped independently.

    Args:
      law: a distribution with the labels of one concept, or of k.
      flip: the probability, in [0, 1/2], rounded to the default float, then down to a multiple of 2^-32; may be traced.

    Raises:
      TypeError, ValueError: a law of another kind, or flip out of range.
    """
    if not isinstance(law, Distribution) or isinstance(law, Agnostic):
        raise TypeError(f"law must be a distribution with labels of a concept, of dpjax.concepts, got {law!r}")
    return Noisy(base=law, flip=arguments.real("flip", flip, at_least=0.0, at_most=0.5))


# `_TARGETS`: the fields that differ between laws with the same points.
_MOST_WEIGHT = 2.0**960  # sums of such weights are still finite in float64
_TARGETS = {
    thresholds.Uniform: ("target",),
    thresholds.PointMasses: ("target",),
    thresholds.Several: ("targets",),
    points.PointDistribution: ("targets",),
    parities.UniformParity: ("target",),
    parities.UniformParities: ("targets",),
    rectangles.UniformProduct: ("target", "first", "width"),
}


def mixed(laws: Sequence[Distribution], *, weights: Sequence[float]) -> Mixed:
    """Labels outside the class: each example is labelled by one of several targets, drawn at random.

    Args:
      laws: at least two, with the same points and different targets: from `thresholds.uniform`, `.point_masses`, `.several`,
        `points.point_masses`, `.uniform`, `parities.uniform`, `.uniform_single`, or `rectangles.uniform`.
      weights: > 0, one for each law; normalised, then rounded to multiples of 2^-32.

    Raises:
      TypeError, ValueError: other laws, points that differ, weights out of range, or too many rectangles to search for the best one.
    """
    laws = tuple(arguments.several("laws", laws))
    if len(laws) < 2 or type(laws[0]) not in _TARGETS:
        raise TypeError(
            f"laws must be at least two distributions that share their points, such as thresholds.uniform, got {laws!r}"
        )
    for law in laws[1:]:
        if type(law) is not type(laws[0]) or not _same_points(laws[0], law):
            raise ValueError(f"laws must differ in their targets alone, got {laws[0]!r} and {law!r}")
    weights = [
        arguments.known("weights", w, above=0.0, at_most=_MOST_WEIGHT) for w in arguments.several("weights", weights)
    ]
    if len(weights) != len(laws):
        raise ValueError(f"weights must have one entry a law, got {len(weights)} for {len(laws)} laws")
    total = math.fsum(weights)
    units = [round(sum(weights[: i + 1]) / total * 2**32) for i in range(len(laws))]
    if any(a >= b for a, b in itertools.pairwise([0, *units])):
        raise ValueError(f"weights must each be at least 2^-32 of the total, got {min(weights)} of {total}")
    units[-1] = 0
    return Mixed(laws=laws, candidates=_candidates(laws), units=jnp.asarray(np.asarray(units, np.uint32)))


def _same_points(one: Any, other: Any) -> bool:
    """Whether both laws are equal except in the fields of their targets."""
    moving = _TARGETS[type(one)]
    fields = [name for name in vars(one) if name not in moving]
    both: list[Any] = [jax.tree.flatten([getattr(law, name) for name in fields]) for law in (one, other)]
    equal = [np.array_equal(a, b) for a, b in zip(both[0][0], both[1][0], strict=False)]
    shapes = [[np.shape(leaf) for leaf in jax.tree.leaves(getattr(law, moving[0]))] for law in (one, other)]
    return bool(both[0][1] == both[1][1]) and all(equal) and shapes[0] == shapes[1]


def _candidates(laws: Sequence[Any]) -> Any:
    """Hypotheses that include a best concept; see the module."""
    targets = [getattr(law, _TARGETS[type(law)][0]) for law in laws]
    if isinstance(laws[0], points.PointDistribution):
        targets.append(points.Point(position=targets[0].position, zero=jnp.ones_like(targets[0].zero)))
    if isinstance(laws[0], rectangles.UniformProduct):
        return _boxes(targets)
    return stacked(*targets)


def _boxes(targets: Sequence[rectangles.Rectangle]) -> rectangles.Rectangle:
    """All rectangles with faces of these, and the empty one."""
    axes, limbs = targets[0].low.shape
    if len(targets) ** (2 * axes) > MOST_BOXES:
        raise ValueError(
            f"laws must leave at most {MOST_BOXES} boxes to look for the best one, got {len(targets)}^{2 * axes}"
        )
    empty = rectangles.nothing(axes, limbs)
    faces = (np.stack([np.asarray(getattr(box, face)) for box in targets]) for face in ("low", "high"))
    chosen = np.array(list(itertools.product(range(len(targets)), repeat=2 * axes)))
    ends = zip(faces, (chosen[:, :axes], chosen[:, axes:]), (empty.low, empty.high), strict=True)
    low, high = (np.concatenate([of[at, np.arange(axes)], np.asarray(none)[None]]) for of, at, none in ends)
    return rectangles.Rectangle(low=jnp.asarray(low), high=jnp.asarray(high))
