"""What learners of k concepts share: their data, and events that are intervals."""

from typing import Any, ClassVar

import jax
import numpy as np
from jaxtyping import Array, Bool, UInt32

from dpjax.core import arguments
from dpjax.data.algorithm import Algorithm
from dpjax.data.fitting import fitted
from dpjax.data.multi_sample import MultiSample
from dpjax.domains import wide
from dpjax.domains.events import Interval


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


def intervals(event: Any, k: int, limbs: int) -> Interval:
    """One half-open interval for each of k concepts, from a pair (low, high) of k ints or of k wide integers each, or an `Interval`.

    Raises:
      TypeError, ValueError: something else, or another number of rows.

    >>> wide.to_ints(intervals(([1, 2], [5, 2**40]), 2, 2).high)
    [5, 1099511627776]
    """
    if isinstance(event, Interval):
        event = (event.low, event.high)
    if not isinstance(event, tuple | list) or len(event) != 2 or any(np.shape(end)[:1] != (k,) for end in event):
        raise ValueError(f"event must be (low, high) with a row for each of the k = {k} concepts, got {event!r}")
    low, high = (end if getattr(end, "dtype", None) == np.uint32 else _numbers(end, limbs) for end in event)
    return jax.vmap(lambda low, high: Interval.of((low, high), limbs))(low, high)


def _numbers(end: Any, limbs: int) -> UInt32[Array, "k limbs"]:
    """Ints as wide integers."""
    most = (1 << (32 * limbs)) - 1
    return wide.from_ints([arguments.integer("event", value, at_least=0, at_most=most) for value in end], 32 * limbs)
