"""SetCoverLearner on conjunctions of literals in tuned NumPy: packed examples, popcounts, all trials of a batch in step.

A trial draws n uniform assignments of d variables, 64 examples in a word, and goes through the rounds of `dpjax.learners.set_cover`. A
round takes a noisy number b of negative examples, draws a literal by the exponential mechanism on min(negative ones it deletes - ceil(b/k),
-positive ones it deletes), and removes what that literal deletes. What makes it fast: every word drawn is 64 coins, and a count is a
popcount; the examples that are left are packed as well. The numbers that privacy dictates (rounds, rate, noise, shift) are those of the
learner.
"""

import functools
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpjax.learners import conjunctions
from experiments.benchmarks.numpy_driver import Program, choose, fitting, within
from experiments.benchmarks.numpy_trials import ALPHA, DELTA, EPSILON

K = 2
TARGET = (0, 5)  # x_0 and not x_2
WORD = 64

Array = NDArray[Any]


@functools.lru_cache(maxsize=8)
def learner(d: int) -> Any:
    """dpjax's learner for the cell."""
    return conjunctions.conjunction(bits=d, k=K, epsilon=EPSILON, delta=DELTA, alpha=ALPHA)


def conjunction(rng: np.random.Generator, rows: int, d: int, n: int) -> int:
    """A conjunction of two literals among 2d."""
    given = learner(d)
    rate, width, shift = float(given.rate), given.rounds / float(given.noise_epsilon), float(given.shift)
    x, left = _examples(rng, rows, d, n)
    y = np.bitwise_and.reduce([_holds(x, np.full(rows, literal)) for literal in TARGET])
    chosen = np.empty((given.rounds, rows), np.int64)
    scores = np.empty((rows, d, 2))
    for one in chosen:
        negative, positive = left & ~y, left & y
        there, wrong = _deleted(x, negative), _deleted(x, positive)
        test = _count(negative) - shift + np.floor(rng.laplace(0.0, width, rows))
        np.minimum(there - np.ceil(test / K)[:, None, None], -wrong, out=scores)
        flat = scores.reshape(rows, -1)
        flat -= flat.max(axis=1, keepdims=True)
        one[:] = choose(rng, np.exp(rate * flat))
        left &= _holds(x, one)
    return int(np.count_nonzero(_error(chosen, d) <= ALPHA))


def _examples(rng: np.random.Generator, rows: int, d: int, n: int) -> tuple[Array, Array]:
    """(x, of shape (rows, d, words), which bits are examples)."""
    size = -(-n // WORD)
    x = rng.bit_generator.random_raw(rows * d * size).reshape(rows, d, size)
    valid = np.full((rows, size), np.uint64(2**64 - 1))
    valid[:, -1] >>= np.uint64(WORD * size - n)
    return x, valid


def _holds(x: Array, literal: Array) -> Array:
    """On which examples one literal of each trial is true."""
    flip = np.where(literal % 2 == 1, np.uint64(2**64 - 1), np.uint64(0))
    return np.asarray(x[np.arange(len(x)), literal // 2] ^ flip[:, None])


def _count(mask: Array) -> Array:
    return np.bitwise_count(mask).sum(axis=-1, dtype=np.int32)


def _deleted(x: Array, among: Array) -> Array:
    """How many of some examples each variable and its negation are false on: shape (rows, d, 2)."""
    ones = _count(x & among[:, None])
    return np.stack([_count(among)[:, None] - ones, ones], axis=2)


def _error(chosen: Array, d: int) -> Array:
    """Population error of the conjunctions in the columns: P[h] + P[c] - 2 P[h and c] for uniform assignments."""
    needs = np.zeros((chosen.shape[1], 2 * d), np.bool_)
    np.put_along_axis(needs, chosen.T, True, axis=1)
    both = needs.copy()
    both[:, list(TARGET)] = True
    return np.asarray(_mass(needs) + 0.5 ** len(TARGET) - 2 * _mass(both))


def _mass(needs: Array) -> Array:
    """The mass of the conjunction of these literals."""
    possible = ~(needs[:, ::2] & needs[:, 1::2]).any(axis=1)
    return np.where(possible, 0.5 ** needs.sum(axis=1), 0.0)


PROGRAMS = {
    "conjunction": Program(
        conjunction,
        lambda d, n: fitting(d * n / 8, of=1 << 21),
        lambda d, n: within(d=(d, 3, 2**16), n=(n, 1, 2**24)),
    )
}
