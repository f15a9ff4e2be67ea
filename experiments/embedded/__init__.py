"""Private mechanisms inside trained models, on images of digits: does training through them pay?

(a) A private stump: a feature map trained end to end through a private threshold (softened, straight-through, or by its law), or by plain
regression, and a threshold learned on it by the exact private learner. (b) Private clipping: noisy gradient descent whose clipping norm is
a private quantile of the gradients' norms at each step, against fixed norms, at the same total budget; both with and without tuning by
gradient. Training and tuning use the public third of the images alone; guarantees are for the private third; errors are measured on the
last third.
"""

from experiments.embedded.draw import draw
from experiments.embedded.measure import measure
from experiments.runner import Experiment

STUMP = {
    "bits": 10,
    "hidden": 16,
    "temperature": 1.0,
    "width": 0.03,
    "rate": 0.01,
    "finer": 0.003,
}
CLIPPING = {
    "epsilon": 2.0,
    "delta": 1e-5,
    "share": 0.2,
    "steps": 20,
    "rate": 1.0,
    "least": 0.05,
    "largest": 50.0,
    "temperature": 0.5,
    "rate_of_tuning": 0.1,
}
EXPERIMENT = Experiment(
    summary="private thresholds and private clipping inside trained models, on real images",
    presets={
        "smoke": {
            "splits": 2,
            "level": 0.95,
            "stump": {
                **STUMP,
                "bits": 5,
                "hidden": 4,
                "ways": [0, 3],
                "epsilons": [0.1],
                "warmup": 50,
                "steps": 3,
                "draws": 1,
            },
            "clipping": {**CLIPPING, "steps": 3, "norms": [0.3], "fractions": [0.5], "runs": 1, "tuning": 2},
        },
        "quick": {
            "splits": 6,
            "level": 0.95,
            "stump": {**STUMP, "epsilons": [0.003, 0.01, 0.03, 0.1, 0.3], "warmup": 300, "steps": 200, "draws": 4},
            "clipping": {
                **CLIPPING,
                "norms": [0.1, 0.3, 1.0, 2.0, 4.0, 10.0, 30.0],
                "fractions": [0.1, 0.3, 0.5, 0.7, 0.9],
                "runs": 8,
                "tuning": 60,
            },
        },
        "full": {
            "splits": 50,
            "level": 0.95,
            "stump": {
                **STUMP,
                "epsilons": [0.003, 0.01, 0.03, 0.1, 0.3, 1.0],
                "warmup": 1000,
                "steps": 1000,
                "draws": 16,
            },
            "clipping": {
                **CLIPPING,
                "norms": [0.1, 0.2, 0.3, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 10.0, 30.0],
                "fractions": [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9],
                "runs": 32,
                "tuning": 300,
            },
        },
    },
    measure=measure,
    draw=draw,
    cells=("stump.epsilons", "clipping.norms", "clipping.fractions"),
)
