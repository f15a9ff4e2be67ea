"""python -m experiments list | settings NAME | run NAME --out DIR [--preset P] [--set KEY=VALUE] [--resume] | plot NAME --out DIR |
check NAME [--out DIR] [--seed S].

NAME is one of the list, or an experiment of your own: MODULE:NAME or FILE.py. For a run of several processes, give the same command
in each, with --distributed.
"""

import argparse
import json
import os
import pathlib
import secrets
import sys

os.environ.setdefault("MPLBACKEND", "Agg")  # pictures are files: nothing here may need a screen

import dpjax
from dpjax.core import arguments
from dpjax.trials import devices
from experiments import checking, cluster, runner
from experiments.refusals import Refused, refusing

LOST = 3  # exit status of a process that lost the others
STOPPED = 130  # exit status of a process that was interrupted, as in shells
GO_ON = "what is recorded in {} is whole: go on with --resume"


def main(arguments: list[str] | None = None) -> int:
    """Entry point; refusals, errors of the disk and Ctrl-C end with one line; errors of the program end with their traceback."""
    options = _parser().parse_args(arguments)
    try:
        if options.command == "list":
            for name in runner.EXPERIMENTS:
                print(f"{name:17} {runner.load(name).summary}")
        elif options.command == "settings":
            print(json.dumps(runner.check(options.name, options.preset)[1], indent=2, ensure_ascii=False))
        elif options.command == "run":
            _run(options)
        elif options.command == "check":
            return _check(options)
        else:
            runner.plot(options.name, out=pathlib.Path(options.out))
            print(f"{options.name}: pictures in {options.out}")
    except Refused as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except OSError as error:
        print(f"error: {error}{_go_on(options)}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print(f"stopped{_go_on(options)}", file=sys.stderr)
        return STOPPED
    return 0


def _go_on(options: argparse.Namespace) -> str:
    """How an interrupted run is continued; nothing if there is none."""
    return f"; {GO_ON.format(options.out)}" if options.command == "run" else ""


def _run(options: argparse.Namespace) -> None:
    """Runs one experiment, in one process or many."""
    dpjax.enable_cache()
    runner.check(options.name, options.preset, changes=options.set, distributed=options.distributed)
    if not options.distributed:
        for option in ("coordinator", "processes", "process_id", "timeout"):
            if getattr(options, option) is not None:
                raise Refused(f"--{option.replace('_', '-')} is for runs with --distributed")
        _measure(options)
        return
    seconds = 60 if options.timeout is None else options.timeout
    with refusing():
        place = cluster.meeting(options.coordinator, options.processes, options.process_id, seconds)
    with cluster.LastWords() as words:
        with refusing():
            cluster.join(place, words)
        words.prepare(f"error: lost another process of this run; {GO_ON.format(options.out)}")
        try:
            _measure(options)
        except Exception as error:
            if not cluster.lost(error):
                raise
            print(error, file=sys.stderr)
            os._exit(LOST)  # an ordinary exit would wait for the others; the last words are said now


def _check(options: argparse.Namespace) -> int:
    """Checks a figure; the exit status is 0 if it still agrees with the code, 1 if not."""
    dpjax.enable_cache()
    seed = secrets.randbits(32) if options.seed is None else options.seed
    with refusing():
        seed = arguments.integer("--seed", seed, at_least=0, at_most=2**32 - 1)
    out = pathlib.Path(options.out or f"figures/{runner.title(options.name)}")
    found = checking.check(options.name, out=out, seed=seed, cells=options.cells)
    wrong = [each for each in found if each.verdict in checking.WRONG]
    print(*wrong, f"{options.name}: {checking.summary(found)} (--seed {seed})", sep="\n")
    return 1 if wrong else 0


def _measure(options: argparse.Namespace) -> None:
    out = pathlib.Path(options.out)
    report = runner.run(
        options.name, preset=options.preset, out=out, seed=options.seed, resume=options.resume, changes=options.set
    )
    if devices.lead():
        print(f"{options.name}: pictures, CSV and JSON in {out}; {report}")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m experiments", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("list", help="the experiments, a line each")
    shown = commands.add_parser("settings", help="what one is set to, for --set")
    shown.add_argument("name", help="which one, as for run")
    shown.add_argument("--preset", default="quick", help="smoke, quick or full (default quick)")
    run = commands.add_parser("run", help="run one")
    run.add_argument("name", help="which one (see list), or your own: MODULE:NAME or FILE.py")
    run.add_argument("--preset", default="quick", help="smoke, quick or full (default quick)")
    run.add_argument(
        "--set", action="append", default=[], metavar="KEY=VALUE", help="another value for a setting; may be repeated"
    )
    run.add_argument("--out", required=True, help="directory for records, CSV, JSON and pictures")
    run.add_argument("--seed", type=int, default=0, help="seed of all randomness (default 0)")
    run.add_argument("--resume", action="store_true", help="continue a run that was killed")
    run.add_argument("--distributed", action="store_true", help="one of several processes that share the trials")
    run.add_argument(
        "--coordinator", help="HOST:PORT of process 0 (default $JAX_COORDINATOR_ADDRESS, or the cluster's)"
    )
    run.add_argument("--processes", type=int, help="how many there are (default $JAX_NUM_PROCESSES, or the cluster's)")
    run.add_argument("--process-id", type=int, help="which one this is (default $JAX_PROCESS_ID, or the cluster's)")
    run.add_argument("--timeout", type=int, help="seconds to wait for the others (default 60)")
    plot = commands.add_parser("plot", help="draw a run's pictures again from its CSV")
    plot.add_argument("name", help="which one, as for run")
    plot.add_argument("--out", required=True, help="directory of the run")
    check = commands.add_parser("check", help="measure some cells of a figure again, drawn at random, and compare")
    check.add_argument("name", help="which one, as for run")
    check.add_argument("--out", help="directory of the run (default figures/NAME)")
    check.add_argument("--seed", type=int, help="which cells (default: others every time)")
    check.add_argument("--cells", type=int, default=1, help="elements kept of each list of cells (default 1)")
    return parser


if __name__ == "__main__":
    dpjax.enable_loop_kernels()
    sys.exit(main())
