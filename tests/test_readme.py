"""The pages are true: their examples run, alone; their pictures and links exist; CI runs the front door's test command."""

import pathlib
import re
import subprocess

import jax
import pytest

import dpjax

ROOT = pathlib.Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()
PAGES = [
    ROOT / "README.md",
    *sorted(page for room in ("dpjax", "experiments", "figures") for page in (ROOT / room).rglob("README.md")),
    *sorted((ROOT / "guide").glob("*.md")),
    ROOT / "dpjax/optimizers/quantiles/contest.md",
    ROOT / "experiments/benchmarks/profiling.md",
]
THOROUGH = {  # a second or more of compilation each
    "guide/attack-0",
    "guide/how_much_data-2",
    "guide/how_to-1",
    "guide/solutions-2",
    "guide/solutions-3",
    "guide/solutions-5",
}
SLOW = {  # many seconds of compilation each
    "dpjax/optimizers-0",
    "dpjax/optimizers-2",
    "dpjax/optimizers/quantiles-0",
    "dpjax/relaxations-0",
    "dpjax/relaxations-7",
    "dpjax/sanitizers-0",
    "guide/how_much_data-1",
    "guide/how_to-0",
    "guide/laws_and_samples-0",
    "guide/laws_and_samples-1",
    "guide/median-1",
    "guide/solutions-0",
    "guide/your_own-1",
}


def blocks(page: pathlib.Path, language: str = "python") -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", page.read_text(), re.DOTALL)


def block_after(language: str, marker: str) -> str:
    """The first fenced block of a language after a heading or marker of the front door."""
    return re.search(rf"```{language}\n(.*?)```", README[README.index(marker) :], re.DOTALL).group(1)


def name(page: pathlib.Path) -> str:
    """The folder of a README.md, or the path of another page."""
    where = page.relative_to(ROOT)
    return str(where.parent if where.name == "README.md" else where.with_suffix(""))


def example(name: str, block: str):
    """An example as a test: slow if in SLOW, thorough in THOROUGH, or on a page beside the code: docstrings have examples of their own."""
    thorough = name in THOROUGH or name.startswith("dpjax/")
    marks = [pytest.mark.slow] if name in SLOW else [pytest.mark.thorough] if thorough else []
    return pytest.param(block, id=name, marks=marks)


EXAMPLES = [example(f"{name(page)}-{i}", block) for page in PAGES for i, block in enumerate(blocks(page))]


def test_the_example_prints_what_it_says(capsys):
    exec(block_after("python", "## Ten lines"), {})
    released, success, promise = capsys.readouterr().out.strip().split("\n")
    assert released.endswith(" 0")  # status OK
    assert 0.9 < float(success) <= 1.00001
    assert "(1.0, 1e-06)-private under REPLACE_ONE" in promise


@pytest.mark.parametrize("source", EXAMPLES[1:])
def test_every_example_runs_alone(source):
    for extra in ("opendp", "sklearn"):
        if re.search(rf"^(import|from) {extra}\b", source, re.MULTILINE):
            pytest.importorskip(extra)
    with jax.numpy_dtype_promotion("standard"), jax.numpy_rank_promotion("allow"):  # as users have JAX
        exec(source, {})


def test_the_front_door_is_small():
    assert len(README.encode()) <= 8 * 1024


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#]+)\)", page.read_text()):
        assert (page.parent / target).exists(), target


def test_pictures_have_their_data_beside_them():
    pictures = {
        (page.parent / picture).resolve()
        for page in PAGES
        for picture in re.findall(r"!\[[^]]*\]\(([^)]+)\)", page.read_text())
    }
    assert len(pictures) >= 15
    for path in pictures:
        experiment = path.parent.name
        assert {path.name, path.stem + ".svg", f"{experiment}.csv", f"{experiment}.json"} <= {
            file.name for file in path.parent.iterdir()
        }


def test_every_module_of_the_table_exists():
    names = re.findall(r"`([a-z_.]+)`", "".join(re.findall(r"^\|.*\| ([^|]*) \|$", README, re.MULTILINE)))
    assert len(names) >= 14
    room = ""
    for name in names:
        room = room if name.startswith(".") else name.partition(".")[0]
        path = pathlib.Path(dpjax.__file__).parent / (room + name if name.startswith(".") else name).replace(".", "/")
        assert path.is_dir() or path.with_suffix(".py").exists(), name


def shell(script, where):
    """What a shell prints in a directory after reading the functions of the CI scripts, and its exit status."""
    source = f". {ROOT / '.ci' / 'environments.sh'}; {script}"
    done = subprocess.run(["bash", "-c", source], cwd=where, capture_output=True, text=True, check=False)
    return done.stdout, done.returncode


@pytest.mark.skipif(not (ROOT / ".ci").exists(), reason="no CI scripts in this tree")
def test_ci_runs_the_test_command():
    command, status = shell("readme_command", ROOT)
    assert status == 0 and command.strip() == block_after("bash", "<!-- test command -->").strip()
    assert "python -m pytest" in command and "python3 -m venv .venv && . .venv/bin/activate" in command


@pytest.mark.skipif(not (ROOT / ".ci").exists(), reason="no CI scripts in this tree")
def test_ci_runs_it_in_other_environments_and_fails_with_it(tmp_path):
    readme = tmp_path / "README.md"
    readme.write_text("<!-- test command -->\n```bash\necho python3 .venv $PIP_CONSTRAINT && exit 3\n```\n")
    assert shell("run_tests .venv-other /a/python versions.txt", tmp_path)[0].endswith(
        "/a/python .venv-other versions.txt\n"
    )
    assert shell("run_tests .venv python3", tmp_path)[1] == 3
    readme.write_text("")
    assert shell("run_tests .venv python3", tmp_path)[1] == 1
