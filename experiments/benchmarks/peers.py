"""Private medians by OpenDP and diffprivlib on the samples of the threshold benchmark.

Neither has a learner of thresholds, but a private median (quality: distance in rank to the middle) of the same points is the same kind of
problem: on samples around a target T it returns a point near T. What they can do:

- OpenDP, `make_private_quantile`: noisy best of a list of candidates, so the domain is a grid (1,000 candidates by default).
- diffprivlib, `tools.median`: exponential mechanism over the intervals between sorted data, as our `exponential`, in double precision.

Both packages are extras of a benchmark environment (`pip install dpjax[bench]`); without them the call is None, with the reason.
"""

import functools
import importlib
import math
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

LARGEST_BITS = 64


class Median(NamedTuple):
    """`call()` computes one private median; or None, and why."""

    call: Callable[[], Any] | None
    note: str

    def seconds(self, *, at_least: float = 0.2, groups: int = 3) -> float | None:
        """Seconds of one call: the least mean of some groups of calls, each group `at_least` seconds long."""
        if self.call is None:
            return None
        means: list[float] = []
        repeats = 1
        while len(means) < groups:
            spent = _timed(self.call, repeats)
            if spent >= at_least:
                means.append(spent / repeats)
            else:
                repeats *= 2
        return min(means)


def _timed(call: Callable[[], Any], repeats: int) -> float:
    began = time.perf_counter()
    _repeat(call, repeats)
    return time.perf_counter() - began


def _repeat(call: Callable[[], Any], repeats: int) -> None:
    for _ in range(repeats):
        call()


def medians(bits: int, n: int) -> dict[str, Callable[[int], None]]:
    """For each package that is installed and can: what computes as many medians as it is told to, one after another."""
    found = {"OpenDP": opendp_median(bits=bits, n=n), "diffprivlib": diffprivlib_median(bits=bits, n=n)}
    return {name: functools.partial(_repeat, median.call) for name, median in found.items() if median.call is not None}


def log_uniform_sample(*, bits: int, n: int, seed: int) -> NDArray[Any]:
    """n points target +- floor(2^U) around target 2^(bits-1), U uniform on [0, bits-1): int64 up to 62 bits, else rounded to float64."""
    rng = np.random.default_rng(seed)
    offsets = np.floor(np.exp2(rng.random(n) * (bits - 1)))
    points = 2.0 ** (bits - 1) + np.where(rng.random(n) < 0.5, -offsets, offsets)
    return points.astype(np.int64) if bits <= 62 else points


def opendp_median(*, bits: int, n: int, epsilon: float = 1.0, candidates: int = 1000, seed: int = 0) -> Median:
    """OpenDP's median among evenly spaced candidates, epsilon under replacement of one point.

    Args:
      bits: d, the points are in {0, ..., 2^d - 1}; up to 64.
      n: points.
      epsilon: > 0.
      candidates: how many, >= 2.
      seed: of the sample; OpenDP's own noise cannot be seeded.
    """
    dp = _ready("opendp.prelude", bits)
    if isinstance(dp, Median):
        return dp
    dp.enable_features("contrib")
    points = log_uniform_sample(bits=bits, n=n, seed=seed)
    grid = np.unique(np.linspace(0, 2.0**bits - 1, candidates).astype(points.dtype))
    atom = dp.atom_domain(T="i64") if points.dtype == np.int64 else dp.atom_domain(T="f64", nan=False)
    space = dp.vector_domain(atom, size=n), dp.symmetric_distance(), dp.max_divergence()
    median = dp.m.make_private_quantile(*space, candidates=grid.tolist(), alpha=0.5, scale=2 / epsilon)
    spent = median.map(2)  # replacing a point is two steps of the symmetric distance
    if not math.isclose(spent, epsilon, rel_tol=1e-9):
        return Median(None, f"opendp: noise of scale {2 / epsilon} costs {spent}, not epsilon = {epsilon}")
    return Median(lambda: median(points), f"opendp: {grid.size} candidates, {points.dtype}")


def diffprivlib_median(*, bits: int, n: int, epsilon: float = 1.0, seed: int = 0) -> Median:
    """diffprivlib's median on [0, 2^bits - 1] in float64.

    Args:
      bits: d, up to 64 (from 54 on points are rounded).
      n: points.
      epsilon: > 0.
      seed: of the sample and the mechanism.
    """
    tools = _ready("diffprivlib.tools", bits)
    if isinstance(tools, Median):
        return tools
    points = log_uniform_sample(bits=bits, n=n, seed=seed).astype(float)
    given = {"epsilon": epsilon, "bounds": (0.0, 2.0**bits - 1), "random_state": np.random.RandomState(seed)}
    return Median(lambda: tools.median(points, **given), "diffprivlib: intervals between points, float64")


def _ready(module: str, bits: int) -> Any:
    """The module, or a Median that tells why there is none to use."""
    if not 2 <= bits <= LARGEST_BITS:
        return Median(None, f"{module}: points of {bits} bits do not fit its numbers (2 to {LARGEST_BITS} bits here)")
    try:
        return importlib.import_module(module)
    except ImportError as error:  # the package, or something that it needs
        return Median(None, f"{module}: {error}")
