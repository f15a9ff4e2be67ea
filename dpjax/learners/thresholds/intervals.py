"""From a length to a threshold (BNS §3.2, Remark 3.5, Figures 1 to 3): what the two searches for a length share.

The balance of an interval is the smaller of its numbers of zeros and of ones, and W(L) is the greatest balance of L consecutive points. Let
n be the number of examples and a = alpha/2. For a length 2^j with W(2^j) >= a n/4 and W(2^(j-1)) <= 3 a n/4,

1. cut the domain into blocks A of 2^(j+1) points, and into blocks B of the same size that begin at 2^j: some block holds the interval of
   2^j points with balance W(2^j). A_dist releases the block of A with the greatest balance; if that does not stand out, the one of B;
2. the five ends of the four quarters of that block are the hypotheses, and the exponential mechanism chooses by the number of examples
   labelled correctly.

What the paper leaves open is settled as follows. A length counts points (the paper's intervals with b - a = J have J + 1 points, so there
would be none for 2^d). The blocks B have 2J points, too, where the text says J. The last block of B is trimmed, and points below 2^j lie in
no block of B. A single block is released untested: so the length 2^d needs no comparison, and a sample that is not diverse needs no test of
its own. Its search ends at 2^d (or nearby), where the block is the whole domain and the thresholds 0 and 2^d are among the five hypotheses.
Hypotheses beyond 2^d are cut to it.

**Privacy, for any labels** (REPLACE_ONE; n public). A replaced example moves every number of zeros and every number of ones by at most 1,
hence balances, their maximum W(L) and the number of correct labels by at most 1, and the gap between two blocks by at most 2. The
mechanisms that run are the comparisons of W(L) + Lap(1/e) with a n/2, each e-private; A_dist, at most twice; and one exponential mechanism.
They get

    3/8 of epsilon together (the comparisons),  1/4 each (A_dist),  1/8 (the exponential mechanism),

which is close to the best shares for d = 8 to 1024 and delta = 1e-6. delta is split evenly among all mechanisms that need some, and basic
composition of these parts gives (epsilon, delta). With the `printed` constants each A_dist is only (2 epsilon/4, exp(epsilon/2)/2 times its
delta)-private, and the whole costs 3/2 epsilon.

**Utility**, for examples labelled by a threshold t. A block has positive balance only if it holds both t - 1 and t, as at most one block of
A and one of B do: the gap is its balance, and a released block has t inside unless all balances are 0 and A_dist releases a block all the
same (with probability at most its delta). A quarter has at most 2^(j-1) points, so the one [s, s + l] in which t lies has balance at most
3 a n/4; s errs on its ones, s + l on its zeros: one of the two errs on at most 3 a n/4 examples. `bounds.interval_search_thresholds` adds
up what can go wrong.

The plain twin is `dpjax.verify.plain.interval_search`.
"""

import functools
import math
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, UInt32

from dpjax import bounds
from dpjax.accounting import REPLACE_ONE, Guarantee
from dpjax.core import arguments, logspace, random
from dpjax.core.bisection import first_where
from dpjax.core.pytree import frozen, static
from dpjax.data.algorithm import whole
from dpjax.domains import wide
from dpjax.domains.events import Goal
from dpjax.domains.ordered import Pieces
from dpjax.learners.thresholds import base
from dpjax.learners.thresholds.base import ThresholdLearner
from dpjax.mechanisms import exponential, laplace, stability

CALIBRATIONS = ("printed", "proved")
# Of epsilon: all comparisons, one A_dist of two, the exponential mechanism.
SEARCH, STABLE, CHOICE = 3 / 8, 1 / 4, 1 / 8
HYPOTHESES = 5


# ------------------------------------------------------------------------------------------------ balances, blocks


def _balance(pieces: Pieces, first: Int[Array, "..."], stop: Int[Array, "..."]) -> Float[Array, "..."]:
    """min(zeros, ones) of the examples first, ..., stop - 1, in order."""
    # Piece i begins after i examples, and Q there is (their ones) + all zeros - (their zeros): ones less zeros is its increase.
    excess, examples = pieces.values[stop] - pieces.values[first], (stop - first).astype(float)
    return (examples - jnp.abs(excess)) / 2


def _examples(pieces: Pieces) -> Int[Array, ""]:
    """The number of examples."""
    return (pieces.values[0] + pieces.values[-1]).astype(jnp.int32)  # zeros + ones


def _before(pieces: Pieces, position: UInt32[Array, "limbs"]) -> Int[Array, ""]:
    """How many examples lie below a position; all of them below one beyond the domain."""
    return pieces.locate(wide.minimum(position, pieces.last))


def largest_balance(pieces: Pieces, length: UInt32[Array, "limbs"]) -> Float[Array, ""]:
    """W(length): the greatest min(zeros, ones) of `length` consecutive points, 1 <= length <= 2^d."""
    if pieces.is_peak:
        return _largest_balance_of_peak(pieces, length)
    point = _points(pieces)
    index = jnp.arange(point.shape[0], dtype=jnp.int32)
    # Some best interval begins at an example; where it sticks out of the domain, one further left holds as much.
    stop = jax.vmap(lambda low: _before(pieces, wide.add(low, length)))(point)
    return jnp.max(jnp.where(index < _examples(pieces), _balance(pieces, index, jnp.maximum(stop, index)), 0.0))


def _largest_balance_of_peak(pieces: Pieces, length: UInt32[Array, "limbs"]) -> Float[Array, ""]:
    """The same where all ones come first: the shortest interval of balance v reaches from the v-th last one to the v-th zero."""
    zeros, ones = pieces.values[0].astype(jnp.int32), pieces.values[-1].astype(jnp.int32)
    start = wide.rows_of(pieces.starts)

    def too_long(v: Array) -> Array:
        return wide.less_equal(length, wide.subtract(start(ones + v + 1), start(ones - v)))

    return first_where(too_long, jnp.int32(0), jnp.minimum(zeros, ones), pieces.count).astype(float)


def _points(pieces: Pieces) -> UInt32[Array, "rows limbs"]:
    """The examples in order, then padding."""
    return wide.subtract(pieces.starts[1:], wide.one(pieces.limbs)[None])


@frozen
class Blocks:
    """The block of A with the greatest balance, then that of B, and by how much A_dist sees each ahead (inf for a single block).

    Attributes:
      start: the least point of each block.
      gap: its balance less the greatest balance of the others; inf for a single block.
      exists: whether there are such blocks: B has none where 2^j is the whole domain.
    """

    start: UInt32[Array, "2 limbs"]
    gap: Float[Array, "2"]
    exists: Bool[Array, "2"]


def best_blocks(pieces: Pieces, exponent: Int[Array, ""]) -> Blocks:
    """The best of the blocks of 2^(exponent + 1) points from 0 on, and of those from 2^exponent on; the first one on ties."""
    begins = jnp.stack([jnp.zeros_like(pieces.last), wide.power_of_two(exponent, pieces.limbs)])
    log_size = _log_size(pieces, exponent)
    size = wide.power_of_two(log_size, pieces.limbs)

    def best(begin: UInt32[Array, "limbs"]) -> tuple[Array, Array]:
        def block(point: UInt32[Array, "limbs"]) -> tuple[Array, Array]:
            blocks_before = wide.shift_right(wide.subtract(point, begin), log_size)
            low = wide.add(begin, wide.shift_left(blocks_before, log_size))
            first, stop = jax.vmap(lambda end: _before(pieces, end))(jnp.stack([low, wide.add(low, size)]))
            return low, _balance(pieces, first, stop)

        balance, others, start = (_best_of_peak if pieces.is_peak else _best_of_all)(pieces, block, begin)
        # Blocks without examples have balance 0, so the first of all blocks is the best one if that is the greatest.
        return wide.select(balance > 0, start, begin), balance - others

    starts, gaps = jax.vmap(best)(begins)
    gaps = jnp.where(exponent + 1 >= pieces.exponent, jnp.inf, gaps)
    return Blocks(start=starts, gap=gaps, exists=wide.less(begins, pieces.last[None]))


def _log_size(pieces: Pieces, exponent: Int[Array, ""]) -> Int[Array, ""]:
    """log2 of the number of points of a block, which is at most the whole domain."""
    return jnp.minimum(exponent + 1, pieces.exponent)


def _best_of_all(pieces: Pieces, block: Any, begin: UInt32[Array, "limbs"]) -> tuple[Array, Array, Array]:
    """The greatest balance of the blocks that hold an example, that of the others, and where the best one starts."""
    points = _points(pieces)
    index = jnp.arange(points.shape[0], dtype=jnp.int32)
    starts, balances = jax.vmap(block)(points)
    balances = jnp.where((index < _examples(pieces)) & wide.less_equal(begin[None], points), balances, 0.0)
    winner = jnp.argmax(balances)  # the first in order
    others = jnp.where(wide.equal(starts, starts[winner][None]), 0.0, balances)
    return balances[winner], jnp.max(others), starts[winner]


def _best_of_peak(pieces: Pieces, block: Any, begin: UInt32[Array, "limbs"]) -> tuple[Array, Array, Array]:
    """The same where all ones come first: only the block of the last one can hold a zero, too."""
    ones = pieces.values[-1].astype(jnp.int32)
    last = wide.rows_of(_points(pieces))(jnp.maximum(ones - 1, 0))
    start, balance = block(last)
    return jnp.where((ones > 0) & wide.less_equal(begin, last), balance, 0.0), jnp.zeros(()), start


def hypotheses(pieces: Pieces, exponent: Int[Array, ""], start: UInt32[Array, "limbs"]) -> UInt32[Array, "five limbs"]:
    """The ends of the four quarters of a block; quarters have at least one point, and ends beyond the domain are cut to 2^d."""
    quarter = wide.power_of_two(jnp.maximum(_log_size(pieces, exponent) - 2, 0), pieces.limbs)
    ends = [start]
    for _ in range(HYPOTHESES - 1):
        ends.append(wide.add(ends[-1], quarter))
    return wide.minimum(jnp.stack(ends), pieces.last[None])


# --------------------------------------------------------------------------------------------------- the algorithm


@frozen
class IntervalLearner(ThresholdLearner):
    """A learner that searches for a length privately and goes on as in the module; its subclasses are the searches.

    Attributes:
      bits: d.
      epsilon, delta: the total budget.
      alpha: approximation parameter; the constants above are for alpha/2.
      limbs: of a threshold (static).
      calibration: constants of A_dist (static).
    """

    bits: Int[Array, ""]
    epsilon: Float[Array, ""]
    delta: Float[Array, ""]
    alpha: Float[Array, ""]
    limbs: int = static()
    calibration: str = static()

    # A search -------------------------------------------------------------------------------------------------

    def comparisons(self) -> Int[Array, ""]:
        """How many comparisons the search makes at most."""
        raise NotImplementedError

    def comparison_epsilon(self) -> Float[Array, ""]:
        """What one comparison may spend."""
        raise NotImplementedError

    def shares_of_delta(self) -> int:
        """Into how many parts delta is split: one for each A_dist, and one for the comparisons if they need any."""
        raise NotImplementedError

    def search(self, key: Array, pieces: Pieces) -> tuple[Int[Array, ""], Any]:
        """One run of the search: the exponent j of the length 2^j, and what it saw on the way."""
        raise NotImplementedError

    def log_search(self, pieces: Pieces) -> Float[Array, "exponents"]:
        """ln P[j] for j = 0, ..., 32 limbs - 1."""
        raise NotImplementedError

    def log_turns(self, pieces: Pieces, length: UInt32[Array, "limbs"]) -> tuple[Array, Array]:
        """(ln P[W(length) passes for large], ln P[not]): the noisy value is compared with a n/2 (Remark 3.5)."""
        bar = jnp.asarray(self.alpha, float) / 4 * _examples(pieces).astype(float)
        small, large = laplace.log_tails((bar - largest_balance(pieces, length)) * self.comparison_epsilon())
        return large, small

    # What follows ---------------------------------------------------------------------------------------------

    def _part(self, share: float) -> Float[Array, ""]:
        """A share of epsilon."""
        return share * jnp.asarray(self.epsilon, float)

    def _blocks(self, pieces: Pieces, exponent: Int[Array, ""]) -> tuple[Blocks, Array, Array]:
        """The best blocks of A and of B, ln P[A_dist releases it] for each, ln P[not]."""
        blocks = best_blocks(pieces, exponent)
        delta = jnp.asarray(self.delta, float) / self.shares_of_delta()
        given: Any = {"epsilon": self._part(STABLE), "delta": delta, "calibration": self.calibration}
        kept, dropped = stability.log_keep(blocks.gap, **given)
        return blocks, jnp.where(blocks.exists, kept, -jnp.inf), jnp.where(blocks.exists, dropped, 0.0)

    def _log_choice(self, pieces: Pieces, ends: UInt32[Array, "five limbs"]) -> tuple[Array, Array]:
        """The pieces of the hypotheses, and the law of the exponential mechanism on them."""
        found = jax.vmap(pieces.locate)(ends)
        weights = exponential.log_weights(pieces.values[found], epsilon=self._part(CHOICE))
        return found, exponential.normalised(weights)

    def draw(self, key: Array, pieces: Pieces) -> Any:
        key_search, key_blocks, key_choice = jax.random.split(key, 3)
        exponent, info = self.search(key_search, pieces)
        blocks, *coins = self._blocks(pieces, exponent)
        kept = random.bernoulli(key_blocks, *coins)
        ends = hypotheses(pieces, exponent, wide.select(kept[0], blocks.start[0], blocks.start[1]))
        weights = jnp.exp(self._log_choice(pieces, ends)[1])
        chosen = logspace.choose(key_choice, jnp.pad(weights, (0, 8 - HYPOTHESES)))
        return ends[chosen], jnp.any(kept), {"exponent": exponent, "kept_a": kept[0], "kept_b": kept[1], **info}

    def law(self, pieces: Pieces, goal: Goal) -> Float[Array, "2"]:
        log_search = self.log_search(pieces)
        exponents = jnp.arange(log_search.shape[0], dtype=jnp.int32)
        # A sample that is not realizable takes memory for each example and exponent, if all are done at once.
        each = jax.vmap if pieces.is_peak else lambda law: functools.partial(jax.lax.map, law)
        given = each(lambda exponent: self._law_given(pieces, exponent, goal))(exponents)
        return jnp.sum(jnp.exp(log_search[:, None] + given), axis=0)

    def _law_given(self, pieces: Pieces, exponent: Int[Array, ""], goal: Goal) -> Float[Array, "2"]:
        """(ln P[success], ln P[failure, or bottom]) given the search's answer."""
        blocks, keep, drop = self._blocks(pieces, exponent)
        judged = jax.vmap(lambda start: self._judged(pieces, hypotheses(pieces, exponent, start), goal))(blocks.start)
        bottom = jnp.stack([jnp.full_like(drop[0], -jnp.inf), drop[0] + drop[1]])
        cases = [keep[0] + judged[0], drop[0] + keep[1] + judged[1], bottom]  # B is used where A releases nothing
        return logspace.logsumexp(jnp.stack(cases, axis=-1))

    def _judged(self, pieces: Pieces, ends: UInt32[Array, "five limbs"], goal: Goal) -> Float[Array, "2"]:
        """(ln P[success], ln P[failure]) of the exponential mechanism on these hypotheses."""
        found, log_p = self._log_choice(pieces, ends)
        good = goal.flags(pieces.count)[found] & goal.within.holds(ends)
        return logspace.logsumexp(jnp.where(jnp.stack([good, ~good]), log_p, -jnp.inf))

    # Its promises ---------------------------------------------------------------------------------------------

    def guarantee(self) -> Guarantee:
        """What is proved, by basic composition of the parts, under REPLACE_ONE; `claimed_guarantee` for the proved constants."""
        if self.calibration == "proved":
            return self.claimed_guarantee()
        epsilon, delta = float(self.epsilon), float(self.delta)
        parts = self.shares_of_delta()
        doubled = math.exp(min(2 * STABLE * epsilon, 700.0)) / 2  # Proposition 2.27's delta, of the printed constants
        total = (parts - 2 + 2 * doubled) * delta / parts
        return Guarantee((SEARCH + CHOICE + 4 * STABLE) * epsilon, min(total, 1.0), REPLACE_ONE)

    def claimed_guarantee(self) -> Guarantee:
        """(epsilon, delta): what would hold if the printed A_dist were private as the paper says."""
        return Guarantee(float(self.epsilon), float(self.delta), REPLACE_ONE)

    def sample_size(self, *, alpha: float, beta: float) -> int:
        """Examples for the learner's own alpha, by its constants; see `bounds.interval_search_thresholds`.

        Raises:
          ValueError: an alpha below the learner's own, which no number of examples achieves; a delta that beta leaves no room for.
        """
        own, beta = self.own_alpha(alpha), arguments.known_fraction("beta", beta)
        delta, parts = arguments.known("delta", self.delta), self.shares_of_delta()
        if not beta / 2 > delta / parts:  # a block without balance is released with this probability, whatever n is
            least = 2 * delta / parts
            raise ValueError(f"beta must be > {least}, that is delta times {2 / parts:g}, got {beta}")
        return whole(bounds.interval_search_thresholds(int(self.comparisons()), own, beta, **self.budget()))

    def budget(self) -> dict[str, Any]:
        """What each mechanism may spend, as `bounds.interval_search` takes it."""
        return {
            "comparison_epsilon": float(self.comparison_epsilon()),
            "stability_epsilon": STABLE * float(self.epsilon),
            "stability_delta": float(self.delta) / self.shares_of_delta(),
            "choice_epsilon": CHOICE * float(self.epsilon),
            "calibration": self.calibration,
        }


def fields(*, bits: int, epsilon: Any, delta: Any, alpha: Any, calibration: str) -> dict[str, Any]:
    """The fields of every search, checked."""
    return {
        **base.domain(bits),
        "epsilon": arguments.epsilon(epsilon),
        "delta": arguments.delta(delta),
        "alpha": arguments.fraction("alpha", alpha),
        "calibration": arguments.choice("calibration", calibration, CALIBRATIONS),
    }
