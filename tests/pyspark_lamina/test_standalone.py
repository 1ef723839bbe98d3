"""A standalone cluster of two workers, which see nothing of the broker but its port (``make peers-spark``)."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.arrow.topics import create, numbered, produce
from tests.broker.process import BrokerProcess
from tests.pipeline.cluster import Cluster
from tests.pyspark_lamina.reading import Topics, rows
from tests.pyspark_lamina.session import spark_session

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]


def test_executors_read_over_the_network(own_broker: Callable[..., BrokerProcess], tmp_path: Path) -> None:
    broker = own_broker()
    create(broker.address, "t", 4)
    for partition in range(4):
        produce(broker.address, "t", numbered(5000), partition=partition)
    few = {"spark.executor.memory": "640m", "spark.executor.cores": "1"}
    with (
        Cluster(tmp_path / "cluster", hidden=broker.data_dir) as cluster,
        spark_session(tmp_path / "spark", cluster.master, few) as spark,
    ):
        topics = Topics(spark, broker.address)
        frame = topics.load({"subscribe": "t"}, "partition int, offset long, value binary")
        counted = frame.groupBy("partition").agg({"offset": "sum", "value": "count"}).orderBy("partition")
        assert rows(counted) == [(partition, 12_497_500, 5000) for partition in range(4)]
        options = {"subscribe": "t", "startingOffsets": "earliest", "maxRecordsPerTrigger": "7000"}
        batches, _ = topics.stream(options, tmp_path / "checkpoint", "partition int, offset long")
        assert sorted(row for batch in batches for row in batch) == [(p, n) for p in range(4) for n in range(5000)]
        assert len(batches) == 3
