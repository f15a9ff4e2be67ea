"""Running any algorithm many times: compiled where JAX can trace it, else in a Python loop."""

import dataclasses
import functools
import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from dpjax.core import tracing
from dpjax.data.algorithm import of_dpjax
from dpjax.data.outcome import Outcome, Status

BLOCK = 2048  # runs by one call of a compiled program
_MIXED = "the algorithm must return always one real number or never, got one and something else"
_FORMS = "the algorithm must return its real number always in one structure, of one shape: which of several comes is released, too"
_FORM = "form"
_REAL = "real"  # the entry of a book that says whether results are real numbers
_NOTHING = -1  # the status of None, which no outcome has


class Incomparable(TypeError):
    """What an algorithm returned is of a kind that cannot be compared between runs."""


@dataclasses.dataclass(frozen=True)
class Runner:
    """Runs of an algorithm on datasets given as record values.

    Attributes:
      algorithm: (key, data) -> result.
      make: (values, size) -> data.
      note: why JAX cannot compile it, in words; empty if it can.
      book: the code of every outcome met in a Python loop.
    """

    algorithm: Any
    make: Callable[[Any, Any], Any]
    note: str = ""
    book: dict[Any, int] = dataclasses.field(default_factory=dict)

    @property
    def compiled(self) -> bool:
        """Whether runs are compiled."""
        return not self.note

    def outcomes(self, key: jax.Array, values: np.ndarray, size: Any, runs: int) -> np.ndarray:
        """The outcomes of `runs` runs (if compiled, of whole blocks): rows of integers, or real numbers; see `audit_samples`."""
        if not self.compiled:
            return self._coded(self._looped(key, values, size, runs))
        given = jnp.asarray(values), jnp.asarray(size)
        blocks = (jax.random.split(one, BLOCK) for one in jax.random.split(key, -(-runs // BLOCK)))
        rows = np.concatenate([np.asarray(self._block(keys, *given)) for keys in blocks])
        return _on_a_line(rows[:, 0], _status(*rows[:, 1:].T)) if _is_real(rows) else rows

    def several(self, keys: Any, datasets: Sequence[tuple[np.ndarray, Any]], runs: int) -> list[np.ndarray]:
        """`outcomes` on each dataset; those of a Python loop are coded together, as the code of blank results depends on the others."""
        if self.compiled:
            return [self.outcomes(key, *each, runs) for key, each in zip(keys, datasets, strict=True)]
        results = [self._looped(key, *each, runs) for key, each in zip(keys, datasets, strict=True)]
        return np.split(self._coded([*itertools.chain(*results)]), len(datasets))

    def _looped(self, key: jax.Array, values: np.ndarray, size: Any, runs: int) -> list[Any]:
        """What `runs` runs return, one after another."""
        data = self.make(values, size)
        keys = jax.random.split(key, runs)
        # Iterating over an array of keys runs programs for a hundred of them each, and compiling one takes a second.
        each = functools.partial(jax.random.wrap_key_data, impl=jax.random.key_impl(keys))
        return [self.algorithm(each(words), data) for words in np.asarray(jax.random.key_data(keys))]

    @functools.cached_property
    def _block(self) -> Callable[..., jax.Array]:
        """Many runs at once: a program that lives as long as this runner, but holds no reference to it."""
        return jax.jit(jax.vmap(functools.partial(_observed, self.algorithm, self.make), in_axes=(0, None, None)))

    def _coded(self, results: Sequence[Any]) -> np.ndarray:
        """Real numbers (see `_on_a_line`), or equal codes for equal results of one structure."""
        rows = [released(result, np) for result in results if not _is_blank(result)]
        if any(map(_is_real, rows)) or self.book.get(_REAL, False):
            if self.book.setdefault(_REAL, True) is False:
                raise Incomparable(_MIXED)
            numbers = [_real(result) for result in results]
            forms = {_form(result) for result, (_, status) in zip(results, numbers, strict=True) if status == Status.OK}
            if forms and len(forms | {self.book.setdefault(_FORM, next(iter(forms)))}) > 1:
                raise Incomparable(_FORMS)
            return _on_a_line(*np.array(numbers).T)
        if rows:
            self.book[_REAL] = False
        return np.array([self.book.setdefault(_token(result), len(self.book)) for result in results])


def _real(result: Any) -> tuple[float, int]:
    """(The number, also if it is an integer among real ones; the status) of one run in a Python loop."""
    if result is None:
        return math.nan, _NOTHING
    number, *others = _shown(result)[1]
    if _is_blank(result):
        number, others = math.nan, [number]  # a status alone
    if np.size(number) != 1 or len(others) > isinstance(result, Outcome):
        raise Incomparable(_MIXED)
    return float(np.reshape(number, ())), int(others[0]) if others else Status.OK


def _is_blank(result: Any) -> bool:
    """Whether the result holds no hypothesis."""
    return result is None or (isinstance(result, Outcome) and not jax.tree.leaves(result.hypothesis))


def _form(result: Any) -> Any:
    """The structure and the shape in which a real number comes."""
    structures, leaves = _shown(result)
    return structures, np.shape(leaves[0])


def _on_a_line(numbers: np.ndarray, statuses: np.ndarray) -> np.ndarray:
    """One real number for each outcome: -0.0 gets one of its own, and so does each status but OK, where no number is released."""
    line, statuses = np.asarray(numbers, np.float64), np.asarray(statuses, np.float64)
    below_zero, above_all = -np.finfo(np.float64).smallest_subnormal, np.finfo(np.float64).max
    line = np.where((line == 0) & np.signbit(line), below_zero, line)
    # Every 32-bit code, whether or not it is one of `Status`: a stranger's status is released, too.
    return np.where(statuses == Status.OK, line, above_all * (1 - (statuses + 2.0**31) * 2.0**-53))


def _halves(status: Any, xp: Any) -> Any:
    """A 32-bit integer as two numbers of 16 bits, which any float of 32 bits holds."""
    status = xp.asarray(status, np.int32)
    return xp.stack([status >> 16, status & 0xFFFF])


def _status(high: np.ndarray, low: np.ndarray) -> np.ndarray:
    """The integer of which these are the halves."""
    return np.asarray(high, np.float64) * 2**16 + np.asarray(low, np.float64)


def _observed(algorithm: Any, make: Callable[[Any, Any], Any], key: jax.Array, values: Any, size: Any) -> jax.Array:
    """What one run released."""
    return released(algorithm(key, make(values, size)))


def runner(
    algorithm: Any,
    make: Callable[[Any, Any], Any],
    values: np.ndarray,
    size: Any,
    *,
    others: Sequence[tuple[np.ndarray, Any]] = (),
) -> Runner:
    """How to run the algorithm: one dataset shows whether JAX can trace it; whether it is pure is tried on `others`, too.

    Raises:
      Incomparable: it returns nothing that can be audited. Exceptions of the algorithm itself are passed on, with a note.
    """
    observed = functools.partial(_observed, algorithm, make)
    given = (jax.random.key(0), values, size)
    refusal = tracing.refusal(lambda key, values, size: algorithm(key, make(values, size)), *given)
    if refusal is None:
        jax.eval_shape(observed, *given)  # outcomes that cannot be audited are refused here
        key, *data = given
        refusal = tracing.untraced(jax.vmap(observed, in_axes=(0, None, None)), key[None], *data)
    if refusal is None:
        tried = ((values, size), *others)
        if of_dpjax(algorithm) or tracing.is_pure(observed, [tuple(map(jnp.asarray, each)) for each in tried]):
            return Runner(algorithm, make)
    why = "it is no pure function of its key" if refusal is None else f"JAX cannot trace it ({refusal})"
    looped = Runner(algorithm, make, why)
    looped.outcomes(jax.random.key(2), values, size, 1)
    looped.book.clear()  # one run does not show which kind of numbers will come
    return looped


def released(result: Any, xp: Any = jnp) -> Any:
    """What a run released, as one real number with the halves of its status or one row of 32-bit integers.

    An `Outcome`, nested ones included, releases the hypothesis and the status; its info is not covered by any guarantee. Anything else
    releases all arrays that it holds.

    Args:
      result: what the run returned.
      xp: `jax.numpy`, or NumPy, which is faster outside compiled programs.

    Raises:
      Incomparable: it holds no arrays of numbers, or several real ones.
    """
    _, leaves = _shown(result)
    if not leaves or not all(map(_is_numeric, leaves)):
        raise Incomparable(
            f"the algorithm must return integers, one real number or a dpjax.Outcome of these, got {result!r}"
        )
    leaves = [xp.asarray(leaf) for leaf in leaves]
    if not any(jnp.issubdtype(leaf.dtype, jnp.inexact) for leaf in leaves):
        return xp.concatenate([_words(leaf, xp) for leaf in leaves])
    number, *others = leaves
    alone = not others or (isinstance(result, Outcome) and len(others) == 1)
    if not (alone and number.size == 1 and jnp.issubdtype(number.dtype, jnp.floating)):
        rule = "integers, or one real number: round, bin or index what it returns, to so few values that they repeat"
        raise Incomparable(
            f"the algorithm must return {rule}; got arrays {[(leaf.dtype.name, leaf.shape) for leaf in leaves]}"
        )
    halves = _halves(others[0] if others else Status.OK, xp)
    if number.dtype.itemsize < 4:
        number = number.astype(np.float32)
    return xp.concatenate([number.reshape(1), halves.astype(number.dtype)])


def _shown(result: Any) -> tuple[tuple[Any, ...], list[Any]]:
    """(The structures, the leaves) of what is released: the info of an outcome is left out, of nested ones, too."""
    leaves, structure = jax.tree.flatten(result, is_leaf=lambda part: isinstance(part, Outcome))
    structures, shown = [structure], []
    for leaf in leaves:
        inside = _shown((leaf.hypothesis, leaf.status)) if isinstance(leaf, Outcome) else ((), [leaf])
        structures += inside[0]
        shown += inside[1]
    return tuple(structures), shown


def _token(result: Any) -> Any:
    """What distinguishes results that hold integers: structure, keys, shapes and numbers, whatever their width."""
    structures, leaves = _shown(result)
    try:
        hash(structures)
    except TypeError as error:
        raise Incomparable(f"the algorithm must return a structure that can be hashed, got {structures}") from error
    return structures, tuple(map(_number_token, leaves))


def _number_token(leaf: Any) -> Any:
    values = np.asarray(leaf)
    beyond = values.dtype == np.uint64 and bool((values > np.iinfo(np.int64).max).any())
    return values.shape, beyond, values.astype(np.uint64 if beyond else np.int64).tobytes()


def _is_real(rows: Any) -> bool:
    return bool(jnp.issubdtype(rows.dtype, jnp.floating))  # bfloat16, too


def _is_numeric(leaf: Any) -> bool:
    if isinstance(leaf, np.ma.MaskedArray):  # its mask is released, too, and would be lost
        return False
    dtype = leaf.dtype if hasattr(leaf, "dtype") else np.asarray(leaf).dtype
    return jnp.issubdtype(dtype, jnp.number) or jnp.issubdtype(dtype, jnp.bool_)


def _words(leaf: Any, xp: Any) -> Any:
    """Integers as 32-bit ones, without loss."""
    flat = leaf.ravel()
    if leaf.dtype.itemsize < 4:
        return flat.astype(np.int32)
    return flat.view(np.int32) if xp is np else lax.bitcast_convert_type(flat, jnp.int32).ravel()
