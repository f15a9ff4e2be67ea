"""The runners that are timed: functions of a number of trials."""

import functools
from typing import Any

from dpjax.trials import engine
from experiments.benchmarks import peers
from experiments.benchmarks.contests import CONTESTS, Trial
from experiments.benchmarks.pool import Pool
from experiments.benchmarks.programs import PROGRAMS
from experiments.benchmarks.timing import Runner
from experiments.runner import Context


def everybody(name: str, sizes: tuple[Any, ...], pool: Pool, context: Context) -> dict[str, Runner]:
    """The floor, dpjax, NumPy's programs and other packages, as far as each can."""
    contest = CONTESTS[name]
    found = {"floor": dpjax(contest.floor(*sizes), context), "dpjax": dpjax(contest.make(*sizes), context)}
    return found | numpy(contest.program, sizes, pool) | peers.rivals(name, sizes)


def dpjax(trial: Trial, context: Context) -> Runner:
    """dpjax's trials, by the engine."""
    run, params = trial
    return lambda trials: engine.count(run, params, root=context.root, cell=0, trials=trials)


def numpy(program: str, sizes: tuple[Any, ...], pool: Pool) -> dict[str, Runner]:
    """NumPy's general and specialised program, as far as they exist and accept these sizes."""
    names = {"NumPy": program, "specialised NumPy": f"specialised {program}"}
    return {series: functools.partial(_numpy, pool, name, sizes) for series, name in names.items() if can(name, sizes)}


def can(program: str, sizes: tuple[Any, ...]) -> bool:
    """Whether there is such a program, and it accepts these sizes."""
    try:
        PROGRAMS[program].check(*sizes)
    except (KeyError, ValueError):
        return False
    return True


def _numpy(pool: Pool, program: str, sizes: tuple[Any, ...], trials: int) -> int:
    return pool.count(program, sizes, trials, 0)
