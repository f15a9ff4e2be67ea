"""What every class says of a few points."""

from collections.abc import Callable
from typing import Any, NamedTuple

from jaxtyping import Array, Bool, Int


class Choices(NamedTuple):
    """One concept for every way in which a class labels the named points, in some of as many slots as there may be.

    Attributes:
      concepts: their pytree, stacked.
      where: which slots hold one.
      right: (ones, zeros) -> how many examples each of them labels right, from the labels of each point, named or not.
      fits: whether the class had slots enough for all.
    """

    concepts: Any
    where: Bool[Array, "h"]
    right: Callable[[Int[Array, "slots"], Int[Array, "slots"]], Int[Array, "h"]]
    fits: Bool[Array, ""]
