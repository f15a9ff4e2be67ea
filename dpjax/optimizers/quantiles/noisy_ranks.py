"""Correlated noise for ranks: adding 1 to all ranks from some place on costs as much as moving a few independent noises by 1.

The noise of rank i = 1, ..., q is the sum of the noises of some *nodes* among 1, ..., q. Write i to a base b, with l digits for q. From i
take away 1 at its last digit that is not 0, again and again: the numbers on the way down to 0 are the nodes of i, as many as the sum of its
digits. Then, for any j, the noises of all i >= j rise by 1, and no others do, if for each place of j - 1 whose digit is not b - 1 one node
rises by 1: that digit plus 1, with the digits of j - 1 in front of it and zeros behind. At most l nodes move, so each has two-sided
geometric noise at the rate rank_epsilon/l, and the move costs rank_epsilon.

b = 2 is the binary mechanism (Dwork, Naor, Pitassi, Rothblum 2010; Chan, Shi, Song 2011), with l = log2 q and l noises a rank. b = q + 1 is
one noise a rank, added up: q of them, at l times the rate. That errs less for all q up to 114, and its gaps vary by a single noise.
For more ranks two or three digits are best. `scheme` takes the base with the least error: with probability 29/30 all noises are within

| 1/rank_epsilon times | q = 9 | 50 | 1000 |
|---|---|---|---|
| here | 10.5 | 24.1 | 94 |
| b = 2 | 33.2 | 75.1 | 203 |

of 0 (`Scheme.reach`). (Tails are exact: `bounds.geometric_sum_tail`. For b = q + 1 the noises are partial sums, and by Levy's
inequality the largest of these exceeds t with at most twice the probability of the last one.)
"""

import dataclasses
import functools
import math
from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from dpjax import bounds
from dpjax.mechanisms.geometric import SMALLEST_RATE, geometric

MOST = 2**12  # ranks
FINE = 2.0**-8  # of a rate: noise so fine that its law is that of Laplace noise


@dataclasses.dataclass(frozen=True)
class Scheme:
    """How ranks share noises.

    Attributes:
      count: q.
      base: b.
      levels: l, the greatest number of nodes that a move moves.
      most: the greatest number of nodes of a rank.
      between: the greatest number of nodes by which a rank and the next one differ.
    """

    count: int
    base: int
    levels: int
    most: int
    between: int

    @classmethod
    def of(cls, count: int, base: int) -> "Scheme":
        """The scheme of a base."""
        rest, digits, zeros = np.arange(1, count + 1), np.zeros(count, int), np.zeros(count, int)
        levels, ended = 0, np.zeros(count, bool)
        while rest.any():
            ended |= rest % base > 0
            digits, zeros = digits + rest % base, zeros + ~ended
            rest, levels = rest // base, levels + 1
        # Behind i - 1, whose last digits are b - 1, comes i with as many zeros.
        return cls(count, base, levels, int(digits.max()), int(zeros.max()) * (base - 1) + 1)

    def rate(self, rank_epsilon: float) -> float:
        """The rate of a node's noise."""
        return rank_epsilon / self.levels

    def reach(self, rank_epsilon: float, share: float) -> float:
        """The number of ranks that no noise exceeds, except with probability `share`."""
        # Both signs of each; the largest partial sum is beyond t with twice the probability of the last.
        ways = 4 if self.levels == 1 and self.count > 1 else 2 * self.count
        return bounds.geometric_sum_reach(self.most, self.rate(rank_epsilon), share / ways) - 1


@functools.lru_cache(256)
def scheme(count: int) -> Scheme:
    """The scheme of the least error for so many ranks.

    >>> [(scheme(q).base, scheme(q).levels) for q in (1, 9, 50, 1000, 4096)]
    [(2, 1), (10, 1), (51, 1), (32, 2), (17, 3)]
    """
    bases = {math.ceil((count + 1) ** (1 / levels) - 1e-9) for levels in (1, 2, 3)}
    schemes = (Scheme.of(count, max(base, 2)) for base in sorted(bases))
    return min(schemes, key=lambda each: each.reach(FINE, 1 / 30))


def prefixes(count: int, base: int) -> Bool[np.ndarray, "ranks nodes"]:
    """The nodes of each rank 1, ..., count.

    >>> prefixes(4, 3).astype(int).tolist()
    [[1, 0, 0, 0], [1, 1, 0, 0], [0, 0, 1, 0], [0, 0, 1, 1]]
    """
    found = np.zeros((count, count), bool)
    for i in range(1, count + 1):
        node, unit = i, 1
        while node:
            if node % (unit * base) == 0:
                unit *= base
                continue
            found[i - 1, node - 1] = True
            node -= unit
    return found


def rank_noises(key: Array, count: int, rank_epsilon: Float[Array, ""]) -> Int[Array, "count"]:
    """The noise of each rank."""
    used = scheme(count)
    nothing = jnp.zeros((count,), jnp.int32)
    noises = geometric(key, nothing, epsilon=rank_epsilon, sensitivity=used.levels)
    return jnp.sum(jnp.where(prefixes(count, used.base), noises, 0), axis=1, dtype=jnp.int32)


def least_rate(count: int) -> float:
    """The least rank_epsilon with which the noise of a rank fits int32."""
    return SMALLEST_RATE * scheme(count).levels * scheme(count).most


def fit(rates: Sequence[Any], least: Sequence[float]) -> Bool[Array, ""]:
    """Whether rates, known or traced, are at least these, so that noises fit int32."""
    found = jnp.stack([jnp.asarray(rate, float) for rate in rates])
    return jnp.all((found >= jnp.asarray(least, found.dtype)) & (found < jnp.inf))


def miscount(share: float, count_epsilon: float) -> float:
    """What a noisy count is not farther from n than, except with probability `share`."""
    return max(0.0, math.log(2 / share)) / count_epsilon


@functools.lru_cache(4096)  # while an epsilon or an alpha is searched for, the same is asked again
def drift(count: int, rank_epsilon: float, share: float) -> float:
    """The number of ranks that no noise exceeds, except with probability `share`."""
    return scheme(count).reach(rank_epsilon, share)


def crowded(room: int, count: int, rank_epsilon: float) -> float:
    """A bound on P[the noises of two neighbouring ranks differ by `room` or more, towards each other]."""
    if count == 1:
        return 0.0
    used = scheme(count)
    return min(1.0, (count - 1) * bounds.geometric_sum_tail(used.between, used.rate(rank_epsilon), max(room, 0)))


def least_room(count: int, rank_epsilon: float, delta: float) -> int:
    """The least room for which that is at most delta."""
    if count == 1:
        return 0
    used = scheme(count)
    return bounds.geometric_sum_reach(used.between, used.rate(rank_epsilon), delta / (count - 1))


@functools.lru_cache(4096)
def costs(count: int, share: float, delta: float) -> tuple[float, float, float]:
    """What rank_epsilon divides in a drift at `share` and in the room at delta, and count_epsilon in an error of N at `share`.

    >>> [round(cost, 1) for cost in costs(9, 0.03, 1e-6)]
    [10.7, 15.2, 4.2]
    """
    room = FINE * least_room(count, FINE, delta)
    return FINE * drift(count, FINE, share), room, miscount(share, 1.0)


def points_needed(m: int, drift: float, miscount: float, spacing: float, gap: float, alpha: float) -> float:
    """The number of points for which ranks are within alpha n, and wanted ranks `spacing` apart, where fractions are `gap` apart."""
    return max((m + drift + miscount + 1) / alpha, (spacing + 1) / gap + miscount)
