"""Measures mean largest rank errors, with intervals for the mean, over a method's coins on one sample of each column."""

import functools
import math
from typing import Any

import numpy as np
import scipy.stats

from dpjax.data.sample import bucket
from dpjax.trials.progress import Progress
from experiments import quantile_peers as peers
from experiments.quantile_trials import Wanted, column, even, largest_error, trial
from experiments.quantiles import data, learners
from experiments.quantiles.methods import METHODS, mechanism
from experiments.records import Row
from experiments.runner import Context
from experiments.settings import Settings


def measure(settings: Settings, context: Context) -> list[Row]:
    """All rows: panels "COLUMN, n", "COLUMN, quantiles", "COLUMN, epsilon" and "everywhere", whose x is the column's place in the settings;
    and those of `learners`."""
    cells = _cells(settings)
    beside, rows = peers.installed(), []
    sample = functools.cache(lambda name, n: column(name, n, context.seed, data.RULES))
    with Progress(len(cells) * len(METHODS), "quantiles", unit="cells") as progress:
        for number, (panel, name, x, n, count, epsilon) in enumerate(cells):
            drawn = sample(name, n)
            if drawn is None:
                progress.done(len(METHODS))
                continue
            asked = {key: settings[key] for key in ("delta", "beta", "base")}
            wanted = Wanted(fractions=even(count), epsilon=epsilon, bits=drawn.bits, origin=drawn.origin, **asked)
            at = {"column": name, "n": n, "count": count, "epsilon": epsilon}
            for place, method in enumerate(METHODS):
                release = trial(mechanism(method, wanted), drawn, bucket(max(*settings["sizes"], settings["n"])))
                cell = number * len(METHODS) + place
                key = {"method": method, **at}
                found = context.evaluate(largest_error, release, key=key, cell=cell, draws=settings["draws"], chunk=16)
                rows += _row(panel, method, x, found, settings)
                progress.done(1)
            for method, peer in beside.items():
                run = functools.partial(_of_peer, peer, drawn.codes, wanted, settings["peers"])
                rows += _row(panel, method, x, context.store.get_or_compute({"peer": method, **at}, run), settings)
    return rows + (learners.measure(settings, context) if settings["learners"] else [])


def _cells(settings: Settings) -> list[tuple[str, str, float, int, int, float]]:
    """(panel, column, x, n, number of quantiles, epsilon)."""
    n, count, epsilon = settings["n"], settings["count"], settings["epsilon"]
    found = []
    for name in settings["curves"]:
        found += [(f"{name}, n", name, float(size), size, count, epsilon) for size in settings["sizes"]]
        found += [(f"{name}, quantiles", name, float(q), n, q, epsilon) for q in settings["counts"]]
        found += [(f"{name}, epsilon", name, e, n, count, e) for e in settings["epsilons"]]
    found += [("everywhere", name, float(i), n, count, epsilon) for i, name in enumerate(settings["everywhere"])]
    return found


def _of_peer(peer: peers.Peer, codes: np.ndarray, wanted: Wanted, draws: int) -> list[float]:
    return peers.largest_errors(codes, peer(codes, wanted, draws), wanted.fractions).tolist()


def _row(panel: str, method: str, x: float, values: Any, settings: Settings) -> list[Row]:
    """The mean with Student's interval; nothing if a share of beta or more of the runs released nothing."""
    values = np.asarray(values, float)
    released = values[np.isfinite(values)]
    if len(released) <= (1 - settings["beta"]) * len(values):
        return []
    far = scipy.stats.t.ppf((1 + settings["level"]) / 2, len(released) - 1) * released.std(ddof=1)
    mean, far = released.mean(), far / math.sqrt(len(released))
    return [Row(panel, method, x, mean, mean - far, mean + far)]
