"""Private multiplicative weights, offline, for a class that is known in advance (MULTI Theorem 25; Hardt and Rothblum 2010).

    p_1 = uniform over the N points, h = sqrt(8 ln N / T)
    for t = 1, ..., T:
      choose a signed query v_t = c or -c with probability proportional to exp(e n (<v, S> - <v, p_t>) / 2)
      p_(t+1)(x) proportional to p_t(x) exp(h v_t(x))
    release (p_1 + ... + p_T) / T

**Which form.** Hardt and Rothblum answer queries as they arrive. Here all are known, so the exponential mechanism searches for a bad one,
as in MWEM (Hardt, Ligett and McSherry 2012). MWEM also measures, with Laplace noise, how bad it is, and takes a step of that size. The
theorem needs none of that: the sign gives the direction, a step of fixed size follows it, and the whole budget is spent on choices. So the
release is a function of T choices among finitely many queries: on tiny domains its law is exact.

**Privacy.** <v, S> n is a count, up to its sign: the score has sensitivity 1 under REPLACE_ONE, n is public, and a choice is
(e, 0)-private. More than that: its losses lie in an interval of length e, as no two scores move apart by more than 2. So T choices
compose as `accounting.exponential_epsilon` says: e is epsilon/T, or with a delta about epsilon / sqrt((T/2) ln(1/delta)), the accountant
"adaptive". The optimal composition of mechanisms of which (e, 0)-privacy is all that is known leaves half of that.
Floating point is no exception: <v, S> n is counted in integers; n <v, p_t>, which is the same for neighbours, is rounded to a multiple of a
power of two that suits n; and all their differences are exact.

**Accuracy.** By Hoeffding's lemma KL(S, p_t) falls by at least h <v_t, S - p_t> - h^2/8. It starts at ln N at most and stays >= 0, so the
mean of <v_t, S - p_t> is at most ln N/(h T) + h/8 = sqrt(ln N/(2T)). Except with probability beta, every choice is within
z = (2/(e n)) ln(K T/beta) of the best one (BNS Proposition 2.26 (ii)), where K is the number of signed queries; the best one has the
largest error of p_t. The error of a mean is at most the mean error: sqrt(ln N/(2T)) + z in all, which is
`bounds.private_multiplicative_weights`. With T = 2 ln N/alpha^2 that is n = (8/alpha^2 epsilon) sqrt(ln N ln(1/delta)) ln(K T/beta) or so,
Theorem 25 with its constant; by "adaptive", half of it.

The plain twin is `dpjax.verify.plain.dense.multiplicative_weights_law`.

    >>> import jax
    >>> from dpjax import Points, Weighted
    >>> from dpjax.domains import wide
    >>> from dpjax.sanitizers import dense
    >>> data = Points.create(wide.from_ints([i * i // 1000 for i in range(4000)], 14))
    >>> sanitizer = dense.multiplicative_weights(queries=dense.thresholds(bits=14), rounds=200, epsilon=1.0, delta=1e-6)
    >>> released = sanitizer(jax.random.key(0), data).hypothesis
    >>> float(released.threshold_error(Weighted.of(data))) < 0.1
    True
"""

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float, Int

from dpjax import bounds
from dpjax.accounting import REPLACE_ONE, Guarantee, basic, calibrate, exponential_epsilon, optimal
from dpjax.accounting.adaptive import ADAPTIVE, adaptive_total
from dpjax.core import arguments, bits
from dpjax.core.pytree import frozen, static
from dpjax.data.algorithm import whole
from dpjax.data.weighted import Weighted
from dpjax.mechanisms import exponential
from dpjax.sanitizers.dense.base import Counted, DenseSanitizer
from dpjax.sanitizers.dense.queries import Queries

ACCOUNTANTS = ("basic", "optimal", ADAPTIVE)
MOST_OUTPUTS = 2**16
MOST_NUMBERS = 2**21  # weights that the list of all outputs holds


@frozen
class MultiplicativeWeights(DenseSanitizer):
    """Private multiplicative weights; see the module, and build it by `multiplicative_weights`.

    A listed output is a sequence of choices, of which the released database is a function.

    Attributes:
      epsilon, delta: the total budget.
      round_epsilon: e, the epsilon of one choice.
      rounds: T (static).
      accountant: how the T choices are composed (static).
    """

    queries: Queries
    epsilon: Float[Any, ""]
    delta: Float[Any, ""]
    round_epsilon: Float[Any, ""]
    rounds: int = static()
    accountant: str = static()

    def step(self) -> float:
        """h, the step size."""
        return math.sqrt(8.0 * math.log(self.queries.size) / self.rounds)

    def most(self) -> int:
        return min(super().most(), arguments.most_counted() // 2 - 1)

    def _answers(self, view: Counted, p: Float[Array, "points"]) -> Float[Array, "answers"]:
        """The answers for n (S - p), as multiples of a power of two <= 1 that floats hold up to 2 n: their differences are exact."""
        digits = arguments.most_counted().bit_length() - 1
        unit = jnp.asarray(2.0 ** (np.arange(1, digits + 1) - digits))[bits.bit_length(view.n.astype(jnp.int32))]
        expected = view.n.astype(float) * self.queries.answers(p)
        return self.queries.answers(view.counts).astype(float) - unit * jnp.round(expected / unit)

    def draw(self, key: Array, view: Counted) -> Any:
        rate, step = jnp.asarray(self.round_epsilon, float) / 2, self.step()

        def one(state: tuple[Array, Array], number: Array) -> tuple[tuple[Array, Array], None]:
            log_weights, total = state
            p = jax.nn.softmax(log_weights)
            chosen = self.queries.choose(jax.random.fold_in(key, number), self._answers(view, p), rate)
            return (log_weights + step * chosen.astype(float), total + p), None

        nothing = jnp.zeros(self.queries.size)
        (_, total), _ = lax.scan(one, (nothing, nothing), jnp.arange(self.rounds, dtype=jnp.int32))
        return self.database(total / self.rounds), jnp.bool_(True), {}

    # Of T choices, all of them: sequences in lexicographic order -----------------------------------------------

    def listed(self) -> int:
        """How many sequences of choices there are."""
        outputs = self.queries.candidates() ** self.rounds
        if outputs > MOST_OUTPUTS or outputs * self.queries.size > MOST_NUMBERS:
            most = min(MOST_OUTPUTS, MOST_NUMBERS // self.queries.size)
            raise ValueError(
                f"rounds must be fewer for a list of all outputs: {self.queries.candidates()}^{self.rounds} sequences of choices, "
                f"and at most {most} are listed"
            )
        return outputs

    def log_masses(self, view: Counted) -> Float[Array, "outputs"]:
        def log_choice(p: Array) -> Array:
            scores = self.queries.scores(self._answers(view, p))
            return exponential.log_pmf(scores, epsilon=self.round_epsilon)

        log_p = jnp.zeros(1)
        for laws in self._laws():
            log_p = (log_p[:, None] + jax.vmap(log_choice)(laws)).ravel()
        return log_p

    def errors(self, view: Counted) -> Float[Array, "outputs"]:
        return jax.vmap(self.queries.largest)(view.shares()[None] - self._released())

    def output(self, index: Int[Array, ""]) -> Weighted:
        """The database that this sequence of choices gives."""
        return self.database(self._released()[index])

    def _laws(self) -> list[Float[Array, "sequences points"]]:
        """p_1, ..., p_T after every sequence of choices; they do not depend on the data."""
        self.listed()
        signed = jnp.asarray(self.queries.signed(), float)
        log_weights = [jnp.zeros((1, self.queries.size))]
        for _ in range(self.rounds - 1):
            moved = log_weights[-1][:, None] + self.step() * signed[None]
            log_weights.append(moved.reshape(-1, self.queries.size))
        return [jax.nn.softmax(each, axis=-1) for each in log_weights]

    def _released(self) -> Float[Array, "outputs points"]:
        """The mean of p_1, ..., p_T for every output."""
        laws, outputs = self._laws(), self.listed()
        return jnp.mean(jnp.stack([jnp.repeat(p, outputs // p.shape[0], axis=0) for p in laws]), axis=0)

    # What is promised -------------------------------------------------------------------------------------------

    def guarantee(self) -> Guarantee:
        """The composition of T choices, each (e, 0)-private, under REPLACE_ONE."""
        choice = Guarantee(float(self.round_epsilon), 0.0, REPLACE_ONE)
        if self.accountant == ADAPTIVE:
            return adaptive_total(choice, self.rounds, float(self.delta))
        choices = {choice: self.rounds}
        return basic(choices) if self.accountant == "basic" else optimal(choices, delta=float(self.delta))

    def sample_size(self, *, alpha: float, beta: float) -> int:
        """The rows of data needed for a largest error of alpha; see the module.

        Raises:
          ValueError: alpha or beta outside (0, 1), or an alpha for which `rounds` are too few.
        """
        alpha, beta = arguments.known_fraction("alpha", alpha), arguments.known_fraction("beta", beta)
        sizes = math.log(self.queries.size), math.log(self.queries.candidates())
        return whole(bounds.private_multiplicative_weights(*sizes, self.rounds, alpha, beta, float(self.round_epsilon)))

    def sound(self) -> Any:
        each = jnp.asarray(self.round_epsilon, float)
        return super().sound() & (each > 0) & (each < jnp.inf)


def multiplicative_weights(
    *, queries: Queries, rounds: int, epsilon: float, delta: float = 0.0, accountant: str | None = None
) -> MultiplicativeWeights:
    """Private multiplicative weights for a dense domain; see the module.

    Formal guarantees: (epsilon, delta) under REPLACE_ONE. Not promised: protection from floating-point side channels; a cryptographic
    generator.

    Args:
      queries: `thresholds(bits=...)`, `intervals`, `points`, `pairs` or `listed` of `dpjax.sanitizers.dense`.
      rounds: T; 2 ln N / alpha^2 leave half of an error of alpha to the choices.
      epsilon, delta: the total under REPLACE_ONE. Known numbers: the split is computed on the host.
      accountant: "basic", "optimal", or "adaptive" (the default where delta > 0); see the module.

    Raises:
      TypeError, ValueError: an argument out of range.

    >>> from dpjax.sanitizers import dense
    >>> sanitizer = multiplicative_weights(queries=dense.thresholds(bits=16), rounds=2219, epsilon=1.0, delta=1e-6)
    >>> sanitizer.guarantee().covers(1.0, 1e-6), sanitizer.sample_size(alpha=0.1, beta=0.1)
    (True, 93004)
    """
    arguments.instance("queries", queries, Queries)
    rounds = arguments.size("rounds", rounds)
    total = Guarantee(
        arguments.known("epsilon", arguments.epsilon(epsilon)),
        arguments.known("delta", arguments.delta(delta, positive=False)),
        REPLACE_ONE,
    )
    if accountant is None:
        accountant = ADAPTIVE if total.delta > 0.0 else "basic"
    if arguments.choice("accountant", accountant, ACCOUNTANTS) == ADAPTIVE:
        each = exponential_epsilon(rounds, epsilon=total.epsilon, delta=total.delta)
    else:
        each = calibrate(total, rounds, accountant=accountant, delta_share=0.0).epsilon
    return MultiplicativeWeights(
        queries=queries,
        epsilon=np.float64(total.epsilon),
        delta=np.float64(total.delta),
        round_epsilon=np.float64(each),
        rounds=rounds,
        accountant=accountant,
    )
