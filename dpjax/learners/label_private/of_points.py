"""Private labels of points: each dichotomy is represented by all-zero (BNS Remark 3.3), or by a point."""

from typing import Any

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from dpjax.concepts.dichotomies import PointClass
from dpjax.core.pytree import frozen, static
from dpjax.data.points import Points
from dpjax.domains.events import Interval
from dpjax.learners.label_private.base import LabelPrivate
from dpjax.learners.points.base import OnePointLearner


@frozen
class LabelPrivatePoints(LabelPrivate, OnePointLearner):
    """The label-private learner of points."""

    concepts: PointClass
    epsilon: Float[Array, ""]
    unlabelled: Any = None
    public: Points | None = None
    limbs: int = static()

    def _inside(self, concepts: Any, event: Any) -> Bool[Array, "h"]:
        zero = False if isinstance(event, Interval) else event.zero
        return jnp.where(concepts.zero, zero, event.holds(concepts.position))
