"""Algorithms with one small configuration each: what `test_conformance.py` runs through one list of tests.

An algorithm joins by one `Entry` here. Mechanisms, whose data are scores, have their cases in `test_mechanisms.py`.
"""

import dataclasses
from collections.abc import Callable
from typing import Any

import builders
import numpy as np

from dpjax import MultiSample, Points, Sample
from dpjax.accounting import ADD_OR_REMOVE_ONE, Guarantee
from dpjax.domains import ordered, wide
from dpjax.learners import parities, points, thresholds
from dpjax.multi import direct_sum
from dpjax.multi import points as k_points
from dpjax.optimizers import interior_point, quasi_concave, tree_log_budget
from dpjax.verify.plain import rec_concave as rec_concave_twin
from dpjax.verify.plain import tree_log as tree_log_twin
from dpjax.verify.plain.binary_search import binary_search_law


def first_limb(hypothesis: Any) -> np.ndarray:
    """The place of an integer output below 2^32 in the pmf."""
    return np.asarray(hypothesis)[..., -1]


@dataclasses.dataclass(frozen=True)
class Entry:
    """One algorithm as the conformance suite meets it.

    Attributes:
      name: shown by pytest.
      make: the algorithm at an epsilon (which may be traced).
      data: what it runs on; rows of it can be `padded`, if it has any.
      epsilon: at which outcomes, bottom among them, are neither sure nor hopeless.
      private: whether it has an epsilon at all.
      sweeps: whether `epsilon` is a leaf that may be traced, and all of its budget.
      place: outputs (batched) to their indices in the pmf.
      twin: the pmf by the plain twin, if it has one.
      event: (event, places of the pmf that belong to it); the middle half of the outputs if absent.
      error: of success_probability; None where the family has no such notion.
      alpha: of sample_size; None where no theorem gives one.
      slow: much like another one; run with -m slow.
    """

    name: str
    make: Callable[[Any], Any]
    data: Callable[[], Any]
    epsilon: float
    private: bool = True
    sweeps: bool = True
    place: Callable[[Any], np.ndarray] = first_limb
    twin: Callable[["Entry"], np.ndarray] | None = None
    event: tuple[Any, slice] | None = None
    error: float | None = 0.3
    alpha: float | None = 0.2
    slow: bool = False


def _labelled(data: Any) -> tuple[list[int], list[int]]:
    """The valid rows as plain integers."""
    n = int(data.n_valid)
    return wide.to_ints(data.x)[:n], np.asarray(data.y)[:n].tolist()


def _listed(law: Any, outputs: int) -> np.ndarray:
    """A law of `verify.plain.rec_concave` as a pmf."""
    return np.array([*(rec_concave_twin.mass(law, j, j) for j in range(outputs)), law[1]])


def _exponential_twin(entry: "Entry") -> np.ndarray:
    xs, ys = _labelled(entry.data())
    starts, values = rec_concave_twin.threshold_quality(xs, ys)
    return _listed(rec_concave_twin.rec_concave_law(starts, values, 64, len(xs), 1, entry.epsilon, 1, 1, "printed"), 65)


def _binary_search_twin(entry: "Entry") -> np.ndarray:
    return np.array([*binary_search_law(*_labelled(entry.data()), 6, entry.epsilon / 7), 0.0])


def _rec_concave_twin(calibration: str) -> Callable[["Entry"], np.ndarray]:
    def pmf(entry: "Entry") -> np.ndarray:
        xs, ys = _labelled(entry.data())
        law = rec_concave_twin.learn_thresholds_law(xs, ys, 6, entry.epsilon, 0.2, 0.8, 2, calibration)
        return _listed(law, 65)

    return pmf


def _learn_thresholds(calibration: str) -> Callable[[Any], Any]:
    return lambda e: thresholds.rec_concave(bits=6, epsilon=e, delta=0.2, alpha=0.8, depth=2, calibration=calibration)


THRESHOLDS = [
    Entry("thresholds.erm", lambda _: thresholds.erm(bits=6), builders.mixed_sample, 1.0, private=False),
    Entry(
        "thresholds.exponential",
        lambda e: thresholds.exponential(bits=6, epsilon=e),
        builders.mixed_sample,
        0.6,
        twin=_exponential_twin,
    ),
    Entry(
        "thresholds.binary_search",
        lambda e: thresholds.binary_search(bits=6, epsilon=e),
        builders.mixed_sample,
        3.0,
        twin=_binary_search_twin,
    ),
    Entry(
        "thresholds.binary_search with delta",
        lambda e: thresholds.binary_search(bits=6, epsilon=e, delta=0.1),
        builders.mixed_sample,
        2.0,
        slow=True,
    ),
    Entry(
        "thresholds.rec_concave",
        _learn_thresholds("proved"),
        builders.mixed_sample,
        5.0,
        twin=_rec_concave_twin("proved"),
        alpha=0.8,  # its own
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


def _place_of_point(hypothesis: Any) -> np.ndarray:
    return np.where(hypothesis.zero, 8, np.asarray(hypothesis.position)[..., -1])


POINTS = [
    Entry(
        "points.learn_points",
        lambda e: points.learn_points(bits=3, epsilon=e, delta=0.2),
        _point_sample,
        1.0,
        place=_place_of_point,
        alpha=None,  # 8 points are too few for a random one after bottom
    ),
    Entry(
        "points.learn_points, zero for bottom",
        lambda e: points.learn_points(bits=3, epsilon=e, delta=0.2, bottom="zero"),
        _point_sample,
        1.0,
        place=_place_of_point,
        slow=True,
    ),
    Entry(
        "points.exponential",
        lambda e: points.exponential(bits=3, epsilon=e),
        _point_sample,
        0.6,
        place=_place_of_point,
    ),
]

# ---------------------------------------------------------------------------------------------------------- parities

PARITIES = [
    Entry(
        "parities.exponential",
        lambda e: parities.exponential(bits=6, epsilon=e),
        lambda: builders.mixed_sample(3),
        0.4,
    ),
]

# --------------------------------------------------------------------------------------------------- interior points

_CLUSTERS = [5, 6, 7, 8, 8, 9] + [20] * 9 + [21] * 3 + [24] * 5 + [28] * 2 + [31] * 14


def _clusters() -> Points:
    return builders.points_of(_CLUSTERS, 5, 63)


def _depth_twin(entry: Entry) -> np.ndarray:
    law = tree_log_twin.base_law(_CLUSTERS, 32, entry.epsilon, monotone=True)
    return np.array([*(law.get(x, 0.0) for x in range(32)), 0.0])


def _small_tree_log(epsilon: Any) -> Any:
    """A plan whose slices fit into a few dozen points; nobody claims that it finds anything."""
    budget = tree_log_budget.Budget(epsilon, 0.2, epsilon, 0.2, epsilon, epsilon, None)
    plan = tree_log_budget.plan(
        budget, bits=8, depth=1, beta=0.1, accountant="basic", guarantee=Guarantee.none(ADD_OR_REMOVE_ONE)
    )
    return interior_point.tree_log_planned(bits=5, plan=dataclasses.replace(plan, m1=4, m2=plan.K))


INTERIOR_POINTS = [
    Entry(
        "interior_point.exponential",
        lambda e: interior_point.exponential(bits=5, epsilon=e),
        _clusters,
        0.3,
        twin=_depth_twin,
        error=0.0,
        alpha=0.0,
    ),
    Entry(
        "interior_point.rec_concave",
        lambda e: interior_point.rec_concave(bits=5, epsilon=e, delta=0.2, promise=15.0, alpha=0.8),
        _clusters,
        0.6,
        error=0.0,
        alpha=None,  # the promise is too small for any failure probability
    ),
    Entry(
        "interior_point.tree_log",
        _small_tree_log,
        _clusters,
        0.6,
        sweeps=False,
        error=0.0,
        alpha=None,
    ),
]

# -------------------------------------------------------------------------------------------- quasi-concave functions


def _hill() -> Any:
    pieces = ordered.from_breakpoints([0, 5, 9, 14, 20], [1.0, 6.0, 11.0, 7.0, 2.0], 32, beyond=0.0)
    return quasi_concave.problem(pieces, promise=11.0, alpha=0.5)


QUASI_CONCAVE = [
    Entry("quasi_concave.exponential", lambda e: quasi_concave.exponential(bits=5, epsilon=e), _hill, 0.4),
    Entry(
        "quasi_concave.rec_concave",
        lambda e: quasi_concave.rec_concave(bits=5, epsilon=e, delta=0.2, depth=2),
        _hill,
        0.4,
    ),
    Entry(
        "quasi_concave.amplified",
        lambda e: quasi_concave.amplified(bits=5, epsilon=e, delta=0.5, beta=0.9, depth=1),
        _hill,
        20.0,
        alpha=None,  # a larger promise than this beta leaves room for
    ),
]

# -------------------------------------------------------------------------------------------------------- k concepts


def _k_points() -> MultiSample:
    xs = [2] * 9 + [0] * 5 + [3] * 2
    return builders.multi_sample_of(xs, [[int(x == 2)] for x in xs], 2, 31)


def _place_of_k_points(hypothesis: Any) -> np.ndarray:
    """One concept over four points, then all-zero."""
    return np.where(hypothesis.zero[..., 0], 4, np.asarray(hypothesis.position)[..., 0, -1])


def _k_rows(low: int, high: int, k: int) -> tuple[Any, Any]:
    return tuple(wide.from_ints([end] * k, 32) for end in (low, high))


MANY = [
    Entry(
        "multi.points.histogram_learner",
        lambda e: k_points.histogram_learner(bits=2, k=1, epsilon=e, delta=0.3),
        _k_points,
        0.3,
        place=_place_of_k_points,
        event=(_k_rows(1, 3, 1), slice(1, 3)),
    ),
    Entry(
        "multi.points.point_learner",
        lambda e: k_points.point_learner(bits=2, k=1, epsilon=e, delta=0.4, alpha=0.5, beta=0.9),
        _k_points,
        1.5,
        place=_place_of_k_points,
        event=(_k_rows(1, 3, 1), slice(1, 3)),
        alpha=None,  # no beta below its own
    ),
    Entry(
        "multi.direct_sum",
        lambda e: direct_sum.of(thresholds.exponential(bits=2, epsilon=e), k=1),
        _k_points,
        0.3,
        place=lambda hypothesis: np.asarray(hypothesis)[..., 0, -1],
        event=(_k_rows(1, 3, 1), slice(1, 3)),
        sweeps=False,  # its epsilon is that of its learner
    ),
]

ENTRIES = [*THRESHOLDS, *POINTS, *PARITIES, *INTERIOR_POINTS, *QUASI_CONCAVE, *MANY]
