"""What does Reorder-Slice-Compute cost as the number of slices grows?

Two pictures: (a) the total epsilon of each accountant against the number of slices, above a lower bound audited from runs on a pair of
datasets built to be hard; (b) how often the proof's data holder is called on its worst case, beside the exact law and the paper's bound.
"""

from experiments.runner import Experiment
from experiments.slicing.draw import draw
from experiments.slicing.measure import measure

COMMON = {"slice_epsilon": 0.25, "compute_epsilon": 0.25, "delta": 1e-6, "slices": [1, 2, 4, 8, 16, 32, 64, 128, 256]}
EXPERIMENT = Experiment(
    summary="total epsilon of Reorder-Slice-Compute against the number of slices; calls to the data holder",
    presets={
        "smoke": {**COMMON, "audited": [1, 4], "trials": 2000, "calls": 2000},
        "quick": {**COMMON, "audited": [1, 2, 4, 8, 16], "trials": 200_000, "calls": 200_000},
        "full": {**COMMON, "audited": [1, 2, 4, 8, 16, 32, 64], "trials": 10_000_000, "calls": 10_000_000},
    },
    measure=measure,
    draw=draw,
)
