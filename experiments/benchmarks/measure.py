"""Timings. Everything of one cell is measured in turns, several times over, and the median is kept: machines drift."""

import dataclasses
import functools
import statistics
import time
from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from dpjax.concepts import thresholds as concept
from dpjax.core.points import Points
from dpjax.core.pytree import frozen, static
from dpjax.core.sample import bucket
from dpjax.core.status import Status
from dpjax.domains import wide
from dpjax.learners import pac, thresholds
from dpjax.optimizers import interior_point
from dpjax.trials import engine, estimates, search
from experiments.benchmarks import many, numpy_general, numpy_multi, numpy_trials, peers
from experiments.records import Row, exact
from experiments.runner import Context

Settings = Mapping[str, Any]
EPSILON, DELTA, ALPHA = numpy_trials.EPSILON, numpy_trials.DELTA, numpy_trials.ALPHA
LEARNERS = ("erm", "exponential", "binary_search", "rec_concave")


def learner(name: str, bits: int) -> Any:
    """The learner that `numpy_trials` imitates."""
    if name == "erm":
        return thresholds.erm(bits=bits)
    if name == "rec_concave":
        return thresholds.rec_concave(
            bits=bits, epsilon=EPSILON, delta=DELTA, alpha=2 * ALPHA, depth=2, calibration="printed"
        )
    return getattr(thresholds, name)(bits=bits, epsilon=EPSILON)


def experiment(name: str, bits: int, n: int, capacity: int | None = None) -> pac.Experiment:
    """The trial."""
    return pac.Experiment(
        learner=learner(name, bits),
        distribution=concept.log_uniform(bits=bits),
        n=n,
        alpha=ALPHA,
        capacity=capacity or bucket(n),
    )


@frozen
class Floor:
    """Parameters of `floor_trial`."""

    n: int = static()
    limbs: int = static()


def floor_trial(key: jax.Array, floor: Floor) -> jax.Array:
    """What no trial that draws n words and sorts n keys of that width can beat: just that."""
    words = jax.random.bits(key, (floor.n,), jnp.uint32)
    columns = [words ^ np.uint32(0x9E3779B9 * limb & 0xFFFFFFFF) for limb in range(floor.limbs)]
    ordered = lax.sort(tuple(columns), num_keys=floor.limbs)
    return (functools.reduce(jnp.add, [column[floor.n // 2] for column in ordered]) & np.uint32(1)).astype(jnp.int32)


def interior_trial(key: jax.Array, cell: pac.Experiment) -> jax.Array:
    """One run of an interior point solver on the points of such a sample: whether there is an answer."""
    key_points, key_coins = jax.random.split(key)
    sample = cell.distribution.sample(key_points, cell.capacity, cell.n)
    points = Points(x=wide.resize(sample.x, cell.learner.limbs), n_valid=sample.n_valid, ordered=True)
    return (cell.learner(key_coins, points).status == Status.OK).astype(jnp.int32)


def measure(settings: Settings, context: Context) -> list[Row]:
    """All rows; timings are records, so a resumed run keeps what it has measured."""
    rows = []
    specialised = numpy_trials.PooledTrials(processes=2)
    general = numpy_trials.PooledTrials(2, numpy_general.success_counts, tuple(numpy_general.LEARNERS))
    concepts = numpy_trials.PooledTrials(2, numpy_multi.success_counts, ())
    with specialised, general, concepts:
        rows += _many_concepts(concepts, settings, context)
        for bits, n in settings["cells"]:
            rows += _throughput(bits, n, specialised, general, settings, context)
        for beta in settings["betas"]:
            rows += _time_to_answer(beta, general, settings, context)
    return rows


# ------------------------------------------------------------------------------------------------ trials per second


def _throughput(bits: int, n: int, specialised: Any, general: Any, settings: Settings, context: Context) -> list[Row]:
    """Trials per second of everything that can run this cell."""
    runners: dict[str, Callable[[int], Any]] = {
        "floor": _counted(floor_trial, Floor(n=n, limbs=wide.limbs_for(bits)), context)
    }
    tree_log = interior_point.tree_log(bits=bits, epsilon=EPSILON, delta=DELTA)
    cell = dataclasses.replace(experiment("erm", bits, n), learner=tree_log)
    runners["dpjax tree_log"] = _counted(interior_trial, cell, context)
    for name in LEARNERS:
        runners[f"dpjax {name}"] = _counted(pac.trial, experiment(name, bits, n), context)
        runners[f"specialised NumPy {name}"] = functools.partial(_numpy, specialised, name, bits, n)
        if bits <= 64 and name in numpy_general.LEARNERS:
            runners[f"NumPy {name}"] = functools.partial(_numpy, general, name, bits, n)
    for name, median in peers.medians(bits, n).items():
        runners[f"{name} median"] = median
    record = context.store.get_or_compute(
        {"throughput": [bits, n]}, lambda: _rates(runners, settings["seconds"], settings["repeats"])
    )
    panel = f"trials per second, d={bits}, n={n}"
    return [Row(panel, name, 0, middle, low, high) for name, (middle, low, high) in record.items()]


def _many_concepts(pool: Any, settings: Settings, context: Context) -> list[Row]:
    """Runs per second of elimination, tracing and an attack."""
    rows = []
    counted = functools.partial(_counted, context=context)
    for panel, runners in many.runners(settings["many"], counted, pool).items():
        rates = functools.partial(_rates, runners, settings["seconds"], settings["repeats"])
        record = context.store.get_or_compute({"many": panel}, rates)
        rows += [Row(f"runs per second, {panel}", name, 0, *values) for name, values in record.items()]
    return rows


def _counted(run: Any, params: Any, context: Context) -> Callable[[int], Any]:
    return lambda trials: engine.count(run, params, root=context.root, cell=0, trials=trials)


def _numpy(pool: Any, name: str, bits: int, n: int, trials: int) -> Any:
    return pool.success_count(name, bits, n, trials, 0)


def _rates(runners: dict[str, Callable[[int], Any]], seconds: float, repeats: int) -> dict[str, list[float]]:
    """Median, least and largest rate of each runner, measured in turns."""
    trials = {name: _enough(run, seconds) for name, run in runners.items()}
    rates: dict[str, list[float]] = {name: [] for name in runners}
    for _ in range(repeats):
        for name, run in runners.items():
            rates[name].append(trials[name] / _seconds(run, trials[name]))
    return {name: [statistics.median(r), min(r), max(r)] for name, r in rates.items()}


def _enough(run: Callable[[int], Any], seconds: float) -> int:
    """Trials that take about `seconds`; the first call compiles."""
    trials = 16
    run(trials)
    while (spent := _seconds(run, trials)) < seconds / 4:
        trials = int(trials * min(16.0, max(2.0, seconds / max(spent, 1e-6))))
    return max(1, int(trials * seconds / spent))


def _seconds(run: Callable[[int], Any], trials: int) -> float:
    began = time.perf_counter()
    run(trials)
    return time.perf_counter() - began


# -------------------------------------------------------------------------------------------------- time to answer


def _time_to_answer(beta: float, pool: Any, settings: Settings, context: Context) -> list[Row]:
    """Seconds from nothing to n* of RecConcave at d = 64 within 5 %, by each way that gets there; compilation included."""
    ways = {"law": functools.partial(_by_law, settings, context)}
    # With rate beta, 10 expected failures need 10 / beta trials: plain trials resolve beta = 0.1, not 1e-6.
    if settings["trials"] * beta >= 10:
        ways["dpjax trials"] = functools.partial(_by_trials, settings, context)
        ways["NumPy trials"] = functools.partial(_by_numpy, settings, pool)
    rows = []
    for way, failure in ways.items():
        record = context.store.get_or_compute({"answer": way, "beta": beta}, functools.partial(_answer, failure, beta))
        rows.append(exact(f"seconds to answer, beta={beta:g}", way, record["n"], record["seconds"]))
        rows.append(exact(f"evaluations to answer, beta={beta:g}", way, record["n"], record["evaluations"]))
    return rows


def _answer(failure: Callable[[int], estimates.Estimate], beta: float) -> dict[str, float]:
    """The search, timed; programs compiled before are forgotten, so that every way pays for its own."""
    jax.clear_caches()
    began = time.perf_counter()
    found = search.least_n(failure, beta=beta, start=1000, maximum=100_000, rtol=0.05, reach=1.0)
    return {
        "n": found.n or 0,
        "seconds": time.perf_counter() - began,
        "evaluations": len(found.evaluations),
    }


def _by_law(settings: Settings, context: Context, n: int) -> estimates.Estimate:
    """Mean exact failure over data draws."""
    cell = experiment("rec_concave", 64, n, max(bucket(n), 4095))
    return estimates.mean(engine.evaluate(pac.failure, cell, root=context.root, cell=1, draws=settings["draws"]))


def _by_trials(settings: Settings, context: Context, n: int) -> estimates.Estimate:
    """Plain Monte Carlo with dpjax."""
    cell = experiment("rec_concave", 64, n, max(bucket(n), 4095))
    counted = engine.count(pac.trial, cell, root=context.root, cell=2, trials=settings["trials"])
    return estimates.clopper_pearson(counted["failed"], settings["trials"])


def _by_numpy(settings: Settings, pool: Any, n: int) -> estimates.Estimate:
    """Plain Monte Carlo with NumPy on two processes."""
    successes = pool.success_count("rec_concave", 64, n, settings["trials"], 0)
    return estimates.clopper_pearson(settings["trials"] - successes, settings["trials"])
