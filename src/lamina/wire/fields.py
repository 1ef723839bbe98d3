"""What a message is made of: fields in wire order, and the values that have them.

Owns `Field`, which the two compilers read, and `Entity`, the immutable value whose classes `schemas` makes. Must not
know how a field is written or read, nor where its description comes from.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Final, Self

FIXED_FORMATS = {
    "bool": "?",
    "int8": "b",
    "int16": "h",
    "int32": "i",
    "int64": "q",
    "uint8": "B",
    "uint16": "H",
    "uint32": "I",
    "uint64": "Q",
    "float64": "d",
    "error_code": "h",
    "uuid": "16s",
    "timedelta_i32": "i",
    "timedelta_i64": "q",
    "datetime_i64": "q",
}
"""Wire types of one size as `struct` formats."""

INTEGER_TYPES = frozenset({"int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"})

REQUIRED: Final = object()
"""The default of a field that has none."""


class Schema(type):
    """The class of an entity. Without a metaclass mypy takes a class for unhashable, and so for no key of a cache."""


class Entity(metaclass=Schema):
    """A message of one version, or a structure inside one. Made with keywords, compared by value, never changed."""

    __slots__ = ()
    __api_key__: ClassVar[int]
    __version__: ClassVar[int]
    __flexible__: ClassVar[bool]
    """Whether it has compact lengths and tagged fields."""
    __fields__: "ClassVar[tuple[Field, ...]]"

    def __init__(self, **values: Any) -> None:
        compiled = _compiled_init(type(self))
        type(self).__init__ = compiled  # type: ignore[method-assign]
        compiled(self, **values)

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"{type(self).__name__} cannot be changed.")

    def replace(self, **values: Any) -> Self:
        """The same with other values for some fields."""
        return type(self)(**{field.name: getattr(self, field.name) for field in self.__fields__} | values)

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and self._values() == other._values()

    def __hash__(self) -> int:
        return hash(self._values())

    def __repr__(self) -> str:
        names = (field.name for field in self.__fields__)
        return f"{type(self).__name__}({', '.join(f'{name}={getattr(self, name)!r}' for name in names)})"

    def _values(self) -> tuple[Any, ...]:
        return tuple([getattr(self, field.name) for field in self.__fields__])


@dataclass(frozen=True, slots=True)
class Field:
    """One field of a message version."""

    name: str
    wire_type: str
    """"entity" for a nested structure."""
    entity: type[Entity] | None
    nullable: bool
    """Of an array: whether the array may be null. Elements never are, save UUIDs, whose zero is `None`."""
    is_array: bool
    tag: int | None
    default: Any
    """What it is if nothing is said, or `REQUIRED`. A tagged field always has one, which is left out on the wire."""

    @property
    def fixed_format(self) -> str | None:
        """Its `struct` format if it always takes the same number of bytes."""
        return None if self.is_array else FIXED_FORMATS.get(self.wire_type)


def fields_of(entity_type: type[Entity]) -> tuple[Field, ...]:
    """The fields in wire order; tagged ones stand among the others."""
    return entity_type.__fields__


def setter_of(entity_type: type[Entity], field: Field) -> Callable[[Entity, Any], None]:
    """Fills the field of an entity that is being made, in a fifth of the time that `object.__setattr__` takes."""
    setter: Callable[[Entity, Any], None] = entity_type.__dict__[field.name].__set__
    return setter


def _compiled_init(entity_type: type[Entity]) -> Callable[..., None]:
    """`__init__(self, *, a, b=…)`, compiled when the first one is made: of many classes a broker makes none."""
    names: dict[str, Any] = {}
    parameters, lines = [], ["pass"]
    for at, field in enumerate(entity_type.__fields__):
        names[f"set{at}"] = setter_of(entity_type, field)
        names[f"default{at}"] = field.default
        parameters.append(field.name if field.default is REQUIRED else f"{field.name}=default{at}")
        lines.append(f"set{at}(self, {field.name})")
    keywords = ", ".join(["self", "*", *parameters]) if parameters else "self"
    exec(f"def __init__({keywords}):\n " + "\n ".join(lines), names)
    compiled: Callable[..., None] = names["__init__"]
    compiled.__qualname__ = f"{entity_type.__name__}.__init__"
    return compiled
