"""Elimination over GF(2), tracing and one attack in tuned NumPy, against which dpjax's are measured.

What makes it fast: 64 bits in a word, one masked XOR of whole rows for each pivot; books in pieces that stay in cache, bits compared as
bytes; scores as matrix products; a Boneh-Shaw book held as types, from which users' rows and words are read off.
"""

import math
from collections.abc import Callable

import numpy as np

from experiments.benchmarks.numpy_driver import Program

XI = 0.05  # failure probability of either code
PIECE = 1 << 14  # columns of a book worked on at a time


def eliminate(rng: np.random.Generator, d: int, rows: int, k: int) -> bool:
    """One random system [A | Y] of `rows` rows, d unknowns and k right-hand sides, solved; whether A has full rank."""
    words = -(-d // 64)
    matrix = rng.integers(0, 2**64, (rows, words + -(-k // 64)), np.uint64)
    used = np.zeros(rows, bool)
    for column in range(d):
        ones = (matrix[:, column // 64] >> np.uint64(column % 64)) & np.uint64(1) == 1
        free = ones & ~used
        pivot = int(np.argmax(free))
        if not free[pivot]:
            return False
        used[pivot], ones[pivot] = True, False
        matrix[ones, column // 64 :] ^= matrix[pivot, column // 64 :]  # left of it the pivot row is zero
    return True


def trace(rng: np.random.Generator, users: int, columns: int) -> bool:
    """One Tardos book, the majority word of all users, the trace; whether somebody is accused."""
    log_term = math.ceil(math.log(users / XI))
    lowest = math.asin(math.sqrt(1 / (300 * users)))
    scores = np.zeros(users)
    for first in range(0, columns, PIECE):
        size = min(PIECE, columns - first)
        bias = np.sin(rng.uniform(lowest, math.pi / 2 - lowest, size)) ** 2
        # 32 random bits for each bit of the book, as in dpjax: biases near 1/(300 n) need them.
        held = rng.integers(0, 2**32, (users, size), np.uint32) < (bias * 2**32).astype(np.uint32)
        word = 2 * held.sum(axis=0) >= users
        one, zero = np.sqrt((1 - bias) / bias) * word, np.sqrt(bias / (1 - bias)) * word
        scores += held.astype(np.float32) @ (one + zero).astype(np.float32) - zero.sum()
    steepness = min(math.sqrt(log_term / columns), 1.79 / math.sqrt(300 * users))
    return bool((scores > steepness * columns + log_term / steepness).any())


def attack(rng: np.random.Generator, users: int, copies: int) -> bool:
    """One padded Boneh-Shaw book, the majority learner on it, the trace; whether somebody is accused."""
    types = np.repeat(np.arange(users + 1), copies)
    rng.shuffle(types)
    labels = np.arange(users)[:, None] < types  # what the learner is given
    word = 2 * labels.sum(axis=0) > users
    ones = np.bincount(types[word], minlength=users + 1)
    total = ones[1:] + ones[:-1]
    return bool(((ones[1:] - ones[:-1]) / 2 > np.sqrt(math.log(2 * users / XI) * total / 2)).any())


def _program(run: Callable[..., bool]) -> Program:
    """A program whose runs are made one by one, because each alone fills the cache."""
    return Program(
        run=lambda rng, rows, *sizes: sum(run(rng, *sizes) for _ in range(rows)),
        rows=lambda *sizes: 16,
        check=lambda *sizes: None,
    )


PROGRAMS = {"elimination": _program(eliminate), "tracing": _program(trace), "attack": _program(attack)}
