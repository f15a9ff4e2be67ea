"""How an algorithm spends its total (epsilon, delta): parametrisations in which every point keeps it.

A point is a pytree of free real numbers. `Budgeted.spend` makes of it the numbers of a budget whose composition is the total, whatever
the point is: shares are softmaxes, and for optimal composition softmaxes under a scale that solves for the total (`accountant.calibrated`).
`Budgeted(point)` is then the algorithm with that budget: it can be traced, and its law differentiated. What the optimiser moves can
so never spend more.

What is released is made by `rounded`: the same in float64, each number rounded down to one that float32 holds too, and all of them
lowered by as little as the existing host accountant needs to confirm the total. The guarantee is then `algorithm.guarantee()`, of the
numbers in use.

| algorithm | what a point says | composition |
|---|---|---|
| RecConcave (learner, optimiser, solver) | epsilon of each of 3N - 2 mechanisms, delta of each A_dist; the learner's alpha | basic |
| TreeLog, public slices | epsilon of walk, select, count, base; delta of walk, select; m1, m2 | its own: basic or optimal |
| amplified (learner, optimiser) | the failure that its margins are made for | its own |
| PointLearner, proved | epsilon and delta of the counts and of A_dist; the threshold of both | basic |

The mechanisms of `amplified` share one epsilon and one delta in its privacy proof, so that a total leaves no split open. alpha, m1, m2
and the margins cost no privacy: they are chosen along with what does.
"""

import dataclasses
import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from dpjax.accounting import ADD_OR_REMOVE_ONE, REPLACE_ONE, Guarantee
from dpjax.core import arguments
from dpjax.learners.thresholds.amplified import ThresholdAmplified
from dpjax.learners.thresholds.rec_concave import ThresholdRecConcave
from dpjax.mechanisms import partition_selection
from dpjax.multi.points import PointLearner
from dpjax.optimizers.interior_point import planning
from dpjax.optimizers.interior_point.rec_concave import DepthRecConcave
from dpjax.optimizers.interior_point.tree_log import TreeLog
from dpjax.optimizers.quasi_concave import Amplified, QuasiConcaveRecConcave, Split
from dpjax.relaxations import accountant

# A budget is lowered by the first of these that the host accountant confirms: 2^-50 is rounding in float64, 2^-16 would be a mistake.
_LOWERED = (0.0, *(2.0**-k for k in range(50, 15, -2)))
_LEAST_SHARE = 1e-4  # softmaxes are kept this far from 0: every mechanism needs some, and thresholds stay countable


def shares(logits: Float[Array, "parts"], total: Any, times: Sequence[int]) -> Float[Array, "parts"]:
    """What each of several groups of mechanisms may spend, so that times of each add up to the total: total * softmax / times.

    Args:
      logits: one for each group; any real numbers.
      total: > 0.
      times: how many mechanisms each group has.

    >>> shares(jnp.zeros(2), 1.0, times=(1, 5)).tolist()
    [0.5, 0.10000000149011612]
    """
    logits = jnp.asarray(logits, float)
    if logits.shape != (len(times),):
        raise ValueError(f"logits must have one entry for each of {len(times)} groups, got shape {logits.shape}")
    parts = jax.nn.softmax(logits)
    parts = (parts + _LEAST_SHARE) / (1 + len(times) * _LEAST_SHARE)
    return jnp.asarray(total, float) * parts / jnp.asarray(times, logits.dtype)


@dataclasses.dataclass(frozen=True, eq=False)
class Budgeted:
    """An algorithm with its budget left open: every point is the algorithm with a budget that keeps the total.

    Attributes:
      start: the point of the budget that the algorithm came with.
      total: what is kept.
      spend: point -> a pytree of floats, none of which may be larger for the same privacy; can be traced.
      build: (what is spent, point) -> the algorithm; on the host it has whole numbers, traced it may be a mixture of roundings.
      relax: for algorithms with whole numbers, point -> (weights, the algorithms with each rounding, stacked); else None.
    """

    start: Any
    total: Guarantee
    spend: Callable[[Any], Any]
    build: Callable[[Any, Any], Any]
    relax: Callable[[Any], tuple[Float[Array, "roundings"], Any]] | None = None

    def __call__(self, point: Any) -> Any:
        """The algorithm at a point, traced or not: nothing is rounded, and nothing but the point is to be trusted; see `rounded`."""
        return self.build(self.spend(point), point)

    def failure(self, point: Any, failure: Callable[[Any], Array]) -> Array:
        """`failure` of the algorithm at a point; of whole numbers, its mean over rounding each at random to a neighbour.

        A mean over roundings is the law of the algorithm that rounds by a coin, and multilinear between the whole numbers: its derivative
        is a difference of laws, so no number is held for what it is not.
        """
        if self.relax is None:
            return failure(self(point))
        weights, algorithms = self.relax(point)
        each = jax.lax.map(failure, algorithms)
        return jnp.sum(weights * each)

    def rounded(self, point: Any) -> Any:
        """The algorithm at a point, for release: `guarantee()` of it, computed on the host from its numbers, covers the total.

        Raises:
          TypeError: a traced point.
          ValueError: no rounding of what is spent keeps the total (the parametrisation is wrong).
        """
        for leaf in jax.tree.leaves(point):
            if arguments.is_traced(leaf):
                raise TypeError(f"point must hold known numbers, as the host rounds them, got {leaf!r}")
        with jax.enable_x64():
            point = jax.tree.map(lambda leaf: jnp.asarray(np.asarray(leaf, np.float64)), point)
            spent = jax.tree.map(np.asarray, self.spend(point))
        point = jax.tree.map(np.asarray, point)
        for lowered in _LOWERED:
            algorithm = self.build(jax.tree.map(functools.partial(_down, lowered=lowered), spent), point)
            if algorithm.guarantee().covers(self.total.epsilon, self.total.delta):
                return algorithm
        raise ValueError(f"spend must keep {self.total} at every point, got {algorithm.guarantee()} at {point}")


def _down(value: np.ndarray, lowered: float) -> np.ndarray:
    """The value lowered by a relative amount, then to a float32, so that compiled programs compute with what the host adds up."""
    target = np.asarray(value, np.float64) * (1 - lowered)
    with np.errstate(over="ignore", under="ignore"):
        single = target.astype(np.float32)
    below = np.where(single > target, np.nextafter(single, np.float32(-np.inf)), single).astype(np.float64)
    return np.where(below >= np.finfo(np.float32).tiny, below, target)


def of(algorithm: Any) -> Budgeted:
    """The budget of an algorithm, opened; see the table in the module.

    Args:
      algorithm: one that its factory made of known numbers; its total is what it may spend at every point.

    Raises:
      TypeError: an algorithm without a split, or with traced numbers.
      ValueError: constants that keep no total ("printed"), noisy slices, or a guarantee that is none.

    >>> from dpjax.learners import thresholds
    >>> learner = thresholds.rec_concave(bits=64, epsilon=1.0, delta=1e-6, alpha=0.2, depth=2)
    >>> budgeted = of(learner)
    >>> point = {**budgeted.start, "epsilon": jnp.array([2.0, 0.0, 1.0, 1.0])}
    >>> tuned = budgeted.rounded(point)
    >>> tuned.split.choices.round(3), tuned.guarantee().covers(1.0, 1e-6)
    (array([0.534, 0.072]), True)
    """
    for kind, opened in _OPENED.items():
        if isinstance(algorithm, kind):
            if any(arguments.is_traced(leaf) for leaf in jax.tree.leaves(algorithm)):
                raise TypeError(f"algorithm must have known numbers, of which the total is taken, got {algorithm!r}")
            return opened(algorithm)
    names = ", ".join(kind.__name__ for kind in _OPENED)
    raise TypeError(f"algorithm must be one with a split ({names}), got {type(algorithm).__name__}")


# ------------------------------------------------------------------------------------------------------- RecConcave


def _rec_concave(algorithm: Any) -> Budgeted:
    """Shares of all 3N - 2 mechanisms; and the learner's alpha."""
    if getattr(algorithm, "calibration", "proved") != "proved":
        raise ValueError(f"algorithm.calibration must be 'proved', as 'printed' keeps no total, got {algorithm!r}")
    levels, inner = algorithm.levels, 2 * (algorithm.levels - 1)
    total = dataclasses.replace(algorithm, split=None).guarantee()
    epsilon, delta = float(algorithm.epsilon), float(algorithm.delta)
    given = algorithm.split or Split.equal(epsilon, delta, levels)
    start: dict[str, Any] = {"epsilon": _logits(np.concatenate([given.choices, np.ravel(given.tests)]))}
    if inner:
        start["delta"] = _logits(np.ravel(given.deltas))
    if isinstance(algorithm, ThresholdRecConcave):
        start["alpha"] = _logit(float(algorithm.alpha))

    def spend(point: Any) -> Split:
        epsilons = shares(point["epsilon"], epsilon, (1,) * (levels + inner))
        deltas = jnp.minimum(shares(point["delta"], delta, (1,) * inner), 0.5) if inner else jnp.zeros((0,))
        pairs = (levels - 1, 2)
        return Split(choices=epsilons[:levels], tests=epsilons[levels:].reshape(pairs), deltas=deltas.reshape(pairs))

    def build(split: Any, point: Any) -> Any:
        free = {"alpha": _odds(point["alpha"])} if "alpha" in point else {}
        return dataclasses.replace(algorithm, split=split, **free)

    return Budgeted(start, total, spend, build)


# -------------------------------------------------------------------------------------------------------- amplified


def _amplified(algorithm: Any) -> Budgeted:
    """The failure that each margin is made for: it costs no privacy, and all else is fixed by the total."""
    optimizer = algorithm.optimizer if isinstance(algorithm, ThresholdAmplified) else algorithm
    budget = optimizer.budget

    def build(_: Any, point: Any) -> Any:
        margins = dataclasses.replace(budget, beta=_odds(point["beta"]))
        moved = dataclasses.replace(optimizer, budget=margins)
        return moved if optimizer is algorithm else dataclasses.replace(algorithm, optimizer=moved)

    return Budgeted({"beta": _logit(float(budget.beta))}, algorithm.guarantee(), lambda point: (), build)


# ------------------------------------------------------------------------------------------------------ PointLearner


def _point_learner(learner: PointLearner) -> Budgeted:
    """Shares of the noisy counts and of A_dist, and up to which count nothing is released."""
    if learner.calibration != "proved":
        raise ValueError(
            f"learner.calibration must be 'proved', as 'printed' keeps no total, got {learner.calibration!r}"
        )
    counts: Any = learner.counts
    test = learner.choice()
    total = Guarantee(float(learner.epsilon), float(learner.delta), REPLACE_ONE)
    start = {
        "epsilon": _logits([float(counts.epsilon), float(test.epsilon)]),
        "delta": _logits([float(counts.delta), float(test.delta)]),
        "low": np.log(np.float64(max(float(counts.low), 0.5))),
    }

    def spend(point: Any) -> dict[str, Any]:
        epsilons = shares(point["epsilon"], total.epsilon, (1, 1))
        deltas = jnp.minimum(shares(point["delta"], total.delta, (1, 1)), 0.5)
        names = ("counts_epsilon", "test_epsilon", "counts_delta", "test_delta")
        return dict(zip(names, (*epsilons, *deltas), strict=True))

    def build(spent: Any, point: Any) -> PointLearner:
        low = np.exp(point["low"]) if isinstance(point["low"], np.ndarray | np.generic) else jnp.exp(point["low"])
        noisy = dataclasses.replace(counts, epsilon=spent["counts_epsilon"], delta=spent["counts_delta"], low=low)
        tested = dataclasses.replace(test, epsilon=spent["test_epsilon"], delta=spent["test_delta"])
        return dataclasses.replace(learner, counts=noisy, heavy=noisy.high, test=tested)

    return Budgeted(start, total, spend, build)


# ---------------------------------------------------------------------------------------------------------- TreeLog


def _tree_log(solver: TreeLog) -> Budgeted:
    """Shares of walk, select, count and base, and the sizes of both slices; the walk's threshold t1 follows from its budget.

    Whole numbers are relaxed to reals and rounded at random when traced. t1 is then the start's multiple of g - 1, g being what partition
    selection saturates at; on the host it is the least one whose walk costs no more than its share, and m2 is never below K.
    """
    if solver.parameters.noisy or solver.accountant not in ("basic", "optimal"):
        raise ValueError(f"solver.accountant must be 'basic' or 'optimal' (public slices), got {solver.accountant!r}")
    optimal = solver.accountant == "optimal"
    held = planning.spent(solver.parameters)
    if held is None:
        raise ValueError("solver must keep a guarantee, got parameters outside of what is proved")
    parameters, depth = solver.parameters, solver.parameters.depth
    total = Guarantee(float(solver.epsilon), float(solver.delta), ADD_OR_REMOVE_ONE)
    times = (depth, depth, depth, 1)  # walk, select (one mechanism of twice its epsilon), count, base
    share = min(float(parameters.walk_delta) / held.walk_delta, 1.0)
    smooth = _saturation(held.walk_epsilon, float(parameters.walk_delta), np) - 1
    ratio = int(parameters.never_below) / float(smooth)
    moved = math.exp(held.select_epsilon) * held.select_delta
    each = np.array([held.walk_epsilon, 2 * held.select_epsilon, held.count_epsilon, held.base_epsilon])
    own = depth * np.array([held.walk_delta, moved])
    if optimal:
        own = np.append(own, max(total.delta - own.sum(), 1e-6 * total.delta))
    spare = int(parameters.deep) - planning.least_deep(int(parameters.never_below), int(parameters.at.saturation))
    start = {
        "epsilon": _logits(each * np.array(times)),
        "delta": _logits(own),
        "left": np.log(np.float64(parameters.left)),
        "deep": np.log(np.float64(max(spare, 0.5))),
    }

    def spend(point: Any) -> dict[str, Any]:
        deltas = shares(point["delta"], total.delta, (depth, depth) + ((1,) if optimal else ()))
        if optimal:
            ratios = shares(point["epsilon"], 1.0, times)
            paid = jnp.concatenate([deltas[:2], jnp.zeros((2,), deltas.dtype)])
            epsilons = accountant.calibrated(ratios, paid, total.epsilon, total.delta, times)
        else:
            epsilons = shares(point["epsilon"], total.epsilon, times)
        walk, select, count, base = epsilons[0], epsilons[1] / 2, epsilons[2], epsilons[3]
        selected = jnp.minimum(deltas[1] * jnp.exp(-select), 0.5)
        return {
            "walk_epsilon": walk,
            "walk_delta": deltas[0],
            "select_epsilon": select,
            "select_delta": selected,
            "count_epsilon": count,
            "base_epsilon": base,
        }

    def with_sizes(spent: dict[str, Any], stop_delta: Any, sizes: Sequence[Any]) -> TreeLog:
        left, deep, never_below = sizes
        numbers = {**spent, "walk_delta": stop_delta, "left": left, "deep": deep, "never_below": never_below}
        at = partition_selection.anchors(spent["walk_epsilon"], stop_delta)
        return dataclasses.replace(solver, parameters=dataclasses.replace(parameters, **numbers, at=at))

    def build(spent: dict[str, Any], point: Any) -> TreeLog:
        """On the host: the cheapest threshold that the walk's share pays for, and slices that bear it."""
        epsilon, delta = (float(spent[name]) for name in ("walk_epsilon", "walk_delta"))
        walked = planning.walk_of(epsilon, delta, share)
        least = 2 * walked.t2 - 2
        left = max(1, round(math.exp(point["left"])))
        deep = least + max(0, round(math.exp(point["deep"])))
        return with_sizes(spent, np.float64(walked.stop_delta), [np.int32(n) for n in (left, deep, walked.t1)])

    def relax(point: Any) -> tuple[Array, TreeLog]:
        spent = spend(point)
        stop_delta = share * spent["walk_delta"]
        g = _saturation(spent["walk_epsilon"], stop_delta, jnp)
        t1 = jnp.maximum(ratio * (g - 1), 1.0)
        deep = 2 * (t1 + g - 2) + jnp.exp(point["deep"])
        sizes = jnp.stack([jnp.maximum(jnp.exp(point["left"]), 1.0), deep, t1])
        below = jnp.floor(jax.lax.stop_gradient(sizes))
        above = sizes - below
        corners = np.stack(np.meshgrid(*[[0, 1]] * 3, indexing="ij"), axis=-1).reshape(-1, 3)
        weights = jnp.prod(jnp.where(corners == 1, above[None], 1 - above[None]), axis=1)
        whole = below.astype(jnp.int32)[None] + jnp.asarray(corners, jnp.int32)
        algorithms = jax.vmap(lambda row: with_sizes(spent, stop_delta, list(row)))(whole)
        return weights, algorithms

    return Budgeted(start, total, spend, build, relax)


def _saturation(epsilon: Any, delta: Any, xp: Any) -> Any:
    """The real number z at which partition selection saturates, g = ceil(z), as a smooth function of its budget."""
    return 1 + 2 / epsilon * xp.log1p(xp.tanh(epsilon / 2) * (1 - delta) / delta)


# ---------------------------------------------------------------------------------------------------------- helpers


def _logits(parts: Any) -> np.ndarray:
    """Whose softmax these parts are, up to their sum."""
    logs = np.log(np.asarray(parts, np.float64))
    return logs - logs.mean()


def _logit(p: float) -> np.float64:
    return np.float64(math.log(p) - math.log1p(-p))


def _odds(x: Any) -> Any:
    """1 / (1 + e^-x), on the host in float64."""
    if isinstance(x, np.ndarray | np.generic | float):
        return np.float64(1 / (1 + np.exp(-np.float64(x))))
    return jax.nn.sigmoid(x)


_OPENED: dict[type, Callable[[Any], Budgeted]] = {
    ThresholdRecConcave: _rec_concave,
    QuasiConcaveRecConcave: _rec_concave,
    DepthRecConcave: _rec_concave,
    ThresholdAmplified: _amplified,
    Amplified: _amplified,
    PointLearner: _point_learner,
    TreeLog: _tree_log,
}
