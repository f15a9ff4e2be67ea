"""The threshold trials of `dpjax`, written for NumPy alone and tuned: the opponent in a benchmark of trials per second.

A trial draws n examples from `LogUniform` around the target T = 2^(d-1) (x = T - floor(2^U) or T + floor(2^U), U uniform on [0, d-1),
a fair coin for the side; the label is 1 iff x < T), runs a learner at epsilon = 1, delta = 1e-6 on them and tells whether the population
error of the released threshold is at most 1/10. Bottom is a failure. The laws are those of `dpjax.learners.thresholds` with
`rec_concave(alpha=0.2, depth=2, calibration="printed")` and `binary_search(delta=0)`.

Every trial draws all of its n examples. (Drawing only those near the target, with a gamma variable for the rest, would have the same law
and cost next to nothing, but then there would be no sample for anybody to learn from.) What is exploited:

- The samples are realizable, so the number of errors grows away from the target on both sides. An example is its side and distance: the
  sorted distances a_1 <= a_2 ... on the left, b_1 <= b_2 ... on the right, say everything. A threshold is its side and its RANK r >= 1,
  T + 1 - h on the left and h - T on the right: exactly k errors are made by the ranks r with a_k < r <= a_{k+1} (on the right b), and the
  population error is log2(r) / (2 (d-1)). Both sides have the same law.
- Uniform words on a circle with the target at 0: words counted from the front are right distances, from the back left ones, in units of
  (d-1) 2^-31 octaves. ERM wants their minimum and maximum, the binary search some counts: neither sorts.
- Sorted distances come from partial sums of exponential spacings, only as many as can matter (`_reach`), of the others only the sum.
  Partial sums are of integers: NumPy's floating-point ones wait for memory at each step, which is six times slower.
- exp(-epsilon errors(r) / 2) is a mixture of uniform laws on the ranks 1, ..., a_k: draw the layer k, then a rank.
- The binary search is lost at the first wrong turn, so coins are drawn first, and counted is only where a coin leaves doubt.
- Samples are drawn in pieces that stay in cache; the smaller arrays that remain are worked off in larger batches.

Rounding: distances are float32 for d <= 64, float64 above; spacings are cut to about 2^-20 of their mean; categorical draws have
weights rounded to 2^-30. Examples left out of sight change a trial with probability below 2e-7. A_dist with gap 0 releases with
probability 9e-8 as printed; here it does so only where the block holds the target.
"""

import functools
import math
import multiprocessing
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from multiprocessing.synchronize import Barrier
from types import TracebackType
from typing import Any

import numpy as np
from numpy.typing import NDArray

EPSILON, DELTA, ALPHA = 1.0, 1e-6, 0.1
MECHANISMS = 6  # RecConcave of depth 2 gives each mechanism epsilon / 6 and delta / 6
SHARE = EPSILON / MECHANISMS
INNER_ALPHA = 0.1  # LearnThresholds at 0.2 runs RecConcave at half of it
STABILITY_THRESHOLD = math.log(MECHANISMS / DELTA) / SHARE  # A_dist as printed
NEGLIGIBLE = 25.0  # what weighs exp(-25) of the whole is not looked at

DATA_BYTES = 1 << 20  # words drawn at a time
BATCH_BYTES = 1 << 21  # words of a batch
LARGEST_BATCH = 1 << 10
# A C library may return freed blocks above some size to the system, which zeroes them before the next use: half of ERM's time. The GNU
# library's limit rises to the size of the largest such block freed so far (up to 2^25), so one that is never touched helps all the rest.
LARGE_BLOCK = 31 << 20
START_SECONDS = 120.0

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


def _words(rng: np.random.Generator, rows: int, columns: int) -> Words:
    """Independent uniform 32-bit words, two from each word of the generator."""
    count = rows * columns
    raw = rng.bit_generator.random_raw((count + 1) // 2)
    return np.asarray(raw).view(np.uint32)[:count].reshape(rows, columns)


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
    first `reach` stand right of the target, the next left of it, and of the rest only the sum is asked for.
    """
    limit = min(reach + math.sqrt(140 * reach) + 70, 23 * reach)  # passed with probability below exp(-70)
    unit = np.float32((2**31 - 2**8) / limit)
    sums = np.empty((2, rows, reach), np.int32)
    total = np.empty(rows, np.float32)
    middle = cell.n + 1 - 2 * reach
    for piece in _pieces(rows, cell.n + 1):
        count = piece.stop - piece.start
        spacings = _exponentials(_words(rng, count, cell.n + 1 - max(middle, 0)))
        total[piece] = spacings.sum(axis=1)
        if middle > 0:
            total[piece] += _sums_of_exponentials(_words(rng, count, middle))
        spacings *= unit
        units = spacings.astype(np.int32)
        np.cumsum(units[:, :reach], axis=1, dtype=np.int32, out=sums[0, piece])
        # Where the sides meet, the left one is the same spacings, seen from the other end.
        other = units[:, reach:] if middle >= 0 else units[:, : -reach - 1 : -1]
        np.cumsum(other, axis=1, dtype=np.int32, out=sums[1, piece])
    positions: Floats = sums.astype(cell.dtype)
    positions *= (2 * cell.octaves / unit / total).astype(cell.dtype)[:, None]
    return _distances(cell, positions)


def _fractions(words: Words) -> NDArray[np.float32]:
    """Uniform on (0, 1], from 2^-33."""
    fractions = words.astype(np.float32)
    fractions += np.float32(0.5)
    fractions *= np.float32(2.0**-32)
    return fractions


def _exponentials(words: Words) -> NDArray[np.float32]:
    """Standard exponentials from words, up to 22.9."""
    fractions = _fractions(words)
    np.log(fractions, out=fractions)
    return np.negative(fractions, out=fractions)


def _sums_of_exponentials(words: Words) -> NDArray[np.float32]:
    """Sums of the exponentials that each row makes: one logarithm does for two of them."""
    fractions = _fractions(words)
    half = words.shape[1] // 2
    sums = np.zeros(len(words), np.float32)
    if words.shape[1] % 2:
        sums -= np.log(fractions[:, -1])
    pairs = fractions[:, :half]
    pairs *= fractions[:, half : 2 * half]
    sums -= np.log(pairs, out=pairs).sum(axis=1)
    return sums


def _count(mask: NDArray[np.bool_]) -> Counts:
    """How many entries of each row are set."""
    dtype = np.uint16 if mask.shape[-1] < 2**16 else np.uint32
    return np.add.reduce(mask.view(np.uint8), axis=-1, dtype=dtype).astype(np.int64)


# ----------------------------------------------------------------------------------------------------- the mechanisms


def _choose(rng: np.random.Generator, weights: Floats) -> Counts:
    """An index of each row with probability proportional to its weight (largest weight not 0), by inverse CDF."""
    total = weights.sum(axis=1)
    units = (weights * (2.0**30 / total)[:, None].astype(weights.dtype)).astype(np.uint32)
    sums = np.cumsum(units, axis=1, dtype=np.uint32)
    below = (rng.random(len(weights)) * sums[:, -1]).astype(np.uint32)
    return _count(sums <= below[:, None])


@functools.lru_cache
def _layers(epsilon: float, reach: int, dtype: np.dtype[Any]) -> Floats:
    """Weights of the layers: exp(-epsilon k / 2) is the sum of layers k + 1, ..., reach."""
    density = np.exp(-epsilon / 2 * np.arange(reach))
    return np.append(density[:-1] - density[1:], density[-1]).astype(dtype)


def _released(rng: np.random.Generator, sides: Floats, epsilon: float) -> Floats:
    """A real number in (rank - 1, rank] for the rank that the exponential mechanism chooses, given the ends of the pieces.

    sides[s, i, k] is the last rank with k errors on side s of sample i, cut to what may be chosen.
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
    words = np.empty((2, rows), np.uint32)
    for piece in _pieces(rows, cell.n):
        drawn = _words(rng, piece.stop - piece.start, cell.n)
        words[0, piece] = ~drawn.max(axis=1)
        words[1, piece] = drawn.min(axis=1)
    ends = _distances(cell, words * (cell.octaves * 2.0**-31)) / 2  # halved, so that 2^1023 + 2^1023 fits
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
    words = _words(rng, rows, cell.n)
    alive = _never_outward(cell, words, _words(rng, rows, len(outside)), outside)
    successes = 0
    for cut, good in near:
        if not alive.size:
            break
        inward = _words(rng, alive.size, 1)[:, 0] >= _odds(cell, _count(words[alive] < cut))
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


def _never_outward(cell: Cell, words: Words, coins: Words, cuts: Words) -> NDArray[np.intp]:
    """Rows whose coins never lead outward; coins and cuts innermost first.

    Counts grow outward, so one count bounds all that follow: only where a coin beats the bound need the next count be taken.
    """
    rows = np.arange(len(words))
    odds = _odds(cell, _count(words < cuts[0]))
    safe = [rows[:0]]
    while rows.size:
        doubtful = coins[rows] < odds[:, None]
        step = doubtful.argmax(axis=1)
        open_ = doubtful[np.arange(rows.size), step]
        safe.append(rows[~open_])
        rows, step = rows[open_], step[open_]
        odds = _odds(cell, _count(words[rows] < cuts[step][:, None]))
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

    With K = 2^length, blocks of 8K <= 2^octaves begin and end at the target, shifted ones have it in their middle. The larger ones are:
    8K = 2^d, all but the last threshold, shifted: the right half; 8K > 2^d: everything.
    """
    half = np.ldexp(1.0, np.minimum(length, cell.d) + 2)  # 4K
    target = 2.0**cell.octaves
    halves, whole = length == cell.d - 3, length > cell.d - 3
    plain, shifted = STABILITY_THRESHOLD - rng.laplace(0.0, 1 / SHARE, (2, len(length)))  # gaps that are large enough

    left = _count(ends[0] <= (half + 1).astype(cell.dtype)[:, None]).astype(float)
    left[length == cell.d - 4] = np.inf  # the first shifted block
    right = _count(ends[1] < half.astype(cell.dtype)[:, None])
    keep_shifted = (ends[0, :, 0] <= half + 1) & (np.minimum(left, right) >= shifted) | halves | whole

    # The plain block right of the target has all best thresholds only if a_1 = 1.
    ones = _count(ends[0] <= 1)
    keep_plain = (ones > 0) & (ones >= plain) | halves
    rows = np.flatnonzero(keep_plain)
    limit = np.minimum(2 * half[rows], target).astype(cell.dtype)
    keep_plain[rows] = _count(ends[1, rows] < limit[:, None]) >= plain[rows]
    keep_plain |= whole

    extents = np.stack([np.where(keep_shifted, half + 1, 1), np.where(keep_plain, 2 * half - 1, half - 1)])
    extents[1, halves | whole] = target
    extents[0, whole | halves & keep_plain] = target + 1
    extents[0, halves & ~keep_plain] = 1
    return keep_plain | keep_shifted, extents


# ------------------------------------------------------------------------------------------------- counting successes

LEARNERS: dict[str, Callable[[np.random.Generator, Cell, int], int]] = {
    "erm": erm,
    "exponential": exponential,
    "binary_search": binary_search,
    "rec_concave": rec_concave,
}


def success_counts(learner: str, d: int, n: int, trials: int, seed: int | np.random.SeedSequence) -> int:
    """Number of successes among `trials` independent trials.

    Args:
      learner: one of `LEARNERS`.
      d: bits of the domain, 6 to 1024.
      n: examples, >= 1.
      trials: >= 0.
      seed: results depend on nothing else; >= 0.

    Raises:
      ValueError: an argument out of range.

    >>> success_counts("erm", 31, 500, 1000, 0)
    1000
    """
    seeds = seed if isinstance(seed, np.random.SeedSequence) else np.random.SeedSequence(seed)
    return _successes(learner, _cell(learner, d, n, trials), trials, seeds)


def _cell(learner: str, d: int, n: int, trials: int) -> Cell:
    """The checked cell."""
    if learner not in LEARNERS:
        raise ValueError(f"learner must be one of {sorted(LEARNERS)}, got {learner!r}")
    if not 6 <= d <= 1024:
        raise ValueError(f"d must be from 6 to 1024, got {d}")
    if n < 1:
        raise ValueError(f"n must be >= 1, got {n}")
    if trials < 0:
        raise ValueError(f"trials must be >= 0, got {trials}")
    return Cell(d, n)


def _successes(learner: str, cell: Cell, trials: int, seed: np.random.SeedSequence) -> int:
    """Successes, batch by batch."""
    np.empty(LARGE_BLOCK, np.uint8)  # freed at once
    rng = np.random.Generator(np.random.SFC64(seed))
    batch = min(LARGEST_BATCH, max(16, BATCH_BYTES // (4 * cell.n)))
    return sum(LEARNERS[learner](rng, cell, min(batch, trials - done)) for done in range(0, trials, batch))


class PooledTrials:
    """`success_counts`, or another `count` of the same arguments, on several processes, started once.

    >>> with PooledTrials(processes=2) as pool:  # doctest: +SKIP
    ...     pool.success_count("rec_concave", 31, 2000, 10_000, 0)
    """

    def __init__(
        self,
        processes: int = 2,
        count: Callable[..., int] = success_counts,
        warm: Sequence[str] = ("erm", "exponential", "binary_search", "rec_concave"),
    ) -> None:
        if processes < 1:
            raise ValueError(f"processes must be >= 1, got {processes}")
        self.processes, self.count = processes, count
        self.warm = (
            tuple(LEARNERS) if warm is None else tuple(warm)
        )  # learners of which a worker runs a batch at its start

    def __enter__(self) -> "PooledTrials":
        # Spawned, not forked: the parent may run threads of its own (JAX does).
        context = multiprocessing.get_context("spawn")
        ready = context.Barrier(self.processes + 1)
        self._pool = context.Pool(self.processes, _warm_up, (ready, self.count, self.warm))
        ready.wait(timeout=START_SECONDS)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._pool.terminate()
        self._pool.join()

    def success_count(self, learner: str, d: int, n: int, trials: int, seed: int) -> int:
        """As `success_counts`, cut evenly; the result depends on the number of processes, too."""
        shares = [(trials + i) // self.processes for i in range(self.processes)]
        seeds = np.random.SeedSequence(seed).spawn(self.processes)
        calls = [(learner, d, n, *pair) for pair in zip(shares, seeds, strict=True)]
        return sum(self._pool.starmap(self.count, calls, 1))


def _warm_up(ready: Barrier, count: Callable[..., int], warm: Sequence[str]) -> None:
    """A worker's start: a batch of everything, then waiting for the others."""
    for learner in warm:
        count(learner, 31, 100, 16, 0)
    ready.wait(timeout=START_SECONDS)
