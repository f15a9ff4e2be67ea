"""Loops of many short turns on a CPU: compiled whole, where XLA would start each of their operations by itself."""

import os
from importlib import metadata

# That a loop touches: more than those of a block of trials usually do, less than what would gain from several threads.
MOST_BYTES = 3 * 2**20

_EXTRA = "--xla_backend_extra_options="
_THRESHOLD = "xla_cpu_small_while_loop_byte_threshold"


def enable_loop_kernels() -> None:
    """Has XLA compile every loop that touches at most 3 MB to one kernel of the CPU, as it does by itself from jaxlib 0.12 on.

    Before, its runtime starts the operations of each turn one by one, and allocates and locks for each: of a turn that takes a microsecond
    that is most, and threads wait for each other. Only very small loops are spared that. With this, trials that walk or search take half
    as long, and numbers stay the same, but for last digits perhaps. A kernel runs in one thread: nothing is lost where trials fill all
    cores, but a program of one loop over arrays of a megabyte may take longer.

    It is a flag of the process ($XLA_FLAGS), read when JAX computes for the first time: call it before. It holds for all that JAX compiles
    for a CPU there, and for nothing elsewhere. What XLA_FLAGS says about these loops already stands.

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
    # Options beside it are said in the same flag, parted by commas.
    os.environ["XLA_FLAGS"] = flags.replace(_EXTRA, f"{option},") if _EXTRA in flags else f"{flags} {option}".strip()


def _does_so_by_itself(version: str) -> bool:
    return tuple(int(part) for part in version.split(".")[:2]) >= (0, 12)
