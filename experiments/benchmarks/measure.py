"""Measures all timings: contests, first answers, answers, grids, growth of costs. Records are kept, so a resumed run repeats nothing."""

from typing import Any

from dpjax.trials.progress import Progress
from experiments.benchmarks import answers, firsts, grids, runners, scaling, timing
from experiments.benchmarks.contests import label
from experiments.benchmarks.pool import Pool
from experiments.records import Row
from experiments.runner import Context
from experiments.settings import Settings

RATES = "trials per second, "


def measure(settings: Settings, context: Context) -> list[Row]:
    """All rows."""
    with Pool(processes=2) as pool:
        rows = []
        with Progress(len(settings["contests"]), "contests", unit="contests") as progress:
            for name, sizes in settings["contests"]:
                rows += firsts.trials(name, tuple(sizes), context)
                rows += _contest(name, tuple(sizes), pool, settings, context)
                progress.done(1)
        for name, (bits, n) in settings["laws"]:
            rows += firsts.law(name, bits, n, context)
        for count, n in settings["columns"]:
            rows += firsts.quantiles(count, n, context)
        rows += grids.measure(settings, context)
        rows += answers.measure(settings, pool, context)
        return rows + scaling.measure(settings, pool, context)


def _contest(name: str, sizes: tuple[Any, ...], pool: Pool, settings: Settings, context: Context) -> list[Row]:
    """Trials per second of everything that can run this cell."""
    record = context.store.get_or_compute(
        {"contest": name, "sizes": list(sizes)},
        lambda: timing.rates(runners.everybody(name, sizes, pool, context), settings["seconds"], settings["repeats"]),
    )
    return [Row(f"{RATES}{name}, {label(name, sizes)}", series, 0, *values) for series, values in record.items()]
