"""Conjunctions and disjunctions of k out of 2d literals by SetCoverLearner (GEO Theorem 3.6); see `dpjax.learners.set_cover`.

A round counts how often each literal is false among the examples that are left, by popcounts of packed words: its cost is n d / 32.

    >>> import jax
    >>> from dpjax.concepts import conjunctions as concept
    >>> from dpjax.learners import conjunctions
    >>> law = concept.product(bits=1000, target=[4, 11, 600], p=0.7)
    >>> learner = conjunctions.conjunction(bits=1000, k=3, epsilon=1.0, delta=1e-6, alpha=0.2)
    >>> outcome = learner(jax.random.key(1), law.sample(jax.random.key(0), 2**15, 30_000))
    >>> float(law.error(outcome.hypothesis)) < 0.2, learner.guarantee().covers(1.0, 1e-6)
    (True, True)
    >>> learner.sample_size(alpha=0.2, beta=0.1)
    42688
"""

import functools
import math
from typing import Any, ClassVar, NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, UInt32

from dpjax import bounds
from dpjax.accounting import ADD_OR_REMOVE_ONE, Guarantee, calibrate
from dpjax.accounting.set_cover import rate_for
from dpjax.concepts import conjunctions as concept
from dpjax.concepts.conjunctions import Literals
from dpjax.core import arguments, bits
from dpjax.core.pytree import frozen, static
from dpjax.data.algorithm import whole
from dpjax.data.assignments import Assignments
from dpjax.learners import set_cover
from dpjax.learners.set_cover import SetCover


@frozen
class SetCoverLiterals(SetCover):
    """SetCoverLearner over all 2d literals; build it by `conjunction` or `disjunction`."""

    kind: ClassVar[type] = Assignments

    rate: Float[Any, ""]
    noise_epsilon: Float[Any, ""]
    shift: Float[Any, ""]
    delta: Float[Any, ""]
    bits: int = static()
    k: int = static()
    rounds: int = static()
    dual: bool = static()
    accountant: str = static()

    def fit(self, data: Any) -> Assignments:
        arguments.instance("data", data, Assignments, article="an")
        if data.variables != self.bits:
            raise ValueError(f"data must have {self.bits} variables, got {data.variables}")
        return data.padded()

    def fits(self, data: Assignments) -> Bool[Array, ""]:
        return data.counted()

    def hypotheses(self) -> int:
        return 2 * self.bits

    def deleted(self, data: Assignments, index: Int[Array, ""]) -> UInt32[Array, "words"]:
        true = concept.holds(index, data.x)
        return true if self.dual else ~true

    def counts(self, data: Assignments, left: UInt32[Array, "words"]) -> Int[Array, "literals"]:
        ones = jnp.sum(jnp.bitwise_count(data.x & left[:, None]).astype(jnp.int32), axis=0, dtype=jnp.int32)
        zeros = bits.count(left) - ones
        both = (ones, zeros) if self.dual else (zeros, ones)  # of the variable, of its negation
        return jnp.stack(both, axis=1).reshape(-1)

    def hypothesis(self, chosen: Int[Array, "rounds"]) -> Literals:
        return Literals(literals=chosen, disjunction=self.dual)

    def output(self, index: Int[Array, ""]) -> Literals:
        """The sequence of this index."""
        digits = [index // self.hypotheses() ** place % self.hypotheses() for place in reversed(range(self.rounds))]
        return self.hypothesis(jnp.stack(digits).astype(jnp.int32))

    def exactly(self, output: Any) -> Bool[Array, "outputs"]:
        arguments.instance("output", output, Literals)
        index = jnp.int32(0)
        for literal in output.literals:
            index = index * self.hypotheses() + literal
        return jnp.arange(self.listed(), dtype=jnp.int32) == index

    def sample_size(self, *, alpha: float, beta: float) -> int:
        """Examples of a conjunction (a disjunction) of at most k literals for population error alpha but for beta: `bounds.set_cover`.

        Raises:
          ValueError: alpha or beta outside (0, 1); an alpha for which the rounds are too few; a beta for which the shift is too small.
        """
        alpha, beta = arguments.known_fraction("alpha", alpha), arguments.known_fraction("beta", beta)
        shift = int(self.shift)
        if self.accountant == "shared_test":
            needed = bounds.set_cover_shift(self.rounds, beta / 4, float(self.noise_epsilon))
            if needed > shift:
                raise ValueError(
                    f"beta must be larger: the shift {shift} is below the {needed} that beta = {beta} needs"
                )
        found = bounds.set_cover(2 * self.bits, self.k, self.rounds, alpha, beta, float(self.rate), shift)
        if math.isinf(found):
            raise ValueError(
                f"alpha must be above {2 * math.exp(-self.rounds / self.k):.3g} for {self.rounds} rounds, got {alpha}"
            )
        return whole(found)


class Plan(NamedTuple):
    """Rounds and budgets, and the examples that they need."""

    size: float
    rounds: int
    rate: float
    noise_epsilon: float
    shift: int


@functools.lru_cache(maxsize=256)
def plan(bits: int, k: int, epsilon: float, delta: float, alpha: float, beta: float, accountant: str) -> Plan:
    """The rounds and the split of the budget that need the fewest examples, by looking at some of each.

    >>> plan(1000, 3, 1.0, 1e-6, 0.2, 0.1, "shared_test").rounds
    12
    """
    rounds = sorted({math.ceil(k * math.log(c / alpha)) for c in np.geomspace(2.5, 40.0, 16)})
    if accountant == "composition":
        return min(_composed(bits, k, epsilon, delta, alpha, beta, count) for count in rounds)
    shares = np.linspace(0.05, 0.8, 16)
    return min(_shared(bits, k, epsilon, delta, alpha, beta, count, share) for count in rounds for share in shares)


def _shared(
    bits: int, k: int, epsilon: float, delta: float, alpha: float, beta: float, rounds: int, share: float
) -> Plan:
    noise = float(share * epsilon)
    rate, shift = _rate(float(epsilon - noise) * (1 - 1e-12), delta), bounds.set_cover_shift(rounds, beta / 4, noise)
    return Plan(bounds.set_cover(2 * bits, k, rounds, alpha, beta, rate, shift), rounds, rate, noise, shift)


_rate = functools.lru_cache(maxsize=1024)(lambda epsilon, delta: rate_for(epsilon=epsilon, delta=delta))


def _composed(bits: int, k: int, epsilon: float, delta: float, alpha: float, beta: float, rounds: int) -> Plan:
    accountant = "optimal" if delta > 0 else "basic"
    each = calibrate(Guarantee(epsilon, delta, ADD_OR_REMOVE_ONE), rounds, accountant=accountant, delta_share=0.0)
    size = bounds.set_cover(2 * bits, k, rounds, alpha, beta, each.epsilon, 0)
    return Plan(size, rounds, each.epsilon, math.inf, 0)


def printed(k: int, epsilon: float, delta: float, alpha: float, beta: float) -> Plan:
    """GEO's constants, at alpha/2 (Claim 3.1 leaves alpha n/2 examples wrong where Theorem 2.5 wants alpha n/4): R = ceil(2k ln(4/alpha)).

    >>> printed(3, 1.0, 1e-6, 0.2, 0.1)[1:]
    (18, 0.03374841508456949, 1.0, 94)
    """
    rounds = math.ceil(2 * k * math.log(4 / alpha))
    shift = math.ceil(rounds / epsilon * math.log(rounds / beta))
    return Plan(math.nan, rounds, epsilon / (2 * math.log(math.e / delta)), epsilon, shift)


def conjunction(**given: Any) -> SetCoverLiterals:
    """A conjunction of at most k of the 2d literals (GEO Theorem 3.6); see `dpjax.learners.set_cover`.

    Formal guarantees: (epsilon, delta) under ADD_OR_REMOVE_ONE ("printed": what `guarantee()` says, up to (2 epsilon, delta)). Not
    promised: floating-point side channels; a cryptographic generator.

    Args:
      bits: d, the number of variables, at most 2^24.
      k: literals of the target, at most.
      epsilon, delta: total; known numbers, as they are split on the host. delta may be 0 by composition.
      alpha: population error that the rounds are made for, in (0, 1).
      beta: failure probability that the shift is made for, in (0, 1); 0.1 if not given.
      accountant: "shared_test" (Claim 3.4) or "composition", of the same rounds without noise.
      calibration: "proved", or "printed" for the paper's constants.

    Raises:
      TypeError, ValueError: an argument out of range.
    """
    return _learner(dual=False, **given)


def disjunction(**given: Any) -> SetCoverLiterals:
    """A disjunction of at most k of the 2d literals: the dual; arguments and guarantees are those of `conjunction`.

    >>> disjunction(bits=100, k=2, epsilon=1.0, delta=1e-6, alpha=0.1).guarantee().covers(1.0, 1e-6)
    True
    """
    return _learner(dual=True, **given)


def _learner(
    *,
    dual: bool,
    bits: int,
    k: int,
    epsilon: float,
    delta: float,
    alpha: float,
    beta: float = 0.1,
    accountant: str = "shared_test",
    calibration: str = "proved",
) -> SetCoverLiterals:
    bits = arguments.integer("bits", bits, at_least=1, at_most=concept.MOST_VARIABLES)
    k = arguments.integer("k", k, at_least=1, at_most=2**10)
    arguments.choice("accountant", accountant, set_cover.ACCOUNTANTS)
    epsilon = arguments.known("epsilon", arguments.epsilon(epsilon))
    composed = accountant == "composition"
    delta = arguments.known("delta", arguments.delta(delta, positive=not composed))
    alpha, beta = arguments.known_fraction("alpha", alpha), arguments.known_fraction("beta", beta)
    if arguments.calibration(calibration) == "printed":
        if composed:
            raise ValueError(
                f"calibration must be 'proved' by composition, which GEO states without constants, got {calibration!r}"
            )
        chosen = printed(k, epsilon, delta, alpha, beta)
    else:
        chosen = plan(bits, k, epsilon, delta, alpha, beta, accountant)
    return SetCoverLiterals(
        rate=np.float64(chosen.rate),
        noise_epsilon=np.float64(chosen.noise_epsilon),
        shift=np.float64(chosen.shift),
        delta=np.float64(delta),
        bits=bits,
        k=k,
        rounds=chosen.rounds,
        dual=dual,
        accountant=accountant,
    )
