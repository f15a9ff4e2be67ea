"""Frozen dataclasses that are pytrees: parameters people sweep are leaves, shapes and flags are static."""

import dataclasses
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
    return jax.tree_util.register_dataclass(dataclasses.dataclass(frozen=True, kw_only=True)(cls))
