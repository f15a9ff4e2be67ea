"""CLNSS Example 1.4: D = {1, ..., n} and D' = {2, ..., n}, cut into slices one after the other, without and with noise in the sizes.

Without noise every slice of D' is that of D moved by one. With noise the runs can fall into step: a run on D whose first noise above 0 is
in round i is matched with the run on D' whose noise there is one less. Rounds up to i differ, the rest are the same, and the probabilities
of the two runs differ by a factor of exp(epsilon) only. So more than w slices differ with probability (1 - e^-epsilon)^w. This shows the
effect but proves no privacy, since several runs on D are matched with one on D'; the proof is executed in `dpjax.verify.slicing_proof`.
"""

import pathlib
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int

from dpjax.core.pytree import frozen, static
from dpjax.optimizers import slicing
from dpjax.plotting import style
from dpjax.trials import estimates
from experiments import captions, records
from experiments.records import Row, estimated, exact
from experiments.runner import Context
from experiments.settings import Settings


@frozen
class Dominoes:
    """The example.

    Attributes:
      epsilon: the privacy parameter of the noise in the sizes.
      size: m, the least size of a slice.
      n: the number of points of D.
      slices: the number of slices, one for each round.
    """

    epsilon: Any
    size: Int[Any, ""]
    n: int = static()
    slices: int = static()


def ends(noise: Int[Array, "slices"], example: Dominoes, *, first: int) -> Int[Array, "slices"]:
    """The last point of each slice of {first, ..., n}."""
    records_left = jnp.int32(example.n + 1 - first)
    return slicing.consecutive(jnp.asarray(example.size, jnp.int32) + noise, records_left) + (first - 1)


def in_step(noise: Int[Array, "slices"]) -> Int[Array, "slices"]:
    """The noise on D' that is matched with a noise on D: one less in the first round with noise, or the same if no round has any."""
    some = noise > 0
    return noise - (some & (jnp.cumsum(some, dtype=jnp.int32) == 1)).astype(jnp.int32)


def trial(key: Array, example: Dominoes) -> dict[str, Bool[Array, "slices"]]:
    """Whether more than w slices differ, w = 0, ..., slices - 1."""
    noise = slicing.noise(key, example.epsilon, most=example.n, shape=(example.slices,))
    one, other = ends(noise, example, first=1), ends(in_step(noise), example, first=2)
    starts = jnp.concatenate([jnp.ones(1, jnp.int32), one[:-1] + 1])
    others = jnp.concatenate([jnp.full(1, 2, jnp.int32), other[:-1] + 1])
    differ = jnp.sum((one != other) | (starts != others), dtype=jnp.int32)
    return {f"{w}": differ > w for w in range(example.slices)}


def measure(settings: Settings, context: Context) -> list[Row]:
    """The slices of one run of each kind, and how many differ."""
    rounds, epsilon = settings["slices"], settings["epsilon"]
    example = Dominoes(epsilon=np.float64(epsilon), size=np.int32(settings["size"]), n=settings["n"], slices=rounds)
    noise = shown_noise(jax.random.fold_in(context.root, 3), example)
    none = jnp.zeros_like(noise)
    rows = []
    for name, first, of_run in (
        ("without noise, D", 1, none),
        ("without noise, D'", 2, none),
        ("with noise, D", 1, noise),
        ("with noise, D'", 2, in_step(noise)),
    ):
        begin = first
        for number, end in enumerate(ends(of_run, example, first=first).tolist()):
            rows.append(Row("domino: slices", name, number, end - begin + 1, begin, end))
            begin = end + 1
    long = Dominoes(epsilon=np.float64(epsilon), size=np.int32(1), n=100 * rounds, slices=rounds)
    counted = context.count(trial, long, key={"panel": "domino"}, cell=0, trials=settings["runs"], chunk=10_000)
    for w in range(rounds):
        rate = estimates.clopper_pearson(counted[f"{w}"], settings["runs"], level=settings["level"])
        rows += [
            exact("domino: differing", "without noise", w, 1.0),
            exact("domino: differing", "with noise, exact", w, (-np.expm1(-epsilon)) ** w),
            estimated("domino: differing", "with noise, drawn", w, rate),
        ]
    return rows


def shown_noise(key: Array, example: Dominoes) -> Int[Array, "slices"]:
    """The first of a hundred runs that shows the effect: no noise in the first round, some in the second, at most 5 in all."""
    runs = slicing.noise(key, example.epsilon, most=example.n, shape=(100, example.slices))
    good = (runs[:, 0] == 0) & (runs[:, 1] > 0) & (jnp.sum(runs, axis=1) <= 5)
    return runs[jnp.argmax(good)]


# --------------------------------------------------------------------------------------------------------- pictures


def draw(rows: list[Row], settings: Settings, path: pathlib.Path) -> None:
    """Draws strips of points coloured by their slice and, below them, how many slices differ."""
    fig, (top, bottom) = style.figure(2, 1, figsize=(8.6, 5.4), height_ratios=[1.25, 1.0])
    style.title(
        fig,
        f"CLNSS Example 1.4: D = {{1, ..., {settings['n']}}} and D' = D \\ {{1}}, "
        f"slices of {settings['size']} points, without and with noise",
    )
    _draw_strips(top, records.series(rows, "domino: slices"), settings["n"])
    _draw_counts(bottom, records.series(rows, "domino: differing"), settings)
    style.save(fig, path)


def _draw_strips(axes: Any, strips: dict[str, list[Row]], n: int) -> None:
    """Draws a slice that D and D' share filled, and one that differs hatched."""
    shared = {
        kind: {(r.low, r.high) for r in strips[f"{kind}, D"]} & {(r.low, r.high) for r in strips[f"{kind}, D'"]}
        for kind in ("without noise", "with noise")
    }
    places = {"without noise, D": 4.2, "without noise, D'": 3.2, "with noise, D": 1.4, "with noise, D'": 0.4}
    box = {"facecolor": "white", "edgecolor": "none", "pad": 1.0}
    middle: Any = {"ha": "center", "va": "center", "fontsize": 8, "bbox": box}
    for name, place in places.items():
        for row in strips[name]:
            same = (row.low, row.high) in shared[name.rpartition(",")[0]]
            axes.barh(
                place,
                row.high - row.low + 0.8,
                left=row.low - 0.4,
                height=0.7,
                facecolor=style.COLOURS[3] if same else "white",
                edgecolor=style.COLOURS[3] if same else style.COLOURS[2],
                hatch=None if same else "////",
            )
            axes.text((row.low + row.high) / 2, place, f"{row.value:.0f}", **middle)
    axes.barh(0, 0, color=style.COLOURS[3], label="the same slice on D and D'")
    axes.barh(0, 0, facecolor="white", edgecolor=style.COLOURS[2], hatch="////", label="a slice that differs")
    axes.set_yticks(list(places.values()), list(places))
    axes.set(xlabel="points (in each slice: how many it has)", xlim=(0, n + 1))
    axes.grid(False)
    axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2)


def _draw_counts(axes: Any, lines: dict[str, list[Row]], settings: Settings) -> None:
    axes.plot(*records.curve(lines["without noise"]), "s-", color=style.COLOURS[2], label="without noise")
    axes.plot(*records.curve(lines["with noise, exact"]), color=style.COLOURS[3], label="with noise: $(1 - e^{-ε})^w$")
    drawn = [row for row in lines["with noise, drawn"] if row.value > 0]
    label = f"with noise: {settings['runs']:,} runs,\n{captions.percent(settings['level'])} intervals"
    style.points(axes, *records.columns(drawn), color="black", label=label)
    axes.set(
        yscale="log",
        xlabel=f"w (of {settings['slices']} slices; noise at ε = {settings['epsilon']:g})",
        ylabel="P[more than w slices differ]",
    )
    style.legend_beside(axes)
