"""The picture, from the table alone."""

import pathlib
from typing import Any

from dpjax.plotting import style
from experiments import captions, records
from experiments.curves import crossing
from experiments.kearns.measure import KEARNS, SLICES
from experiments.records import Row
from experiments.settings import Settings

COLOUR = {KEARNS: style.COLOURS[2], SLICES: style.COLOURS[1]}
Curves = dict[str, list[Row]]


def draw(rows: list[Row], settings: Settings, out: pathlib.Path) -> None:
    """Writes kearns_examples as PNG and SVG."""
    labels = {
        "axes": ("D (axes)", f"d = {settings['bits']}"),
        "bits": ("d (an axis is {0, ..., $2^d - 1$})", f"D = {settings['axes']}"),
    }
    with style.house():
        fig, panels = style.figure(2, 2, figsize=(9.4, 6.8))
        for column, (panel, (label, fixed)) in enumerate(labels.items()):
            proved, measured = records.series(rows, panel), least(records.series(rows, f"{panel}, measured"))
            for axes, how, found in zip(panels[:, column], ("proved", "measured"), (proved, measured), strict=True):
                for name, part in found.items():
                    axes.plot(*records.curve(part), "--" if how == "proved" else "-", color=COLOUR[name], label=name)
                    if how == "measured":
                        style.interval(axes, *records.columns(part), color=COLOUR[name], marker="o")
                axes.set(yscale="log", xlabel=label, title=f"{fixed}, {how}: {_mark(axes, found)}")
                style.doubling(axes, {row.x for part in found.values() for row in part})
                axes.minorticks_off()
        for axes in panels[:, 0]:
            axes.set(ylabel="examples")
        style.title(
            fig,
            f"Examples that learn a rectangle to error {settings['alpha']:g} {captions.success(settings)}",
            f"{captions.privacy(settings)} under add/remove; measured on log-uniform examples, half of them positive",
        )
        style.legend_beside(panels[0, 1])
        style.save(fig, out / "kearns_examples")


def least(found: Curves) -> Curves:
    """Of the series of each learner, which differ in depth, the one with the least n at each x."""
    best: Curves = {}
    for name in COLOUR:
        part = [row for series, several in found.items() if series.startswith(name) for row in several]
        if part:
            best[name] = [
                min((r for r in part if r.x == x), key=lambda r: r.value) for x in sorted({r.x for r in part})
            ]
    return best


def _mark(axes: Any, found: Curves) -> str:
    """A circle where the two cross, and in words where that is."""
    if set(found) < set(COLOUR):
        return "nothing to compare"
    one, other = (found[name] for name in COLOUR)
    meeting = crossing(one, other) or crossing(other, one)
    if meeting is None:
        return "they do not cross"
    axes.plot(*meeting, "o", markersize=13, markerfacecolor="none", color="black")
    return f"they cross at {meeting[0]:.2g}"
