"""The fingerprinting attack on private k-learners (MULTI Theorems 43 and 47): codebook -> database -> learner -> word -> trace.

A learner that is accurate on the database of all n users makes a feasible word (`forms`), which accuses somebody; on the database
without user i the same word accuses her with probability at most that of an innocent. An (epsilon, delta)-private learner
(REPLACE_ONE) has

    P[user i accused | all users] <= exp(epsilon) P[user i accused | all but i] + delta,

so the accusations bound epsilon from below. Two bounds, not to be mixed up:

- `Evidence.epsilon` is about **this learner**: a lower confidence bound from runs of it with and without a victim. What is
  measured without her is replaced by the code's proved soundness where that is smaller.
- `Evidence.implied` is about **every learner** that is as accurate on all users' databases: for some user P[accused] >= (1 -
  completeness - inaccuracy) / n, so epsilon >= ln(((1 - completeness - inaccuracy)/n - delta) / innocent). In Theorem 43 both
  errors of the code are xi.
"""

import dataclasses
import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from dpjax.core import arguments, show
from dpjax.core.pytree import frozen, static
from dpjax.data.outcome import Outcome, Status
from dpjax.fingerprinting import pirates
from dpjax.fingerprinting.boneh_shaw import BonehShaw
from dpjax.fingerprinting.codes import Code
from dpjax.fingerprinting.forms import Form
from dpjax.trials import engine, estimates

_ROUNDING = 2.0**-51  # relative: more than what a difference of probabilities loses


@frozen
class Callables:
    """A k-learner given as two functions, recognised by identity."""

    learner: Callable[..., Any] = static()
    predict: Callable[..., Any] = static()

    def __call__(self, key: Array, sample: Any) -> Any:
        return self.learner(key, sample)


@frozen
class Attack:
    """An attack to run, built by `against`; `dpjax.trials` runs it with `trial`.

    Attributes:
      learner: a k-learner with `predict`.
      code: a fingerprinting code of length k.
      form: how the code becomes a database.
      coalition: whose rows the learner sees.
    """

    learner: Any
    code: Code
    form: Form
    coalition: Bool[Array, "users"]

    def without(self, user: int) -> "Attack":
        """The same attack with a nonce row for one user: a neighbouring database for every codebook.

        Raises:
          TypeError, ValueError: not the number of a user.
        """
        if not arguments.is_traced(user):
            user = arguments.integer("user", arguments.plain(user), at_least=0, at_most=self.code.users - 1)
        return dataclasses.replace(self, coalition=self.coalition & (jnp.arange(self.code.users) != user))


@frozen
class Report:
    """One attack.

    Attributes:
      word: the pirate word.
      feasible: whether it meets the marking assumption for the coalition.
      accused: which users are accused.
      user: the traced user, the one accused with the greatest margin; -1 for ⊥.
      falsely_accused: whether somebody outside the coalition is accused.
      excess: the learner's accuracy, max_j of the empirical error of h_j minus that of the best concept.
      accurate: whether something was released with excess <= the form's alpha; then the word is feasible if the coalition is everybody.
      status: the learner's status. If nothing is released, the word is 0...0 and nobody is accused.
    """

    word: Bool[Array, "k"]
    feasible: Bool[Array, ""]
    accused: Bool[Array, "users"]
    user: Int[Array, ""]
    falsely_accused: Bool[Array, ""]
    excess: Float[Array, ""]
    accurate: Bool[Array, ""]
    status: Int[Array, ""]


def against(
    learner: Any, *, code: Code, form: Form, predict: Callable[..., Any] | None = None, coalition: Any = None
) -> Attack:
    """An attack on a learner; see `attack`.

    Raises:
      TypeError: the learner is not callable, or has no `predict` and none is given. ValueError: form and code have different
        users; the form needs the Boneh-Shaw code; a coalition that is not a mask over the users.
    """
    arguments.instance("code", code, Code)
    arguments.instance("form", form, Form)
    if form.users != code.users:
        raise ValueError(f"form must be for the code's {code.users} users, got {form.users}")
    if form.thresholds_only and not isinstance(code, BonehShaw):
        raise ValueError(
            f"code must be compatible with thresholds (Boneh-Shaw) for this form, got {type(code).__name__}"
        )
    mask = np.ones(code.users, bool) if coalition is None else coalition
    if np.shape(mask) != (code.users,) or jnp.asarray(mask).dtype != bool:
        raise ValueError(f"coalition must be booleans of shape ({code.users},), got {coalition!r}")
    return Attack(learner=_learner(learner, predict), code=code, form=form, coalition=jnp.asarray(mask))


def attack(
    key: Array,
    learner: Any,
    *,
    code: Code,
    form: Form,
    predict: Callable[..., Any] | None = None,
    coalition: Any = None,
) -> Report:
    """One attack on any k-learner.

    Args:
      key: PRNG key: codebook and learner draw from it.
      learner: learner(key, MultiSample) -> Outcome (or just the hypotheses). It need not be a JAX function.
      code: `boneh_shaw(...)` or `tardos(...)`; the learner meets k = code.length concepts.
      form: `forms.thresholds`, `forms.agnostic` or `forms.parities` of as many users.
      predict: predict(hypotheses, x) -> booleans (rows, k), or zeros and ones; default learner.predict. Under tracing anything else shows
        as the status OUTSIDE_DOMAIN.
      coalition: mask of the users whose rows the learner sees, default all.

    Returns:
      A `Report`.

    Raises:
      TypeError, ValueError: as for `against`; or the answers have the wrong shape, or are not zeros and ones.

    >>> from dpjax.fingerprinting import boneh_shaw, forms
    >>> def most(key, sample):
    ...     return 2 * jnp.sum(sample.labels.astype(int), axis=0) > sample.rows
    >>> def says(hypotheses, x):
    ...     return jnp.broadcast_to(hypotheses, (x.shape[0], hypotheses.shape[0]))
    >>> code = boneh_shaw(5, xi=0.1)
    >>> report = attack(jax.random.key(0), most, code=code, form=forms.agnostic(5), predict=says)
    >>> bool(report.feasible), bool(report.accurate), int(report.user), bool(report.falsely_accused)
    (True, True, 2, False)
    """
    return run(arguments.key(key), against(learner, code=code, form=form, predict=predict, coalition=coalition))


def run(key: Array, attack: Attack) -> Report:
    """One attack, as built by `against`; pure, and traceable if the learner is."""
    key_book, key_coins = jax.random.split(key)
    book = attack.code.generate(key_book)
    sample = attack.form.database(book.rows, attack.coalition, attack.code.length)
    outcome = attack.learner(key_coins, sample)
    if not isinstance(outcome, Outcome):
        outcome = Outcome(hypothesis=outcome, status=jnp.int32(Status.OK), info=None)
    answers = jnp.asarray(attack.learner.predict(outcome.hypothesis, sample.x))
    if not (answers.dtype == bool or jnp.issubdtype(answers.dtype, jnp.integer)):
        raise TypeError(f"predict must return booleans, got {answers.dtype}")
    if answers.shape != (sample.rows, sample.k):
        raise ValueError(f"predict must return shape ({sample.rows}, {sample.k}), got {answers.shape}")
    status = jnp.asarray(outcome.status)
    if answers.dtype != bool:
        labels = (answers == 0) | (answers == 1)
        if not arguments.is_traced(labels) and not bool(jnp.all(labels)):
            raise ValueError(f"predict must return zeros and ones, got {int(answers[~labels][0])}")
        status = jnp.where(jnp.all(labels), status, Status.OUTSIDE_DOMAIN)
    return _judge(attack.form, book, attack.coalition, sample, answers.astype(bool), status)


@jax.jit
def _judge(
    form: Form, book: Any, coalition: Bool[Array, "users"], sample: Any, answers: Array, status: Array
) -> Report:
    """The word, the trace and the accuracy."""
    released = status == Status.OK
    labels = sample.labels
    word = form.word(answers) & released
    verdict = book.trace(word)
    accused = verdict.accused & released
    excess = jnp.max(form.excess(answers, labels))
    return Report(
        word=word,
        feasible=pirates.feasible(labels[: form.users], word, coalition),
        accused=accused,
        user=jnp.where(released, verdict.user, -1),
        falsely_accused=jnp.any(accused & ~coalition),
        excess=excess,
        accurate=released & (excess <= jnp.asarray(form.alpha, float)),
        status=status,
    )


def trial(key: Array, attack: Attack) -> dict[str, Array]:
    """One attack as counters, for `dpjax.trials`: who was accused, whether anybody was, and what went wrong."""
    report = run(key, attack)
    return {
        "accused": report.accused,
        "traced": jnp.any(report.accused & attack.coalition),
        "falsely_accused": report.falsely_accused,
        "inaccurate": ~report.accurate,
        "infeasible": ~report.feasible,
        "bottom": report.status == Status.BOTTOM,
    }


# ------------------------------------------------------------------------------------------------------- epsilon


@dataclasses.dataclass(frozen=True)
class Evidence:
    """What runs of the attack prove about epsilon; each of the three bounds errs with probability at most 1 - level.

    Attributes:
      epsilon: this learner's epsilon, at the given delta, is at least this (0 when nothing is shown).
      measured: the same from the runs alone, without the code's soundness theorem.
      implied: the epsilon of every learner whose probability of inaccuracy is no greater than this one's (at its upper bound).
        0 for a coalition that is not everybody: accuracy then says nothing.
      victim: the user removed.
      accused_with, accused_without: estimates of P[victim accused] on the databases with and without her.
      traced, inaccurate: estimates of P[somebody is accused], P[not accurate], on all users' database.
      falsely_accused: estimate of P[somebody innocent is accused] on the database without the victim.
      delta, level: as given.
    """

    epsilon: float
    measured: float
    implied: float
    victim: int
    accused_with: estimates.Estimate
    accused_without: estimates.Estimate
    traced: estimates.Estimate
    inaccurate: estimates.Estimate
    falsely_accused: estimates.Estimate
    delta: float
    level: float

    def __str__(self) -> str:
        shares = (f"{each.value:.1%} of {each.count} runs" for each in (self.accused_with, self.accused_without))
        seen = "user {} was accused in {} with her rows and in {} without".format(self.victim, *shares)
        return (
            f"At delta = {self.delta:g} epsilon is at least {show.at_most(self.epsilon)}: {seen}, where the code allows its xi. "
            f"By the runs alone it is at least {show.at_most(self.measured)}. That of every learner as accurate as this one is at least "
            f"{show.at_most(self.implied)}. Each bound is wrong with probability at most {1 - self.level:.2g}."
        )


def audit(
    attack: Attack,
    *,
    root: Array,
    trials: int,
    pilot: int = 100,
    victim: int | None = None,
    delta: Any = 0.0,
    level: float = 0.95,
) -> Evidence:
    """Lower confidence bounds on epsilon, by Clopper and Pearson, from attacks with and without a victim.

    Args:
      attack: as built by `against`; its learner must be a JAX function. The whole coalition is in the database; the victim is a member.
      root: any key; cells 0, 1 and 2 of it are used (see `dpjax.trials.engine`).
      trials: runs on each of the two databases.
      pilot: separate runs that choose the victim, the user accused most often.
      victim: a user chosen beforehand; no pilot then.
      delta: the learner's delta, in [0, 1).
      level: confidence of each bound.

    Returns:
      `Evidence`.

    Raises:
      TypeError, ValueError: an argument is out of range.

    >>> from dpjax.fingerprinting import boneh_shaw, forms
    >>> def most(key, sample):
    ...     return 2 * jnp.sum(sample.labels.astype(int), axis=0) > sample.rows
    >>> def says(hypotheses, x):
    ...     return jnp.broadcast_to(hypotheses, (x.shape[0], hypotheses.shape[0]))
    >>> setup = against(most, code=boneh_shaw(3, xi=1e-3), form=forms.agnostic(3), predict=says)
    >>> evidence = audit(setup, root=engine.root_key(0), trials=100, pilot=10)
    >>> evidence.victim, round(evidence.epsilon, 2), round(evidence.measured, 2), round(evidence.implied, 2)
    (1, 8.66, 3.28, 7.56)
    """
    arguments.instance("attack", attack, Attack)
    root = arguments.key(root, "root")
    delta = arguments.known("delta", arguments.delta(delta, positive=False))
    trials, level = arguments.integer("trials", trials, at_least=1), arguments.known_fraction("level", level)
    code = attack.code
    if not bool(jnp.any(attack.coalition)):
        raise ValueError("attack.coalition must have a member, who can be the victim: it is empty")
    if victim is None:
        pilots = engine.count(trial, attack, root=root, cell=0, trials=arguments.integer("pilot", pilot, at_least=1))
        victim = int(np.argmax(np.where(attack.coalition, pilots["accused"], -1)))
    victim = arguments.integer("victim", victim, at_least=0, at_most=code.users - 1)
    if not attack.coalition[victim]:
        raise ValueError(f"victim must be a member of the coalition, got {victim}")
    there = engine.count(trial, attack, root=root, cell=1, trials=trials)
    gone = engine.count(trial, attack.without(victim), root=root, cell=2, trials=trials)

    def rate(events: Any) -> estimates.Estimate:
        return estimates.clopper_pearson(int(events), trials, level=level)

    with_her, without_her = rate(there["accused"][victim]), rate(gone["accused"][victim])
    inaccurate = rate(there["inaccurate"])
    innocent = code.innocent() if code.every_word else 1.0
    implied = implied_epsilon(
        users=code.users,
        completeness=code.completeness(),
        innocent=innocent,
        inaccuracy=inaccurate.high,
        delta=delta,
    )
    return Evidence(
        epsilon=_ratio(with_her.low - delta, min(innocent, without_her.high)),
        measured=_ratio(with_her.low - delta, without_her.high),
        implied=implied if bool(jnp.all(attack.coalition)) else 0.0,
        victim=victim,
        accused_with=with_her,
        accused_without=without_her,
        traced=rate(there["traced"]),
        inaccurate=inaccurate,
        falsely_accused=rate(gone["falsely_accused"]),
        delta=delta,
        level=float(level),
    )


@arguments.in_plain_numbers
def implied_epsilon(
    *, users: int, completeness: float, innocent: float, inaccuracy: float, delta: float = 0.0
) -> float:
    """Theorems 43 and 47, solved for epsilon: ln(((1 - completeness - inaccuracy)/n - delta) / innocent), at least 0.

    Every learner that is inaccurate with probability at most `inaccuracy` on all users' databases has at least this epsilon.

    >>> round(implied_epsilon(users=10, completeness=1e-3, innocent=1e-3, inaccuracy=0.1, delta=1e-2), 3)
    4.381
    """
    users = arguments.count("users", users)
    for name, chance in {"completeness": completeness, "innocent": innocent, "inaccuracy": inaccuracy}.items():
        arguments.number(name, chance, at_least=0.0, at_most=1.0)
    delta = arguments.number("delta", delta, at_least=0.0, below=1.0)
    # Rounded down: 1 - 0.7 is not 0.3, and whoever publishes each row with probability delta meets the inequality exactly.
    return _ratio((1 - completeness - inaccuracy - _ROUNDING) / users - delta * (1 + _ROUNDING), innocent)


def _ratio(p: float, q: float) -> float:
    """ln(p/q), and 0 when that is negative or p is."""
    if p <= q:
        return 0.0
    return math.log(p / q) if q > 0 else math.inf


def _learner(learner: Any, predict: Callable[..., Any] | None) -> Any:
    """A pytree with `predict`: the learner itself if it is one."""
    if not callable(learner):
        raise TypeError(f"learner must be callable, got {learner!r}")
    if predict is not None:
        arguments.function("predict", predict)
    if predict is None and not callable(getattr(learner, "predict", None)):
        raise TypeError(f"predict must be given for a learner without a method of that name, got {learner!r}")
    if predict is None and not jax.tree_util.all_leaves([learner]):
        return learner
    return Callables(learner=learner, predict=learner.predict if predict is None else predict)
