"""`dpjax.enable_loop_kernels` adds a flag to those of the process, and numbers stay the same."""

import json
import os
import subprocess
import sys

import builders
import pytest

import dpjax
from dpjax.core import loops

OPTION = f"xla_cpu_small_while_loop_byte_threshold={loops.MOST_BYTES}"
WALK = """
import json, sys
import jax, jax.numpy as jnp
import dpjax
from dpjax.concepts import thresholds as concept
from dpjax.learners import pac, thresholds
from dpjax.trials import engine
if sys.argv[1:]:
    dpjax.enable_loop_kernels()

def loops(x):
    return jax.lax.fori_loop(0, 20, lambda i, x: x[::-1] * 1664525 + x, x)

text = jax.jit(loops).lower(jnp.arange(20_000, dtype=jnp.uint32)).compile().as_text()
experiment = pac.Experiment(
    learner=thresholds.binary_search(bits=40, epsilon=1.0),
    distribution=concept.log_uniform(bits=40),
    n=500,
    alpha=0.1,
    capacity=511,
)
counts = engine.count(pac.trial, experiment, root=engine.root_key(3), cell=0, trials=512)
print(json.dumps(["xla_cpu_small_call" in text, counts]))
"""


@pytest.fixture
def flags(monkeypatch):
    """A function that returns XLA_FLAGS after the call, given those before and the version of XLA."""

    def after(before, version="0.10.2"):
        monkeypatch.setenv("XLA_FLAGS", before)
        monkeypatch.setattr(loops.metadata, "version", lambda _: version)
        dpjax.enable_loop_kernels()
        return os.environ["XLA_FLAGS"]

    return after


def test_the_flag_is_set_once(flags):
    assert flags("") == f"--xla_backend_extra_options={OPTION}"
    assert flags(flags("")) == f"--xla_backend_extra_options={OPTION}"


def test_other_flags_and_options_stay(flags):
    assert flags("--xla_dump_to=x") == f"--xla_dump_to=x --xla_backend_extra_options={OPTION}"
    assert flags("--xla_backend_extra_options=xla_cpu_optimize_for_size=true --xla_dump_to=x") == (
        f"--xla_backend_extra_options={OPTION},xla_cpu_optimize_for_size=true --xla_dump_to=x"
    )


def test_what_the_user_said_stands(flags):
    said = "--xla_backend_extra_options=xla_cpu_small_while_loop_byte_threshold=0"
    assert flags(said) == said


@pytest.mark.parametrize("version", ["0.12.0", "0.12.0.1", "1.0.0"])
def test_nothing_is_set_where_xla_does_so_by_itself(flags, version):
    assert flags("", version) == ""


def walked(*arguments):
    """(whether a loop over 80 KB is one kernel, a count of trials) in a separate process."""
    clean = {name: value for name, value in os.environ.items() if name != "XLA_FLAGS"}
    done = subprocess.run([sys.executable, "-c", WALK, *arguments], env=clean, capture_output=True, check=True)
    return json.loads(done.stdout)


@pytest.mark.thorough
@builders.on_cpu
def test_loops_become_kernels_and_counts_stay():
    (_, before), (whole, after) = walked(), walked("whole")
    assert whole  # whatever the version of XLA
    assert before == after and 0 < before["failed"] < 512
