"""Labelled points of the plane: uniform on the grid, or given points with given probabilities; errors exactly, or by areas."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, UInt32

from dpjax.concepts.distribution import Distribution
from dpjax.concepts.plane.lattice import MOST_BITS
from dpjax.concepts.plane.regions import Region, check_same_plane, difference, label
from dpjax.core import arguments, random
from dpjax.core.pytree import frozen
from dpjax.data.examples import Examples
from dpjax.domains import wide

COUNTED = 8  # the most bits of a grid of which every point is examined


@frozen
class Uniform(Distribution):
    """All points of {0, ..., 2^d - 1}^2 with equal probability; build it by `dpjax.concepts.polygons.uniform`.

    Attributes:
      target: the region that labels.
    """

    target: Region

    def draw(self, key: Array, capacity: int, n: Int[Array, ""]) -> Examples:
        d = self.target.bits
        limbs = wide.limbs_for(d)
        x = random.bits(key, 2 * limbs * capacity).reshape(capacity, 2, limbs)
        x = x.at[..., 0].set(x[..., 0] >> np.uint32(32 * limbs - d))
        return Examples(x=x, y=label(self.target, x).astype(jnp.int32), n_valid=n)

    @jax.jit
    def error(self, hypothesis: Region) -> Float[Array, ""]:
        """P[h(x) differs from the target].

        Up to d = 8, points are counted. Beyond that, the error is taken as the area of the difference, with cells around the points in
        place of the points: the cells that a line cuts change it by at most 2^(1-d) for each side of both regions. The time then grows
        like the fourth power of the number of sides: 256 take a second.
        """
        check_same_plane(hypothesis, self.target)
        if self.target.bits > COUNTED:
            return difference(hypothesis, self.target)
        x = all_points(self.target.bits)
        return jnp.mean(label(hypothesis, x) != label(self.target, x), dtype=float)


@frozen
class Masses(Distribution):
    """Given points with given probabilities; build it by `dpjax.concepts.polygons.masses`.

    Attributes:
      x: the points.
      share: their probabilities.
      ends: the cumulative probabilities, as multiples of 2^-32; the last one, 1, is left out.
      target: the region that labels.
    """

    x: UInt32[Array, "m 2 limbs"]
    share: Float[Array, "m"]
    ends: UInt32[Array, "ends"]
    target: Region

    def draw(self, key: Array, capacity: int, n: Int[Array, ""]) -> Examples:
        x = self.x[jnp.searchsorted(self.ends, random.bits(key, capacity), side="right")]
        return Examples(x=x, y=label(self.target, x).astype(jnp.int32), n_valid=n)

    @jax.jit
    def error(self, hypothesis: Region) -> Float[Array, ""]:
        """P[h(x) differs from the target], the sum over the points."""
        check_same_plane(hypothesis, self.target)
        differ = label(hypothesis, self.x) != label(self.target, self.x)
        return jnp.sum(jnp.where(differ, self.share, 0.0))


def all_points(bits: int) -> UInt32[Array, "points 2 1"]:
    """All points of the grid, in the order of x, then of y."""
    index = jnp.arange(4**bits, dtype=jnp.uint32)
    return jnp.stack([index >> np.uint32(bits), index & np.uint32(2**bits - 1)], axis=1)[..., None]


def uniform(*, bits: int, target: Region) -> Uniform:
    """See `dpjax.concepts.polygons.uniform`."""
    bits = arguments.integer("bits", bits, at_least=1, at_most=MOST_BITS)
    return Uniform(target=_target(target, bits))


def masses(*, bits: int, points: Any, target: Region, p: Any = None) -> Masses:
    """See `dpjax.concepts.polygons.masses`."""
    bits = arguments.integer("bits", bits, at_least=1, at_most=MOST_BITS)
    target = _target(target, bits)
    rows = [arguments.several("points", row) for row in arguments.several("points", points)]
    rows = [[int(c) if isinstance(c, np.integer) else c for c in row] for row in rows]
    if not rows or any(len(row) != 2 for row in rows):
        raise ValueError("points must be a list of one pair (x, y) or more")
    x = wide.from_ints([c for row in rows for c in row], bits, "points").reshape(len(rows), 2, -1)
    share = np.full(len(rows), 1 / len(rows)) if p is None else np.asarray(arguments.array("p", p), np.float64)
    if share.shape != (len(rows),) or not (share >= 0).all() or not abs(share.sum() - 1) < 1e-6:
        raise ValueError(
            f"p must be {len(rows)} probabilities with the sum 1, got shape {share.shape}, sum {share.sum()}"
        )
    possible = np.flatnonzero(share)
    ends = np.round(np.cumsum(share[possible] / share.sum()) * 2.0**32)
    ends[-1] = 2.0**32
    some = np.diff(ends, prepend=0.0) > 0  # the probabilities of the others are rounded to 0
    possible, ends = possible[some], ends[some]
    return Masses(
        x=x[possible],
        share=jnp.asarray(np.diff(ends, prepend=0.0) / 2.0**32, float),
        ends=jnp.asarray(ends[:-1].astype(np.uint32)),
        target=target,
    )


def _target(target: Region, bits: int) -> Region:
    arguments.instance("target", target, Region)
    if target.bits != bits:
        raise ValueError(f"target must be a region of {bits} bits, got {target.bits}")
    return target
