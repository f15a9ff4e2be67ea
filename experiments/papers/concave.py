"""BNS Figures 4 to 7 (§3.3): one run of RecConcave on a domain small enough to see every point."""

import pathlib
from typing import Any

import jax
import numpy as np

from dpjax.concepts import thresholds as concept
from dpjax.data.sample import bucket
from dpjax.domains import wide
from dpjax.learners import pac, thresholds
from dpjax.plotting import style
from experiments import captions, records
from experiments.anatomy import dissect
from experiments.records import Row, exact
from experiments.runner import Context
from experiments.settings import Settings

TICKS = 80  # examples shown


def measure(settings: Settings, context: Context) -> list[Row]:
    """Rows of Q on the whole range, L and q, the windows that attain L, and what was chosen."""
    bits, n = settings["bits"], settings["n"]
    experiment = pac.Experiment(
        learner=thresholds.rec_concave(
            bits=bits, epsilon=settings["epsilon"], delta=settings["delta"], alpha=settings["alpha"], depth=2
        ),
        distribution=concept.uniform(bits=bits, target=settings["target"]),
        n=n,
        alpha=settings["alpha"],
        capacity=bucket(n),
    )
    seen = jax.device_get(dissect(jax.random.fold_in(context.root, 1), experiment))
    quality = on_every_point(seen["pieces"], 2**bits)
    k = int(seen["run"].k)
    rows = [exact("concave: Q", "Q", j, float(q)) for j, q in enumerate(quality)]
    rows += [exact("concave: L", "L", j, float(seen["windows"][j])) for j in range(bits + 1)]
    rows += [exact("concave: L", "q", j, float(seen["quality"][j])) for j in range(bits + 1)]
    for length in (k, k + 1):
        low, value = best_window(quality, 2 ** max(length, 0))
        rows.append(Row("concave: windows", f"2^{length - k}K", length, value, low, low + 2**length - 1))
    sample = seen["sample"]
    examples = list(zip(wide.to_ints(sample.x), sample.y.tolist(), strict=True))[:n]
    rows += [exact("concave: examples", str(y), x, y) for x, y in examples[:: max(n // TICKS, 1)]]
    return rows + _chosen(seen, quality, k)


def _chosen(seen: dict[str, Any], quality: np.ndarray, k: int) -> list[Row]:
    """Rows of the run's numbers by name."""
    run, problem = seen["run"], seen["problem"]
    released = wide.to_ints(np.asarray(run.point.position))[0]
    named = {
        "k": k,
        "promise": float(problem.promise),
        "alpha": float(problem.alpha),
        "ok": int(run.ok),
        "released": released,
        "best": int(np.argmax(quality)),
        "kept A": int(run.kept_a),
        "kept B": int(run.kept_b),
        "gap A": float(run.block_a.gap),
        "gap B": float(run.block_b.gap),
    }
    for name, block in (("A", run.block_a), ("B", run.block_b)):
        low, high = (wide.to_ints(np.asarray(end))[0] for end in (block.interval.low, block.interval.high))
        named |= {f"low {name}": low, f"high {name}": high - 1}
    return [exact("concave: chosen", name, 0, value) for name, value in named.items()]


def on_every_point(pieces: Any, last: int) -> np.ndarray:
    """Q on 0, ..., last."""
    starts = wide.to_ints(np.asarray(pieces.starts))
    ends = [*starts[1:], last + 1]
    values = np.zeros(last + 1)
    for start, end, value in zip(starts, ends, np.asarray(pieces.values), strict=True):
        values[start : min(end, last + 1)] = value
    return values


def best_window(values: np.ndarray, length: int) -> tuple[int, float]:
    """(where the window of that length with the largest least value begins, that value), by examining all windows.

    >>> best_window(np.array([1.0, 5.0, 4.0, 0.0]), 2)
    (1, 4.0)
    """
    least = np.lib.stride_tricks.sliding_window_view(values, min(length, len(values))).min(axis=1)
    return int(np.argmax(least)), float(np.max(least))


# --------------------------------------------------------------------------------------------------------- pictures


def draw(rows: list[Row], settings: Settings, path: pathlib.Path) -> None:
    """Draws Figures 4, 6 and 7 and, as a list of steps with this run's numbers, Figure 5."""
    chosen = {name: part[0].value for name, part in records.series(rows, "concave: chosen").items()}
    fig, ((four, five), (six, seven)) = style.figure(2, 2, figsize=(11.0, 7.6))
    style.title(
        fig,
        f"BNS Figures 4 to 7 in one run of RecConcave: d = {settings['bits']}, n = {settings['n']:,}, "
        f"α = {chosen['alpha']:g}, {captions.privacy(settings)}",
    )
    _figure_4(four, rows, settings)
    _figure_5(five, settings, chosen)
    _figure_6(six, rows, chosen)
    _figure_7(seven, rows, chosen)
    style.save(fig, path)


def _quality(axes: Any, rows: list[Row]) -> None:
    axes.plot(*records.curve(records.series(rows, "concave: Q")["Q"]), color=style.COLOURS[1], linewidth=1)
    axes.set(xlabel="threshold", ylabel="Q (examples labelled correctly)")


def _figure_4(axes: Any, rows: list[Row], settings: Settings) -> None:
    """Figure 4: a threshold errs on every example on which one between it and the target errs."""
    _quality(axes, rows)
    quality = {row.x: row.value for row in records.series(rows, "concave: Q")["Q"]}
    names = ["u", "v", "j", "w"]
    for name, threshold in zip(names, settings["shown"], strict=True):
        axes.plot([threshold, threshold], [0, quality[threshold]], color="grey", linewidth=0.8, linestyle="--")
        errors = settings["n"] - quality[threshold]
        axes.annotate(
            f"$c_{name}$: {errors:.0f} errors",
            (threshold, quality[threshold]),
            xytext=(-6 if threshold <= settings["target"] else 6, 3),
            textcoords="offset points",
            ha="right" if threshold <= settings["target"] else "left",
            fontsize=8,
        )
    for label, part in records.series(rows, "concave: examples").items():
        axes.plot(
            [row.x for row in part],
            [-0.04 * settings["n"]] * len(part),
            "|" if label == "1" else ".",
            color=style.COLOURS[2] if label == "1" else "black",
            markersize=6,
            label=f"examples labelled {label}",
        )
    axes.set(
        title="Figure 4: the quality of thresholds is quasi-concave",
        xlim=(-0.13 * 2 ** settings["bits"], None),
        ylim=(-0.09 * settings["n"], 1.1 * settings["n"]),
    )
    axes.legend(loc="upper right")


def _figure_5(axes: Any, settings: Settings, chosen: dict[str, float]) -> None:
    """Writes Figure 5: the algorithm's steps with the numbers of this run."""
    promise, alpha, k = chosen["promise"], chosen["alpha"], int(chosen["k"])
    bits = settings["bits"]

    def block(name: str) -> str:
        said = "released" if chosen[f"kept {name}"] else "not released (⊥)"
        gap = f"gap {chosen[f'gap {name}']:.0f}" if np.isfinite(chosen[f"gap {name}"]) else "no other block"
        return f"best {name} block [{chosen[f'low {name}']:.0f}, {chosen[f'high {name}']:.0f}], {gap}: {said}"

    steps = [
        f"1.  T = {2**bits} > 32 and N = 2: no base case",
        f"2.  T' = {2**bits}",
        f"3.  L(j) for j = 0, ..., {bits}: see Figure 6",
        "4.  q(j) = min(L(j) − (1 − α) r, r − L(j + 1))",
        f"5.  R = (α/2) r = {alpha * promise / 2:g}",
        f"6.  recursion on {{0, ..., {bits}}} with promise R returns k = {k}, K = {2**k}",
        f"7.  blocks of 8 K = {8 * 2**k} points, A, and B shifted by {4 * 2**k}",
        "8.  u(I) = the largest Q in I",
        f"9.  A_dist: {block('A')}",
        f"     A_dist: {block('B')}",
        f"10. exponential mechanism on A ∪ B returns {chosen['released']:.0f}",
    ]
    axes.axis("off")
    axes.set_title("Figure 5: the algorithm, with this run's numbers")
    axes.text(0.0, 0.95, "\n".join(steps), va="top", fontsize=9, linespacing=1.7, transform=axes.transAxes)


def _figure_6(axes: Any, rows: list[Row], chosen: dict[str, float]) -> None:
    lines, promise, alpha = records.series(rows, "concave: L"), chosen["promise"], chosen["alpha"]
    axes.plot(*records.curve(lines["L"]), "o-", color=style.COLOURS[1], label="L(j): the least Q in the best window")
    axes.plot(*records.curve(lines["q"]), "s-", color=style.COLOURS[3], label="q(j): see step 4")
    for share, text, side in (
        (1 - alpha / 2, "(1 − α/2) r", "bottom"),
        (1 - alpha, "(1 − α) r", "top"),
        (alpha / 2, "R = (α/2) r", "bottom"),
    ):
        axes.axhline(share * promise, color="grey", linewidth=0.8, linestyle="--")
        axes.text(lines["L"][-1].x, share * promise, text, va=side, ha="right", fontsize=8)
    axes.axvline(chosen["k"], color=style.COLOURS[2], label=f"chosen k = {chosen['k']:.0f}")
    axes.axhline(0, color="black", linewidth=0.6)
    axes.set(
        xlabel="j (windows of $2^j$ thresholds)",
        ylabel="examples",
        title="Figure 6: the best window of each length",
        ylim=(-0.2 * promise, 1.08 * promise),  # a q far below this is never chosen
    )
    axes.legend(loc="center left")


def _figure_7(axes: Any, rows: list[Row], chosen: dict[str, float]) -> None:
    promise, alpha, k, best = chosen["promise"], chosen["alpha"], int(chosen["k"]), chosen["best"]
    _quality(axes, rows)
    reach = 2 * 2**k - 1
    axes.axvspan(
        best - reach, best + reach, color=style.COLOURS[5], alpha=0.2, label="P = P₁ ∪ P₂ around the best point p"
    )
    axes.axhline((1 - 3 * alpha / 8) * promise, color="grey", linewidth=0.8, linestyle="--", label="(1 − 3α/8) r")
    windows = records.series(rows, "concave: windows")
    for colour, (name, part) in zip(style.COLOURS[3:5], sorted(windows.items()), strict=True):
        row = part[0]
        label = f"best window of {'K' if name == '2^0K' else '2 K'} points: Q ≥ {row.value:.0f}"
        axes.plot([row.low, row.high], [row.value, row.value], color=colour, linewidth=3, label=label)
    axes.axvline(chosen["released"], color=style.COLOURS[2], linewidth=1, label=f"released: {chosen['released']:.0f}")
    axes.set(
        title="Figure 7: outside P no point is better than (1 − 3α/8) r",
        xlim=(best - 3 * reach, best + 3 * reach),
        ylim=((1 - 3 * alpha) * promise, (1 + alpha / 4) * promise),
    )
    axes.legend(loc="lower center", bbox_to_anchor=(0.5, 0.0), frameon=True, framealpha=0.9)
