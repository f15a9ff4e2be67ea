"""The experiment on fingerprinting: that its learners are built for the databases that they get."""

import pytest

from dpjax import Points
from experiments.fingerprinting import attacks


@pytest.mark.parametrize("rows", [4, 44])
def test_a_sanitizer_is_told_how_many_rows_the_padded_database_has(rows):
    """A sanitizer that is built for another number refuses every database, and its curve would show no attack."""
    given = {"users": 4, "k": 8, "epsilon": 1.0, "delta": 1e-6}
    points = Points.create(attacks.form("points", 4, rows).x)
    made = attacks.learner("points", attacks.PUBLIC, **given, rows=rows)
    assert int(made.sanitizer.fit(points).n_valid) == rows
    other = attacks.learner("points", attacks.PUBLIC, **given, rows=rows + 1)
    with pytest.raises(ValueError, match="points must be n"):
        other.sanitizer.fit(points)
