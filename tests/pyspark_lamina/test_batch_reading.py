"""What is planned for a query that ends, against a real broker and without Spark."""

import pytest

from pyspark_lamina.batch_reading import TopicReader
from pyspark_lamina.options import parse_options
from tests.arrow.topics import create, numbered, produce
from tests.broker.process import BrokerProcess


@pytest.mark.parametrize(("start", "tasks"), [(2, 1), (3, 0), (99, 0)])
def test_a_start_behind_the_end_has_no_tasks_and_is_told(
    broker: BrokerProcess, topic: str, caplog: pytest.LogCaptureFixture, start: int, tasks: int
) -> None:
    create(broker.address, topic)
    produce(broker.address, topic, numbered(3))
    options = {
        "kafka.bootstrap.servers": broker.address,
        "subscribe": topic,
        "startingOffsets": f'{{"{topic}":{{"0":{start}}}}}',
    }
    reader = TopicReader(parse_options(options, is_stream=False), ())
    assert len(reader.partitions()) == tasks
    told = [message for message in caplog.messages if "nothing is there" in message]
    assert told == ([f"{topic}-0 is read from offset {start} to 3: nothing is there"] if start > 3 else [])
