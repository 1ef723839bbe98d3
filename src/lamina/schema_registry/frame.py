"""What stands before a value that has a schema: a zero byte, and the schema's id in four bytes, the highest first.

Pure. Must not know what the payload is.
"""

from struct import Struct

from lamina.schema_registry.errors import NotDecodable

_MAGIC = 0
_FRAME = Struct(">BI")


def is_framed(data: bytes) -> bool:
    return len(data) >= _FRAME.size and data[0] == _MAGIC


def unframed(data: bytes) -> tuple[int, bytes]:
    """The id of the schema, and the payload; raises NotDecodable."""
    if is_framed(data):
        return _FRAME.unpack_from(data)[1], data[_FRAME.size :]
    if data[:1] == bytes([_MAGIC]):
        raise NotDecodable(f"it has {len(data)} bytes, and a zero byte and a schema id take {_FRAME.size}")
    begins = f"begins with byte {data[0]}" if data else "is empty"
    raise NotDecodable(f"it {begins}, not with a zero byte and the id of a schema")
