"""Common parts of mechanisms that find all quantiles at once: the axis, events on it, and the integers drawn for the outputs."""

import dataclasses
import math
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Bool, Float, Int, UInt32

from dpjax.accounting import ADD_OR_REMOVE_ONE, Guarantee
from dpjax.core import arguments, logspace
from dpjax.data.algorithm import whole
from dpjax.data.points import Points
from dpjax.domains import wide
from dpjax.domains.events import Interval
from dpjax.mechanisms.one_sided_geometric import SMALLEST_RATE
from dpjax.optimizers.quantiles import chains, near, scales
from dpjax.optimizers.quantiles.axis import BASES, PLACES, Axis
from dpjax.optimizers.quantiles.chains import Drawn, Marks, Pieces, Targets
from dpjax.optimizers.quantiles.ranked import RankedQuantiles, rounded_fractions

BATCH = 8  # targets that a run processes at once
ENOUGH = 2.0  # times what the places of all outputs cost one by one: from there on places gain nothing, and targets w_j n are tried
# The weight of all base measures of a mixture, where the uniform one weighs 1.
MIXTURE = {"uniform": 1, "scales": 2, "places": 2 / (1 - PLACES)}
REST_DIGITS = 16  # binary digits of the fractional part of a target
MOST = 2**REST_DIGITS - 2  # outputs


class Together(RankedQuantiles):
    """A mechanism that draws all quantiles as one tuple on an `Axis`.

    Attributes:
      bits: d.
      fractions: F for each wanted fraction F 2^-32, increasing.
      epsilon: the total epsilon.
      origin: the origin of scales.
      limbs: limbs of a point (static).
      wider: limbs of a position up to 2^d + 1 (static).
      base: "uniform", "scales" or "places" (static).
      size: how many points around each quantile a run processes; 0 for all points (static).
    """

    epsilon: Any
    origin: Any
    wider: int
    base: str
    size: int

    @property
    def counting(self) -> float:
        """The share of epsilon that a noisy count takes, 0 if there is none."""
        raise NotImplementedError

    def sound(self) -> Bool[Array, ""]:
        """Also requires that a noisy count, if there is one, fits int32."""
        return super().sound() & ((self._count_rate() >= SMALLEST_RATE) | (self.counting == 0))

    def kappa(self) -> Float[Array, ""]:
        """The rate at which weights fall with the cost; the most by which the log of any weight moves when a point arrives or leaves."""
        return (1 - self.counting) * jnp.asarray(self.epsilon, float) / 2

    def _rate(self) -> float:
        """kappa on the host."""
        return (1 - self.counting) * arguments.known("epsilon", self.epsilon) / 2

    def _nats(self) -> float:
        """ln of the weight of all tuples over the least weight of a right one."""
        return self.fractions.shape[0] * int(self.bits) * scales.LN2 + math.log(MIXTURE[self.base])

    def _count_rate(self) -> Float[Array, ""]:
        return self.counting * jnp.asarray(self.epsilon, float)

    def _enough_nats(self) -> Float[Array, ""]:
        """`ENOUGH` times what the places of all outputs cost one by one."""
        return ENOUGH * self.fractions.shape[0] * scales.LN2 * self.axis.d().astype(float)

    @property
    def axis(self) -> Axis:
        """The domain and what outputs weigh on it."""
        return Axis(bits=self.bits, origin=self.origin, base=self.base)

    def _sized(self, size: float, rows: int) -> Any:
        """The same, with runs that process `size` points around each quantile or more, or all of `rows` rows unless that halves them."""
        return dataclasses.replace(self, size=near.block(size, self.fractions.shape[0], rows))  # type: ignore[type-var]

    def _all(self) -> Int[Array, "ends"]:
        """How many points are left out below each target where none are: 0."""
        return jnp.zeros(self.fractions.shape[0] + 2, jnp.int32)

    def _near(self, points: Points) -> tuple[Points, Int[Array, "ends"]]:
        """(The points that a run processes, how many it leaves out below each target.)"""
        if not 0 < self.size * self.fractions.shape[0] < points.rows:
            return points, self._all()
        return near.near(points, jnp.asarray(self.fractions), self.size)

    def _weigh(
        self, points: Points, targets: Targets, log_priors: Float[Array, "k"], measures: Int[Array, ""]
    ) -> Float[Array, "measures k"]:
        """ln of the weight of all tuples by each measure that is used and for each of the targets."""
        axis = self.axis

        def one(measure: Array) -> Float[Array, "k"]:
            pieces = axis.pieces(points, self.fractions.shape[0], measure)
            logs = in_batches(lambda each: chains.forward(pieces, each)[0], targets, BATCH)
            return logs + log_priors + axis.log_priors()[measure]

        return first(one, axis.measures, measures, targets.kappa.size)

    def _tuple(self, key: Array, points: Points, targets: Targets, measure: Int[Array, ""]) -> tuple[Drawn, Pieces]:
        """(One tuple, by this measure and these targets; its pieces)."""
        pieces = self.axis.pieces(points, self.fractions.shape[0], measure)
        _, each = chains.forward(pieces, targets)
        return chains.draw(key, pieces, targets, each), pieces

    def _answers(
        self, key: Array, points: Points, found: Drawn, measure: Int[Array, ""]
    ) -> UInt32[Array, "outputs limbs"]:
        """One integer for each output, in order."""
        axis, outputs = self.axis, found.at.shape[0]
        key_empty, key_powers, key_places = jax.random.split(key, 3)
        start, stop = axis.stretch(points, found, measure)
        only = axis.interval(key_empty, start[0], stop[0], measure)
        start, stop = (wide.select(found.empty, one[None], each) for one, each in zip(only, (start, stop), strict=True))
        # Among the outputs of one piece: how many are left, and how many of these share one integer (`chains.complete`).
        place = jnp.arange(outputs, dtype=jnp.int32)
        piece = jnp.stack([found.kind, found.at, found.tail.astype(jnp.int32)], axis=1)
        last = jnp.append(jnp.any(piece[1:] != piece[:-1], axis=1), True)
        left = lax.cummin(jnp.where(last, place, outputs), reverse=True) - place + 1

        def together(key: Array, start: Array, stop: Array, left: Array) -> Array:
            log_power = axis.log_powers(start, stop, measure, outputs)
            others = left - 1 - place
            log_h = chains.complete(log_power)[jnp.maximum(others, 0)]
            return logspace.draw(key, logspace.sum_tree(jnp.where(others >= 0, log_power + log_h, -jnp.inf))) + 1

        power = jnp.minimum(jax.vmap(together)(jax.random.split(key_powers, outputs), start, stop, left), left)
        power = jnp.where(found.kind == chains.BETWEEN, power, 1)

        def whose(busy: tuple[Array, Array], here: tuple[Array, Array]) -> tuple[tuple[Array, Array], Array]:
            """(The output whose integer this one has, the output before which that integer ends)."""
            index, power = here
            first, until = busy
            begins = index >= until
            first, until = jnp.where(begins, index, first), jnp.where(begins, index + power, until)
            return (first, until), first

        _, first = lax.scan(whose, (jnp.int32(0), jnp.int32(0)), (place, power))
        each = jax.vmap(lambda *of: axis.within(of[0], of[1], of[2], measure, of[3]))(
            jax.random.split(key_places, outputs), start, stop, power
        )
        return wide.resize(wide.sort(each[first])[0], self.limbs)

    def _split(
        self, points: Points, intervals: Interval
    ) -> Callable[[Targets, Int[Array, ""]], Float[Array, "measures k 2"]]:
        """For sorted points: from targets, and how many measures are used, to ln of the weights of tuples in the intervals and others."""
        inside = intervals.of_domain(self.bits, self.wider)
        low, high = inside.low, inside.high
        rows, counted = self._cut(points, low, high)
        marks, axis = self._marks(points, rows, low, high), self.axis

        def weigh(targets: Targets, measures: Int[Array, ""]) -> Float[Array, "measures k 2"]:
            def one(measure: Array) -> Float[Array, "k 2"]:
                pieces = axis.cut_pieces(points, rows, counted, self.fractions.shape[0], measure)
                logs = in_batches(lambda each: chains.split(pieces, each, marks), targets, 2 * BATCH)
                return logs + axis.log_priors()[measure]

            def nothing(_: Array) -> Float[Array, "k 2"]:
                return jnp.full((targets.kappa.size, 2), -jnp.inf)

            # Not a loop up to a count, which reverse-mode differentiation refuses.
            order = jnp.arange(axis.measures, dtype=jnp.int32)
            return lax.map(lambda measure: lax.cond(measure < measures, one, nothing, measure), order)

        return weigh

    def _cut(
        self, points: Points, low: UInt32[Array, "quantiles wider"], high: UInt32[Array, "quantiles wider"]
    ) -> tuple[Points, Bool[Array, "rows"]]:
        """(sorted rows: the ends of the intervals, and the points, after ends equal to them; which of them are points)."""
        ends = wide.concatenate(low, high)
        no = jnp.zeros(ends.shape[0], bool)
        x = wide.concatenate(ends, wide.resize(points.x, self.wider))
        kept = jnp.concatenate([~no, points.valid])
        x, counted = wide.sort(wide.select(kept, x, ~jnp.zeros_like(x)), jnp.concatenate([no, points.valid]))
        return Points(x=x, n_valid=points.n_valid + ends.shape[0], ordered=True), counted

    def _marks(self, points: Points, rows: Points, low: Array, high: Array) -> Marks:
        """Which values, pieces and gaps lie in the interval of each output: a gap does if the row before it does, or the end that it begins
        with."""
        before = wide.concatenate(jnp.zeros((1, self.wider), jnp.uint32), rows.x)

        def one(low: Array, high: Array) -> Marks:
            def within(value: Array) -> Array:
                least, beyond = jnp.broadcast_to(low, value.shape), jnp.broadcast_to(high, value.shape)
                return wide.less_equal(least, value) & wide.less(value, beyond)

            gap = within(before)
            cell = jnp.append(within(wide.resize(points.x, self.wider)), False)
            return Marks(cell=cell, piece=jnp.repeat(gap, self.axis.sides), gap=gap)

        return jax.vmap(one)(low, high)

    def error(self, *, beta: float) -> float:
        """A bound on the ranks by which outputs miss f n, whatever the points are, except with probability beta."""
        raise NotImplementedError

    def sample_size(self, *, alpha: float, beta: float) -> int:
        """The number of points for which all ranks are within alpha n of f n, with probability 1 - beta: (`error` + 1/2) / alpha.

        Half a rank is added as f n is rounded to an integer rank.

        Raises:
          ValueError: alpha or beta outside (0, 1).
        """
        alpha = arguments.known_fraction("alpha", alpha)
        return whole((self.error(beta=beta) + 0.5) / alpha)

    def guarantee(self) -> Guarantee:
        """(epsilon, 0) under ADD_OR_REMOVE_ONE: all quantiles together, and the noisy count."""
        return Guarantee(arguments.known("epsilon", self.epsilon), 0.0, ADD_OR_REMOVE_ONE)

    def zcdp(self) -> float:
        """rho for which all quantiles together are rho-zCDP under ADD_OR_REMOVE_ONE, rounded up."""
        return (arguments.known("epsilon", self.epsilon) / per_root(self.counting)) ** 2 / 8 * (1 + 2.0**-44)


def on_axis(*, bits: int, fractions: Sequence[float], base: str, origin: int) -> dict[str, Any]:
    """The attributes that give the wanted quantiles, the domain and the base measure.

    Raises:
      TypeError, ValueError: an argument out of range, fractions that do not increase or are too many.
    """
    each = np.asarray(rounded_fractions(fractions), np.uint32)
    if each.size > MOST:
        raise ValueError(f"fractions must be at most {MOST}, got {each.size}")
    bits = arguments.integer("bits", bits, at_least=1, at_most=wide.MAX_BITS)
    measure = scales.base_measure(base, origin, bits, BASES)
    return {"bits": np.int32(bits), "limbs": wide.limbs_for(bits), "fractions": each, **measure}


def among(targets: Targets, left_out: Int[Array, "ends"]) -> tuple[Targets, Bool[Array, "k"]]:
    """(Targets among near points, whether they rise: otherwise they are for an N so far from n that it has no weight.)"""
    targets = dataclasses.replace(targets, whole=targets.whole - left_out[None])
    return targets, jnp.all(jnp.diff(targets.whole, axis=1) >= 0, axis=1)


def per_root(counting: float) -> float:
    """epsilon over sqrt(8 rho) where the whole is rho-zCDP and a noisy count takes the share `counting` of epsilon."""
    return (4 * counting**2 + (1 - counting) ** 2) ** -0.5


def in_batches(one: Callable[[Targets], Any], each: Targets, size: int) -> Float[Array, "n *k"]:
    """`one` of each, `size` at a time. The last batch is filled up: a smaller batch would be one more program."""
    count = each.kappa.size
    batch = min(size, count)
    order = jnp.minimum(jnp.arange(-(-count // batch) * batch, dtype=jnp.int32), count - 1).reshape(-1, batch)
    found = lax.map(lambda of: jax.vmap(one)(jax.tree.map(lambda leaf: leaf[of], each)), order)
    return found.reshape(-1, *found.shape[2:])[:count]


def first(one: Callable[[Any], Any], size: int, count: Int[Array, ""], width: int) -> Float[Array, "size width"]:
    """`one` of each of 0, ..., count - 1; -inf for all others."""
    nothing = jnp.full((size, width), -jnp.inf)
    return lax.fori_loop(0, count, lambda i, found: found.at[i].set(one(i)), nothing)
