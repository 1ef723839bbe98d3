"""The settings of a broker as a command line gives them: a file, flags, and ``--set``.

Must not know what the settings are for.
"""

from collections.abc import Callable
from typing import Any

import click

from lamina.cli.pairs import settings_pairs_from
from lamina.settings.properties import load
from lamina.settings.resolve import resolve_broker
from lamina.settings.values import BrokerSettings

_OPTIONS = (
    click.option("--config", "file", metavar="FILE", help="Kafka's server.properties."),
    click.option("--data-dir", metavar="DIR", help="Where everything is kept.  [default: ./lamina-data]"),
    click.option("--node-id", metavar="N", help="The number of this broker.  [default: 1]"),
    click.option(
        "--set",
        "sets",
        metavar="KEY=VALUE",
        multiple=True,
        help="Any setting by Kafka's name; a value may have a unit: 7d, 10GiB. May be repeated.",
    ),
)


def settings_options(command: Callable[..., int]) -> Callable[..., int]:
    """The options that every command about a broker of this machine has."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def settings_from(
    file: str | None, data_dir: str | None, node_id: str | None, sets: tuple[str, ...], **flags: str | None
) -> BrokerSettings:
    """Raises SettingError or PropertiesError for what cannot be used."""
    in_file: dict[str, str] = {}
    if file is not None:
        with open(file, "rb") as opened:
            in_file = load(opened.read())
    given: dict[str, Any] = {"lamina.data.dir": data_dir, "node.id": node_id, **flags}
    return resolve_broker(
        file=in_file,
        flags={name: text for name, text in given.items() if text is not None},
        sets=settings_pairs_from(sets, "--set"),
    )
