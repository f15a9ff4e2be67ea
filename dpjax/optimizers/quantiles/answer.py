"""Private quantiles of a column in one call: the algorithm is chosen by what is public, and the answer says how far off it may be."""

import dataclasses
import functools
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from dpjax.accounting import Guarantee, exponential_rate
from dpjax.accounting.adaptive import ADAPTIVE
from dpjax.accounting.exponential import currency
from dpjax.core import arguments, show, staging
from dpjax.data.encoding import Column, Encoding
from dpjax.data.outcome import Outcome
from dpjax.data.points import Points
from dpjax.data.sample import Sample
from dpjax.domains import wide
from dpjax.optimizers.quantiles.approximate import MOST_BITS, ApproximateQuantiles, approximate
from dpjax.optimizers.quantiles.base import Quantiles
from dpjax.optimizers.quantiles.inverse_sensitivity import inverse_sensitivity
from dpjax.optimizers.quantiles.joint import joint
from dpjax.optimizers.quantiles.permute_and_flip import PermuteAndFlip, permute_and_flip
from dpjax.optimizers.quantiles.rank_exponential import rank_exponential
from dpjax.optimizers.quantiles.ranked import RankedQuantiles, rounded_fractions


def _by_places(make: Any, *, delta: float = 0.0, **given: Any) -> Any:
    """One mechanism that finds all quantiles, wherever they lie: a small delta would gain next to nothing, and is left unspent."""
    return make(**given, base="places")


def _approximate(*, origin: int, **given: Any) -> ApproximateQuantiles:
    """`approximate` for a total that is known, and without an origin: its outputs weigh the same, wherever they are."""
    return approximate(**given, accountant=ADAPTIVE)


def _permute_and_flip(*, delta: float = 0.0, rho: float | None = None, **given: Any) -> PermuteAndFlip:
    """`permute_and_flip` by scales; a delta is left unspent, too."""
    if rho is not None:
        raise ValueError('algorithm="permute_and_flip" takes a total of epsilon, not of rho: use "rank_exponential"')
    return permute_and_flip(**given, base="scales")


# The numbers of quantiles from which `joint` is chosen, and from which `approximate` is, for totals of rho and for all others. They were
# measured; see README.md beside this file.
MANY = 48
SO_MANY_AT_RHO, SO_MANY = 24, 128
# How much larger its rate must be for the exponential mechanism to err less than permute-and-flip: in each of 18 cells (two fractions,
# three epsilons, three kinds of data of 200 points) its mean error was then at most 0.96 of the other's; with 1.1, up to 1.3 of it.
FASTER = 1.2

ALGORITHMS: dict[str, Any] = {
    "approximate": _approximate,
    "inverse_sensitivity": functools.partial(_by_places, inverse_sensitivity),
    "joint": functools.partial(_by_places, joint),
    "permute_and_flip": _permute_and_flip,
    "rank_exponential": functools.partial(rank_exponential, base="scales"),
}


@dataclasses.dataclass(frozen=True)
class Exactly:
    """The error on given data, by the law. The data must be public: this is not private.

    Attributes:
      rank_error: the least number of ranks such that no value is off by more, except with probability at most beta.
      probability: the probability that no value is off by more, at least 1 - beta.
      low, high: the values between which each answer then lies, both inclusive: for the rank k the (k - `rank_error`)-th value and the
        (k + `rank_error` + 1)-th, below which there are k + `rank_error` values; the ends of the domain where there is no such value.
    """

    rank_error: int
    probability: float
    low: Any
    high: Any


@dataclasses.dataclass(frozen=True)
class Answer:
    """Private quantiles; all of it but `outcome.info` may be released.

    Attributes:
      values: the quantiles, increasing, as values of the column (or integers, for points).
      fractions: the fractions that they belong to.
      rank_error: with probability 1 - beta no value is more than this number of ranks from the wanted one, floor(f n + 1/2), whatever the
        data.
      beta: the probability with which `rank_error` may be exceeded.
      algorithm: the algorithm that found them; call its other methods on public data only.
      guarantee: that of all values together, never more than the requested total; for a total of rho, the pure epsilon that it takes.
      rho: all values together are rho-zCDP.
      outcome: the outcome of the run.
      encoding: the encoding of the column; None for points.
    """

    values: Any
    fractions: tuple[float, ...]
    rank_error: float
    beta: float
    algorithm: Quantiles
    guarantee: Guarantee
    rho: float
    outcome: Outcome
    encoding: Encoding | None

    def __repr__(self) -> str:
        shown = ", ".join(
            f"{fraction:.10g}: {value}" for fraction, value in zip(self.fractions, self.values, strict=True)
        )
        if len(shown) > 300:
            shown = shown[:300] + " ..."
        error = f"all within {self.rank_error:,.0f} ranks with probability {show.but(self.beta)}"
        promise = f"{self.guarantee}, {show.at_least(self.rho)}-zCDP"
        return f"Quantiles {shown}; {error}; {promise}; by {type(self.algorithm).__name__}"

    def exactly(self, data: Any) -> Exactly:
        """The error on PUBLIC data, by the law of the algorithm: for planning, on data like one's own.

        "inverse_sensitivity" has no law of intervals: then the result is an upper bound, and a few ranks less might hold, too; see
        `InverseSensitivityQuantiles.failure_bound`. So it is for several fractions by "permute_and_flip" and "rank_exponential", whose runs
        are judged one by one, before their answers are sorted. This takes about ten evaluations: half a minute for 1,000 points, most of it
        compilation, and minutes for 100,000, or, of a single fraction, for millions.

        Args:
          data: a `Column`, or `Points` or a `Sample`, of the same domain.

        Raises:
          TypeError: the algorithm was "approximate", which has no law of ranks.
          ValueError: a column of another domain.
        """
        algorithm = self.algorithm
        if not isinstance(algorithm, RankedQuantiles):
            raise TypeError(f"algorithm must have a law of ranks, got {type(algorithm).__name__}")
        if isinstance(data, Column) and data.bits != int(algorithm.bits):
            raise ValueError(f"data must have the {int(algorithm.bits)} bits of the answer's domain, got {data.bits}")
        if isinstance(data, Column) and self.encoding is not None and not data.encoding.agrees(self.encoding):
            raise ValueError(f"data must be encoded as the answer's column, by {self.encoding}, got {data.encoding}")
        points, decode = _points(data)
        points = algorithm.fit(points)
        n = int(points.n_valid)

        def within(ranks: int) -> float:
            return float(_beyond(algorithm, points, np.int32(ranks)))

        low, high = -1, 1  # the failure is above beta at low (or low is no error)
        while high < n and within(high) > self.beta:
            low, high = high, 2 * high
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if within(middle) <= self.beta else (middle, high)
        ordered = algorithm.prepare(points)
        near = algorithm.near(ordered, jnp.int32(high))
        first, last = (wide.to_ints(end) for end in (near.low, near.high))
        return Exactly(
            rank_error=high,
            probability=1 - within(high),
            low=decode(first),
            high=decode([end - 1 for end in last]),
        )


@jax.jit
def _beyond(algorithm: RankedQuantiles, points: Points, ranks: Any) -> Any:
    """The probability that some quantile is not within some ranks, or a bound on it."""
    view = algorithm.prepare(points)
    return algorithm.failure_bound(view, algorithm.near(view, ranks))


def chosen(
    *, fractions: Sequence[float], epsilon: float = 1.0, delta: float = 0.0, rho: float | None = None, bits: int = 1
) -> str:
    """The name of the algorithm to use, by the fractions, the total and the bits, which are public.

    One quantile is found by its rank error, several by inverse sensitivity, which for one quantile is the same score but must find a place
    among equal points. For one quantile permute-and-flip has smaller errors than the exponential mechanism at the same rate, but a total of
    rho, or a large delta, gives the latter a higher rate (epsilon matters only then). Inverse sensitivity is one mechanism, which a delta
    does not help; the levels of `approximate` and the runs of `rank_exponential` compose, and the former are few. From `SO_MANY` quantiles
    on, `approximate` is used: on a thousand points the others lose all accuracy, and on many thousands they take minutes. README.md beside
    this file says what was measured. Below that, `joint` is used from `MANY` quantiles on: its errors there are as large as those of
    inverse sensitivity, in a sixth of the time.

    >>> chosen(fractions=[0.5]), chosen(fractions=[0.5], rho=0.02), chosen(fractions=[0.25, 0.5, 0.75])
    ('permute_and_flip', 'rank_exponential', 'inverse_sensitivity')
    >>> percentiles = [i / 100 for i in range(1, 100)]
    >>> chosen(fractions=percentiles), chosen(fractions=percentiles, rho=0.02)
    ('joint', 'approximate')
    """
    each = rounded_fractions(fractions)
    if len(each) >= (SO_MANY if rho is None else SO_MANY_AT_RHO) and bits <= MOST_BITS:
        return "approximate"
    if len(each) > 1:
        return "joint" if len(each) >= MANY else "inverse_sensitivity"
    rate = exponential_rate(epsilon, delta, ranges=1.0, squares=1.0, independent=True)
    return "rank_exponential" if rho is not None or rate > FASTER * epsilon else "permute_and_flip"


def of_choice(algorithm: str | None, *, bits: int, fractions: Sequence[float], origin: int = 0, **budget: Any) -> Any:
    """The algorithm of that name, or the one `chosen`, for a total of epsilon and perhaps delta, or of rho; `origin` is for `scales`."""
    name = chosen(fractions=fractions, bits=bits, **budget) if algorithm is None else algorithm
    make = ALGORITHMS[arguments.choice("algorithm", name, tuple(ALGORITHMS))]
    return make(bits=bits, fractions=fractions, origin=origin, **budget)


def quantiles(
    data: Any,
    fractions: Sequence[float],
    *,
    epsilon: float | None = None,
    delta: float = 0.0,
    rho: float | None = None,
    key: Any,
    beta: float = 0.05,
    bits: int | None = None,
    algorithm: str | None = None,
) -> Answer:
    """Private quantiles of a column, under ADD_OR_REMOVE_ONE; the number of records is private, too.

    Args:
      data: a `Column` of `dpjax.encode`, whose bounds and unit are public; or `Points`, or a `Sample`, whose labels are ignored.
      fractions: increasing, from 0 to 1. A quantile 0 may be far below all records; likewise for 1.
      epsilon: the total for all quantiles together.
      delta: likewise, in [0, 1).
      rho: the total of zero-concentrated privacy, in place of epsilon and delta.
      key: PRNG key.
      beta: the probability with which `rank_error` may be exceeded.
      bits: those of the domain of `Points` or of a `Sample`; default: all that their limbs hold. A column has its own.
      algorithm: one of `ALGORITHMS`; default `chosen`, by the fractions, the kind of total and the bits, never by the data. For two dozen
        or more quantiles of few records, fewer than about 8 / epsilon for each quantile, "approximate" is the safe choice.

    Formal guarantees: (epsilon, delta), or rho-zCDP, under ADD_OR_REMOVE_ONE for `values` and `rank_error` together, for columns whose
    encoding is public: an array of a fixed type, with bounds and unit if any. (A type may depend on the values, see
    `dpjax.data.encoding`.) The weights of outputs also depend on public intervals of codes, and on their distance from `Encoding.origin`,
    which is public, too (for points: from 0). `rank_error` is about the encoded column, after clipping and rounding to units. Not promised:
    protection from floating-point side channels and from timing; a cryptographic generator.

    The more fractions there are, the longer a run takes: on 1,000 values 0.2 s for 9 fractions, 5 s for 24 and up to a minute for 127 (two
    cores of a slow machine). `algorithm="approximate"` takes milliseconds, and has larger errors except for a hundred fractions or so.

    Raises:
      TypeError, ValueError: an argument out of range; data of another type, or outside the domain.

    >>> import dpjax
    >>> incomes = np.random.default_rng(0).lognormal(10, 1, 2000)
    >>> column = dpjax.encode(incomes, unit=1, low=0, high=1_000_000, clip=True)
    >>> answer = dpjax.quantiles(column, [0.5], epsilon=1.0, key=jax.random.key(0))
    >>> print(answer)  # doctest: +NORMALIZE_WHITESPACE
    Quantiles 0.5: 21295.0; all within 17 ranks with probability 0.95; (1.0, 0.0)-private under ADD_OR_REMOVE_ONE, 0.4622-zCDP; by
    PermuteAndFlip
    """
    points, decode = _points(data)
    if arguments.is_traced(key) or arguments.is_traced(points.x):
        raise TypeError(
            "key and data must be known: answers are read on the host; under jit or vmap run the algorithm itself"
        )
    origin = 0
    if isinstance(data, Column):
        if bits is not None:
            raise ValueError(f"bits must not be given with a column, which has {data.bits}, got {bits}")
        bits, origin = data.bits, data.encoding.origin
    elif bits is None:
        bits = 32 * points.x.shape[1]
    beta = arguments.known_fraction("beta", beta)
    currency(epsilon, delta, rho)
    if rho is None:
        epsilon, delta = arguments.epsilon(epsilon), arguments.delta(delta, positive=False)
        budget = {"epsilon": arguments.known("epsilon", epsilon), "delta": arguments.known("delta", delta)}
    else:
        budget = {"rho": arguments.known("rho", rho)}
    made = of_choice(algorithm, bits=bits, fractions=fractions, origin=origin, **budget)
    # The focused algorithm reveals how many rows there are: it is run, but not returned.
    focused = made.focused(points.rows)
    outcome = _program()(focused, arguments.key(key), focused.fit(points))
    return Answer(
        values=decode(wide.to_ints(outcome.hypothesis)),
        fractions=tuple(float(fraction) for fraction in fractions),
        rank_error=made.error(beta=beta) + 0.5,  # f n is rounded to a whole rank
        beta=beta,
        algorithm=made,
        guarantee=made.guarantee(),
        rho=made.zcdp(),
        outcome=outcome,
        encoding=data.encoding if isinstance(data, Column) else None,
    )


@functools.cache
def _program() -> Any:
    """One run, with compiler options for fast compilation, which takes far longer than the run itself."""
    return jax.jit(lambda algorithm, key, points: algorithm(key, points), compiler_options=staging.compiled_fast())


def _points(data: Any) -> tuple[Points, Any]:
    """(the points, the function that turns a list of outputs into values)."""
    if isinstance(data, Column):
        return data.points, data.decode
    if not isinstance(data, Points | Sample):
        raise TypeError(f"data must be a Column of dpjax.encode, or dpjax.Points, got {type(data).__name__}")
    return Points.of(data), _integers


def _integers(values: list[int]) -> np.ndarray:
    """As NumPy has them, but for those that no int64 holds, which it would round: all are Python's then."""
    return np.array(values, np.int64 if all(value < 2**63 for value in values) else object)
