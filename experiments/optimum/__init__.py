"""How far is each private algorithm for interior points from the best possible one?

On small domains the best possible one is found by a linear programme (`dpjax.bounds.optimal`). Two pictures, each under both relations: (a)
the least n with worst-case failure <= beta against |X|, for the optimum and the exponential mechanism; (b) worst-case failure against n on
one domain, for the optimum and every algorithm at the same (epsilon, delta). Nothing is sampled: laws are exact, and the worst case is over
all datasets, or, if there are too many, over datasets of two values; the true worst case is then no less.
"""

from experiments.optimum.draw import draw
from experiments.optimum.measure import measure
from experiments.runner import Experiment

# Replacing is removing and adding, so replace-one at epsilon is about as demanding as add/remove at epsilon / 2.
COMMON = {"epsilon": {"REPLACE_ONE": 1.0, "ADD_OR_REMOVE_ONE": 0.5}, "delta": 0.01, "beta": 0.1}
EXPERIMENT = Experiment(
    summary="interior points: the optimum by linear programming beside every algorithm's worst case",
    presets={
        "smoke": {
            **COMMON,
            "least_n": {"pure": [2, 3, 4], "approximate": [2, 3], "exponential": [2, 4]},
            "failure": {
                "bits": 1,
                "optimum": [[0.0, [1, 2, 3, 4, 6]], [0.01, [1, 2, 3, 4, 6]]],
                "cheap": [1, 2, 4, 8, 16],
                "costly": [31],
                "all_up_to": 100,
            },
        },
        "quick": {
            **COMMON,
            "least_n": {"pure": [2, 3, 4, 5, 6, 7, 8], "approximate": [2, 3, 4, 5, 6], "exponential": [2, 4, 8]},
            "failure": {
                "bits": 2,
                "optimum": [
                    [0.0, [1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16]],
                    [1e-4, [1, 2, 3, 4, 5, 6, 7, 8, 10, 12]],
                    [0.01, [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]],
                ],
                "cheap": [1, 2, 3, 4, 6, 8, 12, 16, 24, 31, 48, 63],
                "costly": [7, 15, 63, 127, 191, 255, 383, 511, 767, 1023],
                "all_up_to": 12_000,
            },
        },
        "full": {
            **COMMON,
            "least_n": {"pure": [2, 3, 4, 5, 6, 7, 8, 9], "approximate": [2, 3, 4, 5, 6, 7], "exponential": [2, 4, 8]},
            "failure": {
                "bits": 2,
                "optimum": [
                    [0.0, list(range(1, 19))],
                    [1e-4, list(range(1, 17))],
                    [0.01, list(range(1, 11))],
                ],
                "cheap": [*range(1, 17), 20, 24, 31, 40, 48, 55, 63],
                "costly": [7, 15, 31, 63, 95, 127, *range(159, 512, 32), 639, 767, 895, 1023],
                "all_up_to": 100_000,
            },
        },
    },
    measure=measure,
    draw=draw,
    cells=("least_n", "failure.cheap", "failure.costly"),
)
