"""What changes something needs the token, and the token is kept well."""

import json
import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from lamina.broker.admin.token import find_token
from tests.broker.admin.asking import ask, bearer, get, refused
from tests.broker.process import BrokerProcess
from tests.broker.raw import RawClient

DEBUG = b'{"level": "debug"}'
LOGGER = "/v1/log-levels/lamina.broker.timers"


def token_of(broker: BrokerProcess) -> str:
    return (broker.data_dir / "admin.token").read_text().strip()


def level_of(broker: BrokerProcess, logger: str) -> tuple[str, bool]:
    [row] = [row for row in get(broker, "/v1/log-levels")["loggers"] if row["logger"] == logger]
    return row["level"], row["is_set"]


def test_levels_change_for_a_logger_and_those_below_it_and_change_back(
    own_broker: Callable[..., BrokerProcess],
) -> None:
    broker = own_broker()
    authorized = bearer(token_of(broker))
    loggers = [row["logger"] for row in get(broker, "/v1/log-levels")["loggers"]]
    assert loggers == sorted(loggers)
    assert {"lamina", "lamina.broker", "lamina.log", "lamina.wire", "lamina.store"} <= set(loggers)
    told = ask(broker, "/v1/log-levels/lamina.broker", "PUT", DEBUG, authorized)
    assert (told.status, told.body) == (200, {"logger": "lamina.broker", "level": "debug", "is_set": True})
    assert level_of(broker, "lamina.broker.timers") == ("debug", False)
    assert level_of(broker, "lamina.log.directory") == ("info", False)
    broker.wait_for_log("logger lamina.broker is set to level debug")
    told = ask(broker, "/v1/log-levels/lamina.broker", "DELETE", headers=authorized)
    assert (told.status, told.body) == (200, {"logger": "lamina.broker", "level": "info", "is_set": False})
    assert level_of(broker, "lamina.broker.timers") == ("info", False)
    assert token_of(broker) not in "\n".join(broker.log)


def test_a_level_holds_for_what_is_logged(own_broker: Callable[..., BrokerProcess]) -> None:
    broker = own_broker()
    authorized = bearer(token_of(broker))
    since = len(broker.log)
    for level in ("critical", "warning"):
        body = json.dumps({"level": level}).encode()
        assert ask(broker, "/v1/log-levels/lamina.broker.network.connection", "PUT", body, authorized).status == 200
        with RawClient(broker) as client:
            client.send(b"\x7f\xff\xff\xff")
            assert client.is_closed()
            peer = client.peer
    # What the first client did would stand before what the second did.
    broker.wait_for_log(peer, since)
    assert sum("127.0.0.1:" in line for line in broker.log[since:]) == 1


@pytest.mark.parametrize(
    "headers",
    [
        {},
        bearer(""),
        bearer("wrong"),
        bearer("é" * 64),
        {"Authorization": "Bearer"},
        {"Authorization": "Basic dXNlcjpwYXNz"},
    ],
)
@pytest.mark.parametrize("method", ["PUT", "DELETE"])
def test_nothing_changes_without_the_right_token(broker: BrokerProcess, method: str, headers: dict[str, str]) -> None:
    encoded = {name: value.encode().decode("latin-1") for name, value in headers.items()}
    told = ask(broker, LOGGER, method, DEBUG, encoded)
    assert (told.status, told.body["error"]) == (401, "unauthorized")
    assert told.headers["WWW-Authenticate"] == "Bearer"
    assert "admin.token" in told.body["message"]
    assert level_of(broker, "lamina.broker.timers") == ("info", False)


def test_the_token_for_the_query_or_half_of_it_is_not_enough(broker: BrokerProcess) -> None:
    token = token_of(broker)
    refused(broker, f"{LOGGER}?token={token}", 401, method="PUT", body=DEBUG)
    refused(broker, LOGGER, 401, method="PUT", body=DEBUG, headers=bearer(token[:-1]))
    refused(broker, LOGGER, 401, method="PUT", body=DEBUG, headers=bearer(token + "0"))


@pytest.mark.parametrize(
    "body",
    [b"", b"debug", b"{}", b"[]", b'{"level": "loud"}', b'{"level": 10}', b'{"level": null}', b"\xff", b"[" * 10_000],
)
def test_a_body_that_names_no_level(broker: BrokerProcess, body: bytes) -> None:
    said = refused(broker, LOGGER, 400, method="PUT", body=body, headers=bearer(token_of(broker)))
    assert "debug, info, warning, error, critical" in said


@pytest.mark.parametrize("logger", ["root", "lamina.nothing", "asyncio", "lamina.brokers", "%2e%2e", "l" * 4000])
@pytest.mark.parametrize("method", ["PUT", "DELETE"])
def test_a_logger_that_is_not_there(broker: BrokerProcess, logger: str, method: str) -> None:
    path = f"/v1/log-levels/{logger}"
    assert "/v1/log-levels" in refused(broker, path, 404, method=method, body=DEBUG, headers=bearer(token_of(broker)))


def test_a_wrong_method_on_a_writing_route(broker: BrokerProcess) -> None:
    told = ask(broker, LOGGER, "POST", DEBUG, bearer(token_of(broker)))
    assert told.status == 405
    assert {one.strip() for one in told.headers["Allow"].split(",")} == {"PUT", "DELETE"}


def test_the_token_is_made_once_for_its_owner_alone(own_broker: Callable[..., BrokerProcess]) -> None:
    broker = own_broker()
    file = broker.data_dir / "admin.token"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    token = token_of(broker)
    assert len(bytes.fromhex(token)) == 32
    broker.restart()
    assert token_of(broker) == token
    assert not list(broker.data_dir.glob("admin.token.*"))


def test_a_token_from_the_environment_is_the_only_one(
    own_broker: Callable[..., BrokerProcess], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LAMINA_ADMIN_TOKEN", "correct-horse-battery-staple")
    broker = own_broker()
    assert not (broker.data_dir / "admin.token").exists()
    assert ask(broker, LOGGER, "PUT", DEBUG, bearer("correct-horse-battery-staple")).status == 200
    assert ask(broker, LOGGER, "PUT", DEBUG, bearer("something-else-altogether")).status == 401
    assert "correct-horse" not in "\n".join(broker.log)


@pytest.mark.parametrize("text", ["", "short", "with a space in its middle", "x" * 2000, "ünïcödé-and-long-enough"])
def test_a_token_file_that_cannot_be_used_switches_writing_off(
    tmp_path: Path, text: str, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "admin.token").write_text(text)
    assert find_token(str(tmp_path)) is None
    assert "remove the file" in caplog.text
    assert not text or text not in caplog.text


def test_a_weak_token_in_the_environment_switches_writing_off(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("LAMINA_ADMIN_TOKEN", "hunter2")
    assert find_token(str(tmp_path)) is None
    assert "LAMINA_ADMIN_TOKEN" in caplog.text
    assert "hunter2" not in caplog.text


def test_a_token_file_that_others_could_read_is_closed_to_them(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "admin.token"
    file.write_text("0123456789abcdef\n")
    file.chmod(0o644)
    token = find_token(str(tmp_path))
    assert token is not None
    assert token.matches("0123456789abcdef")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert "could be read by others" in caplog.text


def test_a_token_that_cannot_be_written_switches_writing_off(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "admin.token.tmp").mkdir()
    assert find_token(str(tmp_path)) is None
    assert os.fspath(tmp_path) in caplog.text
