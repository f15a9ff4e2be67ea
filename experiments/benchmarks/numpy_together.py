"""All quantiles at once in tuned NumPy, on n points floor(2^U), U uniform on [0, d - 1): success as for `numpy_quantiles`.

Like for like with `dpjax.optimizers.quantiles.joint` (`candidates=1`: targets w_j n, as published) and `inverse_sensitivity` at epsilon = 1
for m evenly spaced fractions, on points of any kind, equal ones among them. `numpy_chains` sums over tuples and draws them. It looks at few
ranks: what is left out of each chain weighs `SMALL` of the whole or less, as a bound on each sample shows; otherwise more ranks are looked
at. Only ranks of the answers are found, not positions.

- `joint`: one chain with targets f_j n. The one tuple, if there is one, all of whose values have the wanted ranks with some to spare weighs
  more than its cost says: the rest of its weight is one more way to draw it.
- `inverse_sensitivity`: tuples by such chains with targets f_j N for some sizes N, kept so that they get the weight that they should have.
  N_k are multiples of m + 1 where that costs little: then all targets are integers. Sizes that weigh next to nothing are left out.
"""

import functools
import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from experiments.benchmarks import numpy_chains, numpy_interior
from experiments.benchmarks.numpy_chains import Chain
from experiments.benchmarks.numpy_driver import Program, choose, fitting, within
from experiments.benchmarks.numpy_quantiles import RANKS, check, fractions
from experiments.benchmarks.numpy_trials import EPSILON

MOST_BITS = 900  # of m outputs, whose weights must be floats
SMALL = 2e-9  # of the whole: what is left out
NEAR = 32.0  # nats that weights fall by, at their steepest, within the ranks that are looked at first
SHALLOW = 0.75  # how steeply they fall if N is free, compared with N = n
FEW = 16  # ranks on either side for sizes that most likely weigh next to nothing
STEP, WIDER = 4.0, 0.6  # nats between sizes: the least step, and a step as a share of the distance from n
LEAST = 6.0  # as in `quantiles.inverse_sensitivity`
AHEAD = 8  # tuples drawn at once, of which about a sixth are kept
ROWS = 128

Array = NDArray[Any]


def joint(rng: np.random.Generator, rows: int, d: int, m: int, n: int) -> int:
    """JointExp with ties, at its published rate."""
    x = numpy_interior.points(rng, rows, d, n)
    return _good(*drawn_jointly(rng, x, d, np.array(fractions(m)), EPSILON), n)


def inverse_sensitivity(rng: np.random.Generator, rows: int, d: int, m: int, n: int) -> int:
    """Tuples by how many points must come or go to make them right, or wrong."""
    x = numpy_interior.points(rng, rows, d, n)
    return _good(*drawn_by_distance(rng, x, d, np.array(fractions(m)), EPSILON), n)


def drawn_jointly(rng: np.random.Generator, x: Array, d: int, f: Array, epsilon: float) -> tuple[Array, Array]:
    """(#{x < z}, #{x <= z}) of each output on each row of sorted points, (m, rows), by the mechanism `joint` with `candidates=1`."""
    n, kappa = x.shape[1], epsilon / (4 * (1 - shares(f).min()))
    centres, reach = np.rint(f * n).astype(int), _reach(d, f, 2 * kappa)
    low, high = np.empty((2, len(f), len(x)), np.int64)
    left, half = np.arange(len(x)), min(math.ceil(NEAR / (2 * kappa)), n + 1)
    while len(left):
        near = numpy_chains.near(x if len(left) == len(x) else x[left], d, centres, half, reach)
        chain = numpy_chains.forward(near, numpy_chains.targets(f * n, 0.0, near.centres), kappa)
        good = np.flatnonzero(chain.rest <= SMALL * chain.total)
        rows = left[good]
        low[:, rows], high[:, rows] = numpy_chains.ends_of(x, rows, *numpy_chains.backward(rng, chain, good))
        left, half = np.delete(left, good), min(half + (half + 1) // 2, n + 1)  # from n + 1 on there is no rest
        deep, deep_low, deep_high = _deep(x, rows, f)
        with np.errstate(over="ignore"):
            more = np.expm1(2 * kappa * _spare(deep_low, deep_high, f * n).min(axis=0))  # beside 1, in the chain
        instead = rng.random(len(deep)) * (1 + chain.total[good[deep]] / more) < 1
        rows = rows[deep[instead]]
        low[:, rows], high[:, rows] = deep_low[:, instead], deep_high[:, instead]
    return low, high


def _deep(x: Array, rows: Array, f: Array) -> tuple[Array, Array, Array]:
    """Those of the rows where each wanted rank lies within a value with some to spare, and the ranks at both ends of these values."""
    n = x.shape[1]
    wanted = f * n
    place = np.ceil(wanted).astype(int)
    integer = place[(place == wanted) & (place < n)]
    at = np.flatnonzero((x[rows[:, None], integer - 1] == x[rows[:, None], integer]).all(axis=1))
    places = np.repeat(place[:, None], len(at), axis=1)
    low, high = numpy_chains.ends_of(x, rows[at], np.zeros(places.shape, bool), places)
    good = (_spare(low, high, wanted) > 0).all(axis=0)
    return at[good], low[:, good], high[:, good]


def _spare(low: Array, high: Array, wanted: Array) -> Array:
    """By how many ranks values reach beyond the wanted ones, on either side."""
    return np.minimum(wanted[:, None] - low, high - wanted[:, None])


def drawn_by_distance(rng: np.random.Generator, x: Array, d: int, f: Array, epsilon: float) -> tuple[Array, Array]:
    """The same by `inverse_sensitivity`: tuples by chains with targets f_j N for several N, kept so that they weigh exp(kappa s)."""
    n, kappa, every = x.shape[1], epsilon / 2, np.arange(len(x))
    least = min(LEAST, len(f) * d * math.log(2) / 2) / kappa
    tried, priors, chains = _chains(x, d, f, kappa, least)
    deep, deep_low, deep_high = _deep(x, every, f)
    depth, deepest = np.zeros(len(x)), np.empty((2, len(f), len(x)), np.int64)
    depth[deep] = np.clip(_depth(deep_low, deep_high, n, f), 0.0, max(n - least, 0.0))
    deepest[:, :, deep] = deep_low, deep_high
    with np.errstate(divide="ignore"):  # of weights too small for a float
        logs = np.log([chain.total * prior for chain, prior in zip(chains, priors, strict=True)]).T
    logs = np.concatenate([logs, np.where(depth > 0, kappa * depth, -math.inf)[:, None]], axis=1)
    weights = np.exp(logs - logs.max(axis=1, keepdims=True))
    found, left = np.empty((2, len(f), len(x)), np.int64), every
    while len(left):
        rows = np.repeat(left, AHEAD)
        which = choose(rng, weights[rows])
        ends = np.empty((2, len(f), len(rows)), np.int64)
        ends[:, :, which == len(chains)] = deepest[:, :, rows[which == len(chains)]]
        for k, chain in enumerate(chains):
            mine = np.flatnonzero(which == k)
            if len(mine):
                of = rows[mine]
                ends[:, :, mine] = numpy_chains.ends_of(x, of, *numpy_chains.backward(rng, chain, of))
        keep = rng.random(len(rows)) < _ratio(ends[0], ends[1], n, f, kappa, least, tried, priors)
        keep = keep.reshape(-1, AHEAD)
        first, some = keep.argmax(axis=1), keep.any(axis=1)
        found[:, :, left[some]] = ends.reshape(2, len(f), -1, AHEAD)[:, :, some, first[some]]
        left = left[~some]
    return found[0], found[1]


def _chains(x: Array, d: int, f: Array, kappa: float, least: float) -> tuple[Array, Array, list[Chain]]:
    """(N_k, exp(kappa c_k) / 2, the chain of each), without those that weigh next to nothing."""
    n, tried = x.shape[1], []
    sizes, priors = _tried(n, least, len(f), d, kappa)
    middle = max(n, least)
    centres, heaviest = np.rint(f * middle).astype(int), np.zeros(len(x))
    reach = _reach(d, f, 2 * kappa) + math.ceil(np.abs(sizes - n).max())
    near = functools.cache(lambda half: numpy_chains.near(x, d, centres, half, reach))
    most = math.ceil(middle) + 1  # from there on there is no rest
    halves = dict.fromkeys((False, True), min(math.ceil(NEAR / (2 * kappa * SHALLOW)), most))
    for k in np.argsort(np.abs(sizes - middle), kind="stable").tolist():
        side = bool(sizes[k] > middle)
        while True:
            now = near(halves[side])
            chain = numpy_chains.forward(now, numpy_chains.targets(f * sizes[k], n - sizes[k], now.centres), kappa)
            weight = priors[k] * chain.total
            whole = np.maximum(heaviest, weight)
            if (priors[k] * chain.rest <= SMALL * whole).all():
                break
            halves[side] = min(halves[side] + (halves[side] + 1) // 2, most)
        if (weight > SMALL * whole).any():
            heaviest = whole
            tried.append((sizes[k], priors[k], chain))
        else:  # all that follow on this side most likely weigh less still, wherever they are looked for
            halves[side] = min(halves[side], FEW)
    good, weights, chains = zip(*tried, strict=True)
    return np.array(good), np.array(weights), list(chains)


def _tried(n: int, least: float, m: int, d: int, kappa: float) -> tuple[Array, Array]:
    """(N_k, exp(kappa c_k) / 2); c_k is half of the wider gap beside N_k. If that costs little, they are multiples of m + 1."""
    steps, centre = [0.0], max(n, least)
    while steps[-1] < m * d * math.log(2) - math.log(SMALL):
        steps.append(steps[-1] + max(STEP, WIDER * steps[-1]))
    sizes = centre + np.array([*(-x for x in steps[:0:-1]), *steps]) / kappa
    if (m + 1) * kappa <= STEP:
        sizes = np.rint(sizes / (m + 1)) * (m + 1)
    sizes = np.unique(np.maximum(sizes, least))
    wider = np.maximum(np.diff(sizes, prepend=sizes[0]), np.diff(sizes, append=sizes[-1]))
    return sizes, np.exp(kappa * wider / 2) / 2


def _ratio(low: Array, high: Array, n: int, f: Array, kappa: float, least: float, tried: Array, priors: Array) -> Array:
    """exp(kappa s(z)) over the weight with which tuples of these ranks are drawn."""
    drawn = np.exp(-kappa * _costs(low, high, n, f, tried[None])) @ priors
    depth = _depth(low, high, n, f)
    right = (depth > 0) & (n > least)
    with np.errstate(over="ignore", divide="ignore"):  # where the other of the two applies
        deep = 1 / (1 + drawn * np.exp(-kappa * np.minimum(depth, n - least)))
        return np.where(right, deep, np.exp(-kappa * _distance(low, high, n, f, least)) / drawn)


def _depth(low: Array, high: Array, n: int, f: Array) -> Array:
    """How many points must come or go until some output no longer has its rank; at most 0 if one has it not."""
    return np.asarray((_spare(low, high, f * n) / np.maximum(f, 1 - f)[:, None]).min(axis=0))


def _costs(low: Array, high: Array, n: int, f: Array, sizes: Array) -> Array:
    """(rows, sizes): how far a number must travel with targets f_j N; sizes may differ between rows."""
    at, cost = 0.0, 0.0
    for lowest, highest, fraction in zip(low[..., None], high[..., None], f, strict=True):
        there = np.minimum(np.maximum(at, lowest - fraction * sizes), highest - fraction * sizes)
        at, cost = there, cost + np.abs(there - at)
    return np.asarray(cost + np.abs(n - sizes - at))


def _distance(low: Array, high: Array, n: int, f: Array, least: float) -> Array:
    """The least cost over all N >= least: at one of those where two ends, each of an output's ranks, are equally far from their targets."""
    rows = low.shape[1]
    found = np.empty(rows)
    ties = (low < high).any(axis=0)
    for chosen, ends in ((ties, (low, high)), (~ties, (low,))):
        at = np.flatnonzero(chosen)
        if not len(at):
            continue
        ranks = np.concatenate([np.zeros((1, len(at))), *(end[:, at] for end in ends), np.full((1, len(at)), n)])
        share = np.array([0.0, *(f.tolist() * len(ends)), 1.0])
        first, second = _pairs(tuple(share.tolist()))
        sizes = (ranks[first] - ranks[second]) / (share[first] - share[second])[:, None]
        sizes = np.concatenate([np.full((1, len(at)), least), np.maximum(sizes, least)]).T
        found[at] = _costs(low[:, at], high[:, at], n, f, sizes).min(axis=1)
    return found


@functools.lru_cache(maxsize=16)
def _pairs(share: tuple[float, ...]) -> tuple[Array, Array]:
    """All pairs of different shares."""
    first, second = np.triu_indices(len(share), 1)
    different = np.array(share)[first] != np.array(share)[second]
    return first[different], second[different]


def shares(f: Array) -> Array:
    """w_j, the share of all points that should lie between neighbouring outputs."""
    return np.diff(f, prepend=0.0, append=1.0)


def _reach(d: int, f: Array, rate: float) -> int:
    """No tuple that misses a target by more ranks than this counts, as its weight falls by `rate` with each."""
    return math.ceil((len(f) * d * math.log(2) - math.log(SMALL)) / rate)


def _good(low: Array, high: Array, n: int) -> int:
    """In how many trials no answer is too far off."""
    wanted = np.array([math.floor(fraction * n + 0.5) for fraction in fractions(len(low))])[:, None]
    return int(np.count_nonzero((np.maximum(low - wanted, wanted - high) <= RANKS).all(axis=0)))


def _check(d: int, m: int, n: int) -> None:
    check(d, m, n)
    within(m=(m, 1, MOST_BITS / d))


PROGRAMS = {
    "quantiles joint": Program(joint, lambda d, m, n: fitting(16 * m * n, at_least=ROWS), _check),
    "quantiles inverse_sensitivity": Program(
        inverse_sensitivity, lambda d, m, n: fitting(16 * m * n, at_least=ROWS), _check
    ),
}
