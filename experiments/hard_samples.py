"""Samples labelled by a threshold, with points at all scales, for experiments that tune something."""

from collections.abc import Callable
from typing import Any

import numpy as np

from dpjax import Sample
from dpjax.domains import wide

Sampler = Callable[[int], Any]  # n -> a sample of n examples


def around_a_threshold(rng: np.random.Generator, bits: int, most: int) -> Sampler:
    """Ones below a uniform threshold and zeros above it, at log-uniform distances up to a log-uniform maximum, so at all scales."""
    threshold = int(rng.integers(1, 2**31)) * 2 ** max(bits - 31, 0) % 2**bits
    scales = rng.uniform(0.0, rng.uniform(1.0, bits), most)
    below = np.arange(most) % 2 == 0
    x = [
        max(0, threshold - 1 - int(2.0**u)) if low else min(2**bits - 1, threshold + int(2.0**u))
        for u, low in zip(scales.tolist(), below.tolist(), strict=True)
    ]
    rows = np.asarray(wide.from_ints(x, bits + 1))
    labels = np.array([int(value < threshold) for value in x], np.int32)

    def at(n: int) -> Sample:
        some = np.arange(most) < n
        return Sample(x=np.where(some[:, None], rows, np.uint32(0)), y=np.where(some, labels, 0), n_valid=np.int32(n))

    return at
