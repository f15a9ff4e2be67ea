"""What `pip install .` installs, and what it says of itself."""

import pathlib
import shutil
import subprocess
import sys
import tomllib
import zipfile

import pytest

ROOT = pathlib.Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """The wheel, built from a copy: a build leaves folders behind."""
    place = tmp_path_factory.mktemp("wheel")
    for name in ("dpjax", "experiments"):
        shutil.copytree(ROOT / name, place / "source" / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, place / "source")
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", place, place / "source"]
    subprocess.run(command, check=True)
    with zipfile.ZipFile(next(place.glob("*.whl"))) as archive:
        yield {name: archive.read(name).decode(errors="replace") for name in archive.namelist()}


@pytest.mark.slow
def test_the_wheel_holds_the_package_and_nothing_else(wheel):
    tops = {name.split("/")[0] for name in wheel}
    assert "dpjax" in tops and all(top == "dpjax" or top.endswith(".dist-info") for top in tops)
    sources = {path.relative_to(ROOT).as_posix() for path in (ROOT / "dpjax").rglob("*.py")}
    assert sources <= set(wheel) and "dpjax/py.typed" in wheel


@pytest.mark.slow
def test_the_wheel_says_what_it_is(wheel):
    metadata = next(text for name, text in wheel.items() if name.endswith("/METADATA"))
    version = next(line for line in wheel["dpjax/__init__.py"].splitlines() if line.startswith("__version__"))
    assert f"Version: {version.split(chr(34))[1]}\n" in metadata
    for line in ("Classifier: Typing :: Typed", "Keywords: differential privacy", "Requires-Python: >=3.11"):
        assert line in metadata


def test_only_the_package_is_packed():
    assert PROJECT["tool"]["setuptools"]["packages"]["find"]["include"] == ["dpjax*"]
    assert (ROOT / "dpjax" / "py.typed").exists() and PROJECT["tool"]["setuptools"]["package-data"] == {
        "dpjax": ["py.typed"]
    }
