"""The settings of an experiment, and changes to them: `--set key=value`.

Settings are plain data: numbers, words, lists, and groups of them. A key names one setting; inside a group it is a path with
dots, such as "success.bits".
"""

import json
import math
import types
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from dpjax.core import arguments

Settings = Mapping[str, Any]

# What these names mean in every experiment, whatever group they are in.
_FRACTIONS = ("alpha", "beta", "delta", "level", "rtol", "xi")
_COUNTS = ("bits", "draws", "trials", "users")
_GROUPS_OF_COUNTS = ("bits.", "draws.")  # one for each series


def changed(
    settings: Settings, changes: Sequence[str], *, words: Mapping[str, tuple[str, ...]] = types.MappingProxyType({})
) -> dict[str, Any]:
    """The settings with every change made, each new value of the same type as the old one.

    Args:
        settings: the settings of a preset; they are left as they are.
        changes: texts "key=value". The elements of a list are separated by commas, with or without brackets around them.
        words: the allowed values of some settings that are words, by key.

    Returns:
        New settings with the same keys.

    Raises:
        ValueError: an unknown key, or a value that is not of the type, or is out of the range, of that setting.

    Example:
        >>> changed({"epsilon": 1.0, "success": {"sizes": [8, 16]}}, ["epsilon=2", "success.sizes=4,9"])
        {'epsilon': 2.0, 'success': {'sizes': [4, 9]}}
    """
    result = json.loads(json.dumps(settings))
    known = dict(_leaves(result))
    for change in changes:
        # Keys may hold "=" themselves: the names of series do.
        key = max((key for key in known if change.startswith(f"{key}=")), key=len, default=None)
        if key is None:
            name, equals, _ = change.partition("=")
            meant = arguments.meant(name, known) if equals else ""
            raise ValueError(f"--set must be KEY=VALUE with KEY one of {', '.join(known)}, got {change!r}{meant}")
        *groups, last = known[key]
        place = result
        for group in groups:
            place = place[group]
        place[last] = _value(key, change.removeprefix(f"{key}="), place[last])
        if key in words:
            arguments.choice(key, place[last], words[key])
    return result


def _leaves(settings: Settings, above: tuple[str, ...] = ()) -> Iterator[tuple[str, tuple[str, ...]]]:
    """(key, path) of every setting."""
    for name, value in settings.items():
        path = (*above, name)
        if isinstance(value, Mapping):
            yield from _leaves(value, path)
        else:
            yield ".".join(path), path


def _value(key: str, text: str, before: Any) -> Any:
    """The text as a value of the type of `before`, in the range that the setting's name implies."""
    value = text if isinstance(before, str) else _parsed(key, text, before)
    if value == [] and before != []:
        raise ValueError(f"--set {key} must hold at least one value, got none")
    for each in value if isinstance(value, list) else [value]:
        _check(key, each)
    return value


def _parsed(key: str, text: str, before: Any) -> Any:
    """A number, or a list, of numbers or of words if the old list holds only these."""
    if isinstance(before, list) and not text.startswith("["):
        if {type(each) for each in before} == {str} and '"' not in text:
            return [word.strip() for word in text.split(",") if word.strip()]
        text = f"[{text}]"
    try:
        value = json.loads(text)
        if not isinstance(before, list):
            return _number(value, type(before))
        kinds = {type(each) for each in before}
        return [_number(each, *kinds) for each in value] if len(kinds) == 1 and kinds <= {int, float} else list(value)
    except (ValueError, TypeError, OverflowError):
        raise ValueError(
            f"--set {key} must be of the type of {before!r} ({type(before).__name__}), got {text!r}"
        ) from None


def _number(value: Any, kind: type) -> Any:
    """A finite number of this type; an integer may stand for a float, but true and false for booleans only."""
    if isinstance(value, bool) != (kind is bool) or not isinstance(value, int if kind is int else int | float):
        raise TypeError
    if kind is float and not math.isfinite(value):
        raise ValueError
    return kind(value)


def _check(key: str, value: Any) -> None:
    """ValueError if every experiment would refuse a setting of this name with that value."""
    name = key.rpartition(".")[2]
    if name == "epsilon":
        arguments.epsilon(value, key)
    elif name in _FRACTIONS:
        arguments.fraction(key, value)
    elif name in _COUNTS or key.startswith(_GROUPS_OF_COUNTS):
        arguments.integer(key, value, at_least=1)
