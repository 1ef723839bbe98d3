"""A client's batch between the wire and the log."""

from dataclasses import replace

import pytest

from lamina.errors import MessageTooLarge
from lamina.records.batch import Codec, check_crc, read_header
from lamina.records.prepare import prepare_batch
from lamina.records.record import Record, build_batch, read_records
from lamina.records.validate import validate_batch
from tests.records.test_validate import NOW_MS, RULES

RECORDS = [Record(index, index, b"k", b"v" * 500) for index in range(20)]


@pytest.mark.parametrize("codec", [None, Codec.LZ4])
def test_a_batch_in_the_codec_of_its_topic_stays_what_it_is(codec: Codec | None) -> None:
    batch = build_batch(RECORDS, codec=Codec.LZ4)
    prepared = prepare_batch(batch, replace(RULES, codec=codec), NOW_MS)
    assert prepared.batch is batch
    assert prepared.validated == validate_batch(batch, RULES, NOW_MS)


@pytest.mark.parametrize("codec", Codec)
def test_a_batch_in_another_codec_is_compressed_anew(codec: Codec) -> None:
    sent = build_batch(RECORDS, codec=Codec.GZIP if codec is Codec.NONE else Codec.NONE)
    before = bytes(sent)
    batch, validated = prepare_batch(sent, replace(RULES, codec=codec), NOW_MS)
    assert validated.header == read_header(batch)
    assert validated.header.codec_id == codec
    check_crc(batch, 0, validated.header)
    assert read_records(batch, 0, validated.header, RULES.max_decompressed_bytes) == RECORDS
    assert sent == before


def test_a_batch_that_is_too_large_only_in_the_codec_of_its_topic_is_refused() -> None:
    sent = build_batch(RECORDS, codec=Codec.ZSTD)
    plain_bytes = len(build_batch(RECORDS))
    rules = replace(RULES, codec=Codec.NONE, max_message_bytes=plain_bytes)
    assert len(prepare_batch(sent, rules, NOW_MS).batch) == plain_bytes
    with pytest.raises(MessageTooLarge, match="none"):
        prepare_batch(sent, replace(rules, max_message_bytes=plain_bytes - 1), NOW_MS)


def test_a_topics_level_says_how_hard_its_batches_are_compressed() -> None:
    sent = build_batch([Record(index, index, b"%d" % index**3, b"%d" % index**4) for index in range(2000)])
    rules = replace(RULES, codec=Codec.GZIP)
    quick, thorough = (prepare_batch(sent, replace(rules, codec_level=level), NOW_MS).batch for level in (1, 9))
    assert len(thorough) < len(quick)
