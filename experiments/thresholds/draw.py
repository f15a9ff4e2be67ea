"""Draws the three pictures from the table of results alone."""

import pathlib
from typing import Any

from dpjax.plotting import style
from experiments import captions, records
from experiments.curves import crossing
from experiments.records import Row
from experiments.settings import Settings

COLOUR = {
    "ERM": style.COLOURS[0],
    "exponential mechanism": style.COLOURS[1],
    "binary search": style.COLOURS[3],
    "RecConcave, N=2": style.COLOURS[2],
}


SCALE = "threshold, as signed $\\log_2(1 + |\\mathrm{threshold} - \\mathrm{target}|)$"


def draw(rows: list[Row], settings: Settings, out: pathlib.Path) -> None:
    """Writes thresholds_least_n, thresholds_success and thresholds_anatomy as PNG and SVG."""
    with style.house():
        _draw_least_n(rows, settings, out / "thresholds_least_n")
        _draw_success(rows, settings, out / "thresholds_success")
        _draw_anatomy(rows, settings, out / "thresholds_anatomy")


def _draw_least_n(rows: list[Row], settings: Settings, path: pathlib.Path) -> None:
    """(a) n* against d."""
    fig, axes = style.figure(figsize=(6.4, 4.4))
    theorems = records.series(rows, "theorem")
    measured = records.series(rows, "least n")
    for name, part in measured.items():
        x, value, low, high = records.columns(part)
        style.interval(axes, x, value, low, high, color=COLOUR[name], marker="o", label=captions.words(name))
    for number, (name, part) in enumerate(theorems.items()):
        dashes = (5 * number, (4, 6))  # shifted, so that both colours show where two theorems agree
        axes.plot(*records.curve(part), linestyle=dashes, color=COLOUR[name], linewidth=1)
    axes.plot([], [], "--", color="grey", linewidth=1, label="the theorem, as printed")
    _mark_crossing(axes, measured)
    axes.set(yscale="log", xlabel="d (the domain is {0, ..., $2^d - 1$})", ylabel="examples")
    style.doubling(axes, {row.x for part in measured.values() for row in part})
    axes.minorticks_off()
    style.title(
        fig,
        f"Least n that learns a threshold to population error {settings['alpha']:g} {captions.success(settings)}",
        f"{captions.privacy(settings)}, log-uniform data, exact laws averaged over data draws",
    )
    style.legend_beside(axes)
    style.save(fig, path)


def _mark_crossing(axes: Any, measured: dict[str, list[Row]]) -> None:
    """Marks the d from which RecConcave needs fewer examples than the exponential mechanism."""
    found = crossing(measured.get("exponential mechanism", []), measured.get("RecConcave, N=2", []))
    if found is None:
        return
    axes.plot(*found, marker="o", markersize=11, markerfacecolor="none", color="black", linestyle="none")
    axes.annotate(
        f"d ≈ {found[0]:.0f}: RecConcave overtakes\nthe exponential mechanism",
        found,
        xytext=(0.98, 0.13),
        textcoords="axes fraction",
        ha="right",
        fontsize=8,
        arrowprops={"arrowstyle": "-", "color": "black", "linewidth": 0.7},
    )


def _draw_success(rows: list[Row], settings: Settings, path: pathlib.Path) -> None:
    """(b) success against n."""
    fig, axes = style.figure(figsize=(6.4, 3.6))
    for name, part in records.series(rows, "success by law").items():
        x, value, low, high = records.columns(part)
        style.interval(axes, x, value, low, high, color=COLOUR[name], label=f"{captions.words(name)}: exact law")
    for name, part in records.series(rows, "success by trials").items():
        style.points(axes, *records.columns(part), color=COLOUR[name], label=f"{captions.words(name)}: trials")
    axes.set(
        xscale="log",
        xlabel="n (examples)",
        ylabel="success probability",
        ylim=(-0.03, 1.03),
    )
    level = captions.percent(settings["level"])
    style.title(
        fig,
        f"P[population error ≤ {settings['alpha']:g}] at d = {settings['success']['bits']}, {captions.privacy(settings)}",
        f"lines: mean exact law over data draws, {level} band; points: {settings['trials']:,} trials, {level} Clopper-Pearson",
    )
    style.legend_beside(axes)
    style.save(fig, path)


def _draw_anatomy(rows: list[Row], settings: Settings, path: pathlib.Path) -> None:
    """(c) one run of RecConcave."""
    chosen = {name: part[0].value for name, part in records.series(rows, "anatomy: chosen").items()}
    fig, (top, middle, bottom) = style.figure(3, 1, figsize=(6.8, 8.4), height_ratios=[3, 2.4, 1.2])
    at = settings["anatomy"]
    style.title(
        fig,
        f"One run of RecConcave: d = {at['bits']}, n = {at['n']:,}, {captions.privacy(settings)}",
        f"r: what the best threshold reaches; α = {chosen['alpha']:g}: the share of r that may be lost",
    )
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
    axes.set(
        xlabel=SCALE,
        ylabel="Q (examples labelled correctly)",
        title="The quality Q and the released threshold",
        ylim=(None, 1.06 * promise),
    )
    axes.legend(loc="upper right", bbox_to_anchor=(1.0, 0.9))


def _draw_windows(axes: Any, lines: dict[str, list[Row]], chosen: dict[str, float]) -> None:
    axes.plot(*records.curve(lines["L(j)"]), "o-", color=style.COLOURS[1], label="L(j): the least Q in the best window")
    axes.set(
        xlabel="j (windows of $2^j$ thresholds)",
        ylabel="L(j) (examples)",
        title="The recursion: q is largest where L falls through (1 − α/2) r",
    )
    right = axes.twinx()
    right.plot(
        *records.curve(lines["q(j)"]), "s-", color=style.COLOURS[3], label="q(j) = min(L(j) − (1 − α) r, r − L(j + 1))"
    )
    top = max(r.value for r in lines["q(j)"])
    right.set(ylabel="q(j) (examples)", ylim=(-3 * top, 1.4 * top))  # a j with a q far below this cannot be chosen
    right.grid(False)
    right.spines["right"].set_visible(True)
    axes.axvline(chosen["k"], color=style.COLOURS[2], label=f"chosen: k = {chosen['k']:.0f}")
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
        axes.text(
            blocks[-1].high, level, f"  {chosen[f'gap {name}']:.0f} examples above the next", va="center", fontsize=8
        )
    axes.set_yticks(range(len(partitions)), [f"partition {name}" for name in sorted(partitions, reverse=True)])
    axes.set_ylim(-0.6, len(partitions) - 0.4)
    axes.axvline(0, color="black", linewidth=0.8, linestyle=":")
    axes.set(
        xlabel=SCALE,
        title="Blocks of $8 \\cdot 2^k$ thresholds around the best one (orange: released by A_dist, grey: not)",
    )
    axes.grid(False)
