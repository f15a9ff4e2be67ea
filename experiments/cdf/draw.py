"""Draws the two pictures from the table of results alone."""

import pathlib

from dpjax.plotting import style
from experiments import captions, records
from experiments.records import Row
from experiments.settings import Settings

COLOUR = {
    "one run a quantile": style.COLOURS[1],
    "recursive medians": style.COLOURS[3],
    "Reorder-Slice-Compute": style.COLOURS[2],
}
# The offset of a number from its point, chosen so that the numbers of neighbouring curves do not overlap.
BESIDE = {"one run a quantile": (7, 4), "recursive medians": (0, -11), "Reorder-Slice-Compute": (0, 6)}


def draw(rows: list[Row], settings: Settings, out: pathlib.Path) -> None:
    """Writes cdf_released and cdf_distance as PNG and SVG."""
    with style.house():
        _draw_released(rows, settings, out / "cdf_released")
        _draw_distance(rows, settings, out / "cdf_distance")


def _draw_released(rows: list[Row], settings: Settings, path: pathlib.Path) -> None:
    """(a) one release by each method."""
    released, true = records.series(rows, "released"), records.series(rows, "true")["true"]
    alphas, distances = records.series(rows, "released alpha"), records.series(rows, "released distance")
    fig, panels = style.figure(1, len(released), figsize=(9.6, 3.4), sharey=True)
    for axes, (name, part) in zip(panels, released.items(), strict=True):
        x, colour = [r.x for r in part], COLOUR[name]
        axes.fill_between(
            x,
            [r.low for r in part],
            [r.high for r in part],
            step="post",
            color=colour,
            alpha=0.2,
            linewidth=0,
            label="promised band",
        )
        axes.step(x, [r.value for r in part], where="post", color=colour, label="released")
        axes.plot(*records.curve(true), color="black", linewidth=1, label="true")
        count, alpha, found = alphas[name][0].x, alphas[name][0].value, distances[name][0].value
        axes.set(
            title=f"{name}\n{count:.0f} quantiles, promised {alpha:.3f}, here {found:.3f}",
            xlabel="x, as signed $\\log_2(1 + |x - \\mathrm{middle}|)$",
            ylim=(-0.02, 1.02),
        )
        axes.legend(loc="upper left")
    panels[0].set_ylabel("share of the data ≤ x")
    n, budget = settings["picture"], captions.privacy(settings)
    style.title(
        fig,
        f"A distribution function released privately from n = {n:,} log-uniform points of {settings['bits']} bits, {budget}",
        f"band: Kolmogorov distance to the sample, kept {captions.success(settings)} or more",
    )
    style.save(fig, path)


def _draw_distance(rows: list[Row], settings: Settings, path: pathlib.Path) -> None:
    """(b) alpha against n."""
    fig, axes = style.figure(figsize=(8.4, 4.6))
    counts, promised = records.series(rows, "quantiles"), records.series(rows, "promise")
    for name, part in records.series(rows, "distance").items():
        x, value, low, high = records.columns(part)
        style.interval(axes, x, value, low, high, color=COLOUR[name], marker="o", label=name)
        for row, count in zip(part, counts[name], strict=True):
            axes.annotate(
                f"{count.value:.0f}",
                (row.x, row.value),
                xytext=BESIDE[name],
                textcoords="offset points",
                ha="center",
                fontsize=7,
                color=COLOUR[name],
            )
        bound = promised.get(name, [])
        axes.plot(*records.curve(bound), linestyle="--", color=COLOUR[name], linewidth=1)
    axes.plot([], [], "--", color="grey", linewidth=1, label="promised")
    axes.set(yscale="log", xlabel="n (points)", ylabel="Kolmogorov distance to the sample")
    style.doubling(axes, {r.x for part in counts.values() for r in part})
    levels = [0.03, 0.05, 0.1, 0.2, 0.3, 0.5]
    axes.set_yticks(levels, [f"{level:g}" for level in levels])
    axes.minorticks_off()
    style.legend_beside(axes)
    share, level = captions.percent(1 - settings["beta"]), captions.percent(settings["level"])
    style.title(
        fig,
        f"Distance that {share} of the releases stay within (band: {level} interval), at the best number of quantiles (small)",
        f"{captions.privacy(settings)}, log-uniform points of {settings['bits']} bits, exponential mechanism as solver",
    )
    style.save(fig, path)
