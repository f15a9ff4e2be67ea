"""How every NumPy program of the benchmark is run: in batches that stay in cache, from one seed.

A program is a function (rng, rows, *sizes) -> how many of `rows` independent trials succeed. All are in `programs.PROGRAMS` by name;
`pool` runs them on several processes.
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

BATCH_BYTES = 1 << 20
LARGEST_BATCH = 1 << 10
# A C library may return freed blocks above some size to the system, which zeroes them before the next use: half of ERM's time. The GNU
# library's limit rises to the size of the largest such block freed so far (up to 2^25), so one that is never touched helps all the rest.
LARGE_BLOCK = 31 << 20

Array = NDArray[Any]


class Program(NamedTuple):
    """The trial of one learner or attack.

    Attributes:
        run: (rng, rows, *sizes) -> successes.
        rows: (*sizes) -> the number of trials in a batch.
        check: (*sizes) -> None; a ValueError names what the program cannot do.
    """

    run: Callable[..., int]
    rows: Callable[..., int]
    check: Callable[..., None]


def fitting(bytes_a_trial: float, *, of: int = BATCH_BYTES, at_least: int = 1) -> int:
    """The number of trials in a batch whose arrays together take `of` bytes."""
    return max(at_least, min(LARGEST_BATCH, int(of / bytes_a_trial)))


def within(**ranges: tuple[float, float, float]) -> None:
    """Raises ValueError for the first (value, least, greatest) whose value is out of range."""
    for name, (value, least, greatest) in ranges.items():
        if not least <= value <= greatest:
            most = "" if greatest == math.inf else f" and <= {greatest:g}"
            raise ValueError(f"{name} must be >= {least:g}{most}, got {value}")


def count(program: Program, sizes: tuple[Any, ...], trials: int, seed: int | np.random.SeedSequence) -> int:
    """Number of successes among `trials` independent trials; a function of its arguments alone.

    Raises:
        ValueError: sizes that the program cannot do, or trials < 0.
    """
    within(trials=(trials, 0, math.inf))
    program.check(*sizes)
    np.empty(LARGE_BLOCK, np.uint8)  # freed at once; see LARGE_BLOCK
    seeds = seed if isinstance(seed, np.random.SeedSequence) else np.random.SeedSequence(seed)
    rng = np.random.Generator(np.random.SFC64(seeds))
    rows = program.rows(*sizes)
    batches = [rows] * (trials // rows) + [trials % rows] * (trials % rows > 0)
    return sum(program.run(rng, size, *sizes) for size in batches)


# ------------------------------------------------------------------------------------------ what programs are made of


def words(rng: np.random.Generator, rows: int, columns: int) -> NDArray[np.uint32]:
    """Independent uniform 32-bit words, two from each word of the generator."""
    total = rows * columns
    raw = rng.bit_generator.random_raw((total + 1) // 2)
    return np.asarray(raw).view(np.uint32)[:total].reshape(rows, columns)


def fractions(drawn: NDArray[np.uint32]) -> NDArray[np.float32]:
    """Uniform on (0, 1], from 2^-33."""
    uniform = drawn.astype(np.float32)
    uniform += np.float32(0.5)
    uniform *= np.float32(2.0**-32)
    return uniform


def exponentials(drawn: NDArray[np.uint32]) -> NDArray[np.float32]:
    """Standard exponentials from words, up to 22.9."""
    uniform = fractions(drawn)
    np.log(uniform, out=uniform)
    return np.negative(uniform, out=uniform)


def spacings(rng: np.random.Generator, rows: int, n: int) -> NDArray[np.float32]:
    """n + 1 exponentials in each row, in units in which int32 sums of all do not overflow, with probability above 1 - exp(-70)."""
    limit = min(n + 1 + math.sqrt(140 * (n + 1)) + 70, 23 * (n + 1))
    drawn = exponentials(words(rng, rows, n + 1))
    drawn *= np.float32((2**31 - 2**8) / limit)
    return drawn


def tally(mask: NDArray[np.bool_]) -> Array:
    """How many entries of each row are set."""
    dtype = np.uint16 if mask.shape[-1] < 2**16 else np.uint32
    return np.add.reduce(mask.view(np.uint8), axis=-1, dtype=dtype).astype(np.int64)


def choose(rng: np.random.Generator, weights: Array) -> Array:
    """An index of each row with probability proportional to its weight, by inverse CDF."""
    sums = np.cumsum(weights, axis=1)
    below = rng.random(len(weights), np.float32) * sums[:, -1]
    return np.minimum(np.count_nonzero(sums <= below[:, None], axis=1), weights.shape[1] - 1)


def kept(rng: np.random.Generator, gap: Array, epsilon: float, delta: float, *, sensitivity: float = 2.0) -> Array:
    """A_dist with proved constants: gap + Lap(s / epsilon) >= s + (s / epsilon) ln(1/(2 delta)), with s the most that a gap moves."""
    scale = sensitivity / epsilon
    return np.asarray(gap + rng.laplace(0.0, scale, np.shape(gap)) >= sensitivity - scale * math.log(2 * delta))


def below(starts: Array, positions: Array) -> Array:
    """How many entries of each increasing row are below its positions, of shape (..., rows); rows end with a greatest number."""
    rows, width = starts.shape
    base = np.arange(rows) * width
    found, flat, past = np.broadcast_to(base, positions.shape), starts.reshape(-1), base + width - 1
    step = 1 << (width - 1).bit_length()
    while step := step >> 1:
        found = found + step * (flat[np.minimum(found + (step - 1), past)] < positions)
    return np.asarray(found - base)
