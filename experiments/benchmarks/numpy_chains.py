"""Sums over all sorted tuples of outputs in tuned NumPy, on points of any kind: what `dpjax.optimizers.quantiles.chains` does.

A tuple z_1 <= ... <= z_m of integers weighs exp(-kappa c). Its cost c is the way that a number e must travel from e_0 = 0 through the
intervals [#{x < z_j} - T_j, #{x <= z_j} - T_j] to n - T_(m+1), with targets T_1 <= T_2 <= ... (as `chains` shows, by going no further than
it must). So e + T_j is the rank of output j: it is *kept* as it was within a value that points share, and otherwise *set* to an integer k,
from above at the upper end of a value that ends there (up to k points), in the gap between two values, or from below at the lower end of a
value that begins there. What makes it fast:

- **Near ranks.** Only ranks near the wanted ones are looked at. All others together get an upper bound (`rest`): ranks in blocks whose
  integers may have any rank of the block, so that there are few. A caller looks at more ranks until the rest is negligible.
- **Running sums.** Where all ranks of one output lie below those of the next, exp(-kappa |e - e'|) is a product on either side of e. So
  what may come before is two running sums. (Where they overlap, it is a product with a matrix.)
- Ranks that were set at outputs whose targets have the same fractional part are kept in one row: most often there is only one.
- Weights are stored themselves, not their logarithms: a weight too small for a float is nothing beside the rest.
"""

import functools
import math
from typing import Any, NamedTuple

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from experiments.benchmarks.numpy_driver import below, choose

UPPER, LOWER, GAP = range(3)  # how a rank is set: by GAP + c - 1 if it is that of a gap with c outputs so far
KEPT, ANY = -1, -2
UNIT = 2.0**-30  # to which targets are rounded
BLOCK = 4  # ranks in the first block that is not near; each of these is twice as wide as the one before
INNER = 4  # ranks in each block of near ones
STEEP = 40.0  # nats: running sums need factors up to exp(kappa half), which must be floats beside the weights

Array = NDArray[Any]


class Window(NamedTuple):
    """What the ranks around a centre are like, (rows, 2 half + 1); there is nothing at ranks below 0 or above n.

    Attributes:
      gap: how many integers lie between the points at this rank.
      inside: whether the rank lies inside a value.
      ends, begins: whether a value ends there, and whether one begins there.
    """

    gap: Array
    inside: Array
    ends: Array
    begins: Array


def window(x: Array, d: int, centre: int, half: int) -> Window:
    """The ranks centre - half, ..., centre + half of sorted points, (rows, n)."""
    n, first = x.shape[1], centre - half
    rank = np.arange(first, centre + half + 1)
    gap, inside = np.zeros((len(x), len(rank))), np.zeros((len(x), len(rank)), bool)
    begin, end = max(first, 1), min(centre + half + 1, n)
    if begin < end:
        here = slice(begin - first, end - first)
        gap[:, here] = x[:, begin:end] - x[:, begin - 1 : end - 1]
        np.equal(gap[:, here], 0, out=inside[:, here])
        gap[:, here] -= ~inside[:, here]
    if rank[0] <= 0 <= rank[-1]:
        gap[:, -first] = x[:, 0]
    if rank[0] <= n <= rank[-1]:
        gap[:, n - first] = x.dtype.type(2**d - 1) - x[:, n - 1]
    outside = ~inside
    return Window(gap, inside, outside & ((rank >= 1) & (rank <= n)), outside & ((rank >= 0) & (rank < n)))


class Near(NamedTuple):
    """Points, and their ranks near the wanted ones.

    Attributes:
      n: how many points there are.
      centres: (m + 1): 0, and the rank around which each output is looked for.
      windows: those around each centre.
      first, last: the first and last rank of each block, from the centre.
      reach: how far they reach, at least.
      outer: how many of them lie beyond the windows: the first ones.
      integers: (m, rows, blocks): how many integers have some of the ranks of each block around each centre, or of its neighbours.
    """

    n: int
    centres: Array
    windows: list[Window]
    first: Array
    last: Array
    reach: int
    outer: int
    integers: Array

    @property
    def half(self) -> int:
        """How many ranks are near on either side."""
        return self.windows[0].gap.shape[1] // 2


def near(x: Array, d: int, centres: Array, half: int, reach: int) -> Near:
    """The ranks up to `half` from each centre, and blocks of all that are up to `reach` from it or more."""
    first, last, outer = blocks(half, reach)
    low, high = (centres[:, None] + ends for ends in (first - 1, last + 1))
    before, behind = x[:, np.clip(low - 1, 0, x.shape[1] - 1)], x[:, np.clip(high, 0, x.shape[1] - 1)]
    found = np.where(high < x.shape[1], behind, 2.0**d) - np.where(low > 0, before, 0.0) + 1
    found *= (low <= x.shape[1]) & (high >= 0)
    windows = [window(x, d, centre, half) for centre in centres.tolist()]
    return Near(x.shape[1], np.append(0, centres), windows, first, last, reach, outer, found.transpose(1, 0, 2))


@functools.lru_cache(maxsize=64)
def blocks(half: int, reach: int) -> tuple[Array, Array, int]:
    """(First and last rank of each block, from the centre; how many of them are not near: they come first)."""
    beyond, edge, width = [], half + 1, BLOCK
    while edge <= reach:
        beyond.append((edge, edge + width - 1))
        edge, width = edge + width, 2 * width
    outer = [(-b, -a) for a, b in beyond] + beyond
    first, last = np.array(outer + [(a, min(a + INNER - 1, half)) for a in range(-half, half + 1, INNER)]).T
    return first, last, len(outer)


class Targets(NamedTuple):
    """T_1, ..., T_m, as seen from the centres, and the distance at the end. A rank i from centre j has e = i - over_j - part_j.

    Attributes:
      steps: T_j - T_(j-1), from T_0 = 0 on.
      over: (m + 1): the integer parts of T_j - centre_j.
      part: (m + 1): the fractional parts.
      parts: the different fractional parts, in order.
      row: (m + 1): which of them each has.
      end: n - T_(m+1).
    """

    steps: Array
    over: Array
    part: Array
    parts: Array
    row: Array
    end: float


def targets(wanted: Array, end: float, centres: Array) -> Targets:
    """From T_1, ..., T_m."""
    whole = np.rint(np.append(0.0, wanted) / UNIT).astype(np.int64)
    over, part = np.divmod(whole - (centres / UNIT).astype(np.int64), round(1 / UNIT))
    parts, row = np.unique(part, return_inverse=True)
    return Targets(np.diff(whole) * UNIT, over, part * UNIT, parts * UNIT, row.reshape(-1), end)


class Chain(NamedTuple):
    """The weights of outputs 1, ..., j, for each row and each rank near centre j.

    Attributes:
      near, aims, kappa: what it was made of.
      kept: for each j: (rows, parts, size).
      fixed: for each j: (rows, 2 + c, size), by `UPPER`, `LOWER` and `GAP` + c - 1.
      source: for j = 0, ..., m: (rows, parts, size), the sum of both; first, for all rows, the rank 0 from which they come.
      stay: for each j: (rows, size), what comes from the upper end of the same value; None if nothing can.
      last: (parts, size), the factors at the end.
      total: (rows,), the weight of all tuples near the centres.
      rest: (rows,), an upper bound on that of all others.
    """

    near: Near
    aims: Targets
    kappa: float
    kept: list[Array]
    fixed: list[Array]
    source: list[Array]
    stay: list[Any]
    last: Array
    total: Array
    rest: Array


def forward(near: Near, aims: Targets, kappa: float) -> Chain:
    """The chain on the near ranks."""
    half = near.half
    start = np.zeros((1, len(aims.parts), 2 * half + 1))  # the same for all rows: the first rank comes from 0
    start[:, aims.row[0], half] = 1.0
    kept, fixed, source, stay, before = [], [], [start], [], start[:, aims.row[:1]]
    for j, here in enumerate(near.windows, 1):
        shift, fade = int(near.centres[j] - near.centres[j - 1]), math.exp(-kappa * aims.steps[j - 1])
        above, beneath = _arriving(near, aims, kappa, source[-1], j)
        moved = _shifted(source[-1], int(aims.over[j - 1] - aims.over[j]))
        same, stays = moved[:, aims.row[j]], None
        if aims.steps[j - 1] > 0:
            above += same
        if shift <= 2 * half:
            stays = _shifted(before[:, UPPER], shift) * fade
            above = above + stays
        more = max(before.shape[1] - GAP, 0) if shift <= 2 * half else 0
        new = np.empty((len(here.gap), GAP + 1 + more, 2 * half + 1))
        np.multiply(above, here.ends, out=new[:, UPPER])
        np.multiply(beneath + same, here.begins, out=new[:, LOWER])
        np.multiply(above + beneath, here.gap, out=new[:, GAP])
        for c in range(2, more + 2):
            new[:, GAP + c - 1] = _shifted(before[:, GAP + c - 2], shift) * fade * ((here.gap + (c - 1)) / c)
        kept.append(moved * _may_keep(near, aims, j))
        source.append(kept[-1].copy())
        source[-1][:, aims.row[j]] += new.sum(axis=1)
        fixed.append(new)
        stay.append(stays)
        before = new
    away = aims.end + aims.over[-1] + aims.parts[:, None] - np.arange(-half, half + 1)
    last = np.exp(-kappa * np.abs(away))
    total = source[-1].reshape(-1, last.size) @ last.reshape(-1)
    return Chain(near, aims, kappa, kept, fixed, source, stay, last, total, _rest(near, aims, kappa, source))


def _shifted(weights: Array, shift: int) -> Array:
    """The weights of i + shift, 0 beyond the ends."""
    if shift == 0:
        return weights
    found, size = np.zeros_like(weights), weights.shape[-1]
    if abs(shift) < size:
        found[..., max(-shift, 0) : size - max(shift, 0)] = weights[..., max(shift, 0) : size - max(-shift, 0)]
    return found


def _may_keep(near: Near, aims: Targets, j: int) -> Array:
    """Whether a rank of each part lies within a value at output j: (rows, parts, size)."""
    half, inside = near.half, near.windows[j - 1].inside
    if len(aims.parts) == 1:
        return inside[:, None]
    rank = near.centres[j] + np.arange(-half, half + 1) + (aims.part[j] - aims.parts)[:, None]
    # A rank that is not in row j lies between two integers.
    within = np.repeat(((rank > 0) & (rank < near.n))[None], len(inside), axis=0)
    within[:, aims.row[j]] = inside
    return within


def _apart(near: Near, j: int, kappa: float) -> bool:
    """Whether all ranks near centre j lie above those near the one before, and factors are floats."""
    return bool(near.centres[j] - near.centres[j - 1] > 2 * near.half + 1 and kappa * near.half < STEEP)


def _arriving(near: Near, aims: Targets, kappa: float, source: Array, j: int) -> tuple[Array, Array]:
    """For each rank near centre j: the sums of exp(-kappa |e - e'|) over all e' > e of lower ranks, and over all e' < e."""
    half, size, moved = near.half, 2 * near.half + 1, int(aims.over[j - 1] - aims.over[j])
    if not _apart(near, j, kappa):
        decays = _decays(half, kappa, tuple(aims.parts.tolist()), int(aims.row[j]), moved, float(aims.steps[j - 1]))
        kernels = _rows(decays[:2])[:, :, ::-1].transpose(1, 3, 0, 2).reshape(-1, 2 * size)
        found = source.reshape(len(source), -1) @ kernels
        return found[:, :size], found[:, size:]
    rise, fall, before, behind = _factors(half, kappa, tuple(aims.parts.tolist()), int(aims.row[j]), moved)
    sums, back = np.zeros((2, len(source), size + 1))
    rising, falling = source * rise, source * fall
    np.cumsum(rising.sum(axis=1) if len(rise) > 1 else rising[:, 0], axis=1, out=sums[:, 1:])
    np.cumsum((falling.sum(axis=1) if len(fall) > 1 else falling[:, 0])[:, ::-1], axis=1, out=back[:, 1:])
    at, row = np.arange(size) + moved, int(aims.row[j])
    beneath, above = sums[:, np.clip(at, 0, size)], back[:, np.clip(size - 1 - at, 0, size)]
    if row + 1 < len(rise):
        beneath += _shifted(rising[:, row + 1 :].sum(axis=1), moved)
    if row > 0:
        above += _shifted(falling[:, :row].sum(axis=1), moved)
    beneath *= before
    above *= behind
    return above, beneath


@functools.lru_cache(maxsize=256)
def _factors(
    half: int, kappa: float, parts: tuple[float, ...], row: int, moved: int
) -> tuple[Array, Array, Array, Array]:
    """exp(kappa e') and exp(-kappa e') for each (part, e'); exp(-kappa e) and exp(kappa e) for each e, up to a common factor."""
    index = np.arange(-half, half + 1)
    old, new = index - np.array(parts)[:, None], index + moved - parts[row]
    return np.exp(kappa * old), np.exp(-kappa * old), np.exp(-kappa * new), np.exp(kappa * new)


@functools.lru_cache(maxsize=256)
def _decays(half: int, kappa: float, parts: tuple[float, ...], row: int, moved: int, step: float) -> Array:
    """exp(-kappa |e - e'|) for each part of e' and each difference of the ranks, (5, parts, 4 half + 1): where e' > e (and the rank was
    lower), where e' < e, and where an output may come from by `UPPER`, by `LOWER` and by `GAP`."""
    index = np.arange(-2 * half, 2 * half + 1) - moved
    away = index - np.array(parts)[:, None] + parts[row]
    factors = np.exp(-kappa * np.abs(away))
    same = (index == 0) & (np.arange(len(parts)) == row)[:, None]
    above, beneath = factors * ((away > 0) & ~same & (away < step - UNIT / 2)), factors * ((away < 0) & ~same)
    upper = above + same * (step > 0)
    return np.stack([above, beneath, upper, beneath + same, upper + beneath])


def _rows(decays: Array) -> Array:
    """Views: for each 2 half - i, those to all e' from one e."""
    return sliding_window_view(decays, decays.shape[-1] // 2 + 1, axis=-1)


# ---------------------------------------------------------------------------------------------------------- all other ranks


@functools.lru_cache(maxsize=1024)
def _block_kernels(half: int, kappa: float, parts: tuple[float, ...], reach: int, moved: int) -> tuple[Array, Array]:
    """The greatest exp(-kappa |e - e'|) from each (part, e') to each block that is not near, and from block to block."""
    first, last, outer = blocks(half, reach)
    low, high = first - parts[-1], last - parts[0]
    at = (np.arange(-half, half + 1) - np.array(parts)[:, None]).reshape(-1, 1) - moved
    away = np.maximum(np.maximum(low - at, at - high), 0.0)[:, :outer]
    between = np.maximum(np.maximum(low + moved - high[:, None], low[:, None] - high - moved), 0.0)
    return np.exp(-kappa * away), np.exp(-kappa * between)


def _rest(near: Near, aims: Targets, kappa: float, source: list[Array]) -> Array:
    """An upper bound on the weight of all tuples some of whose ranks are not near.

    From the first such rank on, each rank may be any one of its block, a new one for each of its two steps, and each output any integer
    that has some of these ranks.
    """
    parts, weights = tuple(aims.parts.tolist()), None
    for j, integers in enumerate(near.integers, 1):
        moved = int(aims.over[j - 1] - aims.over[j])
        enter, move = _block_kernels(near.half, kappa, parts, near.reach, moved)
        found = weights @ move if weights is not None else np.zeros((1, len(move)))
        found[:, : near.outer] += source[j - 1].reshape(len(source[j - 1]), -1) @ enter
        weights = found * integers
    low, high = near.first - parts[-1] - aims.over[-1], near.last - parts[0] - aims.over[-1]
    away = np.maximum(np.maximum(low - aims.end, aims.end - high), 0.0)
    return np.asarray(weights @ np.exp(-kappa * away))


# ---------------------------------------------------------------------------------------------------------- one tuple


def backward(rng: np.random.Generator, chain: Chain, rows: Array) -> tuple[Array, Array]:
    """A tuple for each of these rows: (whether each output lies in a gap; the gap's rank, or which point has the value), (m, rows)."""
    near, aims, (count, size) = chain.near, chain.aims, chain.last.shape
    half, many = near.half, count > 1
    gap, place = np.empty((len(chain.kept), len(rows)), bool), np.empty((len(chain.kept), len(rows)), int)
    part, index = np.divmod(
        choose(rng, chain.source[-1][rows].reshape(len(rows), count * size) * chain.last.reshape(-1)), size
    )
    forced = np.full(len(rows), ANY)
    for j in range(len(chain.kept), 0, -1):
        kept, fixed, stay = chain.kept[j - 1], chain.fixed[j - 1], chain.stay[j - 1]
        ways = np.empty((len(rows), 1 + fixed.shape[1]))
        ways[:, 0], ways[:, 1:] = kept[rows, part, index], fixed[rows, :, index]
        if many:
            ways[part != aims.row[j], 1:] = 0.0
        kind = np.where(forced >= KEPT, forced, choose(rng, ways) - 1)
        gap[j - 1] = kind >= GAP
        place[j - 1] = near.centres[j] + (index - half) + (kind == LOWER)
        if many:  # a rank between two integers lies within the value of the upper one
            place[j - 1] += (kind == KEPT) & (aims.parts[part] < aims.part[j])
        if j == 1:
            break
        moved, shift = int(aims.over[j - 1] - aims.over[j]), int(near.centres[j] - near.centres[j - 1])
        decays = _decays(
            half, chain.kappa, tuple(aims.parts.tolist()), int(aims.row[j]), moved, float(aims.steps[j - 1])
        )
        weights = np.empty((len(rows), count * size + 1))
        factors = _rows(decays[2:])[np.clip(kind, UPPER, GAP), :, 2 * half - index]
        flat = len(rows), count * size
        np.multiply(factors.reshape(flat), chain.source[j - 1][rows].reshape(flat), out=weights[:, :-1])
        weights[:, -1] = np.where((kind == UPPER) | (kind == GAP), stay[rows, index], 0.0) if stay is not None else 0.0
        at = choose(rng, weights)
        stays, again, on = (kind >= UPPER) & (at == count * size), kind > GAP, kind == KEPT
        forced = np.where(again, kind - 1, np.where(stays, UPPER, ANY))
        part = np.where(again | stays, aims.row[j - 1], np.where(on, part, at // size))
        index = np.where(again | stays, index + shift, np.where(on, index + moved, at % size))
    return gap, place


def ends_of(x: Array, rows: Array, gap: Array, place: Array) -> tuple[Array, Array]:
    """(#{x < z}, #{x <= z}) of each output, (m, rows), by what `backward` found for these rows of points."""
    low, high = place.copy(), place.copy()
    output, column = np.nonzero(~gap)
    if len(column):
        points, value = x[rows[column]], x[rows[column], place[output, column] - 1]
        greatest = points[:, -1]  # `below` asks for positions up to that
        low[output, column] = below(points, value)
        above = below(points, np.minimum(value + x.dtype.type(1), greatest))
        high[output, column] = np.where(value == greatest, x.shape[1], above)
    return low, high
