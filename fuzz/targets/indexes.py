"""Index files of a segment: believed or not, every lookup answers, and nothing is read past an entry."""

from fuzz.choices import Choices
from fuzz.files import scratch, unpack_files
from lamina.log.entries import OpenMaps
from lamina.log.files import Disk
from lamina.log.index_pair import IndexPair, IndexRebuilds, IndexShape
from lamina.log.transaction_index import TransactionIndex, pack_aborted

STEM = "00000000000000000010"
BASE_OFFSET = int(STEM)
NAMES = (f"{STEM}.index", f"{STEM}.timeindex", f"{STEM}.txnindex")

_MAX_INDEX_BYTES = 1200
_INTERVAL_BYTES = 200


def one(data: bytes) -> None:
    choices = Choices(data)
    log_bytes = choices.number(2)
    asked = choices.number(8, signed=True)
    files = unpack_files(NAMES, choices)
    with scratch(files) as root:
        shape = IndexShape(_MAX_INDEX_BYTES, _INTERVAL_BYTES, OpenMaps(), IndexRebuilds())
        pair = IndexPair.load(Disk(), f"{root}/{STEM}", "", BASE_OFFSET, shape, log_bytes)
        if pair is not None:
            _use(pair, log_bytes, asked)
        _use_aborted(TransactionIndex(Disk(), f"{root}/{NAMES[2]}", exists=NAMES[2] in files), files.get(NAMES[2], b""))


def _use(pair: IndexPair, log_bytes: int, asked: int) -> None:
    for offset in (0, BASE_OFFSET, BASE_OFFSET + log_bytes, asked):
        found = pair.offsets.lookup(offset)
        assert found.offset <= max(offset, BASE_OFFSET)
        pair.times.lookup(offset)
    pair.count_batch(log_bytes, 100, BASE_OFFSET + log_bytes, max(asked, 0))
    pair.truncate_to(BASE_OFFSET + log_bytes // 2)
    assert pair.offsets.last_entry.offset < max(BASE_OFFSET + log_bytes // 2, BASE_OFFSET + 1)
    pair.seal()
    pair.close()


def _use_aborted(aborted: TransactionIndex, content: bytes) -> None:
    if not aborted.exists:
        return
    if aborted.is_sound(BASE_OFFSET):
        assert b"".join(map(pack_aborted, aborted.entries())) == content
        aborted.truncate_to(BASE_OFFSET + 50)
        assert all(entry.last_offset < BASE_OFFSET + 50 for entry in aborted.entries())
    aborted.close()
