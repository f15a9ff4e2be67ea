"""Cells per second of a grid of epsilons, in one call and with one call for each cell; programs are compiled beforehand."""

import functools
import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import dpjax
from dpjax.concepts import thresholds as concept
from experiments.benchmarks import contests
from experiments.benchmarks.numpy_trials import ALPHA
from experiments.records import Row
from experiments.runner import Context
from experiments.settings import Settings

PANEL = "cells per second, "
BITS = 64
TOGETHER, ALONE = "in one call", "one by one"


def measure(settings: Settings, context: Context) -> list[Row]:
    """Rows of `dpjax.least_n` and `dpjax.failures`, by laws of threshold learners."""
    rows = []
    for name in settings["grids"]:
        epsilons = [round(float(e), 4) for e in np.geomspace(0.7, 1.4, settings["epsilons"])]
        for what, ask in {"failures": _failures, "least_n": _least_n}.items():
            record = context.store.get_or_compute(
                {"grid": what, "learner": name, "epsilons": epsilons},
                functools.partial(_timed, functools.partial(ask, name), epsilons, settings["repeats"]),
            )
            rows += [Row(f"{PANEL}{what}, {name}", series, 0, *record[series]) for series in (TOGETHER, ALONE)]
    return rows


def _timed(ask: Callable[[list[float]], Any], epsilons: list[float], repeats: int) -> dict[str, list[float]]:
    """Median, least and largest cells per second of both ways, which take turns."""
    ways = {TOGETHER: [epsilons], ALONE: [[epsilon] for epsilon in epsilons]}
    spent: dict[str, list[float]] = {series: [] for series in ways}
    for turn in range(1 + repeats):  # the first compiles
        for series, calls in ways.items():
            began = time.perf_counter()
            for call in calls:
                ask(call)
            if turn:
                spent[series].append(time.perf_counter() - began)
    rates = {series: [len(epsilons) / each for each in times] for series, times in spent.items()}
    return {series: [statistics.median(each), min(each), max(each)] for series, each in rates.items()}


def _failures(name: str, epsilons: list[float]) -> Any:
    """Failures at one n, the same for all epsilons."""
    return dpjax.failures({name: functools.partial(_learner, name)}, **_given(epsilons), n=1500)


def _least_n(name: str, epsilons: list[float]) -> Any:
    """n* of each epsilon."""
    return dpjax.least_n({name: functools.partial(_learner, name)}, **_given(epsilons), beta=0.1)


def _given(epsilons: list[float]) -> dict[str, Any]:
    return {"distribution": _law, "over": {"epsilon": epsilons}, "alpha": ALPHA}


def _learner(name: str, epsilon: float) -> Any:
    """The learner with that epsilon, and all else as in the contests."""
    return contests.threshold_learner(name, BITS, epsilon)


def _law() -> Any:
    return concept.log_uniform(bits=BITS)
