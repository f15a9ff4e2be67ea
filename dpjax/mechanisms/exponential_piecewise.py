"""The exponential mechanism over a wide range, for a quality function that is constant on pieces.

McSherry and Talwar 2007 (BNS Proposition 2.26): P[h] is proportional to exp(epsilon q(h) / 2), for q of sensitivity 1. A piece
of length w and value v weighs w exp(epsilon v / 2); w may be as large as 2^4096 and is kept as a logarithm, so the law over
2^1024 points costs as much as the law over the pieces.

**Formal guarantees.** (epsilon, 0) under the relation for which q has sensitivity 1 (for the number of correctly labelled
examples: REPLACE_ONE, and ADD_OR_REMOVE_ONE), when the set of points offered does not depend on the data. In float32 rounding
adds about 1e-6 to a privacy loss; where a few points outweigh a wide domain, it adds up to 6e-8 times the nats by which each of them
does. Not promised: protection from floating-point side channels, or a cryptographic generator.

    >>> import jax
    >>> from dpjax.domains import ordered, wide
    >>> pieces = ordered.from_breakpoints([0, 2**20, 2**20 + 5], [0.0, 44.0, 1.0], 2**31, beyond=0.0)
    >>> choose = mechanism(epsilon=1.0)
    >>> float(choose.probability(pieces, (2**20, 2**20 + 5))[0]) > 0.7
    True
    >>> wide.to_ints(choose(jax.random.key(1), pieces).hypothesis)[0] - 2**20
    3
"""

import math
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, UInt32

from dpjax.accounting.guarantee import RELATIONS, REPLACE_ONE
from dpjax.core import arguments, logspace, random, staging
from dpjax.core.pytree import frozen, select, stacked, static
from dpjax.core.staging import once
from dpjax.data.algorithm import LARGEST_PMF
from dpjax.domains import ordered, wide
from dpjax.domains.events import Accurate, Goal, Interval, number
from dpjax.domains.ordered import Crest, Cut, Pieces
from dpjax.domains.scaled import Starts
from dpjax.domains.wide import LogParts
from dpjax.mechanisms.base import Mechanism


def goal(pieces: Pieces, marked: Any) -> Goal:
    """The points of the marked pieces (one flag per piece, empty ones included)."""
    return Goal(marked=jnp.asarray(marked, bool), within=everything(pieces))


def everything(pieces: Pieces) -> Interval:
    """The whole range {0, ..., last}."""
    zero = jnp.zeros_like(pieces.last)
    return Interval(low=zero, high=wide.add(pieces.last, wide.one(pieces.limbs)))


def log_density(pieces: Pieces, epsilon: Float[Array, ""], crest: Crest | None = None) -> Float[Array, "pieces"]:
    """ln of the weight per point, epsilon q / 2, minus that of the best: where the mass is, float32 keeps its digits for any n."""
    return epsilon * (pieces.values - ordered.greatest(pieces, crest)) / 2


def peak_density(pieces: Pieces, epsilon: Float[Array, ""]) -> Float[Array, "pieces"]:
    """`log_density` of a peak whose top piece is not empty; it needs no search."""
    return epsilon * (pieces.values - pieces.values[ordered.top_of_peak(pieces)]) / 2


# ------------------------------------------------------------------------------------------------------- exact law


@frozen
class Judge:
    """Everything needed to weigh the good and the bad hypotheses of any interval in O(log pieces) steps.

    It holds three weightings of the pieces (all, the marked ones only, the unmarked ones only): for each, the log weight per point
    and the partial sums of the pieces' weights, in logs. Lengths are in units of 2^bits points.
    """

    pieces: Pieces
    within: tuple[Cut, Cut]
    log_density: Float[Array, "3 pieces"]
    trees: Float[Array, "3 nodes"]
    bits: Int[Array, ""]

    def log_masses(self, interval: Interval) -> Float[Array, "2"]:
        """(ln weight of the good points, ln weight of the bad ones) of an interval: sums of positive terms only."""
        low, high = (self.pieces.cut(end, self.bits) for end in (interval.low, interval.high))
        return self.weigh(segments(low, high, self.within, self.bits))

    def weigh(self, parts: "Segment") -> Float[Array, "2"]:
        """`log_masses` of three segments: those within, below and beyond the goal's interval."""
        inside, beneath, beyond = jax.vmap(self._log_mass)(parts)
        good, bad_inside = inside[1], inside[2]
        bad = logspace.logsumexp(jnp.stack([bad_inside, beneath[0], beyond[0]]))
        return jnp.stack([good, bad])

    def _log_mass(self, part: "Segment") -> Float[Array, "3"]:
        """ln of the total weight of the segment's points, by each weighting; -inf if it has none."""
        left, right = part.left + self.log_density[:, part.first], part.right + self.log_density[:, part.last]
        between = logspace.range_sum(self.trees, part.first + 1, part.last)
        mass = logspace.logsumexp(jnp.stack([left, between, right], axis=-1))
        return jnp.where(part.some, mass, -jnp.inf)


@frozen
class Segment:
    """What lies between two cuts: the end of a first piece, whole pieces and the beginning of a last one, or part of a single piece.

    Attributes:
      first, last: the pieces that hold its first and its last point.
      left, right: ln of how many points of `first` and of `last` it has, over 2^bits; if these are one piece, `right` is -inf.
      some: whether it has any points.
    """

    first: Int[Array, "*n"]
    last: Int[Array, "*n"]
    left: Float[Array, "*n"]
    right: Float[Array, "*n"]
    some: Bool[Array, "*n"]


def segments(low: Cut, high: Cut, within: tuple[Cut, Cut], bits: Any = 0) -> Segment:
    """Three segments, stacked: what lies between two cuts and also within `within`, below it, and beyond it."""
    start, stop = within
    lows, highs = (low.greatest(start), low, low.greatest(stop)), (high.least(stop), high.least(start), high)
    return jax.vmap(lambda low, high: _segment(low, high, bits))(stacked(*lows), stacked(*highs))


def _segment(low: Cut, high: Cut, bits: Any) -> Segment:
    first, last = low.upto - 1, high.below - 1
    return Segment(
        first=first,
        last=last,
        left=jnp.where(first == last, low.log_length(high, bits), low.ahead),
        right=jnp.where(first == last, -jnp.inf, high.behind),
        some=low.precedes(high),
    )


def judge(pieces: Pieces, log_density: Float[Array, "pieces"], goal: Goal, bits: Any = 0) -> Judge:
    """Prepares the weights: laws of intervals of about 2^bits points lose the fewest digits."""
    log_length = pieces.log_lengths(bits=bits)
    each = jnp.stack([log_density, *goal.split(log_density)])
    trees = jax.vmap(logspace.sum_tree)(log_length[None] + each)
    within = pieces.cut(goal.within.low, bits), pieces.cut(goal.within.high, bits)
    return Judge(pieces=pieces, within=within, log_density=each, trees=trees, bits=jnp.asarray(bits, jnp.int32))


# --------------------------------------------------------------------------------------------------------- sampler


@frozen
class Point:
    """A drawn point and the piece that holds it."""

    position: UInt32[Array, "limbs"]
    piece: Int[Array, ""]


def draw(key: Array, pieces: Pieces, log_density: Float[Array, "pieces"], one: Interval, other: Interval) -> Point:
    """A point of two disjoint intervals, with probability proportional to its weight."""
    key_piece, key_point = jax.random.split(key)
    if pieces.limbs > wide.FLOAT_LIMBS:
        weights = once(_weights, once(_lengths, pieces, one, other), log_density)
    else:
        weights = once(_narrow_weights, pieces, log_density, one, other)
    piece = logspace.choose(key_piece, weights)
    part_one, part_other, length = _offered(pieces, piece, one, other)
    offset = wide.uniform(key_point, length)
    in_one = wide.less(offset, part_one.length())
    second = wide.add(part_other.low, wide.subtract(offset, part_one.length()))
    return Point(position=wide.select(in_one, wide.add(part_one.low, offset), second), piece=piece)


def _weights(lengths: LogParts, log_density: Array) -> Float[Array, "pieces"]:
    """The weight of each piece's points, relative to the largest."""
    return _shares(_relative(lengths, log_density))


def _narrow_weights(pieces: Pieces, log_density: Array, one: Interval, other: Interval) -> Float[Array, "pieces"]:
    """The same on a domain so narrow that all exponents of lengths are 0."""
    return _shares(_lengths(pieces, one, other).fraction + log_density)


def _shares(logs: Float[Array, "pieces"]) -> Float[Array, "pieces"]:
    return jnp.exp(logs - logspace.finite(jnp.max(logs)))


def _relative(lengths: LogParts, log_density: Float[Array, "pieces"]) -> Float[Array, "pieces"]:
    """ln of the weight of each piece's points, up to a constant."""
    return lengths.over(_unit(lengths, log_density)) + log_density


def _unit(lengths: LogParts, log_density: Float[Array, "pieces"]) -> Int[Array, ""]:
    """The exponent of the heaviest piece's length: in this unit the pieces that have any weight have the most accurate logarithms."""
    logs = lengths.over(0) + log_density
    # Not by `argmax`, which a CPU does not vectorise.
    return staging.greatest(jnp.where(logs == staging.greatest(logs), lengths.exponent, 0))


def _lengths(pieces: Pieces, one: Interval, other: Interval) -> LogParts:
    """ln of how many points of each piece are offered."""
    # Pieces inside an interval count in full; only the few at its borders need the exact length of the part that is offered.
    unit = wide.one(pieces.limbs)
    ends = jnp.stack([end for each in (one, other) for end in (wide.add(each.low, unit), each.high)])
    border = jnp.maximum(jax.vmap(pieces.search)(ends) - 1, 0)
    at_border = wide.log_parts(jax.vmap(lambda i: _offered(pieces, i, one, other)[2])(border))
    index = jnp.arange(pieces.count, dtype=jnp.int32)
    in_one, in_other = ((index > first) & (index < last) for first, last in border.reshape(2, 2))
    whole = pieces.log_parts()
    lengths = LogParts(fraction=jnp.where(in_one | in_other, whole.fraction, -jnp.inf), exponent=whole.exponent)
    for i in range(4):
        lengths = select(index == border[i], jax.tree.map(lambda leaf, i=i: leaf[i], at_border), lengths)
    return lengths


def _offered(
    pieces: Pieces, piece: Int[Array, ""], one: Interval, other: Interval
) -> tuple[Interval, Interval, UInt32[Array, "limbs"]]:
    """The parts of a piece that two disjoint intervals contain, and how many points these have together."""
    whole = Interval(low=pieces.at(piece), high=pieces.at(piece + 1))
    part_one, part_other = one.meet(whole), other.meet(whole)
    return part_one, part_other, wide.add(part_one.length(), part_other.length())


def draw_peak(key: Array, pieces: Pieces, log_density: Float[Array, "pieces"]) -> Point:
    """`draw_everywhere` for a peak, whose pieces fill whole rows of `LANES` or one shorter row."""
    if plain(pieces):
        weights = _rows(once(plain_weights, pieces, log_density))
        sums, descend = jnp.sum(weights, axis=1), _descend_plain
    else:
        lengths = once(Pieces.log_parts, pieces, everything(pieces).high)
        small = pieces.limbs <= wide.FLOAT_LIMBS
        weights = _rows(lengths.fraction + log_density if small else _relative(lengths, log_density))
        sums, descend = _row_sums(weights), _descend_logs
    return _of_rows(key, pieces, sums, lambda row: weights[row], descend)


def draw_shared_peak(key: Array, pieces: Pieces, top: Int[Array, ""], slope: Float[Array, ""]) -> Point:
    """A point of the whole range, for many peaks on the same pieces: ln of a point's weight is -slope |i - top| in piece i.

    Under vmap over `top` alone, the pieces' sizes are shared, and so are the sums over rows on which a peak only rises, or only falls: up
    to a factor they are the same for every peak. Each further peak costs the row of its top, the rows' weights and the row that is drawn.
    """
    lengths = once(Pieces.log_parts, pieces, everything(pieces).high)
    # In units of a point, and of the domain if it is wide: which of both keeps the digits that count is different for each peak.
    units: list[Any] = [0, pieces.exponent] if pieces.limbs > wide.FLOAT_LIMBS else [0]
    log_lengths = jnp.stack([_rows(lengths.over(unit)) for unit in units])
    _, rows, lanes = log_lengths.shape
    row, lane = jnp.arange(rows, dtype=jnp.int32), jnp.arange(lanes, dtype=jnp.int32)
    up = slope * lane.astype(float)[None, None]
    rise, fall = (_row_sums(log_lengths + way) for way in (up, -up))

    def in_row(row: Array, unit: Any) -> Float[Array, "lanes"]:
        return log_lengths[unit, row] - slope * jnp.abs(row * lanes + lane - top).astype(float)

    def sums(unit: Any) -> Float[Array, "rows"]:
        outside = jnp.where(row * lanes < top, rise[unit], fall[unit])
        outside = outside - slope * jnp.abs(row * lanes - top).astype(float)
        return jnp.where(row == top // lanes, _row_sums(in_row(top // lanes, unit)), outside)

    unit: Any = 0
    if len(units) > 1:
        unit = (jnp.max(sums(0)) > pieces.exponent.astype(float) * (math.log(2.0) / 2)).astype(jnp.int32)
    return _of_rows(key, pieces, sums(unit), lambda row: in_row(row, unit), _descend_logs)


def _rows(of_pieces: Float[Array, "pieces"]) -> Float[Array, "rows lanes"]:
    return of_pieces.reshape(-1, min(of_pieces.shape[0], logspace.LANES))


def _descend_plain(rarity: Array, weights: Array) -> Array:
    return logspace.descend(rarity, logspace.plain_tree(weights), jnp.log)


def _descend_logs(rarity: Array, weights: Array) -> Array:
    return logspace.descend(rarity, logspace.sum_tree(weights))


def _of_rows(key: Array, pieces: Pieces, weights: Float[Array, "rows"], in_row: Any, descend: Any) -> Point:
    """A point of the whole range, given the weights of the rows of pieces, in_row(row) and descend(rarity, weights)."""
    rows = weights.shape[0]
    lanes = pieces.count // rows
    key_piece, key_point = jax.random.split(key)
    rarity = random.exponential(key_piece, (lanes.bit_length() + rows.bit_length(),))
    row = descend(rarity[lanes.bit_length() :], weights)
    return uniform_within(key_point, pieces, row * lanes + descend(rarity, in_row(row)))


def draw_top(key: Array, pieces: Pieces) -> Point:
    """The same point as `draw_peak` if only the top piece has any weight; no weight is computed."""
    _, key_point = jax.random.split(key)
    return uniform_within(key_point, pieces, ordered.top_of_peak(pieces))


def uniform_within(key: Array, pieces: Pieces, piece: Int[Array, ""]) -> Point:
    """A uniform point of the part of a piece that belongs to the range."""
    beyond = everything(pieces).high
    start, stop = (wide.minimum(pieces.at(piece + i), beyond) for i in (0, 1))
    return Point(position=wide.add(start, wide.uniform(key, wide.subtract(stop, start))), piece=piece)


def plain(pieces: Pieces) -> bool:
    """Whether the lengths fit in floats and the starts are stored as whole rows."""
    return pieces.limbs <= wide.FLOAT_LIMBS and not isinstance(pieces.starts, Starts)


def plain_weights(pieces: Pieces, log_density: Float[Array, "pieces"]) -> Float[Array, "pieces"]:
    """The weight of each piece's points, where the best point weighs 1: without logarithms of lengths, and not relative to the largest.

    The density is applied in two factors, so that a long piece keeps its weight where the density alone would underflow. The density of
    an empty piece may exceed the best: if it overflowed, zero times it would be NaN, which a draw cannot tell from a weight.
    """
    length = pieces.lengths(everything(pieces).high)
    half = jnp.exp(jnp.where(length > 0, log_density, -jnp.inf) / 2)
    return length * half * half


def _row_sums(logs: Float[Array, "*rows lanes"]) -> Float[Array, "*rows"]:
    """`logspace.logsumexp` in two passes; not for differentiation."""
    best = logspace.finite(jnp.max(logs, axis=-1))
    return best + jnp.log(jnp.sum(jnp.exp(logs - best[..., None]), axis=-1))


# ------------------------------------------------------------------------------------------------------- mechanism


def law_everywhere(pieces: Pieces, log_density: Float[Array, "pieces"], goal: Goal) -> Float[Array, "2"]:
    """(P[goal met], P[not]) for a point of the whole range."""
    return jnp.exp(log_law_everywhere(pieces, log_density, goal))


def log_law_everywhere(pieces: Pieces, log_density: Float[Array, "pieces"], goal: Goal) -> Float[Array, "2"]:
    """The logarithms of both probabilities of `law_everywhere`."""
    wide_one = pieces.limbs > wide.FLOAT_LIMBS
    unit = _unit(pieces.log_parts(everything(pieces).high), log_density) if wide_one else 0
    masses = judge(pieces, log_density, goal, unit).log_masses(everything(pieces))
    return masses - logspace.logsumexp(masses)


def draw_everywhere(key: Array, pieces: Pieces, log_density: Float[Array, "pieces"]) -> Point:
    """A point of the whole range, the same as by `draw`, from a density whose sum is at least 1/2 and at most 2^96.

    The density is 1 where it is greatest, or, with the base measure "scales" of quantiles, at least 1/2 there and 2^d in all. What floats
    cannot hold beside that is never drawn.
    """
    if not plain(pieces):
        return draw(key, pieces, log_density, everything(pieces), Interval(low=pieces.end, high=pieces.end))
    key_piece, key_point = jax.random.split(key)
    weights = once(plain_weights, pieces, log_density)
    return uniform_within(key_point, pieces, logspace.choose(key_piece, weights))


@frozen
class ExponentialPiecewise(Mechanism):
    """The exponential mechanism over {0, ..., T}, for a quality of sensitivity 1; see the module, and `mechanism`, which makes it.

    It takes the quality as `dpjax.domains.ordered.Pieces` and returns a point. An event is a half-open interval (low, high) of points,
    given as ints or wide integers, or a `goal`, the points of marked pieces. The error of a point is the amount by which its quality falls
    short of the best. The plain twin, point by point, is `dpjax.verify.plain.exponential`.
    """

    kind: ClassVar[type] = Pieces

    epsilon: Float[Array, ""]
    relation: str = static(default=REPLACE_ONE)

    def log_density(self, pieces: Pieces) -> Float[Array, "pieces"]:
        """ln of the unnormalised weight per point; see `log_density`."""
        return log_density(pieces, jnp.asarray(self.epsilon, float))

    def draw(self, key: Array, pieces: Pieces) -> Any:
        if pieces.is_peak:
            point = draw_peak(key, pieces, peak_density(pieces, jnp.asarray(self.epsilon, float)))
        else:
            point = draw_everywhere(key, pieces, self.log_density(pieces))
        return point.position, jnp.bool_(True), point

    def law(self, pieces: Pieces, goal: Goal) -> Float[Array, "2"]:
        return law_everywhere(pieces, self.log_density(pieces), goal)

    def log_mass(self, pieces: Pieces, goal: Goal) -> Float[Array, ""]:
        return log_law_everywhere(pieces, self.log_density(pieces), goal)[0]

    def fit(self, data: Any) -> Pieces:
        if not isinstance(data, Pieces):
            raise TypeError(f"data must be dpjax.domains.ordered.Pieces, got {type(data).__name__}")
        return data

    def fits(self, pieces: Pieces) -> Bool[Array, ""]:
        offered = ~jnp.isneginf(pieces.log_lengths(everything(pieces).high))
        return jnp.all((jnp.abs(pieces.values) <= arguments.most_counted()) | ~offered)

    def check_event(self, event: Any) -> Any:
        if isinstance(event, Goal):
            return event
        ends = (event.low, event.high) if isinstance(event, Interval) else event
        return Interval.of(ends, max(map(_limbs_of, ends)) if isinstance(ends, tuple | list) and ends else 1)

    def event(self, pieces: Pieces, event: Any) -> Goal:
        if isinstance(event, Goal):
            return event
        if isinstance(event, Accurate):
            best, _ = ordered.best_between(pieces, jnp.zeros_like(pieces.end), everything(pieces).high)
            return goal(pieces, best - pieces.values <= event.error)
        limbs = max(pieces.limbs, event.low.shape[-1])
        beyond = wide.resize(everything(pieces).high, limbs)
        low, high = (wide.minimum(wide.resize(end, limbs), beyond) for end in (event.low, event.high))
        return Goal(
            marked=None, within=Interval(low=wide.resize(low, pieces.limbs), high=wide.resize(high, pieces.limbs))
        )

    def exactly(self, output: Any) -> Interval:
        output = number("output", output, _limbs_of(output))
        return Interval.closed(output, output)

    def outputs(self, pieces: Pieces) -> int:
        if arguments.is_traced(pieces.last):
            raise ValueError("pieces.last must be known for a list of all points")
        last = wide.to_ints(pieces.last)[0]
        return 1 + arguments.integer("pieces.last", last, at_least=0, at_most=1 << LARGEST_PMF)

    def masses(self, pieces: Pieces, outputs: int) -> Float[Array, "outcomes"]:
        point = wide.from_uint32(jnp.arange(outputs, dtype=jnp.uint32), pieces.limbs)
        logs = self.log_density(pieces)[jax.vmap(pieces.locate)(point)]
        return jnp.append(jax.nn.softmax(logs), 0.0)


def _limbs_of(end: Any) -> int:
    """How many limbs the end of an interval needs."""
    if isinstance(end, int | np.integer):
        return wide.limbs_for(max(int(end).bit_length(), 1))
    return np.shape(end)[-1] if np.ndim(end) else 1


def mechanism(*, epsilon: Any, relation: str = REPLACE_ONE) -> ExponentialPiecewise:
    """The exponential mechanism over pieces, epsilon-private.

    Args:
      epsilon: > 0, finite.
      relation: the one under which the quality has sensitivity 1.

    Raises:
      TypeError, ValueError: epsilon not a finite positive number, or an unknown relation.
    """
    return ExponentialPiecewise(
        epsilon=arguments.epsilon(epsilon), relation=arguments.choice("relation", relation, RELATIONS)
    )
