"""The privacy proof of Reorder-Slice-Compute (CLNSS §2), executable: every step checked in exact rationals on small cases.

The proof compares the algorithm with a simulator. The simulator knows two neighbours D and D + x but not which is true,
and asks a data holder, who knows this one bit b, only in rounds where their slices differ. What the holder says is private
(`lemma_2_4`), it is asked rarely (`holder_calls`), and what the simulator publishes has the law of the algorithm's own
output (`simulated_law` = `true_law`: Lemma 2.5). So the output leaks no more than the holder's replies.

Algorithms 1, 2 and 3 are written here once, in plain Python. Their coins come from `choose`, a function from a law to one
of its values: `exact_law` tries all of them, `sample` throws them. Slice noise is cut off where everything left is taken
anyway, which makes laws finite. `ratio` is r = exp(-epsilon) of the noise, rational; 0 means no noise.

Where this differs from the printed text:
- Alg. 2, line 14: p is a position in E_i, not E_(i-1). Line 25: the new x is element q^ (not q) of E_i(D_(i-1)).
- When q^ > |E_i(D_(i-1))|, that element does not exist: both datasets are used up, hence synchronised.
- Delayed phase: the holder answers for the rounds i IN J, in which it was called.
- E must not drop more of D + x than of D: "equal or adjacent lists" in Alg. 2 means that E(D + x) is E(D) or has one
  entry more. Otherwise lines 13-14 are void and the roles of D and D + x are exchanged (`difference` refuses this); calls
  whose roles change in mid-run can leak more than the accountant's W, by a tenth or so.
- Slices are multisets: lists may disagree before position m_i, where no slice ends (TreeLog as completed here needs this), and p is
  the first slice size k >= m_i for which the slices differ as multisets; so max(p, m_i) = p.
"""

import functools
import itertools
import math
from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from fractions import Fraction
from typing import Any, NamedTuple, TypeVar

import numpy as np

from dpjax.accounting import synchronization
from dpjax.core import arguments
from dpjax.verify.exact import LARGEST_EPSILON

T = TypeVar("T", bound=Hashable)
Multiset = tuple[Any, ...]  # sorted
Law = Sequence[tuple[Any, Fraction]]  # values with their probabilities
Choose = Callable[[Law], Any]
Mapping = Callable[[Fraction, int, int], Law]
Mechanism = Callable[[Multiset], Law]


class Step(NamedTuple):
    """A slicing round.

    Attributes:
      size: m_i. order: E_i, a function from a multiset (a sorted tuple) to a tuple.
      mechanism: A_i as the law of its answer given the slice, a multiset; None to compute nothing now.
    """

    size: int
    order: Callable[[Multiset], Multiset]
    mechanism: Mechanism | None


class Delayed(NamedTuple):
    """A computation on slice number `which`, at any time after it was cut."""

    which: int
    mechanism: Mechanism


Program = Callable[[tuple[Any, ...]], Step | Delayed | None]
"""The analyst: from everything published so far to the next request; None ends the run."""


class Run(NamedTuple):
    """How a run ended.

    Attributes:
      published: every answer, None for rounds without a mechanism.
      remaining: the true dataset's records in no slice.
      replies: what the data holder said (empty for Algorithm 1): (q^, beta, answer) for a slice, ("all", answer) where
        everything was taken, the answer alone in a delayed computation.
      calls: how often it was asked for a slice.
    """

    published: tuple[Any, ...]
    remaining: Multiset
    replies: tuple[Any, ...] = ()
    calls: int = 0


# ------------------------------------------------------------------------------------------------------------ coins


def exact_law(run: Callable[[Choose], T]) -> dict[T, Fraction]:
    """The law of what `run(choose)` returns: it is run once for every way its coins can fall.

    Raises:
      ValueError: the probabilities of all ways do not sum to one, as those of a mechanism's answers or of a mapping's reports must.

    >>> coin = [(0, Fraction(2, 3)), (1, Fraction(1, 3))]
    >>> exact_law(lambda choose: choose(coin) + choose(coin))[1]
    Fraction(4, 9)
    """
    law: dict[T, Fraction] = {}
    script: list[int] | None = []
    while script is not None:
        coins = _Coins(script)
        outcome = run(coins)
        law[outcome] = law.get(outcome, Fraction(0)) + math.prod(coins.weights, start=Fraction(1))
        script = coins.next_script()
    if sum(law.values()) != 1:
        raise ValueError(f"run must choose from laws whose probabilities sum to one, got {sum(law.values())} in all")
    return law


class _Coins:
    """The coins of one run: the first fall as in `script`, all others on their first value."""

    def __init__(self, script: list[int]) -> None:
        self.script = script
        self.picks: list[int] = []
        self.counts: list[int] = []  # how many values each coin has
        self.weights: list[Fraction] = []

    def __call__(self, options: Law) -> Any:
        possible = [option for option in options if option[1] != 0]
        pick = self.script[len(self.picks)] if len(self.picks) < len(self.script) else 0
        value, weight = possible[pick]
        self.picks.append(pick)
        self.counts.append(len(possible))
        self.weights.append(weight)
        return value

    def next_script(self) -> list[int] | None:
        """The script in which the last coin that has another value left takes it; None when there is no such coin."""
        open_places = [place for place, pick in enumerate(self.picks) if pick + 1 < self.counts[place]]
        return [*self.picks[: open_places[-1]], self.picks[open_places[-1]] + 1] if open_places else None


def sample(run: Callable[[Choose], T], generator: np.random.Generator) -> T:
    """One run with its coins thrown by `generator`.

    >>> sample(lambda choose: choose([("heads", Fraction(1))]), np.random.default_rng(0))
    'heads'
    """
    return run(functools.partial(_throw, generator))


def _throw(generator: np.random.Generator, options: Law) -> Any:
    """One value of a law."""
    edges = np.cumsum([float(weight) for _, weight in options])
    return options[int(np.searchsorted(edges[:-1], generator.random() * edges[-1], side="right"))][0]


@functools.lru_cache(maxsize=1024)
def geometric(ratio: Fraction, most: int) -> Law:
    """The law of min(Geom(1 - ratio), most)."""
    below = [(value, (1 - ratio) * ratio**value) for value in range(most)]
    return (*below, (most, ratio**most))


# ------------------------------------------------------------------------------------------------- the algorithm


def _multiset(values: Sequence[Any]) -> Multiset:
    return tuple(sorted(values))


def _answer(choose: Choose, mechanism: Mechanism | None, taken: Multiset) -> Any:
    """A draw of the mechanism's answer."""
    return None if mechanism is None else choose(mechanism(taken))


def _select(choose: Choose, data: Multiset, step: Step, ratio: Fraction) -> tuple[Multiset, Multiset]:
    """Lines 2-4 of Algorithm 1: (slice, rest)."""
    ordered = step.order(data)
    size = step.size + choose(geometric(ratio, max(0, len(ordered) - step.size)))
    return _multiset(ordered[:size]), _multiset(ordered[size:])


def reorder_slice_compute(choose: Choose, data: Multiset, program: Program, *, ratio: Fraction) -> Run:
    """Algorithm 1, with delayed computations wherever the program asks for them."""
    data, slices = _multiset(data), []
    told: tuple[Any, ...] = ()
    while (request := program(told)) is not None:
        if isinstance(request, Step):
            taken, data = _select(choose, data, request, ratio)
            slices.append(taken)
        else:
            taken = slices[request.which]
        told = (*told, _answer(choose, request.mechanism, taken))
    return Run(told, data)


# ------------------------------------------------------------------------------------- the simulator and the holder


@functools.lru_cache(maxsize=1024)
def synchronisation(ratio: Fraction, noise: int, bit: int) -> Law:
    """R^bit(noise) of Lemma 2.4: the law of (alpha, beta)."""
    apart = max(Fraction(0), ratio**noise + ratio ** (noise + 1) - 1) / ratio ** (noise + bit)
    return ((noise, 0), apart), ((noise - bit, 1), 1 - apart)


class Difference(NamedTuple):
    """Two ordered neighbours: E(D), E(D + x), and p, the least slice size >= m for which their slices differ."""

    small: Multiset
    large: Multiset
    position: int


@functools.lru_cache(maxsize=4096)
def difference(step: Step, data: Multiset, extra: Any) -> Difference | None:
    """Orders D = data and D + extra and finds where they part; what the theorem requires of an order is checked here.

    Either all slices of m or more elements are equal (then None), or, with x' = E(D + x) - E(D) and p as in `Difference`, the first k of
    E(D + x) are the first k-1 of E(D) and x' for every k >= p, as multisets.

    Raises:
      ValueError: the order does neither on this pair.

    >>> difference(Step(1, lambda data: data, None), (1, 2, 4), 3)
    Difference(small=(1, 2, 4), large=(1, 2, 3, 4), position=3)
    """
    small, large = step.order(data), step.order(_multiset((*data, extra)))
    sizes = range(step.size, max(step.size, len(large)) + 1)
    apart = [k for k in sizes if Counter(small[:k]) != Counter(large[:k])]
    if not apart and len(small) == len(large):
        return None
    added = Counter(large) - Counter(small)
    wrong = [k for k in sizes if apart and k >= apart[0] and Counter(large[:k]) != Counter(small[: k - 1]) + added]
    if wrong or len(large) != len(small) + 1 or added.total() != 1:
        raise ValueError(f"order must insert one entry when {extra!r} joins {data!r}, got {small!r} and {large!r}")
    return Difference(small, large, apart[0])


class Holder:
    """Algorithm 3: knows the bit, and keeps the slices it was asked for."""

    def __init__(self, choose: Choose, bit: int, ratio: Fraction, mapping: Mapping) -> None:
        self.choose, self.bit, self.ratio, self.mapping = choose, bit, ratio, mapping
        self.slices: dict[int, Multiset] = {}
        self.replies: list[Any] = []

    def query(self, parted: Difference, which: int, mechanism: Mechanism | None) -> tuple[int, int, Any]:
        """(q^, beta, answer) for slice number `which`, which takes at least p elements of the true list of the two."""
        small, large, least = parted
        # From this noise on both lists are used up whatever is reported, so it is cut off there.
        noise = self.choose(geometric(self.ratio, max(0, len(large) + 1 - least)))
        taken = self.slices[which] = _multiset((small, large)[self.bit][: least + noise])
        answer = _answer(self.choose, mechanism, taken)
        alpha, beta = self.choose(self.mapping(self.ratio, noise, self.bit))
        size = least + alpha
        self.replies.append((size, beta, answer) if size <= len(small) else ("all", answer))
        return size, beta, answer

    def compute(self, request: Delayed) -> Any:
        """The answer of a delayed computation."""
        answer = _answer(self.choose, request.mechanism, self.slices[request.which])
        self.replies.append(answer)
        return answer


class Simulator:
    """Algorithm 2: knows D and x, and asks the holder where their slices differ; it never looks at the bit."""

    def __init__(self, choose: Choose, small: Multiset, extra: Any, holder: Holder) -> None:
        self.choose, self.holder = choose, holder
        self.data = _multiset(small)
        self.differing: Multiset = (extra,)  # what D + x still has more than D; nothing when synchronised (status 1)
        self.slices: list[Multiset | None] = []  # None where the holder keeps it

    def query(self, step: Step) -> Any:
        """One round, lines 6-30: the answer."""
        parted = difference(step, self.data, self.differing[0]) if self.differing else None
        if parted is None:
            taken, self.data = _select(self.choose, self.data, step, self.holder.ratio)
            self.differing = ()
            return self._keep(taken, step)
        size, beta = step.size + self.choose(geometric(self.holder.ratio, parted.position - step.size)), 0
        if size < parted.position:
            answer = self._keep(_multiset(parted.small[:size]), step)
        else:
            size, beta, answer = self.holder.query(parted, len(self.slices), step.mechanism)
            self.slices.append(None)
        self.data = _multiset(parted.small[size:])
        # If the holder was not asked, this is x'; if it was, and they are not synchronised, element q^ of E(D), if there is one.
        left = Counter(parted.large[size:]) - Counter(self.data)
        self.differing = () if beta else tuple(left.elements())
        return answer

    def compute(self, request: Delayed) -> Any:
        """The answer of a delayed computation."""
        taken = self.slices[request.which]
        if taken is None:
            return self.holder.compute(request)
        return _answer(self.choose, request.mechanism, taken)

    def _keep(self, taken: Multiset, step: Step) -> Any:
        """A slice that is the same for D and D + x: kept, and computed on."""
        self.slices.append(taken)
        return _answer(self.choose, step.mechanism, taken)


def simulate(
    choose: Choose,
    small: Multiset,
    extra: Any,
    program: Program,
    *,
    bit: int,
    ratio: Fraction,
    mapping: Mapping = synchronisation,
) -> Run:
    """Simulator and holder together, the holder's bit saying whether `small` (0) or `small` + `extra` (1) is true."""
    holder = Holder(choose, bit, ratio, mapping)
    simulator = Simulator(choose, small, extra, holder)
    told: tuple[Any, ...] = ()
    while (request := program(told)) is not None:
        answer = simulator.query(request) if isinstance(request, Step) else simulator.compute(request)
        told = (*told, answer)
    remaining = _multiset((*simulator.data, *simulator.differing)) if bit else simulator.data
    return Run(told, remaining, tuple(holder.replies), len(holder.slices))


# --------------------------------------------------------------------------------------------------- what is to be shown


def true_law(data: Multiset, program: Program, *, ratio: Fraction) -> dict[tuple[Any, Multiset], Fraction]:
    """The exact law of (published, remaining) under Algorithm 1.

    Args:
      data: the dataset, a tuple of sortable values.
      program: the analyst.
      ratio: exp(-epsilon) of the slice noise, a Fraction in [0, 1).

    >>> smallest = Step(1, lambda data: data, lambda taken: [(taken, Fraction(1))])
    >>> true_law((1, 2), lambda told: None if told else smallest, ratio=Fraction(1, 3))
    {(((1,),), (2,)): Fraction(2, 3), (((1, 2),), ()): Fraction(1, 3)}
    """
    ratio = _checked_ratio(ratio)
    return exact_law(lambda choose: reorder_slice_compute(choose, data, program, ratio=ratio)[:2])


def simulated_law(
    small: Multiset, extra: Any, program: Program, *, bit: int, ratio: Fraction, mapping: Mapping = synchronisation
) -> dict[tuple[Any, Multiset], Fraction]:
    """The exact law of (published, remaining) under Algorithms 2 and 3: by Lemma 2.5 that of Algorithm 1 on the true dataset.

    Equal as Fractions, for any mechanisms, and any `mapping` with the first property of Lemma 2.4.

    Args:
      small, extra: the neighbours D and x.
      program, ratio: as for `true_law`; ratio in (0, 1).
      bit: which one is true, 0 for D, 1 for D + x.
      mapping: R^bit, as (ratio, noise, bit) -> law of (alpha, beta).

    >>> smallest = Step(1, lambda data: data, lambda taken: [(taken, Fraction(1))])
    >>> program, ratio = lambda told: None if told else smallest, Fraction(1, 3)
    >>> simulated_law((2,), 1, program, bit=1, ratio=ratio) == true_law((1, 2), program, ratio=ratio)
    True
    """
    return _law_of(small, extra, program, bit, ratio, mapping, lambda run: run[:2])


def replies_law(
    small: Multiset, extra: Any, program: Program, *, bit: int, ratio: Fraction, mapping: Mapping = synchronisation
) -> dict[Any, Fraction]:
    """The exact law of all that the simulator sees of the true dataset: (published, the holder's replies); arguments as above."""
    return _law_of(small, extra, program, bit, ratio, mapping, lambda run: (run.published, run.replies))


def calls_law(small: Multiset, extra: Any, program: Program, *, bit: int, ratio: Fraction) -> dict[int, Fraction]:
    """The exact law of the number of slices that the holder is asked for; arguments as for `simulated_law`."""
    return _law_of(small, extra, program, bit, ratio, synchronisation, lambda run: run.calls)


def _law_of(small: Any, extra: Any, program: Any, bit: int, ratio: Any, mapping: Any, view: Callable[[Run], T]) -> Any:
    """The exact law of a part of the simulated run."""
    ratio, bit = _checked_ratio(ratio, above=0), arguments.integer("bit", bit, at_least=0, at_most=1)
    return exact_law(
        lambda choose: view(simulate(choose, small, extra, program, bit=bit, ratio=ratio, mapping=mapping))
    )


def largest_delta(p: dict[T, Fraction], q: dict[T, Fraction], epsilon: float) -> float:
    """The least delta for which two exact laws are (epsilon, delta)-indistinguishable: the larger of both hockey-sticks.

    >>> largest_delta({0: Fraction(3, 4), 1: Fraction(1, 4)}, {0: Fraction(1, 4), 1: Fraction(3, 4)}, 0.0)
    0.5
    """
    epsilon = arguments.known("epsilon", epsilon, at_least=0.0, at_most=LARGEST_EPSILON)
    scale, outcomes = Fraction(math.exp(epsilon)), p.keys() | q.keys()
    sticks = [
        sum((max(Fraction(0), a.get(o, Fraction(0)) - scale * b.get(o, Fraction(0))) for o in outcomes), Fraction(0))
        for a, b in ((p, q), (q, p))
    ]
    return float(max(sticks))


class Properties(NamedTuple):
    """What `lemma_2_4` found.

    Attributes:
      aligned: property 1, alpha = noise when beta = 0 and noise - bit when beta = 1, never negative; and the reports on every noise have
        probabilities, which sum to one.
      factor: property 2, the largest ratio of the two probabilities of one report; at most 1/ratio. Infinite if only one is 0.
      stops: property 3, P_b[beta = 1] for b = 0, 1, without the noise beyond the values examined.
    """

    aligned: bool
    factor: Fraction | float
    stops: tuple[Fraction, Fraction]


def lemma_2_4(ratio: Fraction, *, reach: int, mapping: Mapping = synchronisation) -> Properties:
    """The three properties of a synchronisation mapping, exactly, for noise 0, ..., reach-1.

    For Lemma 2.4's own mapping nothing changes beyond the least i with t_i = 0, so this is a proof for one ratio as soon
    as `reach` passes it: reports (i, 1) then have probabilities (1-r) r^i and (1-r) r^(i+1).

    Raises:
      ValueError: ratio outside (0, 1), reach below 2. TypeError: ratio not a rational number.

    >>> found = lemma_2_4(Fraction(1, 2), reach=60)
    >>> found.aligned, found.factor, float(found.stops[1])
    (True, Fraction(2, 1), 0.5)
    """
    ratio, reach = _checked_ratio(ratio, above=0), arguments.integer("reach", reach, at_least=2)
    laws: list[dict[tuple[int, int], Fraction]] = [{}, {}]
    aligned = True
    for noise, bit in itertools.product(range(reach), (0, 1)):
        mass, law = (1 - ratio) * ratio**noise, mapping(ratio, noise, bit)
        aligned &= sum(weight for _, weight in law) == 1  # or it is no law, and silence tells the bit
        for (alpha, beta), weight in law:
            laws[bit][alpha, beta] = laws[bit].get((alpha, beta), Fraction(0)) + mass * weight
            aligned &= weight == 0 or alpha == noise - bit * beta >= 0
            aligned &= weight >= 0
    # The last alpha is left out: its report from noise = reach is missing.
    reports = [o for o in laws[0].keys() | laws[1].keys() if o[0] < reach - 1]
    pairs = [(laws[0].get(o, Fraction(0)), laws[1].get(o, Fraction(0))) for o in reports]
    factor = max(_factor(max(pair), min(pair)) for pair in pairs)
    stops = [sum((weight for (_, beta), weight in law.items() if beta), Fraction(0)) for law in laws]
    return Properties(aligned, factor, (stops[0], stops[1]))


def _factor(larger: Fraction, smaller: Fraction) -> Fraction | float:
    """larger / smaller, and 1 for 0 / 0."""
    if smaller == 0:
        return math.inf if larger > 0 else Fraction(1)
    return larger / smaller


def _checked_ratio(ratio: Any, *, above: int | None = None) -> Fraction:
    """An exact ratio in [0, 1), or in (0, 1)."""
    if isinstance(ratio, bool) or not isinstance(ratio, Fraction | int):
        raise TypeError(f"ratio must be a Fraction, got {ratio!r} of type {type(ratio).__name__}")
    if not 0 <= ratio < 1 or ratio == above:
        raise ValueError(f"ratio must be in {'[' if above is None else '('}0, 1), got {ratio}")
    return Fraction(ratio)


# ---------------------------------------------------------------------------------------- how often the holder is asked


def holder_calls(generator: np.random.Generator, trials: int, *, epsilon: float, bit: int, rounds: int) -> np.ndarray:
    """How often the holder is asked, sampled on the worst case: every slice differs until the runs are synchronised.

    Here D = {1, 2, ...} and x = 0, and every slice takes the m smallest (m = 1, say): x, and later the number that took its
    place, is always the first.

    Args:
      generator: NumPy's random generator.
      trials: how many runs.
      epsilon: the rate of the slice noise.
      bit: 0 if D is true, 1 if D + x is.
      rounds: the number of slices.

    Returns:
      int64 array (trials,), each from 1 to rounds.

    >>> holder_calls(np.random.default_rng(0), 5, epsilon=0.1, bit=1, rounds=9).shape
    (5,)
    """
    trials, rounds = arguments.integer("trials", trials, at_least=1), arguments.integer("rounds", rounds, at_least=1)
    last = synchronization.surely_synchronised(epsilon)
    leave = synchronization.leave_probabilities(epsilon, last + 1, bit)
    calls, running = np.full(trials, rounds), np.arange(trials)
    for call in range(1, rounds):
        noise = generator.geometric(-math.expm1(-epsilon), len(running)) - 1
        stops = generator.random(len(running)) < leave[np.minimum(noise, last)]
        calls[running[stops]] = call
        running = running[~stops]
    return calls


class CallTails(NamedTuple):
    """P[more than w calls] for w = 0, ..., rounds: exact on the worst case for b = 0 and b = 1, and the paper's bound (5/6)^w."""

    smaller: np.ndarray
    larger: np.ndarray
    printed: np.ndarray


def call_tails(epsilon: float, rounds: int) -> CallTails:
    """The law that `holder_calls` samples, and the printed bound on it (Lemma 2.7).

    Each call synchronises with probability P_b[beta = 1], whatever was said before: P[calls > w] = (1 - P_b[beta = 1])^w for
    w < rounds, and no case has larger tails.

    >>> tails = call_tails(0.1, 3)
    >>> tails.larger.round(3).tolist(), tails.printed.round(3).tolist()
    ([1.0, 0.324, 0.105, 0.0], [1.0, 0.833, 0.694, 0.579])
    """
    calls = np.arange(arguments.integer("rounds", rounds, at_least=1) + 1)
    stays = [1.0 - synchronization.stop_probability(epsilon, bit) for bit in (0, 1)]
    smaller, larger = (np.where(calls < rounds, stay**calls, 0.0) for stay in stays)
    return CallTails(smaller, larger, (5.0 / 6.0) ** calls)
