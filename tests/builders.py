"""Small data that tests share."""

from typing import Any

import jax
import numpy as np
import pytest

from dpjax import MultiSample, Points, Sample
from dpjax.data.assignments import Assignments
from dpjax.domains import wide
from dpjax.optimizers import interior_point, quantiles
from dpjax.sanitizers import cdf
from dpjax.verify.plain import tree_log


def slow(*values: Any) -> Any:
    """A case of a parametrised test that another case represents by default; run it with -m slow."""
    return pytest.param(*values, marks=pytest.mark.slow)


def thorough(*values: Any) -> Any:
    """The same for a case that takes seconds; run it with -m "not slow"."""
    return pytest.param(*values, marks=pytest.mark.thorough)


def step_functions(bits: int) -> Any:
    """A sanitizer of thresholds over X_bits."""
    solver = interior_point.exponential(bits=bits + 8, epsilon=1.0)
    return cdf.release(quantiles=quantiles.recursive(solver=solver, bits=bits, depth=2, m=20))


def on_cpu(test: Any) -> Any:
    """Marks a test of what programs compiled for a CPU look like, or of where their blocks fit."""
    return pytest.mark.skipif(jax.default_backend() != "cpu", reason="says how it is on a CPU")(test)


def sample_of(xs: Any, ys: Any, bits: int, rows: int | None = None) -> Sample:
    """A labelled sample, padded on the host without programs; points have `bits` + 1 bits, so that neighbouring widths share a program."""
    n, extra = len(xs), 0 if rows is None else rows - len(xs)
    return Sample(x=wide.from_ints([*map(int, xs), *[0] * extra], bits + 1), y=np.pad(ys, (0, extra)), n_valid=n)


def mixed_sample(seed: int = 0, n: int = 50, rows: int = 63) -> Sample:
    """Ones below 20, zeros from 20 on, a fifth of the labels wrong, many ties; 6 bits."""
    rng = np.random.default_rng(seed)
    xs = rng.integers(0, 64, 12)[rng.integers(0, 12, n)]
    return sample_of(xs, (xs < 20) ^ (rng.random(n) < 0.2), 6, rows)


def packed(matrix: Any) -> np.ndarray:
    """`dpjax.core.bits.pack` on the host, without a program for every shape."""
    matrix = np.ascontiguousarray(matrix, bool)
    padded = np.pad(matrix, [(0, 0)] * (matrix.ndim - 1) + [(0, -matrix.shape[-1] % 32)])
    return np.packbits(padded, axis=-1, bitorder="little").view("<u4")


def assignments_of(values: Any, sizes: Any) -> Assignments:
    """Datasets of records 2 x + y: x in {0, ..., 3} are two variables, y is the label; values (..., up to 32), sizes (...)."""
    x, y = (values // 2)[..., None] >> np.arange(2) & 1, values % 2
    places = np.arange(values.shape[-1], dtype=np.uint32)
    words = np.sum(x.astype(np.uint32) << places[:, None], axis=-2, dtype=np.uint32)
    labels = np.sum(y.astype(np.uint32) << places, axis=-1, dtype=np.uint32)
    return Assignments(x=words[..., None, :], y=labels[..., None], n_valid=sizes)


def points_of(xs: Any, bits: int, rows: int | None = None) -> Points:
    """Points, padded on the host."""
    extra = 0 if rows is None else rows - len(xs)
    return Points.create(wide.from_ints([*map(int, xs), *[0] * extra], bits), len(xs))


def multi_sample_of(xs: Any, ys: Any, bits: int, rows: int) -> MultiSample:
    """A sample with k labels an example, padded on the host."""
    extra = rows - len(xs)
    labels = np.pad(np.asarray(ys), ((0, extra), (0, 0)))
    return MultiSample.create(wide.from_ints([*map(int, xs), *[0] * extra], bits), labels, len(xs))


def tree_log_pmf(values: list[int], bits: int, plan: Any) -> np.ndarray:
    """TreeLog's law under a plan, by its plain twin; bottom comes last."""
    budget = plan.budget
    level = tree_log.Level(
        walk_epsilon=budget.walk_epsilon,
        walk_delta=plan.stop_delta,
        t1=plan.t1,
        t2=plan.t2,
        m1=plan.m1,
        m2=plan.m2,
        stable_epsilon=budget.select_epsilon,
        stable_delta=budget.select_delta,
        count_epsilon=budget.count_epsilon,
        slice_epsilon=budget.slice_epsilon,
    )
    law = tree_log.tree_log_law(values, bits, [level] * plan.depth, budget.base_epsilon, monotone=True)
    return np.array([law.get(x, 0.0) for x in [*range(2**bits), None]])
