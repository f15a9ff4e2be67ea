"""A naive exact reference for the noisy binary search on the threshold (after BNS §3.2): every path of the search, in plain Python."""

from collections.abc import Sequence

from dpjax.verify.plain.laplace import laplace_tail


def binary_search_law(xs: Sequence[int], ys: Sequence[int], bits: int, comparison_epsilon: float) -> list[float]:
    """P[j] for j = 0, ..., 2^bits.

    >>> [round(p, 3) for p in binary_search_law([0], [1], 1, 2.0)]  # right at 1 with probability 1/2, left at 0 with exp(-1)/2
    [0.092, 0.408, 0.5]
    """
    law = [0.0] * (2**bits + 1)

    def visit(low: int, high: int, reach: float) -> None:
        if low == high:
            law[low] += reach
            return
        middle = (low + high) // 2
        ones = sum(y == 1 and x >= middle for x, y in zip(xs, ys, strict=True))
        zeros = sum(y == 0 and x <= middle for x, y in zip(xs, ys, strict=True))
        margin = (ones - zeros) * comparison_epsilon / 2
        visit(middle + 1, high, reach * laplace_tail(-margin))
        visit(low, middle, reach * laplace_tail(margin))

    visit(0, 2**bits, 1.0)
    return law
