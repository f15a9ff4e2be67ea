"""Where trials run: every device of every process, by JAX's own sharding and collectives.

Trials are divided over one mesh axis, `AXIS`, which holds all devices of all processes (`jax.distributed`). A device
computes its share without communicating; only finished sums are combined, in a small separate program. (A
collective inside the long program would wait, under the collectives' time limits, for the slowest device.)

In a run of several processes, each executes the same host program and so calls these functions in the same order.
"""

import functools
import json
import os
import pathlib
import re
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import multihost_utils
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from jaxtyping import Array

AXIS = "trials"
SHARE, ALL = PartitionSpec(AXIS), PartitionSpec()


def mesh() -> Mesh:
    """All devices of all processes, in a row."""
    return Mesh(np.asarray(jax.devices()), (AXIS,))


def threads() -> int:
    """Number of threads that run programs: with one CPU device one per usable core, as a program runs in one thread; otherwise one."""
    if jax.device_count() > 1 or jax.default_backend() != "cpu":
        return 1
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def everywhere(tree: Any) -> Any:
    """The same arrays on every device; each process must hold equal ones."""
    sharding = NamedSharding(mesh(), ALL)
    if jax.process_count() == 1:
        return jax.device_put(tree, sharding)
    return jax.tree.map(
        lambda leaf: jax.make_array_from_callback(leaf.shape, sharding, np.asarray(leaf).__getitem__), tree
    )


def add_up(sums: Any) -> Any:
    """The totals that sums of `halves`, one row per device, represent: Python integers, the same in every process.

    The devices' sums are split once more before they are added, so that up to 2^15 devices cannot overflow a word.
    """

    def join(quarters: np.ndarray) -> np.ndarray:
        half = 2 ** (4 * quarters.dtype.itemsize)
        (upmost, up), (down, downmost) = quarters.astype(object).swapaxes(0, 1)
        return np.asarray((upmost * half + up) * half + (down * half + downmost), dtype=object)

    return jax.tree.map(join, jax.device_get(_add_up(mesh())(sums)))


def gather(rows: Any) -> Any:
    """The whole of an array whose first axis is divided over all devices, in every process."""
    if jax.process_count() == 1:
        return jax.device_get(rows)
    return multihost_utils.process_allgather(rows, tiled=True)


def halves(words: Array) -> Array:
    """(upper, lower) of integers: words = upper 2^b + lower, 0 <= lower < 2^b, for words of 2 b bits."""
    bits = 4 * words.dtype.itemsize
    lower = words & np.asarray(2**bits - 1, words.dtype)
    return jnp.stack([words >> np.asarray(bits, words.dtype), lower])


@functools.cache
def _add_up(mesh: Mesh) -> Any:
    """The program of `add_up`: each device's row is split into halves before rows are added."""

    def added(sums: Any) -> Any:
        return jax.tree.map(lambda leaf: jnp.sum(halves(leaf), axis=1, dtype=leaf.dtype), sums)

    return jax.jit(added, out_shardings=NamedSharding(mesh, ALL))


# ----------------------------------------------------------------------------------------------------- agreement


def lead() -> bool:
    """Whether this process is the one that keeps records and draws pictures: the first."""
    return jax.process_index() == 0


def least(number: int) -> int:
    """The least of the processes' numbers."""
    return number if jax.process_count() == 1 else int(np.min(multihost_utils.process_allgather(np.int32(number))))


def as_the_first(value: Any) -> Any:
    """The first process's JSON data, in every process."""
    if jax.process_count() == 1:
        return value
    text = json.dumps(value).encode() if lead() else b""
    (length,) = _from_the_first(np.asarray([len(text)], np.uint32))
    words = np.zeros(1 << int(length // 4).bit_length(), np.uint32)  # a power of two, so that few programs are compiled
    words.view(np.uint8)[: len(text)] = np.frombuffer(text, np.uint8)
    return json.loads(_from_the_first(words).tobytes()[:length])


def _from_the_first(words: np.ndarray) -> np.ndarray:
    return np.asarray(multihost_utils.broadcast_one_to_all(words))


# -------------------------------------------------------------------------------------------------------- memory


def free_bytes() -> int:
    """Bytes that a program on one device may still take, as reported by the device or the operating system."""
    device = jax.local_devices()[0]
    if device.platform != "cpu":
        stats = device.memory_stats()
        return stats["bytes_limit"] - stats["bytes_in_use"]
    sharers = max(threads(), jax.local_device_count())
    return min(_available(), _left_to_this_group()) // sharers


def _available() -> int:
    """Bytes of memory available without swapping; where the system does not report this (not Linux), all of its memory."""
    meminfo = pathlib.Path("/proc/meminfo")
    if meminfo.is_file() and (found := re.search(r"MemAvailable:\s+(\d+) kB", meminfo.read_text())):
        return 1024 * int(found[1])
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def _left_to_this_group() -> int:
    """Bytes left under the limit of the control group a container runs in, if there is one."""
    group = pathlib.Path("/sys/fs/cgroup")
    try:
        limit = int((group / "memory.max").read_text())
        used = int((group / "memory.current").read_text())
        cache = re.search(r"^inactive_file (\d+)", (group / "memory.stat").read_text(), re.MULTILINE)
    except (OSError, ValueError):  # no such group, or "max"
        return 2**63
    return max(0, limit - used + (int(cache[1]) if cache else 0))
