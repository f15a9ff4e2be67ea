"""What learners of k concepts share: their data, and what it is for k independent hypotheses to be good."""

from typing import Any, ClassVar

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, UInt32

from dpjax.data.algorithm import Algorithm
from dpjax.data.fitting import fitted
from dpjax.data.multi_sample import MultiSample


class KLearner(Algorithm):
    """A learner of k concepts at once from a `MultiSample` (MULTI §2.1): the output is k hypotheses, stacked.

    An event is one event for each concept, all of which are to happen: (low, high) = distribution.within(alpha), with a row for each
    concept, is the event that every population error is at most alpha.

    Attributes:
      bits: of the domain; may be traced.
      k: number of concepts.
    """

    kind: ClassVar[type] = MultiSample
    bits: Any
    k: int

    def fit(self, sample: MultiSample) -> MultiSample:
        return fitted(sample, MultiSample, bits=self.bits, k=self.k)

    def prepare(self, sample: MultiSample) -> Any:
        return sample

    def predict(self, hypothesis: Any, x: UInt32[Array, "rows limbs"]) -> Bool[Array, "rows k"]:
        """What each hypothesis says of each point."""
        raise NotImplementedError


def all_happen(laws: Float[Array, "k 2"]) -> Float[Array, "2"]:
    """(prod p_j, 1 - prod p_j) of k independent events with laws (p_j, q_j), the latter without cancellation.

    >>> all_happen(jnp.array([[1.0, 1e-12], [1.0, 1e-12]])).tolist()
    [1.0, 1.9999999996489136e-12]
    """
    return jnp.stack([jnp.prod(laws[:, 0]), any_fails(laws[:, 1])])


def any_fails(failures: Float[Array, "k"]) -> Float[Array, ""]:
    """1 - prod (1 - f_j), without cancellation: the probability that one of k independent events happens."""
    return -jnp.expm1(jnp.sum(jnp.log1p(-jnp.minimum(failures, 1.0))))
