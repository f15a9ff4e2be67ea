"""Keeping XLA from computing an intermediate array over and over, or one that nobody needs."""

import contextlib
import functools
import gc
import os
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Real

T = TypeVar("T")
FEW_ROWS = 16
SHORT_ROW = 8  # limbs: rows up to this length are cut into columns, so that vector instructions run along the rows


def once(function: Callable[..., T], *operands: Any) -> T:
    """function(*operands), computed once and stored, however often it is used.

    XLA's CPU fusion copies cheap arithmetic into every consumer. With limbs that depend on each other the copies multiply from stage to
    stage (18-fold for an addition of three limbs), and an optimization barrier is removed before fusion. The outputs of a conditional are
    stored, so the function becomes a branch of one whose condition always holds. On other platforms it is called as it is: compilers of
    GPUs keep fusions small, and the host would wait for the device to report how each conditional turned out.

    >>> once(lambda x: x + 1, jnp.ones(2)).tolist()
    [2.0, 2.0]
    """

    if jax.default_backend() != "cpu":
        return function(*operands)

    def stored(*operands: Any) -> Any:
        return apart(function(*together(operands)))

    operands = apart(operands)
    shapes = jax.eval_shape(stored, *operands)
    zeros = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), shapes)
    return together(lax.cond(_holds(), stored, lambda *_: zeros, *operands))


def _holds() -> Bool[Array, ""]:
    """True, but unknown to the compiler, and never batched: `vmap` would turn a conditional on a batched one into a select.

    The optimization barrier hides the constant while XLA simplifies conditionals. It is removed later.
    """
    return lax.optimization_barrier(jnp.bool_(True))


def unless(done: Bool[Array, ""], value: T, otherwise: Callable[..., T], *operands: Any) -> T:
    """value if done, else otherwise(*operands), which is computed only then: for fast ways that are not always available.

    `vmap` turns a conditional into a select, and both branches are always computed. A loop that ends after its first turn becomes one that
    runs if any member of the batch is not done.

    >>> unless(jnp.bool_(False), jnp.int32(1), lambda x: x + 1, jnp.int32(1)).tolist()
    2
    """

    def turn(state: tuple[Array, T]) -> tuple[Array, T]:
        # The operands must seem to depend on the state: XLA computes in advance, before the loop, what does not.
        given = jax.tree.map(lambda leaf: jnp.where(state[0], jnp.zeros_like(leaf), leaf), operands)
        return jnp.bool_(True), otherwise(*together(given))

    operands = apart(operands)
    # `done` must not be a constant: XLA would see that no turn changes it, so that what a turn computes does not depend on the state.
    return lax.while_loop(lambda state: ~state[0], turn, (done & _holds(), value))[1]


def one_by_one(function: Callable[..., T]) -> Callable[..., T]:
    """The function, which `vmap` runs for one lane after another on a CPU: for loops with a large state whose numbers of turns differ.

    Under `vmap` a loop runs for all lanes until the last one is done, and copies the state of all lanes in every turn.

    >>> jax.vmap(one_by_one(lambda x, y: x + y), in_axes=(0, None))(jnp.arange(3), jnp.int32(2)).tolist()
    [2, 3, 4]
    """
    return jax.custom_batching.sequential_vmap(function) if jax.default_backend() == "cpu" else function


def least(x: Real[Array, "n *many"]) -> Real[Array, "*many"]:
    """The minimum along the first axis, by halves: XLA's CPU reduction does not use vector instructions, and takes three times as long.

    >>> least(jnp.array([3, 1, 2])).tolist()
    1
    """
    return _by_halves(x, jnp.minimum, jnp.min)


def greatest(x: Real[Array, "n *many"]) -> Real[Array, "*many"]:
    """The maximum along the first axis, likewise."""
    return _by_halves(x, jnp.maximum, jnp.max)


def _by_halves(x: Array, better: Callable[[Array, Array], Array], best: Callable[[Array], Array]) -> Array:
    """The best along the first axis: few rows are compared one after another, in one pass.

    Among few numbers XLA's reduction finds the best, since its result is stored: comparisons would be made again for every use of it.
    """
    while x.shape[0] > FEW_ROWS:
        half = (x.shape[0] + 1) // 2
        x = better(x[:half], x[-half:])  # the one in the middle may be in both
    return functools.reduce(better, x) if x.ndim > 1 else best(x)


def compiled_fast() -> dict[str, Any]:
    """Compiler options for a program that takes longer to compile than to run, such as a law of a few dozen samples.

    On a CPU, JAX before 0.11 can do without the emitters of fusions, which takes a quarter off XLA's time. Most programs then run as
    fast, some (loops that change packed coins) take three times as long. A setting in XLA_FLAGS stands.
    """
    return _on_cpu("xla_cpu_use_fusion_emitters", False) if jax.__version_info__ < (0, 11) else {}


def with_wide_vectors() -> dict[str, Any]:
    """Compiler options for a program that runs for long, such as a count of many trials.

    On a CPU, XLA asks LLVM for vectors of 256 bits even where there are some of 512, because the first processors that had these lowered
    their clock for them. Random words then take twice as long, and a trial a quarter longer. Rounding does not change. A setting in
    XLA_FLAGS stands.
    """
    return _on_cpu("xla_cpu_prefer_vector_width", 512)


@contextlib.contextmanager
def uncollected() -> Iterator[None]:
    """Keeps Python's garbage collector off while a large program is traced.

    Tracing makes tens of thousands of objects that all stay until the program is complete. Whenever their number has grown enough, the
    collector examines them and everything else in the process, and finds nothing; this takes a quarter of the time.

    >>> before = gc.isenabled()
    >>> with uncollected():
    ...     gc.isenabled()
    False
    >>> gc.isenabled() == before
    True
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def _on_cpu(flag: str, value: Any) -> dict[str, Any]:
    """A flag of XLA as compiler options, for programs of the CPU whose user has not set it."""
    return {flag: value} if jax.default_backend() == "cpu" and flag not in os.environ.get("XLA_FLAGS", "") else {}


class _Columns(tuple):
    """The columns of an array with short rows (of limbs): stored one by one."""


jax.tree_util.register_pytree_node(_Columns, lambda parts: (tuple(parts), None), lambda _, parts: _Columns(parts))


def apart(tree: Any) -> Any:
    """Arrays with short rows cut into columns. What a loop reads should be cut before it, and put `together` inside."""

    def cut(leaf: Array) -> Any:
        short = leaf.ndim > 1 and leaf.shape[-1] <= SHORT_ROW
        return _Columns(leaf[..., i] for i in range(leaf.shape[-1])) if short else leaf

    return jax.tree.map(cut, tree)


def together(tree: Any) -> Any:
    """The inverse of `apart`."""
    is_cut = lambda part: isinstance(part, _Columns)  # noqa: E731
    return jax.tree.map(lambda part: jnp.stack(part, axis=-1) if is_cut(part) else part, tree, is_leaf=is_cut)
