"""Sorts by several keys: one order on every platform, and on a GPU by sorts of one key only."""

import builders
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dpjax.core import sorting


def columns() -> list[np.ndarray]:
    """Batches of three keys with many ties, and where each row stood."""
    rng = np.random.default_rng(0)
    keys = rng.integers(0, 4, (3, 5, 200), dtype=np.uint32)
    return [*keys, np.broadcast_to(np.arange(200, dtype=np.int32), (5, 200))]


def test_both_ways_are_the_order_of_numpy() -> None:
    given = columns()
    expected = np.lexsort(given[2::-1])

    def both(*given: jax.Array) -> tuple[tuple[jax.Array, ...], ...]:
        return sorting.sort(given[:3], given[3]), sorting.in_passes(given, 3)

    for found in jax.jit(jax.vmap(both))(*given):
        for one, column in zip(found, given, strict=True):
            np.testing.assert_array_equal(one, np.take_along_axis(column, expected, axis=1))


def test_a_gpu_sorts_by_one_key_and_a_cpu_by_all_at_once() -> None:
    lowered = jax.jit(jax.vmap(lambda *given: sorting.sort(given[:3], given[3]))).trace(*map(jnp.asarray, columns()))
    texts = {platform: lowered.lower(lowering_platforms=(platform,)).as_text() for platform in ("cuda", "cpu")}
    compared = {
        platform: [
            part.split("stablehlo.return")[0].count("stablehlo.compare") for part in text.split('stablehlo.sort"')[1:]
        ]
        for platform, text in texts.items()
    }
    assert compared["cuda"] == [1, 1, 1]
    assert len(compared["cpu"]) == 1 and compared["cpu"][0] > 1


@pytest.mark.parametrize("dtype", ["float32", builders.thorough("float64")])
def test_floats_are_in_order_with_their_derivatives(dtype: str, x64: None) -> None:
    rng = np.random.default_rng(1)
    x = np.concatenate([rng.normal(size=50), [np.inf, -np.inf, 0.0, -0.0, 1e-40, -1e-40], rng.integers(-3, 3, 20)])
    x = rng.permutation(x).astype(dtype)
    in_order = jax.jit(sorting.floats)
    np.testing.assert_array_equal(in_order(x), np.sort(x))  # jnp.sort treats the smallest numbers as 0
    assert in_order(x).dtype == x.dtype
    assert np.isnan(in_order(np.append(x[1:], np.array(np.nan, dtype)))).any()
    x = x[np.abs(x) > 1e-30]
    weights = np.arange(x.size, dtype=x.dtype)

    @jax.jit
    def slopes(x):
        return [jax.grad(lambda x, f=f: jnp.sum(weights * f(x)))(x) for f in (sorting.floats, jnp.sort)]

    ours, theirs = slopes(x)
    np.testing.assert_array_equal(ours, theirs)
