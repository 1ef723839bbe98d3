"""Settings as a command line gives them: ``KEY=VALUE``, and those of a broker by a file, flags and ``--set``.

Must not know what the settings are for.
"""

import shlex
from collections.abc import Callable, Iterable
from typing import Any

import click

from lamina.cli.options.secrets import secret_warnings
from lamina.cli.options.units import setting_value
from lamina.settings.listeners import PORT_MAX
from lamina.settings.properties import load_given
from lamina.settings.resolve import resolve_broker
from lamina.settings.values import BrokerSettings

_NODE_ID = "The id of the broker.  [default: 1; in a cluster, ZooKeeper gives one]"


def settings_options(command: Callable[..., int], node_id_help: str = _NODE_ID) -> Callable[..., int]:
    """The options that every command about a broker of this machine has."""
    options = (
        click.option("--config", "file", metavar="FILE", help="A server.properties, as for Kafka."),
        click.option("--data-dir", metavar="DIR", help="The data directory.  [default: ./lamina-data]"),
        click.option("--node-id", metavar="N", help=node_id_help),
        click.option(
            "--set",
            "sets",
            metavar="KEY=VALUE",
            multiple=True,
            help="Any setting by Kafka's name; a value may have a unit: 7d, 10GiB. May be repeated.",
        ),
    )
    for option in reversed(options):
        command = option(command)
    return command


def listeners_from(listen: str | None) -> str | None:
    """The setting ``listeners`` that ``--listen`` stands for."""
    if listen is None:
        return None
    host, colon, port = listen.rpartition(":")
    if not colon or not port.isdecimal() or "/" in host or (":" in host and not host.startswith("[")):
        raise click.BadParameter(
            f"{listen!r} is not of the form HOST:PORT, such as 127.0.0.1:9092 or [::1]:9092", param_hint="--listen"
        )
    if int(port) > PORT_MAX:
        raise click.BadParameter(f"port {port} is above {PORT_MAX}", param_hint="--listen")
    return f"PLAINTEXT://{listen}"


def settings_from(
    file: str | None, data_dir: str | None, node_id: str | None, sets: tuple[str, ...], **flags: str | None
) -> BrokerSettings:
    """Raises SettingError or PropertiesError for what cannot be used."""
    in_file: dict[str, str] = {}
    if file is not None:
        with open(file, "rb") as opened:
            in_file = load_given(opened.read())
    given: dict[str, Any] = {"lamina.data.dir": data_dir, "node.id": node_id, **flags}
    on_line = settings_pairs_from(sets, "--set")
    settings = resolve_broker(
        file=in_file,
        flags={name: text for name, text in given.items() if text is not None},
        sets=on_line,
    )
    return settings.with_warnings(secret_warnings(file, in_file, on_line))


def serve_line(
    file: str | None, data_dir: str | None, node_id: object | None, zookeeper: str | None, sets: Iterable[str]
) -> str:
    """The command that starts a broker with settings that were given like this."""
    given = {"config": file, "data-dir": data_dir, "node-id": node_id, "zookeeper": zookeeper}
    flags = [f"--{name}={value}" for name, value in given.items() if value is not None]
    return shlex.join(["lamina", "serve", *flags, *(f"--set={text}" for text in sets)])


def pairs_from(texts: Iterable[str], option: str) -> dict[str, str]:
    given: dict[str, str] = {}
    for text in texts:
        name, separator, value = text.partition("=")
        if not separator or not name.strip():
            raise click.BadParameter(f"{text!r} is not of the form KEY=VALUE", param_hint=option)
        given[name.strip()] = value.strip()
    return given


def settings_pairs_from(texts: Iterable[str], option: str) -> dict[str, str]:
    """Durations and sizes become the plain numbers that Kafka wants."""
    try:
        return {name: setting_value(name, value) for name, value in pairs_from(texts, option).items()}
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint=option) from error
