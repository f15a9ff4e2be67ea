"""The middle quantile, then the middle ones of both sides, and so on (ApproximateQuantiles: Kaplan, Schnapp, Stemmer 2022).

Of m fractions the middle one is found first, then the middle ones of those below and above it, among the points on their side only: m
fractions take L = ceil(log2(m + 1)) levels. A node (l, r), between two answers or ends of the domain, holds the n_v points in [y_l, y_r)
and wants the fraction g = (f - f_l) / (f_r - f_l) of them below its answer, which is drawn from [y_l, y_r) with P[y] proportional to
exp(-lambda_v |#{points of the node below y} - g n_v|).

**Ties.** Points equal to a have places in [a, a + 1) that do not depend on how many there are (`ties`): the domain is
refined by b = `extra` bits, its points y stand for floor(y / 2^b), and the i-th of them, at a + v_i, is below y = 2^b a + u if
2^b v_i <= u. So one more point moves the number below y by 0 or 1, and by no less for a greater y.

**Privacy** (ADD_OR_REMOVE_ONE). So one more point raises the count of one node on each level, the one for which the number below y_r moves
and the number below y_l does not; all other nodes keep theirs. In that node the number below y moves by 0 up to some place p and by 1
above, and the target by g. Where the number is below the target, its error moves by g up to p and by -(1 - g) above; where it is above,
by -g and 1 - g. If p is among the former, the range of these moves is max{g, 1 - g} + 1 - g, otherwise g + max{g, 1 - g}: at most
2 max{g, 1 - g}. With lambda_v = epsilon / (2 L max{g, 1 - g}) a level costs epsilon / L, and the whole is (epsilon, 0)-private. The rate is
epsilon / L for 2^L - 1 evenly spaced fractions. The losses of a level lie in an interval whose length is its cost, so a level that costs r
is r^2/8-zCDP (`accounting.exponential`). So in place of epsilon / L a level may cost sqrt(8 rho / L) for a total of rho; likewise for a
total (epsilon, delta), with the largest rho from which (epsilon, delta) follows, if that is more: the accountant "concentrated". The
accountant "adaptive" composes intervals of losses nearly exactly (`accounting.adaptive`): by it a level may cost more, 4 to 22 % for 5 to 8
levels. It needs numbers that are known.

**Utility** (b = 32, at most n points). Places of equal points are at least 1/(2n) of their cell apart, and as far from its ends (`ties`),
so that at least 2^b/(2n) answers lie between any two neighbouring points. For a node of n_v >= 2 points some integer from 1 to n_v - 1 lies
within 1 of g n_v, and with n_v <= 1 no error exceeds max{g, 1 - g}: so e <= 1 for 2^b/(2n) answers, or e < 1 for all. There are at most
2^(d + b) answers, so those with e > 1 + t have probability at most N exp(-lambda_v t), N = 2^(d + 1) n. Rounding g to 2^-32 moves e by at
most n 2^-33. So, whatever came before, e is stochastically at most 1 + n 2^-33 + (ln N + E_v)/lambda_v, where E_v is a fresh exponential
variable of mean 1. Errors add up: that of an answer is at most that of its node, plus 1 - g times that of the answer to its left and g
times that of the answer to its right. So it is at most the sum of c_v (1 + n 2^-33 + (ln N + E_v)/lambda_v) over the nodes that it depends
on, with weights c_v that follow from the fractions, and for every theta below all lambda_v/c_v

    P[sum c_v E_v/lambda_v > s] <= exp(-theta s) prod 1/(1 - theta c_v/lambda_v).

Each answer may fail with probability beta/m. So it pays ln(m/beta) about once, whereas the sum of one bound for each node would pay it once
for each level.

On small domains the law of all answers is exact (`pmf`), as the product of the laws of the nodes. On large ones the law of ranks is not
known, as a node's weights depend on where in its gap an earlier answer fell. The plain twin is
`dpjax.verify.plain.quantiles.approximate_law`."""

import math
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Bool, Float, Int, UInt32

from dpjax.accounting import ADD_OR_REMOVE_ONE, Guarantee, exponential_epsilon, exponential_rate
from dpjax.accounting.adaptive import ADAPTIVE, adaptive_total
from dpjax.core import arguments
from dpjax.core.pytree import frozen, static
from dpjax.data.algorithm import LARGEST_PMF, few_points, whole
from dpjax.data.points import Points
from dpjax.domains import wide
from dpjax.domains.events import Interval
from dpjax.domains.ordered import Pieces
from dpjax.mechanisms import exponential_piecewise as piecewise
from dpjax.optimizers.quantiles import base, ties
from dpjax.optimizers.quantiles.base import MOST_ROWS, Quantiles
from dpjax.optimizers.quantiles.ranked import rounded_fractions

MOST_BITS = 4000  # and 32 more that spread equal points
CONCENTRATED = "concentrated"


@frozen
class Node:
    """The places of an answer and of those to its left and right, 0 and m + 1 being the ends; the integer G of g = G 2^-32."""

    place: Int[Any, "*nodes"]
    left: Int[Any, "*nodes"]
    right: Int[Any, "*nodes"]
    share: UInt32[Any, "*nodes"]


def tree(fractions: Sequence[int]) -> Node:
    """The nodes for fractions F 2^-32, the middle one first.

    >>> tree([2**30, 2**31, 3 * 2**30]).place.tolist(), set(tree([2**30, 2**31, 3 * 2**30]).share.tolist()) == {2**31}
    ([2, 1, 3], True)
    """
    ends = [0, *(int(fraction) for fraction in fractions), 2**32]
    found, waiting = [], [(0, len(ends) - 1)]
    while waiting:
        left, right = waiting.pop(0)
        if right - left > 1:
            place = (left + right) // 2
            found.append((place, left, right, round(2**32 * (ends[place] - ends[left]) / (ends[right] - ends[left]))))
            waiting += [(left, place), (place, right)]
    places, lefts, rights, shares = (np.array(each) for each in zip(*found, strict=True))
    return Node(
        place=places.astype(np.int32),
        left=lefts.astype(np.int32),
        right=rights.astype(np.int32),
        share=shares.astype(np.uint32),
    )


@frozen
class ApproximateQuantiles(Quantiles):
    """The middle quantile, then the middle ones of both sides, and so on; build it by `approximate`.

    Attributes:
      bits: d.
      fractions: F for each wanted fraction F 2^-32, increasing.
      epsilon: the total epsilon.
      delta: the total delta, 0 for pure privacy.
      level: the epsilon that a level costs by the accountant "adaptive"; None for what epsilon and delta leave by "concentrated".
      nodes: the nodes of the tree, which follow from the fractions.
      limbs: limbs of a point (static).
      wider: limbs of a refined position up to 2^(d + b) + 1 (static).
      extra: b (static).
    """

    bits: Int[Array, ""]
    fractions: UInt32[Array, "quantiles"]
    epsilon: Float[Array, ""]
    delta: Float[Array, ""]
    level: Float[Array, ""] | None
    nodes: Node
    limbs: int = static()
    wider: int = static()
    extra: int = static()

    @property
    def levels(self) -> int:
        """L."""
        return int(self.fractions.shape[0]).bit_length()

    def rates(self, xp: Any = jnp) -> Any:
        """lambda_v of each node, by `jax.numpy`, or by `numpy` on the host."""
        g = xp.asarray(self.nodes.share).astype(float) * 2.0**-32
        return self.cost(xp) / (2 * xp.maximum(g, 1 - g))

    def cost(self, xp: Any = jnp) -> Any:
        """The epsilon that a level costs, likewise."""
        if self.level is not None:
            return xp.asarray(self.level, float)
        epsilon, delta = xp.asarray(self.epsilon, float), xp.asarray(self.delta, float)
        return exponential_rate(epsilon, delta, ranges=self.levels, squares=self.levels, xp=xp)

    def sound(self) -> Bool[Array, ""]:
        cost, room = self.cost(), jnp.asarray(self.bits) + self.extra < 32 * self.wider
        return super().sound() & (cost > 0) & (cost < jnp.inf) & room

    def draw(self, key: Array, points: Points) -> Any:
        pieces = self.pieces(points)
        ends = jnp.stack([jnp.zeros_like(pieces.end), wide.add(pieces.last, wide.one(self.wider))])
        count = self.fractions.shape[0]
        answers = jnp.broadcast_to(ends[0], (count + 2, self.wider)).at[count + 1].set(ends[1])

        def visit(answers: Array, here: tuple[Array, Node]) -> tuple[Array, None]:
            rate, node = here
            left, right = answers[node.left], answers[node.right]
            log_density = -rate * self._error(pieces, left, right, node.share)
            empty = Interval(low=pieces.end, high=pieces.end)
            drawn = piecewise.draw(
                jax.random.fold_in(key, node.place), pieces, log_density, Interval(low=left, high=right), empty
            )
            return answers.at[node.place].set(wide.select(wide.less(left, right), drawn.position, left)), None

        answers, _ = lax.scan(visit, answers, (self.rates(), jax.tree.map(jnp.asarray, self.nodes)))
        found = wide.shift_right(answers[1:-1], jnp.full((count,), self.extra, jnp.int32))
        return wide.resize(found, self.limbs), jnp.bool_(True), {"fine": answers[1:-1]}

    def _error(
        self, pieces: Pieces, left: UInt32[Array, "limbs"], right: UInt32[Array, "limbs"], share: UInt32[Array, ""]
    ) -> Float[Array, "pieces"]:
        """|number below - g n_v| on each piece, whose index is the number of points below it, less the least integer part of those offered.

        Without this, where few bits leave ties, errors of millions would be multiplied by a rate, and their differences rounded.
        """
        below, up_to = pieces.locate(left), pieces.locate(right)
        floor, digits = base.ranks(share, jnp.maximum(up_to - below, 0))
        rest = digits.astype(float) * 2.0**-32
        place = jnp.arange(pieces.count, dtype=jnp.int32)
        over = place - below - floor.astype(jnp.int32)
        ends = wide.concatenate(pieces.starts[1:], pieces.end[None])
        offered = (place >= below) & wide.less(pieces.starts, right[None]) & wide.less(pieces.starts, ends)
        least = jnp.min(jnp.where(offered, jnp.abs(over), jnp.int32(MOST_ROWS)))
        return (jnp.abs(over) - least).astype(float) + jnp.where(over > 0, -rest, rest)

    def pieces(self, points: Points) -> Pieces:
        """The refined domain, cut at the spread points: the i-th of equal points a is at 2^b a + ceil(2^b v_i)."""
        rows = points.rows
        place = jnp.arange(rows, dtype=jnp.int32)
        new = jnp.concatenate([jnp.ones(1, bool), ~wide.equal(points.x[1:], points.x[:-1])]) | (place == points.n_valid)
        first = lax.cummax(jnp.where(new, place, 0))
        stop = lax.cummin(jnp.where(jnp.append(new[1:], True), place + 1, rows), reverse=True)
        found = ties.place(place - first + 1, stop - first)
        none = jnp.zeros_like(found)
        quotient = found >> jnp.uint32(32 - self.extra) if self.extra > 0 else none
        rest = found << jnp.uint32(self.extra) if self.extra < 32 else none
        shift = jnp.full((rows,), self.extra, jnp.int32)
        coarse = wide.shift_left(wide.resize(points.x, self.wider), shift)
        up = wide.from_uint32((rest > 0).astype(jnp.uint32), self.wider)
        x = wide.add(wide.add(coarse, wide.from_uint32(quotient, self.wider)), up)
        exponent = jnp.asarray(self.bits, jnp.int32) + self.extra
        beyond = wide.power_of_two(exponent, self.wider)
        end = wide.add(beyond, wide.one(self.wider))
        starts = wide.select(points.valid, x, jnp.broadcast_to(end, x.shape))
        return Pieces(
            starts=wide.concatenate(jnp.zeros((1, self.wider), jnp.uint32), starts),
            values=jnp.zeros(rows + 1),
            last=wide.subtract(beyond, wide.one(self.wider)),
            end=end,
            exponent=exponent,
        )

    def listed(self) -> int:
        m, digits = self.fractions.size, arguments.known_integer("bits", self.bits) + self.extra
        rule = f"{m} * (bits + extra)" if m > 1 else "bits + extra"  # digits of all refined answers
        arguments.integer(rule, m * digits, at_least=1, at_most=LARGEST_PMF)
        return int(few_points(self.bits) ** m)

    def masses(self, points: Points, outputs: int) -> Float[Array, "outcomes"]:
        """The mass of each (z_1, ..., z_m), z_m running fastest: the products over the nodes, summed over refined answers."""
        m = self.fractions.size
        size = round(outputs ** (1 / m)) << self.extra
        pieces = self.pieces(points)
        place = wide.from_uint32(jnp.arange(size + 1, dtype=jnp.uint32), self.wider)
        counts = jax.vmap(pieces.locate)(place[:-1])
        fine = np.stack(np.unravel_index(np.arange(size**m), (size,) * m))
        around = np.concatenate([np.zeros((1, size**m), int), fine, np.full((1, size**m), size)]).astype(np.int32)

        def table(rate: Array, share: Array) -> Float[Array, "left right answers"]:
            """P[answer | left, right]."""

            def one(left: Array, right: Array) -> Array:
                logs = -rate * self._error(pieces, place[left], place[right], share)[counts]
                index = jnp.arange(size, dtype=jnp.int32)
                logs = jnp.where((index >= left) & (index < right), logs, -jnp.inf)
                return jnp.where(
                    left < right, jax.nn.softmax(jnp.where(left < right, logs, 0.0)), (index == left).astype(float)
                )

            ends = jnp.arange(size + 1, dtype=jnp.int32)
            return jax.vmap(lambda left: jax.vmap(lambda right: one(left, right))(ends))(ends)

        joint = jnp.ones(size**m)
        rates, fixed = self.rates(), jnp.asarray(around)
        for i in range(m):
            node = jax.tree.map(lambda leaf, i=i: jnp.asarray(leaf)[i], self.nodes)
            law = table(rates[i], node.share)
            joint = joint * law[fixed[node.left], fixed[node.right], fixed[node.place]]
        coarse = np.ravel_multi_index(tuple(fine >> self.extra), (size >> self.extra,) * m)
        return jnp.zeros(outputs + 1).at[coarse].add(joint)

    def guarantee(self) -> Guarantee:
        """(epsilon, delta) under ADD_OR_REMOVE_ONE: all quantiles together; or what the levels cost at delta, if that is more."""
        epsilon, delta = arguments.known("epsilon", self.epsilon), arguments.known("delta", self.delta)
        stated = Guarantee(epsilon, delta, ADD_OR_REMOVE_ONE)
        if self.level is None:
            return stated
        # The level is that of the total given to the factory; `dataclasses.replace` may have put another one in its place.
        each = Guarantee(arguments.known("level", self.level), 0.0, ADD_OR_REMOVE_ONE)
        spent = adaptive_total(each, self.levels, delta)
        return stated if spent.covers(epsilon, delta) else spent

    def zcdp(self) -> float:
        """rho for which all quantiles together are rho-zCDP under ADD_OR_REMOVE_ONE, rounded up."""
        return self.levels * arguments.known("the cost of a level", self.cost(np)) ** 2 / 8 * (1 + 2.0**-44)

    def error(self, *, beta: float, n: int = MOST_ROWS) -> float:
        """A bound on the ranks by which answers miss f n, whatever the points are, except with probability beta: see the module.

        Args:
          beta: in (0, 1).
          n: the greatest number of points, which must be public; default: as many as an array can hold.

        Raises:
          ValueError: beta outside (0, 1), n below 1, or extra below 32, where equal points may share one place.
        """
        return self._errors(beta)(arguments.integer("n", n, at_least=1, at_most=MOST_ROWS))

    def _errors(self, beta: float) -> Callable[[int], float]:
        """`error` for any n: everything but ln n is computed once."""
        arguments.integer("extra, for an error on all data,", self.extra, at_least=32)
        beta = arguments.known_fraction("beta", beta)
        means = 1 / self.rates(np)  # of E_v / lambda_v
        weights, paid = self._paths(means)
        share, nats = beta / len(means), paid.sum(axis=1)
        # The event is either that no node fails, or that no answer does.
        by_node, by_answer = -nats * math.log(share), _tail(paid, share)

        def error(n: int) -> float:
            log_answers = (int(self.bits) + 1) * math.log(2.0) + math.log(n)
            fixed = weights * (1 + n * 2.0**-33) + nats * log_answers
            return float(min(np.max(fixed + by_node), np.max(fixed + by_answer)))

        return error

    def _paths(
        self, means: Float[np.ndarray, "nodes"]
    ) -> tuple[Float[np.ndarray, "nodes"], Float[np.ndarray, "nodes levels"]]:
        """(The sum of c_v, and c_v / lambda_v of the one node v on each level) for the answer of each node."""
        weights, paid = np.zeros(len(means) + 2), np.zeros((len(means) + 2, self.levels))
        nodes = jax.tree.map(np.asarray, self.nodes)
        for level in range(self.levels):  # all levels but the last are full
            row = slice(2**level - 1, 2 ** (level + 1) - 1)
            place, left, right, g = nodes.place[row], nodes.left[row], nodes.right[row], nodes.share[row] * 2.0**-32
            weights[place] = 1 + (1 - g) * weights[left] + g * weights[right]
            paid[place] = (1 - g)[:, None] * paid[left] + g[:, None] * paid[right]
            paid[place, level] = means[row]
        return weights[1:-1], paid[1:-1]

    def sample_size(self, *, alpha: float, beta: float) -> int:
        """The number of points for which all ranks are within alpha n of f n, with probability 1 - beta: the least n that is at least
        (`error` of n, plus 1) over alpha.

        One rank is added as ranks are integers, and f n is rounded to one. More points suffice, too: the error of n over n falls as n
        grows.

        Raises:
          ValueError: alpha or beta outside (0, 1), or extra below 32.
        """
        alpha = arguments.known_fraction("alpha", alpha)
        error, n, more = self._errors(beta), 0, 1
        while more > n:  # the error grows with ln n only
            n, more = more, whole((error(min(more, MOST_ROWS)) + 1) / alpha)
        return n


def _tail(means: Float[np.ndarray, "sums terms"], beta: float) -> Float[np.ndarray, "sums"]:
    """For each row s with P[sum of exponential variables of these means > s] <= beta: the least of Chernoff's bounds for 64 theta.

    >>> bool(abs(_tail(np.array([[2.0, 0.0]]), 0.01)[0] / 2 - 7.64) < 0.01), bool(_tail(np.ones((1, 3)), 1e-6)[0] < 24)
    (True, True)
    """
    theta = np.linspace(0.0, 1.0, 66)[1:-1, None] / means.max(axis=1)
    log_moment = -sum(np.log1p(-theta * term) for term in means.T)
    return np.min((log_moment - math.log(beta)) / theta, axis=0)


def _level(levels: int, accountant: str, epsilon: Any, delta: Any) -> Any:
    """What each of L levels may cost by "adaptive"; None otherwise."""
    if accountant == CONCENTRATED:
        return None
    known = {"epsilon": arguments.known("epsilon", epsilon), "delta": arguments.known("delta", delta)}
    return np.float64(exponential_epsilon(levels, **known))


def approximate(
    *,
    bits: int,
    fractions: Sequence[float],
    epsilon: Any = None,
    delta: Any = 0.0,
    rho: Any = None,
    accountant: str = CONCENTRATED,
    extra: int = 32,
) -> ApproximateQuantiles:
    """Quantiles at `fractions` of the points, for the price of ceil(log2(m + 1)) runs of the exponential mechanism; see the module.

    Formal guarantees: (epsilon, delta) under ADD_OR_REMOVE_ONE for all quantiles together, or rho-zCDP; see `ApproximateQuantiles.zcdp`.
    Not promised: protection from floating-point side channels; a cryptographic generator.

    Args:
      bits: the domain is {0, ..., 2^bits - 1}, 1 to 4000.
      fractions: from 0 to 1, increasing; rounded to multiples of 2^-32 (`rounded_fractions`).
      epsilon: total, > 0, finite; may be traced.
      delta: total, in [0, 1); may be traced.
      rho: the total of zero-concentrated privacy, in place of epsilon and delta; may be traced. The guarantee then states the pure epsilon
        that it takes.
      accountant: how the levels are composed where there is a delta: "concentrated", or "adaptive", which needs a known epsilon and delta
        and takes some 50 ms. See the module.
      extra: bits that spread equal points, 0 to 32. Privacy holds for any number of them.

    Raises:
      TypeError, ValueError: an argument out of range, fractions that do not increase; both epsilon and rho, or neither; a delta with rho; a
        traced total with "adaptive".

    >>> quartiles = approximate(bits=24, fractions=[0.25, 0.5, 0.75], epsilon=1.0)
    >>> points = Points.create(wide.from_ints(range(1000, 5000), 24))
    >>> answers = wide.to_ints(quartiles(jax.random.key(0), points).hypothesis)
    >>> max(abs(z - 1000 - 1000 * i) for i, z in enumerate(answers, 1)) < 40
    True
    """
    each = rounded_fractions(fractions)
    bits = arguments.integer("bits", bits, at_least=1, at_most=MOST_BITS)
    extra = arguments.integer("extra", extra, at_least=0, at_most=32)
    arguments.choice("accountant", accountant, (CONCENTRATED, ADAPTIVE))
    domain: Any = {"bits": np.int32(bits), "limbs": wide.limbs_for(bits), "wider": wide.limbs_for(bits + extra + 1)}
    levels = len(each).bit_length()
    budget = base.total(epsilon, delta, rho, per_root=levels**0.5)
    return ApproximateQuantiles(
        **domain,
        fractions=np.asarray(each, np.uint32),  # type: ignore[arg-type]
        **budget,
        level=_level(levels, accountant, **budget),
        nodes=tree(each),
        extra=extra,
    )
