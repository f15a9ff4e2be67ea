"""The classical greedy set cover (recalled in GEO §1.1): SetCoverLearner without privacy, the baseline for the price of privacy.

Among the literals that delete the fewest positive examples, a round takes the one that deletes the most negative ones, and the first of
them on ties. If the target is a conjunction of at most k literals, one of these deletes at least |S0|/k negative examples and no positive
one. So all positive examples stay, and at most n e^(-R/k) negative ones are left after R rounds: R = floor(k ln(2/alpha)) + 1 rounds leave
less than alpha n/2 of them.

The plain twin is `dpjax.verify.plain.set_cover.greedy_cover`.
"""

import math
from typing import Any

import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from dpjax.accounting import ADD_OR_REMOVE_ONE, Guarantee
from dpjax.concepts import conjunctions as concept
from dpjax.core import arguments
from dpjax.core.pytree import frozen
from dpjax.learners.conjunctions.by_set_cover import SelectLiteral
from dpjax.learners.set_cover.base import Rounds


@frozen
class Greedy(Rounds):
    """The learner; build it by `greedy`. Its attributes are those of `Rounds`."""

    def choose(self, key: Array, view: Any, left: Any, negative: Any, positive: Any) -> Int[Array, ""]:
        return _best(negative, positive)

    def log_round(self, view: Any, left: Any) -> Float[Array, "literals"]:
        every = jnp.arange(self.selection.hypotheses(), dtype=jnp.int32)
        return jnp.where(every == _best(*self.deletions(view, left)), 0.0, -jnp.inf)

    def guarantee(self) -> Guarantee:
        """Nothing is promised."""
        return Guarantee.none(ADD_OR_REMOVE_ONE)

    def sample_size(self, *, alpha: float, beta: float) -> int:
        """Examples of a target of at most k literals for population error alpha except with probability beta: `bounds.set_cover`, no noise.

        Raises:
          ValueError: alpha or beta outside (0, 1); an alpha for which there are too few rounds.
        """
        return self.examples(alpha, beta, math.inf, 0)


def _best(zeros: Int[Array, "literals"], ones: Int[Array, "literals"]) -> Int[Array, ""]:
    """Of the literals that delete the fewest positive examples, the first that deletes the most negative ones."""
    return jnp.argmax(jnp.where(ones == jnp.min(ones), zeros, -1)).astype(jnp.int32)


def greedy(*, bits: int, k: int, alpha: float, disjunction: bool = False) -> Greedy:
    """The greedy set cover over the 2d literals, without privacy.

    Args:
      bits: d, the number of variables, at most 2^24.
      k: the largest number of literals of the target.
      alpha: population error for which the number of rounds is chosen, in (0, 1).
      disjunction: whether the target is a disjunction.

    Formal guarantees: none; the run is deterministic.

    Raises:
      TypeError, ValueError: an argument out of range.

    >>> import jax
    >>> from dpjax.data.assignments import Assignments
    >>> learner = greedy(bits=3, k=2, alpha=0.2)
    >>> sample = Assignments.create([[1, 1, 0], [1, 0, 0], [0, 1, 0], [1, 1, 1]], [1, 0, 0, 1])
    >>> learner(jax.random.key(0), sample).hypothesis
    Literals(v0 and v1)
    >>> learner.rounds, learner.sample_size(alpha=0.2, beta=0.1)
    (5, 479)
    """
    bits = arguments.integer("bits", bits, at_least=1, at_most=concept.MOST_VARIABLES)
    k = arguments.integer("k", k, at_least=1, at_most=2**10)
    alpha = arguments.known_fraction("alpha", alpha)
    rounds = math.floor(k * (math.log(2) - math.log(alpha))) + 1
    dual = arguments.flag("disjunction", disjunction)
    return Greedy(selection=SelectLiteral(bits=bits), rounds=rounds, dual=dual, k=k)
