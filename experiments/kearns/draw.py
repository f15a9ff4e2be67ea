"""Draws the picture from the table of results alone."""

import pathlib
from typing import Any

from dpjax.plotting import style
from experiments import captions, records
from experiments.curves import crossing
from experiments.kearns.measure import KEARNS, SLICES
from experiments.records import Row
from experiments.settings import Settings

COLOUR = {KEARNS: style.COLOURS[2], SLICES: style.COLOURS[1]}
LABEL = {KEARNS: "Kearns's learner, on axes cut by private quantiles", SLICES: "slices, best accountant"}
Curves = dict[str, list[Row]]


def draw(rows: list[Row], settings: Settings, out: pathlib.Path) -> None:
    """Writes kearns_examples as PNG and SVG."""
    labels = {
        "axes": ("D (axes)", f"axes of d = {settings['bits']} bits"),
        "bits": ("d (an axis is {0, ..., $2^d - 1$})", f"D = {settings['axes']} axes"),
    }
    with style.house():
        fig, panels = style.figure(2, 2, figsize=(8.6, 6.8))
        for column, (panel, (label, fixed)) in enumerate(labels.items()):
            proved, measured = records.series(rows, panel), least(records.series(rows, f"{panel}, measured"))
            for axes, how, found in zip(
                panels[:, column], ("proved to suffice", "measured"), (proved, measured), strict=True
            ):
                for name, part in found.items():
                    axes.plot(
                        *records.curve(part), "-" if how == "measured" else "--", color=COLOUR[name], label=LABEL[name]
                    )
                    if how == "measured":
                        style.interval(axes, *records.columns(part), color=COLOUR[name], marker="o")
                axes.set(yscale="log", xlabel=label, title=f"{how}, {fixed}: {_mark(axes, found)}")
                style.doubling(axes, {row.x for part in found.values() for row in part})
                axes.minorticks_off()
        for axes in panels[:, 0]:
            axes.set(ylabel="examples")
        style.title(
            fig,
            f"Examples that learn a rectangle to error {settings['alpha']:g} {captions.success(settings)}",
            f"{captions.privacy(settings)} under add/remove; measured on log-uniform examples, half of them positive",
        )
        fig.legend(*panels[0, 1].get_legend_handles_labels(), loc="outside lower center", ncols=2)
        style.save(fig, out / "kearns_examples")


def least(found: Curves) -> Curves:
    """For each learner and each x, the row with the least n among the learner's series, which differ in depth."""
    best: Curves = {}
    for name in COLOUR:
        part = [row for series, several in found.items() if series.startswith(name) for row in several]
        if part:
            best[name] = [
                min((r for r in part if r.x == x), key=lambda r: r.value) for x in sorted({r.x for r in part})
            ]
    return best


def _mark(axes: Any, found: Curves) -> str:
    """Draws a circle where the two curves cross, and says in words where that is."""
    if set(found) < set(COLOUR):
        return "nothing to compare"
    one, other = (found[name] for name in COLOUR)
    meeting = crossing(one, other) or crossing(other, one)
    if meeting is None:
        return "no crossing"
    axes.plot(*meeting, "o", markersize=13, markerfacecolor="none", color="black")
    return f"crossing near {meeting[0]:.2g}"
