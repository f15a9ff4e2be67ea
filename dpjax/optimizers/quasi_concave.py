"""Quasi-concave optimisation (BNS Definition 3.7): one problem, three optimisers.

Given Q of sensitivity 1 on {0, ..., T} with max Q >= p, find x with Q(x) >= (1 - alpha) p. Q is quasi-concave if no point between two
others is worse than both.

| factory | algorithm | privacy | additive error alpha p that it needs |
|---|---|---|---|
| `exponential` | exponential mechanism over all points | (epsilon, 0) | (2/epsilon) ln(T/beta) |
| `rec_concave` | RecConcave (BNS §3.3) | (epsilon, delta) | 8^N, N <= log* T levels |
| `amplified` | amplified interior points (CLNSS §1.3.5) | (epsilon, delta) | 2^N |

Each is a frozen pytree: call it with a key and a `Problem`; `success_probability`, `failure_probability` and `pmf` are exact, `error` is
the derived additive error. Neighbours are datasets whose qualities differ by at most 1 everywhere: `relation` says which those are.

    >>> import jax
    >>> from dpjax.domains import ordered, wide
    >>> from dpjax.optimizers import quasi_concave
    >>> pieces = ordered.from_breakpoints([0, 2**20, 2**20 + 9], [0.0, 3100.0, 500.0], 2**24, beyond=0.0)
    >>> problem = quasi_concave.problem(pieces, promise=3000, alpha=0.5)
    >>> optimizer = quasi_concave.amplified(bits=24, epsilon=1.0, delta=1e-6)
    >>> round(optimizer.error(0.1)), optimizer.error(0.1) <= 0.5 * 3000
    (464, True)
    >>> outcome = optimizer(jax.random.key(0), problem)
    >>> 0 <= wide.to_ints(outcome.hypothesis)[0] - 2**20 < 9
    True
    >>> round(float(optimizer.success_probability(problem)), 6)
    1.0
"""

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, UInt32

from dpjax import bounds
from dpjax.accounting import RELATIONS, REPLACE_ONE, Guarantee, total_delta
from dpjax.accounting.rounding import at_most
from dpjax.core import arguments
from dpjax.core.pytree import frozen, static
from dpjax.data.outcome import Outcome, Status
from dpjax.domains import wide
from dpjax.domains.events import Goal, Interval
from dpjax.domains.ordered import Pieces
from dpjax.mechanisms import exponential_piecewise as piecewise
from dpjax.optimizers import amplified as interior
from dpjax.optimizers import rec_concave as recursive
from dpjax.optimizers.rec_concave import Problem

LARGEST_PMF = 12  # bits: `pmf` lists every point
DEEPEST = 4  # more levels than {0, ..., 2^4096} has use for
COMPOSITIONS = ("basic", "optimal")


def problem(pieces: Pieces, *, promise: Any, alpha: Any) -> Problem:
    """A quasi-concave promise problem.

    Args:
      pieces: the quality Q, of sensitivity 1 (`ordered.from_breakpoints` and its like). Privacy holds whatever Q is, utility if it is
        quasi-concave.
      promise: p > 0, public: max Q >= p is promised.
      alpha: answers with Q >= (1 - alpha) p are wanted; in (0, 1].

    Raises:
      TypeError, ValueError: no pieces, or a number out of range.
    """
    if not isinstance(pieces, Pieces):
        raise TypeError(f"pieces must be ordered.Pieces, got {type(pieces).__name__}")
    promise = arguments.real("promise", promise, above=0.0, below=math.inf)
    alpha = arguments.real("alpha", alpha, above=0.0, at_most=1.0)
    return Problem(pieces=pieces, promise=jnp.asarray(promise, float), alpha=jnp.asarray(alpha, float))


class Optimizer:
    """What the three share: checked and compiled entry points around `_draw`, `_law` and `_pmf`.

    One compiled program serves every epsilon, delta, promise and alpha, and every T with the same number of limbs: those are data.
    """

    bits: Any
    limbs: int
    relation: str

    # What an optimiser defines --------------------------------------------------------------------------------

    def _draw(self, key: Array, problem: Problem) -> tuple[UInt32[Array, "limbs"], Bool[Array, ""], Any]:
        """One run: (point, whether there is one, info)."""
        raise NotImplementedError

    def _law(self, problem: Problem, marked: Bool[Array, "pieces"]) -> Float[Array, "2"]:
        """(P[the point is one <= T of a marked piece], P[not, or bottom])."""
        raise NotImplementedError

    def _pmf(self, problem: Problem, points: int) -> Float[Array, "outcomes"]:
        """P[0], ..., P[points - 1], P[bottom]."""
        raise NotImplementedError

    def guarantee(self) -> Guarantee:
        """The privacy that is proved."""
        raise NotImplementedError

    def error(self, beta: float) -> float:
        """The least alpha p for which an answer is within it of p with probability 1 - beta is proved, Q quasi-concave."""
        raise NotImplementedError

    # What everyone calls --------------------------------------------------------------------------------------

    def __call__(self, key: Array, problem: Problem) -> Outcome:
        """One run.

        Args:
          key: PRNG key.
          problem: see `problem`; its T must have 2^(bits-1) < T <= 2^bits.

        Returns:
          An `Outcome`: `hypothesis` is the point, uint32 (limbs of bits + 1 bits,); `status` is OK or BOTTOM; `info` what was chosen on
          the way (not private).

        Raises:
          TypeError, ValueError: a problem that does not fit (as far as it is not traced).
        """
        return _run(self, key, self.fit(problem))

    def success_probability(self, problem: Problem, *, error: Any = None) -> Float[Array, ""]:
        """P[Q(x) >= p - error], exactly; bottom is a failure.

        Args:
          problem: as above.
          error: additive, >= 0; alpha p if absent.
        """
        return self._judged(problem, error)[0]

    def failure_probability(self, problem: Problem, *, error: Any = None) -> Float[Array, ""]:
        """P[Q(x) < p - error, or bottom], as a sum of positive terms: 1e-12 comes out right in float32 too."""
        return self._judged(problem, error)[1]

    def pmf(self, problem: Problem) -> Float[Array, "outcomes"]:
        """P[x] for x = 0, ..., 2^bits, then P[bottom]: for the exact verifier on small ranges (bits <= 12)."""
        arguments.integer("bits", int(self.bits), at_least=1, at_most=LARGEST_PMF)
        return _pmf(self, self.fit(problem), (1 << int(self.bits)) + 1)

    def required_promise(self, beta: float, alpha: float) -> float:
        """`error(beta)` / alpha: the promise from which on an answer of (1 - alpha) times it is proved, with probability 1 - beta."""
        return self.error(beta) / float(arguments.real("alpha", alpha, above=0.0, at_most=1.0))

    # How ------------------------------------------------------------------------------------------------------

    def _judged(self, problem: Problem, error: Any) -> Float[Array, "2"]:
        problem = self.fit(problem)
        if error is None:
            error = problem.alpha * problem.promise
        error = arguments.real("error", error, at_least=0.0)
        return _judge(self, problem, jnp.asarray(error, float))

    def fit(self, problem: Problem) -> Problem:
        """The problem, checked."""
        if not isinstance(problem, Problem):
            raise TypeError(f"problem must be a quasi_concave.problem, got {type(problem).__name__}")
        pieces = problem.pieces
        if pieces.limbs != self.limbs:
            raise ValueError(f"problem.pieces must have {self.limbs} limbs for these bits, got {pieces.limbs}")
        known = not (arguments.is_traced(pieces.exponent) or arguments.is_traced(self.bits))
        if known and np.any(np.asarray(pieces.exponent) != int(self.bits)):
            rule = f"2^{int(self.bits) - 1} < T <= 2^{int(self.bits)}"
            raise ValueError(f"problem.pieces must end at a T with {rule}, got exponent {pieces.exponent}")
        return problem


@jax.jit
def _run(optimizer: Optimizer, key: Array, problem: Problem) -> Outcome:
    point, ok, info = optimizer._draw(key, problem)
    return Outcome.of(point, jnp.where(ok, Status.OK, Status.BOTTOM), info)


@jax.jit
def _judge(optimizer: Optimizer, problem: Problem, error: Array) -> Array:
    return optimizer._law(problem, problem.promise - problem.pieces.values <= error)


@jax.jit(static_argnums=2)
def _pmf(optimizer: Optimizer, problem: Problem, points: int) -> Array:
    return optimizer._pmf(problem, points)


def _pmf_by_goals(law: Callable[[Goal], Array], pieces: Pieces, points: int) -> Array:
    """Point by point, from a law that takes a goal."""

    def mass(low: Array, high: Array) -> Array:
        everything = jnp.ones((pieces.count,), bool)
        return law(Goal(marked=everything, within=Interval(low=low, high=high)))

    ends = [wide.from_uint32(jnp.arange(points, dtype=jnp.uint32) + jnp.uint32(step), pieces.limbs) for step in (0, 1)]
    masses = jax.vmap(mass)(*ends)[:, 0]
    return jnp.append(masses, mass(jnp.zeros_like(pieces.end), pieces.end)[1])


# -------------------------------------------------------------------------------------------------- the optimisers


@frozen
class Exponential(Optimizer):
    """The exponential mechanism over all points; it needs no promise and never fails to answer."""

    bits: Int[Array, ""]
    epsilon: Float[Array, ""]
    limbs: int = static()
    relation: str = static()

    def _mechanism(self) -> piecewise.ExponentialPiecewise:
        return piecewise.ExponentialPiecewise(epsilon=self.epsilon, relation=self.relation)

    def _draw(self, key: Array, problem: Problem) -> Any:
        return self._mechanism().draw(key, problem.pieces)

    def _law(self, problem: Problem, marked: Array) -> Array:
        return self._mechanism().law(problem.pieces, piecewise.goal(problem.pieces, marked))

    def _pmf(self, problem: Problem, points: int) -> Array:
        masses = _pmf_by_goals(lambda goal: self._mechanism().law(problem.pieces, goal), problem.pieces, points)
        return masses.at[-1].set(0.0)

    def guarantee(self) -> Guarantee:
        """(epsilon, 0): BNS Proposition 2.26 (i)."""
        return self._mechanism().guarantee()

    def error(self, beta: float) -> float:
        """(2/epsilon) ln((2^bits + 1)/beta): BNS Proposition 2.26 (ii)."""
        beta = float(arguments.fraction("beta", beta))
        return 2 / float(self.epsilon) * _log_ratio((1 << int(self.bits)) + 1, beta)


@frozen
class RecConcave(Optimizer):
    """RecConcave with `proved` A_dist: N levels, each mechanism with epsilon/(3N - 2), A_dist with delta/(2(N - 1)); see `rec_concave`."""

    bits: Int[Array, ""]
    epsilon: Float[Array, ""]
    delta: Float[Array, ""]
    limbs: int = static()
    levels: int = static()
    relation: str = static()

    def budget(self, xp: Any = jnp) -> recursive.Budget:
        """What each of N exponential mechanisms and 2(N - 1) A_dists may spend."""
        epsilon, delta = xp.asarray(self.epsilon, float), xp.asarray(self.delta, float)
        parts = 3 * self.levels - 2
        return recursive.Budget(
            epsilon=epsilon / parts, delta=delta / max(2 * (self.levels - 1), 1), calibration="proved"
        )

    def _draw(self, key: Array, problem: Problem) -> Any:
        run = recursive.sample(key, problem, self.budget(), self.levels)
        return run.point.position, run.ok, run

    def _law(self, problem: Problem, marked: Array) -> Array:
        return recursive.law(problem, self.budget(), self.levels, piecewise.goal(problem.pieces, marked))

    def _pmf(self, problem: Problem, points: int) -> Array:
        return _pmf_by_goals(
            lambda goal: recursive.law(problem, self.budget(), self.levels, goal), problem.pieces, points
        )

    def guarantee(self) -> Guarantee:
        """(epsilon, delta) by basic composition; delta is 0 if a single level runs."""
        return Guarantee(float(self.epsilon), float(self.delta) if self.levels > 1 else 0.0, self.relation)

    def error(self, beta: float) -> float:
        """`bounds.rec_concave_error`, from the algorithm's own stages (the paper's Lemma 3.14 has larger constants)."""
        delta = arguments.known("delta", self.delta)
        return bounds.rec_concave_error(
            1 << int(self.bits), self.levels, beta, arguments.known("epsilon", self.epsilon), delta
        )


@frozen
class Amplified(Optimizer):
    """The 2^(log* T) optimiser: N levels, and a budget for each mechanism and margin; see `dpjax.optimizers.amplified`."""

    bits: Int[Array, ""]
    epsilon: Float[Array, ""]
    delta: Float[Array, ""]
    budget: interior.Budget
    limbs: int = static()
    levels: int = static()
    relation: str = static()

    def _leaves(self) -> interior.Budget:
        """The budget in the default float."""
        return jax.tree.map(lambda leaf: jnp.asarray(leaf, float), self.budget)

    def _draw(self, key: Array, problem: Problem) -> Any:
        run = interior.sample(key, problem, self._leaves(), self.levels)
        return run.position, run.ok, run

    def _law(self, problem: Problem, marked: Array) -> Array:
        def judged(position: Array, piece: Array) -> Array:
            return jnp.stack([marked[piece], ~marked[piece]]).astype(float)

        judgement, bottom = interior.law(problem, self._leaves(), self.levels, judged)
        return judgement.at[1].add(bottom)

    def _pmf(self, problem: Problem, points: int) -> Array:
        def here(position: Array, piece: Array) -> Array:
            return (jnp.arange(points, dtype=jnp.uint32) == position[-1]).astype(float)

        masses, bottom = interior.law(problem, self._leaves(), self.levels, here)
        return jnp.append(masses, bottom)

    def mechanisms(self) -> dict[Guarantee, int]:
        """What the whole is composed of: N choices of a block, and N + 2 others (promise test, choices of a point, last level)."""
        return _mechanisms(float(self.budget.epsilon), float(self.budget.delta), self.levels, self.relation)

    def guarantee(self) -> Guarantee:
        """(epsilon, delta), which `mechanisms` keep together."""
        return Guarantee(float(self.epsilon), float(self.delta), self.relation)

    def error(self, beta: float) -> float:
        """n/2 + p - R of `dpjax.optimizers.amplified`, for the margins that were chosen when this was built.

        Raises:
          ValueError: beta is not above what the margins leave for it.
        """
        beta, each = float(arguments.fraction("beta", beta)), float(self.budget.beta)
        failure = beta - (2 * self.levels + 1) * each
        if failure <= 0:
            raise ValueError(f"beta must be > {beta - failure}, for which margins are made (see amplified), got {beta}")
        total = interior.required_total((1 << int(self.bits)) + 1, self.budget, self.levels, failure)
        return total / 2 + float(self.budget.slack(np))


def _log_ratio(size: int, beta: float) -> float:
    """ln(size/beta) for sizes beyond the range of floats."""
    return math.log(size) - math.log(beta)


def _mechanisms(epsilon: float, delta: float, levels: int, relation: str) -> dict[Guarantee, int]:
    return {Guarantee(2 * epsilon, delta, relation): levels, Guarantee(epsilon, 0.0, relation): levels + 2}


# ------------------------------------------------------------------------------------------------------ factories


def exponential(*, bits: int, epsilon: Any, relation: str = REPLACE_ONE) -> Exponential:
    """The exponential mechanism over {0, ..., T}.

    Args:
      bits: ceil(log2 T), 1 to 4096.
      epsilon: > 0, finite.
      relation: the neighbouring relation under which Q has sensitivity 1.

    Formal guarantees: (epsilon, 0). Not promised: floating-point side channels; a cryptographic generator.

    Raises:
      TypeError, ValueError: an argument out of range.
    """
    return Exponential(**_range(bits, relation), epsilon=arguments.epsilon(epsilon))


def rec_concave(*, bits: int, epsilon: Any, delta: Any, depth: int, relation: str = REPLACE_ONE) -> RecConcave:
    """RecConcave over {0, ..., T}; see `RecConcave`.

    Args:
      bits: ceil(log2 T), 1 to 4096.
      epsilon: total, > 0, finite.
      delta: total, in (0, 1/2]; 0 is allowed where a single level runs.
      depth: bound >= 1 on the number of levels; more than 3 never run.
      relation: the neighbouring relation under which Q has sensitivity 1.

    Formal guarantees: (epsilon, delta). Not promised: floating-point side channels; a cryptographic generator.

    Raises:
      TypeError, ValueError: an argument out of range.
    """
    fields = _range(bits, relation)
    levels = bounds.levels_run(1 << bits, arguments.integer("depth", depth, at_least=1))
    return RecConcave(
        **fields, epsilon=arguments.epsilon(epsilon), delta=_delta(delta, positive=levels > 1), levels=levels
    )


def amplified(
    *,
    bits: int,
    epsilon: Any,
    delta: Any,
    beta: Any = 0.1,
    depth: int | None = None,
    composition: str = "basic",
    relation: str = REPLACE_ONE,
) -> Amplified:
    """The optimiser with error 2^(log* T) over {0, ..., T}; see `Amplified`.

    Args:
      bits: ceil(log2 T), 1 to 4096.
      epsilon: total, > 0, finite.
      delta: total, in (0, 1/2].
      beta: failure probability in (0, 1) for which the margins are made; `error(beta)` can be asked for this or more.
      depth: number N of levels, 1 to 4; the one with the least error if absent.
      composition: "basic": epsilon/(3N + 2) and delta/N each. "optimal": delta/(2N) each, and the largest epsilon that fits (never less):
        for delta <= 1e-6 and N <= 2 that gained less than 0.1 %, for delta = 1e-3 and N = 3 it gains 8 %.
      relation: the neighbouring relation under which Q has sensitivity 1.

    Formal guarantees: (epsilon, delta). Not promised: floating-point side channels; a cryptographic generator.

    Raises:
      TypeError, ValueError: an argument out of range, or a traced one where depth or the optimal composition has to be found.
    """
    fields = _range(bits, relation)
    epsilon, delta, beta = arguments.epsilon(epsilon), _delta(delta), arguments.fraction("beta", beta)
    arguments.choice("composition", composition, COMPOSITIONS)
    traced = any(arguments.is_traced(value) for value in (epsilon, delta, beta))
    if traced and (depth is None or composition == "optimal"):
        raise TypeError(f"depth must be given, and composition 'basic', for traced arguments, got {depth!r}")

    def build(levels: int) -> Amplified:
        budget = _budget(epsilon, delta, beta, levels, composition)
        return Amplified(**fields, epsilon=epsilon, delta=delta, budget=budget, levels=levels)

    if depth is not None:
        return build(arguments.integer("depth", depth, at_least=1, at_most=DEEPEST))
    return min((build(levels) for levels in range(1, DEEPEST + 1)), key=lambda optimizer: optimizer.error(beta))


def _budget(epsilon: Any, delta: Any, beta: Any, levels: int, composition: str) -> interior.Budget:
    """Shares of N levels, so that together they keep (epsilon, delta)."""
    each_epsilon, each_delta = _share(epsilon, 3 * levels + 2), _share(delta, levels)
    if composition == "optimal":
        each_delta = _share(delta, 2 * levels)
        each_epsilon = _largest_epsilon(epsilon, delta, each_epsilon, each_delta, levels)
    return interior.Budget(epsilon=each_epsilon, delta=each_delta, beta=beta / (2 * levels + 2))


def _share(total: Any, parts: int) -> Any:
    """total / parts, rounded down on the host."""
    return total / parts if arguments.is_traced(total) else np.float64(at_most(Fraction(float(total)) / parts))


def _largest_epsilon(epsilon: float, delta: float, low: float, each_delta: float, levels: int) -> Any:
    """By bisection from the share of basic composition, which always fits."""
    high = float(epsilon)
    while high - low > 1e-6 * high:
        middle = (low + high) / 2
        fits = total_delta(_mechanisms(middle, float(each_delta), levels, REPLACE_ONE), float(epsilon)) <= delta
        low, high = (middle, high) if fits else (low, middle)
    return np.float64(low)


def _delta(value: Any, *, positive: bool = True) -> Any:
    """delta in (0, 1/2]: what A_dist and the promise test are proved for."""
    return arguments.real("delta", arguments.delta(value, positive=positive), at_most=0.5)


def _range(bits: int, relation: str) -> dict[str, Any]:
    """The fields that every optimiser has; a point, 0, ..., 2^bits, takes bits + 1 bits."""
    bits = arguments.integer("bits", bits, at_least=1, at_most=wide.MAX_BITS)
    relation = arguments.choice("relation", relation, RELATIONS)
    return {"bits": np.int32(bits), "limbs": wide.limbs_for(bits + 1), "relation": relation}
