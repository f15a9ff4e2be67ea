"""Soft mechanisms inside modules of Equinox and Flax: plain pytrees, trained under jit, grad, optax and scan, released by `exact`."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from dpjax.relaxations import soft

pytestmark = pytest.mark.slow
STEPS = 60


def data():
    """Features, of which the first two determine the label."""
    x = np.random.default_rng(0).normal(size=(200, 4)).astype(np.float32)
    return x, (x[:, 0] - x[:, 1] > 0.2).astype(np.float32)


def threshold():
    return soft.threshold(epsilon=1.0, temperature=1.0, low=0.0, high=1.0)


def loss_of(learn, feature, key, x, y):
    """The logistic loss on one half of the data, of a threshold that was learned on the other half."""
    z = learn(key, feature[:100], y[:100])
    return jnp.mean(optax.sigmoid_binary_cross_entropy((z - feature[100:]) / 0.1, y[100:]))


def trained(loss, params):
    """(params after the descent, losses), all steps in one scan."""
    adam = optax.adam(0.05)

    def step(state, key):
        value, slope = jax.value_and_grad(loss)(state[0], key)
        with jax.numpy_dtype_promotion("standard"):
            moves, memory = adam.update(slope, state[1])
        return (optax.apply_updates(state[0], moves), memory), value

    keys = jax.random.split(jax.random.key(1), STEPS)
    (params, _), losses = jax.jit(lambda params: jax.lax.scan(step, (params, adam.init(params)), keys))(params)
    return params, np.asarray(losses)


def checked(before, learn, losses):
    """The loss has halved, the mechanism's numbers are unchanged, and its exact form is private, which the soft one is not."""
    assert np.mean(losses[-10:]) < 0.5 * np.mean(losses[:3])
    assert jax.tree.map(float, learn) == jax.tree.map(float, before)
    assert learn.exact().guarantee().covers(1.0, 0.0) and not learn.guarantee().covers(1.0, 0.0)


def test_equinox():
    eqx = pytest.importorskip("equinox")

    class Stump(eqx.Module):
        feature: eqx.nn.Linear
        learn: soft.SoftThreshold

        def __call__(self, x):
            return jax.nn.sigmoid(jax.vmap(self.feature)(x)[:, 0])

    x, y = data()
    model = Stump(eqx.nn.Linear(4, 1, key=jax.random.key(0)), threshold())
    mine = jax.tree.map(lambda leaf: False, model)
    mine = eqx.tree_at(lambda model: model.feature, mine, jax.tree.map(lambda leaf: True, model.feature))
    params, rest = eqx.partition(model, mine)

    def loss(params, key):
        model = eqx.combine(params, rest)
        return loss_of(model.learn, model(x), key, x, y)

    params, losses = trained(loss, params)
    model = eqx.combine(params, rest)
    checked(threshold(), model.learn, losses)
    z = eqx.filter_jit(lambda model, key: model.learn.exact()(key, model(x), y))(model, jax.random.key(2))
    assert 0.0 < float(z) < 1.0
    # A whole module is a pytree as well: all of its floats have a gradient, that of epsilon included.
    slope = eqx.filter_grad(lambda model: loss_of(model.learn, model(x), jax.random.key(3), x, y))(model)
    assert np.isfinite(slope.learn.epsilon) and slope.learn.epsilon != 0


def test_flax_linen():
    linen = pytest.importorskip("flax.linen")

    class Stump(linen.Module):
        learn: soft.SoftThreshold

        @linen.compact
        def __call__(self, key, x, y):
            feature = jax.nn.sigmoid(linen.Dense(1)(x)[:, 0])
            return loss_of(self.learn, feature, key, x, y)

    x, y = data()
    model = Stump(threshold())
    with jax.numpy_dtype_promotion("standard"):
        params = model.init(jax.random.key(0), jax.random.key(4), x, y)
        params, losses = trained(lambda params, key: model.apply(params, key, x, y), params)
    checked(threshold(), model.learn, losses)


def test_flax_nnx():
    nnx = pytest.importorskip("flax.nnx")

    class Stump(nnx.Module):
        def __init__(self, rngs):
            self.feature = nnx.Linear(4, 1, rngs=rngs)
            self.learn = nnx.data(threshold())

        def __call__(self, x):
            return jax.nn.sigmoid(self.feature(x)[:, 0])

    x, y = data()
    graph, params, rest = nnx.split(Stump(nnx.Rngs(0)), nnx.Param, ...)

    def loss(params, key):
        model = nnx.merge(graph, params, rest)
        return loss_of(model.learn, model(x), key, x, y)

    params, losses = trained(loss, params)
    checked(threshold(), nnx.merge(graph, params, rest).learn, losses)
