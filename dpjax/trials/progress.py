"""Progress of a long run on standard error: how much is done, the rate, the time left.

On a terminal it is a bar; elsewhere (a log file) a plain line every few seconds. The host prints it between
chunks, never from inside a compiled program.
"""

import sys
import time
from typing import Any

from tqdm import tqdm

from dpjax.core import arguments
from dpjax.trials import devices

_LINE = "{desc}: {n_fmt}/{total_fmt}{unit}, {rate_fmt}, {remaining} left{postfix}"
_SECONDS_A_LINE = 5.0


class Progress:
    """A progress bar, used as a context manager.

    Args:
        total: how much there is to do.
        label: printed in front.
        unit: what is counted.
        stream: text stream to print to; standard error by default.
        silent: whether to print nothing.

    Raises:
        TypeError: `total` is not an integer.
        ValueError: `total` is negative.

    Example:
        >>> import io
        >>> stream = io.StringIO()
        >>> with Progress(1000, "thresholds", stream=stream) as progress:
        ...     progress.skip(400)  # found in the store: no part of the rate
        ...     progress.done(600)
        >>> stream.getvalue().splitlines()[-1].startswith("thresholds: 1.00k/1.00k trials")
        True
    """

    def __init__(self, total: int, label: str, *, unit: str = "trials", stream: Any = None, silent: bool = False):
        stream = sys.stderr if stream is None else stream
        options: dict[str, Any] = {"file": stream}
        # None, where there is no standard error, and other streams than files have no `isatty`.
        if not getattr(stream, "isatty", bool)():
            options = {"file": _Lines(stream), "mininterval": _SECONDS_A_LINE, "bar_format": _LINE}
        total = arguments.integer("total", total, at_least=0)
        self._noted = time.monotonic()
        # In a run of several processes only the first one prints.
        self._bar = _Bar(
            disable=silent or stream is None or not devices.lead(),
            total=total,
            desc=label,
            unit=f" {unit}",
            unit_scale=total >= 1000,  # 1.20k, but not 7.00
            dynamic_ncols=True,
            **options,
        )

    def done(self, amount: int) -> None:
        """Records that `amount` more is done."""
        self._bar.update(amount)

    def skip(self, amount: int) -> None:
        """Records that `amount` more was done by an earlier process: it counts as done, but not towards the rate."""
        self._bar.initial += amount
        self._bar.update(amount)

    def note(self, what: str) -> None:
        """Sets the text that says what is being done: shown after the rest, refreshed every few seconds."""
        self._bar.set_postfix_str(what, refresh=False)
        if time.monotonic() - self._noted > _SECONDS_A_LINE:
            self._noted = time.monotonic()
            self._bar.refresh()

    def close(self) -> None:
        """Prints the last state."""
        self._bar.refresh()
        self._bar.close()

    def __enter__(self) -> "Progress":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class _Bar(tqdm):
    """A bar that says "5.2 s each" where tqdm says "5.2s/ cells"."""

    def __str__(self) -> str:
        return super().__str__().replace(f"s/{self.unit}", " s each")


class _Lines:
    """A stream that turns a bar's carriage returns into lines."""

    def __init__(self, stream: Any):
        self._stream, self._last = stream, ""

    def write(self, text: str) -> None:
        """Writes one line for each state of the bar that differs from the one before."""
        if (line := text.strip("\r\n ")) and line != self._last:
            self._stream.write(line + "\n")
            self._last = line

    def flush(self) -> None:
        """Flushes the stream."""
        self._stream.flush()
