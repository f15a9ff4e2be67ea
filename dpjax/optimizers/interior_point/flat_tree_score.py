"""The tree score under a concave curve: half the points of the exponential mechanism under REPLACE_ONE.

*Replacing a point* is removing one and adding one. With weights exp(epsilon' u), u the score of `tree_score`, each of the two moves ln P
by epsilon' at most, so together by 2 epsilon': u may move by -1 to 1, and the sum of the weights by as much. So the tree score at
epsilon' = epsilon/2 is (epsilon, 0)-private under REPLACE_ONE, for data of any size (that is
`tree_score(epsilon=epsilon/2).guarantee().under(REPLACE_ONE)`), and it needs twice the points. But the sum of the weights need not move
so much: near its top, where a few keys make up the sum, it does not matter how steep the weights are. With a concave curve psi,

    P[y] proportional to exp(psi(epsilon u(y, S))),   psi(v) = share (v - (1 - rest) width ln(1 + exp((v - knee)/width))),

psi' is `share` for low scores and `share` times `rest` for high ones. A weight moves by a factor of at most exp(share epsilon), and the sum
Z by far less.

*Private.* With rho the maximum of ln(Z(C + b)/Z(C)) over all C of n - 1 points and all b, no replacement moves ln P by more than share
epsilon + rho (`dpjax.optimizers.interior_point.flat_tree_planning`, where a dynamic programme over the tree finds whether rho is at most
(1 - share) epsilon, on all data of a domain of 2^64 points). This holds for n points. For any other number N of points the mechanism uses
the middle n: of more points those at the places floor((N - n)/2) + 1, ..., floor((N - n)/2) + n in order; fewer are continued by zeros in
front and by the greatest point behind. N is public, and replacing a point replaces one of the middle n or none; so the promise holds for
data of every size. (One point more or fewer replaces one of them at most, too: (epsilon, 0) under ADD_OR_REMOVE_ONE besides, which
`tree_score` offers with fewer points.) An interior point of the middle n is one of all points, if there are n or more.

*Points needed* at epsilon = 1, beta = 0.1, all by programmes over all data (the last but one by its theorem, at epsilon/2):

| M | 2^3 | 2^8 | 2^16 | 2^32 | 2^64 |
|---|---|---|---|---|---|
| `flat_tree_score_planned` | 12 | 26 | 38 | 61 | 105 |
| `tree_score` at epsilon/2 | 13 | 32 | 44 | 69 | 124 |
| `exponential` at epsilon/2 | 18 | 32 | 54 | 98 | 187 |
| lower bound | 5 | 8 | 14 | 25 | 47 |

Its plain twin is `dpjax.verify.plain.tree_score.flat_tree_score_law`.
"""

from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from dpjax.accounting import REPLACE_ONE, Guarantee
from dpjax.core import arguments
from dpjax.core.pytree import frozen, static
from dpjax.data.points import Points
from dpjax.data.sample import bucket
from dpjax.domains import wide
from dpjax.domains.events import Interval
from dpjax.optimizers.interior_point import base
from dpjax.optimizers.interior_point import flat_tree_planning as planning
from dpjax.optimizers.interior_point.flat_tree_planning import Curve
from dpjax.optimizers.interior_point.tree_planning import Offsets
from dpjax.optimizers.interior_point.tree_score import TreeScore

# float32 holds differences of the scores of so many points to 2^-12. Nothing is subtracted from counts before, as the curve applies to the
# scores themselves.
_MOST_POINTS = 2**12


@frozen
class FlatTreeScore(TreeScore):
    """The tree score under a concave curve; build it by `flat_tree_score`.

    Attributes:
      curve: psi.
      n: the number of points that it uses.
      capacity: rows for them (static).
    """

    bounded_range: ClassVar[bool] = False  # losses lie in an interval of length 2 share epsilon

    curve: Curve
    n: Any
    capacity: int = static()

    def _less(self, points: Int[Array, ""]) -> Int[Array, ""]:
        """0: the curve applies to the scores themselves."""
        return jnp.zeros_like(points)

    def _log_weight(self, score: Float[Array, "*s"]) -> Float[Array, "*s"]:
        return self.curve(score)

    def middle(self, points: Points) -> Points:
        """The middle n of sorted points, continued by zeros in front and by the greatest point behind."""
        n = jnp.asarray(self.n, jnp.int32)
        row = jnp.arange(self.capacity, dtype=jnp.int32)
        place = (points.n_valid - n) // 2 + row
        last = wide.largest(jnp.asarray(self.bits, jnp.int32), self.limbs)
        x = points.x[jnp.clip(place, 0, points.rows - 1)]
        x = wide.select(place < points.n_valid, x, last[None])
        x = wide.select(place < 0, jnp.zeros_like(x), x)
        return Points(x=wide.select(row < n, x, ~jnp.zeros_like(x)), n_valid=n, ordered=True)

    def draw(self, key: Array, points: Points) -> Any:
        return super().draw(key, self.middle(points))

    def _log_masses(self, points: Points, interval: Interval) -> Float[Array, "2"]:
        return super()._log_masses(self.middle(points), interval)

    def sound(self) -> Bool[Array, ""]:
        share, rest, width = (jnp.asarray(x, float) for x in (self.curve.share, self.curve.rest, self.curve.width))
        in_range = (share > 0) & (share < 1) & (rest >= 0) & (rest <= 1) & (width > 0)
        finite = jnp.isfinite(jnp.asarray(self.curve.knee, float)) & jnp.isfinite(width)
        fits = (jnp.asarray(self.n) >= 1) & (jnp.asarray(self.n) <= self.capacity)
        return super().sound() & in_range & finite & fits

    def guarantee(self) -> Guarantee:
        """(epsilon, 0) under REPLACE_ONE where the programme shows it; else (2 share epsilon, 0), which holds for any curve."""
        case, epsilon = self._known(), arguments.known("epsilon", self.epsilon)
        share = arguments.known("share", self.curve.share)
        if share > 0.5 and not planning.is_private(*case):
            return Guarantee(share * epsilon, 0.0, REPLACE_ONE).group(2)
        return Guarantee(epsilon, 0.0, REPLACE_ONE)

    def points_needed(self, beta: float) -> int:
        """n, if on all data of n points it fails with probability at most beta.

        Raises:
          ValueError: n is less than that, or too large for the programme.
        """
        case = self._known()
        if not planning.is_enough(*case, beta):
            raise ValueError(f"n must be a number of points for which failure <= {beta:g} can be shown, got {case[-1]}")
        return case[-1]

    def worst(self, n: int) -> tuple[float, list[int]]:
        """The largest failure probability over all data of its n points, exactly, and n points on which it is reached.

        Args:
          n: its own n.

        Raises:
          ValueError: another n.
        """
        *case, own = self._known()
        arguments.integer("n", n, at_least=own, at_most=own)
        return planning.Curved(*case).worst(own)

    def _known(self) -> tuple[Any, ...]:
        """The numbers in use, on the host."""
        bits, n = arguments.known_integer("bits", self.bits), arguments.known_integer("n", self.n)
        return bits, arguments.known("epsilon", self.epsilon), *planning.numbers(self.offsets, self.curve), n


def flat_tree_score(*, bits: int, epsilon: Any, n: int, offsets: Offsets, curve: Curve) -> FlatTreeScore:
    """The exponential mechanism on the tree score under a concave curve; see the module.

    Formal guarantees: (epsilon, 0) under REPLACE_ONE for data of any size, shown by a programme for these numbers before anything is
    built; if one of them is traced, by `guarantee`, where all are known. Not promised: protection from floating-point side channels; a
    cryptographic generator.

    Args:
      bits: the domain is {0, ..., 2^bits - 1}, 1 to 4096.
      epsilon: > 0, finite.
      n: the number of points that it uses, the middle ones.
      offsets: public offsets, from `tree_planning.offsets`.
      curve: a curve from `flat_tree_planning.curve`.

    Raises:
      TypeError, ValueError: an argument out of range; a curve that is not shown to be private for n points.

    >>> from dpjax.optimizers.interior_point import tree_planning
    >>> steep = planning.curve(share=0.7, rest=0.06, knee=5.0, width=3.0)
    >>> flat_tree_score(bits=8, epsilon=1.0, n=24, offsets=tree_planning.offsets(a=8.0, p=0.6), curve=steep)
    Traceback (most recent call last):
    ValueError: curve must keep 24 points private at epsilon = 1, which no programme shows for share = 0.7
    """
    fields = base.domain(bits)
    arguments.instance("offsets", offsets, Offsets)
    arguments.instance("curve", curve, Curve)
    n = arguments.integer("n", n, at_least=1, at_most=_MOST_POINTS)
    made = FlatTreeScore(
        **fields, epsilon=arguments.epsilon(epsilon), offsets=offsets, curve=curve, n=np.int32(n), capacity=bucket(n)
    )
    if not any(map(arguments.is_traced, jax.tree.leaves((epsilon, offsets, curve)))):
        allowed, share = arguments.known("epsilon", made.epsilon), arguments.known("share", curve.share)
        if made.guarantee().epsilon > allowed:
            raise ValueError(
                f"curve must keep {n} points private at epsilon = {allowed:g}, "
                f"which no programme shows for share = {share:g}"
            )
    return made


def flat_tree_score_planned(*, bits: int, epsilon: float, beta: float, evaluations: int = 200) -> FlatTreeScore:
    """`flat_tree_score` with the least n, and with offsets and a curve, that a search finds for failure beta.

    Args:
      bits: the domain is {0, ..., 2^bits - 1}; at epsilon = 1 the search reaches about 100 bits, and takes some minutes at 64.
      epsilon: > 0, finite, a known number.
      beta: the failure probability that is allowed, in (0, 1).
      evaluations: how many programmes are run for each n.

    Raises:
      TypeError, ValueError: an argument out of range, or a search that would take too many steps.

    >>> solver = flat_tree_score_planned(bits=4, epsilon=1.0, beta=0.1)
    >>> solver.sample_size(beta=0.1), solver.guarantee().relation
    (16, 'REPLACE_ONE')
    """
    bits = int(base.domain(bits)["bits"])
    epsilon = arguments.known("epsilon", arguments.epsilon(epsilon))
    beta = arguments.known_fraction("beta", beta)
    evaluations = arguments.integer("evaluations", evaluations, at_least=1)
    n, its_offsets, its_curve = planning.searched(bits, epsilon, beta, evaluations)
    shaped = planning.curve(**dict(zip(("share", "rest", "knee", "width"), its_curve, strict=True)))
    from_numbers = planning.offsets(**dict(zip(("a", "alpha", "p", "tau"), its_offsets, strict=True)))
    return flat_tree_score(bits=bits, epsilon=epsilon, n=n, offsets=from_numbers, curve=shaped)
