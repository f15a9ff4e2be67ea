"""An accelerator beside two cores: `python -m experiments run experiments.benchmarks.accelerator:EXPERIMENT --out DIR`.

Trials per second of every contest, and of some by the size of a block; what share of the device's measured ceilings they reach; whether as
many of the same trials succeed as on the host's CPU; and how far laws of the same data differ. Rates of two cores are those of the
benchmark's table.
"""

import concurrent.futures
import dataclasses
import functools
import pathlib
import statistics
from typing import Any

import jax

from dpjax.learners import pac
from dpjax.trials import engine, estimates
from dpjax.trials.progress import Progress
from experiments import records
from experiments.benchmarks import CONTESTS, ceilings, contests, host, timing
from experiments.benchmarks.contests import label
from experiments.benchmarks.draw_accelerator import (
    AGREEMENT,
    BATCHES,
    CEILINGS,
    COST,
    CPU,
    DEVICE,
    DIFFERENCE,
    FLOOR,
    HOST,
    LAWS,
    MEAN,
    NAME,
    draw,
)
from experiments.benchmarks.measure import RATES
from experiments.records import Row, estimated, exact
from experiments.refusals import Refused
from experiments.runner import Context, Experiment
from experiments.settings import Settings

COMPILED_AT_A_TIME = 8  # XLA compiles without Python's lock
Cell = tuple[str, tuple[Any, ...]]


def measure(settings: Settings, context: Context) -> list[Row]:
    """All rows; records are kept as they come."""
    cells = [(name, tuple(sizes)) for name, sizes in settings["contests"]]
    swept = [(name, tuple(sizes)) for name, sizes in settings["by batch"]]
    elsewhere = _two_cores(pathlib.Path(settings["two cores"]))
    pool = host.start()
    try:
        told = {cell: pool.submit(host.successes, *cell, context.seed) for cell in cells}
        batches = {cell: _batch(cell, settings) for cell in cells}
        _compile([*batches.items(), *((cell, batch) for cell in swept for batch in settings["batches"])], context)
        concurrent.futures.wait(told.values())  # from here on the host is busy with the device alone
        rows = [exact(NAME, jax.devices()[0].device_kind, 0, jax.device_count()), *_ceilings(settings, context)]
        with Progress(len(cells), "contests", unit="contests") as progress:
            for cell, batch in batches.items():
                rows += _contest(cell, batch, told[cell], settings, context)
                rows += [row for row in elsewhere if row.panel == f"{RATES}{_said(cell)}"]
                progress.done(1)
        for cell in swept:
            rows += _by_batch(cell, settings, context)
        return rows + _laws(settings, context)
    finally:
        pool.shutdown(cancel_futures=True)


def _two_cores(table: pathlib.Path) -> list[Row]:
    """The benchmark's rates, from its table."""
    if not table.is_file():
        raise Refused(f"two cores must be a table that the benchmarks wrote, got {str(table)!r}")
    found = [row for row in records.read(table) if row.panel.startswith(RATES) and row.series == DEVICE]
    if not found:
        raise Refused(f"two cores must be a table with rates of dpjax, got {str(table)!r}")
    return [dataclasses.replace(row, series=CPU) for row in found]


def _said(cell: Cell) -> str:
    return f"{cell[0]}, {label(*cell)}"


def _batch(cell: Cell, settings: Settings) -> int:
    """The number of trials in a block: the default, or fewer where a block would take minutes."""
    return min(engine.default_batch(*contests.CONTESTS[cell[0]].make(*cell[1])), settings["most"].get(cell[0], 2**15))


def _counter(trial: contests.Trial, batch: int | None, context: Context) -> timing.Runner:
    """A runner that makes the given number of trials."""
    run, params = trial
    return lambda trials: engine.count(run, params, root=context.root, cell=0, trials=trials, batch=batch)


def _compile(cells: list[tuple[Cell, int]], context: Context) -> None:
    """Compiles all programs, several at a time; they are found again when they are timed."""

    def compiled(each: tuple[Cell, int]) -> None:
        (name, sizes), batch = each
        _counter(contests.CONTESTS[name].make(*sizes), batch, context)(1)

    with (
        Progress(len(cells), "programs", unit="programs") as progress,
        concurrent.futures.ThreadPoolExecutor(COMPILED_AT_A_TIME) as threads,
    ):
        for _ in threads.map(compiled, cells):
            progress.done(1)


def _ceilings(settings: Settings, context: Context) -> list[Row]:
    """The most that the device can do per second."""
    size, seconds, repeats = settings["words"], settings["seconds"], settings["repeats"]
    record = context.store.get_or_compute({"ceilings": size}, lambda: ceilings.measure(size, seconds, repeats))
    return [Row(CEILINGS, series, 0, *values) for series, values in record.items()]


def _contest(cell: Cell, batch: int, told: Any, settings: Settings, context: Context) -> list[Row]:
    """Rates of the device, and of the floor on it; what a trial costs; successes of the same trials."""
    record = context.store.get_or_compute(
        {"contest": cell[0], "sizes": list(cell[1]), "batch": batch},
        functools.partial(_timed, cell, batch, told, settings, context),
    )
    said, trials = _said(cell), record["trials"]
    rows = [Row(f"{RATES}{said}", series, batch, *values) for series, values in record["rates"].items()]
    rows += [exact(f"{COST}{said}", series, batch, value) for series, value in record["cost"].items()]
    for series, successes in record["successes"].items():
        found = estimates.clopper_pearson(successes, trials)
        rows.append(estimated(f"{AGREEMENT}{said}", series, trials, found))
    return rows


def _timed(cell: Cell, batch: int, told: Any, settings: Settings, context: Context) -> dict[str, Any]:
    contest = contests.CONTESTS[cell[0]]
    run, params = trial = contest.make(*cell[1])
    floor = contest.floor(*cell[1])
    rates = {
        DEVICE: _blocks(_counter(trial, batch, context), batch, settings),
        FLOOR: _blocks(_counter(floor, None, context), engine.default_batch(*floor), settings),
    }
    trials, on_host = told.result()
    here = engine.count(run, params, root=context.root, cell=host.CELL, trials=trials, batch=batch)
    return {
        "rates": rates,
        "cost": {ceilings.WORDS: ceilings.drawn(trial), ceilings.BYTES: engine.traffic(run, params, batch=batch)},
        "trials": trials,
        "successes": {DEVICE: here, HOST: on_host},
    }


def _blocks(run: timing.Runner, batch: int, settings: Settings) -> list[float]:
    """Trials per second of whole blocks: median, least and greatest; of one block, if that alone takes longer than all should."""
    run(batch)
    taken = timing.spent(run, batch)
    trials = batch * max(1, round(settings["seconds"] / taken))
    found = [
        trials / timing.spent(run, trials) for _ in range(settings["repeats"] if taken < settings["seconds"] else 1)
    ]
    return [statistics.median(found), min(found), max(found)]


def _by_batch(cell: Cell, settings: Settings, context: Context) -> list[Row]:
    """Rates by the number of trials in a block."""
    trial = contests.CONTESTS[cell[0]].make(*cell[1])
    record = context.store.get_or_compute(
        {"by batch": cell[0], "sizes": list(cell[1])},
        lambda: [_blocks(_counter(trial, batch, context), batch, settings) for batch in settings["batches"]],
    )
    found = zip(settings["batches"], record, strict=True)
    return [Row(f"{BATCHES}{_said(cell)}", DEVICE, batch, *values) for batch, values in found]


def _laws(settings: Settings, context: Context) -> list[Row]:
    """The largest difference of failure probabilities between the device and a CPU, for the same samples."""
    rows = []
    for name, (bits, n) in settings["laws"]:
        ask = functools.partial(_difference, name, bits, n, settings, context)
        record = context.store.get_or_compute({"law": name, "bits": bits, "n": n}, ask)
        rows += [exact(f"{LAWS}{name}, d={bits}, n={n}", series, 0, value) for series, value in record.items()]
    return rows


def _difference(name: str, bits: int, n: int, settings: Settings, context: Context) -> dict[str, float]:
    """The mean failure on the CPU, and the largest difference of any sample; both are traced for the device, and compiled for each."""
    _, cell = contests.threshold(name, bits, n)
    keys = jax.random.split(context.root, settings["draws"])

    def failures(samples: Any) -> Any:
        return jax.vmap(lambda sample: cell.learner.failure_probability(sample, error=cell.alpha))(samples)

    cpu, device = jax.devices("cpu")[0], jax.devices()[0]
    with jax.default_device(cpu):
        samples = jax.jit(jax.vmap(lambda key: pac.draw(key, cell)[1]))(jax.device_put(keys, cpu))
    here, there = (jax.device_get(jax.jit(failures)(jax.device_put(samples, place))) for place in (device, cpu))
    return {MEAN: float(there.mean()), DIFFERENCE: float(abs(here - there).max())}


LAW_CELLS = [  # where some of the runs fail, and some do not
    ["exponential", [64, 250]],
    ["binary_search", [64, 1300]],
    ["rec_concave", [64, 1400]],
    ["exponential", [1024, 2900]],
    ["rec_concave", [1024, 2000]],
]
FULL = {
    "contests": CONTESTS,
    "most": {"convex polygon": 2**9},
    "two cores": "figures/benchmarks/benchmarks.csv",
    "by batch": [
        ["exponential", [64, 2000]],
        ["rec_concave", [64, 2000]],
        ["tree_log", [64, 2000]],
        ["point_learner", [256, 1784]],
    ],
    "batches": [2**6, 2**9, 2**12, 2**15],
    "laws": LAW_CELLS,
    "draws": 32,
    "words": 2**28,
    "seconds": 1.0,
    "repeats": 5,
}
EXPERIMENT = Experiment(
    summary="an accelerator beside two cores: rates, ceilings, sizes of blocks, the same trials and laws",
    presets={
        "smoke": {
            **FULL,
            "contests": [["laplace", [1000]]],
            "by batch": [["laplace", [1000]]],
            "batches": [2**3, 2**6],
            "laws": [["exponential", [31, 300]]],
            "draws": 4,
            "words": 2**18,
            "seconds": 0.05,
            "repeats": 1,
        },
        "quick": {**FULL, "seconds": 0.2, "repeats": 3},
        "full": FULL,
    },
    measure=measure,
    draw=draw,
    timed=True,
)
