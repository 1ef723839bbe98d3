"""What stops the start of a listener with TLS, and what is told of its certificate in time (S11, S14, S25)."""

import logging
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from lamina.broker.network.tls_listeners import TlsError, TlsListeners
from lamina.cli.doctor.certificates import check_certificate
from lamina.cli.doctor.finding import State
from lamina.settings.listeners import listeners
from lamina.settings.resolve import resolve_broker
from lamina.settings.ssl_stores import listener_ssl
from lamina.settings.values import BrokerSettings
from lamina.storage import StartError
from tests.broker.in_thread import BrokerInThread
from tests.tls.certificates import LONG_AGO, Authority

AUTHORITY = Authority()
NOW = datetime.now(UTC)
DAY_MS = 86_400_000


def given(path: Path, **others: str) -> dict[str, str]:
    return {
        "listeners": "SSL://127.0.0.1:0",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(path),
        **others,
    }


def settings_until(directory: Path, until: datetime, *hosts: str) -> BrokerSettings:
    own = AUTHORITY.issue(*(hosts or ("127.0.0.1",)), name="broker", until=until)
    return resolve_broker(file=given(own.pem(directory / "own.pem")))


def now_ms(after: timedelta = timedelta()) -> int:
    return int((NOW + after).timestamp() * 1000)


def test_a_plain_broker_has_none_and_needs_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "lamina.tls.server_identity", None)
    tls = TlsListeners(resolve_broker(), now_ms)
    assert not tls
    assert tls.get("PLAINTEXT") is None
    assert tls.changed(resolve_broker()) == {}


def test_a_certificate_that_has_expired_stops_the_start(tmp_path: Path) -> None:
    with pytest.raises(TlsError, match=r"^listener SSL: the certificate of CN=broker,.* has expired on 2020-01-01$"):
        TlsListeners(settings_until(tmp_path, LONG_AGO), now_ms)


def test_a_broker_says_so_and_does_not_start(tmp_path: Path) -> None:
    missing = tmp_path / "missing.pem"
    broker = BrokerInThread(tmp_path / "data", **given(missing), **{"lamina.admin.listeners": ""})
    with pytest.raises(AssertionError):
        broker.start()
    assert isinstance(broker.problem, StartError)
    assert str(broker.problem) == (
        f"listener SSL: ssl.keystore.location = {missing}: cannot be read: No such file or directory"
    )


def test_without_the_package_the_start_says_what_brings_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Missing:
        def find_spec(self, name: str, *_: object) -> None:
            if name == "lamina.tls.server_identity":
                raise ModuleNotFoundError("No module named 'cryptography'", name="cryptography")

    settings = settings_until(tmp_path, NOW + timedelta(days=90))
    monkeypatch.delitem(sys.modules, "lamina.tls.server_identity", raising=False)
    monkeypatch.setattr(sys, "meta_path", [Missing(), *sys.meta_path])
    with pytest.raises(TlsError, match=r'pip install "lamina\[security\]" brings it'):
        TlsListeners(settings, now_ms)


def test_an_end_is_told_30_7_and_1_days_ahead_and_when_it_has_come(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    clock = [now_ms()]
    tls = TlsListeners(settings_until(tmp_path, NOW + timedelta(days=40)), lambda: clock[0])
    for _ in range(42):
        tls.warn()
        tls.warn()
        clock[0] += DAY_MS
    said = [record.message for record in caplog.records if record.levelno == logging.WARNING]
    assert [line.rpartition(", ")[2] for line in said] == [
        "expires in less than 30 days",
        "expires in less than 7 days",
        "expires in less than a day",
        "has expired: clients refuse it",
    ]
    assert said[0].startswith("the certificate of listener SSL, of CN=broker,")


@pytest.mark.parametrize(
    ("left", "state", "what"),
    [
        (timedelta(days=90), State.FINE, "for 127.0.0.1, expires in 90 days"),
        (timedelta(days=20), State.WARNING, "expires in 20 days"),
        (timedelta(days=-1), State.PROBLEM, "has expired on"),
    ],
)
def test_doctor_says_until_when_a_certificate_holds(tmp_path: Path, left: timedelta, state: State, what: str) -> None:
    settings = settings_until(tmp_path, NOW + left + timedelta(minutes=1))
    (listener,) = listeners(settings)
    ssl = listener_ssl(settings, listener)
    assert ssl is not None
    finding = check_certificate(listener, ssl, now_ms())
    assert finding.name == "certificate of SSL"
    assert finding.state is state
    assert what in finding.what
    assert bool(finding.advice) == (state is not State.FINE)
