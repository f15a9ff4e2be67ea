"""Learners on well-known small tables (package `scikit-learn`, BSD licence; extra `data`), with errors on the data themselves.

| table | concept | rule of quantisation |
|---|---|---|
| breast cancer, 569 tumours | benign below a threshold on the worst radius | 0.01, 0 to 50 |
| iris, 150 flowers | versicolor in a rectangle of petal length and width | 0.1 cm, 0 to 12.7 cm each |
| digits, 1,797 images | ten conjunctions of at most 2 literals, one for each digit, epsilon/10 each | a pixel is dark from 8 of 16 on |
"""

import functools
import math
import sys
from collections.abc import Callable
from typing import Any

import jax
import numpy as np
import scipy.stats

import dpjax
from dpjax import Sample
from dpjax.data.assignments import Assignments
from dpjax.data.examples import Examples
from dpjax.domains import wide
from dpjax.learners import conjunctions, rectangles, thresholds
from experiments.records import Row, exact
from experiments.runner import Context
from experiments.settings import Settings

PRIVATE, CONSTANT = "private learner", "best constant answer"
Errors = Callable[[float, int, Any], np.ndarray]


def measure(settings: Settings, context: Context) -> list[Row]:
    """Panels "learners, TABLE": the mean error of a private learner against epsilon, and that of the better constant label."""
    try:
        from sklearn import datasets
    except ImportError:
        print("left out: tables of learners (install scikit-learn by pip install '.[data]')", file=sys.stderr)
        return []
    rows: list[Row] = []
    for name, (make, load) in TABLES.items():
        table = getattr(datasets, load)()
        constant, errors = make(table, settings)
        for number, epsilon in enumerate(settings["learners"]):
            key = jax.random.fold_in(jax.random.fold_in(context.root, 2**30 + len(rows)), number)
            run = functools.partial(_listed, errors, epsilon, settings["draws"], key)
            found = np.asarray(context.store.get_or_compute({"table": name, "epsilon": epsilon}, run))
            far = scipy.stats.t.ppf((1 + settings["level"]) / 2, len(found) - 1) * found.std(ddof=1)
            far /= math.sqrt(len(found))
            rows.append(
                Row(f"learners, {name}", PRIVATE, epsilon, found.mean(), found.mean() - far, found.mean() + far)
            )
            rows.append(exact(f"learners, {name}", CONSTANT, epsilon, constant))
    return rows


def _listed(errors: Errors, epsilon: float, draws: int, key: Any) -> list[float]:
    return errors(epsilon, draws, key).tolist()


@jax.jit
@functools.partial(jax.vmap, in_axes=(None, 0, None))
def _hypotheses(learner: Any, key: Any, data: Any) -> Any:
    return learner(key, data).hypothesis


def _threshold(table: Any, settings: Settings) -> tuple[float, Errors]:
    """A threshold on the worst radius (column 20); a benign tumour has label 1."""
    y = table.target.astype(np.int32)
    column = dpjax.encode(table.data[:, 20], unit=0.01, low=0, high=50, clip=True)
    codes = np.asarray(column.points.x)[:, -1].astype(np.int64)
    # A threshold may be 2^d, which needs one more bit.
    sample = Sample(x=wide.from_ints(codes.tolist(), column.bits + 1), y=y)

    def errors(epsilon: float, draws: int, key: Any) -> np.ndarray:
        learner = thresholds.exponential(bits=column.bits, epsilon=epsilon)
        found = np.asarray(_hypotheses(learner, jax.random.split(key, draws), sample))[:, -1]
        return np.mean((codes[None] < found[:, None]) != y[None], axis=1)

    return min(y.mean(), 1 - y.mean()), errors


def _rectangle(table: Any, settings: Settings) -> tuple[float, Errors]:
    """A rectangle of petal length and width (columns 2 and 3); versicolor is class 1."""
    y = (table.target == 1).astype(np.int32)
    codes = np.rint(np.clip(table.data[:, 2:], 0, 12.7) * 10).astype(np.int64)
    examples = Examples.create(wide.from_ints(codes.reshape(-1).tolist(), 7).reshape(*codes.shape, 1), y)

    def errors(epsilon: float, draws: int, key: Any) -> np.ndarray:
        learner = rectangles.rectangles(
            axes=2, bits=7, epsilon=epsilon, delta=settings["delta"], beta=settings["beta"], accountant="basic"
        )
        found = _hypotheses(learner, jax.random.split(key, draws), examples)
        low, high = (np.asarray(side)[:, None, :, -1].astype(np.int64) for side in (found.low, found.high))
        inside = ((low <= codes[None]) & (codes[None] <= high)).all(axis=2)
        return np.mean(inside != (y == 1), axis=1)

    return min(y.mean(), 1 - y.mean()), errors


def _conjunctions(table: Any, settings: Settings) -> tuple[float, Errors]:
    """Ten learners of conjunctions on one sample; the error is the mean over them."""
    dark = (table.data >= 8).astype(np.int32)
    labels = [(table.target == digit).astype(np.int32) for digit in range(10)]
    data = [Assignments.create(dark, y) for y in labels]

    def errors(epsilon: float, draws: int, key: Any) -> np.ndarray:
        learner = conjunctions.exponential(bits=64, k=2, epsilon=epsilon / 10)
        missed = []
        for digit, (one, y) in enumerate(zip(data, labels, strict=True)):
            keys = jax.random.split(jax.random.fold_in(key, digit), draws)
            found = _hypotheses(learner, keys, one)
            says = np.asarray(jax.vmap(lambda each, one=one: each.predict(one))(found))[:, : len(y)]
            missed.append(np.mean(says != (y == 1), axis=1))
        return np.mean(missed, axis=0)

    return float(np.mean([min(y.mean(), 1 - y.mean()) for y in labels])), errors


TABLES: dict[str, tuple[Callable[[Any, Settings], tuple[float, Errors]], str]] = {
    "breast cancer, a threshold": (_threshold, "load_breast_cancer"),
    "iris, a rectangle": (_rectangle, "load_iris"),
    "digits, ten conjunctions": (_conjunctions, "load_digits"),
}
