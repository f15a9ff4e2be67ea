"""Guarantees as events of dp-accounting, and an accountant that composes them together with all of its own events.

>>> import dp_accounting
>>> from dpjax.accounting import Guarantee
>>> accountant = Accountant(dp_accounting.NeighboringRelation.ADD_OR_REMOVE_ONE)
>>> accountant = accountant.compose(Guarantee(0.1, 1e-9, "ADD_OR_REMOVE_ONE").to_dp_event(), 20)
>>> accountant = accountant.compose(dp_accounting.GaussianDpEvent(5.0))
>>> round(accountant.get_epsilon(1e-6), 2)
2.07
"""

from typing import Any

import attr
import dp_accounting
from dp_accounting import dp_event, pld

from dpjax.accounting import losses


@attr.s(frozen=True, slots=True, auto_attribs=True)
class EpsilonDeltaDpEvent(dp_event.DpEvent):
    """A mechanism of which nothing is known except that it is (epsilon, delta)-private under a neighbouring relation.

    Attributes:
        epsilon: finite, >= 0.
        delta: in [0, 1).
        relation: the neighbouring relation; accountants for another one refuse the event.
    """

    epsilon: float
    delta: float
    relation: dp_accounting.NeighboringRelation


class Accountant(pld.PLDAccountant):
    """A `dp_accounting.pld.PLDAccountant` that also composes `EpsilonDeltaDpEvent`, exactly for the worst mechanism.

    `RandomizedResponseDpEvent` counts as often as it is composed (dp-accounting 0.6 forgets the count and counts 100 runs as one).
    Convolutions are dp-accounting's, whose deltas may be wrong by some 1e-16 per run; `dpjax.accounting.total_delta` adds that.
    """

    def _maybe_compose(self, event: Any, count: int, do_compose: bool) -> Any:
        if isinstance(event, EpsilonDeltaDpEvent):
            if event.relation is not self.neighboring_relation:
                return self.CompositionErrorDetails(event, f"neighboring_relation must be {event.relation.name}")
            if do_compose:
                self._add(losses.worst(event.epsilon, event.delta, self._value_discretization_interval), count)
            return None
        if isinstance(event, dp_event.RandomizedResponseDpEvent) and do_compose:
            once = pld.PLDAccountant(self.neighboring_relation, self._value_discretization_interval)
            once.compose(event)
            self._contains_non_dp_event |= once._contains_non_dp_event
            self._add(once._pld, count)
            return None
        return super()._maybe_compose(event, count, do_compose)

    def _add(self, loss: Any, count: int) -> None:
        try:
            self._pld: Any = self._pld.compose(loss.self_compose(count))
        except IndexError:  # raised by dp-accounting where hardly any loss is finite and its truncation leaves none
            self._contains_non_dp_event = True


def of(epsilon: float, delta: float, relation: dp_accounting.NeighboringRelation) -> dp_event.DpEvent:
    """The event of a guarantee; see `Guarantee.to_dp_event`."""
    if delta == 1.0:
        return dp_event.NonPrivateDpEvent()
    if epsilon == delta == 0.0:
        return dp_event.NoOpDpEvent()
    if delta == 0.0 and relation is dp_accounting.NeighboringRelation.ADD_OR_REMOVE_ONE:
        # Between 0 and 1 the ratio of exp(-e |x|) and exp(-e |x - 1|) is exp(e) for x <= 0 and exp(-e) for x >= 1: randomized response.
        return dp_event.DiscreteLaplaceDpEvent(epsilon, 1)
    return EpsilonDeltaDpEvent(epsilon, delta, relation)
