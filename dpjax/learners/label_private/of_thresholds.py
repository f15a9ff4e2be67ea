"""Private labels of thresholds: each dichotomy is represented by 0, or by the threshold right after a point."""

from typing import Any

from jaxtyping import Array, Bool, Float

from dpjax.concepts.dichotomies import ThresholdClass
from dpjax.core.pytree import frozen, static
from dpjax.data.points import Points
from dpjax.domains import wide
from dpjax.domains.events import Interval
from dpjax.learners.label_private.base import LabelPrivate
from dpjax.learners.thresholds.base import ThresholdLearner


@frozen
class LabelPrivateThresholds(LabelPrivate, ThresholdLearner):
    """The label-private learner of thresholds."""

    concepts: ThresholdClass
    epsilon: Float[Array, ""]
    unlabelled: Any = None
    public: Points | None = None
    limbs: int = static()

    def _inside(self, concepts: Any, event: Interval) -> Bool[Array, "h"]:
        return wide.less_equal(event.low[None], concepts) & wide.less(concepts, event.high[None])
