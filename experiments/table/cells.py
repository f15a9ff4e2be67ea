"""The cells of the tables, with the algorithm and the data that are measured for each.

| kind | what is measured |
|---|---|
| single | a direct sum: the learner of one concept at its share of epsilon, which may fail with probability beta/k (Observation 32) |
| joint | GenericLearner on its k labels together, by its law given the sanitizer's draw |
| flat | PointLearner, by its law |
| closed form | ParityLearner, whose failure over data and coins is known exactly |

Points have mass 0.3 at the target, thresholds have log-uniform data, and parities uniform data.
"""

import dataclasses
import math
from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
from jaxtyping import Array

from dpjax import Sample
from dpjax.accounting import REPLACE_ONE, Guarantee, calibrate
from dpjax.concepts import agnostic
from dpjax.concepts import parities as parity_concept
from dpjax.concepts import points as point_concept
from dpjax.concepts import thresholds as threshold_concept
from dpjax.core.pytree import frozen
from dpjax.learners import parities, points, thresholds
from dpjax.multi import generic, tables
from dpjax.multi import points as k_points
from dpjax.optimizers import interior_point, quantiles
from dpjax.sanitizers import cdf
from dpjax.sanitizers import points as sanitizer
from experiments.settings import Settings

TARGET = 0  # the target's place among the points below
POINTS = [129, 3, 64, 5, 200, 32, 7]
MASSES = [0.3, 0.2, 0.15, 0.12, 0.1, 0.08, 0.05]
SLICES, LEVELS = 500, 3  # m and levels of the distribution function's quantiles at 16 bits; m grows with the bits

ABOVE = "composition costs $k^{0.51}$ here, and ln(|H|k/β), by which n* was divided, is too flat, since fewer than |H| hypotheses are bad"
ROOM = "on log-uniform data $2^{2αd}$ thresholds are good, so that n* grows with (1 − 2α) log|C| + log(k/β)"
SPARE = "subsamples have d points and a few more, and the few still show at d = 64"
SMALL_D = (
    "at these d the k labels decide on n* (of points of mass 1/14 at d = 8, 1/30 at d = 16), and not yet the sanitizer"
)


@dataclasses.dataclass(frozen=True)
class Cell:
    """A cell of the paper's tables and what is measured for it.

    Attributes:
        entry: the paper's cell. series: the algorithm. kind: see the module. concepts: "points", "thresholds" or "parities".
        make: (k, bits, settings) -> the learner (of one concept, where kind is "single"). It is None for a closed form.
        hypotheses: bits -> |H|, if concepts are chosen by exponential mechanisms that may fail with probability beta/k each. Then n* has a
            factor ln(|H| k / beta); the tables hide it beside a power of k, and they hide ln(k / beta) beside log|C|.
        why_k, why_bits: why a measured exponent may miss the theorem's.
    """

    entry: tables.Entry
    series: str
    kind: str
    concepts: str
    make: Callable[[int, int, Settings], Any] | None
    hypotheses: Callable[[int], float] | None
    why_k: str = ""
    why_bits: str = ""

    @property
    def name(self) -> str:
        """The name of the cell's row in the picture."""
        hypotheses = "" if self.entry.hypotheses == "both" else f", {self.entry.hypotheses}"
        concepts = f"general ({self.concepts[:-1]})" if self.entry.concepts == "general" else self.entry.concepts
        return f"{self.entry.privacy}, {concepts}, {self.entry.setting}{hypotheses}: {self.series}"

    def factor(self, of: str, settings: Settings) -> Callable[[float], float]:
        """The factor of n* beside the power of k, or of log|X|."""
        choices, fixed, beta = self.hypotheses, settings["fixed"], settings["beta"]
        if choices is None:
            return lambda x: 1.0
        if of == "k":
            bits = fixed["parity bits" if self.concepts == "parities" else "bits"]
            return lambda k: math.log(choices(bits)) + math.log(k / beta)
        if choices(1) == choices(2):
            return lambda d: 1.0
        return lambda d: 1.0 + math.log(fixed["k"] / beta) / math.log(choices(int(d)))

    def distribution(self, k: int, bits: int, settings: Settings) -> Any:
        """The data that the definition requires: labelled by a concept of the class, or with noisy labels."""
        law = _LAWS[self.concepts](1 if self.kind == "single" else k, bits, self.kind)
        return law if self.entry.setting == tables.PAC else agnostic.noisy(law, flip=settings["flip"])


def _points(k: int, bits: int, kind: str) -> Any:
    one = POINTS[TARGET]
    target: Any = one if kind == "single" else [one if j % 2 == 0 else POINTS[j // 2 % 3] for j in range(k)]
    return point_concept.point_masses(bits=bits, points=POINTS, masses=MASSES, target=target)


def _thresholds(k: int, bits: int, kind: str) -> Any:
    if kind == "single":
        return threshold_concept.log_uniform(bits=bits)
    centre = 1 << (bits - 1)
    xs = sorted({centre + sign * (1 << u) for u in range(bits - 1) for sign in (-1, 1)})
    base = threshold_concept.point_masses(bits=bits, points=xs, masses=[1.0] * len(xs), target=0)
    return threshold_concept.several(base, bits=bits, targets=[xs[len(xs) * (2 * j + 1) // (2 * k)] for j in range(k)])


def _parities(k: int, bits: int, kind: str) -> Any:
    return parity_concept.uniform_single(bits=bits, target=1)


_LAWS = {"points": _points, "thresholds": _thresholds, "parities": _parities}


def share(k: int, settings: Settings, accountant: str) -> float:
    """The epsilon that each of k pure learners may spend."""
    delta = 0.0 if accountant == "basic" else settings["delta"]
    total = Guarantee(settings["epsilon"], delta, REPLACE_ONE)
    return calibrate(total, k, accountant=accountant, delta_share=0.0).epsilon


@frozen
class Hashed:
    """The improper pure learner of the target point, by its law given its hash.

    Every bucket but the target's, and all-zero, err on the target's mass. This is more than alpha, so only the target's bucket can be good.
    """

    learner: Any
    target: Array

    def __call__(self, key: Array, sample: Sample) -> Any:
        return self.learner(key, sample)

    def population_failure(self, key: Array, sample: Sample, distribution: Any, alpha: Any) -> Array:
        """P[not the target's bucket, or that bucket is not good | sample, hash]."""
        given = self.learner.given(self.learner.hash(key))
        one = Sample.tree_unflatten((False, False), (self.target[None], jnp.ones(1, jnp.int32), jnp.int32(1)))
        bucket = given.named(one)[0]
        good = distribution.excess(given.output(bucket[-1])) <= alpha
        missed = given.probability(sample, (bucket, bucket + jnp.uint32(1)))[1]
        return jnp.where(good, missed, 1.0)


def _hashed(k: int, bits: int, settings: Settings) -> Hashed:
    target = point_concept.point(POINTS[TARGET], bits=bits).position
    return Hashed(learner=points.hashed(bits=bits, epsilon=share(k, settings, "basic")), target=target)


def _each(make: Callable[..., Any], accountant: str) -> Callable[[int, int, Settings], Any]:
    return lambda k, bits, settings: make(bits=bits, epsilon=share(k, settings, accountant))


def _point_learner(k: int, bits: int, settings: Settings) -> Any:
    given = {name: settings[name] for name in ("epsilon", "delta", "alpha", "beta")}
    return k_points.point_learner(bits=bits, k=k, **given)


def _generic(k: int, bits: int, settings: Settings, release: Any, concepts: Any) -> Any:
    """GenericLearner with half of the budget for the database and the rest for the labels, by optimal composition."""
    epsilon, delta = settings["epsilon"], settings["delta"]
    return generic.learner(
        sanitizer=release, concepts=concepts, k=k, epsilon=epsilon, delta=delta, accountant="optimal"
    )


@frozen
class OnHistogram:
    """GenericLearner on a histogram, which gets the public number of examples."""

    learner: Any

    def __call__(self, key: Array, sample: Any) -> Any:
        return self._for(sample)(key, sample)

    def population_failure(self, key: Array, sample: Any, distribution: Any, alpha: Any) -> Array:
        """The same as GenericLearner's."""
        return self._for(sample).population_failure(key, sample, distribution, alpha)

    def _for(self, sample: Any) -> Any:
        told = dataclasses.replace(self.learner.sanitizer, n=sample.n_valid.astype(float))
        return dataclasses.replace(self.learner, sanitizer=told)


def _generic_points(k: int, bits: int, settings: Settings) -> Any:
    release = sanitizer.histogram(bits=bits, n=1, epsilon=settings["epsilon"] / 2, delta=settings["delta"] / 2)
    return OnHistogram(learner=_generic(k, bits, settings, release, generic.points(bits=bits, most=len(POINTS))))


def _generic_thresholds(k: int, bits: int, settings: Settings) -> Any:
    """GenericLearner on a private CDF; these slices need not suffice by the proof, because the least n is measured."""
    solver = interior_point.exponential(bits=2 * bits, epsilon=settings["epsilon"] / (8 * LEVELS))
    m = SLICES * bits // 16
    released = quantiles.recursive(solver=solver, bits=bits, depth=LEVELS, m=m, allow_unproved=True)
    return _generic(k, bits, settings, cdf.release(quantiles=released), generic.thresholds(bits=bits))


def _of_bits(bits: int) -> float:
    return 2.0**bits


def _few(bits: int) -> float:
    return 8.0


def _cells() -> tuple[Cell, ...]:
    """All cells that have a learner, in the order of the tables."""
    found = []

    def add(series: str, kind: str, of: str, make: Any, choices: Any, why: Any, **wanted: str) -> None:
        for entry in tables.find(**wanted):
            found.append(Cell(entry, series, kind, of, make, choices, why[0], why[1]))

    pure, close = {"privacy": tables.PURE}, {"privacy": tables.APPROXIMATE}
    point, thresh = {"concepts": "POINT"}, {"concepts": "THRESH"}
    one = (points.exponential, thresholds.exponential, parities.exponential)
    basic, optimal = ([_each(make, accountant) for make in one] for accountant in ("basic", "optimal"))
    alone = ("", "")
    room, above = ("", ROOM), (ABOVE, ROOM)
    add(
        "direct sum",
        "single",
        "points",
        _hashed,
        lambda bits: 2.0**11,
        ("", ""),
        **pure,
        **point,
        hypotheses="improper",
    )
    add("direct sum", "single", "points", basic[0], _of_bits, alone, **pure, **point, hypotheses="proper")
    add("direct sum", "single", "thresholds", basic[1], _of_bits, room, **pure, **thresh)
    add("direct sum", "single", "parities", basic[2], _of_bits, alone, **pure, concepts="PAR")
    add("PointLearner", "flat", "points", _point_learner, None, ("", ""), **close, **point, setting=tables.PAC)
    add(
        "GenericLearner",
        "joint",
        "points",
        _generic_points,
        _few,
        (ABOVE, ""),
        **close,
        **point,
        setting=tables.AGNOSTIC,
    )
    add("GenericLearner", "joint", "thresholds", _generic_thresholds, _few, (ABOVE, SMALL_D), **close, **thresh)
    add("direct sum", "single", "thresholds", optimal[1], _of_bits, above, **close, concepts="general")
    add(
        "ParityLearner", "closed form", "parities", None, None, ("", SPARE), **close, concepts="PAR", setting=tables.PAC
    )
    add(
        "direct sum",
        "single",
        "parities",
        optimal[2],
        _of_bits,
        (ABOVE, ""),
        **close,
        concepts="PAR",
        setting=tables.AGNOSTIC,
    )
    return tuple(found)


CELLS = _cells()
