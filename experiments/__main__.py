"""python -m experiments list | run NAME --preset P --out DIR [--seed S] [--resume] | plot NAME --out DIR."""

import argparse
import pathlib
import sys

from experiments import runner


def main(arguments: list[str] | None = None) -> int:
    """Entry point; bad input ends with status 2 and one line that says what is wrong."""
    options = _parser().parse_args(arguments)
    try:
        if options.command == "list":
            for name in runner.EXPERIMENTS:
                print(f"{name:12} {runner.load(name).summary}")
        elif options.command == "run":
            out, preset = pathlib.Path(options.out), options.preset
            runner.run(options.name, preset=preset, out=out, seed=options.seed, resume=options.resume)
            print(f"{options.name}: pictures, CSV and JSON in {out}")
        else:
            runner.plot(options.name, out=pathlib.Path(options.out))
    except (ValueError, TypeError, BlockingIOError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


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
    plot = commands.add_parser("plot", help="draw a run's pictures again from its CSV")
    plot.add_argument("name")
    plot.add_argument("--out", required=True, help="directory of the run")
    return parser


if __name__ == "__main__":
    sys.exit(main())
