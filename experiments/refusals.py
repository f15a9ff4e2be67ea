"""Refusals, which the command line answers with one line: runs that cannot begin as they were requested.

Only what is checked before anything is measured is refused. An error later is an error of the program and keeps its traceback.
"""

import contextlib
from collections.abc import Iterator


class Refused(ValueError):
    """Raised for a run that cannot begin; the message says all that there is to know."""


@contextlib.contextmanager
def refusing() -> Iterator[None]:
    """Refuses what the checks inside find wrong.

    Raises:
        Refused: a ValueError or TypeError inside, with its message.
    """
    try:
        yield
    except (ValueError, TypeError) as error:
        raise Refused(str(error)) from error
