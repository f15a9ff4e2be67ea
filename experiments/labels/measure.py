"""Measures the numbers of both pictures."""

import itertools
import math
from collections.abc import Iterator
from typing import Any

from dpjax import bounds
from dpjax.accounting import REPLACE_LABEL, Guarantee, calibrate
from dpjax.concepts import points as point_concept
from dpjax.concepts import thresholds as threshold_concept
from dpjax.fingerprinting import Attack, against, forms, necessary, tardos, trial
from dpjax.learners import label_private
from dpjax.learners import points as one_point
from dpjax.learners import thresholds as one_threshold
from dpjax.multi import direct_sum
from dpjax.trials import estimates
from dpjax.trials.progress import Progress
from dpjax.trials.sweep import least_n as sweep
from experiments import least_n
from experiments.records import Row, estimated, exact
from experiments.runner import Context
from experiments.settings import Settings

PRIVATE, WHOLE = "private labels", "private examples (exponential mechanism)"
ACCOUNTANTS = {"pure": "basic", "approximate": "optimal"}
EVENTS = ("traced", "inaccurate")
ALL_WRONG = math.nextafter(1.0, 0.0)  # every error on one point with one label that is not 0 exceeds this
BITS = 64  # of the domain in the second picture, on which n* does not depend
NO_PRIVACY = 1e9


def measure(settings: Settings, context: Context) -> list[Row]:
    """All rows: panels "thresholds", "points", "theorem"; "least n" (by k), "bound"; "attack: traced" and so on."""
    rows = [*_by_domain(settings, context), *_theorems(settings)]
    return [*rows, *_by_concepts(settings), *_attacks(settings, context)]


# --------------------------------------------------------------------------------------------- (a) one concept, by d


def _by_domain(settings: Settings, context: Context) -> Iterator[Row]:
    """n* by exact laws, averaged over draws of data."""
    epsilon = settings["epsilon"]
    masses = [0.25, *[0.75 / 7] * 7]  # the target's comes first; all other points are no better than all-zero
    classes: dict[str, Any] = {
        "thresholds": (
            label_private.thresholds,
            one_threshold.exponential,
            lambda bits: threshold_concept.log_uniform(bits=bits),
        ),
        "points": (
            label_private.points,
            one_point.exponential,
            lambda bits: point_concept.point_masses(
                bits=bits, points=[2**i for i in range(8)], masses=masses, target=1
            ),
        ),
    }
    for panel, (concepts, whole, distribution) in classes.items():
        makers: dict[str, Any] = {
            PRIVATE: lambda bits, concepts=concepts: label_private.label_private(
                concepts=concepts(bits=bits), epsilon=epsilon
            ),
            WHOLE: lambda bits, whole=whole: whole(bits=bits, epsilon=epsilon),
        }
        for series, bits in itertools.product(makers, settings["bits"]):
            curve = sweep(
                {series: makers[series]},
                distribution=distribution,
                over={"bits": [bits]},
                start=60
                if series == PRIVATE
                else 60 + 6 * bits,  # near what is found, so that few capacities are compiled
                seed=context.seed,
                store=context.store,
                progress=True,
                **{name: settings[name] for name in ("alpha", "beta", "level", "draws", "rtol")},
            )
            (row,) = curve.to_rows()
            if row["n"] is not None:
                yield Row(panel, series, bits, row["n"], row["low"] or 1, row["high"] or math.inf)


def _theorems(settings: Settings) -> Iterator[Row]:
    """The numbers of examples that suffice on every domain."""
    alpha, beta, epsilon = (settings[name] for name in ("alpha", "beta", "epsilon"))
    found = {
        "printed (BNS Theorem 6.2)": bounds.label_private(1, alpha, beta, epsilon, calibration="printed"),
        "corrected": bounds.label_private(1, alpha, beta, epsilon),
        "nothing set aside": bounds.label_private_whole(1, alpha, beta, epsilon),
    }
    for name, n in found.items():
        yield exact("theorem", name, 0, math.ceil(n))


# ---------------------------------------------------------------------------------------------- (b) k concepts at once


def each_epsilon(name: str, k: int, settings: Settings, epsilon: float) -> float:
    """The epsilon that each of k label-private learners may spend."""
    delta = 0.0 if ACCOUNTANTS[name] == "basic" else settings["delta"]
    total = Guarantee(epsilon, delta, REPLACE_LABEL)
    return calibrate(total, k, accountant=ACCOUNTANTS[name], delta_share=0.0).epsilon


def unanimous(each: float, k: int, beta: float) -> int:
    """The least n at which k label-private learners of epsilon `each` are right on k columns of agreeing labels, all at one point.

    A column has two dichotomies, one right on all n examples and one on none, so it fails with probability p = 1/(1 + exp(each n/2)). All k
    are right with probability 1 - beta at n = (2/each) ln(1/p - 1), where 1 - p = (1 - beta)^(1/k).
    """
    p = -math.expm1(math.log1p(-beta) / k)
    return math.ceil(2.0 / each * (math.log1p(-p) - math.log(p)))


def _by_concepts(settings: Settings) -> Iterator[Row]:
    """n* by the exact law, and what every learner that protects labels needs; both lower bounds use databases of one point."""
    epsilon, delta, beta = (settings[name] for name in ("epsilon", "delta", "beta"))
    for name in ACCOUNTANTS:
        for k in settings["concepts"]:
            yield exact("least n", name, k, unanimous(each_epsilon(name, k, settings, epsilon), k, beta))
    formulas = {
        "pure (Theorem 52)": lambda k: bounds.pure_packing(k, epsilon),
        "approximate (Theorem 47)": lambda k: necessary.agnostic(
            k, alpha=ALL_WRONG, beta=beta, epsilon=epsilon, delta=delta
        ),
    }
    yield from least_n.lower_bounds(settings["bounds"], formulas)


def attacked(name: str, epsilon: float, settings: Settings) -> Attack:
    """The attack on k label-private learners, k the code's length; all users are at one point, so that labels alone can betray them."""
    given = settings["attack"]
    code = tardos(given["users"], given["xi"], score="symmetric")
    each = each_epsilon(name, code.length, settings, epsilon) if name in ACCOUNTANTS else NO_PRIVACY
    one = label_private.label_private(concepts=label_private.thresholds(bits=BITS), epsilon=each)
    return against(direct_sum.of(one, k=code.length), code=code, form=forms.agnostic(given["users"], bits=BITS))


def _attacks(settings: Settings, context: Context) -> Iterator[Row]:
    """Rates against the total epsilon."""
    given = settings["attack"]
    cells = [(name, epsilon) for name in ACCOUNTANTS for epsilon in given["epsilons"]]
    cells.append(("no privacy", given["epsilons"][-1]))
    with Progress(len(cells), "attack", unit="cells") as progress:
        for number, (name, epsilon) in enumerate(cells):
            counts = context.count(
                trial,
                attacked(name, epsilon, settings),
                key={"panel": "attack", "learner": name, "epsilon": epsilon},
                cell=2**20 + number,
                trials=given["trials"],
                chunk=given["trials"],
                batch=2,
            )
            for event in EVENTS:
                rate = estimates.clopper_pearson(counts[event], given["trials"], level=settings["level"])
                for x in (given["epsilons"][0], epsilon) if name == "no privacy" else (epsilon,):
                    yield estimated(f"attack: {event}", name, x, rate)
            progress.done(1)
    code = attacked("pure", 1.0, settings).code
    yield exact("attack: k", "columns", given["users"], code.length)
    yield exact("attack: soundness", "innocent", code.length, code.innocent())
