"""Monte-Carlo audit: a lower confidence bound on epsilon, and on delta, from runs on one neighbouring pair.

If A is (eps, delta)-DP then P[A(S) in R] <= exp(eps) P[A(S') in R] + delta for every event R. One half of
the runs chooses R (outcomes in order of their estimated likelihood ratio); the other half, untouched so
far, bounds both probabilities by Clopper and Pearson (1934). The bound is valid whatever event the first
half chose.
"""

import dataclasses
import math
from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from dpjax.accounting.guarantee import Guarantee
from dpjax.core import arguments


def clopper_pearson(successes: Any, trials: int, confidence: float) -> tuple[Any, Any]:
    """One-sided exact bounds (low, high) on a proportion, each wrong with probability at most 1 - confidence.

    >>> low, high = clopper_pearson(0, 100, 0.95)
    >>> float(low), round(float(high), 4)
    (0.0, 0.0295)
    """
    from scipy import stats

    successes, error = np.asarray(successes, np.float64), 1 - arguments.fraction("confidence", confidence)
    failures = trials - successes
    low = np.where(successes > 0, stats.beta.ppf(error, np.maximum(successes, 1), failures + 1), 0.0)
    high = np.where(failures > 0, stats.beta.isf(error, successes + 1, np.maximum(failures, 1)), 1.0)
    return low, high


@dataclasses.dataclass(frozen=True)
class Audit:
    """What the runs prove, at the stated confidence, about the pair audited.

    Attributes:
      epsilon: at the audited delta, the true epsilon is at least this (0 when nothing is shown).
      delta: the delta it is for.
      confidence: 1 - the probability that a mechanism within its guarantee is accused by these runs.
      swapped: whether the event is more likely on the second dataset.
      event: the outcomes in the event.
      p_low: P[event] on the dataset that favours it is at least this. q_high: on the other, at most this.
    """

    epsilon: float
    delta: float
    confidence: float
    swapped: bool
    event: np.ndarray
    p_low: float
    q_high: float

    def refutes(self, guarantee: Guarantee) -> bool:
        """Whether the runs contradict `guarantee`."""
        return self.p_low > math.exp(guarantee.epsilon) * self.q_high + guarantee.delta


def audit_samples(
    first: Any, second: Any, *, delta: float = 0.0, confidence: float = 1 - 2e-5, epsilon: float | None = None
) -> Audit:
    """Audits outcomes already drawn: integer labels from the first dataset and from its neighbour.

    Args:
      first: outcomes on S, integers of shape (trials,).
      second: outcomes on S', as many.
      delta: the mechanism's delta, in [0, 1).
      confidence: of the bound; the default is a false-alarm rate of 2e-5.
      epsilon: when given, the event is learned to refute (epsilon, delta) rather than to maximise the bound.

    Returns:
      Audit.

    Raises:
      ValueError: parameters out of range, or fewer than 4 outcomes a side.

    >>> audit_samples([0] * 1000, [1] * 1000).epsilon > 3
    True
    """
    delta = float(arguments.delta(delta, positive=False))
    confidence = float(arguments.fraction("confidence", confidence))
    first, second = np.asarray(first).ravel(), np.asarray(second).ravel()
    trials = min(len(first), len(second))
    if trials < 4:
        raise ValueError(f"first and second must hold at least 4 outcomes each, got {len(first)} and {len(second)}")
    labels, codes = np.unique(np.concatenate([first[:trials], second[:trials]]), return_inverse=True)
    half, each = trials // 2, 1 - (1 - confidence) / 2  # two bounds share the error
    tallies = [
        np.bincount(part, minlength=len(labels))
        for side in (codes[:trials], codes[trials:])
        for part in (side[:half], side[half:])
    ]
    learned, held_out = (tallies[0], tallies[2]), (tallies[1], tallies[3])
    gains = [_best_event(*pair, half, each, delta, epsilon) for pair in (learned, learned[::-1])]
    swapped = gains[1][0] > gains[0][0]
    event = gains[int(swapped)][1]
    p, q = held_out[::-1] if swapped else held_out
    p_low, q_high = _bounds(p[event].sum(), q[event].sum(), trials - half, each)
    return Audit(
        epsilon=float(_epsilon(p_low, q_high, delta)),
        delta=delta,
        confidence=confidence,
        swapped=bool(swapped),
        event=labels[event],
        p_low=float(p_low),
        q_high=float(q_high),
    )


def _bounds(p: Any, q: Any, trials: int, confidence: float) -> tuple[Any, Any]:
    """Lower bound of the first proportion, upper bound of the second."""
    return clopper_pearson(p, trials, confidence)[0], clopper_pearson(q, trials, confidence)[1]


def _epsilon(p_low: Any, q_high: Any, delta: float) -> Any:
    """ln((p - delta) / q), and 0 when that is negative."""
    return np.log(np.maximum((p_low - delta) / q_high, 1.0))


def _best_event(
    p: np.ndarray, q: np.ndarray, trials: int, confidence: float, delta: float, epsilon: float | None
) -> tuple[float, np.ndarray]:
    """Among the outcomes ranked by likelihood ratio, the prefix that looks best on its own half."""
    order = np.argsort(-(p + 0.5) / (q + 0.5), kind="stable")
    p_low, q_high = _bounds(np.cumsum(p[order]), np.cumsum(q[order]), trials, confidence)
    gain = _epsilon(p_low, q_high, delta) if epsilon is None else p_low - math.exp(epsilon) * q_high
    best = int(np.argmax(gain))
    return float(gain[best]), order[: best + 1]


def audit(
    key: jax.Array,
    mechanism: Callable[[jax.Array, Any], Any],
    pair: tuple[Any, Any],
    *,
    trials: int,
    delta: float = 0.0,
    confidence: float = 1 - 2e-5,
    epsilon: float | None = None,
    batch_size: int = 4096,
) -> Audit:
    """Runs `mechanism(key, dataset) -> integer outcome` on both datasets and audits what comes out.

    Args:
      key: a PRNG key.
      mechanism: pure JAX, one run; continuous outputs must be binned, and ⊥ be a label of its own.
      pair: two neighbouring datasets, pytrees of arrays of equal shapes.
      trials: runs on each dataset.
      delta: the mechanism's delta.
      confidence: of the bound; the default is a false-alarm rate of 2e-5.
      epsilon: as for `audit_samples`.
      batch_size: how many runs are computed at once.

    Returns:
      Audit.

    Raises:
      ValueError: parameters out of range.

    >>> import jax.numpy as jnp
    >>> leak = lambda key, bit: bit
    >>> audit(jax.random.key(0), leak, (jnp.array(0), jnp.array(1)), trials=1000).epsilon > 3
    True
    """
    trials = arguments.integer("trials", trials, at_least=4)
    run = jax.jit(lambda keys, dataset: jax.lax.map(lambda k: mechanism(k, dataset), keys, batch_size=batch_size))
    outcomes = [
        np.asarray(run(jax.random.split(side, trials), dataset))
        for side, dataset in zip(jax.random.split(key), pair, strict=True)
    ]
    return audit_samples(*outcomes, delta=delta, confidence=confidence, epsilon=epsilon)
