"""Private medians by OpenDP and diffprivlib on the samples of the threshold benchmark: seconds a call.

Neither has a learner of thresholds, but a private median (quality: distance in rank to the middle) of the same points is the same kind of
problem: on samples around a target T it returns a point near T. What they can do:

- OpenDP, `make_private_quantile`: noisy best of a list of candidates, so the domain is a grid (1,000 candidates by default).
- diffprivlib, `tools.median`: exponential mechanism over the intervals between sorted data, as our `exponential`, in double precision.

Both packages are extras of a benchmark environment (`pip install dpjax[bench]`); without them the answer is None and the reason.
"""

import importlib
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

LARGEST_BITS = 64


class Timing(NamedTuple):
    """Seconds of one call, or None and why not."""

    seconds: float | None
    note: str


def log_uniform_sample(*, bits: int, n: int, seed: int) -> NDArray[Any]:
    """n points target +- floor(2^U) around target 2^(bits-1), U uniform on [0, bits-1): int64 up to 62 bits, else rounded to float64."""
    rng = np.random.default_rng(seed)
    offsets = np.floor(np.exp2(rng.random(n) * (bits - 1)))
    points = 2.0 ** (bits - 1) + np.where(rng.random(n) < 0.5, -offsets, offsets)
    return points.astype(np.int64) if bits <= 62 else points


def opendp_median(*, bits: int, n: int, epsilon: float = 1.0, candidates: int = 1000, seed: int = 0) -> Timing:
    """OpenDP's median among evenly spaced candidates, epsilon under replacement of one point.

    Args:
      bits: d, the points are in {0, ..., 2^d - 1}; up to 64.
      n: points.
      epsilon: > 0.
      candidates: how many, >= 2.
      seed: of the sample; OpenDP's own noise cannot be seeded.
    """
    found = _ready("opendp.prelude", bits)
    if isinstance(found, Timing):
        return found
    found.enable_features("contrib")
    points = log_uniform_sample(bits=bits, n=n, seed=seed)
    whole = points.dtype == np.int64
    grid = np.unique(np.linspace(0, 2.0**bits - 1, candidates).astype(points.dtype))
    atom = found.atom_domain(T="i64") if whole else found.atom_domain(T="f64", nan=False)
    space = found.vector_domain(atom, size=n), found.symmetric_distance()
    median = found.m.make_private_quantile(
        *space, found.max_divergence(), candidates=grid.tolist(), alpha=0.5, scale=2 / epsilon
    )
    if median.map(2) > epsilon * (1 + 1e-12):  # replacing is two steps of the symmetric distance
        return Timing(None, f"opendp: scale {2 / epsilon} costs {median.map(2)}, not {epsilon}")
    return Timing(_seconds(lambda: median(points)), f"opendp: {grid.size} candidates, {points.dtype}")


def diffprivlib_median(*, bits: int, n: int, epsilon: float = 1.0, seed: int = 0) -> Timing:
    """diffprivlib's median on [0, 2^bits - 1] in float64.

    Args:
      bits: d, up to 64 (from 54 on points are rounded).
      n: points.
      epsilon: > 0.
      seed: of the sample and the mechanism.
    """
    found = _ready("diffprivlib.tools", bits)
    if isinstance(found, Timing):
        return found
    points = log_uniform_sample(bits=bits, n=n, seed=seed).astype(float)
    state = np.random.RandomState(seed)
    bounds = (0.0, 2.0**bits - 1)
    seconds = _seconds(lambda: found.median(points, epsilon=epsilon, bounds=bounds, random_state=state))
    return Timing(seconds, "diffprivlib: intervals between points, float64")


def _ready(module: str, bits: int) -> Any:
    """The module, or a Timing that tells why there is none to use."""
    if not 2 <= bits <= LARGEST_BITS:
        return Timing(None, f"{module}: points of {bits} bits do not fit its numbers (2 to {LARGEST_BITS} bits here)")
    try:
        return importlib.import_module(module)
    except ImportError as error:  # the package, or something that it needs
        return Timing(None, f"{module}: {error}")


def _seconds(call: Callable[[], object], *, at_least: float = 0.2, groups: int = 3) -> float:
    """Seconds a call: the least mean of some groups of calls, each of them `at_least` seconds long."""
    call()
    best, repeats = float("inf"), 1
    while groups:
        start = time.perf_counter()
        for _ in range(repeats):
            call()
        spent = time.perf_counter() - start
        if spent < at_least:
            repeats *= 2
        else:
            best, groups = min(best, spent / repeats), groups - 1
    return best
