"""The laws of all neighbouring pairs as one pair that dominates them, and the largest Rényi divergence among them.

For a pair (P, Q) and the outcomes in order of falling P/Q, the points (Q_k, P_k) of the first k outcomes are the tests of Neyman and
Pearson: H(x) = sup_R P[R] - x Q[R] is the largest P_k - x Q_k. The largest H over all pairs is therefore attained on the points of all
pairs together, and only on the corners of their upper hull. A concave chain from (0, 0) to (1, 1) is itself the chain of a pair: its
outcomes are the edges, with P = rise and Q = run. This pair (P*, Q*) has H*(x) = max over pairs of H(x) at every x >= 0. So it dominates
each pair, no smaller pair does, and runs of the algorithm, adaptive ones, too, lose no more than the same number of independent draws
from (P*, Q*) (Zhu, Dong, Wang 2022, Theorem 10, and Proposition 8 for the chain).

Neighbouring pairs come in both orders, so the chain is its own mirror image, and the loss of (Q*, P*) has the same law.
"""

import heapq
import math

import numpy as np

from dpjax.verify.exact import in_parts

_FINEST = 2.0**-12  # `concentration` stops at this relative precision
_HIGHEST = 2.0**1000  # beyond, (order - 1) times a loss may overflow, and D_order is D_infinity to the last digit


def chain(p: np.ndarray, pairs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The corners (Q*_k, P*_k) of the dominating pair's tests, from (0, the mass of infinite loss) to (1, 1).

    Args:
      p: laws, float64 (datasets, outcomes).
      pairs: ordered neighbouring pairs, (pairs, 2), both orders.

    >>> q, power = chain(np.array([[0.75, 0.25], [0.25, 0.75]]), np.array([[0, 1], [1, 0]]))
    >>> q.tolist(), power.tolist()
    ([0.0, 0.25, 1.0], [0.0, 0.75, 1.0])
    """
    p = p / p.sum(axis=1, keepdims=True)
    points = np.array([[0.0, 0.0], [1.0, 1.0]])
    for i, j in in_parts(pairs, p.shape[1]):
        first, second = p[i], p[j]
        with np.errstate(divide="ignore", invalid="ignore"):
            order = np.argsort(-np.where(first > 0, first / second, 0.0), axis=1, kind="stable")
        tests = [np.cumsum(np.take_along_axis(law, order, 1), axis=1).ravel() for law in (second, first)]
        points = _upper_hull(np.concatenate([points, np.minimum(np.stack(tests, axis=1), 1.0)]))
    return points[:, 0], points[:, 1]


def _upper_hull(points: np.ndarray) -> np.ndarray:
    """The corners, from left to right: a point on or under the chord of its neighbours is not one, whichever others are dropped with it."""
    points = points[np.lexsort((-points[:, 1], points[:, 0]))]
    points = points[np.append(True, np.diff(points[:, 0]) > 0)]
    while len(points) > 2:
        before, here, after = points[:-2], points[1:-1], points[2:]
        (x, y), (u, v) = (here - before).T, (after - before).T
        corner = np.concatenate([[True], u * y > v * x, [True]])
        if corner.all():
            break
        points = points[corner]
    return points


def losses(p: np.ndarray, pairs: np.ndarray, rounding: float) -> tuple[np.ndarray, np.ndarray]:
    """(losses of a dominating pair, the last infinite; their masses under P*); it dominates even if all tests err by `rounding` in P and Q.

    >>> loss, mass = losses(np.array([[0.75, 0.25], [0.25, 0.75]]), np.array([[0, 1], [1, 0]]), 0.0)
    >>> loss.round(4).tolist(), mass.tolist()
    ([1.0986, -1.0986, inf], [0.75, 0.25, 0.0])
    """
    q, power = _rounded(p, pairs, rounding)
    run, rise = np.diff(q), np.diff(power)
    likely = rise > 0.0
    masses = np.append(rise[likely], power[0])
    return np.append(np.log(rise[likely] / run[likely]), math.inf), masses


def trade_off(p: np.ndarray, pairs: np.ndarray, rounding: float, errors: np.ndarray) -> np.ndarray:
    """The largest convex function that no test of any pair goes below, at type I errors, even if all tests err by `rounding`."""
    return np.maximum(0.0, 1.0 - np.interp(errors, *_rounded(p, pairs, rounding)))


def _rounded(p: np.ndarray, pairs: np.ndarray, rounding: float) -> tuple[np.ndarray, np.ndarray]:
    """The chain where each Q_k may be less, and each P_k more, by `rounding`; it is its own mirror image still."""
    q, power = chain(p, pairs)
    moved = np.stack([np.maximum(q - rounding, 0.0), np.minimum(power + rounding, 1.0)], axis=1)
    points = _upper_hull(np.concatenate([moved, [[1.0, 1.0]]]))
    return points[:, 0], points[:, 1]


def renyi(p: np.ndarray, pairs: np.ndarray, rounding: float, order: float) -> float:
    """The largest D_order(P || Q) over pairs, order in [1, infinity].

    Of each pair, the outcomes with P <= rounding are merged into two, and ignored where P is no more than the rounding even so.

    >>> round(renyi(np.array([[0.75, 0.25], [0.25, 0.75]]), np.array([[0, 1], [1, 0]]), 0.0, 2.0), 4)
    0.8473
    """
    if order > _HIGHEST:
        order = math.inf
    found = (_largest_divergence(p[i], p[j], rounding, order) for i, j in in_parts(pairs, p.shape[1]))
    return max(0.0, *found)


def _largest_divergence(first: np.ndarray, second: np.ndarray, rounding: float, order: float) -> float:
    first, second = _rare_together(first, second, rounding)
    seen = first > rounding
    with np.errstate(divide="ignore"):
        log_first = np.log(np.where(seen, first, 1.0))
        loss = np.where(seen, log_first - np.log(second), -math.inf if math.isinf(order) else 0.0)
    if math.isinf(order):
        return float(loss.max())
    if order == 1.0:
        return float(np.where(seen, first * loss, 0.0).sum(axis=1).max())
    scaled = (order - 1.0) * loss
    most = np.maximum(scaled.max(axis=1, keepdims=True), 0.0)
    if np.isinf(most).any():
        return math.inf
    # Near order 1 the sum is little more than 1, and the excess keeps its own digits; far from it, factoring out exp(most) avoids overflow.
    near = np.log1p(np.where(seen, first * np.expm1(np.minimum(scaled, 1.0)), 0.0).sum(axis=1))
    far = most[:, 0] + np.log(np.where(seen, first * np.exp(scaled - most), 0.0).sum(axis=1))
    return float(np.where(most[:, 0] < 1.0, near, far).max()) / (order - 1.0)


def _rare_together(first: np.ndarray, second: np.ndarray, rounding: float) -> tuple[np.ndarray, np.ndarray]:
    """The laws with the outcomes of first <= rounding merged into two, likelier and less likely: merging raises no divergence.

    One by one, each may be rounding; a leak that is spread over many of them shows in their sums.
    """
    rare = first <= rounding
    merged = [rare & (first > second), rare & (first <= second)]

    def with_merged(law: np.ndarray) -> np.ndarray:
        sums = [np.where(part, law, 0.0).sum(axis=1, keepdims=True) for part in merged]
        return np.concatenate([np.where(rare, 0.0, law), *sums], axis=1)

    return with_merged(first), with_merged(second)


def concentration(p: np.ndarray, pairs: np.ndarray, rounding: float) -> float:
    """The least rho with D_order <= rho order for all orders > 1 and all pairs, from above, to a relative 2^-12; D_order as `renyi` has it.

    Losses below 1e-6 lose digits: rho is then overstated, by a fiftieth at losses of 1e-7 and twice at 1e-8.

    D_order rises with the order, so on orders from a to b D_order / order is at most D_b / a, and at least D_a / a somewhere. Intervals
    whose bound is above the best value known are halved. Orders beyond the last are bounded by D_infinity.

    >>> round(concentration(np.array([[0.75, 0.25], [0.25, 0.75]]), np.array([[0, 1], [1, 0]]), 0.0), 3)
    0.549
    """

    def largest(order: float) -> float:
        return renyi(p, pairs, rounding, order)

    best, pure = largest(1.0), largest(math.inf)
    if best == 0.0 or math.isinf(pure):
        return pure
    last = pure / best  # beyond it D_infinity / order is below the value at order 1
    # (-D_high / low, low, high): the largest bound is first.
    intervals = [(-largest(last), 1.0, last)] if last > 1.0 else []
    while intervals and -intervals[0][0] > best * (1.0 + _FINEST):
        bound, low, high = heapq.heappop(intervals)
        middle = math.sqrt(low * high)
        between = largest(middle)
        best = max(best, between / middle)
        heapq.heappush(intervals, (-between / low, low, middle))
        heapq.heappush(intervals, (bound * low / middle, middle, high))
    return best * (1.0 + _FINEST)
