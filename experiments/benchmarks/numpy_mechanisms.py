"""Mechanisms alone: two that every package has, Laplace noise on a vector and the exponential mechanism; and that at a temperature."""

import math

import numpy as np

from experiments.benchmarks.numpy_driver import Program, choose, fitting, fractions, within, words
from experiments.benchmarks.numpy_trials import EPSILON

TEMPERATURE = 0.5  # of the soft one


def laplace(rng: np.random.Generator, rows: int, count: int) -> int:
    """Laplace noise of scale 1/epsilon on `count` zeros; success: the largest is above ln(count)/epsilon."""
    drawn = words(rng, rows, count)
    noise = np.log(fractions(drawn >> np.uint32(1) << np.uint32(1)))
    np.copysign(noise, (drawn & np.uint32(1)).astype(np.float32) - np.float32(0.5), out=noise)
    return int(np.count_nonzero(noise.max(axis=1) > math.log(count)))


def exponential(rng: np.random.Generator, rows: int, candidates: int) -> int:
    """The exponential mechanism among candidates of scores 0, 1, ...; success: one of the five best."""
    scores = np.arange(candidates, dtype=np.float32)[None] - np.zeros((rows, 1), np.float32)  # of each trial anew
    scores -= scores.max(axis=1, keepdims=True)
    scores *= np.float32(EPSILON / 2)
    return int(np.count_nonzero(choose(rng, np.exp(scores, out=scores)) >= candidates - 5))


def soft(rng: np.random.Generator, rows: int, candidates: int) -> int:
    """The exponential mechanism at a temperature (Gumbel-softmax) among 0, 1, ...; success: one of the five best has more than half."""
    logits = np.log(fractions(words(rng, rows, candidates)))
    np.log(np.negative(logits, out=logits), out=logits)
    np.subtract(np.arange(candidates, dtype=np.float32) * np.float32(EPSILON / 2), logits, out=logits)
    logits -= logits.max(axis=1, keepdims=True)
    logits *= np.float32(1 / TEMPERATURE)
    weights = np.exp(logits, out=logits)
    return int(np.count_nonzero(weights[:, -5:].max(axis=1) > weights.sum(axis=1) / 2))


def _check(count: int) -> None:
    within(count=(count, 6, math.inf))


PROGRAMS = {
    "laplace": Program(laplace, lambda count: fitting(4 * count), _check),
    "exponential mechanism": Program(exponential, lambda count: fitting(4 * count), _check),
    "soft exponential mechanism": Program(soft, lambda count: fitting(4 * count), _check),
}
