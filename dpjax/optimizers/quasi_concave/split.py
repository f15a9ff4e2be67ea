"""The budget of each mechanism of RecConcave: equal shares (`Budget`), or chosen ones (`Split`).

N levels run N exponential mechanisms and, above the last level, A_dist on two partitions each: 3N - 2 mechanisms, 2(N - 1) of them with a
delta. Each may be chosen with knowledge of the others' answers, so basic composition adds up what they spend (BNS, Theorem 2.4).
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from dpjax.accounting import REPLACE_ONE, Guarantee, basic
from dpjax.core import arguments
from dpjax.core.pytree import frozen, static
from dpjax.mechanisms.base import Chooser


@frozen
class Budget:
    """The budget of each single mechanism, and the constants with which A_dist tests."""

    epsilon: Float[Array, ""]
    delta: Float[Array, ""]
    calibration: str = static()

    @property
    def choose(self) -> Float[Any, ""]:
        """epsilon of this level's exponential mechanism."""
        return self.epsilon

    @property
    def last(self) -> None:
        """The mechanism that chooses at the last level in place of the exponential one: none."""
        return None

    def test(self, partition: int) -> "Budget":
        """The budget of A_dist on a partition of this level, 0 or 1."""
        return self

    @property
    def below(self) -> "Budget":
        """The budget of the levels below this one."""
        return self


@frozen
class Split:
    """The budget of each of the 3N - 2 mechanisms of N levels, the wide range first; A_dist tests with its `proved` constants.

    The whole is private with their sums, `total`. `Budget` is the same with equal shares; both give a level its own numbers under the same
    three names, `choose`, `test` and `below`.

    Attributes:
      choices: epsilon of each level's exponential mechanism.
      tests: epsilon of A_dist on each of the two partitions of each level but the last.
      deltas: the delta of A_dist there, in (0, 1/2].
      last: a mechanism for integer scores of sensitivity 1 that chooses at the last of two levels or more in place of the exponential one,
        and spends what its own guarantee, under REPLACE_ONE, says, whatever the relation of the data is; Q must have integer values, and
        the qualities of lengths are rounded to integers, too.
    """

    choices: Float[Array, "levels"]
    tests: Float[Array, "inner 2"]
    deltas: Float[Array, "inner 2"]
    last: Chooser | None = None

    @classmethod
    def equal(cls, epsilon: Any, delta: Any, levels: int) -> "Split":
        """Equal shares of a total, in float64 where it is known.

        >>> Split.equal(1.0, 1e-6, 2).choices.tolist()
        [0.25, 0.25]
        """
        xp = jnp if arguments.is_traced(epsilon) or arguments.is_traced(delta) else np
        each, share, inner = epsilon / (3 * levels - 2), delta / max(2 * (levels - 1), 1), (levels - 1, 2)
        return cls(choices=xp.full((levels,), each), tests=xp.full(inner, each), deltas=xp.full(inner, share))

    @property
    def levels(self) -> int:
        """N."""
        return int(self.choices.shape[0])

    @property
    def calibration(self) -> str:
        """The constants of A_dist that keep its epsilon and delta."""
        return "proved"

    @property
    def choose(self) -> Float[Any, ""]:
        """epsilon of this level's exponential mechanism."""
        return self.choices[0]

    def test(self, partition: int) -> Budget:
        """The budget of A_dist on a partition of this level, 0 or 1."""
        return Budget(epsilon=self.tests[0, partition], delta=self.deltas[0, partition], calibration=self.calibration)

    @property
    def below(self) -> "Split":
        """The split of the levels below this one."""
        return Split(choices=self.choices[1:], tests=self.tests[1:], deltas=self.deltas[1:], last=self.last)

    def floats(self) -> "Split":
        """The same in the default float."""
        return jax.tree.map(lambda leaf: jnp.asarray(leaf, float), self)

    def sound(self) -> Bool[Array, ""]:
        """Whether each number is in its range."""
        numbers = self.floats()
        epsilons = jnp.concatenate([numbers.choices, numbers.tests.reshape(-1)])
        deltas = (numbers.deltas > 0) & (numbers.deltas <= 0.5)
        last = jnp.bool_(True) if self.last is None else self.last.sound()
        return jnp.all((epsilons > 0) & (epsilons < jnp.inf)) & jnp.all(deltas) & last

    def total(self, relation: str) -> Guarantee:
        """What all of them spend by basic composition, on the host."""
        pure = [(float(epsilon), 0.0) for epsilon in np.ravel(self.choices)]
        if self.last is not None:
            kept = self.last.guarantee()
            # So it is private for any two lists of scores at a distance of 1, whatever the relation of the data is. What is private under
            # ADD_OR_REMOVE_ONE alone may need scores that all move the same way, which those of lengths do not.
            if kept.relation != REPLACE_ONE:
                raise ValueError(f"split.last must be private under {REPLACE_ONE}, got {kept}")
            pure[-1] = kept.epsilon, kept.delta
        tested = zip(np.ravel(self.tests).tolist(), np.ravel(self.deltas).tolist(), strict=True)
        return basic(Guarantee(epsilon, delta, relation) for epsilon, delta in [*pure, *tested])

    def least(self) -> tuple[float, float]:
        """(epsilon, delta) whose equal shares are nowhere more than this split's: what is proved of errors with them holds here.

        Raises:
          ValueError: another mechanism at the last level.
        """
        if self.last is not None:
            raise ValueError(f"split.last must be absent, as no error is proved for another mechanism, got {self.last}")
        epsilon = min(np.min(self.choices), np.min(self.tests, initial=np.inf))
        delta = np.min(self.deltas, initial=0.5) * max(2 * (self.levels - 1), 1)
        return float(epsilon) * (3 * self.levels - 2), float(delta) if self.levels > 1 else 0.0


def checked(split: Split | None, *, epsilon: Any, delta: Any, levels: int) -> Split | None:
    """A chosen split for N levels, or None; its known numbers must be in range and keep the total.

    Raises:
      TypeError: not a `Split`. ValueError: another number of levels, a number out of range, or more than the total.
    """
    if split is None:
        return None
    arguments.instance("split", split, Split)
    inner = (levels - 1, 2)
    shapes = {"choices": (levels,), "tests": inner, "deltas": inner}
    for name, shape in shapes.items():
        if (found := np.shape(getattr(split, name))) != shape:
            raise ValueError(f"split.{name} must have shape {shape} for {levels} levels, got {found}")
    if split.last is not None:
        arguments.instance("split.last", split.last, Chooser)
        if levels == 1:
            raise ValueError("split.last must be absent where a single level runs, whose choice is among a wide range")
    if any(arguments.is_traced(leaf) for leaf in (*jax.tree.leaves(split), epsilon, delta)):
        return split
    split = jax.tree.map(lambda leaf: np.asarray(leaf, np.float64), split)
    if not (
        np.all(split.choices > 0) and np.all(split.tests > 0) and np.all((split.deltas > 0) & (split.deltas <= 0.5))
    ):
        raise ValueError(f"split must have epsilons > 0 and deltas in (0, 1/2], got {split}")
    if not (total := split.total(REPLACE_ONE)).covers(float(epsilon), float(delta)):
        raise ValueError(f"split must keep ({epsilon}, {delta}) by basic composition, got {total}")
    return split
