"""Kafka's client properties, as Java's clients and Kafka's scripts take them, in librdkafka's words.

Most names are the same in both. Java's own ways to name certificates and logins are read by `peer.security_properties`,
as for our own connections, and said as librdkafka has them; PKCS12 is opened here, so that there is one sentence for
each way in which it cannot be. What touches security and has no counterpart is refused, never ignored. Must not know
the network.
"""

import re
from collections.abc import Mapping
from typing import Any

from lamina.client.errors import ClientError
from lamina.client.oauth_token import token_callback
from lamina.peer.security import identity_pem, trusted_pem
from lamina.peer.security_properties import OAUTHBEARER, SecurityPropertyError, parse_login, parse_tls, refuse_unused
from lamina.settings.ssl import PEM
from lamina.settings.ssl_stores import KeyStoreSource, TrustStoreSource

_JAVA_ONLY = re.compile(
    r"(key|value)\.(de)?serializer(\..*)?|interceptor\.classes|metrics?\..*|metric\.reporters|default\.api\.timeout\.ms"
    r"|partitioner\.class|buffer\.memory|max\.block\.ms|send\.buffer\.bytes|receive\.buffer\.bytes"
    r"|auto\.include\.jmx\.reporter"
)
"""Names that say how a Java client works inside; they mean nothing to another."""

_STORE = re.compile(r"ssl\.(truststore|keystore)\..*")
"""What librdkafka has other names for."""
_JAAS, _TOKEN_URL = "sasl.jaas.config", "sasl.oauthbearer.token.endpoint.url"


def translate(properties: Mapping[str, str]) -> dict[str, Any]:
    """Raises ClientError, naming the property, for what librdkafka cannot do."""
    given = {name: value.strip() for name, value in properties.items() if not _JAVA_ONLY.fullmatch(name)}
    try:
        refuse_unused(given)
        return {**_login(given), **_stores(given)}
    except SecurityPropertyError as error:
        raise ClientError(str(error)) from None


def _login(given: dict[str, str]) -> dict[str, Any]:
    """Takes what it has read out of what is given."""
    found: dict[str, Any] = {}
    if _JAAS in given:
        login = parse_login(given)
        found = {"sasl.username": login.user, "sasl.password": login.password}
        if login.mechanism == OAUTHBEARER:
            found = {"oauth_cb": token_callback(login.token_file)}
        for name in (_JAAS, _TOKEN_URL, "sasl.login.callback.handler.class"):
            given.pop(name, None)
    if "sasl.mechanism" in given:
        found["sasl.mechanisms"] = given.pop("sasl.mechanism")
    return found


def _stores(given: dict[str, str]) -> dict[str, str]:
    """All that is left, with what Java has other names for said anew."""
    said = dict(given)
    if said.get("ssl.endpoint.identification.algorithm") == "":
        said["ssl.endpoint.identification.algorithm"] = "none"
    if any(_STORE.fullmatch(name) for name in given):
        settings = parse_tls(given).ssl
        said = {name: text for name, text in said.items() if not _STORE.fullmatch(name)}
        said |= _trusted(settings.trust_store) | _identity(settings.key_store)
    return said


def _trusted(source: TrustStoreSource | None) -> dict[str, str]:
    if source is None:
        return {}
    if source.certificates is not None:
        return {"ssl.ca.pem": source.certificates}
    assert source.location is not None
    return {"ssl.ca.location": source.location} if source.type == PEM else {"ssl.ca.pem": trusted_pem(source)}


def _identity(source: KeyStoreSource | None) -> dict[str, str]:
    if source is None:
        return {}
    if source.key is not None and source.certificate_chain is not None:
        return {"ssl.certificate.pem": source.certificate_chain, "ssl.key.pem": source.key}
    assert source.location is not None
    if source.type == PEM:
        return {"ssl.certificate.location": source.location, "ssl.key.location": source.location}
    key, chain = identity_pem(source)
    return {"ssl.certificate.pem": chain, "ssl.key.pem": key}
