"""How many entries an answer or a request has, whichever API and version it has.

Owns the reading of its arrays, in the message and in every structure inside it. Must not know any API.
"""

from functools import cache
from typing import Any

from lamina.wire.fields import INTEGER_TYPES, Entity, fields_of


def has_entries(answer: Any, count: int) -> bool:
    """Whether it has so many entries. Numbers do not count: an array of them is encoded at once."""
    return _missing(answer, count, counts_numbers=False) <= 0


def names_entries(request: Any, count: int) -> bool:
    """Whether it names so many things. Numbers count: the response has a structure for each partition."""
    return _missing(request, count, counts_numbers=True) <= 0


def _missing(entity: Any, count: int, *, counts_numbers: bool) -> int:
    """How many of ``count`` entries it does not have; looks no further when there are enough."""
    schema: type[Entity] = type(entity)
    for name, is_array, has_more in _places(schema, counts_numbers=counts_numbers):
        value = getattr(entity, name)
        if not value:
            continue
        if is_array:
            count -= len(value)
        if has_more:
            for one in value if is_array else (value,):
                if count <= 0:
                    return count
                count = _missing(one, count, counts_numbers=counts_numbers)
    return count


@cache
def _places(schema: type[Entity], *, counts_numbers: bool) -> tuple[tuple[str, bool, bool], ...]:
    """The fields that hold entries: their names, whether they are arrays, and whether there are more in each."""
    places = []
    for field in fields_of(schema):
        has_more = field.entity is not None and bool(_places(field.entity, counts_numbers=counts_numbers))
        if has_more or (field.is_array and (counts_numbers or field.wire_type not in INTEGER_TYPES)):
            places.append((field.name, field.is_array, has_more))
    return tuple(places)
