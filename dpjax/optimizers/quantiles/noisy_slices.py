"""Quantiles at any fractions from disjoint slices around ranks with correlated noise (after SliceQuantiles, arXiv 2505.13662).

1. A count N = n + two-sided geometric noise at rate count_epsilon is released; everything below may depend on it. r_i = k_i(N) are the
   wanted ranks. Nothing more is released if some r_(i+1) - r_i is below a public `spacing`.
2. R_i = r_i + noise, a sum of two-sided geometric noises that the ranks share (`noisy_ranks`), such that adding 1 to all of R_j, ..., R_q
   costs rank_epsilon. Nothing is released if some R_(i+1) - R_i is below 2m + 1.
3. The solver runs on points R_i - m, ..., R_i + m - 1 (from 0) in increasing order, for each i; past the ends of the data points are 0 or
   2^bits - 1, as in `direct`.

**Privacy** (ADD_OR_REMOVE_ONE), derived here; the idea that one noise must hide a shift of all ranks above some place is the paper's.
Given N the law of R does not depend on the data. Let S' be S with one more point, which gets position p of the sorted data; positions
from p on move up by one. Compare runs on S at R with runs on S' at R' = R + (0, ..., 0, 1, ..., 1), where the ones start at index j. Slices
up to p are the same if they are not moved, and slices behind p if they are. The only other slice (slices are disjoint), which contains p,
differs by one replacement whether it is moved or not: its solver loses 2e. So j is forced except for that slice, and the noise loses
rank_epsilon.

*Whether it moves is not a free choice.* If the slice were always moved, or never, then on the way from S' to S two neighbouring R' would
meet in one R, at one end of the slice, and count twice. So both are taken, with weights: not moved with lambda(u) = (u + 1)/(2m + 1), where
u is p minus the slice's first position; this is 0 where the slice begins behind p, and 1 where it ends before p. Then R receives, from
R' = R and from R' = R moved, weights lambda(u) + 1 - lambda(u - 1) = 1 + 1/(2m + 1); as gaps are at least 2m + 1, only one index can be in
doubt. From S to S' the weights are 1 - lambda(u + 1) + lambda(u) <= 1. In all

    epsilon = count_epsilon + rank_epsilon + 2e + ln(1 + 1/(2m + 1)).

*Gaps.* On the way from S' to S one gap of R' shrinks by 1, so the runs on S' with a gap of 2m + 1 or less are given up: delta is the
probability of such a gap when r_(i+1) - r_i >= spacing. The noises of two neighbouring ranks differ by a sum of a few independent noises,
whose tail is exact. With one quantile there is no gap, and delta is the solver's alone.

*Ranks of n itself* would not do in place of those of N: under add/remove some of k_1(n), ..., k_q(n) rise by 1 and others, between them, do
not, which is not a shift of all from some index on. Taking n as public requires REPLACE_ONE, where two positions p move everything between
them.

The solver's price does not depend on q, and the error of the ranks grows like the root of q at first, then like its logarithm.

The plain twin is `dpjax.verify.plain.quantiles.noisy_slices_law`.
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
from dpjax.mechanisms.geometric import SMALLEST_RATE, geometric
from dpjax.optimizers.quantiles import base, noisy_ranks
from dpjax.optimizers.quantiles.base import MOST_ROWS, OnSlices, Quantiles
from dpjax.optimizers.quantiles.ranked import rounded_fractions


@frozen
class NoisySlices(OnSlices, Quantiles):  # type: ignore[override]
    """Quantiles at any fractions from disjoint slices around noisy ranks; build it by `noisy_slices`.

    Attributes:
      solver: a solver of `dpjax.optimizers.interior_point`.
      fractions: F for each wanted fraction F 2^-32, increasing.
      m: half the points of a slice.
      rank_epsilon, count_epsilon: the costs of the noise of the ranks and of N.
      spacing: the least difference between two wanted ranks.
      capacity: rows of a slice (static).
    """

    solver: Any
    fractions: UInt32[Array, "quantiles"]
    m: Int[Array, ""]
    rank_epsilon: Float[Array, ""]
    count_epsilon: Float[Array, ""]
    spacing: Int[Array, ""]
    capacity: int = static()

    def sound(self) -> Bool[Array, ""]:
        least = noisy_ranks.least_rate(self.fractions.shape[0]), SMALLEST_RATE
        return super().sound() & noisy_ranks.fit((self.rank_epsilon, self.count_epsilon), least)

    def draw(self, key: Array, points: Points) -> Any:
        key_count, key_ranks, key_runs = jax.random.split(key, 3)
        q, m = self.fractions.shape[0], jnp.asarray(self.m, jnp.int32)
        counted = jnp.maximum(geometric(key_count, points.n_valid, epsilon=self.count_epsilon), 0)
        wanted = base.nearest_rank(self.fractions, counted)
        ranks = wanted + noisy_ranks.rank_noises(key_ranks, q, self.rank_epsilon)
        apart = jnp.all(jnp.diff(wanted) >= self.spacing) & jnp.all(jnp.diff(ranks) > 2 * m)
        runs = jax.vmap(self.solver)(jax.random.split(key_runs, q), base.around(self, points, ranks))
        answers, found, info = base.in_order(runs)
        return answers, found & apart, {**info, "ranks": ranks}

    def guarantee(self) -> Guarantee:
        """The sum in the module, under ADD_OR_REMOVE_ONE; delta is that of the gaps and of the solver at distance 2."""
        met_twice = math.log1p(1 / (2 * int(self.m) + 1))
        ranks = Guarantee(float(self.rank_epsilon) + met_twice, self._crowded(), ADD_OR_REMOVE_ONE)
        count = Guarantee(float(self.count_epsilon), 0.0, ADD_OR_REMOVE_ONE)
        return basic([ranks, count, base.at_distance_two(self.solver)])

    def _crowded(self) -> float:
        """A bound on the probability that the noises leave 2m + 1 or less between two ranks at least `spacing` apart."""
        # Runs compute in int32, and would take larger numbers for others.
        most = {"spacing": MOST_ROWS, "m": base.MOST_POINTS // 2}
        spacing, m = (int(arguments.known(name, getattr(self, name), at_most=end)) for name, end in most.items())
        room = spacing - 2 * m - 1
        return noisy_ranks.crowded(room, self.fractions.shape[0], float(self.rank_epsilon))

    def sample_size(self, *, alpha: float, beta: float) -> int:
        """The number of points for which all ranks are within alpha n of f n, with probability 1 - beta.

        What beta leaves after the probability of a narrow gap is split in thirds: for the q runs of the solver, for the noises of q ranks,
        for the count (P[|noise| > c] = 2 r^(c+1) / (1 + r), r = exp(-count_epsilon)).

        Raises:
          ValueError: 2m points are too few for the solver, or beta is not above the probability of a narrow gap.
        """
        alpha, beta = arguments.known_fraction("alpha", alpha), arguments.known_fraction("beta", beta)
        q, narrow = self.fractions.shape[0], self._crowded()
        if beta <= narrow:
            raise ValueError(f"beta must be above {narrow:g}, the probability that a gap is too narrow, got {beta:g}")
        share = (beta - narrow) / 3
        base.require(self.solver, int(self.m), share / q)
        drift = noisy_ranks.drift(q, float(self.rank_epsilon), share)
        miscount = noisy_ranks.miscount(share, float(self.count_epsilon))
        gap = np.min(np.diff(np.asarray(self.fractions, np.float64)), initial=np.inf) * 2.0**-32
        return whole(noisy_ranks.points_needed(int(self.m), drift, miscount, int(self.spacing), float(gap), alpha))


def least_spacing(m: int, count: int, rank_epsilon: float, delta: float) -> int:
    """How far apart wanted ranks must be for gaps to be too narrow with probability at most delta."""
    return 2 * m + 1 + noisy_ranks.least_room(count, rank_epsilon, delta)


def noisy_slices(
    *,
    solver: Any,
    fractions: Sequence[float],
    m: int,
    rank_epsilon: float,
    count_epsilon: float,
    delta: float = 1e-9,
    beta: float = 0.1,
    allow_unproved: bool = False,
) -> NoisySlices:
    """Quantiles at `fractions` of the points, each from the 2m points around a noisy rank; see the module.

    Formal guarantees: (epsilon, delta) under ADD_OR_REMOVE_ONE by `NoisySlices.guarantee`. Not promised: protection from floating-point
    side channels; a cryptographic generator.

    Args:
      solver: a solver of `dpjax.optimizers.interior_point`, on the domain of the points.
      fractions: from 0 to 1, increasing; rounded to multiples of 2^-32 (`rounded_fractions`); at most 4096.
      m: half the points of a slice.
      rank_epsilon: the cost of the noise of all ranks.
      count_epsilon: the cost of the count.
      delta: in (0, 1), the cost allowed to narrow gaps; the smaller it is, the further apart wanted ranks must be.
      beta: the failure probability of everything together: 2m points must suffice for the solver at beta / (3 q).
      allow_unproved: accept any m. The guarantee holds; no accuracy is proved.

    Raises:
      TypeError, ValueError: an argument out of range, fractions that do not increase, slices too small for the solver.

    >>> from dpjax.optimizers import interior_point
    >>> solver = interior_point.exponential(bits=24, epsilon=0.3)
    >>> quartiles = noisy_slices(solver=solver, fractions=[0.25, 0.5, 0.75], m=80, rank_epsilon=0.3, count_epsilon=0.1)
    >>> int(quartiles.spacing), round(quartiles.guarantee().epsilon, 3), quartiles.guarantee().delta < 1e-9
    (231, 1.006, True)
    """
    rounded = rounded_fractions(fractions)
    q = len(rounded)
    if q > noisy_ranks.MOST:
        raise ValueError(f"fractions must be at most {noisy_ranks.MOST}, got {q}")
    width = base.half_width(solver, m, runs=3 * q, beta=beta, allow_unproved=allow_unproved)
    rank_epsilon = arguments.known("rank_epsilon", rank_epsilon, at_least=noisy_ranks.least_rate(q), below=700.0)
    count_epsilon = arguments.known("count_epsilon", count_epsilon, at_least=SMALLEST_RATE, below=700.0)
    delta = arguments.known_fraction("delta", delta)
    spacing = least_spacing(int(width["m"]), q, rank_epsilon, delta)
    if spacing > MOST_ROWS:
        raise ValueError(
            f"m, rank_epsilon and delta must allow slices at most {MOST_ROWS} ranks apart, got {spacing} for {width['m']}, {rank_epsilon},"
            f" {delta}"
        )
    leaves: Any = {
        "fractions": np.asarray(rounded, np.uint32),
        "rank_epsilon": np.float64(rank_epsilon),
        "count_epsilon": np.float64(count_epsilon),
        "spacing": np.int32(spacing),
    }
    return NoisySlices(solver=solver, **leaves, **width)
