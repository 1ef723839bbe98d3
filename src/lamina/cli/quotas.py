"""``lamina quotas``: how much users, client ids and addresses may use."""

from collections.abc import Callable, Iterable
from difflib import get_close_matches
from typing import Any

import click

from lamina.cli.options.cluster import as_json_option, cluster_options, with_parameters
from lamina.cli.options.settings import pairs_from
from lamina.cli.options.units import size_bytes
from lamina.cli.outcome import FINE, warn
from lamina.cli.printing.tables import print_json, print_table
from lamina.cli.usage import CommandGroup
from lamina.client.cluster import Cluster
from lamina.errors import KafkaError
from lamina.security.quota_filters import FilterComponent, MatchType
from lamina.security.quotas import CLIENT_ID, IP, QUOTAS, USER, QuotaEntity, entity_text, quota_entity

_BYTES_ENDING = "_byte_rate"
_TYPE = "User:"
"""How a principal begins, and no user's name."""
_ENTITY = (
    click.option("--user", metavar="NAME", help="A user, without the User: of a principal."),
    click.option("--default-user", is_flag=True, help="Every user that has no quota of its own."),
    click.option("--client-id", metavar="ID", help="A client id, of any user or of the user named beside it."),
    click.option("--default-client-id", is_flag=True, help="Every client id that has no quota of its own."),
    click.option("--ip", metavar="ADDRESS", help="An address; it has connection_creation_rate alone."),
    click.option("--default-ip", is_flag=True, help="Every address that has no quota of its own."),
)

dry_run_option = click.option("--dry-run", is_flag=True, help="Only check whether it could be done.")


def entity_options(command: Callable[..., int]) -> Callable[..., int]:
    """Adds the options; the command is given ``named`` in their place: pairs of a type and a name."""

    def with_entity(
        *args: Any,
        user: str | None,
        default_user: bool,
        client_id: str | None,
        default_client_id: bool,
        ip: str | None,
        default_ip: bool,
        **rest: Any,
    ) -> int:
        named: list[tuple[str, str | None]] = []
        for entity_type, name, is_default in (
            (USER, user, default_user),
            (CLIENT_ID, client_id, default_client_id),
            (IP, ip, default_ip),
        ):
            if name is not None and is_default:
                raise click.UsageError(f"--{entity_type} and --default-{entity_type} exclude each other")
            if name is not None or is_default:
                named.append((entity_type, name))
        return command(*args, named=named, **rest)

    return with_parameters(command, with_entity, *_ENTITY)


def _exactly(named: Iterable[tuple[str, str | None]]) -> list[FilterComponent]:
    return [FilterComponent(kind, MatchType.DEFAULT if name is None else MatchType.EXACT, name) for kind, name in named]


def _entity(named: list[tuple[str, str | None]]) -> QuotaEntity:
    if not named:
        raise click.UsageError("say whose quotas: --user, --client-id, --ip, or one of their defaults")
    user = dict(named).get(USER)
    if user is not None and user.startswith(_TYPE):
        raise click.UsageError(f"--user takes the name without {_TYPE} --user {user.removeprefix(_TYPE)}")
    try:
        return quota_entity(named)
    except KafkaError as error:
        raise click.UsageError(str(error)) from None


@click.command(
    "list",
    epilog="""\b
Examples:
  lamina quotas list
  lamina quotas list --user alice
  lamina quotas list --default-client-id --json""",
)
@entity_options
@as_json_option
@cluster_options
def list_(cluster: Cluster, named: list[tuple[str, str | None]], as_json: bool) -> int:
    """Show the quotas that are set, all or those of one entity."""
    from lamina.client.quotas import Quotas

    found = [
        (entity, key, value)
        for entity, quotas in Quotas(cluster).described(_exactly(named))
        for key, value in sorted(quotas.items())
    ]
    if as_json:
        for entity, key, value in found:
            print_json({"type": "quota", **_fields(entity), "quota": key, "value": value})
        return FINE
    if not found:
        warn("there are no such quotas" if named else "there are no quotas")
        return FINE
    print_table(
        ("entity", "quota", "value"), [(entity_text(entity), key, _number(value)) for entity, key, value in found]
    )
    return FINE


@click.command(
    "set",
    epilog="""\b
Examples:
  lamina quotas set --user alice producer_byte_rate=10MiB consumer_byte_rate=20MiB
  lamina quotas set --default-user request_percentage=25
  lamina quotas set --user alice --client-id reports consumer_byte_rate=1MiB
  lamina quotas set --default-ip connection_creation_rate=50""",
)
@click.argument("quotas", metavar="QUOTA=VALUE…", nargs=-1, required=True)
@entity_options
@dry_run_option
@as_json_option
@cluster_options
def set_(
    cluster: Cluster, quotas: tuple[str, ...], named: list[tuple[str, str | None]], dry_run: bool, as_json: bool
) -> int:
    """Set quotas of one user, client id or address, or of all that have none of their own."""
    from lamina.client.quotas import Quotas

    entity = _entity(named)
    values = {key: _value(key, text) for key, text in pairs_from(quotas, "QUOTA=VALUE").items()}
    Quotas(cluster).alter(entity, values, is_dry_run=dry_run)
    return _told(entity, dict(values), dry_run, as_json)


@click.command(
    "remove",
    epilog="""\b
Examples:
  lamina quotas remove --user alice producer_byte_rate
  lamina quotas remove --user alice
  lamina quotas remove --default-ip --json""",
)
@click.argument("quotas", metavar="[QUOTA…]", nargs=-1)
@entity_options
@dry_run_option
@as_json_option
@cluster_options
def remove(
    cluster: Cluster, quotas: tuple[str, ...], named: list[tuple[str, str | None]], dry_run: bool, as_json: bool
) -> int:
    """Remove these quotas of one user, client id or address, or all that it has."""
    from lamina.client.quotas import Quotas

    entity, client = _entity(named), Quotas(cluster)
    keys = quotas
    if not keys:
        keys = tuple(key for _, found in client.described(_exactly(entity)) for key in sorted(found))
    values: dict[str, float | None] = dict.fromkeys(keys)
    if values:
        client.alter(entity, values, is_dry_run=dry_run)
    else:
        warn(f"{entity_text(entity)} has no quotas")
    return _told(entity, values, dry_run, as_json)


def _value(key: str, text: str) -> float:
    """A number; bytes may have a unit."""
    size = size_bytes(text) if key.endswith(_BYTES_ENDING) else None
    try:
        return float(text) if size is None else float(size)
    except ValueError:
        meant = get_close_matches(key, QUOTAS, 1) if key not in QUOTAS else []
        advice = f"there is no such quota; did you mean {meant[0]}?" if meant else "give a number"
        raise click.BadParameter(f"{key} = {text[:40]}: {advice}", param_hint="QUOTA=VALUE") from None


def _told(entity: QuotaEntity, values: dict[str, float | None], dry_run: bool, as_json: bool) -> int:
    for key, value in values.items():
        if as_json:
            print_json({"type": "quota_change", **_fields(entity), "quota": key, "value": value, "dry_run": dry_run})
            continue
        what = f"{entity_text(entity)}: {key}"
        if value is None:
            click.echo(f"{what} could be removed" if dry_run else f"{what} removed")
        else:
            click.echo(f"{what} could be set to {_number(value)}" if dry_run else f"{what} = {_number(value)}")
    return FINE


def _fields(entity: QuotaEntity) -> dict[str, Any]:
    return {"entity": [{"entity_type": kind, "name": name} for kind, name in reversed(entity)]}


def _number(value: float) -> str:
    return str(int(value)) if value.is_integer() else str(value)


@click.group(
    "quotas",
    cls=CommandGroup,
    epilog="""\b
Examples:
  lamina quotas list
  lamina quotas set --user alice producer_byte_rate=10MiB
  lamina quotas remove --user alice""",
)
def command() -> None:
    """Show and change how much users, client ids and addresses may use."""


for subcommand in (list_, remove, set_):
    command.add_command(subcommand)
