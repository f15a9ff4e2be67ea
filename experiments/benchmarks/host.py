"""The same trials on the processors of the host, while an accelerator is measured in this process."""

import concurrent.futures
import multiprocessing
import os
from typing import Any

import jax

from dpjax.trials import engine
from experiments.benchmarks import timing
from experiments.benchmarks.contests import CONTESTS
from experiments.benchmarks.pool import environment

CELL = 5  # the cell whose trials both the host and the accelerator count
MOST_TRIALS = 2**14


def start() -> concurrent.futures.ProcessPoolExecutor:
    """A pool of processes for `successes`, one for every four cores; JAX in them sees the CPU alone."""
    processes = max(1, (os.cpu_count() or 1) // 4)
    pool = concurrent.futures.ProcessPoolExecutor(processes, multiprocessing.get_context("spawn"))
    # A process reads this as it starts. One is started with each task that finds none idle.
    with environment(JAX_PLATFORMS="cpu"):
        concurrent.futures.wait([pool.submit(_start_jax) for _ in range(processes)])
    return pool


def _start_jax() -> None:
    jax.devices()


def successes(name: str, sizes: tuple[Any, ...], seed: int) -> tuple[int, int]:
    """(trials, successes), for about as many trials as fit into a second."""
    run, params = CONTESTS[name].make(*sizes)
    root = engine.root_key(seed)

    def count(trials: int) -> int:
        return engine.count(run, params, root=root, cell=CELL, trials=trials)

    few = 16
    count(few)
    trials = min(MOST_TRIALS, 1 << max(4, int(few / timing.spent(count, few)).bit_length() - 1))
    return trials, count(trials)
