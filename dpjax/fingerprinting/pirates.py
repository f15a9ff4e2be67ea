"""Pirates: the marking assumption, the standard strategies, and the experiment that counts a code's errors (MULTI §5.1).

A strategy is a function (key, rows, coalition) -> word. It gets the rows of all users and a mask that says which rows the pirates see;
without a mask they see all rows. Every strategy decides each column by itself, so it can be run block by block.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool

from dpjax.core import arguments, bits, show
from dpjax.core.pytree import frozen, static
from dpjax.fingerprinting import codes
from dpjax.fingerprinting.codes import Code

Rows = Bool[Array, "users columns"]
Word = Bool[Array, "columns"]
Coalition = Bool[Array, "users"]


def feasible(rows: Rows, word: Word, coalition: Coalition | None = None) -> Bool[Array, ""]:
    """The marking assumption, w' in F(W_T): every bit of the word occurs in its column of some member's row.

    >>> rows = jnp.array([[True, False, True], [True, True, True]])
    >>> bool(feasible(rows, jnp.array([True, False, True]))), bool(feasible(rows, jnp.array([True, False, False])))
    (True, False)
    """
    rows, word = _flags("rows", rows, 2), _flags("word", word, 1)
    if word.shape != rows.shape[1:]:
        raise ValueError(f"word must have a bit for each of {rows.shape[1]} columns, got {word.shape[0]}")
    return jnp.all(_some(rows == word[None, :], coalition))


def majority(key: Array, rows: Rows, coalition: Coalition | None = None) -> Word:
    """The more frequent bit; 1 on a tie."""
    ones, members = _counts(rows, coalition)
    return (2 * ones >= members) & (members > 0)


def minority(key: Array, rows: Rows, coalition: Coalition | None = None) -> Word:
    """The less frequent bit that occurs; 0 on a tie."""
    ones, members = _counts(rows, coalition)
    return (ones > 0) & ((2 * ones < members) | (ones == members))


def coin(key: Array, rows: Rows, coalition: Coalition | None = None) -> Word:
    """A fair coin where the members' bits differ."""
    ones, members = _counts(rows, coalition)
    return (ones > 0) & ((ones == members) | jax.random.bernoulli(arguments.key(key), shape=ones.shape))


def interleaving(key: Array, rows: Rows, coalition: Coalition | None = None) -> Word:
    """In every column the bit of a member chosen at random."""
    ones, members = _counts(rows, coalition)
    # A random member's bit is 1 with probability ones / members: below 2^24 members, exact up to the draw's 2^-23.
    return jax.random.uniform(arguments.key(key), ones.shape) * members.astype(float) < ones.astype(float)


def all_ones(key: Array, rows: Rows, coalition: Coalition | None = None) -> Word:
    """A one wherever some member holds one."""
    return _some(rows, coalition)


def all_zeros(key: Array, rows: Rows, coalition: Coalition | None = None) -> Word:
    """A zero wherever some member holds one."""
    ones, members = _counts(rows, coalition)
    return (ones == members) & (members > 0)


STRATEGIES: dict[str, Callable[..., Array]] = {
    "majority": majority,
    "minority": minority,
    "random": coin,
    "interleaving": interleaving,
    "all_ones": all_ones,
    "all_zeros": all_zeros,
}


@frozen
class Experiment:
    """A code against a coalition.

    Attributes:
      code: a fingerprinting code.
      coalition: which users are pirates.
      strategy: (key, rows, coalition) -> word, one of this module or one of your own; it sees one block of columns at a time.
    """

    code: Code
    coalition: Bool[Array, "users"]
    strategy: Callable[..., Array] = static()


def trial(key: Array, experiment: Experiment) -> dict[str, Bool[Array, ""]]:
    """One codebook, one word, one trace; memory for one block of columns only. For `dpjax.trials`.

    Returns:
      `incomplete`: the word is feasible and nobody is accused. `unsound`: somebody innocent is accused. `traced`: some pirate is
      accused. `infeasible`: the word breaks the marking assumption.

    >>> from dpjax.fingerprinting import tardos
    >>> from dpjax.trials import engine
    >>> pirates = Experiment(code=tardos(4, xi=0.1), coalition=jnp.array([1, 0, 1, 1], bool), strategy=majority)
    >>> engine.count(trial, pirates, root=engine.root_key(0), cell=0, trials=100)
    {'incomplete': 0, 'infeasible': 0, 'traced': 100, 'unsound': 0}
    """
    code, coalition = experiment.code, experiment.coalition
    key_book, key_word = jax.random.split(key)
    book = code.stream(key_book)

    def step(so_far: tuple, block: Array) -> tuple:
        sums, fits = so_far
        columns = book.columns(block)
        word = experiment.strategy(jax.random.fold_in(key_word, block), columns.bits, coalition)
        fitting = _some(columns.bits == word[None, :], coalition) | ~columns.valid
        return sums.plus(code.part(columns, word)), fits & jnp.all(fitting)

    sums, fits = codes.fold(code.blocks, step, (codes.Sum.of(code.nothing()), jnp.asarray(True)))
    accused = code.accuse(sums.total).accused
    return {
        "incomplete": fits & ~jnp.any(accused),
        "unsound": jnp.any(accused & ~coalition),
        "traced": jnp.any(accused & coalition),
        "infeasible": ~fits,
    }


def _some(rows: Rows, coalition: Coalition | None) -> Word:
    """Whether some member's entry is set, by column."""
    rows, members = _members(rows, coalition)
    return jnp.any(rows & members[:, None], axis=0)


def _counts(rows: Rows, coalition: Coalition | None) -> tuple[Array, Array]:
    """(how many members hold a one, by column; how many members there are)."""
    rows, members = _members(rows, coalition)
    ones = bits.tally(rows & members[:, None])
    return ones, jnp.sum(members.astype(jnp.int32), dtype=jnp.int32)


def _members(rows: Any, coalition: Any) -> tuple[Bool[Array, "users columns"], Bool[Array, "users"]]:
    """The rows, and which users are members: all, if no coalition is given."""
    rows = _flags("rows", rows, 2)
    members = jnp.ones(rows.shape[0], bool) if coalition is None else _flags("coalition", coalition, 1)
    if members.shape != rows.shape[:1]:
        raise ValueError(f"coalition must have a flag for each of {rows.shape[0]} rows, got {members.shape[0]}")
    return rows, members


def _flags(name: str, value: Any, axes: int) -> Bool[Array, "..."]:
    """An array of booleans, checked to have this many axes."""
    if str(getattr(value, "dtype", None)) != "bool" or value.ndim != axes:
        raise TypeError(f"{name} must be an array of booleans of {axes} axes, got {show.short(value)}")
    return jnp.asarray(value)
