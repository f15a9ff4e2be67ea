"""Conjunctions and disjunctions of k out of 2d literals by SetCoverLearner (GEO Theorem 3.6); see `dpjax.learners.set_cover.rounds`.

For each label and each literal, the number of examples on which the literal is false is kept from round to round: the counts of the
deleted examples are subtracted, by popcounts of packed words. So a round reads the n d / 32 words at most once, and none of them if it
deletes no example. On examples labelled by the class this costs two passes for the first counts and about one per literal of the target.
"""

import math
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Int, UInt32

from dpjax.concepts import conjunctions as concept
from dpjax.concepts.conjunctions import Literals
from dpjax.core import arguments, bits
from dpjax.core.pytree import frozen, static
from dpjax.data.assignments import Assignments
from dpjax.data.fitting import fitted_assignments
from dpjax.learners import set_cover
from dpjax.learners.set_cover import Selection, SetCover
from dpjax.mechanisms import exponential


@frozen
class SelectLiteral(Selection):
    """The selection of one of the 2d literals.

    Attributes:
      bits: d, the number of variables (static).
    """

    bits: int = static()

    kind: ClassVar[type] = Assignments

    def fit(self, data: Any) -> Assignments:
        return fitted_assignments(data, self.bits)

    def fits(self, data: Assignments) -> Bool[Array, ""]:
        return data.counted()

    def count(self, view: Assignments, mask: UInt32[Array, "*n words"]) -> Int[Array, "*n"]:
        return bits.count(mask)

    def log_size(self) -> float:
        return math.log(2 * self.bits)

    def seen(self, data: Assignments, side: UInt32[Array, "words"], *, dual: bool) -> Int[Array, "literals"]:
        """How many of the examples in the mask each literal deletes."""
        ones = bits.count_columns(data.x, side)
        zeros = bits.count(side) - ones
        both = (ones, zeros) if dual else (zeros, ones)  # of the variable, of its negation
        return jnp.stack(both, axis=1).reshape(-1)

    def without(
        self, data: Assignments, seen: Int[Array, "literals"], gone: UInt32[Array, "words"], *, dual: bool
    ) -> Int[Array, "literals"]:
        """The counts less those of the deleted examples: exact, as they are integers; nothing is read if no example is gone."""
        return seen - self.seen(data, gone, dual=dual)

    def draw(
        self, key: Array, data: Assignments, negative: Any, positive: Any, *, score: Any, rate: Any, dual: bool
    ) -> Any:
        return exponential.draw(
            key, exponential.log_weights(score(negative, positive), epsilon=rate, monotone=True)
        ).index

    def deleted(self, data: Assignments, literal: Int[Array, ""], *, dual: bool) -> UInt32[Array, "words"]:
        true = concept.holds(literal, data.x)
        return true if dual else ~true

    def released(self, chosen: Int[Array, "rounds"], *, dual: bool) -> Literals:
        return Literals(literals=chosen, disjunction=dual)

    def hypotheses(self) -> int:
        return 2 * self.bits

    def all_deleted(self, data: Assignments, *, dual: bool) -> UInt32[Array, "literals words"]:
        every = jnp.arange(self.hypotheses(), dtype=jnp.int32)
        return jax.vmap(lambda literal: self.deleted(data, literal, dual=dual))(every)

    def choice(self, index: Int[Array, "rounds"]) -> Int[Array, "rounds"]:
        return index

    def indices(self, output: Literals) -> Int[Array, "rounds"]:
        arguments.instance("output", output, Literals)
        return output.literals


def conjunction(**given: Any) -> SetCover:
    """A conjunction of at most k of the 2d literals (GEO Theorem 3.6); see `dpjax.learners.set_cover`.

    Formal guarantees: (epsilon, delta) under ADD_OR_REMOVE_ONE ("printed": what `guarantee()` says, up to (2 epsilon, delta) for epsilon <=
    2.5 ln(e/delta)). Not promised: protection from floating-point side channels; a cryptographic generator.

    Args:
      bits: d, the number of variables, at most 2^24.
      k: the largest number of literals of the target.
      epsilon, delta: the total budget; known numbers, as it is split on the host. delta may be 0 by composition.
      alpha: population error for which the number of rounds is chosen, in (0, 1).
      beta: failure probability for which the shift is chosen, in (0, 1); 0.1 if not given.
      accountant: "shared_test" (Claim 3.4), "composition" of the same rounds without noise, or "best" of both.
      calibration: "proved", or "printed" for the paper's constants.

    Raises:
      TypeError, ValueError: an argument out of range.
    """
    return _learner(dual=False, **given)


def disjunction(**given: Any) -> SetCover:
    """A disjunction of at most k of the 2d literals: the dual; arguments and guarantees are those of `conjunction`.

    >>> disjunction(bits=100, k=2, epsilon=1.0, delta=1e-6, alpha=0.1).guarantee().covers(1.0, 1e-6)
    True
    """
    return _learner(dual=True, **given)


def _learner(*, dual: bool, bits: int, **given: Any) -> SetCover:
    bits = arguments.integer("bits", bits, at_least=1, at_most=concept.MOST_VARIABLES)
    return set_cover.learner(SelectLiteral(bits=bits), dual=dual, **given)
