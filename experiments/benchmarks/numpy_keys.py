"""The keys of a search tree that points support, in tuned NumPy: for `numpy_supported`.

The tree is that of `dpjax.optimizers.interior_point.tree_score`: the key y has as many trailing zeros as its *height* says, and the
subtree of all y + e, |e| < 2^height; the key 0, of height -1, hangs below the key 1. dpjax looks at every height of every point. Here it
is used that most keys on a search path hold the same points. Subtrees of n points hold at most 2 n - 1 different sets, which are runs in
order: one point, or what the key where two neighbours part (or which one of them is) has below it. From that key upwards, up to the next
one where others join, a chain of keys has the same points below it: all to the left of those keys whose digit is 0 in the points, all to
the right of the others. So two counts of digits say how many keys of a chain have the same score. Points may be any, equal ones and keys
of others among them.

Points have 64-bit words, the lowest first, and stand in arrays of shape (words, points, rows): all trials of a batch are processed in
step. Runs are found by binary searches for the gaps at which others join, for all gaps at once.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from experiments.benchmarks.numpy_driver import choose

Array = NDArray[Any]
Weigh = Callable[
    [Array, Array, Array], Array
]  # weights of keys, given the points below them, `under` and `up_to` as in `Runs`

KNOWN = ("item", "low", "high", "before", "stop", "under", "up_to")  # of a run, once it is chosen
KEY, RIGHT, LEFT = (
    0,
    1,
    2,
)  # the first key of a run, and the keys of its chain to the right and to the left of its points


class Runs(NamedTuple):
    """Runs of neighbours that keys have below them, from the point `before` on up to the point `stop`.

    Attributes:
        exists: whether there is such a run; else the rest means nothing.
        item: one of its points.
        low, high: the height of its first key, and that at which others join.
        before, stop, under, up_to: how many points are in front of the run and of its end, less than its first key, and up to it.
        ones: how many digits 1 the points have between these heights, without their ends.
    """

    exists: Array
    item: Array
    low: Array
    high: Array
    before: Array
    stop: Array
    under: Array
    up_to: Array
    ones: Array

    def weights(self, weigh: Weigh, counts: Array | None) -> Array:
        """Of first keys, of all keys to the right, and of all keys to the left; shape (3, runs, rows)."""
        before, stop = (at if counts is None else entries(counts, at) for at in (self.before, self.stop))
        inside, zeros = stop - before, self.high - 1 - self.low - self.ones
        sides = ((zeros, self.stop), (self.ones, self.before))
        right, left = (number.astype(np.float32) * weigh(inside, at, at) for number, at in sides)
        found = np.empty((3, *self.exists.shape), np.float32)
        for part, own in zip(found, (weigh(inside, self.under, self.up_to), right, left), strict=True):
            np.multiply(own, self.exists, out=part)
        return found


def entries(table: Array, at: Array) -> Array:
    """table[at[i, row], row]."""
    rows = table.shape[1]
    place: Array = at * np.int32(rows) + np.arange(rows, dtype=np.int32)
    return table.reshape(-1).take(place)


def words_for(bits: int) -> int:
    """Words of a point: one up to 64 bits; else there is room for one digit more."""
    return 1 if bits <= 64 else bits // 64 + 1


def chosen(
    rng: np.random.Generator, x: Array, bits: int, weigh: Weigh, counts: Array | None = None
) -> tuple[Array, Array, Array, Array]:
    """A key of each row by its weight.

    Args:
        rng: the generator.
        x: sorted points, shape (words, points, rows), two points at least.
        bits: they are below 2^bits.
        weigh: weights of keys.
        counts: how many points each one and all before it stand for, from 0 on; one each by default.

    Returns:
        (keys of shape (words, rows); the sums of all weights; which points are less than the key, and up to it).
    """
    both = runs(x, bits)
    parts = [each.weights(weigh, counts) for each in both]
    sums = np.cumsum(np.concatenate([part.sum(axis=1) for part in parts]), axis=0)
    total, row = sums[-1], np.arange(x.shape[2])
    kind = np.minimum(np.count_nonzero(sums <= rng.random(len(total), np.float32) * total, axis=0), 5)
    known = np.empty((len(KNOWN), len(row)), np.int64)
    for i, (some, part) in enumerate(zip(both, parts, strict=True)):
        here = row[kind // 3 == i]
        at = choose(rng, part[kind[here] % 3, :, here])
        for name, own in zip(KNOWN, known, strict=True):
            own[here] = np.broadcast_to(getattr(some, name), some.exists.shape)[at, here]
    place, low, high, before, stop, under, up_to = known
    kind, item = kind % 3, x[:, place, row]
    height = np.where(kind == KEY, low, _digit(rng, item, low, high, kind == RIGHT))
    beside = np.where(kind == RIGHT, stop, before)
    under, up_to = np.where(kind == KEY, (under, up_to), beside)
    return _key(item, height), total, under, up_to


def runs(x: Array, bits: int) -> tuple[Runs, Runs]:
    """Those of one point, and those of several."""
    _, n, rows = x.shape
    tail = _trailing(x)
    apart = _length(x[:, 1:] ^ x[:, :-1])
    # gap[k]: the height at which the points k - 1 and k part; a key that is a point of the run has them part at itself.
    gap = np.full((n + 1, rows), bits, np.int16)
    np.maximum(np.maximum(apart - np.int16(1), tail[1:]), tail[:-1], out=gap[1:n])
    digits = _Digits(x)
    place = np.arange(n, dtype=np.int32)[:, None]
    high = np.minimum(gap[:-1], gap[1:])
    single = Runs(
        high > tail, place, tail, high, place, place + 1, place, place + 1, digits.between(slice(None), tail, high)
    )

    before, stop = _neighbours(gap)
    low, place, row = gap[1:n], place[1:], np.arange(rows)
    left, right = gap[before, row], gap[stop, row]
    high = np.minimum(left, right)
    copies = np.where(apart > 0, place, n)
    copies = np.minimum.accumulate(np.concatenate([copies, np.full((1, rows), n, np.int32)])[::-1], axis=0)[::-1]
    is_left, is_right = tail[:-1] == low, tail[1:] == low  # then the point is the key
    under = place - is_left
    up_to = np.where(is_left, copies[:-1], np.where(is_right, copies[1:], place))
    ones = digits.between(slice(0, n - 1), low, high)
    return single, Runs(left > low, place - 1, low, high, before, stop, under, up_to, ones)


def _neighbours(gap: Array) -> tuple[Array, Array]:
    """For all gaps but the ends: the next one on the left that is not lower, and the next one on the right that is higher.

    By steps that halve, taken where all gaps that they pass are lower; the ends are higher than all others.
    """
    n, rows = len(gap) - 1, gap.shape[1]
    tables = [gap]  # the greatest of 2^i neighbours from each on
    while (size := 1 << len(tables)) <= n:
        tables.append(np.maximum(tables[-1][: -size // 2], tables[-1][size // 2 :]))
    height = gap[1:n]
    left = np.arange(rows, n * rows, dtype=np.int32).reshape(n - 1, rows)
    right = left + np.int32(rows)
    for i in reversed(range(len(tables))):
        greatest, step = tables[i].reshape(-1), np.int32(rows << i)
        left -= step * (greatest.take(np.maximum(left - step, 0)) < height)
        right += step * (greatest.take(np.minimum(right, len(greatest) - 1)) <= height)
    return left // rows - 1, right // rows


# ------------------------------------------------------------------------------------------------------------- digits


def _length(x: Array) -> Array:
    """Binary digits of numbers, which are 0 for 0."""
    found = np.zeros(x.shape[1:], np.int16)
    for i, word in enumerate(x):
        # Without neighbouring ones, a float rounds to no more digits.
        exponent = (word & ~(word >> np.uint64(1))).astype(float).view(np.int64) >> 52
        np.copyto(found, (exponent - (1022 - 64 * i)).astype(np.int16), where=word > 0)
    return found


def _trailing(x: Array) -> Array:
    """Trailing zeros; -1 for 0."""
    found, none = np.full(x.shape[1:], -1, np.int16), np.ones(x.shape[1:], bool)
    for i, word in enumerate(x):
        here = none & (word > 0)
        np.copyto(found, np.bitwise_count(~word & (word - np.uint64(1))) + np.int16(64 * i), where=here)
        none ^= here
        if not none.any():
            break
    return found


class _Digits:
    """Counts of the ones among the digits of points."""

    def __init__(self, x: Array) -> None:
        self.x, (_, self.n, self.rows) = x, x.shape
        if len(x) > 1:
            self.before = np.zeros(x.shape, np.int16)  # in lower words
            np.cumsum(np.bitwise_count(x[:-1]), axis=0, dtype=np.int16, out=self.before[1:])

    def between(self, items: slice, low: Array, high: Array) -> Array:
        """Ones of the digits low + 1, ..., high - 1, for an array of items in order."""
        if len(self.x) == 1:
            low, high = low + np.int16(1), np.int16(64) - high
            return np.bitwise_count(
                (self.x[0, items] << high.view(np.uint16)) >> high.view(np.uint16) >> low.view(np.uint16)
            )
        first = (np.arange(self.n)[items, None] * self.rows + np.arange(self.rows)).astype(np.int32)
        return self._below(first, high) - self._below(first, low + np.int16(1))

    def _below(self, first: Array, digit: Array) -> Array:
        word = digit >> 6
        at = word * np.int32(self.n * self.rows) + first
        mask = (np.uint64(1) << (digit & 63).astype(np.uint64)) - np.uint64(1)
        return self.before.reshape(-1)[at] + np.bitwise_count(self.x.reshape(-1)[at] & mask)


def _digit(rng: np.random.Generator, item: Array, low: Array, high: Array, zero: Array) -> Array:
    """One of the zeros, or of the ones, among the digits low + 1, ..., high - 1 of each row; anything if there is none."""
    words, rows = item.shape
    digit = 64 * np.arange(words)[:, None]
    wanted = np.where(zero, ~item, item)
    wanted &= _ones(high - digit) & ~_ones(low + 1 - digit)
    upto = np.cumsum(np.bitwise_count(wanted), axis=0, dtype=np.int64)
    place = (rng.random(rows) * upto[-1]).astype(np.int64)
    word = np.minimum(np.count_nonzero(upto <= place, axis=0), words - 1)
    row = np.arange(rows)
    here, found = wanted[word, row], np.zeros(rows, np.int64)
    place -= upto[word, row] - np.bitwise_count(here)
    for step in (32, 16, 8, 4, 2, 1):
        skipped = np.bitwise_count(here >> found.astype(np.uint64) & np.uint64((1 << step) - 1))
        is_over = skipped <= place
        place -= np.where(is_over, skipped, 0)
        found += np.where(is_over, step, 0)
    return np.asarray(found + 64 * word)


def _ones(count: Array) -> Array:
    """Words with so many ones at the low end, if 0 to 64, else none or all."""
    return ~(~np.uint64(0) << np.clip(count, 0, 64).astype(np.uint64))


def _key(item: Array, height: Array) -> Array:
    """The key of this height with a point below it."""
    digit = 64 * np.arange(len(item))[:, None]
    last = np.where(
        (height >= digit) & (height < digit + 64), np.uint64(1) << ((height - digit) & 63).astype(np.uint64), 0
    )
    return np.asarray((item & ~_ones(height + 1 - digit)) | last.astype(np.uint64))


def less(a: Array, b: Array) -> Array:
    """Whether a < b, for numbers of shape (words, ...)."""
    found = np.zeros(np.broadcast_shapes(a.shape[1:], b.shape[1:]), bool)
    for one, other in zip(a, b, strict=True):
        found = (one < other) | (found & (one == other))
    return found
