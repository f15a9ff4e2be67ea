"""Measures the numbers of the picture."""

import math
from typing import Any

from dpjax.concepts import rectangles as concept
from dpjax.learners import pac, rectangles
from dpjax.optimizers import interior_point, quantiles
from dpjax.optimizers.quantiles import half_slice
from dpjax.sanitizers import cdf
from experiments import least_n
from experiments.records import Row, exact
from experiments.runner import Context
from experiments.settings import Settings

KEARNS, SLICES = "Kearns, sanitized axes", "slices"
DEEPER = 4  # how many depths of the quantiles are tried, from the least one on
MAXIMUM = 2**22  # examples
TIES = 24  # bits that tell equal coordinates apart


def measure(settings: Settings, context: Context) -> list[Row]:
    """All rows: panels "axes" and "bits" for what is proved, "axes, measured" and "bits, measured" for what is measured."""
    rows = []
    for panel in ("axes", "bits"):
        for x in settings[f"over {panel}"]:
            at = {**settings, panel: x}
            rows += [exact(panel, KEARNS, x, sanitized_axes(at)), exact(panel, SLICES, x, slices(at))]
    return rows + _measured(settings, context)


# ------------------------------------------------------------------------------------------------- what is proved


def slices(settings: Settings) -> int:
    """The number of examples that `rectangles.rectangles` requires, with the accountant that requires the fewest."""
    return _by_slices(settings).sample_size(alpha=settings["alpha"], beta=settings["beta"])


def _by_slices(settings: Settings) -> rectangles.Rectangles:
    return rectangles.rectangles(**{name: settings[name] for name in ("axes", "bits", "epsilon", "delta", "beta")})


def sanitized_axes(settings: Settings) -> int:
    """The number of examples that `rectangles.kearns` requires at the best depth of the quantiles."""
    fewest = math.floor(math.log2(8 * settings["axes"] / settings["alpha"])) + 1
    learners = [_at_depth(depth, settings) for depth in range(fewest, fewest + DEEPER)]
    return min(learner.sample_size(alpha=settings["alpha"], beta=settings["beta"]) for learner in learners)


def _at_depth(depth: int, settings: Settings) -> rectangles.Kearns:
    axes, bits, epsilon, beta = (settings[name] for name in ("axes", "bits", "epsilon", "beta"))
    # Each level of each axis's quantiles costs the solver's epsilon twice, because slices of neighbours differ by a replacement.
    solver = interior_point.exponential(bits=bits + TIES, epsilon=epsilon / (4 * axes * depth))
    runs, failure = 2**depth - 1, beta / (4 * axes)
    found = quantiles.recursive(
        solver=solver, bits=bits, depth=depth, m=half_slice(solver, beta=failure / runs), beta=failure
    )
    release = cdf.release(quantiles=found)
    learner = rectangles.kearns(axes=axes, bits=bits, epsilon=epsilon / 2, sanitizer=release, cuts=runs, beta=beta)
    assert learner.guarantee().covers(epsilon * (1 + 1e-9), settings["delta"])
    return learner


# ----------------------------------------------------------------------------------------------- what is measured


def useful_depth(settings: Settings) -> int:
    """The least depth at which the two cells with the target's ends have, summed over all axes, mass at most alpha if cells are even."""
    return math.ceil(math.log2(2 * settings["axes"] / settings["alpha"]))


def _measured(settings: Settings, context: Context) -> list[Row]:
    """n* of both learners at the settings' points; the guarantees, m and tau are those of the proofs, and only the depth is smaller."""
    rows, cell = [], 0
    for panel in ("axes", "bits"):
        for x in settings[f"measured over {panel}"]:
            at = {**settings, panel: x}
            depth = useful_depth(at)
            for deeper in settings["deeper"]:
                learner = _at_depth(depth + deeper, at)
                start = learner.cuts * int(
                    learner.threshold
                )  # as many positive examples as make every cell significant
                name = f"{KEARNS}, {depth + deeper} levels"
                rows += _least_n(name, panel, learner, pac.trial, start, cell, at, context)
                cell += 1
            chosen = _by_slices(at)
            start = chosen.sample_size(alpha=at["alpha"], beta=at["beta"]) // 2
            rows += _least_n(SLICES, panel, chosen, rectangles.trial, start, cell, at, context)
            cell += 1
    return rows


def _least_n(
    name: str, panel: str, learner: Any, trial: Any, start: int, cell: int, settings: Settings, context: Context
) -> list[Row]:
    """One row, or none if no n was found."""
    axes, bits = settings["axes"], settings["bits"]
    low, high = concept.centred(axes=axes, bits=bits)
    law = concept.log_uniform(bits=bits, low=low, high=high)

    def make(n: int, capacity: int) -> pac.Experiment:
        return pac.Experiment(learner=learner, distribution=law, n=n, alpha=settings["alpha"], capacity=capacity)

    key = {"panel": panel, "series": name, "axes": axes, "bits": bits}
    found = least_n.by_trials(
        trial, make, key=key, cell=cell, start=start, maximum=MAXIMUM, settings=settings, context=context
    )
    return (
        []
        if found.n is None
        else [Row(f"{panel}, measured", name, settings[panel], found.n, found.low, found.high or math.inf)]
    )
