"""Whether an algorithm's runs follow the law that it states."""

import math
from typing import Any

import jax
import numpy as np

from dpjax.data.algorithm import Algorithm
from dpjax.verify.family import Family
from dpjax.verify.runs import Incomparable, runner

RUNS, LOOPED_RUNS, DATASETS = 4096, 512, 8
ERROR = 2e-5  # probability of accusing a law that is right


def disagreement(algorithm: Any, p: np.ndarray, datasets: Family, places: tuple[int, ...], seed: int) -> str | None:
    """What runs say against the laws p of some datasets, in words; None if nothing.

    Which outcome has which place in the law is not known, but it has one: there its probabilities on all datasets must be near its
    frequencies. And on each dataset frequencies and probabilities are compared by size: sorting moves no two of them further apart. By
    Hoeffding's bound on each, a right law is accused with probability at most 2e-5. Algorithms of dpjax are not asked: their laws and
    samplers are tested against each other.
    """
    if isinstance(algorithm, Algorithm):
        return None
    chosen = sorted({*places, *range(0, len(datasets.sizes), -(-len(datasets.sizes) // DATASETS))})
    try:
        how = runner(algorithm, datasets.kind.make, datasets.values[-1], datasets.sizes[-1])
        keys = jax.random.split(jax.random.key(seed), len(chosen))
        asked = RUNS if how.compiled else LOOPED_RUNS
        seen = [
            how.outcomes(key, datasets.values[place], datasets.sizes[place], asked)
            for place, key in zip(chosen, keys, strict=True)
        ]
    except NotImplementedError:  # a law alone
        return None
    except Incomparable as why:
        return f"could not be compared with this law: {why}"
    runs = len(seen[0])
    names, codes = np.unique(np.concatenate(seen), return_inverse=True, axis=0)
    width = max(len(names), p.shape[1])
    frequencies = np.array([np.bincount(part, minlength=width) for part in codes.reshape(-1, runs)]) / runs
    law = np.pad(p[chosen], ((0, 0), (0, width - p.shape[1])))
    margin = math.sqrt(math.log(2 * width * len(chosen) / ERROR) / (2 * runs))
    for place, found, stated in zip(chosen, -np.sort(-frequencies), -np.sort(-law), strict=True):
        if np.abs(found - stated).max() > margin:
            shown = f"the outcomes came with frequencies {_few(found)}, where the law has {_few(stated)}"
            return f"do NOT follow this law: on the records {datasets.shown(place)} {shown}"
    for found in frequencies.T[frequencies.max(axis=0) > margin]:
        if np.abs(found[:, None] - law).max(axis=0).min() > margin:
            low, high = np.argmin(found), np.argmax(found)
            where = [f"{found[i]:.3g} on the records {datasets.shown(chosen[i])}" for i in (high, low)]
            seen_and_stated = f"{where[0]} and {where[1]}, and none has such probabilities in the law"
            return f"do NOT follow this law: an outcome came with frequencies {seen_and_stated}"
    return None


def _few(values: np.ndarray) -> str:
    """The largest of sorted numbers."""
    return ", ".join(f"{value:.3g}" for value in values[:3]) + (", ..." if len(values) > 3 else "")
