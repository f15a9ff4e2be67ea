"""The papers' own figures from real runs: what the papers drew by hand is measured here.

BNS Figures 1 to 3 (one run of the search for an interval's length) and 4 to 7 (one run of RecConcave on a small domain), CLNSS §1.3.3
(TreeLog's path through the trie, with the probabilities that it stops and the slices) and CLNSS Example 1.4 (the domino effect, with and
without noise in the sizes of slices).
"""

from typing import Any

from experiments.papers.draw import draw
from experiments.papers.measure import measure
from experiments.runner import Experiment

SETTINGS: dict[str, dict[str, Any]] = {
    "interval": {"bits": 10, "n": 6000, "epsilon": 1.0, "delta": 1e-6, "alpha": 0.4, "target": 417},
    "concave": {
        "bits": 10,
        "n": 6000,
        "epsilon": 1.0,
        "delta": 1e-6,
        "alpha": 0.2,
        "target": 417,
        "shown": [160, 300, 417, 700],
    },
    "tree": {"bits": 10, "n": 74, "epsilon": 4.0, "delta": 1e-3, "beta": 0.1},
    "domino": {"n": 40, "size": 5, "slices": 7, "epsilon": 1.0, "runs": 20_000, "level": 0.95},
}
EXPERIMENT = Experiment(
    summary="the figures of the papers from real runs: a good interval, RecConcave step by step, TreeLog's trie, the domino effect",
    presets={
        "smoke": {**SETTINGS, "domino": {**SETTINGS["domino"], "runs": 2000}},
        "quick": SETTINGS,
        "full": {**SETTINGS, "domino": {**SETTINGS["domino"], "runs": 2_000_000}},
    },
    measure=measure,
    draw=draw,
)
