"""All quantiles at once in tuned NumPy, on n points floor(2^U), U uniform on [0, d - 1): success as for `numpy_quantiles`.

Like for like with `dpjax.optimizers.quantiles.joint` (`candidates=1`: targets w_j n, as published) and `inverse_sensitivity` at epsilon = 1
for m evenly spaced fractions, if no two points are equal, which is nearly so around the wanted ranks if d is large. What makes them fast:

- A weight falls by the same factor with every point that is too many or too few in a gap, so sums over all gaps that may come before are
  two running sums that decay, in C (`scipy.signal.lfilter`), in place of the Fourier transforms of the published program.
- Weights are stored themselves, not their logarithms: a weight too small for a float is nothing beside the rest.
- Only the lengths of the gaps are computed, not positions.
"""

import math
from typing import Any, NamedTuple

import numpy as np
import scipy.signal
from numpy.typing import NDArray

from experiments.benchmarks import numpy_interior
from experiments.benchmarks.numpy_driver import Program, choose, fitting, within
from experiments.benchmarks.numpy_quantiles import RANKS, check, fractions
from experiments.benchmarks.numpy_trials import EPSILON

SMALLEST = 1e-200  # arithmetic below 1e-308 takes a hundred times as long
MOST_BITS = 900  # of m outputs, whose weights must be floats
STEP, WIDER, LEAST, NEGLIGIBLE = 2.0, 0.4, 6.0, 53 * math.log(2)  # as in `quantiles.inverse_sensitivity`

Array = NDArray[Any]


class Chain(NamedTuple):
    """The weights of outputs, from the first one on, for each gap.

    Attributes:
        placed: (m, rows, gaps), for j = 1, ..., m outputs: the last is in this gap, the next in a later one.
        before: (m, rows, gaps), for j = 0, ..., m - 1 outputs: all are in earlier gaps, and the next in this one.
        targets: (m + 1): how many points there should be before, between and behind the outputs.
    """

    placed: Array
    before: Array
    targets: Array


def together(targets: Array, j: int, k: int, kappa: float) -> float:
    """The factor of outputs j - k + 1, ..., j in one gap: no point lies between them, and they come in one order of k!."""
    return math.exp(-kappa * targets[j - k + 1 : j].sum()) / math.factorial(k)


def forward(lengths: Array, targets: Array, kappa: float) -> Chain:
    """The chain for gaps of these lengths, (rows, gaps)."""
    m, place = len(targets) - 1, np.arange(lengths.shape[1])
    placed, before = np.empty((m, *lengths.shape)), np.empty((m, *lengths.shape))
    before[0] = np.exp(-kappa * np.abs(place - targets[0]))
    for j in range(1, m + 1):
        inside = together(targets, j, j, kappa) * before[0]
        for k in range(j - 1, 0, -1):  # a polynomial in the lengths
            inside = inside * lengths + together(targets, j, k, kappa) * before[j - k]
        np.maximum(inside * lengths, SMALLEST, out=placed[j - 1])
        if j < m:
            before[j] = _moved(placed[j - 1], targets[j], kappa)
    return Chain(placed, before, targets)


def _moved(weights: Array, target: float, kappa: float) -> Array:
    """For each gap, the sum over all earlier ones of exp(-kappa |points between them - target|) times their weights."""
    gaps, whole, decay = weights.shape[1], math.floor(target), math.exp(-kappa)
    place = np.arange(gaps)
    behind = scipy.signal.lfilter([1.0], [1.0, -decay], weights, axis=1)  # how many points too many
    ahead = scipy.signal.lfilter([1.0], [1.0, -decay], weights[:, ::-1], axis=1)[:, ::-1]  # too few
    # Too few: from `target` points before on, or from the first gap, up to the gap itself.
    first = np.maximum(place - whole, 0)
    steps = place - first
    found = np.exp(-kappa * (target - steps)) * (ahead[:, first] - np.exp(-kappa * steps) * ahead)
    np.maximum(found, 0.0, out=found)
    found[:, whole + 1 :] += math.exp(-kappa * (whole + 1 - target)) * behind[:, : max(gaps - whole - 1, 0)]
    return found


def ends(chain: Chain, kappa: float, rows: Any) -> Array:
    """For each gap, the weight of all outputs if their last one is in it, for some rows, or for one."""
    left = np.arange(chain.placed.shape[2])[::-1]
    return np.asarray(chain.placed[-1, rows] * np.exp(-kappa * np.abs(left - chain.targets[-1])))


def backward(rng: np.random.Generator, lengths: Array, chains: list[Chain], rows: Array, kappa: float) -> Array:
    """The gaps of m outputs for each of these rows, by the chain that goes with it: (rows, m)."""
    m, place = len(chains[0].placed), np.arange(lengths.shape[1])
    found, left = np.empty((len(rows), m), int), np.full(len(rows), m)  # outputs whose gaps are not known
    going = np.arange(len(rows))
    gap = choose(rng, np.stack([ends(chain, kappa, row) for chain, row in zip(chains, rows, strict=True)]))
    while len(going):
        for i, here in zip(going, gap, strict=True):
            k = _in_one_gap(rng, lengths[rows[i], here], chains[i], rows[i], here, left[i], kappa)
            found[i, left[i] - k : left[i]] = here
            left[i] -= k
        gap, going = gap[left[going] > 0], going[left[going] > 0]
        if len(going):
            over = gap[:, None] - place
            placed = np.stack([chains[i].placed[left[i] - 1, rows[i]] for i in going])
            wanted = np.array([chains[i].targets[left[i]] for i in going])[:, None]
            gap = choose(rng, np.where(over > 0, placed * np.exp(-kappa * np.abs(over - wanted)), 0.0))
    return found


def _in_one_gap(rng: np.random.Generator, length: float, chain: Chain, row: int, gap: int, j: int, kappa: float) -> int:
    """How many of the outputs 1, ..., j are in this gap, output j being one of them."""
    each = [together(chain.targets, j, k, kappa) * chain.before[j - k, row, gap] * length**k for k in range(1, j + 1)]
    return min(1 + int(np.searchsorted(np.cumsum(each), rng.random() * sum(each), side="right")), j)


def joint(rng: np.random.Generator, rows: int, d: int, m: int, n: int) -> int:
    """JointExp as published: its rate is epsilon / (4 (1 - min w))."""
    lengths, shares = _lengths(rng, rows, d, n), _shares(m)
    kappa = EPSILON / (4 * (1 - shares.min()))
    chain = forward(lengths, n * shares, kappa)
    return _good(backward(rng, lengths, [chain] * rows, np.arange(rows), kappa), m, n)


def inverse_sensitivity(rng: np.random.Generator, rows: int, d: int, m: int, n: int) -> int:
    """Tuples by joint with targets w_j N for several N, kept with a probability that makes their weight exp(-kappa least cost)."""
    lengths, shares, kappa = _lengths(rng, rows, d, n), _shares(m), EPSILON / 2
    least = min(LEAST, m * d * math.log(2) / 2) / kappa
    tried, priors = _tried(n, least, m, d, kappa)
    chains = [forward(lengths, size * shares, kappa) for size in tried]
    every = np.arange(rows)
    weights = np.stack([priors[k] * ends(chain, kappa, every).sum(axis=1) for k, chain in enumerate(chains)], axis=1)
    found, waiting = np.empty((rows, m), int), every
    while len(waiting):
        each = [chains[k] for k in choose(rng, weights[waiting])]
        found[waiting] = backward(rng, lengths, each, waiting, kappa)
        counts = np.diff(found[waiting], axis=1, prepend=0, append=n)
        drawn = np.exp(-kappa * _costs(counts, tried, shares)) @ priors
        best = _costs(counts, np.maximum(counts / shares, least), shares).min(axis=1)
        best = np.minimum(best, _costs(counts, np.array([least]), shares)[:, 0])
        waiting = waiting[rng.random(len(waiting)) * drawn > 2 * np.exp(-kappa * best)]
    return _good(found, m, n)


def _tried(n: int, least: float, m: int, d: int, kappa: float) -> tuple[Array, Array]:
    """(N_k, exp(kappa c_k))."""
    steps = [0.0]
    while steps[-1] < m * 32 * -(-d // 32) * math.log(2) + NEGLIGIBLE:
        steps.append(steps[-1] + max(STEP, WIDER * steps[-1]))
    both = np.array([*(-x for x in steps[:0:-1]), *steps])
    wider = np.maximum(np.diff(both, prepend=both[0]), np.diff(both, append=both[-1]))
    needed = np.append(both[1:], math.inf) / kappa > least - n
    return n + np.maximum(both[needed] / kappa, least - n), np.exp(wider[needed] / 2)


def _costs(counts: Array, sizes: Array, shares: Array) -> Array:
    """(rows, sizes): by how many points the gaps miss the shares of each size; sizes may differ between rows."""
    return np.asarray(np.abs(counts[:, None, :] - sizes[..., None] * shares).sum(axis=2))


def _shares(m: int) -> Array:
    """w_j, the share of all points that should lie between neighbouring outputs."""
    return np.diff(fractions(m), prepend=0.0, append=1.0)


def _lengths(rng: np.random.Generator, rows: int, d: int, n: int) -> Array:
    """The lengths of the gaps before, between and behind the points."""
    x = numpy_interior.points(rng, rows, d, n).astype(float)
    return np.diff(x, axis=1, prepend=0.0, append=2.0**d)


def _good(gaps: Array, m: int, n: int) -> int:
    wanted = [math.floor(fraction * n + 0.5) for fraction in fractions(m)]
    return int(np.count_nonzero((np.abs(gaps - wanted) <= RANKS).all(axis=1)))


def _check(d: int, m: int, n: int) -> None:
    check(d, m, n)
    within(m=(m, 1, MOST_BITS / d))


PROGRAMS = {
    "quantiles joint": Program(joint, lambda d, m, n: fitting(16 * m * n, at_least=4), _check),
    "quantiles inverse_sensitivity": Program(
        inverse_sensitivity, lambda d, m, n: fitting(16 * 30 * m * n, at_least=4), _check
    ),
}
