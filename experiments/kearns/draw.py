"""The picture, from the table alone."""

import pathlib

from dpjax.plotting import style
from experiments import captions, records
from experiments.curves import crossing
from experiments.records import Row
from experiments.settings import Settings

COLOUR = {"Kearns, sanitized axes": style.COLOURS[2], "slices": style.COLOURS[1]}


def draw(rows: list[Row], settings: Settings, out: pathlib.Path) -> None:
    """Writes kearns_examples as PNG and SVG."""
    labels = {
        "axes": ("D (axes)", f"d = {settings['bits']}"),
        "bits": ("d (an axis is {0, ..., $2^d - 1$})", f"D = {settings['axes']}"),
    }
    with style.house():
        fig, panels = style.figure(1, 2, figsize=(8.6, 3.8), sharey=True)
        for axes, (panel, (label, fixed)) in zip(panels, labels.items(), strict=True):
            found = records.series(rows, panel)
            for name, part in found.items():
                axes.plot(*records.curve(part), "--o", color=COLOUR[name], label=name, markersize=4)
            meeting = crossing(*(found[name] for name in COLOUR)) or crossing(
                *(found[name] for name in reversed(COLOUR))
            )
            if meeting is not None:
                axes.plot(*meeting, "o", markersize=11, markerfacecolor="none", color="black")
            met = "they cross at the circle" if meeting is not None else "they do not cross"
            axes.set(yscale="log", xlabel=label, title=f"{fixed}: {met}")
            style.doubling(axes, {row.x for part in found.values() for row in part})
            axes.minorticks_off()
        panels[0].set(ylabel="examples")
        style.title(
            fig,
            f"What is proved to learn a rectangle to error {settings['alpha']:g} {captions.success(settings)}",
            f"{captions.privacy(settings)} under add/remove",
        )
        style.legend_beside(panels[1])
        style.save(fig, out / "kearns_examples")
