"""What learners share that choose one hypothesis after another, each of which deletes examples (GEO §3): their runs and laws."""

import math
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float, Int

from dpjax import bounds
from dpjax.core import arguments, logspace, staging
from dpjax.core.pytree import frozen, static
from dpjax.data.algorithm import Algorithm, whole
from dpjax.domains.events import Accurate, flags
from dpjax.learners.set_cover.selection import Selection

MOST_SEQUENCES = 2**12  # of hypotheses, in the list of all outputs


@frozen
class Rounds(Algorithm):
    """R rounds: h_j is chosen, and the examples with h_j(x) = 0 are deleted; in the dual those with h_j(x) = 1.

    Attributes:
      selection: the class of hypotheses, and how one is drawn.
      k: the largest number of hypotheses of the target (static).
      rounds: R (static).
      dual: whether a disjunction is learned (static).
    """

    selection: Selection
    k: int = static()
    rounds: int = static()
    dual: bool = static()

    largest_error: ClassVar[float] = 1.0

    @property
    def kind(self) -> type:  # type: ignore[override]
        """The data that the selection takes."""
        return self.selection.kind

    def fit(self, data: Any) -> Any:
        return self.selection.fit(data)

    def fits(self, data: Any) -> Bool[Array, ""]:
        return self.selection.fits(data)

    # What a learner defines --------------------------------------------------------------------------------------

    def choose(self, key: Array, view: Any, left: Any, negative: Any, positive: Any) -> Any:
        """The choice of one round, given the mask `left` of the remaining examples and what the selection has `seen` of both sides."""
        raise NotImplementedError

    def log_round(self, view: Any, left: Any) -> Float[Array, "hypotheses"]:
        """ln P[h] in one round, for the examples that are left."""
        raise NotImplementedError

    def examples(self, alpha: float, beta: float, rate: float, shift: int) -> int:
        """`bounds.set_cover` of the class and the rounds in use, for one rate and one shift.

        Raises:
          ValueError: alpha or beta outside (0, 1); an alpha for which there are too few rounds.
        """
        alpha, beta = arguments.known_fraction("alpha", alpha), arguments.known_fraction("beta", beta)
        found = bounds.set_cover(self.selection.log_size(), self.k, self.rounds, alpha, beta, rate, shift)
        if math.isinf(found):
            least = 2 * math.exp(-self.rounds / self.k)
            raise ValueError(f"alpha must be above {least:.3g} for {self.rounds} rounds, got {alpha}")
        return whole(found)

    # One run ------------------------------------------------------------------------------------------------------

    def prepare(self, data: Any) -> Any:
        return self.selection.prepare(data)

    def run(self, key: Array, data: Any) -> Any:
        run = staging.one_by_one(Algorithm.run) if self.selection.loops else Algorithm.run
        return run(self, key, data)

    def draw(self, key: Array, view: Any) -> Any:
        select, dual = self.selection, self.dual

        def one(kept: tuple[Any, Any], number: Array) -> tuple[Any, Any]:
            left, seen = kept
            choice = self.choose(jax.random.fold_in(key, number), view, left, *seen)
            gone = left & select.deleted(view, choice, dual=dual)
            sides = zip(seen, self.sides(view, gone), strict=True)
            return (left & ~gone, tuple(select.without(view, side, part, dual=dual) for side, part in sides)), choice

        seen = tuple(select.seen(view, side, dual=dual) for side in self.sides(view, view.valid))
        (left, _), chosen = lax.scan(one, (view.valid, seen), jnp.arange(self.rounds, dtype=jnp.int32))
        info = {"left": select.count(view, left), **select.info(chosen)}
        return select.released(chosen, dual=dual), jnp.bool_(True), info

    def sides(self, view: Any, left: Any) -> tuple[Any, Any]:
        """(S0, S1), which are swapped in the dual."""
        negative, positive = left & ~view.y, left & view.y
        return (positive, negative) if self.dual else (negative, positive)

    # The law, where sequences of hypotheses can be listed --------------------------------------------------------

    def deletions(self, view: Any, left: Any) -> tuple[Int[Array, "hypotheses"], Int[Array, "hypotheses"]]:
        """How many examples of S0, and of S1, each hypothesis deletes."""
        deleted = self.selection.all_deleted(view, dual=self.dual)
        zeros, ones = (self.selection.count(view, deleted & side[None]) for side in self.sides(view, left))
        return zeros, ones

    def log_masses(self, view: Any) -> Float[Array, "outputs"]:
        """ln P of every sequence h_1, ..., h_R; h_1 is the most significant digit of its index."""
        log_p, left = jnp.zeros(1), view.valid[None]
        for _ in range(self.rounds):
            log_p = (log_p[:, None] + jax.vmap(lambda mask: self.log_round(view, mask))(left)).reshape(-1)
            left = self._after(view, left)
        return log_p

    def _after(self, view: Any, left: Any) -> Any:
        """What each hypothesis leaves of each mask."""
        deleted = self.selection.all_deleted(view, dual=self.dual)
        return (left[:, None] & ~deleted[None]).reshape(-1, left.shape[1])

    def errors(self, view: Any) -> Float[Array, "outputs"]:
        """The error on the data of every sequence."""
        left = view.valid[None]
        for _ in range(self.rounds):
            left = self._after(view, left)
        negative, positive = self.sides(view, view.valid)
        wrong, every = (
            self.selection.count(view, masks) for masks in (left & negative[None] | ~left & positive[None], view.valid)
        )
        return wrong.astype(float) / jnp.maximum(every, 1).astype(float)

    def listed(self) -> int:
        """How many sequences there are."""
        found = self.selection.hypotheses() ** self.rounds
        if found > MOST_SEQUENCES:
            most = f"a list of at most {MOST_SEQUENCES} sequences of hypotheses"
            raise ValueError(f"a law of {type(self.selection).__name__} is {most}, got {arguments.brief(found)}")
        return found

    def check_event(self, event: Any) -> Any:
        return flags(event, self.listed(), "sequences")

    def event(self, view: Any, event: Any) -> Bool[Array, "outputs"]:
        self.listed()
        return event.allows(self.errors(view)) if isinstance(event, Accurate) else event

    def exactly(self, output: Any) -> Bool[Array, "outputs"]:
        size = self.selection.hypotheses()
        like = jax.eval_shape(self.output, jnp.int32(0))
        arguments.instance("output", output, type(like))
        if _form(output) != (form := _form(like)):
            raise ValueError(
                f"output must be like what {self.rounds} rounds release, of shapes {form[1]}, got {output!r}"
            )
        indices, index = self.selection.indices(output), jnp.int32(0)
        for one in indices:
            index = index * size + one
        known = jnp.all((indices >= 0) & (indices < size))
        return known & (jnp.arange(self.listed(), dtype=jnp.int32) == index)

    def output(self, index: Int[Array, ""]) -> Any:
        """The sequence of this index."""
        size = self.selection.hypotheses()
        digits = [index // size**place % size for place in reversed(range(self.rounds))]
        return self.selection.released(self.selection.choice(jnp.stack(digits).astype(jnp.int32)), dual=self.dual)

    def law(self, view: Any, good: Any) -> Float[Array, "2"]:
        log_p = self.log_masses(view)
        return jnp.exp(jnp.stack([logspace.logsumexp(jnp.where(at, log_p, -jnp.inf)) for at in (good, ~good)]))

    def log_mass(self, view: Any, good: Any) -> Float[Array, ""]:
        return logspace.logsumexp(jnp.where(good, self.log_masses(view), -jnp.inf))

    def masses(self, view: Any, outputs: int) -> Float[Array, "outcomes"]:
        return jnp.append(jnp.exp(self.log_masses(view)), 0.0)


def _form(tree: Any) -> tuple[Any, list[tuple[int, ...]]]:
    """(Structure, shapes of the leaves)."""
    leaves, structure = jax.tree.flatten(tree)
    return structure, [jnp.shape(leaf) for leaf in leaves]
