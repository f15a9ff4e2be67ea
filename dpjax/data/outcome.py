"""What an algorithm returns: a hypothesis, a status code that traced values can carry, and information about the run."""

import enum
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int

from dpjax.core import show
from dpjax.core.pytree import frozen, shown


class Status(enum.IntEnum):
    """Why an outcome may, or may not, be used; an `IntEnum`, so that traced codes can be compared with it.

    OK = 0: released. BOTTOM = 1: no answer was stable enough. OUTSIDE_DOMAIN = 2: the data are not of the domain. BAD_PARAMETER = 3: a
    traced parameter is out of its range. `message` says it in a sentence.
    """

    OK = 0
    BOTTOM = 1
    OUTSIDE_DOMAIN = 2
    BAD_PARAMETER = 3

    @property
    def message(self) -> str:
        """One sentence that says what the status means.

        >>> Status(1).message
        'the mechanism returned bottom: it found no answer stable enough to release'
        """
        return _MESSAGES[self]


_MESSAGES = {
    Status.OK: "a hypothesis was released",
    Status.BOTTOM: "the mechanism returned bottom: it found no answer stable enough to release",
    Status.OUTSIDE_DOMAIN: "the data hold a point outside the domain, a label other than 0 and 1, a score that is no number,"
    " or a number of rows that they lack",
    Status.BAD_PARAMETER: "a parameter that was traced is out of its range: epsilon finite and > 0, delta from 0 to below 1,"
    " others as their factory says",
}


def _name(status: Any) -> str:
    """The names OK, BOTTOM, ... of known codes."""
    if not show.concrete(status) or status.ndim > 1:
        return show.short(status)
    names = [Status(code).name for code in np.ravel(status)]
    return show.listed(names) if status.ndim else names[0]


@frozen
class Outcome:
    """The result of one run of an algorithm.

    Attributes:
      hypothesis: what was released; all zeros unless `status` is `Status.OK`.
      status: a `Status` code, int32.
      info: further information about the run (a dict of arrays); NOT covered by the privacy guarantee.

    >>> Outcome.of(jnp.array([0, 7], jnp.uint32), jnp.int32(0), {})
    Outcome(hypothesis=7, status=OK, info={})
    """

    hypothesis: Any = shown(show.wide)
    status: Int[Array, ""] = shown(_name)
    info: Any

    @classmethod
    def of(cls, hypothesis: Any, status: Any, info: Any) -> "Outcome":
        """An outcome that shows its hypothesis only if `status` is OK.

        What an algorithm did not release is not covered by its guarantee, so it must not be seen: the shell makes every outcome this way.

        >>> Outcome.of(jnp.ones(2), jnp.int32(Status.BOTTOM), {}).hypothesis.tolist()
        [0.0, 0.0]
        """
        shown = jnp.asarray(status, jnp.int32) == Status.OK
        blank = jax.tree.map(lambda leaf: jnp.where(shown, leaf, jnp.zeros_like(leaf)), hypothesis)
        return cls(hypothesis=blank, status=jnp.asarray(status, jnp.int32), info=info)
