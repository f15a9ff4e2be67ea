"""What titles and labels say about the settings in force: nothing that a setting decides is hard-coded in a picture."""

import math
import re
from collections.abc import Mapping
from typing import Any

from dpjax.core import show

# Full names, for a reader, of what tables, settings and `dpjax.choose` call by a short name.
WORDS = {
    "2^log* optimiser": "$2^{\\log^*}$ optimiser",
    "ERM": "ERM (not private)",
    "RecConcave, N=2": "RecConcave, two levels",
    "RecConcave, N=3": "RecConcave, three levels",
    "amplified": "$2^{\\log^*}$ optimiser",
    "approximate": "ApproximateQuantiles",
    "direct": "one run a quantile",
    "direct_sum": "direct sum",
    "exponential": "exponential mechanism",
    "hashed": "hashed exponential mechanism",
    "histogram_learner": "histogram of labelled points",
    "sparse_histogram_learner": "sparse histogram of labelled points",
    "interior.threshold_learner": "interior point around the boundary",
    "inverse_sensitivity": "inverse sensitivity",
    "joint": "JointExp",
    "learn_points": "LearnPoints",
    "permute_and_flip": "permute-and-flip",
    "rank exponential": "exponential mechanism on ranks",
    "recursive": "recursive medians",
    "sliced": "Reorder-Slice-Compute",
    "slices, basic": "slices, basic composition",
    "slices, bounded": "slices, composition by ranges",
    "slices, optimal": "slices, optimal composition",
    "slices, slicing": "noisy slices (Reorder-Slice-Compute)",
    "supported": "supported keys",
    "supported_slices": "supported keys around noisy ranks",
    "supported_tree": "supported tree",
    "tree_log": "TreeLog",
    "tree_score": "tree score",
    "unbounded": "AboveThreshold along a grid",
}


def number(value: float) -> str:
    """A number for a text: powers of ten as such, others with the digits they need.

    >>> number(1e-6), number(2.5e-7), number(0.05), number(1.0)
    ('$10^{-6}$', '$2.5 \\\\cdot 10^{-7}$', '0.05', '1')
    """
    if value == 0 or 1e-3 <= abs(value) < 1e6:
        return f"{value:g}"
    power = math.floor(math.log10(abs(value)) + 1e-9)
    digits = f"{value / 10.0**power:g}"
    return f"$10^{{{power}}}$" if digits == "1" else f"${digits} \\cdot 10^{{{power}}}$"


def privacy(settings: Mapping[str, Any]) -> str:
    """The privacy budget.

    >>> privacy({"epsilon": 0.5, "delta": 1e-6})
    'ε = 0.5, δ = $10^{-6}$'
    """
    return f"ε = {number(settings['epsilon'])}, δ = {number(settings['delta'])}"


def success(settings: Mapping[str, Any]) -> str:
    """The probability with which the promise is kept.

    >>> success({"beta": 0.1})
    'with probability 0.9'
    """
    return f"with probability {show.but(settings['beta'])}"


def percent(level: float) -> str:
    """A confidence level as a percentage.

    >>> percent(0.95), percent(0.9999999)
    ('95 %', '99.99999 %')
    """
    return f"{show.whole(round(100 * level, 12))} %"


def words(name: str) -> str:
    """A series' name for a reader.

    >>> words("RecConcave, N=2"), words("direct_sum, learn_points"), words("joint by scales"), words("binary search")
    ('RecConcave, two levels', 'direct sum, LearnPoints', 'JointExp by scales', 'binary search')
    """
    if name in WORDS:
        return WORDS[name]
    return "".join(WORDS.get(part, part) for part in re.split("(, | by )", name))
