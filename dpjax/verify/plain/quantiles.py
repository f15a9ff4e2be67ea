"""Naive exact references for direct, recursive and sliced quantiles (CLNSS §1.4) by the exponential mechanism on the depth."""

import bisect
import functools
import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import scipy.optimize

from dpjax.verify.plain.above_threshold import first_above
from dpjax.verify.plain.exponential import depth_law
from dpjax.verify.plain.report_noisy_max import permute_and_flip_law
from dpjax.verify.plain.supported import supported_law
from dpjax.verify.plain.tree_log import slice_sizes
from dpjax.verify.plain.tree_score import tree


def rank(fraction: float, n: int) -> int:
    """floor(fraction n + 1/2).

    >>> rank(0.5, 3), rank(0.3, 5)
    (2, 2)
    """
    return math.floor(fraction * n + 0.5)


def window(points: Sequence[int], k: int, m: int, low: int, high: int) -> list[int]:
    """Sorted points k - m, ..., k + m - 1 (from 0) of an endless sequence, `low` before them and `high` after.

    >>> window([5, 3, 4], 1, 2, 0, 7)
    [0, 3, 4, 5]
    """
    ordered = sorted(points)
    return [low if i < 0 else ordered[i] if i < len(ordered) else high for i in range(k - m, k + m)]


def direct_laws(
    points: Sequence[int], fractions: Sequence[float], *, size: int, m: int, epsilon: float
) -> list[list[float]]:
    """P[z], z = 0, ..., size - 1, of the run for each fraction.

    >>> [[round(p, 3) for p in law] for law in direct_laws([1, 1], [0.5], size=3, m=1, epsilon=math.log(2))]
    [[0.167, 0.667, 0.167]]
    """
    ranks = [rank(fraction, len(points)) for fraction in fractions]
    return [depth_law(window(points, k, m, 0, size - 1), size, epsilon) for k in ranks]


def by_scale(z: int, size: int, origin: int = 0) -> float:
    """2^-k / (s (d + 1)), 2^k <= t + 1 < 2^(k+1), t the distance from the origin (from origin - 1 below it), s the number of its sides.

    >>> [by_scale(z, 4, 2) * 6 for z in range(4)], by_scale(0, 4) * 3
    ([0.5, 1.0, 1.0, 0.5], 1.0)
    """
    t = z - origin if z >= origin else origin - 1 - z
    sides = 1 if origin in (0, size) else 2
    return 2.0 ** -((t + 1).bit_length() - 1) / (sides * ((size - 1).bit_length() + 1))


def rank_exponential_laws(
    points: Sequence[int],
    fractions: Sequence[float],
    *,
    size: int,
    epsilon: float,
    base: str = "uniform",
    origin: int = 0,
) -> list[list[float]]:
    """P[z], z = 0, ..., size - 1, of the exponential mechanism on the rank error, for each fraction; half of base "scales" is `by_scale`.

    >>> [[round(p, 3) for p in law] for law in rank_exponential_laws([1, 1], [0.5], size=3, epsilon=math.log(2))]
    [[0.167, 0.667, 0.167]]
    """
    below = sum(fractions)
    slope = epsilon / (sum(max(f, 1 - f) for f in fractions) + max(below, len(fractions) - below))
    laws = []
    for f in fractions:
        wanted = f * len(points)
        errors = [max(sum(x < z for x in points) - wanted, wanted - sum(x <= z for x in points)) for z in range(size)]
        weights = [math.exp(-slope * (error - min(errors))) for error in errors]
        if base == "scales":
            weights = [w * (1 / size + by_scale(z, size, origin)) / 2 for z, w in enumerate(weights)]
        laws.append([weight / sum(weights) for weight in weights])
    return laws


def permute_and_flip_laws(points: Sequence[int], fractions: Sequence[float], **given: Any) -> list[list[float]]:
    """The same for permute-and-flip with the same weights, over all orders of the points; `given` is as for `rank_exponential_laws`.

    >>> [[round(p, 3) for p in law] for law in permute_and_flip_laws([1, 1], [0.5], size=3, epsilon=math.log(2))]
    [[0.115, 0.771, 0.115]]
    """
    laws = rank_exponential_laws(points, fractions, **given)
    return [permute_and_flip_law([math.log(p) if p else -math.inf for p in law], 2.0) for law in laws]


def van_der_corput(i: int) -> float:
    """The binary digits of i in reverse, behind the point.

    >>> [van_der_corput(i) for i in range(1, 6)]
    [0.5, 0.25, 0.75, 0.125, 0.625]
    """
    return int(f"{i:b}"[::-1], 2) / 2 ** i.bit_length()


def gap_cost(ranks: np.ndarray, targets: Sequence[float] | np.ndarray) -> np.ndarray:
    """The total distance between the gaps of ranks r_0 = 0 <= r_1 <= ... and those of the targets, at the best ranks within bounds.

    One number for each row of `ranks`, which holds the pairs (lowest r_j, highest r_j).

    >>> gap_cost(np.array([[(0, 2), (2, 2)], [(1, 2), (3, 3)]]), [1.5, 2.0])  # r = (1.5, 2) and (1.5, 3)
    array([0., 1.])
    """
    ahead, cost = np.zeros(len(ranks)), np.zeros(len(ranks))  # ahead: r_j minus its target, changed only as it must be
    for j, target in enumerate(targets):
        here = np.clip(ahead, ranks[:, j, 0] - target, ranks[:, j, 1] - target)
        cost, ahead = cost + np.abs(here - ahead), here
    return cost


def joint_law(
    points: Sequence[int],
    fractions: Sequence[float],
    *,
    size: int,
    epsilon: float,
    candidates: int = 1,
    share: float = 0.05,
    base: str = "uniform",
    origin: int = 0,
) -> np.ndarray:
    """P[(z_1, ..., z_m)] of JointExp on {0, ..., size - 1}, over all sorted tuples.

    The weight of a tuple before data are seen is the product of 1/size over its parts. With base "scales" or "places" the product of
    `by_scale` over its parts is added, and with "places" also what `place_weights` gives, unless the noisy count is large (with one
    candidate always). With several candidates the number of points is fitted, by a sum over noisy counts; if the noisy count is large,
    the true number is a further candidate, for which right ranks with something to spare have negative costs.

    >>> joint_law([1, 1], [0.5], size=3, epsilon=math.log(2)).round(3).tolist()
    [0.167, 0.667, 0.167]
    """
    m, n = len(fractions), len(points)
    tuples, volumes, in_places = tuples_before(size, m, base, origin)
    ranks = np.array([[sum(x < z for x in points), sum(x <= z for x in points)] for z in range(size)])
    ranks = np.concatenate([ranks[tuples], np.full((len(tuples), 1, 2), n)], axis=1)
    exact = [round(fraction * 2**32) / 2**32 for fraction in fractions]

    def weights(cost: np.ndarray, kappa: float, volumes: np.ndarray) -> np.ndarray:
        law = np.zeros((size,) * m)
        np.add.at(law, tuple(tuples.T), volumes * np.exp(-kappa * cost))
        return law

    own = np.array([*(f * n for f in exact), n])
    spare = np.minimum(own[:-1] - ranks[:, :-1, 0], ranks[:, :-1, 1] - own[:-1]).min(axis=1)
    own_cost = np.where(spare > 0, -2 * spare, gap_cost(ranks, own))
    moves = 2 * (1 - min(np.diff([0.0, *exact, 1.0])))
    if candidates == 1:
        law = weights(own_cost, epsilon / 2 / moves, volumes + in_places)
        return law / law.sum()
    step, r, half, kappa = max(8 / epsilon, 1.0), math.exp(-share * epsilon), candidates // 2, (1 - share) * epsilon / 2
    noisy: dict[int, float] = {}
    for noise in range(-int(40 / (share * epsilon)), int(40 / (share * epsilon)) + 1):
        centre = max(math.floor((n + noise) / step + 0.5), 0)
        noisy[centre] = noisy.get(centre, 0.0) + (1 - r) / (1 + r) * r ** abs(noise)
    offsets = {sign * (k + max(k - 7, 0)) for k in range(half + 1) for sign in (-1, 1)}
    counts = [i * step for i in range(1, max(noisy) + max(offsets) + 1)]
    public = [[math.floor(2**16 * f * N) / 2**16 + j / 2**32 for j, f in enumerate([*exact, 1.0], 1)] for N in counts]
    costs = [gap_cost(ranks, targets) for targets in public]
    each, placed = ([weights(cost, kappa, of) for cost in costs] for of in (volumes, in_places))
    each_own = weights(own_cost, kappa / moves, volumes) / 16 / moves**m
    law = np.zeros((size,) * m)
    for centre, chance in noisy.items():
        looked = [centre + offset - 1 for offset in offsets if centre + offset >= 1]
        window = np.sum([each[i] for i in looked], axis=0)
        if kappa * centre * step <= 2 * m * math.log(size):
            window += np.sum([placed[i] for i in looked], axis=0)
        else:
            window += each_own
        law += chance * window / window.sum()
    return law


def inverse_sensitivity_law(
    points: Sequence[int],
    fractions: Sequence[float],
    *,
    size: int,
    epsilon: float,
    base: str = "uniform",
    origin: int = 0,
    share: float | None = None,
    margin: int | None = None,
) -> np.ndarray:
    """P[(z_1, ..., z_m)] by inverse sensitivity on {0, ..., size - 1}: the distances are found by linear programmes over counts.

    The weight of a tuple before data are seen is that of `joint_law`; for base "places" a noisy count, which spends a hundredth of epsilon
    (a twentieth for 24 outputs and more; or `share`), decides whether `place_weights` are added. For 24 outputs and more it also decides of
    how many points, at least, answers may be right: `margin` steps fewer. If `margin` is given, it does so for any number of outputs.

    >>> inverse_sensitivity_law([1, 1, 1, 1], [0.5], size=2, epsilon=math.log(2)).round(3).tolist()
    [0.081, 0.919]
    """
    m = len(fractions)
    if share is None:
        share = 0.05 if m >= 24 else 0.01
    share = share if base == "places" else 0.0
    if margin is None and m >= 24:
        margin = 3
    exact = [round(fraction * 2**32) / 2**32 for fraction in fractions]
    tuples, volumes, in_places = tuples_before(size, m, base, origin)
    kappa = (1 - share) * epsilon / 2
    fewest = min(6.0, m * math.log(size) / 2) / kappa  # the fewest points of which answers may be right

    def law(volumes: np.ndarray, least: float) -> np.ndarray:
        scores = [records_to_the_border(points, answers, exact, least=least) for answers in tuples]
        found = np.zeros((size,) * m)
        np.add.at(found, tuple(tuples.T), volumes * np.exp(kappa * np.array(scores)))
        return found / found.sum()

    if base != "places":
        return law(volumes, fewest)
    step, r, enough = math.ceil(1 / (share * epsilon)), math.exp(-share * epsilon), 2 * m * math.log(size) / kappa
    told: dict[tuple[bool, float], float] = {}
    for noise in range(-int(40 / (share * epsilon)), int(40 / (share * epsilon)) + 1):
        index = math.floor((len(points) + noise) / step)
        pays = index * step > enough
        case = (pays, fewest if pays or margin is None else max(fewest, (index - margin) * step))
        told[case] = told.get(case, 0.0) + (1 - r) / (1 + r) * r ** abs(noise)
    each = [chance * law(volumes + (not pays) * in_places, least) for (pays, least), chance in told.items()]
    return np.sum(each, axis=0)


def records_to_the_border(
    points: Sequence[int], answers: Sequence[int], fractions: Sequence[float], *, least: float = 0.0
) -> float:
    """How many records, fractions included, must come or go until the answers no longer have the ranks f n of n >= `least` points.

    If they do not have them, minus the number that must come or go until they do.

    >>> round(records_to_the_border([1, 1, 2], [1], [0.5]), 6), round(records_to_the_border([1, 1, 2], [2], [0.5]), 6)
    (1.0, -1.0)
    """
    values = sorted(set(answers))
    # Points below the first value, at it, between it and the second one, ...
    cells = np.array([2 * bisect.bisect_left(values, x) + (x in values) for x in points], int)
    counts = np.bincount(cells, minlength=2 * len(values) + 1).astype(float)
    place = np.arange(counts.size)
    at = [2 * values.index(z) + 1 for z in answers]
    rows = [f - (place < z) for z, f in zip(at, fractions, strict=True)]
    rows += [(place <= z) - f for z, f in zip(at, fractions, strict=True)]
    holds = np.array([*rows, np.ones(counts.size)], float)  # the answers have the ranks if holds @ counts >= bounds
    bounds = np.append(np.zeros(len(rows)), least)

    def changes(inequalities: np.ndarray, bounds: np.ndarray) -> float:
        """The least change of the counts, to numbers >= 0, after which inequalities @ counts <= bounds."""
        both = np.concatenate([np.eye(counts.size), -np.eye(counts.size)], axis=1)
        found = scipy.optimize.linprog(
            np.ones(2 * counts.size),
            A_ub=np.concatenate([inequalities @ both, -both]),
            b_ub=np.concatenate([bounds - inequalities @ counts, counts]),
        )
        return float(found.fun)

    if (holds @ counts >= bounds - 1e-12).all():
        return min(changes(row[None], bound[None]) for row, bound in zip(holds, bounds, strict=True))
    return -changes(-holds, -bounds)


def tuples_before(size: int, m: int, base: str, origin: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """All sorted m-tuples of {0, ..., size - 1}, the weight of each before data are seen, and what base "places" adds to that.

    >>> [part.tolist() for part in tuples_before(2, 1, "uniform", 0)]
    [[[0], [1]], [0.5, 0.5], [0.0, 0.0]]
    """
    tuples = np.array(list(itertools.combinations_with_replacement(range(size), m)))
    measures = np.array([[1 / size] + [by_scale(z, size, origin)] * (base != "uniform") for z in range(size)])
    in_places = place_weights(tuples, size) / size**m if base == "places" else np.zeros(len(tuples))
    return tuples, measures[tuples].prod(axis=1).sum(axis=1), in_places


def place_weights(values: np.ndarray, size: int) -> np.ndarray:
    """The sum over 8 levels l, with weight 1/36 each, of how much more likely than uniform tuples are those within one of 2^l intervals.

    >>> place_weights(np.array([[0, 3], [0, 1], [1, 1]]), 4).round(3).tolist()
    [0.0, 0.222, 0.667]
    """
    bits, outputs = size.bit_length() - 1, values.shape[1]
    assert size == 2**bits, size
    found = np.zeros(len(values))
    for level in (-(-k * bits // 8) for k in range(1, 9)):
        place = values >> (bits - level)
        found += 2.0 ** (level * (outputs - 1)) / 36 * (place == place[:, :1]).all(axis=1)
    return found


def approximate_law(
    points: Sequence[int], fractions: Sequence[float], *, bits: int, extra: int, epsilon: float
) -> dict[tuple[int, ...], float]:
    """P[(z_1, ..., z_m)] of ApproximateQuantiles: the middle fraction, then those on both sides, on points spread by `extra` bits.

    >>> law = approximate_law([0, 0, 3], [0.5], bits=2, extra=0, epsilon=math.log(2))
    >>> {answers: round(p, 3) for answers, p in law.items()}
    {(0,): 0.143, (1,): 0.286, (2,): 0.286, (3,): 0.286}
    """
    top, levels = 2 ** (bits + extra), len(fractions).bit_length()
    spread = []
    for a in set(points):
        spread += [math.ceil(2**extra * (a + van_der_corput(i))) for i in range(1, list(points).count(a) + 1)]

    def node(chosen: Sequence[float], left: int, right: int, ends: tuple[float, float]) -> dict[tuple[int, ...], float]:
        if not chosen:
            return {(): 1.0}
        middle = (len(chosen) + 1) // 2 - 1
        g = (chosen[middle] - ends[0]) / (ends[1] - ends[0])
        own = [x for x in spread if left < x <= right] if right < top else [x for x in spread if left < x]
        weights = {
            y: math.exp(-epsilon / (2 * levels * max(g, 1 - g)) * abs(sum(x <= y for x in own) - g * len(own)))
            for y in range(left, right)
        } or {left: 1.0}
        law: dict[tuple[int, ...], float] = {}
        for y, weight in weights.items():
            below = node(chosen[:middle], left, y, (ends[0], chosen[middle]))
            above = node(chosen[middle + 1 :], y, right, (chosen[middle], ends[1]))
            for (a, pa), (b, pb) in itertools.product(below.items(), above.items()):
                law[(*a, y, *b)] = law.get((*a, y, *b), 0.0) + weight / sum(weights.values()) * pa * pb
        return law

    total: dict[tuple[int, ...], float] = {}
    for answers, p in node(list(fractions), 0, top, (0.0, 1.0)).items():
        coarse = tuple(y >> extra for y in answers)
        total[coarse] = total.get(coarse, 0.0) + p
    return total


def in_order(laws: Sequence[Sequence[float]]) -> np.ndarray:
    """The joint law of the answers of two independent runs, put in order.

    >>> in_order([[0.0, 1.0], [0.5, 0.5]]).tolist()
    [[0.0, 0.5], [0.0, 0.5]]
    """
    first, second = laws
    runs = np.outer(first, second)
    return np.triu(runs) + np.tril(runs, -1).T


def recursive_law(
    points: Sequence[int], bits: int, *, extra: int = 0, levels: int, m: int, epsilon: float
) -> dict[tuple[int, ...], float]:
    """P[(z_1, ..., z_q)] of medians and of the medians on either side of them, over all ways in which `extra` random bits break ties.

    >>> law = recursive_law([0, 1], 1, levels=1, m=1, epsilon=math.log(2))
    >>> {answers: round(p, 3) for answers, p in law.items()}
    {(0,): 0.5, (1,): 0.5}
    """

    def node(part: list[int], left: int, right: int, level: int) -> dict[tuple[int, ...], float]:
        if level == 0:
            return {(): 1.0}
        law: dict[tuple[int, ...], float] = {}
        around = window(part, (len(part) + 1) // 2, m, left, right)
        for z, p in enumerate(depth_law(around, 2 ** (bits + extra), epsilon)):
            middle = min(max(z, left), right)
            below = node([x for x in part if x < middle], left, middle, level - 1)
            above = node([x for x in part if x >= middle], middle, right, level - 1)
            for (a, pa), (b, pb) in itertools.product(below.items(), above.items()):
                answers = (*a, middle, *b)
                law[answers] = law.get(answers, 0.0) + p * pa * pb
        return law

    total: dict[tuple[int, ...], float] = {}
    ties = list(itertools.product(range(2**extra), repeat=len(points)))
    for tie in ties:
        split = [(x << extra) + u for x, u in zip(points, tie, strict=True)]
        for answers, p in node(split, 0, 2 ** (bits + extra) - 1, levels).items():
            cut = tuple(z >> extra for z in answers)
            total[cut] = total.get(cut, 0.0) + p / len(ties)
    return total


def sliced_law(
    points: Sequence[int],
    gaps: Mapping[int, Sequence[int]],
    *,
    domain: int,
    size: int,
    slice_epsilon: float,
    count_epsilon: float,
    epsilon: float,
) -> np.ndarray:
    """The joint law of sliced quantiles before they are put in order: sums over the released count and over all sizes.

    Args:
      points: in {0, ..., domain - 1}.
      gaps: for every released count, the least number of points skipped before each slice.
      size: the least number of points of a slice on which the solver, which spends epsilon, runs.
      slice_epsilon, count_epsilon: rates of the noise in the sizes and in the count.

    >>> law = sliced_law([0, 1], dict.fromkeys(range(70), [0]), domain=2, size=2, slice_epsilon=9.0, count_epsilon=1.0, epsilon=1.0)
    >>> law.round(3).tolist()
    [0.5, 0.5]
    """
    ordered, count = tuple(sorted(points)), len(gaps[0])
    n, r = len(ordered), math.exp(-count_epsilon)
    law = np.zeros((domain,) * count)
    chances: dict[tuple[int, ...], float] = {}
    for noise in range(-60, 61):  # beyond, exp(-60) of the rate
        leasts = tuple(min(gap, n) for gap in gaps[max(n + noise, 0)])
        chances[leasts] = chances.get(leasts, 0.0) + (1 - r) / (1 + r) * r ** abs(noise)

    def walk(at: int, least: list[int], answers: list[np.ndarray], p: float) -> None:
        if not least:
            law[...] += p * functools.reduce(np.multiply.outer, answers)
            return
        for chance, length in slice_sizes(least[0], n - at, slice_epsilon):
            computed = [cut_law(ordered[at : at + length], domain, epsilon)] if len(least) % 2 else []
            walk(at + length, least[1:], answers + computed, p * chance)

    for leasts, p in chances.items():
        walk(0, [least for gap in leasts for least in (gap, size)], [], p)
    return law


@functools.cache
def cut_law(points: tuple[int, ...], size: int, epsilon: float) -> np.ndarray:
    """`depth_law` as an array, cached for slices that recur.

    >>> cut_law((0, 1), 2, 1.0).tolist()
    [0.5, 0.5]
    """
    return np.array(depth_law(points, size, epsilon))


def tree_law(
    points: Sequence[int], fraction: float, *, bits: int, branching: int, epsilon: float, reach: int = 40
) -> list[float]:
    """P[z], z = 0, ..., 2^bits - 1, of one quantile from a hierarchical histogram, over all noises up to `reach`, level by level.

    >>> [round(p, 3) for p in tree_law([0, 0, 1], 0.5, bits=1, branching=2, epsilon=1.0)]
    [0.633, 0.367]
    """
    width = branching.bit_length() - 1
    levels = -(-bits // width)
    rate = epsilon / levels
    noise = np.arange(-reach, reach + 1)
    mass = np.exp(-rate * abs(noise)) * math.tanh(rate / 2)
    law = np.zeros(2**bits)

    def descend(
        first: int, size: int, children: int, total: float | None, variance: float, rank: float, p: float
    ) -> None:
        part = size // children
        counts = [sum(first + j * part <= x < first + (j + 1) * part for x in points) for j in range(children)]
        noises = np.array(list(itertools.product(noise, repeat=children)))
        chances = np.array(list(itertools.product(mass, repeat=children))).prod(axis=1)
        estimates = np.array(counts) + noises.astype(float)
        sums = estimates.sum(axis=1)
        share = 0.0 if total is None else 1 / (children + variance)
        totals = sums if total is None else np.full(len(sums), total)
        ranks = fraction * np.maximum(sums, 0) if total is None else np.full(len(sums), rank)
        estimates += share * (totals - sums)[:, None]
        running = estimates.cumsum(axis=1)
        exceeds = running > ranks[:, None]
        chosen = np.where(exceeds.any(axis=1), exceeds.argmax(axis=1), children - 1)
        if part == 1:
            law[first : first + children] += p * np.bincount(chosen, chances, children)
            return
        rows = np.arange(len(sums))
        ranks = ranks - np.where(chosen > 0, running[rows, chosen - 1], 0.0)
        states, which = np.unique(
            np.stack([chosen, estimates[rows, chosen], ranks]).round(9), axis=1, return_inverse=True
        )
        for (j, count, t), q in zip(states.T.tolist(), np.bincount(which.ravel(), chances), strict=True):
            descend(first + int(j) * part, part, branching, count, 1.0 if total is None else 1 - share, t, p * q)

    descend(0, 2**bits, 2 ** (bits - width * (levels - 1)), None, 0.0, 0.0, 1.0)
    return law.tolist()


def unbounded_laws(
    points: Sequence[int],
    fractions: Sequence[float],
    grid: Sequence[int],
    *,
    size: int,
    epsilon: float,
    downward: Sequence[bool],
) -> list[list[float]]:
    """P[z], z = 0, ..., size - 1, of AboveThreshold along the grid, upwards or downwards, for each fraction.

    >>> [[round(float(p), 3) for p in law] for law in unbounded_laws([1, 1], [0.5], [0, 2], size=3, epsilon=1.0, downward=[False])]
    [[0.343, 0.0, 0.657]]
    """
    near = [1 - f if down else f for f, down in zip(fractions, downward, strict=True)]
    rate = epsilon / max(sum(max(f, 1 - f) for f in near), sum(f + 0.5 for f in near))
    laws = []
    for f, down in zip(near, downward, strict=True):
        asked = sorted(grid, reverse=down)
        queries = [sum(x >= y if down else x <= y for x in points) - f * len(points) for y in asked]
        found = first_above(queries, 0.0, 2 * rate, range(len(asked) + 1))
        law = [0.0] * size
        for y, p in zip([*asked, asked[-1]], found, strict=True):
            law[y] += p
        laws.append(law)
    return laws


def noisy_pairs(
    n: int, wanted: Callable[[int], tuple[int, int]], *, rank_rate: float, count_rate: float, spacing: int, reach: int
) -> tuple[dict[tuple[int, int], float], float]:
    """(P of each pair of noisy places, P[wanted ones are too near]): sums over noises up to `reach` of the count and of both places.

    >>> pairs, none = noisy_pairs(9, lambda n: (n, 2 * n), rank_rate=9.0, count_rate=9.0, spacing=9, reach=1)
    >>> round(pairs[9, 18], 4), round(none, 6)  # below 9 records places are less than 9 apart
    (0.9993, 0.000123)
    """

    def masses(rate: float) -> dict[int, float]:
        r = math.exp(-rate)
        return {k: (1 - r) / (1 + r) * r ** abs(k) for k in range(-reach, reach + 1)}

    places: dict[tuple[int, int], float] = {}
    each, counts, none = masses(rank_rate), masses(count_rate), 0.0
    for off, p in counts.items():
        first, second = wanted(max(n + off, 0))
        if second - first < spacing:
            none += p
            continue
        for (a, pa), (b, pb) in itertools.product(each.items(), repeat=2):
            place = first + a, second + a + b  # a moves both, b the distance between them
            places[place] = places.get(place, 0.0) + p * pa * pb
    return places, none


def noisy_slices_law(
    points: Sequence[int],
    fractions: Sequence[float],
    *,
    domain: int,
    m: int,
    rank_epsilon: float,
    count_epsilon: float,
    spacing: int,
    epsilon: float,
    reach: int = 40,
) -> tuple[np.ndarray, float]:
    """(joint law of two quantiles from noisy slices before they are put in order, P[none]): sums over the count and both ranks.

    >>> law, none = noisy_slices_law(
    ...     [0] * 9, [0.2, 0.8], domain=2, m=1, rank_epsilon=9.0, count_epsilon=9.0, spacing=5, epsilon=1.0
    ... )
    >>> law.round(2).tolist(), round(none, 3)
    ([[0.78, 0.1], [0.1, 0.01]], 0.0)
    """
    ordered, law = sorted(points), np.zeros((domain, domain))
    rates: dict[str, Any] = {"rank_rate": rank_epsilon, "count_rate": count_epsilon}

    def wanted(n: int) -> tuple[int, int]:
        return rank(fractions[0], n), rank(fractions[1], n)

    ranks, none = noisy_pairs(len(points), wanted, **rates, spacing=spacing, reach=reach)
    for (first, second), p in ranks.items():
        if second - first <= 2 * m:
            none += p
            continue
        slices = [tuple(window(ordered, k, m, 0, domain - 1)) for k in (first, second)]
        law += p * np.outer(*[cut_law(part, domain, epsilon) for part in slices])
    return law, none


def supported_slices_law(
    points: Sequence[int],
    fractions: Sequence[float],
    *,
    bits: int,
    m: int,
    margin: int,
    rate: float,
    count_epsilon: float,
    least: int,
    epsilon: float,
    delta: float,
    step: int,
    reach: int,
) -> tuple[np.ndarray, float]:
    """The same for two quantiles by the keys that the data support, around ranks in units of 1/step with noises of their own.

    >>> given = {"bits": 1, "m": 2, "margin": 1, "rate": 9.0, "count_epsilon": 9.0, "least": 13, "epsilon": 8.0, "delta": 0.1}
    >>> law, none = supported_slices_law([0] * 9 + [1] * 9, [0.2, 0.8], **given, step=2, reach=9)
    >>> law.round(2).tolist(), round(none, 3)
    ([[0.0, 1.0], [0.0, 0.0]], 0.0)
    """
    ordered, n = tuple(sorted(points)), len(points)
    noise = np.arange(-reach, reach + 1)
    masses = np.tanh(rate / 2) * np.exp(-rate * np.abs(noise))
    places = [math.floor(f * n * step) + noise for f in fractions]
    runs = [
        masses[:, None] * [_supported_run(ordered, place / step, bits, m, epsilon, delta)[:-1] for place in each]
        for each in places
    ]
    far = np.searchsorted(places[1], places[0] + step * (2 * m + margin + 1))  # from here on the second is far enough
    behind = np.append(np.cumsum(runs[1][::-1], axis=0)[::-1], np.zeros((1, 2**bits)), axis=0)
    r = math.exp(-count_epsilon)
    enough = 1 - r ** (n - least + 1) / (1 + r) if n >= least else r ** (least - n) / (1 + r)
    law = enough * runs[0].T @ behind[far]
    return law, 1 - float(law.sum())


@functools.lru_cache(100_000)  # sums ask the same again and again
def _supported_run(
    points: tuple[int, ...], wanted: float, bits: int, m: int, epsilon: float, delta: float
) -> list[float]:
    scores = supported_scores(points, wanted, 0.5, bits=bits, m=m)
    return supported_law(scores, epsilon, delta, 5 * bits - 4, monotone=False)


def supported_scores(points: Sequence[int], wanted: float, worse: float, *, bits: int, m: int) -> list[float]:
    """min(points of the window around the rank `wanted` in the subtree of y, (m - rank error)/worse) for y = 0, ..., 2^bits - 1.

    There are points without end at 0 before all others, and at 2^bits - 1 behind them.

    >>> supported_scores([1, 1, 2], 1.5, 0.5, bits=2, m=1)
    [-1.0, 2, 1.0, -1.0]
    """
    first, stop = math.floor(wanted - m), math.ceil(wanted + m)
    ordered, top = sorted(points), 2**bits - 1
    inside = [0 if i < 0 else ordered[i] if i < len(ordered) else top for i in range(first, stop)]
    scores = []
    for y, (interval, _) in sorted(tree(bits).items()):
        below = sum(x < y for x in points) if y > 0 else -math.inf
        up_to = sum(x <= y for x in points) if y < top else math.inf
        error = max(wanted - up_to, below - wanted, 0)
        scores.append(min(sum(x in interval for x in inside), (m - error) / worse))
    return scores


def supported_laws(
    points: Sequence[int], fractions: Sequence[float], *, bits: int, epsilon: float, delta: float, m: int
) -> list[list[float]]:
    """P[y] for y = 0, ..., 2^bits - 1, then P[bottom], of the run for each fraction, by the keys that the data support.

    >>> [[round(p, 3) for p in law] for law in supported_laws([1, 1, 2], [0.5], bits=2, epsilon=4.0, delta=0.1, m=1)]
    [[0.0, 0.123, 0.017, 0.0, 0.86]]
    """
    widths = [max(f, 1 - f) for f in fractions]
    price, laws = sum(1 + 2 * w for w in widths), []
    for f, w in zip(fractions, widths, strict=True):
        given = epsilon * (1 + 2 * w) / price, delta / len(fractions), 5 * bits - 4
        scores = supported_scores(points, f * len(points), w, bits=bits, m=m)
        laws.append(supported_law(scores, *given, monotone=False))
    return laws
