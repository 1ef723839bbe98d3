"""An Avro schema: parsed by fastavro, with and without its logical types.

Whatever it is, it stands in a record of one field, which takes no bytes of its own: so a schema that is a union or a
plain type needs no case of its own, and the schemas that it refers to are kept with it. Must not know bytes.
"""

import json
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from lamina.schema_registry.errors import NotDecodable, RegistryError, in_short

WHOLE = "value"
"""The one field's name."""
_HOLDER = "lamina_value"
_KEPT = "lamina.default"
_BYTES = ("bytes", "fixed")


@dataclass(frozen=True, slots=True)
class AvroSchema:
    plain: Any
    """As fastavro takes it, without logical types: numbers stay what they are on the wire."""
    logical: Any
    """The same with them."""

    @property
    def root(self) -> Any:
        return self.logical["fields"][0]["type"]

    @property
    def named(self) -> dict[str, Any]:
        """Records, enums and fixed types by their full names."""
        found: dict[str, Any] = self.logical["__named_schemas"]
        return found


def parse_avro(text: str, references: tuple[str, ...] = ()) -> AvroSchema:
    """Raises NotDecodable where it is no schema, RegistryError where fastavro is not installed."""
    fastavro = load_fastavro()
    try:
        trees = [json.loads(each) for each in (*references, text)]
        plain, logical = ([_prepared(each, is_logical) for each in trees] for is_logical in (False, True))
        return AvroSchema(_parsed(fastavro, plain), _parsed(fastavro, logical))
    except RecursionError:
        raise NotDecodable("its Avro schema is nested too deeply") from None
    except Exception as error:  # fastavro has no one error for what is no schema: a TypeError, a KeyError, others.
        raise NotDecodable(f"its Avro schema is not valid ({type(error).__name__}: {in_short(error)})") from error


def load_fastavro() -> ModuleType:
    try:
        import fastavro
    except ImportError as error:
        raise RegistryError("Avro needs fastavro, which is not installed: pip install 'lamina[registry]'") from error
    module: ModuleType = fastavro
    return module


def _parsed(fastavro: ModuleType, trees: list[Any]) -> Any:
    named: dict[str, Any] = {}
    *references, tree = trees
    for reference in references:
        fastavro.parse_schema(reference, named_schemas=named)
    holder = {"type": "record", "name": _HOLDER, "fields": [{"name": WHOLE, "type": tree}]}
    parsed = fastavro.parse_schema(holder, named_schemas=named)
    for record in [parsed, *parsed["__named_schemas"].values()]:
        for field in record.get("fields", ()):
            if _KEPT in field:
                field["default"] = _default(field["type"], field.pop(_KEPT))
    return parsed


def _prepared(tree: Any, is_logical: bool) -> Any:
    """Without logical types, if those are not wanted, and with defaults where fastavro does not look at them.

    It would refuse a schema for a default of another type, which other libraries write and take.
    """
    if isinstance(tree, list):
        return [_prepared(each, is_logical) for each in tree]
    if not isinstance(tree, dict):
        return tree
    bare = {name: each for name, each in tree.items() if name != "logicalType" or is_logical}
    for name in ("type", "items", "values"):
        if name in bare:
            bare[name] = _prepared(bare[name], is_logical)
    if isinstance(bare.get("fields"), list):
        bare["fields"] = [_with_kept_default(_prepared(each, is_logical)) for each in bare["fields"]]
    return bare


def _with_kept_default(field: Any) -> Any:
    if isinstance(field, dict) and "default" in field:
        field[_KEPT] = field.pop("default")
    return field


def _default(kind: Any, given: Any) -> Any:
    """As it is read: a schema writes bytes as text, a character for each."""
    if isinstance(kind, list):
        return _default(kind[0], given) if kind else given
    if isinstance(kind, dict):
        return _default(kind["type"], given)
    return given.encode("latin-1") if kind in _BYTES and isinstance(given, str) else given
