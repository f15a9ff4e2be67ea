"""Interior points, thresholds and quantiles by the keys that the data support, in tuned NumPy.

Like for like with `interior_point.supported_tree`, `learners.thresholds.supported`, `quantiles.supported` (planned for beta = 0.1) and
`quantiles.supported_slices` at epsilon = 1, delta = 1e-6. Points are floor(2^U), U uniform on [0, d - 1), as for `numpy_interior`; examples
have such distances from the target on either side, as for `numpy_trials`. Success is what it is in the other contests of interior points,
thresholds and quantiles; but slices, whose ranks are noisy, may be RANKS ranks off.

Points and labels may be any, equal points among them: `numpy_keys` finds the keys that points support, which are weighed here. All points
are drawn, as partial sums of spacings. Of quantiles only the points near the wanted ranks are looked at, and of thresholds only examples
that keys of few errors may have below them; no others are written out as binary digits.
"""

import functools
import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpjax.bounds import mechanisms as bounds
from dpjax.optimizers import quantiles
from dpjax.optimizers.quantiles.chained_ranks import STEP, split
from experiments.benchmarks import numpy_keys
from experiments.benchmarks.numpy_driver import Program, fitting, spacings, within
from experiments.benchmarks.numpy_interior import BETA
from experiments.benchmarks.numpy_quantiles import RANKS as FEW
from experiments.benchmarks.numpy_quantiles import fractions
from experiments.benchmarks.numpy_trials import ALPHA, DELTA, EPSILON

RANKS = 30
# Of `supported_slices`, for (1, 1e-6)-privacy in all.
PARTS: dict[str, Any] = {
    "epsilon": 0.55,
    "delta": 5e-7,
    "m": 80,
    "rank_epsilon": 0.38,
    "count_epsilon": 0.05,
    "gap_delta": 4e-7,
}
UNITS = STEP.bit_length() - 1
DIGITS = 23  # of a point behind its first one

Array = NDArray[Any]


# ------------------------------------------------------------------------------------------------------- interior points


def supported_tree(rng: np.random.Generator, rows: int, d: int, n: int) -> int:
    """The keys of an interior point by the points below them."""
    places, total = _places(rng, rows, n)
    x = _written(places.T * ((d - 1) / total), numpy_keys.words_for(d))
    answer, found = interior_point(rng, x, d)
    inside = ~numpy_keys.less(answer, x[:, 0]) & ~numpy_keys.less(x[:, -1], answer)
    return int(np.count_nonzero(found & inside))


def interior_point(rng: np.random.Generator, x: Array, d: int) -> tuple[Array, Array]:
    """(the answer for each row of sorted points, of shape (words, points, rows); whether there is one)."""
    n = x.shape[1]
    less = 5 * n // 12  # the best key has n/3 to n/2

    def weigh(inside: Array, under: Array, up_to: Array) -> Array:
        least = np.minimum(up_to, n - under)
        score = np.minimum(least, inside)
        return np.where(least > 0, np.exp(np.float32(EPSILON) * (score - less).astype(np.float32)), np.float32(0))

    answer, total, *_ = numpy_keys.chosen(rng, x, d, weigh)
    return answer, _released(rng, total, EPSILON * less, 2 * d - 1, EPSILON, DELTA, True)


def _released(
    rng: np.random.Generator,
    total: Array,
    log_unit: float,
    growth: float,
    epsilon: float,
    delta: float,
    monotone: bool = False,
) -> Array:
    """Whether some key is released, given the sum of all weights in units of e^log_unit."""
    rho, unit, log_edge = bounds.supported_parts(growth, epsilon, delta, monotone, np)
    with np.errstate(divide="ignore"):  # of no keys
        x = np.log(total) + (log_unit - log_edge - unit)
    chance = np.where(x <= 0, rho * np.exp(np.minimum(x, 0)), 1 + rho - np.exp(-rho * np.maximum(x, 0))) / (1 + rho)
    return np.asarray(rng.random(len(total)) < chance)


# ------------------------------------------------------------------------------------------------------------ thresholds


def supported(rng: np.random.Generator, rows: int, d: int, n: int) -> int:
    """Thresholds by their errors and the examples below them."""
    places, total = _places(rng, rows, n)
    places -= (total >> 1)[:, None]  # negative on the left of the target
    examples = Examples(places < 0, room(n))
    at = examples.place
    x = _examples(np.take_along_axis(places, np.clip(at, 0, n - 1), 1).T * (2 * (d - 1) / total), d)
    x[:, at.T < 0] = _constant(1, x)
    x[:, n == at.T] = _constant(2 ** (d + 1) + 3, x)
    answer, found = threshold(rng, x, examples, d)
    width = math.floor(2.0 ** (2 * ALPHA * (d - 1)))
    first, last = (_constant(2 * j + 2, x)[:, 0, None] for j in (2 ** (d - 1) + 1 - width, 2 ** (d - 1) + width))
    good = ~numpy_keys.less(answer, first) & ~numpy_keys.less(last, answer)
    return int(np.count_nonzero(found & good))


def room(n: int) -> int:
    """T of the learner, whose alpha is a float of 32 bits."""
    return math.floor(np.float32(2 * ALPHA) / np.float32(2) * np.float32(n))


class Examples:
    """What is looked at of the labels in order, which may be any; with T points at either end.

    A threshold that errs on `missed` examples has no use for more than T - missed examples below its key.

    Attributes:
        n, room: the number of examples, and T.
        place: which examples are looked at, the same number in each row; -1 and n are the points at the ends.
        before: how many points there are in front of each, and of the end.
        missed: the errors of thresholds in front of each, and behind all.
    """

    def __init__(self, labels: Array, room: int) -> None:
        rows, self.n = labels.shape
        self.room = room
        steps = np.zeros((rows, self.n + 1), np.int32)
        np.subtract(1, 2 * labels.view(np.int8), out=steps[:, 1:], dtype=np.int32)
        steps[:, 0] = np.count_nonzero(labels, axis=1)
        missed = np.cumsum(steps, axis=1, dtype=np.int32, out=steps)
        gap = np.arange(self.n + 1, dtype=np.int32)
        spare = np.maximum(room - missed, 0)
        first = np.where(spare > 0, gap - spare, self.n).min(axis=1)
        last = np.where(spare > 0, gap + spare, 0).max(axis=1)
        first, last = np.maximum(first, -1), np.minimum(last, self.n + 1)
        width = max(int((last - first).max()), 2)
        first = np.maximum(np.minimum(first, self.n + 1 - width), -1)
        self.place = first[:, None] + np.arange(min(width, self.n + 2))
        gap = np.concatenate([self.place, self.place[:, -1:] + 1], axis=1)
        # No thresholds are in front of all points, or behind them.
        errors = np.take_along_axis(missed, np.clip(gap, 0, self.n), 1)
        self.missed = np.where((gap < 0) | (gap > self.n), room, errors).T.astype(np.int32)
        ends = (self.place < 0) | (self.place == self.n)
        self.before = np.zeros((width + 1, rows), np.int32)
        np.cumsum(np.where(ends, room, 1).T, axis=0, out=self.before[1:])


def threshold(rng: np.random.Generator, x: Array, examples: Examples, d: int) -> tuple[Array, Array]:
    """(the key of the answer for each row; whether there is one), for points x of the tree."""
    room, rate = examples.room, np.float32(EPSILON / 2)
    less = 5 * room // 6  # on realizable examples the best key has 2 T/3 to T

    def weigh(inside: Array, under: Array, up_to: Array) -> Array:
        score = np.minimum(inside, room - numpy_keys.entries(examples.missed, under))
        weight = np.exp(rate * (score - less).astype(np.float32))
        return np.where((score > 0) & (under == up_to), weight, np.float32(0))  # keys of points are none of thresholds

    answer, total, *_ = numpy_keys.chosen(rng, x, d + 2, weigh, examples.before)
    growth = 2 * (room + 1) * (d + 1)
    return answer, _released(rng, total, EPSILON / 2 * less, growth, EPSILON, DELTA)


def _examples(exponent: Array, d: int) -> Array:
    """2x + 3 for x = 2^(d-1) +- floor(2^U), given +-U."""
    twice = _written(np.abs(exponent), numpy_keys.words_for(d + 2), 1)
    minus = exponent < 0
    flipped = -minus.astype(np.uint64)  # -a is ~a + 1
    more = _constant(2**d + 3, twice)[:, 0]
    carry = minus.astype(np.uint64)
    for word, own in zip(twice, more, strict=True):
        word ^= flipped
        word += carry
        over = word < carry
        if own:
            word += own
            over |= word < own
        carry = over.astype(np.uint64)
    return twice


# ------------------------------------------------------------------------------------------------------------- quantiles


def supported_quantiles(rng: np.random.Generator, rows: int, d: int, m: int, n: int) -> int:
    """Each quantile by the keys of a window around its rank."""
    places, total = _places(rng, rows, n)
    mechanism = quantile_mechanism(d, m)
    of_m = int(mechanism.m)
    under, up_to = np.empty((2, m, rows), np.int64)
    good = np.ones(rows, bool)
    for i, (given, width, epsilon, delta) in enumerate(zip(mechanism.fractions, *mechanism.budgets(np), strict=True)):
        at, rest = divmod(int(given) * n, 2**32)
        start = np.full(rows, at - of_m)
        x = _window(places, total, start, 2 * of_m + (rest > 0), d)
        own = Window(d, of_m, of_m + rest * 2.0**-32, float(width), float(epsilon), float(delta))
        _, first, last, found = own.answers(rng, x)
        under[i], up_to[i] = start + first, start + last
        good &= found
    return int(np.count_nonzero(good & _near(np.sort(under, axis=0), np.sort(up_to, axis=0), m, n, FEW)))


@functools.lru_cache(maxsize=4)
def quantile_mechanism(d: int, m: int) -> Any:
    """dpjax's mechanism for m evenly spaced quantiles."""
    return quantiles.supported(bits=d, fractions=fractions(m), epsilon=EPSILON, delta=DELTA, beta=BETA)


@functools.lru_cache(maxsize=4)
def slices_mechanism(d: int, m: int) -> Any:
    """dpjax's mechanism around noisy ranks."""
    return quantiles.supported_slices(bits=d, fractions=fractions(m), **PARTS)


class Window:
    """A run's window of 2m points or one more around the rank `centre` in it, which is one for all rows, or one for each."""

    def __init__(self, d: int, m: int, centre: Any, width: float, epsilon: float, delta: float) -> None:
        self.d, self.m, self.centre, self.width, self.epsilon, self.delta = d, m, centre, width, epsilon, delta

    def _weigh(self, inside: Array, under: Array, up_to: Array) -> Array:
        centre, zero = np.asarray(self.centre, np.float32), np.float32(0)
        error = np.maximum(np.maximum(centre - up_to.astype(np.float32), under.astype(np.float32) - centre), zero)
        score = np.minimum(inside.astype(np.float32), (np.float32(self.m) - error) / np.float32(self.width))
        return np.where(score > 0, np.exp(np.float32(self.epsilon / 2) * (score - np.float32(self.m))), zero)

    def answers(self, rng: np.random.Generator, x: Array) -> tuple[Array, Array, Array, Array]:
        """(The answer of each row; how many points of the window are less; how many are up to it; whether there is one)."""
        answer, total, under, up_to = numpy_keys.chosen(rng, x, self.d, self._weigh)
        growth = 5 * self.d - 4
        return answer, under, up_to, _released(rng, total, self.epsilon / 2 * self.m, growth, self.epsilon, self.delta)


def supported_slices(rng: np.random.Generator, rows: int, d: int, m: int, n: int) -> int:
    """Quantiles by the keys of windows around noisy ranks, whose noises add up in chains from both ends."""
    places, total = _places(rng, rows, n)
    mechanism = slices_mechanism(d, m)
    size, margin = int(mechanism.m), int(mechanism.margin)
    noises = _geometric(rng, float(mechanism.rate(np)), (m, rows))
    middle = split(m, mechanism.chains)
    lower, upper = np.cumsum(noises[:middle], axis=0), np.cumsum(noises[middle:][::-1], axis=0)[::-1]
    rank = (mechanism.fractions.astype(np.int64)[:, None] * n >> 32 - UNITS) + np.concatenate([lower, upper])
    good = (np.diff(rank, axis=0) >= STEP * (2 * size + margin + 1)).all(axis=0)
    good &= (n + _geometric(rng, float(mechanism.count_epsilon), (rows,)) >= int(mechanism.least)) | (m == 1)
    start, rest = (rank >> UNITS) - size, rank & STEP - 1
    found, below, up_to = np.zeros((m, rows), bool), start.copy(), start.copy()
    for more in (0, 1):
        run, row = np.nonzero(good & (np.sign(rest) == more))
        if len(row):
            x = _window(places, total, start[run, row], 2 * size + more, d, row)
            centre = size + rest[run, row] / STEP
            own = Window(d, size, centre, 0.5, float(mechanism.epsilon), float(mechanism.delta))
            _, first, last, found[run, row] = own.answers(rng, x)
            below[run, row] += first
            up_to[run, row] += last
    return int(np.count_nonzero(good & found.all(axis=0) & _near(below, up_to, m, n, RANKS)))


def _geometric(rng: np.random.Generator, rate: float, shape: tuple[int, ...]) -> Array:
    """Two-sided geometric noise."""
    odds = -math.expm1(-rate)
    return np.asarray(rng.geometric(odds, shape) - rng.geometric(odds, shape))


def _near(below: Array, up_to: Array, m: int, n: int, ranks: int) -> Array:
    """Whether no answer is further off. Points in front of a window count as less, as they are unless it holds as many copies of one."""
    wanted = np.array([math.floor(fraction * n + 0.5) for fraction in fractions(m)])[:, None]
    return np.asarray((np.maximum(below - wanted, wanted - up_to) <= ranks).all(axis=0))


# ------------------------------------------------------------------------------------------------------------- the points


def _places(rng: np.random.Generator, rows: int, n: int) -> tuple[Array, Array]:
    """(n sorted uniform places in each row, as partial sums of spacings; the whole sums), drawn in pieces that stay in cache."""
    places, total = np.empty((rows, n), np.int32), np.empty(rows, np.int32)
    step = fitting(8 * n)
    for first in range(0, rows, step):
        part = slice(first, min(first + step, rows))
        sums = np.cumsum(spacings(rng, part.stop - part.start, n).astype(np.int32), axis=1, dtype=np.int32)
        places[part], total[part] = sums[:, :-1], sums[:, -1]
    return places, total


def _window(places: Array, total: Array, start: Array, size: int, d: int, row: Array | None = None) -> Array:
    """The points of ranks start, ..., start + size - 1 of each row, shape (words, size, rows); past the data, ends of the domain."""
    n, row = places.shape[1], np.arange(len(places)) if row is None else row
    at = start + np.arange(size)[:, None]
    x = _written(places[row, np.clip(at, 0, n - 1)] * ((d - 1) / total[row]), numpy_keys.words_for(d))
    x[:, at < 0] = 0
    x[:, at >= n] = _constant(2**d - 1, x)
    return x


def _written(exponent: Array, words: int, more: int = 0) -> Array:
    """floor(2^U) 2^more, of which the first digits are kept, in words."""
    whole = exponent.astype(np.int32)
    digits = np.exp2((exponent - whole).astype(np.float32) + np.float32(DIGITS)).astype(np.uint64)
    digits >>= np.maximum(DIGITS - whole, 0).astype(np.uint64)
    shift = np.maximum(whole - DIGITS, 0) + more
    if words == 1:
        return (digits << shift.astype(np.uint64))[None]
    x = np.zeros((words, *exponent.shape), np.uint64)
    word, within_word = shift >> 6, (shift & 63).astype(np.uint64)
    at = word * exponent.size + np.arange(exponent.size).reshape(exponent.shape)
    x.reshape(-1)[at] = digits << within_word
    at += np.where(word + 1 < words, exponent.size, 0)
    x.reshape(-1)[at] |= digits >> (np.uint64(64) - within_word)  # numbers shifted by 64 are 0
    return x


def _constant(number: int, x: Array) -> Array:
    """A number as words of x, of shape (words, 1)."""
    return np.array([[number >> 64 * i & (2**64 - 1)] for i in range(len(x))], np.uint64)


def _check(d: int, n: int) -> None:
    within(d=(d, 6, 1024), n=(n, 2, 1000))


def _check_thresholds(d: int, n: int) -> None:
    within(d=(d, 6, 1024), n=(n, 1, 10_000))


def _check_quantiles(d: int, m: int, n: int) -> None:
    within(d=(d, 6, 1024), m=(m, 1, math.inf), n=(n, 1, 2**20))


def _rows(d: int, points: int, n: int) -> int:
    """As many as stay in cache with their points; each step along the points takes all of them."""
    return fitting(8 * numpy_keys.words_for(d + 2) * points + 4 * n, of=1 << 22, at_least=32)


PROGRAMS = {
    "supported_tree": Program(supported_tree, lambda d, n: _rows(d, n, n), _check),
    "supported": Program(supported, lambda d, n: _rows(d, n // 5, n), _check_thresholds),
    "quantiles supported": Program(supported_quantiles, lambda d, m, n: _rows(d, 100, n), _check_quantiles),
    "quantiles supported_slices": Program(supported_slices, lambda d, m, n: 64, _check_quantiles),
}
