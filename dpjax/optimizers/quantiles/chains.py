"""Chains of ranks: sums over all sorted tuples of outputs, weighed by how many points lie between neighbouring ones.

An output z that is not a point has one rank, the number of points below it; a value that points share has all ranks from #{x < z} to
#{x <= z}. A sorted tuple z_1 <= ... <= z_m weighs the product of the weights of its parts, times exp(-kappa c) with the cost

    c = min over ranks r_j of z_j of |r_1 - t_1| + |r_2 - r_1 - t_2| + ... + |n - r_m - t_(m+1)|.

**The best ranks.** Let T_j = t_1 + ... + t_j. The cost is the distance that e_j = r_j - T_j travels from e_0 = 0 to e_(m+1) = n - T_(m+1).
It need not move before it must: if e_j is the point nearest to e_(j-1) among those that z_j allows, no other choice costs less. (Up to any
j and any end e within reach of z_j, the least cost is that of the lazy path plus |e - e_j|: true for j = 0, and from e_j every other end is
reached by way of e_j at no loss, by the triangle inequality.) So r_j is r_(j-1) + t_j, clipped to the ranks of z_j: it is *kept* within a
value, or *set* to a rank at which something begins or ends.

**Depth.** With targets f_j n a tuple costs nothing if each of its values has the rank T_j. If each has at least d_j ranks to spare on
either side, the weight is multiplied by exp(min rate_j d_j) (`Targets.depth`). There is only one tuple with d_j > 0 for all j, in which no
rank is ever set.

**States.** What follows a tuple's beginning depends on its last output and rank alone. A rank set at output a to k is k + T_j - T_a as long
as it is kept, and lies within the value of one point. So there are these states after output j: for each a < j and k a kept one; for each
rank k one at the upper end of the value below it, one between two values, one at the lower end of the value above it. These are m + 3 rows
of n + 1 weights. Only outputs between two values are handled several at a time, as parts of one sorted tuple.

**Steps.** The next output's rank is set to r from below where it would come to less, and from above where it would come to more but lies
below r now (or at r, in order): a first-order recursion, and a window of the last t ranks, the end of one block of its length and the
beginning of the next. A kept rank moves all of its row. All are sums of positive terms, kept as logarithms, and take O(m n) steps.

**Outputs between two values.** The weight of c sorted outputs there is the sum h_c, over all multisets, of the products of their weights
(complete homogeneous symmetric polynomials): c h_c = p_1 h_(c-1) + ... + p_c h_0, where p_i is the sum of the i-th powers of weights. Read
as a random choice, this formula draws a multiset: with a share of p_i h_(c-i), i of them are one integer, drawn by the i-th powers, and
c - i others follow.

**Intervals.** The axis may be cut into intervals, in one of which all outputs of a tuple lie. Then sums over earlier ranks begin where
the interval does. A gap between two points may hold the end of one interval, the beginning of another, and any number of empty
intervals between both, in each of which all outputs have one rank."""

from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float, Int, UInt32

from dpjax.core import logspace
from dpjax.core.pytree import frozen, static

SHORT = 256  # ranks: a loop along so few takes longer than one expression, which XLA vectorises
ULP = 2.0**-32
LEAST = -3e38  # a float32 below every logarithm
KEPT, UPPER, LOWER, BETWEEN = range(4)  # how an output gets its rank


@frozen
class Targets:
    """T_0 = 0 < T_1 < ... < T_(m+1), and what it costs to miss them.

    Attributes:
      whole, rest: the integer parts, and 2^32 times the fractional parts.
      kappa: the rate at which weights fall with the cost.
      depth: the rates at which weights rise with the ranks that each output has to spare; 0 where depth does not count.
    """

    whole: Int[Array, "ends"]
    rest: UInt32[Array, "ends"]
    kappa: Float[Array, ""]
    depth: Float[Array, "outputs"]

    def since(self, first: Int[Array, "*k"], last: Int[Array, ""]) -> tuple[Int[Array, "*k"], UInt32[Array, "*k"]]:
        """T_last - T_first, whole and rest."""
        borrow = self.rest[last] < self.rest[first]
        return self.whole[last] - self.whole[first] - borrow.astype(jnp.int32), self.rest[last] - self.rest[first]

    @property
    def outputs(self) -> int:
        return self.whole.shape[0] - 2


@frozen
class Pieces:
    """The axis in order: the values of points, and the pieces of what lies between them.

    Attributes:
      log_cell: ln of the weight of the q-th point's value, q = 0, 1, ...; -inf from n on.
      inside: whether rank q lies inside a value: points q - 1 and q (from 0) share theirs.
      log_gap: ln(h_c / h_(c-1)) of each piece, c = 1, ..., m.
      log_tail: ln h_c of the part, at each rank, of an interval that ends there; if `cut`, such parts are among the pieces.
      rank: the rank of each piece, in order; without `cut` piece r is the part of rank r in the interval in which rank r ends.
      opens: whether an interval begins with the piece.
      last: the last piece of rank r, for all r = 0, ..., n; past n it is arbitrary.
      log_empty: ln of the weight of tuples in all empty intervals within each gap between rows, without the factor for their ranks.
      gap_rank: the rank of each gap.
      n: the number of points.
      cut: whether one interval may have several pieces of one rank (static).
    """

    log_cell: Float[Array, "ranks"]
    inside: Bool[Array, "ranks"]
    log_gap: Float[Array, "outputs pieces"]
    log_tail: Float[Array, "outputs ranks"] | None
    rank: Int[Array, "pieces"]
    opens: Bool[Array, "pieces"]
    last: Int[Array, "ranks"]
    log_empty: Float[Array, "gaps"]
    gap_rank: Int[Array, "gaps"]
    n: Int[Array, ""]
    cut: bool = static()


@frozen
class Borders:
    """Where intervals begin.

    Attributes:
      opens: for each rank, whether an interval begins there.
      since: for each rank, the rank at which the interval began that contains the beginning of this rank.
      within: for each rank, the rank at which the interval began that contains the end of this rank.
      left: for each piece, whether it belongs to the interval in which its rank begins.
    """

    opens: Bool[Array, "ranks"]
    since: Int[Array, "ranks"]
    within: Int[Array, "ranks"]
    left: Bool[Array, "pieces"]


@frozen
class States:
    """ln of the weights of all beginnings whose last output has its rank in some way: see the module.

    Attributes:
      kept: for each output a at which the rank was set (0: none was, all of them are T_j), and each q <= the rank < q + 1.
      upper: at rank r, the upper end of the value below.
      lower: at rank r, the lower end of the value above.
      between: c outputs of each piece, c = 1, ..., m.
      ended: the last output and all that follow lie where an interval ends, unless this is a piece. These are weights of whole tuples, with
        all of their gaps.
    """

    kept: Float[Array, "*k outputs ranks"]
    upper: Float[Array, "*k ranks"]
    lower: Float[Array, "*k ranks"]
    between: Float[Array, "*k outputs pieces"]
    ended: Float[Array, "*k ranks"]


def borders(pieces: Pieces) -> Borders:
    """Where the intervals of pieces begin."""
    place = jnp.arange(pieces.last.shape[0], dtype=jnp.int32)
    begun = jnp.cumsum(pieces.opens, dtype=jnp.int32)
    up_to = begun[pieces.last]
    earlier = jnp.concatenate([jnp.zeros(1, jnp.int32), up_to[:-1]])
    opens = up_to > earlier
    within = lax.cummax(jnp.where(opens, place, 0))
    rank = jnp.minimum(pieces.rank, place.size - 1)
    return Borders(
        opens=opens,
        since=jnp.concatenate([jnp.zeros(1, jnp.int32), within[:-1]]),
        within=within,
        left=begun == earlier[rank],
    )


def complete(log_power: Float[Array, "outputs *k"]) -> Float[Array, "more *k"]:
    """ln h_0, ..., ln h_m of weights from ln p_1, ..., ln p_m, the sums of their powers.

    >>> weights = jnp.array([1.0, 2.0])
    >>> [round(h, 3) for h in jnp.exp(complete(jnp.log(jnp.stack([weights.sum(), (weights**2).sum()])))).tolist()]
    [1.0, 3.0, 7.0]
    """
    count = log_power.shape[0]
    order = jnp.arange(count, dtype=jnp.int32)

    def step(found: Array, c: Array) -> tuple[Array, Array]:
        """found: ln h_(c-1), ..., ln h_0, then nothing."""
        log_h = logspace.logsumexp(jnp.moveaxis(log_power + found, 0, -1)) - jnp.log(c.astype(float))
        return jnp.concatenate([log_h[None], found[:-1]]), log_h

    start = jnp.full(log_power.shape, -jnp.inf).at[0].set(0.0)
    each = lax.scan(step, start, order + 1)[1]
    return jnp.concatenate([jnp.zeros_like(log_power[:1]), each])


def ratios(log_h: Float[Array, "more *k"]) -> Float[Array, "outputs *k"]:
    """ln(h_c / h_(c-1)), -inf where there is nothing."""
    return jnp.where(jnp.isneginf(log_h[1:]), -jnp.inf, log_h[1:] - logspace.finite(log_h[:-1]))


def _add(a: Float[Array, "*s"], b: Float[Array, "*s"]) -> Float[Array, "*s"]:
    """ln(exp a + exp b), by the logarithm that is vectorised: beside the greater term no digit that counts is lost."""
    top, low = logspace.greater_of(a, b), logspace.lesser_of(a, b)
    # For two terms that are -inf the difference, and all derivatives, would be NaN.
    return top + jnp.log(1.0 + jnp.exp(low - logspace.greater_of(LEAST, top)))


def _add_up(logs: Float[Array, "*k n"], decay: Float[Array, "*k n"]) -> Float[Array, "*k n"]:
    """y_i = ln(exp(y_(i-1) - decay_i) + exp(logs_i)) along the last axis.

    The recursion runs first within rows of about sqrt(n) entries, all rows at a time, then from row to row; then what comes from the rows
    before fades along each row. So there are few steps, and each number is rounded few times. All of it runs across the rows, where steps
    are vectors.
    """
    n = logs.shape[-1]
    width = 1 << ((n - 1).bit_length() + 1) // 2
    pad = [(0, 0)] * (logs.ndim - 1) + [(0, -n % width)]

    def across(values: Array, fill: float) -> Float[Array, "width *k rows"]:
        rows = jnp.pad(values, pad, constant_values=fill).reshape(*values.shape[:-1], -1, width)
        return jnp.moveaxis(rows, -1, 0)

    def along(carry: Array, here: tuple[Array, Array]) -> tuple[Array, Array]:
        log, step = here
        carry = _add(carry - step, log)
        return carry, carry

    def fading(carry: Array, here: tuple[Array, Array]) -> tuple[Array, Array]:
        log, step = here
        carry = carry - step
        return carry, _add(carry, log)

    steps = across(decay, 0.0)
    nothing = jnp.full(steps.shape[1:], -jnp.inf)
    inside = lax.scan(along, nothing, (across(logs, -jnp.inf), steps))[1]
    of_rows = (jnp.moveaxis(inside[-1], -1, 0), jnp.moveaxis(jnp.sum(steps, axis=0), -1, 0))
    ends = jnp.moveaxis(lax.scan(along, nothing[..., 0], of_rows)[1], 0, -1)
    before = jnp.concatenate([nothing[..., :1], ends[..., :-1]], axis=-1)
    if n <= SHORT:
        faded = before[..., None] - jnp.cumsum(jnp.moveaxis(steps, 0, -1), axis=-1)
        found = _add(jnp.moveaxis(inside, 0, -1), faded)
    else:
        found = jnp.moveaxis(lax.scan(fading, before, (inside, steps))[1], 0, -1)
    return found.reshape(*logs.shape[:-1], -1)[..., :n]


def _at(logs: Float[Array, "n"], index: Int[Array, "*k"], least: Int[Array, "*k"]) -> Float[Array, "*k"]:
    """The entries at `index`; -inf at places below the least one, which is at least 0."""
    return jnp.where(index >= least, logs[jnp.maximum(index, 0)], -jnp.inf)


# ---------------------------------------------------------------------------------------------------------- one more output


@frozen
class Move:
    """The step from output j to the next one: t, and how far each row of kept ranks moves.

    Attributes:
      whole, rest: the integer and the fractional part of t.
      ahead: the fractional parts of the ranks before the step.
      carry: whether the ranks pass one integer more than t does.
      exact: whether the ranks are integers after the step.
    """

    whole: Int[Array, ""]
    rest: Float[Array, ""]
    ahead: Float[Array, "outputs"]
    carry: Bool[Array, "outputs"]
    exact: Bool[Array, "outputs"]

    def steps(self) -> Float[Array, ""]:
        """t."""
        return self.whole.astype(float) + self.rest

    def shift(self) -> Int[Array, "outputs"]:
        """How far q moves."""
        return self.whole + self.carry.astype(jnp.int32)

    def after(self) -> Float[Array, "outputs"]:
        """The fractional parts of the ranks after the step."""
        return jnp.where(self.exact, 0.0, self.ahead + self.rest - self.carry.astype(float))


def _move(targets: Targets, index: Int[Array, ""], count: int) -> Move:
    """The step for `count` rows: that of output `index`, and all that follow, have ranks that this output has set."""
    rows = jnp.arange(count, dtype=jnp.int32)
    _, ahead = targets.since(jnp.minimum(rows, index), index)
    whole, rest = targets.since(index, index + 1)
    after = ahead + rest
    return Move(
        whole=whole,
        rest=rest.astype(float) * ULP,
        ahead=ahead.astype(float) * ULP,
        carry=after < ahead,
        exact=after == 0,
    )


@jax.custom_jvp
def _log(sums: Float[Array, "n"]) -> Float[Array, "n"]:
    """ln, whose derivative is 0 where there is nothing, not NaN. (A choice of another argument there makes a run take a quarter longer.)"""
    return jnp.log(sums)


@_log.defjvp
def _(primals: tuple[Array], tangents: tuple[Array]) -> tuple[Array, Array]:
    (sums,), (tangent,) = primals, tangents
    return _log(sums), tangent / jnp.where(sums == 0, 1.0, sums)


def _top(logs: Float[Array, "k n"]) -> Float[Array, "n"]:
    """The factors taken out of sums over rows: they cancel in the sums, and so in their derivatives."""
    return logspace.finite(lax.stop_gradient(jnp.max(logs, axis=0)))


def _over_rows(logs: Float[Array, "k n"]) -> Float[Array, "n"]:
    """ln of the sums over rows, which lie across vectors: several times as fast as along them."""
    top = _top(logs)
    return top + _log(jnp.sum(jnp.exp(logs - top[None]), axis=0))


def _by_class(logs: Float[Array, "k n"], second: Bool[Array, "k"]) -> tuple[Float[Array, "n"], Float[Array, "n"]]:
    """The same over the rows that are not in the second class, and over those that are, by one exponential each."""
    classes = ~second[:, None], second[:, None]
    plain, other = (_top(jnp.where(chosen, logs, -jnp.inf)) for chosen in classes)
    parts = jnp.exp(logs - jnp.where(classes[1], other[None], plain[None]))
    sums = [jnp.sum(jnp.where(chosen, parts, 0.0), axis=0) for chosen in classes]
    return plain + _log(sums[0]), other + _log(sums[1])


def _onward(
    pieces: Pieces, closed: Float[Array, "pieces"]
) -> tuple[Float[Array, "ranks"], Float[Array, "pieces"] | None]:
    """(ln of what lies between values, in the interval in which each rank ends; of what lies before each piece in its own rank and
    interval, if such pieces may be)."""
    if not pieces.cut:
        return closed, None
    anew = jnp.concatenate([jnp.ones(1, bool), pieces.rank[1:] > pieces.rank[:-1]]) | pieces.opens
    up_to = _add_up(closed, jnp.where(anew, jnp.inf, 0.0))
    earlier = jnp.concatenate([jnp.full(1, -jnp.inf), jnp.where(anew[1:], -jnp.inf, up_to[:-1])])
    return up_to[pieces.last], earlier


def _set_by_last(
    pieces: Pieces, cut: Borders, states: States
) -> tuple[Float[Array, "ranks"], Float[Array, "pieces"] | None]:
    """(ln of what the last output has set to each rank, and may be kept from here on; see `_onward`)."""
    onward, same = _onward(pieces, _over_rows(states.between))
    upper = jnp.where(cut.opens, -jnp.inf, states.upper)
    return _over_rows(jnp.stack([onward, upper, states.lower])), same


def _arrive(
    cut: Borders, rows: Float[Array, "outputs ranks"], move: Move, kappa: Float[Array, ""]
) -> tuple[Float[Array, "ranks"], Float[Array, "ranks"]]:
    """(ln of what is set to each rank from above, from lower ranks than it; ln of what is set to it from below)."""
    place = jnp.arange(rows.shape[1], dtype=jnp.int32)
    whole, rest = move.whole, move.rest
    fall, rise = kappa * move.ahead[:, None], kappa * (1 - rest)
    plain, carried = _by_class(rows - fall, move.carry)  # of a cost that grows with the rest of the rank
    plain_up, carried_up = _by_class(rows + fall, move.carry)  # of one that falls
    plain_up, carried_up = plain_up - rise, carried_up - rise - kappa
    # What comes to less than r: all of both classes at least this far away, and of one class what is one rank nearer.
    # What comes to more: all of the window r - size, ..., r - 1, the end of one block of its size and the beginning of the next one (what
    # is before `since` is cut), and of one class what is one rank further away.
    size = jnp.maximum(whole, 1)
    inside = lax.rem(place, size)  # the only division, which is not vectorised
    both = _add(plain, carried)
    faded, ends, starts = _add_up(
        jnp.stack([_add(plain_up - kappa, carried_up), both[::-1], both - kappa * inside.astype(float)]),
        jnp.stack(
            [
                jnp.where(cut.opens, jnp.inf, kappa),
                jnp.where(inside == size - 1, jnp.inf, kappa)[::-1],
                jnp.where((inside == 0) | cut.opens, jnp.inf, 0.0),
            ]
        ),
    )
    at = place - whole - 1
    below = _add(_at(faded, at - 1, cut.since), _at(plain_up, at, cut.since))
    first = place - size
    start = (place - 1) - jnp.concatenate([inside[:1], inside[:-1]])
    one_block = inside == 0
    least = jnp.maximum(first, cut.since)
    end_part = _at(ends[::-1], least, least) - kappa * (whole - (place - least)).astype(float)
    end_part = jnp.where((first >= 0) & (one_block | (least < start)), end_part, -jnp.inf)
    start_part = _at(starts, place - 1, jnp.zeros_like(place)) - kappa * (whole - place + start).astype(float)
    start_part = jnp.where(one_block, -jnp.inf, start_part)
    window = jnp.where(whole > 0, _add(end_part, start_part), -jnp.inf) - kappa * rest
    return _add(window, _at(carried, at, cut.since) + rise), below


def _first(targets: Targets, ranks: int) -> tuple[Float[Array, "ranks"], Float[Array, "ranks"]]:
    """The same for the first output."""
    place = jnp.arange(ranks, dtype=jnp.int32)
    steps = targets.since(jnp.int32(0), jnp.int32(1))
    logs, whole = -targets.kappa * jnp.abs(_over(place, steps)), steps[0]
    return jnp.where(place <= whole, logs, -jnp.inf), jnp.where(place > whole, logs, -jnp.inf)


def step(pieces: Pieces, cut: Borders, targets: Targets, states: States, index: Int[Array, ""]) -> States:
    """States after one more output than `index`."""
    move, begins = _move(targets, index, targets.outputs), index == 0
    place = jnp.arange(pieces.last.shape[0], dtype=jnp.int32)
    newest, same = _set_by_last(pieces, cut, states)
    rows = lax.dynamic_update_index_in_dim(states.kept, jnp.where(begins, states.kept[0], newest), index, 0)
    above, below = (
        jnp.where(begins, states.kept[0, 0] + first, later)
        for first, later in zip(_first(targets, place.size), _arrive(cut, rows, move, targets.kappa), strict=True)
    )
    stays = targets.kappa * move.steps()
    free = begins | ~cut.opens  # what may come to the lower end of a value

    # Kept: all of a row moves, as long as it stays within its interval.
    came_from = place[None] - move.shift()[:, None]
    least = jnp.where(begins, 0, cut.within)[None]
    kept = jnp.where(
        came_from >= least, jnp.take_along_axis(rows, jnp.clip(came_from, 0, place.size - 1), axis=1), -jnp.inf
    )
    # Fractional parts are equal: the ranks meet the ends of values.
    meets = jnp.where(move.exact[:, None], kept, -jnp.inf)
    at_edge = _over_rows(jnp.concatenate([below[None], meets]))
    cells = jnp.where(move.exact[:, None] & ~pieces.inside[None], -jnp.inf, pieces.log_cell[None])

    before = jnp.concatenate([jnp.full(1, -jnp.inf), pieces.log_cell[:-1]])
    set_above = _add(above, states.upper - stays)
    arrived = _add(set_above, below)
    each = jnp.where(begins | cut.left, _of_pieces(pieces, arrived), -jnp.inf)
    if same is not None:
        each = _add(each, jnp.where(begins, -jnp.inf, same - stays))
    more = jnp.concatenate([each[None], states.between[:-1] - stays])
    ended = jnp.full(place.shape, -jnp.inf)
    if pieces.log_tail is not None:
        ended = arrived + pieces.log_tail[targets.outputs - 1 - index] + _staying(pieces, targets, index + 1, place)
    return States(
        kept=kept + cells,
        upper=jnp.where(pieces.inside, -jnp.inf, set_above + before),
        lower=jnp.where(pieces.inside | ~free, -jnp.inf, at_edge + pieces.log_cell),
        between=more + pieces.log_gap,
        ended=ended,
    )


def _of_pieces(pieces: Pieces, by_rank: Float[Array, "ranks"]) -> Float[Array, "pieces"]:
    """The entry of `by_rank` for the rank of each piece."""
    if pieces.cut:
        return by_rank[jnp.minimum(pieces.rank, by_rank.size - 1)]
    return by_rank


def start(pieces: Pieces) -> States:
    """The states before any output: the rank is 0."""
    outputs, ranks = pieces.log_gap.shape[0], pieces.last.shape[0]
    nothing = jnp.full(ranks, -jnp.inf)
    return States(
        kept=jnp.full((outputs, ranks), -jnp.inf).at[0, 0].set(0.0),
        upper=nothing,
        lower=nothing,
        between=jnp.full(pieces.log_gap.shape, -jnp.inf),
        ended=nothing,
    )


def finish(pieces: Pieces, targets: Targets, states: States) -> States:
    """States after all outputs, with the last gap, from each rank to n."""
    move = _move(targets, jnp.int32(targets.outputs), targets.outputs)
    place = jnp.arange(pieces.last.shape[0], dtype=jnp.int32)
    over = (pieces.n - place - move.whole).astype(float) - move.rest
    ends = -targets.kappa * jnp.abs(over)
    kept = -targets.kappa * jnp.abs(over[None] - move.ahead[:, None])
    kept = kept.at[0].add(_spare(pieces, targets))
    return States(
        kept=states.kept + kept,
        upper=states.upper + ends,
        lower=states.lower + ends,
        between=states.between + _of_pieces(pieces, ends)[None],
        ended=jnp.full_like(states.ended, -jnp.inf),
    )


def _spare(pieces: Pieces, targets: Targets) -> Float[Array, ""]:
    """ln of the factor of the tuple in which no rank is ever set, for its depth; where some T_j lies within no value there is none."""
    at, rest = jnp.minimum(targets.whole[1:-1], pieces.inside.size - 2), targets.rest[1:-1].astype(float) * ULP
    first, end = _ends(pieces, at)
    return jnp.min(targets.depth * jnp.minimum((at - first).astype(float) + rest, (end - at).astype(float) - rest))


def _ends(pieces: Pieces, at: Int[Array, "*k"]) -> tuple[Int[Array, "*k"], Int[Array, "*k"]]:
    """(#{x < v}, #{x <= v}) of the value v of each of these points."""
    place = jnp.arange(pieces.inside.size, dtype=jnp.int32)
    first = lax.cummax(jnp.where(pieces.inside, 0, place))
    end = lax.cummin(jnp.where(pieces.inside, place.size, place), reverse=True)
    return first[at], end[at + 1]


def _total(states: States) -> Float[Array, ""]:
    parts = (states.kept, states.upper, states.lower, states.between)
    return logspace.logsumexp(jnp.concatenate([part.reshape(-1) for part in parts]))


def _staying(pieces: Pieces, targets: Targets, index: Int[Array, ""], rank: Int[Array, "*k"]) -> Float[Array, "*k"]:
    """ln of the factor of all gaps behind output `index`, if it and all that follow are set to a rank from above."""
    m = jnp.int32(targets.outputs)
    stays, over = -_over(jnp.int32(0), targets.since(index, m)), _over(pieces.n - rank, targets.since(m, m + 1))
    return -targets.kappa * (stays + jnp.abs(over))


def _alone(pieces: Pieces, targets: Targets) -> Float[Array, "gaps"]:
    """ln of the weight of tuples in the empty intervals of each gap: all outputs have its rank, set from above but for the first."""
    come = -targets.kappa * jnp.abs(_over(pieces.gap_rank, targets.since(jnp.int32(0), jnp.int32(1))))
    return pieces.log_empty + come + _staying(pieces, targets, jnp.int32(1), pieces.gap_rank)


def _over(ranks: Int[Array, "*k"], steps: tuple[Array, Array]) -> Float[Array, "*k"]:
    """Ranks less t, which is given by its integer part and the rest: integers are subtracted before anything is rounded."""
    whole, rest = steps
    return (ranks - whole).astype(float) - rest.astype(float) * ULP


# ---------------------------------------------------------------------------------------------------------- sums


def forward(pieces: Pieces, targets: Targets) -> tuple[Float[Array, ""], States]:
    """ln of the weight of all tuples, and the states after each output."""
    cut = borders(pieces)

    def one(carry: tuple[States, Array], index: Array) -> tuple[tuple[States, Array], States]:
        states, ended = carry
        states = step(pieces, cut, targets, states, index)
        return (states, logspace.logaddexp(ended, logspace.logsumexp(states.ended))), states

    begin = start(pieces), jnp.full((), -jnp.inf)
    (last, ended), each = lax.scan(one, begin, jnp.arange(targets.outputs, dtype=jnp.int32))
    others = logspace.logaddexp(ended, logspace.logsumexp(_alone(pieces, targets)))
    return logspace.logaddexp(_total(finish(pieces, targets, last)), others), each


@frozen
class Marks:
    """What is marked for each output: values of points, pieces, and gaps with their empty intervals."""

    cell: Bool[Array, "outputs ranks"]
    piece: Bool[Array, "outputs pieces"]
    gap: Bool[Array, "outputs gaps"]


def split(pieces: Pieces, targets: Targets, marks: Marks) -> Float[Array, "2"]:
    """(ln of the weight of tuples whose every output is marked for it, that of all others)."""
    cut = borders(pieces)

    def one(states: States, here: tuple[Array, Array, Array]) -> tuple[States, None]:
        """Two sets of states: with all outputs so far marked, and all others."""
        index, cell, piece = here
        stepped = jax.vmap(lambda each: step(pieces, cut, targets, each, index))(states)
        before = jnp.concatenate([jnp.zeros(1, bool), cell[:-1]])
        marked = States(kept=cell[None], upper=before, lower=cell, between=piece[None], ended=cell)

        def part(logs: Array, marked: Array) -> Array:
            good = jnp.where(marked, logs[0], -jnp.inf)
            return jnp.stack([good, logspace.logaddexp(logs[1], jnp.where(marked, -jnp.inf, logs[0]))])

        return jax.tree.map(part, stepped, marked), None

    good = start(pieces)
    states = jax.tree.map(lambda leaf: jnp.stack([leaf, jnp.full_like(leaf, -jnp.inf)]), good)
    index = jnp.arange(targets.outputs, dtype=jnp.int32)
    states, _ = lax.scan(one, states, (index, marks.cell, marks.piece))
    totals = jax.vmap(lambda each: _total(finish(pieces, targets, each)))(states)
    alone, all_marked = _alone(pieces, targets), jnp.all(marks.gap, axis=0)
    apart = jnp.stack([jnp.where(all_marked, alone, -jnp.inf), jnp.where(all_marked, -jnp.inf, alone)])
    return logspace.logaddexp(totals, logspace.logsumexp(apart))


# ---------------------------------------------------------------------------------------------------------- one tuple


@frozen
class Drawn:
    """Where the outputs of a tuple lie.

    Attributes:
      kind: KEPT: the value of point `at`; UPPER: that of point `at` - 1; LOWER: that of point `at`; BETWEEN: the gap before point `at`.
      at: the index of that point.
      tail: whether an output in a gap lies in the interval of the point before it, which ends there.
      empty: whether all outputs lie in one of the empty intervals of the gap before point `at`.
    """

    kind: Int[Array, "outputs"]
    at: Int[Array, "outputs"]
    tail: Bool[Array, "outputs"]
    empty: Bool[Array, ""]


def nowhere(outputs: int) -> Drawn:
    """No tuple yet."""
    none = jnp.zeros(outputs, jnp.int32)
    return Drawn(kind=none, at=none, tail=jnp.zeros(outputs, bool), empty=jnp.bool_(False))


def ends_of(pieces: Pieces, found: Drawn) -> tuple[Int[Array, "outputs"], Int[Array, "outputs"]]:
    """(#{x < z}, #{x <= z}) of each output."""
    cell = jnp.where(found.kind == UPPER, found.at - 1, found.at)
    first, end = _ends(pieces, jnp.clip(cell, 0, pieces.inside.size - 2))
    between = found.kind == BETWEEN
    return jnp.where(between, found.at, first), jnp.where(between, found.at, end)


def draw(key: Any, pieces: Pieces, targets: Targets, each: States) -> Drawn:
    """One tuple, from the last output to the first; the states are those of `forward`, and nothing is cut."""
    outputs, ranks = targets.outputs, pieces.last.shape[0]
    cut, place = borders(pieces), jnp.arange(ranks, dtype=jnp.int32)
    keys = jax.random.split(jax.random.fold_in(key, outputs), 3)  # those of outputs are below
    last = jax.tree.map(lambda leaf: leaf[-1], each)
    alone, ended = _alone(pieces, targets), logspace.logsumexp(each.ended.reshape(-1))
    in_all = (_total(finish(pieces, targets, last)), logspace.logsumexp(alone), ended)
    whole = logspace.draw(keys[0], logspace.sum_tree(jnp.stack(in_all)))
    gap = jnp.minimum(logspace.draw(keys[1], logspace.sum_tree(alone)), alone.size - 1)
    in_tail, end = _cell(keys[2], each.ended)
    spare = _spare(pieces, targets)
    # The first output, from 1, of those where an interval ends.
    first = jnp.where(whole == 2, in_tail + 1, outputs + 1)

    def set_at(states: States, rank: Array, ends: Array) -> Float[Array, "ways"]:
        """ln of the weights set to a rank: upper (unless its interval ends, but something follows), lower, then c outputs of its piece."""
        upper = jnp.where(ends | ~cut.opens[rank], states.upper[rank], -jnp.inf)
        return jnp.concatenate([jnp.stack([upper, states.lower[rank]]), states.between[:, rank]])

    def one(state: Any, here: tuple[Array, States]) -> tuple[tuple[Array, ...], tuple[Array, ...]]:
        """From the output that follows, its kind, rank, row, and how many before it lie in the same piece, to this one."""
        kind, at, which, ahead = state
        index, states = here  # the states after output `index` = 1, ..., m
        key_before, key_way = jax.random.split(jax.random.fold_in(key, index - 1))
        move, ends = _move(targets, index, outputs + 1), index == outputs
        newest, _ = _set_by_last(pieces, cut, states)
        everything = _over_rows(jnp.concatenate([jnp.stack([states.upper, states.lower]), states.between]))
        rows = jnp.concatenate([states.kept, jnp.where(ends, everything, newest)[None]])
        # From which ranks it may have been set, from below or from above, within its interval; and what has the same rank.
        reached = place[None] + move.shift()[:, None]
        before = ((place < at) & (place >= cut.since[at]))[None]
        fits = jnp.where(kind == UPPER, reached >= at, True) & jnp.where(
            kind == LOWER, (reached < at) | ((reached == at) & move.exact[:, None]), True
        )
        over = (reached - at).astype(float) + move.after()[:, None]
        logs = jnp.where(ends | (fits & before), rows - targets.kappa * jnp.abs(over), -jnp.inf)
        logs = logs.at[0].add(jnp.where(ends, spare, 0.0))
        same = ~ends & ((kind == UPPER) | (kind == BETWEEN))
        stays = jnp.where(same & (place == at), states.upper - targets.kappa * move.steps(), -jnp.inf)
        row, rank = _cell(key_before, jnp.concatenate([logs, stays[None]]))
        stayed = row == logs.shape[0]
        keeps = ~ends & (kind == KEPT)
        a = jnp.where(keeps, which, jnp.minimum(row, logs.shape[0] - 1))
        q = jnp.where(keeps, at - move.shift()[which], rank)
        ways = set_at(states, q, ends)
        way = jnp.minimum(logspace.draw(key_way, logspace.sum_tree(ways)), ways.size - 1)
        newly = jnp.select([way == 0, way == 1], [UPPER, LOWER], BETWEEN), q, 0, jnp.maximum(way - 2, 0)
        found = _select((a == index) | (a == outputs), newly, (KEPT, q, a, 0))
        found = _select(stayed & ~keeps, (UPPER, at, 0, 0), found)
        found = _select(~ends & (kind == BETWEEN) & (ahead > 0), (kind, at, which, ahead - 1), found)
        found = _select(index >= first, (BETWEEN, end, 0, 0), found)
        return found, found[:2]

    order = jnp.arange(1, outputs + 1, dtype=jnp.int32)
    # What is behind the last output is of no kind: all ranks may come before it.
    behind: Any = jnp.int32(KEPT), pieces.n, jnp.int32(0), jnp.int32(0)
    _, (kind, at) = lax.scan(one, behind, (order, each), reverse=True)
    empty = whole == 1
    return Drawn(kind=jnp.where(empty, BETWEEN, kind), at=jnp.where(empty, gap, at), tail=order >= first, empty=empty)


def _cell(key: Any, logs: Float[Array, "rows ranks"]) -> tuple[Int[Array, ""], Int[Array, ""]]:
    """(row, rank) with probability proportional to its weight; ranks of weight 0 at the end do not change the draw."""
    key_rank, key_row = jax.random.split(key)
    rank = jnp.minimum(logspace.draw(key_rank, logspace.sum_tree(_over_rows(logs))), logs.shape[1] - 1)
    row = jnp.minimum(logspace.draw(key_row, logspace.sum_tree(logs[:, rank])), logs.shape[0] - 1)
    return row, rank


def _select(chosen: Bool[Array, ""], here: tuple[Any, ...], else_: tuple[Any, ...]) -> tuple[Int[Array, ""], ...]:
    return tuple(jnp.where(chosen, a, b).astype(jnp.int32) for a, b in zip(here, else_, strict=True))
