"""Seconds until the first answer: two trials of every contest, eight laws of threshold learners, one call of `dpjax.quantiles`; cold, with
programs on disk, and asked again."""

import functools
import tempfile
import time
from collections.abc import Callable
from typing import Any

import jax
import numpy as np

import dpjax
from dpjax.learners import pac
from dpjax.trials import engine
from experiments.benchmarks import contests, timing
from experiments.records import Row, exact
from experiments.runner import Context

PANEL = "seconds to a first answer, "
COLD, CACHED, AGAIN = "cold", "from disk", "again"
LAWS = 8  # one block


def trials(name: str, sizes: tuple[Any, ...], context: Context) -> list[Row]:
    """Rows of the panel of a contest's cell."""

    def ask() -> None:
        run, params = contests.CONTESTS[name].make(*sizes)
        engine.count(run, params, root=context.root, cell=0, trials=2)

    return _rows(f"{name}, {contests.label(name, sizes)}", ask, context)


def law(name: str, bits: int, n: int, context: Context) -> list[Row]:
    """Rows of the panel of the exact law of a threshold learner."""

    def ask() -> None:
        _, cell = contests.threshold(name, bits, n)
        engine.evaluate(pac.failure, cell, root=context.root, cell=1, draws=LAWS)

    return _rows(f"law of {name}, d={bits}, n={n}", ask, context)


def quantiles(count: int, n: int, context: Context) -> list[Row]:
    """Rows of the panel of `count` evenly spaced quantiles of n incomes in cents, in one call."""
    incomes = np.random.default_rng(0).lognormal(10, 1, n)
    column = dpjax.encode(incomes, unit=0.01, low=0, high=10**6, clip=True)
    fractions = [i / (count + 1) for i in range(1, count + 1)]

    def ask() -> None:
        dpjax.quantiles(column, fractions, epsilon=1.0, key=jax.random.clone(context.root))

    return _rows(f"dpjax.quantiles, m={count}, n={n}", ask, context)


def _rows(what: str, ask: Callable[[], None], context: Context) -> list[Row]:
    record = context.store.get_or_compute({"first answer": what}, functools.partial(_timed, ask))
    return [exact(f"{PANEL}{what}", series, 0, record[series]) for series in (COLD, CACHED, AGAIN)]


def _timed(ask: Callable[[], None]) -> dict[str, float]:
    """Seconds from nothing, making the algorithm included; then with programs on disk, but traced anew; then with programs in memory."""
    with (
        tempfile.TemporaryDirectory() as directory,
        timing.compilation_cache_of(
            jax_enable_compilation_cache=True,
            jax_compilation_cache_dir=directory,
            jax_persistent_cache_min_compile_time_secs=0.0,
            jax_persistent_cache_min_entry_size_bytes=-1,
        ),
    ):
        return {series: _spent(ask, forget=series != AGAIN) for series in (COLD, CACHED, AGAIN)}


def _spent(ask: Callable[[], None], forget: bool) -> float:
    if forget:
        jax.clear_caches()
    began = time.perf_counter()
    ask()
    return time.perf_counter() - began
