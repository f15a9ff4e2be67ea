"""What SetCoverLearner chooses from: a class of hypotheses, and the exponential mechanism over it (Step 1e)."""

from collections.abc import Callable
from typing import Any, ClassVar

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int


class Selection:
    """A class H with a base measure, and how a hypothesis is drawn from it; a frozen pytree.

    A subset of the examples is a mask: an array of booleans, or packed words with a `count` of their own. The learner uses bitwise
    operations on it and nothing else. `dual` says which examples a hypothesis deletes: those with h(x) = 0, or in the dual those with
    h(x) = 1.

    The last five methods are for laws only, where H can be listed.
    """

    kind: ClassVar[type]
    loops: ClassVar[bool] = False  # whether a draw is a loop whose number of turns varies from draw to draw
    exact: bool = True  # whether `draw` keeps what it promises; otherwise no privacy is promised

    def fit(self, data: Any) -> Any:
        """The data, checked and padded to their bucket."""
        raise NotImplementedError

    def fits(self, data: Any) -> Bool[Array, ""]:
        """Whether the data are in the domain: what `fit` cannot see of traced values."""
        raise NotImplementedError

    def prepare(self, data: Any) -> Any:
        """The view of the data that the rounds use: anything with the masks `valid` and `y`."""
        return data

    def count(self, view: Any, mask: Any) -> Int[Array, "*n"]:
        """How many examples there are in each mask (its last axis)."""
        return jnp.sum(mask, axis=-1, dtype=jnp.int32)

    def log_size(self) -> float:
        """ln |H|; for a continuous H, ln of its measure over the least of a piece (all hypotheses that agree on the whole domain)."""
        raise NotImplementedError

    def seen(self, view: Any, side: Any, *, dual: bool) -> Any:
        """What `draw` uses of the examples of one label, given their mask: the mask, or what is cheaper to update than to recompute."""
        return side

    def without(self, view: Any, seen: Any, gone: Any, *, dual: bool) -> Any:
        """`seen` after the examples of the mask `gone` were deleted."""
        return seen & ~gone

    def draw(
        self, key: Array, view: Any, negative: Any, positive: Any, *, score: Callable[..., Array], rate: Any, dual: bool
    ) -> Any:
        """h with probability proportional to exp(rate score(a, b)), where h deletes a of the negative and b of the positive examples.

        Both sides come as `seen` made them. The score is non-decreasing in a and non-increasing in b.
        """
        raise NotImplementedError

    def deleted(self, view: Any, choice: Any, *, dual: bool) -> Any:
        """The mask of the examples that a choice, as `draw` returned it, deletes."""
        raise NotImplementedError

    def released(self, chosen: Any, *, dual: bool) -> Any:
        """The conjunction, or in the dual the disjunction, of the hypotheses drawn in all rounds."""
        raise NotImplementedError

    def info(self, chosen: Any) -> dict[str, Any]:
        """Further information on the draws of all rounds; not private."""
        return {}

    def hypotheses(self) -> int:
        """|H|, for a list."""
        raise ValueError(f"{type(self).__name__} has no list of its hypotheses")

    def log_measure(self) -> Float[Array, "hypotheses"]:
        """ln of the base measure of each hypothesis; by default all are alike."""
        return jnp.zeros(self.hypotheses())

    def all_deleted(self, view: Any, *, dual: bool) -> Any:
        """The masks of all hypotheses, stacked."""
        raise NotImplementedError

    def choice(self, index: Int[Array, "rounds"]) -> Any:
        """What `draw` returns for these places in the list, stacked."""
        raise NotImplementedError

    def indices(self, output: Any) -> Int[Array, "rounds"]:
        """The places in the list of the hypotheses of a released output."""
        raise NotImplementedError
