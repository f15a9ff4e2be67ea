"""Runs on the pairs of datasets that look worst: lower bounds on epsilon and delta."""

import dataclasses
from typing import Any

import jax
import numpy as np

from dpjax.verify.audit import audit_samples, cuts_at, excess
from dpjax.verify.exact import in_parts, sticks
from dpjax.verify.family import Family
from dpjax.verify.runs import BLOCK, Runner, runner

CANDIDATES = 2  # pairs audited for each of the ways to look bad
MOST_AUDITED = 4_000  # datasets on which pilot runs are made
CELLS = 64  # into which real outcomes are sorted, besides as many numbers that repeat
RUNS, LOOPED_RUNS, LOOPED_PILOT = 2**15, 2_000, 32  # compiled; in a Python loop


@dataclasses.dataclass(frozen=True)
class Audits:
    """Runs on a few pairs; bounds on one of them hold at `level`, so that together they hold at the requested level."""

    pairs: list[tuple[int, int]]
    outcomes: list[tuple[np.ndarray, np.ndarray]]
    level: float
    runner: Runner
    rounding: float = 0.0
    summed: float = 0.0

    def delta_at(self, epsilon: float) -> tuple[float, int, int]:
        audits = [audit_samples(*both, epsilon=epsilon, level=self.level) for both in self.outcomes]
        gains = [excess(found.p_low, found.q_high, epsilon) for found in audits]
        worst = int(np.argmax(gains))
        first, second = self.pairs[worst][:: -1 if audits[worst].swapped else 1]
        return max(0.0, gains[worst]), first, second

    def shown_at(self, epsilon: float) -> float:
        """All of a lower bound is certain."""
        return self.delta_at(epsilon)[0]

    def feared_at(self, epsilon: float) -> float:
        """A lower bound rounds nothing off."""
        return self.delta_at(epsilon)[0]

    def epsilon_at(self, delta: float) -> float:
        return max(audit_samples(*both, delta=delta, level=self.level).epsilon for both in self.outcomes)

    @property
    def runs(self) -> int:
        """The number of runs on each dataset of a pair."""
        return len(self.outcomes[0][0])


def audits_of(algorithm: Any, datasets: Family, epsilon: float, trials: int | None, level: float, seed: int) -> Audits:
    """Pilot runs on all datasets, then new runs on the pairs that look worst."""
    count = len(datasets.sizes)
    if count > MOST_AUDITED:
        raise ValueError(
            f"n and domain must be smaller: runs on {count} datasets; at most {MOST_AUDITED} can be audited"
        )
    last = datasets.values[-1], datasets.sizes[-1]
    how = runner(algorithm, datasets.kind.make, *last, others=[datasets.first_of_most])
    key_pilot, key_runs = jax.random.split(jax.random.key(seed))
    pilot = how.several(
        [jax.random.fold_in(key_pilot, i) for i in range(count)],
        list(zip(datasets.values, datasets.sizes, strict=True)),
        BLOCK if how.compiled else LOOPED_PILOT,
    )
    chosen = _suspects(_tallies(pilot), datasets.pairs, epsilon, CANDIDATES if how.compiled else 1)
    runs = trials or (RUNS if how.compiled else LOOPED_RUNS)
    places = [i for pair in chosen for i in pair]
    given = [(datasets.values[i], datasets.sizes[i]) for i in places]
    drawn = [one[:runs] for one in how.several(jax.random.split(key_runs, len(places)), given, runs)]
    outcomes = list(zip(drawn[::2], drawn[1::2], strict=True))
    return Audits(chosen, outcomes, 1 - (1 - level) / len(chosen), how)  # type: ignore[arg-type]


def _tallies(outcomes: list[np.ndarray], most: int = 512) -> np.ndarray:
    """How often each outcome came, one row per dataset; rare outcomes are merged, real ones sorted into cells."""
    whole = np.concatenate(outcomes)
    if whole.dtype.kind == "f":
        ordered = np.sort(whole[~np.isnan(whole)])
        ranks = np.arange(0, len(ordered), max(1, len(ordered) // CELLS))
        codes = np.searchsorted(cuts_at(ordered, ranks, CELLS), whole)  # NaN comes after all cells
    else:
        codes = np.unique(whole, return_inverse=True, axis=0)[1].reshape(-1)
        order = np.argsort(-np.bincount(codes), kind="stable")
        codes = np.minimum(np.argsort(order, kind="stable")[codes], most)
    width = int(codes.max()) + 1
    return np.stack([np.bincount(part, minlength=width) for part in np.split(codes, len(outcomes))])


def _suspects(tallies: np.ndarray, pairs: np.ndarray, epsilon: float, candidates: int) -> list[tuple[int, int]]:
    """The pairs that look worst: by delta at epsilon, by delta at 0, and by the likelihood ratio of one outcome."""
    p = tallies / tallies.sum(axis=1, keepdims=True)
    counts = tallies + 0.5
    parts = ((counts[i], counts[j]) for i, j in in_parts(pairs, tallies.shape[1]))
    ratios = np.concatenate([np.max(np.log(a / b) - 2 * np.sqrt(1 / a + 1 / b), axis=1) for a, b in parts])
    chosen: dict[tuple[int, int], tuple[int, int]] = {}
    for score in (sticks(p, pairs, epsilon), sticks(p, pairs, 0.0), ratios):
        for place in np.argsort(-score, kind="stable")[: 2 * candidates]:  # both directions of a pair are one
            first, second = (int(index) for index in pairs[place])
            chosen.setdefault((min(first, second), max(first, second)), (first, second))
    return list(chosen.values())
