"""`dpjax.least_n`: how many examples each of several algorithms needs, at each of several settings.

By exact laws where an algorithm has one, averaged over data drawn from the distribution, else by sequential trials. Anything with
`__call__(key, sample)` will do for an algorithm, anything that draws samples and knows errors for a distribution.
"""

import contextlib
import dataclasses
import functools
import hashlib
import itertools
import json
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import numpy as np
from jaxtyping import Array

from dpjax.core import arguments, tracing
from dpjax.core.pytree import frozen, static
from dpjax.data import pac
from dpjax.data.algorithm import Algorithm
from dpjax.data.sample import bucket
from dpjax.trials import engine, estimates, resumable, search, sequential
from dpjax.trials.progress import Progress
from dpjax.trials.shared import Keeper, Memory, open_shared

LAW, TRIALS = "law", "trials"
COLUMNS = ("n", "low", "high", "by", "reason")
FIRST_LOOK = 32  # trials before it is first asked on which side of beta the rate lies
REACH = 1.5  # how far from n its interval is looked for


@frozen
class Fixed:
    """Something that is no pytree of numbers: part of the compiled program, found again by identity."""

    inside: Any = static()

    def __call__(self, key: Array, sample: Any) -> Any:
        return self.inside.value(key, sample)

    def __getattr__(self, name: str) -> Any:
        if name == "inside" or name.startswith("__"):  # not while it is being built or copied
            raise AttributeError(name)
        return getattr(self.inside.value, name)


@dataclasses.dataclass(frozen=True, repr=False)
class Curve:
    """The result of `least_n`; printed, a table.

    Attributes:
      rows: a dict a series and setting; see `to_rows`.
      over: the names of what the settings vary.
      alpha, beta, level: as given.
    """

    rows: tuple[Mapping[str, Any], ...]
    over: tuple[str, ...]
    alpha: float
    beta: float
    level: float

    def to_rows(self) -> list[dict[str, Any]]:
        """A dict a series and setting, in the order given.

        Keys: `series`; the setting's; `n`, the least n found (None if there is none up to the maximum); `low` and `high`, its
        interval (None where it has no end); `by`, "law" or "trials"; `reason`, why there is no n, else None.
        """
        return [dict(row) for row in self.rows]

    def to_pandas(self) -> Any:
        """The rows as a `pandas.DataFrame`.

        Raises:
          ImportError: pandas is not installed.
        """
        try:
            import pandas
        except ImportError:
            raise ImportError(
                "to_pandas needs pandas (pip install pandas); to_rows gives the same as plain dicts"
            ) from None
        return pandas.DataFrame(self.to_rows(), columns=["series", *self.over, *COLUMNS])

    def plot(self, ax: Any = None) -> Any:
        """Draws n against the first of `over`, a line a series (and a value of the others), and returns the axes."""
        from dpjax.plotting import curves

        return curves.least_n(self, ax)

    def __repr__(self) -> str:
        head = ("series", *self.over, "n", "low", "high", "by")
        table = [head, *(tuple("-" if row[name] is None else str(row[name]) for name in head) for row in self.rows)]
        widths = [max(map(len, column)) for column in zip(*table, strict=True)]
        lines = ["  ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True)) for line in table]
        return f"least n with P[error > {self.alpha:g}] <= {self.beta:g}\n" + "\n".join(lines)


def least_n(
    algorithms: Mapping[str, Callable[..., Any]],
    *,
    distribution: Callable[..., Any],
    over: Mapping[str, Sequence[Any]],
    alpha: float,
    beta: float,
    level: float = 0.95,
    seed: int = 0,
    by: str | None = None,
    start: int = 64,
    maximum: int = 2**20,
    rtol: float = 0.02,
    draws: int = 64,
    trials: int = 2**14,
    store: str | os.PathLike[str] | Keeper | None = None,
    progress: bool = False,
) -> Curve:
    """The least n with P[population error > alpha, or nothing released] <= beta, for each series and setting.

    Assumes that failure does not increase with n, and searches by doubling and halving (`trials.search`). All series meet the same
    data, and so do all n of a search as far as they go: draws depend on the seed and the setting alone, so more series or settings
    change nothing.

    Args:
      algorithms: by the name of its series, a function that makes an algorithm of a setting: `make(**setting)`. What it makes is
        called with (key, sample) and returns an `Outcome` or a hypothesis. If it has `probability(sample, event)`, the law of
        `distribution.within(alpha)` takes the place of trials.
      distribution: makes of a setting what has `sample(key, capacity, n)` and `error(hypothesis)` (or `errors`, for k
        hypotheses), and `within(alpha)` if laws are to be used; see `dpjax.concepts`. With `excess` (`excesses`) and
        `within_excess(alpha)` these are taken, as of `concepts.agnostic`.
      over: the values of each setting, as {"bits": [8, 16]}; of several all combinations.
      alpha: largest population error (excess, where there is one) that counts as success, in [0, 1].
      beta: largest failure probability allowed, in (0, 1).
      level: confidence of the intervals.
      seed: of all draws.
      by: "law" or "trials", for all series; default by law where there is one.
      start: first n tried. maximum: largest n tried.
      rtol: relative width of the last bracket of the search, in [0, 1); 0 gives the exact integer.
      draws: of data, for a law. (Its interval is Student's t over them: asymptotic.)
      trials: at most so many at one n; fewer where it is clear on which side of beta it lies (by a confidence sequence).
      store: directory where results are kept; the same call then goes on where a killed one stopped. Or a store that is open.
      progress: whether to show on standard error how far it is.

    Returns:
      `Curve`: `to_rows()`, `to_pandas()`, `plot()`.

    Raises:
      TypeError, ValueError: an argument out of range; an algorithm that JAX cannot trace, or that does not draw from its key.

    >>> from dpjax.concepts import thresholds as concept
    >>> from dpjax.learners import thresholds
    >>> least_n(
    ...     {"exponential": lambda bits: thresholds.exponential(bits=bits, epsilon=1.0)},
    ...     distribution=lambda bits: concept.log_uniform(bits=bits),
    ...     over={"bits": [8]}, alpha=0.2, beta=0.2)
    least n with P[error > 0.2] <= 0.2
         series  bits   n  low  high   by
    exponential     8  37   36    38  law
    """
    settings = _Settings(
        alpha=arguments.known("alpha", alpha, at_least=0.0, at_most=1.0),
        beta=arguments.known_fraction("beta", beta),
        level=arguments.known_fraction("level", level),
        seed=arguments.integer("seed", seed, at_least=0, at_most=2**32 - 1),
        by=by if by is None else arguments.choice("by", by, (LAW, TRIALS)),
        maximum=arguments.integer("maximum", maximum, at_least=1),
        start=arguments.integer("start", start, at_least=1, at_most=maximum),
        rtol=arguments.known("rtol", rtol, at_least=0.0, below=1.0),
        draws=arguments.integer("draws", draws, at_least=2),
        trials=arguments.integer("trials", trials, at_least=1),
    )
    makers = {**_makers(algorithms), "distribution": distribution}
    arguments.function("distribution", distribution)
    grid = _grid(over)
    cells = [(name, setting) for name in algorithms for setting in grid]
    rows = []
    with _opened(store) as keeper, _shown(progress, len(cells)) as bar:
        for name, setting in cells:
            algorithm = arguments.function(f"algorithms[{name!r}](...)", makers[name](**setting))
            source = makers["distribution"](**setting)
            arguments.function("distribution(...).sample", getattr(source, "sample", None))
            found, how = _Search(name, setting, algorithm, source, settings, keeper).least()
            reason = None if found.n is not None else found.status
            rows.append(
                {
                    "series": name,
                    **setting,
                    "n": found.n,
                    "low": found.low,
                    "high": found.high,
                    "by": how,
                    "reason": reason,
                }
            )
            bar.done(1)
    return Curve(tuple(rows), tuple(over), settings.alpha, settings.beta, settings.level)


@dataclasses.dataclass(frozen=True)
class _Settings:
    """The numbers of a call, checked."""

    alpha: float
    beta: float
    level: float
    seed: int
    by: str | None
    maximum: int
    start: int
    rtol: float
    draws: int
    trials: int


# ------------------------------------------------------------------------------------------------------------ one search


@dataclasses.dataclass(frozen=True)
class _Search:
    """The search for one series at one setting."""

    name: str
    setting: Mapping[str, Any]
    algorithm: Any
    distribution: Any
    settings: _Settings
    store: Keeper

    def least(self) -> tuple[search.LeastN, str]:
        """(n and its interval, how they were found)."""
        by, given = self._by(), self.settings
        found = search.least_n(
            self._by_law if by == LAW else self._by_trials,
            beta=given.beta,
            start=given.start,
            maximum=given.maximum,
            rtol=given.rtol,
            reach=REACH,
        )
        return found, by

    def _by(self) -> str:
        """LAW or TRIALS; refuses what is neither, before anything is compiled."""
        experiment = self._experiment(self.settings.start)
        if self.settings.by != TRIALS and self._has_law(experiment):
            return LAW
        where = f"series {self.name!r} at {dict(self.setting)}"
        refusal = tracing.refusal(_answer, jax.random.key(0), experiment)
        if refusal is not None:
            raise TypeError(f"{where} must be written with jax.numpy, so that JAX can trace its __call__: {refusal}")
        if not (isinstance(self.algorithm, Algorithm) or tracing.is_pure(_answer, experiment)):
            raise TypeError(
                f"{where} must draw with jax.random, from the key of its __call__ alone: it is no pure function"
            )
        try:
            jax.eval_shape(pac.trial, jax.random.key(0), experiment)
        except Exception as error:  # whatever a stranger's code raises
            answer = jax.eval_shape(_answer, jax.random.key(0), experiment)[0]
            shapes = jax.tree.map(lambda leaf: (leaf.dtype.name, leaf.shape), answer)
            raise TypeError(
                f"{where} must return a hypothesis as distribution.error takes it, got {shapes}: {error}"
            ) from error
        return TRIALS

    def _has_law(self, experiment: pac.Experiment) -> bool:
        """Whether there is a law for this distribution; if a law is required, what stands against it is raised."""
        required = self.settings.by == LAW
        if not any(callable(getattr(self.algorithm, method, None)) for method in ("probability", "population_failure")):
            if required:
                raise TypeError(
                    f"by must not be {LAW!r}: {type(self.algorithm).__name__} (series {self.name!r}) has no probability"
                )
            return False
        try:
            jax.eval_shape(pac.failure, jax.random.key(0), experiment)
        except (AttributeError, NotImplementedError, TypeError, ValueError) as error:
            if required:
                error.add_note(f"Raised for the law of series {self.name!r} at {dict(self.setting)}.")
                raise
            return False
        return True

    def _by_law(self, n: int) -> estimates.Estimate:
        """Exact failure probabilities, a data draw each."""
        draws = self.settings.draws
        laws = resumable.evaluate(
            pac.failure, self._experiment(n), draws=draws, chunk=draws, batch=min(8, draws), **self._record(n, LAW)
        )
        return estimates.mean(laws, level=self.settings.level)

    def _by_trials(self, n: int) -> estimates.Estimate:
        """Trials until it is clear on which side of beta the failure probability lies."""
        return sequential.rate(
            pac.trial,
            self._experiment(n),
            enough=sequential.apart_from(self.settings.beta),
            maximum=self.settings.trials,
            event="failed",
            level=self.settings.level,
            chunk=FIRST_LOOK,
            **self._record(n, TRIALS),
        )

    def _experiment(self, n: int) -> pac.Experiment:
        """One capacity, hence one compiled program, for all n up to twice the first."""
        capacity = max(bucket(n), bucket(2 * self.settings.start))
        learner, distribution = self._as_data
        return pac.Experiment(
            learner=learner, distribution=distribution, n=n, alpha=self.settings.alpha, capacity=capacity
        )

    @functools.cached_property
    def _as_data(self) -> tuple[Any, Any]:
        """Both as pytrees of numbers, as far as they are."""
        both = self.algorithm, self.distribution
        return tuple(one if _is_data(one) else Fixed(inside=_Same(one)) for one in both)  # type: ignore[return-value]

    def _record(self, n: int, by: str) -> dict[str, Any]:
        """Where the result is kept, and what it is drawn from."""
        what = {"algorithm": _described(self.algorithm), "distribution": _described(self.distribution)}
        numbers = {"n": n, "by": by, "alpha": self.settings.alpha, "seed": self.settings.seed}
        return {
            "store": self.store,
            "key": {"series": self.name, "setting": dict(self.setting), **what, **numbers},
            "root": engine.root_key(self.settings.seed),
            "cell": _number(self.setting),
        }


class _Same:
    """An object that is equal to itself alone, whatever it says of itself, and only as long as its type and numbers are what they were."""

    def __init__(self, value: Any) -> None:
        self.value = value
        self._as_found = json.dumps(_described(value), sort_keys=True, default=repr)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and self.value is other.value and self._as_found == other._as_found

    def __hash__(self) -> int:
        return hash((id(self.value), self._as_found))


def _answer(key: Array, experiment: pac.Experiment) -> tuple[Any, Array]:
    """(The hypothesis, its status) of one run."""
    key_coins, sample = pac.draw(key, experiment)
    outcome = pac.as_outcome(experiment.learner(key_coins, sample))
    return outcome.hypothesis, outcome.status


# ----------------------------------------------------------------------------------------------------- what was handed in


def _makers(algorithms: Any) -> dict[str, Callable[..., Any]]:
    """The functions that make algorithms, checked."""
    if not isinstance(algorithms, Mapping) or not algorithms:
        raise TypeError(f"algorithms must be a dict of functions by the name of their series, got {algorithms!r}")
    for name, make in algorithms.items():
        if not isinstance(name, str) or not callable(make):
            raise TypeError(f"algorithms must map names to functions of a setting, got {name!r}: {make!r}")
    return dict(algorithms)


def _grid(over: Any) -> list[dict[str, Any]]:
    """All settings, the last key varying fastest."""
    if not isinstance(over, Mapping) or not over:
        raise TypeError(f'over must be a dict such as {{"bits": [8, 16]}}, got {over!r}')
    for name, values in over.items():
        if name in ("series", *COLUMNS):
            raise ValueError(f"over must not vary {name!r}: a row has it already")
        if isinstance(values, str) or not isinstance(values, Sequence | np.ndarray | range) or not len(values):
            raise TypeError(f"over must list at least one value of {name!r}, got {values!r}")
    columns = [
        [value.item() if isinstance(value, np.generic) else value for value in values] for values in over.values()
    ]
    for value in itertools.chain(*columns):
        if not isinstance(value, int | float | str):
            raise TypeError(f"over must hold numbers and words, got {value!r}")
    return [dict(zip(over, row, strict=True)) for row in itertools.product(*columns)]


def _number(setting: Mapping[str, Any]) -> int:
    """The cell of a setting: a hash, so that it does not depend on which others there are."""
    text = json.dumps(dict(setting), sort_keys=True)
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=4).digest(), "big")


def _is_data(given: Any) -> bool:
    """Whether it is a pytree of numbers and arrays."""
    return all(
        isinstance(leaf, bool | int | float | np.ndarray | np.generic | jax.Array) for leaf in jax.tree.leaves(given)
    )


def _described(given: Any, depth: int = 8) -> Any:
    """Type and numbers, as JSON data: what a stored result must agree with."""
    if given is None or isinstance(given, bool | int | float | str):
        return given
    if isinstance(given, np.ndarray | np.generic | jax.Array):
        return np.asarray(given).tolist()
    if isinstance(given, list | tuple):
        return [_described(part, depth - 1) for part in given] if depth else "..."
    name = getattr(given, "__qualname__", type(given).__qualname__)
    fields = sorted(getattr(given, "__dict__", {}).items()) if depth else []
    return {"type": name, **{field: _described(value, depth - 1) for field, value in fields}}


def _opened(store: str | os.PathLike[str] | Keeper | None) -> Any:
    """A store in a directory, or in memory, or one that is open already and stays so."""
    if store is None or not isinstance(store, str | os.PathLike):
        return contextlib.nullcontext(store or Memory())
    return open_shared(store, {"what": "dpjax.least_n"}, resume=True)


def _shown(progress: bool, total: int) -> Any:
    """A progress bar, or none."""
    return Progress(total, "least n", unit="searches", silent=not progress)
