"""Base of sanitizers of dense domains: their data, as counts of every point, and the law of their release."""

from typing import Any, ClassVar, NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from dpjax.core import arguments, logspace
from dpjax.data.algorithm import Algorithm
from dpjax.data.fitting import fitted
from dpjax.data.points import Points
from dpjax.data.weighted import Weighted, table
from dpjax.domains import wide
from dpjax.domains.events import Accurate, flags
from dpjax.sanitizers.dense.queries import Queries

MOST_ROWS = 2**30  # of data: sums of counts, times the rows of a database, are int32


class Counted(NamedTuple):
    """A multiset of points of a dense domain.

    Attributes:
      counts: how often each point occurs.
      n: the sum of all counts.
    """

    counts: Int[Array, "points"]
    n: Int[Array, ""]

    def shares(self) -> Float[Array, "points"]:
        """The share of the multiset at each point; 0 for an empty one."""
        return self.counts.astype(float) / jnp.maximum(self.n, 1).astype(float)


class DenseSanitizer(Algorithm):
    """A release of a `Weighted` database from `Points`, a `Sample` or `Weighted` points, whose number is public.

    The error of a release is its largest error over the queries. Where the outputs can be listed, there is a law of the error.

    Attributes:
      queries: the class.
    """

    kind: ClassVar[type] = Points
    queries: Queries

    @property
    def bits(self) -> int:
        """Bits of the domain."""
        return self.queries.bits

    @property
    def points(self) -> int:
        """How many points the domain has."""
        return self.queries.size

    @property
    def most_points(self) -> int:
        """How many points a released database may have."""
        return self.queries.size

    def most(self) -> int:
        """How many rows the data may have."""
        return MOST_ROWS

    def fit(self, data: Any) -> Any:
        given: dict[str, Any] = {
            "bits": self.bits,
            "limbs": (wide.limbs_for(self.bits),),
            "any_rows": True,
            "name": "data",
        }
        if isinstance(data, Weighted):
            data = fitted(data, Weighted, **given)
            if data.weights.dtype.kind not in "iu":
                raise TypeError(f"data must have whole weights, which count rows, got {data.weights.dtype}")
            size = data.total
        else:
            data = fitted(Points.of(data), Points, **given)
            size = data.n_valid
        if not arguments.is_traced(size) and int(size) > self.most():
            raise ValueError(
                f"data must have at most {self.most()} rows, beyond which sums of their counts are not exact, got {int(size)}"
            )
        return data

    def fits(self, data: Any) -> Bool[Array, ""]:
        return data.in_domain(self.bits) & (self.prepare(data).n <= self.most())

    def prepare(self, data: Any) -> Counted:
        n = data.total if isinstance(data, Weighted) else data.n_valid
        return Counted(counts=table(data, self.queries.size), n=n)

    def database(self, weights: Any) -> Weighted:
        """The database of the points that have positive weight."""
        x = wide.from_uint32(jnp.arange(self.queries.size, dtype=jnp.uint32), wide.limbs_for(self.bits))
        return Weighted.kept(x, weights, weights > 0)

    # The law of outputs that can be listed ---------------------------------------------------------------------

    def log_masses(self, view: Counted) -> Float[Array, "outputs"]:
        """ln P of every output."""
        raise NotImplementedError

    def errors(self, view: Counted) -> Float[Array, "outputs"]:
        """The largest error of every output over the class."""
        raise NotImplementedError

    def check_event(self, event: Any) -> Any:
        """One flag for each listed output."""
        return flags(event, self.listed(), "outputs")

    def event(self, view: Counted, event: Any) -> Bool[Array, "outputs"]:
        return event.allows(self.errors(view)) if isinstance(event, Accurate) else event

    def law(self, view: Counted, good: Any) -> Float[Array, "2"]:
        p = jnp.exp(self.log_masses(view))
        return jnp.stack([jnp.sum(jnp.where(good, p, 0.0)), jnp.sum(jnp.where(good, 0.0, p))])

    def log_mass(self, view: Counted, good: Any) -> Float[Array, ""]:
        return logspace.logsumexp(jnp.where(good, self.log_masses(view), -jnp.inf))

    def masses(self, view: Counted, outputs: int) -> Float[Array, "outcomes"]:
        return jnp.append(jnp.exp(self.log_masses(view)), 0.0)
