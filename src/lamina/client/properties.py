"""Kafka's client properties, as Java's clients and Kafka's scripts take them, in librdkafka's words.

Most names are the same in both. Java's own ways to name certificates and passwords are translated; what has no
counterpart and touches security is refused, never ignored. Must not know files or the network.
"""

import re
from collections.abc import Mapping

from lamina.client.errors import ClientError

_JAVA_ONLY = re.compile(
    r"(key|value)\.(de)?serializer(\..*)?|interceptor\.classes|metrics?\..*|metric\.reporters|default\.api\.timeout\.ms"
    r"|partitioner\.class|buffer\.memory|max\.block\.ms|send\.buffer\.bytes|receive\.buffer\.bytes"
    r"|auto\.include\.jmx\.reporter"
)
"""Names that say how a Java client works inside; they mean nothing to another."""

_SECURITY = ("ssl.", "sasl.", "security.")
_LOGIN = re.compile(r"""(username|password)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|'((?:[^'\\]|\\.)*)'|([^\s;]+))""")
_PLAIN_LOGINS = ("PlainLoginModule", "ScramLoginModule")


def is_security(name: str) -> bool:
    return name.startswith(_SECURITY)


def translate(properties: Mapping[str, str]) -> dict[str, str]:
    """Raises ClientError, naming the property, for what librdkafka cannot do."""
    given = {name: value.strip() for name, value in properties.items() if not _JAVA_ONLY.fullmatch(name)}
    translated = {**_login(given), **_trusted(given), **_identity(given)}
    if "ssl.endpoint.identification.algorithm" in given:
        algorithm = given.pop("ssl.endpoint.identification.algorithm")
        translated["ssl.endpoint.identification.algorithm"] = algorithm or "none"
    if "sasl.mechanism" in given:
        translated["sasl.mechanisms"] = given.pop("sasl.mechanism")
    return {**given, **translated}


def _login(given: dict[str, str]) -> dict[str, str]:
    text = given.pop("sasl.jaas.config", None)
    if text is None:
        return {}
    found = {match[1]: next(filter(None, match.groups()[1:]), "") for match in _LOGIN.finditer(text)}
    if not any(module in text for module in _PLAIN_LOGINS) or {"username", "password"} - found.keys():
        raise ClientError(
            "sasl.jaas.config: only PlainLoginModule and ScramLoginModule with username and password are understood; "
            "give librdkafka's own properties instead (sasl.username, sasl.password, …)"
        )
    return {f"sasl.{name}": re.sub(r"\\(.)", r"\1", value) for name, value in found.items()}


def _trusted(given: dict[str, str]) -> dict[str, str]:
    kind = given.pop("ssl.truststore.type", "JKS").upper()
    location = given.pop("ssl.truststore.location", None)
    certificates = given.pop("ssl.truststore.certificates", None)
    given.pop("ssl.truststore.password", None)
    if location is not None and kind != "PEM":
        raise ClientError(
            f"ssl.truststore.location: a {kind} truststore cannot be read here; export its certificates as PEM "
            "(keytool -exportcert -rfc) and set ssl.truststore.type=PEM"
        )
    found = {"ssl.ca.location": location, "ssl.ca.pem": certificates}
    return {name: value for name, value in found.items() if value is not None}


def _identity(given: dict[str, str]) -> dict[str, str]:
    kind = given.pop("ssl.keystore.type", "JKS").upper()
    location = given.pop("ssl.keystore.location", None)
    found = {
        "ssl.certificate.pem": given.pop("ssl.keystore.certificate.chain", None),
        "ssl.key.pem": given.pop("ssl.keystore.key", None),
    }
    if location is not None:
        if kind == "PEM":
            found |= {"ssl.certificate.location": location, "ssl.key.location": location}
        elif kind == "PKCS12":
            found["ssl.keystore.location"] = location
        else:
            raise ClientError(
                f"ssl.keystore.location: a {kind} keystore cannot be read here; convert it "
                "(keytool -importkeystore -deststoretype PKCS12) and set ssl.keystore.type=PKCS12"
            )
    return {name: value for name, value in found.items() if value is not None}
