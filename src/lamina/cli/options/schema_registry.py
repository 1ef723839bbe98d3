"""The options of a command that decodes by a schema registry. Must not know any command."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from lamina.cli.options.cluster import with_parameters
from lamina.settings.properties import PropertiesError, load_given

if TYPE_CHECKING:
    from lamina.schema_registry.location import Location

_URL, _CONFIG = "--schema-registry", "--schema-registry-config"

_OPTIONS = (
    click.option(
        _URL,
        "registry_url",
        metavar="URL",
        envvar="LAMINA_SCHEMA_REGISTRY",
        help="Decode keys and values, Avro and JSON, by this schema registry.  [env: LAMINA_SCHEMA_REGISTRY]",
    ),
    click.option(
        _CONFIG,
        "registry_file",
        metavar="FILE",
        help="Its properties: basic.auth.user.info, bearer.auth.token, ssl.ca.location, timeout, max.retries.",
    ),
)


def schema_registry_options(command: Callable[..., int]) -> Callable[..., int]:
    """Adds the options; the command is given ``registry`` in their place, ``None`` without a URL."""

    def with_registry(*args: Any, registry_url: str | None, registry_file: str | None, **rest: Any) -> int:
        return command(*args, registry=_location(registry_url, registry_file), **rest)

    return with_parameters(command, with_registry, *_OPTIONS)


def _location(url: str | None, file: str | None) -> "Location | None":
    from lamina.schema_registry.errors import RegistryError
    from lamina.schema_registry.location import parse_location

    if url is None:
        if file is not None:
            raise click.UsageError(f"{_CONFIG} needs {_URL}.")
        return None
    try:
        return parse_location(url, {} if file is None else _properties(file))
    except RegistryError as error:
        raise click.BadParameter(str(error), param_hint=_URL) from error


def _properties(file: str) -> dict[str, str]:
    with open(file, "rb") as opened:
        try:
            return load_given(opened.read())
        except PropertiesError as error:
            raise click.BadParameter(f"{file}: {error}", param_hint=_CONFIG) from error
