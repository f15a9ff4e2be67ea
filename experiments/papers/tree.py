"""CLNSS §1.3.3: TreeLog's path through the trie, where it may stop, and the slices, in one run with public sizes."""

import pathlib
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from dpjax import Points
from dpjax.domains import trie, wide
from dpjax.optimizers import interior_point
from dpjax.optimizers.interior_point import planning, walk
from dpjax.plotting import style
from experiments import captions, records
from experiments.records import Row, exact
from experiments.runner import Context
from experiments.settings import Settings


def measure(settings: Settings, context: Context) -> list[Row]:
    """Rows of the path's nodes, the law of stopping, the levels, and what the run chose."""
    bits, n = settings["bits"], settings["n"]
    key_data, key_run = jax.random.split(jax.random.fold_in(context.root, 2))
    plan = planning.calibrate(
        bits=bits,
        epsilon=settings["epsilon"],
        delta=settings["delta"],
        beta=settings["beta"],
        accountant="basic",
        depth=1,
    )
    solver = interior_point.tree_log_planned(bits=bits, plan=plan)
    x = off_a_path(key_data, n, bits)
    points = Points.create(wide.from_ints(sorted(x), bits), ordered=True)
    outcome = solver(key_run, points)
    tree = trie.from_points(points.x, points.n_valid, jnp.int32(bits))
    parameters = plan.parameters()
    walked = walk.walk(tree, jnp.int32(plan.m1), 32)
    log_p, _ = walk.log_stop(tree, walked, parameters)
    levels, deep = walk.remainder(walked, jnp.int32(plan.m2))
    deepest = np.asarray(walk.deep_slice(tree, walked, deep))
    path = jax.device_get(walked.path)
    level = level_of(sorted(x), sorted(x)[int(path.center)], bits)
    rest = np.arange(n) >= plan.m1
    left = np.asarray(levels.counts(bits + 1))
    rows = []
    for depth in range(bits + 1):
        inside = int(np.sum((level >= depth) & rest))
        rows += [
            exact("tree: path", "weight", depth, inside),
            exact("tree: path", "leaving", depth, int(np.sum((level == depth) & rest))),
            exact("tree: path", "right", depth, sorted(x)[int(path.center)] >> max(bits - depth, 0) & 1),
            exact("tree: levels", "in the deep slice", depth, int(np.sum((level == depth) & deepest))),
            exact("tree: levels", "left for the recursion", depth, int(left[depth])),
        ]
    for node, depth in enumerate(path.depth.tolist()):
        if depth < bits and path.leaving[node] > 0:
            rows.append(exact("tree: stop", "p", depth, float(np.exp(log_p[node]))))
    named = {
        "m1": plan.m1,
        "m2": plan.m2,
        "t1": plan.t1,
        "t2": plan.t2,
        "stopped": int(outcome.info["stopped"]),
        "level": int(outcome.info["level"]),
        "status": int(outcome.status),
        "answer": wide.to_ints(outcome.hypothesis)[0],
        "least": min(x),
        "greatest": max(x),
    }
    return rows + [exact("tree: chosen", name, 0, value) for name, value in named.items()]


def off_a_path(key: jax.Array, n: int, bits: int) -> list[int]:
    """n points that leave one path of the trie, each at a uniform depth: hard data, as no node has two heavy children."""
    key_leaf, key_depth, key_rest = jax.random.split(key, 3)
    leaf = int(jax.random.randint(key_leaf, (), 0, 2**bits))
    depths = np.asarray(jax.random.randint(key_depth, (n,), 0, bits + 1))
    rest = np.asarray(jax.random.randint(key_rest, (n,), 0, 2**bits))
    return [_leaving(leaf, int(depth), int(tail), bits) for depth, tail in zip(depths, rest, strict=True)]


def _leaving(leaf: int, depth: int, tail: int, bits: int) -> int:
    """The leaf with its bit at `depth` flipped and other bits behind it; at depth `bits`, the leaf itself.

    >>> _leaving(0b1011, 1, 0b0010, 4)
    14
    """
    if depth == bits:
        return leaf
    below = bits - depth - 1
    return (leaf ^ (1 << below)) >> below << below | tail % (1 << below)


def level_of(x: list[int], leaf: int, bits: int) -> np.ndarray:
    """The depth at which each point leaves the path to the leaf; `bits` for the leaf itself.

    >>> level_of([0b1011, 0b1110, 0b0000], 0b1011, 4).tolist()
    [4, 1, 0]
    """
    return np.array([bits - (each ^ leaf).bit_length() for each in x])


# --------------------------------------------------------------------------------------------------------- pictures


def draw(rows: list[Row], settings: Settings, path: pathlib.Path) -> None:
    """Draws the trie, the probabilities and the slices, with one line for each depth in all three."""
    chosen = {name: part[0].value for name, part in records.series(rows, "tree: chosen").items()}
    fig, (left, middle, right) = style.figure(1, 3, figsize=(10.5, 5.6), width_ratios=[2.0, 1.0, 1.4])
    style.title(
        fig,
        f"CLNSS §1.3.3: one run of TreeLog on {settings['n']} points of {settings['bits']} bits, {captions.privacy(settings)}",
        f"left slice {chosen['m1']:.0f} points, deep slice {chosen['m2']:.0f}; the walk may stop where the lighter child has "
        f"{chosen['t1']:.0f} points, and surely does from {chosen['t2']:.0f} on",
    )
    _draw_trie(left, records.series(rows, "tree: path"), settings["bits"])
    _draw_stops(middle, records.series(rows, "tree: stop")["p"])
    _draw_levels(right, records.series(rows, "tree: levels"), chosen)
    for axes in (left, middle, right):
        axes.set_ylim(settings["bits"] + 0.7, -0.7)
    style.save(fig, path)


def _draw_trie(axes: Any, path: dict[str, list[Row]], bits: int) -> None:
    """Draws the path of the heavier children from the root down, and the lighter child of each node."""
    weight, leaving, right = ([row.value for row in path[name]] for name in ("weight", "leaving", "right"))
    place = 0.0
    for depth in range(bits + 1):
        axes.plot(place, depth, "o", color=style.COLOURS[1], markersize=5)
        axes.annotate(
            f"{weight[depth]:.0f}", (place, depth), xytext=(0, 6), textcoords="offset points", ha="center", fontsize=7
        )
        if depth == bits:
            break
        step = 1.0 if right[depth + 1] else -1.0
        axes.plot([place, place + step], [depth, depth + 1], color=style.COLOURS[1], linewidth=2)
        if leaving[depth] > 0:
            lighter = place - step
            axes.plot([place, lighter], [depth, depth + 1], color="grey", linewidth=0.8)
            axes.plot(lighter, depth + 1, "o", color="grey", markersize=4)
            axes.annotate(
                f"{leaving[depth]:.0f}",
                (lighter, depth + 1),
                xytext=(6 if step < 0 else -6, -3),
                textcoords="offset points",
                ha="left" if step < 0 else "right",
                fontsize=7,
                color="grey",
            )
        place += step
    axes.plot([], [], "o-", color=style.COLOURS[1], label="heavier child: the path")
    axes.plot([], [], "o-", color="grey", label="lighter child")
    axes.set(
        title="The walk (numbers: points below a node)", ylabel="depth in the trie", xticks=[], yticks=range(bits + 1)
    )
    axes.margins(x=0.15)
    axes.grid(False)
    axes.legend(loc="lower center", bbox_to_anchor=(0.5, -0.19))


def _draw_stops(axes: Any, stops: list[Row]) -> None:
    axes.barh([row.x for row in stops], [row.value for row in stops], color=style.COLOURS[5])
    for row in stops:
        axes.text(row.value, row.x, f" {row.value:.2g}" if row.value >= 1e-6 else " 0", va="center", fontsize=7)
    most = max(row.value for row in stops)
    axes.set(
        title="Where it may stop", xlabel="exact probability of stopping", xlim=(0, 1.6 * max(most, 0.01)), yticks=[]
    )


def _draw_levels(axes: Any, levels: dict[str, list[Row]], chosen: dict[str, float]) -> None:
    so_far = np.zeros(len(levels["in the deep slice"]))
    for colour, (name, part) in zip((style.COLOURS[3], style.COLOURS[6]), levels.items(), strict=True):
        depth, count = (np.array(values) for values in records.curve(part))
        axes.barh(depth, count, left=so_far, color=colour, label=name)
        so_far = so_far + count
    if not chosen["stopped"]:
        axes.axhline(
            chosen["level"],
            color=style.COLOURS[2],
            linewidth=1.2,
            label=f"the level $\\ell^*$ = {chosen['level']:.0f} that the recursion answered",
        )
    axes.set(title=_ending(chosen), xlabel="points that leave the path at this depth", yticks=[])
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.09))


def _ending(chosen: dict[str, float]) -> str:
    """How the run ended."""
    if chosen["status"] != 0:
        return "The run released nothing (⊥)"
    how = "The walk stopped" if chosen["stopped"] else "The walk did not stop"
    return f"{how};\nthe answer is {chosen['answer']:.0f}, in [{chosen['least']:.0f}, {chosen['greatest']:.0f}]"
