"""Computes the accountants' curves, and measures the audit and the holder's calls."""

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from dpjax.accounting import ADD_OR_REMOVE_ONE, Guarantee, slicing
from dpjax.core.pytree import frozen, static
from dpjax.mechanisms import geometric
from dpjax.optimizers.slicing import Slicing
from dpjax.trials.progress import Progress
from dpjax.verify import audit_samples
from dpjax.verify.slicing_proof import call_tails, holder_calls
from experiments.records import Row, exact
from experiments.runner import Context
from experiments.settings import Settings

SHOWN = 14  # number of w in the picture of calls to the holder, from 0


def measure(settings: Settings, context: Context) -> list[Row]:
    """All rows: panels "total epsilon" and "calls"."""
    return [*_accountants(settings), *_audits(settings, context), *_calls(settings, context)]


def _accountants(settings: Settings) -> list[Row]:
    """Total epsilon of each accountant at the given delta, against the number of slices; infinite ones are left out."""
    rows = []
    compute = Guarantee(settings["compute_epsilon"], 0.0, ADD_OR_REMOVE_ONE)
    for slices in settings["slices"]:
        run = slicing.Run(settings["slice_epsilon"], compute, slices)
        for method in slicing.ACCOUNTANTS:
            epsilon = run.guarantee(delta=settings["delta"], accountant=method).epsilon
            if math.isfinite(epsilon):
                rows.append(exact("total epsilon", method, slices, epsilon))
    return rows


# ------------------------------------------------------------------------------------------------------- the audit


@frozen
class Domino:
    """Points 1, 2, 3, ... and, on D', one point 0 before them; every slice is the smallest point and as many more as the noise says.

    Its compute is a noisy sum of the signs (-1)^x, of sensitivity 1: a slice that begins one point later has the opposite signs.
    """

    extra: Any
    slice_epsilon: Any
    compute_epsilon: Any
    slices: int = static()

    @property
    def rows(self) -> int:
        """A number of points that suffices, except with probability about 1e-9, if slice_epsilon is 1/4 or more."""
        return self.slices * 5 + 40 + 24 * math.isqrt(self.slices)


def evidence(key: Array, domino: Domino) -> Int[Array, ""]:
    """One run's log-likelihood ratio for D' against D, in hundredths, which is all the evidence that a run gives."""
    signs = 1 - 2 * (jnp.arange(domino.rows, dtype=jnp.int32) % 2)
    present = (jnp.arange(domino.rows, dtype=jnp.int32) > 0) | domino.extra
    run = Slicing.create(present, slice_epsilon=domino.slice_epsilon)
    answers = []
    for key_slice in jax.random.split(key, domino.slices):
        key_cut, key_sum = jax.random.split(key_slice)
        run = run.cut(key_cut, 1)
        total = jnp.sum(jnp.where(run.slices[-1], signs, 0), dtype=jnp.int32)
        answers.append(geometric.geometric(key_sum, total, epsilon=domino.compute_epsilon))
    ratio = _log_likelihood(jnp.stack(answers), jnp.bool_(True), domino) - _log_likelihood(
        jnp.stack(answers), jnp.bool_(False), domino
    )
    return jnp.round(100 * ratio).astype(jnp.int32)


def _log_likelihood(answers: Int[Array, "slices"], extra: Array, domino: Domino) -> Float[Array, ""]:
    """The log-likelihood of a run's answers, by the forward recursion over the sign of the first point of the next slice."""
    stay = jnp.exp(-domino.slice_epsilon) / (1 + jnp.exp(-domino.slice_epsilon))  # P[even slice], that is, odd noise
    signs = jnp.array([1, -1], jnp.int32)

    def step(state: Array, answer: Array) -> tuple[Array, Array]:
        even = jnp.exp(geometric.log_pmf(answer, jnp.int32(0), epsilon=domino.compute_epsilon))
        odd = jnp.exp(geometric.log_pmf(answer, signs, epsilon=domino.compute_epsilon))
        after = state * stay * even + (state * (1 - stay) * odd)[::-1]
        return after / jnp.sum(after), jnp.log(jnp.sum(after))

    first = jnp.where(extra, jnp.array([1.0, 0.0]), jnp.array([0.0, 1.0]))
    return jnp.sum(jax.lax.scan(step, first, answers)[1])


def _audits(settings: Settings, context: Context) -> list[Row]:
    """Lower bounds on the true epsilon, each wrong with probability at most 2e-5."""
    rows = []
    with Progress(len(settings["audited"]), "audits", unit="audits") as progress:
        for number, slices in enumerate(settings["audited"]):
            drawn = []
            for extra in (False, True):
                domino = Domino(
                    extra=np.bool_(extra),
                    slice_epsilon=np.float64(settings["slice_epsilon"]),
                    compute_epsilon=np.float64(settings["compute_epsilon"]),
                    slices=slices,
                )
                drawn.append(
                    context.evaluate(
                        evidence,
                        domino,
                        key={"panel": "audit", "slices": slices, "extra": extra},
                        cell=2 * number + extra,
                        draws=settings["trials"],
                        chunk=50_000,
                        batch=256,
                    )
                )
            found = audit_samples(*drawn, delta=settings["delta"])
            rows.append(exact("total epsilon", "audited lower bound", slices, found.epsilon))
            progress.done(1)
    return rows


# ------------------------------------------------------------------------------------------------------- the holder


def _calls(settings: Settings, context: Context) -> list[Row]:
    """P[more than w calls]: drawn, exact for both bits, and as printed."""
    epsilon, rounds = settings["slice_epsilon"], max(settings["slices"])
    tails = call_tails(epsilon, rounds)
    rows = [exact("calls", "printed bound, $(5/6)^w$", w, float(tails.printed[w])) for w in range(SHOWN)]
    for bit, law in enumerate((tails.smaller, tails.larger)):
        rows += [exact("calls", f"exact, b = {bit}", w, float(law[w])) for w in range(SHOWN)]
        seed = jax.random.bits(jax.random.fold_in(context.root, 1000 + bit), (4,), jnp.uint32)
        generator = np.random.default_rng(np.asarray(seed).tolist())
        calls = holder_calls(generator, settings["calls"], epsilon=epsilon, bit=bit, rounds=rounds)
        rows += [exact("calls", f"drawn, b = {bit}", w, float(np.mean(calls > w))) for w in range(SHOWN)]
    return rows
