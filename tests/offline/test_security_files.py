"""The files of `lamina security init`: what is in them, and that they are their owner's alone (S89)."""

import ssl
import stat
from pathlib import Path

import pytest
from cryptography import x509

from lamina.offline.security_files import BrokerPlace, SecurityFilesError, SecurityPlan, security_files, write_new
from lamina.peer.security_properties import parse_security
from lamina.security.principal_rules import map_name, parse_rules
from lamina.settings.listeners import broker_listener_name
from lamina.settings.properties import load
from lamina.settings.resolve import resolve_broker
from lamina.settings.ssl_stores import KeyStoreSource
from lamina.tls.certificates import facts_of
from lamina.tls.stores import read_key_store

NOW_MS = 1_800_000_000_000
DAY_MS = 24 * 60 * 60 * 1000


def plan(directory: Path, **changes: object) -> SecurityPlan:
    given: dict[str, object] = {
        "brokers": (BrokerPlace(1, "kafka.example.com"),),
        "users": ("orders", "billing"),
        "zookeeper": None,
        "found_in": None,
        "port": 9092,
        "days": 100,
    }
    return SecurityPlan(directory, **(given | changes))  # type: ignore[arg-type]


CLUSTER = {"brokers": (BrokerPlace(1, "m1"), BrokerPlace(2, "m2")), "zookeeper": "zk:2181/lamina"}


def made(directory: Path, **changes: object) -> dict[str, str]:
    passwords = iter(("first", "second"))
    files = security_files(plan(directory, **changes), NOW_MS, lambda: next(passwords))
    write_new(directory, files)
    return files


def test_each_file_is_its_owners_alone_and_nothing_is_overwritten(tmp_path: Path) -> None:
    directory = tmp_path / "secure"
    files = made(directory, **CLUSTER)
    for path in (directory, *directory.rglob("*")):
        assert stat.S_IMODE(path.stat().st_mode) & 0o077 == 0, path
    before = {path: (directory / path).read_bytes() for path in files}
    with pytest.raises(SecurityFilesError, match="is not empty, and nothing is overwritten: name a new directory"):
        made(directory)
    assert {path: (directory / path).read_bytes() for path in files} == before


def test_one_broker_starts_with_its_file(tmp_path: Path) -> None:
    made(tmp_path / "secure")
    settings = resolve_broker(file=load((tmp_path / "secure/server.properties").read_bytes()))
    assert not settings.warnings
    assert broker_listener_name(settings) is None


def test_the_brokers_of_a_cluster_use_the_listener_for_certificates(tmp_path: Path) -> None:
    made(tmp_path / "secure", **CLUSTER, found_in="/etc/lamina")
    for node_id in (1, 2):
        file = load((tmp_path / f"secure/broker-{node_id}/server.properties").read_bytes())
        assert broker_listener_name(resolve_broker(file=file)) == "BROKERS"
        assert file["ssl.keystore.location"] == "/etc/lamina/broker.pem"
        assert file["super.users"] == "User:admin;User:broker-1;User:broker-2"
        assert file["advertised.listeners"] == f"CLIENTS://m{node_id}:9092,BROKERS://m{node_id}:9093"
        assert (tmp_path / f"secure/broker-{node_id}/ca.pem").exists()


def test_certificates_are_signed_by_the_authority_for_their_hosts_and_days(tmp_path: Path) -> None:
    directory = tmp_path / "secure"
    files = made(directory)
    for name, hosts in (("broker", {"kafka.example.com"}), ("admin", set())):
        store = read_key_store(KeyStoreSource("PEM", str(directory / f"{name}.pem")))
        facts = facts_of(store.certificate)
        assert facts.alternative_names == hosts
        assert facts.not_after_ms == NOW_MS + 100 * DAY_MS
        store.certificate.verify_directly_issued_by(x509.load_pem_x509_certificate(files["ca.pem"].encode()))
    context = ssl.create_default_context(cadata=files["ca.pem"])
    assert len(context.get_ca_certs()) == 1


def test_a_certificate_is_the_principal_that_it_names(tmp_path: Path) -> None:
    directory = tmp_path / "secure"
    made(directory)
    file = load((directory / "server.properties").read_bytes())
    rules = parse_rules(file["listener.name.brokers.ssl.principal.mapping.rules"])
    for name, principal in (("broker", "broker-1"), ("admin", "admin")):
        certificate = read_key_store(KeyStoreSource("PEM", str(directory / f"{name}.pem"))).certificate
        assert map_name(rules, facts_of(certificate).name) == principal


def test_clients_files_are_understood_and_each_user_has_a_password_of_its_own(tmp_path: Path) -> None:
    directory = tmp_path / "secure"
    made(directory, **CLUSTER)
    admin = load((directory / "admin.properties").read_bytes())
    assert admin["bootstrap.servers"] == "m1:9093,m2:9093"
    assert parse_security(admin).protocol == "SSL"
    logins = {}
    for user in ("orders", "billing"):
        given = load((directory / f"{user}.properties").read_bytes())
        assert given["bootstrap.servers"] == "m1:9092,m2:9092"
        login = parse_security(given).login
        assert login is not None
        logins[login.user] = login.password
    assert logins == {"orders": "first", "billing": "second"}


def test_an_address_of_this_machine_is_bound_to_it_alone(tmp_path: Path) -> None:
    made(tmp_path / "secure", brokers=(BrokerPlace(1, "127.0.0.1"),))
    file = load((tmp_path / "secure/server.properties").read_bytes())
    assert file["listeners"] == "CLIENTS://127.0.0.1:9092,BROKERS://127.0.0.1:9093"
    certificate = read_key_store(KeyStoreSource("PEM", str(tmp_path / "secure/broker.pem"))).certificate
    assert facts_of(certificate).alternative_names == {"127.0.0.1", "localhost", "::1"}
