"""The published table of what a GPU would run matches the programs, and would show a sort by several keys."""

import pathlib

import jax
import jax.numpy as jnp
import pytest
from jax import lax

from experiments.benchmarks import CONTESTS, operations
from experiments.benchmarks.contests import CONTESTS as TRIALS

PAGE = pathlib.Path(__file__).parent.parent / "experiments/benchmarks/README.md"


def both_ways(key: jax.Array, x: jax.Array) -> jax.Array:
    """Two sorts: one by one key, and one by two keys in a loop."""
    (once,) = lax.sort((x + jax.random.bits(key, x.shape),), num_keys=1)

    def body(_: jax.Array, pair: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        first, second = lax.sort(pair, num_keys=2)
        return first[::-1], second

    return jnp.sum(lax.fori_loop(0, 3, body, (once, x))[0])


@pytest.mark.thorough
def test_sorts_are_told_apart_by_their_keys_and_loops_are_seen() -> None:
    outside, inside = operations.sites((both_ways, jnp.arange(9, dtype=jnp.uint32)))
    assert outside["sort ui32, 9"] == 1 and outside["while"] == 1
    assert inside["sort ui32 and ui32, 9"] == 1


@pytest.mark.thorough
def test_a_line_of_the_committed_table() -> None:
    assert operations.table([["laplace", [1000]]], timed=False).splitlines()[-1] in PAGE.read_text().splitlines()


@pytest.mark.slow
def test_the_committed_table_is_that_of_the_programs_without_conditionals_and_sorts_by_several_keys() -> None:
    sites = [operations.sites(TRIALS[name].make(*sizes)) for name, sizes in CONTESTS]
    assert not [1 for outside, inside in sites if outside["case"] or inside["case"]]
    lines = operations.table(CONTESTS, timed=False).splitlines()[2:]
    assert not [line for line in lines if " and " in line]
    assert set(lines) <= set(PAGE.read_text().splitlines())
