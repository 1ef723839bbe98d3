"""docs/security.md, typed into a terminal from its first line to its last; what it only names exists."""

import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from lamina.cluster.ports import is_free
from lamina.settings.lists import BROKER_SETTINGS
from tests.docs.shell import Shell
from tests.docs.test_tour import ADMIN_PORT, take
from tests.docs.transcript import steps_of

ROOT = Path(__file__).parents[2]
DOCUMENT = (ROOT / "docs/security.md").read_text()
CLIENTS_PORT, BROKERS_PORT = 9092, 9093

_LAMINA = """#!/bin/sh
export PYTHONPATH={sources}
case "$1" in
    serve|doctor)
        what=$1; shift
        set -- "$what" --set lamina.admin.listeners=127.0.0.1:{admin} --set lamina.spark.master=none "$@" ;;
    security)
        set -- "$@" --port {clients} ;;
esac
exec {python} -c "from lamina.cli import main; main()" "$@"
"""


@pytest.fixture
def ports() -> dict[int, int]:
    """Free ones, side by side and as long as the document's, so that tables are as wide."""
    number = os.getpid() % 2000
    first = next(
        port
        for port in (2000 + (number + step) % 2000 * 3 for step in range(2000))
        if all(is_free(one) for one in range(port, port + 3))
    )
    return {CLIENTS_PORT: first, BROKERS_PORT: first + 1, ADMIN_PORT: first + 2}


@pytest.fixture
def shell(disk_path: Path, ports: dict[int, int]) -> Iterator[Shell]:
    programs, directory = disk_path / "bin", disk_path / "here"
    programs.mkdir()
    directory.mkdir()
    words = {
        "sources": ROOT / "src",
        "clients": ports[CLIENTS_PORT],
        "admin": ports[ADMIN_PORT],
        "python": sys.executable,
    }
    (programs / "lamina").write_text(_LAMINA.format(**words))
    (programs / "lamina").chmod(0o755)
    environment = {"PATH": f"{programs}:{os.environ['PATH']}", "HOME": str(disk_path)}
    with Shell(directory, environment) as shell:
        yield shell


@pytest.mark.timeout(600)
def test_what_is_typed_shows_what_the_page_says(shell: Shell, ports: dict[int, int], disk_path: Path) -> None:
    for step in steps_of(DOCUMENT):
        shown = take(step, shell, ports)
        assert step.matches(shown), "\n".join([f"$ {step.typed}", *shown, "", "but the page shows:", *step.shown])
    assert list((disk_path / "here").iterdir()) == [], "it cleans up"


def test_every_setting_of_a_broker_that_is_named_exists() -> None:
    named = set(re.findall(r"`([a-z]+(?:\.[a-z]+)+)=?[^`]*`", DOCUMENT))
    of_clients = {"security.protocol", "ssl.ca.location", "sasl.mechanism", "sasl.username", "sasl.password"}
    files = {name for name in named if name.endswith((".pem", ".properties", ".md", ".log"))}
    unknown = {name for name in named - of_clients - files - BROKER_SETTINGS.keys() if "." in name}
    assert {
        name for name in unknown if name.startswith(("connections.", "inter.", "listener.security", "zoo"))
    } == set()


def test_every_file_that_is_linked_exists() -> None:
    linked = re.findall(r"\]\(([^)#]+)", DOCUMENT)
    assert len(linked) > 4
    assert all((ROOT / "docs" / path).exists() for path in linked)
