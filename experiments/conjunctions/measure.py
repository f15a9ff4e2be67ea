"""Measures the numbers of both panels."""

import math
from collections.abc import Iterator
from typing import Any

from dpjax.concepts import conjunctions as concept
from dpjax.learners import conjunctions
from dpjax.learners.conjunctions.exponential import MOST_CONCEPTS, concepts
from dpjax.trials.sweep import least_n
from experiments.records import Row, exact
from experiments.runner import Context
from experiments.settings import Settings

SHARED, COMPOSED, LISTED, GREEDY = (
    "a shared test (GEO)",
    "composition",
    "all conjunctions (KLNRS)",
    "greedy, not private",
)
PANELS = {"literals": "k", "variables": "bits"}  # each panel and the parameter that it varies
FIRST = 48  # the theorem's n divided by the first n tried, so that capacities are near the n found


def measure(settings: Settings, context: Context) -> list[Row]:
    """All rows: panels "literals" and "variables" as measured; "literals: theorem" and "variables: theorem", what suffices by a theorem."""
    rows = []
    for panel, over in PANELS.items():
        for series in (SHARED, COMPOSED, LISTED, GREEDY):
            start = None
            for cell in _cells(settings[panel], over):
                if series == LISTED and concepts(cell["bits"], cell["k"]) > MOST_CONCEPTS:
                    continue
                asked = _learner(series, cell, settings).sample_size(alpha=settings["alpha"], beta=settings["beta"])
                rows.append(exact(f"{panel}: theorem", series, cell[over], asked))
                found = _least_n(series, cell, start or max(asked // FIRST, 8), settings, context)
                if found["n"] is not None:
                    start = found["n"]
                    rows.append(Row(panel, series, cell[over], start, found["low"] or 1, found["high"] or math.inf))
    return rows


def _cells(given: dict[str, Any], over: str) -> Iterator[dict[str, int]]:
    """k and d of every point of a panel."""
    for value in given[over]:
        yield {**given, over: value}


def _learner(series: str, cell: dict[str, int], settings: Settings) -> Any:
    """The algorithm of a series."""
    bits, k, epsilon, alpha = cell["bits"], cell["k"], settings["epsilon"], settings["alpha"]
    if series == LISTED:
        return conjunctions.exponential(bits=bits, k=k, epsilon=epsilon)
    if series == GREEDY:
        return conjunctions.greedy(bits=bits, k=k, alpha=alpha)
    return conjunctions.conjunction(
        bits=bits,
        k=k,
        epsilon=epsilon,
        delta=settings["delta"],
        alpha=alpha,
        beta=settings["beta"],
        accountant="shared_test" if series == SHARED else "composition",
    )


def _least_n(series: str, cell: dict[str, int], start: int, settings: Settings, context: Context) -> dict[str, Any]:
    """n*, by the exact law where there is one and by trials otherwise."""

    def distribution(bits: int) -> Any:
        share = round(2.0 ** (-1 / cell["k"]) * 2**8) / 2**8
        last = range(bits - cell["k"], bits)  # the greedy choice takes them last among equals
        return concept.product(bits=bits, target=[2 * v for v in last], p=share)

    curve = least_n(
        {series: lambda bits: _learner(series, cell, settings)},
        distribution=distribution,
        over={"bits": [cell["bits"]]},
        start=start,
        seed=context.seed,
        store=context.store,
        progress=True,
        **{name: settings[name] for name in ("alpha", "beta", "level", "rtol", "trials", "draws")},
    )
    return curve.to_rows()[0]
