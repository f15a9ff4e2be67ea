"""An audit of outputs of any shape: a classifier is trained to choose the event, and fresh runs bound epsilon.

`dpjax.verify.audit` searches for the event among outcomes it has seen (integers) or intervals of one real number. Where a release is a
vector, a violation may show in no coordinate, but in a direction, in a difference of two coordinates, or in a square. Here a small network
learns the logarithm of the likelihood ratio of the two datasets; by Neyman and Pearson its level sets are the best events there are. Its
score is one real number per run, and `verify.audit.audit_samples` does the rest: the runs on which the network was trained choose the level
as well, and the other half, so far unused, bounds both probabilities by Clopper and Pearson. The bound is valid whatever was learned.
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Bool, Float

from dpjax.core import arguments
from dpjax.verify.audit import Audit, audit_samples, runs

HIDDEN = 32
BATCH = 512  # runs per step
_FLOOR = 1e-6  # least variance, relative to the largest one: below it, float32 has no digits
_LARGEST = 1e15  # outputs are clipped to this size


class Classifier(NamedTuple):
    """A score of outputs: whitening, then a linear function plus a network with one hidden layer.

    Attributes:
      centre: centre of the features. whiten: matrix that makes features uncorrelated, of variance 1 within a dataset.
      linear: weights of the whitened features. inner, bias, outer: weights of the network.
    """

    centre: Float[Array, "d"]
    whiten: Float[Array, "d d"]
    linear: Float[Array, "d"]
    inner: Float[Array, "d h"]
    bias: Float[Array, "h"]
    outer: Float[Array, "h"]


def features(outcomes: Any, training: Any = slice(None)) -> np.ndarray:
    """Outcomes as rows of float64: all leaves, flattened, side by side; a number that is not finite becomes 0 with a flag beside it.

    Args:
      outcomes: a pytree of arrays with one leading axis over the runs.
      training: the runs that decide which numbers get a flag: fresh runs must not decide what is examined.

    Raises:
      TypeError: leaves that are not numbers. ValueError: no leaves, or leaves of different lengths.

    >>> features({"a": np.array([[1.0, 2.0]]), "b": np.array([np.inf])}).tolist()
    [[1.0, 2.0, 0.0, 1.0]]
    """
    leaves = [arguments.array("outcomes", leaf) for leaf in jax.tree.leaves(outcomes)]
    if not leaves or any(leaf.ndim == 0 for leaf in leaves) or len({len(leaf) for leaf in leaves}) != 1:
        shapes = [leaf.shape for leaf in leaves]
        raise ValueError(f"outcomes must be arrays with one leading axis over all runs, got shapes {shapes}")
    columns = []
    for leaf in leaves:
        flat = leaf.reshape(len(leaf), -1).astype(np.float64)
        columns.append(np.clip(np.nan_to_num(flat, nan=0.0, posinf=0.0, neginf=0.0), -_LARGEST, _LARGEST))
        if leaf.dtype.kind == "f":
            odd = np.select([np.isnan(flat), np.isposinf(flat), np.isneginf(flat)], [3.0, 1.0, -1.0], 0.0)
            columns.append(odd[:, odd[training].any(axis=0)])
    rows = np.concatenate(columns, axis=1)
    if rows.shape[1] == 0:
        raise ValueError(f"outcomes must hold at least one number a run, got shapes {[leaf.shape for leaf in leaves]}")
    return rows


def train(
    key: Array,
    x: Float[Array, "runs d"],
    second: Bool[Array, "runs"],
    *,
    steps: int = 300,
    learning_rate: float = 0.01,
) -> Classifier:
    """A classifier that tells which dataset a run was on, by Adam on the logistic loss; pure JAX, so that many may be trained at once.

    Args:
      key: PRNG key for the initial weights and the batches.
      x: features. second: whether a run was on the second dataset.
      steps: number of steps, of `BATCH` runs each. learning_rate: its initial value; it falls to 0 as a cosine.

    Returns:
      Classifier; `score` is near ln(P_S'[x] / P_S[x]).
    """
    key_weights, key_batches = jax.random.split(key)
    runs, width = x.shape
    second = jnp.asarray(second)
    y = second.astype(x.dtype)
    share = jnp.mean(y)
    means = jnp.stack([(1.0 - y) @ x / (runs * (1.0 - share)), y @ x / (runs * share)])
    within = x - jnp.where(second[:, None], means[1][None], means[0][None])
    whiten = _whitening(within)
    first = Classifier(
        centre=jnp.mean(means, axis=0),
        whiten=whiten,
        # Where both laws are normal with one covariance, this is the likelihood ratio already (Fisher).
        linear=(means[1] - means[0]) @ whiten,
        inner=jax.random.normal(key_weights, (width, HIDDEN), x.dtype) / math.sqrt(width),
        bias=jnp.zeros(HIDDEN, x.dtype),
        outer=jnp.zeros(HIDDEN, x.dtype),
    )
    white = _white(first, x)
    optimiser = optax.adam(optax.cosine_decay_schedule(learning_rate, steps))

    def step(carry: Any, batch_key: Array) -> tuple[Any, None]:
        weights, state = carry
        rows = jax.random.randint(batch_key, (min(BATCH, runs),), 0, runs)

        def mean_loss(weights: tuple[Array, ...]) -> Array:
            return jnp.mean(optax.sigmoid_binary_cross_entropy(_logit(weights, white[rows]), y[rows]))

        slope = jax.grad(mean_loss)(weights)
        with jax.numpy_dtype_promotion("standard"):  # Adam raises a float to the power of its count of steps
            move, state = optimiser.update(slope, state)
        return (optax.apply_updates(weights, move), state), None

    weights = (first.linear, first.inner, first.bias, first.outer)
    (weights, _), _ = jax.lax.scan(step, (weights, optimiser.init(weights)), jax.random.split(key_batches, steps))
    return Classifier(first.centre, first.whiten, *weights)


def _whitening(within: Float[Array, "runs d"]) -> Float[Array, "d d"]:
    """W with W^T C W = 1 for the covariance C of these rows; the variance of directions that hardly vary is raised to a floor."""
    scale = jnp.sqrt(jnp.mean(within**2, axis=0))
    scale = jnp.where(scale > 0, scale, 1.0)
    unit = within / scale[None]
    values, vectors = jnp.linalg.eigh(jnp.matmul(unit.T, unit, precision="highest") / within.shape[0])
    values = jnp.maximum(values, _FLOOR * jnp.maximum(values[-1], _FLOOR))
    return vectors / (scale[:, None] * jnp.sqrt(values)[None])


def _white(classifier: Classifier, x: Float[Array, "runs d"]) -> Float[Array, "runs d"]:
    return jnp.matmul(x - classifier.centre[None], classifier.whiten, precision="highest")


def _logit(weights: tuple[Array, ...], white: Float[Array, "runs d"]) -> Float[Array, "runs"]:
    linear, inner, bias, outer = weights
    return white @ linear + jnp.tanh(white @ inner + bias[None]) @ outer


def score(classifier: Classifier, x: Float[Array, "runs d"]) -> Float[Array, "runs"]:
    """The score of outputs, near ln(P_S'[x] / P_S[x])."""
    return _logit(classifier[2:], _white(classifier, x))


_train_jit = jax.jit(static_argnames=("steps", "learning_rate"))(train)
_score_jit = jax.jit(score)


def _checked(*, delta: Any, level: Any, epsilon: Any, steps: Any, learning_rate: Any) -> dict[str, Any]:
    """Numbers as those of Python; refuses what is out of range, before anything is run or trained."""
    return {
        "delta": arguments.known("delta", arguments.delta(delta, positive=False)),
        "level": arguments.known_fraction("level", level),
        "epsilon": None if epsilon is None else arguments.known("epsilon", epsilon, at_least=0.0, below=math.inf),
        "steps": arguments.size("steps", steps),
        "learning_rate": arguments.known("learning_rate", learning_rate, above=0.0, below=math.inf),
    }


def audit_outcomes(
    key: Array,
    first: Any,
    second: Any,
    *,
    delta: float = 0.0,
    level: float = 1 - 2e-5,
    epsilon: float | None = None,
    steps: int = 300,
    learning_rate: float = 0.01,
) -> Audit:
    """Audits outcomes already drawn, from the first dataset and from its neighbour, by a learned score.

    Args:
      key: PRNG key for the training.
      first: outcomes on S, a pytree of arrays with one leading axis over the runs.
      second: outcomes on S', as many, and of the same shapes.
      delta, level, epsilon: as for `dpjax.verify.audit.audit_samples`.
      steps, learning_rate: for the training; see `train`.

    Returns:
      Audit; its event is given as rows (low, high) of scores.

    Raises:
      TypeError: not a key, or outcomes that are not numbers.
      ValueError: parameters out of range, unequal shapes, or fewer than 4 outcomes a side.

    >>> noise = np.random.default_rng(0).normal(size=(2, 4000, 1)).repeat(2, axis=2)  # one noise for both coordinates
    >>> audit_outcomes(jax.random.key(0), noise[0], noise[1] + np.array([1.0, 0.0]), steps=20).epsilon > 3
    True
    """
    key = arguments.key(key)
    given = _checked(delta=delta, level=level, epsilon=epsilon, steps=steps, learning_rate=learning_rate)
    training = {name: given.pop(name) for name in ("steps", "learning_rate")}
    (leaves, structure), (others, other_structure) = jax.tree.flatten(first), jax.tree.flatten(second)
    shapes = [[np.shape(leaf) for leaf in side] for side in (leaves, others)]
    if shapes[0] != shapes[1] or str(structure) != str(other_structure):
        raise ValueError(f"first and second must hold outcomes of the same shapes, got {shapes[0]} and {shapes[1]}")
    count = shapes[0][0][0] if shapes[0] and shapes[0][0] else 0
    if count < 4:
        raise ValueError(f"first and second must hold at least 4 outcomes each, got shapes {shapes[0]}")
    half = count // 2
    # Together, so that both sides get the same columns.
    both = jax.tree.map(lambda one, other: np.concatenate([one, other]), first, second)
    x = features(both, np.arange(2 * count) % count < half).astype(np.float32)
    x, y = x.reshape(2, count, -1), np.repeat([False, True], half)
    classifier = _train_jit(key, x[:, :half].reshape(2 * half, -1), y, **training)
    scores = np.asarray(_score_jit(classifier, x.reshape(2 * count, -1))).reshape(2, count)
    return audit_samples(scores[0], scores[1], **given)


def audit(
    key: Array,
    mechanism: Callable[[Array, Any], Any],
    pair: tuple[Any, Any],
    *,
    trials: int,
    delta: float = 0.0,
    level: float = 1 - 2e-5,
    epsilon: float | None = None,
    steps: int = 300,
    learning_rate: float = 0.01,
    batch_size: int = 4096,
) -> Audit:
    """Runs `mechanism(key, dataset) -> outcome` on both datasets and audits the outcomes by a learned score.

    Args:
      key: a PRNG key.
      mechanism: pure JAX, one run; its outcome is any pytree of arrays of numbers.
      pair: two neighbouring datasets, pytrees of arrays of equal shapes.
      trials: runs on each dataset; half of them are used for training.
      delta, level, epsilon: as for `dpjax.verify.audit.audit`.
      steps, learning_rate: for the training; see `train`.
      batch_size: how many runs are computed at once.

    Returns:
      Audit.

    Formal guarantees: a mechanism within its guarantee is accused with probability at most 1 - level, whatever was learned.

    Raises:
      TypeError, ValueError: as `dpjax.verify.audit.audit`.
    """
    key = arguments.key(key)
    given = _checked(delta=delta, level=level, epsilon=epsilon, steps=steps, learning_rate=learning_rate)
    key_runs, key_training = jax.random.split(key)
    first, second = runs(key_runs, mechanism, pair, trials=trials, batch_size=batch_size)
    return audit_outcomes(key_training, first, second, **given)
