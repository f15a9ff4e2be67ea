"""Long counts and evaluations in chunks, each stored before the next begins: a kill loses one chunk.

The result is that of one call of `engine.count` or `engine.evaluate`, for any chunk size and any number of
kills.
"""

import functools
from collections.abc import Callable, Mapping
from typing import Any

import jax
import numpy as np

from dpjax.core import checks
from dpjax.trials import engine
from dpjax.trials.progress import Progress
from dpjax.trials.store import Store

Part = Callable[[int, int, engine.Report | None], Any]


def count(
    run: engine.Run,
    params: Any,
    *,
    store: Store,
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
        chunk: trials a record: what a kill may lose. Another chunk on resuming gives the same result, but
            recomputes.
        progress: told of trials done now and of those found in the store.

    Returns:
        As `engine.count`.

    Raises:
        TypeError, ValueError: as `engine.count`, or `chunk` < 1.
    """

    def part(first: int, size: int, report: engine.Report | None) -> Any:
        return engine.count(run, params, root=root, cell=cell, trials=size, first=first, batch=batch, report=report)

    structure = engine.outcome_structure(run, params)
    parts = _chunks(part, store, key, "trials", trials, chunk, progress)
    sums = [sum(np.asarray(leaf, dtype=object) for leaf in leaves) for leaves in zip(*parts, strict=True)]
    plain = [int(leaf) if np.ndim(leaf) == 0 else np.asarray(leaf).astype(np.int64) for leaf in sums]
    return jax.tree.unflatten(structure, plain)


def evaluate(
    run: engine.Run,
    params: Any,
    *,
    store: Store,
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
        chunk: draws a record; best a multiple of batch, of which only whole blocks are computed.

    Returns:
        As `engine.evaluate`, floats as float64 (which holds every float32).

    Raises:
        TypeError, ValueError: as `engine.evaluate`, or `chunk` < 1.
    """

    def part(first: int, size: int, report: engine.Report | None) -> Any:
        return engine.evaluate(run, params, root=root, cell=cell, draws=size, first=first, batch=batch, report=report)

    structure = engine.outcome_structure(run, params)
    parts = _chunks(part, store, key, "draws", draws, chunk, progress)
    joined = [np.concatenate([np.asarray(leaf) for leaf in leaves]) for leaves in zip(*parts, strict=True)]
    return jax.tree.unflatten(structure, joined)


def _chunks(
    part: Part,
    store: Store,
    key: Mapping[str, Any],
    name: str,
    total: int,
    chunk: int,
    progress: Progress | None,
) -> list[list[Any]]:
    """The leaves of part(first, size), chunk after chunk, from the store where they are there."""
    total, chunk = checks.integer(name, total, at_least=1), checks.integer("chunk", chunk, at_least=1)
    parts = []
    for first in range(0, total, chunk):
        size = min(chunk, total - first)
        record = {**key, "first": first, name: size}
        if progress is not None and record in store:
            progress.skip(size)
        report = None if progress is None else progress.done
        parts.append(store.get_or_compute(record, functools.partial(_leaves, part, first, size, report)))
    return parts


def _leaves(part: Part, first: int, size: int, report: engine.Report | None) -> list[Any]:
    """The arrays of one chunk."""
    return jax.tree.leaves(part(first, size, report))
