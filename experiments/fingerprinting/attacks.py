"""Measures the attack's numbers: three forms against epsilon, and padded databases at a fixed epsilon.

| form | class, code | learners |
|---|---|---|
| Theorem 43 | thresholds, Boneh-Shaw | direct sums of exponential mechanisms |
| Theorem 47 | points, symmetric Tardos | PointLearner, histogram learner, GenericLearner |
| Proposition 51 | parities, symmetric Tardos | ParityLearner, direct sum of exponential mechanisms |

GenericLearner and the direct sums are agnostic, so they accept their form: as epsilon grows they are traced, long before they are accurate.

PointLearner, the histogram learner and ParityLearner need a number of examples that does not grow with k. That is no
contradiction: their promises hold for consistent labels only, and ParityLearner's for labels of uniform points only.
Consistent labels of points carry no code: users on one point have the same row, and on distinct points a column holds at
most one 1, so the all-zero word is feasible for every two users, and names nobody. On the agnostic form all users share one
point x, but no two users have the same labels. While x is not heavy, the answer is all-zero, which errs on every 1-marked
column; once x is heavy, PointLearner finds a gap of 0 and refuses. A labelled point that occurs once is released with
probability at most delta at every epsilon, so the histogram learner stays at all-zero. ParityLearner takes the strings 0,
..., n-1 for one subsample, which is inconsistent for some of the k columns: it refuses. None of them is ever traced and none is ever
accurate; what their curves show is where they stop answering.

*Padded.* Junk rows (x_0, 0, ..., 0) bring n users to N rows (Remarks 44, 48; x_0 = 0 for parities, as every parity labels it 0). The form
requires an error below n/N, or n/(4N) for parities. The all-zero answer errs on n/N at most, so at their own n the learners are accurate to
the error that they promise, but never to the error that the form requires: the users are lost among the junk. Copies of x_0 = 0 do not
span, so ParityLearner refuses at every N. With junk rows on all strings in turn, it answers from its own n on; but that is no longer a form
of the attack, as all-zero is then the best concept.
"""

import dataclasses
import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array

from dpjax.data.outcome import Status
from dpjax.domains import wide
from dpjax.fingerprinting import Attack, against, audit, boneh_shaw, forms, tardos, trial
from dpjax.fingerprinting.attack import run
from dpjax.learners import parities as one_parity
from dpjax.learners import thresholds
from dpjax.multi import direct_sum, generic, parities, points
from dpjax.sanitizers import points as sanitizer
from dpjax.trials import engine, estimates
from dpjax.trials.progress import Progress
from experiments.records import Row, estimated, exact
from experiments.runner import Context
from experiments.settings import Settings

PUBLIC = "no privacy"
LEARNERS = {
    "thresholds": (PUBLIC, "direct sum, basic", "direct sum, optimal"),
    "points": (PUBLIC, "PointLearner", "histogram", "GenericLearner"),
    "parities": (PUBLIC, "ParityLearner", "direct sum, optimal"),
}
UNIFORM = "ParityLearner, junk on all strings"
PADDED = {
    "points": (PUBLIC, "PointLearner", "histogram"),
    "parities": (PUBLIC, "ParityLearner", UNIFORM),
}
FLAT = (PUBLIC, "ParityLearner")  # their rates are the same for every number of rows: measured at the ends only
COMPOSED = ("direct sum, basic", "direct sum, optimal", "GenericLearner")
PURE = (PUBLIC, "direct sum, basic")
EVENTS = ("traced", "falsely_accused", "inaccurate", "bottom")
BITS = 8  # of the domain of points and thresholds
BETA = 0.1  # failure probability that the learners are built for
NO_PRIVACY = 1e9  # an epsilon at which k exponential mechanisms take the best concepts


class Cell(NamedTuple):
    """One learner at one epsilon, its total privacy parameter; NaN for no privacy."""

    form: str
    learner: str
    epsilon: float


def measure(settings: Settings, context: Context) -> list[Row]:
    """All rows: panels "FORM: traced" and so on, "FORM: epsilon", "FORM: implied", "FORM: k"; "padded FORM: ..."."""
    return [*_attacks(settings, context), *_padded(settings, context)]


# ------------------------------------------------------------------------------------------------ codes and learners


def code(form: str, users: int, xi: float) -> Any:
    """The code that the form uses."""
    return boneh_shaw(users, xi) if form == "thresholds" else tardos(users, xi, score="symmetric")


def form(name: str, users: int, rows: int | None = None, *, uniform: bool = False) -> forms.Form:
    """The form, with junk rows up to `rows`."""
    if name != "parities":
        return getattr(forms, "agnostic" if name == "points" else name)(users, bits=BITS, rows=rows)
    made = forms.parities(users, rows=rows)
    places = [i % users for i in range(made.rows)]
    return dataclasses.replace(made, x=wide.from_ints(places, users.bit_length() - 1)) if uniform else made


def learner(
    form: str,
    name: str,
    *,
    users: int,
    k: int,
    epsilon: float,
    delta: float,
    alpha: float = 1 / 3,
    rows: int | None = None,
) -> Any:
    """The k-learner of that name; "no privacy" takes the best concept."""
    if name == PUBLIC:
        epsilon = NO_PRIVACY
    make = {"thresholds": _of_thresholds, "points": _of_points, "parities": _of_parities}[form]
    return make(name, users, users if rows is None else rows, k, epsilon, delta, alpha)


def _of_thresholds(name: str, users: int, rows: int, k: int, epsilon: float, delta: float, alpha: float) -> Any:
    if name == PUBLIC:
        erm = thresholds.erm(bits=BITS)
        return direct_sum.of(erm, k=k)
    return _direct_sum(lambda each: thresholds.exponential(bits=BITS, epsilon=each.epsilon), name, k, epsilon, delta)


def _of_points(name: str, users: int, rows: int, k: int, epsilon: float, delta: float, alpha: float) -> Any:
    if name == "PointLearner":
        return points.point_learner(bits=BITS, k=k, epsilon=epsilon, delta=delta, alpha=alpha, beta=BETA)
    if name == "histogram":
        return points.histogram_learner(bits=BITS, k=k, epsilon=epsilon, delta=delta)
    return generic.learner(
        sanitizer=sanitizer.histogram(bits=BITS, n=rows, epsilon=epsilon / 2, delta=delta / 2),
        concepts=generic.points(bits=BITS, most=2),  # x and x_0
        k=k,
        epsilon=epsilon,
        delta=delta,
        accountant="basic" if name == PUBLIC else "optimal",
    )


def _of_parities(name: str, users: int, rows: int, k: int, epsilon: float, delta: float, alpha: float) -> Any:
    bits = users.bit_length() - 1
    if name in ("ParityLearner", UNIFORM):
        return parities.parity_learner(bits=bits, k=k, epsilon=epsilon, delta=delta, size=users)
    return _direct_sum(lambda each: one_parity.exponential(bits=bits, epsilon=each.epsilon), name, k, epsilon, delta)


def _direct_sum(make: Any, name: str, k: int, epsilon: float, delta: float) -> direct_sum.DirectSum:
    accountant, delta = ("basic", 0.0) if name in PURE else ("optimal", delta)
    return direct_sum.direct_sum(make, k=k, epsilon=epsilon, delta=delta, accountant=accountant, delta_share=0.0)


# ---------------------------------------------------------------------------------------------------- against epsilon


def _attacks(settings: Settings, context: Context) -> list[Row]:
    """Rates, and the lower bounds on epsilon, against the epsilon of the learner."""
    at = {"level": settings["level"], **settings["attack"]}
    cells = [
        Cell(form, name, epsilon)
        for form, names in LEARNERS.items()
        for name in names
        for epsilon in ([math.nan] if name == PUBLIC else at["composed" if name in COMPOSED else "stable"])
    ]
    rows = []
    span = min(at["stable"] + at["composed"]), max(at["stable"] + at["composed"])
    with Progress(len(cells), "attack", unit="cells") as progress:
        for number, cell in enumerate(cells):
            found = context.store.get_or_compute(
                {"panel": "attack", "form": cell.form, "learner": cell.learner, "epsilon": str(cell.epsilon)},
                lambda number=number, cell=cell: _audit(number, cell, at, context),  # type: ignore[misc]
            )
            for x in span if cell.learner == PUBLIC else (cell.epsilon,):  # without privacy: a horizontal line
                for event in EVENTS:
                    rate = found[event]
                    rows.append(Row(f"{cell.form}: {event}", cell.learner, x, rate["value"], rate["low"], rate["high"]))
                rows += [
                    exact(f"{cell.form}: {bound}", cell.learner, x, found[bound]) for bound in ("epsilon", "implied")
                ]
            progress.done(1)
    users, xi = at["users"], at["xi"]
    rows += [exact(f"{form}: k", "k", users[form], code(form, users[form], xi).length) for form in LEARNERS]
    return [*rows, exact("attack: claim", "xi", at["level"], xi)]


def _audit(number: int, cell: Cell, at: Settings, context: Context) -> dict[str, Any]:
    """The result of `audit` as JSON data, and how often the learner refuses."""
    users = at["users"][cell.form]
    chosen = code(cell.form, users, at["xi"])
    made = learner(cell.form, cell.learner, users=users, k=chosen.length, epsilon=cell.epsilon, delta=at["delta"])
    setup = against(made, code=chosen, form=form(cell.form, users))
    root = jax.random.fold_in(context.root, 2**20 + number)
    found = audit(
        setup,
        root=root,
        trials=at["trials"],
        pilot=at["pilot"],
        delta=0.0 if cell.learner in PURE else at["delta"],
        level=at["level"],
    )
    refused = engine.count(trial, setup, root=root, cell=3, trials=at["pilot"])["bottom"]
    rate = estimates.clopper_pearson(refused, at["pilot"], level=at["level"])
    return {**dataclasses.asdict(found), "bottom": dataclasses.asdict(rate)}


# ------------------------------------------------------------------------------------------------------------ padded


def padded_trial(key: Array, params: tuple[Attack, Array]) -> dict[str, Array]:
    """One attack: whether it traces a user; whether the learner refuses; whether it releases nothing within its error, or the form's."""
    attack, promised = params
    report = run(key, attack)
    released = report.status == Status.OK
    return {
        "traced": jnp.any(report.accused),
        "bottom": report.status == Status.BOTTOM,
        "inaccurate": ~(released & (report.excess <= promised)),
        "too inaccurate": ~report.accurate,
    }


def _padded(settings: Settings, context: Context) -> list[Row]:
    """Rates against the number of rows at a fixed epsilon; each learner's own n; the most tracing that privacy allows."""
    at = {"level": settings["level"], **settings["padded"]}
    users, alpha, rows = at["users"], at["alpha"], []
    chosen = boneh_shaw(users, at["xi"])
    cells = [
        (f, name, n)
        for f, names in PADDED.items()
        for name in names
        for n in (sorted({*at["rows"][f][:1], *at["rows"][f][-1:]}) if name in FLAT else at["rows"][f])
    ]
    with Progress(len(cells), "padded", unit="cells") as progress:
        for number, (name_of_form, name, n) in enumerate(cells):
            at_form = {"users": users, "rows": n, "k": chosen.length, "alpha": alpha}
            made = learner(name_of_form, name, **at_form, epsilon=at["epsilon"], delta=at["delta"])
            setup = against(made, code=chosen, form=form(name_of_form, users, n, uniform=name == UNIFORM))
            counts = context.count(
                padded_trial,
                (setup, jnp.asarray(alpha, float)),
                key={"panel": "padded", "form": name_of_form, "learner": name, "rows": n},
                cell=2**21 + number,
                trials=at["trials"],
                chunk=at["trials"],
            )
            if name == UNIFORM:
                del counts["too inaccurate"]  # this is no form of the attack, so it requires no error
            for event, count in counts.items():
                rate = estimates.clopper_pearson(count, at["trials"], level=at["level"])
                rows.append(estimated(f"padded {name_of_form}: {event}", name, n, rate))
            if name != PUBLIC and n == at["rows"][name_of_form][0]:
                own = made.sample_size(alpha=alpha, beta=BETA)
                rows.append(exact(f"padded {name_of_form}: own n", name, own, own))
            progress.done(1)
    allowed = users * (math.exp(at["epsilon"]) * chosen.innocent() + at["delta"])
    return [*rows, exact("padded: allowed", "privacy", chosen.length, allowed)]
