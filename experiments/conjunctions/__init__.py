"""How many examples does it take to learn a conjunction of k out of d literals privately, against k?

Rounds that share one failing test (GEO Claim 3.4) beside the same rounds under plain composition. The variables are 1 with probability
2^(-1/k), so that the target labels half of all assignments 1.
"""

from typing import Any

from dpjax.concepts import conjunctions as concept
from dpjax.learners import conjunctions
from experiments import captions, sweeps
from experiments.settings import Settings

COMMON = {"bits": 64, "epsilon": 1.0, "delta": 1e-6, "alpha": 0.1, "beta": 0.1, "level": 0.95, "start": 1024}
SERIES = {"a shared test (GEO)": "shared_test", "composition": "composition"}


def algorithms(settings: Settings) -> dict[str, Any]:
    """The same rounds by both accountants."""

    def make(accountant: str) -> Any:
        given = {name: settings[name] for name in ("bits", "epsilon", "delta", "alpha", "beta")}
        return lambda k: conjunctions.conjunction(k=k, accountant=accountant, **given)

    return {series: make(accountant) for series, accountant in SERIES.items()}


EXPERIMENT = sweeps.experiment(
    "least n to learn a conjunction against its number of literals, by a shared test and by composition",
    presets={
        "smoke": {**COMMON, "over": {"k": [1, 2]}, "rtol": 0.2, "trials": 200},
        "quick": {**COMMON, "over": {"k": [1, 2, 4, 8, 16]}, "rtol": 0.05, "trials": 1000},
        "full": {**COMMON, "over": {"k": [1, 2, 4, 8, 16, 32, 64]}, "rtol": 0.02, "trials": 16384},
    },
    algorithms=algorithms,
    distribution=lambda settings: (
        lambda k: concept.product(bits=settings["bits"], target=[2 * v for v in range(k)], p=2.0 ** (-1 / k))
    ),
    title=lambda settings: (
        f"Least n to learn a conjunction of k of {settings['bits']} variables, {captions.privacy(settings)}"
    ),
)
