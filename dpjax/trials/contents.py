"""What an object is made of, as JSON data: the key under which results of algorithms and distributions of any making are kept."""

import enum
import functools
import hashlib
import json
import types
from collections.abc import Mapping, Set
from numbers import Number
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

SPELT_OUT = 64  # an array of at most this many numbers enters a key in full, a larger one as a hash
DEEPEST = 32  # greatest depth of objects nested in objects that a key describes


def of(given: Any, depth: int = DEEPEST) -> Any:
    """The type and the numbers of an object, as JSON data: what a stored result must agree with.

    Raises:
      TypeError: it holds something that does not reveal what it is made of, or objects nested more than `DEEPEST` deep.
    """
    if depth < 0:
        raise TypeError(f"algorithms and distributions must not hold objects within objects more than {DEEPEST} times")
    if given is None or isinstance(given, bool | int | float | str):
        return given
    if isinstance(given, Number | bytes | enum.Enum | jax.Device) and not isinstance(given, np.generic):
        return repr(given)
    if isinstance(given, jax.Array) and jnp.issubdtype(given.dtype, jax.dtypes.prng_key):
        given = jax.random.key_data(given)
    if isinstance(given, np.ndarray | np.generic | jax.Array):
        array = np.asarray(given)
        if array.dtype == object:  # an object array's bytes are addresses
            return array.tolist()
        if array.size <= SPELT_OUT:  # 200 of uint8 and of int32 are different numbers once they are doubled
            return {"numbers": array.tolist(), "dtype": array.dtype.str}
        content = hashlib.blake2b(array.tobytes(), digest_size=16).hexdigest()
        return {"array": content, "shape": list(array.shape), "dtype": array.dtype.str}
    if isinstance(given, list | tuple):
        return [of(part, depth - 1) for part in given]
    named = given if hasattr(given, "__qualname__") else type(given)
    fields = sorted(_parts(given).items())
    return {
        "type": f"{getattr(named, '__module__', None)}.{named.__qualname__}",
        **{field: of(value, depth - 1) for field, value in fields},
    }


def text(description: Any) -> str:
    """The description as one line of JSON."""
    return json.dumps(description, sort_keys=True, default=repr)


def is_data(given: Any) -> bool:
    """Whether it is a pytree of numbers and arrays."""
    return all(
        isinstance(leaf, bool | int | float | np.ndarray | np.generic | jax.Array) for leaf in jax.tree.leaves(given)
    )


def _parts(given: Any) -> dict[str, Any]:
    """What an object holds: entries, attributes, values bound to a function; but not its code, nor the globals that it uses."""
    if isinstance(given, type | types.ModuleType):
        return {}
    if isinstance(given, types.FunctionType):
        cells = zip(given.__code__.co_freevars, given.__closure__ or (), strict=True)
        closed = {name: cell.cell_contents for name, cell in cells if cell != types.CellType()}  # an empty one has none
        before = {"defaults": given.__defaults__, "keywords": given.__kwdefaults__}
        return {**closed, **{name: value for name, value in before.items() if value}, **vars(given)}
    if isinstance(given, types.MethodType):
        return {"function": given.__func__, "self": given.__self__}
    if isinstance(given, functools.partial):
        return {"function": given.func, "given": given.args, "keywords": given.keywords}
    if type(given).__module__.startswith("jax") and hasattr(given, "__wrapped__"):  # made by jax.jit
        return {"function": given.__wrapped__}
    entries = {repr(key): value for key, value in given.items()} if isinstance(given, Mapping) else {}
    elements = {"elements": sorted(given, key=repr)} if isinstance(given, Set) else {}
    return {**entries, **elements, **_state(given)}


def _state(given: Any) -> dict[str, Any]:
    """The attributes of an object; if it has none, or defines how it is copied, the data from which a copy is made."""
    own = type(given)
    if own.__reduce__ is object.__reduce__ and own.__reduce_ex__ is object.__reduce_ex__:
        if own.__getstate__ is not object.__getstate__:
            return {"state": given.__getstate__()}
        state = object.__getstate__(given)
        if state or isinstance(given, Mapping | Set):
            attributes, slots = state if isinstance(state, tuple) else (state, {})
            return {**(attributes or {}), **slots}
    return {} if own in (dict, set, frozenset) else _rebuilt(given)


def _rebuilt(given: Any) -> dict[str, Any]:
    """The data from which a copy of an object is made; none for an instance of a plain Python class without attributes.

    Raises:
      TypeError: it cannot be copied.
    """
    try:
        made = given.__reduce_ex__(4)
    except TypeError as error:
        rule = "hold nothing but what can be copied, for results are kept by what they are made of"
        raise TypeError(
            f"algorithms and distributions must {rule}, got {given!r} of type {type(given).__name__}"
        ) from error
    if isinstance(made, str):  # a name
        return {}
    arguments, state, elements, entries = (*made[1:5], None, None, None)[:4]
    parts = {
        "arguments": [part for part in arguments if part is not type(given)],
        "state": state,
        "elements": list(elements or ()),
        "entries": list(entries or ()),
    }
    return {name: part for name, part in parts.items() if part}
