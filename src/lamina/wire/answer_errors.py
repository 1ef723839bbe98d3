"""The errors in an answer, whichever API and version it has.

Owns the reading of fields named ``error_code``, in the message and in every structure inside it. Must not know any API.
"""

from collections.abc import Iterator
from functools import cache
from typing import Any

from lamina.wire.fields import Entity, fields_of


def error_codes(answer: Any) -> Iterator[int]:
    """Every error that is told, ``NONE`` left out."""
    schema: type[Entity] = type(answer)
    own, nested = _places(schema)
    if own and answer.error_code:
        yield int(answer.error_code)
    for name, is_array in nested:
        value = getattr(answer, name)
        if value is not None:
            for one in value if is_array else (value,):
                yield from error_codes(one)


@cache
def _places(schema: type[Entity]) -> tuple[bool, tuple[tuple[str, bool], ...]]:
    """Whether this structure tells an error, and its fields in which others do."""
    own, nested = False, []
    for field in fields_of(schema):
        if field.name == "error_code":
            own = True
        elif field.entity is not None and _tells_errors(field.entity):
            nested.append((field.name, field.is_array))
    return own, tuple(nested)


def _tells_errors(schema: type[Entity]) -> bool:
    own, nested = _places(schema)
    return own or bool(nested)
