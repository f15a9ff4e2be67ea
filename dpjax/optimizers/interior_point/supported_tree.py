"""The exponential mechanism over the keys of a search tree that the data support: about (3/epsilon) ln(bits/(6 beta delta)) points.

*The tree* is that of `tree_score`: all points of X = {0, ..., 2^bits - 1} are keys, each with its subtree of neighbouring keys. With m_y
the number of points in the subtree of y, let

    u(y, S) = min(#<=y, #>=y, m_y).

A key of u >= 1 is an interior point, and has points below it. `dpjax.mechanisms.supported` chooses among these keys, with
probability proportional to e^(epsilon u), or gives bottom. So an answer is always an interior point.

*Private*: (epsilon, delta) under ADD_OR_REMOVE_ONE, for data of any size, since one more point z raises each of the three counts, and u,
by 0 or 1, and at most 2 bits - 1 keys come into view. These had no points below them before, and are on the search path of z; or
they were no interior points. Let a and b be the least and the greatest point. If there are none, only z comes into view. If
a <= z <= b, keys of the first kind alone do, and the root has points already: at most bits - 1 keys. If z > b, keys of the second kind
are between b and z, and have points below them: they are on the search path of b. Let D be the key at which the paths of b and z part,
b <= D <= z, of level l <= bits (a leaf has level 1, the key 0 has level 0). A key above D is not between b and z: it was in view before, or
is no interior point now. Below D are at most l - 1 keys of z's path, and of b's path, without b, which was in view before, at most
l - 1 if b is the key 0, else l - 2. With D, these are at most 2 l - 1. If z < a, then z may be the key 0: at most l keys of z's path, l - 2
of a's, and D.

*Useful.* With n points the sum Z of all weights is at least (`log_least_weight`)

    min( e^(epsilon ceil(n/2)), e^(epsilon l) + e^(epsilon r) + e^(epsilon s) ),    l, r, s = n/3, rounded so that they add up to n:

by the argument of `tree_planning` without offsets. Cut points off from both ends. While some are left, with l cut off below and r above,
let y be the shallowest key from the least to the greatest of them: its subtree holds them all, so m_y >= n - l - r. If #<=y <= #>=y, cut
off the points up to y, else those from y on: l becomes #<=y, or r becomes #>=y, so that u(y) >= min(c, n - l - r), c being the new one
and l, r the old ones. Up to the first y where n - l - r is not the greater, the last cuts on both sides count in full, and no key twice. If
there is no such y, a cut has reached ceil(n/2). The three are least, for a given sum, where they are equal. Programmes over all data
(`SupportedTree.worst`) find no smaller sum, and this one for 8 to 1024 bits, epsilon = 1 (a test).

So n = (3/epsilon) (ln Z - ln 3) points are enough, with the ln Z of `bounds.supported_weight`, about epsilon + ln(bits/(2 beta delta)): the
domain enters by the logarithm of its number of bits. At epsilon = 1, beta = 0.1:

| M | 2^8 | 2^64 | 2^256 | 2^1024 | 2^4096 |
|---|---|---|---|---|---|
| `supported_tree`, delta = 1e-6 | 52 | 59 | 63 | 67 | 71 |
| delta = 1e-9 | 73 | 79 | 84 | 88 | 92 |
| `tree_score`, delta = 0 | 16 | 58 | 194 | 730 | 2862 |
| `tree_log`, delta = 1e-6 | 375 | 406 | 421 | 437 | 446 |

*Why three.* Let half of the points approach a key from below, at distances of all scales, and half from above: subtrees of w points around
it have n - w points outside, half of them on each side, so that u is (n - w)/2 at their ends, and n/3 at best.

*Law and sampler.* Most keys on a search path have the same points below them: n points form at most 6n groups of keys of equal score
(`tree_keys`). These are weighed, one is drawn, and one of its keys. The number of bits enters by the digits of the points alone.

*Literature.* Bun, Nissim, Stemmer and Vadhan (2015, arXiv 1504.07553) choose the length of a prefix that many points share, and then
the prefix, both by recursion; TreeLog (CLNSS §1.3.3) walks down a path. Here one choice does it, and a recursion on lengths, which
would turn ln(bits) into log*, has nothing to gain: 4096 bits need 12 points more than 64 bits. A search for this mechanism found nothing.

Its plain twin is `dpjax.verify.plain.tree_score.supported_tree_law`.
"""

import functools
import math
from collections.abc import Sequence
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, UInt32

from dpjax import bounds
from dpjax.accounting import ADD_OR_REMOVE_ONE, Guarantee
from dpjax.core import arguments, bisection, logspace, random, staging
from dpjax.core.pytree import frozen, static
from dpjax.data.points import Points
from dpjax.domains.events import Interval
from dpjax.mechanisms import supported
from dpjax.optimizers.interior_point import base, tree_keys
from dpjax.optimizers.interior_point import tree_planning as planning
from dpjax.optimizers.interior_point.base import InteriorPoint
from dpjax.optimizers.interior_point.tree_keys import Group, Keys, keys_of
from dpjax.optimizers.interior_point.tree_score import NEVER, Items, ends_of, items_of, split


@frozen
class Weights:
    """The weights of all keys in view.

    Attributes:
      items, keys: the items below them, and the groups of keys.
      logs: ln of the weights of groups, by kind, where a score of `best` weighs 1; -inf for those not in view.
      best: the best score in view, rounded down.
    """

    items: Items
    keys: Keys
    logs: list[Float[Array, "rows"]]
    best: Int[Array, ""]


@frozen
class SupportedTree(InteriorPoint):
    """The exponential mechanism over the keys of a tree that the data support; build it by `supported_tree`."""

    monotone: ClassVar[bool] = True  # whether a record moves all scores the same way

    bits: Any
    limbs: int = static()
    epsilon: Any
    delta: Any

    def _score(self, items: Items, group: Group) -> tuple[Int[Array, "rows"], Float[Array, "rows"]]:
        """The scores of keys, each as an integer and what is to be added to it, from 0 to 1; those above 0 are in view."""
        before, stop, under, up_to = (items.counted(x) for x in (group.before, group.stop, group.under, group.up_to))
        return jnp.minimum(jnp.minimum(up_to, items.points - under), stop - before), jnp.zeros_like(up_to, float)

    def _growth(self) -> Float[Array, ""]:
        """How many keys may come into view."""
        return 2 * jnp.asarray(self.bits, float) - 1

    def _weights(self, points: Points, *silent: UInt32[Array, "limbs"]) -> Weights:
        """The weights of all keys; silent items, which must be in order, count nothing, but divide groups at their places."""
        # Stored, since otherwise digits of wide points would be looked at again for each use of what they say.
        items = staging.once(items_of, points, *silent)
        keys = keys_of(items, self.bits)

        def score(group: Group) -> tuple[Array, Array]:
            whole, part = self._score(items, group)
            return jnp.where(group.number > 0, whole, 0), jnp.where(group.number > 0, part, 0.0)

        scores = [score(group) for group in keys.groups]
        # Counted from the best score, so that weights that matter come from small numbers: next to 250,000 epsilon, one record more would
        # add 1.016 epsilon in float32.
        best = jnp.max(functools.reduce(jnp.maximum, [whole for whole, _ in scores]))
        rate = jnp.asarray(self.epsilon, float) * (1.0 if self.monotone else 0.5)

        def log(whole: Array, part: Array, number: Array) -> Array:
            each = rate * ((whole - best).astype(float) + part)
            return jnp.where((whole > 0) | (part > 0), each + jnp.log(number.astype(float)), -jnp.inf)

        logs = [log(*score, group.number) for score, group in zip(scores, keys.groups, strict=True)]
        return Weights(items=items, keys=keys, logs=logs, best=best)

    def _log_release(self, total: Float[Array, ""], best: Int[Array, ""]) -> tuple[Float[Array, ""], Float[Array, ""]]:
        """(ln P[some key], ln P[bottom]) from ln of the sum of all weights, where a score of `best` weighs 1."""
        given: dict[str, Any] = {"epsilon": self.epsilon, "delta": self.delta, "growth": self._growth()}
        return supported.log_release(total, best, **given, monotone=self.monotone)

    def _log_law(self, points: Points, interval: Interval) -> tuple[Float[Array, "2"], Float[Array, ""]]:
        """ln of the probabilities of the keys in the interval and of all others, and that of bottom."""
        ends, beyond = ends_of(interval, self.bits, self.limbs)
        weights = self._weights(points, *ends)
        low, high = (jnp.where(out, NEVER, at) for out, at in zip(beyond, weights.items.silent, strict=True))
        # The interval's low end is one of the items up to a key in it, its high end is not.
        return self._released(weights, [(low < group.up_to) & (high >= group.up_to) for group in weights.keys.groups])

    def _released(
        self, weights: Weights, good: Sequence[Bool[Array, "rows"]]
    ) -> tuple[Float[Array, "2"], Float[Array, ""]]:
        """ln of the probabilities of good keys and of all others, and that of bottom, given which keys of each group are good."""
        masses = split(jnp.stack(good), jnp.stack(weights.logs))
        total = logspace.logsumexp(masses)
        log_some, log_none = self._log_release(total, weights.best)
        return log_some + masses - logspace.finite(total), log_none

    def law(self, points: Points, interval: Interval) -> Float[Array, "2"]:
        return judged(*self._log_law(points, interval))

    def log_mass(self, points: Points, interval: Interval) -> Float[Array, ""]:
        return self._log_law(points, interval)[0][0]

    def draw(self, key: Array, points: Points) -> Any:
        key_some, key_which = jax.random.split(key)
        weights = self._weights(points)
        most = jnp.max(functools.reduce(jnp.maximum, weights.logs))
        each = [jnp.exp(log - logspace.finite(most)) for log in weights.logs]
        total = most + jnp.log(jnp.sum(sum(each)))
        chosen = tree_keys.chosen(key_which, weights.items, weights.keys, each)
        return chosen, random.bernoulli(key_some, *self._log_release(total, weights.best)), {}

    def sound(self) -> Bool[Array, ""]:
        return super().sound() & (jnp.asarray(self.delta, float) > 0)

    def guarantee(self) -> Guarantee:
        """(epsilon, delta) under ADD_OR_REMOVE_ONE."""
        epsilon, delta = (arguments.known(name, getattr(self, name)) for name in ("epsilon", "delta"))
        return Guarantee(epsilon, delta, ADD_OR_REMOVE_ONE)

    def points_needed(self, beta: float) -> int:
        """The least n from which on Z is shown to be enough on all data."""
        bits, epsilon, delta = self._numbers()
        return least_n(bits, epsilon, delta, beta)

    def worst(self, n: int) -> tuple[float, list[int]]:
        """The largest failure probability over all data of n points, exactly, and n points on which it is reached.

        By the programme of `dpjax.optimizers.interior_point.tree_planning`, on the host in float64: about n^3 bits steps.

        Args:
          n: at least 1.

        Raises:
          TypeError, ValueError: n is not such an integer.

        >>> failure, points = supported_tree(bits=2, epsilon=1.0, delta=0.1).worst(2)
        >>> round(failure, 3), points
        (0.933, [2, 3])
        """
        bits, epsilon, delta = self._numbers()
        n = arguments.integer("n", n, at_least=1)
        log_unit, more = log_least_weight(n, epsilon), math.inf
        while more >= planning.LARGEST:  # where weights were cut, Z is at least as much as they say
            case = _Supported(bits, epsilon, log_unit)
            more = math.log(-case.excess(n, 1.0))
            log_unit += more
        return _failure(log_unit, bits, epsilon, delta), case.worst_data(n, 1.0)[0]

    def _numbers(self) -> tuple[int, float, float]:
        """The numbers in use, on the host."""
        bits = arguments.known_integer("bits", self.bits)
        return bits, arguments.known("epsilon", self.epsilon), arguments.known("delta", self.delta)


def judged(keys: Float[Array, "2"], bottom: Float[Array, ""]) -> Float[Array, "2"]:
    """(P[good keys], P[others, or bottom]) from their logarithms."""
    return jnp.exp(jnp.stack([keys[0], logspace.logaddexp(keys[1], bottom)]))


class _Supported(planning.Case):
    """Programmes for the least Z: keys that are not in view weigh nothing, and others are weighed in units that Z is not below."""

    def __init__(self, bits: int, epsilon: float, log_unit: float) -> None:
        super().__init__(bits, epsilon, 0.0, 0.0, 0.0, 0.0)
        self.log_unit = log_unit

    def log_weight(self, score: Any) -> Any:
        return score - self.log_unit

    def weights(self, n: int, odds: float, level: int) -> np.ndarray:
        weight = super().weights(n, odds, level)
        weight[0] = weight[:, 0] = 0.0
        return weight


def _failure(log_z: float, bits: int, epsilon: float, delta: float) -> float:
    """P[bottom]."""
    rho, log_edge = bounds.supported_test(2 * bits - 1, epsilon, delta)
    x = log_z - log_edge
    return float(1 - rho / (1 + rho) * math.exp(x) if x <= 0 else math.exp(-rho * x) / (1 + rho))


def log_least_weight(n: int, epsilon: float) -> float:
    """ln of what all keys in view weigh together at least, on any n >= 1 points; see the module.

    >>> [round(log_least_weight(n, 1.0), 3) for n in (1, 2, 3, 60)]
    [1.0, 1.0, 2.0, 21.099]
    """
    return min(epsilon * (n - n // 2), log_three_powers(n, epsilon) if n > 2 else math.inf)


def log_three_powers(exponents: int, unit: float) -> float:
    """ln of the least sum of three powers of e^unit whose exponents are integers of this sum: as equal as they can be."""
    parts = [unit * ((exponents + i) // 3) for i in range(3)]
    return parts[2] + math.log(sum(math.exp(part - parts[2]) for part in parts))


def least_n(bits: int, epsilon: float, delta: float, beta: float) -> int:
    """The number of points from which on failure is at most beta on all data.

    >>> [least_n(bits, 1.0, 1e-6, 0.1) for bits in (64, 4096)]
    [59, 71]
    """
    needed = bounds.supported_weight(2 * bits - 1, beta, epsilon, delta) * (1 + 1e-12)
    high = max(3 * math.ceil(needed / epsilon), 1)
    return bisection.least_int(lambda n: log_least_weight(n, epsilon) >= needed, 1, high)


def supported_tree(*, bits: int, epsilon: Any, delta: Any) -> SupportedTree:
    """The exponential mechanism over the keys of a search tree that the data support; see the module.

    A run takes about 130 bytes for each point of up to 64 bits, and twice as much at 1,024 bits.

    Formal guarantees: (epsilon, delta) under ADD_OR_REMOVE_ONE, for any data (proved in the module); an answer is always an interior
    point. Not promised: protection from floating-point side channels; a cryptographic generator.

    Args:
      bits: the domain is {0, ..., 2^bits - 1}, 1 to 4096.
      epsilon: > 0, finite.
      delta: in (0, 1).

    Raises:
      TypeError, ValueError: an argument out of range.

    >>> from dpjax.optimizers.interior_point import tree_score
    >>> supported_tree(bits=1024, epsilon=1.0, delta=1e-6).sample_size(beta=0.1)
    67
    >>> tree_score(bits=1024, epsilon=1.0).sample_size(beta=0.1)
    730
    """
    return SupportedTree(**base.domain(bits), epsilon=arguments.epsilon(epsilon), delta=arguments.delta(delta))
