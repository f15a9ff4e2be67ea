"""Whether JAX can compile a function that somebody else wrote, and whether it would then do the same."""

import contextlib
import random
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import jax
import numpy as np

from dpjax.core.arguments import is_traced


def refusal(function: Callable[..., Any], *arguments: Any) -> str | None:
    """None if JAX can trace the function, else why not; if it also fails untraced, that exception is raised, with a note.

    >>> refusal(lambda x: -x, 1.0) is None, refusal(lambda x: 0 if x > 0 else 1, 1.0)[:29]
    (True, 'TracerBoolConversionError: At')
    """
    reason = untraced(function, *arguments)
    if reason is None:
        return None
    try:
        function(*arguments)
    except Exception as error:
        error.add_note("Raised by code that was handed to dpjax, when it was tried on its first data.")
        raise
    return reason


def untraced(function: Callable[..., Any], *arguments: Any) -> str | None:
    """Why JAX cannot trace the function; None if it can."""
    try:
        jax.eval_shape(function, *arguments)
    except Exception as error:  # whatever a stranger's code raises
        return f"{type(error).__name__}: {str(error).strip().splitlines()[0] if str(error).strip() else 'no message'}"
    return None


def _holds_traced(value: Any) -> bool:
    try:
        return any(map(is_traced, jax.tree.leaves(value)))
    except Exception:  # nothing that JAX can walk through, such as a dictionary whose keys have no order
        return False


@contextlib.contextmanager
def keeps_nothing(name: str, owner: Any) -> Iterator[None]:
    """Raises a TypeError that says what to do if somebody else's object has kept a value that JAX traced, and uses it later."""
    try:
        yield
    # An UnexpectedTracerError or, for a traced constant, XLA's error about a program that lacks it.
    except Exception as error:
        kept = [part for part, value in getattr(owner, "__dict__", {}).items() if _holds_traced(value)]
        if not kept and not isinstance(error, jax.errors.UnexpectedTracerError):
            raise
        where = f" (now in {', '.join(kept)})" if kept else ""
        why = "as a functools.cached_property does that is first asked for then: work it out before, or each time"
        raise TypeError(f"{name} must keep nothing that it computes while JAX traces it{where}, {why}") from error


def _keys() -> jax.Array:
    return jax.random.split(jax.random.key(1), 4)


def _generators() -> tuple[Any, ...]:
    """The states of the generators that a process shares."""
    kind, words, *rest = np.random.get_state()
    return random.getstate(), kind, np.asarray(words).tobytes(), rest


def _repeated(function: Callable[..., Any], arguments: Sequence[Any]) -> list[np.ndarray] | None:
    """The results by each of the keys, leaf by leaf; None if they are not the same, to the bit, a second time.

    Nor if numbers were drawn from a generator that the process shares: rarely used ones change no result of so few runs.
    """

    def columns() -> list[np.ndarray]:
        plain = [jax.tree.leaves(function(key, *arguments)) for key in _keys()]
        return [np.stack(leaves) for leaves in zip(*plain, strict=True)]

    before = _generators()
    plain, again = columns(), columns()
    same = (one.tobytes() == other.tobytes() for one, other in zip(plain, again, strict=True))
    return plain if before == _generators() and all(same) else None


def repeats(function: Callable[..., Any], *arguments: Any) -> bool:
    """Whether some runs function(key, *arguments) give the same twice with the same key, to the bit; nothing is compiled as a whole.

    >>> repeats(lambda key: jax.random.uniform(key)), repeats(lambda key: np.random.default_rng().random())
    (True, False)
    """
    return _repeated(function, arguments) is not None


def is_pure(function: Callable[..., Any], several: Sequence[Sequence[Any]] = ((),)) -> bool:
    """Whether some runs function(key, *arguments) give the same twice with the same key, to the bit, and nearly the same if compiled.

    Draws that do not come from the key would be made once and for all by compilation.

    Args:
      function: (key, *arguments) -> a pytree of arrays.
      several: lists of arguments, of equal shapes, with each of which it runs four times.

    >>> is_pure(lambda key: jax.random.uniform(key)), is_pure(lambda key: np.random.default_rng().random())
    (True, False)
    """
    program = jax.jit(jax.vmap(function, in_axes=(0, *([None] * len(several[0])))))
    for arguments in several:
        plain = _repeated(function, arguments)
        if plain is None:
            return False  # before anything is compiled
        compiled = jax.tree.leaves(program(_keys(), *arguments))
        near = (np.allclose(one, two, rtol=1e-4, equal_nan=True) for one, two in zip(compiled, plain, strict=True))
        if not all(near):
            return False
    return True
