"""Every message has one name for its API's number, and it is Kafka's."""

import re

from lamina.broker.requests.cluster_apis import APIS_BETWEEN_BROKERS
from lamina.wire import api_keys
from lamina.wire.message_table import MESSAGES

NAMED = {name: number for name, number in vars(api_keys).items() if name.isupper()}


def constant(api_name: str) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", api_name).upper()


def test_the_names_are_those_of_the_messages() -> None:
    messages = {constant(text[: text.index("Request ")]): number for number, text in MESSAGES.items()}
    assert messages == NAMED


def test_a_handler_answers_the_api_that_it_is_named_after() -> None:
    assert all(NAMED[constant(api.name)] == api.key for api in APIS_BETWEEN_BROKERS)
