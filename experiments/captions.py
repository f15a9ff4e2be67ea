"""What titles and labels say of the settings in force: nothing that a setting decides is written into a picture's code."""

import math
from collections.abc import Mapping
from typing import Any

from dpjax.core import show


def number(value: float) -> str:
    """A number for a text: powers of ten as such, others with the digits they need.

    >>> number(1e-6), number(2.5e-7), number(0.05), number(1.0)
    ('$10^{-6}$', '$2.5 \\\\cdot 10^{-7}$', '0.05', '1')
    """
    if value == 0 or 1e-3 <= abs(value) < 1e6:
        return f"{value:g}"
    power = math.floor(math.log10(abs(value)) + 1e-9)
    digits = f"{value / 10.0**power:g}"
    return f"$10^{{{power}}}$" if digits == "1" else f"${digits} \\cdot 10^{{{power}}}$"


def privacy(settings: Mapping[str, Any]) -> str:
    """The budget.

    >>> privacy({"epsilon": 0.5, "delta": 1e-6})
    'ε = 0.5, δ = $10^{-6}$'
    """
    return f"ε = {number(settings['epsilon'])}, δ = {number(settings['delta'])}"


def success(settings: Mapping[str, Any]) -> str:
    """With which probability the promise is kept.

    >>> success({"beta": 0.1})
    'with probability 0.9'
    """
    return f"with probability {show.but(settings['beta'])}"


def percent(level: float) -> str:
    """A confidence level.

    >>> percent(0.95)
    '95 %'
    """
    return f"{100 * level:g} %"
