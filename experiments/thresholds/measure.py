"""Measures the numbers of the three pictures."""

import functools
from typing import Any

import jax
import numpy as np

from dpjax import bounds
from dpjax.concepts import thresholds as concept
from dpjax.data.sample import bucket
from dpjax.domains import wide
from dpjax.learners import pac, thresholds
from dpjax.trials import estimates
from dpjax.trials.progress import Progress
from experiments import least_n
from experiments.anatomy import dissect
from experiments.curves import signed_log2
from experiments.records import Row, estimated, exact
from experiments.runner import Context
from experiments.settings import Settings


def learner(name: str, bits: int, settings: Settings) -> Any:
    """The learner of that name at the experiment's privacy. LearnThresholds gets twice alpha, so its RecConcave runs at alpha."""
    epsilon, delta = settings["epsilon"], settings["delta"]
    if name == "ERM":
        return thresholds.erm(bits=bits)
    if name == "exponential mechanism":
        return thresholds.exponential(bits=bits, epsilon=epsilon)
    if name == "binary search":
        return thresholds.binary_search(bits=bits, epsilon=epsilon, delta=delta)
    depth = int(name.rpartition("=")[2])
    return thresholds.rec_concave(
        bits=bits,
        epsilon=epsilon,
        delta=delta,
        alpha=2 * settings["alpha"],
        depth=depth,
        calibration=settings["calibration"],
    )


LEARNERS = ("ERM", "exponential mechanism", "binary search", "RecConcave, N=2")
FIRST_GUESS = {"ERM": 20, "exponential mechanism": 40, "binary search": 800, "RecConcave, N=2": 1200}


def measure(settings: Settings, context: Context) -> list[Row]:
    """All rows: panels "least n", "theorem", "success by law", "success by trials", "settings", "anatomy: ..."."""
    return [
        *_least_n(settings, context),
        *_bounds(settings),
        *_success(settings, context),
        *_anatomy(settings, context),
    ]


# ------------------------------------------------------------------------------------------------------ (a) n* by d


def _least_n(settings: Settings, context: Context) -> list[Row]:
    make = functools.partial(_experiment, settings=settings)
    series = {name: settings["bits"] for name in LEARNERS}
    return least_n.of_learners(series, make, guesses=FIRST_GUESS, settings=settings, context=context)


def _experiment(name: str, bits: int, n: int, capacity: int, settings: Settings) -> pac.Experiment:
    return pac.Experiment(
        learner=learner(name, bits, settings),
        distribution=concept.log_uniform(bits=bits),
        n=n,
        alpha=settings["alpha"],
        capacity=capacity,
    )


def _bounds(settings: Settings) -> list[Row]:
    """The numbers of examples that the theorems require for population error alpha with probability 1 - beta."""
    rows = []
    for bits in settings["bits"]:
        for name in LEARNERS:
            if name.startswith("RecConcave") and int(name.rpartition("=")[2]) > bounds.log_star(2**bits):
                continue  # Theorem 3.18 is stated for N <= log*(2^d) only
            rows.append(exact("theorem", name, bits, theorem(name, bits, settings)))
    return rows


def theorem(name: str, bits: int, settings: Settings) -> float:
    """A theorem's number of examples, not rounded."""
    alpha, beta, epsilon, delta = (settings[key] for key in ("alpha", "beta", "epsilon", "delta"))
    if name == "ERM":
        return bounds.realizable(1, alpha, beta)
    if name == "exponential mechanism":
        return bounds.exponential_thresholds(bits, alpha, beta, epsilon)
    if name == "binary search":
        comparison = learner(name, bits, settings).comparison_epsilon()
        return bounds.binary_search_thresholds(bits, alpha, beta, float(comparison))
    depth = int(name.rpartition("=")[2])
    return bounds.learn_thresholds(bits, depth, alpha, beta, epsilon, delta, calibration="printed")


# ------------------------------------------------------------------------------------------------- (b) success by n


def _success(settings: Settings, context: Context) -> list[Row]:
    """Success probability by exact laws and by plain trials; the two use different data."""
    rows = [exact("settings", "success bits", 0, settings["success"]["bits"])]
    sizes = settings["success"]["sizes"]
    cells = [(name, n) for name, several in sizes.items() for n in several]
    total = len(cells) * settings["trials"]
    with Progress(total, "success", unit="trials") as progress:
        for number, (name, n) in enumerate(cells):
            experiment = _experiment(name, settings["success"]["bits"], n, bucket(max(sizes[name])), settings)
            key = {"panel": "success", "learner": name, "n": n}
            draws = least_n.draws_of(name, settings)
            law = _mean_success(experiment, {**key, "by": "law"}, 1000 + 2 * number, draws, settings["level"], context)
            rows.append(Row("success by law", name, n, *law))
            counted = context.count(
                pac.trial,
                experiment,
                key={**key, "by": "trials"},
                cell=1001 + 2 * number,
                trials=settings["trials"],
                chunk=1000,
                progress=progress,
            )
            rate = estimates.clopper_pearson(
                settings["trials"] - counted["failed"], settings["trials"], level=settings["level"]
            )
            rows.append(estimated("success by trials", name, n, rate))
    return rows


def _mean_success(
    experiment: pac.Experiment, key: dict[str, Any], cell: int, draws: int, level: float, context: Context
) -> tuple[float, float, float]:
    """(value, low, high) of 1 - mean failure, clipped to [0, 1]."""
    laws = context.evaluate(pac.failure, experiment, key=key, cell=cell, draws=draws, chunk=1024)
    failure = estimates.mean(laws, level=level)
    return tuple(min(max(1 - p, 0.0), 1.0) for p in (failure.value, failure.high, failure.low))  # type: ignore[return-value]


# --------------------------------------------------------------------------------------------------- (c) one run


def _anatomy(settings: Settings, context: Context) -> list[Row]:
    """Rows of Q, L, q, the blocks near the target and what was chosen: the data of the paper's Figures 5 to 7 in one run."""
    bits, n = settings["anatomy"]["bits"], settings["anatomy"]["n"]
    experiment = _experiment("RecConcave, N=2", bits, n, bucket(n), settings)
    seen = jax.device_get(dissect(jax.random.fold_in(context.root, 2**31), experiment))
    target = 1 << (bits - 1)
    rows = _anatomy_quality(seen["pieces"], target)
    for j in range(bits + 1):
        rows.append(exact("anatomy: L", "L(j)", j, float(seen["windows"][j])))
        rows.append(exact("anatomy: L", "q(j)", j, float(seen["quality"][j])))
    run = seen["run"]
    rows += [
        exact("anatomy: chosen", "k", 0, int(run.k)),
        exact("anatomy: chosen", "released", 0, int(run.ok)),
        exact("anatomy: chosen", "threshold", 0, signed_log2(wide.to_ints(run.point.position)[0] - target)),
        exact("anatomy: chosen", "promise", 0, n),
        exact("anatomy: chosen", "alpha", 0, settings["alpha"]),
    ]
    for name, block, kept, shift in (("A", run.block_a, run.kept_a, 0), ("B", run.block_b, run.kept_b, 1)):
        rows += _anatomy_blocks(name, block, bool(kept), int(run.k), shift, bits)
    return rows


def _anatomy_quality(pieces: Any, target: int) -> list[Row]:
    """Q at both ends of every non-empty piece, against the signed logarithm of the distance from the target."""
    starts = wide.to_ints(np.asarray(pieces.starts))
    ends = [*starts[1:], wide.to_ints(np.asarray(pieces.end))[0]]
    rows = []
    for start, end, value in zip(starts, ends, np.asarray(pieces.values), strict=True):
        for point in sorted({start, end - 1}) if start < end else ():
            rows.append(exact("anatomy: Q", "Q(j)", signed_log2(point - target), float(value)))
    return rows


def _anatomy_blocks(name: str, block: Any, kept: bool, k: int, shift: int, bits: int) -> list[Row]:
    """The winning block and its two neighbours; low and high are its ends as signed logs, value is 1 for the winner, 2 if released."""
    low, high = (wide.to_ints(np.asarray(end))[0] for end in (block.interval.low, block.interval.high))
    target, size, begin = 1 << (bits - 1), 8 << k, shift * (4 << k)
    rows = []
    for offset in (-1, 0, 1):
        first, last = max(low + offset * size, begin), min(high + offset * size, (1 << bits) + 1) - 1
        if first <= last:
            state = (2.0 if kept else 1.0) if offset == 0 else 0.0
            ends = signed_log2(first - target), signed_log2(last - target)
            rows.append(Row("anatomy: blocks", name, offset, state, *ends))
    rows.append(exact("anatomy: chosen", f"gap {name}", 0, float(block.gap)))
    return rows
