"""Direct sum: k concepts learned one by one from the same sample, each with its share of the budget (MULTI Observation 32).

| accountant | what each learner may spend | so n grows like |
|---|---|---|
| "basic" | (epsilon / k, delta / k) | k |
| "advanced" | BNS Theorem 2.5, printed constants | sqrt(k ln(1/delta)) |
| "bounded" | exponential mechanisms only: `accounting.bounded`, exactly | sqrt(k ln(1/delta)), half that constant |
| "optimal" | the most that any composition theorem can give (Kairouz, Oh, Viswanath 2015) | sqrt(k ln(1/delta)), a smaller constant |

Neighbouring samples differ by the replacement of one example with all its labels (REPLACE_ONE), so each of the k learners sees neighbouring
samples. Given the sample, the learners' coins are independent: the law of all k hypotheses is the product of the single laws. If each
learner fails with probability at most beta / k, all are good except with probability beta.

    >>> import jax
    >>> from dpjax.concepts import thresholds as concept
    >>> from dpjax.learners import thresholds
    >>> from dpjax.multi import direct_sum
    >>> learner = direct_sum.direct_sum(
    ...     lambda each: thresholds.exponential(bits=16, epsilon=each.epsilon),
    ...     k=3, epsilon=1.0, delta=1e-6, accountant="optimal", delta_share=0.0)
    >>> law = concept.several(concept.uniform(bits=16, target=0), bits=16, targets=[100, 30_000, 60_000])
    >>> sample = law.sample(jax.random.key(0), 2047, 2000)
    >>> outcome = learner(jax.random.key(1), sample)
    >>> int(outcome.status), bool((law.errors(outcome.hypothesis) < 0.1).all())
    (0, True)
    >>> learner.guarantee().covers(1.0, 1e-6), float(learner.failure_probability(sample, error=0.05)) < 1e-3
    (True, True)
"""

import functools
import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, UInt32

from dpjax.accounting import REPLACE_LABEL, REPLACE_ONE, Guarantee, advanced, basic, calibrate, optimal
from dpjax.accounting.bounded import BOUNDED, composes_by_range, independent_each, independent_total
from dpjax.accounting.calibration import ACCOUNTANTS
from dpjax.accounting.guarantee import promised
from dpjax.accounting.rounding import at_most
from dpjax.core import arguments
from dpjax.core.logspace import all_happen, any_fails
from dpjax.core.pytree import frozen, static
from dpjax.data.algorithm import Algorithm, Ordered, if_good
from dpjax.data.multi_sample import MultiSample
from dpjax.data.outcome import Outcome, Status
from dpjax.data.sample import Sample
from dpjax.domains.events import Accurate, intervals, numbers
from dpjax.multi.base import KLearner

MOST_OUTPUTS = 2**20  # that `pmf` lists
LANES = 16  # concepts processed side by side: enough to fill vector units, few enough to stay in cache


@frozen
class DirectSum(KLearner):
    """k independent runs of one learner; build it by `direct_sum`, or from a learner as it is by `of`.

    Attributes:
      learner: the learner of a single concept.
      epsilon, delta: the total budget, at which `guarantee` composes.
      k: number of concepts (static).
      accountant: "basic", "advanced", "optimal" or "bounded" (static).
    """

    learner: Any
    epsilon: Float[Any, ""]
    delta: Float[Any, ""]
    k: int = static()
    accountant: str = static()

    @property
    def bits(self) -> Any:
        """d, the bits of a point of the domain."""
        return self.learner.bits

    @property
    def any_distribution(self) -> bool:  # type: ignore[override]
        """Whether `sample_size` holds for every distribution, as for the single learner."""
        return getattr(self.learner, "any_distribution", True)

    def draw(self, key: Array, sample: MultiSample) -> Any:
        """The learner on every column, each time with a key of its own."""
        return _released(self._each(sample, lambda j, column: self.learner(jax.random.fold_in(key, j), column)))

    def run(self, key: Array, sample: MultiSample) -> Any:
        """As `draw`; on a realizable sample all at once, for learners that compute only once what all k have in common."""
        if not (sample.realizable and hasattr(self.learner, "together")):
            return self.draw(key, sample)
        keys = jax.vmap(jax.random.fold_in, in_axes=(None, 0))(key, jnp.arange(self.k, dtype=jnp.int32))
        return _released(self.learner.together(keys, sample))

    def law(self, sample: MultiSample, event: Any) -> Array:
        """The law of the event that all k outputs are in their events: the product of the single laws."""
        return all_happen(self._of_events(self.learner.law, sample, event))

    def log_mass(self, sample: MultiSample, event: Any) -> Float[Array, ""]:
        return jnp.sum(self._of_events(self.learner.log_mass, sample, event))

    def _of_events(self, law: Callable[[Any, Any], Array], sample: MultiSample, event: Any) -> Array:
        """law(view, event) of every learner."""

        def single(j: Array, column: Any) -> Array:
            view, own = self.learner.prepare(self.learner.fit(column)), event
            if not isinstance(event, Accurate):
                own = jax.tree.map(lambda leaf: leaf[j], event)
            return law(view, self.learner.event(view, own))

        return self._each(sample, single)

    def check_event(self, event: Any) -> Any:
        """One event for each concept: a pytree of arrays with k rows, such as (low, high) = distribution.within(alpha).

        For learners whose outputs are ordered, low and high may also be k ints each.
        """
        if isinstance(self.learner, Ordered):
            return intervals(event, self.k, self.learner.limbs, f"k = {self.k} concepts")
        rows = {getattr(leaf, "shape", ())[:1] for leaf in jax.tree.leaves(event)}
        if rows != {(self.k,)}:
            raise ValueError(f"event must hold arrays with a row for each of the k = {self.k} concepts, got {event!r}")
        return jax.vmap(self.learner.check_event)(event)

    def pmf(self, sample: MultiSample) -> Float[Array, "outcomes"]:
        """The joint law of h_1, ..., h_k, the last one running fastest, then of bottom: either all are released or none.

        Raises:
          ValueError: too many outputs for a list.
        """
        sample = self.fit(sample)
        laws = [self.learner.pmf(sample.column(j)) for j in range(self.k)]
        outputs = math.prod(law.size - 1 for law in laws)
        if outputs > MOST_OUTPUTS:
            raise ValueError(f"k must leave at most {MOST_OUTPUTS} outputs for a list, got {outputs} for k = {self.k}")
        return if_good(self, sample, _joint(laws))

    def exactly(self, output: Any) -> Any:
        if isinstance(self.learner, Ordered) and arguments.is_row(output):
            output = numbers("output", output, self.learner.limbs)
        if {np.shape(leaf)[:1] for leaf in jax.tree.leaves(output)} != {(self.k,)}:
            raise TypeError(f"output must hold one output for each of the {self.k} concepts, got {output!r}")
        return jax.vmap(self.learner.exactly)(output)

    def sound(self) -> Bool[Array, ""]:
        """Only the learner's own numbers matter; the total only says where its guarantees are composed."""
        return getattr(self.learner, "sound", lambda: jnp.bool_(True))()

    def predict(self, hypothesis: Any, x: UInt32[Array, "rows limbs"]) -> Bool[Array, "rows k"]:
        return jax.vmap(self.learner.predict, in_axes=(0, None), out_axes=-1)(hypothesis, x)

    def guarantee(self) -> Guarantee:
        """The composition of what the k learners promise, under their relation: REPLACE_ONE, or REPLACE_LABEL.

        "optimal" composes at the total epsilon, "bounded" at the total delta, "advanced" with all the delta that the learners leave. By
        "bounded" nothing is promised of a learner that replaced an exponential mechanism and is none.
        """
        return self._composed(self.learner.guarantee())

    def guarantee_under(self, relation: str) -> Guarantee:
        """The same under another relation: each learner's promise is converted first, which costs less than converting the whole."""
        return self._composed(promised(self.learner, relation))

    def _composed(self, each: Guarantee) -> Guarantee:
        """The composition of k such promises."""
        epsilon, delta = float(self.epsilon), float(self.delta)
        if self.accountant == "basic":
            return basic({each: self.k})
        if self.accountant == BOUNDED:
            known = composes_by_range(self.learner)
            return independent_total(each, self.k, delta) if known else Guarantee.none(each.relation)
        if self.accountant == "advanced":
            return advanced(each, self.k, at_most(Fraction(delta) - self.k * Fraction(each.delta)))
        return optimal({each: self.k}, epsilon=epsilon)

    def sample_size(self, *, alpha: float, beta: float) -> int:
        """The single learner's theorem at beta / k (union bound)."""
        return self.learner.sample_size(alpha=alpha, beta=arguments.known_fraction("beta", beta) / self.k)

    def _each(self, sample: MultiSample, function: Callable[[Array, Any], Any]) -> Any:
        """function(j, sample of concept j) for every j, LANES at a time.

        k is rounded up to whole batches by processing the first concepts twice, so that one batch is compiled and not two.
        """
        lanes = min(LANES, self.k)
        indices = jnp.arange(-(-self.k // lanes) * lanes, dtype=jnp.int32) % self.k
        results = jax.lax.map(lambda j: function(j, sample.column(j)), indices, batch_size=lanes)
        return jax.tree.map(lambda leaf: leaf[: self.k], results)


def _released(outcomes: Outcome) -> tuple[Any, Bool[Array, ""], Any]:
    """k stacked outcomes as one draw; info holds the status (not private) and the info of each."""
    released = jnp.all(outcomes.status == Status.OK)
    return outcomes.hypothesis, released, {"status": outcomes.status, "info": outcomes.info}


@jax.jit
def _joint(laws: list[Array]) -> Float[Array, "outcomes"]:
    """The law of all outputs, then of bottom, from the single laws."""
    joint = functools.reduce(jnp.multiply.outer, [law[:-1] for law in laws]).reshape(-1)
    return jnp.append(joint, any_fails(jnp.stack([law[-1] for law in laws])))


def direct_sum(
    make: Callable[[Guarantee], Any],
    *,
    k: int,
    epsilon: float,
    delta: float = 0.0,
    accountant: str = "basic",
    delta_share: float | None = None,
    relation: str = REPLACE_ONE,
) -> DirectSum:
    """Splits (epsilon, delta) among k learners and builds their direct sum.

    Args:
      make: builds the learner of one concept from its budget, for instance
        `lambda each: thresholds.rec_concave(bits=64, epsilon=each.epsilon, delta=each.delta, alpha=0.1, depth=2)`.
      k: number of concepts, >= 1.
      epsilon, delta: the total under `relation`; delta = 0 only with "basic". Known numbers: the split is computed on the host.
      accountant: "basic", "advanced" or "optimal"; or "bounded", for learners whose losses lie in an interval of length epsilon.
      delta_share: the part of delta that the learners get for their own deltas; 0 for pure learners. By default 1 for basic, 1/2 for the
        others.
      relation: REPLACE_ONE, or REPLACE_LABEL for learners that protect labels alone: all k labels of one example are replaced.

    Formal guarantees: (epsilon, delta), if every learner keeps its budget: `guarantee` composes what they state.

    Raises:
      TypeError, ValueError: arguments out of range; a learner that states less privacy than its budget, or another relation.
    """
    if hasattr(arguments.function("make", make), "guarantee"):
        raise TypeError(f"make must build a learner from its budget, got the learner {make!r}: see `of`")
    k = arguments.size("k", k)
    total = Guarantee(
        arguments.known("epsilon", arguments.epsilon(epsilon)),
        arguments.known("delta", arguments.delta(delta, positive=False)),
        arguments.choice("relation", relation, (REPLACE_ONE, REPLACE_LABEL)),
    )
    arguments.choice("accountant", accountant, (*ACCOUNTANTS, BOUNDED))
    if accountant == BOUNDED:
        each = independent_each(total, k)
    else:
        each = calibrate(total, k, accountant=accountant, delta_share=delta_share)
    learner = _single("make(...)", make(each))
    if accountant == BOUNDED and not composes_by_range(learner):
        raise ValueError(f'accountant must not be "bounded" for what is no exponential mechanism, got {learner!r}')
    stated = learner.guarantee()
    # Budgets pass through the float arithmetic of the learner's own accounting: one part in 10^9 is taken for rounding.
    if stated.relation != total.relation or not stated.covers(each.epsilon * (1 + 1e-9), each.delta * (1 + 1e-9)):
        raise ValueError(f"make must build a learner that keeps its budget {each}, got one with {stated}")
    return DirectSum(
        learner=learner, epsilon=np.float64(total.epsilon), delta=np.float64(total.delta), k=k, accountant=accountant
    )


def of(learner: Any, *, k: int) -> DirectSum:
    """k runs of a learner as it is, private or not: what it promises is composed by basic composition.

    Raises:
      TypeError, ValueError: anything but a learner of a single concept from a `Sample`, or k < 1.

    >>> from dpjax.learners import thresholds
    >>> of(thresholds.exponential(bits=8, epsilon=0.5), k=4).guarantee().epsilon
    2.0
    """
    k = arguments.size("k", k)
    no_limit: dict[str, Any] = {"epsilon": np.float64(math.inf), "delta": np.float64(1.0)}
    return DirectSum(learner=_single("learner", learner), **no_limit, k=k, accountant="basic")


def _single(name: str, learner: Any) -> Any:
    """TypeError unless it is a learner of one concept from a `Sample`."""
    complete = callable(learner) and all(hasattr(learner, part) for part in ("bits", "guarantee", "predict"))
    # A learner of another class may use `kind` for anything.
    if not complete or (isinstance(learner, Algorithm) and learner.kind is not Sample):
        raise TypeError(f"{name} must be a learner of one concept from a Sample, as of dpjax.learners, got {learner!r}")
    return learner
