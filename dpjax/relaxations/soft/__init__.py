"""Private mechanisms at a temperature, to train through: outputs that depend continuously on the data. One mechanism per file.

| factory | exact mechanism, at temperature 0 | output |
|---|---|---|
| `concrete` | exponential mechanism, by Gumbel-softmax | weights of the candidates |
| `perturbed` | exponential mechanism, its argmax smoothed by normal noise | weights of the candidates |
| `stability` | A_dist | weights of the candidates, then of ⊥ |
| `quantile` | exponential mechanism over the gaps between values | a point of [low, high] |
| `threshold` | exponential mechanism over the gaps between features | a threshold in [low, high] |

Each is a frozen pytree with `__call__(key, data)`; `guarantee()` is `Guarantee.none` above temperature 0 (`base` says why), and that of the
exact mechanism at 0, which `.exact()` returns. `deviation` bounds how far a draw is from the exact draw with the same noise.

    >>> import jax, jax.numpy as jnp
    >>> from dpjax.relaxations import soft
    >>> choose = soft.concrete(epsilon=8.0, temperature=0.1)
    >>> scores = jnp.array([4.0, 6.0, 3.0])
    >>> choose.exact()(jax.random.key(0), scores).tolist(), choose.exact().guarantee().epsilon
    ([0.0, 1.0, 0.0], 8.0)
    >>> jax.jacobian(choose, argnums=1)(jax.random.key(0), scores).shape
    (3, 3)
"""

from dpjax.relaxations.soft.base import Soft
from dpjax.relaxations.soft.concrete import Concrete, concrete
from dpjax.relaxations.soft.perturbed import Perturbed, perturbed
from dpjax.relaxations.soft.quantile import SoftQuantile, quantile
from dpjax.relaxations.soft.stability import SoftStability, stability
from dpjax.relaxations.soft.threshold import SoftThreshold, threshold

__all__ = [
    "Concrete",
    "Perturbed",
    "Soft",
    "SoftQuantile",
    "SoftStability",
    "SoftThreshold",
    "concrete",
    "perturbed",
    "quantile",
    "stability",
    "threshold",
]
