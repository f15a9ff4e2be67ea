"""The numbers of the two pictures."""

import dataclasses
from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array

from dpjax.fingerprinting import against, audit, boneh_shaw, forms, pirates, tardos
from dpjax.learners import thresholds
from dpjax.multi import direct_sum
from dpjax.trials import estimates, resumable
from dpjax.trials.progress import Progress
from experiments.records import Row, exact
from experiments.runner import Context

Settings = Mapping[str, Any]
CODES = ("Boneh-Shaw", "Tardos", "Tardos, symmetric")
LEARNERS = ("ERM", "direct sum, basic", "direct sum, optimal")


def measure(settings: Settings, context: Context) -> list[Row]:
    """All rows: panels "traced", "falsely accused", "length", "claim"; "attack k", "attack ...", "epsilon", "implied"."""
    return [*_lengths(settings, context), *_attacks(settings, context)]


# ----------------------------------------------------------------------------------------------- (a) length of the code


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
    """Half of the users are pirates, every other one; the worst strategy for each number."""
    users, rows = settings["users"], []
    coalition = jnp.arange(users) % 2 == 0
    cells = [(name, share) for name in CODES for share in settings["shares"]]
    with Progress(len(cells), "length", unit="cells") as progress:
        for cell, (name, share) in enumerate(cells):
            chosen = code(name, users, settings["xi"], share)
            counts = [
                resumable.count(
                    trial,
                    (chosen, coalition, number),
                    store=context.store,
                    key={"panel": "length", "code": name, "share": share, "strategy": strategy},
                    root=context.root,
                    cell=cell,
                    trials=settings["trials"],
                    chunk=settings["trials"],
                )
                for number, strategy in enumerate(pirates.STRATEGIES)
            ]
            rows.append(_row("traced", name, share, min(c["traced"] for c in counts), settings))
            rows.append(_row("falsely accused", name, share, max(c["unsound"] for c in counts), settings))
            progress.done(1)
    rows += [exact("length", name, 1.0, code(name, users, settings["xi"]).length) for name in CODES]
    return [*rows, exact("claim", "xi", users, settings["xi"])]


def _row(panel: str, series: str, x: float, events: int, settings: Settings) -> Row:
    rate = estimates.clopper_pearson(events, settings["trials"], level=settings["level"])
    return Row(panel, series, x, rate.value, rate.low, rate.high)


# --------------------------------------------------------------------------------------------------- (b) the attack


def learner(name: str, k: int, epsilon: float, settings: Settings) -> Any:
    """k thresholds by direct sum: of empirical risk minimisers, or of exponential mechanisms at a share of epsilon."""
    if name == "ERM":
        erm = thresholds.erm(bits=settings["bits"])
        return direct_sum.DirectSum(learner=erm, epsilon=jnp.inf, delta=1.0, k=k, composition="basic")
    optimal = name == "direct sum, optimal"
    return direct_sum.direct_sum(
        lambda each: thresholds.exponential(bits=settings["bits"], epsilon=each.epsilon),
        k=k,
        epsilon=epsilon,
        delta=settings["delta"] if optimal else 0.0,
        composition="optimal" if optimal else "basic",
        delta_share=0.0,
    )


def _attacks(settings: Settings, context: Context) -> list[Row]:
    """Traced, inaccurate, and the lower bounds on epsilon, against the epsilon spent."""
    at = {"level": settings["level"], **settings["attack"]}
    epsilons, rows = at["epsilons"], []
    cells = [(name, epsilon) for name in LEARNERS for epsilon in (epsilons if name != "ERM" else epsilons[-1:])]
    with Progress(len(cells), "attack", unit="cells") as progress:
        for cell, (name, epsilon) in enumerate(cells):
            found = context.store.get_or_compute(
                {"panel": "attack", "learner": name, "epsilon": epsilon},
                lambda cell=cell, name=name, epsilon=epsilon: _audit(cell, name, epsilon, at, context),  # type: ignore[misc]
            )
            # ERM knows no epsilon: a line across.
            for x in [epsilon] if name != "ERM" else [epsilons[0], epsilons[-1]]:
                for event in ("traced", "inaccurate"):
                    rate = found[event]
                    rows.append(Row(f"attack {event}", name, x, rate["value"], rate["low"], rate["high"]))
                rows += [exact(bound, name, x, found[bound]) for bound in ("epsilon", "implied")]
            progress.done(1)
    return [*rows, exact("attack k", "Boneh-Shaw", at["users"], boneh_shaw(at["users"], at["xi"]).length)]


def _audit(cell: int, name: str, epsilon: float, at: Settings, context: Context) -> dict[str, Any]:
    """`audit` as JSON data, on the PAC form for thresholds."""
    chosen = boneh_shaw(at["users"], at["xi"])
    setup = against(
        learner(name, chosen.length, epsilon, at), code=chosen, form=forms.thresholds(at["users"], bits=at["bits"])
    )
    found = audit(
        setup,
        root=jax.random.fold_in(context.root, 2**20 + cell),
        trials=at["trials"],
        pilot=at["pilot"],
        delta=at["delta"] if name == "direct sum, optimal" else 0.0,
        level=at["level"],
    )
    return dataclasses.asdict(found)
