"""The learner of rectangles (CLNSS §1.3.4): slices from both ends of every axis, and an interior point of each.

Its plain twin, for the slices and for the law in the plane, is `dpjax.verify.plain.rectangles`.
"""

import math
from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Bool, Float, Int, UInt32

from dpjax.accounting import ADD_OR_REMOVE_ONE, Guarantee
from dpjax.accounting.bounded import composes_by_range
from dpjax.concepts import rectangles as concept
from dpjax.concepts.rectangles import Rectangle
from dpjax.core import arguments
from dpjax.core.bisection import least_int
from dpjax.core.logspace import all_happen
from dpjax.core.pytree import frozen, static
from dpjax.core.staging import unless
from dpjax.data.algorithm import Algorithm
from dpjax.data.examples import Examples
from dpjax.data.fitting import fitted_examples
from dpjax.data.outcome import Outcome, Status
from dpjax.data.points import Points
from dpjax.domains import selection, wide
from dpjax.domains.events import Accurate, Interval
from dpjax.learners.rectangles import planning
from dpjax.learners.rectangles.planning import ACCOUNTANTS, Plan, Solver
from dpjax.mechanisms import geometric
from dpjax.optimizers import slicing
from dpjax.optimizers.interior_point import InteriorPoint


@frozen
class Faces:
    """An event: face j of the rectangle is in interval j, for all faces in the order of the slices; or, if `zero`, the output is all-zero.

    Attributes:
      within: stacked intervals, one for each face.
      zero: whether the all-zero hypothesis, the output if too few examples remain, is in the event, too.
    """

    within: Interval
    zero: Bool[Array, ""]


@frozen
class Rectangles(Algorithm):
    """The learner; build it by `rectangles`. Slice 2i is the low one of axis i, 2i + 1 the high one.

    An event of its law is an interval for each face, (low, high) with a row for each slice. Given the slices' sizes the law is exact. Sizes
    are random if the accountant needs noise in them, and then `probability_given` computes the law for given noises. Errors on the data
    depend on all faces at once, so their law is available on small domains only.

    One compiled program serves every number of examples up to its bucket and every budget with the same capacity.

    Attributes:
      solver: the interior point solver that is run on each slice.
      bits: d.
      slice_epsilon: rate of the noise in the slices' sizes; infinite if sizes are public.
      count_epsilon: privacy parameter of the test, e.
      size: m, the least size of a slice.
      noise: W, the bound on the sum of all noises in the sizes that `sample_size` uses.
      threshold: tau, of the test.
      delta: the total delta at which privacy is stated.
      spent_beta: the failure probability that solvers, test and noises take.
      axes: D (static).
      limbs: of a coordinate (static).
      capacity: the most points of a slice that the solver sees (static).
      noisy: whether the sizes have noise (static).
      accountant: one of `ACCOUNTANTS` (static).
    """

    solver: InteriorPoint
    bits: Int[Array, ""]
    slice_epsilon: Float[Array, ""]
    count_epsilon: Float[Array, ""]
    size: Int[Array, ""]
    noise: Int[Array, ""]
    threshold: Int[Array, ""]
    delta: Float[Array, ""]
    spent_beta: Float[Array, ""]
    axes: int = static()
    limbs: int = static()
    capacity: int = static()
    noisy: bool = static()
    accountant: str = static()

    kind: ClassVar[type] = Examples

    # The algorithm --------------------------------------------------------------------------------------------

    def prepare(self, examples: Examples) -> Examples:
        return examples

    def draw(self, key: Array, examples: Examples) -> Any:
        return self._learn(key, examples, self.faces)

    def _learn(self, key: Array, examples: Examples, faces: Callable[[Array, "Slices"], Outcome]) -> Any:
        """Cuts the slices, finds an interior point of each, and tests whether enough examples remain."""
        key_sizes, key_faces, key_count = jax.random.split(key, 3)
        slices = cut(examples, self.sizes(key_sizes, examples.rows))
        return self.answer(key_count, faces(key_faces, slices), slices)

    def sizes(self, key: Array, most: int) -> Int[Array, "faces"]:
        """Sizes of the slices; noise is cut off where it makes no difference."""
        rate = self.slice_epsilon if self.noisy else None
        return jnp.asarray(self.size, jnp.int32) + slicing.noise(key, rate, most=most, shape=(2 * self.axes,))

    def faces(self, key: Array, slices: "Slices", width: int | None = None) -> Outcome:
        """An interior point of each slice; the solver sees at most `width` of its points, by default the capacity."""
        projections = slices.projections(self.capacity if width is None else width)
        return jax.vmap(self.solver)(jax.random.split(key, 2 * self.axes), projections)

    def answer(self, key: Array, faces: Outcome, slices: "Slices") -> Any:
        """The rectangle with these faces, or the all-zero hypothesis if too few examples remain."""
        noisy = geometric.geometric(key, slices.remaining, epsilon=self.count_epsilon)
        enough = noisy >= self.threshold
        learned = Rectangle(low=faces.hypothesis[0::2], high=faces.hypothesis[1::2])
        zero = concept.nothing(self.axes, self.limbs)
        hypothesis = jax.tree.map(lambda one, other: jnp.where(enough, one, other), learned, zero)
        sizes = jnp.minimum(slices.sizes.reshape(-1), self.capacity)
        info = {"sizes": sizes, "remaining": slices.remaining, "enough": enough}
        return hypothesis, ~enough | jnp.all(faces.status == Status.OK), info

    # Its law --------------------------------------------------------------------------------------------------

    def law(self, examples: Examples, event: Faces) -> Float[Array, "2"]:
        if self.noisy:
            raise ValueError("the law is known for given noises in the slices' sizes only: ask probability_given")
        return self.law_given(examples, event, jnp.zeros((2 * self.axes,), jnp.int32))

    def law_given(self, examples: Examples, event: Faces, noise: Int[Array, "faces"]) -> Float[Array, "2"]:
        """The law given the noises: given the sizes, all faces are independent, and so is the test."""
        slices = cut(examples, self.size + jnp.minimum(noise, examples.rows))
        each = jax.vmap(self.solver.probability)(slices.projections(self.capacity), event.within)
        bar: Any = {"value": slices.remaining, "epsilon": self.count_epsilon}
        too_few = jnp.exp(geometric.log_cdf(self.threshold - 1, **bar))
        enough = jnp.exp(geometric.log_sf(self.threshold - 1, **bar))
        zero = jnp.stack([event.zero, ~event.zero]).astype(too_few.dtype)
        return enough * all_happen(each) + too_few * zero

    def probability_given(self, examples: Examples, event: Any, *, noise: Int[Array, "faces"]) -> Float[Array, "2"]:
        """`probability` given the noises in the slices' sizes.

        Args:
          examples: as for a run.
          event: as for `probability`.
          noise: an integer >= 0 for each slice.

        Raises:
          TypeError, ValueError: examples, an event or noise that do not fit.
        """
        return _law_given(self, self.fit(examples), self.check_event(event), self._check_noise(noise))

    def _check_noise(self, noise: Any) -> Int[Array, "faces"]:
        given = noise if arguments.is_traced(noise) else arguments.array("noise", noise)
        if given.dtype.kind not in "iu":
            raise TypeError(f"noise must hold whole numbers, got {given.dtype}")
        if given.shape != (2 * self.axes,):
            raise ValueError(
                f"noise must have a number for each of the {2 * self.axes} slices, got shape {given.shape}"
            )
        for end in arguments.extremes(given):
            arguments.integer("noise", end, at_least=0, at_most=2**31 - 1)
        return jnp.asarray(given, jnp.int32)

    def check_event(self, event: Any) -> Faces:
        """(low, high) with a row for each face, half-open; the all-zero hypothesis is not in it."""
        if isinstance(event, Faces):
            return event
        rows = {getattr(leaf, "shape", ())[:1] for leaf in jax.tree.leaves(event)}
        if rows != {(2 * self.axes,)}:
            raise ValueError(f"event must have a row for each of the {2 * self.axes} faces, got {event!r}")
        return Faces(within=jax.vmap(self.solver.check_event)(event), zero=jnp.bool_(False))

    def exactly(self, output: Any) -> Faces:
        return self._exactly(arguments.instance("output", output, Rectangle))

    @jax.jit
    def _exactly(self, output: Rectangle) -> Faces:
        faces = jnp.stack([output.low, output.high], axis=1).reshape(2 * self.axes, -1)
        zero = concept.nothing(self.axes, self.limbs)
        same = jnp.all(output.low == zero.low) & jnp.all(output.high == zero.high)
        return Faces(within=jax.vmap(self.solver.exactly)(faces), zero=same)

    def anything(self) -> Faces:
        everything = self.solver.anything()
        return Faces(
            within=jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (2 * self.axes, *leaf.shape)), everything),
            zero=jnp.bool_(True),
        )

    def listed(self) -> int:
        return concept.listed(self.bits, self.axes)

    def output(self, index: UInt32[Array, ""]) -> Rectangle:
        return concept.numbered(index, self.bits, self.axes, self.limbs)

    def _accurate(self, data: Any, error: Any) -> Float[Array, "2"]:
        error = arguments.real("error", error, at_least=0.0, at_most=1.0)
        outputs, examples = jnp.arange(self.listed(), dtype=jnp.uint32), self.fit(data)
        return _sums_of_accurate(self, outputs, examples, self.pmf(examples), jnp.asarray(error, float))

    # Its promises ---------------------------------------------------------------------------------------------

    def guarantee(self) -> Guarantee:
        """What the accountant proves at the total delta, under ADD_OR_REMOVE_ONE, with the greater epsilon for solver and count alike."""
        if self.accountant == planning.BOUNDED and not composes_by_range(self.solver):
            return Guarantee.none(ADD_OR_REMOVE_ONE)  # the solver was replaced by one whose losses have no such range
        solver, count = self.solver.guarantee(), float(self.count_epsilon)
        count *= 2 if self.accountant == planning.BOUNDED else 1
        compute = Guarantee(max(solver.epsilon, count), solver.delta, ADD_OR_REMOVE_ONE)
        rate = float(self.slice_epsilon) if self.noisy else None
        spare = self.capacity - int(self.size)
        return planning.promised(self.accountant, self.axes, rate, compute, float(self.delta), spare)

    def sample_size(self, *, alpha: float, beta: float) -> int:
        """The least n with P[Bin(n, alpha) < K + 2 tau - 1] <= the part of beta that solvers, test and noises leave.

        Raises:
          ValueError: alpha or beta out of range, or nothing left of beta.
        """
        from scipy.special import betaincc

        alpha, beta = arguments.known_fraction("alpha", alpha), arguments.known_fraction("beta", beta)
        left = beta - float(self.spent_beta)
        if left <= 0.0:
            raise ValueError(f"beta must be > {float(self.spent_beta)}, for which the slices are cut, got {beta}")
        need = 2 * self.axes * int(self.size) + int(self.noise) + 2 * int(self.threshold) - 1

        return least_int(lambda n: float(betaincc(need, n - need + 1, alpha)) <= left, need)

    # Its data, and pictures of them ---------------------------------------------------------------------------

    def fit(self, data: Any) -> Examples:
        """The examples, checked and padded to a bucket that holds a slice."""
        given: dict[str, Any] = {"axes": self.axes, "limbs": self.limbs, "bits": self.bits}
        return fitted_examples(data, **given, positive_only=True, at_least=self.capacity)

    def sound(self) -> Bool[Array, ""]:
        count, rate = (jnp.asarray(rate, float) for rate in (self.count_epsilon, self.slice_epsilon))
        return super().sound() & (count > 0) & (count < jnp.inf) & (rate > 0)

    def slices(self, key: Array, examples: Examples) -> Int[Array, "rows"]:
        """Which slice each row is in when run with this key, -1 for none: for pictures, not private."""
        examples = self.fit(examples)
        slices = cut(examples, self.sizes(jax.random.split(key, 3)[0], examples.rows))
        number = jnp.arange(2 * self.axes, dtype=jnp.int32)[:, None]
        return jnp.max(jnp.where(slices.taken.reshape(-1, examples.rows), number, -1), axis=0)

    # A fast way -----------------------------------------------------------------------------------------------

    def run(self, key: Array, data: Any) -> Any:
        return self._learn(key, data, self.few_faces)

    def few_faces(self, key: Array, slices: "Slices") -> Outcome:
        """`faces` with room for a quarter of the capacity only, as most of the capacity is for noises that hardly ever occur.

        This is exact, as padding changes no answer: if a slice is larger than that, all faces are found again with the whole capacity.
        """
        few = max((self.capacity + 1) // 4 - 1, 1)
        if not self.noisy:
            return self.faces(key, slices)
        words, impl = jax.random.key_data(key), jax.random.key_impl(key)

        def faces(width: int, words: Array, slices: Slices) -> Outcome:
            # The same coins for either width: only one answer counts.
            return self.faces(jax.random.wrap_key_data(words, impl=impl), slices, width)

        all_fit = jnp.all(slices.sizes <= few)
        return unless(all_fit, faces(few, words, slices), lambda *given: faces(self.capacity, *given), words, slices)


@jax.jit
def _law_given(learner: Rectangles, examples: Examples, event: Faces, noise: Array) -> Float[Array, "2"]:
    return learner.law_given(examples, event, noise)


@jax.jit
def _sums_of_accurate(
    learner: Rectangles, outputs: Array, examples: Examples, pmf: Array, error: Float[Array, ""]
) -> Float[Array, "2"]:
    """(the probability of the outputs of at most this error, that of all others, bottom among them)."""
    good = Accurate(error=error).allows(_errors(learner, outputs, examples), examples.n_valid)
    return jnp.stack([jnp.sum(jnp.where(good, pmf[:-1], 0.0)), jnp.sum(jnp.where(good, 0.0, pmf[:-1])) + pmf[-1]])


def _errors(learner: Rectangles, outputs: Array, examples: Examples) -> Int[Array, "outputs"]:
    """How many examples each output labels wrongly."""

    def error(index: Array) -> Array:
        wrong = examples.valid & (concept.label(learner.output(index), examples.x) != examples.y)
        return jnp.sum(wrong, dtype=jnp.int32)

    return jax.vmap(error)(outputs)


# -------------------------------------------------------------------------------------------------------- the slices


class Slices(NamedTuple):
    """How the examples are divided: an entry per axis, in `taken` and `sizes` one for its low slice and one for its high slice.

    Attributes:
      x: the coordinates.
      left: which rows remain before the axis is cut.
      taken: which of them are in the slice.
      sizes: how many rows are in the slice.
      remaining: how many rows are in no slice.
    """

    x: UInt32[Array, "axes rows limbs"]
    left: Bool[Array, "axes rows"]
    taken: Bool[Array, "axes 2 rows"]
    sizes: Int[Array, "axes 2"]
    remaining: Int[Array, ""]

    def projections(self, width: int) -> Points:
        """The slices' points in order, stacked: of a low slice the least `width`, of a high one the greatest."""

        def axis(x: Array, left: Array, taken: Array, sizes: Array) -> Points:
            seen = jnp.minimum(sizes, width)
            # If no slice is larger than that, the rows taken are the ones wanted.
            taken = unless(
                jnp.all(sizes <= width), taken, lambda *given: slicing.take_ends(*given)[0], left, seen, (x,)
            )
            each = [x[selection.places(mask, width)] for mask in taken]
            valid = jnp.arange(width, dtype=jnp.int32)[None] < seen[:, None]
            points = jnp.where(valid[..., None], jnp.stack(each), np.uint32(2**32 - 1))
            return Points(x=jnp.stack([wide.sort(half)[0] for half in points]), n_valid=seen, ordered=True)

        points = jax.vmap(axis)(self.x, self.left, self.taken, self.sizes)
        return jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[2:]), points)


def cut(examples: Examples, sizes: Int[Array, "faces"]) -> Slices:
    """Reorder-Slice-Compute's cuts, one axis after the other: both ends of what remains, ordered by the coordinate and by row."""

    def axis(left: Array, given: tuple[Array, Array]) -> tuple[Array, tuple[Array, Array, Array]]:
        x, wanted = given
        count = jnp.sum(left, dtype=jnp.int32)
        low = jnp.minimum(wanted[0], count)
        sizes = jnp.stack([low, jnp.minimum(wanted[1], count - low)])
        taken, rest = slicing.take_ends(left, sizes, (x,))
        return rest, (left, taken, sizes)

    x = jnp.moveaxis(examples.x, 1, 0)
    left, each = lax.scan(axis, examples.positive, (x, sizes.reshape(-1, 2)))
    return Slices(x, *each, jnp.sum(left, dtype=jnp.int32))


# -------------------------------------------------------------------------------------------------------- factories


def rectangles(
    *,
    axes: int,
    bits: int,
    epsilon: float,
    delta: float,
    beta: float,
    accountant: str = "best",
    solver: Solver | str = "exponential",
) -> Rectangles:
    """The learner of the package, with the slices cut for this beta.

    Formal guarantees: (epsilon, delta) under ADD_OR_REMOVE_ONE for any examples, realizable or not, as proved in the package, if the solver
    keeps its own promise. The number of examples is private. Not promised: protection from floating-point side channels; a cryptographic
    generator.

    Args:
      axes: D >= 1.
      bits: each coordinate is in {0, ..., 2^bits - 1}, 1 to 4096.
      epsilon: total, > 0, at most 350, beyond which the accountants prove nothing.
      delta: total, in (0, 1); 0 is allowed for "basic" with a pure solver.
      beta: failure is at most beta on `sample_size(alpha, beta)` examples.
      accountant: one of `ACCOUNTANTS`, or "best": the one that needs the fewest positive examples.
      solver: one of `SOLVERS`, by the names that `interior_point` gives them, or any factory (epsilon, delta, beta) -> `InteriorPoint` over
        the same bits with a guarantee of at most (epsilon, delta) under ADD_OR_REMOVE_ONE; beta is its permitted failure probability.

    Raises:
      TypeError, ValueError: an argument out of range.
    """
    names = ACCOUNTANTS if accountant == "best" else (accountant,)
    if accountant == "best" and arguments.known("delta", arguments.delta(delta, positive=False)) == 0.0:
        names = ("basic",)
    plans, refused = [], []
    given: dict[str, Any] = {"axes": axes, "bits": bits, "epsilon": epsilon, "delta": delta, "beta": beta}
    for name in names:
        try:
            plans.append(planning.plan(**given, accountant=name, solver=solver))
        except ValueError as reason:  # not all of them have a plan for every solver
            refused.append(reason)
    if not plans:
        raise refused[0]
    return from_plan(min(plans, key=lambda each: each.needed), solver=solver)


def from_plan(plan: Plan, *, solver: Solver | str = "exponential") -> Rectangles:
    """The learner of a plan, with the solver that it was made for.

    Raises:
      ValueError: the solver promises less privacy than the plan relies on.
    """
    arguments.instance("plan", plan, Plan)
    built = planning.factory(solver, plan.bits)(plan.compute.epsilon, plan.compute.delta, plan.solver_beta)
    promised = built.guarantee()
    if promised.relation != ADD_OR_REMOVE_ONE or not promised.covers(plan.compute.epsilon, plan.compute.delta):
        raise ValueError(f"solver must promise {plan.compute}, got {promised}")
    if plan.accountant == planning.BOUNDED and not composes_by_range(built):
        raise ValueError(
            f"solver must be an exponential mechanism for the accountant {plan.accountant!r}, got {built!r}"
        )
    rate = math.inf if plan.slice_epsilon is None else plan.slice_epsilon
    numbers: dict[str, Any] = {
        "bits": np.int32(plan.bits),
        "slice_epsilon": np.float64(rate),
        "count_epsilon": np.float64(plan.count_epsilon),
        "size": np.int32(plan.size),
        "noise": np.int32(plan.noise),
        "threshold": np.int32(plan.threshold),
        "delta": np.float64(plan.guarantee.delta),
        "spent_beta": np.float64(plan.spent_beta),
    }
    return Rectangles(
        solver=built,
        **numbers,
        axes=plan.axes,
        limbs=wide.limbs_for(plan.bits),
        capacity=plan.capacity,
        noisy=plan.slice_epsilon is not None,
        accountant=plan.accountant,
    )
