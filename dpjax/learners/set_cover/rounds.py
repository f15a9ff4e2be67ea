"""SetCoverLearner (GEO §3): a conjunction h_1 and ... and h_R of hypotheses, each of which deletes negative examples and few positive ones.

For j = 1, ..., R, on the examples S0 (negative) and S1 (positive) that are left:

1. b = |S0| + floor(Lap(R/e_w)) - s, with a public s that few noises exceed.
2. q(h) = min(#_(h->0)(S0) - ceil(b/k), -#_(h->0)(S1)), and h_j is drawn with probability proportional to exp(r q(h)) (Step 1e).
3. Examples with h_j(x) = 0 are deleted.

(The machine-read text lost the signs before the shift and before #_(h->0)(S1). GEO have b/k: rounded up, it leaves all scores integers,
which floats hold. Less a fraction, scores of millions of examples are rounded, and moved apart by 1.25 for one example more.) The dual
learns h_1 or ... or h_R: the labels are swapped, and h deletes the examples with h(x) = 1.

**Privacy** (ADD_OR_REMOVE_ONE). All rounds share one failing test: an example matters only until it is deleted, and it is deleted soon if
the hypotheses that delete it are likely. So the price does not grow with R: it is (e_w + max(r, c ln((1 - e^-r)/delta) - r), delta) with
c = e^r - 1, the sharp form of Claim 3.4, which is `accounting.set_cover.shared_test` with its proof. The printed constants,
r = epsilon/(2 ln(e/delta)) and e_w = epsilon, prove only (2 epsilon, delta), as the last line of the printed proof says (the weights there
are exp(r q), in GEO's definition exp(r q/2)), and they do so only where e^r - 1 <= 2r, that is for epsilon <= 2.5 ln(e/delta).

With "composition" the same rounds need no noise in b: one more negative example moves every q by 0 or 1, or, if ceil(b/k) moves, by -1 or
0; one more positive example by -1 or 0. In both cases no two scores move apart by more than 1, so the losses of a round lie in an interval
of length r, and R rounds are composed (`accounting.adaptive`). This gives the k^1.5 (or k^2, for delta = 0) that GEO improves to k.

**Utility.** If the target is a conjunction of at most k hypotheses and no noise exceeds s, some h has q(h) >= 0: one of the target's
hypotheses deletes at least |S0|/k negative examples, so at least ceil(b/k), and no positive one. So h_j, with q(h_j) >= -l, deletes at most
l positive examples, and leaves at most (1 - 1/k)|S0| + (2s + 1)/k + l negative ones: in all at most n e^(-R/k) + 2s + 1 + (k + R) l errors
(`bounds.set_cover`).

The plain twin is `dpjax.verify.plain.set_cover`.
"""

import math
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from dpjax import bounds
from dpjax.accounting import ADD_OR_REMOVE_ONE, Guarantee
from dpjax.accounting.adaptive import adaptive_total
from dpjax.accounting.set_cover import LARGEST_RATE, shared_test
from dpjax.core import arguments
from dpjax.core.pytree import frozen, static
from dpjax.learners.set_cover.base import Rounds
from dpjax.mechanisms import exponential, laplace


@frozen
class SetCover(Rounds):
    """The learner; build it by `learner`. Its other attributes are those of `Rounds`.

    Attributes:
      rate: r, of the weights exp(r q).
      noise_epsilon: e_w; infinite with "composition", which needs no noise.
      shift: s.
      delta: the delta at which privacy is stated.
      accountant: "shared_test" or "composition" (static).
    """

    rate: Float[Any, ""]
    noise_epsilon: Float[Any, ""]
    shift: Float[Any, ""]
    delta: Float[Any, ""]
    accountant: str = static()

    def choose(self, key: Array, view: Any, left: Any, negative: Any, positive: Any) -> Any:
        key_noise, key_choice = jax.random.split(key)
        score = self._score(self._before_noise(view, self.sides(view, left)[0]) + self._noise(key_noise))
        return self.selection.draw(key_choice, view, negative, positive, score=score, rate=self.rate, dual=self.dual)

    def _before_noise(self, view: Any, negative: Any) -> Float[Array, ""]:
        """|S0| - s."""
        return self.selection.count(view, negative).astype(float) - jnp.asarray(self.shift, float)

    def _score(self, test: Float[Array, ""]) -> Any:
        """q, given b, all integers.

        For b <= 0 all q(h) are -#_(h->0)(S1), so that b may as well be 0. A b that is cut above, at a number that does not depend on the
        data, is as private, and for b >= k n the law does not change with b.
        """
        b = jnp.clip(test, 0.0, float(min(self.k * arguments.most_counted(), 2**30))).astype(jnp.int32)
        needed = -(-b // self.k)
        return lambda zeros, ones: jnp.minimum(zeros - needed, -ones).astype(float)

    def _noise(self, key: Array) -> Float[Array, ""]:
        """floor(Lap(R/e_w))."""
        if self.accountant == "composition":
            return jnp.zeros(())
        return jnp.floor(laplace.laplace(key, jnp.zeros(()), epsilon=self.noise_epsilon, sensitivity=self.rounds))

    def log_round(self, view: Any, left: Any) -> Float[Array, "hypotheses"]:
        """ln P[h] in one round, for the examples that are left."""
        zeros, ones = self.deletions(view, left)
        measure, start = self.selection.log_measure(), self._before_noise(view, self.sides(view, left)[0])

        def given(test: Array) -> Array:
            scores = self._score(test)(zeros, ones)
            return exponential.normalised(measure + exponential.log_weights(scores, epsilon=self.rate, monotone=True))

        if self.accountant == "composition":
            return given(start)
        # For b <= 0 and for b >= k n the law does not change with b.
        tests = jnp.arange(self.k * view.rows + 1, dtype=jnp.int32).astype(float)
        return jax.nn.logsumexp(self._log_noise(tests - start)[:, None] + jax.vmap(given)(tests), axis=0)

    def _log_noise(self, noise: Float[Array, "tests"]) -> Float[Array, "tests"]:
        """ln P of consecutive values of the noise; the first stands for all values up to it, the last for all from it on."""
        ends = noise[1:] * jnp.asarray(self.noise_epsilon, float) / self.rounds
        log_below, log_above = laplace.log_tails(ends)
        wide = jnp.asarray(self.noise_epsilon, float) / self.rounds
        inner = jnp.where(noise >= 0, -noise, noise + 1) * wide + jnp.log(-jnp.expm1(-wide)) - math.log(2)
        return jnp.concatenate([log_below[:1], inner[1:-1], log_above[-1:]])

    # What is promised ------------------------------------------------------------------------------------------------

    def guarantee(self) -> Guarantee:
        """What the accountant proves under ADD_OR_REMOVE_ONE; see the module.

        Nothing is promised where the selection does not draw with its weights, or for a rate whose exponential is not a float64.
        """
        if not self.selection.exact:
            return Guarantee.none(ADD_OR_REMOVE_ONE)
        rate, delta = float(self.rate), float(self.delta)
        if self.accountant == "shared_test" and rate > LARGEST_RATE:
            return Guarantee.none(ADD_OR_REMOVE_ONE)
        if self.accountant == "shared_test":
            return shared_test(rate=rate, noise_epsilon=float(self.noise_epsilon), delta=delta)
        each = Guarantee(rate, 0.0, ADD_OR_REMOVE_ONE)
        return adaptive_total(each, self.rounds, delta)

    def sound(self) -> Bool[Array, ""]:
        rate, delta = jnp.asarray(self.rate, float), jnp.asarray(self.delta, float)
        shift = jnp.asarray(self.shift, float)
        good = (rate > 0) & (rate < jnp.inf) & (delta >= 0) & (delta < 1)
        # |S0| - s is an integer that floats hold.
        good = good & (shift >= 0) & (shift <= arguments.most_counted()) & (shift == jnp.floor(shift))
        if self.accountant == "composition":
            return good
        noise = jnp.asarray(self.noise_epsilon, float)
        return good & (noise > 0) & (noise < jnp.inf) & (delta > 0)

    def sample_size(self, *, alpha: float, beta: float) -> int:
        """Examples of a target of at most k hypotheses for population error alpha except with probability beta: `bounds.set_cover`.

        Raises:
          ValueError: alpha or beta outside (0, 1); an alpha for which there are too few rounds; a beta for which the shift is too small; a
          selection that does not draw with its weights.
        """
        if not self.selection.exact:
            raise ValueError(f"{type(self.selection).__name__} draws approximately: no number of examples is proved")
        beta, shift = arguments.known_fraction("beta", beta), int(self.shift)
        if self.accountant == "shared_test":
            needed = bounds.set_cover_shift(self.rounds, beta / 4, float(self.noise_epsilon))
            if needed > shift:
                raise ValueError(
                    f"beta must be larger: the shift {shift} is below the {needed} that beta = {beta} needs"
                )
        return self.examples(alpha, beta, float(self.rate), shift)
