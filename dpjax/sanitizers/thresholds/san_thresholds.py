"""SanThresholds (BNS Figure 11): intervals that each hold a few of the points are found one by one, and their counts released.

A call on a range [k, l] of X_d:

1, 2. It costs one of `calls`, and counts the points of the range with noise, #^[k, l] = # + Lap(1/e).
3.    If that is below alpha n/8, it adds #^[k, l] copies of l to the database and ends.
4-8.  I(j) = the most points that 2^j successive elements of the range hold. RecConcave, on {0, ..., log T}, maximises
      Q(j) = min{I(j) - alpha n/32, 3 alpha n/32 - I(j - 1)}, which is quasi-concave as I does not fall, with promise alpha n/32.
9, 10. Given its answer z, the Choosing Mechanism at alpha/64 chooses one of the points (z = 0), or one of the intervals of length 2 2^z of
      two partitions, one of them shifted by 2^z, by the number of points held: [a, b].
11.   It adds #^[a, b] = #[a, b] + Lap(1/e) copies of b to the database,
12, 13. and calls itself on [k, a - 1] and on [b + 1, l].

What the figure leaves open is settled as follows: waiting calls form a stack of fixed capacity; bottom from RecConcave (also a z beyond log
T) or from the Choosing Mechanism is treated as step 3, [a, b] = [k, l]; copies are integers >= 0: noisy counts are rounded, and clamped at
0. The levels of RecConcave are those of the whole domain, for small ranges as well.

**Privacy** (REPLACE_ONE). Each of these mechanisms is (e, d)-private; the counts are (e, 0), and so is RecConcave on at most 33 exponents
(d <= 32), which is one exponential mechanism. The Choosing Mechanism is (e, d)-private from an n on (`bounds.san_thresholds_private`).

`printed` (Lemma 4.8): 4c mechanisms, c = floor(77/alpha) (see `bounds.san_thresholds_calls` for the rounding), are (e', 5 c d)-private with
e' = sqrt(8 c ln(1/(c d))) e + 8 c e^2. No more than 2c of them have a d, and the slack is c d: 3 c d in all. d = delta/(5c), as printed.
Step 8 is (e, d)-private with printed A_dists, too: no more than two levels run, and if they do, log*(d) = 4 (`recursion` has the numbers).

`proved`: `calls` counts the calls that pass step 3, y = floor(128/(5 alpha)) of them; a call that finds none of them left ends as in step
3, since its count has been released anyway. Fix two neighbours, x replaced by x'. A call on a range that holds neither has the same law in
both: all that it uses lies in the range. Of the other calls at most y pass step 3, and each uses three mechanisms before step 11 (a count,
RecConcave, the Choosing Mechanism). The point x lies in one last interval only: in that of a step 11, whose count is not used before it is
released, or in the range of a call that ended at step 3; so does x'. So at most 3y + 2 mechanisms differ, whatever they are: y + 2 counts,
y RecConcaves and y Choosing Mechanisms. Each is a post-processing of one randomised response (Kairouz, Oh, Viswanath), so their adaptive
composition is one of that many responses, however the run goes: `accounting.optimal`, with half of delta for it and half for the d's.

At alpha = beta = 0.1, d = 16 and (1, 1e-6): `printed` 3080 mechanisms at e = 3.1e-3, and n = 1.4e13; `proved` 770 at e = 8.3e-3, and
n = 2.6e7.

The plain twin is `dpjax.verify.plain.san_thresholds`.
"""

import functools
import math
from fractions import Fraction
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Bool, Float, Int, UInt32

from dpjax import bounds
from dpjax.accounting import REPLACE_ONE, Guarantee, advanced, calibrate, optimal
from dpjax.accounting.rounding import at_least, at_most
from dpjax.core import arguments, logspace, random
from dpjax.core.pytree import frozen, static
from dpjax.data.points import Points
from dpjax.data.weighted import LARGEST, Weighted
from dpjax.domains import wide
from dpjax.mechanisms import choosing, laplace
from dpjax.optimizers.quasi_concave import recursion, units
from dpjax.sanitizers import base
from dpjax.sanitizers.base import OfCounts

INNER_ALPHA = 0.25  # step 8
MOST_CALLS = 2**22  # so many that their mechanisms can still be composed
MOST_BITS = 1024  # a table holds d + 1 exponents for each distinct point


@frozen
class View:
    """What calls use of the data.

    Attributes:
      x: the distinct points, with room for twice the domain; rows that do not count hold the greatest number.
      before: how many of all points lie before each distinct one, and how many there are in all.
      reach: for each exponent j and distinct point x, how many distinct points are below x + 2^j.
    """

    x: UInt32[Array, "rows more"]
    before: Int[Array, "sums"]
    reach: Int[Array, "exponents rows"]


@frozen
class Range:
    """[low, stop), and the distinct points first, ..., last - 1 that lie in it."""

    low: UInt32[Array, "more"]
    stop: UInt32[Array, "more"]
    first: Int[Array, ""]
    last: Int[Array, ""]


@frozen
class State:
    """The state between two calls.

    Attributes:
      lows, stops: the ranges that wait, the next one on top.
      waiting: how many there are.
      made, passed, failed: calls made so far, those that passed step 3, and those of them that met bottom.
      ends, copies: what each call added to the database, b + 1 and how often b.
    """

    lows: UInt32[Array, "stack more"]
    stops: UInt32[Array, "stack more"]
    waiting: Int[Array, ""]
    made: Int[Array, ""]
    passed: Int[Array, ""]
    failed: Int[Array, ""]
    ends: UInt32[Array, "calls more"]
    copies: Float[Array, "calls"]


@frozen
class SanThresholds(OfCounts):
    """SanThresholds; see the module, and build it by `san_thresholds`. The output is a `Weighted` database.

    Attributes:
      step_epsilon, step_delta: e and d, the cost of one mechanism.
      alpha: the error.
      calls: the budget: of all calls (printed), or of those that pass step 3 (proved).
      levels: the levels of RecConcave.
    """

    bits: Int[Array, ""]
    n: Float[Array, ""]
    step_epsilon: Float[Any, ""]
    step_delta: Float[Any, ""]
    alpha: Float[Any, ""]
    limbs: int = static()
    exponents: int = static()
    calls: int = static()
    levels: int = static()
    calibration: str = static()

    @property
    def _most_calls(self) -> int:
        """A bound on the number of calls: every call but the first was made by one that passed step 3."""
        return self.calls if self.calibration == "printed" else 2 * self.calls + 1

    def recursion_budget(self) -> recursion.Budget:
        """The budget of each mechanism inside RecConcave: step 8 as printed, or a share of e and d."""
        epsilon, delta = jnp.asarray(self.step_epsilon, float), jnp.asarray(self.step_delta, float)
        if self.calibration == "printed":
            parts = 3 * max(1, bounds.log_star(self.exponents - 1))
            return recursion.Budget(epsilon=epsilon / parts, delta=delta / parts, calibration="printed")
        tests = max(2 * (self.levels - 1), 1)
        return recursion.Budget(epsilon=epsilon / (3 * self.levels - 2), delta=delta / tests, calibration="proved")

    # One run ------------------------------------------------------------------------------------------------------

    def prepare(self, points: Points | Weighted) -> View:
        data = Weighted.of(points)
        x = jnp.where(data.valid[:, None], wide.resize(data.x, self._more), LARGEST)
        sums = jnp.cumsum(data.weights, dtype=data.weights.dtype)

        def below(exponent: Array) -> Array:
            limits = wide.add(x, wide.power_of_two(exponent, self._more)[None])
            return jax.vmap(lambda limit: wide.search(x, limit))(limits)

        reach = lax.map(below, jnp.arange(self.exponents, dtype=jnp.int32))
        return View(x=x, before=jnp.concatenate([jnp.zeros_like(sums[:1]), sums]), reach=reach)

    @property
    def _more(self) -> int:
        """Limbs for sums of a point and two lengths."""
        return wide.limbs_for(self.exponents + 2)

    def draw(self, key: Array, view: View) -> tuple[Weighted, Bool[Array, ""], Any]:
        def unfinished(state: State) -> Array:
            return (state.waiting > 0) & (state.made < self._most_calls)

        key = random.for_loops(key)
        state = lax.while_loop(unfinished, lambda state: self._call(key, view, state), self._start())
        used = jnp.arange(self._most_calls, dtype=jnp.int32) < state.made
        one = wide.one(self._more)
        b = wide.resize(wide.subtract(state.ends, one[None]), self.limbs)
        b, copies, kept = wide.sort(jnp.where(used[:, None], b, LARGEST), state.copies, used.astype(jnp.int32))
        database = Weighted.kept(b, copies, kept == 1)
        info = {"calls": state.made, "passed": state.passed, "failed": state.failed, "left": state.waiting}
        return database, jnp.bool_(True), info

    def _start(self) -> State:
        """The first call, on all of X_d, waits."""
        rows, more = self.calls + 1, self._more
        stop = wide.power_of_two(jnp.asarray(self.bits, jnp.int32), more)
        zero = jnp.int32(0)
        return State(
            lows=jnp.zeros((rows, more), jnp.uint32),
            stops=jnp.zeros((rows, more), jnp.uint32).at[0].set(stop),
            waiting=jnp.int32(1),
            made=zero,
            passed=zero,
            failed=zero,
            ends=jnp.zeros((self._most_calls, more), jnp.uint32),
            copies=jnp.zeros((self._most_calls,), float),
        )

    def _call(self, key: Array, view: View, state: State) -> State:
        """One call, on the range on top of the stack."""
        key_noise, key_length, key_interval = jax.random.split(jax.random.fold_in(key, state.made), 3)
        top = state.waiting - 1
        low, stop = state.lows[top], state.stops[top]
        here = Range(low=low, stop=stop, first=wide.search(view.x, low), last=wide.search(view.x, stop))
        noise = laplace.laplace(key_noise, jnp.zeros(2), epsilon=self.step_epsilon)  # of steps 2 and 11
        counted = (view.before[here.last] - view.before[here.first]).astype(float) + noise[0]
        passed = (counted >= self._share(1 / 8)) & (state.passed < self.calls)
        z, found = self.chosen_length(key_length, view, here)
        a, end, held, chosen = self.chosen_interval(key_interval, view, here, z)
        whole = passed & found & chosen
        a, end = wide.select(whole, a, low), wide.select(whole, end, stop)
        number = jnp.where(whole, held.astype(float) + noise[1], counted)
        # [k, a - 1] comes next, then [b + 1, l]; rows past the stack's end are dropped.
        left, right = whole & wide.less(low, a), whole & wide.less(end, stop)
        nowhere = state.lows.shape[0]
        places = jnp.where(right, top, nowhere), jnp.where(left, top + right.astype(jnp.int32), nowhere)
        lows, stops = state.lows, state.stops
        for place, first, last in zip(places, (end, low), (stop, a), strict=True):
            lows, stops = lows.at[place].set(first, mode="drop"), stops.at[place].set(last, mode="drop")
        return State(
            lows=lows,
            stops=stops,
            waiting=top + right.astype(jnp.int32) + left.astype(jnp.int32),
            made=state.made + 1,
            passed=state.passed + passed.astype(jnp.int32),
            failed=state.failed + (passed & ~whole).astype(jnp.int32),
            ends=state.ends.at[state.made].set(end),
            copies=state.copies.at[state.made].set(jnp.maximum(jnp.round(number), 0.0)),
        )

    # The mechanisms -------------------------------------------------------------------------------------------------

    def log_lengths(self, view: View, here: Range) -> Float[Array, "outcomes"]:
        """Steps 4 to 8: the log law of RecConcave's answer z, bottom (and what is beyond log T) last."""
        length = wide.subtract(here.stop, here.low)
        longest = wide.bit_length(wide.subtract(length, wide.one(self._more)))  # log T
        rows = jnp.arange(view.x.shape[0], dtype=jnp.int32)
        inside = (rows >= here.first) & (rows < here.last)
        held = view.before[jnp.minimum(view.reach, here.last)] - view.before[:-1][None]
        most = jnp.max(jnp.where(inside[None], held, 0), axis=1).astype(float)
        shorter = jnp.concatenate([jnp.zeros(1), most[:-1]])
        promise, span = self._share(1 / 32), 2.0 * jnp.asarray(self.n, float)
        quality = jnp.minimum(most - units.up(promise, span), units.down(3 * promise, span) - shorter)
        law = recursion.dense_log_law(
            quality, jnp.maximum(longest, 1), promise, INNER_ALPHA, self.recursion_budget(), self.levels, span
        )
        lengths = jnp.arange(law.shape[0], dtype=jnp.int32)
        sure = jnp.where(lengths == 0, 0.0, -jnp.inf)  # a range of one element
        law, beyond = jnp.where(longest == 0, sure, law), lengths > longest
        bottom = logspace.logsumexp(jnp.where(beyond, law, -jnp.inf))
        return jnp.append(jnp.where(beyond, -jnp.inf, law)[:-1], bottom)

    def chosen_length(self, key: Array, view: View, here: Range) -> tuple[Int[Array, ""], Bool[Array, ""]]:
        """(z, whether there is one)."""
        law = self.log_lengths(view, here)
        z = logspace.draw(key, logspace.sum_tree(law))
        found = z < law.shape[0] - 1
        return jnp.where(found, z, 0), found

    def blocks(self, view: View, here: Range, z: Int[Array, ""]) -> tuple[Int[Array, "two"], Bool[Array, "two"]]:
        """Steps 9, 10a: (points in the interval that begins with a row, which rows begin one), for A and B in turn.

        They alternate so that rows that do not count, which come last, do not move the coins of the others.
        """
        found = [self._blocks(view, here, *family) for family in self._families(here, z)]
        counts, begins = zip(*found, strict=True)
        return jnp.stack(counts, axis=1).reshape(-1), jnp.stack(begins, axis=1).reshape(-1)

    def chosen_interval(
        self, key: Array, view: View, here: Range, z: Int[Array, ""]
    ) -> tuple[UInt32[Array, "more"], UInt32[Array, "more"], Int[Array, ""], Bool[Array, ""]]:
        """The interval of step 9 or 10b: (a, b + 1, the number of points in it, whether there is one)."""
        counts, begins = self.blocks(view, here, z)
        alpha = jnp.asarray(self.alpha, float) / 64
        chosen = choosing.choosing(key, counts, n=self.n, epsilon=self.step_epsilon, alpha=alpha, where=begins)
        (start, shift, _), (shifted_start, _, _) = self._families(here, z)
        start = wide.select(chosen.index % 2 == 1, shifted_start, start)
        offset = wide.subtract(view.x[chosen.index // 2], start)
        low = wide.add(start, wide.shift_left(wide.shift_right(offset, shift), shift))
        stop = wide.minimum(wide.add(low, wide.power_of_two(shift, self._more)), here.stop)
        return low, stop, counts[chosen.index], chosen.ok

    def _families(self, here: Range, z: Int[Array, ""]) -> tuple[tuple[Array, Array, Array], ...]:
        """(where the first interval begins, log of the length, whether there are any), for A and for B."""
        point = z == 0
        shift = jnp.where(point, 0, z + 1)
        second = wide.add(here.low, wide.power_of_two(z, self._more))
        return (here.low, shift, jnp.bool_(True)), (second, shift, ~point & wide.less(second, here.stop))

    def _blocks(
        self, view: View, here: Range, start: Array, shift: Array, exist: Array
    ) -> tuple[Int[Array, "rows"], Bool[Array, "rows"]]:
        """Points in every interval of one partition that holds any, in the row of its first one."""
        rows = view.x.shape[0]
        row = jnp.arange(rows, dtype=jnp.int32)
        first = jnp.maximum(here.first, wide.search(view.x, start))
        inside = (row >= first) & (row < here.last) & exist
        number = wide.shift_right(wide.subtract(view.x, start[None]), jnp.broadcast_to(shift, row.shape))
        begins = inside & ((row == first) | ~wide.equal(number, jnp.roll(number, 1, axis=0)))
        following = lax.cummin(jnp.where(begins, row, here.last), reverse=True)
        following = jnp.append(following[1:], here.last)
        counts = view.before[jnp.minimum(following, here.last)] - view.before[:-1]
        return jnp.where(begins, counts, 0), begins

    def _share(self, part: float) -> Float[Array, ""]:
        """The share `part` of alpha n."""
        return jnp.asarray(self.alpha, float) * jnp.asarray(self.n, float) * part

    # What is promised ------------------------------------------------------------------------------------------------

    def sound(self) -> Bool[Array, ""]:
        epsilon, delta, alpha, n = (
            jnp.asarray(value, float) for value in (self.step_epsilon, self.step_delta, self.alpha, self.n)
        )
        good = (epsilon > 0) & (epsilon < jnp.inf) & (delta > 0) & (delta <= 0.5) & (alpha > 0) & (alpha < 1)
        bits = jnp.asarray(self.bits, jnp.int32)
        return good & (n >= 1) & (bits >= 1) & (bits < self.exponents)

    def mechanisms(self) -> tuple[int, int]:
        """(how many mechanisms may differ between neighbours, how many of them have a d)."""
        if self.calibration == "printed":
            return 4 * self.calls, 2 * self.calls
        return _mechanisms(self.calls, self.levels)

    def guarantee(self) -> Guarantee:
        """The composition of all steps, see the module; none if n is too small for the Choosing Mechanism."""
        epsilon, delta, alpha = (float(value) for value in (self.step_epsilon, self.step_delta, self.alpha))
        if self.n < bounds.san_thresholds_private(alpha, epsilon, delta):
            return Guarantee.none(REPLACE_ONE)
        count, spending = self.mechanisms()
        pure = Guarantee(epsilon, 0.0, REPLACE_ONE)
        if self.calibration == "printed":
            slack = self.calls * Fraction(delta)
            return Guarantee(advanced(pure, count, at_most(slack)).epsilon, at_least(3 * slack), REPLACE_ONE)
        slack = spending * Fraction(delta)
        return Guarantee(optimal({pure: count}, delta=at_most(slack)).epsilon, at_least(2 * slack), REPLACE_ONE)

    def sample_size(self, *, alpha: float, beta: float) -> int:
        """Theorem 4.13 with its constants, at this sanitizer's own steps: `bounds.san_thresholds`.

        Raises:
          ValueError: an alpha below this sanitizer's own.
        """
        own, alpha = float(self.alpha), arguments.known_fraction("alpha", alpha)
        if alpha < own:
            raise ValueError(f"alpha must be >= {own}, which this sanitizer was built for, got {alpha}")
        beta = arguments.known_fraction("beta", beta)
        steps = float(self.step_epsilon), float(self.step_delta)
        return bounds.san_thresholds(int(self.bits), own, beta, *steps, calibration=self.calibration)


def _mechanisms(calls: int, levels: int) -> tuple[int, int]:
    """(3y + 2, those with a d): RecConcave of one level has none."""
    return 3 * calls + 2, calls if levels == 1 else 2 * calls


@functools.lru_cache(maxsize=64)
def _steps(epsilon: float, delta: float, calls: int, levels: int, calibration: str) -> tuple[float, float]:
    """(e, d) of one mechanism for the total budget."""
    if calibration == "proved":
        count, spending = _mechanisms(calls, levels)
        each = calibrate(Guarantee(epsilon, delta / 2, REPLACE_ONE), count, delta_share=0.0)
        return each.epsilon, at_most(Fraction(delta) / (2 * spending))
    step_delta = at_most(Fraction(delta) / (5 * calls))
    linear = math.sqrt(-8.0 * calls * math.log(calls * step_delta))
    # The root of linear e + 8 c e^2 = epsilon, a hair below.
    root = 2.0 * epsilon / (linear + math.sqrt(linear**2 + 32.0 * calls * epsilon))
    return min(1.0, root) * (1 - 2.0**-40), step_delta


def san_thresholds(
    *,
    bits: int,
    n: Any,
    epsilon: float,
    delta: float,
    alpha: float,
    calibration: str = "proved",
    allow_unproved: bool = False,
) -> SanThresholds:
    """SanThresholds (BNS Figure 11), a database whose thresholds are within alpha of those of the data; see the module.

    Formal guarantees: (epsilon, delta) under REPLACE_ONE. Not promised: protection from floating-point side channels; a cryptographic
    generator.

    Args:
      bits: d, at most 1024 (the program handles 2^j for all j <= d).
      n: number of points, public; beyond 2^24 under `jax.enable_x64(True)` only.
      epsilon, delta: total, > 0 and in (0, 1); known numbers, from which the host computes the budget of each step.
      alpha: error, in (0, 1), a known number (it bounds the number of calls); met with probability 1 - beta for n >= `sample_size`.
      calibration: "proved", or "printed" for the paper's constants.
      allow_unproved: simulate below the n that privacy needs; `guarantee()` is then none.

    Raises:
      TypeError, ValueError: an argument out of range, or one whose share for a step is less than floats can hold; or
        n < `bounds.san_thresholds_private` at the steps' budget.

    >>> from dpjax.domains import wide
    >>> data = Weighted.create(wide.from_ints(range(0, 65536, 256), 16), [2**14] * 256)
    >>> sanitizer = san_thresholds(bits=16, n=2**22, epsilon=1.0, delta=1e-6, alpha=0.5)
    >>> released = sanitizer(jax.random.key(0), data).hypothesis
    >>> float(released.threshold_error(data)) < 0.25, int(released.n_valid) < 100
    (True, True)
    >>> sanitizer.guarantee().covers(1.0, 1.000001e-6), f"{sanitizer.sample_size(alpha=0.5, beta=0.1):.1e}"
    (True, '1.1e+06')
    """
    fields = base.domain(bits, n, at_most=MOST_BITS)
    bits = int(fields["bits"])
    arguments.calibration(calibration)
    epsilon = arguments.known("epsilon", epsilon, above=0.0, below=math.inf)
    delta = arguments.known_fraction("delta", delta)
    alpha = arguments.known_fraction("alpha", alpha)
    calls = bounds.san_thresholds_calls(alpha, calibration=calibration)
    if calls > MOST_CALLS:
        raise ValueError(f"alpha must be so large that at most {MOST_CALLS} calls are made, got {alpha}")
    levels = bounds.levels_run(bits, bits)
    step_epsilon, step_delta = _steps(epsilon, delta, calls, levels, calibration)
    arguments.epsilon(step_epsilon, "epsilon of a step")
    arguments.delta(step_delta, "delta of a step")
    given = {"epsilon": step_epsilon, "delta": step_delta, "alpha": alpha}
    what = "BNS Lemma 4.4 in every step"
    base.refuse_small(fields["n"], bounds.san_thresholds_private, what, allow_unproved, **given)
    return SanThresholds(
        **fields,
        step_epsilon=np.float64(step_epsilon),
        step_delta=np.float64(step_delta),
        alpha=np.float64(alpha),
        exponents=bits + 1,
        calls=calls,
        levels=levels,
        calibration=calibration,
    )
