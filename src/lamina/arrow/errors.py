"""Why a topic cannot be read as it was asked for: each error is one sentence for a person.

What the cluster itself refuses stays a `lamina.errors.KafkaError`. Must not know any other module.
"""


class ReadError(Exception):
    """The request makes no sense, or what was asked for does not exist."""


class DataLoss(ReadError):
    """Records that were asked for are not there any more, or their topic is another one by now."""
