"""Quasi-concave optimisation with additive error about 2^(log* T), by amplified interior points (CLNSS §1.3.5, Theorem 1.2).

Given Q on {0, ..., T}, of sensitivity 1, with max Q >= p, the goal is a point with Q > p - Delta. The paper announces the result;
the algorithm, its constants and the proofs are completed here. epsilon and delta are those of the mechanism at hand, c is a sensitivity,
and every exponential mechanism weighs by exp(epsilon score / (2 sensitivity)). E is the epsilon of the mechanism at hand and of all
that run after it. A test (u, v) of x passes with probability (asymmetric Laplace noise)

    pass(x) = v/(u + v) e^(u x) for x <= 0, and 1 - u/(u + v) e^(-v x) for x >= 0.

Both pieces have the slope u v/(u + v) at 0, so the slope of ln pass(x) is between 0 and u, that of ln(1 - pass(x)) between -v and 0.

**Algorithm.** *Promise test* (epsilon, E) of max Q - R - 1 - ln(E/((epsilon + E) delta))/epsilon, with the delta of the whole: bottom
unless it passes. Then clip Q to [p - Delta, R] and subtract p - Delta: it now lies in [0, r]. With Left(x) = max_{y <= x} Q,
Right(x) = max_{y >= x} Q, Right(T+1) = 0, let F(x) = Left(x) + r - Right(x+1), but F(-1) = 0 and F(T) = n = 2r. Return Level(F, 1).

*Level(F, c)*: F rises on {0, ..., T} from F(-1) = 0 to F(T) = n and is n beyond. A point of positive
depth(x) = min(F(x), n - F(x-1)) is sought. The N-th level calls the exponential mechanism on the depth instead, of sensitivity 2^N.

1. F^ = clip(F - trim, 0, n^), n^ = n - 2 trim. A block of size 2^s is {k 2^s, ..., (k+1) 2^s - 1}, its weight w the rise of F^ over it,
   W(s) the largest weight. W rises with s, up to W(h) = n^ for the least h with 2^h > T.
2. G(s) = max(W(s) - reserve, 0) is such a function again, on {0, ..., h}. Let s = Level(G, 2c).
3. The candidates are the blocks of size 2^s and weight >= 1/a, a = epsilon/(4c); Z is the sum of e^(a w) over them. Test (1, rho)
   of ln Z - a bar; bottom unless it passes. Choose a candidate with probability e^(a w)/Z.
4. Return the block's first point, the last of its left half or its last (at most T), by the exponential mechanism on the depth, of
   sensitivity c.

A level is written here twice: on small ranges point by point (`dense_law`), and on the wide range by the steps of F alone (`steps`,
`blocks`, `candidates`). Both take the same four steps, and share `choose_block` and `choose_point`.

**Privacy**: the sums of all epsilons, and of the N deltas, for any Q of sensitivity 1, quasi-concave or not, if at each level, for
delta' = min(delta, 1/4, epsilon/16),

    rho = E/(epsilon/2 + 4 delta'),    a bar = 1 + ln( rho/(1 + rho) phi max(a n^, 1) / delta' ),
    phi = min( 1/(1 - epsilon/4) if epsilon < 4, 2 e^(epsilon/2)/(1 + epsilon/2) ).

*Bottom ends the run*, so its probability may change by e^E. Let a step's values v keep P[S] <= e^epsilon P'[S] + delta for all sets S of
them, and its bottom P[bottom] <= e^E P'[bottom]; let what follows a value keep E - epsilon and D. Then an event that follows v with
probability f(v) has probability sum_v P[v] f(v) + P[bottom] <= sum_v P[v] min(1, e^(E - epsilon) f'(v)) + D + P[bottom]
<= e^E (sum_v P'[v] f'(v) + P'[bottom]) + delta + D, or the same without bottom: from this step on, E and delta + D are kept.

*Promise test.* If both maxima are < R + 1, either run passes with probability at most delta, and bottom's probability changes by e^E:
the whole is (E, delta)-private. Else one of Q, Q' is >= R + 1 at some z, the other >= R there, and clipped both are r at z. For x >= z both
have Left(x) = r, for x < z both have Right(x+1) = r, and the other terms of F(x) change by at most 1: |F - F'| <= 1, and n is the
same. Passing costs epsilon, and its delta is not added to that of the rest.

*Recursion.* Clipping increases no difference, so weights, W and G change by at most 2c, and the last value of G, n^ - reserve, is public.
The depth changes by at most c: step 4 and the last level are epsilon-private.

*Step 3*, for given s. In terms of Z, a candidate has probability h(Z) e^(a w) with h(Z) = pass/Z, which is m = rho/(1 + rho) e^(-a bar) up
to Z = e^(a bar), and falls beyond, no faster than 1/Z. Let A be the candidates of the one run that are not candidates in the other,
B conversely, Z_A and Z'_B their parts of Z and Z'. The other parts differ by a factor of at most e^(epsilon/2), so
Z' <= e^(epsilon/2) Z/(1 - b), b = Z'_B/Z'.
(i) m (Z_A + Z'_B) <= delta'. They are different blocks, and weigh n^ together at most in each run. Let W be the weight in the run
where a block is a candidate; in the other it is less than 1/a, and at least W - 2c: W is from 1/a to 1/a + 2c, and the mean of the two
at least W - c. So the sum of all W - c is at most n^, and that of e^(a W) at most n^ times the largest e^(a W)/(W - c). This is at an
end of the range, by convexity of its logarithm, and as (1 + x)/(1 - x) >= e^(2x) at W = 1/a: a n^ e/(1 - epsilon/4). Or A and B weigh
n^ each, at most, and e^(a W)/W rises: 2 a n^ e^(1 + epsilon/2)/(1 + epsilon/2).
(ii) Let S be common candidates. If Z >= Z', then h(Z) <= h(Z'), and P[S] <= e^(epsilon/2) P'[S]. Else h(Z) <= h(Z') Z'/Z, hence
P[S] (1 - b) <= e^epsilon P'[S], and P[S] b <= h(Z) Z Z'_B/Z' <= m Z'_B. So P[S] + P[A] - e^epsilon P'[S] <= m Z'_B + m Z_A <= delta.
(iii) Let fail = 1 - pass; it is to be shown that fail(Z) <= e^E fail(Z'), where Z' = e^(epsilon/2) Z + Z'_B is the worst, m Z'_B <= delta'.
As E >= epsilon, rho >= 4/3, and for t = rho/(1 + rho) delta'/t <= 7/16. If Z' >= e^(a bar), then e^(epsilon/2) m Z >= t - delta', so
Z' <= e^(epsilon/2) Z/(1 - delta'/t) <= Z e^(epsilon/2 + 4 delta'), and fail(Z) <= (Z'/Z)^rho fail(Z') <= e^E fail(Z'). If
Z' <= e^(a bar), both sides are linear in Z, for given Z'_B: the inequality holds at the largest Z, which was the first case, and at
Z = 0, where it says 1 <= e^E (1 - m Z'_B), and 1 - delta' >= e^(-2 delta') >= e^(-epsilon).

**Utility.** There are 2N + 2 events that may go wrong; let each do so with probability at most beta:
p - R = 1 + ln(E/((epsilon + E) delta))/epsilon + ln(epsilon/((epsilon + E) beta))/E, trim = (2c/epsilon) ln(2/beta),
reserve = bar + ln(1/((1 + rho) beta))/(a rho), each logarithm with beta in it >= 0.

*F.* If Q is quasi-concave, points of positive depth have Q > p - Delta: clipped, F(x) = Q(x) before a peak, F(x-1) = 2r - Q(x) behind it.

*A level.* If s has positive depth, then W(s) > reserve, and s = 0 or W(s-1) < n^. As Z >= e^(a W(s)), the test passes except with
probability beta. A candidate {u, ..., v} weighs > 0, so F(v) > trim and F(u-1) < n - trim. Were the depths of all three points <= trim,
then F(u) <= trim, F(v-1) >= n - trim, and for the last point x of the left half either F(x) <= trim, and the right half weighs n^, or
F(x-1) >= n - trim, and the left half does: but W(s-1) < n^. So the best depth is > trim, and one <= 0 is chosen with probability at most
2 e^(-epsilon trim/(2c)) = beta.

*Last level.* Some depth is >= n/2, so one <= 0 is chosen with probability at most (h+1) e^(-epsilon n/(4 2^N)). Backwards,
2r = (4 2^N/epsilon) ln((h+1)/beta) + the sum of all 2 trim + reserve, which double from level to level: 2^N, where RecConcave has 8^N.

**Shares** (`shares`). The error is about the sum of coefficient/epsilon over the mechanisms; for a given sum of the epsilons it is
least where each is proportional to the square root of its coefficient. Logarithms of n^ and of beta at tests are left out of the
coefficients: for 8 to 4096 bits, N = 1 and 2, and delta from 1e-9 to 1e-3, errors are at most 0.5 % larger than with the best shares.
"""

import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Bool, Float, Int, UInt32

from dpjax.core import arguments, bits, logspace, random
from dpjax.core.pytree import frozen
from dpjax.domains import ordered, wide
from dpjax.mechanisms import exponential
from dpjax.mechanisms.laplace import log_passed
from dpjax.optimizers.quasi_concave import units
from dpjax.optimizers.quasi_concave.recursion import Problem

# The reward of a point: maps its position (limbs,) and the index of its piece to a vector.
Reward = Callable[[Array, Array], Array]


@frozen
class Budget:
    """The budget of each mechanism of N levels, the wide range first, and the failure probability of each step (for utility only).

    Attributes:
      test: epsilon of the promise test.
      last: epsilon of the choice at the last level.
      blocks, points: epsilon of each level's choice of a block and of a point.
      delta: delta of each choice of a block; the promise test has N delta.
      beta: the failure probability for which each step's margin is made.
    """

    test: Float[Array, ""]
    last: Float[Array, ""]
    blocks: Float[Array, "levels"]
    points: Float[Array, "levels"]
    delta: Float[Array, ""]
    beta: Float[Array, ""]

    @property
    def levels(self) -> int:
        """N."""
        return int(self.blocks.shape[0])

    @property
    def total(self) -> Any:
        """The sum of all epsilons."""
        return self.test + self.last + (self.blocks + self.points).sum()

    def sound(self) -> Bool[Array, ""]:
        """Whether each number is in its range."""
        delta, beta = jnp.asarray(self.delta, float), jnp.asarray(self.beta, float)
        each = jnp.concatenate([jnp.stack([self.test, self.last]), self.blocks, self.points]).astype(float)
        epsilons = jnp.all((each >= jnp.finfo(each.dtype).tiny) & (each < jnp.inf))
        epsilons &= self.blocks.shape == self.points.shape  # a missing one would be spent, but not counted
        # All margins together fail with probability (2N + 2) beta, which may be rounded to 1.
        return epsilons & (delta >= 0) & (delta < 1) & (beta > 0) & ((2 * self.levels + 2) * beta <= 1)

    def promise_margin(self, xp: Any = jnp) -> Any:
        """How far beyond the middle of its test the promise is."""
        share = self.test / (self.test + self.total)
        return xp.maximum(xp.log(share / self.beta), 0) / self.total

    def slack(self, xp: Any = jnp) -> Any:
        """p - R."""
        share = self.total / (self.test + self.total)
        return self.promise_margin(xp) + 1 + xp.log(share / (self.levels * self.delta)) / self.test


def shares(size: int, delta: Any, beta: Any, levels: int, xp: Any = jnp) -> Any:
    """The shares in epsilon of the promise test, the last choice, the levels' choices of a block, and those of a point.

    Args:
      size: number of points of the range. delta: of all choices of a block together. beta: of each step. levels: N >= 1.
    """
    c = 2.0 ** np.arange(levels)
    delta = xp.maximum(delta, arguments.least())  # a traced one may be 0
    block, point = 1 - xp.log(delta / levels), xp.log(2 / beta)
    last = 2 * 2**levels * (math.log(_last_size(size, levels)) - xp.log(beta))
    weights = xp.sqrt(xp.concatenate([xp.stack([-xp.log(delta), last]), 2 * c * block, 2 * c * point]))
    return weights / weights.sum()


def _last_size(size: int, levels: int) -> int:
    """How many points the range of the last level has."""
    for _ in range(levels):
        size = (size - 1).bit_length() + 1  # {0, ..., T} to {0, ..., h}
    return size


@frozen
class Level:
    """The constants of one level; see the module.

    Attributes:
      sensitivity: c.
      block, point: epsilon of its choice of a block and of a point.
      rho: how fast its test's failure falls.
      trim, bar, reserve: as in the module.
    """

    sensitivity: Any
    block: Any
    point: Any
    rho: Any
    trim: Any
    bar: Any
    reserve: Any

    @property
    def least(self) -> Any:
        """The least weight of a candidate, 1/a."""
        return 4 * self.sensitivity / self.block


def level(total: Any, budget: Budget, index: int, xp: Any = jnp) -> Level:
    """Level number `index` (0 is the wide range), for a function that rises to n = `total`."""
    c, epsilon, point = 2.0**index, budget.blocks[index], budget.points[index]
    trim = 2 * c / point * xp.log(2 / budget.beta)
    least = 4 * c / epsilon
    delta = xp.minimum(xp.minimum(budget.delta, 0.25), epsilon / 16)
    # Bottom may change by what this level and the wider ones, which run later, have together.
    rho = (budget.blocks + budget.points)[: index + 1].sum() / (epsilon / 2 + 4 * delta)
    # Taking a larger weight than there is makes the bar larger: it is still private, and never below `least`.
    weight = xp.maximum(total - 2 * trim, least) / least
    crowd = math.log(2) + epsilon / 2 - xp.log1p(epsilon / 2)
    log_phi = xp.where(epsilon < 4, xp.minimum(-xp.log1p(-xp.minimum(epsilon, 3.9) / 4), crowd), crowd)
    bar = least * (1 + xp.log(rho / (1 + rho)) + log_phi + xp.log(weight) - xp.log(delta))
    reserve = bar + least / rho * xp.maximum(-xp.log((1 + rho) * budget.beta), 0)
    if xp is jnp:  # in a program, subtracting these from values must leave differences of values unchanged
        trim, reserve = units.up(trim, total), units.up(reserve, total)
    return Level(sensitivity=c, block=epsilon, point=point, rho=rho, trim=trim, bar=bar, reserve=reserve)


def remaining(total: Float[Array, ""], constants: Level) -> tuple[Float[Array, ""], Float[Array, ""]]:
    """(n^, n of the next level)."""
    trimmed = jnp.maximum(total - 2 * constants.trim, 0)
    return trimmed, jnp.maximum(trimmed - constants.reserve, 0)


# ------------------------------------------------------------------ the test and the two choices that every level makes


def choose_block(weights: Float[Array, "blocks"], constants: Level) -> tuple[Float[Array, "blocks"], Array, Array]:
    """Step 3: (ln P[each block | some], ln P[some], ln P[bottom])."""
    candidates = weights >= constants.least
    some = jnp.any(candidates)
    log_shares = exponential.log_weights(
        weights, epsilon=constants.block, sensitivity=2 * constants.sensitivity, where=candidates
    )
    best = jnp.max(jnp.where(candidates, weights, 0.0))
    log_z = (best - constants.bar) / constants.least + jax.nn.logsumexp(jnp.where(some, log_shares, 0.0))
    log_pass, log_fail = log_passed(log_z, 1.0, constants.rho)
    return exponential.normalised(log_shares), jnp.where(some, log_pass, -jnp.inf), jnp.where(some, log_fail, 0.0)


def choose_point(depths: Float[Array, "points"], constants: Level) -> Float[Array, "points"]:
    """Step 4: ln P[each]."""
    return exponential.log_pmf(depths, epsilon=constants.point, sensitivity=constants.sensitivity)


# --------------------------------------------------------------------------- the recursion's ranges: dense, small


def dense_law(
    values: Float[Array, "points"],
    last: Int[Array, ""],
    total: Float[Array, ""],
    budget: Budget,
    index: int,
) -> Float[Array, "outcomes"]:
    """Law of Level(F, 2^index) on {0, ..., last}, F given point by point and `total` beyond; bottom is the last entry."""
    points = values.shape[0]
    before = jnp.concatenate([jnp.zeros((1,), values.dtype), values[:-1]])
    depth = logspace.lesser_of(values, total - before)
    if index == budget.levels:
        offered = jnp.arange(points, dtype=jnp.int32) <= last
        law = exponential.log_pmf(depth, epsilon=budget.last, sensitivity=2.0**index, where=offered)
        return jnp.concatenate([jnp.exp(law), jnp.zeros((1,), law.dtype)])
    constants = level(total, budget, index)
    trimmed, following = remaining(total, constants)
    sizes = jnp.arange((points - 1).bit_length() + 1, dtype=jnp.int32)
    rising = _clipped(jnp.append(before, total) - constants.trim, trimmed)
    weights = jax.vmap(lambda s: _dense_weights(rising, s))(sizes)
    function = _level_function(jnp.max(weights, axis=1), constants)
    inner = dense_law(function, bits.bit_length(last), following, budget, index + 1)

    def given(s: Array, weights: Array) -> tuple[Array, Array, Array]:
        log_block, log_some, log_bottom = choose_block(weights, constants)
        first = jnp.arange(points, dtype=jnp.int32)
        ends = jnp.stack([first, first + jnp.maximum((1 << s) // 2 - 1, 0), first + (1 << s) - 1], axis=1)
        three = jnp.minimum(ends, last)
        log_point = jax.vmap(lambda depths: choose_point(depths, constants))(depth[three])
        return three, jnp.exp(log_some + log_block[:, None] + log_point), jnp.exp(log_bottom)

    three, chosen, bottoms = jax.vmap(given)(sizes, weights)
    law = jnp.zeros((points + 1,), inner.dtype).at[three].add(inner[:-1, None, None] * chosen)
    return law.at[-1].set(jnp.sum(inner[:-1] * bottoms) + inner[-1])


def _dense_weights(rising: Float[Array, "more"], s: Int[Array, ""]) -> Float[Array, "points"]:
    """The weight of each block of size 2^s at its first point, 0 at all others; from F^(-1), F^(0), F^(1), ..."""
    first = jnp.arange(rising.shape[0] - 1, dtype=jnp.int32)
    stop = jnp.minimum(first + (1 << s), first.shape[0])
    return jnp.where(first % (1 << s) == 0, rising[stop] - rising[first], 0.0)


def _clipped(values: Float[Array, "n"], most: Float[Array, ""]) -> Float[Array, "n"]:
    """Cut to [0, most]."""
    return logspace.lesser_of(logspace.greater_of(0.0, values), most)


def _level_function(largest: Float[Array, "sizes"], constants: Level) -> Float[Array, "sizes"]:
    """G(s) from W(s)."""
    return logspace.greater_of(0.0, largest - constants.reserve)


# --------------------------------------------------------------------------------------------- the wide range


@frozen
class Steps:
    """F on the wide range: step i leads from `values[i]` to `values[i+1]` at the point `positions[i]`, rising.

    Two steps for each piece of Q, at its first point (where Left may rise) and at its last (where Right may fall behind it).

    Attributes:
      positions: increasing, none beyond `last`.
      values: from 0 to `total`, one more than there are steps.
      total: n.
      last: T.
      split: the least s for which step i and the next share a block of size 2^s (0: same point); the last one shares none.
      first_of, stop_of: the steps at the same point as step i are first_of[i], ..., stop_of[i] - 1.
      zeros, ones: how many zeros, and how many ones, the position ends with (for 0, zeros is the whole width).
      last_piece: the piece that holds `last`.
    """

    positions: UInt32[Array, "steps limbs"]
    values: Float[Array, "more"]
    total: Float[Array, ""]
    last: UInt32[Array, "limbs"]
    split: Int[Array, "steps"]
    first_of: Int[Array, "steps"]
    stop_of: Int[Array, "steps"]
    zeros: Int[Array, "steps"]
    ones: Int[Array, "steps"]
    last_piece: Int[Array, ""]

    @property
    def count(self) -> int:
        """Number of steps, a power of two."""
        return self.positions.shape[0]

    @property
    def limbs(self) -> int:
        """Limbs of a position."""
        return self.positions.shape[1]


def _real(problem: Problem) -> Bool[Array, "pieces"]:
    """Pieces with a point in {0, ..., T}: points beyond belong to the power of two that RecConcave needs."""
    pieces = problem.pieces
    return pieces.nonempty() & wide.less_equal(pieces.starts, pieces.last[None])


def promise_test(problem: Problem, budget: Budget) -> tuple[Array, Array]:
    """(ln P[passed], ln P[bottom])."""
    best = jnp.max(jnp.where(_real(problem), problem.pieces.values, -jnp.inf))
    # p less the best first, which is exact: next to millions the margin, on which delta depends, would be rounded.
    return log_passed(budget.promise_margin() - (problem.promise - best), budget.test, budget.total)


def steps(problem: Problem, budget: Budget) -> Steps:
    """F of a problem."""
    pieces = problem.pieces
    # `low` and `height` together must be at most p less the slack, which the test has shown: they are, as p - low is exact.
    most = 2 * problem.alpha * problem.promise
    low = units.up((1 - problem.alpha) * problem.promise, most)
    height = units.up(problem.promise - low - budget.slack(), most) - 2 * units.unit(most)
    height = logspace.greater_of(0.0, height)
    clipped = _clipped(pieces.values - low, height)
    quality = jnp.where(_real(problem), clipped, 0)
    left, right = lax.cummax(quality), lax.cummax(quality, reverse=True)
    after = jnp.concatenate([right[1:], jnp.zeros((1,), right.dtype)])
    inner = jnp.stack([left + height - right, left + height - after], axis=1).reshape(-1)[:-1]
    # A broken promise would leave F(-1) > 0 and F(T) < n; there privacy rests on the test alone.
    values = jnp.concatenate([jnp.zeros((1,), inner.dtype), inner, 2 * height[None]])

    one = wide.one(pieces.limbs)[None]
    ends = wide.select(pieces.nonempty(), wide.subtract(pieces.ends(), one), pieces.starts)
    positions = wide.minimum(jnp.stack([pieces.starts, ends], axis=1).reshape(-1, pieces.limbs), pieces.last[None])
    differ = wide.bit_length(positions[:-1] ^ positions[1:])
    width = 32 * pieces.limbs
    split = jnp.concatenate([differ, jnp.full((1,), width + 1, jnp.int32)])
    return Steps(
        positions=positions,
        values=values,
        total=2 * height,
        last=pieces.last,
        split=split,
        first_of=_group_firsts(split, jnp.int32(0)),
        stop_of=_group_stops(split, jnp.int32(0)),
        zeros=wide.trailing_zeros(positions),
        ones=wide.bit_length(positions ^ wide.add(positions, one)) - 1,
        last_piece=pieces.locate(pieces.last),
    )


def _group_firsts(split: Int[Array, "steps"], s: Int[Array, ""]) -> Int[Array, "steps"]:
    """For each step the first one in the same block of size 2^s."""
    index = jnp.arange(split.shape[0] - 1, dtype=jnp.int32)
    begins = jnp.where(split[:-1] > s, index + 1, 0)
    return lax.cummax(jnp.concatenate([jnp.zeros((1,), jnp.int32), begins]))


def _group_stops(split: Int[Array, "steps"], s: Int[Array, ""]) -> Int[Array, "steps"]:
    """For each step one beyond the last one in the same block of size 2^s."""
    count = split.shape[0]
    index = jnp.arange(count, dtype=jnp.int32)
    return lax.cummin(jnp.where(split > s, index + 1, count), reverse=True)


def _trimmed(chain: Steps, constants: Level) -> Float[Array, "more"]:
    """F^ after 0, 1, 2, ... steps."""
    most = logspace.greater_of(0.0, chain.total - 2 * constants.trim)
    return _clipped(chain.values - constants.trim, most)


def largest_weights(chain: Steps, constants: Level) -> Float[Array, "sizes"]:
    """W(s) for s = 0, ..., 32 limbs.

    Only blocks with a step weigh anything. They are the nodes of the binary trie over the positions, where each of the finitely many forks
    is the longest run of neighbours that split below it: blocks are not searched size by size.
    """
    trimmed = _trimmed(chain, constants)
    first, stop = ordered.runs(-chain.split.astype(trimmed.dtype))
    weights = trimmed[jnp.minimum(stop, chain.count - 1) + 1] - trimmed[first]
    real = jnp.arange(chain.count, dtype=jnp.int32) < chain.count - 1
    sizes = jnp.zeros((32 * chain.limbs + 1,), trimmed.dtype).at[0].set(jnp.max(jnp.diff(trimmed)))
    return lax.cummax(sizes.at[jnp.where(real, chain.split, 0)].max(jnp.where(real, weights, 0.0)))


def choose_size(chain: Steps, budget: Budget, constants: Level) -> Float[Array, "outcomes"]:
    """Law of s = 0, ..., 32 limbs, bottom last."""
    _, following = remaining(chain.total, constants)
    function = _level_function(largest_weights(chain, constants), constants)
    return dense_law(function, wide.bit_length(chain.last), following, budget, 1)


@frozen
class Blocks:
    """The blocks of one size that hold a step, each at its first step; weight 0 at all others."""

    size: Int[Array, ""]
    weights: Float[Array, "steps"]
    stops: Int[Array, "steps"]
    half_stops: Int[Array, "steps"]
    upper: Bool[Array, "steps"]


def blocks(chain: Steps, constants: Level, s: Int[Array, ""]) -> Blocks:
    """All blocks of size 2^s."""
    trimmed = _trimmed(chain, constants)
    index = jnp.arange(chain.count, dtype=jnp.int32)
    stops = _group_stops(chain.split, s)
    begins = _group_firsts(chain.split, s) == index
    digit = jnp.maximum(s - 1, 0)  # decides which half of its block a point is in
    limb = jnp.take(chain.positions, chain.limbs - 1 - digit // 32, axis=1)
    upper = ((limb >> (digit % 32).astype(jnp.uint32)) & jnp.uint32(1)).astype(bool)
    return Blocks(
        size=s,
        weights=jnp.where(begins, trimmed[stops] - trimmed[index], 0.0),
        stops=stops,
        half_stops=jnp.where(s == 0, stops, _group_stops(chain.split, s - 1)),
        upper=upper & (s > 0),
    )


@frozen
class Candidates:
    """The three points of step 4: their depths, and the pieces that they are in."""

    depths: Float[Array, "3"]
    pieces: Int[Array, "3"]


def candidates(chain: Steps, of: Blocks, block: Int[Array, ""]) -> Candidates:
    """The candidates of the block whose first step is `block`, from the numbers of steps before them and up to them."""
    s, stop = of.size, of.stops[block]
    half = jnp.where(of.upper[block], block, of.half_stops[block])
    ends_left, ends_block = jnp.maximum(half - 1, 0), stop - 1
    # The last step of all is at T, where a block that reaches beyond is cut.
    at_left = (half > block) & ((chain.ones[ends_left] >= s - 1) | (half == chain.count))
    at_end = (chain.ones[ends_block] >= s) | (stop == chain.count)
    before = jnp.stack(
        [
            block,
            jnp.where(at_left, chain.first_of[ends_left], half),
            jnp.where(at_end, chain.first_of[ends_block], stop),
        ]
    )
    up_to = jnp.stack([jnp.where(chain.zeros[block] >= s, chain.stop_of[block], block), half, stop])
    depths = logspace.lesser_of(chain.values[up_to], chain.total - chain.values[before])
    # Steps alternate between a piece's first and last point.
    return Candidates(depths=depths, pieces=jnp.minimum((up_to - 1) // 2, chain.last_piece))


def candidate_positions(chain: Steps, s: Int[Array, ""], block: Int[Array, ""]) -> UInt32[Array, "3 limbs"]:
    """The positions of the three candidates."""
    within, within_half = (wide.largest(jnp.maximum(k, 0), chain.limbs) for k in (s, s - 1))
    first = chain.positions[block] & ~within
    return wide.minimum(jnp.stack([first, first | within_half, first | within]), chain.last[None])


# ------------------------------------------------------------------------------------------------ sampler and law


@frozen
class Run:
    """One run: the point, the piece that holds it, whether there is one, and what was chosen on the way.

    `size` is s, and `passed` the outcome of the promise test.
    """

    position: UInt32[Array, "limbs"]
    piece: Int[Array, ""]
    ok: Bool[Array, ""]
    size: Int[Array, ""]
    passed: Bool[Array, ""]


def sample(key: Array, problem: Problem, budget: Budget) -> Run:
    """One run."""
    key_test, key_size, key_some, key_block, key_point = jax.random.split(key, 5)
    log_pass, log_bottom = promise_test(problem, budget)
    passed = random.bernoulli(key_test, log_pass, log_bottom)
    chain = steps(problem, budget)
    constants = level(chain.total, budget, 0)
    sizes = choose_size(chain, budget, constants)
    size = exponential.draw(key_size, jnp.log(sizes)).index
    found = size < sizes.shape[0] - 1

    of = blocks(chain, constants, size)
    log_block, log_some, log_none = choose_block(of.weights, constants)
    some = random.bernoulli(key_some, log_some, log_none)
    block = logspace.draw(key_block, logspace.sum_tree(log_block))
    three = candidates(chain, of, block)
    choice = exponential.draw(key_point, choose_point(three.depths, constants)).index
    return Run(
        position=candidate_positions(chain, size, block)[choice],
        piece=three.pieces[choice],
        ok=passed & found & some,
        size=size,
        passed=passed,
    )


def law(problem: Problem, budget: Budget, reward: Reward) -> tuple[Float[Array, "k"], Float[Array, ""]]:
    """(E[reward of the point; there is one], P[bottom]) over the coins of one run."""
    log_pass, log_bottom = promise_test(problem, budget)
    chain = steps(problem, budget)
    constants = level(chain.total, budget, 0)
    sizes = choose_size(chain, budget, constants)

    def given(s: Array) -> tuple[Array, Array]:
        of = blocks(chain, constants, s)
        log_block, log_some, log_none = choose_block(of.weights, constants)

        def worth(block: Array) -> Array:
            three = candidates(chain, of, block)
            rewards = jax.vmap(reward)(candidate_positions(chain, s, block), three.pieces)
            return _expected(jnp.exp(choose_point(three.depths, constants)), rewards)

        each = jax.vmap(worth)(jnp.arange(chain.count, dtype=jnp.int32))
        return _expected(jnp.exp(log_some + log_block), each), jnp.exp(log_none)

    rewards, bottoms = lax.map(given, jnp.arange(sizes.shape[0] - 1, dtype=jnp.int32))
    passed = jnp.exp(log_pass)
    nothing = jnp.sum(sizes[:-1] * bottoms) + sizes[-1]
    return passed * _expected(sizes[:-1], rewards), jnp.exp(log_bottom) + passed * nothing


def _expected(probabilities: Float[Array, "n"], rewards: Float[Array, "n k"]) -> Float[Array, "k"]:
    """Their weighted sum; no matrix product, which accelerators round."""
    return jnp.sum(probabilities[:, None] * rewards, axis=0)


# ------------------------------------------------------------------------------------------ how much is enough


def required_total(size: int, budget: Budget, failure: float) -> float:
    """The least n at which the last choice, on a range of `size` points at the start, fails with probability <= failure; host."""
    levels = budget.levels
    total = 4 * 2**levels / budget.last * math.log(_last_size(size, levels) / failure)
    for index in reversed(range(levels)):
        total = _total_before(total, budget, index)
    return float(total)


def _total_before(following: float, budget: Budget, index: int) -> float:
    """n of a level from that of the next: the least fixed point of n -> following + 2 trim + reserve(n), from below."""
    before, total = 0.0, following
    while total > before * (1 + 1e-12):
        constants = level(total, budget, index, xp=np)
        before, total = total, following + 2 * constants.trim + constants.reserve
    return total * (1 + 1e-9)
