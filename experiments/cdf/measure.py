"""Measures the numbers of the two pictures."""

import functools
import math
from typing import Any

import jax
import numpy as np

from dpjax.concepts import thresholds as concept
from dpjax.core.pytree import frozen, static
from dpjax.data.points import Points
from dpjax.data.sample import bucket
from dpjax.domains import wide
from dpjax.sanitizers import cdf
from dpjax.trials import estimates
from dpjax.trials.progress import Progress
from experiments.curves import signed_log2
from experiments.records import Row, estimated, exact
from experiments.releases import METHODS, mechanism, upper_quantile
from experiments.runner import Context
from experiments.settings import Settings

# -------------------------------------------------------------------------------------------------------------- trials


@frozen
class Trial:
    """One release on fresh data; all fields but the static shapes are data of the compiled program."""

    release: cdf.CdfRelease
    distribution: Any
    n: Any
    capacity: int = static()
    limbs: int = static()


def draw_points(key: jax.Array, distribution: Any, capacity: int, n: Any, limbs: int) -> Points:
    """n points, without the additional limb that thresholds may need."""
    sample = distribution.sample(key, capacity, n)
    return Points(x=wide.resize(sample.x, limbs), n_valid=sample.n_valid, ordered=True)


def distance(key: jax.Array, trial: Trial) -> Any:
    """Kolmogorov distance of a release to its own sample."""
    key_data, key_coins = jax.random.split(key)
    points = draw_points(key_data, trial.distribution, trial.capacity, trial.n, trial.limbs)
    return trial.release(key_coins, points).hypothesis.distance(points)


def _trial(method: str, count: int, n: int, settings: Settings) -> Trial:
    return Trial(
        release=mechanism(method, count, settings),
        distribution=concept.log_uniform(bits=settings["bits"]),
        n=np.int32(n),
        capacity=bucket(max(settings["sizes"])),  # one compiled program for all sizes
        limbs=wide.limbs_for(settings["bits"]),
    )


def measure(settings: Settings, context: Context) -> list[Row]:
    """All rows: panels "distance", "quantiles", "promise" and those of the picture."""
    return [*_distances(settings, context), *_picture(settings, context)]


def _distances(settings: Settings, context: Context) -> list[Row]:
    """The distance that 1 - beta of the releases stay within, at the best number of quantiles, with a distribution-free interval."""
    rows, cells = [], [(method, n) for method in METHODS for n in settings["sizes"]]
    with Progress(len(cells) * len(settings["counts"]), "distance", unit="cells") as progress:
        for number, (method, n) in enumerate(cells):
            found = []
            for place, count in enumerate(settings["counts"]):
                cell = number * len(settings["counts"]) + place
                values = np.sort(_evaluate(_trial(method, count, n, settings), method, count, cell, settings, context))
                found.append(functools.partial(upper_quantile, values, 1 - settings["beta"]))
                progress.done(1)
            best = estimates.smallest(found, level=settings["level"])
            each = [one(level=settings["level"]).value for one in found]
            rows.append(estimated("distance", method, n, best))
            rows.append(exact("quantiles", method, n, settings["counts"][int(np.argmin(each))]))
            rows += _promised(method, n, settings)
    return rows


def _evaluate(trial: Trial, method: str, count: int, cell: int, settings: Settings, context: Context) -> np.ndarray:
    key = {"panel": "distance", "method": method, "count": count, "n": int(trial.n)}
    return context.evaluate(distance, trial, key=key, cell=cell, draws=settings["draws"], chunk=1024)


def _promised(method: str, n: int, settings: Settings) -> list[Row]:
    """What the theorem promises: the least alpha for which n points suffice, over all numbers of quantiles; no row if it is 1."""
    alpha, _ = _best_promise(method, n, settings)
    return [exact("promise", method, n, alpha)] if alpha < 1 else []


def _best_promise(method: str, n: int, settings: Settings) -> tuple[float, int]:
    """(the least alpha promised, the number of quantiles that attains it)."""
    counts = settings["counts"]
    return min((_least_alpha(mechanism(method, count, settings), n, settings["beta"]), count) for count in counts)


def _least_alpha(release: cdf.CdfRelease, n: int, beta: float) -> float:
    """The least alpha promised for n points, by bisection of `sample_size`, which falls with alpha; 1 if none below 1 is found."""
    low, high = cdf.widest_gap(release.quantiles.fractions) / 2, 1.0
    for _ in range(20):
        middle = (low + high) / 2
        low, high = (low, middle) if release.sample_size(alpha=middle, beta=beta) <= n else (middle, high)
    return high


# ------------------------------------------------------------------------------------------------------------- picture


def _picture(settings: Settings, context: Context) -> list[Row]:
    """One release of the same sample by each method, with the band that the theorem promises, and the true distribution function."""
    n, bits = settings["picture"], settings["bits"]
    distribution, target = concept.log_uniform(bits=bits), 1 << (bits - 1)
    rows = [exact("settings", "picture n", 0, n), exact("settings", "beta", 0, settings["beta"])]
    for octave in range(-bits + 1, bits):
        rows.append(exact("true", "true", octave, _below(distribution, octave)))
    key_data, key_coins = jax.random.split(jax.random.fold_in(context.root, 2**31))
    points = draw_points(key_data, distribution, bucket(n), n, wide.limbs_for(bits))
    for number, method in enumerate(METHODS):
        alpha, count = _best_promise(method, n, settings)
        outcome = mechanism(method, count, settings)(jax.random.fold_in(key_coins, number), points)
        released = jax.device_get(outcome.hypothesis)
        ends = [-float(bits), *(signed_log2(z - target) for z in wide.to_ints(released.points)), float(bits)]
        heights = [*map(float, released.heights), float(released.heights[-1])]
        for x, height in zip(ends, heights, strict=True):
            rows.append(Row("released", method, x, height, max(height - alpha, 0.0), min(height + alpha, 1.0)))
        rows.append(exact("released alpha", method, count, alpha))
        rows.append(exact("released distance", method, count, float(outcome.hypothesis.distance(points))))
    return rows


def _below(distribution: Any, octave: int) -> float:
    """D[X < target + sign(octave) (2^|octave| - 1)], the point drawn at x = octave."""
    offset = (1 << abs(octave)) - 1
    limbs = distribution.target.shape[0]
    step = wide.from_ints([offset], 32 * limbs)[0]
    moved = wide.add(distribution.target, step) if octave > 0 else wide.subtract(distribution.target, step)
    return 0.5 + math.copysign(float(distribution.error(moved)), octave)
