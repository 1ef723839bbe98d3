"""``lamina serve``."""

import click

from lamina.cli.status import SOMETHING_WRONG


@click.command("serve", epilog="\b\nExample:\n  lamina serve")
def command() -> int:
    """Run a broker."""
    click.echo("lamina: this version has no broker yet; it can look at log directories: lamina --help", err=True)
    return SOMETHING_WRONG
