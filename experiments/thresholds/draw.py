"""The three pictures, from the table alone."""

import itertools
import math
import pathlib
from typing import Any

from dpjax.plotting import style
from experiments import records
from experiments.records import Row

COLOUR = {
    "ERM": style.COLOURS[0],
    "exponential mechanism": style.COLOURS[1],
    "binary search": style.COLOURS[3],
    "RecConcave, N=2": style.COLOURS[2],
}


def draw(rows: list[Row], out: pathlib.Path) -> None:
    """Writes thresholds_least_n, thresholds_success and thresholds_anatomy as PNG and SVG."""
    with style.house():
        _draw_least_n(rows, out / "thresholds_least_n")
        _draw_success(rows, out / "thresholds_success")
        _draw_anatomy(rows, out / "thresholds_anatomy")


def _draw_least_n(rows: list[Row], path: pathlib.Path) -> None:
    """(a) n* against d."""
    fig, axes = style.figure(figsize=(6.4, 4.4))
    theorems = records.series(rows, "theorem")
    measured = records.series(rows, "least n")
    for name, part in measured.items():
        x, value, low, high = records.columns(part)
        style.interval(axes, x, value, low, high, color=COLOUR[name], marker="o", label=name)
    for number, (name, part) in enumerate(theorems.items()):
        dashes = (5 * number, (4, 6))  # shifted: where two theorems ask for the same, both colours are seen
        axes.plot(*records.curve(part), linestyle=dashes, color=COLOUR[name], linewidth=1)
    axes.plot([], [], "--", color="grey", linewidth=1, label="what the theorem asks")
    _mark_crossing(axes, measured)
    axes.set(
        xscale="log",
        yscale="log",
        xlabel="d (the domain is {0, ..., $2^d - 1$})",
        ylabel="examples",
    )
    fig.suptitle(
        "Least n that learns a threshold to population error 0.1 with probability 0.9\n"
        "ε = 1, δ = $10^{-6}$, log-uniform data, exact laws averaged over data draws",
        fontsize=9,
    )
    axes.set_xscale("log", base=2)
    ticks = sorted({r.x for part in measured.values() for r in part})
    axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    axes.minorticks_off()
    axes.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0))
    style.save(fig, path)


def crossing(first: list[Row], second: list[Row]) -> tuple[float, float] | None:
    """Where two curves cross, interpolated on log-log axes; None if they do not."""
    by_x = {row.x: row.value for row in second}
    shared = [(math.log(r.x), math.log(r.value) - math.log(by_x[r.x]), math.log(r.value)) for r in first if r.x in by_x]
    for (x0, gap0, y0), (x1, gap1, y1) in itertools.pairwise(shared):
        if gap0 < 0 <= gap1:
            share = -gap0 / (gap1 - gap0)
            return math.exp(x0 + share * (x1 - x0)), math.exp(y0 + share * (y1 - y0))
    return None


def _mark_crossing(axes: Any, measured: dict[str, list[Row]]) -> None:
    """The d from which RecConcave needs fewer examples than the exponential mechanism."""
    found = crossing(measured.get("exponential mechanism", []), measured.get("RecConcave, N=2", []))
    if found is None:
        return
    axes.plot(*found, marker="o", markersize=11, markerfacecolor="none", color="black", linestyle="none")
    axes.annotate(
        f"d ≈ {found[0]:.0f}: RecConcave overtakes\nthe exponential mechanism",
        found,
        xytext=(0.98, 0.2),
        textcoords="axes fraction",
        ha="right",
        fontsize=8,
        arrowprops={"arrowstyle": "-", "color": "black", "linewidth": 0.7},
    )


def _draw_success(rows: list[Row], path: pathlib.Path) -> None:
    """(b) success against n."""
    fig, axes = style.figure(figsize=(6.4, 3.6))
    for name, part in records.series(rows, "success by law").items():
        x, value, low, high = records.columns(part)
        style.interval(axes, x, value, low, high, color=COLOUR[name], label=f"{name}: exact law")
    for name, part in records.series(rows, "success by trials").items():
        style.points(axes, *records.columns(part), color=COLOUR[name], label=f"{name}: trials")
    axes.set(
        xscale="log",
        xlabel="n (examples)",
        ylabel="success probability",
        ylim=(-0.03, 1.03),
    )
    bits = records.series(rows, "settings")["success bits"][0].value
    fig.suptitle(
        f"Population error ≤ 0.1 at d = {bits:.0f}: mean exact law over data draws (line, 95 % band)\n"
        "and plain Monte Carlo (points, 95 % Clopper-Pearson)",
        fontsize=9,
    )
    axes.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0))
    style.save(fig, path)


def _draw_anatomy(rows: list[Row], path: pathlib.Path) -> None:
    """(c) one run of RecConcave."""
    chosen = {name: part[0].value for name, part in records.series(rows, "anatomy: chosen").items()}
    fig, (top, middle, bottom) = style.figure(3, 1, figsize=(6.4, 7.2), height_ratios=[3, 2, 1.2])
    _draw_quality(top, records.series(rows, "anatomy: Q")["Q(j)"], chosen)
    _draw_windows(middle, records.series(rows, "anatomy: L"), chosen)
    _draw_blocks(bottom, records.series(rows, "anatomy: blocks"), chosen)
    bottom.sharex(top)
    style.save(fig, path)


def _draw_quality(axes: Any, quality: list[Row], chosen: dict[str, float]) -> None:
    promise, alpha = chosen["promise"], chosen["alpha"]
    axes.plot(*records.curve(quality), color=style.COLOURS[1])
    axes.axhline(promise, color="grey", linewidth=0.8)
    axes.axhline((1 - alpha) * promise, color="grey", linewidth=0.8, linestyle="--")
    axes.text(quality[0].x, promise, " r = n", va="bottom", fontsize=8)
    axes.text(quality[0].x, (1 - alpha) * promise, " (1 − α) r", va="bottom", fontsize=8)
    if chosen["released"]:
        axes.axvline(chosen["threshold"], color=style.COLOURS[2], label="released threshold")
    axes.axvline(0, color="black", linewidth=0.8, linestyle=":", label="target")
    axes.set(ylabel="Q(j), correctly labelled", title="One run of RecConcave: the quality Q and the released threshold")
    axes.legend(loc="lower right")


def _draw_windows(axes: Any, lines: dict[str, list[Row]], chosen: dict[str, float]) -> None:
    axes.plot(*records.curve(lines["L(j)"]), "o-", color=style.COLOURS[1], label="L(j)")
    axes.set(
        xlabel="j (windows of $2^j$ points)",
        ylabel="L(j)",
        title="The recursion: q is largest where L falls through (1 − α/2) r",
    )
    right = axes.twinx()
    right.plot(*records.curve(lines["q(j)"]), "s-", color=style.COLOURS[3], label="q(j)")
    top = max(r.value for r in lines["q(j)"])
    right.set(ylabel="q(j)", ylim=(-3 * top, 1.4 * top))  # what is far below cannot be chosen
    right.grid(False)
    right.spines["right"].set_visible(True)
    axes.axvline(chosen["k"], color=style.COLOURS[2], label=f"chosen k = {chosen['k']:.0f}")
    handles = [*axes.get_legend_handles_labels()[0], *right.get_legend_handles_labels()[0]]
    axes.legend(handles, [h.get_label() for h in handles], loc="upper right")


def _draw_blocks(axes: Any, partitions: dict[str, list[Row]], chosen: dict[str, float]) -> None:
    for level, (name, blocks) in enumerate(sorted(partitions.items(), reverse=True)):
        for block in blocks:
            face = {0.0: "none", 1.0: "#D0D0D0", 2.0: style.COLOURS[2]}[block.value]
            axes.barh(
                level,
                block.high - block.low,
                left=block.low,
                height=0.6,
                facecolor=face,
                edgecolor="black",
                linewidth=0.8,
                alpha=0.8,
            )
        axes.text(blocks[-1].high, level, f"  gap {chosen[f'gap {name}']:.0f}", va="center", fontsize=8)
    axes.set_yticks(range(len(partitions)), [f"partition {name}" for name in sorted(partitions, reverse=True)])
    axes.set_ylim(-0.6, len(partitions) - 0.4)
    axes.axvline(0, color="black", linewidth=0.8, linestyle=":")
    axes.set(
        xlabel="threshold, as signed $\\log_2(1 + |j - \\mathrm{target}|)$",
        title="Blocks of $8 \\cdot 2^k$ points around the best one (orange: released by A_dist)",
    )
    axes.grid(False)
