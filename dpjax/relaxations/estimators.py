"""Gradients through private algorithms: the exact gradient, score functions, and straight-through.

| function | needs | its gradient |
|---|---|---|
| `expectation` | outputs that can be listed | exact: no sampling, no bias |
| `score_function` | an exact `log_prob` | unbiased, with a variance that a baseline lowers |
| `straight_through` | a soft mechanism | biased, of low variance; the value is a private draw |

A soft mechanism itself (`dpjax.relaxations.soft`) gives the exact gradient of another objective, that of its temperature.

None of these gradients is private, not even those of a private value: they are computed from the data.
"""

import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float

from dpjax.core import arguments, logspace
from dpjax.data.algorithm import Algorithm
from dpjax.data.outcome import Outcome, Status
from dpjax.mechanisms.base import Chooser, Noise
from dpjax.relaxations.soft.base import Soft

BASELINES = ("none", "leave_one_out")


def expectation(algorithm: Algorithm, data: Any, losses: Float[Array, "outcomes"]) -> Float[Array, ""]:
    """E[loss of the output] = sum_h P[h] loss_h, by the exact law: its derivatives are the reference for all estimators.

    Args:
      algorithm: one that has a `pmf`.
      data: as the algorithm takes them.
      losses: the loss of every output, then of ⊥.

    Raises:
      TypeError: not an algorithm of dpjax. ValueError: not one loss for each outcome, or too many outputs to be listed.

    >>> from dpjax.mechanisms import exponential
    >>> choose = exponential.mechanism(epsilon=2.0)
    >>> losses = jnp.array([0.0, 1.0, 0.0])
    >>> round(float(expectation(choose, jnp.array([1.0, 1.0]), losses)), 3)
    0.5
    >>> jax.grad(expectation, argnums=1)(choose, jnp.array([1.0, 1.0]), losses).tolist()
    [-0.25, 0.25]
    """
    pmf = arguments.instance("algorithm", algorithm, Algorithm).pmf(data)
    losses = jnp.asarray(losses, float)
    if losses.shape != pmf.shape:
        raise ValueError(f"losses must have shape {pmf.shape}, one an output and one for ⊥, got {losses.shape}")
    return jnp.sum(pmf * losses)


def log_prob(algorithm: Algorithm, data: Any, outcome: Outcome) -> Float[Array, ""]:
    """ln P of the outcome of a run: of its output, or of ⊥; for a `Noise`, ln of the density.

    Differentiable in the floats of the algorithm, and in the data where its law is.

    >>> from dpjax.mechanisms import stability
    >>> keep = stability.mechanism(epsilon=1.0, delta=1e-3)
    >>> outcome = keep(jax.random.key(0), jnp.array([3.0, 2.0]))
    >>> outcome.status.item() == Status.BOTTOM, round(float(jnp.exp(log_prob(keep, jnp.array([3.0, 2.0]), outcome))), 4)
    (True, 0.9994)
    """
    output = algorithm.log_prob(data, outcome.hypothesis)
    if isinstance(algorithm, Noise):
        return output  # never ⊥
    everything = (0, algorithm.outputs(algorithm.fit(data))) if isinstance(algorithm, Chooser) else algorithm.anything()
    released = outcome.status == Status.OK
    bottom = algorithm.probability(data, everything)[1]
    # A harmless number for the case that did not occur: its probability may be 0.
    return jnp.where(released, jnp.where(released, output, 0.0), logspace.log(jnp.where(released, 1.0, bottom)))


def score_function(
    key: Array,
    algorithm: Algorithm,
    data: Any,
    loss: Callable[[Outcome], Float[Array, ""]],
    *,
    draws: int,
    baseline: str | Float[Array, ""] = "none",
) -> Float[Array, ""]:
    """The mean loss of some runs, whose gradient is the score-function estimate of d E[loss] (REINFORCE; Williams 1992).

    With outputs h_i ~ P and a baseline b, the gradient is that of mean_i [loss_i + sg(loss_i - b_i) ln P(h_i)], where sg stops derivatives.
    As E[grad ln P] = 0, it is unbiased for every b_i that does not depend on h_i,

        grad E[loss] = E[grad loss] + E[(loss - b) grad ln P],

    wherever P is differentiable at fixed outputs, which covers real scores and the floats of an algorithm. It does not hold for densities
    with jumps that move with the data (a threshold among real features): the contribution of the jumps is missing there.

    Args:
      key: a PRNG key.
      algorithm: one of dpjax that has `log_prob`, and the probability that something is released (`anything`).
      data: as the algorithm takes them.
      loss: outcome -> a number; it is called for ⊥, too, and may be differentiable in parameters of its own.
      draws: number of runs.
      baseline: "none"; "leave_one_out", the mean loss of the other runs (two or more draws); or a number that does not depend on the
        draws, such as `expectation`, the exact mean. Its derivative is not used.

    Returns:
      The mean loss; `jax.grad` of it is the estimate.

    Formal guarantees: none: losses and the gradient are computed from the data.

    Raises:
      TypeError, ValueError: not an algorithm of dpjax, not a function, a loss that is not one number, draws below 1 (2 for
        "leave_one_out"), or an unknown baseline.
      NotImplementedError: the algorithm does not give the probability that something is released.

    >>> from dpjax.mechanisms import exponential
    >>> choose, scores = exponential.mechanism(epsilon=2.0), jnp.array([1.0, 1.0])
    >>> def mean(scores):
    ...     return score_function(jax.random.key(0), choose, scores, lambda outcome: outcome.hypothesis.astype(float), draws=1000)
    >>> bool(jnp.allclose(jax.grad(mean)(scores), jnp.array([-0.25, 0.25]), atol=0.05))
    True
    """
    arguments.instance("algorithm", algorithm, Algorithm)
    arguments.function("loss", loss)
    alone = isinstance(baseline, str) and arguments.choice("baseline", baseline, BASELINES) == "none"
    draws = arguments.size("draws", draws, at_least=2 if isinstance(baseline, str) and not alone else 1)
    fixed, seen = lax.stop_gradient((algorithm, data))

    def one(key: Array) -> tuple[Array, Array]:
        outcome = lax.stop_gradient(fixed(key, seen))
        found = jnp.asarray(loss(outcome), float)
        # A loss of shape (1,), say, would be multiplied by the derivatives of all other runs.
        if found.shape != ():
            raise TypeError(f"loss must return one number, got shape {found.shape}")
        return found, log_prob(algorithm, data, outcome)

    losses, log_probs = jax.vmap(one)(jax.random.split(arguments.key(key), draws))
    lead = lax.stop_gradient(losses - _baselines(baseline, losses))
    return jnp.mean(losses + lead * (log_probs - lax.stop_gradient(log_probs)))


def _baselines(baseline: Any, losses: Float[Array, "draws"]) -> Array:
    """The baseline of each draw."""
    if not isinstance(baseline, str):
        return jnp.asarray(arguments.real("baseline", baseline, above=-math.inf, below=math.inf), losses.dtype)
    if baseline == "none":
        return jnp.zeros((), losses.dtype)
    return (jnp.sum(losses) - losses) / (losses.shape[0] - 1)


def straight_through(mechanism: Soft, key: Array, *data: Any, **given: Any) -> Any:
    """Forward, the private draw at temperature 0; backward, the derivative of the soft one (Bengio, Léonard, Courville 2013).

    The value is that of mechanism.exact() to the bit: soft - soft is added, of which only the derivative remains.

    Args:
      mechanism: one of `dpjax.relaxations.soft`.
      key: a PRNG key; both draws use its noise.
      data, given: as the mechanism takes them.

    Formal guarantees: the value keeps the guarantee of `mechanism.exact()`; the derivative has none.

    Raises:
      TypeError: not a soft mechanism.

    >>> from dpjax.relaxations import soft
    >>> choose, scores = soft.concrete(epsilon=8.0, temperature=0.5), jnp.array([4.0, 6.0, 3.0])
    >>> straight_through(choose, jax.random.key(0), scores).tolist()
    [0.0, 1.0, 0.0]
    >>> bool(jnp.any(jax.jacobian(straight_through, argnums=2)(choose, jax.random.key(0), scores) != 0))
    True
    """
    arguments.instance("mechanism", mechanism, Soft)
    hard = mechanism.exact()(jax.random.clone(key), *data, **given)  # the same noise on purpose
    soft = mechanism(key, *data, **given)
    return lax.stop_gradient(hard) + (soft - lax.stop_gradient(soft))
