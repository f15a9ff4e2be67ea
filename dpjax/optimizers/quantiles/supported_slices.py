"""Quantiles at any fractions by the keys that the data support around noisy ranks: the price of a domain does not grow with their number.

This is `noisy_slices` with one choice of `supported` in place of a solver for each slice, and with noise in halves of a rank.

1. A count N = n + two-sided geometric noise at rate count_epsilon is released. The wanted ranks are r_i = f_i N, rounded down to halves.
   Nothing more is released if some r_(i+1) - r_i is below a public `spacing`.
2. R_i = r_i + noise in halves (`noisy_ranks`): adding 1 to all of R_j, ..., R_q costs rank_epsilon, and adding 1/2 costs half of that.
   Nothing is released if some R_(i+1) - R_i is below 2m + margin + 1/2.
3. Each run chooses among the keys with u(y) = min(m_y, 2(m - e(y))) > 0, where e(y) = max{R_i - #{x <= y}, #{x < y} - R_i, 0} and m_y is
   the number of points of the window in the subtree of y, with probability proportional to e^(epsilon u/2), or gives bottom: `supported`
   at w = 1/2. The window is the points of ranks above R_i - m up to the first one of R_i + m or more; there are points without end at 0
   and at 2^bits - 1.

**Privacy** (ADD_OR_REMOVE_ONE). Given N the law of R does not depend on the data. Let S' be S with one more point, of rank p in S'; ranks
from p on move up by one. Compare runs on S at R with runs on S' at R' = R + (0, ..., 0, s, 1, ..., 1), s = 0, 1/2 or 1. The noise loses
rank_epsilon, whatever s is. Windows below p are the same if they do not move, and those above p are if they move by 1. The one in doubt
may always move by s = 1/2: a rank error moves by 1/2 at most then, since R moves by that and each count by 0 or 1, and all that `supported`
says of a median of n and n + 1 points holds, so that its run is (epsilon, delta)-private. (Slices of a solver move by a whole replacement.)

*How far it moves* is drawn where p is outside the window, but within some margin/2 ranks of it. Let D = 2(R_i - p) on the side of S, and
D' = 2(R'_i - p) on that of S', both integers. From S' to S, s = 0 needs D' <= -2m - 2, where the window on S' ends before p, and s = 1
needs D' >= 2m, where it begins behind p. Let s > 0 have probability alpha(D') and s = 1 probability beta(D'),

    alpha(x) = (x + 2m + 2 + margin)/(margin + 1),    beta(x) = (x - 2m + 1)/(margin + 1),    both cut off at 0 and 1.

Then R receives, from R' = R, R + 1/2 and R + 1, the weights 1 - alpha(D) + (alpha - beta)(D + 1) + beta(D + 2): 1 and the steps of alpha
and beta, of which at most one is not 0, and that is 1/(margin + 1). From S to S' let s > 0 have probability alpha(D) and s = 1
probability beta(D + 2): with these, R' receives 1 less such steps. Windows 2m + margin + 1/2 apart are in doubt one at a time: then all
above it move by 1, and all below by 0. In all

    epsilon = count_epsilon + rank_epsilon + (that of a run) + ln(1 + 1/(margin + 1)).

*Gaps.* On the way from S' to S gaps shrink by 1 at most, so the runs on S' with a gap below 2m + margin + 3/2 are given up: to the delta of
a run is added the probability of such a gap where wanted ranks are `spacing` apart, bounded as in `noisy_slices`. With one quantile there
is none.

**Useful.** `supported` has m = (2/epsilon) (ln Z - 1.04) for windows that move by halves, where the slices of `noisy_slices` by the
supported tree need (3/epsilon) (ln Z - 1.1). So on wide domains m is a third smaller.

The plain twin is `dpjax.verify.plain.quantiles.supported_slices_law`.
"""

import math
from collections.abc import Sequence
from typing import Any

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
from dpjax.optimizers.quantiles import base, noisy_ranks
from dpjax.optimizers.quantiles.base import MOST_POINTS, Quantiles, ranks
from dpjax.optimizers.quantiles.ranked import rounded_fractions
from dpjax.optimizers.quantiles.supported import least_m_of_run, windows

FAR = 2**29  # ranks this far apart are so in halves, too, which fit int32


@frozen
class SupportedSlices(Quantiles):
    """Quantiles at any fractions by the keys that the data support around noisy ranks; build it by `supported_slices`.

    Attributes:
      bits: d.
      fractions: F for each wanted fraction F 2^-32, increasing.
      epsilon, delta: of a run.
      m: no answer errs by m ranks from its noisy rank.
      margin: halves of a rank beyond a window, on each side, in which it is in doubt whether it moves.
      rank_epsilon, count_epsilon: the costs of the noise of the ranks and of N.
      spacing: the least difference between two wanted ranks, in halves.
      limbs: limbs of a point (static).
      capacity: rows of a window (static).
    """

    bits: Int[Array, ""]
    fractions: UInt32[Array, "quantiles"]
    epsilon: Float[Array, ""]
    delta: Float[Array, ""]
    m: Int[Array, ""]
    margin: Int[Array, ""]
    rank_epsilon: Float[Array, ""]
    count_epsilon: Float[Array, ""]
    spacing: Int[Array, ""]
    limbs: int = static()
    capacity: int = static()

    def sound(self) -> Bool[Array, ""]:
        m, positive = jnp.asarray(self.m, jnp.int32), jnp.asarray(self.delta, float) > 0
        fits = (m >= 1) & (2 * m < self.capacity) & (jnp.asarray(self.margin, jnp.int32) >= 0)
        noises = noisy_ranks.fit(self.fractions.shape[0], self.rank_epsilon, self.count_epsilon, steps=2)
        return super().sound() & positive & fits & noises

    def draw(self, key: Array, points: Points) -> Any:
        key_count, key_ranks, key_runs = jax.random.split(key, 3)
        q, m = self.fractions.shape[0], jnp.asarray(self.m, jnp.int32)
        counted = jnp.maximum(geometric(key_count, points.n_valid, epsilon=self.count_epsilon), 0)
        whole_part, digits = ranks(self.fractions, counted)
        wanted, half = whole_part.astype(jnp.int32), (digits >> np.uint32(31)).astype(jnp.int32)
        moved = half + noisy_ranks.rank_noises(key_ranks, q, self.rank_epsilon, steps=2)
        at, rest = wanted + (moved >> 1), moved & 1
        apart = jnp.all(_gaps(wanted, half) >= self.spacing) & jnp.all(_gaps(at, rest) > 4 * m + 2 * self.margin)
        each = [jnp.full((q,), number, float) for number in (0.5, self.epsilon, self.delta)]
        several = windows(self, points, at, rest.astype(float) / 2, each)
        runs = jax.vmap(lambda key, window: window.run(key))(jax.random.split(key_runs, q), several)
        answers, found, info = base.in_order(runs)
        return answers, found & apart, {**info, "ranks": at}  # rounded down

    def guarantee(self) -> Guarantee:
        """The sum in the module, under ADD_OR_REMOVE_ONE; delta is that of the gaps and of a run."""
        in_doubt = math.log1p(1 / (int(self.margin) + 1))
        ranks = Guarantee(float(self.rank_epsilon) + in_doubt, self._crowded(), ADD_OR_REMOVE_ONE)
        count = Guarantee(float(self.count_epsilon), 0.0, ADD_OR_REMOVE_ONE)
        epsilon, delta = arguments.known("epsilon", self.epsilon), arguments.known("delta", self.delta)
        return basic([ranks, count, Guarantee(epsilon, delta, ADD_OR_REMOVE_ONE)])

    def _crowded(self) -> float:
        """A bound on the probability that the noises leave less than 2m + margin + 3/2 between two ranks `spacing` apart."""
        room = int(self.spacing) - least_gap(int(self.m), int(self.margin))
        return noisy_ranks.crowded(room, self.fractions.shape[0], float(self.rank_epsilon), steps=2)

    def sample_size(self, *, alpha: float, beta: float) -> int:
        """The number of points for which all ranks are within alpha n of f n, with probability 1 - beta.

        What beta leaves after the probability of a narrow gap is split in thirds, as in `noisy_slices`.

        Raises:
          ValueError: m is below what a run needs to give bottom with probability at most its share of beta, or beta is not above the
            probability of a narrow gap.
        """
        alpha, beta = arguments.known_fraction("alpha", alpha), arguments.known_fraction("beta", beta)
        q, narrow = self.fractions.shape[0], self._crowded()
        if beta <= narrow:
            raise ValueError(f"beta must be above {narrow:g}, the probability that a gap is too narrow, got {beta:g}")
        share = (beta - narrow) / 3
        needed = least_m_of_run(int(self.bits), (0.5, float(self.epsilon), float(self.delta)), share / q)
        if int(self.m) < needed:
            raise ValueError(f"m must be >= {needed} for bottom to have probability <= {share:g}, got {int(self.m)}")
        drift = noisy_ranks.drift(q, float(self.rank_epsilon), share, steps=2)
        miscount = max(0.0, math.log(2 / share)) / float(self.count_epsilon)
        gap = np.min(np.diff(np.asarray(self.fractions, np.float64)), initial=np.inf) * 2.0**-32
        return whole(noisy_ranks.points_needed(int(self.m), drift, miscount, int(self.spacing) / 2, float(gap), alpha))


def _gaps(at: Int[Array, "k"], halves: Int[Array, "k"]) -> Int[Array, "k-1"]:
    """The differences between neighbouring at + halves/2, in halves, or what is as far."""
    return 2 * jnp.clip(jnp.diff(at), -FAR, FAR) + jnp.diff(halves)


def least_gap(m: int, margin: int) -> int:
    """The greatest gap, in halves, that runs on S' give up."""
    return 4 * m + 2 * margin + 2


def least_spacing(m: int, margin: int, count: int, rank_epsilon: float, delta: float) -> int:
    """How far apart wanted ranks must be, in halves, for gaps to be too narrow with probability at most delta."""
    return least_gap(m, margin) + noisy_ranks.least_room(count, rank_epsilon, delta, steps=2)


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
) -> SupportedSlices:
    """Quantiles at `fractions` of the points, each by one choice around a noisy rank; see the module.

    `dpjax.choose` splits a total among the parts.

    Formal guarantees: (epsilon, delta) under ADD_OR_REMOVE_ONE by `SupportedSlices.guarantee`. Not promised: protection from floating-point
    side channels; a cryptographic generator.

    Args:
      bits: the domain is {0, ..., 2^bits - 1}, 1 to 4096.
      fractions: each strictly between 0 and 1, increasing; rounded to multiples of 2^-32; at most 4096.
      epsilon: of a run, > 0, finite.
      delta: of a run, in (0, 1).
      m: no answer errs by m ranks from its noisy rank.
      rank_epsilon: the cost of the noise of all ranks.
      count_epsilon: the cost of the count.
      gap_delta: in (0, 1), the cost allowed to narrow gaps; the smaller it is, the further apart wanted ranks must be.
      margin: the larger it is, the less is paid for windows in doubt, and the further apart ranks must be; 2m by default.

    Raises:
      TypeError, ValueError: an argument out of range, fractions that do not increase.

    >>> parts = {"epsilon": 0.55, "delta": 1e-6, "m": 79, "rank_epsilon": 0.26, "count_epsilon": 0.18}
    >>> quartiles = supported_slices(bits=64, fractions=[0.25, 0.5, 0.75], **parts)
    >>> round(quartiles.guarantee().epsilon, 3), quartiles.sample_size(alpha=0.1, beta=0.1)
    (0.996, 1615)
    """
    domain, rounded = solvers.domain(bits), rounded_fractions(fractions)
    q = len(rounded)
    if q > noisy_ranks.MOST:
        raise ValueError(f"fractions must be at most {noisy_ranks.MOST}, got {q}")
    m = arguments.integer("m", m, at_least=1, at_most=MOST_POINTS // 8)
    margin = arguments.integer("margin", 2 * m if margin is None else margin, at_least=0, at_most=MOST_POINTS // 8)
    rank_epsilon = noisy_ranks.known_rate("rank_epsilon", rank_epsilon, noisy_ranks.least_rate(q, steps=2))
    gap_delta = arguments.known_fraction("gap_delta", gap_delta)
    spacing = least_spacing(m, margin, q, rank_epsilon, gap_delta)
    if spacing > MOST_POINTS:
        parts = f"m={m}, margin={margin}, rank_epsilon={rank_epsilon:g} and gap_delta={gap_delta:g}"
        raise ValueError(f"{parts} must allow ranks at most {MOST_POINTS // 2} apart, got {spacing / 2:g}")
    leaves: Any = {
        "fractions": np.asarray(rounded, np.uint32),
        "epsilon": arguments.epsilon(epsilon),
        "delta": arguments.delta(delta),
        "m": np.int32(m),
        "margin": np.int32(margin),
        "rank_epsilon": np.float64(rank_epsilon),
        "count_epsilon": np.float64(noisy_ranks.known_rate("count_epsilon", count_epsilon, SMALLEST_RATE)),
        "spacing": np.int32(spacing),
    }
    return SupportedSlices(**domain, **leaves, capacity=bucket(2 * m + 1))
