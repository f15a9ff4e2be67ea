"""Counts compiled programs, and separates their time from the run's."""

import contextlib
import dataclasses
from collections.abc import Iterator
from typing import Any

import jax

_COMPILED, _FOUND = "/jax/core/compile/backend_compile_duration", "/jax/compilation_cache/cache_hits"


@dataclasses.dataclass(frozen=True)
class Report:
    """How the time was spent.

    Attributes:
        wall_seconds: from the opening of the store to the last result.
        compile_seconds: the part of wall_seconds for XLA's work and for reading programs from the cache.
        programs: number of programs.
        from_cache: how many of them were read from the cache.
        small: how many of them were compiled so fast that no cache keeps them.
    """

    wall_seconds: float
    compile_seconds: float
    programs: int
    from_cache: int
    small: int

    def __str__(self) -> str:
        rest = self.wall_seconds - self.compile_seconds
        new = self.programs - self.from_cache - self.small
        return (
            f"{self.wall_seconds:.1f} s: {self.compile_seconds:.1f} s for {self.programs} programs "
            f"({new} compiled, {self.from_cache} read from the cache, {self.small} too small to be kept there), "
            f"{rest:.1f} s for the rest"
        )


class Watch:
    """Listens to JAX's own events."""

    def __init__(self) -> None:
        self._seconds: list[float] = []
        self._found: list[int] = []  # the positions of programs that were in the cache

    def duration(self, event: str, duration_secs: float, **_: Any) -> None:
        """Called when a program is ready."""
        if event == _COMPILED:
            self._seconds.append(duration_secs)

    def event(self, event: str, **_: Any) -> None:
        """Called when the program that will be ready next was found in the cache."""
        if event == _FOUND:
            self._found.append(len(self._seconds))

    def report(self, wall_seconds: float) -> Report:
        """The report so far."""
        compiled = [taken for place, taken in enumerate(self._seconds) if place not in self._found]
        least = jax.config.values["jax_persistent_cache_min_compile_time_secs"]
        small = sum(taken < least for taken in compiled)
        return Report(round(wall_seconds, 1), round(sum(self._seconds), 1), len(self._seconds), len(self._found), small)


@contextlib.contextmanager
def watched() -> Iterator[Watch]:
    """Counts what is compiled inside."""
    watch = Watch()
    jax.monitoring.register_event_duration_secs_listener(watch.duration)
    jax.monitoring.register_event_listener(watch.event)
    try:
        yield watch
    finally:
        jax.monitoring.unregister_event_duration_listener(watch.duration)
        jax.monitoring.unregister_event_listener(watch.event)
