"""Private mechanisms, a file each: a function that samples, the exact law, a class that binds parameters.

Here are the modules and the classes: `mechanisms.stability` is the module, `mechanisms.Stability` the
class, and `mechanisms.stability.stability(key, ...)` the plain function.
"""

from dpjax.core import lazy
from dpjax.mechanisms import (
    above_threshold,
    choosing,
    exponential,
    geometric,
    laplace,
    partition_selection,
    report_noisy_max,
    stability,
)
from dpjax.mechanisms.above_threshold import AboveThreshold
from dpjax.mechanisms.choosing import Choosing
from dpjax.mechanisms.exponential import Exponential, Selection
from dpjax.mechanisms.geometric import Geometric, OneSidedGeometric
from dpjax.mechanisms.laplace import Laplace
from dpjax.mechanisms.partition_selection import PartitionSelection
from dpjax.mechanisms.report_noisy_max import ReportNoisyMax
from dpjax.mechanisms.stability import Stability

__all__ = [
    "AboveThreshold",
    "Choosing",
    "Exponential",
    "Geometric",
    "Laplace",
    "OneSidedGeometric",
    "PartitionSelection",
    "ReportNoisyMax",
    "Selection",
    "Stability",
    "above_threshold",
    "choosing",
    "exponential",
    "geometric",
    "laplace",
    "partition_selection",
    "report_noisy_max",
    "stability",
]

__getattr__, __dir__ = lazy.modules(__name__)
