"""``lamina users``: those that log in by SCRAM, as `kafka-configs.sh --entity-type users` shows and changes them.

Passwords come from the terminal, from standard input or from a file, never from the command line, where any process
sees them. Must not know how a credential is made.
"""

import sys
from typing import TYPE_CHECKING

import click

from lamina.cli.confirmation import confirm, yes_option
from lamina.cli.options.cluster import as_json_option, cluster_options
from lamina.cli.outcome import Attempts, warn
from lamina.cli.printing.tables import print_json, print_table
from lamina.cli.usage import CommandGroup
from lamina.client.cluster import Cluster
from lamina.client.errors import ClientError
from lamina.peer.security_properties import SecurityPropertyError, parse_login
from lamina.settings.properties import PropertiesError, load_given

if TYPE_CHECKING:
    from confluent_kafka.admin import ScramMechanism

_MECHANISMS = ("SCRAM-SHA-256", "SCRAM-SHA-512")
_LEAST_ITERATIONS, _MOST_ITERATIONS = 4096, 16_384

mechanism_option = click.option(
    "--mechanism", type=click.Choice(_MECHANISMS, case_sensitive=False), help="How they log in."
)


@click.command(
    "list",
    epilog="""\b
Examples:
  lamina users list
  lamina users list orders --json""",
)
@click.argument("names", metavar="NAME…", nargs=-1)
@as_json_option
@cluster_options
def list_users(cluster: Cluster, names: tuple[str, ...], as_json: bool) -> int:
    """Show who can log in by SCRAM, by which mechanisms; nobody can read a password."""
    from lamina.client.scram_users import described

    attempts = Attempts(cluster)
    rows = []
    for user, found in described(cluster, names):
        if isinstance(found, ClientError):
            attempts.fail(user, found)
        else:
            rows += [(user, mechanism, iterations) for mechanism, iterations in found.credentials]
    if as_json:
        for user, mechanism, iterations in rows:
            print_json({"type": "user", "user": user, "mechanism": mechanism, "iterations": iterations})
    elif rows:
        print_table(("user", "mechanism", "iterations"), [(user, name, str(count)) for user, name, count in rows])
    elif not names:
        warn("there are no users; make one with `lamina users set NAME`")
    return attempts.status


@click.command(
    "set",
    epilog="""\b
Examples:
  lamina users set orders
  lamina users set orders --mechanism SCRAM-SHA-256 < password.txt
  lamina users set --login-of secure/orders.properties --command-config secure/admin.properties""",
)
@click.argument("name", metavar="NAME", required=False)
@mechanism_option
@click.option(
    "--iterations",
    metavar="N",
    type=click.IntRange(_LEAST_ITERATIONS, _MOST_ITERATIONS),
    default=_LEAST_ITERATIONS,
    help=f"How slow it is to try passwords.  [default: {_LEAST_ITERATIONS}]",
)
@click.option(
    "--login-of", metavar="FILE", help="Client properties that have the name, the password and the mechanism."
)
@cluster_options
def set_user(cluster: Cluster, name: str | None, mechanism: str | None, iterations: int, login_of: str | None) -> int:
    """Make a user who logs in by SCRAM, or give one another password. It is asked for, or read from standard input."""
    from confluent_kafka.admin import ScramCredentialInfo, UserScramCredentialUpsertion

    if (name is None) == (login_of is None):
        raise click.UsageError("Give NAME, or --login-of FILE.")
    if name == "":
        raise click.UsageError("NAME is empty: name the user.")
    if login_of is not None:
        if mechanism is not None:
            raise click.UsageError("--login-of FILE has the mechanism: leave --mechanism out.")
        name, password, mechanism = _login_in(login_of)
    else:
        password = _password()
    assert name is not None
    mechanism = (mechanism or _MECHANISMS[-1]).upper()
    info = ScramCredentialInfo(_mechanism(mechanism), iterations)
    changed = cluster.admin().alter_user_scram_credentials(
        [UserScramCredentialUpsertion(name, info, password.encode())]
    )
    attempts = Attempts(cluster)
    for user, _ in attempts.answers(changed.items()):
        click.echo(f"{user} can log in by {mechanism}.")
    return attempts.status


@click.command(
    "remove",
    epilog="""\b
Examples:
  lamina users remove orders
  lamina users remove orders --mechanism SCRAM-SHA-256 --yes""",
)
@click.argument("name", metavar="NAME")
@mechanism_option
@yes_option
@cluster_options
def remove(cluster: Cluster, name: str, mechanism: str | None, yes: bool) -> int:
    """Let a user log in no more, by one mechanism or at all. Connections that they have stay open."""
    from confluent_kafka.admin import UserScramCredentialDeletion

    admin, attempts = cluster.admin(), Attempts(cluster)
    chosen = [mechanism.upper()] if mechanism is not None else _mechanisms_of(cluster, name)
    confirm(f"Let {name} log in no more by {' and '.join(chosen)}?", yes)
    # One by one: a request may name a user once.
    for one in chosen:
        changed = admin.alter_user_scram_credentials([UserScramCredentialDeletion(name, _mechanism(one))])
        for user, _ in attempts.answers(changed.items()):
            click.echo(f"{user} cannot log in by {one} any more.")
    return attempts.status


def _mechanisms_of(cluster: Cluster, name: str) -> list[str]:
    from lamina.client.scram_users import described

    ((_, found),) = described(cluster, [name])
    if isinstance(found, ClientError):
        raise found
    return [mechanism for mechanism, _ in found.credentials]


def _password() -> str:
    if sys.stdin.isatty():
        return str(click.prompt("Password", hide_input=True, confirmation_prompt=True, err=True))
    password = sys.stdin.readline().rstrip("\r\n")
    if not password:
        raise click.UsageError("The password is the first line of standard input, and that is empty.")
    return password


def _login_in(file: str) -> tuple[str, str, str]:
    with open(file, "rb") as opened:
        try:
            login = parse_login(load_given(opened.read()))
        except (PropertiesError, SecurityPropertyError) as error:
            raise click.BadParameter(f"{file}: {error}", param_hint="--login-of") from None
    if login.mechanism not in _MECHANISMS:
        raise click.BadParameter(f"{file}: {login.mechanism} is not SCRAM", param_hint="--login-of")
    return login.user, login.password, login.mechanism


def _mechanism(name: str) -> "ScramMechanism":
    from confluent_kafka.admin import ScramMechanism

    return ScramMechanism[name.replace("-", "_")]


@click.group(
    "users",
    cls=CommandGroup,
    epilog="""\b
Examples:
  lamina users list
  lamina users set orders
  lamina users remove orders""",
)
def command() -> None:
    """Show, make and remove users who log in by SCRAM."""


for subcommand in (list_users, set_user, remove):
    command.add_command(subcommand)
