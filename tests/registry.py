"""Every algorithm, with one small configuration: what `test_conformance.py` runs through one list of tests.

An algorithm joins by one `Entry` here.
"""

import dataclasses
from collections.abc import Callable
from typing import Any

import builders
import numpy as np

from dpjax.domains import wide
from dpjax.learners import thresholds
from dpjax.verify.plain import rec_concave as rec_concave_twin
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
      data: what it runs on.
      epsilon: at which outcomes, bottom among them, are neither sure nor hopeless.
      private: whether it has an epsilon at all.
      place: outputs (batched) to their indices in the pmf.
      twin: the pmf by the plain twin, if it has one.
      error: of success_probability; None where the family has no such notion.
      alpha: of sample_size; None where no theorem gives one.
      slow: much like another one; run with -m slow.
    """

    name: str
    make: Callable[[Any], Any]
    data: Callable[[], Any]
    epsilon: float
    private: bool = True
    place: Callable[[Any], np.ndarray] = first_limb
    twin: Callable[["Entry"], np.ndarray] | None = None
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
    ),
    Entry(
        "thresholds.rec_concave as printed",
        _learn_thresholds("printed"),
        builders.mixed_sample,
        5.0,
        twin=_rec_concave_twin("printed"),
        slow=True,
    ),
]

ENTRIES = [*THRESHOLDS]
