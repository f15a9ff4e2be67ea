"""Draws the pictures from the table of results alone."""

import pathlib
from typing import Any

from dpjax.plotting import style
from experiments import captions, records
from experiments.quantiles import data
from experiments.records import Row
from experiments.settings import Settings

AXES = {"n": "n (points)", "quantiles": "number of quantiles", "epsilon": "ε in all"}
PEERS = ("OpenDP", "diffprivlib")
LEARNERS = "learners, "
LEAST = 0.3  # smaller errors, 0 included, are drawn here


def draw(rows: list[Row], settings: Settings, out: pathlib.Path) -> None:
    """Writes quantiles_curves, quantiles_everywhere and, where there are tables, quantiles_learners as PNG and SVG."""
    looks = _looks([row for row in rows if not row.panel.startswith(LEARNERS)])
    with style.house():
        _draw_curves(rows, settings, looks, out / "quantiles_curves")
        _draw_everywhere(rows, settings, looks, out / "quantiles_everywhere")
        if any(row.panel.startswith(LEARNERS) for row in rows):
            _draw_learners(rows, settings, out / "quantiles_learners")


def _looks(rows: list[Row]) -> dict[str, dict[str, Any]]:
    """Colour and marker of every method, the same in both pictures, in the order of the picture that has all methods; peers in grey."""
    names = list(dict.fromkeys(row.series for row in sorted(rows, key=lambda row: row.panel != "everywhere")))
    own = [name for name in names if name not in PEERS]
    colours = [*style.COLOURS, "saddlebrown", "olive", "darkviolet", "deeppink"]
    markers = "osD^vP*Xhd<"
    found = {
        name: {"color": colours[i % len(colours)], "marker": markers[i % len(markers)]} for i, name in enumerate(own)
    }
    for name, marker in zip(PEERS, "+x", strict=True):
        if name in names:
            found[name] = {"color": "grey", "marker": marker}
    return found


def _floor(values: list[float]) -> list[float]:
    return [max(value, LEAST) for value in values]


def _column(name: str) -> str:
    return name if data.RULES[name].real else f"{name} (simulated)"


def _draw_curves(rows: list[Row], settings: Settings, looks: dict[str, Any], path: pathlib.Path) -> None:
    """Draws one row of panels for each column, one panel for each variable."""
    present = [name for name in settings["curves"] if any(row.panel.startswith(f"{name}, ") for row in rows)]
    fig, panels = style.figure(len(present), 3, figsize=(10.4, 0.8 + 3.1 * len(present)), squeeze=False, sharey="row")
    for name, line in zip(present, panels, strict=True):
        for axes, (variable, label) in zip(line, AXES.items(), strict=True):
            for method, part in records.series(rows, f"{name}, {variable}").items():
                x, value, low, high = records.columns(part)
                style.interval(axes, x, *map(_floor, (value, low, high)), markersize=4, label=method, **looks[method])
            axes.set(xscale="log", yscale="log", xlabel=label)
            ticks = sorted({row.x for row in rows if row.panel == f"{name}, {variable}"})
            axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
            axes.tick_params(axis="x", which="minor", bottom=False, labelbottom=False)
        line[0].set_ylabel(f"{_column(name)}\nlargest rank error, mean")
    handles = [
        panels[0][-1].plot([], [], label=captions.words(method), markersize=4, **look)[0]
        for method, look in looks.items()
    ]
    style.legend_beside(panels[0][-1], handles=handles)
    n, count, level = settings["n"], settings["count"], captions.percent(settings["level"])
    style.title(
        fig,
        f"Private quantiles at {captions.privacy(settings)} under add/remove: the largest rank error, on one sample",
        f"where not said otherwise n = {n:,} and {count} quantiles; bands: {level} intervals of the mean; at {LEAST:g}: that or less",
    )
    style.save(fig, path)


def _draw_everywhere(rows: list[Row], settings: Settings, looks: dict[str, Any], path: pathlib.Path) -> None:
    """Draws one line for each column, one mark for each method."""
    found = records.series(rows, "everywhere")
    places = sorted({int(row.x) for part in found.values() for row in part})
    fig, axes = style.figure(figsize=(8.6, 1.4 + 0.55 * len(places)))
    for number, (method, part) in enumerate(found.items()):
        beside = 0.7 * (number / max(len(found) - 1, 1) - 0.5)
        y = [places.index(int(row.x)) + beside for row in part]
        value, low, high = (_floor([getattr(row, end) for row in part]) for end in ("value", "low", "high"))
        look = looks[method]
        axes.hlines(y, low, high, color=look["color"], linewidth=1)
        axes.plot(value, y, linestyle="none", markersize=5, label=captions.words(method), **look)
    for edge in range(1, len(places)):
        axes.axhline(edge - 0.5, color="lightgrey", linewidth=0.6)
    names = [settings["everywhere"][place] for place in places]
    axes.set_yticks(range(len(places)), [_column(name) for name in names])
    axes.invert_yaxis()
    axes.set(
        xscale="log", xlabel=f"largest rank error of {settings['count']} quantiles, mean ({LEAST:g}: that or less)"
    )
    style.legend_beside(axes)
    budget = captions.privacy(settings)
    style.title(
        fig,
        f"Private quantiles of several columns, up to {settings['n']:,} values each, at {budget} under add/remove",
        f"bars: {captions.percent(settings['level'])} intervals of the mean",
    )
    style.save(fig, path)


def _draw_learners(rows: list[Row], settings: Settings, path: pathlib.Path) -> None:
    """Draws one panel for each table."""
    names = list(dict.fromkeys(row.panel for row in rows if row.panel.startswith(LEARNERS)))
    fig, panels = style.figure(1, len(names), figsize=(9.6, 3.0), squeeze=False)
    for axes, name in zip(panels[0], names, strict=True):
        for number, (series, part) in enumerate(records.series(rows, name).items()):
            look = {"marker": "o"} if number == 0 else {"linestyle": "--"}
            colour = style.COLOURS[1] if number == 0 else "grey"
            style.interval(axes, *records.columns(part), color=colour, label=series, **look)
        ticks = settings["learners"]
        axes.set(xscale="log", xlabel="ε in all", title=name.removeprefix(LEARNERS), ylim=(0, None))
        axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
        axes.tick_params(axis="x", which="minor", bottom=False, labelbottom=False)
    panels[0][0].set_ylabel("error on the table, mean")
    panels[0][-1].legend()
    style.title(
        fig,
        f"Private learners on small tables, {settings['draws']} runs each, {captions.percent(settings['level'])} intervals of the mean",
    )
    style.save(fig, path)
