"""The convex hull of the positive examples: what can be learned without privacy."""

from collections.abc import Sequence

import numpy as np
from scipy.spatial import ConvexHull, QhullError

from dpjax.concepts import polygons as concept
from dpjax.domains import wide
from dpjax.trials import estimates, search
from experiments.records import Row
from experiments.runner import Context
from experiments.settings import Settings

FINEST = 7  # bits; with a hundred examples, finer grids make no difference
TRIALS = 400


def rows(
    panel: str, series: str, cells: Sequence[dict[str, int]], x: str, settings: Settings, context: Context
) -> list[Row]:
    """Least n of each cell, by trials with NumPy."""
    found: dict[tuple[int, int], search.LeastN] = {}
    rows = []
    for cell in cells:
        at = (min(cell["bits"], FINEST), cell["sides"])
        best = found[at] = found.get(at) or least_n(*at, settings, context)
        rows.append(Row(panel, series, cell[x], best.n or np.inf, best.low or 1, best.high or np.inf))
    return rows


def least_n(bits: int, sides: int, settings: Settings, context: Context) -> search.LeastN:
    """Least n with P[error > alpha] <= beta."""
    law = concept.uniform(bits=bits, target=concept.regular(bits=bits, sides=sides))
    grid = np.stack(np.divmod(np.arange(4**bits), 2**bits), axis=1)
    from_ints = wide.from_ints(grid.ravel().tolist(), bits).reshape(-1, 2, 1)
    target = np.asarray(concept.label(law.target, from_ints))

    def failure(n: int) -> estimates.Estimate:
        generator = np.random.default_rng([context.seed, bits, sides])
        failed = sum(_error(generator, n, grid, target) > settings["alpha"] for _ in range(TRIALS))
        return estimates.clopper_pearson(failed, TRIALS, level=settings["level"])

    return search.least_n(failure, beta=settings["beta"], start=128, maximum=2**14, rtol=settings["rtol"])


def _error(generator: np.random.Generator, n: int, grid: np.ndarray, target: np.ndarray) -> float:
    """The error, over the whole grid, of the hull of the positive ones among n examples; a hull without area holds nothing."""
    drawn = generator.integers(len(grid), size=n)
    positive = grid[drawn[target[drawn]]]
    try:
        sides = ConvexHull(positive).equations
    except (QhullError, ValueError):
        return float(target.mean())
    sides = np.unique(sides.round(12), axis=0)
    held = (grid @ sides[:, :2].T + sides[:, 2] <= 1e-9).all(axis=1)
    return float(np.mean(held != target))
