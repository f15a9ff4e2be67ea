"""The algorithms that `test_conformance.py` runs through one list of tests, each in one small configuration.

One `Entry` here adds an algorithm.
"""

import dataclasses
import functools
import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import builders
import jax
import jax.numpy as jnp
import numpy as np

from dpjax import MultiSample, Points, Sample
from dpjax.accounting import ADD_OR_REMOVE_ONE, Guarantee
from dpjax.concepts import dichotomies
from dpjax.concepts import rectangles as rectangle_concept
from dpjax.concepts.plane import triangles
from dpjax.concepts.plane.regions import Region, fraction_lines
from dpjax.core import arguments
from dpjax.data.assignments import Assignments
from dpjax.domains import ordered, wide
from dpjax.learners import (
    conjunctions,
    halfplanes,
    interior,
    label_private,
    parities,
    points,
    polygons,
    rectangles,
    set_cover,
    thresholds,
)
from dpjax.mechanisms import (
    above_threshold,
    choosing,
    exponential,
    exponential_piecewise,
    geometric,
    laplace,
    one_sided_geometric,
    partition_selection,
    permute_and_flip_piecewise,
    report_noisy_max,
    stability,
    supported,
)
from dpjax.multi import direct_sum, generic, reductions
from dpjax.multi import parities as k_parities
from dpjax.multi import points as k_points
from dpjax.optimizers import interior_point, quantiles, quasi_concave
from dpjax.optimizers.interior_point import flat_tree_planning, planning, tree_planning
from dpjax.optimizers.quantiles.unbounded import geometric_grid
from dpjax.optimizers.quasi_concave import Split
from dpjax.relaxations import learned_gate, learned_noise, learned_selection
from dpjax.sanitizers import cdf, dense
from dpjax.sanitizers import points as point_sanitizers
from dpjax.sanitizers import thresholds as threshold_sanitizers
from dpjax.verify.plain import exponential as exponential_twin
from dpjax.verify.plain import halfplanes as halfplanes_twin
from dpjax.verify.plain import interior as interior_twin
from dpjax.verify.plain import point_learner as k_points_twin
from dpjax.verify.plain import rec_concave as rec_concave_twin
from dpjax.verify.plain.above_threshold import first_above
from dpjax.verify.plain.amplified import amplified_law
from dpjax.verify.plain.binary_search import binary_search_law
from dpjax.verify.plain.choosing import choosing_law
from dpjax.verify.plain.dense import blr_law
from dpjax.verify.plain.interval_search import length_search_law, power_search_law
from dpjax.verify.plain.label_private import boxes, in_box, label_private_law
from dpjax.verify.plain.laplace import laplace_tail
from dpjax.verify.plain.learn_points import learn_points_law
from dpjax.verify.plain.parity_learner import inner, parity_learner_law
from dpjax.verify.plain.partition_selection import keep_probability
from dpjax.verify.plain.quantiles import (
    approximate_law,
    direct_laws,
    in_order,
    inverse_sensitivity_law,
    joint_law,
    permute_and_flip_laws,
    rank_exponential_laws,
    supported_laws,
    unbounded_laws,
)
from dpjax.verify.plain.report_noisy_max import permute_and_flip_law
from dpjax.verify.plain.set_cover import greedy_cover, set_cover_law
from dpjax.verify.plain.stability import stability_law
from dpjax.verify.plain.supported import supported_law, supported_thresholds_law
from dpjax.verify.plain.tree_score import flat_tree_score_law, supported_tree_law, tree_score_law


def first_limb(hypothesis: Any) -> np.ndarray:
    """The place in the pmf of an integer output below 2^32."""
    return np.asarray(hypothesis)[..., -1]


def pmf(algorithm: Any, data: Any) -> Any:
    """The law of an algorithm whose outputs can be listed."""
    return algorithm.pmf(data)


@dataclasses.dataclass(frozen=True)
class Entry:
    """One algorithm as the conformance suite meets it.

    Attributes:
      name: shown by pytest.
      make: makes the algorithm for an epsilon (which may be traced).
      data: makes the data it runs on; if they have rows, they can be `padded`.
      epsilon: one at which outcomes, bottom among them, are neither nearly certain nor nearly impossible.
      private: whether it promises a finite epsilon at all.
      sweeps: whether `epsilon` is a leaf that may be traced and is the whole budget.
      law: (algorithm, data) -> P of every label of an output, then of bottom; None where no law is known.
      place: maps (batched) outputs to their labels.
      single: whether every label stands for one output, so that `log_prob` is the logarithm of its probability.
      events: whether `probability` takes intervals.
      event: (an interval, its labels); the middle half of the outputs if absent.
      sized: whether outputs have as many slots as the data have rows.
      twin: the law by the plain twin, if it has one.
      error: the one given to `success_probability`; None where the family has no such notion.
      alpha: the one given to `sample_size`; None where no theorem gives a sample size, or none is tested here.
      wrong: values that are not data of this algorithm.
      law_of: the entry whose law is the same function; this one's forms, derivatives and batches are then tested only with -m slow.
      smooth_at: the epsilon at which derivatives are taken, if the law jumps near `epsilon`.
      slow: whether it is much like another entry, or tested elsewhere; run with -m slow.
      thorough: the same for a law that takes only seconds to compile; run with -m "not slow".
    """

    name: str
    make: Callable[[Any], Any]
    data: Callable[[], Any]
    epsilon: float
    private: bool = True
    sweeps: bool = True
    law: Callable[[Any, Any], Any] | None = pmf
    place: Callable[[Any], np.ndarray] = first_limb
    single: bool = True
    events: bool = True
    event: tuple[Any, Any] | None = None
    sized: bool = False
    twin: Callable[["Entry"], np.ndarray] | None = None
    error: float | None = 0.3
    alpha: float | None = 0.2
    wrong: tuple[Any, ...] = (None, [1, 2], "data")
    law_of: str = ""
    smooth_at: float | None = None
    slow: bool = False
    thorough: bool = False

    @property
    def smooth_epsilon(self) -> float:
        """The epsilon at which derivatives are taken."""
        return self.epsilon if self.smooth_at is None else self.smooth_at


def _labelled(data: Any) -> tuple[list[int], list[Any]]:
    """The points of the valid rows as plain integers, and their labels, one or k each."""
    n = int(data.n_valid)
    labels = data.labels if isinstance(data, MultiSample) else data.y
    return wide.to_ints(data.x)[:n], np.asarray(labels)[:n].astype(int).tolist()


def _ending(law: Any) -> np.ndarray:
    """The pmf of a law that never gives bottom."""
    return np.append(law, 0.0)


def _made(entry: "Entry") -> Any:
    """The algorithm with its numbers in float64."""
    with jax.enable_x64(True):
        return entry.make(entry.epsilon)


def _listed(law: Any, outputs: int) -> np.ndarray:
    """A law of `verify.plain.rec_concave` as a pmf."""
    return np.array([*(rec_concave_twin.mass(law, j, j) for j in range(outputs)), law[1]])


def _exponential_twin(entry: "Entry") -> np.ndarray:
    return _ending(exponential_twin.threshold_law(*_labelled(entry.data()), 6, entry.epsilon))


def _binary_search_twin(entry: "Entry") -> np.ndarray:
    return _ending(binary_search_law(*_labelled(entry.data()), 6, entry.epsilon / 7))


def _rec_concave_twin(calibration: str) -> Callable[["Entry"], np.ndarray]:
    def pmf(entry: "Entry") -> np.ndarray:
        xs, ys = _labelled(entry.data())
        law = rec_concave_twin.learn_thresholds_law(xs, ys, 6, entry.epsilon, 0.2, 0.8, 2, calibration)
        return _listed(law, 65)

    return pmf


def _uneven(epsilon: Any) -> Split:
    """All of epsilon, and a delta of 3/16 in all, in uneven shares; sixteenths, so that they add up exactly."""
    xp = jnp if arguments.is_traced(epsilon) else np
    shares = xp.stack([xp.asarray(epsilon * part) for part in (6 / 16, 4 / 16, 5 / 16, 1 / 16)])
    return Split(choices=shares[:2], tests=shares[2:][None], deltas=np.array([[0.125, 0.0625]]))


def _split_twin(entry: "Entry") -> np.ndarray:
    xs, ys = _labelled(entry.data())
    quality = rec_concave_twin.threshold_quality(xs, ys)
    law = rec_concave_twin.split_law(*quality, 2**6, len(xs), Fraction(2, 5), _uneven(entry.epsilon))
    return _listed(law, 65)


def _learn_thresholds_split(epsilon: Any) -> Any:
    return thresholds.rec_concave(bits=6, epsilon=epsilon, delta=0.2, alpha=0.8, depth=2, split=_uneven(epsilon))


def _learn_thresholds(calibration: str) -> Callable[[Any], Any]:
    return lambda e: thresholds.rec_concave(bits=6, epsilon=e, delta=0.2, alpha=0.8, depth=2, calibration=calibration)


def _interval_search_twin(law: Callable[..., list[float]], parts: int) -> Callable[["Entry"], np.ndarray]:
    def pmf(entry: "Entry") -> np.ndarray:
        examples, made = list(zip(*_labelled(entry.data()), strict=True)), _made(entry)
        unit = 2 / (entry.epsilon / 4)
        threshold = 2 + unit * math.log(1 / (2 * 0.2 / parts))
        given = {
            "alpha": 0.8,
            "comparison_epsilon": float(made.comparison_epsilon()),
            "choice_epsilon": entry.epsilon / 8,
        }
        return np.array(law(examples, 6, keep=lambda gap: laplace_tail((threshold - gap) / unit), **given))

    return pmf


def _two_wrong_labels() -> Sample:
    """Ones below 20, zeros from 20 on, except for two wrong labels; 6 bits."""
    xs = np.arange(0, 50) * 5 % 64
    return builders.sample_of(xs, (xs < 20) ^ np.isin(xs, [5, 50]), 6, 63)


def _threshold_supported_twin(entry: "Entry") -> np.ndarray:
    xs, ys = _labelled(entry.data())
    return np.array(supported_thresholds_law(xs, ys, 6, entry.epsilon, 0.1, math.floor(0.45 * len(xs))))


def _threshold_amplified_twin(entry: "Entry") -> np.ndarray:
    xs, ys = _labelled(entry.data())
    correct = [sum((x < j) == y for x, y in zip(xs, ys, strict=True)) for j in range(65)]
    budget = _made(entry).optimizer.budget
    law = amplified_law(range(65), correct, 64, promise=len(xs), alpha=0.4, budget=budget)
    return np.array([law.get(x, 0.0) for x in [*range(65), None]])


THRESHOLDS = [
    Entry("thresholds.erm", lambda _: thresholds.erm(bits=6), builders.mixed_sample, 1.0, private=False),
    Entry(
        "thresholds.exponential",
        lambda e: thresholds.exponential(bits=6, epsilon=e),
        builders.mixed_sample,
        0.6,
        twin=_exponential_twin,
        law_of="quasi_concave.exponential",
        thorough=True,
    ),
    Entry(
        "thresholds.binary_search",
        lambda e: thresholds.binary_search(bits=6, epsilon=e),
        builders.mixed_sample,
        3.0,
        twin=_binary_search_twin,
        thorough=True,
    ),
    Entry(
        "thresholds.binary_search with delta",
        lambda e: thresholds.binary_search(bits=6, epsilon=e, delta=0.1),
        builders.mixed_sample,
        2.0,
        slow=True,
    ),
    Entry(
        "thresholds.power_search",
        lambda e: thresholds.power_search(bits=6, epsilon=e, delta=0.2, alpha=0.8),
        builders.mixed_sample,
        5.0,
        twin=_interval_search_twin(power_search_law, 2),
        alpha=None,  # a delta so large leaves no room for small failure probabilities
        slow=True,  # test_verify_learners.py verifies it over all neighbours
    ),
    Entry(
        "thresholds.length_search",
        lambda e: thresholds.length_search(bits=6, epsilon=e, delta=0.2, alpha=0.8),
        builders.mixed_sample,
        5.0,
        twin=_interval_search_twin(length_search_law, 3),
        alpha=None,
        slow=True,
    ),
    Entry(
        "thresholds.supported",
        lambda e: thresholds.supported(bits=6, epsilon=e, delta=0.1, alpha=0.9),
        _two_wrong_labels,
        4.0,
        twin=_threshold_supported_twin,
        alpha=0.9,
    ),
    Entry(
        "thresholds.amplified",
        lambda e: thresholds.amplified(bits=6, epsilon=e, delta=0.5, alpha=0.8, beta=0.9, depth=1),
        _two_wrong_labels,
        6.0,
        twin=_threshold_amplified_twin,
        alpha=None,  # margins for this beta have no room for smaller ones
        slow=True,
    ),
    Entry(
        "thresholds.rec_concave",
        _learn_thresholds("proved"),
        builders.mixed_sample,
        5.0,
        twin=_rec_concave_twin("proved"),
        alpha=0.8,  # its own alpha
        law_of="quasi_concave.rec_concave",
        thorough=True,
    ),
    Entry(
        "thresholds.rec_concave with a split",
        _learn_thresholds_split,
        builders.mixed_sample,
        5.0,
        twin=_split_twin,
        alpha=0.8,
        law_of="quasi_concave.rec_concave",
        slow=True,
    ),
    Entry(
        "thresholds.rec_concave as printed",
        _learn_thresholds("printed"),
        builders.mixed_sample,
        5.0,
        twin=_rec_concave_twin("printed"),
        alpha=0.8,
        slow=True,
    ),
]


# ------------------------------------------------------------------------------------------------------------ points


def _point_sample() -> Sample:
    examples = [(3, 1)] * 9 + [(3, 0)] * 2 + [(1, 1)] * 3 + [(6, 0)] * 4 + [(0, 0), (0, 1)]
    return builders.sample_of(*zip(*examples, strict=True), 2, 31)  # 3 bits


def _shuffled_point_sample() -> Sample:
    examples = [(1, 1), (3, 1), (6, 0)] * 3 + [(3, 1)] * 6 + [(0, 0), (3, 0), (0, 1), (3, 0), (6, 0)]
    return builders.sample_of(*zip(*examples, strict=True), 2, 31)


def _place_of_point(hypothesis: Any) -> np.ndarray:
    return np.where(hypothesis.zero, 8, np.asarray(hypothesis.position)[..., -1])


def _learn_points_twin(bottom: str) -> Callable[[Entry], np.ndarray]:
    def pmf(entry: Entry) -> np.ndarray:
        examples, unit = list(zip(*_labelled(entry.data()), strict=True)), 2 / entry.epsilon
        threshold = 2 + unit * math.log(1 / (2 * 0.2))
        return _ending(learn_points_law(examples, 8, scale=unit, threshold=threshold, bottom=bottom))

    return pmf


def _point_twin(entry: Entry) -> np.ndarray:
    examples = list(zip(*_labelled(entry.data()), strict=True))
    return _ending(exponential_twin.point_law(examples, 8, entry.epsilon))


POINTS = [
    Entry(
        "points.learn_points",
        lambda e: points.learn_points(bits=3, epsilon=e, delta=0.2),
        _point_sample,
        1.0,
        place=_place_of_point,
        twin=_learn_points_twin("random"),
        alpha=None,  # 8 points are too few for a random one after bottom
        thorough=True,  # test_points.py holds it to its plain twin and verifies it
    ),
    Entry(
        "points.learn_points, zero for bottom",
        lambda e: points.learn_points(bits=3, epsilon=e, delta=0.2, bottom="zero"),
        _point_sample,
        1.0,
        place=_place_of_point,
        twin=_learn_points_twin("zero"),
        slow=True,
    ),
    Entry(
        "points.exponential",
        lambda e: points.exponential(bits=3, epsilon=e),
        _point_sample,
        0.6,
        place=_place_of_point,
        twin=_point_twin,
    ),
]

# ------------------------------------------------------------------------------------------------------- label privacy

_PUBLIC = [3, 11, 20, 20, 37, 50, 61]


def _threshold_of_dichotomies_twin(entry: Entry, named: Any = None) -> np.ndarray:
    xs, ys = _labelled(entry.data())
    law = label_private_law(zip(xs, ys, strict=True), named or xs, range(65), lambda j, x: x < j, entry.epsilon)
    return _ending([law.get(j, 0.0) for j in range(65)])


def _parity_of_dichotomies_twin(entry: Entry) -> np.ndarray:
    xs, ys = _labelled(entry.data())
    law = label_private_law(zip(xs, ys, strict=True), xs, range(64), lambda v, x: inner(v, x) == 1, entry.epsilon)
    return _ending([law.get(v, 0.0) for v in range(64)])


def _segment_of_dichotomies_twin(entry: Entry) -> np.ndarray:
    data = entry.data()
    xs, ys = np.asarray(data.x)[: data.n_valid, :, 0].tolist(), np.asarray(data.y)[: data.n_valid].tolist()
    law = label_private_law(zip(xs, ys, strict=True), xs, boxes(8, 1), in_box, entry.epsilon)
    full = [law.get(((i // 8, i % 8),), 0.0) if i // 8 <= i % 8 else 0.0 for i in range(64)]
    return _ending([*full, law[((7, 0),)]])


def _six_parities() -> Sample:
    """Points in a span of dimension 3 of {0,1}^6, labelled by the parity 21 with an eighth of the labels wrong."""
    xs = [4, 9, 48, 13, 52] * 8
    return builders.sample_of(xs, [inner(21, x) ^ (i % 8 == 0) for i, x in enumerate(xs)], 6, 63)


LABEL_PRIVATE = [
    Entry(
        "label_private.thresholds",
        lambda e: label_private.label_private(concepts=label_private.thresholds(bits=6), epsilon=e),
        builders.mixed_sample,
        0.4,
        twin=_threshold_of_dichotomies_twin,
        law_of="label_private.parities",
        thorough=True,
    ),
    Entry(
        "label_private.semi_private",
        lambda e: label_private.semi_private(
            concepts=label_private.thresholds(bits=6), public=builders.points_of(_PUBLIC, 6), epsilon=e
        ),
        builders.mixed_sample,
        0.4,
        twin=lambda entry: _threshold_of_dichotomies_twin(entry, _PUBLIC),
        alpha=None,  # 7 public points are too few for a promise
        law_of="label_private.parities",
        thorough=True,
    ),
    Entry(
        "label_private.parities",
        lambda e: label_private.label_private(concepts=label_private.parities(bits=6, rank=4), epsilon=e),
        _six_parities,
        0.2,
        twin=_parity_of_dichotomies_twin,
    ),
    Entry(
        "label_private.rectangles",
        lambda e: label_private.label_private(concepts=label_private.rectangles(bits=3, axes=1, most=7), epsilon=e),
        lambda: _segment(),
        0.4,
        place=lambda hypothesis: _place_of_segment(hypothesis),
        events=False,
        twin=_segment_of_dichotomies_twin,
        law_of="label_private.parities",
        thorough=True,
    ),
    Entry(
        "label_private.points",
        lambda e: label_private.label_private(concepts=label_private.points(bits=3), epsilon=e, unlabelled=6),
        _shuffled_point_sample,
        0.6,
        place=_place_of_point,
        alpha=None,  # 6 unlabelled points are too few for a promise
        law_of="label_private.parities",
        thorough=True,
    ),
]

# ---------------------------------------------------------------------------------------------------------- parities

PARITIES = [
    Entry(
        "parities.exponential",
        lambda e: parities.exponential(bits=6, epsilon=e),
        lambda: builders.mixed_sample(3),
        0.4,
        twin=lambda entry: _ending(exponential_twin.parity_law(*_labelled(entry.data()), 6, entry.epsilon)),
    ),
]

# --------------------------------------------------------------------------------------------------- interior points

_CLUSTERS = [5, 6, 7, 8, 8, 9] + [20] * 9 + [21] * 3 + [24] * 5 + [28] * 2 + [31] * 14


def _clusters() -> Points:
    return builders.points_of(_CLUSTERS, 5, 63)


def _depth_twin(entry: Entry) -> np.ndarray:
    return _ending(exponential_twin.depth_law(_CLUSTERS, 32, entry.epsilon))


def _depth_rec_concave_twin(entry: Entry) -> np.ndarray:
    each = rec_concave_twin.per_mechanism(5, *map(rec_concave_twin.exact, (entry.epsilon, 0.2)), 2, "proved")
    depths = [exponential_twin.depth(_CLUSTERS, z) for z in range(32)]
    return _listed(rec_concave_twin.rec_concave_law(range(32), depths, 31, 15, 0.8, *each, 2, "proved"), 32)


def _small_plan(epsilon: Any) -> Any:
    """A plan whose slices fit into a few dozen points; it does not claim to find anything."""
    budget = planning.Budget(epsilon, 0.2, epsilon, 0.2, epsilon, epsilon, None)
    plan = planning.plan(
        budget, bits=8, depth=1, beta=0.1, accountant="basic", guarantee=Guarantee.none(ADD_OR_REMOVE_ONE)
    )
    return dataclasses.replace(plan, m1=4, m2=plan.K)


def _small_tree_log(epsilon: Any) -> Any:
    return interior_point.tree_log_planned(bits=5, plan=_small_plan(epsilon))


_OFFSETS = {"a": 1.7, "alpha": 0.1, "p": 0.6, "tau": 0.05}

_CURVE = {"share": 0.52, "rest": 0.1, "knee": 0.5, "width": 0.5}

INTERIOR_POINTS = [
    Entry(
        "interior_point.flat_tree_score",
        lambda e: interior_point.flat_tree_score(
            bits=5,
            epsilon=e,
            n=36,
            offsets=tree_planning.offsets(**_OFFSETS),
            curve=flat_tree_planning.curve(**_CURVE),
        ),
        _clusters,
        0.1,
        twin=lambda entry: _ending(
            flat_tree_score_law(_CLUSTERS, 5, entry.epsilon, tuple(_OFFSETS.values()), tuple(_CURVE.values()), 36)
        ),
        error=0.0,
        alpha=None,  # it is made for one fixed number of points
        slow=True,  # test_flat_tree_score.py verifies it over all neighbours and holds it to its law
    ),
    Entry(
        "interior_point.tree_score",
        lambda e: interior_point.tree_score(bits=5, epsilon=e, offsets=tree_planning.offsets(**_OFFSETS)),
        _clusters,
        0.1,
        twin=lambda entry: _ending(tree_score_law(_CLUSTERS, 5, entry.epsilon, **_OFFSETS)),
        error=0.0,
        alpha=None,  # a programme over all data that takes seconds: see test_tree_score.py
    ),
    Entry(
        "interior_point.supported_tree",
        lambda e: interior_point.supported_tree(bits=5, epsilon=e, delta=0.1),
        _clusters,
        0.3,
        twin=lambda entry: np.array(supported_tree_law(_CLUSTERS, 5, entry.epsilon, 0.1)),
        error=0.0,
        alpha=0.0,
    ),
    Entry(
        "interior_point.exponential",
        lambda e: interior_point.exponential(bits=5, epsilon=e),
        _clusters,
        0.3,
        twin=_depth_twin,
        error=0.0,
        alpha=0.0,
        law_of="quasi_concave.exponential",
        thorough=True,
    ),
    Entry(
        "interior_point.rec_concave",
        lambda e: interior_point.rec_concave(bits=5, epsilon=e, delta=0.2, promise=15.0, alpha=0.8),
        _clusters,
        0.6,
        twin=_depth_rec_concave_twin,
        error=0.0,
        alpha=None,  # the promise is too small for any failure probability
        law_of="quasi_concave.rec_concave",
        thorough=True,
    ),
    Entry(
        "interior_point.tree_log",
        _small_tree_log,
        _clusters,
        0.6,
        twin=lambda entry: builders.tree_log_pmf(_CLUSTERS, 5, _small_plan(entry.epsilon)),
        sweeps=False,
        error=0.0,
        alpha=None,
    ),
]

# -------------------------------------------------------------------------------------------- quasi-concave functions


_STARTS, _HEIGHTS = [0, 5, 9, 14, 20], [1.0, 6.0, 11.0, 7.0, 2.0]


def _hill() -> Any:
    pieces = ordered.from_breakpoints(_STARTS, _HEIGHTS, 32, beyond=0.0)
    return quasi_concave.problem(pieces, promise=11.0, alpha=0.5)


def _hill_twin(entry: Entry) -> np.ndarray:
    lengths = np.diff([*_STARTS, 33])
    return _ending(exponential_twin.exponential_law(np.repeat(_HEIGHTS, lengths), entry.epsilon / 2))


def _hill_rec_concave_twin(entry: Entry) -> np.ndarray:
    each = rec_concave_twin.per_mechanism(5, *map(rec_concave_twin.exact, (entry.epsilon, 0.2)), 2, "proved")
    return _listed(rec_concave_twin.rec_concave_law(_STARTS, _HEIGHTS, 32, 11, 0.5, *each, 2, "proved"), 33)


def _amplified_twin(entry: Entry) -> np.ndarray:
    made = _made(entry)
    law = amplified_law(_STARTS, _HEIGHTS, 32, promise=11.0, alpha=0.5, budget=made.budget)
    return np.array([law.get(x, 0.0) for x in [*range(33), None]])


QUASI_CONCAVE = [
    Entry(
        "quasi_concave.exponential",
        lambda e: quasi_concave.exponential(bits=5, epsilon=e),
        _hill,
        0.4,
        twin=_hill_twin,
    ),
    Entry(
        "quasi_concave.rec_concave",
        lambda e: quasi_concave.rec_concave(bits=5, epsilon=e, delta=0.2, depth=2),
        _hill,
        0.4,
        twin=_hill_rec_concave_twin,
    ),
    Entry(
        "quasi_concave.amplified",
        lambda e: quasi_concave.amplified(bits=5, epsilon=e, delta=0.5, beta=0.9, depth=1),
        _hill,
        20.0,
        twin=_amplified_twin,
        alpha=None,  # it needs a larger promise than this beta leaves room for
        thorough=True,
    ),
]

# -------------------------------------------------------------------------------------------------------- k concepts


def _k_points() -> MultiSample:
    xs = [2] * 9 + [0] * 5 + [3] * 2
    return builders.multi_sample_of(xs, [[int(x == 2)] for x in xs], 2, 31)


def _place_of_k_points(hypothesis: Any) -> np.ndarray:
    """One concept over four points, then all-zero."""
    return np.where(hypothesis.zero[..., 0], 4, np.asarray(hypothesis.position)[..., 0, -1])


def _k_point_twin(law_of: Callable[[Any, list[Any], dict[str, float]], Any]) -> Callable[[Entry], np.ndarray]:
    """A twin made from (learner, examples, thresholds) -> law."""

    def pmf(entry: Entry) -> np.ndarray:
        xs, labels = _labelled(entry.data())
        made, examples = _made(entry), [(x, (int(label[0]),)) for x, label in zip(xs, labels, strict=True)]
        low, high, heavy = (float(number) for number in (made.counts.low, made.counts.high, made.heavy))
        law = law_of(made, examples, {"low": low, "high": max(high, heavy)})
        return np.array([law.get(outcome, 0.0) for outcome in [*((x,) for x in range(4)), (None,), None]])

    return pmf


def _many_labelled_points() -> MultiSample:
    """Points two of whose counts are about 12, the threshold at epsilon = 4, which absent labelled points hardly ever reach."""
    xs = [0] * 12 + [2] * 11 + [3] * 6
    return builders.multi_sample_of(xs, [[int(x != 0)] for x in xs], 2, 31)


def _sparse_histogram_twin(entry: Entry) -> np.ndarray:
    xs, labels = _labelled(entry.data())
    made, examples = _made(entry), [(x, (int(label[0]),)) for x, label in zip(xs, labels, strict=True)]
    given = {"bits": 2, "threshold": int(made.counts.threshold), "scale": 2 / float(made.counts.epsilon)}
    law = k_points_twin.sparse_histogram_law(examples, **given)
    return np.array([law.get(outcome, 0.0) for outcome in [*((x,) for x in range(4)), (None,), None]])


def _histogram_law(made: Any, examples: list[Any], limits: dict[str, float]) -> Any:
    return k_points_twin.histogram_law(examples, **limits, scale=2 / float(made.counts.epsilon))


def _point_learner_law(made: Any, examples: list[Any], limits: dict[str, float]) -> Any:
    unit = 4 / float(made.epsilon)
    threshold = 2 + unit * math.log(1 / float(made.delta))
    keep = lambda gap: laplace_tail((threshold - gap) / unit)  # noqa: E731
    return k_points_twin.point_learner_law(examples, **limits, scale=unit, keep=keep)


def _column_twin(entry: Entry) -> np.ndarray:
    xs, labels = _labelled(entry.data())
    return _ending(exponential_twin.threshold_law(xs, [label[0] for label in labels], 2, entry.epsilon))


def _k_rows(low: int, high: int, k: int) -> tuple[Any, Any]:
    return tuple(wide.from_ints([end] * k, 32) for end in (low, high))


MANY = [
    Entry(
        "multi.points.histogram_learner",
        lambda e: k_points.histogram_learner(bits=2, k=1, epsilon=e, delta=0.3),
        _k_points,
        0.3,
        place=_place_of_k_points,
        twin=_k_point_twin(_histogram_law),
        event=(_k_rows(1, 3, 1), slice(1, 3)),
        slow=True,  # test_multi_points.py holds its successes to its law
    ),
    Entry(
        "multi.points.sparse_histogram_learner",
        lambda e: k_points.sparse_histogram_learner(bits=2, k=1, epsilon=e),
        _many_labelled_points,
        4.0,
        place=_place_of_k_points,
        twin=_sparse_histogram_twin,
        event=(_k_rows(1, 3, 1), slice(1, 3)),
        slow=True,  # test_sparse_histogram.py holds it to its law
    ),
    Entry(
        "multi.points.point_learner",
        lambda e: k_points.point_learner(bits=2, k=1, epsilon=e, delta=0.4, alpha=0.5, beta=0.9),
        _k_points,
        1.5,
        place=_place_of_k_points,
        twin=_k_point_twin(_point_learner_law),
        event=(_k_rows(1, 3, 1), slice(1, 3)),
        alpha=None,  # no sample size for a beta below its own
        slow=True,  # test_verify_multi.py and test_multi_points.py hold it to its law
    ),
    Entry(
        "multi.direct_sum",
        lambda e: direct_sum.of(thresholds.exponential(bits=2, epsilon=e), k=1),
        _k_points,
        0.3,
        place=lambda hypothesis: np.asarray(hypothesis)[..., 0, -1],
        event=(_k_rows(1, 3, 1), slice(1, 3)),
        twin=_column_twin,
        sweeps=False,  # its epsilon is that of its learner
        thorough=True,  # test_direct_sum.py holds it to the law of each concept
    ),
]

# -------------------------------------------------------------------------------------------------------- mechanisms


def _noise(name: str, make: Callable[[Any], Any], ends: list[Any], kind: Any, **given: Any) -> Entry:
    """Noise on the number 3. Labels are the intervals between these ends."""
    limits = np.asarray(ends, kind)

    def law(mechanism: Any, data: Any) -> Any:
        each = jax.vmap(lambda low, high: mechanism.probability(data, (low, high))[0])
        return jnp.append(each(limits[:-1], limits[1:]), 0.0)

    return Entry(
        f"mechanisms.{name}",
        make,
        lambda: kind(3),
        law=law,
        place=lambda released: np.searchsorted(limits[1:-1], released, side="right"),
        single=False,
        event=((limits[2], limits[6]), slice(2, 6)),
        alpha=None,
        wrong=(None, "data"),
        **{"epsilon": 0.7, "error": 1.5, **given},
    )


def _choice(name: str, make: Callable[[Any], Any], scores: tuple[int, ...] = (3, 5, 0, 4, 5), **given: Any) -> Entry:
    """The choice of one of five candidates."""
    common = {"epsilon": 0.7, "error": 1.0, "alpha": None, "wrong": (None, "data")}
    return Entry(
        f"mechanisms.{name}",
        make,
        lambda: np.array(scores, np.int32),
        place=np.asarray,
        event=((1, 3), slice(1, 3)),
        **{**common, **given},
    )


def _small_pieces(last: int = 9) -> Any:
    """A quality on {0, ..., last}."""
    return ordered.from_breakpoints([0, 2, 5], [1.0, 4.0, 3.0], last, beyond=0.0)


def _each_point(mechanism: Any, data: Any, last: int = 9) -> Any:
    """The pmf, point by point: the lengths of traced pieces are unknown."""
    ends = wide.from_ints(range(last + 2), 32)
    law = jax.vmap(lambda low, high: mechanism.probability(data, (low, high))[0])(ends[:-1], ends[1:])
    return jnp.append(law, 0.0)


def _stability_twin(entry: Entry) -> np.ndarray:
    unit = 2 / entry.epsilon
    return np.array(stability_law(entry.data(), scale=unit, threshold=2 + unit * math.log(1 / (2 * 0.2))))


def _partition_twin(entry: Entry) -> np.ndarray:
    first, second = (keep_probability(int(count), entry.epsilon, 0.01) for count in entry.data())
    return _ending(np.outer([1 - second, second], [1 - first, first]).reshape(4))


def _learned_selection(epsilon: Any) -> learned_selection.NoisyMax:
    """Permute-and-flip, whose law has a plain twin."""
    half = 0.5 * arguments.epsilon(epsilon)
    return learned_selection.NoisyMax(fall=half * np.arange(1.0, 5.0), rate=2 * half, shift=2, levels=90)


def _learned_noise(epsilon: Any) -> learned_noise.IntegerNoise:
    """Uneven weights, so that tails of period 2 differ; made without the factory, which requires a known epsilon."""
    return learned_noise.IntegerNoise(
        log_weights=np.array([0.0, -0.1, -0.3, -0.4, -0.8, -1.0]),
        rate=arguments.epsilon(epsilon),
        epsilon=arguments.epsilon(epsilon),
        sensitivity=2,
        relation="REPLACE_ONE",
    )


_EDGES = np.linspace(-1.5, 7.5, 10).tolist()
MECHANISMS = [
    _noise("laplace", lambda e: laplace.mechanism(epsilon=e), [-math.inf, *_EDGES, math.inf], np.float32),
    _noise(
        "geometric", lambda e: geometric.mechanism(epsilon=e), [-(2**31), *range(-4, 11), 2**31 - 1], np.int32, error=1
    ),
    _noise(
        "one_sided_geometric",
        lambda e: one_sided_geometric.mechanism(epsilon=e),
        [*range(3, 11), 2**31 - 1],
        np.int32,
        error=1,
    ),
    dataclasses.replace(
        _noise(
            "learned_noise",
            _learned_noise,
            [-(2**31), *range(-7, 14), 2**31 - 1],
            np.int32,
            error=1,
        ),
        name="relaxations.learned_noise",
        thorough=True,  # test_learned.py holds it to its law and its claim
    ),
    _choice(
        "exponential",
        lambda e: exponential.mechanism(epsilon=e),
        twin=lambda entry: _ending(exponential_twin.exponential_law(entry.data(), entry.epsilon / 2)),
    ),
    _choice(
        "report_noisy_max",
        lambda e: report_noisy_max.mechanism(epsilon=e),
        twin=lambda entry: _ending(permute_and_flip_law(entry.data(), entry.epsilon)),
    ),
    _choice(
        "stability",
        lambda e: stability.mechanism(epsilon=e, delta=0.2),
        scores=(3, 8, 0, 1, 2),
        twin=_stability_twin,
    ),
    dataclasses.replace(
        _choice(
            "learned_gate",
            lambda e: learned_gate.Gate(
                keep=np.array([0.2, 0.6, 0.9]),
                drop=np.array([0.8, 0.4, 0.1]),
                epsilon=arguments.epsilon(e),
                sensitivity=2,
            ),
            scores=(3, 8, 0, 1, 4),
            sweeps=False,  # its probabilities are fixed; epsilon is only where delta is stated
        ),
        name="relaxations.learned_gate",
    ),
    dataclasses.replace(
        _choice(
            "learned_selection",
            _learned_selection,
            twin=lambda entry: _ending(permute_and_flip_law(entry.data(), entry.epsilon)),
        ),
        name="relaxations.learned_selection",
    ),
    _choice(
        "choosing",
        lambda e: choosing.mechanism(n=200, epsilon=e, delta=0.1, alpha=0.5),
        scores=(46, 52, 0, 48, 50),
        epsilon=1.0,
        alpha=0.5,
        twin=lambda entry: np.array(choosing_law(entry.data(), 200, 0.5, entry.epsilon)),
    ),
    _choice(
        "supported",
        lambda e: supported.mechanism(epsilon=e, delta=0.1, growth=2),
        scores=(2, 5, 0, 3, 4),
        epsilon=0.5,
        twin=lambda entry: np.array(supported_law(entry.data(), entry.epsilon, 0.1, 2)),
    ),
    _choice(
        "above_threshold",
        lambda e: above_threshold.mechanism(epsilon=e, threshold=4),
        error=None,
        twin=lambda entry: first_above(entry.data(), 4, entry.epsilon, range(6)),
    ),
    Entry(
        "mechanisms.exponential_piecewise",
        lambda e: exponential_piecewise.mechanism(epsilon=e),
        _small_pieces,
        0.7,
        law=_each_point,
        twin=lambda entry: _ending(exponential_twin.exponential_law([1, 1, 4, 4, 4, 3, 3, 3, 3, 3], entry.epsilon / 2)),
        event=((1, 6), slice(1, 6)),
        error=1.5,
        alpha=None,
    ),
    Entry(
        "mechanisms.permute_and_flip_piecewise",
        lambda e: permute_and_flip_piecewise.mechanism(epsilon=e),
        lambda: _small_pieces(6),  # the twin goes through all orders
        0.7,
        law=functools.partial(_each_point, last=6),
        twin=lambda entry: _ending(permute_and_flip_law([1, 1, 4, 4, 4, 3, 3], entry.epsilon)),
        event=((1, 6), slice(1, 6)),
        error=1.5,
        alpha=None,
        thorough=True,
    ),
    Entry(
        "mechanisms.partition_selection",
        lambda e: partition_selection.mechanism(epsilon=e, delta=0.01),
        lambda: np.array([4, 7], np.int32),
        0.7,
        place=lambda kept: np.asarray(kept) @ [1, 2],
        twin=_partition_twin,
        events=False,
        error=None,
        alpha=None,
        wrong=(None, "data", [1.5]),
    ),
]

# -------------------------------------------------------------------------------------------- answers to many queries


def _right_or_not(error: float, largest_error: Callable[[Any], np.ndarray]) -> dict[str, Any]:
    """For outputs that are real numbers, the law reduced to two labels: whether the largest error is at most `error`, or not."""

    def law(algorithm: Any, data: Any) -> Any:
        right = algorithm.success_probability(data, error=error)
        return jnp.stack([right, 1 - right, jnp.zeros_like(right)])

    place = lambda released: (largest_error(released) > error).astype(int)  # noqa: E731
    return {"law": law, "place": place, "single": False, "events": False, "error": error, "sized": True}


_COUNTS = {0: 3, 2: 9, 5: 14, 7: 1}


def _counted() -> Points:
    return builders.points_of([x for x, count in _COUNTS.items() for _ in range(count)], 3, 31)


def _largest_error_of_frequencies(released: Any) -> np.ndarray:
    """Over all eight points."""
    n, errors = sum(_COUNTS.values()), []
    for x in range(8):
        named = (np.asarray(released.points)[..., -1] == x) & np.asarray(released.where)
        answers = np.where(named, released.answers, 0.0).sum(axis=-1)
        errors.append(abs(answers - _COUNTS.get(x, 0) / n))
    return np.max(errors, axis=0)


def _quartiles(epsilon: Any, **given: Any) -> Any:
    solver = interior_point.exponential(bits=3, epsilon=epsilon)
    return quantiles.direct(solver=solver, fractions=[0.4, 0.7], m=4, allow_unproved=True, **given)


def _counted_values(entry: Entry) -> list[int]:
    """The points of `_counted`, as the plain twins take them."""
    return wide.to_ints(entry.data().x)[: sum(_COUNTS.values())]


def _quartiles_twin(entry: Entry) -> np.ndarray:
    points = _counted_values(entry)
    return _ending(in_order(direct_laws(points, [0.4, 0.7], size=8, m=4, epsilon=entry.epsilon)).reshape(64))


def _ranked_twin(laws_of: Any, **measure: Any) -> Callable[[Entry], np.ndarray]:
    def pmf(entry: Entry) -> np.ndarray:
        points = _counted_values(entry)
        laws = laws_of(points, [0.4, 0.7], size=8, epsilon=entry.epsilon, **measure)
        return _ending(in_order(laws).reshape(64))

    return pmf


def _supported_quantiles_twin(entry: Entry) -> np.ndarray:
    given: dict[str, Any] = {"bits": 3, "epsilon": entry.epsilon, "delta": 0.1, "m": 4}
    laws = np.array(supported_laws(_counted_values(entry), [0.4, 0.7], **given))
    answers = in_order(laws[:, :-1]).reshape(64)
    return np.append(answers, 1 - answers.sum())


def _shared_twin(entry: Entry) -> np.ndarray:
    """The first answer is always 0, and the others are those of two quantiles."""
    pair = _ranked_twin(permute_and_flip_laws)(entry)
    return np.concatenate([pair[:-1], np.zeros(7 * 64), pair[-1:]])


def _unbounded(epsilon: Any) -> Any:
    return quantiles.unbounded(bits=3, fractions=[0.4, 0.7], epsilon=epsilon, base=2.0, origin=2)


def _unbounded_twin(entry: Entry) -> np.ndarray:
    points = _counted_values(entry)
    grid = geometric_grid(bits=3, origin=2, base=2.0)
    laws = unbounded_laws(points, [0.4, 0.7], grid, size=8, epsilon=entry.epsilon, downward=[False, True])
    return _ending(in_order(laws).reshape(64))


def _approximate_twin(entry: Entry) -> np.ndarray:
    points = _counted_values(entry)
    law = approximate_law(points, [0.4, 0.7], bits=3, extra=1, epsilon=entry.epsilon)
    return _ending([law.get((i, j), 0.0) for i in range(8) for j in range(8)])


def _joint_twin(candidates: int, **more: Any) -> Callable[[Entry], np.ndarray]:
    def pmf(entry: Entry) -> np.ndarray:
        points = _counted_values(entry)
        given = {"size": 8, "epsilon": entry.epsilon, "candidates": candidates, "share": 0.25} | more
        return _ending(joint_law(points, [0.4, 0.7], **given).reshape(64))

    return pmf


def _inverse_sensitivity_twin(entry: Entry) -> np.ndarray:
    points = _counted_values(entry)
    return _ending(inverse_sensitivity_law(points, [0.4, 0.7], size=8, epsilon=entry.epsilon).reshape(64))


_TWO_ANSWERS: dict[str, Any] = {"place": lambda answers: np.asarray(answers)[..., -1] @ [8, 1], "single": False}
_BY_SIZES: dict[str, Any] = {
    "law": None,
    "alpha": None,
    "error": None,
}  # no law is known, and these configurations are too small for a promise
QUERIES = [
    Entry(
        "quantiles.direct",
        _quartiles,
        _counted,
        0.7,
        **_TWO_ANSWERS,
        twin=_quartiles_twin,
        events=False,  # events are those of the runs, whose answers are released in order
        error=0.2,
        alpha=None,
        law_of="quasi_concave.exponential",  # of each run, whose solver has that law
        thorough=True,
    ),
    Entry(
        "quantiles.approximate",
        lambda e: quantiles.approximate(bits=3, fractions=[0.4, 0.7], epsilon=e, extra=1),
        _counted,
        0.7,
        **_TWO_ANSWERS,
        twin=_approximate_twin,
        events=False,  # its law is a list
        error=None,
        alpha=None,  # with so few extra bits there is no error on all data
        law_of="quantiles.rank_exponential",
        thorough=True,
    ),
    Entry(
        "quantiles.inverse_sensitivity",
        lambda e: quantiles.inverse_sensitivity(bits=3, fractions=[0.4, 0.7], epsilon=e),
        _counted,
        0.7,
        **_TWO_ANSWERS,
        twin=_inverse_sensitivity_twin,
        events=False,  # its law is a list
        error=None,
        thorough=True,
    ),
    Entry(
        "quantiles.joint",
        lambda e: quantiles.joint(bits=3, fractions=[0.4, 0.7], epsilon=e, candidates=5, share=0.25),
        _counted,
        1.37,  # edges of the noisy count jump where an odd multiple of 4 / epsilon is an integer: no likely one near this or 0.97 of it
        **_TWO_ANSWERS,
        twin=_joint_twin(5),
        events=False,  # events are tuples of intervals
        error=0.2,
        smooth_at=9.0,  # from 8 on every N is on the grid
        slow=True,
        alpha=None,  # five candidates miss n with probability 0.02
    ),
    Entry(
        "quantiles.joint, targets from n",
        lambda e: quantiles.joint(bits=3, fractions=[0.4, 0.7], epsilon=e, candidates=1),
        _counted,
        0.7,
        **_TWO_ANSWERS,
        twin=_joint_twin(1),
        events=False,  # events are tuples of intervals
        error=0.2,
        law_of="quantiles.rank_exponential",
        thorough=True,
    ),
    Entry(
        "quantiles.joint by places",
        lambda e: quantiles.joint(bits=3, fractions=[0.4, 0.7], epsilon=e, candidates=1, base="places", origin=3),
        _counted,
        0.7,
        **_TWO_ANSWERS,
        twin=_joint_twin(1, base="places", origin=3),
        events=False,  # events are tuples of intervals
        error=0.2,
        slow=True,
    ),
    Entry(
        "quantiles.permute_and_flip",
        lambda e: quantiles.permute_and_flip(bits=3, fractions=[0.4, 0.7], epsilon=e),
        _counted,
        0.7,
        **_TWO_ANSWERS,
        twin=_ranked_twin(permute_and_flip_laws),
        events=False,  # events are those of the runs, whose answers are released in order
        error=0.2,
    ),
    Entry(
        "quantiles.shared",
        lambda e: quantiles.shared(
            quantiles.permute_and_flip(bits=3, fractions=[0.4, 0.7], epsilon=e), fractions=[0.1, 0.35, 0.7]
        ),
        _counted,
        0.7,
        place=lambda answers: np.asarray(answers)[..., -1] @ [64, 8, 1],
        single=False,
        twin=_shared_twin,
        events=False,  # events are those of the runs, whose answers are released in order
        error=0.4,
        alpha=0.3,
        law_of="quantiles.permute_and_flip",
        thorough=True,
    ),
    Entry(
        "quantiles.supported",
        lambda e: quantiles.supported(bits=3, fractions=[0.4, 0.7], epsilon=e, delta=0.1, m=4),
        _counted,
        3.0,
        **_TWO_ANSWERS,
        twin=_supported_quantiles_twin,
        events=False,  # events are those of the runs, whose answers are released in order
        error=0.2,
        alpha=None,  # m is too small for a promise
        law_of="interior_point.supported_tree",  # of each run, whose tree has that law
        thorough=True,
    ),
    Entry(
        "quantiles.rank_exponential",
        lambda e: quantiles.rank_exponential(bits=3, fractions=[0.4, 0.7], epsilon=e),
        _counted,
        0.7,
        **_TWO_ANSWERS,
        twin=_ranked_twin(rank_exponential_laws),
        events=False,  # events are those of the runs, whose answers are released in order
        error=0.2,
    ),
    Entry(
        "quantiles.rank_exponential, by scales",
        lambda e: quantiles.rank_exponential(bits=3, fractions=[0.4, 0.7], epsilon=e, base="scales", origin=3),
        _counted,
        0.7,
        **_TWO_ANSWERS,
        twin=_ranked_twin(rank_exponential_laws, base="scales", origin=3),
        events=False,  # events are those of the runs, whose answers are released in order
        error=0.2,
        law_of="quantiles.rank_exponential",
        thorough=True,
    ),
    Entry(
        "quantiles.recursive",
        lambda e: quantiles.recursive(
            solver=interior_point.exponential(bits=3, epsilon=e), bits=3, depth=2, m=2, allow_unproved=True
        ),
        _counted,
        0.7,
        **_BY_SIZES,
    ),
    Entry(
        "quantiles.noisy_slices",
        lambda e: quantiles.noisy_slices(
            solver=interior_point.exponential(bits=3, epsilon=0.2 * e),
            fractions=[0.2, 0.8],
            m=1,
            rank_epsilon=2 * e,
            count_epsilon=e,
            delta=0.1,
            allow_unproved=True,
        ),
        _counted,
        2.0,
        sweeps=False,  # the least distance between ranks is computed from known numbers
        **_BY_SIZES,
        slow=True,  # test_practical_quantiles.py holds it to its law
    ),
    Entry(
        "quantiles.supported_slices",
        lambda e: quantiles.supported_slices(
            bits=3,
            fractions=[0.2, 0.8],
            epsilon=2 * e,
            delta=0.1,
            m=1,
            rank_epsilon=2 * e,
            count_epsilon=e,
            gap_delta=0.1,
        ),
        _counted,
        2.0,
        sweeps=False,  # the least distance between ranks is computed from known numbers
        **_BY_SIZES,
        slow=True,  # test_supported_slices.py holds it to its law
    ),
    Entry(
        "quantiles.tree",
        lambda e: quantiles.tree(bits=3, fractions=[0.4, 0.7], epsilon=e, branching=4),
        _counted,
        0.7,
        **{**_BY_SIZES, "alpha": 0.2},
        slow=True,  # test_practical_quantiles.py verifies it over all neighbours
    ),
    Entry(
        "quantiles.unbounded",
        _unbounded,
        _counted,
        0.7,
        **_TWO_ANSWERS,
        twin=_unbounded_twin,
        events=False,  # events are those of the runs, whose answers are released in order
        error=0.2,
        alpha=None,
    ),
    Entry("cdf.release", lambda e: cdf.release(quantiles=_quartiles(e)), _counted, 0.7, **_BY_SIZES),
    Entry(
        "sanitizers.points.histogram",
        lambda e: point_sanitizers.histogram(bits=3, n=27, epsilon=e, delta=0.1),
        _counted,
        0.7,
        **_right_or_not(0.2, _largest_error_of_frequencies),
    ),
    Entry(
        "sanitizers.points.sparse_histogram",
        lambda e: point_sanitizers.sparse_histogram(bits=3, n=27, epsilon=e, threshold=6),
        _counted,
        0.7,
        **_right_or_not(0.2, _largest_error_of_frequencies),
        thorough=True,  # test_sparse_histogram.py holds its answers to their law and its statuses to its parameters
    ),
    Entry(
        "sanitizers.points.release",
        lambda e: point_sanitizers.release(bits=3, n=27, epsilon=e, delta=0.1, alpha=0.5, allow_unproved=True),
        _counted,
        0.7,
        sweeps=False,  # at this n it promises nothing
        private=False,
        **_right_or_not(0.25, _largest_error_of_frequencies),
    ),
    Entry(
        "sanitizers.points.san_points",
        lambda e: point_sanitizers.san_points(bits=3, n=27, epsilon=e, delta=0.1, alpha=0.8, allow_unproved=True),
        _counted,
        4.0,
        sweeps=False,
        private=False,
        **_BY_SIZES,
    ),
    Entry(
        "sanitizers.thresholds.san_thresholds",
        lambda e: threshold_sanitizers.san_thresholds(
            bits=3, n=27, epsilon=e, delta=0.1, alpha=0.9, allow_unproved=True
        ),
        _counted,
        4.0,
        sweeps=False,
        private=False,
        slow=True,  # ten seconds to compile; test_sanitizers.py holds it to its law
        **_BY_SIZES,
    ),
    Entry(
        "sanitizers.thresholds.from_interior_points",
        lambda e: threshold_sanitizers.from_interior_points(quantiles=_quartiles(e)),
        _counted,
        0.7,
        slow=True,  # cdf.release with another interface
        **_BY_SIZES,
    ),
    Entry(
        "sanitizers.thresholds.histogram",
        lambda e: threshold_sanitizers.histogram(bits=3, n=27, epsilon=e),
        _counted,
        0.7,
        **{**_BY_SIZES, "alpha": 0.2},
    ),
    Entry(
        "sanitizers.thresholds.tree",
        lambda e: threshold_sanitizers.tree(bits=3, n=27, epsilon=e),
        _counted,
        0.7,
        **{**_BY_SIZES, "alpha": 0.2},
    ),
]

# ------------------------------------------------------------------------------------------------------ dense domains


def _four_points() -> Points:
    return builders.points_of([0] * 5 + [1] * 2 + [3] * 9, 2, 31)


def _blr_twin(entry: Entry) -> np.ndarray:
    data = wide.to_ints(entry.data().x)[:16]
    law = blr_law([lambda x, j=j: int(x < j) for j in range(5)], data, 4, 2, entry.epsilon)
    return _ending([p for _, p in sorted((np.bincount(each, minlength=4).tolist(), p) for each, p in law.items())])


def _place_of_two_rows(released: Any) -> np.ndarray:
    """The place in the pmf of a database of two rows over four points."""
    places = np.zeros((3, 3, 3), int)
    databases = [(a, b, c) for a in range(3) for b in range(3 - a) for c in range(3 - a - b)]
    places[tuple(np.array(databases).T)] = np.arange(10)
    x, weights = np.asarray(released.x)[..., -1], np.asarray(released.weights)
    return places[tuple(np.sum(np.where(x == point, weights, 0), axis=-1) for point in range(3))]


def _largest_error_of_thresholds(released: Any) -> np.ndarray:
    x, weights = np.asarray(released.x)[..., -1], np.asarray(released.weights)
    sums = np.stack([np.sum(np.where(x < j, weights, 0), axis=-1) for j in range(1, 5)]) / weights.sum(axis=-1)
    return np.abs(sums - np.array([5, 7, 7, 16])[:, None] / 16).max(axis=0)


DENSE = [
    Entry(
        "sanitizers.dense.blr",
        lambda e: dense.blr(queries=dense.thresholds(bits=2), rows=2, epsilon=e),
        _four_points,
        0.4,
        place=_place_of_two_rows,
        events=False,
        twin=_blr_twin,
        error=0.25,
        alpha=0.4,
    ),
    Entry(
        "sanitizers.dense.multiplicative_weights",
        lambda e: dense.multiplicative_weights(queries=dense.thresholds(bits=2), rounds=3, epsilon=e),
        _four_points,
        1.5,
        sweeps=False,  # its budget is split on the host
        **{**_right_or_not(0.25, _largest_error_of_thresholds), "alpha": 0.6},
    ),
]

# ------------------------------------------------------------------------------------------------------ conjunctions


def _two_rounds(selection: Any, epsilon: float, dual: bool = False) -> Any:
    """SetCoverLearner with a budget of epsilon for its noise, and the same for its choices."""
    return set_cover.SetCover(
        selection=selection,
        rate=arguments.epsilon(epsilon),
        noise_epsilon=arguments.epsilon(epsilon),
        shift=np.float64(2),
        delta=np.float64(0.01),
        k=1,
        rounds=2,
        dual=dual,
        accountant="shared_test",
    )


def _conjunction(epsilon: float) -> Any:
    """On two variables."""
    return _two_rounds(conjunctions.SelectLiteral(bits=2), epsilon)


VECTORS = [(0, 0)] * 3 + [(1, 1)] * 5 + [(2, 0)] * 2 + [(3, 1)] * 4 + [(3, 0)]


def _vectors() -> Assignments:
    return Assignments.create([[x & 1, x >> 1] for x, _ in VECTORS], [y for _, y in VECTORS])


LITERALS = [[bool(x >> v & 1) ^ bool(negated) for x in range(4)] for v in range(2) for negated in range(2)]


def _conjunction_twin(entry: Entry) -> np.ndarray:
    return _ending(list(set_cover_law(LITERALS, VECTORS, 1, 2, entry.epsilon, 2 / entry.epsilon, 2).values()))


def _greedy_twin(entry: Entry) -> np.ndarray:
    return np.eye(17)[np.array([4, 1]) @ greedy_cover(LITERALS, VECTORS, 2)]


def _conjunction_exponential_twin(entry: Entry) -> np.ndarray:
    examples = [((x & 1, x >> 1), y) for x, y in VECTORS]
    return _ending(exponential_twin.conjunction_law(examples, 2, entry.epsilon))


def _place_of_conjunction(released: Any) -> np.ndarray:
    """v0, not v0, v1, not v1, the four conjunctions of both, the constant."""
    pairs = [(0, 0), (1, 1), (2, 2), (3, 3), (0, 2), (0, 3), (1, 2), (1, 3), (0, 1)]
    same = np.asarray(released.literals)[..., None, :] == np.array(pairs)
    return np.argmax(np.all(same, axis=-1), axis=-1)


CONJUNCTIONS = [
    Entry(
        "learners.conjunctions",
        _conjunction,
        _vectors,
        0.5,
        place=lambda released: np.asarray(released.literals) @ np.array([4, 1]),
        events=False,
        twin=_conjunction_twin,
        error=0.3,
        alpha=None,  # no beta allows so small a shift
        slow=True,  # test_set_cover.py holds its rounds to their law
    ),
    Entry(
        "learners.conjunctions.greedy",
        lambda _: conjunctions.greedy(bits=2, k=1, alpha=0.3),
        _vectors,
        1.0,
        private=False,
        place=lambda released: np.asarray(released.literals) @ np.array([4, 1]),
        events=False,
        twin=_greedy_twin,
        alpha=0.3,
    ),
    Entry(
        "learners.conjunctions.exponential",
        lambda e: conjunctions.exponential(bits=2, k=2, epsilon=e),
        _vectors,
        0.2,
        place=_place_of_conjunction,
        events=False,
        twin=_conjunction_exponential_twin,
    ),
]

# -------------------------------------------------------------------------------------------------------- the plane


CORNERS = [((0, 0), 1)] * 5 + [((0, 1), 0)] * 4 + [((1, 0), 1)] * 3 + [((1, 1), 0)] * 2 + [((1, 1), 1)]


def _corners() -> Any:
    """Examples on the corners of a square."""
    padded = np.zeros((31, 2, 1), np.uint32)
    padded[: len(CORNERS), :, 0] = [point for point, _ in CORNERS]
    return rectangle_concept.Examples.create(padded, np.pad([y for _, y in CORNERS], (0, 16)), len(CORNERS))


def _labelling(region: Any) -> np.ndarray:
    """For every side of every region, its place in the list of all labellings."""
    lines = halfplanes.refinement.Line(
        *(jnp.asarray(each).reshape(-1, *each.shape[3:]) for each in (region.chart, region.slope, region.height))
    )
    found = halfplanes.SelectHalfplane(bits=1, measure=region.measure).labelling(lines)
    return np.asarray(found).reshape(region.chart.shape[0], -1)


def _polygon(epsilon: float) -> Any:
    """Over the halfplanes of a grid with two points a side."""
    return _two_rounds(halfplanes.SelectHalfplane(bits=1, measure="axes"), epsilon)


def _halfplane_twin(entry: Entry) -> np.ndarray:
    grid = [(0, 0), (0, 1), (1, 0), (1, 1)]
    score = {point: [0, 0] for point in grid}
    for point, y in CORNERS:
        score[point][y] += 1
    law = halfplanes_twin.select_halfplane_law(
        grid,
        1,
        "box",
        lambda labels: -sum(score[point][1 - held] for point, held in zip(grid, labels, strict=True)),
        entry.epsilon,
    )
    return _ending([law[labels] for labels in sorted(law)])


def _polygon_twin(entry: Entry) -> np.ndarray:
    grid = [(0, 0), (0, 1), (1, 0), (1, 1)]
    areas = halfplanes_twin.halfplane_measures(grid, 1, "axes")
    table = sorted(areas)
    examples = [(2 * x + y, label) for (x, y), label in CORNERS]
    weights = [float(areas[labels]) for labels in table]
    law = set_cover_law(table, examples, 1, 2, entry.epsilon, 2 / entry.epsilon, 2, weights)
    return _ending(list(law.values()))


PLANE = [
    Entry(
        "learners.halfplanes",
        lambda epsilon: halfplanes.exponential(bits=1, epsilon=epsilon, measure="box"),
        _corners,
        0.3,
        place=lambda region: _labelling(region)[:, 0],
        single=False,
        events=False,
        twin=_halfplane_twin,
        slow=True,  # test_polygons.py holds its draws to the law of fractions
    ),
    Entry(
        "learners.polygons",
        _polygon,
        _corners,
        0.5,
        place=lambda region: _labelling(region) @ np.array([14, 1]),
        events=False,
        twin=_polygon_twin,
        alpha=None,  # no beta allows so small a shift
        slow=True,  # nine seconds of compilation; test_set_cover.py and test_polygons.py hold its rounds to their law
    ),
]

# ------------------------------------------------------------------------------------------------- unions of polygons


def _union(epsilon: float) -> Any:
    """Over the triangles of a grid with two points a side."""
    return _two_rounds(polygons.SelectTriangle(bits=1, measure="axes"), epsilon, dual=True)


def _union_place(released: Any) -> np.ndarray:
    """The labellings of both triangles, computed with fractions."""
    labels = triangles.table(1, "axes").labels.tolist()
    found = []
    for chart, slope, height in zip(
        *(np.asarray(each).reshape(-1, 2, 3, *each.shape[3:]) for each in _of_region(released)), strict=True
    ):
        one = Region(chart=chart, slope=slope, height=height, bits=1, measure="axes")
        first, second = (
            labels.index([all(p * x + q * y <= r for p, q, r in part) for x in range(2) for y in range(2)])
            for part in fraction_lines(one)
        )
        found.append(len(labels) * first + second)
    return np.array(found).reshape(np.shape(released.chart)[:-2])


def _of_region(region: Region) -> tuple[Any, Any, Any]:
    return region.chart, region.slope, region.height


def _union_twin(entry: Entry) -> np.ndarray:
    """A union is the negation of an intersection of negations."""
    table, places = triangles.table(1, "axes"), {(0, 0): 0, (0, 1): 1, (1, 0): 2, (1, 1): 3}
    flipped = [(places[point], 1 - label) for point, label in CORNERS]
    e = entry.epsilon
    law = set_cover_law((~table.labels).tolist(), flipped, 1, 2, e, 2 / e, 2, table.share.tolist())
    return _ending(list(law.values()))


UNIONS = [
    Entry(
        "learners.polygons.union",
        _union,
        _corners,
        0.5,
        place=_union_place,
        events=False,
        twin=_union_twin,
        error=0.3,
        alpha=None,  # no beta allows so small a shift
        slow=True,  # test_unions.py holds its sweeps to their law
    )
]

# -------------------------------------------------------------------------------------------------------- rectangles


def _segment() -> Any:
    """Examples on a line."""
    xs = [0] * 2 + [2] * 4 + [3] * 6 + [5] * 5 + [7] * 3
    labels = [int(2 <= x <= 5) for x in xs]
    padded = np.zeros((31, 1, 1), np.uint32)
    padded[: len(xs), 0, 0] = xs
    return rectangle_concept.Examples.create(padded, np.pad(labels, (0, 31 - len(xs))), len(xs))


def _rectangles(epsilon: float, accountant: str = "basic") -> Any:
    """A plan whose slices fit into a few dozen examples."""
    plan = rectangles.plan(
        axes=1, bits=3, epsilon=1.0, delta=0.1, beta=0.2, accountant=accountant, solver="exponential"
    )
    compute = Guarantee(epsilon, 0.0, ADD_OR_REMOVE_ONE)
    return rectangles.from_plan(dataclasses.replace(plan, compute=compute, size=3, threshold=9, capacity=15))


def _place_of_segment(hypothesis: Any) -> np.ndarray:
    low, high = (np.asarray(face)[..., 0, -1].astype(int) for face in (hypothesis.low, hypothesis.high))
    zero = np.asarray(rectangle_concept.nothing(1, 1).low)[0, -1]
    return np.where((low == zero) & (low > high), 64, 8 * low + high)


RECTANGLES = [
    Entry(
        "rectangles, public sizes",
        _rectangles,
        _segment,
        0.7,
        sweeps=False,
        place=_place_of_segment,
        event=None,
        events=False,
        alpha=None,
        slow=True,  # test_rectangles.py verifies its composition exactly
    ),
    Entry(
        "rectangles, noisy sizes",
        lambda e: _rectangles(e, "slicing"),
        _segment,
        0.7,
        sweeps=False,
        slow=True,
        **_BY_SIZES,
    ),
    Entry(
        "rectangles.kearns",
        lambda e: rectangles.kearns(
            axes=1, bits=3, epsilon=e, sanitizer=cdf.release(quantiles=_quartiles(e)), cuts=2, beta=0.9
        ),
        _segment,
        0.7,
        sweeps=False,
        slow=True,
        **_BY_SIZES,
    ),
]


# ------------------------------------------------------------------------------- learners and solvers from one another


def _two_parities() -> MultiSample:
    """Six subsamples of 3 examples: five agree on (1, 2), and no parities fit the first."""
    rows = [1, 2, 3] * 4 + [1, 2, 1] * 2
    labels = [[(bin(x & v).count("1") + (i == 1)) % 2 for v in (1, 2)] for i, x in enumerate(rows)]
    return builders.multi_sample_of(rows, labels, 2, 31)


def _parity_learner_twin(entry: Entry) -> np.ndarray:
    xs, labels = _labelled(entry.data())
    return np.array(parity_learner_law(list(zip(xs, labels, strict=True)), 2, 3, entry.epsilon, 0.2))


def _solver_twin(entry: Entry) -> np.ndarray:
    learner_law = lambda xs, ys: exponential_twin.threshold_law(xs, ys, 6, entry.epsilon)  # noqa: E731
    return _ending(interior_twin.solver_law(_CLUSTERS, 5, 9, learner_law))


def _boundary_twin(entry: Entry) -> np.ndarray:
    return _ending(interior_twin.threshold_learner_law(*_labelled(entry.data()), 6, 6, entry.epsilon))


_FROM_ONE_TO_THREE = np.array([one + 4 * other for one in range(1, 4) for other in range(1, 4)])

MADE = [
    Entry(
        "points.hashed",
        lambda e: points.hashed(bits=3, epsilon=e, buckets=2, allow_inaccurate=True),
        _point_sample,
        0.6,
        **_BY_SIZES,
    ),
    Entry(
        "interior.solver",
        lambda e: interior.solver(learner=thresholds.exponential(bits=6, epsilon=e), m=9),
        _clusters,
        0.3,
        twin=_solver_twin,
        sweeps=False,  # its epsilon is that of its learner
        error=0.0,
        alpha=None,
        slow=True,  # test_interior_applications.py verifies what is built from it
    ),
    Entry(
        "interior.threshold_learner",
        lambda e: interior.threshold_learner(solver=interior_point.exponential(bits=7, epsilon=e), m=6),
        builders.mixed_sample,
        0.5,
        twin=_boundary_twin,
        sweeps=False,
        alpha=None,
        slow=True,  # interior.solver and its learner are held to their laws; test_interior_applications.py verifies it
    ),
    Entry(
        "multi.parities.parity_learner",
        lambda e: k_parities.parity_learner(bits=2, k=2, epsilon=e, delta=0.2, size=3),
        _two_parities,
        1.0,
        place=lambda v: np.asarray(v)[..., -1] @ [1, 4],
        event=(_k_rows(1, 4, 2), _FROM_ONE_TO_THREE),
        twin=_parity_learner_twin,
        alpha=0.0,
    ),
    Entry(
        "multi.generic",
        lambda e: generic.learner(
            sanitizer=point_sanitizers.histogram(bits=2, n=16, epsilon=0.1, delta=0.05),
            concepts=generic.points(bits=2),
            k=1,
            epsilon=e,
            delta=0.1,
        ),
        _k_points,
        0.7,
        sweeps=False,
        **_BY_SIZES,
    ),
    Entry(
        "multi.reductions.empirical",
        lambda e: reductions.empirical(k_points.histogram_learner(bits=2, k=1, epsilon=e, delta=0.3), n=9, rows=12),
        _k_points,
        0.3,
        sweeps=False,
        **_BY_SIZES,
    ),
]

# ------------------------------------------------------------------------------------------- from sanitizers to learners


def _labelled_points(epsilon: Any) -> Any:
    return reductions.label_class(
        dense.blr(queries=dense.thresholds(bits=2), rows=2, epsilon=1.0), block=5, epsilon=epsilon
    )


def _labels_of_four_points() -> Sample:
    return builders.sample_of([0, 1, 1, 2, 3, 3, 0, 2, 2, 1, 3, 0], [1, 1, 0, 0, 0, 0, 1, 1, 0, 1, 0, 0], 1, 15)


BY_SANITIZING = [
    Entry(
        "multi.reductions.block_sanitizer",
        lambda e: reductions.block_sanitizer(dense.blr(queries=dense.thresholds(bits=2), rows=2, epsilon=e), block=4),
        lambda: builders.points_of([0, 3, 3, 1, 2, 2, 0, 3, 1, 1, 1, 3], 2, 15),
        0.7,
        sweeps=False,  # its epsilon is that of its sanitizer
        sized=True,
        **_BY_SIZES,
        thorough=True,
    ),
    Entry(
        "multi.reductions.label_class",
        _labelled_points,
        _labels_of_four_points,
        0.7,
        **_BY_SIZES,
        thorough=True,
    ),
    Entry(
        "multi.reductions.learn_by_sanitizing",
        lambda e: reductions.learn_by_sanitizing(_labelled_points(e), dichotomies.thresholds(bits=2)),
        _labels_of_four_points,
        0.7,
        sweeps=False,
        slow=True,
        **_BY_SIZES,
    ),
]

ENTRIES = [
    *THRESHOLDS,
    *POINTS,
    *LABEL_PRIVATE,
    *PARITIES,
    *INTERIOR_POINTS,
    *QUASI_CONCAVE,
    *MANY,
    *MECHANISMS,
    *QUERIES,
    *DENSE,
    *CONJUNCTIONS,
    *PLANE,
    *UNIONS,
    *RECTANGLES,
    *MADE,
    *BY_SANITIZING,
]
