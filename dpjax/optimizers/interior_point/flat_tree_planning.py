"""Whether a concave curve keeps the tree score private when a point is replaced, how many points it needs, and a search for a curve.

Notation of `dpjax.optimizers.interior_point.flat_tree_score`: keys weigh exp(psi(epsilon u)), and Z(S) is their total weight.

**Private: one more point is all that matters.** Let S = C + a and S' = C + b be neighbours, C their n - 1 common points. One more point
lowers no weight and raises each by a factor of at most e^theta, theta = share epsilon. So
w(y, S)/w(y, S') <= w(y, C + a)/w(y, C) <= e^theta, and in the same way Z(S')/Z(S) <= Z(C + b)/Z(C). Hence
P[y | S]/P[y | S'] <= exp(theta + rho), where

    rho = max ln(Z(C + b)/Z(C))  over all C of n - 1 points and all b:

this is not a maximum over pairs of neighbours, and (epsilon, 0)-privacy for n points follows from rho <= epsilon - theta.

**The programme.** rho <= r iff F(C, b) = Z(C + b) - e^r Z(C) <= 0 for all C and b: a sum over keys, in which a key counts with the points
of C before its subtree, before it, at it and below it, and with the side of it on which b is. So there are three tables for the subtrees
of each level, for b in front of the subtree, in it and behind it, with the points i + 1, ..., t of C in it. If j of the points are before
the key and q of them not behind it, the key's two ranks are q and n - 1 - j, and each rises by one if b is on its side (both, if b is the
key):

| b | subtree on the left | key's ranks | on the right |
|---|---|---|---|
| in front of all | in front | (q + 1, n - 1 - j) | in front |
| in it, before the key | in it | (q + 1, n - 1 - j) | in front |
| in it, the key | behind | (q + 1, n - j) | in front |
| in it, behind the key | behind | (q, n - j) | in it |
| behind all | behind | (q, n - j) | behind |

The lesser rank is, with b and without it, a function of q alone, or of j alone, according to which of q and n - 1 - j is less; so the
maximum over the other one is a running maximum, as in `tree_planning`: n^3 steps for each level. This takes five seconds at 64 bits and 105
points, in float64. A margin of 1e-6 nats is left, far above what rounding can add up to: all terms are positive multiples of Z(C)
and Z(C + b)."""

import functools
import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from dpjax.core import arguments
from dpjax.core.pytree import frozen
from dpjax.optimizers.interior_point import tree_planning
from dpjax.optimizers.interior_point.tree_planning import LARGEST, Offsets, offsets

MOST_STEPS = 5e8  # of one programme, bits n^3; half a minute or so
MARGIN = 1e-6  # of rho, in nats
_NAMES = ("share", "rest", "knee", "width")
_SHARES = (0.5, 0.75, 5)  # in a search: from, to, and how often the range is halved
_STEPS = np.array([0.6, 0.06, 0.015, 0.012, 0.6, 0.3])  # step sizes of a random walk: a, p, share, rest, knee, width
Numbers = tuple[int, tuple[float, ...], tuple[float, ...]]  # n, offsets, curve


@frozen
class Curve:
    """psi(v) = share (v - (1 - rest) width ln(1 + exp((v - knee)/width))): of slope `share` below the knee, `share` * `rest` above it."""

    share: Any
    rest: Any
    knee: Any
    width: Any

    def __call__(self, score: Float[Array, "*s"]) -> Float[Array, "*s"]:
        """psi of a score in nats."""
        share, rest, knee, width = (jnp.asarray(getattr(self, name), float) for name in _NAMES)
        return share * (score - (1 - rest) * width * jax.nn.softplus((score - knee) / width))


def curve(*, share: Any, rest: Any, knee: Any, width: Any) -> Curve:
    """A curve from its four numbers.

    Args:
      share: the slope far below the knee, in (0, 1).
      rest: the part of this slope that is left far above the knee, in [0, 1].
      knee: the score, in nats, at which the curve bends.
      width: the width of the bend, > 0, in nats.

    Raises:
      TypeError, ValueError: an argument out of range.
    """
    return Curve(
        share=arguments.real("share", share, above=0.0, below=1.0),
        rest=arguments.real("rest", rest, at_least=0.0, at_most=1.0),
        knee=arguments.real("knee", knee, above=-math.inf, below=math.inf),
        width=arguments.real("width", width, above=0.0, below=math.inf),
    )


def usual(bits: int, share: float, beta: float) -> tuple[Offsets, Curve]:
    """Offsets and a curve that were found to be good from 8 to 64 bits, with the slope left open.

    The knee is where the weight is about enough for a failure of beta: what is above it is nearly flat.

    >>> round(float(usual(64, 0.58, 0.1)[1].knee), 3)
    9.313
    """
    knee = 2 * math.log(bits) + 1 + (math.log((1 - beta) / beta) - 2.2) / share
    bend = curve(share=share, rest=0.06, knee=knee, width=3.0)
    return offsets(a=max(bits * math.log(2.0) - 1, 0.0) / share, p=0.6), bend


def numbers(offsets: Offsets, curve: Curve) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """The numbers of the offsets and of the curve, on the host.

    Raises:
      TypeError: one of them is traced.
    """
    return tree_planning.numbers(offsets), tuple(arguments.known(name, getattr(curve, name)) for name in _NAMES)


@functools.lru_cache(256)
def is_private(bits: int, epsilon: float, offsets: tuple[float, ...], curve: tuple[float, ...], n: int) -> bool:
    """Whether the programme shows that replacing one of n points costs at most epsilon; see the module.

    False where it does not show it, or would take more than `MOST_STEPS` steps.
    """
    case = Curved(bits, epsilon, offsets, curve)
    return case.in_range(n) and case.growth_excess(n - 1, epsilon * (1 - curve[0]) - MARGIN) <= 0


@functools.lru_cache(256)
def is_enough(
    bits: int, epsilon: float, offsets: tuple[float, ...], curve: tuple[float, ...], n: int, beta: float
) -> bool:
    """Whether no n points fail with probability above beta; False also where the programme would take too many steps."""
    case = Curved(bits, epsilon, offsets, curve)
    return case.in_range(n) and case.keeps(n, beta / (1 - beta))


@functools.lru_cache(64)
def searched(bits: int, epsilon: float, beta: float, evaluations: int) -> Numbers:
    """(n, offsets, curve) for the least n that a search finds: from the usual ones by random steps, with one point less each time.

    Raises:
      ValueError: a programme would take too many steps.
    """
    better: Numbers | None = _usual(bits, epsilon, beta)
    best, rng = _straight(bits, epsilon, beta), np.random.default_rng(0)
    while better is not None:
        at = better
        best = min(best, at)
        better = _better(bits, epsilon, beta, at, evaluations, rng) if at[0] > 1 else None
    return best


def _straight(bits: int, epsilon: float, beta: float) -> Numbers:
    """The tree score at half of epsilon, which needs no programme to be private."""
    a = 2 * tree_planning.numbers(tree_planning.plain(bits))[0]
    given = (a, 0.0, 0.0, 0.0), (0.5, 1.0, 0.0, 3.0)
    return (_least(bits, epsilon, given, beta), *given)


def _usual(bits: int, epsilon: float, beta: float) -> Numbers | None:
    """The usual curve of the greatest slope found, by halving, that is private for the points that it needs."""
    low, high, steps = _SHARES
    best: Numbers | None = None
    share = low
    for _ in range(steps + 1):
        given = numbers(*usual(bits, share, beta))
        n = _least(bits, epsilon, given, beta)
        if is_private(bits, epsilon, *given, n):
            low, best = share, (n, *given) if best is None else min(best, (n, *given))
        else:
            high = share
        share = (low + high) / 2
    return best


def _better(
    bits: int, epsilon: float, beta: float, best: Numbers, evaluations: int, rng: np.random.Generator
) -> Numbers | None:
    """Offsets and a curve that are enough for one point less, if a walk finds them that goes where failure falls and privacy stays."""
    n, start, bend = best[0] - 1, best[1], best[2]
    odds, at = beta / (1 - beta), np.array([start[0], start[2], *bend])
    least = math.inf
    for step in range(evaluations):
        moved = at + _STEPS * rng.choice([0.3, 1.0]) * rng.normal(size=len(at)) * (step > 0)
        a, p, share, rest, knee, width = map(float, moved)
        if not (0.5 <= share < 1 and 0 <= rest <= 1 and width > 0.1):
            continue
        given = (a, 0.0, p, 0.0), (share, rest, knee, width)
        case = Curved(bits, epsilon, *given)
        excess = case.excess(n, odds) / case.bad if case.in_range(n) else math.inf
        if excess < least and is_private(bits, epsilon, *given, n):
            if case.keeps(n, odds):
                return (n, *given)
            least, at = excess, moved
    return None


def _least(bits: int, epsilon: float, given: tuple[Any, Any], beta: float) -> int:
    """The least n for which all greater ones, up to one that is certainly enough, are enough."""
    case, odds = Curved(bits, epsilon, *given), beta / (1 - beta)
    n = max(math.ceil((2 * bits * math.log(2.0) + 10) / epsilon), 1)
    while not (case.in_range(n) and case.keeps(n, odds)):
        if not case.in_range(n):
            raise ValueError(f"bits must be fewer, or epsilon greater: no programme decides {bits} bits at {epsilon}")
        n += max(n // 8, 1)
    while n > 1 and case.keeps(n - 1, odds):
        n -= 1
    return n


class Curved(tree_planning.Case):
    """The tree with its offsets and a curve, in nats; `bad` is a bound on the weight of all bad keys."""

    def __init__(self, bits: int, epsilon: float, offsets: tuple[float, ...], curve: tuple[float, ...]) -> None:
        super().__init__(bits, epsilon, *offsets)
        self.curve = curve
        on_paths = np.minimum(self.keys, math.log(2.0))[1:] + self.log_weight(-self.ranks[1:])
        self.log_bad = float(np.logaddexp.reduce(np.append(on_paths, self.keys + self.log_weight(-self.sizes))))
        self.bad = math.exp(min(self.log_bad, LARGEST))

    def log_weight(self, score: Any) -> Any:
        share, rest, knee, width = self.curve
        return share * (score - (1 - rest) * width * np.logaddexp(0.0, (score - knee) / width))

    def in_range(self, n: int) -> bool:
        """Whether float64 holds all weights for n points, and the programmes take at most `MOST_STEPS` steps."""
        ends = np.append(self.epsilon * n - self.ranks, -np.maximum(self.ranks, self.sizes))
        small = bool(np.max(np.abs(self.log_weight(ends))) < LARGEST) and self.log_bad < LARGEST
        return small and self.bits * float(n) ** 3 <= MOST_STEPS

    def growth_excess(self, n: int, log_factor: float) -> float:
        """The largest Z(C + b) - e^log_factor Z(C) over all C of n points and all b."""
        growth = _Growth(self, n, math.exp(log_factor))
        empty = np.where(np.eye(n + 1, dtype=bool), 0.0, -np.inf)
        inner: tuple[np.ndarray, ...] = (empty, np.full_like(empty, -np.inf), empty)
        spine: tuple[np.ndarray, ...] = growth.leaf()
        for level in range(1, self.bits + 1):
            spine = growth.spine(level, spine, inner)
            if level < self.bits:
                inner = growth.inner(level, inner)
        return float(spine[0][0, n])


class _Growth:
    """The programme for Z(C + b) - factor Z(C); a row of a table for each number of points in front of a subtree."""

    def __init__(self, case: Curved, n: int, factor: float) -> None:
        self.case, self.n, self.factor = case, n, factor
        self.index = np.arange(n + 1)
        self.within = np.maximum(self.index - self.index[:, None], 0)
        self.behind = np.where(self.index < self.index[:, None], -np.inf, 0.0)

    def weight(self, rank: np.ndarray, inside: np.ndarray, level: int) -> np.ndarray:
        """The weights of keys, by the lesser rank and the points in their subtree."""
        case = self.case
        score = np.minimum(case.epsilon * rank - case.ranks[level], case.epsilon * inside - case.sizes[level])
        return np.exp(case.log_weight(score))

    def leaf(self) -> tuple[np.ndarray, np.ndarray]:
        """The key 0 alone, with b at it and behind it: a row each."""
        at = self.index[None]
        without = self.factor * self.weight(at, at, 0)
        return self.weight(at + 1, at + 1, 0) - without, self.weight(at, at, 0) - without

    def inner(self, level: int, tables: tuple[np.ndarray, ...]) -> tuple[np.ndarray, ...]:
        """From the tables of subtrees with one level less, for b in front, inside and behind, to those of this level."""
        front, inside, behind = tables
        new_front = self.joined(level, front, front, up=1, down=0, own=0) + self.behind
        new_inside = self.around(level, inside, behind, tables) + self.behind
        return new_front, new_inside, new_front[::-1, ::-1].T  # an inner subtree is its own mirror image

    def spine(
        self, level: int, spine: tuple[np.ndarray, ...], tables: tuple[np.ndarray, ...]
    ) -> tuple[np.ndarray, ...]:
        """The same for subtrees with the key 0, in front of which b cannot be: for b inside and behind."""
        inside, behind = spine
        new_behind = self.joined(level, behind, tables[2], up=0, down=1, own=0)
        return self.around(level, inside, behind, tables), new_behind

    def around(self, level: int, inside: np.ndarray, behind: np.ndarray, right: tuple[np.ndarray, ...]) -> np.ndarray:
        """The table for b in the subtree: before its key, at it or behind it."""
        before = self.joined(level, inside, right[0], up=1, down=0, own=1)
        at = self.joined(level, behind, right[0], up=1, down=1, own=1)
        return np.maximum(np.maximum(before, at), self.joined(level, behind, right[1], up=0, down=1, own=1))

    def joined(self, level: int, left: np.ndarray, right: np.ndarray, *, up: int, down: int, own: int) -> np.ndarray:
        """The best of all j and q: with b the key has `up` and `down` more points on its two sides, and `own` more in its subtree."""
        n, index = self.n, self.index
        within = self.within[: left.shape[0]]
        # The rank up to the key is the lesser one, with b and without it, iff q <= last - j.
        last = n - 1 if up > down else n
        by_q = self.difference(index, up, level, own)
        least = np.minimum(index, last - index)
        highest = np.where(least < 0, -np.inf, np.maximum.accumulate(left, axis=1)[:, np.maximum(least, 0)])
        best = (highest[:, :, None] + right + by_q[:, within].transpose(1, 0, 2)).max(axis=1)
        by_j = self.difference(n - index, down, level, own)
        start = np.maximum(index, last + 1 - index)
        lowest = np.maximum.accumulate(right[::-1], axis=0)[::-1][np.minimum(start, n)]
        lowest = np.where((start > n)[:, None], -np.inf, lowest)
        return np.maximum(best, (left[:, :, None] + lowest + by_j[:, within].transpose(1, 0, 2)).max(axis=1))

    def difference(self, rank: np.ndarray, more: int, level: int, own: int) -> np.ndarray:
        """What a key adds to the sum, by its lesser rank and the points of C in its subtree."""
        inside = self.index
        with_b = self.weight(rank[:, None] + more, inside + own, level)
        return with_b - self.factor * self.weight(rank[:, None], inside, level)
