"""Classes of counting queries on a small domain, N = 2^bits points: their largest error, and a private choice of a bad one.

A difference of two databases is a vector d over the points, and the error of the query c is |<c, d>|. A *signed* query v = c or -c has
max over v of <v, d> = the largest error. Every class chooses one with probability proportional to exp(rate <v, d>): among the (N + 1)^2
signed intervals v = 1[x < j] - 1[x < i] in O(N) steps, as j and i are then independent, and among pairs one point after the other.

The choice uses the `answers` for d. Weights come from differences of two of them: if all answers are multiples of a power of two, below
2^24 times that power, such differences are exact, and it is the best queries whose weights lose no digits.
"""

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, Real

from dpjax.core import arguments, logspace, staging
from dpjax.core.pytree import frozen, static
from dpjax.mechanisms import exponential

LARGEST_DOMAIN = 16  # bits of a domain that is held as a vector


class Queries:
    """Base of all classes of queries.

    Attributes:
      bits: d, the domain is {0, ..., 2^d - 1}.
    """

    bits: int

    @property
    def size(self) -> int:
        """N, the number of points."""
        return 1 << self.bits

    def concepts(self) -> Bool[np.ndarray, "queries points"]:
        """All queries as rows: for plain checks on tiny domains."""
        raise NotImplementedError

    def signed(self) -> Any:
        """The queries that `choose` chooses among, as rows: for the law on tiny domains."""
        concepts = self.concepts().astype(np.int32)
        return np.concatenate([concepts, -concepts])

    def candidates(self) -> int:
        """How many rows `signed` has."""
        raise NotImplementedError

    def answers(self, difference: Real[Array, "points *many"]) -> Real[Array, "answers *many"]:
        """The numbers that errors are computed from: <c, d> of some concepts c, linear in d."""
        return difference

    def extent(self, answers: Real[Array, "answers *many"]) -> Real[Array, "*many"]:
        """The largest |<c, d>| over the class, from the `answers` for d.

        It is not computed from absolute values: NVIDIA's assembler for Hopper cards gets max(|a|, |b|) of two int32 wrong.
        """
        return jnp.maximum(staging.greatest(answers), -staging.least(answers))

    def largest(self, difference: Real[Array, "points *many"]) -> Real[Array, "*many"]:
        """The largest |<c, d>| over the class, in the type of the difference."""
        return self.extent(self.answers(difference))

    def scores(self, answers: Float[Array, "answers"]) -> Float[Array, "candidates"]:
        """<v, d> of every signed query, in the order of `signed`, from the `answers` for d."""
        return jnp.concatenate([answers, -answers])

    def choose(self, key: Array, answers: Float[Array, "answers"], rate: Any) -> Int[Array, "points"]:
        """A signed query v with probability proportional to exp(rate <v, d>), from the `answers` for d."""
        raise NotImplementedError

    def rounding(self, rows: int) -> float:
        """For every law on the domain there is a database of `rows` rows within this of it.

        Round R times its masses down, and those with the largest remainders up. If k of the N remainders, whose sum is k, go up, they go up
        by at most k (1 - k/N) <= N/4 in all: no query is off by more than N/(4R).
        """
        return self.size / (4.0 * rows)


@frozen
class Thresholds(Queries):
    """x < j, for j = 0, ..., N."""

    bits: int = static()

    def concepts(self) -> Bool[np.ndarray, "queries points"]:
        return np.tri(self.size + 1, self.size, -1, dtype=bool)

    def candidates(self) -> int:
        return 2 * (self.size + 1)

    def answers(self, difference: Real[Array, "points *many"]) -> Real[Array, "answers *many"]:
        return _sums_below(difference)

    def choose(self, key: Array, answers: Float[Array, "answers"], rate: Any) -> Int[Array, "points"]:
        index, sign = _signed(key, answers, rate)
        return sign * _below(index, self.size)

    def rounding(self, rows: int) -> float:
        """1/(2R): round the distribution function to multiples of 1/R, which keeps it increasing."""
        return min(super().rounding(rows), 1.0 / (2.0 * rows))


@frozen
class Intervals(Queries):
    """i <= x < j: c_i xor c_j of two thresholds."""

    bits: int = static()

    def concepts(self) -> Bool[np.ndarray, "queries points"]:
        below = np.tri(self.size + 1, self.size, -1, dtype=bool)
        first, second = np.triu_indices(self.size + 1)
        return below[second] & ~below[first]

    def signed(self) -> Int[np.ndarray, "candidates points"]:
        """1[x < j] - 1[x < i] for all i and j; those with i = j are the empty query, which is c_i xor c_i."""
        below = np.tri(self.size + 1, self.size, -1, dtype=np.int32)
        return (below[None, :] - below[:, None]).reshape(-1, self.size)

    def candidates(self) -> int:
        return (self.size + 1) ** 2

    def answers(self, difference: Real[Array, "points *many"]) -> Real[Array, "answers *many"]:
        """The answers of thresholds; the error of an interval is the difference of two of them."""
        return _sums_below(difference)

    def extent(self, answers: Real[Array, "answers *many"]) -> Real[Array, "*many"]:
        return staging.greatest(answers) - staging.least(answers)

    def scores(self, answers: Float[Array, "answers"]) -> Float[Array, "candidates"]:
        return (answers[None, :] - answers[:, None]).ravel()

    def choose(self, key: Array, answers: Float[Array, "answers"], rate: Any) -> Int[Array, "points"]:
        low, high = (
            exponential.draw(one, _below_best(at, rate)).index
            for one, at in zip(jax.random.split(key), (-answers, answers), strict=True)
        )
        return _below(high, self.size) - _below(low, self.size)

    def rounding(self, rows: int) -> float:
        """1/R: twice that of thresholds."""
        return min(super().rounding(rows), 1.0 / rows)


@frozen
class Points(Queries):
    """x = j, for every point j."""

    bits: int = static()

    def concepts(self) -> Bool[np.ndarray, "queries points"]:
        return np.eye(self.size, dtype=bool)

    def candidates(self) -> int:
        return 2 * self.size

    def choose(self, key: Array, answers: Float[Array, "answers"], rate: Any) -> Int[Array, "points"]:
        index, sign = _signed(key, answers, rate)
        return sign * (jnp.arange(self.size, dtype=jnp.int32) == index).astype(jnp.int32)

    def rounding(self, rows: int) -> float:
        """(1 - 1/N)/R: a remainder that goes up is at least 1/N, and one that does not at most 1 - 1/N."""
        return min(super().rounding(rows), (1.0 - 1.0 / self.size) / rows)


@frozen
class Pairs(Queries):
    """x in {j}, or in {i, j}: c_i xor c_j of two points, or of a point and the all-zero concept."""

    bits: int = static()

    def concepts(self) -> Bool[np.ndarray, "queries points"]:
        nothing_and_points = np.concatenate([np.zeros((1, self.size), bool), np.eye(self.size, dtype=bool)])
        first, second = np.triu_indices(self.size + 1, 1)
        return nothing_and_points[first] | nothing_and_points[second]

    def candidates(self) -> int:
        return self.size * (self.size + 1)

    def extent(self, answers: Real[Array, "answers *many"]) -> Real[Array, "*many"]:
        both = jnp.moveaxis(jnp.stack([answers, -answers]), 1, -1)
        return jnp.max(jnp.sum(jnp.maximum(jax.lax.top_k(both, 2)[0], 0), axis=-1, dtype=answers.dtype), axis=0)

    def scores(self, answers: Float[Array, "answers"]) -> Float[Array, "candidates"]:
        members = jnp.append(jnp.zeros(1, answers.dtype), answers)
        first, second = np.triu_indices(self.size + 1, 1)
        return super().scores(members[first] + members[second])

    def choose(self, key: Array, answers: Float[Array, "answers"], rate: Any) -> Int[Array, "points"]:
        """Draws the first of two different members of (nothing, 0, ..., N - 1) by its weight with all the others, then the second."""
        key_first, key_second = jax.random.split(key)
        members = jnp.append(jnp.zeros(1, answers.dtype), answers)
        both = jnp.stack([members, -members])
        best = jnp.sum(jax.lax.top_k(both, 2)[0], axis=1)
        weights = jax.vmap(lambda scores: _with_others(scores, rate))(both) + _below_best(best, rate)[:, None]
        first = exponential.draw(key_first, weights.ravel()).index
        sign, first = first // (self.size + 1), first % (self.size + 1)
        place = jnp.arange(self.size + 1, dtype=jnp.int32)
        others = jnp.where(place == first, -jnp.inf, both[sign])
        second = exponential.draw(key_second, _below_best(others, rate)).index
        return (1 - 2 * sign) * ((place == first) | (place == second))[1:].astype(jnp.int32)

    def rounding(self, rows: int) -> float:
        """2 (1 - 2/N)/R: two remainders that go up add up to at least 4/N."""
        two = 2.0 * (1.0 - 2.0 / self.size) if self.size > 2 else math.inf
        return min(super().rounding(rows), two / rows)


@frozen
class Listed(Queries):
    """The rows of a matrix.

    Attributes:
      matrix: c(x), one concept in each row.
    """

    matrix: Bool[Array, "queries points"]
    bits: int = static()

    def concepts(self) -> Bool[np.ndarray, "queries points"]:
        return np.asarray(self.matrix)

    def signed(self) -> Int[Array, "candidates points"]:
        matrix = self.matrix.astype(jnp.int32)
        return jnp.concatenate([matrix, -matrix])

    def candidates(self) -> int:
        return 2 * self.matrix.shape[0]

    def answers(self, difference: Real[Array, "points *many"]) -> Real[Array, "answers *many"]:
        held = jnp.expand_dims(self.matrix, range(2, difference.ndim + 1))
        return jnp.sum(jnp.where(held, difference[None], 0), axis=1, dtype=difference.dtype)

    def choose(self, key: Array, answers: Float[Array, "answers"], rate: Any) -> Int[Array, "points"]:
        index, sign = _signed(key, answers, rate)
        return sign * self.matrix[index].astype(jnp.int32)


def _sums_below(difference: Real[Array, "points *many"]) -> Real[Array, "sums *many"]:
    """<1[x < j], d> for j = 0, ..., N."""
    sums = jnp.cumsum(difference, axis=0, dtype=difference.dtype)
    return jnp.concatenate([jnp.zeros_like(sums[:1]), sums])


def _below_best(scores: Float[Array, "*s"], rate: Any) -> Float[Array, "*s"]:
    """rate times each score less the best one."""
    return rate * (scores - jnp.max(scores))


def _with_others(scores: Float[Array, "members"], rate: Any) -> Float[Array, "members"]:
    """ln of the weight of each member with all the others, where the best two together weigh 1: of two members the better is taken relative
    to the best one, the other relative to the second."""
    first, second = jax.lax.top_k(scores, 2)[0]
    is_top = jnp.arange(scores.shape[0], dtype=jnp.int32) == jnp.argmax(scores)
    near, far = rate * (scores - first), rate * (scores - second)
    total = jax.nn.logsumexp(near)
    beside = total + logspace.log1mexp(jnp.where(is_top, -jnp.inf, near - total))
    return jnp.where(is_top, jax.nn.logsumexp(jnp.where(is_top, -jnp.inf, far)), far + beside)


def _below(end: Int[Array, ""], size: int) -> Int[Array, "points"]:
    """1[x < end]."""
    return (jnp.arange(size, dtype=jnp.int32) < end).astype(jnp.int32)


def _signed(key: Array, scores: Float[Array, "queries"], rate: Any) -> tuple[Int[Array, ""], Int[Array, ""]]:
    """(index, sign) with probability proportional to exp(rate sign scores[index])."""
    index = exponential.draw(key, _below_best(jnp.concatenate([scores, -scores]), rate)).index
    queries = scores.shape[0]
    return index % queries, 1 - 2 * (index // queries)


# What users call ----------------------------------------------------------------------------------------------


def thresholds(*, bits: int) -> Thresholds:
    """The thresholds x < j over X_bits.

    Raises:
      TypeError, ValueError: bits is not an int from 1 to 16.
    """
    return Thresholds(bits=_bits(bits))


def intervals(*, bits: int) -> Intervals:
    """The symmetric differences of thresholds, i <= x < j.

    Raises:
      TypeError, ValueError: bits is not an int from 1 to 16.
    """
    return Intervals(bits=_bits(bits))


def points(*, bits: int) -> Points:
    """The points x = j of X_bits.

    Raises:
      TypeError, ValueError: bits is not an int from 1 to 16.
    """
    return Points(bits=_bits(bits))


def pairs(*, bits: int) -> Pairs:
    """The symmetric differences of points, and of a point and the all-zero concept: sets of one or two points.

    Raises:
      TypeError, ValueError: bits is not an int from 1 to 16.
    """
    return Pairs(bits=_bits(bits))


def listed(matrix: Any) -> Listed:
    """Any class, as a matrix with a row for each concept and a column for each of 2^bits points.

    Raises:
      TypeError: not booleans. ValueError: no rows, or a number of columns that is not a power of two from 2 to 2^16.

    >>> listed([[True, False, False, True], [False, True, True, True]]).bits
    2
    """
    given = arguments.array("matrix", matrix)
    if given.dtype != bool:
        raise TypeError(f"matrix must hold booleans, c(x) of every concept and point, got {given.dtype}")
    columns = given.shape[1] if given.ndim == 2 else 0
    bits = columns.bit_length() - 1
    if given.ndim != 2 or given.shape[0] == 0 or not 1 <= bits <= LARGEST_DOMAIN or columns != 1 << bits:
        rule = f"shape (concepts, 2^bits) with a concept and 1 to {LARGEST_DOMAIN} bits"
        raise ValueError(f"matrix must have {rule}, got {given.shape}")
    return Listed(matrix=jnp.asarray(given), bits=bits)


def _bits(bits: Any) -> int:
    return arguments.integer("bits", bits, at_least=1, at_most=LARGEST_DOMAIN)
