"""Why something was not written, in one sentence for a person."""

from lamina.errors import KafkaError


class WriteError(Exception):
    """What was to be written is not there, or stays invisible. Its text is one sentence."""


class DeliveryFailed(WriteError):
    def __init__(self, topic: str, partition: int, records: int, error: KafkaError) -> None:
        name = error.code.name
        told = str(error) if name in str(error) else f"{error} ({name})"
        what = "records" if not records else "1 record" if records == 1 else f"{records:,} records"
        super().__init__(f"{topic}-{partition}: {what} could not be written: {told}")
        self.error = error


class TransactionLost(WriteError):
    """A transaction that was decided to be committed cannot be any more."""
