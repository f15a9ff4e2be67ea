"""How many examples does a tuned split of the privacy budget save?

Every algorithm keeps the same total (epsilon, delta) with the split that its factory derives and with one tuned through its exact law
(`dpjax.relaxations.tune`), or, where integers are chosen, with the best plan of a list (`listed`). Splits are tuned on some datasets and
measured on others: failure against n, the least n, and what each mechanism spends.
"""

from experiments.runner import Experiment
from experiments.tuning.draw import draw
from experiments.tuning.listed import LISTED
from experiments.tuning.measure import CASES, measure

COMMON = {"epsilon": 1.0, "delta": 1e-6, "beta": 0.1, "alpha": 0.1}
EXPERIMENT = Experiment(
    summary="budgets tuned by the law: the least n with the derived split and with the tuned one",
    presets={
        "smoke": {
            **COMMON,
            "bits": 12,
            "cases": ["RecConcave, N=2"],
            "listed": [],
            "runs": 1,
            "datasets": 2,
            "steps": 4,
            "rounds": 1,
            "rtol": 0.5,
            "sizes": 2,
        },
        "quick": {
            **COMMON,
            "bits": 64,
            "cases": list(CASES),
            "listed": list(LISTED),
            "runs": 400,
            "datasets": 8,
            "steps": 40,
            "rounds": 2,
            "rtol": 0.02,
            "sizes": 8,
        },
        "full": {
            **COMMON,
            "bits": 64,
            "cases": list(CASES),
            "listed": list(LISTED),
            "runs": 2000,
            "datasets": 64,
            "steps": 300,
            "rounds": 4,
            "rtol": 0.005,
            "sizes": 20,
        },
    },
    measure=measure,
    draw=draw,
    cells=("cases", "listed"),
)
