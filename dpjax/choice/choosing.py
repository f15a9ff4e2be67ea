"""`dpjax.choose`: which algorithm for this task, and how much data or privacy it takes."""

import dataclasses
import math
import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from dpjax.accounting import ADD_OR_REMOVE_ONE, REPLACE_ONE, Guarantee
from dpjax.accounting.guarantee import promised
from dpjax.choice import (
    cdf,
    histogram,
    interior_points,
    k_concepts,
    points,
    quantiles,
    rectangle,
    shared_quantiles,
    thresholds,
)
from dpjax.choice.base import MOST_RECORDS, Candidate, Found, Question, bounded_epsilon, ranked, spent_delta
from dpjax.core import arguments, show
from dpjax.domains import wide

RELATIONS = (ADD_OR_REMOVE_ONE, REPLACE_ONE)


@dataclasses.dataclass(frozen=True)
class Task:
    """A task.

    Attributes:
      candidates: gives the candidates for a question.
      relation: the relation under which they are compared by default.
      takes: the names of the task's own arguments, all required.
      alpha: whether there is an error to tolerate.
    """

    candidates: Callable[[Question], tuple[Candidate, ...]]
    relation: str
    takes: tuple[str, ...] = ()
    alpha: bool = True


TASKS: dict[str, Task] = {
    "cdf": Task(lambda q: cdf.CANDIDATES, ADD_OR_REMOVE_ONE),
    "histogram": Task(lambda q: histogram.CANDIDATES, REPLACE_ONE),
    "interior_point": Task(lambda q: interior_points.CANDIDATES, ADD_OR_REMOVE_ONE, alpha=False),
    "k_concepts": Task(lambda q: k_concepts.OF_CONCEPT[q.concept], REPLACE_ONE, ("k", "concept")),
    "median": Task(lambda q: quantiles.CANDIDATES, ADD_OR_REMOVE_ONE),
    "points": Task(lambda q: points.CANDIDATES, REPLACE_ONE),
    "quantiles": Task(lambda q: (*quantiles.CANDIDATES, *shared_quantiles.SHARED), ADD_OR_REMOVE_ONE, ("fractions",)),
    "rectangle": Task(lambda q: rectangle.CANDIDATES, ADD_OR_REMOVE_ONE, ("dimensions",)),
    "threshold": Task(lambda q: thresholds.CANDIDATES, REPLACE_ONE),
}


@dataclasses.dataclass(frozen=True)
class Rival:
    """The second-best algorithm.

    Attributes:
      name: the name of its factory, and of its parts.
      value: its n, epsilon or alpha, whichever was solved for.
    """

    name: str
    value: float


@dataclasses.dataclass(frozen=True, repr=False)
class Choice:
    """The answer of `choose`; it prints as a few lines.

    Attributes:
      task: the given task.
      name: the name of the algorithm's factory, and of its parts.
      algorithm: the algorithm, built for n records: call it with a key and data.
      parameters: its numbers by name.
      guarantee: its privacy, as the algorithm states it; or what was asked for, if a pure algorithm with a larger epsilon implies that.
      solved: which number was solved for: "n", "epsilon" or "alpha".
      n, epsilon, alpha: the given ones, and the one that was solved for; alpha is None where there is none.
      delta, beta: the given ones.
      runner_up: the second-best algorithm, None if there is no other.
      candidates: for each candidate by name, the value that it needs, or why it was left out.
    """

    task: str
    name: str
    algorithm: Any
    parameters: dict[str, Any]
    guarantee: Guarantee
    solved: str
    n: int
    epsilon: float
    alpha: float | None
    delta: float
    beta: float
    runner_up: Rival | None
    candidates: dict[str, float | str]

    @property
    def error_interval(self) -> tuple[float, float]:
        """An interval that contains the error with probability at least 1 - beta: (0, alpha); (0, 0) for a task without alpha."""
        return 0.0, self.alpha or 0.0

    def __repr__(self) -> str:
        error = "a failure" if self.alpha is None else f"an error above {show.at_least(self.alpha)}"
        beta = show.at_least(self.beta, 6)
        epsilon, delta = (float(show.at_least(each, 9)) for each in (self.guarantee.epsilon, self.guarantee.delta))
        promise = dataclasses.replace(self.guarantee, epsilon=epsilon, delta=delta)
        lines = [
            f"{self.task}: {self.name}",
            f"  {promise}; on {self.n} records {error} has probability {beta} at most (solved for {self.solved})",
        ]
        if self.runner_up is not None:
            lines.append(f"  next: {self.runner_up.name}, {self.solved} = {show.at_least(self.runner_up.value)}")
        return "\n".join(lines)


def choose(
    task: str,
    *,
    bits: int,
    n: int | None = None,
    epsilon: float | None = None,
    alpha: float | None = None,
    delta: float = 0.0,
    beta: float = 0.1,
    relation: str | None = None,
    fractions: Sequence[float] | None = None,
    dimensions: int | None = None,
    k: int | None = None,
    concept: str | None = None,
) -> Choice:
    """The algorithm that needs the fewest records for a task, or reaches the least error, or needs the least epsilon.

    **Exactly one of n, epsilon and alpha is left out, and is solved for** (of n and epsilon for "interior_point" and for k_concepts of
    parities, which have no alpha). The others say what is wanted.

    **What is compared.** Each candidate has an n that is *proved* to suffice: on n records the probability that its error exceeds alpha, or
    that it fails, is at most beta, whatever the records are (for learners: whatever distribution they are drawn from; for parities a
    uniform one). The candidate with the least such n is chosen. That n comes from an exact worst case over all data where one is known,
    else from a theorem with its constants. So it is an upper bound on the n* of the algorithm, for some closer than for others, and the
    choice is by what is proved. An alpha or epsilon is the least at which that n does not exceed the given one, up to 1/256, rounded up
    (where n falls and rises again, as for dozens of fractions that few answers serve, it may be the end of another stretch);
    for "interior_point" an epsilon may be some hundredths above that (0.06 at most in 280 settings), as fewer worst cases are computed.

    **It costs no privacy**: it uses no data, only these public numbers. If n is private (ADD_OR_REMOVE_ONE), give a lower bound on it: what
    suffices for n records suffices for more (for recursive quantiles, which account for ties, for up to 2^20).

    Args:
      task: one of

        | task | error alpha | data | relation |
        |---|---|---|---|
        | "interior_point" | none | all | A |
        | "median", "quantiles" (fractions=) | largest distance of a rank from f n, over n | all | A |
        | "cdf" | largest distance between the distribution functions | all | A |
        | "histogram" | largest error of a point's share | all | R |
        | "threshold", "points" | population error, of the class | all distributions | R |
        | "rectangle" (dimensions=) | population error, of the class | all distributions | A |
        | "k_concepts" (k=, concept="points", "thresholds", "parities") | largest of k population errors | all; parities: uniform | R |
      bits: the domain is {0, ..., 2^bits - 1} (on each axis), 1 to 4096.
      n: number of records, up to 2^30; most algorithms take no more than 2^24, unless float64 counts them (`jax.enable_x64`).
      epsilon: the total epsilon, from 2^-20 to 32. alpha: tolerated error, at least 2^-40 and below 1.
      delta: the total delta, in [0, 1); with 0 only pure algorithms are candidates, and if it is above 1/2 many spend 1/2.
      beta: failure probability, at least 2^-100 and below 1.
      relation: "ADD_OR_REMOVE_ONE" (A) or "REPLACE_ONE" (R); the default is that of the table. An algorithm that is private under A is run
        at half of epsilon under R; one that is private under R, where n is public, is not a candidate under A.
      fractions, dimensions, k, concept: the arguments of the tasks that have them.

    Returns:
      `Choice`: the algorithm, ready to be called, with its guarantee, its numbers and the runner-up.

    Formal guarantees: those of the algorithm, within (epsilon, delta) under the relation.

    Raises:
      TypeError, ValueError: an argument out of range, missing, or not one of the task; no candidate, or n too small for all of them.

    >>> print(choose("quantiles", n=30_000, bits=32, fractions=[0.25, 0.5, 0.75], epsilon=1.0, beta=0.05))
    quantiles: permute_and_flip
      (1.0, 0.0)-private under ADD_OR_REMOVE_ONE; on 30000 records an error above 0.002954 has probability 0.05 at most (solved for alpha)
      next: inverse_sensitivity, alpha = 0.003498
    >>> choose("interior_point", bits=32, epsilon=1.0).n, choose("interior_point", bits=1024, epsilon=1.0, delta=1e-6).name
    (35, 'supported_tree')
    """
    kind = TASKS[arguments.choice("task", task, tuple(TASKS))]
    given: dict[str, Any] = {"fractions": fractions, "dimensions": dimensions, "k": k, "concept": concept}
    own = _own(task, kind, given)
    without_alpha = not kind.alpha or own["concept"] == "parities"
    absent = _absent(task, without_alpha, n=n, epsilon=epsilon, alpha=alpha)
    question = Question(
        bits=arguments.integer("bits", bits, at_least=1, at_most=wide.MAX_BITS),
        n=None if n is None else arguments.integer("n", n, at_least=1, at_most=MOST_RECORDS),
        epsilon=math.nan if epsilon is None else arguments.known("epsilon", epsilon, at_least=2.0**-20, at_most=32.0),
        alpha=math.nan if alpha is None else arguments.known("alpha", alpha, at_least=2.0**-40, below=1.0),
        delta=_delta(delta),
        beta=arguments.known("beta", beta, at_least=2.0**-100, below=1.0),
        relation=kind.relation if relation is None else arguments.choice("relation", relation, RELATIONS),
        **own,
    )
    found, others = ranked(kind.candidates(question), question, absent)
    return _chosen(task, question, found, others, absent, without_alpha)


def _own(task: str, kind: Task, given: dict[str, Any]) -> dict[str, Any]:
    """The task's own arguments, checked; ValueError for one that is missing or another task's."""
    for name, value in given.items():
        if (value is None) == (name in kind.takes):
            rule = "must be given" if value is None else "must be left out"
            raise ValueError(f"{name} {rule} for the task {task!r}, got {value!r}")
    checked: dict[str, Any] = {"fractions": (), "dimensions": 0, "k": 0, "concept": ""}
    if task == "median":
        checked["fractions"] = (0.5,)
    if "fractions" in kind.takes:
        checked["fractions"] = _fractions(given["fractions"])
    if "dimensions" in kind.takes:
        checked["dimensions"] = arguments.integer("dimensions", given["dimensions"], at_least=1, at_most=2**12)
    if "k" in kind.takes:
        checked["k"] = arguments.integer("k", given["k"], at_least=1, at_most=2**24)
        checked["concept"] = arguments.choice("concept", given["concept"], tuple(k_concepts.OF_CONCEPT))
    return checked


def _fractions(value: Any) -> tuple[float, ...]:
    """Fractions from 0 to 1, increasing; those at the ends are moved to where algorithms round them."""
    given = [arguments.known("fractions", x, at_least=0.0, at_most=1.0) for x in arguments.several("fractions", value)]
    least, most = quantiles.rounded((0.0, 1.0))
    fractions = tuple(np.clip(given, least, most).tolist())
    if not 1 <= len(fractions) <= quantiles.MOST_RUNS or any(np.diff(fractions) <= 2.0**-31):
        rule = f"1 to {quantiles.MOST_RUNS} increasing ones, more than 2^-31 apart"
        raise ValueError(f"fractions must be {rule}, got {show.listed(given)}")
    return fractions


def _delta(delta: Any) -> float:
    """0, or a number of which float64 has the inverse."""
    known = arguments.known("delta", delta, at_least=0.0, below=1.0)
    if 0.0 < known < sys.float_info.min:
        raise ValueError(f"delta must be 0 or at least {sys.float_info.min:.3g}, got {delta}")
    return known


def _absent(task: str, without_alpha: bool, **given: Any) -> str:
    """The name of the one that is None; ValueError unless it is exactly one."""
    if without_alpha and given.pop("alpha") is not None:
        which = f"the task {task!r}" if task != "k_concepts" else "parities"
        raise ValueError(f"alpha must be left out for {which}: there is no error to tolerate")
    absent = [name for name, value in given.items() if value is None]
    if len(absent) != 1:
        names, got = ", ".join(given), ", ".join(absent) or "none"
        raise ValueError(f"exactly one of {names} must be left out, which is then solved for, got {got} left out")
    return absent[0]


def _refusal(question: Question, absent: str, others: dict[str, float | str]) -> str:
    """The error message where nothing is offered: which arguments the candidates' reasons are about, with their values."""
    reasons = {name: str(reason) for name, reason in others.items()}
    said = " ".join(reasons.values())
    marks = {"epsilon": "epsilon", "alpha": "alpha", "delta": "delta", "relation": "private under", "bits": "bit"}
    if absent != "n" and "too few" in said:
        blamed = ["n"]
    elif absent == "n" and "takes at most" in said:
        blamed = ["epsilon", "alpha"]
    else:
        blamed = [name for name, mark in marks.items() if mark in said and name != absent]
    got = ", ".join(f"{name} = {getattr(question, name)}" for name in blamed)
    listed = "; ".join(f"{name}: {reason}" for name, reason in reasons.items())
    return f"{' and '.join(blamed)} must be such that some algorithm is proved to do it, got {got} ({listed})"


def _chosen(
    task: str, question: Question, found: list[Found], others: dict[str, float | str], absent: str, without_alpha: bool
) -> Choice:
    """The answer."""
    best, n, algorithm = _built(question, found, others, absent)
    return Choice(
        task=task,
        name=best.offer.name,
        algorithm=algorithm,
        parameters=_numbers(algorithm),
        guarantee=_stated(promised(algorithm, best.question.relation), best.question, best.offer.bounded),
        solved=absent,
        n=n,
        epsilon=best.question.epsilon,
        alpha=None if without_alpha else best.question.alpha,
        delta=best.question.delta,
        beta=best.question.beta,
        runner_up=Rival(found[1].offer.name, found[1].value) if len(found) > 1 else None,
        candidates=others,
    )


def _stated(guarantee: Guarantee, question: Question, bounded: bool) -> Guarantee:
    """The algorithm's own, or what was asked for, if a larger epsilon and a smaller delta imply that."""
    larger = question.epsilon < guarantee.epsilon
    implied = larger and spent_delta(guarantee, question.epsilon) <= question.delta * (1 + 1e-12)
    if bounded and larger:
        implied = guarantee.epsilon <= bounded_epsilon(question.epsilon, question.delta) * (1 + 5e-13)
    return Guarantee(question.epsilon, question.delta, question.relation) if implied else guarantee


def _built(
    question: Question, found: list[Found], others: dict[str, float | str], absent: str
) -> tuple[Found, int, Any]:
    """(the best offer whose algorithm takes so many records, how many, the algorithm); those that take fewer are removed from `found`.

    Raises:
      ValueError: there is none.
    """
    while found:
        best = found[0]
        n = best.offer.n if best.question.n is None else best.question.n
        try:
            return best, n, best.offer.make(n)
        except ValueError as reason:
            others[best.offer.name] = str(reason)
            del found[0]
    raise ValueError(_refusal(question, absent, others))


def _numbers(algorithm: Any) -> dict[str, Any]:
    """The numbers and strings in the algorithm's fields; those of its parts are prefixed with the part's name."""
    found: dict[str, Any] = {}
    for field in dataclasses.fields(algorithm):
        value = getattr(algorithm, field.name)
        if isinstance(value, str | int | float) or getattr(value, "ndim", None) == 0:
            found[field.name] = value.item() if hasattr(value, "item") else value
        elif dataclasses.is_dataclass(value):
            found |= {f"{field.name}.{name}": each for name, each in _numbers(value).items()}
    return found
