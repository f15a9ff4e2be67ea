"""Several processes, on one machine or many, run one experiment together: `jax.distributed`, with messages for what goes wrong.

If a process loses the others, JAX ends it from C++, at once and with a stack trace. A small child process therefore holds
this process's last words and prints them when this process is gone.
"""

import dataclasses
import os
import re
import subprocess
import sys

import jax
import numpy as np
from jax.experimental import multihost_utils

from dpjax.core import arguments

HEARTBEAT_SECONDS = 30
_STATUS = re.compile("(UNKNOWN|INTERNAL|UNAVAILABLE|ABORTED|CANCELLED|DEADLINE_EXCEEDED|FAILED_PRECONDITION): ")
_SPEAKER = "import sys\nwords = ''\nfor words in sys.stdin: pass\nsys.stderr.write(words.lstrip())"


@dataclasses.dataclass(frozen=True)
class Meeting:
    """Where the processes of a run meet.

    Attributes:
        coordinator: HOST:PORT of process 0; None where a cluster's manager knows it (Slurm, Open MPI: see `jax.distributed.initialize`).
        processes, process: how many there are, and which one this is, from 0.
        seconds: how long to wait for the others.
    """

    coordinator: str | None
    processes: int | None
    process: int | None
    seconds: int


def meeting(coordinator: str | None, processes: int | None, process: int | None, seconds: int) -> Meeting:
    """The meeting by these arguments, with JAX_COORDINATOR_ADDRESS, JAX_NUM_PROCESSES and JAX_PROCESS_ID for those that are None.

    Raises:
        ValueError: a value is out of range, or only some of the three are known.
    """
    coordinator = coordinator or os.environ.get("JAX_COORDINATOR_ADDRESS")
    processes = _number("JAX_NUM_PROCESSES") if processes is None else processes
    process = _number("JAX_PROCESS_ID") if process is None else process
    given = {"--coordinator": coordinator, "--processes": processes, "--process-id": process}
    missing = [name for name, value in given.items() if value is None]
    if 0 < len(missing) < 3:
        raise ValueError(f"--distributed needs {', '.join(given)} or none of them; missing: {', '.join(missing)}")
    if coordinator is not None:
        _, _, port = coordinator.rpartition(":")
        if not (port.isdigit() and 0 < int(port) < 2**16):
            raise ValueError(f"--coordinator must be HOST:PORT, got {coordinator!r}")
        arguments.integer(
            "--process-id", process, at_least=0, at_most=arguments.integer("--processes", processes, at_least=1) - 1
        )
    return Meeting(coordinator, processes, process, arguments.integer("--timeout", seconds, at_least=1))


def _number(variable: str) -> int | None:
    """An environment variable as an integer, if it is set."""
    text = os.environ.get(variable)
    if text is None:
        return None
    if not text.isdigit():
        raise ValueError(f"{variable} must be a number, got {text!r}")
    return int(text)


class LastWords:
    """What is printed on standard error if this process ends without `close`."""

    def __init__(self) -> None:
        # The child has its own session, because Ctrl-C is meant for this process, not for the child.
        self._child = subprocess.Popen(
            [sys.executable, "-S", "-c", _SPEAKER], stdin=subprocess.PIPE, text=True, bufsize=1, start_new_session=True
        )

    def prepare(self, words: str) -> None:
        """Makes these the last words from now on."""
        assert self._child.stdin is not None
        self._child.stdin.write(" ".join(words.split()) + "\n")

    def close(self) -> None:
        """Ends the child; no words are needed any more."""
        self._child.communicate("\n")

    def __enter__(self) -> "LastWords":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def lost(error: Exception) -> bool:
    """Whether an error says that a collective failed, and so that another process is gone. (JAX has several classes for it.)"""
    return isinstance(error, jax.errors.JaxRuntimeError) or _STATUS.match(str(error)) is not None


def join(place: Meeting, words: LastWords) -> None:
    """Meets the others; afterwards `jax.devices()` are the devices of all.

    Raises:
        ValueError: the processes do not agree on how many they are.
    """
    where = place.coordinator or "the coordinator"
    words.prepare(
        f"error: the processes of this run did not meet at {where} within {place.seconds} s: is process 0 there, do all "
        f"{place.processes or ''} run, with the same --processes and each its own --process-id? Nothing was written."
    )
    jax.distributed.initialize(
        place.coordinator,
        place.processes,
        place.process,
        initialization_timeout=place.seconds,
        heartbeat_timeout_seconds=HEARTBEAT_SECONDS,
    )
    # The first collective also connects all devices, now that every process is here.
    asked = multihost_utils.process_allgather(np.int32(place.processes or jax.process_count()))
    if len(set(asked.tolist())) > 1:
        raise ValueError(f"--processes must be the same for all processes, got {asked.tolist()}")
