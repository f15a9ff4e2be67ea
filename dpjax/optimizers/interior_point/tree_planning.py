"""How many points the tree score needs, by a theorem and exactly, and offsets with which they are few.

Notation of `dpjax.optimizers.interior_point.tree_score`; a key is good if it is an interior point, else bad.

**By a theorem.** Let n >= 2 B - 1 and y* the shallowest key in [x_(B), x_(n+1-B)], of level z. All keys of that interval lie in its
subtree, and so do all points of it: m_y* >= n - 2 (B - 1), while #<= and #>= are at least B. So the good keys weigh at least

    exp(min(epsilon B - epsilon b_z, epsilon (n - 2B + 2) - epsilon A_z)).

A bad key has #<= or #>= zero. If m_y = 0 it weighs at most exp(-epsilon A_z); if not it has keys below it (at a leaf's points its key is
good), lies on the search path of the least or of the greatest point, and weighs at most exp(-epsilon b_z). So the bad keys weigh at most

    W = sum_{z > 0} min(2, N_z) exp(-epsilon b_z) + sum_z N_z exp(-epsilon A_z),    N_0 = 1, N_z = 2^(bits - z) keys of level z,

and they are drawn with probability at most beta where, with L = ln(W (1 - beta)/beta) and B_z = ceil((L + epsilon b_z)/epsilon),

    n >= 2 B_z - 2 + max{1, ceil((L + epsilon A_z)/epsilon)}    for every level z.

With b = 0 and A_z = A that is n = A + 3 B - 2, least about where exp(-epsilon A) M = bits: those are the `plain` offsets, and
n = (ln M + 2 ln(bits) + O(1 + ln(1/beta)))/epsilon.

**Exactly.** The failure is at most beta on all data of n points iff F(S) = bad - odds good <= 0 for all of them, odds = beta/(1 - beta): a
sum over keys, in which a key counts with the numbers of points before its subtree, before it, at it and below it. So the maximum of F
over all data, on domains of any size, comes from a programme over subtrees. Let V_z(i, t) be the largest sum over a subtree of keys of
levels 1, ..., z that holds the points i + 1, ..., t in order. If the points up to j are before its key and those up to q are not behind it,

    V_z(i, t) = max_{i <= j <= q <= t}  V_{z-1}(i, j) + V_{z-1}(q, t) + f_z(min(q, n - j), t - i),
    f_z(r, m) = exp(min(epsilon r - epsilon b_z, epsilon m - epsilon A_z)) (1 if r = 0, else -odds).

As f is a function of the lesser one of q and n - j, the maximum over the other one is a running maximum: n^3 steps a level instead of n^4.
Subtrees with the key 0 are those that begin at i = 0, and have a row W_z(t) of their own. On a domain of 2^64 points a tenth of a second.

**In groups.** Where n is too large for that, let n = g N + g - 1 and look at every g-th point only: at x_(g), x_(2g), ..., x_(gN). If a key
has l of these up to it, r from it on and m in its subtree, then #<= is at least g l, #>= at least g r, and m_y is from g m - (g - 1) to
g m + g - 1. So min(l, r) >= 1 makes a key good, of weight exp(min(epsilon g min(l, r) - epsilon b_z, epsilon (g m - g + 1) - epsilon A_z))
at least, and all others weigh exp(min(-epsilon b_z, epsilon (g m + g - 1) - epsilon A_z)) at most if they are bad. The same programme for
N points with these weights bounds F from above, and F <= 0 for n with odds e^(-epsilon (g - 1)) times as large holds for n, ..., n + g - 1.
"""

import functools
import math
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from dpjax.core import arguments
from dpjax.core.pytree import frozen
from dpjax.domains.wide import MAX_BITS

MOST_STEPS = 5e7  # of one programme; a second or so
LARGEST = 600.0  # ln of the largest weight
_SLACK = 1e-9  # of W: above what rounding in float64 can add up to
_MARGIN = 0.5  # of ln odds, where sizes are passed without a programme of their own
_NAMES = ("a", "alpha", "p", "tau")
_FIRST_STEPS = (2.0, 0.05, 0.4, 0.03)  # of a search, in nats


@frozen
class Offsets:
    """Public offsets of the levels z: epsilon A_z = a - alpha z, epsilon b_z = p ln(1 + z) + tau z, in nats."""

    a: Any
    alpha: Any
    p: Any
    tau: Any

    def sizes(self, level: Float[Array, "*s"]) -> Float[Array, "*s"]:
        """epsilon A_z."""
        return jnp.asarray(self.a, float) - jnp.asarray(self.alpha, float) * level

    def ranks(self, level: Float[Array, "*s"]) -> Float[Array, "*s"]:
        """epsilon b_z."""
        return jnp.asarray(self.p, float) * jnp.log1p(level) + jnp.asarray(self.tau, float) * level


def offsets(*, a: Any, alpha: Any = 0.0, p: Any = 0.0, tau: Any = 0.0) -> Offsets:
    """Offsets from four finite numbers.

    Raises:
      TypeError, ValueError: an argument is no finite number.
    """
    given = {"a": a, "alpha": alpha, "p": p, "tau": tau}
    return Offsets(**{name: arguments.real(name, x, above=-math.inf, below=math.inf) for name, x in given.items()})


def plain(bits: int) -> Offsets:
    """b = 0 and epsilon A_z = ln(2^bits / bits): about the best ones of this form for the theorem.

    >>> round(float(plain(64).a), 3)
    40.203
    """
    return offsets(a=bits * math.log(2.0) - math.log(bits))


@functools.lru_cache(1024)
def least_n(bits: int, epsilon: float, a: float, alpha: float, p: float, tau: float, beta: float, most: float) -> int:
    """Points from which on the failure is at most beta, on all data of that size or a greater one.

    By the theorem; and then, as far as one programme takes `most` steps at most, down to the least size that is right with all sizes above.
    Several sizes are passed at once if odds hold with a margin: without a point between the others, n + 1 points are n, of which the good
    keys weigh no more and the bad ones at least e^-epsilon times as much; so the odds grow by e^epsilon at most from n >= 2 to n + 1.
    """
    case, stride = _Case(bits, epsilon, a, alpha, p, tau), max(int(_MARGIN / epsilon), 1)
    n, odds = case.enough(beta), beta / (1 - beta)
    while stride:
        while (
            n - stride >= min(stride, 2)
            and case.affordable(n - stride, most)
            and case.keeps(n - stride, odds * math.exp(-epsilon * (stride - 1)))
        ):
            n -= stride
        stride //= 2
    return n


@functools.lru_cache(1024)
def least_n_in_groups(
    bits: int, epsilon: float, a: float, alpha: float, p: float, tau: float, beta: float, most: float
) -> int:
    """The same by the theorem and groups of points, as many as one programme of `most` steps has room for: nearly exact for large n.

    >>> least_n_in_groups(8, 0.1, *numbers(plain(8)), 0.1, 2e6) < least_n(8, 0.1, *numbers(plain(8)), 0.1, 0)
    True
    """
    enough = _Case(bits, epsilon, a, alpha, p, tau).enough(beta)
    size = math.ceil(enough / max(1.0, (most / bits) ** (1 / 3)))
    grouped = _Grouped(bits, epsilon, a, alpha, p, tau, size)
    if size < 2 or grouped.log_bad >= LARGEST:
        return enough
    odds = beta / (1 - beta) * math.exp(-epsilon * (size - 1))
    groups = -(-(enough + 1) // size) - 2  # the last whose sizes are not all above what the theorem says
    n = enough
    while groups >= 1 and grouped.keeps(groups, odds):
        n, groups = size * (groups + 1) - 1, groups - 1
    return min(n, enough)


@functools.lru_cache(256)
def worst(bits: int, epsilon: float, a: float, alpha: float, p: float, tau: float, n: int) -> tuple[float, list[int]]:
    """The largest failure over all data of n points, and data that have it (Dinkelbach's iteration on the odds)."""
    return _Case(bits, epsilon, a, alpha, p, tau).worst(n)


def planned(*, bits: int, epsilon: float, beta: float = 0.1, evaluations: int = 100) -> Offsets:
    """Offsets that need fewer points than the `plain` ones, by a search: for n one less each time, by the simplex method.

    Args:
      bits: 1 to 4096; a programme of more than 5e7 steps (bits n^3) is not tried, and the plain offsets come back.
      epsilon: > 0.
      beta: failure that is allowed.
      evaluations: programmes for each n.

    Returns:
      The best offsets found, public like their arguments: no data are looked at. Those of the last n with which it is enough.

    Raises:
      TypeError, ValueError: an argument out of range.

    >>> best = planned(bits=8, epsilon=1.0, beta=0.1)
    >>> least_n(8, 1.0, *numbers(plain(8)), 0.1, MOST_STEPS), least_n(8, 1.0, *numbers(best), 0.1, MOST_STEPS)
    (16, 14)
    """
    arguments.integer("bits", bits, at_least=1, at_most=MAX_BITS)
    arguments.positive(epsilon=epsilon)
    arguments.fractions(beta=beta)
    arguments.integer("evaluations", evaluations, at_least=1)
    return offsets(**dict(zip(_NAMES, _searched(bits, float(epsilon), float(beta), evaluations), strict=True)))


def numbers(offsets: Offsets) -> tuple[float, float, float, float]:
    """(a, alpha, p, tau) on the host.

    Raises:
      TypeError: one of them is traced.
    """
    a, alpha, p, tau = (arguments.known(name, getattr(offsets, name)) for name in _NAMES)
    return a, alpha, p, tau


@functools.lru_cache(64)
def _searched(bits: int, epsilon: float, beta: float, evaluations: int) -> tuple[float, ...]:
    """`planned` for checked arguments."""
    from scipy.optimize import minimize

    best: tuple[float, ...] = numbers(plain(bits))
    odds = beta / (1 - beta)
    n = least_n(bits, epsilon, *best, beta, MOST_STEPS)
    while n > 1 and _Case(bits, epsilon, *best).affordable(n, MOST_STEPS):

        def share(x: np.ndarray, n: int = n - 1) -> float:
            case = _Case(bits, epsilon, *x)
            return case.excess(n, odds) / case.bad if case.log_bad < LARGEST else 1.0

        simplex = np.array([best, *(np.array(best) + np.diag(_FIRST_STEPS))])
        options = {"initial_simplex": simplex, "maxfev": evaluations}
        found = tuple(map(float, minimize(share, best, method="Nelder-Mead", options=options).x))
        least = least_n(bits, epsilon, *found, beta, MOST_STEPS)
        if least >= n:
            break
        best, n = found, least
    return best


class _Case:
    """The tree with its offsets, in nats.

    Attributes:
      sizes, ranks: epsilon A_z and epsilon b_z of the levels z = 0, ..., bits.
      keys: ln N_z.
      bad: W, at least what all bad keys weigh.
    """

    def __init__(self, bits: int, epsilon: float, a: float, alpha: float, p: float, tau: float) -> None:
        level = np.arange(bits + 1.0)
        self.bits, self.epsilon = bits, epsilon
        self.sizes, self.ranks = a - alpha * level, p * np.log1p(level) + tau * level
        self.keys = np.append(0.0, (bits - level[1:]) * math.log(2.0))
        on_paths = np.minimum(self.keys, math.log(2.0))[1:] - self.ranks[1:]
        self.log_bad = float(np.logaddexp.reduce(np.append(on_paths, self.keys - self.sizes)))
        self.bad = math.exp(min(self.log_bad, LARGEST))

    def enough(self, beta: float) -> int:
        """n by the theorem, a hair more where rounding could tell."""
        needed = self.log_bad + math.log1p(-beta) - math.log(beta) + 1e-9
        each = 2 * np.ceil((needed + self.ranks) / self.epsilon) - 2
        each += np.maximum(np.ceil((needed + self.sizes) / self.epsilon), 1)
        return max(int(each.max()), 1)

    def weights(self, n: int, odds: float, level: int) -> np.ndarray:
        """f_z(r, m)."""
        count = self.epsilon * np.arange(n + 1.0)
        # A good key that weighs more than LARGEST weighs enough.
        logs = self.log_weight(np.minimum(count[:, None] - self.ranks[level], count - self.sizes[level]))
        weight = np.exp(np.minimum(logs, LARGEST))
        weight[1:] *= -odds
        return weight

    def log_weight(self, score: Any) -> Any:
        """ln of what a key of score u weighs, from epsilon u."""
        return score

    def worst(self, n: int) -> tuple[float, list[int]]:
        """The largest failure over all data of n points, and data that have it."""
        odds = 0.0
        while True:
            points, bad, good = self.worst_data(n, odds)
            if bad <= odds * good * (1 + 1e-12):
                return bad / (bad + good), points
            odds = bad / good

    def tables(self, n: int, odds: float) -> list[tuple[np.ndarray, np.ndarray]]:
        """(W_z, V_z) of all levels."""
        index = np.arange(n + 1)
        below = np.maximum(index - index[:, None], 0)
        behind = np.where(index < index[:, None], -np.inf, 0.0)
        least = np.minimum(index, n - index)
        allowed = np.where(least < index[:, None], -np.inf, 0.0)
        weight = self.weights(n, odds, 0)
        spine, inner = weight[index, index], np.where(np.eye(n + 1, dtype=bool), 0.0, -np.inf)
        tables = [(spine, inner)]
        for level in range(1, self.bits + 1):
            weight = self.weights(n, odds, level)
            # Either q <= n - j, and j <= min(q, n - q) is free; or n - j <= q, and q >= max(j, n - j) is.
            right = np.maximum.accumulate(inner[::-1], axis=0)[::-1]
            by_q = np.maximum.accumulate(spine)[least][:, None] + inner + weight
            by_j = spine[:, None] + right[np.maximum(index, n - index)] + weight[::-1]
            spine = np.maximum(by_q.max(axis=0), by_j.max(axis=0))
            left = np.maximum.accumulate(inner, axis=1)[:, least] + allowed
            each = left[:, :, None] + inner
            each += weight[:, below].transpose(1, 0, 2)
            inner = each.max(axis=1) + behind
            inner = np.maximum(inner, inner[::-1, ::-1].T)  # an inner subtree is its own mirror image
            tables.append((spine, inner))
        return tables

    def affordable(self, n: int, most: float) -> bool:
        """Whether the programme for n points takes `most` steps at most, in numbers that float64 holds."""
        return self.bits * float(n) ** 3 <= most and self.log_bad < LARGEST

    def keeps(self, n: int, odds: float) -> bool:
        """Whether the bad keys weigh at most odds times what the good ones do, on all data of n points."""
        return self.excess(n, odds) <= -_SLACK * self.bad

    def excess(self, n: int, odds: float) -> float:
        """The largest bad - odds good over all data of n points."""
        return float(self.tables(n, odds)[-1][0][n])

    def worst_data(self, n: int, odds: float) -> tuple[list[int], float, float]:
        """Data of n points with the largest bad - odds good, and both."""
        tables, points, sums = self.tables(n, odds), [0] * n, [0.0, 0.0]

        def add(rank: int, log_weight: float) -> None:
            sums[rank > 0] += math.exp(min(log_weight, LARGEST))

        def descend(level: int, base: int, start: int, stop: int) -> None:
            """The subtree of base + 1, ..., base + 2^level - 1, and of 0 where that is base, with points start, ..., stop - 1."""
            if level == 0 or (start == stop and base > 0):
                return self._leaf(level, base, start, stop, n, add)
            (spine, inner), weight = tables[level - 1], self.weights(n, odds, level)
            key, places = base + (1 << (level - 1)), np.arange(start, stop + 1)
            before, up_to = places[:, None], places
            left = spine[places] if base == 0 else inner[start, places]
            each = left[:, None] + inner[places, stop] + weight[np.minimum(up_to, n - before), stop - start]
            best = np.unravel_index(np.argmax(np.where(before <= up_to, each, -np.inf)), each.shape)
            j, q = (int(places[i]) for i in best)
            points[j:q] = [key] * (q - j)
            rank = min(q, n - j)
            score = min(self.epsilon * rank - self.ranks[level], self.epsilon * (stop - start) - self.sizes[level])
            add(rank, self.log_weight(score))
            descend(level - 1, base, start, j)
            descend(level - 1, key, q, stop)

        descend(self.bits, 0, 0, n)
        return points, sums[0], sums[1]

    def _leaf(self, level: int, base: int, start: int, stop: int, n: int, add: Any) -> None:
        """The key 0, or a subtree without points: no inner subtree of no keys has any."""
        if level == 0 and base == 0:
            score = min(self.epsilon * stop - self.ranks[0], self.epsilon * stop - self.sizes[0])
            add(stop, self.log_weight(score))
        rank = min(start, n - start)
        for z in range(1, level + 1):
            log_weight = self.log_weight(min(self.epsilon * rank - self.ranks[z], -self.sizes[z]))
            add(rank, log_weight + (level - z) * math.log(2.0))


class _Grouped(_Case):
    """The same in groups of `size` points; see the module. Counts are of groups, and `bad` is not below what all bad keys can weigh."""

    def __init__(self, bits: int, epsilon: float, a: float, alpha: float, p: float, tau: float, size: int) -> None:
        self.inside = epsilon * (size - 1)  # what a subtree may hold besides, in nats
        super().__init__(bits, size * epsilon, a - self.inside, alpha, p, tau)

    def weights(self, n: int, odds: float, level: int) -> np.ndarray:
        """Bounds of f_z(r, m): from above for r = 0, where A_z is less by `inside`, else from below, where it is more."""
        count = self.epsilon * np.arange(n + 1.0)
        sizes = self.sizes[level] + 2 * self.inside
        weight = np.exp(np.minimum(np.minimum(count[:, None] - self.ranks[level], count - sizes), LARGEST))
        weight[0] = np.exp(np.minimum(-self.ranks[level], count - self.sizes[level]))
        weight[1:] *= -odds
        return weight
