"""Packages whose modules load when they are first used, while their names are listed before."""

import importlib
import pkgutil
import sys
from collections.abc import Callable
from typing import Any


def modules(package: str, **elsewhere: str) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """`__getattr__` and `__dir__` (PEP 562) of a package.

    Args:
      package: its `__name__`.
      elsewhere: names that live in other modules, as name="module:attribute".

    Returns:
      Both functions: attributes are the package's modules, imported on first use, and the names from elsewhere.

    >>> get, names = modules("dpjax.core", least="dpjax.core.staging:least")
    >>> get("bits").__name__, get("least").__name__, "bits" in names(), "least" in names()
    ('dpjax.core.bits', 'least', True, True)
    """

    def load(name: str) -> Any:
        if name in elsewhere:
            module, attribute = elsewhere[name].split(":")
            value = getattr(importlib.import_module(module), attribute)
            setattr(sys.modules[package], name, value)  # found without this function from now on
            return value
        if name in _inside(package):
            return importlib.import_module(f"{package}.{name}")
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    def names() -> list[str]:
        loaded = vars(sys.modules[package]).items()
        own = [
            name for name, value in loaded if value is not sys.modules[__name__]
        ]  # this helper is not part of the package
        return sorted({*own, *_inside(package), *elsewhere})

    return load, names


def _inside(package: str) -> list[str]:
    """The names of a package's public modules, without importing any of them."""
    found = pkgutil.iter_modules(sys.modules[package].__path__)
    return [module.name for module in found if not module.name.startswith("_")]
