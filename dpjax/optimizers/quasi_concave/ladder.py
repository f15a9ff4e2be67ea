"""The blocks of all lengths at once, for a peak whose pieces begin at points of few digits, by leading words.

Blocks of 8K = 2^(k+3) points, and of as many from 4K on, are cut where the best point T lies. Let b = k + 2 and u = floor(T / 2^b). All
their ends are (u + m) 2^b with m = -1, 0, 1, 2, or 3, and the distances from T to them are

    T mod 2^b, plus 2^b for m = -1, to the left;      2^b - T mod 2^b, plus (m - 1) 2^b, to the right.

So 64 digits of such a distance are read off two words of T, once it is known where the highest 1 and the highest 0 below each digit are: no
number of d bits is made for each of d lengths. Positions are `Offset`s from T, and so are the pieces' starts. Where 64 digits do not
distinguish two positions, a length is not `known`, and the caller has to use the full numbers.
"""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Bool, Int, UInt32

from dpjax.core.bisection import first_where
from dpjax.core.pytree import frozen, select, stacked
from dpjax.domains import offsets, wide
from dpjax.domains.offsets import Offset
from dpjax.domains.ordered import Crest, Cut, Pieces
from dpjax.domains.scaled import Starts


@frozen
class Ladder:
    """The data that the blocks of all lengths share.

    Attributes:
      point: T, the lowest best point.
      piece: the piece that begins there.
      sound: whether T is a point of few digits, and not the last one, and both cuts are distinguished: only then are the other fields
        right.
      highest_one, highest_zero: below each digit of T, the highest 1 and the highest 0; -1 where there is none.
      last_one: the lowest 1 of T.
      size: number of binary digits of T.
      room: number of binary digits of 2^exponent - 1 - T.
      rows: where the pieces begin, and the end.
      first, end: the cuts before the first piece and behind the last.
      within: two cuts with which all ends of blocks are compared.
      told: whether the distances of 0, and of the end, from these are known.
    """

    point: UInt32[Array, "limbs"]
    piece: Int[Array, ""]
    sound: Bool[Array, ""]
    highest_one: Int[Array, "places"]
    highest_zero: Int[Array, "places"]
    last_one: Int[Array, ""]
    size: Int[Array, ""]
    room: Int[Array, ""]
    rows: Offset
    first: Cut
    end: Cut
    within: tuple[Cut, Cut]
    told: Bool[Array, "2"]


@frozen
class Ends:
    """Where the best blocks of both partitions lie, for one length.

    Attributes:
      low, high: the ends of the block of the first partition, and of the one from 4K on, stacked. `ahead` of a high end may be wrong.
      begins_behind: whether the second partition begins behind T: its first point is its best one.
      left, right: for each block, whether there are points before it (in its partition), and behind it.
      known: whether all of this is known.
    """

    low: Cut
    high: Cut
    begins_behind: Bool[Array, ""]
    left: Bool[Array, "2"]
    right: Bool[Array, "2"]
    known: Bool[Array, ""]


def applies(pieces: Pieces) -> bool:
    """Whether these pieces are such a peak."""
    return pieces.is_peak and isinstance(pieces.starts, Starts) and pieces.starts.later is None


def build(pieces: Pieces, crest: Crest, first: Cut, end: Cut, within: tuple[Cut, Cut]) -> Ladder:
    """The ladder of these pieces; the positions of all cuts are full numbers."""
    starts = pieces.starts
    values = pieces.values[crest.pieces]
    piece = jnp.where(values[0] >= values[1], crest.pieces[0], crest.pieces[1])
    top = wide.power_of_two(pieces.exponent, pieces.limbs)
    point = pieces.at(piece)
    ones = _digits(point)
    place = jnp.arange(ones.shape[0], dtype=jnp.int32)
    highest_one, highest_zero = (_highest_below(place, where) for where in (ones, ~ones))
    rows = offsets.of_starts(starts, jnp.clip(piece, 1, starts.used), pieces.end)
    cuts = (first, end, *within)
    whole = jnp.stack([cut.position for cut in cuts])
    seen = jax.vmap(offsets.of, in_axes=(0, None))(whole, point)
    # How far 0, the end and the first of both cuts are from both cuts.
    one, other = jnp.array([0, 0, 1, 1, 2]), jnp.array([2, 3, 2, 3, 3])
    same = wide.equal(whole[one], whole[other]) & (one < 2)
    told = jax.vmap(offsets.distance)(seen[one], seen[other]).known | same
    seen_first, seen_end, start, stop = (dataclasses.replace(cut, position=seen[i]) for i, cut in enumerate(cuts))
    behind = wide.subtract(wide.subtract(top, wide.one(pieces.limbs)), point)
    return Ladder(
        point=point,
        piece=piece,
        sound=(piece >= 1) & (piece <= starts.used) & wide.less(point, top) & told[4],
        highest_one=highest_one,
        highest_zero=highest_zero,
        last_one=offsets.lowest_digit(point),
        size=wide.bit_length(point),
        room=wide.bit_length(behind),
        rows=rows,
        first=seen_first,
        end=seen_end,
        within=(start, stop),
        told=jnp.all(told[:4].reshape(2, 2), axis=1),
    )


def _digits(x: UInt32[Array, "limbs"]) -> Bool[Array, "places"]:
    """Binary digits, the lowest first, followed by some zeros: a block may be four times as long as the range of all words."""
    ones = (x[::-1, None] >> jnp.arange(32, dtype=jnp.uint32)[None]) & np.uint32(1)
    return jnp.pad(ones.reshape(-1).astype(bool), (0, 32))


def _highest_below(place: Int[Array, "places"], where: Bool[Array, "places"]) -> Int[Array, "places"]:
    """For each place the highest marked place below it; -1 where there is none."""
    upto = lax.cummax(jnp.where(where, place, -1))
    return jnp.concatenate([jnp.full((1,), -1, jnp.int32), upto[:-1]])


# ------------------------------------------------------------------------------------------------- distances from T


def _to_the_left(ladder: Ladder, b: Int[Array, ""]) -> Offset:
    """T mod 2^b."""
    top = ladder.highest_one[b]
    place = jnp.maximum(top, 0)
    high, low = (offsets.word_at(ladder.point, place - down) for down in (31, 63))
    nothing = top < 0
    return Offset(
        left=~nothing,
        size=jnp.where(nothing, 0, top + 1),
        high=jnp.where(nothing, np.uint32(0), high),
        low=jnp.where(nothing, np.uint32(0), low),
        exact=nothing | (ladder.last_one >= top - 63),
    )


def _to_the_right(ladder: Ladder, b: Int[Array, ""]) -> Offset:
    """2^b - T mod 2^b: the complement of the digits below, plus 1, which is seen only if all digits of T that are cut off are 0."""
    top = ladder.highest_zero[b]
    place = jnp.maximum(top, 0)
    high, low = (~offsets.word_at(ladder.point, place - down) for down in (31, 63))
    exact = ladder.last_one >= top - 63
    low = low + exact.astype(jnp.uint32)
    carry = exact & (low == 0)
    high = high + carry.astype(jnp.uint32)
    over = carry & (high == 0)
    # No digit of T below 2^b is 0: 1 is left.
    full = top < 0
    return Offset(
        left=jnp.zeros_like(over),
        size=jnp.where(full, 1, jnp.where(over, top + 2, top + 1)),
        high=jnp.where(full | over, np.uint32(1 << 31), high),
        low=jnp.where(full, np.uint32(0), low),
        exact=full | exact,
    )


def _plus(x: Offset, times: UInt32[Array, ""], left: Bool[Array, ""], b: Int[Array, ""]) -> Offset:
    """A distance of at most 2^b to that side (0 is on neither), plus `times` 2^b, times = 1 or 2."""
    (high, low), lost = offsets.shift_right((x.high, x.low), b + 2 - x.size)
    size, digits, _ = offsets.normalised(jnp.zeros_like(lost), (high + (times << np.uint32(30)), low), b + 2)
    return Offset(left=left, size=size, high=digits[0], low=digits[1], exact=x.exact & ~lost)


# ------------------------------------------------------------------------------------------------------------- cuts


def _cut(ladder: Ladder, used: Int[Array, ""], position: Offset, high: Array) -> tuple[Cut, Array]:
    """(The cut before a position > 0 and up to the end, whether all is known that is needed of the low or high end of a block)."""
    rows = ladder.rows
    count = rows.size.shape[0]

    def search(right: Array) -> Array:
        def reached(index: Array) -> Array:
            row = rows[index]
            return jnp.where(right, offsets.less(position, row), ~offsets.less(row, position))

        return first_where(reached, jnp.int32(0), used + 1, count)

    below, upto = jax.vmap(search)(jnp.array([False, True]))
    start, stop = (cut.position for cut in ladder.within)
    # One batch: a program of one distance in place of four.
    others = stacked(rows[below - 1], rows[upto], start, stop)
    found = jax.vmap(offsets.distance, in_axes=(0, None))(others, position)
    same = (below == upto) | (position.exact & rows[below].exact)
    # The distance from the last point to the end would take all digits, and is not needed.
    unasked = jnp.stack([jnp.bool_(False), high & (upto > used), jnp.bool_(False), jnp.bool_(False)])
    cut = Cut(position=position, below=below, upto=upto, behind=found.log[0], ahead=found.log[1])
    return cut, same & jnp.all(found.known | unasked)


def ends(ladder: Ladder, pieces: Pieces, k: Int[Array, ""]) -> Ends:
    """The ends of the best blocks of 2^(k+3) points."""
    b, used = k + 2, pieces.starts.used
    odd = (offsets.word_at(ladder.point, b) & np.uint32(1)) == np.uint32(1)  # u
    left, right = _to_the_left(ladder, b), _to_the_right(ladder, b)
    sides = stacked(left, right, right), jnp.array([1, 1, 2], jnp.uint32), jnp.array([True, False, False])
    more = jax.vmap(_plus, in_axes=(0, 0, 0, None))(*sides, b)
    farther, behind, far = (more[i] for i in range(3))
    none = ladder.size <= b  # u = 0
    positions = (
        select(odd, farther, left),
        select(odd, left, select(none, right, farther)),
        select(odd, right, behind),
        select(odd, behind, select(none, far, right)),
    )
    is_high = jnp.array([False, False, True, True])
    found, known = jax.vmap(lambda position, high: _cut(ladder, used, position, high))(stacked(*positions), is_high)
    # u + m = 0, or (u + m) 2^b > 2^exponent: these positions are known.
    at_zero = jnp.stack([ladder.size <= b + 1, jnp.bool_(False)])
    room = ladder.room <= b
    beyond = jnp.stack([~odd & room, jnp.where(none, b + 1 >= pieces.exponent, odd & room)])
    low, high = (jax.tree.map(lambda leaf, half=half: leaf[half], found) for half in (slice(2), slice(2, 4)))
    told = jnp.where(jnp.concatenate([at_zero, beyond]), jnp.repeat(ladder.told, 2), known)
    # From 2^b = 2^exponent on the first block is everything, and released untested: the other one plays no part.
    matters = jnp.stack([jnp.bool_(True), b < pieces.exponent, jnp.bool_(True), b < pieces.exponent])
    return Ends(
        low=jax.vmap(select, in_axes=(0, None, 0))(at_zero, ladder.first, low),
        high=jax.vmap(select, in_axes=(0, None, 0))(beyond, ladder.end, high),
        begins_behind=none,
        left=jnp.stack([~at_zero[0], jnp.where(odd, ladder.size > b + 1, ladder.size > b + 2)]),  # behind 4K?
        right=~beyond,
        known=ladder.sound & jnp.all(told | ~matters),
    )
