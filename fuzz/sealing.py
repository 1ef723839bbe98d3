"""Right checksums for what a fuzzer made up: it would never guess one, and everything behind the check would stay dark.

Must not know what else may be wrong.
"""

from crc32c import crc32c

from lamina.log.snapshots import SNAPSHOT
from lamina.records.batch import HEADER_BYTES, LOG_OVERHEAD_BYTES, compute_crc, pack_header, read_header

_SNAPSHOT_CRC = slice(2, 6)


def seal_batches(data: bytes) -> bytes:
    """Every batch, as far as lengths lead from one to the next, under the CRC that its bytes have."""
    sealed = bytearray(data)
    position = 0
    while position + HEADER_BYTES <= len(sealed):
        header = read_header(sealed, position)
        end = position + header.size_bytes
        if header.length < HEADER_BYTES - LOG_OVERHEAD_BYTES or end > len(sealed):
            break
        crc = compute_crc(sealed, position, header.size_bytes)
        sealed[position : position + HEADER_BYTES] = pack_header(header._replace(crc=crc))
        position = end
    return bytes(sealed)


def seal_one_batch(data: bytes) -> bytes:
    """All bytes as one batch: length and CRC are theirs."""
    if len(data) < HEADER_BYTES:
        return data
    header = read_header(data)._replace(length=len(data) - LOG_OVERHEAD_BYTES)
    return seal_batches(pack_header(header) + data[HEADER_BYTES:])


def seal_snapshot(data: bytes) -> bytes:
    sealed = bytearray(data)
    if len(sealed) >= _SNAPSHOT_CRC.stop:
        sealed[_SNAPSHOT_CRC] = crc32c(data[_SNAPSHOT_CRC.stop :]).to_bytes(4, "big")
    return bytes(sealed)


def seal_file(name: str, data: bytes) -> bytes:
    """By the name of a file in a partition's directory."""
    if ".log" in name:
        return seal_batches(data)
    return seal_snapshot(data) if name.endswith(SNAPSHOT) else data
