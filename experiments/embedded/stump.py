"""A private decision stump: a feature learned in public, a threshold on it learned privately.

The task is "is the digit below c?", for a cut c in 1, ..., 9 that only the private labels know. A feature map takes an image to (0, 1); the
exponential mechanism learns the threshold on it from the private third, (epsilon, 0)-private under REPLACE_ONE for the examples (image,
label). The map is trained on the public third, which has no protection, for all cuts at once.
"""

import functools
from typing import Any

import jax
import jax.numpy as jnp
import optax
from jax import lax

from dpjax import Sample
from dpjax.learners import thresholds
from dpjax.relaxations import estimators, soft
from experiments.embedded.data import Part
from experiments.settings import Settings

REGRESSION = "regression on the digit"
WAYS = (REGRESSION, "end to end, soft threshold", "end to end, straight-through", "end to end, exact law")
CUTS = jnp.arange(1, 10)


def feature(params: Any, x: Any) -> Any:
    """The feature of images, in (0, 1): one hidden layer and a sigmoid, with parameters in a plain pytree."""
    hidden = jnp.tanh(x @ params["hidden"] + params["shift"][None])
    return jax.nn.sigmoid(hidden @ params["weights"] + params["bias"])


def initial(key: Any, pixels: int, hidden: int) -> Any:
    """Random initial parameters of the feature."""
    first, last = jax.random.split(key)
    return {
        "hidden": jax.random.normal(first, (pixels, hidden)) / pixels**0.5,
        "shift": jnp.zeros((hidden,)),
        "weights": jax.random.normal(last, (hidden,)) / hidden**0.5,
        "bias": jnp.zeros(()),
    }


def regression(params: Any, key: Any, public: Part) -> Any:
    """The squared distance of the feature from (digit + 1/2) / 10; no threshold, no noise."""
    return jnp.mean((feature(params, public.x) - (public.digit + 0.5) / 10) ** 2)


def through_threshold(settings: Settings, way: str, epsilon: Any, params: Any, key: Any, public: Part) -> Any:
    """The loss on one half of the public images of thresholds that the mechanism learns on the other, a random half; several cuts.

    The half that plays the private third has fewer rows, so epsilon is raised to keep epsilon n the same. The exact law has no temperature:
    the expected loss is a sum over the gaps between features, weighted by their probabilities, with one uniform relative position for all
    gaps. Gaps shrink to nothing before two features change places, so this sum is continuous in the features, and its derivative misses no
    jump.
    """
    for_half, for_cuts, for_draws = jax.random.split(key, 3)
    rows, draws = public.digit.shape[0], settings["draws"]
    order = jax.random.permutation(for_half, rows)
    x, digit = feature(params, public.x[order]), public.digit[order]
    half = rows // 2
    share = epsilon * (rows / half)
    learn = soft.threshold(epsilon=share, temperature=settings["temperature"], low=0.0, high=1.0)

    def wrong(z: Any, below: Any) -> Any:
        said = jax.nn.sigmoid((z - x[half:]) / settings["width"])
        return jnp.mean(jnp.abs(said - below[half:]))

    def one(key: Any, cut: Any) -> Any:
        below = (digit < cut).astype(float)
        if way == WAYS[1]:
            return wrong(learn(key, x[:half], below[:half]), below)
        if way == WAYS[2]:
            return wrong(estimators.straight_through(learn, key, x[:half], below[:half]), below)
        ends, law = learn.law(x[:half], below[:half])
        places = ends[:-1] + jax.random.uniform(key) * jnp.diff(ends)
        return jnp.sum(law * jax.vmap(wrong, (0, None))(places, below))

    cuts = jax.random.randint(for_cuts, (draws,), 1, 10)
    return jnp.mean(jax.vmap(one)(jax.random.split(for_draws, draws), cuts))


def fit(loss: Any, params: Any, keys: Any, rate: float) -> Any:
    """Parameters after Adam on loss(params, key), one step for each key, by a scan."""
    adam = optax.adam(rate)

    def step(state: Any, key: Any) -> Any:
        params, moments = state
        moves, moments = adam.update(jax.grad(loss)(params, key), moments, params)
        return (optax.apply_updates(params, moves), moments), None

    return lax.scan(step, (params, adam.init(params)), keys)[0][0]


def start(settings: Settings, key: Any, public: Part) -> Any:
    """The feature by regression: the basis of comparison, and where end-to-end training begins."""
    for_params, for_steps = jax.random.split(key)
    params = initial(for_params, public.x.shape[-1], settings["hidden"])
    loss = functools.partial(regression, public=public)
    return fit(loss, params, jax.random.split(for_steps, settings["warmup"]), settings["rate"])


def trained(settings: Settings, way: str, key: Any, epsilon: Any, public: Part, params: Any) -> Any:
    """The feature of this way: from the feature by regression, `steps` more steps on its own loss."""
    loss = functools.partial(regression, public=public)
    if way != REGRESSION:
        loss = functools.partial(through_threshold, settings, way, epsilon, public=public)
    return fit(loss, params, jax.random.split(key, settings["steps"]), settings["finer"])


def exact_error(settings: Settings, params: Any, epsilon: Any, private: Part, test: Part) -> Any:
    """E[test error] of the exact private learner on the grid, over its coins: a sum over all thresholds; the mean over all cuts."""
    bits = settings["bits"]

    def place(x: Any) -> Any:
        return jnp.clip(feature(params, x) * 2.0**bits, 0, 2.0**bits - 1).astype(jnp.uint32)

    learner = thresholds.exponential(bits=bits, epsilon=epsilon)
    learned_from, tested_on = place(private.x)[:, None], place(test.x)

    def error(cut: Any) -> Any:
        law = learner.pmf(Sample(x=learned_from, y=(private.digit < cut).astype(jnp.int32)))[:-1]
        ones = (test.digit < cut).astype(float)
        nowhere = jnp.zeros((2**bits,))  # threshold j labels with 1 what lies below j
        missed = jnp.sum(ones) - _before(nowhere.at[tested_on].add(ones))
        return jnp.sum(law * (missed + _before(nowhere.at[tested_on].add(1 - ones)))) / ones.shape[0]

    return jnp.mean(lax.map(error, CUTS))


def _before(counts: Any) -> Any:
    """How many lie below each threshold 0, ..., 2^bits."""
    return jnp.concatenate([jnp.zeros((1,)), jnp.cumsum(counts)])
