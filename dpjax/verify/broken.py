"""Mechanisms that break their promise, for testing the testers: every verifier must flag each of them.

A `Specimen` has the law, the sampler and the guarantee that is CLAIMED for it, with a small domain on which
the claim is false.
"""

import dataclasses
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from dpjax.accounting.guarantee import Guarantee
from dpjax.data.outcome import Status
from dpjax.mechanisms import exponential, geometric, laplace, stability
from dpjax.verify.exact import Worst, histograms, neighbours, worst_pair


@dataclasses.dataclass(frozen=True)
class Specimen:
    """A mechanism, the guarantee claimed for it, and the domain to check it on.

    Attributes:
      name: what it is.
      law: maps one dataset to ln P of every outcome.
      sample: (key, dataset) -> outcome, the position in that vector.
      claimed: the guarantee to be tested.
      datasets: all datasets of the domain. pairs: their neighbours under the claim's relation.
    """

    name: str
    law: Callable[[Any], Any]
    sample: Callable[[jax.Array, Any], Any]
    claimed: Guarantee
    datasets: np.ndarray
    pairs: np.ndarray

    def worst(self) -> Worst:
        """The worst pair at the claimed epsilon."""
        return worst_pair(self.law, self.datasets, self.pairs, self.claimed.epsilon)


def stability_specimen(calibration: str, *, epsilon: float = 1.0, delta: float = 1e-4) -> Specimen:
    """A_dist on counts of three values, claimed (epsilon, delta) under replace-one: false for "printed".

    The domain has 13 records, so that gaps pass the printed threshold at the default parameters.
    """
    mechanism = stability.mechanism(epsilon=epsilon, delta=delta, calibration=calibration)
    counts = histograms(3, [13])

    def sample(key: jax.Array, scores: Any) -> jax.Array:
        outcome = mechanism(key, scores)
        return jnp.where(outcome.status == Status.OK, outcome.hypothesis, 3)  # 3 stands for ⊥

    return Specimen(
        name=f"A_dist with {calibration} constants",
        law=lambda scores: jnp.log(mechanism.pmf(scores)),
        sample=sample,
        claimed=mechanism.claimed_guarantee(),
        datasets=counts,
        pairs=neighbours(counts, "REPLACE_ONE"),
    )


def exponential_without_half(*, epsilon: float = 1.0) -> Specimen:
    """Weights exp(epsilon q) claimed epsilon-DP under replace-one: near 2 epsilon, as scores both rise and fall."""
    counts = histograms(3, [6])
    # Built without the factory, which would refuse monotone weights under replace-one.
    mechanism = exponential.Exponential(epsilon=epsilon, sensitivity=1.0, monotone=True, relation="REPLACE_ONE")
    return Specimen(
        name="exponential mechanism without the 1/2",
        law=lambda scores: jnp.log(mechanism.pmf(scores)),
        sample=lambda key, scores: mechanism(key, scores).hypothesis,
        claimed=mechanism.guarantee(),
        datasets=counts,
        pairs=neighbours(counts, "REPLACE_ONE"),
    )


def geometric_with_half_the_noise(*, epsilon: float = 1.0, reach: int = 20) -> Specimen:
    """A count plus geometric noise for 2 epsilon, claimed epsilon-DP; clamped to be finite."""
    counts = histograms(2, [6])
    outputs = jnp.arange(-reach, reach + 7, dtype=jnp.int32)

    def law(dataset: Any) -> jax.Array:
        inner = geometric.log_pmf(outputs[1:-1], dataset[0], epsilon=2 * epsilon)
        low = geometric.log_cdf(outputs[:1], dataset[0], epsilon=2 * epsilon)
        high = geometric.log_sf(outputs[-2:-1], dataset[0], epsilon=2 * epsilon)
        return jnp.concatenate([low, inner, high])

    def sample(key: jax.Array, dataset: Any) -> jax.Array:
        noisy = geometric.geometric(key, dataset[0], epsilon=2 * epsilon)
        return jnp.clip(noisy, outputs[0], outputs[-1]) + reach

    return Specimen(
        name="geometric mechanism with half the noise",
        law=law,
        sample=sample,
        claimed=Guarantee(epsilon, 0.0, "REPLACE_ONE"),
        datasets=counts,
        pairs=neighbours(counts, "REPLACE_ONE"),
    )


def above_threshold_without_query_noise(*, epsilon: float = 1.0, threshold: int = 3) -> Specimen:
    """AboveThreshold with noise on the threshold only, claimed epsilon-DP: no epsilon holds.

    Given the noisy threshold T^, the first query above it is determined: P[i] = P[max_{j<i} q_j < T^ <= q_i],
    and swapping two answers makes an outcome impossible.
    """
    counts = histograms(3, [6])
    unit = epsilon / 2  # the inverse of the proved threshold noise

    def law(queries: Any) -> jax.Array:
        ceilings = unit * (jax.lax.cummax(queries) - threshold).astype(float)
        below = jnp.exp(laplace.log_tails(ceilings)[0])  # P[T^ <= the largest answer so far]
        return jnp.log(jnp.append(jnp.diff(below, prepend=0.0), 1 - below[-1]))

    def sample(key: jax.Array, queries: Any) -> jax.Array:
        above = unit * (queries - threshold).astype(float) >= laplace.standard_laplace(key)
        return jnp.where(jnp.any(above), jnp.argmax(above), queries.shape[0])

    return Specimen(
        name="AboveThreshold without query noise",
        law=law,
        sample=sample,
        claimed=Guarantee(epsilon, 0.0, "REPLACE_ONE"),
        datasets=counts,
        pairs=neighbours(counts, "REPLACE_ONE"),
    )


def specimens() -> tuple[Specimen, ...]:
    """All broken mechanisms, at their default parameters.

    >>> all(specimen.worst().refutes(specimen.claimed) for specimen in specimens())
    True
    """
    return (
        stability_specimen("printed"),
        exponential_without_half(),
        geometric_with_half_the_noise(),
        above_threshold_without_query_noise(),
    )
