"""Loops of many short turns on a CPU: compiled as a whole, where XLA would start each of their operations separately."""

import os
from importlib import metadata

# The most that a loop touches: more than the loops of a block of trials usually do, less than loops that would gain from several threads.
MOST_BYTES = 3 * 2**20

_EXTRA = "--xla_backend_extra_options="
_THRESHOLD = "xla_cpu_small_while_loop_byte_threshold"


def enable_loop_kernels() -> None:
    """Has XLA compile every loop that touches at most 3 MiB to one kernel of the CPU, as it does by itself from jaxlib 0.12 on.

    Older versions start the operations of each turn one by one, and allocate and lock for each. In a turn that takes a microsecond this
    is most of the time, and threads wait for each other; only very small loops are spared. With this flag, trials that walk or search take
    half as long, and numbers stay the same, except perhaps for last digits. A kernel runs in one thread: nothing is lost where trials fill
    all cores, but a program of one loop over arrays of a megabyte may take longer.

    It is a flag of the process ($XLA_FLAGS), read when JAX computes for the first time, so call this function before. It applies to all
    that JAX compiles for a CPU in this process, and to nothing else. If XLA_FLAGS already sets it, that setting stands.

    >>> before = os.environ.get("XLA_FLAGS", "")
    >>> enable_loop_kernels()
    >>> before in os.environ.get("XLA_FLAGS", "")  # other flags stay
    True
    >>> os.environ["XLA_FLAGS"] = before
    """
    flags = os.environ.get("XLA_FLAGS", "")
    if _THRESHOLD in flags or _does_so_by_itself(metadata.version("jaxlib")):
        return
    option = f"{_EXTRA}{_THRESHOLD}={MOST_BYTES}"
    # Other such options share the flag, separated by commas.
    os.environ["XLA_FLAGS"] = flags.replace(_EXTRA, f"{option},") if _EXTRA in flags else f"{flags} {option}".strip()


def _does_so_by_itself(version: str) -> bool:
    return tuple(int(part) for part in version.split(".")[:2]) >= (0, 12)
