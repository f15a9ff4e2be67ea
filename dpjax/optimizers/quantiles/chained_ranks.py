"""Noisy ranks of a private number of points: R_i = f_i n + noise, in chains from both ends of the data.

Inserting a point below the rank R_j and above R_(j-1) must be hidden, where wanted, by adding 1 to R_j, ..., R_q, and nothing to the
others. Since f_i n moves by f_i anyway, the noise of R_i must move by 1 - f_i or by -f_i. Let g_i = f_i - f_(i-1), with f_0 = 0 and
f_(q+1) = 1. In the *lower chain* the noise of each rank i = 1, ..., k is that of the one before and one more, and in the *upper chain*,
i = k + 1, ..., q, that of the one behind it and one more. Then one noise moves by 1 - g_j, and the others by g_i, one for each gap but
g_(k+1) between the chains:

    cost = max_j (1 - g_j + sum of the other g_i, without g_(k+1)) = 2 - 2 min g_j - g_(k+1)

times the rate of a noise, and rank_epsilon is this. (If the chains part just there, j = k + 1, or no rank moves, it is 1 - g_(k+1). If R_j
moves by 1/2 and those above by 1, it lies between two of these cases.) Ranks and noises are integers in units of 1/STEP; rounding f_i n
adds at most 2/STEP a noise. So no count has to be paid for to know the ranks, as in `noisy_slices`. At q = 3, 9 and 31 evenly spaced
fractions no noise exceeds

| 1/rank_epsilon times | q = 3 | 9 | 31 |
|---|---|---|---|
| two chains | 7.4 | 15.5 | 29.7 |
| one chain, k = q | 8.0 | 18.0 | 36.9 |

with probability 29/30 (`Chains.reach`). Gaps within a chain vary by one noise, that between two chains by all of them: where gaps
matter, one chain is better. Where they matter much, so are ranks f_i N of a *released* count N, which do not move by themselves: then in
one chain just one noise moves, by 1, and the cost is 1.
"""

import dataclasses
import functools
import math
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int, UInt32

from dpjax import bounds
from dpjax.mechanisms.geometric import SMALLEST_RATE, geometric
from dpjax.optimizers.quantiles.base import ranks

STEP = 2**11  # units of a rank
FAR = 2**19  # ranks this far apart are so in units, too, which fit int32
NATS = 600.0  # tails smaller than e to minus this are bounded, since float64 might not hold them
FINE = 2.0**-3  # of a rate of noise a rank: so fine in units that its law is that of Laplace noise


@dataclasses.dataclass(frozen=True)
class Chains:
    """How much ranks at these fractions cost, and how they vary.

    Attributes:
      gaps: g_1, ..., g_(q+1).
      split: k, the length of the lower chain, at least 1.
      released: whether the ranks are those of a released count; then there is one chain.
    """

    gaps: tuple[float, ...]
    split: int
    released: bool = False

    @classmethod
    def of(cls, fractions: Any, chains: int) -> "Chains":
        """One or two chains; 0 stands for one, of ranks of a released count."""
        gaps = gaps_of(np.asarray(fractions, np.float64), np)
        return cls(tuple(gaps.tolist()), split(len(gaps) - 1, chains), chains == 0)

    @property
    def count(self) -> int:
        """q."""
        return len(self.gaps) - 1

    @functools.cached_property
    def cost(self) -> float:
        """What rank_epsilon is divided by for the rate of a noise."""
        return 1.0 if self.released else float(_cost(np.asarray(self.gaps), self.split, np))

    def rate(self, rank_epsilon: float) -> float:
        """The rate of a noise, in units."""
        return rank_epsilon / (self.cost * STEP)

    def reach(self, rate: float, share: float) -> float:
        """The number of ranks that no noise exceeds, except with probability `share`."""
        # Both signs; by Levy's inequality the largest partial sum is beyond t with twice the probability of the last one.
        lengths = [self.split, self.count - self.split] if self.count > self.split else [self.split]
        ways = sum(2 if length == 1 else 4 for length in lengths)
        return (bounds.geometric_sum_reach(max(lengths), rate, share / ways) - 1) / STEP

    def rooms(self, delta: float, power: float) -> tuple[float, float]:
        """The rooms, times the rate of a noise for a rank, of gaps that vary by one noise and of that between chains; `power` as below."""
        parts, log_odds = 2 if self.split < self.count else 1, -math.log(delta)
        single, between = log_odds + math.log(parts * max(self.count - 1, 1)), log_odds + math.log(2)
        return _reach(1, single / power), _reach(self.count, between / power) if parts == 2 else 0.0

    def enough(self, rank_epsilon: float, count_epsilon: float, least: float, delta: float) -> int:
        """An N that makes the second bound of `narrow` at most delta, and is hardly larger than it must be."""
        if self.count == 1:
            return 0
        rate, gaps = self.rate(rank_epsilon) * STEP, self.gaps[1:-1]
        power = 1.0 if self.released else min(1.0, count_epsilon / (rate * min(gaps)))
        single, between = (least + room / rate for room in self.rooms(delta, power))
        wide = self.gaps[self.split] if self.split < self.count else 1.0
        n = math.ceil(max(single / min(gaps), between / wide))
        while self.narrow(rank_epsilon, count_epsilon, n, least)[1] > delta:
            n = math.ceil(n * 1.001)
        return n

    def narrow(self, rank_epsilon: float, count_epsilon: float, n: int, least: float) -> tuple[float, float]:
        """Bounds on P[some gap is below `least` ranks], for n points; and on that and N >= n, for any number of points, or for ranks of N.

        If there are y points fewer, a gap of g is y g ranks less, which makes it up to e^(rate g y) times as likely that it is too narrow,
        and N >= n at most e^(-count_epsilon y) times as likely: of a product that grows, the most is reached where the former is 1.
        """
        if self.count == 1:
            return 0.0, 0.0
        rate, gaps = self.rate(rank_epsilon), np.asarray(self.gaps[1:-1])
        room = np.floor((gaps * n - least) * STEP) - 3  # units; f n is rounded twice, and so is this
        # Logarithms, since a small power may bring back a tail that no float64 holds.
        logs = np.where(room < 1, 0.0, -rate * np.maximum(room, 0) - math.log1p(math.exp(-rate)))
        if self.split < self.count:
            logs[self.split - 1] = _log_tail(self.count, rate, int(room[self.split - 1]))
        power = 1.0 if self.released else np.minimum(1.0, count_epsilon / (rate * STEP * gaps))
        return min(1.0, float(np.exp(logs).sum())), min(1.0, float(np.exp(power * logs).sum()))


def _log_tail(noises: int, rate: float, least: int) -> float:
    """ln P[a sum of so many noises is at least this], or a bound on it where it is tiny."""
    nats = rate * least
    if nats < NATS:
        return math.log(bounds.geometric_sum_tail(noises, rate, least))
    s = min(nats / (noises + math.hypot(noises, nats)), 1.0 - 2.0**-53)  # that of `bounds.noise_tail`
    return -s * nats - noises * math.log1p(-s * s)


@functools.lru_cache(1024)
def _reach(noises: int, log_odds: float) -> float:
    """What a sum of so many noises exceeds with probability at most e^-log_odds, for a rank, times the rate."""
    if log_odds > NATS:  # enough, by the bound of `_log_tail`; that of a single noise is exact
        return bounds.noise_deviation(noises, log_odds) if noises > 1 else log_odds
    return FINE * bounds.geometric_sum_reach(noises, FINE / STEP, math.exp(-log_odds)) / STEP


def split(count: int, chains: int) -> int:
    """k for one or two chains, or for 0."""
    return -(-count // max(chains, 1))


def gaps_of(fractions: Any, xp: Any) -> Any:
    """g_1, ..., g_(q+1)."""
    return xp.diff(fractions, prepend=0.0, append=1.0)


def cost(fractions: Any, chains: int, xp: Any) -> Any:
    """What rank_epsilon is divided by for the rate of a noise, by `jax.numpy`, or by `numpy` on the host."""
    return xp.ones(()) if chains == 0 else _cost(gaps_of(fractions, xp), split(fractions.shape[0], chains), xp)


def _cost(gaps: Any, split: int, xp: Any) -> Any:
    count, between = gaps.shape[0] - 1, gaps[split]
    others = xp.concatenate([gaps[:split], gaps[split + 1 :]])
    # Where g_j is above 1/2, as can be for a single fraction, moving it by 1 costs less than leaving it.
    return xp.maximum(2 - 2 * xp.min(others) - between, 1 - between) + 2 * count / STEP


def noisy(key: Array, fractions: UInt32[Any, "q"], n: Int[Array, ""], rate: Array, split: int) -> tuple[Array, Array]:
    """(The ranks rounded down, the rest in units)."""
    whole, digits = ranks(fractions, n)
    noises = geometric(key, jnp.zeros(np.shape(fractions), jnp.int32), epsilon=rate)
    lower = jnp.cumsum(noises[:split], dtype=jnp.int32)
    upper = jnp.cumsum(noises[split:][::-1], dtype=jnp.int32)[::-1]
    shift = STEP.bit_length() - 1
    moved = (digits >> np.uint32(32 - shift)).astype(jnp.int32) + jnp.concatenate([lower, upper])
    return whole.astype(jnp.int32) + (moved >> shift), moved & (STEP - 1)


def apart(at: Int[Array, "q"], rest: Int[Array, "q"], ranks: Int[Array, ""]) -> Bool[Array, ""]:
    """Whether neighbouring ranks at + rest/STEP are at least so many ranks from each other."""
    gaps = STEP * jnp.clip(jnp.diff(at), -FAR, FAR) + jnp.diff(rest)
    return jnp.all(gaps >= STEP * jnp.minimum(ranks, FAR))


def least_rate(count: int) -> float:
    """The least rate, in units, with which the noise of a rank fits int32."""
    return SMALLEST_RATE * count


@functools.lru_cache(1024)
def costs(chains: Chains, share: float, delta: float, power: float) -> tuple[float, float]:
    """What the rate of a noise, for a rank, divides in the noise at `share`, and in the room of a gap, at delta; see `Chains.enough`."""
    return FINE * chains.reach(FINE / STEP, share), max(chains.rooms(delta, power))
