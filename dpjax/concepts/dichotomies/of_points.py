"""Points: n distinct points are labelled in n + 1 ways, by each of them and by the all-zero concept."""

from typing import Any, ClassVar

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int, Real, UInt32

from dpjax.concepts import points as point_concept
from dpjax.concepts.dichotomies.base import Choices
from dpjax.core import arguments
from dpjax.core.pytree import frozen, static
from dpjax.domains import wide


@frozen
class PointClass:
    """c_x, and the all-zero concept (BNS Remark 3.3), which stands for every point outside the sanitized database."""

    vc: ClassVar[int] = 1
    bits: Int[Any, ""]
    most: int = static()

    def each(self, points: UInt32[Array, "slots limbs"]) -> point_concept.Point:
        """All-zero, and each point: for distinct points, these are all dichotomies."""
        position = jnp.concatenate([jnp.zeros((1, points.shape[1]), jnp.uint32), points])
        return point_concept.Point(position=position, zero=jnp.arange(position.shape[0], dtype=jnp.int32) == 0)

    def choices(self, points: UInt32[Array, "slots limbs"], named: Bool[Array, "slots"]) -> Choices:
        """All-zero, and the named points."""
        where = jnp.concatenate([jnp.ones(1, bool), named])
        return Choices(concepts=self.each(points), where=where, right=self.right, fits=jnp.bool_(True))

    def right(self, ones: Real[Array, "slots"], zeros: Real[Array, "slots"]) -> Real[Array, "dichotomies"]:
        """How many examples, or how much weight, each concept labels right, given the numbers or weights of both labels at each point."""
        return jnp.sum(zeros, dtype=ones.dtype) + jnp.concatenate([jnp.zeros(1, ones.dtype), ones - zeros])

    def representatives(
        self, points: UInt32[Array, "slots limbs"], where: Bool[Array, "slots"]
    ) -> tuple[point_concept.Point, Bool[Array, "dichotomies"], Bool[Array, ""]]:
        """(concepts, which of them count, all fit): all-zero, and the points of the sanitized database, distinct and in front."""
        fits = ~jnp.any(where[self.most :])
        points, where = points[: self.most], where[: self.most]
        return self.each(points), jnp.concatenate([jnp.ones(1, bool), where]), fits

    def predict(self, hypotheses: point_concept.Point, x: UInt32[Array, "rows limbs"]) -> Bool[Array, "rows h"]:
        """The label that each concept gives to each point."""
        return hypotheses.predict(x)


def points(*, bits: int, most: int = 256) -> PointClass:
    """The class of points over X_bits, with the all-zero concept.

    Args:
      bits: d, 1 to 4096.
      most: the most points that a sanitized database may name; if it names more, the status is BOTTOM. A release that names only points of
        count above c names at most n/c.

    Raises:
      TypeError, ValueError: an argument out of range.
    """
    bits = arguments.integer("bits", bits, at_least=1, at_most=wide.MAX_BITS)
    return PointClass(bits=np.int32(bits), most=arguments.size("most", most))
