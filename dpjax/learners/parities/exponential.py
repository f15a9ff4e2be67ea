"""The exponential mechanism over all 2^d parities (Kasiviswanathan et al., "What can we learn privately?"; MULTI Theorem 27).

The score of v is the number of examples that c_v labels right, (n + F(v)) / 2, with F the Walsh-Hadamard transform of
f(x) = #{zeros at x} - #{ones at x}: all 2^d scores in d 2^d additions. Labels are arbitrary. Replacing one example changes a score by at
most 1, so the learner is (epsilon, 0)-private under REPLACE_ONE.

Its plain twin is `dpjax.verify.plain.exponential.parity_law`.
"""

from typing import Any, ClassVar, NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, UInt32

from dpjax import bounds
from dpjax.accounting import REPLACE_ONE, Guarantee
from dpjax.concepts import parities as concept
from dpjax.core import arguments
from dpjax.core.pytree import frozen, static
from dpjax.data.algorithm import Ordered, whole
from dpjax.data.sample import Sample, wide_row, wide_rows
from dpjax.domains import gf2, wide
from dpjax.domains.events import Accurate, Interval, Near
from dpjax.mechanisms import exponential as mechanism

MAX_BITS = 16


class Scores(NamedTuple):
    """How many of the n examples each parity labels right."""

    right: Int[Array, "parities"]
    n: Int[Array, ""]


@frozen
class ParityExponential(Ordered):
    """The exponential mechanism over all parities of d bits: the output is v, uint32 of shape (1,)."""

    kind: ClassVar[type] = Sample
    any_distribution: ClassVar[bool] = False
    bounded_range: ClassVar[bool] = True

    epsilon: Float[Any, ""]
    bits: int = static()
    limbs: int = static(default=1)

    def prepare(self, sample: Sample) -> Scores:
        signs = jnp.where(sample.valid, 1 - 2 * sample.y, 0)
        f = jnp.zeros((1 << self.bits,), jnp.int32).at[sample.x[:, 0].astype(jnp.int32)].add(signs, mode="drop")
        return Scores(right=(sample.n_valid + gf2.walsh_hadamard(f)) // 2, n=sample.n_valid)

    def draw(self, key: Array, scores: Scores) -> tuple[UInt32[Array, "1"], Bool[Array, ""], Any]:
        chosen = mechanism.exponential(key, scores.right, epsilon=self.epsilon)
        return chosen.index.astype(jnp.uint32)[None], chosen.ok, {"right": scores.right[chosen.index]}

    def check_event(self, event: Any) -> Any:
        return event if isinstance(event, Near) else super().check_event(event)

    def event(self, scores: Scores, event: Interval | Near | Accurate) -> Bool[Array, "parities"]:
        """Which parities belong to the event."""
        if isinstance(event, Accurate):
            return event.allows(scores.n - scores.right, scores.n)
        v = jnp.arange(1 << self.bits, dtype=jnp.uint32)
        if isinstance(event, Near):
            return event.holds(v[:, None])
        return (event.low[-1] <= v) & (v < event.high[-1])

    def law(self, scores: Scores, good: Bool[Array, "parities"]) -> Float[Array, "2"]:
        p = self._probabilities(scores)
        return jnp.stack([jnp.sum(jnp.where(good, p, 0.0)), jnp.sum(jnp.where(good, 0.0, p))])

    def masses(self, scores: Scores, outputs: int) -> Float[Array, "outcomes"]:
        return jnp.append(self._probabilities(scores), 0.0)

    def _probabilities(self, scores: Scores) -> Float[Array, "parities"]:
        return jnp.exp(mechanism.log_pmf(scores.right, epsilon=self.epsilon))

    def listed(self) -> int:
        return 1 << self.bits

    def predict(self, hypothesis: Any, x: Any) -> Bool[Array, "rows"]:
        """The labels that the parity gives to points.

        Raises:
          TypeError, ValueError: a hypothesis or points that are not wide integers of the domain.
        """
        limbs = wide.limbs_for(self.bits)
        return concept.label(wide_row("hypothesis", hypothesis, limbs), wide_rows("x", x, limbs)).astype(bool)

    def guarantee(self) -> Guarantee:
        """(epsilon, 0) under REPLACE_ONE: BNS Proposition 2.26 (i)."""
        return Guarantee(float(self.epsilon), 0.0, REPLACE_ONE)

    def sample_size(self, *, alpha: float, beta: float) -> int:
        """Examples for uniform points labelled by a parity, as many for every alpha in [0, 1/2); see `bounds.exponential_parities`."""
        arguments.real("alpha", alpha, at_least=0.0, below=0.5)
        return whole(bounds.exponential_parities(self.bits, beta, float(self.epsilon)))

    def agnostic_sample_size(self, *, alpha: float, beta: float) -> int:
        """Examples after which error <= best + alpha with probability 1 - beta, for any labels and points: `bounds.agnostic_parities`."""
        return whole(bounds.agnostic_parities(self.bits, alpha, beta, float(self.epsilon)))


def exponential(*, bits: int, epsilon: Any) -> ParityExponential:
    """The exponential mechanism over all 2^bits parities.

    Args:
      bits: d, from 1 to 16: scores of all parities are held at once.
      epsilon: privacy, > 0, finite.

    Formal guarantees: (epsilon, 0) under REPLACE_ONE, for arbitrary points and labels; n is public. Not promised: protection from
    floating-point side channels, or a cryptographic generator.

    Raises:
      TypeError, ValueError: bits or epsilon out of range.
    """
    bits = arguments.integer("bits", bits, at_least=1, at_most=MAX_BITS)
    return ParityExponential(epsilon=arguments.epsilon(epsilon), bits=bits)
