"""Privacy guarantees and their arithmetic, in float64 on the host, rounded so as never to promise too much."""

from dpjax.accounting import set_cover, slicing
from dpjax.accounting.adaptive import exponential_epsilon
from dpjax.accounting.calibration import calibrate, closed_form_epsilon
from dpjax.accounting.composition import advanced, basic, optimal, total_delta, total_epsilon
from dpjax.accounting.exponential import exponential_rate, exponential_total, largest_range, largest_rho
from dpjax.accounting.guarantee import ADD_OR_REMOVE_ONE, RELATIONS, REPLACE_LABEL, REPLACE_ONE, Guarantee
from dpjax.accounting.subsampling import with_replacement
from dpjax.core import lazy

__all__ = [
    "ADD_OR_REMOVE_ONE",
    "RELATIONS",
    "REPLACE_LABEL",
    "REPLACE_ONE",
    "Guarantee",
    "advanced",
    "basic",
    "calibrate",
    "closed_form_epsilon",
    "exponential_epsilon",
    "exponential_rate",
    "exponential_total",
    "largest_range",
    "largest_rho",
    "optimal",
    "set_cover",
    "slicing",
    "total_delta",
    "total_epsilon",
    "with_replacement",
]

__getattr__, __dir__ = lazy.modules(__name__)  # `events` imports dp-accounting
