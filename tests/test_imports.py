"""The direction of imports: which package imports which, and what `import dpjax` loads."""

import ast
import builtins
import importlib
import importlib.metadata
import json
import pathlib
import pkgutil
import subprocess
import symtable
import sys

import pytest
from conftest import SLOW_EXAMPLES

import dpjax

PACKAGE = pathlib.Path(dpjax.__file__).parent

# What each room (subpackage) may import besides itself, from the ground up.
MECHANISTIC = {"core", "domains", "data", "accounting", "bounds", "mechanisms"}
LEARNING = MECHANISTIC | {"concepts", "optimizers", "sanitizers"}
ROOMS = {
    "core": set(),
    "domains": {"core"},
    "data": {"core", "domains"},
    "accounting": {"core"},
    "bounds": {"core"},
    "mechanisms": {"core", "domains", "data", "accounting", "bounds"},
    "concepts": {"core", "domains", "data"},
    "optimizers": MECHANISTIC,
    "sanitizers": MECHANISTIC | {"optimizers"},
    "learners": LEARNING,
    "multi": LEARNING | {"learners"},
    "choice": LEARNING | {"learners", "multi"},
    "fingerprinting": {"core", "domains", "data", "trials"},
    "verify": {"mechanisms", "accounting", "core", "data"},
    "trials": {"core", "data", "plotting"},  # what a learner returns; a curve draws itself
    "relaxations": LEARNING | {"learners", "multi", "trials", "verify"},
    "plotting": {"core"},
    "interop": LEARNING | {"learners"},
}

# Third-party packages; those that are heavy or optional in one room each.
EVERYWHERE = {"jax", "jaxtyping", "numpy", "scipy", "tqdm"}
ONE_ROOM = {
    "attr": "accounting",  # what events of dp-accounting are made with
    "dp_accounting": "accounting",
    "matplotlib": "plotting",
    "opendp": "interop",
    "optax": "relaxations",
    "pandas": "trials",
    "sklearn": "interop",
}


def read(table):
    """The names that a scope, and all those within it, read from their module."""
    names = {symbol.get_name() for symbol in table.get_symbols() if symbol.is_global() and symbol.is_referenced()}
    return names.union(*map(read, table.get_children()))


@pytest.mark.parametrize("package", ["dpjax", "experiments"])
def test_every_name_is_defined(package):
    """What linters would report, were it not for shapes in annotations, which are not code."""
    unknown, found = {}, pkgutil.walk_packages(importlib.import_module(package).__path__, f"{package}.")
    for name in [each.name for each in found if not each.name.endswith("__main__")]:
        try:
            module = importlib.import_module(name)
        except ModuleNotFoundError as missing:
            assert missing.name.split(".")[0] not in {"dpjax", "experiments"}  # an extra
            continue
        whole = symtable.symtable(
            pathlib.Path(module.__file__).read_text(), name, "exec"
        )  # what is outside of functions has run
        names = set().union(*map(read, whole.get_children()))
        if missing := {each for each in names if not hasattr(module, each) and not hasattr(builtins, each)}:
            unknown[name] = missing
    assert not unknown


def imported(source):
    """All modules a source imports, in functions too; names of relative imports begin with a dot."""
    names = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            module = "." * node.level + (node.module or "")
            names += [f"dpjax.{alias.name}" for alias in node.names] if module == "dpjax" else [module]
    return names


def allowed(room, name):
    """Whether a file of `room` may import the module `name`; relative imports would slip past the table."""
    top, *inner = name.split(".")
    if top == "dpjax":
        return bool(inner) and inner[0] in ROOMS[room] | {room}
    return top in EVERYWHERE or top in sys.stdlib_module_names or ONE_ROOM.get(top) == room


def violations(room, source):
    return [name for name in imported(source) if not allowed(room, name)]


def files():
    return sorted(PACKAGE.glob("*/**/*.py"))


@pytest.mark.parametrize("path", files(), ids=lambda path: path.relative_to(PACKAGE).as_posix())
def test_imports_go_one_way(path):
    assert violations(path.relative_to(PACKAGE).parts[0], path.read_text()) == []


def test_every_room_is_in_the_table():
    assert {path.relative_to(PACKAGE).parts[0] for path in files()} <= set(ROOMS)


def test_the_table_has_no_cycle():
    seen: set[str] = set()
    while len(seen) < len(ROOMS):
        ready = {room for room, may in ROOMS.items() if may <= seen} - seen
        assert ready, f"a cycle among {set(ROOMS) - seen}"
        seen |= ready


@pytest.mark.parametrize(
    ("room", "source"),
    [
        ("core", "from dpjax.domains import wide"),
        ("core", "from dpjax import domains"),
        ("core", "import dpjax"),
        ("mechanisms", "def f():\n    import dpjax.learners.thresholds"),
        ("concepts", "from ..mechanisms import laplace"),
        ("bounds", "from dpjax.domains import wide"),
        ("learners", "import matplotlib.pyplot as plt"),
        ("core", "import pandas"),
        ("learners", "from sklearn.base import BaseEstimator"),
        ("verify", "import opendp.prelude as dp"),
    ],
)
def test_a_wrong_import_would_be_seen(room, source):
    """Negative control."""
    assert violations(room, source) != []


IMPORT_EVERYTHING = """
import importlib, json, pkgutil, sys
import jax

def packages():
    return sorted({name.split(".")[0] for name in sys.modules})

before = dict(jax.config.values)
import dpjax
light = packages()
for module in pkgutil.walk_packages(dpjax.__path__, "dpjax."):
    if module.name.split(".")[1] not in ("interop", "plotting", "relaxations") and module.name != "dpjax.accounting.events":
        importlib.import_module(module.name)
after = jax.config.values
print(json.dumps({
    "light": light,
    "all": packages(),
    "changed": [name for name in before if before[name] != after[name]],
    "settings": len(before),
}))
"""


def test_import_is_light_and_leaves_jax_alone():
    """In a fresh interpreter: only the rooms that are for it load what is slow; no setting of JAX changes."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", IMPORT_EVERYTHING], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert not set(ONE_ROOM) & set(report["light"])
    assert not set(ONE_ROOM) & set(report["all"])
    assert report["settings"] > 50 and report["changed"] == []


def test_rooms_show_their_modules():
    """Before anything in them is imported, in a fresh interpreter; a wrong name is an AttributeError."""
    done = subprocess.run([sys.executable, "-W", "error", "-c", SHOW], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert {"learners", "mechanisms", "optimizers", "Sample", "check", "least_n", "enable_cache"} <= set(
        report["dpjax"]
    )
    assert {"thresholds", "points", "rectangles"} <= set(report["learners"])
    assert {"bits", "random"} <= set(report["core"]) and {"engine", "store"} <= set(report["trials"])
    assert "lazy" in report["core"] and "lazy" not in report["learners"]
    assert report["loaded"] == [] and report["module"] == "dpjax.learners.thresholds"
    assert report["wrong"] == "module 'dpjax.learners' has no attribute 'thresholdz'"


SHOW = """
import json, sys
import dpjax
report = {"dpjax": dir(dpjax)} | {room: dir(getattr(dpjax, room)) for room in ("learners", "core", "trials")}
report["loaded"] = [name for name in sys.modules if name.startswith(("dpjax.learners.", "dpjax.trials."))]
report["module"] = dpjax.learners.thresholds.__name__
try:
    dpjax.learners.thresholdz
except AttributeError as error:
    report["wrong"] = str(error)
print(json.dumps(report))
"""


def test_every_room_shows_what_it_holds():
    for room in ROOMS:
        if (PACKAGE / room).exists():
            package = importlib.import_module(f"dpjax.{room}")
            missing = {path.stem for path in (PACKAGE / room).glob("[a-z]*.py")} - set(dir(package))
            assert not missing, f"{room} does not show {missing}"


def test_the_version_is_that_of_the_package():
    assert dpjax.__version__ == importlib.metadata.version("dpjax")


def test_what_loads_late_is_what_it_says():
    """The names in `dpjax` itself that are defined in other rooms."""
    assert dpjax.choose is importlib.import_module("dpjax.choice.choosing").choose
    assert dpjax.check is importlib.import_module("dpjax.verify.check").check
    assert dpjax.least_n is importlib.import_module("dpjax.trials.sweep").least_n


@pytest.mark.parametrize("name", sorted(SLOW_EXAMPLES))
def test_slow_examples_exist(name):
    assert ">>>" in pkgutil.resolve_name(name).__doc__
