"""The shell of every algorithm: the methods that users call, written once.

An algorithm is a frozen pytree (`core.pytree.frozen`). Parameters that people sweep are leaves and everything else is static, so one
compiled program serves every epsilon and every sample size up to its bucket. An algorithm has three pure stages:

    prepare(data) -> view                           what a run or the law uses of the data
    draw(key, view) -> (output, released, info)     one run
    law(view, event) -> (P[event], P[not, or bottom])

A family of algorithms (learners of thresholds, solvers of the interior point problem, ...) has a base class that defines which data it
takes (`kind`, `fit`, `fits`) and what an event means for it (`event`, `exactly`, `listed`). Everything else is here: arguments are checked
before anything is compiled, data are padded to their bucket, programs are compiled once, and an output that was not released is not shown.

A user's own algorithm need not derive from this class. Any object with `__call__(key, data)` can be run, audited and searched for its
least n. With `pmf` it can be verified exactly, with `probability` measured without trials, and with `guarantee` held to its claim.
"""

import functools
import math
from collections.abc import Callable
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from dpjax.core import arguments, logspace
from dpjax.data.fitting import fitted
from dpjax.data.outcome import Outcome, Status
from dpjax.domains import wide
from dpjax.domains.events import Accurate, Interval, number

LARGEST_PMF = 12  # the most bits of a domain whose points `pmf` lists
ON_THE_HOST = {"guarantee", "guarantee_under", "sample_size"}  # computed in float64, never from traced values


class Algorithm:
    """What all algorithms share; see the module."""

    kind: ClassVar[type]  # the data: Sample, MultiSample, Points, ...
    largest_error: ClassVar[float] = 1.0  # for `success_probability`: errors are fractions of the examples
    takes_scaled: ClassVar[bool] = False  # whether drawn points may come as `domains.scaled.Scaled`
    # Whether losses lie in an interval of length epsilon, as those of exponential mechanisms do.
    bounded_range: ClassVar[bool] = False
    any_distribution: ClassVar[bool] = True  # whether `sample_size` holds for examples of every distribution

    def __init_subclass__(cls, **given: Any) -> None:
        """Makes the methods that the host computes refuse traced parameters by name, whichever class defines them."""
        super().__init_subclass__(**given)
        for name in ON_THE_HOST & vars(cls).keys():
            setattr(cls, name, _of_known_numbers(vars(cls)[name]))

    # What an algorithm defines --------------------------------------------------------------------------------

    def prepare(self, data: Any) -> Any:
        """The view: what a run or the law uses of the data."""
        raise NotImplementedError

    def draw(self, key: Array, view: Any) -> tuple[Any, Bool[Array, ""], Any]:
        """One run: (output, whether it was released, info)."""
        raise NotImplementedError

    def law(self, view: Any, event: Any) -> Float[Array, "2"]:
        """(P[event], P[not, or bottom]) over the algorithm's coins, each a sum of positive terms."""
        raise NotImplementedError(f"{type(self).__name__} has no law of events")

    def guarantee(self) -> Any:
        """The privacy that holds for the parameters in use: a `dpjax.accounting.Guarantee`, which may be `Guarantee.none(relation)`."""
        raise NotImplementedError(f"{type(self).__name__} states no guarantee")

    def sample_size(self, *, alpha: float, beta: float) -> int:
        """A number of examples that suffices for error alpha except with probability beta.

        Raises:
          ValueError: alpha or beta is outside (0, 1), or they demand more than this algorithm can promise.
        """
        raise NotImplementedError(f"{type(self).__name__} has no theorem on how many examples suffice")

    # What a family defines ------------------------------------------------------------------------------------

    def fit(self, data: Any) -> Any:
        """The data, checked against the domain and padded to their bucket."""
        raise NotImplementedError

    def fits(self, data: Any) -> Bool[Array, ""]:
        """Whether the data are in the domain, which `fit` cannot check for traced values."""
        return data.in_domain(self.bits)  # type: ignore[attr-defined]

    def sound(self) -> Bool[Array, ""]:
        """Whether the parameters in use are in their ranges, which a factory cannot check for traced values."""
        return sound(self)

    def check_event(self, event: Any) -> Any:
        """Checks an event as users write it and converts it to the form that `event` takes."""
        raise TypeError(f"event: {type(self).__name__} has no law of {event!r}")

    def event(self, view: Any, event: Any) -> Any:
        """The event as `law` takes it, given the view."""
        return event

    def exactly(self, output: Any) -> Any:
        """The event that the output is exactly this one."""
        raise TypeError(f"output: {type(self).__name__} has no probability of a single output, got {output!r}")

    def listed(self) -> int:
        """The number of possible outputs, bottom excluded; ValueError if there are too many to list."""
        raise NotImplementedError(f"{type(self).__name__} has no list of its outputs, and so no pmf")

    def outputs(self, data: Any) -> int:
        """The number of possible outputs on these data, bottom excluded: `listed`, unless it depends on the data."""
        return self.listed()

    def output(self, index: Int[Array, ""]) -> Any:
        """The output with this index."""
        raise NotImplementedError(f"{type(self).__name__} numbers no outputs")

    def anything(self) -> Any:
        """The event that something is released."""
        raise NotImplementedError(f"{type(self).__name__} does not give the probability that something is released")

    # What everybody calls -------------------------------------------------------------------------------------

    def __call__(self, key: Array, data: Any) -> Outcome:
        """One run.

        Args:
          key: PRNG key.
          data: of the algorithm's `kind`.

        Returns:
          An `Outcome`: `hypothesis` is the output, blank unless `status` is OK; `info` holds what was chosen on the way (not private).

        Raises:
          TypeError, ValueError: `key` is not a PRNG key, or the data do not fit the domain (checked only where they are not traced).
        """
        return _run(self, arguments.key(key), self._fitted(data))

    def probability(self, data: Any, event: Any) -> Float[Array, "2"]:
        """(P[output in the event], P[it is not, or bottom]) over the algorithm's coins, exactly.

        Both are sums of positive terms, so that even 1e-12 is accurate in float32. The result is differentiable in the algorithm's floats,
        and can be vmapped over them and over data. It is NaN where the data are not in the domain.

        Args:
          data: of the algorithm's `kind`.
          event: for ordered outputs a half-open interval (low, high) of ints or of wide integers; otherwise see the family. With
            `distribution.within(alpha)` this is the law of "population error <= alpha" given the sample.

        Raises:
          TypeError, ValueError: the data or the event do not fit the algorithm.
        """
        return _law(self, self._fitted(data), self.check_event(event))

    def success_probability(self, data: Any, *, error: Any) -> Float[Array, ""]:
        """P[the output's error on the data is at most `error`]; bottom is a failure.

        Args:
          data: of the algorithm's `kind`.
          error: largest error on the data that counts as success, in [0, 1].
        """
        return self._accurate(data, error)[0]

    def failure_probability(self, data: Any, *, error: Any) -> Float[Array, ""]:
        """P[the output's error on the data is above `error`, or bottom], a sum of positive terms."""
        return self._accurate(data, error)[1]

    def log_prob(self, data: Any, output: Any) -> Float[Array, ""]:
        """ln P[this output]; -inf if P is 0 or, unless the algorithm keeps logarithms, if it is below 1e-38 (1e-308 with x64)."""
        return _log_prob(self, self._fitted(data), self.check_event(self.exactly(output)))

    def pmf(self, data: Any) -> Float[Array, "outcomes"]:
        """The probabilities of all outputs of a small domain, followed by that of bottom; for the exact verifier."""
        data = self._fitted(data)
        return _pmf(self, data, self.outputs(data))

    def _fitted(self, data: Any) -> Any:
        """`fit`, after a check that the algorithm is a pytree, as every program needs it to be."""
        if jax.tree_util.all_leaves([self]):
            raise TypeError(
                f"{type(self).__name__} must be a pytree: decorate the class with @dpjax.core.pytree.frozen"
            )
        return self.fit(data)

    def _accurate(self, data: Any, error: Any) -> Float[Array, "2"]:
        error = arguments.real("error", error, at_least=0.0, at_most=self.largest_error)
        return _law(self, self._fitted(data), Accurate(error=jnp.asarray(error, float)))

    # How, where an algorithm knows a faster way ---------------------------------------------------------------

    def run(self, key: Array, data: Any) -> tuple[Any, Bool[Array, ""], Any]:
        """`draw` on what `prepare` returns; an algorithm that has a faster way to the same draws overrides this."""
        return self.draw(key, self.prepare(data))

    def log_mass(self, view: Any, event: Any) -> Float[Array, ""]:
        """`log_prob` given the view and the event of that output; algorithms that keep logarithms override it, for P below 1e-38, too."""
        return logspace.log(self.law(view, event)[0])

    def masses(self, view: Any, outputs: int) -> Float[Array, "outcomes"]:
        """`pmf` given the view."""

        def mass(index: Array) -> Array:
            return self.law(view, self.event(view, self.exactly(self.output(index))))[0]

        each = jax.vmap(mass)(jnp.arange(outputs, dtype=jnp.uint32))
        return jnp.append(each, self.law(view, self.event(view, self.anything()))[1])


def _of_known_numbers(method: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(method)
    def checked(self: Any, *args: Any, **given: Any) -> Any:
        for path, leaf in jax.tree_util.tree_leaves_with_path(self):
            if arguments.is_traced(leaf):
                name = jax.tree_util.keystr(path).lstrip(".")
                raise TypeError(
                    f"{name} must be a known number for {method.__name__}, which the host computes, got {leaf!r}"
                )
        return method(self, *args, **given)

    return checked


@jax.jit
def _run(algorithm: Algorithm, key: Array, data: Any) -> Outcome:
    output, released, info = algorithm.run(key, data)
    return Outcome.of(output, status(algorithm, data, released), info)


def status(algorithm: Algorithm, data: Any, released: Bool[Array, ""]) -> Int[Array, ""]:
    """The status code of a run, given whether it released something."""
    code = jnp.where(released, Status.OK, Status.BOTTOM)
    code = jnp.where(algorithm.fits(data), code, Status.OUTSIDE_DOMAIN)
    return jnp.where(algorithm.sound(), code, Status.BAD_PARAMETER).astype(jnp.int32)


@jax.jit
def _law(algorithm: Algorithm, data: Any, event: Any) -> Float[Array, "2"]:
    view = algorithm.prepare(data)
    return if_good(algorithm, data, algorithm.law(view, algorithm.event(view, event)))


@jax.jit
def _log_prob(algorithm: Algorithm, data: Any, event: Any) -> Float[Array, ""]:
    view = algorithm.prepare(data)
    return if_good(algorithm, data, algorithm.log_mass(view, algorithm.event(view, event)))


@jax.jit(static_argnums=2)
def _pmf(algorithm: Algorithm, data: Any, outputs: int) -> Float[Array, "outcomes"]:
    return if_good(algorithm, data, algorithm.masses(algorithm.prepare(data), outputs))


def if_good(algorithm: Algorithm, data: Any, law: Array) -> Array:
    """The law, but NaN where a run would end with a status other than OK or BOTTOM: no number may then pass for a law."""
    return jnp.where(algorithm.fits(data) & algorithm.sound(), law, jnp.nan)


def sound(parameters: Any) -> Bool[Array, ""]:
    """Whether `epsilon` (finite, > 0, not subnormal), `delta` (in [0, 1)) and `bits` (from 1 to what `limbs` hold), if present, are in
    range, in nested algorithms, too."""
    good = jnp.bool_(True)
    for part in vars(parameters).values():
        if callable(getattr(part, "sound", None)):  # an algorithm, or the split of a budget
            good &= part.sound()
    if hasattr(parameters, "epsilon"):
        epsilon = jnp.asarray(parameters.epsilon, float)
        good &= (epsilon >= jnp.finfo(epsilon.dtype).tiny) & (epsilon < jnp.inf)  # 1 over subnormal numbers is infinite
    if hasattr(parameters, "delta"):
        delta = jnp.asarray(parameters.delta, float)
        good &= (delta >= 0) & (delta < 1)
    bits, limbs = getattr(parameters, "bits", None), getattr(parameters, "limbs", None)
    if bits is not None and limbs is not None:
        good &= (jnp.asarray(bits) >= 1) & (jnp.asarray(bits) <= 32 * limbs)
    return good


def few_points(bits: Any) -> int:
    """The size 2^bits of a domain that is small enough to list; ValueError if it is not, TypeError if bits are traced."""
    return 1 << arguments.integer("bits", arguments.known_integer("bits", bits), at_least=1, at_most=LARGEST_PMF)


def whole(examples: float) -> int:
    """A theorem's number of examples, rounded up to an integer that is at least 1.

    >>> whole(7.2), whole(0.3)
    (8, 1)
    """
    return max(1, math.ceil(examples))


def sanitizer_size(sanitizer: Any, *, alpha: float, beta: float, asked: tuple[float, float]) -> int:
    """`sanitizer.sample_size(alpha=, beta=)`; a refusal begins with the alpha and beta that were asked for of the whole algorithm.

    >>> class Coarse:
    ...     def sample_size(self, *, alpha, beta):
    ...         raise ValueError(f"alpha must be > 0.1, got {alpha}")
    >>> sanitizer_size(Coarse(), alpha=0.05, beta=0.1, asked=(0.2, 0.1))
    Traceback (most recent call last):
    ...
    ValueError: alpha = 0.2 and beta = 0.1 require of the sanitizer alpha = 0.05 and beta = 0.1: alpha must be > 0.1, got 0.05
    """
    try:
        needed: int = sanitizer.sample_size(alpha=alpha, beta=beta)
    except ValueError as error:
        required = f"alpha = {asked[0]:.6g} and beta = {asked[1]:.6g} require of the sanitizer alpha = {alpha:.6g} and beta = {beta:.6g}"
        raise ValueError(f"{required}: {error}") from error
    return needed


class Ordered(Algorithm):
    """An algorithm on `kind` whose outputs are points 0, ..., `last` of an ordered domain, as wide integers.

    Attributes:
      bits: number of bits of the data's domain; may be traced.
      limbs: number of limbs of an output, and of the ends of an interval.
    """

    bits: Any
    limbs: int

    def fit(self, data: Any) -> Any:
        known = not arguments.is_traced(self.bits)
        limbs = (wide.limbs_for(int(self.bits)), self.limbs) if known else ()
        return fitted(data, self.kind, bits=self.bits, limbs=limbs)

    def check_event(self, event: Any) -> Any:
        return Interval.of(event, self.limbs)

    def exactly(self, output: Any) -> Interval:
        return Interval.single(number("output", output, self.limbs))

    def output(self, index: Array) -> Array:
        return wide.from_uint32(index, self.limbs)

    def anything(self) -> Interval:
        return Interval.everything(self.limbs)


def of_dpjax(algorithm: Any) -> bool:
    """Whether this is an algorithm of dpjax that calls only code of dpjax, since it holds nothing of another's class."""
    return isinstance(algorithm, Algorithm) and ours(algorithm)


def ours(part: Any) -> bool:
    """Whether the object and everything that it holds are of classes of dpjax; numbers and arrays are allowed, as they call nothing."""
    if isinstance(part, int | float | str | None | np.ndarray | np.generic | jax.Array):
        return True
    if type(part) not in (tuple, list) and not type(part).__module__.startswith("dpjax."):
        return False
    return all(map(ours, part if isinstance(part, tuple | list) else vars(part).values()))
