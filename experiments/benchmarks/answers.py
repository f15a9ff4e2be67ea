"""Three standing questions, and the seconds from nothing to the answer, compilation included, by each way that gets there."""

import dataclasses
import functools
import math
import time
from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from dpjax.data.sample import bucket
from dpjax.fingerprinting import tardos
from dpjax.learners import pac
from dpjax.trials import engine, estimates, search
from dpjax.trials.progress import Progress
from experiments.benchmarks import contests, timing
from experiments.benchmarks.numpy_multi import XI
from experiments.benchmarks.pool import Pool
from experiments.records import Row, exact
from experiments.runner import Context
from experiments.settings import Settings

Way = Callable[[], float]
PANEL = "seconds to answer, "
BITS = 64


def measure(settings: Settings, pool: Pool, context: Context) -> list[Row]:
    """Rows of panels "seconds to answer, QUESTION": x is the answer, value the seconds."""
    questions = _questions(settings, pool, context)
    rows, asked = [], [(question, name, way) for question, ways in questions.items() for name, way in ways.items()]
    with Progress(len(asked), "seconds to an answer", unit="answers") as progress:
        for question, name, way in asked:
            record = context.store.get_or_compute({"question": question, "way": name}, functools.partial(_timed, way))
            rows.append(exact(f"{PANEL}{question}", name, record["answer"], record["seconds"]))
            progress.done(1)
    return rows


def _timed(way: Way) -> dict[str, float]:
    """The answer and its seconds; programs compiled before are forgotten, here and on disk, so that every way pays for its own."""
    jax.clear_caches()
    with timing.compilation_cache_of(jax_enable_compilation_cache=False):
        began = time.perf_counter()
        answer = way()
        return {"answer": answer, "seconds": time.perf_counter() - began}


def _questions(settings: Settings, pool: Pool, context: Context) -> dict[str, dict[str, Way]]:
    """Every question with the ways to answer it."""
    found: dict[str, dict[str, Way]] = {}
    for beta in settings["betas"]:
        ways: dict[str, Way] = {
            "law": functools.partial(_rec_concave, functools.partial(_law, settings, context), beta)
        }
        # With rate beta, 10 expected failures need 10 / beta trials: plain trials resolve beta = 0.1, not 1e-6.
        if settings["trials"] * beta >= 10:
            for name, rate in _rates("rec_concave", settings["trials"], pool, context, capacity=4095).items():
                ways[f"{name} trials"] = functools.partial(_rec_concave, _failures(rate), beta)
        found[f"n* of RecConcave, d = {BITS}, beta = {beta:g}"] = ways
    rates = _rates("point_learner", settings["trials"], pool, context, capacity=2047)
    found["exponent of k in n* of PointLearner"] = {
        f"{name} trials": functools.partial(_exponent, rate, settings["concepts"]) for name, rate in rates.items()
    }
    users, share, trials = settings["tracing"]
    columns = round(share * tardos(users, XI).length)
    found[f"traced rate of Tardos, {users} users, {share:g} of the proved length"] = {
        f"{name} trials": functools.partial(_traced, rate, users, columns)
        for name, rate in _rates("tracing", trials, pool, context).items()
    }
    return found


def _rates(
    name: str, trials: int, pool: Pool, context: Context, *, capacity: int | None = None
) -> dict[str, Callable[..., estimates.Estimate]]:
    """By dpjax (one program for all samples up to a capacity) and by NumPy on two processes: (*sizes) -> the rate of success."""

    def by_dpjax(*sizes: Any) -> estimates.Estimate:
        run, params = contests.CONTESTS[name].make(*sizes)
        if capacity is not None:
            params = dataclasses.replace(params, capacity=max(params.capacity, capacity))
        return estimates.clopper_pearson(engine.count(run, params, root=context.root, cell=2, trials=trials), trials)

    def by_numpy(*sizes: Any) -> estimates.Estimate:
        return estimates.clopper_pearson(pool.count(contests.CONTESTS[name].program, sizes, trials, 0), trials)

    return {"dpjax": by_dpjax, "NumPy": by_numpy}


def _failures(success: Callable[..., estimates.Estimate]) -> Callable[..., estimates.Estimate]:
    """The rate of failure, given the rate of success."""

    def failure(*sizes: Any) -> estimates.Estimate:
        rate = success(*sizes)
        return estimates.Estimate(1 - rate.value, 1 - rate.high, 1 - rate.low, rate.level, rate.count)

    return failure


def _rec_concave(failure: Callable[[int, int], estimates.Estimate], beta: float) -> float:
    """n* of RecConcave, within 5 %."""
    return _least_n(functools.partial(failure, BITS), beta, start=1000)


def _least_n(failure: Callable[[int], estimates.Estimate], beta: float, start: int) -> float:
    found = search.least_n(failure, beta=beta, start=start, maximum=100_000, rtol=0.05, reach=1.0)
    return float(found.n or math.nan)


def _law(settings: Settings, context: Context, bits: int, n: int) -> estimates.Estimate:
    """Mean exact failure over data draws."""
    _, cell = contests.threshold("rec_concave", bits, n, max(bucket(n), 4095))
    return estimates.mean(engine.evaluate(pac.failure, cell, root=context.root, cell=1, draws=settings["draws"]))


def _exponent(success: Callable[[int, int], estimates.Estimate], concepts: list[int]) -> float:
    """The least-squares slope of ln n* on ln k; each search starts where the one before ended."""
    failure, found = _failures(success), [1000.0]
    for k in concepts:
        found.append(_least_n(functools.partial(failure, k), 0.1, start=int(found[-1])))
    return float(np.polyfit(np.log(concepts), np.log(found[1:]), 1)[0])


def _traced(rate: Callable[[int, int], estimates.Estimate], users: int, columns: int) -> float:
    return rate(users, columns).value
