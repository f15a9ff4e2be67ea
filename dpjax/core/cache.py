"""Compiled programs kept on disk: what took a minute to compile is read in a moment by the next process."""

import os
import pathlib

import jax
from jax.experimental.compilation_cache import compilation_cache

LEAST_SECONDS = 0.2  # what compiles faster is not worth a file


def enable_cache(directory: str | os.PathLike[str] | None = None) -> pathlib.Path:
    """Turns JAX's persistent compilation cache on.

    Args:
      directory: where programs are kept. By default where JAX keeps them already ($JAX_COMPILATION_CACHE_DIR), else in
        $XDG_CACHE_HOME/dpjax (~/.cache/dpjax). JAX_ENABLE_COMPILATION_CACHE=false turns the cache off whatever is said here.

    Returns:
      The directory.

    Raises:
      TypeError: directory is not a path. NotADirectoryError: it is a file.
    """
    told = jax.config.jax_compilation_cache_dir  # type: ignore[attr-defined]
    if directory is None and told is not None:
        return pathlib.Path(told)
    place = _home() if directory is None else pathlib.Path(directory).expanduser()
    if place.exists() and not place.is_dir():
        raise NotADirectoryError(f"directory must be a directory, got the file {place}")
    jax.config.update("jax_compilation_cache_dir", str(place))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", LEAST_SECONDS)
    compilation_cache.reset_cache()  # programs in memory are not lost; else JAX would stay with its first directory
    return place


def _home() -> pathlib.Path:
    return pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "dpjax"
