"""What clients were told, compared with what is there at last.

What an idempotent producer was told to be written is readable exactly once, where it was told, in the order in which it
was sent; and a consumer is never told anything else of an offset.
"""

from collections.abc import Iterable, Mapping

from tests.cluster.verifiable_consumer import VerifiableConsumer
from tests.cluster.verifiable_producer import VerifiableProducer
from tests.history.anomalies import summary
from tests.history.checker import check
from tests.history.events import History, Partition

Final = Mapping[Partition, Mapping[int, bytes]]


def history_of(
    producers: Iterable[VerifiableProducer], consumers: Iterable[VerifiableConsumer], final: Final
) -> History:
    consumers = list(consumers)
    return History(
        sends=[send for producer in producers for send in producer.sends],
        moves=[move for consumer in consumers for move in consumer.moves],
        uncommitted_readers={one.name for one in consumers if one.isolation == "read_uncommitted"},
        final=final,
    )


def verify(producer: VerifiableProducer, final: Final, consumer: VerifiableConsumer | None = None) -> None:
    """Raises for whatever differs from what anybody was told."""
    assert producer.errors == []
    assert producer.acked_count == producer.sent, "some records have no answer"
    anomalies = check(history_of([producer], [] if consumer is None else [consumer], final))
    assert not anomalies, summary(anomalies)
