"""What a client's batch has to obey in a partition, by its topic's settings.

Must not know what a batch looks like.
"""

from lamina.records.batch import Codec
from lamina.records.validate import BatchRules
from lamina.settings.log_config import LogConfig


def decompressed_limit(config: LogConfig, max_decompressed_bytes: int) -> int:
    """How large the records of a batch may be: a topic that takes a large batch takes it compressed, too."""
    return max(max_decompressed_bytes, config.max_message_bytes)


def rules_of(config: LogConfig, max_decompressed_bytes: int) -> BatchRules:
    codec, codec_level = _compression(config)
    return BatchRules(
        max_message_bytes=config.max_message_bytes,
        max_decompressed_bytes=decompressed_limit(config, max_decompressed_bytes),
        is_compacted=config.compact,
        is_log_append_time=config.is_log_append_time,
        timestamp_before_max_ms=config.timestamp_before_max_ms,
        timestamp_after_max_ms=config.timestamp_after_max_ms,
        codec=codec,
        codec_level=codec_level,
    )


def _compression(config: LogConfig) -> tuple[Codec | None, int | None]:
    """The codec that batches are stored in and its level; no codec to keep the producer's own."""
    match config.compression_type:
        case "producer":
            return None, None
        case "uncompressed":
            return Codec.NONE, None
        case "gzip":
            return Codec.GZIP, config.compression_gzip_level
        case "lz4":
            return Codec.LZ4, config.compression_lz4_level
        case "zstd":
            return Codec.ZSTD, config.compression_zstd_level
        case snappy:
            return Codec[snappy.upper()], None
