"""Learn (BNS Lemma 5.3): from a sanitizer for C^label to a proper private learner of C.

1. S^ = a sanitization of the sample for C^label = {c^label : c in C}, c^label(x o y) = 1 iff c(x) != y.
2. Release a concept of C with the least error on S^: the first such among one concept for every way in which C labels the points of S^.

**Privacy.** Step 2 is post-processing of S^: the learner promises what the sanitizer does.

**Accuracy.** Q_(c^label) is the error of c. If S^ is within a of the sample, the target errs on at most a of S^, so the released concept
does, too, and it errs on at most 2 a of the sample. With `bounds.agnostic(VC, g, b)` examples (Theorem 2.14), all empirical errors are
within g of those on the distribution, except with probability b. That is 2 a + g in all. For labels outside the class, it is 2 a + 2 g
above the best concept.

With `label_class` this is Theorem 5.5: a sanitizer of points becomes a learner.

    >>> import jax
    >>> from dpjax.concepts import dichotomies
    >>> from dpjax.concepts import points as concept
    >>> from dpjax.multi import reductions
    >>> from dpjax.sanitizers import dense
    >>> points = dense.blr(queries=dense.points(bits=2), rows=12, epsilon=0.5)
    >>> learner = reductions.learn_by_sanitizing(
    ...     reductions.label_class(points, block=200, epsilon=0.5), dichotomies.points(bits=2))
    >>> law = concept.uniform(bits=2, target=3)
    >>> outcome = learner(jax.random.key(0), law.sample(jax.random.key(1), 4095, 4000))
    >>> float(law.error(outcome.hypothesis)), learner.guarantee().epsilon
    (0.0, 2.0)
"""

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from dpjax import bounds
from dpjax.accounting import REPLACE_ONE, Guarantee
from dpjax.accounting.guarantee import promised
from dpjax.concepts.dichotomies import PointClass, ThresholdClass
from dpjax.core import arguments
from dpjax.core.pytree import frozen, static
from dpjax.data.algorithm import Algorithm, if_good, sanitizer_size, whole
from dpjax.data.outcome import Status
from dpjax.data.sample import Sample
from dpjax.data.weighted import Weighted
from dpjax.domains import wide
from dpjax.learners.points.base import OnePointLearner
from dpjax.learners.thresholds.base import ThresholdLearner
from dpjax.multi.base import OF_POINTS, promise_of, refuse_points
from dpjax.multi.reductions.databases import ByPoint, check_sanitizer, database_of
from dpjax.sanitizers.dense import queries


class LearnBySanitizing(Algorithm):
    """The learner of the module; build it by `learn_by_sanitizing`.

    Attributes:
      sanitizer: one of labelled points: `sanitizer(key, Sample) -> Outcome` with a `Weighted` database over X_(bits + 1), x o y = 2 x + y.
      concepts: the class.
    """

    sanitizer: Any
    concepts: Any
    limbs: int

    @property
    def bits(self) -> Any:
        """d, the bits of a point of the domain."""
        return self.concepts.bits

    def fit(self, sample: Any) -> Sample:
        return self.sanitizer.fit(sample)

    def fits(self, sample: Sample) -> Bool[Array, ""]:
        return super().fits(sample) & self.sanitizer.fits(sample)

    def prepare(self, sample: Any) -> Any:
        return sample

    def run(self, key: Array, sample: Any) -> Any:
        """The plain way, in place of any fast way of a base class: the sanitizer takes the sample itself."""
        return self.draw(key, sample)

    def draw(self, key: Array, sample: Any) -> Any:
        sanitized = self.sanitizer(key, sample)
        return self.learn(database_of(sanitized)), sanitized.status == Status.OK, sanitized.info

    def learn(self, database: Weighted) -> Any:
        """Step 2: the first concept with the least error on a labelled database."""
        x = ByPoint.of(database.x, database.weights.astype(float))
        concepts, where, right = x.choices(self.concepts)
        return self._concept(concepts, jnp.argmax(jnp.where(where, right, -jnp.inf)))

    def event(self, view: Any, event: Any) -> Any:
        raise NotImplementedError(f"{type(self).__name__} has no law of events; `pmf` lists the law on tiny samples")

    def pmf(self, sample: Sample) -> Float[Array, "outcomes"]:
        """The law, from that of the sanitizer's transcripts: for the exact verifier on tiny cases."""
        fit = self.fit(sample)
        return if_good(self, fit, _pmf(self, sample, self.listed()))

    def guarantee(self) -> Guarantee:
        """The sanitizer's own, under REPLACE_ONE."""
        return promised(self.sanitizer, REPLACE_ONE)

    def sample_size(self, *, alpha: float, beta: float) -> int:
        """Lemma 5.3 for labels of the class, with g = alpha/2, the sanitizer being within alpha/4 except with probability beta/2.

        A sanitizer of thresholds from which points are learned must be within alpha/8.

        Raises:
          ValueError: alpha or beta outside (0, 1), or an accuracy beyond what the sanitizer can promise.
        """
        alpha, beta = arguments.known_fraction("alpha", alpha), arguments.known_fraction("beta", beta)
        within = self._within(alpha / 4)
        sanitized = sanitizer_size(self.sanitizer, alpha=within, beta=beta / 2, asked=(alpha, beta))
        return max(sanitized, whole(bounds.agnostic(self.concepts.vc, alpha / 2, beta / 2)))

    def _within(self, error: float) -> float:
        """The error of the sanitizer's own queries with which errors of the class are within this."""
        return error

    def _concept(self, concepts: Any, index: Int[Array, ""]) -> Any:
        """The concept at this index."""
        raise NotImplementedError

    def _place(self, hypothesis: Any, outputs: int) -> Int[Array, ""]:
        """The place of the hypothesis among all outputs, in the order of the family."""
        raise NotImplementedError


@frozen
class LearnThresholdsBySanitizing(LearnBySanitizing, ThresholdLearner):
    """The learner of thresholds."""

    sanitizer: Any
    concepts: ThresholdClass
    limbs: int = static()

    def _concept(self, concepts: Any, index: Int[Array, ""]) -> Any:
        return concepts[index]

    def _place(self, hypothesis: Any, outputs: int) -> Int[Array, ""]:
        return hypothesis[-1].astype(jnp.int32)


@frozen
class LearnPointsBySanitizing(LearnBySanitizing, OnePointLearner):
    """The learner of points; all-zero stands for a point that is not in the sanitized database (BNS Remark 3.3)."""

    sanitizer: Any
    concepts: PointClass
    limbs: int = static()

    def _within(self, error: float) -> float:
        """The error of the point x is that of the threshold x less that of x + 1, plus a constant: two points compare by four of them."""
        return error if isinstance(promise_of(self.sanitizer), OF_POINTS | queries.Intervals) else error / 2

    def _concept(self, concepts: Any, index: Int[Array, ""]) -> Any:
        position = wide.resize(concepts.position[index], self.limbs)
        return type(concepts).shown(position, concepts.zero[index])

    def _place(self, hypothesis: Any, outputs: int) -> Int[Array, ""]:
        return jnp.where(hypothesis.zero, outputs - 1, hypothesis.position[-1].astype(jnp.int32))


@jax.jit(static_argnums=2)
def _pmf(learner: LearnBySanitizing, sample: Sample, outputs: int) -> Float[Array, "outcomes"]:
    p, databases = learner.sanitizer.pmf(sample), learner.sanitizer.databases(sample)
    places = jax.vmap(lambda database: learner._place(learner.learn(database), outputs))(databases)
    return jnp.zeros(outputs + 1, p.dtype).at[places].add(p)


Learner = LearnThresholdsBySanitizing | LearnPointsBySanitizing


def learn_by_sanitizing(sanitizer: Any, concepts: ThresholdClass | PointClass) -> Learner:
    """The learner of Lemma 5.3; see the module.

    Formal guarantees: those of the sanitizer under REPLACE_ONE, labels arbitrary.

    Args:
      sanitizer: a sanitizer of labelled points, as `label_class` makes it.
      concepts: `thresholds(bits=...)` or `points(bits=...)` of `dpjax.concepts.dichotomies`, over the sanitizer's domain.

    Raises:
      TypeError: not a sanitizer of labelled points, or not such a class. ValueError: another domain, or a sanitizer of points where
        thresholds are to be learned.
    """
    check_sanitizer(sanitizer)
    if getattr(sanitizer, "kind", Sample) is not Sample:
        raise TypeError(f"sanitizer must take labelled points, as label_class(...) does, got {sanitizer!r}")
    if not isinstance(concepts, ThresholdClass | PointClass):
        raise TypeError(f"concepts must be a class, as dichotomies.thresholds(bits=...) makes it, got {concepts!r}")
    if int(concepts.bits) != int(sanitizer.bits):
        raise ValueError(f"concepts must be over the {int(sanitizer.bits)} bits of the sanitizer, got {concepts!r}")
    refuse_points(sanitizer, concepts)
    if isinstance(concepts, ThresholdClass):
        return LearnThresholdsBySanitizing(sanitizer=sanitizer, concepts=concepts, limbs=concepts.limbs)
    return LearnPointsBySanitizing(sanitizer=sanitizer, concepts=concepts, limbs=wide.limbs_for(int(concepts.bits)))
