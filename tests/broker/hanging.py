"""A transaction that no coordinator knows of, in the files of a broker that does not run."""

from pathlib import Path

from lamina.records.record import Record, build_batch
from tests.broker.in_process import InProcessBroker

PRODUCER_ID, PRODUCER_EPOCH = 7, 3


def leave_open_transaction(data_directory: Path) -> None:
    broker = InProcessBroker(data_directory, {})
    broker.create("hanging")
    broker.produce("hanging", 2)
    now_ms = broker.parts.clocks.now_ms()
    batch = build_batch(
        [Record(0, now_ms, b"k", b"v")],
        producer_id=PRODUCER_ID,
        producer_epoch=PRODUCER_EPOCH,
        base_sequence=0,
        is_transactional=True,
    )
    partition = broker.parts.partitions.get("hanging", 0)
    verification = partition.log.producers.begin_verification(
        PRODUCER_ID, PRODUCER_EPOCH, 0, now_ms, begins_at_zero=True
    )
    partition.append_own(batch, now_ms, verification)
    broker.close()
