"""Draws the two pictures from the table of results alone."""

import pathlib
from collections.abc import Iterable
from typing import Any

from dpjax.plotting import style
from experiments import captions, records
from experiments.records import Row
from experiments.settings import Settings

# The optimum hardly depends on delta at first, so the first of its lines is broad enough to show below the others.
OPTIMUM = ({"color": "#999999", "linewidth": 4.5}, {"color": style.COLOURS[6]}, {"color": style.COLOURS[4]})
LOOK: dict[str, dict[str, Any]] = {
    "exponential mechanism": {"color": style.COLOURS[1]},
    "RecConcave": {"color": style.COLOURS[2], "linestyle": "--"},
    "TreeLog": {"color": style.COLOURS[0]},
    "quasi-concave optimiser": {"color": style.COLOURS[5]},
}
LABEL = {"quasi-concave optimiser": captions.words("amplified")}
TITLE = {"REPLACE_ONE": "one point replaced", "ADD_OR_REMOVE_ONE": "one point added or removed"}
LEAST = 1e-6  # smaller failures are drawn as a wedge, because the solver's tolerance is near


def draw(rows: list[Row], settings: Settings, out: pathlib.Path) -> None:
    """Writes optimum_least_n and optimum_failure as PNG and SVG."""
    with style.house():
        _draw_least_n(rows, settings, out / "optimum_least_n")
        _draw_failure(rows, settings, out / "optimum_failure")


def _looks(names: Iterable[str]) -> dict[str, dict[str, Any]]:
    """The look of each series; among the optima, the first (pure) is broad, and the last has the algorithms' own delta."""
    optima = [name for name in names if name.startswith("optimum")]
    others = dict(zip(reversed(optima[1:]), OPTIMUM[:0:-1], strict=False))
    return {**LOOK, **dict.fromkeys(optima[:1], OPTIMUM[0]), **others}


def _draw_least_n(rows: list[Row], settings: Settings, path: pathlib.Path) -> None:
    """(a) least n against |X|."""
    fig, panels = style.figure(1, 2, figsize=(8.0, 3.4), sharex=True)
    for axes, (relation, title) in zip(panels, TITLE.items(), strict=True):
        found = records.series(rows, f"least n, {relation}")
        looks = _looks(found)
        for name, part in found.items():
            axes.plot(*records.curve(part), marker="o", label=name, **looks[name])
        axes.set(
            title=f"{title}, ε = {settings['epsilon'][relation]:g}", xlabel="|X| (points of the domain)", ylim=(0, None)
        )
        axes.yaxis.get_major_locator().set_params(integer=True)
        axes.xaxis.get_major_locator().set_params(integer=True)
    panels[0].set_ylabel("least n (points of the sample)")
    style.legend_beside(panels[1])
    style.title(fig, f"Points needed to find an interior point {captions.success(settings)}, on any data")
    style.save(fig, path)


def _draw_failure(rows: list[Row], settings: Settings, path: pathlib.Path) -> None:
    """(b) failure against n."""
    fig, panels = style.figure(1, 2, figsize=(9.0, 3.8), sharex=True, sharey=True)
    for axes, (relation, title) in zip(panels, TITLE.items(), strict=True):
        exact, at_least = records.series(rows, f"failure, {relation}"), records.series(rows, f"at least, {relation}")
        looks = _looks(exact)
        for name in {**exact, **at_least}:
            _draw_curve(axes, name, looks[name], exact.get(name, []), at_least.get(name, []))
        axes.axhline(settings["beta"], color="grey", linewidth=0.8, linestyle=":")
        axes.set(
            title=f"{title}, ε = {settings['epsilon'][relation]:g}", xlabel="n (points)", xscale="log", yscale="log"
        )
    panels[0].set_ylabel("P[no interior point], worst data")
    panels[1].plot([], [], "o", color="grey", markerfacecolor="white", label="at least (datasets of two values)")
    below = f"below {captions.number(LEAST)} from here on"
    panels[1].plot([], [], "v", color="grey", linestyle="none", label=below)
    panels[1].plot([], [], ":", color="grey", linewidth=0.8, label=f"β = {settings['beta']:g}")
    style.legend_beside(panels[1])
    what = f"How the failure on the worst data falls with n on a domain of {2 ** settings['failure']['bits']} points"
    style.title(fig, f"{what}, algorithms at δ = {captions.number(settings['delta'])} or less")
    style.save(fig, path)


def _draw_curve(axes: Any, name: str, look: dict[str, Any], exact: list[Row], at_least: list[Row]) -> None:
    """Draws a line, with full points where all datasets were examined, hollow ones where only some were, and a wedge below LEAST."""
    both = sorted(exact + at_least, key=lambda r: r.x)
    seen = [r for r in both if r.value >= LEAST]
    axes.plot(*records.curve(seen), label=LABEL.get(name, name), **look)
    colour = look["color"]
    for part, face in ((exact, colour), (at_least, "white")):
        part = [r for r in part if r.value >= LEAST]
        axes.plot(*records.curve(part), "o", color=colour, markerfacecolor=face, markersize=3.5)
    for row in [r for r in both if r.value < LEAST][:1]:
        axes.plot([seen[-1].x, row.x], [seen[-1].value, LEAST], color=colour, linewidth=0.8, linestyle=":")
        axes.plot(row.x, LEAST, "v", color=colour)
