"""Measures the most that a device can do: words drawn, words sorted, bytes moved; and counts how many words a trial draws."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from dpjax.core import random
from dpjax.trials import footprint
from experiments.benchmarks import timing
from experiments.benchmarks.contests import Trial

WORDS, SORTED, BYTES = "random words", "words in sorted rows", "bytes read and written"
ROW = 2**11  # words sorted at a time, about as many as a sample has


def measure(size: int, seconds: float, repeats: int) -> dict[str, list[float]]:
    """Each ceiling per second, as (median, least, greatest), with `size` words (a multiple of `ROW`) at a time.

    Words are drawn by Threefry, added up and not stored, so that they cost arithmetic alone. Rows of random words are sorted by one key.
    """
    key = jax.random.key(0)
    given = random.bits(key, size)
    runners = {
        WORDS: _repeated(lambda seed: jnp.sum(random.bits(jax.random.fold_in(key, seed), size)), np.uint32(1)),
        SORTED: _repeated(lax.sort, given.reshape(-1, ROW)),
        BYTES: _repeated(lambda words: words + np.uint32(1), given),
    }
    units = {WORDS: size, SORTED: size, BYTES: 2 * given.nbytes}
    found = timing.rates(runners, seconds, repeats)
    return {name: [units[name] * turns for turns in rates] for name, rates in found.items()}


def _repeated(function: Callable[[Any], jax.Array], given: Any) -> timing.Runner:
    """A runner of one compiled program, whose calls are made one after another."""
    program = jax.jit(function)

    def run(turns: int) -> None:
        for _ in range(turns):
            last = program(given)
        jax.block_until_ready(last)

    return run


def drawn(trial: Trial) -> int:
    """How often a trial calls Threefry, which makes a word or a pair; loops whose length is data count once, keys not at all."""
    run, params = trial
    return _drawn(jax.make_jaxpr(run)(jax.random.key(0), params).jaxpr)


def _drawn(program: Any) -> int:
    return sum(_calls(equation) for equation in program.eqns)


def _calls(equation: Any) -> int:
    """The calls of an operation, with those inside it; for a conditional, those of the branch that draws the most."""
    name, given = equation.primitive.name, equation.params
    if name in ("random_bits", "threefry2x32") or given.get("name") == "_threefry":
        return equation.outvars[0].aval.size
    inside = [_drawn(part) for part in footprint.programs(equation)]
    return max(inside, default=0) if name == "cond" else given.get("length", 1) * sum(inside)
