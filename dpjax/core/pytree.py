"""Frozen dataclasses that are pytrees: parameters people sweep are leaves, shapes and flags are static."""

import dataclasses
from collections.abc import Iterable
from typing import Any, TypeVar, dataclass_transform

import jax

Cls = TypeVar("Cls")


def static(**kwargs: Any) -> Any:
    """A field that is part of the compiled program (a shape, a loop bound, an enum), not of its data."""
    return dataclasses.field(metadata={"static": True}, **kwargs)


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(static, dataclasses.field))
def frozen(cls: type[Cls]) -> type[Cls]:
    """Makes `cls` a frozen keyword-only dataclass and a pytree.

    >>> @frozen
    ... class Scale:
    ...     factor: float
    ...     limbs: int = static(default=1)
    >>> jax.tree.leaves(Scale(factor=2.0))
    [2.0]
    """
    frozen_class = dataclasses.dataclass(frozen=True, kw_only=True)(cls)
    fields = dataclasses.fields(frozen_class)  # type: ignore[arg-type]
    data = tuple(f.name for f in fields if not f.metadata.get("static", False))
    meta = tuple(f.name for f in fields if f.metadata.get("static", False))
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
    return frozen_class
