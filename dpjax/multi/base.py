"""What learners of k concepts share: their data, and what they ask of a sanitizer."""

from typing import Any, ClassVar

from jaxtyping import Array, Bool, UInt32

from dpjax.concepts.dichotomies import ThresholdClass
from dpjax.data.algorithm import Algorithm
from dpjax.data.fitting import fitted
from dpjax.data.multi_sample import MultiSample
from dpjax.sanitizers.dense import queries
from dpjax.sanitizers.points.base import PointSanitizer


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


OF_POINTS = PointSanitizer | queries.Points | queries.Pairs  # promises of nothing larger than a pair


def promise_of(sanitizer: Any) -> Any:
    """What tells of which sets a sanitizer, or the one within it, promises something: its queries, if it has any, else itself."""
    while hasattr(sanitizer, "sanitizer"):
        sanitizer = sanitizer.sanitizer
    return getattr(sanitizer, "queries", sanitizer)


def refuse_points(sanitizer: Any, concepts: Any) -> None:
    """ValueError where thresholds are to be learned from a sanitizer of points."""
    if isinstance(promise_of(sanitizer), OF_POINTS) and isinstance(concepts, ThresholdClass):
        rule = (
            "be one for thresholds or intervals, as dpjax.sanitizers.cdf makes it, where thresholds are to be learned"
        )
        raise ValueError(f"sanitizer must {rule}, got one for points, {sanitizer!r}")
