"""The label-private learner (BNS Theorem 6.2; Figure 13 is missing from the text): points are public, labels are not.

1. B = the points of some examples. H = one concept for every way in which the class labels B: the dichotomies of B.
2. The exponential mechanism over H with score "labelled examples that h labels right", sensitivity 1, and epsilon.

H is read off the points alone, so only step 2 sees labels: (epsilon, 0) under REPLACE_LABEL (BNS Definition 6.1), and nothing under
REPLACE_ONE, for the output betrays points. As |H| depends on the number of points and the VC dimension, so does the number of
examples: there is no price for the size of the domain, which every pure learner that protects examples pays in full.

Which examples give B, and which labels count:

* `unlabelled=n`, as BNS: the labels of the first n examples are ignored and B are their points; the labels of the other r = m - n count.
  n = (64/a) (VC ln(128/a) + ln(8/b)), where 32 and 64 are printed: the proof wants an error of a/8 but for b/4, which is Theorem 2.13
  at (a/8, b/4), (8/(a/8)) (VC ln(16/(a/8)) + ln(2/(b/4))); what is printed is that theorem at a/4. The rest is
  r = max{(24/a) ln(4/b), (8/a) ln(4|H|/b), (8/(a eps)) ln(4|H|/b)}: the second and third count r examples, not m as printed, and |H| is
  at most sum_(i <= VC) C(n, i) by Sauer's lemma, where 2^n is printed. At a = b = 0.1, eps = 1, VC = 1: 8,392 examples for 1,169,321.
  The first n must be a random part, so data that promise to be sorted are refused.
* default: B are the points of all examples and all labels count. Nothing is set aside, as points are public: 2,031 examples there.

`semi_private` (BNS §6.2) takes B from public points and all labels from the sample, whose examples then count only in step 2:
(epsilon, 0) under REPLACE_ONE, with r examples beside n public points.

Both sizes are derived in `dpjax.bounds.labels`. They need labels of the class; privacy holds for any.

    >>> import jax
    >>> from dpjax.concepts import thresholds
    >>> from dpjax.learners import label_private
    >>> learner = label_private.label_private(concepts=label_private.thresholds(bits=1024), epsilon=1.0)
    >>> law = thresholds.log_uniform(bits=1024)
    >>> sample = law.sample(jax.random.key(0), 255, 250)
    >>> outcome = learner(jax.random.key(1), sample)
    >>> bool(law.error(outcome.hypothesis) < 0.1), float(learner.probability(sample, law.within(0.1))[1]) < 1e-3
    (True, True)
    >>> print(learner.guarantee())
    (1.0, 0.0)-private under REPLACE_LABEL
"""

from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from dpjax import bounds
from dpjax.accounting import REPLACE_LABEL, REPLACE_ONE, Guarantee
from dpjax.concepts.dichotomies import PointClass, ThresholdClass, points, thresholds
from dpjax.core import arguments, logspace
from dpjax.core.pytree import frozen, static
from dpjax.data.algorithm import Algorithm, whole
from dpjax.data.fitting import fitted
from dpjax.data.points import Points
from dpjax.data.sample import Sample
from dpjax.domains import groups, wide
from dpjax.domains.events import Accurate, Interval
from dpjax.learners.points.base import OnePointLearner
from dpjax.learners.thresholds.base import ThresholdLearner
from dpjax.mechanisms import exponential

__all__ = [
    "LabelPrivate",
    "LabelPrivatePoints",
    "LabelPrivateThresholds",
    "label_private",
    "points",
    "semi_private",
    "thresholds",
]


class Choices(NamedTuple):
    """What the exponential mechanism chooses among.

    Attributes:
      concepts: for every distinct point the concept that ends there, after the one that labels nothing 1.
      where: which of them are in H.
      right: how many of the labelled examples each labels right.
      wrong: how large a part of all examples each labels wrong.
    """

    concepts: Any
    where: Bool[Array, "h"]
    right: Int[Array, "h"]
    wrong: Float[Array, "h"]


class LabelPrivate(Algorithm):
    """See the module; build it by `label_private`.

    Attributes:
      concepts: the class: `each(points)`, one concept for every dichotomy of distinct increasing points; `right(ones, zeros)`, the
        examples that they label right; `vc`, its VC dimension.
      epsilon: privacy parameter.
      unlabelled: n, how many examples give points only; None: all give both.
      public: the points B of a semi-private learner, to which no example of the sample is added; None: label privacy.
    """

    concepts: Any
    epsilon: Any
    unlabelled: Any
    public: Any
    limbs: int

    @property
    def bits(self) -> Any:
        """Of the domain."""
        return self.concepts.bits

    def fit(self, data: Any) -> Any:
        if self.unlabelled is not None and isinstance(data, Sample) and data.ordered:
            raise ValueError(
                "sample must come in the order in which it was drawn: the first `unlabelled` examples of a sorted one (ordered=True) "
                "are no random part of it"
            )
        return super().fit(data)

    def prepare(self, sample: Any) -> Any:
        valid, x = sample.valid, wide.resize(sample.x, self.limbs)
        if self.public is not None:
            none = jnp.zeros(self.public.rows, bool)
            mine = jnp.concatenate([none, valid])
            both = jnp.concatenate([wide.resize(self.public.x, self.limbs), x])
            gives = jnp.concatenate([self.public.valid, jnp.zeros_like(valid)])
            return self._choices(both, jnp.concatenate([none.astype(jnp.int32), sample.y]), gives, mine, mine)
        if self.unlabelled is None:
            return self._choices(x, sample.y, valid, valid, valid)
        first = jnp.arange(sample.rows, dtype=jnp.int32) < self.unlabelled
        return self._choices(x, sample.y, valid & first, valid & ~first, valid)

    def _choices(self, x: Array, y: Array, gives: Array, counted: Array, mine: Array) -> Choices:
        """From all rows: which of them give B, which have a label that counts, which are examples of the sample."""
        found = groups.group(x, gives | mine)

        def right(rows: Array) -> Array:
            ones, zeros = (found.sums(jnp.where(rows, label, 0)) for label in (y, 1 - y))
            return self.concepts.right(ones, zeros)

        n = jnp.sum(mine, dtype=jnp.int32)
        return Choices(
            concepts=self.concepts.each(found.rows),
            where=jnp.concatenate([jnp.ones(1, bool), found.sums(gives.astype(jnp.int32)) > 0]),
            right=right(counted),
            wrong=(n - right(mine)).astype(float) / n.astype(float),
        )

    def run(self, key: Array, data: Any) -> Any:
        """No base's fast way: groups of all points are wanted."""
        return self.draw(key, self.prepare(data))

    def draw(self, key: Array, choices: Any) -> Any:
        index = exponential.draw(key, self._log_weights(choices)).index
        return self._concept(choices.concepts, index), jnp.bool_(True), {"choices": jnp.sum(choices.where)}

    def law(self, choices: Any, good: Any) -> Float[Array, "2"]:
        return jnp.exp(jnp.stack([self.log_mass(choices, good), self.log_mass(choices, ~good)]))

    def log_mass(self, choices: Any, good: Any) -> Float[Array, ""]:
        log_pmf = exponential.normalised(self._log_weights(choices))
        return logspace.logsumexp(jnp.where(good, log_pmf, -jnp.inf))

    def event(self, choices: Any, event: Any) -> Any:
        """Which of the concepts are in the event."""
        if isinstance(event, Accurate):
            return choices.wrong <= event.error
        return self._inside(choices.concepts, event)

    def guarantee(self) -> Guarantee:
        """(epsilon, 0): BNS Proposition 2.26 (i), H being public. Under REPLACE_LABEL, or REPLACE_ONE where H comes from other points."""
        return Guarantee(float(self.epsilon), 0.0, REPLACE_LABEL if self.public is None else REPLACE_ONE)

    def sample_size(self, *, alpha: float, beta: float) -> int:
        """Examples of the sample, for labels of the class; see the module.

        Raises:
          ValueError: alpha or beta outside (0, 1), or too few points for them, `unlabelled` or public.
        """
        epsilon, vc = float(self.epsilon), self.concepts.vc
        if self.public is not None:
            n = int(self.public.n_valid)
            return whole(bounds.label_private(vc, alpha, beta, epsilon, unlabelled=n) - n)
        if self.unlabelled is None:
            return whole(bounds.label_private_whole(vc, alpha, beta, epsilon))
        return whole(bounds.label_private(vc, alpha, beta, epsilon, unlabelled=int(self.unlabelled)))

    def _log_weights(self, choices: Choices) -> Float[Array, "h"]:
        return exponential.log_weights(choices.right, epsilon=self.epsilon, where=choices.where)

    def _concept(self, concepts: Any, index: Int[Array, ""]) -> Any:
        """One of the concepts."""
        raise NotImplementedError

    def _inside(self, concepts: Any, event: Any) -> Bool[Array, "h"]:
        """Which of the concepts are in an event that is not about errors."""
        raise NotImplementedError


@frozen
class LabelPrivateThresholds(LabelPrivate, ThresholdLearner):
    """The label-private learner of thresholds: each dichotomy is represented by 0, or by the threshold right after a point."""

    concepts: ThresholdClass
    epsilon: Float[Array, ""]
    unlabelled: Any = None
    public: Points | None = None
    limbs: int = static()

    def _concept(self, concepts: Any, index: Int[Array, ""]) -> Any:
        return concepts[index]

    def _inside(self, concepts: Any, event: Interval) -> Bool[Array, "h"]:
        return wide.less_equal(event.low[None], concepts) & wide.less(concepts, event.high[None])


@frozen
class LabelPrivatePoints(LabelPrivate, OnePointLearner):
    """The label-private learner of points: each dichotomy is represented by all-zero (BNS Remark 3.3), or by a point."""

    concepts: PointClass
    epsilon: Float[Array, ""]
    unlabelled: Any = None
    public: Points | None = None
    limbs: int = static()

    def _concept(self, concepts: Any, index: Int[Array, ""]) -> Any:
        return type(concepts)(position=concepts.position[index], zero=concepts.zero[index])

    def _inside(self, concepts: Any, event: Any) -> Bool[Array, "h"]:
        if isinstance(event, Interval):
            position = wide.resize(concepts.position, event.low.shape[-1])
            inside = wide.less_equal(event.low[None], position) & wide.less(position, event.high[None])
            return inside & ~concepts.zero
        limbs = max(concepts.position.shape[-1], event.points.shape[-1])
        position, names = wide.resize(concepts.position, limbs), wide.resize(event.points, limbs)
        same = wide.equal(position[:, None], names[None]) & event.where[None]
        named = jnp.any(same & event.good[None], axis=1)
        return jnp.where(concepts.zero, event.zero, jnp.where(jnp.any(same, axis=1), named, event.others))


Learner = LabelPrivateThresholds | LabelPrivatePoints


def label_private(*, concepts: ThresholdClass | PointClass, epsilon: Any, unlabelled: int | None = None) -> Learner:
    """The label-private learner of BNS §6.1; see the module.

    Formal guarantees: (epsilon, 0) under REPLACE_LABEL, for arbitrary labels; points, their order and their number are public. Not
    promised: anything under REPLACE_ONE; floating-point side channels; a cryptographic generator.

    Args:
      concepts: `thresholds(bits=...)` or `points(bits=...)` of this module (whose `most` plays no part here).
      epsilon: > 0, finite.
      unlabelled: n, >= 1: the first n examples give points only, the others labels only, as BNS do; `bounds.label_private_unlabelled`
        says how many. By default all examples give both.

    Raises:
      TypeError, ValueError: an argument out of range.
    """
    n = None if unlabelled is None else np.int32(arguments.integer("unlabelled", unlabelled, at_least=1))
    return _learner(concepts, epsilon=arguments.epsilon(epsilon), unlabelled=n)


def semi_private(*, concepts: ThresholdClass | PointClass, public: Points, epsilon: Any) -> Learner:
    """The semi-private learner of BNS §6.2: B are public points of the same distribution, and examples are protected whole.

    Formal guarantees: (epsilon, 0) under REPLACE_ONE, for arbitrary points and labels of the sample; the public points are fixed. Not
    promised: anything for the public points; floating-point side channels; a cryptographic generator.

    Args:
      concepts: as for `label_private`.
      public: points without labels, drawn independently of the sample; `bounds.label_private_unlabelled` says how many.
      epsilon: > 0, finite.

    Raises:
      TypeError, ValueError: an argument out of range, or public points outside the domain.

    >>> from dpjax import Points
    >>> learner = semi_private(concepts=thresholds(bits=8), public=Points.create(wide.from_ints([3, 70, 200], 8), 3), epsilon=1.0)
    >>> print(learner.guarantee())
    (1.0, 0.0)-private under REPLACE_ONE
    """
    _check_class(concepts)
    fit = fitted(public, Points, bits=concepts.bits, limbs=(wide.limbs_for(int(concepts.bits)),), name="public")
    return _learner(concepts, epsilon=arguments.epsilon(epsilon), public=fit)


def _learner(concepts: Any, **given: Any) -> Learner:
    _check_class(concepts)
    if isinstance(concepts, ThresholdClass):
        return LabelPrivateThresholds(concepts=concepts, limbs=concepts.limbs, **given)
    return LabelPrivatePoints(concepts=concepts, limbs=wide.limbs_for(int(concepts.bits)), **given)


def _check_class(concepts: Any) -> None:
    if not isinstance(concepts, ThresholdClass | PointClass):
        raise TypeError(f"concepts must be a class, as label_private.thresholds(bits=...) makes it, got {concepts!r}")
