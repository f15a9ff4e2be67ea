"""dpjax's side of every contest: the same trials as the NumPy program of that name, for the same sizes."""

import functools
import math
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from dpjax.concepts import conjunctions as conjunction_concept
from dpjax.concepts import dichotomies
from dpjax.concepts import parities as parity_concept
from dpjax.concepts import points as point_concept
from dpjax.concepts import polygons as polygon_concept
from dpjax.concepts import rectangles as rectangle_concept
from dpjax.concepts import thresholds as threshold_concept
from dpjax.core.pytree import frozen, static
from dpjax.data.outcome import Status
from dpjax.data.points import Points
from dpjax.data.sample import bucket
from dpjax.data.weighted import Weighted, table
from dpjax.domains import order_statistics, scaled, wide
from dpjax.learners import label_private, pac, parities, points, rectangles, thresholds
from dpjax.mechanisms import exponential, laplace
from dpjax.multi import direct_sum
from dpjax.multi import pac as multi_pac
from dpjax.multi import parities as multi_parities
from dpjax.multi import points as multi_points
from dpjax.optimizers import interior_point, quantiles
from dpjax.relaxations import soft
from dpjax.sanitizers import dense
from dpjax.sanitizers import thresholds as threshold_sanitizers
from experiments.benchmarks import (
    floors,
    many,
    numpy_conjunctions,
    numpy_dense,
    numpy_intervals,
    numpy_many_thresholds,
    numpy_mechanisms,
    numpy_parities,
    numpy_points,
    numpy_polygons,
    numpy_quantiles,
    numpy_rectangles,
    numpy_sanitizers,
    numpy_supported,
)
from experiments.benchmarks.numpy_trials import ALPHA, DELTA, EPSILON

Trial = tuple[Callable[..., Any], Any]  # (run, params): run(key, params) is 1 for a success


def succeeds(run: Callable[..., Any], key: jax.Array, params: Any) -> jax.Array:
    """A trial that reports failures, turned into one that counts successes."""
    return (~run(key, params)["failed"]).astype(jnp.int32)


SINGLE = functools.partial(succeeds, pac.trial)
SLICES = functools.partial(succeeds, rectangles.trial)
MULTI = functools.partial(succeeds, multi_pac.trial)


def cell(learner: Any, distribution: Any, n: int, alpha: float = ALPHA, capacity: int | None = None) -> pac.Experiment:
    """The experiment on n examples, in their bucket or with room for more."""
    return pac.Experiment(learner=learner, distribution=distribution, n=n, alpha=alpha, capacity=capacity or bucket(n))


# ------------------------------------------------------------------------------------- thresholds, interior points


def threshold_learner(name: str, bits: int, epsilon: float = EPSILON) -> Any:
    """The learner that `numpy_trials`, `numpy_general` and `numpy_supported` imitate, at their epsilon."""
    if name == "erm":
        return thresholds.erm(bits=bits)
    if name == "rec_concave":
        return thresholds.rec_concave(
            bits=bits, epsilon=epsilon, delta=DELTA, alpha=2 * ALPHA, depth=2, calibration="printed"
        )
    if name == "supported":
        return thresholds.supported(bits=bits, epsilon=epsilon, delta=DELTA, alpha=2 * ALPHA)
    return getattr(thresholds, name)(bits=bits, epsilon=epsilon)


def threshold(name: str, d: int, n: int, capacity: int | None = None) -> Trial:
    """A threshold learner on the log-uniform distribution."""
    law = threshold_concept.log_uniform(bits=d)
    return SINGLE, cell(threshold_learner(name, d), law, n, capacity=capacity)


@frozen
class Scales:
    """Points floor(2^U), U uniform on [0, octaves), in increasing order; as whole rows, or as numbers of few digits."""

    octaves: Any
    limbs: int = static()
    scaled: bool = static(default=False)

    def sample(self, key: jax.Array, capacity: int, n: Any) -> Points:
        """n of these points."""
        n = jnp.asarray(n, jnp.int32)
        right_half = (order_statistics.sorted_uniforms(key, capacity, n) >> np.uint32(1)) | np.uint32(1 << 31)
        law = threshold_concept.LogUniform(
            target=jnp.zeros((self.limbs,), jnp.uint32), octaves=self.octaves, limbs=self.limbs
        )
        x: Any = law.scaled(right_half, n) if self.scaled else law.quantile(right_half)
        return Points(x=x, n_valid=n, ordered=True)


def interior_trial(key: jax.Array, params: pac.Experiment) -> jax.Array:
    """One run of an interior point solver on `Scales`: whether its answer lies between two points."""
    key_points, key_coins = jax.random.split(key)
    points = params.distribution.sample(key_points, params.capacity, params.n)
    outcome = params.learner(key_coins, points)
    at, answer = scaled.at(points.x), outcome.hypothesis
    inside = wide.less_equal(at(jnp.int32(0)), answer) & wide.less_equal(answer, at(points.n_valid - 1))
    return (inside & (outcome.status == Status.OK)).astype(jnp.int32)


def interior(name: str, d: int, n: int, capacity: int | None = None) -> Trial:
    """An interior point solver on points of every scale."""
    given: dict[str, Any] = {"bits": d, "epsilon": EPSILON}
    if name == "rec_concave":
        given |= {"delta": DELTA, "promise": n / 2}
    if name in ("tree_log", "supported_tree"):
        given |= {"delta": DELTA}
    solver = getattr(interior_point, name)(**given)
    limbs = wide.limbs_for(d)
    law = Scales(octaves=np.int32(d - 1), limbs=limbs, scaled=solver.takes_scaled and scaled.pays(limbs))
    return interior_trial, cell(solver, law, n, capacity=capacity)


def quantiles_trial(key: jax.Array, params: pac.Experiment, ranks: int = numpy_quantiles.RANKS) -> jax.Array:
    """One run of a mechanism for quantiles on `Scales`: whether no answer is off by more than `ranks` ranks."""
    key_points, key_coins = jax.random.split(key)
    points = params.distribution.sample(key_points, params.capacity, params.n)
    outcome = params.learner(key_coins, points)
    wanted = quantiles.nearest_rank(params.learner.fractions, points.n_valid)
    good = jnp.max(quantiles.rank_errors(points, outcome.hypothesis, wanted)) <= ranks
    return (good & (outcome.status == Status.OK)).astype(jnp.int32)


ON_NOISY_RANKS = functools.partial(quantiles_trial, ranks=numpy_supported.RANKS)


QUANTILES = ("approximate", "inverse_sensitivity", "joint", "permute_and_flip", "tree", "unbounded")


def evenly_spaced(name: str, d: int, m: int, n: int) -> Trial:
    """Quantiles by a method, on points of every scale."""
    given: dict[str, Any] = {"bits": d, "fractions": numpy_quantiles.fractions(m), "epsilon": EPSILON}
    if name == "joint":
        given |= {"candidates": 1}
    if name == "unbounded":
        given |= {"base": numpy_quantiles.BASE}
    mechanism = getattr(quantiles, name)(**given).focused(bucket(n))
    return quantiles_trial, cell(mechanism, Scales(octaves=np.int32(d - 1), limbs=wide.limbs_for(d)), n)


def supported_quantiles(name: str, d: int, m: int, n: int) -> Trial:
    """Quantiles by the keys that the data support, on points of every scale."""
    by_slices = name == "supported_slices"
    mechanism = (numpy_supported.slices_mechanism if by_slices else numpy_supported.quantile_mechanism)(d, m)
    limbs = wide.limbs_for(d)
    law = Scales(octaves=np.int32(d - 1), limbs=limbs, scaled=scaled.pays(limbs))
    return ON_NOISY_RANKS if by_slices else quantiles_trial, cell(mechanism, law, n)


# ------------------------------------------------------------------------------------------------ rectangles, points


def rectangle(axes: int, d: int, n: int) -> Trial:
    """Rectangles by slices, on all examples."""
    chosen = rectangles.from_plan(numpy_rectangles.plan(axes, d))
    low, high = rectangle_concept.centred(axes=axes, bits=d, mass=numpy_rectangles.MASS)
    return SINGLE, cell(chosen, rectangle_concept.uniform(bits=d, low=low, high=high), n)


def rectangle_by_slices(axes: int, d: int, n: int) -> Trial:
    """The same law without the examples that are in no slice."""
    return SLICES, rectangle(axes, d, n)[1]


def single_point(name: str, n: int) -> Trial:
    """A learner of one point."""
    given: dict[str, Any] = {"bits": numpy_points.BITS, "epsilon": EPSILON}
    if name == "learn_points":
        given |= {"delta": DELTA, "bottom": "zero"}
    learner = getattr(points, name)(**given)
    law = _points(numpy_points.POINTS[numpy_points.TARGET])
    return SINGLE, cell(learner, law, n, numpy_points.ALPHA, capacity=n)  # these learners need no bucket


def many_points(name: str, k: int, n: int) -> Trial:
    """A learner of k points."""
    given: dict[str, Any] = {"bits": numpy_points.BITS, "k": k, "epsilon": EPSILON}
    given |= {"threshold": numpy_points.sparse_threshold(k)} if name == "sparse_histogram_learner" else {"delta": DELTA}
    if name == "point_learner":
        given |= {"alpha": numpy_points.ALPHA, "beta": numpy_points.BETA}
    learner = getattr(multi_points, name)(**given)
    law = _points([numpy_points.POINTS[i] for i in numpy_points.targets(k)])
    return MULTI, cell(learner, law, n, numpy_points.ALPHA, capacity=n)


def _points(target: Any) -> Any:
    return point_concept.point_masses(
        bits=numpy_points.BITS, points=list(numpy_points.POINTS), masses=list(numpy_points.MASSES), target=target
    )


# ------------------------------------------------------------------------------------- parities, many thresholds


def parity(d: int, k: int, n: int) -> Trial:
    """ParityLearner on k random parities."""
    learner = multi_parities.parity_learner(bits=d, k=k, epsilon=EPSILON, delta=DELTA, beta=numpy_parities.BETA)
    random_targets = parity_concept.random_targets(jax.random.key(0), bits=d, k=k)
    return MULTI, cell(learner, parity_concept.uniform(bits=d, targets=random_targets), n)


def single_parity(d: int, n: int) -> Trial:
    """The exponential mechanism over all parities."""
    law = parity_concept.uniform_single(bits=d, target=(1 << d) * 2 // 3)
    return SINGLE, cell(parities.exponential(bits=d, epsilon=EPSILON), law, n)


def _many_thresholds(d: int, k: int) -> Any:
    """Uniform points with k labels."""
    uniform = threshold_concept.uniform(bits=d, target=0)
    return threshold_concept.several(uniform, bits=d, targets=numpy_many_thresholds.targets(d, k))


def summed(d: int, k: int, n: int) -> Trial:
    """k exponential mechanisms at epsilon / k."""
    learner = direct_sum.direct_sum(
        lambda each: thresholds.exponential(bits=d, epsilon=each.epsilon), k=k, epsilon=EPSILON
    )
    return MULTI, cell(learner, _many_thresholds(d, k), n)


def distance_trial(key: jax.Array, params: pac.Experiment) -> jax.Array:
    """One release of a distribution function: whether it is within alpha of that of the points."""
    key_coins, sample = pac.draw(key, params)
    outcome = params.learner(key_coins, sample)
    good = outcome.hypothesis.distance(sample) <= params.alpha
    return (good & (outcome.status == Status.OK)).astype(jnp.int32)


def distribution_function(d: int, levels: int, m: int, n: int) -> Trial:
    """A distribution function through private quantiles."""
    release = numpy_many_thresholds.sanitizer(d, levels, m, numpy_many_thresholds.cdf_epsilon(levels))
    law = threshold_concept.uniform(bits=d, target=0)
    return distance_trial, cell(release, law, n, numpy_many_thresholds.DISTANCE)


def generic_thresholds(d: int, k: int, levels: int, m: int, n: int) -> Trial:
    """GenericLearner on k thresholds."""
    return MULTI, cell(numpy_many_thresholds.generic_learner(d, k, levels, m), _many_thresholds(d, k), n)


# ------------------------------------------------------------------------------------- sanitizers, private labels


def database_trial(key: jax.Array, params: pac.Experiment) -> jax.Array:
    """One release of a database: whether every threshold has nearly the share that it has in the data, which need not be in order."""
    key_sample, key_coins = jax.random.split(key)
    points = params.distribution.in_order_drawn(key_sample, params.capacity, jnp.int32(params.n))
    data = _counted(points, params.learner.points)
    outcome = params.learner(key_coins, data)
    good = outcome.hypothesis.threshold_error(data, points=params.learner.points) <= params.alpha
    return (good & (outcome.status == Status.OK)).astype(jnp.int32)


def _counted(data: Points, points: int) -> Weighted:
    """How often each point of a small domain occurs, counted once for the sanitizer and for its error."""
    every = jnp.arange(points, dtype=jnp.uint32)[:, None]
    return Weighted(x=every, weights=table(data, points), n_valid=jnp.int32(points))


def noisy_counts(name: str, d: int, n: int) -> Trial:
    """A sanitizer of thresholds that counts every point, on uniform ones."""
    sanitizer = getattr(threshold_sanitizers, name)(bits=d, n=n, epsilon=EPSILON)
    law = threshold_concept.uniform(bits=d, target=0)
    return database_trial, cell(sanitizer, law, n, numpy_sanitizers.DISTANCE)


def all_databases(d: int, size: int, n: int) -> Trial:
    """The sanitizer of Blum, Ligett and Roth for thresholds, on uniform points."""
    sanitizer = dense.blr(queries=dense.thresholds(bits=d), rows=size, epsilon=EPSILON)
    return database_trial, cell(sanitizer, threshold_concept.uniform(bits=d, target=0), n, numpy_dense.DISTANCE)


def private_labels(d: int, n: int) -> Trial:
    """A label-private learner of thresholds on the log-uniform distribution."""
    learner = label_private.label_private(concepts=dichotomies.thresholds(bits=d), epsilon=EPSILON)
    return SINGLE, cell(learner, threshold_concept.log_uniform(bits=d), n)


def interval_search(name: str, d: int, n: int) -> Trial:
    """A search for a length on the log-uniform distribution."""
    return SINGLE, cell(numpy_intervals.learner(name, d), threshold_concept.log_uniform(bits=d), n)


def conjunction(d: int, n: int) -> Trial:
    """SetCoverLearner on uniform assignments."""
    law = conjunction_concept.product(bits=d, target=numpy_conjunctions.TARGET)
    return SINGLE, cell(numpy_conjunctions.learner(d), law, n)


def convex_polygon(d: int, k: int, n: int) -> Trial:
    """SetCoverLearner on uniform points of a grid, labelled by a regular polygon of k sides."""
    law = polygon_concept.uniform(bits=d, target=polygon_concept.regular(bits=d, sides=k))
    return SINGLE, cell(numpy_polygons.learner(d, k), law, n, numpy_polygons.ALPHA)


# ---------------------------------------------------------------------------------------------------- mechanisms


def noisy_zeros(key: jax.Array, values: jax.Array) -> jax.Array:
    """Laplace noise on zeros: whether the largest is above ln(count)/epsilon."""
    noisy = laplace.laplace(key, values, epsilon=EPSILON)
    return (jnp.max(noisy) > math.log(values.shape[0]) / EPSILON).astype(jnp.int32)


def one_of_five_best(key: jax.Array, scores: jax.Array) -> jax.Array:
    """The exponential mechanism among 0, 1, ...: whether it chooses one of the five best."""
    index = exponential.exponential(key, scores, epsilon=EPSILON).index
    return (index >= scores.shape[0] - 5).astype(jnp.int32)


def soft_choice(key: jax.Array, scores: jax.Array) -> jax.Array:
    """The exponential mechanism at a temperature among 0, 1, ...: whether one of the five best has more than half."""
    weights = soft.concrete(epsilon=EPSILON, temperature=numpy_mechanisms.TEMPERATURE)(key, scores)
    return (jnp.max(weights[-5:]) > 0.5).astype(jnp.int32)


@frozen
class SoftPoint:
    """A soft point of [0, 1] from uniform values: the median, or a threshold on values that are labelled by 1/2; see `near_half`."""

    name: str = static()
    n: int = static()

    def __call__(self, key: jax.Array) -> jax.Array:
        key_values, key_draw = jax.random.split(key)
        values = jax.random.uniform(key_values, (self.n,))
        given: Any = {"epsilon": EPSILON, "temperature": numpy_mechanisms.TEMPERATURE, "low": 0.0, "high": 1.0}
        if self.name == "soft quantile":
            return soft.quantile(**given, fraction=0.5)(key_draw, values)
        return soft.threshold(**given)(key_draw, values, (values < 0.5).astype(float))


def near_half(key: jax.Array, point: SoftPoint) -> jax.Array:
    """Whether a soft point is near 1/2."""
    return (jnp.abs(point(key) - 0.5) < numpy_mechanisms.NEAR[point.name]).astype(jnp.int32)


# ------------------------------------------------------------------------------------------------------ all of them


class Contest(NamedTuple):
    """What dpjax, NumPy, the floor and perhaps other packages run for the same sizes.

    Attributes:
        make: (*sizes) -> dpjax's trial.
        sizes: the names of the sizes.
        floor: (*sizes) -> the trial's random words and data movement alone.
        program: the name of NumPy's program.
    """

    make: Callable[..., Trial]
    sizes: tuple[str, ...]
    floor: Callable[..., Trial]
    program: str


def _sorting(d: int, n: int) -> Trial:
    return floors.sorting, floors.Sorting(n=n, limbs=wide.limbs_for(d))


def _words(count: int) -> Trial:
    return floors.words, floors.Words(count=count)


def _contests() -> Iterator[tuple[str, Contest]]:
    """Every contest with its name."""

    def contest(name: str, make: Any, sizes: str, floor: Any, program: str | None = None) -> tuple[str, Contest]:
        return name, Contest(make, tuple(sizes.split()), floor, program or name)

    for name in ("erm", "exponential", "binary_search", "rec_concave", "supported"):
        yield contest(name, functools.partial(threshold, name), "d n", _sorting)
    for name in ("exponential", "rec_concave"):
        yield contest(f"interior {name}", functools.partial(interior, name), "d n", _sorting)
    for name in ("tree_log", "supported_tree"):
        yield contest(name, functools.partial(interior, name), "d n", _sorting)
    for name, shown in (("rank_exponential", "quantiles"), *((each, f"quantiles {each}") for each in QUANTILES)):
        yield contest(shown, functools.partial(evenly_spaced, name), "d m n", lambda d, m, n: _sorting(d, n))
    for name in ("supported", "supported_slices"):
        made = functools.partial(supported_quantiles, name)
        yield contest(f"quantiles {name}", made, "d m n", lambda d, m, n: _sorting(d, n))
    yield contest("rectangles", rectangle, "D d n", lambda axes, d, n: _sorting(d, axes * n))
    yield contest(
        "rectangles by slices", rectangle_by_slices, "D d n", lambda axes, d, n: _sorting(d, axes * n), "rectangles"
    )
    bits = numpy_points.BITS
    for name, learner in (
        ("learn_points", "learn_points"),
        ("points exponential", "exponential"),
        ("hashed", "hashed"),
    ):
        yield contest(name, functools.partial(single_point, learner), "n", functools.partial(_sorting, bits))
    for name in ("point_learner", "histogram_learner", "sparse_histogram_learner"):
        yield contest(name, functools.partial(many_points, name), "k n", lambda k, n: _sorting(bits, n))
    yield contest(
        "parity_learner", parity, "d k n", lambda d, k, n: (floors.elimination, floors.System(d=d, rows=n, k=k))
    )
    yield contest("parities exponential", single_parity, "d n", lambda d, n: _words(n))
    yield contest("direct_sum", summed, "d k n", lambda d, k, n: _sorting(d, n))
    yield contest(
        "distribution function", distribution_function, "d levels m n", lambda d, levels, m, n: _sorting(d, n)
    )
    yield contest("generic", generic_thresholds, "d k levels m n", lambda d, k, levels, m, n: _sorting(d, n))
    for name in ("histogram", "tree"):
        yield contest(f"thresholds {name}", functools.partial(noisy_counts, name), "d n", _sorting)
    yield contest("blr", all_databases, "d R n", lambda d, size, n: _words(n))
    yield contest("label_private", private_labels, "d n", _sorting)
    for name in ("length_search", "power_search"):
        yield contest(name, functools.partial(interval_search, name), "d n", _sorting)
    yield contest("conjunction", conjunction, "d n", lambda d, n: _words(d * -(-n // 32)))
    yield contest("convex polygon", convex_polygon, "d k n", lambda d, k, n: _words(2 * n))
    yield contest(
        "elimination",
        many.elimination,
        "d rows k",
        lambda d, rows, k: (floors.elimination, floors.System(d=d, rows=rows, k=k)),
    )
    yield contest("tracing", many.tracing, "users columns", lambda users, columns: _words(users * columns))
    yield contest(
        "attack",
        many.attack,
        "users copies",
        lambda users, copies: (floors.permutation, floors.Words(count=(users + 1) * copies)),
    )
    yield contest("laplace", lambda count: (noisy_zeros, jnp.zeros(count)), "count", _words)
    yield contest(
        "exponential mechanism",
        lambda count: (one_of_five_best, jnp.arange(count, dtype=jnp.int32)),
        "candidates",
        lambda count: _words(1),
    )
    yield contest(
        "soft exponential mechanism",
        lambda count: (soft_choice, jnp.arange(count, dtype=jnp.int32)),
        "candidates",
        _words,
    )
    for name in ("soft quantile", "soft threshold"):
        yield contest(name, lambda n, name=name: (near_half, SoftPoint(name=name, n=n)), "n", lambda n: _sorting(31, n))


CONTESTS = dict(_contests())


def label(name: str, sizes: tuple[Any, ...]) -> str:
    """A cell of a contest, such as "d=64, n=2000"."""
    return ", ".join(f"{letter}={size}" for letter, size in zip(CONTESTS[name].sizes, sizes, strict=True))
