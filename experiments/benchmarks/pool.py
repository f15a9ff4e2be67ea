"""Runs the NumPy programs on several processes, which find them by name."""

import contextlib
import math
import multiprocessing
import os
import signal
from collections.abc import Iterator
from multiprocessing.synchronize import Barrier
from types import TracebackType
from typing import Any

import numpy as np

from experiments.benchmarks.numpy_driver import count, within
from experiments.benchmarks.programs import PROGRAMS

START_SECONDS = 120.0


class Pool:
    """`numpy_driver.count` of a program, by its name, on several processes that are started once.

    >>> with Pool(2) as pool:  # doctest: +SKIP
    ...     pool.count("rec_concave", (31, 2000), 10_000, 0)
    """

    def __init__(self, processes: int = 2) -> None:
        within(processes=(processes, 1, math.inf))
        self.processes = processes

    def __enter__(self) -> "Pool":
        # Spawned, not forked: the parent may run threads of its own (JAX does).
        context = multiprocessing.get_context("spawn")
        ready = context.Barrier(self.processes + 1)
        # One thread each: a linear algebra library would start as many as there are cores. It reads this when it is loaded.
        with environment(OPENBLAS_NUM_THREADS="1", OMP_NUM_THREADS="1"):
            self._pool = context.Pool(self.processes, _start, (ready,))
        ready.wait(timeout=START_SECONDS)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._pool.terminate()
        self._pool.join()

    def count(self, name: str, sizes: tuple[Any, ...], trials: int, seed: int) -> int:
        """As `numpy_driver.count`, with the trials shared evenly; the result also depends on the number of processes."""
        shares = [(trials + i) // self.processes for i in range(self.processes)]
        seeds = np.random.SeedSequence(seed).spawn(self.processes)
        return sum(self._pool.starmap(_share, [(name, sizes, *pair) for pair in zip(shares, seeds, strict=True)], 1))


@contextlib.contextmanager
def environment(**variables: str) -> Iterator[None]:
    """Sets these environment variables inside the context, and restores the old ones after it."""
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name, None)
            os.environ.update({name: value} if value is not None else {})


def _start(ready: Barrier) -> None:
    """Starts a worker: everything is imported by then (it had to find this function), and it waits for the others."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent, which ends its workers
    ready.wait(timeout=START_SECONDS)


def _share(name: str, sizes: tuple[Any, ...], trials: int, seed: np.random.SeedSequence) -> int:
    """The successes among one worker's share of the trials."""
    return count(PROGRAMS[name], sizes, trials, seed)
