"""The exact interval for a proportion, used wherever events are counted."""

from typing import Any

import numpy as np

from dpjax.core import arguments

MOST_TRIALS = 2**50  # beyond, float64 cannot tell neighbouring rates apart


def clopper_pearson(events: Any, trials: int, *, level: float) -> tuple[Any, Any]:
    """The ends (low, high) of the Clopper-Pearson interval, whose coverage is >= level at every true rate.

    With X ~ Bin(trials, p) and a = 1 - level the ends solve P_low[X >= events] = a/2 and P_high[X <= events] = a/2, so each
    end alone is wrong with probability at most a/2 (Clopper and Pearson 1934).

    Args:
      events: how many trials had the event, each from 0 to trials; a number or an array.
      trials: how many independent trials, at least 1.
      level: confidence, in (0, 1).

    Returns:
      (low, high), float64, in the shape of `events`.

    Raises:
      TypeError: `events` or `trials` does not hold integers.
      ValueError: one of them or the level is out of range.

    >>> low, high = clopper_pearson(0, 100, level=0.95)
    >>> float(low), round(float(high), 4)
    (0.0, 0.0362)
    """
    from scipy import special  # here, so that `import dpjax` stays light

    trials = arguments.integer("trials", trials, at_least=1, at_most=MOST_TRIALS)
    tail = float(1 - arguments.fraction("level", level)) / 2
    events = np.asarray(events)
    if events.dtype.kind not in "iu":
        raise TypeError(f"events must be integers, got {events.dtype}")
    if not np.all((events >= 0) & (events <= trials)):
        raise ValueError(f"events must be from 0 to {trials}, the number of trials, got {events}")
    events = events.astype(np.int64)  # narrower ones need not hold the number of trials
    others = trials - events
    low = np.where(events > 0, special.betaincinv(np.maximum(events, 1), others + 1, tail), 0.0)
    high = np.where(others > 0, special.betainccinv(events + 1, np.maximum(others, 1), tail), 1.0)
    return low, high
