"""What a broker loads when it starts: a tenth of its start is not spent on what it will not use."""

import subprocess
import sys
from pathlib import Path

OF_MEMBERS = (
    "lamina.broker.member_parts",
    "lamina.broker.metadata.member",
    "lamina.broker.replication",
    "lamina.peer.connection",
    "lamina.store.membership",
    "lamina.store.registration",
    "lamina.store.znodes",
    "lamina.store.zookeeper",
    "kazoo",
)


OF_NOBODY = (
    "argparse",
    "cryptography",
    "decimal",
    "email",
    "fractions",
    "importlib.metadata",
    "jwt",
    "kio",
    "lamina.broker.moving.partition_move",
    "lamina.tls",
    "numba",
    "numpy",
    "pathlib",
    "pickle",
    "pyarrow",
    "rich",
    "tempfile",
    "zipfile",
)


OF_LOGINS = (
    "lamina.broker.login",
    "lamina.security.jaas",
    "lamina.security.oauthbearer",
    "lamina.security.plain",
    "lamina.security.scram",
    "lamina.security.token_claims",
    "lamina.settings.oauthbearer",
)

OF_CLIENTS = (
    "lamina.client.cluster",
    "lamina.peer.connection",
    "lamina.peer.security",
    "lamina.peer.security_properties",
)

_START = """
import asyncio, sys
import lamina.cli.serve.log_lines, lamina.cli.serve.start_lines
from lamina.broker.server import Server
from lamina.cli.options.settings import settings_from

data_directory, names, *sets = sys.argv[1:]
server = Server(settings_from(None, data_directory, None, sets, **{"lamina.admin.listeners": "127.0.0.1:0"}))
assert asyncio.run(server.run(lambda started: server.stop())) is None
print(*(name for name in names.split() if name in sys.modules))
"""


def loaded_with(module: str, names: tuple[str, ...] = OF_MEMBERS) -> list[str]:
    code = f"import sys, {module}; print(*(name for name in {names!r} if name in sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.split()


def test_a_broker_by_itself_loads_nothing_that_members_of_a_cluster_need() -> None:
    assert loaded_with("lamina.broker.server") == []


def test_a_member_loads_it() -> None:
    assert set(loaded_with("lamina.broker.member_parts")) == set(OF_MEMBERS) - {"lamina.store.zookeeper", "kazoo"}


def test_a_start_loads_nothing_large_that_no_broker_needs() -> None:
    assert loaded_with("lamina.cli.serve, lamina.broker.server", OF_NOBODY) == []


def loaded_by_start(directory: Path, names: tuple[str, ...], *sets: str) -> list[str]:
    """Of a broker that went on to where it serves clients."""
    arguments = [sys.executable, "-c", _START, str(directory / "data"), " ".join(names), *sets]
    done = subprocess.run(arguments, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def test_a_broker_with_plain_listeners_starts_without_what_logins_and_the_command_line_need(tmp_path: Path) -> None:
    names = (*OF_MEMBERS, *OF_NOBODY, *OF_LOGINS, *OF_CLIENTS)
    assert loaded_by_start(tmp_path, names, "listeners=PLAINTEXT://127.0.0.1:0") == []


def test_a_listener_whose_clients_log_in_loads_logins_and_the_entry_that_its_settings_have(tmp_path: Path) -> None:
    sets = (
        "listeners=SASL_PLAINTEXT://127.0.0.1:0",
        "sasl.enabled.mechanisms=PLAIN",
        "listener.name.sasl_plaintext.plain.sasl.jaas.config="
        'org.apache.kafka.common.security.plain.PlainLoginModule required user_alice="secret";',
    )
    assert set(loaded_by_start(tmp_path, OF_LOGINS, *sets)) >= {"lamina.broker.login", "lamina.security.jaas"}
