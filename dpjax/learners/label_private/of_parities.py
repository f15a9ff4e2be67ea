"""Private labels of parities: each dichotomy is represented by the parity that is zero outside the points' leading columns.

A pure learner that protects examples chooses among all 2^d parities. This one chooses among 2^r, where r is the dimension of the points'
span. Where points are uniform these are no fewer, since VC(PAR_d) = d = log2|PAR_d|; they are fewer where points are few or lie in a small
subspace.
"""

from typing import Any, ClassVar

from jaxtyping import Array, Bool, Float

from dpjax.concepts import parities as concept
from dpjax.concepts.dichotomies import ParityClass
from dpjax.core.pytree import frozen, static
from dpjax.data.algorithm import Ordered, few_points
from dpjax.data.points import Points
from dpjax.data.sample import Sample, wide_row, wide_rows
from dpjax.domains import wide
from dpjax.domains.events import Interval, Near
from dpjax.learners.label_private.base import LabelPrivate


@frozen
class LabelPrivateParities(LabelPrivate, Ordered):
    """The label-private learner of parities: the output is v, a wide integer of d bits."""

    kind: ClassVar[type] = Sample
    concepts: ParityClass
    epsilon: Float[Array, ""]
    unlabelled: Any = None
    public: Points | None = None
    limbs: int = static()

    def check_event(self, event: Any) -> Any:
        return event if isinstance(event, Near) else Interval.of(event, wide.limbs_for(self.bits + 1))

    def exactly(self, output: Any) -> Interval:
        return Interval.single(
            wide.resize(wide_row("output", output, wide.limbs_for(self.bits)), wide.limbs_for(self.bits + 1))
        )

    def anything(self) -> Interval:
        return Interval.everything(wide.limbs_for(self.bits + 1))

    def _inside(self, concepts: Any, event: Interval) -> Bool[Array, "h"]:
        return event.holds(concepts)

    def listed(self) -> int:
        return few_points(self.bits)

    def predict(self, hypothesis: Any, x: Any) -> Bool[Array, "rows"]:
        """The labels that the parity gives to points.

        Raises:
          TypeError, ValueError: a hypothesis or points that are not wide integers of the domain.
        """
        limbs = wide.limbs_for(self.bits)
        return concept.label(wide_row("hypothesis", hypothesis, limbs), wide_rows("x", x, limbs)).astype(bool)
