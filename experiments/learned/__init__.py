"""Can noise, and the event of an audit, be learned?

Three pictures: (a) noise for an integer learned under (epsilon, delta), beside the optimum by linear programming, and how much more than
the optimum it and discrete Laplace noise cost, against epsilon; (b) the lower bound on epsilon that an audit of vectors proves, against the
number of runs, with a learned event and with events of single coordinates, for broken mechanisms and for sound ones; (c) selection with
learned noise: its cost relative to the best possible selection, and the failure of RecConcave whose inner choice is made in this way.
"""

from experiments.learned.draw import draw
from experiments.learned.measure import measure
from experiments.runner import Experiment

COMMON = {"loss": "absolute", "sensitivity": 4, "laws": {"epsilon": 1.0, "deltas": [0.0, 0.1]}, "level": 1 - 2e-5}
REC_CONCAVE = {"epsilon": 4.0, "delta": 1e-6, "alpha": 0.1, "reach": 16}
EXPERIMENT = Experiment(
    summary="noise learned until it meets the known optimum; selection with learned noise; audits of vectors whose event is learned",
    presets={
        "smoke": {
            **COMMON,
            "ratios": {"epsilons": [0.5, 2.0], "deltas": [0.0, 0.1]},
            "steps": 1000,
            "audit": {"dimension": 4, "runs": [200, 1000], "steps": 50},
            "selection": {"highest": 2, "epsilons": [0.5, 2.0], "reach": 4, "steps": 20},
            "rec_concave": {**REC_CONCAVE, "bits": 8, "datasets": 2, "sizes": [100, 200], "trained": [200], "steps": 3},
        },
        "quick": {
            **COMMON,
            "ratios": {"epsilons": [2 ** (e / 2) for e in range(-6, 7)], "deltas": [0.0, 0.01, 0.1]},
            "steps": 20_000,
            "audit": {"dimension": 8, "runs": [100 * 2**i for i in range(10)], "steps": 300},
            "selection": {"highest": 4, "epsilons": [2.0**e for e in range(-3, 3)], "reach": 16, "steps": 200},
            "rec_concave": {
                **REC_CONCAVE,
                "bits": 64,
                "datasets": 8,
                "sizes": list(range(200, 551, 50)),
                "trained": [490],
                "steps": 60,
            },
        },
        "full": {
            **COMMON,
            "ratios": {"epsilons": [2 ** (e / 4) for e in range(-16, 17)], "deltas": [0.0, 1e-6, 0.01, 0.1]},
            "steps": 100_000,
            "audit": {"dimension": 32, "runs": [100 * 2**i for i in range(14)], "steps": 1000},
            "selection": {"highest": 6, "epsilons": [2 ** (e / 4) for e in range(-12, 9)], "reach": 32, "steps": 1000},
            "rec_concave": {
                **REC_CONCAVE,
                "bits": 64,
                "datasets": 64,
                "sizes": list(range(200, 601, 25)),
                "trained": [490],
                "steps": 300,
            },
        },
    },
    measure=measure,
    draw=draw,
    words={"loss": ("absolute", "square", "zero_one")},
    cells=("ratios.epsilons", "audit.runs", "selection.epsilons"),
)
