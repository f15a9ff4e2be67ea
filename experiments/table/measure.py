"""Measures n* of every cell against k and against log|X|, and fits exponents to it, beside what the theorems say."""

import math
from collections.abc import Iterator, Sequence

from dpjax.multi import parities, tables
from dpjax.trials.progress import Progress
from dpjax.trials.sweep import least_n as sweep
from experiments import exponents, records
from experiments.records import Row, estimated, exact
from experiments.runner import Context
from experiments.settings import Settings
from experiments.table.cells import CELLS, Cell, share

MAXIMUM = 2**20  # examples; a cell that needs more is left out
NUMBERS = ("alpha", "level", "draws", "rtol")


def measure(settings: Settings, context: Context) -> list[Row]:
    """All rows: panels "n by k", "n by log|X|"; "exponent of k" and so on (x: the cell's place in CELLS), "upper of k", "lower of k"."""
    rows = []
    with Progress(2 * len(CELLS), "cells", unit="cells") as progress:
        for cell in CELLS:
            for of in ("k", "log|X|"):
                rows += [_least(cell, of, x, settings, context) for x in grid(cell, of, settings)]
                progress.done(1)
    rows = [row for row in rows if math.isfinite(row.value)]
    return [*rows, *fitted(rows, settings)]


def grid(cell: Cell, of: str, settings: Settings) -> Sequence[int]:
    """The numbers of concepts k, or of bits, at which a cell is measured."""
    if of == "k":
        kind = {"closed form": "flat", "single": cell.entry.privacy}.get(cell.kind, cell.kind)
        return settings["concepts"][kind]
    if cell.kind == "closed form" or (cell.kind, cell.concepts) == ("joint", "thresholds"):
        return settings["bits"]["closed form" if cell.make is None else "generic"]
    return settings["bits"][cell.concepts]


def _least(cell: Cell, of: str, x: int, settings: Settings, context: Context) -> Row:
    """n* at this number of concepts k, or of bits."""
    fixed = settings["fixed"]
    k, bits = (x, fixed["bits"]) if of == "k" else (fixed["k"], x)
    if of == "k" and cell.concepts == "parities":
        bits = fixed["parity bits"]
    place = f"n by {of}"
    if cell.make is None:
        beta = settings["beta"]
        learner = parities.parity_learner(
            bits=bits, k=k, epsilon=settings["epsilon"], delta=settings["delta"], beta=beta
        )
        return exact(place, cell.name, x, learner.sample_size(alpha=0.0, beta=beta))
    make = cell.make
    curve = sweep(
        {cell.name: lambda k, bits: make(k, bits, settings)},
        distribution=lambda k, bits: cell.distribution(k, bits, settings),
        over={"k": [k], "bits": [bits]},
        beta=settings["beta"] / (k if cell.kind == "single" else 1),
        start=max(
            _guess(cell, other, bits, settings)
            for other in ([k] if cell.kind == "joint" else grid(cell, "k", settings))
        ),
        maximum=MAXIMUM,
        seed=context.seed,
        store=context.store,
        **{name: settings[name] for name in NUMBERS},
    )
    (row,) = curve.to_rows()
    n = math.nan if row["n"] is None else row["n"]
    return Row(place, cell.name, x, n, row["low"] or 1, row["high"] or math.inf)


def _guess(cell: Cell, k: int, bits: int, settings: Settings) -> int:
    """Where the search starts; it affects the time, and the capacity, which all k of a direct sum share, and with it one program."""
    if cell.kind == "flat":
        return 600
    if cell.kind == "joint":
        return 300 + round(80 * math.sqrt(k))
    accountant = "basic" if cell.entry.privacy == tables.PURE else "optimal"
    assert cell.hypotheses is not None
    chosen = math.log(cell.hypotheses(settings["fixed"]["bits"])) + math.log(k / settings["beta"])
    error = 0.5 if cell.concepts == "parities" else 0.3 if cell.concepts == "points" else settings["alpha"]
    return max(20, round(2.0 * chosen / (error * share(k, settings, accountant))))


def fitted(rows: list[Row], settings: Settings) -> Iterator[Row]:
    """The exponents fitted to the measured n*, beside the theorems' exponents."""
    for place, cell in enumerate(CELLS):
        for of in ("k", "log|X|"):
            part = records.series(rows, f"n by {of}").get(cell.name, [])
            exponent = exponents.fit(part, factor=cell.factor(of, settings))
            if exponent is None:
                continue
            yield estimated(f"exponent of {of}", cell.name, place, exponent)
            upper, lower = theorems(cell.entry, of)
            yield exact(f"upper of {of}", cell.name, place, upper)
            if cell.entry.lower:
                yield exact(f"lower of {of}", cell.name, place, lower)


def theorems(entry: tables.Entry, of: str) -> tuple[float, float]:
    """(upper, lower): the theorems' exponents."""
    if of == "k":
        return float(entry.upper_exponent), float(entry.lower_exponent)
    return float(entry.upper_domain_exponent), float(entry.lower_domain_exponent)


def misses(cell: Cell, of: str, exponent: Row) -> str:
    """Why the interval of a measured exponent does not meet the theorems' exponents, in words; "" if it does."""
    upper, lower = theorems(cell.entry, of)
    if exponent.low - 0.005 <= upper and (not cell.entry.lower or exponent.high + 0.005 >= lower):
        return ""
    return (cell.why_k if of == "k" else cell.why_bits) or "the grid is too low for the power alone"
