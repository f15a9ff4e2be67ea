"""The two tables of MULTI §1.3: for every cell that has a learner here, the measured exponent of k beside the theorems'.

Runs the measurements of multi_points, multi_thresholds and multi_parities on coarse grids and fits n* ~ k^exponent. Agnostic learners run
on the same data as the others.
"""

from experiments import multi_parities, multi_points, multi_thresholds
from experiments.runner import Experiment
from experiments.table.draw import draw
from experiments.table.measure import measure

POINTS = {
    **multi_points.EXPERIMENT.presets["quick"],
    "concepts": {
        **{name: [] for name in multi_points.SERIES},
        "PointLearner": [1, 32, 1024],
        "generic": [128, 1024],
        "pure direct sum": [1, 4, 16],
        "pure, proper": [1, 4, 16],
    },
    "bounds": [],
}
THRESHOLDS = {
    **multi_thresholds.EXPERIMENT.presets["quick"],
    "concepts": {
        **{name: [] for name in multi_thresholds.SERIES},
        "pure direct sum": [4, 16, 64],
        "direct sum, optimal": [64, 512],
        "generic": [1, 32, 1024],
    },
    "bounds": [],
}
SMOKE = {
    "points": {**multi_points.EXPERIMENT.presets["smoke"], "bounds": []},
    "thresholds": {**multi_thresholds.EXPERIMENT.presets["smoke"], "bounds": []},
    "parities": multi_parities.EXPERIMENT.presets["smoke"],
}
EXPERIMENT = Experiment(
    summary="the tables of MULTI §1.3: measured exponents of k beside the theorems'",
    presets={
        "smoke": SMOKE,
        "quick": {
            "points": POINTS,
            "thresholds": THRESHOLDS,
            "parities": {**multi_parities.EXPERIMENT.presets["quick"], "trials": SMOKE["parities"]["trials"]},
        },
        "full": {
            "points": {**multi_points.EXPERIMENT.presets["full"], "bounds": []},
            "thresholds": {**multi_thresholds.EXPERIMENT.presets["full"], "bounds": []},
            "parities": multi_parities.EXPERIMENT.presets["full"],
        },
    },
    measure=measure,
    draw=draw,
)
