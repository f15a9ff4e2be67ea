"""Shared by experiments with quantiles: columns by public rules, requests to a method, one release and its largest rank error."""

import sys
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import dpjax
from dpjax import Points, Status
from dpjax.core.pytree import frozen
from dpjax.optimizers import quantiles

MISSING = "left out: {name} (install its data by pip install '.[data]')"


class Column(NamedTuple):
    """One column, encoded.

    Attributes:
      codes: increasing integers in {0, ..., 2^bits - 1}.
      bits: d, the number of bits of a code.
      origin: the code around which a geometric grid is finest.
    """

    codes: np.ndarray
    bits: int
    origin: int


class Rule(NamedTuple):
    """Where values come from and how they are quantised; a rule is public and does not depend on the values."""

    values: Callable[[np.random.Generator, int], np.ndarray]
    low: float
    high: float
    unit: float
    real: bool


def some(rng: np.random.Generator, values: np.ndarray, n: int) -> np.ndarray:
    """n of the values without replacement; all of them if there are fewer."""
    return rng.choice(values, min(n, len(values)), replace=False)


def column(name: str, n: int, seed: int, rules: Mapping[str, Rule]) -> Column | None:
    """A sample of a column, at most n values; None, and a line that says what to install, if its package is missing."""
    rule = rules[name]
    rng = np.random.default_rng([seed, n, *name.encode()])
    try:
        values = rule.values(rng, n)
    except ImportError:
        print(MISSING.format(name=name), file=sys.stderr)
        return None
    encoded: Any = dpjax.encode(values, unit=rule.unit, low=rule.low, high=rule.high, clip=True)
    codes = np.asarray(encoded.points.x)[:, -1].astype(np.int64)
    return Column(np.sort(codes), encoded.bits, encoded.encoding.origin)


class Wanted(NamedTuple):
    """A request to a method: quantiles at these fractions, on a domain with a public origin."""

    fractions: tuple[float, ...]
    epsilon: float
    delta: float
    beta: float
    bits: int
    origin: int
    base: float

    @property
    def number(self) -> int:
        return len(self.fractions)

    @property
    def given(self) -> dict[str, Any]:
        """The arguments that every method takes."""
        return {"bits": self.bits, "fractions": self.fractions, "epsilon": self.epsilon}


def unbounded(wanted: Wanted) -> Any:
    """AboveThreshold along the geometric grid around the origin."""
    return quantiles.unbounded(**wanted.given, base=wanted.base, origin=wanted.origin)


def even(number: int) -> tuple[float, ...]:
    """Evenly spaced fractions: i/(q + 1) for i = 1, ..., q, where q is `number`."""
    return tuple(i / (number + 1) for i in range(1, number + 1))


@frozen
class Trial:
    """One release from one sample; all fields are data of the compiled program, except for their shapes."""

    mechanism: Any
    points: Points
    ranks: Any


def largest_error(key: jax.Array, trial: Trial) -> Any:
    """The largest rank error of one release; infinite if there was none."""
    outcome = trial.mechanism(key, trial.points)
    errors = quantiles.rank_errors(trial.points, outcome.hypothesis, trial.ranks)
    return jnp.where(outcome.status == Status.OK, jnp.max(errors).astype(float), jnp.inf)


def trial(made: Any, column: Column, rows: int) -> Trial:
    """One release by the mechanism `made`, from a column padded to `rows` rows."""
    n = len(column.codes)
    x = np.full((rows, 1), 2**32 - 1, np.uint32)
    x[:n, 0] = column.codes
    ranks = quantiles.nearest_rank(np.asarray(made.fractions), n)
    return Trial(mechanism=made, points=Points(x=jax.device_put(x), n_valid=jnp.int32(n), ordered=True), ranks=ranks)
