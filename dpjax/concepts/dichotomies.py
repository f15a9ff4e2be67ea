"""Classes of concepts by what they do on a few points: one concept for every way in which the class labels them."""

from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int, Real, UInt32

from dpjax.concepts import points as point_concept
from dpjax.concepts import thresholds as threshold_concept
from dpjax.core import arguments
from dpjax.core.pytree import frozen, static
from dpjax.data.multi_sample import MultiSample
from dpjax.domains import wide


@frozen
class ThresholdClass:
    """c_j(x) = 1 iff x < j on X_bits."""

    vc: ClassVar[int] = 1
    bits: Int[Any, ""]
    limbs: int = static()

    def each(self, points: UInt32[Array, "slots limbs"]) -> UInt32[Array, "dichotomies more"]:
        """The threshold 0, which labels nothing 1, and the one after each point: of distinct points, all dichotomies."""
        x = wide.resize(points, self.limbs)
        after = wide.add(x, wide.from_uint32(jnp.ones(x.shape[0], jnp.uint32), self.limbs))
        return jnp.concatenate([jnp.zeros((1, self.limbs), jnp.uint32), after])

    def right(self, ones: Real[Array, "slots"], zeros: Real[Array, "slots"]) -> Real[Array, "dichotomies"]:
        """How many examples, or what weight, each of them labels right, from the labels of each point; points increase."""
        gained = jnp.cumsum(ones - zeros, dtype=ones.dtype)
        return jnp.sum(zeros, dtype=ones.dtype) + jnp.concatenate([jnp.zeros(1, ones.dtype), gained])

    def representatives(
        self, points: UInt32[Array, "slots limbs"], where: Bool[Array, "slots"]
    ) -> tuple[UInt32[Array, "dichotomies more"], Bool[Array, "dichotomies"], Bool[Array, ""]]:
        """(thresholds, which of them count, all fit): the one after each point, and 0; of equal ones the first counts."""
        x = wide.sort(jnp.where(where[:, None], wide.resize(points, self.limbs), np.uint32(2**32 - 1)))[0]
        n = jnp.sum(where, dtype=jnp.int32)
        first = jnp.concatenate([jnp.ones(1, bool), ~wide.equal(x[1:], x[:-1])])
        kept = first & (jnp.arange(x.shape[0], dtype=jnp.int32) < n)
        return self.each(x), jnp.concatenate([jnp.ones(1, bool), kept]), jnp.bool_(True)

    def predict(self, hypotheses: UInt32[Array, "h more"], x: UInt32[Array, "rows limbs"]) -> Bool[Array, "rows h"]:
        """What each threshold says of each point."""
        return jax.vmap(threshold_concept.label, in_axes=(0, None), out_axes=-1)(hypotheses, x).astype(bool)

    def right_if_realizable(self, hypotheses: UInt32[Array, "h more"], sample: MultiSample) -> Int[Array, "k h"]:
        """Right examples by label and threshold, if thresholds label the sample: wrong are those between both ends of the ones."""
        before = jax.vmap(
            lambda h: jnp.sum(jnp.where(sample.valid, threshold_concept.label(h, sample.x), 0), dtype=jnp.int32)
        )
        return sample.n_valid - jnp.abs(before(hypotheses)[None] - threshold_concept.ones(sample)[:, None])


@frozen
class PointClass:
    """c_x, and the all-zero concept (BNS Remark 3.3), which stands for every point outside the sanitized database."""

    vc: ClassVar[int] = 1
    bits: Int[Any, ""]
    most: int = static()

    def each(self, points: UInt32[Array, "slots limbs"]) -> point_concept.Point:
        """All-zero, and each point: of distinct points, all dichotomies."""
        position = jnp.concatenate([jnp.zeros((1, points.shape[1]), jnp.uint32), points])
        return point_concept.Point(position=position, zero=jnp.arange(position.shape[0], dtype=jnp.int32) == 0)

    def right(self, ones: Real[Array, "slots"], zeros: Real[Array, "slots"]) -> Real[Array, "dichotomies"]:
        """How many examples, or what weight, each of them labels right, from the labels of each point."""
        return jnp.sum(zeros, dtype=ones.dtype) + jnp.concatenate([jnp.zeros(1, ones.dtype), ones - zeros])

    def representatives(
        self, points: UInt32[Array, "slots limbs"], where: Bool[Array, "slots"]
    ) -> tuple[point_concept.Point, Bool[Array, "dichotomies"], Bool[Array, ""]]:
        """(concepts, which of them count, all fit): all-zero, and the points of the sanitized database, distinct and in front."""
        fits = ~jnp.any(where[self.most :])
        points, where = points[: self.most], where[: self.most]
        return self.each(points), jnp.concatenate([jnp.ones(1, bool), where]), fits

    def predict(self, hypotheses: point_concept.Point, x: UInt32[Array, "rows limbs"]) -> Bool[Array, "rows h"]:
        """What each concept says of each point."""
        return hypotheses.predict(x)


def thresholds(*, bits: int) -> ThresholdClass:
    """The class of thresholds over X_bits.

    Raises:
      TypeError, ValueError: bits is no int from 1 to 4096.
    """
    bits = arguments.integer("bits", bits, at_least=1, at_most=wide.MAX_BITS)
    return ThresholdClass(bits=np.int32(bits), limbs=wide.limbs_for(bits + 1))


def points(*, bits: int, most: int = 256) -> PointClass:
    """The class of points over X_bits, with the all-zero concept.

    Args:
      bits: of the domain, 1 to 4096.
      most: points a sanitized database may name; if it names more, the status is BOTTOM. A release that names only points of count
        above c names at most n/c.

    Raises:
      TypeError, ValueError: an argument out of range.
    """
    bits = arguments.integer("bits", bits, at_least=1, at_most=wide.MAX_BITS)
    return PointClass(bits=np.int32(bits), most=arguments.size("most", most))
