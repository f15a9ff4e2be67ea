"""How many points the tree score needs, by a theorem and exactly, and offsets with which it needs few.

Notation of `dpjax.optimizers.interior_point.tree_score`; a key is good if it is an interior point, else bad.

**By a theorem.** Cut points off from both ends. While some are left, with l cut off below and r above, let y be the shallowest key from the
least to the greatest of them. Its subtree holds them all: m_y >= n - l - r. If #<=y <= #>=y, cut off the points up to y, else those from y
on: l becomes #<=y, or r becomes #>=y. The keys met in this way are good, and no two are the same. With a and b the greatest epsilon A_z and
epsilon b_z, and c the new l or r, y weighs at least exp(min(epsilon c - b, epsilon (n - l - r) - a)). Up to the first y where the second of
these is not the greater, the last cuts on both sides count in full; so for some l and r the good keys weigh at least

    e^(epsilon l - b) [l > 0] + e^(epsilon r - b) [r > 0] + e^(epsilon (n - l - r) - a),

or, where there is no such y, e^(epsilon n/2 - b), since a cut has reached n/2 when all points are off.

A bad key has #<= or #>= zero. If m_y = 0 it weighs at most exp(-epsilon A_z). If not, it has keys below it (at a leaf's points its key is
good), is an ancestor of the least or of the greatest point, and weighs at most exp(-epsilon b_z). Above the first key that was met there is
at most one such key on each level, as all points lie below it. Under it there is at most one on each side, and the side that is cut off
first holds at most c points, c being that cut. So the bad keys weigh at most

    W(c) = sum_z N_z e^(-epsilon A_z) + sum_{z > 0} e^(-epsilon b_z) + sum_{0 < z < bits} e^min(-epsilon b_z, epsilon c - epsilon A_z),

where N_0 = 1 and N_z = 2^(bits - z) count the keys of level z. Whatever c is, this is at most W = W(n). The first cut is at most max(l, r).
Let K = (1 - beta)/beta and L_0 = ln(K W): where epsilon max(l, r) - b >= L_0 one key is enough. Otherwise the bad keys weigh at most
W((L_0 + b)/epsilon). Let L_1 be ln of K times that, and so on, to L. By the inequality of the means a bad key is drawn with probability at
most beta if

    epsilon n >= max{a + L_0, a + b + 2 (L - ln 2), a + 2 b + 3 (L - ln 3)}    and    epsilon ceil(n/2) >= b + L_0.

With b = 0 and A_z = A the last one of the three decides, and requires the fewest points at about exp(-epsilon A) M = bits: those are the
`plain` offsets, for which n = (ln M + 2 ln(bits) + 3 ln(2K/3) + o(1))/epsilon. This is at most one point above the exact least size for
bits = 24, 28 and 32, and at most 2/epsilon above it for 16, 18, 20 and 22 (epsilon = 0.3, 0.5, 1, 2; beta = 0.1, 0.01, 0.001). On wider
domains three heaps of points show how little it can be above it: l at M/2 - 2, r at M/2 + 1 and the others at M/2 - 1, the three good keys
in the inequality of the means. At epsilon = 1, beta = 0.1 it says 194, 730 and 2862 for bits = 256, 1024 and 4096, and by the exact law
some 193, 728 and 2861 such points fail more often than that.

**Exactly.** The failure is at most beta on all data of n points iff F(S) = bad - odds good <= 0 for all of them, odds = beta/(1 - beta): a
sum over keys, in which a key counts with the numbers of points before its subtree, before it, at it and below it. So the maximum of F over
all data, on domains of any size, comes from a dynamic programme over subtrees. Let V_z(i, t) be the largest sum over a subtree of keys of
levels 1, ..., z that holds the points i + 1, ..., t in order. If the points up to j are before its key and those up to q are not behind it,

    V_z(i, t) = max_{i <= j <= q <= t}  V_{z-1}(i, j) + V_{z-1}(q, t) + f_z(min(q, n - j), t - i),
    f_z(r, m) = exp(min(epsilon r - epsilon b_z, epsilon m - epsilon A_z)) (1 if r = 0, else -odds).

As f is a function of the lesser one of q and n - j, the maximum over the other one is a running maximum: n^3 steps for each level instead
of n^4. Subtrees with the key 0 are those that begin at i = 0, and have a row W_z(t) of their own. A domain of 2^64 points takes a tenth of
a second.
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

MOST_STEPS = 5e8  # of all programmes together for one question; a second or so
LARGEST = 600.0  # ln of the largest weight
# In nats: next to larger ones floats would lose ranks of a few points; ln of the largest domain is 2839.
LARGEST_OFFSET = 2.0**13
SEARCHED_STEPS = 5e7  # of one programme that a search runs a hundred times
_TURNS = 8  # from L_0 to L; more hardly matter
_SLACK = 1e-9  # as a share of W: above what rounding in float64 can add up to
_MARGIN = 0.3  # of ln odds, where sizes are skipped without a programme of their own
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

    def size(self, bits: Any, xp: Any = jnp) -> Any:
        """An upper bound on the size of any of them in a domain of so many bits, in nats; by `jax.numpy`, or by `numpy` on the host."""
        a, alpha, p, tau = (xp.abs(xp.asarray(getattr(self, name), float)) for name in _NAMES)
        return xp.maximum(a + alpha * bits, p * xp.log1p(bits) + tau * bits)


def offsets(*, a: Any, alpha: Any = 0.0, p: Any = 0.0, tau: Any = 0.0) -> Offsets:
    """Offsets from four finite numbers.

    Raises:
      TypeError, ValueError: an argument is not a finite number.
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
    """The number of points from which on the failure is at most beta, on all data of that size or a greater one.

    It starts from the theorem and goes down to the least size that is enough with all sizes above, as far as programmes of `most` steps in
    all allow. Several sizes are skipped at once if the odds hold with a margin: without one point between the others, n + 1 points become
    n, for which the good keys weigh no more and the bad ones at least e^-epsilon times as much; so the odds grow by at most e^epsilon from
    n >= 2 to n + 1.
    """
    case, stride = Case(bits, epsilon, a, alpha, p, tau), max(int(_MARGIN / epsilon), 1)
    n, odds = case.enough(beta), beta / (1 - beta)
    while stride:
        while (
            n - stride >= min(stride, 2)
            and (most := most - case.steps(n - stride)) >= 0
            and case.keeps(n - stride, odds * math.exp(-epsilon * (stride - 1)))
        ):
            n -= stride
        stride //= 2
    return n


@functools.lru_cache(256)
def worst(bits: int, epsilon: float, a: float, alpha: float, p: float, tau: float, n: int) -> tuple[float, list[int]]:
    """The largest failure probability over all data of n points, and data that reach it (Dinkelbach's iteration on the odds)."""
    return Case(bits, epsilon, a, alpha, p, tau).worst(n)


def planned(*, bits: int, epsilon: float, beta: float = 0.1, evaluations: int = 100) -> Offsets:
    """Offsets that need fewer points than the `plain` ones, by a search with the simplex method, for n reduced by one each time.

    Args:
      bits: 1 to 4096; a programme of more than 5e7 steps (bits n^3) is not tried, and the plain offsets are returned.
      epsilon: > 0.
      beta: the failure probability that is allowed.
      evaluations: how many programmes are run for each n.

    Returns:
      The best offsets found, those of the last n that is enough. They are public like their arguments: no data are used.

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
    while n > 1 and Case(bits, epsilon, *best).steps(n) <= SEARCHED_STEPS:

        def share(x: np.ndarray, n: int = n - 1) -> float:
            case = Case(bits, epsilon, *x)
            return case.excess(n, odds) / case.bad if case.log_bad < LARGEST else 1.0

        simplex = np.array([best, *(np.array(best) + np.diag(_FIRST_STEPS))])
        options = {"initial_simplex": simplex, "maxfev": evaluations}
        found = tuple(map(float, minimize(share, best, method="Nelder-Mead", options=options).x))
        least = least_n(bits, epsilon, *found, beta, MOST_STEPS)
        if least >= n:
            break
        best, n = found, least
    return best


class Case:
    """The tree with its offsets, in nats.

    Attributes:
      sizes, ranks: epsilon A_z and epsilon b_z of the levels z = 0, ..., bits.
      keys: ln N_z.
      bad: W, a bound on the weight of all bad keys.
    """

    def __init__(self, bits: int, epsilon: float, a: float, alpha: float, p: float, tau: float) -> None:
        level = np.arange(bits + 1.0)
        self.bits, self.epsilon = bits, epsilon
        self.sizes, self.ranks = a - alpha * level, p * np.log1p(level) + tau * level
        self.keys = np.append(0.0, (bits - level[1:]) * math.log(2.0))
        self.log_bad = self._log_bad(math.inf)
        self.bad = math.exp(min(self.log_bad, LARGEST))

    def _log_bad(self, first: float) -> float:
        """ln W(c), from epsilon c."""
        other = np.minimum(-self.ranks[1:-1], first - self.sizes[1:-1])
        logs = np.concatenate([-self.ranks[1:], other, self.keys - self.sizes])
        return float(logs.max() + math.log(np.exp(logs - logs.max()).sum()))

    def enough(self, beta: float) -> int:
        """n by the theorem, a hair more where rounding could matter."""
        log_odds = math.log1p(-beta) - math.log(beta) + 1e-9
        a, b, most = self.sizes.max(), self.ranks.max(), self.log_bad + log_odds
        needed = most
        for _ in range(_TURNS):
            before, needed = needed, self._log_bad(needed + b) + log_odds
            if needed == before:
                break
        nats = max(a + most, a + b + 2 * (needed - math.log(2)), a + 2 * b + 3 * (needed - math.log(3)))
        return max(math.ceil(nats / self.epsilon), 2 * math.ceil((most + b) / self.epsilon) - 1, 1)

    def weights(self, n: int, odds: float, level: int) -> np.ndarray:
        """f_z(r, m)."""
        count = self.epsilon * np.arange(n + 1.0)
        # A good key that weighs more than LARGEST weighs enough.
        logs = self.log_weight(np.minimum(count[:, None] - self.ranks[level], count - self.sizes[level]))
        weight = np.exp(np.minimum(logs, LARGEST))
        weight[1:] *= -odds
        return weight

    def log_weight(self, score: Any) -> Any:
        """ln of the weight of a key of score u, from epsilon u."""
        return score

    def worst(self, n: int) -> tuple[float, list[int]]:
        """The largest failure probability over all data of n points, and data that reach it."""
        points, bad, good = self.worst_data(n, 0.0)
        while True:
            odds = bad / good
            found, more, less = self.worst_data(n, odds)
            # Where nothing is worse, rounding may prefer data that fail less often.
            if more <= odds * less * (1 + 1e-12):
                return bad / (bad + good), points
            points, bad, good = found, more, less

    def tables(self, n: int, odds: float) -> list[tuple[np.ndarray, np.ndarray]]:
        """(W_z, V_z) of all levels."""
        index = np.arange(n + 1)
        least = np.minimum(index, n - index)
        weight = self.weights(n, odds, 0)
        spine, inner = weight[index, index], np.where(np.eye(n + 1, dtype=bool), 0.0, -np.inf)
        tables = [(spine, inner)]
        for level in range(1, self.bits + 1):
            weight = self.weights(n, odds, level)
            # Either q <= n - j, and any j <= min(q, n - q) is allowed; or n - j <= q, and any q >= max(j, n - j) is.
            right = np.maximum.accumulate(inner[::-1], axis=0)[::-1]
            by_q = np.maximum.accumulate(spine)[least][:, None] + inner + weight
            by_j = spine[:, None] + right[np.maximum(index, n - index)] + weight[::-1]
            spine = np.maximum(by_q.max(axis=0), by_j.max(axis=0))
            inner = self._inner(n, inner, weight, least)
            inner = np.maximum(inner, inner[::-1, ::-1].T)  # an inner subtree is its own mirror image
            tables.append((spine, inner))
        return tables

    def _inner(self, n: int, inner: np.ndarray, weight: np.ndarray, least: np.ndarray) -> np.ndarray:
        """V_z(i, t) over q <= n - j alone, where i <= j makes i <= q <= n - i: row by row, as then a row's sums fit into a cache."""
        left, found = np.maximum.accumulate(inner, axis=1)[:, least], np.full_like(inner, -np.inf)
        for i in range(n // 2 + 1):
            q = slice(i, n - i + 1)
            each = inner[q, i:] + weight[q, : n - i + 1]
            each += left[i, q, None]
            np.max(each, axis=0, out=found[i, i:])
        return found

    def steps(self, n: int) -> float:
        """The steps of the programme for n points; inf where float64 does not hold its numbers."""
        return self.bits * float(n) ** 3 if self.log_bad < LARGEST else math.inf

    def keeps(self, n: int, odds: float) -> bool:
        """Whether the bad keys weigh at most odds times as much as the good ones, on all data of n points."""
        return self.excess(n, odds) <= -_SLACK * self.bad

    def excess(self, n: int, odds: float) -> float:
        """The largest bad - odds good over all data of n points."""
        return float(self.tables(n, odds)[-1][0][n])

    def worst_data(self, n: int, odds: float) -> tuple[list[int], float, float]:
        """Data of n points with the largest bad - odds good, and both."""
        tables, points, sums = self.tables(n, odds), [0] * n, [0.0, 0.0]

        def add(rank: int, log_weight: float) -> None:
            sums[rank > 0] += math.exp(min(log_weight, LARGEST))

        # Subtrees of base + 1, ..., base + 2^level - 1, and of 0 where that is base, with points start, ..., stop - 1.
        subtrees = [(self.bits, 0, 0, n)]
        while subtrees:
            level, base, start, stop = subtrees.pop()
            if level == 0 or (start == stop and base > 0):
                self._leaf(level, base, start, stop, n, add)
                continue
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
            subtrees += [(level - 1, key, q, stop), (level - 1, base, start, j)]
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
