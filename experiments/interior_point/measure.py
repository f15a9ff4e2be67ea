"""Least n for an interior point with probability 1 - beta, on the worst of several kinds of combs, by exact laws or by trials."""

import functools
import math
from collections.abc import Callable
from typing import Any

import jax
import numpy as np
from jaxtyping import Array, Float

from dpjax.accounting import ADD_OR_REMOVE_ONE
from dpjax.bounds import pure_interior_point
from dpjax.concepts import combs
from dpjax.core.pytree import frozen, static
from dpjax.data.points import Points
from dpjax.data.sample import bucket
from dpjax.domains import wide
from dpjax.optimizers import interior_point, quasi_concave
from dpjax.optimizers.interior_point import depth, planning
from dpjax.optimizers.interior_point import walk as tree_log
from dpjax.trials import estimates, search
from experiments import least_n
from experiments.records import Row, exact
from experiments.runner import Context
from experiments.settings import Settings

MAXIMUM = 30_000  # points; a cell that needs more is left out
ALPHA = 0.9  # RecConcave searches for depth >= (1 - alpha) n/2; any depth >= 1 would do

EXPONENTIAL = "exponential mechanism"
TREE = "tree score"
SUPPORTED = "supported tree"
REC_CONCAVE = "RecConcave, N=2"
AMPLIFIED = "2^log* optimiser"
COMPOSITION = "TreeLog, composition"
SLICING = "TreeLog, slicing"
PRINTED = "TreeLog, slicing as printed"
BY_THEOREM = (EXPONENTIAL, TREE, SUPPORTED)  # solvers that are proved to need so many points, whatever these are
NEEDED = "needed by any pure solver"
WIDEST = 4096  # bits of a point that is written down
LONGEST = 2**20  # bits of a point that is not
ACCOUNTANT = {COMPOSITION: "optimal", SLICING: "slicing", PRINTED: "slicing_printed"}


@frozen
class Cell:
    """One solver on one kind of comb. `solver` is a `tree_log.Parameters` where points are never written down."""

    solver: Any
    bits: Any
    n: Any
    family: Any
    rows: int = static()
    limbs: int = static()


def solver(name: str, bits: int, n: int, settings: Settings) -> Any:
    """The solver of that name at the experiment's privacy; RecConcave is promised the depth n/2 that n points have."""
    epsilon, delta = settings["epsilon"], settings["delta"]
    if name == EXPONENTIAL:
        return interior_point.exponential(bits=bits, epsilon=epsilon)
    if name == TREE:
        return interior_point.tree_score(bits=bits, epsilon=epsilon)
    if name == SUPPORTED:
        return interior_point.supported_tree(bits=bits, epsilon=epsilon, delta=delta)
    if name == REC_CONCAVE:
        return interior_point.rec_concave(bits=bits, epsilon=epsilon, delta=delta, promise=n / 2, alpha=ALPHA)
    if name == AMPLIFIED:
        return quasi_concave.amplified(
            bits=bits, epsilon=epsilon, delta=delta, beta=settings["beta"], relation="ADD_OR_REMOVE_ONE"
        )
    return interior_point.tree_log_planned(bits=bits, plan=plan(name, bits, settings))


def plan(name: str, bits: int, settings: Settings) -> planning.Plan:
    """TreeLog's parameters."""
    given = {key: settings[key] for key in ("epsilon", "delta", "beta")}
    return planning.calibrate(bits=bits, accountant=ACCOUNTANT[name], **given)


def failure(key: Array, cell: Cell) -> Float[Array, ""]:
    """P[no interior point] on one random comb: exact, or with noisy slices an unbiased estimate of it."""
    key_comb, key_sizes = jax.random.split(key)
    k = combs.zeros(key_comb, cell.rows, cell.n, cell.bits, cell.family)
    points = combs.points(k, cell.n, cell.bits, cell.limbs)
    if isinstance(cell.solver, quasi_concave.Amplified):
        return _by_depth(cell, points)
    if isinstance(cell.solver, interior_point.TreeLog) and cell.solver.parameters.noisy:
        return cell.solver.estimate_success(key_sizes, points, draws=1)[0, 1]
    return cell.solver.failure_probability(points)


def _by_depth(cell: Cell, points: Points) -> Float[Array, ""]:
    """The quasi-concave optimiser on the depth, promised the median's depth n/2; an interior point has a depth of 1 or more."""
    quality = depth.pieces(points.x, points.n_valid, cell.bits, cell.solver.limbs)
    promise = points.n_valid.astype(float) / 2
    problem = quasi_concave.problem(quality, promise=promise, alpha=1 - 0.5 / promise)
    return cell.solver.failure_probability(problem)


def trial(key: Array, cell: Cell) -> dict[str, Array]:
    """One run of TreeLog on a comb whose points are never written down."""
    key_comb, key_coins = jax.random.split(key)
    k = combs.zeros(key_comb, cell.rows, cell.n, cell.bits, cell.family)
    run = tree_log.sample(key_coins, combs.Comb(k=k, n_valid=cell.n, bits=cell.bits), cell.solver, LONGEST)
    return {"failed": ~(run.found & combs.is_interior(k, cell.n, cell.bits, *run.answer))}


def measure(settings: Settings, context: Context) -> list[Row]:
    """All rows: panels "least n", "planned", "failure"."""
    return [*_least_n(settings, context), *_planned(settings), *_by_family(settings, context)]


# ------------------------------------------------------------------------------------------------------ (a) n* by d


def _least_n(settings: Settings, context: Context) -> list[Row]:
    """The measured curves: the least n at which the failure probability on the worst kind of comb is <= beta."""
    return least_n.curves(
        settings["bits"], lambda name, bits, number, _: _search(name, bits, 16 * number, settings, context)
    )


def _search(name: str, bits: int, cell: int, settings: Settings, context: Context) -> search.LeastN:
    start = _first_guess(name, bits, settings)
    base = bucket(
        math.ceil(1.2 * start)
    )  # one capacity, hence one compiled program, for all n the search is likely to visit

    def worst(n: int) -> estimates.Estimate:
        rows = max(bucket(n), base)
        each = [_failure(name, bits, n, family, cell, rows, settings, context) for family in range(len(combs.FAMILIES))]
        return estimates.largest(each, level=settings["level"])

    return search.least_n(
        worst, beta=settings["beta"], start=start, maximum=MAXIMUM, minimum=2, rtol=settings["rtol"], reach=1.2
    )


def _first_guess(name: str, bits: int, settings: Settings) -> int:
    """Where the search begins."""
    if name in BY_THEOREM:
        return solver(name, bits, 0, settings).sample_size(beta=settings["beta"])
    if name == AMPLIFIED:
        return round(1.6 * solver(name, bits, 0, settings).error(settings["beta"]))
    return 300 + 20 * bits.bit_length() if name == REC_CONCAVE else plan(name, bits, settings).sample_size


def _failure(
    name: str, bits: int, n: int, family: int, cell: int, rows: int, settings: Settings, context: Context
) -> Callable[..., estimates.Estimate]:
    """Mean failure on one kind of comb, given its interval's level: by exact laws, or by trials where points are never written down."""
    place: dict[str, Any] = {
        "bits": np.int32(bits),
        "n": np.int32(n),
        "family": np.int32(family),
        "rows": rows,
        "limbs": wide.limbs_for(min(bits, WIDEST)),
    }
    key = {"panel": "failure", "solver": name, "bits": bits, "n": n, "family": combs.FAMILIES[family]}
    run: dict[str, Any] = {"key": key, "cell": cell + family, "chunk": 1024}
    if bits > WIDEST:
        at = Cell(solver=plan(name, bits, settings).parameters(), **place)
        trials = settings["trials"]
        failed = context.count(trial, at, trials=trials, **run)["failed"]
        return functools.partial(estimates.clopper_pearson, failed, trials)
    at = Cell(solver=solver(name, bits, n, settings), **place)
    return functools.partial(estimates.mean, context.evaluate(failure, at, draws=settings["draws"], **run))


def _planned(settings: Settings) -> list[Row]:
    """The numbers of points proved to suffice for every dataset, and proved to be needed."""
    rows = []
    for bits in settings["planned"]:
        if bits <= WIDEST:
            for name in BY_THEOREM:
                size = solver(name, bits, 0, settings).sample_size(beta=settings["beta"])
                rows.append(exact("planned", name, bits, size))
            needed = pure_interior_point(2**bits, settings["beta"], settings["epsilon"], ADD_OR_REMOVE_ONE)
            rows.append(exact("planned", NEEDED, bits, needed))
        for name in ACCOUNTANT:
            rows.append(exact("planned", name, bits, plan(name, bits, settings).sample_size))
    return rows


# ------------------------------------------------------------------------------------------- (b) failure by family


def _by_family(settings: Settings, context: Context) -> list[Row]:
    """Failure against n at one d for each kind of comb: which data are hard for which solver."""
    rows = []
    bits = settings["by family"]["bits"]
    for number, (name, sizes) in enumerate(settings["by family"]["sizes"].items()):
        for n in sizes:
            for family, kind in enumerate(combs.FAMILIES):
                cell = 100_000 + 16 * number
                found = _failure(name, bits, n, family, cell, bucket(max(sizes)), settings, context)(
                    level=settings["level"]
                )
                rows.append(Row(f"failure: {name}", kind, n, found.value, max(found.low, 0.0), min(found.high, 1.0)))
    return rows
