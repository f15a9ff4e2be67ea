"""The synchronisation mapping of Reorder-Slice-Compute (CLNSS, Lemma 2.4), in float64 on the host.

A slice has m + G elements, G ~ Geom(1 - exp(-epsilon)): P[G = i] = (1-r) r^i with r = exp(-epsilon). Where the slices
of two neighbours differ, the data holder reports not G but (alpha, beta) ~ R^b(G), with b = 1 for the larger dataset.
With t_i = max(0, r^i + r^(i+1) - 1):

    R^b(i) = (i, 0) with probability t_i r^-(i+b) (they stay apart), else (i-b, 1) (synchronised from here on).

R^1(0) = (0, 0) surely, because t_0 = r: alpha is never -1. The lemma's properties hold for every epsilon > 0 (the
paper says epsilon < 1):
1. alpha = i when beta = 0, and alpha = i-b when beta = 1: by definition.
2. The laws of (alpha, beta) for b = 0 and b = 1 are within a factor exp(epsilon): P_0[(i, 0)] = (1-r) t_i =
   r P_1[(i, 0)], and with E = exp((i+1) epsilon) - 1, P_0[(i, 1)] / P_1[(i, 1)] = min(1, r E) / min(r, E), which
   is r while E <= r, then E, then 1/r from E = 1/r on.
3. P_b[beta = 1] = 1 - (1-r) r^-b sum_i t_i. For b = 1 it is r as soon as t_1 = 0 (epsilon >= 0.4812); for either b
   it tends to ln 2 as epsilon does to 0. The paper's 1/6 is loose for epsilon < 1, and fails for b = 1 beyond ln 6.
"""

import math

import numpy as np

from dpjax.core import arguments

LEAST_RATE = 2.0**-1000  # its inverse is a float64


def stay_probabilities(epsilon: float, size: int, bit: int) -> np.ndarray:
    """P[R^bit(i) = (i, 0)] = t_i exp((i + bit) epsilon), for i = 0, ..., size-1.

    Args:
        epsilon: the rate of the slice noise, finite and > 0 (at least 2^-1000).
        size: how many probabilities.
        bit: 0 for the smaller dataset of the pair, 1 for the larger one.

    Returns:
        float64 array of shape (size,), not increasing, 0 from `surely_synchronised(epsilon)` on; within 1e-15.

    Raises:
        TypeError, ValueError: epsilon not finite and positive, size below 1, bit not 0 or 1.

    Example:
        >>> stay_probabilities(0.25, 4, 1).round(3).tolist()
        [1.0, 0.635, 0.167, 0.0]
    """
    stays = 1.0 - _leave_larger(epsilon, size)
    return stays if _checked_bit(bit) else math.exp(-epsilon) * stays


def leave_probabilities(epsilon: float, size: int, bit: int) -> np.ndarray:
    """P[R^bit(i) = (i - bit, 1)] = 1 - `stay_probabilities`, with a relative error below 1e-14 also where it is small.

    >>> leave_probabilities(0.25, 4, 0).round(3).tolist()
    [0.221, 0.505, 0.87, 1.0]
    """
    leaves = _leave_larger(epsilon, size)
    return leaves if _checked_bit(bit) else -math.expm1(-epsilon) + math.exp(-epsilon) * leaves


def law(epsilon: float, size: int, bit: int) -> np.ndarray:
    """P[R^bit(Geom(1 - exp(-epsilon))) = (alpha, beta)] for alpha = 0, ..., size-1 and beta = 0, 1.

    From size = `surely_synchronised(epsilon)` on, the probability left out is exp(-(size + bit) epsilon), all with beta = 1.

    Args:
        epsilon, size, bit: as for `stay_probabilities`.

    Returns:
        float64 array of shape (size, 2).

    Example:
        >>> round(float(law(1.0, 50, 1)[:, 1].sum()), 3)
        0.368
    """
    epsilon = _checked_epsilon(epsilon)
    stay, leave = stay_probabilities(epsilon, size, bit), leave_probabilities(epsilon, size + bit, bit)[bit:]
    noise = -math.expm1(-epsilon) * np.exp(-epsilon * np.arange(size + bit))
    return np.stack([noise[:size] * stay, noise[bit:] * leave], axis=1)


def surely_synchronised(epsilon: float) -> int:
    """The least i with t_i = 0, about ln(2)/epsilon: from G = i on, R^b(G) = (G - b, 1) surely.

    >>> surely_synchronised(0.25), surely_synchronised(1.0)
    (3, 1)
    """
    epsilon = _checked_epsilon(epsilon)
    return max(1, math.ceil(float(np.logaddexp(0.0, epsilon)) / epsilon - 1.0))


def stop_probability(epsilon: float, bit: int) -> float:
    """P_bit[beta = 1], in closed form: 1 - r^-bit ((1+r) (1 - r^g) - g (1-r)), g = `surely_synchronised(epsilon)`.

    >>> round(stop_probability(1.0, 1), 3), round(stop_probability(0.1, 1), 3)
    (0.368, 0.676)
    """
    first, bit = surely_synchronised(epsilon), _checked_bit(bit)
    stays = (1.0 + math.exp(-epsilon)) * -math.expm1(-first * epsilon) + first * math.expm1(-epsilon)
    return math.exp(-epsilon) if bit and first == 1 else 1.0 - math.exp(bit * epsilon) * stays


def _leave_larger(epsilon: float, size: int) -> np.ndarray:
    """P[R^1(i) = (i-1, 1)] = min(1, exp(epsilon) (exp(i epsilon) - 1)), without cancellation; everything else follows from it."""
    epsilon, size = _checked_epsilon(epsilon), arguments.integer("size", size, at_least=1)
    # Each factor is clipped where the product exceeds 1, so that nothing overflows.
    return np.minimum(1.0, math.exp(min(epsilon, 1.0)) * np.expm1(np.minimum(np.arange(size) * epsilon, 1.0)))


def _checked_epsilon(epsilon: float) -> float:
    """A finite rate > 0, large enough to divide by."""
    return arguments.number("epsilon", epsilon, at_least=LEAST_RATE, below=math.inf)


def _checked_bit(bit: int) -> int:
    """0 or 1."""
    return arguments.integer("bit", bit, at_least=0, at_most=1)
