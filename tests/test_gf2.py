"""Linear algebra over GF(2) against Python integers."""

import functools
import itertools
from fractions import Fraction

import builders
import jax
import numpy as np
import pytest
from builders import packed

from dpjax import bounds
from dpjax.domains import gf2


def reference_rank(rows: list[int]) -> int:
    """Rank of rows given as integers: keep each one reduced by those with other leading digits."""
    basis: list[int] = []
    for row in rows:
        for b in basis:
            row = min(row, row ^ b)
        if row:
            basis.append(row)
    return len(basis)


def as_ints(matrix: np.ndarray) -> list[int]:
    return [int.from_bytes(np.packbits(row.astype(bool)).tobytes(), "big") for row in matrix]


def unpack(words: jax.Array, columns: int) -> np.ndarray:
    """The inverse of `packed`."""
    return np.unpackbits(np.asarray(words).view(np.uint8), axis=-1, bitorder="little")[..., :columns].astype(int)


def a_system(
    rng: np.random.Generator, rows: int, columns: int, k: int, rank: int, noise: int
) -> tuple[np.ndarray, np.ndarray]:
    """A matrix of at most this rank, its labels by k random vectors, and up to `noise` of them flipped."""
    a = rng.integers(0, 2, (rows, rank)) @ rng.integers(0, 2, (rank, columns)) % 2
    if rank >= columns:
        a = rng.integers(0, 2, (rows, columns))
    y = a @ rng.integers(0, 2, (columns, k)) % 2
    for _ in range(noise):
        y[rng.integers(rows), rng.integers(k)] ^= 1
    return a, y


@pytest.mark.parametrize(
    ("rows", "columns", "k"),
    [
        (1, 1, 1),
        (6, 3, 2),
        (3, 6, 2),
        (40, 31, 5),
        (40, 32, 33),
        (70, 33, 64),
        (90, 70, 40),
        builders.slow(150, 101, 7000),
    ],
)
def test_solutions_ranks_and_consistency_are_those_of_a_naive_elimination(rows: int, columns: int, k: int) -> None:
    rng = np.random.default_rng(rows)
    solve = jax.jit(lambda a, y: gf2.solve(a, y, columns=columns))
    seen = set()
    for case in range(24 if k < 1000 else 4):
        a, y = a_system(rng, rows, columns, k, rank=(columns, max(1, columns // 2))[case % 2], noise=case // 2 % 3)
        found = solve(packed(a), packed(y))
        rank = reference_rank(as_ints(a))
        consistent = reference_rank(as_ints(np.concatenate([a, y], axis=1))) == rank
        assert (int(found.rank), bool(found.consistent)) == (rank, consistent)
        if consistent:
            assert (a @ unpack(found.unknowns, k) % 2 == y).all()
        seen.add((rank == columns, consistent))
    assert (rows < columns) or len(seen) >= 2


@pytest.mark.parametrize("rows", [4, builders.thorough(2**14)])
def test_bits_past_the_columns_are_ignored(rows: int) -> None:
    """Also in a matrix that is swept once for several columns."""
    a, y = np.full((rows, 1), 2**32 - 2, np.uint32), np.ones((rows, 1), np.uint32)
    found = jax.jit(functools.partial(gf2.solve, columns=1))(a, y)
    assert int(found.rank) == 0 and not found.consistent and not found.leading[0]


def test_rows_past_the_count_are_ignored_and_vmap_equals_a_loop() -> None:
    rng = np.random.default_rng(1)
    rows, columns, k = 50, 40, 35
    a, y = rng.integers(0, 2, (2, rows, columns)), rng.integers(0, 2, (2, rows, k))
    counts = np.array([50, 17], np.int32)
    solve = functools.partial(gf2.solve, columns=columns)
    together = jax.jit(jax.vmap(lambda a, y, n: solve(a, y, n_valid=n)))(packed(a), packed(y), counts)
    for i, n in enumerate(counts.tolist()):
        alone = jax.jit(solve)(packed(a[i, :n]), packed(y[i, :n]))
        for one, all_ in zip(alone, together, strict=True):
            assert (np.asarray(one) == np.asarray(all_)[i]).all()


@pytest.mark.parametrize(("n", "columns", "k"), [(3, 1, 1), (9, 33, 32), (17, 300, 70)])
def test_products_and_transposes(n: int, columns: int, k: int) -> None:
    rng = np.random.default_rng(n)
    a, b = rng.integers(0, 2, (n, columns)), rng.integers(0, 2, (k, columns))
    assert (np.asarray(jax.jit(gf2.product)(packed(a), packed(b))) == packed(a @ b.T % 2)).all()
    transposed = jax.jit(gf2.transpose, static_argnums=1)(packed(a), columns)
    assert (np.asarray(transposed) == packed(a.T)).all()


@pytest.mark.parametrize(("rows", "columns"), [(1, 1), (2, 2), (3, 2), (4, 3), (2, 3)])
def test_rank_deficiency_is_the_share_of_deficient_matrices(rows: int, columns: int) -> None:
    matrices = itertools.product(range(1 << columns), repeat=rows)
    share = Fraction(sum(reference_rank(list(m)) < columns for m in matrices), 1 << (rows * columns))
    np.testing.assert_allclose(bounds.rank_deficiency(rows, columns), float(share), rtol=1e-14)


def test_rank_deficiency_far_out() -> None:
    for spare in (0, 1, 10, 60, 900):
        found = bounds.rank_deficiency(256 + spare, 256)
        exact = 1 - np.prod([1 - Fraction(1, 1 << e) for e in range(spare + 1, spare + 257)])
        np.testing.assert_allclose(found, float(exact), rtol=1e-12)
        assert found <= 2.0**-spare
    with pytest.raises(ValueError, match="columns must be >= 1"):
        bounds.rank_deficiency(3, 0)
