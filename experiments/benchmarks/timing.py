"""How things are timed: in turns, several times over, and the median is kept, since machines drift."""

import statistics
import time
from collections.abc import Callable, Mapping
from typing import Any

Runner = Callable[[int], Any]  # makes so many trials


def rates(runners: Mapping[str, Runner], seconds: float, repeats: int) -> dict[str, list[float]]:
    """Trials per second of each runner: median, least and largest."""
    trials = {name: _enough(run, seconds) for name, run in runners.items()}
    found: dict[str, list[float]] = {name: [] for name in runners}
    for _ in range(repeats):
        for name, run in runners.items():
            found[name].append(trials[name] / spent(run, trials[name]))
    return {name: [statistics.median(r), min(r), max(r)] for name, r in found.items()}


def _enough(run: Runner, seconds: float) -> int:
    """Trials that take about `seconds`, most of them not spent on the call itself, nor on a part of a block; the first call compiles."""
    trials = 2  # one for each process: what is worked out once is worked out now
    run(trials)
    call = spent(run, trials)
    while (taken := spent(run, trials)) < max(seconds / 4, min(3 * call, seconds)) or _is_free(run, trials, taken):
        trials = int(trials * min(16.0, max(2.0, seconds / max(taken, 1e-6))))
    return max(trials, int(trials * seconds / taken))


def _is_free(run: Runner, trials: int, taken: float) -> bool:
    """Whether as many trials again take hardly longer: blocks are computed whole, on every core."""
    return spent(run, 2 * trials) < 1.5 * taken


def spent(run: Runner, trials: int) -> float:
    """Seconds of one call."""
    began = time.perf_counter()
    run(trials)
    return time.perf_counter() - began
