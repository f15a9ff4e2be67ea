"""Long counts and evaluations in chunks, each stored before the next begins: a kill loses one chunk.

The result is that of one call of `engine.count` or `engine.evaluate`, for any chunk size and any number of
kills.
"""

import functools
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import jax
import numpy as np

from dpjax.core import checks
from dpjax.trials import engine
from dpjax.trials.progress import Progress
from dpjax.trials.shared import Keeper

Part = Callable[[int, int, engine.Report | None], Any]


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
        chunk: trials a record: what a kill may lose. Another chunk on resuming gives the same result, but
            recomputes.
        progress: told of trials done now and of those found in the store.

    Returns:
        As `engine.count`.

    Raises:
        TypeError, ValueError: as `engine.count`, or `chunk` < 1.
    """

    sizes = _equal("trials", trials, chunk)
    parts = counts(run, params, store=store, key=key, root=root, cell=cell, sizes=sizes, batch=batch, progress=progress)
    return jax.tree.map(_sum, *parts)


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
        chunk: draws a record; best a multiple of batch, of which only whole blocks are computed.

    Returns:
        As `engine.evaluate`, floats as float64 (which holds every float32).

    Raises:
        TypeError, ValueError: as `engine.evaluate`, or `chunk` < 1.
    """

    sizes = _equal("draws", draws, chunk)
    parts = laws(run, params, store=store, key=key, root=root, cell=cell, sizes=sizes, batch=batch, progress=progress)
    return jax.tree.map(lambda *leaves: np.concatenate(leaves), *parts)


def counts(
    run: engine.Run,
    params: Any,
    *,
    store: Keeper,
    key: Mapping[str, Any],
    root: jax.Array,
    cell: int,
    sizes: Iterable[int],
    batch: int | None = None,
    progress: Progress | None = None,
) -> Iterator[Any]:
    """Sums over one chunk of trials after another, of the given sizes, each stored before it is yielded; as `count`."""

    def part(first: int, size: int, report: engine.Report | None) -> Any:
        return engine.count(run, params, root=root, cell=cell, trials=size, first=first, batch=batch, report=report)

    structure = engine.outcome_structure(run, params)
    for leaves in _chunks(part, store, key, "trials", sizes, progress):
        yield jax.tree.unflatten(
            structure, [leaf if np.ndim(leaf) == 0 else np.asarray(leaf, np.int64) for leaf in leaves]
        )


def laws(
    run: engine.Run,
    params: Any,
    *,
    store: Keeper,
    key: Mapping[str, Any],
    root: jax.Array,
    cell: int,
    sizes: Iterable[int],
    batch: int = 8,
    progress: Progress | None = None,
) -> Iterator[Any]:
    """Outcomes of one chunk of draws after another, of the given sizes, each stored before it is yielded; as `evaluate`."""

    def part(first: int, size: int, report: engine.Report | None) -> Any:
        return engine.evaluate(run, params, root=root, cell=cell, draws=size, first=first, batch=batch, report=report)

    structure = engine.outcome_structure(run, params)
    for leaves in _chunks(part, store, key, "draws", sizes, progress):
        yield jax.tree.unflatten(structure, [np.asarray(leaf) for leaf in leaves])


def _sum(*parts: Any) -> Any:
    """Exactly: as Python integers first."""
    total = sum(np.asarray(part, dtype=object) for part in parts)
    return int(total) if np.ndim(total) == 0 else np.asarray(total).astype(np.int64)


def _equal(name: str, total: int, chunk: int) -> list[int]:
    """Chunks of one size, and the rest."""
    total, chunk = checks.integer(name, total, at_least=1), checks.integer("chunk", chunk, at_least=1)
    return [min(chunk, total - first) for first in range(0, total, chunk)]


def _chunks(
    part: Part,
    store: Keeper,
    key: Mapping[str, Any],
    name: str,
    sizes: Iterable[int],
    progress: Progress | None,
) -> Iterator[list[Any]]:
    """The leaves of part(first, size), chunk after chunk, from the store where they are there."""
    report = None if progress is None else progress.done
    first = 0
    for size in sizes:
        record = {**key, "first": first, name: size}
        if progress is not None and record in store:
            progress.skip(size)
        yield store.get_or_compute(record, functools.partial(_leaves, part, first, size, report))
        first += size


def _leaves(part: Part, first: int, size: int, report: engine.Report | None) -> list[Any]:
    """The arrays of one chunk."""
    return jax.tree.leaves(part(first, size, report))
