"""What every class provides for a few points."""

from collections.abc import Callable
from typing import Any, NamedTuple

from jaxtyping import Array, Bool, Int


class Choices(NamedTuple):
    """One concept for every way in which a class labels the named points, in some of the slots.

    Attributes:
      concepts: the slots, a pytree of stacked concepts.
      where: which slots hold one of these concepts.
      right: (ones, zeros) -> how many examples each concept labels right, given the numbers of both labels at each point, named or not.
      fits: whether the class had enough slots for all.
    """

    concepts: Any
    where: Bool[Array, "h"]
    right: Callable[[Int[Array, "slots"], Int[Array, "slots"]], Int[Array, "h"]]
    fits: Bool[Array, ""]
