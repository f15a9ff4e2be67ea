"""Running sums of whole numbers."""

import functools

import jax.numpy as jnp
from jaxtyping import Array, Real

ROW = 32


def running(values: Real[Array, "n"]) -> Real[Array, "n"]:
    """jnp.cumsum in the type of the values, several times faster on a CPU.

    Within rows of 32 by sliding sums, which are vector additions; then over the rows. Sums of floats depend on their order, and are left
    to XLA.
    """
    if not jnp.issubdtype(values.dtype, jnp.integer):
        return jnp.cumsum(values)
    n = values.shape[0]
    rows = jnp.pad(values, (0, -n % ROW)).reshape(-1, ROW)
    for step, terms in ((1, 4), (4, 8)):  # sums of 4 neighbours, then of 8 such sums
        rows = _sliding(rows, step, terms)
    totals = rows[:, -1]
    before = jnp.cumsum(totals, dtype=values.dtype) - totals
    return (rows + before[:, None]).reshape(-1)[:n]


def _sliding(rows: Real[Array, "m n"], step: int, terms: int) -> Real[Array, "m n"]:
    """rows[:, i] + rows[:, i - step] + rows[:, i - 2 step] + ..., so many terms."""
    before, n = step * (terms - 1), rows.shape[1]
    padded = jnp.pad(rows, ((0, 0), (before, 0)))
    return functools.reduce(jnp.add, [padded[:, before - step * i :][:, :n] for i in range(terms)])
