"""Can noise, and the event of an audit, be learned?

Two pictures: (a) noise for an integer learned under (epsilon, delta), beside the optimum by linear programming, and how much more than the
optimum it and discrete Laplace noise cost, against epsilon; (b) the lower bound on epsilon that an audit of vectors proves, against the
number of runs, with a learned event and with events of single coordinates, for broken mechanisms and for sound ones.
"""

from experiments.learned.draw import draw
from experiments.learned.measure import measure
from experiments.runner import Experiment

COMMON = {"loss": "absolute", "sensitivity": 4, "laws": {"epsilon": 1.0, "deltas": [0.0, 0.1]}, "level": 1 - 2e-5}
EXPERIMENT = Experiment(
    summary="noise learned until it meets the known optimum; audits of vectors whose event is learned",
    presets={
        "smoke": {
            **COMMON,
            "ratios": {"epsilons": [0.5, 2.0], "deltas": [0.0, 0.1]},
            "steps": 1000,
            "audit": {"dimension": 4, "runs": [200, 1000], "steps": 50},
        },
        "quick": {
            **COMMON,
            "ratios": {"epsilons": [2 ** (e / 2) for e in range(-6, 7)], "deltas": [0.0, 0.01, 0.1]},
            "steps": 20_000,
            "audit": {"dimension": 8, "runs": [100 * 2**i for i in range(10)], "steps": 300},
        },
        "full": {
            **COMMON,
            "ratios": {"epsilons": [2 ** (e / 4) for e in range(-16, 17)], "deltas": [0.0, 1e-6, 0.01, 0.1]},
            "steps": 100_000,
            "audit": {"dimension": 32, "runs": [100 * 2**i for i in range(14)], "steps": 1000},
        },
    },
    measure=measure,
    draw=draw,
    words={"loss": ("absolute", "square", "zero_one")},
)
