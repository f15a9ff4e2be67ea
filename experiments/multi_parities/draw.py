"""The two pictures, from the table alone."""

import math
import pathlib
from typing import Any

from dpjax.plotting import style
from experiments import exponents, records
from experiments.records import Row

COLOUR = {
    "elimination": style.COLOURS[0],
    "ParityLearner": style.COLOURS[2],
    "direct sum, pure": style.COLOURS[1],
    "direct sum, advanced": style.COLOURS[4],
    "direct sum, optimal": style.COLOURS[3],
    "theorem": style.COLOURS[6],
}
LABEL = {
    "elimination": "Gaussian elimination (not private)",
    "ParityLearner": "ParityLearner",
    "direct sum, pure": "direct sum, pure",
    "direct sum, advanced": "direct sum, advanced composition as printed",
    "direct sum, optimal": "direct sum, optimal composition",
    "theorem": "Theorem 39's proof, constants worked out",
}


def draw(rows: list[Row], out: pathlib.Path) -> None:
    """Writes multi_parities_least_n and multi_parities_learner as PNG and SVG."""
    at = {name: part[0].value for name, part in records.series(rows, "settings").items()}
    title = (
        f"Least n that identifies k parities of {at['bits']:.0f} bits exactly with probability {1 - at['beta']:g}\n"
        f"{_budget(at)}, uniform points; exact laws; dashed: what pure and what agnostic learners need at least"
    )
    with style.house():
        exponents.draw_least_n(rows, out / "multi_parities_least_n", title=title, colours=COLOUR, labels=LABEL)
        _draw_learner(rows, at, out / "multi_parities_learner")


def _budget(at: dict[str, Any]) -> str:
    """The privacy, for a title."""
    return f"ε = {at['epsilon']:g}, δ = $10^{{{math.log10(at['delta']):.0f}}}$"


def _draw_learner(rows: list[Row], at: dict[str, Any], path: pathlib.Path) -> None:
    """n* by d on the left, failures at n* by k on the right."""
    fig, (left, right) = style.figure(1, 2, figsize=(9.0, 3.8))
    for name, part in records.series(rows, "by d").items():
        left.plot(*records.curve(part), marker="o", color=COLOUR[name], label=LABEL[name])
    left.set(xscale="log", yscale="log", xlabel="d (bits)", ylabel="examples, for every k")
    left.set_xscale("log", base=2)
    left.legend()
    trials, computed = (records.series(rows, panel)["ParityLearner"] for panel in ("trials", "computed"))
    columns = records.columns(trials)
    style.points(right, *columns, color=COLOUR["ParityLearner"], label="counted in trials, with interval")
    right.plot(*records.curve(computed), "--", color="grey", label="computed exactly")
    right.axhline(at["beta"], color="black", linewidth=0.8, linestyle=":", label="β, which n* must keep")
    right.set(
        xscale="log",
        xlabel=f"k (parities of {at['trial bits']:.0f} bits)",
        ylabel="P[some parity missed at n*]",
        ylim=(0, None),
    )
    right.legend()
    fig.suptitle(
        f"ParityLearner: examples grow with d, not with k ({_budget(at)}, β = {at['beta']:g})",
        fontsize=9,
    )
    style.save(fig, path)
