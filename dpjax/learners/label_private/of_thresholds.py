"""Private labels of thresholds: each dichotomy is represented by 0, or by the threshold right after a point."""

from typing import Any

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from dpjax.concepts.dichotomies import ThresholdClass
from dpjax.core.pytree import frozen, static
from dpjax.data.points import Points
from dpjax.domains.events import Interval
from dpjax.learners.label_private.base import Choices, LabelPrivate
from dpjax.learners.thresholds.base import ThresholdLearner


@frozen
class LabelPrivateThresholds(LabelPrivate, ThresholdLearner):
    """The label-private learner of thresholds."""

    concepts: ThresholdClass
    epsilon: Float[Array, ""]
    unlabelled: Any = None
    public: Points | None = None
    limbs: int = static()

    def _choices(
        self, x: Array, y: Array, gives: Array, counted: Array, mine: Array, *, ordered: bool = False
    ) -> Choices:
        """Points that are in order are not grouped: of equal points, the last one stands for all.

        All examples then give their points and their labels: `fit` refuses ordered samples in which some examples give points only.
        """
        if not ordered:
            return super()._choices(x, y, gives, counted, mine)
        last = jnp.append(jnp.any(x[1:] != x[:-1], axis=1) | ~mine[1:], True)
        listed = self.concepts.choices(x, mine & last)
        right = listed.right(*(jnp.where(mine, label, 0) for label in (y, 1 - y)))
        n = jnp.sum(mine, dtype=jnp.int32)
        wrong = (n - right).astype(float) / n.astype(float)
        return Choices(concepts=listed.concepts, where=listed.where, right=right, wrong=wrong, fits=listed.fits)

    def _inside(self, concepts: Any, event: Interval) -> Bool[Array, "h"]:
        return event.holds(concepts)
