"""Cells: one algorithm in one setting each, and their failure probabilities at the requested n and alpha, many at a time.

Cells whose distributions are made from the same numbers see the same data. Cells whose algorithms are of one kind and differ only in
numbers share a compiled program; those among them that are evaluated at the same n also share each sample.
"""

import contextlib
import dataclasses
import functools
import hashlib
import inspect
import itertools
import math
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array
from scipy import special

from dpjax.core import arguments, tracing
from dpjax.core.pytree import frozen, static
from dpjax.data import pac
from dpjax.data.algorithm import Algorithm, of_dpjax, ours
from dpjax.data.outcome import Status
from dpjax.data.sample import bucket
from dpjax.trials import contents, devices, engine, estimates
from dpjax.trials.estimates import Estimate
from dpjax.trials.shared import Keeper, Memory, open_shared

LAW, TRIALS = "law", "trials"
BATCH = 8  # samples in a block of a law
SAMPLES, RUNS = 16, 64  # a third-party law is compared with RUNS runs on each of at most SAMPLES samples
STATUSES = 16  # runs whose status is examined where none succeeds
OFF = 1e-4  # by how much a probability of a law may be wrong
ALARM = 2e-5  # probability of refusing a law that is right
TOGETHER = 16  # most cells that share one sample


@frozen
class Fixed:
    """Something that is not a pytree of numbers: it is part of the compiled program, and is recognised by identity."""

    inside: Any = static()

    def __call__(self, key: Array, sample: Any) -> Any:
        return self.inside.value(key, sample)

    def __getattr__(self, name: str) -> Any:
        if name == "inside" or name.startswith("__"):  # not while it is being built or copied
            raise AttributeError(name)
        return getattr(self.inside.value, name)


class _Same:
    """An object that equals only itself, whatever its own `__eq__` says, and only as long as its type and numbers are unchanged."""

    def __init__(self, value: Any) -> None:
        self.value = value
        self._as_found = contents.text(contents.of(value))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and self.value is other.value and self._as_found == other._as_found

    def __hash__(self) -> int:
        return hash((id(self.value), self._as_found))


@dataclasses.dataclass(frozen=True)
class Effort:
    """How a sweep measures: the arguments of these names, validated; see `dpjax.least_n`."""

    level: float
    seed: int
    by: str | None
    draws: int
    trials: int

    def __post_init__(self) -> None:
        arguments.known_fraction("level", self.level)
        arguments.integer("seed", self.seed, at_least=0, at_most=2**32 - 1)
        if self.by is not None:
            arguments.choice("by", self.by, (LAW, TRIALS))
        arguments.integer("draws", self.draws, at_least=2, at_most=engine.TRIALS_A_CELL)
        arguments.integer("trials", self.trials, at_least=1, at_most=engine.TRIALS_A_CELL)


@dataclasses.dataclass(frozen=True, eq=False)
class Cell:
    """One algorithm in one setting.

    Attributes:
      name: name of the series.
      setting: the values from which the algorithm and the distribution were made.
      made_of: the part of the setting from which the distribution was made.
      algorithm, distribution: the objects that were made.
      effort: how the cell is measured.
      first: whether the setting is the first of its series, where the law of a third-party algorithm is compared with runs.
    """

    name: str
    setting: Mapping[str, Any]
    made_of: Mapping[str, Any]
    algorithm: Any
    distribution: Any
    effort: Effort
    first: bool = True

    def by(self, experiment: pac.Experiment) -> str:
        """LAW or TRIALS, as requested, or LAW where there is one; refuses an algorithm that allows neither, before anything is compiled."""
        wanted = self.effort.by
        if wanted != TRIALS and self._has_law(experiment, required=wanted == LAW):
            return LAW
        where = self.where()
        refusal = tracing.refusal(_answer, jax.random.key(0), experiment)
        if refusal is not None:
            raise TypeError(f"{where} must be written with jax.numpy, so that JAX can trace its __call__: {refusal}")
        if not (of_dpjax(self.algorithm) or tracing.is_pure(_answer, [(experiment,)])):
            raise TypeError(
                f"{where} must draw with jax.random, from the key of its __call__ alone: it is no pure function"
            )
        try:
            jax.eval_shape(pac.trial, jax.random.key(0), experiment)
        except Exception as error:  # whatever third-party code raises
            answer = jax.eval_shape(_answer, jax.random.key(0), experiment)[0]
            shapes = jax.tree.map(lambda leaf: (leaf.dtype.name, leaf.shape), answer)
            raise TypeError(
                f"{where} must return a hypothesis as distribution.error takes it, got {shapes}: {error}"
            ) from error
        return TRIALS

    def _has_law(self, experiment: pac.Experiment, *, required: bool) -> bool:
        """Whether there is a law for this distribution; if one is required, the error that prevents it is raised."""
        if not any(callable(getattr(self.algorithm, method, None)) for method in ("probability", "population_failure")):
            if required:
                raise TypeError(
                    f"by must not be {LAW!r}: {type(self.algorithm).__name__} (series {self.name!r}) has no probability"
                )
            return False
        # An error from a third-party law may be a bug in it; from dpjax's own it says that there is no law for such events.
        knows = any(hasattr(self.distribution, method) for method in ("within", "within_excess"))
        no_law: tuple[type[Exception], ...] = (NotImplementedError,)
        if isinstance(self.algorithm, Algorithm) or not knows:
            no_law = (AttributeError, NotImplementedError, TypeError, ValueError)
        try:
            engine.outcome_structure(pac.failures, pac.grid([experiment], TOGETHER))  # traced as it will run: once
        except Exception as error:
            if not required and isinstance(error, no_law):
                return False
            error.add_note(f"Raised for the law of {self.where()}; by={TRIALS!r} counts failures without it.")
            raise
        return True

    def compared(self, experiment: pac.Experiment, law: Sequence[float]) -> list[float]:
        """The shares of some runs that fail (see `pac.runs`), on the samples for which the law was computed.

        Refuses a law that these runs contradict; by Hoeffding's bound (with the divergence of coins, which sees small differences of small
        probabilities) a correct one is refused with probability at most ALARM. An algorithm that JAX cannot trace, or that draws from
        anything but its key, is not refused.
        """
        keys = jax.random.split(jax.random.key(0), 2)
        if tracing.untraced(jax.vmap(pac.trial, in_axes=(0, None)), keys, experiment):  # as they will run
            return []
        root, draws = engine.root_key(self.effort.seed), min(SAMPLES, len(law))
        seen = engine.evaluate(_runs, experiment, root=root, cell=self.number, draws=draws, batch=draws).mean(axis=0)
        stated = float(np.mean(law[:draws]))
        least, most = np.clip([stated - OFF, stated + OFF], 0.0, 1.0)
        above = _divergence(seen[0], most) if seen[0] > most else 0.0
        below = _divergence(seen[1], least) if seen[1] < least else 0.0
        if draws * RUNS * max(above, below) <= math.log(2 / ALARM) or not tracing.is_pure(_answer, [(experiment,)]):
            return seen.tolist()
        found = f"a failure probability of {stated:.3g} on {draws} samples of n = {experiment.n}"
        raise ValueError(
            f"{self.where()} must have a law that its runs follow, got {found}, where {seen[0]:.3g} of {draws * RUNS} runs on them "
            "failed; probability(sample, event) returns (P[event], P[not, or bottom])"
        )

    def refuse_unheard(self, experiment: pac.Experiment) -> None:
        """Refuses an algorithm whose runs all report bad data or parameters, which as mere failures would look like too few examples."""
        root = engine.root_key(self.effort.seed)
        seen, no_number = engine.evaluate(
            _status, experiment, root=root, cell=self.number, draws=STATUSES, batch=STATUSES
        )
        if no_number.all():
            raise ValueError(
                f"{self.where()} must have errors that are numbers, got NaN from its distribution's error in every run"
            )
        for status in (Status.OUTSIDE_DOMAIN, Status.BAD_PARAMETER):
            if seen.min() == status:
                rule = f"must take what its distribution draws{_widths(self)}"
                raise ValueError(f"{self.where()} {rule}, got runs that ended with {status.name}: {status.message}")

    def where(self) -> str:
        """The series and the setting, for a message."""
        return f"series {self.name!r} at {dict(self.setting)}"

    def experiment(self, n: int, alpha: float, capacity: int) -> pac.Experiment:
        """The experiment with n examples, in a sample of `capacity` rows."""
        learner, distribution = self._as_data
        return pac.Experiment(learner=learner, distribution=distribution, n=n, alpha=alpha, capacity=capacity)

    @functools.cached_property
    def _as_data(self) -> tuple[Any, Any]:
        """The algorithm and the distribution, each as it is if it is a pytree of numbers, otherwise as a `Fixed`."""
        both = self.algorithm, self.distribution
        return tuple(one if contents.is_data(one) else Fixed(inside=_Same(one)) for one in both)  # type: ignore[return-value]

    @functools.cached_property
    def number(self) -> int:
        """The engine's cell number: a hash of what the distribution is made from, so that cells that share it see the same data."""
        return int.from_bytes(
            hashlib.blake2b(contents.text(dict(self.made_of)).encode(), digest_size=4).digest(), "big"
        )

    def key(self, experiment: pac.Experiment, by: str) -> dict[str, Any]:
        """The key of a stored result: everything that it must agree with."""
        what = {"algorithm": contents.of(self.algorithm), "distribution": contents.of(self.distribution)}
        numbers = {
            "n": experiment.n,
            "rows": experiment.capacity,  # on which a stranger's draws may depend, and the last digit of a law
            "by": by,
            "alpha": experiment.alpha,
            "seed": self.effort.seed,
            "cell": self.number,
        }
        made_by = {"versions": engine.versions(), **engine.width()}
        return {"series": self.name, "setting": dict(self.setting), **what, **numbers, **made_by}


def _divergence(share: float, p: float) -> float:
    """KL(share || p) of coins: m independent runs of mean probability p have a share further off with probability exp(-m KL) at most."""
    return float(special.rel_entr(share, p) + special.rel_entr(1.0 - share, 1.0 - p))


def _runs(key: Array, experiment: pac.Experiment) -> Array:
    return pac.runs(key, experiment, RUNS)


def _data(key: Array, experiment: pac.Experiment) -> Any:
    """The data of one run."""
    return pac.draw(key, experiment)[1]


def _answer(key: Array, experiment: pac.Experiment) -> tuple[Any, Array]:
    """(The hypothesis, its status) of one run."""
    outcome, _ = pac.one_run(key, experiment)
    return outcome.hypothesis, outcome.status


def _status(key: Array, experiment: pac.Experiment) -> tuple[Array, Array]:
    """(The status of one run, whether an error of what it released is NaN)."""
    outcome, sample = pac.one_run(key, experiment)
    nan = jnp.any(jnp.isnan(pac.errors(outcome, sample, experiment)))
    return outcome.status, (outcome.status == Status.OK) & nan


def refuse_draws_of_their_own(asked: Iterable[tuple[Cell, pac.Experiment]]) -> None:
    """Refuses third-party distributions that are not functions of their key: they would be drawn once and for all, when compiled.

    Distributions made from the same values are checked once.
    """
    once = {cell.number: (cell, experiment) for cell, experiment in asked if not ours(cell.distribution)}
    for cell, experiment in once.values():
        rule = f"distribution of {cell.where()} must draw with"
        refusal = tracing.refusal(_data, jax.random.key(0), experiment)
        if refusal is not None:
            raise TypeError(f"{rule} jax.numpy, so that JAX can trace its sample: {refusal}")
        if not tracing.repeats(_data, experiment):
            raise TypeError(f"{rule} jax.random, from the key of its sample alone: it is no pure function")


def rows_for(n: int, least: int = 255) -> int:
    """Rows of a sample that holds n examples: 255, 1023, 4095, ...

    They grow by factors of four: a law costs at most four times what it must, and few programs are compiled on the way to an n*.

    >>> [rows_for(n) for n in (1, 255, 256, 4095, 4096)]
    [255, 255, 1023, 4095, 16383]
    """
    rows = least
    while rows < bucket(n):
        rows = 4 * rows + 3
    return rows


# ------------------------------------------------------------------------------------------------------------------ laws


def laws(
    asked: Sequence[tuple[Cell, pac.Experiment]], *, store: Keeper, report: Callable[[int], None] | None = None
) -> list[Estimate]:
    """Mean exact failure probability of each cell over data draws; cells that can share samples do.

    Args:
      asked: cells, each with its experiment; all of the same effort.
      store: where results are kept.
      report: called, now and then, with the number of cells done since the last call.
    """
    drawn = _by_draw(asked, store, report or (lambda amount: None))
    return [
        estimates.mean_probability(np.asarray(each), level=cell.effort.level)
        for each, (cell, _) in zip(drawn, asked, strict=True)
    ]


def compare(asked: Sequence[tuple[Cell, pac.Experiment]], *, store: Keeper) -> None:
    """Refuses laws of third-party algorithms that runs contradict, at the first setting of each series; checks once per store."""
    strangers = [
        (cell, experiment)
        for cell, experiment in asked
        if cell.first and not of_dpjax(cell.algorithm) and not hasattr(cell.algorithm, "population_failure")
    ]
    for cell, experiment in strangers:
        law_key = _law_key(cell, experiment)
        marker = {**law_key, "runs": RUNS}
        passed, known = devices.as_the_first([marker in store, law_key in store])
        if not passed:
            # A refused law is not stored: once it is corrected, no old values are found in its place.
            (law,) = _by_draw([(cell, experiment)], store if known else Memory(), lambda amount: None)
            for key, values in ((marker, cell.compared(experiment, law)), (law_key, law)):
                store.get_or_compute(key, functools.partial(list, values))


def _by_draw(
    asked: Sequence[tuple[Cell, pac.Experiment]], store: Keeper, report: Callable[[int], None]
) -> list[list[float]]:
    """The exact failure probability of each cell on every data draw; see `laws`."""
    keys = [_law_key(cell, experiment) for cell, experiment in asked]
    known = devices.as_the_first([key in store for key in keys])
    report(sum(known))
    computed: dict[int, list[float]] = {}

    def kept(i: int) -> list[float]:
        return store.get_or_compute(keys[i], functools.partial(computed.__getitem__, i))

    for group in _groups([i for i, is_known in enumerate(known) if not is_known], asked):
        cell, experiments = asked[group[0]][0], [asked[i][1] for i in group]
        failures = engine.evaluate(
            pac.failures,
            pac.grid(experiments, TOGETHER),
            root=engine.root_key(cell.effort.seed),
            cell=cell.number,
            draws=cell.effort.draws,
            batch=min(BATCH, cell.effort.draws),
        )
        table = failures.T[: len(group)]
        for i in np.flatnonzero(((table < -OFF) | (table > 1 + OFF)).any(axis=1)).tolist():
            rule = "must have a law whose probabilities are from 0 to 1"
            raise ValueError(f"{asked[group[i]][0].where()} {rule}, got P[not, or bottom] = {table[i].tolist()}")
        for i in np.flatnonzero(np.isnan(table).any(axis=1)).tolist():
            wrong = asked[group[i]][0]
            raise ValueError(
                f"{wrong.where()} must have a law on what its distribution draws, got NaN: data outside the algorithm's domain"
                f"{_widths(wrong)}, or a parameter out of range"
            )
        computed |= dict(zip(group, table.tolist(), strict=True))
        for i in group:
            kept(i)  # before the next group: a kill loses one group
        report(len(group))
    return [kept(i) for i in range(len(asked))]


def _widths(cell: Cell) -> str:
    """The numbers of bits of the algorithm's and the distribution's points, for a message; empty unless both state them."""
    both = [getattr(one, "bits", None) for one in (cell.algorithm, cell.distribution)]
    return "" if None in both else f" ({both[0]} bits, those of the distribution {both[1]})"


def _law_key(cell: Cell, experiment: pac.Experiment) -> dict[str, Any]:
    """The key under which the failure probabilities of a cell are kept."""
    return {**cell.key(experiment, LAW), "draws": cell.effort.draws}


def _groups(wanted: Iterable[int], asked: Sequence[tuple[Cell, pac.Experiment]]) -> list[list[int]]:
    """The wanted cells in groups that can share samples, each of at most TOGETHER."""
    groups: dict[Any, list[int]] = {}
    for i in wanted:
        cell, experiment = asked[i]
        leaves, structure = jax.tree.flatten(dataclasses.replace(experiment, distribution=None))
        # NumPy is given the dtype of a JAX array rather than the array, about which JAX would warn.
        shapes = tuple((np.shape(leaf), np.result_type(getattr(leaf, "dtype", leaf))) for leaf in leaves)
        data = _as_bytes(experiment.distribution)
        groups.setdefault((structure, shapes, data, cell.number, experiment.n), []).append(i)
    return [group[i : i + TOGETHER] for group in groups.values() for i in range(0, len(group), TOGETHER)]


def _as_bytes(tree: Any) -> Any:
    """The structure and the bytes of a pytree: equal for equal pytrees."""
    leaves, structure = jax.tree.flatten(tree)
    return structure, tuple(np.asarray(leaf).tobytes() for leaf in leaves)


# ---------------------------------------------------------------------------------------------------------------- trials


def trials(cell: Cell, experiment: pac.Experiment, *, store: Keeper) -> dict[str, Any]:
    """The arguments with which `sequential.rate` and `resumable.count` run the trials of a cell, and keep them in the store."""
    return {
        "run": pac.trial,
        "params": experiment,
        "store": store,
        "key": cell.key(experiment, TRIALS),
        "root": engine.root_key(cell.effort.seed),
        "cell": cell.number,
    }


# ----------------------------------------------------------------------------------------------------- what was handed in


def cells(algorithms: Any, distribution: Any, over: Any, effort: Effort, taken: Sequence[str]) -> list[Cell]:
    """A cell for each series and setting, in the order given.

    Args:
      algorithms, distribution, over: as for `dpjax.least_n`.
      effort: how they are measured.
      taken: names that no setting may have, besides "series".

    Raises:
      TypeError, ValueError: an argument is not of these forms.
    """
    makers, grid = _makers(algorithms), _grid(over, ("series", *taken))
    if not callable(distribution):
        rule = "must be a function that makes one of the settings it takes by name, such as lambda: ..."
        raise TypeError(f"distribution {rule}, got {distribution!r}")
    made = []
    for name, (number, setting) in itertools.product(makers, enumerate(grid)):
        settings = ", ".join(setting)
        _takes(
            f"algorithms[{name!r}] must be a function of the settings, lambda {settings}: ...", makers[name], **setting
        )
        algorithm = arguments.function(f"algorithms[{name!r}](...)", makers[name](**setting))
        made_of = _taken(distribution, setting)
        _takes(
            f"distribution must be a function of some of the settings, lambda {settings}: ...", distribution, **made_of
        )
        source = distribution(**made_of)
        sample = arguments.function("distribution(...).sample", getattr(source, "sample", None))
        _takes("distribution(...).sample must take (key, capacity, n)", sample, None, None, None)
        made.append(Cell(name, setting, made_of, algorithm, source, effort, first=number == 0))
    return made


def _takes(rule: str, function: Callable[..., Any], *given: Any, **named: Any) -> None:
    """Refuses a function that cannot be called with these arguments."""
    try:
        signature = inspect.signature(function, follow_wrapped=False)
    except (TypeError, ValueError):  # some builtins
        return
    try:
        signature.bind(*given, **named)
    except TypeError as error:
        raise TypeError(f"{rule}, got {function!r}: {error}") from error


def _makers(algorithms: Any) -> dict[str, Callable[..., Any]]:
    """The functions that make algorithms, checked."""
    if not isinstance(algorithms, Mapping) or not algorithms:
        raise TypeError(f"algorithms must be a dict of functions by the name of their series, got {algorithms!r}")
    for name, make in algorithms.items():
        if not isinstance(name, str) or not callable(make) or isinstance(make, Algorithm):
            raise TypeError(
                f"algorithms must map names to functions of a setting, such as lambda bits: ..., got {name!r}: {make!r}"
            )
    return dict(algorithms)


def _grid(over: Any, taken: Sequence[str]) -> list[dict[str, Any]]:
    """All settings, the last key varying fastest."""
    if not isinstance(over, Mapping) or not over:
        raise TypeError(f'over must be a dict of one setting at least, such as {{"bits": [8, 16]}}, got {over!r}')
    for name, values in over.items():
        if not isinstance(name, str):
            raise TypeError(f"over must have names of settings as keys, got {name!r}")
        if name in taken:
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


def _taken(make: Callable[..., Any], setting: Mapping[str, Any]) -> dict[str, Any]:
    """Those values of a setting that a function takes by name; all of them if it does not say which it takes."""
    try:
        parameters = inspect.signature(make).parameters
    except (TypeError, ValueError):  # some builtins
        return dict(setting)
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values()):
        return dict(setting)
    return {name: value for name, value in setting.items() if name in parameters}


def row(cell: Cell, **more: Any) -> dict[str, Any]:
    """A row of a table about this cell."""
    return {"series": cell.name, **cell.setting, **more}


def opened(store: str | os.PathLike[str] | Keeper | None, what: str) -> Any:
    """A store in a directory, or in memory if None, or one that is already open and stays open; `what` names the sweep."""
    keeper = Memory() if store is None else store  # an empty store counts too, though its length is 0
    if hasattr(keeper, "get_or_compute"):
        return contextlib.nullcontext(keeper)
    if not isinstance(store, str | os.PathLike):
        raise TypeError(f"store must be a directory, or an open store, got {store!r} of type {type(store).__name__}")
    return open_shared(store, {"what": what}, resume=True)
