"""Throughput of what learning many concepts is made of: elimination, tracing, one attack; beside NumPy and the bits to be moved."""

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from dpjax import fingerprinting
from dpjax.core import bits, random
from dpjax.core.pytree import frozen, static
from dpjax.domains import gf2
from dpjax.fingerprinting import forms, pirates

XI = 0.05


@frozen
class System:
    """Parameters of an elimination."""

    d: int = static()
    rows: int = static()
    k: int = static()

    @property
    def words(self) -> int:
        """Words of a row of [A | Y]."""
        return bits.words_for(self.d) + bits.words_for(self.k)


def elimination_trial(key: jax.Array, system: System) -> jax.Array:
    """One random system solved; whether it has full rank."""
    matrix = random.bits(key, system.rows * system.words).reshape(system.rows, system.words)
    limbs = bits.words_for(system.d)
    solved = gf2.solve(matrix[:, :limbs], matrix[:, limbs:], columns=system.d)
    # All unknowns must be computed: they enter, with no effect.
    return ((solved.rank == system.d) & (jnp.max(solved.unknowns) >= 0)).astype(jnp.int32)


def elimination_floor(key: jax.Array, system: System) -> jax.Array:
    """The bits moved, once for 8 pivots as an ideal cache would: the matrix drawn, then d/8 times read, changed and written."""
    matrix = random.bits(key, system.rows * system.words).reshape(system.words, system.rows)
    matrix = lax.fori_loop(0, system.d // 8, lambda i, m: m ^ m[0][None] ^ i.astype(jnp.uint32), matrix)
    return (jnp.max(matrix) & np.uint32(1)).astype(jnp.int32)


@frozen
class Words:
    """Parameters of `words_floor`."""

    count: int = static()


def words_floor(key: jax.Array, words: Words) -> jax.Array:
    """So many random words drawn and added up: one for every bit of a Tardos book."""

    def add(block: jax.Array, total: jax.Array) -> jax.Array:
        drawn = random.bits(jax.random.fold_in(key, block), 1 << 17)
        return total + jnp.sum(drawn, dtype=jnp.uint32)

    return (lax.fori_loop(0, -(-words.count >> 17), add, jnp.uint32(0)) & np.uint32(1)).astype(jnp.int32)


def permutation_floor(key: jax.Array, words: Words) -> jax.Array:
    """One secret order of the columns of a Boneh-Shaw book."""
    order = jax.random.permutation(key, words.count)
    return (order[0] & 1).astype(jnp.int32)


def majority(key: jax.Array, sample: Any) -> jax.Array:
    """The learner that is attacked: for every concept the label of most examples."""
    return 2 * jnp.sum(sample.labels.astype(jnp.int32), axis=0) > sample.rows


def constant(hypotheses: jax.Array, x: jax.Array) -> jax.Array:
    """What it says of points."""
    return jnp.broadcast_to(hypotheses, (x.shape[0], hypotheses.shape[0]))


def traced(run: Callable[..., Any], key: jax.Array, params: Any) -> jax.Array:
    """A trial that counts whether somebody was accused."""
    return run(key, params)["traced"].astype(jnp.int32)


traced_by_pirates = functools.partial(traced, pirates.trial)
traced_by_attack = functools.partial(traced, fingerprinting.trial)


def runners(settings: Any, counted: Callable[[Any, Any], Any], pool: Any) -> dict[str, dict[str, Any]]:
    """By panel: what is timed, each a function of the number of trials; `counted(run, params)` makes one of a trial."""
    d, rows, k = settings["elimination"]
    users, columns = settings["tracing"]
    code = fingerprinting.tardos(users, xi=XI, length=columns)
    crowd = pirates.Experiment(code=code, coalition=jnp.ones(users, bool), strategy=pirates.majority)
    small = fingerprinting.boneh_shaw(settings["attack"], xi=XI)
    target = fingerprinting.against(majority, predict=constant, code=small, form=forms.agnostic(small.users))
    system = System(d=d, rows=rows, k=k)

    def numpy(name: str, *sizes: Any) -> Callable[[int], Any]:
        return lambda trials: pool.success_count(name, sizes, 0, trials, 0)

    return {
        f"elimination, d={d}, {rows} rows, k={k}": {
            "floor": counted(elimination_floor, system),
            "dpjax elimination": counted(elimination_trial, system),
            "NumPy elimination": numpy("elimination", d, rows, k),
        },
        f"Tardos, {users} users, {columns} columns": {
            "floor": counted(words_floor, Words(count=users * columns)),
            "dpjax tracing": counted(traced_by_pirates, crowd),
            "NumPy tracing": numpy("tracing", users, columns, int(code.log_term)),
        },
        f"attack, Boneh-Shaw, {small.users} users, k={small.length}": {
            "floor": counted(permutation_floor, Words(count=small.length)),
            "dpjax attack": counted(traced_by_attack, target),
            "NumPy attack": numpy("attack", small.users, small.copies, XI),
        },
    }
