"""Draws the two pictures from the table of results alone."""

import pathlib

from dpjax.plotting import style
from experiments import captions, exponents, records
from experiments.records import Row
from experiments.settings import Settings

# By series: colour and label.
LOOKS = {
    "elimination": (style.COLOURS[0], "Gaussian elimination (not private)"),
    "ParityLearner": (style.COLOURS[2], "ParityLearner"),
    "direct sum, pure": (style.COLOURS[1], "direct sum, pure"),
    "direct sum, advanced": (style.COLOURS[4], "direct sum, advanced composition as printed"),
    "direct sum, optimal": (style.COLOURS[3], "direct sum, optimal composition"),
    "theorem": (style.COLOURS[6], "proved (MULTI Theorem 39, constants worked out)"),
}


def draw(rows: list[Row], settings: Settings, out: pathlib.Path) -> None:
    """Writes multi_parities_least_n and multi_parities_learner as PNG and SVG."""
    title = (
        f"Least n that identifies k parities of {settings['bits']} bits exactly {captions.success(settings)}",
        f"{captions.privacy(settings)}, uniform points, exact laws",
    )
    with style.house():
        exponents.draw_least_n(rows, out / "multi_parities_least_n", title=title, looks=LOOKS)
        _draw_learner(rows, settings, out / "multi_parities_learner")


def _draw_learner(rows: list[Row], settings: Settings, path: pathlib.Path) -> None:
    """n* by d on the left, failures at n* by k on the right."""
    fig, (left, right) = style.figure(1, 2, figsize=(9.6, 4.2))
    for name, part in records.series(rows, "by d").items():
        colour, label = LOOKS[name]
        left.plot(*records.curve(part), marker="o", color=colour, label=label)
    left.set(yscale="log", xlabel="d (bits)", ylabel="examples, for every k")
    style.doubling(left)
    trials, computed = (records.series(rows, panel)["ParityLearner"] for panel in ("trials", "computed"))
    style.points(right, *records.columns(trials), color=LOOKS["ParityLearner"][0], label=_counted(settings))
    right.plot(*records.curve(computed), "--", color="grey", label="computed exactly")
    right.axhline(settings["beta"], color="black", linewidth=0.8, linestyle=":", label="β, which n* must keep")
    right.set(
        xscale="log",
        xlabel=f"k (parities of {settings['trials']['bits']} bits)",
        ylabel="P[some parity missed at n*]",
        ylim=(0, None),
    )
    for axes in (left, right):
        axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.16))
    style.title(
        fig,
        "ParityLearner: the examples grow with d, not with k",
        f"{captions.privacy(settings)}, β = {settings['beta']:g}",
    )
    style.save(fig, path)


def _counted(settings: Settings) -> str:
    """The legend's text for the failures counted in trials."""
    return f"counted in {settings['trials']['count']:,} trials, {captions.percent(settings['level'])} interval"
