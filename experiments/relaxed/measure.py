"""Measures the numbers of the pictures."""

import functools
import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import scipy.stats
from jax import lax

from dpjax.mechanisms import exponential
from dpjax.relaxations import estimators, soft
from dpjax.trials.progress import Progress
from experiments.records import Row, exact
from experiments.runner import Context
from experiments.settings import Settings

CHUNK = 500
SOFT = ("Gumbel-softmax", "perturbed maximiser")
THROUGH = tuple(f"straight-through, {name}" for name in SOFT)
SCORE = {
    "score function": "none",
    "score function, other draws as baseline": "leave_one_out",
    "score function, exact baseline": "exact",
}
Estimate = Callable[[Any, Any], Any]


def measure(settings: Settings, context: Context) -> list[Row]:
    """All rows: panels "distance", "bound", "bias", "deviation"; the last two are relative to the length of the exact gradient."""
    task = Choice(settings, context.seed)
    cells = [(name, t) for name in (*SOFT, *THROUGH) for t in settings["temperatures"]] + [
        (name, 0.0) for name in SCORE
    ]
    rows: list[Row] = []
    with Progress(len(cells) + len(settings["temperatures"]) * len(task.draws()), "relaxed", unit="cells") as progress:
        for name, t in cells:
            rows += task.estimated(name, t, context)
            progress.done(1)
        for name in task.draws():
            for t in settings["temperatures"]:
                rows += task.distance(name, t, context)
                progress.done(1)
    return rows


class Choice:
    """One choice among candidates, its exact gradient, and the estimators of it."""

    def __init__(self, settings: Settings, seed: int) -> None:
        rng = np.random.default_rng(seed)
        self.settings = settings
        self.root = jax.random.key(seed)
        self.worth = np.linspace(0.0, 1.0, settings["candidates"], dtype=np.float32)
        self.scores = (settings["spread"] * rng.normal(size=settings["candidates"])).astype(np.float32)
        self.values = np.sort(rng.beta(2.0, 4.0, settings["values"])).astype(np.float32)
        self.mechanism = exponential.mechanism(epsilon=settings["epsilon"])
        losses = jnp.asarray(np.append(self.loss(self.worth), 0.0), jnp.float32)
        expected = functools.partial(estimators.expectation, self.mechanism)
        self.mean = float(expected(self.scores, losses))
        self.gradient = np.asarray(jax.grad(expected)(jnp.asarray(self.scores), losses), float)

    def loss(self, value: Any) -> Any:
        """The loss of a point, or of the mean of a mixture."""
        return (value - self.settings["target"]) ** 2

    # Gradients ----------------------------------------------------------------------------------------------------

    def estimator(self, name: str, temperature: Any) -> Estimate:
        """(key, scores) -> a number whose gradient in the scores is one estimate from one draw (two for "other draws")."""
        if name in SCORE:
            return functools.partial(self._score, SCORE[name])
        factory = soft.concrete if name.endswith(SOFT[0]) else soft.perturbed
        choose = factory(epsilon=self.settings["epsilon"], temperature=temperature)
        draw = functools.partial(estimators.straight_through, choose) if name in THROUGH else choose
        return lambda key, scores: self.loss(jnp.sum(draw(key, scores) * self.worth))

    def _score(self, baseline: str, key: Any, scores: Any) -> Any:
        several = baseline == "leave_one_out"
        return estimators.score_function(
            key,
            self.mechanism,
            scores,
            lambda outcome: self.loss(jnp.asarray(self.worth)[outcome.hypothesis]),
            draws=2 if several else 1,
            baseline=jnp.asarray(self.mean) if baseline == "exact" else baseline,
        )

    def estimated(self, name: str, temperature: float, context: Context) -> list[Row]:
        """The bias and the standard deviation of an estimator, with intervals."""

        def compute() -> list[float]:
            estimates = np.asarray(self._gradients(name)(np.float32(temperature)), float)
            return _quality(estimates, self.gradient, self.settings["level"])

        bias, low, high, deviation, spread = context.store.get_or_compute(
            {"estimator": name, "t": temperature}, compute
        )
        deviation *= math.sqrt(2) if SCORE.get(name) == "leave_one_out" else 1.0  # for one draw, though it needs two
        band = Row("deviation", name, temperature, deviation, deviation * (1 - spread), deviation * (1 + spread))
        return [Row("bias", name, temperature, bias, low, high), band]

    @functools.lru_cache(maxsize=1)  # noqa: B019  # the program of one estimator serves all its temperatures
    def _gradients(self, name: str) -> Any:
        keys = jax.random.split(self.root, self.settings["draws"])

        @jax.jit
        def run(temperature: Any) -> Any:
            def one(key: Any) -> Any:
                return jax.grad(self.estimator(name, temperature), argnums=1)(key, jnp.asarray(self.scores))

            return lax.map(one, keys, batch_size=CHUNK)

        return run

    # Distances ----------------------------------------------------------------------------------------------------

    def draws(self) -> dict[str, tuple[Callable[..., Any], np.ndarray, Any]]:
        """By name: (the factory of a soft mechanism at a temperature, its data, the argument of `deviation`)."""
        epsilon, values = self.settings["epsilon"], self.values
        a_dist = functools.partial(soft.stability, epsilon=epsilon, delta=self.settings["delta"])
        quantile = functools.partial(
            soft.quantile, epsilon=epsilon, fraction=self.settings["fraction"], low=0.0, high=1.0
        )
        stable = np.array([12.0, 4.0, 1.0], np.float32)
        return {
            SOFT[0]: (functools.partial(soft.concrete, epsilon=epsilon), self.scores, self.scores),
            SOFT[1]: (functools.partial(soft.perturbed, epsilon=epsilon), self.scores, self.scores),
            "A_dist": (a_dist, stable, stable),
            "quantile": (quantile, values, len(values)),
        }

    def distance(self, name: str, temperature: float, context: Context) -> list[Row]:
        """The mean distance of soft draws from exact ones: total variation, or |z - z'| of points of [0, 1]."""
        make, _, given = self.draws()[name]

        def compute() -> list[float]:
            distances = np.asarray(self._distances(name)(np.float32(temperature)), float)
            return [distances.mean(), distances.std() / math.sqrt(len(distances))]

        mean, error = context.store.get_or_compute({"distance": name, "t": temperature}, compute)
        far = scipy.stats.norm.ppf((1 + self.settings["level"]) / 2) * error
        bound = make(temperature=temperature).deviation(given)
        return [
            Row("distance", name, temperature, mean, mean - far, mean + far),
            exact("bound", name, temperature, bound),
        ]

    @functools.lru_cache(maxsize=1)  # noqa: B019
    def _distances(self, name: str) -> Any:
        make, data, _ = self.draws()[name]
        keys = jax.random.split(self.root, self.settings["draws"])

        @jax.jit
        def run(temperature: Any) -> Any:
            warm = make(temperature=temperature)

            def one(key: Any) -> Any:
                away = jnp.abs(warm(key, data) - warm.exact()(jax.random.clone(key), data))
                return jnp.sum(away) / 2 if away.ndim else away

            return lax.map(one, keys, batch_size=CHUNK)

        return run


def _quality(estimates: np.ndarray, gradient: np.ndarray, level: float) -> list[float]:
    """[bias, its interval's ends, standard deviation of one estimate, its relative error], relative to the gradient's length.

    The mean of N estimates is within sqrt(tr C / N) + z sqrt(max eigenvalue / N) of its expectation (Gaussian concentration).
    """
    count, size = len(estimates), np.linalg.norm(gradient)
    covariance = np.cov(estimates.T)
    total, z = np.trace(covariance), scipy.stats.norm.ppf(level)
    bias = np.linalg.norm(estimates.mean(axis=0) - gradient) / size
    radius = (math.sqrt(total) + z * math.sqrt(np.linalg.eigvalsh(covariance)[-1])) / math.sqrt(count) / size
    squares = np.sum((estimates - estimates.mean(axis=0)) ** 2, axis=1)
    both_sides = scipy.stats.norm.ppf((1 + level) / 2)
    spread = both_sides * squares.std() / (2 * total * math.sqrt(count))
    return [float(v) for v in (bias, max(bias - radius, 0.0), bias + radius, math.sqrt(total) / size, spread)]
