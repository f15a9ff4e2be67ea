"""For which sizes N a run of `inverse_sensitivity` draws tuples, so that a draw is kept with a good chance, whatever the data are.

A draw for N_k, of which there are exp(kappa c_k) parts, c_k half of the wider gap beside N_k, is kept with a probability of about
exp(-kappa c_k): wide gaps are cheap where nothing weighs much, and ruin a run where much does. That depends on the data: most of the
weight may lie around the number of points n, or, where there are few, around the least size N_0, since all tuples are about equally bad
for it, or anywhere between. So sizes are at first the wider apart the further they are from n; then the gap beside which the most draws
would be made is cut by `BATCH` more sizes, again and again, until that is not so any more of a gap of more than `FINE`, or the chance is
good enough.

**The chance.** Let W_k be the sum over all tuples of exp(-kappa cost for N_k). A tuple weighs exp(-kappa least cost), so all of them
together weigh max W_k at least, and draws are made in proportion to exp(kappa c_k) W_k: one is kept with probability 2 max W_k / sum
exp(kappa c_k) W_k at least. If half of the draws are for sizes without wide gaps, that is 1/(e^(FINE/2) K) or more for K sizes; K is at
most some 4 kappa (N_K - N_1), which is a few times m d.

All sizes are given as differences kappa (N_k - n), infinite where there is none.
"""

import math

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from dpjax.core import logspace, sorting

BATCH = 8  # sizes that are weighed at once
STEP = 2.0  # between the first sizes: where one is best, a neighbour's term is exp(-2) of its own at least
WIDER = 0.4  # a step by how far it is from n: what is drawn by its N_k falls by exp(-0.8 kappa |N - n|) still
FINE = 2.5  # a gap that is not cut
GOOD = math.log(1 / 16)  # a chance that is good enough


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
    """How many batches there are at most. A gap of more than FINE is cut into nine: so its pieces do not count for more than 9/8 of it."""
    first = -(-spread(reach).size // BATCH)
    return first + math.ceil(9 / 8 * 2 * (1 + WIDER) * (reach + STEP) / FINE)


def within(shift: Float[Array, "sizes"], least: Float[Array, ""], greatest: Float[Array, ""]) -> Float[Array, "sizes"]:
    """Increasing sizes in a range: of those below it the last one takes its lower end, of those above it the first one the upper end."""
    needed = (jnp.append(shift[1:], jnp.inf) > least) & (jnp.append(-jnp.inf, shift[:-1]) < greatest)
    return jnp.where(needed, jnp.clip(shift, least, greatest), jnp.inf)


def half_gaps(sizes: Float[Array, "k"]) -> Float[Array, "k"]:
    """kappa c_k: half of the wider gap beside each; -inf where there is no size."""
    return _Gaps(sizes).half


def judged(
    sizes: Float[Array, "k"], log_sums: Float[Array, "k"]
) -> tuple[Float[Array, "k"], Bool[Array, ""], Float[Array, "BATCH"]]:
    """(kappa c_k; whether draws are kept with a good chance, or no cut makes it better; else more sizes, which cut a gap). Of ln W_k."""
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
    """Of sizes in order: the order, where gaps start, how long they are, and half of the wider one beside each size."""

    def __init__(self, sizes: Float[Array, "k"]) -> None:
        self.order = sorting.order(sizes)
        self.starts = sizes[self.order]
        self.lengths = jnp.where(jnp.isfinite(self.starts[1:]), jnp.diff(self.starts), 0.0)
        none = jnp.zeros(1)
        wider = jnp.maximum(jnp.concatenate([none, self.lengths]), jnp.concatenate([self.lengths, none]))
        self.half = jnp.where(jnp.isfinite(sizes), jnp.zeros_like(sizes).at[self.order].set(wider / 2), -jnp.inf)
