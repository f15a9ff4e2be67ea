"""Whether JAX can compile a function that somebody else wrote, and whether it would then do the same."""

from collections.abc import Callable
from typing import Any

import jax
import numpy as np


def refusal(function: Callable[..., Any], *arguments: Any) -> str | None:
    """None if JAX can trace the function, else why not. What it raises without tracing, too, is raised, with a note.

    >>> refusal(lambda x: -x, 1.0) is None, refusal(lambda x: 0 if x > 0 else 1, 1.0)[:29]
    (True, 'TracerBoolConversionError: At')
    """
    try:
        jax.eval_shape(function, *arguments)
    except Exception as error:  # whatever a stranger's code raises
        reason = f"{type(error).__name__}: {str(error).strip().splitlines()[0] if str(error).strip() else 'no message'}"
    else:
        return None
    try:
        function(*arguments)
    except Exception as error:
        error.add_note("Raised by code that was handed to dpjax, when it was tried on its first data.")
        raise
    return reason


def is_pure(function: Callable[..., Any], *arguments: Any, runs: int = 8, seed: int = 1) -> bool:
    """Whether some runs function(key, *arguments) come out compiled as they do without.

    Draws that do not come from the key would be made once and for all by compilation.

    >>> is_pure(lambda key: jax.random.uniform(key)), is_pure(lambda key: np.random.default_rng().random())
    (True, False)
    """

    def keys() -> jax.Array:
        return jax.random.split(jax.random.key(seed), runs)

    compiled = jax.jit(jax.vmap(lambda key: function(key, *arguments)))(keys())
    plain = [jax.tree.leaves(function(key, *arguments)) for key in keys()]
    columns = zip(jax.tree.leaves(compiled), zip(*plain, strict=True), strict=True)
    return all(np.allclose(one, np.stack(other), rtol=1e-4, equal_nan=True) for one, other in columns)
