"""Selection against sorted lists."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dpjax.domains import selection

FIRST = jax.jit(selection.first)


@pytest.mark.parametrize(
    ("kind", "limbs"), [(np.uint32, 0), (np.uint32, 2), (np.uint32, 9), (np.int32, 0), (np.int8, 2)]
)
def test_the_first_rows_are_those_of_a_sort(kind, limbs):
    """With ties, the ends of the type, absent rows, and counts above the number of rows."""
    rng, ends = np.random.default_rng(limbs), np.iinfo(kind)
    rows = 40
    for top in (3, 100):
        for count in (0, 1, 7, 20, rows, rows + 5):
            shape = (rows, limbs) if limbs else (rows,)
            key = rng.integers(0, top, shape).astype(kind)
            key = np.where(rng.random(shape) < 0.3, rng.choice([ends.min, ends.max], shape), key).astype(kind)
            last, present = rng.integers(0, 2, rows).astype(np.int32), rng.random(rows) < 0.8
            found = FIRST(jnp.int32(count), jnp.asarray(present), [jnp.asarray(key), jnp.asarray(last)])
            order = sorted(np.flatnonzero(present), key=lambda i: (*np.atleast_1d(key[i]).tolist(), last[i], i))
            assert np.flatnonzero(found).tolist() == sorted(order[:count])


@pytest.mark.parametrize("rows", [1, 31, 100, 1000])
def test_places_are_those_of_the_marks(rows):
    rng = np.random.default_rng(rows)
    places = jax.jit(selection.places, static_argnums=1)
    for share in (0.0, 0.03, 0.5, 1.0):
        marked = rng.random(rows) < share
        for capacity in (1, 20):
            found = np.asarray(places(jnp.asarray(marked), capacity))
            expected = np.flatnonzero(marked)[:capacity]
            assert found[: len(expected)].tolist() == expected.tolist() and (found < rows).all()
