"""Measures the mean largest rank error of `dpjax.quantiles` and of the best of all others, with an interval for their ratio.

The least of a dozen noisy means is too low, so the best method is chosen by some runs and measured by others.
"""

import functools
import math
import zlib
from typing import Any

import numpy as np
import scipy.stats

from dpjax.data.sample import bucket
from dpjax.trials.progress import Progress
from experiments import quantile_peers as peers
from experiments.quantile_contest.cells import Cell, cell
from experiments.quantile_contest.rivals import METHODS, OURS, left_out
from experiments.quantile_trials import Column, Wanted, largest_error, trial
from experiments.records import Row, exact
from experiments.runner import Context
from experiments.settings import Settings

RATIO, MEANS, CHOSEN, KIND = "ratio", "means", "choosing", "cell, "
ANY = "the best other"
METHOD = "the best other method"  # excludes what dpjax.quantiles uses with another base measure
CHUNK = 32
ROWS = 255  # the least capacity of samples, so that few programs are compiled


def measure(settings: Settings, context: Context) -> list[Row]:
    """All rows, by number of the cell. Panel "ratio": the error of `dpjax.quantiles` divided by that of the best other one, and by that of
    the best other method; "means": all three errors; "choosing": the errors of all, from the runs that decide which is best; "cell,
    COLUMN": what was asked."""
    rows: list[Row] = []
    with Progress(len(settings["cells"]), "cells", unit="cells") as progress:
        for number in settings["cells"]:
            asked = cell(number, context.seed, settings)
            sample = asked.sample(context.seed)
            if sample is not None:
                rows += _rows(number, asked, sample, settings, context)
            progress.done(1)
    return rows


def _rows(number: int, asked: Cell, sample: Column, settings: Settings, context: Context) -> list[Row]:
    wanted = Wanted(asked.fractions, asked.epsilon, 0.0, 0.1, sample.bits, sample.origin, settings["base"])
    errors = functools.partial(_errors, number, wanted, sample, context)
    times = settings["times_for_one"] if len(asked.fractions) == 1 else 1
    choosing, draws = (times * settings[name] for name in ("choosing", "draws"))
    tried = {name: errors(name, 0, choosing) for name in [*METHODS, *peers.installed()]}
    found = {OURS: errors(OURS, choosing, draws)}
    same, measures = left_out(len(asked.fractions))
    for who, absent in ((ANY, (OURS, *same)), (METHOD, (OURS, *same, *measures))):
        best = min((name for name in tried if name not in absent), key=lambda name: tried[name].mean())
        found[who] = errors(best, choosing, draws)
    kind = {"records": len(sample.codes), "quantiles": len(asked.fractions), "epsilon": asked.epsilon}
    return [
        *(Row(RATIO, who, number, *_ratio(found[OURS], found[who], settings["level"])) for who in (ANY, METHOD)),
        *(_mean(MEANS, name, number, each, settings) for name, each in found.items()),
        *(_mean(CHOSEN, name, number, each, settings) for name, each in tried.items()),
        *(exact(KIND + asked.name, name, number, value) for name, value in kind.items()),
    ]


def _errors(
    number: int, wanted: Wanted, sample: Column, context: Context, name: str, first: int, draws: int
) -> np.ndarray:
    """Largest rank errors of the runs first, ..., first + draws - 1."""
    at = {"cell": number, "method": name, "from": first, "runs": draws}
    if name not in METHODS:
        peer = peers.PEERS[name][1]
        return np.asarray(context.store.get_or_compute(at, lambda: _of_peer(peer, sample, wanted, first, draws)))
    release = trial(METHODS[name](wanted), sample, bucket(max(len(sample.codes), ROWS)))
    place = zlib.crc32(f"{number} {name} {first}".encode()) >> 1  # adding a rival changes no other's draws
    found = context.evaluate(largest_error, release, key=at, cell=place, draws=draws, chunk=CHUNK)
    return np.minimum(found, len(sample.codes))  # releasing nothing counts as the worst possible error


def _of_peer(peer: Any, sample: Column, wanted: Wanted, first: int, draws: int) -> list[float]:
    """The last `draws` errors of a peer, whose runs are always counted from 0."""
    return peers.largest_errors(sample.codes, peer(sample.codes, wanted, first + draws), wanted.fractions)[
        first:
    ].tolist()


def _mean(panel: str, name: str, number: int, errors: np.ndarray, settings: Settings) -> Row:
    far = _far(len(errors), settings["level"]) * errors.std(ddof=1) / math.sqrt(len(errors))
    return Row(panel, name, number, errors.mean(), errors.mean() - far, errors.mean() + far)


def _ratio(ours: np.ndarray, theirs: np.ndarray, level: float) -> tuple[float, float, float]:
    """The ratio of two means with an interval on the logarithmic scale; 1 if both are 0."""
    a, b = ours.mean(), theirs.mean()
    if a == b == 0.0:
        return 1.0, 1.0, 1.0
    if a == 0.0 or b == 0.0:
        return (0.0, 0.0, 1.0) if a == 0.0 else (math.inf, 1.0, math.inf)
    spread = math.sqrt(sum((each.std(ddof=1) / each.mean()) ** 2 / len(each) for each in (ours, theirs)))
    far = math.exp(_far(len(ours), level) * spread)
    return a / b, a / b / far, a / b * far


def _far(count: int, level: float) -> float:
    return float(scipy.stats.t.ppf((1 + level) / 2, count - 1))
