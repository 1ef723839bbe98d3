import gzip
import subprocess
import sys
from contextlib import suppress

import cramjam
import lz4.frame
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.errors import CorruptMessage, MessageTooLarge, UnsupportedCompression
from lamina.records.batch import Codec
from lamina.records.codecs import DEFAULT_LEVELS, compress, decompress, decompress_in_pieces, has_linked_lz4_blocks

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

MIB = 1024 * 1024
COMPRESSING = [codec for codec in Codec if codec is not Codec.NONE]
REAL_CODECS = pytest.mark.parametrize("codec", COMPRESSING, ids=lambda codec: codec.name)

TEXT = b"".join(b"%d bottles on the wall, " % number for number in range(10_000))
"""Longer than any block of any codec, and no block like another."""

data = st.binary(max_size=300) | st.builds(
    lambda unit, times: unit * times, st.binary(max_size=9), st.integers(0, 40_000)
)


@given(st.sampled_from(Codec), data)
def test_whatever_is_compressed_comes_back_within_exactly_its_size(codec: Codec, plain: bytes) -> None:
    packed = compress(codec, memoryview(plain))
    assert decompress(codec, memoryview(packed), len(plain)) == plain


@given(st.sampled_from(Codec), data, st.integers(0, 9))
def test_pieces_are_the_whole_and_refuse_what_the_whole_refuses(codec: Codec, plain: bytes, cut: int) -> None:
    packed = bytes(compress(codec, plain))
    packed = packed[: max(len(packed) - cut, 0)]
    try:
        whole = bytes(decompress(codec, packed, len(plain)))
    except CorruptMessage:
        with pytest.raises(CorruptMessage):
            list(decompress_in_pieces(codec, packed))
    else:
        assert b"".join(decompress_in_pieces(codec, packed)) == whole


@REAL_CODECS
def test_one_byte_over_the_limit_is_too_large(codec: Codec) -> None:
    packed = compress(codec, TEXT)
    assert decompress(codec, packed, len(TEXT)) == TEXT
    with pytest.raises(MessageTooLarge):
        decompress(codec, packed, len(TEXT) - 1)


@REAL_CODECS
def test_cut_data_and_data_with_something_after_it_is_corrupt(codec: Codec) -> None:
    packed = bytes(compress(codec, TEXT))
    for broken in (
        b"",
        packed[:1],
        packed[:7],
        packed[: len(packed) // 2],
        packed[:-1],
        packed + b"\x00",
        packed + packed[:9],
    ):
        with pytest.raises(CorruptMessage):
            decompress(codec, broken, MIB)


@given(st.sampled_from(COMPRESSING), st.binary(max_size=100), st.booleans(), st.data())
def test_arbitrary_bytes_give_a_kafka_error_or_data_within_the_limit(
    codec: Codec, noise: bytes, keeps_head: bool, draw: st.DataObject
) -> None:
    packed = bytes(compress(codec, TEXT[:400]))
    cut = draw.draw(st.integers(0, len(packed)))
    with suppress(CorruptMessage, MessageTooLarge):
        assert len(decompress(codec, packed[:cut] + noise if keeps_head else noise, 1000)) <= 1000


@pytest.mark.parametrize("codec_id", [5, 6, 7])
def test_an_id_that_names_no_codec_is_unsupported(codec_id: int) -> None:
    with pytest.raises(UnsupportedCompression):
        decompress(codec_id, b"", MIB)


def test_concatenated_gzip_members_and_zstd_frames_are_one_stream_as_in_java() -> None:
    assert decompress(Codec.GZIP, gzip.compress(b"one ") + gzip.compress(b"two"), 7) == b"one two"
    frames = zstd.compress(b"one ") + zstd.compress(b"") + zstd.compress(b"two")
    assert decompress(Codec.ZSTD, frames, 7) == b"one two"
    with pytest.raises(MessageTooLarge):
        decompress(Codec.ZSTD, frames, 6)


def test_a_stream_of_countless_empty_frames_is_corrupt_and_soon_found_out() -> None:
    for codec, empty in ((Codec.GZIP, gzip.compress(b"")), (Codec.ZSTD, zstd.compress(b""))):
        assert decompress(codec, empty * 1000, 0) == b""
        with pytest.raises(CorruptMessage, match="follow"):
            decompress(codec, empty * 1001, 0)


def test_a_second_lz4_frame_is_corrupt_because_java_would_not_see_it() -> None:
    with pytest.raises(CorruptMessage, match="follow"):
        decompress(Codec.LZ4, lz4.frame.compress(b"one") + lz4.frame.compress(b"two"), MIB)


def test_lz4_is_written_as_java_writes_it() -> None:
    """Version 1, independent blocks of 64 KiB, neither content size nor checksums (protocol.md §2.35)."""
    packed = compress(Codec.LZ4, TEXT)
    assert bytes(packed[:6]).hex() == "04224d186040"
    assert not has_linked_lz4_blocks(packed)


def test_linked_lz4_blocks_with_size_and_checksums_are_read_and_told_apart() -> None:
    linked = lz4.frame.compress(
        TEXT,
        block_linked=True,
        block_size=lz4.frame.BLOCKSIZE_MAX64KB,
        content_checksum=True,
        block_checksum=True,
    )
    assert has_linked_lz4_blocks(linked)
    assert decompress(Codec.LZ4, linked, len(TEXT)) == TEXT


def test_an_lz4_frame_that_lies_about_its_content_size_is_corrupt() -> None:
    frame = lz4.frame.compress(b"x" * 100, store_size=True, block_linked=False)
    assert frame[6:14] == (100).to_bytes(8, "little")
    # The same frame with another size needs the right header checksum: let the library write it.
    context = lz4.frame.create_compression_context()
    lying = lz4.frame.compress_begin(context, source_size=2**40, block_linked=False)
    body = frame[15:]
    with pytest.raises(CorruptMessage):
        decompress(Codec.LZ4, lying + body, MIB)


def test_snappy_is_written_as_javas_stream_of_32_kib_blocks() -> None:
    packed = bytes(compress(Codec.SNAPPY, TEXT[:40_000]))
    assert packed[:16].hex() == "82534e41505059000000000100000001"
    first = int.from_bytes(packed[16:20], "big")
    assert bytes(cramjam.snappy.decompress_raw(packed[20 : 20 + first])) == TEXT[: 32 * 1024]
    second = packed[20 + first + 4 :]
    assert bytes(cramjam.snappy.decompress_raw(second)) == TEXT[32 * 1024 : 40_000]


def test_a_bare_snappy_block_is_read_as_librdkafka_sends_it() -> None:
    block = bytes(cramjam.snappy.compress_raw(TEXT))
    assert decompress(Codec.SNAPPY, block, len(TEXT)) == TEXT
    with pytest.raises(MessageTooLarge):
        decompress(Codec.SNAPPY, block, len(TEXT) - 1)


def test_a_snappy_block_that_claims_4_gib_is_too_large_and_one_without_a_size_corrupt() -> None:
    with pytest.raises(MessageTooLarge):
        decompress(Codec.SNAPPY, b"\xff\xff\xff\xff\x0f\x00a", 64 * MIB)
    with pytest.raises(CorruptMessage):
        decompress(Codec.SNAPPY, b"\xff\xff\xff\xff\xff\xff", 64 * MIB)
    with pytest.raises(CorruptMessage, match="a snappy block of 7 bytes claims to hold 4294967295"):
        list(decompress_in_pieces(Codec.SNAPPY, b"\xff\xff\xff\xff\x0f\x00a"))


def test_the_densest_snappy_block_is_believed() -> None:
    block = cramjam_block(bytes(MIB))
    assert b"".join(decompress_in_pieces(Codec.SNAPPY, block)) == bytes(MIB)


@pytest.mark.parametrize("length", ["ffffffff", "7fffffff", "00000009"])
def test_a_snappy_stream_that_lies_about_a_block_is_corrupt(length: str) -> None:
    stream = bytes.fromhex("82534e41505059000000000100000001" + length) + cramjam_block(b"abc")
    with pytest.raises(CorruptMessage):
        decompress(Codec.SNAPPY, stream, MIB)


def cramjam_block(plain: bytes) -> bytes:
    return bytes(cramjam.snappy.compress_raw(plain))


@pytest.mark.parametrize(
    ("name", "decoded_mib", "limit_mib", "outcome"),
    [
        ("zstd", 1024, 1, "MessageTooLarge"),
        ("zstd", 1024, 64, "MessageTooLarge"),
        ("zstd", 64, 64, str(64 * MIB)),
        ("zstd-wide", 1024, 64, "MessageTooLarge"),
        ("zstd-wide", 20, 64, str(21 * MIB)),
        ("gzip", 256, 64, "MessageTooLarge"),
        ("gzip", 64, 64, str(64 * MIB)),
        ("lz4", 256, 64, "MessageTooLarge"),
        ("lz4", 64, 64, str(64 * MIB)),
        ("snappy", 256, 64, "MessageTooLarge"),
        ("snappy", 64, 64, str(64 * MIB)),
    ],
)
def test_decompressing_takes_at_most_the_limit_and_16_mib(
    name: str, decoded_mib: int, limit_mib: int, outcome: str
) -> None:
    arguments = [name, str(decoded_mib * MIB), str(limit_mib * MIB)]
    command = [sys.executable, "-m", "tests.records.measure_peak", *arguments]
    printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
    assert printed[0] == outcome
    assert int(printed[1]) <= (limit_mib + 16) * MIB


@pytest.mark.parametrize(("codec", "low", "high"), [(Codec.GZIP, 1, 9), (Codec.LZ4, 3, 17), (Codec.ZSTD, -131072, 22)])
def test_a_higher_level_compresses_better_and_is_read_the_same(codec: Codec, low: int, high: int) -> None:
    plain = b"".join(b"%d squared is %d, " % (number, number**2) for number in range(3000))
    smaller, larger = (bytes(compress(codec, plain, level)) for level in (high, low))
    assert len(smaller) < len(larger)
    assert decompress(codec, smaller, len(plain)) == decompress(codec, larger, len(plain)) == plain


@pytest.mark.parametrize("codec", DEFAULT_LEVELS)
def test_the_default_levels_are_kafkas(codec: Codec) -> None:
    plain = bytes(range(256)) * 40
    assert compress(codec, plain) == compress(codec, plain, DEFAULT_LEVELS[codec])
