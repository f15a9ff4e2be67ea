"""Draws the picture from the table of results alone."""

import pathlib
from typing import Any

from dpjax.plotting import style
from experiments import captions
from experiments.quantile_contest.measure import ANY, CHOSEN, KIND, MEANS, METHOD, RATIO
from experiments.quantile_contest.rivals import OURS, left_out
from experiments.records import Row
from experiments.settings import Settings

NEAR = 1.05  # a ratio up to this counts as no worse
LEAST, MOST = 0.25, 4.0  # the edges, at which ratios beyond them are drawn


def draw(rows: list[Row], settings: Settings, out: pathlib.Path) -> None:
    """Writes quantile_contest as PNG and SVG: one line for each cell, the lowest ratio at the top."""
    ratios = {(row.series, row.x): row for row in rows if row.panel == RATIO}
    cells = sorted((row for row in ratios.values() if row.series == METHOD), key=lambda row: row.value)
    means = {(row.panel, row.series, row.x): row.value for row in rows}
    with style.house():
        fig, axes = style.figure(figsize=(10, max(5.0, 2.2 + 0.19 * len(cells))))
        for place, row in enumerate(cells):
            colour = style.COLOURS[1 if row.low > NEAR else 0]
            low, value, high = map(_shown, (row.low, row.value, row.high))
            axes.hlines(place, low, high, color=colour, linewidth=1)
            marker = "o" if value == row.value else "<" if value > row.value else ">"  # drawn at the edge
            axes.plot([value], [place], linestyle="none", marker=marker, markersize=4, color=colour)
            hindsight = _shown(ratios[ANY, row.x].value)
            axes.plot([hindsight], [place], linestyle="none", marker="|", markersize=7, color=style.COLOURS[2])
            ours, other = (means[MEANS, name, row.x] for name in (OURS, METHOD))
            axes.text(
                MOST * 1.06,
                place,
                f"{ours:.3g} : {other:.3g}  {captions.words(_best(rows, row.x))}",
                va="center",
                fontsize=7,
            )
        axes.text(MOST * 1.06, -1.0, "both errors, and that method", va="center", fontsize=7, style="italic")
        axes.axvline(1.0, color="grey", linewidth=0.8)
        axes.axvline(NEAR, color="grey", linewidth=0.8, linestyle="--")
        axes.set_yticks(range(len(cells)), [_label(rows, row.x) for row in cells], fontsize=7)
        axes.invert_yaxis()
        ticks = [0.25, 0.5, 1.0, 2.0, 4.0]
        axes.set(
            xscale="log",
            xlim=(LEAST / 1.05, MOST * 1.05),
            xlabel="error of dpjax.quantiles / error of the best other method",
        )
        axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
        axes.tick_params(axis="x", which="minor", bottom=False, labelbottom=False)
        _legend(fig, axes, list(ratios.values()))
        style.title(fig, *_title(settings))
        style.save(fig, out / "quantile_contest")


def _shown(ratio: float) -> float:
    return min(max(ratio, LEAST), MOST)


def _title(settings: Settings) -> tuple[str, ...]:
    return (
        "Quantiles by dpjax.quantiles and by the best other method: the mean largest rank error, on cells drawn at random",
        f"{captions.percent(settings['level'])} intervals, {settings['draws']} runs "
        f"({settings['times_for_one'] * settings['draws']} of one quantile)",
    )


def _legend(fig: Any, axes: Any, ratios: list[Row]) -> None:
    method, hindsight = ([row for row in ratios if row.series == series] for series in (METHOD, ANY))
    near = [
        f"at most {NEAR:g} in {sum(row.value <= NEAR for row in each)} of {len(each)}" for each in (method, hindsight)
    ]
    behind = sum(row.low > NEAR for row in method)
    looks: tuple[tuple[str, dict[str, Any]], ...] = (
        (f"the ratio ({near[0]})", {"marker": "o", "color": style.COLOURS[0]}),
        (f"certainly above {NEAR:g} ({behind} of {len(method)})", {"marker": "o", "color": style.COLOURS[1]}),
        (f"ratio {LEAST:g} or less", {"marker": "<", "color": style.COLOURS[0], "linestyle": "none"}),
        (
            f"if what it uses takes part, with the best base measure ({near[1]})",
            {"marker": "|", "color": style.COLOURS[2], "linestyle": "none"},
        ),
        (f"ratio {NEAR:g}", {"linestyle": "--", "color": "grey"}),
    )
    for label, look in looks:
        axes.plot([], [], label=label, linewidth=1, **look)
    fig.legend(loc="outside lower center", ncols=2)


def _label(rows: list[Row], cell: float) -> str:
    """The task of a cell in words."""
    asked = {row.series: row.value for row in rows if row.panel.startswith(KIND) and row.x == cell}
    name = next(row.panel for row in rows if row.panel.startswith(KIND) and row.x == cell).removeprefix(KIND)
    quantiles = f"{asked['quantiles']:g} quantile{'s' * (asked['quantiles'] > 1)}"
    return f"{asked['records']:g} of {name}, {quantiles}, ε = {asked['epsilon']:g}"


def _best(rows: list[Row], cell: float) -> str:
    asked = {row.series: row.value for row in rows if row.panel.startswith(KIND) and row.x == cell}
    same, measures = left_out(round(asked["quantiles"]))
    tried = [row for row in rows if row.panel == CHOSEN and row.x == cell]
    return min((row for row in tried if row.series not in (OURS, *same, *measures)), key=lambda row: row.value).series
