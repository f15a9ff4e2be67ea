"""Learners of parities from uniform points in tuned NumPy: ParityLearner on k of them, the exponential mechanism on one.

What makes it fast: all subsamples of a batch are eliminated in step, 64 bits a word; labels come from tables of 256 entries, one for each
byte of a point; the Walsh-Hadamard transform of 2^d numbers is two products with small matrices.
"""

import functools
import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpjax import bounds
from experiments.benchmarks.numpy_driver import Program, choose, fitting, kept, within
from experiments.benchmarks.numpy_trials import DELTA, EPSILON

BETA = 0.1
MOST_SPARE = 40  # rows of a subsample beyond d

Array = NDArray[Any]


# ------------------------------------------------------------------------------------------------------ ParityLearner


@functools.lru_cache
def size(d: int) -> int:
    """s, the number of examples in a subsample, as dpjax chooses it."""
    return bounds.parity_learner_size(bits=d, epsilon=EPSILON, delta=DELTA, beta=BETA)


@functools.lru_cache(maxsize=8)
def _targets(d: int, k: int) -> tuple[Array, Array]:
    """(k parities, row c holding their bits c, packed; for each byte of a point the labels of its 256 values)."""
    truth = np.random.default_rng(0).integers(0, 2**64 - 1, (d, -(-k // 64)), np.uint64, endpoint=True)
    tables = np.zeros((d // 8, 256, truth.shape[1]), np.uint64)
    for bit in range(d):
        has = np.arange(256) >> bit % 8 & 1 == 1
        tables[bit // 8, has] ^= truth[bit]
    return truth, tables


def parity_learner(rng: np.random.Generator, rows: int, d: int, k: int, n: int) -> int:
    """ParityLearner on the first floor(n/s) s examples: one vote for each subsample, A_dist on the votes."""
    truth, tables = _targets(d, k)
    s, words = size(d), -(-d // 64)
    system = np.empty((rows * (n // s), s, words + truth.shape[1]), np.uint64)
    x = system[..., :words]
    x[...] = rng.integers(0, 2**64 - 1, x.shape, np.uint64, endpoint=True)
    if d % 64:
        x[..., -1] &= np.uint64((1 << d % 64) - 1)
    octets = np.ascontiguousarray(x).view(np.uint8)
    system[..., words:] = functools.reduce(np.bitwise_xor, (table[octets[..., i]] for i, table in enumerate(tables)))
    full, solved = _solve(system, d)
    votes = full.reshape(rows, -1)
    first = solved.reshape(rows, -1, *truth.shape)[np.arange(rows), votes.argmax(axis=1)]
    votes &= (solved.reshape(rows, -1, *truth.shape) == first[:, None]).all(axis=(2, 3))
    found = kept(rng, votes.sum(axis=1), EPSILON, DELTA) & votes.any(axis=1)
    return int(np.count_nonzero(found & (first == truth).all(axis=(1, 2))))


def _solve(system: Array, d: int) -> tuple[Array, Array]:
    """(whether A has full rank, X of A X = Y) of a stack of systems [A | Y], in place; columns left of the pivot's word are done with."""
    stack, rows = system.shape[:2]
    at, words = np.arange(stack), -(-d // 64)
    used, full = np.zeros((stack, rows), np.bool_), np.ones(stack, np.bool_)
    pivots = np.empty((d, stack), np.int64)
    for column in range(d):
        ones = (system[:, :, column // 64] >> np.uint64(column % 64)) & np.uint64(1) == 1
        free = ones & ~used
        pivot = pivots[column] = free.argmax(axis=1)
        full &= free[at, pivot]
        used[at, pivot], ones[at, pivot] = True, False
        right = system[:, :, column // 64 :]
        right ^= (np.uint64(0) - ones.astype(np.uint64))[..., None] & right[at, pivot][:, None]
    return full, system[at[:, None], pivots.T, words:]


# -------------------------------------------------------------------------------------------- the exponential mechanism


def exponential(rng: np.random.Generator, rows: int, d: int, n: int) -> int:
    """The exponential mechanism over all 2^d parities by their scores, (n + F) / 2, F the transform of #{zeros at x} - #{ones at x}."""
    target = (1 << d) * 2 // 3
    x = rng.integers(0, 1 << d, (rows, n), np.uint32)
    y = np.bitwise_count(x & np.uint32(target)) & np.uint8(1)
    place = x + (np.arange(rows, dtype=np.int64) << d)[:, None]
    f = np.bincount(place.reshape(-1), (1.0 - 2.0 * y).reshape(-1), minlength=rows << d)
    left, right = _hadamard(d // 2), _hadamard(d - d // 2)
    scores = (left @ (f.astype(np.float32).reshape(rows, len(left), len(right)) @ right)).reshape(rows, -1)
    scores -= scores.max(axis=1, keepdims=True)
    scores *= np.float32(EPSILON / 4)
    return int(np.count_nonzero(choose(rng, np.exp(scores, out=scores)) == target))


@functools.lru_cache
def _hadamard(d: int) -> Array:
    """The matrix of (-1)^<v, x>."""
    index = np.arange(1 << d)
    return np.where(np.bitwise_count(index[:, None] & index) & 1, np.float32(-1), np.float32(1))


def _check_many(d: int, k: int, n: int) -> None:
    within(d=(d, 8, 1024), k=(k, 1, math.inf), n=(n, d + MOST_SPARE, math.inf))
    if d % 8:
        raise ValueError(f"d must be a multiple of 8, got {d}")


PROGRAMS = {
    "parity_learner": Program(
        parity_learner, lambda d, k, n: fitting(n * (-(-d // 64) + -(-k // 64)) * 8), _check_many
    ),
    "parities exponential": Program(
        exponential,
        lambda d, n: fitting(8 << d),
        lambda d, n: within(d=(d, 1, 16), n=(n, 1, math.inf)),
    ),
}
