"""Every algorithm, with one small configuration: what `test_conformance.py` runs through one list of tests.

An algorithm joins by one `Entry` here.
"""

import dataclasses
from collections.abc import Callable
from typing import Any

import builders
import numpy as np

from dpjax.learners import thresholds


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
    """

    name: str
    make: Callable[[Any], Any]
    data: Callable[[], Any]
    epsilon: float
    private: bool = True
    place: Callable[[Any], np.ndarray] = first_limb
    twin: Callable[["Entry"], np.ndarray] | None = None
    error: float | None = 0.3


THRESHOLDS = [
    Entry("thresholds.erm", lambda _: thresholds.erm(bits=6), builders.mixed_sample, 1.0, private=False),
    Entry("thresholds.exponential", lambda e: thresholds.exponential(bits=6, epsilon=e), builders.mixed_sample, 0.6),
    Entry(
        "thresholds.binary_search", lambda e: thresholds.binary_search(bits=6, epsilon=e), builders.mixed_sample, 3.0
    ),
    Entry(
        "thresholds.rec_concave",
        lambda e: thresholds.rec_concave(bits=6, epsilon=e, delta=0.2, alpha=0.8, depth=2),
        builders.mixed_sample,
        5.0,
    ),
]

ENTRIES = [*THRESHOLDS]
