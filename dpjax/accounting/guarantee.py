"""What a mechanism promises: epsilon, delta, and for which pairs of datasets."""

import dataclasses
import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from dpjax.accounting import losses, views
from dpjax.accounting.rounding import at_least, at_most
from dpjax.core import arguments

REPLACE_ONE = "REPLACE_ONE"
ADD_OR_REMOVE_ONE = "ADD_OR_REMOVE_ONE"
REPLACE_LABEL = "REPLACE_LABEL"
RELATIONS = (REPLACE_ONE, ADD_OR_REMOVE_ONE, REPLACE_LABEL)

# From one relation to another: how many steps between neighbours of the first lead from one neighbour of the second to the other.
STEPS = {
    (ADD_OR_REMOVE_ONE, REPLACE_ONE): 2,
    (ADD_OR_REMOVE_ONE, REPLACE_LABEL): 2,
    (REPLACE_ONE, REPLACE_LABEL): 1,
}
# Why a conversion is impossible: what a relation makes public that another one protects.
PUBLIC = {REPLACE_ONE: "the number of records is public", REPLACE_LABEL: "the points and their order are public"}


@dataclasses.dataclass(frozen=True)
class Guarantee:
    """(epsilon, delta)-differential privacy under a stated neighbouring relation.

    For all neighbours S, S' and every set R of outputs, Pr[A(S) in R] <= exp(epsilon) Pr[A(S') in R] + delta
    (BNS, Definition 2.2). Numbers are float64 on the host.

    Args:
        epsilon: >= 0, in nats; `math.inf` means that nothing is promised, and delta is then 1.
        delta: in [0, 1]; 0 is pure privacy.
        relation: "REPLACE_ONE" (one record takes another value; the number of records is public),
            "ADD_OR_REMOVE_ONE" (one record more or fewer), both as in `dp_accounting.NeighboringRelation`, or
            "REPLACE_LABEL" (one example (x, y) keeps its x and takes another y, with k labels any other k; all
            points and their order are public: BNS, Definition 6.1).

    Raises:
        TypeError, ValueError: an argument is not a number, out of range, or an unknown relation.

    Example:
        >>> Guarantee(0.5, 1e-6, "ADD_OR_REMOVE_ONE").under_replace_one().epsilon
        1.0
    """

    epsilon: float
    delta: float
    relation: str

    def __post_init__(self) -> None:
        arguments.choice("relation", self.relation, RELATIONS)
        # A frozen dataclass can only be normalised this way; NumPy scalars become plain floats.
        object.__setattr__(self, "epsilon", arguments.number("epsilon", self.epsilon, at_least=0.0))
        object.__setattr__(self, "delta", arguments.number("delta", self.delta, at_least=0.0, at_most=1.0))
        if self.is_none and self.delta != 1.0:
            raise ValueError(f"delta must be 1 when epsilon is infinite, got {self.delta}")

    def __str__(self) -> str:
        """For people, in ten digits: "(1.0, 1e-06)-private under REPLACE_ONE", or that nothing is promised."""
        if self.is_none:
            return f"nothing is promised under {self.relation}"
        epsilon, delta = (float(f"{each:.10g}") for each in (self.epsilon, self.delta))
        return f"({epsilon}, {delta})-private under {self.relation}"

    @classmethod
    def none(cls, relation: str) -> "Guarantee":
        """No promise: (inf, 1). Whatever is composed with it promises nothing either.

        >>> print(Guarantee.none("REPLACE_ONE"))
        nothing is promised under REPLACE_ONE
        """
        return cls(math.inf, 1.0, relation)

    @property
    def is_none(self) -> bool:
        """Whether nothing is promised."""
        return math.isinf(self.epsilon)

    @property
    def neighboring_relation(self) -> Any:
        """The relation as a member of `dp_accounting.NeighboringRelation`; ValueError for REPLACE_LABEL, for which there is none."""
        import dp_accounting

        if self.relation == REPLACE_LABEL:
            raise ValueError(f"relation must be one of dp_accounting's, which has none for labels, got {self.relation}")
        return dp_accounting.NeighboringRelation[self.relation]

    @property
    def is_pure(self) -> bool:
        """Whether delta is 0."""
        return self.delta == 0.0

    def covers(self, epsilon: float, delta: float) -> bool:
        """Whether this promises at least (epsilon, delta), number by number, under its own relation.

        >>> Guarantee(1.0, 1e-9, "REPLACE_ONE").covers(1.0, 1e-6)
        True
        """
        return self.epsilon <= arguments.number("epsilon", epsilon) and self.delta <= arguments.number("delta", delta)

    def group(self, size: int) -> "Guarantee":
        """The promise to a group of `size` records: (k e, (1 + exp(e) + ... + exp((k-1) e)) d), rounded up.

        Args:
            size: number k of neighbouring steps between the two datasets, >= 1.

        Returns:
            A guarantee for datasets `size` steps apart, written under the same relation.

        Example:
            >>> Guarantee(0.1, 0.0, "REPLACE_ONE").group(10).epsilon
            1.0000000000000002
        """
        size = arguments.count("size", size)
        if self.is_none:
            return self
        epsilon = at_least(size * Fraction(self.epsilon))
        if math.isinf(epsilon):
            return Guarantee.none(self.relation)
        return Guarantee(epsilon, _group_delta(self.epsilon, self.delta, size), self.relation)

    def minus(self, spent: "Guarantee", name: str = "spent") -> "Guarantee":
        """What is left of this budget after another mechanism: (e - e', d - d'), rounded down; errors refer to `spent` as `name`.

        Raises:
            ValueError: another relation, or no epsilon or a negative delta would be left.

        Example:
            >>> Guarantee(1.0, 0.0, "REPLACE_ONE").minus(Guarantee(0.25, 0.0, "REPLACE_ONE")).epsilon
            0.75
        """
        arguments.instance(name, spent, Guarantee)
        if spent.relation != self.relation or spent.epsilon >= self.epsilon or spent.delta > self.delta:
            raise ValueError(f"{name} must leave some of {self}, got {spent}")
        if self.is_none:
            return self
        epsilon = at_most(Fraction(self.epsilon) - Fraction(spent.epsilon))
        return Guarantee(epsilon, at_most(Fraction(self.delta) - Fraction(spent.delta)), self.relation)

    def follows_under(self, relation: str) -> bool:
        """Whether a promise under another neighbouring relation follows from this one.

        >>> Guarantee(1.0, 0.0, "REPLACE_LABEL").follows_under("REPLACE_ONE")
        False
        """
        arguments.choice("relation", relation, RELATIONS)
        return self.is_none or relation == self.relation or (self.relation, relation) in STEPS

    def under(self, relation: str) -> "Guarantee":
        """The same promise under another neighbouring relation.

        Replacing a record removes one and adds one, so add/remove gives replace-one by group privacy of
        size 2: (2 e, (1 + exp(e)) d). Replacing a label replaces a record by one with the same point, so
        replace-one gives the same numbers for labels, and add/remove those of size 2. There is no way back
        (except for no promise at all): a mechanism that prints the number of records is (0, 0)-private under
        replace-one, where that number is public, and promises nothing under add/remove; one that prints the
        points is (0, 0)-private for labels, and promises nothing under replace-one.

        Raises:
            ValueError: unknown relation, or one under which nothing follows.

        Example:
            >>> Guarantee(1.0, 0.0, "ADD_OR_REMOVE_ONE").under("REPLACE_ONE")
            Guarantee(epsilon=2.0, delta=0.0, relation='REPLACE_ONE')
            >>> Guarantee(1.0, 0.0, "REPLACE_ONE").under("REPLACE_LABEL")
            Guarantee(epsilon=1.0, delta=0.0, relation='REPLACE_LABEL')
        """
        if not self.follows_under(relation):
            raise ValueError(
                f"relation {relation} does not follow from {self.relation}, where {PUBLIC[self.relation]}: "
                "a mechanism that prints what is public is private under the one and not under the other"
            )
        if relation == self.relation:
            return self
        if self.is_none:
            return Guarantee.none(relation)
        return dataclasses.replace(self.group(STEPS[self.relation, relation]), relation=relation)

    def under_replace_one(self) -> "Guarantee":
        """This promise under replace-one; see `under`."""
        return self.under(REPLACE_ONE)

    # --------------------------------------------------------------------------------- the same promise in other words

    def to_dp_event(self) -> Any:
        """The promise as an event that dp-accounting's accountants compose, never understating its cost.

        - (e, 0) under ADD_OR_REMOVE_ONE: `DiscreteLaplaceDpEvent(e, 1)`, whose losses are +e and -e alone, for dp-accounting's own
          `PLDAccountant`.
        - Any other (e, d): `dpjax.accounting.events.EpsilonDeltaDpEvent`, for `dpjax.accounting.events.Accountant`, which composes it
          together with all of dp-accounting's events.
        - (0, 0): `NoOpDpEvent`, for all accountants. No promise, or delta = 1: `NonPrivateDpEvent`, for all accountants.

        dp-accounting 0.6 has no event of its own with an infinite loss, and its PLDAccountant counts a `RandomizedResponseDpEvent`,
        which would be exact for (e, 0) under REPLACE_ONE, only once however often it is composed, so that is not used. Its
        accountants refuse events that they do not know. For its RdpAccountant there is `ZCDpEvent(guarantee.zcdp())`.

        Raises:
            ValueError: REPLACE_LABEL, which dp-accounting does not have.

        Example:
            >>> Guarantee(0.5, 0.0, "ADD_OR_REMOVE_ONE").to_dp_event()
            DiscreteLaplaceDpEvent(noise_parameter=0.5, sensitivity=1)
        """
        from dpjax.accounting import events  # imports dp-accounting

        return events.of(self.epsilon, self.delta, self.neighboring_relation)

    def to_pld(self, interval: float = losses.CELL) -> Any:
        """The privacy-loss distribution of the worst mechanism with this promise, for dp-accounting to compose.

        Its losses are infinite with probability delta, else +epsilon or -epsilon; epsilon is rounded up to a multiple of the
        interval. It is exact in composition, too: see `dpjax.accounting.optimal`.

        Args:
            interval: the cell of the grid of losses, > 0; distributions that are composed need the same grid.

        Returns:
            `dp_accounting.pld.privacy_loss_distribution.PrivacyLossDistribution`.

        Example:
            >>> loss = Guarantee(0.5, 1e-9, "REPLACE_ONE").to_pld().self_compose(10)
            >>> bool(loss.get_delta_for_epsilon(5.0) < 1.1e-8)
            True
        """
        interval = arguments.number("interval", interval, above=0.0, below=math.inf)
        return losses.worst(self.epsilon, self.delta, interval)

    def zcdp(self) -> float:
        """The least rho for which the promise implies rho-zCDP: epsilon tanh(epsilon / 2); infinite if delta > 0. See `accounting.views`.

        Example:
            >>> round(Guarantee(1.0, 0.0, "REPLACE_ONE").zcdp(), 4)
            0.4621
        """
        return views.concentration(self.epsilon, self.delta)

    def renyi(self, orders: Sequence[float]) -> np.ndarray:
        """The Rényi differential privacy that the promise implies at each order in [1, infinity]; see `accounting.views`.

        Example:
            >>> Guarantee(1.0, 0.0, "REPLACE_ONE").renyi([1, 2, math.inf]).round(4).tolist()
            [0.4621, 0.7353, 1.0]
        """
        checked = [arguments.number("orders", order, at_least=1.0) for order in arguments.several("orders", orders)]
        return np.array([views.renyi_divergence(self.epsilon, self.delta, order) for order in checked])

    def trade_off(self, errors: Sequence[float]) -> np.ndarray:
        """The least type II error of any test of neighbours at each type I error in [0, 1]; see `accounting.views`.

        Example:
            >>> Guarantee(1.0, 0.0, "REPLACE_ONE").trade_off([0.0, 0.1, 1.0]).round(4).tolist()
            [1.0, 0.7282, 0.0]
        """
        listed = arguments.several("errors", errors)
        checked = [arguments.number("errors", error, at_least=0.0, at_most=1.0) for error in listed]
        return np.array([views.type_two_error(self.epsilon, self.delta, error) for error in checked])


def promised(algorithm: Any, relation: str) -> Guarantee:
    """What an algorithm promises under a relation, by its own `guarantee_under` if it has one, else by converting its `guarantee`.

    Raises:
        ValueError: nothing follows from its relation.
    """
    if hasattr(algorithm, "guarantee_under"):
        known: Guarantee = algorithm.guarantee_under(relation)
        return known
    stated: Guarantee = algorithm.guarantee()
    return stated.under(relation)


def _group_delta(epsilon: float, delta: float, size: int) -> float:
    """delta times the geometric sum of group privacy, rounded up and never above 1."""
    if delta == 0.0 or size == 1:
        return delta
    if size * epsilon > 700.0:  # exp would overflow; no delta > 1e-300 survives it
        return 1.0
    total = float(size) if epsilon == 0.0 else math.expm1(size * epsilon) / math.expm1(epsilon)
    # Two expm1, a division and a product, each good to an ulp or two, and size * epsilon <= 700 roundings
    # inside exp.
    return min(1.0, delta * total * (1.0 + 2.0**-42) + math.ulp(0.0))
