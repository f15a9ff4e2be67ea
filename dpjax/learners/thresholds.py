"""Learners of thresholds c_j(x) = 1 iff x < j over X_d = {0, ..., 2^d - 1}, proper: the hypothesis is a j in 0, ..., 2^d.

| factory | algorithm | privacy (REPLACE_ONE) | examples |
|---|---|---|---|
| `erm` | uniform among the thresholds of least empirical error | none | VC theory |
| `exponential` | exponential mechanism over all thresholds (Kasiviswanathan et al.) | (epsilon, 0) | d / (alpha epsilon) |
| `binary_search` | noisy binary search for the threshold (BNS §3.2) | (epsilon, delta), delta >= 0 | d (delta = 0), d^1/2 |
| `rec_concave` | LearnThresholds (BNS §3.4) | (epsilon, delta) | 8^N (log ... log d) / (alpha epsilon) |

Neighbours: one example (x, y) is replaced by any other, labels arbitrary; the number of examples is public. Every learner has a
sampler (call it), a guarantee, the theorem's sample size and, given a sample, the exact law of its hypothesis.

    >>> import jax
    >>> from dpjax import Sample
    >>> from dpjax.domains import wide
    >>> from dpjax.learners import thresholds
    >>> sample = Sample(x=wide.from_ints([10, 20, 2**20, 2**21] * 100, 24), y=[1, 1, 0, 0] * 100)
    >>> learner = thresholds.exponential(bits=24, epsilon=1.0)
    >>> outcome = learner(jax.random.key(0), sample)
    >>> 20 < wide.to_ints(outcome.hypothesis)[0] <= 2**20
    True
    >>> round(float(learner.success_probability(sample, error=0.1)), 3)
    1.0
"""

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, UInt32

from dpjax import bounds
from dpjax.accounting import REPLACE_ONE, Guarantee, closed_form_epsilon
from dpjax.concepts import thresholds as concept
from dpjax.core import arguments, random, staging
from dpjax.core.pytree import frozen, static
from dpjax.data.fitting import fitted
from dpjax.data.multi_sample import MultiSample
from dpjax.data.outcome import Outcome, Status
from dpjax.data.sample import Sample
from dpjax.domains import wide
from dpjax.domains.ordered import Pieces
from dpjax.mechanisms import exponential_piecewise as piecewise
from dpjax.mechanisms import laplace
from dpjax.mechanisms.exponential_piecewise import Goal, Interval
from dpjax.optimizers import rec_concave as optimizer

CALIBRATIONS = ("printed", "proved")


class ThresholdLearner:
    """What the four learners share: checked, padded and compiled entry points around `_draw` and `_law`.

    One compiled program serves every sample size up to its bucket, every epsilon and delta, and every d with the same number of
    limbs: those are all data.
    """

    bits: Any
    limbs: int

    # What a learner defines -----------------------------------------------------------------------------------

    def _draw(self, key: Array, pieces: Pieces) -> tuple[UInt32[Array, "limbs"], Bool[Array, ""], Any]:
        """One run: (threshold, whether one was released, info)."""
        raise NotImplementedError

    def _law(self, pieces: Pieces, goal: Goal) -> Float[Array, "2"]:
        """(P[threshold meets the goal], P[it does not, or bottom]) over the learner's coins."""
        raise NotImplementedError

    def _law_between(self, pieces: Pieces, low: Array, high: Array) -> Float[Array, "2"]:
        """(P[low <= threshold < high], P[not, or bottom])."""
        within = Interval(low=low, high=wide.minimum(high, pieces.end))
        return self._law(pieces, Goal(marked=jnp.ones((pieces.count,), bool), within=within))

    def guarantee(self) -> Guarantee:
        """The privacy that holds for the constants in use."""
        raise NotImplementedError

    # What everyone calls --------------------------------------------------------------------------------------

    def __call__(self, key: Array, sample: Sample) -> Outcome:
        """One run on a sample.

        Args:
          key: PRNG key.
          sample: labelled examples, x of shape (rows, limbs of `bits` bits).

        Returns:
          An `Outcome`: `hypothesis` is the threshold, uint32 (limbs of bits + 1 bits,); `status` a `Status` code; `info` what was
          chosen on the way (not private).

        Raises:
          TypeError, ValueError: a sample that does not fit the domain (as far as it is not traced).
        """
        return _run(self, key, self.fit(sample))

    def predict(self, hypothesis: UInt32[Array, "limbs"], x: UInt32[Array, "rows more"]) -> Bool[Array, "rows"]:
        """The labels that the threshold gives to points."""
        return concept.label(hypothesis, x).astype(bool)

    def success_probability(self, sample: Sample, *, error: Any) -> Float[Array, ""]:
        """P[empirical error <= error] over the learner's coins, exactly; bottom is a failure.

        Differentiable in epsilon (and delta), vmappable over samples. float32 keeps it to 1e-3 at least, x64 to 1e-9; for small
        failure probabilities use `failure_probability`, which cancels nothing.

        Args:
          sample: any labelled sample, realizable or not.
          error: largest empirical error that counts as success, in [0, 1].
        """
        return self._empirical(sample, error)[0]

    def failure_probability(self, sample: Sample, *, error: Any) -> Float[Array, ""]:
        """P[empirical error > error, or bottom], as a sum of positive terms: 1e-12 comes out right in float32 too."""
        return self._empirical(sample, error)[1]

    def law_within(
        self, sample: Sample, low: UInt32[Array, "limbs"], high: UInt32[Array, "limbs"]
    ) -> Float[Array, "2"]:
        """(P[low <= threshold < high], P[not, or bottom]), exactly.

        With (low, high) = distribution.within(alpha) that is the law of "population error <= alpha" given the sample.
        """
        return _law_within(self, self.fit(sample), low, high)

    def pmf(self, sample: Sample) -> Float[Array, "outcomes"]:
        """P[j] for j = 0, ..., 2^bits, then P[bottom]: for the exact verifier on small domains (bits <= 12)."""
        arguments.integer("bits", int(self.bits), at_least=1, at_most=12)
        return _pmf(self, self.fit(sample), (1 << int(self.bits)) + 1)

    # How ------------------------------------------------------------------------------------------------------

    def _empirical(self, sample: Sample, error: Any) -> Float[Array, "2"]:
        error = arguments.real("error", error, at_least=0.0, at_most=1.0)
        return _empirical_law(self, self.fit(sample), jnp.asarray(error, float))

    def fit(self, sample: Sample) -> Sample:
        """The sample, checked and padded to its bucket."""
        known = not arguments.is_traced(self.bits)
        limbs = (wide.limbs_for(int(self.bits)), self.limbs) if known else ()
        return fitted(sample, Sample, bits=self.bits, limbs=limbs)


@jax.jit
def _run(learner: ThresholdLearner, key: Array, sample: Sample) -> Outcome:
    pieces = concept.quality(sample, learner.bits, learner.limbs)
    hypothesis, released, info = learner._draw(key, pieces)
    fits = concept.in_domain(sample, learner.bits, learner.limbs)
    status = jnp.where(released, Status.OK, Status.BOTTOM)
    return Outcome.of(hypothesis, jnp.where(fits, status, Status.OUTSIDE_DOMAIN), info)


@jax.jit
def _empirical_law(learner: ThresholdLearner, sample: Sample, error: Array) -> Array:
    pieces = concept.quality(sample, learner.bits, learner.limbs)
    n = sample.n_valid.astype(float)
    # The literal definition, wrong / n <= error: correctly rounded division makes 29 of 100 meet 0.29.
    marked = (n - pieces.values) / n <= error
    return learner._law(pieces, Goal(marked=marked, within=piecewise.everything(pieces)))


@jax.jit
def _law_within(learner: ThresholdLearner, sample: Sample, low: Array, high: Array) -> Array:
    pieces = concept.quality(sample, learner.bits, learner.limbs)
    return learner._law_between(pieces, low, high)


@jax.jit(static_argnums=2)
def _pmf(learner: ThresholdLearner, sample: Sample, outcomes: int) -> Array:
    pieces = concept.quality(sample, learner.bits, learner.limbs)

    def mass(j: Array) -> Array:
        low, high = (wide.from_uint32(point, learner.limbs) for point in (j, j + 1))
        return learner._law_between(pieces, low, high)[0]

    masses = jax.vmap(mass)(jnp.arange(outcomes, dtype=jnp.uint32))
    bottom = learner._law_between(pieces, jnp.zeros_like(pieces.end), pieces.end)[1]
    return jnp.concatenate([masses, bottom[None]])


# ------------------------------------------------------------------------------------- ERM, exponential mechanism


@frozen
class Erm(ThresholdLearner):
    """Non-private baseline: uniform among the thresholds of least empirical error (the exponential mechanism at epsilon = inf)."""

    bits: Int[Array, ""]
    limbs: int = static()

    def _log_density(self, pieces: Pieces) -> Array:
        best = jnp.max(jnp.where(pieces.nonempty(), pieces.values, -jnp.inf))
        return jnp.where(pieces.values == best, 0.0, -jnp.inf)

    def _draw(self, key: Array, pieces: Pieces) -> Any:
        return _released(piecewise.draw_everywhere(key, pieces, self._log_density(pieces)))

    def _law(self, pieces: Pieces, goal: Goal) -> Array:
        return piecewise.law_everywhere(pieces, self._log_density(pieces), goal)

    def guarantee(self) -> Guarantee:
        """None to speak of: epsilon is infinite."""
        return Guarantee(math.inf, 1.0, REPLACE_ONE)

    def sample_size(self, *, alpha: float, beta: float) -> float:
        """BNS Theorem 2.13, VC dimension 1."""
        return bounds.realizable(1, alpha, beta)


@frozen
class Exponential(ThresholdLearner):
    """Exponential mechanism over all 2^d + 1 thresholds with the number of correctly labelled examples (sensitivity 1)."""

    bits: Int[Array, ""]
    epsilon: Float[Array, ""]
    limbs: int = static()

    def _mechanism(self) -> piecewise.ExponentialPiecewise:
        return piecewise.ExponentialPiecewise(epsilon=self.epsilon)

    def _draw(self, key: Array, pieces: Pieces) -> Any:
        return _released(self._mechanism()(key, pieces))

    def together(self, keys: Array, sample: MultiSample) -> Outcome:
        """One run for each of the k labels of a realizable sample, with a key each; outcomes are stacked.

        The examples' order, the pieces and their sizes are those of all labels, and found once.
        """
        column = self.fit(sample.column(0))
        pieces = concept.quality(column, self.bits, self.limbs)
        points = jax.vmap(lambda key, top: self._mechanism().draw_peak(key, pieces, top))(keys, concept.ones(sample))
        status = jnp.where(concept.in_domain(column, self.bits, self.limbs), Status.OK, Status.OUTSIDE_DOMAIN)
        return jax.vmap(lambda point: Outcome.of(point.position, status, point))(points)

    def _law(self, pieces: Pieces, goal: Goal) -> Array:
        return self._mechanism().law(pieces, goal)

    def guarantee(self) -> Guarantee:
        """(epsilon, 0) under REPLACE_ONE: BNS Proposition 2.26 (i)."""
        return self._mechanism().guarantee()

    def sample_size(self, *, alpha: float, beta: float) -> float:
        """Proposition 2.26 (ii) for alpha/2, beta/2 and Theorem 2.14 for the rest."""
        return bounds.exponential_thresholds(int(self.bits), alpha, beta, float(self.epsilon))


def _released(point: piecewise.Point) -> Any:
    """A draw that always releases, as `_draw` returns it."""
    return point.position, jnp.bool_(True), point


# ------------------------------------------------------------------------------------------- noisy binary search


@frozen
class BinarySearch(ThresholdLearner):
    """Noisy binary search on the threshold itself.

    With candidates low, ..., high left, thresholds j <= mid err on every one at x >= mid, those j > mid on every zero at x <= mid.
    The search goes right (low = mid + 1) if D(mid) + Lap(2/epsilon_0) > 0, else left (high = mid), where
    D(mid) = #{ones at x >= mid} - #{zeros at x <= mid}. Replacing an example changes D by at most 2, so each of the at most d + 1
    comparisons is epsilon_0-private: epsilon_0 = epsilon / (d + 1), or `accounting.closed_form_epsilon` if that is more (delta > 0).
    """

    bits: Int[Array, ""]
    epsilon: Float[Array, ""]
    delta: Float[Array, ""]
    limbs: int = static()
    pure: bool = static()

    def comparison_epsilon(self) -> Float[Array, ""]:
        """epsilon_0, what one comparison may spend."""
        steps = jnp.asarray(self.bits, float) + 1
        epsilon = jnp.asarray(self.epsilon, float)
        if self.pure:
            return epsilon / steps
        return closed_form_epsilon(epsilon, jnp.asarray(self.delta, float), steps, xp=jnp)

    def _log_turn(self, pieces: Pieces, middle: Array) -> tuple[Array, Array]:
        """ln P[right], ln P[left] at a midpoint."""
        here, after = pieces.locate(middle), pieces.locate(self._after(middle))
        zeros, ones = pieces.values[0], pieces.values[-1]
        # Piece i begins after i examples, and Q there is (their ones) + zeros - (their zeros): this gives both counts.
        ones_before = (here.astype(float) + pieces.values[here] - zeros) / 2
        zeros_up_to = (after.astype(float) - pieces.values[after] + zeros) / 2
        difference = ones - ones_before - zeros_up_to
        left, right = laplace.log_tails(-difference * self.comparison_epsilon() / 2)
        return right, left

    def _walk(self, pieces: Pieces, step: Any, start: Any) -> Any:
        """(where, state): runs `step(pieces, index, low, high, middle, state) -> (go_right, state)` down the search tree."""

        parts = staging.apart(pieces)

        def body(index: Array, carry: Any) -> Any:
            low, high, state = carry
            middle = wide.midpoint(low, high)
            is_open = wide.less(low, high)
            go_right, changed = step(staging.together(parts), index, low, high, middle, state)
            low = wide.select(is_open & go_right, self._after(middle), low)
            high = wide.select(is_open & ~go_right, middle, high)
            return low, high, jax.tree.map(lambda new, old: jnp.where(is_open, new, old), changed, state)

        zero = jnp.zeros((self.limbs,), jnp.uint32)
        low, _, state = jax.lax.fori_loop(0, 32 * self.limbs, body, (zero, pieces.last, start))
        return low, state

    def _after(self, position: UInt32[Array, "limbs"]) -> UInt32[Array, "limbs"]:
        """position + 1."""
        return wide.add(position, wide.from_uint32(jnp.uint32(1), self.limbs))

    def _draw(self, key: Array, pieces: Pieces) -> Any:
        def step(pieces: Pieces, index: Array, low: Array, high: Array, middle: Array, state: Any) -> Any:
            return random.bernoulli(jax.random.fold_in(key, index), *self._log_turn(pieces, middle)), state

        return self._walk(pieces, step, ())[0], jnp.bool_(True), {}

    def _path(self, pieces: Pieces, target: UInt32[Array, "limbs"], counted: Any) -> tuple[Array, Array, Array]:
        """Along the path to `target`: its end, P[the search gets there], P[it turns off into subtrees with counted(low, high)]."""

        def step(pieces: Pieces, _: Array, low: Array, high: Array, middle: Array, state: Any) -> Any:
            reach, aside = state
            right, left = self._log_turn(pieces, middle)
            go_right = wide.less(middle, target)
            off = wide.select(go_right, low, self._after(middle)), wide.select(go_right, middle, high)
            turned = reach * jnp.exp(jnp.where(go_right, left, right))
            reach = reach * jnp.exp(jnp.where(go_right, right, left))
            return go_right, (reach, aside + jnp.where(counted(*off), turned, 0.0))

        end, (reach, aside) = self._walk(pieces, step, (jnp.ones(()), jnp.zeros((2,))))
        return end, reach, aside

    def _tails(self, pieces: Pieces, position: UInt32[Array, "limbs"]) -> Float[Array, "2"]:
        """(P[result < position], P[result >= position])."""

        def sides(low: Array, high: Array) -> Array:
            return jnp.stack([wide.less(high, position), wide.less(position, low)])

        end, reach, aside = self._path(pieces, position, sides)
        below = wide.less(end, position)
        return aside + jnp.where(jnp.stack([below, ~below]), reach, 0.0)

    def _mass(self, pieces: Pieces, low: UInt32[Array, "limbs"], high: UInt32[Array, "limbs"]) -> Float[Array, ""]:
        """P[low <= result < high], as a sum of positive terms: both ends, and what leaves the paths to them to stay between."""
        last = wide.subtract(high, wide.from_uint32(jnp.uint32(1), self.limbs))

        def between(a: Array, b: Array) -> Array:
            return jnp.stack([wide.less(low, a) & wide.less(b, last), jnp.bool_(False)])

        _, at_low, after_low = self._path(pieces, low, between)
        _, at_last, before_last = self._path(pieces, last, between)
        mass = at_low + jnp.where(wide.equal(low, last), 0.0, at_last) + jnp.sum(after_low + before_last)
        return jnp.where(wide.less(low, high), mass, 0.0)

    def _law(self, pieces: Pieces, goal: Goal) -> Array:
        low, high = goal.within.low, goal.within.high
        cuts = jnp.concatenate([pieces.starts, pieces.end[None]])
        cuts = wide.minimum(wide.maximum(cuts, low[None]), high[None])
        mass = jax.vmap(lambda a, b: self._mass(pieces, a, b))(cuts[:-1], cuts[1:])
        outside = self._tails(pieces, low)[0] + self._tails(pieces, high)[1]
        good = jnp.sum(jnp.where(goal.marked, mass, 0.0))
        return jnp.stack([good, jnp.sum(jnp.where(goal.marked, 0.0, mass)) + outside])

    def _law_between(self, pieces: Pieces, low: Array, high: Array) -> Array:
        # Two paths instead of one for every piece, and no difference: a small failure keeps its digits.
        below, above = self._tails(pieces, low)[0], self._tails(pieces, wide.minimum(high, pieces.end))[1]
        return jnp.stack([1 - (below + above), below + above])

    def guarantee(self) -> Guarantee:
        """(epsilon, delta) under REPLACE_ONE, by composition of d + 1 adaptive epsilon_0-private comparisons."""
        return Guarantee(float(self.epsilon), 0.0 if self.pure else float(self.delta), REPLACE_ONE)

    def sample_size(self, *, alpha: float, beta: float) -> float:
        """A union bound over the comparisons, and Theorem 2.14; see `bounds`."""
        return bounds.binary_search_thresholds(int(self.bits), alpha, beta, float(self.comparison_epsilon()))


# ---------------------------------------------------------------------------------------------------- RecConcave


@frozen
class RecConcave(ThresholdLearner):
    """LearnThresholds (BNS §3.4): RecConcave on Q(j) = number of examples c_j labels correctly, promise n, approximation alpha/2.

    `printed`: every mechanism gets (epsilon/(3 depth), delta/(3 depth)) and A_dist the paper's constants. `proved`: with N levels
    that really run, the 3N - 2 mechanisms get epsilon/(3N - 2), the 2(N - 1) of A_dist delta/(2(N - 1)) and constants that keep it.
    """

    bits: Int[Array, ""]
    epsilon: Float[Array, ""]
    delta: Float[Array, ""]
    alpha: Float[Array, ""]
    limbs: int = static()
    depth: int = static()
    levels: int = static()
    calibration: str = static()

    def _shares(self) -> tuple[float, float]:
        """Into how many parts epsilon and delta are cut."""
        if self.calibration == "printed":
            return 3.0 * self.depth, 3.0 * self.depth
        return 3.0 * self.levels - 2, max(2.0 * (self.levels - 1), 1.0)

    def budget(self) -> optimizer.Budget:
        """What each mechanism may spend."""
        for_epsilon, for_delta = self._shares()
        return optimizer.Budget(
            epsilon=jnp.asarray(self.epsilon, float) / for_epsilon,
            delta=jnp.asarray(self.delta, float) / for_delta,
            calibration=self.calibration,
        )

    def problem(self, pieces: Pieces) -> optimizer.Problem:
        """The promise problem: all n examples correct, up to a fraction alpha/2."""
        promise = pieces.values[0] + pieces.values[-1]  # zeros + ones
        return optimizer.Problem(pieces=pieces, promise=promise, alpha=jnp.asarray(self.alpha, float) / 2)

    def _draw(self, key: Array, pieces: Pieces) -> Any:
        run = optimizer.sample(key, self.problem(pieces), self.budget(), self.levels)
        return run.point.position, run.ok, run

    def _law(self, pieces: Pieces, goal: Goal) -> Array:
        return optimizer.law(self.problem(pieces), self.budget(), self.levels, goal)

    def guarantee(self) -> Guarantee:
        """What is proved, by basic composition, under REPLACE_ONE; see `dpjax.optimizers.rec_concave`.

        For `printed` that is ((5N-4) e, (N-1) exp(2e) d), e and d the shares of one mechanism: within (epsilon, delta) for depth
        up to 2, and more than epsilon from depth 3 on. `claimed_guarantee` is what Theorem 3.15 says.
        """
        levels = self.levels
        if self.calibration == "proved":
            return Guarantee(float(self.epsilon), float(self.delta) if levels > 1 else 0.0, REPLACE_ONE)
        for_epsilon, for_delta = self._shares()
        epsilon, delta = float(self.epsilon) / for_epsilon, float(self.delta) / for_delta
        total = (levels - 1) * math.exp(min(2 * epsilon, 700.0)) * delta
        return Guarantee((5 * levels - 4) * epsilon, min(total, 1.0), REPLACE_ONE)

    def claimed_guarantee(self) -> Guarantee:
        """(epsilon, delta): Theorem 3.15's claim for the printed constants."""
        return Guarantee(float(self.epsilon), float(self.delta), REPLACE_ONE)

    def sample_size(self, *, alpha: float, beta: float) -> float:
        """Theorem 3.18, with the constants of its proof."""
        return bounds.learn_thresholds(int(self.bits), self.depth, alpha, beta, float(self.epsilon), float(self.delta))


# ------------------------------------------------------------------------------------------------------ factories


def erm(*, bits: int) -> Erm:
    """Non-private empirical risk minimisation.

    Args:
      bits: d, the domain is {0, ..., 2^d - 1}; 1 to 4096.

    Raises:
      TypeError, ValueError: bits is no int, or outside.
    """
    return Erm(**_domain(bits))


def exponential(*, bits: int, epsilon: Any) -> Exponential:
    """The exponential mechanism over all thresholds, (epsilon, 0)-private; see `Exponential`.

    Args:
      bits: d, 1 to 4096.
      epsilon: > 0, finite.

    Raises:
      TypeError, ValueError: an argument out of range.
    """
    return Exponential(**_domain(bits), epsilon=arguments.epsilon(epsilon))


def binary_search(*, bits: int, epsilon: Any, delta: Any = 0.0) -> BinarySearch:
    """Noisy binary search, (epsilon, delta)-private; see `BinarySearch`.

    Args:
      bits: d, 1 to 4096.
      epsilon: total, > 0, finite.
      delta: total, in [0, 1); 0 splits epsilon evenly, more lets each comparison spend about epsilon / sqrt(d).

    Raises:
      TypeError, ValueError: an argument out of range.
    """
    delta = arguments.delta(delta, positive=False)
    pure = not arguments.is_traced(delta) and float(delta) == 0.0
    return BinarySearch(**_domain(bits), epsilon=arguments.epsilon(epsilon), delta=delta, pure=pure)


def rec_concave(
    *, bits: int, epsilon: Any, delta: Any, alpha: Any, depth: int, calibration: str = "proved"
) -> RecConcave:
    """LearnThresholds; see `RecConcave`.

    Args:
      bits: d, 1 to 4096.
      epsilon: total, > 0, finite.
      delta: total, in (0, 1); 0 is allowed where no A_dist runs (depth 1, or d <= 5).
      alpha: approximation parameter of LearnThresholds, in (0, 1); RecConcave runs at alpha/2.
      depth: bound N >= 1 on the number of levels; more than 3 never run for d <= 4096.
      calibration: "proved" (the stated guarantee holds) or "printed" (the paper's constants to the letter).

    Raises:
      TypeError, ValueError: an argument out of range.
    """
    domain = _domain(bits)
    depth = arguments.integer("depth", depth, at_least=1)
    levels = optimizer.levels_run(1 << bits, depth)
    calibration = arguments.choice("calibration", calibration, CALIBRATIONS)
    return RecConcave(
        **domain,
        epsilon=arguments.epsilon(epsilon),
        delta=arguments.delta(delta, positive=levels > 1),
        alpha=arguments.fraction("alpha", alpha),
        depth=depth,
        levels=levels,
        calibration=calibration,
    )


def _domain(bits: int) -> dict[str, Any]:
    """The fields that every learner has; a position, 0, ..., 2^bits, takes bits + 1 bits."""
    bits = arguments.integer("bits", bits, at_least=1, at_most=wide.MAX_BITS)
    return {"bits": np.int32(bits), "limbs": wide.limbs_for(bits + 1)}
