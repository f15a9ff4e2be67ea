"""`dpjax.check`: the privacy of any algorithm on all datasets of a few records from a small domain.

An algorithm that has a law, `pmf(data)`, is verified exactly; one that has only `__call__(key, data)` is audited by runs, which can
refute privacy but never prove it.
"""

import dataclasses
import inspect
import math
from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from dpjax.accounting.guarantee import ADD_OR_REMOVE_ONE, RELATIONS, REPLACE_ONE, Guarantee
from dpjax.accounting.losses import CELL, discretised
from dpjax.core import arguments, show, tracing
from dpjax.verify import dominating
from dpjax.verify.agreement import disagreement
from dpjax.verify.family import Family, family, kind_of
from dpjax.verify.laws import Laws, laws_of
from dpjax.verify.suspects import Audits, audits_of


class Evidence(Protocol):
    """What is known about all pairs, or about the worst of them; a probability may be off by `rounding`."""

    @property
    def rounding(self) -> float: ...

    @property
    def summed(self) -> float:
        """How far a sum of probabilities may be off."""

    def delta_at(self, epsilon: float) -> tuple[float, int, int]:
        """(delta, S, S'): the largest delta over all pairs, and the datasets of a pair that has it."""

    def shown_at(self, epsilon: float) -> float:
        """The part of that delta that is certain."""

    def feared_at(self, epsilon: float) -> float:
        """That delta, or more where rounding may hide some of it."""

    def epsilon_at(self, delta: float) -> float:
        """The least epsilon that no pair contradicts."""


@dataclasses.dataclass(frozen=True, repr=False)
class Report:
    """What `check` found; it prints as a paragraph that explains itself.

    Attributes:
      epsilon: the epsilon at which `delta` was computed.
      delta: if `exact`, the least delta for which the algorithm is (epsilon, delta)-private on all datasets enumerated; else a
        lower bound on it, at `level`.
      worst_pair: two neighbouring datasets that have this delta, as lists of records in integers; the first is the one on which
        the event is likelier.
      exact: True if laws were compared, False if runs were.
      relation: which datasets counted as neighbours.
      guarantee: the claim: that of the argument `delta` of `check` if given, else that of the algorithm; None if there is neither.
      level: the confidence level of each single bound; 1 if exact.
      disagreement: how runs contradict the `pmf`, or why they could not be compared, in words. The law that was verified may then not be
        that of the algorithm. None if neither happened.
      summary: the paragraph that the report prints as.
    """

    epsilon: float
    delta: float
    worst_pair: tuple[list[Any], list[Any]]
    exact: bool
    relation: str
    guarantee: Guarantee | None
    level: float
    disagreement: str | None
    summary: str
    _evidence: Evidence

    def delta_at(self, epsilon: float) -> float:
        """As `delta`, at another epsilon >= 0."""
        return self._evidence.delta_at(arguments.known("epsilon", epsilon, at_least=0.0, below=math.inf))[0]

    def epsilon_at(self, delta: float) -> float:
        """The least epsilon for which the algorithm is (epsilon, delta)-private on the datasets enumerated, or a lower bound on it."""
        return self._evidence.epsilon_at(arguments.known("delta", delta, at_least=0.0, below=1.0))

    def refutes(self, guarantee: Guarantee) -> bool:
        """Whether a pair contradicts the guarantee.

        Raises:
          TypeError: it is not a guarantee. ValueError: it is one for neighbours that are not among those enumerated.
        """
        if not isinstance(guarantee, Guarantee):
            raise TypeError(f"guarantee must be a dpjax.accounting.Guarantee, got {guarantee!r}")
        claim = guarantee.under(self.relation)
        return not math.isinf(claim.epsilon) and self._exceeds(self._evidence.shown_at(claim.epsilon), claim)

    def _exceeds(self, delta: float, claim: Guarantee) -> bool:
        return delta > claim.delta + self._evidence.summed

    def to_pld(self, interval: float = CELL) -> Any:
        """The privacy-loss distribution of dp-accounting that dominates every neighbouring pair: the maximum over pairs.

        Composed with others, it bounds what several runs of the algorithm lose, adaptive ones, too: never more than
        `guarantee.to_pld()` if the guarantee holds. It says nothing about sizes or domains other than those enumerated.

        Args:
          interval: the spacing of the grid of losses, > 0; distributions are composed on one grid.

        Returns:
          `PrivacyLossDistribution`, pessimistic: losses are split between two grid points, and the laws' rounding counts as infinite loss.

        Raises:
          TypeError: the report is an audit, which knows no laws.
          ValueError: an interval out of range, or so small that the losses take more than 2^26 cells.

        >>> from dpjax.learners import thresholds
        >>> report = check(thresholds.exponential(bits=1, epsilon=1.0), n=2, domain=2)
        >>> four = report.to_pld().self_compose(4)
        >>> bool(four.get_delta_for_epsilon(1.0) < report.guarantee.to_pld().self_compose(4).get_delta_for_epsilon(1.0))
        True
        """
        interval = arguments.number("interval", interval, above=0.0, below=math.inf)
        return discretised(dominating.losses(*self._tests("to_pld")), None, interval)

    def zcdp(self) -> float:
        """The least rho with D_order <= rho order for all orders > 1 and all pairs enumerated, from above, to a relative 2^-12.

        Of each pair, outcomes that are no likelier than the laws' rounding (1e-12, or 1e-6 for laws in single precision; see `check`) are
        merged into two, and these are ignored where they are no likelier either. Losses below 1e-6 lose digits: rho is then overstated.

        Raises:
          TypeError: the report is an audit, which knows no laws.
        """
        return dominating.concentration(*self._laws("zcdp"))

    def renyi(self, orders: Sequence[float]) -> np.ndarray:
        """The largest Rényi divergence over all pairs enumerated at each order in [1, infinity], of the same outcomes as for `zcdp`.

        Raises:
          TypeError: the report is an audit, which knows no laws. ValueError: an order is below 1.
        """
        checked = [arguments.number("orders", order, at_least=1.0) for order in arguments.several("orders", orders)]
        return np.array([dominating.renyi(*self._laws("renyi"), order) for order in checked])

    def trade_off(self, errors: Sequence[float]) -> np.ndarray:
        """The largest trade-off function f (convex) for which all pairs enumerated are f-private, at each type I error in [0, 1].

        Raises:
          TypeError: the report is an audit, which knows no laws. ValueError: an error is outside [0, 1].
        """
        listed = arguments.several("errors", errors)
        checked = [arguments.number("errors", error, at_least=0.0, at_most=1.0) for error in listed]
        return dominating.trade_off(*self._tests("trade_off"), np.array(checked))

    def _tests(self, asked: str) -> tuple[np.ndarray, np.ndarray, float]:
        """(laws, pairs, how far the probability that a test accepts may be off, which is a sum)."""
        return *self._laws(asked)[:2], self._evidence.summed

    def _laws(self, asked: str) -> tuple[np.ndarray, np.ndarray, float]:
        """(laws, pairs, how far a probability may be off)."""
        if not isinstance(self._evidence, Laws):
            raise TypeError(f"{asked} asks for the laws of an algorithm with a pmf; this report is an audit by runs")
        return self._evidence.p, self._evidence.pairs, self._evidence.rounding

    @property
    def holds(self) -> bool | None:
        """Whether the stated guarantee holds on all datasets enumerated; None if it promises nothing, or if that is not known."""
        if self.guarantee is None or math.isinf(self.guarantee.epsilon):
            return None
        if self.refutes(self.guarantee):
            return False
        if self._exceeds(self._evidence.feared_at(self.guarantee.epsilon), self.guarantee.under(self.relation)):
            return None  # perhaps only because a probability is no float
        return True if self.exact and self.disagreement is None else None

    def __repr__(self) -> str:
        return self.summary


def check(
    algorithm: Any,
    *,
    n: int,
    domain: int,
    epsilon: float = 1.0,
    delta: float | None = None,
    relation: str | None = None,
    data: Any = None,
    ordered: bool = False,
    trials: int | None = None,
    level: float = 1 - 2e-5,
    seed: int = 0,
) -> Report:
    """How private an algorithm is on all datasets of n records from a small domain, exactly if it states its law.

    An algorithm that is (epsilon, delta)-private for all neighbours S, S' has delta(epsilon) = max sum_o max(0, P_S[o] - exp(epsilon)
    P_S'[o]) <= delta. With `pmf` the maximum is taken over ALL neighbouring pairs of datasets that can be made of `domain` points. Without
    it, a few runs on every dataset show which pairs look worst, and new runs on those give a lower bound.

    Args:
      algorithm: anything with `__call__(key, data)`: an algorithm of dpjax, or any other object or function. All that it returns, except
        the `info` of an `Outcome`, counts as released. Integers and booleans are compared by value, whatever their type; 0.0 and -0.0 are
        different outcomes, all NaNs are one; of a real number whose status is not OK, only the status counts. If the algorithm has
        `pmf(data)`, the vector of the probabilities of all outcomes, bottom last, that law is verified, and a few runs are compared with
        it. If it has `guarantee()`, a `dpjax.accounting.Guarantee`, that is tested.
      n: number of records of a dataset; under ADD_OR_REMOVE_ONE all datasets of up to n records, with the empty one for `Points`,
        `Examples` and a function of your own (a `Sample` or `MultiSample` is never empty).
      domain: points are 0, ..., domain - 1 (and labels 0 and 1); for `Examples` each coordinate is one of these.
      epsilon: the epsilon at which delta is computed, >= 0.
      delta: tests the claim (epsilon, delta) instead of the algorithm's own.
      relation: "REPLACE_ONE", "ADD_OR_REMOVE_ONE", or "REPLACE_LABEL" (the label of one example, or all of its k labels); by default that
        of the guarantee, else REPLACE_ONE.
      data: what the algorithm takes: `dpjax.Sample`, `dpjax.Points`, `dpjax.MultiSample`, `Examples`; by default its attribute `kind`,
        else `Sample`. Or a function (values, size) -> data, where values are int32 (rows,) from 0, ..., domain - 1, the first `size` of
        which count.
      ordered: whether to enumerate sequences of records. By default datasets are multisets, with their records sorted; an algorithm whose
        `pmf` is seen to depend on the order is then refused (all orders are tried where they are few, as for n = 2, else some). Runs use
        sorted records only.
      trials: runs on each dataset of a pair that is audited; default 32,768, or 2,000 where JAX cannot trace the algorithm. If there is a
        `pmf`, runs on each dataset on which they are compared with it; default 4,096, or 512.
      level: the confidence level of a lower bound by runs; by default the false-alarm rate is 2e-5.
      seed: the seed of the runs.

    Returns:
      `Report`: `delta`, `epsilon_at(delta)`, `worst_pair`, `exact`, `holds`, `refutes(guarantee)`.

    **Formal guarantees**: exact reports are about the law that `pmf` states (not about floating-point draws), and about these n and
    domain only. They hold up to the rounding that the report states: 1e-12 in a probability (1e-6 in single precision), or four times
    the amount by which a law fails to sum to one; a sum over K outcomes up to K 2^-53 (K 2^-24), if that is more. A delta that is no more
    than the first is shown as 0. What may be so only because a probability is no float, as at an epsilon of 700, or lost its digits in a
    difference, as 1 - sigmoid(12) does (sigmoid(-12) does not), neither holds nor is refuted. If such a difference is then multiplied, it
    still refutes nothing, but what its last digits hide may be taken to hold. No epsilon above 36.05 is refuted (15.95 in single
    precision).

    Raises:
      TypeError, ValueError: an argument out of range; too many datasets; a `pmf` that is not a law; outcomes that cannot be compared.

    Below, a label is kept with probability 3/4 and else replaced by a fair coin; releasing the result is ln(7)-private.

    >>> import jax, jax.numpy as jnp
    >>> class Response:
    ...     def pmf(self, sample):
    ...         return jnp.where(sample.y[0] == 1, jnp.array([1 / 8, 7 / 8]), jnp.array([7 / 8, 1 / 8]))
    ...     def __call__(self, key, sample):
    ...         return jnp.where(jax.random.uniform(key) < 1 / 8, 1 - sample.y[0], sample.y[0])
    >>> report = check(Response(), n=1, domain=1, epsilon=1.0)
    >>> report.exact, round(report.delta, 4), round(report.epsilon_at(0.0), 4), report.worst_pair
    (True, 0.5352, 1.9459, ([(0, 0)], [(0, 1)]))
    """
    n, domain = arguments.size("n", n), arguments.size("domain", domain)
    epsilon = arguments.known("epsilon", epsilon, at_least=0.0, below=math.inf)
    level = arguments.known("level", level, above=0.0, at_most=1 - 2.0**-40)  # it is split among pairs
    trials = None if trials is None else arguments.size("trials", trials, at_least=4)
    seed = arguments.integer("seed", seed, at_least=0, at_most=2**32 - 1)
    if not callable(algorithm) or inspect.isclass(algorithm):
        raise TypeError(f"algorithm must have __call__(key, data), and be an object, not a class; got {algorithm!r}")
    claim = _claim(algorithm, epsilon, delta, relation)
    relation = relation or (claim.relation if claim else REPLACE_ONE)
    ordered = arguments.flag("ordered", ordered)
    datasets = family(kind_of(algorithm, data, domain), n, relation, ordered=ordered)
    against, compared = None, ""
    with tracing.keeps_nothing("algorithm", algorithm):
        evidence: Any = laws_of(algorithm, datasets, ordered)
        if exact := evidence is not None:
            level = 1.0
        else:
            evidence = audits_of(algorithm, datasets, epsilon, trials, level, seed)
        found, first, second = evidence.delta_at(epsilon)
        if exact:
            against, compared = disagreement(algorithm, evidence.p, datasets, (first, second), trials, seed)
    report = Report(
        epsilon=epsilon,
        delta=found,
        worst_pair=(datasets.shown(first), datasets.shown(second)),
        exact=exact,
        relation=relation,
        guarantee=claim,
        level=level,
        disagreement=against,
        summary="",
        _evidence=evidence,
    )
    return dataclasses.replace(report, summary=_summary(algorithm, report, datasets, n, ordered, compared))


# ------------------------------------------------------------------------------------------------------- what is claimed


def _claim(algorithm: Any, epsilon: float, delta: float | None, relation: str | None) -> Guarantee | None:
    """The guarantee to test, if any, under the requested relation."""
    if relation is not None:
        arguments.choice("relation", relation, RELATIONS)
    stated = _stated(algorithm)
    if delta is not None:
        delta = arguments.known("delta", delta, at_least=0.0, below=1.0)
        return Guarantee(epsilon, delta, relation or (stated.relation if stated else REPLACE_ONE))
    if stated is None or relation in (None, stated.relation):
        return stated
    return stated.under(relation) if stated.follows_under(relation) else None


def _stated(algorithm: Any) -> Guarantee | None:
    """The guarantee that the algorithm states, if any."""
    if isinstance(getattr(algorithm, "guarantee", None), Guarantee):
        raise TypeError(f"guarantee must be a method that returns a Guarantee, got {algorithm.guarantee!r}")
    if not callable(getattr(algorithm, "guarantee", None)):
        return None
    try:
        stated = algorithm.guarantee()
    except NotImplementedError:
        return None
    if not isinstance(stated, Guarantee):
        raise TypeError(f"guarantee() must return a dpjax.accounting.Guarantee, got {stated!r}")
    return stated


# -------------------------------------------------------------------------------------------------------------- in words


def _summary(algorithm: Any, report: Report, datasets: Family, n: int, ordered: bool, compared: str) -> str:
    """The paragraph that a report prints as."""
    name = getattr(algorithm, "__name__", type(algorithm).__name__)
    what = "sequences" if ordered else "multisets"
    size = f"{min(datasets.sizes)} to {n} records" if report.relation == ADD_OR_REMOVE_ONE else f"{n} records"
    listed = f"{len(datasets.sizes)} {what} of {size}, each {datasets.kind.record}"
    many = f"{len(datasets.pairs)} neighbouring pairs ({report.relation}) of {listed}"
    at, rounded = f"epsilon = {show.whole(report.epsilon)}", show.at_least if report.exact else show.at_most
    found, least = rounded(report.delta, 6), f"epsilon_at(1e-6) = {rounded(report.epsilon_at(1e-6), 6)}"
    worst = f"Worst pair: {report.worst_pair[0]} against {report.worst_pair[1]}."
    if isinstance(report._evidence, Audits):
        audits, order = report._evidence, "as listed" if ordered else "in increasing order"
        how = f" (in Python, for {audits.runner.note})" if audits.runner.note else ""
        text = (
            f"{name}: audited, not verified, for it has no pmf. Of {many}, the {len(audits.pairs)} that looked worst were run "
            f"{audits.runs} times a dataset{how}, records {order}. At {at} delta is at least {found}; {least} is a lower "
            f"bound too; each bound is wrong with probability at most {1 - report.level:.2g}. {worst}"
        )
    else:
        # Where nothing is claimed, nothing is found right.
        done = "measured" if report.guarantee is None else "verified"
        how = f"{done} exactly" if report.disagreement is None else f"runs {report.disagreement}. This law was {done}"
        text = f"{name}: {how}, up to {report._evidence.rounding:.1g} in a probability, on all {many}. "
        text += f"At {at} delta is {found}; {least}. {worst}"
    return " ".join(filter(None, [text, _verdict(report), compared]))


def _verdict(report: Report) -> str:
    """A sentence on what follows for the claim."""
    if report.disagreement is not None:
        return "Nothing is known of what it really releases."
    if report.guarantee is None:
        return "Nothing is claimed for this relation: to test a claim, give delta=."
    if math.isinf(report.guarantee.epsilon):
        return "It promises nothing."
    claim = f"({show.whole(report.guarantee.epsilon)}, {show.whole(report.guarantee.delta)})-privacy"
    verdicts = {
        True: f"{claim} holds on all of them.",
        False: f"The claimed {claim} is REFUTED.",
        None: f"{claim} is not refuted.",
    }
    return verdicts[report.holds]
