"""Measures the numbers of the two pictures."""

import functools
import itertools
import math
from collections.abc import Callable, Mapping
from typing import Any

import jax
import numpy as np
from jax import lax

from dpjax.bounds import optimal
from dpjax.data.points import Points
from dpjax.data.sample import bucket
from dpjax.optimizers import interior_point, quasi_concave
from dpjax.optimizers.interior_point import depth
from dpjax.trials.progress import Progress
from experiments.records import Row, exact
from experiments.runner import Context
from experiments.settings import Settings

RELATIONS = ("REPLACE_ONE", "ADD_OR_REMOVE_ONE")
CHEAP = ("exponential mechanism", "RecConcave")
COSTLY = ("TreeLog", "quasi-concave optimiser")
CHUNK = 128  # datasets in one compiled call
SPLITS = 16  # equal steps in which the share of the first of two values grows


def measure(settings: Settings, context: Context) -> list[Row]:
    """All rows: panels "least n, RELATION", "failure, RELATION", "at least, RELATION" (`two_clusters` only), "settings"."""
    rows = [exact("settings", f"epsilon {relation}", 0, settings["epsilon"][relation]) for relation in RELATIONS]
    rows += [exact("settings", name, 0, settings[name]) for name in ("delta", "beta")]
    rows.append(exact("settings", "|X|", 0, 2 ** settings["failure"]["bits"]))
    for relation in RELATIONS:
        rows += _least_n(relation, settings, context)
        rows += _failure(relation, settings, context)
    return rows


# ------------------------------------------------------------------------------------------------------- algorithms


def shares(relation: str, settings: Settings) -> tuple[float, float]:
    """(epsilon, delta) to be kept under add/remove; a replacement is a group of two."""
    epsilon, delta = settings["epsilon"][relation], settings["delta"]
    return (epsilon, delta) if relation == "ADD_OR_REMOVE_ONE" else (epsilon / 2, delta / (1 + math.exp(epsilon / 2)))


def solver(name: str, bits: int, relation: str, settings: Settings) -> Any:
    """The algorithm of that name at the experiment's privacy."""
    epsilon, delta = shares(relation, settings)
    if name == "exponential mechanism":
        return interior_point.exponential(bits=bits, epsilon=epsilon)
    if name == "TreeLog":
        return interior_point.tree_log(bits=bits, epsilon=epsilon, delta=delta, beta=settings["beta"])
    # The depth has sensitivity 1 under replace-one too, so algorithms that need no more than this get the whole budget.
    epsilon, delta = settings["epsilon"][relation], settings["delta"]
    if name == "RecConcave":  # on so small a range this is one exponential mechanism, whatever the promise
        return interior_point.rec_concave(bits=bits, epsilon=epsilon, delta=delta, promise=1.0)
    return quasi_concave.amplified(bits=bits, epsilon=epsilon, delta=delta, beta=settings["beta"], relation=relation)


def failure(algorithm: Any, points: Points) -> jax.Array:
    """P[no interior point]. The quasi-concave optimiser is promised the median's depth n/2, and must reach a depth of 1/2."""
    if not isinstance(algorithm, quasi_concave.Amplified):
        return algorithm.failure_probability(points)
    pieces = depth.pieces(points.x, points.n_valid, algorithm.bits, algorithm.limbs)
    promise = points.n_valid.astype(float) / 2
    return algorithm.failure_probability(quasi_concave.problem(pieces, promise=promise, alpha=1 - 0.5 / promise))


@jax.jit
def _failures(algorithm: Any, x: jax.Array, n: jax.Array) -> jax.Array:
    """The failure on every row, in one compiled program for all n up to the rows' capacity, under both relations."""
    return lax.map(lambda row: failure(algorithm, Points(x=row, n_valid=n, ordered=True)), x, batch_size=64)


def two_clusters(domain: int, n: int) -> np.ndarray:
    """Datasets of at most two values, split at all multiples of 1/SPLITS; each row is in increasing order."""
    pairs = np.array(list(itertools.combinations(range(domain), 2)), np.int32)
    splits = np.arange(SPLITS + 1) * n // SPLITS
    rows = np.where(np.arange(n) < splits[:, None, None], pairs[:, :1], pairs[:, 1:])
    return np.unique(rows.reshape(-1, n), axis=0)


def worst(
    algorithm: Callable[[], Any], key: Mapping[str, Any], datasets: np.ndarray, capacity: int, context: Context
) -> float:
    """The worst failure on these datasets, through the store: exact, in float64."""

    def compute() -> float:
        count, n = datasets.shape
        x = np.zeros((-(-count // CHUNK) * CHUNK, capacity, 1), np.uint32)
        x[:count, :n, 0] = datasets
        x[count:] = x[:1]
        with jax.enable_x64(True):
            return max(
                float(_failures(algorithm(), x[i : i + CHUNK], np.int32(n)).max()) for i in range(0, len(x), CHUNK)
            )

    return context.store.get_or_compute({"worst": key}, compute)


# ---------------------------------------------------------------------------------------------------- (a) n* by |X|


def _least_n(relation: str, settings: Settings, context: Context) -> list[Row]:
    """Least n with worst failure <= beta."""
    rows, chosen = [], settings["least_n"]
    cells = [(0.0, d) for d in chosen["pure"]] + [(settings["delta"], d) for d in chosen["approximate"]]
    with Progress(len(cells) + len(chosen["exponential"]), f"least n, {relation}", unit="cells") as progress:
        for delta, domain in cells:
            key = {"least n": domain, "delta": delta, "relation": relation}
            n = context.store.get_or_compute(key, functools.partial(_optimal_n, domain, delta, relation, settings))
            rows.append(exact(f"least n, {relation}", f"optimum, δ = {delta:g}", domain, n))
            progress.done(1)
        for domain in chosen["exponential"]:
            rows.append(
                exact(f"least n, {relation}", CHEAP[0], domain, _exponential_n(domain, relation, settings, context))
            )
            progress.done(1)
    return rows


def _optimal_n(domain: int, delta: float, relation: str, settings: Settings) -> int:
    epsilon = settings["epsilon"][relation]
    n = optimal.least_n(domain, settings["beta"], epsilon=epsilon, delta=delta, relation=relation, limit=100)
    if n is None:
        raise ValueError(f"epsilon and beta must allow n <= 100, got {epsilon} and {settings['beta']}")
    return n


def _exponential_n(domain: int, relation: str, settings: Settings, context: Context) -> int:
    """The first n that suffices, by counting up, because the failure at n + 1 may be larger than at n."""
    bits = domain.bit_length() - 1

    def failed(n: int) -> float:
        key = {"name": CHEAP[0], "bits": bits, "n": n, "relation": relation}
        mechanism = functools.partial(solver, CHEAP[0], bits, relation, settings)
        return worst(mechanism, key, optimal.multisets(domain, n), bucket(31), context)

    return next(n for n in range(1, 32) if failed(n) <= settings["beta"])


# ------------------------------------------------------------------------------------------------- (b) failure by n


def _failure(relation: str, settings: Settings, context: Context) -> list[Row]:
    """Worst failure of the optimum and of every algorithm."""
    chosen, domain = settings["failure"], 2 ** settings["failure"]["bits"]
    names = [*CHEAP, *(COSTLY if domain > 2 else COSTLY[:1])]  # the last needs a range of three points or more
    sizes = {name: chosen["cheap" if name in CHEAP else "costly"] for name in names}
    optima = [(delta, n) for delta, several in chosen["optimum"] for n in several]
    rows, cells = [], len(optima) + sum(map(len, sizes.values()))
    with Progress(cells, f"failure, {relation}", unit="cells") as progress:
        for delta, n in optima:
            low, high = _optimum(domain, n, delta, relation, settings, context)
            rows.append(Row(f"failure, {relation}", f"optimum, δ = {delta:g}", n, high, low, high))
            progress.done(1)
        for name in names:
            algorithm = functools.cache(functools.partial(solver, name, chosen["bits"], relation, settings))
            for n in sizes[name]:
                everything = math.comb(n + domain - 1, n) <= chosen["all_up_to"]
                datasets = (optimal.multisets if everything else two_clusters)(domain, n)
                key = {"name": name, "bits": chosen["bits"], "n": n, "relation": relation, "all": everything}
                found = worst(algorithm, key, datasets, bucket(max(sizes[name])), context)
                rows.append(exact(f"{'failure' if everything else 'at least'}, {relation}", name, n, found))
                progress.done(1)
    return rows


def _optimum(
    domain: int, n: int, delta: float, relation: str, settings: Settings, context: Context
) -> tuple[float, float]:
    """The certified lower and upper bound on the optimum's failure."""

    def compute() -> list[float]:
        found = optimal.interior_point(domain, n, epsilon=settings["epsilon"][relation], delta=delta, relation=relation)
        return [found.lower_bound, found.failure]

    low, high = context.store.get_or_compute({"optimum": [domain, n, delta], "relation": relation}, compute)
    return low, high
