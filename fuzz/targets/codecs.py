"""Every codec with a limit: what a stream claims costs nothing, and memory stays near the limit."""

import resource
import sys

from fuzz.choices import Choices
from lamina.errors import CorruptMessage, MessageTooLarge, UnsupportedCompression
from lamina.records.batch import Codec
from lamina.records.codecs import compress, decompress

_LIMITS_BYTES = (1 << 10, 1 << 16, 1 << 20, 4 << 20)
_MOST_BYTES = 64 << 20
"""Room for a decoder's window and for what Python and the allocator keep."""


def one(data: bytes) -> None:
    choices = Choices(data)
    is_plain = choices.flag()
    codec_id = choices.number() % 8
    limit_bytes = choices.one_of(_LIMITS_BYTES)
    content = choices.rest()
    if is_plain and codec_id in set(Codec):
        content = bytes(compress(Codec(codec_id), content))
    peak_bytes = _peak_bytes()
    try:
        plain = bytes(decompress(codec_id, content, limit_bytes))
    except (CorruptMessage, MessageTooLarge, UnsupportedCompression):
        plain = None
    assert _peak_bytes() - peak_bytes <= _MOST_BYTES
    if plain is not None:
        assert len(plain) <= limit_bytes
        assert bytes(decompress(codec_id, compress(Codec(codec_id), plain), limit_bytes)) == plain


def _peak_bytes() -> int:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024
