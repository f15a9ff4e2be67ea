"""GenericLearner (MULTI Algorithm 3, Lemma 36): one sanitization of the points serves all k concepts, agnostically.

1. D~ = a sanitization of the points D for C^(+) = {f xor g : f, g in C}: mass of disagreement is known to 2 alpha / 5 for every pair.
2. H = one concept of C for each way in which C labels the points B of D~ (at most (e |B|)^VC concepts, a post-processing of D~).
3. For each label j: the exponential mechanism over H with score "examples whose label j is right", sensitivity 1, and epsilon'.

Some h in H agrees with the best concept on all of D~, so on D it errs on 2 alpha / 5 more at most; the exponential mechanism loses alpha/5,
sampling alpha/5 twice: alpha in all.

**Guarantee** (REPLACE_ONE). The sanitizer's plus that of k exponential mechanisms: (eps_s + k eps', delta_s), or
(eps_s + sqrt(2 k ln(1/d')) eps' + 2 k eps'^2, delta_s + d') as printed, or by optimal composition of the k. A sanitizer under add/remove is
converted (twice its epsilon).

| class | sanitizer, at alpha/5 | depends on the domain as |
|---|---|---|
| `thresholds` | a distribution function (`sanitizers.cdf`): an interval is a difference of two values | log* or log of the domain |
| `points` | frequencies of points (`sanitizers.points`): c_x xor c_y is a sum of two | none of the domain |

    >>> import jax
    >>> from dpjax.concepts import thresholds as concept
    >>> from dpjax.multi import generic
    >>> from dpjax.optimizers import interior_point, quantiles
    >>> from dpjax.sanitizers import cdf
    >>> solver = interior_point.exponential(bits=20, epsilon=0.05)
    >>> sanitizer = cdf.release(quantiles=quantiles.recursive(solver=solver, bits=16, levels=4, m=400))
    >>> learner = generic.learner(
    ...     sanitizer=sanitizer, concepts=generic.thresholds(bits=16), k=2, epsilon=2.0, delta=1e-6, composition="optimal")
    >>> law = concept.several(concept.uniform(bits=16, target=0), bits=16, targets=[10_000, 50_000])
    >>> outcome = learner(jax.random.key(1), law.sample(jax.random.key(0), 8191, 8000))
    >>> bool((law.errors(outcome.hypothesis) < 0.2).all()), learner.guarantee().covers(2.0, 1e-6)
    (True, True)
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Bool, Float, Int, UInt32

from dpjax import bounds
from dpjax.accounting import REPLACE_ONE, Guarantee, advanced, basic, calibrate, optimal
from dpjax.concepts import points as point_concept
from dpjax.concepts import thresholds as threshold_concept
from dpjax.core import arguments
from dpjax.core.pytree import frozen, static
from dpjax.data.fitting import fitted
from dpjax.data.multi_sample import MultiSample
from dpjax.data.outcome import Outcome, Status
from dpjax.data.points import Points
from dpjax.domains import wide
from dpjax.mechanisms import exponential
from dpjax.multi import pac
from dpjax.multi.direct_sum import COMPOSITIONS

VC = 1  # of both classes below
MOST_ROWS = 2**24  # sums of so many +-1 are exact in float32


# ------------------------------------------------------------------------------------------------------------ classes


@frozen
class Thresholds:
    """c_j(x) = 1 iff x < j on X_bits."""

    bits: Int[Any, ""]
    limbs: int = static()

    def representatives(
        self, points: UInt32[Array, "slots limbs"], where: Bool[Array, "slots"]
    ) -> tuple[UInt32[Array, "dichotomies more"], Bool[Array, "dichotomies"], Bool[Array, ""]]:
        """(thresholds, which of them count, all fit): the one after each point, and 0; of equal ones the first counts."""
        x = wide.sort(jnp.where(where[:, None], wide.resize(points, self.limbs), np.uint32(2**32 - 1)))[0]
        n = jnp.sum(where, dtype=jnp.int32)
        first = jnp.concatenate([jnp.ones(1, bool), ~wide.equal(x[1:], x[:-1])])
        after = wide.add(x, wide.from_uint32(jnp.ones(x.shape[0], jnp.uint32), self.limbs))
        zero = jnp.zeros((1, self.limbs), jnp.uint32)
        kept = first & (jnp.arange(x.shape[0], dtype=jnp.int32) < n)
        return jnp.concatenate([zero, after]), jnp.concatenate([jnp.ones(1, bool), kept]), jnp.bool_(True)

    def predict(self, hypotheses: UInt32[Array, "h more"], x: UInt32[Array, "rows limbs"]) -> Bool[Array, "rows h"]:
        """What each threshold says of each point."""
        return jax.vmap(threshold_concept.label, in_axes=(0, None), out_axes=-1)(hypotheses, x).astype(bool)

    def right_if_realizable(self, hypotheses: UInt32[Array, "h more"], sample: MultiSample) -> Int[Array, "k h"]:
        """Right examples by label and threshold, if thresholds label the sample: wrong are those between both ends of the ones."""
        before = jax.vmap(
            lambda h: jnp.sum(jnp.where(sample.valid, threshold_concept.label(h, sample.x), 0), dtype=jnp.int32)
        )
        return sample.n_valid - jnp.abs(before(hypotheses)[None] - threshold_concept.ones(sample)[:, None])


@frozen
class PointConcepts:
    """c_x, and the all-zero concept (BNS Remark 3.3), which stands for every point outside the sanitized database."""

    bits: Int[Any, ""]
    most: int = static()

    def representatives(
        self, points: UInt32[Array, "slots limbs"], where: Bool[Array, "slots"]
    ) -> tuple[point_concept.Point, Bool[Array, "dichotomies"], Bool[Array, ""]]:
        """(concepts, which of them count, all fit): all-zero, and the points of the sanitized database, distinct and in front."""
        fits = ~jnp.any(where[self.most :])
        points, where = points[: self.most], where[: self.most]
        position = jnp.concatenate([jnp.zeros((1, points.shape[1]), jnp.uint32), points])
        zero = jnp.arange(position.shape[0], dtype=jnp.int32) == 0
        return point_concept.Point(position=position, zero=zero), jnp.concatenate([jnp.ones(1, bool), where]), fits

    def predict(self, hypotheses: point_concept.Point, x: UInt32[Array, "rows limbs"]) -> Bool[Array, "rows h"]:
        """What each concept says of each point."""
        return hypotheses.predict(x)


def thresholds(*, bits: int) -> Thresholds:
    """The class of thresholds over X_bits.

    Raises:
      TypeError, ValueError: bits is no int from 1 to 4096.
    """
    bits = arguments.integer("bits", bits, at_least=1, at_most=wide.MAX_BITS)
    return Thresholds(bits=np.int32(bits), limbs=wide.limbs_for(bits + 1))


def points(*, bits: int, most: int = 256) -> PointConcepts:
    """The class of points over X_bits, with the all-zero concept.

    Args:
      bits: of the domain, 1 to 4096.
      most: points a sanitized database may name; if it names more, the status is BOTTOM. A release that names only points of count
        above c names at most n/c.

    Raises:
      TypeError, ValueError: an argument out of range.
    """
    bits = arguments.integer("bits", bits, at_least=1, at_most=wide.MAX_BITS)
    return PointConcepts(bits=np.int32(bits), most=arguments.integer("most", most, at_least=1))


# ------------------------------------------------------------------------------------------------------------ learner


@frozen
class GenericLearner:
    """See the module; build it by `learner`.

    Attributes:
      sanitizer: `sanitizer(key, Points) -> Outcome` whose hypothesis has `support() -> (points, where)`; and `guarantee()`.
      concepts: the class: `representatives(points, where) -> (concepts, which count, all fit)`, `predict(concepts, x)`, `bits`; and, if it
        can count faster where labels are promised to be those of thresholds, `right_if_realizable(concepts, sample)`.
      epsilon, delta: the total budget.
      each_epsilon: epsilon', what one label may spend.
      k: number of concepts (static).
      composition: of the k exponential mechanisms (static).
    """

    sanitizer: Any
    concepts: Any
    epsilon: Float[Any, ""]
    delta: Float[Any, ""]
    each_epsilon: Float[Any, ""]
    k: int = static()
    composition: str = static()

    def __call__(self, key: Array, sample: MultiSample) -> Outcome:
        """One run.

        Returns:
          An `Outcome`: `hypothesis` the k concepts, stacked; `status` the sanitizer's; `info` {"choices": its size |H|} (not private).

        Raises:
          TypeError, ValueError: a sample that does not fit.
        """
        return _run(self, key, self.fit(sample))

    def predict(self, hypothesis: Any, x: UInt32[Array, "rows limbs"]) -> Bool[Array, "rows k"]:
        """What each hypothesis says of each point."""
        return self.concepts.predict(hypothesis, x)

    def law(self, key: Array, sample: MultiSample) -> tuple[Any, Float[Array, "k h"], Int[Array, ""]]:
        """(H, P[h_j = h | D~] for every label and concept of H, status): exact given the D~ that this key draws in `__call__`.

        Averaged over keys, the failure probability that follows is unbiased and less noisy than counted failures.
        """
        return _law(self, key, self.fit(sample))

    def law_given(
        self, points: UInt32[Array, "slots limbs"], where: Bool[Array, "slots"], sample: MultiSample
    ) -> tuple[Any, Float[Array, "k h"], Bool[Array, ""]]:
        """(H, P[h_j = h] for every label and concept of H, whether H has room) given that D~ names these points; H depends on them alone.

        With the law of the names, of a sanitizer that has one, that is the exact law of all that the learner tells.
        """
        return _law_given(self, points, where, self.fit(sample))

    def population_failure(self, key: Array, sample: MultiSample, distribution: Any, alpha: Any) -> Float[Array, ""]:
        """P[some population error > alpha, or bottom | sample, D~] for the D~ that this key draws in `__call__`."""
        concepts, probabilities, status = self.law(key, sample)

        def errors(concept: Any) -> Array:
            return distribution.errors(
                jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (self.k, *leaf.shape)), concept)
            )

        bad = jax.vmap(errors, out_axes=1)(concepts) > alpha
        failures = jnp.sum(jnp.where(bad, probabilities, 0.0), axis=1)
        return jnp.where(status == Status.OK, pac.any_fails(failures), 1.0)

    def guarantee(self) -> Guarantee:
        """The sanitizer's promise, plus the composition of the k exponential mechanisms; under REPLACE_ONE."""
        sanitizer = self.sanitizer.guarantee().under(REPLACE_ONE)
        each = Guarantee(float(self.each_epsilon), 0.0, REPLACE_ONE)
        left = Guarantee(float(self.epsilon), float(self.delta), REPLACE_ONE).minus(sanitizer).delta
        if self.composition == "basic":
            return basic([sanitizer, basic({each: self.k})])
        if self.composition == "advanced":
            return basic([sanitizer, advanced(each, self.k, left)])
        return basic([sanitizer, optimal({each: self.k}, delta=left)])

    def sample_size(self, *, alpha: float, beta: float) -> float:
        """Lemma 36 with the constants of its proof; the sanitizer must state `sample_size(alpha=, beta=)`."""
        needed = self.sanitizer.sample_size(alpha=alpha / 5, beta=beta / 5)
        return bounds.generic_learner(needed, VC, self.k, alpha, beta, float(self.each_epsilon))

    def fit(self, sample: MultiSample) -> MultiSample:
        """The sample, checked and padded to its bucket.

        Raises:
          TypeError: no MultiSample. ValueError: another k, or a point outside the domain.
        """
        sample = fitted(sample, MultiSample, bits=self.concepts.bits, k=self.k)
        if sample.rows > MOST_ROWS:
            raise ValueError(
                f"sample must have at most {MOST_ROWS} rows: scores are counted in float32, got {sample.rows}"
            )
        return sample


def _sanitized(generic: GenericLearner, key: Array, sample: MultiSample) -> Outcome:
    """D~."""
    return generic.sanitizer(key, Points(x=sample.x, n_valid=sample.n_valid, ordered=sample.realizable))


def _choices(
    generic: GenericLearner, points: Array, where: Array, sample: MultiSample
) -> tuple[Any, Array, Array, Array]:
    """(H, its mask, right examples by label and concept, whether H has room) when D~ names these points."""
    concepts, where, fits = generic.concepts.representatives(points, where)
    return concepts, where, _right(generic, concepts, sample), fits


def _right(generic: GenericLearner, concepts: Any, sample: MultiSample) -> Int[Array, "k h"]:
    """Right examples by label and concept."""
    if sample.realizable and hasattr(generic.concepts, "right_if_realizable"):
        return generic.concepts.right_if_realizable(concepts, sample)
    said = jnp.where(generic.concepts.predict(concepts, sample.x), 1.0, -1.0)
    labels = jnp.where(sample.labels, 1.0, -1.0) * sample.valid[:, None].astype(float)
    agreement = jnp.matmul(labels.T, said, precision=lax.Precision.HIGHEST)
    return (agreement.astype(jnp.int32) + sample.n_valid) // 2


def _status(fits: Array, sanitized: Outcome) -> Array:
    """That of the sanitizer, or BOTTOM if H has no room."""
    return jnp.where(fits, sanitized.status, jnp.int32(Status.BOTTOM))


@jax.jit
def _run(generic: GenericLearner, key: Array, sample: MultiSample) -> Outcome:
    key_sanitizer, key_choices = jax.random.split(key)
    sanitized = _sanitized(generic, key_sanitizer, sample)
    points, named = sanitized.hypothesis.support()
    concepts, where, right, fits = _choices(generic, points, named, sample)
    draw = lambda key, scores: exponential.exponential(key, scores, epsilon=generic.each_epsilon, where=where).index  # noqa: E731
    index = jax.vmap(draw)(jax.random.split(key_choices, generic.k), right)
    hypothesis = jax.tree.map(lambda leaf: leaf[index], concepts)
    return Outcome.of(hypothesis, _status(fits, sanitized), {"choices": jnp.sum(where, dtype=jnp.int32)})


@jax.jit
def _law(generic: GenericLearner, key: Array, sample: MultiSample) -> tuple[Any, Array, Array]:
    sanitized = _sanitized(generic, jax.random.split(key)[0], sample)
    points, named = sanitized.hypothesis.support()
    concepts, probabilities, fits = _law_given(generic, points, named, sample)
    return concepts, probabilities, _status(fits, sanitized)


@jax.jit
def _law_given(generic: GenericLearner, points: Array, where: Array, sample: MultiSample) -> tuple[Any, Array, Array]:
    concepts, where, right, fits = _choices(generic, points, where, sample)
    log_pmf = jax.vmap(lambda scores: exponential.log_pmf(scores, epsilon=generic.each_epsilon, where=where))
    return concepts, jnp.exp(log_pmf(right)), fits


def learner(
    *, sanitizer: Any, concepts: Any, k: int, epsilon: float, delta: float = 0.0, composition: str = "basic"
) -> GenericLearner:
    """GenericLearner with what the sanitizer leaves of (epsilon, delta) split among k labels.

    Args:
      sanitizer: of `dpjax.sanitizers`, for the class of symmetric differences; private with less than (epsilon, delta).
      concepts: `thresholds(bits=...)`, `points(bits=...)`, or a class of yours with the same methods.
      k: number of concepts.
      epsilon, delta: the total under REPLACE_ONE.
      composition: "basic", "advanced" (as printed) or "optimal", of the k exponential mechanisms.

    Formal guarantees: (epsilon, delta) under REPLACE_ONE.

    Raises:
      TypeError, ValueError: arguments out of range; a sanitizer that leaves nothing, or whose guarantee needs arguments.
    """
    k = arguments.integer("k", k, at_least=1)
    epsilon, delta = arguments.epsilon(epsilon), arguments.delta(delta, positive=False)
    arguments.choice("composition", composition, COMPOSITIONS)
    try:
        promised = sanitizer.guarantee()
    except TypeError as error:  # such as `cdf.sliced`, whose delta is chosen there
        raise TypeError(
            f"sanitizer must state guarantee() without arguments, got {type(sanitizer).__name__}"
        ) from error
    if promised is None:
        raise ValueError("sanitizer must have a guarantee, got one built with allow_unproved=True")
    promised = promised.under(REPLACE_ONE)
    left = Guarantee(float(epsilon), float(delta), REPLACE_ONE).minus(promised)
    each = calibrate(left, k, accountant=composition, delta_share=0.0)
    return GenericLearner(
        sanitizer=sanitizer,
        concepts=concepts,
        epsilon=np.float64(epsilon),
        delta=np.float64(delta),
        each_epsilon=np.float64(each.epsilon),
        k=k,
        composition=composition,
    )
