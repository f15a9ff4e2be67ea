"""What the sweeps return: rows of a table."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from dpjax.core.show import as_chosen


@dataclasses.dataclass(frozen=True, repr=False)
class Table:
    """Rows, each a dict with the same keys; prints as a table.

    Attributes:
      rows: the rows, in the order given.
      over: the names of the values that make up a setting.
    """

    rows: tuple[Mapping[str, Any], ...]
    over: tuple[str, ...]

    def to_rows(self) -> list[dict[str, Any]]:
        """The rows, in the order given."""
        return [dict(row) for row in self.rows]

    def to_pandas(self) -> Any:
        """The rows as a `pandas.DataFrame`.

        Raises:
          ImportError: pandas is not installed.
        """
        try:
            import pandas
        except ImportError:
            raise ImportError(
                "to_pandas needs pandas (pip install pandas); to_rows gives the same as plain dicts"
            ) from None
        return pandas.DataFrame(self.to_rows())

    def text(self, title: str, columns: Sequence[str]) -> str:
        """The table as text: the title, then the series and its setting, followed by these columns."""
        given = ("series", *self.over)  # what somebody chose is shown as it was chosen
        head = (*given, *columns)
        table = [head, *(tuple(_word(row[name], name in given) for name in head) for row in self.rows)]
        widths = [max(map(len, column)) for column in zip(*table, strict=True)]
        lines = ["  ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True)) for line in table]
        return f"{title}\n" + "\n".join(lines)


def _word(value: Any, whole: bool) -> str:
    """A cell of the table: a setting as it was chosen, any other float with four digits."""
    if value is None:
        return "-"
    return f"{value:.4g}" if isinstance(value, float) and not whole else as_chosen(value)
