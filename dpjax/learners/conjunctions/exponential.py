"""The exponential mechanism over all conjunctions of 1 to k literals (Kasiviswanathan et al., KLNRS): pure, for small classes.

H contains every function computed by such a conjunction once: each set of at most k literals of different variables, and for k >= 2 the
constant 0, as "v0 and not v0". So |H| = sum_(1 <= j <= k) C(d, j) 2^j, plus 1 for k >= 2; at most 2^16 can be listed.

The score of h is minus the number of examples that h labels wrong. One more example leaves a score unchanged or lowers it by 1, so all
scores move the same way, and weights exp(epsilon q) without a 1/2 are (epsilon, 0)-private under ADD_OR_REMOVE_ONE (2 epsilon under
REPLACE_ONE).

Its plain twin is `dpjax.verify.plain.exponential.conjunction_law`.
"""

import functools
import itertools
import math
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from dpjax import bounds
from dpjax.accounting import ADD_OR_REMOVE_ONE, Guarantee
from dpjax.concepts import conjunctions as concept
from dpjax.concepts.conjunctions import Literals
from dpjax.core import arguments
from dpjax.core import bits as packed
from dpjax.core.pytree import frozen, static
from dpjax.data.algorithm import Algorithm, whole
from dpjax.data.assignments import Assignments
from dpjax.data.fitting import fitted_assignments
from dpjax.domains.events import Accurate, Near, flags
from dpjax.mechanisms import exponential as mechanism

MOST_CONCEPTS = 2**16


class Scores(NamedTuple):
    """How many of the n examples each hypothesis labels wrong."""

    wrong: Int[Array, "concepts"]
    n: Int[Array, ""]


@frozen
class ConjunctionExponential(Algorithm):
    """The learner; build it by `exponential`.

    Attributes:
      epsilon: privacy parameter.
      bits: d, the number of variables (static).
      k: the largest number of literals (static).
      disjunction: whether disjunctions are learned (static).
    """

    kind: ClassVar[type] = Assignments
    epsilon: Float[Any, ""]
    bits: int = static()
    k: int = static()
    disjunction: bool = static()

    def fit(self, data: Any) -> Assignments:
        return fitted_assignments(data, self.bits)

    def fits(self, data: Assignments) -> Bool[Array, ""]:
        return data.counted()

    def prepare(self, data: Assignments) -> Scores:
        labels = jax.vmap(lambda literals: concept.label(literals, data.x, disjunction=self.disjunction))(self._every())
        return Scores(wrong=packed.count((labels ^ data.y[None]) & data.valid[None]), n=data.n_valid)

    def draw(self, key: Array, scores: Scores) -> tuple[Literals, Bool[Array, ""], Any]:
        chosen = mechanism.exponential(key, -scores.wrong, epsilon=self.epsilon, monotone=True)
        return self.output(chosen.index), chosen.ok, {"wrong": scores.wrong[chosen.index]}

    def check_event(self, event: Any) -> Any:
        return event if isinstance(event, Near) else flags(event, self.listed(), "hypotheses")

    def event(self, scores: Scores, event: Any) -> Bool[Array, "concepts"]:
        """Which hypotheses belong to the event."""
        if isinstance(event, Accurate):
            return event.allows(scores.wrong, scores.n)
        if isinstance(event, Near):
            return event.holds(Literals(literals=self._every(), disjunction=self.disjunction))
        return event

    def exactly(self, output: Any) -> Bool[Array, "concepts"]:
        """The event that the output is this hypothesis: the one with the same literals, in any order and with any repetitions."""
        arguments.instance("output", output, Literals)
        same = self._every()[:, :, None] == jnp.asarray(output.literals)[None, None]
        alike = jnp.all(jnp.any(same, axis=1), axis=1) & jnp.all(jnp.any(same, axis=2), axis=1)
        return alike & (output.disjunction == self.disjunction)

    def law(self, scores: Scores, good: Bool[Array, "concepts"]) -> Float[Array, "2"]:
        p = self._probabilities(scores)
        return jnp.stack([jnp.sum(jnp.where(good, p, 0.0)), jnp.sum(jnp.where(good, 0.0, p))])

    def masses(self, scores: Scores, outputs: int) -> Float[Array, "outcomes"]:
        return jnp.append(self._probabilities(scores), 0.0)

    def _probabilities(self, scores: Scores) -> Float[Array, "concepts"]:
        return jnp.exp(mechanism.log_pmf(-scores.wrong, epsilon=self.epsilon, monotone=True))

    def listed(self) -> int:
        return concepts(self.bits, self.k)

    def output(self, index: Int[Array, ""]) -> Literals:
        return Literals(literals=self._every()[index], disjunction=self.disjunction)

    def _every(self) -> Int[Array, "concepts k"]:
        return jnp.asarray(_listed(self.bits, self.k))

    def guarantee(self) -> Guarantee:
        """(epsilon, 0) under ADD_OR_REMOVE_ONE; see the module."""
        return Guarantee(float(self.epsilon), 0.0, ADD_OR_REMOVE_ONE)

    def sample_size(self, *, alpha: float, beta: float) -> int:
        """Examples of a target of at most k literals for population error alpha except with probability beta: `bounds.exponential_points`.

        That bound is for weights exp(epsilon q / 2); the weights here are those at 2 epsilon. `bounds.finite_class` is the agnostic bound.

        Raises:
          ValueError: alpha or beta outside (0, 1).
        """
        return whole(bounds.exponential_points(math.log(self.listed()), alpha, beta, 2 * float(self.epsilon)))


def concepts(variables: int, k: int) -> int:
    """|H|: the number of functions that conjunctions of 1 to k literals compute.

    >>> concepts(2, 1), concepts(2, 2), concepts(64, 2)
    (4, 9, 8193)
    """
    return sum(math.comb(variables, size) << size for size in range(1, k + 1)) + (k >= 2)


@functools.lru_cache(maxsize=8)
def _listed(variables: int, k: int) -> np.ndarray:
    """The literals of every hypothesis, shorter ones padded by repeating the last literal; the constant 0 comes last."""
    parts = []
    for size in range(1, min(k, variables) + 1):
        chosen = np.array(list(itertools.combinations(range(variables), size)), np.int32)
        signs = np.array(list(itertools.product((0, 1), repeat=size)), np.int32)
        literals = (2 * chosen[:, None] + signs).reshape(-1, size)
        parts.append(np.pad(literals, ((0, 0), (0, k - size)), mode="edge"))
    if k >= 2:
        parts.append(np.pad(np.array([[0, 1]], np.int32), ((0, 0), (0, k - 2)), mode="edge"))
    return np.concatenate(parts)


def exponential(*, bits: int, k: int, epsilon: Any, disjunction: bool = False) -> ConjunctionExponential:
    """The exponential mechanism over all conjunctions (or disjunctions) of 1 to k of the 2d literals.

    Args:
      bits: d, the number of variables.
      k: the largest number of literals; there may be at most 2^16 conjunctions (`concepts`).
      epsilon: privacy, > 0, finite.
      disjunction: whether disjunctions are learned.

    Formal guarantees: (epsilon, 0) under ADD_OR_REMOVE_ONE, for arbitrary examples and labels. Not promised: protection from
    floating-point side channels, or a cryptographic generator.

    Raises:
      TypeError, ValueError: an argument out of range, or more conjunctions than can be listed.

    >>> from dpjax.concepts import conjunctions as concept
    >>> law = concept.product(bits=20, target=[3, 8], p=0.5)
    >>> learner = exponential(bits=20, k=2, epsilon=1.0)
    >>> n = learner.sample_size(alpha=0.1, beta=0.1)
    >>> sample = law.sample(jax.random.key(0), 256, n)
    >>> n, learner(jax.random.key(1), sample).hypothesis, float(learner.probability(sample, law.within(0.1))[1]) < 1e-3
    (143, Literals(not v1 and v4), True)
    """
    bits = arguments.integer("bits", bits, at_least=1, at_most=MOST_CONCEPTS)
    k = arguments.integer("k", k, at_least=1, at_most=2**10)
    if (found := concepts(bits, k)) > MOST_CONCEPTS:
        raise ValueError(
            f"bits and k must give at most {MOST_CONCEPTS} conjunctions, got {arguments.brief(found)} of k = {k} of {bits} variables"
        )
    return ConjunctionExponential(
        epsilon=arguments.epsilon(epsilon), bits=bits, k=k, disjunction=arguments.flag("disjunction", disjunction)
    )
