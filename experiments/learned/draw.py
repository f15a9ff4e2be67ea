"""Draws the three pictures from the table of results alone."""

import pathlib
from typing import Any

from dpjax.plotting import style
from dpjax.verify.broken_vectors import DELTA, EPSILON
from experiments import captions, records
from experiments.learned.measure import AUDITS, EXPONENTIAL, FLIP, LAPLACE, LEARNED, OPTIMUM
from experiments.records import Row
from experiments.settings import Settings

COLOUR = {LEARNED: style.COLOURS[2], OPTIMUM: "#999999", LAPLACE: style.COLOURS[1]}
LOSS = {"absolute": "|x|", "square": "$x^2$", "zero_one": "[x ≠ 0]"}
LEAST = 1e-4  # smaller probabilities are not drawn


def draw(rows: list[Row], settings: Settings, out: pathlib.Path) -> None:
    """Writes learned_noise, learned_audits and learned_selection as PNG and SVG."""
    with style.house():
        _draw_noise(rows, settings, out / "learned_noise")
        _draw_audits(rows, settings, out / "learned_audits")
        _draw_selections(rows, settings, out / "learned_selection")


def _draw_noise(rows: list[Row], settings: Settings, path: pathlib.Path) -> None:
    """(a) laws on the left, costs on the right."""
    given = settings["laws"]
    fig, panels = style.figure(1, len(given["deltas"]) + 1, figsize=(10.6, 3.7))
    for axes, delta in zip(panels, given["deltas"], strict=False):
        for name, part in records.series(rows, f"law, {delta:g}").items():
            _draw_law(axes, name, part)
        axes.set(yscale="log", xlabel="x (noise)", title=f"the noise at δ = {captions.number(delta)}")
    panels[0].set_ylabel("probability")
    low, high = panels[0].get_ylim()
    panels[0].set_ylim(low, 8 * high)
    panels[0].legend(loc="upper left")
    for delta, dashes in zip(settings["ratios"]["deltas"], ("-", "--", ":", "-."), strict=False):
        for name, part in records.series(rows, f"ratio, {delta:g}").items():
            label = f"{name}, δ = {captions.number(delta)}"
            panels[-1].plot(*records.curve(part), dashes, color=COLOUR[name], marker="o", markersize=3, label=label)
    panels[-1].axhline(1.0, color="grey", linewidth=0.8)
    panels[-1].set(yscale="log", xlabel="ε", ylabel="mean loss / that of the optimum", title="what the noise costs")
    style.doubling(panels[-1], [x for x in (0.125, 0.5, 2, 8) if x in settings["ratios"]["epsilons"]])
    panels[-1].yaxis.set_major_formatter(lambda value, _: f"{value:g}")
    panels[-1].yaxis.set_minor_formatter(lambda value, _: "")
    style.legend_beside(panels[-1])
    style.title(
        fig,
        f"Noise for an integer of sensitivity {settings['sensitivity']}, loss {LOSS[settings['loss']]}: learned, and the best there is",
        f"left and middle: ε = {captions.number(given['epsilon'])}; every learned law is certified to keep (ε, δ)",
    )
    style.save(fig, path)


def _draw_law(axes: Any, name: str, part: list[Row]) -> None:
    """Draws both halves of an even law, where its probabilities exceed LEAST."""
    half = [(row.x, row.value) for row in part if row.value > LEAST]
    x, p = zip(*[(-x, p) for x, p in reversed(half) if x > 0], *half, strict=True)
    if name == OPTIMUM:
        axes.bar(x, p, color=COLOUR[name], alpha=0.5, width=1.0, label=name)
    else:
        axes.plot(x, p, "o" if name == LEARNED else "-", markersize=3, color=COLOUR[name], label=name)


def _draw_audits(rows: list[Row], settings: Settings, path: pathlib.Path) -> None:
    """(b) one panel for each kind of audit; broken mechanisms are solid, sound ones dashed."""
    fig, both = style.figure(1, 2, figsize=(10.6, 3.7), sharey=True)
    for axes, name in zip(both, AUDITS, strict=True):
        number = 1
        for kind, line in (("broken", "-"), ("sound", "--")):
            for specimen, part in records.series(rows, f"{name}, {kind}").items():
                colour = style.COLOURS[1:][(number - 1) % 6] if kind == "broken" else "grey"
                label = f"{kind}: {specimen}"
                axes.plot(*records.curve(part), line, marker="os^vD"[number % 5], color=colour, label=label)
                number += 1
        axes.axhline(EPSILON, color="black", linewidth=0.8, label="claimed of all")
        axes.set(xscale="log", xlabel="runs on each of two neighbours", title=name)
    both[0].set_ylabel("ε is at least (audited)")
    style.legend_beside(both[1])
    style.title(
        fig,
        f"What audits prove about Gaussian mechanisms on {settings['audit']['dimension']} coordinates, claimed "
        f"({captions.number(EPSILON)}, {captions.number(DELTA)})-private",
        f"each bound is wrong with probability {captions.number(round(1 - settings['level'], 12))} at most",
    )
    style.save(fig, path)


def _draw_selections(rows: list[Row], settings: Settings, path: pathlib.Path) -> None:
    """(c) the cost of selections relative to the least possible on the left, RecConcave on the right."""
    given = settings["rec_concave"]
    fig, (costs, failures) = style.figure(1, 2, figsize=(10.6, 3.7))
    looks = {EXPONENTIAL: (style.COLOURS[1], "o"), FLIP: (style.COLOURS[3], "s"), LEARNED: (style.COLOURS[2], "^")}
    for name, part in records.series(rows, "selection").items():
        colour, marker = looks[name]
        costs.plot(*records.curve(part), marker=marker, markersize=3.5, color=colour, label=name)
    costs.axhline(1.0, color="grey", linewidth=0.8)
    highest = settings["selection"]["highest"]
    costs.set(
        xlabel="ε",
        ylabel="mean shortfall / the least possible",
        title=f"a choice among three candidates, scores 0 to {highest}",
    )
    costs.set_yscale("log", base=2)
    costs.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
    style.doubling(costs, [x for x in (0.125, 0.25, 0.5, 1, 2, 4) if x in settings["selection"]["epsilons"]])
    whole = records.series(rows, "RecConcave")
    before = {row.x: row.value for row in whole[EXPONENTIAL]}
    for name, part in whole.items():
        colour, marker = looks.get(name, looks[LEARNED])
        ratios = [row.value / before[row.x] for row in part]
        failures.plot([row.x for row in part], ratios, marker=marker, markersize=3.5, color=colour, label=name)
    failures.set_xticks(list(before), [f"{n:g}\n{chance:.2g}" for n, chance in before.items()])
    failures.set(
        xlabel="n (examples); below it the failure with the exponential mechanism",
        ylabel="failure / failure with\nthe exponential mechanism",
        title=f"RecConcave with such a choice inside, {captions.privacy(given)}",
    )
    style.legend_beside(failures)
    style.title(
        fig,
        "Private selection with learned noise, which is certified to keep ε, beside other selections",
        f"right: a threshold over {given['bits']} bits; failure: more than {given['alpha']:g} of the sample wrong",
    )
    style.save(fig, path)
