"""dpjax's trials of elimination, tracing and an attack."""

from typing import Any

import jax
import jax.numpy as jnp

from dpjax import fingerprinting
from dpjax.core import bits, random
from dpjax.domains import gf2
from dpjax.fingerprinting import forms, pirates
from experiments.benchmarks.floors import System
from experiments.benchmarks.numpy_multi import XI


def elimination_trial(key: jax.Array, system: System) -> jax.Array:
    """One random system solved; whether it has full rank."""
    matrix = random.bits(key, system.rows * system.words).reshape(system.rows, system.words)
    limbs = bits.words_for(system.d)
    solved = gf2.solve(matrix[:, :limbs], matrix[:, limbs:], columns=system.d)
    # All unknowns must be computed, so they enter the result, with no effect.
    return ((solved.rank == system.d) & (jnp.max(solved.unknowns) >= 0)).astype(jnp.int32)


def elimination(d: int, rows: int, k: int) -> tuple[Any, Any]:
    """The elimination of a random system."""
    return elimination_trial, System(d=d, rows=rows, k=k)


def majority(key: jax.Array, sample: Any) -> jax.Array:
    """The learner that is attacked: for every concept the label of most examples."""
    return 2 * jnp.sum(sample.labels.astype(jnp.int32), axis=0) > sample.rows


def constant(hypotheses: jax.Array, x: jax.Array) -> jax.Array:
    """The labels that the majority learner's hypotheses give to points."""
    return jnp.broadcast_to(hypotheses, (x.shape[0], hypotheses.shape[0]))


def traced_by_pirates(key: jax.Array, crowd: pirates.Experiment) -> jax.Array:
    """Whether one trace accuses somebody."""
    return pirates.trial(key, crowd)["traced"].astype(jnp.int32)


def tracing(users: int, columns: int) -> tuple[Any, Any]:
    """All users of a Tardos code, and the majority word."""
    code = fingerprinting.tardos(users, xi=XI, length=columns)
    return traced_by_pirates, pirates.Experiment(code=code, coalition=jnp.ones(users, bool), strategy=pirates.majority)


def traced_by_attack(key: jax.Array, target: Any) -> jax.Array:
    """Whether an attack accuses somebody."""
    return fingerprinting.trial(key, target)["traced"].astype(jnp.int32)


def attack(users: int, copies: int) -> tuple[Any, Any]:
    """Boneh and Shaw's code against the majority learner, in its agnostic form."""
    code = fingerprinting.boneh_shaw(users, xi=XI, copies=copies)
    return traced_by_attack, fingerprinting.against(majority, predict=constant, code=code, form=forms.agnostic(users))
