"""Whether an algorithm's runs follow the law that it states."""

import itertools
from typing import Any

import jax
import numpy as np

from dpjax.core import proportions, tracing
from dpjax.data.algorithm import of_dpjax
from dpjax.verify.audit import audit_samples
from dpjax.verify.family import Family
from dpjax.verify.runs import Incomparable, runner

RUNS, LOOPED_RUNS, DATASETS = 4096, 512, 8
ERROR = 2e-5  # probability of accusing a law that is correct
DRAWN_OFF = 1e-6  # how far a draw in single precision may be from its law
COMMONEST = 256  # outcomes of which a place in the law is looked for


def disagreement(
    algorithm: Any, p: np.ndarray, datasets: Family, places: tuple[int, ...], trials: int | None, seed: int
) -> tuple[str | None, str]:
    """(What runs on some datasets say against the laws p, None if nothing; how many runs were compared), in words.

    It is not known which outcome has which place in the law, only that each has one. So there must not be more outcomes
    than places. Each outcome must have a place whose probabilities on all datasets are near its frequencies. On each
    dataset frequencies and probabilities are also compared after sorting both by size: the ends of the intervals of
    Clopper and Pearson rise with the frequency, so if each contains its probability, then the sorted ones do, too. Where
    many outcomes are all rare, that says little. So runs on two datasets are also audited: it must not be easier to tell
    them apart than their laws allow. By the levels of the intervals and of the audits, a correct law is accused with
    probability at most 2e-5. Algorithms of dpjax are not examined: their laws and samplers are tested against each other.
    """
    if of_dpjax(algorithm):
        return None, ""
    count = len(datasets.sizes)
    # The first and the last are among them: bugs are often at the ends of the domain.
    chosen = sorted({*places, *(count - 1 if i == DATASETS - 1 else i * count // DATASETS for i in range(DATASETS))})
    given = [(datasets.values[place], datasets.sizes[place]) for place in chosen]
    # An algorithm that JAX can trace refuses no data: tracing sees only shapes, which all datasets share.
    traced = tracing.untraced(algorithm, jax.random.key(0), datasets.kind.make(*given[0])) is None
    refused = [not traced and _is_refused(algorithm, datasets.kind.make(*each)) for each in given]
    if all(refused):  # there is only a law
        return None, ""
    if any(refused):
        first = datasets.shown(chosen[refused.index(True)])
        return f"do NOT follow this law: on the records {first} there are none (NotImplementedError)", ""
    try:
        how = runner(algorithm, datasets.kind.make, *given[-1], others=[datasets.first_of_most])
        keys = jax.random.split(jax.random.key(seed), len(chosen))
        asked = trials or (RUNS if how.compiled else LOOPED_RUNS)
        seen = how.several(keys, given, asked)
    except Incomparable as why:
        return f"could not be compared with this law: {why}", ""
    against = _of_frequencies(seen, p[chosen]) or _of_pairs(seen, p[chosen])
    if against is None:
        return (
            None,
            f"{asked} runs on each of {len(chosen)} datasets do not contradict the law; small differences would not show.",
        )
    where, what = against
    shown = [datasets.shown(chosen[place]) for place in where]
    return f"do NOT follow this law: {what.format(*shown)}", ""


def _is_refused(algorithm: Any, data: Any) -> bool:
    """Whether a run raises NotImplementedError."""
    try:
        algorithm(jax.random.key(0), data)
    except NotImplementedError:
        return True
    return False


def _of_frequencies(seen: list[np.ndarray], p: np.ndarray) -> tuple[tuple[int, ...], str] | None:
    """(The datasets concerned, what frequencies on them say against the laws); None if nothing."""
    runs = len(seen[0])
    names, codes = np.unique(np.concatenate(seen), return_inverse=True, axis=0)
    if len(names) > p.shape[1]:
        zeros = " (0.0 and -0.0 are two)" if names.dtype.kind == "f" else ""
        return (), f"{len(names)} different outcomes came{zeros}, where the law has {p.shape[1]}"
    counts = np.array([np.bincount(part, minlength=p.shape[1]) for part in codes.reshape(-1, runs)])
    low, high = _intervals(counts, runs, 1 - ERROR / (2 * p.size))
    sides = (-np.sort(-part) for part in (counts / runs, low, high, p))
    for place, (found, least, most, stated) in enumerate(zip(*sides, strict=True)):
        if ((stated < least) | (stated > most)).any():
            far = int(np.argmax(np.maximum(least - stated, stated - most)))
            shown = f"frequencies, by size, {_few(found, far)}, where the law has {_few(stated, far)}"
            return (place,), f"on the records {{}} the outcomes came with {shown}"
    for name in np.argsort(-counts.max(axis=0), kind="stable")[:COMMONEST]:
        if not ((p >= low[:, [name]]) & (p <= high[:, [name]])).all(axis=0).any():
            found = counts[:, name] / runs
            first, last = int(np.argmax(found)), int(np.argmin(found))
            shown = f"{found[first]:.3g} on the records {{}} and {found[last]:.3g} on the records {{}}"
            what = f"an outcome came with frequencies {shown}, and none has such probabilities in the law"
            return (first, last), what
    return None


def _intervals(counts: np.ndarray, runs: int, level: float) -> tuple[np.ndarray, np.ndarray]:
    """The ends of the interval for each probability."""
    met, places = np.unique(counts, return_inverse=True)
    low, high = proportions.clopper_pearson(met, runs, level=level)
    return (low - DRAWN_OFF)[places].reshape(counts.shape), (high + DRAWN_OFF)[places].reshape(counts.shape)


def _of_pairs(seen: list[np.ndarray], p: np.ndarray) -> tuple[tuple[int, ...], str] | None:
    """(Two datasets, in words an event that is likelier on one of them by more than the laws allow); None if there is none."""
    pairs = list(itertools.combinations(range(len(seen)), 2))
    for one, other in pairs:
        audit = audit_samples(seen[one], seen[other], epsilon=0.0, level=1 - ERROR / (2 * len(pairs)))
        stated = float(np.maximum(p[one] - p[other], 0.0).sum())
        if audit.delta_at(0.0) > stated + 1e-6:
            what = f"an event is likelier by {audit.delta_at(0.0):.3g} at least on the records {{}} than on {{}}"
            where = (other, one) if audit.swapped else (one, other)
            return where, f"{what}, and none of the law by more than {stated:.3g}"
    return None


def _few(values: np.ndarray, shown: int) -> str:
    """The first few of sorted numbers, and the one to be shown, as text."""
    first = ", ".join(f"{value:.3g}" for value in values[:3])
    if shown > 2:
        first += f", {'..., ' if shown > 3 else ''}{values[shown]:.3g}"
    return first + (", ..." if len(values) > max(3, shown + 1) else "")
