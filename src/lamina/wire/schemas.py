"""The classes of a message version, made from its definition in `message_table` on first use.

Owns the table's notation. A definition is that of all versions, as Kafka's own are; it begins with the message's name
and versions, and has one line for each field, deeper by one space in a structure:

    FetchRequest 4-18
     replica_id int32 4-14 default=-1
     topics []FetchTopic
      topic string 4-12
      topic_id uuid 13+
     rack_id string 11+ null=12+ default=""

A line is a name, a type (`[]` for an array, a capital letter for a structure) and, as far as there are any, the
versions that have the field (else: all in which its structure is), `null` or the versions in which it may be null, its
tag, and what it is by default: `{}` stands for a structure of defaults, a number for milliseconds where the type is a
duration. A UUID may always be `None`, which is its zero. A structure's fields are given at its first mention.

An API's text is read when one of its versions is first asked for. Must not know how a field is written or read.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from functools import cache
from typing import Any

from lamina.wire.fields import REQUIRED, Entity, Field
from lamina.wire.message_table import MESSAGES

_DEFAULTS: dict[str, Any] = {"null": None, "true": True, "false": False, '""': "", "[]": ()}
_DURATIONS = ("timedelta_i32", "timedelta_i64")


@dataclass(frozen=True, slots=True)
class _Line:
    """A field as the table has it, whatever the version."""

    name: str
    type: str
    is_array: bool
    versions: range
    null_versions: range
    tag: int | None
    default: str | None

    @property
    def is_structure(self) -> bool:
        return self.type[0].isupper()


@dataclass(frozen=True, slots=True)
class _Definition:
    name: str
    versions: range
    structures: dict[str, list[_Line]]


def message_class(api_key: int, api_version: int, *, is_request: bool, is_flexible: bool) -> type[Entity] | None:
    """The class of a request or response, with those of its structures; ``None`` where there is no such version."""
    if api_key not in MESSAGES:
        return None
    definition = _definitions(api_key)[0 if is_request else 1]
    if api_version not in definition.versions:
        return None
    return _Classes(definition, api_key, api_version, is_flexible).of(definition.name)


class _Classes:
    """Those of one message version; a structure that is mentioned twice is one class."""

    def __init__(self, definition: _Definition, api_key: int, api_version: int, is_flexible: bool) -> None:
        self._definition = definition
        self._attributes = {"__api_key__": api_key, "__version__": api_version, "__flexible__": is_flexible}
        self._made: dict[str, type[Entity]] = {}

    def of(self, structure: str) -> type[Entity]:
        made = self._made.get(structure)
        if made is None:
            lines = self._definition.structures[structure]
            version = self._attributes["__version__"]
            fields = tuple(self._field(line, version) for line in lines if version in line.versions)
            slots = tuple(field.name for field in fields)
            made = type(structure, (Entity,), {"__slots__": slots, "__fields__": fields, **self._attributes})
            self._made[structure] = made
        return made

    def _field(self, line: _Line, version: int) -> Field:
        entity = self.of(line.type) if line.is_structure else None
        nullable = version in line.null_versions or (line.type == "uuid" and not line.is_array)
        default = REQUIRED if line.default is None else _default(line, entity)
        return Field(line.name, "entity" if entity else line.type, entity, nullable, line.is_array, line.tag, default)


def _default(line: _Line, entity: type[Entity] | None) -> Any:
    word = line.default
    assert word is not None
    if word == "{}":
        assert entity is not None
        return entity()
    if word in _DEFAULTS:
        return _DEFAULTS[word]
    return timedelta(milliseconds=int(word)) if line.type in _DURATIONS else int(word)


@cache
def _definitions(api_key: int) -> tuple[_Definition, _Definition]:
    """Of the request and of the response."""
    request, response = _read(MESSAGES[api_key])
    return request, response


def _read(text: str) -> Iterator[_Definition]:
    definition = None
    owners: list[str] = []
    """The types of the lines above that a line may belong to, by their depth."""
    for words in text.splitlines():
        depth = len(words) - len(words.lstrip())
        name, *rest = words.split()
        if depth == 0:
            if definition is not None:
                yield definition
            first, _, last = rest[0].partition("-")
            definition = _Definition(name, range(int(first), int(last) + 1), {name: []})
            owners = [name]
            continue
        assert definition is not None
        line = _read_line(name, rest, definition.versions)
        del owners[depth:]
        definition.structures[owners[-1]].append(line)
        owners.append(line.type)
        if line.is_structure:
            definition.structures.setdefault(line.type, [])
    assert definition is not None
    yield definition


def _read_line(name: str, words: list[str], all_versions: range) -> _Line:
    type_name, *rest = words
    versions, null_versions, tag, default = all_versions, range(0), None, None
    for word in rest:
        key, _, value = word.partition("=")
        if key == "null":
            null_versions = _read_versions(value, all_versions) if value else all_versions
        elif key == "tag":
            tag = int(value)
        elif key == "default":
            default = value
        else:
            versions = _read_versions(word, all_versions)
    element = type_name.removeprefix("[]")
    return _Line(name, element, element != type_name, versions, null_versions, tag, default)


def _read_versions(word: str, all_versions: range) -> range:
    first, dash, last = word.removesuffix("+").partition("-")
    return range(int(first), int(last) + 1 if dash else all_versions.stop)
