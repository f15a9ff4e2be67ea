"""Measures the least additive error that an optimiser really needs, by exact laws, and computes what is proved."""

from typing import Any

from dpjax.domains import ordered
from dpjax.optimizers import quasi_concave
from dpjax.trials import estimates, search
from experiments import least_n
from experiments.records import Row, exact
from experiments.runner import Context
from experiments.settings import Settings

EXPONENTIAL = "exponential mechanism"
REC_CONCAVE = "RecConcave, two levels"
AMPLIFIED = "amplified interior points, N=1"
# The share of all scales of distance from the best point over which the quality falls, and behind which it is 0.
SHAPES = {"spike": 0.0, "falls over the inner half of the scales": 0.5, "falls over all scales": 1.0}


def optimizer(name: str, bits: int, settings: Settings, levels: int | None = None) -> Any:
    """The optimiser of that name at the experiment's privacy."""
    epsilon, delta, beta = settings["epsilon"], settings["delta"], settings["beta"]
    if name == EXPONENTIAL:
        return quasi_concave.exponential(bits=bits, epsilon=epsilon)
    if name == REC_CONCAVE:
        return quasi_concave.rec_concave(bits=bits, epsilon=epsilon, delta=delta, depth=levels or 2)
    return quasi_concave.amplified(bits=bits, epsilon=epsilon, delta=delta, beta=beta, depth=levels or 1)


def shape(bits: int, height: int, reach: float) -> ordered.Pieces:
    """Q on {0, ..., 2^bits}: `height` at one point near the middle, one less with every factor 2^(reach bits / height) of distance."""
    best = (1 << (bits - 1)) + 1
    # 2^(x) for a real x, as an integer; 52 binary digits are precise enough for a distance.
    scale = [
        round(2 ** (x % 1) * 2**52) << int(x) >> 52 for x in (reach * (bits - 1) * j / height for j in range(height))
    ]
    widths = dict.fromkeys(width for width in scale if 0 < width < best)  # Q >= height - j within the j-th width
    steps = {width: height - j for j, width in enumerate(widths)}
    left = [(best - width + 1, value) for width, value in reversed(steps.items())]
    right = [(best + width, value - 1) for width, value in steps.items() if best + width <= 1 << bits]
    starts, values = zip(*dict(sorted([(0, 0), *left, *right])).items(), strict=True)
    last = right[-1][0] if right else 0
    values = tuple(0 if start == last else value for start, value in zip(starts, values, strict=True))
    return ordered.from_breakpoints(list(starts), [float(v) for v in values], 1 << bits, beyond=0.0)


def measure(settings: Settings, context: Context) -> list[Row]:
    """All rows: panels "measured", "proved", "levels"."""
    return [*_measured(settings, context), *_proved(settings)]


def _measured(settings: Settings, context: Context) -> list[Row]:
    """The least alpha p such that the failure on the worst shape of height p is <= beta."""
    found = least_n.curves(settings["bits"], lambda name, bits, *_: _search(name, bits, settings, context))
    return [exact("measured", row.series, row.x, settings["alpha"] * row.value) for row in found]


def _search(name: str, bits: int, settings: Settings, context: Context) -> search.LeastN:
    solver, alpha = optimizer(name, bits, settings), settings["alpha"]

    def worst(promise: int) -> estimates.Estimate:
        def failures() -> list[float]:
            problems = [
                quasi_concave.problem(shape(bits, promise, reach), promise=float(promise), alpha=alpha)
                for reach in SHAPES.values()
            ]
            return [float(solver.failure_probability(problem)) for problem in problems]

        record = context.store.get_or_compute({"optimizer": name, "bits": bits, "promise": promise}, failures)
        return estimates.known(max(record))

    start = round(solver.error(settings["beta"]) / alpha)
    return search.least_n(
        worst, beta=settings["beta"], start=start, maximum=20_000, minimum=2, rtol=settings["rtol"], reach=1.3
    )


def _proved(settings: Settings) -> list[Row]:
    """The errors that are proved."""
    rows = []
    for bits in settings["proved"]:
        for name in (EXPONENTIAL, REC_CONCAVE, AMPLIFIED):
            rows.append(exact("proved", name, bits, optimizer(name, bits, settings).error(settings["beta"])))
    bits = max(settings["proved"])
    for levels in settings["levels"]:
        # One level of RecConcave is the exponential mechanism; N levels of the other recurse N times.
        for name, depth in ((REC_CONCAVE, levels + 1), (AMPLIFIED, levels)):
            error = optimizer(name, bits, settings, depth).error(settings["beta"])
            rows.append(exact("levels", name, levels, error))
    return rows
