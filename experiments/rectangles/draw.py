"""Draws the two pictures from the table of results alone."""

import math
import pathlib
from typing import Any

from dpjax.plotting import style
from experiments import captions, records
from experiments.records import Row
from experiments.rectangles.measure import SLICES
from experiments.settings import Settings

SERIES = {
    "basic": ("basic composition", style.COLOURS[0]),
    "optimal": ("optimal composition", style.COLOURS[3]),
    "bounded": ("composition by ranges", style.COLOURS[4]),
    "slicing_printed": ("slicing, printed (CLNSS Theorem 2.1)", style.COLOURS[1]),
    "slicing": ("slicing, numerical", style.COLOURS[2]),
}


def draw(rows: list[Row], settings: Settings, out: pathlib.Path) -> None:
    """Writes rectangles_least_n and rectangles_learned as PNG and SVG."""
    with style.house():
        _draw_least_n(rows, settings, out / "rectangles_least_n")
        _draw_learned(rows, settings, out / "rectangles_learned")


# ------------------------------------------------------------------------------------------------------ (a) n* by D


def slope(part: list[Row]) -> float | None:
    """The exponent at the right end: from the greatest x that is at most half of the last to the last x; None if there is none."""
    if not part or part[0].x > part[-1].x / 2:
        return None
    before = [row for row in part if row.x <= part[-1].x / 2][-1]
    return math.log(part[-1].value / before.value) / math.log(part[-1].x / before.x)


def crossing(first: list[Row], second: list[Row]) -> float | None:
    """The least common x from which on the second curve is never above the first; None if there is none."""
    other = {row.x: row.value for row in second}
    shared = [(row.x, other[row.x] <= row.value) for row in first if row.x in other]
    wins = [all(better for _, better in shared[i:]) for i in range(len(shared))]
    return next((x for (x, _), win in zip(shared, wins, strict=True) if win), None)


def _draw_least_n(rows: list[Row], settings: Settings, path: pathlib.Path) -> None:
    """(a) n* against D."""
    fig, axes = style.figure(figsize=(7.4, 4.6))
    formula, measured = records.series(rows, "formula"), records.series(rows, "least n")
    for name, (text, colour) in SERIES.items():
        part = formula.get(name, [])
        axes.plot(*records.curve(part), "--", color=colour, linewidth=1)
        seen = measured.get(name, [])
        style.interval(
            axes,
            *records.curve(seen),
            [r.low for r in seen],
            [r.high for r in seen],
            color=colour,
            marker="o",
            **style.nested(int(name != "basic"), 2),
            label=f"{text}{_slopes(seen, part)}",
        )
    axes.plot([], [], "--", color="grey", linewidth=1, label="dashed: proved to suffice")
    _mark(axes, formula, "slicing", "slicing overtakes\ncomposition", (14, -46))
    _mark(axes, formula, "slicing_printed", "as printed it\novertakes composition", (-125, 30))
    axes.set(yscale="log", xlabel="D (dimensions)", ylabel="examples")
    style.doubling(axes, [r.x for r in formula["slicing"] if math.log2(r.x).is_integer()])
    axes.minorticks_off()
    alpha, success = settings["alpha"], captions.success(settings)
    style.title(
        fig,
        f"Least n that learns a rectangle to population error {alpha:g} {success}: one algorithm, five analyses",
        f"{captions.privacy(settings)}, exponential mechanism on each of 2D slices, uniform data of {settings['bits']} bits",
    )
    style.legend_beside(axes)
    style.save(fig, path)


def _slopes(seen: list[Row], part: list[Row]) -> str:
    """The exponents for the legend, with the D at which they are taken."""
    named = [("measured", seen, slope(seen)), ("dashed", part, slope(part))]
    texts = [f"{name} $D^{{{power:.2f}}}$ at {rows[-1].x:g}" for name, rows, power in named if power is not None]
    return "\n  " + ", ".join(texts) if texts else ""


def _mark(axes: Any, formula: dict[str, list[Row]], name: str, text: str, offset: tuple[float, float]) -> None:
    """Draws a ring where a formula begins to require fewer examples than composition by ranges."""
    at = crossing(formula.get("bounded", []), formula.get(name, []))
    if at is None or at == formula[name][0].x:
        return
    height = next(row.value for row in formula[name] if row.x == at)
    axes.plot(at, height, marker="o", markersize=11, markerfacecolor="none", color="black", linestyle="none")
    axes.annotate(
        f"D = {at:g}: {text}",
        (at, height),
        xytext=offset,
        textcoords="offset points",
        fontsize=8,
        arrowprops={"arrowstyle": "-", "color": "black", "linewidth": 0.7},
    )


# --------------------------------------------------------------------------------------------- (b) a learned rectangle


def _draw_learned(rows: list[Row], settings: Settings, path: pathlib.Path) -> None:
    """(b) the examples of one run, coloured by slice, the target and the hypothesis."""
    fig, axes = style.figure(figsize=(6.6, 5.0))
    points = records.series(rows, "points")
    looks = {"negative": ("#C8C8C8", "x", 6), "positive": ("#8A8A8A", ".", 5)}
    looks |= {name: (style.COLOURS[i], ".", 12) for i, name in enumerate(SLICES)}
    for name, (colour, marker, size) in looks.items():
        part = points.get(name, [])
        label = f"{name} ({len(part):,})" if name not in SLICES else f"slice {name} ({len(part):,})"
        axes.scatter(*records.curve(part), s=size, c=colour, marker=marker, linewidths=0.6, label=label)
    boxes = records.series(rows, "rectangle")
    for name, line in (("target", "--"), ("hypothesis", "-")):
        (left, right), (bottom, top) = ((side.low, side.high) for side in boxes[name])
        corners = [left, right, right, left, left], [bottom, bottom, top, top, bottom]
        axes.plot(*corners, line, color="black", linewidth=1.6, label=name)
    run = {name: part[0].value for name, part in records.series(rows, "run").items()}
    axes.set(xlabel="axis 1 (share of the domain)", ylabel="axis 2", xlim=(0, 1), ylim=(0, 1), aspect="equal")
    axes.grid(False)
    budget = captions.privacy({**settings, **settings["picture"]})
    style.title(
        fig,
        f"A rectangle learned from {run['n']:,.0f} examples, {budget}: population error {run['error']:.3f}",
        f"slices of {run['m']:.0f} + geometric noise, cut in the order of the legend; each gives one face",
    )
    style.legend_beside(axes, markerscale=2)
    style.save(fig, path)
