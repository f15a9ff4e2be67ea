"""Where a monotone property begins: integers and floats on the host, positions of an array on the device.

The host functions know nothing of JAX, so that `accounting` and `bounds` may use them; `first_where` loads it when it is called.
"""

from collections.abc import Callable
from typing import Any

_LARGEST = 2**64  # where a search that doubles gives up


def least_int(holds: Callable[[int], bool], low: int, high: int | None = None) -> int:
    """The least integer >= low with a property that all larger ones keep.

    Args:
        holds: the property.
        low: where the search begins, >= 0.
        high: an integer >= low that is known to have it (it is not tried); found by doubling if absent.

    Raises:
        ValueError: no integer up to 2^64 has it.

    Example:
        >>> least_int(lambda n: n * n >= 1000, 0), least_int(lambda n: n * n >= 1000, 40)
        (32, 40)
    """
    if high is None:
        high = max(low, 1)
        while not holds(high):
            if high >= _LARGEST:
                raise ValueError(f"no integer from {low} to {high} has the property that is searched for")
            low, high = high + 1, 2 * high
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle + 1, high)
    return high


def least_rows(holds: Callable[[int], bool], low: int, **given: float) -> int:
    """`least_int` for a number of rows; if more than 2^64 are needed, the error names the arguments `given`.

    >>> least_rows(lambda n: n * 1e-30 >= 1.0, 1, alpha=1e-30)
    Traceback (most recent call last):
    ...
    ValueError: alpha must be such that 2^64 rows are enough, got alpha = 1e-30
    """
    try:
        return least_int(holds, low)
    except ValueError as reason:
        got = ", ".join(f"{name} = {value}" for name, value in given.items())
        raise ValueError(f"{' and '.join(given)} must be such that 2^64 rows are enough, got {got}") from reason


def largest_float(holds: Callable[[float], bool], low: float, high: float, *, precision: float) -> float:
    """The largest number from low to high with a property that all smaller ones have, rounded down.

    Args:
        holds: the property; `low` is known to have it.
        low, high: where to look, 0 <= low <= high.
        precision: the search ends when the interval left is no longer than this fraction of its upper end.

    Returns:
        `low`, or a number that was itself found to have the property.

    Example:
        >>> x = largest_float(lambda x: x * x <= 2.0, 0.0, 2.0, precision=1e-9)
        >>> x * x <= 2.0 < (x * (1 + 1e-9)) ** 2
        True
    """
    return _narrowed(lambda x: not holds(x), low, high, precision)[0]


def least_float(holds: Callable[[float], bool], low: float, high: float, *, precision: float) -> float:
    """The least number from low to high with a property that all larger ones have, rounded up; as `largest_float`, from above.

    >>> x = least_float(lambda x: x * x >= 2.0, 0.0, 2.0, precision=1e-9)
    >>> (x * (1 - 1e-9)) ** 2 < 2.0 <= x * x
    True
    """
    return _narrowed(holds, low, high, precision)[1]


def _narrowed(above: Callable[[float], bool], low: float, high: float, precision: float) -> tuple[float, float]:
    """Two ends, `low` not above the border and `high` above it, brought together."""
    while high - low > precision * high:
        middle = low + (high - low) / 2
        if not low < middle < high:  # two neighbours, both as good as 0
            break
        low, high = (low, middle) if above(middle) else (middle, high)
    return low, high


def first_where(holds: Callable[[Any], Any], low: Any, high: Any, rows: int) -> Any:
    """The least i in low, ..., high - 1 with holds(i), if all that follow have it too; `high` if there is none. On the device.

    A loop of fixed length, so that a batch of searches keeps in step.

    Args:
        holds: from an index, an int32 below `rows`, to a bool.
        low, high: traced integers, 0 <= low <= high <= rows.
        rows: how many positions there are.

    >>> import jax.numpy as jnp
    >>> x = jnp.array([1, 3, 3, 7])
    >>> int(first_where(lambda i: x[i] >= 3, jnp.int32(0), jnp.int32(4), 4))
    1
    """
    import jax.numpy as jnp
    from jax import lax

    turns = rows.bit_length()

    def further(turn: Any, found: Any) -> Any:
        step = 1 << (turns - 1 - turn)
        last = found + (step - 1)
        # The state is one number, so that a turn is one pass: for each of two ends, the decision would be computed anew.
        return jnp.where((last < high) & ~holds(jnp.minimum(last, rows - 1)), found + step, found)

    return lax.fori_loop(0, turns, further, low)
