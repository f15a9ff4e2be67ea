"""Private labels of axis-aligned rectangles: each dichotomy is represented by the least box around its points, or the empty one."""

from typing import Any, ClassVar

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, UInt32

from dpjax.concepts import rectangles as concept
from dpjax.concepts.dichotomies import RectangleClass
from dpjax.concepts.rectangles import Rectangle
from dpjax.core import arguments
from dpjax.core.pytree import frozen, static
from dpjax.data.algorithm import Algorithm
from dpjax.data.examples import Examples, points_on_axes
from dpjax.data.fitting import fitted_examples
from dpjax.domains.events import Near
from dpjax.learners.label_private.base import LabelPrivate


class _OfRectangles(Algorithm):
    """The data, the events and the outputs of learners of rectangles."""

    kind: ClassVar[type] = Examples
    concepts: RectangleClass
    limbs: int

    @property
    def axes(self) -> int:
        """The dimension D."""
        return self.concepts.axes

    def fit(self, data: Any) -> Examples:
        return fitted(data, self.concepts)

    def fits(self, data: Examples) -> Bool[Array, ""]:
        return data.in_domain(self.concepts.bits, positive_only=False)

    def check_event(self, event: Any) -> Any:
        """`Near` a distribution's target, as `distribution.within(alpha)` gives it, or a `Rectangle`, for exactly that output."""
        if event is not None and not isinstance(event, Near | Rectangle):
            raise TypeError(f"event must be distribution.within(alpha) or a Rectangle, got {event!r}")
        return event

    def exactly(self, output: Any) -> Rectangle:
        return arguments.instance("output", output, Rectangle)

    def anything(self) -> None:
        """The event of all outputs, for which None stands."""

    def listed(self) -> int:
        return concept.listed(self.concepts.bits, self.axes)

    def output(self, index: UInt32[Array, ""]) -> Rectangle:
        return concept.numbered(index, self.concepts.bits, self.axes, self.limbs)

    def predict(self, hypothesis: Any, x: UInt32[Array, "rows axes limbs"]) -> Bool[Array, "rows"]:
        """The labels that the rectangle gives to points.

        Raises:
          TypeError: a hypothesis that is not a rectangle, or points that are not wide integers. ValueError: points of another domain.
        """
        box, x = arguments.instance("hypothesis", hypothesis, Rectangle), points_on_axes(x)
        if x.shape[1:] != (self.axes, self.limbs):
            raise ValueError(f"x must have shape (rows, {self.axes}, {self.limbs}), got {x.shape}")
        return concept.label(box, x).astype(bool)


@frozen
class LabelPrivateRectangles(LabelPrivate, _OfRectangles):
    """The label-private learner of rectangles: the output is a `Rectangle`; all-zero is `concepts.rectangles.nothing`."""

    concepts: RectangleClass
    epsilon: Float[Array, ""]
    unlabelled: Any = None
    public: Examples | None = None
    limbs: int = static()

    def _words(self, data: Examples) -> UInt32[Array, "rows words"]:
        return data.x.reshape(data.rows, self.axes * self.limbs)

    def _inside(self, boxes: Rectangle, event: Any) -> Bool[Array, "h"]:
        if event is None:
            return jnp.ones(boxes.low.shape[0], bool)
        same = (boxes.low == event.low[None]) & (boxes.high == event.high[None])
        return jnp.all(same, axis=(1, 2))


def fitted(data: Any, concepts: RectangleClass, name: str = "examples") -> Examples:
    """Examples of X_bits^axes, checked and padded to their bucket.

    Raises:
      TypeError: data of another type. ValueError: data of another shape, or a valid point outside the domain (unless traced).
    """
    return fitted_examples(data, axes=concepts.axes, limbs=concepts.limbs, bits=concepts.bits, name=name)
