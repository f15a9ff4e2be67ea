"""Draws the two pictures from the table of results alone."""

import math
import pathlib
from typing import Any

from dpjax.plotting import style
from experiments import captions, exponents, records
from experiments.labels.measure import PRIVATE, WHOLE
from experiments.records import Row
from experiments.settings import Settings

COLOUR = {PRIVATE: style.COLOURS[2], WHOLE: style.COLOURS[1]}
DASHES = {"printed (BNS Theorem 6.2)": ":", "corrected": "-.", "nothing set aside": "--"}
MANY = {"pure": style.COLOURS[1], "approximate": style.COLOURS[2], "no privacy": style.COLOURS[0]}


def draw(rows: list[Row], settings: Settings, out: pathlib.Path) -> None:
    """Writes labels_least_n and labels_many as PNG and SVG."""
    with style.house():
        _draw_least_n(rows, settings, out / "labels_least_n")
        _draw_many(rows, settings, out / "labels_many")


def _draw_least_n(rows: list[Row], settings: Settings, path: pathlib.Path) -> None:
    """(a) n* against d, one panel for each class."""
    fig, both = style.figure(1, 2, figsize=(10.6, 3.9), sharey=True)
    theorems = records.series(rows, "theorem")
    for panel, axes in zip(("thresholds", "points"), both, strict=True):
        for name, part in records.series(rows, panel).items():
            style.interval(axes, *records.columns(part), color=COLOUR[name], marker="o", label=name)
        for name, (row,) in theorems.items():
            text = f"suffices for private labels, {name}: {row.value:,.0f}"
            axes.axhline(row.value, linestyle=DASHES[name], color=COLOUR[PRIVATE], linewidth=1, label=text)
        axes.set(yscale="log", title=panel, xlabel="d (the domain is {0, ..., $2^d - 1$})")
        style.doubling(axes, settings["bits"])
    both[0].set_ylabel("examples")
    style.legend_beside(both[1])
    style.title(
        fig,
        f"Least n that learns to population error {settings['alpha']:g} {captions.success(settings)}, labels or examples protected",
        f"ε = {captions.number(settings['epsilon'])}, pure; exact laws averaged over data draws",
    )
    style.save(fig, path)


def _draw_many(rows: list[Row], settings: Settings, path: pathlib.Path) -> None:
    """(b) n* against k on the left, the attack against epsilon on the right."""
    fig, (left, right) = style.figure(1, 2, figsize=(10.6, 4.2))
    for name, part in records.series(rows, "least n").items():
        exponent = exponents.fit(part, factor=lambda k: math.log(k / settings["beta"]))
        power = "" if exponent is None else f": $k^{{{exponent.value:.2f}}}$ ln(k/β) from k = {exponent.first:g} on"
        left.plot(*records.curve(part), marker="o", color=MANY[name], label=f"measured, {name}{power}")
    for dashes, (name, part) in zip(("--", "-."), records.series(rows, "bound").items(), strict=False):
        left.plot(*records.curve(part), dashes, color="grey", linewidth=1, label=exponents.bound(name))
    left.set(
        xscale="log",
        yscale="log",
        xlabel="k (concepts)",
        ylabel="examples, all at one point",
        title="least n of k learners side by side",
    )
    _draw_attack(right, rows)
    for axes in (left, right):
        axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.19), fontsize=8)
    k = records.series(rows, "attack: k")["columns"][0].value
    right.set(title=f"the fingerprinting attack on {settings['attack']['users']} users, k = {k:,.0f}")
    style.title(
        fig,
        "Private labels of k concepts: free of the domain, not of k",
        f"left {captions.privacy(settings)}, β = {settings['beta']:g}; right δ = {captions.number(settings['delta'])}, "
        f"{settings['attack']['trials']} trials a point, {captions.percent(settings['level'])} intervals",
    )
    style.save(fig, path)


def _draw_attack(axes: Any, rows: list[Row]) -> None:
    """Draws solid lines for traced, dashed lines for not accurate."""
    for event, line, text in (("traced", "-", "some user traced"), ("inaccurate", "--", "not accurate")):
        parts = records.series(rows, f"attack: {event}")
        for number, (name, part) in enumerate(parts.items()):
            look = {"color": MANY[name], "linestyle": line, "marker": "o", **style.nested(number, len(parts))}
            style.interval(axes, *records.columns(part), label=f"{text}, {name}", **look)
    axes.set(xscale="log", xlabel="ε of all k columns together", ylabel="share of the trials", ylim=(-0.03, 1.03))
