"""Quantiles at any fractions by the keys that the data support around noisy ranks: the price of a domain does not grow with their number.

This is the idea of `noisy_slices` with one choice of `supported` in place of a solver for each slice, and with ranks of n itself.

1. R_i = f_i n + noise, as `chained_ranks` shares it: hiding a point costs rank_epsilon. Nothing is released if two neighbouring ranks are
   less than 2m + margin + 1 apart, or if a count N = n + two-sided geometric noise at rate count_epsilon is below a public number. With
   chains = 0, R_i = f_i max{N, 0} + noise.
2. Each run chooses among the keys with u(y) = min(m_y, 2(m - e(y))) > 0, where e(y) = max{R_i - #{x <= y}, #{x < y} - R_i, 0} and m_y is
   the number of points of the window in the subtree of y, with probability proportional to e^(epsilon u/2), or gives bottom: `supported`
   at w = 1/2. The window is the points of ranks above R_i - m up to the first one of R_i + m or more; there are points without end at 0
   and at 2^bits - 1.

**Privacy** (ADD_OR_REMOVE_ONE). N costs count_epsilon. Let S' be S with one more point, of rank p in S'; ranks from p on move up by one.
Compare runs on S at R with runs on S' at R' = R + (0, ..., 0, s, 1, ..., 1), s = 0, 1/2 or 1: the noise loses at most rank_epsilon,
whatever s is. Windows below p are the same if they do not move, and those above p are if they move by 1. The one in doubt may always move
by s = 1/2: a rank error moves by 1/2 at most then, since R moves by that and each count by 0 or 1, and all that `supported` says of a
median of n and n + 1 points holds, so that its run is (epsilon, delta)-private. (Slices of a solver move by a whole replacement.)

*How far it moves* is drawn where p is outside the window, but within margin/2 + 1 ranks of it. Let D = 2(R_i - p) on the side of S, and
D' = 2(R'_i - p) on that of S'. From S' to S, s = 0 needs D' <= -2m - 2, where the window on S' ends before p, and s = 1 needs D' >= 2m,
where it begins behind p. Let s > 0 have probability alpha(D') and s = 1 probability beta(D'),

    alpha(x) = (x + 2m + 2 + margin)/margin,    beta(x) = (x - 2m)/margin,    both cut off at 0 and 1.

Then R receives, from R' = R, R + 1/2 and R + 1, the weights 1 - alpha(D) + (alpha - beta)(D + 1) + beta(D + 2): this is 1, and what alpha
and beta gain on intervals of length 1, of which at most one gains anything, and that at most 1/margin. From S to S' let s > 0 have
probability alpha(D) and s = 1 probability beta(D + 2): with these, R' receives 1 less such gains. Ranks 2m + margin + 1 apart are in doubt
one at a time: then all above it move by 1, and all below by 0. Ranks that are closer, for which nothing is released, are compared with the
same ranks, at no more than rank_epsilon; none of the others becomes one of these, as gaps only grow on the way to R'. In all

    epsilon = count_epsilon + rank_epsilon + (that of a run) + ln(1 + 1/margin).

*Gaps.* On the way from S' to S gaps shrink by 1 at most, so the runs on S' with a gap below 2m + margin + 2 are given up: to the delta of a
run is added the probability that there is one and N is large enough all the same, whatever n is (`Chains.narrow`). With one quantile
there is none.

**Useful.** `supported` has m = (2/epsilon) (ln Z - 1.04) for windows that move by halves, where the slices of `noisy_slices` by the
supported tree need (3/epsilon) (ln Z - 1.1), and little of epsilon is spent on N. Nine quantiles of 64 bits are within 0.02 n of f n from
5,836 points on at (1, 1e-6), by `noisy_slices` from 9,271 on, with probability 0.9.

The plain twin is `dpjax.verify.plain.quantiles.supported_slices_law`.
"""

import math
from collections.abc import Sequence
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, UInt32

from dpjax.accounting import ADD_OR_REMOVE_ONE, Guarantee, basic
from dpjax.core import arguments
from dpjax.core.pytree import frozen, static
from dpjax.data.algorithm import whole
from dpjax.data.points import Points
from dpjax.data.sample import bucket
from dpjax.mechanisms.geometric import SMALLEST_RATE, geometric
from dpjax.optimizers.interior_point import base as solvers
from dpjax.optimizers.quantiles import base, chained_ranks
from dpjax.optimizers.quantiles.base import MOST_POINTS, MOST_ROWS, Quantiles
from dpjax.optimizers.quantiles.chained_ranks import STEP, Chains
from dpjax.optimizers.quantiles.noisy_ranks import MOST, fit, miscount
from dpjax.optimizers.quantiles.ranked import rounded_fractions
from dpjax.optimizers.quantiles.supported import least_m_of_run, windows

MOST_WIDTH = MOST_POINTS // 8  # of m and of the margin, so that sums of several fit int32


@frozen
class SupportedSlices(Quantiles):
    """Quantiles at any fractions by the keys that the data support around noisy ranks; build it by `supported_slices`.

    Attributes:
      bits: d.
      fractions: F for each wanted fraction F 2^-32, increasing.
      epsilon, delta: of a run.
      m: no answer errs by m ranks from its noisy rank.
      margin: halves of a rank beyond a window, on each side, in which it is in doubt how far it moves.
      rank_epsilon, count_epsilon: the costs of the noise of the ranks and of N.
      least: the least N with which anything is released.
      chains: of the noise of ranks, 1 or 2; 0 for one, and ranks of N (static).
      limbs: limbs of a point (static).
      capacity: rows of a window (static).
    """

    takes_scaled: ClassVar[bool] = True

    bits: Int[Array, ""]
    fractions: UInt32[Array, "quantiles"]
    epsilon: Float[Array, ""]
    delta: Float[Array, ""]
    m: Int[Array, ""]
    margin: Int[Array, ""]
    rank_epsilon: Float[Array, ""]
    count_epsilon: Float[Array, ""]
    least: Int[Array, ""]
    chains: int = static()
    limbs: int = static()
    capacity: int = static()

    def sound(self) -> Bool[Array, ""]:
        m, positive = jnp.asarray(self.m, jnp.int32), jnp.asarray(self.delta, float) > 0
        fits = (m >= 1) & (m <= (self.capacity - 1) // 2) & (jnp.asarray(self.margin, jnp.int32) >= 1)
        least = chained_ranks.least_rate(self.fractions.shape[0]), SMALLEST_RATE
        return super().sound() & positive & fits & fit((self.rate(), self.count_epsilon), least)

    def rate(self, xp: Any = jnp) -> Any:
        """The rate of a noise of ranks, in units."""
        f = xp.asarray(self.fractions).astype(float) * 2.0**-32
        return xp.asarray(self.rank_epsilon, float) / (chained_ranks.cost(f, self.chains, xp) * STEP)

    def draw(self, key: Array, points: Points) -> Any:
        key_count, key_ranks, key_runs = jax.random.split(key, 3)
        q, m = self.fractions.shape[0], jnp.asarray(self.m, jnp.int32)
        counted = geometric(key_count, points.n_valid, epsilon=self.count_epsilon)
        n = points.n_valid if self.chains else jnp.maximum(counted, 0)
        split = chained_ranks.split(q, self.chains)
        at, rest = chained_ranks.noisy(key_ranks, self.fractions, n, self.rate(), split)
        apart = chained_ranks.apart(at, rest, 2 * m + jnp.asarray(self.margin, jnp.int32) + 1)
        each = [jnp.full((q,), number, float) for number in (0.5, self.epsilon, self.delta)]
        several = windows(self, points, at, rest.astype(float) / STEP, each)
        runs = jax.vmap(lambda key, window: window.run(key))(jax.random.split(key_runs, q), several)
        answers, found, info = base.in_order(runs)
        enough = (counted >= self.least) | (q == 1)  # a single rank is in nobody's way
        return answers, found & apart & enough, {**info, "ranks": at}  # rounded down

    def guarantee(self) -> Guarantee:
        """The sum in the module, under ADD_OR_REMOVE_ONE; delta is that of the gaps and of a run."""
        ranks = Guarantee(
            float(self.rank_epsilon) + math.log1p(1 / self._numbers()[1]), self._narrow()[1], ADD_OR_REMOVE_ONE
        )
        count = Guarantee(float(self.count_epsilon), 0.0, ADD_OR_REMOVE_ONE)
        epsilon, delta = arguments.known("epsilon", self.epsilon), arguments.known("delta", self.delta)
        return basic([ranks, count, Guarantee(epsilon, delta, ADD_OR_REMOVE_ONE)])

    def _chains(self) -> Chains:
        return Chains.of(np.asarray(self.fractions, np.float64) * 2.0**-32, self.chains)

    def _narrow(self) -> tuple[float, float]:
        """Bounds on P[a gap is below 2m + margin + 2] at n = `least`, and on that and N >= `least` at any n."""
        m, margin, least = self._numbers()
        rates = float(self.rank_epsilon), float(self.count_epsilon)
        return self._chains().narrow(*rates, least, 2 * m + margin + 2)

    def _numbers(self) -> tuple[int, int, int]:
        """m, margin and `least` on the host; ValueError for numbers that runs, which compute in int32, would take for others."""
        most = {"m": MOST_WIDTH, "margin": MOST_WIDTH, "least": MOST_ROWS}
        m, margin, least = (int(arguments.known(name, getattr(self, name), at_most=end)) for name, end in most.items())
        arguments.known("margin", margin, at_least=1)
        return m, margin, least

    def sample_size(self, *, alpha: float, beta: float) -> int:
        """The number of points for which all ranks are within alpha n of f n, with probability 1 - beta.

        What beta leaves after the probability of a narrow gap is split in thirds: for the q runs, for the noises of q ranks, for N.

        Raises:
          ValueError: m is below what a run needs to give bottom with probability at most its share of beta, or beta is not above the
            probability of a narrow gap.
        """
        alpha, beta = arguments.known_fraction("alpha", alpha), arguments.known_fraction("beta", beta)
        q, (narrow, _) = self.fractions.shape[0], self._narrow()
        if beta <= narrow:
            raise ValueError(f"beta must be above {narrow:g}, the probability that a gap is too narrow, got {beta:g}")
        share = (beta - narrow) / 3
        needed = least_m_of_run(int(self.bits), (0.5, float(self.epsilon), float(self.delta)), share / q)
        if int(self.m) < needed:
            raise ValueError(f"m must be >= {needed} for bottom to have probability <= {share:g}, got {int(self.m)}")
        drift = self._chains().reach(float(self.rate(np)), share)
        drift += miscount(share, float(self.count_epsilon)) if self.chains == 0 else 0.0
        return whole(points_needed(int(self.m), drift, int(self.least), float(self.count_epsilon), share, alpha))


def points_needed(m: int, drift: float, least: int, count_epsilon: float, share: float, alpha: float) -> float:
    """The number of points for which ranks are within alpha n, and N is at least `least` except with probability `share`."""
    return max((m + drift + 1) / alpha, least + miscount(2 * share, count_epsilon))


def supported_slices(
    *,
    bits: int,
    fractions: Sequence[float],
    epsilon: Any,
    delta: Any,
    m: int,
    rank_epsilon: float,
    count_epsilon: float,
    gap_delta: float = 1e-9,
    margin: int | None = None,
    chains: int = 2,
) -> SupportedSlices:
    """Quantiles at `fractions` of the points, each by one choice around a noisy rank; see the module.

    `dpjax.choose` splits a total among the parts.

    Formal guarantees: (epsilon, delta) under ADD_OR_REMOVE_ONE by `SupportedSlices.guarantee`. Not promised: protection from floating-point
    side channels; a cryptographic generator.

    Args:
      bits: the domain is {0, ..., 2^bits - 1}, 1 to 4096.
      fractions: from 0 to 1, increasing; rounded to multiples of 2^-32 (`rounded_fractions`); at most 4096.
      epsilon: of a run, > 0, finite.
      delta: of a run, in (0, 1).
      m: no answer errs by m ranks from its noisy rank.
      rank_epsilon: the cost of the noise of all ranks.
      count_epsilon: the cost of a count that says whether there are enough points for their ranks to be apart.
      gap_delta: in (0, 1), the cost allowed to narrow gaps; the smaller it is, the more points there must be.
      margin: the larger it is, the less is paid for windows in doubt, and the more points there must be; 2m by default.
      chains: of noise: with 2 ranks err less, with 1 their gaps vary less, and still less with 0, where they are ranks of N.

    Raises:
      TypeError, ValueError: an argument out of range, fractions that do not increase.

    >>> parts = {"epsilon": 0.63, "delta": 5e-7, "m": 67, "rank_epsilon": 0.27, "count_epsilon": 0.054, "margin": 22}
    >>> quartiles = supported_slices(bits=64, fractions=[0.25, 0.5, 0.75], **parts, chains=1, gap_delta=5e-7)
    >>> round(quartiles.guarantee().epsilon, 3), quartiles.sample_size(alpha=0.1, beta=0.1)
    (0.998, 978)
    """
    domain, rounded = solvers.domain(bits), rounded_fractions(fractions)
    q = len(rounded)
    if q > MOST:
        raise ValueError(f"fractions must be at most {MOST}, got {q}")
    m = arguments.integer("m", m, at_least=1, at_most=MOST_WIDTH)
    margin = arguments.integer("margin", 2 * m if margin is None else margin, at_least=1, at_most=MOST_WIDTH)
    chains = arguments.integer("chains", chains, at_least=0, at_most=2)
    each: Any = np.asarray(rounded, np.uint32)
    used = Chains.of(each * 2.0**-32, chains)
    smallest = chained_ranks.least_rate(q) * used.cost * STEP
    rank_epsilon = arguments.known("rank_epsilon", rank_epsilon, at_least=smallest, below=700.0)
    count_epsilon = arguments.known("count_epsilon", count_epsilon, at_least=SMALLEST_RATE, below=700.0)
    gap_delta = arguments.known_fraction("gap_delta", gap_delta)
    least = used.enough(rank_epsilon, count_epsilon, 2 * m + margin + 2, gap_delta)
    if least > MOST_ROWS:
        parts = f"m={m}, margin={margin}, rank_epsilon={rank_epsilon:g}, count_epsilon={count_epsilon:g} and gap_delta={gap_delta:g}"
        raise ValueError(f"{parts} must allow at most {MOST_ROWS} points to be enough for these fractions, got {least}")
    leaves: Any = {
        "fractions": each,
        "epsilon": arguments.epsilon(epsilon),
        "delta": arguments.delta(delta),
        "m": np.int32(m),
        "margin": np.int32(margin),
        "rank_epsilon": np.float64(rank_epsilon),
        "count_epsilon": np.float64(count_epsilon),
        "least": np.int32(least),
    }
    return SupportedSlices(**domain, **leaves, chains=chains, capacity=bucket(2 * m + 1))
