"""Broken mechanisms with vector outputs, which an audit of vectors must accuse, and sound ones, which it must not.

All are Gaussian: the release is f(S) + N(0, C), and between the two datasets f moves by v. Its privacy is that of one Gaussian number of
standard deviation 1 whose mean moves by m = |C^(-1/2) v| (projecting on C^-1 v loses nothing), in closed form (Balle and Wang 2018):

    delta(epsilon) = Phi(m/2 - epsilon/m) - e^epsilon Phi(-m/2 - epsilon/m),

or 1 if C is singular in the direction of v, where the noise can be subtracted out. So the true privacy of each specimen is known.
"""

import dataclasses
import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from dpjax.accounting.guarantee import REPLACE_ONE, Guarantee
from dpjax.core import arguments, bisection

EPSILON, DELTA = 1.0, 1e-2


@dataclasses.dataclass(frozen=True)
class VectorSpecimen:
    """A mechanism with vector outputs, the guarantee claimed for it, and its true privacy.

    Attributes:
      name: what it is.
      sample: (key, dataset) -> vector, float32 (dimension,); pure JAX.
      pair: two neighbouring datasets, here the true answers.
      claimed: the guarantee to be tested.
      shift: m of the module docstring; infinite where the noise can be subtracted out.
    """

    name: str
    sample: Callable[[jax.Array, Any], Any]
    pair: tuple[np.ndarray, np.ndarray]
    claimed: Guarantee
    shift: float

    @property
    def broken(self) -> bool:
        """Whether the claim is false on this pair."""
        return gaussian_delta(self.claimed.epsilon, self.shift) > self.claimed.delta * (1 + 1e-9)


def gaussian_delta(epsilon: float, shift: float) -> float:
    """The exact delta(epsilon) of Gaussian noise whose mean moves by `shift` standard deviations (Balle and Wang 2018, Theorem 8).

    >>> round(gaussian_delta(0.0, 1.0), 4), gaussian_delta(1.0, math.inf)
    (0.3829, 1.0)
    """
    from scipy import special

    epsilon = arguments.number("epsilon", epsilon, at_least=0.0, below=math.inf)
    shift = arguments.number("shift", shift, above=0.0)
    if math.isinf(shift):
        return 1.0
    near, far = shift / 2 - epsilon / shift, -shift / 2 - epsilon / shift
    return float(special.ndtr(near) - math.exp(epsilon + special.log_ndtr(far)))


def gaussian_shift(epsilon: float, delta: float) -> float:
    """The largest shift, in standard deviations, for which Gaussian noise is (epsilon, delta)-private.

    >>> round(gaussian_delta(1.0, gaussian_shift(1.0, 1e-2)), 12), gaussian_delta(0.0, gaussian_shift(0.0, 1e-9)) <= 1e-9
    (0.01, True)
    """
    return bisection.largest_float(lambda shift: gaussian_delta(epsilon, shift) <= delta, 0.0, 1e6, precision=1e-14)


def _gaussian(name: str, factor: np.ndarray, move: np.ndarray) -> VectorSpecimen:
    """The release f(S) + `factor` @ N(0, I), where f moves from 0 to `move`."""
    covariance = factor @ factor.T
    values, vectors = np.linalg.eigh(covariance)
    along, null = (vectors.T @ move) ** 2, values < 1e-9 * values.max()
    shift = math.inf if along[null].sum() > 1e-12 else math.sqrt((along[~null] / values[~null]).sum())
    mixing = factor.astype(np.float32)

    def sample(key: jax.Array, answers: Any) -> jax.Array:
        noise = jax.random.normal(key, (mixing.shape[1],), jnp.float32)
        # Products of single numbers, added in float32: no matrix unit may round them.
        return answers + jnp.sum(mixing * noise[None], axis=1)

    return VectorSpecimen(
        name=name,
        sample=sample,
        pair=(np.zeros(len(move), np.float32), move.astype(np.float32)),
        claimed=Guarantee(EPSILON, DELTA, REPLACE_ONE),
        shift=shift,
    )


def _rotation(dimension: int) -> np.ndarray:
    """A fixed orthogonal matrix that is not aligned with any coordinate."""
    # Cosines of squares: a matrix of cosines of equally spaced angles has rank 2, and rounding would decide all other directions.
    return np.linalg.qr(np.cos((1.0 + np.arange(dimension**2)) ** 2).reshape(dimension, dimension))[0]


def broken_vectors(dimension: int = 8) -> tuple[VectorSpecimen, ...]:
    """Specimens whose claim of (1, 0.01) under replace-one is false, though no coordinate alone shows it clearly.

    >>> all(specimen.broken for specimen in broken_vectors())
    True
    """
    dimension = arguments.integer("dimension", dimension, at_least=4, at_most=64)
    scale = 1.0 / gaussian_shift(EPSILON, DELTA)
    ones, identity, rotation = np.ones(dimension), np.eye(dimension), _rotation(dimension)
    first, diagonal = identity[0], ones / math.sqrt(dimension)
    thin = np.append(ones[1:], 1.0 / 3.0)
    return (
        _gaussian("noise for one coordinate's sensitivity", scale * identity, ones * 0.7),
        _gaussian("one noise for all coordinates", scale * ones[:, None], first),
        _gaussian("a third of the noise in a rotated direction", scale * rotation * thin, rotation[:, -1]),
        _gaussian("correlated noise", scale * (0.2 * identity + 0.8 * np.outer(ones, diagonal)), first - identity[1]),
    )


def sound_vectors(dimension: int = 8) -> tuple[VectorSpecimen, ...]:
    """The same with enough noise: the claim is true, and tight.

    >>> any(specimen.broken for specimen in sound_vectors())
    False
    """
    dimension = arguments.integer("dimension", dimension, at_least=4, at_most=64)
    # A millionth more than enough, so that rounding does not decide which specimens are sound.
    scale = (1 + 1e-6) / gaussian_shift(EPSILON, DELTA)
    ones, identity, rotation = np.ones(dimension), np.eye(dimension), _rotation(dimension)
    return (
        _gaussian("noise for the norm, all coordinates move", scale * identity, ones / math.sqrt(dimension)),
        _gaussian("noise for the norm, one coordinate moves", scale * identity, identity[0]),
        _gaussian(
            "more noise in all directions but one", scale * rotation * np.append(3.0 * ones[1:], 1.0), rotation[:, -1]
        ),
    )
