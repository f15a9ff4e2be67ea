"""Packed bits and k-labelled samples."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dpjax import MultiSample
from dpjax.core import bits, logspace
from dpjax.domains import wide
from dpjax.multi import parities


@pytest.mark.parametrize("k", [1, 31, 32, 33, 100])
def test_packed_bits_are_what_numpy_packs(k):
    values = np.random.default_rng(k).integers(0, 2, (3, 5, k)).astype(bool)

    @jax.jit
    def all_of(values):
        packed = bits.pack(values)
        columns = jax.vmap(lambda j: bits.column(packed, j), out_axes=-1)(jnp.arange(k))
        return packed, bits.unpack(packed, k), columns, bits.count(packed), bits.odd(packed)

    packed, unpacked, columns, count, odd = all_of(values)
    bytes_ = np.packbits(values, axis=-1, bitorder="little")
    bytes_ = np.pad(bytes_, [(0, 0), (0, 0), (0, 4 * bits.words_for(k) - bytes_.shape[-1])])
    np.testing.assert_array_equal(packed, bytes_.view("<u4"))
    np.testing.assert_array_equal(unpacked, values)
    np.testing.assert_array_equal(columns, values)
    np.testing.assert_array_equal(count, values.sum(axis=-1))
    np.testing.assert_array_equal(odd, values.sum(axis=-1) % 2)


def sample_of(rows=5, k=40, n_valid=3):
    rng = np.random.default_rng(0)
    x = wide.from_ints([int(v) for v in rng.integers(0, 2**63, rows)], 64)
    return MultiSample.create(x, rng.integers(0, 2, (rows, k)), n_valid)


def test_columns_of_a_multi_sample_are_samples():
    sample = sample_of()
    x, labels, column_of = np.asarray(sample.x), np.asarray(sample.labels), jax.jit(MultiSample.column)
    for j in (0, 31, 32, 39):
        column = jax.device_get(column_of(sample, j))
        assert (column.x == x).all() and column.n_valid == 3
        assert column.y.tolist() == labels[:, j].astype(int).tolist()
    assert sample.valid.tolist() == [True] * 3 + [False] * 2


def test_padding_a_multi_sample_changes_nothing_that_counts():
    sample, padded = jax.device_get(sample_of()), jax.device_get(sample_of().padded())
    assert padded.rows == 7 and padded.k == 40 and int(padded.n_valid) == 3
    assert (padded.x[:5] == sample.x).all() and (padded.y[:5] == sample.y).all()


@pytest.mark.parametrize(
    ("x", "y", "n_valid", "error", "message"),
    [
        (np.zeros((2, 1), np.int32), np.zeros((2, 1)), None, TypeError, "x must be a uint32 array"),
        (np.zeros((2, 1), np.uint32), np.zeros((3, 1)), None, ValueError, "y must have one row of k"),
        (np.zeros((2, 1), np.uint32), np.zeros((2, 0)), None, ValueError, "y must have one row of k"),
        (np.zeros((2, 1), np.uint32), np.zeros(2), None, ValueError, "y must have one row of k"),
        (np.zeros((2, 1), np.uint32), [["a"], ["b"]], None, TypeError, "y must be an array of numbers"),
        (np.zeros((2, 1), np.uint32), [[1], [2]], None, ValueError, r"got y\[1, 0\] = 2"),
        (np.zeros((2, 1), np.uint32), [[1], [0]], 3, ValueError, "n_valid must be from 1 to 2"),
        (np.zeros((2, 1), np.uint32), [[1], [0]], 0, ValueError, "n_valid must be from 1 to 2"),
    ],
)
def test_bad_multi_samples_are_refused(x, y, n_valid, error, message):
    with pytest.raises(error, match=message):
        MultiSample.create(x, y, n_valid)


def test_traced_labels_other_than_zeros_and_ones_show_in_the_count():
    x = wide.from_ints([1, 2], 2)
    counted = jax.jit(lambda y: MultiSample.create(x, y).n_valid)
    rows = [[[1, 0], [0, 1]], [[1, 0.5], [0, 1]], [[2, 0], [0, 1]]]
    assert [int(counted(jnp.array(y, float))) for y in rows] == [2, -1, -1] and counted(jnp.array(rows[0], bool)) == 2


def test_traced_labels_of_rows_that_do_not_count_may_be_anything():
    x = wide.from_ints([1, 2], 2)
    counted = jax.jit(lambda y, n: MultiSample.create(x, y, n).n_valid)
    assert [int(counted(jnp.array([[0], [2]]), n)) for n in (1, 2)] == [1, -1]


def test_labels_that_nobody_packed_are_refused():
    """Zeros and ones where packed words belong would be read as other labels."""
    learner = parities.parity_learner(bits=3, k=3, epsilon=1.0, delta=1e-6, size=8)
    x, y = wide.from_ints([1, 2, 3], 3), np.zeros((3, 3), np.uint32)
    for bad in (y, y.astype(np.int32), y[:2, :1], None):
        with pytest.raises(
            ValueError, match=r"sample.y must be packed labels, uint32 of shape \(3, 1\), as MultiSample.create"
        ):
            learner(jax.random.key(0), MultiSample(x=x, y=bad, n_valid=jnp.int32(3), k=3))


def test_columns_that_there_are_not_are_refused():
    sample = MultiSample.create(wide.from_ints([1, 2], 2), [[1, 1], [1, 0]])
    assert sample.column(1).y.tolist() == sample.column(np.int8(1)).y.tolist() == [1, 0]
    for j in (-1, 2, 33):
        with pytest.raises(ValueError, match=f"j must be from 0 to 1, got {j}"):
            sample.column(j)
    with pytest.raises(TypeError, match="j must be an int"):
        sample.column(1.0)


@pytest.mark.thorough
def test_probabilities_that_round_to_one_are_multiplied_by_their_complements():
    count, q = 10**6, 2e-8
    laws = np.full((count, 2), [1 - q, q], np.float32)  # the product of what is stored first is 1
    assert abs(float(jax.jit(logspace.all_happen)(laws)[0]) - math.exp(count * math.log1p(-q))) < 1e-6
