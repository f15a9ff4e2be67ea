"""Unsigned integers of any fixed width, as uint32 limbs: exact under jit and vmap, without x64 (same answers with it).

A wide array has shape (..., limbs), dtype uint32, the MOST significant limb first, so that rows sort lexicographically;
a number of `bits` bits takes ceil(bits/32) limbs. Arithmetic is modulo 2^(32 limbs), like every unsigned integer's. All
functions broadcast over leading axes of equal rank and are differentiable nowhere (they return integers), except `log`,
whose gradient is zero. One limb (bits <= 32) takes short cuts, so small domains cost what plain integer arrays cost.

    >>> import jax.numpy as jnp
    >>> from dpjax.domains import wide
    >>> x = wide.from_ints([3, 2**64 + 5], 65)
    >>> x.shape, wide.to_ints(wide.add(x, x))
    ((2, 3), [6, 36893488147419103242])
"""

import functools
import math
from collections.abc import Callable, Iterable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, ArrayLike, Bool, Float, Int, Shaped, UInt32

from dpjax.core import arguments, random, sorting, staging
from dpjax.core.bisection import first_where
from dpjax.core.pytree import frozen
from dpjax.core.staging import SHORT_ROW

MAX_BITS = 4096
FLOAT_LIMBS = 3  # this many fit float32's range, and so do sums of thousands of such numbers
_BLOCK = 32  # rows that a search for many queries compares at once
_TRIES = 8  # made at once when a draw may be rejected: of many lanes in step, few then need more
# Up to this number, limbs are processed one by one: one fused pass without a reduction, and vectors run along the rows. An operation on
# whole rows would make XLA join them in memory, and then run vectors along 2 or 3 limbs.
_UNROLLED = SHORT_ROW


def limbs_for(bits: int) -> int:
    """Number of uint32 limbs of a number of `bits` bits."""
    return -(-int(bits) // 32)  # for an unsigned NumPy integer, -bits is not negative


# ---------------------------------------------------------------------------------------------- to and from Python


def from_ints(values: Iterable[int], bits: int, name: str = "values") -> UInt32[Array, "n limbs"]:
    """Python ints, each in 0, ..., 2^bits - 1, as a wide array; exact.

    Raises:
      TypeError: a value is not an int, or bits is not. ValueError: a value is negative or needs more than `bits` bits,
      or bits is not in 1, ..., 4097 (4096-bit points have thresholds up to 2^4096).
    """
    bits = arguments.integer("bits", bits, at_least=1, at_most=MAX_BITS + 1)
    if isinstance(values, str | bytes) or not isinstance(values, Iterable) or getattr(values, "ndim", 1) == 0:
        raise TypeError(f"{name} must be a list of ints, got {values!r} of type {type(values).__name__}")
    values = list(values)
    for position, value in enumerate(values):
        if not isinstance(value, int | np.integer) or isinstance(value, bool):
            raise TypeError(f"{name}[{position}] must be an int, got {value!r} of type {type(value).__name__}")
        if not 0 <= int(value) < 1 << bits:
            raise ValueError(f"{name}[{position}] must be in 0, ..., 2^{bits} - 1, got {value}")
    size = 4 * limbs_for(bits)
    raw = b"".join(int(value).to_bytes(size, "big") for value in values)
    # Put on the device as it is: `jnp.asarray` would compile a program for every shape.
    return jax.device_put(np.frombuffer(raw, ">u4").astype(np.uint32).reshape(len(values), size // 4))


def to_ints(array: Any) -> list[int]:
    """The numbers of a wide array as Python ints, exact: (n, limbs) gives n ints, one number (limbs,) a list of one."""
    array = np.asarray(array)
    if array.dtype != np.uint32 or array.ndim == 0:
        raise TypeError(f"array must be uint32 of shape (..., limbs), got {array.dtype} of shape {array.shape}")
    rows = np.ascontiguousarray(array.reshape(-1, array.shape[-1]).astype(">u4"))
    if 1 <= rows.shape[1] <= 2:  # NumPy reads those of up to 64 bits in one go
        return rows.view(f">u{4 * rows.shape[1]}")[:, 0].tolist()
    return [int.from_bytes(row.tobytes(), "big") for row in rows]


def check_below(name: str, x: Any, bits: int) -> None:
    """ValueError for the first row of (rows, limbs) that is not a number in 0, ..., 2^bits - 1.

    On the host and in NumPy: under another function's trace JAX would return tracers, and Python ints take seconds at 4096 bits.
    """
    rows = np.asarray(x)
    place = rows.shape[-1] - 1 - bits // 32  # the limb that holds the one digit of 2^bits
    if place < 0:
        return
    wrong = np.flatnonzero((rows[:, :place] > 0).any(axis=1) | (rows[:, place] >= np.uint32(1 << bits % 32)))
    if wrong.size:
        raise ValueError(f"{name} must hold points in 0, ..., 2^{bits} - 1, got {to_ints(rows[wrong[0]])[0]}")


def all_below(x: UInt32[Array, "n limbs"], valid: Bool[Array, "n"], bits: Int[ArrayLike, ""]) -> Bool[Array, ""]:
    """Whether every valid row is a number in 0, ..., 2^bits - 1: `check_below` for what is traced."""
    return jnp.all(~valid | (bit_length(x) <= bits))


def resize(x: UInt32[Array, "*n limbs"], limbs: int) -> UInt32[Array, "*n more"]:
    """The same numbers in another number of limbs (leading limbs are dropped when there are fewer: modulo 2^(32 limbs))."""
    have = x.shape[-1]
    if limbs <= have:
        return x[..., have - limbs :]
    return jnp.concatenate([jnp.zeros((*x.shape[:-1], limbs - have), jnp.uint32), x], axis=-1)


def from_uint32(x: UInt32[Array, "*n"], limbs: int) -> UInt32[Array, "*n limbs"]:
    """A plain uint32 array as a wide one."""
    return resize(x[..., None], limbs)


def one(limbs: int) -> UInt32[Array, "limbs"]:
    """The number 1."""
    return from_uint32(jnp.uint32(1), limbs)


def one_like(x: UInt32[Array, "*n limbs"]) -> UInt32[Array, "*n limbs"]:
    """The number 1 for each of these."""
    return jnp.broadcast_to(one(x.shape[-1]), x.shape)


def columns(x: Shaped[Array, "*n limbs"]) -> list[Shaped[Array, "*n"]]:
    """The limbs, one array for each."""
    # A split is traced in half the time of as many slices.
    return [lax.squeeze(part, (x.ndim - 1,)) for part in lax.split(x, (1,) * x.shape[-1], axis=x.ndim - 1)]


def rows_of(x: UInt32[Array, "n limbs"]) -> Callable[[Array], Array]:
    """The function index -> x[index]; a few limbs are fetched one by one, so that columns need not be joined in memory."""
    if x.shape[-1] > _UNROLLED:
        return lambda index: x[index]
    parts = columns(x)
    return lambda index: jnp.stack([part[index] for part in parts], axis=-1)


def along_rows(function: Callable[..., Array], *arrays: UInt32[Array, "_ limbs"]) -> UInt32[Array, "n limbs"]:
    """function(*arrays), for a function that treats all limbs alike (it slices or concatenates): column by column if limbs are few."""
    if arrays[0].shape[-1] > _UNROLLED:
        return function(*arrays)
    return jnp.stack([function(*parts) for parts in zip(*map(columns, arrays), strict=True)], axis=-1)


def concatenate(*parts: UInt32[Array, "_ limbs"]) -> UInt32[Array, "n limbs"]:
    """All rows, one part after the other."""
    return along_rows(lambda *columns: jnp.concatenate(columns), *parts)


def power_of_two(exponent: Int[Array, "*n"], limbs: int) -> UInt32[Array, "*n limbs"]:
    """2^exponent for a traced exponent; 0 where that does not fit, or where the exponent is negative."""
    return scaled(jnp.ones(jnp.shape(exponent), jnp.uint32), exponent, limbs)


def largest(bits: Int[Array, "*n"], limbs: int) -> UInt32[Array, "*n limbs"]:
    """2^bits - 1, the largest number of `bits` bits (traced); `bits` may be up to 32 * limbs, all that there are."""
    top = power_of_two(bits, limbs)
    return subtract(top, one_like(top))


@jax.jit(static_argnames="limbs")
def scaled(x: UInt32[Array, "*n"], exponent: Int[Array, "*n"], limbs: int) -> UInt32[Array, "*n limbs"]:
    """floor(x 2^exponent) for a one-word x and a traced exponent of either sign; what does not fit is cut off.

    Each limb sees x shifted by its own amount: no limb is gathered, unlike in `shift_left`.
    """
    exponent = jnp.asarray(exponent).astype(jnp.int32)
    if limbs <= _UNROLLED:
        return jnp.stack([_shifted(x, exponent - 32 * i) for i in range(limbs - 1, -1, -1)], axis=-1)
    x = x[..., None]
    significance = _significance(jnp.broadcast_to(x, (*x.shape[:-1], limbs)))
    return _shifted(x, exponent[..., None] - 32 * significance)


def multiple(x: UInt32[Array, "*#n limbs"], exponent: Int[Array, "*#n"]) -> UInt32[Array, "*n limbs"]:
    """The greatest multiple of 2^exponent, a traced exponent >= 0, that is at most x: digits are masked, none is moved.

    >>> to_ints(multiple(from_ints([2**40 + 2**33 + 5], 64)[0], jnp.int32(34)))
    [1099511627776]
    """
    return x & digits_from(exponent, x.shape[-1])


def digits_from(exponent: Int[Array, "*n"], limbs: int) -> UInt32[Array, "*n limbs"]:
    """A mask of the digits that stand for 2^exponent or more, for a traced exponent; of all digits, if it is negative.

    >>> [hex(mask) for mask in to_ints(digits_from(jnp.array([4, 32]), 2))]
    ['0xfffffffffffffff0', '0xffffffff00000000']
    """
    exponent = jnp.asarray(exponent).astype(jnp.int32)[..., None]
    places = exponent - 32 * _significance(jnp.broadcast_to(exponent, (*exponent.shape[:-1], limbs)))
    kept = jnp.uint32(0xFFFFFFFF) << jnp.clip(places, 0, 31).astype(jnp.uint32)
    return jnp.where(places < 32, kept, np.uint32(0))


def _shifted(x: UInt32[Array, "*#n"], amount: Int[Array, "*#n"]) -> UInt32[Array, "*#n"]:
    """One word shifted up, or down where the amount is negative."""
    up = x << jnp.clip(amount, 0, 31).astype(jnp.uint32)
    down = x >> jnp.clip(-amount, 0, 31).astype(jnp.uint32)
    return jnp.where((amount >= 0) & (amount < 32), up, jnp.where((amount < 0) & (amount > -32), down, np.uint32(0)))


# ------------------------------------------------------------------------------------------------- comparing, adding
# A few limbs are compared, and their carries found, one after the other. Beyond, both are decided all at once on bit masks with one bit
# a limb (bit i for the limb of weight 2^(32 i)): no chain of dependent steps, and a graph whose size does not grow with the width.
# An algorithm calls each dozens of times: as functions of their own (jit) they are traced, batched and lowered once per shape.


def _significance(x: Array) -> Int[Array, "*n limbs"]:
    """limbs-1, ..., 1, 0 along the last axis: the power of 2^32 each limb stands for."""
    shape = (1,) * (x.ndim - 1) + x.shape[-1:]
    return jnp.asarray(np.arange(x.shape[-1] - 1, -1, -1).reshape(shape), jnp.int32)


def _pack(bits: Bool[Array, "*n limbs"]) -> UInt32[Array, "*n words"]:
    """One bit per limb, packed into a wide number: the last limb's bit is the least significant.

    Bits are shifted, not selected: XLA's CPU makes branches of a select that it adds up, if there is no padding (32 limbs, 64, ...).
    """
    limbs = bits.shape[-1]
    words = limbs_for(limbs)
    lead = [(0, 0)] * (bits.ndim - 1) + [(32 * words - limbs, 0)]
    padded = jnp.pad(bits, lead).reshape(*bits.shape[:-1], words, 32)
    return jnp.sum(padded.astype(jnp.uint32) << _significance(padded).astype(jnp.uint32), axis=-1, dtype=jnp.uint32)


def _unpack(mask: UInt32[Array, "*n words"], limbs: int) -> UInt32[Array, "*n limbs"]:
    """The inverse of `_pack`, as 0 or 1 per limb."""
    lead = mask.shape[:-1]
    words = jnp.broadcast_to(mask[..., None], (*mask.shape, 32)).reshape(*lead, -1)[..., -limbs:]
    return (words >> (_significance(words).astype(jnp.uint32) % 32)) & np.uint32(1)


@jax.jit
def less(a: UInt32[Array, "*#n limbs"], b: UInt32[Array, "*#n limbs"]) -> Bool[Array, "*#n"]:
    """a < b: the most significant limb in which they differ decides, that is, the higher of two masks."""
    if a.shape[-1] > _UNROLLED:
        a, b = jnp.broadcast_arrays(a, b)
        return less(_pack(a > b), _pack(a < b))
    *above, (low_a, low_b) = zip(columns(a), columns(b), strict=True)
    result = low_a < low_b
    for x, y in reversed(above):
        result = (x < y) | ((x == y) & result)
    return result


def less_equal(a: UInt32[Array, "*#n limbs"], b: UInt32[Array, "*#n limbs"]) -> Bool[Array, "*#n"]:
    """a <= b."""
    return ~less(b, a)


@jax.jit
def equal(a: UInt32[Array, "*#n limbs"], b: UInt32[Array, "*#n limbs"]) -> Bool[Array, "*#n"]:
    """a == b."""
    if a.shape[-1] > _UNROLLED:
        return jnp.all(a == b, axis=-1)
    return functools.reduce(jnp.logical_and, [x == y for x, y in zip(columns(a), columns(b), strict=True)])


def is_zero(a: UInt32[Array, "*n limbs"]) -> Bool[Array, "*n"]:
    """a == 0."""
    return equal(a, jnp.zeros_like(a))


def _carries(generate: Bool[Array, "*n limbs"], propagate: Bool[Array, "*n limbs"]) -> UInt32[Array, "*n limbs"]:
    """0 or 1 per limb: the carry (or borrow) that comes into it.

    With G and P the packed masks, the sum P + 2G itself ripples through the runs of propagating limbs, and differs from P exactly
    where a carry came in.
    """
    g, p = _pack(generate), _pack(propagate)
    mask = add(p, add(g, g)) ^ p
    return _unpack(mask, generate.shape[-1])


@jax.jit
def add(a: UInt32[Array, "*#n limbs"], b: UInt32[Array, "*#n limbs"]) -> UInt32[Array, "*#n limbs"]:
    """a + b modulo 2^(32 limbs)."""
    if a.shape[-1] > _UNROLLED:
        total = a + b
        return total + _carries(total < a, total == np.uint32(0xFFFFFFFF))
    sums, carry = [], None
    for x, y in reversed(list(zip(columns(a), columns(b), strict=True))):
        total = x + y
        sums.append(total if carry is None else total + carry.astype(jnp.uint32))
        carry = total < x if carry is None else (total < x) | (carry & (total == np.uint32(0xFFFFFFFF)))
    return jnp.stack(sums[::-1], axis=-1)


@jax.jit
def subtract(a: UInt32[Array, "*#n limbs"], b: UInt32[Array, "*#n limbs"]) -> UInt32[Array, "*#n limbs"]:
    """a - b modulo 2^(32 limbs)."""
    if a.shape[-1] > _UNROLLED:
        difference = a - b
        a, b = jnp.broadcast_arrays(a, b)
        return difference - _carries(a < b, a == b)
    differences, borrow = [], None
    for x, y in reversed(list(zip(columns(a), columns(b), strict=True))):
        difference = x - y
        differences.append(difference if borrow is None else difference - borrow.astype(jnp.uint32))
        borrow = x < y if borrow is None else (x < y) | (borrow & (x == y))
    return jnp.stack(differences[::-1], axis=-1)


@jax.jit
def select(
    condition: Bool[Array, "*#n"], a: UInt32[Array, "*#n limbs"], b: UInt32[Array, "*#n limbs"]
) -> UInt32[Array, "*#n limbs"]:
    """a where the condition holds, else b."""
    if a.shape[-1] > _UNROLLED:
        return jnp.where(condition[..., None], a, b)
    return jnp.stack([jnp.where(condition, x, y) for x, y in zip(columns(a), columns(b), strict=True)], axis=-1)


@jax.jit
def minimum(a: UInt32[Array, "*#n limbs"], b: UInt32[Array, "*#n limbs"]) -> UInt32[Array, "*#n limbs"]:
    """The smaller of two."""
    return select(less(b, a), b, a)


@jax.jit
def maximum(a: UInt32[Array, "*#n limbs"], b: UInt32[Array, "*#n limbs"]) -> UInt32[Array, "*#n limbs"]:
    """The larger of two."""
    return select(less(a, b), b, a)


def high_product(a: UInt32[Array, "*#n"], b: UInt32[Array, "*#n"]) -> UInt32[Array, "*#n"]:
    """The upper word of the 64-bit product of two words, by four products of half-words."""
    half, low = np.uint32(16), np.uint32(0xFFFF)
    a1, a0, b1, b0 = a >> half, a & low, b >> half, b & low
    # Nothing overflows: a product of half-words leaves room for two more, (2^16 - 1)^2 + 2 (2^16 - 1) = 2^32 - 1.
    middle = a1 * b0 + ((a0 * b0) >> half)
    other = a0 * b1 + (middle & low)
    return a1 * b1 + (middle >> half) + (other >> half)


# ------------------------------------------------------------------------------------------------------------ shifts


def shift_left(x: UInt32[Array, "*#n limbs"], amount: Int[Array, "*#n"]) -> UInt32[Array, "*#n limbs"]:
    """x 2^amount modulo 2^(32 limbs), for a traced amount >= 0 of any size (XLA's own shift by 32 or more is not 0)."""
    amount = jnp.asarray(amount).astype(jnp.int32)[..., None]
    return _gather_limbs(x, amount // 32, amount % 32)


def shift_right(x: UInt32[Array, "*#n limbs"], amount: Int[Array, "*#n"]) -> UInt32[Array, "*#n limbs"]:
    """floor(x / 2^amount), for a traced amount >= 0 of any size."""
    amount = jnp.asarray(amount).astype(jnp.int32)[..., None]
    whole = -(-amount // 32)
    return _gather_limbs(x, -whole, whole * 32 - amount)


def _gather_limbs(
    x: UInt32[Array, "*#n limbs"], offset: Int[Array, "*#n 1"], bits: Int[Array, "*#n 1"]
) -> UInt32[Array, "*#n limbs"]:
    """Limb i becomes limb i+offset of x shifted up by 0 <= bits < 32, with what limb i+offset+1 pushes in from below."""
    limbs = x.shape[-1]
    bits = bits.astype(jnp.uint32)
    if limbs == 1:
        here, below = _limb_or_zero(x, offset), _limb_or_zero(x, offset + 1)
    else:
        index = jnp.arange(limbs, dtype=jnp.int32).reshape((1,) * (x.ndim - 1) + (limbs,)) + offset
        here, below = _limb_or_zero(x, index), _limb_or_zero(x, index + 1)
    carried = jnp.where(bits == 0, np.uint32(0), below >> ((32 - bits) % 32))
    return (here << bits) | carried


def _limb_or_zero(x: UInt32[Array, "*#n limbs"], index: Int[Array, "*#n _"]) -> UInt32[Array, "*#n _"]:
    """x[..., index], or 0 for an index outside."""
    limbs = x.shape[-1]
    inside = (index >= 0) & (index < limbs)
    if limbs == 1:
        return jnp.where(inside, x, np.uint32(0))
    shape = jnp.broadcast_shapes(index.shape[:-1], x.shape[:-1])
    index = jnp.broadcast_to(index, (*shape, index.shape[-1]))
    x = jnp.broadcast_to(x, (*shape, limbs))
    return jnp.where(inside, jnp.take_along_axis(x, jnp.clip(index, 0, limbs - 1), axis=-1), np.uint32(0))


# ------------------------------------------------------------------------------------------------------ size, logs


@jax.jit
def bit_length(x: UInt32[Array, "*n limbs"]) -> Int[Array, "*n"]:
    """Number of binary digits: floor(log2 x) + 1, and 0 for 0."""
    if x.shape[-1] > _UNROLLED:
        digits = 32 - lax.clz(x).astype(jnp.int32)
        return jnp.max(jnp.where(x > 0, digits + 32 * _significance(x), 0), axis=-1)
    result = jnp.zeros(x.shape[:-1], jnp.int32)
    for i, word in enumerate(reversed(columns(x))):
        result = jnp.where(word > 0, 32 * (i + 1) - lax.clz(word).astype(jnp.int32), result)
    return result


@jax.jit
def trailing_zeros(x: UInt32[Array, "*n limbs"]) -> Int[Array, "*n"]:
    """How many binary digits 0 come after the last 1; for 0, all digits there are.

    >>> trailing_zeros(from_ints([3, 2**40, 0], 64)).tolist()
    [0, 40, 64]
    """
    last = 31 - lax.clz(x & (~x + np.uint32(1))).astype(jnp.int32)
    return jnp.min(jnp.where(x > 0, last + 32 * _significance(x), 32 * x.shape[-1]), axis=-1)


def as_float(x: UInt32[Array, "*n limbs"]) -> Float[Array, "*n"]:
    """x to full relative accuracy of the default float, for at most FLOAT_LIMBS limbs."""
    return functools.reduce(lambda high, low: high * 2.0**32 + low, [word.astype(float) for word in columns(x)])


def power(exponent: Int[ArrayLike, "*n"]) -> Float[Array, "*n"]:
    """2^exponent, from -126 to 127."""
    return lax.bitcast_convert_type((jnp.asarray(exponent, jnp.int32) + 127) << 23, jnp.float32).astype(float)


@frozen
class LogParts:
    """ln x in two parts, for x = e^fraction 2^exponent, where the fraction is at most 67, and -inf for 0.

    For 4096 bits ln x is as large as 2839, where float32 has steps of 0.0002; in units of 2^bits the logarithm of a number of about that
    size is right to a few millionths.
    """

    fraction: Float[Array, "*n"]
    exponent: Int[Array, "*n"]

    def over(self, bits: Int[ArrayLike, ""]) -> Float[Array, "*n"]:
        """ln(x 2^-bits)."""
        return self.fraction + (self.exponent - bits).astype(float) * math.log(2.0)


@jax.jit
def log_parts(x: UInt32[Array, "*n limbs"]) -> LogParts:
    """ln x; the exponent is a multiple of 32, and 0 up to three limbs."""
    limbs = x.shape[-1]
    if limbs <= FLOAT_LIMBS:
        return LogParts(fraction=jnp.log(as_float(x)), exponent=jnp.zeros(x.shape[:-1], jnp.int32))
    if limbs > _UNROLLED:
        place = jnp.max(jnp.where(x > 0, _significance(x), 0), axis=-1)
        first = limbs - 1 - place[..., None] + jnp.arange(3, dtype=jnp.int32).reshape((1,) * (x.ndim - 1) + (3,))
        leading = columns(_limb_or_zero(x, first))
    else:
        padded = columns(x) + [jnp.zeros(x.shape[:-1], jnp.uint32)] * 2
        leading, place = padded[limbs - 1 : limbs + 2], jnp.zeros(x.shape[:-1], jnp.int32)
        for i in range(limbs - 2, -1, -1):
            nonzero = padded[i] > 0
            leading = [jnp.where(nonzero, new, old) for new, old in zip(padded[i : i + 3], leading, strict=True)]
            place = jnp.where(nonzero, limbs - 1 - i, place)
    a, b, c = (word.astype(float) for word in leading)
    return LogParts(fraction=jnp.log(a + (b + c * 2.0**-32) * 2.0**-32), exponent=32 * place)


def log(x: UInt32[Array, "*n limbs"], bits: Int[ArrayLike, ""] = 0) -> Float[Array, "*n"]:
    """ln(x 2^-bits), -inf for 0: for bits = 0 to full relative accuracy of the default float.

    Up to three limbs x itself fits float32's range. Else x = (a + b 2^-32 + c 2^-64) 2^(32 k) with a, its leading non-zero limb, >= 1:
    both logarithms are >= 0, so nothing cancels, and x = 1 gives 0 exactly.
    """
    return log_parts(x).over(bits)


def midpoint(a: UInt32[Array, "*#n limbs"], b: UInt32[Array, "*#n limbs"]) -> UInt32[Array, "*#n limbs"]:
    """floor((a + b) / 2) for a <= b, without overflow."""
    return add(a, _half(subtract(b, a)))


def _half(x: UInt32[Array, "*n limbs"]) -> UInt32[Array, "*n limbs"]:
    """floor(x / 2)."""
    above = jnp.concatenate([jnp.zeros_like(x[..., :1]), x[..., :-1]], axis=-1)
    return (x >> np.uint32(1)) | (above << np.uint32(31))


# --------------------------------------------------------------------------------------------------- order, drawing


def sort(x: UInt32[Array, "n limbs"], *payload: Array, payload_keys: int = 0) -> tuple[Array, ...]:
    """Rows of x in increasing order, and payload arrays of length n carried along; stable.

    Rows that are equal are ordered by the first `payload_keys` payloads.
    """
    columns = [x[:, i] for i in range(x.shape[-1])]
    out = sorting.sort([*columns, *payload[:payload_keys]], *payload[payload_keys:])
    return (jnp.stack(out[: len(columns)], axis=-1), *out[len(columns) :])


def search(rows: UInt32[Array, "n limbs"], query: UInt32[Array, "limbs"], *, side: str = "left") -> Int[Array, ""]:
    """How many of the increasing `rows` are < query (side="left") or <= query (side="right")."""
    precedes = less if side == "left" else less_equal
    at, count = rows_of(rows), rows.shape[0]
    return first_where(lambda index: ~precedes(at(index), query), jnp.int32(0), jnp.int32(count), count)


def searcher(rows: UInt32[Array, "n limbs"]) -> Callable[..., Int[Array, ""]]:
    """`search` of rows searched many times, as in a loop: the last rows of all blocks are compared at once, then the rows of one block.

    >>> find = searcher(from_ints(range(0, 600, 2), 64))
    >>> [int(find(from_ints([x], 64)[0], side="right")) for x in (0, 333, 599)]
    [1, 167, 300]
    """
    count, limbs = rows.shape
    if count <= 2 * _BLOCK or limbs > _UNROLLED:
        return functools.partial(search, rows)
    parts = staging.apart((rows, along_rows(lambda column: column[_BLOCK - 1 :: _BLOCK], rows)))

    def find(query: UInt32[Array, "limbs"], *, side: str = "left") -> Int[Array, ""]:
        precedes = less if side == "left" else less_equal
        rows, lasts = staging.together(parts)
        blocks = jnp.sum(precedes(lasts, query[None]), dtype=jnp.int32)
        start = jnp.minimum(_BLOCK * blocks, count - _BLOCK)  # the rows before it precede
        block = along_rows(lambda column: lax.dynamic_slice(column, (start,), (_BLOCK,)), rows)
        return start + jnp.sum(precedes(block, query[None]), dtype=jnp.int32)

    return find


def random_bits(key: Array, bits: Int[Array, ""], limbs: int) -> UInt32[Array, "limbs"]:
    """Uniform on 0, ..., 2^bits - 1 (bits traced), exactly."""
    words = jax.random.bits(key, (limbs,), jnp.uint32)
    return words & largest(bits, limbs)


def uniform(key: Array, bound: UInt32[Array, "limbs"]) -> UInt32[Array, "limbs"]:
    """Uniform on 0, ..., bound - 1 (0 for bound 0).

    Rejection from the next power of two: each try is accepted with probability > 1/2 and then exactly uniform. After 80
    tries (probability < 2^-80) one of them less `bound` is returned, so the bias is below 2^-80 in total variation.
    """
    limbs, key = bound.shape[-1], random.for_loops(key)
    width = bit_length(subtract(bound, one(limbs)))
    width = jnp.where(is_zero(bound), 0, width)

    def attempt(state: tuple[Array, Array]) -> tuple[Array, Array]:
        tries, _ = state
        words = random.bits(jax.random.fold_in(key, tries), _TRIES * limbs).reshape(_TRIES, limbs)
        offers = words & largest(width, limbs)[None]
        first = jnp.argmax(less(offers, bound[None]))  # 0 when none fits
        return tries + _TRIES, offers[first]

    def rejected(state: tuple[Array, Array]) -> Array:
        tries, x = state
        return (tries == 0) | (less_equal(bound, x) & ~is_zero(bound) & (tries < 80))

    _, x = lax.while_loop(rejected, attempt, (jnp.int32(0), jnp.zeros((limbs,), jnp.uint32)))
    return select(less(x, bound), x, select(is_zero(bound), bound, subtract(x, bound)))
