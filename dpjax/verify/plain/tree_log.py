"""A naive exact reference for TreeLog and its base case (CLNSS §1.3.3), in plain Python.

A law is {output: probability}, None being bottom. Points are Python integers of any width, nothing is vectorised,
and each function reads like its step of the algorithm:

1. Left slice: remove the m1 (+ noise) smallest elements.
2. Walk: from the root of the trie follow the heavier child (ties: left). At each node, lam being the weight of the
   lighter child, stop with probability p~(lam) and output the last element of the left child.
3. Deep slice: an element's level is the depth of the deepest path node containing it; remove the m2 (+ noise)
   deepest elements, ties by value.
4. Recurse on the multiset of the remaining levels, points of [0, bits] in a domain of 2^h' >= bits + 1 points.
5. The prefix of length min(l* + 1, bits) with most elements of the deep slice, by A_dist over all 2^length prefixes
   (ties: the lowest), is a node u*; output min(u*) if the left slice has a noisy m1/2 elements below it, else max(u*).

If the left slice leaves nothing there is no walk and no deep slice, and the recursion gets the empty multiset. With
that exception no node of the path is empty: the heavier child of a node with elements has elements.
"""

import functools
import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from dpjax.verify.plain.exponential import depth_law
from dpjax.verify.plain.laplace import laplace_tail
from dpjax.verify.plain.partition_selection import keep_probability, saturation

Law = dict[int | None, float]


@dataclass(frozen=True)
class Level:
    """One level's parameters; slice_epsilon=None means public slice sizes m1 and m2."""

    walk_epsilon: float
    walk_delta: float
    t1: int
    t2: int
    m1: int
    m2: int
    stable_epsilon: float
    stable_delta: float
    count_epsilon: float
    slice_epsilon: float | None = None

    def keep(self, count: int) -> float:
        """p~(count): nothing below t1, partition selection from there on, certainty from t2 on."""
        if count < self.t1:
            return 0.0
        return keep_probability(count - self.t1 + 1, self.walk_epsilon, self.walk_delta) if count < self.t2 else 1.0


def uniform_level(epsilon: float, delta: float, t1: int, m1: int, m2: int, slice_epsilon: float | None = None) -> Level:
    """A level whose mechanisms all have the same budget, with t2 = t1 + g - 1."""
    t2 = t1 + saturation(epsilon, delta) - 1
    return Level(epsilon, delta, t1, t2, m1, m2, epsilon, delta, epsilon, slice_epsilon)


def walk_delta(epsilon: float, delta: float, t1: int) -> float:
    """The exact price of a walk with partition selection (epsilon, delta) shifted to start at t1.

    The least d such that, for all neighbours, stop values and "went on" are (epsilon, d)-close. z changes lam from w
    to w + 1 at one node, or a tie there sends the two walks into different children of weights (w, w + 1), having
    tested w in both, or (w + 1, w + 1), having tested w and w + 1. Stops below a tie have no counterpart.

    >>> walk_delta(1.0, 0.1, 4) <= 0.1 + 1e-12 < walk_delta(1.0, 0.1, 3)  # g = 5
    True
    """
    t2 = t1 + saturation(epsilon, delta) - 1
    level = Level(epsilon, delta, t1, t2, 0, 0, epsilon, delta, epsilon)
    keep = [level.keep(w) for w in range(t2 + 2)]
    below = most_stopped(keep)
    pairs = [(w, w, below[w], below[w + 1]) for w in range(t2)]
    pairs += [(w, w + 1, below[w + 1], below[w + 1]) for w in range(t2)]
    worst = 0.0
    for w, w2, most, most2 in pairs:
        for first, second in itertools.product((0.0, most), (0.0, most2)):  # convex, so extremes suffice
            one = {0: keep[w], 1: (1 - keep[w]) * first, None: (1 - keep[w]) * (1 - first)}
            two = {0: keep[w2], 2: (1 - keep[w2]) * second, None: (1 - keep[w2]) * (1 - second)}
            worst = max(worst, hockey_stick(one, two, epsilon), hockey_stick(two, one, epsilon))
    return worst


def most_stopped(keep: Sequence[float]) -> list[float]:
    """B(m): the largest probability that a walk starting at a node of weight m stops, for m < len(keep)."""
    most: list[float] = []
    for m in range(len(keep)):
        first = [keep[lam] + (1 - keep[lam]) * most[m - lam] for lam in range(1, m // 2 + 1)]
        most.append(max(first, default=0.0))
    return most


def base_law(data: Iterable[int], size: int, epsilon: float, monotone: bool = False) -> Law:
    """The exponential mechanism on the depth, over {0, ..., size - 1}.

    >>> law = base_law([1], 3, 2.0)  # weights 1, e, 1
    >>> round(law[1], 6)
    0.576117
    """
    return dict(enumerate(depth_law(list(data), size, epsilon if monotone else epsilon / 2)))


def tree_log_law(
    data: Iterable[int], bits: int, levels: Sequence[Level], epsilon: float, monotone: bool = False
) -> Law:
    """TreeLog on [0, 2^bits) with len(levels) embeddings, then the base case with budget epsilon."""
    return dict(_tree_log_law(tuple(sorted(data)), bits, tuple(levels), epsilon, monotone))


@functools.lru_cache(maxsize=2**16)  # many datasets, and sizes of their slices, leave the same levels
def _tree_log_law(data: tuple[int, ...], bits: int, levels: tuple[Level, ...], epsilon: float, monotone: bool) -> Law:
    if not levels:
        return base_law(data, 2**bits, epsilon, monotone)
    level, *deeper = levels
    law: Law = {}
    for p_left, size in slice_sizes(level.m1, len(data), level.slice_epsilon):
        left, rest = data[:size], data[size:]
        stops, path, survived = walk(rest, bits, level.keep)
        for stop, p in stops:
            add(law, stop, p_left * p)
        for p_deep, deep, remaining in deep_slices(rest, path, level) if survived > 0 else ():
            inner = _tree_log_law(tuple(sorted(remaining)), padded_bits(bits), tuple(deeper), epsilon, monotone)
            for star, p_star in inner.items():
                for value, p in delayed_law(star, left, deep, bits, level).items():
                    add(law, value, p_left * survived * p_deep * p_star * p)
    return law


def add(law: Law, value: int | None, p: float) -> None:
    """Adds probability to a value."""
    law[value] = law.get(value, 0.0) + p


def padded_bits(bits: int) -> int:
    """h': the least with 2^h' >= bits + 1.

    >>> [padded_bits(bits) for bits in (1, 2, 3, 4, 64, 4096)]
    [1, 2, 2, 3, 7, 13]
    """
    return bits.bit_length()


def slice_sizes(least: int, available: int, epsilon: float | None) -> Iterator[tuple[float, int]]:
    """(probability, size) of a slice of least + Geom(1 - e^-epsilon) elements, or of all elements if there are fewer."""
    size, reached = min(least, available), 1.0  # P[the size is at least this]
    while epsilon is not None and size < available:
        yield -math.expm1(-epsilon) * reached, size
        size, reached = size + 1, math.exp(-epsilon) * reached
    yield reached, size


def walk(
    data: Sequence[int], bits: int, keep: Callable[[int], float]
) -> tuple[list[tuple[int, float]], list[int], float]:
    """The stop values with their probabilities, the path's prefixes from the root on, and P[no stop].

    An empty dataset has no path.
    """
    stops: list[tuple[int, float]] = []
    path: list[int] = [0] if data else []
    survived, inside = 1.0, list(data)
    for height in reversed(range(bits if data else 0)):  # of the children of the path's last node
        left = [x for x in inside if x >> height == 2 * path[-1]]
        right = [x for x in inside if x >> height == 2 * path[-1] + 1]
        stop = keep(min(len(left), len(right)))
        if stop > 0:
            stops.append((((2 * path[-1] + 1) << height) - 1, survived * stop))
        survived *= 1 - stop
        path.append(2 * path[-1] + (len(right) > len(left)))
        inside = right if len(right) > len(left) else left
    return stops, path, survived


def level_of(x: int, path: Sequence[int]) -> int:
    """The depth of the deepest path node that contains x."""
    bits = len(path) - 1
    return max(d for d, prefix in enumerate(path) if x >> (bits - d) == prefix)


def deep_slices(data: Sequence[int], path: Sequence[int], level: Level) -> Iterator[tuple[float, list[int], list[int]]]:
    """(probability, deep slice, remaining levels)."""
    tagged = sorted((-level_of(x, path), x) for x in data)
    for p, size in slice_sizes(level.m2, len(data), level.slice_epsilon):
        yield p, [x for _, x in tagged[:size]], [-minus for minus, _ in tagged[size:]]


def delayed_law(star: int | None, left: Sequence[int], deep: Sequence[int], bits: int, level: Level) -> Law:
    """The law of the output given what the recursion returned."""
    if star is None:
        return {None: 1.0}
    length = min(star + 1, bits)  # star is clipped to [0, bits] by this and by being a point of a domain from 0 on
    prefix, released = stable_prefix(deep, bits, length, level.stable_epsilon, level.stable_delta)
    first = prefix << (bits - length)
    last = first + (1 << (bits - length)) - 1
    below = sum(x < first for x in left)
    low = laplace_tail((level.m1 / 2 - below) * level.count_epsilon)
    law: Law = {None: 1 - released}
    add(law, first, released * low)
    add(law, last, released * (1 - low))
    return law


def stable_prefix(deep: Sequence[int], bits: int, length: int, epsilon: float, delta: float) -> tuple[int, float]:
    """A_dist on the counts of all 2^length >= 2 prefixes: the largest (the lowest of equals) and P[released]."""
    counts = {0: 0, 1: 0}  # all other prefixes without elements are higher and never matter
    for x in deep:
        prefix = x >> (bits - length)
        counts[prefix] = counts.get(prefix, 0) + 1
    best = min(counts, key=lambda prefix: (-counts[prefix], prefix))
    gap = counts.pop(best) - max(counts.values())
    return best, laplace_tail(math.log(1 / (2 * delta)) - (gap - 1) * epsilon)


def hockey_stick(p: Law, q: Law, epsilon: float) -> float:
    """The least delta for which P <= e^epsilon Q + delta on every event."""
    return math.fsum(max(0.0, mass - math.exp(epsilon) * q.get(value, 0.0)) for value, mass in p.items())
