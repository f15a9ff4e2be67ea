"""GenericLearner (MULTI Algorithm 3, Lemma 36): one sanitization of the points serves all k concepts, agnostically.

1. D~ = a sanitization of the points D for C^(+) = {f xor g : f, g in C}: the mass of disagreement is known to 2 alpha / 5 for every pair.
2. H = one concept of C for each way in which C labels the points B of D~ (at most (e |B|)^VC concepts, a post-processing of D~).
3. For each label j: the exponential mechanism over H with score "examples whose label j is right", sensitivity 1, and epsilon'.

Some h in H agrees with the best concept on all of D~, so on D it errs on at most 2 alpha / 5 more; the exponential mechanism loses alpha/5,
and sampling loses alpha/5 twice: alpha in all.

**Guarantee** (REPLACE_ONE). The sanitizer's guarantee plus that of k exponential mechanisms: (eps_s + k eps', delta_s), or
(eps_s + sqrt(2 k ln(1/d')) eps' + 2 k eps'^2, delta_s + d') as printed, or by optimal composition of the k mechanisms, or by their ranges
("bounded": given the sanitizer's release, none of them depends on the others). The promise of a sanitizer under add/remove alone is
converted (to twice its epsilon); a sanitizer with a better one states it in `guarantee_under`.

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
    >>> sanitizer = cdf.release(quantiles=quantiles.recursive(solver=solver, bits=16, depth=4, m=400))
    >>> learner = generic.learner(
    ...     sanitizer=sanitizer, concepts=generic.thresholds(bits=16), k=2, epsilon=2.0, delta=1e-6, accountant="optimal")
    >>> law = concept.several(concept.uniform(bits=16, target=0), bits=16, targets=[10_000, 50_000])
    >>> outcome = learner(jax.random.key(1), law.sample(jax.random.key(0), 8191, 8000))
    >>> bool((law.errors(outcome.hypothesis) < 0.2).all()), learner.guarantee().covers(2.0, 1e-6)
    (True, True)
"""

import dataclasses
import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Bool, Float, Int, UInt32

from dpjax import bounds
from dpjax.accounting import REPLACE_ONE, Guarantee, advanced, basic, calibrate, optimal
from dpjax.accounting.bounded import BOUNDED, independent_each, independent_total
from dpjax.accounting.calibration import ACCOUNTANTS
from dpjax.accounting.guarantee import promised
from dpjax.concepts.dichotomies import PointClass, ThresholdClass, points, thresholds
from dpjax.core import arguments
from dpjax.core.logspace import any_fails
from dpjax.core.pytree import frozen, static
from dpjax.data.algorithm import sanitizer_size, status, whole
from dpjax.data.multi_sample import MultiSample
from dpjax.data.outcome import Outcome, Status
from dpjax.data.pac import excess
from dpjax.data.points import Points
from dpjax.mechanisms import exponential
from dpjax.multi.base import KLearner, refuse_points

__all__ = ["GenericLearner", "PointClass", "ThresholdClass", "learner", "points", "thresholds"]

MOST_ROWS = 2**24  # sums of this many +-1 are exact in float32


@frozen
class GenericLearner(KLearner):
    """The learner of the module; build it by `learner`.

    There is no exact law over the sanitizer's coins in general; given what the sanitizer releases, `law_given` computes the rest exactly.

    Attributes:
      sanitizer: `sanitizer(key, Points) -> Outcome` whose hypothesis has `support() -> (points, where)`; it also has `guarantee()`.
      concepts: the class, with `representatives(points, where) -> (concepts, which count, all fit)`, `predict(concepts, x)` and `bits`;
        also `right_if_realizable(concepts, sample)`, if it can count faster where labels are promised to be those of thresholds.
      epsilon, delta: the total budget.
      each_epsilon: epsilon', what one label may spend.
      k: number of concepts (static).
      accountant: how the k exponential mechanisms are composed (static).
    """

    sanitizer: Any
    concepts: Any
    epsilon: Float[Any, ""]
    delta: Float[Any, ""]
    each_epsilon: Float[Any, ""]
    k: int = static()
    accountant: str = static()

    @property
    def bits(self) -> Any:
        """d, the bits of a point of the domain."""
        return self.concepts.bits

    def draw(self, key: Array, sample: MultiSample) -> Any:
        key_sanitizer, key_choices = jax.random.split(key)
        sanitized = self.sanitize(key_sanitizer, sample)
        points, named = sanitized.hypothesis.support()
        concepts, where, fit = self.concepts.representatives(points, named)
        right = self.right(concepts, sample)

        def choose(key: Array, scores: Array) -> Array:
            return exponential.exponential(key, scores, epsilon=self.each_epsilon, where=where).index

        index = jax.vmap(choose)(jax.random.split(key_choices, self.k), right)
        released = (sanitized.status == Status.OK) & fit
        return jax.tree.map(lambda leaf: leaf[index], concepts), released, {"choices": jnp.sum(where, dtype=jnp.int32)}

    def sanitize(self, key: Array, sample: MultiSample) -> Outcome:
        """Step 1: D~."""
        return self.sanitizer(key, _points(sample))

    def right(self, concepts: Any, sample: MultiSample) -> Int[Array, "k h"]:
        """The scores of step 3: how many examples are right, by label and concept."""
        if sample.realizable and hasattr(self.concepts, "right_if_realizable"):
            return self.concepts.right_if_realizable(concepts, sample)
        said = jnp.where(self.concepts.predict(concepts, sample.x), 1.0, -1.0)
        labels = jnp.where(sample.labels, 1.0, -1.0) * sample.valid[:, None].astype(float)
        agreement = jnp.matmul(labels.T, said, precision=lax.Precision.HIGHEST)
        return (agreement.astype(jnp.int32) + sample.n_valid) // 2

    def law_of_choices(self, key: Array, sample: MultiSample) -> tuple[Any, Float[Array, "k h"], Int[Array, ""]]:
        """(H, P[h_j = h | D~] for every label and concept of H, status): exact given the D~ that this key draws in a run.

        NaN where a run would end with a status other than OK or BOTTOM. Averaged over keys, the failure probability that follows is
        unbiased and less noisy than counted failures.
        """
        return _law_of_choices(self, arguments.key(key), self.fit(sample))

    def law_given(
        self, points: UInt32[Array, "slots limbs"], where: Bool[Array, "slots"], sample: MultiSample
    ) -> tuple[Any, Float[Array, "k h"], Bool[Array, ""]]:
        """(H, P[h_j = h] for every label and concept of H, whether H has room) given that D~ names these points; H depends on them alone.

        With the law of the named points, if the sanitizer has one, this gives the exact law of everything that the learner releases.
        """
        return _law_given(self, points, where, self.fit(sample))

    def population_failure(self, key: Array, sample: MultiSample, distribution: Any, alpha: Any) -> Float[Array, ""]:
        """P[some population error > best of the class + alpha, or bottom | sample, D~] for the D~ that this key draws in a run."""
        alpha = jnp.asarray(arguments.real("alpha", alpha, at_least=0.0), float)
        concepts, probabilities, code = self.law_of_choices(key, sample)

        def errors(concept: Any) -> Array:
            every = jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (self.k, *leaf.shape)), concept)
            return excess(distribution, many=True)(every)

        bad = jax.vmap(errors, out_axes=1)(concepts) > alpha
        failures = jnp.sum(jnp.where(bad, probabilities, 0.0), axis=1)
        return jnp.where(code == Status.OK, any_fails(failures), jnp.where(code == Status.BOTTOM, 1.0, jnp.nan))

    def predict(self, hypothesis: Any, x: UInt32[Array, "rows limbs"]) -> Bool[Array, "rows k"]:
        return self.concepts.predict(hypothesis, x)

    def guarantee(self) -> Guarantee:
        """The sanitizer's promise, plus the composition of the k exponential mechanisms; under REPLACE_ONE."""
        sanitizer = promised(self.sanitizer, REPLACE_ONE)
        each = Guarantee(float(self.each_epsilon), 0.0, REPLACE_ONE)
        left = Guarantee(float(self.epsilon), float(self.delta), REPLACE_ONE).minus(sanitizer).delta
        if self.accountant == "basic":
            return basic([sanitizer, basic({each: self.k})])
        if self.accountant == "advanced":
            return basic([sanitizer, advanced(each, self.k, left)])
        if self.accountant == BOUNDED:
            return basic([sanitizer, independent_total(each, self.k, left)])
        return basic([sanitizer, optimal({each: self.k}, delta=left)])

    def sample_size(self, *, alpha: float, beta: float) -> int:
        """Lemma 36 with the constants of its proof; the sanitizer must state `sample_size(alpha=, beta=)` and `most_points`.

        On R points, as many as the sanitizer's database may have, a class of VC dimension v has at most C(R, 0) + ... + C(R, v) dichotomies
        (Sauer's lemma): this bounds |H|. Where R grows with the number of examples that the sanitizer is built for, R is that of the size
        returned.

        Raises:
          TypeError, ValueError: alpha or beta not a number in (0, 1); a class that does not state its `vc`, or has no room for R points
          (`most`); a sanitizer that does not state how many points there may be.
        """
        alpha, beta = arguments.known_fraction("alpha", alpha), arguments.known_fraction("beta", beta)
        vc = getattr(self.concepts, "vc", None)
        if vc is None:
            raise ValueError(f"concepts must tell their VC dimension `vc`, got {self.concepts!r}")
        vc = arguments.size("concepts.vc", vc)
        if getattr(self.sanitizer, "most_points", None) is None:
            raise ValueError(f"sanitizer must tell how many points it may name, `most_points`, got {self.sanitizer!r}")
        needed = sanitizer_size(self.sanitizer, alpha=alpha / 5, beta=beta / 5, asked=(alpha, beta))
        each = float(self.each_epsilon)

        def size(points: int) -> int:
            known = math.log(sum(math.comb(points, size) for size in range(min(vc, points) + 1)))
            return whole(bounds.generic_learner(needed, vc, self.k, alpha, beta, each, log_hypotheses=known))

        points = _most_points(self.sanitizer, needed)
        while (more := _most_points(self.sanitizer, size(points))) > points:
            points = more
        room = getattr(self.concepts, "most", points)
        if room < points:
            raise ValueError(f"concepts.most must be at least {points}, as the sanitizer may name so many, got {room}")
        return size(points)

    def sound(self) -> Bool[Array, ""]:
        each = jnp.asarray(self.each_epsilon, float)
        return super().sound() & (each > 0) & (each < jnp.inf)

    def fit(self, sample: MultiSample) -> MultiSample:
        sample = super().fit(sample)
        if sample.rows > MOST_ROWS:
            raise ValueError(
                f"sample must have at most {MOST_ROWS} rows: scores are counted in float32, got {sample.rows}"
            )
        if hasattr(self.sanitizer, "fit"):
            self.sanitizer.fit(_points(sample))
        return sample

    def fits(self, sample: MultiSample) -> Bool[Array, ""]:
        """Also whether the sanitizer takes these points: one that was built for n rows takes no other number."""
        own = super().fits(sample)
        return own & self.sanitizer.fits(_points(sample)) if hasattr(self.sanitizer, "fits") else own


def _points(sample: MultiSample) -> Points:
    """The examples without their labels."""
    return Points(x=sample.x, n_valid=sample.n_valid, ordered=sample.realizable)


def _most_points(sanitizer: Any, n: int) -> int:
    """How many points the sanitizer may name if it is built for n examples."""
    fields = dataclasses.fields(sanitizer) if dataclasses.is_dataclass(sanitizer) else ()
    told = any(field.name == "n" for field in fields)
    return (dataclasses.replace(sanitizer, n=n) if told else sanitizer).most_points  # type: ignore[type-var]


@jax.jit
def _law_of_choices(generic: GenericLearner, key: Array, sample: MultiSample) -> tuple[Any, Array, Array]:
    sanitized = generic.sanitize(jax.random.split(key)[0], sample)
    concepts, probabilities, fit = _law_given(generic, *sanitized.hypothesis.support(), sample)
    code = status(generic, sample, (sanitized.status == Status.OK) & fit)
    return concepts, jnp.where(code <= Status.BOTTOM, probabilities, jnp.nan), code


@jax.jit
def _law_given(generic: GenericLearner, points: Array, where: Array, sample: MultiSample) -> tuple[Any, Array, Array]:
    concepts, where, fit = generic.concepts.representatives(points, where)
    log_pmf = jax.vmap(lambda scores: exponential.log_pmf(scores, epsilon=generic.each_epsilon, where=where))
    return concepts, jnp.exp(log_pmf(generic.right(concepts, sample))), fit


def learner(
    *, sanitizer: Any, concepts: Any, k: int, epsilon: float, delta: float = 0.0, accountant: str = "basic"
) -> GenericLearner:
    """GenericLearner, with what the sanitizer leaves of (epsilon, delta) split among k labels.

    Args:
      sanitizer: from `dpjax.sanitizers`, for the class of symmetric differences; private with less than (epsilon, delta). One of your own
        needs `most_points` and `sample_size` for a `sample_size`.
      concepts: `thresholds(bits=...)`, `points(bits=...)`, or a class of your own with the same methods, and with `vc` for a `sample_size`.
      k: number of concepts.
      epsilon, delta: the total under REPLACE_ONE. Known numbers: the split is computed on the host.
      accountant: "basic", "advanced" (as printed), "optimal" or "bounded", for the k exponential mechanisms.

    Formal guarantees: (epsilon, delta) under REPLACE_ONE.

    Raises:
      TypeError, ValueError: arguments out of range; a sanitizer for another domain, one of points where thresholds are to be learned, or
        one that leaves nothing of the budget.
    """
    if not (callable(sanitizer) and hasattr(sanitizer, "guarantee")):
        raise TypeError(f"sanitizer must be one of dpjax.sanitizers, got {sanitizer!r}")
    if not hasattr(concepts, "representatives"):
        raise TypeError(f"concepts must be a class, as generic.thresholds(bits=...) makes it, got {concepts!r}")
    domains = getattr(sanitizer, "bits", concepts.bits), concepts.bits
    if not any(map(arguments.is_traced, domains)) and int(domains[0]) != int(domains[1]):
        raise ValueError(f"concepts must be over the {int(domains[0])} bits of the sanitizer, got {concepts!r}")
    refuse_points(sanitizer, concepts)
    k = arguments.size("k", k)
    total = Guarantee(
        arguments.known("epsilon", arguments.epsilon(epsilon)),
        arguments.known("delta", arguments.delta(delta, positive=False)),
        REPLACE_ONE,
    )
    arguments.choice("accountant", accountant, (*ACCOUNTANTS, BOUNDED))
    left = total.minus(promised(sanitizer, REPLACE_ONE), "sanitizer")
    if accountant == BOUNDED:
        each = independent_each(left, k)
    else:
        each = calibrate(left, k, accountant=accountant, delta_share=0.0)
    return GenericLearner(
        sanitizer=sanitizer,
        concepts=concepts,
        epsilon=np.float64(total.epsilon),
        delta=np.float64(total.delta),
        each_epsilon=np.float64(each.epsilon),
        k=k,
        accountant=accountant,
    )
