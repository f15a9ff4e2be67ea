"""Statistics that tests share: one false-alarm rate, and a test of how well counts fit a law."""

import numpy as np
from scipy import stats

FALSE_ALARM = 2e-5  # of every statistical test


def p_value(counts: np.ndarray, expected: np.ndarray) -> float:
    """The chi-square p-value of counts against expected ones; outcomes expected fewer than 10 times are lumped together."""
    rare = expected < 10
    counts, expected = (np.append(v[~rare], v[rare].sum()) for v in (counts, expected))
    if expected[-1] < 1e-6:
        if counts[-1]:
            return 0.0
        counts, expected = counts[:-1], expected[:-1]
    if len(counts) == 1:  # one outcome is certain, and it has all counts
        return 1.0
    return float(stats.chisquare(counts, expected * counts.sum() / expected.sum()).pvalue)
