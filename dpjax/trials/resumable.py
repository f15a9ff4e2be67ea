"""Long counts and evaluations in chunks, each stored before the next begins: a kill loses one chunk.

The result equals that of one call of `engine.count` or `engine.evaluate`, for any chunk size and any number of
kills.
"""

import functools
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from dpjax.core import arguments
from dpjax.trials import engine
from dpjax.trials.progress import Progress
from dpjax.trials.shared import Keeper

_ENGINE: dict[str, Callable[..., Any]] = {"trials": engine.count, "draws": engine.evaluate}


def count(
    run: engine.Run,
    params: Any,
    *,
    store: Keeper,
    key: Mapping[str, Any],
    root: jax.Array,
    cell: int,
    trials: int,
    chunk: int = 2**15,
    batch: int | None = None,
    progress: Progress | None = None,
) -> Any:
    """`engine.count` over trials 0, ..., trials - 1, through a store.

    Args:
        run, params, root, cell, trials, batch: as for `engine.count`.
        store: where chunks are kept.
        key: identifies this count within the run; must determine params and cell.
        chunk: trials per record, which is what a kill may lose. Resuming with another chunk gives the same
            result, but recomputes it.
        progress: informed of trials done now and of those found in the store.

    Returns:
        As `engine.count`.

    Raises:
        TypeError, ValueError: as `engine.count`, or `chunk` < 1.
    """

    sizes = _equal("trials", trials, chunk)
    chunks = parts(
        "trials", run, params, store=store, key=key, root=root, cell=cell, sizes=sizes, batch=batch, progress=progress
    )
    return jax.tree.map(_sum, *chunks)


def evaluate(
    run: engine.Run,
    params: Any,
    *,
    store: Keeper,
    key: Mapping[str, Any],
    root: jax.Array,
    cell: int,
    draws: int,
    chunk: int = 16,
    batch: int = 8,
    progress: Progress | None = None,
) -> Any:
    """`engine.evaluate` over draws 0, ..., draws - 1, through a store.

    Args:
        run, params, root, cell, draws, batch: as for `engine.evaluate`.
        store, key, progress: as for `count`.
        chunk: draws per record; best a multiple of batch, since only whole blocks of it are computed.

    Returns:
        As `engine.evaluate`, floats as float64 (which holds every float32).

    Raises:
        TypeError, ValueError: as `engine.evaluate`, or `chunk` < 1.
    """

    sizes = _equal("draws", draws, chunk)
    chunks = parts(
        "draws", run, params, store=store, key=key, root=root, cell=cell, sizes=sizes, batch=batch, progress=progress
    )
    return jax.tree.map(lambda *leaves: np.concatenate(leaves), *chunks)


def parts(
    unit: str,
    run: engine.Run,
    params: Any,
    *,
    store: Keeper,
    key: Mapping[str, Any],
    root: jax.Array,
    cell: int,
    sizes: Iterable[int],
    batch: int | None,
    progress: Progress | None,
) -> Iterator[Any]:
    """One chunk after another, of the given sizes, each from the store or stored before it is yielded.

    Args:
        unit: "trials", for the sums of `engine.count`, or "draws", for the outcomes of `engine.evaluate`.
        sizes: sizes of the chunks; the other arguments are as for `count` and `evaluate`.
    """
    if taken := {"first", unit} & set(key):
        raise ValueError(f"key must leave {' and '.join(sorted(taken))} to the chunks of a record, got {dict(key)!r}")
    compute = _ENGINE[unit]
    shapes, structure = jax.tree.flatten(engine.outcome_shapes(run, params))
    report = None if progress is None else progress.done

    def leaves(first: int, size: int) -> list[Any]:
        given = {"root": root, "cell": cell, "first": first, unit: size, "batch": batch, "report": report}
        return jax.tree.leaves(compute(run, params, **given))

    first = 0
    for size in sizes:
        record = {**key, "first": first, unit: size}
        if progress is not None and record in store:
            progress.skip(size)
        chunk = store.get_or_compute(record, functools.partial(leaves, first, size))
        if unit == "draws":
            chunk = [_drawn(size, leaf, shape) for leaf, shape in zip(chunk, shapes, strict=True)]
        yield jax.tree.unflatten(structure, [np.asarray(leaf) for leaf in chunk])
        first += size


def _drawn(size: int, leaf: Any, shape: jax.ShapeDtypeStruct) -> np.ndarray:
    """Outcomes as read from a record: of the same shape and kind in every chunk, whatever values it holds, and wide enough for each."""
    kind: Any = np.bool_ if shape.dtype == bool else np.float64
    if jnp.issubdtype(shape.dtype, jnp.integer):
        # Left to NumPy, a list of words below and above 2^63 would become floats.
        kind = np.uint64 if shape.dtype == np.uint64 else np.int64
    return np.asarray(leaf, kind).reshape(size, *shape.shape[1:])


def _sum(*chunks: Any) -> Any:
    """The exact sum, added in Python integers."""
    total = sum(np.asarray(part, dtype=object) for part in chunks)
    return int(total) if np.ndim(total) == 0 else np.asarray(total).astype(np.int64)


def _equal(name: str, total: int, chunk: int) -> list[int]:
    """Chunk sizes: equal ones, and the remainder."""
    total = arguments.integer(name, total, at_least=1, at_most=engine.TRIALS_A_CELL)
    chunk = arguments.integer("chunk", chunk, at_least=1)
    return [min(chunk, total - first) for first in range(0, total, chunk)]
