"""Quasi-concave optimisation with additive error about 2^(log* T), by amplified interior points (CLNSS §1.3.5, Theorem 1.2).

Given Q on {0, ..., T}, of sensitivity 1, with max Q >= p, the goal is a point with Q > p - Delta. The paper announces the result;
the algorithm, its constants and the proofs are completed here. epsilon and delta are those of a single mechanism, c is a sensitivity,
Lap(b) Laplace noise of scale b; every exponential mechanism weighs by exp(epsilon score / (2 sensitivity)).

**Algorithm.** *Promise test*: bottom unless max Q + Lap(1/epsilon) >= R + 1 + ln(1/(2 delta))/epsilon. Then clip Q to [p - Delta, R] and
subtract p - Delta: it now lies in [0, r]. With Left(x) = max_{y <= x} Q, Right(x) = max_{y >= x} Q, Right(T+1) = 0, let
F(x) = Left(x) + r - Right(x+1), but F(-1) = 0 and F(T) = n = 2r. Return Level(F, 1).

*Level(F, c)*: F rises on {0, ..., T} from F(-1) = 0 to F(T) = n and is n beyond. A point of positive
depth(x) = min(F(x), n - F(x-1)) is sought. The N-th level calls the exponential mechanism on the depth instead, of sensitivity 2^N.

1. F^ = clip(F - trim, 0, n^), n^ = n - 2 trim. A block of size 2^s is {k 2^s, ..., (k+1) 2^s - 1}, its weight w the rise of F^ over it,
   W(s) the largest weight. W rises with s, up to W(h) = n^ for the least h with 2^h > T.
2. G(s) = max(W(s) - reserve, 0) is such a function again, on {0, ..., h}. Let s = Level(G, 2c).
3. Bottom unless W(s) + Lap(2c/epsilon) >= bar. Choose a block of size 2^s and weight >= 4c/epsilon by the exponential mechanism on the
   weight, of sensitivity 2c; bottom if there is none.
4. Return the block's first point, the last of its left half or its last (at most T), by the exponential mechanism on the depth, of
   sensitivity c.

A level is written here twice: on small ranges point by point (`dense_law`), and on the wide range by the steps of F alone (`steps`,
`blocks`, `candidates`). Both take the same four steps, and share `choose_block` and `choose_point`.

**Privacy**: ((3N+2) epsilon, N delta) for any Q of sensitivity 1, quasi-concave or not, when at each level

    bar >= (4c/epsilon) ln( (2/3)^1.5 (1 + e^(epsilon/2)) e^(1 + epsilon/2)/(1 + epsilon/2) n^ epsilon/(4c) / delta ).

*Promise test.* If both maxima are < R + 1, either run passes with probability at most delta: the whole is (epsilon, delta)-private. Else
one of Q, Q' is >= R + 1 at some z, the other >= R there, and clipped both are r at z. For x >= z both have Left(x) = r, for x < z
both have Right(x+1) = r, and the other terms of F(x) change by at most 1: |F - F'| <= 1, and n is the same. Then the test costs epsilon,
and its delta is not added to that of the rest.

*Recursion.* Clipping increases no difference, so weights, W and G change by at most 2c, and the last value of G, n^ - reserve, is public.
The depth changes by at most c: step 4 and the last level are epsilon-private.

*Step 3* is (2 epsilon, delta)-private for given s. Let a = epsilon/(4c), M the largest weight, pass = P[M + Lap(2c/epsilon) >= bar], Z the
sum of e^(a w) over the candidates: node u is chosen with probability P[u] = pass e^(a w(u))/Z. Let A be the candidates of the one run that
are not candidates in the other, B conversely, q = P[A] and b' = P'[B | some node is chosen]. For a set S of common candidates, pass changes
by a factor of at most e^epsilon, and e^(a w) and its sum over the common candidates by e^(epsilon/2) each:
P[S] <= e^(2 epsilon) P'[S]/(1 - b'), so P[S] - e^(2 epsilon) P'[S] <= P[S] b' <= pass b'. Bottom's probability 1 - pass changes by
e^epsilon. (Without any candidate in the one run it is 1, at most the other's plus P'[B], and nothing else can happen; without any in the
other, it only grows there.) So q + pass b' <= delta is enough. Now A's members weigh at most n^ together, and each weighs from 1/a to
1/a + 2c, where e^(a w)/w rises: their e^(a w) add up to at most k = n^ a e^(1 + epsilon/2)/(1 + epsilon/2), and Z >= e^(a M). So
q <= pass k e^(-a M), pass b' <= pass k e^(-a M') <= e^(epsilon/2) pass k e^(-a M), and P'[B] <= pass' k e^(-a M'). With
y = e^(-a (M - bar)), pass is 1 - y^2/2 for y <= 1 and else 1/(2 y^2), so
pass e^(-a M) <= e^(-a bar) max y (1 - y^2/2) = (2/3)^1.5 e^(-a bar).

**Utility.** There are 2N + 2 events that may go wrong; let each do so with probability at most beta:
p - R = 1 + (ln(1/(2 delta)) + ln(1/(2 beta)))/epsilon, trim = (2c/epsilon) ln(2/beta), reserve = bar + (2c/epsilon) ln(1/(2 beta)).

*F.* If Q is quasi-concave, points of positive depth have Q > p - Delta: clipped, F(x) = Q(x) before a peak, F(x-1) = 2r - Q(x) behind it.

*A level.* If s has positive depth, then W(s) > reserve, and s = 0 or W(s-1) < n^. The test passes except with probability beta. A candidate
{u, ..., v} weighs > 0, so F(v) > trim and F(u-1) < n - trim. Were the depths of all three points <= trim, then F(u) <= trim,
F(v-1) >= n - trim, and for the last point x of the left half either F(x) <= trim, and the right half weighs n^, or F(x-1) >= n - trim, and
the left half does: but W(s-1) < n^. So the best depth is > trim, and one <= 0 is chosen with probability at most
2 e^(-epsilon trim/(2c)) = beta.

*Last level.* Some depth is >= n/2, so one <= 0 is chosen with probability at most (h+1) e^(-epsilon n/(4 2^N)). Backwards,
2r = (4 2^N/epsilon) ln((h+1)/beta) + the sum of all 2 trim + reserve, which double from level to level: 2^N, where RecConcave has 8^N.
"""

import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Bool, Float, Int, UInt32

from dpjax.core import bits, logspace, random
from dpjax.core.pytree import frozen
from dpjax.domains import ordered, wide
from dpjax.mechanisms import exponential, laplace
from dpjax.optimizers.quasi_concave import units
from dpjax.optimizers.quasi_concave.recursion import Problem

# The reward of a point: maps its position (limbs,) and the index of its piece to a vector.
Reward = Callable[[Array, Array], Array]


@frozen
class Budget:
    """The budget of each mechanism, and the failure probability (for utility only) for which each step's margin is made."""

    epsilon: Float[Array, ""]
    delta: Float[Array, ""]
    beta: Float[Array, ""]

    def promise_margin(self, xp: Any = jnp) -> Any:
        """By how much the noise of its test may make the promise fail."""
        return -xp.log(2 * self.beta) / self.epsilon

    def slack(self, xp: Any = jnp) -> Any:
        """p - R."""
        return self.promise_margin(xp) + 1 - xp.log(2 * self.delta) / self.epsilon


@frozen
class Margins:
    """The constants of one level; see the module."""

    trim: Any
    least: Any
    bar: Any
    reserve: Any


def margins(total: Any, sensitivity: Any, budget: Budget, xp: Any = jnp) -> Margins:
    """Constants for a function that rises to n = `total`."""
    epsilon = budget.epsilon
    unit = sensitivity / epsilon
    trim = 2 * unit * xp.log(2 / budget.beta)
    # Taking a larger weight than there is makes the bar larger: it is still private, and never below `least`.
    weight = xp.maximum(total - 2 * trim, 4 * unit) / (4 * unit)
    constant = 1.5 * math.log(2 / 3) + xp.logaddexp(0 * epsilon, epsilon / 2) + 1 + epsilon / 2 - xp.log1p(epsilon / 2)
    bar = 4 * unit * (constant + xp.log(weight) - xp.log(budget.delta))
    reserve = bar - 2 * unit * xp.log(2 * budget.beta)
    if xp is jnp:  # in a program, subtracting these from values must leave differences of values unchanged
        trim, reserve = units.up(trim, total), units.up(reserve, total)
    return Margins(trim=trim, least=4 * unit, bar=bar, reserve=reserve)


def remaining(total: Float[Array, ""], margins: Margins) -> tuple[Float[Array, ""], Float[Array, ""]]:
    """(n^, n of the next level)."""
    trimmed = jnp.maximum(total - 2 * margins.trim, 0)
    return trimmed, jnp.maximum(trimmed - margins.reserve, 0)


# --------------------------------------------------------------------------- the two choices every level makes


def choose_block(
    weights: Float[Array, "blocks"], sensitivity: float, margins: Margins, budget: Budget
) -> tuple[Float[Array, "blocks"], Array, Array]:
    """Step 3: (ln P[each block | some], ln P[some], ln P[bottom])."""
    candidates = weights >= margins.least
    log_pmf = exponential.log_pmf(weights, epsilon=budget.epsilon, sensitivity=2 * sensitivity, where=candidates)
    missing = (margins.bar - jnp.max(weights)) * budget.epsilon / (2 * sensitivity)
    log_fail, log_pass = laplace.log_tails(missing)
    some = jnp.any(candidates)
    return log_pmf, jnp.where(some, log_pass, -jnp.inf), jnp.where(some, log_fail, 0.0)


def choose_point(depths: Float[Array, "points"], sensitivity: float, budget: Budget) -> Float[Array, "points"]:
    """Step 4: ln P[each]."""
    return exponential.log_pmf(depths, epsilon=budget.epsilon, sensitivity=sensitivity)


# --------------------------------------------------------------------------- the recursion's ranges: dense, small


def dense_law(
    values: Float[Array, "points"],
    last: Int[Array, ""],
    total: Float[Array, ""],
    sensitivity: float,
    budget: Budget,
    levels: int,
) -> Float[Array, "outcomes"]:
    """Law of Level(F, c) with `levels` levels on {0, ..., last}, F given point by point and `total` beyond; bottom is the last entry."""
    points = values.shape[0]
    before = jnp.concatenate([jnp.zeros((1,), values.dtype), values[:-1]])
    depth = logspace.lesser_of(values, total - before)
    if levels == 0:
        offered = jnp.arange(points, dtype=jnp.int32) <= last
        law = exponential.log_pmf(depth, epsilon=budget.epsilon, sensitivity=sensitivity, where=offered)
        return jnp.concatenate([jnp.exp(law), jnp.zeros((1,), law.dtype)])
    constants = margins(total, sensitivity, budget)
    trimmed, following = remaining(total, constants)
    sizes = jnp.arange((points - 1).bit_length() + 1, dtype=jnp.int32)
    rising = _clipped(jnp.append(before, total) - constants.trim, trimmed)
    weights = jax.vmap(lambda s: _dense_weights(rising, s))(sizes)
    function = _level_function(jnp.max(weights, axis=1), constants)
    inner = dense_law(function, bits.bit_length(last), following, 2 * sensitivity, budget, levels - 1)

    def given(s: Array, weights: Array) -> tuple[Array, Array, Array]:
        log_block, log_some, log_bottom = choose_block(weights, sensitivity, constants, budget)
        first = jnp.arange(points, dtype=jnp.int32)
        ends = jnp.stack([first, first + jnp.maximum((1 << s) // 2 - 1, 0), first + (1 << s) - 1], axis=1)
        three = jnp.minimum(ends, last)
        log_point = jax.vmap(lambda depths: choose_point(depths, sensitivity, budget))(depth[three])
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


def _level_function(largest: Float[Array, "sizes"], constants: Margins) -> Float[Array, "sizes"]:
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
    """(ln P[bottom], ln P[passed])."""
    best = jnp.max(jnp.where(_real(problem), problem.pieces.values, -jnp.inf))
    # p less the best first, which is exact: next to millions the margin, on which delta depends, would be rounded.
    return laplace.log_tails(((problem.promise - best) - budget.promise_margin()) * budget.epsilon)


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
    zeros = wide.bit_length(positions ^ wide.subtract(positions, one)) - 1
    return Steps(
        positions=positions,
        values=values,
        total=2 * height,
        last=pieces.last,
        split=split,
        first_of=_group_firsts(split, jnp.int32(0)),
        stop_of=_group_stops(split, jnp.int32(0)),
        zeros=jnp.where(wide.is_zero(positions), width, zeros),
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


def _trimmed(chain: Steps, constants: Margins) -> Float[Array, "more"]:
    """F^ after 0, 1, 2, ... steps."""
    most = logspace.greater_of(0.0, chain.total - 2 * constants.trim)
    return _clipped(chain.values - constants.trim, most)


def largest_weights(chain: Steps, constants: Margins) -> Float[Array, "sizes"]:
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


def choose_size(chain: Steps, budget: Budget, levels: int) -> Float[Array, "outcomes"]:
    """Law of s = 0, ..., 32 limbs, bottom last."""
    constants = margins(chain.total, 1.0, budget)
    _, following = remaining(chain.total, constants)
    function = _level_function(largest_weights(chain, constants), constants)
    return dense_law(function, wide.bit_length(chain.last), following, 2.0, budget, levels - 1)


@frozen
class Blocks:
    """The blocks of one size that hold a step, each at its first step; weight 0 at all others."""

    size: Int[Array, ""]
    weights: Float[Array, "steps"]
    stops: Int[Array, "steps"]
    half_stops: Int[Array, "steps"]
    upper: Bool[Array, "steps"]


def blocks(chain: Steps, constants: Margins, s: Int[Array, ""]) -> Blocks:
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


def sample(key: Array, problem: Problem, budget: Budget, levels: int) -> Run:
    """One run with `levels` >= 1 levels."""
    key_test, key_size, key_some, key_block, key_point = jax.random.split(key, 5)
    log_bottom, log_pass = promise_test(problem, budget)
    passed = random.bernoulli(key_test, log_pass, log_bottom)
    chain = steps(problem, budget)
    constants = margins(chain.total, 1.0, budget)
    sizes = choose_size(chain, budget, levels)
    size = exponential.draw(key_size, jnp.log(sizes)).index
    found = size < sizes.shape[0] - 1

    of = blocks(chain, constants, size)
    log_block, log_some, log_none = choose_block(of.weights, 1.0, constants, budget)
    some = random.bernoulli(key_some, log_some, log_none)
    block = logspace.draw(key_block, logspace.sum_tree(log_block))
    three = candidates(chain, of, block)
    choice = exponential.draw(key_point, choose_point(three.depths, 1.0, budget)).index
    return Run(
        position=candidate_positions(chain, size, block)[choice],
        piece=three.pieces[choice],
        ok=passed & found & some,
        size=size,
        passed=passed,
    )


def law(problem: Problem, budget: Budget, levels: int, reward: Reward) -> tuple[Float[Array, "k"], Float[Array, ""]]:
    """(E[reward of the point; there is one], P[bottom]) over the coins of one run."""
    log_bottom, log_pass = promise_test(problem, budget)
    chain = steps(problem, budget)
    constants = margins(chain.total, 1.0, budget)
    sizes = choose_size(chain, budget, levels)

    def given(s: Array) -> tuple[Array, Array]:
        of = blocks(chain, constants, s)
        log_block, log_some, log_none = choose_block(of.weights, 1.0, constants, budget)

        def worth(block: Array) -> Array:
            three = candidates(chain, of, block)
            rewards = jax.vmap(reward)(candidate_positions(chain, s, block), three.pieces)
            return _expected(jnp.exp(choose_point(three.depths, 1.0, budget)), rewards)

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


def required_total(size: int, budget: Budget, levels: int, failure: float) -> float:
    """The least n at which the N-th level's choice, on a range of `size` points at the start, fails with probability <= failure; host."""
    for _ in range(levels):
        size = (size - 1).bit_length() + 1  # {0, ..., T} to {0, ..., h}
    total = 4 * 2**levels / budget.epsilon * math.log(size / failure)
    for level in reversed(range(levels)):
        total = _total_before(total, 2.0**level, budget)
    return float(total)


def _total_before(following: float, sensitivity: float, budget: Budget) -> float:
    """n of a level from that of the next: the least fixed point of n -> following + 2 trim + reserve(n), from below."""
    before, total = 0.0, following
    while total > before * (1 + 1e-12):
        constants = margins(total, sensitivity, budget, xp=np)
        before, total = total, following + 2 * constants.trim + constants.reserve
    return total * (1 + 1e-9)
