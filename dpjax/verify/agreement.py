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

    Which outcome has which place in the law is not known, so frequencies and probabilities are compared by size: sorting moves no two
    of them further apart. By Hoeffding's bound on each, a right law is accused with probability at most 2e-5. Algorithms of dpjax are
    not asked: their laws and samplers are tested against each other.
    """
    if isinstance(algorithm, Algorithm):
        return None
    chosen = sorted({*places, *range(0, len(datasets.sizes), -(-len(datasets.sizes) // DATASETS))})
    try:
        how = runner(algorithm, datasets.kind.make, datasets.values[-1], datasets.sizes[-1])
    except (Incomparable, NotImplementedError):
        return None
    for place, key in zip(chosen, jax.random.split(jax.random.key(seed), len(chosen)), strict=True):
        runs = RUNS if how.compiled else LOOPED_RUNS
        outcomes = how.outcomes(key, datasets.values[place], datasets.sizes[place], runs)
        seen = np.unique(outcomes, return_counts=True, axis=0)[1] / len(outcomes)
        width = max(len(seen), p.shape[1])
        found, stated = (np.sort(np.pad(part, (0, width - len(part))))[::-1] for part in (seen, p[place]))
        gaps = np.abs(found - stated)
        if gaps.max() > math.sqrt(math.log(2 * width * len(chosen) / ERROR) / (2 * len(outcomes))):
            shown = f"the outcomes came with frequencies {_few(found)}, where the law has {_few(stated)}"
            return f"on the records {datasets.shown(place)} {shown}"
    return None


def _few(values: np.ndarray) -> str:
    """The largest of sorted numbers."""
    return ", ".join(f"{value:.3g}" for value in values[:3]) + (", ..." if len(values) > 3 else "")
