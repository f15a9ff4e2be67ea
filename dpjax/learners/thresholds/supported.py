"""Thresholds by one choice among the keys of a tree that the sample supports: errors in proportion to ln(d/delta), not to d.

**Keys.** The search tree of `interior_point.tree_score` over {0, ..., 2^(d+2) - 1}, in which the threshold j is the key 2j + 2 and an
example at x is the point 2x + 3, between the keys of x and x + 1. T more points at 1 count as examples in front of all that are labelled
1, and T more at 2^(d+1) + 3 as examples behind all that are labelled 0: no threshold errs on them. Let m_j be the number of points in the
subtree of the key of j, L(j) the number of examples on which c_j errs, and, for a public number T,

    u(j) = min(m_j, T - L(j)).

`dpjax.mechanisms.supported` chooses among thresholds with u >= 1, with probability proportional to e^(epsilon u/2), or gives bottom. So an
answer errs on fewer than T examples, whatever the labels are.

**Private**: (epsilon, delta) under REPLACE_ONE, for any sample; n is public, and so may T be. If one example is replaced, m_j and L(j)
change by at most 1, and so does u. Thresholds come into view or leave it from and to u = 0: at most k = 2 (T + 1) (d + 1) of them, as d + 1
keys of thresholds are on the search path of a point. Those on the paths of the old and the new example are 2 (d + 1). All others have an
example below them that both samples share, or an extra point, and are in view of one sample alone because of their errors, T in one and
T - 1 in the other: they err on the example replaced in one sample, but not in the other, and on T - 1 of the n - 1 shared examples. Shared
examples and extra points cut the keys into gaps, in each of which shared errors are constant. At most T gaps have T - 1 of them: between
two of these there are as many shared ones as zeros, so at least one zero, and thresholds in the last such gap err on all zeros before it.
A key with points below it has one of the two ends of its gap below it: 2 (d + 1) keys at most in each gap.

**Useful.** Let the sample be realizable. Then there is a threshold with u = T, or there are three with

    u = T - l,    u = T - r,    u = l + r,    hence    ln Z >= min( epsilon T/2, (epsilon/2) (2T/3) + ln 3 )

for the sum Z of all weights, up to rounding (`log_least_weight`). Cut points off from both ends, keeping l points labelled 1 nearest to
the boundary, and r labelled 0. Of the keys between the least and the greatest that are left, the shallowest one, y, is a threshold's (keys
of points are leaves), and has all of them below it: m_y >= l + r. It errs on the e points between it and the boundary; cut off what is
behind it, so that l or r becomes e. (If all that are left are at one x, take the key beside it on the boundary's side, of no errors.) Go
on up to the first y with l + r <= T - e: it has u >= l + r, and the last cuts on both sides have u = T - l and T - r, as m is larger.
Without a cut on one side, l or r is at least T, so that e = 0 there and u = T. For a given sum of the exponents three powers are least
where these are equal.

So T = (3/epsilon) (ln Z - ln 3), with the ln Z of `bounds.supported_weight`, about ln(T d/delta): at epsilon = 1, delta = 1e-6 and
beta = 0.05, T is 69 at d = 64 and 78 at d = 1024, whatever n is.

**A window.** u stays the same if only examples between the first and the last place with L <= T are kept, of which there are 2 T at most,
since of any two places each example between them is misjudged at one. From one example to the next L changes by 1. So on either side of a
key in view there are T - L examples before L exceeds T, or the side ends: further ones would not change min(m_j, T - L). And where
examples are left out, L >= T at the end of the window, so that no key there is in view.

Its plain twin is `dpjax.verify.plain.supported.supported_thresholds_law`.
"""

import math
from typing import Any, ClassVar

import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Bool, Float, Int, UInt32

from dpjax import bounds
from dpjax.accounting import REPLACE_ONE, Guarantee
from dpjax.core import arguments, bisection, sums
from dpjax.core.pytree import frozen, static
from dpjax.core.staging import once
from dpjax.data.algorithm import whole
from dpjax.data.points import Points
from dpjax.data.sample import Sample
from dpjax.domains import wide
from dpjax.domains.events import Accurate, Interval
from dpjax.domains.scaled import Scaled
from dpjax.learners.thresholds.base import ThresholdLearner, domain
from dpjax.optimizers.interior_point.supported_tree import SupportedTree, judged, log_three_powers
from dpjax.optimizers.interior_point.tree_keys import Group
from dpjax.optimizers.interior_point.tree_score import Items


@frozen
class _Thresholds(SupportedTree):
    """The tree with thresholds as its keys, for one sample.

    Attributes:
      errors: L of a key that has so many points before it.
      points_before: how many points the first items stand for.
      room: T.
      examples: n.
    """

    monotone: ClassVar[bool] = False

    errors: Int[Array, "more"]
    points_before: Int[Array, "more"]
    room: Int[Array, ""]
    examples: Int[Array, ""]

    def _missed(self, items: Items, group: Group) -> Int[Array, "rows"]:
        """L of the keys."""
        return self.errors[items.counted(group.under)]

    def _score(self, items: Items, group: Group) -> tuple[Int[Array, "rows"], Float[Array, "rows"]]:
        under, up_to = items.counted(group.under), items.counted(group.up_to)
        before, stop = (self.points_before[items.counted(x)] for x in (group.before, group.stop))
        score = jnp.minimum(stop - before, self.room - self._missed(items, group))
        # Keys of points are none of thresholds, nor are those behind the last extra point.
        seen = (under == up_to) & (under < items.points)
        return jnp.where(seen, score, 0), jnp.zeros_like(score, float)

    def _growth(self) -> Float[Array, ""]:
        return 2.0 * (self.room + 1).astype(float) * (jnp.asarray(self.bits, float) - 1)

    def log_law_of_errors(self, points: Points, allowed: Accurate) -> tuple[Float[Array, "2"], Float[Array, ""]]:
        """ln of the probabilities of thresholds that err no more than is allowed and of all others, and that of bottom."""
        weights = self._weights(points)
        missed = [self._missed(weights.items, group) for group in weights.keys.groups]
        return self._released(weights, [allowed.allows(errors, self.examples) for errors in missed])


@frozen
class View:
    """A sample as a run and a law use it: the points of the tree in order, and the tree."""

    points: Points
    tree: _Thresholds


@frozen
class ThresholdSupported(ThresholdLearner):
    """The exponential mechanism over the thresholds that the sample supports; build it by `supported`.

    Attributes:
      alpha: approximation parameter; an answer errs on fewer than T = floor(alpha n/2) examples.
      wider: limbs of a point of the tree (static).
      window: at least alpha, a power of two: the share of the rows that is kept, see the module (static).
    """

    takes_scaled: ClassVar[bool] = True

    bits: Any
    epsilon: Any
    delta: Any
    alpha: Float[Array, ""]
    limbs: int = static()
    wider: int = static()
    window: float = static()

    def sound(self) -> Bool[Array, ""]:
        room = (jnp.asarray(self.bits) + 2 <= 32 * self.wider) & (jnp.asarray(self.alpha, float) <= self.window)
        return super().sound() & (jnp.asarray(self.delta, float) > 0) & room

    def prepare(self, sample: Sample) -> View:  # type: ignore[override]
        bits, limbs, room = jnp.asarray(self.bits, jnp.int32) + 2, self.wider, self.room(sample.n_valid)
        x, kept, errors = self._kept(sample, room)
        first, none = wide.one(limbs)[None], ~jnp.zeros((1, limbs), jnp.uint32)
        last = wide.add(wide.power_of_two(bits - 1, limbs), wide.from_uint32(jnp.uint32(3), limbs))
        x = wide.concatenate(first, x, none)
        # The first item stands for T points, and so does the one behind all examples. Of the first `items` items so many are examples.
        items = jnp.arange(x.shape[0] + 1, dtype=jnp.int32)
        x = wide.select(items[:-1] <= kept, x, wide.select(items[:-1] == kept + 1, last[None], none))
        examples = jnp.clip(items - 1, 0, kept)
        tree = _Thresholds(
            bits=bits,
            limbs=limbs,
            epsilon=self.epsilon,
            delta=self.delta,
            errors=errors[examples],
            points_before=examples + jnp.where(items >= kept + 2, 2 * room, jnp.where(items >= 1, room, 0)),
            room=room,
            examples=sample.n_valid,
        )
        x = once(lambda x: x, x)  # else the doubling would be done again for each use of a point
        return View(points=Points(x=x, n_valid=kept + 2, ordered=True), tree=tree)

    def _kept(
        self, sample: Sample, room: Int[Array, ""]
    ) -> tuple[UInt32[Array, "kept limbs"], Int[Array, ""], Int[Array, "more"]]:
        """(The points of examples that are kept, in order; how many; L behind so many of them)."""
        x, y, n, rows = sample.x, jnp.where(sample.valid, sample.y, 0), sample.n_valid, sample.rows
        if not sample.ordered:
            x, y = wide.sort(wide.select(sample.valid, x, ~jnp.zeros_like(x)), y)
        place, ones = jnp.arange(rows + 1, dtype=jnp.int32), sums.running(jnp.pad(y, (1, 0)))
        errors = jnp.minimum(place, n) - ones + ones[-1] - ones
        # T may be rounded up where n is no float32.
        kept = min(rows, math.ceil(self.window * rows * (1 + 2.0**-22)))
        start = jnp.minimum(jnp.min(jnp.where(errors <= room, place, rows)), rows - kept)
        errors = lax.dynamic_slice_in_dim(errors, start, kept + 1)
        return _points(x, start, kept, self.wider), jnp.clip(n - start, 0, kept), errors

    def room(self, n: Any, xp: Any = jnp) -> Any:
        """T for n examples; on the host a hair less, as programs round alpha."""
        share = xp.asarray(self.alpha, float) / 2 * (n.astype(float) if xp is jnp else n * (1 - 1e-6))
        return xp.floor(share).astype(xp.int32)

    def draw(self, key: Array, view: View) -> Any:
        y, ok, info = view.tree.draw(key, view.points)
        j = wide.subtract(wide.shift_right(y, jnp.int32(1)), wide.one(view.tree.limbs))
        return wide.resize(j, self.limbs), ok, info

    def event(self, view: View, event: Interval | Accurate) -> Interval | Accurate:  # type: ignore[override]
        return event

    def law(self, view: View, event: Interval | Accurate) -> Float[Array, "2"]:
        return judged(*self._log_law(view, event))

    def log_mass(self, view: View, event: Interval | Accurate) -> Float[Array, ""]:
        return self._log_law(view, event)[0][0]

    def _log_law(self, view: View, event: Interval | Accurate) -> tuple[Float[Array, "2"], Float[Array, ""]]:
        tree = view.tree
        if isinstance(event, Accurate):
            return tree.log_law_of_errors(view.points, event)
        # The keys from low on are behind the point in front of low's key.
        beyond = wide.add(wide.power_of_two(tree.bits - 2, tree.limbs), wide.one(tree.limbs))
        ends = [wide.minimum(wide.resize(end, tree.limbs), beyond) for end in (event.low, event.high)]
        low, high = (wide.resize(_odd(end, 0), tree.limbs + 1) for end in ends)
        return tree._log_law(view.points, Interval(low=low, high=wide.maximum(low, high)))

    def guarantee(self) -> Guarantee:
        """(epsilon, delta) under REPLACE_ONE, for any labels."""
        epsilon, delta = (arguments.known(name, getattr(self, name)) for name in ("epsilon", "delta"))
        return Guarantee(epsilon, delta, REPLACE_ONE)

    def sample_size(self, *, alpha: float, beta: float) -> int:
        """The greater of what bottom and Theorem 2.14 need, each at alpha/2 and beta/2, for realizable examples.

        Raises:
          TypeError, ValueError: alpha or beta outside (0, 1), or an alpha below the learner's own.
        """
        own, beta = self.own_alpha(alpha), arguments.known_fraction("beta", beta)
        bits, epsilon, delta = (arguments.known(name, getattr(self, name)) for name in ("bits", "epsilon", "delta"))
        general, needed = bounds.agnostic(1, own / 2, beta / 2), errors(int(bits), epsilon, delta, beta / 2)
        return whole(max(general, bisection.least_int(lambda n: float(self.room(np.int64(n), np)) >= needed, 1)))


def _points(x: Any, start: Int[Array, ""], kept: int, limbs: int) -> UInt32[Array, "kept limbs"]:
    """The points 2x + 3 of so many examples from one on, at x, whole rows or `Scaled`."""
    if not isinstance(x, Scaled):
        return _odd(wide.resize(lax.dynamic_slice_in_dim(x, start, kept), limbs), 1)
    centre = _odd(wide.resize(x.centre, limbs), 1)
    doubled = Scaled(centre=centre, digits=x.digits, exponent=x.exponent + 1, below=x.below)
    return doubled.at(start + jnp.arange(kept, dtype=jnp.int32))


def _odd(x: UInt32[Array, "*n limbs"], more: int) -> UInt32[Array, "*n limbs"]:
    """2 (x + more) + 1."""
    number = wide.add(x, jnp.broadcast_to(wide.from_uint32(jnp.uint32(more), x.shape[-1]), x.shape))
    return wide.shift_left(number, jnp.ones(x.shape[:-1], jnp.int32)) | wide.one_like(x)


def log_least_weight(room: int, epsilon: float) -> float:
    """ln of what all thresholds in view weigh together at least, on realizable examples, for T >= 1; see the module."""
    return min(epsilon / 2 * room, log_three_powers(2 * room, epsilon / 2))


def errors(bits: int, epsilon: float, delta: float, beta: float) -> int:
    """The T from which on realizable examples, however many, give bottom with probability at most beta, whatever they are.

    >>> [errors(bits, 1.0, 1e-6, 0.05) for bits in (64, 1024)]
    [69, 78]
    """
    first = bounds.supported_weight(2 * (bits + 1), beta, epsilon, delta, monotone=False)

    def enough(room: int) -> bool:
        # ln Z grows with ln(T + 1), which a weight of that size outgrows.
        return log_least_weight(room, epsilon) >= (first + math.log(room + 1)) * (1 + 1e-12)

    return bisection.least_int(enough, 1)


def supported(*, bits: int, epsilon: Any, delta: Any, alpha: Any) -> ThresholdSupported:
    """The exponential mechanism over the thresholds that the sample supports; see the module.

    Formal guarantees: (epsilon, delta) under REPLACE_ONE, for any labels; an answer errs on fewer than alpha n/2 examples of the sample.
    Not promised: protection from floating-point side channels; a cryptographic generator.

    Args:
      bits: d, 1 to 4094.
      epsilon: > 0, finite.
      delta: in (0, 1).
      alpha: approximation parameter, in (0, 1).

    Raises:
      TypeError, ValueError: an argument out of range.

    >>> supported(bits=1024, epsilon=1.0, delta=1e-6, alpha=0.2).guarantee()
    Guarantee(epsilon=1.0, delta=1e-06, relation='REPLACE_ONE')
    """
    bits = arguments.integer("bits", bits, at_least=1, at_most=wide.MAX_BITS - 2)
    alpha = arguments.fraction("alpha", alpha)
    return ThresholdSupported(
        **domain(bits),
        wider=wide.limbs_for(bits + 2),
        epsilon=arguments.epsilon(epsilon),
        delta=arguments.delta(delta),
        alpha=alpha,
        window=1.0 if arguments.is_traced(alpha) else 2.0 ** math.ceil(math.log2(alpha)),
    )
