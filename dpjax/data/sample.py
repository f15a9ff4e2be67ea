"""Labelled samples as padded arrays with a traced count, so that one compiled program serves every size up to its bucket."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int, UInt32

from dpjax.core import arguments, show
from dpjax.core.pytree import equal, exportable, hashed
from dpjax.domains import scaled, wide


def bucket(n: int) -> int:
    """The capacity that serves n examples: the least 2^b - 1 >= n.

    One less than a power of two, because n points cut an ordered domain into n+1 pieces.

    >>> bucket(1), bucket(2), bucket(2000)
    (1, 3, 2047)
    """
    return (1 << arguments.integer("n", n, at_least=0).bit_length()) - 1


@jax.tree_util.register_pytree_with_keys_class
class Sample:
    """Labelled examples (x_i, y_i), the first `n_valid` rows of padded arrays.

    Args:
      x: points of an ordered domain, uint32 of shape (rows, limbs) as made by `dpjax.domains.wide.from_ints`.
      y: labels 0 or 1, shape (rows,).
      n_valid: how many rows count, default all; may be traced. Rows from n_valid on are ignored, whatever they hold.
      ordered: promise that the valid rows are sorted by x, equal points with label 1 first, so that learners need not sort (static).
      realizable: promise that they are ordered and all ones come before all zeros, as a threshold labels them (static).

    Raises:
      TypeError: x is not uint32, y does not hold numbers, or a promise is not a bool.
      ValueError: shapes that do not fit, no rows, a label other than 0 and 1, n_valid outside 1, ..., rows, a promise that does not
      hold. Values under tracing pass unchecked.

    >>> from dpjax.domains import scaled, wide
    >>> sample = Sample(x=wide.from_ints([7, 2**40], 64), y=[1, 0])
    >>> sample.rows, int(sample.n_valid)
    (2, 2)
    """

    x: UInt32[Array, "rows limbs"]
    y: Int[Array, "rows"]
    n_valid: Int[Array, ""]
    ordered: bool
    realizable: bool

    def __init__(self, *, x: Any, y: Any, n_valid: Any = None, ordered: bool = False, realizable: bool = False) -> None:
        x = wide_rows("x", x)
        y = labels_of(y, x.shape[0])
        n_valid = row_count(n_valid, x.shape[0], at_least=1)
        ordered, realizable = arguments.flag("ordered", ordered), arguments.flag("realizable", realizable)
        self._set((x, y, n_valid), (ordered or realizable, realizable))
        _check_promises(self)

    def _set(self, leaves: Any, promises: tuple[bool, bool]) -> None:
        """Plain assignment without checks, as unflattening needs it: its leaves may be anything."""
        for name, value in zip(("x", "y", "n_valid", "ordered", "realizable"), (*leaves, *promises), strict=True):
            object.__setattr__(self, name, value)

    @classmethod
    def promised(cls, x: Array, y: Array, n_valid: Array) -> "Sample":
        """A sample known to be realizable (and so ordered) by construction; nothing is checked."""
        return cls.tree_unflatten((True, True), (x, y, n_valid))

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"Sample is frozen: cannot set {name}")

    __eq__, __hash__ = equal, hashed  # type: ignore[assignment]

    def __repr__(self) -> str:
        return shown(self, self.y)

    @property
    def rows(self) -> int:
        """The capacity."""
        return self.x.shape[0]

    @property
    def valid(self) -> Bool[Array, "rows"]:
        """Which rows count."""
        return valid_rows(self.rows, self.n_valid)

    def in_domain(self, bits: Any) -> Bool[Array, ""]:
        """Whether there are 1, ..., `rows` valid rows, at most `most_counted` of them, each a point of X_bits with a label 0 or 1."""
        counted = (self.n_valid >= 1) & (self.n_valid <= self.rows)
        labelled = jnp.all(~self.valid | (self.y == 0) | (self.y == 1))
        return counted & labelled & countable(self) & below(self, bits)

    def padded(self, rows: int | None = None) -> "Sample":
        """The same sample padded to `rows` >= its own rows (default: to its bucket)."""
        n_valid, x, y = padded_rows(rows, self.n_valid, self.x, self.y)
        return type(self).tree_unflatten((self.ordered, self.realizable), (x, y, n_valid))

    def tree_flatten_with_keys(self) -> tuple[tuple[tuple[Any, Any], ...], tuple[bool, bool]]:
        key = jax.tree_util.GetAttrKey
        leaves = ((key("x"), self.x), (key("y"), self.y), (key("n_valid"), self.n_valid))
        return leaves, (self.ordered, self.realizable)

    @classmethod
    def tree_unflatten(cls, promises: tuple[bool, bool], leaves: Any) -> "Sample":
        sample = object.__new__(cls)
        sample._set(leaves, promises)
        return sample


exportable(Sample)


def shown(data: Any, y: Any = None, **counts: int) -> str:
    """The repr of padded data: how many rows count, their points as integers, their labels, and the promises made.

    >>> from dpjax.domains import scaled, wide
    >>> Sample(x=wide.from_ints([7, 2**40, 9], 64), y=[1, 0, 1], n_valid=2)
    Sample(n_valid=2, rows=3, x=[7, 1099511627776], y=[1, 0])
    """
    held = {"x": data.x} if y is None else {"x": data.x, "y": y}
    entries = {"n_valid": show.short(data.n_valid)}
    if all(map(show.concrete, (data.n_valid, *held.values()))) and (data.x.ndim, np.ndim(data.n_valid)) == (2, 0):
        n = int(data.n_valid)
        entries |= {"rows": str(data.rows)} | {name: str(count) for name, count in counts.items()}
        entries["x"] = show.listed(show.integers(data.x[:n]))
        entries |= {} if y is None else {"y": show.listed(np.asarray(y)[:n].tolist())}
    else:
        entries |= {name: show.short(value) for name, value in held.items()}
    entries |= {name: "True" for name in ("ordered", "realizable") if getattr(data, name, False)}
    return f"{type(data).__name__}({', '.join(f'{name}={text}' for name, text in entries.items())})"


def padded_rows(rows: int | None, n_valid: Any, *arrays: Array) -> list[Any]:
    """The count, and the arrays padded with zeros to `rows` rows, at least as many as they have; None: to their bucket."""
    had = arrays[0].shape[0]
    rows = bucket(had) if rows is None else arguments.integer("rows", rows, at_least=had, at_most=2**31 - 1)
    if rows == had:
        return [n_valid, *arrays]
    return [padded_count(n_valid, had), *(_padded(each, rows - had) for each in arrays)]


def padded_count(n_valid: Any, had: int) -> Any:
    """How many rows count after `had` rows have been padded: a count that exceeded `had` stays wrong, as -1.

    >>> int(padded_count(np.int32(3), 4)), int(padded_count(np.int32(5), 4))
    (3, -1)
    """
    if arguments.is_traced(n_valid):
        return jnp.where(n_valid > had, -1, n_valid)
    return n_valid if int(n_valid) <= had else np.int32(-1)


def _padded(array: Array, more: int) -> Array:
    """The array with `more` rows of zeros; a known one is padded on the host, or every number of rows would need its own program."""
    ends = [(0, more)] + [(0, 0)] * (array.ndim - 1)
    if arguments.is_traced(array):
        return jnp.pad(array, ends)
    return on_device(np.pad(np.asarray(array), ends))


def on_device(array: Any) -> Array:
    """A NumPy array as a JAX array, without the program that `jnp.asarray` compiles for every shape; a JAX array as it is."""
    return array if isinstance(array, jax.Array) else jax.device_put(np.asarray(array))


def valid_rows(rows: int, n_valid: Int[Array, ""]) -> Bool[Array, "rows"]:
    """Which of the rows count: the first n_valid."""
    return jnp.arange(rows, dtype=jnp.int32) < n_valid


def row_count(n_valid: Any, rows: int, *, at_least: int) -> Int[Array, ""]:
    """How many rows count, all by default, as an int32; a traced count outside 0, ..., `rows` becomes -1, which no data have.

    Raises:
      TypeError: it is not an integer. ValueError: it is known, and below `at_least` or above `rows`.
    """
    if not arguments.is_traced(n_valid):
        known = arguments.plain(n_valid)
        count = rows if n_valid is None else arguments.integer("n_valid", known, at_least=at_least, at_most=rows)
        return jnp.asarray(count, jnp.int32)
    if not jnp.issubdtype(n_valid.dtype, jnp.integer):
        raise TypeError(f"n_valid must be an int, got a traced {n_valid.dtype}")
    wide = n_valid.astype(jnp.int32) if n_valid.dtype.itemsize < 4 else n_valid
    return jnp.where((wide >= 0) & (wide <= rows), wide.astype(jnp.int32), jnp.int32(-1))


def zeros_and_ones(y: Any) -> Int[Array, "*s"]:
    """Labels as int32; a traced value other than 0 and 1 becomes -1, where a cast might turn it into a label."""
    if not arguments.is_traced(y):
        return on_device(y.astype(np.int32))
    if y.dtype == bool:
        return y.astype(jnp.int32)
    return jnp.where(y == 1, 1, jnp.where(y == 0, 0, -1)).astype(jnp.int32)


def countable(data: Any) -> Bool[Array, ""]:
    """Whether floats hold every count of rows; beyond `most_counted` some neighbouring scores would be equal, others two apart."""
    return jnp.bool_(True) if data.rows <= arguments.most_counted() else data.n_valid <= arguments.most_counted()


def refuse_uncountable(name: str, n: Any) -> None:
    """ValueError if n is known and more than `most_counted`."""
    if not arguments.is_traced(n) and int(n) > arguments.most_counted():
        raise ValueError(
            f"{name} must be at most {arguments.most_counted()}, beyond which floats do not hold all counts"
            f" (jax.enable_x64(True) holds more), got {int(n)}"
        )


def below(data: Any, bits: Any) -> Bool[Array, ""]:
    """Whether the valid rows of x are points of X_bits; if they are sorted, the last one decides."""
    if data.ordered:
        last = scaled.at(data.x)(jnp.clip(data.n_valid - 1, 0, data.rows - 1))
        return (data.n_valid < 1) | (wide.bit_length(last) <= bits)
    return wide.all_below(data.x, data.valid, bits)


def _check_promises(sample: Sample) -> None:
    """ValueError if the sample is known and its valid rows are not as promised."""
    if not sample.ordered or any(arguments.is_traced(leaf) for leaf in jax.tree.leaves(sample)):
        return
    n = int(sample.n_valid)
    x, y = _comparable(np.asarray(sample.x)[:n]), np.asarray(sample.y)[:n]
    rises = y[1:] > y[:-1]
    wrong = np.flatnonzero((x[1:] < x[:-1]) | ((x[1:] == x[:-1]) & rises))
    if wrong.size:
        raise ValueError(
            f"ordered must be True only for rows sorted by x, ones first: row {wrong[0] + 1} is not in order"
        )
    if sample.realizable and rises.any():
        raise ValueError(
            f"realizable must be True only if all ones precede all zeros: row {np.flatnonzero(rises)[0] + 1} is a one"
        )


def _comparable(rows: np.ndarray) -> np.ndarray:
    """Limbs as fixed-length strings: big-endian bytes compare like the numbers."""
    rows = np.ascontiguousarray(rows.astype(">u4"))
    return rows.view(f"S{rows.shape[1] * 4}")[:, 0]


def out_of_order(rows: np.ndarray, *, strictly: bool = False) -> int | None:
    """The first row of limbs that is below the one before it (if `strictly`, not above it), or None."""
    x = _comparable(rows)
    wrong = np.flatnonzero(x[1:] <= x[:-1] if strictly else x[1:] < x[:-1])
    return int(wrong[0]) + 1 if wrong.size else None


def wide_rows(name: str, x: Any, limbs: int | None = None, *, at_least: int = 1) -> Array:
    """x as a uint32 array of shape (rows, limbs) with `at_least` rows or more; of any width, unless limbs are given."""
    return _wide(name, x, limbs, axes=2, shape="(rows, limbs)", at_least=at_least)


def wide_row(name: str, x: Any, limbs: int | None = None) -> Array:
    """x as a uint32 array of shape (limbs,): one wide integer."""
    return _wide(name, x, limbs, axes=1, shape="(limbs,)")


def _wide(name: str, x: Any, limbs: int | None, *, axes: int, shape: str, at_least: int = 1) -> Array:
    if getattr(x, "dtype", None) != np.uint32:
        got = getattr(x, "dtype", None) or type(x).__name__
        rule = "be a uint32 array (dpjax.domains.wide.from_ints makes it from integers, dpjax.encode(values).points.x from others)"
        raise TypeError(f"{name} must {rule}, got {got}")
    arguments.unmasked(name, x)
    if x.ndim != axes or x.shape[-1] == 0:
        raise ValueError(f"{name} must have shape {shape}, got {x.shape}")
    if x.shape[0] < at_least:
        raise ValueError(f"{name} must hold at least one row: it is empty")
    if limbs is not None and x.shape[-1] != limbs:  # cutting limbs off would change the numbers
        raise ValueError(f"{name} must have numbers of {limbs} limbs, got {x.shape[-1]}")
    return on_device(x)


def labels_of(y: Any, rows: int) -> Array:
    """y as an int32 array of `rows` zeros and ones."""
    arguments.unmasked("y", y)
    if not isinstance(y, jax.Array):
        try:
            y = np.asarray(y)
        except ValueError as error:
            raise ValueError("y must have the length of x, and one axis, got rows of different lengths") from error
    if not arguments.holds_numbers(y):
        raise TypeError(f"y must hold labels 0 and 1, got {y.dtype}")
    if y.shape != (rows,):
        raise ValueError(f"y must have the length of x, shape ({rows},), got {y.shape}")
    if not arguments.is_traced(y):
        wrong = np.flatnonzero(~np.isin(np.asarray(y), (0, 1)))
        if wrong.size:
            raise ValueError(f"y must hold labels 0 and 1 only, got y[{wrong[0]}] = {np.asarray(y)[wrong[0]]}")
    return zeros_and_ones(y)
