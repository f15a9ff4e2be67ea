"""What a learner returns: a hypothesis, a status code that traced values can carry, and what is worth knowing of the run."""

import enum
from typing import Any

from jaxtyping import Array, Int

from dpjax.core.pytree import frozen


class Status(enum.IntEnum):
    """Why an outcome is, or is not, to be used. An `IntEnum`, so traced codes compare with it."""

    OK = 0
    BOTTOM = 1
    OUTSIDE_DOMAIN = 2

    @property
    def message(self) -> str:
        """One sentence for people.

        >>> Status(1).message
        'the mechanism returned bottom: it found no answer stable enough to release'
        """
        return _MESSAGES[self]


_MESSAGES = {
    Status.OK: "a hypothesis was released",
    Status.BOTTOM: "the mechanism returned bottom: it found no answer stable enough to release",
    Status.OUTSIDE_DOMAIN: "the sample holds a point outside the domain or a label other than 0 and 1",
}


@frozen
class Outcome:
    """The result of one run of a learner.

    Attributes:
      hypothesis: what was learned; arbitrary unless `status` is `Status.OK`.
      status: a `Status` code, int32.
      info: what else the run tells (a dict of arrays); NOT covered by the privacy guarantee.
    """

    hypothesis: Any
    status: Int[Array, ""]
    info: Any
