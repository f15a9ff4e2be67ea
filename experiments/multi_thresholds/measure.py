"""Measures the numbers of the picture."""

from typing import Any

from dpjax import bounds
from dpjax.concepts import thresholds as concept
from dpjax.fingerprinting import necessary
from dpjax.learners import thresholds
from dpjax.multi import direct_sum, generic, pac
from dpjax.optimizers import interior_point, quantiles
from dpjax.sanitizers import cdf
from dpjax.trials import search
from experiments import least_n
from experiments.records import Row
from experiments.runner import Context
from experiments.settings import Settings

MAXIMUM = 2**20  # examples; a cell that needs more is left out
FIRST_GUESS = {
    "pure direct sum": 30,
    "direct sum, advanced": 200,
    "direct sum, optimal": 30,
    "RecConcave, optimal": 800,
    "generic": 6000,
    "ERM": 10,
    "direct sum, bounded": 30,
}
SERIES = tuple(FIRST_GUESS)


def measure(settings: Settings, context: Context) -> list[Row]:
    """All rows: panels "least n", "bound"."""

    def find(name: str, k: int, cell: int, start: int) -> search.LeastN:
        return least_n.by_law(
            pac.failure,
            lambda n, capacity: _experiment(name, k, n, capacity, settings),
            key={"panel": "least n", "class": "thresholds", "learner": name, "k": k},
            cell=cell,
            draws=max(settings["draws"] // k, settings["least draws"]),  # each draw is judged on k concepts
            start=start,
            maximum=MAXIMUM,
            settings=settings,
            context=context,
            batch=1,
        )

    rows = least_n.curves({name: settings["concepts"][name] for name in SERIES}, find, guesses=FIRST_GUESS)
    return [*rows, *lower_bounds(settings)]


def lower_bounds(settings: Settings) -> list[Row]:
    """Examples that PAC k-learners need; the empirical bounds of Theorems 43 and 47 carry over to them by Theorem 28."""
    alpha, beta, epsilon = (settings[name] for name in ("alpha", "beta", "epsilon"))
    private = {"alpha": alpha, "beta": beta, "epsilon": epsilon, "delta": settings["delta"]}
    domain, rows = 2 ** settings["bits"], bounds.rows_of_empirical(epsilon)
    formulas = {
        "pure (Remark 53)": lambda k: bounds.pure_packing_padded(k, alpha, beta, epsilon),
        "$k^{1/3}$ (Thms 43, 28)": lambda k: necessary.thresholds(k, **private, domain=domain) / rows,
        "$k^{1/2}$, agnostic (Thms 47, 28)": lambda k: necessary.agnostic(k, **private) / rows,
    }
    return least_n.lower_bounds(settings["bounds"], formulas)


def learner(name: str, k: int, settings: Settings) -> Any:
    """The k-learner of that name at the experiment's privacy."""
    bits, epsilon, delta = settings["bits"], settings["epsilon"], settings["delta"]
    if name == "ERM":
        return direct_sum.of(thresholds.erm(bits=bits), k=k)
    if name == "generic":
        solver = interior_point.exponential(
            bits=2 * bits, epsilon=settings["sanitizer_epsilon"] / (4 * settings["levels"])
        )
        # This m need not suffice by the proof, because the least n is measured.
        released = quantiles.recursive(
            solver=solver, bits=bits, depth=settings["levels"], m=settings["m"], allow_unproved=True
        )
        return generic.learner(
            sanitizer=cdf.release(quantiles=released),
            concepts=generic.thresholds(bits=bits),
            k=k,
            epsilon=epsilon,
            delta=delta,
            accountant="bounded",
        )
    if name == "RecConcave, optimal":
        return direct_sum.direct_sum(
            lambda each: thresholds.rec_concave(
                bits=bits, epsilon=each.epsilon, delta=each.delta, alpha=2 * settings["alpha"], depth=2
            ),
            k=k,
            epsilon=epsilon,
            delta=delta,
            accountant="optimal",
        )
    accountant = {"pure direct sum": "basic"}.get(name, name.rpartition(" ")[2])
    return direct_sum.direct_sum(
        lambda each: thresholds.exponential(bits=bits, epsilon=each.epsilon),
        k=k,
        epsilon=epsilon,
        delta=0.0 if accountant == "basic" else delta,
        accountant=accountant,
        delta_share=None if accountant == "basic" else 0.0,
    )


def distribution(k: int, settings: Settings) -> concept.Several:
    """Equal masses at 2^(d-1) +- 2^u for every u, so that every scale matters; k targets are spread evenly over these points."""
    bits = settings["bits"]
    centre = 1 << (bits - 1)
    points = sorted({centre + sign * (1 << u) for u in range(bits - 1) for sign in (-1, 1)})
    base = concept.point_masses(bits=bits, points=points, masses=[1.0] * len(points), target=0)
    targets = [points[len(points) * (2 * j + 1) // (2 * k)] for j in range(k)]
    return concept.several(base, bits=bits, targets=targets)


def _experiment(name: str, k: int, n: int, capacity: int, settings: Settings) -> pac.Experiment:
    return pac.Experiment(
        learner=learner(name, k, settings),
        distribution=distribution(k, settings),
        n=n,
        alpha=settings["alpha"],
        capacity=capacity,
    )
