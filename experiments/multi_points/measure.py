"""Measures the numbers of the picture."""

from typing import Any

from dpjax import bounds
from dpjax.concepts import points as concept
from dpjax.fingerprinting import necessary
from dpjax.learners import points as single
from dpjax.multi import direct_sum, generic, pac, points
from dpjax.sanitizers import points as sanitizer
from dpjax.trials import search
from experiments import least_n
from experiments.records import Row
from experiments.runner import Context
from experiments.settings import Settings

MAXIMUM = 2**20  # examples; a cell that needs more is left out
FIRST_GUESS = {
    "PointLearner": 1200,
    "histogram": 300,
    "generic": 500,
    "direct sum, optimal": 300,
    "pure direct sum": 100,
    "pure, proper": 200,
    "pure histogram": 1000,
}
SERIES = tuple(FIRST_GUESS)
POINTS = [3, 2**20, 2**40 + 1, 2**50, 2**60, 5, 2**63]
MASSES = [0.3, 0.2, 0.15, 0.12, 0.1, 0.08, 0.05]


def measure(settings: Settings, context: Context) -> list[Row]:
    """All rows: panels "least n", "bound"."""

    def find(name: str, k: int, cell: int, start: int) -> search.LeastN:
        return least_n.by_trials(
            pac.trial,
            lambda n, capacity: _experiment(name, k, n, capacity, settings),
            key={"panel": "least n", "class": "points", "learner": name, "k": k},
            cell=cell,
            start=start,
            maximum=MAXIMUM,
            settings=settings,
            context=context,
        )

    rows = least_n.curves({name: settings["concepts"][name] for name in SERIES}, find, guesses=FIRST_GUESS)
    return [*rows, *lower_bounds(settings)]


def lower_bounds(settings: Settings) -> list[Row]:
    """Examples that PAC k-learners need; the empirical bound of Theorem 47 carries over to them by Theorem 28."""
    alpha, beta, epsilon = (settings[name] for name in ("alpha", "beta", "epsilon"))
    private = {"alpha": alpha, "beta": beta, "epsilon": epsilon, "delta": settings["delta"]}
    rows = bounds.rows_of_empirical(epsilon)
    formulas = {
        "pure (Remark 53)": lambda k: bounds.pure_packing_padded(k, alpha, beta, epsilon),
        "$k^{1/2}$, agnostic (Thms 47, 28)": lambda k: necessary.agnostic(k, **private) / rows,
    }
    return least_n.lower_bounds(settings["bounds"], formulas)


def learner(name: str, k: int, n: int, settings: Settings) -> Any:
    """The k-learner of that name at the experiment's privacy."""
    bits, epsilon, delta, alpha = settings["bits"], settings["epsilon"], settings["delta"], settings["alpha"]
    if name == "PointLearner":
        return points.point_learner(bits=bits, k=k, epsilon=epsilon, delta=delta, alpha=alpha, beta=settings["beta"])
    if name == "histogram":
        return points.histogram_learner(bits=bits, k=k, epsilon=epsilon, delta=delta)
    if name == "generic":
        return generic.learner(
            sanitizer=sanitizer.histogram(bits=bits, n=n, epsilon=epsilon / 2, delta=delta / 2),
            concepts=generic.points(bits=bits, most=len(POINTS)),
            k=k,
            epsilon=epsilon,
            delta=delta,
            accountant="optimal",
        )
    if name == "direct sum, optimal":
        return direct_sum.direct_sum(
            lambda each: single.learn_points(bits=bits, epsilon=each.epsilon, delta=each.delta, bottom="zero"),
            k=k,
            epsilon=epsilon,
            delta=delta,
            accountant="optimal",
        )
    if name == "pure histogram":
        threshold = bounds.sparse_threshold(bits + k, epsilon, settings["beta"] / 16)
        return points.sparse_histogram_learner(bits=bits, k=k, epsilon=epsilon, threshold=threshold)
    make = single.hashed if name == "pure direct sum" else single.exponential
    return direct_sum.direct_sum(lambda each: make(bits=bits, epsilon=each.epsilon), k=k, epsilon=epsilon)


def _experiment(name: str, k: int, n: int, capacity: int, settings: Settings) -> pac.Experiment:
    """The experiment on seven points with masses around alpha, with the k targets spread over them."""
    return pac.Experiment(
        learner=learner(name, k, n, settings),
        distribution=concept.point_masses(
            bits=settings["bits"],
            points=POINTS,
            masses=MASSES,
            target=[POINTS[len(POINTS) * (2 * j + 1) // (2 * k) % len(POINTS)] for j in range(k)],
        ),
        n=n,
        alpha=settings["alpha"],
        capacity=capacity,
    )
