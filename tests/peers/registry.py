"""A real schema registry, Apicurio, which keeps its schemas in a topic of a broker; and Confluent's serializers.

Owns where they come from, each once, into the cache of ``tests.peers.kafka``: the registry by Maven, the serializers by
pip. The registry offers Confluent's API below a path. Must not know what is registered.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from urllib.error import URLError
from urllib.request import ProxyHandler, build_opener

from lamina.cluster.ports import free_port
from tests.broker.process import eventually
from tests.peers.kafka import SMALL_HEAP, cache_directory

APICURIO = "3.0.9"
"""The last version that runs on Java 17 is of 3.0."""
SERIALIZERS = "confluent-kafka[avro,json,schemaregistry]==2.16.0"
START_SECONDS = 120
ROOT = Path(__file__).parents[2]


class RegistryMissingError(Exception):
    """The registry or the serializers cannot be had on this machine; the message says in one sentence why."""


@contextmanager
def apicurio(bootstrap: str, log: Path, port: int | None = None) -> Iterator[str]:
    """The URL of its API in Confluent's form; ended like a crash."""
    port = free_port() if port is None else port
    settings = {
        "apicurio.storage.kind": "kafkasql",
        "apicurio.kafkasql.bootstrap.servers": bootstrap,
        "quarkus.http.host": "127.0.0.1",
        "quarkus.http.port": str(port),
    }
    given = [f"-D{name}={value}" for name, value in settings.items()]
    (runner,) = _unpacked().glob("*-runner.jar")
    url = f"http://127.0.0.1:{port}/apis/ccompat/v7"
    with open(log, "ab") as output:
        process = subprocess.Popen(
            ["java", *SMALL_HEAP, *given, "-jar", str(runner)], stdout=output, stderr=subprocess.STDOUT
        )
    with process:
        try:
            eventually(lambda: _answers(process, url, log), seconds=START_SECONDS)
            yield url
        finally:
            process.kill()


def serialize(bootstrap: str, url: str, topic: str) -> None:
    """Runs ``tests.peers.serializing`` with Confluent's serializers on its path."""
    path = os.pathsep.join([str(_serializers()), str(ROOT)])
    command = [sys.executable, "-m", "tests.peers.serializing", bootstrap, url, topic]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=120, cwd=ROOT, env={**os.environ, "PYTHONPATH": path}
    )
    assert done.returncode == 0, done.stderr


def _answers(process: subprocess.Popen[bytes], url: str, log: Path) -> bool:
    assert process.poll() is None, log.read_text()[-3000:]
    try:
        with build_opener(ProxyHandler({})).open(f"{url}/subjects", timeout=10) as answer:
            return bool(answer.status == 200)
    except (URLError, OSError):
        return False


@cache
def _unpacked() -> Path:
    found = cache_directory() / f"apicurio-{APICURIO}"
    if not found.is_dir():
        cache_directory().mkdir(parents=True, exist_ok=True)
        # Renamed when complete, so that an interrupted or a simultaneous download leaves no half archive.
        with tempfile.TemporaryDirectory(dir=cache_directory(), ignore_cleanup_errors=True) as scratch:
            _fetch(Path(scratch))
            (archive,) = Path(scratch).glob("*.tar.gz")
            with tarfile.open(archive) as packed:
                packed.extractall(Path(scratch) / "all", filter="data")
            (Path(scratch) / "all").rename(found)
    return found


def _fetch(target: Path) -> None:
    artifact = f"io.apicurio:apicurio-registry-app:{APICURIO}:tar.gz:all"
    command = ["mvn", "-q", "-B", "dependency:copy", f"-Dartifact={artifact}", f"-DoutputDirectory={target}"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=target)
    if done.returncode != 0:
        reason = next((line for line in done.stdout.splitlines() if "ERROR" in line), "it said nothing")
        raise RegistryMissingError(f"Maven could not fetch {artifact}: {reason}")


@cache
def _serializers() -> Path:
    found = cache_directory() / SERIALIZERS.replace("[", "-").replace("]", "").replace(",", "-").replace("==", "-")
    if not found.is_dir():
        cache_directory().mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=cache_directory(), ignore_cleanup_errors=True) as scratch:
            fetched = Path(scratch) / "site"
            pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
            command = [*pip, "--only-binary", ":all:", "--target", str(fetched), SERIALIZERS]
            done = subprocess.run(command, capture_output=True, text=True)
            if done.returncode != 0:
                last = (done.stderr.strip().splitlines() or ["it said nothing"])[-1]
                raise RegistryMissingError(f"pip could not fetch {SERIALIZERS}: {last}")
            fetched.rename(found)
    return found
