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
from dpjax.accounting import REPLACE_LABEL, Guarantee
from dpjax.concepts.dichotomies import PointClass, ThresholdClass, points, thresholds
from dpjax.core import arguments, logspace
from dpjax.core.pytree import frozen, static
from dpjax.data.algorithm import Algorithm, whole
from dpjax.data.sample import Sample
from dpjax.domains import groups, wide
from dpjax.domains.events import Accurate, Interval
from dpjax.learners.points.base import OnePointLearner
from dpjax.learners.thresholds.base import ThresholdLearner
from dpjax.mechanisms import exponential

__all__ = ["LabelPrivate", "LabelPrivatePoints", "LabelPrivateThresholds", "label_private", "points", "thresholds"]


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
    """

    concepts: Any
    epsilon: Any
    unlabelled: Any

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
        found = groups.group(sample.x, sample.valid)
        ones = found.sums(sample.y)
        wrong = sample.n_valid - self.concepts.right(ones, found.counts - ones)
        public, counted = found.valid, sample.valid
        if self.unlabelled is not None:
            first = jnp.arange(sample.rows, dtype=jnp.int32) < self.unlabelled
            public = found.sums((sample.valid & first).astype(jnp.int32)) > 0
            counted = sample.valid & ~first
        ones = found.sums(jnp.where(counted, sample.y, 0))
        zeros = found.sums(jnp.where(counted, 1 - sample.y, 0))
        return Choices(
            concepts=self.concepts.each(found.rows),
            where=jnp.concatenate([jnp.ones(1, bool), public]),
            right=self.concepts.right(ones, zeros),
            wrong=wrong.astype(float) / sample.n_valid.astype(float),
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
        """(epsilon, 0) under REPLACE_LABEL: BNS Proposition 2.26 (i), H being public."""
        return Guarantee(float(self.epsilon), 0.0, REPLACE_LABEL)

    def sample_size(self, *, alpha: float, beta: float) -> int:
        """All examples, those without labels among them, for labels of the class; see the module.

        Raises:
          ValueError: alpha or beta outside (0, 1), or an `unlabelled` that is too small for them.
        """
        epsilon, vc = float(self.epsilon), self.concepts.vc
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
    unlabelled: Any
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
    unlabelled: Any
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


def label_private(*, concepts: ThresholdClass | PointClass, epsilon: Any, unlabelled: int | None = None) -> Any:
    """The label-private learner of BNS §6.1; see the module.

    Formal guarantees: (epsilon, 0) under REPLACE_LABEL, for arbitrary labels; points, their order and their number are public. Not
    promised: anything under REPLACE_ONE; floating-point side channels; a cryptographic generator.

    Args:
      concepts: `thresholds(bits=...)` or `points(bits=...)` of this module.
      epsilon: > 0, finite.
      unlabelled: n, >= 1: the first n examples give points only, the others labels only, as BNS do; `bounds.label_private_unlabelled`
        says how many. By default all examples give both.

    Raises:
      TypeError, ValueError: an argument out of range.
    """
    if not isinstance(concepts, ThresholdClass | PointClass):
        raise TypeError(f"concepts must be a class, as label_private.thresholds(bits=...) makes it, got {concepts!r}")
    n = None if unlabelled is None else np.int32(arguments.integer("unlabelled", unlabelled, at_least=1))
    given = {"epsilon": arguments.epsilon(epsilon), "unlabelled": n}
    if isinstance(concepts, ThresholdClass):
        return LabelPrivateThresholds(concepts=concepts, limbs=concepts.limbs, **given)
    return LabelPrivatePoints(concepts=concepts, limbs=wide.limbs_for(int(concepts.bits)), **given)
