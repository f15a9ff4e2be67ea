"""Does a search find data that are worse than those people think of?

Two pictures: (a) failure to find an interior point against n, on the worst of many combs made by hand and on the data that ascent and
exchanges find, for three solvers; (b) on a domain so small that all datasets can be listed, the worst found against the worst of all.
"""

from experiments.runner import Experiment
from experiments.worst_data.draw import draw
from experiments.worst_data.measure import EXPONENTIAL, REC_CONCAVE, TREE_LOG, measure

COMMON = {"epsilon": 1.0, "delta": 1e-6, "beta": 0.1}
EXPERIMENT = Experiment(
    summary="worst data found by ascent, beside combs made by hand and beside the worst of all datasets",
    presets={
        "smoke": {
            **COMMON,
            "bits": 64,
            "sizes": {EXPONENTIAL: [85]},
            "draws": 4,
            "search": {"starts": 2, "steps": 10, "width": 8},
            "rounds": {EXPONENTIAL: 10},
            "listed": {"bits": 3, "n": 3, "epsilons": [1.0], "starts": 2, "steps": 10, "rounds": 20, "width": 8},
        },
        "quick": {
            **COMMON,
            "bits": 64,
            "sizes": {
                EXPONENTIAL: [70, 80, 90, 100, 110],
                TREE_LOG: [280, 340, 400],
                REC_CONCAVE: [300, 400, 500],
            },
            "draws": 32,
            "search": {"starts": 6, "steps": 80, "width": 16},
            "rounds": {EXPONENTIAL: 600, TREE_LOG: 80, REC_CONCAVE: 80},
            "listed": {
                "bits": 3,
                "n": 7,
                "epsilons": [0.5, 1.0, 2.0, 4.0],
                "starts": 4,
                "steps": 40,
                "rounds": 40,
                "width": 16,
            },
        },
        "full": {
            **COMMON,
            "bits": 64,
            "sizes": {
                EXPONENTIAL: [65, 70, 75, 80, 85, 90, 95, 100, 105, 110, 115, 120],
                TREE_LOG: [260, 280, 300, 320, 340, 360, 380, 400, 420, 440, 460, 480, 500],
                REC_CONCAVE: [260, 280, 300, 320, 340, 360, 380, 400, 420, 440, 460, 480, 500],
            },
            "draws": 1024,
            "search": {"starts": 64, "steps": 400, "width": 64},
            "rounds": {EXPONENTIAL: 4000, TREE_LOG: 1000, REC_CONCAVE: 1000},
            "listed": {
                "bits": 3,
                "n": 7,
                "epsilons": [0.25, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0],
                "starts": 16,
                "steps": 100,
                "rounds": 100,
                "width": 32,
            },
        },
    },
    measure=measure,
    draw=draw,
    cells=("sizes", "listed.epsilons"),
)
