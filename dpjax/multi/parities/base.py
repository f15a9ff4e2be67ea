"""What learners of k parities share: given the sample, only one vector of parities, or ⊥, can be the output of a run."""

from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, UInt32

from dpjax.concepts import parities as concept
from dpjax.core import arguments, random
from dpjax.core import bits as packed
from dpjax.data.algorithm import LARGEST_PMF
from dpjax.data.fitting import fitted
from dpjax.data.multi_sample import MultiSample
from dpjax.data.sample import wide_rows
from dpjax.domains import gf2, wide
from dpjax.domains.events import Accurate, Interval, intervals
from dpjax.multi.base import KLearner


class Leading(NamedTuple):
    """The only vector that can be released given a sample, with its probability: the law of one run.

    Attributes:
      hypothesis: k parities; arbitrary if log_p is -inf.
      log_p, log_q: ln P[it is released], ln P[⊥].
      info: counts made on the way.
      sample: the sample itself.
    """

    hypothesis: UInt32[Array, "k limbs"]
    log_p: Float[Array, ""]
    log_q: Float[Array, ""]
    info: dict[str, Array]
    sample: MultiSample


class ManyParitiesLearner(KLearner):
    """A learner of k parities of d bits from a `MultiSample`; an event is an interval (low, high) for each concept.

    Attributes:
      bits: d, static. k: number of concepts.
    """

    any_distribution: ClassVar[bool] = False

    bits: int
    k: int

    def prepare(self, sample: MultiSample) -> Leading:
        """The only vector that can be released, and how likely it is."""
        raise NotImplementedError

    def uniform_failure(self, n: int) -> float:
        """P[some of k parities is not identified] with n uniform examples, exactly, for any k and any targets."""
        raise NotImplementedError

    def fit(self, sample: Any) -> MultiSample:
        return fitted(sample, MultiSample, bits=self.bits, limbs=(wide.limbs_for(self.bits),), k=self.k)

    def draw(self, key: Array, leading: Leading) -> tuple[UInt32[Array, "k limbs"], Bool[Array, ""], Any]:
        return leading.hypothesis, random.bernoulli(key, leading.log_p, leading.log_q), leading.info

    def law(self, leading: Leading, good: Bool[Array, ""]) -> Float[Array, "2"]:
        law = jnp.exp(jnp.stack([leading.log_p, leading.log_q]))
        return jnp.where(good, law, jnp.asarray([0.0, 1.0]))

    def masses(self, leading: Leading, outputs: int) -> Float[Array, "outcomes"]:
        shifts = self.bits * jnp.arange(self.k, dtype=jnp.int32)
        place = jnp.sum(leading.hypothesis[:, 0].astype(jnp.int32) << shifts)
        return jnp.zeros((outputs + 1,)).at[place].set(jnp.exp(leading.log_p)).at[outputs].set(jnp.exp(leading.log_q))

    def check_event(self, event: Any) -> Interval:
        return intervals(event, self.k, self._limbs(), f"k = {self.k} concepts")

    def event(self, leading: Leading, event: Interval | Accurate) -> Bool[Array, ""]:
        """Whether the leading vector is in the event."""
        if isinstance(event, Accurate):
            sample = leading.sample
            differ = packed.unpack(gf2.product(sample.x, leading.hypothesis) ^ sample.y, self.k)
            wrong = jnp.sum(differ & sample.valid[:, None], axis=0, dtype=jnp.int32)
            return jnp.all(event.allows(wrong, sample.n_valid))
        return jnp.all(event.holds(leading.hypothesis))

    def exactly(self, output: Any) -> Interval:
        return jax.vmap(Interval.single)(wide.resize(self._numbers("output", output), self._limbs()))

    def listed(self) -> int:
        """The number of all vectors, which are listed in the order of v_1 + v_2 2^d + ..."""
        return 1 << arguments.integer("k * bits", self.k * self.bits, at_least=1, at_most=LARGEST_PMF)

    def predict(self, hypothesis: Any, x: Any) -> Bool[Array, "rows k"]:
        """The labels that k parities give to points.

        Raises:
          TypeError, ValueError: hypotheses or points that are not wide integers of the domain.
        """
        return concept.predict(self._numbers("hypothesis", hypothesis), self._numbers("x", x))

    def _numbers(self, name: str, given: Any) -> UInt32[Array, "rows limbs"]:
        return wide_rows(name, given, wide.limbs_for(self.bits))

    def _limbs(self) -> int:
        """The limbs of an interval's ends, which may be up to 2^bits."""
        return wide.limbs_for(self.bits + 1)


def parities(unknowns: UInt32[Array, "d words"], k: int) -> UInt32[Array, "k limbs"]:
    """Solutions of d unknowns and k right-hand sides as k wide numbers."""
    return gf2.transpose(unknowns, k)[:, ::-1]


def domain(bits: int, k: int) -> dict[str, int]:
    """The fields that every learner has."""
    bits = arguments.integer("bits", bits, at_least=1, at_most=concept.MAX_BITS)
    return {"bits": bits, "k": arguments.size("k", k)}


def check_alpha(alpha: float) -> None:
    """Refuses alpha outside [0, 1/2): as errors are 0 or 1/2, every alpha in that range means the same."""
    arguments.real("alpha", alpha, at_least=0.0, below=0.5)
