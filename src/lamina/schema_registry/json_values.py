"""A decoded value as JSON, on one line. Pure. Must not know schemas.

Times are texts of ISO 8601, decimals texts, bytes base64, and numbers that JSON does not have are NaN, Infinity and
-Infinity as texts.
"""

import json
from base64 import b64encode
from datetime import UTC, date, datetime, time
from decimal import Decimal
from math import isfinite
from typing import Any, NoReturn
from uuid import UUID

from lamina.schema_registry.errors import NotDecodable


def json_text(value: Any) -> str:
    try:
        return _dumped(value)
    except ValueError:
        return _dumped(_with_texts_for_odd_numbers(value))


def checked_json(payload: bytes) -> str:
    """The payload's own text; raises NotDecodable where it is not JSON."""
    try:
        text = payload.decode()
        json.loads(text, parse_constant=_refuse)
    except RecursionError:
        raise NotDecodable("its JSON is nested too deeply") from None
    except ValueError as error:
        raise NotDecodable(f"it is not JSON ({error})") from error
    return text


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is no JSON")


def _dumped(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False, default=_simple)


def _simple(value: Any) -> Any:
    if isinstance(value, datetime):
        is_zoned = value.tzinfo is not None
        return f"{value.astimezone(UTC).replace(tzinfo=None).isoformat()}Z" if is_zoned else value.isoformat()
    if isinstance(value, (date, time)):
        return value.isoformat()
    if isinstance(value, Decimal):
        return format(value, "f")
    if isinstance(value, UUID):
        return str(value)
    if isinstance(value, (bytes, bytearray)):
        return b64encode(value).decode()
    raise TypeError(f"{type(value).__name__} is not a value of Avro")


def _with_texts_for_odd_numbers(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _with_texts_for_odd_numbers(each) for name, each in value.items()}
    if isinstance(value, list):
        return [_with_texts_for_odd_numbers(each) for each in value]
    if isinstance(value, float) and not isfinite(value):
        return "NaN" if value != value else "Infinity" if value > 0 else "-Infinity"
    return value
