"""What others can do of the benchmark: medians, stability histograms, the exponential mechanism and Laplace noise by OpenDP and
diffprivlib, all quantiles by the programs that authors published with their papers.

Neither package has a learner of thresholds, but a private median (quality: distance in rank to the middle) of the same points is the same
kind of problem: on samples around a target T it returns a point near T. What they can do:

- OpenDP, `make_private_quantile`: noisy best of a list of candidates, so the domain is a grid (1,000 candidates by default).
- diffprivlib, `tools.median`: exponential mechanism over the intervals between sorted data, as our `exponential`, in double precision.

Both packages are extras of a benchmark environment (`pip install dpjax[bench]`); without them the call is None, with the reason.

The published programs are on no index. IndExp, JointExp and the tree are the folder `dp_multiq` of
github.com/google-research/google-research, ApproximateQuantiles the folder `algorithms` of github.com/ShacharSchnapp/DP_AQ: with both
clones in PYTHONPATH they take part. They get one sample of NumPy's program, and the same total epsilon.
"""

import functools
import importlib
import math
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from experiments.benchmarks import numpy_interior
from experiments.benchmarks.numpy_points import MASSES, POINTS
from experiments.benchmarks.numpy_quantiles import BRANCHING, fractions
from experiments.benchmarks.numpy_trials import DELTA, EPSILON

LARGEST_BITS = 64

Array = NDArray[Any]


class Peer(NamedTuple):
    """`call()` computes one private answer; `call` is None if the package cannot be used, and `note` says why."""

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


def rivals(contest: str, sizes: tuple[Any, ...]) -> dict[str, Callable[[int], None]]:
    """For each installed package that can: a function that computes the required number of answers one by one, in one process."""
    found = [make(*sizes) for make in CAN.get(contest, ())]
    return {peer.note.split(":")[0]: functools.partial(_repeat, peer.call) for peer in found if peer.call is not None}


def log_uniform_sample(*, bits: int, n: int, seed: int) -> NDArray[Any]:
    """n points target +- floor(2^U) around target 2^(bits-1), U uniform on [0, bits-1): int64 up to 62 bits, else rounded to float64."""
    rng = np.random.default_rng(seed)
    offsets = np.floor(np.exp2(rng.random(n) * (bits - 1)))
    points = 2.0 ** (bits - 1) + np.where(rng.random(n) < 0.5, -offsets, offsets)
    return points.astype(np.int64) if bits <= 62 else points


def opendp_median(bits: int, n: int, *, epsilon: float = 1.0, candidates: int = 1000, seed: int = 0) -> Peer:
    """OpenDP's median among evenly spaced candidates, epsilon under replacement of one point.

    Args:
      bits: d, the points are in {0, ..., 2^d - 1}; up to 64.
      n: points.
      epsilon: > 0.
      candidates: the number of candidates, >= 2.
      seed: of the sample; OpenDP's own noise cannot be seeded.
    """
    dp = _ready("opendp.prelude", bits)
    if isinstance(dp, Peer):
        return dp
    dp.enable_features("contrib")
    points = log_uniform_sample(bits=bits, n=n, seed=seed)
    grid = np.unique(np.linspace(0, 2.0**bits - 1, candidates).astype(points.dtype))
    atom = dp.atom_domain(T="i64") if points.dtype == np.int64 else dp.atom_domain(T="f64", nan=False)
    space = dp.vector_domain(atom, size=n), dp.symmetric_distance(), dp.max_divergence()
    median = dp.m.make_private_quantile(*space, candidates=grid.tolist(), alpha=0.5, scale=2 / epsilon)
    spent = median.map(2)  # replacing a point is two steps of the symmetric distance
    if not math.isclose(spent, epsilon, rel_tol=1e-9):
        return Peer(None, f"OpenDP: noise of scale {2 / epsilon} costs {spent}, not epsilon = {epsilon}")
    return Peer(lambda: median(points), f"OpenDP median: {grid.size} candidates, {points.dtype}")


def diffprivlib_median(bits: int, n: int, *, epsilon: float = 1.0, seed: int = 0) -> Peer:
    """diffprivlib's median on [0, 2^bits - 1] in float64.

    Args:
      bits: d, up to 64 (from 54 on points are rounded).
      n: points.
      epsilon: > 0.
      seed: of the sample and the mechanism.
    """
    tools = _ready("diffprivlib.tools", bits)
    if isinstance(tools, Peer):
        return tools
    points = log_uniform_sample(bits=bits, n=n, seed=seed).astype(float)
    given = {"epsilon": epsilon, "bounds": (0.0, 2.0**bits - 1), "random_state": np.random.RandomState(seed)}
    return Peer(lambda: tools.median(points, **given), "diffprivlib median: intervals between points, float64")


def opendp_histogram(k: int, n: int) -> Peer:
    """OpenDP's stability histogram of the benchmark's points (labels play no part), at `histogram_learner`'s scale and threshold."""
    dp = _ready("opendp.prelude")
    if isinstance(dp, Peer):
        return dp
    dp.enable_features("contrib")
    kinds = np.random.default_rng(0).choice(len(POINTS), n, p=MASSES)
    points = [min(POINTS[i], 2**63 - 1) for i in kinds]
    space = dp.vector_domain(dp.atom_domain(T="i64"), size=n), dp.symmetric_distance()
    counted = dp.t.make_count_by(*space, TV="i32")
    threshold = math.ceil(1 - 2 / EPSILON * math.log(2 * DELTA))
    release = counted >> dp.m.make_laplace_threshold(
        counted.output_domain, counted.output_metric, scale=2 / EPSILON, threshold=threshold
    )
    return Peer(lambda: release(points), "OpenDP: counts of points only, no labels")


def opendp_laplace(count: int) -> Peer:
    """OpenDP's Laplace noise on a vector."""
    dp = _ready("opendp.prelude")
    if isinstance(dp, Peer):
        return dp
    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T=float, nan=False)), dp.l1_distance(T=float)
    noise, zeros = dp.m.make_laplace(*space, scale=1 / EPSILON), [0.0] * count
    return Peer(lambda: noise(zeros), "OpenDP: a vector at once")


def diffprivlib_laplace(count: int) -> Peer:
    """diffprivlib's Laplace noise, number by number."""
    mechanisms = _ready("diffprivlib.mechanisms")
    if isinstance(mechanisms, Peer):
        return mechanisms
    noise = mechanisms.Laplace(epsilon=EPSILON, sensitivity=1)
    return Peer(lambda: [noise.randomise(0.0) for _ in range(count)], "diffprivlib: one by one")


def opendp_exponential(candidates: int) -> Peer:
    """OpenDP's noisy best of scores (Gumbel noise: the exponential mechanism)."""
    dp = _ready("opendp.prelude")
    if isinstance(dp, Peer):
        return dp
    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T="i32")), dp.linf_distance(T="i32"), dp.max_divergence()
    best, scores = dp.m.make_noisy_max(*space, scale=2 / EPSILON), list(range(candidates))
    return Peer(lambda: best(scores), "OpenDP: noisy maximum")


def diffprivlib_exponential(candidates: int) -> Peer:
    """diffprivlib's exponential mechanism, built anew for every list of scores, as it must be."""
    mechanisms = _ready("diffprivlib.mechanisms")
    if isinstance(mechanisms, Peer):
        return mechanisms
    scores = [float(i) for i in range(candidates)]
    return Peer(
        lambda: mechanisms.Exponential(epsilon=EPSILON, sensitivity=1, utility=scores).randomise(),
        "diffprivlib: exponential mechanism",
    )


def _published(module: str, what: str, release: Callable[[Any, Array, int, Array], Any]) -> Callable[..., Peer]:
    """The factory of a peer that calls `release` with the module, sorted points, d and the fractions."""

    def make(bits: int, m: int, n: int) -> Peer:
        found = _ready(module, bits)
        if isinstance(found, Peer):
            return found
        points = numpy_interior.points(np.random.default_rng(0), 1, bits, n)[0].astype(float)
        wanted = np.array(fractions(m))

        def call() -> None:
            with np.errstate(divide="ignore"):  # ln 0, of gaps between equal points
                release(found, points, bits, wanted)

        return Peer(call, f"published: {what}")

    return make


def _through_tree(module: Any, points: Array, bits: int, wanted: Array) -> list[float]:
    """Quantiles by the tree; counts are kept by node, and noise is drawn when it is needed."""
    kind = module.PrivateQuantileTree
    levels = math.ceil(bits / math.log2(BRANCHING))
    tree = kind(kind.NoiseType.LAPLACE, EPSILON, 0.0, 0.0, 2.0**bits, False, levels, BRANCHING)
    tree.add_data(points)
    return [tree.compute_quantile(fraction) for fraction in wanted]


published_independent = _published(
    "dp_multiq.ind_exp",
    "IndExp, epsilon / m for each quantile",
    lambda module, points, bits, wanted: module.ind_exp(points, 0, 2.0**bits, wanted, EPSILON / wanted.size, False),
)
published_joint = _published(
    "dp_multiq.joint_exp",
    "JointExp, whose sums over gaps are Fourier transforms",
    lambda module, points, bits, wanted: module.joint_exp(points, 0, 2.0**bits, wanted, EPSILON, False),
)
published_tree = _published("dp_multiq.tree", "a tree as deep as the domain", _through_tree)
published_approximate = _published(
    "algorithms.approximate_quantiles_algo",
    "ApproximateQuantiles, of points parted by noise",
    lambda module, points, bits, wanted: module.approximate_quantiles_algo(points, wanted, (0, 2.0**bits), EPSILON),
)


MEDIANS = (opendp_median, diffprivlib_median)
CAN: dict[str, tuple[Callable[..., Peer], ...]] = {
    "exponential": MEDIANS,
    "interior exponential": MEDIANS,
    "histogram_learner": (opendp_histogram,),
    "laplace": (opendp_laplace, diffprivlib_laplace),
    "exponential mechanism": (opendp_exponential, diffprivlib_exponential),
    "quantiles": (published_independent,),
    "quantiles approximate": (published_approximate,),
    "quantiles joint": (published_joint,),
    "quantiles tree": (published_tree,),
}


def _ready(module: str, bits: int = LARGEST_BITS) -> Any:
    """The module, or a Peer whose note says why it cannot be used."""
    if not 2 <= bits <= LARGEST_BITS:
        return Peer(None, f"{module}: points of {bits} bits do not fit its numbers (2 to {LARGEST_BITS} bits here)")
    try:
        return importlib.import_module(module)
    except ImportError as error:  # the package, or something that it needs
        return Peer(None, f"{module}: {error}")
