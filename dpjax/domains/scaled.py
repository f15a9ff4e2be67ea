"""Wide numbers of few digits around a centre: centre - digits 2^exponent or centre + digits 2^exponent, with one word of digits each.

A point that is drawn from 32 random bits has no more digits than a word, however wide it is. In this form n points take 8 n bytes instead
of 4 n limbs bytes, and two of them are compared by a word and a size; this decides exactly, as all other digits are zero. Distances are
computed from 64 leading digits, which lose nothing that could show in a logarithm to relative accuracy or in the number of digits. Whole
rows are made only where a row is needed.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Bool, Int, UInt32

from dpjax.core.bisection import first_where
from dpjax.core.pytree import frozen, select
from dpjax.core.staging import SHORT_ROW
from dpjax.domains import wide
from dpjax.domains.wide import LogParts


def pays(limbs: int) -> bool:
    """Whether points of `limbs` limbs are better drawn as `Scaled`: from SHORT_ROW on, since positions may have one more than points."""
    return limbs >= SHORT_ROW


@frozen
class Scaled:
    """Numbers centre -+ digits 2^exponent in increasing order, of the centre's width; `at` gives them as whole rows.

    Attributes:
      centre: any number.
      digits: one word per row.
      exponent: >= 0, one per row.
      below: how many of the rows are less than the centre: they come first.

    >>> x = Scaled(centre=wide.from_ints([100], 64)[0], digits=jnp.array([3, 5], jnp.uint32), exponent=jnp.array([2, 40]),
    ...     below=jnp.int32(1))
    >>> wide.to_ints(x.at(jnp.arange(2)))
    [88, 5497558138980]
    """

    centre: UInt32[Array, "limbs"]
    digits: UInt32[Array, "rows"]
    exponent: Int[Array, "rows"]
    below: Int[Array, ""]

    @property
    def shape(self) -> tuple[int, int]:
        """The shape that whole rows would have."""
        return self.digits.shape[0], self.centre.shape[0]

    def at(self, index: Int[Array, "*i"]) -> UInt32[Array, "*i limbs"]:
        """The whole rows of these indices."""
        return self.after(index, jnp.zeros(jnp.shape(index), bool))

    def after(self, index: Int[Array, "*i"], one: Bool[Array, "*i"]) -> UInt32[Array, "*i limbs"]:
        """The whole rows of these indices, plus 1 where `one` says so."""
        limbs = self.centre.shape[0]
        centre = wide.add(self.centre[None], wide.from_uint32(jnp.arange(2, dtype=jnp.uint32), limbs))
        # centre - offset = ~(~centre + offset): one addition serves both sides.
        left, four = index < self.below, jnp.concatenate([centre, ~centre])
        kind = jnp.where(left, 2, 0) + jnp.where(one, 1, 0)
        total = wide.add(four[kind], wide.scaled(self.digits[index], self.exponent[index], limbs))
        return wide.select(left, ~total, total)

    def resized(self, limbs: int) -> "Scaled":
        """The same numbers with more limbs, or with fewer if all have zeros there."""
        return Scaled(
            centre=wide.resize(self.centre, limbs), digits=self.digits, exponent=self.exponent, below=self.below
        )

    def rows(self, index: Int[Array, "*i"]) -> "Scaled":
        """The rows of these indices, in increasing order; `below` stays that of all rows."""
        return Scaled(centre=self.centre, digits=self.digits[index], exponent=self.exponent[index], below=self.below)

    def sizes(self) -> tuple[Int[Array, "rows"], UInt32[Array, "rows"]]:
        """The number of binary digits of each distance from the centre, and its 32 leading digits, the first of which is 1."""
        zeros = lax.clz(self.digits)
        size = jnp.where(self.digits > 0, self.exponent + 32 - zeros.astype(jnp.int32), 0)
        return size, self.digits << jnp.minimum(zeros, np.uint32(31))


def _order(row: tuple[Array, ...], query: tuple[Array, ...], more: Array | bool = False) -> tuple[Array, Array]:
    """(whether row < query, whether they are equal), each given as (is below the centre, size, 32 digits); a query may have more digits."""
    (is_left, its_size, its_lead), (left, size, lead) = row, query
    same = (its_size == size) & (its_lead == lead)
    nearer = (its_size < size) | ((its_size == size) & (its_lead < lead)) | (same & more)
    equal = same & ~jnp.asarray(more)
    return jnp.where(is_left, ~left | ~(nearer | equal), ~left & nearer), equal & (is_left == left)


def around(x: Scaled, index: Int[Array, ""]) -> tuple[Bool[Array, "rows"], Bool[Array, "rows"]]:
    """(rows less than that one, rows equal to it)."""
    rows = (jnp.arange(x.shape[0]) < x.below, *x.sizes())
    return _order(rows, tuple(part[index] for part in rows))


def at(x: Any) -> Any:
    """The function index -> whole row, of whole rows or of scaled ones."""
    return x.at if isinstance(x, Scaled) else wide.rows_of(x)


# Two distances, and what lies between --------------------------------------------------------------------------


def between(size: Array, lead: Array, other_size: Array, other: Array, add: Array) -> tuple[Array, Array, Array, Array]:
    """|a - b|, or a + b, as (carry, high, low, size of the greater): (carry 2^64 + high 2^32 + low) 2^(size - 64).

    If the greater one has at most 64 digits, that is exact. Otherwise digits below the last of 64 are represented by setting the last one:
    neither the digits of the result above it nor their number depend on what they are, since the greater one has zeros from its 33rd digit
    on.
    """
    swap = (other_size > size) | ((other_size == size) & (other > lead))
    size, other_size = jnp.where(swap, other_size, size), jnp.where(swap, size, other_size)
    lead, other = jnp.where(swap, other, lead), jnp.where(swap, lead, other)
    shift = (size - other_size).astype(jnp.uint32)
    few, more = jnp.minimum(shift, np.uint32(31)), jnp.clip(shift, np.uint32(32), np.uint32(63)) - np.uint32(32)
    near = shift < 32
    high = jnp.where(near, other >> few, np.uint32(0))
    low = jnp.where(
        near, jnp.where(shift == 0, np.uint32(0), other << ((np.uint32(32) - few) % np.uint32(32))), other >> more
    )
    beyond = jnp.where(more == 0, np.uint32(0), other << ((np.uint32(32) - more) % np.uint32(32)))
    low = jnp.where(
        shift >= 64, jnp.minimum(other, np.uint32(1)), jnp.where(near, low, low | jnp.minimum(beyond, np.uint32(1)))
    )
    total = lead + high
    difference = lead - high - jnp.minimum(low, np.uint32(1))
    carry = add & (total < lead)
    return carry, jnp.where(add, total, difference), jnp.where(add, low, np.uint32(0) - low), jnp.maximum(size, 1)


def _digits(carry: Array, high: Array, low: Array, size: Array) -> Int[Array, "n"]:
    """Number of binary digits of what `between` found."""
    zeros = leading_zeros(high, low).astype(jnp.int32)
    return jnp.where((high | low) == 0, jnp.where(carry, size + 1, 0), jnp.where(carry, size + 1, size - zeros))


def leading_zeros(high: UInt32[Array, "*n"], low: UInt32[Array, "*n"]) -> UInt32[Array, "*n"]:
    """How many of 64 binary digits come before the first 1: 0, ..., 64."""
    return jnp.where(high > 0, lax.clz(high), np.uint32(32) + lax.clz(low))


def log_of(high: Array, low: Array, size: Array) -> LogParts:
    """ln of what `between` found if nothing was carried; up to 96 digits, the number is rounded once, and has the exponent 0."""
    exponent = size - 32
    here = jnp.where(exponent > 64, 0, exponent)
    scaled = (high.astype(float) + low.astype(float) * 2.0**-32) * wide.power(here)
    return LogParts(fraction=jnp.log(scaled), exponent=exponent - here)


# Where pieces begin --------------------------------------------------------------------------------------------


@frozen
class Starts:
    """Where the pieces of a range begin: at 0, then at scaled points (from row `later` on, right after each point), then at the end.

    Attributes:
      points: one fewer than there are starts; those from `used` on are ignored.
      used: how many points there are.
      later: how many of the starts, except that at 0, are points themselves; None: none is.
      end: where all other starts are: nothing is greater.
    """

    points: Scaled
    used: Int[Array, ""]
    later: Int[Array, ""] | None
    end: UInt32[Array, "limbs"]

    @property
    def shape(self) -> tuple[int, int]:
        """The shape that whole rows would have."""
        rows, limbs = self.points.shape
        return rows + 1, limbs

    def at(self, index: Int[Array, "*i"]) -> UInt32[Array, "*i limbs"]:
        """The whole rows of these indices."""
        after = self.points.after(jnp.clip(index - 1, 0, self.points.shape[0] - 1), index > self._later())
        shape = after.shape
        row = wide.select(index <= self.used, after, jnp.broadcast_to(self.end, shape))
        return wide.select(index <= 0, jnp.zeros(shape, jnp.uint32), row)

    def _later(self) -> Array:
        return jnp.zeros_like(self.used) if self.later is None else self.later

    def search(self, query: UInt32[Array, "limbs"], *, side: str = "left") -> Int[Array, ""]:
        """How many starts are < query (side="left") or <= query (side="right"): by sizes and words."""
        one = wide.one(query.shape[0])
        sizes, leads = self.points.sizes()
        before, zero = self._compact(wide.subtract(query, one)), wide.is_zero(query)
        itself = before if self.later is None else self._compact(query)

        def not_yet(index: Array) -> Array:
            after = index + 1 > self._later()
            left, size, lead, more = (jnp.where(after, b, a) for a, b in zip(itself, before, strict=True))
            less, equal = _order((index < self.points.below, sizes[index], leads[index]), (left, size, lead), more)
            reached = less | equal if side == "right" else less
            return ~reached | (after & zero)

        found = first_where(not_yet, jnp.int32(0), self.used, self.points.shape[0])
        ends = wide.less(self.end, query) if side == "left" else wide.less_equal(self.end, query)
        first = ~zero if side == "left" else jnp.bool_(True)
        spare = jnp.where(ends, self.points.shape[0] - self.used, 0)
        return first.astype(jnp.int32) + found + spare

    def _compact(self, number: UInt32[Array, "limbs"]) -> tuple[Array, Array, Array, Array]:
        """Whether it is below the centre, the number of digits of its distance from there, 32 of them, and whether there are others."""
        centre = self.points.centre
        left = wide.less(number, centre)
        distance = wide.subtract(wide.select(left, centre, number), wide.select(left, number, centre))
        size = wide.bit_length(distance)
        return (left, size, *_leading(distance, size))

    def log_lengths(self, stop: UInt32[Array, "limbs"]) -> LogParts:
        """ln of the number of points of each piece that are less than `stop`, which no start that is used exceeds.

        Only a few pieces need whole rows: the first, the one around the centre, the one from a point to the position after one, and the
        last.
        """
        size, lead = self.points.sizes()
        add = jnp.zeros(size[1:].shape, bool)
        inner = log_of(*between(size[1:], lead[1:], size[:-1], lead[:-1], add)[1:])
        fraction = jnp.pad(inner.fraction, 1, constant_values=-jnp.inf)
        index = jnp.arange(fraction.shape[0], dtype=jnp.int32)
        fraction = jnp.where(index < self.used, fraction, -jnp.inf)
        some = jnp.pad(inner.exponent, 1) if stop.shape[-1] > wide.FLOAT_LIMBS else jnp.zeros_like(index)
        lengths = LogParts(fraction=fraction, exponent=some)
        special = jnp.stack([jnp.zeros_like(self.used), self.points.below, self._later(), self.used])
        # Beyond the last start that is used nothing is left.
        low, high = (wide.minimum(self.at(special + i), stop[None]) for i in (0, 1))
        exact = wide.log_parts(wide.subtract(high, low))
        for i in range(special.shape[0]):
            lengths = select(index == special[i], jax.tree.map(lambda leaf, i=i: leaf[i], exact), lengths)
        return lengths

    def digits_around(self, top: Int[Array, ""]) -> Int[Array, "pieces"]:
        """How many binary digits the lengths of the runs of pieces top - e, ..., top + e have, e = 0, 1, ..., cut at 0 and at the end.

        Where both ends are points, 64 digits of either are used. The other runs, as many as one side has more points than the other, need
        whole rows: since one end stays where it is, few numbers of digits occur, and each is found by bisection.
        """
        count = self.shape[0]
        error = jnp.arange(count, dtype=jnp.int32)
        left, right = top - error, top + 1 + error
        size, lead = self.points.sizes()

        def row(index: Array) -> tuple[Array, Array, Array]:
            point = jnp.clip(index - 1, 0, count - 2)
            return size[point], lead[point], point < self.points.below

        (a, a_lead, a_left), (b, b_lead, b_left) = row(left), row(right)
        found = between(a, a_lead, b, b_lead, a_left != b_left)
        # One more, if the run begins with a point and ends right after one.
        if self.later is not None:
            one_more = (left <= self.later) & (right > self.later)
            found = _one_more(found, one_more, jnp.minimum(a, b))
        digits = _digits(*found)
        everything = wide.bit_length(self.end)
        inside = jnp.minimum(top, self.used - top)  # this many runs have points as both ends
        digits = jnp.where(error < inside, digits, everything)
        last = jnp.maximum(top, self.used - top)

        def whole(error: Array) -> Array:
            low, high = (self.at(jnp.clip(end, 0, count - 1)) for end in (top - error, top + 1 + error))
            high = wide.select(top + 1 + error < count, high, jnp.broadcast_to(self.end, high.shape))
            return wide.bit_length(wide.subtract(high, low))

        def turn(state: tuple[Array, Array]) -> tuple[Array, Array]:
            start, digits = state
            here = whole(start)
            stop = first_where(lambda error: whole(error) > here, start + 1, last, count)
            return stop, jnp.where((error >= start) & (error < stop), here, digits)

        return lax.while_loop(lambda state: state[0] < last, turn, (jnp.maximum(inside, 0), digits))[1]


def _one_more(found: Any, one_more: Array, lesser: Array) -> tuple[Array, Array, Array, Array]:
    """What `between` found, plus 1 where `one_more` says so, as far as that could change the number of digits.

    Up to 64 digits that is a sum. Beyond, adding 1 matters only to 2^j - 1, that is, if the lesser distance is 1 and was subtracted: a sum
    of two numbers with 32 digits each, or a difference of two such of nearly the same size, ends in a zero. Equal ones leave 1 itself.
    """
    carry, high, low, size = found
    room = jnp.clip(64 - size, 0, 63).astype(jnp.uint32)
    one_high = jnp.where(room >= 32, np.uint32(1) << (room % np.uint32(32)), np.uint32(0))
    one_low = jnp.where(room < 32, np.uint32(1) << (room % np.uint32(32)), np.uint32(0))
    fits = size <= 64
    adds = one_more & (fits | ((lesser == 1) & ~carry & (low == np.uint32(0xFFFFFFFF))))
    one_high, one_low = jnp.where(fits, one_high, np.uint32(0)), jnp.where(fits, one_low, np.uint32(1))
    new_low = jnp.where(adds, low + one_low, low)
    over = adds & (new_low < low)
    new_high = jnp.where(adds, high + one_high + over.astype(jnp.uint32), high)
    overflow = adds & (
        (new_high < high) | ((new_high == high) & over & (one_high == 0) & (high == np.uint32(0xFFFFFFFF)))
    )
    alone = one_more & ~carry & ((high | low) == 0)
    new_high, new_low = jnp.where(alone, np.uint32(1 << 31), new_high), jnp.where(alone, np.uint32(0), new_low)
    return carry | overflow, new_high, new_low, jnp.where(alone, 1, size)


def _leading(x: UInt32[Array, "limbs"], size: Int[Array, ""]) -> tuple[UInt32[Array, ""], Bool[Array, ""]]:
    """The first 32 of the `size` binary digits, and whether there is a 1 behind them."""
    limbs = x.shape[-1]
    place = jnp.clip(limbs - 1 - (size - 1) // 32, 0, limbs - 1)  # the limb of the first digit
    padded = jnp.concatenate([x, jnp.zeros((1,), jnp.uint32)])
    first, second = padded[place], padded[place + 1]
    zeros = lax.clz(first)
    some = jnp.minimum(zeros, np.uint32(31))
    lead = jnp.where(some == 0, first, (first << some) | (second >> ((np.uint32(32) - some) % np.uint32(32))))
    index = jnp.arange(limbs, dtype=jnp.int32)
    rest = jnp.where(index == place + 1, x << some, jnp.where(index > place + 1, x, np.uint32(0)))
    # The whole first limb is among the 32 digits; of the second, all but its `some` first bits follow.
    return lead, jnp.any(rest > 0)
