"""Derivatives of every law in every number it depends on continuously: they agree with differences, and are finite at the edges.

There is one program per algorithm: it maps the numbers and the data to one value that every outcome enters, and to the derivatives of that
value in both modes.
"""

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree
from registry import ENTRIES, Entry
from test_conformance import padded

from dpjax import Points
from dpjax.mechanisms import exponential, report_noisy_max, stability
from dpjax.relaxations.floats import combine, partition

BY_DEFAULT = {"mechanisms.stability", "mechanisms.partition_selection"}
STEP = 2e-3  # relative; by Richardson's rule the error of differences is about its fourth power
GENERIC = 0.97  # entries have round numbers, some of them ends of ranges or kinks, where derivatives are one-sided
LAWS = [
    pytest.param(entry, id=entry.name, marks=[] if entry.name in BY_DEFAULT else [pytest.mark.slow])
    for entry in ENTRIES
    if entry.law is not None and entry.private  # the others have no numbers
]


def moved(path: Any, leaf: Any) -> bool:
    """Whether a law depends continuously on a leaf: infinity means "no noise", 0 "none of that", and n is the size of the data."""
    return jax.tree_util.keystr(path[-1:]) != ".n" and bool(np.isfinite(leaf).all() and np.all(leaf))


class Sweep:
    """One law as a function of its numbers, and the data at which it is evaluated."""

    def __init__(self, entry: Entry) -> None:
        self.entry = entry
        floats, others = partition(entry.make(entry.smooth_epsilon))
        by_path = jax.tree_util.tree_map_with_path
        keep = by_path(lambda path, leaf: None if moved(path, leaf) else leaf, floats)
        start, unravel = ravel_pytree(by_path(lambda path, leaf: leaf if moved(path, leaf) else None, floats))
        self.start = GENERIC * np.asarray(start, np.float64)
        self.names = [
            jax.tree_util.keystr(path)
            for path, leaf in jax.tree_util.tree_leaves_with_path(floats)
            if moved(path, leaf)
            for _ in range(np.size(leaf))
        ]
        self.data = padded(entry.data(), more=not entry.sized)

        def value(numbers: Any, data: Any) -> jax.Array:
            algorithm = combine(combine(unravel(numbers), keep), others)
            law = entry.law(algorithm, data)
            total = jnp.sum(law * jnp.cos(jnp.arange(1.0, law.shape[0] + 1)))
            if entry.error is not None:
                total = total + 1.5 * algorithm.failure_probability(data, error=entry.error)
            return total

        @jax.jit
        def slopes(numbers: Any, data: Any) -> Any:
            value_there, push = jax.linearize(lambda numbers: value(numbers, data), numbers)
            (reverse,) = jax.linear_transpose(push, numbers)(jnp.ones_like(value_there))
            return value_there, jax.vmap(push)(jnp.eye(len(numbers))), reverse

        self._slopes = slopes

    def slopes(self, numbers: Any, data: Any = None) -> tuple[float, np.ndarray, np.ndarray]:
        """(the value, its derivatives in forward mode, and in reverse mode), each derivative in ln of a number."""
        found = self._slopes(jnp.asarray(numbers), self.data if data is None else data)
        value, forward, reverse = map(np.asarray, found)
        return float(value), forward * numbers, reverse * numbers

    def differences(self) -> np.ndarray:
        """The same derivatives by central differences with two step sizes."""
        found = []
        for i in range(len(self.start)):
            along = np.eye(len(self.start))[i]
            wide, narrow = (
                (self.slopes(self.start * (1 + h * along))[0] - self.slopes(self.start * (1 - h * along))[0]) / (2 * h)
                for h in (STEP, STEP / 2)
            )
            found.append((4 * narrow - wide) / 3)
        return np.array(found)

    def edges(self) -> dict[str, tuple[np.ndarray, Any]]:
        """Numbers at the ends of their ranges; data with ties, or with hardly any rows."""

        def put(word: str, value: float) -> np.ndarray:
            there = [np.log(value) if f"log_{word}" in name else value for name in self.names]
            return np.array(
                [y if word in name else x for name, x, y in zip(self.names, self.start, there, strict=True)]
            )

        numbers = {f"{word} {value:g}": put(word, value) for word, value in EDGES}
        cases = {name: (there, None) for name, there in numbers.items()}
        datasets = {"ties": tied(self.data)}
        if hasattr(self.data, "n_valid") and not hasattr(self.entry.make(self.entry.epsilon), "n"):
            least = 0 if isinstance(self.data, Points) else 1
            datasets["hardly any"] = with_count(self.data, least)
        cases |= {name: (self.start, data) for name, data in datasets.items()}
        return cases


EDGES = (("epsilon", 1e-6), ("epsilon", 50.0), ("delta", 1e-300))


def tied(data: Any) -> Any:
    """Every row becomes the first one; numbers that are not rows stay as they are."""
    rows = max((np.shape(leaf)[0] for leaf in jax.tree.leaves(data) if np.ndim(leaf)), default=0)

    def tie(leaf: Any) -> Any:
        leaf = np.asarray(leaf)
        of_rows = leaf.ndim and leaf.shape[0] == rows and leaf.dtype != bool
        return np.broadcast_to(leaf[:1], leaf.shape) if of_rows else leaf

    return jax.tree.map(tie, data)


def with_count(data: Any, n: int) -> Any:
    """The same data with n valid rows."""
    leaves, structure = jax.tree_util.tree_flatten_with_path(data)
    return structure.unflatten(
        [np.int32(n) if jax.tree_util.keystr(path).endswith("n_valid") else leaf for path, leaf in leaves]
    )


@functools.cache
def sweep(name: str) -> Sweep:
    """The program of an entry, made once."""
    return Sweep(next(entry for entry in ENTRIES if entry.name == name))


@pytest.mark.parametrize("entry", LAWS)
def test_both_modes_agree_with_differences(entry: Entry, x64: None) -> None:
    at = sweep(entry.name)
    _, forward, reverse = at.slopes(at.start)
    expected = at.differences()
    np.testing.assert_allclose(reverse, forward, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(forward, expected, rtol=1e-6, atol=1e-9, err_msg=str(at.names))
    assert np.abs(expected).max() > 1e-6


@pytest.mark.parametrize("entry", LAWS)
def test_derivatives_are_finite_at_the_edges(entry: Entry, x64: None) -> None:
    at = sweep(entry.name)
    for case, (numbers, data) in at.edges().items():
        for part in at.slopes(numbers, data):
            assert np.isfinite(part).all(), (case, dict(zip(at.names, np.atleast_1d(part), strict=False)))


@pytest.mark.parametrize(
    "mechanism", [exponential, report_noisy_max, stability], ids=lambda mechanism: mechanism.__name__
)
def test_laws_have_derivatives_in_scores_that_are_real(mechanism: Any, x64: None) -> None:
    """Relaxed data go through a law on real scores; where scores are tied, derivatives are one-sided but finite."""
    given = {"epsilon": 0.7} | ({"delta": 0.1} if mechanism is stability else {})
    law = jax.jit(lambda scores: jnp.exp(mechanism.log_pmf(scores, **given)))
    forward, reverse = jax.jit(jax.jacfwd(law)), jax.jit(jax.jacrev(law))
    scores, step = jnp.array([1.0, 2.3, 3.1]), 1e-3

    def quotient(step: float) -> np.ndarray:
        moves = step * np.eye(3)
        return np.stack([(law(scores + move) - law(scores - move)) / (2 * step) for move in moves], axis=1)

    expected = (4 * quotient(step / 2) - quotient(step)) / 3
    np.testing.assert_allclose(forward(scores), expected, rtol=1e-6, atol=1e-10)
    np.testing.assert_allclose(reverse(scores), expected, rtol=1e-6, atol=1e-10)
    for tied_scores in (jnp.ones(3), jnp.array([2.0, 2.0, 1.0]), jnp.array([0.0, 0.0, 1e4])):
        assert np.isfinite(forward(tied_scores)).all() and np.isfinite(reverse(tied_scores)).all()


def test_a_derivative_that_is_a_little_wrong_is_noticed(x64: None) -> None:
    """Negative control: the derivatives at an epsilon that is larger by a factor of 1 + 1e-5."""
    at = sweep("mechanisms.stability")
    _, forward, _ = at.slopes(at.start * np.where(["epsilon" in name for name in at.names], 1 + 1e-5, 1.0))
    with pytest.raises(AssertionError, match="Mismatched"):
        np.testing.assert_allclose(forward, at.differences(), rtol=1e-6, atol=1e-9)
