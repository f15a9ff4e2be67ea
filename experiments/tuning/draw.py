"""The picture, from the table alone."""

import pathlib
from typing import Any

from dpjax.plotting import style
from experiments import captions, records
from experiments.records import Row
from experiments.settings import Settings

LOOKS: dict[str, dict[str, Any]] = {
    "derived": {"color": style.COLOURS[1], "linestyle": "--", "marker": "o"},
    "tuned": {"color": style.COLOURS[2], "marker": "o"},
}


def draw(rows: list[Row], settings: Settings, out: pathlib.Path) -> None:
    """Writes tuning as PNG and SVG: failure against n above, what each mechanism spends below."""
    names = list(settings["cases"])
    least = records.series(rows, "least n")
    with style.house():
        fig, panels = style.figure(2, len(names), figsize=(2.6 * len(names) + 1.0, 5.2), squeeze=False)
        for column, name in enumerate(names):
            _draw_failure(panels[0][column], name, column, rows, least, settings)
            _draw_parts(panels[1][column], records.series(rows, f"epsilon, {name}"), settings)
        panels[0][0].set_ylabel("failure on held-out data")
        style.legend_beside(panels[0][-1])
        total = f"ε = {settings['epsilon']:g}, δ = {captions.number(settings['delta'])}"
        style.title(
            fig,
            f"One total privacy ({total}), split as derived and as tuned by the law; domains of {settings['bits']} bits",
        )
        style.save(fig, out / "tuning")


def _draw_failure(axes: Any, name: str, column: int, rows: list[Row], least: Any, settings: Settings) -> None:
    for series, part in records.series(rows, f"failure, {name}").items():
        axes.plot(*records.curve(part), label=series, markersize=3.5, **LOOKS[series])
    axes.axhline(settings["beta"], color="grey", linewidth=0.8, linestyle=":", label=f"β = {settings['beta']:g}")
    n = {series: next(row.value for row in part if row.x == column) for series, part in least.items()}
    axes.set(
        yscale="log",
        xlabel="n",
        title=f"{name}\nleast n: {n['derived']:g} → {n['tuned']:g}",
        ylim=(1e-4, 1.5),
    )
    axes.xaxis.get_major_locator().set_params(nbins=4, integer=True)


def _draw_parts(axes: Any, parts: dict[str, list[Row]], settings: Settings) -> None:
    left = {0: 0.0, 1: 0.0}
    for colour, (name, part) in zip(style.COLOURS, parts.items(), strict=False):
        for row in part:
            where = int(row.x)
            axes.barh(1 - where, row.value, left=left[where], color=colour, label=name if where == 0 else None)
            left[where] += row.value
    axes.set(yticks=[1, 0], yticklabels=["derived", "tuned"], xlabel="ε spent", xlim=(0, settings["epsilon"] * 1.01))
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.35), fontsize=6, frameon=False)
