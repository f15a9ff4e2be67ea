"""`dpjax.least_n`: how many examples each of several algorithms needs, at each of several settings.

Failure probabilities come from an algorithm's exact law where it has one, averaged over data drawn from the distribution, and otherwise
from sequential trials. Anything with `__call__(key, sample)` serves as an algorithm, anything that draws samples and computes errors as a
distribution.
"""

import dataclasses
import functools
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from dpjax.core import arguments
from dpjax.data import pac
from dpjax.data.algorithm import Algorithm
from dpjax.trials import cells, search, sequential
from dpjax.trials.estimates import Estimate
from dpjax.trials.progress import Progress
from dpjax.trials.shared import Keeper
from dpjax.trials.table import Table

COLUMNS = ("n", "low", "high", "by", "reason")
FEWEST, FURTHEST = 1023, 4095  # bounds on the examples of a dpjax algorithm for which there is room from the start
FIRST_LOOK = 32  # trials before the first decision on which side of beta the rate lies
REACH = 1.5  # factor from n up to which the ends of its interval are searched for


@dataclasses.dataclass(frozen=True, repr=False)
class Curve(Table):
    """The result of `least_n`, which prints as a table.

    Its rows (`to_rows`, `to_pandas`) are dicts, one for each series and setting, in the order given. Their keys: `series`; the names in the
    setting; `n`, the least n found (None if there is none up to the maximum); `low` and `high`, its interval (None where it has no end);
    `by`, "law" or "trials"; `reason`, why there is no n, and otherwise None.

    Attributes:
      alpha, beta, level: as given to `least_n`.
    """

    alpha: float
    beta: float
    level: float

    def plot(self, ax: Any = None) -> Any:
        """Draws n against the first setting that varies, one line per series (and values of the others), and returns the axes."""
        from dpjax.plotting import curves

        return curves.least_n(self, ax)

    def __repr__(self) -> str:
        title = f"least n with P[error > {self.alpha:g}, or nothing released] <= {self.beta:g}"
        return self.text(title, ("n", "low", "high", "by"))


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
    start: int | None = None,
    maximum: int = 2**20,
    rtol: float = 0.02,
    draws: int = 64,
    trials: int = 2**14,
    store: str | os.PathLike[str] | Keeper | None = None,
    progress: bool = False,
) -> Curve:
    """The least n with P[population error > alpha, or nothing released] <= beta, for each series and setting.

    Assumes that failure does not increase with n, and searches by doubling and halving (`trials.search`). All series see the same
    data, and so do all settings that make the same distribution (all epsilons, if it takes none): draws depend only on the seed and on
    the values from which the distribution is made, so further series or settings change nothing. Samples of different n are drawn from
    the same keys. Cells that differ only in numbers share a compiled program, and their laws share samples. What an algorithm reads from
    globals is part of that program: whoever changes a global must call `jax.clear_caches()`, or pass its value to the algorithm instead.
    An algorithm of your own shares a program between settings only if it is a pytree (`dpjax.core.pytree.frozen`); otherwise each setting
    is one more program, which stays in memory until then.

    Args:
      algorithms: for each series, by name, a function that makes an algorithm from a setting: `make(**setting)`. The algorithm is
        called with (key, sample) and returns an `Outcome` or a hypothesis. If it has `probability(sample, event)`, which returns
        (P[event], P[not, or bottom]), the law of `distribution.within(alpha)` takes the place of trials; at the first setting of a series,
        the law of an algorithm that is not dpjax's is compared with a few runs, at the first n and at the one found.
      distribution: a function that makes the distribution from those values of a setting that it takes by name (`lambda bits: ...` takes
        the bits). A distribution has `sample(key, capacity, n)` and `error(hypothesis)` (or `errors`, for k hypotheses), and
        `within(alpha)` if laws are to be used; see `dpjax.concepts`. If it has `excess` (`excesses`) and `within_excess(alpha)`, as in
        `concepts.agnostic`, these are used instead.
      over: the values of each setting, such as {"bits": [8, 16]}; of several settings, all combinations.
      alpha: largest population error (excess error, where the distribution defines one) that counts as success, in [0, 1].
      beta: largest failure probability allowed, in (0, 1).
      level: confidence of the intervals.
      seed: seed of all draws.
      by: "law" or "trials", for all series; by default the law where there is one.
      start: first n tried; default 64, or `maximum` if that is less. maximum: largest n tried.
      rtol: relative width of the last bracket of the search, in [0, 1); 0 gives the exact integer.
      draws: number of data draws for a law. Its interval is Student's t over them, which is asymptotic: take at least 10 / beta. For an
        algorithm that always fails on some samples and never on others, a 95 % interval from 64 draws covers n* with probability 0.94 at
        beta = 0.1, but 0.86 at 0.05 and 0.46 at 0.01, where n* is then above it. If the failure varies little between samples, 64 suffice.
      trials: largest number of trials at one n; fewer once it is clear (by a confidence sequence) on which side of beta the rate lies.
      store: directory where results are kept, so that the same call resumes where a killed one stopped; or a store that is open. A stored
        result is identified by the series, the setting, the types and numbers of the objects made, and the versions of the packages that
        compute, but not by code: whoever changes the code of a learner must use another directory.
      progress: whether to show progress on standard error.

    Returns:
      `Curve`: `to_rows()`, `to_pandas()`, `plot()`.

    Raises:
      TypeError, ValueError: an argument out of range; an algorithm or a distribution that JAX cannot trace, or that draws from anything but
        its key; an algorithm whose `probability` is contradicted by some of its runs, none of whose runs accepts the data, or that holds
        something that cannot be copied (a generator, an open file), so that it could not be told apart from another.

    >>> from dpjax.concepts import thresholds as concept
    >>> from dpjax.learners import thresholds
    >>> least_n(
    ...     {"exponential": lambda bits: thresholds.exponential(bits=bits, epsilon=1.0)},
    ...     distribution=lambda bits: concept.log_uniform(bits=bits),
    ...     over={"bits": [8]}, alpha=0.2, beta=0.2)
    least n with P[error > 0.2, or nothing released] <= 0.2
         series  bits   n  low  high   by
    exponential     8  37   36    38  law
    """
    alpha = arguments.known("alpha", alpha, at_least=0.0, at_most=1.0)
    beta = arguments.known_fraction("beta", beta)
    effort = cells.Effort(level=level, seed=seed, by=by, draws=draws, trials=trials)
    progress = arguments.flag("progress", progress)
    maximum = arguments.size("maximum", maximum)
    start = min(64, maximum) if start is None else arguments.integer("start", start, at_least=1, at_most=maximum)
    rtol = arguments.known("rtol", rtol, at_least=0.0, below=1.0)
    grid = cells.cells(algorithms, distribution, over, effort, COLUMNS)
    searches = [_Search(cell, alpha, start, _room(cell.algorithm, alpha, beta, start)) for cell in grid]
    cells.refuse_draws_of_their_own((one.cell, one.at(start)) for one in searches)
    questions = [search.steps(beta=beta, start=start, maximum=maximum, rtol=rtol, reach=REACH) for _ in searches]
    with (
        cells.opened(store, "dpjax.least_n") as keeper,
        Progress(len(grid), "least n", unit="searches", silent=not progress) as bar,
    ):

        def rate(cell: cells.Cell, experiment: pac.Experiment) -> Estimate:
            return sequential.rate(
                **cells.trials(cell, experiment, store=keeper),
                enough=sequential.apart_from(beta),
                maximum=trials,
                event="failed",
                level=level,
                chunk=FIRST_LOOK,
            )

        by_law = [(one.cell, one.at(start)) for one in searches if one.by == cells.LAW]
        cells.compare(by_law, store=keeper)
        found = _together(searches, questions, functools.partial(cells.laws, store=keeper), rate, bar)
        _compare_at(searches, found, keeper, kept=store is not None)
        for one, least in zip(searches, found, strict=True):
            if least.n is None and one.by == cells.TRIALS:
                one.cell.refuse_unheard(one.at(least.evaluations[-1][0]))
    rows = []
    for one, least in zip(searches, found, strict=True):
        reason = None if least.n is not None else least.status
        rows.append(cells.row(one.cell, n=least.n, low=least.low, high=least.high, by=one.by, reason=reason))
    return Curve(tuple(rows), tuple(over), alpha, beta, level)


def _compare_at(searches: Sequence["_Search"], found: Sequence[Any], keeper: Any, *, kept: bool) -> None:
    """Compares laws once more, at each n* found, where failures are common enough to be seen in few runs."""
    near = [
        (one.cell, one.at(least.n))
        for one, least in zip(searches, found, strict=True)
        if one.by == cells.LAW and least.n is not None
    ]
    try:
        cells.compare(near, store=keeper)
    except ValueError as error:
        if kept:
            error.add_note("The store holds numbers of this law: once it is corrected, give another store.")
        raise


@dataclasses.dataclass(frozen=True)
class _Search:
    """The search for one cell: with which program its failure probability at an n is found, and whether by law or by trials."""

    cell: cells.Cell
    alpha: float
    start: int
    room: int

    @functools.cached_property
    def by(self) -> str:
        """LAW or TRIALS."""
        return self.cell.by(self.at(self.start))

    def shown(self, n: int) -> str:
        """The series, the setting and n, for a progress bar."""
        return ", ".join(
            [self.cell.name, *(f"{name} = {value}" for name, value in self.cell.setting.items()), f"n = {n}"]
        )

    def at(self, n: int) -> pac.Experiment:
        """The experiment with n examples: one program serves all n that fit the initial room, and few programs those above."""
        return self.cell.experiment(n, self.alpha, cells.rows_for(n, self.room))


def _room(algorithm: Any, alpha: float, beta: float, start: int) -> int:
    """Rows in which n* probably has room: half of what a theorem requires, if there is one, within bounds; at least twice the first n.

    A program costs seconds to compile, and rows that stay empty cost milliseconds: without a theorem, there is ample room as well.
    """
    if not isinstance(algorithm, Algorithm):
        return cells.rows_for(2 * start)
    try:
        expected = algorithm.sample_size(alpha=alpha, beta=beta) // 2
    except (NotImplementedError, ValueError):
        expected = FURTHEST
    return cells.rows_for(max(2 * start, min(max(expected, FEWEST), FURTHEST)))


def _together(searches: Sequence[_Search], questions: Sequence[Any], laws: Any, rate: Any, bar: Progress) -> list[Any]:
    """The result of each search; all advance together, one question per round, so that cells at the same n share samples.

    Args:
      searches, questions: the cells, and their `search.steps`.
      laws: estimates several (cell, experiment) pairs by law. rate: estimates one by trials.
      bar: advanced as each search ends.
    """
    found: dict[int, search.LeastN] = {}
    waiting = {i: next(steps) for i, steps in enumerate(questions)}
    while waiting:
        first, *others = (searches[i].shown(n) for i, n in waiting.items())
        bar.note(f"{first}, and {len(others)} more" if others else first)
        asked = {i: (searches[i].cell, searches[i].at(n)) for i, n in waiting.items()}
        by_law = [i for i in asked if searches[i].by == cells.LAW]
        answers = dict(zip(by_law, laws([asked[i] for i in by_law]), strict=True))
        answers |= {i: rate(*asked[i]) for i in asked if i not in answers}
        for i, answer in answers.items():
            try:
                waiting[i] = questions[i].send(answer)
            except StopIteration as end:
                found[i] = end.value
                del waiting[i]
                bar.done(1)
    return [found[i] for i in range(len(searches))]
