"""Measures the numbers of the pictures."""

import math
from collections.abc import Callable, Sequence
from typing import Any

from dpjax import bounds
from dpjax.concepts import polygons as concept
from dpjax.learners import polygons
from dpjax.trials.sweep import least_n
from experiments.polygons import hull, outline, runs
from experiments.records import Row, exact
from experiments.runner import Context
from experiments.settings import Settings

SHARED, COMPOSED, BOX = "a shared test", "composition", "a shared test, GEO's measure"
HULL, PRINTED = "convex hull, not private", "GEO's constants"
GIVEN: dict[str, dict[str, Any]] = {SHARED: {}, COMPOSED: {"accountant": "composition"}, BOX: {"measure": "box"}}
NUMBERS = ("alpha", "beta", "level", "rtol", "trials", "start")


def measure(settings: Settings, context: Context) -> list[Row]:
    """All rows: panels "sides" and "bits" (n*), "sides, asked" and "bits, asked" (what the proofs require), and those of `runs`."""
    outline.france(settings["runs"]["outline"]["bits"])  # Refused before anything is measured, if unavailable
    rows = []
    for panel, other in (("sides", "bits"), ("bits", "sides")):
        group = settings[f"over {panel}"]
        xs = {SHARED: group[panel], COMPOSED: group.get("composition", ()), BOX: group["box"]}
        for series, several in xs.items():
            rows += _least_n(panel, series, several, {other: group[other]}, settings, context)
            rows += _asked(panel, series, several, {other: group[other]}, settings)
        rows += _printed(panel, group[panel], {other: group[other]}, settings)
        rows += hull.rows(
            panel, HULL, [{other: group[other], panel: x} for x in group[panel]], panel, settings, context
        )
    return rows + runs.measure(settings["runs"], settings, context)


def learner(series: str, settings: Settings) -> Callable[..., Any]:
    """The learner of a series, as a function of bits and sides."""
    given = {name: settings[name] for name in ("epsilon", "delta", "alpha", "beta")}
    return lambda bits, sides: polygons.convex(bits=bits, sides=sides, **given, **GIVEN[series])


def _least_n(
    panel: str, series: str, xs: Sequence[int], fixed: dict[str, int], settings: Settings, context: Context
) -> list[Row]:
    if not xs:
        return []
    curve = least_n(
        {series: learner(series, settings)},
        distribution=lambda bits, sides: concept.uniform(bits=bits, target=concept.regular(bits=bits, sides=sides)),
        over={panel: xs, **{name: [value] for name, value in fixed.items()}},
        seed=context.seed,
        store=context.store,
        progress=True,
        **{name: settings[name] for name in NUMBERS},
    )
    found = [row for row in curve.to_rows() if row["n"] is not None]
    return [Row(panel, series, row[panel], row["n"], row["low"] or 1, row["high"] or math.inf) for row in found]


def _asked(panel: str, series: str, xs: Sequence[int], fixed: dict[str, int], settings: Settings) -> list[Row]:
    sizes = {"alpha": settings["alpha"], "beta": settings["beta"]}
    make = learner(series, settings)
    return [exact(f"{panel}, asked", series, x, make(**{panel: x, **fixed}).sample_size(**sizes)) for x in xs]


def _printed(panel: str, xs: Sequence[int], fixed: dict[str, int], settings: Settings) -> list[Row]:
    rows = []
    for x in xs:
        at = {panel: x, **fixed}
        size = bounds.convex_polygons(
            2 ** at["bits"], at["sides"], *(settings[name] for name in ("alpha", "beta", "epsilon", "delta"))
        )
        rows.append(exact(f"{panel}, asked", PRINTED, x, size))
    return rows
