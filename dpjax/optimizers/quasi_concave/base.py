"""Base of all quasi-concave optimisers: their problem, their events, and what success means."""

from typing import Any, ClassVar

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from dpjax.accounting import RELATIONS
from dpjax.core import arguments
from dpjax.data.algorithm import Ordered, few_points, whole
from dpjax.domains import wide
from dpjax.domains.events import Accurate, Goal, Interval
from dpjax.domains.ordered import Pieces, countable
from dpjax.mechanisms import exponential_piecewise as piecewise
from dpjax.optimizers.quasi_concave.recursion import Problem


def problem(pieces: Pieces, *, promise: Any, alpha: Any) -> Problem:
    """A quasi-concave promise problem.

    Args:
      pieces: the quality Q, of sensitivity 1 (from `ordered.from_breakpoints` and the like). Privacy holds whatever Q is, utility if it is
        quasi-concave.
      promise: p > 0, public: max Q >= p is promised. At most 2^24, or 2^53 under `jax.enable_x64(True)`, like the values of Q.
      alpha: answers with Q >= (1 - alpha) p are wanted; in (0, 1].

    Raises:
      TypeError, ValueError: not pieces, or a number out of range.
    """
    if not isinstance(pieces, Pieces):
        raise TypeError(f"pieces must be ordered.Pieces, got {type(pieces).__name__}")
    promise = arguments.real("promise", promise, above=0.0, at_most=float(arguments.most_counted()))
    alpha = arguments.real("alpha", alpha, above=0.0, at_most=1.0)
    return Problem(pieces=pieces, promise=jnp.asarray(promise, float), alpha=jnp.asarray(alpha, float))


class QuasiConcave(Ordered):
    """An optimiser of a `problem` on {0, ..., T}, 2^(bits-1) < T <= 2^bits: the output is a point, of bits + 1 bits.

    A point beyond T is never released. One compiled program serves every epsilon, delta, promise and alpha, and every T with the same
    number of limbs: these are data.
    """

    kind: ClassVar[type] = Problem

    def error(self, beta: float) -> float:
        """The least alpha p for which, if Q is quasi-concave, an answer is proved to be within alpha p of p with probability 1 - beta."""
        raise NotImplementedError

    def fit(self, data: Any) -> Problem:
        if not isinstance(data, Problem):
            raise TypeError(f"problem must be a quasi_concave.problem, got {type(data).__name__}")
        pieces = data.pieces
        if pieces.limbs != self.limbs:
            raise ValueError(f"problem.pieces must have {self.limbs} limbs for these bits, got {pieces.limbs}")
        known = not (arguments.is_traced(pieces.exponent) or arguments.is_traced(self.bits))
        if known and np.any(np.asarray(pieces.exponent) != int(self.bits)):
            rule = f"2^{int(self.bits) - 1} < T <= 2^{int(self.bits)}"
            raise ValueError(f"problem.pieces must end at a T with {rule}, got exponent {pieces.exponent}")
        return data

    def fits(self, data: Problem) -> Bool[Array, ""]:
        promised = (data.promise > 0) & (data.alpha >= 0) & (data.alpha <= 1)
        # A point whose quality is infinite, or NaN, would be drawn wherever it is.
        promised = promised & jnp.all(data.pieces.values < jnp.inf) & (data.promise <= arguments.most_counted())
        promised = promised & countable(data.pieces)
        return promised & (data.pieces.exponent == jnp.asarray(self.bits, jnp.int32))

    def prepare(self, problem: Problem) -> Problem:
        return problem

    def check_event(self, event: Any) -> Any:
        return event if isinstance(event, Accurate) else super().check_event(event)

    def event(self, problem: Problem, event: Interval | Accurate) -> Goal:
        pieces = problem.pieces
        if isinstance(event, Accurate):
            return piecewise.goal(pieces, problem.promise - pieces.values <= event.error)
        end = piecewise.everything(pieces).high
        return Goal(marked=None, within=Interval(low=event.low, high=wide.minimum(event.high, end)))

    def listed(self) -> int:
        return few_points(self.bits) + 1

    def success_probability(self, data: Problem, *, error: Any = None) -> Float[Array, ""]:
        """P[Q(x) >= p - error], exactly; bottom is a failure.

        Args:
          data: a `problem`.
          error: the additive error, >= 0; alpha p if absent.
        """
        return self._judged(data, error)[0]

    def failure_probability(self, data: Problem, *, error: Any = None) -> Float[Array, ""]:
        """P[Q(x) < p - error, or bottom], as a sum of positive terms: 1e-12 comes out right in float32, too."""
        return self._judged(data, error)[1]

    def _judged(self, data: Problem, error: Any) -> Float[Array, "2"]:
        problem = self.fit(data)
        error = problem.alpha * problem.promise if error is None else arguments.real("error", error, at_least=0.0)
        return self.probability(problem, Accurate(error=jnp.asarray(error, float)))

    def required_promise(self, beta: float, alpha: float) -> float:
        """`error(beta)` / alpha: the promise from which on a quality of (1 - alpha) times it is proved, with probability 1 - beta."""
        return self.error(beta) / arguments.known("alpha", alpha, above=0.0, at_most=1.0)

    def sample_size(self, *, alpha: float, beta: float) -> int:
        """The required promise as an integer: the number of examples, if each of them promises 1."""
        return whole(self.required_promise(beta, alpha))


def domain(bits: int, relation: str) -> dict[str, Any]:
    """The fields that every optimiser has; a point, 0, ..., 2^bits, takes bits + 1 bits."""
    bits = arguments.integer("bits", bits, at_least=1, at_most=wide.MAX_BITS)
    relation = arguments.choice("relation", relation, RELATIONS)
    return {"bits": np.int32(bits), "limbs": wide.limbs_for(bits + 1), "relation": relation}


def half(delta: Any, *, positive: bool = True) -> Any:
    """delta in (0, 1/2], for which A_dist and the promise test are proved."""
    return arguments.real("delta", arguments.delta(delta, positive=positive), at_most=0.5)
