"""Plans without a derivative, listed and compared by simulation: set cover's rounds, and the sizes of rectangles by slices.

*Rectangles.* The proof that slices of public size compose (`dpjax.learners.rectangles`) holds for every size, and the privacy of the noisy
count holds for every threshold: m and tau follow from the failure probabilities allowed to the solvers and to the test, not from the
budget. So cutting smaller slices keeps (epsilon, delta), but no failure probability is proved: such a learner refuses to name a sample
size. (Verified exactly for m = tau = 1, the least possible, in `tests/test_rectangles.py`.)
"""

import dataclasses
import functools
import math
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from dpjax.concepts import rectangles as rectangle
from dpjax.concepts.conjunctions import label
from dpjax.core import bits
from dpjax.data.assignments import Assignments
from dpjax.learners import conjunctions, rectangles
from dpjax.learners.rectangles import slices_alone
from dpjax.relaxations import budgets
from experiments.records import Row, exact
from experiments.settings import Settings

STEP = 1.05  # the least n is sought on a grid of this ratio
SURELY = 0.75  # share of beta that a plan must keep at the largest n
WORDS = 12
SHRUNK = (0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3)  # sizes of rectangles' slices, as shares of the derived size


@dataclasses.dataclass(frozen=True)
class Listed:
    """Plans of one total budget, and trials of a plan.

    Attributes:
      plans: settings -> the plans; the derived one first.
      wrong: (plan, n, alpha, a dataset's key, a key) -> whether a run on n examples of that dataset fails.
      maximum: the largest n.
    """

    plans: Callable[[Settings], list[Any]]
    wrong: Callable[[Any, Any, Any, Any, Any], Any]
    maximum: int


def measured(number: int, name: str, settings: Settings, seed: int) -> list[Row]:
    """The rows of one learner: the plan with the least n on some data, its least n on other data, and failures around it."""
    case, plans = LISTED[name], LISTED[name].plans(settings)
    train, held_out = (jax.random.fold_in(jax.random.key(seed), offset) for offset in (1, 2))
    judged = functools.partial(failure, case, settings)
    tuned, bar = plans[0], _least(functools.partial(judged, plans[0], key=train), settings["beta"], case.maximum)
    for plan in plans[1:]:
        # Most plans are rejected by one test at the least n so far. Slices too small for their solver fail however many examples there are,
        # so a plan must also keep beta, with a margin, at the largest n: otherwise its least n would be an accident of the draws.
        at_bar, at_most = (judged(plan, n, key=train) for n in (bar, case.maximum))
        if at_bar <= settings["beta"] and at_most <= SURELY * settings["beta"]:
            found = _least(functools.partial(judged, plan, key=train), settings["beta"], bar)
            if found < bar:
                tuned, bar = plan, found
    both, rows, least = {"derived": plans[0], "tuned": tuned}, [], {}
    for series, plan in both.items():
        least[series] = _least(functools.partial(judged, plan, key=held_out), settings["beta"], case.maximum)
        rows.append(Row("least n", series, number, least[series], least[series] / STEP, least[series]))
        held = plan.guarantee()
        rows += [
            exact(f"guarantee, {name}", f"{series} {part}", 0, getattr(held, part)) for part in ("epsilon", "delta")
        ]
        for field in ("rounds", "shift", "size", "threshold"):
            if hasattr(plan, field):
                rows.append(exact(f"plan, {name}", field, int(series == "tuned"), float(getattr(plan, field))))
    sizes = np.geomspace(least["tuned"] / 2, min(1.2 * least["derived"], case.maximum), settings["sizes"]).astype(int)
    for n in np.unique(sizes).tolist():
        rows += [exact(f"failure, {name}", series, n, judged(plan, n, key=held_out)) for series, plan in both.items()]
    return rows


def failure(case: Listed, settings: Settings, plan: Any, n: int, *, key: Any) -> float:
    """The share of failures in `runs` runs on n examples, each on its own data."""
    keys = jax.random.split(jax.random.clone(key), settings["runs"])  # the same data for all plans and n
    return float(_share(plan, jnp.int32(n), settings["alpha"], keys, case.wrong))


@jax.jit(static_argnums=4)
def _share(plan: Any, n: Any, alpha: Any, keys: Any, wrong: Any) -> Any:
    def one(key: Any) -> Any:
        data, coins = jax.random.split(key)
        return wrong(plan, n, alpha, data, coins)

    return jnp.mean(jax.lax.map(one, keys, batch_size=25).astype(float))


def _least(judged: Callable[[int], float], beta: float, most: int) -> int:
    """The least n of the grid at which the failure is at most beta, by bisection; `most` if there is none below it."""
    low, high = 0, math.ceil(math.log(most / 16) / math.log(STEP))
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if judged(min(most, round(16 * STEP**middle))) <= beta else (middle + 1, high)
    return min(most, round(16 * STEP**high))


# --------------------------------------------------------------------------------------------------------- set cover


def _covers(settings: Settings) -> list[Any]:
    given = {name: settings[name] for name in ("epsilon", "delta", "alpha")}
    return budgets.set_cover_plans(conjunctions.conjunction(bits=WORDS, k=3, **given), rounds=[3, 6, 14])


def _cover_wrong(learner: Any, n: Any, alpha: Any, data: Any, key: Any) -> Any:
    """Whether a run fails on examples of which nine in sixteen satisfy a conjunction of three literals."""
    half, words = jax.random.split(data)
    most = 1024
    x = jax.random.bernoulli(words, 0.5, (most, WORDS))
    x = x | (jax.random.bernoulli(half, 0.5, (most, 1)) & (np.arange(WORDS) < 3)[None])
    packed = _packed(jnp.concatenate([x, jnp.all(x[:, :3], axis=1, keepdims=True)], axis=1))
    sample = Assignments(x=packed[:, :-1], y=packed[:, -1], n_valid=n)
    found = learner(key, sample)
    missed = bits.count((label(found.hypothesis.literals, sample.x, disjunction=False) ^ sample.y) & sample.valid)
    return (found.status != 0) | (missed.astype(float) > alpha * n.astype(float))


def _packed(rows: Any) -> Any:
    """The rows packed into the bits of words, 32 rows for each, as `Assignments` holds them."""
    words = rows.reshape(-1, bits.WORD, rows.shape[1]).astype(jnp.uint32)
    return jnp.sum(words << np.arange(bits.WORD, dtype=np.uint32)[None, :, None], axis=1, dtype=jnp.uint32)


# -------------------------------------------------------------------------------------------------------- rectangles


def _cut_down(derived: Any, size: float, threshold: float) -> Any:
    """The same learner with these shares of its slices and of its threshold, and no proof of how often it fails."""
    shrunk: dict[str, Any] = {
        "size": np.int32(max(1, round(float(derived.size) * size))),
        "threshold": np.int32(max(1, round(float(derived.threshold) * threshold))),
        "spent_beta": np.float64(1.0),
    }
    return dataclasses.replace(derived, **shrunk)


def _sizes(axes: int) -> Callable[[Settings], list[Any]]:
    def plans(settings: Settings) -> list[Any]:
        """The derived learner, and smaller slices and thresholds: privacy is kept, but not the derived failure (spent_beta = 1)."""
        given = {name: settings[name] for name in ("epsilon", "delta", "beta")}
        derived = rectangles.rectangles(axes=axes, bits=16, **given)
        return [derived, *(_cut_down(derived, size, threshold) for size in SHRUNK for threshold in (1.0, 0.6, 0.3))]

    return plans


def _rectangle_wrong(learner: Any, n: Any, alpha: Any, data: Any, key: Any) -> Any:
    """Whether a run fails on uniform examples of a target whose sides are a random share of the domain, from 1/2 to 15/16."""
    low, side = jax.random.split(data)
    starts = jax.random.randint(low, (learner.axes,), 0, 2**12).astype(jnp.uint32)
    sides = jax.random.randint(side, (learner.axes,), 2**15, 15 * 2**12).astype(jnp.uint32)
    target = rectangle.Rectangle(low=starts[:, None], high=(starts + sides - 1)[:, None])
    distribution = rectangle.UniformProduct(target=target, first=starts << 16, width=sides << 16, bits=jnp.int32(16))
    given = SimpleNamespace(learner=learner, distribution=distribution, n=n, alpha=alpha)
    return slices_alone.trial(key, given)["failed"]


LISTED = {
    "set cover, k=3": Listed(_covers, _cover_wrong, 1023),
    "rectangles, D=2": Listed(_sizes(2), _rectangle_wrong, 2**15),
}
