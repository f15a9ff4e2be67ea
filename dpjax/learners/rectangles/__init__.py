"""Axis-aligned rectangles in D dimensions by 2D slices, over X_d^D, X_d = {0, ..., 2^d - 1} (the warm-up of Sadigurschi, Stemmer 2021;
CLNSS §1.3.4, Corollary 1.7).

Axis after axis, cut the m smallest (+ noise) and the m largest (+ noise) of the positive examples that remain, and find an interior point
of each slice's projection privately: the two faces of this axis. If too few remain at the end, answer the all-zero hypothesis.

| accountant | slice sizes | what one slice may spend | examples |
|---|---|---|---|
| "basic" | public | epsilon / (2D + 1) | D^2 |
| "optimal" | public | about epsilon / sqrt(8 D ln(1/delta)) | D^1.5 |
| "bounded" | public | twice that, for exponential mechanisms | D^1.5 |
| "slicing_printed" | noisy (Theorem 2.1) | epsilon / ln(1/delta) over a constant | D |
| "slicing" | noisy (`dpjax.accounting.slicing`) | ten times more | D |

The last column is to be multiplied by the number of examples that the interior point problem takes at epsilon = 1, and divided by
alpha epsilon. The algorithm is the same in all rows.

`kearns` is another algorithm, on axes that a sanitizer cuts (BNS §3.5); see its module.

**Privacy.** Neighbouring samples: one labelled example, whatever its label, is inserted into the list of examples or removed from it (the
others keep their order, which breaks ties on an axis; for multisets, let the order be random). A negative example changes nothing. Let z be
one more positive example. Ordering by (x_i, row) then inserts one entry into the ordered list of what remains.
- *Noisy sizes.* So this is Reorder-Slice-Compute: 2D slices, with an (e, d)-private computation on each. The count of what remains at the
  end is a computation on one more slice, which is all that is left. Hence Theorem 2.1, or the numerical accountant, with 2D + 1 slices.
- *Public sizes.* By induction the lists that remain before axis i are equal, or one has one more entry, z. In the latter case: (i) If z is
  not among the first m of its list, the low slices are equal, and the high ones differ at most by the replacement of an entry by z. (ii) If
  it is, the low slices differ by the replacement of v, the last entry of the other list's slice, by z. Then v is the additional entry of
  what remains, and it comes last in the order of the high slice, which contains it only if it takes everything. (iii) A slice that takes
  all of both lists differs by an insertion, and nothing remains. So at most one slice per axis differs by a replacement, until at most one
  differs by an insertion and all later ones are empty. A replacement is two steps of add/remove. In all: D times (2e, (1 + exp(e)) d), and
  once (e, d), for the insertion or for the count, which differs (by one) only if nothing was exhausted.
- A solver sees at most `capacity` points of a slice. The probability that noise makes any slice larger is at most
  2^-20 delta / (1 + exp(epsilon)) for all slices together. This is charged: the accountants are given delta (1 - 2^-20).

**Utility.** Let the examples be independent and labelled by a rectangle t. Let W bound the sum of all noises, so that at most K = 2D m + W
entries are in slices; R remain, and the test is R + noise >= tau, where the noise is two-sided geometric of rate e.

*Faces.* If R >= 1, every slice was full. The solver of a slice then fails with probability at most beta_1 = beta/(4D). If none fails, each
face is an interior point of its slice. So low_i <= max A_i <= min B_i <= high_i for the two slices of axis i, and the hypothesis h lies in
t and contains h' = product of [max A_i, min B_i], which contains all examples that remain. Hence error(h) <= P[t without h'].

*Mass of slices.* That mass is at most the K-th smallest of n uniforms (Wald 1943, Tukey 1947), however the mass of t is spread. Give
each example a uniform u that breaks ties (rows in the order of u are again independent examples). The N positive examples are
independent draws from a law P in which the key (x_i, u) has no atoms. The P-mass of what precedes the k-th smallest key is distributed
as the k-th smallest of N uniforms, and given the k smallest entries the others are independent draws from P conditioned to follow
them. So each slice multiplies the share of mass that is left by an independent Beta(N_j - k_j + 1, k_j), N_j = N - k_1 - ... - k_(j-1),
just as the gaps of N uniforms do: 1 - U_(k_1), (1 - U_(k_1 + k_2)) / (1 - U_(k_1)), ... After all slices the share is at least
1 - U_(K), and the mass lost is at most p U_(K), where p = P[t]. Those of n uniforms that are below p, divided by p, are N uniforms with the
right law of N: if N >= K, p U_(K) is the K-th smallest of n uniforms.

*Together.* Let V be the number of the n uniforms below alpha, with law Bin(n, alpha).
- p > alpha: if V >= K + 2 tau - 1 then R >= N - K >= 2 tau - 1 and error(h') <= alpha; the test fails with probability at most
  b_t = r^tau / (1 + r), r = exp(-e).
- p <= alpha: the all-zero hypothesis has error p, and any h in t has at most that. If R = 0, the test passes with probability at most b_t.
Hence error(h) <= alpha except with probability P[Bin(n, alpha) < K + 2 tau - 1] + P[noises > W] + b_t + 2D beta_1: no union bound over
faces, no VC theory, and n alpha = K to first order. `sample_size` gives beta/2 to the solvers, beta/8 each to test and noise, and the rest
to the first term, which it computes exactly.

    >>> import jax
    >>> from dpjax.concepts import rectangles as concept
    >>> from dpjax.learners import rectangles
    >>> d = concept.uniform(bits=16, low=[1000, 20000], high=[60000, 64000])
    >>> learner = rectangles.rectangles(axes=2, bits=16, epsilon=1.0, delta=1e-6, beta=0.1)
    >>> n = learner.sample_size(alpha=0.1, beta=0.1)
    >>> outcome = learner(jax.random.key(1), d.sample(jax.random.key(0), n, n))
    >>> float(d.error(outcome.hypothesis)) < 0.1
    True
"""

from dpjax.learners.rectangles.by_slices import Faces, Rectangles, from_plan, rectangles
from dpjax.learners.rectangles.kearns import Kearns, kearns
from dpjax.learners.rectangles.planning import ACCOUNTANTS, SOLVERS, Plan, plan
from dpjax.learners.rectangles.slices_alone import trial

__all__ = [
    "ACCOUNTANTS",
    "SOLVERS",
    "Faces",
    "Kearns",
    "Plan",
    "Rectangles",
    "from_plan",
    "kearns",
    "plan",
    "rectangles",
    "trial",
]
