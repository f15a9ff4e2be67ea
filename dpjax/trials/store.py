"""An append-only store of results: what was stored is never lost, and a resumed run repeats it exactly.

One file, `records.jsonl`, in an output directory. Its first line says which run this is; each other line is
one result. A line is JSON and carries a checksum, and is appended by one write followed by fsync. A process
killed at any moment thus leaves whole lines and at most one torn last line, which the next `resume` drops:
the work in flight is lost, nothing else. Numbers are written so that they are read back to the last bit.

An experiment requests its results only through `Store.get_or_compute`, in an order that depends on nothing
but earlier results. Then a resumed run takes the same path, first through what is stored, and ends the same.
"""

import contextlib
import hashlib
import json
import os
import pathlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

FORMAT = 1
FILE = "records.jsonl"
_ABSENT = "(absent)"
_UNBORN = FILE + ".new"  # a header being written; renamed once it is whole


class Store:
    """Results of one run, by key; made by `open_store`, used as a context manager."""

    def __init__(self, path: pathlib.Path, records: dict[str, Any], size: int, lock: int):
        self._records = records
        self._size = size
        self._lock = lock
        self._file = open(path, "ab", buffering=0)  # noqa: SIM115 (closed by close)

    def get_or_compute(self, key: Mapping[str, Any], compute: Callable[[], Any]) -> Any:
        """The stored result under `key`; if there is none, `compute()`, safely on disk before it is returned.

        Args:
            key: JSON data: what identifies the result within the run.
            compute: returns JSON data; NumPy scalars and arrays become numbers and lists.

        Returns:
            The result as read back from its JSON, so that a first and a resumed run see the same types.

        Raises:
            TypeError: key or result is not JSON data, or something in the key is named by other than text.
            OSError: writing to the disk failed; the store is as before the call.
        """
        name = name_of(key)
        if name not in self._records:
            value = round_trip(compute())
            self._append(_line({"key": json.loads(name), "value": value}))
            self._records[name] = value
        return round_trip(self._records[name])  # a copy: callers may alter what they get

    def __contains__(self, key: Mapping[str, Any]) -> bool:
        return name_of(key) in self._records

    def __len__(self) -> int:
        return len(self._records)

    def records(self) -> Iterator[tuple[Any, Any]]:
        """(key, value) of every result, in the order stored."""
        for name, value in self._records.items():
            yield json.loads(name), round_trip(value)

    def close(self) -> None:
        """Closes the file and releases the directory to other processes."""
        self._file.close()
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1

    def __del__(self) -> None:
        if hasattr(self, "_file"):  # otherwise it was never opened, and whoever took the lock releases it
            self.close()

    def __reduce__(self) -> Any:
        # A copy would share the descriptors: closing either would release the lock for both.
        rule = "close it, and open its directory again by open_store(..., resume=True)"
        raise TypeError(f"a store holds the lock of its directory, and is not copied or pickled: {rule}")

    def __enter__(self) -> "Store":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _append(self, line: bytes) -> None:
        """Adds a line, wholly or not at all."""
        try:
            written = self._file.write(line)
            if written != len(line):
                raise OSError(f"only {written} of {len(line)} bytes could be written to {self._file.name}")
            os.fsync(self._file.fileno())
        except BaseException:
            os.ftruncate(self._file.fileno(), self._size)  # otherwise the next line would be glued to a torn one
            raise
        self._size += len(line)


def open_store(directory: str | os.PathLike[str], identity: Mapping[str, Any], *, resume: bool = False) -> Store:
    """Opens an output directory for one run; refuses one that holds something else, and leaves it as it was.

    Args:
        directory: created if absent. Without `resume` it must be absent or empty.
        identity: JSON data that says which run this is (experiment, preset, parameters, seed, ...): a
            directory is resumed only by a run of equal identity.
        resume: continue the run stored there, if any; a torn last line, left by a killed process, is dropped.

    Returns:
        Store, to be closed (use `with`). Until then no other process can open the directory.

    Raises:
        TypeError: identity is not a dict of JSON data.
        ValueError: the directory cannot be created or read; or it is not empty and resume is false; or it holds something other than a run,
            another run (the message says which fields differ), or damaged records. Nothing is changed.
        BlockingIOError: another process is writing there.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as directory:
        ...     with open_store(directory, {"seed": 1}) as store:
        ...         _ = store.get_or_compute({"n": 10}, lambda: {"failure": 0.1})
        ...     with open_store(directory, {"seed": 1}, resume=True) as store:
        ...         print(store.get_or_compute({"n": 10}, lambda: "not called again"))
        {'failure': 0.1}
    """
    if not isinstance(identity, Mapping):
        raise TypeError(f"identity must be a dict, got {identity!r}")
    header = {"format": FORMAT, "identity": round_trip(dict(identity))}
    directory = pathlib.Path(directory)
    try:
        if directory.exists() and not directory.is_dir():
            raise ValueError(f"a store must be a directory, got the file {directory}")
        if directory.is_dir():  # before the lock too: a plain refusal should not depend on who else is there
            _check_usable(directory, resume)
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ValueError(f"directory must be one that can be created and read, got {directory}: {error}") from error
    with contextlib.ExitStack() as undo:
        lock = _lock(directory)
        undo.callback(os.close, lock)
        _check_usable(directory, resume)
        path = directory / FILE
        if not path.exists():
            _begin(directory, _line(header))
        content = path.read_bytes()
        records, size = _read(content, header, directory)
        if size < len(content):
            os.truncate(path, size)
        store = Store(path, records, size, lock)
        undo.pop_all()
    return store


def _check_usable(directory: pathlib.Path, resume: bool) -> None:
    """ValueError unless the directory is empty, or holds a run and may be resumed."""
    names = {entry.name for entry in directory.iterdir()}
    if names and not resume:
        raise ValueError(f"directory must be empty or absent unless resume is set, got {directory} with {_some(names)}")
    if names - {_UNBORN} and FILE not in names:
        raise ValueError(f"directory must hold a run ({FILE}) to be resumed, got {directory} with {_some(names)}")


def _some(names: set[str]) -> str:
    """A few names, for a message."""
    return ", ".join(sorted(names)[:3]) + (", ..." if len(names) > 3 else "")


def _lock(directory: pathlib.Path) -> int:
    """A descriptor that holds the directory's lock; the kernel releases it when its process dies."""
    import fcntl  # POSIX only: here, so that importing this module works elsewhere

    descriptor = os.open(directory, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        who = "another process (wait for it or stop it), or by a store of this one that was not closed"
        raise BlockingIOError(f"directory {directory} is in use by {who}") from None
    return descriptor


def _begin(directory: pathlib.Path, header: bytes) -> None:
    """Writes the first line to a file of another name, then renames it: `FILE` never exists without its first line."""
    with open(directory / _UNBORN, "wb") as file:
        file.write(header)
        file.flush()
        os.fsync(file.fileno())
    os.rename(directory / _UNBORN, directory / FILE)
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)  # the name itself
    finally:
        os.close(descriptor)


def _read(content: bytes, header: Any, directory: pathlib.Path) -> tuple[dict[str, Any], int]:
    """Records by key, and how many bytes of the file are whole lines."""
    *lines, torn = content.split(b"\n")
    stored = [_parse(line) for line in lines]
    if not stored or stored[0] is None:
        raise ValueError(f"directory {directory} holds no run: the first line of {FILE} is damaged")
    if differing := _differences(stored[0], header):
        raise ValueError(f"directory {directory} holds another run: {'; '.join(differing)}")
    records: dict[str, Any] = {}
    for number, record in enumerate(stored[1:], 2):
        if not isinstance(record, dict) or record.keys() != {"key", "value"}:
            place = f"line {number} of {FILE} is not as written"
            raise ValueError(f"directory {directory} holds a damaged run: {place}")
        records[as_json(record["key"])] = record["value"]
    return records, len(content) - len(torn)


def _line(record: Any) -> bytes:
    """A record as a line of JSON with its checksum."""
    text = as_json(record)
    check = hashlib.blake2b(text.encode(), digest_size=8).hexdigest()
    return f'{{"check":"{check}","record":{text}}}\n'.encode()


def _parse(line: bytes) -> Any:
    """The record of a line (without its newline), or None unless the line is exactly what was written."""
    try:
        record = json.loads(line)["record"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    return record if _line(record) == line + b"\n" else None


def _differences(stored: Any, asked: Any, where: str = "") -> list[str]:
    """Where two pieces of JSON data differ, one phrase per place."""
    if isinstance(stored, dict) and isinstance(asked, dict):
        fields = sorted(stored.keys() | asked.keys())
        pairs = [(stored.get(field, _ABSENT), asked.get(field, _ABSENT)) for field in fields]
        names = [f"{where}.{field}".removeprefix(".").removeprefix("identity.") for field in fields]
        return [phrase for pair, name in zip(pairs, names, strict=True) for phrase in _differences(*pair, name)]
    same = as_json(stored) == as_json(asked)  # as text: NaN equals NaN, 1 is not 1.0
    return [] if same else [f"{where} is {stored!r} there, {asked!r} here"]


def name_of(key: Any) -> str:
    """The JSON of a key; TypeError if it names something by other than text: JSON would make text of it, and 1 would be "1"."""
    parts = [key]
    while parts:
        part = parts.pop()
        if isinstance(part, Mapping):
            parts.extend(part.values())
            for name in part:
                if not isinstance(name, str):
                    raise TypeError(f"key must name what it holds by text, as JSON does, got {name!r} in {key!r}")
        elif isinstance(part, list | tuple):
            parts.extend(part)
    return as_json(key)


def as_json(data: Any) -> str:
    """Canonical JSON: equal data give equal text, and floats come back to the last bit (repr)."""
    return json.dumps(data, sort_keys=True, separators=(",", ":"), default=_plain)


def _plain(value: Any) -> Any:
    """NumPy (and JAX) numbers and arrays as numbers and lists."""
    if isinstance(value, np.generic):
        return value.item()
    if hasattr(value, "__array__"):
        return np.asarray(value).tolist()
    raise TypeError(f"must be JSON data, got {value!r} of type {type(value).__name__}")


def round_trip(data: Any) -> Any:
    """The data as it will be read back."""
    return json.loads(as_json(data))
