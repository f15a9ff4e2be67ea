"""The best noise that can be added to an integer: the staircase in closed form, and the optimum by linear programming.

The answers of a query are integers, which change by at most D between neighbours; the release is the answer plus noise of a law P on the
integers. It is (epsilon, delta)-private iff for every shift s = 1, ..., D, in both directions,

    H_s = sum_x max(0, P(x) - e^epsilon P(x + s)) <= delta,

and the cost is the mean of a loss of the noise. For an even loss, two restrictions lose no generality:

- *An even law.* H_s is convex in P and the mirror image of a private law is private, so their average is private, and as good.
- *One direction.* For an even law, shifts by s and by -s have the same H.

**Finite descriptions.** A law is given by P(0), ..., P(R), R >= 2 D, and continues by P(x + D) = e^-epsilon P(x) for x > R - D. Every law
of finite support is of this form (its last D weights are 0), and so is the staircase. Sums over the tails are geometric: the points
x = R - D + 1, ..., R and x = -R - D, ..., -R - 1 stand for all their repetitions, and count 1 / (1 - e^-epsilon) times.
"""

import dataclasses
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from dpjax.core import arguments

LOSSES = ("absolute", "square", "zero_one")
ROUNDING = 1e-9  # by which, relatively, the losses of x and -x may differ
MIN_EPSILON = 2.0**-300  # its third power is a float
MAX_EPSILON = 50.0
MAX_SOLVED = 20.0  # beyond, e^epsilon leaves the solver no digits
MAX_PERIODS = 2**21  # the most integers of a tail that are summed, for a loss that is a function
Loss = str | Callable[[np.ndarray], Any]


@dataclasses.dataclass(frozen=True)
class Tails:
    """The parameters of the finite description of laws.

    Attributes:
      sensitivity: D, also the period of the tails. reach: R. rate: -ln of the factor by which the tails fall in a period.
    """

    sensitivity: int
    reach: int
    rate: float

    @property
    def places(self) -> np.ndarray:
        """All x at which P(x) is compared with P(x + s), all others being repetitions: -R - D, ..., R."""
        return np.arange(-self.reach - self.sensitivity, self.reach + 1)

    @property
    def repeated(self) -> np.ndarray:
        """Which of `places` stand for a whole tail."""
        return (self.places < -self.reach) | (self.places > self.reach - self.sensitivity)

    def multiples(self, xp: Any = np) -> Any:
        """How often each of `places` counts."""
        return xp.where(self.repeated, -1.0 / xp.expm1(-self.rate), 1.0)

    @property
    def beyond(self) -> tuple[np.ndarray, np.ndarray]:
        """For 0, ..., R + 2 D, all that `places` and shifts up to D reach: (which of 0, ..., R it repeats, after how many periods)."""
        x = np.arange(self.reach + 2 * self.sensitivity + 1)
        periods = np.maximum(0, -((self.reach - x) // self.sensitivity))
        return x - periods * self.sensitivity, periods


def tails(*, epsilon: Any, sensitivity: Any, reach: Any) -> Tails:
    """The description of laws on 0, ..., `reach` whose tails are as steep as epsilon allows.

    Raises:
      TypeError, ValueError: epsilon not in [MIN_EPSILON, MAX_EPSILON], sensitivity below 1, reach below twice the sensitivity.

    >>> tails(epsilon=1.0, sensitivity=2, reach=4).beyond[0].tolist()
    [0, 1, 2, 3, 4, 3, 4, 3, 4]
    """
    rate = arguments.known("epsilon", epsilon, at_least=MIN_EPSILON, at_most=MAX_EPSILON)
    sensitivity = arguments.integer("sensitivity", sensitivity, at_least=1, at_most=2**16)
    reach = arguments.integer("reach", reach, at_least=2 * sensitivity, at_most=2**20)
    return Tails(sensitivity=sensitivity, reach=reach, rate=rate)


def loss_values(loss: Loss, x: np.ndarray) -> np.ndarray:
    """The losses of noises x, float64.

    Raises:
      ValueError: an unknown name, or a function that is not even (up to rounding) or has values other than finite numbers >= 0.

    >>> loss_values("zero_one", np.arange(-1, 2)).tolist()
    [1.0, 0.0, 1.0]
    """
    if not callable(loss):
        arguments.choice("loss", loss, LOSSES)
        return {"absolute": abs(x), "square": x * x, "zero_one": x != 0}[loss].astype(float)
    here, there = (np.asarray(loss(part), float) for part in (x, -x))
    for values in (here, there):
        if values.shape != x.shape:
            raise ValueError(f"loss must map {x.size} integers to as many numbers, got shape {values.shape}")
    bad = ~(np.isfinite(here) & (here >= 0) & np.isclose(here, there, rtol=ROUNDING, atol=0.0))
    if bad.any():
        first = np.argmax(bad)
        at, one, other = (part.flat[first].item() for part in (x, here, there))
        raise ValueError(f"loss must be finite, >= 0 and the same for x and -x, got {one} and {other} at x = {at}")
    return here


def coefficients(loss: Loss, description: Tails) -> tuple[np.ndarray, np.ndarray]:
    """(cost, mass) on 0, ..., R: the mean loss of a law is cost @ P and its total probability mass @ P.

    With m_k = sum_{j >= 1} j^k e^(-rate j), the tail of P(a) costs sum_j e^(-rate j) (a + j D) = a m_0 + D m_1 under the absolute loss, and
    a^2 m_0 + 2 a D m_1 + D^2 m_2 under the square. A loss that is a function is summed over the tail, in blocks in which e^(-rate j) falls
    by 2^-64, until a block adds no more than a rounding.

    Raises:
      ValueError: see `loss_values`; also for a function whose tail is too long to sum, because epsilon is too small or the loss grows like
        e^(epsilon |x| / D).

    >>> cost, mass = coefficients("absolute", tails(epsilon=1.0, sensitivity=1, reach=2))
    >>> law = np.exp(-np.arange(3.0)) / (mass @ np.exp(-np.arange(3.0)))  # two-sided geometric
    >>> round(float(cost @ law), 6), round(1 / math.sinh(1.0), 6)
    (0.850918, 0.850918)
    """
    d, reach = description.sensitivity, description.reach
    x = np.arange(reach + 1)
    twice = np.where(x == 0, 1.0, 2.0)
    last = x[-d:]
    none = 1.0 / math.expm1(description.rate)
    cost, mass = twice * loss_values(loss, x), twice.copy()
    mass[-d:] += 2 * none
    cost[-d:] += 2 * _tail_loss(loss, last, d, description.rate)
    return cost, mass


def _block(rate: float) -> int:
    """The number of periods in which the tail falls by 2^-64."""
    return math.ceil(64 * math.log(2.0) / rate)


def _tail_loss(loss: Loss, last: np.ndarray, period: int, rate: float) -> np.ndarray:
    """sum_{j >= 1} e^(-rate j) loss(last + j period)."""
    if callable(loss):
        total, block = np.zeros(len(last)), _block(rate)
        for begin in range(1, MAX_PERIODS // period - block + 2, block):
            j = np.arange(begin, begin + block)
            more = np.exp(-rate * j) @ loss_values(loss, last + period * j[:, None])
            total += more
            if np.all(more <= 2.0**-53 * total):
                return total
        raise ValueError(
            f"epsilon must be so large that the loss adds up over a tail of {MAX_PERIODS} integers, got {rate!r}"
        )
    zeroth = 1.0 / math.expm1(rate)
    first = zeroth * (1.0 + zeroth)
    second = first * (1.0 + 2.0 * zeroth)
    a = last.astype(float)
    if loss == "absolute":
        return a * zeroth + period * first
    if loss == "square":
        return a * a * zeroth + 2.0 * a * period * first + period**2 * second
    return np.full(len(a), zeroth)


def staircase(loss: Loss, *, epsilon: float, sensitivity: int) -> tuple[float, np.ndarray]:
    """(mean loss, P(0), ..., P(2 D)) of the best pure noise (Geng and Viswanath 2016, the discrete staircase mechanism).

    P(x) = a for 0 <= x < r, a e^-epsilon for r <= x < D, then P(x + D) = e^-epsilon P(x), and P(-x) = P(x), where
    a = (1 - b) / (2 r + 2 b (D - r) - (1 - b)), b = e^-epsilon; the step r in 1, ..., D is the best for the loss. With D = 1 it is the
    two-sided geometric mechanism. No epsilon-private noise has a smaller mean of any loss that is even and increases with |x|.

    Args:
      loss: "absolute", "square", "zero_one", or a function of integers, which may not fall as |x| grows (checked on all but 2^-64 of the
        noise).
      epsilon: from MIN_EPSILON to MAX_EPSILON.
      sensitivity: D >= 1.

    Raises:
      TypeError, ValueError: an argument out of range; a loss that falls.

    >>> value, law = staircase("zero_one", epsilon=1.0, sensitivity=1)
    >>> round(1 - value, 6), round(math.tanh(0.5), 6)
    (0.462117, 0.462117)
    """
    description = tails(epsilon=epsilon, sensitivity=sensitivity, reach=2 * arguments.count("sensitivity", sensitivity))
    d, b, less = description.sensitivity, math.exp(-description.rate), -math.expm1(-description.rate)
    cost, _ = coefficients(loss, description)
    if callable(loss):
        values = loss_values(loss, np.arange(d * (_block(description.rate) + 2) + 1))
        if np.any(falls := values[1:] < values[:-1] * (1 - ROUNDING)):
            raise ValueError(f"loss must not fall as |x| grows, got less at x = {np.argmax(falls) + 1} than before")
    x, steps = np.arange(2 * d + 1), np.arange(1, d + 1)
    by_place = np.cumsum(
        np.bincount(x % d, cost * b ** (x // d), minlength=d)
    )  # what the first r places of all periods cost
    tops = less / (2 * steps + 2 * b * (d - steps) - less)
    r = steps[np.argmin(tops * (by_place + b * (by_place[-1] - by_place)))]
    best = tops[r - 1] * b ** (x // d + (x % d >= r))
    return float(cost @ best), best


def least_noise(loss: Loss, *, epsilon: float, delta: float, sensitivity: int, reach: int) -> tuple[float, np.ndarray]:
    """(least mean loss, P(0), ..., P(R)) of (epsilon, delta)-private noise, by linear programming.

    It is exact, up to the solver's tolerance, over all laws of the module's finite description: all laws of support within R - D, and those
    with tails. The tolerance of about 1e-7 applies to probabilities, which losses multiply: with a square loss of thousands at the reach,
    the result may be a relative 1e-5 below the optimum, by a law that is private up to 1e-7. The least loss falls as `reach` grows and then
    stays; the optimum over all laws is its limit.

    Args:
      loss: "absolute", "square", "zero_one", or a function of integers.
      epsilon: in (0, MAX_SOLVED]; the solver works to absolute tolerances, so the optimum loses as many digits as e^epsilon has.
      delta: in [0, 1).
      sensitivity: D >= 1.
      reach: R >= 2 D.

    Raises:
      TypeError, ValueError: an argument out of range.
      RuntimeError: HiGHS found no optimum.

    >>> value, law = least_noise("absolute", epsilon=1.0, delta=0.0, sensitivity=4, reach=12)
    >>> round(value, 5), round(staircase("absolute", epsilon=1.0, sensitivity=4)[0], 5)
    (3.80543, 3.80543)
    """
    from scipy import optimize, sparse

    epsilon = arguments.number("epsilon", epsilon, above=0.0, at_most=MAX_SOLVED)
    description = tails(epsilon=epsilon, sensitivity=sensitivity, reach=reach)
    delta = arguments.number("delta", delta, at_least=0.0, below=1.0)
    cost, mass = coefficients(loss, description)
    columns, periods = description.beyond
    law = sparse.coo_array(
        (np.exp(-description.rate * periods), (np.arange(len(columns)), columns)), shape=(len(columns), len(cost))
    ).tocsr()
    x, d = description.places, description.sensitivity
    losses = sparse.vstack(
        [law[abs(x)] - math.exp(description.rate) * law[abs(x + s)] for s in range(1, d + 1)], format="csr"
    )
    limits = np.zeros(losses.shape[0])
    constraints = losses
    if delta > 0:  # excess >= P(x) - e^epsilon P(x + s), >= 0, at most delta in all for each shift
        excess = sparse.kron(sparse.eye_array(d), description.multiples()[None])
        constraints = sparse.block_array([[losses, -sparse.eye_array(len(limits))], [None, excess]], format="csr")
        limits = np.append(limits, np.full(d, delta))
    pad = np.zeros(constraints.shape[1] - len(cost))
    result = optimize.linprog(
        np.append(cost, pad), constraints, limits, np.append(mass, pad)[None], [1.0], method="highs"
    )
    if result.status != 0:
        raise RuntimeError(f"HiGHS found no optimum: {result.message}")
    return float(result.fun), result.x[: len(cost)]
