"""The exponential mechanism over halfplanes (GEO's SelectHalfplane with the score -errors): a learner of one halfplane.

P[h] is proportional to exp(epsilon q(h)) over the measure on halfplanes, where q(h) = -(number of examples that h labels wrongly).

**Privacy** (ADD_OR_REMOVE_ONE). One more example moves every score by 0 or -1, so it multiplies every weight, and hence the normaliser, by
a factor in [e^-epsilon, 1]: (epsilon, 0). GEO's own analysis, for scores that may move both ways, gives 2 epsilon for the same weights.

**Utility.** If some halfplane has m errors, so have all that agree with it on the grid. They make up at least e^-L of the measure
(L = `log_size`), so the output has at most m + (L + ln(1/beta))/epsilon errors, except with probability beta. `sample_size` is
`bounds.finite_class` with L for ln |H|.

Two examples with different labels at one point cost one error, whatever the halfplane. So the draw leaves such pairs out, which changes
all weights by a common factor only, and works with points of one label each, for which the bounds of cells are tight.

The draw is that of `dpjax.learners.halfplanes.refinement`, and the law sums over the pieces of `dpjax.concepts.plane.arrangement`; the
plain twin is `dpjax.verify.plain.halfplanes`.

    >>> import jax
    >>> from dpjax.concepts import halfplanes as concept
    >>> from dpjax.learners import halfplanes
    >>> law = concept.uniform(bits=64, target=concept.halfplane(bits=64, p=1, q=2, r=2**64))
    >>> learner = halfplanes.exponential(bits=64, epsilon=1.0)
    >>> outcome = learner(jax.random.key(1), law.sample(jax.random.key(0), 4095, 4000))
    >>> float(law.error(outcome.hypothesis)) < 0.05
    True
"""

import math
from typing import Any, ClassVar

import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float, Int, UInt32

from dpjax import bounds
from dpjax.accounting import ADD_OR_REMOVE_ONE, Guarantee
from dpjax.concepts.plane import arrangement
from dpjax.core import arguments, logspace, staging
from dpjax.core.pytree import frozen
from dpjax.data.algorithm import Algorithm, whole
from dpjax.data.examples import Examples
from dpjax.domains import groups
from dpjax.domains.events import Accurate
from dpjax.learners.halfplanes.refinement import Problem, draw
from dpjax.learners.halfplanes.select import Placed, SelectHalfplane, select_halfplane
from dpjax.mechanisms import exponential as exponential_mechanism

MOST_REACH = 120  # log2 of the largest slopes for which a law is computed in float32
# At this rate the weight e^-rate of an error is 0 in any float, and the rate times all errors is still a float.
MOST_RATE = 2.0**96
MOST_ROWS = 127  # the most rows for a law, which sums over about as many pieces as their cube
ROUNDED = 8  # machine epsilons by which an end of a piece may be off
GAP_ROUNDED = 2  # machine epsilons by which the distance of two lines may be off


@frozen
class Exponential(Algorithm):
    """The learner; build it by `exponential`.

    Attributes:
      epsilon: privacy parameter.
      selection: the halfplanes, with their measure.
    """

    epsilon: Float[Any, ""]
    selection: SelectHalfplane

    kind: ClassVar[type] = Examples

    def fit(self, data: Any) -> Examples:
        return self.selection.fit(data)

    def fits(self, data: Examples) -> Bool[Array, ""]:
        return self.selection.fits(data)

    def prepare(self, data: Examples) -> Examples:
        return data

    def run(self, key: Array, data: Examples) -> Any:
        return staging.one_by_one(type(self).draw)(self, key, data)

    def draw(self, key: Array, data: Examples) -> Any:
        select = self.selection
        view = select.prepare(data)
        columns, more = _majorities(view)
        weights = jnp.maximum(jnp.stack([more, -more]), 0)
        kept = jnp.sum(weights[0], dtype=jnp.int32)

        def score(zeros: Array, ones: Array) -> Array:
            return -(kept - zeros + ones).astype(float)

        rate = jnp.minimum(jnp.asarray(self.epsilon, float), MOST_RATE)
        line, splits = draw(key, Problem(select.grid, columns, weights, score, rate, dual=False))
        return select.released(line, dual=False), jnp.bool_(True), {"splits": splits}

    def law(self, data: Examples, event: Any) -> Float[Array, "2"]:
        if data.rows > MOST_ROWS:
            raise ValueError(f"data must have at most {MOST_ROWS} rows for a law, got {data.rows}")
        if self.selection.grid.reach > MOST_REACH and jnp.result_type(float) == jnp.float32:
            raise ValueError(
                f"bits must be at most {MOST_REACH // 2} for a law of the box without x64, got {self.selection.bits}"
            )
        x = self._coordinates(data)
        y, valid = data.y == 1, data.valid
        parts, hidden = [], []
        grid, net = self.selection.grid, _net(data)
        for chart in range(grid.charts):
            width, gap, order, slope, height = arrangement.slabs(grid, chart, x[0], x[1], jnp)
            # Piece j deletes the points at places below j.
            change = jnp.where(valid, jnp.where(y, 1, -1), 0)[order]
            none = jnp.zeros((order.shape[0], 1), jnp.int32)
            wrong = jnp.concatenate([none, jnp.cumsum(change, axis=1, dtype=jnp.int32)], axis=1)
            errors = jnp.sum(valid & ~y, dtype=jnp.int32) + wrong
            # Not the area: a width of the box times a height may be too large for a float.
            area = jnp.where((width > 0) & (gap > 0), jnp.log(width) + jnp.log(gap), -jnp.inf)
            rounded = ROUNDED * jnp.finfo(area.dtype).eps
            thin = (width <= rounded * (1 + jnp.abs(slope))) | (gap <= rounded * (1 + jnp.abs(height)))
            # Of a gap of a few roundings, a part is rounding. Widths need no such part: what one slab loses, the next one gains.
            off = GAP_ROUNDED * jnp.finfo(area.dtype).eps * (1 + jnp.abs(height))
            rounding = jnp.where(thin, 1.0, off / jnp.where(thin, 1.0, gap))
            parts.append((area, errors, self._good(event, data, errors, order), rounding))
            hidden.append(_hidden(width, gap, slope, height, rounded, net[order], errors))
        log_area, errors, good, rounding = (
            jnp.concatenate([part.ravel() for part in each]) for each in zip(*parts, strict=True)
        )
        # The fewest errors are subtracted as integers: added to epsilon times all errors, the logarithm of an area would lose its digits.
        least = jnp.min(jnp.where(log_area > -jnp.inf, errors, data.rows))
        log_mass = log_area - jnp.asarray(self.epsilon, float) * (errors - least).astype(float)
        inside, outside = (logspace.logsumexp(jnp.where(at, log_mass, -jnp.inf)) for at in (good, ~good))
        every = jnp.logaddexp(inside, outside)
        # A piece as thin as a rounding error may not exist: lines that meet in one point, say, seem to enclose labels of no halfplane.
        doubtful = logspace.logsumexp(log_mass + jnp.log(rounding)) - every
        most_doubt = math.log(jnp.finfo(log_area.dtype).eps) / 2
        known = doubtful <= most_doubt
        if 3 * grid.bits > jnp.finfo(log_area.dtype).nmant + 1:  # pieces of area 1/(2 D^3) may be rounded to nothing
            area, fewest = (jnp.concatenate([part.ravel() for part in each]) for each in zip(*hidden, strict=True))
            lost = logspace.logsumexp(area - jnp.asarray(self.epsilon, float) * (fewest - least).astype(float)) - every
            known &= lost <= most_doubt
        law = jnp.where(known, jnp.exp(jnp.stack([inside, outside]) - every), jnp.nan)
        # Labels for only some of the examples are not an event.
        return law if isinstance(event, Accurate) else jnp.where(data.n_valid <= event.shape[0], law, jnp.nan)

    def _coordinates(self, data: Examples) -> Float[Array, "2 rows"]:
        """The coordinates over 2^d; rows that do not count are put at the origin."""
        limbs = data.x.shape[-1]
        scale = [2.0 ** (32 * (limbs - 1 - i) - self.selection.bits) for i in range(limbs)]
        each = jnp.sum(data.x.astype(float) * jnp.array(scale)[None, None], axis=2)
        return jnp.where(data.valid[None], each.T, 0.0)

    def _good(self, event: Any, data: Examples, errors: Array, order: Array) -> Bool[Array, "slabs pieces"]:
        """Which pieces belong to the event."""
        if isinstance(event, Accurate):
            return event.allows(errors, data.n_valid)
        # Here an event is a label for each row: piece j belongs to it if the rows with label 1 are exactly those at places from j on.
        labels = jnp.pad(event, (0, data.rows - event.shape[0]))
        wrong = jnp.where(data.valid, jnp.where(labels, 1, -1), 0)[order]
        none = jnp.zeros((order.shape[0], 1), jnp.int32)
        below = jnp.cumsum(jnp.maximum(wrong, 0), axis=1, dtype=jnp.int32)  # label 1, but deleted
        beyond = jnp.cumsum(jnp.maximum(-wrong, 0), axis=1, dtype=jnp.int32)
        below, beyond = (jnp.concatenate([none, each], axis=1) for each in (below, beyond))
        return (below == 0) & (beyond == beyond[:, -1:])

    def check_event(self, event: Any) -> Any:
        if str(getattr(event, "dtype", None)) != "bool" or event.ndim != 1:
            raise TypeError(f"event must be the labels of the rows, an array of booleans, got {event!r}")
        return jnp.asarray(event)

    def event(self, data: Examples, event: Any) -> Any:
        if not isinstance(event, Accurate) and event.shape[0] > data.rows:
            raise ValueError(f"event must have at most {data.rows} labels, got {event.shape[0]}")
        return event

    # Lists, on tiny grids ---------------------------------------------------------------------------------------------

    def listed(self) -> int:
        """How many ways there are to label the grid by a halfplane."""
        return self.selection.hypotheses()

    def masses(self, data: Examples, outputs: int) -> Float[Array, "outcomes"]:
        select = self.selection
        view = select.prepare(data)
        deleted = select.all_deleted(view, dual=False)
        wrong = select.count(view, view.valid[None] & (deleted == view.y[None]))
        weights = exponential_mechanism.log_weights(-wrong.astype(float), epsilon=self.epsilon, monotone=True)
        return jnp.append(jnp.exp(exponential_mechanism.normalised(select.log_measure() + weights)), 0.0)

    def guarantee(self) -> Guarantee:
        """(epsilon, 0) under ADD_OR_REMOVE_ONE; see the module."""
        return Guarantee(float(self.epsilon), 0.0, ADD_OR_REMOVE_ONE)

    def sample_size(self, *, alpha: float, beta: float) -> int:
        """Examples of a halfplane for population error alpha except with probability beta: `bounds.finite_class` with `log_size`.

        Raises:
          ValueError: alpha or beta outside (0, 1).
        """
        return whole(bounds.finite_class(self.selection.grid.log_size, alpha, beta, float(self.epsilon)))


def _net(data: Examples) -> Int[Array, "rows"]:
    """How many errors deleting each point adds, given at the first example there; 0 at the other examples."""
    same = jnp.all(data.x[:, None] == data.x[None], axis=(2, 3)) & data.valid[:, None] & data.valid[None]
    net = jnp.sum(jnp.where(same, jnp.where(data.y == 1, 1, -1)[None], 0), axis=1, dtype=jnp.int32)
    return jnp.where(jnp.any(jnp.tril(same, -1), axis=1), 0, net)


def _hidden(
    width: Array, gap: Array, slope: Array, height: Array, rounded: Any, net: Array, errors: Array
) -> tuple[Float[Array, "slabs pieces"], Int[Array, "slabs pieces"]]:
    """For each piece of one chart, (ln of an area that rounding may hide there, the fewest errors there).

    Lines within a rounding error of each other may cross there in any order, so that some of their points are held and the others are not.
    """
    pieces = gap.shape[1]
    near = gap <= rounded * (1 + jnp.abs(height))
    place = jnp.arange(pieces, dtype=jnp.int32)[None]
    # Piece j lies between lines j - 1 and j: lines that are near each other form a group.
    first = lax.cummax(jnp.where(near, 0, place), axis=1)
    last = lax.cummin(jnp.where(near, pieces - 1, place), axis=1, reverse=True)
    saved = jnp.pad(jnp.cumsum(jnp.minimum(net, 0), axis=1, dtype=jnp.int32), ((0, 0), (1, 0)))
    before, saved_before, saved_after = (
        jnp.take_along_axis(each, at, axis=1) for each, at in ((errors, first), (saved, first), (saved, last))
    )
    area = jnp.log(jnp.maximum(width, rounded * (1 + jnp.abs(slope)))) + jnp.log(rounded * (1 + jnp.abs(height)))
    return jnp.where(near, area, -jnp.inf), before + saved_after - saved_before


def _majorities(view: Placed) -> tuple[UInt32[Array, "2 words points"], Int[Array, "points"]]:
    """(points, how many more negative than positive examples there are at each)."""
    sign = jnp.where(view.valid, jnp.where(view.y, -view.counts, view.counts), 0)
    if view.columns.shape[-1] < sign.shape[0]:  # every point once for each label
        return view.columns, jnp.sum(sign.reshape(2, -1), axis=0, dtype=jnp.int32)
    words = view.columns.shape[1]
    found = groups.group(view.columns.reshape(2 * words, -1).T, view.valid)
    return found.rows.T.reshape(2, words, -1), found.sums(sign)


def exponential(*, bits: int, epsilon: Any, measure: str = "axes") -> Exponential:
    """The exponential mechanism over halfplanes of {0, ..., 2^d - 1}^2; see the module.

    Its law (`probability` of the labels of the rows, `success_probability`) is available for up to 127 rows. In float32 the sides of its
    pieces are rounded to about 2^-24, so laws on small grids keep their digits, and laws on large grids need x64. The law is NaN where
    roundings may make up more than 3e-4 of it (1.5e-8 with x64): pieces no wider than a rounding error, and of the others the part of
    their heights that two machine epsilons are. They may if epsilon times a few errors outweighs their small share of the measure.

    Formal guarantees: (epsilon, 0) under ADD_OR_REMOVE_ONE. Not promised: protection from floating-point side channels; a cryptographic
    generator.

    Args:
      bits: d, 1 to 64.
      epsilon: privacy parameter; may be traced.
      measure: "axes" (slopes below 1 in either axis) or "box" (GEO's, of area 32 D^4).

    Raises:
      TypeError, ValueError: an argument out of range.
    """
    return Exponential(
        epsilon=arguments.epsilon(epsilon),
        selection=select_halfplane(bits=bits, measure=measure),
    )
