"""The budget of TreeLog with public slices: walk, select, count and base, and the sizes of the slices."""

import dataclasses
import math
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from dpjax.accounting import ADD_OR_REMOVE_ONE, Guarantee
from dpjax.mechanisms import partition_selection
from dpjax.optimizers.interior_point import planning
from dpjax.optimizers.interior_point.tree_log import TreeLog
from dpjax.relaxations import accountant
from dpjax.relaxations.budgets.base import Budgeted, logits, shares


def tree_log(solver: TreeLog) -> Budgeted:
    """Shares of walk, select, count and base, and the sizes of both slices; the walk's threshold t1 follows from its budget.

    When traced, integers are relaxed to reals and rounded at random; t1 is then the start's multiple of g - 1, where g is the count at
    which partition selection saturates. On the host t1 is the least one whose walk costs no more than its share, and m2 is never below K.
    """
    if solver.parameters.noisy or solver.accountant not in ("basic", "optimal"):
        raise ValueError(f"solver.accountant must be 'basic' or 'optimal' (public slices), got {solver.accountant!r}")
    optimal = solver.accountant == "optimal"
    held = planning.spent(solver.parameters)
    if held is None:
        raise ValueError("solver must keep a guarantee, got parameters outside of what is proved")
    parameters, depth = solver.parameters, solver.parameters.depth
    total = Guarantee(float(solver.epsilon), float(solver.delta), ADD_OR_REMOVE_ONE)
    times = (depth, depth, depth, 1)  # walk, select (one mechanism of twice its epsilon), count, base
    share = min(float(parameters.walk_delta) / held.walk_delta, 1.0)
    smooth = _saturation(held.walk_epsilon, float(parameters.walk_delta), np) - 1
    ratio = int(parameters.never_below) / float(smooth)
    moved = math.exp(held.select_epsilon) * held.select_delta
    each = np.array([held.walk_epsilon, 2 * held.select_epsilon, held.count_epsilon, held.base_epsilon])
    own = depth * np.array([held.walk_delta, moved])
    if optimal:
        own = np.append(own, max(total.delta - own.sum(), 1e-6 * total.delta))
    spare = int(parameters.deep) - planning.least_deep(int(parameters.never_below), int(parameters.at.saturation))
    start = {
        "epsilon": logits(each * np.array(times)),
        "delta": logits(own),
        "left": np.log(np.float64(parameters.left)),
        "deep": np.log(np.float64(max(spare, 0.5))),
    }

    def spend(point: Any) -> dict[str, Any]:
        deltas = shares(point["delta"], total.delta, (depth, depth) + ((1,) if optimal else ()))
        if optimal:
            ratios = shares(point["epsilon"], 1.0, times)
            paid = jnp.concatenate([deltas[:2], jnp.zeros((2,), deltas.dtype)])
            epsilons = accountant.calibrated(ratios, paid, total.epsilon, total.delta, times)
        else:
            epsilons = shares(point["epsilon"], total.epsilon, times)
        walk, select, count, base = epsilons[0], epsilons[1] / 2, epsilons[2], epsilons[3]
        selected = jnp.minimum(deltas[1] * jnp.exp(-select), 0.5)
        return {
            "walk_epsilon": walk,
            "walk_delta": deltas[0],
            "select_epsilon": select,
            "select_delta": selected,
            "count_epsilon": count,
            "base_epsilon": base,
        }

    def with_sizes(spent: dict[str, Any], stop_delta: Any, sizes: Sequence[Any]) -> TreeLog:
        left, deep, never_below = sizes
        numbers = {**spent, "walk_delta": stop_delta, "left": left, "deep": deep, "never_below": never_below}
        at = partition_selection.anchors(spent["walk_epsilon"], stop_delta)
        return dataclasses.replace(solver, parameters=dataclasses.replace(parameters, **numbers, at=at))

    def build(spent: dict[str, Any], point: Any) -> TreeLog:
        """On the host: the least threshold that the walk's share pays for, and slices large enough for it."""
        epsilon, delta = (float(spent[name]) for name in ("walk_epsilon", "walk_delta"))
        walked = planning.walk_of(epsilon, delta, share)
        least = 2 * walked.t2 - 2
        left = max(1, round(math.exp(point["left"])))
        deep = least + max(0, round(math.exp(point["deep"])))
        return with_sizes(spent, np.float64(walked.stop_delta), [np.int32(n) for n in (left, deep, walked.t1)])

    def relax(point: Any) -> tuple[Array, TreeLog]:
        spent = spend(point)
        stop_delta = share * spent["walk_delta"]
        g = _saturation(spent["walk_epsilon"], stop_delta, jnp)
        t1 = jnp.maximum(ratio * (g - 1), 1.0)
        deep = 2 * (t1 + g - 2) + jnp.exp(point["deep"])
        sizes = jnp.stack([jnp.maximum(jnp.exp(point["left"]), 1.0), deep, t1])
        below = jnp.floor(jax.lax.stop_gradient(sizes))
        above = sizes - below
        corners = np.stack(np.meshgrid(*[[0, 1]] * 3, indexing="ij"), axis=-1).reshape(-1, 3)
        weights = jnp.prod(jnp.where(corners == 1, above[None], 1 - above[None]), axis=1)
        whole = below.astype(jnp.int32)[None] + jnp.asarray(corners, jnp.int32)
        algorithms = jax.vmap(lambda row: with_sizes(spent, stop_delta, list(row)))(whole)
        return weights, algorithms

    return Budgeted(start, total, spend, build, relax)


def _saturation(epsilon: Any, delta: Any, xp: Any) -> Any:
    """Where partition selection saturates, as a smooth function of its budget: at most 2 below the integer g."""
    return 1 + 2 / epsilon * xp.log1p(xp.tanh(epsilon / 2) * (1 - delta) / delta)
