"""RecConcave on the depth (BNS §3.3, Figure 5). Its plain twin is `dpjax.verify.plain.rec_concave`."""

import math
from typing import Any, ClassVar

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from dpjax import bounds
from dpjax.accounting import ADD_OR_REMOVE_ONE, Guarantee
from dpjax.core import arguments
from dpjax.core.pytree import frozen, static
from dpjax.data.points import Points
from dpjax.domains import wide
from dpjax.domains.events import Goal
from dpjax.domains.ordered import Pieces
from dpjax.optimizers.interior_point import by_depth
from dpjax.optimizers.interior_point.by_depth import ByDepth
from dpjax.optimizers.quasi_concave import QuasiConcaveRecConcave
from dpjax.optimizers.quasi_concave import recursion as optimizer
from dpjax.optimizers.quasi_concave.split import Split, checked


@frozen
class DepthRecConcave(ByDepth):
    """RecConcave on the depth; see `rec_concave`."""

    takes_scaled: ClassVar[bool] = True

    epsilon: Any
    delta: Any
    promise: Any
    alpha: Any
    levels: int = static()
    split: Split | None = None

    def sound(self) -> Bool[Array, ""]:
        promise, alpha = (jnp.asarray(value, float) for value in (self.promise, self.alpha))
        promised = (promise > 0) & (promise <= arguments.most_counted())
        return super().sound() & promised & (alpha > 0) & (alpha <= 1)  # 1 is let through, to which float32 may round

    def _optimizer(self) -> QuasiConcaveRecConcave:
        """The optimiser for any quality function: it splits the budget and proves the error."""
        given: Any = {name: getattr(self, name) for name in ("bits", "epsilon", "delta", "levels", "split")}
        return QuasiConcaveRecConcave(**given, limbs=self.wider, relation=ADD_OR_REMOVE_ONE)

    def _problem(self, pieces: Pieces) -> optimizer.Problem:
        promise, alpha = (jnp.asarray(value, float) for value in (self.promise, self.alpha))
        return optimizer.Problem(pieces=pieces, promise=promise, alpha=alpha)

    def draw(self, key: Array, points: Points) -> Any:
        run = optimizer.sample(key, self._problem(self.pieces(points)), self._optimizer().budget(), self.levels)
        return wide.resize(run.point.position, self.limbs), run.ok, {"k": run.k}

    def law_of_depth(self, pieces: Pieces, goal: Goal) -> Float[Array, "2"]:
        return optimizer.law(self._problem(pieces), self._optimizer().budget(), self.levels, goal)

    def guarantee(self) -> Guarantee:
        """(epsilon, delta), or the sums of the split, under ADD_OR_REMOVE_ONE; delta is 0 if a single level runs."""
        return self._optimizer().guarantee()

    def points_needed(self, beta: float) -> int:
        """Twice the promise, so that the median keeps it, if the promise is large enough for `quasi_concave`'s derived error.

        Raises:
          ValueError: it is too small: then nothing is proved for any number of points.
        """
        needed = self._optimizer().error(beta) / float(self.alpha)
        if float(self.promise) < needed:
            raise ValueError(
                f"promise must be >= {needed:.6g} for failure probability {beta}, got {float(self.promise)}"
            )
        return math.ceil(2 * float(self.promise))


def rec_concave(
    *,
    bits: int,
    epsilon: Any,
    delta: Any,
    promise: Any,
    alpha: Any = 0.5,
    depth: int | None = None,
    split: Split | None = None,
) -> DepthRecConcave:
    """RecConcave (BNS §3.3, Figure 5) on the depth, with `proved` constants: N levels run at epsilon/(3N-2), delta/(2(N-1)) each.

    Formal guarantees: (epsilon, delta) under ADD_OR_REMOVE_ONE, by basic composition, because the depth has sensitivity 1 under it. Not
    promised: protection from floating-point side channels; a cryptographic generator.

    Args:
      bits: the domain is {0, ..., 2^bits - 1}, 1 to 4096.
      epsilon: total, > 0.
      delta: total, in (0, 1).
      promise: r > 0, at most 2^24 (2^53 with x64): the depth that some element is promised to have. Fixed in advance, as the number of
        points is private; n points promise n/2.
      alpha: in (0, 1): an element of depth (1 - alpha) r is searched for. Any depth >= 1 is an interior point.
      depth: bound >= 1 on the number N of levels; by default 2.
      split: what each mechanism may spend, within (epsilon, delta) by basic composition; equal shares if absent.

    Raises:
      TypeError, ValueError: an argument out of range.
    """
    fields = by_depth.domain(bits)
    depth = 2 if depth is None else arguments.integer("depth", depth, at_least=1)
    epsilon, delta = arguments.epsilon(epsilon), arguments.delta(delta)
    levels = bounds.levels_run(2 ** int(bits) - 1, depth)
    return DepthRecConcave(
        **fields,
        epsilon=epsilon,
        delta=delta,
        promise=arguments.real("promise", promise, above=0.0, at_most=float(arguments.most_counted())),
        alpha=arguments.fraction("alpha", alpha),
        levels=levels,
        split=checked(split, epsilon=epsilon, delta=delta, levels=levels),
    )
