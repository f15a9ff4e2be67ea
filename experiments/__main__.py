"""python -m experiments list | run NAME --preset P --out DIR [--seed S] [--resume] | plot NAME --out DIR.

A run of several processes: the same command in each, with --distributed.
"""

import argparse
import os
import pathlib
import sys

from dpjax.trials import devices
from experiments import cluster, compilation, runner

LOST = 3  # exit status of a process that lost the others


def main(arguments: list[str] | None = None) -> int:
    """Entry point; bad input ends with status 2 and one line that says what is wrong."""
    options = _parser().parse_args(arguments)
    try:
        if options.command == "list":
            for name in runner.EXPERIMENTS:
                print(f"{name:12} {runner.load(name).summary}")
        elif options.command == "run":
            _run(options)
        else:
            runner.plot(options.name, out=pathlib.Path(options.out))
    except (ValueError, TypeError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


def _run(options: argparse.Namespace) -> None:
    """One experiment, in one process or many."""
    compilation.use_cache()
    runner.check(options.name, options.preset, distributed=options.distributed)
    if not options.distributed:
        _measure(options)
        return
    place = cluster.meeting(options.coordinator, options.processes, options.process_id, options.timeout)
    with cluster.LastWords() as words:
        cluster.join(place, words)
        words.prepare(
            f"error: lost another process of this run; what is recorded in {options.out} is whole: go on with --resume"
        )
        try:
            _measure(options)
        except Exception as error:
            if not cluster.lost(error):
                raise
            print(error, file=sys.stderr)
            os._exit(LOST)  # an ordinary exit would wait for the others; the last words are said now


def _measure(options: argparse.Namespace) -> None:
    out = pathlib.Path(options.out)
    report = runner.run(options.name, preset=options.preset, out=out, seed=options.seed, resume=options.resume)
    if devices.lead():
        print(f"{options.name}: pictures, CSV and JSON in {out}; {report}")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m experiments", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("list", help="the experiments, a line each")
    run = commands.add_parser("run", help="run one")
    run.add_argument("name", help="which one (see list)")
    run.add_argument("--preset", default="quick", help=f"one of {', '.join(runner.PRESETS)} (default quick)")
    run.add_argument("--out", required=True, help="directory for records, CSV, JSON and pictures")
    run.add_argument("--seed", type=int, default=0, help="seed of all randomness (default 0)")
    run.add_argument("--resume", action="store_true", help="continue a run that was killed")
    run.add_argument("--distributed", action="store_true", help="one of several processes that share the trials")
    run.add_argument(
        "--coordinator", help="HOST:PORT of process 0 (default $JAX_COORDINATOR_ADDRESS, or the cluster's)"
    )
    run.add_argument("--processes", type=int, help="how many there are (default $JAX_NUM_PROCESSES, or the cluster's)")
    run.add_argument("--process-id", type=int, help="which one this is (default $JAX_PROCESS_ID, or the cluster's)")
    run.add_argument("--timeout", type=int, default=60, help="seconds to wait for the others (default 60)")
    plot = commands.add_parser("plot", help="draw a run's pictures again from its CSV")
    plot.add_argument("name")
    plot.add_argument("--out", required=True, help="directory of the run")
    return parser


if __name__ == "__main__":
    sys.exit(main())
