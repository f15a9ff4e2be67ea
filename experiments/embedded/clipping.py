"""Noisy gradient descent whose clipping norm is a private quantile of the gradients' norms, at each step.

Every step releases (a) the norm C, with pure privacy, by the exponential mechanism of `dpjax.relaxations.soft.quantile` at temperature 0 on
logarithms, and (b) the sum of gradients clipped to C, plus Gaussian noise of standard deviation noise C. Under add/remove the sum has
sensitivity C, which is known by then. The sum is divided by a public number of rows, not by the number of rows in the data.
"""

import functools
import math
from typing import Any, NamedTuple

import dp_accounting
import jax
import jax.numpy as jnp
import optax
from dp_accounting import pld
from jax import lax

from dpjax.accounting import ADD_OR_REMOVE_ONE, Guarantee, calibrate, composition
from dpjax.relaxations import soft
from experiments.embedded.data import Part
from experiments.settings import Settings


class Budget(NamedTuple):
    """What one step may spend, and what all steps promise."""

    noise: float  # standard deviation of the noise, in clipping norms
    quantile: float  # epsilon of one private norm; 0 where the norm is fixed
    promised: Guarantee


def budget(settings: Settings, *, private_norm: bool) -> Budget:
    """The whole budget goes to the noise if the norm is fixed; otherwise a share of epsilon, and half of delta, goes to the norms."""
    epsilon, delta, steps = settings["epsilon"], settings["delta"], settings["steps"]
    parts: list[Guarantee] = []
    each = 0.0
    if private_norm:
        share = Guarantee(settings["share"] * epsilon, delta / 2, ADD_OR_REMOVE_ONE)
        each = calibrate(share, steps, delta_share=0.0).epsilon
        parts.append(composition.optimal({Guarantee(each, 0.0, ADD_OR_REMOVE_ONE): steps}, delta=delta / 2))
        epsilon, delta = epsilon - parts[0].epsilon, delta / 2
    noise, spent = _gaussian(epsilon, delta, steps)
    return Budget(noise, each, composition.basic([*parts, spent]))


@functools.cache
def _gaussian(epsilon: float, delta: float, steps: int) -> tuple[float, Guarantee]:
    """The least noise multiplier with which all steps together are (epsilon, delta)-private, and the guarantee that they then have."""

    def event(noise: float) -> Any:
        return dp_accounting.SelfComposedDpEvent(dp_accounting.GaussianDpEvent(noise), steps)

    noise = dp_accounting.calibrate_dp_mechanism(pld.PLDAccountant, event, epsilon, delta)
    kept = pld.PLDAccountant().compose(event(noise)).get_epsilon(delta)
    return float(noise), Guarantee(float(kept), delta, ADD_OR_REMOVE_ONE)


def loss(weights: Any, x: Any, y: Any) -> Any:
    """The logistic loss of one example, or its mean over several."""
    return jnp.mean(optax.sigmoid_binary_cross_entropy(x @ weights, y.astype(float)))


def descend(settings: Settings, key: Any, private: Part, plan: Any) -> tuple[Any, Any]:
    """(weights after all steps, the clipping norm of each step), by a scan.

    `plan` holds noise, rate, and either `norm` or the fraction, epsilon and temperature of the quantile.
    """
    x = with_bias(private.x)
    rows = x.shape[0]  # public: the planned number of rows

    def step(weights: Any, key: Any) -> Any:
        for_norm, for_noise = jax.random.split(key)
        slopes = jax.vmap(jax.grad(loss), in_axes=(None, 0, 0))(weights, x, even(private))
        # The square root has no derivative at 0.
        norms = jnp.sqrt(jnp.sum(slopes**2, axis=1) + 1e-12)
        norm = plan["norm"] if "norm" in plan else _private_norm(settings, plan, for_norm, norms)
        clipped = slopes * jnp.minimum(1.0, norm / norms)[:, None]
        noise = plan["noise"] * norm * jax.random.normal(for_noise, weights.shape)
        return weights - plan["rate"] * (jnp.sum(clipped, axis=0) + noise) / rows, norm

    return lax.scan(step, jnp.zeros((x.shape[1],)), jax.random.split(key, settings["steps"]))


def _private_norm(settings: Settings, plan: Any, key: Any, norms: Any) -> Any:
    quantile = soft.quantile(
        epsilon=plan["epsilon"],
        fraction=plan["fraction"],
        temperature=plan["temperature"],
        low=math.log(settings["least"]),
        high=math.log(settings["largest"]),
        relation=ADD_OR_REMOVE_ONE,
    )
    return jnp.exp(quantile(key, jnp.log(norms)))


def even(part: Part) -> Any:
    """The labels: whether the digit is even."""
    return part.digit % 2 == 0


def with_bias(x: Any) -> Any:
    """x with one more column, which is always 1."""
    return jnp.concatenate([x, jnp.ones_like(x[:, :1])], axis=1)


def quality(weights: Any, test: Part) -> Any:
    """[loss, error] on the test data."""
    x = with_bias(test.x)
    wrong = (x @ weights > 0) != even(test)
    return jnp.stack([loss(weights, x, even(test)), jnp.mean(wrong)])


def tuned(settings: Settings, key: Any, public: Part, plan: Any) -> Any:
    """The plan with `rate` and the fraction (or the fixed norm) tuned by the gradient of the loss after all steps, on public halves.

    Half of the public data plays the part of the private data; its noise is made as small, relative to its rows, as the private third's.
    """
    what = "norm" if "norm" in plan else "fraction"
    inward, outward = (jnp.log, jnp.exp) if what == "norm" else (_logit, jax.nn.sigmoid)
    start = {"rate": jnp.log(jnp.asarray(plan["rate"])), what: inward(jnp.asarray(plan[what]))}
    rows = public.digit.shape[0]
    fewer = (rows // 2) / rows

    def after(moved: Any, key: Any) -> Any:
        for_half, for_runs = jax.random.split(key)
        order = jax.random.permutation(for_half, rows)
        learn, rest = (Part(public.x[i], public.digit[i]) for i in (order[: rows // 2], order[rows // 2 :]))
        mine = plan | {"rate": jnp.exp(moved["rate"]), what: outward(moved[what]), "noise": plan["noise"] * fewer}
        if what == "fraction":
            mine |= {"epsilon": plan["epsilon"] / fewer, "temperature": settings["temperature"]}
        keys = jax.random.split(for_runs, settings["runs"])
        return jnp.mean(jax.vmap(lambda key: quality(descend(settings, key, learn, mine)[0], rest)[0])(keys))

    adam = optax.adam(settings["rate_of_tuning"])

    def step(state: Any, key: Any) -> Any:
        moved, moments = state
        moves, moments = adam.update(jax.grad(after)(moved, key), moments, moved)
        return (optax.apply_updates(moved, moves), moments), None

    keys = jax.random.split(key, settings["tuning"])
    moved = lax.scan(step, (start, adam.init(start)), keys)[0][0]
    return plan | {"rate": jnp.exp(moved["rate"]), what: outward(moved[what])}


def _logit(p: Any) -> Any:
    return jnp.log(p) - jnp.log1p(-p)
