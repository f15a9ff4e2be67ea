"""Budgets tuned by the law: gradient descent on the failure of an algorithm that keeps its total privacy at every point."""

import dataclasses
import functools
import inspect
import math
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float

from dpjax.accounting import Guarantee
from dpjax.core import arguments
from dpjax.relaxations.budgets import Budgeted
from dpjax.trials import estimates, search

Failure = Callable[[Any, Any], Array]


@dataclasses.dataclass(frozen=True)
class Tuned:
    """What `tune` found.

    Attributes:
      algorithm: the algorithm with the tuned budget, rounded on the host.
      guarantee: its guarantee by the host's accountant: the total or less.
      point: where the optimiser ended, or the best point on its way if the data were fixed.
      losses: ln of the failure before each step, and after the last.
      points: the points at which the losses were computed, stacked.
    """

    algorithm: Any
    guarantee: Guarantee
    point: Any
    losses: np.ndarray
    points: Any

    def at(self, step: int) -> Any:
        """The point before a step."""
        return jax.tree.map(lambda leaf: leaf[step], self.points)


def tune(
    budgeted: Budgeted,
    data: Any,
    *,
    error: float | None = None,
    failure: Failure | None = None,
    steps: int = 200,
    learning_rate: float = 0.05,
    optimizer: optax.GradientTransformation | None = None,
    worst: bool = False,
    start: Any = None,
    key: Array | None = None,
    batch: int = 8,
) -> Tuned:
    """The split of the budget with which an algorithm fails least often: descent on ln of the failure probability, which is its exact law.

    All steps run in one compiled program (`lax.scan`); a second call with the same `budgeted`, functions and shapes compiles nothing. No
    coin of the algorithm is ever tossed: the gradient has no variance but that of the data. The tuning data are taken to be public: the
    privacy of the tuned algorithm is that of its numbers only if these were not chosen by private data.

    Args:
      budgeted: from `budgets.of`, or one of your own.
      data: a list of datasets of one shape (worst-case ones, or drawn beforehand), or the same stacked along a first axis; or a function
        key -> one dataset, with which every step draws a fresh `batch`.
      error: failure is an error above this on the data, `algorithm.failure_probability(data, error=error)`.
      failure: or any function (algorithm, one dataset) -> a probability that JAX can differentiate, for instance by the law of a population
        error: `lambda algorithm, sample: algorithm.probability(sample, distribution.within(0.1))[1]`. Give exactly one of the two.
      steps: number of steps, >= 1.
      learning_rate: learning rate of Adam, > 0.
      optimizer: any optax optimiser in place of Adam, including those that use the value (ln of the failure) or search along a line.
      worst: minimise the largest failure of the datasets instead of their mean.
      start: a point to start from; that of the algorithm's own budget by default.
      key, batch: for data that are drawn.

    Returns:
      `Tuned`.

    **Formal guarantees**: those of `Tuned.guarantee`, for public tuning data.

    Raises:
      TypeError, ValueError: an argument out of range; a law that is NaN, or has no finite gradient, along the way.

    >>> from dpjax import Sample
    >>> from dpjax.domains import wide
    >>> from dpjax.learners import thresholds
    >>> from dpjax.relaxations import budgets
    >>> learner = thresholds.rec_concave(bits=6, epsilon=1.0, delta=1e-3, alpha=0.5, depth=2)
    >>> sample = Sample(x=wide.from_ints(range(10, 50), 6), y=[1] * 20 + [0] * 20)
    >>> tuned = tune(budgets.of(learner), [sample], error=0.25, steps=20)
    >>> bool(tuned.losses[-1] < tuned.losses[0]), tuned.guarantee.covers(1.0, 1e-3)
    (True, True)
    """
    arguments.instance("budgeted", budgeted, Budgeted)
    steps, batch = arguments.size("steps", steps), arguments.size("batch", batch)
    rate = arguments.known("learning_rate", learning_rate, above=0.0, below=math.inf)
    judged = _judged(error, failure)
    drawn = callable(data)
    if drawn and key is None:
        raise ValueError("key must be given for data that are drawn")
    if optimizer is not None:
        arguments.instance("optimizer", optimizer, optax.GradientTransformation)
    if start is not None and _form(budgeted.start) != _form(start):
        raise TypeError(f"start must be a point like {budgeted.start!r}, got {start!r}")
    if not all(np.all(np.isfinite(arguments.array("start", leaf))) for leaf in jax.tree.leaves(start)):
        raise ValueError(f"start must hold finite numbers, got {start!r}")
    point = jax.tree.map(lambda leaf: jnp.asarray(leaf, float), budgeted.start if start is None else start)
    given = jax.random.split(arguments.key(key), (steps + 1, batch)) if drawn else stacked(data)
    program = _program(budgeted, judged, optimizer, steps, arguments.flag("worst", worst), data if drawn else None)
    losses, slopes, points = jax.tree.map(np.asarray, program(point, given, rate))
    if not (np.all(np.isfinite(losses)) and np.all(np.isfinite(slopes[:-1]))):
        first = int(np.argmin(np.isfinite(losses) & np.isfinite(slopes)))
        raise ValueError(
            f"failure must have a finite logarithm and gradient along the way, got ln failure = {losses[first]} with a gradient "
            f"of norm {slopes[first]} at step {first}"
        )
    best = steps if drawn else int(np.argmin(losses))
    chosen = jax.tree.map(lambda leaf: leaf[best], points)
    algorithm = budgeted.rounded(chosen)
    return Tuned(algorithm, algorithm.guarantee(), chosen, losses.astype(np.float64), points)


def stacked(data: Any) -> Any:
    """A list of datasets of one shape as one pytree with a first axis; data that are already stacked are returned as they are.

    Raises:
      ValueError: an empty list, datasets of several shapes, or one dataset alone.
    """
    if not isinstance(data, list | tuple):
        lengths = {np.shape(leaf)[:1] for leaf in jax.tree.leaves(data)}
        if len(lengths) != 1 or () in lengths:
            rule = "a list of datasets, or datasets stacked along a first axis"
            raise ValueError(f"data must be {rule}, got {type(data).__name__}: a single one is [data]")
        return data
    if not data or any(_form(one) != _form(data[0]) for one in data):
        raise ValueError(
            f"data must hold at least one dataset, all of one kind and shape, got {[type(one).__name__ for one in data]}"
        )
    return jax.tree.map(lambda *leaves: np.stack([np.asarray(leaf) for leaf in leaves]), *data)


def _form(data: Any) -> tuple[Any, list[tuple[int, ...]]]:
    """The structure and the shapes of one dataset."""
    return jax.tree.structure(data), [np.shape(leaf) for leaf in jax.tree.leaves(data)]


def _judged(error: float | None, failure: Failure | None) -> Failure:
    """The function to minimise."""
    if (error is None) == (failure is None):
        raise ValueError(f"exactly one of error and failure must be given, got error={error!r} and failure={failure!r}")
    return (
        _above(arguments.known("error", error, at_least=0.0))
        if failure is None
        else arguments.function("failure", failure)
    )


@functools.lru_cache(maxsize=64)
def _above(error: float) -> Failure:
    """(algorithm, dataset) -> P[error on the data above this]: the same object for the same error, so that programs are found again."""
    return lambda algorithm, data: algorithm.failure_probability(data, error=error)


@functools.lru_cache(maxsize=32)
def _program(
    budgeted: Budgeted,
    failure: Failure,
    optimizer: optax.GradientTransformation | None,
    steps: int,
    worst: bool,
    draw: Callable[[Array], Any] | None,
) -> Callable[..., Any]:
    """(point, data or keys, learning rate) -> ln failure, norm of its gradient, and the point, for each step and after the last."""

    def loss(point: Any, data: Any) -> Array:
        each = jax.vmap(lambda one: budgeted.failure(point, lambda algorithm: _number(failure, algorithm, one)))(data)
        whole = jnp.max(each) if worst else jnp.mean(each)
        return jnp.log(jnp.maximum(whole, jnp.finfo(whole.dtype).tiny))

    @jax.jit
    def run(point: Any, data: Any, rate: Array) -> Any:
        # Some optimisers use the value, too, or the whole function along a line: the others never see these arguments.
        descent = optax.with_extra_args_support(optax.adam(rate) if optimizer is None else optimizer)

        def step(state: Any, keys: Any) -> Any:
            point, memory = state
            here = data if draw is None else jax.vmap(draw)(keys)
            value, slope = jax.value_and_grad(loss)(point, here)
            # optax counts its steps in integers and multiplies floats by them.
            with jax.numpy_dtype_promotion("standard"):
                moved, memory = descent.update(
                    slope, memory, point, value=value, grad=slope, value_fn=lambda other: loss(other, here)
                )
            return (optax.apply_updates(point, moved), memory), (value, _norm(slope), point)

        keys = None if draw is None else data
        return jax.lax.scan(step, (point, descent.init(point)), keys, length=steps + 1)[1]

    return run


def _norm(slope: Any) -> Array:
    """The Euclidean norm of all entries of a pytree."""
    return jnp.sqrt(sum((jnp.sum(leaf**2) for leaf in jax.tree.leaves(slope)), start=jnp.zeros(())))


# --------------------------------------------------------------------------------------------- how many examples


def failures(algorithm: Any, data: Any, failure: Failure) -> Float[Array, "datasets"]:
    """`failure` of an algorithm on each of several datasets, as `tune` takes them; one compiled program for all budgets."""
    return _each(algorithm, stacked(data), failure)


@jax.jit(static_argnums=2)
def _each(algorithm: Any, data: Any, failure: Failure) -> Array:
    return jax.vmap(lambda one: _number(failure, algorithm, one))(data)


def _number(failure: Failure, algorithm: Any, data: Any) -> Array:
    """The failure on one dataset, checked to be one number: a law of (P[event], P[not]) would have the mean 1/2 whatever the budget."""
    found = failure(algorithm, data)
    if jnp.shape(found) != ():
        raise TypeError(f"failure must return one probability, got shape {jnp.shape(found)}: take one entry of a law")
    return found


def best(
    algorithms: Sequence[Any], data: Any, *, error: float | None = None, failure: Failure | None = None
) -> tuple[Any, Float[np.ndarray, "algorithms"]]:
    """The algorithm that fails least on average over the data, and the mean failure of each: for plans that are listed.

    Set cover's are such plans, `budgets.set_cover_plans`: integers have no derivative.

    Args:
      algorithms: at least one; those of one structure share a compiled program.
      data, error, failure: as for `tune`; where no law can be listed, `failure` may simulate with a key of its own.

    Raises:
      TypeError, ValueError: an argument out of range; a failure that is NaN.
    """
    algorithms = arguments.several("algorithms", algorithms)
    if not algorithms:
        raise ValueError("algorithms must be at least one, got none")
    judged, held = _judged(error, failure), stacked(data)
    found = np.array([float(np.mean(np.asarray(failures(one, held, judged), np.float64))) for one in algorithms])
    if np.any(np.isnan(found)):
        raise ValueError(f"failure must be a number for every algorithm, got {found}")
    return algorithms[int(np.argmin(found))], found


def least_n(
    algorithm: Any,
    sampler: Callable[[int], Any],
    *,
    beta: float,
    error: float | None = None,
    failure: Failure | None = None,
    start: int = 64,
    maximum: int = 2**16,
    rtol: float = 0.0,
) -> search.LeastN:
    """The least n at which the mean failure over datasets of n examples is at most beta, by exact laws; see `trials.search.least_n`.

    Args:
      algorithm: one with an exact law.
      sampler: n -> several datasets of n examples, stacked along a first axis; in buckets of one capacity, so that one program serves
        every n.
      beta: in (0, 1).
      error, failure: as for `tune`.
      start, maximum, rtol: parameters of the search.

    Raises:
      TypeError, ValueError: an argument out of range.
    """
    judged = _judged(error, failure)
    arguments.function("sampler", sampler)

    def estimate(n: int) -> Any:
        return estimates.known(float(np.mean(np.asarray(failures(algorithm, sampler(n), judged), np.float64))))

    return search.least_n(estimate, beta=beta, start=start, maximum=maximum, rtol=rtol)


def tuned_least_n(
    budgeted: Budgeted,
    sampler: Callable[[int], Any],
    *,
    beta: float,
    rounds: int = 3,
    start: int = 64,
    maximum: int = 2**16,
    rtol: float = 0.0,
    error: float | None = None,
    failure: Failure | None = None,
    **given: Any,
) -> tuple[search.LeastN, search.LeastN, Tuned]:
    """(least n with the original budget, least n with the tuned one, what was tuned): tunes at the least n, then searches anew, and so on.

    Each round tunes at the least n that the previous one found, from the point where it ended; the rounds stop when one gains nothing more.

    Args:
      budgeted, error, failure, given: as for `tune`.
      sampler, beta, start, maximum, rtol: as for `least_n`.
      rounds: largest number of rounds of tuning.

    Raises:
      TypeError, ValueError: an argument out of range; no n up to the maximum suffices before anything is tuned.
    """
    # The first search is long: what only the tuning needs is checked before it.
    arguments.instance("budgeted", budgeted, Budgeted)
    rounds = arguments.integer("rounds", rounds, at_least=1)
    judged = _judged(error, failure)
    given = {"failure": judged, **given}
    inspect.signature(tune).bind(budgeted, None, **given)  # TypeError for names that it does not know
    common: dict[str, Any] = {"beta": beta, "maximum": maximum, "rtol": rtol, "failure": judged}
    before = found = least_n(budgeted.rounded(budgeted.start), sampler, start=start, **common)
    if before.n is None:
        raise ValueError(f"maximum must be enough for the budget as it is, got {maximum} at beta = {beta}")
    n = before.n
    best: Tuned | None = None
    for _ in range(rounds):
        tuned = tune(budgeted, sampler(n), start=None if best is None else best.point, **given)
        now = least_n(tuned.algorithm, sampler, start=n, **common)
        if now.n is None or (best is not None and now.n >= n):
            break
        n, best, found = now.n, tuned, now
    if best is None:
        raise ValueError(f"maximum must be enough for the tuned budget, got {maximum} at beta = {beta}")
    return before, found, best
