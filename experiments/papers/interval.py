"""BNS Figures 1 to 3 (§3.2) in one run: a good interval, the five hypotheses that it gives, and the blocks among which it is found."""

import pathlib
from typing import Any

import jax
import numpy as np

from dpjax.concepts import thresholds as concept
from dpjax.data.sample import bucket
from dpjax.domains import wide
from dpjax.learners import pac, thresholds
from dpjax.learners.thresholds import intervals
from dpjax.plotting import style
from experiments import captions, records
from experiments.records import Row, exact
from experiments.runner import Context
from experiments.settings import Settings

TICKS = 100  # examples shown


@jax.jit
def dissect(key: jax.Array, experiment: pac.Experiment) -> dict[str, Any]:
    """The sample, W(2^j) for every j, and what the run chose."""
    key_coins, sample = pac.draw(key, experiment)
    learner = experiment.learner
    pieces = concept.quality(sample, learner.bits, learner.limbs)
    lengths = jax.vmap(lambda j: wide.power_of_two(j, learner.limbs))(np.arange(32, dtype=np.int32))
    outcome = learner(key_coins, sample)
    blocks = intervals.best_blocks(pieces, outcome.info["exponent"])
    start = wide.select(outcome.info["kept_a"], blocks.start[0], blocks.start[1])
    ends = intervals.hypotheses(pieces, outcome.info["exponent"], start)
    quality = pieces.values[jax.vmap(pieces.locate)(ends)]
    balance = jax.vmap(lambda length: intervals.largest_balance(pieces, length))(lengths)
    return {
        "sample": sample,
        "outcome": outcome,
        "blocks": blocks,
        "ends": ends,
        "quality": quality,
        "balance": balance,
    }


def measure(settings: Settings, context: Context) -> list[Row]:
    """Rows of the examples, the balances, the hypotheses with their errors, and what was chosen."""
    bits, n = settings["bits"], settings["n"]
    experiment = pac.Experiment(
        learner=thresholds.power_search(
            bits=bits, epsilon=settings["epsilon"], delta=settings["delta"], alpha=settings["alpha"]
        ),
        distribution=concept.uniform(bits=bits, target=settings["target"]),
        n=n,
        alpha=settings["alpha"],
        capacity=bucket(n),
    )
    seen = jax.device_get(dissect(jax.random.fold_in(context.root, 4), experiment))
    sample, outcome = seen["sample"], seen["outcome"]
    examples = list(zip(wide.to_ints(sample.x), sample.y.tolist(), strict=True))[:n]
    rows = [exact("interval: examples", str(y), x, y) for x, y in examples[:: max(n // TICKS, 1)]]
    rows += [exact("interval: balance", "W", j, float(seen["balance"][j])) for j in range(bits + 1)]
    for place, end, quality in zip(range(5), wide.to_ints(seen["ends"]), seen["quality"], strict=True):
        rows.append(exact("interval: hypotheses", f"h{place + 1}", end, n - float(quality)))
    named: dict[str, float] = {
        "exponent": int(outcome.info["exponent"]),
        "status": int(outcome.status),
        "kept A": int(outcome.info["kept_a"]),
        "kept B": int(outcome.info["kept_b"]),
        "released": wide.to_ints(outcome.hypothesis)[0],
    }
    for name, start, gap in zip("AB", wide.to_ints(seen["blocks"].start), seen["blocks"].gap, strict=True):
        named |= {f"start {name}": start, f"gap {name}": float(gap)}
    return rows + [exact("interval: chosen", name, 0, value) for name, value in named.items()]


# --------------------------------------------------------------------------------------------------------- pictures


def draw(rows: list[Row], settings: Settings, path: pathlib.Path) -> None:
    """Draws the search for the length above, and the three figures on one axis below."""
    chosen = {name: part[0].value for name, part in records.series(rows, "interval: chosen").items()}
    fig, (top, bottom) = style.figure(2, 1, figsize=(8.4, 6.6), height_ratios=[1.0, 1.5])
    style.title(
        fig,
        f"BNS Figures 1 to 3 in one run of the search for a power: d = {settings['bits']}, n = {settings['n']:,}, "
        f"α = {settings['alpha']:g}, {captions.privacy(settings)}",
    )
    _draw_search(top, records.series(rows, "interval: balance")["W"], settings, chosen)
    _draw_interval(bottom, rows, settings, chosen)
    style.save(fig, path)


def _draw_search(axes: Any, balance: list[Row], settings: Settings, chosen: dict[str, float]) -> None:
    axes.plot(*records.curve(balance), "o-", color=style.COLOURS[1], label="W($2^j$): the largest min(zeros, ones)")
    for share, text in ((1 / 8, "large enough: α n/8"), (3 / 8, "small enough for half the length: 3 α n/8")):
        level = share * settings["alpha"] * settings["n"]
        axes.axhline(level, color="grey", linewidth=0.8, linestyle="--")
        axes.text(0, level, f" {text}", va="bottom", fontsize=8)
    axes.axvline(chosen["exponent"], color=style.COLOURS[2], label=f"found: j = {chosen['exponent']:.0f}")
    axes.set(xlabel="j (intervals of $2^j$ points)", ylabel="examples", title="The search for the length $2^j$")
    axes.legend(loc="upper left", bbox_to_anchor=(0.0, 0.95))


def _draw_interval(axes: Any, rows: list[Row], settings: Settings, chosen: dict[str, float]) -> None:
    """Draws, from top to bottom, the examples and the target; the released block, its quarters and hypotheses; the blocks A and B."""
    size = 2 ** (chosen["exponent"] + 1)
    name = "A" if chosen["kept A"] else "B"
    start = chosen[f"start {name}"]
    for label, part in records.series(rows, "interval: examples").items():
        axes.plot(
            [row.x for row in part],
            [4.0] * len(part),
            "|" if label == "1" else ".",
            color=style.COLOURS[2] if label == "1" else "black",
            label=f"examples labelled {label}",
        )
    axes.axvline(settings["target"], color="black", linewidth=0.8, linestyle=":", label="target")
    for quarter in range(4):
        axes.barh(3.0, size / 4, left=start + quarter * size / 4, height=0.5, facecolor="#DDDDDD", edgecolor="black")
        axes.text(start + (quarter + 0.5) * size / 4, 3.0, f"$g_{quarter + 1}$", ha="center", va="center", fontsize=8)
    for title, part in records.series(rows, "interval: hypotheses").items():
        row = part[0]
        axes.plot(row.x, 2.35, "v", color=style.COLOURS[1], markersize=6)
        axes.text(row.x, 2.15, f"${title[0]}_{title[1]}$\n{row.value:.0f}\nerrors", ha="center", va="top", fontsize=7)
    axes.plot([], [], "v", color=style.COLOURS[1], label="hypotheses")
    last = 2 ** settings["bits"]
    for place, family, first in ((1.0, "A", 0.0), (0.4, "B", size / 2)):
        for left in np.arange(first, last, size):
            won, released = left == chosen[f"start {family}"], chosen[f"kept {family}"]
            face = "white" if not won else style.COLOURS[5] if released else "#DDDDDD"
            axes.barh(
                place, min(size, last - left), left=left, height=0.45, facecolor=face, edgecolor="black", linewidth=0.7
            )
    axes.plot(
        chosen["released"], 2.35, "v", color=style.COLOURS[2], markersize=8, label=f"released: {chosen['released']:.0f}"
    )
    axes.set_yticks(
        [4.0, 3.0, 2.1, 1.0, 0.4],
        ["Figure 1: examples", "good interval G", "Figure 2: hypotheses", "Figure 3: blocks A", "blocks B"],
    )
    axes.set(
        xlabel="points; the best block of A and of B is filled (orange: released by A_dist)",
        xlim=(-0.09 * last, 1.03 * last),
        ylim=(0.0, 4.4),
    )
    axes.grid(False)
    style.legend_beside(axes)
