"""The batched engine: many independent trials of one function, counted exactly by one compiled program.

A trial is a pure function `run(key, params)` of an explicit key. Trial t of cell c draws everything from

    fold_in(fold_in(root, c), t),

so its outcome is a function of (root, c, t, params) alone: it does not depend on how trials are cut into chunks,
on the number of threads, or on the point where a killed run was resumed. Trial t always runs in lane t mod `batch`
of block t // `batch`, so not even the last bit of a float depends on the cut.

Everything people sweep is traced: the leaves of `params`, the cell, the range of trials. What must be static
(a capacity, a limb count) belongs in the static fields of a `core.pytree.frozen` dataclass inside `params`;
it is then part of the compiled program, and the only reason for another one. Pad samples to
`dpjax.data.sample.bucket(n)` and pass n as data: one program then serves every n of a bucket.

Blocks are small enough to stay in the processor's cache, and pieces run in one thread per core. Measured on two
cores, sorting 1000 random words takes 24 to 32 microseconds per trial in one thread, 13 in two with 64 to 1024
trials per block, but 37 in two with 4096, which no longer fit. Where there is more than a single CPU device, each
step gives every device of every process (`devices`) a piece; every process must then make the same calls.

Memory does not grow with the number of trials. A block whose program (by the compiler's own account) does not
fit into the device's free memory is halved, and so is one that runs out of memory all the same; a
RuntimeWarning says so. Another block size gives the same trials, though the last bits of their floats may differ.
"""

import collections
import concurrent.futures
import functools
import importlib.metadata
import operator
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import Mesh
from jaxtyping import Array, Bool, Int, UInt, UInt32

from dpjax.core import arguments, staging
from dpjax.trials import devices, footprint

Run = Callable[[Array, Any], Any]
Report = Callable[[int], None]
Signature = tuple[Any, ...]  # what decides which program is compiled

_COMPUTING = ("jax", "jaxlib", "numpy", "scipy", "dp-accounting")

# Half-words of at most 2^15 trials add up in the word's own type: (2^16 - 1) 2^15 < 2^31.
MOST_TRIALS_A_PIECE = 2**15
TRIALS_A_CELL = 2**32  # fold_in takes 32 bits

_CACHE_BYTES = 2**20  # about the second cache of a core
_FEW_LANES, _FEW_ROOMS = 16, 2  # with fewer, starting an operation on a CPU costs more than a cache saves
_SPLIT_ROOMS = 128  # vector instructions nearly always save more than leaving the cache costs; measured up to 72
_MOST_LANES = {"cpu": 1024}
_PIECES_A_WORKER = 4  # so that a slow piece at the end does not leave the other threads idle for long
_OUT_OF_MEMORY = ("RESOURCE_EXHAUSTED", "Out of memory")  # the status in newer versions of XLA; a text in older ones
_SHARE_OF_MEMORY = 2  # a program may take one half of what is free: others use the device too


def width() -> dict[str, bool]:
    """What the key of a stored result records about floats and JAX's random words: nothing where both are at their defaults.

    With 64-bit floats, draws and digits differ; with `jax_threefry_partitionable` off, the random words differ.

    >>> width()
    {}
    """
    wide = {"x64": True} if jnp.result_type(float) == jnp.float64 else {}
    return wide if getattr(jax.config, "jax_threefry_partitionable", True) else {**wide, "partitionable": False}


@functools.cache
def versions() -> dict[str, str]:
    """Versions, by name, of dpjax and the packages that may change a digit: where they differ, a stored result is another one.

    >>> sorted(versions())
    ['dp-accounting', 'dpjax', 'jax', 'jaxlib', 'numpy', 'scipy']
    """
    others = {package: importlib.metadata.version(package) for package in _COMPUTING}
    return {"dpjax": sys.modules["dpjax"].__version__, **others}  # the version of the code, installed or not


def root_key(seed: int) -> Array:
    """The root key of a run: the threefry generator, whose draws do not change under vmap.

    Args:
        seed: from 0 to 2^32 - 1.

    Raises:
        TypeError: `seed` is not an integer.
        ValueError: `seed` is out of range.

    >>> str(jax.random.key_impl(root_key(7)))
    'threefry2x32'
    """
    return jax.random.key(arguments.integer("seed", seed, at_least=0, at_most=2**32 - 1), impl="threefry2x32")


_BYTES: dict[Signature, int] = {}
_ROOT = jax.ShapeDtypeStruct((2,), jnp.uint32)  # the words of a root key


def count(
    run: Run,
    params: Any,
    *,
    root: Array,
    cell: int,
    trials: int,
    first: int = 0,
    batch: int | None = None,
    report: Report | None = None,
) -> Any:
    """Sums of integer outcomes over trials first, ..., first + trials - 1 of a cell.

    sum_t run(fold_in(fold_in(root, cell), t), params), exactly: counters are added as integers, in halves
    that cannot overflow on the device and as Python integers on the host.

    Compiled once for each (run, shapes, dtypes and static fields of params, batch). `run` is recognised by
    equality: pass the same function object again, not a new lambda, and give numbers through `params`.

    Args:
        run: pure; `run(key, params)` returns a pytree of integer or boolean arrays (or scalars), the
            counters.
        params: pytree of numbers and arrays; Python numbers become arrays of the default dtypes.
        root: a typed threefry key, as from `root_key`.
        cell: which cell of the experiment's grid, from 0 to 2^32 - 1; cells are independent.
        trials: how many, at least 1; first + trials <= 2^32 (for more, use another cell).
        first: number of the first trial.
        batch: trials in one block, 1 to 2^15; by default as many as keep the block in cache.
        report: called by this thread, as parts complete, with the number of trials done since the last call.

    Returns:
        The pytree of sums: Python ints for scalar counters, int64 NumPy arrays for others.

    Raises:
        TypeError: `run` is not hashable, or returns something other than integers or booleans; `root` is not
            a typed key.
        ValueError: a number is out of range, or an integer leaf of params does not fit its dtype.
        OverflowError: the sum of an array of counters does not fit 64 bits.

    Example:
        >>> def coin(key, p):
        ...     return jax.random.uniform(key) < p
        >>> heads = count(coin, 0.25, root=root_key(0), cell=0, trials=10_000)
        >>> 2300 < heads < 2700
        True
        >>> parts = [count(coin, 0.25, root=root_key(0), cell=0, first=t, trials=5000) for t in (0, 5000)]
        >>> sum(parts) == heads
        True
    """
    root_words, cell_word = _check_key(root), _check_cell(cell)
    last = _check_range(first, trials)
    params = tree_of_arrays(params)
    traceable = _traceable(run)
    mesh = devices.mesh()
    given = devices.everywhere(params)
    build = functools.partial(_counting, traceable, given)

    def steps(program: Any, lanes: int, first: int) -> Iterator[tuple[int, Any]]:
        def work(step: np.ndarray) -> Any:
            return jax.block_until_ready(program(root_words, cell_word, step, given))

        for step, sums in _in_parallel(work, _steps(first, last, lanes, mesh.size)):
            yield int((step[:, 2] - step[:, 1]).sum()), devices.add_up(sums)

    if report is not None:
        arguments.function("report", report)
    total: Any = None
    lanes = _check_batch(batch) or default_batch(run, params)
    for amount, part in _fitting(build, steps, first, lanes, ("sums", traceable, *_shapes_of(params), mesh)):
        total = part if total is None else jax.tree.map(np.add, total, part)
        if report is not None:
            report(amount)
    return jax.tree.map(_plain, total)


def evaluate(
    run: Run,
    params: Any,
    *,
    root: Array,
    cell: int,
    draws: int,
    first: int = 0,
    batch: int = 8,
    report: Report | None = None,
) -> Any:
    """Outcomes, one by one, of draws first, ..., first + draws - 1 of a cell: exact laws over data draws.

    The keys are those of `count`. Draw t runs in lane t mod batch of the same compiled block, whatever range
    is requested, so a resumed run gets the same floats to the last bit. Another `batch` may round differently:
    keep it fixed.

    Args:
        run: pure; `run(key, params)` returns a pytree of arrays, such as the exact failure probability on one
            sample.
        params, root, cell, report: as for `count`.
        draws: how many, at least 1; first + draws <= 2^32.
        first: number of the first draw.
        batch: draws in one block. Whole blocks are computed: with 8, requesting 9 draws costs 16.

    Returns:
        The pytree of NumPy arrays, draws along the first axis.

    Raises:
        TypeError: `run` is not hashable; `root` is not a typed key.
        ValueError: a number is out of range, or an integer leaf of params does not fit its dtype.

    Example:
        >>> def failure(key, scale):
        ...     return scale * jax.random.uniform(key)
        >>> whole = evaluate(failure, 1.0, root=root_key(0), cell=3, draws=20)
        >>> tail = evaluate(failure, 1.0, root=root_key(0), cell=3, first=13, draws=7)
        >>> bool((whole[13:] == tail).all())
        True
    """
    root_words, cell_word = _check_key(root), _check_cell(cell)
    last = _check_range(first, draws, "draws")
    if report is not None:
        arguments.function("report", report)
    traceable = _traceable(run)
    mesh = devices.mesh()
    params = tree_of_arrays(params)
    given = devices.everywhere(params)
    starts = np.zeros(mesh.size, np.uint32)

    def build(lanes: int) -> Any:
        with staging.uncollected(), jax.disable_jit(False):
            lowered = _blocks.lower(traceable, root_words, cell_word, starts, given, lanes=lanes, mesh=mesh)
        return lowered.compile(staging.compiled_fast())

    def steps(program: Any, lanes: int, first: int) -> Iterator[tuple[int, Any]]:
        def work(start: int) -> Any:
            starts = np.uint32(start) + lanes * np.arange(mesh.size, dtype=np.uint32)
            return jax.block_until_ready(program(root_words, cell_word, starts, given))

        size = lanes * mesh.size
        for start, rows in _in_parallel(work, range(first - first % lanes, last, size)):
            wanted = slice(max(first - start, 0), min(last - start, size))
            yield wanted.stop - wanted.start, jax.tree.map(operator.itemgetter(wanted), devices.gather(rows))

    blocks = []
    signature = ("blocks", traceable, *_shapes_of(params), mesh)
    for amount, block in _fitting(build, steps, first, _check_batch(batch) or 1, signature):
        blocks.append(block)
        if report is not None:
            report(amount)
    return jax.tree.map(lambda *parts: np.concatenate(parts), *blocks)


def default_batch(run: Run, params: Any) -> int:
    """Default number of trials in a block: the largest power of two, up to 1024, whose largest operation touches at most 1 MiB.

    On a CPU up to 16 trials may touch 2 MiB, and one trial per thread 128 MiB: XLA divides a large array among its threads, between
    trials where there are enough of them; where it has to divide rows, of which samples have an odd number, it works without vector
    instructions. On accelerators the limit is a sixteenth of the device's memory, and a block has at most 2^15 trials.
    """
    lane_bytes = max(1, _bytes_a_lane(_traceable(run), *_shapes_of(tree_of_arrays(params))))
    device = jax.local_devices()[0]
    room = _room(device)
    lanes = min(room // lane_bytes, _MOST_LANES.get(device.platform, MOST_TRIALS_A_PIECE))
    if device.platform == "cpu":
        one_a_thread = 1 << (devices.threads() - 1).bit_length()
        split = one_a_thread if one_a_thread * lane_bytes <= _SPLIT_ROOMS * room else 1
        lanes = max(lanes, split, min(_FEW_LANES, _FEW_ROOMS * room // lane_bytes))
    return 1 << (max(1, lanes).bit_length() - 1)


def traffic(run: Run, params: Any, *, batch: int | None = None) -> float:
    """Bytes of memory that the program of `count` reads and writes per trial, by the compiler's own account.

    Operations that the compiler has fused count as one. The body of a loop counts once where the number of iterations is data, and
    accesses to caches count as memory.

    Args:
        run, params, batch: as for `count`.

    Raises:
        RuntimeError: the compiler gives no account.

    Example:
        >>> def largest(key, n):
        ...     return jnp.sort(jax.random.bits(key, (1024,)))[n]
        >>> traffic(largest, 5, batch=8) > 4096
        True
    """
    lanes = _check_batch(batch) or default_batch(run, params)
    program = _counting(_traceable(run), devices.everywhere(tree_of_arrays(params)), lanes)
    account = program.cost_analysis() or {}
    if "bytes accessed" not in account:
        raise RuntimeError(f"the compiler for {jax.default_backend()!r} gives no account of bytes")
    return float(account["bytes accessed"]) / lanes


def outcome_structure(run: Run, params: Any) -> Any:
    """The tree structure of what `run` returns, without running it."""
    return jax.tree.structure(outcome_shapes(run, params))


def outcome_shapes(run: Run, params: Any) -> Any:
    """The shapes and dtypes of what `run` returns, with a leading axis of length 1 per device, without running it."""
    return _one.eval_shape(_traceable(run), _ROOT, tree_of_arrays(params), mesh=devices.mesh())


def tree_of_arrays(params: Any) -> Any:
    """`params` with strongly typed arrays as leaves: a float and a NumPy scalar then share one program."""
    return jax.tree.map(_array, params)


def _fitting(
    build: Callable[[int], Any],
    steps: Callable[[Any, int, int], Iterable[tuple[int, Any]]],
    first: int,
    lanes: int,
    signature: Signature,
) -> Iterator[tuple[int, Any]]:
    """(trials done, result) of each of steps(program, lanes, first), with as many of the lanes as fit into memory."""
    lanes = devices.least(lanes)
    while True:
        program, lanes = _compiled(build, lanes, signature)
        try:
            for amount, result in steps(program, lanes, first):
                yield amount, result
                first += amount
            return
        except jax.errors.JaxRuntimeError as error:
            # Other processes cannot know that this one failed: if there are any, the run ends, to be resumed.
            full = any(sign in str(error) for sign in _OUT_OF_MEMORY)
            if not full or lanes == 1 or jax.process_count() > 1:
                raise
            lanes = _halved(lanes, f"ran out of memory ({str(error).splitlines()[0]})")


def _compiled(build: Callable[[int], Any], lanes: int, signature: Signature) -> tuple[Any, int]:
    """(The program with the most lanes, up to `lanes`, that fits into memory by the compiler's account, its lanes); MemoryError if none."""
    while True:
        # Compiled here: worker threads do not see this thread's jax.config contexts and would trace anew.
        program = build(lanes)
        need, room = _bytes(program, (*signature, lanes)), devices.free_bytes() // _SHARE_OF_MEMORY
        fits = devices.least(int(need <= room))
        if fits:
            return program, lanes
        if lanes == 1:
            raise MemoryError(f"one trial needs {need} bytes and the device has room for {room}; make it smaller")
        lanes = _halved(lanes, f"needs {need} bytes where the device has room for {room}")


def _counting(traceable: Run, given: Any, lanes: int) -> Any:
    """The compiled program of `count`; a second call finds it in JAX's cache."""
    mesh = devices.mesh()
    bounds = np.zeros((mesh.size, 3), np.uint32)
    with staging.uncollected(), jax.disable_jit(False):
        lowered = _sums.lower(traceable, np.zeros(2, np.uint32), np.uint32(0), bounds, given, lanes=lanes, mesh=mesh)
    return lowered.compile(staging.with_wide_vectors())


def _bytes(program: Any, signature: Signature) -> int:
    """Bytes a compiled program takes on a device, besides its arguments; 0 where the compiler does not say.

    The compiler is asked once per signature: the query takes tens of milliseconds, longer than many runs.
    """
    if signature not in _BYTES:
        if len(_BYTES) >= 1024:
            _BYTES.clear()  # keys keep trials alive
        analysis = program.memory_analysis()
        _BYTES[signature] = 0 if analysis is None else analysis.temp_size_in_bytes + analysis.output_size_in_bytes
    return _BYTES[signature]


def _halved(lanes: int, why: str) -> int:
    """Half the lanes, with a warning."""
    warnings.warn(f"a block of {lanes} trials {why}; going on with {lanes // 2}", RuntimeWarning, stacklevel=2)
    return lanes // 2


def _block(
    run: Run, root: UInt32[Array, "2"], cell: UInt[Array, ""], start: UInt[Array, ""], params: Any, lanes: int
) -> Any:
    """Outcomes of trials start, ..., start + lanes - 1."""
    trials = start + jnp.arange(lanes, dtype=jnp.uint32)
    fold_trial = jax.vmap(jax.random.fold_in, in_axes=(None, 0))
    keys = fold_trial(jax.random.fold_in(_key(root), cell), trials)
    return jax.vmap(lambda key: run(key, params))(keys)


def _key(words: UInt32[Array, "2"]) -> Array:
    """The root key of these words."""
    return jax.random.wrap_key_data(words, impl="threefry2x32")


@jax.jit(static_argnames=("run", "mesh"))
def _one(run: Run, root: UInt32[Array, "2"], params: Any, mesh: Mesh) -> Any:
    """One trial, only ever traced, and under the same mapping over devices as batches, so that `run` is traced once for all of them."""

    def on_device(root: Array, params: Any) -> Any:
        return jax.tree.map(lambda leaf: leaf[None], run(_key(root), params))

    return _on_devices(on_device, mesh)(root, params)


@jax.jit(static_argnames=("run", "lanes", "mesh"))
def _blocks(
    run: Run,
    root: UInt32[Array, "2"],
    cell: UInt[Array, ""],
    starts: UInt[Array, "devices"],
    params: Any,
    lanes: int,
    mesh: Mesh,
) -> Any:
    """Outcomes of one block on each device, stacked along the first axis."""

    def on_device(root: Array, cell: Array, starts: Array, params: Any) -> Any:
        return _block(run, root, cell, starts[lax.axis_index(devices.AXIS)], params, lanes)

    return _on_devices(on_device, mesh)(root, cell, starts, params)


@jax.jit(static_argnames=("run", "lanes", "mesh"))
def _sums(
    run: Run,
    root: UInt32[Array, "2"],
    cell: UInt[Array, ""],
    bounds: UInt[Array, "devices 3"],
    params: Any,
    lanes: int,
    mesh: Mesh,
) -> Any:
    """Sums over trials start + low, ..., start + high - 1, in halves, one row per device; `start` begins a block."""

    def on_device(root: Array, cell: Array, bounds: Array, params: Any) -> Any:
        start, low, high = bounds[lax.axis_index(devices.AXIS)]
        low, high = low.astype(jnp.int32), high.astype(jnp.int32)

        def block(i: Int[Array, ""]) -> Any:
            offset = i * lanes + jnp.arange(lanes, dtype=jnp.int32)
            keep = (low <= offset) & (offset < high)
            outcomes = _block(run, root, cell, start + (i * lanes).astype(jnp.uint32), params, lanes)
            return jax.tree.map(lambda counter: _halves(counter, keep), outcomes)

        # The trip count is traced: a last, partial piece costs only what it holds and needs no program of its own.
        shapes = jax.eval_shape(block, jnp.int32(0))
        zeros = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), shapes)
        blocks = (high + (lanes - 1)) // lanes
        sums = lax.fori_loop(jnp.int32(0), blocks, lambda i, sums: jax.tree.map(jnp.add, sums, block(i)), zeros)
        return jax.tree.map(lambda leaf: leaf[None], sums)

    return _on_devices(on_device, mesh)(root, cell, bounds, params)


def _on_devices(function: Callable[..., Any], mesh: Mesh) -> Callable[..., Any]:
    """`function` on each device, given all arguments; results are stacked along the first axis."""
    # Loops inside start from constants, which the check would take for equal on all devices.
    return jax.shard_map(function, mesh=mesh, in_specs=devices.ALL, out_specs=devices.SHARE, check_vma=False)


def _halves(counter: Array, keep: Bool[Array, "lanes"]) -> Array:
    """Sums over the kept lanes of the upper and of the lower half of the words."""
    if not (jnp.issubdtype(counter.dtype, jnp.integer) or counter.dtype == bool):
        raise TypeError(f"run must return integers or booleans, got an array of {counter.dtype}")
    word = counter if counter.dtype.itemsize >= 4 else counter.astype(jnp.int32)
    mask = keep.reshape(keep.shape + (1,) * (word.ndim - 1))
    kept = jnp.where(mask, word, jnp.zeros_like(word))
    return jnp.sum(devices.halves(kept), axis=1, dtype=word.dtype)


def _plain(total: Any) -> int | np.ndarray:
    """A Python int, or an int64 array."""
    return int(total) if np.ndim(total) == 0 else total.astype(np.int64)


def _steps(first: int, last: int, lanes: int, count: int) -> Iterator[np.ndarray]:
    """Rows (start, low, high), `count` at a time: trials start + low, ..., start + high - 1, where `start` begins a block."""
    workers = count * devices.threads()
    share = -(-(last - first) // (_PIECES_A_WORKER * workers))
    size = lanes * max(1, min(-(-share // lanes), MOST_TRIALS_A_PIECE // lanes))
    for begin in range(first - first % lanes, last, size * count):
        starts = begin + size * np.arange(count)
        low, high = np.maximum(first - starts, 0), np.clip(last - starts, 0, size)
        # A device beyond the last trial has nothing to do.
        yield np.where(high[:, None] > 0, np.stack([starts, low, high], axis=1), 0).astype(np.uint32)


def _in_parallel(work: Callable[[Any], Any], items: Iterable[Any]) -> Iterator[tuple[Any, Any]]:
    """(item, work(item)) in order, computed a few items ahead. Threads suffice: a running program does not hold Python's lock."""
    workers = devices.threads()
    with concurrent.futures.ThreadPoolExecutor(workers) as pool:
        ahead: collections.deque[tuple[Any, Any]] = collections.deque()
        try:
            for item in items:
                ahead.append((item, pool.submit(work, item)))
                if len(ahead) > 2 * workers:
                    item, done = ahead.popleft()
                    yield item, done.result()
            for item, done in ahead:
                yield item, done.result()
        finally:  # an interrupt waits for what runs, not for what is queued
            pool.shutdown(wait=False, cancel_futures=True)


def _room(device: Any) -> int:
    """Bytes a block may touch at a time."""
    stats = None if device.platform == "cpu" else device.memory_stats()
    return stats["bytes_limit"] // 16 if stats else _CACHE_BYTES


def _shapes_of(params: Any) -> tuple[Any, tuple[jax.ShapeDtypeStruct, ...]]:
    """(structure, shapes of the leaves) of a tree of arrays."""
    leaves, structure = jax.tree.flatten(params)
    return structure, tuple(jax.ShapeDtypeStruct(leaf.shape, leaf.dtype) for leaf in leaves)


@functools.lru_cache(maxsize=256)
def _bytes_a_lane(run: Run, structure: Any, shapes: tuple[jax.ShapeDtypeStruct, ...]) -> int:
    """Bytes that the largest operation of one trial touches (`footprint`); what trials share does not count."""
    params = jax.tree.unflatten(structure, shapes)
    with staging.uncollected():
        program = _one.trace(run, _ROOT, params, mesh=devices.mesh()).jaxpr.jaxpr
    return footprint.largest(program, [True] + [False] * len(shapes))


def _traceable(run: Run) -> Run:
    """`run` under jit: its Python code is traced once, however many programs are built around it."""
    if not callable(run):
        raise TypeError(f"run must be a function of (key, params), got {run!r}")
    try:
        return _jitted(run)
    except TypeError:
        raise TypeError(f"run must be hashable; give arrays through params, got {run!r}") from None


@functools.lru_cache(maxsize=256)
def _jitted(run: Run) -> Run:
    """One jitted object per function, by which its compiled programs are found again."""
    return jax.jit(run)


def _array(leaf: Any) -> Array:
    """A strongly typed array of the default width; ValueError if an integer or a finite number does not fit."""
    if isinstance(leaf, jax.Array):
        return lax.convert_element_type(leaf, leaf.dtype)
    given = np.asarray(leaf)
    if given.dtype.kind not in "biufc":
        raise TypeError(f"params must hold numbers and arrays, got {leaf!r}")
    dtype = jnp.result_type(leaf)
    # JAX would silently wrap a wide NumPy integer around.
    if given.dtype.kind in "iu" and given.size and not _fits(given, dtype):
        raise ValueError(f"params must hold integers that fit {dtype}, got {leaf!r}")
    large = given.dtype.kind == "f" and np.any(np.isfinite(given) & (np.abs(given) > jnp.finfo(dtype).max))
    # A single number is a parameter; a table may have entries that are as good as 0.
    small = given.dtype.kind == "f" and given.ndim == 0 and 0 < abs(given) < jnp.finfo(dtype).tiny
    if large or small:
        raise ValueError(f"params must hold numbers that fit {dtype}, got {leaf!r}")
    return jnp.asarray(given, dtype)


def _fits(given: np.ndarray, dtype: Any) -> bool:
    """Whether all integers lie in the range of a dtype."""
    limits = np.iinfo(dtype)
    return bool(limits.min <= given.min() and given.max() <= limits.max)


def _check_key(root: Array) -> np.ndarray:
    """The words of `root`, if it is a typed threefry key."""
    if not (isinstance(root, jax.Array) and jnp.issubdtype(root.dtype, jax.dtypes.prng_key) and root.ndim == 0):
        raise TypeError(f"root must be one typed key, as of root_key(seed), got {root!r}")
    if str(jax.random.key_impl(root)) != "threefry2x32":
        rule = "a threefry2x32 key: other generators draw differently under vmap"
        raise ValueError(f"root must be {rule}, got {jax.random.key_impl(root)}")
    return np.asarray(jax.random.key_data(root))


def _check_cell(cell: int) -> np.uint32:
    """The cell as a word."""
    return np.uint32(arguments.integer("cell", cell, at_least=0, at_most=2**32 - 1))


def _check_range(first: int, trials: int, name: str = "trials") -> int:
    """first + trials, checked to lie within the cell."""
    arguments.integer("first", first, at_least=0)
    last = first + arguments.integer(name, trials, at_least=1)
    if last > TRIALS_A_CELL:
        raise ValueError(f"first + {name} must be <= 2^32, got {last}; use another cell for more")
    return last


def _check_batch(batch: int | None) -> int | None:
    """The batch, checked if given."""
    return None if batch is None else arguments.integer("batch", batch, at_least=1, at_most=MOST_TRIALS_A_PIECE)
