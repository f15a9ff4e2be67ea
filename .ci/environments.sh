# README's test command, in an environment of a given name. Sourced by the scripts beside it, in the repository's root.

# The line after the marker `<!-- test command -->` and its fence, word for word.
readme_command() {
  awk '/<!-- test command -->/ {found = 1; next} found && /^```/ {fences++; next} found && fences == 1 {print} fences == 2 {exit}' README.md
}

# run_tests ENVIRONMENT PYTHON [CONSTRAINTS]: with another environment than .venv, another Python than python3, or the versions in a file.
run_tests() {
  local command
  command=$(readme_command)
  [ -n "$command" ] || { echo "README.md has no test command" >&2; return 1; }
  command=${command//.venv/$1}
  command=${command/python3/$2}
  # A clean checkout has no environment; one that is there may hold anything.
  rm -rf "$1"
  echo "$command${3:+   # versions: $3}"
  (if [ -n "${3:-}" ]; then export PIP_CONSTRAINT=$3; fi; eval "$command")
}

# The newest Python of a minor version (3.13) that pyenv has installed; nothing if there is none.
pyenv_python() {
  local root=${PYENV_ROOT:-$HOME/.pyenv}
  ls -d "$root"/versions/"$1".*/bin/python 2>/dev/null | sort -V | tail -n 1
}
