"""n*: the least n with failure <= beta, by laws averaged over data draws or by counted trials, through the store.

All n of a search run on one cell, so that trial t draws the same random words at every n: neighbouring n share their samples,
except for the last examples, and their estimates err together, which moves n* less than independent errors would.
(`tests/test_sequential.py` shows it.)

A law needs so few draws that their number is fixed beforehand: there is nothing to peek at. Trials stop when it is clear on
which side of beta the rate lies.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from dpjax.data import pac
from dpjax.data.sample import bucket
from dpjax.trials import estimates, search, sequential
from dpjax.trials.progress import Progress
from experiments.records import Row, exact
from experiments.runner import Context
from experiments.settings import Settings

Make = Callable[[int, int], Any]  # (n, capacity) -> experiment
MAXIMUM = 200_000  # examples; beyond that a learner's cell is left out


def curves(
    series: Mapping[str, Sequence[int]],
    find: Callable[[str, int, int, int], search.LeastN],
    *,
    guesses: Mapping[str, int] | None = None,
) -> list[Row]:
    """Rows "least n" of every series over its x; a cell for which no n is found is left out.

    Args:
        series: the x of each series, in order, by its name.
        find: (series, x, number of the cell, start) -> n*.
        guesses: by series, where the search at its first x starts; the others start from the previous n*. If absent, start is 0.
    """
    rows = []
    cells = [(name, x) for name, several in series.items() for x in several]
    with Progress(len(cells), "least n", unit="cells") as progress:
        start = 0
        for cell, (name, x) in enumerate(cells):
            if guesses is not None and x == series[name][0]:
                start = guesses[name]
            found = find(name, x, cell, start)
            progress.done(1)
            if found.n is not None:
                start = start and found.n
                rows.append(Row("least n", name, x, found.n, found.low, found.high or math.inf))
    return rows


def of_learners(
    series: Mapping[str, Sequence[int]],
    make: Callable[[str, int, int, int], pac.Experiment],
    *,
    guesses: Mapping[str, int],
    settings: Settings,
    context: Context,
) -> list[Row]:
    """`curves` of learners over the bits d of their domain, by exact laws over data draws.

    Args:
        series: the d of each series, in order, by its name.
        make: (series, d, n, capacity) -> experiment.
        guesses: see `curves`.
    """

    def find(name: str, bits: int, cell: int, start: int) -> search.LeastN:
        return by_law(
            pac.failure,
            lambda n, capacity: make(name, bits, n, capacity),
            key={"panel": "least n", "learner": name, "bits": bits},
            cell=cell,
            draws=draws_of(name, settings),
            start=start,
            maximum=MAXIMUM,
            minimum=2,
            settings=settings,
            context=context,
        )

    return curves(series, find, guesses=guesses)


def draws_of(name: str, settings: Settings) -> int:
    """The number of data draws over which the law of this learner is averaged."""
    return settings["draws"].get(name, settings["draws"]["other"])


def lower_bounds(ks: Sequence[int], formulas: Mapping[str, Callable[[int], float]]) -> list[Row]:
    """Rows "bound": the number of examples that every learner needs, by the formula's name; values that are not above 0 are left out."""
    found = [exact("bound", name, k, formula(k)) for k in ks for name, formula in formulas.items()]
    return [row for row in found if row.value > 0.0]


def by_law(
    run: Callable[..., Any],
    make: Make,
    *,
    key: Mapping[str, Any],
    cell: int,
    draws: int,
    start: int,
    maximum: int,
    settings: Settings,
    context: Context,
    minimum: int = 1,
    batch: int = 8,
) -> search.LeastN:
    """n* by laws: `run(key, experiment)` -> failure probability given the draw; the interval is Student's t over draws."""

    def failure(experiment: Any, n: int) -> estimates.Estimate:
        at = {"key": {**key, "n": n}, "cell": cell, "draws": draws, "chunk": draws, "batch": min(batch, draws)}
        return estimates.mean(context.evaluate(run, experiment, **at), level=settings["level"])

    return _search(failure, make, start, maximum, settings, minimum)


def by_trials(
    run: Callable[..., Any],
    make: Make,
    *,
    key: Mapping[str, Any],
    cell: int,
    start: int,
    maximum: int,
    settings: Settings,
    context: Context,
) -> search.LeastN:
    """n* by trials: `run(key, experiment)` -> {"failed": ...}; each n takes trials until the confidence sequence excludes beta.

    There are at most settings["trials"] of them at each n; only the n close to n* take them all.
    """

    def failure(experiment: Any, n: int) -> estimates.Estimate:
        return sequential.rate(
            run,
            experiment,
            store=context.store,
            key={**key, "n": n},
            root=context.root,
            cell=cell,
            enough=sequential.apart_from(settings["beta"]),
            maximum=settings["trials"],
            event="failed",
            level=settings["level"],
            chunk=32,
        )

    return _search(failure, make, start, maximum, settings)


def _search(
    failure: Callable[[Any, int], estimates.Estimate],
    make: Make,
    start: int,
    maximum: int,
    settings: Settings,
    minimum: int = 1,
) -> search.LeastN:
    """`search.least_n` with one capacity, hence one compiled program, for all n that the search is likely to visit."""
    base = bucket(2 * start)
    return search.least_n(
        lambda n: failure(make(n, max(bucket(n), base)), n),
        beta=settings["beta"],
        start=start,
        maximum=maximum,
        minimum=minimum,
        rtol=settings["rtol"],
        reach=1.5,
    )
