"""What mechanisms share: their data, the events of their outputs, and the checks of both.

A mechanism is an `Algorithm`. Most belong to one of two families: a `Chooser` takes scores of candidates and returns the index of one, a
`Noise` takes numbers and returns noisy ones; partition selection and the mechanisms over pieces derive from `Mechanism` directly. Every
module also has the pure stages, which other algorithms call: a sampling function with the module's own name (`draw` in the modules over
pieces), and the exact law.
"""

import math
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array, Bool, Float, Int, Real

from dpjax.accounting.guarantee import RELATIONS, Guarantee
from dpjax.core import arguments, logspace
from dpjax.core.pytree import frozen
from dpjax.data.algorithm import Algorithm
from dpjax.domains.events import Accurate

Number = Any  # a real parameter, from Python or NumPy or traced: `core.arguments` refuses anything else by name
LARGEST = 2**30 - 1  # integers from -2^30 to this are subtracted before rounding: their differences fit int32


# ---------------------------------------------------------------------------------------------------- data and events


def array(name: str, values: Any, *, whole: bool = False) -> Real[Array, "..."]:
    """`values` as an array of signed integers or reals of at least 32 bits: a narrower type may not hold their differences.

    If `whole`, the type is int32; traced integers outside it are clipped to its ends, which are not valid scores (see `within`).

    Raises:
      TypeError: values of another type. ValueError: an integer outside the type (int32 unless x64 is enabled) that is not traced.

    >>> array("counts", [3, 4]).dtype
    dtype('int32')
    """
    traced = any(map(arguments.is_traced, jax.tree.leaves(values)))
    given = jnp.asarray(values) if traced or isinstance(values, jax.Array) else _native(np.asarray(values))
    if jnp.issubdtype(given.dtype, jnp.signedinteger):
        default = jnp.asarray(given).dtype
        kind = jnp.int32 if whole or default.itemsize < 4 else default
        limits, known = np.iinfo(kind), np.zeros(0, int) if traced else np.asarray(given)
        if np.any((known < limits.min) | (known > limits.max)):
            raise ValueError(f"{name} must hold integers from {limits.min} to {limits.max}, got {values!r}")
        wider = given.dtype.itemsize > np.dtype(kind).itemsize
        return jnp.asarray(jnp.clip(given, limits.min, limits.max) if traced and wider else given, kind)
    if whole or not jnp.issubdtype(given.dtype, jnp.floating):
        rule = "signed integers" if whole else "signed integers or reals"
        raise TypeError(f"{name} must hold {rule}, got {values!r} of type {given.dtype}")
    real = jnp.asarray(given)
    return real.astype(jnp.float32) if real.dtype.itemsize < 4 else real


def reals(name: str, values: Any) -> Float[Array, "..."]:
    """Real numbers of any type, or booleans, as floats; TypeError for the rest."""
    ours = isinstance(values, jax.Array) or hasattr(values, "__jax_array__")
    ours = ours or any(map(arguments.is_traced, jax.tree.leaves(values)))
    given = jnp.asarray(values) if ours else np.asarray(float(values) if isinstance(values, int) else values)
    if not any(jnp.issubdtype(given.dtype, kind) for kind in (jnp.bool_, jnp.integer, jnp.floating)):
        raise TypeError(f"{name} must hold real numbers, got {values!r} of type {given.dtype}")
    return jnp.asarray(given, float)


def _native(given: np.ndarray) -> np.ndarray:
    """`given` in the byte order of this machine, the only one that JAX accepts."""
    return given.astype(given.dtype.newbyteorder("="), copy=False)


def scored(
    scores: Real[ArrayLike, "..."], where: Bool[ArrayLike, "..."] | None = None, name: str = "scores"
) -> tuple[Real[Array, "k"], Bool[Array, "k"]]:
    """The candidates' scores and which of them exist: all when `where` is absent.

    Raises:
      TypeError: scores that are not signed integers or reals, or a mask that does not hold booleans.
      ValueError: scores that are not one per candidate, or a mask of another shape.
    """
    values = array(name, scores)
    if values.ndim != 1 or values.shape[0] == 0:
        raise ValueError(f"{name} must have shape (k,) with k >= 1, one a candidate, got shape {values.shape}")
    if where is None:
        return values, jnp.ones(values.shape, bool)
    mask: Any = where if arguments.is_traced(where) else np.asarray(where)
    if mask.dtype != bool:
        raise TypeError(f"where must hold booleans, got {mask.dtype}")
    if mask.shape != values.shape:
        raise ValueError(f"where must have the shape {values.shape} of {name}, got {mask.shape}")
    return values, jnp.asarray(mask)


def measured(log_measure: Any, scores: Real[Array, "k"]) -> Float[Array, "k"] | None:
    """The base measure, one number per score; ValueError if it has another shape, or holds +inf or NaN and is not traced."""
    if log_measure is None:
        return None
    values = array("log_measure", log_measure).astype(float)
    if values.shape != scores.shape:
        raise ValueError(f"log_measure must have the shape {scores.shape} of scores, got {values.shape}")
    if not arguments.is_traced(values) and not np.all(np.asarray(values) < np.inf):  # -inf: never chosen
        raise ValueError(f"log_measure must hold numbers below infinity, got {log_measure!r}")
    return values


def largest(scores: Real[Array, "k"], where: Bool[Array, "k"]) -> Real[Array, ""]:
    """The largest valid score; the lowest number of the type when there is none."""
    return jnp.max(scores, where=where, initial=lowest(scores))


def within(values: Int[Array, "*s"]) -> Bool[Array, "*s"]:
    """Which integers are from -2^30 to 2^30 - 1."""
    return (values >= -LARGEST - 1) & (values <= LARGEST)


def lowest(scores: Real[Array, "k"]) -> Real[Array, ""]:
    """The lowest number of the scores' type."""
    integers = jnp.issubdtype(scores.dtype, jnp.integer)
    return jnp.asarray(jnp.iinfo(scores.dtype).min if integers else -jnp.inf, scores.dtype)


@frozen
class Candidates:
    """What a `Chooser` takes; build it by `candidates`.

    Attributes:
      scores: quality of each candidate; the size of reals is at most half the largest float of their type.
      where: which candidates exist.
      log_measure: ln of the base measure of the exponential mechanism; None is 0.
    """

    scores: Real[Array, "k"]
    where: Bool[Array, "k"]
    log_measure: Float[Array, "k"] | None


def candidates(scores: Any, *, where: Any = None, log_measure: Any = None) -> Candidates:
    """Scores of candidates, not all of which need exist.

    Args:
      scores: quality of each candidate, signed integers (from -2^30 to 2^30 - 1) or reals.
      where: which candidates exist, independent of the data; all when absent.
      log_measure: ln of the weight of each candidate before any data are seen, for the exponential mechanism only.

    Raises:
      TypeError, ValueError: see `scored`; also for a measure that is not one real number per candidate.

    >>> int(candidates([1, 2, 3], where=[True, False, True]).where.sum())
    2
    """
    values, mask = scored(scores, where)
    return Candidates(scores=values, where=mask, log_measure=measured(log_measure, values))


@frozen
class Between:
    """Outputs from `low` up to, but excluding, `high`: indices or numbers, either one for all entries of the release or one for each."""

    low: Real[Array, "*s"]
    high: Real[Array, "*s"]

    @classmethod
    def of(cls, event: Any, *, whole: bool) -> "Between":
        """From a pair (low, high); TypeError for anything else, and for reals where outputs are integers."""
        if isinstance(event, cls):
            return event
        if not isinstance(event, tuple | list) or len(event) != 2:
            raise TypeError(f"event must be a pair (low, high), the half-open interval of both, got {event!r}")
        low, high = (array(name, end, whole=whole) for name, end in zip(("low", "high"), event, strict=True))
        for name, end in (("low", low), ("high", high)):
            if not arguments.is_traced(end) and bool(np.isnan(np.asarray(end)).any()):
                raise ValueError(f"{name} of the event must hold numbers, not NaN, got {end!r}")
        return cls(low=low, high=high)


def difference(end: Int[Array, "*s"], value: Int[Array, "*s"]) -> Float[Array, "*s"]:
    """end - value as a float: subtracted exactly while the difference fits an integer, else after rounding both."""
    rounded = end.astype(float) - value.astype(float)
    return jnp.where(jnp.abs(rounded) < 2.0**30, (end - value).astype(float), rounded)


class Selection(NamedTuple):
    """A chosen candidate; `index` means nothing where `ok` is False (the outcome is ⊥)."""

    index: Int[Array, ""]  # type: ignore[assignment]  # tuple has a method of this name
    ok: Bool[Array, ""]


def released(index: Int[Array, ""], ok: Bool[Array, ""]) -> Selection:
    """This candidate, or ⊥ with index 0: the index of a candidate that is not released would reveal something about the data."""
    return Selection(jnp.where(ok, index, 0), ok)


# ---------------------------------------------------------------------------------------------------------- mechanisms


class Mechanism(Algorithm):
    """What all mechanisms share: they see scores or numbers that were computed from examples, not the examples.

    So `epsilon` applies to data that differ by at most the sensitivity under `relation`, which is fixed when the mechanism is made.
    """

    largest_error: ClassVar[float] = math.inf  # errors are in units of the scores, or of the numbers

    epsilon: Any
    relation: str

    def prepare(self, data: Any) -> Any:
        return data

    def guarantee(self) -> Guarantee:
        """(epsilon, 0) under the relation for which the sensitivity holds."""
        return Guarantee(arguments.known("epsilon", self.epsilon), 0.0, self.relation)

    def sample_size(self, *, alpha: float, beta: float) -> int:
        """Not available: how many examples suffice depends on the scores or numbers that are computed from them.

        Raises:
          ValueError: always.
        """
        raise ValueError(f"alpha and beta: no theorem gives {type(self).__name__} a number of examples by itself")

    def listed(self) -> int:
        raise NotImplementedError(
            f"pmf: {type(self).__name__} has too many outputs for a list; `probability` takes intervals of them"
        )


def beyond(value: Real[ArrayLike, "*s"], threshold: Any) -> Float[Array, "*s"]:
    """value - threshold, in the default float; from an integer, the threshold's integer part is subtracted before anything is rounded.

    Adjacent counts near 2^29 then differ by 1 even if the threshold is not an integer; in float32 they would differ by 0 or by 32.
    """
    value, xp = jnp.asarray(value), jnp if arguments.is_traced(threshold) else np
    counted = jnp.issubdtype(value.dtype, jnp.integer)
    if counted and jnp.issubdtype(jnp.result_type(threshold), jnp.integer):
        return (value - jnp.asarray(threshold, value.dtype)).astype(float)
    bar = xp.asarray(threshold, float)
    if not counted:
        return value.astype(float) - jnp.asarray(bar, float)
    # Counts and integer parts are at most 2^30 in size: their differences fit int32.
    whole = xp.clip(xp.floor(bar), -LARGEST - 1, LARGEST)
    counts = value.astype(jnp.promote_types(value.dtype, jnp.int32)) if value.dtype.itemsize < 4 else value
    return (counts - jnp.asarray(whole, counts.dtype)).astype(float) - jnp.asarray(bar - whole, float)


class Chooser(Mechanism):
    """A mechanism that takes scores, an array or `candidates(scores, where=...)`, and returns the index of a candidate, or ⊥.

    An event is a half-open interval (low, high) of indices, or one flag per candidate. The error of a candidate is the amount by which
    its score falls short of the best.

    A subclass is `@frozen`, has the field `epsilon` and whatever else it needs, and defines `log_law(data)` and `draw(key, data)`, which
    returns (index, whether it is released, info). It also has the field `relation: str = static()`, under which it promises
    (epsilon, 0), or defines `guarantee()`.
    """

    kind: ClassVar[type] = Candidates
    takes_measure: ClassVar[bool] = False

    def log_law(self, data: Candidates) -> Float[Array, "outcomes"]:
        """ln P of every candidate, then of ⊥."""
        raise NotImplementedError

    def fit(self, data: Any) -> Candidates:
        if not isinstance(data, Candidates):
            return candidates(data)
        if data.log_measure is not None and not self.takes_measure:
            raise ValueError(f"log_measure must be absent: {type(self).__name__} has no base measure")
        return candidates(data.scores, where=data.where, log_measure=data.log_measure)

    def fits(self, data: Candidates) -> Bool[Array, ""]:
        if jnp.issubdtype(data.scores.dtype, jnp.integer):
            good = within(data.scores)
        else:
            good = jnp.abs(data.scores) <= jnp.finfo(data.scores.dtype).max / 2  # so that differences do not overflow
        return jnp.all(good | ~data.where)

    def check_event(self, event: Any) -> Any:
        if isinstance(event, np.ndarray | jax.Array) and event.dtype == bool:
            return jnp.asarray(event)
        return Between.of(event, whole=True)

    def event(self, data: Candidates, event: Any) -> Bool[Array, "k"]:
        if isinstance(event, Accurate):
            short = (largest(data.scores, data.where) - data.scores).astype(float)
            return data.where & (short <= event.error)
        if isinstance(event, Between):
            for name, end in (("low", event.low), ("high", event.high)):
                if end.shape:
                    raise ValueError(f"{name} of the event must be one index, got shape {end.shape}")
            index = jnp.arange(data.scores.shape[0], dtype=event.low.dtype)
            return (index >= event.low) & (index < event.high)
        if event.shape != data.scores.shape:
            raise ValueError(f"event must have one flag a candidate, shape {data.scores.shape}, got {event.shape}")
        return event

    def exactly(self, output: Any) -> Between:
        index = array("output", output, whole=True)
        if index.ndim > 0:
            raise ValueError(f"output must be the index of one candidate, got shape {index.shape}")
        return Between(low=index, high=index + 1)

    def outputs(self, data: Candidates) -> int:
        return data.scores.shape[0]

    def law(self, data: Candidates, chosen: Bool[Array, "k"]) -> Float[Array, "2"]:
        masses, inside = jnp.exp(self.log_law(data)), jnp.append(chosen, False)
        return jnp.stack([jnp.sum(jnp.where(inside, masses, 0.0)), jnp.sum(jnp.where(inside, 0.0, masses))])

    def log_mass(self, data: Candidates, chosen: Bool[Array, "k"]) -> Float[Array, ""]:
        return logspace.logsumexp(jnp.where(chosen, self.log_law(data)[:-1], -jnp.inf))

    def masses(self, data: Candidates, outputs: int) -> Float[Array, "outcomes"]:
        return jnp.exp(self.log_law(data))


class Noise(Mechanism):
    """A mechanism that takes numbers, of any shape, and returns them with independent noise; integers are from -2^30 to 2^30 - 1.

    An event is a half-open interval (low, high) that holds every entry of the release; each end is a number or an array of the data's
    shape. The error of a release is the largest size of its noise.

    A subclass is `@frozen`, has the fields `epsilon` and `relation: str = static()` and whatever else it needs, sets `whole`, and defines
    `add(key, value)`, `split(value, event)` and `log_density(value, output)`. If it does not promise (epsilon, 0), it also defines
    `guarantee()`. There is no `pmf`, so `dpjax.check` audits it by runs.
    """

    kind: ClassVar[type] = jax.Array
    whole: ClassVar[bool]  # whether it takes and returns integers

    def log_density(self, value: Real[Array, "*s"], output: Real[Array, "*s"]) -> Float[Array, "*s"]:
        """ln of the probability (for reals, the density) that this entry is released as this output."""
        raise NotImplementedError

    def split(self, value: Real[Array, "*s"], event: Between) -> tuple[Float[Array, "*s"], Float[Array, "*s"]]:
        """(P[release within the interval], P[not]) for every entry, where low <= high."""
        raise NotImplementedError

    def add(self, key: Array, value: Real[Array, "*s"]) -> Real[Array, "*s"]:
        """The release."""
        raise NotImplementedError

    def draw(self, key: Array, value: Real[Array, "*s"]) -> Any:
        return self.add(key, value), jnp.bool_(True), {}

    def fit(self, data: Any) -> Real[Array, "..."]:
        return array("value", data, whole=self.whole)

    def fits(self, data: Real[Array, "*s"]) -> Bool[Array, ""]:
        return jnp.all(within(data) if self.whole else jnp.isfinite(data))

    def check_event(self, event: Any) -> Between:
        return Between.of(event, whole=self.whole)

    def event(self, value: Real[Array, "*s"], event: Any) -> Between | Accurate:
        if isinstance(event, Accurate):
            if not self.whole:
                return event  # for `law`: the ends would be rounded to the precision of the value
            event = self.near(value, event.error)
        for name, end in (("low", event.low), ("high", event.high)):
            if end.shape not in ((), value.shape):
                raise ValueError(
                    f"{name} of the event, or the output, must be a number or have the shape {value.shape} of the data, got {end.shape}"
                )
        low, high = (jnp.broadcast_to(end, value.shape).astype(value.dtype) for end in (event.low, event.high))
        return Between(low=low, high=jnp.maximum(low, high))

    def near(self, value: Int[Array, "*s"], error: Float[Array, ""]) -> Between:
        """The integer releases whose noise is at most `error` in size."""
        most = jnp.minimum(jnp.minimum(error, 2.0**30).astype(value.dtype), LARGEST)
        return Between(low=value - most, high=value + most + 1)

    def exactly(self, output: Any) -> Between:
        output = array("output", output, whole=self.whole)
        if not arguments.is_traced(output) and bool(np.isnan(np.asarray(output)).any()):
            raise ValueError(f"output must hold numbers, not NaN, got {output!r}")
        return Between(low=output, high=output + 1) if self.whole else Between(low=output, high=output)

    def law(self, value: Real[Array, "*s"], event: Between | Accurate) -> Float[Array, "2"]:
        if isinstance(event, Accurate):  # which depends on the noise alone
            value, error = jnp.zeros_like(value), jnp.broadcast_to(event.error, value.shape)
            event = Between(low=-error, high=error)
        inside, outside = self.split(value, event)
        return all_or_first_failure(inside.ravel(), outside.ravel())

    def log_mass(self, value: Real[Array, "*s"], event: Between) -> Float[Array, ""]:
        return jnp.sum(self.log_density(value, event.low))


def all_or_first_failure(right: Float[Array, "n"], wrong: Float[Array, "n"]) -> Float[Array, "2"]:
    """(P[all of n independent things go right], P[not]); the latter is a sum of positive terms, over which is the first to go wrong."""
    before = jnp.concatenate([jnp.ones((1,), right.dtype), jnp.cumprod(right)])
    return jnp.stack([before[-1], jnp.sum(before[:-1] * wrong)])


def with_bottom(log_p: Float[Array, "k"]) -> Float[Array, "k+1"]:
    """The law of a choice among the possible candidates, with ⊥ last: ⊥ is certain if no candidate is possible, else impossible."""
    return jnp.append(log_p, jnp.where(jnp.any(log_p > -jnp.inf), -jnp.inf, 0.0))


def sensitivity_of(value: Any, epsilon: Any) -> float:
    """A checked sensitivity, which must be a known number: > 0, finite, and such that floats hold the scale of the noise."""
    sensitivity = arguments.known("sensitivity", arguments.real("sensitivity", value, above=0.0, below=math.inf))
    arguments.real("sensitivity / epsilon", sensitivity / epsilon)
    arguments.real("epsilon / sensitivity", epsilon / sensitivity)
    return sensitivity


def relation_for(monotone: bool, relation: str | None) -> str:
    """The relation for which a sensitivity holds; monotone scores may claim ADD_OR_REMOVE_ONE only."""
    if relation is None:
        return "ADD_OR_REMOVE_ONE" if monotone else "REPLACE_ONE"
    if monotone and relation != "ADD_OR_REMOVE_ONE":
        raise ValueError(f"relation must be 'ADD_OR_REMOVE_ONE' for monotone scores, got {relation!r}")
    return arguments.choice("relation", relation, RELATIONS)
