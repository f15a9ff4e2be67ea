"""Measures the numbers of both pictures: every one is an exact failure probability of a dataset."""

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from dpjax.concepts import combs
from dpjax.data.sample import bucket
from dpjax.domains import wide
from dpjax.learners import points, thresholds
from dpjax.optimizers import interior_point
from dpjax.optimizers.interior_point import planning
from dpjax.relaxations import worst
from dpjax.verify.exact import histograms
from experiments.records import Row, exact
from experiments.runner import Context
from experiments.settings import Settings

EXPONENTIAL, REC_CONCAVE, TREE_LOG = "exponential mechanism", "RecConcave, N=2", "TreeLog, composition"
ALPHA = 0.9  # as in the experiment on interior points: any depth of 1 or more would do
MISTAKES = 0.15  # tolerated share of examples: one of seven, none of fewer

LISTED: dict[str, Any] = {
    "interior points: exponential mechanism": lambda e: interior_point.exponential(bits=3, epsilon=e),
    "interior points: TreeLog": lambda e: interior_point.tree_log_planned(
        bits=3, plan=planning.calibrate(bits=3, epsilon=5 * e, delta=0.1, beta=0.3, depth=1)
    ),
    "thresholds: exponential mechanism": lambda e: thresholds.exponential(bits=3, epsilon=e),
    "points: exponential mechanism": lambda e: points.exponential(bits=3, epsilon=e),
}


def solver(name: str, n: int, settings: Settings) -> Any:
    """The solver of that name; RecConcave is promised the depth n/2 that n points have."""
    bits, epsilon, delta = settings["bits"], settings["epsilon"], settings["delta"]
    if name == EXPONENTIAL:
        return interior_point.exponential(bits=bits, epsilon=epsilon)
    if name == REC_CONCAVE:
        return interior_point.rec_concave(bits=bits, epsilon=epsilon, delta=delta, promise=n / 2, alpha=ALPHA)
    return interior_point.tree_log(bits=bits, epsilon=epsilon, delta=delta, beta=settings["beta"])


def measure(settings: Settings, context: Context) -> list[Row]:
    """All rows: panels "combs", "rounded", "found" and "points" (one series for each solver, by n), and "listed" (found against worst)."""
    rows = []
    for name, sizes in settings["sizes"].items():
        for n in sizes:
            place = {"solver": name, "n": n}
            by_hand = context.store.get_or_compute(
                {"combs": place}, functools.partial(_on_combs, name, n, settings, context)
            )
            found = context.store.get_or_compute(
                {"found": place}, functools.partial(_searched, name, n, settings, context)
            )
            rows += [exact("combs", name, n, by_hand["failure"]), exact("found", name, n, found["failure"])]
            rows.append(exact("points", name, n, found["points"]))
            if "rounded" in found:
                rows.append(exact("rounded", name, n, found["rounded"]))
    for name, make in LISTED.items():
        for epsilon in settings["listed"]["epsilons"]:
            both = context.store.get_or_compute(
                {"listed": name, "epsilon": epsilon}, functools.partial(_listed, name, make, epsilon, settings, context)
            )
            rows.append(exact("listed", name, both["worst"], both["found"]))
    return rows


def _on_combs(name: str, n: int, settings: Settings, context: Context) -> dict[str, float]:
    """The largest failure on any draw of any kind of comb."""
    bits, rows = settings["bits"], bucket(n)
    keys = jax.random.split(jax.random.fold_in(context.root, 0), settings["draws"])
    with jax.enable_x64(True):
        found = _combs(solver(name, n, settings), keys, np.int32(n), np.int32(bits), rows, wide.limbs_for(bits))
        return {"failure": float(jnp.max(found))}


@jax.jit(static_argnums=(4, 5))
def _combs(solver: Any, keys: Any, n: Any, bits: Any, rows: int, limbs: int) -> Any:
    def failure(key: Any, family: Any) -> Any:
        k = combs.zeros(key, rows, n, bits, family)
        return solver.failure_probability(combs.points(k, n, bits, limbs))

    families = jnp.arange(len(combs.FAMILIES), dtype=jnp.int32)
    return lax.map(lambda key: lax.map(lambda family: failure(key, family), families), keys)


def _searched(name: str, n: int, settings: Settings, context: Context) -> dict[str, float]:
    """The failure found, on how many points, and, if there is an ascent, the failure at its rounded counts."""
    key = jax.random.fold_in(context.root, 1)
    given = {**settings["search"], "rounds": settings["rounds"][name]}
    found = worst.worst_data(solver(name, n, settings), n=n, key=key, **given)
    by_ascent = {"rounded": float(found.path[0])} if found.relaxed.size else {}
    return {"failure": found.failure, "points": len(found.counts), **by_ascent}


def _listed(name: str, make: Any, epsilon: float, settings: Settings, context: Context) -> dict[str, float]:
    """The worst failure of all datasets of n records of a small domain, and the worst failure found."""
    given = dict(settings["listed"])
    n, bits = given.pop("n"), given.pop("bits")
    del given["epsilons"]
    error = 0.0 if name.startswith("interior") else MISTAKES
    algorithm, listed = make(epsilon), list(range(1 << bits))
    found = worst.worst_data(
        algorithm, n=n, points=listed, error=error, key=jax.random.fold_in(context.root, 2), **given
    )
    kind = worst.labelling(algorithm)
    tags = np.arange(len(listed) + 1 if kind else 1, dtype=np.int32)
    counts = histograms(len(listed), [n])
    with jax.enable_x64(True):
        every = _all(
            algorithm,
            wide.from_ints(listed, bits),
            np.repeat(counts, len(tags), axis=0),
            np.tile(tags, len(counts))[:, None],
            error,
            kind,
            bucket(n),
        )
        return {"worst": float(jnp.max(every)), "found": found.failure}


@jax.jit(static_argnums=(4, 5, 6))
def _all(algorithm: Any, at: Any, counts: Any, tags: Any, error: float, kind: str, rows: int) -> Any:
    def failure(row: Any) -> Any:
        counts, tags = row
        return algorithm.failure_probability(worst.dataset(kind, at, counts, tags, rows), error=error)

    return lax.map(failure, (counts, tags), batch_size=64)
