"""The threshold trials of `dpjax`, written for NumPy alone and tuned: the opponent in a benchmark of trials per second.

A trial draws n examples from `LogUniform` around the target T = 2^(d-1) (x = T - floor(2^U) or T + floor(2^U), U uniform on [0, d-1),
a fair coin for the side; the label is 1 iff x < T), runs a learner at epsilon = 1, delta = 1e-6 on them and reports whether the population
error of the released threshold is at most 1/10. Bottom is a failure. The laws are those of `dpjax.learners.thresholds` with
`rec_concave(alpha=0.2, depth=2, calibration="printed")` and `binary_search(delta=0)`.

Every trial draws all of its n examples. (Drawing only those near the target, with a gamma variable for the rest, would have the same law
and cost next to nothing, but then there would be no sample for anybody to learn from.) What is exploited:

- The samples are realizable, so the number of errors grows away from the target on both sides. An example is its side and distance: the
  sorted distances a_1 <= a_2 ... on the left, b_1 <= b_2 ... on the right, say everything. A threshold is its side and its RANK r >= 1,
  T + 1 - h on the left and h - T on the right: exactly k errors are made by the ranks r with a_k < r <= a_{k+1} (on the right b), and the
  population error is log2(r) / (2 (d-1)). Both sides have the same law.
- Uniform words on a circle with the target at 0: words counted from the front are right distances, from the back left ones, in units of
  (d-1) 2^-31 octaves. ERM needs their minimum and maximum, and the binary search some counts, so neither sorts.
- Sorted distances come from partial sums of exponential spacings: only as many as can matter (`_reach`), and of the others only the sum.
  Partial sums are of integers, because NumPy's floating-point ones wait for memory at each step, which is six times slower.
- exp(-epsilon errors(r) / 2) is a mixture of uniform laws on the ranks 1, ..., a_k: draw the layer k, then a rank.
- The binary search is lost at the first wrong turn, so coins are drawn first, and examples are counted only where a coin leaves doubt.
- Samples are drawn in pieces that stay in cache; the smaller arrays that remain are processed in larger batches.

Rounding: distances are float32 for d <= 64, float64 above; spacings are cut to about 2^-20 of their mean; categorical draws have
weights rounded to 2^-30. Examples that are left out change a trial with probability below 2e-7. A_dist with gap 0 releases with
probability 9e-8 as printed; here it does so only where the block holds the target.
"""

import functools
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from experiments.benchmarks.numpy_driver import Program, exponentials, fitting, fractions, tally, within, words

EPSILON, DELTA, ALPHA = 1.0, 1e-6, 0.1
MECHANISMS = 6  # RecConcave of depth 2 gives each mechanism epsilon / 6 and delta / 6
SHARE = EPSILON / MECHANISMS
INNER_ALPHA = 0.1  # LearnThresholds at 0.2 runs RecConcave at half of it
STABILITY_THRESHOLD = math.log(MECHANISMS / DELTA) / SHARE  # A_dist as printed
NEGLIGIBLE = 25.0  # what weighs exp(-25) of the whole is ignored

DATA_BYTES = 1 << 20  # words drawn at a time

Floats = NDArray[Any]
Counts = NDArray[Any]
Words = NDArray[np.uint32]


@dataclass(frozen=True)
class Cell:
    """Domain {0, ..., 2^d - 1} and sample size n."""

    d: int
    n: int

    @property
    def octaves(self) -> int:
        """Distances are below 2^octaves, which is also the target."""
        return self.d - 1

    @property
    def dtype(self) -> type:
        """Float that holds 2^d (infinity stands for 2^1024: its exponent bits say 1024)."""
        return np.float32 if self.d <= 64 else np.float64

    @property
    def width(self) -> float:
        """The largest rank whose error, log2(rank) / (2 octaves), is at most alpha."""
        return float(math.floor(2.0 ** (2 * ALPHA * self.octaves)))


# -------------------------------------------------------------------------------------------------------- the sample


def _pieces(rows: int, columns: int) -> list[slice]:
    """Cuts a batch into runs of rows whose words stay in cache."""
    step = max(1, DATA_BYTES // (4 * columns))
    return [slice(start, min(start + step, rows)) for start in range(0, rows, step)]


def _distances(cell: Cell, positions: Floats) -> Floats:
    """floor(2^U), given U: integers; past the end of a side, T itself, the rank of the last threshold."""
    np.minimum(positions, cell.octaves, out=positions)
    np.exp2(positions, out=positions)
    return np.floor(positions, out=positions)


def _reach(cell: Cell, errors: float, exponent: float, epsilon: float) -> int:
    """How many examples of a side can matter, if `errors` errors do and weights exp(-exponent) times as large do not."""
    return min(cell.n, math.ceil(errors + 2 * exponent / epsilon))


def _nearest(rng: np.random.Generator, cell: Cell, rows: int, reach: int) -> Floats:
    """The `reach` least distances of each side in order; shape (2, rows, reach).

    The spacings of n uniform points on a circle are n + 1 exponentials over their sum (Renyi), and which is which does not matter: the
    first `reach` stand right of the target, the next left of it, and of the rest only the sum is needed.
    """
    limit = min(reach + math.sqrt(140 * reach) + 70, 23 * reach)  # exceeded with probability below exp(-70)
    unit = np.float32((2**31 - 2**8) / limit)
    sums = np.empty((2, rows, reach), np.int32)
    total = np.empty(rows, np.float32)
    middle = cell.n + 1 - 2 * reach
    for piece in _pieces(rows, cell.n + 1):
        count = piece.stop - piece.start
        spacings = exponentials(words(rng, count, cell.n + 1 - max(middle, 0)))
        total[piece] = spacings.sum(axis=1)
        if middle > 0:
            total[piece] += _sums_of_exponentials(words(rng, count, middle))
        spacings *= unit
        units = spacings.astype(np.int32)
        np.cumsum(units[:, :reach], axis=1, dtype=np.int32, out=sums[0, piece])
        # Where the sides meet, the left one is the same spacings, seen from the other end.
        other = units[:, reach:] if middle >= 0 else units[:, : -reach - 1 : -1]
        np.cumsum(other, axis=1, dtype=np.int32, out=sums[1, piece])
    positions: Floats = sums.astype(cell.dtype)
    positions *= (2 * cell.octaves / unit / total).astype(cell.dtype)[:, None]
    return _distances(cell, positions)


def _sums_of_exponentials(drawn: Words) -> NDArray[np.float32]:
    """Sums of the exponentials that each row makes; one logarithm serves two of them."""
    uniform = fractions(drawn)
    half = drawn.shape[1] // 2
    sums = np.zeros(len(drawn), np.float32)
    if drawn.shape[1] % 2:
        sums -= np.log(uniform[:, -1])
    pairs = uniform[:, :half]
    pairs *= uniform[:, half : 2 * half]
    sums -= np.log(pairs, out=pairs).sum(axis=1)
    return sums


# ----------------------------------------------------------------------------------------------------- the mechanisms


def _choose(rng: np.random.Generator, weights: Floats) -> Counts:
    """An index of each row with probability proportional to its weight (largest weight not 0), by inverse CDF."""
    total = weights.sum(axis=1)
    units = (weights * (2.0**30 / total)[:, None].astype(weights.dtype)).astype(np.uint32)
    sums = np.cumsum(units, axis=1, dtype=np.uint32)
    below = (rng.random(len(weights)) * sums[:, -1]).astype(np.uint32)
    return tally(sums <= below[:, None])


@functools.lru_cache
def _layers(epsilon: float, reach: int, dtype: np.dtype[Any]) -> Floats:
    """Weights of the layers: exp(-epsilon k / 2) is the sum of layers k + 1, ..., reach."""
    density = np.exp(-epsilon / 2 * np.arange(reach))
    return np.append(density[:-1] - density[1:], density[-1]).astype(dtype)


def _released(rng: np.random.Generator, sides: Floats, epsilon: float) -> Floats:
    """A real number in (rank - 1, rank] for the rank that the exponential mechanism chooses, given the ends of the pieces.

    sides[s, i, k] is the last rank with k errors on side s of sample i, clipped to the ranks that may be chosen.
    """
    rows, reach = sides.shape[1:]
    layers = _layers(epsilon, reach, sides.dtype)
    masses = np.einsum("sik,k->si", sides, layers, dtype=sides.dtype)
    side = (rng.random(rows) * (masses[0] + masses[1]) >= masses[0]).astype(np.intp)
    ends = sides[side, np.arange(rows)]
    layer = _choose(rng, ends * layers)
    return rng.random(rows) * ends[np.arange(rows), layer]


# -------------------------------------------------------------------------------------------------------- the learners


def erm(rng: np.random.Generator, cell: Cell, rows: int) -> int:
    """Uniform among the thresholds without an error: a_1 ranks on the left, b_1 on the right."""
    extreme = np.empty((2, rows), np.uint32)
    for piece in _pieces(rows, cell.n):
        drawn = words(rng, piece.stop - piece.start, cell.n)
        extreme[0, piece] = ~drawn.max(axis=1)
        extreme[1, piece] = drawn.min(axis=1)
    ends = _distances(cell, extreme * (cell.octaves * 2.0**-31)) / 2  # halved, so that 2^1023 + 2^1023 fits
    point = rng.random(rows) * ends.sum(axis=0)
    return int(np.count_nonzero(np.where(point < ends[0], point, point - ends[0]) < cell.width / 2))


def exponential(rng: np.random.Generator, cell: Cell, rows: int) -> int:
    """The exponential mechanism over all thresholds."""
    reach = _reach(cell, 0, cell.octaves * math.log(2) + NEGLIGIBLE, EPSILON)
    ends = _nearest(rng, cell, rows, reach)
    ends *= cell.dtype(0.25)  # so that masses fit
    return int(np.count_nonzero(_released(rng, ends, EPSILON) < cell.width / 4))


def binary_search(rng: np.random.Generator, cell: Cell, rows: int) -> int:
    """Noisy binary search, followed no further than its success is in doubt.

    The first midpoint is the target: D = 0 there, and either side is taken with probability 1/2. After that a midpoint leaves the ranks
    up to s inward and those above outward, and the search goes outward iff #{distances <= s} <= Lap(2 / epsilon_0).
    """
    return sum(_searches(rng, cell, piece.stop - piece.start) for piece in _pieces(rows, cell.n))


def _searches(rng: np.random.Generator, cell: Cell, rows: int) -> int:
    """Successes among `rows` searches."""
    outside, near = _path(cell)
    drawn = words(rng, rows, cell.n)
    alive = _never_outward(cell, drawn, words(rng, rows, len(outside)), outside)
    successes = 0
    for cut, good in near:
        if not alive.size:
            break
        inward = words(rng, alive.size, 1)[:, 0] >= _odds(cell, tally(drawn[alive] < cut))
        successes += int(np.count_nonzero(inward)) if good else 0
        alive = alive[inward != good]
    return successes + alive.size


@functools.lru_cache
def _path(cell: Cell) -> tuple[Words, list[tuple[np.uint32, bool]]]:
    """The midpoints s on the way to the edge of the success zone, as numbers of words at distance <= s.

    First those that come before any in the zone, innermost first: to go outward at one is to fail. Then the others in order, each with
    whether it lies in the zone: if so, to go inward there is to succeed.
    """
    low, high = 0, 1 << cell.octaves  # ranks low + 1, ..., high are left
    steps = []
    while high > cell.width:
        middle = (low + high) // 2
        good = middle < cell.width
        cut = math.ceil(math.log2(middle + 1) / cell.octaves * 2.0**31)
        steps.append((np.uint32(cut), good))
        low, high = (middle, high) if good else (low, middle)
    outside = next((i for i, (_, good) in enumerate(steps) if good), len(steps))
    return np.array([cut for cut, _ in steps[:outside]][::-1], np.uint32), steps[outside:]


def _odds(cell: Cell, counts: Counts) -> Words:
    """2^32 P[Lap(2 / epsilon_0) >= count] = 2^31 exp(-epsilon_0 count / 2)."""
    return np.ceil(2.0**31 * np.exp(-EPSILON / (cell.d + 1) / 2 * counts)).astype(np.uint32)


def _never_outward(cell: Cell, drawn: Words, coins: Words, cuts: Words) -> NDArray[np.intp]:
    """Rows whose coins never lead outward; coins and cuts innermost first.

    Counts grow outward, so one count bounds all that follow: only where a coin beats the bound need the next count be taken.
    """
    rows = np.arange(len(drawn))
    odds = _odds(cell, tally(drawn < cuts[0]))
    safe = [rows[:0]]
    while rows.size:
        doubtful = coins[rows] < odds[:, None]
        step = doubtful.argmax(axis=1)
        open_ = doubtful[np.arange(rows.size), step]
        safe.append(rows[~open_])
        rows, step = rows[open_], step[open_]
        odds = _odds(cell, tally(drawn[rows] < cuts[step][:, None]))
        inward = coins[rows, step] >= odds
        rows, odds = rows[inward], odds[inward]
    return np.concatenate(safe)


def rec_concave(rng: np.random.Generator, cell: Cell, rows: int) -> int:
    """RecConcave on the number of correctly labelled examples (Beimel, Nissim and Stemmer, Figure 5)."""
    reach = _reach(cell, INNER_ALPHA * cell.n, NEGLIGIBLE, SHARE)
    ends = _nearest(rng, cell, rows, reach)
    length = _length(rng, cell, ends)
    kept, extents = _blocks(rng, cell, ends, length)
    unit = np.ldexp(1.0, -2 - length)  # so that masses fit
    ends *= unit.astype(cell.dtype)[:, None]
    np.minimum(ends, (extents * unit).astype(cell.dtype)[:, :, None], out=ends)
    good = _released(rng, ends, SHARE) < cell.width * unit
    return int(np.count_nonzero(good & kept))


def _length(rng: np.random.Generator, cell: Cell, ends: Floats) -> Counts:
    """The recursion's answer: the exponential mechanism on q(j) = min(L(j) - (1 - alpha) n, n - L(j+1)), j = 0, ..., d.

    a_{k+1} + b_{k+1} thresholds make at most k errors, so n - L(j) = k(j) is the number of those sums below 2^j.
    """
    rows = ends.shape[1]
    with np.errstate(over="ignore"):  # 2^1024
        sums = ends[0] + ends[1]
    layout = np.finfo(cell.dtype)
    digits = sums.view(f"i{layout.dtype.itemsize}") >> layout.nmant
    bias = layout.maxexp - 1
    columns = int(digits[:, -1].max()) - bias + 1  # beyond, k(j) is `reach` or more
    digits += (columns * np.arange(rows, dtype=digits.dtype) - bias)[:, None]
    exactly = np.bincount(digits.ravel(), minlength=rows * columns).astype(np.uint32)
    errors = np.cumsum(exactly.reshape(rows, columns), axis=1, dtype=np.uint32).astype(np.float32)  # k(j + 1)
    room = np.full_like(errors, INNER_ALPHA * cell.n)
    room[:, 1:] -= errors[:, :-1]
    quality = np.minimum(room, errors, out=room)
    quality -= quality.max(axis=1, keepdims=True)
    quality *= np.float32(SHARE / 2)
    return _choose(rng, np.exp(quality, out=quality))


def _blocks(rng: np.random.Generator, cell: Cell, ends: Floats, length: Counts) -> tuple[NDArray[np.bool_], Floats]:
    """Whether A_dist releases a block, and how many ranks of each side the released ones hold; shapes (rows,) and (2, rows).

    With K = 2^length, blocks of 8K <= 2^octaves begin and end at the target, and shifted ones have it in their middle. Larger blocks are,
    if 8K = 2^d, all but the last threshold, or, shifted, the right half; if 8K > 2^d, everything.
    """
    half = np.ldexp(1.0, np.minimum(length, cell.d) + 2)  # 4K
    target = 2.0**cell.octaves
    halves, whole = length == cell.d - 3, length > cell.d - 3
    plain, shifted = STABILITY_THRESHOLD - rng.laplace(0.0, 1 / SHARE, (2, len(length)))  # gaps that are large enough

    left = tally(ends[0] <= (half + 1).astype(cell.dtype)[:, None]).astype(float)
    left[length == cell.d - 4] = np.inf  # the first shifted block
    right = tally(ends[1] < half.astype(cell.dtype)[:, None])
    keep_shifted = (ends[0, :, 0] <= half + 1) & (np.minimum(left, right) >= shifted) | halves | whole

    # The plain block right of the target has all best thresholds only if a_1 = 1.
    ones = tally(ends[0] <= 1)
    keep_plain = (ones > 0) & (ones >= plain) | halves
    rows = np.flatnonzero(keep_plain)
    limit = np.minimum(2 * half[rows], target).astype(cell.dtype)
    keep_plain[rows] = tally(ends[1, rows] < limit[:, None]) >= plain[rows]
    keep_plain |= whole

    extents = np.stack([np.where(keep_shifted, half + 1, 1), np.where(keep_plain, 2 * half - 1, half - 1)])
    extents[1, halves | whole] = target
    extents[0, whole | halves & keep_plain] = target + 1
    extents[0, halves & ~keep_plain] = 1
    return keep_plain | keep_shifted, extents


def _program(run: Any) -> Program:
    """The learner as a program of sizes (d, n)."""

    def check(d: int, n: int) -> None:
        within(d=(d, 6, 1024), n=(n, 1, math.inf))

    # Words of a batch take twice what stays in cache: they are drawn in pieces.
    return Program(
        run=lambda rng, rows, d, n: run(rng, Cell(d, n), rows),
        rows=lambda d, n: fitting(4 * n, of=2 * DATA_BYTES, at_least=16),
        check=check,
    )


PROGRAMS = {f"specialised {run.__name__}": _program(run) for run in (erm, exponential, binary_search, rec_concave)}
