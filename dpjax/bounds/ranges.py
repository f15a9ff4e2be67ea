"""Argument checks of the bounds: each names the argument, the value and the rule."""

import math
import numbers
from typing import Any


def positive(**values: Any) -> None:
    """Finite numbers > 0."""
    for name, value in values.items():
        _check(name, value, 0.0, math.inf)


def fraction(**values: Any) -> None:
    """Numbers strictly between 0 and 1."""
    for name, value in values.items():
        _check(name, value, 0.0, 1.0)


def count(at_least: int = 1, **values: Any) -> None:
    """Integers >= `at_least`."""
    for name, value in values.items():
        if isinstance(value, bool) or not isinstance(value, numbers.Integral):
            raise TypeError(f"{name} must be an int, got {value!r} of type {type(value).__name__}")
        if value < at_least:
            raise ValueError(f"{name} must be >= {at_least}, got {value}")


def calibration(value: str) -> None:
    """One of the two calibrations."""
    if value not in ("printed", "proved"):
        raise ValueError(f"calibration must be 'printed' or 'proved', got {value!r}")


def _check(name: str, value: Any, above: float, below: float) -> None:
    """A real number in the open interval; NaN fails every comparison."""
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise TypeError(f"{name} must be a real number, got {value!r} of type {type(value).__name__}")
    if not above < float(value) < below:
        raise ValueError(f"{name} must be > {above} and < {below}, got {value!r}")
