"""When the admin listener shows something to whoever comes without a token (S90)."""

import pytest

from lamina.settings.admin_access import is_reading_open
from lamina.settings.resolve import resolve_broker
from tests.settings.test_sasl_listeners import PLAIN

AUTHORIZER = {"authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer"}
TLS = {
    "listeners": "SSL://127.0.0.1:0",
    "ssl.keystore.location": "/k.p12",
    "ssl.keystore.password": "hunter2",
    "ssl.truststore.location": "/ca.p12",
}
OF_ALL, OF_SSL = {"ssl.client.auth": "required"}, {"listener.name.ssl.ssl.client.auth": "required"}
REQUESTED = {"ssl.client.auth": "requested"}


@pytest.mark.parametrize(
    ("given", "is_open"),
    [
        ({}, True),
        (TLS, True),
        (TLS | REQUESTED, True),
        (TLS | OF_ALL, False),
        (TLS | OF_SSL, False),
        (PLAIN, False),
        (AUTHORIZER, False),
    ],
)
def test_by_default_it_is_open_while_no_client_has_to_say_who_it_is(given: dict[str, str], is_open: bool) -> None:
    assert is_reading_open(resolve_broker(file=given)) == is_open
    for how, holds in (("required", False), ("none", True)):
        assert is_reading_open(resolve_broker(file=given | {"lamina.admin.authentication": how})) == holds
