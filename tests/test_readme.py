"""The front door is true: its example runs, its pictures exist, its rooms are those of the tree, CI runs its test command."""

import pathlib
import re

import pytest

ROOT = pathlib.Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()


def block(language: str, after: str) -> str:
    """The first fenced block of a language after a heading or marker."""
    return re.search(rf"```{language}\n(.*?)```", README[README.index(after) :], re.DOTALL).group(1)


def test_the_example_runs_and_prints_what_it_says(capsys):
    exec(block("python", "## Ten lines"), {})
    released, success, promise = capsys.readouterr().out.strip().split("\n")
    assert released.endswith(" 0")  # status OK
    assert 0.9 < float(success) <= 1.00001
    assert "epsilon=1.0, delta=1e-06, relation='REPLACE_ONE'" in promise


def test_pictures_and_their_data_are_there():
    pictures = re.findall(r"!\[[^]]*\]\(([^)]+)\)", README)
    assert pictures
    for picture in pictures:
        path = ROOT / picture
        experiment = path.parent.name
        assert {path.name, path.stem + ".svg", f"{experiment}.csv", f"{experiment}.json"} <= {
            file.name for file in path.parent.iterdir()
        }


def test_every_module_of_the_table_exists():
    modules = re.findall(r"^\|[^|]*\|[^|]*\| `([a-z_.]+)` \|", README, re.MULTILINE)
    assert len(modules) >= 14
    for name in modules:
        path = ROOT / "dpjax" / name.replace(".", "/")
        factory_of = path.parent.with_suffix(".py")  # learners.thresholds.erm is a factory of learners/thresholds.py
        assert path.with_suffix(".py").exists() or f"def {path.name}(" in factory_of.read_text()


def test_ci_runs_the_test_command():
    if not (ROOT / ".ci" / "run").exists():
        pytest.skip("no CI script in this tree")
    script = (ROOT / ".ci" / "run").read_text()
    assert "<!-- test command -->" in script and "<!-- test command -->" in README
    assert "python -m pytest" in block("bash", "<!-- test command -->")
