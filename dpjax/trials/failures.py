"""`dpjax.failures`: how often each of several algorithms fails, at each of several settings, numbers of examples and targets."""

import dataclasses
import functools
import itertools
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from dpjax.core import arguments
from dpjax.data.sample import bucket
from dpjax.trials import cells, estimates, resumable
from dpjax.trials.progress import Progress
from dpjax.trials.shared import Keeper
from dpjax.trials.table import Table

COLUMNS = ("n", "alpha", "failure", "low", "high", "by")


@dataclasses.dataclass(frozen=True, repr=False)
class Failures(Table):
    """The result of `failures`, which prints as a table.

    Its rows (`to_rows`, `to_pandas`) are dicts, one for each series, setting, n and alpha, in the order given. Their keys: `series`; the
    names in the setting; `n`; `alpha`; `failure`, the probability; `low` and `high`, its interval; `by`, "law" or "trials".

    Attributes:
      level: confidence of the intervals, as given.
    """

    level: float

    def plot(self, ax: Any = None) -> Any:
        """Draws the failure probability against n, one line per series, setting and alpha, and returns the axes."""
        from dpjax.plotting import curves

        return curves.failures(self, ax)

    def __repr__(self) -> str:
        return self.text("P[error > alpha, or nothing released]", COLUMNS)


def failures(
    algorithms: Mapping[str, Callable[..., Any]],
    *,
    distribution: Callable[..., Any],
    over: Mapping[str, Sequence[Any]],
    n: int | Sequence[int],
    alpha: float | Sequence[float],
    level: float = 0.95,
    seed: int = 0,
    by: str | None = None,
    draws: int = 64,
    trials: int = 2**12,
    store: str | os.PathLike[str] | Keeper | None = None,
    progress: bool = False,
) -> Failures:
    """P[population error > alpha, or nothing released], for each series, setting, n and alpha.

    All draw their data from the same keys, exactly as in `least_n`. Each series runs the whole grid of numbers (epsilons, deltas, alphas;
    all n) as one compiled program, unless a setting changes shapes (bits, rounds); all cells with the same n and the same distribution use
    the same samples, drawn once.

    Args:
      algorithms, distribution, over: as for `least_n`.
      n: numbers of examples. One program with as many rows as the largest needs serves all: request far smaller ones in their own call.
      alpha: population errors (excess errors, where the distribution defines them) up to which a hypothesis is good, in [0, 1].
      level: confidence of each interval: Student's t over data draws for a law (asymptotic), Clopper and Pearson's for trials.
      seed, by, draws, store, progress: as for `least_n`.
      trials: number of trials at each n, where there is no law.

    Returns:
      `Failures`: `to_rows()`, `to_pandas()`, `plot()`.

    Raises:
      TypeError, ValueError: an argument out of range; an algorithm or a distribution that JAX cannot trace, or that draws from anything but
        its key; an algorithm whose `probability` is contradicted by some of its runs, or none of whose runs accepts the data.

    >>> from dpjax.concepts import thresholds as concept
    >>> from dpjax.learners import thresholds
    >>> failures(
    ...     {"exponential": lambda epsilon: thresholds.exponential(bits=8, epsilon=epsilon)},
    ...     distribution=lambda: concept.log_uniform(bits=8),
    ...     over={"epsilon": [0.5, 1.0]}, n=[20, 40], alpha=0.2)
    P[error > alpha, or nothing released]
         series  epsilon   n  alpha  failure     low    high   by
    exponential      0.5  20    0.2   0.8312  0.8257  0.8367  law
    exponential      0.5  40    0.2   0.5631  0.5435  0.5826  law
    exponential      1.0  20    0.2   0.5843  0.5619  0.6068  law
    exponential      1.0  40    0.2    0.143  0.1192  0.1667  law
    """
    effort = cells.Effort(level=level, seed=seed, by=by, draws=draws, trials=trials)
    progress = arguments.flag("progress", progress)
    sizes = [arguments.size("n", one) for one in _listed("n", n)]
    targets = [arguments.known("alpha", one, at_least=0.0, at_most=1.0) for one in _listed("alpha", alpha)]
    grid = cells.cells(algorithms, distribution, over, effort, COLUMNS)
    rows_of = functools.partial(cells.Cell.experiment, capacity=bucket(max(sizes)))
    cells.refuse_draws_of_their_own((cell, rows_of(cell, sizes[0], targets[0])) for cell in grid)
    ways = {cell: cell.by(rows_of(cell, sizes[0], targets[0])) for cell in grid}
    asked = [(cell, rows_of(cell, size, target)) for cell, size, target in itertools.product(grid, sizes, targets)]
    with (
        cells.opened(store, "dpjax.failures") as keeper,
        Progress(len(asked), "failures", unit="cells", silent=not progress) as bar,
    ):
        by_law = [one for one in asked if ways[one[0]] == cells.LAW]
        cells.compare(
            [(cell, rows_of(cell, sizes[0], targets[0])) for cell in grid if ways[cell] == cells.LAW], store=keeper
        )
        laws = iter(cells.laws(by_law, store=keeper, report=bar.done))
        rows, succeeded = [], set[cells.Cell]()
        for cell, experiment in asked:
            if ways[cell] == cells.LAW:
                estimate = next(laws)
            else:
                events = resumable.count(**cells.trials(cell, experiment, store=keeper), trials=trials)["failed"]
                if events < trials:
                    succeeded.add(cell)
                estimate = estimates.clopper_pearson(events, trials, level=level)
                bar.done(1)
            numbers = {"n": experiment.n, "alpha": experiment.alpha, "failure": estimate.value}
            rows.append(cells.row(cell, **numbers, low=estimate.low, high=estimate.high, by=ways[cell]))
        for cell in grid:
            if ways[cell] == cells.TRIALS and cell not in succeeded:
                cell.refuse_unheard(rows_of(cell, max(sizes), targets[0]))
    return Failures(tuple(rows), tuple(over), level)


def _listed(name: str, value: Any) -> list[Any]:
    """One number, or several, as a list."""
    values = [value] if np.ndim(value) == 0 else arguments.several(name, value)
    if not values:
        raise ValueError(f"{name} must hold at least one number, got {value!r}")
    return values
