"""What mechanisms share that find all quantiles at once: the axis, events on it, and one integer for each output drawn."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Bool, Float, Int, UInt32

from dpjax.core import logspace
from dpjax.data.points import Points
from dpjax.domains import wide
from dpjax.domains.events import Interval
from dpjax.optimizers.quantiles import chains
from dpjax.optimizers.quantiles.axis import Axis
from dpjax.optimizers.quantiles.chains import Marks, Targets
from dpjax.optimizers.quantiles.ranked import RankedQuantiles


class Together(RankedQuantiles):
    """A mechanism that draws all quantiles as one tuple on an `Axis`.

    Attributes:
      bits: d.
      fractions: F for each wanted fraction F 2^-32, increasing.
      origin: of scales.
      limbs: of a point (static).
      wider: limbs of a position up to 2^d + 1 (static).
      base: "uniform", "scales" or "places" (static).
    """

    origin: Any
    wider: int
    base: str

    @property
    def axis(self) -> Axis:
        """The domain and what outputs weigh on it."""
        return Axis(bits=self.bits, origin=self.origin, base=self.base)

    def _answers(
        self, key: Array, points: Points, found: chains.Drawn, measure: Int[Array, ""]
    ) -> UInt32[Array, "outputs limbs"]:
        """One integer for each output, those of one piece in any order."""
        axis, outputs = self.axis, found.at.shape[0]
        key_empty, key_powers, key_places = jax.random.split(key, 3)
        start, stop = axis.stretch(points, found, measure)
        only = axis.interval(key_empty, start[0], stop[0], measure)
        start, stop = (wide.select(found.empty, one[None], each) for one, each in zip(only, (start, stop), strict=True))
        # Of the outputs of one piece: how many are left, and how many of these are one integer (`chains.complete`).
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
            """(of which output an integer is, before which output its last one is)."""
            index, power = here
            first, until = busy
            begins = index >= until
            first, until = jnp.where(begins, index, first), jnp.where(begins, index + power, until)
            return (first, until), first

        _, first = lax.scan(whose, (jnp.int32(0), jnp.int32(0)), (place, power))
        each = jax.vmap(lambda *of: axis.within(of[0], of[1], of[2], measure, of[3]))(
            jax.random.split(key_places, outputs), start, stop, power
        )
        return each[first]

    def _within(self, intervals: Interval) -> tuple[UInt32[Array, "quantiles wider"], UInt32[Array, "quantiles wider"]]:
        """The ends of the intervals, at 2^d at most."""
        beyond = wide.power_of_two(self.bits, intervals.low.shape[-1])[None]
        low, high = (
            wide.resize(wide.minimum(end, jnp.broadcast_to(beyond, end.shape)), self.wider)
            for end in (intervals.low, intervals.high)
        )
        return low, high

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


def in_batches(one: Callable[[Targets], Any], each: Targets, size: int) -> Float[Array, "n *k"]:
    """`one` of each, so many at a time, the last ones together with more that nobody asked for: a smaller batch is one more program."""
    count = each.kappa.size
    batch = min(size, count)
    order = jnp.minimum(jnp.arange(-(-count // batch) * batch, dtype=jnp.int32), count - 1).reshape(-1, batch)
    found = lax.map(lambda of: jax.vmap(one)(jax.tree.map(lambda leaf: leaf[of], each)), order)
    return found.reshape(-1, *found.shape[2:])[:count]


def first(one: Callable[[Any], Any], size: int, count: Int[Array, ""], shape: Any) -> Float[Array, "size *k"]:
    """`one` of each of 0, ..., count - 1; -inf for all others."""
    nothing = jnp.full((size, *np.atleast_1d(shape)), -jnp.inf)
    return lax.fori_loop(0, count, lambda i, found: found.at[i].set(one(i)), nothing)
