"""Trials until the answer is clear: easy cells stop early, and looking after every chunk costs no confidence.

Estimates come with confidence sequences (`estimates.rate_sequence`, `estimates.mean_sequence`): with probability at
least `level` ALL the intervals of a run contain the truth, so it may stop at any moment, for any reason.
"""

import itertools
from collections.abc import Callable, Mapping
from typing import Any

import jax
import numpy as np

from dpjax.core import arguments
from dpjax.trials import engine, estimates, resumable
from dpjax.trials.estimates import Estimate
from dpjax.trials.progress import Progress
from dpjax.trials.shared import Keeper

Enough = Callable[[Estimate], bool]


def narrow(*, width: float | None = None, relative: float | None = None) -> Enough:
    """Enough when high - low <= width, or <= relative * value, whichever is given (either, if both are).

    Raises:
        ValueError: neither is given, or one is not > 0.

    >>> narrow(width=0.1)(Estimate(0.5, 0.46, 0.55, 0.95, 300))
    True
    """
    if width is None and relative is None:
        raise ValueError("narrow needs width or relative, got neither")
    width = 0.0 if width is None else arguments.known("width", width, above=0.0)
    relative = 0.0 if relative is None else arguments.known("relative", relative, above=0.0)
    return lambda estimate: estimate.high - estimate.low <= max(width, relative * estimate.value)


def apart_from(number: float) -> Enough:
    """Enough when the interval lies on one side of `number`, which is all that a search for n* needs.

    >>> apart_from(0.1)(Estimate(0.05, 0.01, 0.09, 0.95, 300))
    True
    """
    number = arguments.known("number", number)
    return lambda estimate: estimate.high < number or number < estimate.low


def rate(
    run: engine.Run,
    params: Any,
    *,
    store: Keeper,
    key: Mapping[str, Any],
    root: jax.Array,
    cell: int,
    enough: Enough,
    maximum: int,
    event: str | None = None,
    level: float = 0.95,
    chunk: int = 256,
    batch: int | None = None,
    progress: Progress | None = None,
) -> Estimate:
    """The rate of an event, estimated from as many trials as it takes, at most `maximum`.

    Runs trials 0, 1, ... of the cell, those of `engine.count`, in chunks that double the total; after each, `enough` decides.

    Args:
        run, params, root, cell, batch: as for `engine.count`; `run` returns the event, 0 or 1, or a dict of events.
        store, key, progress: as for `resumable.count`.
        enough: decides from the estimate so far; `narrow(...)`, `apart_from(...)`, or a function of your own.
        maximum: largest number of trials.
        event: which entry of the dict, if `run` returns one.
        level: confidence of the sequence.
        chunk: trials before the first decision.

    Returns:
        The last estimate; its `count` says how many trials were made.

    Raises:
        TypeError, ValueError: as `resumable.count`, or `event` names no entry, or `run` counts more events than trials.

    Example:
        >>> import tempfile
        >>> from dpjax.trials.store import open_store
        >>> def coin(key, p):
        ...     return jax.random.uniform(key) < p
        >>> with tempfile.TemporaryDirectory() as directory, open_store(directory, {}) as store:
        ...     given = dict(store=store, root=engine.root_key(0), cell=0, enough=apart_from(0.1), maximum=10**6)
        ...     [rate(coin, p, key={"p": p}, **given).count for p in (0.5, 0.15, 0.11)]
        [256, 512, 16384]
    """
    arguments.function("enough", enough)
    sizes = _doubling(maximum, chunk)
    parts = resumable.parts(
        "trials", run, params, store=store, key=key, root=root, cell=cell, sizes=sizes, batch=batch, progress=progress
    )
    events = trials = 0
    for size, counted in zip(sizes, parts, strict=True):
        one = _named(event, counted)
        if np.ndim(one):
            raise TypeError(f"run must return one event, 0 or 1, got counts of shape {np.shape(one)}")
        events, trials = events + int(one), trials + size
        estimate = estimates.rate_sequence(events, trials, level=level)
        if enough(estimate):
            break
    return estimate


def _named(event: str | None, counted: Any) -> Any:
    """The count of one event: that of this name, or the only one."""
    if isinstance(counted, Mapping):
        return counted[arguments.choice("event", event, tuple(counted))]
    if event is not None:
        raise ValueError(f"event must be None, as run returns a single event, got {event!r}")
    return counted


def mean(
    run: engine.Run,
    params: Any,
    *,
    store: Keeper,
    key: Mapping[str, Any],
    root: jax.Array,
    cell: int,
    enough: Enough,
    maximum: int,
    level: float = 0.95,
    chunk: int = 64,
    batch: int = 8,
    progress: Progress | None = None,
) -> Estimate:
    """The mean of a number in [0, 1], such as an exact failure probability, over as many draws as it takes.

    As `rate`, with `estimates.mean_sequence`, which relies on no normal approximation. It needs some hundred draws to say
    anything; where a few dozen draws of a law must suffice, `estimates.mean` at a number of draws fixed beforehand is the
    (asymptotic) alternative.

    Args:
        run: returns one number in [0, 1].
        maximum, chunk: largest number of draws, and draws before the first decision.
        params, store, key, root, cell, enough, level, batch, progress: as for `rate`.

    Returns:
        The last estimate; its `count` says how many draws were made.

    Raises:
        TypeError, ValueError: as `resumable.evaluate`, or a number lies outside [0, 1].
    """
    arguments.function("enough", enough)
    sizes = _doubling(maximum, chunk)
    parts = resumable.parts(
        "draws", run, params, store=store, key=key, root=root, cell=cell, sizes=sizes, batch=batch, progress=progress
    )
    values = np.empty(0)
    for part in parts:
        if np.ndim(part) != 1:
            raise TypeError(f"run must return one number, got draws of shape {np.shape(part)}")
        values = np.concatenate([values, part])
        estimate = estimates.mean_sequence(values, level=level)
        if enough(estimate):
            break
    return estimate


def _doubling(maximum: int, chunk: int) -> list[int]:
    """Sizes of chunks after which 1, 2, 4, ... times `chunk` are done, and of the remainder."""
    total = arguments.integer("maximum", maximum, at_least=1, at_most=engine.TRIALS_A_CELL)
    done = arguments.integer("chunk", chunk, at_least=1)
    ends = [0]
    while done < total:
        ends.append(done)
        done *= 2
    return [last - first for first, last in itertools.pairwise([*ends, total])]
