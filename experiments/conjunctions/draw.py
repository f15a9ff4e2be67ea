"""Draws the picture from the table of results alone."""

import pathlib

from dpjax.plotting import style
from experiments import captions, records
from experiments.conjunctions.measure import COMPOSED, GREEDY, LISTED, PANELS, SHARED
from experiments.records import Row
from experiments.settings import Settings

COLOUR = {SHARED: style.COLOURS[2], COMPOSED: style.COLOURS[1], LISTED: style.COLOURS[3], GREEDY: style.COLOURS[0]}


def draw(rows: list[Row], settings: Settings, out: pathlib.Path) -> None:
    """Writes least_n as PNG and SVG: solid lines show what is measured, dashed lines what suffices by a theorem."""
    with style.house():
        fig, both = style.figure(1, 2, figsize=(10.6, 4.2), sharey=True)
        for (panel, over), axes in zip(PANELS.items(), both, strict=True):
            for name, part in records.series(rows, panel).items():
                style.interval(axes, *records.columns(part), color=COLOUR[name], marker="o", label=name)
            for name, part in records.series(rows, f"{panel}: theorem").items():
                axes.plot(*records.curve(part), "--", color=COLOUR[name], linewidth=1)
            axes.set(yscale="log")
            style.doubling(axes, settings[panel][over])
        both[0].set(title=f"d = {settings['literals']['bits']} variables", xlabel="k (literals of the target)")
        both[1].set(title=f"k = {settings['variables']['k']} literals", xlabel="d (variables)")
        both[0].set_ylabel("examples")
        both[1].plot([], [], "--", color="grey", linewidth=1, label="dashed: suffices, by its theorem")
        style.legend_beside(both[1])
        style.title(
            fig,
            f"Least n to learn a conjunction of k of d variables, {captions.privacy(settings)} (KLNRS: δ = 0)",
            f"population error at most {settings['alpha']:g} {captions.success(settings)}",
        )
        style.save(fig, out / "least_n")
