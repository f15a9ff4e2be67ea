"""What learners of k concepts share: their data."""

from typing import Any, ClassVar

from jaxtyping import Array, Bool, UInt32

from dpjax.data.algorithm import Algorithm
from dpjax.data.fitting import fitted
from dpjax.data.multi_sample import MultiSample


class KLearner(Algorithm):
    """A learner of k concepts at once from a `MultiSample` (MULTI §2.1): the output is k hypotheses, stacked.

    An event consists of one event for each concept, all of which must happen: (low, high) = distribution.within(alpha), with a row for each
    concept, is the event that every population error is at most alpha.

    Attributes:
      bits: d, the bits of a point of the domain; may be traced.
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
        """The label that each hypothesis gives to each point."""
        raise NotImplementedError
