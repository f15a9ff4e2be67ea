"""All datasets of a few records from a small domain, which of them are neighbours, and how they are handed to an algorithm.

A dataset is a row of record values 0, 1, ..., the first `size` of which count. What a value stands for depends on the kind of data:
a point, a point with its label, a point with k labels, or whatever a caller's function makes of it.
"""

import dataclasses
import itertools
import math
from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np

from dpjax.accounting.guarantee import ADD_OR_REMOVE_ONE, REPLACE_LABEL
from dpjax.core import arguments
from dpjax.data.examples import Examples
from dpjax.data.multi_sample import MultiSample
from dpjax.data.points import Points
from dpjax.data.sample import Sample
from dpjax.verify.exact import histograms, neighbours, records, sequence_neighbours, sequences

MOST_DATASETS, MOST_PAIRS = 20_000, 2_000_000


@dataclasses.dataclass(frozen=True)
class Kind:
    """What record values stand for.

    Attributes:
      values: how many values a record can take.
      make: (values (rows,), size) -> the data that an algorithm takes; both may be traced.
      show: a record value as people read it.
      record: what a record is, in words.
      may_be_empty: whether a dataset may hold no records.
      labels: number of labellings of a point: record values that differ only in them form blocks of that length; 1 if there are no labels.
    """

    values: int
    make: Callable[[Any, Any], Any]
    show: Callable[[int], Any]
    record: str
    may_be_empty: bool
    labels: int = 1


@dataclasses.dataclass(frozen=True)
class Family:
    """Datasets and their neighbours.

    Attributes:
      kind: what records are.
      values: int32 (datasets, rows). sizes: int32 (datasets,): how many values of each row count, from the first on.
      pairs: indices (pairs, 2) of neighbours, in both directions.
    """

    kind: Kind
    values: np.ndarray
    sizes: np.ndarray
    pairs: np.ndarray

    @property
    def first_of_most(self) -> tuple[np.ndarray, Any]:
        """(Values, size) of the first of the datasets that have the most records."""
        place = int(np.argmax(self.sizes))
        return self.values[place], self.sizes[place]

    def shown(self, dataset: int) -> list[Any]:
        """The records of a dataset, as people read them."""
        return [self.kind.show(int(value)) for value in self.values[dataset, : self.sizes[dataset]]]

    def shuffled(self, turn: int = 0) -> np.ndarray:
        """The values, with the records of each dataset in a random order, a different one for each turn."""
        return self._sorted_by(np.random.default_rng(turn).random(self.values.shape))

    def reordered(self, most: int) -> list[np.ndarray]:
        """The values with the records of each dataset in all other orders, if these are no more than `most`; else in `most` random ones."""
        rows = self.values.shape[1]
        if math.factorial(min(rows, 20)) - 1 > most:
            return [self.shuffled(turn) for turn in range(most)]
        return [
            self._sorted_by(np.array([order]))
            for order in itertools.islice(itertools.permutations(range(rows)), 1, None)
        ]

    def _sorted_by(self, keys: np.ndarray) -> np.ndarray:
        """The values, with those of each dataset that count in the order of these keys."""
        keys = np.where(np.arange(self.values.shape[1]) < self.sizes[:, None], keys, np.inf)
        return np.take_along_axis(self.values, np.argsort(keys, axis=1, kind="stable"), axis=1)


def kind_of(algorithm: Any, data: Any, domain: int) -> Kind:
    """The kind of data: that of `data` if given, else what the algorithm takes, else labelled samples.

    Args:
      algorithm: may have `kind` (a class of data), `bits` (of its domain) and `k` (labels of an example).
      data: None, `dpjax.Sample`, `dpjax.MultiSample`, `dpjax.Points`, `dpjax.data.examples.Examples`, or a function (values, size) -> data.
      domain: number of points (of coordinates on each axis for `Examples`), or of values of a record where `data` is a function.
    """
    data = getattr(algorithm, "kind", Sample) if data is None else data
    limbs = _limbs(algorithm, domain)

    def points(values: Any) -> Any:
        return jnp.pad(jnp.asarray(values).astype(jnp.uint32)[:, None], ((0, 0), (0, limbs - 1)))

    if data is Points:
        return Kind(domain, lambda v, size: Points.create(points(v), size), int, "a point x", True)
    if data is Sample:
        return Kind(
            2 * domain,
            lambda v, size: Sample(x=points(v // 2), y=v % 2, n_valid=size),
            lambda v: (v // 2, v % 2),
            "(x, y)",
            False,
            2,
        )
    if data is MultiSample:
        k = arguments.integer("k of the algorithm", getattr(algorithm, "k", None), at_least=1, at_most=16)
        labels = np.arange(k, dtype=np.int32)
        return Kind(
            domain << k,
            lambda v, size: MultiSample.create(points(v >> k), (v[:, None] >> labels[None]) & 1, size),
            lambda v: (v >> k, *(v >> j & 1 for j in range(k))),
            "(x, y_1, ..., y_k)",
            False,
            1 << k,
        )
    if data is Examples:
        axes = arguments.integer("axes of the algorithm", getattr(algorithm, "axes", None), at_least=1, at_most=8)
        places = domain ** np.arange(axes - 1, -1, -1, dtype=np.int32)

        def coordinates(v: Any) -> Any:
            digits = (v[:, None] // 2 // places[None]) % domain
            return points(digits.reshape(-1)).reshape(len(v), axes, limbs)

        return Kind(
            2 * domain**axes,
            lambda v, size: Examples.create(coordinates(v), v % 2, size),
            lambda v: (*(int(v // 2 // place % domain) for place in places), v % 2),
            "(x_1, ..., x_D, y)",
            True,
            2,
        )
    if isinstance(data, type) or not callable(data):
        rule = "dpjax.Sample, dpjax.MultiSample, dpjax.Points, Examples, or a function (values, size) -> data"
        raise TypeError(f"data must be {rule}, got {data!r}")
    return Kind(domain, data, int, "a value", True)


def _limbs(algorithm: Any, domain: int) -> int:
    """How many 32-bit words the algorithm expects for a point."""
    stated = np.asarray(getattr(algorithm, "bits", None))
    if stated.ndim != 0 or stated.dtype.kind not in "iu" or stated < 1:
        return 1
    bits = int(stated)
    if domain > 1 << bits:
        raise ValueError(f"domain must be at most 2^bits = {1 << bits}, the algorithm's, got {domain}")
    return -(-bits // 32)


def family(kind: Kind, n: int, relation: str, *, ordered: bool) -> Family:
    """All datasets of up to n records (ADD_OR_REMOVE_ONE), or of n (the other relations), and all their neighbours.

    Raises:
      ValueError: there are too many of them, or no neighbours, or labels are to be replaced where there are none.
    """
    if relation == REPLACE_LABEL and kind.labels < 2:
        raise ValueError(f"relation {relation} must be for records with labels, got records that are {kind.record}")
    varies = relation == ADD_OR_REMOVE_ONE
    sizes = list(range(0 if kind.may_be_empty else 1, n + 1)) if varies else [n]
    m, what = kind.values, "sequences" if ordered else "multisets"
    if n * m > MOST_PAIRS:  # refused before any power of them is computed
        raise ValueError(
            f"n and domain must be smaller: {n} records of {m} kinds; at most {MOST_PAIRS} pairs are enumerated"
        )
    datasets = sum(m**size if ordered else math.comb(size + m - 1, size) for size in sizes)
    pairs = datasets * n * m
    if datasets > MOST_DATASETS or pairs > MOST_PAIRS:
        shown = [f"{number}" if number < 10**15 else "more than 10^15" for number in (datasets, pairs)]
        found = f"{shown[0]} {what} of {m} kinds of records and up to {shown[1]} neighbouring pairs"
        raise ValueError(
            f"n and domain must be smaller: {found}; at most {MOST_DATASETS} and {MOST_PAIRS} are enumerated"
        )
    made = _padded(_ordered(kind, n, relation, sizes) if ordered else _unordered(kind, n, relation, sizes))
    if len(made.pairs) == 0:
        found = f"no two of {datasets} {what} of {m} kinds of records are neighbours ({relation})"
        raise ValueError(f"n and domain must be larger: {found}")
    return made


def _padded(made: Family) -> Family:
    """The family with something else in the rows that do not count for each size: an algorithm that looks at them is then seen to."""
    sizes = made.sizes[:, None]
    counted = np.arange(made.values.shape[1]) < sizes
    return dataclasses.replace(made, values=np.where(counted, made.values, sizes % made.kind.values))


def _unordered(kind: Kind, n: int, relation: str, sizes: list[int]) -> Family:
    """The family of multisets, with their records sorted."""
    counts = histograms(kind.values, sizes)
    values, count = records(counts, n)
    return Family(kind, values, count, neighbours(counts, relation, labels=kind.labels))


def _ordered(kind: Kind, n: int, relation: str, sizes: list[int]) -> Family:
    """The family of sequences."""
    m = kind.values
    if relation != ADD_OR_REMOVE_ONE:
        values, pairs = sequences(m, n), sequence_neighbours(m, n, relation, labels=kind.labels)
        return Family(kind, values, np.full(len(values), n, np.int32), pairs)
    values = np.concatenate([np.pad(sequences(m, size), ((0, 0), (0, n - size))) for size in sizes])
    count = np.repeat(np.array(sizes, np.int32), [m**size for size in sizes])
    return Family(kind, values, count, _removals(values, count))


def _removals(values: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """Pairs of sequences, one of which is the other without one of its records, in both directions."""
    rows = [tuple(row[:size].tolist()) for row, size in zip(values, sizes, strict=True)]
    places = {row: place for place, row in enumerate(rows)}
    shorter = {
        (place, places[less])
        for place, row in enumerate(rows)
        for less in {row[:i] + row[i + 1 :] for i in range(len(row))}
        if less in places
    }
    return np.array(sorted(shorter | {(b, a) for a, b in shorter}), np.int64).reshape(-1, 2)
