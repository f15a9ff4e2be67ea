"""Guarantees as differentiable functions of the budget: basic and optimal composition, and the budget that just keeps a total.

Everything here can be traced, batched and differentiated, forward and in reverse, in the default float: float64 within `jax.enable_x64()`.
None of it is a promise: the claim of a release is checked on the host (`dpjax.accounting`), where rounding is pessimistic.

Among all (e, d)-private mechanisms one is worst, in composition too: its privacy loss is infinite with probability d, and otherwise +e or
-e with odds exp(e) : 1. So the optimal composition of mechanisms (e_i, d_i), chosen adaptively, is exactly that of the corresponding worst
ones (Kairouz, Oh, Viswanath 2015; Murtagh, Vadhan 2016 for unequal budgets):

    delta(E) = 1 - prod (1 - d_i) (1 - D(E)),    D(E) = sum over subsets S of  P[S] max(0, 1 - exp(E - L(S))),

with P[S] = prod over S of exp(e_i) / (1 + exp(e_i)) times prod over the others of 1 / (1 + exp(e_i)), and L(S) the sum of e_i over S
minus that over the others. Mechanisms with one budget are a group: how many of them are in S is binomial, so m of them have
m + 1 terms instead of 2^m.

The host's `accounting.composition.total_delta` is the same number by convolutions.
"""

import functools
import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float

from dpjax.core import arguments, logspace

MOST_TERMS = 2**16
_HALVINGS = 64


def basic(epsilons: Any, deltas: Any, times: Sequence[int]) -> tuple[Float[Array, ""], Float[Array, ""]]:
    """(sum of m e, sum of m d): basic composition (BNS, Theorem 2.4).

    Args:
      epsilons, deltas: one for each group, shape (groups,).
      times: how many mechanisms each group has.

    >>> [float(total) for total in basic([0.25, 0.5], [0.0, 0.125], times=(2, 1))]
    [1.0, 0.125]
    """
    epsilons, deltas, counts = _groups("epsilons", epsilons, deltas, times)
    many = jnp.asarray(counts, epsilons.dtype)
    return jnp.sum(many * epsilons), jnp.sum(many * deltas)


def total_delta(epsilons: Any, deltas: Any, epsilon: Any, times: Sequence[int]) -> Float[Array, ""]:
    """delta(E) of the optimal composition; see the module. `log_total_delta` is differentiable where this underflows.

    Args:
      epsilons, deltas: one for each group, shape (groups,); epsilons >= 0, deltas in [0, 1).
      epsilon: E >= 0.
      times: how many mechanisms each group has; at most 65,536 terms, the product of times + 1.

    Raises:
      TypeError, ValueError: known numbers out of range, times that are not one count for each group, or too many terms.

    >>> round(float(total_delta([0.5], [0.0], 0.5, times=(2,))), 4)  # (e^1 - e^0.5) / (1 + e^0.5)^2
    0.1525
    """
    epsilons, deltas, counts = _groups("epsilons", epsilons, deltas, times)
    epsilon = _total("epsilon", epsilon, at_least=0.0)
    own = _own(deltas, counts)
    return own + (1 - own) * jnp.exp(_log_excess(epsilons, epsilon, counts))


def log_total_delta(epsilons: Any, deltas: Any, epsilon: Any, times: Sequence[int]) -> Float[Array, ""]:
    """ln of `total_delta`, a sum of positive terms: accurate however small, and -inf where it is 0.

    >>> with jax.enable_x64():
    ...     round(float(log_total_delta([1.0], [1e-300], 1.0, times=(1,))), 3)
    -690.776
    """
    epsilons, deltas, counts = _groups("epsilons", epsilons, deltas, times)
    epsilon = _total("epsilon", epsilon, at_least=0.0)
    log_rest = _log_rest(deltas, counts)
    own, excess = -jnp.expm1(log_rest), _log_excess(epsilons, epsilon, counts)
    some = own > 0
    log_own = jnp.log(jnp.where(some, own, 1.0))
    # At own = 0, ln(own) cannot supply the derivative 1/D - 1 of ln(own + (1 - own) D), which may be infinite where D = 0.
    most = math.log(jnp.finfo(excess.dtype).max) - 1  # even after rounding, its exponential is finite
    pure = excess + jnp.log1p(jnp.where(some, 0.0, own) * jnp.expm1(jnp.minimum(-excess, most)))
    return jnp.where(some, logspace.logaddexp(log_own, log_rest + excess), pure)


def calibrated(ratios: Any, deltas: Any, epsilon: Any, delta: Any, times: Sequence[int]) -> Float[Array, "groups"]:
    """The epsilons in given ratios whose optimal composition with these deltas is exactly (epsilon, delta)-private.

    e_g = s r_g, where s solves delta(E) = D. With basic composition s would be E / sum m r; here it is exp(u) times that, u > 0 being the
    only root of an increasing function. u is found by bisection of ln u, as it may be 1e-300, and differentiated by the implicit function
    theorem (`lax.custom_root`): no bisection is ever unrolled.

    Args:
      ratios: r_g > 0, shape (groups,); only their proportions matter.
      deltas: d_g, shape (groups,). 1 - prod (1 - d) must be below D: the rest of D pays for the composition.
      epsilon, delta: E > 0, and D in (0, 1).
      times: how many mechanisms each group has.

    Returns:
      The epsilons, never below those of basic composition; NaN where the deltas leave nothing of D.

    Raises:
      ValueError: as for `total_delta`.

    >>> with jax.enable_x64():
    ...     each = calibrated([1.0, 2.0], [0.0, 0.0], 1.0, 1e-3, times=(10, 5))
    ...     found = total_delta(each, [0.0, 0.0], 1.0, times=(10, 5))
    ...     print(float(each[0]) > 1 / 20, round(float(found), 9))
    True 0.001
    """
    ratios, deltas, counts = _groups("ratios", ratios, deltas, times, above=0.0)
    epsilon = _total("epsilon", epsilon, above=0.0, below=math.inf)
    delta = _total("delta", delta, above=0.0, below=1.0)
    own = _own(deltas, counts)
    # What D leaves for D(E). Its derivatives are taken at a harmless value where nothing is left.
    target = (delta - own) / (1 - own)
    left = target > 0
    log_target = jnp.log(jnp.where(left, target, 0.5))
    shares = ratios / jnp.sum(jnp.asarray(counts, ratios.dtype) * ratios)
    log_u = _solved(shares, epsilon, log_target, counts)
    return jnp.where(left, epsilon * jnp.exp(jnp.exp(log_u)) * shares, jnp.nan)


def _solved(shares: Array, epsilon: Array, log_target: Array, counts: tuple[int, ...]) -> Array:
    """ln u such that epsilons E exp(u) shares have ln D(E) = log_target."""

    def missing(log_u: Array) -> Array:
        return _log_excess_above(shares, epsilon, jnp.exp(log_u), counts) - log_target

    # A single mechanism at (x, 0) has D(E) >= target for x = ln((target + e^E) / (1 - target)): the largest share must not exceed it.
    most = jnp.logaddexp(log_target, epsilon) - jnp.log1p(-jnp.exp(log_target))
    factor = most / (epsilon * jnp.max(shares))
    top = jnp.log(jnp.log(jnp.maximum(factor, 1.0)) + 1.0)
    bottom = jnp.full_like(top, math.log(float(jnp.finfo(shares.dtype).tiny)))

    def bisected(function: Any, _: Array) -> Array:
        def halved(ends: tuple[Array, Array], _: Any) -> tuple[tuple[Array, Array], Any]:
            low, high = ends
            middle = low / 2 + high / 2
            enough = function(middle) >= 0
            return (jnp.where(enough, low, middle), jnp.where(enough, middle, high)), None

        (_, high), _ = lax.scan(halved, (bottom, top), None, length=_HALVINGS)
        return high

    return lax.custom_root(missing, jnp.zeros_like(top), bisected, lambda linear, y: y / linear(jnp.ones_like(y)))


def _numbers(name: str, values: Any, **bounds: float) -> Array:
    """The values as an array; known ones must keep the bounds, and must not become NaN, 0 or infinity in the default float."""
    return checked(name, values, lambda one: arguments.real(name, one, **bounds))


def checked(name: str, values: Any, check: Callable[[float], Any]) -> Array:
    """The values as an array, if the check lets each known one pass; TypeError for what is no array of numbers."""
    for part in jax.tree.leaves(values):
        if not arguments.is_traced(part):
            for one in np.ravel(arguments.array(name, part)).tolist():
                check(one)
    try:
        return jnp.asarray(values, float)
    except (TypeError, ValueError):  # None, rows of different lengths, a dict
        rule = "an array of numbers"
        raise TypeError(f"{name} must be {rule}, got {values!r} of type {type(values).__name__}") from None


def _groups(
    name: str, values: Any, deltas: Any, times: Sequence[int], **bounds: float
) -> tuple[Array, Array, tuple[int, ...]]:
    """Arrays of one length, and the counts as integers."""
    epsilons = _numbers(name, values, **{"at_least": 0.0, "below": math.inf} | bounds)
    deltas = _numbers("deltas", deltas, at_least=0.0, below=1.0)
    if epsilons.ndim != 1 or deltas.shape != epsilons.shape:
        raise ValueError(f"{name} and deltas must have one shape (groups,), got {epsilons.shape}, {deltas.shape}")
    counts = counts_of(times)
    if len(counts) != epsilons.shape[0]:
        raise ValueError(f"times must have one count for each of {epsilons.shape[0]} groups, got {len(counts)}")
    terms = math.prod(many + 1 for many in counts)
    if terms > MOST_TERMS:
        raise ValueError(f"times must make at most {MOST_TERMS} terms, the product of times + 1, got {terms}")
    return epsilons, deltas, counts


def counts_of(times: Sequence[int]) -> tuple[int, ...]:
    """How many mechanisms each group has, as integers; TypeError or ValueError if these are not counts."""
    given = map(arguments.plain, arguments.several("times", times))
    return tuple(arguments.integer(f"times[{i}]", many, at_least=1) for i, many in enumerate(given))


def _total(name: str, value: Any, **bounds: float) -> Array:
    """A single number, checked likewise: given several, each term of a sum would take a different one."""
    number = _numbers(name, value, **bounds)
    if number.shape != ():
        raise ValueError(f"{name} must be a single number (jax.vmap takes arrays), got shape {number.shape}")
    return number


@jax.jit(static_argnames="counts")
def _own(deltas: Array, counts: tuple[int, ...]) -> Array:
    """1 - prod (1 - d)."""
    return -jnp.expm1(_log_rest(deltas, counts))


def _log_rest(deltas: Array, counts: tuple[int, ...]) -> Array:
    """ln prod (1 - d), which is finite even where 1 - prod (1 - d) is rounded to 1."""
    return jnp.sum(jnp.asarray(counts, deltas.dtype) * jnp.log1p(-deltas))


@functools.cache
def _terms(counts: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    """For every term, how many of each group are in S, and ln of the number of such S."""
    inside = np.array(list(itertools.product(*(range(many + 1) for many in counts))))
    choices = sum(np.array(_log_combs(many))[inside[:, group]] for group, many in enumerate(counts))
    return inside, np.asarray(choices)


def _log_combs(many: int) -> list[float]:
    """ln of the binomial coefficients of `many`, each computed from the one before."""
    combs = [1]
    for taken in range(many):
        combs.append(combs[-1] * (many - taken) // (taken + 1))
    return list(map(math.log, combs))


@jax.jit(static_argnames="counts")  # outside other programs, one program, not one for each operation
def _log_excess(epsilons: Array, epsilon: Array, counts: tuple[int, ...]) -> Array:
    """ln D(E)."""
    inside, _ = _terms(counts)
    signs = jnp.asarray(2 * inside - np.array(counts), epsilons.dtype)
    return _log_sum(epsilons, jnp.sum(signs * epsilons[None], axis=-1) - epsilon, counts)


@jax.jit(static_argnames="counts")
def _log_excess_above(shares: Array, epsilon: Array, u: Array, counts: tuple[int, ...]) -> Array:
    """ln D(E) of the epsilons E exp(u) shares, whose sum exceeds E by E (exp(u) - 1): written so that u may be far below rounding."""
    inside, _ = _terms(counts)
    epsilons = epsilon * jnp.exp(u) * shares
    outside = jnp.asarray(np.array(counts) - inside, epsilons.dtype)
    return _log_sum(epsilons, epsilon * jnp.expm1(u) - 2 * jnp.sum(outside * epsilons[None], axis=-1), counts)


def _log_sum(epsilons: Array, above: Array, counts: tuple[int, ...]) -> Array:
    """ln of the sum of P[S] max(0, 1 - exp(-above)), above = L(S) - E."""
    inside, choices = _terms(counts)
    many = jnp.asarray(counts, epsilons.dtype)
    weights = jnp.sum(jnp.asarray(inside, epsilons.dtype) * epsilons[None], axis=-1)
    log_p = jnp.asarray(choices, epsilons.dtype) + weights - jnp.sum(many * jax.nn.softplus(epsilons))
    counted = above > 0
    terms = log_p + logspace.log1mexp(-jnp.where(counted, above, 1.0))
    return logspace.logsumexp(jnp.where(counted, terms, -jnp.inf))
