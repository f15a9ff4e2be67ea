"""Positions on a wide range, given by the size and the 64 leading binary digits of their distance from a pivot, whatever its width.

Where many positions lie around a known one, a few words are enough to order two of them and to find the logarithm of the distance between
them, unless they agree in most of these digits and have others behind. `Distance.known` tells the caller, who then uses whole numbers.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Bool, Float, Int, UInt32

from dpjax.core.pytree import frozen, select
from dpjax.domains import wide
from dpjax.domains.scaled import Starts, between, leading_zeros, log_of

LOST = 16  # digits that may cancel where others are cut off: 46 or more are left, of the 53 that a float64 has

Digits = tuple[Array, Array]  # two words, the high one first


@frozen
class Offset:
    """Distances from a pivot.

    Attributes:
      left: whether the position is to the left of the pivot.
      size: number of binary digits of the distance; 0 for the pivot itself.
      high, low: the 64 leading digits of the distance, the first of which is 1; unless `exact`, the last ones may be off by a unit or two.
      exact: whether these are all of its digits.
    """

    left: Bool[Array, "*n"]
    size: Int[Array, "*n"]
    high: UInt32[Array, "*n"]
    low: UInt32[Array, "*n"]
    exact: Bool[Array, "*n"]

    def __getitem__(self, index: Any) -> "Offset":
        return jax.tree.map(lambda leaf: leaf[index], self)


@frozen
class Distance:
    """How far it is from one position to another: the logarithm, and whether this and their order are known."""

    log: Float[Array, "*n"]
    known: Bool[Array, "*n"]


def less(a: Offset, b: Offset) -> Bool[Array, "*n"]:
    """Whether a position is to the left of another one, as far as that is known."""
    nearer, farther = _smaller(a, b), _smaller(b, a)
    return jnp.where(a.left, ~b.left | farther, ~b.left & nearer)


def _smaller(a: Offset, b: Offset) -> Bool[Array, "*n"]:
    digits = (a.high < b.high) | ((a.high == b.high) & (a.low < b.low))
    return (a.size < b.size) | ((a.size == b.size) & digits)


def distance(a: Offset, b: Offset) -> Distance:
    """The distance from one position to the other."""
    swap = _smaller(a, b)
    x, y = select(swap, b, a), select(swap, a, b)
    moved, lost = shift_right((y.high, y.low), x.size - y.size)
    add = a.left != b.left
    high, low = jnp.where(add, moved[0], ~moved[0]), jnp.where(add, moved[1], ~moved[1])
    # x - y = x + ~y + 1.
    low = x.low + low
    carry = (low < x.low).astype(jnp.uint32)
    one = jnp.where(add, np.uint32(0), np.uint32(1))
    carry = carry + ((low + one) < one).astype(jnp.uint32)
    low = low + one
    high = x.high + high
    over = (high < x.high) | ((high + carry) < carry)
    size, digits, cancelled = normalised(add & over, (high + carry, low), x.size)
    whole = a.exact & b.exact & ~lost
    log = jnp.where(size > 0, log_of(*digits, jnp.maximum(size, 1)).over(0), -jnp.inf)
    return Distance(log=log, known=whole | ((cancelled <= LOST) & (size > 0)))


def normalised(
    carry: Bool[Array, "*n"], digits: Digits, size: Int[Array, "*n"]
) -> tuple[Int[Array, "*n"], Digits, Int[Array, "*n"]]:
    """(size, digits, number of leading zeros) of (carry 2^64 + digits) 2^(size - 64), moved so that the first digit is 1."""
    high, low = digits
    zeros = leading_zeros(high, low)
    left = _shift_left((high, low), zeros)
    found = jnp.where(carry, (high >> np.uint32(1)) | np.uint32(1 << 31), left[0])
    rest = jnp.where(carry, (low >> np.uint32(1)) | (high << np.uint32(31)), left[1])
    zeros = jnp.where(carry, 0, zeros.astype(jnp.int32))
    nothing = ~carry & ((high | low) == 0)
    return jnp.where(nothing, 0, size - zeros + carry.astype(jnp.int32)), (found, rest), zeros


def _shift_left(digits: Digits, amount: UInt32[Array, "*n"]) -> Digits:
    """The digits moved left by 0, ..., 63, or 64."""
    high, low = digits
    few = amount % np.uint32(32)
    over = jnp.where(few == 0, np.uint32(0), low >> ((np.uint32(32) - few) % np.uint32(32)))
    far = amount >= 32
    return jnp.where(far, low << few, (high << few) | over), jnp.where(far, np.uint32(0), low << few)


def shift_right(digits: Digits, amount: Int[Array, "*n"]) -> tuple[Digits, Bool[Array, "*n"]]:
    """The digits moved right by any amount >= 0, and whether a 1 is lost."""
    high, low = digits
    few, nothing = (amount % 32).astype(jnp.uint32), jnp.zeros_like(high)
    first, second = _moved(nothing, high, few), _moved(high, low, few)
    near, middle = amount < 32, amount < 64
    moved = jnp.where(near, first, nothing), jnp.where(near, second, jnp.where(middle, first, nothing))
    behind_low, behind_high = _moved(low, nothing, few), _moved(high, nothing, few)
    lost = jnp.where(near, behind_low, jnp.where(middle, low | behind_high, low | high))
    return moved, lost > 0


def _moved(above: UInt32[Array, "*n"], word: UInt32[Array, "*n"], few: UInt32[Array, "*n"]) -> UInt32[Array, "*n"]:
    """A word moved right by 0, ..., 31 digits, where those of the word above it come in."""
    return (word >> few) | jnp.where(few == 0, np.uint32(0), above << ((np.uint32(32) - few) % np.uint32(32)))


def word_at(x: UInt32[Array, "limbs"], place: Int[Array, "*n"]) -> UInt32[Array, "*n"]:
    """The 32 binary digits of a wide number from weight 2^place upwards, place >= -64; digits that it does not have are 0."""
    limbs = x.shape[0]
    padded = jnp.concatenate([jnp.zeros((2,), jnp.uint32), x, jnp.zeros((2,), jnp.uint32)])
    index = jnp.maximum(limbs + 1 - (place >> 5), 1)
    return _moved(padded[index - 1], padded[index], (place & 31).astype(jnp.uint32))


def lowest_digit(x: UInt32[Array, "limbs"]) -> Int[Array, ""]:
    """The place of the last 1, whose weight is 2^place; -1 for 0."""
    return wide.bit_length(x & wide.subtract(jnp.zeros_like(x), x)) - 1


def of(number: UInt32[Array, "limbs"], pivot: UInt32[Array, "limbs"]) -> Offset:
    """The offset of a whole number."""
    left = wide.less(number, pivot)
    far = wide.subtract(wide.select(left, pivot, number), wide.select(left, number, pivot))
    size = wide.bit_length(far)
    high, low = (word_at(far, size - down) for down in (32, 64))
    return Offset(left=left, size=size, high=high, low=low, exact=lowest_digit(far) >= size - 64)


def of_starts(starts: Starts, pivot: Int[Array, ""], end: UInt32[Array, "limbs"]) -> Offset:
    """Offsets of all starts, and of the end behind the last piece, from start number `pivot`, which is a point: 1, ..., used."""
    points, number = starts.points, pivot - 1
    index = jnp.arange(points.shape[0], dtype=jnp.int32)
    size, lead = points.sizes()
    before = index < points.below
    carry, high, low, greater = between(size, lead, size[number], lead[number], before != before[number])
    last = size - 32 + (31 - lax.clz(lead & (np.uint32(0) - lead)).astype(jnp.int32))
    last = jnp.where(size > 0, last, greater)
    found, digits, _ = normalised(carry, (high, low), greater)
    inner = Offset(
        left=(index < number) & (found > 0),
        size=found,
        high=digits[0],
        low=digits[1],
        exact=jnp.minimum(last, last[number]) >= greater + carry.astype(jnp.int32) - 64,
    )
    whole = starts.at(pivot)
    zero, beyond = of(jnp.zeros_like(whole), whole), of(end, whole)
    inner = select(index < starts.used, inner, beyond)
    return jax.tree.map(
        lambda zero, inner, beyond: jnp.concatenate([zero[None], inner, beyond[None]]), zero, inner, beyond
    )
