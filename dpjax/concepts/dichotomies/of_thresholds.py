"""Thresholds: n distinct points are labelled in n + 1 ways."""

from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int, Real, UInt32

from dpjax.concepts import thresholds as threshold_concept
from dpjax.concepts.dichotomies.base import Choices
from dpjax.core import arguments, sums
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
        """The threshold 0, which labels nothing 1, and the one after each point: for distinct points, these are all dichotomies."""
        x = wide.resize(points, self.limbs)
        after = wide.add(x, wide.one_like(x))
        return jnp.concatenate([jnp.zeros((1, self.limbs), jnp.uint32), after])

    def choices(self, points: UInt32[Array, "slots limbs"], named: Bool[Array, "slots"]) -> Choices:
        """0, and the thresholds after the named points."""
        where = jnp.concatenate([jnp.ones(1, bool), named])
        return Choices(concepts=self.each(points), where=where, right=self.right, fits=jnp.bool_(True))

    def right(self, ones: Real[Array, "slots"], zeros: Real[Array, "slots"]) -> Real[Array, "dichotomies"]:
        """How many examples, or how much weight, each threshold labels right, from both labels' numbers or weights at increasing points."""
        gained = sums.running(ones - zeros)
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
        """The label that each threshold gives to each point."""
        return jax.vmap(threshold_concept.label, in_axes=(0, None), out_axes=-1)(hypotheses, x).astype(bool)

    def right_if_realizable(self, hypotheses: UInt32[Array, "h more"], sample: MultiSample) -> Int[Array, "k h"]:
        """Right examples by label and threshold, if thresholds label the sample: wrong are those between the two ends of the ones."""
        before = jax.vmap(
            lambda h: jnp.sum(jnp.where(sample.valid, threshold_concept.label(h, sample.x), 0), dtype=jnp.int32)
        )
        return sample.n_valid - jnp.abs(before(hypotheses)[None] - threshold_concept.ones(sample)[:, None])


def thresholds(*, bits: int) -> ThresholdClass:
    """The class of thresholds over X_bits.

    Raises:
      TypeError, ValueError: bits is not an int from 1 to 4096.
    """
    bits = arguments.integer("bits", bits, at_least=1, at_most=wide.MAX_BITS)
    return ThresholdClass(bits=np.int32(bits), limbs=wide.limbs_for(bits + 1))
