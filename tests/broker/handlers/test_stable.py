"""What readers of committed records may rely on while this broker has no transaction coordinator."""

from lamina.errors import ErrorCode
from lamina.log.trimming import move_log_start_offset
from lamina.records.batch import read_header
from lamina.records.record import Record, build_batch
from tests.broker.in_process import InProcessBroker


def transactional(broker: InProcessBroker) -> bytearray:
    record = Record(0, broker.node.now_ms(), b"k", b"v")
    return build_batch([record], producer_id=7, producer_epoch=0, base_sequence=0, is_transactional=True)


def test_a_transactional_batch_is_refused_while_nobody_could_end_its_transaction(broker: InProcessBroker) -> None:
    broker.create("t")
    sent = {"index": 0, "records": bytes(transactional(broker))}
    response = broker.ask(0, 9, acks=-1, topic_data=[{"name": "t", "partition_data": [sent]}])
    assert response.responses[0].partition_responses[0].error_code == ErrorCode.INVALID_TXN_STATE
    partition = broker.node.partitions.get("t", 0)
    assert partition.log.log_end_offset == partition.last_stable_offset == 0


def test_the_last_stable_offset_is_never_below_the_log_start(broker: InProcessBroker) -> None:
    """A transaction that Kafka left open may have lost its first records to DeleteRecords."""
    broker.create("t")
    partition = broker.node.partitions.get("t", 0)
    batch = transactional(broker)
    partition.log.append(batch, read_header(batch), 1, broker.node.now_ms())
    broker.produce("t", 4)
    assert partition.last_stable_offset == 0
    move_log_start_offset(partition.log, 3)
    assert partition.last_stable_offset == 3
