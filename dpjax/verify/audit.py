"""Monte-Carlo audit: a lower confidence bound on epsilon, and on delta, from runs on one neighbouring pair.

If A is (eps, delta)-DP then P[A(S) in R] <= exp(eps) P[A(S') in R] + delta for every event R. One half of
the runs chooses R (outcomes in order of their estimated likelihood ratio); the other half, untouched so
far, bounds both probabilities by Clopper and Pearson (1934). The bound is valid whatever event the first
half chose. Real outcomes, which may all be different, are sorted into cells first: quantiles of the first
half are their borders, and a number that often repeats is a cell of its own.
"""

import dataclasses
import math
from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from dpjax.accounting.guarantee import Guarantee
from dpjax.core import arguments, proportions
from dpjax.verify.exact import LARGEST_EPSILON

_FEW = 8  # real outcomes that make a cell: fewer would tell little about its likelihood ratio
_RARE = 2**9  # a number that comes in fewer than one of so many outcomes is not looked for


@dataclasses.dataclass(frozen=True)
class Audit:
    """What the runs prove, at the stated level, about the pair audited.

    Attributes:
      epsilon: at the audited delta, the true epsilon is at least this (0 when nothing is shown).
      delta: the audited delta.
      level: 1 - the probability that a mechanism within its guarantee is accused by these runs.
      swapped: whether the event is more likely on the second dataset.
      event: the outcomes in the event; of real outcomes, rows (low, high) for low < outcome <= high, and (inf, nan) for NaN.
      p_low: P[event] on the dataset that favours it is at least this. q_high: on the other, at most this.
    """

    epsilon: float
    delta: float
    level: float
    swapped: bool
    event: np.ndarray
    p_low: float
    q_high: float

    def delta_at(self, epsilon: float) -> float:
        """A lower bound on the true delta at this epsilon (0 when nothing is shown)."""
        return max(0.0, excess(self.p_low, self.q_high, epsilon))

    def refutes(self, guarantee: Guarantee) -> bool:
        """Whether the runs contradict `guarantee`."""
        return self.delta_at(guarantee.epsilon) > guarantee.delta


def audit_samples(
    first: Any, second: Any, *, delta: float = 0.0, level: float = 1 - 2e-5, epsilon: float | None = None
) -> Audit:
    """Audits outcomes already drawn, from the first dataset and from its neighbour.

    Args:
      first: outcomes on S: integers of shape (trials,), or (trials, ...) where a whole row is one outcome; or real numbers of
        shape (trials,). Equal numbers are one outcome, 0.0 and -0.0 among them, and so are all NaNs.
      second: as many outcomes on S'.
      delta: the mechanism's delta, in [0, 1).
      level: the confidence level of the bound; by default the false-alarm rate is 2e-5.
      epsilon: when given, the event is learned to refute (epsilon, delta) rather than to maximise the bound.

    Returns:
      Audit.

    Raises:
      TypeError: outcomes that are neither integers (or booleans) nor real numbers.
      ValueError: parameters out of range, rows of real numbers, unequal shapes, or fewer than 4 outcomes a side.

    >>> audit_samples([0] * 1000, [1] * 1000).epsilon > 3
    True
    >>> noise = np.random.default_rng(0).laplace(size=(2, 10_000))  # a count 0 or 1 with Laplace noise is 1-private
    >>> 0.7 < audit_samples(noise[0], noise[1] + 1).epsilon < 1
    True
    """
    delta = arguments.known("delta", arguments.delta(delta, positive=False))
    level = arguments.known_fraction("level", level)
    if epsilon is not None:
        epsilon = arguments.known("epsilon", epsilon, at_least=0.0, below=math.inf)
    first, second = _outcomes("first", first), _outcomes("second", second)
    if first.shape != second.shape or len(first) < 4:
        rule = "hold equally many outcomes of one shape, at least 4 of each"
        raise ValueError(f"first and second must {rule}, got shapes {first.shape} and {second.shape}")
    half = len(first) // 2
    labels, codes = _codes(first, second, half)
    (p, held_out_p), (q, held_out_q) = (
        [np.bincount(part, minlength=len(labels)) for part in (code[:half], code[half:])] for code in codes
    )
    gains = [_best_event(*pair, half, level, delta, epsilon) for pair in ((p, q), (q, p))]
    swapped = gains[1][0] > gains[0][0]
    event = gains[int(swapped)][1]
    p, q = (held_out_q, held_out_p) if swapped else (held_out_p, held_out_q)
    p_low, q_high = _bounds(p[event].sum(), q[event].sum(), len(first) - half, level)
    return Audit(
        epsilon=float(_epsilon(p_low, q_high, delta)),
        delta=delta,
        level=level,
        swapped=bool(swapped),
        event=labels[event],
        p_low=float(p_low),
        q_high=float(q_high),
    )


def _outcomes(name: str, given: Any) -> np.ndarray:
    """The outcomes as an array with one outcome per row; TypeError or ValueError if they do not form one."""
    values = np.asarray(given)
    if values.dtype.kind not in "biuf":
        raise TypeError(f"{name} must hold integers or real numbers, got {values.dtype}")
    if values.ndim == 0 or (values.dtype.kind == "f" and values.ndim > 1):
        rule = "one outcome a run: (trials,), or (trials, ...) of integers"
        raise ValueError(f"{name} must have the shape of {rule}, got {values.dtype} of shape {values.shape}")
    return values


def _codes(first: np.ndarray, second: np.ndarray, half: int) -> tuple[np.ndarray, tuple[np.ndarray, np.ndarray]]:
    """(what each code stands for, the codes of each side's outcomes)."""
    if "f" in first.dtype.kind + second.dtype.kind:
        return _cells(first, second, half)
    if np.result_type(first, second).kind == "f":  # unsigned and signed integers of 64 bits, which floats would merge
        first, second = _signs_and_words(first), _signs_and_words(second)
    whole = np.concatenate([first, second])
    labels, codes = np.unique(whole, return_inverse=True, axis=None if whole.ndim == 1 else 0)
    return labels, (codes.reshape(-1)[: len(first)], codes.reshape(-1)[len(first) :])


def _signs_and_words(values: np.ndarray) -> np.ndarray:
    """Rows of integers as rows of twice as many 64-bit words: first whether each is negative, then each modulo 2^64."""
    rows = values.reshape(len(values), -1)
    return np.concatenate([(rows < 0).astype(np.uint64), rows.astype(np.uint64)], axis=1)


def _cells(first: np.ndarray, second: np.ndarray, half: int) -> tuple[np.ndarray, tuple[np.ndarray, np.ndarray]]:
    """As `_codes`, for half-open cells (low, high] between quantiles of both first halves; these lie closer together near the ends."""
    learned = np.sort(np.concatenate([first[:half], second[:half]]))
    count = int(np.count_nonzero(~np.isnan(learned)))  # NaN is sorted to the end
    cells, near_the_ends = 1 + 2 * round(count ** (1 / 3)), _FEW * 2 ** np.arange((count // _FEW).bit_length())
    ranks = np.concatenate([np.arange(cells) * count // cells, near_the_ends, count - near_the_ends])
    # An event is chosen among all cells by their counts: many cells of few outcomes, as rounded numbers give, would only add chance.
    cuts = cuts_at(learned[:count], ranks[(ranks >= 0) & (ranks < count)], cells, least=max(_FEW, count // _RARE))
    labels = np.stack([np.append(-np.inf, cuts), np.append(cuts, np.nan)], axis=1)
    return labels, (np.searchsorted(cuts, first), np.searchsorted(cuts, second))


def cuts_at(ordered: np.ndarray, ranks: np.ndarray, most: int, *, least: int = _FEW) -> np.ndarray:
    """The upper ends of cells (low, high]: the numbers at these ranks, the `most` commonest ones that come `least` times, and infinity.

    A number that repeats is a cell of its own. It may be rarer than the distance between two ranks, so the commonest are looked for, too.

    >>> cuts_at(np.sort(np.append(np.arange(100.0), [50.5] * 9)), np.array([0, 99]), 1).tolist()
    [0.0, 50.49999999999999, 50.5, 90.0, inf]
    """
    names, repeats = np.unique(ordered, return_counts=True)
    common = np.argsort(-repeats, kind="stable")[:most]
    chosen = np.union1d(np.searchsorted(names, ordered[ranks]), common[repeats[common] >= least])
    before = np.nextafter(names[chosen[repeats[chosen] >= _FEW]], names.dtype.type(-np.inf))
    return np.unique(np.concatenate([names[chosen], before, [np.inf]]).astype(ordered.dtype))


def _bounds(p: Any, q: Any, trials: int, level: float) -> tuple[Any, Any]:
    """Lower bound of the first proportion, upper bound of the second: both hold with probability at least `level`."""
    return (
        proportions.clopper_pearson(p, trials, level=level)[0],
        proportions.clopper_pearson(q, trials, level=level)[1],
    )


def _epsilon(p_low: Any, q_high: Any, delta: float) -> Any:
    """ln((p - delta) / q), and 0 when that is negative."""
    return np.log(np.maximum((p_low - delta) / q_high, 1.0))


def excess(p_low: Any, q_high: Any, epsilon: float) -> Any:
    """p - e^epsilon q: where it is positive, delta is shown to be at least this."""
    return p_low - math.exp(min(epsilon, LARGEST_EPSILON)) * q_high


def _best_event(
    p: np.ndarray, q: np.ndarray, trials: int, level: float, delta: float, epsilon: float | None
) -> tuple[float, np.ndarray]:
    """Among the outcomes ranked by likelihood ratio, the prefix that looks best on its own half."""
    order = np.argsort(-(p + 0.5) / (q + 0.5), kind="stable")
    p_low, q_high = _bounds(np.cumsum(p[order]), np.cumsum(q[order]), trials, level)
    gain = _epsilon(p_low, q_high, delta) if epsilon is None else excess(p_low, q_high, epsilon)
    best = int(np.argmax(gain))
    return float(gain[best]), order[: best + 1]


def audit(
    key: jax.Array,
    mechanism: Callable[[jax.Array, Any], Any],
    pair: tuple[Any, Any],
    *,
    trials: int,
    delta: float = 0.0,
    level: float = 1 - 2e-5,
    epsilon: float | None = None,
    batch_size: int = 4096,
) -> Audit:
    """Runs `mechanism(key, dataset) -> outcome` on both datasets and audits the outcomes.

    Args:
      key: a PRNG key.
      mechanism: pure JAX, one run; its outcome is an array of integers or one real number, with a label of its own for ⊥.
      pair: two neighbouring datasets, pytrees of arrays of equal shapes (pad them, and let a count say how many records there are).
      trials: runs on each dataset.
      delta: the mechanism's delta.
      level: the confidence level of the bound; by default the false-alarm rate is 2e-5.
      epsilon: as for `audit_samples`.
      batch_size: how many runs are computed at once.

    Returns:
      Audit.

    Raises:
      TypeError: `key` is not a PRNG key, or the outcomes are neither integers nor real numbers.
      ValueError: parameters out of range, or two datasets of unequal shapes.

    >>> import jax.numpy as jnp
    >>> leak = lambda key, bit: bit
    >>> audit(jax.random.key(0), leak, (jnp.array(0), jnp.array(1)), trials=1000).epsilon > 3
    True
    """
    outcomes = runs(key, mechanism, pair, trials=trials, batch_size=batch_size)
    for outcome in outcomes:
        if not isinstance(outcome, np.ndarray):
            raise TypeError(f"mechanism must return one array, got {jax.tree.structure(outcome)}")
    return audit_samples(*outcomes, delta=delta, level=level, epsilon=epsilon)


def runs(
    key: jax.Array,
    mechanism: Callable[[jax.Array, Any], Any],
    pair: tuple[Any, Any],
    *,
    trials: int,
    batch_size: int = 4096,
) -> tuple[Any, Any]:
    """The outcomes of `mechanism` on both datasets: pytrees of NumPy arrays, each with a leading axis over the runs.

    Args:
      key, mechanism, pair, trials, batch_size: as for `audit`; the mechanism may return any pytree of arrays.

    Raises:
      TypeError, ValueError: as `audit`.
    """
    key = arguments.key(key)
    arguments.function("mechanism", mechanism)
    trials = arguments.size("trials", trials, at_least=4)
    batch_size = arguments.size("batch_size", batch_size)
    if not isinstance(pair, tuple | list) or len(pair) != 2:
        raise TypeError(f"pair must be two datasets, got {pair!r}")
    shapes = [jax.tree.map(lambda leaf: (np.shape(leaf), jax.numpy.result_type(leaf)), dataset) for dataset in pair]
    if shapes[0] != shapes[1]:
        raise ValueError(f"pair must hold two datasets of equal shapes, got {shapes[0]} and {shapes[1]}")
    size = min(batch_size, trials)
    # Whole batches, by repeating the first keys: `lax.map` would compile the mechanism once more for a shorter last one.
    whole = np.arange(-(-trials // size) * size) % trials

    @jax.jit
    def run(side: jax.Array, dataset: Any) -> Any:
        keys = jax.random.split(side, trials)[whole]
        return jax.lax.map(lambda each: mechanism(each, dataset), keys, batch_size=size)

    first, second = (
        jax.tree.map(lambda leaf: np.asarray(leaf)[:trials], run(side, dataset))
        for side, dataset in zip(jax.random.split(key), pair, strict=True)
    )
    return first, second
