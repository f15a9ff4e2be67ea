"""Measures the numbers of the picture."""

import dataclasses
import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from dpjax import MultiSample, Points
from dpjax.accounting import Guarantee
from dpjax.domains import ordered, wide
from dpjax.learners import thresholds
from dpjax.multi import points
from dpjax.optimizers import interior_point, quantiles, quasi_concave
from dpjax.optimizers.quasi_concave import Split
from dpjax.relaxations import budgets, tune
from dpjax.trials.progress import Progress
from experiments.hard_samples import Sampler, around_a_threshold
from experiments.records import Row, exact
from experiments.runner import Context
from experiments.settings import Settings
from experiments.tuning import listed


@dataclasses.dataclass(frozen=True)
class Case:
    """An algorithm, hard data for it, and the parts of its budget by name.

    Attributes:
      make: settings -> the algorithm with the split that its factory derives.
      draw: (generator, bits, largest n) -> a function n -> one dataset; a smaller dataset is contained in each larger one.
      parts: the algorithm -> the epsilon that each mechanism spends, by name; they add up to the total.
      maximum: the number of rows of a dataset, which is the largest n.
      failure: (settings, algorithm, dataset) -> the failure probability, which is to be small.
      guarantee: the algorithm -> the guarantee of the whole release of which it is a part.
    """

    make: Callable[[Settings], Any]
    draw: Callable[[np.random.Generator, int, int], Sampler]
    parts: Callable[[Any], dict[str, float]]
    maximum: int
    failure: Callable[[Settings, Any, Any], Any] = lambda settings, algorithm, data: algorithm.failure_probability(
        data, error=settings["alpha"]
    )
    guarantee: Callable[[Any], Guarantee] = lambda algorithm: algorithm.guarantee()


def measure(settings: Settings, context: Context) -> list[Row]:
    """Panels "least n" and "failure, NAME" (series derived, tuned), "epsilon, NAME" (x = 0 derived, 1 tuned), "guarantee, NAME".

    Listed plans have "plan, NAME" in place of "epsilon, NAME".
    """
    rows: list[Row] = []
    with Progress(len(settings["cases"]) + len(settings["listed"]), "tuning", unit="cases", silent=True) as bar:
        for name in settings["cases"]:
            rows += _measured(place(name), name, settings, context.seed)
            bar.done(1)
        for name in settings["listed"]:
            rows += listed.measured(place(name), name, settings, context.seed)
            bar.done(1)
    return rows


def _measured(number: int, name: str, settings: Settings, seed: int) -> list[Row]:
    """All rows of one algorithm."""
    case = CASES[name]
    algorithm = case.make(settings)
    judged = functools.partial(case.failure, settings)
    train, held_out = (_sampler(case, settings, [seed, offset]) for offset in (1, 2))
    search: dict[str, Any] = {
        "beta": settings["beta"],
        "maximum": case.maximum,
        "rtol": settings["rtol"],
        "failure": judged,
    }
    _, _, tuned = tune.tuned_least_n(
        budgets.of(algorithm),
        train,
        start=case.maximum // 4,
        rounds=settings["rounds"],
        steps=settings["steps"],
        **search,
    )
    rows, least = [], {}
    both = {"derived": algorithm, "tuned": tuned.algorithm}
    for series, one in both.items():
        found = tune.least_n(one, held_out, start=case.maximum // 4, **search)
        least[series] = found.n or case.maximum
        rows.append(Row("least n", series, number, least[series], found.low, found.high or math.inf))
        guarantee = case.guarantee(one)
        rows += [
            exact(f"guarantee, {name}", f"{series} {part}", 0, value)
            for part, value in (("epsilon", guarantee.epsilon), ("delta", guarantee.delta))
        ]
        rows += [
            exact(f"epsilon, {name}", part, int(series == "tuned"), value) for part, value in case.parts(one).items()
        ]
    sizes = np.unique(
        np.geomspace(least["tuned"] / 2, min(1.2 * least["derived"], case.maximum), settings["sizes"]).astype(int)
    )
    for n in sizes.tolist():
        data = held_out(n)
        rows += [
            exact(f"failure, {name}", series, n, float(np.mean(tune.failures(one, data, judged))))
            for series, one in both.items()
        ]
    return rows


def _sampler(case: Case, settings: Settings, seed: Sequence[int]) -> Sampler:
    """The function n -> datasets of n examples, which are drawn once for all n."""
    rng = np.random.default_rng(seed)
    each = [case.draw(rng, settings["bits"], case.maximum) for _ in range(settings["datasets"])]
    return lambda n: [at(n) for at in each]


# --------------------------------------------------------------------------------------------------------------- data


def combs(rng: np.random.Generator, bits: int, most: int) -> Sampler:
    """Points whose number of leading zeros, or ones, is uniform, or log-uniform from either end (`dpjax.concepts.combs`)."""
    kind, turned = rng.integers(0, 3), bool(rng.integers(0, 2))
    log_uniform = np.exp(rng.uniform(0, np.log1p(bits), most)).astype(int) - 1
    zeros = [rng.integers(0, bits + 1, most), log_uniform, bits - log_uniform][kind]
    x = [2 ** (bits - int(k)) - 1 for k in zeros]
    x = [2**bits - 1 - value for value in x] if turned else x

    def at(n: int) -> Points:
        return Points.create(wide.from_ints(sorted(x[:n]) + [0] * (most - n), bits), n)

    return at


def hills(rng: np.random.Generator, bits: int, most: int) -> Sampler:
    """A quality that falls in seven steps, of random height and log-uniform distance, on both sides of a peak of height n."""
    peak, last = int(rng.integers(2**29, 2**31)) * 2 ** max(bits - 31, 0) % 2**bits, 2**bits
    down, up = (np.unique(2.0 ** rng.uniform(0, bits - 2, 7)) for _ in range(2))
    before = sorted({max(0, peak - int(distance)) for distance in down} - {0, peak})
    after = sorted({min(last, peak + 1 + int(distance)) for distance in up})
    rising = np.sort(rng.random(len(before) + 1))
    falling = np.sort(rng.random(len(after)))[::-1]
    starts, heights = [0, *before, peak, *after], [*rising, 1.0, *falling]
    pieces = ordered.from_breakpoints(starts, [float(height) for height in heights], last, beyond=0.0)

    def at(n: int) -> Any:
        values = np.floor(np.asarray(pieces.values) * n)
        return quasi_concave.problem(dataclasses.replace(pieces, values=values), promise=n, alpha=0.5)

    return at


def heavy_and_light(rng: np.random.Generator, bits: int, most: int) -> Sampler:
    """Examples at 6 points whose masses fall by a half, and others at points that occur once; two labels, each of which has one point."""
    x = np.where(
        rng.random(most) < 0.75, rng.choice(6, most, p=2.0 ** -np.arange(6) / (2 - 2.0**-5)), 6 + np.arange(most)
    )
    y = x[:, None] == rng.choice(3, 2)[None]
    rows = np.asarray(wide.from_ints(x.tolist(), bits))

    def at(n: int) -> MultiSample:
        some = (np.arange(most) < n)[:, None]
        return MultiSample.create(np.where(some, rows, np.uint32(0)), np.where(some, y, False), n)

    return at


# --------------------------------------------------------------------------------------------------------- algorithms


def _learner(depth: int) -> Callable[[Settings], Any]:
    def make(settings: Settings) -> Any:
        given = {name: settings[name] for name in ("bits", "epsilon", "delta")}
        # It aims at half of the alpha that it is given, as its error on the data: here at alpha, which is the error required of it.
        return thresholds.rec_concave(**given, alpha=2 * settings["alpha"], depth=depth)

    return make


def _amplified(settings: Settings) -> Any:
    return quasi_concave.amplified(**{name: settings[name] for name in ("bits", "epsilon", "delta", "beta")})


def _tree_log(settings: Settings) -> Any:
    given = {name: settings[name] for name in ("bits", "epsilon", "delta", "beta")}
    return interior_point.tree_log(**given, accountant="basic", depth=1)


def _point_learner(settings: Settings) -> Any:
    given = {name: settings[name] for name in ("bits", "epsilon", "delta", "alpha", "beta")}
    return points.point_learner(**given, k=2)


def _on_slices(settings: Settings, runs: int) -> Any:
    """RecConcave for `quantiles.direct`, whose runs see slices that change by a replacement, or two steps: (2 e, (1 + exp(e)) d) each."""
    epsilon = settings["epsilon"] / (2 * runs)
    delta = settings["delta"] * (1 - 1e-9) / (runs * (1 + math.exp(epsilon)))
    return interior_point.rec_concave(bits=settings["bits"], epsilon=epsilon, delta=delta, promise=1.0)


def _quantiles(solver: Any, runs: int) -> Any:
    """All quantiles by this solver."""
    fractions = [(i + 1) / (runs + 1) for i in range(runs)]
    return quantiles.direct(solver=solver, fractions=fractions, m=1, allow_unproved=True)


def _one_misses(settings: Settings, solver: Any, data: Any, runs: int) -> Any:
    """P[no interior point of some slice]; the solver is promised a depth of half of the points of a slice."""
    promised = dataclasses.replace(solver, promise=data.n_valid.astype(float) / 2)
    return 1 - (1 - promised.failure_probability(data)) ** runs


def _by_quantiles(runs: int, maximum: int) -> Case:
    """The case whose data are one slice of 2m points; the number of all points is (m - 1/2) / alpha."""
    return Case(
        functools.partial(_on_slices, runs=runs),
        combs,
        lambda solver: {name: 2 * runs * epsilon for name, epsilon in _rec_concave_parts(solver).items()},
        maximum,
        functools.partial(_one_misses, runs=runs),
        lambda solver: _quantiles(solver, runs).guarantee(),
    )


def _rec_concave_parts(learner: Any) -> dict[str, float]:
    """The epsilon of each exponential mechanism and of each A_dist, the widest range first."""
    split = learner.split or Split.equal(float(learner.epsilon), float(learner.delta), learner.levels)
    parts = {f"choice, level {level}": float(epsilon) for level, epsilon in enumerate(split.choices, 1)}
    for level, pair in enumerate(np.asarray(split.tests), 1):
        parts |= {f"A_dist {side}, level {level}": float(epsilon) for side, epsilon in zip("ab", pair, strict=True)}
    return parts


def _amplified_parts(optimizer: Any) -> dict[str, float]:
    """The epsilon of each part over all levels."""
    parts = {"promise test": "test", "last level": "last", "blocks": "blocks", "points": "points"}
    return {name: float(np.sum(getattr(optimizer.budget, field))) for name, field in parts.items()}


def _tree_log_parts(solver: Any) -> dict[str, float]:
    """The epsilon of each part over all levels; A_dist counts twice, as two of its slices may differ by a replacement."""
    parameters = solver.parameters
    times = {"walk": parameters.depth, "select": 2 * parameters.depth, "count": parameters.depth, "base": 1}
    return {name: many * float(getattr(parameters, f"{name}_epsilon")) for name, many in times.items()}


def _point_learner_parts(learner: Any) -> dict[str, float]:
    return {"counts": float(learner.counts.epsilon), "A_dist": float(learner.choice().epsilon)}


def _missed(settings: Settings, algorithm: Any, data: Any) -> Any:
    """P[no interior point], or P[less than half of the peak]."""
    return algorithm.failure_probability(data)


CASES = {
    "RecConcave, N=2": Case(_learner(2), around_a_threshold, _rec_concave_parts, 4095),
    "RecConcave, N=3": Case(_learner(3), around_a_threshold, _rec_concave_parts, 4095),
    "amplified": Case(_amplified, hills, _amplified_parts, 2**13, _missed),
    "TreeLog": Case(_tree_log, combs, _tree_log_parts, 511, _missed),
    "PointLearner": Case(_point_learner, heavy_and_light, _point_learner_parts, 2047),
    "median (slice)": _by_quantiles(1, 4095),
    "cdf, 3 quantiles (slice)": _by_quantiles(3, 2**14 - 1),
}


def place(name: str) -> int:
    """The x of a case: its place among all cases, whatever the settings leave out."""
    return [*CASES, *listed.LISTED].index(name)
