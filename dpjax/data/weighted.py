"""Weighted points of an ordered domain: a multiset as pairs (value, count), or a sanitized database."""

from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Bool, Float, Int, Shaped, UInt32

from dpjax.core import arguments, show, sums
from dpjax.core.pytree import frozen
from dpjax.data.points import Points
from dpjax.data.sample import below, on_device, out_of_order, padded_rows, valid_rows, wide_rows
from dpjax.domains import groups, wide

LARGEST = np.uint32(0xFFFFFFFF)


@frozen
class Weighted:
    """Distinct points with weights, in increasing order, the first `n_valid` rows; build it by `Weighted.create` or `Weighted.of`.

    In data, weights are integers, the counts of a multiset: int32, or int64 under `jax.enable_x64(True)`, which the printed constants
    need. In a sanitized database they are real numbers >= 0. Answers are shares of the total, so that databases of any size, and those
    with as many rows as the data, are compared in the same way.

    Attributes:
      x: uint32 of shape (rows, limbs); rows that do not count are all ones, so that the whole array increases.
      weights: of shape (rows,), 0 in rows that do not count.
      n_valid: how many rows count.
    """

    x: UInt32[Array, "rows limbs"]
    weights: Shaped[Array, "rows"]
    n_valid: Int[Array, ""]

    ordered: ClassVar[bool] = True  # a promise, as in `Points`

    @classmethod
    def create(cls, x: Any, weights: Any) -> "Weighted":
        """A multiset from values and counts; counts of equal values are added up, and values with count 0 are left out.

        Args:
          x: values, uint32 of shape (rows, limbs) as made by `dpjax.domains.wide.from_ints`.
          weights: as many integers >= 0: Python ints, or an array of integers.

        Raises:
          TypeError: x is not a uint32 array, or weights are not integers.
          ValueError: another number of weights, a negative one, none above 0, or a total that the integers in use cannot hold.

        >>> from dpjax.domains import wide
        >>> data = Weighted.create(wide.from_ints([9, 2, 9], 8), [5, 1, 5])
        >>> data
        Weighted(x=[2, 9], weights=[1, 10])
        >>> [round(float(share), 2) for share in data.share_below(wide.from_ints([2, 3], 8))]
        [0.0, 0.09]
        """
        x = np.asarray(wide_rows("x", x))
        given = arguments.array("weights", weights)
        if given.shape != x.shape[:1]:
            raise ValueError(f"weights must have one number a row of x, shape {x.shape[:1]}, got {given.shape}")
        if given.dtype.kind not in "iu":
            raise TypeError(f"weights must hold whole numbers, the counts of values, got {given.dtype}")
        if (given < 0).any():
            raise ValueError(f"weights must be >= 0, got {given.min()}")
        integers = jax.dtypes.canonicalize_dtype(np.int64)
        total = sum(map(int, given))
        if not 0 < total <= np.iinfo(integers).max:
            hint = " (jax.enable_x64(True) holds more)" if integers == np.int32 and total > 0 else ""
            raise ValueError(f"weights must add up to 1, ..., {np.iinfo(integers).max}{hint}, got {total}")
        distinct, place = np.unique(x[given > 0], axis=0, return_inverse=True)
        counts = np.zeros(len(distinct), integers)
        np.add.at(counts, place.reshape(-1), given[given > 0].astype(integers))
        return cls(x=on_device(distinct), weights=on_device(counts), n_valid=jnp.asarray(len(distinct), jnp.int32))

    @classmethod
    def of(cls, data: Any) -> "Weighted":
        """`data` itself, or the distinct points of `Points` or a `Sample` with the number of times that each occurs.

        Raises:
          TypeError: it is none of these.
        """
        if isinstance(data, cls):
            return data
        points = Points.of(data)
        return cls.grouped(groups.group(points.x, points.valid, ordered=points.ordered))

    @classmethod
    def grouped(cls, found: groups.Groups) -> "Weighted":
        """Groups of points with the number of times that each occurs."""
        return cls(x=found.rows, weights=found.counts, n_valid=found.size)

    @classmethod
    def kept(
        cls, x: UInt32[Array, "rows limbs"], weights: Shaped[Array, "rows"], keep: Bool[Array, "rows"]
    ) -> "Weighted":
        """Those of increasing distinct points that are kept, moved to the front; nothing of the others is left."""
        place = jnp.where(keep, sums.running(keep.astype(jnp.int32)) - 1, keep.shape[0])
        return cls(
            x=jnp.full_like(x, LARGEST).at[place].set(x, mode="drop"),
            weights=jnp.zeros_like(weights).at[place].set(weights, mode="drop"),
            n_valid=jnp.sum(keep, dtype=jnp.int32),
        )

    @classmethod
    def merged(cls, x: UInt32[Array, "rows limbs"], weights: Float[Array, "rows"]) -> "Weighted":
        """A database from sorted points with weights >= 0; weights of equal points are added up, and points of weight 0 are left out."""
        begins = jnp.append(True, jnp.any(x[1:] != x[:-1], axis=1))
        member = sums.running(begins.astype(jnp.int32)) - 1
        held = jnp.zeros_like(weights).at[member].add(weights)[member]
        return cls.kept(x, held, begins & (held > 0))

    def __repr__(self) -> str:
        known = all(map(show.concrete, (self.x, self.weights, self.n_valid)))
        if not known or (self.x.ndim, np.ndim(self.n_valid)) != (2, 0):
            return f"Weighted(x={show.short(self.x)}, weights={show.short(self.weights)})"
        n = int(self.n_valid)
        held = {"x": show.integers(self.x[:n]), "weights": np.asarray(self.weights)[:n].tolist()}
        return f"Weighted({', '.join(f'{name}={show.listed(values)}' for name, values in held.items())})"

    @property
    def rows(self) -> int:
        """The capacity: how many distinct points there is room for."""
        return self.x.shape[0]

    @property
    def valid(self) -> Bool[Array, "rows"]:
        """Which rows count."""
        return valid_rows(self.rows, self.n_valid)

    @property
    def total(self) -> Shaped[Array, ""]:
        """The sum of all weights: the size of the multiset."""
        return jnp.sum(self.weights, dtype=self.weights.dtype)

    def in_domain(self, bits: Any) -> Bool[Array, ""]:
        """Whether there are 0, ..., `rows` valid rows, each a point of X_bits, with weights >= 0 and none elsewhere."""
        counted = (self.n_valid >= 0) & (self.n_valid <= self.rows)
        weighed = jnp.all(jnp.where(self.valid, self.weights >= 0, self.weights == 0))
        if jnp.issubdtype(self.weights.dtype, jnp.integer):
            # Weights assembled by hand may add up to more than their integer type holds, and the sum wraps around.
            apart = jnp.abs(jnp.sum(self.weights.astype(float)) - self.total.astype(float))
            weighed = weighed & (apart < float(jnp.iinfo(self.weights.dtype).max))
        return counted & weighed & below(self, bits)

    def check_increasing(self, name: str, *, strictly: bool = True) -> None:
        """ValueError if the points that count are known and do not increase, as may happen in data assembled by hand."""
        if self.x.ndim != 2 or any(map(arguments.is_traced, (self.x, self.n_valid))):
            return
        row = out_of_order(np.asarray(self.x)[: int(self.n_valid)], strictly=strictly)
        if row is not None:
            raise ValueError(f"{name}.x must increase, as Weighted.create makes it, got row {row} out of order")

    def padded(self, rows: int | None = None) -> "Weighted":
        """The same padded to `rows` >= its own rows (default: to their bucket)."""
        n_valid, x, weights = padded_rows(rows, self.n_valid, self.x, self.weights)
        return Weighted(
            x=jnp.where(valid_rows(x.shape[0], n_valid)[:, None], x, LARGEST),
            weights=weights,
            n_valid=n_valid,
        )

    # As a database: the share of its total that a concept holds ------------------------------------------------

    def support(self) -> tuple[UInt32[Array, "rows limbs"], Bool[Array, "rows"]]:
        """(points, which of them have a positive weight): what `multi.generic` requires of a sanitized database."""
        return self.x, self.weights > 0

    def share_below(self, j: UInt32[Array, "q more"]) -> Float[Array, "q"]:
        """Q of the thresholds c_j(x) = 1 iff x < j, where the j are wide integers of any width."""
        j = wide_rows("j", j, at_least=0)
        limbs = max(j.shape[-1], self.x.shape[-1])
        x, j = self._wide(limbs), wide.resize(j, limbs)
        return self._shares_up_to()[jax.vmap(lambda one: wide.search(x, one))(j)]

    def share(self, x: UInt32[Array, "q limbs"]) -> Float[Array, "q"]:
        """Q of the point concepts c_x, where the x are wide integers."""
        at, there = self._find(x)
        return jnp.where(there, self._shares()[at], 0.0)

    def threshold_error(self, truth: Any, *, points: int | None = None) -> Float[Array, ""]:
        """The largest difference between the two shares of any threshold concept, which is the Kolmogorov distance, exactly.

        It is attained just after a point, as shares are constant between points. The points of the one with fewer rows, `few`, are looked
        up in the other, `many`. That also tells how many of few are <= each point of many: a point a of few is <= the i-th of many iff
        fewer than i of many are below a.

        Args:
          truth: `Weighted`, `Points` or a `Sample`. Points promised to be sorted are not grouped: only the last of equal ones is compared.
          points: how many points the domain has, if they are few enough to count each of them; rows may then be in any order. NaN if
            either has other points.
        """
        if points is not None:
            points = arguments.size("points", points)
            both = self, truth if isinstance(truth, Weighted) else Points.of(truth)
            mine, theirs = (_shares_up_to(table(one, points)) for one in both)
            inside = jnp.array([jnp.all(_within(one.x, points) | ~one.valid) for one in both])
            return jnp.where(jnp.all(inside), jnp.max(jnp.abs(mine - theirs)), jnp.nan)
        few, many = sorted((self, self._in_order(truth)), key=lambda one: one.rows)
        limbs = max(few.x.shape[-1], many.x.shape[-1])
        x, rows = few._wide(limbs), many._wide(limbs)
        below = jax.vmap(lambda one: wide.search(rows, one))(x)
        same = wide.equal(rows[jnp.minimum(below, many.rows - 1)], x) & (below < many.rows)
        up_to = sums.running(jnp.zeros(many.rows, jnp.int32).at[below].add(1, mode="drop"))
        few_shares, many_shares = few._shares_up_to(), many._shares_up_to()
        after_few = jnp.abs(few_shares[1:] - many_shares[below])  # what is in both is a point of many
        after_many = jnp.abs(many_shares[1:] - few_shares[up_to])
        return jnp.maximum(
            jnp.max(jnp.where(few._lasts() & ~same, after_few, 0.0)), jnp.max(jnp.where(many._lasts(), after_many, 0.0))
        )

    def point_error(self, truth: "Weighted") -> Float[Array, ""]:
        """The largest difference between the two shares of any point."""
        return self.point_set_error(truth, k=1)

    def point_set_error(self, truth: "Weighted", *, k: int) -> Float[Array, ""]:
        """The largest difference between the two shares of any set of at most k points: k-POINT, exactly.

        It is attained by the k points whose shares exceed the true ones most, or by the k whose shares fall short of them most.
        """
        truth = arguments.instance("truth", truth, Weighted)
        k = min(arguments.size("k", k), self.rows + truth.rows)
        too_much = jnp.where(self.valid, self._shares() - truth.share(self.x), 0.0)
        unnamed = jnp.where(truth.valid & ~self.names(truth.x), -truth._shares(), 0.0)
        difference = jnp.sort(jnp.concatenate([too_much, unnamed]))
        return jnp.maximum(jnp.sum(jnp.maximum(difference[-k:], 0.0)), -jnp.sum(jnp.minimum(difference[:k], 0.0)))

    def names(self, x: UInt32[Array, "q limbs"]) -> Bool[Array, "q"]:
        """Which of these points are among those of the database."""
        return self._find(x)[1]

    @classmethod
    def _in_order(cls, data: Any) -> "Weighted":
        """As `of`, except that points promised to be sorted are not grouped: equal ones stay separate."""
        points = data if isinstance(data, cls) else Points.of(data)
        if isinstance(points, cls) or not points.ordered:
            return cls.of(points)
        return cls(x=points.x, weights=points.valid.astype(jnp.int32), n_valid=points.n_valid)

    def _lasts(self) -> Bool[Array, "rows"]:
        """Which rows count and are the last among equal ones."""
        return self.valid & jnp.append(jnp.any(self.x[1:] != self.x[:-1], axis=1) | ~self.valid[1:], True)

    def _find(self, x: UInt32[Array, "q limbs"]) -> tuple[Int[Array, "q"], Bool[Array, "q"]]:
        """(the row of each point, whether there is one)."""
        x = wide_rows("x", x, at_least=0)
        limbs = max(x.shape[-1], self.x.shape[-1])
        mine, x = self._wide(limbs), wide.resize(x, limbs)
        at = jnp.minimum(jax.vmap(lambda one: wide.search(mine, one))(x), self.rows - 1)
        return at, wide.equal(mine[at], x) & self.valid[at]

    def _wide(self, limbs: int) -> UInt32[Array, "rows more"]:
        """x with `limbs` limbs; rows that do not count hold the greatest such number."""
        self.check_increasing("weighted", strictly=False)
        return jnp.where(self.valid[:, None], wide.resize(self.x, limbs), LARGEST)

    def _shares(self) -> Float[Array, "rows"]:
        """The share of each point; 0 in an empty multiset."""
        return self.weights.astype(float) / jnp.maximum(self.total.astype(float), 1e-30)

    def _shares_up_to(self) -> Float[Array, "sums"]:
        """The shares of no points, of the first, of the first two, ..."""
        return jnp.append(0.0, _shares_up_to(self.weights))


def table(data: Any, points: int) -> Shaped[Array, "points"]:
    """The weight (of `Weighted`) or count (of `Points` or a `Sample`) of each of 2^bits `points` of the domain; others are left out."""
    data = data if isinstance(data, Weighted) else Points.of(data)
    weights = data.weights if isinstance(data, Weighted) else data.valid.astype(jnp.int32)
    place = jnp.where(data.valid & _within(data.x, points), data.x[:, -1].astype(jnp.int32), points)
    # Hidden from XLA, which would otherwise scatter into whatever is added to the table: one scatter for every use.
    return lax.optimization_barrier(jnp.zeros((points,), weights.dtype).at[place].add(weights, mode="drop"))


def _within(x: UInt32[Array, "rows limbs"], points: int) -> Bool[Array, "rows"]:
    """Which rows are among the first `points` points of the domain."""
    return (x[:, -1] < jnp.uint32(points)) & jnp.all(x[:, :-1] == 0, axis=1)


def _shares_up_to(weights: Shaped[Array, "rows"]) -> Float[Array, "rows"]:
    """The shares of the first, of the first two, ... in the total; 0 if the total is 0."""
    up_to = sums.running(weights)
    return up_to.astype(float) / jnp.maximum(up_to[-1].astype(float), 1e-30)
