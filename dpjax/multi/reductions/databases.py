"""Mixtures of sanitized databases, and databases of labelled points.

BNS §5 writes x o y for the point x with the label y, a point of X_(d+1); here it is the number 2 x + y. For a concept c over X_d,
c^label(x o y) = 1 iff c(x) != y, so that Q_(c^label) of a labelled database is the error of c on it.
"""

from typing import Any, NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, UInt32

from dpjax.concepts.dichotomies import PointClass, ThresholdClass
from dpjax.core import arguments
from dpjax.data.outcome import Outcome
from dpjax.data.sample import Sample
from dpjax.data.weighted import Weighted
from dpjax.domains import groups, wide


def check_sanitizer(sanitizer: Any) -> Any:
    """The sanitizer, if it is callable and states its guarantee and its domain; TypeError otherwise."""
    if not (callable(sanitizer) and hasattr(sanitizer, "guarantee") and hasattr(sanitizer, "bits")):
        raise TypeError(f"sanitizer must be one of dpjax.sanitizers that releases a database, got {sanitizer!r}")
    return sanitizer


def database_of(outcome: Outcome) -> Weighted:
    """What a sanitizer released; TypeError if that is not a database."""
    return arguments.instance("the sanitizer's release", outcome.hypothesis, Weighted)


def mixture(x: UInt32[Array, "q slots limbs"], weights: Any, totals: Float[Array, "q"]) -> Weighted:
    """q databases as one, in which each has its total weight from `totals`."""
    weights = weights.astype(float)
    shares = weights / jnp.maximum(jnp.sum(weights, axis=1, keepdims=True), 1e-30)
    each = (totals[:, None] * shares).ravel()
    found = groups.group(x.reshape(-1, x.shape[-1]), each > 0)
    return Weighted(x=found.rows, weights=_sums(found, each), n_valid=found.size)


def labelled(x: UInt32[Array, "n limbs"], y: Int[Array, "n"], limbs: int) -> UInt32[Array, "n more"]:
    """x o y, with `limbs` limbs."""
    x = wide.resize(x, limbs)
    return wide.add(wide.add(x, x), wide.from_uint32(y.astype(jnp.uint32), limbs))


class ByPoint(NamedTuple):
    """A labelled database, grouped by points.

    Attributes:
      points: distinct, increasing; valid: which of them count.
      ones, zeros: the weight of each point with either label.
    """

    points: UInt32[Array, "slots limbs"]
    valid: Bool[Array, "slots"]
    ones: Float[Array, "slots"]
    zeros: Float[Array, "slots"]

    @classmethod
    def of(cls, x: UInt32[Array, "n limbs"], weights: Float[Array, "n"]) -> "ByPoint":
        """From labelled points, which may repeat; those of weight 0 are left out."""
        one = x[:, -1] % 2 == 1
        found = groups.group(wide.shift_right(x, jnp.ones(x.shape[0], jnp.int32)), weights != 0)
        ones, zeros = (_sums(found, jnp.where(label, weights, 0.0)) for label in (one, ~one))
        return cls(points=found.rows, valid=found.valid, ones=ones, zeros=zeros)

    def choices(self, concepts: Any) -> tuple[Any, Bool[Array, "h"], Float[Array, "h"]]:
        """(one concept for every dichotomy of the points, which of them count, the weight that each labels right)."""
        where = jnp.concatenate([jnp.ones(1, bool), self.valid])
        return concepts.each(self.points), where, concepts.right(self.ones, self.zeros)


def label_error(concepts: Any, database: Weighted, sample: Sample) -> Float[Array, ""]:
    """The largest difference between the error of a concept on a labelled database and on the sample: the error over C^label.

    Args:
      concepts: `thresholds(bits=...)` or `points(bits=...)` of `dpjax.concepts.dichotomies`.
      database: labelled points x o y = 2 x + y, as `label_class` releases them.
      sample: at least one example.

    Raises:
      TypeError: an argument of another kind.

    >>> import numpy as np
    >>> from dpjax.concepts import dichotomies
    >>> sample = Sample(x=wide.from_ints([1, 5, 5, 6], 3), y=[1, 1, 0, 0])
    >>> database = Weighted.create(wide.from_ints([2 * 1 + 1, 2 * 5 + 1, 2 * 6], 4), [1, 1, 2])
    >>> float(label_error(dichotomies.thresholds(bits=3), database, sample))  # c_6 is right on all, and on three of four
    0.25
    """
    if not isinstance(concepts, ThresholdClass | PointClass):
        raise TypeError(f"concepts must be thresholds(bits=...) or points(bits=...), got {concepts!r}")
    arguments.instance("sample", sample, Sample)
    arguments.instance("database", database, Weighted)
    limbs = max(database.x.shape[-1], sample.x.shape[-1] + 1)  # 2 x + y may need one more
    x = jnp.concatenate([wide.resize(database.x, limbs), labelled(sample.x, sample.y, limbs)])
    total = jnp.maximum(jnp.sum(database.weights.astype(float)), 1e-30)
    one = x[:, -1] % 2 == 1
    weights = jnp.concatenate([database.weights.astype(float), jnp.zeros(sample.rows)])
    rows = jnp.concatenate([jnp.zeros(database.rows, jnp.int32), sample.valid.astype(jnp.int32)])
    found = groups.group(wide.shift_right(x, jnp.ones(x.shape[0], jnp.int32)), (weights != 0) | (rows != 0))

    def differences(label: Array) -> Array:
        """By point: examples are counted before they become shares, as a scatter adds one after the other, and rounds every sum."""
        counted = found.sums(jnp.where(label, rows, 0)).astype(float) / sample.n_valid.astype(float)
        return _sums(found, jnp.where(label, weights, 0.0)) / total - counted

    grouped = ByPoint(found.rows, found.valid, differences(one), differences(~one))
    _, where, right = grouped.choices(concepts)
    # The weight labelled wrong is the total less that labelled right; both totals are equal, unless the database is empty.
    wrong = jnp.sum(grouped.ones + grouped.zeros) - right
    return jnp.where(sample.n_valid >= 1, jnp.max(jnp.where(where, jnp.abs(wrong), 0.0)), jnp.nan)


def _sums(found: groups.Groups, weights: Float[Array, "n"]) -> Float[Array, "slots"]:
    """The weight of every group."""
    return jnp.zeros(found.counts.shape[0], weights.dtype).at[found.member].add(weights, mode="drop")
