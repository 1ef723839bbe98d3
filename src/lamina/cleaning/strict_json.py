"""Frozen dataclasses as JSON and back, with nothing guessed.

A missing field, one too many or a value of another type is an error that names its place. Bytes are hex. Must not
know what the values mean.
"""

import json
from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from types import UnionType
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

T = TypeVar("T")

_NAMES: dict[Any, str] = {str: "text", int: "an integer", float: "a number", bool: "true or false", bytes: "hex text"}


class NotThatJson(ValueError):
    """One sentence about the place that is wrong."""


def dump_value(value: Any) -> Any:
    """``value`` as what ``json`` takes."""
    if is_dataclass(value):
        return {field.name: dump_value(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, tuple):
        return [dump_value(each) for each in value]
    return value


def parse_object(text: str | bytes) -> dict[str, Any]:
    """The JSON object that ``text`` is."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise NotThatJson(f"it is not JSON: {error}") from None
    if not isinstance(value, dict):
        raise NotThatJson("it is not a JSON object")
    return value


def load_value(kind: type[T], value: Any, place: str = "") -> T:
    """What :func:`dump_value` made ``value`` from; raises :class:`NotThatJson`."""
    loaded: T = _load(kind, value, place)
    return loaded


def _load(kind: Any, value: Any, place: str) -> Any:
    if isinstance(kind, UnionType):
        inner = next(each for each in get_args(kind) if each is not type(None))
        return None if value is None else _load(inner, value, place)
    if get_origin(kind) is tuple:
        if not isinstance(value, list):
            raise NotThatJson(f"{place} is not a list")
        return tuple(_load(get_args(kind)[0], each, f"{place}[{index}]") for index, each in enumerate(value))
    if is_dataclass(kind):
        return _load_dataclass(kind, value, place)
    return _load_plain(kind, value, place)


def _load_dataclass(kind: Any, value: Any, place: str) -> Any:
    if not isinstance(value, Mapping):
        raise NotThatJson(f"{place or 'it'} is not an object")
    prefix = f"{place}." if place else ""
    hints = get_type_hints(kind)
    names = {field.name for field in fields(kind)}
    for name in value:
        if name not in names:
            raise NotThatJson(f"{prefix}{name} is an unknown field")
    found = {}
    for field in fields(kind):
        if field.name in value:
            found[field.name] = _load(hints[field.name], value[field.name], prefix + field.name)
        elif field.default is MISSING:
            raise NotThatJson(f"{prefix}{field.name} is missing")
    return kind(**found)


def _load_plain(kind: Any, value: Any, place: str) -> Any:
    if kind is bytes and isinstance(value, str):
        try:
            return bytes.fromhex(value)
        except ValueError:
            pass
    elif kind is float and isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
    elif type(value) is kind:
        return value
    raise NotThatJson(f"{place} is {json.dumps(value)[:60]}, not {_NAMES[kind]}")
