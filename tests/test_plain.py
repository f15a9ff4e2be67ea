"""The plain twins: each has an example, and the algorithm that it is a twin of names it."""

import importlib
import pathlib
import re

import pytest

import dpjax

PACKAGE = pathlib.Path(dpjax.__file__).parent
TWINS = sorted(path.stem for path in (PACKAGE / "verify" / "plain").glob("[a-z]*.py"))
NAMED = {
    name
    for path in PACKAGE.glob("**/*.py")
    if path.parent.name != "plain"
    for name in re.findall(r"`dpjax\.verify\.plain\.([\w.]+)`", path.read_text())
}


@pytest.mark.parametrize("name", sorted(NAMED))
def test_a_twin_that_is_named_exists(name: str) -> None:
    module, _, function = name.partition(".")
    twin = importlib.import_module(f"dpjax.verify.plain.{module}")
    assert not function or callable(getattr(twin, function))


@pytest.mark.parametrize("name", TWINS)
def test_a_twin_has_an_example_and_an_algorithm(name: str) -> None:
    assert ">>> " in (PACKAGE / "verify" / "plain" / f"{name}.py").read_text()
    assert name == "laplace" or name in {each.partition(".")[0] for each in NAMED}  # noise that the others share
