"""The tables of MULTI §1.3 as data: how many examples k concepts need, up to constants, logarithms, accuracy and privacy.

>>> from dpjax.multi import tables
>>> [entry.upper for entry in tables.find(privacy="approximate", concepts="POINT", setting="PAC")]
['1']
"""

import dataclasses
from fractions import Fraction

PURE, APPROXIMATE = "pure", "approximate"
PAC, AGNOSTIC = "PAC", "agnostic"


@dataclasses.dataclass(frozen=True)
class Entry:
    """One cell of the tables.

    Attributes:
      privacy: "pure" or "approximate".
      concepts: "POINT", "THRESH", "PAR" (uniform examples) or "general".
      setting: "PAC" or "agnostic"; the pure table says the same for both, and has an entry for each.
      hypotheses: "proper", "improper", or "both" where the tables do not distinguish them.
      upper, lower: the number that suffices and the number that is needed, in the paper's words; lower is "" where the tables say nothing.
      upper_exponent, lower_exponent: the exponents of k in these formulas.
      upper_domain_exponent, lower_domain_exponent: the exponents of log|X| (log|C| is of the same order); log* counts as 0.
      upper_source, lower_source: theorem numbers of MULTI, or the authors of the proof.
    """

    privacy: str
    concepts: str
    setting: str
    hypotheses: str
    upper: str
    upper_exponent: Fraction
    upper_source: str
    lower: str
    lower_exponent: Fraction
    lower_source: str

    @property
    def upper_domain_exponent(self) -> Fraction:
        """The exponent of log|X| in what suffices, at fixed k; for a minimum, that of the term that is least on large domains."""
        return _DOMAIN[self.upper]

    @property
    def lower_domain_exponent(self) -> Fraction:
        """The exponent of log|X| in what is needed, at fixed k."""
        return _DOMAIN[self.lower]


_HALF, _THIRD, _ONE, _ZERO = Fraction(1, 2), Fraction(1, 3), Fraction(1), Fraction(0)
_BBKN, _FX, _BNSV = "Beimel et al. 2014", "Feldman, Xiao 2014", "Bun et al. 2015, Alon et al. 2019"
_PURE_GENERAL = "min{k log|C|, k VC(C) + log|X| VC(C)}"
_GENERAL = "min{sqrt(k) log|C|, sqrt(k) VC(C) + log|X| VC(C), sqrt(k) VC(C) + sqrt(log|X|) log|C|}"
_THRESHOLDS = "2^(log*|X|) + sqrt(k)"

# The exponent of log|X| in each formula, for a class like those of the tables, with log|C| = Theta(log|X|) and a fixed VC dimension.
_DOMAIN = {
    "": _ZERO,
    "1": _ZERO,
    "k": _ZERO,
    "sqrt(k)": _ZERO,
    "k + log|C|": _ONE,
    "k log|C|": _ONE,
    _PURE_GENERAL: _ONE,
    _GENERAL: _ONE,
    _THRESHOLDS: _ZERO,
    "log*|X| + k^(1/3)": _ZERO,
    "log*|X| + sqrt(k)": _ZERO,
    "log|C|": _ONE,
    "sqrt(k) log|C|": _ONE,
    "sqrt(k) + log|C|": _ONE,
}

_BOTH_SETTINGS = (
    ("POINT", "proper", "k + log|C|", "Theorem 31", "k + log|C|", f"Theorem 52, {_BBKN}"),
    ("POINT", "improper", "k", "Corollary 33", "k", f"Theorem 52, {_BBKN}"),
    ("THRESH", "both", "k + log|C|", "Theorem 31", "k + log|C|", f"Theorem 52, {_BBKN}, {_FX}"),
    ("general", "both", _PURE_GENERAL, "Theorem 31", "", ""),
    ("PAR", "both", "k log|C|", "Theorem 31", "k log|C|", "Theorem 55"),
)

TABLES = (
    *(
        Entry(PURE, concepts, setting, hypotheses, upper, _ONE, source, lower, _ONE if lower else _ZERO, lower_source)
        for concepts, hypotheses, upper, source, lower, lower_source in _BOTH_SETTINGS
        for setting in (PAC, AGNOSTIC)
    ),
    Entry(APPROXIMATE, "POINT", PAC, "both", "1", _ZERO, "Theorem 40", "1", _ZERO, ""),
    Entry(APPROXIMATE, "POINT", AGNOSTIC, "both", "sqrt(k)", _HALF, "Corollary 37", "sqrt(k)", _HALF, "Corollary 50"),
    Entry(
        APPROXIMATE,
        "THRESH",
        PAC,
        "both",
        _THRESHOLDS,
        _HALF,
        "Corollary 38",
        "log*|X| + k^(1/3)",
        _THIRD,
        f"Corollary 46, {_BNSV}",
    ),
    Entry(
        APPROXIMATE,
        "THRESH",
        AGNOSTIC,
        "both",
        _THRESHOLDS,
        _HALF,
        "Corollary 38",
        "log*|X| + sqrt(k)",
        _HALF,
        f"Corollary 50, {_BNSV}",
    ),
    *(
        Entry(APPROXIMATE, "general", setting, "both", _GENERAL, _HALF, "Theorem 31", "", _ZERO, "")
        for setting in (PAC, AGNOSTIC)
    ),
    Entry(APPROXIMATE, "PAR", PAC, "both", "log|C|", _ZERO, "Theorem 39", "log|C|", _ZERO, ""),
    Entry(
        APPROXIMATE,
        "PAR",
        AGNOSTIC,
        "both",
        "sqrt(k) log|C|",
        _HALF,
        "Theorem 31",
        "sqrt(k) + log|C|",
        _HALF,
        "Corollary 50",
    ),
)


def find(**wanted: str) -> tuple[Entry, ...]:
    """The entries with these attributes.

    Raises:
      ValueError: an attribute that entries do not have.
    """
    known = {field.name for field in dataclasses.fields(Entry)}
    unknown = sorted(set(wanted) - known)
    if unknown:
        raise ValueError(f"entries have the attributes {', '.join(sorted(known))}, not {unknown[0]}")
    return tuple(entry for entry in TABLES if all(getattr(entry, name) == value for name, value in wanted.items()))
