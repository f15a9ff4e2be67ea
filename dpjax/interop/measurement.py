"""Algorithms on points as measurements of OpenDP: columns of numbers go in, values of the column come out."""

import secrets
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import opendp.prelude as dp

from dpjax.accounting import ADD_OR_REMOVE_ONE, REPLACE_ONE, Guarantee
from dpjax.core import arguments
from dpjax.data import encoding
from dpjax.data.algorithm import Ordered
from dpjax.data.outcome import Status
from dpjax.data.points import Points
from dpjax.optimizers.quantiles.base import Quantiles

METRICS = {ADD_OR_REMOVE_ONE: dp.symmetric_distance, REPLACE_ONE: dp.change_one_distance}


def to_opendp(algorithm: Any, *, low: Any, high: Any, unit: Any = None) -> Any:
    """An algorithm on points as a measurement of OpenDP on columns of numbers.

    A column is encoded by `dpjax.encode` with these public bounds and unit, values outside the bounds are moved to the nearer one, and the
    output is decoded: a number, a list of them (quantiles), or None where the algorithm releases nothing. Each release takes its key from
    the operating system's entropy.

    **Privacy.** The relation of the algorithm's guarantee decides the input metric: for ADD_OR_REMOVE_ONE the symmetric distance, for
    REPLACE_ONE the number of changed records of multisets of one size. Both metrics are about multisets, the guarantee is about lists. So
    the rows are shuffled first:
    two multisets at distance 1 have orders, each with the law of a shuffle, in which the lists are neighbours, and a hockey-stick of
    mixtures is at most the mixture of hockey-sticks. At distance k the map gives group privacy, `Guarantee.group(k)`.

    Formal guarantees: those of `algorithm.guarantee()` for columns in the input domain, without NaN; OpenDP trusts a user-defined
    measurement to keep them. Not promised: protection from floating-point side channels; a cryptographic
    generator (JAX's Threefry).

    Args:
      algorithm: for the interior point problem (`optimizers.interior_point`) or quantiles (`optimizers.quantiles`), made for the bits of
        this encoding: `dpjax.encode([], low=low, high=high, unit=unit).bits` for integers.
      low, high: public bounds, both inclusive. Columns are of 64-bit integers if all three numbers are ints, otherwise of 64-bit floats.
      unit: one step; if absent, 1 for integers, and every float for floats.

    Returns:
      `opendp.mod.Measurement`; its output measure is the max-divergence, or the approximate one if delta > 0. OpenDP requires
      `dp.enable_features("contrib", "honest-but-curious")`.

    Raises:
      TypeError: an algorithm on other data.
      ValueError: an algorithm for another number of bits, or one for whose guarantee OpenDP has no metric.

    >>> from dpjax.optimizers import interior_point
    >>> dp.enable_features("contrib", "honest-but-curious")
    >>> between = to_opendp(interior_point.exponential(bits=7, epsilon=1.0), low=0, high=127)
    >>> 30 <= between([30, 40, 50] * 40) <= 50, between.map(d_in=2)
    (True, 2.0)
    """
    if not isinstance(algorithm, Ordered | Quantiles) or algorithm.kind is not Points:
        raise TypeError(f"algorithm must find points among points (optimizers), got {type(algorithm).__name__}")
    whole = all(isinstance(each, int | np.integer) for each in (low, high, 1 if unit is None else unit))
    dtype: Any = np.int64 if whole else np.float64
    empty = encoding.encode(np.zeros(0, dtype), low=low, high=high, unit=unit)
    if int(algorithm.bits) != empty.bits:
        raise ValueError(f"algorithm.bits must be {empty.bits} for these bounds and unit, got {int(algorithm.bits)}")
    guarantee = _mapped(algorithm.guarantee())

    def release(values: list[Any]) -> Any:
        order = np.random.default_rng(secrets.randbits(128)).permutation(len(values))
        words = np.array([secrets.randbits(32), secrets.randbits(32)], np.uint32)
        column = encoding.encode(np.array(values, dtype)[order], low=low, high=high, unit=unit, clip=True)
        outcome = algorithm(jax.random.wrap_key_data(jnp.asarray(words), impl="threefry2x32"), column.points)
        return np.asarray(column.decode(outcome.hypothesis)).tolist() if int(outcome.status) == Status.OK else None

    def privacy(distance: int) -> Any:
        far = guarantee.group(distance) if distance else Guarantee(0.0, 0.0, guarantee.relation)
        return far.epsilon if guarantee.is_pure else (far.epsilon, far.delta)

    measure = dp.max_divergence()
    return dp.m.make_user_measurement(
        dp.vector_domain(dp.atom_domain(T="i64") if whole else dp.atom_domain(T="f64", nan=False)),
        METRICS[guarantee.relation](),
        measure if guarantee.is_pure else dp.approximate(measure),
        release,
        privacy,
    )


def _mapped(guarantee: Guarantee) -> Guarantee:
    """The guarantee, if OpenDP has a metric for it."""
    arguments.instance("algorithm.guarantee()", guarantee, Guarantee)
    if guarantee.is_none or guarantee.relation not in METRICS:
        raise ValueError(f"algorithm must promise privacy under one of {', '.join(METRICS)}, got {guarantee}")
    return guarantee
