"""Real data that ship in the package `scikit-learn` (BSD licence; extra `data`): 1,797 images of digits, 8 by 8 pixels."""

from typing import Any, NamedTuple

import numpy as np

from experiments.refusals import Refused


class Part(NamedTuple):
    """Images and the digits 0, ..., 9 that they show; the arrays may have a leading axis, of splits."""

    x: Any
    digit: Any


class Split(NamedTuple):
    """The three parts of the images: `public` is used freely, `private` through private mechanisms alone, `test` at the end."""

    public: Part
    private: Part
    test: Part


def splits(count: int, seed: int) -> Split:
    """Random thirds, stacked; pixels are scaled by the means and standard deviations of the public third.

    Raises:
        Refused: scikit-learn is not installed.
    """
    try:
        from sklearn.datasets import load_digits
    except ImportError:
        raise Refused("images of digits need the package scikit-learn: pip install '.[data]'") from None
    held, rng = load_digits(), np.random.default_rng(seed)
    several = [_one(held.data, held.target.astype(np.int32), rng) for _ in range(count)]
    return Split(*(Part(*map(np.stack, zip(*part, strict=True))) for part in zip(*several, strict=True)))


def _one(x: np.ndarray, digit: np.ndarray, rng: np.random.Generator) -> list[tuple[np.ndarray, np.ndarray]]:
    order = rng.permutation(len(digit))
    third = len(order) // 3
    places = [order[i * third : (i + 1) * third] for i in range(3)]
    known = x[places[0]]
    scaled = (x - known.mean(axis=0)) / np.maximum(known.std(axis=0), 1.0)  # some pixels hardly vary
    return [(scaled[place].astype(np.float32), digit[place]) for place in places]
