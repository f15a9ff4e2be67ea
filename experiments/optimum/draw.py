"""The two pictures, from the table alone."""

import pathlib
from typing import Any

from dpjax.plotting import style
from experiments import records
from experiments.records import Row

LOOK: dict[str, dict[str, Any]] = {
    "optimum, δ = 0": {"color": style.COLOURS[0]},
    "optimum, δ = 0.0001": {"color": style.COLOURS[6]},
    "optimum, δ = 0.01": {"color": style.COLOURS[5]},
    "exponential mechanism": {"color": style.COLOURS[1]},
    "RecConcave": {"color": style.COLOURS[2], "linestyle": "--"},
    "TreeLog": {"color": style.COLOURS[3]},
    "quasi-concave optimiser": {"color": style.COLOURS[4]},
}
TITLE = {"REPLACE_ONE": "one point replaced", "ADD_OR_REMOVE_ONE": "one point added or removed"}
LEAST = 1e-6  # failures below are drawn as a wedge: the solver's tolerance is near


def draw(rows: list[Row], out: pathlib.Path) -> None:
    """Writes optimum_least_n and optimum_failure as PNG and SVG."""
    known = {name: part[0].value for name, part in records.series(rows, "settings").items()}
    with style.house():
        _draw_least_n(rows, known, out / "optimum_least_n")
        _draw_failure(rows, known, out / "optimum_failure")


def _draw_least_n(rows: list[Row], known: dict[str, float], path: pathlib.Path) -> None:
    """(a) least n against |X|."""
    fig, panels = style.figure(1, 2, figsize=(8.0, 3.4), sharex=True)
    for axes, (relation, title) in zip(panels, TITLE.items(), strict=True):
        for name, part in records.series(rows, f"least n, {relation}").items():
            axes.plot(*records.curve(part), marker="o", label=name, **LOOK[name])
        axes.set(title=f"{title}, ε = {known[f'epsilon {relation}']:g}", xlabel="|X|", ylim=(0, None))
        axes.yaxis.get_major_locator().set_params(integer=True)
        axes.xaxis.get_major_locator().set_params(integer=True)
    panels[0].set_ylabel("least n")
    panels[1].legend(loc="upper left", bbox_to_anchor=(1.0, 1.0))
    fig.suptitle(
        f"Points needed to find an interior point with probability {1 - known['beta']:g}, whatever they are", fontsize=9
    )
    style.save(fig, path)


def _draw_failure(rows: list[Row], known: dict[str, float], path: pathlib.Path) -> None:
    """(b) failure against n."""
    fig, panels = style.figure(1, 2, figsize=(9.0, 3.8), sharex=True, sharey=True)
    for axes, (relation, title) in zip(panels, TITLE.items(), strict=True):
        exact, at_least = records.series(rows, f"failure, {relation}"), records.series(rows, f"at least, {relation}")
        for name in {**exact, **at_least}:
            _draw_curve(axes, name, exact.get(name, []), at_least.get(name, []))
        axes.axhline(known["beta"], color="grey", linewidth=0.8, linestyle=":")
        axes.set(
            title=f"{title}, ε = {known[f'epsilon {relation}']:g}", xlabel="n (points)", xscale="log", yscale="log"
        )
    panels[0].set_ylabel("worst-case failure")
    panels[1].plot([], [], "o", color="grey", markerfacecolor="white", label="at least (datasets of two values)")
    panels[1].plot([], [], "v", color="grey", linestyle="none", label="below $10^{-6}$ from here on")
    panels[1].legend(loc="upper left", bbox_to_anchor=(1.0, 1.0))
    what = f"No interior point of n points of {known['|X|']:g} values: worst case over all data"
    fig.suptitle(f"{what} (algorithms at δ = {known['delta']:g} or less)", fontsize=9)
    style.save(fig, path)


def _draw_curve(axes: Any, name: str, exact: list[Row], at_least: list[Row]) -> None:
    """A line; full points where all datasets were looked at, hollow where some, a wedge where it falls below LEAST."""
    both = sorted(exact + at_least, key=lambda r: r.x)
    seen = [r for r in both if r.value >= LEAST]
    axes.plot(*records.curve(seen), label=name, **LOOK[name])
    colour = LOOK[name]["color"]
    for part, face in ((exact, colour), (at_least, "white")):
        part = [r for r in part if r.value >= LEAST]
        axes.plot(*records.curve(part), "o", color=colour, markerfacecolor=face, markersize=3.5)
    for row in [r for r in both if r.value < LEAST][:1]:
        axes.plot([seen[-1].x, row.x], [seen[-1].value, LEAST], color=colour, linewidth=0.8, linestyle=":")
        axes.plot(row.x, LEAST, "v", color=colour)
