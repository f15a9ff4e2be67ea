"""Measures the numbers of the picture."""

import math
from typing import Any

from dpjax import bounds
from dpjax.concepts import points as concept
from dpjax.learners import points
from dpjax.trials.cells import LAW, TRIALS
from dpjax.trials.sweep import least_n
from experiments.records import Row, exact
from experiments.runner import Context
from experiments.settings import Settings

PROPER, IMPROPER, APPROXIMATE = "pure, proper", "pure, improper (hashed)", "approximate, proper (LearnPoints)"
ANY_PURE = "pure, any"  # the series of a lower bound


def measure(settings: Settings, context: Context) -> list[Row]:
    """All rows: panels "least n" and "bound"."""
    return [*_least_n(settings, context), *_bounds(settings)]


def learner(name: str, bits: int, settings: Settings) -> Any:
    """The learner of that name at the experiment's privacy; LearnPoints answers with all-zero for bottom (BNS Remark 3.3)."""
    epsilon = settings["epsilon"]
    if name == PROPER:
        return points.exponential(bits=bits, epsilon=epsilon)
    if name == IMPROPER:
        return points.hashed(bits=bits, epsilon=epsilon, alpha=settings["alpha"], beta=settings["beta"])
    return points.learn_points(bits=bits, epsilon=epsilon, delta=settings["delta"], bottom="zero")


def distribution(bits: int, settings: Settings) -> Any:
    """The given mass at the target, and all the rest at 0."""
    target, mass = 2**bits // 3, settings["mass"]
    return concept.point_masses(bits=bits, points=[0, target], masses=[1 - mass, mass], target=target)


def _least_n(settings: Settings, context: Context) -> list[Row]:
    """n*, by the law of each learner that has one, and by trials for the hashed one, whose law is known only given its hash."""
    rows = []
    for by, names in ((LAW, (PROPER, APPROXIMATE)), (TRIALS, (IMPROPER,))):
        curve = least_n(
            {name: lambda bits, name=name: learner(name, bits, settings) for name in names},
            distribution=lambda bits: distribution(bits, settings),
            over={"bits": settings["bits"]},
            by=by,
            seed=context.seed,
            store=context.store,
            progress=True,
            **{key: settings[key] for key in ("alpha", "beta", "level", "rtol", "draws", "trials")},
        )
        found = [row for row in curve.to_rows() if row["n"] is not None]
        rows += [
            Row("least n", row["series"], row["bits"], row["n"], row["low"] or 1, row["high"] or math.inf)
            for row in found
        ]
    return rows


def _bounds(settings: Settings) -> list[Row]:
    """The numbers of examples that every pure learner needs, and that every proper pure one needs."""
    alpha, beta, epsilon = (settings[key] for key in ("alpha", "beta", "epsilon"))
    rows = []
    for bits in settings["bounds"]:
        rows.append(exact("bound", PROPER, bits, bounds.pure_points(bits, 1, alpha, beta, epsilon)))
        rows.append(exact("bound", ANY_PURE, bits, bounds.pure_packing_padded(1, alpha, beta, epsilon)))
    return rows
