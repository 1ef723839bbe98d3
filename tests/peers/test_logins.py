"""Kafka's own Java clients and tools against a listener with SASL: by every mechanism, with right and wrong passwords,
and for longer than a login holds (S43, S71, S74)."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from lamina.cluster.ports import free_port
from tests.peers.kafka import KafkaFailedError, run_tool
from tests.peers.lamina import Lamina
from tests.peers.secure_kafka import unsecured_token

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(300)]

SECURITY = "org.apache.kafka.common.security"
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")
PASSWORD = "alice secret"
REAUTH_MS = 1500


class LaminaWithLogins(Lamina):
    """Its plain listener is the one that tools administer."""

    def __init__(self, root: Path) -> None:
        self.logins = f"127.0.0.1:{free_port()}"
        plain = free_port()
        settings = {
            "listeners": f"PLAINTEXT://127.0.0.1:{plain},SASL_PLAINTEXT://{self.logins}",
            "sasl.enabled.mechanisms": ",".join(MECHANISMS),
            "listener.name.sasl_plaintext.plain.sasl.jaas.config": (
                f'{SECURITY}.plain.PlainLoginModule required user_alice="{PASSWORD}";'
            ),
            "lamina.sasl.oauthbearer.unsecured.tokens": "true",
            "connections.max.reauth.ms": str(REAUTH_MS),
            "lamina.spark.master": "none",
        }
        super().__init__(root, settings)
        self._port = plain


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LaminaWithLogins]:
    broker = LaminaWithLogins(tmp_path_factory.mktemp("lamina"))
    with broker:
        # One by one: a request may name a user once.
        for password in (
            f"SCRAM-SHA-256=[iterations=8192,password={PASSWORD}]",
            f"SCRAM-SHA-512=[password={PASSWORD}]",
        ):
            configs(broker, "--entity-name", "alice", "--alter", "--add-config", password)
        yield broker
        broker.stop()
    assert "Traceback" not in broker.logged()
    assert PASSWORD not in broker.logged()


def configs(broker: Lamina, *arguments: str) -> str:
    where = ("--bootstrap-server", broker.bootstrap, "--entity-type", "users")
    return run_tool("kafka.admin.ConfigCommand", *where, *arguments)


def properties(file: Path, mechanism: str, password: str = PASSWORD) -> str:
    module, options = {
        "PLAIN": ("plain.PlainLoginModule", f'username="alice" password="{password}"'),
        "OAUTHBEARER": (
            "oauthbearer.OAuthBearerLoginModule",
            'unsecuredLoginStringClaim_sub="alice"' if password == PASSWORD else 'unsecuredLoginStringClaim_x="y"',
        ),
    }.get(mechanism, ("scram.ScramLoginModule", f'username="alice" password="{password}"'))
    if mechanism == "OAUTHBEARER" and password != PASSWORD:
        # It has a name, but not the one that the broker looks for; a client without one does not even try.
        options += ' unsecuredLoginPrincipalClaimName="x"'
    file.write_text(
        f"security.protocol=SASL_PLAINTEXT\nsasl.mechanism={mechanism}\n"
        f"sasl.jaas.config={SECURITY}.{module} required {options};\n"
    )
    return str(file)


def topics(broker: LaminaWithLogins, config: str, *arguments: str) -> str:
    where = ("--bootstrap-server", broker.logins, "--command-config", config)
    return run_tool("org.apache.kafka.tools.TopicCommand", *where, *arguments)


def test_kafka_configs_shows_and_deletes_users(broker: LaminaWithLogins) -> None:
    configs(broker, "--entity-name", "bob", "--alter", "--add-config", "SCRAM-SHA-256=[password=x]")
    described = configs(broker, "--describe")
    assert "user-principal 'alice' are SCRAM-SHA-256=iterations=8192, SCRAM-SHA-512=iterations=4096" in described
    assert "user-principal 'bob' are SCRAM-SHA-256=iterations=4096" in described
    configs(broker, "--entity-name", "bob", "--alter", "--delete-config", "SCRAM-SHA-256")
    assert "bob" not in configs(broker, "--describe")


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_a_java_client_with_the_right_password_is_let_in(
    broker: LaminaWithLogins, mechanism: str, tmp_path: Path
) -> None:
    config = properties(tmp_path / "client.properties", mechanism)
    topics(broker, config, "--create", "--topic", mechanism)
    assert mechanism in topics(broker, config, "--list").split()


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_a_java_client_with_a_wrong_password_is_told(broker: LaminaWithLogins, mechanism: str, tmp_path: Path) -> None:
    config = properties(tmp_path / "client.properties", mechanism, "wrong")
    told = "invalid_token" if mechanism == "OAUTHBEARER" else "Authentication failed: "
    with pytest.raises(KafkaFailedError, match=f"SaslAuthenticationException.*{told}"):
        topics(broker, config, "--list")


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_kcat(broker: LaminaWithLogins, mechanism: str) -> None:
    def kcat(password: str, *arguments: str, sent: str = "") -> subprocess.CompletedProcess[str]:
        login = {"sasl.username": "alice", "sasl.password": password}
        if mechanism == "OAUTHBEARER":
            login = {"enable.sasl.oauthbearer.unsecure.jwt": "true", "sasl.oauthbearer.config": "principal=alice"}
        given = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": mechanism, **login}
        options = [part for name, value in given.items() for part in ("-X", f"{name}={value}")]
        command = ["kcat", "-b", broker.logins, "-X", "allow.auto.create.topics=true", *options, *arguments]
        return subprocess.run(command, input=sent, capture_output=True, text=True, timeout=60)

    topic = f"kcat-{mechanism}"
    found = re.search(r"librdkafka (\d+)\.(\d+)\.(\d+)", kcat(PASSWORD, "-V").stdout)
    assert found is not None
    if mechanism.startswith("SCRAM") and tuple(map(int, found.groups())) < (2, 6, 1):
        assert "librdkafka before 2.6.1" in kcat(PASSWORD, "-L", "-m", "2").stderr
        return
    assert kcat(PASSWORD, "-P", "-t", topic, "-p", "0", sent="one\ntwo\n").returncode == 0
    assert kcat(PASSWORD, "-C", "-t", topic, "-p", "0", "-e", "-q").stdout == "one\ntwo\n"
    if mechanism != "OAUTHBEARER":
        refused = kcat("wrong", "-L", "-m", "2")
        assert refused.returncode != 0
        assert "Authentication failed: " in refused.stderr


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_franz_go_logs_in_and_again(franz_go: Path, broker: LaminaWithLogins, mechanism: str) -> None:
    """S73"""

    def log_in(secret: str) -> subprocess.CompletedProcess[str]:
        line = f"go-{mechanism} {mechanism} alice {secret}\n"
        return subprocess.run(
            [franz_go, broker.logins, "login"], input=line, capture_output=True, text=True, timeout=60
        )

    is_token = mechanism == "OAUTHBEARER"
    right = log_in(unsecured_token("alice") if is_token else PASSWORD)
    assert (right.returncode, right.stdout) == (0, "30\n"), right.stderr
    wrong = log_in(unsecured_token("alice", -1) if is_token else "wrong")
    assert wrong.returncode == 1
    assert ("oauth response" if is_token else "Authentication failed: ") in wrong.stderr


def test_a_java_producer_logs_in_again_and_loses_nothing(broker: LaminaWithLogins, tmp_path: Path) -> None:
    config = properties(tmp_path / "client.properties", "SCRAM-SHA-512")
    told = run_tool(
        "org.apache.kafka.tools.ProducerPerformance",
        *("--topic", "again", "--num-records", "60", "--record-size", "10", "--throughput", "10", "--print-metrics"),
        *("--producer-props", f"bootstrap.servers={broker.logins}", "--producer.config", config),
    )
    assert "60 records sent" in told
    counts = re.findall(r"producer-metrics:successful-reauthentication-total:\{[^}]*\}\s*:\s*([0-9.]+)", told)
    assert counts, told
    assert max(map(float, counts)) >= 2
