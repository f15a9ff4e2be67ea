"""How the cost grows with n, with d and with the number of trials, and the exponents fitted to it."""

import functools
from typing import Any

from dpjax.learners import pac
from dpjax.trials import engine
from dpjax.trials.progress import Progress
from experiments import exponents
from experiments.benchmarks import runners, timing
from experiments.benchmarks.contests import CONTESTS
from experiments.benchmarks.pool import Pool
from experiments.records import Row, estimated
from experiments.runner import Context
from experiments.settings import Settings

PANEL, EXPONENT = "scaling, ", "exponent, "
BITS, EXAMPLES = 64, 2000  # d and n, each fixed while the other grows
CHEAP = ("erm", (31, 100))  # whose trials are counted by the million


def measure(settings: Settings, pool: Pool, context: Context) -> list[Row]:
    """Panels "scaling, AXIS": seconds of a trial, a law or all trials; "exponent, AXIS": fitted to the upper half, which starts at x."""
    rows, cells = [], [(axis, x) for axis, sizes in settings["scaling"].items() for x in sizes]
    with Progress(len(cells), "scaling", unit="cells") as progress:
        for axis, x in cells:
            record = context.store.get_or_compute(
                {"scaling": axis, "x": x}, functools.partial(_cell, axis, x, pool, settings, context)
            )
            rows += [Row(f"{PANEL}{axis}", series, x, *values) for series, values in record.items()]
            progress.done(1)
    return rows + fitted(rows)


def fitted(rows: list[Row]) -> list[Row]:
    """Exponents of the upper half of each series' sizes, with their range while every time stays between its least and greatest."""
    found = []
    for panel, series in dict.fromkeys((row.panel, row.series) for row in rows):
        exponent = exponents.fit([row for row in rows if (row.panel, row.series) == (panel, series)])
        if exponent is not None:
            axis = panel.removeprefix(PANEL)
            found.append(estimated(f"{EXPONENT}{axis}", series, exponent.first, exponent))
    return found


def _cell(axis: str, x: int, pool: Pool, settings: Settings, context: Context) -> dict[str, list[float]]:
    """Seconds (median, least, greatest) of every series at x."""
    if axis == "trials":
        name, sizes = CHEAP
        everybody = {"dpjax": runners.dpjax(CONTESTS[name].make(*sizes), context), **runners.numpy(name, sizes, pool)}
        return {f"{who}, all trials of {name}": _whole(run, x, settings["repeats"]) for who, run in everybody.items()}
    sizes = (BITS, x) if axis == "n" else (x, EXAMPLES)
    trial = CONTESTS["rec_concave"].make(*sizes)
    everybody = {"dpjax": runners.dpjax(trial, context), **runners.numpy("rec_concave", sizes, pool)}
    found = timing.rates(
        {f"{who}, a trial of RecConcave": run for who, run in everybody.items()}
        | {"dpjax, a law of RecConcave": functools.partial(_laws, trial[1], context)},
        settings["seconds"],
        settings["repeats"],
    )
    return {series: [1 / middle, 1 / high, 1 / low] for series, (middle, low, high) in found.items()}


def _whole(run: timing.Runner, trials: int, repeats: int) -> list[float]:
    """Seconds of one call, after one to warm up."""
    run(min(trials, 1000))
    taken = sorted(timing.spent(run, trials) for _ in range(repeats))
    return [taken[len(taken) // 2], taken[0], taken[-1]]


def _laws(params: Any, context: Context, draws: int) -> Any:
    """`draws` exact failure probabilities, each of one draw."""
    return engine.evaluate(pac.failure, params, root=context.root, cell=4, draws=draws, batch=1)
