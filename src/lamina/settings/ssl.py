"""TLS under Kafka's names: certificates and keys, whose certificates are trusted, and what is asked of clients.

Owns the definitions; ``ssl_stores.py`` reads them for one listener or one client. Must not read files.
"""

from lamina.settings.definition import Update, broker_setting
from lamina.settings.kinds import BOOLEAN, LIST, PASSWORD, STRING, Rule, each_of, one_of

PEM, PKCS12, JKS = STORE_TYPES = ("PEM", "PKCS12", "JKS")
TLS_1_2, TLS_1_3 = "TLSv1.2", "TLSv1.3"

_STORE_TYPE: Rule[str] = Rule("PEM, PKCS12 or JKS", lambda value: value.upper() in STORE_TYPES, STORE_TYPES)
_BY_CONTENT = "A store of Java's own format (JKS) is refused with the line that converts it"

SSL_KEYSTORE_TYPE = broker_setting(
    "ssl.keystore.type",
    STRING,
    JKS,
    "The format of the keystore. PEM has to be named; PKCS12, which `keytool` makes, is also found under JKS.",
    update=Update.PER_BROKER,
    rule=_STORE_TYPE,
    difference=_BY_CONTENT,
)
SSL_KEYSTORE_LOCATION = broker_setting(
    "ssl.keystore.location",
    STRING,
    None,
    "A file with this broker's private key and certificate chain. A running broker notices within ten seconds that it "
    "is another one, and at once when it is set for one listener, to the same value too.",
    update=Update.PER_BROKER,
)
SSL_KEYSTORE_PASSWORD = broker_setting(
    "ssl.keystore.password",
    PASSWORD,
    None,
    "The password of a PKCS12 keystore; a PEM file has none.",
    update=Update.PER_BROKER,
)
SSL_KEYSTORE_KEY = broker_setting(
    "ssl.keystore.key",
    PASSWORD,
    None,
    "The private key itself in PEM (PKCS#8), in place of a file.",
    update=Update.PER_BROKER,
)
SSL_KEYSTORE_CERTIFICATE_CHAIN = broker_setting(
    "ssl.keystore.certificate.chain",
    PASSWORD,
    None,
    "The certificates themselves in PEM, this broker's first, with `ssl.keystore.key`.",
    update=Update.PER_BROKER,
)
SSL_KEY_PASSWORD = broker_setting(
    "ssl.key.password",
    PASSWORD,
    None,
    "The password of the private key in PEM; without one the key must not be encrypted.",
    update=Update.PER_BROKER,
)
SSL_TRUSTSTORE_TYPE = broker_setting(
    "ssl.truststore.type",
    STRING,
    JKS,
    "The format of the truststore, as of the keystore.",
    update=Update.PER_BROKER,
    rule=_STORE_TYPE,
    difference=_BY_CONTENT,
)
SSL_TRUSTSTORE_LOCATION = broker_setting(
    "ssl.truststore.location",
    STRING,
    None,
    "A file with the certificates of the authorities whose clients, or brokers, are trusted.",
    update=Update.PER_BROKER,
)
SSL_TRUSTSTORE_PASSWORD = broker_setting(
    "ssl.truststore.password",
    PASSWORD,
    None,
    "The password of a PKCS12 truststore, if it has one.",
    update=Update.PER_BROKER,
)
SSL_TRUSTSTORE_CERTIFICATES = broker_setting(
    "ssl.truststore.certificates",
    PASSWORD,
    None,
    "The trusted certificates themselves in PEM, in place of a file.",
    update=Update.PER_BROKER,
)
SSL_CLIENT_AUTH = broker_setting(
    "ssl.client.auth",
    STRING,
    "none",
    "Whether clients show a certificate: `required`, `requested` (who has none is `User:ANONYMOUS`) or `none`. On a "
    "listener with SASL_SSL it counts only as `listener.name.NAME.ssl.client.auth`.",
    rule=one_of("none", "requested", "required"),
)
SSL_ENABLED_PROTOCOLS = broker_setting(
    "ssl.enabled.protocols",
    LIST,
    (TLS_1_2, TLS_1_3),
    "The versions of TLS that are spoken.",
    rule=each_of(TLS_1_2, TLS_1_3),
)
SSL_CIPHER_SUITES = broker_setting(
    "ssl.cipher.suites",
    LIST,
    (),
    "The cipher suites that are spoken, by their standard names (`TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384`); empty for "
    "OpenSSL's choice. Of TLS 1.3's three all must be named or none: without one of them TLS 1.3 is not spoken.",
)
SSL_PRINCIPAL_MAPPING_RULES = broker_setting(
    "ssl.principal.mapping.rules",
    STRING,
    "DEFAULT",
    "How the name in a client's certificate becomes its principal: `RULE:pattern/replacement/[LU]` or `DEFAULT`, "
    "separated by commas; the first that matches the whole name holds. Who is matched by none is turned away.",
)
SSL_ALLOW_DN_CHANGES = broker_setting(
    "ssl.allow.dn.changes",
    BOOLEAN,
    False,
    "Whether another certificate that is given while the broker runs may have another distinguished name.",
)
SSL_ALLOW_SAN_CHANGES = broker_setting(
    "ssl.allow.san.changes",
    BOOLEAN,
    False,
    "Whether another certificate that is given while the broker runs may lack names or addresses of the last one.",
)
SSL_ENDPOINT_IDENTIFICATION_ALGORITHM = broker_setting(
    "ssl.endpoint.identification.algorithm",
    STRING,
    "https",
    "Whether a broker that connects to another one checks that its certificate has the host's name (`https`); empty "
    "for no check.",
    rule=Rule("https or empty", lambda value: value.lower() in ("https", ""), ("https",)),
)
