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
from jaxtyping import Array, Bool, Float, Int, UInt32

from dpjax.accounting import ADD_OR_REMOVE_ONE, Guarantee, optimal
from dpjax.accounting.set_cover import shared_test
from dpjax.core import bits, logspace
from dpjax.data.algorithm import Algorithm
from dpjax.domains.events import Accurate
from dpjax.mechanisms import exponential, laplace

ACCOUNTANTS = ("shared_test", "composition")
MOST_SEQUENCES = 2**12  # of hypotheses, in the list of all outputs


class SetCover(Algorithm):
    """The rounds, for hypotheses that can be counted one by one; a class of hypotheses adds `deleted`, `counts`, `hypothesis`.

    Data have `valid` and `y`, packed, as `dpjax.data.assignments.Assignments`. The output of `draw` is what `hypothesis` makes of h_1, ...,
    h_R.

    Attributes:
      rate: r, of the weights exp(r q).
      noise_epsilon: e_w; infinite by composition, which needs no noise.
      shift: s.
      delta: at which privacy is stated.
      k: hypotheses of the target.
      rounds: R.
      dual: whether a disjunction is learned.
      accountant: "shared_test" or "composition".
    """

    rate: Any
    noise_epsilon: Any
    shift: Any
    delta: Any
    k: int
    rounds: int
    dual: bool
    accountant: str

    largest_error: ClassVar[float] = 1.0

    # What a class of hypotheses defines -------------------------------------------------------------------------

    def hypotheses(self) -> int:
        """How many there are."""
        raise NotImplementedError

    def deleted(self, data: Any, index: Int[Array, ""]) -> UInt32[Array, "words"]:
        """The examples that this hypothesis deletes, packed: h(x) = 0, or h(x) = 1 in the dual."""
        raise NotImplementedError

    def counts(self, data: Any, left: UInt32[Array, "words"]) -> Int[Array, "hypotheses"]:
        """How many of some examples each hypothesis deletes."""
        raise NotImplementedError

    def hypothesis(self, chosen: Int[Array, "rounds"]) -> Any:
        """What is released."""
        raise NotImplementedError

    # One run ------------------------------------------------------------------------------------------------------

    def prepare(self, data: Any) -> Any:
        return data

    def _sides(self, data: Any) -> tuple[UInt32[Array, "words"], UInt32[Array, "words"]]:
        """(S0, S1), which change their places in the dual."""
        positive, negative = data.valid & data.y, data.valid & ~data.y
        return (positive, negative) if self.dual else (negative, positive)

    def _counted(self, data: Any, left: UInt32[Array, "words"]) -> tuple[Array, Array, Array]:
        """(#_(h->0)(S0), #_(h->0)(S1) for every hypothesis, |S0| - s)."""
        negative, positive = (side & left for side in self._sides(data))
        zeros, ones = (self.counts(data, side).astype(float) for side in (negative, positive))
        return zeros, ones, bits.count(negative).astype(float) - jnp.asarray(self.shift, float)

    def _log_weights(self, zeros: Array, ones: Array, test: Float[Array, ""]) -> Float[Array, "hypotheses"]:
        """ln of the unnormalised weights exp(r q) for this b."""
        scores = jnp.minimum(zeros - test / self.k, -ones)
        return exponential.log_weights(scores, epsilon=self.rate, monotone=True)

    def draw(self, key: Array, data: Any) -> Any:
        def one(left: Array, number: Array) -> tuple[Array, Array]:
            key_noise, key_choice = jax.random.split(jax.random.fold_in(key, number))
            zeros, ones, test = self._counted(data, left)
            weights = self._log_weights(zeros, ones, test + self._noise(key_noise))
            index = exponential.draw(key_choice, weights).index
            return left & ~self.deleted(data, index), index

        left, chosen = lax.scan(one, data.valid, jnp.arange(self.rounds, dtype=jnp.int32))
        return self.hypothesis(chosen), jnp.bool_(True), {"left": bits.count(left)}

    def _noise(self, key: Array) -> Float[Array, ""]:
        """floor(Lap(R/e_w))."""
        if self.accountant == "composition":
            return jnp.zeros(())
        return jnp.floor(laplace.laplace(key, jnp.zeros(()), epsilon=self.noise_epsilon, sensitivity=self.rounds))

    # The law, where sequences of hypotheses can be listed --------------------------------------------------------

    def log_round(self, data: Any, left: UInt32[Array, "words"]) -> Float[Array, "hypotheses"]:
        """ln P[h] in one round, for the examples that are left."""
        zeros, ones, test = self._counted(data, left)
        if self.accountant == "composition":
            return exponential.normalised(self._log_weights(zeros, ones, test))
        # For b <= 0 all q(h) = -#_(h->0)(S1); for b >= k n all are #_(h->0)(S0) - b/k: beyond, the law stays as it is.
        tests = jnp.arange(self.k * data.rows + 1, dtype=jnp.int32).astype(float)
        each = jax.vmap(lambda test: exponential.normalised(self._log_weights(zeros, ones, test)))(tests)
        return jax.nn.logsumexp(self._log_noise(tests - test)[:, None] + each, axis=0)

    def _log_noise(self, noise: Float[Array, "tests"]) -> Float[Array, "tests"]:
        """ln P of consecutive values of the noise; the first stands for all up to it, the last for all from it on."""
        ends = noise[1:] * jnp.asarray(self.noise_epsilon, float) / self.rounds
        log_below, log_above = laplace.log_tails(ends)
        wide = jnp.asarray(self.noise_epsilon, float) / self.rounds
        inner = jnp.where(noise >= 0, -noise, noise + 1) * wide + jnp.log(-jnp.expm1(-wide)) - math.log(2)
        return jnp.concatenate([log_below[:1], inner[1:-1], log_above[-1:]])

    def log_masses(self, data: Any) -> Float[Array, "outputs"]:
        """ln P of every sequence h_1, ..., h_R; h_1 is the most significant digit of its index."""
        log_p, left = jnp.zeros(1), data.valid[None]
        for _ in range(self.rounds):
            log_p = (log_p[:, None] + jax.vmap(lambda rows: self.log_round(data, rows))(left)).reshape(-1)
            left = self._after(data, left)
        return log_p

    def _after(self, data: Any, left: UInt32[Array, "m words"]) -> UInt32[Array, "more words"]:
        """What each hypothesis leaves of each."""
        deleted = jax.vmap(lambda index: self.deleted(data, index))(jnp.arange(self.hypotheses(), dtype=jnp.int32))
        return (left[:, None] & ~deleted[None]).reshape(-1, left.shape[1])

    def errors(self, data: Any) -> Float[Array, "outputs"]:
        """The error on the data of every sequence."""
        left = data.valid[None]
        for _ in range(self.rounds):
            left = self._after(data, left)
        negative, positive = self._sides(data)
        wrong = bits.count(left & negative[None]) + bits.count(~left & positive[None])
        return wrong.astype(float) / jnp.maximum(data.n_valid, 1).astype(float)

    def listed(self) -> int:
        """How many sequences there are."""
        found = self.hypotheses() ** self.rounds
        if found > MOST_SEQUENCES:
            raise ValueError(
                f"a law of {type(self).__name__} is a list of at most {MOST_SEQUENCES} sequences of hypotheses, got {found}"
            )
        return found

    def check_event(self, event: Any) -> Any:
        if not hasattr(event, "dtype") or event.dtype != bool or event.shape != (self.listed(),):
            raise TypeError(f"event must have one flag (bool) for each of {self.listed()} sequences, got {event!r}")
        return jnp.asarray(event)

    def event(self, data: Any, event: Any) -> Bool[Array, "outputs"]:
        self.listed()
        return self.errors(data) <= event.error if isinstance(event, Accurate) else event

    def law(self, data: Any, good: Any) -> Float[Array, "2"]:
        log_p = self.log_masses(data)
        return jnp.exp(jnp.stack([logspace.logsumexp(jnp.where(at, log_p, -jnp.inf)) for at in (good, ~good)]))

    def masses(self, data: Any, outputs: int) -> Float[Array, "outcomes"]:
        return jnp.append(jnp.exp(self.log_masses(data)), 0.0)

    # What is promised ------------------------------------------------------------------------------------------------

    def guarantee(self) -> Guarantee:
        """Under ADD_OR_REMOVE_ONE, by the accountant; see the module."""
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
