"""Who may see and who may change something at the admin listener (S90)."""

import stat
from collections.abc import Callable

import pytest

from lamina.broker.admin.access import Access, Need
from lamina.broker.admin.routes import ROUTES
from lamina.broker.admin.token import Token
from tests.broker.admin.asking import ask, bearer, get
from tests.broker.process import BrokerProcess

VIEWER, OPERATOR = "the-token-of-a-viewer", "the-token-of-an-operator"
LOGGER, DEBUG = "/v1/log-levels/lamina.wire", b'{"level": "info"}'
EXPLAIN = "/v1/cleaner/explain"


@pytest.mark.parametrize("is_open", [True, False])
def test_each_role_may_do_what_the_lower_ones_may(is_open: bool) -> None:
    access = Access(Token(OPERATOR), Token(VIEWER), is_reading_open=is_open)
    allowed = {
        given: {need for need in Need if access.allows(need, given)}
        for given in (None, "", "something-else", VIEWER[:-1], VIEWER, OPERATOR)
    }
    nobody = {Need.NOTHING, Need.READING} if is_open else {Need.NOTHING}
    assert allowed[None] == allowed[""] == allowed["something-else"] == allowed[VIEWER[:-1]] == nobody
    assert allowed[VIEWER] == {Need.NOTHING, Need.READING, Need.RECORDS}
    assert allowed[OPERATOR] == set(Need)


def test_a_certificate_has_its_principals_role() -> None:
    access = Access(
        None, None, is_reading_open=False, operators=frozenset({"User:CN=op"}), viewers=frozenset({"User:CN=mon"})
    )
    assert {need for need in Need if access.allows(need, None, "User:CN=op")} == set(Need)
    seen = {need for need in Need if access.allows(need, None, "User:CN=mon")}
    assert seen == {Need.NOTHING, Need.READING, Need.RECORDS}
    for stranger in ("User:CN=other", "User:ANONYMOUS", "CN=op", None):
        assert not access.allows(Need.READING, None, stranger)


def test_without_tokens_nobody_has_a_role() -> None:
    access = Access(None, None, is_reading_open=False)
    assert [need for need in Need if access.allows(need, "None")] == [Need.NOTHING]


def test_only_health_asks_for_nothing_and_every_change_for_an_operator() -> None:
    assert {route.path for route in ROUTES if route.need is Need.NOTHING} == {"/healthz", "/readyz"}
    assert {route.path for route in ROUTES if route.need is Need.RECORDS} == {EXPLAIN}
    for route in ROUTES:
        assert (route.need is Need.CHANGING) == (route.method != "GET")


def token_of(broker: BrokerProcess, name: str) -> str:
    return (broker.data_dir / name).read_text().strip()


def test_where_reading_is_closed_everything_but_health_wants_a_token(own_broker: Callable[..., BrokerProcess]) -> None:
    broker = own_broker("--set", "lamina.admin.authentication=required")
    viewer, operator = (bearer(token_of(broker, name)) for name in ("admin.viewer.token", "admin.token"))
    assert get(broker, "/healthz")
    assert get(broker, "/readyz")
    for route in ROUTES:
        if route.method != "GET" or "{" in route.path or route.need is Need.NOTHING or route.path == "/metrics":
            continue
        told = ask(broker, route.path)
        assert (told.status, told.headers["WWW-Authenticate"]) == (401, "Bearer"), route.path
        assert "admin.viewer.token" in told.body["message"]
        expected = 400 if route.path == EXPLAIN else 200
        assert ask(broker, route.path, headers=viewer).status == expected, route.path
        assert ask(broker, route.path, headers=operator).status == expected, route.path
    assert ask(broker, LOGGER, "PUT", DEBUG, viewer).status == 401
    assert ask(broker, LOGGER, "PUT", DEBUG, operator).status == 200
    assert all(route["needs_token"] for route in ask(broker, "/v1/", headers=viewer).body["routes"][2:])


def test_where_reading_is_open_records_want_a_viewer(own_broker: Callable[..., BrokerProcess]) -> None:
    broker = own_broker()
    assert get(broker, "/v1/settings")
    assert ask(broker, EXPLAIN).status == 401
    assert ask(broker, EXPLAIN, headers=bearer(token_of(broker, "admin.viewer.token"))).status == 400
    file = broker.data_dir / "admin.viewer.token"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert token_of(broker, "admin.viewer.token") != token_of(broker, "admin.token")
    assert token_of(broker, "admin.viewer.token") not in "\n".join(broker.log)


def test_a_viewers_token_from_the_environment_is_the_only_one(
    own_broker: Callable[..., BrokerProcess], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LAMINA_ADMIN_VIEWER_TOKEN", VIEWER)
    broker = own_broker("--set", "lamina.admin.authentication=required")
    assert not (broker.data_dir / "admin.viewer.token").exists()
    assert ask(broker, "/v1/topics", headers=bearer(VIEWER)).status == 200
    assert ask(broker, "/v1/topics", headers=bearer(OPERATOR)).status == 401


def test_a_broker_whose_clients_log_in_shows_strangers_nothing_and_no_secret_to_anybody(
    own_broker: Callable[..., BrokerProcess],
) -> None:
    module = "org.apache.kafka.common.security.plain.PlainLoginModule"
    broker = own_broker(
        *("--set", "listeners=PLAINTEXT://127.0.0.1:0,SASL_PLAINTEXT://127.0.0.1:0"),
        *("--set", "sasl.enabled.mechanisms=PLAIN"),
        *(
            "--set",
            f'listener.name.sasl_plaintext.plain.sasl.jaas.config={module} required user_alice="alice-secret";',
        ),
    )
    assert ask(broker, "/v1/settings").status == 401
    viewer = bearer(token_of(broker, "admin.viewer.token"))
    for path in ("/v1/settings", "/v1/connections", "/v1/brokers"):
        told = ask(broker, path, headers=viewer)
        assert told.status == 200
        assert "alice-secret" not in str(told.body)
