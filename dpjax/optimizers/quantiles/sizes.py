"""The sizes N for which a run of `inverse_sensitivity` draws tuples, so that a draw is kept with a good chance, whatever the data are.

Let c_k be half of the wider gap beside N_k. Draws for N_k get the factor exp(kappa c_k), and are kept with a probability of about
exp(-kappa c_k): wide gaps are cheap where little weight lies, and ruin a run where much does. Where it lies depends on the data: around the
number of points n; or, where there are few points, around the least size N_0, for which all tuples are about equally bad; or anywhere
between. So at first the gaps between sizes grow with the distance from n. Then, of the gaps wider than `FINE`, the one beside which the
most draws would be made is cut by `BATCH` more sizes. This is repeated until at most half of the draws are made beside such gaps, or the
chance is good enough.

**The chance.** Let W_k be the sum over all tuples of exp(-kappa cost for N_k). A tuple weighs exp(-kappa least cost), so all tuples
together weigh at least max W_k, and draws are made in proportion to exp(kappa c_k) W_k: one is kept with probability at least
2 max W_k / sum exp(kappa c_k) W_k. If half of the draws are for sizes without wide gaps, this is at least 1/(e^(FINE/2) K) for K sizes; K
is at most about 4 kappa (N_K - N_1), which is a few times m d.

Sizes are given as differences kappa (N_k - n), which are infinite in unused places.
"""

import math

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from dpjax.core import logspace, sorting

BATCH = 8  # sizes that are weighed at once
STEP = 2.0  # between the first sizes: where one is best, a neighbour's term is at least exp(-2) times its own
WIDER = 0.4  # a step as a share of its distance from n: the draws for its N_k still fall by exp(-0.8 kappa |N - n|)
FINE = 2.5  # the widest gap that is not cut
GOOD = math.log(1 / 16)  # ln of a chance that is good enough


def spread(reach: float) -> np.ndarray:
    """The first sizes, increasing, from -reach or below to reach or above.

    >>> spread(3.0).tolist()
    [-4.0, -2.0, 0.0, 2.0, 4.0]
    """
    found = [0.0]
    while found[-1] < reach:
        found.append(found[-1] + max(STEP, WIDER * found[-1]))
    return np.array([*(-x for x in found[:0:-1]), *found])


def most(reach: float) -> int:
    """An upper bound on the number of batches. A gap of more than FINE is cut into nine, so its pieces count for at most 9/8 of it."""
    first = -(-spread(reach).size // BATCH)
    return first + math.ceil(9 / 8 * 2 * (1 + WIDER) * (reach + STEP) / FINE)


def within(shift: Float[Array, "sizes"], least: Float[Array, ""], greatest: Float[Array, ""]) -> Float[Array, "sizes"]:
    """Increasing sizes, kept within a range: the last one below it moves to its lower end, and the first one above it to its upper end."""
    needed = (jnp.append(shift[1:], jnp.inf) > least) & (jnp.append(-jnp.inf, shift[:-1]) < greatest)
    return jnp.where(needed, jnp.clip(shift, least, greatest), jnp.inf)


def half_gaps(sizes: Float[Array, "k"]) -> Float[Array, "k"]:
    """kappa c_k: half of the wider gap beside each size; -inf where there is none."""
    return _Gaps(sizes).half


def judged(
    sizes: Float[Array, "k"], log_sums: Float[Array, "k"]
) -> tuple[Float[Array, "k"], Bool[Array, ""], Float[Array, "BATCH"]]:
    """(kappa c_k; whether the chance is good enough or no cut improves it; more sizes, which cut a gap if not), from the ln W_k."""
    gaps = _Gaps(sizes)
    drawn = log_sums + gaps.half
    everything, wide = (logspace.logsumexp(logs) for logs in (drawn, jnp.where(gaps.half > FINE / 2, drawn, -jnp.inf)))
    good = (jnp.max(log_sums) + math.log(2) - everything >= GOOD) | (wide <= everything - math.log(2))
    ordered = drawn[gaps.order]
    beside = jnp.where(gaps.lengths > FINE, logspace.logaddexp(ordered[:-1], ordered[1:]), -jnp.inf)
    cut = jnp.argmax(beside)
    steps = jnp.asarray(np.arange(1, BATCH + 1) / (BATCH + 1), float)
    return gaps.half, good, gaps.starts[cut] + gaps.lengths[cut] * steps


class _Gaps:
    """The gaps between sorted sizes: the sorting order, where gaps start, their lengths, and half of the wider one beside each size."""

    def __init__(self, sizes: Float[Array, "k"]) -> None:
        self.order = sorting.order(sizes)
        self.starts = sizes[self.order]
        self.lengths = jnp.where(jnp.isfinite(self.starts[1:]), jnp.diff(self.starts), 0.0)
        none = jnp.zeros(1)
        wider = jnp.maximum(jnp.concatenate([none, self.lengths]), jnp.concatenate([self.lengths, none]))
        self.half = jnp.where(jnp.isfinite(sizes), jnp.zeros_like(sizes).at[self.order].set(wider / 2), -jnp.inf)
