"""What learners of thresholds share: their data, their view of them, and what an event is."""

from typing import Any, ClassVar

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool

from dpjax.concepts import thresholds as concept
from dpjax.core import arguments
from dpjax.data.algorithm import Ordered, few_points
from dpjax.data.sample import Sample, wide_row, wide_rows
from dpjax.domains import wide
from dpjax.domains.events import Accurate, Goal, Interval
from dpjax.domains.ordered import Pieces
from dpjax.mechanisms import exponential_piecewise as piecewise


class ThresholdLearner(Ordered):
    """A learner of one threshold from a `Sample`: the output is a j in 0, ..., 2^bits, of bits + 1 bits.

    A run and a law work on Q(j), the number of examples that c_j labels correctly, as pieces on {0, ..., 2^bits}. One compiled program
    serves every sample size up to its bucket, every epsilon and delta, and every number of bits with the same number of limbs.
    """

    kind: ClassVar[type] = Sample

    def sound(self) -> Bool[Array, ""]:
        """Whether alpha, where there is one, is in its range, too: (0, 1), but 1 is let through, to which float32 may round."""
        alpha = jnp.asarray(getattr(self, "alpha", 1.0), float)
        room = jnp.asarray(self.bits) < 32 * self.limbs  # an output may be 2^bits
        return super().sound() & (alpha > 0) & (alpha <= 1) & room

    def prepare(self, sample: Sample) -> Pieces:
        return concept.quality(sample, self.bits, self.limbs)

    def event(self, pieces: Pieces, event: Interval | Accurate) -> Goal:
        if isinstance(event, Interval):
            return Goal(marked=None, within=Interval(low=event.low, high=wide.minimum(event.high, pieces.end)))
        n = pieces.values[0] + pieces.values[-1]  # zeros + ones
        return Goal(marked=event.allows(n - pieces.values, n), within=piecewise.everything(pieces))

    def listed(self) -> int:
        return few_points(self.bits) + 1

    def own_alpha(self, alpha: float) -> float:
        """The alpha that the learner was made for; ValueError for a smaller one, which no number of examples achieves."""
        alpha, own = arguments.known_fraction("alpha", alpha), arguments.known("alpha", self.alpha)  # type: ignore[attr-defined]
        if alpha < own:
            raise ValueError(f"alpha must be >= {own}, for which this learner was made, got {alpha}")
        return own

    def predict(self, hypothesis: Any, x: Any) -> Bool[Array, "rows"]:
        """The labels that the threshold gives to points."""
        return concept.label(wide_row("hypothesis", hypothesis), wide_rows("x", x)).astype(bool)


def domain(bits: int) -> dict[str, Any]:
    """The fields that every learner has; an output, 0, ..., 2^bits, takes bits + 1 bits."""
    bits = arguments.integer("bits", bits, at_least=1, at_most=wide.MAX_BITS)
    return {"bits": np.int32(bits), "limbs": wide.limbs_for(bits + 1)}


def released(point: piecewise.Point) -> tuple[Array, Bool[Array, ""], piecewise.Point]:
    """A draw that is always released, as `draw` returns it."""
    return point.position, jnp.bool_(True), point
