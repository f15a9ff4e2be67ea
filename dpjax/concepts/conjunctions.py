"""Conjunctions and disjunctions of literals over d Boolean variables, under product distributions (GEO §1.1).

A literal is a number: 2v is the variable v, 2v + 1 its negation. A hypothesis is an array of literals, in any order and with repetitions.
"""

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, UInt32

from dpjax.concepts.distribution import Distribution
from dpjax.core import arguments, bits, random
from dpjax.core.pytree import frozen, static
from dpjax.data.assignments import Assignments

MOST_VARIABLES = 2**24


def holds(literal: Int[Array, ""], x: UInt32[Array, "words d"]) -> UInt32[Array, "words"]:
    """On which examples a literal is true, packed."""
    return x[:, literal // 2] ^ -(literal % 2).astype(jnp.uint32)


def label(literals: Int[Array, "m"], x: UInt32[Array, "words d"], *, disjunction: bool) -> UInt32[Array, "words"]:
    """c(x) of packed examples: whether all literals are true, or for a disjunction whether at least one is.

    Raises:
      ValueError: a known literal that belongs to no variable.
    """
    Literals(literals=literals, disjunction=disjunction).of_variables(x.shape[1])
    # A disjunction is the negation of the conjunction of all negated literals.
    flip = np.uint32(0xFFFFFFFF) if disjunction else np.uint32(0)

    def also(one: Array, literal: Array) -> tuple[Array, None]:
        return one & (holds(literal, x) ^ flip), None

    return jax.lax.scan(also, jnp.full(x.shape[0], np.uint32(0xFFFFFFFF)), literals)[0] ^ flip


@frozen
class Literals:
    """A conjunction, or a disjunction, of literals.

    Attributes:
      literals: 2v for the variable v, 2v + 1 for its negation.
      disjunction: whether it is a disjunction (static).

    >>> Literals(literals=jnp.array([0, 5, 5], jnp.int32), disjunction=False)
    Literals(v0 and not v2)
    """

    literals: Int[Array, "m"]
    disjunction: bool = static(default=False)

    def __repr__(self) -> str:
        if arguments.is_traced(self.literals) or np.ndim(self.literals) != 1 or np.shape(self.literals)[0] > 64:
            return f"Literals(literals={self.literals.dtype}{list(np.shape(self.literals))})"
        names = [
            ("not " if one % 2 else "") + f"v{one // 2}" for one in dict.fromkeys(np.asarray(self.literals).tolist())
        ]
        return f"Literals({(' or ' if self.disjunction else ' and ').join(names)})"

    def of_variables(self, variables: int) -> "Literals":
        """Itself; ValueError for a known literal that belongs to none of that many variables."""
        if not arguments.is_traced(self.literals):
            for one in np.ravel(self.literals).tolist():
                arguments.integer("literals", one, at_least=0, at_most=2 * variables - 1)
        return self

    def predict(self, data: Assignments) -> Bool[Array, "rows"]:
        """The hypothesis's label of every row."""
        self.of_variables(data.x.shape[1])
        return bits.unpack(label(self.literals, data.x, disjunction=self.disjunction), data.rows)


@frozen
class Product(Distribution):
    """Independent variables, labelled by a conjunction or disjunction; build it by `product`.

    Attributes:
      odds: variable v is 1 with probability odds[v] 2^-32, exactly.
      target: the literals of the target.
      disjunction: whether the target is a disjunction (static).
      digits: how many leading binary digits of the odds matter, the others being 0 (static).
    """

    odds: UInt32[Array, "d"]
    target: Int[Array, "k"]
    disjunction: bool = static()
    digits: int = static(default=bits.WORD)

    def draw(self, key: Array, capacity: int, n: Int[Array, ""]) -> Assignments:
        words = bits.words_for(capacity)
        odds = jnp.broadcast_to(self.odds[None], (bits.WORD, self.odds.shape[0]))
        x = random.coins(key, odds, words, self.digits)
        return Assignments(x=x, y=label(self.target, x, disjunction=self.disjunction), n_valid=n)

    def error(self, hypothesis: Literals) -> Float[Array, ""]:
        """P[h(x) differs from the target]: for conjunctions P[h, not c] + P[c, not h], accurate to a rounding a literal however small.

        Two disjunctions differ where the conjunctions of their negated literals do.
        """
        arguments.instance("hypothesis", hypothesis, Literals)
        if jnp.ndim(hypothesis.literals) != 1:  # all literals of a batch would be taken for one conjunction
            raise ValueError(f"hypothesis must be one row of literals, got shape {jnp.shape(hypothesis.literals)}")
        return self._error(hypothesis.of_variables(self.odds.shape[0]))

    @jax.jit
    def _error(self, hypothesis: Literals) -> Float[Array, ""]:
        mine, target = (
            _needs(literals ^ int(dual), self.odds.shape[0])
            for literals, dual in ((hypothesis.literals, hypothesis.disjunction), (self.target, self.disjunction))
        )
        odds = jnp.stack([self.odds, -self.odds])  # of 1 and of 0
        share = odds.astype(float) * 2.0**-32
        # A probability near 1 keeps its digits in its logarithm, which comes from that of the other value.
        large = odds > np.uint32(2**31)
        small, log_large = jnp.where(large, 1.0, share), jnp.where(large, jnp.log1p(-share[::-1]), 0.0)
        differ = _alone(mine, target, small, log_large) + _alone(target, mine, small, log_large)
        # If one of the two is negated, they agree where the conjunctions differ.
        return differ if hypothesis.disjunction == self.disjunction else 1.0 - differ


def _needs(literals: Int[Array, "m"], variables: int) -> Bool[Array, "2 d"]:
    """Which variables must be 1, which must be 0."""
    none = jnp.zeros(variables, bool)
    return jnp.stack([none.at[literals // 2].max(literals % 2 == value) for value in (0, 1)])


def _alone(
    holds: Bool[Array, "2 d"], fails: Bool[Array, "2 d"], small: Float[Array, "2 d"], log_large: Float[Array, "2 d"]
) -> Float[Array, ""]:
    """P[the one conjunction holds and the other fails]: P[it holds] times P[something else that the other needs is not so]."""

    def all_so(needs: Array) -> tuple[Array, Array]:
        """(P[all of them], P[not]), by a product of small probabilities and by logarithms of large ones."""
        few, log_most = jnp.prod(jnp.where(needs, small, 1.0)), jnp.sum(jnp.where(needs, log_large, 0.0))
        so = few * jnp.exp(log_most)
        return so, jnp.where(so <= 0.5, 1.0 - so, -jnp.expm1(jnp.log(few) + log_most))

    impossible = [jnp.any(jnp.all(needs, axis=0)) for needs in (holds, fails)]
    never = impossible[1] | jnp.any(fails & holds[::-1])
    not_so = jnp.where(never, 1.0, all_so(fails & ~holds)[1])
    return jnp.where(impossible[0], 0.0, all_so(holds)[0] * not_so)


def product(*, bits: int, target: Sequence[int], p: Any = 0.5, disjunction: bool = False) -> Product:
    """Independent variables that are 1 with probability p, labelled by the target.

    Args:
      bits: d, the number of variables.
      target: literals, 2v for the variable v and 2v + 1 for its negation; at least one.
      p: a probability in (0, 1) for all variables, or one for each; rounded to multiples of 2^-32 in (0, 1). Sampling costs a random
        word for each binary digit of the finest of them: 15/16 takes an eighth of what 0.94 takes.
      disjunction: whether the target is the disjunction of its literals.

    Raises:
      TypeError, ValueError: an argument out of range, or a literal that belongs to no variable.

    >>> law = product(bits=100, target=[0, 7], p=0.5)
    >>> law.sample(jax.random.key(0), 64, 50)
    Assignments(n_valid=50, rows=64, variables=100)
    >>> float(law.error(Literals(literals=jnp.array([0], jnp.int32))))  # right unless v0 and v3: a quarter
    0.25
    """
    variables = arguments.integer("bits", bits, at_least=1, at_most=MOST_VARIABLES)
    listed = arguments.several("target", target)
    literals = [arguments.integer("target", one, at_least=0, at_most=2 * variables - 1) for one in listed]
    if not literals:
        raise ValueError("target must hold at least one literal, got none")
    if np.shape(p) not in ((), (variables,)):
        raise ValueError(f"p must be one number, or one for each of the {variables} variables, got shape {np.shape(p)}")
    share = (
        np.asarray(arguments.array("p", p), np.float64)
        if np.ndim(p)
        else np.full(variables, arguments.known_fraction("p", p))
    )
    if not ((share > 0) & (share < 1)).all():
        raise ValueError(f"p must lie in (0, 1), got {share.min()} to {share.max()}")
    odds = np.clip(np.round(share * 2.0**32), 1, 2**32 - 1).astype(np.uint32)
    every = int(np.bitwise_or.reduce(odds))
    return Product(
        odds=jnp.asarray(odds),
        target=jnp.asarray(literals, jnp.int32),
        disjunction=arguments.flag("disjunction", disjunction),
        digits=33 - (every & -every).bit_length(),  # 32 less the zeros at the end
    )
