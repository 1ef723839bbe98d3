"""Whoever gives a broker or a command a secret that others can read is told (S86, S89)."""

from pathlib import Path

import pytest

from lamina.cli.options.secrets import client_secret_warning
from lamina.cli.options.settings import settings_from
from tests.broker.process import BrokerProcess
from tests.cli.running import Lamina

SECRET = "hunter2"
NAME = "listener.name.sasl_plaintext.plain.sasl.jaas.config"
ENTRY = f'org.apache.kafka.common.security.plain.PlainLoginModule required user_alice="{SECRET}";'

LISTENER = ("listeners=SASL_PLAINTEXT://127.0.0.1:0", "sasl.enabled.mechanisms=PLAIN")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "server.properties"
    path.touch(mode=0o600)
    return path


def warnings(file: Path | None, *sets: str) -> tuple[str, ...]:
    told = settings_from(None if file is None else str(file), None, None, sets).warnings
    assert SECRET not in " ".join(told)
    return told


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o644, 0o666])
def test_a_file_that_others_may_read(file: Path, mode: int) -> None:
    file.write_text("\n".join((*LISTENER, f"{NAME}={ENTRY}")))
    file.chmod(mode)
    assert warnings(file) == (f"{NAME}: others may read {file}: chmod 600 {file}",)


def test_a_file_of_its_owner_alone(file: Path) -> None:
    file.write_text("\n".join((*LISTENER, f"{NAME}={ENTRY}")))
    assert warnings(file) == ()


def test_a_file_without_secrets_may_be_read_by_all(file: Path) -> None:
    file.write_text("num.partitions=3\nssl.keystore.password=\n")
    file.chmod(0o644)
    assert warnings(file) == ()


def test_a_command_line() -> None:
    (told,) = warnings(None, *LISTENER, f"{NAME}={ENTRY}")
    assert told == f"{NAME}: everybody on this machine can read a command line: give it in a file, by --config"


@pytest.mark.parametrize(
    "name", ["sasl.password", "sasl.jaas.config", "ssl.key.password", "ssl.keystore.key", "ssl.truststore.password"]
)
def test_a_clients_file_that_others_may_read(file: Path, name: str) -> None:
    file.write_text(f"{name}={SECRET}")
    file.chmod(0o640)
    assert client_secret_warning(str(file), {name: SECRET}) == f"{name}: others may read {file}: chmod 600 {file}"
    file.chmod(0o600)
    assert client_secret_warning(str(file), {name: SECRET}) is None


def test_a_clients_file_without_a_password_may_be_read_by_all(file: Path) -> None:
    file.write_text("security.protocol=SSL")
    file.chmod(0o644)
    assert client_secret_warning(str(file), {"security.protocol": "SSL"}) is None


def test_a_command_warns_of_its_file_once(lamina: Lamina, broker: BrokerProcess, file: Path) -> None:
    file.write_text(f"ssl.key.password={SECRET}\nsecurity.protocol=PLAINTEXT\n")
    file.chmod(0o644)
    outcome = lamina("topics", "list", "--bootstrap-server", broker.address, "--command-config", file)
    assert outcome.err.splitlines()[:1] == [f"lamina: ssl.key.password: others may read {file}: chmod 600 {file}"]
    assert outcome.err.count("chmod") == 1
    assert SECRET not in outcome.err
