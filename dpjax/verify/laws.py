"""The laws of all datasets of a family, and what follows for privacy: exact, up to rounding."""

import dataclasses
import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from dpjax.core import tracing
from dpjax.verify.exact import evaluated, in_parts, is_single, sticks
from dpjax.verify.family import Family

MOST_NUMBERS = 2**27  # probabilities held at a time, 1 GiB
ROUNDING, SINGLE = 1e-12, 1e-6  # how far a probability may be off in float64, and in float32
MOST_OFF, SINGLE_MOST_OFF = 1e-9, 1e-5  # and the sum of all of them: the missing mass could be what leaks
_BATCH = 64  # laws computed at once: if there are few datasets, in several orders of their records


@dataclasses.dataclass(frozen=True)
class Laws:
    """The law of every dataset; a probability may be off by `rounding`."""

    p: np.ndarray
    pairs: np.ndarray
    rounding: float

    @property
    def single(self) -> bool:
        return self.rounding >= SINGLE

    @property
    def summed(self) -> float:
        """How far a sum over outcomes may be off: the last digits of many differences of a distribution function add up."""
        return max(self.rounding, self.p.shape[1] * 2.0 ** (-24 if self.single else -53))

    def delta_at(self, epsilon: float) -> tuple[float, int, int]:
        found = sticks(self.p, self.pairs, epsilon)
        worst, delta = int(np.argmax(found)), float(found.max())
        if delta <= self.rounding:  # nothing is left: take the pair with the greatest ratio of probabilities
            worst, delta = self._pure()[1], 0.0
        first, second = self.pairs[worst]
        return delta, int(first), int(second)

    def shown_at(self, epsilon: float) -> float:
        """The delta that is certain, whatever the factor exp(epsilon) makes of the last digits.

        Any probability may be what 1 - p left, and so be off by the float's eps. Multiplied by others, as in the joint law of two coins, it
        does not show that it has few digits. So beyond an epsilon of 36.05 (15.95 in single precision) nothing is certain.
        """
        return float(sticks(self.p, self.pairs, epsilon, self.p + float(self._floats.eps)).max())

    def feared_at(self, epsilon: float) -> float:
        """As `delta_at`, but probabilities with few digits are less by the float's eps, if exp(epsilon) times that matters.

        If all of them were, no law with a large epsilon would be found private.
        """
        eps = float(self._floats.eps)
        if epsilon <= math.log(self.rounding / eps):
            return self.delta_at(epsilon)[0]
        least = np.where(self._few_digits, np.maximum(self.p - eps, 0.0), self.p)
        return float(sticks(self.p, self.pairs, epsilon, least).max())

    @property
    def _floats(self) -> Any:
        return np.finfo(np.float32 if self.single else np.float64)

    @property
    def _few_digits(self) -> np.ndarray:
        """Which are multiples of eps/2^12 (eps/8 in single precision), as 1 - p and 1 - p - q leave; all above 2^-12 (1/8) are such."""
        digits = (3 if self.single else 12) - self._floats.machep
        return np.ldexp(self.p, digits) % 1.0 == 0.0

    def epsilon_at(self, delta: float) -> float:
        """Rises from epsilon = 0 to what the pair that is worst there needs, and so on, until no pair is above delta.

        Each step ends at a larger epsilon, from which on its pair stays within delta, so no pair comes twice.
        """
        epsilon = self._pure()[0] if delta == 0.0 else 0.0
        # An event of probability exactly delta is within delta; outcomes that are each below the rounding may exceed it together.
        delta += self.rounding
        while True:
            found, first, second = self.delta_at(epsilon)
            if found <= delta or math.isinf(epsilon):
                return epsilon
            needed = least_epsilon(self.p[first], self.p[second], delta)
            if needed <= epsilon:
                return epsilon
            epsilon = needed

    def _pure(self) -> tuple[float, int]:
        """(max ln(P_S[o] / P_S'[o]) over outcomes likelier than the rounding, the pair that has it)."""
        with np.errstate(divide="ignore", invalid="ignore"):
            ratios = [
                np.max(np.where(self.p[i] > self.rounding, self.p[i] / self.p[j], 0.0), axis=1)
                for i, j in in_parts(self.pairs, self.p.shape[1])
            ]
        largest = np.maximum(np.concatenate(ratios), 1.0)
        return math.log(largest.max()), int(np.argmax(largest))


def least_epsilon(p: np.ndarray, q: np.ndarray, delta: float) -> float:
    """The least epsilon >= 0 with sum max(0, p - exp(epsilon) q) <= delta.

    The sum is the largest of P_k - exp(epsilon) Q_k over the k outcomes of largest p / q, so epsilon is max ln((P_k - delta) / Q_k).

    >>> round(least_epsilon(np.array([0.75, 0.25]), np.array([0.25, 0.75]), 0.25), 4)
    0.6931
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        order = np.argsort(-np.where(p > 0, p / q, 0.0), kind="stable")
        surplus, other = np.cumsum(p[order]) - delta, np.cumsum(q[order])
        return math.log(max(1.0, float(np.max(np.where(surplus > 0, surplus / other, 0.0)))))


def laws_of(algorithm: Any, datasets: Family, ordered: bool) -> Laws | None:
    """The laws, if the algorithm has any."""
    if not callable(getattr(algorithm, "pmf", None)):
        return None
    make = datasets.kind.make

    def law(row: Any) -> Any:
        found = algorithm.pmf(make(*row))
        try:
            return jnp.asarray(found)
        except TypeError as error:
            raise TypeError(f"pmf must return a vector of probabilities, got {type(found).__name__}") from error

    rows = (datasets.values, datasets.sizes)
    first = jax.tree.map(lambda leaf: leaf[0], rows)
    with jax.enable_x64(True):
        try:
            refusal = tracing.refusal(law, first)
        except NotImplementedError:
            return None
        shape = jax.eval_shape(law, first).shape if refusal is None else law(first).shape
    single = refusal is None and is_single(law, rows)
    count, outcomes = len(datasets.sizes), math.prod(shape)
    if outcomes == 0:
        raise ValueError(f"pmf must return a vector of probabilities, got shape {shape}")
    room = min(_BATCH if refusal is None else 0, MOST_NUMBERS // outcomes) // count
    others = [] if ordered else datasets.reordered(max(1, room - 1))
    both = np.concatenate([datasets.values, *others]), np.tile(datasets.sizes, 1 + len(others))
    if len(both[1]) * outcomes > MOST_NUMBERS:
        found = f"the laws of {len(both[1])} datasets have {outcomes} outcomes each"
        raise ValueError(f"n and domain must be smaller: {found}; at most {MOST_NUMBERS} probabilities are held")
    table = evaluated(law, both, batch_size=_BATCH) if refusal is None else _looped(law, both)
    p, rounding = _checked_law(table, datasets)
    rounding = max(rounding, SINGLE) if single else rounding
    made = Laws(p[:count], datasets.pairs, rounding)
    blur = max(SINGLE_MOST_OFF if made.single else 4 * rounding, made.summed)
    for turn in range(1, 1 + len(others)):
        _check_order(p[:count], p[turn * count : (turn + 1) * count], datasets, blur)
    return made


def _looped(law: Any, rows: Any) -> np.ndarray:
    """The laws by a Python loop."""
    with jax.enable_x64(True):
        found = [np.asarray(law(row)) for row in zip(*rows, strict=True)]
    if len({one.shape for one in found}) != 1:
        raise ValueError(
            f"pmf must list equally many outcomes for all data, got {sorted({one.shape for one in found})}"
        )
    return np.stack(found)


def _checked_law(table: np.ndarray, datasets: Family) -> tuple[np.ndarray, float]:
    """(The table in float64, its rounding); ValueError if a row of it is not a law."""
    if table.ndim != 2 or table.dtype.kind not in "biuf" or table.dtype == np.float16:
        raise ValueError(f"pmf must return a vector of probabilities, got {table.dtype} of shape {table.shape[1:]}")
    single = table.dtype.kind == "f" and table.dtype.itemsize < 8
    rounding, most_off = (SINGLE, SINGLE_MOST_OFF) if single else (ROUNDING, MOST_OFF)
    p = table.astype(np.float64)
    sums = p.sum(axis=1)
    wrong = np.flatnonzero(~((np.abs(sums - 1) < most_off) & (p.min(axis=1) > -most_off)))
    if wrong.size:
        of = datasets.shown(int(wrong[0]) % len(datasets.sizes))
        got = f"they sum to {sums[wrong[0]]:.9g}, the least is {p[wrong[0]].min():.3g}"
        raise ValueError(f"pmf must return probabilities that sum to one; on the data {of} {got}")
    return np.maximum(p, 0.0), max(rounding, 4 * float(np.abs(sums - 1).max()), -float(p.min()))


def _check_order(p: np.ndarray, shuffled: np.ndarray, datasets: Family, blur: float) -> None:
    """ValueError if the law changes when the same records come in another order."""
    gaps = np.maximum(p - shuffled, 0.0).sum(axis=1)  # all outcomes together: many small changes are a large one
    worst = int(np.argmax(gaps))
    if gaps[worst] > blur:
        seen = f"its law on the records {datasets.shown(worst)} changes by {gaps[worst]:.3g} when they come in another order"
        raise ValueError(f"ordered must be True for an algorithm that looks at the order of records: {seen}")
