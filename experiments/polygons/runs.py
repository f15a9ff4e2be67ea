"""Single runs: a hexagon round by round, ten of them on a fine grid, and the outline of a country at three sizes."""

from fractions import Fraction
from typing import Any

import jax
import numpy as np

from dpjax.concepts import polygons as concept
from dpjax.concepts.plane.regions import fraction_lines
from dpjax.domains import wide
from dpjax.learners import polygons
from experiments.polygons import outline
from experiments.records import Row, exact
from experiments.runner import Context
from experiments.settings import Settings

SHOWN = 500  # examples in a picture
Points = list[tuple[float, float]]


def measure(runs: Settings, settings: Settings, context: Context) -> list[Row]:
    """Panels "round j", "many", "outline n" and their errors; coordinates of corners and examples are divided by the side of the grid."""
    return [
        *_rounds(runs["rounds"], settings, context),
        *_many(runs["many"], settings, context),
        *_outline(runs["outline"], settings, context),
    ]


def learned(law: Any, at: Settings, n: int, number: int, settings: Settings, context: Context) -> tuple[Any, Any]:
    """(the sample, the outcome) of one run."""
    given = {name: settings[name] for name in ("epsilon", "delta", "alpha", "beta")}
    made = polygons.convex(bits=at["bits"], sides=at["sides"], **given)
    key_data, key_run = jax.random.split(jax.random.fold_in(context.root, number))
    sample = law.sample(key_data, n, n)
    return sample, made(key_run, sample)


def _rounds(at: Settings, settings: Settings, context: Context) -> list[Row]:
    """The polygon after each number of rounds shown (0: after all), and what is left of the sample."""
    target = concept.regular(bits=at["bits"], sides=at["sides"])
    law = concept.uniform(bits=at["bits"], target=target)
    sample, outcome = learned(law, at, at["n"], 0, settings, context)
    lines = fraction_lines(outcome.hypothesis)[0]
    rows = []
    for shown in at["shown"]:
        count = shown or len(lines)
        panel = f"round {count}"
        rows += _corners(panel, "learned", cut(at["bits"], lines[:count]))
        rows += _corners(panel, "target", cut(at["bits"], fraction_lines(target)[0]))
        rows += _examples(panel, sample, lines[:count], at["bits"])
    return [*rows, exact("round, error", "error", len(lines), float(law.error(outcome.hypothesis)))]


def _many(at: Settings, settings: Settings, context: Context) -> list[Row]:
    """Several runs on one target, and their errors."""
    target = concept.regular(bits=at["bits"], sides=at["sides"])
    law = concept.uniform(bits=at["bits"], target=target)
    rows = _corners("many", "target", cut(at["bits"], fraction_lines(target)[0]))
    for run in range(at["runs"]):
        _, outcome = learned(law, at, at["n"], run, settings, context)
        rows += _corners("many", f"run {run + 1}", cut(at["bits"], fraction_lines(outcome.hypothesis)[0]))
        rows.append(exact("many, error", "error", run + 1, float(law.error(outcome.hypothesis))))
    return rows


def _outline(at: Settings, settings: Settings, context: Context) -> list[Row]:
    """A country learned from reports of places, inside or outside."""
    region, corners = outline.france(at["bits"])
    law = concept.uniform(bits=at["bits"], target=region)
    rows = []
    for number, n in enumerate(at["sizes"]):
        panel = f"outline {n}"
        sample, outcome = learned(law, at, n, number, settings, context)
        lines = fraction_lines(outcome.hypothesis)[0]
        side = 2.0 ** at["bits"]
        rows += _corners(panel, "target", [((x + 0.5) / side, (y + 0.5) / side) for x, y in corners])
        rows += _corners(panel, "learned", cut(at["bits"], lines))
        rows += _examples(panel, sample, [], at["bits"])
        rows.append(exact(f"{panel}, error", "error", n, float(law.error(outcome.hypothesis))))
    return rows


def cut(bits: int, lines: list[tuple[Fraction, Fraction, Fraction]]) -> Points:
    """The corners of the intersection of halfplanes p x + q y <= r with the square of all points' cells, scaled to side 1."""
    side = 2.0**bits
    corners: Points = [(0.0, 0.0), (1.0, 0.0), (1.0, 1.0), (0.0, 1.0)]
    for line in lines:
        size = max(abs(line[0]), abs(line[1]))
        p, q, r = (float(number / size) for number in line)
        r = r / side + (p + q) * 0.5 / side
        corners = _kept(corners, p, q, r)
    return corners


def _kept(corners: Points, p: float, q: float, r: float) -> Points:
    """The part of a polygon in a halfplane (Sutherland, Hodgman 1974)."""
    found: Points = []
    for (x1, y1), (x2, y2) in zip(corners, corners[1:] + corners[:1], strict=True):
        first, second = p * x1 + q * y1 - r, p * x2 + q * y2 - r
        if first <= 0:
            found.append((x1, y1))
        if (first <= 0) != (second <= 0):
            part = first / (first - second)
            found.append((x1 + part * (x2 - x1), y1 + part * (y2 - y1)))
    return found


def _corners(panel: str, series: str, corners: Points) -> list[Row]:
    """Corner i: x in `x`, y in `value`; rows keep their order."""
    return [exact(panel, series, x, y) for x, y in corners]


def _examples(panel: str, sample: Any, lines: list[tuple[Fraction, Fraction, Fraction]], bits: int) -> list[Row]:
    """Those of the first SHOWN examples that no line deleted."""
    rows = []
    for x, y in zip(np.asarray(sample.x)[:SHOWN], np.asarray(sample.y)[:SHOWN].tolist(), strict=True):
        first, second = wide.to_ints(x)
        if all(p * first + q * second <= r for p, q, r in lines):
            name = "inside" if y else "outside"
            rows.append(exact(panel, name, (first + 0.5) / 2.0**bits, (second + 0.5) / 2.0**bits))
    return rows
