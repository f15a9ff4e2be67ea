"""Measures the numbers of the two pictures."""

from collections.abc import Iterator

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from dpjax import bounds
from dpjax.concepts import parities as concept
from dpjax.core.pytree import frozen, static
from dpjax.data.sample import bucket
from dpjax.learners import parities as single
from dpjax.multi import direct_sum, pac, parities
from dpjax.trials import estimates, search
from dpjax.trials.progress import Progress
from experiments import least_n
from experiments.records import Row, estimated, exact
from experiments.runner import Context
from experiments.settings import Settings

MAXIMUM = 2**24  # examples
ACCOUNTANTS = {"direct sum, pure": "basic", "direct sum, advanced": "advanced", "direct sum, optimal": "optimal"}


def measure(settings: Settings, context: Context) -> list[Row]:
    """All rows: panels "least n", "bound"; "by d", "trials", "computed", "settings"."""
    rows = [exact("settings", name, 0, settings[name]) for name in ("bits", "epsilon", "delta", "beta")]
    rows.append(exact("settings", "trial bits", 0, settings["trials"]["bits"]))
    rows += [*_closed_forms(settings), *_direct_sums(settings, context), *lower_bounds(settings)]
    return [*rows, *_by_dimension(settings), *_trials(settings, context)]


def learner(bits: int, k: int, settings: Settings) -> parities.ParityLearner:
    """ParityLearner at the experiment's privacy."""
    epsilon, delta, beta = (settings[name] for name in ("epsilon", "delta", "beta"))
    return parities.parity_learner(bits=bits, k=k, epsilon=epsilon, delta=delta, beta=beta)


# ------------------------------------------------------------------------------------------------------ (a) n* by k


def _closed_forms(settings: Settings) -> Iterator[Row]:
    """ParityLearner and elimination: the failure over data and coins is known exactly."""
    for k in settings["concepts"]["closed form"]:
        private = learner(settings["bits"], k, settings)
        yield exact("least n", "ParityLearner", k, private.sample_size(alpha=0.0, beta=settings["beta"]))
        public = parities.elimination(bits=settings["bits"], k=k)
        yield exact("least n", "elimination", k, public.sample_size(alpha=0.0, beta=settings["beta"]))


@frozen
class Draw:
    """One draw of points, on which k concepts are learned by a single-concept learner each.

    Attributes:
      learner: the learner of one parity. n: number of examples. k: number of concepts, a float. capacity: rows of the sample.
    """

    learner: single.ParityExponential
    n: Int[Array, ""] | int
    k: Float[Array, ""] | float
    capacity: int = static()


def any_fails(key: Array, draw: Draw) -> Float[Array, ""]:
    """P[some of k parities is missed | points] = 1 - (1 - f)^k exactly: given the points, f is the same for every target.

    With v = target + u, the score of v is the number of points with <u, x> = 0: the target drops out. Coins are independent.
    """
    law = concept.uniform_single(bits=draw.learner.bits, target=0)
    sample = law.sample(key, draw.capacity, draw.n)
    missed = draw.learner.probability(sample, law.within(0.0))[1]
    return -jnp.expm1(jnp.asarray(draw.k, float) * jnp.log1p(-jnp.minimum(missed, 1.0)))


def _each(name: str, k: int, settings: Settings) -> single.ParityExponential:
    """The learner of one of the k concepts."""
    summed = direct_sum.direct_sum(
        lambda each: single.exponential(bits=settings["bits"], epsilon=each.epsilon),
        k=k,
        epsilon=settings["epsilon"],
        delta=0.0 if ACCOUNTANTS[name] == "basic" else settings["delta"],
        accountant=ACCOUNTANTS[name],
        delta_share=None if ACCOUNTANTS[name] == "basic" else 0.0,
    )
    return summed.learner


def _direct_sums(settings: Settings, context: Context) -> list[Row]:
    """n* of the direct sums, laws averaged over draws of points."""

    def find(name: str, k: int, cell: int, _: int) -> search.LeastN:
        each = _each(name, k, settings)
        return least_n.by_law(
            any_fails,
            lambda n, capacity: Draw(learner=each, n=n, k=float(k), capacity=capacity),
            key={"panel": "least n", "learner": name, "k": k},
            cell=cell,
            draws=settings["draws"],
            start=each.sample_size(alpha=0.0, beta=settings["beta"] / k),
            maximum=MAXIMUM,
            settings=settings,
            context=context,
        )

    return least_n.curves({name: settings["concepts"]["direct sum"] for name in ACCOUNTANTS}, find)


def lower_bounds(settings: Settings) -> list[Row]:
    """Examples that every learner needs on uniform points: pure (Theorem 55), and approximate but agnostic (Proposition 51).

    The latter says nothing below k = 30 4^d ln(2^d/xi); Corollary 50, for points of any distribution, is not about this task.
    """
    bits, epsilon, xi = settings["bits"], settings["epsilon"], settings["xi"]
    formulas = {
        "kd/ε (Thm 55)": lambda k: bounds.pure_parities(k, bits, epsilon),
        "agnostic (Prop. 51)": lambda k: bounds.fingerprinting_parities_pac(k, xi, bits, epsilon),
    }
    return least_n.lower_bounds(settings["concepts"]["bound"], formulas)


# ---------------------------------------------------------------------------------- (b) n* by d, and trials at n* by k


def _by_dimension(settings: Settings) -> Iterator[Row]:
    """Exact n* of ParityLearner and elimination, and the theorem's formula."""
    beta = settings["beta"]
    at = {name: settings[name] for name in ("epsilon", "delta", "beta")}
    for bits in settings["dimensions"]:
        yield exact("by d", "theorem", bits, bounds.parity_learner_theorem(bits=bits, **at))
        yield exact("by d", "ParityLearner", bits, learner(bits, 1, settings).sample_size(alpha=0.0, beta=beta))
        yield exact("by d", "elimination", bits, parities.elimination(bits=bits, k=1).sample_size(alpha=0.0, beta=beta))


def _trials(settings: Settings, context: Context) -> list[Row]:
    """How often some of k parities is missed at n*, counted, beside the exact probability."""
    rows = []
    bits, count = settings["trials"]["bits"], settings["trials"]["count"]
    with Progress(count * len(settings["trials"]["concepts"]), "trials", unit="trials") as progress:
        for index, k in enumerate(settings["trials"]["concepts"]):
            chosen = learner(bits, k, settings)
            n = chosen.sample_size(alpha=0.0, beta=settings["beta"])
            targets = concept.random_targets(jax.random.fold_in(context.root, 2**31 - index), bits=bits, k=k)
            experiment = pac.Experiment(
                learner=chosen,
                distribution=concept.uniform(bits=bits, targets=targets),
                n=n,
                alpha=0.0,
                capacity=bucket(n),
            )
            counted = context.count(
                pac.trial,
                experiment,
                key={"panel": "trials", "k": k},
                cell=1000 + index,
                trials=count,
                chunk=min(count, 20),
                batch=4,
                progress=progress,
            )
            seen = estimates.clopper_pearson(counted["failed"], count, level=settings["level"])
            rows.append(estimated("trials", "ParityLearner", k, seen))
            rows.append(exact("computed", "ParityLearner", k, chosen.uniform_failure(n)))
    return rows
