"""`dpjax.enable_cache` keeps programs on disk: in the directory given, in the one configured in JAX, or in the user's cache directory."""

import json
import os
import pathlib
import subprocess
import sys

import pytest

import dpjax

USE = """
import json, sys
import jax, jax.numpy as jnp
import dpjax
jax.jit(lambda x: x + 1)(jnp.ones(2))  # what was compiled before is no obstacle
place = dpjax.enable_cache(*sys.argv[1:])
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
jax.jit(lambda x: jnp.sort(x) * 2)(jnp.ones(7))
print(json.dumps([str(place), place.exists() and any(place.iterdir())]))
"""


def used(*arguments, **environment):
    """(the directory, whether a program is kept there) after running USE in a separate process."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("JAX_")}
    done = subprocess.run(
        [sys.executable, "-c", USE, *map(str, arguments)], env=clean | environment, capture_output=True, check=True
    )
    return json.loads(done.stdout)


def test_programs_are_kept_in_the_users_cache(tmp_path):
    assert used(XDG_CACHE_HOME=str(tmp_path)) == [str(tmp_path / "dpjax"), True]


@pytest.mark.slow  # the neighbouring tests cover a directory that is given
def test_programs_are_kept_where_jax_was_told(tmp_path):
    assert used(XDG_CACHE_HOME="/nowhere", JAX_COMPILATION_CACHE_DIR=str(tmp_path)) == [str(tmp_path), True]


def test_a_directory_given_comes_first(tmp_path):
    there, here = tmp_path / "there", tmp_path / "here"
    assert used(here, JAX_COMPILATION_CACHE_DIR=str(there)) == [str(here), True]


@pytest.mark.slow
def test_nothing_is_kept_where_jax_was_told_not_to(tmp_path):
    assert used(tmp_path, JAX_ENABLE_COMPILATION_CACHE="false") == [str(tmp_path), False]


def test_a_file_is_no_directory(tmp_path):
    file = pathlib.Path(tmp_path, "file")
    file.write_text("")
    with pytest.raises(NotADirectoryError, match="directory"):
        dpjax.enable_cache(file)
    with pytest.raises(TypeError):
        dpjax.enable_cache(3)
