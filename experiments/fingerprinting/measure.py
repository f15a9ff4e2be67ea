"""Measures the numbers of the pictures: those of codes here, those of the attack in `attacks`."""

import functools
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array

from dpjax.fingerprinting import boneh_shaw, pirates, tardos
from dpjax.trials import estimates
from dpjax.trials.progress import Progress
from experiments.fingerprinting import attacks
from experiments.records import Row, estimated, exact
from experiments.runner import Context
from experiments.settings import Settings

CODES = ("Boneh-Shaw", "Tardos", "Tardos, symmetric")
# (panel, the event counted, the estimate of the worst strategy)
PANELS = (("traced", "traced", estimates.smallest), ("falsely accused", "unsound", estimates.largest))


def measure(settings: Settings, context: Context) -> list[Row]:
    """All rows: panels "traced", "falsely accused", "length", "claim"; and those of `attacks`."""
    return [*_lengths(settings, context), *attacks.measure(settings, context)]


def code(name: str, users: int, xi: float, share: float = 1.0) -> Any:
    """The code at a share of its proved length."""
    if name == "Boneh-Shaw":
        whole = boneh_shaw(users, xi)
        return boneh_shaw(users, xi, copies=max(1, round(share * whole.copies)))
    score = "symmetric" if name.endswith("symmetric") else "asymmetric"
    return tardos(users, xi, score=score, length=max(1, round(share * tardos(users, xi, score=score).length)))


def trial(key: Array, params: tuple[Any, Array, Array]) -> dict[str, Array]:
    """`pirates.trial` with the strategy's number as data, so that six strategies share a program."""
    chosen, coalition, number = params

    def strategy(*seen: Any) -> Array:
        return jax.lax.switch(number, list(pirates.STRATEGIES.values()), *seen)

    return pirates.trial(key, pirates.Experiment(code=chosen, coalition=coalition, strategy=strategy))


def _lengths(settings: Settings, context: Context) -> list[Row]:
    """Rates of the worst strategy against the share of the proved length; every other user is a pirate."""
    users, rows = settings["users"], []
    coalition = jnp.arange(users) % 2 == 0
    cells = [(name, share) for name in CODES for share in settings["shares"]]
    with Progress(len(cells), "length", unit="cells") as progress:
        for cell, (name, share) in enumerate(cells):
            chosen = code(name, users, settings["xi"], share)
            counts = [
                context.count(
                    trial,
                    (chosen, coalition, number),
                    key={"panel": "length", "code": name, "share": share, "strategy": strategy},
                    cell=cell,
                    trials=settings["trials"],
                    chunk=settings["trials"],
                )
                for number, strategy in enumerate(pirates.STRATEGIES)
            ]
            for panel, event, worst in PANELS:
                rates = [functools.partial(estimates.clopper_pearson, c[event], settings["trials"]) for c in counts]
                rows.append(estimated(panel, name, share, worst(rates, level=settings["level"])))
            progress.done(1)
    rows += [exact("length", name, 1.0, code(name, users, settings["xi"]).length) for name in CODES]
    return [*rows, exact("claim", "xi", users, settings["xi"])]
