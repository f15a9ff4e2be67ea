"""How things are timed: in turns, several times over, and the median is kept, since machines drift."""

import contextlib
import statistics
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import jax
from jax.experimental.compilation_cache import compilation_cache

Runner = Callable[[int], Any]  # makes the given number of trials


def rates(runners: Mapping[str, Runner], seconds: float, repeats: int) -> dict[str, list[float]]:
    """Trials per second of each runner: median, least and largest."""
    trials = {name: _enough(run, seconds) for name, run in runners.items()}
    found: dict[str, list[float]] = {name: [] for name in runners}
    for _ in range(repeats):
        for name, run in runners.items():
            found[name].append(trials[name] / spent(run, trials[name]))
    return {name: [statistics.median(r), min(r), max(r)] for name, r in found.items()}


def _enough(run: Runner, seconds: float) -> int:
    """How many trials take about `seconds`, most of it spent neither on the call itself nor on part of a block; the first call compiles."""
    trials = 2  # one for each process: what is computed once is computed now
    run(trials)
    call = spent(run, trials)
    while (taken := spent(run, trials)) < max(seconds / 4, min(3 * call, seconds)) or _is_free(run, trials, taken):
        trials = int(trials * min(16.0, max(2.0, seconds / max(taken, 1e-6))))
    return max(trials, int(trials * seconds / taken))


def _is_free(run: Runner, trials: int, taken: float) -> bool:
    """Whether twice as many trials take hardly longer, because blocks are computed whole, on every core."""
    return spent(run, 2 * trials) < 1.5 * taken


@contextlib.contextmanager
def compilation_cache_of(**values: Any) -> Iterator[None]:
    """Gives JAX's settings of its cache on disk these values inside the context."""
    before = {name: jax.config.values[name] for name in values}
    try:
        _configure(values)
        yield
    finally:
        _configure(before)


def _configure(values: Mapping[str, Any]) -> None:
    for name, value in values.items():
        jax.config.update(name, value)
    compilation_cache.reset_cache()  # otherwise its use and its place are decided only once


def spent(run: Runner, trials: int) -> float:
    """Seconds of one call."""
    began = time.perf_counter()
    run(trials)
    return time.perf_counter() - began
