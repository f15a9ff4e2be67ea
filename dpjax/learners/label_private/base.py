"""What a label-private learner does, whatever the class; see the package.

Its plain twin is `dpjax.verify.plain.label_private.label_private_law`.
"""

from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, UInt32

from dpjax import bounds
from dpjax.accounting import REPLACE_LABEL, REPLACE_ONE, Guarantee
from dpjax.core import arguments, logspace
from dpjax.data.algorithm import Algorithm, whole
from dpjax.data.sample import Sample
from dpjax.domains import groups, wide
from dpjax.domains.events import Accurate, Near
from dpjax.mechanisms import exponential


class Choices(NamedTuple):
    """What the exponential mechanism chooses among.

    Attributes:
      concepts: one for every dichotomy, in some of the slots.
      where: which slots hold a concept of H.
      right: how many of the labelled examples each labels right.
      wrong: the fraction of all examples that each labels wrong.
      fits: whether all dichotomies are listed.
    """

    concepts: Any
    where: Bool[Array, "h"]
    right: Int[Array, "h"]
    wrong: Float[Array, "h"]
    fits: Bool[Array, ""]


class LabelPrivate(Algorithm):
    """The learner of the package; build it by `label_private` or `semi_private`.

    Attributes:
      concepts: the class, from `dpjax.concepts.dichotomies`.
      epsilon: privacy parameter.
      unlabelled: n, how many examples give points only; None if all give points and labels.
      public: the points B of a semi-private learner, to which no example of the sample is added; None for label privacy.
    """

    bounded_range: ClassVar[bool] = True

    concepts: Any
    epsilon: Any
    unlabelled: Any
    public: Any
    limbs: int

    @property
    def bits(self) -> Any:
        """d, the number of bits of a point."""
        return self.concepts.bits

    @property
    def any_distribution(self) -> bool:  # type: ignore[override]
        """Whether `sample_size` holds for every distribution: not for a semi-private learner, bound to that of its public points."""
        return self.public is None

    def fit(self, data: Any) -> Any:
        if self.unlabelled is not None and isinstance(data, Sample) and data.ordered:
            raise ValueError(
                "sample must come in the order in which it was drawn: the first `unlabelled` examples of a sorted one (ordered=True) "
                "are no random part of it"
            )
        fit = super().fit(data)
        refuse = getattr(self.concepts, "refuse", None)
        known = not any(map(arguments.is_traced, jax.tree.leaves((self.unlabelled, fit))))
        if refuse is not None and known and self.public is None:
            most = int(fit.n_valid) if self.unlabelled is None else min(int(fit.n_valid), int(self.unlabelled))
            refuse("sample.x", np.asarray(fit.x)[:most])
        return fit

    def sound(self) -> Bool[Array, ""]:
        good = super().sound()
        if self.unlabelled is not None:
            good &= jnp.asarray(self.unlabelled) >= 1
        # A factory cannot check traced public points.
        return good if self.public is None else good & self.fits(self.public)

    def prepare(self, data: Any) -> Any:
        valid, x = data.valid, self._words(data)
        if self.public is None:
            gives = counted = valid
            if self.unlabelled is not None:  # the first examples give their points, the others their labels
                first = jnp.arange(data.rows, dtype=jnp.int32) < self.unlabelled
                gives, counted = valid & first, valid & ~first
            return self._choices(x, data.y, gives, counted, valid, ordered=getattr(data, "ordered", False))
        none = jnp.zeros(self.public.rows, bool)
        mine = jnp.concatenate([none, valid])
        gives = jnp.concatenate([self.public.valid, jnp.zeros_like(valid)])
        both = jnp.concatenate([self._words(self.public), x])
        return self._choices(both, jnp.concatenate([none.astype(jnp.int32), data.y]), gives, mine, mine)

    def _words(self, data: Any) -> UInt32[Array, "rows words"]:
        """The points, a row each."""
        return wide.resize(data.x, self.limbs)

    def _choices(
        self, x: Array, y: Array, gives: Array, counted: Array, mine: Array, *, ordered: bool = False
    ) -> Choices:
        """The choices, given for all rows which give B, which have a label that counts, and which are examples of the sample."""
        found = groups.group(x, gives | mine, ordered=ordered)
        listed = self.concepts.choices(found.rows, found.sums(gives.astype(jnp.int32)) > 0)

        def right(rows: Array) -> Array:
            return listed.right(*(found.sums(jnp.where(rows, label, 0)) for label in (y, 1 - y)))

        n = jnp.sum(mine, dtype=jnp.int32)
        return Choices(
            concepts=listed.concepts,
            where=listed.where,
            right=right(counted),
            wrong=(n - right(mine)).astype(float) / jnp.maximum(n, 1).astype(float),
            fits=listed.fits,
        )

    def run(self, key: Array, data: Any) -> Any:
        """The plain way, in place of any fast way of a base class: all points must be grouped."""
        return self.draw(key, self.prepare(data))

    def draw(self, key: Array, choices: Any) -> Any:
        index = exponential.draw(key, self._log_weights(choices)).index
        concept = jax.tree.map(lambda leaf: leaf[index], choices.concepts)
        return concept, choices.fits, {"choices": jnp.sum(choices.where)}

    def law(self, choices: Any, good: Any) -> Float[Array, "2"]:
        law = jnp.exp(jnp.stack([self._log_mass(choices, good), self._log_mass(choices, ~good)]))
        return jnp.where(choices.fits, law, jnp.asarray([0.0, 1.0], law.dtype))

    def log_mass(self, choices: Any, good: Any) -> Float[Array, ""]:
        return jnp.where(choices.fits, self._log_mass(choices, good), -jnp.inf)

    def _log_mass(self, choices: Choices, good: Bool[Array, "h"]) -> Float[Array, ""]:
        log_pmf = exponential.normalised(self._log_weights(choices))
        return logspace.logsumexp(jnp.where(good, log_pmf, -jnp.inf))

    def check_event(self, event: Any) -> Any:
        return event if isinstance(event, Near) else super().check_event(event)

    def event(self, choices: Any, event: Any) -> Any:
        """Which of the concepts are in the event."""
        if isinstance(event, Near):
            return event.holds(choices.concepts)
        if isinstance(event, Accurate):
            return event.allows(choices.wrong)
        return self._inside(choices.concepts, event)

    def guarantee(self) -> Guarantee:
        """(epsilon, 0) by BNS Proposition 2.26 (i), as H is public: under REPLACE_LABEL, or REPLACE_ONE if `public` points give H."""
        return Guarantee(float(self.epsilon), 0.0, REPLACE_LABEL if self.public is None else REPLACE_ONE)

    def sample_size(self, *, alpha: float, beta: float) -> int:
        """How many examples the sample must have, for labels given by a concept of the class; see the package.

        This is for points whose dichotomies the class can list, at most `concepts.most` different points (or dimensions): on others a run
        is refused, or outputs ⊥.

        Raises:
          ValueError: alpha or beta outside (0, 1), or too few `unlabelled` or public points for them.
        """
        return self._examples(bounds.label_private, bounds.label_private_whole, alpha, beta)

    def agnostic_sample_size(self, *, alpha: float, beta: float) -> int:
        """Examples after which error <= best of the class + alpha with probability 1 - beta, for any labels; see `bounds.labels`.

        Raises:
          ValueError: alpha or beta outside (0, 1), or too few `unlabelled` or public points for them.
        """
        return self._examples(bounds.label_private_agnostic, bounds.label_private_agnostic_whole, alpha, beta)

    def _examples(self, split: Callable[..., float], together: Callable[..., float], alpha: float, beta: float) -> int:
        """By the bound `split` where some points come without labels, by the bound `together` where none do."""
        alpha, beta = arguments.known_fraction("alpha", alpha), arguments.known_fraction("beta", beta)
        given: Any = {"vc": self.concepts.vc, "alpha": alpha, "beta": beta, "epsilon": float(self.epsilon)}
        given["log_concepts"] = getattr(self.concepts, "log_concepts", None)
        if self.public is not None:
            n = int(self.public.n_valid)
            try:
                return whole(split(**given, unlabelled=n) - n)
            except ValueError as error:  # where the public points are too few, they are told as what they are
                raise ValueError(
                    str(error).replace("unlabelled must be >=", "public points must be at least")
                ) from error
        if self.unlabelled is None:
            return whole(together(**given))
        return whole(split(**given, unlabelled=int(self.unlabelled)))

    def _log_weights(self, choices: Choices) -> Float[Array, "h"]:
        return exponential.log_weights(choices.right, epsilon=self.epsilon, where=choices.where)

    def _inside(self, concepts: Any, event: Any) -> Bool[Array, "h"]:
        """Which of the concepts are in an event that is not about errors on the data."""
        raise NotImplementedError
