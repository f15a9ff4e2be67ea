"""Measures the numbers of the two pictures."""

import contextlib
import dataclasses
import functools
import json
import math
import zlib
from collections.abc import Callable
from typing import Any

import jax
import numpy as np
from scipy import stats

from dpjax import bounds
from dpjax.accounting import ADD_OR_REMOVE_ONE, REPLACE_ONE, Guarantee
from dpjax.core.pytree import frozen
from dpjax.data.points import Points
from dpjax.data.sample import bucket
from dpjax.data.weighted import Weighted
from dpjax.domains import wide
from dpjax.sanitizers import dense, thresholds
from dpjax.trials import estimates
from dpjax.trials.estimates import Estimate
from dpjax.trials.progress import Progress
from experiments.records import Row, estimated, exact
from experiments.releases import mechanism as quantile_mechanism
from experiments.releases import upper_quantile
from experiments.runner import Context
from experiments.settings import Settings

HISTOGRAM, TREE, POINTS = "histogram", "tree", "interior points"
PROVED, PRINTED = "SanThresholds, proved", "SanThresholds, printed"
DENSE = {HISTOGRAM: thresholds.histogram, TREE: thresholds.tree}
WEIGHTS, BLR = "multiplicative weights", "BLR"
EXACT = 24  # counts up to 2^24 are exact in float32


@frozen
class Trial:
    """One release of fixed data; all fields are data of the compiled program, except for their shapes."""

    sanitizer: Any
    data: Any
    truth: Weighted


def error(key: jax.Array, trial: Trial) -> Any:
    """The largest error of any threshold."""
    return trial.sanitizer(key, trial.data).hypothesis.threshold_error(trial.truth)


# -------------------------------------------------------------------------------------------------------- data, budget


def multiset(bits: int, n: int, points: int) -> Weighted:
    """n points on a logarithmic scale around the middle of the domain: equally many in every octave, on both sides."""
    middle, half = 1 << (bits - 1), points // 2
    offsets = [int(2 ** ((bits - 1) * (i + 0.5) / half)) for i in range(half)]
    xs = [middle - o for o in offsets] + [middle + o - 1 for o in offsets]
    counts = [n // len(xs) + (i < n % len(xs)) for i in range(len(xs))]
    return Weighted.create(wide.from_ints(xs, bits), counts).padded(bucket(points))


def written_out(data: Weighted, capacity: int) -> Points:
    """The data with one row for each point, in order."""
    x = np.repeat(np.asarray(data.x), np.asarray(data.weights), axis=0)
    n = len(x)
    return Points.create(np.pad(x, ((0, capacity - n), (0, 0))), n, ordered=True)


def under_add_or_remove(settings: Settings) -> Settings:
    """The settings with the budget under ADD_OR_REMOVE_ONE that implies the experiment's budget under REPLACE_ONE."""
    half = settings["epsilon"] / 2
    delta = settings["delta"] / (1 + math.exp(half)) * (1 - 1e-9)
    assert Guarantee(half, delta, ADD_OR_REMOVE_ONE).under(REPLACE_ONE).covers(settings["epsilon"], settings["delta"])
    return {**settings, "epsilon": half, "delta": delta}


def quantile_release(bits: int, count: int, settings: Settings) -> Any:
    """Recursive medians with the exponential mechanism, as a database."""
    release = quantile_mechanism("recursive medians", count, {**under_add_or_remove(settings), "bits": bits})
    return thresholds.from_interior_points(quantiles=release.quantiles)


def san_thresholds(bits: int, design: float, n: int, calibration: str, settings: Settings) -> Any:
    """SanThresholds built for an error of `design`, or None if it is not private at n."""
    given = {"epsilon": settings["epsilon"], "delta": settings["delta"], "alpha": design, "calibration": calibration}
    made = thresholds.san_thresholds(bits=bits, n=n, allow_unproved=True, **given)
    return None if made.guarantee().is_none else made


def multiplicative_weights(bits: int, settings: Settings) -> Any:
    """Multiplicative weights at the approximate budget, with enough rounds to leave half of alpha to the choices."""
    rounds = math.ceil(2 * bits * math.log(2) / settings["alpha"] ** 2)
    given = {"epsilon": settings["epsilon"], "delta": settings["delta"]}
    return dense.multiplicative_weights(queries=dense.thresholds(bits=bits), rounds=rounds, **given)


def blr(bits: int, settings: Settings) -> Any:
    """BLR with enough rows to round to within half of alpha."""
    rows = math.ceil(1 / settings["alpha"])
    return dense.blr(queries=dense.thresholds(bits=bits), rows=rows, epsilon=settings["epsilon"])


def least_private(bits: int, design: float, settings: Settings) -> int:
    """The least n for which the Choosing Mechanism is proved to be private."""
    made = thresholds.san_thresholds(
        bits=bits, n=1, epsilon=settings["epsilon"], delta=settings["delta"], alpha=design, allow_unproved=True
    )
    return bounds.san_thresholds_private(design, float(made.step_epsilon), float(made.step_delta))


# ------------------------------------------------------------------------------------------------------------ measuring


@dataclasses.dataclass
class Measured:
    """Evaluates errors, each with its own random numbers, which do not depend on what else is measured."""

    settings: Settings
    context: Context
    progress: Progress

    def quantile(self, name: str, bits: int, n: int, sanitizer: Any, variant: float = 0.0) -> Callable[..., Estimate]:
        """The error that 1 - beta of the runs stay within, as a function of its interval's level."""
        wide_counts = n > 1 << EXACT
        with jax.enable_x64(True) if wide_counts else contextlib.nullcontext():
            truth = multiset(bits, n, self.settings["points"])
            if name == POINTS:
                capacity = bucket(1 << max(self.settings["exponents"]["points"]))
                data: Any = written_out(truth, capacity)
            else:
                data = truth
            key = {"sanitizer": name, "bits": bits, "n": n, "variant": variant}
            draws = self.settings["draws"]
            trial = Trial(sanitizer=sanitizer, data=data, truth=truth)
            cell = zlib.crc32(json.dumps(key).encode()) >> 1
            errors = self.context.evaluate(error, trial, key=key, cell=cell, draws=draws, chunk=128)
        self.progress.done(1)
        return functools.partial(upper_quantile, np.sort(errors), 1 - self.settings["beta"])

    def error(self, *given: Any) -> Estimate:
        """That error at the settings' level; the arguments are those of `quantile`."""
        return self.quantile(*given)(level=self.settings["level"])

    def dense(self, name: str, bits: int, n: int) -> Estimate:
        """The error of noisy counts."""
        return self.error(name, bits, n, DENSE[name](bits=bits, n=n, epsilon=self.settings["epsilon"]))

    def weights(self, bits: int, n: int) -> Estimate:
        """The error of multiplicative weights."""
        return self.error(WEIGHTS, bits, n, multiplicative_weights(bits, self.settings))

    def points(self, bits: int, n: int) -> Estimate:
        """The error of interior points, at the best number of quantiles."""
        counts = self.settings["quantiles"]
        found = [self.quantile(POINTS, bits, n, quantile_release(bits, k, self.settings), k) for k in counts]
        return estimates.smallest(found, level=self.settings["level"])

    def search(self, name: str, bits: int, n: int, calibration: str) -> list[Row]:
        """Rows of SanThresholds, at the least design that is private at n; none if no design is."""
        for design in sorted(self.settings["designs"]):
            made = san_thresholds(bits, design, n, calibration, self.settings)
            if made is not None:
                found = self.error(name, bits, n, made, design)
                return [estimated("error by n", name, n, found), exact("design", name, n, design)]
        return []


def measure(settings: Settings, context: Context) -> list[Row]:
    """All rows: panels "error by n", "design", "error by d", "sizes", "least n", "theorem"."""
    exponents = settings["exponents"]
    dense, wide_, counts = (len(settings[name]) for name in ("dense", "wide", "quantiles"))
    cells = 2 * len(exponents["counts"]) + len(exponents["proved"]) + len(exponents["printed"])
    cells += counts * len(exponents["points"]) + 2 * dense + (counts + 1) * wide_
    cells += 7 * (3 * dense + counts * wide_) + wide_  # for the searches, roughly
    cells += len(exponents["weights"]) + dense
    with Progress(cells, "largest errors", unit="cells") as progress:
        measured = Measured(settings, context, progress)
        return [
            *_by_n(measured),
            *_by_d(measured),
            *_least_n(measured),
            *_any_class(measured),
            *_theorems(settings),
        ]


def _by_n(measured: Measured) -> list[Row]:
    """The error against n at one d."""
    settings, rows = measured.settings, []
    bits, exponents = settings["bits"], settings["exponents"]
    for exponent in exponents["counts"]:
        rows += [estimated("error by n", name, 2**exponent, measured.dense(name, bits, 2**exponent)) for name in DENSE]
    for exponent in exponents["points"]:
        rows.append(estimated("error by n", POINTS, 2**exponent, measured.points(bits, 2**exponent)))
    for name, calibration in ((PROVED, "proved"), (PRINTED, "printed")):
        for exponent in exponents[calibration]:
            rows += measured.search(name, bits, 2**exponent, calibration)
    largest = max(row.x for row in rows)
    for exponent in range(min(exponents["counts"]), math.ceil(math.log2(largest)) + 1):
        sampled = float(stats.kstwobign.ppf(1 - settings["beta"]) / math.sqrt(2.0**exponent))
        rows.append(exact("error by n", "sampling", 2**exponent, sampled))
    return rows


def _by_d(measured: Measured) -> list[Row]:
    """The error against d: SanThresholds at its largest n that is exact in float32, the others at the largest n of interior points."""
    settings, rows = measured.settings, []
    exponents = settings["exponents"]
    sizes = {
        HISTOGRAM: 2 ** max(exponents["points"]),
        TREE: 2 ** max(exponents["points"]),
        POINTS: 2 ** max(exponents["points"]),
    }
    sizes[PROVED] = 2 ** max(e for e in exponents["proved"] if e <= EXACT)
    for bits in settings["dense"]:
        rows += [estimated("error by d", name, bits, measured.dense(name, bits, sizes[name])) for name in DENSE]
    for bits in settings["wide"]:
        rows.append(estimated("error by d", POINTS, bits, measured.points(bits, sizes[POINTS])))
        made = san_thresholds(bits, max(settings["designs"]), sizes[PROVED], "proved", settings)
        rows += (
            []
            if made is None
            else [estimated("error by d", PROVED, bits, measured.error(PROVED, bits, sizes[PROVED], made, 1.0))]
        )
    return rows + [exact("sizes", name, 0, n) for name, n in sizes.items()]


def _least_n(measured: Measured) -> list[Row]:
    """The least n, up to a factor of 2^(1/4), at which 1 - beta of the runs have an error of at most alpha.

    For SanThresholds, it is the least n for which the largest design whose error is at most alpha is proved to be private.
    """
    settings, rows = measured.settings, []
    for name in DENSE:
        for bits in settings["dense"]:
            rows.append(_row(name, bits, _bisected(lambda n: measured.dense(name, bits, n), settings)))  # noqa: B023
    for bits in settings["wide"]:
        highest = 4 * max(settings["exponents"]["points"])
        found = _bisected(lambda n: measured.points(bits, n), settings, highest)  # noqa: B023
        rows += [] if found is None else [_row(POINTS, bits, found)]
        for design in sorted(settings["designs"], reverse=True):
            n = least_private(bits, design, settings)
            made = san_thresholds(bits, design, n, "proved", settings)
            if n <= 1 << EXACT and measured.error(PROVED, bits, n, made, design).value <= settings["alpha"]:
                rows.append(exact("least n", PROVED, bits, n))
                break
    return rows


def _any_class(measured: Measured) -> list[Row]:
    """Multiplicative weights and, by its exact law, BLR, which are sanitizers for any class on a dense domain."""
    settings, rows = measured.settings, []
    bits, exponents = settings["bits"], settings["exponents"]
    for exponent in exponents["weights"]:
        rows.append(estimated("error by n", WEIGHTS, 2**exponent, measured.weights(bits, 2**exponent)))
    for bits in settings["dense"]:
        n = 2 ** max(exponents["points"])
        rows.append(estimated("error by d", WEIGHTS, bits, measured.weights(bits, n)))
        rows.append(_row(WEIGHTS, bits, _bisected(lambda n: measured.weights(bits, n), settings)))  # noqa: B023
    for bits in settings["listed"]:
        law = blr(bits, settings)

        def fails(n: int, law: Any = law, bits: int = bits) -> bool:
            data = multiset(bits, n, settings["points"])
            return float(law.failure_probability(data, error=settings["alpha"])) > settings["beta"]

        quarter = next(q for q in range(16, 80) if not fails(_size(q)))
        rows.append(_row(BLR, bits, quarter))
    return [*rows, exact("sizes", WEIGHTS, 0, 2 ** max(exponents["points"]))]


def _row(name: str, bits: int, quarter: int | None) -> Row:
    """A least n that is known up to one step of the search."""
    assert quarter is not None
    n, below = _size(quarter), _size(quarter - 1)
    return Row("least n", name, bits, n, below, n)


def _size(quarter: int) -> int:
    return round(2 ** (quarter / 4))


def _bisected(error: Callable[[int], Estimate], settings: Settings, highest: int = 80) -> int | None:
    """The least q with error(2^(q/4)) <= alpha, by bisection, as errors fall with n; None if there is none up to `highest`."""
    low, high = 16, highest
    if error(_size(high)).value > settings["alpha"]:
        return None
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if error(_size(middle)).value <= settings["alpha"] else (middle + 1, high)
    return high


def _theorems(settings: Settings) -> list[Row]:
    """The numbers of points that `sample_size` states."""
    alpha, beta, epsilon, delta = (settings[name] for name in ("alpha", "beta", "epsilon", "delta"))
    rows = []
    for bits in settings["dense"]:
        rows += [
            exact("theorem", name, bits, make(bits=bits, n=1, epsilon=epsilon).sample_size(alpha=alpha, beta=beta))
            for name, make in DENSE.items()
        ]
        needed = multiplicative_weights(bits, settings).sample_size(alpha=alpha, beta=beta)
        rows.append(exact("theorem", WEIGHTS, bits, needed))
    for bits in settings["listed"]:
        rows.append(exact("theorem", BLR, bits, blr(bits, settings).sample_size(alpha=alpha, beta=beta)))
    for bits in settings["wide"]:
        sizes = []
        for count in settings["quantiles"]:
            with contextlib.suppress(ValueError):  # too few quantiles for this alpha
                sizes.append(quantile_release(bits, count, settings).sample_size(alpha=alpha, beta=beta))
        rows += [exact("theorem", POINTS, bits, min(sizes))] if sizes else []
        for name, calibration in ((PROVED, "proved"), (PRINTED, "printed")):
            made = thresholds.san_thresholds(
                bits=bits, n=1, epsilon=epsilon, delta=delta, alpha=alpha, calibration=calibration, allow_unproved=True
            )
            rows.append(exact("theorem", name, bits, made.sample_size(alpha=alpha, beta=beta)))
    return rows
