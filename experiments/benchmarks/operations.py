"""What the compiled programs consist of, and how long they take to compile: `python -m experiments.benchmarks.operations`.

*Operations* are counted in the program of a batch of trials as it is lowered for a GPU (StableHLO, before the compiler's own passes), which
needs no GPU: sorts by kind, gathers, scatters, loops, and conditionals, for each of which the host would wait. A vendor's radix sort takes
one key by a simple comparison; a sort of several keys, or by a comparison of floats, takes a slower way. An operation in the body of a loop
is counted once; those of gathers and scatters are shown behind a plus sign.

*Seconds* are those of this machine, without any cache: tracing and lowering, and XLA, for the host.
"""

import collections
import sys
import time
from typing import Any
from unittest import mock

import jax
import numpy as np

from experiments.benchmarks import CONTESTS
from experiments.benchmarks.contests import CONTESTS as TRIALS
from experiments.benchmarks.contests import Trial, label

BATCH = 8
COUNTED = ("sort", "gather", "scatter", "while", "case", "dot_general")


def sites(contest: Trial, platform: str = "cuda") -> tuple[collections.Counter[str], collections.Counter[str]]:
    """How often each operation of `COUNTED` occurs outside loops, and in loops; a sort counts as "sort" with its keys and its length."""
    # dpjax asks JAX for the device to know what to store and what to run one by one; a trace for one device is wrong for another.
    jax.clear_caches()
    try:
        with mock.patch.object(jax, "default_backend", return_value=platform):
            module = _traced(contest).lower(lowering_platforms=(platform,)).compiler_ir("stablehlo")
    finally:
        jax.clear_caches()
    functions = {str(function.name).strip('"'): function for function in module.body.operations}
    outside: collections.Counter[str] = collections.Counter()
    inside: collections.Counter[str] = collections.Counter()
    _walk(functions["main"], functions, (outside, inside), False)
    return outside, inside


def _walk(operation: Any, functions: dict[str, Any], found: tuple[Any, Any], looped: bool) -> None:
    """Counts the operations in the regions of an operation, through calls; where the platform decides, only in the region chosen."""
    chosen = _chosen(operation)
    for region in operation.regions if chosen is None else [operation.regions[chosen]]:
        for block in region.blocks:
            for each in block.operations:
                name = each.operation.name.removeprefix("stablehlo.")
                if name == "func.call" or name == "call":
                    _walk(functions[str(each.attributes["callee"]).lstrip("@").strip('"')], functions, found, looped)
                if name in COUNTED and _chosen(each) is None:
                    found[looped][_sort(each) if name == "sort" else name] += 1
                if name != "sort" and name != "scatter":  # their regions compare and combine single numbers
                    _walk(each.operation, functions, found, looped or name == "while")


def _chosen(operation: Any) -> int | None:
    """Which branch of a conditional is taken in every run, if the program says so."""
    if operation.name != "stablehlo.case":
        return None
    index = operation.operands[0].owner
    if index.name == "stablehlo.case":  # which platform it is, and which branch is for that
        inner = _chosen(index)
        if inner is None:
            return None
        index = list(index.regions[inner].blocks[0].operations)[-1].operands[0].owner
    return int(np.asarray(index.attributes["value"])) if index.name == "stablehlo.constant" else None


def _sort(operation: Any) -> str:
    """The keys of a sort and the length of a row, such as "sort ui32, 2047"."""
    compared = {
        each.operands[0]: each.operands[
            0
        ].type  # a comparison of several keys asks of each whether it is less, and whether equal
        for each in operation.regions[0].blocks[0].operations
        if each.operation.name == "stablehlo.compare"
    }
    length = operation.operands[0].type.shape[operation.attributes["dimension"].value]
    kinds = " and ".join(str(kind).removeprefix("tensor<").removesuffix(">") for kind in compared.values())
    return f"sort {kinds}, {length}"


def seconds(contest: Trial) -> tuple[float, float]:
    """(tracing and lowering, XLA) of a batch of trials, for this machine."""
    began = time.perf_counter()
    lowered = _traced(contest).lower()
    between = time.perf_counter()
    lowered.compile()
    return between - began, time.perf_counter() - between


def _traced(contest: Trial) -> Any:
    run, params = contest
    keys = jax.random.split(jax.random.key(0), BATCH)
    return jax.jit(jax.vmap(run, in_axes=(0, None))).trace(keys, params)


def row(name: str, sizes: tuple[Any, ...], timed: bool) -> list[str]:
    """The cells of a contest in the table."""
    outside, inside = sites(TRIALS[name].make(*sizes))
    cells = [name, label(name, sizes)]
    sorts = [
        f"{count} × {kind.removeprefix('sort ')}" for kind, count in sorted((outside + inside).items()) if "," in kind
    ]
    cells += ["; ".join(sorts)]
    cells += [_both(outside[each], inside[each]) for each in ("gather", "scatter")]
    cells += [str(outside["while"] + inside["while"])]
    if timed:
        jax.clear_caches()
        cells += [f"{each:.1f}" for each in seconds(TRIALS[name].make(*sizes))]
    return cells


def _both(outside: int, inside: int) -> str:
    return f"{outside} + {inside}" if inside else str(outside)


HEAD = ("contest", "cell", "sorts (keys, length)", "gathers (+ in loops)", "scatters", "loops")
SECONDS = ("tracing, s", "XLA, s")


def table(contests: list[Any], timed: bool) -> str:
    """The table of these contests, in Markdown."""
    head = [*HEAD, *(SECONDS if timed else ())]
    lines = [head, ["---"] * len(head), *(row(name, tuple(sizes), timed) for name, sizes in contests)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


if __name__ == "__main__":
    print(table(CONTESTS, timed="--seconds" in sys.argv[1:]))
