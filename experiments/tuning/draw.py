"""Draws the picture from the table of results alone."""

import pathlib
from typing import Any

from dpjax.plotting import style
from experiments import captions, records
from experiments.records import Row
from experiments.settings import Settings
from experiments.tuning.measure import place as column

MOST_COLUMNS = 3
TITLES = {
    "median (slice)": "median, by RecConcave on a slice",
    "cdf, 3 quantiles (slice)": "3 quantiles, by RecConcave on slices",
    "set cover, k=3": "a conjunction of 3 literals",
    "rectangles, D=2": "a rectangle of 2 dimensions",
}
LOOKS: dict[str, dict[str, Any]] = {
    "derived": {"color": style.COLOURS[1], "linestyle": "--", "marker": "o"},
    "tuned": {"color": style.COLOURS[2], "marker": "o"},
}


def draw(rows: list[Row], settings: Settings, out: pathlib.Path) -> None:
    """Writes tuning as PNG and SVG: failure against n, and below it what each mechanism spends, or the integers of a plan."""
    names = [*settings["cases"], *settings["listed"]]
    least = records.series(rows, "least n")
    wide, blocks = min(len(names), MOST_COLUMNS), -(-len(names) // MOST_COLUMNS)
    with style.house():
        fig, panels = style.figure(
            2 * blocks, wide, figsize=(3.2 * wide, 4.9 * blocks), height_ratios=[1.3, 1.0] * blocks, squeeze=False
        )
        for place in range(wide * blocks):
            above, below = panels[2 * (place // wide)][place % wide], panels[2 * (place // wide) + 1][place % wide]
            if place >= len(names):
                above.axis("off")
                below.axis("off")
                continue
            name = names[place]
            _draw_failure(above, name, rows, least, settings)
            if name in settings["listed"]:
                _write_plan(below, records.series(rows, f"plan, {name}"))
            else:
                _draw_parts(below, records.series(rows, f"epsilon, {name}"), settings)
            if place % wide == 0:
                above.set_ylabel("failure on held-out data")
        fig.legend(*panels[0][0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
        total = f"ε = {settings['epsilon']:g}, δ = {captions.number(settings['delta'])}"
        domains = f"domains of {settings['bits']} bits" + ", but for those with a plan" * bool(settings["listed"])
        style.title(
            fig, f"One budget ({total}), split as each proof derives it, and as tuned by the exact law", domains
        )
        style.save(fig, out / "tuning")


def _draw_failure(axes: Any, name: str, rows: list[Row], least: Any, settings: Settings) -> None:
    for series, part in records.series(rows, f"failure, {name}").items():
        axes.plot(*records.curve(part), label=series, markersize=3.5, **LOOKS[series])
    axes.axhline(settings["beta"], color="grey", linewidth=0.8, linestyle=":", label=f"β = {settings['beta']:g}")
    n = {series: next(row.value for row in part if row.x == column(name)) for series, part in least.items()}
    axes.set(
        yscale="log",
        xlabel="n (points in a slice)" if "slice" in name else "n (records)",
        title=f"{TITLES.get(name, captions.words(name))}\nleast n: {n['derived']:g} → {n['tuned']:g}",
        ylim=(1e-4, 1.5),
    )
    axes.xaxis.get_major_locator().set_params(nbins=4, integer=True)


def _draw_parts(axes: Any, parts: dict[str, list[Row]], settings: Settings) -> None:
    left = {0: 0.0, 1: 0.0}
    for colour, (name, part) in zip(style.COLOURS, parts.items(), strict=False):
        for row in part:
            where = int(row.x)
            axes.barh(
                1 - where, row.value, left=left[where], color=colour, label=_mechanism(name) if where == 0 else None
            )
            left[where] += row.value
    axes.set(yticks=[1, 0], yticklabels=["derived", "tuned"], xlabel="ε spent", xlim=(0, settings["epsilon"] * 1.01))
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.3), ncols=2 if len(parts) > 2 else 1)


def _mechanism(name: str) -> str:
    """A mechanism's name for the legend; A_dist runs twice on a level, on the blocks A and on the blocks B."""
    return name.replace("A_dist a", "A_dist on A").replace("A_dist b", "A_dist on B")


def _write_plan(axes: Any, parts: dict[str, list[Row]]) -> None:
    """Writes the integers of a plan, derived and tuned."""
    lines = [f"{name}: {part[0].value:g} → {part[1].value:g}" for name, part in parts.items()]
    axes.text(
        0.5,
        0.6,
        "\n".join(["the plan, derived → tuned", *lines]),
        ha="center",
        va="center",
        fontsize=9,
        transform=axes.transAxes,
    )
    axes.axis("off")
