"""Mechanisms alone: Laplace noise on a vector and the exponential mechanism, which every package has, and soft ones, at a temperature."""

import math

import numpy as np

from experiments.benchmarks.numpy_driver import Array, Program, choose, fitting, fractions, within, words
from experiments.benchmarks.numpy_trials import EPSILON

TEMPERATURE = 0.5  # of the soft mechanisms
NEAR = {"soft quantile": 0.02, "soft threshold": 0.004}  # the largest distance from 1/2 of a success


def laplace(rng: np.random.Generator, rows: int, count: int) -> int:
    """Laplace noise of scale 1/epsilon on `count` zeros; success: the largest is above ln(count)/epsilon."""
    drawn = words(rng, rows, count)
    noise = np.log(fractions(drawn >> np.uint32(1) << np.uint32(1)))
    np.copysign(noise, (drawn & np.uint32(1)).astype(np.float32) - np.float32(0.5), out=noise)
    return int(np.count_nonzero(noise.max(axis=1) > math.log(count)))


def exponential(rng: np.random.Generator, rows: int, candidates: int) -> int:
    """The exponential mechanism among candidates of scores 0, 1, ...; success: one of the five best."""
    scores = np.arange(candidates, dtype=np.float32)[None] - np.zeros((rows, 1), np.float32)  # anew in each trial
    scores -= scores.max(axis=1, keepdims=True)
    scores *= np.float32(EPSILON / 2)
    return int(np.count_nonzero(choose(rng, np.exp(scores, out=scores)) >= candidates - 5))


def soft(rng: np.random.Generator, rows: int, candidates: int) -> int:
    """The exponential mechanism at a temperature (Gumbel-softmax) among 0, 1, ...; success: one of the five best has more than half."""
    logits = np.arange(candidates, dtype=np.float32)[None] * np.float32(EPSILON / 2) - np.zeros((rows, 1), np.float32)
    weights = _tempered(rng, logits)
    return int(np.count_nonzero(weights[:, -5:].max(axis=1) > weights.sum(axis=1) / 2))


def soft_quantile(rng: np.random.Generator, rows: int, n: int) -> int:
    """A soft median of n uniform values; success: near 1/2."""
    values = np.sort(fractions(words(rng, rows, n)), axis=1)
    quality = -np.abs(np.arange(n + 1, dtype=np.float32) - np.float32(n / 2))
    return _near_half(_soft_point(rng, values, quality[None]), "soft quantile")


def soft_threshold(rng: np.random.Generator, rows: int, n: int) -> int:
    """A soft threshold on n uniform values, labelled by 1/2; success: near 1/2."""
    values = np.sort(fractions(words(rng, rows, n)), axis=1)
    ones = np.count_nonzero(values < 0.5, axis=1)[:, None]
    quality = n - np.abs(np.arange(n + 1, dtype=np.float32)[None] - ones.astype(np.float32))  # labelled correctly
    return _near_half(_soft_point(rng, values, quality), "soft threshold")


def _tempered(rng: np.random.Generator, logits: Array) -> Array:
    """Weights of a soft choice, up to a factor for each row."""
    noise = np.log(fractions(words(rng, *logits.shape)))
    np.maximum(np.negative(noise, out=noise), np.float32(2**-25), out=noise)  # a fraction of 1 has no double logarithm
    np.log(noise, out=noise)
    np.subtract(logits, noise, out=noise)
    noise -= noise.max(axis=1, keepdims=True)
    noise *= np.float32(1 / TEMPERATURE)
    return np.exp(noise, out=noise)


def _soft_point(rng: np.random.Generator, values: Array, quality: Array) -> Array:
    """One point of [0, 1] for each row, by a soft choice among all gaps of sorted values, with weights length exp(epsilon quality / 2)."""
    ends = np.pad(values, ((0, 0), (1, 1)))
    ends[:, -1] = 1
    lengths = np.diff(ends, axis=1)
    with np.errstate(divide="ignore"):
        logits = np.log(lengths)
    logits += np.float32(EPSILON / 2) * quality
    weights = _tempered(rng, logits)
    lengths *= fractions(words(rng, len(values), 1))
    lengths += ends[:, :-1]
    return np.einsum("ij,ij->i", weights, lengths) / weights.sum(axis=1)


def _near_half(points: Array, name: str) -> int:
    return int(np.count_nonzero(np.abs(points - 0.5) < NEAR[name]))


def _check(count: int) -> None:
    within(count=(count, 6, math.inf))


PROGRAMS = {
    "laplace": Program(laplace, lambda count: fitting(4 * count), _check),
    "exponential mechanism": Program(exponential, lambda count: fitting(4 * count), _check),
    "soft exponential mechanism": Program(soft, lambda count: fitting(4 * count), _check),
    "soft quantile": Program(soft_quantile, lambda n: fitting(4 * n), _check),
    "soft threshold": Program(soft_threshold, lambda n: fitting(4 * n), _check),
}
