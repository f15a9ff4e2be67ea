"""One store for a run of several processes: the first process keeps it, and sends the others what it holds.

Every process takes the same path, because each result it sees is the first process's: read from the store, or computed
by all together (the counts inside are collectives) and then taken from the first.
"""

import contextlib
import os
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from dpjax.trials import devices
from dpjax.trials.store import Store, name_of, open_store, round_trip


class Keeper(Protocol):
    """What experiments require of a store."""

    def get_or_compute(self, key: Mapping[str, Any], compute: Callable[[], Any]) -> Any:
        """The stored result under `key`; if there is none, `compute()`, stored before it is returned."""

    def __contains__(self, key: Mapping[str, Any]) -> bool: ...


class Memory:
    """A `Keeper` that forgets everything when the program ends, for short runs."""

    def __init__(self) -> None:
        self._records: dict[str, Any] = {}

    def get_or_compute(self, key: Mapping[str, Any], compute: Callable[[], Any]) -> Any:
        """As `Store.get_or_compute`.

        >>> memory = Memory()
        >>> [memory.get_or_compute({"n": 1}, lambda value=value: value) for value in ("first", "second")]
        ['first', 'first']
        """
        name = name_of(key)
        if name not in self._records:
            self._records[name] = round_trip(compute())
        return round_trip(self._records[name])

    def __contains__(self, key: Mapping[str, Any]) -> bool:
        return name_of(key) in self._records


class SharedStore:
    """A `Keeper` in each process; `store` is the first process's, None in the others."""

    def __init__(self, store: Store | None):
        self._store = store

    def get_or_compute(self, key: Mapping[str, Any], compute: Callable[[], Any]) -> Any:
        """As `Store.get_or_compute`, with the first process's answer in every process."""
        known = devices.as_the_first(key in self)
        if self._store is not None:
            return devices.as_the_first(self._store.get_or_compute(key, compute))
        if not known:
            compute()  # its collectives need this process; the answer is the first's
        return devices.as_the_first(None)

    def __contains__(self, key: Mapping[str, Any]) -> bool:
        return self._store is not None and key in self._store


@contextlib.contextmanager
def open_shared(directory: str | os.PathLike[str], identity: Mapping[str, Any], *, resume: bool) -> Any:
    """`open_store` in the first of this run's processes; an error there is raised in all of them.

    Raises:
        ValueError: as `open_store`; or the processes do not run the same thing.
    """
    mine = round_trip(dict(identity))  # tuples become lists, as they do on the way from the first process
    if not devices.least(int(devices.as_the_first(mine) == mine)):
        raise ValueError(f"all processes must run the same thing, of the same versions; this one runs {mine}")
    store, refusal = None, None
    if devices.lead():
        try:
            store = open_store(directory, identity, resume=resume)
        except (ValueError, OSError) as error:
            refusal = str(error)
    if refusal := devices.as_the_first(refusal):
        raise ValueError(refusal)
    with contextlib.nullcontext() if store is None else store:
        yield SharedStore(store)
