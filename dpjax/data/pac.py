"""One PAC experiment: draw a sample from a known distribution, learn, and compare with the target.

Each of k hypotheses is compared with its own target. An experiment is run as a trial or computed as an exact law, for one learner or for
many on the same sample. The functions take (key, what to run), so `dpjax.trials` can run any of them; all draw the same sample from the
same key.

    >>> import jax
    >>> from dpjax.concepts import thresholds as concept
    >>> from dpjax.data import pac
    >>> from dpjax.learners import thresholds
    >>> experiment = pac.Experiment(
    ...     learner=thresholds.exponential(bits=24, epsilon=1.0), distribution=concept.log_uniform(bits=24),
    ...     n=400, alpha=0.1, capacity=511)
    >>> outcome = pac.trial(jax.random.key(0), experiment)
    >>> bool(outcome["failed"]), float(pac.failure(jax.random.key(0), experiment)) < 0.01
    (False, True)
"""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from dpjax.core import arguments
from dpjax.core.pytree import frozen, static
from dpjax.data.multi_sample import MultiSample
from dpjax.data.outcome import Outcome, Status
from dpjax.data.sample import bucket
from dpjax.domains import scaled

ROUNDED = 1e-5  # how far rounding may move errors: this, and this times alpha


@frozen
class Experiment:
    """An experiment: everything but the capacity is data, so one program serves every epsilon, and every n up to the capacity.

    Attributes:
      learner: for instance one of `dpjax.learners.thresholds`, or a k-learner of `dpjax.multi`.
      distribution: one of `dpjax.concepts`; it draws samples and knows its target, or its k targets.
      n: number of examples, at most `capacity`.
      alpha: the largest excess of the population error over that of the best concept of the class that counts as success (for each of k
        hypotheses). If a concept gave the labels, the best error is 0; with other labels (`concepts.agnostic`) this is agnostic learning
        (MULTI Definition 5).
      capacity: rows of the padded sample, 2^b - 1 (see `dpjax.data.sample.bucket`).

    Raises:
      TypeError, ValueError: a capacity that is not a length of arrays, an n outside 1, ..., capacity, or an alpha outside [0, 1] (n and
        alpha are checked only if they are known numbers).
    """

    learner: Any
    distribution: Any
    n: Int[Array, ""] | int
    alpha: Float[Array, ""] | float
    capacity: int = static()

    def __post_init__(self) -> None:
        arguments.size("capacity", self.capacity)
        if _is_number(self.n):
            arguments.integer("n", np.asarray(self.n)[()], at_least=1, at_most=self.capacity)
        if _is_number(self.alpha):
            arguments.real("alpha", self.alpha, at_least=0.0, at_most=1.0)


def _is_number(value: Any) -> bool:
    """Whether the value is a single, known number: a pytree is also rebuilt with batches, tracers and placeholders."""
    return (
        isinstance(value, int | float | np.generic | np.ndarray | jax.Array)
        and np.ndim(value) == 0
        and not arguments.is_traced(value)
    )


def trial(key: Array, experiment: Experiment) -> dict[str, Bool[Array, ""]]:
    """One run: whether it failed (some error > alpha, or nothing released: MULTI Definitions 4, 5), and whether it returned bottom."""
    outcome, sample = one_run(key, experiment)
    good = jnp.all(errors(outcome, sample, experiment) <= experiment.alpha)
    return {"failed": ~((outcome.status == Status.OK) & good), "bottom": outcome.status == Status.BOTTOM}


def one_run(key: Array, experiment: Experiment) -> tuple[Outcome, Any]:
    """(The outcome of one run, the sample that it was given)."""
    key_coins, sample = draw(key, experiment)
    return as_outcome(experiment.learner(key_coins, sample)), sample


def errors(outcome: Outcome, sample: Any, experiment: Experiment) -> Float[Array, "..."]:
    """The `excess` error of the hypothesis, or of each of k hypotheses."""
    many = isinstance(sample, MultiSample)
    found = excess(experiment.distribution, many=many)(outcome.hypothesis)
    if jnp.ndim(found) != many:
        rule = (
            "one number for each of k hypotheses" if many else "one number (`errors` and a MultiSample are for several)"
        )
        raise TypeError(f"the error of a hypothesis must be {rule}, got shape {jnp.shape(found)}")
    return found


def failure(key: Array, experiment: Experiment) -> Float[Array, ""]:
    """P[failure | sample], exactly, for the sample that `trial` draws from this key: averaged over keys, the failure probability.

    It is computed from the learner's law, or by its `population_failure(key, sample, distribution, alpha)` if the learner has a law only
    given some of its coins: those that `trial` draws.
    """
    return _failure(*draw(key, experiment), experiment)


@frozen
class Grid:
    """Experiments that differ only in alpha and in numbers of the learner, so that all of them can use one sample.

    Attributes:
      experiments: one `Experiment` in which alpha and the learner's numbers have a leading axis of length m.
      count: how many of the m are to be computed; the others are padding.
    """

    experiments: Experiment
    count: Int[Array, ""] | int

    def __getitem__(self, i: Int[Array, ""] | int) -> Experiment:
        given = self.experiments
        learner, alpha = jax.tree.map(lambda leaf: leaf[i], (given.learner, given.alpha))
        return dataclasses.replace(given, learner=learner, alpha=alpha)


def grid(experiments: Sequence[Experiment], size: int) -> Grid:
    """The `Grid` of these experiments, with room for `size`: grids of one size, with learners of one kind, share a program.

    Args:
      experiments: at least one; distribution, n and capacity are taken from the first.
      size: at least as many as there are experiments.
    """
    padded = [*experiments, *[experiments[0]] * (size - len(experiments))]
    learner, alpha = jax.tree.map(
        lambda *leaves: np.stack(leaves), *((one.learner, np.asarray(one.alpha, float)) for one in padded)
    )
    whole = dataclasses.replace(experiments[0], learner=learner, alpha=alpha)
    return Grid(experiments=whole, count=len(experiments))


def failures(key: Array, grid: Grid) -> Float[Array, "m"]:
    """`failure` of each experiment of a grid; zeros after the first `count`.

    The sample is drawn once. The experiments are computed one after another, in a loop. So the law of one is the same to the last bit,
    whichever others there are, and one program serves any number of them.
    """
    drawn = draw(key, grid[0])

    def step(i: Int[Array, ""], found: Array) -> Array:
        return found.at[i].set(_failure(*drawn, grid[i]))

    nothing = jnp.zeros_like(jnp.asarray(grid.experiments.alpha, float))
    return jax.lax.fori_loop(0, jnp.asarray(grid.count, jnp.int32), step, nothing)


def _failure(key_coins: Array, sample: Any, experiment: Experiment) -> Float[Array, ""]:
    """P[failure] on a sample that has been drawn."""
    learner, distribution, alpha = experiment.learner, experiment.distribution, experiment.alpha
    if hasattr(learner, "population_failure"):
        return learner.population_failure(key_coins, sample, distribution, alpha)
    within = getattr(distribution, "within_excess", None) or distribution.within
    law = jnp.asarray(learner.probability(sample, within(jnp.asarray(alpha, float))), float)
    if law.shape != (2,):
        rule = "return (P[event], P[not, or bottom]), of shape (2,)"
        raise ValueError(f"probability must {rule}, got shape {law.shape} from {type(learner).__name__}")
    return law[1]


def runs(key: Array, experiment: Experiment, count: int) -> Float[Array, "2"]:
    """On the sample that `failure` draws: the share of `count` runs that certainly fail, and the share that fail or nearly fail.

    A law judges by an event, a run by an error: where the error is alpha, up to rounding, they may differ.
    """
    key_coins, sample = draw(key, experiment)

    def failed(run: Array) -> Array:
        outcome = as_outcome(experiment.learner(jax.random.fold_in(key_coins, run), sample))
        found, alpha = jnp.max(errors(outcome, sample, experiment)), jnp.asarray(experiment.alpha, float)
        ends = jnp.stack([alpha * (1 + ROUNDED) + ROUNDED, alpha * (1 - ROUNDED) - ROUNDED])
        return ~((outcome.status == Status.OK) & (found <= ends))

    return jnp.mean(jax.lax.map(failed, jnp.arange(count, dtype=jnp.int32)).astype(float), axis=0)


def excess(distribution: Any, *, many: bool) -> Callable[[Any], Array]:
    """The function from one hypothesis, or k, to the error above that of the best concept, or to the error if no best one is known."""
    names = ("excesses", "errors") if many else ("excess", "error")
    return getattr(distribution, names[0], None) or getattr(distribution, names[1])


def draw(key: Array, experiment: Experiment) -> tuple[Array, Any]:
    """The key for the learner's coins, and the sample."""
    key_sample, key_coins = jax.random.split(key)
    law, capacity = experiment.distribution, experiment.capacity
    if getattr(experiment.learner, "takes_scaled", False) and scales(law, capacity):
        return key_coins, law.draw_scaled(key_sample, capacity, jnp.asarray(experiment.n, jnp.int32))
    return key_coins, law.sample(key_sample, capacity, experiment.n)


def scales(distribution: Any, capacity: int) -> bool:
    """Whether samples are drawn with points of few digits (`domains.scaled`): if points are wide and the capacity is a bucket."""
    return hasattr(distribution, "draw_scaled") and scaled.pays(distribution.limbs) and bucket(capacity) == capacity


def as_outcome(result: Any) -> Outcome:
    """The result of any learner as an `Outcome`: it is one already, or a hypothesis that is always released."""
    if isinstance(result, Outcome):
        return result
    return Outcome(hypothesis=result, status=jnp.int32(Status.OK), info={})
