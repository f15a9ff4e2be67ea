"""Noisy binary search for the threshold (after BNS §3.2).

Its plain twin is `dpjax.verify.plain.binary_search`.
"""

import functools
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float, Int, UInt32

from dpjax import bounds
from dpjax.accounting import REPLACE_ONE, Guarantee, closed_form_epsilon
from dpjax.core import arguments, random, staging
from dpjax.core import bits as packed
from dpjax.core.pytree import frozen, static
from dpjax.data.algorithm import whole
from dpjax.domains import wide
from dpjax.domains.events import Goal, Interval
from dpjax.domains.ordered import Pieces
from dpjax.learners.thresholds import base
from dpjax.learners.thresholds.base import ThresholdLearner
from dpjax.mechanisms import laplace


@frozen
class BinarySearch(ThresholdLearner):
    """Noisy binary search on the threshold itself.

    While the candidates low, ..., high are left, thresholds j <= mid err on every one at x >= mid, those j > mid on every zero at
    x <= mid. The search goes right (low = mid + 1) if D(mid) + Lap(2/epsilon_0) > 0, else left (high = mid), where
    D(mid) = #{ones at x >= mid} - #{zeros at x <= mid}. Replacing an example changes D by at most 2, so each of the at most d + 1
    comparisons is epsilon_0-private: epsilon_0 = epsilon / (d + 1), or `accounting.closed_form_epsilon` if that is more (delta > 0).

    Attributes:
      bits: d.
      epsilon, delta: the total budget.
      limbs: of a threshold (static).
      pure: whether delta is known to be 0, so that epsilon is split evenly (static).
    """

    takes_scaled: ClassVar[bool] = True

    bits: Int[Array, ""]
    epsilon: Float[Array, ""]
    delta: Float[Array, ""]
    limbs: int = static()
    pure: bool = static()

    def comparison_epsilon(self) -> Float[Array, ""]:
        """epsilon_0, what one comparison may spend."""
        steps = jnp.asarray(self.bits, jnp.int32) + 1
        epsilon = jnp.asarray(self.epsilon, float)
        if self.pure:
            return epsilon / steps.astype(float)
        return closed_form_epsilon(epsilon, jnp.asarray(self.delta, float), steps, xp=jnp)

    def _log_turn_at(self, pieces: Pieces, here: Array, after: Array) -> tuple[Array, Array]:
        """ln P[right], ln P[left] at a midpoint: `here` examples lie below it, and `after` at it or below."""
        zeros, ones = pieces.values[0], pieces.values[-1]
        # Piece i begins after i examples, and Q there is (their ones) + zeros - (their zeros): this gives both counts. Integers are used,
        # as a float may not hold the sum, which is up to twice the number of examples.
        ones_before = (here + (pieces.values[here] - zeros).astype(jnp.int32)) // 2
        zeros_up_to = (after - (pieces.values[after] - zeros).astype(jnp.int32)) // 2
        difference = (ones.astype(jnp.int32) - ones_before - zeros_up_to).astype(float)
        left, right = laplace.log_tails(-difference * self.comparison_epsilon() / 2)
        return right, left

    def _walk(self, pieces: Pieces, step: Any, start: Any) -> Any:
        """The state after `step(pieces, low, high, middle, state) -> (go_right, state)` all the way down the search tree.

        At most bits + 1 turns are needed. The loop makes more of them: its length is fixed, so that laws can be differentiated.
        """
        parts = staging.apart(pieces)

        def body(_: Array, carry: Any) -> Any:
            low, high, state = carry
            is_open, middle = wide.less(low, high), wide.midpoint(low, high)
            go_right, changed = step(staging.together(parts), low, high, middle, state)
            low = wide.select(is_open & go_right, self._after(middle), low)
            high = wide.select(is_open & ~go_right, middle, high)
            return low, high, jax.tree.map(lambda new, old: jnp.where(is_open, new, old), changed, state)

        zero = jnp.zeros((self.limbs,), jnp.uint32)
        return lax.fori_loop(0, 32 * self.limbs, body, (zero, pieces.last, start))[2]

    def _after(self, position: UInt32[Array, "limbs"]) -> UInt32[Array, "limbs"]:
        """position + 1."""
        return wide.add(position, wide.one(self.limbs))

    def draw(self, key: Array, pieces: Pieces) -> Any:
        # The random words of all turns are drawn at once: a few at a time, in the loop, would cost as much again.
        keys = jax.vmap(functools.partial(jax.random.fold_in, key))(jnp.arange(32 * self.limbs, dtype=jnp.int32))
        rarity = jax.vmap(random.exponential)(keys)
        low, below, turns = self._until_alone(rarity, pieces)
        return self._rest(rarity, low, turns, *self._log_turn_at(pieces, below, below)), jnp.bool_(True), {}

    def _until_alone(self, rarity: Float[Array, "turns"], pieces: Pieces) -> tuple[Array, Array, Array]:
        """(low, how many examples lie below, turns), once no candidate but the last is an example, or one candidate is left.

        From then on, the numbers of examples before and behind the midpoint stay the same. A search that has made a mistake soon gets
        there, in a gap between examples; one that has made none seldom does before its last turns.
        """
        find, parts = pieces.searcher(), staging.apart(pieces)

        def locate(position: Array) -> Array:
            return find(position, side="right") - 1

        def turn(state: Any) -> Any:
            _, index, low, high, below = state
            middle = wide.midpoint(low, high)
            here, behind = locate(middle), self._after(middle)
            # Few midpoints are examples; where one is, counting the examples at it takes another search.
            nobody = wide.less(behind, staging.together(parts).at(here + 1))
            after = staging.unless(nobody, here, locate, behind)
            right = random.decide(rarity[index], *self._log_turn_at(staging.together(parts), here, after))
            low, high = wide.select(right, behind, low), wide.select(right, high, middle)
            below = jnp.where(right, after, below)
            alone = ~wide.less(low, high) | wide.less(high, staging.together(parts).at(below + 1))
            return ~alone, index + 1, low, high, below

        zero = jnp.zeros((self.limbs,), jnp.uint32)
        start = jnp.bool_(True), jnp.int32(0), zero, pieces.last, jnp.int32(0)
        _, turns, low, _, below = lax.while_loop(lambda state: state[0], turn, start)
        return low, below, turns

    def _rest(
        self, rarity: Float[Array, "turns"], low: Array, turns: Array, log_right: Array, log_left: Array
    ) -> UInt32[Array, "limbs"]:
        """Where the remaining turns end, if each has these odds: a turn to the right is a digit 1 of (the result - 1).

        If no turn went right, one more chooses between 0 and 1.
        """
        bits, one = jnp.asarray(self.bits, jnp.int32), wide.one(self.limbs)
        right = jax.vmap(random.decide, (0, None, None))(rarity, log_right, log_left)
        turn = bits - 1 - jnp.arange(32 * self.limbs, dtype=jnp.int32)  # the turn that decides each place
        digits = packed.pack(right[jnp.maximum(turn, 0)] & (turn >= turns))[::-1]
        never_right = ~jnp.any(low != 0)
        digits = digits | jnp.where(never_right, low, wide.subtract(low, one))
        undecided = never_right & ~jnp.any(digits != 0)  # 0 or 1, if it is not 0 already
        is_above = jnp.where(undecided, (turns <= bits) & right[bits], True)
        return wide.add(digits, jnp.where(is_above, one, jnp.zeros_like(one)))

    def _path(self, pieces: Pieces, target: UInt32[Array, "limbs"], counted: Any) -> tuple[Array, Array]:
        """Along the path to `target`: P[the search gets there], P[it turns off into subtrees with counted(low, high)]."""

        def step(pieces: Pieces, low: Array, high: Array, middle: Array, state: Any) -> Any:
            reach, aside = state
            right, left = self._log_turn_at(pieces, pieces.locate(middle), pieces.locate(self._after(middle)))
            go_right = wide.less(middle, target)
            off = wide.select(go_right, low, self._after(middle)), wide.select(go_right, middle, high)
            turned = reach * jnp.exp(jnp.where(go_right, left, right))
            reach = reach * jnp.exp(jnp.where(go_right, right, left))
            return go_right, (reach, aside + jnp.where(counted(*off), turned, 0.0))

        return self._walk(pieces, step, (jnp.ones(()), jnp.zeros((2,))))

    def _between(self, pieces: Pieces, low: UInt32[Array, "limbs"], high: UInt32[Array, "limbs"]) -> Float[Array, "2"]:
        """(P[low <= result < high], P[not]), each a sum of positive terms.

        The first sums both ends and what leaves the paths to them but stays in between; the second sums what leaves to the left of the low
        end or to the right of the other.
        """
        last = wide.subtract(high, wide.one(self.limbs))

        def inside(a: Array, b: Array) -> Array:
            return wide.less(low, a) & wide.less(b, last)

        at_low, off_low = self._path(pieces, low, lambda a, b: jnp.stack([inside(a, b), wide.less(b, low)]))
        at_last, off_last = self._path(pieces, last, lambda a, b: jnp.stack([inside(a, b), wide.less(last, a)]))
        ends = at_low + jnp.where(wide.equal(low, last), 0.0, at_last)
        law = off_low + off_last + jnp.stack([ends, jnp.zeros_like(ends)])
        return jnp.where(wide.less(low, high), law, jnp.asarray([0.0, 1.0]))

    def _masses(self, pieces: Pieces, within: Interval) -> Float[Array, "pieces"]:
        """P[result in piece i, and in `within`]: by paths for the pieces at the ends of the interval, for the others all at once."""
        last = wide.subtract(within.high, wide.one(self.limbs))
        border = jax.vmap(pieces.locate)(jnp.stack([within.low, last]))
        ends = wide.maximum(pieces.at(border), within.low[None]), wide.minimum(pieces.at(border + 1), within.high[None])
        at_border = jax.vmap(lambda a, b: self._between(pieces, a, b)[0])(*ends)
        index = jnp.arange(pieces.count, dtype=jnp.int32)
        mass = jnp.where((index > border[0]) & (index < border[1]), self._inner_masses(pieces), 0.0)
        for i in range(2):
            mass = jnp.where(index == border[i], at_border[i], mass)
        return jnp.where(wide.less(within.low, within.high), mass, 0.0)

    def _inner_masses(self, pieces: Pieces) -> Float[Array, "pieces"]:
        """P[result in piece i] for the pieces that begin and end right after an example; the entries of the others are meaningless.

        A result j >= 1 is found by the binary digits of z = j - 1: at level s the search is among the z that begin with the same s digits,
        the midpoint has a 1 as its next digit and zeros behind it, and a right turn is a digit 1 of z. (Where z = 0, one more turn, at 0,
        chooses between 0 and 1.) A piece holds the z from an example a up to the next example b. So its mass is that of ending at a, of
        turning right off the path to a, and of turning left off the path to b, below the level at which the two paths part. Examples with
        the same digits so far are next to each other: those below the midpoint end where the next digit changes. So nothing is searched
        for, and every level is one pass over the examples.
        """
        one = wide.one(self.limbs)
        x = wide.subtract(pieces.starts[1:], one[None])
        rows, bits = x.shape[0], jnp.asarray(self.bits, jnp.int32)
        index = jnp.arange(rows, dtype=jnp.int32)
        real = wide.less(pieces.starts[1:], pieces.end[None])
        # The level at which a row parts from the one before, and from the one behind; rows that are not examples part at once.
        differ = wide.bit_length(x[1:] ^ x[:-1])
        parts = jnp.where(real[1:] & real[:-1], bits - differ, -1)
        outside = jnp.full((1,), -1, jnp.int32)
        before, behind = jnp.concatenate([outside, parts]), jnp.concatenate([parts, outside])
        run_ends = lax.cummin(jnp.where(behind < bits, index + 1, rows), reverse=True)  # of rows that are equal
        lowest = wide.bit_length(x & wide.add(~x, one[None])) - 1  # the place of the last digit 1; -1 for 0
        columns = staging.apart(x)

        def level(s: Array, state: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
            reach, right_off, left_off = state
            place = bits - 1 - s
            word = lax.dynamic_index_in_dim(staging.together(columns), self.limbs - 1 - place // 32, 1, keepdims=False)
            digit = (word >> (place % 32).astype(jnp.uint32)) & np.uint32(1) == 1
            first = lax.cummax(jnp.where(before <= s, index, 0))  # of the rows with the same digits, this one included
            stop = lax.cummin(jnp.where(behind <= s, index + 1, rows), reverse=True)
            here = jnp.where(digit, first, stop)  # how many examples lie below the midpoint
            row = jnp.minimum(here, rows - 1)
            is_middle = (here < rows) & (lowest[row] == place) & (digit | (before[row] >= s)) & real[row]
            right, left = self._log_turn_at(pieces, here, jnp.where(is_middle, run_ends[row], here))
            taken, turned = (jnp.exp(log) for log in (jnp.where(digit, right, left), jnp.where(digit, left, right)))
            turned = reach * turned
            right_off += jnp.where(~digit & (s > behind), turned, 0.0)
            left_off += jnp.where(digit & (s > before), turned, 0.0)
            return reach * taken, right_off, left_off

        start = jnp.ones((rows,)), jnp.zeros((rows,)), jnp.zeros((rows,))

        def step(s: Array, state: Any) -> Any:
            return jax.tree.map(lambda new, old: jnp.where(s < bits, new, old), level(s, state), state)

        reach, right_off, left_off = lax.fori_loop(0, 32 * self.limbs, step, start)
        zeros_at_0 = jnp.where(lowest[0] < 0, run_ends[0], 0)
        of_one = jnp.exp(self._log_turn_at(pieces, jnp.int32(0), zeros_at_0)[0])
        reach = jnp.where(lowest < 0, reach * of_one, reach)
        inner = jnp.where(differ > 0, reach[:-1] + right_off[:-1] + left_off[1:], 0.0)
        return jnp.concatenate([jnp.zeros((1,)), inner, jnp.zeros((1,))])

    def law(self, pieces: Pieces, event: Goal) -> Float[Array, "2"]:
        pieces = pieces.written_out()
        split = self._between(pieces, event.within.low, event.within.high)
        if event.marked is None:  # two paths instead of one for every piece
            return split
        mass = self._masses(pieces, event.within)
        good = jnp.sum(jnp.where(event.marked, mass, 0.0))
        return jnp.stack([good, jnp.sum(jnp.where(event.marked, 0.0, mass)) + split[1]])

    def guarantee(self) -> Guarantee:
        """(epsilon, delta) under REPLACE_ONE, by composition of d + 1 adaptive epsilon_0-private comparisons."""
        return Guarantee(float(self.epsilon), 0.0 if self.pure else float(self.delta), REPLACE_ONE)

    def sample_size(self, *, alpha: float, beta: float) -> int:
        """A union bound over the comparisons, and Theorem 2.14; see `bounds`."""
        return whole(bounds.binary_search_thresholds(int(self.bits), alpha, beta, float(self.comparison_epsilon())))


def binary_search(*, bits: int, epsilon: Any, delta: Any = 0.0) -> BinarySearch:
    """Noisy binary search, (epsilon, delta)-private; see `BinarySearch`.

    Args:
      bits: d, 1 to 4096.
      epsilon: total, > 0, finite, and at least 2^-120 (d + 1).
      delta: total, in [0, 1); at 0 epsilon is split evenly, above 0 each comparison may spend about epsilon / sqrt(d).

    Raises:
      TypeError, ValueError: an argument out of range.
    """
    fields, epsilon = base.domain(bits), arguments.epsilon(epsilon)
    if not arguments.is_traced(epsilon):
        least = arguments.least() * (int(bits) + 1)  # of d + 1 shares
        arguments.number("epsilon", float(epsilon), at_least=least)
    delta = arguments.delta(delta, positive=False)
    pure = not arguments.is_traced(delta) and float(delta) == 0.0
    return BinarySearch(**fields, epsilon=epsilon, delta=delta, pure=pure)
