"""The pieces into which points cut the halfplanes of a chart, with their areas: slab by slab (GEO §4, Step 3).

In the dual plane a halfplane v >= a u + b is the point (a, b), and a data point (u, v) is the line b = v - a u. Between two consecutive
crossings of lines the order of the lines stays the same, and the area between two neighbours is their distance in the middle times the
width of the slab (a trapezoid). The places where a line leaves the chart, at b = low or b = high, are crossings, too. Lines of points with
the same u never cross, and concurrent crossings make slabs of width 0. These are O(m^3) numbers for m points: good for laws, but not for
draws (`dpjax.learners.halfplanes`).
"""

import functools
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int

from dpjax.concepts.plane.lattice import Lattice, lattice


class Slabs(NamedTuple):
    """All pieces of one chart, between consecutive lines of every slab; some have no area.

    Attributes:
      width: of the slab, in slopes, (slabs, 1).
      gap: the distance from the lower line of the piece to the upper one, the side of the grid being 1, (slabs, m + 1).
      order: the points from the lowest line to the highest, (slabs, m): piece j holds those from place j on.
      slope, height: of the middle of each piece, (slabs, m + 1), the side of the grid being 1.
    """

    width: Any
    gap: Any
    order: Any
    slope: Any
    height: Any


def slabs(grid: Lattice, chart: int, x: Float[Any, "m"], y: Float[Any, "m"], xp: Any = np) -> Slabs:
    """The pieces of one chart.

    Args:
      grid: the lattice.
      chart: the number of the chart.
      x, y: coordinates over 2^d.
      xp: numpy, or jax.numpy.
    """
    side, m = 2.0**grid.bits, x.shape[0]
    u, v = (y, x) if chart // 2 else (x, y)
    v = (1 - 1 / side) - v if chart % 2 else v
    reach, low = 2.0**grid.reach, grid.lows[chart] / side
    high = low + grid.blocks * 2.0 ** (grid.log_block - grid.fraction) / side
    first, second = np.triu_indices(m, 1)
    rise, run = v[first] - v[second], u[first] - u[second]
    crossings = [xp.where(run == 0, reach, rise / xp.where(run == 0, 1.0, run))]
    crossings += [xp.where(u == 0, reach, (v - end) / xp.where(u == 0, 1.0, u)) for end in (low, high)]
    ends = xp.concatenate([*crossings, xp.asarray([-reach, reach], dtype=x.dtype)])
    ends = xp.sort(xp.clip(ends, -reach, reach))
    width, slope = ends[1:] - ends[:-1], (ends[1:] + ends[:-1]) / 2
    heights = xp.clip(v[None] - slope[:, None] * u[None], low, high)
    order = xp.argsort(heights, axis=1)
    heights = xp.take_along_axis(heights, order, axis=1)
    edge = xp.ones((width.shape[0], 1), dtype=x.dtype)
    heights = xp.concatenate([low * edge, heights, high * edge], axis=1)
    bottom, top = heights[:, :-1], heights[:, 1:]
    middle = xp.broadcast_to(slope[:, None], top.shape)
    return Slabs(width=width[:, None], gap=top - bottom, order=order, slope=middle, height=(bottom + top) / 2)


class Table(NamedTuple):
    """All labellings of a small grid by halfplanes.

    Attributes:
      labels: of shape (labellings, points), points as `distributions.all_points`.
      share: the share of each labelling in the measure of all halfplanes.
      lines: (chart, slope, height) of one halfplane for each labelling, in steps from the least: in the middle of its largest piece.
    """

    labels: Bool[np.ndarray, "labellings points"]
    share: Float[np.ndarray, "labellings"]
    lines: Int[np.ndarray, "labellings 3"]


@functools.lru_cache(maxsize=8)
def table(bits: int, measure: str) -> Table:
    """Every labelling of the grid, and its share of the measure, in float64.

    >>> [len(table(bits, "axes").share) for bits in (1, 2)], round(float(table(1, "box").share.sum()), 12)
    ([14, 174], 1.0)
    """
    grid, side = lattice(bits, measure), 2**bits
    points = np.array([(index // side, index % side) for index in range(side**2)]) / side
    found: dict[bytes, float] = {}
    largest: dict[bytes, tuple[float, int, int, int]] = {}
    for chart in range(grid.charts):
        pieces = slabs(grid, chart, points[:, 0], points[:, 1])
        place = np.argsort(pieces.order, axis=1)
        held = place[:, None, :] >= np.arange(side**2 + 1)[None, :, None]
        steps = [
            np.floor(2.0**grid.fraction * offset).astype(np.int64)
            for offset in (pieces.slope + 2.0**grid.reach, side * pieces.height - grid.lows[chart])
        ]
        area = pieces.width * pieces.gap
        wide_enough = area > 1e-12 * area.sum()  # the others are rounded zeros
        for labels, size, *line in zip(*(each[wide_enough] for each in (held, area, *steps)), strict=True):
            key = labels.tobytes()
            found[key] = found.get(key, 0.0) + float(size)
            slope, height = map(int, line)
            largest[key] = max(largest.get(key, (0.0, 0, 0, 0)), (float(size), chart, slope, height))
    keys = sorted(found)
    share = np.array([found[key] for key in keys])
    labels = np.array([np.frombuffer(key, bool) for key in keys])
    return Table(labels, share / share.sum(), np.array([largest[key][1:] for key in keys]))
