"""Frozen dataclasses that are pytrees: parameters people sweep are leaves, shapes and flags are static."""

import contextlib
import dataclasses
import json
from collections.abc import Callable, Iterable
from typing import Any, TypeVar, dataclass_transform

import jax
import jax.export
import jax.numpy as jnp
import numpy as np

from dpjax.core import show

Cls = TypeVar("Cls")
Tree = TypeVar("Tree")


def static(**kwargs: Any) -> Any:
    """A field that is part of the compiled program (a shape, a loop bound, an enum), not of its data."""
    return dataclasses.field(metadata={"static": True}, **kwargs)


def shown(function: Callable[[Any], str], **kwargs: Any) -> Any:
    """A field that the repr shows by `function` (of `core.show`) instead of `show.short`."""
    return dataclasses.field(metadata={"show": function}, **kwargs)


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(static, shown, dataclasses.field))
def frozen(cls: type[Cls]) -> type[Cls]:
    """Makes `cls` a frozen keyword-only dataclass and a pytree, with a short repr, that `jax.export` can serialize.

    >>> @frozen
    ... class Scale:
    ...     factor: float
    ...     limbs: int = static(default=1)
    >>> jax.tree.leaves(Scale(factor=2.0))
    [2.0]
    >>> Scale(factor=jax.numpy.ones((3, 4)))
    Scale(factor=float32[3,4], limbs=1)
    """
    if "__repr__" not in vars(cls):
        cls.__repr__ = _repr  # type: ignore[method-assign]
    cls.__eq__, cls.__hash__ = equal, hashed  # type: ignore[method-assign,assignment]
    frozen_class = dataclasses.dataclass(frozen=True, kw_only=True, repr=False, eq=False)(cls)
    fields = dataclasses.fields(frozen_class)  # type: ignore[arg-type]
    data = tuple(f.name for f in fields if not f.metadata.get("static", False))
    meta = tuple(f.name for f in fields if f.metadata.get("static", False))
    for field in fields:
        if field.name in data and field.type in (str, "str"):
            rule = f"must be static, as text is no number: {field.name}: str = static()"
            raise TypeError(f"{cls.__qualname__}.{field.name} {rule}")
    keys = tuple(map(jax.tree_util.GetAttrKey, data))

    def flatten(tree: Any) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        return tuple(getattr(tree, name) for name in data), tuple(getattr(tree, name) for name in meta)

    def flatten_with_keys(tree: Any) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        children, static_values = flatten(tree)
        return tuple(zip(keys, children, strict=True)), static_values

    def unflatten(static_values: tuple[Any, ...], children: Iterable[Any]) -> Any:
        return frozen_class(**dict(zip(meta, static_values, strict=True)), **dict(zip(data, children, strict=True)))

    # Not jax.tree_util.register_dataclass: in jaxlib 0.10 the structures of two such classes with equally many leaves
    # compare equal, so a jitted function called with one may, when their hashes meet, run the program of the other.
    jax.tree_util.register_pytree_with_keys(frozen_class, flatten_with_keys, unflatten, flatten)
    exportable(frozen_class)
    return frozen_class


def stacked(*each: Tree) -> Tree:
    """Pytrees of one structure as a single one of arrays with an additional leading axis."""
    return jax.tree.map(lambda *leaves: jnp.stack(leaves), *each)


def select(condition: Any, a: Tree, b: Tree) -> Tree:
    """Leaf by leaf, the leaf of a where the condition holds, else that of b."""
    return jax.tree.map(lambda x, y: jnp.where(condition, x, y), a, b)


def exportable(cls: type) -> None:
    """Lets `jax.export` serialize functions of this pytree, whose static values are literals: numbers, strings, None and tuples of them.

    A class of the same name that was defined before (in a notebook) keeps the name, and the later one cannot be exported.
    """
    with contextlib.suppress(ValueError):
        jax.export.register_pytree_node_serialization(
            cls,
            serialized_name=f"{cls.__module__}.{cls.__qualname__}",
            serialize_auxdata=lambda values: json.dumps(values, default=_number).encode(),
            deserialize_auxdata=lambda text: _tuples(json.loads(text)),
        )


def _number(value: Any) -> Any:
    """NumPy's numbers, which JSON does not know, as Python's."""
    if not isinstance(value, np.generic):
        raise TypeError(f"jax.export needs static values that are literals, got {value!r}")
    return value.item()


def _tuples(value: Any) -> Any:
    """JSON's lists as the tuples that they were; static values are hashable."""
    return tuple(map(_tuples, value)) if isinstance(value, list) else value


def _repr(self: Any) -> str:
    """Every field in few words."""
    entries = (f"{field.name}={_show(field)(getattr(self, field.name))}" for field in dataclasses.fields(self))
    return f"{type(self).__qualname__}({', '.join(entries)})"


def equal(self: Any, other: Any) -> bool:
    """Whether both are of one class, with the same static values and, leaf by leaf, the same numbers."""
    if type(self) is not type(other):
        return NotImplemented
    (leaves, structure), (others, other_structure) = jax.tree.flatten(self), jax.tree.flatten(other)
    return structure == other_structure and all(map(_same, leaves, others))  # type: ignore[operator]


def _same(one: Any, other: Any) -> bool:
    """Whether two leaves are equal in all digits: JAX would compare in 32 bits what NumPy holds in 64."""
    if one is other:
        return True
    if np.shape(one) != np.shape(other) or _is_key(one) != _is_key(other):
        return False
    if _is_key(one):
        return bool(one.dtype == other.dtype) and _same(jax.random.key_data(one), jax.random.key_data(other))
    # As arrays: NumPy would round a Python float to the 32 bits of the other leaf.
    return bool(np.all(np.asarray(one) == np.asarray(other)))


def _is_key(leaf: Any) -> bool:
    return isinstance(leaf, jax.Array) and bool(jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key))


def hashed(self: Any) -> int:
    """A hash that sees only the shapes of keys and of arrays with axes: equal numbers have the same one, whatever their type."""
    leaves, structure = jax.tree.flatten(self)
    return hash((structure, *map(_hashable, leaves)))


def _hashable(leaf: Any) -> Any:
    if not isinstance(leaf, np.ndarray | np.generic | jax.Array):
        return leaf
    return leaf.shape if leaf.ndim or _is_key(leaf) else leaf.item()


def _show(field: dataclasses.Field[Any]) -> Callable[[Any], str]:
    """What shows a field: the function it names, or that for wide integers if its last axis is called limbs or more, or `show.short`."""
    axes = getattr(field.type, "dim_str", "").split()
    usual = show.wide if axes[-1:] in (["limbs"], ["more"]) else show.short
    return field.metadata.get("show", usual)
