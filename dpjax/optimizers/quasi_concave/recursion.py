"""RecConcave: private quasi-concave optimisation on a wide range by recursion on lengths (BNS §3.3, Figure 5).

Given Q on {0, ..., T}, of sensitivity 1, with max Q >= r, the goal is a point with Q >= (1 - alpha) r. One level:

1. L(j) = best worst-case value over windows of 2^j points, j = 0, ..., log T' (T' the power of two >= T).
2. q(j) = min(L(j) - (1 - alpha) r, r - L(j+1)) is large where windows of 2^j points are good and those of 2^(j+1) are not. It is a
   quasi-concave function on {0, ..., log T'}, maximised by the same algorithm with promise alpha r / 2 and alpha = 1/4.
3. With its answer k, K = 2^k: cut the range into blocks of 8K, and again shifted by 4K; in each of the two partitions A_dist
   releases the block with the best maximum, if that stands out.
4. The exponential mechanism chooses among the points of the released blocks.

Ranges with T <= 32, and the last of N levels, go to the exponential mechanism at once. The range of the recursion is
logarithmic: 2^4096 points become 4096, then 12, so at most three levels ever run. What Figure 5 leaves open is settled as
follows: Q = min(0, Q(T)) on (T, T']; L(log T' + 1) = min(0, L(log T')); the partition has floor(T'/8K) + 1 blocks (the last may
be the point T' alone), the shifted one starts at 4K and is empty when 4K > T'; last blocks are trimmed; a partition of a single block
releases it untested; ties go to the lowest block; an inner answer beyond log T' stands for the whole range; L is clipped to sizes up to
2r; the answer is bottom if neither partition releases a block.

**One algorithm, two uses.** Every stage is a pure function of the data and the choices so far. `sample` draws a choice and
calls the next stage; `law` calls the next stage for every choice and adds up with weights.

**Formal guarantees** (REPLACE_ONE when Q has sensitivity 1 under it; n public). With N levels run, N exponential mechanisms of
epsilon and 2(N-1) of A_dist: with `proved` constants each A_dist is (epsilon, delta), so the whole is
((3N-2) epsilon, 2(N-1) delta) by basic composition; with the paper's `printed` constants each is only
(2 epsilon, e^(2 epsilon) delta / 2), the whole ((5N-4) epsilon, (N-1) e^(2 epsilon) delta). Lemma 3.12 claims (3N epsilon, 3N delta).
Not promised: protection from floating-point side channels; a cryptographic generator.
"""

import functools
import operator
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float, Int, UInt32

from dpjax.core import arguments, bits, logspace, random
from dpjax.core.pytree import frozen, stacked
from dpjax.core.staging import once, unless
from dpjax.domains import ordered, wide
from dpjax.domains.events import Goal, Interval
from dpjax.domains.ordered import Crest, Cut, Pieces
from dpjax.mechanisms import exponential_piecewise as piecewise
from dpjax.mechanisms import stability
from dpjax.mechanisms.base import candidates
from dpjax.mechanisms.exponential_piecewise import Point
from dpjax.optimizers.quasi_concave import ladder, units
from dpjax.optimizers.quasi_concave.ladder import Ladder
from dpjax.optimizers.quasi_concave.split import Budget, Split

INNER_ALPHA = 0.25  # Figure 5, step 6
CHUNK = 96  # the most answers that a law processes together: the long numbers of more would not stay in the cache


# ------------------------------------------------------------------------------------------- stage 1, 2: L and q


def best_windows(pieces: Pieces) -> Float[Array, "exponents"]:
    """L(j) for j = 0, 1, ..., 32 limbs - 1: max over windows of 2^j points of the least value; entries past log T' are -inf.

    A run of points no worse than v gives v to all windows of 2^j points up to its length, which its number of binary digits decides. This
    is right for any function: quasi-concavity is only needed for utility.
    """
    if pieces.is_peak:
        return _best_windows_of_peak(pieces)
    values, first, stop = ordered.longest_runs(pieces)
    at = wide.rows_of(wide.concatenate(pieces.starts, pieces.end[None]))
    digits = wide.bit_length(wide.subtract(at(stop), at(first)))
    by_digits = jnp.full((32 * pieces.limbs + 1,), -jnp.inf, values.dtype).at[digits].max(values)
    return lax.cummax(by_digits, reverse=True)[1:]


def _best_windows_of_peak(pieces: Pieces) -> Float[Array, "exponents"]:
    """The same numbers without a search for runs.

    With a jump of 1 + c at the top, values at most c + e below the best one are those of pieces top - e, ..., top + e, e > 0, whose
    length grows with e: the number of such runs with at most j digits tells by how much windows of 2^j points miss the best value.
    """
    digits = once(ordered.digits_around_top, pieces)
    missed = jnp.searchsorted(digits, jnp.arange(32 * pieces.limbs, dtype=jnp.int32), side="right")
    top = ordered.top_of_peak(pieces)
    best, before = pieces.values[top], pieces.values[jnp.maximum(top - 1, 0)]
    jump = jnp.where(top > 0, best - before, 1.0)
    reached = jnp.where(missed > 0, best - jump + 1 - missed.astype(best.dtype), best)
    return jnp.where(missed < pieces.count, reached, -jnp.inf)


def window_quality(
    windows: Float[Array, "exponents"],
    exponent: Int[Array, ""],
    promise: Array,
    alpha: Array | float,
    span: Array,
    *,
    whole: bool = False,
) -> Float[Array, "exponents"]:
    """q(j) for j = 0, ..., log T' = exponent (what lies beyond is arbitrary).

    The numbers that L is compared with are rounded to the unfavourable side: to units of `span` (`units`), or to integers if `whole`.
    `span` is twice the promise of the outermost level. L is clipped to it, and to no more than it, or the greatest number that floats
    count to, below the least of these numbers: q is far below its best there anyway. So no difference of these numbers and L is rounded, if
    L is an integer or such a number itself, and q keeps its sensitivity. (In float32 (1 - alpha) promise itself may be off by a unit. The
    theorems on errors do not count these units, which are examples where promises are millions, and far less otherwise.)
    """
    least, most = (1 - alpha) * promise, promise
    if whole:
        least, most = jnp.ceil(least), jnp.floor(most)
    else:
        least, most = units.up(least, span), units.down(most, span)
    lowest = least - jnp.minimum(span, float(arguments.most_counted()))
    windows = jnp.where(jnp.isneginf(windows), windows, jnp.clip(windows, lowest, span))
    index = jnp.arange(windows.shape[0], dtype=jnp.int32)
    following = jnp.concatenate([windows[1:], windows[-1:]])
    following = jnp.where(index == exponent, jnp.minimum(0.0, windows), following)
    return jnp.minimum(windows - least, most - following)


# -------------------------------------------------------------------------- the recursion's ranges: dense, tiny


def dense_log_law(
    quality: Float[Array, "points"],
    last: Int[Array, ""],
    promise: Array,
    alpha: Array | float,
    budget: Budget | Split,
    levels: int,
    span: Array,
) -> Float[Array, "outcomes"]:
    """Log law of RecConcave on {0, ..., last} for a QUASI-CONCAVE quality given point by point; the last entry is bottom.

    `span` is as for `window_quality`. `points` may exceed last + 1 (padding). Claim 3.13 makes every inner quality quasi-concave, whatever
    the data, so the least value over a window is that at one of its ends.
    """
    points = quality.shape[0]
    index = jnp.arange(points, dtype=jnp.int32)
    if levels == 1:
        return _last_choice(quality, index <= last, budget)
    size = 1 << (points - 1).bit_length()  # static bound on T'
    exponent = bits.bit_length(last - 1)
    quality = _extend(quality, last, size + 1)
    inside = jnp.arange(size + 1, dtype=jnp.int32) <= (1 << exponent)
    quality = jnp.where(inside, quality, -jnp.inf)
    windows = [
        jnp.max(jnp.minimum(quality[: size + 2 - (1 << j)], quality[(1 << j) - 1 :])) for j in range(size.bit_length())
    ]
    inner = window_quality(jnp.stack(windows), exponent, promise, alpha, span, whole=budget.last is not None)
    choice = dense_log_law(inner, exponent, alpha * promise / 2, INNER_ALPHA, budget.below, levels - 1, span)
    choice = _lump(choice, size.bit_length())
    chosen = jax.vmap(lambda k: _dense_given(quality, exponent, k, budget))(
        jnp.arange(size.bit_length(), dtype=jnp.int32)
    )
    return _append(
        logspace.logsumexp((choice[:-1, None] + chosen[:, :-1]).T),
        logspace.logsumexp(_append(choice[:-1] + chosen[:, -1], choice[-1])),
    )


def _last_choice(quality: Array, where: Array, budget: Budget | Split) -> Array:
    """Log law of the last level: that of the exponential mechanism, or of the split's own mechanism, which takes integer scores."""
    if budget.last is None:
        return _append(_log_softmax(quality, where, budget.choose), -jnp.inf)
    where = where & ~jnp.isneginf(quality)  # a length that only points beyond the range leave: no score holds that
    return budget.last.log_law(candidates(jnp.where(where, quality, 0.0).astype(jnp.int32), where=where))


def _dense_given(
    quality: Float[Array, "points"], exponent: Array, k: Array, budget: Budget | Split
) -> Float[Array, "outcomes"]:
    """Log law of steps 7 to 10 given k."""
    index = jnp.arange(quality.shape[0], dtype=jnp.int32)
    released = [_dense_block(quality, index, exponent, k, offset, budget.test(offset)) for offset in (0, 1)]
    (in_a, keep_a, drop_a), (in_b, keep_b, drop_b) = released
    cases = [
        (keep_a + keep_b, in_a | in_b),
        (keep_a + drop_b, in_a),
        (drop_a + keep_b, in_b),
    ]
    law = _log_sum([log_p + _log_softmax(quality, where, budget.choose) for log_p, where in cases])
    return _append(law, drop_a + drop_b)


def _dense_block(
    quality: Array, index: Array, exponent: Array, k: Array, offset: int, budget: Budget
) -> tuple[Bool[Array, "points"], Array, Array]:
    """The best block of one partition: its points, ln P[released], ln P[not]."""
    shift = jnp.minimum(k + 3, 30)
    begin = jnp.where(offset == 1, jnp.int32(1) << jnp.minimum(k + 2, 30), 0)
    offered = (index >= begin) & (index <= (1 << exponent))
    best = jnp.max(jnp.where(offered, quality, -jnp.inf))
    block = (index - begin) >> shift
    winner = jnp.min(jnp.where(offered & (quality == best), block, jnp.int32(1 << 30)))
    in_block = offered & (block == winner)
    second = jnp.max(jnp.where(offered & ~in_block, quality, -jnp.inf))
    exists = jnp.any(offered)
    log_p, log_q = _log_keep(exists, best, second, budget)
    return in_block, log_p, log_q


def _log_keep(exists: Array, best: Array, second: Array, budget: Budget) -> tuple[Array, Array]:
    """ln P[A_dist releases the best block] and ln P[not]; an empty partition releases nothing, a single block is sure."""
    single = jnp.isneginf(second)
    gap = jnp.where(exists & ~single, jnp.where(exists, best, 0.0) - jnp.where(single, 0.0, second), 0.0)
    log_p, log_q = stability.log_keep(gap, epsilon=budget.epsilon, delta=budget.delta, calibration=budget.calibration)
    log_p = jnp.where(exists, jnp.where(single, 0.0, log_p), -jnp.inf)
    log_q = jnp.where(exists, jnp.where(single, -jnp.inf, log_q), 0.0)
    return log_p, log_q


def _extend(quality: Array, last: Array, size: int) -> Array:
    """Step 2: min(0, Q(T)) beyond T."""
    padded = jnp.pad(quality, (0, size - quality.shape[0]))
    index = jnp.arange(size, dtype=jnp.int32)
    return jnp.where(index > last, jnp.minimum(0.0, quality[last]), padded)


def _lump(log_law: Float[Array, "outcomes"], points: int) -> Float[Array, "fewer"]:
    """Gathers all outcomes from points - 1 on: such a k makes one block of the whole range, whatever it is exactly."""
    outcomes, bottom = log_law[:-1], log_law[-1]
    if outcomes.shape[0] <= points:
        outcomes = jnp.pad(outcomes, (0, points - outcomes.shape[0]), constant_values=-jnp.inf)
        return _append(outcomes, bottom)
    tail = logspace.logsumexp(outcomes[points - 1 :])
    return jnp.concatenate([outcomes[: points - 1], tail[None], bottom[None]])


def _log_sum(logs: list[Array]) -> Array:
    """ln of the sum of exponentials of several logs, entry by entry."""
    return logspace.logsumexp(jnp.stack(logs, axis=-1))


def _append(values: Array, last: Array | float) -> Array:
    return jnp.concatenate([values, jnp.asarray(last, values.dtype)[None]])


def _log_softmax(quality: Array, where: Array, epsilon: Array) -> Array:
    """Log law of the exponential mechanism over the masked-in points; -inf elsewhere (everywhere, if there are none)."""
    where = where & ~jnp.isneginf(quality)  # points of quality -inf are never drawn, and a block may have no others
    best = jnp.max(jnp.where(where, quality, -jnp.inf))  # subtracted, so that float32 keeps the digits that matter
    # Masked before multiplying: -inf times a zero cotangent would make the gradient in epsilon NaN.
    scores = epsilon * jnp.where(where, quality - best, 0.0) / 2
    total = logspace.logsumexp(jnp.where(where, scores, -jnp.inf))
    return jnp.where(where, scores - logspace.finite(total), -jnp.inf)


# ------------------------------------------------------------------------------- stage 3: the wide range's blocks


@frozen
class Block:
    """The best block of one partition of the wide range and the odds that A_dist releases it."""

    low: Cut
    high: Cut
    log_keep: Float[Array, ""]
    log_drop: Float[Array, ""]
    gap: Float[Array, ""]

    @property
    def interval(self) -> Interval:
        """Its points."""
        return Interval(low=self.low.position, high=self.high.position)


@frozen
class Found:
    """The best block of one partition, before it is tested.

    Attributes:
      low, high: its ends.
      best, second: the greatest value in it, and outside of it; -inf where there is nothing.
      exists: whether the partition has a block.
    """

    low: Cut
    high: Cut
    best: Float[Array, "*n"]
    second: Float[Array, "*n"]
    exists: Bool[Array, "*n"]


@frozen
class Lie:
    """How the best blocks of both partitions lie: all that a law needs to know about them, and nothing that depends on a budget.

    Attributes:
      best, second, exists: those of each; see `Found`.
      overlap: whether they share points.
      parts: the segments of the first, of the second, and of their hull.
    """

    best: Float[Array, "2"]
    second: Float[Array, "2"]
    exists: Bool[Array, "2"]
    overlap: Bool[Array, ""]
    parts: piecewise.Segment


def shifted_start(pieces: Pieces, k: Int[Array, ""]) -> UInt32[Array, "limbs"]:
    """4K, where the second partition begins."""
    return wide.power_of_two(jnp.minimum(k + 2, pieces.exponent), pieces.limbs)


def _exist(pieces: Pieces, k: Array) -> Bool[Array, "2"]:
    """Whether each partition has a block."""
    return jnp.stack([jnp.bool_(True), k + 2 <= pieces.exponent])


def best_blocks(
    pieces: Pieces, crest: Crest | None, k: Int[Array, ""], budget: Budget | Split, first: Cut, shifted: Cut, end: Cut
) -> tuple[Block, Block]:
    """Steps 7 to 9 for both partitions, which begin at 0 and 4K, the first two cuts; the third cut is behind the last piece."""
    # A budget is the same for both, a split may give each its own.
    tests, axis = (budget, None) if isinstance(budget, Budget) else (stacked(budget.test(0), budget.test(1)), 0)
    found = _best_of_both(pieces, crest, k, first, shifted, end)
    return _parts(jax.vmap(_tested, in_axes=(axis, 0))(tests, found), 2)


def _best_of_both(pieces: Pieces, crest: Crest | None, k: Array, first: Cut, shifted: Cut, end: Cut) -> Found:
    """The best blocks of both partitions, stacked."""
    begins = stacked(first, shifted)
    exist = _exist(pieces, k)
    return jax.vmap(functools.partial(_best_block, pieces, crest, k), in_axes=(0, None, 0))(begins, end, exist)


def _parts(found: Any, count: int) -> Any:
    """The results of `vmap`, one by one."""
    return tuple(jax.tree.map(operator.itemgetter(i), found) for i in range(count))


def _cuts(pieces: Pieces, *positions: UInt32[Array, "limbs"]) -> Any:
    """A cut at each position, by one search."""
    return _parts(jax.vmap(pieces.cut)(jnp.stack(positions)), len(positions))


def _best_block(pieces: Pieces, crest: Crest | None, k: Array, begin: Cut, end: Cut, exists: Array) -> Found:
    """The best block of the partition that starts at `begin`: only pieces are examined, never the 2^(log T' - k - 3) blocks."""
    limbs, exponent = pieces.limbs, pieces.exponent
    best, top = ordered.best_of(pieces, crest, begin, end)

    low = wide.add(begin.position, wide.multiple(wide.subtract(top, begin.position), k + 3))
    room = wide.subtract(pieces.end, low)
    size = wide.power_of_two(jnp.minimum(k + 3, exponent), limbs)
    high = wide.add(low, wide.select(k + 3 > exponent, room, wide.minimum(size, room)))

    lower, upper = _cuts(pieces, low, high)
    # Left and right of the block.
    lows, highs = stacked(begin, upper), stacked(lower, end)
    second = jnp.max(jax.vmap(lambda *ends: ordered.best_of(pieces, crest, *ends)[0])(lows, highs))
    return Found(low=lower, high=upper, best=best, second=second, exists=exists)


def _tested(budget: Budget, found: Found) -> Block:
    """The block with the odds that A_dist releases it."""
    log_p, log_q = _log_keep(found.exists, found.best, found.second, budget)
    return Block(low=found.low, high=found.high, log_keep=log_p, log_drop=log_q, gap=found.best - found.second)


def overlapping(a: Block | Found, b: Block | Found) -> Bool[Array, ""]:
    """Whether the two blocks share points."""
    return a.low.precedes(b.high) & b.low.precedes(a.high)


def hull(a: Block | Found, b: Block | Found) -> tuple[Cut, Cut]:
    """The ends of the least interval that holds both."""
    return a.low.least(b.low), a.high.greatest(b.high)


# ------------------------------------------------------------------------------------------------ sampler and law


@frozen
class Problem:
    """A quasi-concave promise problem (Definition 3.7)."""

    pieces: Pieces
    promise: Float[Array, ""]
    alpha: Float[Array, ""]


@frozen
class Run:
    """One run: the chosen point, whether there is one, and what was chosen on the way."""

    point: Point
    ok: Bool[Array, ""]
    k: Int[Array, ""]
    block_a: Block
    block_b: Block
    kept_a: Bool[Array, ""]
    kept_b: Bool[Array, ""]


def choose_length(problem: Problem, budget: Budget | Split, levels: int) -> Float[Array, "outcomes"]:
    """Log law of the recursion's answer k, bottom last: all that the wide range's sampler and law need to know about it."""
    quality = length_quality(problem, whole=budget.last is not None)
    promise = problem.alpha * problem.promise / 2
    span = 2 * problem.promise
    law = dense_log_law(quality, problem.pieces.exponent, promise, INNER_ALPHA, budget.below, levels - 1, span)
    return _lump(law, quality.shape[0])


def length_quality(problem: Problem, *, whole: bool = False) -> Float[Array, "exponents"]:
    """q of the wide range; see `window_quality`."""
    pieces = problem.pieces
    promise, span = problem.promise, 2 * problem.promise
    return window_quality(best_windows(pieces), pieces.exponent, promise, problem.alpha, span, whole=whole)


def sample(key: Array, problem: Problem, budget: Budget | Split, levels: int) -> Run:
    """One run of RecConcave with `levels` levels. A point beyond T, where Q is continued, does not count: `ok` is false."""
    key_k, key_a, key_b, key_point = jax.random.split(key, 4)
    pieces = problem.pieces
    crest = ordered.crest(pieces)
    log_density = piecewise.log_density(pieces, budget.choose, crest)
    nothing = Interval(low=pieces.end, high=pieces.end)
    if levels == 1:
        everywhere = piecewise.everything(pieces)
        block = Block(
            low=pieces.cut(everywhere.low),
            high=pieces.cut(everywhere.high),
            log_keep=jnp.zeros(()),
            log_drop=jnp.full((), -jnp.inf),
            gap=jnp.full((), jnp.inf),
        )
        point = piecewise.draw(key_point, pieces, log_density, everywhere, nothing)
        yes, no = jnp.bool_(True), jnp.bool_(False)
        return Run(point=point, ok=yes, k=jnp.int32(-1), block_a=block, block_b=block, kept_a=yes, kept_b=no)
    law = choose_length(problem, budget, levels)
    k = logspace.draw(key_k, logspace.sum_tree(law))
    found = k < law.shape[0] - 1
    zero = jnp.zeros_like(pieces.end)
    a, b = best_blocks(pieces, crest, k, budget, *_cuts(pieces, zero, shifted_start(pieces, k), pieces.end))
    odds = stacked((key_a, a.log_keep, a.log_drop), (key_b, b.log_keep, b.log_drop))
    kept_a, kept_b = jax.vmap(random.bernoulli)(*odds)
    merged = kept_a & kept_b & overlapping(a, b)
    lowest, highest = hull(a, b)
    # Chosen by number, in one step: otherwise each limb of each end would be selected by itself, and the conditions computed anew.
    offered = stacked(a.interval, b.interval, Interval(low=lowest.position, high=highest.position), nothing)
    numbers = jnp.stack([jnp.where(merged, 2, jnp.where(kept_a, 0, 1)), jnp.where(kept_a & kept_b & ~merged, 1, 3)])
    one, other = _parts(jax.tree.map(lambda end: end[numbers], offered), 2)
    point = piecewise.draw(key_point, pieces, log_density, one, other)
    ok = found & (kept_a | kept_b) & wide.less_equal(point.position, pieces.last)
    return Run(point=point, ok=ok, k=k, block_a=a, block_b=b, kept_a=kept_a, kept_b=kept_b)


def law(problem: Problem, budget: Budget | Split, levels: int, goal: Goal) -> Float[Array, "2"]:
    """(P[success], P[failure]) of one run, over its coins; bottom is a failure. Each is a sum of positive terms."""
    pieces = problem.pieces
    if levels == 1:
        judge = piecewise.judge(pieces, piecewise.log_density(pieces, budget.choose), goal)
        masses = judge.log_masses(piecewise.everything(pieces))
        return jnp.exp(_normalised(masses))
    choice = choose_length(problem, budget, levels)
    given = law_given_lengths(problem, budget, goal)
    total = jnp.sum(jnp.exp(choice[:-1, None] + given), axis=0)
    return total + jnp.stack([jnp.zeros_like(choice[-1]), jnp.exp(choice[-1])])


def law_given_lengths(problem: Problem, budget: Budget | Split, goal: Goal) -> Float[Array, "exponents 2"]:
    """(ln P[success], ln P[failure]) given each answer k of the recursion."""
    pieces = problem.pieces
    crest = ordered.crest(pieces)
    judge = piecewise.judge(pieces, piecewise.log_density(pieces, budget.choose, crest), goal)
    lengths = 32 * pieces.limbs
    chunks = -(-lengths // CHUNK)
    each = -(-lengths // chunks)
    answers = jnp.arange(chunks * each, dtype=jnp.int32).reshape(chunks, each)
    first, end = _cuts(pieces, jnp.zeros_like(pieces.end), pieces.end)

    def looked_up(answers: Array) -> Lie:
        return jax.vmap(lambda k: _lie(pieces, crest, judge.within, k, first, end))(answers)

    def chunk(answers: Array) -> Float[Array, "each 2"]:
        return jax.vmap(lambda lie: _law_given(judge, lie, budget))(lies(answers))

    lies: Callable[[Array], Lie] = looked_up
    if crest is not None and ladder.applies(pieces):
        rungs = ladder.build(pieces, crest, first, end, judge.within)

        def lies(answers: Array) -> Lie:
            seen, known = jax.vmap(lambda k: _lie_seen(pieces, rungs, k))(answers)
            return unless(jnp.all(known), seen, looked_up, answers)

    return lax.map(chunk, answers).reshape(-1, 2)[:lengths]


def _lie(pieces: Pieces, crest: Crest | None, within: tuple[Cut, Cut], k: Array, first: Cut, end: Cut) -> Lie:
    """How the best blocks lie given the recursion's answer k."""
    found = _best_of_both(pieces, crest, k, first, pieces.cut(shifted_start(pieces, k)), end)
    a, b = _parts(found, 2)
    return _lie_of(found, overlapping(a, b), within)


def _lie_seen(pieces: Pieces, rungs: Ladder, k: Array) -> tuple[Lie, Bool[Array, ""]]:
    """The same by leading words, and whether these are enough."""
    ends, values = ladder.ends(rungs, pieces, k), pieces.values
    best = values[rungs.piece]
    # A peak is greatest next to the block.
    before = jnp.where(ends.left, values[ends.low.below - 1], -jnp.inf)
    behind = jnp.where(ends.right, values[ends.high.upto - 1], -jnp.inf)
    found = Found(
        low=ends.low,
        high=ends.high,
        best=jnp.stack([best, jnp.where(ends.begins_behind, values[ends.low.upto[1] - 1], best)]),
        second=jnp.maximum(before, behind),
        exists=_exist(pieces, k),
    )
    # Both hold the best point, or the second one begins within the first.
    return _lie_of(found, jnp.bool_(True), rungs.within), ends.known


def _lie_of(found: Found, overlap: Bool[Array, ""], within: tuple[Cut, Cut]) -> Lie:
    a, b = _parts(found, 2)
    ends = stacked((a.low, a.high), (b.low, b.high), hull(a, b))
    parts = jax.vmap(lambda low, high: piecewise.segments(low, high, within))(*ends)
    return Lie(best=found.best, second=found.second, exists=found.exists, overlap=overlap, parts=parts)


def _law_given(judge: piecewise.Judge, lie: Lie, budget: Budget | Split) -> Float[Array, "2"]:
    """(ln P[success], ln P[failure]) given where the blocks lie."""
    (keep_a, drop_a), (keep_b, drop_b) = (
        _log_keep(lie.exists[i], lie.best[i], lie.second[i], budget.test(i)) for i in (0, 1)
    )
    in_a, in_b, in_hull = jax.vmap(judge.weigh)(lie.parts)
    in_both = jnp.where(lie.overlap, in_hull, _log_sum([in_a, in_b]))
    cases = [
        (keep_a + keep_b, in_both),
        (keep_a + drop_b, in_a),
        (drop_a + keep_b, in_b),
    ]
    weighted = [log_p + _normalised(masses) for log_p, masses in cases]
    bottom = jnp.stack([jnp.full_like(drop_a, -jnp.inf), drop_a + drop_b])
    return _log_sum([*weighted, bottom])


def _normalised(log_masses: Float[Array, "2"]) -> Float[Array, "2"]:
    """Logs of the shares of two masses; both -inf when there is no mass at all."""
    return log_masses - logspace.finite(logspace.logsumexp(log_masses))
