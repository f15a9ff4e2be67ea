"""How many bytes a trial touches at a time, read off the traced program of one trial."""

from collections.abc import Iterable
from typing import Any

_BETWEEN_PLACES = {  # operations that may preserve the shape and yet read other positions
    *("sort", "rev", "cumsum", "cumprod", "cummax", "cummin", "cumlogsumexp", "transpose", "fft"),
    *("gather", "dynamic_slice", "dynamic_update_slice", "scatter", "scatter-add"),
    *("dot_general", "conv_general_dilated", "cholesky", "triangular_solve", "custom_vmap_call"),
}


def largest(program: Any, owned: Iterable[bool]) -> int:
    """Bytes that the largest operation of a program reads and writes, counting only values that depend on the `owned` inputs.

    A batch of trials takes this many bytes times the number of trials; what does not depend on a trial's key exists once for all of them.
    Of an elementwise operation only the output counts, since compilers mostly fuse it with the operation that makes its operands.

    >>> import jax, jax.numpy as jnp
    >>> program = jax.make_jaxpr(lambda x, table: table[x] + x)(jnp.int32(3), jnp.arange(1000)).jaxpr
    >>> largest(program, [True, False]), largest(program, [True, True])
    (8, 4008)
    >>> number_by_number, summed = (
    ...     jax.make_jaxpr(function)(jnp.int32(3), jnp.arange(1000)).jaxpr
    ...     for function in (lambda x, table: 2 * table + x, lambda x, table: jnp.cumsum(2 * table + x))
    ... )
    >>> largest(number_by_number, [True, False]), largest(summed, [True, False])
    (4000, 8000)
    >>> square = jax.ShapeDtypeStruct((100, 100), jnp.float32)
    >>> largest(jax.make_jaxpr(lambda a, b: a @ b)(square, square).jaxpr, [True, True])
    120000
    """
    own = {id(variable) for variable, depends in zip(program.invars, owned, strict=True) if depends}
    sizes = [0]
    for equation in program.eqns:
        reads = [id(value) in own for value in equation.invars]
        if not any(reads):
            continue
        own.update(map(id, equation.outvars))
        inner = _inside(equation)
        sizes += [largest(part, _handed_on(equation, reads, len(part.invars))) for part in inner]
        if not inner:
            sizes.append(_bytes(equation, own))
    return max(sizes)


def _bytes(equation: Any, own: set[int]) -> int:
    """Bytes that an operation touches among the values that depend on a trial."""
    by_number = _works_by_number(equation)
    values = equation.outvars if by_number else (*equation.invars, *equation.outvars)
    return sum(value.aval.size * value.aval.dtype.itemsize for value in values if id(value) in own)


def _works_by_number(equation: Any) -> bool:
    """Whether each number of the results is computed from the operands at its own position, or is a repetition of an operand."""
    if equation.primitive.name == "broadcast_in_dim":
        return True
    shapes = {result.aval.shape for result in equation.outvars}
    same = all(value.aval.shape in {(), *shapes} for value in equation.invars)
    return len(shapes) == 1 and same and equation.primitive.name not in _BETWEEN_PLACES


def _handed_on(equation: Any, reads: list[bool], count: int) -> list[bool]:
    """Which inputs of a program inside an operation (its last operands) depend on a trial; all that a loop changes count as dependent."""
    handed = reads[len(reads) - count :]
    constants = _constants(equation, count)
    return handed[:constants] + [True] * (count - constants)


def _constants(equation: Any, count: int) -> int:
    """How many of the inputs of a program inside an operation stay constant: all, if it is not a loop."""
    name, given = equation.primitive.name, equation.params
    if name == "scan" and "ft_in" in given:  # since JAX 0.12: trees of the constants, the state, and what is scanned
        return len(list(given["ft_in"].unpack()[0]))
    return given.get({"while": "body_nconsts", "scan": "num_consts"}.get(name), count)


def _inside(equation: Any) -> list[Any]:
    """The programs inside an operation that run for all trials at once; those of `staging.one_by_one` do not."""
    return [] if equation.primitive.name == "custom_vmap_call" else programs(equation)


def programs(equation: Any) -> list[Any]:
    """The programs inside an operation: its body, its branches."""
    return [part for value in equation.params.values() for part in _members(value) if hasattr(part, "eqns")]


def _members(value: Any) -> tuple[Any, ...]:
    """The members of a tuple or list, or the value alone."""
    return tuple(value) if isinstance(value, tuple | list) else (value,)
