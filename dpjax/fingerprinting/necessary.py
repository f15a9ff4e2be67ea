"""How many examples every private k-learner needs, by the best code of k columns (MULTI Theorems 43 and 47).

A learner that is (alpha, beta)-accurate on the database of all n users makes a feasible word with probability 1 - beta, which accuses
some user unless the code is incomplete. On her neighbour without that user she is accused with probability at most that of an innocent.
So an (epsilon, delta)-private learner has

    (1 - beta - completeness)/n  <=  exp(epsilon) innocent + delta.

`dpjax.bounds.fingerprinting_thresholds` and `fingerprinting_agnostic` are the paper's corollaries: the code's security xi is given, and
the number of columns is the least at which xi was proved. Here the number of columns is k, and the code is the one among those proved in
`boneh_shaw` and `tardos` for which the inequality fails with the most users. n users then exclude as many rows as `forms` allows.
"""

import math
import sys
from collections.abc import Callable

from dpjax.core import arguments, bisection
from dpjax.fingerprinting.attack import implied_epsilon
from dpjax.fingerprinting.codes import LEAST_XI, MOST_COLUMNS
from dpjax.fingerprinting.tardos import tardos

Codes = Callable[[int], list[tuple[float, float]]]  # n -> (completeness, innocent) of each code of n users


@arguments.in_plain_numbers
def thresholds(
    concepts: int, *, alpha: float, beta: float, epsilon: float, delta: float, domain: int | None = None
) -> float:
    """Examples that every empirical k-learner of thresholds needs, proper or not: ceil(n/2)/alpha, by the Boneh-Shaw code (Theorem 43).

    With B = floor(k/(n + 1)) copies of each column the code is complete for every L below B/(n (n + 1)), and an innocent user is accused
    with probability at most exp(-L). So the inequality holds at exp(-B/(n (n + 1))), where the paper has exp(-B/(2 n^2)).

    Args:
      concepts: k.
      alpha, beta: the learner's error on its examples, in (0, 1/2), and its failure probability, in (0, 1).
      epsilon, delta: its privacy under REPLACE_ONE; delta in [0, 1).
      domain: |X| >= 2, which must hold n users' points and one more; as large as is needed if absent.

    Returns:
      Number of examples; no such learner exists for fewer. 0 where no code is so short. For PAC learners divide by
      `dpjax.bounds.rows_of_empirical`.

    Raises:
      TypeError, ValueError: an argument out of range.

    >>> thresholds(10**6, alpha=0.1, beta=0.1, epsilon=1.0, delta=1e-6)
    290.0
    """
    alpha = arguments.number("alpha", alpha, above=0.0, below=0.5)
    most = _most_users(2, _boneh_shaw(concepts), beta, epsilon, delta)
    if domain is not None:
        most = min(most, arguments.integer("domain", domain, at_least=2) - 1)
    return -(-most // 2) / alpha if most >= 2 else 0.0


@arguments.in_plain_numbers
def agnostic(concepts: int, *, alpha: float, beta: float, epsilon: float, delta: float) -> float:
    """Examples that every agnostic empirical k-learner of any class needs, proper or not: n/alpha, by either code (Theorem 47).

    All users' examples are at one point; more than n rows need two concepts that agree somewhere (Remark 48). Tardos's code has symmetric
    scores and all k columns. Its threshold allows an innocent user to be accused with probability exp(-l), for the best integer l. For few
    concepts the Boneh-Shaw code is for more users.

    Args:
      concepts: k.
      alpha, beta: the learner's excess error on its examples, in (0, 1), and its failure probability, in (0, 1).
      epsilon, delta: its privacy under REPLACE_ONE, or REPLACE_LABEL; delta in [0, 1).

    Returns:
      Number of examples; no such learner exists for fewer. 0 where no code is so short. For PAC learners divide by
      `dpjax.bounds.rows_of_empirical`.

    Raises:
      TypeError, ValueError: an argument out of range.

    >>> round(agnostic(10**6, alpha=0.1, beta=0.1, epsilon=1.0, delta=1e-6))
    1200
    """
    alpha = arguments.number("alpha", alpha, above=0.0, below=1.0)
    given = beta, epsilon, delta
    return max(_most_users(3, _tardos(concepts, *given), *given), _most_users(2, _boneh_shaw(concepts), *given)) / alpha


def _boneh_shaw(concepts: int) -> Codes:
    """The padded code of all k columns."""
    concepts = arguments.count("concepts", concepts)

    def codes(n: int) -> list[tuple[float, float]]:
        innocent = math.exp(-(concepts // (n + 1)) / (n * (n + 1)))
        return [(0.0, max(innocent, sys.float_info.min))]  # a probability of 0 would refute every epsilon

    return codes


def _tardos(concepts: int, beta: float, epsilon: float, delta: float) -> Codes:
    """The symmetric codes of all k columns, by l; for l less than the first one the inequality holds however complete the code is."""
    columns = min(arguments.count("concepts", concepts), MOST_COLUMNS)

    def codes(n: int) -> list[tuple[float, float]]:
        least = math.ceil(math.log(n / (1 - beta)) + epsilon)
        # A little more than n exp(-l), so that rounding does not make ceil(ln(n/xi)) l + 1.
        securities = (n * math.exp(-each) * (1 + 1e-12) for each in range(least, least + 32))
        made = [tardos(n, xi, score="symmetric", length=columns) for xi in securities if LEAST_XI <= xi < 1]
        return [(code.completeness(), code.innocent()) for code in made]

    return codes


def _most_users(fewest: int, codes: Codes, beta: float, epsilon: float, delta: float) -> int:
    """The most users, from `fewest` on, for whom some code refutes the learner's privacy; 0 if there are none."""
    beta = arguments.known_fraction("beta", beta)
    epsilon = arguments.known("epsilon", epsilon, above=0.0, below=math.inf)
    delta = arguments.known("delta", delta, at_least=0.0, below=1.0)

    def survives(n: int) -> bool:
        found = (
            implied_epsilon(users=n, completeness=missed, innocent=innocent, inaccuracy=beta, delta=delta)
            for missed, innocent in codes(n)
        )
        return all(each <= epsilon for each in found)

    most = bisection.least_int(survives, fewest) - 1
    return most if most >= fewest else 0
