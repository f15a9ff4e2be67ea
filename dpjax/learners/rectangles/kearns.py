"""Rectangles by Kearns's learner on axes that a sanitizer cuts (BNS §3.5, Theorem 3.22).

On every axis, a sanitized database of the coordinates of all examples is released, its points cut the axis, the positive examples in
each cell are counted with noise, and the side of the rectangle reaches from the left-most significant cell to the right-most one. The
paper leaves open how many cells there are, what is significant, which point of a cell is the side's end, and how the budget is split:

- *Cells.* The q points z_1 <= ... <= z_q of the database make 2q + 1 cells: the points themselves, and the open intervals that they leave.
  (With half-open intervals a heavy point would share its cell with others, and no choice of an end would be right.)
- *Significant* cells are those with a noisy count of at least tau. Two-sided geometric noise of rate e is tau or more, or -tau or less,
  with probability 2 r^tau/(1 + r), r = exp(-e); tau is the least number for which this is at most beta/4 over all D (2q + 1) cells.
- *Ends.* A significant point z_i is itself an end; of a significant interval (z_i, z_(i+1)) the inner end is taken: z_(i+1) on the left,
  z_i on the right. If no cell is significant on an axis, or nothing lies between the ends, the answer is the all-zero hypothesis.
- *Budget.* The sanitizer has a budget of its own; the noise gets epsilon/D per axis. `experiments.kearns` gives half of the total to the
  noise and half to the D sanitizers.

**Privacy** (ADD_OR_REMOVE_ONE, as for `by_slices`, so that the two can be compared; any labels). One more example is one more point on each
axis, whatever its label, and moves one count per axis by at most 1. So D sanitizers and D (epsilon/D)-private histograms run, and basic
composition adds them up. BNS state privacy under replace-one, as `guarantee_under(REPLACE_ONE)` gives it.

**Utility.** Let t label the examples, let every database be within a of the examples' distribution functions (except with probability
beta/4 in all), and let no noise reach tau. A significant cell holds a positive example, so every end lies between two of them, or is one:
the hypothesis h is in t. An example of t that is not in h is, on some axis, in a cell beyond the significant ones, or in one of the two
cells that give the ends. The former hold at most 2 tau - 2 positive examples each. The latter hold at most 2 a n if they are not points:
the database's distribution function is constant there, so that of the examples grows by at most 2 a. (Below the first point it has that
point's share, where that of the examples starts from 0: let this share be at most a, too, as that of `cdf.release` is at its
`sample_size`. If nothing lies between the ends, these are all the positive examples.) So h errs on at most

    D (4 a + (2q + 1) (2 tau - 2)/n) n   examples;

with a = alpha/(16 D) and n >= 4 D (2q + 1) (2 tau - 2)/alpha this is at most alpha n/2, and Theorem 2.14 with alpha/2 and beta/2
(VC dimension 2D) does the rest. With q of order D/alpha and noise of order ln(q D/beta) D/epsilon, n is of order D^3/(alpha^2 epsilon),
before the sanitizer's own demand.

The plain twin is `dpjax.verify.plain.kearns`.

    >>> import jax
    >>> from dpjax.concepts import rectangles as concept
    >>> from dpjax.learners import rectangles
    >>> from dpjax.optimizers import interior_point, quantiles
    >>> from dpjax.sanitizers import cdf
    >>> solver = interior_point.exponential(bits=24, epsilon=1.0)
    >>> sanitizer = cdf.release(quantiles=quantiles.recursive(solver=solver, bits=16, depth=5, m=40))
    >>> learner = rectangles.kearns(axes=1, bits=16, epsilon=5.0, sanitizer=sanitizer, cuts=31, beta=0.1)
    >>> d = concept.uniform(bits=16, low=[9000], high=[60000])
    >>> outcome = learner(jax.random.key(1), d.sample(jax.random.key(0), 4000, 4000))
    >>> float(d.error(outcome.hypothesis)) < 0.1
    True
"""

import math
from collections import Counter
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Bool, Float, Int, UInt32

from dpjax import bounds
from dpjax.accounting import ADD_OR_REMOVE_ONE, Guarantee, basic
from dpjax.accounting.guarantee import promised
from dpjax.concepts import rectangles as concept
from dpjax.concepts.rectangles import Rectangle
from dpjax.core import arguments
from dpjax.core.bisection import least_int
from dpjax.core.pytree import frozen, static
from dpjax.data.algorithm import Algorithm, sanitizer_size, whole
from dpjax.data.examples import Examples
from dpjax.data.fitting import fitted_examples
from dpjax.data.outcome import Status
from dpjax.data.points import Points
from dpjax.domains import wide
from dpjax.mechanisms import geometric
from dpjax.mechanisms.geometric import SMALLEST_RATE, checked_rate

_LARGEST_THRESHOLD = 2**31 - 1


@frozen
class Kearns(Algorithm):
    """The learner; build it by `kearns`.

    Attributes:
      sanitizer: a release of points whose hypothesis has a `support`.
      bits: d.
      epsilon: privacy parameter of the noise on all axes together.
      threshold: tau.
      beta: failure probability for which tau is chosen.
      axes: D (static).
      cuts: q, the number of points of a database (static).
      limbs: of a coordinate (static).
    """

    sanitizer: Any
    bits: Int[Array, ""]
    epsilon: Float[Array, ""]
    threshold: Int[Array, ""]
    beta: Float[Array, ""]
    axes: int = static()
    cuts: int = static()
    limbs: int = static()

    kind: ClassVar[type] = Examples

    def fit(self, data: Any) -> Examples:
        return fitted_examples(data, axes=self.axes, limbs=self.limbs, bits=self.bits)

    def fits(self, data: Examples) -> Bool[Array, ""]:
        return data.in_domain(self.bits, positive_only=False)

    def prepare(self, examples: Examples) -> Examples:
        return examples

    def sound(self) -> Bool[Array, ""]:
        return super().sound() & (jnp.asarray(self.epsilon, float) >= SMALLEST_RATE * self.axes)

    def draw(self, key: Array, examples: Examples) -> Any:
        key_sanitizers, key_noise = jax.random.split(key)

        def axis_side(axis: Array) -> tuple[tuple[Array, Array, Array], Array]:
            points = Points(x=examples.x[:, axis], n_valid=examples.n_valid)
            outcome = self.sanitizer(jax.random.fold_in(key_sanitizers, axis), points)
            if not hasattr(outcome.hypothesis, "support"):
                raise TypeError(f"sanitizer must release a database, with `support`, got {outcome.hypothesis!r}")
            cuts = self.cut_points(*outcome.hypothesis.support())
            counts = self.counts(cuts, examples, axis)
            noisy = geometric.geometric(
                jax.random.fold_in(key_noise, axis), counts, epsilon=jnp.asarray(self.epsilon, float) / self.axes
            )
            return self.side(cuts, noisy >= self.threshold), outcome.status == Status.OK

        # One axis after the other: the program is as small for many axes as for one.
        (low, high, found), released = lax.map(axis_side, jnp.arange(self.axes, dtype=jnp.int32))
        learned, zero = Rectangle(low=low, high=high), concept.nothing(self.axes, self.limbs)
        hypothesis = jax.tree.map(lambda one, other: jnp.where(jnp.all(found), one, other), learned, zero)
        return hypothesis, jnp.all(released), {"found": found}

    def cut_points(self, points: UInt32[Array, "q limbs"], where: Bool[Array, "q"]) -> UInt32[Array, "q limbs"]:
        """A database's points in order; those that do not count become 0, where a cut does no harm."""
        if points.shape[0] > self.cuts:
            raise ValueError(
                f"cuts must be >= {points.shape[0]}, the points of the sanitizer's database, got {self.cuts}"
            )
        return wide.sort(wide.select(where, points, jnp.zeros_like(points)))[0]

    def counts(
        self, cuts: UInt32[Array, "q limbs"], examples: Examples, axis: int | Int[Array, ""]
    ) -> Int[Array, "cells"]:
        """How many positive examples each cell has: 2i lies between z_i and z_(i+1), 2i - 1 is the point z_i (the first of equal ones)."""

        def cell(x: Array) -> Array:
            below = wide.search(cuts, x)
            return 2 * below + (wide.search(cuts, x, side="right") > below).astype(jnp.int32)

        each = jax.vmap(cell)(examples.x[:, axis])
        return jnp.zeros(2 * cuts.shape[0] + 1, jnp.int32).at[each].add(examples.positive.astype(jnp.int32))

    def side(self, cuts: UInt32[Array, "q limbs"], significant: Bool[Array, "cells"]) -> tuple[Array, Array, Array]:
        """(low, high, whether there is anything from the left-most to the right-most significant cell)."""
        q = cuts.shape[0]
        left, right = jnp.argmax(significant), 2 * q - jnp.argmax(significant[::-1])
        # The inner end: z_i itself for the cell 2i - 1; for 2i it is z_(i+1) on the left and z_i on the right.
        low, high = left // 2, (right + 1) // 2 - 1
        found = jnp.any(significant) & (low < q) & (high >= 0)
        low_end, high_end = cuts[jnp.minimum(low, q - 1)], cuts[jnp.maximum(high, 0)]
        return low_end, high_end, found & wide.less_equal(low_end, high_end) & (low <= high)

    def guarantee(self) -> Guarantee:
        """Basic composition of D sanitizers and the noise, under ADD_OR_REMOVE_ONE."""
        return self.guarantee_under(ADD_OR_REMOVE_ONE)

    def guarantee_under(self, relation: str) -> Guarantee:
        """The same under another relation: the sanitizers' promise is converted first, as it may cost less than the whole's."""
        noise = Guarantee(float(self.epsilon), 0.0, ADD_OR_REMOVE_ONE).under(relation)
        return basic(Counter({promised(self.sanitizer, relation): self.axes}) + Counter([noise]))

    def sample_size(self, *, alpha: float, beta: float) -> int:
        """The most examples that the sanitizer, the noise or Theorem 2.14 needs; see the module.

        Raises:
          TypeError, ValueError: alpha or beta outside (0, 1); beta below that for which tau was chosen; an alpha that the sanitizer
          cannot serve.
        """
        alpha, beta = arguments.known_fraction("alpha", alpha), arguments.known_fraction("beta", beta)
        own = arguments.known("beta", self.beta)
        if beta < own:
            raise ValueError(f"beta must be >= {own}, for which the threshold is made, got {beta}")
        sanitized = sanitizer_size(
            self.sanitizer, alpha=alpha / (16 * self.axes), beta=beta / (4 * self.axes), asked=(alpha, beta)
        )
        counted = 4 * self.axes * (2 * self.cuts + 1) * (2 * int(self.threshold) - 2) / alpha
        return whole(max(sanitized, counted, bounds.agnostic(2 * self.axes, alpha / 2, beta / 2)))


def kearns(*, axes: int, bits: int, epsilon: Any, sanitizer: Any, cuts: int, beta: float) -> Kearns:
    """The learner of the module.

    Formal guarantees: D times the sanitizer's guarantee plus (epsilon, 0), under ADD_OR_REMOVE_ONE, for any examples. Not promised:
    protection from floating-point side channels; a cryptographic generator.

    Args:
      axes: D >= 1.
      bits: each coordinate is in {0, ..., 2^bits - 1}, 1 to 4096.
      epsilon: privacy parameter of the noise on all axes together, > 0.
      sanitizer: one for `Points` over the same bits: called with (key, points) it returns an `Outcome` whose hypothesis has `support()`, a
        database's points and which of them count; its `guarantee()` is under ADD_OR_REMOVE_ONE. `dpjax.sanitizers.cdf.release` is one.
      cuts: the most points that its database has, at least its `most_points` if it states them.
      beta: failure probability, in (0, 1).

    Raises:
      TypeError, ValueError: an argument out of range, or an epsilon so small that counts of 2^31 examples are noise; not a sanitizer,
      or one that is over other bits or promises nothing under ADD_OR_REMOVE_ONE.
    """
    axes, cuts = arguments.size("axes", axes), arguments.size("cuts", cuts)
    bits = arguments.integer("bits", bits, at_least=1, at_most=wide.MAX_BITS)
    beta = arguments.known_fraction("beta", beta)
    epsilon = arguments.known("epsilon", checked_rate(arguments.epsilon(epsilon), axes))
    if not (callable(sanitizer) and hasattr(sanitizer, "guarantee")):
        raise TypeError(f"sanitizer must be callable and have a guarantee, got {sanitizer!r}")
    most = getattr(sanitizer, "most_points", cuts)
    if cuts < most:
        raise ValueError(f"cuts must be >= {most}, the most points of the sanitizer's database, got {cuts}")
    stated = sanitizer.guarantee()
    if stated.relation != ADD_OR_REMOVE_ONE or stated.is_none:
        raise ValueError(f"sanitizer must promise privacy under {ADD_OR_REMOVE_ONE}, got {stated}")
    if int(getattr(sanitizer, "bits", bits)) != bits:
        raise ValueError(f"bits must be {int(sanitizer.bits)}, those of the sanitizer, got {bits}")
    r, cells = math.exp(-epsilon / axes), axes * (2 * cuts + 1)

    def is_enough(tau: int) -> bool:
        return 2 * cells * r**tau / (1 + r) <= beta / 4

    if not is_enough(_LARGEST_THRESHOLD):
        raise ValueError(f"epsilon must be greater: counts up to {_LARGEST_THRESHOLD} are noise, got {epsilon}")
    threshold = least_int(is_enough, 1)
    numbers: dict[str, Any] = {
        "bits": np.int32(bits),
        "epsilon": np.float64(epsilon),
        "threshold": np.int32(threshold),
        "beta": np.float64(beta),
    }
    return Kearns(sanitizer=sanitizer, **numbers, axes=axes, cuts=cuts, limbs=wide.limbs_for(bits))
