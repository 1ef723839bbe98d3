"""What a broker loads when it starts: a tenth of its start is not spent on what it will not use."""

import subprocess
import sys

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
    "email",
    "importlib.metadata",
    "jwt",
    "kio",
    "lamina.tls",
    "numba",
    "numpy",
    "pyarrow",
    "rich",
    "tempfile",
    "zipfile",
)


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
