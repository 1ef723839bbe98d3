"""What a sink is told once, for all its tasks and batches."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from lamina.arrow.properties import ClientProperties
from lamina.producing.properties import ProducerProperties
from lamina.producing.query_ledger import QueryLedger
from lamina.producing.session import Session

DEFAULT_DECISION_TOPIC: Final = "__lamina_decisions"
DEFAULT_PREFIX: Final = "lamina"


@dataclass(frozen=True, slots=True)
class SinkSettings:
    client: ClientProperties
    producer: ProducerProperties
    topic: str | None
    """Where all rows go; ``None`` where a column says it."""
    decision_topic: str = DEFAULT_DECISION_TOPIC
    prefix: str = DEFAULT_PREFIX
    """Of transactional ids."""

    def ledger(self, session: Session, query: str, now_ms: Callable[[], int]) -> QueryLedger:
        return QueryLedger(
            session.cluster,
            session.transactions,
            query,
            self.prefix,
            self.decision_topic,
            self.producer.transaction_timeout_ms,
            now_ms,
        )
