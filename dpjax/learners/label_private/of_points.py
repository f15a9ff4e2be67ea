"""Private labels of points: each dichotomy is represented by all-zero (BNS Remark 3.3), or by a point."""

from typing import Any

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from dpjax.concepts.dichotomies import PointClass
from dpjax.core.pytree import frozen, static
from dpjax.data.points import Points
from dpjax.domains import wide
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
        if isinstance(event, Interval):
            position = wide.resize(concepts.position, event.low.shape[-1])
            inside = wide.less_equal(event.low[None], position) & wide.less(position, event.high[None])
            return inside & ~concepts.zero
        limbs = max(concepts.position.shape[-1], event.points.shape[-1])
        position, names = wide.resize(concepts.position, limbs), wide.resize(event.points, limbs)
        same = wide.equal(position[:, None], names[None]) & event.where[None]
        named = jnp.any(same & event.good[None], axis=1)
        return jnp.where(concepts.zero, event.zero, jnp.where(jnp.any(same, axis=1), named, event.others))
