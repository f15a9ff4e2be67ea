"""SetCoverLearner (GEO §3): a conjunction h_1 and ... and h_R of hypotheses, each of which deletes negative examples and few positive ones.

For j = 1, ..., R, on the examples S0 (negative) and S1 (positive) that are left:

1. b = |S0| + floor(Lap(R/e_w)) - s, with a public s that few noises exceed.
2. q(h) = min(#_(h->0)(S0) - b/k, -#_(h->0)(S1)), and h_j is drawn with probability proportional to exp(r q(h)) (Step 1e).
3. Examples with h_j(x) = 0 are deleted.

(The machine-read text lost the signs before the shift and before #_(h->0)(S1).) The dual learns h_1 or ... or h_R: labels change their
places, and h deletes the examples with h(x) = 1.

**Privacy** (ADD_OR_REMOVE_ONE). All rounds share one failing test: a record plays a part only until it is deleted, and it is deleted
soon if the hypotheses that delete it are likely. So the price does not grow with R: (e_w + max(r, c ln((1 - e^-r)/delta) - r), delta),
c = e^r - 1, which is `accounting.set_cover.shared_test` with its proof. It is the sharp form of Claim 3.4. The printed constants, r =
epsilon/(2 ln(e/delta)) and e_w = epsilon, prove (2 epsilon, delta) only, as the last line of the printed proof says (the weights there are
exp(r q), in GEO's definition exp(r q/2)).

By "composition" the same rounds need no noise in b: a negative example more moves every q by -1/k to 1 - 1/k, a positive one by -1 to 0. In
both cases no two of them move apart by more than 1, so a round is (r, 0)-private, and R of them are composed. That is the k^1.5 (or k^2,
for delta = 0) that GEO improves to k.

**Utility.** If the target is a conjunction of at most k hypotheses and no noise exceeds s, some h has q(h) >= 0: one of the target's
deletes |S0|/k >= b/k negative examples and no positive one. So h_j, with q(h_j) >= -l, deletes at most l positive examples, and leaves at
most (1 - 1/k)|S0| + (2s + 1)/k + l negative ones: in all at most n e^(-R/k) + 2s + 1 + (k + R) l errors (`bounds.set_cover`).

The plain twin is `dpjax.verify.plain.set_cover`.
"""

import math
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float, Int

from dpjax import bounds
from dpjax.accounting import ADD_OR_REMOVE_ONE, Guarantee, optimal
from dpjax.accounting.set_cover import shared_test
from dpjax.core import arguments, logspace, staging
from dpjax.core.pytree import frozen, static
from dpjax.data.algorithm import Algorithm, whole
from dpjax.domains.events import Accurate
from dpjax.learners.set_cover.selection import Selection
from dpjax.mechanisms import exponential, laplace

MOST_SEQUENCES = 2**12  # of hypotheses, in the list of all outputs


@frozen
class SetCover(Algorithm):
    """The learner; build it by `learner`.

    Attributes:
      selection: the class of hypotheses, and how one is drawn.
      rate: r, of the weights exp(r q).
      noise_epsilon: e_w; infinite by composition, which needs no noise.
      shift: s.
      delta: at which privacy is stated.
      k: hypotheses of the target (static).
      rounds: R (static).
      dual: whether a disjunction is learned (static).
      accountant: "shared_test" or "composition" (static).
    """

    selection: Selection
    rate: Float[Any, ""]
    noise_epsilon: Float[Any, ""]
    shift: Float[Any, ""]
    delta: Float[Any, ""]
    k: int = static()
    rounds: int = static()
    dual: bool = static()
    accountant: str = static()

    largest_error: ClassVar[float] = 1.0

    @property
    def kind(self) -> type:  # type: ignore[override]
        """The data that the selection takes."""
        return self.selection.kind

    def fit(self, data: Any) -> Any:
        return self.selection.fit(data)

    def fits(self, data: Any) -> Bool[Array, ""]:
        return self.selection.fits(data)

    # One run ------------------------------------------------------------------------------------------------------

    def prepare(self, data: Any) -> Any:
        return self.selection.prepare(data)

    def run(self, key: Array, data: Any) -> Any:
        def run(self: SetCover, key: Array, data: Any) -> Any:
            return self.draw(key, self.prepare(data))

        return (staging.one_by_one(run) if self.selection.loops else run)(self, key, data)

    def draw(self, key: Array, view: Any) -> Any:
        def one(left: Any, number: Array) -> tuple[Any, Any]:
            key_noise, key_choice = jax.random.split(jax.random.fold_in(key, number))
            negative, positive = self._sides(view, left)
            test = self._before_noise(view, negative) + self._noise(key_noise)
            choice = self.selection.draw(
                key_choice, view, negative, positive, score=self._score(test), rate=self.rate, dual=self.dual
            )
            return left & ~self.selection.deleted(view, choice, dual=self.dual), choice

        left, chosen = lax.scan(one, view.valid, jnp.arange(self.rounds, dtype=jnp.int32))
        released = self.selection.released(chosen, dual=self.dual)
        info = {"left": self.selection.count(view, left), **self.selection.info(chosen)}
        return released, jnp.bool_(True), info

    def _sides(self, view: Any, left: Any) -> tuple[Any, Any]:
        """(S0, S1), which change their places in the dual."""
        negative, positive = left & ~view.y, left & view.y
        return (positive, negative) if self.dual else (negative, positive)

    def _before_noise(self, view: Any, negative: Any) -> Float[Array, ""]:
        """|S0| - s."""
        return self.selection.count(view, negative).astype(float) - jnp.asarray(self.shift, float)

    def _score(self, test: Float[Array, ""]) -> Any:
        """q, given b."""
        return lambda zeros, ones: jnp.minimum(zeros.astype(float) - test / self.k, -ones.astype(float))

    def _noise(self, key: Array) -> Float[Array, ""]:
        """floor(Lap(R/e_w))."""
        if self.accountant == "composition":
            return jnp.zeros(())
        return jnp.floor(laplace.laplace(key, jnp.zeros(()), epsilon=self.noise_epsilon, sensitivity=self.rounds))

    # The law, where sequences of hypotheses can be listed --------------------------------------------------------

    def log_round(self, view: Any, left: Any) -> Float[Array, "hypotheses"]:
        """ln P[h] in one round, for the examples that are left."""
        negative, positive = self._sides(view, left)
        deleted = self.selection.all_deleted(view, dual=self.dual)
        zeros, ones = (self.selection.count(view, deleted & side[None]) for side in (negative, positive))
        measure, start = self.selection.log_measure(), self._before_noise(view, negative)

        def given(test: Array) -> Array:
            scores = self._score(test)(zeros, ones)
            return exponential.normalised(measure + exponential.log_weights(scores, epsilon=self.rate, monotone=True))

        if self.accountant == "composition":
            return given(start)
        # For b <= 0 all q(h) = -#_(h->0)(S1); for b >= k n all are #_(h->0)(S0) - b/k: beyond, the law stays as it is.
        tests = jnp.arange(self.k * view.rows + 1, dtype=jnp.int32).astype(float)
        return jax.nn.logsumexp(self._log_noise(tests - start)[:, None] + jax.vmap(given)(tests), axis=0)

    def _log_noise(self, noise: Float[Array, "tests"]) -> Float[Array, "tests"]:
        """ln P of consecutive values of the noise; the first stands for all up to it, the last for all from it on."""
        ends = noise[1:] * jnp.asarray(self.noise_epsilon, float) / self.rounds
        log_below, log_above = laplace.log_tails(ends)
        wide = jnp.asarray(self.noise_epsilon, float) / self.rounds
        inner = jnp.where(noise >= 0, -noise, noise + 1) * wide + jnp.log(-jnp.expm1(-wide)) - math.log(2)
        return jnp.concatenate([log_below[:1], inner[1:-1], log_above[-1:]])

    def log_masses(self, view: Any) -> Float[Array, "outputs"]:
        """ln P of every sequence h_1, ..., h_R; h_1 is the most significant digit of its index."""
        log_p, left = jnp.zeros(1), view.valid[None]
        for _ in range(self.rounds):
            log_p = (log_p[:, None] + jax.vmap(lambda mask: self.log_round(view, mask))(left)).reshape(-1)
            left = self._after(view, left)
        return log_p

    def _after(self, view: Any, left: Any) -> Any:
        """What each hypothesis leaves of each mask."""
        deleted = self.selection.all_deleted(view, dual=self.dual)
        return (left[:, None] & ~deleted[None]).reshape(-1, left.shape[1])

    def errors(self, view: Any) -> Float[Array, "outputs"]:
        """The error on the data of every sequence."""
        left = view.valid[None]
        for _ in range(self.rounds):
            left = self._after(view, left)
        negative, positive = self._sides(view, view.valid)
        wrong, every = (
            self.selection.count(view, masks) for masks in (left & negative[None] | ~left & positive[None], view.valid)
        )
        return wrong.astype(float) / jnp.maximum(every, 1).astype(float)

    def listed(self) -> int:
        """How many sequences there are."""
        found = self.selection.hypotheses() ** self.rounds
        if found > MOST_SEQUENCES:
            raise ValueError(
                f"a law of {type(self.selection).__name__} is a list of at most {MOST_SEQUENCES} sequences of hypotheses, got {found}"
            )
        return found

    def check_event(self, event: Any) -> Any:
        if not hasattr(event, "dtype") or event.dtype != bool or event.shape != (self.listed(),):
            raise TypeError(f"event must have one flag (bool) for each of {self.listed()} sequences, got {event!r}")
        return jnp.asarray(event)

    def event(self, view: Any, event: Any) -> Bool[Array, "outputs"]:
        self.listed()
        return self.errors(view) <= event.error if isinstance(event, Accurate) else event

    def exactly(self, output: Any) -> Bool[Array, "outputs"]:
        index = jnp.int32(0)
        for one in self.selection.indices(output):
            index = index * self.selection.hypotheses() + one
        return jnp.arange(self.listed(), dtype=jnp.int32) == index

    def output(self, index: Int[Array, ""]) -> Any:
        """The sequence of this index."""
        size = self.selection.hypotheses()
        digits = [index // size**place % size for place in reversed(range(self.rounds))]
        return self.selection.released(self.selection.choice(jnp.stack(digits).astype(jnp.int32)), dual=self.dual)

    def law(self, view: Any, good: Any) -> Float[Array, "2"]:
        log_p = self.log_masses(view)
        return jnp.exp(jnp.stack([logspace.logsumexp(jnp.where(at, log_p, -jnp.inf)) for at in (good, ~good)]))

    def masses(self, view: Any, outputs: int) -> Float[Array, "outcomes"]:
        return jnp.append(jnp.exp(self.log_masses(view)), 0.0)

    # What is promised ------------------------------------------------------------------------------------------------

    def guarantee(self) -> Guarantee:
        """Under ADD_OR_REMOVE_ONE, by the accountant; see the module. None where the selection does not draw with its weights."""
        if not self.selection.exact:
            return Guarantee.none(ADD_OR_REMOVE_ONE)
        rate, delta = float(self.rate), float(self.delta)
        if self.accountant == "shared_test":
            return shared_test(rate=rate, noise_epsilon=float(self.noise_epsilon), delta=delta)
        each = Guarantee(rate, 0.0, ADD_OR_REMOVE_ONE)
        return optimal({each: self.rounds}, delta=delta)

    def sound(self) -> Bool[Array, ""]:
        rate, delta = jnp.asarray(self.rate, float), jnp.asarray(self.delta, float)
        good = (rate > 0) & (rate < jnp.inf) & (delta >= 0) & (delta < 1) & (jnp.asarray(self.shift, float) >= 0)
        if self.accountant == "composition":
            return good
        noise = jnp.asarray(self.noise_epsilon, float)
        return good & (noise > 0) & (noise < jnp.inf) & (delta > 0)

    def sample_size(self, *, alpha: float, beta: float) -> int:
        """Examples of a target of at most k hypotheses for population error alpha but for beta: `bounds.set_cover`.

        Raises:
          ValueError: alpha or beta outside (0, 1); an alpha for which the rounds are too few; a beta for which the shift is too small.
        """
        alpha, beta = arguments.known_fraction("alpha", alpha), arguments.known_fraction("beta", beta)
        shift = int(self.shift)
        if self.accountant == "shared_test":
            needed = bounds.set_cover_shift(self.rounds, beta / 4, float(self.noise_epsilon))
            if needed > shift:
                raise ValueError(
                    f"beta must be larger: the shift {shift} is below the {needed} that beta = {beta} needs"
                )
        found = bounds.set_cover(self.selection.log_size(), self.k, self.rounds, alpha, beta, float(self.rate), shift)
        if math.isinf(found):
            raise ValueError(
                f"alpha must be above {2 * math.exp(-self.rounds / self.k):.3g} for {self.rounds} rounds, got {alpha}"
            )
        return whole(found)
