"""Measures the numbers of the pictures: winners on grids, where they change, and least n on adversarial data."""

import functools
import itertools
import math
from collections.abc import Callable, Iterable
from typing import Any

import jax
import numpy as np
from scipy import stats

import dpjax
from dpjax.concepts import combs
from dpjax.core import bisection
from dpjax.data.points import Points
from dpjax.data.sample import bucket
from dpjax.domains import wide
from dpjax.optimizers.interior_point import tree_planning
from experiments.records import Row, exact
from experiments.runner import Context
from experiments.settings import Settings

NOTHING = "none below error 1/2"
WHOLE = ("d", "n", "k", "D", "q")  # axes of integers
PRECISION = 2.0**-7  # relative precision of a crossing on an axis of real numbers

# Panel: (x axis, its ends, y axis, its ends, the question at (x, y) with the settings s).
Plane = tuple[str, tuple[float, float], str, tuple[float, float], Callable[[Any, Any, Settings], dpjax.choice.Choice]]
PLANES: dict[str, Plane] = {
    "an interior point": (
        "d",
        (2, 4096),
        "ε",
        (0.05, 8.0),
        lambda d, e, s: dpjax.choose("interior_point", bits=d, epsilon=e, delta=s["delta"], beta=s["beta"]),
    ),
    "a threshold": (
        "d",
        (2, 4096),
        "n",
        (300, 300_000),
        lambda d, n, s: dpjax.choose("threshold", bits=d, n=n, **_budget(s)),
    ),
    "q even quantiles": (
        "d",
        (2, 4096),
        "q",
        (1, 63),
        lambda d, q, s: dpjax.choose(
            "quantiles", bits=d, fractions=[i / (q + 1) for i in range(1, q + 1)], alpha=s["alpha"], **_budget(s)
        ),
    ),
    "k points, d = 64": (
        "k",
        (1, 4096),
        "n",
        (100, 100_000),
        lambda k, n, s: dpjax.choose("k_concepts", bits=64, n=n, k=k, concept="points", **_budget(s)),
    ),
    "k thresholds": (
        "d",
        (2, 4096),
        "k",
        (1, 4096),
        lambda d, k, s: dpjax.choose("k_concepts", bits=d, k=k, concept="thresholds", alpha=s["alpha"], **_budget(s)),
    ),
    "a rectangle, d = 32": (
        "D",
        (1, 64),
        "ε",
        (0.05, 8.0),
        lambda D, e, s: dpjax.choose(
            "rectangle", bits=32, dimensions=D, epsilon=e, alpha=s["alpha"], delta=s["delta"], beta=s["beta"]
        ),
    ),
}


def _budget(settings: Settings) -> dict[str, float]:
    return {name: settings[name] for name in ("epsilon", "delta", "beta")}


def measure(settings: Settings, context: Context) -> list[Row]:
    """Panels of `PLANES` (series: the winner; x, value: its place), these with ", crossing" (series "left | right"), "stated", "worst"."""
    rows: list[Row] = []
    for panel in PLANES:
        found = context.store.get_or_compute({"plane": panel}, functools.partial(_plane, panel, settings))
        rows += [exact(panel, *cell) for cell in found["cells"]]
        rows += [exact(f"{panel}, crossing", *cell) for cell in found["crossings"]]
    for name, several in settings["checked"].items():
        for bits in several:
            both = context.store.get_or_compute(
                {"checked": name, "bits": bits}, functools.partial(_checked, name, bits, settings, context)
            )
            rows += [exact("stated", name, bits, both["stated"]), exact("worst", name, bits, both["worst"])]
    return rows


# ------------------------------------------------------------------------------------------------------------------ planes


def _plane(panel: str, settings: Settings) -> dict[str, Any]:
    """The winner at every place of a grid, and where it changes along every row."""
    x_axis, x_ends, y_axis, y_ends, _ = PLANES[panel]
    cells, crossings = [], []
    for y in grid(y_axis, y_ends, settings["rows"]):
        row = [(x, winner(panel, x, y, settings)) for x in grid(x_axis, x_ends, settings["columns"])]
        cells += [[name, float(x), float(y)] for x, name in row]
        for (left, first), (right, last) in itertools.pairwise(row):
            if first != last:
                x = _border(panel, x_axis, left, right, y, first, settings)
                crossings.append([f"{first} | {last}", x, float(y)])
    return {"cells": cells, "crossings": crossings}


def grid(axis: str, ends: tuple[float, float], count: int) -> list[Any]:
    """Places in equal ratios; on an axis of integers they are rounded, and each occurs once."""
    places = np.geomspace(*ends, count)
    return sorted({round(place) for place in places}) if axis in WHOLE else places.tolist()


def winner(panel: str, x: Any, y: Any, settings: Settings) -> str:
    """The factory of the chosen algorithm, and the accountant of slices, but not a direct sum's accountant or the solver inside."""
    try:
        choice = PLANES[panel][4](x, y, settings)
    except ValueError:
        return NOTHING
    if choice.solved == "alpha" and (choice.alpha or 0.0) >= 0.5:
        return NOTHING
    first, *rest = choice.name.split(", ")
    if first == "direct_sum":
        return f"direct_sum, {rest[1]}"
    return f"slices, {rest[0]}" if first == "slices" else first


def _border(panel: str, axis: str, left: Any, right: Any, y: Any, first: str, settings: Settings) -> float:
    """Where the first winner's region ends, by bisection; on an axis of integers, the midpoint of two neighbours."""
    while (right - left > 1) if axis in WHOLE else (right > left * (1 + PRECISION)):
        middle = (left + right) // 2 if axis in WHOLE else math.sqrt(left * right)
        if winner(panel, middle, y, settings) == first:
            left = middle
        else:
            right = middle
    return float((left + right) / 2)


# ------------------------------------------------------------------------------------------------------------------ checks


def _checked(name: str, bits: int, settings: Settings, context: Context) -> dict[str, float]:
    """The n that is stated, and the least n on the worst known data."""
    stated, worst = CHECKS[name](bits, settings, context)
    return {"stated": float(stated), "worst": float(worst)}


def _interior(bits: int, settings: Settings) -> dict[str, int]:
    """The stated n of every solver."""
    choice = dpjax.choose("interior_point", bits=bits, **_budget(settings))
    return {name: int(n) for name, n in choice.candidates.items() if not isinstance(n, str)}


def _exponential(bits: int, settings: Settings, context: Context) -> tuple[int, int]:
    """The data are copies of two neighbouring keys; by the exact law."""
    solver = dpjax.optimizers.interior_point.exponential(bits=bits, epsilon=settings["epsilon"])
    stated = _interior(bits, settings)["exponential"]

    def failure(n: int) -> float:
        x = [5] * (n // 2) + [6] * (n - n // 2)
        return _failure(solver, x, bits, bucket(stated))

    return stated, bisection.least_int(lambda n: failure(n) <= settings["beta"], 1, stated)


def _tree_score(bits: int, settings: Settings, context: Context) -> tuple[int, int]:
    """The worst of all data, by the tree score's dynamic programme."""
    numbers = tree_planning.numbers(tree_planning.plain(bits))
    exactly = tree_planning.least_n(bits, settings["epsilon"], *numbers, settings["beta"], tree_planning.MOST_STEPS)
    return _interior(bits, settings)["tree_score"], exactly


def _supported_tree(bits: int, settings: Settings, context: Context) -> tuple[int, int]:
    """The worst of all data, by the tree's dynamic programme."""
    given = {"bits": bits, "epsilon": settings["epsilon"], "delta": settings["delta"]}
    solver = dpjax.optimizers.interior_point.supported_tree(**given)
    stated = _interior(bits, settings)["supported_tree"]
    return stated, bisection.least_int(lambda n: solver.worst(n)[0] <= settings["beta"], 1, stated)


def _tree_log(bits: int, settings: Settings, context: Context) -> tuple[int, int]:
    """The worst of all kinds of combs, by the exact law."""
    plan = dpjax.choice.interior_points.made("tree_log", bits, settings["epsilon"], settings["delta"], settings["beta"])
    stated = dpjax.choice.interior_points.points_for(
        "tree_log", bits, settings["epsilon"], settings["delta"], settings["beta"]
    )
    rows, key = bucket(stated), context.root

    @jax.jit
    def law(n: Any) -> Any:
        def one(family: Any) -> Any:
            k = combs.zeros(key, rows, n, jax.numpy.int32(bits), family)
            return plan.failure_probability(combs.points(k, n, jax.numpy.int32(bits), wide.limbs_for(bits)))

        return jax.lax.map(one, jax.numpy.arange(len(combs.FAMILIES), dtype=jax.numpy.int32)).max()

    def failure(n: int) -> float:
        with jax.enable_x64(True):
            return float(law(np.int32(n)))

    return stated, bisection.least_int(lambda n: failure(n) <= settings["beta"], 1, stated)


def _permute_and_flip(bits: int, settings: Settings, context: Context) -> tuple[int, int]:
    """Two neighbouring keys share the median, each with just enough copies that all other keys are too far off."""
    alpha, beta = settings["alpha"], settings["beta"]
    choice = dpjax.choose("median", bits=bits, epsilon=settings["epsilon"], alpha=alpha, beta=beta)

    def failure(n: int) -> float:
        copies, key = math.floor(alpha * n) + 1, 2 ** (bits - 1)
        below = max(0, n // 2 - copies)
        x = [0] * below + [key - 1] * copies + [key] * copies
        return _failure(choice.algorithm, [*x, *[2**bits - 1] * (n - len(x))], bits, bucket(choice.n), error=alpha)

    return choice.n, _last_above(failure, beta, choice.n)


def _last_above(failure: Callable[[int], float], beta: float, most: int) -> int:
    """About where the failure falls to beta, by bisection: as ranks are integers, the failure does not fall at every step of n."""
    low, high = 1, most
    while high - low > max(1, high // 128):
        middle = (low + high) // 2
        low, high = (middle, high) if max(failure(n) for n in range(middle, middle + 4)) > beta else (low, middle)
    return high


def _threshold(bits: int, settings: Settings, context: Context) -> tuple[int, int]:
    """A point mass alpha next to the target, behind a gap in which all thresholds err on it; exact over data and coins."""
    alpha, beta, epsilon = (settings[name] for name in ("alpha", "beta", "epsilon"))
    choice = dpjax.choose("threshold", bits=bits, epsilon=epsilon, alpha=alpha, beta=beta)
    if choice.name != "exponential":
        raise ValueError(f"the exponential mechanism must be the pure choice, got {choice.name}")

    def failure(n: int) -> float:
        count = np.arange(n + 1)
        log_odds = bits * math.log(2.0) + math.log1p(-2 * 2.0**-bits) - epsilon / 2 * count  # 2^d - 2 to 1
        return float(stats.binom.pmf(count, n, alpha) @ stats.logistic.cdf(log_odds))

    return choice.n, bisection.least_int(lambda n: failure(n) <= beta, 1, choice.n)


def _points(bits: int, settings: Settings, context: Context) -> tuple[int, int]:
    """A target of mass alpha, and nothing else labelled 1, so that all other points err on it; exact over data and coins."""
    alpha, beta, epsilon = (settings[name] for name in ("alpha", "beta", "epsilon"))
    question = dpjax.choose("points", bits=bits, epsilon=epsilon, alpha=alpha, beta=beta)
    stated = int(question.candidates["exponential"])

    def failure(n: int) -> float:
        count = np.arange(n + 1)
        log_odds = bits * math.log(2.0) + math.log1p(-(2.0**-bits)) - epsilon / 2 * count
        return float(stats.binom.pmf(count, n, alpha) @ stats.logistic.cdf(log_odds))

    return stated, bisection.least_int(lambda n: failure(n) <= beta, 1, stated)


def _failure(algorithm: Any, x: Iterable[int], bits: int, rows: int, error: float = 0.0) -> float:
    """The algorithm's exact failure probability on these points."""
    several = sorted(x)
    padded = wide.from_ints([*several, *[0] * (rows - len(several))], bits)
    points = Points(x=padded, n_valid=jax.numpy.int32(len(several)), ordered=True)
    with jax.enable_x64(True):
        return float(algorithm.failure_probability(points, error=error))


CHECKS: dict[str, Callable[[int, Settings, Context], tuple[int, int]]] = {
    "exponential": _exponential,
    "points": _points,
    "permute_and_flip": _permute_and_flip,
    "threshold": _threshold,
    "supported_tree": _supported_tree,
    "tree_log": _tree_log,
    "tree_score": _tree_score,
}
