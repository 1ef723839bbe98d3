"""packaging/compose.yaml, read without starting anything."""

import tomllib
from pathlib import Path
from typing import Any

import pytest

from lamina.broker.admin.listening import advertised_admin
from lamina.cli.options.settings import settings_from
from lamina.settings.listeners import admin_listeners, advertised_listeners, listeners
from lamina.settings.values import BrokerSettings
from lamina.settings.zookeeper_options import zookeeper_options
from tests.packaging.compose_file import read_compose
from tests.packaging.test_containerfile import last

ROOT = Path(__file__).parents[2]
FILE = ROOT / "packaging/compose.yaml"
BROKERS = ("broker-1", "broker-2", "broker-3")
KNOWN = {
    *("build", "image", "restart", "stop_grace_period", "ulimits", "depends_on", "entrypoint", "command", "ports"),
    *("volumes", "environment", "healthcheck"),
}


@pytest.fixture(scope="module")
def compose() -> dict[str, Any]:
    return read_compose(FILE.read_text())


def settings_of(service: dict[str, Any]) -> BrokerSettings:
    """As the broker in the container would have them."""
    line: list[str] = [*service["entrypoint"], *service["command"]]
    assert line[:2] == ["lamina", "serve"]
    options = list(zip(line[2::2], line[3::2], strict=True))
    assert {name for name, _ in options} == {"--data-dir", "--zookeeper", "--node-id", "--set"}
    given = dict(options)
    sets = tuple(value for name, value in options if name == "--set")
    return settings_from(
        None,
        given["--data-dir"],
        None,
        (*sets, f"node.id={given['--node-id']}", f"zookeeper.connect={given['--zookeeper']}"),
    )


def test_it_has_a_zookeeper_and_three_brokers_with_nothing_but_what_is_known(compose: dict[str, Any]) -> None:
    assert set(compose["services"]) == {"zookeeper", *BROKERS}
    for service in compose["services"].values():
        assert service.keys() <= KNOWN


def test_brokers_differ_by_their_number_alone(compose: dict[str, Any]) -> None:
    first = str(compose["services"][BROKERS[0]])
    for number in (2, 3):
        numbered = first
        for place in ("broker-{}", "localhost:{}", "127.0.0.1:{}9", "'--node-id', '{}'"):
            numbered = numbered.replace(place.format(1), place.format(number))
        assert numbered == str(compose["services"][f"broker-{number}"])


@pytest.mark.parametrize("name", BROKERS)
def test_clients_and_tools_on_the_machine_reach_every_broker_where_it_says_and_nobody_else_does(
    compose: dict[str, Any], name: str
) -> None:
    service = compose["services"][name]
    settings = settings_of(service)
    assert not settings.warnings
    published = dict(one.removeprefix("127.0.0.1:").split(":") for one in service["ports"])
    assert all(one.startswith("127.0.0.1:") for one in service["ports"])
    clients, brokers = advertised_listeners(settings)
    (admin,) = advertised_admin(settings, admin_listeners(settings))
    inside = {one.name: one.port for one in listeners(settings)}
    for outside, port in ((clients, inside["PLAINTEXT"]), (admin, admin_listeners(settings)[0].port)):
        assert outside.host == "localhost"
        assert published[str(outside.port)] == str(port)
    assert (brokers.host, brokers.port) == (name, inside["BROKERS"])
    # The health check of the image asks there.
    assert last("HEALTHCHECK").endswith(f'"127.0.0.1:{inside["PLAINTEXT"]}"]')


def test_brokers_join_the_zookeeper_that_is_there_once_it_answers(compose: dict[str, Any]) -> None:
    for name in BROKERS:
        options = zookeeper_options(settings_of(compose["services"][name]))
        assert options is not None
        assert [host.partition(":")[0] for host in options.hosts] == ["zookeeper"]
        assert compose["services"][name]["depends_on"] == {"zookeeper": {"condition": "service_healthy"}}
    assert "healthcheck" in compose["services"]["zookeeper"]


def test_data_lies_in_volumes_that_are_declared(compose: dict[str, Any]) -> None:
    used = [one.split(":")[0] for service in compose["services"].values() for one in service["volumes"]]
    assert sorted(used) == sorted(compose["volumes"])
    for name in BROKERS:
        assert compose["services"][name]["volumes"] == [f"{name}:{last('VOLUME')}"]


def test_the_image_is_built_with_what_a_member_of_a_cluster_needs(compose: dict[str, Any]) -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    for name in BROKERS:
        build = compose["services"][name]["build"]
        assert ((FILE.parent / build["context"]).resolve() / build["dockerfile"]).exists()
        assert set(build["args"]["EXTRAS"].strip("[]").split(",")) == {"cluster", "spark"} <= set(extras)


@pytest.mark.parametrize(
    "text", ["a: yes", "a: 1.5", "a:\n- b", "a: b\na: c", "a: b: c", "a:\n    b: c", "a:", "a: *b", "a: b # c", "- a"]
)
def test_what_could_be_read_differently_is_found(text: str) -> None:
    with pytest.raises(AssertionError):
        read_compose(text)


def test_mappings_and_lists_are_read() -> None:
    text = '# c\na:\n  b: "yes"\n  c:\n    - --d\n    - e=F://:1\n  f: 3\n\ng: ["h"]\ni: {}\n'
    assert read_compose(text) == {"a": {"b": "yes", "c": ["--d", "e=F://:1"], "f": 3}, "g": ["h"], "i": {}}
