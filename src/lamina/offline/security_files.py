"""All that brokers and their clients need to trust each other and nobody else, as files that are not there yet.

Owns which files those are, for one broker or for a cluster, what is in them, and that each is its owner's alone and
none takes the place of another (S89). Brokers and administrators show certificates, applications log in by SCRAM over
TLS, and access rules say what they may do. Must not know the command line.
"""

import os
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path

from lamina.settings.authorization import AUTHORIZER_CLASS_NAME, STANDARD_AUTHORIZER, SUPER_USERS
from lamina.settings.properties import dump
from lamina.tls.issuing import ORGANIZATION, PrivateAuthority

ADMIN = "admin"
"""The client that may do everything, by its certificate."""
MECHANISM = "SCRAM-SHA-512"
CLIENTS, MUTUAL = "CLIENTS", "BROKERS"
"""The listeners: of applications, and of whoever shows a certificate: brokers and administrators."""

_AUTHORITY = "ca.pem"
_AUTHORITY_KEY = "ca-key.pem"
_OWN = "broker.pem"
_MAPPING = f"RULE:^CN=([^,]+),O={ORGANIZATION}$/$1/,DEFAULT"
_JAAS = 'org.apache.kafka.common.security.scram.ScramLoginModule required username="{}" password="{}";'
_PLAIN = re.compile(r"[!-\[\]-~][ -\[\]-~]*")
_FILE_MODE, _DIRECTORY_MODE = 0o600, 0o700


class SecurityFilesError(Exception):
    """The files cannot be made; the message is one sentence."""


@dataclass(frozen=True, slots=True)
class BrokerPlace:
    node_id: int
    host: str
    """The name or address by which clients and other brokers reach it."""


@dataclass(frozen=True, slots=True)
class SecurityPlan:
    directory: Path
    brokers: tuple[BrokerPlace, ...]
    users: tuple[str, ...]
    zookeeper: str | None
    """Of a cluster; one broker alone has none."""
    found_in: str | None
    """The directory in which each broker finds its files, where that is not the one that they are made in."""
    port: int
    """Of the applications' listener; the next one is the other's."""
    days: int

    @property
    def is_cluster(self) -> bool:
        return self.zookeeper is not None

    def bootstrap(self, port: int) -> str:
        return ",".join(f"{_bracketed(broker.host)}:{port}" for broker in self.brokers)


def security_files(plan: SecurityPlan, now_ms: int, new_password: Callable[[], str]) -> dict[str, str]:
    """What is in each file, by its path in the directory."""
    authority = PrivateAuthority("Lamina CA", now_ms, plan.days)
    certificate = authority.own.certificate
    files = {_AUTHORITY: certificate, _AUTHORITY_KEY: authority.own.key}
    for broker in plan.brokers:
        # The files of a broker in a cluster are for its own machine: they are all in one directory.
        place = f"broker-{broker.node_id}/" if plan.is_cluster else ""
        own = authority.issue(_principal(broker), _names(broker.host), plan.days)
        files |= {f"{place}{_OWN}": own.both, f"{place}server.properties": _server_properties(plan, broker)}
        if plan.is_cluster:
            files[f"{place}{_AUTHORITY}"] = certificate
    files[f"{ADMIN}.pem"] = authority.issue(ADMIN, (), plan.days).both
    files[f"{ADMIN}.properties"] = _admin_properties(plan)
    for user in plan.users:
        files[f"{user}.properties"] = _user_properties(plan, user, new_password())
    return files


def write_new(directory: Path, files: Mapping[str, str]) -> None:
    """Raises :class:`SecurityFilesError` where something is there already; then nothing is written."""
    try:
        directory.mkdir(_DIRECTORY_MODE, parents=True, exist_ok=True)
        if any(directory.iterdir()):
            raise SecurityFilesError(f"{directory} is not empty, and nothing is overwritten: name a new directory")
        directory.chmod(_DIRECTORY_MODE)
        for path, text in files.items():
            target = directory / path
            target.parent.mkdir(_DIRECTORY_MODE, exist_ok=True)
            descriptor = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _FILE_MODE)
            with open(descriptor, "w") as file:
                file.write(text)
    except OSError as error:
        raise SecurityFilesError(f"{error.filename or directory}: {(error.strerror or str(error)).lower()}") from None


def _server_properties(plan: SecurityPlan, broker: BrokerPlace) -> str:
    place = _found_in(plan, broker)
    bound = broker.host if _is_loopback(broker.host) else ""
    listeners = ((CLIENTS, plan.port), (MUTUAL, plan.port + 1))
    who = {"node.id": str(broker.node_id)}
    if plan.zookeeper is not None:
        who |= {"zookeeper.connect": plan.zookeeper, "inter.broker.listener.name": MUTUAL}
    who |= {
        "listeners": ",".join(f"{name}://{_bracketed(bound)}:{port}" for name, port in listeners),
        "advertised.listeners": ",".join(f"{name}://{_bracketed(broker.host)}:{port}" for name, port in listeners),
        "listener.security.protocol.map": f"{CLIENTS}:SASL_SSL,{MUTUAL}:SSL",
    }
    shown = {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": f"{place}/{_OWN}",
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": f"{place}/{_AUTHORITY}",
        f"listener.name.{MUTUAL.lower()}.ssl.client.auth": "required",
        f"listener.name.{MUTUAL.lower()}.ssl.principal.mapping.rules": _MAPPING,
    }
    above = (ADMIN, *(_principal(one) for one in plan.brokers)) if plan.is_cluster else (ADMIN,)
    return _sections(
        ("Applications log in by SCRAM; brokers and administrators show their certificates.", who),
        ("Who this broker is, and whose certificates it takes.", shown),
        ("How applications log in.", {"sasl.enabled.mechanisms": MECHANISM}),
        (
            "Nobody may do anything without an access rule, except these.",
            {
                AUTHORIZER_CLASS_NAME.name: STANDARD_AUTHORIZER,
                SUPER_USERS.name: ";".join(f"User:{name}" for name in above),
            },
        ),
    )


def _admin_properties(plan: SecurityPlan) -> str:
    given = {
        "bootstrap.servers": plan.bootstrap(plan.port + 1),
        "security.protocol": "SSL",
        **_trust(plan),
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": f"{plan.directory}/{ADMIN}.pem",
    }
    return _sections(("An administrator, who may do everything.", given))


def _user_properties(plan: SecurityPlan, user: str, password: str) -> str:
    given = {
        "bootstrap.servers": plan.bootstrap(plan.port),
        "security.protocol": "SASL_SSL",
        **_trust(plan),
        "sasl.mechanism": MECHANISM,
        "sasl.jaas.config": _JAAS.format(user, password),
    }
    return _sections((f"Logs in as {user}. First make the user: lamina users set --login-of {user}.properties", given))


def _trust(plan: SecurityPlan) -> dict[str, str]:
    return {"ssl.truststore.type": "PEM", "ssl.truststore.location": f"{plan.directory}/{_AUTHORITY}"}


def _sections(*sections: tuple[str, Mapping[str, str]]) -> str:
    return "\n".join(f"# {comment}\n{_lines(values)}" for comment, values in sections)


def _lines(values: Mapping[str, str]) -> str:
    """As a person would write them; Java's escapes only where something would be misread."""
    if all(_PLAIN.fullmatch(value) for value in values.values()):
        return "".join(f"{name}={value}\n" for name, value in values.items())
    return dump(values).decode()


def _found_in(plan: SecurityPlan, broker: BrokerPlace) -> str:
    if plan.found_in is not None:
        return plan.found_in.rstrip("/")
    return f"{plan.directory}/broker-{broker.node_id}" if plan.is_cluster else str(plan.directory)


def _principal(broker: BrokerPlace) -> str:
    return f"broker-{broker.node_id}"


def _names(host: str) -> Iterator[str]:
    yield host
    if _is_loopback(host):
        yield from (one for one in ("localhost", "127.0.0.1", "::1") if one != host)


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host
